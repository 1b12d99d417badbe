"""`holdfast executions`, `usage` and `budget`."""

from __future__ import annotations

from tests.integration.cli.conftest import Shell

from holdfast import AgentResult, AgentRun, Holdfast, Usage


def fired(shell: Shell) -> str:
    """A schedule of Ann's that has run once; the execution's id."""
    app = Holdfast(url=shell.url)

    @app.agent(name="answer")
    async def answer(run: AgentRun) -> AgentResult:
        run.progress("Reading your inbox")
        return AgentResult(content="All quiet.", usage=Usage(units=2, tokens_in=7, cost=0.25))

    with app:
        words = {"purpose": "Summarise my inbox"}
        app.schedules.create("answer", "every 1h", name="inbox", owner="ann", arguments=words)
        execution = app.schedules.trigger("inbox")
        app.wait_for(app.run_worker(burst=True))
    return execution


def test_executions_budgets_and_usage_are_shown(fresh: Shell) -> None:
    execution = fired(fresh)

    set_ = fresh.ok("budget", "set", "owner:ann", "--day", "runs=3", "--day", "cost=0.5",
                    "--month", "tokens=1000", "--tz", "Europe/Berlin")  # fmt: skip
    many = fresh.ok("executions", "--owner", "ann", "--status", "success")
    one = fresh.ok("executions", execution)
    used = fresh.ok("usage", "--owner", "ann", "--by", "schedule")

    assert [each["id"] for each in many["executions"]] == [execution]
    assert (one["content"], one["cost"], one["deliveries"]) == ("All quiet.", 0.25, [])
    assert (set_["day"]["runs"], set_["day"]["cost"], set_["month"]["tokens"]) == (3, 0.5, 1000)
    assert set_["day"]["used"]["runs"] == 1
    assert [each["key"] for each in used["rows"]] == ["inbox"]
    assert used["totals"]["cost"] == 0.25
    assert fresh.ok("budget", "list")["budgets"] == [fresh.ok("budget", "show", "owner:ann")]

    text = fresh.run("executions", execution).out
    assert "Summarise my inbox" in text
    assert text.endswith("\nAll quiet.\n")
    assert "1/3" in fresh.run("budget", "list").out
    assert "in all" in fresh.run("usage").out
    assert execution in fresh.run("executions").out


def test_what_is_not_there_or_makes_no_sense_is_refused(fresh: Shell) -> None:
    fresh.submit("send_mail", {"to": "ann"})  # makes the store

    for words in (("budget", "show", "owner:ann"), ("budget", "delete", "owner:ann")):
        assert fresh.run(*words).code == 1
    for wrong in (
        ("budget", "set", "ann", "--day", "runs=3"),
        ("budget", "set", "owner:ann", "--day", "runs=x"),
        ("budget", "set", "owner:ann", "--day", "runs"),
        ("usage", "--from", "yesterday"),
    ):
        assert fresh.run(*wrong).code == 2, wrong
    assert fresh.ok("budget", "list") == {"budgets": [], "next": None}
    assert "No schedule has run" in fresh.run("executions").out
