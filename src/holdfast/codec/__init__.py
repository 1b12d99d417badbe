"""Arguments and results as JSON bytes and back, checked against the type hints on both ways.

A payload is one JSON object: parameter name → value, in the order of the signature. `*args` is an
array and `**kwargs` an object, each under its own name, so that no two names can collide. What the
caller leaves out is left out: the function that runs has defaults of its own, and one of an older
release may lack the parameter.

Validators are built once per function and run inside pydantic-core: reading a payload of two plain
arguments costs well under a microsecond. `bytes` travel as base64.

JSON has no dates, sets and bytes; the annotation says which it is. Where it leaves that open (no
annotation, `Any`, a union such as `str | bytes`), a value that would come back as something else is
refused at submit. A result is not: the work is done.
"""

from holdfast.codec.arguments import ArgumentCodec, Checked
from holdfast.codec.results import ResultCodec
from holdfast.codec.shape import digest

__all__ = ["ArgumentCodec", "Checked", "ResultCodec", "digest"]
