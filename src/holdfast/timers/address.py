"""Reads `timer_url`: which queue of Google Cloud Tasks, and what it is to call.

gcloud://project/location/queue?target=https://shop.example/v1/tasks/execute
    &oidc=caller@project.iam.gserviceaccount.com    a Google account instead of a secret
    &audience=https://shop.example                  for whom its token is; the target if not said
    &deadline=10m                                   how long a call may take (15 s to 30 m)
    &horizon=30d                                    how far ahead timers are armed
    &endpoint=localhost:9022&insecure=true          another API, such as an emulator's
    &certs=https://…                                other keys of whoever signs OIDC tokens
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from holdfast.core.duration import parse_duration
from holdfast.errors import ConfigError

SCHEME: Final = "gcloud"
HORIZON: Final = 30 * 86_400.0
"""What the service takes: a task may be scheduled 30 days ahead."""
SHORTEST_DEADLINE: Final = 15.0
LONGEST_DEADLINE: Final = 1800.0
CERTS: Final = "https://www.googleapis.com/oauth2/v1/certs"
_WORDS: Final = frozenset(
    {"target", "oidc", "audience", "deadline", "horizon", "endpoint", "insecure", "certs"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerAddress:
    """A queue of Cloud Tasks and the server that it calls; times in seconds."""

    queue: str
    """`projects/…/locations/…/queues/…`."""
    target: str
    oidc: str | None = None
    audience: str
    deadline: float = 600.0
    horizon: float = HORIZON
    endpoint: str | None = None
    is_insecure: bool = False
    certs: str = CERTS


def parse_timer_url(url: str) -> TimerAddress:
    """Read the setting. `ConfigError` says what is wrong with it."""
    parts = urlsplit(url)
    place = [parts.netloc, *parts.path.strip("/").split("/")]
    if parts.scheme != SCHEME or len(place) != 3 or not all(place):
        raise _wrong(
            "expected gcloud://project/location/queue?target=https://…/v1/tasks/execute, got "
            f"{parts.scheme}://{parts.netloc}{parts.path}"
        )
    words = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := sorted(words.keys() - _WORDS):
        raise _wrong(f"no such word: {unknown[0]!r}. Expected of {', '.join(sorted(_WORDS))}")
    is_insecure = words.get("insecure", "false") == "true"
    target = words.get("target", "")
    if not target.startswith("https://") and not (is_insecure and target.startswith("http://")):
        raise _wrong(
            f"target: expected the https:// address of this server, got {target!r}. Plain http:// "
            "is taken with insecure=true, for emulators."
        )
    project, location, queue = place
    return TimerAddress(
        queue=f"projects/{project}/locations/{location}/queues/{queue}",
        target=target,
        oidc=words.get("oidc"),
        audience=words.get("audience", target),
        deadline=_seconds(words, "deadline", 600.0, SHORTEST_DEADLINE, LONGEST_DEADLINE),
        horizon=_seconds(words, "horizon", HORIZON, 60.0, HORIZON),
        endpoint=words.get("endpoint"),
        is_insecure=is_insecure,
        certs=words.get("certs", CERTS),
    )


def _seconds(words: dict[str, str], word: str, usual: float, least: float, most: float) -> float:
    if word not in words:
        return usual
    try:
        seconds = parse_duration(words[word])
    except ValueError as error:
        raise _wrong(f"{word}: {error}") from None
    if not least <= seconds <= most:
        raise _wrong(f"{word}: expected from {least:g} s to {most:g} s, got {words[word]!r}")
    return seconds


def _wrong(problem: str) -> ConfigError:
    return ConfigError("timer_url", f"timer_url: {problem}")
