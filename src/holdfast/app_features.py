"""What stands above tasks: schedules, agents and what they may use, the assistant, deliveries.

Each is a group of verbs of its own, imported when it is first asked for: an app that has only tasks
pays for none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, overload

from holdfast.definitions.registry import Registry
from holdfast.settings import Settings
from holdfast.sync_facade import SyncFacade

if TYPE_CHECKING:
    from holdfast.agents.defining import AgentDecorator
    from holdfast.app_agents import AppBudgets, AppExecutions
    from holdfast.app_assistant import AppAssistant
    from holdfast.app_delivery import AppInbox, AppRecipients
    from holdfast.app_schedules import AppSchedules
    from holdfast.delivery.setup import DeliverySetup
    from holdfast.ports.channel import Channel

C = TypeVar("C", bound="type[Channel]")


class AppFeatures(SyncFacade):
    """A part of the app."""

    settings: Settings
    registry: Registry

    @property
    def agent(self) -> AgentDecorator:
        """Make a function an agent, which does what people ask for in words: `@app.agent`, or
        `@app.agent(timeout="10m", default=True, …)`. It takes an `AgentRun`.
        """
        from holdfast.agents.defining import AgentDecorator  # noqa: PLC0415

        return AgentDecorator(self)

    @property
    def default_agent(self) -> str | None:
        """The task that is given what people ask for; None if there is no agent."""
        return self.settings.agent or self.registry.default_agent

    @cached_property
    def budgets(self) -> AppBudgets:
        """What owners and schedules may use: `app.budgets.set("owner:ann", day={"runs": 20})`."""
        from holdfast.app_agents import AppBudgets  # noqa: PLC0415

        return AppBudgets(self)

    @cached_property
    def executions(self) -> AppExecutions:
        """What schedules have run: `app.executions.list(owner="ann")`."""
        from holdfast.app_agents import AppExecutions  # noqa: PLC0415

        return AppExecutions(self)

    @cached_property
    def schedules(self) -> AppSchedules:
        """Schedules: `app.schedules.create(report.call(7), "0 9 * * 1-5", tz="Europe/Berlin")`."""
        from holdfast.app_schedules import AppSchedules  # noqa: PLC0415

        return AppSchedules(self)

    @cached_property
    def assistant(self) -> AppAssistant:
        """The assistant: `app.assistant.ask("every weekday at 9 summarise my inbox",
        timezone="Europe/Berlin", chat_id="chat-7")`.
        """
        from holdfast.app_assistant import AppAssistant  # noqa: PLC0415

        return AppAssistant(self, self.delivery)

    @cached_property
    def delivery(self) -> DeliverySetup:
        """What results are delivered by: `app.delivery.templates`, `app.delivery.check(…)`."""
        from holdfast.delivery.setup import DeliverySetup  # noqa: PLC0415

        return DeliverySetup(self.settings)

    @cached_property
    def recipients(self) -> AppRecipients:
        """Where deliveries go: `app.recipients.put("ann", email="ann@example.com")`."""
        from holdfast.app_delivery import AppRecipients  # noqa: PLC0415

        return AppRecipients(self, self.delivery)

    @cached_property
    def inbox(self) -> AppInbox:
        """What was delivered to be read in the product: `app.inbox.list("ann")`."""
        from holdfast.app_delivery import AppInbox  # noqa: PLC0415

        return AppInbox(self, self.delivery)

    @overload
    def channel(self, name: str, channel: Channel, /) -> None: ...
    @overload
    def channel(self, name: str, /) -> Callable[[C], C]: ...

    def channel(self, name: str, channel: Channel | None = None, /) -> Any:
        """Deliver by something else, too: `app.channel("sms", Sms(key))`, or `@app.channel("sms")`
        on a class that is made without arguments (`holdfast.ports.channel.Channel`).
        """
        if channel is not None:
            return self.delivery.add(name, channel)

        def declare(made: C) -> C:
            self.delivery.add(name, made())
            return made

        return declare
