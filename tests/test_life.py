"""The life of a view: its time, its end, what is deleted with it, changes from outside, and who may click how often."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import hikari
import pytest

import bot
from bot import CommandContext, ComponentContext, EventContext, InStore, TextDisplay
from playground import Discord
from playground.people import Used
from playground.shapes import EPHEMERAL
from tests.kit import (
    Counting,
    Json,
    Play,
    at_rest,
    button_id,
    deliver,
    die_at_each,
    moving,
    playing,
    posting,
    record_of,
    rows,
    running,
    start,
    until,
    view,
)

pytestmark = pytest.mark.both_modes

HOUR = 3_600
AT_ITS_TIME = "before it fires", "after it fired", "before the timer's commit", "after the timer's commit"


@asynccontextmanager
async def living(cls: type[Counting], *more: Any, **settings: Any) -> AsyncIterator[Play]:
    """As `playing`, with a clock that goes with the playground's."""
    async with Discord() as discord:
        with discord.clock.here():
            app_of = running(discord, cls, posting(cls), hidden(cls), *more, store=moving(discord), **settings)
            async with app_of as app:
                used = await discord.user("alice").command("post")
                assert used.message, used
                yield Play(discord, app, discord.user("alice"), used.message)


def hidden(cls: type[bot.View]) -> Any:
    """Return the command /hidden, which posts a view that one person sees."""

    @bot.command("hidden", "Post it for yourself.")
    async def hidden(ctx: CommandContext) -> None:
        await ctx.respond(cls(), ephemeral=True)

    return hidden


def text(play: Play, message: Json | None = None) -> str:
    kept = play.discord.world.find((message or play.message)["id"])
    return play.discord.text(kept.message) if kept else "gone"


def is_switched_off(play: Play) -> bool:
    kept = play.discord.world.find(play.message["id"])
    assert kept
    return all(
        each.get("disabled") for part in kept.message["components"] for each in bot.walk(part) if "custom_id" in each
    )


async def has_record(play: Play) -> bool:
    return await play.app.store.load(record_of(play.message)) is not None


def said(play: Play, used: Used) -> str:
    return play.discord.text(used.message)


# Its time


async def test_a_view_whose_time_is_over_is_switched_off_and_a_late_click_is_told() -> None:
    async with living(view(state=InStore(ttl=HOUR))) as play:
        custom_id = button_id(play.message)
        await play.click()
        await play.at_rest()
        play.discord.clock.advance(HOUR + 1)
        late = play.discord.user("bob").click(custom_id=custom_id, message=play.message["id"])
        assert said(play, await late) == "This has expired."
        await until(lambda: is_switched_off(play))
        await play.at_rest()
        assert [play.shown, await has_record(play), await play.failed()] == [1, False, []]


async def test_a_view_that_closes_while_the_bot_is_down_is_closed_once_at_the_next_start(tmp_path: Path) -> None:
    ends: list[int] = []

    async def on_expire(self: Counting, ctx: EventContext) -> None:
        ends.append(self.count)
        await ctx.edit(TextDisplay(f"It ended at {self.count}."))

    cls = view(state=InStore(ttl=HOUR), members={"on_expire": on_expire})
    async with Discord() as discord:
        with discord.clock.here():

            def again() -> Any:
                return running(discord, cls, posting(cls), store=moving(discord, tmp_path / "bot.db"))

            async with again() as app:
                alice = discord.user("alice")
                message = (await alice.command("post")).message
                assert message
                await alice.click("0")
                await at_rest(app.store)
            discord.clock.advance(HOUR + 1)
            await asyncio.sleep(0.1)
            assert ends == []
            for _ in range(2):
                async with again() as app:
                    await until(lambda: ends)
                    await at_rest(app.store)
                    assert await app.failed() == []
            assert ends == [1]
            assert discord.text(discord.messages()[0]) == "It ended at 1."


@pytest.mark.gateway_only  # no interaction is part of it
async def test_the_end_of_a_view_comes_once_whenever_the_process_is_killed(tmp_path: Path) -> None:
    store, armed = tmp_path / "bot.db", tmp_path / "armed"
    async with Discord() as discord:
        process = await start(discord, "alarm", store)
        message = (await discord.user("alice").command("brief")).message
        assert message
        await until(lambda: rows(store, "SELECT message FROM record WHERE name='brief' AND message IS NOT NULL"))
        process.kill()
        await process.wait()
        discord.clock.advance(HOUR + 1)
        await die_at_each(process, armed, *AT_ITS_TIME)
        await process.start()
        await process.ready()
        await until(lambda: not rows(store, "SELECT key FROM inbox WHERE done_at IS NULL"))
        kept = discord.world.find(message["id"])
        assert kept
        assert discord.text(kept.message) == "It is over."
        assert rows(store, "SELECT data FROM record WHERE name='rung'") == [(b'{"texts":["over"]}',)]
        assert rows(store, "SELECT * FROM failed") == []


async def test_an_end_that_fails_is_kept_and_can_be_tried_again() -> None:
    is_broken = True

    async def on_expire(self: Counting, ctx: EventContext) -> None:
        if is_broken:
            raise ValueError("not now")
        await ctx.edit(TextDisplay("over"))

    async with living(view(state=InStore(ttl=HOUR), members={"on_expire": on_expire})) as play:
        await play.at_rest()
        play.discord.clock.advance(HOUR + 1)
        play.app.wake()
        await until(play.app.failed)
        [failed] = await play.failed()
        assert (failed.key.partition(":")[0], failed.failure.text) == ("expiry", "not now")
        is_broken = False
        assert await play.app.retry_failed() == 1
        await until(lambda: text(play) == "over")
        assert await play.failed() == []


@pytest.mark.parametrize("renews", [False, True])
async def test_a_click_gives_a_view_more_time_only_when_it_is_asked_to(renews: bool) -> None:
    async def press(self: Counting, ctx: ComponentContext) -> None:
        self.count += 1
        await ctx.rerender(renew=renews)

    async with living(view(press, state=InStore(ttl=HOUR))) as play:
        play.discord.clock.advance(HOUR - 60)
        await play.click()
        await play.at_rest()
        play.discord.clock.advance(120)
        if renews:
            await play.click()
            await play.at_rest()
            assert [play.shown, is_switched_off(play)] == [2, False]
            play.discord.clock.advance(HOUR)
        play.app.wake()
        await until(lambda: is_switched_off(play))


# Closing and deleting


@pytest.mark.parametrize("slow", [False, True])
async def test_a_view_that_is_closed_ends_as_if_its_time_were_over(slow: bool) -> None:
    async def press(self: Counting, ctx: ComponentContext) -> None:
        self.count += 1
        await ctx.close()

    async def on_expire(self: Counting, ctx: EventContext) -> None:
        await ctx.edit(TextDisplay(f"It ended at {self.count}."))

    async with living(view(press, members={"on_expire": on_expire})) as play:
        custom_id = button_id(play.message)
        if slow:  # the click's own answer, which hikari tries again, would come after the edit that follows it
            play.discord.faults.add(path="/interactions/*", status=503)
            play.discord.delivery_faults.add(delay_s=0.3)  # over HTTP, it is a while on its way
        late = play.discord.user("bob")
        await play.click()
        await until(lambda: text(play) == "It ended at 1.")
        await asyncio.sleep(0.2)
        await play.at_rest()
        assert [text(play), await has_record(play), await play.failed()] == ["It ended at 1.", False, []]
        with pytest.raises(LookupError):
            late.click(custom_id=custom_id, message=play.message["id"])


async def test_a_closed_view_that_one_person_sees_is_switched_off() -> None:
    async def press(self: Counting, ctx: ComponentContext) -> None:
        await ctx.close()

    async with living(view(press)) as play:
        play = play.beside((await play.alice.command("hidden")).message)  # noqa: PLW2901
        await play.click()
        await until(lambda: is_switched_off(play))
        await play.at_rest()
        assert [await has_record(play), await play.failed()] == [False, []]


@pytest.mark.parametrize("ephemeral", [False, True])
async def test_a_view_that_is_deleted_is_gone_with_its_message(ephemeral: bool) -> None:
    async def press(self: Counting, ctx: ComponentContext) -> None:
        self.count += 1
        await ctx.rerender()
        await ctx.delete()

    async with living(view(press)) as play:
        if ephemeral:
            play = play.beside((await play.alice.command("hidden")).message)  # noqa: PLW2901
            assert play.message["flags"] & EPHEMERAL
        used = await play.click()
        assert used.state in ("answered", "deferred")
        await until(lambda: text(play) == "gone")
        await play.at_rest()
        assert [await has_record(play), await play.failed()] == [False, []]


Deletion = Callable[[Play], None]
BULK: Deletion = lambda play: play.discord.delete_messages([*play.discord.messages()])  # noqa: E731


@pytest.mark.gateway_only  # it is the gateway that tells what was deleted
@pytest.mark.parametrize(
    ("delete", "is_gone"),
    [
        (lambda play: play.discord.delete_message(play.message), True),
        (BULK, True),
        (lambda play: play.discord.delete_channel(play.message["channel_id"]), True),
        (lambda play: play.discord.send_raw("THREAD_DELETE", {"id": play.message["channel_id"]}), True),
        (lambda play: play.discord.kick_bot(), True),
        (lambda play: play.discord.outage(), False),
    ],
    ids=["a message", "several messages", "a channel", "a thread", "a server", "an outage of a server"],
)
async def test_what_is_deleted_at_discord_takes_its_record_along(delete: Deletion, is_gone: bool) -> None:
    @bot.handler(once=True)
    async def press(self: Counting, ctx: ComponentContext) -> None:
        self.count += 1
        await ctx.rerender()

    async with living(view(press)) as play:
        other = play.beside((await play.alice.command("post", channel="random")).message)
        await play.alice.command("post")
        await play.click()
        await other.click()
        await play.at_rest()
        delete(play)
        if is_gone:

            async def no_record() -> bool:
                return not await has_record(play)

            await until(no_record)
        await asyncio.sleep(0.1)
        await at_rest(play.app.store)
        claims = await play.app.store.find(bot.Query("_claim"))
        if not is_gone:
            assert [await has_record(play), len(claims)] == [True, 2]
        elif not await has_record(other):  # the whole server is gone
            assert claims == []
        else:
            assert len(claims) == 1


async def test_a_message_that_an_edit_finds_gone_takes_its_record_along() -> None:
    async with living(view()) as play:
        await play.at_rest()
        play.discord.faults.add(path="/channels/*", method="PATCH", code=10008)
        await play.app.update(record_of(play.message), lambda counter: setattr(counter, "count", 5))

        async def no_record() -> bool:
            return not await has_record(play)

        await until(no_record)


# From outside


async def test_views_are_found_by_class_channel_and_message() -> None:
    other_kind = view(name="other")
    async with living(view(), other_kind, posting(other_kind, "other")) as play:
        cls: Any = play.app.views.classes["counter"]
        there = (await play.alice.command("post", channel="random")).message
        await play.alice.command("other")
        assert there
        await play.at_rest()

        async def found(**where: Any) -> set[bot.RecordId]:
            return {id async for id, _ in play.app.find(cls, **where)}

        here, far = record_of(play.message), record_of(there)
        assert await found() == {here, far}
        assert await found(channel=int(there["channel_id"])) == {far}
        assert await found(message=int(play.message["id"])) == {here}
        assert await found(message=5) == set()


async def test_changes_from_outside_and_a_hundred_clicks_all_count_and_are_shown() -> None:
    async with living(view()) as play:
        id = record_of(play.message)

        def add(counter: Counting) -> None:
            counter.count += 1

        clicks = [play.click(f"person{number}") for number in range(100)]
        await asyncio.gather(*(play.app.update(id, add) for _ in range(50)), *(each.answered() for each in clicks))
        await play.at_rest()
        assert [await play.count(), play.shown, await play.failed()] == [150, 150, []]


@pytest.mark.timeout(60)
async def test_commands_that_change_a_view_beside_its_clicks_never_wait_for_each_other() -> None:
    @bot.command("add", "Change it from outside.")
    async def add(ctx: CommandContext) -> None:
        async for id, _ in ctx.app.find(cls):
            await asyncio.sleep(0.05)
            await ctx.app.update(id, lambda counter: setattr(counter, "count", counter.count + 1))
        await ctx.respond("done")

    cls = view()
    async with living(cls, add, max_handlers=2) as play:
        await play.alice.command("add")
        for number in range(10):
            play.click(f"person{number}")
            play.alice.start_command("add", {})

        async def all_count() -> bool:
            return await play.count() == 21

        await until(all_count)
        await play.at_rest()
        assert [play.shown, await play.failed()] == [21, []]


async def test_who_would_wait_for_a_view_that_waits_for_them_is_told_so() -> None:
    async def press(self: Counting, ctx: ComponentContext) -> None:
        await ctx.app.update(ctx.bound[1].id, lambda counter: None)

    async with living(view(press)) as play:
        await play.click()
        [failed] = await play.failed()
        assert failed.failure.text.endswith("would wait for itself: its holder waits for what is held here.")


async def test_a_view_that_is_gone_cannot_be_changed_from_outside() -> None:
    async with living(view(state=InStore(ttl=HOUR))) as play:
        play.discord.clock.advance(HOUR + 1)
        with pytest.raises(LookupError, match=r"there is no counter \S+ \(any more\)"):
            await play.app.update(record_of(play.message), lambda counter: None)


# What a view makes of it


@pytest.mark.parametrize("raises", [False, True])
async def test_a_view_may_deal_with_its_errors_or_leave_them_to_the_failed_list(raises: bool) -> None:
    async def press(self: Counting, ctx: ComponentContext) -> None:
        self.count += 5
        raise ValueError("no")

    async def on_error(self: Counting, ctx: Any, error: Exception) -> None:
        if raises:
            raise RuntimeError(f"{error} at all")
        self.count += 1
        await ctx.rerender()
        await ctx.respond(f"It failed: {error}", ephemeral=True)

    async with playing(view(press, members={"on_error": on_error})) as play:
        used = await play.click()
        failures = [each.failure.text for each in await play.failed()]
        await play.at_rest()
        if raises:
            assert (failures, said(play, used), await play.count()) == (["no at all"], "Something went wrong.", 0)
        else:
            assert (failures, await play.count()) == ([], 1)  # of what the failed handler had changed, nothing is left
            assert "It failed: no" in [play.discord.text(each) for each in play.discord.messages()]


async def test_a_view_says_what_a_click_without_state_is_told_who_may_click_and_reads_older_states() -> None:
    async def on_state_missing(cls: Any, ctx: ComponentContext) -> None:
        await ctx.edit(TextDisplay("This counter is long gone."))

    async def check(self: Counting, ctx: ComponentContext) -> bool:
        if ctx.user.username == "mallory":
            await ctx.respond("Not you, mallory.", ephemeral=True)
        return ctx.user.username == "alice"

    members = {"on_state_missing": classmethod(on_state_missing), "check": check}
    async with playing(view(members=members)) as play:
        assert said(play, await play.click("bob")) == "This is not for you."
        assert said(play, await play.click("mallory")) == "Not you, mallory."
        await play.click()
        await play.at_rest()
        assert await play.count() == 1
        await play.app.store.commit([(await stored(play))._replace(data=b"")], None)
        await play.click()
        await until(lambda: text(play) == "This counter is long gone.")
        assert await play.failed() == []


async def stored(play: Play) -> bot.Saved:
    saved = await play.app.store.load(record_of(play.message))
    assert saved
    return saved


# Single use


def once(press: Any = Counting.press, **more: Any) -> type[Counting]:
    @bot.handler(once=True)
    async def use(self: Counting, ctx: ComponentContext) -> None:
        await press(self, ctx)

    return view(use, **more)


@pytest.mark.parametrize("state", [InStore(), bot.InMessage()])
async def test_of_ten_simultaneous_clicks_on_a_handler_for_single_use_one_runs(state: Any) -> None:
    async with playing(once(state=state)) as play:
        clicks = [play.click(f"person{number}") for number in range(10)]
        texts = [said(play, await each) for each in clicks]
        await play.at_rest()
        assert [play.shown, texts.count("This was used already."), await play.failed()] == [1, 9, []]
        other = play.beside((await play.alice.command("post")).message)
        await other.click()
        await other.at_rest()
        assert other.shown == 1  # it is for each message


async def test_single_use_survives_a_restart_and_the_clock_of_its_view(tmp_path: Path) -> None:
    @bot.handler
    async def renew(self: Counting, ctx: ComponentContext) -> None:
        await ctx.rerender(renew=True)

    def render(self: Any) -> bot.Layout:
        return bot.Row(bot.Button(self.press, label=f"{self.count}"), bot.Button(self.renew, label="renew"))

    cls = once(state=InStore(ttl=HOUR), members={"renew": renew, "render": render})
    async with Discord() as discord:
        with discord.clock.here():

            def again() -> Any:
                return running(discord, cls, posting(cls), store=moving(discord, tmp_path / "bot.db"))

            async with again() as app:
                alice = discord.user("alice")
                await alice.command("post")
                await alice.click("0")
                await at_rest(app.store)
                discord.clock.advance(HOUR - 60)
                await alice.click("renew")
                await at_rest(app.store)
            discord.clock.advance(120)
            async with again() as app:
                assert discord.text((await alice.click("1")).message) == "This was used already."
                discord.clock.advance(HOUR)
                app.wake()

                async def nothing_left() -> bool:
                    return not await app.store.find(bot.Query("_claim"))

                await until(nothing_left)


async def test_a_handler_for_single_use_that_fails_can_be_used_again() -> None:
    is_broken = True

    async def press(self: Counting, ctx: ComponentContext) -> None:
        if is_broken:
            raise ValueError("no")
        await Counting.press(self, ctx)

    async with playing(once(press)) as play:
        assert said(play, await play.click()) == "Something went wrong."
        is_broken = False
        await play.click()
        await play.at_rest()
        assert play.shown == 1


# A pause for each person


def pausing(seconds: float) -> type[Counting]:
    @bot.handler(cooldown=seconds)
    async def use(self: Counting, ctx: ComponentContext) -> None:
        await Counting.press(self, ctx)

    return view(use)


async def test_who_has_clicked_waits_on_every_message_also_after_a_restart_and_nobody_else_does(tmp_path: Path) -> None:
    cls = pausing(60)

    @bot.command("spin", "Spin.", cooldown=60)
    async def spin(ctx: CommandContext) -> None:
        await ctx.respond("spun")

    async with Discord() as discord:
        with discord.clock.here():

            def again() -> Any:
                return running(discord, cls, spin, posting(cls), store=moving(discord, tmp_path / "bot.db"))

            alice = discord.user("alice")
            async with again() as app:
                messages = [(await alice.command("post")).message for _ in range(2)]
                first, second = [Play(discord, app, alice, each) for each in messages if each]
                at = time.time()
                await first.click()
                assert discord.text((await alice.command("spin")).message) == "spun"
                for refused in (await first.click(), await second.click(), await alice.command("spin")):
                    note = discord.text(refused.message)
                    assert note.startswith("You can use this again <t:")
                    assert abs(int(note.split(":")[1]) - at - 60) < 10
                await first.click("bob")
                await second.click("carol")
                await first.at_rest()
                assert [first.shown, second.shown] == [2, 1]
            async with again() as app:
                assert discord.text((await first.click()).message).startswith("You can use this again")
                discord.clock.advance(61)
                assert discord.text((await alice.command("spin")).message) == "spun"
                await first.click()
                await at_rest(app.store)
                assert [first.shown, await app.failed()] == [3, []]


async def test_clicks_of_one_person_on_many_messages_at_once_count_once() -> None:
    async with playing(pausing(60)) as play:
        plays = [play, *[play.beside((await play.alice.command("post")).message) for _ in range(5)]]
        clicks = [each.click() for each in plays]
        await asyncio.gather(*(each.answered() for each in clicks))
        await play.at_rest()
        assert [sum(each.shown for each in plays), await play.failed()] == [1, []]


# Who did what, and where


def looking() -> Any:
    @bot.command(
        "look", "Look.", contexts=[*hikari.ApplicationContextType], installs=[*hikari.ApplicationIntegrationType]
    )
    async def look(ctx: CommandContext) -> None:
        kinds = [type(ctx.interaction).__name__, str(int(ctx.permissions)), str(ctx.in_guild), ctx.locale]
        await ctx.respond(" ".join([ctx.user.username, *kinds]))

    return look


@pytest.mark.parametrize("channel", ["general", "dm", "elsewhere", "friends"])
async def test_the_person_is_known_wherever_they_are(channel: str) -> None:
    async with Discord() as discord, running(discord, looking()) as app:
        alice = discord.user("alice")
        alice.locale = "de"
        await until(lambda: discord.world.commands)
        words = discord.text((await alice.command("look", channel=channel)).message).split()
        assert [words[0], words[1], words[4]] == ["alice", "CommandInteraction", "de"]
        assert words[3] == str(channel in ("general", "elsewhere"))
        assert (int(words[2]) > 0) == (channel in ("general", "elsewhere"))
        assert await app.failed() == []


async def test_an_interaction_without_its_optional_fields_is_read_all_the_same() -> None:
    seen: list[Any] = []

    async def press(self: Counting, ctx: ComponentContext) -> None:
        seen.append((ctx.user.username, ctx.in_guild, ctx.permissions, ctx.locale, ctx.values, dict(ctx.found)))
        self.count += 1
        await ctx.rerender()

    async with playing(view(press)) as play:
        payload = (await play.click()).interaction
        wanted = {"id", "application_id", "type", "token", "data", "version", "message", "channel_id"}
        bare = {name: value for name, value in payload.items() if name in wanted}
        await deliver(play.discord, {**bare, "id": f"{int(payload['id']) + 1}", "user": play.alice.user})
        await until(lambda: len(seen) == 2)
        await play.at_rest()
        assert seen[1] == ("alice", False, hikari.Permissions.NONE, "", [], {})
        assert [await play.count(), await play.failed()] == [2, []]
