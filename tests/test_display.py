"""A message catches up with its record, one edit at a time, and never goes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import bot
from bot import ComponentContext
from playground import Discord
from playground.people import Used
from tests.kit import (
    Counting,
    Json,
    Now,
    Play,
    Press,
    Watch,
    at_rest,
    be_quick,
    button_id,
    delay_answer,
    lose_answers,
    path_of_answers,
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

pytestmark = pytest.mark.both_modes

UPDATE, DEFER = 7, 6  # types of a callback


def requests(discord: Discord, method: str, route: str = "") -> list[Json]:
    """Return the requests of a method whose route begins like that."""
    made = [entry.data for entry in discord.journal.of("rest")]
    return [each for each in made if each["method"] == method and each["route"].startswith(route)]


def answers(discord: Discord, kind: int) -> int:
    """Return how many interactions were answered with a callback of this type."""
    return [entry.data["type"] for entry in discord.journal.of("callback")].count(kind)


# Many clicks


async def test_200_clicks_at_once_are_all_answered_and_the_message_never_goes_back() -> None:
    async with playing() as play:
        play.discord.latency_s = 0.1
        watch = Watch(play.discord, play.message)
        clicks = [play.click(f"person{number}") for number in range(200)]
        await asyncio.gather(*(click.answered() for click in clicks))
        assert not [click for click in clicks if click.state == "failed"]
        await play.at_rest()
        assert [await play.count(), play.shown, watch.counts[-1]] == [200, 200, 200]
        assert not watch.went_back
        # One edit at a time and only the newest: at 0.1 s to Discord and back they cannot be many.
        assert len(watch.counts) < 60
        assert requests(play.discord, "PATCH") == []


async def test_a_message_has_one_edit_under_way_and_the_next_one_carries_the_newest_version() -> None:
    async with playing() as play:
        discord = play.discord
        slow = delay_answer(discord, 0.3)
        first = play.click("first")
        await until(lambda: slow.hits == 1 and (Now.mode == "gateway" or discord.deliveries[-1].answer))
        clicks = [play.click(f"person{number}") for number in range(20)]
        await asyncio.gather(first.answered(), *(click.answered() for click in clicks))
        await play.at_rest()
        assert (answers(discord, UPDATE), answers(discord, DEFER)) == (2, 19)
        assert play.shown == 21


async def test_many_people_on_one_message_meet_no_rate_limit() -> None:
    async with playing() as play:
        play.discord.rate_limits = True
        clicks = [play.click(f"person{number}") for number in range(100)]
        await asyncio.gather(*(click.answered() for click in clicks))
        await play.at_rest()
        assert not [click for click in clicks if click.state == "failed"]
        assert play.shown == 100
        assert not [entry for entry in play.discord.journal.of("rest") if entry.data["status"] == 429]


async def test_an_edit_that_is_retried_does_not_let_an_older_version_overtake() -> None:
    async with playing() as play:
        watch = Watch(play.discord, play.message)
        for drop in ("before", "after"):
            play.discord.faults.add(path=path_of_answers(), drop=drop)
            clicks = [play.click(f"{drop}{number}") for number in range(10)]
            await asyncio.gather(*(click.answered() for click in clicks))
            assert not [click for click in clicks if click.state == "failed"]
            await play.at_rest()
        assert not watch.went_back
        assert watch.counts[-1] == play.shown == await play.count() == 20


@pytest.mark.slow
@pytest.mark.alone
async def test_1000_clicks_in_two_seconds_by_100_people_are_answered_counted_and_shown(tmp_path: Path) -> None:
    async with Discord() as discord:
        await start(discord, "counter", tmp_path / "bot.db")
        message = (await discord.user("alice").command("post")).message
        assert message
        watch = Watch(discord, message)
        discord.latency_s = 0.1
        clicks = [used async for used in clicks_spread_over(discord, message, people=100, each=10, seconds=2)]
        await asyncio.gather(*(click.answered() for click in clicks))
        failed = [click for click in clicks if click.state == "failed"]
        slowest = max(click.latency_s or 9 for click in clicks)
        print(f"1,000 clicks: {len(failed)} failed, slowest answer {slowest:.2f} s, {len(watch.counts)} edits")
        assert failed == []
        await until(lambda: shown(discord, message) == 1_000)
        assert len(state_of(tmp_path / "bot.db", message)["people"]) == 1_000
        assert not watch.went_back


async def clicks_spread_over(
    discord: Discord, message: Json, *, people: int, each: int, seconds: float
) -> AsyncIterator[Used]:
    """Click evenly over the time, everybody in turn."""
    button, begin = button_id(message), asyncio.get_running_loop().time()
    for number in range(people * each):
        yield discord.user(f"person{number % people}").click(custom_id=button, message=message["id"])
        due = begin + (number + 1) * seconds / (people * each)
        await asyncio.sleep(max(0, due - asyncio.get_running_loop().time()))


# By which way


async def test_clicks_that_were_deferred_are_shown_through_their_token_and_not_through_the_channel() -> None:
    go_on = asyncio.Event()

    async def press(self: Counting, ctx: ComponentContext) -> None:
        await ctx.defer()
        await go_on.wait()
        self.count += 1
        await ctx.rerender()

    async with playing(press) as play:
        clicks = [await play.click(name) for name in ("alice",)]
        assert clicks[0].state == "deferred"
        go_on.set()
        await play.at_rest()
        assert play.shown == 1
        assert len(requests(play.discord, "PATCH", "/webhooks/")) == 1
        assert requests(play.discord, "PATCH", "/channels/") == []


async def test_a_message_that_is_behind_is_repaired_at_the_start_with_a_plain_edit(tmp_path: Path) -> None:
    async with restarted(tmp_path, change=set_behind) as play:
        await play.at_rest()
        assert play.shown == 7
        assert len(requests(play.discord, "PATCH", "/channels/")) == 1
        await play.click()
        await play.at_rest()
        assert play.shown == 8


@pytest.mark.rest_only
async def test_an_answer_of_a_killed_process_that_arrives_late_is_not_what_the_message_shows_in_the_end(
    tmp_path: Path,
) -> None:
    async with Discord() as discord:
        process = await start(discord, "counter", tmp_path / "bot.db")
        message = (await discord.user("alice").command("post")).message
        assert message
        await until(lambda: rows(tmp_path / "bot.db", "SELECT 1 FROM record WHERE message IS NOT NULL"))
        go_on = asyncio.Event()
        discord.delivery_faults.add(hold=go_on)
        late = discord.user("bob").click("0", message=message)
        await until(lambda: discord.deliveries[-1].answer)
        process.kill()
        await process.wait()
        await process.start()
        await process.ready()
        await discord.user("carol").click(custom_id=button_id(message), message=message["id"])
        watch = Watch(discord, message)
        go_on.set()
        assert (await late).state in ("answered", "failed")  # Discord waits for 3 s
        await until(lambda: shown(discord, message) == 2)
        if late.state == "answered":
            await until(lambda: watch.counts[-2:] == [1, 2])
        assert len(state_of(tmp_path / "bot.db", message)["people"]) == 2


@asynccontextmanager
async def restarted(
    tmp_path: Path, change: Callable[[Play, Path], None], press: Press = Counting.press
) -> AsyncIterator[Play]:
    """Run a bot, change something while it is down, and run it again."""
    cls, path = view(press), tmp_path / "bot.db"
    async with Discord() as discord:
        alice = discord.user("alice")
        async with running(discord, cls, posting(cls), store=bot.SQLiteStore(str(path), bot.BotId(1))) as app:
            message = (await alice.command("post")).message
            assert message
            await at_rest(app.store)
        change(Play(discord, app, alice, message), path)
        async with running(discord, cls, posting(cls), store=bot.SQLiteStore(str(path), bot.BotId(1))) as app:
            yield Play(discord, app, alice, message)


def set_behind(play: Play, path: Path) -> None:
    """Leave the record as a kill leaves it between save and edit."""
    rows(path, "UPDATE record SET version=version+1, data=?", b'{"count":7}')


async def test_every_message_that_is_behind_is_repaired(tmp_path: Path) -> None:
    cls, path = view(), tmp_path / "bot.db"
    async with Discord() as discord:
        alice = discord.user("alice")
        async with running(discord, cls, posting(cls), store=bot.SQLiteStore(str(path), bot.BotId(1))) as app:
            messages = [(await alice.command("post")).message for _ in range(20)]
            await at_rest(app.store)
        rows(path, "UPDATE record SET version=version+1, data=?", b'{"count":7}')
        rows(path, "UPDATE record SET data='not JSON' WHERE key=?", record_of(messages[3] or {}).key)
        async with running(discord, cls, posting(cls), store=bot.SQLiteStore(str(path), bot.BotId(1))):
            good = [message for number, message in enumerate(messages) if message and number != 3]
            await until(lambda: {shown(discord, message) for message in good} == {7})
            assert shown(discord, messages[3] or {}) == 0


# Disturbances


@pytest.mark.parametrize(
    "fault",
    [{"status": 503}, {"status": 501}, {"status": 429, "retry_after": 0.3}, {"drop": "before"}, {"drop": "after"}],
    ids=str,
)
@pytest.mark.parametrize("path", ["answers", "/channels/*"])
async def test_what_could_not_be_shown_is_shown_when_discord_is_back(
    tmp_path: Path, path: str, fault: Json, caplog: pytest.LogCaptureFixture
) -> None:
    def disturb(play: Play, database: Path) -> None:
        if path == "/channels/*":
            set_behind(play, database)
        play.discord.faults.add(path=path_of_answers() if path == "answers" else path, **fault)

    async with restarted(tmp_path, change=disturb) as play:
        if path == "/channels/*":
            await until(lambda: play.shown == 7)
        else:
            click = await play.click()
            assert click.state in ("answered", "deferred")
            await until(lambda: play.shown == 1)
        await play.at_rest()
        assert await play.failed() == []
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_click_gets_through_while_a_repair_is_backing_off(tmp_path: Path) -> None:
    def disturb(play: Play, database: Path) -> None:
        set_behind(play, database)
        play.discord.faults.add(method="PATCH", path="/channels/*", status=501, times=None)

    async with restarted(tmp_path, change=disturb) as play:
        await until(lambda: requests(play.discord, "PATCH", "/channels/"))
        assert (await play.click()).state == "answered"
        await play.at_rest()
        assert play.shown == 8


def delete(play: Play) -> None:
    kept = play.discord.world.find(play.message["id"])
    assert kept
    play.discord.world.delete_message(kept)


def forbid(play: Play) -> None:
    play.discord.faults.add(method="PATCH", path="/channels/*", status=403, times=None)


def archive(play: Play) -> None:
    play.discord.faults.add(method="PATCH", path="/channels/*", status=400, times=None)  # 50083: the thread is archived


@pytest.mark.parametrize(
    ("lose", "level", "left"), [(delete, "INFO", None), (forbid, "INFO", 7), (archive, "ERROR", 7)]
)
async def test_a_message_out_of_reach_costs_one_log_line_and_the_state_is_kept_while_there_is_one(
    tmp_path: Path, lose: Callable[[Play], None], level: str, left: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    def disturb(play: Play, database: Path) -> None:
        set_behind(play, database)
        lose(play)

    caplog.set_level("INFO", "everclick")
    async with restarted(tmp_path, change=disturb) as play:
        await play.at_rest()
        lines = [record for record in caplog.records if record_of(play.message).key in record.getMessage()]
        assert [(line.levelname, line.exc_info) for line in lines] == [(level, None)]
        assert await play.count() == left
        play.discord.faults.clear()
        other = play.beside((await play.alice.command("post")).message)
        assert (await other.click()).state == "answered"


# Too late


@pytest.mark.parametrize("ephemeral", [False, True])
async def test_a_token_that_died_before_the_message_was_changed(
    ephemeral: bool, caplog: pytest.LogCaptureFixture
) -> None:
    go_on = asyncio.Event()

    async def press(self: Counting, ctx: ComponentContext) -> None:
        await ctx.defer()
        await go_on.wait()
        self.count += 1
        await ctx.rerender()

    cls = view(press)

    @bot.command("post", "Post it.")
    async def post(ctx: bot.CommandContext) -> None:
        await ctx.respond(cls(), ephemeral=ephemeral)

    async with Discord() as discord, running(discord, cls, post) as app:
        alice = discord.user("alice")
        message = (await alice.command("post")).message
        assert message
        play = Play(discord, app, alice, message)
        assert (await play.click()).state == "deferred"
        discord.clock.advance(16 * 60)
        go_on.set()
        await play.at_rest()
        assert await play.count() == 1
        assert play.shown == (0 if ephemeral else 1)
        assert len(requests(discord, "PATCH", "/channels/")) == (0 if ephemeral else 1)
        assert [record.message for record in caplog.records if record.levelno > 20] == []
        await play.click()
        await play.at_rest()
        assert [play.shown, await play.count(), await play.failed()] == [2, 2, []]


async def test_a_click_that_is_answered_too_late_still_counts_and_the_message_is_repaired() -> None:
    go_on = asyncio.Event()

    async def press(self: Counting, ctx: ComponentContext) -> None:
        await go_on.wait()
        self.count += 1
        await ctx.rerender()
        await ctx.respond("counted", ephemeral=True)

    async with playing(view(press, auto_defer=bot.AutoDefer.OFF)) as play:
        click = play.click()
        await until(play.app.store.pending)
        play.discord.clock.advance(3.1)
        assert (await click).state == "failed"
        go_on.set()
        await play.at_rest()
        assert [play.shown, await play.count(), await play.failed()] == [1, 1, []]
        assert len(requests(play.discord, "PATCH", "/channels/")) == 1


@pytest.mark.gateway_only  # a response is not refused, so nobody knows then that another answer was first
async def test_a_click_that_somebody_else_has_answered_still_counts() -> None:
    async def press(self: Counting, ctx: ComponentContext) -> None:
        await ctx.app.rest.create_interaction_response(ctx.id, ctx.token or "", 6)
        self.count += 1
        await ctx.rerender()

    async with playing(press) as play:
        assert (await play.click()).state == "deferred"
        await play.at_rest()
        assert [play.shown, await play.count(), await play.failed()] == [1, 1, []]


async def test_a_message_that_discord_refuses_is_an_error_and_the_click_is_answered(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_quick(monkeypatch)
    async with playing() as play:
        await play.at_rest()
        lose_answers(play.discord, status=400)
        if Now.mode == "rest":  # whose response Discord does not take hears of it by the edit that follows
            play.discord.faults.add(method="PATCH", path="/channels/*", status=400)
        assert (await play.click()).state == ("deferred" if Now.mode == "gateway" else "failed")
        await play.at_rest()
        assert "Discord refuses its message" in caplog.text
        await play.click()
        await play.at_rest()
        assert [play.shown, await play.count()] == [2, 2]


async def test_a_message_that_the_bot_sent_by_itself_is_found_by_its_first_click() -> None:
    cls = view()
    async with Discord() as discord, running(discord, cls) as app:
        channel = int(discord.world.channel_of(None)["id"])
        sent = await app.rest.create_message(channel, **await app.build(cls(count=5)))
        [message] = discord.messages()
        assert int(message["id"]) == sent.id
        play = Play(discord, app, discord.user("alice"), message)
        await play.click()
        await play.at_rest()
        assert [play.shown, await play.count()] == [6, 6]
