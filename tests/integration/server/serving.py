"""Serves the shop at a port, in a process of its own."""

from __future__ import annotations

import sys

import uvicorn
from tests.integration.server.shop import make_app

from holdfast.server.app import create_app
from holdfast.server.connections import at_most
from holdfast.settings import Settings

if __name__ == "__main__":
    settings = Settings.load()
    app = create_app(make_app(settings.url))
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        http=at_most(settings.max_connections),
        ws="none",
        lifespan="off",
        log_level="warning",
    )
