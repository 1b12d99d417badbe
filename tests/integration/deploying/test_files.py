"""The files in deploy/ say what they must: grace longer than the drain, probes where something
listens, users that are nobody, settings and options that exist.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from holdfast.cli.main import app as cli
from holdfast.core.duration import parse_duration
from holdfast.server.running import GRACE
from holdfast.settings import PREFIX, Settings

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
COMMAND = typer.main.get_command(cli)
"""Options of `holdfast worker` that are written at the same time as these files."""
SETTINGS = {f"{PREFIX}{each.name.upper()}" for each in fields(Settings)}
STOP_GRACE = Settings().stop_grace


def drain(environment: Mapping[str, str]) -> float:
    return parse_duration(environment["HOLDFAST_DRAIN"])


def assert_is_a_command(words: Sequence[str]) -> None:
    """That `holdfast` has this command, and the command these options."""
    commands: Mapping[str, Any] = COMMAND.commands  # type: ignore[attr-defined]  # a click group
    name, *rest = words
    assert name in commands
    known = {option for each in commands[name].params for option in each.opts}
    assert [word for word in rest if word.startswith("-") and word not in known] == []


def documents(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text()))


def every_manifest() -> Iterator[tuple[str, Any]]:
    for path in MANIFESTS:
        for document in documents(path):
            yield f"{path.name}-{document['kind']}-{document['metadata']['name']}", document


EVERY = dict(every_manifest())
POD_OWNERS = {name: each for name, each in EVERY.items() if each["kind"] in ("Deployment", "Job")}
DEPLOYMENTS = {name: each for name, each in POD_OWNERS.items() if each["kind"] == "Deployment"}


def container(owner: Any) -> Any:
    (only,) = owner["spec"]["template"]["spec"]["containers"]
    return only


# -- systemd -----------------------------------------------------------------------------------


def unit(path: Path) -> dict[str, list[str]]:
    """Its settings, whatever their section."""
    pairs = re.findall(r"^(\w+)=(.*)$", path.read_text(), re.MULTILINE)
    return {key: [value for name, value in pairs if name == key] for key, _ in pairs}


def environment_file() -> dict[str, str]:
    lines = (DEPLOY / "systemd/holdfast.env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_has_nothing_to_say_about_a_unit(path: Path, tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("no systemd-analyze here: install the Debian package systemd")
    text = path.read_text().replace("/srv/app/.venv/bin/holdfast", sys.executable)
    copy = tmp_path / path.name.replace("@", "@mail")
    copy.write_text(text)

    done = subprocess.run(
        [program, "verify", "--man=no", str(copy)], capture_output=True, text=True, check=False
    )

    ours = [line for line in (done.stdout + done.stderr).splitlines() if "holdfast" in line]
    assert ours == []
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_is_shut_off_from_what_it_does_not_need(path: Path, tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("no systemd-analyze here: install the Debian package systemd")
    copy = tmp_path / path.name.replace("@", "@mail")
    copy.write_text(path.read_text().replace("/srv/app/.venv/bin/holdfast", sys.executable))

    done = subprocess.run(
        [program, "security", "--offline=true", "--threshold=30", "--no-pager", str(copy)],
        capture_output=True,
        text=True,
        check=False,
    )
    if "Unknown option" in done.stderr or "unrecognized" in done.stderr:
        pytest.skip("this systemd-analyze cannot judge units that are not installed")

    assert done.returncode == 0, done.stdout[-300:] + done.stderr


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_waits_longer_than_the_drain_and_asks_only_the_main_process(path: Path) -> None:
    found, environment = unit(path), environment_file()
    needed = drain(environment) + STOP_GRACE if "worker" in path.name else GRACE

    assert parse_duration(f"{found['TimeoutStopSec'][0]}s") > needed
    assert found["KillMode"] == ["mixed"]
    assert found["Restart"] == ["on-failure"]  # a drained worker stays away
    assert found["User"] not in ([], ["root"])


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_starts_a_command_that_exists_with_settings_that_exist(path: Path) -> None:
    found, environment = unit(path), environment_file()

    program, *words = shlex.split(found["ExecStart"][0])

    assert program.endswith("/holdfast")
    assert_is_a_command(words)
    assert {name for name in environment if name.startswith(PREFIX)} <= SETTINGS
    assert "APP" in environment
    assert "${APP}" in words
    folder = environment["HOLDFAST_URL"].removeprefix("sqlite:///").rpartition("/")[0]
    assert folder == f"/var/lib/{found['StateDirectory'][0]}"


# -- containers --------------------------------------------------------------------------------


def containerfile() -> list[tuple[str, str]]:
    """Its instructions, lines joined."""
    text = re.sub(r"\\\n\s*", "", (DEPLOY / "Containerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def test_the_image_is_slim_runs_as_nobody_in_particular_and_stops_as_it_should() -> None:
    steps = containerfile()
    last = [at for at, (word, _) in enumerate(steps) if word == "FROM"][-1]
    final: dict[str, str] = dict(steps[last:])

    assert final["FROM"].endswith("-slim")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", final["USER"])  # not root, and Kubernetes can tell
    assert final["STOPSIGNAL"] == "SIGTERM"
    assert yaml.safe_load(final["ENTRYPOINT"]) == ["holdfast"]
    assert_is_a_command(yaml.safe_load(final["CMD"]))
    set_here = dict(re.findall(r"(HOLDFAST_\w+)=(\S+)", final["ENV"]))
    assert set(set_here) <= SETTINGS
    assert drain(set_here) == Settings().drain


def test_what_the_image_is_made_of_is_there() -> None:
    copied = [rest.split() for word, rest in containerfile() if word == "COPY"]
    ours = [word for words in copied if not words[0].startswith("--") for word in words[:-1]]

    assert [word for word in ours if not (DEPLOY.parent / word).exists()] == []
    assert "deploy/shop.py" in ours


def test_the_health_check_of_the_image_asks_the_port_that_its_server_has() -> None:
    steps = dict(containerfile())
    port = yaml.safe_load(steps["CMD"])[-1]

    check = yaml.safe_load(steps["HEALTHCHECK"].partition("CMD ")[2])

    assert f":{port}/healthz" in check[2]
    assert port in steps["EXPOSE"].split()
    compile(check[2], "HEALTHCHECK", "exec")


def test_compose_gives_workers_longer_than_the_drain_and_nobody_more_rights_than_needed() -> None:
    (whole,) = documents(DEPLOY / "compose.yaml")
    services = whole["services"]

    for name in ("server", "worker"):
        one = services[name]
        assert_is_a_command(one["command"])
        assert set(one["environment"]) <= SETTINGS
        needed = drain(one["environment"]) + STOP_GRACE if name == "worker" else GRACE
        assert parse_duration(one["stop_grace_period"]) > needed
        assert (one["cap_drop"], one["read_only"]) == (["ALL"], True)
        assert one["build"]["dockerfile"] == "deploy/Containerfile"
    assert services["server"]["ports"] == ["127.0.0.1:8420:8420"]
    assert_is_a_command(shlex.split(services["worker"]["healthcheck"]["test"][1])[1:])
    named = set(services["worker"]["depends_on"])
    url = services["worker"]["environment"]["HOLDFAST_URL"]
    redis = services["worker"]["environment"]["HOLDFAST_REDIS_URL"]
    assert named == {re.findall(r"(?:@|//)(\w+):\d", each)[0] for each in (url, redis)}
    assert named <= set(services)
    Settings.load(url=url.replace("${POSTGRES_PASSWORD:?set it}", "x"), redis_url=redis)


# -- Kubernetes --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_a_manifest_fits_the_schema_of_kubernetes(name: str) -> None:
    validate = pytest.importorskip(
        "kubernetes_validate", reason="pip install kubernetes-validate brings the schemas"
    )
    if EVERY[name]["kind"] == "ScaledObject":
        pytest.skip("KEDA's own kind; its structure is tested below")

    validate.validate(EVERY[name], validate.latest_version(), strict=True)


@pytest.mark.parametrize("name", POD_OWNERS)
def test_a_pod_is_nobody_in_particular_and_may_do_nothing_else(name: str) -> None:
    pod, only = POD_OWNERS[name]["spec"]["template"]["spec"], container(POD_OWNERS[name])
    user = int(dict(containerfile())["USER"].partition(":")[0])

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == user
    assert pod["automountServiceAccountToken"] is False
    assert only["securityContext"]["allowPrivilegeEscalation"] is False
    assert only["securityContext"]["readOnlyRootFilesystem"] is True
    assert only["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert "memory" in only["resources"]["limits"]


@pytest.mark.parametrize("name", POD_OWNERS)
def test_a_pod_runs_a_command_that_exists_with_settings_that_exist(name: str) -> None:
    only = container(POD_OWNERS[name])
    kinds = {"configMapRef": "ConfigMap", "secretRef": "Secret"}
    sources = {
        (each["kind"], each["metadata"]["name"]): each.get("data") or each.get("stringData")
        for each in documents(DEPLOY / "kubernetes/settings.yaml")
    }

    assert_is_a_command(only["args"])
    for source in only["envFrom"]:
        ((kind, said),) = source.items()
        assert set(sources[kinds[kind], said["name"]]) <= SETTINGS


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_a_pod_has_longer_than_its_drain_before_it_is_killed(name: str) -> None:
    deployment = DEPLOYMENTS[name]
    pod, only = deployment["spec"]["template"]["spec"], container(deployment)
    (settings, _) = documents(DEPLOY / "kubernetes/settings.yaml")
    before = float(only["lifecycle"]["preStop"]["exec"]["command"][1])
    is_worker = only["args"][0] == "worker"

    needed = before + (drain(settings["data"]) + STOP_GRACE if is_worker else GRACE)

    assert pod["terminationGracePeriodSeconds"] > needed


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_probes_ask_ports_that_the_command_opens(name: str) -> None:
    only = container(DEPLOYMENTS[name])
    ports = {each["name"]: each["containerPort"] for each in only["ports"]}
    option = "--metrics-port" if only["args"][0] == "worker" else "--port"
    opened = int(only["args"][only["args"].index(option) + 1])
    probes = {kind: only[kind] for kind in only if kind.endswith("Probe")}
    asked = {kind: each["httpGet"] for kind, each in probes.items() if "httpGet" in each}

    assert "livenessProbe" in asked
    assert {ports[each["port"]] for each in asked.values()} == {opened}
    assert asked["livenessProbe"]["path"] == "/healthz"  # never one that asks the store
    assert len(probes) == 2
    for each in probes.values():
        if "exec" in each:
            *shell, line = each["exec"]["command"]
            assert shell == ["sh", "-c"]
            assert_is_a_command(shlex.split(line)[1:])
    notes = DEPLOYMENTS[name]["spec"]["template"]["metadata"]["annotations"]
    assert notes["prometheus.io/port"] == str(opened)


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_every_selector_finds_the_pods_and_every_deployment_has_a_budget(name: str) -> None:
    labels = DEPLOYMENTS[name]["spec"]["template"]["metadata"]["labels"]
    budgets = [each for each in EVERY.values() if each["kind"] == "PodDisruptionBudget"]
    policies = [each for each in EVERY.values() if each["kind"] == "NetworkPolicy"]

    assert DEPLOYMENTS[name]["spec"]["selector"]["matchLabels"] == labels
    for each, selector in ((budgets, "selector"), (policies, "podSelector")):
        found = [one for one in each if one["spec"][selector]["matchLabels"] == labels]
        assert len(found) == 1


def test_workers_are_scaled_by_how_long_tasks_wait() -> None:
    (scaled,) = documents(DEPLOY / "kubernetes/autoscale.yaml")
    (trigger,) = scaled["spec"]["triggers"]
    names = {each["metadata"]["name"]: container(each)["args"] for each in DEPLOYMENTS.values()}

    args = names[scaled["spec"]["scaleTargetRef"]["name"]]
    served = {args[at + 1] for at, word in enumerate(args) if word == "-q"}

    assert trigger["type"] == "prometheus"
    assert "holdfast_queue_age_seconds" in trigger["metadata"]["query"]
    (queues,) = re.findall(r'queue=~"([^"]+)"', trigger["metadata"]["query"])
    assert set(queues.split("|")) == served
    assert 0 < scaled["spec"]["minReplicaCount"] < scaled["spec"]["maxReplicaCount"]


# -- and it works ------------------------------------------------------------------------------


def test_the_app_runs_what_it_is_given(tmp_path: Path) -> None:
    kept = {name: each for name, each in os.environ.items() if not name.startswith(PREFIX)}
    environment = kept | {
        **{name: each for name, each in environment_file().items() if name.startswith(PREFIX)},
        "HOLDFAST_URL": f"sqlite:///{tmp_path / 'shop.db'}",
    }

    def holdfast(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", *words],
            cwd=DEPLOY, env=environment, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    holdfast("submit", "shop:app", "send_mail", '{"to": "ann"}')
    holdfast("worker", "shop:app", "-q", "mail", "--name", "host-mail", "--burst")

    assert '"completed":1' in holdfast("stats", "--json")
