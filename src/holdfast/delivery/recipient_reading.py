"""Reads what is said of a recipient. Nothing is stored if anything of it is wrong."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import time
from typing import Any, Final, TypedDict
from zoneinfo import ZoneInfo

from holdfast.core.mail_address import parse_address
from holdfast.core.recipient import QuietHours, Subscription
from holdfast.definitions.callbacks import check_callback
from holdfast.definitions.readers import hint, read_text
from holdfast.delivery.channels.web_push_keys import check_subscription
from holdfast.errors import InvalidOption

MOST_DEVICES: Final = 50
MOST_SUBSCRIPTIONS: Final = 50
LONGEST_DEVICE: Final = 4096
LONGEST_LANGUAGE: Final = 35


class RecipientKeywords(TypedDict, total=False):
    """What can be said of a recipient, as JSON has it."""

    email: str | None
    webhook_url: str | None
    devices: Sequence[str] | None
    web_push: Sequence[Mapping[str, Any]] | None
    timezone: str | None
    language: str | None
    quiet_hours: Mapping[str, str] | None
    unsubscribed: Sequence[str] | None


WORDS: Final = tuple(RecipientKeywords.__annotations__)


def read_words(
    words: Mapping[str, Any], channels: Collection[str], allowed_hosts: Collection[str]
) -> dict[str, Any]:
    """The fields that these words set, checked; `InvalidOption` names the one that is wrong."""
    found: dict[str, Any] = {}
    for name, value in words.items():
        if name not in WORDS:
            raise InvalidOption(name, f"no word about a recipient{hint(name, WORDS)}")
        if value is None:
            found[name] = () if name in {"devices", "web_push", "unsubscribed"} else None
        elif name == "webhook_url":
            found[name] = _webhook(value, allowed_hosts)
        elif name == "unsubscribed":
            found[name] = tuple(_channel(each, channels) for each in _items(name, value, 50))
        elif name == "web_push":
            many = _items(name, value, MOST_SUBSCRIPTIONS)
            found[name] = tuple(
                _subscription(f"{name}[{n}]", each, allowed_hosts) for n, each in enumerate(many)
            )
        else:
            found[name] = _READERS[name](name, value)
    return found


def _email(name: str, value: object) -> str:
    try:
        return parse_address(value)
    except ValueError as error:
        raise InvalidOption(name, str(error)) from None


def _webhook(value: object, allowed_hosts: Collection[str]) -> str:
    try:
        return check_callback(value, allowed_hosts)
    except InvalidOption as error:
        raise InvalidOption("webhook_url", str(error).removeprefix("callback: ")) from None


def _devices(name: str, value: object) -> tuple[str, ...]:
    many = _items(name, value, MOST_DEVICES)
    read = (read_text(f"{name}[{n}]", each, LONGEST_DEVICE) for n, each in enumerate(many))
    return tuple(dict.fromkeys(read))


def _zone(name: str, value: object) -> str:
    try:
        return ZoneInfo(str(value)).key
    except (ValueError, OSError, LookupError):
        raise InvalidOption(
            name, f"expected the name of a time zone such as 'Europe/Berlin', got {value!r}"
        ) from None


def _language(name: str, value: object) -> str:
    text = read_text(name, value, LONGEST_LANGUAGE)
    if not text.replace("-", "").isalnum() or not text.isascii():
        raise InvalidOption(name, f"expected a language tag such as 'de', got {value!r}")
    return text


def _quiet(name: str, value: object) -> QuietHours:
    if not isinstance(value, Mapping) or set(value) != {"from", "to"}:
        raise InvalidOption(name, f"expected {{'from': '22:00', 'to': '07:00'}}, got {value!r:.80}")
    begin, end = _clock(f"{name}.from", value["from"]), _clock(f"{name}.to", value["to"])
    if begin == end:
        raise InvalidOption(name, f"expected two different times, got {value['from']!r} twice")
    return QuietHours(begin, end)


def _clock(name: str, value: object) -> time:
    try:
        if isinstance(value, str) and len(value) == len("22:00"):
            return time.fromisoformat(value)
    except ValueError:
        pass
    raise InvalidOption(name, f"expected a time of day such as '22:00', got {value!r:.80}")


def _channel(value: object, channels: Collection[str]) -> str:
    if value not in channels:
        raise InvalidOption(
            "unsubscribed", f"there is no channel {value!r:.80}{hint(str(value), channels)}"
        )
    return str(value)


def _subscription(name: str, value: object, allowed_hosts: Collection[str]) -> Subscription:
    """One as browsers write it: `{"endpoint": …, "keys": {"p256dh": …, "auth": …}}`."""
    keys = value.get("keys") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or not isinstance(keys, Mapping):
        raise InvalidOption(name, "expected a push subscription with an endpoint and its keys")
    endpoint = value.get("endpoint")
    try:
        check_callback(endpoint, allowed_hosts)
    except InvalidOption as error:
        told = str(error).removeprefix("callback: ")
        raise InvalidOption(f"{name}.endpoint", told) from None
    subscription = Subscription(str(endpoint), str(keys.get("p256dh")), str(keys.get("auth")))
    check_subscription(f"{name}.keys", subscription)
    return subscription


def _items(name: str, value: object, most: int) -> Sequence[Any]:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Sequence):
        raise InvalidOption(name, f"expected a list, got {value!r:.80}")
    if len(value) > most:
        raise InvalidOption(name, f"expected {most} at most, got {len(value)}")
    return value


_READERS: Final[Mapping[str, Callable[[str, object], Any]]] = {
    "email": _email,
    "devices": _devices,
    "timezone": _zone,
    "language": _language,
    "quiet_hours": _quiet,
}
