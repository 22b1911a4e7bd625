"""Answers after the 3 s and after the 15 minutes, and messages that are repaired when Discord is back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import bot
from bot import AutoDefer, CommandContext, ComponentContext
from playground import Discord
from playground.world import DISCORD_EPOCH_MS
from tests.kit import (
    Counting,
    Json,
    Now,
    Play,
    at_rest,
    be_quick,
    complaints,
    lose_answers,
    playing,
    posting,
    rows,
    running,
    until,
    view,
)

pytestmark = pytest.mark.both_modes

QUARTER = 15 * 60 + 1
CALLBACK, WEBHOOK, CHANNEL = "/interactions/*", "/webhooks/*", "/channels/*"
EXPIRED = 10062, 10015, 50027


def edits(discord: Discord, route: str) -> list[int]:
    """Return what requests to change a message through that route were answered with."""
    made = [entry.data for entry in discord.journal.of("rest") if entry.data["method"] == "PATCH"]
    return [each["status"] for each in made if each["route"].startswith(route.rstrip("*"))]


def waiting(said: asyncio.Event, go_on: asyncio.Event) -> Callable[[Counting, ComponentContext], Awaitable[None]]:
    """Return a handler that says so to Discord, knows that it arrived, and waits before it counts."""

    async def press(self: Counting, ctx: ComponentContext) -> None:
        await ctx.defer()
        said.set()
        await go_on.wait()
        self.count += 1
        await ctx.rerender()

    return press


def posting_for_alice_alone(cls: type[bot.View]) -> Any:
    """Return the command /secret, which posts a view that only the person who used it sees."""

    @bot.command("secret", "Post it for yourself.")
    async def secret(ctx: CommandContext) -> None:
        await ctx.respond(cls(), ephemeral=True)

    return secret


# A view


@pytest.mark.parametrize("code", EXPIRED)
@pytest.mark.parametrize("deferred", [False, True])
@pytest.mark.parametrize("ephemeral", [False, True])
async def test_a_token_that_discord_takes_no_more_costs_one_edit_through_the_channel_where_there_is_one(
    code: int, deferred: bool, ephemeral: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not deferred:
        be_quick(monkeypatch)

    async def press(self: Counting, ctx: ComponentContext) -> None:
        if deferred:
            await ctx.defer()
        self.count += 1
        await ctx.rerender()

    cls = view(press)
    async with playing(cls, posting_for_alice_alone(cls)) as play:
        discord = play.discord
        if ephemeral:
            play = play.beside((await play.alice.command("secret")).message)  # noqa: PLW2901
        fault = refuse(discord, code, deferred, times=None)
        click = play.click()
        await until(lambda: fault.hits)
        await play.at_rest()
        assert [await play.count(), play.shown, await play.failed()] == [1, 0 if ephemeral else 1, []]
        assert edits(discord, CHANNEL) == ([] if ephemeral else [200])
        assert fault.hits == 1
        discord.faults.clear()
        discord.delivery_faults.clear()
        assert click.state == ("deferred" if deferred else "failed" if Now.mode == "rest" else "pending")
        assert (await play.click()).state in ("answered", "deferred")
        await play.at_rest()
        assert [await play.count(), play.shown] == [2, 2]
    assert complaints(caplog) == []


def refuse(discord: Discord, code: int, deferred: bool, times: int | None = 1) -> Any:
    """Let Discord not take the next answers or, when they were promised before, what keeps the promise."""
    if deferred:
        return discord.faults.add(method="PATCH", path=WEBHOOK, code=code, times=times)
    return lose_answers(discord, code=code, times=times)


@pytest.mark.parametrize("ephemeral", [False, True])
async def test_a_handler_that_ends_after_15_minutes_is_shown_through_the_channel_or_quietly_not(
    ephemeral: bool, caplog: pytest.LogCaptureFixture
) -> None:
    said, go_on = asyncio.Event(), asyncio.Event()
    cls = view(waiting(said, go_on))
    async with playing(cls, posting_for_alice_alone(cls)) as play:
        if ephemeral:
            play = play.beside((await play.alice.command("secret")).message)  # noqa: PLW2901
        assert (await play.click()).state == "deferred"
        await said.wait()
        play.discord.clock.advance(QUARTER)
        go_on.set()
        await play.at_rest()
        assert [await play.count(), play.shown, await play.failed()] == [1, 0 if ephemeral else 1, []]
        assert edits(play.discord, WEBHOOK) == [401]
        assert edits(play.discord, CHANNEL) == ([] if ephemeral else [200])
    assert complaints(caplog) == []


async def test_a_reply_that_comes_after_15_minutes_is_left_and_the_click_counts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    said, go_on = asyncio.Event(), asyncio.Event()

    async def press(self: Counting, ctx: ComponentContext) -> None:
        await waiting(said, go_on)(self, ctx)
        await ctx.respond("counted", ephemeral=True)
        await ctx.respond("and to all")

    caplog.set_level("INFO", "everclick")
    async with playing(press) as play:
        assert (await play.click()).state == "deferred"
        await said.wait()
        play.discord.clock.advance(QUARTER)
        go_on.set()
        await play.at_rest()
        assert [await play.count(), play.shown, await play.failed()] == [1, 1, []]
        assert len(play.discord.messages()) == 1
    assert caplog.text.count("the interaction can no longer be answered") == 2


# A command


@pytest.mark.parametrize("code", EXPIRED)
@pytest.mark.parametrize("deferred", [False, True])
async def test_a_command_whose_token_discord_takes_no_more_is_on_the_failed_list_as_expired(
    code: int, deferred: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not deferred:
        be_quick(monkeypatch)

    @bot.command("late", "Too late.")
    async def late(ctx: CommandContext) -> None:
        if deferred:
            await ctx.defer()
        await ctx.respond("at last")

    async with playing(Counting.press, late) as play:
        fault = refuse(play.discord, code, deferred)
        play.alice.start_command("late", {})
        await until(lambda: fault.hits)
        [failed] = await play.failed()
        assert failed.failure[:2] == ("ExpiredError", "the interaction can no longer be answered")


async def test_a_command_that_ends_after_15_minutes_is_expired_and_a_retry_answers_in_its_channel() -> None:
    go_on, cls = asyncio.Event(), view()

    def late(name: str, what: str | bot.View | None) -> Any:
        async def wait(ctx: CommandContext) -> None:
            await ctx.defer()
            await go_on.wait()
            if what:
                await ctx.respond(what)

        return bot.command(name, "Too late.")(wait)

    late_ones = late("text", "at last"), late("view", cls(count=7)), late("nothing", None)
    async with playing(cls, *late_ones) as play:
        for name in ("text", "view", "nothing"):
            assert (await play.alice.command(name)).state == "deferred"
        play.discord.clock.advance(QUARTER)
        go_on.set()
        failed = await play.failed()
        assert [each.failure.type for each in failed] == ["ExpiredError"] * 2
        before = len(play.discord.messages())
        assert await play.app.retry_failed() == 2
        assert await play.failed() == []
        texts = [play.discord.text(each) for each in play.discord.messages()[before:]]
        assert sorted(texts) == ["7", "at last"]


# Answered already


@pytest.mark.gateway_only  # a response is not refused
async def test_a_click_that_discord_says_is_answered_already_fails_nothing() -> None:
    async def press(self: Counting, ctx: ComponentContext) -> None:
        self.count += 1
        await ctx.rerender()
        await ctx.respond("counted")

    async with playing(press) as play:
        play.discord.faults.add(path=CALLBACK, code=40060, times=None)
        play.click()
        await until(lambda: play.shown == 1)
        await play.at_rest()
        assert [await play.count(), await play.failed()] == [1, []]
        assert edits(play.discord, CHANNEL) == [200]


@pytest.mark.gateway_only  # a response is not sent again
async def test_a_command_whose_first_answer_took_place_unheard_is_answered_once_and_goes_on() -> None:
    @bot.command("say", "Say it.")
    async def say(ctx: CommandContext) -> None:
        await ctx.respond("said")
        await ctx.respond("and more")

    async with playing(Counting.press, say) as play:
        play.discord.faults.add(path=CALLBACK, drop="after")
        play.alice.start_command("say", {})
        await until(lambda: len(play.discord.messages()) == 3)
        assert await play.failed() == []
        assert [play.discord.text(message) for message in play.discord.messages()[1:]] == ["said", "and more"]
        refused = [entry.data["answer"]["code"] for entry in play.discord.journal.of("rest") if is_refused(entry)]
        assert refused == [40060]


def is_refused(entry: Any) -> bool:
    """Whether a callback was answered with 400."""
    return entry.data["route"].endswith("/callback") and entry.data["status"] == 400


@pytest.mark.rest_only
@pytest.mark.parametrize("deferred", [False, True])
async def test_an_answer_that_nobody_can_say_the_arrival_of_is_not_given_again(
    deferred: bool, caplog: pytest.LogCaptureFixture
) -> None:
    @bot.command("say", "Say it.")
    async def say(ctx: CommandContext) -> None:
        if deferred:
            await ctx.defer()
        await ctx.respond("said")

    async with playing(Counting.press, say) as play:
        await play.at_rest()
        play.discord.faults.add(method="GET", path=WEBHOOK, status=501)
        used = await play.alice.command("say")
        await used.settled()
        assert play.discord.text(used.message) == "said"
        assert [await play.failed(), len(play.discord.messages())] == [[], 2]
    [warning] = complaints(caplog)
    assert warning.startswith(f"interaction:{used.interaction['id']}: whether Discord has its answer is not known: ")


# `shown`


async def test_a_message_is_repaired_as_often_as_it_takes_with_longer_and_longer_pauses(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with playing(view(auto_defer=AutoDefer.OFF)) as play:
        await play.at_rest()
        fault = play.discord.faults.add(path="/*", status=501, times=None)
        play.click()
        await until(lambda: fault.hits >= 3)
        assert [await play.count(), play.shown] == [1, Now.mode == "rest"]  # the response arrived: the bot cannot know
        play.discord.faults.clear()
        await until(lambda: play.shown == 1)
        await play.at_rest()
        tries = [entry.at for entry in play.discord.journal.of("rest") if entry.data["status"] == 501]
        assert tries[2] - tries[1] >= bot.SHOW_RETRY_S[1]
        assert tries[1] - tries[0] >= bot.SHOW_RETRY_S[0]
        assert await play.failed() == []
    key = play.message["components"][0]["components"][0]["custom_id"].split(":")[1]
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warnings[0].startswith(f"counter {key} cannot be shown yet: ")


@pytest.mark.slow
async def test_what_15_minutes_of_outage_left_unshown_is_shown_by_the_next_process(tmp_path: Path) -> None:
    cls, path = view(), tmp_path / "bot.db"
    async with Discord() as discord:
        alice = discord.user("alice")
        store = bot.SQLiteStore(str(path), bot.BotId(1))
        async with running(discord, cls, posting(cls), store=store, drain_s=0) as app:
            message = (await alice.command("post")).message
            assert message
            await at_rest(app.store)
            fault = discord.faults.add(path="/*", status=501, times=None)
            play = Play(discord, app, alice, message)
            play.click()
            await until(lambda: fault.hits >= 2)
        assert rows(path, "SELECT version - shown FROM record") == [(1,)]
        discord.clock.advance(QUARTER)
        discord.faults.clear()
        discord.faults.add(method="PATCH", path=CHANNEL, status=501, times=2)
        tried = len(edits(discord, CHANNEL))
        async with running(discord, cls, posting(cls), store=bot.SQLiteStore(str(path), bot.BotId(1))) as app:
            await at_rest(app.store)
        assert play.shown == 1
        assert edits(discord, CHANNEL)[tried:] == [501, 501, 200]
        assert rows(path, "SELECT version - shown FROM record") == [(0,)]


# A click that is old when it arrives


@pytest.mark.gateway_only  # over HTTP nothing comes late
async def test_a_click_that_is_15_minutes_old_when_it_arrives_counts_and_its_message_follows(tmp_path: Path) -> None:
    cls, path = view(auto_defer=AutoDefer.UPDATE), tmp_path / "bot.db"
    async with Discord() as discord:
        alice = discord.user("alice")
        async with running(discord, cls, posting(cls), store=bot.SQLiteStore(str(path), bot.BotId(1))) as app:
            message = (await alice.command("post")).message
            click = await alice.click("0", message=message)
            await at_rest(app.store)
            old: Json = {**click.interaction, "id": made_before(discord, QUARTER)}
            discord.send_raw("INTERACTION_CREATE", old)
            play = Play(discord, app, alice, message or {})
            await until(lambda: play.shown == 2)
            await at_rest(app.store)
            assert [await play.count(), await play.failed()] == [2, []]
            assert edits(discord, CHANNEL) == [200]


def made_before(discord: Discord, seconds: float) -> str:
    """Return an id of so many seconds ago."""
    return str(int((discord.clock.now() - seconds) * 1000) - DISCORD_EPOCH_MS << 22)
