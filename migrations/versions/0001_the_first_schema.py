"""The first schema"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def exact(scale: int) -> sa.types.TypeEngine[object]:
    return sa.Numeric(24, scale).with_variant(sa.BigInteger(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "attestations",
        sa.Column(
            "sequence", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("previous", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("subject", sa.String(length=200), nullable=False),
        sa.Column("envelope", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("sequence", name=op.f("pk_attestations")),
        sa.UniqueConstraint("digest", name=op.f("uq_attestations_digest")),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("tape_digest", sa.String(length=128), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("result", sa.JSON(none_as_null=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sa.UniqueConstraint("name", name=op.f("uq_runs_name")),
    )
    op.create_table(
        "bars",
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("names", sa.Integer(), nullable=False),
        sa.Column("blob", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_bars_run_id")),
        sa.PrimaryKeyConstraint("run_id", "day", name=op.f("pk_bars")),
    )
    op.create_table(
        "capital_events",
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("amount", exact(2), nullable=False),
        sa.Column("by", sa.String(length=200), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_capital_events_run_id")),
        sa.PrimaryKeyConstraint("run_id", "sequence", name=op.f("pk_capital_events")),
        sa.UniqueConstraint("run_id", "key", name=op.f("uq_capital_events_run_id_key")),
    )
    op.create_table(
        "checkpoints",
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("blob", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_checkpoints_run_id")),
        sa.PrimaryKeyConstraint("run_id", "day", name=op.f("pk_checkpoints")),
    )
    op.create_table(
        "decisions",
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("revision", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("weights", sa.JSON(), nullable=False),
        sa.Column("plan", sa.JSON(), nullable=False),
        sa.Column("reasons", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_decisions_run_id")),
        sa.PrimaryKeyConstraint("run_id", "day", name=op.f("pk_decisions")),
    )
    op.create_table(
        "deployments",
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("revision", sa.String(length=64), nullable=False),
        sa.Column("base", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("proposal", sa.String(length=64), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_deployments_run_id")),
        sa.PrimaryKeyConstraint("run_id", "sequence", name=op.f("pk_deployments")),
    )
    op.create_table(
        "ledger",
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("book", sa.String(length=16), nullable=False),
        sa.Column("amount", exact(2), nullable=False),
        sa.Column("symbol", sa.String(length=32), nullable=True),
        sa.Column("shares", exact(9), nullable=False),
        sa.Column("price", exact(9), nullable=True),
        sa.Column("client_order_id", sa.String(length=128), nullable=True),
        sa.Column("note", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_ledger_run_id")),
        sa.PrimaryKeyConstraint("run_id", "key", name=op.f("pk_ledger")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "losses",
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("level", sa.String(length=16), nullable=False),
        sa.Column("measure", sa.String(length=32), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("threshold", sa.Double(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_losses_run_id")),
        sa.PrimaryKeyConstraint("run_id", "id", name=op.f("pk_losses")),
    )
    op.create_table(
        "marks",
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("equity", exact(2), nullable=False),
        sa.Column("cash", exact(2), nullable=False),
        sa.Column("broker_cash", exact(2), nullable=False),
        sa.Column("flow", exact(2), nullable=False),
        sa.Column("pnl", exact(2), nullable=False),
        sa.Column("benchmark", sa.Double(), nullable=True),
        sa.Column("drawdown", sa.Double(), nullable=False),
        sa.Column("principal_loss", sa.Double(), nullable=False),
        sa.Column("reward", sa.Double(), nullable=True),
        sa.Column("parts", sa.JSON(), nullable=False),
        sa.Column("turnover", sa.Double(), nullable=False),
        sa.Column("friction", exact(2), nullable=False),
        sa.Column("state", sa.String(length=32), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_marks_run_id")),
        sa.PrimaryKeyConstraint("run_id", "day", name=op.f("pk_marks")),
    )
    op.create_table(
        "orders",
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("client_order_id", sa.String(length=128), nullable=False),
        sa.Column("decided_on", sa.Date(), nullable=False),
        sa.Column("live_on", sa.Date(), nullable=True),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("symbol", sa.String(length=32), nullable=False),
        sa.Column("side", sa.String(length=4), nullable=False),
        sa.Column("shares", exact(9), nullable=False),
        sa.Column("limit_price", exact(4), nullable=True),
        sa.Column("participation", sa.Double(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("unfilled", exact(9), nullable=True),
        sa.Column("cause", sa.String(length=16), nullable=False),
        sa.CheckConstraint("side IN ('buy', 'sell')", name=op.f("ck_orders_side")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_orders_run_id")),
        sa.PrimaryKeyConstraint("run_id", "client_order_id", name=op.f("pk_orders")),
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("orders", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_orders_run_id_orders_decided_on_orders_live_on"),
            ["run_id", "decided_on", "live_on"],
            unique=False,
        )

    op.create_table(
        "diagnostics",
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("loss", sa.String(length=64), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("mandate", sa.Text(), nullable=False),
        sa.Column("mandate_by", sa.String(length=200), nullable=False),
        sa.Column("confirmed", sa.Boolean(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id", "loss"], ["losses.run_id", "losses.id"], name=op.f("fk_diagnostics_run_id_loss")
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_diagnostics_run_id")),
        sa.PrimaryKeyConstraint("run_id", "id", name=op.f("pk_diagnostics")),
        sa.UniqueConstraint("run_id", "loss", name=op.f("uq_diagnostics_run_id_loss")),
    )
    op.create_table(
        "fills",
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("client_order_id", sa.String(length=128), nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("symbol", sa.String(length=32), nullable=False),
        sa.Column("shares", exact(9), nullable=False),
        sa.Column("price", exact(4), nullable=False),
        sa.Column("amount", exact(2), nullable=False),
        sa.Column("commission", exact(2), nullable=False),
        sa.Column("regulatory", exact(2), nullable=False),
        sa.Column("reference", sa.Double(), nullable=True),
        sa.Column("open", sa.Double(), nullable=True),
        sa.Column("spread", sa.Double(), nullable=True),
        sa.Column("impact", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["run_id", "client_order_id"],
            ["orders.run_id", "orders.client_order_id"],
            name=op.f("fk_fills_run_id_client_order_id"),
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_fills_run_id")),
        sa.PrimaryKeyConstraint("run_id", "client_order_id", "sequence", name=op.f("pk_fills")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "order_events",
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("client_order_id", sa.String(length=128), nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id", "client_order_id"],
            ["orders.run_id", "orders.client_order_id"],
            name=op.f("fk_order_events_run_id_client_order_id"),
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_order_events_run_id")),
        sa.PrimaryKeyConstraint("run_id", "client_order_id", "sequence", name=op.f("pk_order_events")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "prompts",
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("diagnostic", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=32), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("version", sa.String(length=64), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("reply", sa.Text(), nullable=True),
        sa.Column("model", sa.String(length=200), nullable=False),
        sa.Column("prompt_tokens", sa.BigInteger(), nullable=False),
        sa.Column("completion_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost", exact(8), nullable=False),
        sa.Column("answered_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("note", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id", "diagnostic"],
            ["diagnostics.run_id", "diagnostics.id"],
            name=op.f("fk_prompts_run_id_diagnostic"),
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_prompts_run_id")),
        sa.PrimaryKeyConstraint("run_id", "id", name=op.f("pk_prompts")),
    )
    with op.batch_alter_table("prompts", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_prompts_run_id_prompts_status"), ["run_id", "status"], unique=False)

    op.create_table(
        "proposals",
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("diagnostic", sa.String(length=64), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("author", sa.String(length=200), nullable=False),
        sa.Column("base_revision", sa.String(length=64), nullable=False),
        sa.Column("base_tree", sa.String(length=64), nullable=False),
        sa.Column("result_tree", sa.String(length=64), nullable=False),
        sa.Column("logic_patch", sa.Text(), nullable=False),
        sa.Column("tests_patch", sa.Text(), nullable=False),
        sa.Column("explanation", sa.Text(), nullable=False),
        sa.Column("repairs", sa.JSON(), nullable=False),
        sa.Column("prompt", sa.String(length=64), nullable=False),
        sa.Column("status", sa.String(length=24), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id", "diagnostic"],
            ["diagnostics.run_id", "diagnostics.id"],
            name=op.f("fk_proposals_run_id_diagnostic"),
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_proposals_run_id")),
        sa.PrimaryKeyConstraint("run_id", "id", name=op.f("pk_proposals")),
        sa.UniqueConstraint(
            "run_id", "diagnostic", "attempt", "digest", name=op.f("uq_proposals_run_id_diagnostic_attempt_digest")
        ),
    )
    op.create_table(
        "verdicts",
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("proposal", sa.String(length=64), nullable=False),
        sa.Column("outcome", sa.String(length=16), nullable=False),
        sa.Column("base_tree", sa.String(length=64), nullable=False),
        sa.Column("result_tree", sa.String(length=64), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id", "proposal"], ["proposals.run_id", "proposals.id"], name=op.f("fk_verdicts_run_id_proposal")
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_verdicts_run_id")),
        sa.PrimaryKeyConstraint("run_id", "digest", name=op.f("pk_verdicts")),
    )
    with op.batch_alter_table("verdicts", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_verdicts_run_id_verdicts_proposal"), ["run_id", "proposal"], unique=False)

    op.create_table(
        "reviews",
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("proposal", sa.String(length=64), nullable=False),
        sa.Column("reviewer", sa.String(length=200), nullable=False),
        sa.Column("act", sa.String(length=24), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("base_tree", sa.String(length=64), nullable=False),
        sa.Column("result_tree", sa.String(length=64), nullable=False),
        sa.Column("verdict", sa.String(length=64), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id", "verdict"], ["verdicts.run_id", "verdicts.digest"], name=op.f("fk_reviews_run_id_verdict")
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_reviews_run_id")),
        sa.PrimaryKeyConstraint("run_id", "id", name=op.f("pk_reviews")),
    )
    with op.batch_alter_table("reviews", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_reviews_run_id_reviews_proposal"), ["run_id", "proposal"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("reviews", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_reviews_run_id_reviews_proposal"))

    op.drop_table("reviews")
    with op.batch_alter_table("verdicts", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_verdicts_run_id_verdicts_proposal"))

    op.drop_table("verdicts")
    op.drop_table("proposals")
    with op.batch_alter_table("prompts", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_prompts_run_id_prompts_status"))

    op.drop_table("prompts")
    op.drop_table("order_events")
    op.drop_table("fills")
    op.drop_table("diagnostics")
    with op.batch_alter_table("orders", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_orders_run_id_orders_decided_on_orders_live_on"))

    op.drop_table("orders")
    op.drop_table("marks")
    op.drop_table("losses")
    op.drop_table("ledger")
    op.drop_table("deployments")
    op.drop_table("decisions")
    op.drop_table("checkpoints")
    op.drop_table("capital_events")
    op.drop_table("bars")
    op.drop_table("runs")
    op.drop_table("attestations")
