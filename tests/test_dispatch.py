"""From an accepted event to a finished one: order, answers, failures, the three seconds, what is malformed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiosqlite
import msgspec
import pytest

import bot
from bot import AutoDefer, CommandContext, ComponentContext, InStore, TextDisplay
from playground import Discord
from tests.kit import (
    Counting,
    Now,
    Play,
    at_rest,
    be_quick,
    button_id,
    deliver,
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

THINKING = 128


# In order, and at the same time


async def test_clicks_on_one_record_run_one_at_a_time_in_the_order_they_were_made() -> None:
    notes: list[str] = []

    async def press(self: Counting, ctx: ComponentContext) -> None:
        notes.append(f"{ctx.user.username} begins")
        await asyncio.sleep(0.002)
        self.count += 1
        await ctx.rerender()
        notes.append(f"{ctx.user.username} ends")

    async with playing(press) as play:
        people = [f"person{number}" for number in range(12)]
        await asyncio.gather(*(play.click(name) for name in people))
        await play.at_rest()
        assert notes == [note for name in people for note in (f"{name} begins", f"{name} ends")]
        assert await play.count() == play.shown == 12


async def test_clicks_on_different_records_run_at_the_same_time() -> None:
    both = asyncio.Barrier(2)

    async def press(self: Counting, ctx: ComponentContext) -> None:
        async with asyncio.timeout(5):
            await both.wait()
        self.count += 1
        await ctx.rerender()

    async with playing(press) as play:
        other = play.beside((await play.alice.command("post")).message)
        await asyncio.gather(play.click("alice"), other.click("bob"))
        await play.at_rest()
        assert [play.shown, other.shown, await play.failed()] == [1, 1, []]


async def test_at_most_max_handlers_run_at_once_and_the_inbox_holds_the_rest() -> None:
    now, most, go_on = [0], [0], asyncio.Event()

    async def press(self: Counting, ctx: ComponentContext) -> None:
        now[0] += 1
        most[0] = max(most[0], now[0])
        await go_on.wait()
        now[0] -= 1

    async with playing(press, max_handlers=2) as play:
        others = [play.beside((await play.alice.command("post")).message) for _ in range(4)]
        clicks = [each.click() for each in (play, *others)]

        async def all_accepted() -> bool:
            return len(await play.app.store.pending()) == 5

        await until(all_accepted)
        await until(lambda: now[0] == 2)
        go_on.set()
        assert [(await click).state for click in clicks] == ["deferred"] * 5
        assert await play.failed() == []
        assert most == [2]


async def test_a_click_costs_two_commits() -> None:
    store, statements = TracedStore(), list[str]()
    async with playing(store=store) as play:
        await play.at_rest()
        await store.trace(statements.append)
        for _ in range(5):
            await play.click()
        await play.at_rest()
        transactions = [each.split("COMMIT")[0] for each in "\n".join(statements).split("BEGIN IMMEDIATE")[1:]]
        # What a message shows is noted with the next transaction or, when none comes, half a second later in its own;
        # and so is what was answered over HTTP.
        assert len([each for each in transactions if "inbox" in each.replace("UPDATE inbox SET answer", "")]) == 10


class TracedStore(bot.MemoryStore):
    """A store whose statements can be listened to."""

    def __init__(self) -> None:
        super().__init__(bot.BotId(1))

    async def trace(self, note: Callable[[str], None]) -> None:
        database: aiosqlite.Connection = self._db
        await database.set_trace_callback(note)


# Answers


@bot.command("say", "Say it.")
async def say(ctx: CommandContext, text: str, times: int = 1) -> None:
    await ctx.respond(text * times)


@bot.command("boxed", "Say it in a box.")
async def boxed(ctx: CommandContext) -> None:
    await ctx.respond(bot.Container(TextDisplay("in a box")), ephemeral=True)


async def test_a_command_is_answered_with_text_components_or_a_view() -> None:
    async with playing(Counting.press, say, boxed) as play:
        used = await play.alice.command("say", text="ab", times=3)
        assert (used.state, play.discord.text(used.message)) == ("answered", "ababab")
        assert play.discord.text((await play.alice.command("say", text="ab")).message) == "ab"
        secret = await play.alice.command("boxed")
        assert play.discord.text(secret.message) == "in a box"
        assert secret.message not in play.discord.messages(seen_by="bob")
        assert play.shown == 0


async def test_who_may_not_click_is_told_so_alone_and_nothing_changes() -> None:
    async def check(self: Counting, ctx: ComponentContext) -> bool:
        return ctx.user.username == "alice"

    async with playing(view(members={"check": check})) as play:
        used = await play.click("bob")
        assert (used.state, play.discord.text(used.message)) == ("answered", "This is not for you.")
        assert only_seen_by(play, used.message, "bob")
        await play.click("alice")
        await play.at_rest()
        assert [await play.count(), play.shown] == [1, 1]


async def test_what_the_bot_says_can_be_replaced_and_follows_the_persons_language() -> None:
    async with playing(view(members={"check": refuse})) as play:
        play.app.texts[""] = bot.Texts(not_for_you="Hands off.")
        assert play.discord.text((await play.click()).message) == "Hands off."
        play.app.texts["en-US"] = bot.Texts(not_for_you="Hands off, please.")
        assert play.discord.text((await play.click()).message) == "Hands off, please."


async def refuse(self: Counting, ctx: ComponentContext) -> bool:
    return False


def only_seen_by(play: Play, message: Any, name: str) -> bool:
    """Whether that person alone sees the message."""
    seen = {who for who in ("alice", "bob", "carol") if message in play.discord.messages(seen_by=who)}
    return seen == {name}


async def farewell(cls: type[Counting], ctx: ComponentContext) -> None:
    await ctx.edit(TextDisplay("This poll has expired."))


GONE = view(state=InStore(ttl=bot.WEEK))
GONE_WITH_A_WORD = view(state=InStore(ttl=bot.WEEK), members={"on_state_missing": classmethod(farewell)})


@pytest.mark.parametrize("how", ["its ttl is over", "the store is another one"])
@pytest.mark.parametrize("cls", [GONE, GONE_WITH_A_WORD])
async def test_a_click_on_a_message_without_state_is_answered(cls: type[Counting], how: str) -> None:
    later = [0.0]
    store = bot.MemoryStore(bot.BotId(1), now=lambda: time.time() + later[0])
    async with playing(cls, store=store) as play:
        if how == "its ttl is over":
            later[0] = bot.WEEK + 1
        else:
            move_to_another_key(play)
        used = await play.discord.user("bob").click("0", message=play.message["id"])
        await until(lambda: used.state == "answered")
        if cls is GONE:
            assert play.discord.text(used.message) == "This has expired."
            assert only_seen_by(play, used.message, "bob")
        else:
            assert play.discord.text(play.discord.messages()[0]) == "This poll has expired."
        assert await play.failed() == []


def move_to_another_key(play: Play) -> None:
    """Make the message's button name a record that was never there."""
    replace_in(play, record_of(play.message).key, "A" * 11)


def replace_in(play: Play, old: str, new: str) -> None:
    """Make the message read differently, as no bot did it."""
    kept = play.discord.world.find(play.message["id"])
    assert kept
    kept.message = msgspec.json.decode(msgspec.json.encode(play.message).replace(old.encode(), new.encode()))


async def test_an_answer_may_be_followed_by_more_and_a_rerender_by_an_answer() -> None:
    async def press(self: Counting, ctx: ComponentContext) -> None:
        self.count += 1
        await ctx.rerender()
        await ctx.respond("counted", ephemeral=True)
        await ctx.respond("and counted again")

    async with playing(press) as play:
        used = await play.click("bob")
        await play.at_rest()
        assert used.state == "answered"
        assert play.shown == 1
        texts = [play.discord.text(message) for message in play.discord.messages(seen_by="bob")]
        assert texts[1:] == ["counted", "and counted again"]
        assert len(play.discord.messages(seen_by="alice")) == 2


async def test_a_single_click_costs_one_request_that_answers_and_updates() -> None:
    async with playing() as play:
        before = len(play.discord.journal.of("rest"))
        used = await play.click()
        await play.at_rest()
        requests = [entry.data["route"] for entry in play.discord.journal.of("rest")[before:]]
        if Now.mode == "rest":  # the response answers; a look, or another one, tells that Discord has it
            assert {*requests} == {"/webhooks/{webhook_id}/{webhook_token}/messages/@original"}
            assert [each.status for each in play.discord.deliveries[1:]] == [200]
        else:
            assert requests == ["/interactions/{interaction_id}/{interaction_token}/callback"]
        assert used.callback and used.callback["type"] == 7


async def test_an_answer_before_the_rerender_does_not_keep_the_message_from_changing() -> None:
    async def press(self: Counting, ctx: ComponentContext) -> None:
        await ctx.respond("first", ephemeral=True)
        self.count += 1
        await ctx.rerender()

    async with playing(press) as play:
        used = await play.click("bob")
        await play.at_rest()
        assert (play.shown, play.discord.text(used.message)) == (1, "first")


async def test_a_handler_that_rerenders_twice_saves_twice() -> None:
    async def press(self: Counting, ctx: ComponentContext) -> None:
        for _ in range(2):
            self.count += 1
            await ctx.rerender()

    async with playing(press) as play:
        assert (await play.click()).state == "answered"
        await play.at_rest()
        assert [play.shown, await play.count()] == [2, 2]


async def test_edit_changes_the_message_without_state() -> None:
    async def press(self: Counting, ctx: ComponentContext) -> None:
        await ctx.edit(TextDisplay("one"))
        await ctx.edit(TextDisplay("two"))

    async with playing(press) as play:
        assert (await play.click()).state == "answered"
        await play.at_rest()
        assert play.discord.text(play.discord.messages()[0]) == "two"
        assert [await play.count(), await play.failed()] == [0, []]


async def test_a_handler_that_does_nothing_is_answered_all_the_same() -> None:
    async def press(self: Counting, ctx: ComponentContext) -> None:
        pass

    async with playing(press) as play:
        used = await play.click()
        assert used.callback and used.callback["type"] == 6


async def test_a_command_without_an_answer_is_done_and_the_log_says_what_to_write(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @bot.command("mute", "Say nothing.")
    async def mute(ctx: CommandContext) -> None:
        pass

    async with playing(Counting.press, mute) as play:
        used = await play.alice.command("mute")
        assert play.discord.text(used.message) == "Done."
        assert "/mute ended without an answer. Call ctx.respond(…) in it." in caplog.text


async def test_a_change_that_was_never_saved_is_named_in_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    async def press(self: Counting, ctx: ComponentContext) -> None:
        await ctx.rerender()
        self.count += 1

    async with playing(press) as play:
        await play.click()
        await play.at_rest()
        assert await play.count() == 0
    [warning] = [record for record in caplog.records if record.levelname == "WARNING"]
    assert warning.getMessage() == (
        "Counter.press changed count and did not save it. End it with: await ctx.rerender()"
    )


# Once


async def test_an_interaction_that_comes_twice_runs_once() -> None:
    async with playing() as play:
        used = await play.click()
        await deliver(play.discord, used.interaction)
        await play.click("bob")
        await play.at_rest()
        assert [await play.count(), play.shown] == [2, 2]


async def test_an_interaction_that_comes_twice_at_the_same_moment_runs_once() -> None:
    async with playing() as play:
        used = play.click()
        copies = asyncio.gather(*(deliver(play.discord, used.interaction) for _ in range(5)))
        await used
        assert {*await copies} <= {200, None}  # over HTTP all get the one answer
        await play.click("bob")
        await play.at_rest()
        assert [await play.count(), play.shown] == [2, 2]


# Conflicts


async def overtake(ctx: ComponentContext, **changed: Any) -> None:
    """Change the click's record as another process would."""
    saved = await ctx.app.store.load(ctx.bound[1].id)
    assert saved
    await ctx.app.store.commit([saved._replace(**{"data": b'{"count":100}', **changed})], None)


async def test_a_click_whose_state_was_changed_under_it_runs_again_on_the_fresh_state() -> None:
    tries: list[int] = []

    async def press(self: Counting, ctx: ComponentContext) -> None:
        tries.append(self.count)
        if len(tries) == 1:
            await overtake(ctx)
        self.count += 1
        await ctx.rerender()

    async with playing(press) as play:
        assert (await play.click()).state == "answered"
        await play.at_rest()
        assert tries == [0, 100]
        assert [await play.count(), play.shown] == [101, 101]


async def test_a_click_that_loses_three_times_is_on_the_failed_list() -> None:
    tries: list[int] = []

    async def press(self: Counting, ctx: ComponentContext) -> None:
        tries.append(self.count)
        await overtake(ctx)
        await ctx.rerender()

    async with playing(press) as play:
        used = await play.click()
        assert play.discord.text(used.message) == "Something went wrong."
        [failed] = await play.failed()
        assert (failed.failure.type, failed.applied) == ("StateConflictError", False)
        assert len(tries) == 3


async def test_a_click_that_has_answered_does_not_run_again() -> None:
    tries: list[int] = []

    async def press(self: Counting, ctx: ComponentContext) -> None:
        tries.append(self.count)
        await ctx.respond("on it", ephemeral=True)
        await overtake(ctx)
        await ctx.rerender()

    async with playing(press) as play:
        await play.click()
        [failed] = await play.failed()
        assert (failed.failure.type, tries) == ("StateConflictError", [0])


async def test_a_handler_that_catches_the_conflict_finds_the_state_that_won() -> None:
    async def press(self: Counting, ctx: ComponentContext) -> None:
        await overtake(ctx)
        self.count += 1
        try:
            await ctx.rerender()
        except bot.StateConflictError:
            self.count += 1
            await ctx.rerender()

    async with playing(press) as play:
        await play.click()
        assert await play.failed() == []
        assert [await play.count(), play.shown] == [101, 101]


async def test_a_winner_that_cannot_be_read_is_kept_and_the_person_is_told() -> None:
    async def press(self: Counting, ctx: ComponentContext) -> None:
        await overtake(ctx, data=b'{"count":"many"}')
        self.count += 1
        await ctx.rerender()

    async with playing(press) as play:
        used = await play.click("bob")
        assert play.discord.text(used.message) == "Something went wrong."
        await until(play.app.store.failed)
        [failed] = await play.app.store.failed()
        assert failed.failure.type == "StateUnreadableError"
        assert await play.count() == "many"


@pytest.mark.parametrize("changed", [{"data": b'{"count":"many"}'}, {"model": 2}, {"model": 0}])
async def test_a_state_that_cannot_be_read_takes_no_other_view_down(changed: Any) -> None:
    async with playing() as play:
        other = play.beside((await play.alice.command("post")).message)
        saved = await play.app.store.load(record_of(play.message))
        assert saved
        await play.app.store.commit([saved._replace(**changed)], None)
        used = await play.click("bob")
        assert play.discord.text(used.message) == "Something went wrong."
        assert only_seen_by(play, used.message, "bob")
        assert (await other.click()).state == "answered"
        assert other.shown == 1
        [failed] = await play.app.store.failed()
        assert failed.failure.type == "StateUnreadableError"


async def test_an_older_state_is_migrated_at_its_first_click() -> None:
    def migrate(cls: Any, version: int, state: Any) -> Any:
        return {"count": state["number"] + version}

    async with playing(view(version=3, members={"migrate": classmethod(migrate)})) as play:
        saved = await play.app.store.load(record_of(play.message))
        assert saved
        await play.app.store.commit([saved._replace(data=b'{"number":10}', model=1)], None)
        await play.click()
        await play.at_rest()
        assert [await play.count(), play.shown] == [12, 12]


async def test_what_a_handler_saved_before_it_raised_is_what_the_next_click_finds() -> None:
    first, go_on = asyncio.Event(), asyncio.Event()

    async def press(self: Counting, ctx: ComponentContext) -> None:
        if ctx.user.username == "alice":
            first.set()
            await go_on.wait()
        if ctx.user.username == "carol":
            await ctx.respond("on it", ephemeral=True)  # from here on the click cannot run again
        self.count += 1
        await ctx.rerender()
        if ctx.user.username == "bob":
            raise ValueError("too late to matter")

    async with playing(press) as play:
        clicks = [play.click("alice")]
        await first.wait()
        clicks += [play.click("bob"), play.click("carol")]
        await until(lambda: three_wait(play))
        go_on.set()
        await asyncio.gather(*clicks)
        await play.at_rest()
        failed = await play.failed()
        assert [(each.failure.type, each.applied) for each in failed] == [("ValueError", True)]
        assert [await play.count(), play.shown] == [3, 3]


async def three_wait(play: Play) -> bool:
    return len(await play.app.store.pending()) == 3


# Failures


class Unprintable(Exception):
    """An error that cannot even say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


async def cancelled() -> None:
    """What a handler gets that waits for a task which somebody cancelled."""
    task = asyncio.create_task(asyncio.sleep(60))
    task.cancel()
    await task


TOKEN = "MTAwMDAwMDAwMDAwMDAwMDAx.Gabcde.abcdefghijklmnopqrstuvwxyz0123456789"
SECRET = "aW50ZXJhY3Rpb24tdG9rZW4tYXMtZGlzY29yZC1naXZlcw"


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (ValueError("no such tea"), "ValueError", "no such tea"),
        (KeyError("tea"), "KeyError", "'tea'"),
        (ValueError(f"401 for {TOKEN}"), "ValueError", "401 for [token]"),
        (ValueError(f"/webhooks/1/{SECRET}: 500"), "ValueError", "/webhooks/1/[token]: 500"),
        (ValueError("x" * 100_000), "ValueError", "x" * 500),
        (ValueError("lone \ud800"), "ValueError", None),
        (Unprintable(), "Unprintable", None),
        (ExceptionGroup("several", [ValueError("a"), KeyError("b")]), "ExceptionGroup", "several (2 sub-exceptions)"),
        (bot.StateConflictError("by hand"), "StateConflictError", "by hand"),
        (bot.ExpiredError("by hand"), "ExpiredError", "by hand"),
        (TimeoutError(), "TimeoutError", ""),
        (cancelled, "CancelledError", None),
    ],
)
async def test_a_handler_that_raises_is_on_the_failed_list_and_the_bot_goes_on(
    error: Exception | Callable[[], Awaitable[None]], kind: str, text: str | None
) -> None:
    async def press(self: Counting, ctx: ComponentContext) -> None:
        if ctx.user.username == "bob":
            await (raising(error) if isinstance(error, Exception) else error())
        self.count += 1
        await ctx.rerender()

    async with playing(press) as play:
        used = await play.click("bob")
        await play.click("alice")
        [failed] = await play.failed()
        assert failed.key == f"interaction:{used.interaction['id']}"
        assert (failed.failure.type, failed.runs, failed.applied) == (kind, 1, False)
        assert text is None or failed.failure.text == text
        assert failed.failure.place.startswith("test_dispatch.py:") or kind == "CancelledError"
        assert [await play.count(), play.shown] == [1, 1]
        if kind != "ExpiredError":  # that one says that nobody can be told
            assert play.discord.text(used.message) == "Something went wrong."
            assert only_seen_by(play, used.message, "bob")


async def raising(error: Exception) -> None:
    raise error


async def test_the_failed_list_and_the_log_hold_no_token(caplog: pytest.LogCaptureFixture) -> None:
    async def press(self: Counting, ctx: ComponentContext) -> None:
        raise ValueError(f"POST {ctx.app.config.api}/interactions/{ctx.id}/{ctx.token}/callback failed")

    async with playing(press) as play:
        used = await play.click()
        [failed] = await play.failed()
        [(body,)] = await play.app.store._read("SELECT body FROM failed WHERE bot=?")  # pyright: ignore
        form = bot.LogFormat()
        everything = "\n".join([repr(failed), repr(body), *(form.format(record) for record in caplog.records)])
        assert used.interaction["token"] not in everything
        assert play.discord.token not in everything
        assert used.interaction["id"] in failed.key


async def test_a_command_that_raises_is_on_the_failed_list_and_the_person_is_told() -> None:
    @bot.command("break", "Break.")
    async def breaks(ctx: CommandContext) -> None:
        raise ValueError("broken")

    async with playing(Counting.press, breaks) as play:
        used = await play.alice.command("break")
        assert play.discord.text(used.message) == "Something went wrong."
        assert only_seen_by(play, used.message, "alice")
        [failed] = await play.failed()
        assert failed.failure[:2] == ("ValueError", "broken")


async def test_a_view_that_breaks_a_limit_changes_nothing() -> None:
    async def press(self: Counting, ctx: ComponentContext) -> None:
        self.count = 10**81
        await ctx.rerender()

    async with playing(press) as play:
        await play.click()
        [failed] = await play.failed()
        assert failed.failure.text == (
            f'view counter: button "{"1" + "0" * 29}…": label has 82 characters; Discord allows 1 to 80.'
        )
        assert [await play.count(), play.shown] == [0, 0]


# The three seconds


async def test_a_click_that_waits_behind_a_slow_one_is_answered_in_time() -> None:
    go_on = asyncio.Event()

    async def press(self: Counting, ctx: ComponentContext) -> None:
        if ctx.user.username == "alice":
            await go_on.wait()
        self.count += 1
        await ctx.rerender()

    async with playing(press) as play:
        clicks = [play.click(name) for name in ("alice", "bob", "carol", "dave")]
        assert [(await click).state for click in clicks] == ["deferred"] * 4
        assert {click.callback["type"] for click in clicks if click.callback} == {6}
        assert play.shown == 0
        go_on.set()
        await asyncio.gather(*(click.settled() for click in clicks))
        await play.at_rest()
        assert [play.shown, await play.count(), await play.failed()] == [4, 4, []]


async def test_how_a_slow_handler_is_deferred_is_said_by_its_view_or_by_itself() -> None:
    go_on = asyncio.Event()

    async def press(self: Counting, ctx: ComponentContext) -> None:
        await go_on.wait()
        await ctx.respond(ctx.custom_id.split(":")[0])

    async def own_press(self: Counting, ctx: ComponentContext) -> None:
        await press(self, ctx)

    views = [
        view(press, name="update", auto_defer=AutoDefer.UPDATE),
        view(press, name="message", auto_defer=AutoDefer.MESSAGE),
        view(bot.handler(auto_defer=AutoDefer.UPDATE)(own_press), name="own", auto_defer=AutoDefer.MESSAGE),
        view(press, name="off", auto_defer=AutoDefer.OFF),
    ]
    async with Discord() as discord, running(discord, *views, *(posting(cls, cls.registration.name) for cls in views)):
        alice = discord.user("alice")
        messages = [(await alice.command(cls.registration.name)).message for cls in views]
        clicks = [await click for click in [alice.click("0", message=message) for message in messages]]
        assert [click.callback and click.callback["type"] for click in clicks] == [6, 5, 6, None]
        assert [click.state for click in clicks] == ["deferred", "deferred", "deferred", "failed"]
        go_on.set()
        await until(lambda: len(discord.messages()) == 7)
        texts = [discord.text(message) for message in discord.messages()[4:]]
        assert sorted(texts) == ["message", "own", "update"]
        assert not any(message["flags"] & THINKING for message in discord.messages())


async def test_a_slow_command_is_answered_as_it_wishes_after_the_defer() -> None:
    go_on = asyncio.Event()

    def slow(name: str, answer: Callable[[CommandContext], Awaitable[None]]) -> Any:
        async def wait(ctx: CommandContext) -> None:
            await go_on.wait()
            await answer(ctx)

        return bot.command(name, "Wait.")(wait)

    cls = view()
    commands = [
        slow("text", lambda ctx: ctx.respond("text")),
        slow("view", lambda ctx: ctx.respond(cls(count=7))),
        slow("components", lambda ctx: ctx.respond(bot.Container(TextDisplay("components")))),
        slow("secret", lambda ctx: ctx.respond("secret", ephemeral=True)),
        slow("nothing", lambda ctx: asyncio.sleep(0)),
        slow("broken", lambda ctx: raising(ValueError("broken"))),
    ]
    async with Discord() as discord, running(discord, cls, *commands) as app:
        alice = discord.user("alice")
        used = {name: alice.command(name) for _, name in app.commands}
        outcomes = dict(zip(used, await asyncio.gather(*used.values()), strict=True))
        assert {each.state for each in outcomes.values()} == {"deferred"}
        go_on.set()
        await until(lambda: not any(message["flags"] & THINKING for message in discord.messages()))
        await at_rest(app.store)
        await until(lambda: len(discord.messages()) == 6)
        public = {discord.text(message) for message in discord.messages(seen_by="bob")}
        private = {discord.text(message) for message in discord.messages(seen_by="alice")} - public
        assert public == {"text", "7", "components"}
        assert private == {"secret", "Done.", "Something went wrong."}
        await alice.click("7")
        assert discord.text(outcomes["view"].message) == "8"


async def test_a_click_that_promised_a_message_and_only_changes_its_own_leaves_no_promise() -> None:
    go_on = asyncio.Event()

    async def press(self: Counting, ctx: ComponentContext) -> None:
        await go_on.wait()
        self.count += 1
        await ctx.rerender()

    async with playing(view(press, auto_defer=AutoDefer.MESSAGE)) as play:
        used = await play.click()
        assert used.callback and used.callback["type"] == 5
        go_on.set()
        await until(lambda: play.shown == 1)
        await until(lambda: not any(message["flags"] & THINKING for message in play.discord.messages()), timeout=3)


@pytest.mark.gateway_only  # which sends it once more
async def test_a_click_made_while_the_bot_was_away_is_deferred_by_its_own_age(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def press(self: Counting, ctx: ComponentContext) -> None:
        await go_on.wait()
        self.count += 1
        await ctx.rerender()

    cls, path = view(press), str(tmp_path / "bot.db")
    async with Discord() as discord:
        alice = discord.user("alice")
        async with running(discord, cls, posting(cls), store=bot.SQLiteStore(path, bot.BotId(1))):
            message = (await alice.command("post")).message
        click = alice.click("0", message=message)
        clicked_at = discord.clock.now()
        await until(lambda: discord.clock.now() > clicked_at + 1.1)
        async with running(discord, cls, posting(cls), store=bot.SQLiteStore(path, bot.BotId(1))) as app:
            if discord.clock.now() > clicked_at + 2.5:
                pytest.skip("this machine took too long to start the bot for anybody to be answered in time")
            assert (await click).state == "deferred"
            go_on.set()
            await at_rest(app.store)
            assert message and shown(discord, message) == 1


async def test_a_command_that_is_answered_too_late_is_on_the_failed_list_as_expired() -> None:
    @bot.command("late", "Never in time.", auto_defer=AutoDefer.OFF)
    async def late(ctx: CommandContext) -> None:
        await go_on.wait()
        await ctx.respond("at last")

    go_on = asyncio.Event()
    async with Discord() as discord, running(discord, late) as app:
        used = discord.user("alice").command("late")
        outcome = asyncio.create_task(used)
        await until(lambda: discord.journal.of("interaction"))
        discord.clock.advance(3.1)
        assert (await outcome).state == "failed"
        go_on.set()
        await until(app.store.failed)
        [failed] = await app.store.failed()
        assert failed.failure.type == "ExpiredError"


# Over the end of the process


@pytest.mark.slow
async def test_an_event_that_takes_the_process_down_five_times_is_not_run_again_and_no_other_suffers(
    tmp_path: Path,
) -> None:
    store = tmp_path / "bot.db"
    async with Discord() as discord:
        process = await start(discord, "poison", store)
        message = (await discord.user("alice").command("post")).message
        assert message
        for name in ("mallory", *"abcdefg"):
            discord.user(name).click("0", message=message)
        ends = [await process.wait()]
        while not rows(store, "SELECT 1 FROM failed"):
            await process.start()
            await until(lambda: process.returncode is not None or rows(store, "SELECT 1 FROM failed"))
            if process.returncode is not None:
                ends.append(process.returncode)
        assert ends == [7] * 5
        assert state_of(store, message) == {"people": list("abcdefg")}
        await until(lambda: shown(discord, message) == 7)
        [(key, runs, text)] = rows(store, "SELECT key, runs, text FROM failed")
        mallory = next(each for each in discord.journal.of("interaction") if each.data["user"] == "mallory")
        assert (key, runs) == (f"interaction:{mallory.data['id']}", 5)
        assert "5 times" in text
        await discord.user("h").click("7", message=message)
        assert shown(discord, message) == 8
        assert await process.terminate() == 0


async def test_sigterm_lets_the_running_handler_end_and_keeps_the_waiting_ones_for_the_next_start(
    tmp_path: Path,
) -> None:
    store = tmp_path / "bot.db"
    async with Discord() as discord:
        process = await start(discord, "patient", store, DRAIN_S=1)
        message = (await discord.user("alice").command("post")).message
        assert message
        for name in ("alice", "bob", "carol"):
            discord.user(name).click("0", message=message)
        await until(lambda: "alice begins" in process.log)
        await until(lambda: len(rows(store, PENDING)) == 3)
        ending = asyncio.create_task(process.terminate())
        await until(lambda: "stopping" in process.log[-1])
        (tmp_path / "alice").touch()
        assert await ending == 0
        assert state_of(store, message) == {"people": ["alice"]}
        assert shown(discord, message) == 1
        assert len(rows(store, PENDING)) == 2

        discord.user("dave").click("1", message=message)
        for name in ("bob", "carol", "dave"):
            (tmp_path / name).touch()
        await process.start()
        await process.ready()
        late = ["dave"] if Now.mode == "gateway" else []  # over HTTP there was nobody to take it
        await until(lambda: shown(discord, message) == 3 + len(late))
        assert state_of(store, message) == {"people": ["alice", "bob", "carol", *late]}
        assert rows(store, "SELECT * FROM failed") == []
        assert discord.gateway.identifies == len(late)
        assert await process.terminate() == 0
        assert not [line for line in process.log if "Traceback" in line or "Warning" in line or "ERROR" in line]


async def test_what_a_killed_process_left_runs_before_what_is_new(tmp_path: Path) -> None:
    store = tmp_path / "bot.db"
    async with Discord() as discord:
        process = await start(discord, "patient", store)
        message = (await discord.user("alice").command("post")).message
        assert message
        for name in ("alice", "bob", "carol"):
            discord.user(name).click("0", message=message)
        await until(lambda: "alice begins" in process.log and len(rows(store, PENDING)) == 3)
        process.kill()
        await process.wait()
        await process.start()
        await process.ready()
        await until(lambda: process.log.count("alice begins") == 2)
        discord.user("dave").click("0", message=message)
        await until(lambda: len(rows(store, PENDING)) == 4)
        for name in ("dave", "carol", "bob", "alice"):
            (tmp_path / name).touch()
        await until(lambda: shown(discord, message) == 4)
        assert state_of(store, message) == {"people": ["alice", "bob", "carol", "dave"]}


PENDING = "SELECT key FROM inbox WHERE done_at IS NULL"


# What is malformed


def forged(click: Any, change: Callable[[Any], Any]) -> Any:
    """Return the interaction of a click, changed, with an id and a token of its own unless the change is about that."""
    payload = msgspec.json.decode(msgspec.json.encode(click))
    payload["id"] = str(int(payload["id"]) + 1_000)  # the next ids of this millisecond belong to others
    payload["token"] = payload["token"][:-8] + "A" * 8
    changed = change(payload)
    return payload if changed is None else changed


def put(path: str, value: Any) -> Callable[[Any], None]:
    """Return the change that puts a value at a path of the interaction."""

    def change(payload: Any) -> None:
        *way, last = path.split(".")
        for step in way:
            payload = payload[step]
        payload[last] = value

    return change


def leave_out(path: str) -> Callable[[Any], None]:
    def change(payload: Any) -> None:
        *way, last = path.split(".")
        for step in way:
            payload = payload[step]
        del payload[last]

    return change


def arguments(raw: str) -> Callable[[Any], None]:
    """Return the change that forges the arguments in the custom id."""

    def change(payload: Any) -> None:
        payload["data"]["custom_id"] += raw

    return change


def handler_named(name: str) -> Callable[[Any], None]:
    def change(payload: Any) -> None:
        payload["data"]["custom_id"] = payload["data"]["custom_id"].replace(":press", f":{name}")

    return change


def raw(text: str) -> Callable[[Any], Any]:
    """Return the change that puts this text, JSON or not, in the place of the channel's name."""

    def change(payload: Any) -> Any:
        payload["channel"]["name"] = "HERE"
        return msgspec.Raw(msgspec.json.encode(payload).replace(b'"HERE"', text.encode()))

    return change


LONG = "x" * 100_000
NOT_A_CLICK = {
    "nothing": lambda payload: msgspec.Raw(b"null"),
    "a list": lambda payload: [],
    "a text": lambda payload: "click",
    "a number": lambda payload: 5,
    "no members": lambda payload: {},
    "no id": leave_out("id"),
    "an id that is no number": put("id", "abc"),
    "an id that is nothing": put("id", None),
    "an id that is a list": put("id", []),
    "an id of 100,000 digits": put("id", "1" * 100_000),
    "no type": leave_out("type"),
    "an unknown type": put("type", 99),
    "a type that is a list": put("type", [3]),
    "data that is nothing": put("data", None),
    "data that is a list": put("data", []),
    "a custom id that is a number": put("data.custom_id", 5),
    "a custom id that is nothing": put("data.custom_id", None),
    "values that are a text": put("data.values", "abc"),
    "values that are numbers": put("data.values", [1]),
    "no application": leave_out("application_id"),
    "an application that is no number": put("application_id", "abc"),
    "a message that is a text": put("message", "abc"),
    "a message without an id": put("message", {}),
    "a member that is a text": put("member", "abc"),
    "nobody": leave_out("member"),
    "a member without a user": leave_out("member.user"),
    "a user without an id": leave_out("member.user.id"),
    "a user whose id is no number": put("member.user.id", "abc"),
    "a language that is a number": put("locale", 5),
    "a token that is a number": put("token", 5),
    "an argument too many": arguments(":1"),
    "an argument that is no JSON": arguments(":x"),
    "arguments that end the list": arguments(":1],[2"),
    "arguments nested 50,000 deep": arguments(":" + "[" * 50_000),
    "a number with 5,000 digits": arguments(":" + "9" * 5_000),
}
NO_INTERACTION = "nothing", "a list", "a text", "a number", "no members", "no type"  # by the look of it
OF_ANOTHER_BOT = {
    "no custom id": leave_out("data.custom_id"),
    "a custom id of another bot": put("data.custom_id", "miru:0123456789"),
    "a custom id of 100,000 characters": put("data.custom_id", LONG),
    "a handler that is not there": handler_named("nothing"),
    "a method that is no handler": handler_named("render"),
    "a method of every object": handler_named("__init__"),
    "a lone surrogate in the custom id": lambda payload: msgspec.Raw(
        msgspec.json.encode(payload).replace(b":press", b":\\ud800")
    ),
    "no data": leave_out("data"),
}
OF_NO_RECORD = {"a record that was never there": put("data.custom_id", f"counter:{'A' * 11}:press")}
STILL_A_CLICK = {
    "a negative id": put("id", "-5"),
    "a name of 100,000 characters": put("member.user.username", LONG),
    "a language of 100,000 characters": put("locale", LONG),
    "a token of 4,000 characters": put("token", LONG[:4_000]),
    "no token": leave_out("token"),
    "no message": leave_out("message"),
    "no channel": leave_out("channel_id"),
    "members nobody knows": put("surprise", {"a": [1, 2, {"b": None}]}),
    "a lone surrogate": raw('"\\ud800"'),
    "lone surrogates in a member's name": raw('{"\\udfff\\ud800": "\\ud800"}'),
    "a list nested 500 deep": raw("[" * 500 + "]" * 500),
    "a number of 1,000 digits": raw("9" * 1_000),
}
NOT_TO_BE_READ = {
    "a list nested 100,000 deep": raw("[" * 100_000 + "]" * 100_000),
    "a list nested 100,000 deep that never ends": raw("[" * 100_000),
    "a number of 5,000 digits": raw("9" * 5_000),
    "NaN": raw("NaN"),
    "half a member": raw('{"a"'),
}


async def reading(self: Counting, ctx: ComponentContext) -> None:
    self.count += bool(ctx.user.id)
    await ctx.rerender()


async def outcome_of(play: Play, change: Callable[[Any], Any], caplog: pytest.LogCaptureFixture) -> str:
    """Send a click changed like this, and a real one after it; return what became of the first."""
    real = await play.click()
    failed, count = len(await play.failed()), await play.count()
    caplog.clear()
    status = await deliver(play.discord, forged(real.interaction, change))
    if (await play.click("bob")).state != "answered":
        return "the next click was not answered"
    if status not in (None, 200, 202):
        return f"{status}"
    outcome = [
        "failed" if len(await play.failed()) > failed else "",
        "counted" if await play.count() > count + 1 else "",
        "logged" if any(record.levelname in ("WARNING", "ERROR") for record in caplog.records) else "",
    ]
    return " ".join(filter(None, outcome)) or "nothing"


async def outcomes(cases: dict[str, Any], caplog: pytest.LogCaptureFixture) -> dict[str, str]:
    """Return what became of each case; a bot that one of them ended is started again for the next."""
    found, names = dict[str, str](), iter(cases)
    while len(found) < len(cases):
        name = ""
        try:
            async with playing(reading) as play:
                for name in names:
                    found[name] = await outcome_of(play, cases[name], caplog)
        except Exception as error:
            found[name] = f"ended the bot: {error!r:.200}"
    return found


@pytest.mark.parametrize(
    ("cases", "right"),
    [
        (NOT_A_CLICK, "failed logged"),
        (OF_ANOTHER_BOT, "logged"),
        (OF_NO_RECORD, "nothing"),
        (STILL_A_CLICK, "counted"),
        (NOT_TO_BE_READ, "logged"),
    ],
    ids=["no click", "another bot's", "no record", "odd and a click", "not to be read"],
)
async def test_whatever_comes_the_bot_goes_on(
    cases: dict[str, Any], right: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_quick(monkeypatch)
    found = await outcomes(cases, caplog)
    refused = {*NO_INTERACTION, *NOT_TO_BE_READ} if Now.mode == "rest" else set[str]()  # before it is accepted
    wrong = {name: each for name, each in found.items() if each != ("400" if name in refused else right)}
    assert wrong == {}


@pytest.mark.parametrize(
    "custom_id", ["miru:0123456789", "counter:AAAAAAAAAAA:nothing", "counter:AAAAAAAAAAA:render", "x"]
)
async def test_a_click_that_nothing_here_answers_to_is_answered_all_the_same(custom_id: str) -> None:
    async with playing() as play:
        replace_in(play, button_id(play.message), custom_id)
        used = await play.alice.click(custom_id=custom_id)
        assert play.discord.text(used.message) == "This has expired."
        assert await play.failed() == []


COMMANDS_NOBODY_SENT = {
    "a number for a text": put("data.options", [{"name": "text", "type": 3, "value": 5}]),
    "a text for a number": put("data.options", [{"name": "text", "value": "a"}, {"name": "times", "value": "many"}]),
    "nothing for a text": put("data.options", [{"name": "text", "type": 3}]),
    "no options": leave_out("data.options"),
    "options that are nothing": put("data.options", None),
    "options that are texts": put("data.options", ["text"]),
    "options that are one object": put("data.options", {"name": "text", "value": "a"}),
    "a command nobody has": put("data.name", "nothing"),
    "a command without a name": leave_out("data.name"),
}


async def test_a_command_that_does_not_fit_is_on_the_failed_list_and_the_next_one_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    be_quick(monkeypatch)
    async with Discord() as discord, running(discord, say) as app:
        alice = discord.user("alice")
        for number, (name, change) in enumerate(COMMANDS_NOBODY_SENT.items(), 1):
            real = await alice.command("say", text="one")
            await deliver(discord, forged(real.interaction, change))
            assert discord.text((await alice.command("say", text="two")).message) == "two", name
            await until(lambda: not_pending(app))
            assert len(await app.store.failed()) == number, name


async def not_pending(app: bot.App) -> bool:
    return not await app.store.pending()
