"""A brake on those who try tokens: after many that were no good, the answer is 429.

It never stands in the way of a good token, whoever else comes from the same address: only what is
refused anyway is refused in another way. Nobody can guess 256 bits; this keeps logs short, and
tells a client that has lost its token to stop asking.
"""

from __future__ import annotations

import ipaddress
import math
import time
from contextlib import suppress

from holdfast.server.problems import Refused

MOST_FAILURES = 100
WINDOW = 60.0
"""Seconds, from the first failure on, in which an address may have so many."""
MOST_ADDRESSES = 10_000


class Brake:
    """Counts failures by address."""

    def __init__(self) -> None:
        self._failures: dict[str, tuple[int, float]] = {}

    def failed(self, host: str) -> None:
        """Note a request without a good token; `Refused` if there were too many from there."""
        now, place = time.monotonic(), _network(host)
        count, since = self._failures.get(place, (0, now))
        if now - since >= WINDOW:
            count, since = 0, now
        if len(self._failures) >= MOST_ADDRESSES and place not in self._failures:
            self._failures.clear()
        self._failures[place] = (count + 1, since)
        if count >= MOST_FAILURES:
            wait = math.ceil(since + WINDOW - now)
            raise Refused(
                429,
                "too_many_bad_tokens",
                f"{MOST_FAILURES} requests without a good token came from your address within a "
                f"minute; try again in {wait} s, with a token that holds",
                headers={"Retry-After": str(wait), "Connection": "close"},
            )


def _network(host: str) -> str:
    """An address of version 4; of version 6 the network, because whoever has one has 2^64."""
    with suppress(ValueError):
        address = ipaddress.ip_address(host)
        if address.version == 6 and address.ipv4_mapped is None:
            return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)))
    return host
