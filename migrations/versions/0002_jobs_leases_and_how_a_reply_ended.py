"""Jobs, leases, and how a reply ended"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def exact(scale: int) -> sa.types.TypeEngine[object]:
    return sa.Numeric(24, scale).with_variant(sa.BigInteger(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "leases",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("holder", sa.String(length=200), nullable=False),
        sa.Column("term", sa.BigInteger(), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_leases")),
    )
    op.create_table(
        "jobs",
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("job", sa.String(length=32), nullable=False),
        sa.Column("session", sa.Date(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("note", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_jobs_run_id")),
        sa.PrimaryKeyConstraint("run_id", "job", "session", name=op.f("pk_jobs")),
    )
    with op.batch_alter_table("prompts", schema=None) as batch_op:
        batch_op.add_column(sa.Column("finish", sa.String(length=16), server_default="stop", nullable=False))


def downgrade() -> None:
    with op.batch_alter_table("prompts", schema=None) as batch_op:
        batch_op.drop_column("finish")

    op.drop_table("jobs")
    op.drop_table("leases")
