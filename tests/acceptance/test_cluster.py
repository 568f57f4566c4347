"""A whole run whose replays are made by a Dask cluster: the same verdicts, also when a worker dies in mid-gate."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import distributed

from oomrl.adapters.database import Store
from oomrl.cli.options import only_run
from tests import databases

from .conftest import ROOT
from .test_waiting import SPAN


def verdicts(state: Path) -> list[str]:
    with Store.open(databases.place(state)) as store, store.read() as view:
        run = only_run(store)
        return [verdict.digest for verdict in view.proposals.verdicts(run)]


def test_a_cluster_gives_the_same_verdicts_though_a_worker_dies_in_mid_gate(tmp_path: Path) -> None:
    demo = (ROOT / "docs" / "examples" / "demo.toml").read_text("utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def run(name: str, more: str) -> subprocess.Popen[str]:
        settings = tmp_path / f"{name}.toml"
        settings.write_text(f"{demo}\n{more}", "utf-8")
        asked = ["simulate", *SPAN, "--settings", str(settings), "--json", "--state", str(tmp_path / name)]
        command = [sys.executable, "-m", "oomrl", *asked]
        own = environment | databases.of_command(asked)
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=own)

    with distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=":0", processes=True) as cluster:
        far = run("far", f'[executor]\nkind = "dask"\nscheduler = "{cluster.scheduler_address}"\n')
        with distributed.Client(cluster.scheduler_address, set_as_default=False) as client, far:
            while not any(client.processing().values()) and far.poll() is None:
                pass
            busy = [address for address, tasks in client.processing().items() if tasks]
            pids = client.run(os.getpid, workers=busy[:1])
            for pid in pids.values():
                os.kill(pid, signal.SIGKILL)
            one = far.communicate()[0]
    with run("near", "") as near:
        two = near.communicate()[0]
    assert (far.returncode, near.returncode, len(pids)) == (0, 0, 1)
    results = [json.loads(text) for text in (one, two)]
    for result in results:
        del result["wall_seconds"], result["sessions_per_second"]
    assert results[0] == results[1] and results[0]["verdicts"]["pass"] >= 1
    assert verdicts(tmp_path / "far") == verdicts(tmp_path / "near") != []
