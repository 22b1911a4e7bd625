"""The failed list: what gets on it, how it is shown, and how an event leaves it, from a shell and from a handler."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import bot
from bot import CommandContext, ComponentContext
from playground import Discord
from tests.kit import (
    ROOT,
    Counting,
    at_rest,
    playing,
    posting,
    record_of,
    rows,
    running,
    shown,
    start,
    state_of,
    until,
    view,
)
from tests.test_command_line import Done, Here, here, run_on, token_of

pytestmark = pytest.mark.both_modes

__all__ = ["here"]  # a fixture

TAKEN = "The running bot has taken the order; its log says what came of it.\n"


# From a shell, each time as a process of its own


async def failed(discord: Discord, store: Path, *words: str, **env: str) -> Done:
    """Run `python bot.py failed …` for that database."""
    return await run_on(discord, ROOT / "bot.py", "failed", *words, cwd=store.parent, STORE=f"sqlite:{store}", **env)


def keys(done: Done) -> list[str]:
    """Return the keys of what `failed` has listed, and see that the count below them is right."""
    *lines, last = done.out.splitlines()
    assert (done.code, done.err, last) == (0, "", f"{len(lines)} failed events."), done
    return [line.split()[0] for line in lines]


async def test_chosen_events_are_retried_and_discarded_while_the_bot_runs(tmp_path: Path) -> None:
    store, broken = tmp_path / "bot.db", tmp_path / "broken"
    async with Discord() as discord:
        process = await start(discord, "failing", store)
        alice = discord.user("alice")
        assert keys(await failed(discord, store)) == []
        broken.touch()
        uses = [await alice.command("think", text=text) for text in ("one", "two", "three")]
        one, two, three = (f"interaction:{used.interaction['id']}" for used in uses)
        assert keys(await failed(discord, store, "list")) == [one, two, three]
        assert await failed(discord, store, "discard", two) == (0, TAKEN, "")
        await until(lambda: not rows(store, "SELECT * FROM failed WHERE key=?", two))

        broken.unlink()
        assert await failed(discord, store, "retry", three) == (0, TAKEN, "")
        await until(lambda: "thought about three" in map(discord.text, discord.messages()))
        assert keys(await failed(discord, store)) == [one]
        log = "\n".join(process.log)
        assert "as the command line asked: 1 events are discarded." in log
        assert "as the command line asked: 1 events go back to the inbox." in log

        assert await failed(discord, store, "retry") == (0, TAKEN, "")
        await until(lambda: "thought about one" in map(discord.text, discord.messages()))
        assert keys(await failed(discord, store)) == []
        assert not [text for text in map(discord.text, discord.messages()) if "two" in text]
        assert not [*tmp_path.glob("*.order"), *tmp_path.glob("*.draft")]


async def test_a_click_is_retried_when_the_bot_does_not_run_and_counts_at_the_next_start(tmp_path: Path) -> None:
    store, broken = tmp_path / "bot.db", tmp_path / "broken"
    async with Discord() as discord:
        process = await start(discord, "failing", store)
        message = (await discord.user("alice").command("post")).message
        assert message
        broken.touch()
        uses = [await discord.user(name).click("0", message=message) for name in ("alice", "bob", "carol")]
        alices, bobs, carols = (f"interaction:{used.interaction['id']}" for used in uses)
        assert await process.terminate() == 0
        assert keys(await failed(discord, store)) == [alices, bobs, carols]
        assert await failed(discord, store, "retry", alices, carols) == (
            0,
            "2 events go back to the inbox.\n",
            "",
        )
        assert await failed(discord, store, "discard", bobs) == (0, "1 events are discarded.\n", "")
        assert keys(await failed(discord, store)) == []
        broken.unlink()
        await process.start()
        await until(lambda: shown(discord, message) == 2)
        assert state_of(store, message) == {"count": 2}


@pytest.mark.slow
async def test_a_key_that_is_not_on_the_list_is_named_and_nothing_is_done(tmp_path: Path) -> None:
    store = tmp_path / "bot.db"
    async with Discord() as discord:
        process = await start(discord, "failing", store)
        (tmp_path / "broken").touch()
        used = await discord.user("alice").command("think", text="one")
        key, wrong = f"interaction:{used.interaction['id']}", used.interaction["id"]
        for _ in ("while the bot runs", "and when it does not"):
            said = [await failed(discord, store, action, key, wrong) for action in ("retry", "discard")]
            sentence = f"{wrong} is not on the failed list. `failed list` shows the keys of those that are."
            assert [done.sentence for done in said] == [sentence] * 2
            await process.terminate()
        assert rows(store, "SELECT key FROM failed") == [(key,)]
        assert "as the command line asked" not in "\n".join(process.log)


@pytest.mark.parametrize("words", [["failed"], ["failed", "retry"], ["backup", "copy.db"]])
def test_a_store_in_memory_has_nothing_to_look_into_and_says_so(words: list[str], here: Here, tmp_path: Path) -> None:
    done = here(*words, DISCORD_TOKEN=token_of(5), STORE=":memory:")
    assert done.sentence == "STORE=:memory: keeps nothing that could be looked into. Set STORE=sqlite:bot.db, say."
    assert not [*tmp_path.iterdir()]


HOSTILE = "\x1b]0;owned\x07\x1b[31mred\x1b[2J \x9b1m \u202egnp.exe\r\n\x00 caf\u00e9 ✕"
SHOWN = r"RuntimeError: \x1b]0;owned\x07\x1b[31mred\x1b[2J \x9b1m \u202egnp.exe \x00 café ✕"


async def test_the_newest_max_failed_are_listed_and_nothing_a_person_wrote_can_steer_the_terminal(
    tmp_path: Path,
) -> None:
    store = tmp_path / "bot.db"
    async with Discord() as discord:
        process = await start(discord, "failing", store, MAX_FAILED=2)
        (tmp_path / "broken").touch()
        uses = [await discord.user("alice").command("think", text=text) for text in ("one", "two", HOSTILE)]
        [(kept,)] = rows(store, "SELECT text FROM failed ORDER BY id DESC LIMIT 1")
        rows(store, "UPDATE failed SET text=? WHERE text='two'", "\x1b[31m")  # as an earlier version kept it
        listed = await failed(discord, store)
        assert keys(listed) == [f"interaction:{used.interaction['id']}" for used in uses[1:]]
        log = "\n".join(process.log)
        for text in (listed.out, log, f"RuntimeError: {kept}"):
            assert SHOWN in text
            assert not re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text)


# From a handler


async def test_a_handler_can_look_at_the_list_retry_and_discard() -> None:
    broken = [True]

    async def press(self: Counting, ctx: ComponentContext) -> None:
        if broken:
            raise ValueError(ctx.user.username)
        self.count += 1
        await ctx.rerender()

    @bot.command("failures", "Look at them.")
    async def failures(ctx: CommandContext) -> None:
        entries = await ctx.app.failed()
        texts = [each.failure.text for each in entries]
        retried = await ctx.app.retry_failed(*(each.key for each in entries if each.failure.text == "alice"))
        discarded = await ctx.app.discard_failed(*(each.key for each in entries if each.failure.text == "bob"))
        await ctx.respond(f"{texts} {retried} {discarded} {len(await ctx.app.failed())}")

    @bot.command("again", "Try all of them again.")
    async def again(ctx: CommandContext) -> None:
        await ctx.respond(f"{await ctx.app.retry_failed()} {await ctx.app.discard_failed()}")

    async with playing(press, failures, again) as play:
        for name in ("alice", "bob", "carol"):
            await play.click(name)
        broken.clear()
        used = await play.alice.command("failures")
        assert play.discord.text(used.message) == "['alice', 'bob', 'carol'] 1 1 1"
        await until(lambda: play.shown == 1)
        used = await play.alice.command("again")
        assert play.discord.text(used.message) == "1 0"
        await until(lambda: play.shown == 2)
        await play.at_rest()
        assert [await play.count(), await play.failed()] == [2, []]


# Events that took the process down


@pytest.mark.parametrize(("runs", "expected"), [(0, 1), (1, 1), (2, 0), (3, 0)])
async def test_an_event_is_run_max_handler_runs_times_and_no_more(runs: int, expected: int, tmp_path: Path) -> None:
    cls, path = view(), tmp_path / "bot.db"
    async with Discord() as discord:
        alice = discord.user("alice")
        async with running(discord, cls, posting(cls), store=bot.SQLiteStore(str(path), bot.BotId(1))):
            message = (await alice.command("post")).message
            assert message
            click: Any = (await alice.click("0")).interaction
        key, body = "interaction:5", bot.write_json({**click, "id": "5"})
        rows(path, "INSERT INTO inbox(bot, key, body, accepted_at, runs) VALUES(1, ?, ?, 0, ?)", key, body, runs)
        store = bot.SQLiteStore(str(path), bot.BotId(1))
        async with running(discord, cls, posting(cls), store=store, max_handler_runs=2) as app:
            await at_rest(app.store)
            saved = await app.store.load(record_of(message))
            assert saved and bot.read_json(saved.data) == {"count": 1 + expected}
            texts = [each.failure.text for each in await app.failed()]
            assert texts == ([] if expected else [f"the process ended {runs} times while this ran"])
