"""The service's verbs from Python, over HTTP: `HttpClient`. Needs the extra `http` (httpx)."""

from holdfast.http.client import HttpClient

__all__ = ["HttpClient"]
