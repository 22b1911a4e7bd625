"""Faults that people met with other bots and libraries: each line of what was reported is a test of what holds here.

The names in brackets are the projects and numbers of the reports.
"""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path
from typing import Any

import pytest

import bot
from bot import Button, ComponentContext, InMessage, InStore, LayoutError, OperatorError, Option, Row, Select
from playground import Discord
from tests.kit import (
    ROOT,
    Counting,
    Now,
    Play,
    commands_asked_for,
    complaints,
    moving,
    playing,
    posting,
    record_of,
    rows,
    running,
    start,
    state_of,
    until,
    view,
)

pytestmark = pytest.mark.both_modes
gateway_only = pytest.mark.gateway_only

KEPT_FOR_AN_HOUR = """
import bot
from bot import App, Button, CommandContext, ComponentContext, InStore, Layout, Row, View

@bot.register(name="counter", state=InStore(ttl=bot.HOUR))
class Counter(View):
    people: list[str] = bot.field(default_factory=list[str])

    def render(self) -> Layout:
        return Row(Button(self.add, label=f"{len(self.people)}"))

    @bot.handler
    async def add(self, ctx: ComponentContext) -> None:
        self.people.append(ctx.user.username)
        await ctx.rerender()

@bot.command("post", "Post a counter.")
async def post(ctx: CommandContext) -> None:
    await ctx.respond(Counter())

def my_bot(app: App) -> None:
    app.add(post, Counter)

bot.main(my_bot)
"""


def labelled(label: str, **more: Any) -> Any:
    """Return a view of one button that calls `press`."""

    def render(self: Any) -> bot.Layout:
        return Row(Button(self.press, label=label))

    return view(more.pop("press", Counting.press), members={"render": render}, **more)


def laid_out(render: Any) -> bot.Body:
    """Return the message of a view called "counter" with that render."""
    cls = view(members={"render": render})
    return bot.lay_out(cls(), bot.RecordId("counter", "A" * 11))


# Views and interactions


async def test_a_button_from_before_a_kill_works_with_its_state(tmp_path: Path) -> None:
    """(openclaw 47817)"""
    script, store = tmp_path / "hour.py", tmp_path / "bot.db"
    script.write_text(KEPT_FOR_AN_HOUR, "utf-8")
    async with Discord() as discord:
        process = await start(discord, script, store)
        message = (await discord.user("alice").command("post")).message
        assert message
        await discord.user("alice").click("0", message=message)
        process.kill()
        assert await process.wait() == -signal.SIGKILL
        await process.start()
        await process.ready()
        assert (await discord.user("bob").click("1", message=message)).state == "answered"
        assert state_of(store, message) == {"people": ["alice", "bob"]}


@gateway_only
async def test_buttons_work_after_a_session_was_refused_and_ready_came_again() -> None:
    """(Pycord 650)"""
    async with playing() as play:
        play.discord.gateway.invalidate()
        play.discord.gateway.drop()
        await until(lambda: play.discord.gateway.identifies == 2)
        assert (await play.click()).state == "answered"
        assert play.shown == 1


@gateway_only
async def test_an_event_that_is_replayed_after_it_was_handled_runs_once() -> None:
    """(openclaw 3106, remoteclaw 2968, cc-connect 122)"""
    async with playing() as play:
        click = await play.click()
        play.discord.gateway.drop()
        await until(lambda: play.discord.gateway.resumes == 1)
        play.discord.send_raw("INTERACTION_CREATE", click.interaction)
        await play.click("bob")
        await play.at_rest()
        assert [await play.count(), play.shown, await play.failed()] == [2, 2, []]


async def test_a_click_that_cannot_be_answered_any_more_counts_and_is_shown_through_the_channel() -> None:
    """(the same three)"""
    async with playing() as play:
        play.discord.faults.add(path="/interactions/*", code=10062)
        if Now.mode == "rest":
            play.discord.delivery_faults.add(drop="asked")
        await play.click().answered()
        await play.at_rest()
        assert [await play.count(), play.shown, await play.failed()] == [1, 1, []]


async def test_two_people_who_choose_at_once_each_get_their_own_choice() -> None:
    """(Hackster PR 191)"""
    got: dict[str, Any] = {}

    def render(self: Any) -> bot.Layout:
        return Row(Select(self.press, options=["red", "blue"], placeholder="Colour"))

    async def press(self: Any, ctx: ComponentContext) -> None:
        await asyncio.sleep(0.05)
        got[ctx.user.username] = ctx.values

    async with playing(view(press, members={"render": render})) as play:
        chosen = {"alice": "red", "bob": "blue"}
        uses = [play.discord.user(name).select("Colour", [colour]) for name, colour in chosen.items()]
        await asyncio.gather(*(use.answered() for use in uses))
        await play.at_rest()
        assert got == {"alice": ["red"], "bob": ["blue"]}


async def test_two_clicks_on_accept_say_it_once_and_are_both_answered() -> None:
    """(TripBot 771)"""
    said = list[str]()

    @bot.handler(once=True)
    async def press(self: Any, ctx: ComponentContext) -> None:
        said.append("accepted")
        await ctx.respond("Accepted.")

    async with playing(labelled("Accept", press=press)) as play:
        clicks = [play.alice.click("Accept") for _ in range(2)]
        for click in clicks:
            await click
        assert said == ["accepted"]
        assert [click.state for click in clicks] == ["answered", "answered"]
        assert sorted(play.discord.text(click.message) for click in clicks) == ["Accepted.", bot.Texts().used]
        assert await play.failed() == []


class Note(bot.Form, title="Note"):
    text: str = bot.TextInput("Text")


def writing(got: list[str], **registration: Any) -> Any:
    """Return a view whose button opens a form, and keeps what was written."""

    def render(self: Any) -> bot.Layout:
        return Row(Button(self.press, label="Write"))

    @bot.handler(opens_form=True)
    async def press(self: Any, ctx: ComponentContext) -> None:
        await ctx.open(Note(), then=self.take)

    @bot.handler
    async def take(self: Any, ctx: ComponentContext, form: Note) -> None:
        got.append(form.text)
        await ctx.respond("Thanks.", ephemeral=True)

    return view(press, members={"render": render, "take": take}, **registration)


async def test_a_form_that_was_opened_twice_and_sent_once_runs_once() -> None:
    """(discord.js 8614, 10165)"""
    got = list[str]()
    async with playing(writing(got)) as play:
        for _ in range(2):
            assert (await play.alice.click("Write")).form
        assert (await play.alice.submit({"Text": "second"})).state == "answered"
        await play.at_rest()
        assert [got, await play.failed()] == [["second"], []]


async def test_a_form_that_is_never_sent_leaves_nothing_waiting() -> None:
    """(Pycord 1442)"""
    got = list[str]()
    async with playing(writing(got, state=InStore(ttl=60))) as play:
        assert (await play.alice.click("Write")).form
        await play.at_rest()
        await until(lambda: not play.app._tasks)
        assert (await play.alice.click("Write")).form, "the view still works"


@pytest.mark.parametrize("ephemeral", [False, True])
async def test_a_message_is_changed_after_its_token_has_died(ephemeral: bool, caplog: pytest.LogCaptureFixture) -> None:
    """(disnake 379, discord.py 9856)"""
    cls = view()

    @bot.command("post", "Post it.")
    async def post(ctx: bot.CommandContext) -> None:
        await ctx.respond(cls(), ephemeral=ephemeral)

    async with Discord() as discord, running(discord, cls, post) as app:
        used = await discord.user("alice").command("post")
        assert used.message
        play = Play(discord, app, discord.user("alice"), used.message)
        await app.store.flush()
        discord.clock.advance(16 * 60)
        asked = len(discord.journal.of("rest"))
        await app.update(record_of(used.message), lambda counter: setattr(counter, "count", 5))
        await play.at_rest()
        made = [entry.data["route"] for entry in discord.journal.of("rest")[asked:]]
        assert made == ([] if ephemeral else ["/channels/{channel_id}/messages/{message_id}"])
        assert (await play.click()).state == "answered"
        await play.at_rest()
        assert play.shown == 6
    assert complaints(caplog) == []


@pytest.mark.parametrize("code", [10008, 50001, 50013, 50083])
async def test_a_view_that_expires_while_its_message_is_out_of_reach_ends_and_says_so_once(
    code: int, caplog: pytest.LogCaptureFixture
) -> None:
    """(Pycord 2279, 2726, SunnyCord 137)"""
    cls = view(state=InStore(ttl=60))
    async with Discord() as discord:
        with discord.clock.here():
            async with running(discord, cls, posting(cls), store=moving(discord)) as app:
                used = await discord.user("alice").command("post")
                assert used.message
                await app.store.flush()
                fault = discord.faults.add(method="PATCH", path="/channels/*", code=code, times=None)
                discord.clock.advance(61)
                await until(lambda: fault.hits)
                await until(lambda: not app._tasks)
                click = await discord.user("alice").click("0", message=used.message)
                assert discord.text(click.message) == bot.Texts().expired
                assert await app.store.failed() == []
    assert [each for each in complaints(caplog) if "Task" in each or "Traceback" in each] == []


async def test_two_components_that_would_call_the_same_are_refused() -> None:
    """(DraftForge PR 261)"""

    def render(self: Any) -> bot.Layout:
        return Row(Button(self.press, label="a"), Button(self.press, label="b"))

    with pytest.raises(LayoutError, match="another component calls the same handler with the same arguments"):
        laid_out(render)
    app = bot.App(bot.Config())
    app.add(view())
    with pytest.raises(OperatorError, match="is registered as 'counter' already"):
        app.add(view())


async def test_a_view_that_is_added_three_times_runs_once() -> None:
    """(AAA3A 10)"""
    cls = view()
    async with playing(cls, cls, cls) as play:
        await play.click()
        await play.at_rest()
        assert [await play.count(), play.shown] == [1, 1]


class Survey(bot.Form, title="Survey"):
    radio: str | None = bot.RadioGroup("Radio", ["a", "b"], required=False)
    box: bool = bot.Checkbox("Box")
    boxes: list[str] = bot.CheckboxGroup("Boxes", ["a", "b"], required=False)
    select: list[str] = bot.Select("Select", options=["a", "b"], required=False)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"Radio": "b", "Box": True, "Boxes": ["a", "b"], "Select": ["a"]}, ("b", True, ["a", "b"], ["a"])),
        ({}, (None, False, [], [])),
    ],
)
async def test_every_control_of_a_form_is_read_filled_in_or_not(given: Any, wanted: Any) -> None:
    """(openclaw PR 47415)"""
    got = list[Any]()

    @bot.command("ask", "Ask.", auto_defer=bot.AutoDefer.OFF)
    async def ask(ctx: bot.CommandContext) -> None:
        await ctx.open(Answering())

    class Answering(Survey, title="Survey", name="survey"):
        async def submit(self, ctx: ComponentContext) -> None:
            got.append((self.radio, self.box, self.boxes, self.select))
            await ctx.respond("Thanks.", ephemeral=True)

    async with Discord() as discord, running(discord, ask, Answering):
        alice = discord.user("alice")
        await alice.command("ask")
        assert (await alice.submit(given)).state == "answered"
        assert got == [wanted]


async def test_long_states_fit_and_in_a_message_the_error_says_what_does_not() -> None:
    """(openclaw 25695, discord-tickets 494)"""

    class Ticket(bot.View):
        people: list[int] = bot.field(default_factory=lambda: [2**63 - 1] * 3)
        text: str = "x" * 1_000

        def render(self) -> bot.Layout:
            return Row(Button(self.close, 2**63 - 1, label="Close"))

        @bot.handler
        async def close(self, ctx: ComponentContext, person: int) -> None: ...

    make: Any = type(Ticket)
    kept, carried = (
        bot.register(name="ticket", state=state)(make("Ticket", (Ticket,), {})) for state in (InStore(), InMessage())
    )
    key = bot.RecordId("ticket", bot.new_key())
    bot.App(bot.Config()).add(kept)
    [row] = bot.lay_out(kept(), key)["components"]
    assert len(row.build()[0]["components"][0]["custom_id"]) <= 100
    bot.App(bot.Config()).add(carried)
    seeded = carried(text="".join(map(chr, range(0x4E00, 0x4E00 + 900))))
    with pytest.raises(LayoutError, match=r"view ticket: its state takes \d+ characters, its components have room for"):
        bot.lay_out(seeded, key)


async def test_a_form_with_a_title_that_is_too_long_is_a_named_error_and_the_person_is_answered() -> None:
    """(Red 6478)"""

    @bot.command("ask", "Ask.", auto_defer=bot.AutoDefer.OFF)
    async def ask(ctx: bot.CommandContext, title: str) -> None:
        form: Any = Named()
        form.form_title = title
        await ctx.open(form)

    class Named(Note, title="Note", name="named"):
        async def submit(self, ctx: ComponentContext) -> None: ...

    async with Discord() as discord, running(discord, ask, Named) as app:
        used = await discord.user("alice").command("ask", title="x" * 46)
        assert discord.text(used.message) == bot.Texts().failed
        [failed] = await app.store.failed()
        assert failed.failure.type == "LayoutError"
        assert "45" in failed.failure.text


@pytest.mark.parametrize("count", [0, 26])
async def test_a_select_that_discord_would_refuse_is_named_where_it_is_made(count: int) -> None:
    """(discord.py 9878, Discord.Net PR 3284)"""

    def render(self: Any) -> bot.Layout:
        return Row(Select(self.press, options=[Option(f"{number}") for number in range(count)], placeholder="Pick"))

    with pytest.raises(LayoutError, match=rf'view counter: select "Pick": .*options.*{count}.*1.*25'):
        laid_out(render)


async def test_a_stranger_is_refused_in_private_and_renews_nothing() -> None:
    """(hermes-agent PR 30964, skyflower 23)"""

    async def check(self: Any, ctx: ComponentContext) -> bool:
        return ctx.user.username == "alice"

    async def press(self: Counting, ctx: ComponentContext) -> None:
        self.count += 1
        await ctx.rerender(renew=True)

    async with playing(view(press, members={"check": check}, state=InStore(ttl=3_600))) as play:
        before = await play.app.store.load(record_of(play.message))
        click = await play.click("bob")
        assert click.message and click.message["flags"] & 64
        assert play.discord.text(click.message) == bot.Texts().not_for_you
        after = await play.app.store.load(record_of(play.message))
        assert before and after and (after.version, after.expires_at) == (before.version, before.expires_at)


async def test_a_request_that_is_delivered_twice_gets_the_same_answer_twice_and_runs_once(mode: str) -> None:
    """(tandem PR 1919)"""
    if mode == "gateway":
        pytest.skip("the gateway delivers no requests")
    async with playing() as play:
        play.discord.delivery_faults.add(drop="answered", copies=2, when="answered")
        await play.click().answered()
        first, second = (await play.discord.delivered())[-2:]
        assert second.status == 200
        assert second.body["type"] == 7
        await play.at_rest()
        assert [await play.count(), play.shown, await play.failed()] == [1, 1, []]
        assert first.interaction_id == second.interaction_id


# Gateway and HTTP


@gateway_only
async def test_a_restart_keeps_the_session(tmp_path: Path) -> None:
    """(discord-api-docs 1472, PluralKit 367)"""
    async with Discord() as discord:
        process = await start(discord, "counter", tmp_path / "bot.db")
        assert await process.terminate() == 0
        await process.start()
        await process.ready()
        assert (discord.gateway.identifies, discord.gateway.resumes) == (1, 1)


@gateway_only
async def test_a_session_that_is_invalid_is_begun_anew_once() -> None:
    """(nostrum 566)"""
    async with playing() as play:
        play.discord.gateway.invalidate()
        play.discord.gateway.drop()
        await until(lambda: play.discord.gateway.identifies == 2)
        assert (await play.click()).state == "answered"
        asked = [entry for entry in play.discord.journal.of("gateway_in") if entry.data["op"] == 6]
        assert len(asked) == 1


@gateway_only
@pytest.mark.parametrize("code", [4001, 4002, 4003, 4005, 4007, 4008, 4009])
async def test_the_bot_comes_back_after_a_close_that_allows_it(code: int) -> None:
    """(DSharpPlus 1583)"""
    async with playing() as play:
        discord = play.discord
        before = discord.gateway.identifies + discord.gateway.resumes
        discord.gateway.drop(code)
        await until(lambda: discord.gateway.identifies + discord.gateway.resumes == before + 1)
        assert (await play.click()).state == "answered"


@gateway_only
@pytest.mark.parametrize("code", [4004, 4013, 4014])
async def test_the_bot_ends_with_a_sentence_after_a_close_that_does_not(code: int) -> None:
    """(DSharpPlus 1583)"""
    async with Discord() as discord:
        with pytest.raises(OperatorError, match="Discord "):
            async with running(discord) as app:
                discord.gateway.drop(code)
                await until(app._stopping.is_set)


@gateway_only
@pytest.mark.crash
async def test_a_crash_loop_identifies_once(tmp_path: Path) -> None:
    """(MonitoRSS 30, discordgo 1429)"""
    async with Discord() as discord:
        process = await start(discord, "counter", tmp_path / "bot.db")
        await until(lambda: rows(tmp_path / "bot.db", "SELECT * FROM cursor"))
        for _ in range(8):
            process.kill()
            await process.wait()
            await process.start()
            await process.ready()
        assert (discord.gateway.identifies, discord.gateway.resumes) == (1, 8)


@gateway_only
async def test_events_that_a_long_stop_lost_are_recorded_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """(sutando 3472, hermes-agent 33039)"""
    file = tmp_path / "bot.db"
    async with Discord() as discord:
        for _ in range(2):
            async with running(discord, store=bot.SQLiteStore(str(file), bot.BotId(1))):
                pass
            discord.clock.advance(300)
        assert len(rows(file, "SELECT * FROM gap")) == 1
    assert "the gateway session cannot be resumed" in caplog.text


@gateway_only
async def test_after_a_resume_the_bot_knows_itself_without_ready(tmp_path: Path) -> None:
    """(twilight-dispatch 14, Bathbot 397)"""
    async with Discord() as discord:
        for _ in range(2):
            store = bot.SQLiteStore(str(tmp_path / "bot.db"), bot.BotId(1))
            async with running(discord, store=store) as app:
                me = app.gateway.get_me()
                assert me and str(me.id) == discord.world.bot["id"]
                assert app.gateway.shards[0].get_user_id() == me.id
        assert (discord.gateway.identifies, discord.gateway.resumes) == (1, 1)


async def test_a_request_with_a_bad_signature_is_answered_with_401(mode: str) -> None:
    """(sentry 60881)"""
    if mode == "gateway":
        pytest.skip("the gateway delivers no requests")
    async with playing() as play:
        for signature in ("wrong", "missing"):
            play.discord.delivery_faults.add(signature=signature)
            await play.click()
        assert [each.status for each in (await play.discord.delivered())[-2:]] == [401, 401]
        assert await play.count() == 0


# Templates and storage


async def test_a_second_copy_is_refused_with_the_first_ones_pid(tmp_path: Path) -> None:
    """(ClemBot 227, ytdlbot 197, MajorBot 29)"""
    async with Discord() as discord:
        first = await start(discord, "counter", tmp_path / "bot.db")
        second = await discord.start_bot(
            ROOT / "tests" / "bots" / "counter.py",
            env={"PYTHONPATH": str(ROOT), "STORE": f"sqlite:{tmp_path / 'bot.db'}"},
            mode=Now.mode,
        )
        assert await second.wait() == 2
        [told] = [line for line in second.log if "is in use by" in line]
        assert f"is in use by process {first.pid}. Stop it, or set STORE to another file." in told


@gateway_only
async def test_background_tasks_run_once_however_often_ready_comes() -> None:
    """(python-discord 359, TLE 294)"""
    ran = list[float]()

    @bot.every(1)
    async def tick(ctx: bot.EventContext) -> None:
        ran.append(time.time())

    async with Discord() as discord, running(discord, tick):
        for number in (2, 3):
            discord.gateway.invalidate()
            discord.gateway.drop()
            await until(lambda number=number: discord.gateway.identifies == number)
        begun = len(ran)
        await until(lambda: len(ran) >= begun + 3)
        seconds = [int(at) for at in ran]
        assert len(set(seconds)) == len(seconds), "twice in one second"
        assert len(commands_asked_for(discord)) == 1


async def test_a_placeholder_for_a_token_is_one_sentence(tmp_path: Path) -> None:
    """(five templates)"""
    async with Discord() as discord:
        env = {"PYTHONPATH": str(ROOT), "STORE": f"sqlite:{tmp_path / 'bot.db'}"}
        process = await discord.start_bot(ROOT / "bot.py", env=env | {"DISCORD_TOKEN": "paste-your-token-here"})
        assert await process.wait() == 2
        [told] = process.log
        assert told.endswith("is still the placeholder. Paste the token from your application's Bot page.")


async def test_commands_buttons_selects_and_forms_can_be_tried_from_a_test() -> None:
    """(dpytest 125 and others)"""
    got = list[str]()
    async with playing(writing(got)) as play:
        await play.alice.click("Write")
        await play.alice.submit({"Text": "It works."})
        await play.at_rest()
        assert got == ["It works."]
