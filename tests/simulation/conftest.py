"""The real rescuer logs each burial; hundreds of thousands of them are no news here."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)  # not longer: others run in between
def _quiet() -> Iterator[None]:
    log = logging.getLogger("holdfast")
    log.setLevel(logging.CRITICAL)
    yield
    log.setLevel(logging.NOTSET)
