"""`holdfast emit`."""

from __future__ import annotations

from tests.integration.cli.conftest import Shell


def test_emit_says_whether_it_is_the_first_and_who_waited(fresh: Shell) -> None:
    fresh.submit("send_mail", {"to": "ann"})  # makes the store

    first = fresh.ok("emit", "approved", "17", "--payload", '{"by": "ada"}')
    again = fresh.ok("emit", "approved", "17")
    text = fresh.run("emit", "approved", "17").out

    assert first == {"event": "approved", "key": "17", "first": True, "woken": 0}
    assert again["first"] is False
    assert text == "approved 17 was emitted before; the first one counts.\n"


def test_a_payload_that_is_no_json_is_shown_where_it_goes_wrong(fresh: Shell) -> None:
    fresh.submit("send_mail", {"to": "ann"})

    ran = fresh.run("emit", "approved", "17", "--payload", "{by: ada}")

    assert ran.code == 2
    assert "the payload is no JSON" in ran.err
