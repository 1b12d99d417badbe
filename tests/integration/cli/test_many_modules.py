"""Apps whose tasks are in other modules than the app: `include`, `autodiscover`, `@task` alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration.cli.conftest import Shell

APP = """
from holdfast import Holdfast
app = Holdfast({keywords})
{more}
"""
TASKS = """
from proj.queue import app

@app.task
def near(n: int) -> int:
    return n + 1

@app.task(executor="process")
def far(n: int) -> int:
    return n + 2
"""
FACE = """
import os
from holdfast import init, task

init(url=os.environ["HOLDFAST_URL"])

@task
def near(n: int) -> int:
    return n + 1

@task(executor="process")
def far(n: int) -> int:
    return n + 2
"""


@pytest.fixture
def project(fresh: Shell) -> Shell:
    """An app without tasks in `proj.queue`, and tasks of it in `orders.tasks`."""
    write(fresh, "proj/queue.py", APP.format(keywords="", more=""))
    write(fresh, "orders/__init__.py", "")
    write(fresh, "orders/__main__.py", "raise SystemExit('a program, not a module of tasks')")
    write(fresh, "orders/tasks.py", TASKS)
    return fresh


def write(shell: Shell, name: str, text: str) -> None:
    path = shell.folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def has_run(shell: Shell, app: str, *options: str) -> list[object]:
    """Submit a task that runs in the worker and one that runs in a process of its own, and work."""
    for name in ("near", "far"):
        shell.ok("submit", app, name, '{"n": 1}', *options)
    ran = shell.run("worker", app, "--burst", *options)
    assert ran.code == 0, ran.err
    tasks = shell.ok("task", "list")["tasks"]
    return sorted(shell.ok("task", "get", task["task_id"])["result"] for task in tasks)


@pytest.mark.parametrize(
    ("keywords", "more"),
    [
        ('include=["orders.tasks"]', ""),
        ("", 'app.autodiscover(["proj", "orders"], related_name="tasks")'),
    ],
)
def test_an_app_says_where_its_tasks_are(project: Shell, keywords: str, more: str) -> None:
    write(project, "proj/queue.py", APP.format(keywords=keywords, more=more))

    assert has_run(project, "proj.queue:app") == [2, 3]


def test_a_command_line_says_where_the_tasks_are(project: Shell) -> None:
    assert has_run(project, "proj.queue", "--include", "orders.tasks") == [2, 3]


def test_the_environment_says_where_the_tasks_are(project: Shell) -> None:
    ran = project.run("worker", "proj.queue", "--burst", HOLDFAST_INCLUDE="orders.tasks")

    assert (ran.code, "tasks=2" in ran.err) == (0, True)


def test_a_module_with_bare_tasks_is_the_default_app(fresh: Shell) -> None:
    write(fresh, "plain.py", FACE)

    assert has_run(fresh, "plain") == [2, 3]


def test_a_worker_that_knows_no_task_refuses_to_start(project: Shell) -> None:
    ran = project.run("worker", "proj.queue:app")

    assert ran.code == 2
    assert "this worker knows no task" in ran.err
    assert "Looked at: proj.queue:app." in ran.err
    for way in ('Holdfast(include=["orders.tasks"])', "--include", 'app.autodiscover("orders")'):
        assert way in ran.err
    assert not Path(project.url.removeprefix("sqlite:///")).exists()


def test_a_worker_says_what_was_included_in_vain(project: Shell) -> None:
    write(project, "orders/tasks.py", "")

    ran = project.run("worker", "proj.queue:app", "-I", "orders.tasks", "--json")

    assert ran.code == 2
    assert "Looked at: proj.queue:app, orders.tasks. What was included defined" in ran.err


@pytest.mark.parametrize("command", [["worker"], ["submit", "near"], ["server"]])
def test_a_missing_module_is_named_with_what_was_meant(project: Shell, command: list[str]) -> None:
    verb, *rest = command

    ran = project.run(verb, "proj.queue", *rest, "--include", "orders.tsks")

    assert ran.code == 2
    assert "--include: 'orders.tsks': there is no module 'orders.tsks' here." in ran.err
    assert "Did you mean 'orders.tasks'?" in ran.err


def test_a_broken_module_shows_where_it_is_broken(project: Shell) -> None:
    write(project, "orders/tasks.py", "import proj.queue\n1 / 0\n")
    write(project, "proj/queue.py", APP.format(keywords='include=["orders.tasks"]', more=""))

    ran = project.run("worker", "proj.queue:app")

    assert ran.code == 2
    assert 'orders/tasks.py", line 2' in ran.err
    assert "importing 'orders.tasks' failed with ZeroDivisionError" in ran.err


def test_a_script_may_find_its_tasks_too(project: Shell) -> None:
    write(
        project,
        "run.py",
        "import asyncio\n"
        "from proj.queue import app\n"
        "if __name__ == '__main__':\n"
        "    app.autodiscover('orders')\n"
        "    print(app.submit_by_name('orders.tasks.far', {'n': 1}).id)\n"
        "    asyncio.run(app.run_worker(burst=True))\n",
    )

    ran = project.cold(program="run.py")

    assert ran.code == 0, ran.err
    assert project.ok("task", "get", ran.out.strip())["result"] == 3


def test_a_workers_name_is_how_its_id_begins(project: Shell) -> None:
    ran = project.run(
        "worker", "proj.queue", "-I", "orders.tasks", "--burst", "--name", "till", "--drain", "1s"
    )

    assert "worker_id=till-" in ran.err
