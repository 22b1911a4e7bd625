"""Faults that a reviewer found, each as the test of its kind."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

import bot
from bot import CommandContext, ComponentContext, EventContext, InStore, Record, register
from playground import Discord
from tests import kit
from tests.kit import Counting, playing, record_of, running, until, view

pytestmark = pytest.mark.both_modes


@register(name="score")
class Score(Record):
    points: int = 0


@register(name="camel")
class Camel(Record, rename="camel"):
    my_points: int = 0


async def points(app: bot.App, key: int = 1) -> int:
    """Return the points of a score as they are saved."""
    saved = await app.store.load(bot.record_id(Score, [key]))
    return bot.decode_state(Score, saved).points if saved else 0


async def test_two_handlers_that_would_wait_for_each_other_for_ever_do_not() -> None:
    """One has a view and wants a record, the other has the record and wants the view."""
    has_view, has_record = asyncio.Event(), asyncio.Event()
    ids: list[bot.RecordId] = []

    async def press(self: Any, ctx: ComponentContext) -> None:
        score = await ctx.record(Score, 1)
        score.points += 1
        self.count += 1
        has_view.set()
        await has_record.wait()
        await ctx.rerender()

    @bot.command("award", "Award.")
    async def award(ctx: CommandContext) -> None:
        await ctx.respond("ok")
        score = await ctx.record(Score, 1)
        score.points += 10
        has_record.set()
        await asyncio.sleep(0.2)
        await ctx.app.update(ids[0], lambda each: setattr(each, "count", each.count + 10))

    async with playing(press, Score, award) as play:
        ids.append(record_of(play.message))
        click = play.click()
        await has_view.wait()
        await play.discord.user("bob").command("award")
        await click
        failed = await play.failed()
        assert [each.failure.type for each in failed] in (["RuntimeError"], [])
        has_view.clear()
        await play.click("bob")
        await play.at_rest()


async def test_a_handler_that_gives_up_waiting_for_a_record_has_not_saved_it() -> None:
    @bot.command("gain", "Gain.")
    async def gain(ctx: CommandContext) -> None:
        score = await ctx.record(Score, 1)
        score.points += 1
        async with asyncio.timeout(0.3):
            await ctx.respond("you have one more")

    async with playing(Counting.press, Score, gain) as play:
        async with play.app.record(Score, 1):
            used = asyncio.ensure_future(play.alice.command("gain"))
            await asyncio.sleep(1)
        await used
        [failed] = await play.failed()
        assert (failed.failure.type, failed.applied) == ("TimeoutError", False)
        assert await points(play.app) == 0
        await play.app.retry_failed()
        await play.at_rest()
        assert await points(play.app) == 1


async def test_who_waits_for_a_record_takes_nobodys_slot() -> None:
    ids: list[bot.RecordId] = []

    @bot.command("award", "Award.")
    async def award(ctx: CommandContext) -> None:
        await ctx.respond("ok")
        score = await ctx.record(Score, 1)
        score.points += 1
        await asyncio.sleep(0.1)
        await ctx.app.update(ids[0], lambda each: setattr(each, "count", each.count + 1))

    async with playing(Counting.press, Score, award, max_handlers=1) as play:
        ids.append(record_of(play.message))
        await asyncio.gather(*(play.discord.user(name).command("award") for name in ("alice", "bob", "carol")))
        await play.at_rest()
        assert (await points(play.app), await play.count(), await play.failed()) == (3, 3, [])


@pytest.mark.gateway_only  # no interaction is part of it
async def test_a_rhythm_whose_runs_take_longer_than_its_span_does_not_pile_up() -> None:
    runs: list[float] = []

    @bot.every(1)
    async def slow(ctx: EventContext) -> None:
        runs.append(time.time())
        await asyncio.sleep(2.5)

    async with Discord() as discord, running(discord, view(), slow) as app:
        await until(lambda: len(runs) > 2)
        assert len(await app.store.pending()) <= 2


@pytest.mark.gateway_only  # no interaction is part of it
async def test_bots_that_start_at_the_same_moment_make_one_database(tmp_path: Path) -> None:
    for number in range(8):
        path = str(tmp_path / f"{number}.db")
        stores = [bot.SQLiteStore(path, bot.BotId(10 + each)) for each in range(3)]
        await asyncio.gather(*(store.open() for store in stores))
        await asyncio.gather(*(store.close() for store in stores))


async def test_a_retried_command_says_all_that_it_says() -> None:
    fails = True

    @bot.command("twice", "Twice.")
    async def twice(ctx: CommandContext) -> None:
        if fails:
            raise ValueError("not now")
        await ctx.respond("first")
        await ctx.respond("second")

    async with playing(Counting.press, twice) as play:
        await play.alice.command("twice")
        assert len(await play.failed()) == 1
        fails = False
        await play.app.retry_failed()
        await play.at_rest()
        assert {each["content"] for each in play.discord.messages()} >= {"first", "second"}


async def test_a_record_that_is_asked_for_after_its_removal_is_a_fresh_one() -> None:
    @bot.command("reset", "Reset.")
    async def reset(ctx: CommandContext) -> None:
        ctx.remove(await ctx.record(Score, 1))
        score = await ctx.record(Score, 1)
        score.points += 5
        await ctx.respond(f"{score.points}")

    async with playing(Counting.press, Score, reset) as play:
        async with play.app.record(Score, 1) as score:
            score.points = 100
        await play.alice.command("reset")
        await play.at_rest()
        assert await points(play.app) == 5


@pytest.mark.gateway_only  # no interaction is part of it
async def test_a_leaderboard_goes_by_a_field_whatever_its_name_in_the_store() -> None:
    async with playing(Counting.press, Camel) as play:
        for key, number in ((1, 3), (2, 10), (3, 5)):
            async with play.app.record(Camel, key) as record:
                record.my_points = number
        assert [key async for key, _ in play.app.records(Camel, by="my_points")] == ["2", "3", "1"]


@pytest.mark.gateway_only  # no interaction is part of it
async def test_a_view_may_delete_its_message_renew_itself_or_show_its_end_when_its_ttl_is_over() -> None:
    async def end_by(how: str) -> tuple[int, int | None, list[bot.FailedEvent]]:
        ended: list[str] = []

        async def on_expire(self: Any, ctx: EventContext) -> None:
            if ended and how == "renew":
                return
            ended.append(how)
            self.count += 7
            if how == "delete":
                await ctx.delete()
            else:
                await ctx.rerender(renew=how == "renew")

        cls = view(members={"on_expire": on_expire}, state=InStore(ttl=1 if how != "renew" else 30))
        async with playing(cls) as play:
            if how == "renew":
                saved = await play.app.store.load(record_of(play.message))
                assert saved
                await play.app.store.commit([saved._replace(expires_at=time.time())], None)
                play.app.wake()
            await until(lambda: ended)
            await play.at_rest()
            there = play.discord.world.find(play.message["id"])
            return kit.shown(play.discord, play.message) if there else -1, await play.count(), await play.failed()

    assert await end_by("delete") == (-1, None, [])
    assert await end_by("show") == (7, None, [])
    assert await end_by("renew") == (7, 7, [])


@pytest.mark.gateway_only  # no interaction is part of it
async def test_what_runs_all_the_time_does_not_walk_all_records(tmp_path: Path) -> None:
    """By SQLite's own word: what it would search by."""
    store = bot.SQLiteStore(str(tmp_path / "bot.db"), bot.BotId(1))
    await store.open()
    seen: list[str] = []
    private: Any = store
    for connection in (private._reader, private._db):
        await private._call(connection, lambda db: db.set_trace_callback(seen.append))
    await store.fire(["poll"])
    await store.clean_up(bot.Gone(channel=1, messages=(2, 3)))
    await store.behind()
    await store.close()
    asked = [sql for sql in seen if "record" in sql]
    assert len(asked) >= 3
    for sql in asked:
        plan = " ".join(row[3] for row in kit.rows(tmp_path / "bot.db", f"EXPLAIN QUERY PLAN {sql}"))
        assert "USING INDEX record_" in plan, (sql, plan)


@pytest.mark.gateway_only  # no interaction is part of it
async def test_giving_up_to_wait_for_a_slot_that_was_lent_makes_no_slot() -> None:
    slots, together, most, taken, ends = bot.Slots(1), 0, 0, asyncio.Event(), asyncio.Event()

    async def work() -> None:
        nonlocal together, most
        async with slots:
            together += 1
            most = max(most, together)
            taken.set()
            await ends.wait()
            together -= 1

    async def lends_and_gives_up() -> None:
        async with slots:
            try:
                async with asyncio.timeout(0.1), slots.lent():
                    await taken.wait()
            except TimeoutError:
                pass

    lender = asyncio.create_task(lends_and_gives_up())
    await asyncio.sleep(0)
    workers = [asyncio.create_task(work()) for _ in range(3)]
    await lender
    await asyncio.sleep(0.05)
    assert (together, most) == (1, 1)
    ends.set()
    await asyncio.gather(*workers)
    assert most == 1


async def test_what_on_error_sends_is_no_copy_of_what_the_handler_sent() -> None:
    async def press(self: Any, ctx: ComponentContext) -> None:
        assert ctx.channel_id
        await ctx.send(ctx.channel_id, "Working on it")
        raise ValueError("no")

    async def on_error(self: Any, ctx: ComponentContext, error: Exception) -> None:
        await ctx.send(ctx.channel_id, "It failed, sorry")

    async with playing(view(press, members={"on_error": on_error})) as play:
        await play.click()
        await play.at_rest()
        assert {"Working on it", "It failed, sorry"} <= {each["content"] for each in play.discord.messages()}


async def test_nothing_is_committed_before_an_answer_that_cannot_be_given() -> None:
    async def press(self: Any, ctx: ComponentContext, text: str) -> None: ...

    class Long(bot.View):
        text: str

        def render(self) -> bot.Layout:
            return bot.Row(bot.Button(self.press, self.text, label="x"))

        @bot.handler
        async def press(self, ctx: ComponentContext, text: str) -> None: ...

    long = register(name="long")(Long)

    @bot.command("give", "Give.")
    async def give(ctx: CommandContext, how: str) -> None:
        score = await ctx.record(Score, 1)
        score.points += 1
        if how == "too long":
            await ctx.respond(long("x" * 78))
        else:
            await ctx.respond(long("x"), ttl="2 hours")

    async with playing(Counting.press, Score, long, give) as play:
        for how in ("too long", "no span"):
            await play.alice.command("give", how=how)
        assert [each.applied for each in await play.failed()] == [False, False]
        assert await points(play.app) == 0


async def test_a_record_one_has_to_oneself_is_not_lost_to_a_handler_that_holds_another() -> None:
    entered, answered = asyncio.Event(), asyncio.Event()

    @bot.command("both", "Both.")
    async def both(ctx: CommandContext) -> None:
        second = await ctx.record(Score, 2)
        await ctx.respond("hi")
        first = await ctx.record(Score, 1)
        answered.set()
        await entered.wait()
        first.points += 1
        second.points += 1

    async with playing(Counting.press, Score, both) as play:
        used = asyncio.ensure_future(play.alice.command("both"))
        await answered.wait()
        async with play.app.record(Score, 2) as score:
            entered.set()
            await asyncio.sleep(0.3)
            score.points += 100
        await used
        await play.failed()
        assert await points(play.app, 2) >= 100


async def test_a_picture_that_is_gone_holds_up_no_end(tmp_path: Path) -> None:
    picture = tmp_path / "a.txt"
    picture.write_text("here")
    ended: list[int] = []

    async def on_expire(self: Any, ctx: EventContext) -> None:
        ended.append(self.count)

    def render(self: Any) -> bot.Layout:
        from pathlib import Path

        return [bot.File(Path(str(picture))), bot.Row(bot.Button(self.press, label=f"{self.count}"))]

    cls = view(members={"on_expire": on_expire, "render": render}, state=InStore(ttl=3))
    async with playing(cls) as play:
        picture.unlink()
        await play.click()
        await until(lambda: ended)


def test_what_could_not_be_kept_or_heard_is_refused_where_it_is_listed() -> None:
    class Needs(Record):
        points: int

    app = bot.App(bot.Config())
    for thing, sentence in (
        (register(name="needs")(Needs), "Needs: there is always a first time. Give every field a default."),
    ):
        try:
            app.add(thing)
        except bot.OperatorError as error:
            assert sentence in str(error)
        else:
            raise AssertionError(thing)
