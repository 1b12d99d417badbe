"""The ways to wake a worker that are measured beside each other, all on PostgreSQL."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bench.peers.roster import BARE, HOLDFAST, Peer


@dataclass(frozen=True, slots=True)
class Way:
    """One row of the tables."""

    peer: Peer
    mode: str | None
    """What the product's `doctor` must say, lest a fallback is measured in its place; None for raw
    SQL, which has no such word and of which only pick-up is measured."""

    @property
    def title(self) -> str:
        return self.peer.title


def _way(title: str, mode: str, **variables: str) -> Way:
    peer = replace(HOLDFAST, title=title, wakes=mode, variables=tuple(variables.items()))
    return Way(peer, mode)


REDIS = _way("Redis", "redis")
LISTEN = _way("LISTEN/NOTIFY", "listen")
POLL = _way("polling each second", "poll", HOLDFAST_POLL="1")
POLL_OFTEN = _way("polling each 50 ms", "poll", HOLDFAST_POLL="0.05")
BARE_LISTEN = Way(BARE, None)
BARE_REDIS = Way(replace(BARE, title="raw SQL, Redis list", wakes="redis"), None)
"""The least that pick-up can be: see `bench/peers/bare.py`."""
WAYS = (BARE_LISTEN, BARE_REDIS, REDIS, LISTEN, POLL, POLL_OFTEN)
