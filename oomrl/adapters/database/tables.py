"""The declared schema. A migrated database must equal it (tests/migration).

Over 400 lines, because it is one list: a table that stands elsewhere would be missed by the comparison.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from oomrl.adapters.database.types import Exact, Utc

CENTS = 2
PRICE = 4
SHARES = 9
COST = 8

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(column_0_N_label)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# Orders, fills and ledger lines are most of all rows: on SQLite they are stored in their key's own tree, without a
# second one by row number, and a run's lines of some days are found by scanning the run.

#: SQLite numbers rows only for INTEGER keys; PostgreSQL gets 64 bits.
Key = BigInteger().with_variant(Integer(), "sqlite")


def _run() -> Column[int]:
    """Return the run that a row belongs to, as the first part of its key."""
    return Column("run_id", Key, ForeignKey("runs.id"), primary_key=True, autoincrement=False)


runs = Table(
    "runs",
    metadata,
    Column("id", Key, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("kind", String(32), nullable=False),
    Column("settings", JSON, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("tape_digest", String(128), nullable=False),
    Column("started_at", Utc, nullable=False),
    Column("status", String(16), nullable=False),
    Column("result", JSON(none_as_null=True)),
)

bars = Table(
    "bars",
    metadata,
    _run(),
    Column("day", Date, primary_key=True),
    Column("names", Integer, nullable=False),
    Column("blob", LargeBinary, nullable=False),
)

marks = Table(
    "marks",
    metadata,
    _run(),
    Column("day", Date, primary_key=True),
    Column("equity", Exact(CENTS), nullable=False),
    Column("cash", Exact(CENTS), nullable=False),
    Column("broker_cash", Exact(CENTS), nullable=False),
    Column("flow", Exact(CENTS), nullable=False),
    Column("pnl", Exact(CENTS), nullable=False),
    Column("benchmark", Double),
    Column("drawdown", Double, nullable=False),
    Column("principal_loss", Double, nullable=False),
    Column("reward", Double),
    Column("parts", JSON, nullable=False),
    Column("turnover", Double, nullable=False),
    Column("friction", Exact(CENTS), nullable=False),
    Column("state", String(32), nullable=False),
    Column("digest", String(64), nullable=False),
)

decisions = Table(
    "decisions",
    metadata,
    _run(),
    Column("day", Date, primary_key=True),
    Column("revision", String(64), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("weights", JSON, nullable=False),
    Column("plan", JSON, nullable=False),
    Column("reasons", JSON, nullable=False),
)

orders = Table(
    "orders",
    metadata,
    _run(),
    Column("client_order_id", String(128), primary_key=True),
    Column("decided_on", Date, nullable=False),
    Column("live_on", Date),
    Column("position", Integer, nullable=False),
    Column("symbol", String(32), nullable=False),
    Column("side", String(4), nullable=False),
    Column("shares", Exact(SHARES), nullable=False),
    Column("limit_price", Exact(PRICE)),
    Column("participation", Double, nullable=False),
    Column("state", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("unfilled", Exact(SHARES)),
    Column("cause", String(16), nullable=False),
    CheckConstraint("side IN ('buy', 'sell')", name="side"),
    Index(None, "run_id", "decided_on", "live_on"),
    sqlite_with_rowid=False,
)

order_events = Table(
    "order_events",
    metadata,
    _run(),
    Column("client_order_id", String(128), primary_key=True),
    Column("sequence", Integer, primary_key=True),
    Column("at", Utc, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("detail", JSON, nullable=False),
    ForeignKeyConstraint(["run_id", "client_order_id"], ["orders.run_id", "orders.client_order_id"]),
    sqlite_with_rowid=False,
)

fills = Table(
    "fills",
    metadata,
    _run(),
    Column("client_order_id", String(128), primary_key=True),
    Column("sequence", Integer, primary_key=True),
    Column("day", Date, nullable=False),
    Column("symbol", String(32), nullable=False),
    Column("shares", Exact(SHARES), nullable=False),
    Column("price", Exact(PRICE), nullable=False),
    Column("amount", Exact(CENTS), nullable=False),
    Column("commission", Exact(CENTS), nullable=False),
    Column("regulatory", Exact(CENTS), nullable=False),
    Column("reference", Double),
    Column("open", Double),
    Column("spread", Double),
    Column("impact", Double),
    ForeignKeyConstraint(["run_id", "client_order_id"], ["orders.run_id", "orders.client_order_id"]),
    Index(None, "run_id", "day"),
    sqlite_with_rowid=False,
)

ledger = Table(
    "ledger",
    metadata,
    _run(),
    Column("key", String(200), primary_key=True),
    Column("day", Date, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("book", String(16), nullable=False),
    Column("amount", Exact(CENTS), nullable=False),
    Column("symbol", String(32)),
    Column("shares", Exact(SHARES), nullable=False),
    Column("price", Exact(SHARES)),
    Column("client_order_id", String(128)),
    Column("note", Text, nullable=False),
    # The newest lines first, for people.
    Index(None, "run_id", "day"),
    sqlite_with_rowid=False,
)

checkpoints = Table(
    "checkpoints",
    metadata,
    _run(),
    Column("day", Date, primary_key=True),
    Column("blob", LargeBinary, nullable=False),
)

losses = Table(
    "losses",
    metadata,
    _run(),
    Column("id", String(64), primary_key=True),
    Column("day", Date, nullable=False),
    Column("level", String(16), nullable=False),
    Column("measure", String(32), nullable=False),
    Column("value", Double, nullable=False),
    Column("threshold", Double, nullable=False),
    Column("at", Utc, nullable=False),
    Column("detail", JSON, nullable=False),
)

diagnostics = Table(
    "diagnostics",
    metadata,
    _run(),
    Column("id", String(64), primary_key=True),
    Column("loss", String(64), nullable=False),
    Column("day", Date, nullable=False),
    Column("payload", JSON, nullable=False),
    Column("at", Utc, nullable=False),
    Column("mandate", Text, nullable=False),
    Column("mandate_by", String(200), nullable=False),
    Column("confirmed", Boolean, nullable=False),
    Column("status", String(16), nullable=False),
    ForeignKeyConstraint(["run_id", "loss"], ["losses.run_id", "losses.id"]),
    UniqueConstraint("run_id", "loss"),
)

prompts = Table(
    "prompts",
    metadata,
    _run(),
    Column("id", String(64), primary_key=True),
    Column("diagnostic", String(64), nullable=False),
    Column("role", String(32), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("version", String(64), nullable=False),
    Column("text", Text, nullable=False),
    Column("asked_at", Utc, nullable=False),
    Column("status", String(16), nullable=False),
    Column("reply", Text),
    Column("model", String(200), nullable=False),
    Column("prompt_tokens", BigInteger, nullable=False),
    Column("completion_tokens", BigInteger, nullable=False),
    Column("cost", Exact(COST), nullable=False),
    Column("answered_at", Utc),
    Column("note", Text, nullable=False),
    Column("finish", String(16), nullable=False, server_default="stop"),
    ForeignKeyConstraint(["run_id", "diagnostic"], ["diagnostics.run_id", "diagnostics.id"]),
    Index(None, "run_id", "status"),
)

proposals = Table(
    "proposals",
    metadata,
    _run(),
    Column("id", String(64), primary_key=True),
    Column("diagnostic", String(64), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("author", String(200), nullable=False),
    Column("base_revision", String(64), nullable=False),
    Column("base_tree", String(64), nullable=False),
    Column("result_tree", String(64), nullable=False),
    Column("logic_patch", Text, nullable=False),
    Column("tests_patch", Text, nullable=False),
    Column("explanation", Text, nullable=False),
    Column("repairs", JSON, nullable=False),
    Column("prompt", String(64), nullable=False),
    Column("status", String(24), nullable=False),
    Column("at", Utc, nullable=False),
    ForeignKeyConstraint(["run_id", "diagnostic"], ["diagnostics.run_id", "diagnostics.id"]),
    UniqueConstraint("run_id", "diagnostic", "attempt", "digest"),
    Index(None, "run_id", "status", "at"),
    Index(None, "run_id", "at"),
)

verdicts = Table(
    "verdicts",
    metadata,
    _run(),
    Column("digest", String(64), primary_key=True),
    Column("proposal", String(64), nullable=False),
    Column("outcome", String(16), nullable=False),
    Column("base_tree", String(64), nullable=False),
    Column("result_tree", String(64), nullable=False),
    Column("payload", JSON, nullable=False),
    Column("at", Utc, nullable=False),
    ForeignKeyConstraint(["run_id", "proposal"], ["proposals.run_id", "proposals.id"]),
    Index(None, "run_id", "proposal"),
)

reviews = Table(
    "reviews",
    metadata,
    _run(),
    Column("id", String(64), primary_key=True),
    Column("proposal", String(64), nullable=False),
    Column("reviewer", String(200), nullable=False),
    Column("act", String(24), nullable=False),
    Column("reason", Text, nullable=False),
    Column("base_tree", String(64), nullable=False),
    Column("result_tree", String(64), nullable=False),
    Column("verdict", String(64), nullable=False),
    Column("at", Utc, nullable=False),
    # Which came first, where the clock stood still.
    Column("sequence", Integer, nullable=False, server_default="0"),
    ForeignKeyConstraint(["run_id", "verdict"], ["verdicts.run_id", "verdicts.digest"]),
    Index(None, "run_id", "proposal"),
)

deployments = Table(
    "deployments",
    metadata,
    _run(),
    Column("sequence", Integer, primary_key=True),
    Column("revision", String(64), nullable=False),
    Column("base", String(64), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("day", Date, nullable=False),
    Column("at", Utc, nullable=False),
    Column("proposal", String(64), nullable=False),
    Column("reason", Text, nullable=False),
)

capital_events = Table(
    "capital_events",
    metadata,
    _run(),
    Column("sequence", Integer, primary_key=True),
    Column("key", String(200), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("day", Date, nullable=False),
    Column("at", Utc, nullable=False),
    Column("amount", Exact(CENTS), nullable=False),
    Column("by", String(200), nullable=False),
    Column("reason", Text, nullable=False),
    UniqueConstraint("run_id", "key"),
)

attestations = Table(
    "attestations",
    metadata,
    Column("sequence", Key, primary_key=True, autoincrement=False),
    Column("digest", String(64), nullable=False, unique=True),
    Column("previous", String(64), nullable=False),
    Column("kind", String(32), nullable=False),
    Column("subject", String(200), nullable=False),
    Column("envelope", Text, nullable=False),
    Column("at", Utc, nullable=False),
)

jobs = Table(
    "jobs",
    metadata,
    _run(),
    Column("job", String(32), primary_key=True),
    Column("session", Date, primary_key=True),
    Column("state", String(16), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("due_at", Utc, nullable=False),
    Column("started_at", Utc),
    Column("ended_at", Utc),
    Column("note", Text, nullable=False),
)

leases = Table(
    "leases",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("holder", String(200), nullable=False),
    Column("term", BigInteger, nullable=False),
    Column("until", Utc, nullable=False),
)

# What people are, say and do. Secrets are kept as digests alone.

users = Table(
    "users",
    metadata,
    Column("name", String(80), primary_key=True),
    Column("role", String(16), nullable=False),
    Column("password", String(200), nullable=False),
    Column("made_at", Utc, nullable=False),
    Column("active", Boolean, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("locked_until", Utc),
    Column("let_in_by", String(80), nullable=False, server_default=""),
    Column("confirmed_by", String(90), nullable=False, server_default=""),
)

logins = Table(
    "logins",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("user", String(80), ForeignKey("users.name"), nullable=False, index=True),
    Column("csrf", String(64), nullable=False),
    Column("made_at", Utc, nullable=False),
    Column("seen_at", Utc, nullable=False),
    Column("expires_at", Utc, nullable=False),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("user", String(80), ForeignKey("users.name"), nullable=False, index=True),
    Column("digest", String(64), nullable=False),
    Column("label", String(80), nullable=False),
    Column("scopes", JSON, nullable=False),
    Column("made_at", Utc, nullable=False),
    Column("expires_at", Utc, nullable=False),
    Column("revoked_at", Utc),
)

invitations = Table(
    "invitations",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("user", String(80), nullable=False),
    Column("role", String(16), nullable=False),
    Column("by", String(80), nullable=False),
    Column("made_at", Utc, nullable=False),
    Column("expires_at", Utc, nullable=False),
    Column("used_at", Utc),
)

looks = Table(
    "looks",
    metadata,
    _run(),
    Column("proposal", String(64), primary_key=True),
    Column("person", String(200), primary_key=True),
    Column("digest", String(64), primary_key=True),
    Column("at", Utc, nullable=False),
    ForeignKeyConstraint(["run_id", "proposal"], ["proposals.run_id", "proposals.id"]),
)

remarks = Table(
    "remarks",
    metadata,
    _run(),
    Column("id", String(64), primary_key=True),
    Column("proposal", String(64), nullable=False),
    Column("author", String(200), nullable=False),
    Column("text", Text, nullable=False),
    Column("at", Utc, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("path", String(400), nullable=False),
    Column("line", Integer, nullable=False),
    Column("side", String(4), nullable=False),
    Column("blocking", Boolean, nullable=False),
    Column("severity", String(16), nullable=False),
    Column("resolution", String(16), nullable=False),
    Column("answer", Text, nullable=False),
    Column("resolved_by", String(200), nullable=False),
    Column("resolved_at", Utc),
    ForeignKeyConstraint(["run_id", "proposal"], ["proposals.run_id", "proposals.id"]),
    Index(None, "run_id", "proposal"),
)

freezes = Table(
    "freezes",
    metadata,
    _run(),
    Column("id", String(64), primary_key=True),
    Column("first", Date, nullable=False),
    Column("last", Date, nullable=False),
    Column("reason", Text, nullable=False),
    Column("by", String(200), nullable=False),
    Column("at", Utc, nullable=False),
    Column("lifted_at", Utc),
    Column("lifted_by", String(200), nullable=False),
)

acts = Table(
    "acts",
    metadata,
    Column("sequence", Key, primary_key=True),
    Column("at", Utc, nullable=False),
    Column("who", String(200), nullable=False),
    Column("how", String(16), nullable=False),
    Column("act", String(32), nullable=False),
    Column("subject", String(200), nullable=False),
    Column("detail", Text, nullable=False),
    Column("address", String(64), nullable=False),
    Index(None, "subject"),
)

notices = Table(
    "notices",
    metadata,
    Column("key", String(200), primary_key=True),
    Column("kind", String(32), nullable=False),
    Column("text", Text, nullable=False),
    Column("at", Utc, nullable=False),
    Column("sent_at", Utc),
)

placements = Table(
    "placements",
    metadata,
    _run(),
    Column("client_order_id", String(128), primary_key=True),
    Column("for_order", String(128), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("decided_on", Date, nullable=False),
    Column("symbol", String(32), nullable=False),
    Column("side", String(4), nullable=False),
    Column("qty", Exact(SHARES), nullable=False),
    Column("limit_price", Exact(PRICE)),
    Column("participation", Double, nullable=False),
    Column("intended_at", Utc, nullable=False),
    Column("state", String(16), nullable=False),
    Column("broker_id", String(64)),
    Column("filled", Exact(SHARES), nullable=False),
    Column("cancelling", Boolean, nullable=False),
    Column("doubtful", Boolean, nullable=False),
    Column("note", Text, nullable=False),
    UniqueConstraint("run_id", "for_order", "attempt"),
)

broker_fills = Table(
    "broker_fills",
    metadata,
    _run(),
    Column("id", String(128), primary_key=True),
    Column("client_order_id", String(128), nullable=False),
    Column("for_order", String(128), nullable=False),
    Column("broker_order", String(64), nullable=False),
    Column("day", Date, nullable=False),
    Column("symbol", String(32), nullable=False),
    Column("side", String(4), nullable=False),
    Column("qty", Exact(SHARES), nullable=False),
    Column("price", Exact(SHARES), nullable=False),
    Column("at", Utc, nullable=False),
    Column("detail", JSON(none_as_null=True)),
    ForeignKeyConstraint(["run_id", "client_order_id"], ["placements.run_id", "placements.client_order_id"]),
    Index(None, "run_id", "for_order"),
)

cash_moves = Table(
    "cash_moves",
    metadata,
    _run(),
    Column("id", String(128), primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("day", Date, nullable=False),
    Column("amount", Exact(CENTS), nullable=False),
    Column("symbol", String(32)),
    Column("qty", Exact(SHARES), nullable=False),
    Column("a_share", Exact(SHARES)),
    Column("note", Text, nullable=False),
)

mismatches = Table(
    "mismatches",
    metadata,
    _run(),
    Column("sequence", Integer, primary_key=True),
    Column("at", Utc, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("subject", String(128), nullable=False),
    Column("expected", Text, nullable=False),
    Column("found", Text, nullable=False),
    Column("policy", String(16), nullable=False),
)
