"""Looks for what should not be: the questions behind `holdfast doctor`."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from typing import Final, NamedTuple

from holdfast.core.trouble import Trouble
from holdfast.stores.postgres.connections import Connection
from holdfast.stores.postgres.queries import Queries

_COMMENT: Final = re.compile(r"--.*")
_INDEXING: Final = re.compile(
    r"CREATE (?:UNIQUE )?INDEX (?P<index>\w+)\s+ON (?P<table>[^\s(]+)[^;]*;"
    r"|DROP (?:TABLE|INDEX) (?:IF EXISTS )?(?P<dropped>[^\s;]+)"
)


class Limits(NamedTuple):
    """What is worth a word: how long a transaction may be open, how far it may hold back the
    removal of dead rows, and how much an unread slot or a slow autovacuum may pile up.
    """

    seconds: float = 300.0
    transactions: int = 5_000_000
    log_bytes: int = 2**30
    dead_rows: int = 1_000_000


LIMITS: Final = Limits()


async def problems(db: Connection, sql: Queries, limits: Limits = LIMITS) -> list[str]:
    """Everything found, as sentences. Walks all tables."""
    async with db.transaction(isolation="repeatable_read", readonly=True):
        await db.execute(sql["search_path"])
        found = [text async for text in _invariants(db, sql)]
    return [*found, *[trouble async for trouble in _health(db, sql, limits)]]


async def _invariants(db: Connection, sql: Queries) -> AsyncIterator[str]:
    for task_id, number, places in await db.fetch(sql["places"]):
        yield f"task {task_id} is in {number} places ({places}), not in one"
    for place, task_id in await db.fetch(sql["strangers"]):
        yield f"{place} has a row of task {task_id} that does not belong there"
    for task_id, flags in await db.fetch(sql["flags"]):
        yield f"task {task_id} has flags {flags}, and its other columns disagree"
    for (task_id,) in await db.fetch(sql["unique_keys"]):
        yield f"the unique key of task {task_id} is not where it should be"
    for (task_id,) in await db.fetch(sql["expiries"]):
        yield f"the expiry of task {task_id} is not where it should be"
    for name, held, holders, holder, first in await db.fetch(sql["gates_held"]):
        yield (f"gate {name!r} says that {held} hold it ({holder}), but {holders} do ({first})")
    for name, problem in await db.fetch(sql["gates_open"]):
        yield f"gate {name!r}: {problem}"
    for kind, key, told, found in await db.fetch(sql["counts"]):
        yield f"the tally says {told} for {kind} {key}, but there are {found}"


async def _health(db: Connection, sql: Queries, limits: Limits) -> AsyncIterator[Trouble]:
    async for trouble in _settings(db, sql):
        yield trouble
    for pid, name, state, seconds in await db.fetch(sql["pinned"], limits.seconds):
        idle = state.startswith("idle in transaction")
        yield Trouble(
            f"a transaction is open for {seconds / 60:.0f} min (pid {pid}, {name or 'no name'}, "
            f"{state}): dead rows cannot be removed meanwhile"
            + (", and what it has locked stays locked." if idle else "."),
            code="idle_in_transaction" if idle else "long_transaction",
            fix=f"End its program, or: SELECT pg_terminate_backend({pid});"
            + (" Set idle_in_transaction_session_timeout for its role." if idle else ""),
        )
    for gid, seconds in await db.fetch(sql["prepared"], limits.seconds):
        yield Trouble(
            f"prepared transaction {gid!r} is open for {seconds / 60:.0f} min: it outlives every "
            "restart, keeps its locks, and dead rows cannot be removed meanwhile.",
            code="prepared_transaction",
            fix=f"ROLLBACK PREPARED '{gid}'; or COMMIT PREPARED, as whoever made it says.",
        )
    for slot, keeps_rows, kept in await db.fetch(sql["slots"], limits.log_bytes):
        what = "dead rows" if keeps_rows else f"{kept / 2**20:,.0f} MiB of write-ahead log"
        yield Trouble(
            f"replication slot {slot} is not read and keeps {what}.",
            code="unread_slot",
            fix=f"If it is not used: SELECT pg_drop_replication_slot('{slot}');",
        )
    for kind, name, age in await db.fetch(sql["horizon"], limits.transactions):
        yield Trouble(
            f"dead rows of the last {age:,} transactions are kept because of {kind} {name}.",
            code="xmin_horizon",
            fix="End it if it is a transaction; for a standby, shorten its queries or turn off "
            "hot_standby_feedback.",
            harmful=False,
        )
    for table, dead, alive in await db.fetch(sql["dead_rows"], limits.dead_rows):
        yield Trouble(
            f"table {table} has {dead:,} dead rows beside {alive:,}: autovacuum does not keep up.",
            code="dead_rows",
            fix=f"VACUUM {sql.schema}.{table}; then look for long transactions, and at "
            "autovacuum_naptime.",
        )
    async for trouble in _indexes(db, sql):
        yield trouble
    if missing := await db.fetchval(sql["missing_partitions"]):
        yield Trouble(
            f"{missing} partitions of today or tomorrow are missing: rows go to the default "
            "partition, which cannot be dropped by the day.",
            code="missing_partitions",
            fix="A running worker makes them; so does `holdfast migrate`.",
        )


async def _settings(db: Connection, sql: Queries) -> AsyncIterator[Trouble]:
    fsync, synchronous, pages = await db.fetchrow(sql["settings"]) or ("on", "on", "on")
    if fsync != "on" or pages != "on":
        yield Trouble(
            f"fsync is {fsync} and full_page_writes is {pages}: a crash of the server may lose or "
            "damage what was promised.",
            code="fsync",
            fix="ALTER SYSTEM RESET fsync; ALTER SYSTEM RESET full_page_writes; and take them out "
            "of postgresql.conf.",
        )
    if synchronous in ("off", "local"):
        yield Trouble(
            f"synchronous_commit is {synchronous}: a crash may lose what was acknowledged last.",
            code="synchronous_commit",
            fix="Take it out of the URL, the role or the database: "
            "ALTER ROLE … RESET synchronous_commit;",
        )


async def _indexes(db: Connection, sql: Queries) -> AsyncIterator[Trouble]:
    found = dict(map(tuple, await db.fetch(sql["indexes"])))
    for name, is_valid in found.items():
        if not is_valid:
            yield Trouble(
                f"index {name} is not valid: it is written to, and no question is answered by it.",
                code="invalid_index",
                fix=f'REINDEX INDEX CONCURRENTLY {sql.schema}."{name}";',
            )
    for name, statement in expected_indexes(sql).items():
        if name not in found:
            yield Trouble(
                f"index {name} is missing: what it serves reads whole tables.",
                code="missing_index",
                fix=statement,
            )


def expected_indexes(sql: Queries) -> Mapping[str, str]:
    """The indexes that the migrations make and do not take away again, with their statements."""
    made: dict[str, tuple[str, str]] = {}
    for migration in sql.migrations:
        text = _COMMENT.sub("", migration.sql)
        for found in _INDEXING.finditer(text):
            if found["index"]:
                made[found["index"]] = (found["table"], " ".join(found[0].split()))
            gone = {found["dropped"]}
            made = {n: each for n, each in made.items() if not gone & {n, each[0]}}
    return {name: statement for name, (_, statement) in made.items()}
