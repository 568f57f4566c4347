"""All settings of the service, from a TOML file and the environment (`OOMRL_SECTION__NAME`).

Defaults are those of a simulation; nothing here can make the service trade live money.

Long by nature: it is a table, one class a section.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from oomrl.errors import Mistake

#: The most dollars of anything: what every database keeps to the cent.
MOST_DOLLARS = Decimal(10) ** 12


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Account(Section):
    """The endowment in dollars, and the riskless rate a year that reports use."""

    endowment: Decimal = Field(Decimal(1_000_000), gt=0, le=MOST_DOLLARS, decimal_places=2)
    compute_endowment: Decimal = Field(Decimal(100), ge=0, le=MOST_DOLLARS, decimal_places=2)
    riskless_rate: float = Field(0.0135, ge=0, lt=1)


class FrictionSettings(Section):
    """What trading costs in simulation; defaults are typical of US large companies.

    Half-spread in basis points of the price, impact as coefficient * daily volatility * sqrt(shares / session
    volume), commission in dollars a share, the regulatory fees of sales as a share of the amount (SEC) and in
    dollars a share (TAF). `assumed_bps` is what the strategy or its owner takes trading to cost, one side in basis
    points: friction that stays above it is a loss of its own kind.
    """

    half_spread_bps: float = Field(2.0, ge=0, le=1_000)
    impact_coefficient: float = Field(0.6, ge=0, le=100)
    commission_per_share: float = Field(0.0035, ge=0, le=1)
    sec_fee_rate: float = Field(0.0000278, ge=0, le=0.01)
    taf_per_share: float = Field(0.000166, ge=0, le=0.01)
    max_participation: float = Field(0.25, gt=0, le=1)
    assumed_bps: float = Field(8.0, gt=0, le=1_000)


class RewardSettings(Section):
    """The reward (Eq. 1 and 2): lambda (`fixed`) and gamma (`impact`) of its friction, its form, and P_terminal.

    The paper gives 0.08 % a side and no gamma; its root punishes tiny trades, so gamma is small by default.
    """

    fixed: float = Field(0.0008, ge=0, le=1)
    impact: float = Field(0.0002, ge=0, le=1)
    form: Literal["paper", "three_halves"] = "paper"
    norm: Literal["l1", "l2"] = "l2"
    penalty: float = Field(100.0, ge=0)


class LimitSettings(Section):
    """Limits that the service enforces whatever the strategy says."""

    gross: float = Field(1.0, gt=0, le=1.0)
    per_name: float = Field(0.35, gt=0, le=1.0)
    max_adv_share: float = Field(0.10, gt=0, le=1.0)
    max_orders: int = Field(2_000, ge=1)
    min_order_value: float = Field(100.0, ge=0)


class ThresholdSettings(Section):
    """Levels as fractions lost: of the endowments (principal loss), and of the high-water mark (drawdown).

    The two are never mixed. The principal's out-of-money level is the paper's tau. A long-only account shares the
    falls of its market, so drawdown is given more room.
    """

    principal_watch: float = Field(0.05, gt=0, le=1)
    principal_diagnose: float = Field(0.10, gt=0, le=1)
    principal_halt: float = Field(0.15, gt=0, le=1)
    principal_out_of_money: float = Field(0.20, gt=0, le=1)
    drawdown_watch: float = Field(0.10, gt=0, le=1)
    drawdown_diagnose: float = Field(0.20, gt=0, le=1)
    drawdown_halt: float = Field(0.60, gt=0, le=1)
    drawdown_out_of_money: float = Field(0.75, gt=0, le=1)


class LoopSettings(Section):
    """How the loop answers a loss.

    With `require_qualification` only a model that `oomrl qualify` has certified may propose; with `confirm_mandate`
    nothing is proposed before a person confirmed what is asked. `candidates` attempts are asked for at the same time
    and judged in their order, each an attempt that counts.
    """

    attempts: int = Field(3, ge=1, le=20)
    require_qualification: bool = False
    reviewer: Literal["auto", "person"] = "person"
    confirm_mandate: bool = False
    candidates: int = Field(1, ge=1, le=8)
    while_waiting: Literal["hold", "incumbent", "flatten"] = "hold"


_WINDOW = re.compile(
    r"(mon|tue|wed|thu|fri|sat|sun)(-(mon|tue|wed|thu|fri|sat|sun))?( ([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d)?"
)


class ReviewSettings(Section):
    """What counts as risk and as execution, how many people must approve it, and when deployments are made.

    Risk is what is held and how much of it; execution is how orders are worked, and what their limits are measured by.

    Paths are globs over the strategy repository, parameters `section.key` of strategy.toml. A window reads `mon-thu` or
    `mon-thu 20:30-23:00` in UTC; without any, every session's close will do.
    """

    risk_paths: tuple[str, ...] = (
        "src/*/decision.py",
        "src/*/parameters.py",
        "src/*/returns.py",
        "src/*/selection.py",
        "src/*/sizing.py",
        "src/*/strategy.py",
        "src/*/universe.py",
        "src/*/weights.py",
        "policy.toml",
    )
    risk_parameters: tuple[str, ...] = (
        "parameters.exposure",
        "parameters.max_weight",
        "parameters.few_names_weight",
        "parameters.max_holdings",
        "parameters.min_holdings",
        "parameters.hold_fraction",
        "parameters.keep_fraction",
        "parameters.volatility_sizing",
        "parameters.no_trade_band",
        "parameters.universe_size",
        "parameters.min_history",
        "parameters.min_price",
        "parameters.min_dollar_volume",
    )
    execution_paths: tuple[str, ...] = ("src/*/features.py", "src/*/history.py", "src/*/liquidity.py")
    execution_parameters: tuple[str, ...] = (
        "strategy.cadence",
        "parameters.max_participation",
        "parameters.max_sessions",
        "parameters.max_position_volume",
        "parameters.limit_volatilities",
    )
    approvals_where_risky: int = Field(2, ge=1, le=5)
    windows: tuple[str, ...] = ()

    @field_validator("windows")
    @classmethod
    def _readable(cls, windows: tuple[str, ...]) -> tuple[str, ...]:
        for window in windows:
            if not _WINDOW.fullmatch(window):
                raise ValueError("expected windows such as 'mon-thu' or 'mon-thu 20:30-23:00'")
        return windows


class WebSettings(Section):
    """Where the page is served, and how it is guarded.

    `public_url` is what people's browsers call it (scheme, host, port where it is another, no path); links on the page,
    in messages and of commands begin with it, and it is needed behind a proxy. Beyond this machine the page needs TLS:
    a certificate and key, or `trusted_proxies` (addresses) that end TLS before it. `token_days` is how long a token
    lasts.
    """

    host: str = "127.0.0.1"
    port: int = Field(8420, ge=0, le=65_535)
    public_url: str = ""
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    trusted_proxies: tuple[str, ...] = ()
    session_hours: float = Field(12, gt=0, le=24 * 30)
    idle_minutes: float = Field(60, gt=0, le=24 * 60)
    invitation_hours: float = Field(48, gt=0, le=24 * 30)
    token_days: int = Field(90, ge=1, le=3_650)
    failures_before_lockout: int = Field(5, ge=1, le=100)
    lockout_minutes: float = Field(15, gt=0, le=24 * 60)
    logins_a_minute: int = Field(10, ge=1)
    requests_a_minute: int = Field(1_200, ge=10)
    body_bytes: int = Field(1_000_000, ge=1_000)

    @field_validator("public_url")
    @classmethod
    def _address(cls, public_url: str) -> str:
        if public_url and not re.fullmatch(r"https?://(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+)(:\d{1,5})?/?", public_url):
            raise ValueError("expected an address such as 'https://review.example.org', without a path")
        return public_url.rstrip("/")

    def url(self, port: int | None = None) -> str:
        """Return what people's browsers call the page, without a slash at the end; `port` is where it is served."""
        if self.public_url:
            return self.public_url
        scheme = "https" if self.tls_certificate is not None else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port if port is None else port}"


class NotifySettings(Section):
    """Whom to tell. The addresses (apprise URLs, which hold secrets) come from the environment alone.

    `quiet` is a span such as `22:00-07:00` in `zone`, in which only what is urgent is told at once.
    """

    urls_env: str = "OOMRL_NOTIFY_URLS"
    quiet: str = ""
    zone: str = "UTC"
    kinds: tuple[str, ...] = (
        "loss",
        "proposal waiting",
        "halted",
        "out of money",
        "deployed",
        "rolled back",
        "unwell",
    )

    @field_validator("quiet")
    @classmethod
    def _span(cls, quiet: str) -> str:
        if quiet and not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d", quiet):
            raise ValueError("expected a span such as '22:00-07:00'")
        return quiet


class PriceSettings(Section):
    """Dollars for a million tokens of one model, read and written."""

    prompt: Decimal = Field(ge=0)
    completion: Decimal = Field(ge=0)


def _http(url: str) -> str:
    if not re.fullmatch(r"https?://[^\s/?#]+[^\s?#]*", url):
        raise ValueError("expected an address such as 'https://api.example.org/v1'")
    return url


#: The address of a service that is asked over HTTP.
Address = Annotated[str, AfterValidator(_http)]

Provider = Literal["offline", "manual", "openai"]
RoleName = Literal["analyst", "test_author", "coder", "critic"]


class RoleSettings(Section):
    """What one role's model has of its own; what is not set here is as the section [model] says."""

    provider: Provider | None = None
    name: str | None = None
    base_url: Address | None = None
    api_key_env: str | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    most_tokens: int | None = Field(None, ge=1)
    fallbacks: tuple[str, ...] | None = None


class ModelSettings(Section):
    """Which model answers. The key comes from the environment only and is never stored.

    `roles` gives a role a model of its own, `without` leaves roles out (the coder never), `budgets` are the tokens that
    a role's prompt may have. `fallbacks` answer where the model is gone or forbidden. With `structured` the endpoint is
    asked for JSON of a schema, until it says that it knows none. `prompt_price` and `completion_price` are the price of
    `name` and its fallbacks (dollars for a million tokens); `prices` names others.
    """

    provider: Provider = "offline"
    name: str = "gpt-5"
    base_url: Address | None = None
    api_key_env: str = "OPENAI_API_KEY"
    api: Literal["chat", "responses"] = "chat"
    fallbacks: tuple[str, ...] = ()
    temperature: float | None = Field(0.2, ge=0, le=2)
    most_tokens: int | None = Field(8_000, ge=1)
    structured: bool = True
    prompt_price: Decimal | None = Field(None, ge=0)
    completion_price: Decimal | None = Field(None, ge=0)
    prices: dict[str, PriceSettings] = Field(default_factory=dict)
    roles: dict[RoleName, RoleSettings] = Field(default_factory=dict)
    without: tuple[Literal["analyst", "test_author", "critic"], ...] = ()
    budgets: dict[RoleName, Annotated[int, Field(ge=500)]] = Field(default_factory=dict)

    def of(self, role: RoleName) -> ModelSettings:
        """Return the settings of a role's model."""
        own = self.roles.get(role)
        return self if own is None else self.model_copy(update=own.model_dump(exclude_none=True))


class EndpointSettings(Section):
    """How a model's endpoint is asked; nothing here changes what is asked, so that a run may go on under other values.

    `tries` of a prompt with growing waits; `breaker` failed prompts in a row leave the endpoint alone for
    `cooldown_seconds`. A simulation waits `patience_minutes` for an endpoint that is away before it stops; the daemon
    tries again by its own table. `traffic` writes each exchange to the state directory, without the key, or answers
    from what a folder (`cassettes`) holds, without any network.
    """

    timeout_seconds: float = Field(180, gt=0, le=3_600)
    tries: int = Field(5, ge=1, le=20)
    breaker: int = Field(3, ge=1, le=100)
    cooldown_seconds: float = Field(600, ge=0, le=86_400)
    patience_minutes: float = Field(120, ge=0, le=7 * 24 * 60)
    traffic: Literal["record", "replay", "off"] = "record"
    cassettes: Path | None = None


class DatabaseSettings(Section):
    """Where the store is: a file in the state directory, or PostgreSQL by URL.

    The URL may hold a password, so it is best given as OOMRL_DATABASE__URL; it is never logged or stored.
    """

    url: SecretStr | None = None


class LiveSettings(Section):
    """Live trading is refused unless all three say so: the switch, the account's own number, and the sentence."""

    trading: bool = False
    account: str = ""
    acknowledgement: str = ""


class ServiceSettings(Section):
    """How the daemon runs.

    `closures` are days on which the exchange stays shut though its calendar does not know it yet (a day of mourning).
    `listen` is where health, readiness and metrics are served ("" for nowhere).
    A leader's lease lives `lease_seconds`, longer by at least three than any request to a broker (`http_timeout`):
    it is renewed every other second, and no order goes out that could still be on its way when it ends.
    """

    calendar: str = "XNYS"
    closures: tuple[date, ...] = ()
    listen: str = "127.0.0.1:9464"
    stop_seconds: float = Field(60, gt=0, le=3_600)
    lease_seconds: float = Field(6, ge=2, le=60)
    http_timeout: float = Field(2.5, gt=0, le=50)
    backups: int = Field(14, ge=1, le=1_000)
    keep_days: int = Field(3 * 365, ge=30)


class ExecutorSettings(Section):
    """Where replays of candidate and incumbent run: `local` processes, or a Dask cluster by its scheduler's address.

    One process is the job's own. Every worker of a cluster needs this package, the strategy's interpreters, a sandbox.
    """

    kind: Literal["local", "dask"] = "local"
    processes: int = Field(1, ge=1, le=256)
    scheduler: str = ""


class BrokerSettings(Section):
    """How a person's own paper account is reached, and how orders are worked there.

    The keys come from the environment only, by the names here, and are never stored. `feed` names the consolidated feed
    (`sip`) or IEX's own for quotes; daily volumes always come from the consolidated one. A limit goes `collar_bps`
    beyond a quote that is at most `stale_seconds` old; what does not fill within `straggler_seconds` is cancelled and
    replaced; `sweep_minutes` before the close everything open is cancelled. Between two looks at the broker pass
    `cycle_seconds`, unless its stream tells of something earlier. Each kind of mismatch between books and broker leads
    to what its name says here.
    """

    base_url: Address = "https://paper-api.alpaca.markets"
    data_url: Address = "https://data.alpaca.markets"
    stream_url: str = "wss://paper-api.alpaca.markets/stream"
    key_env: str = "APCA_API_KEY_ID"
    secret_env: str = "APCA_API_SECRET_KEY"
    feed: Literal["sip", "iex"] = "iex"
    requests_per_minute: int = Field(200, ge=1, le=10_000)
    collar_bps: Decimal = Field(Decimal(50), ge=0, le=1_000)
    stale_seconds: float = Field(60, gt=0, le=86_400)
    straggler_seconds: float = Field(120, gt=0, le=86_400)
    sweep_minutes: float = Field(5, gt=0, le=120)
    cycle_seconds: float = Field(15, ge=1, le=3_600)
    foreign_order: Literal["alert", "halt"] = "alert"
    unknown_position: Literal["alert", "halt"] = "halt"
    cash_difference: Literal["alert", "halt"] = "halt"


class AccountOf(Section):
    """One of several accounts in one daemon: its tape, and what in its settings differs from the daemon's.

    With `broker = "alpaca"` it trades a person's own paper account: `existing` says what becomes of shares that it
    holds already (`adopt` takes them into the books, `refuse` does not begin while there are any), `symbols` fences off
    all other names, `capital` is the most dollars to work with.
    """

    tape: str
    start: str = "shipped"
    broker: Literal["simulated", "alpaca"] = "simulated"
    existing: Literal["adopt", "refuse"] = "refuse"
    symbols: tuple[str, ...] = ()
    capital: Decimal | None = Field(None, gt=0, le=MOST_DOLLARS, decimal_places=2)
    endowment: Decimal | None = Field(None, gt=0, le=MOST_DOLLARS, decimal_places=2)
    model: Literal["offline", "manual", "openai"] | None = None


#: Sections that a run's results depend on.
OUTCOME = {"account", "friction", "reward", "limits", "thresholds", "loop", "model"}


class Settings(BaseSettings):
    """The whole configuration. `load` reads the file; the environment wins over it."""

    model_config = SettingsConfigDict(extra="forbid", frozen=True, env_prefix="OOMRL_", env_nested_delimiter="__")

    account: Account = Account()
    friction: FrictionSettings = FrictionSettings()
    reward: RewardSettings = RewardSettings()
    limits: LimitSettings = LimitSettings()
    broker: BrokerSettings = BrokerSettings()
    thresholds: ThresholdSettings = ThresholdSettings()
    loop: LoopSettings = LoopSettings()
    model: ModelSettings = ModelSettings()
    endpoint: EndpointSettings = EndpointSettings()
    review: ReviewSettings = ReviewSettings()
    web: WebSettings = WebSettings()
    notify: NotifySettings = NotifySettings()
    database: DatabaseSettings = DatabaseSettings()
    service: ServiceSettings = ServiceSettings()
    live: LiveSettings = LiveSettings()
    executor: ExecutorSettings = ExecutorSettings()
    accounts: dict[str, AccountOf] = Field(default_factory=dict)

    def of(self, account: str) -> Settings:
        """Return the settings with what one of the accounts has of its own."""
        terms, changed = self.accounts[account], dict[str, object]()
        if terms.endowment is not None:
            changed["account"] = self.account.model_copy(update={"endowment": terms.endowment})
        if terms.model is not None:
            changed["model"] = self.model.model_copy(update={"provider": terms.model})
        return self.model_copy(update=changed)

    def of_the_run(self) -> dict[str, Any]:
        """Return what decides about a run's results: not where it is run, how it is watched and reviewed, no secret."""
        return self.model_dump(mode="json", include=OUTCOME)


def differences(began: Any, now: Any, name: str = "") -> list[str]:
    """Name what differs between two nested mappings of JSON, with both values.

    What only one of them has came or went with a version of the program and is left out.
    """
    if isinstance(began, Mapping) and isinstance(now, Mapping):
        each = (differences(began[part], now[part], f"{name}.{part}".strip(".")) for part in now if part in began)
        return [line for lines in each for line in lines]
    return [] if began == now else [f"{name} was {began!r}, is {now!r}"]


def load(path: Path | None, overrides: dict[str, Any] | None = None) -> Settings:
    """Read settings from a TOML file, the environment and explicit overrides, the later winning.

    Raises `Mistake` with the first thing that is wrong and where.
    """
    _refuse_unknown_sections()
    try:
        data: dict[str, Any] = {} if path is None else tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise Mistake(f"Expected a settings file at {path}, found none. `oomrl init` writes one.") from error
    except OSError as error:
        raise Mistake(f"Expected a settings file at {path}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Mistake(f"Expected TOML in {path}: {error}") from error
    for section, values in (overrides or {}).items():
        given = data.get(section, {})
        if isinstance(given, dict):  # what is no table is refused below
            data[section] = {**given, **values}
    try:
        return Settings(**data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":  # its value may be a secret at a wrong place
            raise Mistake(f"Setting {where}: expected one that there is (docs/examples/service.toml).") from error
        why = first["msg"].removeprefix("Value error, ")
        raise Mistake(f"Setting {where}: {why} (was {first.get('input')!r}).") from error
    except SettingsError as error:
        raise Mistake(f"Expected JSON in each OOMRL_SECTION of the environment, was none: {error}.") from error


def _refuse_unknown_sections() -> None:
    """Refuse a variable `OOMRL_SECTION__NAME` of no section: the library looks only for those that there are."""
    for variable in os.environ:
        section, nested, _ = variable.lower().removeprefix("oomrl_").partition("__")
        if variable.upper().startswith("OOMRL_") and nested and section not in Settings.model_fields:
            raise Mistake(
                f"Expected OOMRL_SECTION__NAME of a section that there is (docs/examples/service.toml), was {variable}."
            )
