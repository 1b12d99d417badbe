"""The script behind `make run` and `make test`: what it installs, and when it does nothing."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from .pages import ROOT

PAGE = f"""
<a href="/p/pip-9.0.3-py2.py3-none-any.whl#sha256={"a" * 64}"></a>
<a href="/p/pip-24.0-py3-none-any.whl#sha256={"a" * 64}" data-requires-python="&gt;=3.7"></a>
<a href="/p/pip-24.10-py3-none-any.whl#sha256={"b" * 64}" data-requires-python="&gt;=3.9"></a>
<a href="/p/pip-25.0-py3-none-any.whl#sha256={"a" * 64}" data-yanked="broken"></a>
<a href="/p/pip-30.0-py3-none-any.whl#sha256={"a" * 64}" data-requires-python="&gt;=3.99"></a>
<a href="/p/pip-31.0-py3-none-any.whl"></a>
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, as if the clone were in `tmp_path`."""
    spec = importlib.util.spec_from_file_location("environment", ROOT / "scripts/environment.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(module, "PYTHON", tmp_path / ".venv/bin/python")
    monkeypatch.setattr(module, "REQUIREMENTS", tmp_path / "requirements-test.txt")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "requirements-test.txt").write_text("pytest\n")
    return module


def pretend_it_is_installed(script: ModuleType, purpose: str) -> None:
    script.PYTHON.parent.mkdir(parents=True)
    script.PYTHON.touch()
    script.stamp(purpose).write_text(script.fingerprint())


def test_nothing_is_done_when_nothing_changed(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_it_is_installed(script, "run")
    monkeypatch.setattr(script, "prepare", lambda purpose: pytest.fail("it installed again"))

    assert script.main(["run"]) == 0


def test_an_environment_for_tests_also_serves_a_run_but_not_the_reverse(
    script: ModuleType,
) -> None:
    pretend_it_is_installed(script, "test")

    assert script.is_current("run")

    script.stamp("test").rename(script.stamp("run"))

    assert not script.is_current("test")


@pytest.mark.parametrize("changed", ["pyproject.toml", "requirements-test.txt"])
def test_a_changed_dependency_file_makes_it_install_again(
    script: ModuleType, tmp_path: Path, changed: str
) -> None:
    pretend_it_is_installed(script, "test")

    (tmp_path / changed).write_text("# something else\n")

    assert not script.is_current("test")


def test_a_moved_clone_is_installed_anew(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = script.fingerprint()
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    (moved / "pyproject.toml").write_text("[project]\n")

    monkeypatch.setattr(script, "ROOT", moved)

    assert script.fingerprint() != before


def test_a_run_installs_no_test_tools(script: ModuleType) -> None:
    assert not any("requirements" in word for word in script.PURPOSES["run"])


def test_the_newest_pip_that_fits_is_taken_with_its_checksum(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror.example/simple/")
    monkeypatch.setattr(script, "download", lambda url: PAGE.encode())

    url, sha256 = script.newest_pip()

    assert url == "https://mirror.example/p/pip-24.10-py3-none-any.whl"
    assert sha256 == "b" * 64


def test_a_wheel_with_another_checksum_is_refused(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    script.VENV.mkdir()
    monkeypatch.setattr(script, "without_pip", lambda: None)
    monkeypatch.setattr(script, "newest_pip", lambda: ("https://x.example/pip.whl", "0" * 64))
    monkeypatch.setattr(script, "download", lambda url: b"not the wheel")

    with pytest.raises(script.Unable, match="checksum"):
        script.with_pip_from_index()


def test_when_no_way_works_one_sentence_says_what_to_type(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_way() -> None:
        raise script.Unable("not here")

    for way in ("with_ensurepip", "with_system_pip", "with_pip_from_index", "with_apt"):
        monkeypatch.setattr(script, way, no_way)

    code = script.main(["run"])

    assert code == 1
    assert "sudo apt-get install python3-venv" in capsys.readouterr().err
    assert not script.VENV.exists()


def test_a_second_setup_waits_for_the_first(script: ModuleType, tmp_path: Path) -> None:
    attempt = (
        "import fcntl, os, sys\n"
        "folder = os.open(sys.argv[1], os.O_RDONLY)\n"
        "fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
    )
    command = [sys.executable, "-c", attempt, str(tmp_path)]

    with script.locked(tmp_path):
        during = subprocess.run(command, capture_output=True, check=False).returncode
    after = subprocess.run(command, capture_output=True, check=False).returncode

    assert (during, after) == (1, 0)


def test_another_python_gets_an_environment_of_its_own() -> None:
    usual = {name: value for name, value in os.environ.items() if name != "PYTHON"}
    asked = usual | {"PYTHON": sys.executable}

    folders = [
        subprocess.check_output([ROOT / "scripts/setup", "where"], env=each, text=True).strip()
        for each in (usual, asked)
    ]

    assert folders == [".venv", f".venv-{sys.version_info.major}.{sys.version_info.minor}"]
