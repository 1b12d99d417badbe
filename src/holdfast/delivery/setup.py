"""What an app can deliver by: its channels, the house's and its own, and its templates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final

from holdfast.core.recipient import Recipient
from holdfast.definitions.readers import hint, read_name
from holdfast.delivery.channels.email import EmailChannel
from holdfast.delivery.channels.inbox import InboxChannel
from holdfast.delivery.channels.mobile_push import MobilePushChannel
from holdfast.delivery.channels.web_push import WebPushChannel
from holdfast.delivery.channels.webhook import WebhookChannel
from holdfast.delivery.templates import Templates
from holdfast.errors import InvalidOption
from holdfast.ports.channel import Channel
from holdfast.settings import Settings

NAMES: Final = ("email", "inbox", "webhook", "push", "web_push")
_WHAT: Final = {
    "email": "an e-mail address",
    "webhook": "a webhook URL",
    "push": "a device",
    "web_push": "a browser's subscription",
}


class DeliverySetup:
    """`app.delivery`. Nothing is opened or imported before something is delivered."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._own: dict[str, Channel] = {}

    @cached_property
    def templates(self) -> Templates:
        """What messages look like."""
        return Templates(self.settings.delivery_templates)

    @cached_property
    def _house(self) -> Mapping[str, Channel]:
        settings, templates = self.settings, self.templates
        return {
            "email": EmailChannel(settings, templates),
            "inbox": InboxChannel(),
            "webhook": WebhookChannel(settings),
            "push": MobilePushChannel(settings, templates),
            "web_push": WebPushChannel(settings, templates),
        }

    def add(self, name: str, channel: Channel) -> None:
        """Deliver by something else, too. Said again, it replaces what was said before."""
        read = read_name("channel", name)
        missing = [word for word in ("missing", "addresses", "place", "send", "is_loud")
                   if not hasattr(channel, word)]  # fmt: skip
        if missing:
            raise InvalidOption(
                "channel",
                f"{name!r}: expected an object with {', '.join(missing)} "
                "(`holdfast.ports.channel.Channel`)",
            )
        self._own[read] = channel

    @property
    def channels(self) -> Mapping[str, Channel]:
        """All of them by name, also those that are not set up."""
        return {**self._house, **self._own}

    @property
    def usable(self) -> list[str]:
        """The names of those that this process can deliver by."""
        return [name for name, one in self.channels.items() if one.missing() is None]

    @property
    def is_set_up(self) -> bool:
        """Whether somebody set up a channel; the inbox is always there."""
        return any(name != "inbox" for name in self.usable)

    def check(
        self, channels: Iterable[str], recipient: Recipient | None, owner: str | None
    ) -> None:
        """Refuse channels by which nothing could be delivered: `InvalidOption` says why."""
        for problem in self.problems(channels, recipient, owner):
            raise InvalidOption("channels", problem)

    def problems(
        self, channels: Iterable[str], recipient: Recipient | None, owner: str | None
    ) -> Iterator[str]:
        """What is wrong with delivering by these, as sentences."""
        known = self.channels
        for name in channels:
            if name not in known:
                listed = ", ".join(sorted(known))
                yield f"there is no channel {name!r}.{hint(name, known)} There are: {listed}"
                continue
            missing = known[name].missing()
            if missing is not None:
                yield f"{name} is not set up here: {missing}"
            elif name in (() if recipient is None else recipient.unsubscribed):
                yield f"{owner!r} has unsubscribed from {name}"
            elif not known[name].addresses(recipient or Recipient(owner=owner or "")):
                yield (
                    f"{name} needs {_WHAT.get(name, 'an address')} of {owner!r}: set the recipient "
                    "first (`PUT /api/v1/recipients/{owner}`, `app.recipients.put`)"
                )


def check_channels(
    channels: Iterable[str],
    setup: DeliverySetup,
    recipient: Recipient | None,
    owner: str | None = None,
) -> None:
    """Refuse channels by which nothing could be delivered. Before anything is stored."""
    setup.check(channels, recipient, owner if recipient is None else recipient.owner)
