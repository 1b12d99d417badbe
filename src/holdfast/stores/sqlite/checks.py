"""Looks for what should not be: the questions behind `holdfast doctor`."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from holdfast.core.passing import let_pass, next_stage
from holdfast.core.trouble import Trouble
from holdfast.stores.sqlite.gate_lines import read_lines
from holdfast.stores.sqlite.queries import CHECKS
from holdfast.stores.sqlite.schema import expected_indexes

_MOUNTS: Final = Path("/proc/self/mounts")
_OCTAL: Final = re.compile(r"\\([0-7]{3})")
_OVER_A_NETWORK: Final = frozenset(
    {
        "9p", "afs", "ceph", "cifs", "fuse.ceph", "fuse.glusterfs", "fuse.s3fs", "fuse.sshfs",
        "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "smb3", "smbfs",
    }
)  # fmt: skip


def problems(db: sqlite3.Connection, *, now: int) -> list[str]:
    """Everything found, as sentences. Walks the whole file."""
    return [
        *_file(db), *_places(db), *_gates(db, now), *_counts(db), *_leftovers(db), *_indexes(db)
    ]  # fmt: skip


def risky_settings(db: sqlite3.Connection) -> list[str]:
    """What is wrong with the settings of the connection that writes."""
    (mode,) = db.execute(CHECKS["journal_mode"]).fetchone()
    (synchronous,) = db.execute(CHECKS["synchronous"]).fetchone()
    found: list[str] = []
    if mode != "wal":
        found.append(
            Trouble(
                f"journal_mode is {mode}, not wal: readers and the writer block each other.",
                code="journal_mode",
                fix="Some program set it. Stop that program; a worker's start sets it back.",
            )
        )
    if synchronous < 2:
        found.append(
            Trouble(
                f"synchronous is {synchronous}, not 2: a power cut may lose what was promised.",
                code="synchronous",
                fix="Whatever changed it in this process must not.",
            )
        )
    return found


def _file(db: sqlite3.Connection) -> Iterator[str]:
    for (line,) in db.execute(CHECKS["quick_check"]):
        if line != "ok":
            yield Trouble(
                f"the file is damaged: {line}",
                code="damaged",
                fix="Stop everything that uses it, keep a copy, and restore a backup; what can be "
                "read, `sqlite3 FILE .recover` writes out.",
            )


def _places(db: sqlite3.Connection) -> Iterator[str]:
    for task_id, place, state in db.execute(CHECKS["places"]):
        yield f"task {task_id} is {state} in place {place}, and its other columns disagree"


def _gates(db: sqlite3.Connection, now: int) -> Iterator[str]:
    for name, said, found in _differences(db, "told_holders", "real_holders"):
        yield f"gate {name} is held by {said}, but {found} have passed it and not left"
    for (name,) in db.execute(CHECKS["idle_gates"]):
        yield f"gate {name} is kept, though nobody holds it or stands before it"
    names = [name for (name,) in db.execute(CHECKS["gates_to_wait_for"], {"now": now})]
    touched = set(names)
    while touched:
        stage, touched = next_stage(touched)
        lines = read_lines(db, stage, now, {})
        moves = let_pass(lines.lines, now)
        passing = [(one.id, one.gates[one.passed - 1].name) for one in moves.ready + moves.onward]
        for task_id, name in [*passing, *((each[1], name) for name, each, _ in lines.handed_on)]:
            yield f"task {task_id} waits for {name}, which it may pass"


def _counts(db: sqlite3.Connection) -> Iterator[str]:
    for kind, said, found in _differences(db, "told_counts", "real_counts"):
        yield f"the tally says {said} for {kind}, but there are {found}"


def _differences(db: sqlite3.Connection, told: str, real: str) -> Iterator[tuple[str, int, int]]:
    """What is counted under a name, and what there is, where that is not the same."""
    said, found = (dict(map(tuple, db.execute(CHECKS[block]))) for block in (told, real))
    for name in sorted(said.keys() | found.keys()):
        if said.get(name, 0) != found.get(name, 0):
            yield name, said.get(name, 0), found.get(name, 0)


def _leftovers(db: sqlite3.Connection) -> Iterator[str]:
    for (task_id,) in db.execute(CHECKS["lost_lanes"]):
        yield f"task {task_id} is in a lane that does not exist"
    for (seq,) in db.execute(CHECKS["lost_history"]):
        yield f"there is history of task number {seq}, which does not exist"
    for (key,) in db.execute(CHECKS["lost_keys"]):
        yield f"idempotency key {key!r} names a task that does not exist"


def _indexes(db: sqlite3.Connection) -> Iterator[Trouble]:
    there = {name for name, _ in db.execute(CHECKS["indexes"])}
    for name, statement in expected_indexes().items():
        if name not in there:
            yield Trouble(
                f"index {name} is missing: what it serves, or keeps unique, does without.",
                code="missing_index",
                fix=f"{statement};",
            )


def on_a_network(path: Path, mounts: str | None = None) -> Iterator[Trouble]:
    """A file that other machines may have open too: their locks and ours do not see each other.
    `mounts` is what /proc/self/mounts says; nothing is told where there is none.
    """
    if mounts is None:
        try:
            mounts = _MOUNTS.read_text()
        except OSError:
            return
    where = path.resolve()
    kinds = {
        Path(_OCTAL.sub(lambda code: chr(int(code[1], 8)), place)): kind
        for _, place, kind, *_ in map(str.split, mounts.splitlines())
    }
    kind = next((kinds[folder] for folder in (where, *where.parents) if folder in kinds), "")
    if kind in _OVER_A_NETWORK:
        yield Trouble(
            f"{path} is on a network filesystem ({kind}): SQLite's WAL needs memory that all who "
            "open the file share, and locks that hold. Two machines will damage it.",
            code="network_filesystem",
            fix="Put it on a disk of this machine, or use PostgreSQL: holdfast --url postgresql://…",
        )
