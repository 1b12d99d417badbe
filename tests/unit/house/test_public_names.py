"""What `import holdfast` shows is what it promises: no more, no less."""

from __future__ import annotations

import ast
import types

import holdfast

from .pages import ROOT


def test_all_is_sorted_and_every_name_in_it_exists() -> None:
    names = list(holdfast.__all__)

    assert names == sorted(names, key=str.lower) or names == sorted(names)
    assert [name for name in names if not hasattr(holdfast, name)] == []


def test_nothing_public_is_missing_from_all() -> None:
    shown = {
        name
        for name, value in vars(holdfast).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }

    assert shown - {"annotations"} <= set(holdfast.__all__)


def test_the_front_door_holds_names_and_no_code() -> None:
    tree = ast.parse((ROOT / "src/holdfast/__init__.py").read_text())

    code = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]

    assert [name for name in code if name != "__getattr__"] == []


def test_every_public_name_is_in_the_reference() -> None:
    page = (ROOT / "docs/reference/api.md").read_text()

    unmentioned = [name for name in holdfast.__all__ if f"`{name}" not in page]

    assert unmentioned == []


def test_every_public_thing_has_a_docstring() -> None:
    bare = [
        name
        for name in holdfast.__all__
        if callable(getattr(holdfast, name)) and not (getattr(holdfast, name).__doc__ or "").strip()
    ]

    assert bare == []
