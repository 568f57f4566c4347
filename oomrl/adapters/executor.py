"""Fan work out through `concurrent.futures.Executor`: here, in local processes, or on a Dask cluster, by setting.

What is fanned out are pure functions of their arguments, so a worker that dies costs time and changes no result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, TypeVar

from oomrl.errors import Mistake, Unavailable
from oomrl.settings import ExecutorSettings

Found = TypeVar("Found")

#: How often work is given out again after a worker died with it.
TRIES = 3
#: Seconds after which a result that does not come raises the question whether anybody is there to give it.
PATIENCE = 30.0


class _Unmanned(Exception):  # noqa: N818 - never seen outside
    """Work waits, and no worker is left to do it."""


class Fan:
    """Run a function over many arguments beside one another, and give lost work out again.

    The executor is made when it is first needed, and made anew when it broke.
    """

    def __init__(
        self,
        make: Callable[[], Executor],
        lost: tuple[type[BaseException], ...],
        end: Callable[[Executor], None] = lambda executor: executor.shutdown(wait=False, cancel_futures=True),
        manned: Callable[[], bool] = lambda: True,
    ) -> None:
        self._make, self._lost, self._end, self._manned = make, lost, end, manned
        self._executor: Executor | None = None

    def map(self, function: Callable[..., Found], asked: Sequence[tuple[Any, ...]]) -> list[Found]:
        """Return the function's result for each tuple of arguments, in their order.

        Raises what the function raises, and `Unavailable` where workers died with the same work again and again.
        """
        found: dict[int, Found] = {}
        for _ in range(TRIES):
            if self._executor is None:
                self._executor = self._make()
            waiting = {n: self._executor.submit(function, *asked[n]) for n in range(len(asked)) if n not in found}
            broken = False
            for n, future in waiting.items():
                try:
                    found[n] = self._result(future)
                except (*self._lost, _Unmanned):
                    broken = True
            if not broken:
                return [found[n] for n in range(len(asked))]
            self.close()
        raise Unavailable(f"Expected workers that live, was {TRIES} times one that died: see their logs and memory.")

    def _result(self, future: Future[Found]) -> Found:
        """Wait for a result as long as there is somebody to give it; raise `_Unmanned` where there is not."""
        while True:
            try:
                return future.result(PATIENCE)
            except TimeoutError:
                if future.done():
                    return future.result()
                if not self._manned():
                    raise _Unmanned from None

    def close(self) -> None:
        """End the executor and what it still does."""
        if self._executor is not None:
            self._end(self._executor)
        self._executor = None


def fan_of(settings: ExecutorSettings) -> Fan | None:
    """Return what the settings ask for; None where everything runs in this process."""
    if settings.kind == "dask":
        return _dask(settings.scheduler)
    if settings.processes == 1:
        return None
    return Fan(lambda: ProcessPoolExecutor(settings.processes, mp_context=get_context("spawn")), (BrokenProcessPool,))


def _dask(scheduler: str) -> Fan:
    try:
        from distributed import Client
        from distributed.client import FutureCancelledError
        from distributed.scheduler import KilledWorker
    except ImportError as error:
        raise Mistake("Setting executor.kind: Dask is not installed. pip install 'oomrl[dask]'") from error
    if not scheduler:
        raise Mistake("Setting executor.scheduler: expected tcp://HOST:PORT of a Dask scheduler, was empty.")

    clients: list[Client] = []

    def connect() -> Executor:
        try:
            clients.append(Client(scheduler, timeout=10, set_as_default=False))
            clients[-1].wait_for_workers(1, timeout=PATIENCE)
        except (OSError, TimeoutError) as error:
            raise Unavailable(
                f"The Dask scheduler at {scheduler} does not answer, or has no worker: {error}"
            ) from error
        executor: Executor = clients[-1].get_executor(pure=False)
        return executor

    def end(executor: Executor) -> None:
        executor.shutdown(wait=False)
        clients.pop().close()

    def manned() -> bool:
        return bool(clients[-1].scheduler_info(n_workers=1)["workers"])

    return Fan(connect, (FutureCancelledError, KilledWorker), end, manned)
