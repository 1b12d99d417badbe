"""The OpenAPI page is true: schemathesis asks the live server everything the page allows, and much
that it does not.

`HOLDFAST_TEST_SCHEMATHESIS=200` is the full dose: so many examples for each operation, and the
thousands of requests that try each bound of each parameter. Those are the same at every run, take
most of the time, and have beside them what `test_hostile_bodies` and its neighbours try. So are the
examples of the page, which have a test of their own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.server.live import LiveServer
from tests.integration.server.narrowed import narrowed

from holdfast.server import brake
from holdfast.server.access import TABLE

DOSE = int(os.environ.get("HOLDFAST_TEST_SCHEMATHESIS", "4"))


def test_the_page_names_every_route_and_its_scope(live_server: LiveServer) -> None:
    page = live_server.client("read").get("/openapi.json").json()

    described = {
        (method.upper(), path) for path, methods in page["paths"].items() for method in methods
    }
    assert described == {
        (method, path.replace(":path}", "}"))
        for path, methods in TABLE.items()
        for method in methods
        if path != "/openapi.json"
    }
    submit = page["paths"]["/api/v1/tasks"]["post"]
    assert "Scope: `submit`." in submit["description"]
    assert page["paths"]["/healthz"]["get"]["security"] == []


def test_the_page_names_the_apps_tasks_with_their_parameters(live_server: LiveServer) -> None:
    schemas = live_server.admin.get("/openapi.json").json()["components"]["schemas"]

    mail = schemas["Submit.shop.mail"]["properties"]
    assert mail["task_type"]["const"] == "shop.mail"
    assert mail["parameters"]["properties"]["copies"]["maximum"] == 10
    assert mail["parameters"]["additionalProperties"] is False
    assert schemas["Submit.open"]["properties"]["queue"]["enum"] == ["js"]


def test_the_examples_of_the_page_work(live_server: LiveServer) -> None:
    page = live_server.admin.get("/openapi.json").json()
    content = page["paths"]["/api/v1/tasks"]["post"]["requestBody"]["content"]

    examples = content["application/json"]["examples"]
    answers = {
        name: live_server.admin.post("/api/v1/tasks", json=example["value"]).status_code
        for name, example in examples.items()
    }

    assert len(answers) >= 4
    assert set(answers.values()) == {201}


@pytest.mark.timeout(3600)
def test_schemathesis_finds_nothing(
    live_server: LiveServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brake, "MOST_FAILURES", 1_000_000)  # it tries bad tokens everywhere
    page = live_server.admin.get("/openapi.json").json()
    schemas = page["components"]["schemas"]
    del schemas["Child.shop.mail"]["properties"]["children"]
    schemas["Child"] = schemas["Child.shop.mail"]  # to make up trees of all tasks takes minutes
    (tmp_path / "page.json").write_text(json.dumps(narrowed(page)))
    live_server.hurry()
    command = [
        sys.executable, "-m", "schemathesis.cli", "run", "page.json", "--url", live_server.url,
        "--header", f"Authorization: Bearer {live_server.token('admin')}",
        "--checks", "all",
        "--max-examples", str(DOSE),
        "--phases", "fuzzing,stateful" + (",examples,coverage" if DOSE >= 200 else ""),
        "--no-color",
    ]  # fmt: skip

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    said = "\n".join(line[:500] for line in (done.stdout + done.stderr).splitlines())
    assert done.returncode == 0, said[-8000:]
