# SPDX-License-Identifier: Apache-2.0
"""What Alembic runs: in the connection and the transaction of the one who asks (database.migrate)."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
