"""The store in PostgreSQL: the contracts of every store and of shared ones, outages, and what is PostgreSQL's own."""

from __future__ import annotations

import asyncio
import contextlib
import time
import urllib.parse
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("extras.postgres_store", reason="extras/ is not there, or asyncpg is not installed")

import asyncpg

import bot
from bot import (
    DAY,
    CommitUnknownError,
    Event,
    EventKey,
    Gone,
    OperatorError,
    OutageError,
    Query,
    RecordId,
    StateConflictError,
    StoreError,
    Timer,
)
from extras import postgres_link
from extras.postgres_store import PostgresStore

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
    at,
    event,
    keys,
    opener,
    record,
)
from kit import until  # noqa: E402
from leaks import LEAKS  # noqa: E402
from servers import Elsewhere, PostgresServer, Proxy, Server, free_port  # noqa: E402

pytest_plugins = ["tests.servers"]


class TestPostgresStore(StoreContract):
    @pytest.fixture
    async def open_store(self, clock: Clock, postgres: Server) -> AsyncIterator[OpenStore]:
        async with opener(lambda bot, most: PostgresStore(postgres.url, bot, max_failed=most, now=clock)) as open_store:
            yield open_store


class TestSharedPostgresStore(SharedStoreContract):
    @pytest.fixture
    def server(self, postgres: Server) -> Server:
        return postgres


class TestPostgresOutages(SharedStoreOutages):
    @pytest.fixture
    def server(self, postgres: Server) -> Server:
        return postgres


@contextlib.asynccontextmanager
async def opened(url: str, **settings: Any) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(url, settings.pop("bot", BOT), **{"lease_s": 30.0, **settings})
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@contextlib.asynccontextmanager
async def asking(server: Server) -> AsyncIterator[Any]:
    """Give a connection that has nothing to do with the store."""
    driver: Any = asyncpg
    db = await driver.connect(server.url)
    try:
        yield db
    finally:
        await db.close()


@contextlib.contextmanager
def serving(*settings: str) -> Iterator[PostgresServer]:
    """Run one more server, with other settings."""

    class Odd(PostgresServer):
        def command(self) -> list[str]:
            return [*super().command(), *(word for setting in settings for word in ("-c", setting))]

    server = Odd()
    try:
        server.start()
        yield server
    finally:
        server.delete()


@pytest.fixture
def ours(postgres: Server) -> Server:
    """A server that is ours to set up."""
    if isinstance(postgres, Elsewhere):
        pytest.skip("the server is not ours to set up")
    return postgres


async def connections(db: Any, store: PostgresStore) -> list[str]:
    """Return the roles of the store's connections."""
    name = f"everclick {store.owner} "
    rows = await db.fetch("SELECT application_name FROM pg_stat_activity WHERE starts_with(application_name, $1)", name)
    return sorted(row[0].removeprefix(name) for row in rows)


# On disk, and in few transactions


async def test_every_connection_waits_for_the_disk(postgres: Server) -> None:
    sql = "SELECT current_setting('synchronous_commit'), $1::bigint"
    async with opened(postgres.url) as store, asking(postgres) as db:
        rows = [*await store._write(sql), *await store._leases.put(lambda db: db.fetch(sql, BOT))]
        assert [row[0] for row in rows] == ["on", "on"]
        await accept(store, event(1))
        assert await db.fetchval("SHOW synchronous_commit") != "on" or isinstance(postgres, Elsewhere)


async def transactions(db: Any) -> int:
    """Return how many transactions that wrote something there have been on the server."""
    return int(await db.fetchval("SELECT pg_snapshot_xmax(pg_current_snapshot())::text"))


async def test_what_waits_at_the_same_moment_is_one_transaction(postgres: Server) -> None:
    async with opened(postgres.url) as store, asking(postgres) as db:
        before = await transactions(db)
        await asyncio.gather(*(store.accept(event(number), None) for number in range(100)))
        assert await transactions(db) - before == 1
        await asyncio.gather(*(store.accept(event(number), None) for number in range(100, 700)))
        assert await transactions(db) - before == 1 + 3, "at most 256 operations each"
        await asyncio.gather(*(store.accept(event(f"large {number}", bytes(3_000_000)), None) for number in range(9)))
        assert await transactions(db) - before == 1 + 3 + 3, "and about 8 MB"
        assert len(await store.pending()) == 709


async def test_a_lone_click_costs_two_transactions_with_all_that_is_noted_on_the_way(postgres: Server) -> None:
    async with opened(postgres.url) as store, asking(postgres) as db:
        before = await transactions(db)
        for number in range(10):
            store.move_cursor(at(2 * number))
            await store.accept(event(number), at(2 * number + 1))
            await store.commit([record(version=number)], event(number).key)
            store.note_shown(record().id, number + 1, PLACE)
            store.note_answer(event(number).key, b"{}")
        assert await transactions(db) - before == 20


async def test_a_lease_costs_two_transactions_for_all_who_want_one_at_the_same_moment(postgres: Server) -> None:
    async def hold(name: str) -> None:
        async with store.lease(name):
            await asyncio.sleep(0.1)

    async with opened(postgres.url) as store, asking(postgres) as db:
        before = await transactions(db)
        await asyncio.gather(*(hold(f"{number}") for number in range(100)))
        await store._leases.put(lambda db: db.fetch("SELECT"))
        assert await transactions(db) - before <= 1 + 100, "given up one by one, as their blocks end"
        assert await transactions(db) - before >= 2


async def test_what_is_noted_is_written_soon_though_nothing_else_is(postgres: Server) -> None:
    async with opened(postgres.url) as store, asking(postgres) as db:
        await store.commit([record()], None)
        store.note_shown(record().id, 1, PLACE)
        store.move_cursor(at(7))

        async def is_written() -> bool:
            return await db.fetchval("SELECT (channel, seq)=($1, 7) FROM everclick.record, everclick.cursor", PLACE[0])

        await until(is_written)


async def test_two_that_cross_each_other_are_both_done(postgres: Server) -> None:
    """Each holds what the other wants: the server ends one of them, which is done after the other."""
    update = "UPDATE everclick.record SET model=model+1 WHERE bot=$1 AND key=$2"
    async with opened(postgres.url) as one, opened(postgres.url) as two:
        await one.commit([record("a"), record("b")], None)
        met = asyncio.Barrier(2)

        async def change(first: str, second: str, db: Any) -> None:
            await db.execute(update, BOT, first)
            with contextlib.suppress(asyncio.BrokenBarrierError):
                await met.wait()
            await met.abort()  # only the first time
            await db.execute(update, BOT, second)

        both = one._writer.put(lambda db: change("a", "b", db)), two._writer.put(lambda db: change("b", "a", db))
        assert await asyncio.gather(*both) == [None, None]
        assert [saved.model for saved in await one.find(Query("poll"))] == [3, 3]


async def test_the_same_new_record_from_two_processes_is_one(postgres: Server) -> None:
    async with opened(postgres.url) as one, opened(postgres.url) as two:
        for number in range(30):
            new = record(f"{number}")
            results = await asyncio.gather(one.commit([new], None), two.commit([new], None), return_exceptions=True)
            assert Counter(map(type, results)) == {type(None): 1, StateConflictError: 1}


# What is in the tables


async def test_of_what_is_over_little_is_left_and_after_a_day_nothing(postgres: Server) -> None:
    clock = Clock()
    async with opened(postgres.url, now=clock) as store, asking(postgres) as db:
        for number in range(20):
            new = record(f"k{number}", data=b'{"n":1}', place=PLACE, expires_at=clock() + 60)
            await accept(store, event(number, b"a secret"))
            async with store.lease(f"lease {number}") as lease:
                await store.commit([new], event(number).key, [Timer(event(number).key, clock(), b"x")], fences=[lease])
        assert await db.fetchval("SELECT max(length(body)) FROM everclick.inbox") == 0
        for number in range(20, 25):
            await accept(store, event(number, b'{"token":"a secret"}'))
            await store.fail(event(number, b'{"token":"a secret"}'), BROKEN)
        assert {row[0] for row in await db.fetch("SELECT body FROM everclick.failed")} == {b'{"token":""}'}
        await store.discard_failed([])
        for due in await store.fire([]):
            await store.commit([], due.key)
        clock.advance(2 * DAY)
        while await store.purge():
            pass
        await store._leases.put(lambda db: db.fetch("SELECT"))  # what was given up is by now
        tables = [row[0] for row in await db.fetch("SELECT tablename FROM pg_tables WHERE schemaname='everclick'")]
        left = [table for table in tables if await db.fetchval(f"SELECT count(*) FROM everclick.{table}")]
        assert sorted(left) == ["meta", "process"]


async def test_a_session_that_is_forgotten_leaves_a_gap(postgres: Server) -> None:
    clock = Clock()
    async with opened(postgres.url, now=clock) as store, asking(postgres) as db:
        since = clock()
        await accept(store, None, at(7))
        clock.advance(60)
        await store.forget(0, "it is gone")
        await store.forget(0, "there is nothing to forget")
        await accept(store, None, at(7))
        assert await store.cursor(0, "another") is None
        await accept(store, None, at(7))
        clock.advance(bot.SESSION_AGE_MAX_S + 1)
        assert await store.cursor(0, "f") is None
        rows = await db.fetch("SELECT bot, shard, since, until, why FROM everclick.gap ORDER BY id")
        assert tuple(rows[0]) == (BOT, 0, since, since + 60, "it is gone")
        assert [row["why"] for row in rows[1:]] == [
            "the token, the intents or the number of shards changed",
            "it is a month old",
        ]


@pytest.mark.parametrize("odd", ["a\0b", "\ud800"])
async def test_text_that_postgres_cannot_keep_harms_nothing_else(postgres: Server, odd: str) -> None:
    async with opened(postgres.url) as store:
        results = await asyncio.gather(
            accept(store, event(1), at(1)),
            accept(store, Event(EventKey(odd), b"")),
            store.commit([record(odd)], None),
            accept(store, event(2), at(2)),
            return_exceptions=True,
        )
        assert (results[0], results[3]) == (1, 1)
        assert all(isinstance(each, Exception) and not isinstance(each, StoreError) for each in results[1:3]), results
        await store.flush()
        assert await keys(store) == ["1", "2"]


async def test_a_key_too_long_for_an_index_harms_nothing_else(postgres: Server) -> None:
    import random

    key = "".join(random.choices("0123456789abcdef", k=20_000))
    async with opened(postgres.url) as store:
        with pytest.raises(asyncpg.PostgresError, match="index row"):
            await accept(store, Event(EventKey(key), b""))
        assert await accept(store, event(1), at(1)) == 1
        await store.flush()


# Connections


async def test_a_process_has_few_connections_and_leaves_none(postgres: Server) -> None:
    async with asking(postgres) as db:
        async with opened(postgres.url) as store:
            await store.commit([record(data=b'{"n":1}')], None)
            for _ in range(3):
                await asyncio.gather(*(store.load(record().id) for _ in range(200)))
                await asyncio.gather(*(accept(store, event(number)) for number in range(200)))
                async with store.lease("a"):
                    await store.find(Query("poll", by="n"))
            there = set(await connections(db, store))
            assert {"leases", "reader 2", "writer"} <= there
            assert len(there) <= 6
        await until(lambda: none_left(db, store))
        with pytest.raises(StoreError, match="is closed"):
            await store.load(record().id)


async def none_left(db: Any, store: PostgresStore) -> bool:
    return not await connections(db, store)


async def test_a_cancelled_read_leaves_the_others_working(postgres: Server) -> None:
    async with opened(postgres.url) as store:
        await store.commit([record()], None)
        for number in range(40):
            reads = [asyncio.create_task(store.load(record().id)) for _ in range(10)]
            await asyncio.sleep(number / 10_000)
            for read in reads[::2]:
                read.cancel()
            await asyncio.gather(*reads[::2], return_exceptions=True)
            assert all([await read for read in reads[1::2]])


async def test_who_waits_for_a_lease_asks_nothing_until_its_turn(postgres: Server) -> None:
    async with opened(postgres.url, lease_s=600.0) as store, asking(postgres) as db:

        async def hold() -> None:
            async with store.lease("a", wait_s=60):
                pass

        async def last_asked() -> Any:
            name = f"everclick {store.owner} leases"
            return await db.fetchval("SELECT state_change FROM pg_stat_activity WHERE application_name=$1", name)

        async with store.lease("a"):
            waiting = asyncio.gather(*(hold() for _ in range(20)))
            await asyncio.sleep(0.3)
            before = await last_asked()
            await asyncio.sleep(0.7)
            assert await last_asked() == before
        await waiting


async def test_a_process_that_hangs_in_a_transaction_holds_others_up_for_a_lease_only(postgres: Server) -> None:
    update = "UPDATE everclick.record SET model=9 WHERE bot=$1"
    async with opened(postgres.url, lease_s=LEASE_S) as hangs, opened(postgres.url, lease_s=LEASE_S) as other:
        await other.commit([record()], None)
        hanging = asyncio.Event()

        async def hang(db: Any) -> None:
            await db.execute(update, BOT)
            hanging.set()
            await asyncio.sleep(2.5 * LEASE_S)
            await db.execute(update, BOT)

        hung = hangs._writer.put(hang)
        await hanging.wait()
        await other.commit([record(version=1)], None)
        with pytest.raises(StoreError) as caught:
            await hung
        assert type(caught.value) is StoreError, "COMMIT was not sent"
        assert await accept(hangs, event(1)) == 1
        assert await other.load(record().id) == record(version=2, shown=1)


class Delay(Proxy):
    """Keeps back what clients say, until it is let through, whoever is still there."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.open = asyncio.Event()
        self.open.set()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_theirs = writer.get_extra_info("peername")[1] == self._target.port
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65_536):
                if is_theirs:
                    await self.open.wait()
                writer.write(data)
                await writer.drain()


async def test_a_call_that_arrives_after_its_process_gave_it_up_does_nothing(postgres: Server) -> None:
    delay = Delay(postgres.url)
    listening = await asyncio.start_server(delay._serve, "127.0.0.1", 0)
    url = postgres.url.replace(f":{delay._target.port}", f":{listening.sockets[0].getsockname()[1]}")
    async with opened(url, lease_s=LEASE_S) as store, opened(postgres.url) as other:
        await accept(store, event(1))
        delay.open.clear()
        with pytest.raises(CommitUnknownError, match="may or may not have the last transaction"):
            await store.commit([record(data=b"late")], None, [Timer(EventKey("timer:1"), 1.0, b"late")])
        store._link._url = postgres.url  # through another way to the server it goes on, and only then the call arrives
        assert await keys(store) == ["1"]
        delay.open.set()
        await asyncio.sleep(0.3)
        assert (await other.timers(), await other.load(record().id)) == ([], None)
    listening.close()
    delay.cut()


async def test_a_process_that_cannot_be_registered_is_tried_again(
    postgres: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(postgres.url, lease_s=LEASE_S) as store, asking(postgres) as db:
        sql = "SELECT until > clock_timestamp() FROM everclick.process WHERE id=$1"
        await db.execute("ALTER TABLE everclick.process RENAME TO elsewhere")
        await until(lambda: "could not be registered" in caplog.text)
        await db.execute("ALTER TABLE everclick.elsewhere RENAME TO process")
        await until(lambda: db.fetchval(sql, store.owner))


async def test_what_killed_processes_left_is_cleaned_up(postgres: Server) -> None:
    async with opened(postgres.url) as store, asking(postgres) as db:
        await db.execute("INSERT INTO everclick.process VALUES($1, 'gone', '-infinity')", BOT)
        await db.execute("INSERT INTO everclick.waiter(bot, name, owner, ask) VALUES($1, 'a', 'gone', 1)", BOT)
        sql = "INSERT INTO everclick.lease VALUES($1, 'b', 'gone', 2, 1, '-infinity', '-infinity')"
        await db.execute(sql, BOT)
        assert await store.claim_orphans() == []
        assert await is_zero(db, "SELECT count(*) FROM everclick.lease")
        assert await is_zero(db, "SELECT count(*) FROM everclick.waiter")
        assert await is_zero(db, "SELECT count(*) FROM everclick.process WHERE id='gone'")


# Many records


async def work_of(store: PostgresStore, db: Any, what: Callable[[], Awaitable[Any]]) -> int:
    """Return how many pages of the store's tables and indexes are looked at for it."""
    flush = "SELECT pg_stat_force_next_flush(), $1::bigint"
    sql = """
        SELECT sum(heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit) FROM pg_statio_user_tables
        WHERE schemaname='everclick'
    """

    async def total() -> int:
        await asyncio.gather(*(store._read(flush) for _ in range(3)), store._write(flush))
        await db.execute("SELECT pg_stat_clear_snapshot()")
        return int(await db.fetchval(sql))

    for _ in range(6):  # after that the server keeps its plans
        await what()
    before = await total()
    await what()
    return await total() - before


async def fill(db: Any, clock: Clock, count: int) -> None:
    """Add that many records, events that are done, events that wait at another process, and timers."""
    sql = """
        INSERT INTO everclick.record SELECT $1, 'poll', n % 50 || ':' || n, 1, 1, convert_to('{"n":' || n % 1000 || '}',
            'UTF8'), 1, n % 1000, n + 10, false, n % 1000, $2 FROM generate_series($3::int, $4::int) n
    """
    first = 1_000 + int(await db.fetchval("SELECT count(*) FROM everclick.record"))
    await db.execute(sql, BOT, clock() + DAY, first, first + count)
    sql = """
        INSERT INTO everclick.inbox(bot, key, body, accepted_at, runs, done_at, owner)
            SELECT $1, 'old:' || n, '', $2::float8, 1, CASE WHEN n % 2 = 0 THEN $2::float8 END, 'another'
            FROM generate_series($3::int, $4::int) n
    """
    await db.execute(sql, BOT, clock(), first, first + count)
    sql = "INSERT INTO everclick.timer SELECT $1, 'old:' || n, $2, '' FROM generate_series($3::int, $4::int) n"
    await db.execute(sql, BOT, clock() + DAY, first, first + count)
    await db.execute("INSERT INTO everclick.process VALUES($1, 'another', 'infinity') ON CONFLICT DO NOTHING", BOT)
    await db.execute("ANALYZE everclick.record, everclick.inbox, everclick.timer")  # which the server does by itself


async def costs(store: PostgresStore, db: Any) -> dict[str, int]:
    """Return what the operations cost that must cost no more when there is more."""
    numbers = iter(range(1_000_000))

    async def click() -> None:
        key = EventKey(f"click:{time.time()}")
        await accept(store, Event(key, b"{}"), at(next(numbers)))
        saved = await store.load(RecordId("poll", "7:hot")) or record("7:hot", place=PLACE)
        await store.commit([saved._replace(data=b'{"n":5000}')], key, [Timer(EventKey("t"), None)])

    async def lease() -> None:
        async with store.lease("a"):
            pass
        await store._leases.put(lambda db: db.fetch("SELECT pg_stat_force_next_flush()"))

    steps: dict[str, Callable[[], Awaitable[Any]]] = {
        "click": click,
        "lease": lease,
        "top of all": lambda: store.find(Query("poll", by="n", limit=3)),
        "top of some": lambda: store.find(Query("poll", prefix="7", by="n", limit=3)),
        "by key": lambda: store.find(Query("poll", prefix="7:hot")),
        "page": lambda: store.find(Query("poll", after="3", limit=3)),
        "by message": lambda: store.find(Query("poll", message=PLACE.message)),
        "behind": store.behind,
        "fire": lambda: store.fire(["poll", "other"]),
        "purge": lambda: store.purge(["poll"]),
        "claim": store.claim_orphans,
        "pending": store.pending,
        "messages gone": lambda: asyncio.wait_for(store.clean_up(Gone(channel=1, messages=(5, 6))), 60),
        "channel gone": lambda: asyncio.wait_for(store.clean_up(Gone(channel=5_000_000)), 60),
        "guild gone": lambda: asyncio.wait_for(store.clean_up(Gone(guild=5_000_000)), 60),
        "names": store.names,
    }
    return {name: await work_of(store, db, what) for name, what in steps.items()}


async def ranked(db: Any) -> bool:
    sql = "SELECT count(*) FROM pg_index WHERE indexrelid::regclass::text LIKE 'everclick.record_by_%' AND indisvalid"
    return await db.fetchval(sql) == 1


async def test_with_many_records_nothing_costs_more(postgres: Server, record_property: Any) -> None:
    clock = Clock()
    async with opened(postgres.url, now=clock, lease_s=600.0) as store, asking(postgres) as db:
        await fill(db, clock, 1_000)
        await costs(store, db)
        await until(lambda: ranked(db))
        few = await costs(store, db)
        await fill(db, clock, 30_000)
        many = await costs(store, db)
    both = {name: (few[name], many[name]) for name in few}
    record_property("totals", f"pages with 1,000 and with 31,000 records: {both}")
    # An index of 31,000 rows is two levels higher at most, and some of what is looked at is a new version of a row.
    assert many.pop("top of some") < 1_000, "all records under that prefix, or the highest ones of all prefixes"
    assert {name: cost for name, cost in many.items() if cost > 1.5 * few[name] + 10} == {}


async def test_a_leaderboard_follows_its_records(postgres: Server) -> None:
    async with opened(postgres.url) as store, asking(postgres) as db:

        async def top(prefix: str = "", **more: Any) -> list[str]:
            found = await store.find(Query("poll", prefix=prefix, by="it's", **more))
            return [each.id.key for each in found]

        values = {"1:a": "5", "1:b": "5", "1:c": "7.5", "1": "6", "1:d": '"text"', "10:a": "-1", "1:e": "null"}
        values |= {"9:1": "true", "9:2": "false", "8": "12345678901234567890", "8:1": "12345678901234567891"}
        for key, value in values.items():
            await store.commit([record(key, data=b'{"it\'s":%s}' % value.encode())], None)
        for number, data in enumerate((b"no json", b"[1]", b"\xff", b'{"it\'s":"\\u0000"}', b"[" * 9_000)):
            await store.commit([record(f"7:{number}", data=data)], None)
        for _ in range(2):  # the second time with the index
            assert await top("1") == ["1:c", "1", "1:a", "1:b", "1:d", "1:e"]
            assert await top("1", limit=2) == ["1:c", "1"]
            assert await top("8") == ["8:1", "8"]
            assert await top("9") == ["9:1", "9:2"]
            assert len(await top()) == 16
            await until(lambda: ranked(db))
        await store.commit([record("1:a", version=1, data=b'{"it\'s":9}'), record("1:c", version=1, data=b"{}")], None)
        await store.commit([record("1:b", version=1, data=b"")], None)
        assert await top("1") == ["1:a", "1", "1:d", "1:c", "1:e"]
        long = b'{"it\'s":"%s"}' % (b"long" * 100_000)
        await store.commit([record("6", data=long), record("6:1", data=b'{"it\'s":1%s}' % (b"0" * 5_000))], None)
        assert len(await top("6")) == 2


async def test_an_index_is_made_once_and_one_that_was_not_finished_anew(postgres: Server) -> None:
    async with opened(postgres.url) as one, opened(postgres.url) as two, asking(postgres) as db:
        await one.commit([record(data=b'{"n":1}')], None)
        for store in (one, two):
            await store.find(Query("poll", by="n"))
        await until(lambda: ranked(db))
        await db.execute("UPDATE pg_index SET indisvalid=false WHERE indexrelid::regclass::text LIKE '%record_by_%'")
    async with opened(postgres.url) as one, asking(postgres) as db:
        await one.find(Query("poll", by="n"))
        await until(lambda: ranked(db))


# The tables and their versions


async def test_many_that_start_at_once_on_an_empty_database_all_start(postgres: Server) -> None:
    async with contextlib.AsyncExitStack() as stack:
        bots = [bot.BotId(number) for number in range(8)]
        stores = await asyncio.gather(*(stack.enter_async_context(opened(postgres.url, bot=each)) for each in bots))
        assert await asyncio.gather(*(accept(store, event(1)) for store in stores)) == [1] * 8


async def test_older_tables_are_brought_up_in_place(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(postgres.url) as store:
        await accept(store, event(1))
        await store.commit([record()], None)
    steps = postgres_link.migrations()
    more = ["2\nALTER TABLE everclick.gap ADD COLUMN extra int", "3\nCREATE TABLE everclick.more(x int)"]
    monkeypatch.setattr(postgres_link, "migrations", lambda: [*steps, *more])
    async with opened(postgres.url) as store, asking(postgres) as db:
        assert [each.key for each in await store.claim_orphans()] == [event(1).key]
        assert await store.load(record().id)
        assert await db.fetchval("SELECT version FROM everclick.meta") == len(steps) + 2
        assert await db.fetch("SELECT extra, x FROM everclick.gap, everclick.more") == []


async def test_a_step_that_fails_changes_nothing(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(postgres.url) as store:
        await accept(store, event(1))
    steps = postgres_link.migrations()
    monkeypatch.setattr(postgres_link, "migrations", lambda: [*steps, "2\nDROP TABLE everclick.inbox; no sql at all"])
    assert (await refusal(postgres.url)).endswith(' (syntax error at or near "no"). See its log.')
    monkeypatch.undo()
    async with opened(postgres.url) as store:
        assert len(await store.claim_orphans()) == 1


async def test_tables_of_a_newer_bot_are_refused_and_unchanged(postgres: Server) -> None:
    async with opened(postgres.url):
        pass
    async with asking(postgres) as db:
        await db.execute("UPDATE everclick.meta SET version=99")
        assert await refusal(postgres.url) == (
            f"{place_of(postgres)} was written by a newer bot (tables of version 99, this one knows"
            f" {len(postgres_link.migrations())}). Use that one, or set STORE to another database."
        )
        assert await db.fetchval("SELECT version FROM everclick.meta") == 99


# What is refused


def place_of(server: Server) -> str:
    return server.url.replace("postgres:a-secret@", "")


async def refusal(url: str, kind: type[OperatorError] = OperatorError, **settings: Any) -> str:
    """Return why a store is not opened."""
    with pytest.raises(kind) as caught:
        async with opened(url, **settings):
            pass
    assert type(caught.value) is kind
    return str(caught.value)


async def test_a_server_that_is_not_there_is_an_outage() -> None:
    place = f"postgresql://127.0.0.1:{free_port()}/bots"
    told = await refusal(place.replace("://", "://someone:a-secret@"), OutageError)
    assert told.startswith(f"{place} cannot be reached (")
    assert told.endswith("). See that it runs and that STORE has its address.")


SECRET = "s3cr3t/w0rd#1?x@y%"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://user:{SECRET}@127.0.0.1:1/bots",
        f"postgresql://user@127.0.0.1:1/bots?password={SECRET}",
        f"postgresql://127.0.0.1:{SECRET}/bots",
        f"postgresql://{SECRET}:{SECRET}@127.0.0.1:1/{SECRET}",
        f"postgresql://127.0.0.1:1/bots?sslmode={SECRET}",
        f"postgres://{SECRET}",
        f"postgresql://user:{urllib.parse.quote(SECRET, safe='')}@127.0.0.1:1/bots",
        f"postgresql:{SECRET}",
    ],
)
async def test_whatever_is_wrong_with_a_url_its_password_is_not_shown(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(OperatorError) as caught:
        async with opened(url, lease_s=1.0):
            pass
    told = "".join([str(caught.value), repr(caught.value.__cause__), caplog.text])
    for part in ("s3cr3t", "w0rd"):
        LEAKS.secrets.add(part)
        assert part not in told
    assert str(caught.value)


async def test_a_url_that_is_none_is_refused_with_its_form() -> None:
    assert await refusal("postgresql://127.0.0.1:port/bots") == (
        "STORE is no address of a PostgreSQL server. Write postgresql://user:password@host:5432/database,"
        " with what is special in the password as %40, say."
    )


async def test_a_wrong_password_and_a_database_that_is_not_there_are_told_apart() -> None:
    LEAKS.secrets.add("open-sesame")
    with serving() as server:
        async with asking(server) as db:
            await db.execute("CREATE ROLE guest LOGIN PASSWORD 'open-sesame'")
            hba = await db.fetchval("SHOW hba_file")
        Path(hba).write_text("host all guest 127.0.0.1/32 scram-sha-256\nhost all postgres 127.0.0.1/32 trust\n")
        server.stop()
        server.start()
        guest = server.url.replace("postgres:a-secret@", "guest:open-sesame-not@")
        told = await refusal(guest)
        assert told.startswith(f"{place_of(server)} refuses this user (password authentication failed")
        assert told.endswith("). Set user and password in STORE.")
        told = await refusal(server.url.removesuffix("postgres") + "nowhere")
        assert told.startswith(f"{place_of(server).removesuffix('postgres')}nowhere has no such database (")
        told = await refusal(guest.replace("-not", ""))
        assert told.startswith(f"{place_of(server)} does not let this user do that (permission denied")
        assert told.endswith("). Give it the right to create a schema there.")
        async with asking(server) as db:
            await db.execute("CREATE SCHEMA everclick AUTHORIZATION guest")
        async with opened(guest.replace("-not", "")) as store:
            assert await accept(store, event(1)) == 1


async def test_a_database_that_takes_no_writes_or_keeps_text_otherwise_is_refused(ours: Server) -> None:
    async with asking(ours) as db:
        for name, more in (("standby", ""), ("ascii", "ENCODING 'SQL_ASCII' TEMPLATE template0")):
            await db.execute(f"CREATE DATABASE {name} {more}")
        await db.execute("ALTER DATABASE standby SET default_transaction_read_only=on")
        try:
            told = await refusal(ours.url.removesuffix("postgres") + "standby")
            assert "does not take what was written (cannot execute" in told
            assert told.endswith("). Name the primary in STORE, not a standby.")
            told = await refusal(ours.url.removesuffix("postgres") + "ascii")
            assert told.endswith(" keeps text as SQL_ASCII. Make a database with ENCODING 'UTF8'.")
        finally:
            for name in ("standby", "ascii"):
                await db.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def test_a_server_with_no_connection_left_is_an_outage_and_nothing_stays_behind(ours: Server) -> None:
    async with asking(ours) as db:
        await db.execute("DROP ROLE IF EXISTS few; CREATE ROLE few LOGIN SUPERUSER CONNECTION LIMIT 2")
        few = ours.url.replace("postgres:a-secret@", "few@")
        try:
            async with opened(ours.url):
                pass
            await db.execute("ALTER ROLE few NOSUPERUSER")
            await db.execute("GRANT ALL ON SCHEMA everclick TO few")
            for kind in ("TABLES", "SEQUENCES", "FUNCTIONS"):
                await db.execute(f"GRANT ALL ON ALL {kind} IN SCHEMA everclick TO few")
            async with opened(few, lease_s=2.0) as store:
                assert await accept(store, event(0)) == 1  # now it has two
                told = await refusal(few, OutageError, lease_s=1.0)
                assert "has no connection left (too many connections" in told
                assert told.endswith("). Raise its max_connections, or end what else uses it.")
                assert await accept(store, event(1)) == 1
            sql = "SELECT count(*) FROM pg_stat_activity WHERE usename='few'"
            await until(lambda: is_zero(db, sql))
        finally:
            await db.execute("DROP OWNED BY few; DROP ROLE few")


async def is_zero(db: Any, sql: str) -> bool:
    return not await db.fetchval(sql)


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
async def test_a_setting_that_loses_what_was_accepted_is_warned_of(
    setting: str, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(f"{setting}=off") as server:
        async with opened(server.url) as store:
            assert await accept(store, event(1)) == 1
        assert caplog.messages == [
            f"{place_of(server)} has {setting}=off: a power cut may lose what was accepted. Set it to on."
        ]


async def test_a_server_that_becomes_read_only_refuses_and_is_used_again_when_it_takes_writes(ours: Server) -> None:
    async with opened(ours.url, lease_s=LEASE_S) as store, asking(ours) as db:
        await accept(store, event(1), at(1))
        try:
            await db.execute("ALTER SYSTEM SET default_transaction_read_only=on")
            await db.execute("SELECT pg_reload_conf()")
            with contextlib.suppress(StoreError):
                await accept(store, event("while it is told"))
            await asyncio.sleep(0.3)
            with pytest.raises(StoreError, match="does not take what was written") as caught:
                await accept(store, event(2))
            assert type(caught.value) is StoreError
        finally:
            await db.execute("SET default_transaction_read_only=off")
            await db.execute("ALTER SYSTEM RESET default_transaction_read_only")
            await db.execute("SELECT pg_reload_conf()")
        await until(lambda: takes_writes(store))
        assert {"1", "again"} <= {*await keys(store)}


async def takes_writes(store: PostgresStore) -> bool:
    with contextlib.suppress(StoreError):
        return bool(await accept(store, event("again")) + 1)
    return False


async def test_two_bots_have_their_own_in_one_database(postgres: Server) -> None:
    async with opened(postgres.url) as mine, opened(postgres.url, bot=OTHER_BOT) as other:
        await asyncio.gather(*(accept(store, event(number)) for number in range(50) for store in (mine, other)))
        await mine.close()
        assert await other.claim_orphans() == []
        assert len(await other.pending()) == 50
