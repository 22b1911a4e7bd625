"""SIGKILL at every step of a click's way: no click is lost and none counts twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from playground import Discord
from tests.kit import button_id, rows, shown, start, state_of, until

pytestmark = pytest.mark.crash

PENDING = "SELECT key FROM inbox WHERE done_at IS NULL"
POINTS = [
    "after accept",
    "in the handler",
    "after the handler",
    "after the commit",
    "after the save",
    "before the edit",
    "after the request",
    "after the edit",
    "after it is noted",
]


@pytest.mark.parametrize("point", POINTS)
async def test_a_kill_at_any_step_of_a_click_loses_nothing_and_counts_nothing_twice(point: str, tmp_path: Path) -> None:
    store = tmp_path / "bot.db"
    async with Discord() as discord:
        process = await start(discord, "killed", store, POINT=point)
        message = (await discord.user("alice").command("post")).message
        assert message
        assert (await discord.user("alice").click("0", message=message)).state == "answered"
        await until(lambda: shown_is_noted(store))
        (tmp_path / "armed").touch()
        for name in ("bob", "carol", "dave"):
            discord.user(name).click("1", message=message)
        assert await process.wait() == -9
        before = shown(discord, message)
        for name in ("erin", "frank"):
            discord.user(name).click(custom_id=button_id(message), message=message["id"])
        await process.start()
        await process.ready()
        await until(lambda: shown(discord, message) == 6)
        assert before <= 6
        people = state_of(store, message)["people"]
        assert people == ["alice", "bob", "carol", "dave", "erin", "frank"]
        await until(lambda: not rows(store, PENDING))
        assert rows(store, "SELECT * FROM failed") == []
        assert (discord.gateway.identifies, discord.gateway.resumes) == (1, 1)
        assert len(discord.messages()) == 1
        await until(lambda: shown_is_noted(store))


def shown_is_noted(store: Path) -> bool:
    """Whether every record of a bot's database is known to be shown, where it is."""
    return not rows(store, "SELECT key FROM record WHERE shown < version OR message IS NULL")


COMMAND_POINTS = [
    "after accept",
    "after the handler",
    "after the commit",
    "before the edit",
    "after the request",
    "after a command's answer",
]


@pytest.mark.parametrize("point", COMMAND_POINTS)
async def test_a_kill_at_any_step_of_a_command_posts_one_message_with_one_record(point: str, tmp_path: Path) -> None:
    store = tmp_path / "bot.db"
    async with Discord() as discord:
        process = await start(discord, "killed", store, POINT=point)
        await discord.user("alice").command("post")
        await until(lambda: not rows(store, PENDING))
        (tmp_path / "armed").touch()
        bobs = discord.user("bob").start_command("post", {})
        assert await process.wait() == -9
        await process.start()
        await process.ready()
        await until(lambda: not rows(store, PENDING))
        assert rows(store, "SELECT count(*) FROM record") == [(2,)]
        assert len(discord.messages()) == (1 if bobs.state == "failed" else 2)
        if bobs.state == "failed":  # this machine was too slow for Discord's 3 s: the list says so
            assert rows(store, "SELECT type FROM failed") == [("ExpiredError",)]
            return
        assert (await discord.user("carol").click("0", message=discord.messages()[1])).state == "answered"
        assert [shown(discord, message) for message in discord.messages()] == [0, 1]
        assert rows(store, "SELECT * FROM failed") == []
