"""Placements, the broker's fills, lines of the account, mismatches"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def exact(scale: int) -> sa.types.TypeEngine[object]:
    return sa.Numeric(24, scale).with_variant(sa.BigInteger(), "sqlite")


def run() -> sa.Column[int]:
    key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    return sa.Column("run_id", key, autoincrement=False, nullable=False)


def upgrade() -> None:
    op.create_table(
        "placements",
        run(),
        sa.Column("client_order_id", sa.String(length=128), nullable=False),
        sa.Column("for_order", sa.String(length=128), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("decided_on", sa.Date(), nullable=False),
        sa.Column("symbol", sa.String(length=32), nullable=False),
        sa.Column("side", sa.String(length=4), nullable=False),
        sa.Column("qty", exact(9), nullable=False),
        sa.Column("limit_price", exact(4), nullable=True),
        sa.Column("participation", sa.Double(), nullable=False),
        sa.Column("intended_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("broker_id", sa.String(length=64), nullable=True),
        sa.Column("filled", exact(9), nullable=False),
        sa.Column("cancelling", sa.Boolean(), nullable=False),
        sa.Column("doubtful", sa.Boolean(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_placements_run_id")),
        sa.PrimaryKeyConstraint("run_id", "client_order_id", name=op.f("pk_placements")),
        sa.UniqueConstraint("run_id", "for_order", "attempt", name=op.f("uq_placements_run_id_for_order_attempt")),
    )
    op.create_table(
        "broker_fills",
        run(),
        sa.Column("id", sa.String(length=128), nullable=False),
        sa.Column("client_order_id", sa.String(length=128), nullable=False),
        sa.Column("for_order", sa.String(length=128), nullable=False),
        sa.Column("broker_order", sa.String(length=64), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("symbol", sa.String(length=32), nullable=False),
        sa.Column("side", sa.String(length=4), nullable=False),
        sa.Column("qty", exact(9), nullable=False),
        sa.Column("price", exact(9), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("detail", sa.JSON(none_as_null=True), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_broker_fills_run_id")),
        sa.ForeignKeyConstraint(
            ["run_id", "client_order_id"],
            ["placements.run_id", "placements.client_order_id"],
            name=op.f("fk_broker_fills_run_id_client_order_id"),
        ),
        sa.PrimaryKeyConstraint("run_id", "id", name=op.f("pk_broker_fills")),
    )
    op.create_index(
        op.f("ix_broker_fills_run_id_broker_fills_for_order"), "broker_fills", ["run_id", "for_order"], unique=False
    )
    op.create_table(
        "cash_moves",
        run(),
        sa.Column("id", sa.String(length=128), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("amount", exact(2), nullable=False),
        sa.Column("symbol", sa.String(length=32), nullable=True),
        sa.Column("qty", exact(9), nullable=False),
        sa.Column("a_share", exact(9), nullable=True),
        sa.Column("note", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_cash_moves_run_id")),
        sa.PrimaryKeyConstraint("run_id", "id", name=op.f("pk_cash_moves")),
    )
    op.create_table(
        "mismatches",
        run(),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("subject", sa.String(length=128), nullable=False),
        sa.Column("expected", sa.Text(), nullable=False),
        sa.Column("found", sa.Text(), nullable=False),
        sa.Column("policy", sa.String(length=16), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_mismatches_run_id")),
        sa.PrimaryKeyConstraint("run_id", "sequence", name=op.f("pk_mismatches")),
    )


def downgrade() -> None:
    op.drop_table("mismatches")
    op.drop_table("cash_moves")
    op.drop_index(op.f("ix_broker_fills_run_id_broker_fills_for_order"), table_name="broker_fills")
    op.drop_table("broker_fills")
    op.drop_table("placements")
