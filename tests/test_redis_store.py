"""The store in Redis: the contract of every store and of shared ones, outages, and what is Redis's own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import random
import urllib.parse
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("extras.redis_store", reason="extras/ is not there, or redis is not installed")

import redis.asyncio as redis_py

from bot import (
    DAY,
    CommitUnknownError,
    Event,
    EventKey,
    Gone,
    OperatorError,
    OutageError,
    Place,
    Query,
    RecordId,
    Saved,
    StateConflictError,
    StoreError,
    Timer,
)
from extras import redis_link
from extras.redis_store import RedisStore

pytest.register_assert_rewrite("contract")
from contract import (  # noqa: E402
    BOT,
    BROKEN,
    LEASE_S,
    OTHER_BOT,
    PLACE,
    Clock,
    OpenStore,
    SharedStoreContract,
    SharedStoreOutages,
    StoreContract,
    accept,
    again,
    at,
    event,
    keys,
    opener,
    record,
)
from kit import until  # noqa: E402
from leaks import LEAKS  # noqa: E402
from servers import Proxy, RedisServer, Server, free_port, proxy  # noqa: E402

pytest_plugins = ["tests.servers"]


class TestRedisStore(StoreContract):
    @pytest.fixture
    async def open_store(self, clock: Clock, redis: Server) -> AsyncIterator[OpenStore]:
        async with opener(lambda bot, most: RedisStore(redis.url, bot, max_failed=most, now=clock)) as open_store:
            yield open_store


class TestSharedRedisStore(SharedStoreContract):
    @pytest.fixture
    def server(self, redis: Server) -> Server:
        return redis


class TestRedisOutages(SharedStoreOutages):
    @pytest.fixture
    def server(self, redis: Server) -> Server:
        return redis


@contextlib.asynccontextmanager
async def opened(url: str, **settings: Any) -> AsyncIterator[RedisStore]:
    store = RedisStore(url, settings.pop("bot", BOT), **{"lease_s": LEASE_S, **settings})
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@contextlib.asynccontextmanager
async def asking(server: Server) -> AsyncIterator[Any]:
    """Give a client of the server's that has nothing to do with the store."""
    async with redis_py.from_url(server.url, decode_responses=True) as client:
        yield client


@contextlib.contextmanager
def serving(*settings: str) -> Iterator[RedisServer]:
    """Run one more server, with other settings."""

    class Odd(RedisServer):
        def command(self) -> list[str]:
            return [*super().command(), *settings]

    server = Odd()
    try:
        server.start()
        yield server
    finally:
        server.delete()


def only_ours(server: Server) -> None:
    """Skip the test on a server that is not ours to set up or kill."""
    if server.is_elsewhere:
        pytest.skip("the server is not ours to set up")


async def calls(client: Any, command: str = "evalsha") -> int:
    """Return how often the server has run the command."""
    return (await client.info("commandstats")).get(f"cmdstat_{command}", {"calls": 0})["calls"]


# What is on the server


async def test_what_waits_at_the_same_moment_is_one_call(redis: Server) -> None:
    async with opened(redis.url, lease_s=600.0) as store, asking(redis) as client:
        before = await calls(client)
        await asyncio.gather(*(store.accept(event(number), None) for number in range(100)))
        assert await calls(client) - before == 1
        await asyncio.gather(*(store.accept(event(number), None) for number in range(100, 700)))
        assert await calls(client) - before == 1 + 3, "at most 256 operations each"


async def test_operations_that_are_large_together_are_several_calls(redis: Server) -> None:
    async with opened(redis.url, lease_s=600.0) as store, asking(redis) as client:
        before = await calls(client)
        await asyncio.gather(*(store.accept(event(number, bytes(3_000_000)), None) for number in range(9)))
        assert await calls(client) - before == 3
        assert [len(each.body) for each in await store.pending()] == [3_000_000] * 9


async def test_a_lone_click_costs_two_calls_with_all_that_is_noted_on_the_way(redis: Server) -> None:
    async with opened(redis.url, lease_s=600.0) as store, asking(redis) as client:
        before = await calls(client)
        for number in range(10):
            store.move_cursor(at(2 * number))
            await store.accept(event(number), at(2 * number + 1))
            await store.commit([record(version=number)], event(number).key)
            store.note_shown(record().id, number + 1, PLACE)
        assert await calls(client) - before == 20


async def test_what_is_noted_is_written_soon_though_nothing_else_is(redis: Server) -> None:
    async with opened(redis.url) as store:
        await store.commit([record()], None)
        store.note_shown(record().id, 1, PLACE)
        store.move_cursor(at(7))

        async def is_written() -> bool:
            saved = await store.load(record().id)
            return bool(saved and saved.place == PLACE) and await store.cursor(0, "f") == at(7)

        await until(is_written)


async def test_of_what_is_over_little_is_left_and_after_a_day_nothing(redis: Server) -> None:
    clock = Clock()
    async with opened(redis.url, now=clock) as store, asking(redis) as client:
        for number in range(20):
            new = record(f"a:b{number}", data=b'{"n":1,"m":2}', place=PLACE._replace(guild=7), expires_at=clock() + 60)
            await accept(store, event(number, b"secret"))
            async with store.lease(f"lease {number}") as lease:
                await store.commit([new], event(number).key, [Timer(event(number).key, clock(), b"x")], fences=[lease])
            await store.commit([new._replace(version=1)], None)
        assert "secret" not in str([await client.hgetall(each) for each in await client.keys("*event:*")])
        for number in range(20, 25):
            await accept(store, event(number))
            await store.fail(event(number), BROKEN)
        await store.retry_failed([event(20).key])
        await store.commit([], event(20).key)
        await store.discard_failed([])
        for due in [*await store.fire([]), *await store.fire([])]:
            await store.commit([], due.key)
        clock.advance(2 * DAY)
        while await store.purge():
            pass
        left = {each.partition("}:")[2] for each in await client.keys("*")}
        assert left == {"layout", "processes", "order", "tokens", "expiring"}


async def test_an_answer_is_kept_as_long_as_the_key_of_its_event(redis: Server) -> None:
    clock = Clock()
    async with opened(redis.url, now=clock) as store, opened(redis.url) as other:
        await accept(store, event(1))
        assert await store.answer(event(1).key) is None
        store.note_answer(event(1).key, b"first")
        store.note_answer(event(1).key, bytes(range(256)))
        store.note_answer(event("never").key, b"lost")
        await store.commit([], event(1).key)
        assert await store.answer(event(1).key) == bytes(range(256)) == await other.answer(event(1).key)
        assert await store.answer(event("never").key) is None
        clock.advance(2 * DAY)
        assert await store.purge() == 1
        assert await store.answer(event(1).key) is None


async def test_the_key_that_was_pinned_first_stays_until_it_is_replaced(redis: Server) -> None:
    async with opened(redis.url) as one, opened(redis.url) as two:
        assert await one.pinned("a") is None
        assert await asyncio.gather(one.pin("a", "first"), one.pin("a", "second")) == ["first", "first"]
        assert [await two.pin("a", "third"), await two.pinned("a"), await two.pinned("b")] == ["first", "first", None]
        assert [await two.pin("a", "fourth", replace=True), await one.pinned("a")] == ["fourth", "fourth"]


async def test_a_session_that_is_forgotten_leaves_a_gap_on_record(redis: Server) -> None:
    clock = Clock()
    async with opened(redis.url, now=clock) as store, asking(redis) as client:
        await accept(store, None, at(7))
        since = clock()
        clock.advance(60)
        assert await store.cursor(0, "another") is None
        await store.forget(0, "there is nothing to forget")
        [gap] = [json.loads(each) for each in await client.lrange(f"everclick:{{{BOT}}}:gaps", 0, -1)]
        assert (gap["shard"], float(gap["since"]), gap["till"]) == (0, since, clock())
        assert gap["why"] == "the token, the intents or the number of shards changed"
        await accept(store, None, at(8))
        clock.advance(31 * DAY)
        assert await store.cursor(0, "f") is None


async def test_the_figures_are_those_of_all_processes(redis: Server) -> None:
    clock = Clock()
    async with opened(redis.url, now=clock) as one, opened(redis.url, now=clock) as two:
        assert (await one.figures())[:3] == (0, None, 0)
        begun = clock()
        for number, store in enumerate((one, two, two, one)):
            await accept(store, event(number))
            clock.advance(1)
        await one.fail(event(3), BROKEN)
        assert (await two.figures())[:3] == (3, begun, 1)
        await one.commit([], event(0).key)
        await one.retry_failed([])
        assert (await two.figures())[:3] == (3, begun + 1, 0)
        assert (await two.figures()).bytes > 100_000


async def test_the_keys_of_a_bot_lie_together_in_a_cluster(redis: Server) -> None:
    async with opened(redis.url) as store, opened(redis.url, bot=OTHER_BOT) as other, asking(redis) as client:
        for each in (store, other):
            await accept(each, event("{odd}"), at(1))
            await each.commit([record("{k}", data=b'{"{n}":1}', place=PLACE)], None)
        tags = Counter(each.partition("{")[2].partition("}")[0] for each in await client.keys("*"))
        assert tags.keys() == {str(BOT), str(OTHER_BOT)}


async def test_a_server_that_forgot_the_script_is_told_it_again(redis: Server) -> None:
    async with opened(redis.url) as store, asking(redis) as client:
        await client.script_flush()
        assert await accept(store, event(1)) == 1
        await client.script_flush()
        assert await keys(store) == ["1"]


async def test_an_answer_is_its_own_whoever_is_cancelled(redis: Server) -> None:
    async with opened(redis.url) as store:
        await asyncio.gather(*(store.commit([record(f"k{number}", data=b"%d" % number)], None) for number in range(50)))
        for _ in range(20):
            tasks = [asyncio.create_task(store.load(record(f"k{number}").id)) for number in range(50)]
            await asyncio.sleep(random.uniform(0, 0.01))
            for task in random.sample(tasks, 25):
                task.cancel()
            for number, each in enumerate(await asyncio.gather(*tasks, return_exceptions=True)):
                if isinstance(each, asyncio.CancelledError):
                    continue
                assert isinstance(each, Saved), each
                assert each.data == b"%d" % number


async def test_it_can_be_closed_at_any_moment_of_its_start(redis: Server) -> None:
    for steps in range(25):
        async with asyncio.timeout(30), opened(redis.url):
            for _ in range(steps):
                await asyncio.sleep(0)


async def test_nobody_waits_for_ever_when_all_tasks_of_the_process_are_cancelled(redis: Server) -> None:
    async with opened(redis.url) as store:
        [writer] = [task for task in asyncio.all_tasks() if task.get_name() == "store writer"]
        async with store.lease("a"):
            under_way = store.accept(event(1), None)
            await asyncio.sleep(0)
            waiting = store.accept(event(2), None)
            writer.cancel()
            results = await asyncio.gather(under_way, waiting, return_exceptions=True)
        assert [type(each) for each in results] == [CommitUnknownError, StoreError]
        with pytest.raises(StoreError, match="is closed"):
            await accept(store, event(3))


# Many records


async def work_of(client: Any, what: Callable[[], Awaitable[Any]]) -> int:
    """Return how many commands the server runs for it, the script's own among them."""

    async def total() -> int:
        stats = await client.info("commandstats")
        return sum(each["calls"] for name, each in stats.items() if name not in ("cmdstat_info", "cmdstat_zadd"))

    before = await total()
    await what()
    return await total() - before


async def test_with_many_records_nothing_costs_more(redis: Server) -> None:
    clock = Clock()
    async with opened(redis.url, now=clock, lease_s=600.0) as store, asking(redis) as client:

        async def click() -> None:
            key = EventKey(f"click:{random.random()}")
            await accept(store, Event(key, b"{}"), at(1))
            saved = await store.load(RecordId("poll", "7:hot")) or record("7:hot", expires_at=clock() + DAY)
            await store.commit([saved._replace(data=b'{"n":5}')], key)

        async def costs() -> list[int]:
            steps: list[Callable[[], Awaitable[Any]]] = [
                click,
                lambda: store.find(Query("poll", prefix="7", by="n", limit=3)),
                lambda: store.find(Query("poll", by="n", limit=3)),
                lambda: store.find(Query("poll", prefix="7:hot")),
                lambda: store.find(Query("poll", message=1)),
                lambda: store.find(Query("poll", after="", limit=3)),
                lambda: store.fire(["poll", "other"]),
                lambda: store.purge(["poll"]),
                lambda: store.clean_up(Gone(channel=1, messages=(5, 6))),
                store.behind,
                store.claim_orphans,
                store.figures,
            ]
            return [await work_of(client, each) for each in steps]

        async def add_one(number: int) -> None:
            key, data, place = f"{number % 50}:{number}", b'{"n":%d}' % number, Place(number % 5, number + 10, guild=1)
            new = record(key, data=data, place=place, expires_at=clock() + DAY)
            await accept(store, event(number))
            await store.commit([new], event(number).key, [Timer(EventKey(f"timer:{number}"), clock() + DAY)])

        async def fill(numbers: range) -> None:
            await asyncio.gather(*map(add_one, numbers))

        await fill(range(200))
        await click()
        few = await costs()
        await fill(range(200, 3_000))
        assert await costs() == few


async def test_a_leaderboard_follows_its_records(redis: Server) -> None:
    async with opened(redis.url) as store:

        async def top(prefix: str = "", **more: Any) -> list[str]:
            found = await store.find(Query("poll", prefix=prefix, by="n", **more))
            return [each.id.key for each in found]

        states = {"1:a": 5, "1:b": 5, "1:c": 7.5, "1": 6, "2:a": True, "1:d": '"text"', "10:a": -1, "1:e": "null"}
        for key, value in states.items():
            text = value if isinstance(value, str) else json.dumps(value)
            await store.commit([record(key, data=b'{"n":%s,"n:m":1}' % text.encode())], None)
        assert await top("1") == ["1:c", "1", "1:a", "1:b", "1:d", "1:e"]
        assert await top("1", limit=2) == ["1:c", "1"]
        assert await top() == ["1:c", "1", "1:a", "1:b", "2:a", "10:a", "1:d", "1:e"]
        await store.commit([record("1:a", version=1, data=b'{"n":9}'), record("1:c", version=1, data=b"{}")], None)
        await store.commit([record("1:b", version=1, data=b"")], None)
        assert await top("1") == ["1:a", "1", "1:c", "1:d", "1:e"]
        assert await top("3") == []
        odd = b'{"n":[1],"m":{"n":1},"big":1%s}' % (b"0" * 400)
        for number, data in enumerate(
            (b"no json", odd, b"[1]", b"\xff", b'{"n":1e999}', b'{"n":12345678901234567890}')
        ):
            await store.commit([record(f"9:{number}", data=data)], None)
        assert (await top("9"))[:2] in (["9:4", "9:5"], ["9:5", "9:0"])
        assert len(await top("9")) == 6
        assert [await top(channel=1), await top("1", after="1:c"), await top(after="9:4", limit=1)] == [
            [],
            ["1:d", "1:e"],
            ["9:5"],
        ]


# The server is away


async def test_an_outage_and_its_end_are_told_once(redis: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    only_ours(redis)
    async with opened(redis.url) as store:
        redis.kill()
        await asyncio.gather(*(accept(store, event(number)) for number in range(3)), return_exceptions=True)
        redis.start()
        await until(lambda: "can be reached again" in caplog.text)
    told = [each.split(" (")[0] for each in caplog.messages if each.startswith("redis://") and "did not" not in each]
    assert told == [f"{redis.url} cannot be reached", f"{redis.url} can be reached again"]


class Delay(Proxy):
    """Keeps back what clients say on the connections there are at a moment, until they are let through."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.gate = asyncio.Event()
        self.gate.set()

    def hold(self) -> asyncio.Event:
        """Return what lets them through."""
        held, self.gate = self.gate, asyncio.Event()
        self.gate.set()
        held.clear()
        return held

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        gate, is_to_server = self.gate, writer.get_extra_info("peername")[1] == self._target.port
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65_536):
                if is_to_server:
                    await gate.wait()
                writer.write(data)
                await writer.drain()


@contextlib.asynccontextmanager
async def delaying(server: Server) -> AsyncIterator[Delay]:
    delay = Delay(server.url)
    listening = await asyncio.start_server(delay._serve, "127.0.0.1", 0)
    delay.url = server.url.replace(f":{delay._target.port}", f":{listening.sockets[0].getsockname()[1]}")
    try:
        yield delay
    finally:
        listening.close()
        delay.cut()


async def test_a_call_that_arrives_after_its_process_gave_it_up_does_nothing(redis: Server) -> None:
    async with delaying(redis) as delay, opened(delay.url, lease_s=600.0) as store, asking(redis) as client:
        await accept(store, event(1))
        store._link._answer_within_s = 0.3
        held = delay.hold()
        late = [Timer(EventKey("timer:1"), 1.0, b"late")]
        with pytest.raises(CommitUnknownError, match="may or may not have the last changes"):
            await store.commit([record(data=b"late")], event(1).key, late)
        await store._link._pool.disconnect()  # what else is kept back is not used again
        await store.commit([], event(1).key)
        before = await calls(client)
        held.set()

        async def has_arrived() -> bool:
            return await calls(client) > before

        await until(has_arrived)
        assert (await store.timers(), await store.load(record().id), await store.pending()) == ([], None, [])


async def test_a_lease_that_ran_out_is_lost_though_nobody_else_has_asked_for_it(redis: Server) -> None:
    async with proxy(redis) as line, opened(line.url) as store, store.lease("a") as lease:
        await store.commit([record()], None, fences=[lease])
        line.silent = True
        await asyncio.sleep(2 * LEASE_S)
        line.silent = False
        line.cut()
        await again(store.pending)
        with pytest.raises(StateConflictError, match=r"the lease a is not held any more\."):
            await again(lambda: store.commit([record(version=1)], None, fences=[lease]))


async def test_who_has_closed_is_passed_over_in_the_queue(redis: Server) -> None:
    async with contextlib.AsyncExitStack() as stack:
        holder, gone, last = [await stack.enter_async_context(opened(redis.url, lease_s=600.0)) for _ in range(3)]

        async def hold(store: RedisStore) -> str:
            async with store.lease("a", wait_s=30):
                return store.owner

        async with holder.lease("a"):
            waiting = [asyncio.create_task(hold(gone)) for _ in range(3)]
            await asyncio.sleep(0.2)
            waiting.append(asyncio.create_task(hold(last)))
            await asyncio.sleep(0.2)
            await gone.close()
        assert await waiting.pop() == last.owner
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(each) for each in results] == [StoreError] * 3


async def test_what_several_processes_left_is_claimed_in_the_order_accepted(redis: Server) -> None:
    async with opened(redis.url) as heir, opened(redis.url) as one, opened(redis.url) as two:
        for number in range(20):
            await accept((one, two)[number % 3 == 0], event(number))
        await one.close()
        await two.close()
        assert await heir.claim_orphans() == [event(number) for number in range(20)] == await heir.pending()


async def test_who_waits_for_a_lease_costs_the_server_nothing(redis: Server) -> None:
    async with opened(redis.url, lease_s=600.0) as store, asking(redis) as client:

        async def hold() -> None:
            async with store.lease("a", wait_s=60):
                pass

        async with store.lease("a"):
            waiting = asyncio.gather(*(hold() for _ in range(20)))
            await asyncio.sleep(0.2)
            before = await calls(client)
            await asyncio.sleep(0.5)
            assert await calls(client) == before
        await waiting


# Its settings and limits


async def refusal(url: str, kind: type[OperatorError] = OperatorError, **settings: Any) -> str:
    """Return why a store is not opened."""
    with pytest.raises(kind) as caught:
        async with opened(url, **settings):
            pass
    assert type(caught.value) is kind
    return str(caught.value)


async def test_a_server_that_is_not_there_is_an_outage() -> None:
    place = f"redis://127.0.0.1:{free_port()}/0"
    told = await refusal(place.replace("://", "://someone:a-secret@"), OutageError)
    assert told.startswith(f"{place} cannot be reached (Error ")
    assert told.endswith("). See that it runs and that STORE has its address.")


SECRET = "s3cr3t/w0rd#1?x@y%"


@pytest.mark.parametrize(
    "url",
    [
        f"redis://:{SECRET}@127.0.0.1:1/0",
        f"redis://user:{SECRET}@127.0.0.1:1/0",
        f"redis://127.0.0.1:1/0?password={SECRET}",
        f"redis://127.0.0.1:{SECRET}/0",
        f"rediss://{SECRET}:{SECRET}@127.0.0.1:1/{SECRET}",
        f"unix://{SECRET}@/nowhere.sock?db=0&socket_timeout={SECRET}",
        f"redis://:{urllib.parse.quote(SECRET, safe='')}@127.0.0.1:1/0",
    ],
)
async def test_whatever_is_wrong_with_a_url_its_password_is_not_shown(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(OperatorError) as caught:
        async with opened(url):
            pass
    told = "".join([str(caught.value), repr(caught.value.__cause__), caplog.text])
    for part in ("s3cr3t", "w0rd"):
        LEAKS.secrets.add(part)
        assert part not in told
    assert str(caught.value)


async def test_a_password_is_needed_where_the_server_wants_one() -> None:
    LEAKS.secrets.add("open-sesame")
    with serving() as server:
        async with asking(server) as client:
            await client.config_set("requirepass", "open-sesame")
        with_wrong = server.url.replace("://", "://:open-sesame-not@")
        for url in (server.url, with_wrong):
            told = await refusal(url)
            assert told.startswith(f"{server.url} refuses the bot (")
            assert told.endswith("). See the user and the password in STORE.")
        async with opened(server.url.replace("://", "://:open-sesame@")) as store:
            assert await accept(store, event(1)) == 1


@pytest.mark.parametrize(
    ("setting", "value", "warning"),
    [
        ("appendonly", "no", "keeps nothing on disk (appendonly no): when it ends, what was accepted is lost."),
        ("appendfsync", "no", "may lose the last second in a power cut (appendfsync no)."),
        ("maxmemory-policy", "allkeys-lru", "will throw away what was accepted when its memory is full"),
    ],
)
async def test_a_setting_that_loses_what_was_accepted_is_warned_of(
    setting: str, value: str, warning: str, caplog: pytest.LogCaptureFixture
) -> None:
    with serving("--maxmemory", "100mb") as server:
        async with opened(server.url):
            assert not caplog.messages
        async with asking(server) as client:
            await client.config_set(setting, value)
        async with opened(server.url) as store:
            assert await accept(store, event(1)) == 1
        [told] = caplog.messages
        assert told.startswith(f"{server.url} {warning}")
        assert "Set its " in told


async def test_with_everysec_it_waits_for_the_disk_or_warns(caplog: pytest.LogCaptureFixture) -> None:
    with serving("--appendfsync", "everysec") as server:
        async with asking(server) as client, opened(server.url) as store:
            assert await accept(store, event(1)) == 1
            version = tuple(int(part) for part in (await client.info())["redis_version"].split(".")[:2])
            if version >= redis_link.WAITAOF_SINCE:
                assert (caplog.messages, await calls(client, "waitaof") >= 1) == ([], True)
            else:
                [told] = caplog.messages
                assert "may lose the last second in a power cut (appendfsync everysec)" in told


async def test_a_server_that_tells_no_settings_is_used_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with serving("--rename-command", "CONFIG", "") as server:
        async with opened(server.url) as store:
            assert await accept(store, event(1)) == 1
        assert len([each for each in caplog.messages if "(appendfsync is not told)" in each]) <= 1


async def test_a_replica_is_refused() -> None:
    with serving() as first, serving("--replicaof", "127.0.0.1", str(first.port)) as replica:
        told = await refusal(replica.url)
        assert told.startswith(f"{replica.url} is a replica, which cannot be written (")
        assert told.endswith("). Set STORE to its primary.")


async def test_keys_of_a_newer_bot_are_refused_and_unchanged(redis: Server) -> None:
    async with opened(redis.url) as store:
        await accept(store, event(1))
    async with asking(redis) as client:
        await client.set(f"everclick:{{{BOT}}}:layout", 99)
        assert await refusal(redis.url) == (
            f"{redis.url} was written by a newer bot (keys of layout 99, this one knows 1)."
            " Use that one, or set STORE to another server."
        )
        assert await client.get(f"everclick:{{{BOT}}}:layout") == "99"
    async with opened(redis.url, bot=OTHER_BOT):
        pass


async def test_a_server_that_is_too_old_is_refused(redis: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_link, "OLDEST_SERVER", (99, 0))
    assert (await refusal(redis.url)).endswith(" The bot needs 6.2 or newer.")


async def test_a_server_without_memory_refuses_what_does_not_fit_and_nothing_is_lost() -> None:
    with serving() as server:
        async with opened(server.url, lease_s=600.0) as store, asking(server) as client:
            await store.commit([record("old", data=bytes(100_000), place=PLACE)], None)
            await accept(store, event("first"), at(1))
            await client.config_set("maxmemory", 100_000)
            results = await asyncio.gather(
                store.accept(event("full", bytes(100_000)), at(2)),
                store.clean_up(Gone(channel=PLACE.channel)),
                store.accept(event("behind"), at(3)),
                return_exceptions=True,
            )
            sentence = "has no memory left ("
            assert all(str(each).startswith(f"{server.url} {sentence}") for each in results), results
            assert await keys(store) == ["first"]
            with pytest.raises(StoreError, match="the cursor must not pass it"):
                await accept(store, event("later"), at(4))
            assert await store.clean_up(Gone(channel=PLACE.channel)) == 1, "what makes room is done"
            await client.config_set("maxmemory", 0)
            assert await store.cursor(0, "f") == at(1)
            assert await accept(store, event("full", bytes(100_000)), at(2)) == 1
            assert await store.cursor(0, "f") == at(2)


async def test_what_somebody_else_has_put_under_our_keys_harms_nothing_else(redis: Server) -> None:
    async with opened(redis.url) as store, asking(redis) as client:
        await client.set(f"everclick:{{{BOT}}}:record:poll:k", "not ours")
        with pytest.raises(StoreError, match="WRONGTYPE"):
            await store.commit([record()], None)
        with pytest.raises(StoreError, match="WRONGTYPE"):
            await store.load(record().id)
        await store.commit([record("other")], None)
        assert await accept(store, event(1)) == 1


async def test_a_socket_on_this_machine_will_do(tmp_path: Any) -> None:
    with serving("--unixsocket", str(tmp_path / "r.sock")):
        async with opened(f"unix://{tmp_path}/r.sock?db=0&protocol=3") as store:
            assert await accept(store, event(1)) == 1
            assert await keys(store) == ["1"]
