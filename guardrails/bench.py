"""The bench that judged code runs on: the sandbox and its runners, behind one protocol."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from guardrails.acceptance import Worker
from guardrails.checks.instead import Instead
from guardrails.environment import GateEnvironment
from guardrails.mutation import Mutant, Place
from guardrails.policy import Policy
from guardrails.runs import TestRun
from guardrails.tree import Tree


class NoBench(Exception):
    """No sandbox can be opened here."""


class Tried(NamedTuple):
    """Mutants and how each ended: killed, crashed, survived or unreached; and of the tests that were to run alone those
    that noticed none which they were shown.
    """

    ends: Sequence[tuple[Mutant, str]] = ()
    idle: Sequence[str] = ()


class Bench(Protocol):
    """Whatever runs judged code: a sandbox of a stated profile, its canaries tried before use."""

    profile: str
    canaries: Mapping[str, Any]

    def test(
        self,
        tree: Tree,
        *,
        only: Sequence[str] = (),
        shuffle: int | None = None,
        cover: bool = False,
        strict: bool = False,
        share: float = 1.0,
        hash_seed: int = 0,
    ) -> TestRun:
        """Run the tests of a tree, all or some, in written or shuffled order; `strict` makes warnings errors.

        They have this `share` of the memory, processor time and length of report that tests may have; `hash_seed`
        decides the order of sets.
        """
        ...

    def unreached(self, tree: Tree, places: Sequence[Place], arms: Collection[Place] = ()) -> list[Place]:
        """Return the places (path, line; or -line: past that condition's body) where a raise makes no test fail.

        At `arms` it is tried in each part of an expression that may be left out, too.
        """
        ...

    def mutants(
        self,
        tree: Tree,
        lines: Mapping[str, Collection[int]],
        *,
        seed: int,
        most: int,
        only: Sequence[str] = (),
        must: Mapping[str, Collection[tuple[int, ...]]] | None = None,
        others: Mapping[str, Instead] | None = None,
    ) -> Tried:
        """Mutate these lines; return the mutants and how each ended."""
        ...

    def worker(self, tree: Tree, params: Mapping[str, Any], *, share: float = 1.0) -> AbstractContextManager[Worker]:
        """Start the strategy of a tree: its source and parameters only, with this share of the memory and time it may
        have.
        """
        ...

    def rest(self) -> None:
        """End whatever runs without being asked anything; what is asked next works as before."""
        ...


def open_bench(environment: GateEnvironment | None, policy: Policy) -> Bench:
    """Open the strongest sandbox of this machine and try its canaries.

    Raises:
        NoBench: there is none of the strength that the policy demands, or no interpreters were named.
    """
    from guardrails.sandbox import Sandbox, SandboxError
    from guardrails.sandboxed import SandboxBench

    if environment is None:
        raise NoBench("Expected the interpreters of the gate, was none: see --python and --worker-python.")
    try:
        return SandboxBench(Sandbox.choose(policy.sandbox.minimum), environment, policy)
    except SandboxError as error:
        raise NoBench(str(error)) from error
