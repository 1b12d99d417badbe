"""The SQL itself: every block is used and every name exists."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.core.query import TaskFilter
from holdfast.core.task import State
from holdfast.stores import postgres
from holdfast.stores.postgres.queries import NOUNS, blocks, queries

FOLDER = Path(postgres.__file__).parent


def test_every_block_is_used_and_every_name_exists() -> None:
    code = "\n".join(file.read_text() for file in FOLDER.glob("*.py"))
    used = set(re.findall(r"""sql\[["'](\w+)["']\]""", code))
    # These names are computed: filter clauses are named like the fields of `TaskFilter`, places and
    # ends after what is there, further clauses and questions are arguments.
    used |= set(TaskFilter.__dataclass_fields__)
    used |= {f"done_{state.value}" for state in State} & set(queries("holdfast").named)
    used |= {"waiting", "retrying", "ready", "blocked", "running", "after", "later_than"}
    used |= {"after_nearby", "later_than_nearby"}
    used |= {f"{way}_records{where}" for way in ("oldest", "newest") for where in ("", "_in_group")}
    used |= {"insert_records", "update_records"}
    used |= {"done_after", "done_later_than", "pictures_newest_first", "pictures_oldest_first"}
    used |= {"waits_or_ended"}  # a further clause of requeues
    used |= {"not_asked", "key_is_free", "newest_first", "newest_done_first", "oldest_done_first"}
    used |= {"last_ended", "first_ended", "pictures_last_ended", "pictures_first_ended"}
    used |= {"ended_after", "ended_later_than", "edge", "ended_since", "ended_until"}
    used |= set(re.findall(r'_ask\("(\w+)"', code))
    used |= {f"vacuum_{table}" for table in ("ready", "run", "waiting", "blocked", "tally")}
    used |= {f"shrink_{table}" for table in ("ready", "run", "waiting", "blocked")}

    there = [name for noun in NOUNS for name in blocks(noun)]

    assert len(there) == len(set(there))
    assert used == set(there)


def test_another_schema_is_named_everywhere() -> None:
    other = queries("other")

    for text in (*other.named.values(), *(migration.sql for migration in other.migrations)):
        code = re.sub(r"--.*", "", text)
        assert "holdfast." not in code
        assert "'holdfast'" not in code
