"""Joins the assistant of an app: its planner, its agent, its channels."""

from __future__ import annotations

from holdfast.assistant import parse
from holdfast.assistant.assistant import Assistant, Channels
from holdfast.assistant.offline import OfflinePlanner
from holdfast.ports.planner import Planner
from holdfast.schedules.book import Book
from holdfast.settings import Settings


def assistant_of(book: Book, channels: Channels) -> Assistant:
    """The assistant over these schedules. With `llm_url` a model plans, and the grammar checks."""
    return Assistant(
        book=book,
        planner=planner_of(book.settings),
        parse=parse,
        channels=channels,
        agent=book.settings.agent or book.registry.default_agent,
    )


def planner_of(settings: Settings) -> Planner:
    """Who understands requests in a deployment with these settings."""
    offline = OfflinePlanner()
    if settings.llm_url is None:
        return offline
    from holdfast.assistant.llm.planner import LLMPlanner  # noqa: PLC0415 - it needs an extra

    return LLMPlanner(settings, offline)
