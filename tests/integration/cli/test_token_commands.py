"""`holdfast token …`."""

from __future__ import annotations

import re

from tests.integration.cli.conftest import Shell


def test_a_token_is_shown_once_and_kept_as_a_hash(fresh: Shell) -> None:
    made = fresh.run("token", "create", "--scope", "submit", "--expires", "90d", "--name", "ci")
    listed = fresh.ok("token", "list")["tokens"]

    text = made.out.strip()
    assert re.fullmatch(r"hf_[0-9a-f]{16}_[\w-]{43}", text)
    assert (listed[0]["name"], listed[0]["scopes"]) == ("ci", ["submit"])
    assert listed[0]["expires_at"] > listed[0]["created_at"]
    secret = text[len("hf_") + 16 + 1 :]
    for file in fresh.folder.iterdir():
        assert secret.encode() not in file.read_bytes()


def test_a_token_can_have_several_scopes(fresh: Shell) -> None:
    made = fresh.ok("token", "create", "-s", "read", "-s", "submit")

    assert made["scopes"] == ["read", "submit"]
    assert made["token"].startswith(f"hf_{made['token_id']}_")
    assert made["expires_at"] is None


def test_a_revoked_token_is_listed_only_when_asked_for(fresh: Shell) -> None:
    made = fresh.ok("token", "create", "--scope", "admin")

    done = fresh.run("token", "revoke", made["token"])
    again = fresh.run("token", "revoke", made["token_id"])

    assert (done.code, done.out) == (0, f"{made['token_id']} is revoked.\n")
    assert made["token"] not in done.out
    assert again.code == 1
    assert fresh.ok("token", "list")["tokens"] == []
    assert fresh.ok("token", "list", "--all")["tokens"][0]["revoked_at"]
    assert "revoked" in fresh.run("token", "list", "--all").out


def test_a_callback_secret_is_shown_of_a_token_that_is_there(fresh: Shell) -> None:
    made = fresh.ok("token", "create", "--scope", "submit")

    unknown = fresh.run("token", "callback-secret", "0123456789abcdef")
    unset = fresh.run("token", "callback-secret", made["token"])

    assert made["callback_secret"] is None
    assert (unknown.code, "there is no token" in unknown.err) == (1, True)
    assert (unset.code, "set `callback_secret`" in unset.err) == (1, True)


def test_wrong_usage_says_what_was_expected(fresh: Shell) -> None:
    typo = fresh.run("token", "create", "--scope", "amdin")
    none = fresh.run("token", "create")
    soon = fresh.run("token", "create", "--scope", "read", "--expires", "soon")

    assert (typo.code, none.code, soon.code) == (2, 2, 2)
    assert "Did you mean 'admin'?" in typo.err
    assert "--scope" in none.err
    assert "expires: expected a duration" in soon.err


def test_secret_arguments_are_stars_on_the_screen_and_in_json(fresh: Shell) -> None:
    task_id = fresh.submit("sign_in", {"user": "ann", "password": "hunter2", "pin": 4711})

    data = fresh.ok("task", "get", task_id)
    text = fresh.run("task", "get", task_id).out

    assert data["parameters"] == {"user": "ann", "password": "**********", "pin": "**********"}
    assert "hunter2" not in text
    assert "4711" not in text.replace(task_id, "")
    fresh.work()
    assert fresh.ok("task", "get", task_id)["result"] == 7
