"""An app to be served: tasks of every kind of parameter, none of which does much."""

from __future__ import annotations

from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Any, Unpack

from pydantic import BaseModel, Field, SecretStr

from holdfast import Holdfast
from holdfast.agents.run import AgentRun
from holdfast.settings import SettingsKeywords


class Size(StrEnum):
    SMALL = "small"
    LARGE = "large"


class Item(BaseModel):
    name: str
    price: Annotated[float, Field(ge=0)]
    tags: list[str] = []


def make_app(at: str, /, **settings: Unpack[SettingsKeywords]) -> Holdfast:
    """A shop whose store is at this URL."""
    settings["url"] = at
    app = Holdfast(**settings)

    @app.task(name="shop.add")
    def add(a: int, b: int = 0) -> int:
        return a + b

    @app.task(name="shop.mail", queue="mail", priority="high", tags="letters")
    def mail(to: str, body: str = "", copies: Annotated[int, Field(ge=1, le=10)] = 1) -> str:
        return to

    @app.task(name="shop.order", lock="customer:{customer}", max_retries=0)
    def order(
        customer: int,
        items: list[Item],
        size: Size = Size.SMALL,
        day: date | None = None,
        at: datetime | None = None,
    ) -> float:
        return sum(item.price for item in items)

    @app.task(name="shop.login")
    def login(user: str, password: SecretStr) -> str:
        return user

    @app.task(name="shop.anything")
    def anything(value: Any, **more: Any) -> None:
        return None

    @app.agent(name="shop.assistant")
    def assistant(run: AgentRun) -> str:
        return f"done: {run.purpose}"

    @app.task(name="shop.fail", max_retries=0)
    def fail(message: str = "no") -> None:
        raise RuntimeError(message)

    return app
