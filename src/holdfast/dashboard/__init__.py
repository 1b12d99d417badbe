"""The dashboard: pages for people, made on the server, kept live by streams of fragments.

    app.mount("/tasks", holdfast_dashboard(my_holdfast_app))     in a FastAPI or Starlette app
    holdfast server module:app                                   beside the REST API, at `/`

A page is one module in `pages/` and one template: the module says who may see it (`page.Page`),
reads what it shows through the token's reach, and does what its buttons ask for.
"""

from __future__ import annotations

from holdfast.dashboard.app import create_app, holdfast_dashboard

__all__ = ["create_app", "holdfast_dashboard"]
