"""Looks through everything a run of the tests produces for secrets, and lets the run fail when it finds one.

A pytest plugin. It looks at what this process logs (in the bot's format, from DEBUG on), at what bots and command lines
print, at the arguments of every process started, at what tests print, and at the databases they leave behind. Of all
this it keeps counts and finds alone. `LEAKS.secrets` may be given more than the tokens that the playground gave out.
When the tests run on several workers, each looks for what it gave out itself, and tells the run what it saw at its end.
"""

from __future__ import annotations

import asyncio.subprocess
import contextlib
import logging
import os
import re
import sqlite3
import subprocess
import urllib.parse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bot
from playground.interactions import TOKENS_ISSUED
from playground.process import BotProcess

INTERACTION = "aW50ZXJhY3Rpb246"  # every interaction's token begins so: "interaction:" in base64
PIECE = re.compile(INTERACTION + r"[\w+/=-]{8,}")  # of a token that was cut off, too
ESCAPE = re.compile(r"\\u00([0-9a-fA-F]{2})|\\x([0-9a-fA-F]{2})")
JOINT = re.compile(r"(\\n|[\s\"'|])*\n[\s\"'|+]*")  # where a text was broken into lines


class Leaks:
    """Counts what it has looked at, and keeps where a secret stood."""

    def __init__(self) -> None:
        self.secrets: set[str] = set()
        """What must not be seen, as it is written; interaction tokens are known by their form."""
        self.found: Counter[str] = Counter()
        self.texts, self.characters = Counter[str](), 0
        self.tokens_of_workers = 0
        self.workers_untold = 0
        """How many workers have not told what they saw: a secret, maybe."""
        self._issued = 0

    def look(self, text: str | bytes, where: str) -> None:
        """Look through a text for secrets, also for encoded, escaped and broken ones."""
        text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        self.texts[where.partition(" (")[0]] += 1
        self.characters += len(text)
        if secret := self.secret_in(text):
            test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" (")[0]
            self.found[f"{where} has {secret[:8]}…{secret[-4:]}, in {test}"] += 1

    def secret_in(self, text: str) -> str:
        """Return a secret that the text shows, or ""."""
        for token in TOKENS_ISSUED[self._issued :]:
            if not token.startswith(INTERACTION):
                self.secrets.add(token)
        self._issued = len(TOKENS_ISSUED)
        for reading in readings(text):
            if INTERACTION in reading and (piece := PIECE.search(reading)):
                return piece[0]
            if known := next((secret for secret in self.secrets if secret in reading), ""):
                return known
        return ""

    def for_the_run(self) -> dict[str, Any]:
        """Return what a worker saw, of types that can be sent."""
        return {
            "found": dict(self.found),
            "texts": dict(self.texts),
            "characters": self.characters,
            "tokens": len(TOKENS_ISSUED),
        }

    def add_worker(self, seen: dict[str, Any]) -> None:
        """Add what a worker saw."""
        self.workers_untold -= 1
        self.found.update(seen["found"])
        self.texts.update(seen["texts"])
        self.characters += seen["characters"]
        self.tokens_of_workers += seen["tokens"]

    @property
    def is_clean(self) -> bool:
        """Whether everything was looked at and no secret was seen."""
        return not self.found and not self.workers_untold

    def told(self) -> list[str]:
        """Return the lines for the end of the run."""
        kinds = ", ".join(f"{count:,} x {kind}" for kind, count in self.texts.most_common())
        tokens = len(TOKENS_ISSUED) + self.tokens_of_workers
        if self.found:
            lines = [f"secrets: {len(self.found)} places show one", *(f"  {each}" for each in self.found)]
        else:
            lines = [f"secrets: none in {self.characters:,} characters ({kinds}); {tokens:,} tokens issued"]
        untold = f"secrets: {self.workers_untold} workers ended and did not tell what they saw"
        return [*lines, untold] if self.workers_untold else lines


def readings(text: str) -> Iterator[str]:
    """Yield the text, and what it says without percent signs, escapes and line breaks where it has such."""
    yield text
    if "%" in text:
        yield urllib.parse.unquote(text)
    if "\\" in text:
        text = ESCAPE.sub(lambda found: chr(int(found[1] or found[2], 16)), text)
        yield text
    if "\n" in text:
        yield JOINT.sub("", text)


LEAKS = Leaks()


class LogOfThisProcess(logging.Handler):
    """Looks at every record as the bot would print it."""

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(Exception):  # a record that cannot be formatted is printed by nobody
            LEAKS.look(bot.LogFormat().format(record), f"log line ({record.name})")


LISTENER = LogOfThisProcess()


# Where the suite's output passes


def watch_processes(patch: pytest.MonkeyPatch) -> None:
    """Look at the arguments of every process, and at what it prints."""
    start, communicate = subprocess.Popen.__init__, subprocess.Popen.communicate
    run, add_line = BotProcess._start, BotProcess._add_line
    talk = asyncio.subprocess.Process.communicate

    def popen(self: Any, args: Any, *more: Any, **settings: Any) -> None:
        LEAKS.look(repr(args), "arguments of a process")
        start(self, args, *more, **settings)

    def said(self: Any, *args: Any, **settings: Any) -> Any:
        return seen(communicate(self, *args, **settings))

    async def talked(self: Any, *args: Any, **settings: Any) -> Any:
        return seen(await talk(self, *args, **settings))

    async def run_bot(self: BotProcess) -> None:
        await run(self)
        with contextlib.suppress(OSError):
            LEAKS.look(Path(f"/proc/{self.pid}/cmdline").read_bytes(), "arguments of a bot")

    def line(self: BotProcess, line: str) -> None:
        before = self.log[-1][-200:] if self.log else ""
        LEAKS.look(f"{before}\n{line}", "line of a bot")
        add_line(self, line)

    patch.setattr(subprocess.Popen, "__init__", popen)
    patch.setattr(subprocess.Popen, "communicate", said)
    patch.setattr(asyncio.subprocess.Process, "communicate", talked)
    patch.setattr(BotProcess, "_start", run_bot)
    patch.setattr(BotProcess, "_add_line", line)


def seen(output: Any) -> Any:
    """Look at what a process printed, and return it."""
    for each in output:
        if each:
            LEAKS.look(each, "output of a process")
    return output


def watch_memory_stores(patch: pytest.MonkeyPatch) -> None:
    """Look at what a store in memory holds when it is closed; those in files are looked at when their test ends."""
    close = bot.SQLiteStore.close

    async def closed(self: bot.SQLiteStore) -> None:
        with contextlib.suppress(Exception):  # it may be broken, or closed already
            if self.path == ":memory:":
                for table, sql in KEPT.items():
                    for row in await self._reader.execute_fetchall(sql):
                        LEAKS.look(repr(tuple(row)), f"row of a store ({table})")
        await close(self)

    patch.setattr(bot.SQLiteStore, "close", closed)


# A waiting event holds its interaction token: it is needed to answer.
KEPT = {
    **{table: f"SELECT * FROM {table}" for table in ("failed", "record", "cursor", "gap", "meta")},
    "inbox": "SELECT * FROM inbox WHERE done_at IS NOT NULL",
}


def look_at_databases(folder: Path) -> None:
    """Look at what the databases in a folder keep for long; copies and backups are databases too."""
    for file in folder.rglob("*"):
        with contextlib.suppress(OSError, sqlite3.Error):  # some tests leave broken ones
            if file.is_file() and is_database(file):
                with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as db:
                    for table, sql in KEPT.items():
                        for row in db.execute(sql):
                            LEAKS.look(repr(row), f"row of a store ({table})")


def is_database(file: Path) -> bool:
    """Return whether it begins as SQLite's files do."""
    with file.open("rb") as content:
        return content.read(16) == b"SQLite format 3\0"


# pytest


PATCH = pytest.MonkeyPatch()


def pytest_configure() -> None:
    """Begin to listen to everything. What pytest captures begins at the warnings, as ever: see log_level."""
    logging.getLogger().setLevel(logging.DEBUG)
    watch_processes(PATCH)
    watch_memory_stores(PATCH)


def pytest_unconfigure() -> None:
    """Leave everything as it was."""
    PATCH.undo()


def pytest_runtest_setup() -> None:
    """Listen again where a test has set up logging anew."""
    logging.getLogger().addHandler(LISTENER)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Look at the databases of a test before its folder goes."""
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    if folder:
        look_at_databases(folder)
    return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Look at what a test has printed. The log in a report is formatted by pytest, and nobody else prints it so."""
    if hasattr(report, "node"):
        return  # of a worker, which has looked at it and knows what was given out there
    for title, content in report.sections:
        if "log" not in title:
            LEAKS.look(content, "output of a test")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run when a secret was seen; a worker tells the run, which fails."""
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["leaks"] = LEAKS.for_the_run()
    elif not LEAKS.is_clean:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodeready() -> None:
    """Expect a worker to tell what it saw."""
    LEAKS.workers_untold += 1


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take what a worker saw, when it has ended. One that was killed says nothing."""
    output: dict[str, Any] = getattr(node, "workeroutput", {})
    if "leaks" in output:
        LEAKS.add_worker(output["leaks"])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was looked at, and every place with a secret."""
    for line in LEAKS.told():
        terminalreporter.write_line(line, red=not LEAKS.is_clean)
