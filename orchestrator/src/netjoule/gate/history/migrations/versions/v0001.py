# SPDX-License-Identifier: Apache-2.0
"""The first tables."""

from __future__ import annotations

from alembic import op
from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Integer,
    Text,
)

revision = "0001"
down_revision = None

FLOAT = Float(53)


def upgrade() -> None:
    """Make them."""
    _gates()
    _sessions()
    _marks()


def downgrade() -> None:
    """Drop them, and all that they hold."""
    for table in ("marks", "cells", "sessions", "arms", "gates"):
        op.drop_table(table)


def _ratio() -> list[Column[float]]:
    return [Column(name, FLOAT) for name in ("ratio", "ratio_low", "ratio_high")]


def _gates() -> None:
    op.create_table(
        "gates",
        Column("id", Text, primary_key=True),
        Column("kind", Text, nullable=False),
        Column("folder", Text, nullable=False),
        Column("created_utc", Text, nullable=False),
        Column("finished_utc", Text, nullable=False),
        Column("rig", Text, nullable=False),
        Column("kernel", Text, nullable=False),
        Column("cpu_model", Text, nullable=False),
        Column("meters", Text, nullable=False),
        Column("power_source", Text, nullable=False),
        Column("workload", Text, nullable=False),
        Column("workload_version", Text, nullable=False),
        Column("objective", Text, nullable=False),
        Column("unit", Text, nullable=False),
        Column("margin_percent", FLOAT, nullable=False),
        Column("tolerance_percent", FLOAT, nullable=False),
        Column("same_arms", Boolean, nullable=False),
        Column("verdict", Text, nullable=False),
        Column("exit_code", Integer, nullable=False),
        Column("reason_code", Text),
        Column("reason_detail", Text),
        *_ratio(),
        Column("words", Text, nullable=False),
        Column("anchor_verdict", Text),
        Column("anchor_ratio", FLOAT),
        Column("pilot_log_ratio_sd", FLOAT),
        Column("pilot_half_width_percent", FLOAT),
        Column("pilot_blocks", Integer),
        Column("pilot_reference_log_sd", FLOAT),
    )
    op.create_index("gates_of_rig", "gates", ["rig", "finished_utc"])
    op.create_table(
        "arms",
        Column("gate", Text, ForeignKey("gates.id"), primary_key=True),
        Column("name", Text, primary_key=True),
        Column("kind", Text, nullable=False),
        Column("text", Text, nullable=False),
        Column("commit", Text),
        Column("sha256", Text),
    )


def _sessions() -> None:
    op.create_table(
        "sessions",
        Column("gate", Text, ForeignKey("gates.id"), primary_key=True),
        Column("place", Integer, primary_key=True, autoincrement=False),
        Column("role", Text, nullable=False),
        Column("campaign", Text, nullable=False),
        Column("blocks_max", Integer, nullable=False),
        Column("blocks", Integer),
        Column("log_ratio_sd", FLOAT),
        Column("verdict", Text, nullable=False),
        *_ratio(),
        Column("reference_log_sd", FLOAT),
        Column("head_over_reference", FLOAT),
    )
    op.create_table(
        "cells",
        Column("gate", Text, primary_key=True),
        Column("session", Integer, primary_key=True, autoincrement=False),
        Column("place", Integer, primary_key=True, autoincrement=False),
        Column("cell", Text, nullable=False),
        Column("method", Text, nullable=False),
        Column("blocks", Integer, nullable=False),
        *_ratio(),
        Column("difference_w", FLOAT),
        Column("difference_low_w", FLOAT),
        Column("difference_high_w", FLOAT),
        Column("p_holm", FLOAT),
        Column("verdict", Text, nullable=False),
        Column("reason", Text, nullable=False),
        ForeignKeyConstraint(["gate", "session"], ["sessions.gate", "sessions.place"]),
    )


def _marks() -> None:
    op.create_table(
        "marks",
        Column("gate", Text, ForeignKey("gates.id"), primary_key=True),
        Column("mark", Text, CheckConstraint("mark IN ('was_false', 'was_missed')"), primary_key=True),
        Column("note", Text, nullable=False),
        Column("marked_utc", Text, nullable=False),
    )
