"""The ways to wake a worker that are measured beside each other, all on PostgreSQL."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bench.peers.roster import HOLDFAST, Peer


@dataclass(frozen=True, slots=True)
class Way:
    """One row of the tables."""

    peer: Peer
    mode: str
    """What the product's `doctor` must say, lest a fallback is measured in its place."""

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
WAYS = (REDIS, LISTEN, POLL, POLL_OFTEN)
