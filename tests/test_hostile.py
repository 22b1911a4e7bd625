"""Hostile input: whatever comes in a frame or a payload, the bot goes on, and no other view is touched."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import itertools
import json
import logging
import random
import re
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import hikari
import hikari.impl
import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import bot
from playground import Discord, limits
from tests.kit import (
    Json,
    Now,
    Play,
    be_quick,
    button_id,
    deliver,
    playing,
    posting,
    record_of,
    shown,
    until,
    view,
)

pytestmark = pytest.mark.both_modes

LONG = "x" * 100_000
DEEP = 200_000


def effort(examples: int) -> settings:
    """Search at random, so that every run looks elsewhere; what it finds is printed with what reproduces it."""
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
    quiet: Any = {"deadline": None, "database": None, "report_multiple_bugs": False, "suppress_health_check": slow}
    return settings(max_examples=examples, print_blob=True, **quiet)


def short_and_long(examples: int, times: int = 25) -> Any:
    """Run the test with so many examples, and with many more where long tests are run."""
    long = pytest.param(examples * times, marks=[pytest.mark.long, pytest.mark.timeout(1_800)])
    return pytest.mark.parametrize("examples", [examples, long], ids=["short", "long"])


# Values nobody expects


@dataclass(frozen=True)
class Text:
    """JSON as it is written, for what no Python object stands for. Short in a report, whatever its length."""

    start: str
    times: int = 1
    end: str = ""

    def json(self) -> str:
        return self.start * self.times + self.end * self.times


TEXTS = (
    "", "abc", LONG, "0", "-5", "1.5", "1e5", "٣", str(2**64), "9" * 5_000, "\0", "\r\n", "%s", "{}", "[", "null",
    "'; DROP TABLE record; --", "../../../../etc/passwd", "..", "/", "?#", "a/b", "<script>", "\u202e", "interaction:1",
)  # fmt: skip
ODD: list[Any] = [
    None, True, False, 0, -1, 1, 3, 2**31, 2**53, 2**63, 2**64, -(2**64), 10**30, 1.5, -0.0, [], {}, [[]], [None],
    {"id": None}, {"": ""}, {"token": "x" * 40}, *TEXTS,
    Text("NaN"), Text("Infinity"), Text("-Infinity"), Text("1e999"), Text("9", 1_000), Text("9", 5_000),
    Text('"\\ud800"'), Text('{"\\udfff": "\\ud800"}'), Text('{"id":1,"id":2}'), Text('{"a":'), Text("]"), Text(","),
    Text("[", 100, "]"), Text("[", 900, "]"), Text("[", 960, "]"), Text("[", 980, "]"), Text("[", 1_100, "]"),
    Text('{"a":', 970, "}"), Text("[", DEEP, "]"), Text("[", DEEP),
]  # fmt: skip
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
FREE = st.recursive(
    PLAIN, lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.text(max_size=8), inside, max_size=4)
)
HOSTILE = st.sampled_from(ODD) | FREE


def to_json(value: Any) -> bytes:
    """Return it as JSON, as Text where there is such, with what no strict encoder writes."""
    texts: list[str] = []

    def keep(each: Any) -> Any:
        if isinstance(each, Text):
            texts.append(each.json())
            return f"<text {len(texts) - 1}>"
        if isinstance(each, dict):
            return {key: keep(inner) for key, inner in each.items()}
        return [keep(inner) for inner in each] if isinstance(each, list) else each

    written = json.dumps(keep(value))
    return re.sub(r'"<text (\d+)>"', lambda found: texts[int(found[1])], written).encode()


class Change(NamedTuple):
    """A change of a payload at one of its places."""

    how: str
    where: int
    value: Any


CHANGES = st.builds(
    Change, st.sampled_from(["replace", "replace", "remove", "add", "twice", "graft"]), st.integers(0, 10_000), HOSTILE
)


def places(payload: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every place in it, as container and key."""
    for key in list(payload) if isinstance(payload, dict) else range(len(payload)):
        yield payload, key
        if isinstance(payload[key], dict | list):
            yield from places(payload[key])


def changed(payload: Json, changes: list[Change]) -> Json:
    """Return a copy of the payload with the changes made one after the other."""
    payload = copy.deepcopy(payload)
    for how, where, shared in changes:
        value = copy.deepcopy(shared)  # a later change may be made inside it, and it would grow from test to test
        there = list(places(payload))
        if not there:
            return payload
        container, key = there[where % len(there)]
        if how == "remove":
            del container[key]
        elif how == "add" and isinstance(container, dict):
            container["surprise"] = value
        elif how == "twice" and isinstance(container, dict):  # the same name again, with another value
            container[f"{key}"] = Text(f'{to_json(container[key]).decode()},"{key}":{to_json(value).decode()}')
        elif how == "graft":
            other, name = there[len(repr(value)) * where % len(there)]
            if name != "token":  # Discord puts it nowhere else, and elsewhere nobody can know it
                container[key] = copy.deepcopy(other[name])
        else:
            container[key] = value
    return payload


# A bot to send it to


class Target(bot.View):
    """Takes what it is given and keeps it."""

    count: int = 0
    taken: list[str] = bot.field(default_factory=list[str])

    def render(self) -> bot.Layout:
        return [
            bot.Row(bot.Button(self.press, label=f"{self.count}")),
            bot.Row(bot.Button(self.take, 1, "text", label="take")),
            bot.Row(bot.Select(self.pick, options=["a", "b"])),
        ]

    @bot.handler
    async def press(self, ctx: bot.ComponentContext) -> None:
        self.count += bool(ctx.user.id)
        await ctx.rerender()

    @bot.handler
    async def take(self, ctx: bot.ComponentContext, number: int, text: str) -> None:
        self.taken = [f"{number} {text}"[:100]]
        await ctx.rerender()

    @bot.handler
    async def pick(self, ctx: bot.ComponentContext) -> None:
        self.taken = ctx.values
        await ctx.respond(f"{ctx.user.username}: {ctx.interaction.id}", ephemeral=True)
        await ctx.rerender()


bot.register(name="target")(Target)


@bot.command("say", "Say it.")
async def say(ctx: bot.CommandContext, text: str, times: int = 1) -> None:
    await ctx.respond((text * times)[:2_000])


class Watch(logging.Handler):
    """Keeps what is a fault of the bot: a traceback that belongs to no event, and what no task's owner looked at."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().startswith("Exception occurred in raw event dispatch conduit"):
            return  # hikari's way to say that it cannot read an event
        if (record.exc_info and "interaction:" not in record.getMessage()) or record.name == "asyncio":
            self.found.append(bot.LogFormat().format(record))


Work = Callable[[Play], Awaitable[list[str | None]]]


class Bench:
    """A bot in this process that is sent one example after the other. One that was ended is replaced by a new one."""

    def __init__(self) -> None:
        self.runner, self.stack = asyncio.Runner(), contextlib.AsyncExitStack()
        self.watch, self.play, self.others = Watch(), None, 0
        self.patch = pytest.MonkeyPatch()

    def __enter__(self) -> Bench:
        be_quick(self.patch)
        logging.getLogger().addHandler(self.watch)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self.runner.close()
        self.patch.undo()
        logging.getLogger().removeHandler(self.watch)

    def _stop(self) -> None:
        if self.play:
            self.play.discord.unknown.clear()  # addresses made of forged ids and tokens
            self.play = None
        self.runner.run(self.stack.aclose())

    def send(self, work: Work) -> None:
        """Let it send something to the bot, and see that the bot is none the worse for it.

        Of what it returns, every key must be done or on the failed list then.
        """
        try:
            self.runner.run(self._send(work))
        except BaseException:
            with contextlib.suppress(Exception):
                self._stop()
            raise

    async def _send(self, work: Work) -> None:
        play = self.play or await self._start()
        before = await play.app.store.load(record_of(self.other))
        keys = {key for key in await work(play) if key}
        await self._prove_alive(play)
        sql = "SELECT key FROM inbox WHERE bot=? AND key IN (SELECT value FROM json_each(?))"
        assert {key for (key,) in await play.app.store._read(sql, json.dumps(list(keys)))} == keys  # pyright: ignore
        assert self.watch.found == []
        after = await play.app.store.load(record_of(self.other))
        assert before
        assert after
        assert (after.version, after.data) == (before.version + 1, b'{"count":%d}' % self.others)
        check_connected(play)

    async def _start(self) -> Play:
        self.watch.found.clear()
        other = view()
        self.play = await self.stack.enter_async_context(playing(Target, other, posting(other, "other"), say))
        posted = (await self.play.alice.command("other")).message
        assert posted
        self.other, self.others = posted, 0
        self.samples = await recorded(self.play)
        return self.play

    async def _prove_alive(self, play: Play) -> None:
        """Click the button of another view, and wait until every event is done or on the failed list."""
        self.others += 1
        play.discord.user("bob").click(custom_id=button_id(self.other), message=self.other["id"])
        ended = lambda: play.app._ending or (Now.mode == "gateway" and not play.app.gateway.is_alive)  # noqa: E731
        await until(lambda: ended() or shown(play.discord, self.other) == self.others, 30)
        assert not ended(), repr(play.app._ending)
        await until(play._is_idle, 30)


async def recorded(play: Play) -> dict[str, Json]:
    """Return one payload of every kind, as this bot gets them."""
    alice = play.alice
    by_label = {each.get("label"): each for part in play.message["components"] for each in bot.walk(part)}
    select = next(each for part in play.message["components"] for each in bot.walk(part) if "options" in each)
    clicks = [
        await alice.click(custom_id=by_label[label]["custom_id"], message=play.message) for label in ("0", "take")
    ]
    picked = await alice.select(custom_id=select["custom_id"], values=["a"], message=play.message)
    said = await alice.command("say", text="hello", times=2)
    command = said.interaction
    typed = [{**command["data"]["options"][0], "focused": True}]
    field = {"type": 18, "component": {"type": 4, "custom_id": "name", "value": "x"}}
    form = {"custom_id": clicks[0].interaction["data"]["custom_id"], "components": [field]}
    return {
        "click": clicks[0].interaction,
        "click with arguments": clicks[1].interaction,
        "select": picked.interaction,
        "command": command,
        "autocomplete": {**command, "type": 4, "data": {**command["data"], "options": typed}},
        "form": {**clicks[0].interaction, "type": 5, "data": form},
        "ping": {"id": "1", "application_id": command["application_id"], "type": 1, "token": "x", "version": 1},
        **({"READY": first_sent(play, "READY")} if Now.mode == "gateway" else {}),
    }


# Interactions

INTERACTIONS = ["click", "click with arguments", "select", "command", "autocomplete", "form", "ping"]


def send_event(discord: Discord, name: str, payload: Any) -> None:
    """Send it as a gateway event."""
    discord.send_raw(name, msgspec.Raw(to_json(payload)))


async def send_all(discord: Discord, payloads: Iterable[Any]) -> list[str | None]:
    """Send them as interactions, all at this moment; return the keys that must be in the inbox now."""
    return await asyncio.gather(*(send(discord, payload) for payload in payloads))


async def send(discord: Discord, payload: Any) -> str | None:
    """Send it as an interaction; return the key that must be in the inbox when the bot can read it and has to."""
    written = to_json(payload)
    status = await deliver(discord, msgspec.Raw(written))
    assert status in (None, 200, 202, 400, 413), "over HTTP, nothing is a fault of the bot"
    if re.search(rb"(\[|\{\"a\":){600}", written):  # whether that can be read depends on what is being done
        return None
    try:
        read = bot.read_json(written)
    except ValueError:
        return None
    over_http = Now.mode == "rest"
    if over_http and (len(written) > bot.BODY_BYTES_MAX or not isinstance(read, dict) or read.get("type", 1) == 1):
        return None  # it is too large, no interaction, or a PING
    is_question = not isinstance(read, dict) or read.get("type") == 4
    return None if is_question or not f"{read.get('id')}".isdecimal() else f"interaction:{read['id']}"


def cost() -> int:
    """Return how much longer an example takes over HTTP: many of its interactions get no answer, for which all wait."""
    return 4 if Now.mode == "rest" else 1


def check_connected(play: Play) -> None:
    """The session is still the first one, where there is one."""
    assert play.discord.gateway.identifies == (1 if Now.mode == "gateway" else 0)


@pytest.mark.both_modes
@short_and_long(60)
def test_no_change_of_an_interaction_stops_the_bot_or_touches_another_view(examples: int) -> None:
    frames = st.lists(st.tuples(st.sampled_from(INTERACTIONS), st.lists(CHANGES, min_size=1, max_size=3)), max_size=20)
    with Bench() as bench:

        @effort(examples // cost())
        @given(frames)
        def survive(frames: list[tuple[str, list[Change]]]) -> None:
            async def work(play: Play) -> list[str | None]:
                fresh = [{**bench.samples[name], "id": play.discord.world.snowflake()} for name, _ in frames]
                return await send_all(
                    play.discord,
                    [changed(each, changes) for each, (_, changes) in zip(fresh, frames, strict=True)],
                )

            bench.send(work)

        survive()


KEYS = ["A" * 11, "", "A" * 100, "../../x/..", "..%2f..%2fab", "' OR 1=1--", "%_%_%_%_%_%", "\ud800" * 11, "_" * 11]
METHODS = ["press", "take", "pick", "render", "check", "__init__", "migrate", "on_state_missing", "nobody", ""]
FORGED = st.builds(
    lambda view, key, method, arguments: ":".join((view, key, method, arguments)),
    st.sampled_from(["target", "counter", "TARGET", "", "x" * 100]) | st.text(max_size=8),
    st.sampled_from(["<target>", "<target>", "<other>", *KEYS]) | st.text(min_size=11, max_size=11),
    st.sampled_from(["press", "take", "take", *METHODS]) | st.text(max_size=8),
    st.lists(FREE, max_size=4).map(lambda args: json.dumps(args)[1:-1])
    | st.sampled_from(["1," + "9" * 5_000, "[" * 50_000, '1,"' + LONG + '"', '1,"a"],[2,"b"', "1;2", "1,"])
    | st.text(max_size=30),
)
CUSTOM_IDS = FORGED | st.text() | st.sampled_from(TEXTS)
VALUES = st.lists(st.sampled_from(["a", "b", "c", *TEXTS]) | st.text(max_size=20), max_size=30)


@pytest.mark.both_modes
@short_and_long(60)
def test_no_forged_custom_id_and_no_value_outside_the_options_stops_the_bot_or_touches_another_view(
    examples: int,
) -> None:
    with Bench() as bench:

        @effort(examples // cost())
        @given(st.lists(st.tuples(CUSTOM_IDS, VALUES), max_size=20))
        def survive(clicks: list[tuple[str, list[str]]]) -> None:
            async def work(play: Play) -> list[str | None]:
                payloads: list[Json] = []
                for forged, values in clicks:
                    custom_id = forged.replace("<target>", record_of(play.message).key)
                    custom_id = custom_id.replace("<other>", record_of(bench.other).key)
                    if custom_id.startswith(f"counter:{record_of(bench.other).key}:press"):
                        continue  # that is a click on the other view
                    fresh = {**bench.samples["select"], "id": play.discord.world.snowflake()}
                    data = {**fresh["data"], "custom_id": custom_id, "values": values}
                    payloads.append({**fresh, "data": data})
                return await send_all(play.discord, payloads)

            bench.send(work)

        survive()


# Other events and frames

EVENTS = sorted(name[3:].upper() for name in dir(hikari.impl.EventManagerImpl) if name.startswith("on_"))
NO_NUMBER = st.sampled_from([None, "", "x", [], {}, [1], Text("NaN"), Text("Infinity")])
OPS = st.sampled_from([0, 0, 0, 2, 3, 10, 11, 31, 77, -1, 2**64, None, "", "0", "9", [], {}, 0.0, False, Text("NaN")])


@short_and_long(50)
def test_no_event_and_no_frame_stops_the_bot_or_loses_the_session(examples: int) -> None:
    event = st.tuples(
        st.sampled_from([*EVENTS, "READY", "READY", "NOBODY_KNOWS_THIS", "", "x" * 1_000]),
        HOSTILE | st.lists(CHANGES, min_size=1, max_size=2).map(tuple),
    )
    members = {"op": OPS, "s": NO_NUMBER, "t": st.sampled_from([*EVENTS, None, 5, [], LONG]), "d": HOSTILE}
    frame = st.fixed_dictionaries({}, optional={**members, "surprise": HOSTILE}).map(to_json) | st.binary()
    with Bench() as bench:

        @effort(examples)
        @given(st.lists(event | frame, max_size=20))
        def survive(sent: list[Any]) -> None:
            async def work(play: Play) -> list[str | None]:
                for each in sent:
                    if isinstance(each, bytes):
                        play.discord.send_frame(each)
                        continue
                    name, data = each
                    data = changed(bench.samples["READY"], list(data)) if isinstance(data, tuple) else data
                    send_event(play.discord, name, data)
                return []

            bench.send(work)

        survive()


WRONG_READY: list[tuple[str, Any]] = [
    ("session_id", 10**30), ("session_id", []), ("session_id", None), ("resume_gateway_url", 5), ("guilds", None),
    ("v", Text("NaN")), ("user", []), ("user.id", "x"), ("user.id", str(2**64)), ("user.username", None),
    ("user.discriminator", 5),
]  # fmt: skip


@pytest.mark.gateway_only  # it sends READY
async def test_a_ready_with_a_value_of_a_wrong_type_is_skipped_and_the_session_kept() -> None:
    sql = "SELECT session FROM cursor WHERE bot=?"
    async with playing(Target) as play:
        ready = first_sent(play, "READY")
        for path, value in WRONG_READY:
            send_event(play.discord, "READY", with_value(ready, path, value))
        await goes_on(play)
        await play.app.store.flush()
        assert await play.app.store._read(sql) == [(ready["session_id"],)]  # pyright: ignore
        play.discord.gateway.drop()
        await goes_on(play)
        assert play.discord.gateway.identifies == 1


async def test_an_id_that_no_store_can_hold_fails_before_the_handler_runs() -> None:
    async with playing(Target) as play:
        real = (await play.click()).interaction
        numbers = 2**63, 10**30, -(2**64), str(2**65)
        sent = [
            with_value({**real, "id": play.discord.world.snowflake()}, path, number)
            for path in ("id", "application_id", "channel_id", "guild_id", "message.id")
            for number in numbers
        ]
        await send_all(play.discord, sent)
        await until(lambda: has_failed(play, len(sent)), 30)
        assert {each.failure.type for each in await play.failed()} == {"ValidationError"}
        assert await play.count() == 1


async def has_failed(play: Play, count: int) -> bool:
    return len(await play.app.store.failed()) == count


def first_sent(play: Play, name: str) -> Json:
    """Return the data of the first event of that name that the bot was sent."""
    sent = [entry.data for entry in play.discord.journal.of("gateway_out")]
    return next(each["d"] for each in sent if each.get("t") == name)


def with_value(payload: Json, path: str, value: Any) -> Json:
    """Return a copy with the value at that place."""
    first, _, rest = path.partition(".")
    return {**payload, first: with_value(payload[first], rest, value) if rest else value}


NUMBERS = [10**30, 2**64, 2**63, 2**63 - 1, -1, -(10**30), True, 1.5, 1e300, "7", "x", None, [], {}, Text("9", 5_000)]
ADDRESSES = ["", "abc", "interaction:1", "ws://[", "http://127.0.0.1:9", "ws://127.0.0.1:99999"]


@pytest.mark.gateway_only  # it numbers its events
@pytest.mark.parametrize("number", NUMBERS, ids="{!r:.20}".format)
async def test_a_forged_sequence_number_does_not_stop_the_bot(number: Any) -> None:
    async with playing(Target) as play:
        real = (await play.click()).interaction
        for id in (play.discord.world.snowflake(), "x"):
            event = {"op": 0, "t": "INTERACTION_CREATE", "s": number, "d": {**real, "id": id}}
            play.discord.send_frame(to_json(event))
        play.discord.send_frame(to_json({"op": 0, "t": "TYPING_START", "s": number, "d": {}}))
        await goes_on(play)


@pytest.mark.gateway_only  # it gives a place to resume at
async def test_a_forged_resume_address_does_not_stop_the_bot() -> None:
    async with asyncio.TaskGroup() as bots:
        for address in ADDRESSES:
            bots.create_task(survive_resume_at(address))


async def survive_resume_at(address: str) -> None:
    async with playing(Target) as play:
        sent = {
            entry.data["t"]: entry.data["d"] for entry in play.discord.journal.of("gateway_out") if "t" in entry.data
        }
        play.discord.send_raw("READY", {**sent["READY"], "resume_gateway_url": address})
        await goes_on(play)
        play.discord.gateway.drop()
        await goes_on(play)


async def goes_on(play: Play) -> None:
    """Click until a click arrives, and see that nothing is left undone."""
    count = play.shown

    async def counts() -> bool:
        assert play.app._ending is None
        play.click()
        await asyncio.sleep(0.2)
        return play.shown > count

    await until(counts, 60)
    await until(play._is_idle, 30)


# Too much of it


@pytest.mark.parametrize("events", [1_000, pytest.param(5_000, marks=pytest.mark.slow)])
async def test_a_burst_of_malformed_events_leaves_the_bot_responsive(events: int) -> None:
    chance = random.Random()
    async with playing(Target, say) as play:
        samples = [{**each, "id": "<id>"} for name, each in (await recorded(play)).items() if name in INTERACTIONS]
        forms = [
            to_json(changed(chance.choice(samples), [Change("replace", chance.randrange(10_000), odd)]))
            for odd in ODD[:17] * 3
        ]
        busy = asyncio.Semaphore(100)  # so many connections

        async def burst(form: bytes) -> None:
            async with busy:
                await deliver(play.discord, msgspec.Raw(form.replace(b"<id>", play.discord.world.snowflake().encode())))

        await asyncio.gather(*(burst(chance.choice(forms)) for _ in range(events // cost())))
        await goes_on(play)
        check_connected(play)
        play.discord.unknown.clear()


@pytest.mark.parametrize("size", [1_000_000, 20_000_000], ids=["1 MB", "20 MB out of 20 kB"])
async def test_a_huge_payload_does_not_stop_the_bot(size: int) -> None:
    async with playing(Target) as play:
        real = (await play.click()).interaction
        count = await play.count()
        huge = {**real, "id": play.discord.world.snowflake(), "channel": {"name": "x" * size}}
        status = await deliver(play.discord, huge)
        await goes_on(play)
        is_refused = Now.mode == "rest" and size > bot.BODY_BYTES_MAX  # no interaction of Discord's is that large
        assert (status == 413, await play.count() >= count + 2 - is_refused) == (is_refused, True)
        check_connected(play)


async def test_a_payload_nested_200000_deep_does_not_stop_the_bot() -> None:
    async with playing(Target) as play:
        real = (await play.click()).interaction
        for opened, closed in (("[", "]"), ('{"a":', "}")):
            for deep in (Text(opened, DEEP, closed), Text(opened, DEEP)):
                await send(play.discord, {**real, "data": deep})
                play.discord.send_frame(deep.json().encode())
        await goes_on(play)
        check_connected(play)


async def test_an_event_that_is_only_just_shallow_enough_to_be_read_is_on_the_failed_list() -> None:
    async with playing(Target) as play:
        real = (await play.click()).interaction
        sent = range(800, 1_000, 2)
        bare = {**real, "type": 99}
        await send_all(
            play.discord,
            [{**bare, "id": play.discord.world.snowflake(), "data": {"x": Text("[", depth, "]")}} for depth in sent],
        )
        await goes_on(play)
        assert 0 < len(await play.failed()) <= len(sent)


def test_what_is_nested_too_deep_to_be_read_is_kept_without_its_token() -> None:
    body = to_json({"token": "secret", "data": Text("[", DEEP, "]")})
    assert bot.without_token(body) == b""


# Functions that must bear whatever they are given

TOKEN = "MTAwMDAwMDAwMDAwMDAwMDAx.GaBcDe." + "aBcDeFgHiJkLmNoPqRsTuVwXyZ0"


@effort(300)
@given(st.text() | FORGED)
@example("poll:Kx3fQ8pAzbQ")
@example("poll:Kx3fQ8pAzbQ:")
@example("::::")
def test_any_text_is_a_custom_id_of_ours_or_none(custom_id: str) -> None:
    found = bot.decode_id(custom_id)
    if found:
        id, method, arguments = found
        assert custom_id.startswith(f"{id.name}:{id.key}:{method}")
        assert len(id.name) <= 32
        assert len(id.key) == 11
        assert arguments[0] + arguments[-1] == "[]"


@effort(200)
@given(st.from_regex(bot.NAME, fullmatch=True), st.from_regex("[a-z_]{1,20}", fullmatch=True), st.lists(FREE))
def test_a_custom_id_leads_back_to_what_it_was_made_of(name: str, method: str, args: list[Any]) -> None:
    id = bot.RecordId(name, bot.new_key())
    try:
        custom_id = bot.encode_id(id, method, tuple(args))
    except (bot.LayoutError, UnicodeEncodeError):
        return
    assert len(custom_id) <= 100
    found = bot.decode_id(custom_id)
    assert found
    assert found[:2] == (id, method)
    assert found[2].encode() == bot.write_json(args)


@effort(400)
@given(st.binary() | st.text() | HOSTILE.map(to_json))
def test_what_was_read_can_be_written_and_what_cannot_be_read_is_a_value_error(data: str | bytes) -> None:
    try:
        value = bot.read_json(data)
    except (ValueError, RecursionError):
        return
    assert bot.read_json(bot.write_json(value)) == value


@effort(300)
@given(HOSTILE.map(to_json), st.text())
def test_any_payload_is_an_event_or_none_and_what_is_kept_of_it_has_no_token(data: bytes, otherwise: str) -> None:
    try:
        value = bot.read_json(data)
        event = bot.interaction_event(value, otherwise)
    except (ValueError, RecursionError):
        return
    if event:
        assert event.key.startswith("interaction:")
        kept = bot.without_token(event.body)
        assert not isinstance(value, dict) or bot.read_json(kept).get("token", "") == ""


@effort(300)
@given(st.text(), st.booleans())
def test_any_error_is_a_short_line_without_a_token(text: str, is_raised: bool) -> None:
    error: BaseException = RuntimeError(f"{text}{TOKEN} {text}")
    if is_raised:
        with pytest.raises(RuntimeError) as caught:
            raise error
        error = caught.value
    failure = bot.Failure.of(error)
    assert len(failure.text) <= 500
    assert len(failure.text.splitlines()) <= 1
    assert TOKEN not in failure.text
    assert all(part.encode() is not None for part in failure)


LINES = st.lists(
    st.builds(
        "{}{}{}".format,
        st.sampled_from([*bot.SETTINGS, "export STORE", "", "#", " "]),
        st.sampled_from(["=", " = ", "", "='", '="', "=$"]),
        st.text(max_size=20) | st.sampled_from([TOKEN, f"{TOKEN}x", "1", "x", "${DISCORD_TOKEN}"]),
    )
)


@effort(200)
@given(st.binary() | LINES.map("\n".join).map(lambda text: text.encode("utf-8", "replace")))
def test_any_file_is_a_configuration_or_an_operators_mistake_told_without_the_token(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config.env"
        file.write_bytes(content)
        try:
            config = bot.Config.load(file, {})
        except bot.OperatorError as mistake:
            assert TOKEN not in str(mistake)
        else:
            assert TOKEN not in repr(config)


@effort(100)
@given(st.text(max_size=20))
def test_what_stands_where_the_token_belongs_is_told_to_nobody(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config.env"
        file.write_bytes(f"DISCORD_TOKEN=hunter2{text}".encode("utf-8", "replace"))
        with pytest.raises(bot.OperatorError) as caught:
            bot.Config.load(file, {})
    assert "hunter2" not in str(caught.value)


SELDOM: list[Any] = [None, 0, -1, 1.5, 2**70, True, [], {}, "", "x" * 500, b"x", float("nan"), object(), "\ud800"]
FIELDS = st.dictionaries(
    st.sampled_from(
        ["components", "accessory", "options", "items", "label", "content", "url", "media", "description", "style",
         "emoji", "accent_color", "spoiler", "min_values", "max_values", "placeholder", "disabled", "custom_id"]
    ),
    st.sampled_from([*SELDOM, [{}], [None], {"url": 5}, [{"label": 1}]]),
    max_size=6,
)  # fmt: skip
KINDS = st.sampled_from([*bot.LIMITS, *bot.LIMITS, 0, 5, 18, -1, None, "1", [], 2**70])


def component(kind: Any, fields: Json, inside: list[Any] | None) -> bot.Component:
    return bot.Component(kind, **({**fields, "components": inside} if inside is not None else fields))


TREES = st.recursive(
    st.builds(component, KINDS, FIELDS, st.none()),
    lambda inside: st.builds(component, KINDS, FIELDS, st.lists(inside | st.sampled_from(SELDOM), max_size=5)),
    max_leaves=12,
)


@effort(400)
@given(st.lists(TREES | st.sampled_from(SELDOM), max_size=4) | TREES | FREE)
def test_any_tree_of_components_is_taken_or_refused_with_a_layout_error(tree: Any) -> None:
    try:
        bot.assemble(lambda: tree, lambda method, args: "id", "here")
    except bot.LayoutError as error:
        assert str(error).startswith("here: ")


def build(make: Callable[..., bot.Component], args: list[Any], more: Json) -> Any:
    """Return the component, or none where it cannot even be called so."""
    try:
        return make(*args, **more)
    except (bot.LayoutError, TypeError, AttributeError, LookupError):
        return None


# Mostly right, or nothing would be taken.
WORDS = st.sampled_from(
    [*["a", "b", "c", "https://a.b/c", "🎉", "<:a:123456789012345678>", "success"] * 6, *["x" * 101] * 4, *SELDOM]
)
COUNTS = st.sampled_from([*[0, 1, 2] * 10, 25, 0xFFFFFF, *SELDOM])
FLAG = st.sampled_from([*[True, False] * 10, *SELDOM])
LEAVES = st.one_of(
    st.builds(build, st.just(bot.TextDisplay), st.tuples(WORDS), st.just({})),
    st.builds(build, st.just(bot.Separator), st.just([]), st.fixed_dictionaries({}, optional={"large": FLAG})),
    st.builds(
        build,
        st.just(bot.LinkButton),
        st.tuples(WORDS),
        st.fixed_dictionaries({}, optional={"label": WORDS, "emoji": WORDS, "disabled": FLAG}),
    ),
    st.builds(
        build,
        st.just(bot.Button),
        st.tuples(st.just(say)),
        st.fixed_dictionaries({}, optional={"label": WORDS, "emoji": WORDS, "disabled": FLAG, "style": WORDS}),
    ),
    st.builds(
        build,
        st.just(bot.Select),
        st.tuples(st.just(say)),
        st.fixed_dictionaries(
            {
                "options": st.lists(WORDS | st.builds(bot.Option, WORDS, WORDS, WORDS, WORDS, FLAG), max_size=4)
                | st.sampled_from(SELDOM)
            },
            optional={"placeholder": WORDS, "min_values": COUNTS, "max_values": COUNTS, "disabled": FLAG},
        ),
    ),
    st.builds(build, st.just(bot.MediaGallery), st.lists(WORDS, max_size=3), st.just({})),
    st.builds(
        build, st.just(bot.Thumbnail), st.tuples(WORDS), st.fixed_dictionaries({}, optional={"description": WORDS})
    ),
)
BUILT = st.recursive(
    LEAVES,
    lambda inside: st.one_of(
        st.builds(build, st.just(bot.Row), st.lists(inside, max_size=3), st.just({})),
        st.builds(
            build,
            st.just(bot.Container),
            st.lists(inside, max_size=3),
            st.fixed_dictionaries({}, optional={"accent": COUNTS, "spoiler": FLAG}),
        ),
        st.builds(
            build, st.just(bot.Section), st.lists(inside, max_size=3), st.fixed_dictionaries({"accessory": inside})
        ),
    ),
    max_leaves=8,
)


@short_and_long(400, times=5)
def test_what_the_bot_takes_for_a_message_discord_takes_too(examples: int) -> None:
    taken = 0

    @effort(examples)
    @given(st.lists(BUILT, min_size=1, max_size=2))
    def agree(layout: list[Any]) -> None:
        nonlocal taken
        numbers = itertools.count()
        try:
            built = bot.assemble(lambda: layout, lambda method, args: f"id {next(numbers)}", "here")
        except bot.LayoutError:
            return
        taken += 1
        body = bot.write_json({"components": [each.build()[0] for each in built["components"]], "flags": 1 << 15})
        limits.check_message(bot.read_json(body))

    agree()
    assert taken > examples / 50
