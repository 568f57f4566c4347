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


def test_no_label_is_one_that_prometheus_gives_itself(tmp_path: Path) -> None:
    """A `job` of ours would come out as `exported_job`, and what asks for it would find nothing."""
    metrics = Metrics(tmp_path, lambda: load(None, {"accounts": {"main": {"tape": "none"}}}), wall_clock, lambda: True)
    with closing(metrics):
        labels = {name for family in metrics.registry.collect() for name in getattr(family, "_labelnames", ())}
    assert {"account", "task", "state"} <= labels and not labels & {"job", "instance"}


#: What Prometheus has of a service: in peace (over a Christmas that begins with half a day on a Thursday), and where
#: everything is wrong, a value each minute.
TASK = 'oomrl_job_last_success_timestamp_seconds{job="oomrl", account="main", task='
SERIES = {
    'up{job="oomrl", instance="leader:9464"}': ("1x7000", "0x7000"),
    'oomrl_leads{job="oomrl", instance="leader:9464"}': ("1x7000", "0x10 1x6990"),
    'oomrl_leads{job="oomrl", instance="standby:9464"}': ("0x7000", "0x10 1x6990"),
    'oomrl_store_up{job="oomrl", account="main"}': ("1x7000", "0x7000"),
    'oomrl_queue_age_seconds{job="oomrl", account="main"}': ("60x7000", "6000x7000"),
    TASK + '"judge"}': ("0x7000", "0x7000"),
    TASK + '"backup"}': ("0x7000", "0x7000"),
    'oomrl_may_trade{job="oomrl", account="main"}': ("1x7000", "0x7000"),
    'oomrl_principal_loss_ratio{job="oomrl", account="main"}': ("0.05x7000", "0.11x7000"),
    'oomrl_waiting_seconds{job="oomrl", account="main"}': ("600x7000", "180000x7000"),
    'oomrl_clock_changes_total{job="oomrl", kind="jump"}': ("3x7000", "0x50 1x6950"),
    'oomrl_jobs_ended_total{job="oomrl", account="main", task="gate", state="failed"}': ("0+0.05x7000", "0+1x7000"),
}
#: When each alert has to fire where everything is wrong, and what it is told of beside its own labels.
FIRES: dict[str, tuple[str, dict[str, str]]] = {
    "OomrlDown": ("5m", {}),
    "OomrlNobodyLeads": ("5m", {}),
    "OomrlTwoLead": ("20m", {}),
    "OomrlStoreDown": ("5m", {}),
    "OomrlJobLate": ("10m", {"account": "main"}),
    "OomrlJudgeMissing": ("109h", {"account": "main"}),
    "OomrlBackupMissing": ("109h", {"account": "main"}),
    "OomrlHalted": ("5m", {"account": "main"}),
    "OomrlPrincipalLoss": ("5m", {"account": "main"}),
    "OomrlReviewWaits": ("20m", {"account": "main"}),
    "OomrlClockJumped": ("60m", {"job": "oomrl", "kind": "jump"}),
    "OomrlJobsFail": ("60m", {"account": "main", "task": "gate"}),
}


def test_each_alert_fires_for_what_it_is_about_and_not_in_peace(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian: prometheus): the alerts are not tried here")
    rules = {str(rule["alert"]): rule for rule in alerts()}
    assert set(FIRES) == set(rules)

    def fired(name: str) -> dict[str, object]:
        rule = rules[name]
        return {"exp_labels": {**rule["labels"], **FIRES[name][1]}, "exp_annotations": rule["annotations"]}  # type: ignore[dict-item]

    def case(which: int) -> dict[str, object]:
        asked = [
            {"alertname": name, "eval_time": at if which else "99h", "exp_alerts": [fired(name)] if which else []}
            for name, (at, _) in FIRES.items()
        ]
        series = [{"series": name, "values": values[which]} for name, values in SERIES.items()]
        return {"interval": "1m", "input_series": series, "alert_rule_test": asked}

    file = tmp_path / "alerts.test.yml"
    told = {"rule_files": [str(OPS / "prometheus" / "alerts.yml")], "evaluation_interval": "1m"}
    file.write_text(yaml.safe_dump({**told, "tests": [case(0), case(1)]}), "utf-8")
    for words in (["test", "rules", str(file)], ["check", "config", str(OPS / "prometheus" / "prometheus.yml")]):
        done = subprocess.run([promtool, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


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
