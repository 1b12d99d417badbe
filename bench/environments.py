"""A Python environment for each peer, made once and kept: their requirements exclude each other.

They live in `.bench/` beside the code, or in `BENCH_HOME`. `peers/requirements/NAME.txt` pins every
package; an environment is made anew when that file changes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "bench" / "peers" / "requirements"


class Unavailable(Exception):
    """This part cannot be measured here; the message says why, and the rest goes on."""


def home() -> Path:
    """Where environments and servers' files are kept."""
    return Path(os.environ.get("BENCH_HOME", ROOT / ".bench"))


def environment(name: str) -> Path:
    """The folder with the commands of that environment, `python` among them.

    A name without requirements is Holdfast's own, in whose environment we are.
    """
    if not (REQUIREMENTS / f"{name}.txt").exists():
        return Path(sys.executable).parent
    folder = home() / "environments" / name
    stamp, wanted = folder / "installed.txt", _wanted(name)
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"installing {name} into {folder}", file=sys.stderr, flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        _install(folder, REQUIREMENTS / f"{name}.txt")
        stamp.write_text(wanted)
    return folder / "bin"


def _wanted(name: str) -> str:
    return f"# {sys.version}\n{(REQUIREMENTS / f'{name}.txt').read_text()}"


def _install(folder: Path, requirements: Path) -> None:
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    python = str(folder / "bin" / "python")
    if uv:
        _run([uv, "venv", "--quiet", "--python", sys.executable, str(folder)])
        _run([uv, "pip", "install", "--quiet", "--python", python, "-r", str(requirements)])
    else:
        _run([sys.executable, "-m", "venv", "--without-pip", str(folder)])
        pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
        _run([*pip, "install", "--quiet", "-r", str(requirements)])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise Unavailable(f"could not be installed: {last}")
