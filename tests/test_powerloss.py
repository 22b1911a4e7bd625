"""Power cuts: what a store called durable is there after a cut at any moment, whatever became of the rest.

A process runs the real store and tells, in order, what is done to its files and what the store called durable. From
that record a disk is rebuilt as a power cut may leave it: what was synced is there; of what was written since, any
part; of what was made or deleted since the folder was synced, the first so many. The real store is then opened on it.
"""

from __future__ import annotations

import json
import os
import pickle
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot import BotId, Event, EventKey, OperatorError, RecordId, SQLiteStore, StoreError
from tests import disk
from tests.disk import Step, Told
from tests.kit import ROOT, rows

pytestmark = pytest.mark.skipif(bool(disk.why_not()), reason=disk.why_not())

BOT, WORKERS = BotId(1001), 4
Record = list[Step | Told]
# What may be left of a write that was not synced: no byte of it, all of it, whole writes, sectors, or anything at all.
WAYS = ("nothing", "everything", "some writes", "sectors of 512", "sectors of 4096", "garbage in sectors of 512")
WAY_OF = {"accepted": 1, "failed": 2, "retried": 3, "done": 4}


# The record


def run(*arguments: str, before: tuple[str, ...] = ()) -> Record:
    """Run the process to its end and return what it told."""
    command = [*before, sys.executable, "-m", "tests.power_process", *arguments]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE) as process:
        assert process.stdout
        record = [*read(process.stdout)]
    assert process.returncode == 0
    assert isinstance(record[-1], Told)
    assert record[-1].what == "closed"
    return record


def read(pipe: object) -> Iterator[Step | Told]:
    while True:
        try:
            yield pickle.load(pipe)  # pyright: ignore[reportArgumentType]
        except EOFError:
            return


# The disk


class Content:
    """A file's bytes: those that are on the disk, and what was done to them since."""

    def __init__(self) -> None:
        self.synced, self.since, self.is_new = bytearray(), list[Step](), True

    def sync(self) -> None:
        for step in self.since:
            apply(self.synced, step)
        self.since.clear()

    def after_a_cut(self, way: str, chance: random.Random) -> bytes:
        left = bytearray(self.synced)
        for step in self.since:
            if way == "everything" or (way == "some writes" and chance.random() < 0.5):
                apply(left, step)
            elif way.startswith(("sectors", "garbage")):
                apply_in_part(left, step, way, chance)
        return bytes(left)


def apply(content: bytearray, step: Step) -> None:
    end = step.at + len(step.data)
    if step.what == "truncate":
        del content[step.at :]
    content.extend(bytes(max(0, end - len(content))))
    content[step.at : end] = step.data


def apply_in_part(content: bytearray, step: Step, way: str, chance: random.Random) -> None:
    """Apply of a write some sectors, the others left as they were or filled with garbage."""
    size = int(way.rpartition(" ")[2])
    if step.what == "truncate":
        if chance.random() < 0.5:
            apply(content, step)
        return
    at, end = step.at, step.at + len(step.data)
    while at < end:
        to = min(end, at - at % size + size)
        data = step.data[at - step.at : to - step.at]
        if chance.random() < 0.5:
            apply(content, Step("write", step.file, at, data))
        elif way.startswith("garbage") and chance.random() < 0.5:
            apply(content, Step("write", step.file, at, chance.randbytes(len(data))))
        at = to


class Disk:
    """The folder of a store, as the process sees it and as it is after a power cut."""

    def __init__(self) -> None:
        self.files, self.on_disk = dict[str, Content](), dict[str, Content]()
        self.since: list[tuple[str, Content | None]] = []  # made and deleted since the folder was synced

    def do(self, step: Step) -> None:
        if step.what == "open" and step.file not in self.files:
            self.files[step.file] = Content()
            self.since.append((step.file, self.files[step.file]))
        elif step.what in ("write", "truncate"):
            self.files[step.file].since.append(step)
        elif step.what == "delete" and self.files.pop(step.file, None):
            self.since.append((step.file, None))
        elif step.what == "sync":
            content = self.files[step.file]
            content.sync()
            if content.is_new and step.file.endswith(("-journal", "-wal")):
                self.sync_folder()  # SQLite does so after the first sync of a new log; compared with strace below
            content.is_new = False
        if step.what == "delete" and step.at:
            self.sync_folder()

    def sync_folder(self) -> None:
        self.on_disk = dict(self.files)
        self.since.clear()

    def after_a_cut(self, way: str, chance: random.Random) -> dict[str, bytes]:
        """Return the files. What is done to a folder reaches the disk in order, as every journaling system has it."""
        many = {"nothing": 0, "everything": len(self.since)}.get(way, chance.randint(0, len(self.since)))
        names: dict[str, Content | None] = {**self.on_disk, **dict(self.since[:many])}
        return {name: content.after_a_cut(way, chance) for name, content in names.items() if content}


# What must be there


class Promises:
    """What was told durable so far."""

    def __init__(self) -> None:
        self.opened, self.events, self.seqs = False, dict[str, int](), Counter[int]()

    def hear(self, told: Told) -> None:
        if told.what in WAY_OF:
            self.events[f"{told.worker}:{told.seq}"] = WAY_OF[told.what]
        if told.what in ("accepted", "flushed"):
            self.seqs[told.worker] = told.seq
        self.opened = True

    def broken(self, path: Path) -> Iterator[str]:
        """Yield what is not as promised in the database of an open store."""
        if rows(path, "PRAGMA integrity_check") != [("ok",)]:
            yield "corrupt"
        failed = {key for (key,) in rows(path, "SELECT key FROM failed")}
        inbox = {
            key: WAY_OF[
                "failed" if done_at and key in failed else "done" if done_at else "accepted" if runs else "retried"
            ]
            for key, runs, done_at in rows(path, "SELECT key, runs, done_at FROM inbox")
        }
        if any(inbox.get(key, 0) < way for key, way in self.events.items()):
            yield "lost"
        if not failed <= {key for key, way in inbox.items() if way == WAY_OF["failed"]}:
            yield "failed by half"
        seqs = dict(rows(path, "SELECT shard, seq FROM cursor"))
        if any(seqs.get(worker, 0) < seq for worker, seq in self.seqs.items()):
            yield "cursor lost"
        for worker in range(WORKERS):
            there = {int(key.split(":")[1]) for key in inbox if key.startswith(f"{worker}:")}
            seq = seqs.get(worker, 0)
            if there != set(range(2, seq + 1, 2)):  # every second number is an event
                yield "cursor and events disagree"
            done = {key for key, way in inbox.items() if way == WAY_OF["done"] and key.startswith(f"{worker}:")}
            yield from self.broken_records(path, worker, done)

    @staticmethod
    def broken_records(path: Path, worker: int, done: set[str]) -> Iterator[str]:
        found = rows(path, "SELECT data, version, shown FROM record WHERE key=? ORDER BY name", str(worker))
        applied = json.loads(found[0][0]) if found else []
        if len(found) != 2 * bool(done) or len({row[:2] for row in found}) > 1:
            yield "records by half"
        elif len(applied) != len(set(applied)) or any(row[1] != len(applied) for row in found):
            yield "applied twice"
        elif set(applied) != done:
            yield "state and mark disagree"
        if any(shown > version for _, version, shown in found):
            yield "shown ahead"


async def broken_after(files: dict[str, bytes], promises: Promises, folder: Path, chance: random.Random) -> set[str]:
    """Open the real store on what a power cut left, and return what is not as promised."""
    for old in folder.iterdir():
        old.unlink()
    for name, content in {**files, "bot.db-shm": chance.randbytes(32_768)}.items():
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o600)
    path = folder / "bot.db"
    store = SQLiteStore(str(path), BOT)
    try:
        await store.open()
    except OperatorError as error:
        return {f"not opened: {error}".replace(str(folder), "")}
    try:
        broken = set(promises.broken(path)) if promises.opened else set[str]()
        if saved := await store.load(RecordId("view", "0")):  # and it goes on from here
            await store.accept(Event(EventKey("later"), b""), None)
            await store.commit([saved], EventKey("later"))
    except (sqlite3.Error, StoreError) as error:
        return {f"damaged: {error}".replace(str(folder), "")}
    finally:
        await store.close()
    return broken


async def cut(record: Record, folder: Path, *, cuts: float, ways: int, seed: int) -> tuple[Counter[str], str]:
    """Cut the power before and after every sync, and after that share of all other steps, in as many ways each.

    Return how often which promise was broken, and the figures.
    """
    chance, disk_, promises = random.Random(seed), Disk(), Promises()
    found, tried, syncs = Counter[str](), 0, 0
    for now, after in zip(record, [*record[1:], None], strict=True):
        if isinstance(now, Told):
            promises.hear(now)
        else:
            disk_.do(now)
        at_sync = any(isinstance(each, Step) and each.what in ("sync", "delete") for each in (now, after))
        syncs += isinstance(now, Step) and now.what == "sync"
        if at_sync or chance.random() < cuts:
            for way in chance.sample(WAYS, ways):
                tried += 1
                found.update(await broken_after(disk_.after_a_cut(way, chance), promises, folder, chance))
    figures = f"seed {seed}: {len(record)} steps, {syncs} syncs, {tried} power cuts, broken: {dict(found) or 'nothing'}"
    return found, figures


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where the rebuilt files are put: in memory where there is such a place, for the store syncs what it finds."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


async def test_a_power_cut_at_any_sync_loses_nothing_durable_and_leaves_nothing_by_half(
    tmp_path: Path, folder: Path
) -> None:
    seed = random.randrange(10**6)
    record = run(str(tmp_path / "bot.db"), "", "20", "2", "6")
    found, figures = await cut(record, folder, cuts=0.02, ways=2, seed=seed)
    print(figures)
    assert not found, figures


@pytest.mark.crash
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("work", "ways"),
    [
        pytest.param(("20", "3", "12"), len(WAYS), id="many checkpoints"),
        pytest.param(("", "1", "130"), 1, id="as it is"),
    ],
)
async def test_a_power_cut_at_any_sync_in_all_ways_loses_nothing(
    tmp_path: Path, folder: Path, work: tuple[str, ...], ways: int
) -> None:
    seed = random.randrange(10**6)
    record = run(str(tmp_path / "bot.db"), "", *work)
    begun = sum(each[:3] == ("write", "bot.db-wal", 0) for each in record)
    assert begun > 2, "the log began anew also while the store was open"
    found, figures = await cut(record, folder, cuts=0.05, ways=ways, seed=seed)
    print(f"log begun {begun} times, {figures}")
    assert not found, figures


# The check checked


async def test_without_a_sync_at_every_commit_the_check_finds_what_is_lost(tmp_path: Path, folder: Path) -> None:
    record = run(str(tmp_path / "bot.db"), "NORMAL", "20", "1", "6")
    found, figures = await cut(record, folder, cuts=0, ways=3, seed=1)
    print(f"synchronous=NORMAL, {figures}")
    assert found["lost"], figures
    assert found["cursor lost"], figures
    assert set(found) <= {"lost", "cursor lost"}, "NORMAL loses the newest transactions whole"


async def test_without_any_sync_the_check_finds_damage(tmp_path: Path, folder: Path) -> None:
    record = run(str(tmp_path / "bot.db"), "OFF", "20", "1", "6")
    found, figures = await cut(record, folder, cuts=0.05, ways=4, seed=1)
    print(f"synchronous=OFF, {figures}")
    assert found["lost"], figures
    assert any(each.startswith(("corrupt", "damaged", "not opened")) for each in found), figures


TRACED = "pwrite64,ftruncate,fsync,fdatasync,unlink"


def strace_works() -> bool:
    """Whether it is there and may trace: some containers do not let it."""
    command = ("strace", "-qq", "-o", os.devnull, "true")
    return bool(shutil.which("strace")) and not subprocess.run(command, capture_output=True, check=False).returncode


@pytest.mark.skipif(
    not strace_works(), reason="strace is not there or may not trace: it says what the system was asked"
)
def test_the_record_is_what_the_system_was_asked_to_do(tmp_path: Path) -> None:
    """Also that SQLite syncs the folder where `Disk` believes it does."""
    trace, path = tmp_path / "trace", tmp_path / "data" / "bot.db"
    path.parent.mkdir()
    strace = ("strace", "-f", "-y", "-qq", "-s", "0", "-e", f"trace={TRACED}", "-e", "signal=none", "-o", str(trace))
    record = run(str(path), "", "20", "2", "4", before=strace)
    told: list[tuple[str, str, int, int]] = []
    new = set[str]()
    for each in record:
        if isinstance(each, Told) or (each.what == "open" and each.file in new):
            continue
        if each.what == "open":
            new.add(each.file)
            continue
        told.append((each.what, each.file, each.at if each.what != "delete" else 0, len(each.data)))
        if each.what == "sync" and each.file in new and each.file != "bot.db":
            told.append(("sync", "data", 0, 0))
        if each.what in ("sync", "delete"):
            new.discard(each.file)
    assert len(told) > 100
    assert told == [*asked(trace, path.parent)]


def asked(trace: Path, folder: Path) -> Iterator[tuple[str, str, int, int]]:
    """Yield what strace saw done to the files of a folder, in order."""
    begun: dict[str, str] = {}
    for line in trace.read_text().splitlines():
        thread, _, call = line.partition(" ")
        call = call.strip()
        if call.endswith("<unfinished ...>"):
            begun[thread] = call.removesuffix("<unfinished ...>")
            continue
        if resumed := re.match(r"<\.\.\. \w+ resumed>(.*)", call):
            call = begun.pop(thread) + resumed[1]
        name, path = re.match(r"(\w+)\((?:\d+<|\")([^>\"]*)", call).groups()  # pyright: ignore[reportOptionalMemberAccess]
        numbers = [int(each) for each in re.findall(r", (\d+)(?=[,)])", call)]
        if not Path(path).is_relative_to(folder) or path.endswith(("-shm", ".lock")) or ") = -" in call:
            continue
        what = {"pwrite64": "write", "ftruncate": "truncate", "unlink": "delete"}.get(name, "sync")
        size, at = (numbers[-2:] if what == "write" else [0, *numbers, 0][:2]) if what != "delete" else (0, 0)
        yield what, Path(path).name, at, size
