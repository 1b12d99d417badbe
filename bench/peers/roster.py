"""Which peers are measured, and with which settings: the best reasonable ones we found for each.

`one` starts one worker process, `best` the quickest set of workers on two cores, `usual` the worker
that its manual shows (pick-up and idle cost are measured with it).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Command = tuple[str, ...]
Commands = tuple[Command, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """One row of the table."""

    key: str
    title: str
    driver: str
    """The module beside this one, and the name of its requirements."""
    server: Literal["postgres", "redis", "mongo", "file"]
    drained: int
    """Tasks in one drain: two or three seconds' worth."""
    submitted: int
    one: Commands
    best: Commands
    usual: Commands
    bulk: bool = False
    keeps: Literal["state", "results"]
    """`state`: finished tasks always leave a row, and no return value can be kept; drains wait for
    that row. `results`: drained once without results, and once more with them."""
    settings: str
    leaves: str
    """What a finished task leaves behind in the drains without results."""
    wakes: str = ""
    """Of Holdfast on PostgreSQL: what wakes its workers; `redis` needs that server too."""
    variables: tuple[tuple[str, str], ...] = ()
    """For the environment of its processes."""

    @property
    def tick_every(self) -> int:
        return 100 if self.keeps == "state" else 1


def _holdfast(processes: int, concurrency: int) -> Command:
    numbers = ("--processes", str(processes), "--concurrency", str(concurrency))
    return ("holdfast", "worker", "bench.peers.holdfast:app", *numbers)


HOLDFAST = Peer(
    key="holdfast",
    title="Holdfast, PostgreSQL",
    driver="holdfast",
    server="postgres",
    drained=100_000,
    submitted=2_000,
    one=(_holdfast(1, 100),),
    best=(_holdfast(2, 100),),
    usual=(("holdfast", "worker", "bench.peers.holdfast:app"),),
    bulk=True,
    keeps="state",
    settings="async tasks, concurrency 100; best: 2 processes; usual: its defaults",
    leaves="task and history with the result, in batches",
)
HOLDFAST_SQLITE = replace(HOLDFAST, key="sqlite", title="Holdfast, SQLite", server="file")
HOLDFAST_MONGO = replace(
    HOLDFAST, key="mongo", title="Holdfast, MongoDB", server="mongo", drained=20_000
)


_BARE = ("python", "-m", "bench.peers.bare")
BARE = Peer(
    key="bare",
    title="raw SQL, LISTEN/NOTIFY",
    driver="bare",
    server="postgres",
    drained=0,
    submitted=0,
    one=(_BARE,),
    best=(_BARE,),
    usual=(_BARE,),
    keeps="state",
    settings="",
    leaves="",
)
"""Not a queue: the limit of pick-up. Nothing else of it is measured."""


def _pgqueuer(batch: int) -> Command:
    return ("python", "-m", "bench.peers.pgqueuer", str(batch))


PGQUEUER = Peer(
    key="pgqueuer",
    title="PGQueuer",
    driver="pgqueuer",
    server="postgres",
    drained=30_000,
    submitted=2_000,
    one=(_pgqueuer(500),),
    best=(_pgqueuer(500), _pgqueuer(500)),
    usual=(_pgqueuer(10),),
    bulk=True,
    keeps="state",
    settings="async entrypoints, batch_size 500, uvloop; best: 2 processes; usual: batch_size 10",
    leaves="job row deleted and a log row written, in batches",
)


def _procrastinate(concurrency: int) -> Command:
    app = "--app=bench.peers.procrastinate.app"
    return ("procrastinate", app, "--log-level=warning", "worker", f"--concurrency={concurrency}")


PROCRASTINATE = Peer(
    key="procrastinate",
    title="Procrastinate",
    driver="procrastinate",
    server="postgres",
    drained=1_200,
    submitted=1_000,
    one=(_procrastinate(10),),
    best=(_procrastinate(10), _procrastinate(10)),
    usual=(_procrastinate(1),),
    bulk=True,
    keeps="state",
    settings="async tasks, concurrency 10, pool of 12; best: 2 processes; usual: concurrency 1",
    leaves="job row and event rows, one transaction for each job",
)

_CHANCY = ("chancy", "--app", "bench.peers.chancy.app", "worker", "start")
CHANCY = Peer(
    key="chancy",
    title="Chancy",
    driver="chancy",
    server="postgres",
    drained=5_000,
    submitted=1_000,
    one=(_CHANCY,),
    best=(_CHANCY, _CHANCY),
    usual=(_CHANCY,),
    bulk=True,
    keeps="state",
    settings="AsyncExecutor, concurrency 100, eager polling; best: 2 processes",
    leaves="job row, states written in batches",
)

_SAQ = ("saq", "-q", "bench.peers.saq.settings")
SAQ_POSTGRES = Peer(
    key="saq-postgres",
    title="SAQ, PostgreSQL",
    driver="saq",
    server="postgres",
    drained=1_200,
    submitted=800,
    one=(_SAQ,),
    best=(_SAQ, _SAQ),
    usual=(_SAQ,),
    keeps="results",
    settings="concurrency 10 (its default); best: 2 processes",
    leaves="nothing: finished jobs are deleted",
)
SAQ = replace(
    SAQ_POSTGRES, key="saq", title="SAQ, Redis", server="redis", drained=3_000, submitted=2_000
)


def _celery(*flags: str) -> Command:
    quiet = ("--loglevel=WARNING", "--without-gossip", "--without-mingle")
    return ("celery", "-A", "bench.peers.celery", "worker", *quiet, *flags)


CELERY = Peer(
    key="celery",
    title="Celery, Redis",
    driver="celery",
    server="redis",
    drained=2_000,
    submitted=1_500,
    one=(_celery("-P", "solo"),),
    best=(_celery("-P", "solo", "-n", "one@%h"), _celery("-P", "solo", "-n", "two@%h")),
    usual=(_celery("-P", "prefork", "-c", "2"),),
    bulk=True,
    keeps="results",
    settings="prefetch multiplier 128, no gossip, no mingle; one: solo; best: 2 solo workers "
    "(quicker here than prefork -c 2 and threads); usual: prefork -c 2",
    leaves="nothing: acknowledged early, results ignored",
)


def _dramatiq(processes: int, threads: int) -> Command:
    numbers = ("--processes", str(processes), "--threads", str(threads))
    return ("dramatiq", "bench.peers.dramatiq", *numbers)


DRAMATIQ = Peer(
    key="dramatiq",
    title="Dramatiq, Redis",
    driver="dramatiq",
    server="redis",
    drained=6_000,
    submitted=4_000,
    one=(_dramatiq(1, 16),),
    best=(_dramatiq(2, 16),),
    usual=(_dramatiq(1, 8),),
    keeps="results",
    settings="16 threads; best: 2 processes of them; usual: 8 threads; a master process on top",
    leaves="nothing: messages are deleted",
)


def _taskiq(processes: int, *flags: str) -> Command:
    quiet = ("--log-level", "WARNING")
    broker = "bench.peers.taskiq:broker"
    return ("taskiq", "worker", broker, "--workers", str(processes), *quiet, *flags)


TASKIQ = Peer(
    key="taskiq",
    title="Taskiq, Redis stream",
    driver="taskiq",
    server="redis",
    drained=6_000,
    submitted=3_000,
    one=(_taskiq(1, "--no-parse"),),
    best=(_taskiq(2, "--no-parse"),),
    usual=(_taskiq(1),),
    keeps="results",
    settings="async tasks, 100 at once (its default), --no-parse, uvloop; best: 2 processes; "
    "a master process on top",
    leaves="the acknowledged stream entry",
)


def _arq(settings: str) -> Command:
    return ("arq", f"bench.peers.arq.{settings}", "--custom-log-dict", "bench.peers.arq.QUIET")


ARQ = Peer(
    key="arq",
    title="arq",
    driver="arq",
    server="redis",
    drained=2_000,
    submitted=1_500,
    one=(_arq("Wide"),),
    best=(_arq("Wide"), _arq("Wide")),
    usual=(_arq("Usual"),),
    keeps="results",
    settings="max_jobs 100; best: 2 processes; usual: max_jobs 10, polls each 0.5 s",
    leaves="nothing: keep_result 0",
)


def _rq(kind: str) -> Command:
    return ("rq", "worker", "-q", "-w", f"rq.worker.{kind}")


RQ = Peer(
    key="rq",
    title="RQ",
    driver="rq",
    server="redis",
    drained=600,
    submitted=1_500,
    one=(_rq("SimpleWorker"),),
    best=(_rq("SimpleWorker"), _rq("SimpleWorker")),
    usual=(_rq("Worker"),),
    bulk=True,
    keeps="results",
    settings="SimpleWorker, no fork; best: 2 of them; usual: Worker, a fork for each job",
    leaves="nothing: result_ttl 0",
)


def _huey(kind: str, workers: int) -> Command:
    flags = ("-q", "-n", "-k", kind, "-w", str(workers))
    return ("huey_consumer", "bench.peers.huey.app", *flags)


HUEY = Peer(
    key="huey",
    title="Huey, Redis",
    driver="huey",
    server="redis",
    drained=5_000,
    submitted=4_000,
    one=(_huey("thread", 4),),
    best=(_huey("process", 4),),
    usual=(_huey("thread", 1),),
    keeps="results",
    settings="4 threads; best: 4 worker processes; usual: 1 thread; no periodic tasks",
    leaves="nothing: popped from the list",
)
HUEY_SQLITE = replace(
    HUEY,
    key="huey-sqlite",
    title="Huey, SQLite",
    server="file",
    submitted=3_000,
    one=(_huey("thread", 1),),
    best=(_huey("process", 2),),
    settings="1 thread; best: 2 worker processes; no periodic tasks",
    leaves="nothing: deleted when taken",
)

DBOS = Peer(
    key="dbos",
    title="DBOS, PostgreSQL",
    driver="dbos",
    server="postgres",
    drained=1_000,
    submitted=0,
    one=(),
    best=(),
    usual=(),
    keeps="results",
    settings="8 threads of one process call workflows (its queue and asyncio were as quick here), "
    "pool of 20 connections (its default)",
    leaves="a row for each workflow and each step, with the result",
)
"""Of which only compositions are measured. Its workflows run in the process that starts them."""

PEERS: tuple[Peer, ...] = (
    PGQUEUER,
    PROCRASTINATE,
    CHANCY,
    SAQ_POSTGRES,
    SAQ,
    CELERY,
    DRAMATIQ,
    TASKIQ,
    ARQ,
    RQ,
    HUEY,
)
"""Those beside Holdfast on PostgreSQL; Huey on SQLite stands beside Holdfast on SQLite."""
