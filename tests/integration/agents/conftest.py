"""Apps on every store, with workers in this very process."""

from __future__ import annotations

from tests.kit.at_work import app, url, working

__all__ = ["app", "url", "working"]
