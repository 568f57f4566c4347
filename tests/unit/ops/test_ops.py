"""Units, rules, dashboard and compose file: what can be checked without an engine."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from oomrl.daemon.metrics import Metrics
from oomrl.daemon.service import wall_clock
from oomrl.settings import load

OPS = Path(__file__).resolve().parents[3] / "ops"
UNIT = OPS / "systemd" / "oomrl.service"
MOST_EXPOSURE = 3.0
_METRIC = re.compile(r"oomrl_[a-z_]+")


def alerts() -> list[dict[str, object]]:
    (group,) = yaml.safe_load((OPS / "prometheus" / "alerts.yml").read_text("utf-8"))["groups"]
    rules: list[dict[str, object]] = group["rules"]
    return rules


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    settings = load(None, {"accounts": {"main": {"tape": "none"}}})
    metrics = Metrics(tmp_path_factory.mktemp("state"), lambda: settings, wall_clock, lambda: True)
    metrics.seconds.labels("main", "judge").observe(1)
    metrics.ended.labels("main", "judge", "done").inc()
    metrics.clock.labels("jump").inc()
    with closing(metrics):
        return set(_METRIC.findall(metrics.text().decode()))


def test_every_metric_of_alerts_and_dashboard_exists(known: set[str]) -> None:
    named = {name for rule in alerts() for name in _METRIC.findall(str(rule["expr"]))}
    dashboard = json.loads((OPS / "grafana" / "oomrl.json").read_text("utf-8"))
    shown = {n for panel in dashboard["panels"] for t in panel["targets"] for n in _METRIC.findall(t["expr"])}
    assert named and shown
    assert named | shown <= known
    # What is measured is also shown, but for the parts of a histogram and creation times.
    assert {n for n in known if not n.endswith(("_created", "_sum", "_count", "_bucket"))} <= shown | {
        "oomrl_job_seconds",
        "oomrl_jobs_ended",
        "oomrl_clock_changes",
    }


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    names = {str(rule["alert"]) for rule in alerts()}
    assert {path.stem for path in (OPS / "runbooks").iterdir()} == names
    for rule in alerts():
        page = OPS.parent / str(rule["annotations"]["runbook"])  # type: ignore[index]
        text = page.read_text("utf-8")
        assert "What it means" in text and "What to do" in text


def test_the_unit_is_as_hardened_as_stated() -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed: the unit's score is not checked here")
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", f"--threshold={int(MOST_EXPOSURE * 10)}", UNIT],
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+) (\w+)", done.stdout)
    assert found is not None, done.stdout + done.stderr
    assert done.returncode == 0, found.group()
    stated = re.search(r"rates the unit \*\*([0-9.]+) OK\*\*", (OPS / "README.md").read_text("utf-8"))
    assert stated is not None
    # Each version of systemd knows a few more settings to count.
    assert abs(float(found[1]) - float(stated[1])) <= 0.3
    assert "Unknown" not in done.stderr


def test_compose_names_only_what_it_defines() -> None:
    compose = yaml.safe_load((OPS / "container" / "compose.yaml").read_text("utf-8"))
    services = compose["services"]
    assert set(services) == {"leader", "standby", "postgres", "dask-scheduler", "dask-worker", "prometheus", "grafana"}
    for service in services.values():
        for name in service.get("depends_on", []):
            assert name in services
        for mount in service.get("volumes", []):
            source = mount.split(":")[0]
            assert source in compose["volumes"] or (OPS / "container" / source).exists(), mount
        assert service["restart"] == "always"
    assert (OPS / "container" / services["leader"]["build"]["context"]).resolve() == OPS.parent
    text = (OPS / "container" / "compose.yaml").read_text("utf-8") + (OPS / "container" / "Containerfile").read_text()
    assert text.count("Untested here") == 2
    assert not re.search(r"(?i)password: *[a-z0-9]", text)


def test_the_containerfile_copies_what_is_there() -> None:
    text = (OPS / "container" / "Containerfile").read_text("utf-8")
    for name in ("requirements.lock", "strategy_repo/requirements.lock", "strategy_repo/requirements-test.lock"):
        assert name in text and (OPS.parent / name).is_file()
    assert "USER 10001" in text
