"""A gateway session that outlives the process: resumed, never ahead of the disk, let go only when Discord says so."""

from __future__ import annotations

import ast
import asyncio
import functools
import inspect
import re
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import hikari
import hikari.impl
import pytest

import bot
from playground import Discord
from tests.kit import (
    ROOT,
    Json,
    at_rest,
    button_id,
    commands_asked_for,
    playing,
    posting,
    rows,
    running,
    shown,
    start,
    state_of,
    until,
    view,
)

# Restarts


@pytest.mark.parametrize("end", ["kill", "terminate"])
async def test_a_new_process_resumes_the_session_and_handles_what_was_sent_meanwhile(end: str, tmp_path: Path) -> None:
    async with Discord() as discord:
        process = await start(discord, "counter", tmp_path / "bot.db")
        message = (await discord.user("alice").command("post")).message
        assert message
        await discord.user("alice").click("0", message=message)
        if end == "kill":
            process.kill()
            await process.wait()
        else:
            assert await process.terminate() == 0
            assert closed_with(discord) == [bot.CLOSE_KEEPING_SESSION]
        for name in "abcde":
            discord.user(name).click("1", message=message)
        await process.start()
        await process.ready()
        await until(lambda: shown(discord, message) == 6)
        await discord.user("bob").click("6", message=message)
        assert state_of(tmp_path / "bot.db", message) == {"people": ["alice", *"abcde", "bob"]}
        assert (discord.gateway.identifies, discord.gateway.resumes) == (1, 1)
        assert rows(tmp_path / "bot.db", "SELECT * FROM failed") == []


def closed_with(discord: Discord) -> list[int]:
    """Return the codes with which the client has closed its connections."""
    gateway = [entry.data for entry in discord.journal.of("gateway")]
    return [each["code"] for each in gateway if each["what"] == "closed" and each["by"] == "client"]


async def test_a_crash_loop_costs_one_identify(tmp_path: Path) -> None:
    async with Discord() as discord:
        process = await start(discord, "counter", tmp_path / "bot.db")
        await until(lambda: rows(tmp_path / "bot.db", "SELECT session FROM cursor"))
        for _ in range(3):
            process.kill()
            await process.wait()
            await process.start()
            await process.ready()
        assert (discord.gateway.identifies, discord.gateway.resumes) == (1, 3)


async def test_nothing_is_lost_over_kills_when_discord_forgets_what_a_heartbeat_confirmed(tmp_path: Path) -> None:
    store = tmp_path / "bot.db"
    async with Discord() as discord:
        discord.gateway.trim_on_heartbeat = True
        process = await start(discord, "counter", store)
        message = (await discord.user("alice").command("post")).message
        assert message
        for number in range(3):
            await burst(discord, message, f"{number}")
            if number:
                await confirm(discord)
            process.kill()
            await process.wait()
            assert skipped(discord, store) == set()
            await process.start()
            await process.ready()
        await until(lambda: shown(discord, message) == 3 * 30)
        people = state_of(store, message)["people"]
        assert sorted(people) == sorted(each.data["user"] for each in discord.journal.of("interaction")[1:])
        assert discord.gateway.identifies == 1
        assert rows(store, "SELECT * FROM failed") == []


async def burst(discord: Discord, message: Json, name: str) -> None:
    """Send clicks and events that nobody stores, and return when the bot has begun to answer."""
    answers = len(discord.journal.of("callback"))
    button = message["components"][0]["components"][0]["custom_id"]
    for number in range(30):
        discord.user(f"person{name}-{number}").click(custom_id=button, message=message["id"])
        discord.send_raw("VOICE_CHANNEL_STATUS_UPDATE", {})
    await until(lambda: len(discord.journal.of("callback")) > answers)


async def confirm(discord: Discord) -> None:
    """Ask for a heartbeat and return when it has come."""
    heartbeats = len(sent_by_client(discord, 1))
    send_frame(discord, b'{"op":1,"d":null}')
    await until(lambda: len(sent_by_client(discord, 1)) > heartbeats)


def sent_by_client(discord: Discord, op: int) -> list[Any]:
    return [entry.data["d"] for entry in discord.journal.of("gateway_in") if entry.data["op"] == op]


def skipped(discord: Discord, store: Path) -> set[str]:
    """Return the interactions that the cursor has passed and the inbox has not got."""
    [(seq,)] = rows(store, "SELECT seq FROM cursor")
    sent = [entry.data for entry in discord.journal.of("gateway_out")]
    passed = {each["d"]["id"] for each in sent if each.get("t") == "INTERACTION_CREATE" and each["s"] <= seq}
    return passed - {key.removeprefix("interaction:") for (key,) in rows(store, "SELECT key FROM inbox")}


async def test_a_heartbeat_confirms_only_what_is_on_disk(tmp_path: Path) -> None:
    async with Discord() as discord:
        discord.gateway.trim_on_heartbeat = True
        process = await start(discord, "counter", tmp_path / "bot.db")
        for _ in range(10):
            discord.send_raw("VOICE_CHANNEL_STATUS_UPDATE", {})
        newest = discord.journal.of("gateway_out")[-1].data["s"]
        while newest not in sent_by_client(discord, 1):
            await confirm(discord)
        process.kill()
        await process.wait()
        assert rows(tmp_path / "bot.db", "SELECT seq FROM cursor") == [(newest,)]
        await process.start()
        await process.ready()
        assert (discord.gateway.identifies, discord.gateway.resumes) == (1, 1)


class SlowDisk(bot.MemoryStore):
    """A store that writes nothing more, once it is told so, until it may."""

    def __init__(self) -> None:
        super().__init__(bot.BotId(1))
        self.holds, self.asked, self.go_on = False, asyncio.Event(), asyncio.Event()

    async def flush(self) -> None:
        if self.holds:
            self.asked.set()
            await self.go_on.wait()
        await super().flush()


async def test_a_heartbeat_waits_for_the_disk() -> None:
    store = SlowDisk()
    async with Discord() as discord, running(discord, store=store):
        heartbeats = len(sent_by_client(discord, 1))
        store.holds = True
        discord.send_raw("VOICE_CHANNEL_STATUS_UPDATE", {})
        send_frame(discord, b'{"op":1,"d":null}')
        async with asyncio.timeout(5):
            await store.asked.wait()
        assert len(sent_by_client(discord, 1)) == heartbeats
        store.go_on.set()
        await until(lambda: len(sent_by_client(discord, 1)) > heartbeats)


# The cursor and the disk


async def test_the_cursor_is_never_on_disk_before_the_events_it_covers() -> None:
    store, statements = bot.MemoryStore(bot.BotId(1)), list[str]()
    await store.open()
    await store._db.set_trace_callback(statements.append)
    at = bot.Cursor(0, "", "session", 0, "", b"{}")
    count = 3 * bot.BATCH_OPS_MAX
    events = [bot.Event(bot.EventKey(f"interaction:{seq}"), b"{}") for seq in range(1, count + 1)]
    accepted = [store.accept(event, at._replace(seq=seq)) for seq, event in enumerate(events, 1)]
    store.move_cursor(at._replace(seq=count + 1))
    await asyncio.gather(*accepted)
    await store.flush()
    seqs, there, ahead = [0], 0, list[str]()
    for statement in statements:
        there += statement.startswith("INSERT INTO inbox")
        seqs += map(int, re.findall(r"INSERT INTO cursor VALUES\(1, 0, '', 'session', (\d+)", statement))
        if statement == "COMMIT" and max(seqs) > there + (there == count):
            ahead.append(f"{max(seqs)} with {there} events on disk")
    await store.close()
    assert (there, max(seqs), ahead) == (count, count + 1, [])


async def test_an_event_that_did_not_fit_on_the_disk_is_sent_again_at_the_next_start(tmp_path: Path) -> None:
    cls, path = view(), tmp_path / "bot.db"
    async with Discord() as discord:
        alice = discord.user("alice")
        async with running(discord, cls, posting(cls), store=bot.SQLiteStore(str(path), bot.BotId(1))):
            message = (await alice.command("post")).message
            assert message
            real = await alice.click("0")
        store = bot.SQLiteStore(str(path), bot.BotId(1))
        with pytest.raises(bot.StoreError, match=r"cannot grow .*\. Free some space on its disk"):
            async with running(discord, cls, posting(cls), store=store):
                await fill_disk(store, pages_left=8)
                big = {"id": discord.world.snowflake(), "channel": {"name": "x" * 500_000}}
                discord.send_raw("INTERACTION_CREATE", {**real.interaction, **big})
                for number in range(100):  # small ones fit where the big one did not
                    discord.user(f"person{number}").click(custom_id=button_id(message), message=message["id"])
                    await asyncio.sleep(0.002)
        assert skipped(discord, path) == set()
        async with running(discord, cls, posting(cls), store=bot.SQLiteStore(str(path), bot.BotId(1))) as app:
            await at_rest(app.store)
            assert shown(discord, message) == 102
            assert discord.gateway.identifies == 1


async def fill_disk(store: bot.SQLiteStore, pages_left: int) -> None:
    """Let the database grow by so many pages and no more, as on a disk that is nearly full."""
    [(pages,)] = await store._db.execute_fetchall("PRAGMA page_count")
    await store._db.execute(f"PRAGMA max_page_count={pages + pages_left}")


# The session is gone


async def test_a_session_that_is_gone_costs_one_identify_and_the_gap_is_recorded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = bot.SQLiteStore(str(tmp_path / "bot.db"), bot.BotId(1))
    async with playing(store=store) as play:
        discord = play.discord
        discord.gateway.invalidate()
        discord.gateway.drop()
        await until(lambda: discord.gateway.identifies == 2)
        assert (await play.click()).state == "answered"
        assert play.shown == 1
        assert len(sent_by_client(discord, 6)) == 1
        [(since, till, why)] = rows(tmp_path / "bot.db", "SELECT since, until, why FROM gap")
        assert since <= till
        assert why == "Discord says that it is gone"
    assert "the gateway session cannot be resumed (Discord says that it is gone)" in caplog.text


async def test_a_session_that_ended_while_the_bot_was_down_is_recorded_as_a_gap(tmp_path: Path) -> None:
    cls = view()
    async with Discord() as discord:
        for _ in range(2):
            async with running(
                discord, cls, posting(cls), store=bot.SQLiteStore(str(tmp_path / "bot.db"), bot.BotId(1))
            ):
                used = await discord.user("alice").command("post")
                assert used.state == "answered"
            discord.clock.advance(200)
        assert (discord.gateway.identifies, discord.gateway.resumes) == (2, 0)
        assert len(rows(tmp_path / "bot.db", "SELECT * FROM gap")) == 1


async def test_a_session_of_other_intents_is_not_resumed(tmp_path: Path) -> None:
    async with Discord() as discord:
        for intents in (hikari.Intents.NONE, hikari.Intents.GUILD_MESSAGES, hikari.Intents.GUILD_MESSAGES):
            store = bot.SQLiteStore(str(tmp_path / "bot.db"), bot.BotId(1))
            async with running(discord, store=store, intents=intents):
                pass
        assert (discord.gateway.identifies, discord.gateway.resumes) == (2, 1)
        [(why,)] = rows(tmp_path / "bot.db", "SELECT why FROM gap")
        assert why == "the token, the intents or the number of shards changed"


# What the server does


async def at_once(*survivals: Coroutine[Any, Any, str]) -> list[str]:
    """Run all of them, each with a Discord and a bot of its own, at the same time; return what went wrong."""
    return [wrong for wrong in await asyncio.gather(*survivals) if wrong]


async def survive(what: str, disturb: Callable[[Discord], None], identifies: int = 1) -> str:
    """Disturb a connected bot and click twice; return what went wrong, or "".

    The first click comes while the bot is away: a new session has not got it.
    """
    try:
        async with playing() as play:
            discord = play.discord
            before, asked = sessions(discord), len(commands_asked_for(discord))
            disturb(discord)
            play.click()
            await until(lambda: sessions(discord) > before)
            if (await play.click("bob")).state != "answered":
                return f"{what}: the next click was not answered"
            await play.at_rest()
            seen = (play.shown, discord.gateway.identifies, len(commands_asked_for(discord)) - asked)
            return "" if seen == (3 - identifies, identifies, 0) else f"{what}: {seen}"
    except Exception as error:
        return f"{what}: {error!r:.300}"


def sessions(discord: Discord) -> int:
    """Return how often a session was begun or resumed."""
    return discord.gateway.identifies + discord.gateway.resumes


async def test_a_connection_that_ends_is_taken_up_again_whatever_the_code() -> None:
    resumed = [None, 1000, 1001, 1011, 4000, 4001, 4002, 4003, 4005, 4006, 4008]
    wrong = await at_once(
        *(survive(f"{code}", lambda discord, code=code: discord.gateway.drop(code)) for code in resumed),
        *(survive(f"{code}", lambda discord, code=code: discord.gateway.drop(code), 2) for code in (4007, 4009)),
        survive("op 7", lambda discord: discord.gateway.reconnect()),
        survive("op 9 true", lambda discord: send_frame(discord, b'{"op":9,"d":true}')),
    )
    assert wrong == []


async def test_an_event_that_is_replayed_although_it_is_done_runs_once(tmp_path: Path) -> None:
    cls, path = view(), tmp_path / "bot.db"
    async with Discord() as discord:
        alice = discord.user("alice")
        async with running(discord, cls, posting(cls), store=bot.SQLiteStore(str(path), bot.BotId(1))):
            message = (await alice.command("post")).message
            assert message
            for count in range(3):
                await alice.click(f"{count}", message=message)
        rows(path, "UPDATE cursor SET seq=1")
        async with running(discord, cls, posting(cls), store=bot.SQLiteStore(str(path), bot.BotId(1))) as app:
            await alice.click("3", message=message)
            await at_rest(app.store)
        [resumed] = [entry.data for entry in discord.journal.of("gateway") if entry.data["what"] == "resumed"]
        assert resumed["replayed"] >= 4
        assert (shown(discord, message), len(discord.messages())) == (4, 1)


async def test_a_resume_that_is_closed_with_4007_ends_in_a_new_session(tmp_path: Path) -> None:
    cls = view()
    path = tmp_path / "bot.db"
    async with Discord() as discord:
        async with running(discord, cls, posting(cls), store=bot.SQLiteStore(str(path), bot.BotId(1))):
            pass
        rows(path, "UPDATE cursor SET seq=seq+1000")
        async with running(discord, cls, posting(cls), store=bot.SQLiteStore(str(path), bot.BotId(1))):
            assert (await discord.user("alice").command("post")).state == "answered"
        assert len(sent_by_client(discord, 6)) == 1
        assert discord.gateway.identifies == 2
        assert rows(path, "SELECT why FROM gap") == [("Discord closed it with 4007",)]


async def test_a_resume_host_that_is_gone_is_left_for_the_general_one(tmp_path: Path) -> None:
    path = tmp_path / "bot.db"
    async with Discord() as discord:
        for _ in range(2):
            async with running(discord, store=bot.SQLiteStore(str(path), bot.BotId(1))):
                pass
            rows(path, "UPDATE cursor SET resume_url=?", "ws://127.0.0.1:9/resume")
        assert (discord.gateway.identifies, discord.gateway.resumes) == (1, 1)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (4004, "Discord refuses the token"),
        (4010, "shard"),
        (4011, "shard"),
        (4012, "version"),
        (4013, "Discord does not know one of the intents"),
        (4014, r"Discord refuses an intent\."),
    ],
)
async def test_a_code_that_waiting_does_not_mend_ends_the_bot_with_a_sentence(code: int, sentence: str) -> None:
    async with Discord() as discord:
        with pytest.raises(bot.OperatorError, match=sentence):
            await run_to_its_end(discord, lambda: discord.gateway.drop(code))


async def run_to_its_end(discord: Discord, disturb: Callable[[], None], **settings: Any) -> None:
    """Run a bot, do something when it is connected, and wait until it has ended by itself."""
    app = bot.App(bot.Config(**{"token": discord.token, "api": discord.api, "store": ":memory:", **settings}))
    app.intents = hikari.Intents.GUILD_MESSAGES
    ends = asyncio.create_task(app.run())
    await until(lambda: commands_asked_for(discord) or ends.done())
    disturb()
    async with asyncio.timeout(10):
        await ends


async def test_an_intent_that_is_not_switched_on_is_named_in_one_sentence() -> None:
    async with Discord() as discord:
        discord.gateway.denied_intents = int(hikari.Intents.GUILD_MESSAGES)
        with pytest.raises(bot.OperatorError, match=r"Discord refuses an intent\. Switch it on at .*\."):
            await run_to_its_end(discord, lambda: None)
        assert discord.gateway.identifies == 0


async def test_a_wrong_token_ends_the_process_with_2_and_one_sentence(tmp_path: Path) -> None:
    async with Discord() as discord:
        other = "MTAwMDAwMDAwMDAwMDAwMDA5.playground.local"
        with pytest.raises(RuntimeError, match="ended with exit code 2"):
            await start(discord, "counter", tmp_path / "bot.db", DISCORD_TOKEN=other)
        [process] = discord.bots
        assert process.returncode == 2
        assert process.log == [bot.REFUSED[4004]]


# What is no payload


FRAMES = [
    b"nonsense",
    b"",
    b"\xff\xfe",
    b'{"op":0',
    b"[1,2]",
    b"5",
    b"null",
    b'"text"',
    b"{}",
    b'{"op":"x"}',
    b'{"op":null}',
    b'{"op":0}',
    b'{"op":0,"t":null,"s":null,"d":null}',
    b'{"op":0,"t":"INTERACTION_CREATE","s":"x","d":{}}',
    b'{"op":9}',
    b'{"op":10}',
    b'{"op":77,"d":5}',
    b"[" * 100_000,
]
EVENTS = {
    "READY": [None, {}, [], {"user": 5}],
    "RESUMED": [None, []],
    "RATE_LIMITED": [None, {}],
    "GUILD_CREATE": [None, {}],
    "MESSAGE_CREATE": ["text", {}],
    "INTERACTION_CREATE": [None, [], 5],
    "NOBODY_KNOWS_THIS": [None],
    "": [{}],
}


async def test_a_frame_that_is_no_payload_does_not_stop_the_bot() -> None:
    frames = {f"{frame[:60]!r}": frame for frame in FRAMES}
    assert await wrong_after({name: functools.partial(send_frame, frame=frame) for name, frame in frames.items()}) == {}


async def test_an_event_that_is_malformed_does_not_stop_the_bot() -> None:
    events = {f"{name} {data!r}": (name, data) for name, several in EVENTS.items() for data in several}
    assert await wrong_after({name: functools.partial(send_event, event=event) for name, event in events.items()}) == {}


async def test_a_stream_that_cannot_be_inflated_is_taken_up_anew() -> None:
    assert await wrong_after({"garbage": garble}) == {}


async def wrong_after(disturbances: dict[str, Callable[[Discord], None]]) -> dict[str, str]:
    """Disturb a connected bot, which may reconnect, and click, again and again; return what went wrong after which."""
    wrong, names = dict[str, str](), iter(disturbances)
    while True:
        name = "at the start"
        try:
            async with playing() as play:
                for name in names:
                    count = play.shown
                    disturbances[name](play.discord)
                    play.click()
                    play.click("bob")
                    await until(lambda count=count: play.shown == count + 2)
                assert play.discord.gateway.identifies == 1
                return wrong
        except Exception as error:  # the next one gets a new bot
            wrong[name] = f"{error!r:.200}"


def garble(discord: Discord) -> None:
    """Send what ends like a payload and is not deflated."""
    for socket in discord.gateway._sockets:
        socket.garbage = asyncio.create_task(socket.ws.send_bytes(b"garbage\x00\x00\xff\xff"))  # pyright: ignore


def send_event(discord: Discord, event: tuple[str, Any]) -> None:
    discord.send_raw(*event)


def send_frame(discord: Discord, frame: bytes) -> None:
    """Write these bytes as one payload to every connection."""
    discord.send_frame(frame)


# hikari's private names

PRIVATE = {
    "Shard": {"_connect", "_heartbeat", "_resume_gateway_url", "_seq", "_session_id", "_user_id", "_ws"},
    "Gateway": {
        "_cache",
        "_dumps",
        "_event_factory",
        "_event_manager",
        "_loads",
        "_shards",
        "_start_one_shard",
        "_token",
    },
}
HIKARI: dict[str, type] = {"Shard": hikari.impl.GatewayShardImpl, "Gateway": hikari.GatewayBot}


def private_names(class_name: str) -> set[str]:
    """Return hikari's private names that a class of bot.py uses or overrides, read from its source."""
    tree = ast.parse((ROOT / "bot.py").read_text("utf-8"))
    [body] = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == class_name]
    names = {node.name for node in body.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    names |= {node.attr for node in ast.walk(body) if isinstance(node, ast.Attribute) and is_self(node.value)}
    return {name for name in names if re.match("_[a-z]", name) and hasattr(HIKARI[class_name], name)}


def is_self(node: ast.expr) -> bool:
    """Whether it is `self`, `super()` or a shard."""
    called = node.func if isinstance(node, ast.Call) else node
    return isinstance(called, ast.Name) and called.id in ("self", "super", "shard")


@pytest.mark.parametrize("class_name", PRIVATE)
def test_every_private_name_of_hikaris_that_is_used_is_listed_and_there(class_name: str) -> None:
    used = private_names(class_name)
    moved = PRIVATE[class_name] - used
    assert moved == set(), f"hikari {hikari.__version__} has no {moved}, or bot.py no longer uses it: see section 8"
    assert used - PRIVATE[class_name] == set(), "one more: list it here, and look how hikari uses it"


def test_the_tap_reaches_a_shard_by_names_of_our_own() -> None:
    tree = ast.parse((ROOT / "bot.py").read_text("utf-8"))
    [tap] = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Tap"]
    theirs = {name for name in dir(hikari.impl.GatewayShardImpl) if re.match("_[a-z]", name)}
    touched = {node.attr for node in ast.walk(tap) if isinstance(node, ast.Attribute) and not is_self(node.value)}
    assert touched & theirs == set()


def test_what_hikari_says_when_it_starts_a_shard_is_passed_on() -> None:
    starts = [bot.Gateway.__dict__[name] for name in dir(bot.Gateway) if re.fullmatch("_start_.*shard", name)]
    ours = set[str]().union(*(inspect.signature(each).parameters for each in starts))
    theirs = set(inspect.signature(hikari.GatewayBot._start_one_shard).parameters)
    taken = set(inspect.signature(hikari.impl.GatewayShardImpl.__init__).parameters)
    renamed = {"afk": "initial_is_afk", **{name: f"initial_{name}" for name in ("activity", "idle_since", "status")}}
    assert {renamed.get(name, name) for name in theirs - ours} <= taken


@pytest.mark.parametrize("name", ["receive_json", "send_json", "send_close"])
def test_the_transport_has_what_the_tap_stands_in_for(name: str) -> None:
    transport: Any = inspect.getmodule(hikari.impl.GatewayShardImpl).__dict__["_GatewayTransport"]
    theirs, ours = (inspect.signature(getattr(cls, name)) for cls in (transport, bot.Tap))
    assert list(theirs.parameters) == list(ours.parameters)
    assert inspect.iscoroutinefunction(getattr(transport, name))
