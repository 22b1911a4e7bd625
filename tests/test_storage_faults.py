"""Disks that are full, broken or locked, and damaged databases: real bots under clicks, ended and started again.

Each fault ends the process with a sentence and code 1, or keeps it from starting with a sentence and code 2. Started
again when the fault is mended, the bot counts every click once; over HTTP, where none is sent again, every one that was
accepted, and among those is every one whose person was answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from playground import Discord
from playground.people import Used
from playground.process import BotProcess
from tests import disk
from tests.kit import Json, Now, button_id, grow, rows, shown, start, state_of, until
from tests.test_command_line import LOG_LINE, Done, run_on

pytestmark = pytest.mark.both_modes

PENDING = "SELECT key FROM inbox WHERE done_at IS NULL"
ANSWERED = "answered", "deferred"
ACCEPTED_IS_KEPT = "What was accepted is on disk; start the bot again when the cause is mended."

with_a_faulty_disk = pytest.mark.skipif(bool(disk.why_not()), reason=disk.why_not())


@dataclass
class Scene:
    """A bot in a process of its own, and a message that people click."""

    discord: Discord
    process: BotProcess
    store: Path
    message: Json
    used: list[tuple[str, Used]] = field(default_factory=list[tuple[str, Used]])

    def click(self, *names: str) -> None:
        """Have each of them click at this moment."""
        for name in names:
            used = self.discord.user(name).click(custom_id=button_id(self.message), message=self.message["id"])
            self.used.append((name, used))

    @property
    def clicks(self) -> Counter[str]:
        """How often each of them has clicked, as far as it counts."""
        return Counter(name for name, used in self.used if Now.mode == "gateway" or self.is_accepted(used))

    def is_accepted(self, used: Used) -> bool:
        return bool(rows(self.store, "SELECT 1 FROM inbox WHERE key=?", f"interaction:{used.interaction['id']}"))

    async def at_rest(self) -> None:
        """Wait until every click made so far is counted and shown."""
        await self.discord.delivered()
        await until(lambda: shown(self.discord, self.message) == self.clicks.total(), 60)
        await until(lambda: not rows(self.store, PENDING))

    async def end(self) -> list[str]:
        """Wait for the end with code 1 and return the last words: there is no traceback."""
        async with asyncio.timeout(60):
            assert await self.process.wait() == 1, "\n".join(self.process.log)
        return [line for line in self.process.log if not LOG_LINE.match(line)]

    async def goes_on(self) -> None:
        """Start the bot again, click once more, and see every click counted once."""
        await self.process.start()
        await self.process.ready()
        self.click("zoe")
        await self.at_rest()
        assert Counter(state_of(self.store, self.message)["people"]) == self.clicks
        assert rows(self.store, "SELECT key FROM failed") == []
        assert rows(self.store, "PRAGMA integrity_check") == [("ok",)]
        assert [used for _, used in self.used if used.state in ANSWERED and not self.is_accepted(used)] == []
        assert self.discord.gateway.identifies == (1 if Now.mode == "gateway" else 0)


@contextlib.asynccontextmanager
async def scene(store: Path, script: str = "counter", **env: Any) -> AsyncIterator[Scene]:
    """Run a bot whose counter was clicked three times."""
    async with Discord() as discord:
        process = await start(discord, script, store, **env)
        message = (await discord.user("alice").command("post")).message
        assert message
        scene = Scene(discord, process, store, message)
        scene.click("alice", "bob", "bob")
        await scene.at_rest()
        yield scene


CROWD = [f"person{number}" for number in range(12)]


# An I/O error at COMMIT


@with_a_faulty_disk
@pytest.mark.parametrize(
    ("when", "fault"),
    [
        pytest.param("accept", "once", marks=pytest.mark.slow),
        ("accept", "for ever"),
        pytest.param("accept", "lost", marks=pytest.mark.slow),
        ("save", "once"),
        pytest.param("save", "for ever", marks=pytest.mark.slow),
        ("save", "lost"),
    ],
)
async def test_after_an_io_error_at_commit_the_next_start_counts_every_click_once(
    tmp_path: Path, when: str, fault: str
) -> None:
    async with scene(tmp_path / "bot.db", "faulty", WHEN=when) as each:
        (tmp_path / "fault").write_text(fault)
        each.click(*CROWD)
        assert await each.end() == [
            f"{each.store} may or may not have the last transaction (disk I/O error)."
            " See what your system says about that disk.",
            ACCEPTED_IS_KEPT,
        ]
        (tmp_path / "fault").unlink(missing_ok=True)
        await each.goes_on()


# A full disk


@with_a_faulty_disk
@pytest.mark.parametrize("when", ["accept", "save"])
async def test_a_disk_that_gets_full_under_clicks_ends_the_bot_and_no_click_is_lost(tmp_path: Path, when: str) -> None:
    async with scene(tmp_path / "bot.db", "faulty", WHEN=when) as each:
        (tmp_path / "fault").write_text("full")
        await until(lambda: ended_by_clicks(each))
        assert await each.end() == [f"{each.store} {IS_FULL}", ACCEPTED_IS_KEPT]
        (tmp_path / "fault").unlink()
        await each.goes_on()


IS_FULL = "cannot grow (database or disk is full). Free some space on its disk; nothing that was accepted is lost."


def ended_by_clicks(scene: Scene) -> bool:
    """Click once more, unless the bot has ended."""
    if scene.process.pid:
        scene.click("carol")
    return not scene.process.pid


async def test_on_a_real_full_disk_the_bot_ends_does_not_start_and_counts_all_when_there_is_room(
    small_disk: Path,
) -> None:
    async with scene(small_disk / "bot.db") as each:
        fill(small_disk)
        await until(lambda: ended_by_clicks(each), 60)
        assert await each.end() == [f"{each.store} {IS_FULL}", ACCEPTED_IS_KEPT]
        fill(small_disk)
        before = rows(each.store, "SELECT seq FROM cursor")
        refused = await run_on(each.discord, Path(each.process.script), cwd=small_disk, STORE=f"sqlite:{each.store}")
        assert refused.sentence == f"{each.store} {IS_FULL}"
        grow(small_disk)
        assert rows(each.store, "SELECT seq FROM cursor") == before
        await each.goes_on()


def fill(folder: Path) -> None:
    """Leave no room on the disk."""
    with (folder / "filler").open("ab", buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(bytes(4096))


# A database that another program has locked


@contextlib.contextmanager
def locked(store: Path) -> Any:
    """Hold the database as a tool does in which somebody has begun to change something."""
    with contextlib.closing(sqlite3.connect(store, isolation_level=None)) as tool:
        tool.execute("BEGIN EXCLUSIVE")
        yield tool


IS_LOCKED = "is locked by another program (database is locked). Close the tool that has it open."


async def test_a_bot_waits_for_a_tool_that_lets_go_soon(tmp_path: Path) -> None:
    async with scene(tmp_path / "bot.db") as each:
        with locked(each.store):
            each.click(*CROWD)
            await asyncio.sleep(1)
            assert shown(each.discord, each.message) == 3
        await each.at_rest()
        assert Counter(state_of(each.store, each.message)["people"]) == each.clicks
        assert each.process.pid


@pytest.mark.slow
async def test_a_tool_that_keeps_the_database_locked_ends_the_bot_and_no_click_is_lost(tmp_path: Path) -> None:
    async with scene(tmp_path / "bot.db") as each:
        before = rows(each.store, "SELECT seq FROM cursor"), rows(each.store, "SELECT key FROM inbox")
        with locked(each.store) as tool:
            each.click(*CROWD)
            assert await each.end() == [f"{each.store} {IS_LOCKED}", ACCEPTED_IS_KEPT]
            refused = await run_on(each.discord, Path(each.process.script), cwd=tmp_path, STORE=f"sqlite:{each.store}")
            assert refused.sentence == f"{each.store} {IS_LOCKED}"
            found = [tool.execute(f"SELECT {what}").fetchall() for what in ("seq FROM cursor", "key FROM inbox")]
            assert tuple(found) == before, "what was not written is not confirmed"
        await each.goes_on()


# A database that is damaged, or without its log


def damage(file: Path, at: int, size: int = 4_096) -> None:
    with file.open("rb+") as open_file:
        open_file.seek(at)
        open_file.write(b"\xfe" * size)


async def test_damage_that_is_found_late_ends_the_bot_with_a_sentence(tmp_path: Path) -> None:
    async with scene(tmp_path / "bot.db") as each:
        assert await each.process.terminate() == 0
        [(page,)] = rows(each.store, "SELECT rootpage FROM sqlite_master WHERE name='record'")
        backup = each.store.read_bytes()
        damage(each.store, (page - 1) * 4_096)
        await each.process.start()
        await each.process.ready()
        each.click("carol")
        assert await each.end() == [
            f"{each.store} is damaged or no database (database disk image is malformed)."
            " Restore a backup, or set STORE to another file.",
            ACCEPTED_IS_KEPT,
        ]
        for rest in tmp_path.glob("bot.db-*"):
            rest.unlink()
        each.store.write_bytes(backup)  # the remedy
        if Now.mode == "rest":
            each.used.pop()  # what was accepted after the backup goes with it: carol was told at most to wait
        await each.goes_on()


def taken_away(log: Path) -> None:
    log.unlink()


def damaged_at_once(log: Path) -> None:
    damage(log, 0, log.stat().st_size)


def damaged_in_the_middle(log: Path) -> None:
    damage(log, log.stat().st_size // 2)


def cut_off(log: Path) -> None:
    with log.open("rb+") as file:
        file.truncate(log.stat().st_size // 2 + 100)


@pytest.mark.gateway_only  # which sends again what was lost with the log
@pytest.mark.parametrize(
    "spoil",
    [
        taken_away,
        damaged_in_the_middle,
        pytest.param(damaged_at_once, marks=pytest.mark.slow),
        pytest.param(cut_off, marks=pytest.mark.slow),
    ],
)
async def test_a_database_without_the_whole_log_is_an_older_moment_of_itself_and_the_bot_starts(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    """What the log held is lost to the bot; Discord sends again what it still has of it."""
    async with scene(tmp_path / "bot.db") as each:
        await fold_in(each)
        for name in CROWD:
            each.click(name)
            await each.at_rest()
        each.process.kill()
        await each.process.wait()
        copy = tmp_path / "copy" / "bot.db"
        copy.parent.mkdir()
        for file in (each.store, Path(f"{each.store}-wal")):
            shutil.copy(file, copy.with_name(file.name))
        spoil(Path(f"{copy}-wal"))
        assert one_moment(copy, each) < each.clicks.total()
        for file in tmp_path.glob("bot.db*"):
            file.unlink()
        for file in copy.parent.iterdir():
            shutil.move(file, tmp_path)
        await each.goes_on()


async def fold_in(scene: Scene) -> None:
    """Restart the bot: a clean stop folds the log into the database."""
    assert await scene.process.terminate() == 0
    await scene.process.start()
    await scene.process.ready()


def one_moment(file: Path, scene: Scene) -> int:
    """Return how many clicks are counted in a copy of the database, and see that it is of one moment."""
    assert rows(file, "PRAGMA integrity_check") == [("ok",)]
    people = state_of(file, scene.message)["people"]
    clicks = "SELECT count(*) FROM inbox WHERE done_at IS NOT NULL"
    assert rows(file, clicks) == [(len(people) + 1,)], "the click's mark and its effect; one event is the command"
    assert rows(file, "SELECT version FROM record") == [(len(people) + 1,)], "the first version counts none"
    assert rows(file, "SELECT count(*) FROM cursor") == [(1,)]
    return len(people)


# Backups


async def back_up(scene: Scene, file: Path) -> Done:
    """Run the command line's backup beside the bot."""
    return await run_on(
        scene.discord, Path(scene.process.script), "backup", file, cwd=file.parent, STORE=f"sqlite:{scene.store}"
    )


@pytest.mark.gateway_only  # a backup is of the store alone
@pytest.mark.slow
async def test_backups_taken_under_clicks_are_each_of_one_moment(tmp_path: Path) -> None:
    async with scene(tmp_path / "bot.db") as each:
        ended = asyncio.Event()

        async def keep_clicking(name: str) -> None:
            while not ended.is_set():
                each.click(name)
                await asyncio.sleep(0.1)

        async with asyncio.TaskGroup() as people:
            for name in CROWD[:4]:
                people.create_task(keep_clicking(name))
            for number in range(3):
                copy = tmp_path / f"copy{number}.db"
                assert (await back_up(each, copy)).code == 0
                assert os.name != "posix" or copy.stat().st_mode & 0o777 == 0o600
            ended.set()
        await each.at_rest()
        await back_up(each, tmp_path / "copy3.db")
        counted = [one_moment(tmp_path / f"copy{number}.db", each) for number in range(4)]
        assert 3 <= counted[0] <= counted[1] <= counted[2] <= counted[3] == each.clicks.total()
        assert counted[0] < counted[2]
        print(f"{each.clicks.total()} clicks; the backups have {counted} of them")


@pytest.mark.gateway_only  # a backup is of the store alone
async def test_a_backup_that_does_not_fit_leaves_nothing_behind(tmp_path: Path, small_disk: Path) -> None:
    async with scene(tmp_path / "bot.db") as each:
        fill(small_disk)
        before = [*small_disk.iterdir()]
        assert (await back_up(each, small_disk / "copy.db")).sentence == f"{small_disk / 'copy.db'} {IS_FULL}"
        assert [*small_disk.iterdir()] == before
        each.click("carol")
        await each.at_rest()
