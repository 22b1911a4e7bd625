"""The store over a long time: its log stays small, what is old goes in small steps, and the clock may jump."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sqlite3
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot import DAY, BotId, SQLiteStore, bot_id_of
from playground import Discord
from tests.contract import BOT, BROKEN, Clock, accept, at, event, keys, purge_all, record
from tests.kit import rows, start, until

MIB = 1 << 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bot.db"


@contextlib.asynccontextmanager
async def opened(
    path: Path, *, bot: BotId = BOT, visit: bool = False, clock: Clock | None = None
) -> AsyncIterator[SQLiteStore]:
    store = SQLiteStore(str(path), bot, now=clock or time.time)
    await store.open(visit=visit)
    try:
        yield store
    finally:
        await store.close()


# The log


class Load:
    """Clicks without end on many records, each accepted, loaded and saved; and the size of the log meanwhile."""

    def __init__(self, store: SQLiteStore) -> None:
        self.store, self.log = store, Path(f"{store.path}-wal")
        self.number, self.peak = 0, 0

    async def click(self, times: int, people: int = 50) -> None:
        await asyncio.gather(*(self._keep_clicking(times // people) for _ in range(people)))

    async def _keep_clicking(self, times: int) -> None:
        key = f"k{self.number}"
        for _ in range(times):
            self.number += 1
            number = self.number
            await self.store.accept(event(number, b"x" * 800), at(number))
            saved = await self.store.load(record(key).id) or record(key)
            await self.store.commit([saved._replace(data=b"x" * 300)], event(number).key)
            self.peak = max(self.peak, self.log.stat().st_size)


LOG_MAX = 16 * MIB  # 20,000 writes are some 100 MiB of log


async def test_the_log_stays_small_under_20000_writes_beside_backups_and_the_failed_list(path: Path) -> None:
    async with opened(path) as store:
        await accept(store, event("broken"))
        await store.fail(event("broken"), BROKEN)
        load, visits = Load(store), 0

        async def keep_visiting() -> None:
            nonlocal visits
            while load.number < 9_000:
                async with opened(path, visit=True) as visitor:
                    await visitor.backup(path.with_name("copy.db"))
                    path.with_name("copy.db").unlink()
                    assert len(await visitor.failed()) == 1
                visits += 1

        await asyncio.gather(load.click(10_000), keep_visiting())
        print(f"20,000 writes beside {visits} backups and lists: the log had at most {load.peak / MIB:.1f} MiB")
        assert visits > 5
        assert load.peak < LOG_MAX


async def test_a_reader_that_is_stuck_lets_the_log_grow_until_it_leaves_and_no_longer(path: Path) -> None:
    async with opened(path) as store:
        load = Load(store)
        await load.click(500)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as tool:
            tool.execute("BEGIN")
            tool.execute("SELECT count(*) FROM inbox").fetchone()
            await load.click(3_000)
            held = load.log.stat().st_size
        await load.click(1_000)
        left = load.log.stat().st_size
        print(f"the log: {held / MIB:.1f} MiB while a reader is stuck, {left / MIB:.1f} MiB when it has left")
        assert held > LOG_MAX
        assert left < LOG_MAX
        assert rows(path, "SELECT count(*) FROM inbox") == [(4_500,)]


# What is old


OLD = 20_000
STEP_MAX = 1_000  # rows of both kinds
STEPS = 2 * OLD // STEP_MAX + 1  # a row that is not old is in the way


async def filled(path: Path, bot: BotId = BOT) -> None:
    """Make a database with many keys that are long done and many records that have expired, and a few that are not."""
    async with opened(path, bot=bot) as store:
        await accept(store, event("waits"))
        await store.commit([record("lives")], None)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        numbers = f"WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {OLD})"
        db.execute(
            f"INSERT INTO inbox(bot, key, body, accepted_at, runs, done_at) {numbers} "
            "SELECT ?, 'old:' || n, x'', 1, 1, 1 FROM n",
            (bot,),
        )
        db.execute(
            f"INSERT INTO record {numbers} SELECT ?, 'poll', 'old' || n, 1, 1, x'7B7D', 1, 7, n, 0, 1, NULL FROM n",
            (bot,),
        )


async def test_20000_old_rows_are_purged_in_small_steps_and_clicks_get_in_between(path: Path) -> None:
    await filled(path)
    async with opened(path) as store:
        order: list[str] = []

        async def keep_clicking(name: str) -> None:
            for number in range(1_000):
                if order.count("step") >= STEPS - 1:
                    return
                await accept(store, event(f"{name}-{number}"))
                await store.commit([record(name, version=number)], event(f"{name}-{number}").key)
                order.append("click")

        async def keep_purging() -> None:
            while step := await store.purge():
                assert step <= STEP_MAX
                order.append("step")

        await asyncio.gather(keep_purging(), *(keep_clicking(f"p{number}") for number in range(4)))
        between = sum(pair == ("step", "click") for pair in itertools.pairwise(order))
        print(f"{order.count('step')} steps, clicks after {between} of them")
        assert order.count("step") <= STEPS
        assert between > order.count("step") / 4
        assert await keys(store) == ["waits"]
        assert await store.load(record("lives").id)
    assert rows(path, "SELECT count(*) FROM inbox WHERE key LIKE 'old:%'") == [(0,)]
    assert rows(path, "SELECT count(*) FROM record WHERE key LIKE 'old%'") == [(0,)]


async def test_a_running_bot_gets_rid_of_20000_old_rows_and_answers_meanwhile(path: Path) -> None:
    async with Discord() as discord:
        await filled(path, bot_id_of(discord.token))
        await start(discord, "counter", path)
        old = (
            "SELECT (SELECT count(*) FROM inbox WHERE key LIKE 'old:%')"
            " + (SELECT count(*) FROM record WHERE key LIKE 'old%')"
        )
        assert (await discord.user("alice").command("post")).state == "answered"
        assert (await discord.user("alice").click("0")).state == "answered"
        await until(lambda: rows(path, old) == [(0,)], 60)


async def test_a_step_of_the_purge_is_no_more_work_when_there_is_more_to_purge(path: Path) -> None:
    await filled(path)
    async with opened(path) as store:
        work = await counted(store)
        while await store.purge():
            work.append(0)
    print(f"instructions of SQLite in a step, in hundreds: {work}")
    assert len(work) == STEPS + 1
    assert max(work) < 2 * min(work[:-2])


async def test_a_failure_does_not_sort_the_failed_list(path: Path) -> None:
    async with opened(path) as store:
        await accept(store, event(1))
        with contextlib.closing(sqlite3.connect(path)) as db, db:
            numbers = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 10000)"
            db.execute(f"INSERT INTO failed {numbers} SELECT n, ?, 'old' || n, x'', 1, 1, '', '', '', 0 FROM n", (BOT,))
        work = await counted(store)
        await store.fail(event(1), BROKEN)
        print(f"instructions of SQLite for a failure, in hundreds: {work}")
        assert work[-1] < 1_000
        assert len(await store.failed()) == 10_000


async def counted(store: SQLiteStore) -> list[int]:
    """Return a list whose last number counts SQLite's instructions, in hundreds."""
    work = [0]

    def count() -> int:
        work[-1] += 1
        return 0

    await store._db.set_progress_handler(count, 100)
    return work


# A clock that jumps


async def test_a_clock_that_jumps_ahead_and_back_loses_no_event_and_keeps_what_has_no_ttl(path: Path) -> None:
    clock = Clock()
    async with opened(path, clock=clock) as store:
        await accept(store, event("waits"), at(1))
        await store.commit([record("for ever"), record("a day", expires_at=clock() + DAY)], None)
        for number, jump in enumerate((400 * DAY, -800 * DAY, 400 * DAY)):
            clock.advance(jump)
            await accept(store, event(number), at(2 + number))
            await store.commit([record(f"{number}", expires_at=clock() + DAY)], event(number).key)
            assert await accept(store, event(number)) == 0, "its copy is known"
            assert await store.load(record(f"{number}").id), "what lives a day from now lives"
            assert await accept(store, event("waits")) == 0
        await purge_all(store)
        assert await keys(store) == ["waits"]
        assert await store.load(record("for ever").id)


async def test_what_a_wrong_clock_left_does_not_keep_what_is_old_from_being_purged(path: Path) -> None:
    clock = Clock()
    async with opened(path, clock=clock) as store:
        clock.advance(400 * DAY)
        await asyncio.gather(*(store.accept(event(f"ahead{number}"), None) for number in range(600)))
        await asyncio.gather(*(store.commit([], event(f"ahead{number}").key) for number in range(600)))
        clock.advance(-400 * DAY)
        await accept(store, event("now"))
        await store.commit([], event("now").key)
        await purge_all(store)
        assert await accept(store, event("now")) == 0
        clock.advance(2 * DAY)
        await purge_all(store)
        assert rows(path, "SELECT count(*) FROM inbox") == [(0,)]


async def test_a_session_is_resumed_when_the_clock_jumped_back(path: Path) -> None:
    clock = Clock()
    async with opened(path, clock=clock) as store:
        await accept(store, event(1), at(1))
        clock.advance(-400 * DAY)
        await accept(store, event(2), at(2))
    async with opened(path, clock=clock) as store:
        assert await store.cursor(0, "f") == at(2)


async def test_a_session_that_looks_a_month_old_because_the_clock_jumped_ahead_is_let_go_and_the_gap_recorded(
    path: Path,
) -> None:
    clock = Clock()
    async with opened(path, clock=clock) as store:
        await accept(store, event(1), at(1))
        clock.advance(400 * DAY)
        await accept(store, event(2), at(2))
        last = clock()
        clock.advance(60)
    async with opened(path, clock=clock) as store:
        assert await store.cursor(0, "f") is None
        assert rows(path, "SELECT since, until, why FROM gap") == [(last, last + 60, "it is a month old")]
        assert await keys(store) == ["1", "2"]
