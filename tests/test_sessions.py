"""Gateway sessions over many processes and shards: when one is resumed, and the private names all this relies on."""

from __future__ import annotations

import ast
import asyncio
import itertools
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiosqlite
import hikari
import hikari.impl
import pytest
from aiohttp import web

import bot
from playground import Discord
from playground.world import APPLICATION_ID
from tests.kit import ROOT, Json, commands_asked_for, complaints, rows, running, shown, start, state_of, until

# Which session may be resumed


def reset_token(discord: Discord) -> Json:
    discord.reset_token()
    return {}


@pytest.mark.parametrize(
    "change", [lambda _: {"intents": hikari.Intents.GUILDS}, lambda _: {"shard_count": 2}, reset_token]
)
async def test_a_session_of_another_identity_is_not_resumed_and_its_gap_is_recorded_and_logged(
    change: Callable[[Discord], Json], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Discord() as discord:
        discord.gateway.max_concurrency = 2
        async with running(discord, store=store_in(tmp_path)):
            pass
        changed = change(discord)
        for _ in range(2):
            async with running(discord, store=store_in(tmp_path), **changed):
                pass
        sessions = changed.get("shard_count", 1)
        assert (discord.gateway.identifies, discord.gateway.resumes) == (1 + sessions, sessions)
        assert len(received(discord, 6)) == sessions
    why = "the token, the intents or the number of shards changed"
    assert rows(tmp_path / "bot.db", "SELECT shard, why FROM gap") == [(0, why)]
    assert caplog.text.count(f"the gateway session cannot be resumed ({why}): events") == 1


def store_in(folder: Path, late_s: float = 0) -> bot.SQLiteStore:
    """Return the store of that folder, with a clock that is late by so much."""
    return bot.SQLiteStore(str(folder / "bot.db"), bot.BotId(1), now=lambda: time.time() + late_s)


def received(discord: Discord, op: int) -> list[Any]:
    """Return the entries of the payloads with this op that bots have sent."""
    return [entry for entry in discord.journal.of("gateway_in") if entry.data["op"] == op]


async def test_a_session_as_old_as_a_month_is_left_for_a_new_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Discord() as discord:
        for late_s in (0, bot.SESSION_AGE_MAX_S - bot.HOUR, bot.SESSION_AGE_MAX_S + bot.HOUR):
            async with running(discord, store=store_in(tmp_path, late_s)):
                pass
        assert (discord.gateway.identifies, discord.gateway.resumes) == (2, 1)
    assert rows(tmp_path / "bot.db", "SELECT why FROM gap") == [("it is a month old",)]
    assert "cannot be resumed (it is a month old)" in caplog.text


async def test_what_a_session_was_identified_with_is_in_its_fingerprint() -> None:
    class Obfuscated(bot.Gateway):
        capabilities = hikari.GatewayCapabilities.CHANNEL_OBFUSCATION  # pyright: ignore

    async with Discord() as discord:
        config = bot.Config(token=discord.token, api=discord.api)
        fingerprints = [gateway(bot.App(config)).fingerprint for gateway in (bot.Gateway, bot.Gateway, Obfuscated)]
        assert len(set(fingerprints)) == 2
        assert not [each for each in fingerprints if discord.token in each]
        async with running(discord):
            [identify] = received(discord, 2)
            assert identify.data["d"]["capabilities"] == int(bot.Gateway(bot.App(config)).capabilities)


# After a RESUME, which brings no READY


class Listening(bot.App):
    """A bot that shows what it does and listens to servers."""

    def __init__(self, config: bot.Config, store: bot.Store | None = None) -> None:
        super().__init__(config, store)
        self.intents = hikari.Intents.GUILDS
        self.activity = hikari.Activity(name="with fire")
        self.guilds: list[hikari.GuildAvailableEvent] = []

    async def recover(self) -> None:
        self.gateway.subscribe(hikari.GuildAvailableEvent, self._note)
        await super().recover()

    async def _note(self, event: hikari.GuildAvailableEvent) -> None:
        self.guilds.append(event)


async def test_after_a_resume_the_bot_knows_itself_and_its_servers_and_is_seen_as_before(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Discord() as discord:
        for run in range(2):
            async with running(discord, store=store_in(tmp_path), make=Listening) as app:
                assert isinstance(app, Listening)
                me = app.gateway.get_me()
                assert me and str(me.id) == APPLICATION_ID
                await until(lambda app=app: app.guilds)
                assert [str(event.shard.get_user_id()) for event in app.guilds] == [APPLICATION_ID]
                await until(lambda run=run: len(received(discord, 3)) == run)
            rows(tmp_path / "bot.db", "UPDATE cursor SET seq=1")  # GUILD_CREATE is replayed
        assert (discord.gateway.identifies, discord.gateway.resumes) == (1, 1)
        [presence] = received(discord, 3)
        assert presence.data["d"]["game"]["name"] == "with fire"
    assert complaints(caplog) == []


# Several shards

SHARDS = 4


@pytest.mark.slow
async def test_four_shards_are_killed_under_load_and_resume_all_at_once_each_where_it_was(tmp_path: Path) -> None:
    store, rounds = tmp_path / "bot.db", 3
    async with Discord() as discord:
        gateway = discord.gateway
        gateway.max_concurrency = SHARDS
        process = await start(discord, "counter", store, SHARD_COUNT=SHARDS)
        await until(lambda: gateway.identifies == SHARDS)
        assert span(received(discord, 2)) < 5  # all at once: one after the other takes 15 s
        message = (await discord.user("alice").command("post")).message
        click = (await discord.user("alice").click("0", message=message)).interaction
        # RESUME waits for no turn and is not counted: from here on Discord allows none, and one at a time.
        gateway.identifies_allowed, gateway.max_concurrency = 0, 1
        sent = 1
        for round in range(1, rounds + 1):
            before = len(discord.journal.of("rest"))
            sent += click_on_every_shard(discord, click, 20)
            await until(lambda before=before: len(discord.journal.of("rest")) > before)
            process.kill()
            await process.wait()
            sent += click_on_every_shard(discord, click, 5)
            asked = len(commands_asked_for(discord))
            await process.start()
            await until(lambda round=round: gateway.resumes == SHARDS * round)
            assert span(received(discord, 6)[-SHARDS:]) < 5
            await until(lambda asked=asked: len(commands_asked_for(discord)) > asked)
            # Nor does what comes when all shards are there: hikari's own start would take 15 s.
            assert commands_asked_for(discord)[-1].at - received(discord, 6)[-1].at < 5
        await until(lambda: len(state_of(store, message or {})["people"]) == sent)

        def each_cursor_is_where_its_session_is() -> bool:
            sessions = {(session.shard, session.id, session.seq) for session in gateway._sessions.values()}
            assert len({seq for _, _, seq in sessions}) == SHARDS
            return {*rows(store, "SELECT shard, session, seq FROM cursor")} == sessions

        assert message
        await until(lambda: shown(discord, message) == sent)
        await until(each_cursor_is_where_its_session_is)  # the last change of the message is an event, too
        assert await process.terminate() == 0
        assert each_cursor_is_where_its_session_is()
        assert gateway.identifies == SHARDS
        assert rows(store, "SELECT * FROM failed") == rows(store, "SELECT * FROM gap") == []


def span(entries: list[Any]) -> float:
    """Return the seconds from the first of the entries to the last."""
    assert len(entries) == SHARDS
    return entries[-1].at - entries[0].at


def click_on_every_shard(discord: Discord, click: Json, count: int) -> int:
    """Send so many copies of a click as clicks of their own, more to the later shards; return how many."""
    sent = 0
    for number in range(count):
        for shard in range(SHARDS):
            guild_id = str(shard << 22)
            for _ in range(shard):
                discord.gateway.dispatch("VOICE_CHANNEL_STATUS_UPDATE", {}, guild_id)
            if number % (SHARDS - shard) == 0:
                payload = {**click, "id": discord.world.snowflake(), "guild_id": guild_id}
                discord.gateway.dispatch("INTERACTION_CREATE", payload, guild_id)
                sent += 1
    return sent


@pytest.mark.slow
async def test_when_all_sessions_are_gone_the_shards_identify_in_turns_of_5_s_for_each_bucket() -> None:
    await asyncio.gather(*(identify_anew(buckets) for buckets in (1, 2, SHARDS)))


async def identify_anew(buckets: int) -> None:
    """Let four shards lose their sessions at the same moment, and look at the IDENTIFYs that follow."""
    async with Discord() as discord:
        discord.gateway.max_concurrency = SHARDS
        async with running(discord, shard_count=SHARDS):
            await until(lambda: discord.gateway.identifies == SHARDS)
            discord.gateway.max_concurrency = buckets
            discord.gateway.invalidate()
            discord.gateway.drop()
            await until(lambda: discord.gateway.identifies == 2 * SHARDS, timeout=60)
        turns = [(entry.at, entry.data["d"]["shard"][0] % buckets) for entry in received(discord, 2)[SHARDS:]]
        for bucket in range(buckets):
            times = [at for at, each in turns if each == bucket]
            assert len(times) == SHARDS / buckets
            # 0.1 s less: they are measured where they arrive.
            assert not [later - at for at, later in itertools.pairwise(times) if later - at < 4.9]


async def test_when_no_session_may_be_started_the_bot_says_so_waits_and_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Discord() as discord:
        discord.gateway.identifies_allowed, discord.gateway.reset_after_s = 0, 1.5
        began = discord.clock.now()
        async with running(discord):
            [identify] = received(discord, 2)
            assert identify.at - began >= 1.5
    assert "Discord allows no new session before " in caplog.text
    assert "; waiting until then" in caplog.text


async def test_a_bot_that_waits_for_a_session_lets_itself_be_stopped(tmp_path: Path) -> None:
    async with Discord() as discord:
        discord.gateway.identifies_allowed = 0
        env = {"PYTHONPATH": str(ROOT), "STORE": f"sqlite:{tmp_path / 'bot.db'}", "DRAIN_S": "0"}
        process = await discord.start_bot(ROOT / "tests" / "bots" / "counter.py", env=env)
        await until(lambda: "; waiting until then" in "\n".join(process.log))
        assert await process.terminate() == 0
        assert "stopped; " in process.log[-1]
        assert received(discord, 2) == []


@pytest.mark.slow
async def test_a_resume_host_that_takes_the_connection_and_says_nothing_is_left(tmp_path: Path) -> None:
    async def say_nothing(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.receive()
        return socket

    silent = web.Application()
    silent.router.add_get("/", say_nothing)
    runner = web.AppRunner(silent)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with Discord() as discord:
        async with running(discord, store=store_in(tmp_path)):
            pass
        rows(tmp_path / "bot.db", "UPDATE cursor SET resume_url=?", f"ws://127.0.0.1:{runner.addresses[0][1]}/")
        app = bot.App(bot.Config(token=discord.token, api=discord.api), store_in(tmp_path))
        ends = asyncio.create_task(app.run())
        await until(lambda: discord.gateway.resumes, timeout=60)
        app.stop()
        await ends
        assert discord.gateway.identifies == 1
    await runner.cleanup()


# Codes that waiting does not mend, as the operator meets them


async def test_each_code_that_waiting_does_not_mend_ends_the_process_with_2_and_its_sentence(tmp_path: Path) -> None:
    async def end_with(code: int) -> tuple[int, int, str]:
        async with Discord() as discord:
            process = await start(discord, "counter", tmp_path / f"{code}.db", LOG_LEVEL="ERROR")
            discord.gateway.drop(code)
            return code, await process.wait(), "\n".join(process.log)

    ends = await asyncio.gather(*(end_with(code) for code in bot.REFUSED))
    assert ends == [(code, 2, sentence.format(intents="an intent")) for code, sentence in bot.REFUSED.items()]


# What the log says of it


async def test_a_stop_and_a_resume_are_one_line_each(tmp_path: Path) -> None:
    async with Discord() as discord:
        process = await start(discord, "counter", tmp_path / "bot.db")
        await discord.user("alice").command("post")
        await process.terminate()
        first = len(process.log)
        assert [line.split("everclick: ")[1] for line in process.log[-2:]] == [
            "stopping; 0 handlers and answers have 10 s to end",
            "stopped; Discord keeps the session for some minutes, and the inbox 0 events",
        ]
        for _ in range(3):
            discord.send_raw("VOICE_CHANNEL_STATUS_UPDATE", {})
        await process.start()
        await process.ready()
        await until(lambda: "is running as process" in "\n".join(process.log[first:]))
        assert "shard 0 has resumed its session: 3 events were replayed" in process.log[first]


# Private names of libraries

THEIRS: dict[Any, set[str]] = {
    hikari.impl.GatewayShardImpl: {
        "_connect", "_heartbeat", "_resume_gateway_url", "_seq", "_session_id", "_user_id", "_ws"
    },
    hikari.GatewayBot: {
        "_cache", "_dumps", "_event_factory", "_event_manager", "_loads", "_shards", "_start_one_shard", "_token"
    },
    aiosqlite.Connection: {"_conn", "_execute"},
    sys: {"_current_frames"},
    bot.os: {"_exit"},
}  # fmt: skip
DOCUMENTED = {"_replace", "_form"}  # of named tuples; the name of a record of the bot's own


def names_in_the_source(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Yield each name with one underscore in front, and whether it is defined there; attributes and strings are not."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, True
        elif isinstance(node, ast.Attribute):
            yield node.attr, False
        elif isinstance(node, ast.Name):
            yield node.id, isinstance(node.ctx, ast.Store)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value, False  # getattr(shard, "_seq")


def test_every_private_name_of_a_library_that_bot_py_touches_is_listed_and_there() -> None:
    tree = ast.parse((ROOT / "bot.py").read_text("utf-8"))
    names = [each for each in names_in_the_source(tree) if re.fullmatch(r"_[a-z]\w*", each[0])]
    kept = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and is_of_self(node)}
    theirs = {name for owner in (hikari.impl.GatewayShardImpl, hikari.GatewayBot) for name in dir(owner)}
    ours = ({name for name, is_defined in names if is_defined} | kept) - theirs
    touched = {name for name, _ in names} - ours - DOCUMENTED
    listed = set[str]().union(*THEIRS.values())
    assert touched - listed == set(), "one more: list it here, and look how its library uses it"
    assert listed - touched == set(), "bot.py no longer uses it"
    gone = {(owner, name) for owner, names in THEIRS.items() for name in names if name not in known_of(owner)}
    assert gone == set(), f"hikari {hikari.__version__} or another library has moved it: see where bot.py uses it"


def is_of_self(node: ast.Attribute) -> bool:
    """Whether an attribute of our own object is set here."""
    return isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name) and node.value.id == "self"


def known_of(owner: Any) -> set[str]:
    """Return the names of a module or class, and those that its constructor sets."""
    code = getattr(getattr(owner, "__init__", None), "__code__", None)
    return {*dir(owner), *(code.co_names if code else ())}
