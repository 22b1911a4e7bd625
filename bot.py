# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "hikari[server]>=2.7.0,<2.8",
#   "aiohttp>=3.14.0,<3.15",
#   "aiosqlite>=0.20.0,<0.23",
#   "python-dotenv>=1.2.4,<1.3",
#   "msgspec>=0.21.0,<0.24",
# ]
# ///
"""Everclick: a Discord bot in one file that never loses a click.

    python bot.py                 run the bot (settings: config.env, see config.example.env)
    python bot.py check           look for mistakes without connecting to anything
    python bot.py playground      run and click it in a local Discord, with no account

Write your own commands and views in section 11. The rest reads from top to bottom: every section uses only what stands
above it.

Contents
 0  Head                       imports, constants with their units
 1  Configuration and errors   settings, what you may catch, what people are told, how a log line looks
 2  Store                      what is kept, and what is promised about it
 3  SQLite                     the promises kept in one file
 4  Components                 what a message is made of, checked against Discord's limits
 5  Records and views          typed state in the store, and the custom ids that lead back to it
 6  Contexts and commands      what a handler is given; slash commands from annotated functions
 7  Dispatch                   the one path from an accepted event to a finished one
 8  Gateway                    a session that outlives the process
 10  Running                   start, stop and everything between
 11  Your bot                  three examples; delete them and write here
 12  Command line              run, check, playground

Glossary
 event    what arrives from Discord, here: an interaction (a command or a click)
 inbox    the table of accepted events
 accept   write the event to disk before confirming it to its sender
 cursor   how far the sender has been confirmed: gateway session and sequence number
 view     a message whose components call handlers of a class
 record   a typed value in the store under a name and key, with a version; a view's state is one
 handler  the coroutine that an event runs
 show     bring a message to its record's newest version; `shown` is the version it is known to display
"""

# ---- 0. Head ---------------------------------------------------------------------------------------------------------
# What the rest needs: the imports, one alias for add-ons, constants with their unit in the name, and JSON that bears
# whatever comes in.

from __future__ import annotations

import argparse
import asyncio
import base64
import binascii
import contextlib
import dataclasses
import enum
import functools
import hashlib
import inspect
import io
import itertools
import json
import logging
import operator
import os
import re
import secrets
import signal
import sqlite3
import sys
import sysconfig
import threading
import time
import traceback
import typing
import zlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, NewType, TypeAlias, TypeVar

try:
    import aiohttp
    import aiosqlite
    import dotenv.parser
    import hikari
    import hikari.impl
    import msgspec
    from msgspec import field
except ModuleNotFoundError as missing:
    print(f"{missing}. Run: {sys.executable} -m pip install -r requirements.txt  (or: make play)", file=sys.stderr)
    sys.exit(2)

# Run as `python bot.py` this module is "__main__". Add-ons say `import bot` and must get this one, not a second copy.
sys.modules.setdefault("bot", sys.modules[__name__])

__version__ = "0.1.0"

MINUTE, HOUR, DAY, WEEK = 60, 3_600, 86_400, 604_800  # seconds

AUTO_DEFER_AFTER_S = 2.0  # Discord wants the first answer within 3 s of the click
KEYS_KEPT_S = DAY  # how long a done event's key is kept to recognise its copies
BATCH_OPS_MAX = 256  # operations in one transaction
LAZY_WRITE_AFTER_S = 0.5  # what may be lost waits at most this long for a transaction to join
HELLO_WITHIN_S = 10.0  # a gateway host that takes the connection and says nothing is left after so long
SESSION_AGE_MAX_S = 30 * DAY  # then a new one: a session resumed for months was seen to lose its intents
HANDLER_TRIES = 3  # how often a click whose state was changed under it runs again on the fresh state
SHOW_RETRY_S = (1, 2, 4, 8, 16, 30, 60)  # pauses between attempts to repair a message; the last one repeats
ALONE_MAX_S = (
    10.0  # an event that may have killed the process has it for itself so long; a waiting handler holds up nobody
)
LOOP_LAG_MAX_S = 1.0  # a handler that holds the event loop longer is named in the log
CUSTOM_ID_MAX = 100  # characters, for Discord
CLOSE_KEEPING_SESSION = 4000  # Discord ends a session when its client closes with 1000 or 1001

T = TypeVar("T")
Reply: TypeAlias = hikari.ResponseType
REST: TypeAlias = hikari.api.RESTClient
Clock: TypeAlias = Callable[[], float]
BotId = NewType("BotId", int)
EventKey = NewType("EventKey", str)  # "interaction:<id>": the same by whichever way the event came
JSON: TypeAlias = dict[str, Any]


def read_json(data: str | bytes) -> Any:
    """Return the decoded value, with lone surrogates (which no UTF-8 file can hold) replaced by "?"."""
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        lenient = json.loads(data)  # accepts what strict decoders refuse, such as "\ud800"
        return msgspec.json.decode(json.dumps(lenient, ensure_ascii=False).encode("utf-8", "replace"))


def plain(odd: object) -> int:
    """Return an int for what is one by inheritance, such as hikari's ids and enums; refuse anything else."""
    if isinstance(odd, int):
        return int(odd)
    raise TypeError(f"a {type(odd).__name__} cannot be kept; use numbers, text, lists, dicts or msgspec.Struct")


def write_json(value: Any) -> bytes:
    """Return the value as JSON. Raises TypeError when it holds what JSON cannot."""
    return msgspec.json.encode(value, enc_hook=plain)


# ---- 1. Configuration and errors -------------------------------------------------------------------------------------
# Settings come from config.env and from the environment, which wins; `Config.load` reports every mistake at once, each
# with its place and its remedy. Then the errors a handler may catch, the few sentences the bot says to people, and one
# log format that lets no token through.


class OperatorError(Exception):
    """Something the person who runs the bot can mend. Shown as it is, without a traceback; the process ends with 2."""


def bot_id_of(token: str) -> BotId:
    """Return the id inside a bot token, or raise ValueError. Discord's tokens start with the id in base64."""
    first, dot, _ = token.partition(".")
    try:
        digits = base64.b64decode(first + "=" * (-len(first) % 4), validate=True).decode("ascii")
        if not dot or not 0 < int(digits) < 1 << 63:
            raise ValueError
    except (ValueError, binascii.Error, UnicodeDecodeError):
        raise ValueError("is not a bot token. Copy it from your application's Bot page, Reset Token") from None
    return BotId(int(digits))


@dataclass(frozen=True, kw_only=True)
class Config:
    """Every setting, read once at start. Names, meanings and defaults for people stand in config.example.env."""

    token: str = dataclasses.field(default="", repr=False)
    api: str = "https://discord.com/api/v10"
    store: str = "sqlite:bot.db"
    dev_guild: int | None = None
    log_level: str = "INFO"
    shard_count: int = 1
    drain_s: int = 10
    max_handlers: int = 64
    max_handler_runs: int = 5
    max_failed: int = 10_000

    @classmethod
    def load(cls, path: Path, environ: Mapping[str, str], *, needs_token: bool = True) -> Config:
        """Return the settings of the file and the environment, or raise one OperatorError that lists every mistake."""
        given, mistakes = _read_env_file(path)
        given |= {name: (f"environment: {name}", environ[name]) for name in SETTINGS if environ.get(name)}
        values: dict[str, Any] = {}
        for name, (place, text) in given.items():
            setting = SETTINGS[name]
            shown = "" if name == "DISCORD_TOKEN" else f"={text}"  # a secret never reaches a message
            if not text:
                continue  # DEV_GUILD= means the default, as a line that is commented out does
            if not re.fullmatch(setting.pattern, text):
                mistakes.append(f"{place}{shown} is not {setting.wanted}.")
                continue
            try:
                values[setting.attribute] = setting.read(text)
            except ValueError as error:
                mistakes.append(f"{place}{shown} {error}.")
        if needs_token and not given.get("DISCORD_TOKEN", ("", ""))[1]:
            mistakes.append(f"DISCORD_TOKEN is missing. Copy config.example.env to {path} and paste your token there.")
        if mistakes:
            raise OperatorError(redact("\n".join(mistakes)))
        return cls(**values)


def read_token(text: str) -> str:
    """Return the token, or raise ValueError when it is the example's placeholder or no token at all."""
    try:
        bot_id_of(text)
    except ValueError:
        if "paste" in text.lower() or "your" in text.lower():
            raise ValueError("is still the placeholder. Paste the token from your application's Bot page") from None
        raise
    return text


class Setting(NamedTuple):
    """How a setting is read: where it goes, what it looks like, how it becomes a value, what to write instead."""

    attribute: str
    pattern: str
    read: Callable[[str], Any]
    wanted: str


API = "an http address. Leave it out to use Discord itself"
STORES = "a store this bot can open. Write STORE=sqlite:bot.db, or STORE=:memory: to keep nothing"
GUILD = "a server's id. Turn on Developer Mode in Discord, right-click your server, Copy Server ID"
SETTINGS: Mapping[str, Setting] = {
    "DISCORD_TOKEN": Setting("token", r"(?s).*", read_token, ""),
    "DISCORD_API": Setting("api", r"https?://[^/\s]+(/\S*)?", operator.methodcaller("rstrip", "/"), API),
    "STORE": Setting("store", r":memory:|sqlite:(?!//).*[^/\s].*", str, STORES),
    "DEV_GUILD": Setting("dev_guild", r"[1-9]\d{14,18}", int, GUILD),
    "LOG_LEVEL": Setting("log_level", r"(?i)debug|info|warning|error", str.upper, "DEBUG, INFO, WARNING or ERROR"),
    "SHARD_COUNT": Setting("shard_count", r"[1-9]\d{0,2}", int, "a whole number from 1 to 999"),
    "DRAIN_S": Setting("drain_s", r"\d{1,3}", int, "a whole number of seconds from 0 to 999"),
    "MAX_HANDLERS": Setting("max_handlers", r"[1-9]\d{0,3}", int, "a whole number from 1 to 9999"),
    "MAX_HANDLER_RUNS": Setting("max_handler_runs", r"[1-9]\d?", int, "a whole number from 1 to 99"),
    "MAX_FAILED": Setting("max_failed", r"[1-9]\d{0,5}", int, "a whole number from 1 to 999999"),
}


def _read_env_file(path: Path) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """Return {name: (place, value)} and the mistakes of a config.env; no file is no mistake."""
    given: dict[str, tuple[str, str]] = {}
    mistakes: list[str] = []
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError:
        return given, mistakes
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorError(f"{path} cannot be read ({error}). Save it as UTF-8 text this user may read.") from error
    for binding in dotenv.parser.parse_stream(io.StringIO(text)):
        text, name = binding.original.string, binding.key or ""
        line = binding.original.line + text[: len(text) - len(text.lstrip())].count("\n")
        place = f"{path} line {line}: {name}"
        if binding.error or (name and (binding.value is None or not name.isidentifier())):
            mistakes.append(f"{path} line {line} is not NAME=value. Write one setting a line.")  # it may be a token
        elif name in given:
            mistakes.append(f"{place} is given twice. Keep one of the two lines.")
        elif name and name not in SETTINGS:
            mistakes.append(f"{place} is not a setting. The settings are {', '.join(SETTINGS)}.")
        elif name:
            given[name] = (place, (binding.value or "").strip())
    return given, mistakes


class StateConflictError(Exception):
    """The record was changed by somebody else since it was loaded; nothing of this change was written.

    `self` now holds the state that won: apply the change again and rerender, or let the error through, and a click that
    has said nothing runs again on the fresh state, three times at most.
    """


class StateUnreadableError(Exception):
    """A record is there, but its state cannot be read as the class wants it. It is kept as it is."""


class LayoutError(ValueError):
    """A message breaks one of Discord's limits. Raised where it is built, before anything is written or sent."""


class ExpiredError(Exception):
    """The interaction can no longer be answered: Discord allows 3 s to the first answer and 15 minutes in all."""


class StoreError(Exception):
    """The store could not write. Nothing of the operation happened, except where the text says it is not known."""


@dataclass(frozen=True)
class Texts:
    """What the bot says of its own accord. In your_bot: `app.texts[""] = Texts(expired="Gone.")`; "de" for a locale."""

    expired: str = "This has expired."
    failed: str = "Something went wrong."
    not_for_you: str = "This is not for you."
    done: str = "Done."


_SECRET_AFTER_ID = re.compile(r"((?:/(?:interactions|webhooks)/\d+/)|\b\d{15,20}:)[\w.~-]{12,}")  # also in hikari's log
# An id in base64 begins with M, N or O; "interaction:", with which an interaction's token begins, as it stands here.
_SECRET_TOKEN = re.compile(r"[MNO][\w-]{22,}\.[\w-]{6,7}\.[\w-]{27,}|aW50ZXJhY3Rpb246[\w-]{12,}")


def redact(text: str) -> str:
    """Return the text without bot tokens and interaction tokens."""
    return _SECRET_TOKEN.sub("[token]", _SECRET_AFTER_ID.sub(r"\1[token]", text))


def without_token(body: bytes) -> bytes:
    """Return an interaction's body without its token: what is kept for long holds no secret."""
    try:
        payload: Any = read_json(body)
        payload.update({"token": ""} if "token" in payload else {})
        return write_json(payload)
    except RecursionError:
        return b""  # it was just shallow enough to be accepted; nobody can run it
    except (ValueError, AttributeError, TypeError):
        return body


def printable(text: str) -> str:
    """Return the text with what a terminal would obey (escape sequences, reversed writing) spelled out."""
    return "".join(each if each.isprintable() or each in "\n\t" else ascii(each)[1:-1] for each in text)


class LogFormat(logging.Formatter):
    """One line a message, times in UTC, secrets cut out after the traceback is in."""

    converter = time.gmtime

    def __init__(self) -> None:
        super().__init__("%(asctime)sZ %(levelname)-7s %(name)s: %(message)s", "%Y-%m-%d %H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """Return the finished line, redacted and harmless to a terminal."""
        return printable(redact(super().format(record)))


log = logging.getLogger("everclick")


def start_logging(level: str) -> None:
    """Send every log line of the process to stderr in one format. hikari's own lines show from WARNING on."""
    handler = logging.StreamHandler()
    handler.setFormatter(LogFormat())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    log.setLevel(level)
    logging.getLogger("hikari").setLevel(logging.INFO if level == "DEBUG" else logging.WARNING)
    logging.getLogger("hikari.ratelimits").setLevel(logging.ERROR)  # it warns of every new limit it learns
    logging.captureWarnings(True)  # Python itself would print them as they are
    # hikari's tasks tell asyncio of closed connections although the shard sees to them.
    closed = hikari.GatewayError | ConnectionError
    logging.getLogger("asyncio").addFilter(lambda each: not (each.exc_info and isinstance(each.exc_info[1], closed)))


class Failure(NamedTuple):
    """Why an event is on the failed list: the error's type, message and place, none with a secret in it."""

    type: str
    text: str
    place: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Return the error as type, message and the file and line that raised it."""
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        try:
            text = redact(" ".join(str(error).split()))[:500]
        except Exception:  # an error of the user's own may fail even at this
            text = "(it cannot say what it is)"
        return cls(*(printable(part) for part in (type(error).__name__, text, place)))


SQLITE_REMEDIES = (
    ("unable to open|readonly", "cannot be written", "Give this user write access to {folder} and the files in it"),
    ("locked", "is locked by another program", "Close the tool that has it open"),
    ("full", "cannot grow", "Free some space on its disk; nothing that was accepted is lost"),
    ("malformed|not a database", "is damaged or no database", "Restore a backup, or set STORE to another file"),
    ("", "cannot be used", "See what your system says about that disk"),
)


def explain_sqlite(error: Exception, path: str) -> str:
    """Return the sentence for an operator: problem, place, remedy."""
    _, problem, remedy = next(row for row in SQLITE_REMEDIES if re.search(row[0], str(error)))
    return f"{path} {problem} ({error}). {remedy.format(folder=Path(path).absolute().parent)}."


# ---- 2. Store --------------------------------------------------------------------------------------------------------
# What is kept (accepted events, records, the gateway's cursor) and what every store promises about it. The rest of the
# file relies on these promises and on nothing else, so that another store can take SQLite's place. And the lock by
# which a store in a file is one process's own.


class RecordId(NamedTuple):
    """Which record: the registered name of its class, and its key."""

    name: str
    key: str


class Place(NamedTuple):
    """The message that shows a record."""

    channel: int
    message: int
    ephemeral: bool


class Saved(NamedTuple):
    """A record as the store has it, or, on its way there, the successor of that version (0: there is none yet).

    `version` counts its changes, `model` is the version of the class that wrote it, `shown` what its message shows.
    """

    id: RecordId
    version: int
    model: int
    data: bytes
    shown: int
    place: Place | None
    expires_at: float | None


class Event(NamedTuple):
    """An accepted event. `runs` counts how often a handler was started for it."""

    key: EventKey
    body: bytes
    runs: int = 1


class Cursor(NamedTuple):
    """How far a shard was received: the session, its sequence number, and the fingerprint of what RESUME relies on."""

    shard: int
    fingerprint: str
    session: str
    seq: int
    resume_url: str
    me: bytes


class FailedEvent(NamedTuple):
    """An entry of the failed list. `applied`: its state was already written when it failed."""

    key: EventKey
    failed_at: float
    runs: int
    applied: bool
    failure: Failure


class Store(ABC):
    """What every store promises.

    A write is finished when its awaitable is: then it survives a power cut. Writes take effect in the order of the
    calls. A write that raises StoreError did not happen. Cancelling the caller does not undo a write.
    """

    @abstractmethod
    async def open(self) -> None:
        """Make the store ready. Raises OperatorError when another process has it or it cannot be written."""

    @abstractmethod
    async def close(self) -> None:
        """Write what waits and let everything go. May be called twice."""

    @abstractmethod
    def accept(self, event: Event | None, cursor: Cursor | None) -> asyncio.Future[int]:
        """Put the event into the inbox and move the cursor, both or neither. 0: this key was accepted before."""

    @abstractmethod
    def move_cursor(self, cursor: Cursor) -> None:
        """Move the cursor with the next transaction; a crash may lose this, `flush` does not."""

    @abstractmethod
    async def flush(self) -> None:
        """Return when everything written or noted before this call is on disk."""

    @abstractmethod
    async def pending(self) -> list[Event]:
        """Return the events that are neither done nor failed, in the order accepted."""

    @abstractmethod
    async def begin(self, key: EventKey) -> None:
        """Count one more run of a pending event."""

    @abstractmethod
    async def commit(self, records: Sequence[Saved], done: EventKey | None) -> None:
        """Write the records, each as its version's successor, and the mark that the event is applied, or nothing.

        Raises StateConflictError when the store has another version of a record.
        """

    @abstractmethod
    async def fail(self, event: Event, failure: Failure) -> None:
        """Move the event to the failed list, of which the newest `max_failed` are kept."""

    @abstractmethod
    async def failed(self) -> list[FailedEvent]:
        """Return the failed list, oldest first."""

    @abstractmethod
    async def retry_failed(self, keys: Sequence[str]) -> int:
        """Move failed events (no keys: all) back to the inbox, return how many. Applied ones only leave the list."""

    @abstractmethod
    async def discard_failed(self, keys: Sequence[str]) -> int:
        """Delete failed events (no keys: all) and return how many."""

    @abstractmethod
    async def release(self) -> None:
        """After a clean stop: forget the runs of events that wait, for none of them took the process down."""

    @abstractmethod
    async def load(self, id: RecordId) -> Saved | None:
        """Return the record, or None when it was never saved or has expired."""

    @abstractmethod
    async def behind(self) -> list[Saved]:
        """Return the records whose message is known to show an older version than the newest."""

    @abstractmethod
    def note_shown(self, id: RecordId, version: int, place: Place | None) -> None:
        """Note what a message shows, and where it is, with the next transaction; a crash may lose this."""

    @abstractmethod
    async def cursor(self, shard: int, fingerprint: str) -> Cursor | None:
        """Return where the shard's session can be resumed; one with another fingerprint is forgotten."""

    @abstractmethod
    async def forget(self, shard: int, why: str) -> None:
        """Drop the shard's cursor and record a gap: events since its last one may have been missed."""

    @abstractmethod
    async def purge(self) -> int:
        """Delete some keys of long done events and some expired records; return how many rows."""

    async def obey(self) -> bool:
        """Do what a command line asked of the process that has this store, once a second; return whether it did."""
        return False


class InUseError(OperatorError):
    """Another process has the store."""


# A store in a file locks it. One small function for each thing that differs between systems.

NETWORK_FILE_SYSTEMS = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "vboxsf", "ncpfs", "afs")


def lock_file(path: str, bot: BotId) -> typing.IO[bytes]:
    """Lock the file until what is returned is closed, or the process ends. Raises InUseError with the holder's pid."""
    lock_path = f"{Path(path).resolve()}.{bot}.lock"
    open_private(lock_path, path)
    file = Path(lock_path).open("rb+", buffering=0)  # noqa: SIM115
    try:
        claim_lock(file.fileno())
    except OSError:
        holder = file.read()[1:].decode("ascii", "replace").strip() if os.name == "posix" else ""
        file.close()
        process = f"process {holder}" if holder else "another process"
        raise InUseError(f"{path} is in use by {process}. Stop it, or set STORE to another file.") from None
    with contextlib.suppress(OSError):  # the pid is for the message only; a full disk is told about by SQLite
        file.truncate(0)
        file.write(f" {os.getpid()}\n".encode())
    if hasattr(os, "register_at_fork"):  # a forked child shares the lock and would keep it when this process is gone
        os.register_at_fork(after_in_child=file.close)
    return file


def claim_lock(fd: int) -> None:
    """Take the lock or raise OSError at once."""
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415

        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)  # byte 0 only: the pid stands behind it
    else:
        import fcntl  # noqa: PLC0415

        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def open_private(file: str, path: str) -> None:
    """Make a file for this user alone, or say what to mend about path. SQLite gives -wal and -shm the same mode."""
    folder = Path(path).absolute().parent
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
    except FileNotFoundError:
        raise OperatorError(f"{path} cannot be made: there is no folder {folder}. Make it first.") from None
    except OSError as error:
        remedy = f"Give this user write access to it and to {folder}, or set STORE to another file"
        raise OperatorError(f"{path} cannot be written ({error.strerror}). {remedy}.") from error
    if os.name == "posix" and Path(file).stat().st_mode & 0o077:
        log.warning("%s can be read by other users of this machine. Run: chmod 600 %s", file, file)
    if kind := network_file_system(Path(path).resolve().parent):
        log.warning("%s is on a network file system (%s), which can corrupt it. Set STORE to a local disk.", path, kind)


def network_file_system(folder: Path, mounts: Path = Path("/proc/mounts")) -> str | None:
    """Return the type of the network file system the folder is on, or None (also where the system does not say)."""
    try:
        lines = [line.split() for line in mounts.read_text("utf-8", "replace").splitlines()]
    except OSError:
        return None
    under = [line for line in lines if len(line) > 2 and folder.is_relative_to(line[1].replace("\\040", " "))]
    kind = sorted(under, key=lambda line: len(line[1]))[-1][2] if under else ""  # of equal ones the last is on top
    return kind if kind in NETWORK_FILE_SYSTEMS else None


def give_order(path: str, bot: BotId, order: JSON) -> Path:
    """Leave an order for the process that has the store, and return the file that is gone when it was taken."""
    file = Path(f"{Path(path).resolve()}.{bot}.{os.getpid()}.order")
    draft = file.with_suffix(".draft")
    open_private(str(draft), path)
    draft.write_bytes(write_json(order))
    return draft.replace(file)  # whole from the first moment it can be found


def take_orders(path: str, bot: BotId) -> list[tuple[str, list[str]]]:
    """Return the orders left for this process, as what to do and keys; their files are gone."""
    base = Path(f"{Path(path).resolve()}.{bot}.")
    orders: list[tuple[str, list[str]]] = []
    with contextlib.suppress(OSError):  # a folder that may not be listed
        for each in [*base.parent.iterdir()]:
            if each.name.startswith(base.name) and each.suffix == ".order":
                data = each.read_bytes()
                each.unlink()
                with contextlib.suppress(ValueError, LookupError, TypeError):  # cut off by a power cut
                    orders.append((read_json(data)["do"], list(read_json(data)["keys"])))
    return orders


# ---- 3. SQLite -------------------------------------------------------------------------------------------------------
# The promises kept in one file: one connection writes, and puts everything that waits into one transaction (group
# commit), so that a hundred clicks at the same moment cost a few syncs of the disk and not two hundred. A second
# connection reads.

MIGRATIONS = (
    """
    CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;
    CREATE TABLE inbox(id INTEGER PRIMARY KEY, bot INTEGER NOT NULL, key TEXT NOT NULL, body BLOB NOT NULL,
        accepted_at REAL NOT NULL, runs INTEGER NOT NULL, done_at REAL, UNIQUE(bot, key));
    CREATE INDEX inbox_pending ON inbox(bot, id) WHERE done_at IS NULL;
    CREATE TABLE record(bot INTEGER NOT NULL, name TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL,
        model INTEGER NOT NULL, data BLOB NOT NULL, shown INTEGER NOT NULL, channel INTEGER, message INTEGER,
        ephemeral INTEGER, expires_at REAL, PRIMARY KEY(bot, name, key)) WITHOUT ROWID;
    CREATE INDEX record_behind ON record(bot) WHERE shown < version;
    CREATE INDEX record_expiry ON record(expires_at) WHERE expires_at IS NOT NULL;
    CREATE TABLE failed(id INTEGER PRIMARY KEY, bot INTEGER NOT NULL, key TEXT NOT NULL, body BLOB NOT NULL,
        failed_at REAL NOT NULL, runs INTEGER NOT NULL, type TEXT NOT NULL, text TEXT NOT NULL, place TEXT NOT NULL,
        applied INTEGER NOT NULL, UNIQUE(bot, key));
    CREATE TABLE cursor(bot INTEGER NOT NULL, shard INTEGER NOT NULL, fingerprint TEXT NOT NULL, session TEXT NOT NULL,
        seq INTEGER NOT NULL, resume_url TEXT NOT NULL, me BLOB NOT NULL, started_at REAL NOT NULL,
        saved_at REAL NOT NULL, PRIMARY KEY(bot, shard)) WITHOUT ROWID;
    CREATE TABLE gap(id INTEGER PRIMARY KEY, bot INTEGER NOT NULL, shard INTEGER NOT NULL, since REAL NOT NULL,
        until REAL NOT NULL, why TEXT NOT NULL);
    """,
)
APPLICATION_ID = 0x45564552  # "EVER", in the database's header: tells our file from somebody else's

Operation: TypeAlias = Callable[[sqlite3.Connection], Any]
Statement: TypeAlias = tuple[str, tuple[Any, ...]]


def statements(*steps: Statement) -> Operation:
    """Return the operation that runs the statements in turn; its result is how many rows the last one changed."""

    def run(db: sqlite3.Connection) -> int:
        return [0, *(db.execute(*step).rowcount for step in steps)][-1]

    return run


class CommitUnknownError(StoreError):
    """COMMIT itself failed: whether the transaction is on disk is not known until the file is opened again."""


def run_batch(db: sqlite3.Connection, operations: Sequence[Operation]) -> list[Any]:
    """Run all operations in one transaction; return their results, a StateConflictError where one was refused."""
    db.execute("BEGIN IMMEDIATE")
    results: list[Any] = []
    try:
        for operation in operations:
            try:
                results.append(operation(db))
            except StateConflictError as refused:  # raised before the operation wrote anything
                results.append(refused)
    except BaseException:
        if db.in_transaction:  # on "disk is full" SQLite has rolled back already
            db.execute("ROLLBACK")
        raise
    try:
        db.execute("COMMIT")
    except sqlite3.Error as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_IOERR:
            raise CommitUnknownError(str(error)) from error
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return results


class SQLiteStore(Store):
    """The store in one SQLite file, for one process per bot; several bots may share a file, each sees its own rows."""

    def __init__(self, path: str, bot: BotId, *, max_failed: int = 10_000, now: Clock = time.time) -> None:
        self.path = path
        self.bot, self._max_failed, self._now = bot, max_failed, now
        self._queue: deque[tuple[Operation, asyncio.Future[Any]]] = deque()
        self._lazy: dict[tuple[Any, ...], tuple[int, Operation]] = {}
        self._wake = asyncio.Event()
        self._closing, self._broken, self._stuck = False, False, False
        self._stack = contextlib.AsyncExitStack()

    async def open(self, *, visit: bool = False) -> None:
        """Make the store ready; see Store.open. `visit`: for reading alone, beside the process that has it."""
        async with contextlib.AsyncExitStack() as self._stack:  # closes what is open when anything below fails
            in_file = self.path != ":memory:"
            if in_file and not visit:
                # Lock first: a second process must fail before it opens the database.
                self._stack.enter_context(lock_file(self.path, self.bot))
                open_private(self.path, self.path)
            try:
                self._db = self._reader = await self._connect()
                await self._call(self._db, lambda db: examine(db, self.path))
                if not visit:
                    await self._call(self._db, prepare)
                    self._reader = await self._connect() if in_file else self._db
            except sqlite3.Error as error:
                raise OperatorError(explain_sqlite(error, self.path)) from error
            if not visit:
                writer = asyncio.create_task(self._write_batches(), name="store writer")
                self._stack.push_async_callback(self._finish_writing, writer)
            self._stack = self._stack.pop_all()  # noqa: PLW2901

    async def _connect(self) -> aiosqlite.Connection:
        db = await aiosqlite.connect(self.path, isolation_level=None)
        self._stack.push_async_callback(db.close)  # left open on any path, its thread keeps the process alive
        await db.execute_fetchall("PRAGMA busy_timeout=5000")
        return db

    @staticmethod
    async def _call(db: aiosqlite.Connection, operation: Callable[[sqlite3.Connection], T]) -> T:
        # One hop to aiosqlite's thread for a whole batch; its public methods take one per statement, which costs a
        # lone click more than a third of its speed. Both names are private: tests/test_store.py watches them.
        return await db._execute(operation, db._conn)  # pyright: ignore

    async def close(self) -> None:
        await self._stack.aclose()

    async def _finish_writing(self, writer: asyncio.Task[None]) -> None:
        self._closing = True
        self._wake.set()
        await writer

    def _write(self, operation: Operation) -> asyncio.Future[Any]:
        if self._closing or self._broken:
            raise StoreError(f"{self.path} is closed.")
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._queue.append((operation, future))
        self._wake.set()
        return future

    def _write_later(self, what: tuple[Any, ...], order: int, operation: Operation) -> None:
        if not self._lazy:
            asyncio.get_running_loop().call_later(LAZY_WRITE_AFTER_S, self._wake.set)
        if what not in self._lazy or self._lazy[what][0] <= order:
            self._lazy[what] = order, operation

    async def _write_batches(self) -> None:
        while not self._closing:
            await self._wake.wait()
            self._wake.clear()
            while await self._write_batch():
                pass
        while await self._write_batch():
            pass

    async def _write_batch(self) -> bool:
        """Write what waits, as much as goes into one transaction, and return whether more waits."""
        batch = [self._queue.popleft() for _ in range(min(len(self._queue), BATCH_OPS_MAX))]
        # With the last batch only: a cursor noted later than an event must never be on disk before it.
        lazy, self._lazy = ({}, self._lazy) if self._queue else (self._lazy, {})
        operations = [*(operation for _, operation in lazy.values()), *(operation for operation, _ in batch)]
        results = await self._attempt(operations) if operations else []
        if any(isinstance(result, StoreError) for result in results):
            # The cursor must not pass a refused event: what waits behind it goes the same way, and is sent again later.
            self._stuck = True
            results += [result for result in results if isinstance(result, StoreError)][:1] * len(self._queue)
            batch += [self._queue.popleft() for _ in range(len(self._queue))]
            self._lazy = {what: note for what, note in lazy.items() if what[0] != "cursor"} | self._lazy
        for (_, future), result in zip(batch, results[len(lazy) :], strict=True):
            if future.done():  # its caller was cancelled; what is written stays written
                continue
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)
        return bool(self._queue)

    async def _attempt(self, operations: Sequence[Operation]) -> list[Any]:
        """Run the operations in one transaction and return their results, errors among them."""
        try:
            if not self._broken:
                return await self._call(self._db, functools.partial(run_batch, operations=operations))
            failure: Exception = StoreError(f"{self.path} is closed.")
        except CommitUnknownError as error:
            self._broken = True  # what is on disk is known only after the file is opened again
            unknown = f"{self.path} may or may not have the last transaction ({error})"
            failure = CommitUnknownError(f"{unknown}. See what your system says about that disk.")
        except Exception as error:
            failure = error
            if type(error) in (sqlite3.OperationalError, sqlite3.DatabaseError, sqlite3.InternalError):
                failure = StoreError(explain_sqlite(error, self.path))
            elif len(operations) > 1:  # one of them is at fault, and must not take the others with it
                return [(await self._attempt([operation]))[0] for operation in operations]
        return [failure] * len(operations)

    async def _read(self, sql: str, *args: Any) -> list[Any]:
        try:
            return list(await self._reader.execute_fetchall(sql, (self.bot, *args)))
        except sqlite3.Error as error:
            raise StoreError(explain_sqlite(error, self.path)) from error

    def accept(self, event: Event | None, cursor: Cursor | None) -> asyncio.Future[int]:
        sql = "INSERT INTO inbox(bot, key, body, accepted_at, runs) VALUES(?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        if cursor and self._stuck:
            raise StoreError(f"{self.path} refused an earlier event, and the cursor must not pass it.")
        insert = [(sql, (self.bot, event.key, event.body, self._now(), event.runs))] if event else []
        return self._write(statements(*([self._move(cursor)] if cursor else []), *insert))

    def move_cursor(self, cursor: Cursor) -> None:
        if not self._stuck:
            self._write_later(("cursor", cursor.shard, cursor.session), cursor.seq, statements(self._move(cursor)))

    def _move(self, cursor: Cursor) -> Statement:
        sql = (
            "INSERT INTO cursor VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(bot, shard) DO UPDATE SET saved_at=?,"
            " seq=CASE WHEN session=excluded.session THEN max(seq, excluded.seq) ELSE excluded.seq END,"
            " started_at=CASE WHEN session=excluded.session THEN started_at ELSE excluded.started_at END,"
            " fingerprint=excluded.fingerprint, session=excluded.session, resume_url=excluded.resume_url,"
            " me=excluded.me"
        )
        return sql, (self.bot, *cursor, self._now(), self._now(), self._now())

    async def flush(self) -> None:
        await self._write(statements())
        if self._stuck:
            raise StoreError(f"{self.path} refused an event, and nothing may be confirmed past it.")

    async def pending(self) -> list[Event]:
        sql = "SELECT key, body, runs FROM inbox WHERE bot=? AND done_at IS NULL ORDER BY id"
        return [Event(*row) for row in await self._read(sql)]

    async def begin(self, key: EventKey) -> None:
        await self._write(statements(("UPDATE inbox SET runs=runs+1 WHERE bot=? AND key=?", (self.bot, key))))

    async def commit(self, records: Sequence[Saved], done: EventKey | None) -> None:
        now = self._now()

        def commit(db: sqlite3.Connection) -> None:
            for record in records:
                sql = f"SELECT version FROM record WHERE bot=? AND name=? AND key=? AND {LIVES}"
                row = db.execute(sql, (self.bot, *record.id, now)).fetchone()
                if (row[0] if row else 0) != record.version:  # checked before anything is written
                    raise StateConflictError(f"{record.id.name} {record.id.key} was changed since it was loaded.")
            for record in records:
                db.execute(*self._put(record))
            if done:
                db.execute(*self._done(done))

        await self._write(commit)

    def _put(self, saved: Saved) -> Statement:
        place = saved.place or (None, None, None)
        if saved.version == 0:  # about to be sent for the first time: whoever sees it sees version 1
            values = (self.bot, *saved.id, 1, saved.model, saved.data, 1, *place, saved.expires_at)
            return "INSERT OR REPLACE INTO record VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values
        sql = (
            "UPDATE record SET version=version+1, model=?, data=?, channel=coalesce(?, channel), expires_at=?,"
            " message=coalesce(?, message), ephemeral=coalesce(?, ephemeral) WHERE bot=? AND name=? AND key=?"
        )
        channel, message, ephemeral = place
        values = (saved.model, saved.data, channel, saved.expires_at, message, ephemeral, self.bot, *saved.id)
        return sql, values

    def _done(self, key: EventKey) -> Statement:
        # The key stays to recognise copies; the body, with its interaction token, goes.
        return "UPDATE inbox SET done_at=?, body=x'' WHERE bot=? AND key=?", (self._now(), self.bot, key)

    async def fail(self, event: Event, failure: Failure) -> None:
        insert = (
            "INSERT OR REPLACE INTO failed(bot, key, body, failed_at, type, text, place, runs, applied)"
            " SELECT ?, ?, ?, ?, ?, ?, ?, coalesce(sum(runs), 0), coalesce(sum(done_at IS NOT NULL), 0)"
            " FROM inbox WHERE bot=? AND key=?"
        )
        body = without_token(event.body)
        values = (self.bot, event.key, body, self._now(), *failure, self.bot, event.key)
        # "+bot" keeps SQLite from the index that begins with it, by which all rows would be sorted for every failure.
        newest = "SELECT id FROM failed WHERE +bot=? ORDER BY id DESC LIMIT 1 OFFSET ?"
        trim = f"DELETE FROM failed WHERE +bot=? AND id <= ({newest})"
        trimmed = (self.bot, self.bot, self._max_failed)
        await self._write(statements((insert, values), self._done(event.key), (trim, trimmed)))

    async def failed(self) -> list[FailedEvent]:
        sql = "SELECT key, failed_at, runs, applied, type, text, place FROM failed WHERE bot=? ORDER BY id"
        rows = await self._read(sql)
        return [FailedEvent(row[0], row[1], row[2], bool(row[3]), Failure(*row[4:])) for row in rows]

    async def retry_failed(self, keys: Sequence[str]) -> int:
        back = (
            "INSERT INTO inbox(bot, key, body, accepted_at, runs) SELECT bot, key, body, failed_at, 0 FROM failed"
            f" WHERE {CHOSEN} AND NOT applied"
            " ON CONFLICT(bot, key) DO UPDATE SET body=excluded.body, runs=0, done_at=NULL"
        )
        chosen = (self.bot, not keys, json.dumps(list(keys)))
        return await self._write(statements((back, chosen), (f"DELETE FROM failed WHERE {CHOSEN}", chosen)))

    async def discard_failed(self, keys: Sequence[str]) -> int:
        chosen = (self.bot, not keys, json.dumps(list(keys)))
        return await self._write(statements((f"DELETE FROM failed WHERE {CHOSEN}", chosen)))

    async def obey(self) -> bool:
        orders = take_orders(self.path, self.bot)
        for action, keys in orders:
            act = self.retry_failed if action == "retry" else self.discard_failed
            log.info("%s: %d failed events, as the command line asked", action, await act(keys))
        return bool(orders)

    async def backup(self, file: Path) -> None:
        """Write a copy of the database, as it is at this moment, into a new file for this user alone."""
        if await asyncio.to_thread(file.exists):
            raise OperatorError(f"{file} exists. Name a file that does not; a backup overwrites nothing.")
        open_private(str(file), str(file))
        # VACUUM INTO reads in one snapshot and holds nobody up; copying the files of a live database corrupts it.
        copying = asyncio.ensure_future(self._reader.execute("VACUUM INTO ?", (str(file),)))
        try:
            await asyncio.shield(copying)
        except BaseException as error:  # also when it is interrupted: half a backup must not look like one
            await self._reader.interrupt()
            await asyncio.gather(copying, return_exceptions=True)  # else it would make the file again
            await asyncio.to_thread(file.unlink)
            if isinstance(error, sqlite3.Error):
                raise OperatorError(explain_sqlite(error, str(file))) from error
            raise

    async def release(self) -> None:
        sql = "UPDATE inbox SET runs=0 WHERE bot=? AND done_at IS NULL"
        await self._write(statements((sql, (self.bot,))))

    async def load(self, id: RecordId) -> Saved | None:
        sql = f"SELECT {RECORD} FROM record WHERE bot=? AND name=? AND key=? AND {LIVES}"
        rows = await self._read(sql, *id, self._now())
        return saved_from(rows[0]) if rows else None

    async def behind(self) -> list[Saved]:
        sql = f"SELECT {RECORD} FROM record WHERE bot=? AND shown < version AND message IS NOT NULL AND {LIVES}"
        return [saved_from(row) for row in await self._read(sql, self._now())]

    def note_shown(self, id: RecordId, version: int, place: Place | None) -> None:
        sql = (
            "UPDATE record SET shown=max(shown, ?), channel=coalesce(?, channel), message=coalesce(?, message),"
            " ephemeral=coalesce(?, ephemeral) WHERE bot=? AND name=? AND key=?"
        )
        values = (version, *(place or (None, None, None)), self.bot, *id)
        self._write_later(("shown", id, bool(place)), version, statements((sql, values)))

    async def cursor(self, shard: int, fingerprint: str) -> Cursor | None:
        columns = "shard, fingerprint, session, seq, resume_url, me, started_at"
        sql = f"SELECT {columns} FROM cursor WHERE bot=? AND shard=?"
        rows = await self._read(sql, shard)
        if rows and rows[0][1] != fingerprint:
            await self.forget(shard, "the token, the intents or the number of shards changed")
        elif rows and rows[0][-1] < self._now() - SESSION_AGE_MAX_S:
            await self.forget(shard, "it is a month old")
        else:
            return Cursor(*rows[0][:-1]) if rows else None
        return None

    async def forget(self, shard: int, why: str) -> None:
        self._lazy = {what: note for what, note in self._lazy.items() if what[:2] != ("cursor", shard)}
        where, row = "WHERE bot=? AND shard=?", (self.bot, shard)
        gap = f"INSERT INTO gap(bot, shard, since, until, why) SELECT bot, shard, saved_at, ?, ? FROM cursor {where}"
        log.warning("the gateway session cannot be resumed (%s): events since its end may be missing", why)
        await self._write(statements((gap, (self._now(), why, *row)), (f"DELETE FROM cursor {where}", row)))

    async def purge(self) -> int:
        # "+bot" as above: by that index every step would walk all rows of this bot.
        oldest = "SELECT id FROM inbox WHERE +bot=? ORDER BY id LIMIT 500"
        # Also what was done in a future that a wrong clock once believed in: it would keep all that follows for ever.
        old = f"DELETE FROM inbox WHERE id IN ({oldest}) AND (done_at < ? OR done_at > ?)"
        keys = (old, (self.bot, self._now() - KEYS_KEPT_S, self._now() + KEYS_KEPT_S))
        expired = "SELECT name, key FROM record WHERE +bot=? AND expires_at < ? LIMIT 500"
        records = f"DELETE FROM record WHERE bot=? AND (name, key) IN ({expired})"
        steps = keys, (records, (self.bot, self.bot, self._now()))
        return await self._write(lambda db: sum(db.execute(*step).rowcount for step in steps))


class MemoryStore(SQLiteStore):
    """The same store in memory: for trying things out. It ends with the process, and so does everything in it."""

    def __init__(self, bot: BotId, *, max_failed: int = 10_000, now: Clock = time.time) -> None:
        super().__init__(":memory:", bot, max_failed=max_failed, now=now)


RECORD = "name, key, version, model, data, shown, channel, message, ephemeral, expires_at"
CHOSEN = "bot=? AND (? OR key IN (SELECT value FROM json_each(?)))"
LIVES = "(expires_at IS NULL OR expires_at > ?)"


def saved_from(row: Sequence[Any]) -> Saved:
    """Return the record that a row of RECORD columns holds."""
    name, key, version, model, data, shown, channel, message, ephemeral, expires_at = row
    place = Place(channel, message, bool(ephemeral)) if message is not None else None
    return Saved(RecordId(name, key), version, model, data, shown, place, expires_at)


def examine(db: sqlite3.Connection, path: str) -> None:
    """Raise OperatorError when the file is not ours to use, with nothing in it changed."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    ours = db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
    if not ours and db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise OperatorError(f"{path} is the database of another program. Set STORE to a file of the bot's own.")
    if version > len(MIGRATIONS):
        raise OperatorError(
            f"{path} was written by a newer bot.py (tables of version {version}, this one knows {len(MIGRATIONS)})."
            " Use that bot.py, or set STORE to another file."
        )


def prepare(db: sqlite3.Connection) -> None:
    """Bring the tables to this version, and write once: a read-only file opens fine and fails at its first write."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    for number, script in enumerate(MIGRATIONS[version:], version + 1):
        pragmas = f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={number};"
        db.executescript(f"BEGIN IMMEDIATE; {script}; {pragmas} COMMIT;")
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "journal_size_limit=4194304"):
        db.execute(f"PRAGMA {pragma}").fetchall()
    db.execute("INSERT OR REPLACE INTO meta VALUES('opened_at', ?)", (time.time(),))


# ---- 4. Components ---------------------------------------------------------------------------------------------------
# What a message is made of: Discord's Components V2, written as calls that nest. Interactive ones name the handler they
# call. `assemble` checks a whole message against Discord's limits, so that a mistake is found where the message is
# made, in words, and not by a refusal from Discord after the state was changed.

Handler: TypeAlias = Callable[..., Awaitable[None]]
NameId: TypeAlias = Callable[[Handler, tuple[Any, ...]], str]  # gives a component the custom id that calls its handler
ROW, BUTTON, SELECT, SECTION, TEXT, THUMBNAIL, GALLERY, SEPARATOR, CONTAINER = 1, 2, 3, 9, 10, 11, 12, 14, 17
Style: TypeAlias = Literal["primary", "secondary", "success", "danger"]
STYLES = MappingProxyType({"primary": 1, "secondary": 2, "success": 3, "danger": 4, "link": 5})


class Component:
    """A piece of a message: Discord's JSON, with a call of a handler where the custom id will stand."""

    def __init__(self, kind: int, call: tuple[Handler, tuple[Any, ...]] | None = None, **fields: Any) -> None:
        self.call = call
        given = {name: value for name, value in fields.items() if value is not None or name == "accessory"}
        self.fields: JSON = {"type": kind, **given}

    def build(self, name_id: NameId) -> JSON:
        """Return its JSON."""
        payload = dict(self.fields)
        if self.call:
            payload["custom_id"] = name_id(*self.call)
        if "components" in payload:
            payload["components"] = [build(child, name_id) for child in payload["components"]]
        if "accessory" in payload:
            payload["accessory"] = build(payload["accessory"], name_id)
        if "options" in payload:
            payload["options"] = [option_json(each) for each in payload["options"]]
        if "items" in payload:
            pictures = [build(each, name_id) for each in payload["items"]]
            check_children(pictures, frozenset({THUMBNAIL}), "stand in a gallery")
            payload["items"] = [{name: value for name, value in each.items() if name != "type"} for each in pictures]
        return payload


Layout: TypeAlias = Component | Sequence[Component]


def TextDisplay(content: str) -> Component:
    """Text with Discord's markdown, at most 4,000 characters in a whole message."""
    return Component(TEXT, content=content)


def Container(*children: Component, accent: int | None = None, spoiler: bool = False) -> Component:
    """A box around other components, with a coloured edge when `accent` (0xRRGGBB) is given."""
    return Component(CONTAINER, components=children, accent_color=accent, spoiler=spoiler)


def Row(*children: Component) -> Component:
    """One to five buttons, or one select, side by side."""
    return Component(ROW, components=children)


def Button(
    handler: Handler, *args: Any, label: str = "", style: Style = "primary", emoji: str = "", disabled: bool = False
) -> Component:
    """A button that calls a handler of its view: `Button(self.remove, item_id, label="✕")`.

    What stands between handler and label is passed on to it, typed, through the custom id (100 characters in all).
    `emoji` is a Unicode emoji, or `<:name:id>` for one of a server's own.
    """
    return Component(BUTTON, (handler, args), **button_look(style, label, emoji, disabled))


def LinkButton(url: str, *, label: str = "", emoji: str = "", disabled: bool = False) -> Component:
    """A button that opens an address. No handler is called."""
    return Component(BUTTON, url=url, **button_look("link", label, emoji, disabled))


def button_look(style: str, label: str, emoji: str, disabled: bool) -> JSON:
    """Return the fields that all buttons share."""
    at = f'button "{label}"' if label else "button"
    if style not in STYLES:
        raise LayoutError(f"{at}: {style!r} is no style. Write one of primary, secondary, success, danger.")
    return {"style": STYLES[style], "label": label or None, "emoji": emoji_json(emoji, at), "disabled": disabled}


class Option(NamedTuple):
    """A choice of a Select. `value` is what the handler finds in `ctx.values`; the label when it is left out."""

    label: str
    value: str = ""
    description: str = ""
    emoji: str = ""
    default: bool = False


def Select(
    handler: Handler,
    *args: Any,
    options: Sequence[Option | str],
    placeholder: str = "",
    min_values: int = 1,
    max_values: int = 1,
    disabled: bool = False,
) -> Component:
    """A menu of 1 to 25 options; the handler finds what was chosen in `ctx.values`."""
    rules: JSON = {"min_values": min_values, "max_values": max_values, "disabled": disabled}
    return Component(SELECT, (handler, args), options=options, placeholder=placeholder or None, **rules)


def Section(*texts: Component, accessory: Component) -> Component:
    """One to three texts with a button or a thumbnail beside them."""
    return Component(SECTION, components=texts, accessory=accessory)


def Thumbnail(url: str, *, description: str = "", spoiler: bool = False) -> Component:
    """A small picture, the accessory of a Section."""
    return Component(THUMBNAIL, media={"url": url}, description=description or None, spoiler=spoiler)


def MediaGallery(*items: str | Component) -> Component:
    """One to ten pictures or videos, given by their addresses or as Thumbnails (with description and spoiler)."""
    return Component(GALLERY, items=[Thumbnail(item) if isinstance(item, str) else item for item in items])


def Separator(*, divider: bool = True, large: bool = False) -> Component:
    """A gap between components, with a line unless `divider` is False."""
    return Component(SEPARATOR, divider=divider, spacing=2 if large else 1)


def emoji_json(emoji: str, at: str) -> JSON | None:
    """Return an emoji as Discord wants it, or None for ""."""
    if not emoji:
        return None
    with contextlib.suppress(ValueError):
        parsed = hikari.Emoji.parse(emoji)
        if isinstance(parsed, hikari.CustomEmoji):
            return {"id": str(parsed.id), "name": parsed.name, "animated": parsed.is_animated}
        if not emoji.isascii():
            return {"name": emoji}
    raise LayoutError(f"{at}: {emoji!r} is no emoji. Paste one, or write <:name:id>.")


def option_json(option: Option | str) -> JSON:
    """Return an option as Discord wants it."""
    option = Option(option) if isinstance(option, str) else option
    payload: JSON = {"label": option.label, "value": option.value or option.label, "default": option.default}
    more = {"description": option.description, "emoji": emoji_json(option.emoji, f'option "{option.label}"')}
    return payload | {name: value for name, value in more.items() if value}


class Built(hikari.api.ComponentBuilder):
    """A finished component as hikari takes it."""

    __slots__ = ("_payload",)

    def __init__(self, payload: JSON) -> None:
        self._payload = payload

    @property
    def type(self) -> hikari.ComponentType:
        return hikari.ComponentType(self._payload["type"])

    @property
    def id(self) -> hikari.UndefinedType:
        return hikari.UNDEFINED  # Discord numbers the components itself

    def build(self) -> tuple[JSON, Sequence[Any]]:
        return self._payload, ()


class Limits(NamedTuple):
    """Discord's rules for one type, as of July 2026: least and most of a field, and what may stand inside."""

    name: str
    lengths: tuple[tuple[str, int, int], ...] = ()
    inside: frozenset[int] = frozenset()
    beside: frozenset[int] = frozenset()  # as an accessory


TOP_LEVEL = frozenset({ROW, SECTION, TEXT, GALLERY, SEPARATOR, CONTAINER})
COMPONENTS_MAX, TEXT_MAX = 40, 4_000  # in one message, nested ones counted
LIMITS: Mapping[int, Limits] = {
    ROW: Limits("row", (("components", 1, 5),), frozenset({BUTTON, SELECT})),
    BUTTON: Limits("button", (("label", 1, 80), ("url", 1, 512), ("custom_id", 1, CUSTOM_ID_MAX))),
    SELECT: Limits("select", (("options", 1, 25), ("placeholder", 1, 150), ("custom_id", 1, CUSTOM_ID_MAX))),
    SECTION: Limits("section", (("components", 1, 3),), frozenset({TEXT}), frozenset({BUTTON, THUMBNAIL})),
    TEXT: Limits("text", (("content", 1, TEXT_MAX),)),
    THUMBNAIL: Limits("thumbnail"),
    GALLERY: Limits("gallery", (("items", 1, 10),)),
    SEPARATOR: Limits("separator"),
    CONTAINER: Limits("container", (("components", 1, COMPONENTS_MAX),), TOP_LEVEL - {CONTAINER}),
}
OPTION_LENGTHS = (("label", 1, 100), ("value", 1, 100), ("description", 1, 100))


def build(component: Any, name_id: NameId) -> JSON:
    """Return a component's JSON. Raises LayoutError when it is none."""
    if not isinstance(component, Component):
        raise LayoutError(f"{component!r} is no component. Text goes into TextDisplay(…).")
    return component.build(name_id)


def assemble(render: Callable[[], Layout], name_id: NameId, where: str) -> list[Built]:
    """Return what hikari sends for a layout. Raises LayoutError, naming `where`, component and rule."""
    try:
        layout = render()
    except LayoutError as error:
        raise LayoutError(f"{where}: {error}") from None
    parts: Sequence[Any] = layout if isinstance(layout, list | tuple) else [layout]
    try:
        payloads = [build(part, name_id) for part in parts]
        check_message(payloads)
    except LayoutError as error:
        raise LayoutError(f"{where}: {error}") from None
    except (TypeError, AttributeError, LookupError) as error:
        raise LayoutError(f"{where}: a component was given a value of a wrong type: {error}") from error
    return [Built(payload) for payload in payloads]


def check_message(payloads: Sequence[JSON]) -> None:
    """Raise LayoutError when Discord would refuse a message of these components."""
    found = [each for payload in payloads for each in walk(payload)]
    if not payloads:
        raise LayoutError("there is no component in it. Discord refuses an empty message.")
    check_children(payloads, TOP_LEVEL, "stand alone; put it into a Row or a Section")
    for each in found:
        check_component(each)
    if len(found) > COMPONENTS_MAX:
        raise LayoutError(f"{len(found)} components, nested ones counted; Discord allows {COMPONENTS_MAX}.")
    text = sum(len(each["content"]) for each in found if each["type"] == TEXT)
    if text > TEXT_MAX:
        raise LayoutError(f"its texts have {text} characters together; Discord allows {TEXT_MAX:,}.")
    seen: set[str] = set()
    for each in (each for each in found if "custom_id" in each):
        if each["custom_id"] in seen:
            raise LayoutError(
                f"{describe(each)}: another component calls the same handler with the same arguments."
                " Give one of them an argument that tells them apart."
            )
        seen.add(each["custom_id"])


def walk(payload: JSON) -> Iterator[JSON]:
    """Yield the component and every one inside it."""
    yield payload
    for child in (*payload.get("components", ()), *([payload["accessory"]] if "accessory" in payload else ())):
        yield from walk(child)


def describe(payload: JSON) -> str:
    """Return how a person would point at the component."""
    text = str(payload.get("label") or payload.get("content") or payload.get("placeholder") or "")
    name = LIMITS[payload["type"]].name
    return f'{name} "{text[:30]}{"…" if len(text) > 30 else ""}"' if text else name


def check_children(children: Iterable[JSON], allowed: frozenset[int], place: str) -> None:
    """Raise LayoutError when one of the components may not stand there."""
    for child in children:
        if child["type"] not in allowed:
            raise LayoutError(f"{describe(child)} cannot {place}.")


def check_component(payload: JSON) -> None:
    """Raise LayoutError when the component breaks a rule of its own type."""
    kind, at = payload["type"], describe(payload)
    limits, children = LIMITS[kind], payload.get("components", ())
    check_lengths(payload, limits.lengths, at)
    check_children(children, limits.inside, f"stand in a {limits.name}")
    check_children([payload["accessory"]] if "accessory" in payload else [], limits.beside, "stand beside a section")
    if kind == ROW and len(children) > 1 and any(child["type"] == SELECT for child in children):
        raise LayoutError(f"{at}: a select needs a row of its own.")
    if kind == BUTTON and not payload.get("label") and not payload.get("emoji"):
        raise LayoutError(f"{at}: a button needs a label or an emoji.")
    if kind == CONTAINER and not 0 <= payload.get("accent_color", 0) <= 0xFFFFFF:
        raise LayoutError(f"{at}: its accent is no colour. Write it as 0xRRGGBB.")
    for item in payload.get("items", [payload] if kind == THUMBNAIL else []):
        check_lengths(item, (("description", 1, 1_024),), at)
        check_address(item["media"], "https?", at)
    check_address(payload, "https?|discord", at)
    if kind == SELECT:
        check_select(payload, at)


def check_select(payload: JSON, at: str) -> None:
    """Raise LayoutError when options or the numbers of values break a rule."""
    options, low, high = payload["options"], payload["min_values"], payload["max_values"]
    for option in options:
        check_lengths(option, OPTION_LENGTHS, f'{at}, option "{option["label"][:30]}"')
    if len({option["value"] for option in options}) < len(options):
        raise LayoutError(f"{at}: two options have the same value.")
    if not (0 <= low <= high and 1 <= high <= len(options)):
        raise LayoutError(f"{at}: min_values={low}, max_values={high} do not fit {len(options)} options.")
    if sum(option["default"] for option in options) > high:
        raise LayoutError(f"{at}: more options are chosen by default than max_values={high}.")


def check_lengths(payload: JSON, lengths: tuple[tuple[str, int, int], ...], at: str) -> None:
    """Raise LayoutError when a field has too few or too many characters or entries."""
    for name, low, high in lengths:
        value, unit = payload.get(name, ""), "characters"
        if name in ("components", "options", "items"):
            unit = "entries"
        elif not isinstance(value, str):
            raise LayoutError(f'{at}: {name} is {value!r} and must be text. Write f"{{…}}" or str(…).')
        if name in payload and not low <= len(value) <= high:
            raise LayoutError(f"{at}: {name} has {len(value)} {unit}; Discord allows {low} to {high:,}.")


def check_address(payload: JSON, schemes: str, at: str) -> None:
    """Raise LayoutError when it has a `url` that Discord does not take."""
    check_lengths(payload, (("url", 1, 2_048),), at)
    if "url" in payload and not re.fullmatch(rf"({schemes})://[^/\s]\S*", payload["url"]):
        raise LayoutError(f"{at}: url {payload['url']!r} is no address. Begin it with https://")


# ---- 5. Records and views --------------------------------------------------------------------------------------------
# A view is typed state, how it looks (`render`), and what its components do (`@handler`). Its state is a record in the
# store; a custom id names view, record, handler and arguments, so that a click finds its way after any restart.
# Decorators only mark a class or method; `app.add` puts it into the registry. What a handler is given, the
# ComponentContext, comes in the next section.


class InStore(NamedTuple):
    """The state of a view is kept in the store, for `ttl` seconds after it was sent; None: for ever."""

    ttl: float | None = None


class AutoDefer(enum.Enum):
    """What happens 2 s after an interaction came in if nobody has answered it yet; Discord gives up after 3 s."""

    UPDATE = Reply.DEFERRED_MESSAGE_UPDATE  # nothing to see; the message may be changed later
    MESSAGE = Reply.DEFERRED_MESSAGE_CREATE  # "… is thinking"; the first `respond` replaces it
    OFF = 0


class Registration(NamedTuple):
    """What `@register` says about a class."""

    name: str
    version: int
    state: InStore
    auto_defer: AutoDefer


class View(msgspec.Struct):
    """A message with state: its fields are the state, `render` says how it looks, handlers change it (section 11)."""

    registration: ClassVar[Registration]

    def render(self) -> Layout:
        """Return the message that shows this state. Called often: it must not change anything or wait."""
        raise NotImplementedError(f"{type(self).__name__} has no render(self).")

    async def check(self, ctx: ComponentContext) -> bool:
        """Return whether this person may use the view. False: they are told that it is not for them."""
        return True

    @classmethod
    async def on_state_missing(cls, ctx: ComponentContext) -> None:
        """Answer a click on a message whose state is gone: its ttl is over, or the store is another one."""
        await ctx.respond(ctx.texts.expired, ephemeral=True)

    @classmethod
    def migrate(cls, version: int, state: JSON) -> JSON:
        """Return a state that an older `version` of this class saved in the form this one has."""
        raise StateUnreadableError(f"{cls.registration.name}: no migrate() from version {version}.")

    @classmethod
    def example(cls) -> View:
        """Return an instance for `python bot.py check` to render; override it where made-up values break render."""
        return msgspec.convert(made_up(cls), cls, dec_hook=read_id)


EXAMPLES: Mapping[Any, Any] = MappingProxyType(
    {str: "example", bool: False, int: 1, float: 1.0, list: (), set: (), dict: {}, hikari.Snowflake: 1}
)


def made_up(kind: Any) -> Any:
    """Return a value that converts to the type, or raise TypeError when it is none of the simple ones."""
    plain_kind = typing.get_origin(kind) or kind
    if plain_kind in (Annotated, Literal):
        return made_up(kind.__origin__) if plain_kind is Annotated else kind.__args__[0]
    if inspect.isclass(kind) and issubclass(kind, enum.Enum):
        return next(iter(kind)).value
    if plain_kind in EXAMPLES:
        return EXAMPLES[plain_kind]
    if inspect.isclass(plain_kind) and issubclass(plain_kind, msgspec.Struct):
        return {each.name: made_up(each.type) for each in msgspec.structs.fields(plain_kind) if each.required}
    if type(None) in typing.get_args(kind):
        return None
    raise TypeError(f"there is no example for {kind}")


def read_id(kind: type[Any], value: Any) -> Any:
    """Return an id that a field declares as hikari.Snowflake."""
    if kind is hikari.Snowflake:
        return hikari.Snowflake(value)
    raise TypeError(f"{kind} cannot be kept in a state")


FOR_EVER = InStore()
V = TypeVar("V", bound=View)
F = TypeVar("F", bound=Handler)
NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")


def register(
    *, name: str, version: int = 1, state: InStore = FOR_EVER, auto_defer: AutoDefer = AutoDefer.UPDATE
) -> Callable[[type[V]], type[V]]:
    """Mark a view class. `name` is in every custom id and in the store for ever: never change or reuse it.

    Raise `version` when fields change so that old states do not fit, and write `migrate`.
    """

    def mark(cls: type[V]) -> type[V]:
        cls.registration = Registration(name, version, state, auto_defer)
        return cls

    return mark


@typing.overload
def handler(function: F) -> F: ...
@typing.overload
def handler(*, auto_defer: AutoDefer) -> Callable[[F], F]: ...
def handler(function: F | None = None, *, auto_defer: AutoDefer | None = None) -> F | Callable[[F], F]:
    """Mark a method that components may call: `async def name(self, ctx, …)`. Its name is in every custom id."""

    def mark(method: F) -> F:
        method.__dict__["auto_defer"] = auto_defer
        return method

    return mark(function) if function else mark


def is_marked(thing: object, mark: Literal["auto_defer", "command"]) -> bool:
    """Return whether @handler or @command marked it."""
    return mark in getattr(thing, "__dict__", {})


class Route(NamedTuple):
    """A handler of a registered view: how to call it and how to read its arguments."""

    view: type[View]
    function: Handler
    arguments: msgspec.json.Decoder[tuple[Any, ...]]
    auto_defer: AutoDefer
    place: str  # "Poll.vote_yes", for messages


class Views:
    """The registry: which view and handler a custom id means."""

    def __init__(self) -> None:
        self.classes: dict[str, type[View]] = {}
        self._routes: dict[tuple[str, str], Route] = {}

    def add(self, cls: type[View]) -> None:
        """Register a marked view. Raises OperatorError when it cannot work."""
        registration = cls.__dict__.get("registration")
        if registration is None:
            raise OperatorError(f"{cls.__name__} is not registered. Write @register(name=…, version=1) above it.")
        name = registration.name
        if not NAME.fullmatch(name):
            raise OperatorError(f"{cls.__name__}: {name!r} is no name. Use up to 32 of a-z, 0-9 and _, a letter first.")
        if self.classes.get(name, cls) is not cls:
            raise OperatorError(f"{cls.__name__}: {self.classes[name].__name__} is registered as {name!r} already.")
        self.classes[name] = cls
        for method_name, method in inspect.getmembers(cls, lambda member: is_marked(member, "auto_defer")):
            self._routes[name, method_name] = read_handler(cls, method_name, method)

    def require(self, view: View) -> None:
        """Raise LayoutError when clicks on the view would lead nowhere, or to another class."""
        cls = type(view)
        if cls not in self.classes.values():
            raise LayoutError(f"{cls.__name__} is not known here. List it in your_bot: app.add({cls.__name__})")

    def route(self, view: str, method: str) -> Route | None:
        """Return the handler of that name, or None when this bot has no such view or handler (any more)."""
        return self._routes.get((view, method))


def read_handler(cls: type[View], name: str, method: Handler) -> Route:
    """Return how to call a marked method. Raises OperatorError when its signature cannot be called from a click."""
    place = f"{cls.__name__}.{name}"
    parameters = list(inspect.signature(method).parameters.values())
    if not inspect.iscoroutinefunction(method) or len(parameters) < 2:
        raise OperatorError(
            f"{place} cannot be a handler. Write: async def {name}(self, ctx: ComponentContext) -> None"
        )
    for each in parameters[2:]:
        if each.kind is not each.POSITIONAL_OR_KEYWORD or each.default is not each.empty:
            raise OperatorError(f"{place}: the argument {each.name} must be a plain one. Write {each.name}: int, say")
        if each.annotation is each.empty:
            raise OperatorError(f"{place}: the argument {each.name} has no type. Write for example {each.name}: int")
    try:
        hints = typing.get_type_hints(method)
        types: Any = tuple.__class_getitem__(tuple(hints[each.name] for each in parameters[2:]))
        decoder = msgspec.json.Decoder(types, dec_hook=read_id)
    except Exception as error:  # whatever an annotation may hold
        raise OperatorError(
            f"{place}: {error}. Use types such as int or str, imported where bot.py sees them."
        ) from error
    auto_defer = method.__dict__["auto_defer"] or cls.registration.auto_defer
    method.__dict__["decoder"] = decoder  # so that a component's arguments are checked where it is built
    return Route(cls, method, decoder, auto_defer, place)


# The id codec: poll:Kx3fQ8pAzbQ:vote_yes:5,"a" — view, key of its record, handler, arguments as JSON without brackets.


def encode_id(id: RecordId, method: str, args: tuple[Any, ...]) -> str:
    """Return the custom id that calls the handler for the record. Raises LayoutError when it is too long."""
    arguments = write_json(args)[1:-1].decode()
    custom_id = ":".join((*id, method, arguments) if args else (*id, method))
    if len(custom_id) > CUSTOM_ID_MAX:
        raise LayoutError(
            f"{method}: its arguments take {len(arguments)} characters, {len(custom_id)} with their way"
            f" back; a custom id has {CUSTOM_ID_MAX}. Keep long values in the state and pass a number."
        )
    return custom_id


def decode_id(custom_id: str) -> tuple[RecordId, str, str] | None:
    """Return record, handler and arguments of a custom id, or None when it is not one of ours."""
    parts = custom_id.split(":", 3)
    if len(parts) < 3 or not (NAME.fullmatch(parts[0]) and re.fullmatch(r"[\w-]{11}", parts[1], re.ASCII)):
        return None
    return RecordId(parts[0], parts[1]), parts[2], f"[{parts[3] if len(parts) > 3 else ''}]"


def new_key(event: EventKey | None = None, count: int = 0) -> str:
    """Return a record's key: the same for the same event and count, so that an event run again makes no second one."""
    seed = hashlib.sha256(f"{event}/{count}".encode()).digest()[:8] if event else secrets.token_bytes(8)
    return base64.urlsafe_b64encode(seed).rstrip(b"=").decode()


def lay_out(view: View, id: RecordId) -> list[Built]:
    """Return what hikari sends for the view as the record `id`. Raises LayoutError when it breaks a limit."""

    def name_id(method: Handler, args: tuple[Any, ...]) -> str:
        method_name = getattr(method, "__name__", "")
        function = getattr(method, "__func__", None)
        if getattr(method, "__self__", None) is not view or not is_marked(method, "auto_defer"):
            raise LayoutError(f"{method_name or method!r} is no @handler of this view. Pass self.method.")
        if getattr(type(view), method_name, None) is not function:
            raise LayoutError(f"{method_name} is not the name of its method. Put functools.wraps on its decorator.")
        custom_id = encode_id(id, method_name, args)
        try:
            if decoder := method.__dict__.get("decoder"):
                decoder.decode(write_json(args))
        except msgspec.ValidationError as error:
            raise LayoutError(f"{method_name} cannot be called with {args}: {error}.") from error
        return custom_id

    return assemble(view.render, name_id, f"view {view.registration.name}")


def encode_state(view: View) -> bytes:
    """Return the view's fields as the store keeps them. Raises TypeError for what could not be read again."""
    data = write_json(view)
    try:
        msgspec.json.decode(data, type=type(view), dec_hook=read_id)
    except msgspec.ValidationError as error:
        raise TypeError(f"view {view.registration.name} is not saved: {error}") from error
    return data


def decode_state(cls: type[V], saved: Saved) -> V:
    """Return the view of a record, migrated if need be. Raises StateUnreadableError; the record stays as it is."""
    version = cls.registration.version
    try:
        if saved.model == version:
            return msgspec.json.decode(saved.data, type=cls, dec_hook=read_id)
        if saved.model < version:
            return msgspec.convert(cls.migrate(saved.model, msgspec.json.decode(saved.data)), cls, dec_hook=read_id)
    except Exception as error:  # migrate is the user's code
        raise StateUnreadableError(f"{saved.id.name} {saved.id.key}: {error}") from error
    raise StateUnreadableError(f"{saved.id.name} {saved.id.key} was saved by the newer version {saved.model}.")


def unsaved_fields(view: View, saved: Saved) -> str:
    """Return the names of the fields in which the view differs from its record, or ""."""
    if write_json(view) == saved.data:
        return ""
    before = decode_state(type(view), saved)
    return ", ".join(name for name in view.__struct_fields__ if getattr(view, name) != getattr(before, name))


async def create_record(store: Store, view: View, key: str, now: float) -> tuple[View, Saved]:
    """Save a new view and return it with its record, or the one that an earlier run of the same event saved."""
    name, version, state, _ = view.registration
    expires_at = None if state.ttl is None else now + state.ttl
    saved = Saved(RecordId(name, key), 0, version, encode_state(view), 0, None, expires_at)
    lay_out(view, saved.id)  # what cannot be shown is not saved
    try:
        await store.commit([saved], None)
    except StateConflictError:
        existing = await store.load(saved.id)
        if existing is None:
            raise
        return decode_state(type(view), existing), existing
    return view, saved._replace(version=1, shown=1)


# ---- 6. Contexts and commands ----------------------------------------------------------------------------------------
# What a handler is given: the context says who did what, answers the person within Discord's rules (one first answer
# within 3 s, the rest within 15 minutes) and saves the view. Then slash commands: options are read from a function's
# annotations and registered when Discord has others. The App that a context belongs to is section 10.


# Discord's ids are smaller; a larger number would be refused by the store, and only after the handler has run.
Id: TypeAlias = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


class Interaction(msgspec.Struct):
    """The part of Discord's interaction object that this file reads; the whole is `ctx.interaction`."""

    class Message(msgspec.Struct):
        """The message a component sits on."""

        id: Id
        flags: int = 0

    class Data(msgspec.Struct):
        """What was used: a command with its options, or a component."""

        name: str = ""
        custom_id: str = ""
        values: list[str] = field(default_factory=list[str])
        options: list[JSON] = field(default_factory=list[JSON])

    id: Id
    application_id: Id
    type: int
    token: str = ""
    data: Data = field(default_factory=Data)
    channel_id: Id | None = None
    guild_id: Id | None = None
    member: JSON | None = None
    user: JSON | None = None
    message: Message | None = None
    locale: str = ""


class Answer(enum.Enum):
    """What the first answer of an interaction was; Discord takes one, and everything later depends on it."""

    NONE = "not answered"
    REPLIED = "a message of its own"
    THINKING = "a promised message"
    UPDATED = "its message, changed now or later"
    TAKEN = "answered by an earlier run"
    EXPIRED = "too late"


class Context:
    """What a handler is given: who did what, and ways to answer."""

    auto_defer = AutoDefer.UPDATE
    shown = False  # True: handed to a display, which answers it

    def __init__(self, app: App, event: Event, interaction: Interaction) -> None:
        self.app, self.event = app, event
        self.id, self.channel_id, self.guild_id = interaction.id, interaction.channel_id, interaction.guild_id
        self.locale, self.answer, self.applied = interaction.locale, Answer.NONE, False
        self._interaction, self._gate, self._made = interaction, asyncio.Lock(), 0
        self._reply: hikari.Message | None = None
        self.what = interaction.data.name or interaction.data.custom_id  # for messages: what ran
        self.said = False  # the handler has told the person something
        self.retried = not interaction.token  # the failed list keeps none
        if self.retried:
            self.answer = Answer.EXPIRED

    @functools.cached_property
    def user(self) -> hikari.User:
        """The person who used the command or component."""
        interaction = self._interaction
        return self.app.entities.deserialize_user((interaction.member or {}).get("user") or interaction.user or {})

    @functools.cached_property
    def interaction(self) -> hikari.PartialInteraction:
        """The whole interaction as hikari has it, for what is not here."""
        return self.app.entities.deserialize_interaction(read_json(self.event.body))

    @property
    def texts(self) -> Texts:
        """What the bot says of its own accord, in the person's language where `app.texts` has it."""
        return self.app.texts.get(self.locale) or self.app.texts.get("") or Texts()

    @property
    def token(self) -> str | None:
        """The interaction's token, or None when Discord takes it no more. By Discord's word, for clocks differ."""
        return self._interaction.token if self.answer is not Answer.EXPIRED else None

    async def respond(self, what: str | View | Layout, *, ephemeral: bool = False) -> None:
        """Answer with a new message: text, a view (saved first) or components. `ephemeral`: this person alone sees it.

        May be called again for more messages. Raises LayoutError, and in a command ExpiredError when it is too late.
        """
        view, saved = await self._save(what) if isinstance(what, View) else (what, None)
        body = self._body(view, saved)
        flags = hikari.MessageFlag(body.pop("flags", 0) | (hikari.MessageFlag.EPHEMERAL if ephemeral else 0))
        if await self.answer_first(Reply.MESSAGE_CREATE, Answer.REPLIED, **body, flags=flags):
            message = self._reply
        else:
            message = await self._respond_later(body, flags)
        self.said = True
        if saved and message:
            self.app.store.note_shown(saved.id, saved.version, Place(message.channel_id, message.id, ephemeral))

    async def defer(self) -> None:
        """Tell Discord that the answer takes longer than 3 s. Auto-defer does it after 2 s anyway."""
        way = type(self).auto_defer if self.auto_defer is AutoDefer.OFF else self.auto_defer
        await self.answer_first(way.value, Answer.UPDATED if way is AutoDefer.UPDATE else Answer.THINKING)

    def start_timer(self) -> None:
        """Defer 2 s after the click, as far as the clocks agree, if nobody has answered by then."""
        age = time.time() - hikari.Snowflake(self.id).created_at.timestamp()
        due_s = AUTO_DEFER_AFTER_S - min(max(age, 0), AUTO_DEFER_AFTER_S)
        asyncio.get_running_loop().call_later(due_s, self._defer_if_unanswered)

    def _defer_if_unanswered(self) -> None:
        if self.answer is Answer.NONE and self.auto_defer is not AutoDefer.OFF and self.app.gateway.is_alive:
            self.app.spawn(self.defer())

    async def _save(self, view: View) -> tuple[View, Saved]:
        self._made += 1
        self.app.views.require(view)
        return await create_record(self.app.store, view, new_key(self.event.key, self._made), time.time())

    def _body(self, what: str | View | Layout, saved: Saved | None) -> JSON:
        if isinstance(what, str):
            if not 0 < len(what) <= 2_000:
                raise LayoutError(f"respond: the text has {len(what)} characters; Discord allows 1 to 2,000.")
            return {"content": what}
        flags = hikari.MessageFlag.IS_COMPONENTS_V2
        if isinstance(what, View) and saved:
            return {"components": lay_out(what, saved.id), "flags": flags}
        return {"components": assemble(lambda: typing.cast("Layout", what), no_handler, "respond"), "flags": flags}

    async def answer_first(self, kind: Any, answer: Answer, **body: Any) -> bool:
        """Send the first answer and return True; False when there is one already or it is too late for one."""
        async with self._gate:  # the auto-defer timer and the handler may both be at it
            if self.answer is not Answer.NONE:
                return False
            try:
                sent = await self.app.rest.create_interaction_response(self.id, self._interaction.token, kind, **body)
            except (hikari.NotFoundError, hikari.UnauthorizedError):
                self.answer = Answer.EXPIRED
            except hikari.BadRequestError as error:
                if error.code != ALREADY_ACKNOWLEDGED:
                    raise
                self.answer = Answer.TAKEN
            else:
                self.answer = answer
                self._reply = (sent.resource.message or None) if sent.resource else None
        return self.answer is answer

    async def _respond_later(self, body: JSON, flags: hikari.MessageFlag) -> hikari.Message | None:
        token, application = self.token, self._interaction.application_id
        hidden = bool(flags & hikari.MessageFlag.EPHEMERAL)
        if token is None and self.retried and self.channel_id and not hidden:
            return await self.app.rest.create_message(self.channel_id, **body, flags=flags, nonce=str(self.id))
        if token is None:
            raise ExpiredError("the interaction can no longer be answered")
        # An earlier run may have answered the command with this very text, or only promised it: an edit fits both.
        taken = self.answer is Answer.TAKEN and isinstance(self, CommandContext)
        try:
            thinking = self.answer is Answer.THINKING
            self.answer = Answer.REPLIED if thinking or taken else self.answer
            if taken and hidden:  # promised in public, perhaps: an edit would show everybody what is for one
                taken, thinking = await self._look_at_answer(application, token)
            if taken or (thinking and not hidden):
                return await self.app.rest.edit_interaction_response(application, token, **body)
            if thinking:  # the promised message is public and would make this public too
                await self.app.rest.delete_interaction_response(application, token)
            return await self.app.rest.execute_webhook(application, token, **body, flags=flags)
        except (hikari.NotFoundError, hikari.UnauthorizedError) as error:
            self.answer = Answer.EXPIRED
            raise ExpiredError("the interaction can no longer be answered") from error

    async def _look_at_answer(self, application: int, token: str) -> tuple[bool, bool]:
        """Return whether the answer of an earlier run is for this person alone, and whether it is for everybody."""
        try:
            answer = await self.app.rest.fetch_interaction_response(application, token)
        except hikari.NotFoundError:  # the earlier run took its promise back, and came no further
            return False, False
        hidden = bool(answer.flags & hikari.MessageFlag.EPHEMERAL)
        return hidden, not hidden


ALREADY_ACKNOWLEDGED = 40060  # Discord's code for a second first answer


def no_handler(method: Handler, args: tuple[Any, ...]) -> str:
    """Refuse a component that calls a handler outside a view."""
    raise LayoutError("a component that calls a handler must stand in a view's render().")


class ComponentContext(Context):
    """The context of a click. `values` is what was chosen in a select."""

    def __init__(self, app: App, event: Event, interaction: Interaction) -> None:
        super().__init__(app, event, interaction)
        self.values = interaction.data.values
        self.custom_id = interaction.data.custom_id
        message, channel, hidden = interaction.message, interaction.channel_id, hikari.MessageFlag.EPHEMERAL
        self.place = Place(channel, message.id, bool(message.flags & hidden)) if message and channel else None
        self._bound: tuple[View, Saved] | None = None

    @property
    def bound(self) -> tuple[View, Saved]:
        """The view this click is for, and its record as last loaded or saved."""
        if self._bound is None:
            raise RuntimeError("there is no view here: rerender() works in a view's own handlers, edit() everywhere.")
        return self._bound

    def bind(self, view: View, saved: Saved) -> None:
        """Say which view and record the click is for."""
        self._bound = view, saved

    async def rerender(self) -> None:
        """Save the view and show it. When this returns, the change survives a power cut; the message follows.

        The click is now applied: it is never run again, and a crash leaves its handler where it stopped. Raises
        StateConflictError, with `self` brought to the state that won, when the record was changed by somebody else;
        StateUnreadableError when that state cannot be read; LayoutError, with nothing saved.
        """
        view, saved = self.bound
        layout = lay_out(view, saved.id)
        version, place = view.registration.version, self.place or saved.place
        successor = saved._replace(data=encode_state(view), model=version, place=place)
        # Shielded: a handler that is cancelled here has saved all the same, and must be known to have.
        await asyncio.shield(self.app.spawn(self._save_and_show(view, successor, layout)))

    async def _save_and_show(self, view: View, successor: Saved, layout: list[Built]) -> None:
        try:
            await self.app.store.commit([successor], None if self.applied else self.event.key)
        except StateConflictError:
            await self._adopt_winner()
            raise
        self.applied = self.shown = True
        self._bound = view, successor._replace(version=successor.version + 1)
        self.app.show(self._bound[1], layout, self)

    async def _adopt_winner(self) -> None:
        view, saved = self.bound
        winner = await self.app.store.load(saved.id)
        if winner is None:
            raise StateUnreadableError(f"{saved.id.name} {saved.id.key} is gone: its ttl is over.")
        state = decode_state(type(view), winner)
        for name in view.__struct_fields__:
            setattr(view, name, getattr(state, name))
        self._bound = view, winner

    async def edit(self, layout: Layout) -> None:
        """Change the message the component sits on, without state. Raises LayoutError."""
        components = assemble(lambda: layout, no_handler, "edit")
        if self.shown:
            await asyncio.sleep(0)  # the display goes first: the later wish is what stays
        if await self.answer_first(Reply.MESSAGE_UPDATE, Answer.UPDATED, components=components):
            return
        if self.place is None or not await edit_message(self.app.rest, self.place, self, components):
            log.info("%s: its message is gone or out of reach", self.event.key)

    async def respond(self, what: str | View | Layout, *, ephemeral: bool = False) -> None:
        """Answer with a new message, as in Context; after a rerender it follows that.

        When it is too late for Discord to take it, this is logged and the handler goes on: its click still counts.
        """
        if self.answer is Answer.NONE and (self.shown or (self.place and self.place.ephemeral)):
            # The display goes first; and a reply would leave no way to change an ephemeral message.
            await asyncio.sleep(0)
            await self.answer_first(Reply.DEFERRED_MESSAGE_UPDATE, Answer.UPDATED)
        try:
            await super().respond(what, ephemeral=ephemeral)
        except ExpiredError as error:
            log.info("%s: %s", self.event.key, error)

    @property
    def webhook(self) -> tuple[int, str] | None:
        """Application and token to change the message with, once this click was answered by changing it."""
        token = self.token
        return (self._interaction.application_id, token) if token and self.answer is Answer.UPDATED else None


async def edit_message(rest: REST, place: Place, ctx: ComponentContext | None, components: Sequence[Built]) -> bool:
    """Change a message and return True; False when it is gone or out of reach.

    Through the click's token where there is one, for that is outside the bot's rate limits and reaches ephemeral
    messages; else through the channel.
    """
    if ctx and ctx.webhook:
        with contextlib.suppress(hikari.NotFoundError, hikari.UnauthorizedError):
            await rest.edit_interaction_response(*ctx.webhook, components=components)
            return True
    if place.ephemeral:
        return False
    try:
        await rest.edit_message(place.channel, place.message, components=components)
    except (hikari.NotFoundError, hikari.ForbiddenError):
        return False
    return True


class CommandContext(Context):
    """The context of a slash command."""

    auto_defer = AutoDefer.MESSAGE


class Command(NamedTuple):
    """A slash command and the coroutine that runs it."""

    name: str
    description: str
    function: Handler
    options: tuple[hikari.CommandOption, ...]
    auto_defer: AutoDefer


OPTION_TYPES = MappingProxyType({str: hikari.OptionType.STRING, int: hikari.OptionType.INTEGER})
COMMAND_NAME = re.compile(r"[-_\w]{1,32}")


def command(name: str, description: str, *, auto_defer: AutoDefer = AutoDefer.MESSAGE) -> Callable[[F], F]:
    """Mark a coroutine as a slash command; `app.add` registers it.

        @command("roll", "Roll a die.")
        async def roll(ctx: CommandContext, sides: Annotated[int, "How many sides"] = 6) -> None:
            await ctx.respond(f"{random.randint(1, sides)}")

    Parameters after ctx are its options: str or int, described by Annotated, optional when they have a default.
    """

    def mark(function: F) -> F:
        function.__dict__["command"] = (name, description, auto_defer)
        return function

    return mark


def read_command(function: Handler) -> Command:
    """Return the command of a marked function. Raises OperatorError, naming function and parameter."""
    name, description, auto_defer = function.__dict__["command"]
    place = f"/{name} ({getattr(function, '__name__', '?')})"
    if not COMMAND_NAME.fullmatch(name) or name != name.lower():
        raise OperatorError(f"{place}: {name!r} is no command name. Use 1 to 32 lower-case letters, digits, - and _.")
    if not 1 <= len(description) <= 100:
        raise OperatorError(f"{place}: its description has {len(description)} characters; Discord allows 1 to 100.")
    if not inspect.iscoroutinefunction(function):
        raise OperatorError(f"{place} is no coroutine. Write: async def")
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters:
        raise OperatorError(f"{place} takes no ctx. Write: async def {name}(ctx: CommandContext) -> None")
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception as error:  # whatever an annotation may hold
        raise OperatorError(
            f"{place}: {error}. Use types such as int or str, imported where bot.py sees them."
        ) from error
    options = [read_option(place, each, hints.get(each.name)) for each in parameters[1:]]
    if len(options) > 25:
        raise OperatorError(f"{place}: {len(options)} options; Discord allows 25.")
    options.sort(key=lambda option: not option.is_required)  # Discord wants the required ones first
    return Command(name, description, function, tuple(options), auto_defer)


def read_option(place: str, parameter: inspect.Parameter, hint: Any) -> hikari.CommandOption:
    """Return the option that a parameter stands for. Raises OperatorError when it cannot be one."""
    kind, *notes = typing.get_args(hint) if typing.get_origin(hint) is typing.Annotated else [hint]
    description = next((note for note in notes if isinstance(note, str)), parameter.name.replace("_", " "))
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise OperatorError(f"{place}: the parameter {parameter.name} must be plain, without * and /.")
    if kind not in OPTION_TYPES:
        raise OperatorError(f"{place}: the parameter {parameter.name} must be str or int to be an option.")
    if not COMMAND_NAME.fullmatch(parameter.name) or parameter.name != parameter.name.lower():
        raise OperatorError(f"{place}: {parameter.name} is no option name. Use up to 32 lower-case letters, digits, _.")
    if not 1 <= len(description) <= 100:
        raise OperatorError(f"{place}: the description of {parameter.name} must have 1 to 100 characters.")
    required, type = parameter.default is inspect.Parameter.empty, OPTION_TYPES[kind]
    return hikari.CommandOption(type=type, name=parameter.name, description=description, is_required=required)


def option_values(command: Command, given: Sequence[JSON]) -> dict[str, Any]:
    """Return what the person gave, by parameter. Raises msgspec.ValidationError when it does not fit."""
    kinds = {type: kind for kind, type in OPTION_TYPES.items()}
    types = {option.name: kinds[hikari.OptionType(option.type)] for option in command.options}
    known = [each for each in given if each.get("name") in types]
    return {each["name"]: msgspec.convert(each.get("value"), types[each["name"]]) for each in known}


async def register_commands(
    rest: REST, application: hikari.Snowflake, commands: Sequence[Command], guild: int | None
) -> bool:
    """Make Discord's list of commands equal to ours; return whether anything had to be sent."""
    there = await rest.fetch_application_commands(application, hikari.UNDEFINED if guild is None else guild)
    theirs = [outline(each) for each in there if isinstance(each, hikari.SlashCommand)]
    if len(theirs) == len(there) and sorted(theirs) == sorted(outline(each) for each in commands):
        return False
    builders = [rest.slash_command_builder(each.name, each.description) for each in commands]
    for builder, each in zip(builders, commands, strict=True):
        for option in each.options:
            builder.add_option(option)
    await rest.set_application_commands(application, builders, hikari.UNDEFINED if guild is None else guild)
    return True


def outline(command: Command | hikari.SlashCommand) -> tuple[Any, ...]:
    """Return what matters of a command when it is compared with Discord's."""
    fields = ("name", "type", "description", "is_required", "choices", "channel_types", "autocomplete")
    limits = ("min_value", "max_value", "min_length", "max_length")
    options = [tuple(getattr(each, name) or None for name in fields + limits) for each in command.options or ()]
    extras = bool(getattr(command, "is_nsfw", False)), int(getattr(command, "default_member_permissions", 0))
    return command.name, command.description, options, extras


# ---- 7. Dispatch -----------------------------------------------------------------------------------------------------
# accept ─► read ─► lane of the record ─► load ─► handler ─► one commit (state + applied) ─► lane free ─► show
# Events on one record run one at a time in the order accepted. The lane is free again when the disk has the state, not
# when Discord has answered: showing is a job of its own, one edit at a time and always of the newest version. The App
# that owns it all is section 10.


class Display:
    """Brings one message to its record's newest version: one edit at a time, and never an older one after a newer.

    Of the clicks that wait when an edit ends, one carries the newest version in its own answer, which is outside the
    bot's rate limits; the others are told that their update follows. So a hundred people on one poll cost a few edits.
    """

    def __init__(self, app: App, saved: Saved) -> None:
        self._app, self._id, self._place, self._shown = app, saved.id, saved.place, saved.shown
        self._version, self._layout = 0, list[Built]()
        self._waiting: list[ComponentContext] = []
        self._via: ComponentContext | None = None
        self._kick = asyncio.Event()

    def show(self, saved: Saved, layout: list[Built], click: ComponentContext | None) -> None:
        """Show this version, unless a newer one is on its way, and answer the click."""
        if saved.version > self._version:
            self._version, self._layout, self._place = saved.version, layout, saved.place or self._place
        if click:
            self._waiting.append(click)
        self._kick.set()

    async def run(self) -> None:
        """Edit until the message shows the newest version and no click waits."""
        pauses = itertools.chain(SHOW_RETRY_S, itertools.repeat(SHOW_RETRY_S[-1]))
        while self._waiting or self._shown < self._version:
            clicks, self._waiting = self._waiting, []
            self._kick.clear()
            version = self._version
            carrier = next((click for click in clicks if click.answer is Answer.NONE), None)
            for click in clicks:
                if click is not carrier:
                    self._app.spawn(click.answer_first(Reply.DEFERRED_MESSAGE_UPDATE, Answer.UPDATED))
            try:
                shown = await self._edit(carrier, clicks)
            except (hikari.HikariError, OSError, TimeoutError) as error:
                log.warning("%s %s cannot be shown yet: %s", *self._id, error)
                self._waiting[:0] = [click for click in clicks if click.answer is Answer.NONE]
                await self._pause(next(pauses))
                continue
            if not shown:
                log.info("%s %s: its message is gone or out of reach; the state is kept", *self._id)
            self._shown = max(self._shown, version)
            self._app.store.note_shown(self._id, version, None)

    async def _edit(self, carrier: ComponentContext | None, clicks: list[ComponentContext]) -> bool:
        layout = self._layout
        try:
            if carrier and await carrier.answer_first(Reply.MESSAGE_UPDATE, Answer.UPDATED, components=layout):
                self._via = carrier
                return True
            self._via = next((click for click in reversed(clicks) if click.webhook), self._via)
            return self._place is None or await edit_message(self._app.rest, self._place, self._via, layout)
        except hikari.BadRequestError as error:
            log.error("%s %s: Discord refuses its message: %s", *self._id, error)
            return True  # as good as shown: the next version may be taken

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._kick.wait(), seconds)  # a click that comes in may get through at once


class Lane:
    """The queue in front of one record. `saved` hands the record on, so that a busy one is not read for every click."""

    def __init__(self) -> None:
        self.lock, self.users = asyncio.Lock(), 0
        self.saved: Saved | None = None


class Dispatch:
    """Runs accepted events, each to its end: done, failed, or still in the inbox for the next start."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._lanes: dict[RecordId, Lane] = {}
        self.slots = asyncio.Semaphore(app.config.max_handlers)
        self._gate, self._taking = asyncio.Lock(), asyncio.Lock()

    async def recover(self) -> None:
        """Put what an earlier process left in the queue, in front of anything new.

        Events that were running in two crashes run alone, those with the fewest runs first: if one of them is what
        kills the process, it alone gets to `max_handler_runs` and on the failed list.
        """
        pending = await self._app.store.pending()
        if pending:
            log.info("%d accepted events were left by an earlier run", len(pending))
        once = [event for event in pending if event.runs == 1]
        await asyncio.gather(*(self._app.store.begin(event.key) for event in once))
        for event in once:
            self._app.spawn(self.run(event))
        for event in sorted((each for each in pending if each.runs > 1), key=lambda each: each.runs):
            if event.runs < self._app.config.max_handler_runs:
                self._app.spawn(self.run(event, alone=True))
            else:
                await self._fail(None, event, RuntimeError(f"the process ended {event.runs} times while this ran"))
        self._app.spawn(self._repair_all())
        await self.take_up()

    async def _repair_all(self) -> None:
        async with self._gate:  # before anything new: later, this would be an old reading
            for saved in await self._app.store.behind():
                self._repair(saved)

    def _repair(self, saved: Saved) -> None:
        cls = self._app.views.classes.get(saved.id.name)
        try:
            if cls:
                self._app.show(saved, lay_out(decode_state(cls, saved), saved.id), None)
        except Exception as error:
            log.error("%s %s cannot be shown: %s", *saved.id, error)

    async def take_up(self) -> None:
        """Start the events of the inbox that no handler was started for: retried ones, and those of a clean stop."""
        async with self._taking:  # two at it would run an event twice
            waiting = [event for event in await self._app.store.pending() if not event.runs]
            await asyncio.gather(*(self._app.store.begin(event.key) for event in waiting))
            for event in waiting:
                self._app.spawn(self.run(event))

    async def run(self, event: Event, *, alone: bool = False) -> None:
        """Run one accepted event to its end, after those before it. `alone`: nothing else is started meanwhile."""
        ctx: Context | None = None
        try:
            ctx, run = self._read(event)
            ctx.start_timer()
            await self._gate.acquire()  # a lock lets in in the order of asking
            with contextlib.ExitStack() as gate:
                gate.callback(self._gate.release)
                if alone:
                    await self._app.store.begin(event.key)
                    asyncio.get_running_loop().call_later(ALONE_MAX_S, gate.close)
                else:
                    gate.close()
                await run()
                if not ctx.applied:
                    await self._app.store.commit([], event.key)
            await self._settle(ctx)
        except StoreError as error:
            self._app.stop(error)
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task and task.cancelling():
                raise  # the bot is stopping: the event stays in the inbox
            await self._fail(ctx, event, error)

    def _read(self, event: Event) -> tuple[Context, Callable[[], Awaitable[None]]]:
        interaction = msgspec.json.decode(event.body, type=Interaction, strict=False)
        if interaction.type == hikari.InteractionType.MESSAGE_COMPONENT:
            click = ComponentContext(self._app, event, interaction)
            found = decode_id(click.custom_id)
            if found and (route := self._app.views.route(found[0].name, found[1])):
                click.auto_defer, click.what = route.auto_defer, route.place
                return click, functools.partial(self._click, click, route, found[0], found[2])
            log.warning("%s: no handler for %r. Is its view listed in your_bot?", event.key, click.custom_id)
            return click, functools.partial(click.respond, click.texts.expired, ephemeral=True)
        if interaction.type == hikari.InteractionType.APPLICATION_COMMAND:
            ctx = CommandContext(self._app, event, interaction)
            if command := self._app.commands.get(interaction.data.name):
                ctx.auto_defer, ctx.what = command.auto_defer, f"/{command.name}"
                return ctx, functools.partial(self._command, ctx, command, interaction.data.options)
            log.warning("%s: no command /%s. Is it listed in your_bot?", event.key, interaction.data.name)
            return ctx, functools.partial(ctx.respond, ctx.texts.expired, ephemeral=True)
        raise ValueError(f"an interaction of type {interaction.type} is not for this bot")

    async def _command(self, ctx: CommandContext, command: Command, given: Sequence[JSON]) -> None:
        async with self.slots:
            await command.function(ctx, **option_values(command, given))
        if ctx.answer in (Answer.NONE, Answer.THINKING):
            log.warning("/%s ended without an answer. Call ctx.respond(…) in it.", command.name)

    async def _settle(self, ctx: Context) -> None:
        """Leave nobody waiting for an answer that the handler did not give."""
        try:
            if ctx.answer is Answer.THINKING or (ctx.answer is Answer.NONE and isinstance(ctx, CommandContext)):
                await ctx.respond(ctx.texts.done, ephemeral=True)
            elif ctx.answer is Answer.NONE and not ctx.shown:
                await ctx.answer_first(Reply.DEFERRED_MESSAGE_UPDATE, Answer.UPDATED)
        except Exception as error:  # the handler did its work: this is no failure of its event
            log.warning("%s: the person could not be answered: %s", ctx.event.key, error)

    async def _click(self, click: ComponentContext, route: Route, id: RecordId, raw_arguments: str) -> None:
        arguments = route.arguments.decode(raw_arguments)  # a forged custom id ends here
        async with self._lane(id) as lane, self.slots:
            for attempt in range(1, HANDLER_TRIES + 1):
                saved, lane.saved = await self._load(lane, id), None
                if saved is None:
                    await route.view.on_state_missing(click)
                    return
                try:
                    await self._handle(click, route, saved, arguments)
                    lane.saved = click.bound[1]
                    return
                except (
                    StateConflictError,
                    StateUnreadableError,
                ):  # in the next round it may be gone, or unreadable still
                    if attempt == HANDLER_TRIES or click.applied or click.said:
                        raise

    async def _load(self, lane: Lane, id: RecordId) -> Saved | None:
        if lane.saved and not (lane.saved.expires_at and lane.saved.expires_at <= time.time()):
            return lane.saved
        return await self._app.store.load(id)

    async def _handle(self, click: ComponentContext, route: Route, saved: Saved, arguments: tuple[Any, ...]) -> None:
        view = decode_state(route.view, saved)
        click.bind(view, saved)
        if not await view.check(click):
            if not click.said:
                await click.respond(click.texts.not_for_you, ephemeral=True)
            return
        await route.function(view, click, *arguments)
        if changed := unsaved_fields(view, click.bound[1]):
            log.warning("%s changed %s and did not save it. End it with: await ctx.rerender()", route.place, changed)

    async def _fail(self, ctx: Context | None, event: Event, error: BaseException) -> None:
        failure = Failure.of(error)
        frame = error.__traceback__
        while frame and isinstance(frame.tb_frame.f_locals.get("self"), Dispatch):
            frame = frame.tb_next  # the traceback begins with the handler: the way there is always the same
        trace = None if isinstance(error, ExpiredError) else (type(error), error, frame or error.__traceback__)
        what = f"{event.key} ({ctx.what})" if ctx else event.key
        log.error("%s failed and is on the failed list: %s: %s", what, *failure[:2], exc_info=trace)
        try:
            await self._app.store.fail(event, failure)
            if ctx and not (ctx.answer is Answer.EXPIRED or isinstance(error, ExpiredError)):
                await ctx.respond(ctx.texts.failed, ephemeral=True)
        except StoreError as store_error:
            self._app.stop(store_error)
        except Exception as answer_error:
            log.info("%s: the person could not be told: %s", event.key, answer_error)

    @contextlib.asynccontextmanager
    async def _lane(self, id: RecordId) -> AsyncGenerator[Lane]:
        lane = self._lanes.setdefault(id, Lane())
        lane.users += 1
        try:
            async with lane.lock:  # asyncio's lock lets its waiters in in the order they came
                yield lane
        finally:
            lane.users -= 1
            if not lane.users:
                del self._lanes[id]


# ---- 8. Gateway ------------------------------------------------------------------------------------------------------
# hikari speaks to Discord's gateway; this section makes its session outlive the process. Every payload passes through a
# tap on the shard's transport: interactions are handed to the store with their sequence number, heartbeats wait until
# what they confirm is on disk, and closing never ends the session. tests/test_gateway.py lists hikari's private names
# that are used, so that an upgrade which moves one fails there. The App it hands events to is section 10.

NEW_SESSION = frozenset({4007, 4009})  # close codes after which hikari would send the same RESUME for ever
REFUSED: Mapping[
    int, str
] = {  # close codes after which waiting does not help; after all others the shard connects again
    4004: "Discord refuses the token. Copy it again from your application's page (Bot, Reset Token) to config.env.",
    4010: "Discord refuses the shard. Look at SHARD_COUNT.",
    4011: "Discord wants more shards for this many servers. Raise SHARD_COUNT.",
    4012: "Discord no longer speaks this version of its gateway. Get a newer bot.py and hikari.",
    4013: "Discord does not know one of the intents asked for. Look at app.intents in your_bot.",
    4014: "Discord refuses an intent of app.intents. Switch it on at your application's page (Bot, Intents).",
}


class Ready(msgspec.Struct):
    """What hikari reads of READY without looking whether it is there, and we store."""

    class User(msgspec.Struct):
        """The bot itself."""

        id: Id
        username: str
        discriminator: str

    session_id: str
    resume_gateway_url: str
    user: User
    guilds: list[Any]
    v: Any


class RateLimited(msgspec.Struct):
    """What hikari reads of RATE_LIMITED without looking whether it is there."""

    opcode: int
    retry_after: float
    meta: Any


READ_BY_HIKARI: Mapping[str, type] = MappingProxyType({"READY": Ready, "RATE_LIMITED": RateLimited})
SEQ_MAX = (1 << 63) - 1  # what a store can hold


class Tap:
    """Stands between a shard and its transport."""

    def __init__(self, shard: Shard, transport: Any) -> None:
        self._shard, self._transport = shard, transport
        self._greeting_within_s: float | None = HELLO_WITHIN_S

    async def receive_json(self) -> JSON:
        """Return the next payload, its event handed to the store first. What cannot be read is logged and skipped."""
        while True:
            try:
                async with asyncio.timeout(self._greeting_within_s):
                    payload = await self._transport.receive_json()
                self._greeting_within_s = None  # from now on the heartbeat notices
                if payload["op"] == 0:
                    self._shard.receive(payload)
                elif payload["op"] == 9 and not payload["d"]:
                    await self._shard.forget("Discord says that it is gone")
                return payload
            except hikari.GatewayServerClosedConnectionError as error:
                if error.code in NEW_SESSION:
                    await self._shard.forget(f"Discord closed it with {error.code}")
                if error.code not in REFUSED:
                    raise hikari.GatewayServerClosedConnectionError(error.reason, error.code, True) from None
                raise
            except TimeoutError as error:
                raise hikari.GatewayConnectionError(f"no greeting within {HELLO_WITHIN_S:.0f} s") from error
            except zlib.error as error:  # the stream is lost; a new connection and RESUME bring everything again
                raise hikari.GatewayTransportError(f"the stream cannot be unpacked: {error}") from error
            except (ValueError, TypeError, LookupError, AssertionError, RecursionError) as error:
                log.warning("the gateway sent what cannot be read, it is skipped: %r", error)

    async def send_json(self, data: JSON) -> None:
        """Send a payload. A heartbeat confirms a sequence number, so that must be on disk before."""
        if data["op"] != 1:
            await self._transport.send_json(data)
            return
        try:
            await self._shard.gateway.app.store.flush()
        except StoreError as error:  # nothing is confirmed
            self._shard.gateway.app.stop(error)
            return
        with contextlib.suppress(ConnectionResetError):  # the receiving side notices too, and says so
            await self._transport.send_json(data)

    async def send_close(self, *, code: int, message: bytes) -> None:
        """Close the connection and keep the session."""
        await self._transport.send_close(code=CLOSE_KEEPING_SESSION if code in (1000, 1001) else code, message=message)


class Shard(hikari.impl.GatewayShardImpl):
    """hikari's shard, begun where the stored session ended."""

    __slots__ = ("_tap", "beat", "cursor", "gateway", "received")

    def __init__(self, gateway: Gateway, cursor: Cursor | None, **kwargs: Any) -> None:
        self._tap: Tap | None = None
        self.gateway, self.cursor, self.beat = gateway, cursor, typing.cast("asyncio.Task[Any] | None", None)
        super().__init__(**kwargs)
        if cursor:
            self._session_id, self._seq, self._resume_gateway_url = cursor.session, cursor.seq, cursor.resume_url
            self._user_id = hikari.Snowflake(read_json(cursor.me)["id"])  # no READY follows a RESUME

    @property
    def _ws(self) -> Any:
        return self._tap

    @_ws.setter
    def _ws(self, transport: Any) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        self._tap = None if transport is None else Tap(self, transport)

    def get_user_id(self) -> hikari.Snowflake:
        """Return the bot's own id, also for what is replayed before RESUMED: hikari would say "not connected" then."""
        return super().get_user_id() if self._user_id is None else self._user_id

    async def _heartbeat(self, heartbeat_interval: float) -> None:
        self.beat = asyncio.current_task()
        await super()._heartbeat(heartbeat_interval)

    async def _connect(self) -> Any:
        self.received, connected = 0, False
        try:
            if self._seq is None:  # before the socket is open: it would time out while others have their turn
                await self.gateway.identify_turn(self.id)
            tasks = await super()._connect()
            connected = True
            return tasks
        except hikari.GatewayConnectionError:
            self._resume_gateway_url = None  # that host may be gone for good; the general one resumes sessions too
            raise
        except (aiohttp.ClientError, ValueError) as error:
            self._resume_gateway_url = None  # it is no address at all
            raise hikari.GatewayConnectionError(str(error)) from error
        except hikari.HTTPError as error:
            if isinstance(error, hikari.HTTPResponseError) and error.status < 500:
                raise  # Discord has answered, and means it
            raise hikari.GatewayConnectionError(str(error)) from error  # an outage: hikari waits and comes back
        finally:
            if not connected and self.beat:
                self.beat.cancel()  # hikari would leave it running for ever, beside the next one

    def receive(self, payload: JSON) -> None:
        """Hand a dispatch to the store: an interaction with its cursor, anything else as a cursor that moves on.

        Raises ValueError, TypeError or LookupError when it is none that hikari could read either.
        """
        name, seq, data = payload["t"], payload["s"], payload["d"]
        if not isinstance(name, str) or type(seq) is not int or not 0 <= seq <= SEQ_MAX:
            raise ValueError(f"an event named {name!r:.50} with the number {seq!r:.50}")
        if kind := READ_BY_HIKARI.get(name):
            msgspec.convert(data, kind, strict=False)
        if name == "READY":
            me = write_json({**data["user"], "id": str(int(data["user"]["id"]))})
            url, session = data["resume_gateway_url"], data["session_id"]
            self.cursor = Cursor(self.id, self.gateway.fingerprint, session, seq, url, me)
            self.gateway.app.accept(None, self.cursor)
        elif self.cursor:
            if name == "RESUMED":
                log.info("shard %d has resumed its session: %d events were replayed", self.id, self.received)
            self.received += 1
            self.cursor = self.cursor._replace(seq=seq)
            event = interaction_event(data, f"{self.cursor.session}:{seq}") if name == "INTERACTION_CREATE" else None
            if event:
                self.gateway.app.accept(event, self.cursor)
            else:
                self.gateway.app.store.move_cursor(self.cursor)

    async def forget(self, why: str) -> None:
        """Start over with a new session; what was sent since the last event is recorded as a gap."""
        if self.cursor:
            self.cursor = self._seq = self._session_id = self._resume_gateway_url = None
            await self.gateway.app.store.forget(self.id, why)


def interaction_event(data: Any, otherwise: str) -> Event | None:
    """Return an interaction's event, or None for a question of autocomplete: nobody waits for that after a restart.

    Its key is the same through gateway and HTTP and for every copy; `otherwise` serves where there is no id.
    """
    fields: JSON = typing.cast("JSON", data) if isinstance(data, dict) else {}
    if fields.get("type") == hikari.InteractionType.AUTOCOMPLETE:
        return None
    id = str(fields.get("id"))
    return Event(EventKey(f"interaction:{id if id.isdecimal() else otherwise}"), write_json(data))


class Gateway(hikari.GatewayBot):
    """hikari's bot with shards that resume the stored sessions, and only itself in its cache."""

    def __init__(self, app: App) -> None:
        config = app.config
        # Connections are kept: hikari makes a new one for every answer, for the sake of Windows.
        settings = hikari.impl.HTTPSettings(force_close_transports=sys.platform == "win32")
        cache = hikari.impl.CacheSettings(components=hikari.api.CacheComponents.ME)
        super().__init__(
            config.token, banner=None, logs=None, suppress_optimization_warning=True, intents=app.intents,
            rest_url=config.api, loads=read_json, http_settings=settings, cache_settings=cache,
            auto_chunk_members=False,
        )  # fmt: skip
        self.app, self._count = app, config.shard_count
        # RESUME continues a session as it was identified: with another token, intents and so on it must not be tried.
        identity = [config.token, int(app.intents), self._count, int(self.capabilities)]
        self.fingerprint = hashlib.sha256(write_json(identity)).hexdigest()
        self._turn, self._identified_at = asyncio.Lock(), dict[int, float]()
        self.subscribe(hikari.ShardResumedEvent, self._on_resumed)

    async def live(self) -> None:
        """Connect and stay so until a shard is closed. Raises OperatorError when Discord refuses the bot."""
        try:
            found = [await self.app.store.cursor(shard, self.fingerprint) for shard in range(self._count)]
            self._stored = [cursor for cursor in found if cursor]
            fresh = [shard for shard in range(self._count) if not found[shard]]
            # hikari would refuse to start when too few IDENTIFYs are left; identify_turn waits for them instead.
            await self.start(
                check_for_updates=False, activity=self.app.activity, shard_count=self._count, shard_ids=fresh or [0],
                ignore_session_start_limit=True,
            )  # fmt: skip
            await self.join()
        except hikari.GatewayServerClosedConnectionError as error:
            if sentence := REFUSED.get(int(error.code or 0)):
                raise OperatorError(sentence) from error
            raise
        except hikari.UnauthorizedError as error:
            raise OperatorError(REFUSED[4004]) from error
        except (hikari.HTTPError, hikari.GatewayConnectionError) as error:
            api = self.app.config.api
            raise OperatorError(f"Discord cannot be reached at {api}: {error}. Look at the connection.") from error

    async def _start_one_shard(self, *, shard_id: int, **kwargs: Any) -> None:
        # hikari spaces these calls by 5 s, as IDENTIFY demands. RESUME needs no turn: the first call resumes them all.
        await self.app.recover()
        stored, self._stored = self._stored, []
        await asyncio.gather(*(self._start_shard(cursor.shard, cursor, **kwargs) for cursor in stored))
        if shard_id not in self._shards:
            await self._start_shard(shard_id, None, **kwargs)

    async def _start_shard(self, shard_id: int, cursor: Cursor | None, **kwargs: Any) -> None:
        if cursor:
            self._cache.update_me(self.entity_factory.deserialize_my_user(read_json(cursor.me)))
        for name, word in (
            ("activity", "activity"),
            ("afk", "is_afk"),
            ("idle_since", "idle_since"),
            ("status", "status"),
        ):
            kwargs[f"initial_{word}"] = kwargs.pop(name)
        shard = Shard(
            self, cursor, http_settings=self.http_settings, proxy_settings=self.proxy_settings, intents=self.intents,
            event_manager=self._event_manager, event_factory=self._event_factory, dumps=self._dumps, loads=self._loads,
            shard_id=shard_id, token=self._token, capabilities=self.capabilities, **kwargs,
        )  # fmt: skip
        self._shards[shard_id] = shard  # replayed events come before start() returns
        await shard.start()

    async def identify_turn(self, shard: int) -> None:
        """Wait until the shard may IDENTIFY: one per 5 s and bucket, and as many a day as Discord says."""
        async with self._turn:
            limit = (await self.rest.fetch_gateway_bot_info()).session_start_limit
            if limit.remaining <= 0:
                log.critical("Discord allows no new session before %s; waiting until then", limit.reset_at)
                await asyncio.sleep(limit.reset_after.total_seconds())
            now, bucket = asyncio.get_running_loop().time(), shard % limit.max_concurrency
            await asyncio.sleep(self._identified_at.get(bucket, now - 5) + 5 - now)
            self._identified_at[bucket] = asyncio.get_running_loop().time()

    async def _on_resumed(self, event: hikari.ShardResumedEvent) -> None:
        if self.app.activity:  # the session still shows what an earlier bot.py's IDENTIFY said
            await event.shard.update_presence(activity=self.app.activity)

    async def stop_receiving(self) -> None:
        """Close the connection and keep the session: what comes from now on is replayed at the next start."""
        ends = [shard.close() if shard.is_alive else shard.join() for shard in self.shards.values()]
        await asyncio.gather(*ends, return_exceptions=True)  # what a shard died of is what join() raised
        self._shards.clear()


# ---- 10. Running -----------------------------------------------------------------------------------------------------
# `App` is the running object: what your_bot adds to, what handlers find as ctx.app, and what starts and stops the parts
# in order. It stops on SIGINT, SIGTERM and SIGHUP: no more events are taken, handlers get DRAIN_S to end, and what
# could not end stays in the inbox for the next start.


class App:
    """A bot: its views and commands, its store, and Discord.

    your_bot may set `texts` (what it says of its own accord), `intents` (which other gateway events it wants) and
    `activity` (what people see under its name). `rest` is hikari's REST client and `entities` its entity factory.
    """

    def __init__(self, config: Config, store: Store | None = None) -> None:
        self.config = config
        self.texts: dict[str, Texts] = {"": Texts()}
        self.intents, self.activity = hikari.Intents.NONE, typing.cast("hikari.Activity | None", None)
        self.views, self.commands = Views(), dict[str, Command]()
        self._given_store = store
        self._tasks: set[asyncio.Task[Any]] = set()
        self._displays: dict[RecordId, Display] = {}
        self._ending: BaseException | None = None
        self._recovered = False

    def add(self, *things: Any) -> None:
        """Register views (marked by @register) and commands (marked by @command). Raises OperatorError."""
        for thing in things:
            if inspect.isclass(thing) and issubclass(thing, View):
                self.views.add(thing)
            elif is_marked(thing, "command"):
                command = read_command(typing.cast("Handler", thing))
                if command.name in self.commands:
                    raise OperatorError(f"/{command.name} is there twice. Rename one of the two commands.")
                self.commands[command.name] = command
            else:
                raise OperatorError(f"{thing!r} is neither a view nor a command. Mark it with @register or @command.")

    async def build(self, view: View) -> list[Built]:
        """Save a new view and return the components for one message: `rest.create_message(channel, components=…)`."""
        self.views.require(view)
        view, saved = await create_record(self.store, view, new_key(), time.time())
        return lay_out(view, saved.id)

    async def failed(self) -> list[FailedEvent]:
        """Return the failed list, oldest first."""
        return await self.store.failed()

    async def retry_failed(self, *keys: str) -> int:
        """Run failed events anew (without keys: all of them) and return how many left the list."""
        count = await self.store.retry_failed(keys)
        await self.dispatch.take_up()
        return count

    async def discard_failed(self, *keys: str) -> int:
        """Delete failed events (without keys: all of them) and return how many."""
        return await self.store.discard_failed(keys)

    # What the other sections use.

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run the coroutine beside the caller. The drain waits for it; an error ends in the log."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, StoreError):
            self.stop(error)
        elif error and not isinstance(
            error, StateConflictError | StateUnreadableError
        ):  # those are the handler's to read
            log.warning("%s", error, exc_info=None if isinstance(error, hikari.HikariError) else error)

    def show(self, saved: Saved, layout: list[Built], click: ComponentContext | None) -> None:
        """Bring the record's message to this version and answer the click."""
        if saved.id not in self._displays:
            self._displays[saved.id] = Display(self, saved)
            self.spawn(self._run_display(saved.id))
        self._displays[saved.id].show(saved, layout, click)

    async def _run_display(self, id: RecordId) -> None:
        try:
            await self._displays[id].run()
        finally:
            del self._displays[id]

    def accept(self, event: Event | None, cursor: Cursor | None) -> None:
        """Put an event into the inbox and, when it is on disk, on its way."""
        try:
            accepted = self.store.accept(event, cursor)
        except StoreError as error:  # it refused an earlier one; hikari would only log this, with a traceback
            self.stop(error)
        else:
            accepted.add_done_callback(functools.partial(self._accepted, event))

    def _accepted(self, event: Event | None, accepted: asyncio.Future[int]) -> None:
        if accepted.cancelled():
            return
        if error := accepted.exception():
            self.stop(error)
        elif event and accepted.result():
            self.spawn(self.dispatch.run(event))

    def stop(self, error: BaseException | None = None) -> None:
        """End `run`, which then raises the error."""
        self._ending = self._ending or error
        self._stopping.set()

    # Start and end.

    async def run(self) -> None:
        """Run the bot until it is told to stop. Raises OperatorError, StoreError, or what took a part down."""
        self._stopping, self._started = asyncio.Event(), asyncio.Event()
        self.store = self._given_store or open_store(self.config)
        await self.store.open()
        try:
            self.dispatch = Dispatch(self)
            self.gateway = Gateway(self)
            self.rest, self.entities = self.gateway.rest, self.gateway.entity_factory
            self.gateway.subscribe(hikari.StartedEvent, self._on_started)
            await self._live()
            if self._ending is None:
                await self.store.release()
                left = len(await self.store.pending())
                log.info("stopped; Discord keeps the session for some minutes, and the inbox %d events", left)
        finally:
            await self.store.close()
        if self._ending:
            raise self._ending

    async def _live(self) -> None:
        with stop_signals(self.stop), watched_loop():
            async with asyncio.TaskGroup() as parts:
                house = parts.create_task(self._keep_house())
                gateway = parts.create_task(self._live_on_gateway())
                await self._stopping.wait()
                house.cancel()
                await self._drain()
                gateway.cancel()

    async def _live_on_gateway(self) -> None:
        try:
            await self.gateway.live()
            raise RuntimeError("the gateway connection ended by itself")
        except Exception as error:
            if not self._stopping.is_set():
                self.stop(error)
        finally:
            self._started.set()

    async def recover(self) -> None:
        """Put what was left in front of anything new: Discord has been reached, and no shard connected yet."""
        if not self._recovered:
            self._recovered = True
            await self.dispatch.recover()

    async def _on_started(self, _: hikari.StartedEvent) -> None:
        self._started.set()
        if self._stopping.is_set():
            return
        log.info("%s is running as process %d. Stop it with Ctrl-C.", self.gateway.get_me(), os.getpid())
        self.spawn(self._register_commands())

    async def _register_commands(self) -> None:
        application = await self.rest.fetch_application()
        if await register_commands(self.rest, application.id, list(self.commands.values()), self.config.dev_guild):
            log.info("%d commands were registered", len(self.commands))

    async def _keep_house(self) -> None:
        try:
            for second in itertools.count(1):
                while second % (10 * MINUTE) == 1 and await self.store.purge():
                    pass  # in small steps, so that no click waits behind a long one
                await asyncio.sleep(1)
                if await self.store.obey():
                    await self.dispatch.take_up()
                if second % 10 == 0 and self.dispatch.slots.locked():
                    log.warning("MAX_HANDLERS=%d handlers are running, all others wait", self.config.max_handlers)
        except StoreError as error:
            self.stop(error)

    async def _drain(self) -> None:
        with contextlib.suppress(TimeoutError):  # hikari cannot undo half a start: let it come to its end
            await asyncio.wait_for(self._started.wait(), min(self.config.drain_s, 2))
        await self.gateway.stop_receiving()
        loop, me = asyncio.get_running_loop(), asyncio.current_task()
        deadline = loop.time() + self.config.drain_s
        if not self._ending:
            log.info("stopping; %d handlers and answers have %d s to end", len(self._tasks - {me}), self.config.drain_s)
        while (tasks := self._tasks - {me}) and (left := deadline - loop.time()) > 0:
            await asyncio.wait(tasks, timeout=left)
        for task in tasks:
            task.cancel()
        if tasks and (await asyncio.wait(tasks, timeout=2))[1]:
            log.error("a handler does not let itself be stopped (a bare except?); a second signal ends it")
        if self.gateway.is_alive:
            await self.gateway.close()


# A bot may lie below sys.prefix (/usr, say), so that would name too much.
LIBRARIES = re.compile(rf"<|{re.escape(sysconfig.get_path('stdlib'))}|.*[/\\](?:site|dist)-packages[/\\]")


@contextlib.contextmanager
def watched_loop() -> Generator[None]:
    """Warn when the event loop stands still for a second, naming the line that holds it."""
    loop, thread_id, ended = asyncio.get_running_loop(), threading.get_ident(), threading.Event()

    def watch() -> None:
        while not ended.wait(LOOP_LAG_MAX_S / 4):
            turned = threading.Event()
            loop.call_soon_threadsafe(turned.set)
            if turned.wait(LOOP_LAG_MAX_S) or ended.is_set():
                continue
            stack = traceback.extract_stack(sys._current_frames()[thread_id])  # pyright: ignore[reportPrivateUsage]
            place = ([frame for frame in stack if not LIBRARIES.match(frame.filename)] or stack)[-1]
            where = f"{Path(place.filename).name}:{place.lineno} in {place.name}"
            log.warning("everything waits for %s. Use await there, or asyncio.to_thread.", where)
            while not turned.wait(LOOP_LAG_MAX_S) and not ended.is_set():
                pass

    thread = threading.Thread(target=watch, name="loop watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextlib.contextmanager
def stop_signals(stop: Callable[[], None]) -> Generator[None]:
    """Call `stop` on the first SIGINT, SIGTERM or SIGHUP; a second one ends the process at once, as a kill would."""
    loop, asked = asyncio.get_running_loop(), list[float]()

    def relay(_number: int, _frame: Any) -> None:
        asked.append(time.monotonic())
        if asked[-1] - asked[0] > 1:  # terminals and supervisors may send two at once
            os._exit(1)  # also when the loop is blocked; what was accepted is on disk
        loop.call_soon_threadsafe(stop)

    # asyncio's own add_signal_handler does not exist on Windows; this way is the same everywhere.
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        if before[number] is not signal.SIG_IGN:  # nohup's wish
            signal.signal(number, relay)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, before[number])


def open_store(config: Config) -> SQLiteStore:
    """Return the store that STORE names, not yet open."""
    bot = bot_id_of(config.token)
    if config.store.endswith(":memory:"):
        return MemoryStore(bot, max_failed=config.max_failed)
    return SQLiteStore(config.store.removeprefix("sqlite:"), bot, max_failed=config.max_failed)


# ---- 11. Your bot ----------------------------------------------------------------------------------------------------
# Three examples in rising order: a command that answers, a view with a number, a view that many people click. Delete
# them, write your own here, and list what you wrote in `your_bot`.


@command("ping", "See whether the bot is there.")
async def ping(ctx: CommandContext) -> None:
    await ctx.respond("Pong!")


@register(name="counter", version=1, state=InStore(ttl=WEEK))
class Counter(View):
    """Two buttons that count."""

    count: int = 0

    def render(self) -> Layout:
        return Row(Button(self.add, 1, label=f"{self.count}"), Button(self.add, 10, label="+10", style="secondary"))

    @handler
    async def add(self, ctx: ComponentContext, how_many: int) -> None:
        self.count += how_many
        await ctx.rerender()


@command("counter", "Post a button that counts.")
async def counter(ctx: CommandContext) -> None:
    await ctx.respond(Counter())


@register(name="poll", version=1, state=InStore(ttl=WEEK))
class Poll(View):
    """A question on which everybody votes once."""

    question: str
    yes: int = 0
    no: int = 0
    voters: list[int] = field(default_factory=list[int])

    def render(self) -> Layout:
        return Container(
            TextDisplay(f"## {self.question}"),
            Row(
                Button(self.vote, True, label=f"Yes: {self.yes}", style="success"),
                Button(self.vote, False, label=f"No: {self.no}", style="danger"),
            ),
        )

    @handler
    async def vote(self, ctx: ComponentContext, agree: bool) -> None:
        if ctx.user.id in self.voters:
            await ctx.respond("You already voted.", ephemeral=True)
            return
        self.voters.append(ctx.user.id)
        if agree:
            self.yes += 1
        else:
            self.no += 1
        await ctx.rerender()


@command("poll", "Ask everybody a question.")
async def poll(ctx: CommandContext, question: Annotated[str, "What to vote on"]) -> None:
    await ctx.respond(Poll(question))


def your_bot(app: App) -> None:
    """List what belongs to your bot."""
    app.add(ping, counter, Counter, poll, Poll)


# ---- 12. Command line ------------------------------------------------------------------------------------------------
# `main` is the whole program: read the settings, build the bot, run it, and end with a sentence where there is one to
# say. A bot in a file of its own ends with `bot.main(my_bot)`.

BotFunction: TypeAlias = Callable[[App], None]


def main(bot: BotFunction, arguments: Sequence[str] | None = None) -> None:
    """Run the command line for a bot. Ends the process: 0 done, 1 something failed, 2 there is something to mend."""
    options = parse_arguments(arguments)
    try:
        options.run(bot, options)
    except OperatorError as error:
        print(redact(str(error)), file=sys.stderr)
        sys.exit(2)
    except StoreError as error:
        print(f"{error}\nWhat was accepted is on disk; start the bot again when the cause is mended.", file=sys.stderr)
        sys.exit(1)
    except Exception as error:  # a bug; Python's own traceback would not be redacted
        print(redact("".join(traceback.format_exception(error))), file=sys.stderr)
        sys.exit(1)


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the chosen command as `run` and its options."""
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument("--config", type=Path, metavar="FILE", help="where the settings are (config.env)")
    parser = argparse.ArgumentParser(
        description="A Discord bot that never loses a click.",
        epilog="Exit codes: 0 stopped as asked, or done; 1 something failed, or a second signal ended it at once;"
        " 2 something is to be mended, and one sentence says what.",
        parents=[common],
    )
    parser.set_defaults(run=run_bot)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, function, text in (
        ("run", run_bot, "run the bot; this is what happens without a command"),
        ("check", check_bot, "look for mistakes without connecting to anything"),
        ("failed", manage_failed, "list the events whose handler failed, or retry or discard them"),
        ("backup", back_up, "copy the database, also while the bot runs"),
        ("playground", run_playground, "run the bot in a local Discord in your browser, with no account"),
    ):
        description = text[0].upper() + text[1:] + "."
        commands.add_parser(name, help=text, description=description, parents=[common]).set_defaults(run=function)
    failed = commands.choices["failed"]
    failed.add_argument(
        "action", nargs="?", choices=("list", "retry", "discard"), default="list", help="list, if left out"
    )
    failed.add_argument("keys", nargs="*", metavar="KEY", help="which events, as `list` names them (all)")
    commands.choices["backup"].add_argument("file", type=Path, metavar="FILE", help="where to; it must not exist yet")
    playground = commands.choices["playground"]
    playground.add_argument("script", nargs="?", default=sys.argv[0], help="the bot to run (this one)")
    playground.add_argument("--no-open", action="store_true", help="do not open the page in a browser")
    playground.add_argument("--port", type=int, default=8765, help="where the page is served, on 127.0.0.1 (8765)")
    return parser.parse_args(arguments, argparse.Namespace(config=Path("config.env")))


def run_bot(bot: BotFunction, options: argparse.Namespace) -> None:
    """Run until stopped."""
    config = Config.load(options.config, os.environ)
    start_logging(config.log_level)
    app = App(config)
    bot(app)
    asyncio.run(app.run())


def check_bot(bot: BotFunction, options: argparse.Namespace) -> None:
    """Read the settings, register everything, render every view once, and say what was found."""
    config, mistakes = Config(), list[str]()
    try:
        config = Config.load(options.config, os.environ, needs_token=False)
    except OperatorError as error:
        mistakes.append(str(error))
    app = App(config)
    bot(app)
    for name, cls in app.views.classes.items():
        try:
            lay_out(cls.example(), RecordId(name, new_key()))
        except LayoutError as error:
            mistakes.append(str(error))
        except Exception as error:  # the user's own code
            mistakes.append(f"view {name} cannot be rendered: {error!r}. See View.example for values that fit it.")
    if mistakes:
        raise OperatorError("\n".join(mistakes))
    print(f"{len(app.commands)} commands and {len(app.views.classes)} views: no mistakes found.")
    if not config.token:
        print("There is no DISCORD_TOKEN yet: copy config.example.env to config.env, or try: python bot.py playground")


def kept_store(options: argparse.Namespace) -> SQLiteStore:
    """Return the store of the settings, not yet open. Raises OperatorError when there is no file to look into."""
    store = open_store(Config.load(options.config, os.environ))
    if isinstance(store, MemoryStore):
        raise OperatorError("STORE=:memory: keeps nothing that could be looked into. Set STORE=sqlite:bot.db, say.")
    if not Path(store.path).exists():
        raise OperatorError(f"{store.path} is not there. The bot makes it when it runs for the first time.")
    return store


def manage_failed(_: BotFunction, options: argparse.Namespace) -> None:
    """List, retry or discard failed events, whether the bot runs or not."""
    store = kept_store(options)
    rows = asyncio.run(visit(store, store.failed))
    if unknown := set(options.keys) - {row.key for row in rows}:
        names = ", ".join(sorted(unknown))
        raise OperatorError(f"{names} is not on the failed list. `failed list` shows the keys of those that are.")
    if options.action != "list":
        asyncio.run(order_failed(store, options.action, options.keys))
        return
    for row in rows:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(row.failed_at))
        note = ", its state is saved" if row.applied else ""
        line = f"{row.key}  {when}Z  {row.failure.type}: {row.failure.text} ({row.failure.place}{note})"
        print(printable(line))
    print(f"{len(rows)} failed events.")


async def visit(store: SQLiteStore, work: Callable[[], Awaitable[T]]) -> T:
    """Do some reading beside the process that has the store."""
    await store.open(visit=True)
    try:
        return await work()
    finally:
        await store.close()


async def order_failed(store: SQLiteStore, action: str, keys: Sequence[str]) -> None:
    """Retry or discard failed events: ourselves, or by an order to the process that has the store."""
    try:
        await store.open()
        count = await (store.retry_failed(keys) if action == "retry" else store.discard_failed(keys))
        print(f"{count} events {'will run at the next start' if action == 'retry' else 'are discarded'}.")
    except InUseError:
        file = give_order(store.path, store.bot, {"do": action, "keys": keys})
        for _ in range(100):
            await asyncio.sleep(0.1)
            if not file.exists():
                print("The running bot has taken the order; its log says what came of it.")
                return
        raise OperatorError("The running bot did not take the order within 10 s. Its log may tell why.") from None
    finally:
        await store.close()


def back_up(_: BotFunction, options: argparse.Namespace) -> None:
    """Copy the database."""
    store, file = kept_store(options), options.file
    asyncio.run(visit(store, functools.partial(store.backup, file)))
    print(f"{file} is a copy of {store.path}. To restore it, stop the bot and put it in its place.")


def run_playground(_: BotFunction, options: argparse.Namespace) -> None:
    """Start the local Discord with the bot in it."""
    try:
        from playground.__main__ import main as start  # noqa: PLC0415
    except ImportError as error:
        raise OperatorError(f"{error}. The playground is a folder beside bot.py in the repository.") from error
    sys.exit(start([options.script, "--port", str(options.port), *(["--no-open"] if options.no_open else [])]))


if __name__ == "__main__":
    main(your_bot)
