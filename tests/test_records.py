"""Records: typed data of the user's own, changed in the one commit of their event, by whatever ran it."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import hikari
import pytest

import bot
from bot import CommandContext, ComponentContext, EventContext, InStore, Record, RecordId, register
from playground import Discord
from tests.kit import (
    Counting,
    at_rest,
    complaints,
    moving,
    playing,
    posting,
    rows,
    running,
    start,
    state_of,
    until,
    view,
)
from tests.test_command_line import run_on

pytestmark = pytest.mark.both_modes


@register(name="score")
class Score(Record):
    points: int = 0
    names: list[str] = bot.field(default_factory=list[str])


class WatchedStore(bot.MemoryStore):
    """Notes what each commit has in it, and refuses one when it is told to."""

    def __init__(self, discord: Discord, **options: Any) -> None:
        super().__init__(bot.bot_id_of(discord.token), **options)
        self.commits: list[tuple[list[RecordId], bool]] = []
        self.refuses: Callable[[Sequence[bot.Saved]], bool] = lambda _: False

    async def commit(
        self, records: Sequence[bot.Saved], done: bot.EventKey | None, timers: Sequence[bot.Timer] = ()
    ) -> None:
        if self.refuses(records):
            raise ValueError("this commit is refused")
        await super().commit(records, done, timers)
        self.commits.append(([saved.id for saved in records], done is not None))


async def points(app: bot.App, *key: Any) -> int:
    saved = await app.store.load(bot.record_id(Score, key))
    return bot.decode_state(Score, saved).points if saved else -1


async def is_at(app: bot.App, wanted: int, *key: Any) -> bool:
    return await points(app, *key) == wanted


@bot.command("add", "Add a point.")
async def add(ctx: CommandContext, name: str = "") -> None:
    score = await ctx.record(Score, ctx.guild_id, name or ctx.user.id)
    score.points += 1
    await ctx.respond(f"{score.points} points")


# One commit for an event


async def test_what_a_command_changes_is_committed_with_its_done_mark_before_the_person_is_told() -> None:
    async with Discord() as discord:
        store = WatchedStore(discord)
        async with running(discord, add, Score, store=store):
            alice = discord.user("alice")
            used = await alice.command("add")
            assert discord.text(used.message) == "1 points"
            key = f"{used.interaction['guild_id']}:{alice.id}"
            assert store.commits == [([RecordId("score", key)], True)]


async def test_a_view_and_the_records_of_its_handler_are_one_commit() -> None:
    async def press(self: Counting, ctx: ComponentContext) -> None:
        for name in ("a", "b"):
            (await ctx.record(Score, name)).points += 1
        self.count += 1
        await ctx.rerender()

    async with Discord() as discord:
        store = WatchedStore(discord)
        cls = view(press)
        async with running(discord, cls, posting(cls), Score, store=store):
            await discord.user("alice").command("post")
            await at_rest(store)
            store.commits.clear()
            await discord.user("alice").click("0")
            await at_rest(store)
            [(ids, is_done)] = store.commits
            assert (sorted(id.name for id in ids), is_done) == (["counter", "score", "score"], True)


async def test_a_commit_that_fails_leaves_nothing_of_view_and_records_and_the_event_on_the_failed_list() -> None:
    async def press(self: Counting, ctx: ComponentContext) -> None:
        (await ctx.record(Score, "a")).points += 1
        self.count += 1
        await ctx.rerender()

    async with Discord() as discord:
        store = WatchedStore(discord)
        async with playing(view(press), Score, store=store) as play:
            store.refuses = lambda records: any(saved.id.name == "score" for saved in records)
            await play.discord.user("alice").click("0")
            [failed] = await play.failed()
            assert (failed.failure.text, failed.applied) == ("this commit is refused", False)
            assert [await points(play.app, "a"), await play.count(), play.shown] == [-1, 0, 0]
            store.refuses = lambda _: False
            assert await play.app.retry_failed() == 1
            await play.at_rest()
            assert [await points(play.app, "a"), await play.count(), play.shown] == [1, 1, 1]


async def test_a_record_that_is_only_read_is_not_written_and_a_fresh_one_is_not_made() -> None:
    @bot.command("look", "Look.")
    async def look(ctx: CommandContext) -> None:
        there, fresh = await ctx.record(Score, "there"), await ctx.record(Score, "fresh")
        await ctx.respond(f"{there.points} {fresh.points}")

    async with Discord() as discord:
        store = WatchedStore(discord)
        async with running(discord, look, Score, store=store) as app:
            async with app.record(Score, "there") as there:
                there.points = 3
            store.commits.clear()
            used = await discord.user("alice").command("look")
            assert discord.text(used.message) == "3 0"
            await at_rest(store)
            assert store.commits == [([], True)]
            assert await points(app, "fresh") == -1


@pytest.mark.gateway_only  # it has a listener
async def test_records_are_changed_by_a_command_a_click_a_form_a_listener_and_a_timer() -> None:
    async def count(ctx: EventContext, who: str) -> None:
        (await ctx.record(Score, who)).points += 1

    class Ask(bot.Form, title="Ask"):
        text: str = bot.TextInput("Text")

    async def press(self: Counting, ctx: ComponentContext) -> None:
        await count(ctx, "click")
        await ctx.open(Ask(), then=self.asked)  # type: ignore[attr-defined]

    @bot.handler
    async def asked(self: Counting, ctx: ComponentContext, form: Any) -> None:
        await count(ctx, f"form {form.text}")

    asked.__annotations__["form"] = Ask
    cls = view(bot.handler(opens_form=True)(press), members={"asked": asked})

    @bot.command("go", "Go.")
    async def go(ctx: CommandContext) -> None:
        await count(ctx, "command")
        await ctx.later(0, due, "timer")

    @bot.handler
    async def due(ctx: EventContext, who: str) -> None:
        await count(ctx, who)

    @bot.listen(hikari.GuildMessageCreateEvent)
    async def heard(ctx: EventContext, event: hikari.GuildMessageCreateEvent) -> None:
        if event.is_human:
            await count(ctx, "listener")

    async with playing(cls, go, due, heard, Score) as play:
        await play.alice.command("go")
        await play.click()
        await play.alice.submit({"Text": "x"})
        await play.alice.say("hello")

        async def all_counted() -> bool:
            names = ("command", "click", "form x", "listener", "timer")
            return [await points(play.app, name) for name in names] == [1] * len(names)

        await until(all_counted)
        assert await play.failed() == []


async def test_what_is_changed_after_the_answer_is_saved_at_the_end() -> None:
    @bot.command("late", "Count late.")
    async def late(ctx: CommandContext) -> None:
        score = await ctx.record(Score, "a")
        score.points += 1
        await ctx.respond("wait")
        score.points += 10

    async with Discord() as discord, running(discord, late, Score) as app:
        await discord.user("alice").command("late")
        await until(lambda: is_at(app, 11, "a"))


# Conflicts


async def counted_by_all(discord: Discord, app: bot.App, wanted: int, *key: Any) -> list[str]:
    await at_rest(app.store)
    assert await points(app, *key) == wanted
    return [each.key for each in await app.failed()]


async def test_fifty_commands_on_one_record_all_count_with_one_more_run_each_at_most() -> None:
    runs: dict[int, int] = {}

    @bot.command("shared", "Count.")
    async def shared(ctx: CommandContext) -> None:
        runs[ctx.id] = runs.get(ctx.id, 0) + 1
        score = await ctx.record(Score, "all")
        await asyncio.sleep(0.01)  # all have read it by now
        score.points += 1
        await ctx.respond(str(score.points))

    async with Discord() as discord, running(discord, shared, Score) as app:
        await discord.user("alice").command("shared")
        used = [discord.user(f"person{number}").start_command("shared", {}) for number in range(50)]
        await asyncio.gather(*(each.answered() for each in used))
        assert await counted_by_all(discord, app, 51, "all") == []
        texts = sorted(int(discord.text(each.message)) for each in used)
        assert texts == [*range(2, 52)]
        assert max(runs.values()) == 2


async def test_clicks_on_different_messages_that_share_a_record_all_count() -> None:
    runs = 0

    async def press(self: Counting, ctx: ComponentContext) -> None:
        nonlocal runs
        runs += 1
        (await ctx.record(Score, "all")).points += 1
        await asyncio.sleep(0.01)
        self.count += 1
        await ctx.rerender()

    async with playing(view(press), Score) as play:
        messages = [play.message, *[(await play.alice.command("post")).message for _ in range(9)]]
        for round_ in range(5):
            for message in messages:
                play.beside(message).click(f"person{round_}")
        await until(lambda: runs >= 50)
        assert await counted_by_all(play.discord, play.app, 50, "all") == []
        assert [await play.beside(each).count() for each in messages] == [5] * 10
        assert runs <= 100


async def test_a_view_in_its_message_counts_once_when_its_record_was_changed_meanwhile() -> None:
    runs = 0

    async def press(self: Counting, ctx: ComponentContext) -> None:
        nonlocal runs
        runs += 1
        score = await ctx.record(Score, "a")
        if runs == 1:
            async with ctx.app.record(Score, "a") as other:
                other.points = 10
        score.points += 1
        self.count += 1
        await ctx.rerender()

    async with playing(view(press, state=bot.InMessage()), Score) as play:
        await play.click()
        await until(lambda: runs == 2)
        await play.at_rest()
        assert [play.shown, await points(play.app, "a"), await play.failed()] == [1, 11, []]


@pytest.mark.parametrize("told", ["never", "always", "at first"])
async def test_two_records_taken_in_opposite_orders_never_wait_for_each_other(told: str) -> None:
    began: set[int] = set()

    @bot.command("swap", "Move a point.")
    async def swap(ctx: CommandContext, first: str, second: str) -> None:
        one = await ctx.record(Score, first)
        one.points += 1
        await asyncio.sleep(0.02)
        if told == "always" or (told == "at first" and ctx.id not in began):
            began.add(ctx.id)
            await ctx.respond("one")  # saves the first one, perhaps after a conflict; nothing can run again then
        two = await ctx.record(Score, second)
        await asyncio.sleep(0.02)
        two.points += 1

    async with Discord() as discord, running(discord, swap, Score) as app:
        alice = discord.user("alice")
        await alice.command("swap", first="x", second="y")
        names = [("a", "b"), ("b", "a")] * 10
        used = [alice.start_command("swap", {"first": first, "second": second}) for first, second in names]
        await asyncio.gather(*(each.answered() for each in used))

        async def all_ended() -> bool:
            lost = sum(1 if each.applied else 2 for each in await app.failed())
            return await points(app, "a") + await points(app, "b") == 40 - lost

        await until(all_ended)
        failed = await app.failed()
        # After an answer nothing can run again: of two that waited for each other, one was refused.
        assert {each.failure.type for each in failed} <= (
            {"RuntimeError", "StateConflictError"} if told != "never" else set()
        )


async def test_who_asks_for_a_record_after_the_answer_has_it_for_itself() -> None:
    @bot.command("late", "Answer, and then count.")
    async def late(ctx: CommandContext) -> None:
        await ctx.respond("You are counted.")
        score = await ctx.record(Score, "all")
        before = score.points
        await asyncio.sleep(0.01)
        score.points = before + 1

    async with Discord() as discord, running(discord, late, Score) as app:
        await discord.user("alice").command("late")
        used = [discord.user(f"person{number}").start_command("late", {}) for number in range(20)]
        await asyncio.gather(*(each.answered() for each in used))
        await until(lambda: is_at(app, 21, "all"))
        assert await app.failed() == []


async def test_a_record_can_be_had_outside_of_a_handler_beside_handlers_that_change_it() -> None:
    async with Discord() as discord, running(discord, add, Score) as app:
        alice = discord.user("alice")
        used = await alice.command("add", name="n")
        guild = used.interaction["guild_id"]

        async def add_outside() -> None:
            async with app.record(Score, guild, "n") as score:
                before = score.points
                await asyncio.sleep(0)
                score.points = before + 1

        commands = [alice.start_command("add", {"name": "n"}) for _ in range(25)]
        await asyncio.gather(*(add_outside() for _ in range(25)), *(each.answered() for each in commands))
        assert await counted_by_all(discord, app, 51, guild, "n") == []


@pytest.mark.gateway_only  # no interaction is part of it
async def test_who_fails_outside_of_a_handler_saves_nothing() -> None:
    async with Discord() as discord, running(discord, Score) as app:
        with pytest.raises(RuntimeError, match="no"):
            async with app.record(Score, "a") as score:
                score.points = 5
                raise RuntimeError("no")
        assert await points(app, "a") == -1


@pytest.mark.timeout(60)
@pytest.mark.gateway_only  # no interaction is part of it
async def test_who_would_wait_for_ever_for_a_record_is_told_so() -> None:
    async with Discord() as discord, running(discord, Score) as app:
        taken = asyncio.Barrier(2)

        async def take(first: str, second: str) -> None:
            async with app.record(Score, first) as one:
                await taken.wait()
                async with app.record(Score, second) as two:
                    one.points += 1
                    two.points += 1

        done = await asyncio.gather(take("a", "b"), take("b", "a"), return_exceptions=True)
        [error] = [each for each in done if each]
        assert isinstance(error, RuntimeError)
        assert "would wait for itself" in str(error)
        assert [await points(app, "a"), await points(app, "b")] == [1, 1]


# Deleting, ttl, other versions


async def test_a_removed_record_is_gone_with_its_event_and_can_be_begun_anew() -> None:
    @bot.command("reset", "Begin anew.")
    async def reset(ctx: CommandContext, again: bool) -> None:
        ctx.remove(await ctx.record(Score, "a"))
        await ctx.respond("gone")
        if again:
            (await ctx.record(Score, "a")).points += 7

    async with Discord() as discord, running(discord, reset, Score) as app:
        for again, left in ((False, -1), (True, 7), (True, 7)):
            async with app.record(Score, "a") as score:
                score.points = 5
            await discord.user("alice").command("reset", again=again)
            await at_rest(app.store)
            assert await points(app, "a") == left
        await app.remove(Score, "a")
        await app.remove(Score, "a")
        assert await points(app, "a") == -1


async def test_a_record_whose_time_is_over_is_a_fresh_one_and_leaves_the_store() -> None:
    @register(name="brief", state=InStore(ttl=60))
    class Brief(Record):
        points: int = 0

    @bot.command("hit", "Count.")
    async def hit(ctx: CommandContext) -> None:
        brief = await ctx.record(Brief, "a")
        brief.points += 1
        await ctx.respond(str(brief.points))

    async with Discord() as discord:
        store = WatchedStore(discord, now=lambda: time.time())  # noqa: PLW0108  # the one that moves
        with discord.clock.here():
            async with running(discord, hit, Brief, store=store) as app:
                alice = discord.user("alice")
                texts = [discord.text((await alice.command("hit")).message) for _ in range(2)]
                discord.clock.advance(61)
                texts.append(discord.text((await alice.command("hit")).message))
                assert texts == ["1", "2", "1"]
                discord.clock.advance(61)
                assert await store.purge(app.views.that_end) == 1
                assert [each async for each in app.records(Brief)] == []


def model(version: int, *, migrates: bool = True) -> Any:
    class Thing(Record):
        number: int = 0

        @classmethod
        def migrate(cls, version: int, state: bot.JSON) -> bot.JSON:
            return {"number": state["number"] + 100} if migrates else super().migrate(version, state)

    return register(name="thing", version=version)(Thing)


async def test_an_older_record_is_migrated_and_one_that_cannot_be_is_kept_and_takes_no_other_down(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    old, new, stubborn = model(1), model(2), model(2, migrates=False)

    def command_for(cls: Any) -> Any:
        @bot.command("bump", "Bump.")
        async def bump(ctx: CommandContext, key: str) -> None:
            thing = await ctx.record(cls, key)
            thing.number += 1
            await ctx.respond(str(thing.number))

        return bump

    async with Discord() as discord:
        alice = discord.user("alice")

        def again(cls: Any) -> Any:
            return running(discord, command_for(cls), cls, store=moving(discord, tmp_path / "bot.db"))

        async with again(old) as app:
            for key in ("a", "b"):
                async with app.record(old, key) as thing:
                    thing.number = 5
        async with again(new):
            assert discord.text((await alice.command("bump", key="a")).message) == "106"
        async with again(stubborn) as app:
            used = await alice.command("bump", key="b")
            assert discord.text(used.message) == "Something went wrong."
            [failed] = await app.failed()
            assert failed.failure.text == "thing b: thing: no migrate() from version 1."
            assert discord.text((await alice.command("bump", key="a")).message) == "107"
            assert [(key, each.number) async for key, each in app.records(stubborn)] == [("a", 107)]
            saved = await app.store.load(RecordId("thing", "b"))
            assert saved
            assert json.loads(saved.data) == {"number": 5}
            with pytest.raises(bot.StateUnreadableError):
                async with app.record(stubborn, "b"):
                    pass
    assert any("no migrate() from version 1" in line for line in complaints(caplog))


# Many of them


async def fill(app: bot.App, **scores: int) -> None:
    for key, value in scores.items():
        async with app.record(Score, *key.split("_")) as score:
            score.points = value


@pytest.mark.gateway_only  # no interaction is part of it
async def test_records_are_found_by_the_beginning_of_their_key_and_by_the_height_of_a_field() -> None:
    async with Discord() as discord, running(discord, Score) as app:
        for guild, user, value in ((1, 10, 5), (1, 11, 9), (1, 12, 7), (12, 10, 99), (2, 1, 1)):
            async with app.record(Score, guild, user) as score:
                score.points = value
        async with app.record(Score) as score:  # one for all
            score.points = 3
        found = [(key, score.points) async for key, score in app.records(Score, 1)]
        assert found == [("10", 5), ("11", 9), ("12", 7)]
        assert [(key, each.points) async for key, each in app.records(Score, 1, by="points", top=2)] == [
            ("11", 9),
            ("12", 7),
        ]
        assert [each.points async for _, each in app.records(Score, by="points", top=1)] == [99]
        assert sorted([each.points async for _, each in app.records(Score)]) == [1, 3, 5, 7, 9, 99]
        with pytest.raises(ValueError, match="Score has no field 'nothing'"):
            [each async for each in app.records(Score, by="nothing")]


@pytest.mark.gateway_only  # no interaction is part of it
async def test_more_records_than_one_reading_holds_are_all_found_once() -> None:
    async with Discord() as discord, running(discord, Score) as app:
        saved = [bot.first_saved(Score(number), bot.record_id(Score, ("g", number)), 0) for number in range(1, 1_203)]
        await app.store.commit(saved, None)
        assert sorted([int(key) async for key, _ in app.records(Score, "g")]) == [*range(1, 1_203)]
        assert len([key async for key, _ in app.records(Score)]) == 1_202


PARTS = [
    "a:b",
    "a",
    "b",
    ":",
    "",
    "%",
    "%3A",
    "a%",
    ";",
    "~",
    "ü",
    "\x00",
    "\n",
    "'",
    "1",
    None,
    5,
    "None",
    "\U0010ffff",
]


@pytest.mark.gateway_only  # no interaction is part of it
async def test_keys_of_different_parts_are_different_and_lead_back_to_their_last_part() -> None:
    keys = [(), *((part,) for part in PARTS), *((one, two) for one in PARTS for two in PARTS)]
    ids = {bot.record_id(Score, key) for key in keys}
    assert len(ids) == len(keys)
    async with Discord() as discord, running(discord, Score) as app:
        await app.store.commit([bot.first_saved(Score(1), id, 0) for id in ids], None)
        assert len([key async for key, _ in app.records(Score)]) == len(keys)
        for part in PARTS:
            found = [key async for key, _ in app.records(Score, part)]
            assert sorted(found) == sorted(["None" if each is None else str(each) for each in [part, *PARTS]])


# Names


@pytest.mark.parametrize("name", ["_score", "_claim", "_form", "__"])
def test_a_name_with_an_underscore_first_is_refused(name: str) -> None:
    cls = register(name=name)(type("Mine", (Record,), {}))
    with pytest.raises(bot.OperatorError, match="is no name"):
        bot.App(bot.Config()).add(cls)


async def test_a_record_that_is_not_listed_is_refused_where_it_is_asked_for() -> None:
    async with Discord() as discord, running(discord, add) as app:
        await discord.user("alice").command("add")
        [failed] = await app.failed()
        assert failed.failure.text == "Score is not known here. List it in your_bot: app.add(Score)"


# Over a kill, and from a shell


async def test_points_and_clicks_agree_whenever_the_process_is_killed(tmp_path: Path) -> None:
    store = tmp_path / "bot.db"
    async with Discord() as discord:
        process = await start(discord, "points", store)
        alice = discord.user("alice")
        message = (await alice.command("post")).message
        assert message
        custom_id = message["components"][0]["components"][0]["custom_id"]
        armed = tmp_path / "armed"
        for point in ("before the commit", "after the commit", "before the answer", "after the answer"):
            # What the last process left must not be what dies: over HTTP a click that comes then is not sent again.
            await until(lambda: not rows(store, "SELECT key FROM inbox WHERE done_at IS NULL"))
            armed.write_text(point, "utf-8")
            alice.click(custom_id=custom_id, message=message["id"])
            assert await process.wait() == -signal.SIGKILL
            await process.start()
            await process.ready()
        await until(lambda: state_of(store, message)["count"] >= 4)  # the last click may be on its way once more
        await until(lambda: not rows(store, "SELECT key FROM inbox WHERE done_at IS NULL"))
        assert state_of(store, message) == {"count": 4}
        [(data,)] = rows(store, "SELECT data FROM record WHERE name='score'")
        assert json.loads(data)["points"] == 4
        assert rows(store, "SELECT * FROM failed") == []

        done = await run_on(discord, Path(bot.__file__), "export", "score", cwd=tmp_path, STORE=f"sqlite:{store}")
        assert json.loads(done.out) == {
            "name": "score",
            "key": f"5:{alice.id}",
            "version": 1,
            "state": {"points": 4},
        }
        both = await run_on(discord, Path(bot.__file__), "export", cwd=tmp_path, STORE=f"sqlite:{store}")
        assert [json.loads(line)["name"] for line in both.out.splitlines()] == ["counter", "score"]
