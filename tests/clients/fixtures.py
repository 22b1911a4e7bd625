"""A Discord checked against the OpenAPI, a bot in it without a library, and people; `pytest_plugins` names this."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from playground import Discord
from playground.people import Person
from tests.clients.raw import RawBot
from tests.openapi import CHECK


@pytest_asyncio.fixture
async def discord() -> AsyncIterator[Discord]:
    async with Discord(check=CHECK) as discord:
        yield discord


@pytest_asyncio.fixture
async def bot(discord: Discord) -> AsyncIterator[RawBot]:
    async with RawBot(discord) as bot:
        yield bot


@pytest.fixture
def alice(discord: Discord) -> Person:
    return discord.user("alice")


@pytest.fixture
def bob(discord: Discord) -> Person:
    return discord.user("bob")
