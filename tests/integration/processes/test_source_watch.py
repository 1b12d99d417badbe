"""`--reload` sees what changed in the sources, and only there."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.worker.reload import SourceWatch, watch_roots


def test_new_changed_and_removed_sources_are_seen_once(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    (tmp_path / "b.py").write_text("1")
    watch = SourceWatch(tmp_path)

    (tmp_path / "a.py").write_text("22")
    (tmp_path / "b.py").unlink()
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "c.py").write_text("1")

    assert [path.name for path in watch.changed()] == ["a.py", "b.py", "c.py"]
    assert watch.changed() == []


def test_other_files_and_foreign_folders_are_not_watched(tmp_path: Path) -> None:
    for folder in (".git", "__pycache__", "node_modules", "venv"):
        (tmp_path / folder).mkdir()
    (tmp_path / "venv" / "pyvenv.cfg").write_text("")
    watch = SourceWatch(tmp_path)

    for folder in (".git", "__pycache__", "node_modules", "venv"):
        (tmp_path / folder / "a.py").write_text("1")
    (tmp_path / "notes.txt").write_text("1")

    assert watch.changed() == []


def test_the_working_directory_is_watched_and_the_app_if_it_is_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    here = (tmp_path / "here").resolve()

    assert watch_roots(None) == (here,)
    assert watch_roots(here / "jobs" / "app.py") == (here,)
    assert watch_roots(tmp_path / "there" / "app.py") == (here, tmp_path / "there")
