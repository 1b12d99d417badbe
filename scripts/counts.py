"""How large Holdfast is: methods of the store's port, lines of source, stores, testing kit, tests.

    python scripts/counts.py

All lines count: blank ones, comments and SQL too.
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "holdfast"
ENDINGS = {".py", ".sql", ".lua"}


def port_methods() -> list[str]:
    """What a store must have, by name: the methods of every protocol that `Store` is made of."""
    classes = {
        node.name: node
        for path in sorted((SOURCE / "ports").glob("*.py"))
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef)
    }
    kinds = [base.id for base in classes["Store"].bases if isinstance(base, ast.Name)]
    return sorted(
        method.name
        for name in ("Store", *(kind for kind in kinds if kind in classes))
        for method in classes[name].body
        if isinstance(method, ast.AsyncFunctionDef | ast.FunctionDef)
        and not method.name.startswith("__")
    )


def lines(folder: Path) -> int:
    return sum(
        len(path.read_text(encoding="utf-8").splitlines())
        for path in folder.rglob("*")
        if path.suffix in ENDINGS
    )


def main() -> None:
    whole, kit = lines(SOURCE), lines(SOURCE / "testing")
    print(f"methods of the store's port   {len(port_methods()):>7}")
    print(f"source without testing kit    {whole - kit:>7,}")
    for folder in sorted(path for path in SOURCE.iterdir() if path.is_dir()):
        if folder.name not in ("testing", "__pycache__"):
            print(f"  {folder.name + '/':<28}{lines(folder):>7,}")
    for store in sorted((SOURCE / "stores").iterdir()):
        if store.is_dir() and store.name != "__pycache__":
            print(f"    {store.name + '/':<26}{lines(store):>7,}")
    print(f"testing kit                   {kit:>7,}")
    print(f"tests                         {lines(ROOT / 'tests'):>7,}")
    print(f"bench, scripts, examples      {sum(map(lines, map(ROOT.joinpath, OTHERS))):>7,}")


OTHERS = ("bench", "scripts", "examples")

if __name__ == "__main__":
    main()
