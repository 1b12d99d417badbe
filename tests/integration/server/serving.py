"""Serves the shop at a port, in a process of its own."""

from __future__ import annotations

import sys

import uvicorn
from tests.integration.server.shop import make_app

from holdfast.server.app import create_app
from holdfast.server.connections import Connection
from holdfast.settings import Settings

if __name__ == "__main__":
    app = create_app(make_app(Settings.load().url))
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        http=Connection,
        ws="none",
        lifespan="off",
        log_level="warning",
    )
