"""The part on MongoDB: whatever `MONGODB_URL` names, or else the tests' own server, which speaks
the protocol and is slow; its figures say nothing about MongoDB.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial

from bench import tables
from bench.peers import contest
from bench.peers.match import DATABASE, Arena
from bench.peers.roster import HOLDFAST_MONGO, Peer
from bench.samples import BULK, CALLERS, ONE, SUBMIT, Samples
from bench.servers import Mongo
from bench.size import Size

SLOW = replace(HOLDFAST_MONGO, drained=500, submitted=200)
"""As much as the test server does in a few seconds."""

TEST_SERVER = """
**Measured on {version}, a test server; no statement about MongoDB.**
It speaks the protocol, and is slow: most of it is Python, and it reads every match of a sorted \
query, however few are wanted.
What the store asks of a server is counted in the tests, in commands and documents examined.
`MONGODB_URL=mongodb://… make bench ARGS="--only mongo"` measures a real one.

"""
REAL = """
Measured on {version}, at whatever distance `MONGODB_URL` is.

"""
CASES = """\
Tasks per second: median (lowest..highest) of the rounds; writes are acknowledged by the majority, \
and journalled.
In bulk: 1,000 tasks a call, two calls under way at a time.

"""


def play(samples: Samples, server: Mongo, size: Size) -> None:
    """All rounds."""
    arena, peer, share = Arena(mongo=server), _peer(server), size.share
    submit = partial(contest.submit_rate, peer, arena, share=share)
    for number in range(1, size.rounds + 1):
        print(f"MongoDB: round {number} of {size.rounds}", file=sys.stderr, flush=True)
        samples.rate(peer.title, SUBMIT, submit)
        samples.rate(peer.title, CALLERS, partial(submit, callers=8))
        samples.rate(peer.title, BULK, partial(contest.bulk_rate, peer, arena, share=share))
        samples.drain(peer.title, ONE, partial(contest.drain, peer, arena, peer.one, share=share))
    server.drop(DATABASE)


def _peer(server: Mongo) -> Peer:
    return SLOW if server.is_test_server else HOLDFAST_MONGO


def text(samples: Samples, server: Mongo) -> str:
    """The part of the page; on what it was measured comes first."""
    peer = _peer(server)
    head = TEST_SERVER if server.is_test_server else REAL
    found = [head.format(version=server.version()), CASES, tables.rates(samples, [peer.title])]
    return "".join([*found, tables.failures(samples)])
