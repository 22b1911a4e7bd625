"""The store in PostgreSQL: the contracts of every store and of a shared one, and what only PostgreSQL can do."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

pytest.importorskip("extras.postgres_store", reason="extras/ was deleted")
pytest.register_assert_rewrite("contract")

from contract import Clock, OpenStore, SharedStoreContract, SharedStoreOutages, StoreContract, opener  # noqa: E402
from servers import Server  # noqa: E402

from extras.postgres_store import PostgresStore  # noqa: E402

pytest_plugins = ["tests.servers"]


class TestPostgresStore(StoreContract):
    @pytest.fixture
    async def open_store(self, clock: Clock, postgres: Server) -> AsyncIterator[OpenStore]:
        async with opener(lambda bot, most: PostgresStore(postgres.url, bot, max_failed=most, now=clock)) as open_store:
            yield open_store


class TestSharedPostgresStore(SharedStoreContract):
    @pytest.fixture
    def server(self, postgres: Server) -> Server:
        return postgres


class TestPostgresOutages(SharedStoreOutages):
    @pytest.fixture
    def server(self, postgres: Server) -> Server:
        return postgres
