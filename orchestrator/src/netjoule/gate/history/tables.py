# SPDX-License-Identifier: Apache-2.0
"""The tables, one schema for SQLite and PostgreSQL. Columns are called as in gate_verdict.schema.json.

Who changes them writes a migration (migrations/versions) and its number into `REVISION`.
"""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
)

REVISION = "0001"
"""Of the newest migration."""

metadata = MetaData()


def _ratio() -> list[Column[float]]:
    return [Column(name, Float(53)) for name in ("ratio", "ratio_low", "ratio_high")]


gates = Table(
    "gates",
    metadata,
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
    Column("margin_percent", Float(53), nullable=False),
    Column("tolerance_percent", Float(53), nullable=False),
    # Base and head are the same: a FAIL of it is a false alarm.
    Column("same_arms", Boolean, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("exit_code", Integer, nullable=False),
    Column("reason_code", Text),
    Column("reason_detail", Text),
    *_ratio(),
    Column("words", Text, nullable=False),
    Column("anchor_verdict", Text),
    Column("anchor_ratio", Float(53)),
    Column("pilot_log_ratio_sd", Float(53)),
    Column("pilot_half_width_percent", Float(53)),
    Column("pilot_blocks", Integer),
    Column("pilot_reference_log_sd", Float(53)),
    Index("gates_of_rig", "rig", "finished_utc"),
)

arms = Table(
    "arms",
    metadata,
    Column("gate", Text, ForeignKey("gates.id"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("commit", Text),
    Column("sha256", Text),
)

sessions = Table(
    "sessions",
    metadata,
    Column("gate", Text, ForeignKey("gates.id"), primary_key=True),
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("role", Text, nullable=False),
    Column("campaign", Text, nullable=False),
    Column("blocks_max", Integer, nullable=False),
    Column("blocks", Integer),
    Column("log_ratio_sd", Float(53)),
    Column("verdict", Text, nullable=False),
    *_ratio(),
    Column("reference_log_sd", Float(53)),
    Column("head_over_reference", Float(53)),
)

cells = Table(
    "cells",
    metadata,
    Column("gate", Text, primary_key=True),
    Column("session", Integer, primary_key=True, autoincrement=False),
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("cell", Text, nullable=False),
    Column("method", Text, nullable=False),
    Column("blocks", Integer, nullable=False),
    *_ratio(),
    Column("difference_w", Float(53)),
    Column("difference_low_w", Float(53)),
    Column("difference_high_w", Float(53)),
    Column("p_holm", Float(53)),
    Column("verdict", Text, nullable=False),
    Column("reason", Text, nullable=False),
    ForeignKeyConstraint(["gate", "session"], ["sessions.gate", "sessions.place"]),
)

marks = Table(
    "marks",
    metadata,
    Column("gate", Text, ForeignKey("gates.id"), primary_key=True),
    Column("mark", Text, CheckConstraint("mark IN ('was_false', 'was_missed')"), primary_key=True),
    Column("note", Text, nullable=False),
    Column("marked_utc", Text, nullable=False),
)
