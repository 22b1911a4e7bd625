"""What is to happen later, and what happens over and over: kept in the store, and run once over any restart."""

from __future__ import annotations

import asyncio
import datetime
import json
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import bot
from bot import CommandContext, ComponentContext, EventContext, Record, register
from playground import Discord
from tests.kit import Counting, Json, at_rest, die_at_each, moving, posting, rows, running, shown, start, until, view

pytestmark = pytest.mark.both_modes

HOUR = 3_600


@register(name="rung")
class Rung(Record):
    texts: list[str] = bot.field(default_factory=list[str])


async def rung(app: bot.App) -> list[str]:
    saved = await app.store.load(bot.record_id(Rung, ()))
    return bot.decode_state(Rung, saved).texts if saved else []


@bot.handler
async def ring(ctx: EventContext, text: str) -> None:
    (await ctx.record(Rung)).texts.append(text)


async def rings(app: bot.App, *texts: str) -> None:
    """Wait until these have rung, and no other."""

    async def all_rung() -> bool:
        app.wake()
        return sorted(await rung(app)) == sorted(texts)

    await until(all_rung)
    await at_rest(app.store)
    assert sorted(await rung(app)) == sorted(texts)


@asynccontextmanager
async def ticking(*things: Any, store: bot.Store | None = None) -> AsyncIterator[tuple[Discord, bot.App]]:
    """Run a bot whose clock goes with the playground's."""
    async with Discord() as discord:
        with discord.clock.here():
            async with running(discord, Rung, ring, *things, store=store or moving(discord)) as app:
                yield discord, app


# Once


@pytest.mark.parametrize(
    ("when", "seconds"),
    [(0, 0), (90, 90), (1.5, 1.5), ("90s", 90), ("1h 30m", 5_400), ("2d", 172_800), (" 1w1d ", 691_200), ("٣m", 180)],
)
def test_a_time_is_given_as_seconds_or_as_people_write_it(when: Any, seconds: float) -> None:
    assert bot.seconds_of(when) == seconds
    assert abs(bot.moment(when) - time.time() - seconds) < 5


def test_a_time_may_be_a_moment_of_any_zone() -> None:
    moment = datetime.datetime(2030, 1, 1, 12, tzinfo=ZoneInfo("Asia/Tokyo"))
    assert bot.moment(moment) == datetime.datetime(2030, 1, 1, 3, tzinfo=datetime.UTC).timestamp()


@pytest.mark.parametrize("text", ["", " ", "5", "soon", "-5m", "5 minutes", "1h30", "m", "9" * 40 + "d", "1,5h", "5m!"])
def test_what_is_no_time_span_is_refused_in_words(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no time span\. Write for example 90s, 10m, 1h 30m or 2d\."):
        bot.moment(text)


async def test_functions_are_called_once_at_their_time_and_not_when_they_were_taken_back() -> None:
    keys: list[bot.EventKey] = []

    @bot.command("set", "Set them.")
    async def set_them(ctx: CommandContext) -> None:
        for when in (60, "2m", datetime.datetime.fromtimestamp(time.time() + 180, datetime.UTC)):
            keys.append(await ctx.later(when, ring, str(len(keys))))
        await ctx.respond("set")

    @bot.command("stop", "Take one back.")
    async def stop(ctx: CommandContext) -> None:
        ctx.cancel(keys[2])
        await ctx.respond("stopped")

    async with ticking(set_them, stop) as (discord, app):
        keys.append(await app.later(200, ring, "outside"))
        gone = await app.later(200, ring, "gone")
        await app.cancel(gone)
        await app.cancel(bot.EventKey("timer:nothing"))
        await discord.user("alice").command("set")
        await discord.user("alice").command("stop")
        assert await rung(app) == []
        discord.clock.advance(61)
        await rings(app, "1")
        discord.clock.advance(300)
        await rings(app, "1", "3", "outside")
        assert await app.store.timers() == []


async def test_a_timer_is_set_with_its_events_commit_or_not_at_all() -> None:
    @bot.command("fail", "Fail.")
    async def fail(ctx: CommandContext) -> None:
        await ctx.later(0, ring, "never")
        raise ValueError("no")

    async with ticking(fail) as (discord, app):
        await discord.user("alice").command("fail")
        assert len(await app.failed()) == 1
        assert await app.store.timers() == []


async def test_what_cannot_be_called_later_is_refused_where_it_is_set() -> None:
    async def unmarked(ctx: EventContext) -> None: ...

    async with ticking() as (_, app):
        with pytest.raises(ValueError, match=r"unmarked cannot be called later\. Mark it with @handler and list it"):
            await app.later(0, unmarked)
        with pytest.raises(ValueError, match=r"ring cannot be called with \(5,\): Expected `str`, got `int`"):
            await app.later(0, ring, 5)


async def test_a_handler_of_a_view_is_called_later_and_changes_its_message() -> None:
    async def press(self: Counting, ctx: ComponentContext) -> None:
        await ctx.later("1h", self.press_again, 5)  # type: ignore[attr-defined]
        await ctx.respond("wait")

    @bot.handler
    async def press_again(self: Counting, ctx: EventContext, how_often: int) -> None:
        self.count += how_often
        await ctx.rerender()

    cls = view(press, members={"press_again": press_again})
    async with ticking(cls, posting(cls)) as (discord, app):
        alice = discord.user("alice")
        message, other = [(await alice.command("post")).message for _ in range(2)]
        assert message
        assert other
        for each in (message, other):
            await alice.click("0", message=each["id"])
        discord.delete_message(other)
        discord.clock.advance(HOUR + 1)
        app.wake()
        await until(lambda: shown(discord, message) == 5)
        await at_rest(app.store)
        assert await app.failed() == []  # of the one that is gone as well


@pytest.mark.gateway_only  # no interaction is part of it
async def test_a_timer_that_fails_is_on_the_failed_list_and_can_be_tried_again() -> None:
    is_broken = True

    @bot.handler
    async def shaky(ctx: EventContext, text: str) -> None:
        await ring(ctx, text)
        if is_broken:
            raise ValueError("not now")

    async with ticking(shaky) as (_, app):
        await app.later(0, shaky, "a")
        app.wake()
        await until(app.failed)
        [failed] = await app.failed()
        assert (failed.key.partition(":")[0], failed.failure.text) == ("timer", "not now")
        is_broken = False
        assert await app.retry_failed() == 1
        await rings(app, "a")


async def test_five_thousand_timers_at_one_moment_all_run_once_while_people_are_answered() -> None:
    counts: dict[int, int] = {}

    @bot.handler
    async def count(ctx: EventContext, number: int) -> None:
        counts[number] = counts.get(number, 0) + 1

    @bot.command("hello", "Say hello.")
    async def hello(ctx: CommandContext) -> None:
        await ctx.respond("hello")

    async with ticking(count, hello) as (discord, app):
        body = [bot.timer_body(app.views, bot.RecordId("", ""), "count", (number,)) for number in range(5_000)]
        timers = [bot.Timer(bot.EventKey(f"timer:{number}"), 1.0, each) for number, each in enumerate(body)]
        await app.store.commit([], None, timers)
        app.wake()
        await until(lambda: counts)
        assert discord.text((await discord.user("alice").command("hello")).message) == "hello"
        await until(lambda: len(counts) == 5_000, 60)
        await at_rest(app.store)
        assert set(counts.values()) == {1}


# Over and over: when


def at(text: str, zone: str = "UTC") -> float:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def next_of(mark: Any) -> Any:
    async def function(ctx: EventContext) -> None: ...

    return mark(function).__dict__["repeat"].next_after


@pytest.mark.parametrize(
    ("span", "now", "then"),
    [
        ("10m", "2026-03-01T12:00:00", "2026-03-01T12:10:00"),
        ("10m", "2026-03-01T12:09:59.9", "2026-03-01T12:10:00"),
        ("1h", "2026-03-01T23:30:00", "2026-03-02T00:00:00"),
        ("1d", "2026-03-01T00:00:00", "2026-03-02T00:00:00"),
        (1, "2026-03-01T00:00:00.5", "2026-03-01T00:00:01"),
    ],
)
def test_every_counts_from_midnight(span: Any, now: str, then: str) -> None:
    assert next_of(bot.every(span))(at(now)) == at(then)


BERLIN, APIA = "Europe/Berlin", "Pacific/Apia"


@pytest.mark.parametrize(
    ("time_of_day", "zone", "now", "then"),
    [
        ("09:00", "UTC", "2026-03-01T08:59:59+00:00", "2026-03-01T09:00:00+00:00"),
        ("09:00", "UTC", "2026-03-01T09:00:00+00:00", "2026-03-02T09:00:00+00:00"),
        ("00:00", "UTC", "2026-12-31T23:59:59+00:00", "2027-01-01T00:00:00+00:00"),
        ("09:00", BERLIN, "2026-03-28T12:00:00+01:00", "2026-03-29T09:00:00+02:00"),  # summer time began meanwhile
        ("09:00", BERLIN, "2026-10-24T12:00:00+02:00", "2026-10-25T09:00:00+01:00"),  # and ended
        ("02:30", BERLIN, "2026-03-29T00:00:00+01:00", "2026-03-29T03:30:00+02:00"),  # 02:30 does not exist
        ("02:30", BERLIN, "2026-03-29T03:30:00+02:00", "2026-03-30T02:30:00+02:00"),
        ("02:30", BERLIN, "2026-10-25T00:00:00+02:00", "2026-10-25T02:30:00+02:00"),  # it is there twice: the first
        ("02:30", BERLIN, "2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"),  # and not again
        ("02:30", BERLIN, "2026-10-25T02:15:00+01:00", "2026-10-26T02:30:00+01:00"),
        ("09:00", "Asia/Kolkata", "2026-03-01T03:29:00+00:00", "2026-03-01T03:30:00+00:00"),
        ("12:00", APIA, "2011-12-29T12:00:00-10:00", "2011-12-31T12:00:00+14:00"),  # a day that was left out
    ],
)
def test_daily_follows_the_clock_on_the_wall_of_its_zone(time_of_day: str, zone: str, now: str, then: str) -> None:
    moments = [datetime.datetime.fromisoformat(each).timestamp() for each in (now, then)]
    assert next_of(bot.daily(time_of_day, tz=zone))(moments[0]) == moments[1]


@pytest.mark.parametrize("zone", [BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"])
@pytest.mark.parametrize("time_of_day", ["00:00", "01:45", "02:15", "02:30", "03:00", "23:59"])
def test_a_year_of_days_has_one_run_on_each(zone: str, time_of_day: str) -> None:
    next_after, now, days = next_of(bot.daily(time_of_day, tz=zone)), at("2026-01-01T12:00", zone), list[Any]()
    for _ in range(366):
        now = next_after(now)
        days.append(datetime.datetime.fromtimestamp(now, ZoneInfo(zone)).date())
    assert days == [days[0] + datetime.timedelta(number) for number in range(366)]


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: bot.every(0), "a second is the least"),
        (lambda: bot.every("0s"), "a second is the least"),
        (lambda: bot.every("often"), "is no time span"),
        (lambda: bot.daily("9 o'clock"), "Invalid isoformat string"),
        (lambda: bot.daily("09:00", tz="Mars/Olympus"), "there is no time zone 'Mars/Olympus' here"),
    ],
)
def test_a_rhythm_that_makes_no_sense_is_refused_at_once(make: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        make()


# Over and over: running


def beating(text: str, span: str = "10m") -> Any:
    @bot.every(span)
    async def beat(ctx: EventContext) -> None:
        await ring(ctx, text)

    return beat


@pytest.mark.gateway_only  # no interaction is part of it
async def test_it_runs_at_each_of_its_moments_and_what_was_missed_is_made_up_for_by_one_run() -> None:
    async with ticking(beating("x")) as (discord, app):
        await until(app.store.timers)
        assert await rung(app) == []
        for count in (1, 2):
            discord.clock.advance(600)
            await rings(app, *["x"] * count)
        discord.clock.advance(24 * HOUR)
        await rings(app, "x", "x", "x")
        [timer] = await app.store.timers()
        assert timer.due_at
        assert 0 < timer.due_at - time.time() <= 600


@pytest.mark.gateway_only  # no interaction is part of it
async def test_a_run_that_fails_does_not_end_the_rhythm() -> None:
    @bot.every("10m")
    async def beat(ctx: EventContext) -> None:
        raise ValueError("never")

    async with ticking(beat) as (discord, app):
        await until(app.store.timers)
        for count in (1, 2):
            discord.clock.advance(600)
            app.wake()

            async def has_failed(count: int = count) -> bool:
                return len(await app.failed()) == count

            await until(has_failed)
        assert len(await app.store.timers()) == 1


@pytest.mark.gateway_only  # no interaction is part of it
async def test_it_never_runs_twice_at_once() -> None:
    go_on, running_now, most = asyncio.Event(), 0, 0

    @bot.every("10m")
    async def beat(ctx: EventContext) -> None:
        nonlocal running_now, most
        running_now += 1
        most = max(most, running_now)
        await go_on.wait()
        running_now -= 1
        await ring(ctx, "x")

    async with ticking(beat) as (discord, app):
        await until(app.store.timers)
        for _ in range(3):
            discord.clock.advance(600)
            app.wake()

            async def is_set_anew() -> bool:
                [timer] = await app.store.timers() or [bot.Timer(bot.EventKey(""), 0)]
                return (timer.due_at or 0) > time.time()

            await until(is_set_anew)
            await until(lambda: running_now)
        await asyncio.sleep(0.1)
        go_on.set()
        await rings(app, "x")  # moments that pass during a run are left out
        discord.clock.advance(600)
        await rings(app, "x", "x")
        assert most == 1


@pytest.mark.gateway_only  # no interaction is part of it
async def test_a_clock_that_was_wrong_for_a_while_does_not_end_the_rhythm() -> None:
    async with ticking(beating("x")) as (discord, app):
        await until(app.store.timers)
        years = 10 * 365 * 24 * HOUR
        discord.clock.offset_s += years  # this process's clock alone
        await rings(app, "x")
        discord.clock.offset_s -= years

        async def is_set_anew() -> bool:
            [timer] = await app.store.timers()
            return (timer.due_at or 0) <= time.time() + 600

        await until(is_set_anew)
        discord.clock.advance(600)
        await rings(app, "x", "x")


@pytest.mark.gateway_only  # no interaction is part of it
async def test_another_rhythm_takes_the_place_of_the_old_one_and_a_function_that_is_gone_runs_no_more(
    tmp_path: Path,
) -> None:
    async with Discord() as discord:
        with discord.clock.here():

            def again(*things: Any) -> Any:
                return running(discord, Rung, ring, *things, store=moving(discord, tmp_path / "bot.db"))

            async with again(beating("slow", "1h")) as app:
                await until(app.store.timers)
            async with again(beating("fast")) as app:
                await until(lambda: timers_are(app, "repeat:beat:600"))
                discord.clock.advance(600)
                await rings(app, "fast")
            discord.clock.advance(600)
            async with again() as app:
                await until(lambda: timers_are(app))
                await rings(app, "fast")


async def timers_are(app: bot.App, *keys: str) -> bool:
    return [timer.key for timer in await app.store.timers()] == [*keys]


# Over a kill


AT_ITS_TIME = "before it fires", "after it fired", "before the timer's commit", "after the timer's commit"


def texts(store: Path) -> list[str]:
    found = rows(store, "SELECT data FROM record WHERE name='rung'")
    return sorted(json.loads(found[0][0])["texts"]) if found else []


def has_all(discord: Discord, store: Path) -> bool:
    """Whether the bot has accepted all that people did, and done it."""
    [(accepted,)] = rows(store, "SELECT count(*) FROM inbox WHERE key LIKE 'interaction:%'")
    return accepted == len(discord.journal.of("interaction")) and is_idle(store)


def is_idle(store: Path) -> bool:
    return not rows(store, "SELECT key FROM inbox WHERE done_at IS NULL")


@pytest.mark.gateway_only  # no interaction is part of it
async def test_a_timer_runs_once_whenever_the_process_is_killed(tmp_path: Path) -> None:
    store, armed = tmp_path / "bot.db", tmp_path / "armed"
    async with Discord() as discord:
        process = await start(discord, "alarm", store)
        alice = discord.user("alice")
        await alice.command("set", text="0")
        wanted = ["0"]
        for point in ("before the command's commit", "after the command's commit"):
            armed.write_text(point, "utf-8")
            alice.start_command("set", {"text": point})
            wanted.append(point)
            assert await process.wait() == -signal.SIGKILL
            await process.start()
            await process.ready()
            await until(lambda: has_all(discord, store))
        assert len(rows(store, "SELECT key FROM timer WHERE key LIKE 'timer:%'")) == 3
        process.kill()
        await process.wait()
        discord.clock.advance(HOUR + 1)  # they come due while it is down
        await die_at_each(process, armed, *AT_ITS_TIME)
        await process.start()
        await until(lambda: texts(store) == sorted(wanted))
        await until(lambda: is_idle(store) and not rows(store, "SELECT key FROM timer WHERE key LIKE 'timer:%'"))
        await asyncio.sleep(1.2)  # a look at the clock later
        assert texts(store) == sorted(wanted)
        assert rows(store, "SELECT * FROM failed WHERE type<>'ExpiredError'") == []  # Discord waits 3 s for a restart


@pytest.mark.gateway_only  # no interaction is part of it
async def test_what_runs_over_and_over_runs_once_for_each_moment_whenever_the_process_is_killed(tmp_path: Path) -> None:
    store, armed = tmp_path / "bot.db", tmp_path / "armed"
    async with Discord() as discord:
        process = await start(discord, "alarm", store, BEAT=1)
        await until(lambda: rows(store, "SELECT key FROM timer"))
        for count, point in enumerate(("after it fired", "before the timer's commit", "after the timer's commit"), 1):
            armed.write_text(point, "utf-8")
            discord.clock.advance(HOUR)
            assert await process.wait() == -signal.SIGKILL
            await process.start()
            await process.ready()
            await until(lambda count=count: texts(store) == ["beat"] * count)
            await until(lambda: is_idle(store) and rows(store, "SELECT key FROM timer"))
        process.kill()
        await process.wait()
        discord.clock.advance(10 * HOUR)
        await process.start()
        await until(lambda: texts(store) == ["beat"] * 4)
        await asyncio.sleep(1.2)  # a look at the clock later
        assert texts(store) == ["beat"] * 4


@pytest.mark.gateway_only  # no interaction is part of it
async def test_a_reminder_of_the_example_bot_survives_kill_9(tmp_path: Path) -> None:
    store = tmp_path / "bot.db"
    async with Discord() as discord:
        process = await discord.start_bot(Path(bot.__file__), env={"STORE": f"sqlite:{store}"})
        await process.ready()
        alice = discord.user("alice")
        used = await alice.command("remind", after="1h", text="tea")
        assert discord.text(used.message) == "I will remind you in 1h."
        refused = await alice.command("remind", after="soon", text="tea")
        assert "is no time span" in discord.text(refused.message)
        process.kill()
        await process.wait()
        discord.clock.advance(HOUR)
        await process.start()

        def reminders() -> list[Json]:
            return [each for each in discord.messages() if "tea" in each["content"]]

        await until(reminders)
        await until(lambda: is_idle(store))
        [reminder] = reminders()
        assert reminder["content"] == f"<@{alice.id}> tea"
        process.kill()
        await process.wait()
        await process.start()
        await process.ready()
        await asyncio.sleep(1.2)  # a look at the clock later
        assert len(reminders()) == 1
