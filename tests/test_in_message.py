"""Section 4: a state that is kept in its message, in the custom ids of its components."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import zlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import bot
from bot import (
    Button,
    ComponentContext,
    InMessage,
    Layout,
    LayoutError,
    LinkButton,
    Place,
    RecordId,
    Row,
    Section,
    Select,
    TextDisplay,
    View,
    decode_state,
    gather,
    handler,
    lay_out,
)
from playground import Discord
from tests import kit
from tests.kit import Counting, Json, Play, button_id, check_says, playing, shown, start, until, variant
from tests.test_views import STATES, Everything

pytestmark = pytest.mark.both_modes

PLACE = Place(1, 2, False, 3)
KEPT = RecordId("carrying", "~2")


def carrying(view: View) -> list[Json]:
    """The components of the message of a view, as Discord has them."""
    return json.loads(json.dumps([part.build()[0] for part in lay_out(view, RecordId("carrying", "~"))["components"]]))


def read(cls: Any, components: list[Json]) -> Any:
    """The view that was put into the message."""
    saved = gather(RecordId(cls.registration.name, "~2"), components, PLACE)
    assert saved
    assert saved.place == PLACE
    return decode_state(cls, saved)


def ids(components: list[Json]) -> list[str]:
    return [each["custom_id"] for part in components for each in bot.walk(part) if "custom_id" in each]


def chunks(components: list[Json]) -> list[str]:
    """What of the state each custom id holds."""
    return [id.split(":")[1].removeprefix("~") for id in ids(components)]


class Roomy(Everything):
    """As many custom ids as a message can have, so that much goes in."""

    def render(self) -> Layout:
        return [Row(*[Button(self.press, row, column, label="B") for column in range(5)]) for row in range(6)]

    @handler
    async def press(self, ctx: ComponentContext, row: int, column: int) -> None: ...


ROOMY = variant(Roomy, name="carrying", version=3, state=InMessage())


@settings(deadline=None, max_examples=150)
@given(STATES)
def test_a_state_of_any_types_is_read_as_it_was_put_into_the_message(state: Everything) -> None:
    view = ROOMY(**{name: getattr(state, name) for name in state.__struct_fields__})
    try:
        components = carrying(view)
    except LayoutError as error:
        assert "its state takes" in str(error)
        return
    assert all(1 <= len(id) <= 100 for id in ids(components))
    assert len(set(ids(components))) == len(ids(components))
    assert read(ROOMY, components) == decode_state(ROOMY, bot.first_saved(view, KEPT, 0)._replace(version=1)) == view


class Mixed(View):
    """Components that can carry something, and others between them."""

    text: str = ""
    numbers: list[int] = bot.field(default_factory=list[int])

    def render(self) -> Layout:
        return [
            TextDisplay("a"),
            Row(LinkButton("https://example.org", label="L"), Button(self.press, "a:~:b", label="A")),
            bot.Container(
                Section(TextDisplay("b"), accessory=Button(self.press, "~", label="B")),
                Row(Select(self.press, "x", options=["y"])),
                Row(bot.UserSelect(self.choose)),
            ),
        ]

    @handler
    async def press(self, ctx: ComponentContext, which: str) -> None: ...

    @handler
    async def choose(self, ctx: ComponentContext) -> None: ...


MIXED = variant(Mixed, name="carrying", state=InMessage())


@settings(deadline=None, max_examples=150)
@given(st.text(max_size=150), st.lists(st.integers(0, 9), max_size=100))
@example("", [])
@example('~:~:,"', [1] * 100)
def test_the_state_is_spread_over_whatever_has_a_custom_id_and_leads_to_the_handlers(
    text: str, numbers: list[int]
) -> None:
    view = MIXED(text, numbers)
    with contextlib.suppress(LayoutError):
        components = carrying(view)
        assert read(MIXED, components) == view
        found = [bot.decode_id(id) for id in ids(components)]
        assert [each[1:] for each in found if each] == [
            ("press", '["a:~:b"]'),
            ("press", '["~"]'),
            ("press", '["x"]'),
            ("choose", "[]"),
        ]


def test_a_state_fills_one_custom_id_after_the_other() -> None:
    components = carrying(MIXED("".join(chr(200 + number) for number in range(50))))
    lengths = [len(id) for id in ids(components)]
    full = [length for length in lengths if length == 100]
    assert 0 < len(full) < 4
    assert lengths[: len(full)] == full


SIZES: list[tuple[Any, int]] = [
    (Counting(5), 15),
    (MIXED("hello", [1, 2, 3]), 44),
    (MIXED("to be, or not to be, that is the question: " * 3, []), 90),
    (MIXED("", list(range(50))), 100),
    (MIXED("x" * 1000, []), 50),
]


@pytest.mark.parametrize(("view", "most"), SIZES)
def test_the_codec_is_compact(view: View, most: int) -> None:
    """Against JSON in base64, the obvious way."""
    cls = variant(type(view), name="carrying", state=InMessage())
    components = carrying(cls(**{name: getattr(view, name) for name in view.__struct_fields__}))
    size, obvious = len("".join(chunks(components))), len(base64.b64encode(encode_state_of(view)))
    assert size <= most
    assert size < obvious


def encode_state_of(view: View) -> bytes:
    return bot.write_json([1, view])


def test_a_state_without_room_is_refused_with_name_and_size_and_never_sent() -> None:
    noise = "".join(chr(0x4E00 + 97 * number % 20000) for number in range(200))
    with pytest.raises(LayoutError) as refused:
        carrying(MIXED(noise))
    says = str(refused.value)
    assert says.startswith("view carrying: its state takes ")
    assert says.endswith(" characters, its components have room for 319. Use InStore")
    assert int(says.split()[5]) > 319

    def nothing(self: Any) -> Layout:
        return TextDisplay("a")

    silent = variant(Mixed, {"render": nothing}, name="carrying", state=InMessage())
    assert check_says(silent).startswith("view carrying: its state takes ")
    assert check_says(silent).endswith(" characters, its components have room for 0. Use InStore")


async def test_a_state_that_has_grown_too_large_changes_nothing() -> None:
    async def press(self: Any, ctx: ComponentContext) -> None:
        self.count = self.count + 1 if self.count < 2 else 10**15
        self.more = ["".join(chr(0x4E00 + 97 * number % 20000) for number in range(100))] if self.count > 2 else []
        await ctx.rerender()

    async with playing(in_message(press)) as play:
        for _ in range(3):
            await play.click()
        (failure,) = [each.failure for each in await play.failed()]
        assert failure.text.startswith("view counter: its state takes ")
        assert play.shown == 2


class CountingMore(Counting):
    """With a second field and a second component."""

    more: list[str] = bot.field(default_factory=list[str])


def in_message(press: Any = Counting.press, **members: Any) -> Any:
    """A counter that is kept in its message, whose button runs `press`."""
    marked: Any = press if bot.is_marked(press, "handler") else handler(press)
    marked.__name__ = "press"
    return variant(CountingMore, {"press": marked, **members}, name="counter", state=InMessage())


# What is no state


GARBAGE = st.one_of(
    st.text(max_size=80),
    st.binary(max_size=60).map(lambda data: base64.b85encode(data).decode()),
    st.binary(max_size=60).map(lambda data: base64.b85encode(b"p" + data).decode()),
    st.recursive(
        st.none() | st.integers(0, 9) | st.text(max_size=3) | st.binary(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.integers(-9, 9), inner, max_size=3)
        ),
        max_leaves=8,
    ).map(lambda value: base64.b85encode(b"p" + msgspec.msgpack.encode(value)).decode()),
    st.dictionaries(st.text(max_size=3), st.binary(max_size=3) | st.floats() | st.datetimes(), max_size=3).map(
        lambda value: base64.b85encode(b"z" + zlib.compress(msgspec.msgpack.encode((1, value)))).decode()
    ),
)


@settings(deadline=None, max_examples=400)
@given(st.lists(GARBAGE, max_size=3))
@example([base64.b85encode(b"p" + msgspec.msgpack.encode((1, {"a": msgspec.msgpack.Ext(5, b"x")}))).decode()])
@example([base64.b85encode(b"p" + msgspec.msgpack.encode((2**63, {}))).decode()])
@example([base64.b85encode(b"p\x92\x01\x81\xa1a" + b"\x91" * 3000 + b"\x01").decode()])
@example([base64.b85encode(b"z" + zlib.compress(b"\x92\x01\x80" + b"x" * 10_000_000, 9)).decode()])
def test_foreign_ids_are_no_state_and_break_nothing(pieces: list[str]) -> None:
    components = [{"type": 2, "custom_id": f"counter:~{piece}:press"} for piece in pieces]
    saved = gather(RecordId("counter", "~2"), [{"type": 1, "components": components}, {"type": 10}], PLACE)
    if saved:
        with contextlib.suppress(bot.StateUnreadableError):
            assert isinstance(decode_state(kit.view(), saved), Counting)


@pytest.mark.parametrize(
    "id", ["counter:~:press", "counter:~garbage:press", "counter:~aFPLm:press", "counter:~~~:press"]
)
async def test_a_click_on_a_message_with_a_state_of_nobody_is_answered(id: str) -> None:
    async with playing(in_message()) as play:
        plant(play, id)
        used = await play.click()
        assert used.message and play.discord.text(used.message) == "This has expired."
        assert not await play.failed()


async def test_a_click_with_arguments_that_the_handler_does_not_take_fails_and_changes_nothing() -> None:
    async with playing(in_message()) as play:
        plant(play, f"{button_id(play.now)}:1,2")
        await play.click()
        assert [each.failure.type for each in await play.failed()] == ["ValidationError"]
        assert play.shown == 0


def plant(play: Play, custom_id: str) -> None:
    """Put another custom id on the message's button."""
    for part in play.now["components"]:
        for each in bot.walk(part):
            if "custom_id" in each:
                each["custom_id"] = custom_id


# Clicks at the same moment


@pytest.mark.parametrize(("before", "clicks", "after"), [(5, 2, 7), (5, 20, 25)])
async def test_clicks_at_the_same_moment_all_count_although_they_carry_the_same_state(
    before: int, clicks: int, after: int
) -> None:
    async with playing(in_message()) as play:
        for _ in range(before):
            await play.click()
        assert play.shown == before
        watch = kit.Watch(play.discord, play.message)
        play.discord.latency_s = 0.05
        used = [play.click(f"person{number}") for number in range(clicks)]
        carried = {each.interaction["message"]["components"][0]["components"][0]["custom_id"] for each in used}
        assert len(carried) == 1  # they were all made on the same state
        for each in used:
            assert (await each).state == "answered"
        assert not await play.failed()
        assert play.shown == after
        assert not watch.went_back


async def test_a_click_on_an_older_state_counts_on_the_newest() -> None:
    held = asyncio.Event()

    async def press(self: Any, ctx: ComponentContext) -> None:
        if ctx.user.username == "slow":
            await held.wait()
        self.count += 1
        await ctx.rerender()

    async with playing(in_message(press)) as play:
        slow = play.click("slow")
        others = [play.click() for _ in range(3)]  # behind it, in order
        held.set()
        for each in (slow, *others):
            await each
        assert not await play.failed()
        assert play.shown == 4


@pytest.mark.rest_only
async def test_a_click_whose_answer_is_lost_counts_and_so_do_those_behind_it() -> None:
    async with playing(in_message()) as play:
        kit.lose_answers(play.discord)
        lost, *others = [play.click(f"person{number}") for number in range(4)]
        assert [(await lost).state, *[(await each).state != "failed" for each in others]] == [
            "failed",
            True,
            True,
            True,
        ]
        assert not await play.failed()
        await until(lambda: play.shown == 4)


async def test_what_failed_and_is_tried_again_much_later_counts_on_what_the_message_is_by_then() -> None:
    async def press(self: Any, ctx: ComponentContext) -> None:
        if ctx.user.username == "bob" and not ctx.retried:
            raise ValueError("not yet")
        self.count += 1
        await ctx.rerender()

    async with playing(in_message(press)) as play:
        await play.click("bob")
        for _ in range(3):
            await play.click()
        assert len(await play.failed()) == 1
        play.app.dispatch._remembered.clear()  # as after a restart
        await play.app.retry_failed()
        assert not await play.failed()
        await until(lambda: play.shown == 4)


# Restarts and versions


@pytest.mark.gateway_only  # the crash tests do it in both modes
async def test_a_message_goes_on_where_it_was_after_kill_9(tmp_path: Path) -> None:
    async with Discord() as discord:
        alice = discord.user("alice")
        process = await start(discord, "forms", tmp_path / "bot.db")
        message = (await alice.command("post", carried=True)).message
        assert message
        for count in (1, 2, 3):
            await alice.click("+1")
            await until(lambda count=count: shown(discord, message) == count)
            process.kill()
            await process.wait()
            await process.start()
            await process.ready(30)
        clicks = [alice.click("+1") for _ in range(2)]
        for click in clicks:
            await click
        await until(lambda: shown(discord, message) == 5)


POINTS = ("after an event", "in the handler", "before callback 7", "after callback 7", "before a done mark")


@pytest.mark.crash
@pytest.mark.parametrize("late", [False, True], ids=["in time", "too late to answer"])
async def test_a_lone_click_counts_once_wherever_a_kill_meets_it(
    late: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("playground.interactions.FIRST_ANSWER_S", 60)
    async with Discord() as discord:
        process = await start(discord, "killed", tmp_path / "bot.db")
        message = (await discord.user("alice").command("carry")).message
        assert message
        for count, point in enumerate((*POINTS, "after a done mark"), 1):
            (tmp_path / "armed").write_text(point, "utf-8")
            discord.user("alice").click(f"{count - 1}", message=message)
            assert await process.wait() == -9, point
            if late:
                discord.clock.advance(61)
            await process.start()
            await process.ready(30)
            left = "SELECT key FROM inbox WHERE done_at IS NULL UNION SELECT key FROM failed"
            await until(lambda left=left: not kit.rows(tmp_path / "bot.db", left))
            await until(lambda point=point, count=count: shown(discord, message) == count)
        assert len([each for each in discord.messages() if each["components"]]) == 1


class Renamed(View):
    """What CountingMore has become in version 2."""

    total: int

    def render(self) -> Layout:
        return Row(Button(self.press, label=f"{self.total}"))

    @handler
    async def press(self, ctx: ComponentContext) -> None:
        self.total += 1
        await ctx.rerender()

    @classmethod
    def migrate(cls, version: int, state: Json) -> Json:
        assert version == 1
        return {"total": state["count"]}


RENAMED = variant(Renamed, name="counter", version=2, state=InMessage())


async def posted(discord: Discord, cls: Any, clicks: int) -> Json:
    """Post a view with a bot that knows it, click it, and stop that bot."""
    async with kit.running(discord, cls, kit.posting(cls)):
        used = await discord.user("alice").command("post")
        assert used.message
        for _ in range(clicks):
            await discord.user("alice").click(f"{shown(discord, used.message)}", message=used.message)
    return used.message


async def test_a_message_of_an_older_version_is_migrated_by_its_next_click() -> None:
    async with Discord() as discord:
        message = await posted(discord, in_message(), 5)
        async with kit.running(discord, RENAMED) as app:
            for count in (6, 7):
                await discord.user("alice").click(f"{count - 1}", message=message)
                assert shown(discord, message) == count
            assert not await app.failed()


@pytest.mark.parametrize(
    "other",
    [
        variant(Renamed, {"migrate": View.migrate}, name="counter", version=2, state=InMessage()),
        variant(Renamed, name="counter", version=1, state=InMessage()),
    ],
)
async def test_a_state_that_cannot_be_read_is_left_in_the_message_and_the_person_is_told(other: Any) -> None:
    async with Discord() as discord:
        message = await posted(discord, in_message(), 1)
        before = button_id(message)
        async with kit.running(discord, other) as app:
            used = await discord.user("alice").click("1", message=message)
            assert used.message and discord.text(used.message) == "Something went wrong."
            assert [each.failure.type for each in await app.failed()] == ["StateUnreadableError"]
        async with kit.running(discord, in_message()):  # the bot of before can read it still
            kept = discord.world.find(message["id"])
            assert kept and before != "" and shown(discord, message) == 1
            await discord.user("alice").click("1", message=message)
            assert shown(discord, message) == 2


# What else a handler may do


async def test_an_ephemeral_message_counts_too_for_its_person() -> None:
    cls = in_message()

    @bot.command("mine", "Post it for one.")
    async def mine(ctx: bot.CommandContext) -> None:
        await ctx.respond(cls(), ephemeral=True)

    async with Discord() as discord:
        async with kit.running(discord, cls, mine) as app:
            used = await discord.user("alice").command("mine")
            assert used.message
            play = Play(discord, app, discord.user("alice"), used.message)
            clicks = [play.click() for _ in range(3)]
            for click in clicks:
                await click
            assert not await play.failed()
            assert play.shown == 3
        async with kit.running(discord, cls, mine) as app:
            await play.click()
            assert play.shown == 4
            assert not await app.failed()


async def test_a_handler_may_save_and_show_as_often_as_it_likes() -> None:
    async def press(self: Any, ctx: ComponentContext) -> None:
        for _ in range(3):
            self.count += 1
            await ctx.rerender()
        await ctx.respond(f"It is {self.count}.", ephemeral=True)

    async with playing(in_message(press)) as play:
        watch = kit.Watch(play.discord, play.message)
        await play.click()
        assert not await play.failed()
        await until(lambda: len(play.discord.messages()) == 2)
        assert (play.shown, watch.counts) == (3, [0, 1, 2, 3])
        assert play.discord.text(play.discord.messages()[-1]) == "It is 3."
        await play.click()
        await until(lambda: play.shown == 6)


async def test_a_closed_view_is_switched_off_and_told_so_that_it_may_look_otherwise() -> None:
    async def press(self: Any, ctx: ComponentContext) -> None:
        await ctx.close()

    async def on_expire(self: Any, ctx: bot.EventContext) -> None:
        await ctx.edit(TextDisplay(f"It ended with {self.count}."))

    async with playing(in_message(press)) as play:
        await play.click()
        assert not await play.failed()
        assert all(
            each["disabled"] for part in play.now["components"] for each in bot.walk(part) if "custom_id" in each
        )
        with pytest.raises(LookupError):
            play.click()
    async with playing(in_message(press, on_expire=on_expire)) as play:
        await play.click()
        assert not await play.failed()
        assert play.discord.text(play.now) == "It ended with 0."


async def test_a_view_deletes_its_message() -> None:
    async def press(self: Any, ctx: ComponentContext) -> None:
        await ctx.delete()

    async with playing(in_message(press)) as play:
        late = play.click("bob")
        await play.click()
        await late
        assert not await play.failed()
        assert play.discord.world.find(play.message["id"]) is None


async def test_switching_off_keeps_the_state_where_it_is() -> None:
    async def press(self: Any, ctx: ComponentContext) -> None:
        self.count += 1
        await ctx.rerender()
        await ctx.switch_off()

    async with playing(in_message(press)) as play:
        await play.click()
        assert not await play.failed()
        saved = gather(RecordId("counter", "~2"), play.now["components"], PLACE)
        assert saved and msgspec.json.decode(saved.data)["count"] == 1


async def test_a_handler_for_single_use_runs_once_and_a_cooldown_holds_for_each_person() -> None:
    async def press(self: Any, ctx: ComponentContext) -> None:
        self.count += 1
        await ctx.rerender()

    async with playing(in_message(handler(once=True)(press))) as play:
        clicks = [play.click(f"person{number}") for number in range(10)]
        said = [play.discord.text((await click).message) for click in clicks]
        assert not await play.failed()
        assert play.shown == 1
        assert said.count("This was used already.") == 9
    async with playing(in_message(handler(cooldown=60)(press))) as play:
        for name in ("alice", "bob", "alice", "bob"):
            used = await play.click(name)
        assert not await play.failed()
        assert play.shown == 2
        assert used.message and "You can use this again <t:" in play.discord.text(used.message)


async def test_a_change_that_is_not_saved_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    async def press(self: Any, ctx: ComponentContext) -> None:
        self.count += 1

    async with playing(in_message(press)) as play:
        await play.click()
        assert not await play.failed()
        assert play.shown == 0
    assert "CountingMore.press changed count and did not save it. End it with: await ctx.rerender()" in caplog.messages


async def test_a_state_that_could_not_be_read_again_is_never_shown() -> None:
    async def press(self: Any, ctx: ComponentContext) -> None:
        self.count = "five"
        await ctx.rerender()

    async with playing(in_message(press)) as play:
        await play.click()
        (failure,) = [each.failure for each in await play.failed()]
        assert failure.text.startswith("view counter is not saved: Expected `int`, got `str`")
        assert play.shown == 0


async def test_a_view_in_a_message_cannot_be_called_later_and_has_no_record() -> None:
    async def press(self: Any, ctx: ComponentContext) -> None:
        with pytest.raises(ValueError, match="press cannot be called later"):
            await ctx.later(1, self.press)
        await ctx.respond("No.")

    async with playing(in_message(press)) as play:
        await play.click()
        assert not await play.failed()
        assert not await play.app.store.find(bot.Query("counter"))
