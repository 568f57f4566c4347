"""What decides correctness, in the judge's own process: golden cases and hidden properties over a pipe.

Only plain values cross. The answers, the markets and their seeds stay here; the proposer learns one bit.

Over 400 lines, because cases, scenarios and properties ask the same worker in the same way.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, Protocol

from guardrails.decisions import (
    Compared,
    Decision,
    Told,
    apart,
    close,
    contract,
    decision_in,
    same_decision,
    same_weights,
    weights,
)
from guardrails.markets import COLUMNS, Account, Bars, market
from guardrails.policy import Bound, Policy
from guardrails.tree import Tree
from guardrails.trends import Course, Trend, TrendAccount, TrendWorld, trend_worlds

PROPERTIES = ("contract", "activity", "prefix", "restart", "rename", "weeks", "scale", "cash")
#: Years that markets are moved to; from when on, and in how many years, every week is decided in; sessions of a year.
ERAS = (1976, 1994, 2002, 2007, 2010, 2012, 2017, 2022, 2041)
LIVE, LIVE_YEARS, YEAR = date(2024, 1, 1), 10, 272
#: Further markets in which what must trade alike does so with other parameters, and how often they are drawn.
DRAWN, TRIES = 4, 5


class WorkerFault(Exception):
    """The worker raised, hung, crashed or answered what is no answer."""


class Worker(Protocol):
    """One strategy in a sandbox, as the judge sees it."""

    def session(self, day: date, symbols: Sequence[str], columns: Mapping[str, Sequence[float]]) -> None:
        """Send one closed session."""
        ...

    def decide(self, portfolio: Told) -> dict[str, Any]:
        """Return {"action": "hold"} or {"action": "target", "weights": {...}, ...} in plain values."""
        ...

    def call(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call `package.module:name` with plain values; a list of floats may stand for an array."""
        ...


Start = Callable[[Mapping[str, Any]], AbstractContextManager[Worker]]


@dataclass(frozen=True)
class Case:
    """One golden case: `expect` a plain value within tolerance, or `raises` the name of an exception."""

    name: str
    function: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    expect: Any
    raises: str
    relative: float
    absolute: float


def read_cases(baseline: Tree, folder: str) -> list[Case]:
    """Read the golden cases from every JSON file of the baseline folder that has a key `cases`."""
    cases = []
    for path, data in baseline.items():
        if not path.endswith(".json") or path.startswith(f"{folder}/references/"):
            continue
        content = json.loads(data)
        for at, raw in enumerate(content.get("cases", ()) if isinstance(content, dict) else ()):
            row = {**{key: value for key, value in content.items() if key != "cases"}, **raw}
            kwargs, args = row.get("kwargs", {}), tuple(row.get("args", ()))
            limits = float(row.get("relative", 1e-9)), float(row.get("absolute", 1e-12))
            name = f"{path}#{row.get('name', at)}"
            cases.append(Case(name, row["function"], args, kwargs, row.get("expect"), row.get("raises", ""), *limits))
    return cases


def failing_cases(cases: Sequence[Case], start: Callable[[], AbstractContextManager[Worker]]) -> list[str]:
    """Return the names of the golden cases that the code does not meet. A worker that failed is replaced."""
    failing, waiting = [], list(cases)
    while waiting:
        with start() as worker:
            fault = ""
            while waiting and not fault:
                case = waiting.pop(0)
                try:
                    value = worker.call(case.function, case.args, case.kwargs)
                    holds = not case.raises and close(value, case.expect, case.relative, case.absolute)
                except WorkerFault as failure:
                    fault = str(failure)
                    holds = bool(case.raises) and f"{case.raises}:" in f"{fault}:"
                failing += [] if holds else [case.name]
    return failing


@dataclass(frozen=True)
class Before:
    """Code that a patch is held beside, above all that before it: how it is started, its own parameters, and what is
    known of it in worlds and on odd inputs of one seed. `compared` and `odd_compared` gather, run by run, how decisions
    differ from what they are now.
    """

    start: Start
    params: Mapping[str, Any]
    known: MutableMapping[str, Course] = field(default_factory=dict)
    odd: MutableMapping[str, list[Decision]] = field(default_factory=dict)
    compared: list[Compared] = field(default_factory=list)
    odd_compared: list[Compared] = field(default_factory=list)

    def knows(self, world: TrendWorld, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what it trades a world with: its own parameters, or the given values of those that it knows."""
        return self.params if world.own else {name: given.get(name, value) for name, value in self.params.items()}

    def course(self, world: TrendWorld, sessions: Sequence[Bars], params: Mapping[str, Any]) -> Course | None:
        """Return what it does in a world, or none where it fails."""
        asked = f"{world.trend}:{world.seed}:{world.habits['broken']}:{sorted(params.items())}"
        course = self.known.get(asked) or _course(world, sessions, params, self.start)
        if course is not None:
            self.known[asked] = course
        return course

    def asked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the given values of the parameters that it knows."""
        return {name: given.get(name, value) for name, value in self.params.items()}


@dataclass(frozen=True)
class Alike:
    """The code that a patch has to trade alike, within which bounds parameters may be set, and a curated version.

    What no test says a curated version may: where that trades otherwise than the code before, a patch may come nearer
    to it.
    """

    code: Before
    bounds: Mapping[str, Bound] = field(default_factory=dict)
    good: Start | None = None

    def allows(self, world: TrendWorld, sessions: Sequence[Bars], course: Course | None, given: Told) -> bool:
        """Say whether a course (none: it failed) is that of the code with the same parameters, or nearer to that of the
        curated version. Where the code alone fails nothing can be told, and it is not.
        """
        beside = self.code.course(world, sessions, self.code.asked(given))
        if course is None or beside is None:
            return course is beside
        return _same_course(course, beside) or self.nearer(world, sessions, course, given)

    def nearer(self, world: TrendWorld, sessions: Sequence[Bars], course: Course, given: Told) -> bool:
        """Say whether decisions are nearer to those of the curated version than those of the code, told the same."""
        if self.good is None:
            return False
        told, account, made = self.code.asked(given), TrendAccount(world), iter(course.decided)
        ours = theirs = 0.0
        try:
            with self.code.start(told) as code, self.good(told) as good:
                for at, bars in enumerate(sessions):
                    code.session(bars.day, bars.symbols, bars.columns)
                    good.session(bars.day, bars.symbols, bars.columns)
                    account.show(bars)
                    if world.due(at):
                        portfolio, held, decision = account.told(bars.day), account.weights(), next(made)
                        wanted = decision_in(good.decide(portfolio), held)
                        ours += apart(decision, wanted)
                        theirs += apart(decision_in(code.decide(portfolio), held), wanted)
                        if decision[0] == "target":
                            account.follow(decision[1])
        except WorkerFault:
            return False
        return ours < (1.0 - 1e-6) * theirs


def failing_scenarios(
    baseline: Tree,
    params: Mapping[str, Any],
    start: Start,
    seed: int,
    before: Before | None = None,
    alike: Alike | None = None,
    *,
    tuned: bool = False,
) -> tuple[int, list[str], list[str]]:
    """Return how many scenarios there are, the paths of those that whole decisions do not meet, and of those in whose
    markets the code trades otherwise than the code that it has to be `alike`.

    A scenario is a JSON file with `sessions`, `portfolio` and `expect`, or with `trend`, whose markets come from the
    hidden seed; its `params` are laid over the given ones. There the code `before` trades beside, and what it did not
    meet is not asked of the code after it: a strategy that loses is judged by its loss, and one that ranks well has to
    go on so. Without code before, half of all decisions must be right. Where nothing but parameters is other (`tuned`),
    how much is held and ordered is what a person's bounds allow.
    """
    count, failing, other = 0, list[str](), list[str]()
    for path, content in scenarios_of(baseline):
        if "trend" in content:
            count += 1
            held, same = _rises(content, params, start, seed, before, alike, tuned)
            failing += [] if held else [path]
            other += [] if same else [path]
        else:
            count += 1
            try:
                with start({**params, **content.get("params", {})}) as worker:
                    answer = _asked(worker, content)
                held = not contract(answer) and all(_meets(answer, rule) for rule in content["expect"])
            except WorkerFault:
                held = False
            failing += [] if held else [path]
    return count, failing, other


def scenarios_of(baseline: Tree) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the path and content of each scenario."""
    for path, data in baseline.items():
        content = json.loads(data) if path.endswith(".json") and "/references/" not in path else None
        if isinstance(content, dict) and ("trend" in content or "sessions" in content):
            yield path, content


def _asked(worker: Worker, scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Show a scenario's sessions on the weekdays from 2001-01-01 on, and ask once."""
    day = date(2001, 1, 1)
    for given in scenario["sessions"]:
        names = tuple(sorted(given["close"]))
        # Columns that are not said differ from the close, so that none can stand in for another unseen.
        near = {"open": 0.97, "high": 1.03, "low": 0.94}
        plain = {name: {key: value * by for key, value in given["close"].items()} for name, by in near.items()} | given
        usual = {"volume": 1_000_000.0, "dividend": 0.0, "split": 1.0, "tradable": 1.0}
        columns = {c: [float(plain.get(c, {}).get(name, usual.get(c, 0.0))) for name in names] for c in COLUMNS}
        worker.session(day, names, columns)
        day += timedelta(days=3 if day.weekday() == 4 else 1)
    return worker.decide({"date": day.isoformat(), **scenario["portfolio"]})


def _rises(
    scenario: Mapping[str, Any],
    params: Mapping[str, Any],
    start: Start,
    seed: int,
    before: Before | None,
    alike: Alike | None,
    tuned: bool,
) -> tuple[bool, bool]:
    """Say whether in markets that trend all decisions are sound, and hold what rises where those before did; and
    whether they are those of the code that has to be alike, with the same parameters. The first no is the last word.
    """
    trend, shares = Trend.read(scenario["trend"]), list[float]()
    for world in trend_worlds(trend, seed):
        given = params if world.own else {**params, **scenario.get("params", {})}
        limits = {name: given[key] for name, key in scenario.get("limits", {}).items() if key in given}
        sessions = list(world.shown())
        known = before.knows(world, given) if before else given
        then = before.course(world, sessions, known) if before else None
        if before and then is None and world.habits["broken"]:  # who cannot take such prices is judged without them
            world.habits["broken"] = 0.0
            sessions = list(world.shown())
            then = before.course(world, sessions, known)
        if before and then is None:
            continue
        course, same = _course(world, sessions, given, start), known == {name: given.get(name) for name in known}
        if before and then and course:
            where = f"in a market of {len(world.names)} names"
            before.compared.append(Compared.of(where, course.decided, then.decided))
        if course is None or (then and course.worse(then, trend.lead, limits, same, tuned)):
            return False, True
        if alike and not alike.allows(world, sessions, course, given):
            return True, False
        shares.append(course.right(trend.lead))
    if alike and not _set_otherwise(scenario, params, start, seed, alike):
        return True, False
    return before is not None or 2.0 * sum(shares) > len(shares), True


def _set_otherwise(
    scenario: Mapping[str, Any], params: Mapping[str, Any], start: Start, seed: int, alike: Alike
) -> bool:
    """Say whether it trades alike in further markets too, with parameters drawn anew for each."""
    trend = Trend.read(scenario["trend"])
    for at in range(trend.worlds, trend.worlds + DRAWN):
        world, chance = TrendWorld(trend, seed, at), random.Random(f"{seed}/parameters/{at}")
        sessions = list(world.shown())
        for _ in range(TRIES):  # some go together nowhere
            given = drawn({**params, **scenario.get("params", {})}, alike.bounds, chance)
            course = _course(world, sessions, given, start)
            if not alike.allows(world, sessions, course, given):
                return False
            if course is not None:
                break
    return True


def drawn(params: Mapping[str, Any], bounds: Mapping[str, Bound], chance: random.Random) -> dict[str, Any]:
    """Return parameters of which about half are drawn anew within their bounds, near to what they are."""
    given = dict(params)
    for key, bound in sorted(bounds.items()):
        name = key.removeprefix("parameters.")
        if bound.type in ("int", "float") and type(given.get(name)) in (int, float) and chance.random() < 0.5:
            value = given[name] * math.exp(chance.uniform(-1.0, 1.0)) or chance.random()
            value = max(value, -math.inf if bound.min is None else bound.min)
            value = min(value, math.inf if bound.max is None else bound.max)
            given[name] = round(value) if bound.type == "int" else value
    return given


def _same_course(course: Course, other: Course) -> bool:
    """Say whether two strategies decided the same in a world, whatever reasons they gave."""
    same = len(course.decided) == len(other.decided)
    return same and all(map(same_decision, course.decided, other.decided))


def _course(world: TrendWorld, sessions: Sequence[Bars], params: Mapping[str, Any], start: Start) -> Course | None:
    """Let a strategy trade in a world; return what it did, or none where it failed or its answer is no portfolio."""
    course, account = Course(world), TrendAccount(world)
    try:
        with start(params) as worker:
            for at, bars in enumerate(sessions):
                worker.session(bars.day, bars.symbols, bars.columns)
                account.show(bars)
                if world.due(at):
                    told = account.told(bars.day)
                    answer = worker.decide(told)
                    if contract(answer):
                        return None
                    held = account.weights()
                    course.decided.append(decision_in(answer, held))
                    action, wanted, plans = course.decided[-1]
                    course.add(at, told, wanted, held, plans)
                    if action == "target":
                        account.follow(wanted)
    except WorkerFault:
        return None
    return course


def _meets(answer: Mapping[str, Any], rule: Mapping[str, Any]) -> bool:
    """Say whether an answer meets one rule; a rule that is not known is not met."""
    held, given = answer["action"] == "hold", weights(answer)
    if "action" in rule:
        return bool(answer["action"] == rule["action"])
    if "nothing_held" in rule:
        return not given
    if "sum_at_most" in rule:
        return sum(given.values()) <= float(rule["sum_at_most"]) + 1e-9
    if "no_plan" in rule:
        return rule["no_plan"] not in (answer.get("plan") or {})
    if "weight_or_hold" in rule:
        weight = given.get(rule["weight_or_hold"], 0.0)
        return held or abs(weight - float(rule["equals"])) <= float(rule.get("absolute", 1e-9))
    return False


Decided = tuple[int, Told, dict[str, Any]]


@dataclass(frozen=True)
class World:
    """The base run's market, told otherwise: the decisions must be the same once names are mapped back."""

    params: Mapping[str, Any]
    bars: Sequence[Bars]
    names: Mapping[str, str] = field(default_factory=dict)
    shift: timedelta = timedelta()
    shares: float = 1.0
    cash: float | None = None
    only: int | None = None

    def tell(self, told: Told) -> Told:
        """Return the base run's portfolio in the terms of this world."""
        held = {self.names.get(name, name): count * self.shares for name, count in told["shares"].items()}
        cash = told["cash"] if self.cash is None else self.cash
        day = date.fromisoformat(told["date"]) + self.shift
        return {**told, "shares": held, "cash": cash, "date": day.isoformat()}

    def same(self, answer: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
        """Say whether an answer is the base run's: action, weights, and orders where prices are the same."""
        back = {new: old for old, new in self.names.items()}
        ours = {back.get(name, name): weight for name, weight in weights(answer).items()}
        if answer.get("action") != expected.get("action") or not same_weights(ours, weights(expected)):
            return False
        plans = {back.get(name, name): plan for name, plan in (answer.get("plan") or {}).items()}
        if self.shares != 1.0:
            return plans.keys() == (expected.get("plan") or {}).keys()
        told = bool(self.names) or answer.get("reasons") == expected.get("reasons")
        return told and close(plans, expected.get("plan") or {}, 1e-6, 1e-7)


def failing_properties(policy: Policy, parameters: Mapping[str, Any], start: Start, seed: int) -> dict[str, str]:
    """Return the properties that do not hold on a market of this seed, each with what was seen.

    `parameters` are the dotted keys of the parameters file. Waived properties are not tried.
    """
    rules, chance = policy.acceptance, random.Random(seed)
    tried = [name for name in PROPERTIES if name not in rules.waived]
    bars = market(chance.getrandbits(32), rules.sessions, rules.symbols)
    params = parameters_of(parameters)
    base = _follow(start, params, bars, _decision_days(bars, parameters), rules.capital)
    failed: dict[str, str] = {}
    if "contract" in tried:
        failed |= _first("contract", (contract(answer) for _, _, answer in base))
    if "activity" in tried and not any(weights(answer) for _, _, answer in base):
        failed["activity"] = "Expected a position in some decision, was none."
    late = chance.choice(base[len(base) // 2 :])[0]
    names = _renaming(bars, chance)
    # To each era, because a rule about dates shows only where a market lies on its other side.
    eras = [date(year, chance.randrange(1, 13), 1) for year in ERAS]
    shifts = [timedelta(weeks=(era - bars[0].day).days // 7) for era in eras]
    factor = 2.0 ** chance.choice((-3, -2, 2, 3))
    priced = {key.removeprefix("parameters.") for key, bound in policy.bounds.items() if bound.price}
    dear = {key: value * factor if key in priced else value for key, value in params.items()}
    worlds = {
        "prefix": World(params, bars[: late + 1]),
        "restart": World(params, bars[: late + 1], only=late),
        "rename": World(params, [item.renamed(names) for item in bars], names=names),
        "cash": World(params, bars, cash=0.0),
        "scale": World(dear, [item.scaled(factor) for item in bars], shares=1.0 / factor),
    }
    for at, shift in enumerate(shifts):
        worlds[f"weeks {at}"] = World(params, [item.moved(shift) for item in bars], shift=shift)
    for label, world in worlds.items():
        name = label.split()[0]
        if name in tried and name not in failed:
            failed |= _first(name, _differences(start, world, base))
    if "cash" in tried and "cash" not in failed:
        days, capital = [at for at, _, _ in base], 10.0 ** chance.uniform(7.0, 10.0)
        rich = _follow(start, params, bars, days, capital)
        failed |= _first("cash", _differences(start, worlds["cash"], rich))
    if "weeks" in tried and "weeks" not in failed:
        failed |= _first("weeks", _live_weeks(start, policy, parameters, chance.getrandbits(32)))
    return failed


def _live_weeks(start: Start, policy: Policy, parameters: Mapping[str, Any], seed: int) -> Iterator[str]:
    """Move a year of decisions over the years in which what is judged today will trade, without a gap."""
    rules, params = policy.acceptance, parameters_of(parameters)
    warmup = int(parameters.get("strategy.warmup", rules.sessions // 2))
    bars = market(seed, warmup + YEAR, rules.symbols)
    base = _follow(start, params, bars, _decision_days(bars, parameters), rules.capital)
    first = bars[base[0][0]].day
    for at in range(LIVE_YEARS):
        shift = timedelta(weeks=(LIVE - first).days // 7 + 52 * at)
        yield from _differences(start, World(params, [item.moved(shift) for item in bars], shift=shift), base)


def decisions(policy: Policy, parameters: Mapping[str, Any], start: Start, seed: int) -> list[dict[str, Any]]:
    """Return the answers of a strategy on a made-up market of this seed, one in each of its weeks after the warm-up."""
    rules = policy.acceptance
    bars = market(seed, rules.sessions, rules.symbols)
    days = _decision_days(bars, parameters)
    return [answer for _, _, answer in _follow(start, parameters_of(parameters), bars, days, rules.capital)]


def _decision_days(bars: Sequence[Bars], parameters: Mapping[str, Any]) -> list[int]:
    warmup = int(parameters.get("strategy.warmup", len(bars) // 2))
    return [at for at in range(min(warmup, len(bars) - 20), len(bars)) if _due(bars, at)]


def parameters_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the [parameters] table out of the dotted keys of the parameters file."""
    return {key.removeprefix("parameters."): value for key, value in values.items() if key.startswith("parameters.")}


def _due(bars: Sequence[Bars], at: int) -> bool:
    return at == 0 or bars[at].day.isocalendar()[:2] != bars[at - 1].day.isocalendar()[:2]


def _follow(
    start: Start,
    params: Mapping[str, Any],
    bars: Sequence[Bars],
    days: Sequence[int],
    cash: float,
) -> list[Decided]:
    account, made, due = Account(cash), list[Decided](), set(days)
    with start(params) as worker:
        for at, session in enumerate(bars):
            worker.session(session.day, session.symbols, session.columns)
            account.show(session)
            if at in due:
                told = {
                    "date": session.day.isoformat(),
                    "equity": account.equity(),
                    "cash": account.cash,
                    "shares": dict(account.shares),
                }
                answer = worker.decide(told)
                made.append((at, told, answer))
                if answer.get("action") == "target":
                    account.follow(weights(answer))
    return made


def _differences(start: Start, world: World, base: Sequence[Decided]) -> Iterator[str]:
    """Show a world, tell the mapped portfolios, and compare the answers with those of the base run."""
    due = {at: (told, answer) for at, told, answer in base if world.only in (None, at)}
    with start(world.params) as worker:
        for at, session in enumerate(world.bars):
            worker.session(session.day, session.symbols, session.columns)
            if at in due:
                told, expected = due[at]
                if not world.same(worker.decide(world.tell(told)), expected):
                    yield f"Expected the same decision on day {at}, was another."


def _renaming(bars: Sequence[Bars], chance: random.Random) -> dict[str, str]:
    """Return other names in the same order."""
    old = sorted({name for session in bars for name in session.symbols})
    new: set[str] = set()
    while len(new) < len(old):
        new.add("".join(chance.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(chance.randrange(1, 6))))
    return dict(zip(old, sorted(new), strict=True))


def _first(name: str, faults: Iterable[str]) -> dict[str, str]:
    fault = next((item for item in faults if item), "")
    return {name: fault} if fault else {}
