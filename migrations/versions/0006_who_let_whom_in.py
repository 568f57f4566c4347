"""Who let whom in"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("users") as batch_op:
        batch_op.add_column(sa.Column("let_in_by", sa.String(length=80), server_default="", nullable=False))
        batch_op.add_column(sa.Column("confirmed_by", sa.String(length=90), server_default="", nullable=False))
    users = sa.table("users", sa.column("name"), sa.column("let_in_by"))
    invitations = sa.table(
        "invitations", sa.column("user"), sa.column("by"), sa.column("used_at"), sa.column("made_at")
    )
    # The last used link of an account; who made it and has no account acted at the host.
    query = (
        sa.select(invitations.c.user, invitations.c.by)
        .where(invitations.c.used_at.is_not(None), invitations.c.user != "")
        .order_by(invitations.c.made_at)
    )
    connection = op.get_bind()
    names = set(connection.scalars(sa.select(users.c.name)))
    for user, by in connection.execute(query).all():
        known = by if by in names else ""
        connection.execute(sa.update(users).where(users.c.name == user).values(let_in_by=known))


def downgrade() -> None:
    with op.batch_alter_table("users") as batch_op:
        batch_op.drop_column("confirmed_by")
        batch_op.drop_column("let_in_by")
