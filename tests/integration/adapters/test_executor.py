"""The same replays here, in local processes and on a Dask cluster, also when a worker dies with its work."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import dask
import distributed
import pytest

from guardrails.sandbox import Sandbox
from oomrl import bootstrap
from oomrl.adapters import environments, executor
from oomrl.adapters.counterfactual import Counterfactual
from oomrl.adapters.executor import Fan, fan_of
from oomrl.adapters.starts import start_tree
from oomrl.adapters.strategies import Workers
from oomrl.daemon.doctor import examine
from oomrl.domain.promotion import decide
from oomrl.errors import Mistake, StrategyFailure, Unavailable
from oomrl.settings import ExecutorSettings, load
from oomrl.testing.markets import CALM, made_up_tape


def dies_once(marker: str, number: int) -> int:
    """Kill the process that this runs in, the first time that it is asked for 2."""
    if number == 2:
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return number * number
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def always_dies(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.fixture(scope="module")
def cluster() -> Iterator[ExecutorSettings]:
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=":0", processes=True) as made,
    ):
        yield ExecutorSettings(kind="dask", scheduler=made.scheduler_address)


@pytest.fixture(params=["local", "dask"])
def fan(request: pytest.FixtureRequest) -> Iterator[Fan]:
    far = request.param == "dask"
    chosen = request.getfixturevalue("cluster") if far else ExecutorSettings(processes=2)
    made = fan_of(chosen)
    assert made is not None
    yield made
    made.close()


def test_a_worker_that_dies_costs_time_and_nothing_else(fan: Fan, tmp_path: Path) -> None:
    asked = [(str(tmp_path / "marker"), number) for number in range(6)]
    assert fan.map(dies_once, asked) == [0, 1, 4, 9, 16, 25]
    assert (tmp_path / "marker").exists()


def test_work_that_kills_every_worker_is_given_up(fan: Fan) -> None:
    with pytest.raises(Unavailable, match="died"):
        fan.map(always_dies, [(1,)])


def examined(folder: Path, asked: ExecutorSettings) -> tuple[str, str]:
    """Return what `oomrl doctor` finds of the executor."""
    settings = load(None, {"executor": asked.model_dump()})
    found = next(one for one in examine(folder, settings) if one.check == "executor")
    return found.state, found.found


def test_a_cluster_without_workers_is_named_before_and_while_work_waits(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with distributed.LocalCluster(1, dashboard_address=":0", processes=False) as made:
        asked = ExecutorSettings(kind="dask", scheduler=made.scheduler_address)
        before, after = fan_of(asked), fan_of(asked)
        assert before is not None and after is not None
        assert before.map(abs, [(-1,)]) == [1]
        assert examined(tmp_path, asked) == ("ok", f"Dask at {asked.scheduler} with 1 workers")
        monkeypatch.setattr(executor, "PATIENCE", 0.5)
        made.scale(0)
        with distributed.Client(made.scheduler_address, set_as_default=False) as client:
            while client.scheduler_info()["workers"]:
                pass
        assert examined(tmp_path, asked) == ("fault", f"Dask at {asked.scheduler} has no workers")
        for fan in (before, after):
            with pytest.raises(Unavailable):
                fan.map(abs, [(-1,)])


def test_candidate_and_incumbent_are_judged_the_same_everywhere(fan: Fan) -> None:
    tape = made_up_tape(5, 300, 4, CALM)
    workers = Workers(Sandbox.choose(), environments.find().worker, 1e6, 0)
    here = Counterfactual(tape, workers, bootstrap.terms_of(load(None)))
    there = Counterfactual(tape, workers, bootstrap.terms_of(load(None)), fan=fan)
    base, candidate = start_tree("phase1")[0], start_tree("shipped")[0]
    asked = (base, candidate, tape.days[280], tape.days[-1])
    assert repr(decide(there.windows(*asked), 1)) == repr(decide(here.windows(*asked), 1))
    assert here.replayed(candidate, tape.days[253], tape.days[-1]).result.equity.tolist()


def test_one_process_needs_no_fan_and_a_cluster_needs_an_address() -> None:
    assert fan_of(ExecutorSettings()) is None
    with pytest.raises(Mistake, match="executor"):
        fan_of(ExecutorSettings(kind="dask"))


def test_a_failure_crosses_processes_whole() -> None:
    import pickle

    failure = pickle.loads(pickle.dumps(StrategyFailure("raised", "no bars", "Traceback")))  # noqa: S301
    assert (failure.kind, failure.message, failure.traceback) == ("raised", "no bars", "Traceback")
