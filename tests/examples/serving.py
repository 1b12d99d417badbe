"""`python -m tests.examples.serving PORT`: the service, as `holdfast server` runs it."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from holdfast import Holdfast
from holdfast.server.running import serve

app = Holdfast()


@app.task(name="words", queue="mixed")
def words(text: str) -> dict[str, Any]:
    """What the workers over HTTP can do too."""
    return {"words": len(text.split()), "pid": os.getpid(), "python": True}


if __name__ == "__main__":
    asyncio.run(serve(app, port=int(sys.argv[1])))
