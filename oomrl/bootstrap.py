"""The composition root: settings and options in, a loop with real parts out. Nothing else wires anything.

Over 400 lines, because wiring that is spread over files can no longer be read as one picture.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from threading import Event
from time import monotonic, sleep
from typing import TYPE_CHECKING

from guardrails.tree import Tree
from oomrl.adapters import environments, kill_switch
from oomrl.adapters.audit import Audit
from oomrl.adapters.counterfactual import Counterfactual
from oomrl.adapters.database import Store
from oomrl.adapters.database.notices import Notice
from oomrl.adapters.database.place import MAIN, RUN, place
from oomrl.adapters.executor import fan_of
from oomrl.adapters.facts import StoredFacts, opening
from oomrl.adapters.gate import StrategyGate
from oomrl.adapters.journal import StoredJournal
from oomrl.adapters.models import make_models
from oomrl.adapters.prompting import Patience, Prompting
from oomrl.adapters.proposer import AgentProposer
from oomrl.adapters.repository import Repository, git_here
from oomrl.adapters.reviewer import StoredReviews
from oomrl.adapters.starts import start_tree, strategy_folder
from oomrl.adapters.strategies import Deployed, Workers, configuration, sandboxed
from oomrl.adapters.timers import WallTimer
from oomrl.arenas import certificates
from oomrl.calendar import Calendar
from oomrl.domain import capital, loss
from oomrl.domain.account import Account, SessionRecord
from oomrl.domain.capital import Capital
from oomrl.domain.ledger import Entry
from oomrl.domain.loss import Loss
from oomrl.domain.reconciliation import Mismatch
from oomrl.domain.records import Deployment, DeploymentKind, Run
from oomrl.domain.sizing import Limits
from oomrl.domain.trading import ALPACA_PAPER, AccountRules
from oomrl.errors import Mistake, Refused
from oomrl.exchange.exchange import PaperExchange
from oomrl.exchange.friction import Friction
from oomrl.exchange.replay import ReplayResult, Terms
from oomrl.exchange.streamed import StreamedTape, open_tape
from oomrl.exchange.tape import Tape
from oomrl.exchange.tape_files import load_tape
from oomrl.judging import Judge
from oomrl.live import is_paper, require_paper_or_consent
from oomrl.loop import STAGES, Loop, Rules
from oomrl.ports import Broker, Market, Timer
from oomrl.settings import AccountOf, Settings, differences
from oomrl.stages import Watcher

if TYPE_CHECKING:
    from oomrl.adapters.own_account import OwnAccount

#: Simulated instants are at this time of their session's day: after every close in New York.
CLOSE = time(21, 30, tzinfo=UTC)


@dataclass
class VirtualClock:
    """Tell the close of the last session that was shown."""

    day: date

    def now(self) -> datetime:
        return datetime.combine(self.day, CLOSE)


@dataclass(frozen=True)
class Simulation:
    """What a person asked to simulate."""

    state: Path
    settings: Settings
    tape: str = "builtin"
    from_day: date | None = None
    to_day: date | None = None
    start: str = "shipped"
    seed: int = 0
    unmasked: bool = False
    growing: bool = False
    broker: str = "inprocess"
    name: str = MAIN
    may: frozenset[str] = frozenset(STAGES)
    holding: Callable[[Broker], Broker] = lambda broker: broker
    guard: Callable[[], None] = lambda: None
    terms: AccountOf | None = None
    timer: Timer | None = None

    @property
    def root(self) -> Path:
        """Return the state directory of the whole service, of which `state` is one account's."""
        return self.state if self.name == MAIN else self.state.parent.parent

    def key(self, tape: Tape, tree_digest: str) -> dict[str, object]:
        """Return what must stay the same for a state directory to be gone on with."""
        return {
            # A tape that grows keeps its past: each stored mark is checked against it when it is folded again.
            "tape": self.tape if self.growing else tape.digest,
            "from": "the first session served" if self.growing else str(self.from_day),
            "to": str(self.to_day),
            # What is shipped changes with an upgrade; a served account goes on with what it began with.
            "start": self.start if self.growing else tree_digest,
            "seed": self.seed,
            "unmasked": self.unmasked,
            "settings": self.settings.of_the_run(),
        }


@dataclass(frozen=True)
class Assembled:
    """A loop with everything that reports on it need."""

    loop: Loop
    run: str
    tape: Tape
    store: Store
    repository: Repository
    counterfactual: Counterfactual
    audit: Audit
    start_day: date
    settings: Settings
    start: str
    seed: int
    inverse: dict[str, bytes] | None
    closing: contextlib.ExitStack
    work: Callable[[], None] = lambda: None


def friction_of(settings: Settings) -> Friction:
    chosen = settings.friction
    return Friction(
        half_spread_bps=chosen.half_spread_bps,
        impact_coefficient=chosen.impact_coefficient,
        commission_per_share=chosen.commission_per_share,
        sec_fee_rate=chosen.sec_fee_rate,
        taf_per_share=chosen.taf_per_share,
        max_participation=chosen.max_participation,
    )


def limits_of(settings: Settings) -> Limits:
    chosen = settings.limits
    return Limits(
        gross=chosen.gross,
        per_name=chosen.per_name,
        max_adv_share=chosen.max_adv_share,
        max_orders=chosen.max_orders,
        min_order_value=chosen.min_order_value,
    )


def thresholds_of(settings: Settings) -> capital.Thresholds:
    levels = settings.thresholds.model_dump()

    def of(measure: str) -> capital.Levels:
        return capital.Levels(**{n: levels[f"{measure}_{n}"] for n in ("watch", "diagnose", "halt", "out_of_money")})

    return capital.Thresholds(of("principal"), of("drawdown"))


def reward_friction_of(settings: Settings) -> capital.Friction:
    chosen = settings.reward
    return capital.Friction(chosen.fixed, chosen.impact, capital.Impact(chosen.form), capital.Norm(chosen.norm))


def terms_of(settings: Settings) -> Terms:
    """Return the terms on which replays trade: those of the simulated account itself."""
    return Terms(
        capital=settings.account.endowment,
        friction=friction_of(settings),
        limits=limits_of(settings),
        rules=AccountRules(),
    )


def first_trading_day(tape: Tape | StreamedTape, asked: date | None, warmup: int) -> date:
    """Return the day on which trading begins: the asked one, else the first after the strategy's warm-up."""
    if asked is not None:
        return next(day for day in tape.days if day >= asked)
    if len(tape.days) <= warmup:
        raise Mistake(
            f"Tape {tape.name} has {len(tape.days)} sessions, but the strategy needs {warmup} to warm up. "
            "Name a longer tape, or a day with --from."
        )
    return tape.days[warmup]


def _served_since(asked: Simulation, tape: Tape, warmup: int) -> date:
    """Return the first session that a service trades: as stored, else the asked one; it needs history before it."""
    with Store.open(place(asked.root, asked.settings, asked.name)) as store, store.read() as view:
        known = view.deployments.all(RUN) if view.runs.get(RUN) else []
    begin = known[0].day if known else asked.from_day or tape.days[-1]
    earlier = sum(day < begin for day in tape.days)
    if earlier < warmup:
        raise Mistake(
            f"Tape {tape.name} has {earlier} sessions before {begin}, but the strategy needs {warmup} to warm up: "
            "add older sessions to it."
        )
    return begin


def examine(asked: Simulation) -> tuple[Tape, Mapping[str, bytes], dict[str, bytes] | None, date]:
    """Check what a person may have got wrong; return the tape, the tree to start with, its undoing, the first day."""
    git_here()
    tape = load_tape(asked.tape)
    tape.require(asked.from_day, asked.to_day)
    if asked.to_day is not None:
        tape = tape.until(asked.to_day)
    tree, inverse = start_tree(asked.start)
    return tape, tree, inverse, first_trading_day(tape, asked.from_day, configuration(tree["strategy.toml"]).warmup)


def assemble(asked: Simulation, watcher: Watcher) -> Assembled:
    """Check everything a person may have got wrong, then make or open the state directory and wire the loop.

    What was opened is closed where this raises; else the caller closes `store` and `closing`.
    """
    with contextlib.ExitStack() as opened:
        made = _wired(asked, watcher, opened)
        opened.pop_all()
    return made


def _wired(asked: Simulation, watcher: Watcher, opened: contextlib.ExitStack) -> Assembled:
    tape, tree, inverse, begin = examine(asked)
    repository: Repository | None = None
    if asked.growing and (asked.state / "strategy.git" / "HEAD").is_file():
        repository = Repository(asked.state / "strategy.git")
        tree = repository.tree(repository.log()[-1].id)
    configured = configuration(tree["strategy.toml"])
    if asked.growing:
        begin = _served_since(asked, tape, configured.warmup)
    models = make_models(asked.settings, asked.state, asked.seed, live=asked.growing)
    refusal = unqualified(asked.settings, asked.state)
    if refusal and not asked.growing:
        raise Refused(refusal)
    found = environments.find(strategy_folder(asked.start))
    # Most of a service's jobs run nothing of a strategy: those that do choose then, the check before the open tries.
    sandbox = None if asked.growing else sandboxed()
    settings = asked.settings
    key = asked.key(tape, _digest(tree))

    asked.state.mkdir(parents=True, exist_ok=True)
    store = opened.enter_context(Store.open(place(asked.root, settings, asked.name), durable=asked.growing))
    clock = VirtualClock(begin)
    run = RUN
    with store.begin() as work:
        known = work.runs.get(run)
        if known is None:
            work.runs.start(Run(run, "simulation", key, asked.seed, tape.digest, clock.now()))
    if known is not None and (changed := differences(known.settings, json.loads(json.dumps(key)))):
        kept = "An account keeps the settings that it began with: change them back. `oomrl endow` gives it money."
        anew = "Name another --state, or add --fresh to begin anew."
        raise Mistake(
            f"{asked.state} holds another run (it differs in: {'; '.join(changed)}). {kept if asked.growing else anew}"
        )
    if repository is None:
        repository = Repository.create(asked.state / "strategy.git", tree, f"Start: {asked.start}", clock.now())
    first = repository.log()[-1].id
    closing = opened.enter_context(contextlib.ExitStack())
    own = _own(asked, tape, begin, store, closing) if asked.broker == "alpaca" else None
    given = settings.account.endowment if own is None else own.cash
    endowment = opening(given, begin)
    with store.begin() as work:
        if work.deployments.current(run) is None:
            work.deployments.save(
                Deployment(run, 1, first, "", DeploymentKind.START, begin, clock.now(), "", asked.start)
            )
            work.ledger.post(run, [endowment])
    audit = Audit(asked.state)
    audit.catch_up(store, run)

    workers = Workers(sandbox, found.worker, float(settings.account.endowment), asked.seed)
    terms = terms_of(settings)
    facts = StoredFacts(store, run, audit, clock.now, keep_bars=False)
    strategies = Deployed(repository, workers, clock.now)
    if own is not None:
        terms = replace(terms, rules=ALPACA_PAPER, limits=own.limits(terms.limits))
    account = Account(limits=terms.limits, rules=terms.rules, cadence=configured.cadence)
    account.endow([endowment])
    judge = Judge(
        thresholds_of(settings),
        loss.Rules(assumed_friction_bps=settings.friction.assumed_bps),
        capital.found(begin, given if own is None else own.value),
        friction=reward_friction_of(settings),
        penalty=settings.reward.penalty,
    )
    judge.symbols = account.observed.roster.symbols
    proposer = AgentProposer(
        run,
        store,
        repository,
        models,
        Prompting(
            run,
            store,
            clock.now,
            settings.account.compute_endowment,
            # The daemon tries a stage again by its own table; trading must not wait for an endpoint.
            Patience(sleep, monotonic, 0.0 if asked.growing else 60.0 * settings.endpoint.patience_minutes),
            facts.answered,
        ),
        tape,
        clock.now,
        masked=not asked.unmasked,
        seed=asked.seed,
        capital=float(settings.account.endowment),
        attempts=settings.loop.attempts,
        candidates=settings.loop.candidates,
        confirm_mandate=settings.loop.confirm_mandate,
        refusal=lambda: unqualified(settings, asked.state),
    )
    fan = fan_of(settings.executor)
    if fan is not None:
        closing.callback(fan.close)
    counterfactual = Counterfactual(tape, workers, terms, fan=fan)
    secret = _judges_secret(asked)
    gate = StrategyGate(run, store, repository, counterfactual, found, secret, clock.now)
    broker = _broker(asked, tape, begin, terms, facts, own, store, closing)
    loop = Loop(
        rules=Rules(
            attempts=settings.loop.attempts,
            while_waiting=settings.loop.while_waiting,
            pause_while_waiting=not asked.growing,
            from_day=begin,
            may=asked.may,
            live=asked.growing,
        ),
        market=tape if own is None else _adopting(own, tape, account, begin, store),
        broker=asked.holding(broker),
        account=account,
        judge=judge,
        facts=facts,
        strategies=strategies,
        proposer=proposer,
        gate=gate,
        reviewer=StoredReviews(
            run, store, repository, clock.now, automatic=settings.loop.reviewer == "auto", rules=settings.review
        ),
        watcher=_Ticking(watcher, clock),
    )
    return Assembled(
        loop,
        run,
        tape,
        store,
        repository,
        counterfactual,
        audit,
        begin,
        settings,
        asked.start,
        asked.seed,
        inverse,
        closing,
        getattr(broker, "work", lambda: None),
    )


def replayed(
    settings: Settings,
    source: str,
    from_day: date | None,
    to_day: date | None,
    start: str,
    revision: str | None,
    state: Path,
    seed: int,
) -> ReplayResult:
    """Replay one revision over a tape, without a state directory of its own."""
    tape = open_tape(source)
    tape.require(from_day, to_day)
    if to_day is not None:
        tape = tape.until(to_day)
    if revision is None:
        tree: Mapping[str, bytes] = start_tree(start)[0]
    else:
        repository = Repository(state / "strategy.git")
        tree = repository.tree(repository.resolve(revision))
    begin = first_trading_day(tape, from_day, configuration(tree["strategy.toml"]).warmup)
    python = environments.find(strategy_folder(start)).worker
    workers = Workers(sandboxed(), python, float(settings.account.endowment), seed)
    return Counterfactual(tape, workers, terms_of(settings)).scheduled([(begin, tree)], begin)


def unqualified(settings: Settings, state: Path) -> str:
    """Return why the settings' model may not propose now: a line where a qualification is required and missing.

    Certificates are a matter of the wall clock, in simulation too.
    """
    plain = settings.model_dump(mode="json")
    for role in ("coder", "test_author"):
        own = plain | {"model": settings.model.of(role).model_dump(mode="json")}
        standing = certificates.standing_of(state, own, datetime.now(UTC))
        if standing.required and standing.refusal and role not in settings.model.without:
            return standing.refusal
    return ""


def _broker(
    asked: Simulation,
    tape: Tape,
    begin: date,
    terms: Terms,
    facts: StoredFacts,
    own: OwnAccount | None,
    store: Store,
    closing: contextlib.ExitStack,
) -> Broker:
    if own is not None:

        def guard() -> None:
            kill_switch.demand(asked.state)
            asked.guard()

        def alert(mismatch: Mismatch) -> None:
            now = own.timer.now()
            key = f"mismatch/{mismatch.kind.value}/{mismatch.subject}/{now.date()}"
            with store.begin() as work:
                work.notices.add(Notice(key, "unwell", f"Books and broker differ: {mismatch}", now))

        return own.path(terms.friction, facts.progress()[0], guard, alert, facts.given, "trade" in asked.may)
    if asked.broker == "inprocess":
        return PaperExchange(terms.capital, terms.friction, terms.rules)
    from oomrl.adapters.http_exchange import simulated  # a second of imports that only this way needs

    return closing.enter_context(simulated(tape, begin, terms.capital, terms.friction, terms.rules))


def _own(asked: Simulation, tape: Tape, begin: date, store: Store, closing: contextlib.ExitStack) -> OwnAccount:
    """Reach a person's own account, and take stock of it before anything else is decided."""
    from oomrl.adapters.alpaca.stream import Listening  # a second of imports, as above
    from oomrl.adapters.own_account import OwnAccount, begun, reached

    terms, settings = asked.terms, asked.settings
    assert terms is not None
    if settings.loop.reviewer != "person":
        raise Refused(
            f'Expected loop.reviewer = "person" for an account at a broker, was "{settings.loop.reviewer}": '
            "only simulations deploy without a person."
        )
    require_paper_or_consent(settings, settings.broker.base_url)
    wake = Event()
    timer = asked.timer or WallTimer(wake)
    broker = reached(settings.broker, timer, os.environ, settings.service.http_timeout)
    closing.callback(broker.close)
    if not is_paper(settings.broker.base_url):
        require_paper_or_consent(settings, settings.broker.base_url, broker.account().number)
    stream = Listening(*broker.keys, settings.broker.stream_url, wake)
    if asked.timer is None and "trade" in asked.may:
        stream.start()
        closing.callback(stream.close)
    journal = StoredJournal(store, RUN)
    calendar = Calendar(settings.service.calendar, closures=settings.service.closures)
    opened = begun(journal, broker, terms, begin - timedelta(days=1))
    return OwnAccount(settings.broker, terms, broker, journal, timer, calendar, tape, opened, stream.reconnected)


def _adopting(own: OwnAccount, tape: Tape, account: Account, begin: date, store: Store) -> Market:
    from oomrl.adapters.own_account import Adopting

    def posted(entries: list[Entry]) -> None:
        with store.begin() as work:
            work.ledger.post(RUN, entries)

    return Adopting(tape, account, own.opening.positions, begin, posted)


def _judges_secret(asked: Simulation) -> bytes:
    """Return what hidden cases are drawn from: by the seed in simulations, which repeat; else a secret of its own."""
    if not asked.growing:
        return hashlib.sha256(f"oomrl/judge/{asked.seed}".encode()).digest()
    path = asked.state / "keys" / "judge.key"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with contextlib.suppress(FileExistsError):
        half = path.with_name(f".judge.{os.getpid()}")
        half.touch(mode=0o600)
        half.write_bytes(os.urandom(32))
        try:
            os.link(half, path)
        finally:
            half.unlink()
    return path.read_bytes()


def _digest(tree: Mapping[str, bytes]) -> str:
    return Tree(tree).digest()


class _Ticking:
    """Move the virtual clock with each close, and pass everything on to the person's watcher."""

    def __init__(self, watcher: Watcher, clock: VirtualClock) -> None:
        self._watcher, self._clock = watcher, clock

    def closed(self, record: SessionRecord, state: Capital, found: Loss | None) -> None:
        self._clock.day = record.day
        self._watcher.closed(record, state, found)

    def __getattr__(self, name: str) -> object:
        return getattr(self._watcher, name)
