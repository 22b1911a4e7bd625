"""The store in Redis: the contract of every store and of shared ones, and what is Redis's own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

pytest.importorskip("extras.redis_store", reason="extras/ is not there")

from extras.redis_store import RedisStore

pytest.register_assert_rewrite("contract")
from contract import Clock, OpenStore, SharedStoreContract, StoreContract, opener  # noqa: E402
from servers import Server  # noqa: E402

pytest_plugins = ["tests.servers"]


class TestRedisStore(StoreContract):
    @pytest.fixture
    async def open_store(self, clock: Clock, redis: Server) -> AsyncIterator[OpenStore]:
        async with opener(lambda bot, most: RedisStore(redis.url, bot, max_failed=most, now=clock)) as open_store:
            yield open_store


class TestSharedRedisStore(SharedStoreContract):
    @pytest.fixture
    def server(self, redis: Server) -> Server:
        return redis
