"""The store in SQLite: the contract of every store, and what only a file on a disk can do."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiosqlite
import pytest
from kit import ROOT, grow, rows, until

import bot
from bot import BotId, CommitUnknownError, MemoryStore, OperatorError, SQLiteStore, StoreError

pytest.register_assert_rewrite("contract")
from contract import (  # noqa: E402
    BOT,
    BROKEN,
    OTHER_BOT,
    PLACE,
    Clock,
    OpenStore,
    StoreContract,
    accept,
    at,
    event,
    opener,
    record,
)

PROCESS = ROOT / "tests" / "store_process.py"
NOBODY = 65534

on_posix = pytest.mark.skipif(os.name != "posix", reason="processes are forked and killed as POSIX does it")


class TestSQLiteStore(StoreContract):
    @pytest.fixture
    async def open_store(self, clock: Clock, path: Path) -> AsyncIterator[OpenStore]:
        async with opener(lambda bot, most: SQLiteStore(str(path), bot, max_failed=most, now=clock)) as open_store:
            yield open_store


class TestMemoryStore(StoreContract):
    ends_with_process = True

    @pytest.fixture
    async def open_store(self, clock: Clock) -> AsyncIterator[OpenStore]:
        async with opener(lambda bot, most: MemoryStore(bot, max_failed=most, now=clock)) as open_store:
            yield open_store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bot.db"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@contextlib.asynccontextmanager
async def opened(path: Path, bot: BotId = BOT, **more: Any) -> AsyncIterator[SQLiteStore]:
    store = SQLiteStore(str(path), bot, **more)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def refusal(path: Path) -> str:
    """Return why a store is not opened, and see that nothing is left of the attempt: no thread and no lock."""
    threads, store = {*threading.enumerate()}, SQLiteStore(str(path), BOT)
    try:
        with pytest.raises(OperatorError) as caught:
            await store.open()
    except BaseException:
        await store.close()  # it opened: its threads would keep pytest from ending
        raise
    for thread in {*threading.enumerate()} - threads:
        thread.join(5)
        assert not thread.is_alive()
    lock = path.with_name(f"{path.resolve().name}.{BOT}.lock")
    if "is in use" not in str(caught.value):
        with contextlib.suppress(FileNotFoundError, PermissionError), lock.open("rb+") as file:
            bot.claim_lock(file.fileno())
    return str(caught.value)


async def filled(path: Path) -> None:
    """Make a database with a few rows in every table that matters."""
    async with opened(path) as store:
        await accept(store, event(1), at(7))
        await accept(store, event(2))
        await store.commit([record(data=b"state")], event(1).key)


@contextlib.contextmanager
def process(what: str, path: Path | str, cwd: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """Run tests/store_process.py and kill it at the end."""
    with subprocess.Popen(
        [sys.executable, PROCESS, what, path],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def said(running: subprocess.Popen[str]) -> str:
    """Return the next line of the process."""
    assert running.stdout
    return running.stdout.readline().rstrip("\n")


# Durable, and in few transactions


async def test_it_really_writes_ahead_and_syncs_every_transaction(path: Path) -> None:
    async with opened(path) as store:
        for pragma, value in {"journal_mode": "wal", "synchronous": 2, "busy_timeout": 5000}.items():
            [(found,)] = await store._db.execute_fetchall(f"PRAGMA {pragma}")
            assert (pragma, found) == (pragma, value)
        assert path.with_name("bot.db-wal").stat().st_size


async def commits(store: SQLiteStore) -> list[str]:
    """Return the list to which every COMMIT of the store's writer will be added."""
    seen: list[str] = []
    await store._db.set_trace_callback(lambda sql: seen.append(sql) if sql == "COMMIT" else None)
    return seen


async def test_what_waits_at_the_same_moment_shares_a_transaction(path: Path) -> None:
    async with opened(path) as store:
        seen = await commits(store)
        await asyncio.gather(*(store.accept(event(number), None) for number in range(100)))
        assert len(seen) == 1
        await asyncio.gather(*(store.accept(event(number), None) for number in range(100, 700)))
        assert len(seen) == 1 + 3, "at most 256 operations each"
        assert len(await store.pending()) == 700


async def test_many_clients_take_far_fewer_transactions_than_writes(path: Path) -> None:
    async with opened(path) as store:
        seen = await commits(store)

        async def client(number: int) -> None:
            for step in range(10):
                await store.accept(event(f"{number}-{step}"), None)
                await store.commit([record(f"{number}-{step}")], event(f"{number}-{step}").key)

        await asyncio.gather(*(client(number) for number in range(100)))
        assert len(seen) <= 2_000 / 20
        assert rows(path, "SELECT count(*) FROM inbox WHERE done_at IS NOT NULL") == [(1_000,)]


async def test_a_lone_click_costs_two_transactions_with_all_that_is_noted_on_the_way(path: Path) -> None:
    async with opened(path) as store:
        seen = await commits(store)
        for number in range(10):
            store.move_cursor(at(2 * number))
            await store.accept(event(number), at(2 * number + 1))
            await store.commit([record(version=number)], event(number).key)
            store.note_shown(record().id, number + 1, PLACE)
        assert len(seen) == 20


async def test_a_noted_cursor_is_not_on_disk_before_the_events_it_came_after(path: Path) -> None:
    steps: list[str] = []
    async with opened(path) as store:
        await store._db.set_trace_callback(lambda sql: steps.append(sql.split("(")[0]))
        waiting = [store.accept(event(number), None) for number in range(600)]
        store.move_cursor(at(700))
        await asyncio.gather(*waiting)
        await store.flush()
    last = len(steps) - 1 - steps[::-1].index("INSERT INTO inbox")
    assert steps.index("INSERT INTO cursor VALUES") > max(
        number for number, step in enumerate(steps[:last]) if step == "COMMIT"
    )


async def test_what_is_noted_is_written_soon_though_nothing_else_is(path: Path) -> None:
    async with opened(path) as store:
        await store.commit([record()], None)
        store.note_shown(record().id, 1, PLACE)
        store.move_cursor(at(7))
        await until(lambda: rows(path, "SELECT seq, channel FROM cursor, record") == [(7, PLACE.channel)])


async def test_how_much_group_commit_brings_is_printed(path: Path) -> None:
    async with opened(path) as store:
        begun = time.perf_counter()
        for number in range(300):
            await store.accept(event(number), None)
        alone = 300 / (time.perf_counter() - begun)

        async def client(number: int) -> None:
            for step in range(30):
                await store.accept(event(f"{number}-{step}"), None)

        begun = time.perf_counter()
        await asyncio.gather(*(client(number) for number in range(100)))
        together = 3_000 / (time.perf_counter() - begun)
    print(f"accepts per second: {alone:.0f} one by one, {together:.0f} by 100 clients, ratio {together / alone:.1f}")


# What is in the file


async def test_of_what_is_done_the_key_stays_and_the_body_goes(path: Path) -> None:
    body = b'{"id":"1","token":"secret"}'
    async with opened(path) as store:
        for number in (1, 2, 3):
            await accept(store, event(number, body))
        await store.commit([], event(1).key)
        await store.fail(event(2, body), BROKEN)
    assert rows(path, "SELECT key, body FROM inbox ORDER BY id") == [
        ("interaction:1", b""),
        ("interaction:2", b""),
        ("interaction:3", body),
    ]
    assert rows(path, "SELECT key, body FROM failed") == [("interaction:2", b'{"id":"1","token":""}')]


GAPS = "SELECT bot, shard, since, until, why FROM gap"


async def test_forgetting_a_session_records_the_gap(path: Path, clock: Clock) -> None:
    async with opened(path, now=clock) as store:
        await accept(store, None, at(7))
        since = clock()
        clock.advance(60)
        await store.forget(0, "Discord says that it is gone")
        await store.forget(0, "there is nothing to forget")
    assert rows(path, GAPS) == [(BOT, 0, since, clock(), "Discord says that it is gone")]


async def test_a_changed_fingerprint_records_the_gap(path: Path, clock: Clock) -> None:
    async with opened(path, now=clock) as store:
        await accept(store, None, at(7))
        assert await store.cursor(0, "another") is None
    [(_, shard, _, _, why)] = rows(path, GAPS)
    assert (shard, why) == (0, "the token, the intents or the number of shards changed")


async def test_a_very_old_session_is_forgotten_and_records_the_gap(path: Path, clock: Clock) -> None:
    async with opened(path, now=clock) as store:
        await accept(store, None, at(7))
        clock.advance(bot.SESSION_AGE_MAX_S - 1)
        await accept(store, None, at(8))
        assert await store.cursor(0, "f") == at(8)
        clock.advance(2)
        assert await store.cursor(0, "f") is None
        await accept(store, None, at(1, "session-b"))
        assert await store.cursor(0, "f") == at(1, "session-b")
    assert len(rows(path, GAPS)) == 1


async def test_two_bots_use_one_file_at_the_same_time(path: Path) -> None:
    async with opened(path) as mine, opened(path, OTHER_BOT) as other:
        await asyncio.gather(*(accept(store, event(number)) for number in range(50) for store in (mine, other)))
        await mine.commit([record()], event(1).key)
        assert [len(await store.pending()) for store in (mine, other)] == [49, 50]
        assert await other.load(record().id) is None


# The schema


async def test_an_older_database_is_brought_up_in_place(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await filled(path)
    monkeypatch.setattr(
        bot, "MIGRATIONS", (*bot.MIGRATIONS, "ALTER TABLE gap ADD COLUMN extra", "CREATE TABLE more(x)")
    )
    async with opened(path) as store:
        assert [each.key for each in await store.pending()] == [event(2).key]
        assert await store.load(record().id) == record(version=1, data=b"state", shown=1)
    assert rows(path, "PRAGMA user_version") == [(len(bot.MIGRATIONS),)]
    assert rows(path, "SELECT extra, x FROM gap, more") == []


async def test_a_migration_that_fails_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await filled(path)
    before = rows(path, "SELECT sql FROM sqlite_master"), rows(path, "PRAGMA user_version")
    monkeypatch.setattr(bot, "MIGRATIONS", (*bot.MIGRATIONS, "CREATE TABLE more(x); DROP TABLE inbox; no sql at all"))
    assert "bot.db cannot be used (near" in await refusal(path)
    assert (rows(path, "SELECT sql FROM sqlite_master"), rows(path, "PRAGMA user_version")) == before
    monkeypatch.undo()
    async with opened(path) as store:
        assert len(await store.pending()) == 1


async def test_a_database_of_a_newer_bot_is_refused_and_unchanged(path: Path) -> None:
    await filled(path)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version=99")
    before = path.read_bytes()
    assert await refusal(path) == (
        f"{path} was written by a newer bot.py (tables of version 99, this one knows {len(bot.MIGRATIONS)})."
        " Use that bot.py, or set STORE to another file."
    )
    assert path.read_bytes() == before


@pytest.mark.parametrize("journal_mode", ["DELETE", "WAL"])
async def test_another_programs_database_is_refused_and_unchanged(path: Path, journal_mode: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(f"PRAGMA journal_mode={journal_mode}; CREATE TABLE song(name); INSERT INTO song VALUES('la')")
    before = path.read_bytes()
    assert await refusal(path) == (f"{path} is the database of another program. Set STORE to a file of the bot's own.")
    assert path.read_bytes() == before


async def test_an_empty_file_becomes_a_database(path: Path) -> None:
    path.touch(0o600)
    await filled(path)
    await filled(path.with_name("new.db"))


# Damage


DAMAGED = "Restore a backup, or set STORE to another file."


@pytest.mark.parametrize("content", [b"hello, I am a text file\n" * 500, b"SQLite format 4\0" * 500, b"\0" * 8192])
async def test_a_file_that_is_no_database_is_refused_and_unchanged(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    told = await refusal(path)
    assert told.startswith(f"{path} is ")
    assert told.endswith(DAMAGED)
    assert path.read_bytes() == content


def page_of(path: Path, table: str) -> int:
    """Return the number of the table's first page."""
    return rows(path, "SELECT rootpage FROM sqlite_master WHERE name=?", table)[0][0]


def damage(path: Path, page: int) -> None:
    """Overwrite a page, except the file's header."""
    with path.open("rb+") as file:
        file.seek(max((page - 1) * 4096, 100))
        file.write(b"\xfe" * 3_996)


@pytest.mark.parametrize("table", ["sqlite_master", "meta"])
async def test_a_damaged_database_is_refused(path: Path, table: str) -> None:
    await filled(path)
    damage(path, 1 if table == "sqlite_master" else page_of(path, table))
    told = await refusal(path)
    assert told.startswith(f"{path} is damaged or no database (")
    assert told.endswith(DAMAGED)


@pytest.mark.parametrize("use", ["accept", "commit", "pending", "load"])
async def test_damage_that_shows_later_is_told_as_what_it_is(path: Path, use: str) -> None:
    await filled(path)
    damage(path, page_of(path, "inbox" if use in ("accept", "pending") else "record"))
    async with opened(path) as store:
        with pytest.raises(StoreError, match=r"bot\.db is damaged or no database \(.*\)\. Restore a"):
            await {
                "accept": lambda: accept(store, event(3)),
                "commit": lambda: store.commit([record("new")], None),
                "pending": store.pending,
                "load": lambda: store.load(record().id),
            }[use]()


# One owner


@on_posix
async def test_a_second_process_is_refused_with_the_first_ones_pid(path: Path) -> None:
    (path.parent / "link.db").symlink_to(path)
    with process("hold", path) as first:
        assert said(first) == "open"
        in_use = f"is in use by process {first.pid}. Stop it, or set STORE to another file."
        with process("hold", path) as second, process("hold", "bot.db", cwd=path.parent) as third:
            assert said(second) == f"{path} {in_use}"
            assert said(third) == f"bot.db {in_use}"
        assert await refusal(path) == f"{path} {in_use}"
        link = path.parent / "link.db"
        assert await refusal(link) == f"{link} {in_use}"
        async with opened(path, OTHER_BOT):
            pass  # another bot may use the same file


@on_posix
async def test_the_lock_ends_with_the_process_however_it_dies(path: Path) -> None:
    with process("hold", path) as first, process("hold", path) as second:
        lines = [said(first), said(second)]
        holder = (first, second)[lines.index("open")]
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        async with opened(path) as store:
            assert await accept(store, event(1)) == 1


async def test_a_second_store_in_one_process_is_refused_until_the_first_is_closed(path: Path) -> None:
    async with opened(path):
        assert f"is in use by process {os.getpid()}." in await refusal(path)
    async with opened(path):
        pass


@on_posix
async def test_a_forked_child_does_not_keep_the_lock(path: Path) -> None:
    with process("fork", path) as parent:
        lines = {said(parent), said(parent)}
        assert "open" in lines
        [child] = (int(line) for line in lines - {"open"})
        try:
            assert f"process {parent.pid}" in await refusal(path)
            parent.kill()
            parent.wait()
            os.kill(child, 0)
            async with opened(path):
                pass
        finally:
            os.kill(child, signal.SIGKILL)


@on_posix
def test_kill_9_at_any_moment_loses_nothing_accepted_and_counts_nothing_twice(path: Path) -> None:
    chance, lines = random.Random(2), list[str]()
    with process("count", path) as counting:
        assert counting.stdin
        for _ in range(20):
            counting.stdin.write("one more\n")
            counting.stdin.flush()
            child = int(said(counting))
            lines += [said(counting) for _ in range(chance.randrange(5, 60))]
            os.kill(child, signal.SIGKILL)
            lines += itertools.takewhile(lambda line: line != "dead", iter(lambda: said(counting), ""))
    told = {(word, key) for word, _, key in (line.partition(" ") for line in lines)}
    inbox = dict(rows(path, "SELECT key, done_at IS NOT NULL FROM inbox"))
    assert len(told) > 200
    assert {key for _, key in told} <= {*inbox}, "what was accepted is there"
    assert all(inbox[key] for word, key in told if word == "done"), "what was done is done"
    done = Counter(key[0] for key, is_done in inbox.items() if is_done)
    assert dict(rows(path, "SELECT key, CAST(CAST(data AS TEXT) AS INTEGER) FROM record")) == done
    assert dict(rows(path, "SELECT key, version FROM record")) == done
    accepted = Counter(int(key[0]) for key in inbox)
    assert dict(rows(path, "SELECT shard, seq FROM cursor")) == accepted, "event and cursor are one transaction"


# Who may read it, and where it lies


@on_posix
async def test_all_its_files_are_for_this_user_alone(path: Path) -> None:
    before = os.umask(0)
    try:
        async with opened(path) as store:
            await accept(store, event(1))
            modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("bot.db", "bot.db-wal", "bot.db-shm", f"bot.db.{BOT}.lock"), 0o600)


@on_posix
async def test_a_database_that_others_can_read_is_warned_of(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    await filled(path)
    assert not caplog.messages
    path.chmod(0o644)
    await filled(path.with_name("other.db"))
    async with opened(path):
        pass
    assert caplog.messages == [f"{path} can be read by other users of this machine. Run: chmod 600 {path}"]


async def test_a_network_file_system_is_warned_of(
    path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bot, "network_file_system", lambda folder: "nfs4" if folder == path.parent.resolve() else None)
    await filled(path)
    warning = f"{path} is on a network file system (nfs4), which can corrupt it. Set STORE to a local disk."
    assert warning in caplog.messages
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


MOUNTS = r"""
/dev/sda1 / ext4 rw,relatime 0 0
proc /proc proc rw 0 0
nas:/home /home nfs4 rw 0 0
/dev/sdb1 /home/me ext4 rw 0 0
//nas/share /srv/my\040share cifs rw 0 0
systemd-1 /mnt/auto autofs rw 0 0
nas:/auto /mnt/auto nfs rw 0 0
nas:/under /mnt/over nfs rw 0 0
/dev/sdc1 /mnt/over xfs rw 0 0
host:/x /mnt/ssh fuse.sshfs rw 0 0
broken

"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/var/lib/bot", None),
        ("/", None),
        ("/home", "nfs4"),
        ("/home/you/bot", "nfs4"),
        ("/home/me/bot", None),
        ("/homes", None),
        ("/srv/my share/bot", "cifs"),
        ("/srv/my", None),
        ("/mnt/auto/bot", "nfs"),
        ("/mnt/over", None),
        ("/mnt/ssh/a/b", "fuse.sshfs"),
    ],
)
def test_the_mount_that_is_nearest_and_on_top_says_what_the_folder_is_on(
    tmp_path: Path, folder: str, kind: str | None
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)
    assert bot.network_file_system(Path(folder), mounts) == kind


@pytest.mark.parametrize("mounts", [None, "", "\n", "proc /proc proc rw 0 0\n", "\xff\xfe nonsense"])
def test_where_the_system_does_not_say_there_is_no_warning(tmp_path: Path, mounts: str | None) -> None:
    file = tmp_path / "mounts"
    if mounts is not None:
        file.write_bytes(mounts.encode("latin-1"))
    assert bot.network_file_system(Path("/home"), file) is None


@pytest.fixture
def as_ordinary_user() -> Iterator[Path]:
    """A folder, and this process with no right but its owner's: permissions do not bind root."""
    folder, is_root = Path(tempfile.mkdtemp()), os.geteuid() == 0
    if is_root:
        os.chown(folder, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    yield folder
    if is_root:
        os.seteuid(0)
    folder.chmod(0o700)
    shutil.rmtree(folder)


@on_posix
@pytest.mark.parametrize("is_there", [True, False])
async def test_a_folder_that_cannot_be_written_is_refused(as_ordinary_user: Path, is_there: bool) -> None:
    path = as_ordinary_user / "bot.db"
    if is_there:
        await filled(path)
    as_ordinary_user.chmod(0o500)
    told = await refusal(path)
    assert told.startswith(f"{as_ordinary_user}/bot.db")
    assert " cannot be written (" in told
    assert f"Give this user write access to {'' if is_there else 'it and to '}{as_ordinary_user}" in told


@on_posix
async def test_a_file_that_cannot_be_written_is_refused(as_ordinary_user: Path) -> None:
    path = as_ordinary_user / "bot.db"
    await filled(path)
    path.chmod(0o400)
    assert await refusal(path) == (
        f"{path} cannot be written (Permission denied). Give this user write access to it and to {as_ordinary_user},"
        " or set STORE to another file."
    )


@on_posix
async def test_a_folder_that_may_not_be_listed_does_no_harm(as_ordinary_user: Path) -> None:
    as_ordinary_user.chmod(0o300)
    async with opened(as_ordinary_user / "bot.db") as store:
        await store.obey()
        assert await accept(store, event(1)) == 1


@on_posix
async def test_another_users_lock_is_refused(as_ordinary_user: Path) -> None:
    path = as_ordinary_user / "bot.db"
    lock = path.with_name(f"bot.db.{BOT}.lock")
    lock.touch(0o400)
    told = await refusal(path)
    assert told.startswith(str(path))
    assert "cannot be written (Permission denied)." in told


async def test_a_folder_that_is_not_there_is_refused(path: Path) -> None:
    missing = path.parent / "no such" / "bot.db"
    assert await refusal(missing) == f"{missing} cannot be made: there is no folder {missing.parent}. Make it first."


# A disk that is full, slow to open, or broken


async def fill(store: SQLiteStore, at_once: int, size: int) -> set[str]:
    """Accept batches until several were refused; return the keys that were accepted."""
    accepted, refused = set[str](), 0
    for batch in range(10_000):
        events = [event(f"{batch}-{number}", bytes(size)) for number in range(at_once)]
        results = await asyncio.gather(*(accept(store, each) for each in events), return_exceptions=True)
        for each, result in zip(events, results, strict=True):
            if result == 1:
                accepted.add(each.key)
                continue
            assert isinstance(result, StoreError)
            assert not isinstance(result, CommitUnknownError)
            sentence = "cannot grow (database or disk is full). Free some space on its disk; nothing that was accepted"
            assert str(result).startswith(f"{store.path} {sentence}")
            refused += 1
        if refused >= 3 * at_once:
            return accepted
    raise AssertionError("the disk is never full")


@pytest.mark.parametrize(
    ("at_once", "size"),
    [(1, 2_000), (10, 2_000), (200, 20_000)],  # the last fills SQLite's cache: it is refused in the middle of a batch
)
async def test_a_full_disk_refuses_what_does_not_fit_and_nothing_is_lost(
    small_disk: Path, at_once: int, size: int
) -> None:
    path = small_disk / "bot.db"
    async with opened(path) as store:
        await store.commit([record(place=PLACE)], None)
        await accept(store, event("first"), at(1))
        accepted = {event("first").key, *await fill(store, at_once, size)}
        store.note_shown(record().id, 1, PLACE._replace(channel=5))
        with pytest.raises(StoreError):
            await accept(store, event("too large", bytes(at_once * size)))
        assert {each.key for each in await store.pending()} == accepted
        grow(small_disk)
        assert await accept(store, event("after")) == 1
        await store.commit([record(version=1)], event("after").key)
        await refuses_to_pass_what_it_refused(store)
    async with opened(path) as store:
        assert {each.key for each in await store.pending()} == accepted
        assert await store.cursor(0, "f") == at(1)
        saved = await store.load(record().id)
        assert saved
        assert (saved.version, saved.place) == (2, PLACE._replace(channel=5)), "a note that did not fit is kept"
        assert await accept(store, event("next"), at(2)) == 1


async def refuses_to_pass_what_it_refused(store: SQLiteStore) -> None:
    """The sender must be able to send again what was refused: nothing later is confirmed to it."""
    store.move_cursor(at(9))
    with pytest.raises(StoreError, match="the cursor must not pass it"):
        await accept(store, event("later"), at(10))
    with pytest.raises(StoreError):
        await store.flush()


async def test_a_store_is_not_opened_on_a_full_disk_and_is_when_there_is_room_again(small_disk: Path) -> None:
    path = small_disk / "bot.db"
    with (small_disk / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(bytes(4096))
    assert await refusal(path) == (
        f"{path} cannot grow (database or disk is full)."
        " Free some space on its disk; nothing that was accepted is lost."
    )
    grow(small_disk)
    await filled(path)


async def test_a_database_at_its_largest_refuses_and_goes_on_when_it_may_grow(path: Path) -> None:
    async with opened(path) as store:
        await store._db.execute("PRAGMA max_page_count=60")
        accepted = await fill(store, 10, 2_000)
        assert {each.key for each in await store.pending()} == accepted
        await store._db.execute("PRAGMA max_page_count=1000000")
        assert await accept(store, event("after")) == 1


@contextlib.contextmanager
def files_at_most(size: int) -> Iterator[None]:
    """Let no write of this process go beyond that many bytes of a file; SQLite takes it for an I/O error."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@on_posix
async def test_after_an_io_error_at_commit_nothing_is_written_until_the_file_is_opened_again(path: Path) -> None:
    async with opened(path) as store:
        for number in range(100):
            await accept(store, event(f"before-{number}", bytes(4_000)))
        with files_at_most(path.with_name("bot.db-wal").stat().st_size):
            waiting = [store.accept(event(number), None) for number in range(600)]
            results = await asyncio.gather(*waiting, return_exceptions=True)
            assert all(isinstance(each, StoreError) for each in results)
            assert {type(each) for each in results[:256]} == {CommitUnknownError}
            assert str(results[0]) == (
                f"{path} may or may not have the last transaction (disk I/O error)."
                " See what your system says about that disk."
            )
        with pytest.raises(StoreError):
            await accept(store, event("late"))
        with pytest.raises(StoreError):
            await store.flush()
    async with opened(path) as store:
        found = {each.key for each in await store.pending()}
        assert {event(f"before-{number}").key for number in range(100)} <= found
        assert len(found) in (100, 100 + bot.BATCH_OPS_MAX), "the batch is there or it is not"
        assert await accept(store, event("late")) == 1


async def test_a_database_that_another_program_has_locked_refuses_until_it_lets_go(path: Path) -> None:
    async with opened(path) as store:
        await store._db.execute("PRAGMA busy_timeout=50")
        await accept(store, event(1), at(1))
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as tool:
            tool.execute("BEGIN IMMEDIATE")
            store.move_cursor(at(7))
            with pytest.raises(StoreError) as caught:
                await accept(store, event(2))
            assert str(caught.value) == (
                f"{path} is locked by another program (database is locked). Close the tool that has it open."
            )
            assert [each.key for each in await store.pending()] == [event(1).key]
        assert await accept(store, event(2)) == 1
        await refuses_to_pass_what_it_refused(store)
        assert await store.cursor(0, "f") == at(1)


async def test_a_database_that_another_program_keeps_locked_is_not_opened(path: Path) -> None:
    await filled(path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as tool:
        tool.execute("BEGIN EXCLUSIVE")
        assert await refusal(path) == (
            f"{path} is locked by another program (database is locked). Close the tool that has it open."
        )


# Beside the process that has it


async def test_a_backup_taken_while_clicks_come_in_is_whole(path: Path) -> None:
    async with opened(path) as store:

        async def click(number: int) -> None:
            for step in range(20):
                key = f"{number}-{step}"
                await accept(store, event(key, bytes(3_000)), at(step + 1, shard=number))
                await store.commit([record(f"{number}", version=step)], event(key).key)

        clicks = asyncio.gather(*(click(number) for number in range(20)))
        copies = [path.with_name(f"copy-{number}.db") for number in range(5)]
        for copy in copies:
            await store.backup(copy)
        await clicks
    for copy in copies:
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
        assert rows(copy, "PRAGMA integrity_check") == [("ok",)]
        done = rows(copy, "SELECT count(*) FROM inbox WHERE done_at IS NOT NULL")
        assert rows(copy, "SELECT coalesce(sum(version), 0) FROM record") == done
        assert rows(copy, "SELECT coalesce(sum(seq), 0) FROM cursor") == rows(copy, "SELECT count(*) FROM inbox")
    async with opened(copies[-1], OTHER_BOT):
        pass


async def test_a_backup_overwrites_nothing(path: Path) -> None:
    other = path.with_name("holiday.jpg")
    other.write_bytes(b"a picture")
    async with opened(path) as store:
        with pytest.raises(OperatorError, match=r"holiday\.jpg "):
            await store.backup(other)
    assert other.read_bytes() == b"a picture"


async def test_a_backup_that_is_interrupted_leaves_nothing_behind(path: Path) -> None:
    copy = path.with_name("copy.db")
    async with opened(path) as store:
        await asyncio.gather(*(store.accept(event(number, bytes(4_000)), None) for number in range(500)))
        await store._reader.set_progress_handler(lambda: time.sleep(0.01), 100)
        copying = asyncio.create_task(store.backup(copy))
        await until(copy.exists)
        copying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await copying
        assert not copy.exists()
        await store._reader.set_progress_handler(lambda: 0, 0)
        await store.backup(copy)
        assert rows(copy, "SELECT count(*) FROM inbox") == [(500,)]
    assert not copy.with_name("copy.db-journal").exists()


async def test_a_visitor_reads_what_the_running_process_has_written(path: Path) -> None:
    visitor = SQLiteStore(str(path), BOT)
    async with opened(path) as store:
        await accept(store, event(1))
        await store.fail(event(1), BROKEN)
        try:
            await visitor.open(visit=True)
            assert [each.key for each in await visitor.failed()] == [event(1).key]
        finally:
            await visitor.close()
        assert await accept(store, event(2)) == 1


async def test_an_order_is_obeyed_once_by_the_process_that_has_the_store(path: Path) -> None:
    async with opened(path) as store:
        for number in range(3):
            await accept(store, event(number))
            await store.fail(event(number), BROKEN)
        await store.obey()
        others = bot.give_order(str(path), OTHER_BOT, {"do": "retry", "keys": []})
        for order in ({"do": "retry", "keys": [event(1).key]}, {"do": "discard", "keys": []}):
            file = bot.give_order(str(path), BOT, order)
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            await store.obey()
            assert not file.exists()
        assert [each.key for each in await store.pending()] == [event(1).key]
        assert await store.failed() == []
        await store.fail(event(1), BROKEN)
        await store.obey()
        assert len(await store.failed()) == 1, "an order is obeyed once"
        assert others.exists()


# aiosqlite


@pytest.mark.parametrize("name", ["_execute", "_conn"])
def test_the_private_names_of_aiosqlite_are_still_there(name: str) -> None:
    assert hasattr(aiosqlite.Connection, name), (
        f"aiosqlite has no Connection.{name} any more. See SQLiteStore._call, and pin aiosqlite below this version."
    )


@pytest.mark.parametrize("kind", ["file", "memory"])
async def test_closing_leaves_no_thread(path: Path, kind: str) -> None:
    before = {*threading.enumerate()}
    async with opened(path) if kind == "file" else opened(Path(":memory:")) as store:
        await accept(store, event(1))
        started = {*threading.enumerate()} - before
        assert started
    for thread in started:
        thread.join(5)
        assert not thread.is_alive()


async def test_closing_folds_the_log_back_into_the_file(path: Path) -> None:
    await filled(path)
    assert sorted(each.name for each in path.parent.iterdir()) == ["bot.db", f"bot.db.{BOT}.lock"]


# Windows, by substitution


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """claim_lock as on Windows; what it asks of msvcrt: the mode and the number of bytes."""
    asked: list[tuple[int, int]] = []

    def locking(fd: int, mode: int, size: int) -> None:
        assert os.fstat(fd)
        asked.append((mode, size))
        if len(asked) > 1:
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(LK_NBLCK=2, locking=locking))
    monkeypatch.delattr(os, "register_at_fork", raising=False)
    return asked


def test_on_windows_one_byte_is_locked_without_waiting(path: Path, windows: list[tuple[int, int]]) -> None:
    with bot.lock_file(str(path), BOT) as lock:
        assert windows == [(2, 1)]
        assert Path(lock.name).read_bytes()[1:] == f"{os.getpid()}\n".encode(), "the first byte is what is locked"
        with pytest.raises(OperatorError, match=r"bot\.db is in use by .*process.*\. Stop it, or set STORE to another"):
            bot.lock_file(str(path), BOT)
