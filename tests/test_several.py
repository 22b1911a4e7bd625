"""The same bot as several processes (extras/several.py): real processes, Redis and PostgreSQL, the local Discord."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import hikari
import pytest

pytest.importorskip("extras.redis_store", reason="extras/ is not there, or redis is not installed")
pytest.importorskip("extras.postgres_store", reason="extras/ is not there, or asyncpg is not installed")

from hypothesis import given
from hypothesis import strategies as st
from servers import Server
from shared_process import open_shared

import bot
from bot import Event, EventKey, Query, RecordId
from extras import SharedStore, several
from extras.shards import shares
from playground import Discord
from playground.endpoint import target_of
from playground.people import Used
from playground.process import BotProcess
from tests.kit import ROOT, Play, Watch, button_id, posting, record_of, running, shown, until, view

pytest_plugins = ["tests.servers"]

SCRIPT = ROOT / "tests" / "bots" / "several.py"
Json = dict[str, Any]
Start = Callable[..., Awaitable[BotProcess]]


@pytest.fixture(params=["redis", "postgres"])
def server(request: pytest.FixtureRequest) -> Server:
    """Each of the two servers, with nothing in it."""
    return request.getfixturevalue(request.param)


@pytest.fixture
async def discord() -> AsyncIterator[Discord]:
    async with Discord() as discord:
        discord.gateway.max_concurrency = 16
        yield discord


class Bots:
    """Processes of one bot, on one store."""

    def __init__(self, discord: Discord, store: str) -> None:
        self.discord, self.store = discord, store

    async def start(self, mode: Any = "gateway", *, web: Any = False, **env: object) -> BotProcess:
        """Start one more, and wait until it runs and there is a session; it need not be its own."""
        given = {"PYTHONPATH": str(ROOT), "STORE": self.store, **{name: str(value) for name, value in env.items()}}
        process = await self.discord.start_bot(SCRIPT, env=given, mode=mode, web=web)
        await self.running(process)
        if mode == "rest":
            await process.ready(60)
        elif env.get("RUN") != "web":
            await until(lambda: self.discord.gateway.identifies, 60)
        return process

    async def running(self, process: BotProcess) -> None:
        """Wait until its last run has reached Discord."""
        began = len(process.log)
        await until(lambda: says(process, "is running as process", began) or process.returncode is not None, 60)
        assert process.returncode is None, process.log[-20:]

    @contextlib.asynccontextmanager
    async def look(self) -> AsyncIterator[SharedStore]:
        """Look into the store, as one more process."""
        store = open_shared(self.store, bot.bot_id_of(self.discord.token))
        await store.open()
        try:
            yield store
        finally:
            await store.close()

    async def count(self, message: Json) -> int:
        """Return what the store says that the message's counter has."""
        found = bot.decode_id(button_id(message))
        assert found
        async with self.look() as store:
            saved = await store.load(found[0])
            assert saved
            return json.loads(saved.data)["count"]

    async def accepted(self, clicks: list[Used]) -> list[Used]:
        """Return those that a process has accepted, when none runs any more."""
        async with self.look() as store:
            keys = [EventKey(f"interaction:{each.interaction['id']}") for each in clicks]
            new = await asyncio.gather(*(store.accept(Event(key, b"{}"), None) for key in keys))
            return [click for click, is_new in zip(clicks, new, strict=True) if not is_new]


@pytest.fixture
def bots(discord: Discord, server: Server) -> Bots:
    return Bots(discord, server.url)


def says(process: BotProcess, text: str, since: int = 0) -> bool:
    return any(text in line for line in process.log[since:])


def now(discord: Discord, message: Json) -> Json:
    kept = discord.world.find(message["id"])
    assert kept
    return kept.message


def click(discord: Discord, message: Json, name: str = "alice", process: BotProcess | None = None) -> Used:
    """Click the message's button; `process` is the one that gets the request."""
    if process:
        discord.endpoint._use(target_of(f"{process.web_address}/interactions"))
    return discord.user(name).click(custom_id=button_id(now(discord, message)), message=message["id"])


async def post(discord: Discord, name: str) -> Json:
    used = await discord.user("alice").command(name)
    assert used.message, (used, used.text)
    return used.message


# Two clicks at the same moment


async def at_five(discord: Discord, name: str, *processes: BotProcess) -> Json:
    """Return a new message at 5, counted by each of the processes in turn."""
    message = await post(discord, name)
    for number in range(5):
        await click(discord, message, process=processes[number % len(processes)])
        await until(lambda number=number: shown(discord, message) == number + 1)
    return message


@pytest.mark.slow
async def test_clicks_in_two_processes_all_count_but_for_what_is_kept_in_the_message(
    discord: Discord, bots: Bots
) -> None:
    one, two = await asyncio.gather(*(bots.start("rest", PAUSE_S=0.5) for _ in range(2)))
    poll, kept = await at_five(discord, "poll", one, two), await at_five(discord, "kept", one, two)
    for message, counted in ((poll, 7), (kept, 6)):
        clicks = click(discord, message, "alice", one), click(discord, message, "bob", two)
        for each in clicks:
            assert (await each).state in ("answered", "deferred"), each.text
        await until(lambda message=message, counted=counted: shown(discord, message) == counted)
    assert await bots.count(poll) == 7


@pytest.mark.slow
@pytest.mark.parametrize("name", ["poll", "kept"])
async def test_in_one_process_both_count(discord: Discord, tmp_path: Path, name: str) -> None:
    one = await Bots(discord, f"sqlite:{tmp_path / 'bot.db'}").start("rest", PAUSE_S=0.5)
    message = await at_five(discord, name, one)
    clicks = [click(discord, message, name) for name in ("alice", "bob")]
    for each in clicks:
        await each
    await until(lambda: shown(discord, message) == 7)


# Leases on records


@contextlib.asynccontextmanager
async def another(server: Server, token: str, **settings: Any) -> AsyncIterator[SharedStore]:
    """Open the store as one more process has it."""
    store = open_shared(server.url, bot.bot_id_of(token), **settings)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def lease_on(message: Json) -> str:
    return f"record:{':'.join(record_of(message))}"


async def test_a_handler_whose_lease_was_lost_runs_again(server: Server) -> None:
    runs = 0

    async def press(self: Any, ctx: bot.ComponentContext) -> None:
        nonlocal runs
        runs += 1
        if runs == 1:
            async with another(server, discord.token) as other, other.lease(lease_on(play.message), wait_s=30):
                pass  # it was held for too long here
        self.count += 1
        await ctx.rerender()

    async with Discord() as discord:
        store = open_shared(server.url, bot.bot_id_of(discord.token), max_hold_s=0.3)
        async with running(discord, cls := view(press), posting(cls), store=store, make=several.SharedApp) as app:
            play = Play(discord, app, discord.user("alice"), await post(discord, "post"))
            assert (await play.click()).state in ("answered", "deferred")
            await until(lambda: play.shown == 1)
    assert runs == 2


async def test_who_waits_too_long_for_a_record_is_told_and_nothing_is_lost(server: Server) -> None:
    async with Discord() as discord:
        store = open_shared(server.url, bot.bot_id_of(discord.token))
        async with running(discord, cls := view(), posting(cls), store=store, make=several.SharedApp) as app:
            play = Play(discord, app, discord.user("alice"), await post(discord, "post"))
            assert isinstance(app, several.SharedApp)
            app.shared_lanes.wait_s = 0.3
            async with another(server, discord.token) as other, other.lease(lease_on(play.message)):
                used = await play.click()
            assert used.callback
            assert bot.Texts().failed in json.dumps(used.callback)
            [failed] = await play.failed()
            assert failed.failure.type == "HeldElsewhereError"
            assert "is held by another process for more than 0.3 s" in failed.failure.text
            assert await app.retry_failed() == 1
            await until(lambda: play.shown == 1)


async def test_a_record_is_read_anew_when_another_process_had_it_meanwhile(server: Server) -> None:
    runs = 0

    async def press(self: Any, ctx: bot.ComponentContext) -> None:
        nonlocal runs
        runs += 1
        if runs == 1:
            clicks.append(play.click("bob"))  # who waits in this process
            changing.append(asyncio.create_task(change()))
            await asyncio.sleep(0.5)
        self.count += 1
        await ctx.rerender()

    async def change() -> None:
        async with other.lease(lease_on(play.message), wait_s=30):
            saved = await other.load(record_of(play.message))
            assert saved
            assert json.loads(saved.data) == {"count": 1}
            await other.commit([saved._replace(data=b'{"count":8}')], None)

    async with Discord() as discord, another(server, discord.token) as other:
        store = open_shared(server.url, bot.bot_id_of(discord.token))
        async with running(discord, cls := view(press), posting(cls), store=store, make=several.SharedApp) as app:
            play = Play(discord, app, discord.user("alice"), await post(discord, "post"))
            clicks, changing = [play.click()], list[asyncio.Task[None]]()
            await until(lambda: play.shown == 9)
            await asyncio.gather(*changing)
            for each in clicks:
                assert (await each).state in ("answered", "deferred")
    assert runs == 2, "neither had to run again"


async def test_a_busy_record_is_other_processes_too(server: Server) -> None:
    async def press(self: Any, ctx: bot.ComponentContext) -> None:
        await asyncio.sleep(0.05)
        self.count += 1
        await ctx.rerender()

    async with Discord() as discord, another(server, discord.token) as other:
        store = open_shared(server.url, bot.bot_id_of(discord.token))
        async with running(discord, cls := view(press), posting(cls), store=store, make=several.SharedApp) as app:
            play = Play(discord, app, discord.user("alice"), await post(discord, "post"))
            clicks = [play.click() for _ in range(60)]
            await until(lambda: play.shown > 0)
            async with other.lease(lease_on(play.message), wait_s=30):
                saved = await other.load(record_of(play.message))
                assert saved
                assert json.loads(saved.data)["count"] < 60
            for each in clicks:
                await each
            await until(lambda: play.shown == 60)
            async with other.lease(lease_on(play.message), wait_s=5):
                pass  # nobody kept it


@pytest.mark.parametrize("is_shown", [False, True])
async def test_a_message_never_goes_back_whichever_process_shows_it(server: Server, is_shown: bool) -> None:
    async with Discord() as discord:
        store = open_shared(server.url, bot.bot_id_of(discord.token))
        async with running(discord, cls := view(), posting(cls), store=store, make=several.SharedApp) as app:
            play = Play(discord, app, discord.user("alice"), await post(discord, "post"))
            watch, id = Watch(discord, play.message), record_of(play.message)
            async with another(server, discord.token) as other:
                async with other.lease(f"show:{id.name}:{id.key}"):
                    clicked = play.click()
                    await until(lambda: is_version(other, id, 2))
                    saved = await other.load(id)
                    assert saved
                    await other.commit([saved._replace(data=b'{"count":9}')], None)
                    if is_shown:  # as the other process says
                        other.note_shown(id, 3, None)
                        await other.flush()
                await clicked
                await play.at_rest()
            assert clicked.callback
            assert watch.counts == ([0] if is_shown else [0, 9])
            assert clicked.state in ("answered", "deferred")


async def is_version(store: SharedStore, id: RecordId, version: int) -> bool:
    saved = await store.load(id)
    return saved is not None and saved.version == version


# A bot over HTTP


@pytest.mark.slow
async def test_processes_over_http_share_a_port(discord: Discord, redis: Server) -> None:
    bots = Bots(discord, redis.url)
    one = await bots.start("rest")
    two = await bots.start("rest", WEB_PORT=one.web_port)
    message, pids = await post(discord, "poll"), set[str]()
    while len(pids) < 2:  # a new connection each time, which the system gives to one of the two
        await discord.endpoint.close()
        pids.add(discord.text(await post(discord, "who")))
    assert pids == {str(one.pid), str(two.pid)}
    await one.terminate()
    for number in range(3):
        assert (await click(discord, message)).state in ("answered", "deferred")
        await until(lambda number=number: shown(discord, message) == number + 1)


@pytest.mark.slow
async def test_no_click_is_unanswered_when_processes_over_http_are_replaced(discord: Discord, bots: Bots) -> None:
    processes = [await bots.start("rest")]
    processes.append(await bots.start("rest", WEB_PORT=processes[0].web_port))
    message = await post(discord, "poll")
    clicks, is_over = list[Used](), False

    async def keep_clicking(name: str) -> None:
        while not is_over:
            clicks.append(await click(discord, message, name))
            await asyncio.sleep(0.02)

    people = [asyncio.create_task(keep_clicking(name)) for name in ("alice", "bob", "carol", "dave")]
    for _ in range(3):
        await asyncio.sleep(0.5)
        assert await processes.pop(0).terminate() == 0
        processes.append(await bots.start("rest", WEB_PORT=processes[0].web_port))
    is_over = True
    await asyncio.gather(*people)
    assert {each.state for each in clicks} <= {"answered", "deferred"}, [each for each in clicks if each.text]
    await until(lambda: shown(discord, message) == len(clicks))
    assert await bots.count(message) == len(clicks)


@pytest.mark.slow
async def test_a_copy_gets_the_answer_that_another_process_gives(discord: Discord, redis: Server) -> None:
    bots = Bots(discord, redis.url)
    one, two = await asyncio.gather(*(bots.start("rest", PAUSE_S=1) for _ in range(2)))
    await discord.set_endpoint(f"{one.web_address}/interactions")
    message = await post(discord, "poll")
    first = click(discord, message, process=one)
    await until(lambda: discord.deliveries[-1].interaction_id == first.interaction["id"])
    await asyncio.sleep(0.3)
    request = discord.deliveries[-1].request
    async with aiohttp.ClientSession() as client:
        copies = [
            client.post(f"{two.web_address}/interactions", data=request.body, headers=request.headers) for _ in range(2)
        ]
        answers = [await answer.json() for answer in await asyncio.gather(*copies)]
    await first
    assert answers == [first.callback] * 2
    assert await bots.count(message) == 1


@pytest.mark.slow
async def test_twenty_people_on_ten_polls_while_one_process_after_the_other_is_killed(
    discord: Discord, bots: Bots
) -> None:
    processes = [await bots.start("rest")]
    for _ in range(2):
        processes.append(await bots.start("rest", WEB_PORT=processes[0].web_port))
    polls = [await post(discord, "poll") for _ in range(10)]
    watches = [Watch(discord, poll) for poll in polls]
    clicks, is_over = list[Used](), False

    async def keep_clicking(name: str, number: int) -> None:
        while not is_over:
            clicks.append(click(discord, polls[(number + len(clicks)) % 10], name))
            await clicks[-1]

    people = [asyncio.create_task(keep_clicking(f"p{number}", number)) for number in range(20)]
    for process in processes:
        await asyncio.sleep(1)
        process.kill()
        await process.wait()
        await asyncio.sleep(1)
        await process.start()
        await bots.running(process)
    is_over = True
    await asyncio.gather(*people)
    async with bots.look() as store:
        await until(lambda: is_at_rest(store), 60)
        saved = await store.find(Query("poll"))
    for process in processes:
        assert await process.terminate() == 0
    accepted = await bots.accepted(clicks)
    assert sum(json.loads(each.data)["count"] for each in saved) == len(accepted)
    assert {each for each in clicks if each.state in ("answered", "deferred")} <= {*accepted}
    counts = {each.id: json.loads(each.data)["count"] for each in saved}
    for poll, watch in zip(polls, watches, strict=True):
        assert shown(discord, poll) == counts[RecordId("poll", button_id(poll).split(":")[1])]
        assert not watch.went_back
    assert len(accepted) > 100


async def is_at_rest(store: SharedStore) -> bool:
    return not (await store.figures()).pending and not await store.behind()


@pytest.mark.slow
async def test_what_a_process_saved_and_did_not_show_another_one_shows(discord: Discord, bots: Bots) -> None:
    one = await bots.start("rest")
    dying = await bots.start("rest", DIES="commit")
    await discord.set_endpoint(f"{one.web_address}/interactions")
    message = await post(discord, "poll")
    await click(discord, message, process=dying)
    assert await dying.wait() == -signal.SIGKILL
    await until(lambda: shown(discord, message) == 1, 30)
    assert await bots.count(message) == 1


# Shards


@pytest.mark.slow
@pytest.mark.parametrize("shards", ["", "auto"])
async def test_a_process_that_dies_is_followed_by_one_that_resumes(discord: Discord, bots: Bots, shards: str) -> None:
    one = await bots.start(SHARDS=shards)
    message = await post(discord, "poll")
    two = await bots.start(SHARDS=shards)
    await click(discord, message)
    one.kill()
    await one.wait()
    click(discord, message)  # while nobody listens
    await until(lambda: discord.gateway.resumes)
    await click(discord, message)
    await until(lambda: shown(discord, message) == 3)
    assert (discord.gateway.identifies, discord.gateway.resumes) == (1, 1)
    assert await two.terminate() == 0


async def deploy_under_load(discord: Discord, bots: Bots, times: int, **settings: object) -> None:
    """Replace the process so many times, new before old, while somebody clicks: every click is answered and counts."""
    old = await bots.start(**settings)
    await until(lambda: discord.gateway.identifies == settings.get("SHARD_COUNT", 1), 60)
    message = await post(discord, "poll")
    watch, clicks, is_over = Watch(discord, message), list[Used](), False

    async def keep_clicking(name: str) -> None:
        while not is_over:
            clicks.append(await click(discord, message, name))
            await asyncio.sleep(0.05)

    people = [asyncio.create_task(keep_clicking(name)) for name in ("alice", "bob", "carol")]
    for _ in range(times):
        new = await bots.start(**settings)
        await asyncio.sleep(1)
        assert await old.terminate() == 0
        old = new
    await asyncio.sleep(1)
    is_over = True
    await asyncio.gather(*people)
    assert {each.state for each in clicks} <= {"answered", "deferred"}, [each for each in clicks if each.text]
    async with bots.look() as store:
        await until(lambda: is_at_rest(store), 60)
    assert await bots.count(message) == len(clicks) == shown(discord, message)
    assert not watch.went_back
    assert discord.gateway.identifies == settings.get("SHARD_COUNT", 1)
    assert await old.terminate() == 0


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"SHARDS": "auto", "SHARD_COUNT": 2}], ids=["all", "auto"])
async def test_no_click_is_unanswered_in_a_rolling_deploy(discord: Discord, bots: Bots, settings: Json) -> None:
    await deploy_under_load(discord, bots, 3, **settings)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("settings", [{}, {"SHARDS": "auto", "SHARD_COUNT": 2}], ids=["all", "auto"])
async def test_no_click_is_unanswered_in_twenty_deploys(discord: Discord, bots: Bots, settings: Json) -> None:
    await deploy_under_load(discord, bots, 20, **settings)


@pytest.mark.slow
async def test_a_process_that_stood_still_past_its_leases_writes_nothing_and_takes_nothing_back(
    discord: Discord, bots: Bots
) -> None:
    one = await bots.start(PAUSE_S=1)
    message = await post(discord, "poll")
    two = await bots.start(PAUSE_S=0)
    under_way = click(discord, message)
    await asyncio.sleep(0.5)
    assert one.pid
    os.kill(one.pid, signal.SIGSTOP)
    await until(lambda: discord.gateway.resumes, 30)
    await until(lambda: shown(discord, message) == 1, 30)
    await click(discord, message)
    os.kill(one.pid, signal.SIGCONT)
    await until(lambda: says(one, "shard 0 is let go"), 30)
    await until(lambda: says(one, "is another process's by now: this one stood still for too long"), 30)
    await click(discord, message)
    await until(lambda: shown(discord, message) == 3)
    assert await bots.count(message) == 3
    assert discord.gateway.resumes == 1
    assert await two.terminate() == 0
    await until(lambda: discord.gateway.resumes == 2)  # it waited for the shard
    await click(discord, message)
    await until(lambda: shown(discord, message) == 4)
    assert under_way.state != "pending"


async def shards_of(process: BotProcess) -> set[int]:
    """Return the shards that a process says it is connected with."""
    async with aiohttp.ClientSession() as client, client.get(f"{process.web_address}/health") as answer:
        return {each["id"] for each in (await answer.json())["shards"] if each["connected"]}


async def are_divided(*processes: BotProcess, sizes: list[int]) -> bool:
    found = [await shards_of(each) for each in processes]
    return sorted(map(len, found)) == sizes and set().union(*found) == {*range(sum(sizes))}


@pytest.mark.slow
async def test_processes_divide_the_shards_whenever_one_comes_or_goes(discord: Discord, bots: Bots) -> None:
    auto = {"SHARDS": "auto", "SHARD_COUNT": 4}
    one = await bots.start(web=True, **auto)
    await until(lambda: are_divided(one, sizes=[4]), 40)
    two = await bots.start(web=True, **auto)
    await until(lambda: are_divided(one, two, sizes=[2, 2]), 40)
    three = await bots.start(web=True, **auto)
    await until(lambda: are_divided(one, two, three, sizes=[1, 1, 2]), 40)
    one.kill()
    await one.wait()
    await until(lambda: are_divided(two, three, sizes=[2, 2]), 40)
    message = await post(discord, "poll")
    for channel in (None, "dm"):  # two shards
        assert (await discord.user("alice").command("who", channel=channel)).message
    await two.terminate()
    await until(lambda: are_divided(three, sizes=[4]), 40)
    await click(discord, message)
    await until(lambda: shown(discord, message) == 1)
    assert discord.gateway.identifies == 4


async def test_what_discord_refuses_ends_the_process_with_a_sentence(discord: Discord, redis: Server) -> None:
    discord.gateway.denied_intents = 1
    settings = {"PYTHONPATH": str(ROOT), "STORE": redis.url}
    process = await discord.start_bot(SCRIPT, env=settings)
    assert await process.wait() == 2
    assert says(process, "Discord refuses an intent. Switch it on at your application's page")
    assert not any("Traceback" in line for line in process.log)


@pytest.mark.slow
async def test_sessions_are_begun_in_turns_over_all_processes(discord: Discord, redis: Server) -> None:
    bots, discord.gateway.max_concurrency = Bots(discord, redis.url), 1
    await asyncio.gather(*(bots.start(SHARD_COUNT=3, SHARDS=number) for number in range(3)))
    await until(lambda: discord.gateway.identifies == 3, 40)
    at = [each.at for each in discord.journal.of("gateway_in") if each.data["op"] == 2]
    assert min(after - before for before, after in itertools.pairwise(at)) > 4  # Discord's rule is 5 s


@given(st.dictionaries(st.text("abc", min_size=1), st.sets(st.integers(0, 15)), min_size=1), st.integers(1, 16))
def test_shares_are_even_and_move_as_few_shards_as_can_be(shards: dict[str, set[int]], count: int) -> None:
    wanted = shares({owner: sorted(each) for owner, each in shards.items()}, count)
    assert sum(wanted.values()) == count
    assert max(wanted.values()) - min(wanted.values()) <= 1
    moved = sum(max(0, wanted[owner] - len(shards[owner])) for owner in shards)
    high = sorted(shards, key=lambda owner: -len(shards[owner]))[: count % len(shards)]
    even = [count // len(shards) + (owner in high) - len(shards[owner]) for owner in shards]
    assert moved <= sum(max(0, each) for each in even)


PRIVATE = {
    hikari.impl.GatewayShardImpl: {"_connect", "_keep_alive", "_poll_events", "_user_id"},
    hikari.GatewayBot: {
        "_cache", "_dumps", "_event_factory", "_event_manager", "_loads", "_shards", "_start_one_shard", "_token",
    },
}  # fmt: skip


def test_every_private_name_of_hikaris_that_the_shards_use_is_listed_and_there() -> None:
    tree = ast.parse((ROOT / "extras" / "shards.py").read_text("utf-8"))
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names |= {node.name for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef)}
    used = {each for each in names if re.match("_[a-z]", each) and any(hasattr(theirs, each) for theirs in PRIVATE)}
    assert used == set[str]().union(*PRIVATE.values())
    for theirs, listed in PRIVATE.items():
        assert {each for each in listed if not hasattr(theirs, each)} == set()


# What each process does


@pytest.mark.slow
async def test_what_comes_by_the_clock_comes_once(discord: Discord, bots: Bots) -> None:
    await asyncio.gather(*(bots.start(TICKS=1) for _ in range(3)))

    async def ticks() -> int:
        async with bots.look() as store:
            saved = await store.load(RecordId("total", "tick"))
            return len(json.loads(saved.data)["ticks"]) if saved else 0

    before, began_at = await ticks(), asyncio.get_running_loop().time()
    await until(lambda: is_more(ticks, before + 4))
    assert await ticks() - before <= asyncio.get_running_loop().time() - began_at + 2


async def is_more(ticks: Callable[[], Awaitable[int]], than: int) -> bool:
    await asyncio.sleep(0.2)
    return await ticks() > than


@pytest.mark.slow
async def test_a_run_by_the_clock_that_takes_long_is_waited_for_by_all_processes(server: Server) -> None:
    at_work, most, runs = 0, 0, 0

    @bot.every(1)
    async def slowly(ctx: bot.EventContext) -> None:
        nonlocal at_work, most, runs
        at_work, runs = at_work + 1, runs + 1
        most = max(most, at_work)
        await asyncio.sleep(2.5)
        at_work -= 1

    async with Discord() as discord, contextlib.AsyncExitStack() as stack:
        for _ in range(2):
            store = open_shared(server.url, bot.bot_id_of(discord.token))
            await stack.enter_async_context(running(discord, slowly, store=store, make=several.SharedApp))
        await until(lambda: runs == 4, 40)
        async with another(server, discord.token) as other:
            assert await other.failed() == []
    assert most == 1


@pytest.mark.slow
async def test_a_process_does_what_run_says(discord: Discord, redis: Server) -> None:
    bots = Bots(discord, redis.url)
    served, unserved = await bots.start(web=True, RUN="web"), await bots.start(web=True, RUN="gateway")
    message = await post(discord, "poll")
    assert discord.text(await post(discord, "who")) == str(unserved.pid)
    status, _ = await discord.send_hook("note", {"by": 2}, address=served.web_address)
    assert status == 202
    with pytest.raises(OSError):  # it does not listen
        await discord.send_hook("note", {"by": 2}, address=unserved.web_address, scheme="standard")
    assert (await shards_of(served), discord.gateway.identifies) == (set(), 1)
    await click(discord, message)
    unserved.kill()  # what it accepted the other one runs, also without a shard
    await unserved.wait()
    assert await served.terminate() == 0
    async with bots.look() as store:
        saved = await store.load(RecordId("total", "note"))
        assert saved
        assert json.loads(saved.data)["clicks"] == 2


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"run": "gateway", "mode": "rest", "web_port": 0}, "RUN=gateway does nothing in MODE=rest."),
        ({"run": "gateway,web"}, "RUN=gateway,web needs a place to listen. Write WEB_PORT=8080, say."),
        ({"shards": "0,4", "shard_count": 4}, "SHARDS=0,4 needs SHARD_COUNT=5, or more."),
    ],
)
def test_settings_that_do_not_go_together_are_told(settings: Json, sentence: str) -> None:
    with pytest.raises(bot.OperatorError) as told:
        bot.make_app(bot.Config(store="redis://127.0.0.1:1/0", **settings))
    assert str(told.value) == sentence
    fits = bot.make_app(bot.Config(store="redis://127.0.0.1:1/0", run="web", web_port=1, shards="0,3", shard_count=4))
    assert isinstance(fits, several.SharedApp)


# The command line


def run(folder: Path, *arguments: object, **env: str) -> tuple[int, str, str]:
    """Run the bot's command line and return its exit code and what it says."""
    plain = {name: value for name, value in os.environ.items() if name not in bot.SETTINGS}
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=folder, env=plain | env, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
async def test_the_command_line_works_beside_the_processes(discord: Discord, bots: Bots, tmp_path: Path) -> None:
    one = await bots.start()
    settings = {"DISCORD_TOKEN": discord.token, "STORE": bots.store, "PYTHONPATH": str(ROOT)}

    async def told(*arguments: object) -> tuple[int, str, str]:
        return await asyncio.to_thread(run, tmp_path, SCRIPT, *arguments, **settings)

    message = await post(discord, "poll")
    await discord.user("alice").command("break")
    await until(lambda: says(one, "failed and is on the failed list"))
    code, said, _ = await told("failed")
    assert (code, said.splitlines()[-1]) == (0, "1 failed events.")
    assert "ValueError: as asked" in said
    began = len(one.log)
    assert await told("failed", "retry") == (0, "1 events go back to the inbox.\n", "")
    await until(lambda: says(one, "failed and is on the failed list", began))  # it ran again
    assert await told("failed", "discard") == (0, "1 events are discarded.\n", "")
    code, said, _ = await told("export")
    assert [json.loads(line)["state"] for line in said.splitlines()] == [{"count": 0}]
    assert (await told("export", "total"))[1] == ""
    key = "ab" * 32
    assert await told("trust", "signed", key) == (0, f"signed is trusted with {key}.\n", "")
    async with bots.look() as store:
        assert await store.pinned("signed") == key
    code, said, wrong = await told("backup", tmp_path / "copy")
    assert (code, said) == (2, "")
    assert wrong.startswith(f"{tmp_path / 'copy'} is not written: this makes copies of SQLite files alone. pg_dump")
    await click(discord, message)
    await until(lambda: shown(discord, message) == 1)


@pytest.mark.parametrize(
    ("store", "missing"), [("redis://h/0", "redis"), ("rediss://h/0", "redis"), ("postgresql://h/b", "asyncpg")]
)
def test_without_the_driver_or_the_folder_one_sentence_says_what_to_do(
    tmp_path: Path, store: str, missing: str
) -> None:
    shutil.copy(ROOT / "bot.py", tmp_path)
    remedy = "With the folder extras/ beside bot.py, run: pip install -r extras/requirements.txt\n"
    scheme = store.partition(":")[0]
    needs = f"STORE={scheme}://… needs extras, which is not here. {remedy}"
    assert run(tmp_path, "bot.py", "check", STORE=store) == (2, "", needs)
    shutil.copytree(ROOT / "extras", tmp_path / "extras")
    driver = tmp_path / f"{missing}.py"
    driver.write_text(f"raise ModuleNotFoundError('it is not there', name={missing!r})")
    needs = f"STORE={scheme}://… needs {missing}, which is not here. {remedy}"
    assert run(tmp_path, "bot.py", "check", STORE=store) == (2, "", needs)
    driver.unlink()
    code, said, _ = run(tmp_path, "bot.py", "check", STORE=store)
    assert (code, "no mistakes found" in said) == (0, True)


def test_a_server_that_is_not_there_is_told_without_the_password(tmp_path: Path) -> None:
    token = "MTIzNDU2Nzg5MDEyMzQ1Njc4.playground.local"
    for store in ("redis://me:hunter2@127.0.0.1:1/0", "postgresql://me:hunter2@127.0.0.1:1/bot"):
        code, said, wrong = run(ROOT, "bot.py", "failed", STORE=store, DISCORD_TOKEN=token)
        assert (code, said) == (1, "")
        assert "cannot be reached" in wrong
        assert "hunter2" not in wrong
        assert len(wrong.splitlines()) == 1
