"""Check everything that can go wrong before it does, and say of each fault how to mend it."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args
from urllib.parse import urlsplit

from guardrails.sandbox import Sandbox, SandboxError
from oomrl.adapters import environments
from oomrl.adapters.audit import Audit
from oomrl.adapters.database import Store, schema
from oomrl.adapters.database.engine import open_engine
from oomrl.adapters.database.place import folder, place
from oomrl.adapters.kill_switch import stopped
from oomrl.adapters.repository import git_here
from oomrl.adapters.starts import start_tree, strategy_folder
from oomrl.adapters.strategies import configuration
from oomrl.calendar import Calendar
from oomrl.daemon import backup
from oomrl.daemon.began import changed
from oomrl.daemon.health import MIN_FREE_BYTES
from oomrl.errors import Mistake, OomrlError
from oomrl.exchange.tape_files import load_tape
from oomrl.live import is_paper, require_paper_or_consent
from oomrl.settings import ModelSettings, RoleName, Settings

SKEW = timedelta(seconds=2)
#: The longest time between two closes of a year, over Christmas or Easter, is a little more than four days.
STALE_BACKUP = timedelta(days=4, hours=12)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. `state` is ok, warn or fault; `mend` says what to do about anything but ok."""

    check: str
    state: str
    found: str
    mend: str = ""


class Fault(Exception):
    """A check's fault, with the way to mend it."""

    def __init__(self, found: str, mend: str, state: str = "fault") -> None:
        super().__init__(found)
        self.found, self.mend, self.state = found, mend, state


def examine(state: Path, settings: Settings) -> Iterator[Finding]:
    """Yield a finding for each check, each made whatever the others find."""
    checks: list[tuple[str, Callable[[], str]]] = [
        ("state directory", lambda: _directory(state)),
        ("disk", lambda: _disk(state)),
        ("kill switch", lambda: _switch(state)),
        ("database", lambda: _database(state, settings)),
        ("clock", lambda: _clock(state, settings)),
        ("calendar", lambda: _calendar(settings)),
        ("sandbox", _sandbox),
        ("git", _git),
        ("live trading", lambda: _live(settings)),
        ("broker credentials", lambda: _credentials(settings)),
        ("model", lambda: _model(settings)),
        ("lease", lambda: _lease(settings)),
        ("executor", lambda: _executor(settings)),
    ]
    for name in settings.accounts:
        checks += [
            (f"account {name}: strategy", lambda name=name: _strategy(settings, name)),  # type: ignore[misc]
            (f"account {name}: settings", lambda name=name: _settings(state, settings, name)),  # type: ignore[misc]
            (f"account {name}: tape", lambda name=name: _tape(settings, name)),  # type: ignore[misc]
            (f"account {name}: audit chain", lambda name=name: _audit(state, name)),  # type: ignore[misc]
            (f"account {name}: backup", lambda name=name: _backup(state, name)),  # type: ignore[misc]
        ]
    if not settings.accounts:
        yield Finding("accounts", "fault", "none", "add [accounts.main] with a tape, or run `oomrl init`")
    for name, look in checks:
        try:
            yield Finding(name, "ok", look())
        except Fault as fault:
            yield Finding(name, fault.state, fault.found, fault.mend)
        except (OomrlError, SandboxError, OSError) as error:
            yield Finding(name, "fault", str(error), "mend what the line says, then run `oomrl doctor` again")


def _directory(state: Path) -> str:
    if not state.is_dir():
        raise Fault(f"{state} is missing", "run `oomrl init`, or name another --state")
    if not os.access(state, os.W_OK | os.X_OK):
        raise Fault(f"{state} cannot be written", "let the service's user write there: chown it, or chmod u+rwx")
    if state.stat().st_mode & 0o022:
        raise Fault(f"{state} can be written by others", f"chmod go-w {state}", "warn")
    return str(state)


def _disk(state: Path) -> str:
    usage = shutil.disk_usage(state if state.is_dir() else Path.cwd())
    if usage.free < MIN_FREE_BYTES:
        raise Fault(f"{usage.free:,} bytes free", f"make room: {MIN_FREE_BYTES:,} bytes are needed before each open")
    return f"{usage.free / 1e9:.1f} GB free"


def _switch(state: Path) -> str:
    words = stopped(state)
    if words:
        raise Fault(f"halted {words}", "`oomrl resume --reason ...` lets orders go out again", "warn")
    return "not engaged"


def _database(state: Path, settings: Settings) -> str:
    where = place(state, settings)
    if settings.database.url is None and not Path(where).exists():
        return "none yet: made at the first start"
    engine = open_engine(where)
    try:
        with engine.connect() as connection:
            at = schema.current(connection)
    except Exception as error:  # noqa: BLE001 - the driver's many errors are one finding here
        said = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        server = "check that the server runs, the URL in OOMRL_DATABASE__URL, and the password"
        file = "give the service's user the right to the file and its folder, or run `oomrl restore`"
        raise Fault(said, server if settings.database.url else file) from error
    finally:
        engine.dispose()
    if at != schema.newest():
        what = f"schema {at or 'none'}, this version needs {schema.newest()}"
        raise Fault(what, "it is brought up at the next start: run `oomrl backup` first", "warn")
    with Store.open(where) as store:
        store.check()
    return f"{engine.dialect.name}, schema {at}, sound"


def _clock(state: Path, settings: Settings) -> str:
    if settings.database.url is None:
        return f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC; nothing to compare it with"
    with Store.open(place(state, settings)) as store, store.read() as view:
        skew = view.leases.now() - datetime.now(UTC)
    if abs(skew) > SKEW:
        raise Fault(
            f"{skew.total_seconds():+.1f} s off the database's", "let NTP set both clocks: timedatectl set-ntp true"
        )
    return f"{skew.total_seconds():+.3f} s off the database's"


def _calendar(settings: Settings) -> str:
    calendar = Calendar(settings.service.calendar, closures=settings.service.closures)
    last, today = calendar.hours[-1].day, datetime.now(UTC).date()
    if last < today + timedelta(days=90):
        raise Fault(f"{calendar.name} ends on {last}", "upgrade the package exchange-calendars")
    following = calendar.between(today - timedelta(days=1), today + timedelta(days=14))[0]
    hours = f"{following.opens:%H:%M} to {following.closes:%H:%M} UTC"
    return f"{calendar.name} to {last}; next session {following.day}, {hours}"


def _sandbox() -> str:
    sandbox = Sandbox.choose()
    if sandbox.profile != "S3":
        raise Fault(f"profile {sandbox.profile}", "install bubblewrap and allow user namespaces: S3", "warn")
    return f"profile {sandbox.profile}"


def _strategy(settings: Settings, account: str) -> str:
    start = settings.accounts[account].start
    name = configuration(start_tree(start)[0]["strategy.toml"]).name
    found = environments.find(strategy_folder(start))
    return f"{name}, run by {found.worker}, tested by {found.gate}"


def _git() -> str:
    try:
        return git_here()
    except Mistake as error:
        raise Fault(str(error), "install git: deployed strategies are kept in a repository of it") from error


def _live(settings: Settings) -> str:
    url = settings.broker.base_url
    if is_paper(url):
        return "off: paper trading alone"
    require_paper_or_consent(settings, url)
    raise Fault(f"{url} trades REAL MONEY", "set broker.base_url to the paper address unless you mean it", "warn")


def _credentials(settings: Settings) -> str:
    broker = settings.broker
    if not any(account.broker == "alpaca" for account in settings.accounts.values()):
        return "none needed: the embedded paper exchange"
    missing = [name for name in (broker.key_env, broker.secret_env) if not os.environ.get(name)]
    if missing:
        raise Fault(f"{' and '.join(missing)} not set", "put the keys of the paper account into the environment")
    _reach(broker.base_url, "the broker")
    return f"{broker.key_env} is set, {urlsplit(broker.base_url).hostname} answers; quotes from the feed {broker.feed}"


def _model(settings: Settings) -> str:
    model = settings.model
    asked = {role: model.of(role) for role in get_args(RoleName) if role not in model.without}
    return "; ".join(dict.fromkeys(_endpoint(chosen) for chosen in asked.values()))


def _endpoint(model: ModelSettings) -> str:
    if model.provider != "openai":
        return f"{model.provider}: no endpoint"
    if not os.environ.get(model.api_key_env) and not model.base_url:
        raise Fault(f"{model.api_key_env} is not set", f"export {model.api_key_env}, or name model.base_url")
    url = model.base_url or "https://api.openai.com/v1"
    _reach(url, "the model endpoint")
    if model.name not in model.prices and (model.prompt_price is None or model.completion_price is None):
        what = f"no price is set for {model.name}"
        raise Fault(what, "set model.prompt_price and model.completion_price: bills need them", "warn")
    return f"{model.name} at {urlsplit(url).hostname} answers"


def _reach(url: str, what: str) -> None:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname or "", port), timeout=5).close()
    except OSError as error:
        raise Fault(
            f"{what} at {parts.hostname}:{port}: {error}", "check the address, the network and the firewall"
        ) from error


def _lease(settings: Settings) -> str:
    from oomrl.daemon.serve import BEAT

    service = settings.service
    if service.lease_seconds < service.http_timeout + BEAT + 1:
        raise Fault(
            f"{service.lease_seconds} s", f"set service.lease_seconds to {service.http_timeout + BEAT + 1} or more"
        )
    return f"{service.lease_seconds} s, requests give up after {service.http_timeout} s"


def _executor(settings: Settings) -> str:
    chosen = settings.executor
    if chosen.kind == "local":
        return f"{chosen.processes} local processes"
    try:
        from distributed import Client
    except ImportError:
        raise Fault("Dask is not installed", "pip install 'oomrl[dask]'") from None
    try:
        with Client(chosen.scheduler, timeout=5, set_as_default=False) as client:
            workers = len(client.scheduler_info(n_workers=-1)["workers"])
    except OSError as error:
        mend = "check the address, the network and the firewall"
        raise Fault(f"the scheduler at {chosen.scheduler}: {error}", mend) from error
    if not workers:
        raise Fault(f"Dask at {chosen.scheduler} has no workers", f"start some: dask worker {chosen.scheduler}")
    return f"Dask at {chosen.scheduler} with {workers} workers"


def _tape(settings: Settings, account: str) -> str:
    terms = settings.accounts[account]
    tape = load_tape(terms.tape)
    calendar = Calendar(settings.service.calendar, closures=settings.service.closures)
    closed = calendar.last_closed(datetime.now(UTC), timedelta(minutes=20))
    warmup = configuration(start_tree(terms.start)[0]["strategy.toml"]).warmup
    if len(tape.days) <= warmup:
        raise Fault(f"{len(tape.days)} sessions", f"the strategy needs {warmup} to warm up: add older ones")
    if closed is not None and tape.days[-1] < closed.day:
        what = f"ends on {tape.days[-1]}, the last session was {closed.day}"
        own = terms.broker == "alpaca" and terms.tape.endswith(".parquet")
        mend = "the daemon adds what is missing" if own else "let your download add a session a day, after the close"
        raise Fault(what, mend, "warn")
    return f"{len(tape.days)} sessions to {tape.days[-1]}, {len(tape.symbols)} names"


def _settings(state: Path, settings: Settings, account: str) -> str:
    found = changed(state, settings, account)
    if found:
        raise Fault("; ".join(found), "change them back: an account keeps what it began with, see `oomrl endow`")
    return "as it began"


def _audit(state: Path, account: str) -> str:
    own = folder(state, account)
    if not (own / "audit.jsonl").exists():
        return "none yet"
    head = Audit(own).log.verify()
    return f"{head.entries} statements hold; head {head.text()}"


def _backup(state: Path, account: str) -> str:
    kept = sorted(backup.folder(folder(state, account)).glob(f"*{backup.SUFFIX}"))
    if not kept:
        raise Fault("none", "run `oomrl backup`; the daemon makes one after each session", "warn")
    age = datetime.now(UTC) - datetime.fromtimestamp(kept[-1].stat().st_mtime, UTC)
    if age > STALE_BACKUP:
        why = "the newest file in the account's digests/ says why the job failed"
        raise Fault(f"{kept[-1].name} is {age.days} days old", why, "warn")
    return f"{len(kept)}, newest {kept[-1].name}"
