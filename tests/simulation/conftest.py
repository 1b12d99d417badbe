"""The real rescuer logs each burial; hundreds of thousands of them are no news here."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True, scope="package")
def _quiet() -> Iterator[None]:
    quiet = structlog.make_filtering_bound_logger(logging.CRITICAL)
    structlog.configure(wrapper_class=quiet)
    yield
    structlog.reset_defaults()
