"""Wrong usage: one clear sentence with the fix, exit code 2, no traceback, nothing on stdout."""

from __future__ import annotations

import pytest
from tests.integration.cli.conftest import Shell, World

WRONG = {
    "a mistyped command": (["tsak"], "Did you mean 'task'?"),
    "a mistyped subcommand": (["task", "lsit"], "Did you mean 'list'?"),
    "an unknown option": (["stats", "--jsn"], "--jsn"),
    "a missing argument": (["task", "why"], "ID"),
    "neither id nor key": (["task", "get"], "Give its ID, or --key, and not both"),
    "both id and key": (["task", "get", "0197f3c2", "--key", "k"], "and not both"),
    "a short id": (["task", "get", "0197f3c"], "or its first 8 and more"),
    "cancel what": (["task", "cancel"], "which tasks? Give ids, a filter such as --name."),
    "cancel both": (["task", "cancel", "0197f3c2", "-n", "x"], "either ids, or a filter"),
    "a bad id": (["task", "get", "42"], "'42' is no task id. Expected 36 characters"),
    "a bad state": (["task", "list", "--state", "quued"], "Did you mean 'queued'?"),
    "a bad priority": (["task", "list", "--priority", "hihg"], "Did you mean 'high'?"),
    "a bad duration": (["task", "list", "--older", "1fortnight"], 'such as 30, "30s", "10m"'),
    "a bad pace": (["dead", "replay", "--all", "--pace", "fast"], "10/s, 600/m or 100/h"),
    "a bad limit": (["task", "list", "--limit", "0"], "--limit"),
    "a bad url": (["stats", "--url", "sqlight:///x.db"], "Did you mean sqlite://?"),
    "a bad delay": (["submit", "shop:app", "send_mail", "--delay", "soon"], "delay: expected"),
    "no such module": (["submit", "shpo:app", "send_mail"], "there is no module 'shpo'"),
    "no such app": (["submit", "shop:ap", "send_mail"], "Did you mean 'shop:app'?"),
    "a bad lease": (["worker", "shop:app", "--lease", "long"], "lease: expected a duration"),
    "a worker without an app": (["worker", "shop:ap"], "Did you mean 'shop:app'?"),
    "arguments that are no JSON": (
        ["submit", "shop:app", "send_mail", '{"to": ann}'],
        'column 8).\n  {"to": ann}\n         ^',
    ),
    "arguments that are a list": (
        ["submit", "shop:app", "send_mail", '["ann"]'],
        "must be a JSON object by parameter name, got a list",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_usage_is_exit_code_2_with_the_fix(case: str, world: World) -> None:
    arguments, sentence = WRONG[case]

    ran = world.shell.run(*arguments)

    assert ran.code == 2, ran
    assert sentence in ran.err
    assert "Traceback" not in ran.err
    assert ran.out == ""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["tsak"], "usage"),
        (["task", "get", "42"], "invalid_option"),
        (["stats", "--url", "nonsense"], "config_error"),
        (["submit", "shop:app", "send_mail", "{"], "invalid_json"),
    ],
)
def test_with_json_the_error_is_json_with_a_code(
    arguments: list[str], code: str, world: World
) -> None:
    ran = world.shell.run(*arguments, "--json")

    assert (ran.code, ran.out) == (2, "")
    assert ran.error["code"] == code


def test_an_unknown_task_name_is_refused_with_the_nearest(world: World) -> None:
    ran = world.shell.run("submit", "shop:app", "send_mial", '{"to": "ann"}')

    assert ran.code == 1
    assert "Did you mean 'shop.send_mail'?" in ran.err


def test_arguments_that_do_not_fit_are_refused_with_their_place(world: World) -> None:
    ran = world.shell.run("submit", "shop:app", "send_mail", '{"to": 1, "copy": 2}', "--json")

    assert (ran.code, ran.out) == (1, "")
    assert ran.error["code"] == "invalid_arguments"
    assert {problem["place"] for problem in ran.error["problems"]} == {"to", "copy"}


def test_a_bad_setting_in_the_environment_is_named(world: World) -> None:
    ran = world.shell.run("stats", HOLDFAST_LEESE="5s")

    assert ran.code == 2
    assert "HOLDFAST_LEESE: no such setting. Did you mean 'lease'?" in ran.err


def test_no_command_at_all_shows_the_help(shell: Shell) -> None:
    ran = shell.run()

    assert ran.code == 2
    assert "Usage: holdfast" in ran.out + ran.err


def test_the_help_is_grouped_and_has_examples(shell: Shell) -> None:
    ran = shell.run("--help")

    assert ran.code == 0
    for words in ("Run tasks", "Look and act", "Keep it well", "Examples", "Exit codes"):
        assert words in ran.out


@pytest.mark.parametrize("command", ["worker", "submit", "demo", "bench", "doctor", "migrate"])
def test_every_command_explains_itself_and_offers_json(command: str, shell: Shell) -> None:
    ran = shell.run(command, "--help")

    assert ran.code == 0
    assert "--json" in ran.out


def test_the_version_is_there_as_an_option_too(shell: Shell) -> None:
    option, command = shell.run("--version"), shell.run("version")

    assert (option.code, option.out) == (0, command.out)
    assert option.out.strip()[0].isdigit()
