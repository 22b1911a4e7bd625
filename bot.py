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
 0  Head and configuration     settings, what you may catch, what people are told, how a log line looks
 1  Store                      what is kept, and what is promised about it
 2  SQLite                     the promises kept in one file
 3  Components                 what a message or a form is made of, checked against Discord's limits
 4  Records and views          typed state, forms, and the custom ids that lead back to them
 5  Events and records         what every handler is given; listeners, and what runs by the clock
 6  Interactions and commands  who did what, and ways to answer; commands from annotated functions
 7  Dispatch                   the one path from an accepted event to a finished one
 8  Gateway                    a session that outlives the process; commands as Discord lists them
 9  Web                        interactions over HTTP, hooks for other services, health
 10  Running                   start, stop and everything between
 11  Your bot                  four examples; delete them and write here
 12  Command line              run, check, failed, commands, trust, export, backup, playground

Glossary
 event    what arrives: an interaction (a command, a click or a form), a gateway event, a hook, a timer that is due
 inbox    the table of accepted events
 accept   write the event to disk before confirming it to its sender
 cursor   how far the sender has been confirmed: gateway session and sequence number
 view     a message whose components call handlers of a class
 record   a typed value in the store under a name and key, with a version; a view's state is one
 handler  the coroutine that an event runs
 show     bring a message to its record's newest version; `shown` is the version it is known to display
"""

# ---- 0. Head and configuration ---------------------------------------------------------------------------------------
# What the rest needs: imports, aliases, constants with their unit in the name, JSON that bears whatever comes in. Then
# settings, from config.env and from the environment, which wins; the errors a handler may catch; the few sentences the
# bot says to people; and one log format that lets no token through.

from __future__ import annotations

import argparse
import ast
import asyncio
import base64
import binascii
import collections
import contextlib
import contextvars
import dataclasses
import datetime
import enum
import functools
import hashlib
import hmac
import importlib
import inspect
import io
import itertools
import json
import logging
import math
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
import urllib.parse
import zlib
import zoneinfo
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
from types import MappingProxyType, UnionType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, NewType, TypeAlias, TypeVar

try:
    import aiohttp
    import aiosqlite
    import dotenv.parser
    import hikari
    import hikari.impl
    import msgspec
    from aiohttp import web
    from aiohttp.http import HttpProcessingError
    from msgspec import field
except ModuleNotFoundError as missing:
    print(f"{missing}. Run: {sys.executable} -m pip install -r requirements.txt  (or: make play)", file=sys.stderr)
    sys.exit(2)

# Run as `python bot.py` this module is "__main__". Add-ons say `import bot` and must get this one, not a second copy.
sys.modules.setdefault("bot", sys.modules[__name__])

__version__ = "0.1.0"

MINUTE, HOUR, DAY, WEEK = 60, 3_600, 86_400, 604_800  # seconds

AUTO_DEFER_AFTER_S = 2.0  # Discord wants the first answer within 3 s of the click
FIRST_ANSWER_WITHIN_S = 3.0  # Discord gives up then
KEYS_KEPT_S = DAY  # how long a done event's key is kept to recognise its copies
SIGNED_AGE_MAX_S = KEYS_KEPT_S / 2  # of a request; a younger one is recognised by its key, also when a clock is wrong
BATCH_OPS_MAX = 256  # operations in one transaction
FIRED_AT_ONCE_MAX = 100  # timers, and expired records, in one operation
LAZY_WRITE_AFTER_S = 0.5  # what may be lost waits at most this long for a transaction to join
HELLO_WITHIN_S = 10.0  # a gateway host that takes the connection and says nothing is left after so long
ARRIVES_AFTER_S = (0, 0.1, 0.2, 0.4, 0.8, 1.6)  # pauses between looks whether Discord has an answer given over HTTP
BODY_WITHIN_S, BODY_BYTES_MAX = 5.0, 1 << 20  # of a request from outside
IDLE_MAX_S = 75.0  # a connection that brings no request is closed; proxies keep theirs for 60 s
SESSION_AGE_MAX_S = 30 * DAY  # then a new one: a session resumed for months was seen to lose its intents
REMEMBERED_S = 15 * MINUTE  # a click on an older state of a message, carried in it, arrives within this
HANDLER_TRIES = 3  # how often a click whose state was changed under it runs again on the fresh state
SHOW_RETRY_S = (1, 2, 4, 8, 16, 30, 60)  # pauses between attempts to repair a message; the last one repeats
ALONE_MAX_S = 10.0  # an event that may have killed the process has it for itself so long, and then waits with others
LOOP_LAG_MAX_S = 1.0  # a handler that holds the event loop longer is named in the log
CUSTOM_ID_MAX = 100  # characters, for Discord
ALREADY_ACKNOWLEDGED = 40060  # Discord's code for a second first answer
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


def moment(when: float | str | datetime.datetime) -> float:
    """Return the time meant, in seconds since 1970: a datetime, or that many seconds or "1h 30m" from now."""
    at = when.timestamp() if isinstance(when, datetime.datetime) else time.time() + seconds_of(when)
    if not math.isfinite(at):
        raise ValueError(f"{when!r} is no time")
    return at


def seconds_of(span: float | str) -> float:
    """Return seconds for a number of them or a text such as "90s", "10m", "1h 30m" or "2d". Raises ValueError."""
    if not isinstance(span, str):
        return float(span)
    parts = re.findall(r"(\d+)\s*([smhdw])", span)
    if not re.fullmatch(r"\s*(\d{1,9}\s*[smhdw]\s*)+", span):
        raise ValueError(f"{span!r:.40} is no time span. Write for example 90s, 10m, 1h 30m or 2d.")
    return float(
        sum(int(number) * {"s": 1, "m": MINUTE, "h": HOUR, "d": DAY, "w": WEEK}[unit] for number, unit in parts)
    )


def first(kind: type[T], notes: Iterable[Any]) -> T | None:
    """Return the first of the notes that is of the type."""
    return next((note for note in notes if isinstance(note, kind)), None)


def taken_apart(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the type itself, without `| None`, and what Annotated adds to it."""
    if typing.get_origin(hint) is Annotated:
        kind, notes = taken_apart(hint.__origin__)
        return kind, (*notes, *hint.__metadata__)
    kinds: list[Any] = [each for each in typing.get_args(hint) if each is not type(None)]
    if typing.get_origin(hint) not in (typing.Union, UnionType) or len(kinds) == len(typing.get_args(hint)):
        return hint, ()
    union: Any = typing.Union
    return taken_apart(union[tuple(kinds)])


class OperatorError(Exception):
    """Something the person who runs the bot can mend. Shown as it is, without a traceback; the process ends with 2."""

    exit_code = 2


class OutageError(OperatorError):
    """Something that mends itself, such as the connection: the process ends with 1, and may be started again."""

    exit_code = 1


def insist(place: str, *rules: tuple[object, str]) -> None:
    """Raise OperatorError with the sentence of the first rule that does not hold."""
    for holds, sentence in rules:
        if not holds:
            raise OperatorError(f"{place}{sentence}")


def check_parameters(function: Any, *wanted: str) -> None:
    """Raise OperatorError when the function is no coroutine with just these parameters."""
    name, parameters = function.__name__, list(inspect.signature(function).parameters.values())
    swapped = len(parameters) == 2 and "Context" in str(parameters[1].annotation)
    if not inspect.iscoroutinefunction(function) or len(parameters) != len(wanted) or swapped:
        raise OperatorError(f"{name} cannot be called so. Write: async def {name}({', '.join(wanted)}) -> None")


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
    mode: str = "gateway"
    api: str = "https://discord.com/api/v10"
    store: str = dataclasses.field(default="sqlite:bot.db", repr=False)
    public_key: str = ""
    web_host: str = "127.0.0.1"
    web_port: int | None = None
    web_socket: str = ""
    web_path: str = ""
    hook_secrets: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str], repr=False)
    hook_keys: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str])
    pin_keys: bool = False
    dev_guild: int | None = None
    log_level: str = "INFO"
    shard_count: int = 1
    shards: str = ""
    run: str = ""
    drain_s: int = 10
    max_handlers: int = 64
    max_handler_runs: int = 5
    max_failed: int = 10_000

    @property
    def has_web(self) -> bool:
        """Whether anything is served over HTTP."""
        return self.web_port is not None or bool(self.web_socket)

    @property
    def is_shared(self) -> bool:
        """Whether several processes may have the store at once."""
        return not self.store.startswith(("sqlite:", ":memory:"))

    @classmethod
    def load(cls, path: Path, environ: Mapping[str, str], *, needs_token: bool = True) -> Config:
        """Return the settings of the file and the environment, or raise one OperatorError that lists every mistake."""
        given, mistakes = _read_env_file(path)
        given |= {name: (f"environment: {name}", text) for name, text in environ.items() if text and setting_of(name)}
        values: dict[str, Any] = {}
        for name, (place, text) in given.items():
            if not text or (setting := setting_of(name)) is None:
                continue  # DEV_GUILD= means the default, as a line that is commented out does
            # A secret never reaches a message.
            shown = "" if re.search("TOKEN|SECRET", name) or (name == "STORE" and "@" in text) else f"={text}"
            if not re.fullmatch(setting.pattern, text):
                mistakes.append(f"{place}{shown} is not {setting.wanted}.")
                continue
            try:
                value = setting.read(text)
            except ValueError as error:
                mistakes.append(f"{place}{shown} {error}.")
                continue
            if setting.attribute in OF_HOOKS.values():
                hook = name.removeprefix("HOOK_").partition("_")[2].lower()
                values[setting.attribute] = {**values.get(setting.attribute, {}), hook: value}
            else:
                values[setting.attribute] = value
        if values.get("mode") == "rest" and not values.keys() & {"web_port", "web_socket"}:
            mistakes.append("MODE=rest needs a place where Discord's requests come in. Write WEB_PORT=8080, say.")
        if values.keys() & {"run", "shards"} and not cls(**values).is_shared:
            mistakes.append(f"RUN and SHARDS are for several processes, and STORE keeps things for one. {SHARED}.")
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


def read_port(text: str) -> int:
    """Return the port, or raise ValueError."""
    if int(text) > 0xFFFF:
        raise ValueError("is no port. The highest is 65535")
    return int(text)


def read_secret(text: str) -> str:
    """Return the secret, or raise ValueError when it is cut off."""
    try:
        base64.b64decode(text[6:] if text.startswith("whsec_") else "", validate=True)
    except ValueError:
        raise ValueError("begins with whsec_ and goes on with what is no base64. Copy it whole") from None
    return text


def read_switch(text: str) -> bool:
    """Return whether it is switched on."""
    return text.lower() == "true"


class Setting(NamedTuple):
    """How a setting is read: where it goes, what it looks like, how it becomes a value, what to write instead."""

    attribute: str
    pattern: str
    read: Callable[[str], Any]
    wanted: str


API = "an http address. Leave it out to use Discord itself"
STORES = "a store this bot can open. Write STORE=sqlite:bot.db, or STORE=:memory: to keep nothing"
SHARED = "Write STORE=redis://host:6379/0 or STORE=postgresql://user:password@host/database"
APPLICATION_KEY = "the key of 64 digits from your application's page, General Information, Public Key"
GUILD = "a server's id. Turn on Developer Mode in Discord, right-click your server, Copy Server ID"
SECRET = (
    "a secret of 16 characters or more. Make one: python -c"
    " 'import base64, secrets; print(\"whsec_\" + base64.b64encode(secrets.token_bytes(24)).decode())'"
)
PUBLIC_KEY = "an Ed25519 public key: 64 hexadecimal digits, or whpk_ and base64"
KEY_PATTERN = r"[0-9a-fA-F]{64}|(whpk_)?[A-Za-z0-9+/]{43}="
SETTINGS: Mapping[str, Setting] = {
    "DISCORD_TOKEN": Setting("token", r"(?s).*", read_token, ""),
    "MODE": Setting("mode", r"(?i)gateway|rest", str.lower, "a mode. Write MODE=gateway or MODE=rest"),
    "DISCORD_PUBLIC_KEY": Setting("public_key", r"[0-9a-fA-F]{64}", str.lower, APPLICATION_KEY),
    "DISCORD_API": Setting("api", r"https?://[^/\s]+(/\S*)?", operator.methodcaller("rstrip", "/"), API),
    "STORE": Setting("store", r":memory:|sqlite:(?!//).*[^/\s].*|(rediss?|postgres(ql)?)://\S+", str, STORES),
    "DEV_GUILD": Setting("dev_guild", r"[1-9]\d{14,18}", int, GUILD),
    "LOG_LEVEL": Setting("log_level", r"(?i)debug|info|warning|error", str.upper, "DEBUG, INFO, WARNING or ERROR"),
    "SHARD_COUNT": Setting("shard_count", r"[1-9]\d{0,2}", int, "a whole number from 1 to 999"),
    "SHARDS": Setting("shards", r"(?i)auto|\d{1,3}(,\d{1,3})*", str.lower, "auto, or numbers from 0 on such as 0,2"),
    "RUN": Setting("run", r"(?i)(gateway|web)(,(gateway|web))*", str.lower, "gateway, web, or gateway,web"),
    "DRAIN_S": Setting("drain_s", r"\d{1,3}", int, "a whole number of seconds from 0 to 999"),
    "MAX_HANDLERS": Setting("max_handlers", r"[1-9]\d{0,3}", int, "a whole number from 1 to 9999"),
    "MAX_HANDLER_RUNS": Setting("max_handler_runs", r"[1-9]\d?", int, "a whole number from 1 to 99"),
    "MAX_FAILED": Setting("max_failed", r"[1-9]\d{0,5}", int, "a whole number from 1 to 999999"),
    "WEB_HOST": Setting("web_host", r"[\w.:-]+", str, "an address of this machine, such as 127.0.0.1 or 0.0.0.0"),
    "WEB_PORT": Setting("web_port", r"\d{1,5}", read_port, "a port from 0 (any) to 65535"),
    "WEB_SOCKET": Setting("web_socket", r".*[^/\s]", str, "the path of a socket, such as /run/everclick/web.sock"),
    "WEB_PATH": Setting("web_path", r"/?|(/[\w.~-]+)+/?", operator.methodcaller("rstrip", "/"), "a path such as /bot"),
    "PIN_KEYS": Setting("pin_keys", r"(?i)true|false", read_switch, "true or false"),
    "HOOK_SECRET": Setting("hook_secrets", r"(?s).{16,}", read_secret, SECRET),
    "HOOK_KEY": Setting("hook_keys", KEY_PATTERN, str, PUBLIC_KEY),
}
OF_HOOKS = MappingProxyType({"HOOK_SECRET": "hook_secrets", "HOOK_KEY": "hook_keys"})


def setting_of(name: str) -> Setting | None:
    """Return the setting of that name. HOOK_SECRET and HOOK_KEY are for all hooks, HOOK_SECRET_DEPLOY is for one."""
    family = re.match(r"HOOK_(SECRET|KEY)(?=_\w)", name)
    return SETTINGS.get(family.group() if family else name)


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
        elif name and setting_of(name) is None:
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


class FormError(Exception):
    """What a person gave in a form does not do: raise it with a sentence for them. They can fill it in again."""


class HookError(Exception):
    """A request from outside is not taken. Its sender gets the status and the reason."""

    def __init__(self, status: int, reason: str, **headers: str) -> None:
        super().__init__(reason)
        self.status, self.reason, self.headers = status, reason, headers


class NotInServerError(Exception):
    """A handler asked for the server or the member, and this happened in a direct message. The person is told so."""


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
    used: str = "This was used already."
    wait: str = "You can use this again {when}."
    again: str = "Try again"
    server_only: str = "This works in a server only."


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


# ---- 1. Store --------------------------------------------------------------------------------------------------------
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
    ephemeral: bool = False
    guild: int | None = None


class Saved(NamedTuple):
    """A record as the store has it, or, on its way there, the successor of that version (0: there is none yet).

    `version` counts its changes, `model` is the version of the class that wrote it, `shown` what its message shows.
    A successor without data deletes the record.
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


class Timer(NamedTuple):
    """An event to come. `due_at` None takes back the timer of that key."""

    key: EventKey
    due_at: float | None
    body: bytes = b""


class Query(NamedTuple):
    """Which records are asked for: of that name, with keys under a prefix or a message in that place.

    In the order of their keys from `after` on, or with `by` the highest values of that field first.
    """

    name: str
    prefix: str = ""
    after: str | None = None
    by: str = ""
    channel: int | None = None
    message: int | None = None
    limit: int = 500


class Figures(NamedTuple):
    """How much a store holds: unfinished events, since when the oldest waits, failed events, bytes."""

    pending: int
    oldest_at: float | None
    failed: int
    bytes: int


class Gone(NamedTuple):
    """What was deleted at Discord: messages of a channel (none named: all), or everything in a guild."""

    guild: int | None = None
    channel: int | None = None
    messages: tuple[int, ...] = ()


class Store(ABC):
    """What every store promises.

    A write is finished when its awaitable is: then it survives a power cut. Writes take effect in the order of the
    calls. A write that raises StoreError did not happen. Cancelling the caller does not undo a write.
    """

    @abstractmethod
    async def open(self, *, visit: bool = False) -> None:
        """Make the store ready. `visit`: for reading alone, beside the process that has it.

        Raises OperatorError when another process has it or it cannot be written.
        """

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
    async def commit(self, records: Sequence[Saved], done: EventKey | None, timers: Sequence[Timer] = ()) -> None:
        """Write the records, each as its version's successor, the timers, and that the event is applied, or nothing.

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
    async def find(self, query: Query) -> list[Saved]:
        """Return the records asked for, at most `limit` of them."""

    @abstractmethod
    async def timers(self) -> list[Timer]:
        """Return the timers that are set, the next one first."""

    @abstractmethod
    async def fire(self, names: Sequence[str]) -> list[Event]:
        """Move some due timers, and expired records of these names, into the inbox; return their events.

        The event of an expired record has the key "expiry:…" and is that record as JSON; the record is gone.
        """

    @abstractmethod
    def clean_up(self, gone: Gone) -> asyncio.Future[int]:
        """Delete the records whose messages were deleted; return how many."""

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
    def note_answer(self, key: EventKey, answer: bytes) -> None:
        """Note what an event's sender was answered, with the next transaction. It is kept as long as the key."""

    @abstractmethod
    async def answer(self, key: EventKey) -> bytes | None:
        """Return what the event's sender was answered, or None when that is not known."""

    @abstractmethod
    async def pin(self, name: str, key: str, *, replace: bool = False) -> str:
        """Return the key pinned under the name: the one that was there first, or this one; `replace`: this one."""

    @abstractmethod
    async def pinned(self, name: str) -> str | None:
        """Return the key pinned under the name, or None."""

    @abstractmethod
    async def figures(self) -> Figures:
        """Return how much the store holds."""

    @abstractmethod
    async def purge(self, names: Sequence[str] = ()) -> int:
        """Delete some keys of long done events and some expired records, but of other names; return how many rows."""

    @abstractmethod
    async def names(self) -> list[str]:
        """Return the names of all records, but for the bot's own."""

    @abstractmethod
    async def backup(self, file: Path) -> None:
        """Write a copy of everything, as it is at this moment, into a new file for this user alone."""

    async def obey(self) -> bool:
        """Do what a command line asked of the process that has this store, once a second; return whether it did."""
        return False

    async def carry_out(self, action: str, keys: Sequence[str]) -> str:
        """Do what a command line asks for, and return what came of it."""
        if action == "trust":
            return f"{keys[0]} is trusted with {await self.pin(keys[0], keys[1], replace=True)}."
        if action == "retry":
            return f"{await self.retry_failed(keys)} events go back to the inbox."
        return f"{await self.discard_failed(keys)} events are discarded."


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


# ---- 2. SQLite -------------------------------------------------------------------------------------------------------
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
    """
    ALTER TABLE record ADD COLUMN guild INTEGER;
    CREATE INDEX record_place ON record(bot, message) WHERE message IS NOT NULL;
    CREATE TABLE timer(bot INTEGER NOT NULL, key TEXT NOT NULL, due_at REAL NOT NULL, body BLOB NOT NULL,
        PRIMARY KEY(bot, key)) WITHOUT ROWID;
    CREATE INDEX timer_due ON timer(bot, due_at);
    """,
    """
    ALTER TABLE inbox ADD COLUMN answer BLOB;
    CREATE TABLE pin(bot INTEGER NOT NULL, name TEXT NOT NULL, key TEXT NOT NULL, pinned_at REAL NOT NULL,
        PRIMARY KEY(bot, name)) WITHOUT ROWID;
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
        if cursor and self._stuck:
            raise StoreError(f"{self.path} refused an earlier event, and the cursor must not pass it.")
        insert = [self._insert(event)] if event else []
        return self._write(statements(*([self._move(cursor)] if cursor else []), *insert))

    def _insert(self, event: Event) -> Statement:
        sql = "INSERT INTO inbox(bot, key, body, accepted_at, runs) VALUES(?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        return sql, (self.bot, event.key, event.body, self._now(), event.runs)

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
        noted, self._lazy = [operation for _, operation in self._lazy.values()], {}
        await self._write(lambda db: [operation(db) for operation in noted])  # in its turn, behind earlier events
        if self._stuck:
            raise StoreError(f"{self.path} refused an event, and nothing may be confirmed past it.")

    async def pending(self) -> list[Event]:
        sql = "SELECT key, body, runs FROM inbox WHERE bot=? AND done_at IS NULL ORDER BY id"
        return [Event(*row) for row in await self._read(sql)]

    async def begin(self, key: EventKey) -> None:
        await self._write(statements(("UPDATE inbox SET runs=runs+1 WHERE bot=? AND key=?", (self.bot, key))))

    async def commit(self, records: Sequence[Saved], done: EventKey | None, timers: Sequence[Timer] = ()) -> None:
        now = self._now()

        def commit(db: sqlite3.Connection) -> None:
            for record in records:
                sql = f"SELECT version FROM record WHERE bot=? AND name=? AND key=? AND {LIVES}"
                row = db.execute(sql, (self.bot, *record.id, now)).fetchone()
                if (row[0] if row else 0) != record.version:  # checked before anything is written
                    raise StateConflictError(f"{record.id.name} {record.id.key} was changed since it was loaded.")
            for step in (*map(self._put, records), *map(self._set, timers), *([self._done(done)] if done else [])):
                db.execute(*step)

        await self._write(commit)

    def _put(self, saved: Saved) -> Statement:
        place = saved.place or NOWHERE
        if not saved.data:
            return "DELETE FROM record WHERE bot=? AND name=? AND key=?", (self.bot, *saved.id)
        if saved.version == 0:  # about to be sent for the first time: whoever sees it sees version 1
            shown = 0 if saved.shown < 0 else 1  # unless a message that has it already shows what was before
            values = (self.bot, *saved.id, 1, saved.model, saved.data, shown, *place[:3], saved.expires_at, place[3])
            return "INSERT OR REPLACE INTO record VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values
        sql = f"UPDATE record SET version=version+1, model=?, data=?, expires_at=?, {PLACED} WHERE {SAME}"
        return sql, (saved.model, saved.data, saved.expires_at, *place, self.bot, *saved.id)

    def _set(self, timer: Timer) -> Statement:
        if timer.due_at is None:
            return "DELETE FROM timer WHERE bot=? AND key=?", (self.bot, timer.key)
        values = (self.bot, timer.key, timer.due_at, timer.body)
        return "INSERT OR REPLACE INTO timer VALUES(?, ?, ?, ?)", values

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
            log.info("as the command line asked: %s", await self.carry_out(action, keys))
        return bool(orders)

    async def backup(self, file: Path) -> None:
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

    async def find(self, query: Query) -> list[Saved]:
        order = "json_extract(CAST(data AS TEXT), ?) DESC, key" if query.by else "key"
        where, values = f"bot=? AND name=? AND {LIVES}", list[Any]([query.name, self._now()])
        limits = {"key > ?": query.after, "channel=?": query.channel, "message=?": query.message}
        if query.prefix:  # ";" is what follows ":"
            limits |= {"key >= ?": query.prefix, "key < ?": f"{query.prefix};"}
            where, values = f"{where} AND (key=? OR key >= ?)", [*values, query.prefix, f"{query.prefix}:"]
        for clause, wanted in limits.items():
            if wanted is not None:
                where, values = f"{where} AND {clause}", [*values, wanted]
        sql = f"SELECT {RECORD} FROM record WHERE {where} ORDER BY {order} LIMIT ?"
        by = [f'$."{query.by}"'] if query.by else []
        return [saved_from(row) for row in await self._read(sql, *values, *by, query.limit)]

    async def names(self) -> list[str]:
        return [
            row[0] for row in await self._read("SELECT DISTINCT name FROM record WHERE bot=? AND name NOT GLOB '_*'")
        ]

    async def timers(self) -> list[Timer]:
        sql = "SELECT key, due_at, body FROM timer WHERE bot=? ORDER BY due_at"
        return [Timer(*row) for row in await self._read(sql)]

    async def fire(self, names: Sequence[str]) -> list[Event]:
        due = "SELECT key, body FROM timer WHERE bot=? AND due_at <= ? ORDER BY due_at LIMIT ?"
        # "+" keeps SQLite from walking all records of this bot, once a second.
        expired = f"SELECT {RECORD} FROM record WHERE +bot=? AND expires_at <= ? AND +{AMONG} LIMIT ?"
        now, among = self._now(), json.dumps(list(names))
        if not await self._read(due, now, 1) and not await self._read(expired, now, among, 1):
            return []  # nothing is written as long as nothing is due

        def fire(db: sqlite3.Connection) -> list[Event]:
            rows = db.execute(due, (self.bot, now, FIRED_AT_ONCE_MAX)).fetchall()
            for row in rows:
                db.execute(*self._set(Timer(row[0], None)))
            # A name of its own for each: a clock that went back, or a view that was renewed, comes there once more.
            events = [Event(EventKey(f"{key}@{secrets.token_hex(4)}"), body) for key, body in rows]
            for saved in map(saved_from, db.execute(expired, (self.bot, now, among, FIRED_AT_ONCE_MAX)).fetchall()):
                key = EventKey(f"expiry:{saved.id.name}:{saved.id.key}@{secrets.token_hex(4)}")
                events.append(Event(key, write_json(saved)))
                db.execute(*self._put(saved._replace(data=b"")))
            for event in events:
                db.execute(*self._insert(event))
            return events

        return await self._write(fire)

    def clean_up(self, gone: Gone) -> asyncio.Future[int]:
        sql, values = "DELETE FROM record WHERE bot=? AND guild=?", (self.bot, gone.guild)
        if gone.channel is not None:
            sql, values = (
                "DELETE FROM record WHERE bot=? AND message IS NOT NULL AND channel=?",
                (self.bot, gone.channel),
            )
        if gone.messages:  # happens often, and must not walk all records
            among = "message IN (SELECT value FROM json_each(?))"
            sql = f"DELETE FROM record INDEXED BY record_place WHERE bot=? AND channel=? AND {among}"
            values = (*values, json.dumps(gone.messages))
        return self._write(statements((sql, values)))

    async def behind(self) -> list[Saved]:
        table = "record INDEXED BY record_behind"
        sql = f"SELECT {RECORD} FROM {table} WHERE bot=? AND shown < version AND message IS NOT NULL AND {LIVES}"
        return [saved_from(row) for row in await self._read(sql, self._now())]

    def note_shown(self, id: RecordId, version: int, place: Place | None) -> None:
        sql = f"UPDATE record SET shown=max(shown, ?), {PLACED} WHERE {SAME}"
        values = (version, *(place or NOWHERE), self.bot, *id)
        self._write_later(("shown", id, bool(place)), version, statements((sql, values)))

    def note_answer(self, key: EventKey, answer: bytes) -> None:
        sql = "UPDATE inbox SET answer=? WHERE bot=? AND key=?"
        self._write_later(("answer", key), 0, statements((sql, (answer, self.bot, key))))

    async def answer(self, key: EventKey) -> bytes | None:
        await self.flush()
        rows = await self._read("SELECT answer FROM inbox WHERE bot=? AND key=?", key)
        return rows[0][0] if rows else None

    async def pin(self, name: str, key: str, *, replace: bool = False) -> str:
        update = "DO UPDATE SET key=excluded.key, pinned_at=excluded.pinned_at WHERE ?"
        sql = f"INSERT INTO pin VALUES(?, ?, ?, ?) ON CONFLICT(bot, name) {update}"
        await self._write(statements((sql, (self.bot, name, key, self._now(), replace))))
        return await self.pinned(name) or key

    async def pinned(self, name: str) -> str | None:
        rows = await self._read("SELECT key FROM pin WHERE bot=? AND name=?", name)
        return rows[0][0] if rows else None

    async def figures(self) -> Figures:
        failed = "(SELECT count(*) FROM failed WHERE bot=?1)"
        size = "(SELECT page_count * page_size FROM pragma_page_count, pragma_page_size)"
        rest = "FROM inbox WHERE bot=?1 AND done_at IS NULL"
        return Figures(*(await self._read(f"SELECT count(*), min(accepted_at), {failed}, {size} {rest}"))[0])

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

    async def purge(self, names: Sequence[str] = ()) -> int:
        # "+bot" as above: by that index every step would walk all rows of this bot.
        oldest = "SELECT id FROM inbox WHERE +bot=? ORDER BY id LIMIT 500"
        # Also what was done in a future that a wrong clock once believed in: it would keep all that follows for ever.
        old = f"DELETE FROM inbox WHERE id IN ({oldest}) AND (done_at < ? OR done_at > ?)"
        keys = (old, (self.bot, self._now() - KEYS_KEPT_S, self._now() + KEYS_KEPT_S))
        expired = f"SELECT name, key FROM record WHERE +bot=? AND expires_at < ? AND NOT {AMONG} LIMIT 500"
        records = f"DELETE FROM record WHERE bot=? AND (name, key) IN ({expired})"
        steps = keys, (records, (self.bot, self.bot, self._now(), json.dumps(list(names))))
        return await self._write(lambda db: sum(db.execute(*step).rowcount for step in steps))


class MemoryStore(SQLiteStore):
    """The same store in memory: for trying things out. It ends with the process, and so does everything in it."""

    def __init__(self, bot: BotId, *, max_failed: int = 10_000, now: Clock = time.time) -> None:
        super().__init__(":memory:", bot, max_failed=max_failed, now=now)


RECORD = "name, key, version, model, data, shown, channel, message, ephemeral, guild, expires_at"
SAME = "bot=? AND name=? AND key=?"
AMONG = "name IN (SELECT value FROM json_each(?))"
PLACED = (
    "channel=coalesce(?, channel), message=coalesce(?, message), ephemeral=coalesce(?, ephemeral),"
    " guild=coalesce(?, guild)"
)
NOWHERE = (None, None, None, None)
CHOSEN = "bot=? AND (? OR key IN (SELECT value FROM json_each(?)))"
LIVES = "(expires_at IS NULL OR expires_at > ?)"


def saved_from(row: Sequence[Any]) -> Saved:
    """Return the record that a row of RECORD columns holds."""
    name, key, version, model, data, shown, channel, message, ephemeral, guild, expires_at = row
    place = Place(channel, message, bool(ephemeral), guild) if message is not None else None
    return Saved(RecordId(name, key), version, model, data, shown, place, expires_at)


def examine(db: sqlite3.Connection, path: str) -> None:
    """Raise OperatorError when the file is not ours to use, with nothing in it changed."""
    db.execute("BEGIN")  # all of one moment: another bot may be making the tables
    (version,) = db.execute("PRAGMA user_version").fetchone()
    ours = db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
    if not ours and db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise OperatorError(f"{path} is the database of another program. Set STORE to a file of the bot's own.")
    if version > len(MIGRATIONS):
        raise OperatorError(
            f"{path} was written by a newer bot.py (tables of version {version}, this one knows {len(MIGRATIONS)})."
            " Use that bot.py, or set STORE to another file."
        )
    db.execute("COMMIT")


def prepare(db: sqlite3.Connection) -> None:
    """Bring the tables to this version, and write once: a read-only file opens fine and fails at its first write."""
    db.execute("BEGIN IMMEDIATE")  # two bots may share a file, and start at the same moment
    (version,) = db.execute("PRAGMA user_version").fetchone()
    for number, script in enumerate(MIGRATIONS[version:], version + 1):
        pragmas = f"PRAGMA application_id={APPLICATION_ID}", f"PRAGMA user_version={number}"
        for statement in (*script.split(";"), *pragmas):
            db.execute(statement)
    db.execute("COMMIT")
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "journal_size_limit=4194304"):
        db.execute(f"PRAGMA {pragma}").fetchall()
    db.execute("INSERT OR REPLACE INTO meta VALUES('opened_at', ?)", (time.time(),))


# ---- 3. Components ---------------------------------------------------------------------------------------------------
# What a message or a form is made of: Discord's Components V2, written as calls that nest. Interactive ones name the
# handler they call, those of a form begin with their label. `assemble` checks a whole message against Discord's limits,
# so that a mistake is found where it is made, in words, and not by a refusal from Discord after the state was changed.

Handler: TypeAlias = Callable[..., Awaitable[Any]]
NameId: TypeAlias = Callable[[Handler, tuple[Any, ...]], str]  # gives a component the custom id that calls its handler
Body: TypeAlias = JSON  # a message as keyword arguments of hikari's calls
File_: TypeAlias = "hikari.files.Resource[Any]"
Source: TypeAlias = str | hikari.Resourceish  # an address, or a file to send along
ROW, BUTTON, SELECT, TEXT_INPUT, USERS, ROLES, MENTIONABLES, CHANNELS = 1, 2, 3, 4, 5, 6, 7, 8
SECTION, TEXT, THUMBNAIL, GALLERY, FILE, SEPARATOR = 9, 10, 11, 12, 13, 14
CONTAINER, LABEL, UPLOAD, RADIO, CHECKBOXES, CHECKBOX = 17, 18, 19, 21, 22, 23
SELECTS = frozenset({SELECT, USERS, ROLES, MENTIONABLES, CHANNELS})
GROUPS = frozenset({*SELECTS, RADIO, CHECKBOXES, UPLOAD})  # several values may be chosen, or one of several
Style: TypeAlias = Literal["primary", "secondary", "success", "danger"]
STYLES = MappingProxyType({"primary": 1, "secondary": 2, "success": 3, "danger": 4, "link": 5, "premium": 6})


class Component:
    """A piece of a message: Discord's JSON, with a call of a handler where the custom id will stand."""

    def __init__(
        self,
        kind: int,
        call: tuple[Handler, tuple[Any, ...]] | None = None,
        upload: File_ | None = None,
        **fields: Any,
    ) -> None:
        self.call, self.upload = call, upload
        given = {name: value for name, value in fields.items() if value is not None or name == "accessory"}
        switches = {name: bool(given[name]) for name in given.keys() & {"spoiler", "disabled", "divider", "required"}}
        self.fields: JSON = {"type": kind, **given, **switches}

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

    def files(self) -> Iterator[File_]:
        """Yield what must be sent along with it."""
        if self.upload:
            yield self.upload
        inside = (*self.fields.get("components", ()), *self.fields.get("items", ()), self.fields.get("accessory"))
        for child in inside:
            if isinstance(child, Component):
                yield from child.files()


class Field(Component):
    """A control of a form, under its label."""

    def __init__(self, kind: int, label: str, description: str, **fields: Any) -> None:
        super().__init__(kind, **fields)
        self.label, self.description = label, description

    def build_as(self, name: str, value: Any) -> JSON:
        """Return its JSON with that name, and the value filled in unless it is None."""
        payload = self.build(no_handler) | {"custom_id": name}
        if value is not None:
            payload |= preset(payload, value)
        about = {"description": self.description} if self.description else {}
        return {"type": LABEL, "label": self.label, **about, "component": payload}


class Plain:
    """A message of the older kind: text and embeds, with up to five rows under them. A view keeps to one kind."""

    def __init__(self, content: str = "", *rows: Component, embeds: Sequence[hikari.Embed] = ()) -> None:
        self.content, self.rows, self.embeds = content, rows, embeds


Layout: TypeAlias = Component | Sequence[Component] | Plain


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


def PremiumButton(sku: int, *, disabled: bool = False) -> Component:
    """A button that offers one of the application's own products. No handler is called."""
    return Component(BUTTON, sku_id=str(sku), style=STYLES["premium"], disabled=disabled)


def button_look(style: str, label: str, emoji: str, disabled: bool) -> JSON:
    """Return the fields that all buttons share."""
    at = f'button "{label}"' if label else "button"
    if style not in STYLES:
        raise LayoutError(f"{at}: {style!r} is no style. Write one of primary, secondary, success, danger.")
    return {"style": STYLES[style], "label": label or None, "emoji": emoji_json(emoji, at), "disabled": disabled}


class Option(NamedTuple):
    """A choice of a Select or a group. `value` is what the handler finds; the label when it is left out."""

    label: str
    value: str = ""
    description: str = ""
    emoji: str = ""
    default: bool = False


# The selects stand in a message, where a handler comes first, and in a form, where a label does: Select("Colour", …).


def Select(what: Handler | str, *args: Any, options: Sequence[Option | str], **look: Any) -> Any:
    """A menu of 1 to 25 options; the handler finds what was chosen in `ctx.values`.

    All selects take `placeholder`, `min_values`, `max_values`; in a message `disabled`, in a form `description` and
    `required`.
    """
    return control(SELECT, what, args, look, options=options)


def UserSelect(what: Handler | str, *args: Any, defaults: Sequence[Any] = (), **look: Any) -> Any:
    """A menu of the server's people. `defaults` are ids, or what `ctx.values` held."""
    return control(USERS, what, args, look, default_values=default_values(USERS, defaults))


def RoleSelect(what: Handler | str, *args: Any, defaults: Sequence[Any] = (), **look: Any) -> Any:
    """A menu of the server's roles. `defaults` are ids, or what `ctx.values` held."""
    return control(ROLES, what, args, look, default_values=default_values(ROLES, defaults))


def MentionableSelect(what: Handler | str, *args: Any, defaults: Sequence[Any] = (), **look: Any) -> Any:
    """A menu of people and roles. Among the `defaults`, ids stand for people."""
    return control(MENTIONABLES, what, args, look, default_values=default_values(MENTIONABLES, defaults))


def ChannelSelect(
    what: Handler | str,
    *args: Any,
    types: Sequence[hikari.ChannelType] = (),
    defaults: Sequence[Any] = (),
    **look: Any,
) -> Any:
    """A menu of the server's channels, of those types alone if any are given."""
    kinds = [*dict.fromkeys(map(int, types))] or None
    return control(CHANNELS, what, args, look, default_values=default_values(CHANNELS, defaults), channel_types=kinds)


def control(kind: int, what: Handler | str, args: tuple[Any, ...], look: JSON, **fields: Any) -> Component:
    """Return a select for a message or, when it begins with a label, for a form."""
    in_form = isinstance(what, str)
    known = {"placeholder", "min_values", "max_values", *(("description", "required") if in_form else ("disabled",))}
    if wrong := look.keys() - known:
        raise LayoutError(f"a select in a {'form' if in_form else 'message'} takes no {', '.join(sorted(wrong))}.")
    least = look.get("min_values", 0 if look.get("required") is False else 1)
    shared = {"placeholder": look.get("placeholder") or None, "max_values": look.get("max_values", max(least, 1))}
    fields |= {**shared, "min_values": least}
    if isinstance(what, str):
        required = bool(look.get("required", True) and least)
        return Field(kind, what, look.get("description", ""), required=required, **fields)
    return Component(kind, (what, args), disabled=look.get("disabled", False), **fields)


def TextInput(
    label: str, *, description: str = "", long: bool = False, min_length: int = 0, max_length: int = 4_000,
    placeholder: str = "", required: bool = True,
) -> Any:  # fmt: skip
    """A line of a form to write in, or several when it is `long`. Lengths are in characters."""
    lengths = {"min_length": min_length, "max_length": max_length}
    style, hint = 2 if long else 1, placeholder or None
    return Field(TEXT_INPUT, label, description, style=style, placeholder=hint, required=required, **lengths)


def RadioGroup(label: str, options: Sequence[Option | str], *, description: str = "", required: bool = True) -> Any:
    """Two to ten options of a form, of which one is chosen."""
    return Field(RADIO, label, description, options=options, required=required)


def CheckboxGroup(
    label: str, options: Sequence[Option | str], *, description: str = "", min_values: int | None = None,
    max_values: int | None = None, required: bool = True,
) -> Any:  # fmt: skip
    """One to ten options of a form, of which several may be chosen."""
    least = int(required) if min_values is None else min_values
    most = len(options) if max_values is None else max_values
    rules = {"min_values": least, "max_values": most, "required": required and least > 0}
    return Field(CHECKBOXES, label, description, options=options, **rules)


def Checkbox(label: str, *, description: str = "") -> Any:
    """A box of a form to tick; its field is a bool."""
    return Field(CHECKBOX, label, description, default=False)


def FileUpload(
    label: str, *, description: str = "", min_values: int | None = None, max_values: int = 1, required: bool = True
) -> Any:
    """A place of a form for up to ten files; its field holds hikari's Attachments."""
    least = int(required) if min_values is None else min_values
    return Field(UPLOAD, label, description, min_values=least, max_values=max_values, required=required and least > 0)


def Section(*texts: Component, accessory: Component) -> Component:
    """One to three texts with a button or a thumbnail beside them."""
    return Component(SECTION, components=texts, accessory=accessory)


def Thumbnail(source: Source, *, description: str = "", spoiler: bool = False) -> Component:
    """A small picture, the accessory of a Section. `source`: an address, or a file such as `hikari.File("cat.png")`."""
    url, upload = address_of(source)
    return Component(THUMBNAIL, upload=upload, media={"url": url}, description=description or None, spoiler=spoiler)


def MediaGallery(*items: Source | Component) -> Component:
    """One to ten pictures or videos: addresses, files, or Thumbnails (with description and spoiler)."""
    return Component(GALLERY, items=[item if isinstance(item, Component) else Thumbnail(item) for item in items])


def File(source: hikari.Resourceish, *, spoiler: bool = False) -> Component:
    """A file to download: `File(hikari.Bytes(text, "log.txt"))`. It is sent anew whenever its message is shown."""
    url, upload = address_of(source)
    return Component(FILE, upload=upload, file={"url": url}, spoiler=spoiler)


def Separator(*, divider: bool = True, large: bool = False) -> Component:
    """A gap between components, with a line unless `divider` is False."""
    return Component(SEPARATOR, divider=divider, spacing=2 if large else 1)


def address_of(source: Source) -> tuple[str, File_ | None]:
    """Return where Discord finds it, and the file to send along if that is with the message."""
    given: Any = source
    if isinstance(source, str):
        return source, None
    if not isinstance(given, hikari.files.Resource | os.PathLike | bytes | bytearray | memoryview | io.IOBase):
        raise LayoutError(f"{source!r} is neither an address nor a file such as hikari.File(…).")
    file: Any = hikari.files.ensure_resource(source)
    return (
        (file.url, None)
        if isinstance(file, hikari.files.WebResource)
        else (f"attachment://{urllib.parse.quote(file.filename)}", file)
    )


def default_values(kind: int, chosen: Sequence[Any]) -> list[JSON] | None:
    """Return what is chosen beforehand in a select of people, roles or channels."""
    words = {USERS: "user", ROLES: "role", CHANNELS: "channel"}
    role = hikari.PartialRole
    return [
        each  # as a form that is opened again keeps it
        if isinstance(each, dict)
        else {"id": str(int(each)), "type": words.get(kind) or ("role" if isinstance(each, role) else "user")}
        for each in chosen
    ] or None


def preset(payload: JSON, value: Any) -> JSON:
    """Return the fields that show a value in a form's control."""
    kind = payload["type"]
    many = isinstance(value, list | tuple)
    chosen: list[Any] = [*typing.cast("list[Any]", value)] if many else [value]
    texts = [str(each.value if isinstance(each, enum.Enum) else each) for each in chosen]
    if kind in (SELECT, RADIO, CHECKBOXES):
        return {"options": [option | {"default": option["value"] in texts} for option in payload["options"]]}
    if kind in SELECTS:
        return {"default_values": default_values(kind, chosen) or []}
    if kind == CHECKBOX:
        return {"default": bool(value)}
    return {"value": texts[0]} if kind == TEXT_INPUT else {}  # a file cannot be put there by us


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
    """A finished component as hikari takes it, with the files that go with it."""

    __slots__ = ("_files", "_payload")

    def __init__(self, payload: JSON, files: Sequence[File_] = ()) -> None:
        self._payload, self._files = payload, files

    @property
    def type(self) -> hikari.ComponentType:
        return hikari.ComponentType(self._payload["type"])

    @property
    def id(self) -> hikari.UndefinedType:
        return hikari.UNDEFINED  # Discord numbers the components itself

    def build(self) -> tuple[JSON, Sequence[Any]]:
        return self._payload, self._files


class Limits(NamedTuple):
    """Discord's rules for one type, as of August 2026: least and most of a field, and what may stand inside."""

    name: str
    lengths: tuple[tuple[str, int, int], ...] = ()
    inside: frozenset[int] = frozenset()
    beside: frozenset[int] = frozenset()  # as an accessory
    values: int = 25  # most that can be chosen


TOP_LEVEL = frozenset({ROW, SECTION, TEXT, GALLERY, FILE, SEPARATOR, CONTAINER})
COMPONENTS_MAX, TEXT_MAX, CONTENT_MAX, EMBEDS_MAX, EMBED_TEXT_MAX, FILES_MAX = 40, 4_000, 2_000, 10, 6_000, 10
FORM_MAX = 5  # controls and texts in one form
ID, HINT = ("custom_id", 1, CUSTOM_ID_MAX), ("placeholder", 1, 150)
LIMITS: Mapping[int, Limits] = {
    ROW: Limits("row", (("components", 1, 5),), SELECTS | {BUTTON}),
    BUTTON: Limits("button", (("label", 1, 80), ("url", 1, 512), ID)),
    SELECT: Limits("select", (("options", 1, 25), HINT, ID)),
    TEXT_INPUT: Limits("text input", (("value", 0, TEXT_MAX), ("placeholder", 1, 100), ID)),
    **dict.fromkeys(SELECTS - {SELECT}, Limits("select", (("default_values", 0, 25), HINT, ID))),
    SECTION: Limits("section", (("components", 1, 3),), frozenset({TEXT}), frozenset({BUTTON, THUMBNAIL})),
    TEXT: Limits("text", (("content", 1, TEXT_MAX),)),
    THUMBNAIL: Limits("thumbnail"),
    GALLERY: Limits("gallery", (("items", 1, 10),)),
    FILE: Limits("file"),
    SEPARATOR: Limits("separator"),
    CONTAINER: Limits("container", (("components", 1, COMPONENTS_MAX),), TOP_LEVEL - {CONTAINER}),
    LABEL: Limits("label", (("label", 1, 45), ("description", 1, 100))),
    UPLOAD: Limits("file upload", (ID,), values=10),
    RADIO: Limits("radio group", (("options", 2, 10), ID), values=1),
    CHECKBOXES: Limits("checkbox group", (("options", 1, 10), ID), values=10),
    CHECKBOX: Limits("checkbox", (ID,)),
}
EMBED_LENGTHS = (
    *(("title", 0, 256), ("description", 0, 4_096), ("footer", 1, 2_048), ("author", 1, 256)),
    *(("fields", 0, 25), ("name", 1, 256), ("value", 1, 1_024)),
)
OPTION_LENGTHS = (("label", 1, 100), ("value", 1, 100), ("description", 1, 100))


def no_handler(method: Handler, args: tuple[Any, ...]) -> str:
    """Refuse a component that calls a handler outside a view."""
    raise LayoutError("a component that calls a handler must stand in a view's render().")


def build(component: Any, name_id: NameId) -> JSON:
    """Return a component's JSON. Raises LayoutError when it is none, or one for a form."""
    if not isinstance(component, Component):
        raise LayoutError(f"{component!r} is no component. Text goes into TextDisplay(…).")
    if isinstance(component, Field):
        raise LayoutError(f'"{component.label}" belongs into a form. In a message, a select begins with its handler.')
    return component.build(name_id)


def assemble(render: Callable[[], Layout], name_id: NameId, where: str) -> Body:
    """Return what hikari sends for a layout. Raises LayoutError, naming `where`, component and rule."""
    try:
        layout: Any = render()
    except LayoutError as error:
        raise LayoutError(f"{where}: {error}") from None
    if inspect.iscoroutine(layout):
        layout.close()
        raise LayoutError(f"{where}: render must not wait. Write def render(self), without async.")
    plain_one = layout if isinstance(layout, Plain) else None
    several = typing.cast("Any", layout if isinstance(layout, list | tuple) else [layout])
    parts: Any = plain_one.rows if plain_one else several
    try:
        payloads = [build(part, name_id) for part in parts]
        if plain_one:
            check_plain(plain_one, payloads)
        else:
            check_message(payloads)
    except LayoutError as error:
        raise LayoutError(f"{where}: {error}") from None
    except (TypeError, AttributeError, LookupError) as error:
        raise LayoutError(f"{where}: a component was given a value of a wrong type: {error}") from error
    files = [[*part.files()] for part in parts]
    check_files(itertools.chain.from_iterable(files), where)
    older = {"content": plain_one.content or None, "embeds": [*plain_one.embeds]} if plain_one else {}
    built = [Built(*pair) for pair in zip(payloads, files, strict=True)]
    # Who is named hears of it; nobody's text can call @everyone or a role. hikari's own default calls nobody.
    return older | {"components": built, "user_mentions": True}


def check_files(files: Iterable[Any], where: str) -> None:
    """Raise LayoutError when they are too many, or when Discord could not tell two of them apart."""
    named: dict[str, Any] = {}
    for each in files:
        other = named.setdefault(each.filename, each)
        if any(getattr(each, name, None) != getattr(other, name, None) for name in ("data", "path")):
            raise LayoutError(f"{where}: two files are called {each.filename}. Give one of them another name.")
    if len(named) > FILES_MAX:
        raise LayoutError(f"{where}: {len(named)} files; Discord allows {FILES_MAX}.")


def flags_of(body: Body, ephemeral: bool) -> hikari.MessageFlag:
    """Return the flags a new message of that body needs."""
    kind = hikari.MessageFlag.NONE if "content" in body else hikari.MessageFlag.IS_COMPONENTS_V2
    return kind | (hikari.MessageFlag.EPHEMERAL if ephemeral else hikari.MessageFlag.NONE)


def disabled(body: Body) -> Body:
    """Return the same message with every control switched off."""
    built = [each.build() for each in body["components"]]
    for each in (each for payload, _ in built for each in walk(payload)):
        if each["type"] in SELECTS | {BUTTON} and "url" not in each:
            each["disabled"] = True
    return body | {"components": [Built(*pair) for pair in built]}


def check_plain(message: Plain, payloads: Sequence[JSON]) -> None:
    """Raise LayoutError when Discord would refuse the older kind of message."""
    if not (message.content or message.embeds or payloads):
        raise LayoutError("there is nothing in it. Discord refuses an empty message.")
    check_lengths({"content": message.content}, (("content", 0, CONTENT_MAX),), "plain message")
    for embed in message.embeds:
        texts = {"title": embed.title, "description": embed.description}
        texts |= {"footer": embed.footer and embed.footer.text, "author": embed.author and embed.author.name}
        check_lengths({name: text for name, text in texts.items() if text is not None}, EMBED_LENGTHS, "embed")
        check_lengths({"fields": embed.fields}, EMBED_LENGTHS, "embed")
        for each in embed.fields:
            check_lengths({"name": each.name, "value": each.value}, EMBED_LENGTHS, f'embed, field "{each.name[:30]}"')
    if len(message.embeds) > EMBEDS_MAX or sum(each.total_length() for each in message.embeds) > EMBED_TEXT_MAX:
        raise LayoutError(f"Discord allows {EMBEDS_MAX} embeds with {EMBED_TEXT_MAX:,} characters together.")
    check_children(payloads, frozenset({ROW}), "stand in a plain message; put it into a Row")
    if payloads:
        check_lengths({"components": payloads}, (("components", 1, 5),), "plain message")
        check_message(payloads)


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
    inside = (payload[name] for name in ("accessory", "component") if name in payload)
    for child in (*payload.get("components", ()), *inside):
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


def check_component(payload: JSON, at: str = "") -> None:
    """Raise LayoutError when the component breaks a rule of its own type."""
    kind, at = payload["type"], at or describe(payload)
    limits, children = LIMITS[kind], payload.get("components", ())
    check_lengths(payload, limits.lengths, at)
    check_children(children, limits.inside, f"stand in a {limits.name}")
    check_children([payload["accessory"]] if "accessory" in payload else [], limits.beside, "stand beside a section")
    if kind == ROW and len(children) > 1 and any(child["type"] in SELECTS for child in children):
        raise LayoutError(f"{at}: a select needs a row of its own.")
    if kind == BUTTON and not (payload.get("label") or payload.get("emoji") or "sku_id" in payload):
        raise LayoutError(f"{at}: a button needs a label or an emoji.")
    if kind == BUTTON and not payload.get("sku_id", "0").isdecimal():
        raise LayoutError(f"{at}: {payload['sku_id']} is no product's id.")
    accent = payload.get("accent_color", 0)
    if not isinstance(accent, int) or not 0 <= accent <= 0xFFFFFF:
        raise LayoutError(f"{at}: its accent is no colour. Write it as 0xRRGGBB.")
    low, high = payload.get("min_length", 0), payload.get("max_length", TEXT_MAX)
    if not (0 <= low <= high and 1 <= high <= TEXT_MAX):
        raise LayoutError(f"{at}: min_length={low}, max_length={high} do not fit the {TEXT_MAX:,} that Discord allows.")
    for item in payload.get("items", [payload] if kind == THUMBNAIL else []):
        check_lengths(item, (("description", 1, 1_024),), at)
        check_address(item["media"], "https?|attachment", at)
    check_address(payload, "https?|discord", at)
    check_address(payload.get("file", {}), "attachment", at)
    if kind in GROUPS:
        check_choice(payload, at)


def check_choice(payload: JSON, at: str) -> None:
    """Raise LayoutError when options or the numbers of values break a rule."""
    options, most = payload.get("options"), LIMITS[payload["type"]].values
    low, high = payload.get("min_values", 1), payload.get("max_values", 1)
    for option in options or ():
        check_lengths(option, OPTION_LENGTHS, f'{at}, option "{option["label"][:30]}"')
    if options and len({option["value"] for option in options}) < len(options):
        raise LayoutError(f"{at}: two options have the same value.")
    if not (0 <= low <= high and 1 <= high <= (most if options is None else min(most, len(options)))):
        what = f"{len(options)} options" if options else f"the {most} that Discord allows"
        raise LayoutError(f"{at}: min_values={low}, max_values={high} do not fit {what}.")
    chosen = sum(option["default"] for option in options or ()) or len(payload.get("default_values", ()))
    if chosen > high:
        raise LayoutError(f"{at}: more options are chosen by default than max_values={high}.")


def check_lengths(payload: JSON, lengths: tuple[tuple[str, int, int], ...], at: str) -> None:
    """Raise LayoutError when a field has too few or too many characters or entries."""
    for name, low, high in lengths:
        value, unit = payload.get(name, ""), "characters"
        if name in ("components", "options", "items", "default_values", "fields"):
            unit = "entries"
        elif not isinstance(value, str):
            raise LayoutError(f'{at}: {name} is {value!r} and must be text. Write f"{{…}}" or str(…).')
        elif re.search("[\ud800-\udfff]", value):
            raise LayoutError(f"{at}: {name} has half a character in it (a lone surrogate), which nothing can send.")
        if name in payload and not low <= len(value) <= high:
            raise LayoutError(f"{at}: {name} has {len(value)} {unit}; Discord allows {low} to {high:,}.")


def check_address(payload: JSON, schemes: str, at: str) -> None:
    """Raise LayoutError when it has a `url` that Discord does not take."""
    check_lengths(payload, (("url", 1, 2_048),), at)
    if "url" in payload and not re.fullmatch(rf"({schemes})://[^/\s]\S*", payload["url"]):
        begin = "a file such as hikari.File(…)" if schemes == "attachment" else "an address that begins with https://"
        raise LayoutError(f"{at}: url {payload['url']!r} is no address. Give it {begin}.")


# ---- 4. Records and views --------------------------------------------------------------------------------------------
# A record is typed state; a view is a record with a look (`render`) and handlers that its components call; a form asks
# a person for typed fields. A custom id names view, record, handler and arguments, so that a click finds its way after
# any restart. Decorators only mark; `app.add` registers. EventContext and ComponentContext come in sections 5 and 6.


class InStore(NamedTuple):
    """The state is kept in the store, for `ttl` seconds, or "2d", after it was first saved; None: for ever."""

    ttl: float | str | None = None


@dataclass(frozen=True)
class InMessage:
    """The state of a view is kept in its message, spread over the custom ids of its components; nothing expires.

    Two clicks at the same moment both count, in one process. A restart between them may lose the first: the second was
    made on the message as it was before. Where every click must count, use InStore.
    """

    ttl: ClassVar[float | None] = None  # for what asks both


class AutoDefer(enum.Enum):
    """What happens 2 s after an interaction came in if nobody has answered it yet; Discord gives up after 3 s."""

    UPDATE = Reply.DEFERRED_MESSAGE_UPDATE  # nothing to see; the message may be changed later
    MESSAGE = Reply.DEFERRED_MESSAGE_CREATE  # "… is thinking"; the first `respond` replaces it
    OFF = 0


class Registration(NamedTuple):
    """What `@register` says about a class."""

    name: str
    version: int
    state: InStore | InMessage
    auto_defer: AutoDefer


class Record(msgspec.Struct):
    """Typed data of your own: `score = await ctx.record(Score, ctx.guild_id, ctx.user.id); score.points += 1`.

    Every field has a default, for there is always a first time. What a handler changed is saved with its event.
    """

    registration: ClassVar[Registration]

    @classmethod
    def migrate(cls, version: int, state: JSON) -> JSON:
        """Return a state that an older `version` of this class saved in the form this one has."""
        raise StateUnreadableError(f"{cls.registration.name}: no migrate() from version {version}.")


class View(Record):
    """A message with state: its fields are the state, `render` says how it looks, handlers change it (section 11)."""

    def render(self) -> Layout:
        """Return the message that shows this state. Called often: it must not change anything or wait."""
        raise NotImplementedError(f"{type(self).__name__} has no render(self).")

    async def check(self, ctx: ComponentContext) -> bool:
        """Return whether this person may use the view. False: they are told that it is not for them."""
        return True

    async def on_error(self, ctx: EventContext, error: Exception) -> None:
        """Deal with what a handler raised. What this raises, by default the same, goes to the failed list."""
        raise error

    async def on_expire(self, ctx: EventContext) -> None:
        """End the message when its ttl is over, or after `ctx.close()`; by default its controls are switched off.

        The record is gone by now; `ctx.rerender(renew=True)` makes it anew. Runs at the next start if the bot was down.
        """
        await ctx.switch_off()

    @classmethod
    async def on_state_missing(cls, ctx: ComponentContext) -> None:
        """Answer a click on a message whose state is gone: its ttl is over, or the store is another one."""
        await ctx.respond(ctx.texts.expired, ephemeral=True)

    @classmethod
    def example(cls) -> View:
        """Return an instance for `python bot.py check` to render; override it where made-up values break render."""
        return msgspec.convert(made_up(cls), cls, dec_hook=read_id)


EXAMPLES: Mapping[Any, Any] = MappingProxyType({str: "example", bool: False, int: 1, float: 1.0, hikari.Snowflake: 1})


def made_up(kind: Any) -> Any:
    """Return a value that converts to the type, or raise TypeError when it is none of the simple ones."""
    plain_kind = typing.get_origin(kind) or kind
    if plain_kind in (Annotated, Literal):
        return made_up(kind.__origin__) if plain_kind is Annotated else kind.__args__[0]
    if inspect.isclass(kind) and issubclass(kind, enum.Enum):
        return next(iter(kind)).value
    if plain_kind in EXAMPLES:
        return EXAMPLES[plain_kind]
    if plain_kind in (list, set, frozenset, tuple, dict):  # one thing in it: a row of no buttons would be a mistake
        inside = [made_up(each) for each in typing.get_args(kind) if each is not ...]
        return dict([inside] if inside else []) if plain_kind is dict else inside
    if inspect.isclass(plain_kind) and issubclass(plain_kind, msgspec.Struct):
        return {each.name: made_up(each.type) for each in msgspec.structs.fields(plain_kind) if each.required}
    if type(None) in typing.get_args(kind):
        return None
    raise TypeError(f"there is no example for {kind}")


COMMAND_NAME = re.compile(r"[-_\w]{1,32}")


def is_name(text: str) -> bool:
    """Return whether it can be a word of a command's name, or an option's name."""
    return bool(COMMAND_NAME.fullmatch(text)) and text == text.lower()


def read_id(kind: type[Any], value: Any) -> Any:
    """Return an id that a field declares as hikari.Snowflake."""
    if kind is hikari.Snowflake:
        return hikari.Snowflake(value)
    raise TypeError(f"{kind} cannot be kept in a state")


def choices_of(kind: Any) -> list[hikari.CommandChoice]:
    """Return the choices that a Literal or an Enum stands for; [] for any other type."""
    if typing.get_origin(kind) is Literal:
        return [hikari.CommandChoice(name=str(each), value=each) for each in typing.get_args(kind)]
    if inspect.isclass(kind) and issubclass(kind, enum.Enum):
        return [hikari.CommandChoice(name=each.name.replace("_", " "), value=each.value) for each in kind]
    return []


class Form:
    """A form (modal) with typed fields. Open it with `ctx.open`; it survives a restart while somebody fills it in.

        class Rename(Form, title="Rename"):
            name: str = TextInput("New name", max_length=50)

        await ctx.open(Rename(name=self.name), then=self.renamed)

        @handler
        async def renamed(self, ctx: ComponentContext, form: Rename) -> None: ...

    One that a command opens has a `name` and a `submit`, and is listed in your_bot. Fields are str, int, float, bool,
    Literal, an Enum, or hikari's objects (their ids when declared as int), or a list of these; with `| None` where
    nothing need be given. `Annotated[int, msgspec.Meta(ge=1, le=10)]` sets bounds.
    """

    form_title: ClassVar[str]
    form_name: ClassVar[str]
    controls: ClassVar[Mapping[str, Component]] = MappingProxyType({})

    def __init_subclass__(cls, *, title: str, name: str = "") -> None:
        cls.form_title, cls.form_name = title, name
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Component)}
        cls.controls = {**cls.controls, **own}
        if taken := own.keys() & vars(Form).keys():
            raise TypeError(f"{cls.__name__}: a field cannot be called {', '.join(sorted(taken))}.")

    def __init__(self, **filled_in: Any) -> None:
        if unknown := filled_in.keys() - self.fields().keys():
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}.")
        for name in self.fields():
            setattr(self, name, filled_in.get(name))

    @classmethod
    def fields(cls) -> Mapping[str, Field]:
        """Return its controls, without the texts between them."""
        return {name: each for name, each in cls.controls.items() if isinstance(each, Field)}

    @classmethod
    def types(cls) -> Mapping[str, FieldType]:
        """Return the types of its fields. Raises LayoutError when one does not suit its control."""
        hints = typing.get_type_hints(cls, include_extras=True)
        return {
            name: field_type(f"form {cls.__name__}: {name}", hints.get(name), each)
            for name, each in cls.fields().items()
        }

    async def submit(self, ctx: ComponentContext) -> None:
        """Do what the filled form asks for, when it was opened without `then`."""
        raise NotImplementedError(f"{type(self).__name__} has no submit(self, ctx), and was opened without then=.")

    def build(self) -> list[Built]:
        """Return its components. Raises LayoutError when it breaks one of Discord's limits."""
        at = f"form {type(self).__name__}"
        try:
            parts = [
                each.build_as(name, getattr(self, name)) if isinstance(each, Field) else build(each, no_handler)
                for name, each in self.controls.items()
            ]
            check_lengths({"title": self.form_title}, (("title", 1, 45),), "form")
            check_children(parts, frozenset({LABEL, TEXT}), "stand in a form")
            for part in parts:
                for each in walk(part):
                    check_component(each, describe(part))
        except LayoutError as error:
            raise LayoutError(f"{at}: {error}") from None
        if not 1 <= len(parts) <= FORM_MAX:
            raise LayoutError(f"{at}: {len(parts)} fields; Discord allows 1 to {FORM_MAX}.")
        return [Built(part) for part in parts]

    @classmethod
    def read(cls, typed: JSON, found: Mapping[str, Any]) -> typing.Self:
        """Return the form filled in; `found` has the objects that ids stand for. Raises FormError."""
        form, types = cls(), cls.types()
        for name, each in cls.fields().items():
            try:
                setattr(form, name, fit(typed.get(name), types[name], found))
            except (msgspec.ValidationError, ValueError, TypeError):
                raise FormError(f"“{each.label}” is not what is asked for.") from None
        return form


class FieldType(NamedTuple):
    """The type of a form's field: of one value, whether there may be many or none, whether ids stand for objects."""

    kind: Any
    many: bool
    optional: bool
    objects: bool


OBJECTS = frozenset(
    {USERS, ROLES, MENTIONABLES, CHANNELS, UPLOAD}
)  # controls that give ids of people, roles, channels or files


def field_type(place: str, hint: Any, control: Field) -> FieldType:
    """Return the type of a field. Raises LayoutError when its control gives something else."""
    what, objects = LIMITS[control.fields["type"]].name, control.fields["type"] in OBJECTS
    optional, kind = type(None) in typing.get_args(hint), hint
    if optional and len(rest := [each for each in typing.get_args(hint) if each is not type(None)]) == 1:
        kind = rest[0]
    many = typing.get_origin(kind) in (list, Sequence)
    kind = typing.get_args(kind)[0] if many else kind
    kinds = typing.get_args(kind) if typing.get_origin(kind) in (UnionType, typing.Union) else (kind,)
    if hint is None or (typing.get_origin(kind) or kind) in (list, tuple, set, dict):
        raise LayoutError(f"{place} needs a type such as str, int or list[str].")
    for each in kinds:
        is_object = inspect.isclass(each) and issubclass(each, hikari.Unique)
        if each not in (Any, int, hikari.Snowflake, type(None)) and is_object is not objects:
            wanted = "int for ids, or hikari's class" if objects else "one such as str or int"
            raise LayoutError(f"{place} is no {getattr(each, '__name__', each)}: a {what} needs {wanted}.")
    if not many and control.fields.get("max_values", 1) > 1:
        raise LayoutError(f"{place} may get several values. Write {place.rpartition(' ')[2]}: list[…]")
    if not (many or optional or kind is str) and control.fields.get("required") is False:
        raise LayoutError(f"{place} may be left empty. Write {place.rpartition(' ')[2]}: … | None")
    return FieldType(kind, many, optional, objects)


def fit(given: Any, type: FieldType, found: Mapping[str, Any]) -> Any:
    """Return what a person gave as a field's type: a text, a tick, or a list of values that may be ids of objects."""
    several = typing.cast("list[Any]", given if isinstance(given, list) else [given])
    values = [found.get(each, each) if type.objects else each for each in several]
    fitted = [fit_one(each, type.kind) for each in values if each is not None and (each or not type.optional)]
    nothing = "" if type.kind is str and not type.optional else None
    return fitted if type.many else fitted[0] if fitted else nothing


def fit_one(value: Any, kind: Any) -> Any:
    """Return one value as its type; one of hikari's objects stays itself unless its id is asked for."""
    if isinstance(value, str | bool):
        text = value.strip() if isinstance(value, str) and kind is not str else value
        fitted = msgspec.convert(text, kind, strict=False, dec_hook=read_id)
        if isinstance(fitted, float) and not abs(fitted) < float("inf"):
            raise ValueError("no number that could be kept")
        return fitted
    return hikari.Snowflake(value) if kind in (int, hikari.Snowflake) else value


def typed_values(components: Sequence[JSON]) -> JSON:
    """Return what stands in a submitted form, by name: a text, a tick, or a list of values."""
    return {each["custom_id"]: each.get("value", each.get("values")) for each in controls_of(components)}


def kept_values(components: Sequence[JSON], found: Mapping[str, Any]) -> JSON:
    """Return the same so that it can be put into the form again: an id alone does not tell whether it is a role's."""
    mixed = [each for each in controls_of(components) if each["type"] == MENTIONABLES]
    chosen = {each["custom_id"]: [found.get(id, id) for id in each["values"]] for each in mixed}
    return typed_values(components) | {name: default_values(MENTIONABLES, ids) or [] for name, ids in chosen.items()}


def controls_of(components: Sequence[JSON]) -> list[JSON]:
    """Return the controls of a submitted form."""
    inner: list[JSON] = [each.get("component") or {} for each in components]
    return [each for each in inner if "custom_id" in each]


FOR_EVER = InStore()
R = TypeVar("R", bound=Record)
V = TypeVar("V", bound=View)
F = TypeVar("F", bound=Handler)
NAME = re.compile(r"[a-z_][a-z0-9_]{0,31}")  # names with an underscore first are the bot's own


def register(
    *, name: str, version: int = 1, state: InStore | InMessage = FOR_EVER, auto_defer: AutoDefer = AutoDefer.UPDATE
) -> Callable[[type[R]], type[R]]:
    """Mark a view or record class. `name` is in every custom id and in the store for ever: never change or reuse it.

    Raise `version` when fields change so that old states do not fit, and write `migrate`.
    """

    def mark(cls: type[R]) -> type[R]:
        cls.registration = Registration(name, version, state, auto_defer)
        return cls

    return mark


class HandlerOptions(NamedTuple):
    """What `@handler` says about a method."""

    auto_defer: AutoDefer | None = None
    opens_form: bool = False
    once: bool = False
    cooldown: float = 0


@typing.overload
def handler(function: F) -> F: ...
@typing.overload
def handler(
    *, auto_defer: AutoDefer | None = None, opens_form: bool = False, once: bool = False, cooldown: float = 0
) -> Callable[[F], F]: ...
def handler(function: F | None = None, **options: Any) -> F | Callable[[F], F]:
    """Mark a method that components call, `async def name(self, ctx, …)`, or a function that `app.later` calls.

    Its name is in every custom id. `opens_form`: it calls `ctx.open`, which Discord takes within 3 s alone and not
    after a defer. `once`: of all clicks on the message, the first that ends well. `cooldown`: seconds before the same
    person may use it again, on whatever message; this outlives a restart.
    """

    def mark(method: F) -> F:
        method.__dict__["handler"] = HandlerOptions(**options)
        return method

    return mark(function) if function else mark


def is_marked(thing: object, mark: Literal["handler", "command", "listener", "repeat", "hook"]) -> bool:
    """Return whether @handler, @command, @listen, @every, @daily or @hook marked it."""
    return mark in getattr(thing, "__dict__", {})


class Route(NamedTuple):
    """A handler: how to call it and how to read its arguments. `view` None: a function, or the submit of a form."""

    view: type[View] | None
    function: Handler
    arguments: msgspec.json.Decoder[tuple[Any, ...]]
    options: HandlerOptions
    auto_defer: AutoDefer
    form: type[Form] | None
    place: str  # "Poll.vote_yes", for messages

    def check(self, args: tuple[Any, ...]) -> None:
        """Raise LayoutError when it could not be called with these."""
        try:
            self.arguments.decode(write_json(args))
        except msgspec.ValidationError as error:
            raise LayoutError(f"{self.place} cannot be called with {args}: {error}.") from error


class Views:
    """The registry: which class a name means, and which handler a custom id."""

    def __init__(self) -> None:
        self.classes: dict[str, type[Record]] = {}
        self._routes: dict[tuple[str, str], Route] = {}

    def add(self, cls: type[Record], *, own: bool = False) -> None:
        """Register a marked view or record, or one of the bot's own. Raises OperatorError when it cannot work."""
        registration = cls.__dict__.get("registration")
        if registration is None:
            raise OperatorError(f"{cls.__name__} is not registered. Write @register(name=…, version=1) above it.")
        name = registration.name
        self._claim(cls, name, own)
        if isinstance(registration.state, InMessage) and not issubclass(cls, View):
            raise OperatorError(f"{cls.__name__} has no message to be kept in. Write state=InStore().")
        try:
            seconds_of(registration.state.ttl or 0)
            check_fields(cls)
            if not issubclass(cls, View) and [each.name for each in msgspec.structs.fields(cls) if each.required]:
                raise OperatorError(f"{cls.__name__}: there is always a first time. Give every field a default.")
        except (ValueError, TypeError, AttributeError) as error:
            raise OperatorError(f"{cls.__name__}: {error}. Write for example state=InStore(ttl=DAY).") from None
        self.classes[name] = cls
        for method_name, method in inspect.getmembers(cls, lambda member: is_marked(member, "handler")):
            self._routes[name, method_name] = read_handler(cls, method_name, method)

    def add_form(self, cls: type[Form]) -> None:
        """Register a form that is opened without `then`."""
        self._claim(cls, cls.form_name)
        self._routes[cls.form_name, "submit"] = read_handler(cls, "submit", cls.submit)

    def add_function(self, function: Handler) -> None:
        """Register a function for `later`."""
        name = getattr(function, "__name__", "")
        if self._routes.setdefault(("", name), route := read_handler(None, name, function)).function != route.function:
            raise OperatorError(f"{name} is there twice. Rename one of the two handlers.")

    def _claim(self, cls: type, name: str, own: bool = False) -> None:
        if not NAME.fullmatch(name) or (name[0] == "_") is not own:
            raise OperatorError(f"{cls.__name__}: {name!r} is no name. Use up to 32 of a-z, 0-9 and _, a letter first.")
        there = self.classes.get(name) or getattr(self._routes.get((name, "submit")), "form", None) or cls
        if there is not cls:
            raise OperatorError(f"{cls.__name__}: {there.__name__} is registered as {name!r} already.")

    def require(self, cls: type[Record]) -> None:
        """Raise LayoutError when clicks on the view, or its record, would lead nowhere, or to another class."""
        if cls not in self.classes.values():
            raise LayoutError(f"{cls.__name__} is not known here. List it in your_bot: app.add({cls.__name__})")

    def route(self, view: str, method: str) -> Route | None:
        """Return the handler of that name, or None when this bot has no such view or handler (any more)."""
        return self._routes.get((view, method))

    @property
    def that_end(self) -> list[str]:
        """The names of the classes whose records get an event when they expire."""
        return [name for name, cls in self.classes.items() if issubclass(cls, View)]


def check_fields(cls: type[Record]) -> None:
    """Raise OperatorError when a field is one of Discord's objects, which no state can hold."""
    insist(
        cls.__name__, (not cls.__struct_config__.array_like, " is array_like, and a state keeps the names of fields.")
    )
    for each in msgspec.structs.fields(cls):
        kinds = [kind for kind in (each.type, *typing.get_args(each.type)) if inspect.isclass(kind)]
        if any(issubclass(kind, hikari.Unique) for kind in kinds):
            raise OperatorError(
                f"{cls.__name__}.{each.name} would keep an object of Discord's. Keep its id: {each.name}: int"
            )


def read_handler(owner: type[View] | type[Form] | type[Record] | None, name: str, method: Handler) -> Route:
    """Return how to call a marked method or function. Raises OperatorError when its signature does not fit."""
    place, start = (f"{owner.__name__}.{name}", 2) if owner else (name, 1)
    parameters = list(inspect.signature(method).parameters.values())
    if not inspect.iscoroutinefunction(method) or len(parameters) < start:
        first = "self, ctx: ComponentContext" if owner else "ctx: EventContext"
        raise OperatorError(f"{place} cannot be a handler. Write: async def {name}({first}) -> None")
    try:
        hints = typing.get_type_hints(method)
    except Exception as error:  # whatever an annotation may hold
        raise OperatorError(f"{place}: {error}. {TYPES_MEANT}") from error
    form = next((hints.get(each.name) for each in parameters[start : start + 1] if is_form(hints.get(each.name))), None)
    for each in parameters[start + (form is not None) :]:
        if each.kind is not each.POSITIONAL_OR_KEYWORD or each.default is not each.empty:
            raise OperatorError(f"{place}: the argument {each.name} must be a plain one. Write {each.name}: int, say")
        if each.annotation is each.empty:
            raise OperatorError(f"{place}: the argument {each.name} has no type. Write for example {each.name}: int")
    try:
        kinds = tuple(hints[each.name] for each in parameters[start + (form is not None) :])
        decoder: Any = msgspec.json.Decoder(tuple.__class_getitem__(kinds), dec_hook=read_id)
        form = typing.cast("type[Form] | None", owner if is_form(owner) else form)
        if form:
            form().build()
            form.types()
    except LayoutError as error:
        raise OperatorError(f"{place}: {error}") from error
    except Exception as error:
        raise OperatorError(f"{place}: {error}. {TYPES_MEANT}") from error
    options = method.__dict__.get("handler", HandlerOptions())
    registered = owner.registration.auto_defer if owner and issubclass(owner, Record) else AutoDefer.UPDATE
    auto_defer = AutoDefer.OFF if options.opens_form else options.auto_defer or registered
    method.__dict__["form"] = form
    method.__dict__["decoder"] = decoder  # so that a component's arguments are checked where it is built
    view = owner if owner and issubclass(owner, View) else None
    return Route(view, method, decoder, options, auto_defer, form, place)


TYPES_MEANT = "Use types such as int or str, imported where bot.py sees them."


def is_form(kind: Any) -> bool:
    """Return whether it is a class of forms."""
    return inspect.isclass(kind) and issubclass(kind, Form)


# The id codec: poll:Kx3fQ8pAzbQ:vote_yes:5,"a" — view, key of its record, handler, arguments as JSON without brackets.
# Instead of a key, a view InMessage has "~" and a piece of its state.

IN_MESSAGE = "~"


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
    if len(parts) < 3 or not (NAME.fullmatch(parts[0]) and re.fullmatch(r"~.*|[\w-]{11}", parts[1], re.ASCII)):
        return None
    return RecordId(parts[0], parts[1]), parts[2], f"[{parts[3] if len(parts) > 3 else ''}]"


def ids_on(part: Any) -> Iterator[str]:
    """Yield the custom ids on one of hikari's messages or components."""
    for each in (*getattr(part, "components", ()), *filter(None, [getattr(part, "accessory", None)])):
        yield from [each.custom_id] if getattr(each, "custom_id", None) else ids_on(each)


def new_key(event: EventKey | None = None, count: int = 0) -> str:
    """Return a record's key: the same for the same event and count, so that an event run again makes no second one."""
    seed = hashlib.sha256(f"{event}/{count}".encode()).digest()[:8] if event else secrets.token_bytes(8)
    return base64.urlsafe_b64encode(seed).rstrip(b"=").decode()


def record_id(cls: type[Record], parts: Sequence[Any]) -> RecordId:
    """Return the id of a user's record: its name and the parts of its key, such as a server's and a person's id."""
    return RecordId(cls.registration.name, ":".join(map(key_part, parts)))


def key_part(part: Any) -> str:
    """Return a part of a key as it is kept: no two parts look alike, and none has the colon that stands between."""
    if part is None:
        return "%0"
    text = str(int(part)) if isinstance(part, hikari.Unique | int) else str(part)
    return text.replace("%", "%25").replace(":", "%3A") or "%"


def last_part(key: str) -> str:
    """Return the last part of a key as the text it was."""
    part = key.rpartition(":")[2]
    return {"%": "", "%0": "None"}.get(part, part.replace("%3A", ":").replace("%25", "%"))


def spread(view: View, body: Body) -> Body:
    """Return the message with the view's state in its custom ids. Raises LayoutError when there is no room for it."""
    packed = msgspec.msgpack.encode((view.registration.version, read_json(write_json(view))))
    text = min(b"p" + packed, b"z" + zlib.compress(packed, 9), key=len)
    left = base64.b85encode(text).decode()
    built, size, room = [each.build() for each in body["components"]], len(left), 0
    for each in (each for payload, _ in built for each in walk(payload) if IN_MESSAGE in each.get("custom_id", "")):
        free = CUSTOM_ID_MAX - len(each["custom_id"])
        chunk, left, room = left[:free], left[free:], room + free
        each["custom_id"] = each["custom_id"].replace(f":{IN_MESSAGE}:", f":{IN_MESSAGE}{chunk}:", 1)
    if left:
        name = view.registration.name
        raise LayoutError(
            f"view {name}: its state takes {size} characters, its components have room for {room}. Use InStore"
        )
    return body | {"components": [Built(*pair) for pair in built]}


def gather(id: RecordId, components: Sequence[JSON], place: Place) -> Saved | None:
    """Return the record that `spread` put into a message, or None when it has none."""
    start, found = f"{id.name}:{IN_MESSAGE}", [each.get("custom_id") or "" for top in components for each in walk(top)]
    text = "".join(each.removeprefix(start).partition(":")[0] for each in found if each.startswith(start))
    try:
        data = base64.b85decode(text)
        data = zlib.decompress(data[1:]) if data[:1] == b"z" else data[1:]
        model, state = msgspec.msgpack.decode(data, type=tuple[int, JSON])
        return Saved(id, 1, model, write_json(state), 1, place, None)
    except (ValueError, TypeError, RecursionError, zlib.error, msgspec.MsgspecError):
        return None


def lay_out(view: View, id: RecordId) -> Body:
    """Return what hikari sends for the view as the record `id`. Raises LayoutError when it breaks a limit."""
    in_message = isinstance(view.registration.state, InMessage)

    def name_id(method: Handler, args: tuple[Any, ...]) -> str:
        method_name = getattr(method, "__name__", "")
        function = getattr(method, "__func__", None)
        if getattr(method, "__self__", None) is view and not is_marked(method, "handler"):
            raise LayoutError(f"{method_name} is not marked. Write @handler above it.")
        if getattr(method, "__self__", None) is not view:
            raise LayoutError(f"{method_name or method!r} is no @handler of this view. Pass self.method.")
        if form := method.__dict__.get("form"):
            raise LayoutError(
                f"{method_name} takes a form: ctx.open({form.__name__}(), then=self.{method_name}) calls it."
            )
        if getattr(type(view), method_name, None) is not function:
            raise LayoutError(f"{method_name} is not the name of its method. Put functools.wraps on its decorator.")
        custom_id = encode_id(id._replace(key=IN_MESSAGE) if in_message else id, method_name, args)
        try:
            if decoder := method.__dict__.get("decoder"):
                decoder.decode(write_json(args))
        except msgspec.ValidationError as error:
            raise LayoutError(f"{method_name} cannot be called with {args}: {error}.") from error
        return custom_id

    body = assemble(view.render, name_id, f"view {view.registration.name}")
    return spread(view, body) if in_message else body


def encode_state(record: Record) -> bytes:
    """Return the record's fields as the store keeps them. Raises TypeError for what could not be read again."""
    data = write_json(record)
    try:
        msgspec.json.decode(data, type=type(record), dec_hook=read_id)
    except msgspec.ValidationError as error:
        what = "view" if isinstance(record, View) else "record"
        raise TypeError(f"{what} {record.registration.name} is not saved: {error}") from error
    return data


def decode_state(cls: type[R], saved: Saved) -> R:
    """Return the view or record of what was saved, migrated if need be. Raises StateUnreadableError; it stays saved."""
    version = cls.registration.version
    try:
        if saved.model == version:
            return msgspec.json.decode(saved.data, type=cls, dec_hook=read_id)
        if saved.model < version:
            return msgspec.convert(cls.migrate(saved.model, msgspec.json.decode(saved.data)), cls, dec_hook=read_id)
    except Exception as error:  # migrate is the user's code
        changed = isinstance(error, msgspec.ValidationError) and saved.model == version
        remedy = ". Give new fields a default, or raise version= and write migrate" if changed else ""
        raise StateUnreadableError(f"{saved.id.name} {saved.id.key}: {error}{remedy}") from error
    raise StateUnreadableError(f"{saved.id.name} {saved.id.key} was saved by the newer version {saved.model}.")


def unsaved_fields(view: View, saved: Saved) -> str:
    """Return the names of the fields in which the view differs from its record, or ""."""
    if write_json(view) == saved.data:
        return ""
    before = decode_state(type(view), saved)
    return ", ".join(name for name in view.__struct_fields__ if getattr(view, name) != getattr(before, name))


def first_saved(record: Record, id: RecordId, now: float) -> Saved:
    """Return what to save for a new record."""
    ttl = record.registration.state.ttl
    expires_at = None if ttl is None else now + seconds_of(ttl)
    return Saved(id, 0, record.registration.version, encode_state(record), 0, None, expires_at)


async def create_record(store: Store, view: V, key: str, now: float, ttl: float | str | None = None) -> tuple[V, Saved]:
    """Save a new view and return it with its record, or the one that an earlier run of the same event saved."""
    saved = first_saved(view, RecordId(view.registration.name, key), now)
    saved = saved if ttl is None else saved._replace(expires_at=now + seconds_of(ttl))
    lay_out(view, saved.id)  # what cannot be shown is not saved
    if isinstance(view.registration.state, InMessage):
        if ttl is not None:
            raise LayoutError(
                f"view {view.registration.name} is kept in its message, and never expires. Leave out ttl=."
            )
        return view, saved._replace(version=1, shown=1)
    try:
        await store.commit([saved], None)
    except StateConflictError:
        existing = await store.load(saved.id)
        if existing is None:
            raise
        return decode_state(type(view), existing), existing
    return view, saved._replace(version=1, shown=1)


# ---- 5. Events and records -------------------------------------------------------------------------------------------
# What every handler is given: an EventContext knows the records that its event changes, and commits them together with
# the mark that the event is applied; what is to happen later is committed with it as well. Before that, the queue in
# front of each record; after it, what runs without a click: listeners for gateway events, and functions that run by the
# clock. The App is section 10.


# Discord's ids are smaller; a larger number would be refused by the store, and only after the handler has run.
Id: TypeAlias = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


class Interaction(msgspec.Struct):
    """The part of Discord's interaction object that this file reads; the whole is `ctx.interaction`."""

    class Message(msgspec.Struct):
        """The message a component sits on."""

        id: Id
        flags: int = 0
        components: msgspec.Raw = msgspec.Raw(b"[]")

    class Data(msgspec.Struct):
        """What was used: a command with its options, a component, or a form."""

        name: str = ""
        type: int = 1
        custom_id: str = ""
        target_id: str = ""
        values: list[str] = field(default_factory=list[str])
        options: list[JSON] = field(default_factory=list[JSON])
        components: list[JSON] = field(default_factory=list[JSON])
        resolved: JSON | None = None

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
    REPLIED = "a message of its own, or a form"
    THINKING = "a promised message"
    UPDATED = "its message, changed now or later"
    TAKEN = "answered by an earlier run"
    EXPIRED = "too late"


class Lane:
    """The queue in front of one record. `saved` hands the record on, so that a busy one is not read for every click."""

    def __init__(self) -> None:
        self.lock, self.users = asyncio.Lock(), 0
        self.saved: Saved | None = None
        self.owner: object = None


class Slots(asyncio.Semaphore):
    """How many handlers run at once. One that waits for a record lends its slot: those before it may need one."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self._at_work: set[asyncio.Task[Any] | None] = set()

    async def __aenter__(self) -> None:
        await super().__aenter__()
        self._at_work.add(asyncio.current_task())

    async def __aexit__(self, *error: Any) -> None:
        if (me := asyncio.current_task()) in self._at_work:
            self._at_work.discard(me)
            await super().__aexit__(*error)

    @contextlib.asynccontextmanager
    async def lent(self) -> AsyncGenerator[None]:
        """Do without the slot of this task, if it has one, and take it again at the end."""
        me = asyncio.current_task()
        has_one = me in self._at_work
        if has_one:
            self._at_work.discard(me)
            self.release()
        try:
            yield
        finally:
            if has_one:
                await self.acquire()  # when this is cancelled, there is none to give back
                self._at_work.add(me)


class Lanes:
    """The queues in front of all records that somebody is at. Who waits in one lends its slot meanwhile."""

    # Who waits for whom: an event, also in the tasks that its handler makes; elsewhere the task.
    holder = contextvars.ContextVar[object]("holder", default=None)

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._lanes: dict[RecordId, Lane] = {}
        self._waits: dict[object, list[Lane]] = {}

    @contextlib.asynccontextmanager
    async def enter(self, id: RecordId) -> AsyncGenerator[Lane]:
        """Have the record to oneself, after those who came before. Raises RuntimeError when that would never be."""
        lane, me = self._lanes.setdefault(id, Lane()), self.holder.get() or asyncio.current_task()
        if self._is_held_up_by(lane, me):
            raise RuntimeError(f"{id.name} {id.key} would wait for itself: its holder waits for what is held here.")
        lane.users += 1
        try:
            self._waits.setdefault(me, []).append(lane)
            async with self._slots.lent() if lane.users > 1 else contextlib.nullcontext():
                await lane.lock.acquire()  # asyncio's lock lets its waiters in in the order they came
            self._waits[me].remove(lane)
            lane.owner = me
            yield lane
        finally:
            waits = self._waits.pop(me, [])
            if lane.owner is me:
                lane.owner = None
                lane.lock.release()
            else:
                waits.remove(lane)
            if waits:
                self._waits[me] = waits
            lane.users -= 1
            if not lane.users:
                del self._lanes[id]

    def _is_held_up_by(self, lane: Lane, me: object) -> bool:
        owners, seen = [lane.owner], set[object]()
        while owners:
            if (owner := owners.pop()) is me:
                return True
            if owner is not None and owner not in seen:
                seen.add(owner)
                owners += [each.owner for each in self._waits.get(owner, ())]
        return False

    def is_busy(self, id: RecordId) -> bool:
        """Return whether somebody has the record, or waits for it."""
        return id in self._lanes

    @contextlib.asynccontextmanager
    async def hold(self, ids: Iterable[RecordId]) -> AsyncGenerator[None]:
        """Have several records to oneself. In one order for all, or two would wait for each other for ever."""
        async with contextlib.AsyncExitStack() as stack:
            for id in sorted(ids):
                await stack.enter_async_context(self.enter(id))
            yield


Outcome: TypeAlias = Literal["shown", "gone", "out of reach"]
UNKNOWN_MESSAGE, THREAD_ARCHIVED = 10008, 50083  # Discord's codes


def whole(body: Body) -> Body:
    """Return the message with nothing left of what it was before."""
    nothing: Body = {"content": None, "embeds": None, "attachments": None}
    return nothing | body


async def edit_message(rest: REST, place: Place, webhook: tuple[int, str] | None, body: Body) -> Outcome:
    """Change a message and return what became of it.

    Through a click's token (application and token) where there is one, for that is outside the bot's rate limits and
    reaches ephemeral messages and servers that the bot is not in; else through the channel.
    """
    if webhook:
        with contextlib.suppress(hikari.NotFoundError, hikari.UnauthorizedError):
            await rest.edit_interaction_response(*webhook, **whole(body))
            return "shown"
    if place.ephemeral:
        return "out of reach"
    try:
        await rest.edit_message(place.channel, place.message, **whole(body))
    except hikari.NotFoundError as error:
        return "gone" if error.code == UNKNOWN_MESSAGE else "out of reach"
    except (hikari.ForbiddenError, hikari.BadRequestError) as error:
        if isinstance(error, hikari.BadRequestError) and error.code != THREAD_ARCHIVED:
            raise
        return "out of reach"
    return "shown"


async def to_its_end(work: asyncio.Task[None]) -> None:
    """Wait for what goes on also when its caller is cancelled; it is over, one way or the other, when this ends."""
    try:
        await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        raise


class EventContext:
    """What every handler is given: your records, what is to happen later, and the view it is about, if any."""

    locale = ""
    headers: Mapping[str, str] = MappingProxyType({})  # of a hook's request: X-… and Webhook-…, in lower case

    def __init__(self, app: App, event: Event) -> None:
        self.app, self.event = app, event
        self.what: str = event.key
        self.applied = self.said = self.shown = False  # committed; told the person; handed to a display
        self.ended = False  # the view's ttl is over
        self.held: frozenset[RecordId] = frozenset()  # lanes that are ours while this event runs
        self.kept = contextlib.AsyncExitStack()  # lets go of those that were taken on the way
        self.place: Place | None = None
        self._made, self._bound = 0, typing.cast("tuple[View, Saved] | None", None)
        self._records: dict[RecordId, tuple[Record, Saved]] = {}
        self._removed, self._timers = set[RecordId](), list[Timer]()
        self._posted: list[tuple[View, RecordId]] = []

    @property
    def texts(self) -> Texts:
        """What the bot says of its own accord, in the person's language where `app.texts` has it."""
        return self.app.texts.get(self.locale) or self.app.texts.get("") or Texts()

    # Your records.

    async def record(self, cls: type[R], *key: Any) -> R:
        """Return the record of that key, a fresh one when there is none: `await ctx.record(Score, guild, user)`.

        What you change in it is saved with this event, in one commit with the mark that it is done: before the person
        is told anything, or at the end. When somebody else changed it meanwhile, the handler runs again on what is
        there now; after an answer it cannot, so ask first or afterwards: then the record is yours until the end.
        Raises StateUnreadableError, and RuntimeError when you would wait for each other for ever.
        """
        self.app.views.require(cls)
        return typing.cast("R", (await self._open_record(cls, record_id(cls, key)))[0])

    async def _open_record(self, cls: type[Record], id: RecordId) -> tuple[Record, Saved]:
        if id not in self._records:
            if (self.said or self.applied) and id not in self.held:  # from now on nothing can run again
                await self.kept.enter_async_context(self.app.lanes.enter(id))
                self.held |= {id}
            saved = await self.app.store.load(id)
            record = decode_state(cls, saved) if saved else cls()
            self._records[id] = record, saved or first_saved(record, id, time.time())
        elif id in self._removed:  # a fresh one takes its place
            self._removed.discard(id)
            self._records[id] = cls(), self._records[id][1]
        return self._records[id]

    def remove(self, record: Record) -> None:
        """Delete a record that `record` returned, with this event."""
        self._removed |= {id for id, (each, _) in self._records.items() if each is record}

    async def claim(self, key: str, expires_at: float | None, place: Place | None = None) -> bool:
        """Return whether nobody has claimed the key yet; it is then ours when the event is committed."""
        id = RecordId(Claim.registration.name, key)
        claim, saved = await self._open_record(Claim, id)
        is_free = isinstance(claim, Claim) and not claim.taken
        if is_free:
            self._records[id] = Claim(taken=True), saved._replace(expires_at=expires_at, place=place)
        return is_free

    def changes(self) -> list[Saved]:
        """Return the records that were changed and not saved yet."""
        found: list[Saved] = []
        for id, (record, saved) in self._records.items():
            data = b"" if id in self._removed else encode_state(record)
            if data and data != saved.data and decode_state(type(record), saved) == record:
                continue  # migrated, or a set in another order
            if data != saved.data and (data or saved.version):
                found.append(saved._replace(data=data, model=record.registration.version))
        return found

    @property
    def touched(self) -> frozenset[RecordId]:
        """The records that were asked for."""
        return frozenset(self._records)

    def start_over(self, *, again: bool = False) -> None:
        """Forget what a run has done to records; it may run `again`, and then makes things of the same keys."""
        self._records.clear()
        self._removed.clear()
        self._timers.clear()
        self._posted.clear()
        self._made = 0 if again else self._made

    @property
    def is_changed(self) -> bool:
        """Whether records were changed, or timers set, that are not saved yet."""
        return bool(self._timers or self.changes())

    async def save(self, *more: Saved) -> None:
        """Commit what was changed, the timers, and that this event is applied. Raises StateConflictError."""
        async with self._queued():
            await to_its_end(self.app.spawn(self._save(more)))

    @contextlib.asynccontextmanager
    async def _queued(self) -> AsyncGenerator[None]:
        others = {saved.id for saved in self.changes()} - self.held
        async with contextlib.AsyncExitStack() as stack:
            with contextlib.suppress(
                RuntimeError
            ):  # two that would wait for each other: the versions tell who was first
                await stack.enter_async_context(self.app.lanes.hold(others))
            yield

    async def _save(self, more: Sequence[Saved]) -> None:
        changed, timers = [*self.changes(), *more], [*self._timers]
        await self.app.commit(changed, None if self.applied else self.event.key, timers)
        self.applied = True
        del self._timers[: len(timers)]
        for saved in changed:
            record = self._records.pop(saved.id, (None,))[0]
            self._removed.discard(saved.id)
            if record and saved.data:
                self._records[saved.id] = record, saved._replace(version=saved.version + 1)

    # What is to happen later, and elsewhere.

    async def later(self, when: float | str | datetime.datetime, function: Handler, *args: Any) -> EventKey:
        """Call a handler later: at a time, or after seconds or "10m". Return the key that `cancel` takes.

        `function` is one marked by @handler and listed in your_bot, or a handler of this view or of one that this event
        has posted. Set with this event's commit, it outlives restarts; what came due meanwhile runs at the next start.
        Raises ValueError.
        """
        owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
        posted = next((id for view, id in self._posted if view is owner), None)
        id = posted or (self.bound[1].id if owner else RecordId("", ""))
        key = EventKey(f"timer:{self.next_key(None)}")
        self._timers.append(Timer(key, moment(when), timer_body(self.app.views, id, name, args)))
        return key

    def cancel(self, key: EventKey) -> None:
        """Take back what `later` set, with this event's commit."""
        self._timers.append(Timer(key, None))

    async def send(
        self, channel: hikari.Snowflakeish, what: str | View | Layout, *, ttl: float | str | None = None
    ) -> hikari.Message:
        """Post a message in a channel. When the event runs again after a crash, Discord drops the copy.

        `ttl`: seconds, or "2h", after which this view expires, instead of its class's.
        """
        return await post(self.app, channel, what, self.next_key(what), ttl)

    def next_key(self, what: object) -> str:
        """Return a key for what this event makes, the same when it runs again; a view can then be found by `later`."""
        self._made += 1
        key = new_key(self.event.key, self._made)
        if isinstance(what, View):
            self._posted.append((what, RecordId(what.registration.name, key)))
        return key

    # The view it is about.

    @property
    def bound(self) -> tuple[View, Saved]:
        """The view this event is for, and its record as last loaded or saved."""
        if self._bound is None:
            raise RuntimeError("there is no view here: rerender() works in a view's own handlers, edit() everywhere.")
        return self._bound

    @property
    def saved(self) -> Saved | None:
        """The view's record, or None when there is none (any more)."""
        return self._bound[1] if self._bound else None

    def bind(self, view: View, saved: Saved) -> None:
        """Say which view and record the event is for."""
        self._bound, self.place = (view, saved), self.place or saved.place

    async def rerender(self, *, renew: bool = False) -> None:
        """Save the view and show it. When this returns, the change survives a power cut; the message follows.

        The event is now applied: it is never run again, and a crash leaves its handler where it stopped. `renew`: the
        ttl begins anew. Raises StateConflictError, with `self` brought to the state that won, when the record was
        changed by somebody else; StateUnreadableError when that state cannot be read; LayoutError, with nothing saved.
        """
        view, saved = self.bound
        body, ttl = lay_out(view, saved.id), view.registration.state.ttl
        expires_at = time.time() + seconds_of(ttl) if renew and ttl is not None else saved.expires_at
        successor = self._successor(view, saved, expires_at)
        if self.ended and not renew:
            await self._change(body)  # there is nothing left to save
            return
        if isinstance(view.registration.state, InMessage):
            await self._change(body)  # the message is the state: it is saved when Discord has it
            await self.save()  # after a conflict over a record, the handler runs on the same state again
            self._bound = view, successor._replace(version=saved.version + 1)
            self.app.dispatch.remember(self._bound[1])
            return
        async with self._queued():
            await to_its_end(self.app.spawn(self._save_and_show(view, successor, body)))

    def _successor(self, view: View, saved: Saved, expires_at: float | None) -> Saved:
        place, model = self.place or saved.place, view.registration.version
        return saved._replace(data=encode_state(view), model=model, place=place, expires_at=expires_at)

    async def _save_and_show(self, view: View, successor: Saved, body: Body) -> None:
        try:
            await self._save([successor])
        except StateConflictError:
            await self._adopt_winners()
            raise
        self._bound = view, successor._replace(version=successor.version + 1)
        self._show(self._bound[1], body)

    def _show(self, saved: Saved, body: Body) -> None:
        self.app.show(saved, body, None)

    async def _adopt_winners(self) -> None:
        view, saved = self.bound
        self._bound = view, await self._adopt(view, saved)
        for id, (record, before) in self._records.items():
            self._records[id] = record, await self._adopt(record, before)

    async def _adopt(self, record: Record, saved: Saved) -> Saved:
        winner = await self.app.store.load(saved.id)
        if winner is None and isinstance(record, View):
            raise StateUnreadableError(f"{saved.id.name} {saved.id.key} is gone: its ttl is over.")
        winner = winner or first_saved(type(record)(), saved.id, time.time())
        state = decode_state(type(record), winner)
        for name in record.__struct_fields__:
            setattr(record, name, getattr(state, name))
        return winner

    async def edit(self, layout: Layout) -> None:
        """Change the message without state. Raises LayoutError."""
        await self._change(assemble(lambda: layout, no_handler, "edit"))

    async def switch_off(self) -> None:
        """Show the view with its controls switched off."""
        view, saved = self.bound
        await self._change(disabled(lay_out(view, saved.id)))

    async def _change(self, body: Body) -> None:
        if self.place is None or await edit_message(self.app.rest, self.place, self.webhook, body) != "shown":
            log.info("%s: its message is gone or out of reach", self.what)

    @property
    def webhook(self) -> tuple[int, str] | None:
        """Application and token to change the message with, where there is a click that allows it."""
        return None

    async def close(self) -> None:
        """End the view now, as if its ttl were over: `on_expire` runs at once, and later clicks find no state."""
        view, saved = self.bound
        if isinstance(view.registration.state, InMessage):
            await view.on_expire(self)
            return
        if self.ended:
            await self.switch_off()
            return
        body = disabled(lay_out(view, saved.id))
        successor = self._successor(view, saved, time.time())
        await self.save(successor)
        self._bound = None
        self._show(successor._replace(version=successor.version + 1), body)
        self.app.wake()

    async def delete(self) -> None:
        """Delete the message and the view's record."""
        _, saved = self.bound
        if saved.version and not saved.id.key.startswith(IN_MESSAGE):
            await self.save(saved._replace(data=b""))
        self._bound = None
        await self._delete_message()

    async def _delete_message(self) -> None:
        if self.place and not self.place.ephemeral:
            with contextlib.suppress(hikari.NotFoundError):
                await self.app.rest.delete_message(self.place.channel, self.place.message)


@register(name="_claim")
class Claim(Record):
    """Says that a single use was used, or that a cooldown runs."""

    taken: bool = False


def timer_body(views: Views, id: RecordId, name: str, args: tuple[Any, ...]) -> bytes:
    """Return the event that calls the handler. Raises ValueError when it could not be called."""
    route = views.route(id.name, name)
    if route is None or route.form or id.key.startswith(IN_MESSAGE):
        raise ValueError(f"{name or 'this'} cannot be called later. Mark it with @handler and list it in your_bot.")
    route.check(args)
    return write_json({"call": [*id, name], "arguments": args})


async def post(
    app: App, channel: hikari.Snowflakeish, what: str | View | Layout, key: str, ttl: float | str | None = None
) -> hikari.Message:
    """Post a message in a channel, a view saved first under the key. Discord drops a second one with that key."""
    saved = None
    if isinstance(what, View):
        what, saved = await create_record(app.store, app.known(what), key, time.time(), ttl)
    body = body_of(what, saved, "send")
    message = await app.rest.create_message(channel, **body, flags=flags_of(body, False), nonce=key)
    if saved:
        app.store.note_shown(saved.id, saved.version, Place(message.channel_id, message.id, False, message.guild_id))
        await app.store.flush()  # from now on `find` finds it
    return message


def body_of(what: str | View | Layout, saved: Saved | None, where: str) -> Body:
    """Return a message of text, of a saved view, or of components. Raises LayoutError."""
    if isinstance(what, str):
        what = Plain(what)
    if isinstance(what, View):
        return lay_out(what, saved.id if saved else RecordId(what.registration.name, new_key()))
    return assemble(lambda: what, no_handler, where)


# Listeners and what runs by the clock: marked functions as well, whose events go through the inbox like clicks.


def union(intents: Iterable[hikari.Intents]) -> hikari.Intents:
    """Return all of the intents together."""
    together = hikari.Intents.NONE
    for each in intents:
        together |= each
    return together


class Listener(NamedTuple):
    """A coroutine that gateway events of a type run."""

    function: Handler
    event: type[hikari.Event]
    durable: bool
    intents: hikari.Intents


def listen(
    event: type[hikari.Event], *, durable: bool = True, intents: hikari.Intents = hikari.Intents.NONE
) -> Callable[[F], F]:
    """Mark `async def f(ctx: EventContext, event)` for the gateway events of a type, such as hikari.MemberCreateEvent.

    They are accepted, kept and retried like clicks; with `durable=False` a crash may lose or repeat one. What the bot
    itself does is heard too: look at `event.is_human`. The intents that the event needs are asked for; add others, such
    as hikari.Intents.MESSAGE_CONTENT, with `intents`.
    """
    needed = union((intents, *hikari.events.base_events.get_required_intents_for(event)))

    def mark(function: F) -> F:
        if is_marked(function, "listener"):
            raise OperatorError(
                f"{getattr(function, '__name__', '?')}: write one @listen, and a function for each event."
            )
        function.__dict__["listener"] = Listener(function, event, durable, needed)
        return function

    return mark


class Repeat(NamedTuple):
    """A coroutine that runs over and over. `next_after` gives its next moment."""

    function: Handler
    rhythm: str
    next_after: Callable[[float], float]

    @property
    def timer(self) -> str:
        """The key of its timer; another rhythm has another one."""
        return f"repeat:{getattr(self.function, '__name__', '')}:{self.rhythm}"


def every(span: float | str) -> Callable[[F], F]:
    """Mark `async def f(ctx: EventContext)` to run every so many seconds, or "10m": at :00, :10, :20 and so on (UTC).

    Moments that passed while the bot was down are made up for by one run at the start.
    """
    seconds = seconds_of(span)
    if seconds < 1:
        raise ValueError(f"every({span!r}): a second is the least.")

    def next_after(now: float) -> float:
        return (now // seconds + 1) * seconds

    def mark(function: F) -> F:
        function.__dict__["repeat"] = Repeat(function, f"{seconds:g}", next_after)
        return function

    return mark


def daily(at: str, *, tz: str = "UTC") -> Callable[[F], F]:
    """Mark `async def f(ctx: EventContext)` to run once a day: `@daily("09:00", tz="Europe/Berlin")`.

    Days that passed while the bot was down are made up for by one run at the start.
    """
    try:
        clock, zone = datetime.time.fromisoformat(at), zoneinfo.ZoneInfo(tz)
    except zoneinfo.ZoneInfoNotFoundError as error:
        raise ValueError(f"daily({at!r}): there is no time zone {tz!r} here. On Windows: pip install tzdata") from error

    def next_after(now: float) -> float:
        today = datetime.datetime.fromtimestamp(now, zone).date()
        days = (datetime.datetime.combine(today + datetime.timedelta(each), clock, zone) for each in range(3))
        return next(day.timestamp() for day in days if day.timestamp() > now)

    def mark(function: F) -> F:
        function.__dict__["repeat"] = Repeat(function, f"{at} {tz}", next_after)
        return function

    return mark


class Hook(NamedTuple):
    """A coroutine that another service's signed requests run."""

    function: Handler
    name: str
    sign: Literal["standard", "ed25519", "github"]
    per_minute: int
    check: Callable[[App, Any], Awaitable[None]] | None
    body: Any = None  # decodes it


def hook(
    name: str,
    *,
    sign: Literal["standard", "ed25519", "github"] = "standard",
    per_minute: int = 120,
    check: Callable[[App, Any], Awaitable[None]] | None = None,
) -> Callable[[F], F]:
    """Mark `async def f(ctx: EventContext, body: Deploy)` for signed requests: POST /hooks/NAME, see docs/hooks.md.

    The annotation of `body` says what it must look like; the sender is told 202 when it is on disk, and the handler
    runs after that. `sign`: "standard" (Standard Webhooks, HMAC-SHA256), "ed25519" (the same with a key pair), or
    "github". `check(app, body)` may refuse before it is accepted: `raise HookError(410, "too late")`.
    """

    def mark(function: F) -> F:
        if is_marked(function, "hook"):
            raise OperatorError(f"hook {name!r}: write one @hook, and a function for each.")
        function.__dict__["hook"] = Hook(function, name, sign, per_minute, check)
        return function

    return mark


# ---- 6. Interactions and commands ------------------------------------------------------------------------------------
# The context of an interaction knows who did what, and answers within Discord's rules: one first answer within 3 s, the
# rest within 15 minutes. Then commands: slash commands, whose options are read from a function's annotations, and those
# of context menus. The App that a context belongs to is section 10.


class Context(EventContext):
    """The context of an interaction: who did what, and ways to answer."""

    auto_defer = AutoDefer.UPDATE

    def __init__(self, app: App, event: Event, interaction: Interaction) -> None:
        super().__init__(app, event)
        self.id, self.channel_id, self.in_guild = (
            interaction.id,
            interaction.channel_id or 0,
            bool(interaction.guild_id),
        )
        self.locale, self.answer = interaction.locale, Answer.NONE
        self._interaction, self._gate = interaction, asyncio.Lock()
        self._reply, self._promised_hidden = typing.cast("hikari.Message | None", None), False
        self.what = interaction.data.name or interaction.data.custom_id
        self.retried = not interaction.token  # the failed list keeps none
        if self.retried:
            self.answer = Answer.EXPIRED

    @functools.cached_property
    def user(self) -> hikari.User:
        """The person who used the command, component or form."""
        interaction = self._interaction
        return self.app.entities.deserialize_user((interaction.member or {}).get("user") or interaction.user or {})

    @functools.cached_property
    def interaction(self) -> hikari.PartialInteraction:
        """The whole interaction as hikari has it, for what is not here."""
        return self.app.entities.deserialize_interaction(read_json(self.event.body))

    @functools.cached_property
    def _read(self) -> hikari.CommandInteraction:
        # hikari reads members and what ids stand for, but not of forms, and not without the fields that are optional.
        payload, data = read_json(self.event.body), {"id": "0", "name": "-"}
        defaults: JSON = {"context": 0, "locale": "en-US", "app_permissions": "0", "authorizing_integration_owners": {}}
        channel = {"id": self.channel_id or 0, "type": 0}
        known: JSON = defaults | {"channel": channel, "attachment_size_limit": 0, "version": 1} | payload
        found = {"resolved": self._interaction.data.resolved} if self._interaction.data.resolved else {}
        return self.app.entities.deserialize_command_interaction(known | {"type": 2, "data": data | found})

    @property
    def guild_id(self) -> int:
        """The id of the server. Outside of one (see `in_guild`) the handler ends here, and the person is told so."""
        if self._interaction.guild_id is None:
            raise NotInServerError("this needs a server and was used outside of one")
        return self._interaction.guild_id

    @property
    def member(self) -> hikari.InteractionMember:
        """The person as a member of the server. Outside of one the handler ends here, and the person is told so."""
        if (member := self._read.member) is None:
            raise NotInServerError("this needs a server and was used outside of one")
        return member

    @property
    def permissions(self) -> hikari.Permissions:
        """What the person may do in this channel; nothing outside of a server."""
        return self.member.permissions if self.in_guild else hikari.Permissions.NONE

    @functools.cached_property
    def found(self) -> Mapping[str, Any]:
        """The people, roles, channels, messages and files that ids in the interaction stand for."""
        if (all := self._read.resolved) is None:
            return {}
        kinds = (all.users, all.members, all.roles, all.channels, all.messages, all.attachments)
        return {str(id): thing for kind in kinds for id, thing in kind.items()}

    @property
    def token(self) -> str | None:
        """The interaction's token, or None when Discord takes it no more. By Discord's word, for clocks differ."""
        return self._interaction.token if self.answer is not Answer.EXPIRED else None

    async def respond(
        self, what: str | View | Layout, *, ephemeral: bool = False, ttl: float | str | None = None
    ) -> None:
        """Answer with a new message: text, a view (saved first) or components. `ephemeral`: this person alone sees it.

        `ttl`: seconds, or "2h", after which this view expires, instead of its class's. May be called again for more
        messages. Records are saved before it is said, and the event with them: what the handler does after that is not
        done again after a crash. Raises LayoutError, StateConflictError when a record that this event
        changed was changed by somebody else, and in a command ExpiredError when it is too late.
        """
        saved = None
        await self.save_first(what, ttl)
        if isinstance(what, View):
            key = self.next_key(what)
            what, saved = await create_record(self.app.store, self.app.known(what), key, time.time(), ttl)
        body = body_of(what, saved, "respond")
        flags = flags_of(body, ephemeral)
        if await self.answer_first(Reply.MESSAGE_CREATE, Answer.REPLIED, **body, flags=flags):
            message = self._reply
        else:
            message = await self._respond_later(body, flags)
        self.said = True
        if saved and message:
            place = Place(message.channel_id, message.id, ephemeral, self._interaction.guild_id)
            self.app.store.note_shown(saved.id, saved.version, place)

    async def save_first(self, what: str | View | Layout, ttl: float | str | None = None) -> None:
        """Commit what was changed, or set for later, before the person is told `what`. Raises what telling it would."""
        if self.is_changed:
            if isinstance(what, View):  # what cannot be said must not be found out after the commit
                first_saved(self.app.known(what), RecordId(what.registration.name, new_key()), seconds_of(ttl or 0))
            body_of(what, None, "respond")
            await self.save()

    async def open(self, form: Form, *args: Any, then: Handler | None = None) -> None:
        """Show a form; `then`, a handler of this view, is called with it when it is sent: `then(ctx, form, *args)`.

        The first answer of a handler marked `opens_form=True`, or of a command; without `then`, `form.submit(ctx)`
        runs. Raises LayoutError, and RuntimeError when something was answered before.
        """
        id, method = RecordId(form.form_name, IN_MESSAGE), "submit"
        if then:
            view, saved = self.bound
            key = IN_MESSAGE if isinstance(view.registration.state, InMessage) else saved.id.key
            id, method = RecordId(saved.id.name, key), getattr(then, "__name__", "")
        route = self.app.views.route(id.name, method)
        cls = type(form).__name__
        if route is None and not then:
            remedy = f"List it in your_bot: app.add({cls})" if form.form_name else "Give it a name=, or pass then="
            raise LayoutError(f"{cls} is not known here. {remedy}")
        if route is None or route.form is not type(form):
            raise LayoutError(
                f"{method} takes no {cls}. Write: async def {method}(self, ctx: ComponentContext, form: {cls})"
            )
        route.check(args)
        custom_id = encode_id(id, method, args)
        if self.is_changed:
            form.build()  # what Discord would refuse must not be found out after the commit
            await self.save()
        await self.open_as(form, custom_id)

    async def open_as(self, form: Form, custom_id: str) -> None:
        """Show a form that comes back with that custom id."""
        body = {"title": form.form_title, "custom_id": custom_id, "components": form.build()}
        if not await self.answer_first(Reply.MODAL, Answer.REPLIED, **body) and self.answer is not Answer.TAKEN:
            if self.answer is Answer.EXPIRED:
                raise ExpiredError("it was too late to open a form: Discord takes it within 3 s of the click alone")
            raise RuntimeError(
                "a form can only be the first answer, and there was one. Open it before all else; if that takes 2 s,"
                " mark the handler with opens_form=True, or the command with auto_defer=AutoDefer.OFF"
            )
        self.said = True

    async def defer(self, *, ephemeral: bool = False) -> None:
        """Tell Discord that the answer takes longer than 3 s. Auto-defer does it after 2 s anyway."""
        way = type(self).auto_defer if self.auto_defer is AutoDefer.OFF else self.auto_defer
        flags = {"flags": hikari.MessageFlag.EPHEMERAL} if ephemeral and way is AutoDefer.MESSAGE else {}
        if await self.answer_first(way.value, Answer.UPDATED if way is AutoDefer.UPDATE else Answer.THINKING, **flags):
            self._promised_hidden = bool(flags)

    def start_timer(self) -> None:
        """Defer 2 s after the click, as far as the clocks agree, if nobody has answered by then."""
        age = time.time() - hikari.Snowflake(self.id).created_at.timestamp()
        due_s = AUTO_DEFER_AFTER_S - min(max(age, 0), AUTO_DEFER_AFTER_S)
        asyncio.get_running_loop().call_later(due_s, self._defer_if_unanswered)

    def _defer_if_unanswered(self) -> None:
        if self.answer is Answer.NONE and self.auto_defer is not AutoDefer.OFF and self.app.rest.is_alive:
            self.app.spawn(self.defer())

    async def answer_first(self, kind: Any, answer: Answer, **body: Any) -> bool:
        """Send the first answer and return True; False when there is one already or it is too late for one."""
        async with self._gate:  # the auto-defer timer and the handler may both be at it
            if self.answer is not Answer.NONE:
                return False
            try:
                self._reply = await self._send_first(kind, whole(body) if kind is Reply.MESSAGE_UPDATE else body)
            except (hikari.NotFoundError, hikari.UnauthorizedError):
                self.answer = Answer.EXPIRED
            except hikari.BadRequestError as error:
                if error.code != ALREADY_ACKNOWLEDGED:
                    raise
                self.answer = Answer.TAKEN
            else:
                self.answer = answer
        return self.answer is answer

    async def _send_first(self, kind: Any, body: JSON) -> hikari.Message | None:
        rest, token = self.app.rest, self._interaction.token
        if await self.app.web.answer(self.event.key, kind, body):
            try:
                return None if kind is Reply.MODAL else await self._look_up(token)
            except (hikari.NotFoundError, hikari.UnauthorizedError):
                raise
            except hikari.HTTPError as error:
                if kind is Reply.MESSAGE_UPDATE:  # a change can be sent until it is certain, a reply would come twice
                    raise
                log.warning("%s: whether Discord has its answer is not known: %s", self.event.key, error)
                return None
        if kind is Reply.MODAL:
            sent = await rest.create_modal_response(self.id, token, **body)
        else:
            sent = await rest.create_interaction_response(self.id, token, kind, **body)
        return (sent.resource.message or None) if sent.resource else None

    async def _look_up(self, token: str) -> hikari.Message | None:
        """Return the message of an answer given over HTTP, when Discord has it: nothing else tells that it arrived.

        Discord knows no follow-up before, and a change of the message that overtook the answer would be undone by it.
        """
        for pause in ARRIVES_AFTER_S:
            await asyncio.sleep(pause)
            try:
                return await self.app.rest.fetch_interaction_response(self._interaction.application_id, token)
            except hikari.NotFoundError as error:
                if error.code == UNKNOWN_MESSAGE:  # it came, and the message is gone
                    return None
                if pause == ARRIVES_AFTER_S[-1]:
                    raise
        return None

    async def _respond_later(self, body: JSON, flags: hikari.MessageFlag) -> hikari.Message | None:
        token, application = self.token, self._interaction.application_id
        hidden = bool(flags & hikari.MessageFlag.EPHEMERAL)
        if token is None and self.retried and self.channel_id and not hidden:
            return await self.app.rest.create_message(self.channel_id, **body, flags=flags, nonce=self.next_key(None))
        if token is None:
            raise ExpiredError("the interaction can no longer be answered")
        # An earlier run may have answered the command with this very text, or only promised it: an edit fits both.
        taken = self.answer is Answer.TAKEN and isinstance(self, CommandContext)
        try:
            thinking = self.answer is Answer.THINKING
            self.answer = Answer.REPLIED if thinking or taken else self.answer
            if taken and hidden:  # promised in public, perhaps: an edit would show everybody what is for one
                taken, thinking = await self._look_at_answer(application, token)
            if taken or (thinking and hidden is self._promised_hidden):
                return await self.app.rest.edit_interaction_response(application, token, **body)
            if thinking:  # what was promised to all, or to one, stays so: this would be seen by the wrong people
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


class ComponentContext(Context):
    """The context of a click, or of a form that was sent."""

    def __init__(self, app: App, event: Event, interaction: Interaction) -> None:
        super().__init__(app, event, interaction)
        self.custom_id, self.elsewhere = interaction.data.custom_id, False
        message, channel, hidden = interaction.message, interaction.channel_id, hikari.MessageFlag.EPHEMERAL
        if message and channel:
            self.place = Place(channel, message.id, bool(message.flags & hidden), interaction.guild_id)

    @functools.cached_property
    def values(self) -> list[Any]:
        """What was chosen in a select: texts, or hikari's users, members, roles and channels."""
        values = self._interaction.data.values
        return [self.found.get(each, each) for each in values] if self._interaction.data.resolved else [*values]

    @functools.cached_property
    def message(self) -> hikari.Message | None:
        """The message that the component sits on, as it was when it was used."""
        message = read_json(self.event.body).get("message")
        return self.app.entities.deserialize_message(message) if message else None

    @functools.cached_property
    def carried(self) -> Sequence[JSON]:
        """The components of its message, in whose custom ids a state may be kept."""
        return read_json(bytes(self._interaction.message.components)) if self._interaction.message else ()

    async def look_again(self) -> None:
        """Read what the message carries now: the click is an old one, and others may have counted since."""
        if self.place and not self.place.ephemeral:
            message = await self.app.rest.fetch_message(self.place.channel, self.place.message)
            self.carried = [{"custom_id": id} for id in ids_on(message)]

    def move(self, place: Place | None, carried: Sequence[JSON]) -> None:
        """Say that the form that was sent is about another message than the one it was opened from."""
        self.place, self.carried, self.elsewhere = place, carried, True

    @property
    def typed(self) -> JSON:
        """What stands in the form that was sent, by the names of its fields."""
        return typed_values(self._interaction.data.components)

    @property
    def typed_again(self) -> JSON:
        """The same, to be put into the form again."""
        return kept_values(self._interaction.data.components, self.found)

    def _show(self, saved: Saved, body: Body) -> None:
        self.shown = not self.elsewhere
        self.app.show(saved, body, None if self.elsewhere else self)

    async def _change(self, body: Body) -> None:
        if self.shown:
            await self.app.let_display_begin(self)  # the later wish is what stays
        is_here = self.place and not self.elsewhere
        if not is_here or not await self.answer_first(Reply.MESSAGE_UPDATE, Answer.UPDATED, **body):
            await super()._change(body)

    async def _delete_message(self) -> None:
        if self.place:
            await self.answer_first(Reply.DEFERRED_MESSAGE_UPDATE, Answer.UPDATED)
        if self.webhook:
            with contextlib.suppress(hikari.NotFoundError, hikari.UnauthorizedError):
                await self.app.rest.delete_interaction_response(*self.webhook)
                return
        await super()._delete_message()

    async def respond(
        self, what: str | View | Layout, *, ephemeral: bool = False, ttl: float | str | None = None
    ) -> None:
        """Answer with a new message, as in Context; after a rerender it follows that.

        When it is too late for Discord to take it, this is logged and the handler goes on: its click still counts.
        """
        hidden = self.place and self.place.ephemeral and not self.elsewhere
        if self.answer is Answer.NONE and (self.shown or hidden):
            # The display goes first; and a reply would leave no way to change an ephemeral message.
            await asyncio.sleep(0)
            await self.answer_first(Reply.DEFERRED_MESSAGE_UPDATE, Answer.UPDATED)
        try:
            await super().respond(what, ephemeral=ephemeral, ttl=ttl)
        except ExpiredError as error:
            log.info("%s: %s", self.event.key, error)

    @property
    def webhook(self) -> tuple[int, str] | None:
        """Application and token to change the message with, once this click was answered by changing it."""
        token = None if self.elsewhere else self.token
        return (self._interaction.application_id, token) if token and self.answer is Answer.UPDATED else None


class CommandContext(Context):
    """The context of a command. `target`: the id of the person or message whose menu it was chosen from."""

    auto_defer = AutoDefer.MESSAGE

    @property
    def target(self) -> str:
        """The id of what a menu belongs to."""
        return self._interaction.data.target_id


class AutocompleteContext(Context):
    """The context of a question for suggestions: `options` holds what was given so far."""

    auto_defer = AutoDefer.OFF
    options: Mapping[str, Any] = MappingProxyType({})


class Range(NamedTuple):
    """Least and most of an option that is a number, or of the length of one that is a text; None: no limit."""

    low: float | None = None
    high: float | None = None


class Autocomplete(NamedTuple):
    """Suggestions for an option: a coroutine `(ctx: AutocompleteContext, typed: str)` that returns up to 25 of them.

    Each is a value, or a pair of what is shown and the value.
    """

    function: Callable[[AutocompleteContext, str], Awaitable[Sequence[Any]]]


class Localized(NamedTuple):
    """Names and descriptions in other languages: `Localized({"de": "frage"}, {"de": "Worüber abgestimmt wird"})`."""

    names: Mapping[str, str] = MappingProxyType({})
    descriptions: Mapping[str, str] = MappingProxyType({})


class CommandRules(NamedTuple):
    """Who may use a command, and where; for all commands of a group alike."""

    permissions: hikari.Permissions = hikari.Permissions.NONE
    contexts: tuple[hikari.ApplicationContextType, ...] = ()
    installs: tuple[hikari.ApplicationIntegrationType, ...] = ()
    nsfw: bool = False


class Command(NamedTuple):
    """A command as Discord lists it, and the coroutine that runs it (None: its parts have theirs)."""

    name: str
    description: str
    function: Handler | None
    options: tuple[hikari.CommandOption, ...] = ()
    auto_defer: AutoDefer = AutoDefer.MESSAGE
    type: hikari.CommandType = hikari.CommandType.SLASH
    rules: CommandRules = CommandRules()
    local: Localized = Localized()
    cooldown: float = 0
    hints: Mapping[str, Any] = MappingProxyType({})
    suggest: Mapping[str, Any] = MappingProxyType({})


OPTION = hikari.OptionType
OPTION_TYPES: Mapping[Any, hikari.OptionType] = MappingProxyType({
    str: OPTION.STRING, int: OPTION.INTEGER, float: OPTION.FLOAT, bool: OPTION.BOOLEAN, hikari.User: OPTION.USER,
    hikari.InteractionMember: OPTION.USER, hikari.Role: OPTION.ROLE, hikari.InteractionChannel: OPTION.CHANNEL,
    hikari.Attachment: OPTION.ATTACHMENT,
})  # fmt: skip
RANGED, GROUPED = (OPTION.STRING, OPTION.INTEGER, OPTION.FLOAT), (OPTION.SUB_COMMAND, OPTION.SUB_COMMAND_GROUP)
MENUS = MappingProxyType(
    {hikari.CommandType.USER: hikari.InteractionMember, hikari.CommandType.MESSAGE: hikari.Message}
)
COMMANDS_IN_GROUP_MAX = 25


def command(
    name: str, description: str, *, auto_defer: AutoDefer = AutoDefer.MESSAGE, cooldown: float = 0,
    permissions: hikari.Permissions = hikari.Permissions.NONE, nsfw: bool = False, local: Localized | None = None,
    contexts: Sequence[hikari.ApplicationContextType] = (), installs: Sequence[hikari.ApplicationIntegrationType] = (),
) -> Callable[[F], F]:  # fmt: skip
    """Mark a coroutine as a slash command; `app.add` registers it.

        @command("roll", "Roll a die.")
        async def roll(ctx: CommandContext, sides: Annotated[int, "How many sides", Range(2, 100)] = 6) -> None:
            await ctx.respond(f"{random.randint(1, sides)}")

    Parameters after ctx are its options: str, int, float, bool, Literal or Enum (choices), hikari.User,
    InteractionMember, Role, InteractionChannel, Attachment, or User | Role; optional when they have a default.
    Annotated adds a description, a Range, hikari.ChannelTypes, Autocomplete and Localized. Words in the name make
    groups: "poll create". `permissions` are what a member needs; `contexts` and `installs` say where it is offered;
    `cooldown` is in seconds, for each person.
    """
    rules = CommandRules(permissions, tuple(contexts), tuple(installs), nsfw)
    local = local or Localized()
    made = Command(name, description, None, (), auto_defer, rules=rules, local=local, cooldown=cooldown)

    def mark(function: F) -> F:
        function.__dict__["command"] = made
        return function

    return mark


def user_command(name: str, **settings: Any) -> Callable[[F], F]:
    """Mark `async def f(ctx: CommandContext, user: hikari.User)` for the menu of a person. Settings as in `command`."""
    return menu_command(hikari.CommandType.USER, name, **settings)


def message_command(name: str, **settings: Any) -> Callable[[F], F]:
    """Mark `async def f(ctx: CommandContext, message: hikari.Message)` for the menu of a message."""
    return menu_command(hikari.CommandType.MESSAGE, name, **settings)


def menu_command(type: hikari.CommandType, name: str, **settings: Any) -> Callable[[F], F]:
    """Mark a command of a context menu."""

    def mark(function: F) -> F:
        command(name, "", **settings)(function)
        function.__dict__["command"] = function.__dict__["command"]._replace(type=type)
        return function

    return mark


def read_command(function: Handler) -> Command:
    """Return the command of a marked function. Raises OperatorError, naming function and parameter."""
    command: Command = function.__dict__["command"]
    name, is_slash, count = getattr(function, "__name__", "?"), command.type not in MENUS, len(command.description)
    place = f"/{command.name} ({name})"
    words = command.name.split(" ") if is_slash else [command.name]
    parameters = [*inspect.signature(function).parameters.values()]
    takes_ctx = parameters and parameters[0].kind <= inspect.Parameter.POSITIONAL_OR_KEYWORD
    remedy = "is no command name. Use 1 to 32 lower-case letters, digits, - and _."
    insist(
        place,
        *((is_name(word) or not is_slash, f": {word!r} {remedy}") for word in words),
        (len(words) <= 3 and 1 <= len(words[0]) <= 32, ": a name has one to three words of 1 to 32 characters."),
        (not is_slash or 1 <= count <= 100, f": its description has {count} characters; Discord allows 1 to 100."),
        (inspect.iscoroutinefunction(function), " is no coroutine. Write: async def"),
        (command.auto_defer is not AutoDefer.UPDATE, ": AutoDefer.UPDATE needs a message. Write MESSAGE or OFF."),
        (takes_ctx, f" takes no ctx. Write: async def {name}(ctx: CommandContext) -> None"),
        (len(parameters) < 27, f": {len(parameters) - 1} options; Discord allows 25."),
    )
    check_local(place, command.local, is_slash)
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception as error:  # whatever an annotation may hold
        raise OperatorError(f"{place}: {error}. {TYPES_MEANT}") from error
    taken = [(each, *taken_apart(hints.get(each.name))) for each in parameters[1:]]
    command = command._replace(function=function, hints={each.name: kind for each, kind, _ in taken})
    if not is_slash:
        target = MENUS[command.type]
        fits = [inspect.isclass(kind) and issubclass(target, kind) for _, kind, _ in taken] == [True]
        remedy = f"Write: (ctx: CommandContext, it: hikari.{target.__name__})"
        insist(place, (fits, f" must take ctx and its target. {remedy}"))
        return command
    options = [read_option(place, *each) for each in taken]
    options.sort(key=lambda option: not option.is_required)  # Discord wants the required ones first
    suggest = {each.name: note.function for each, _, notes in taken if (note := first(Autocomplete, notes))}
    return command._replace(options=tuple(options), suggest=suggest)


def check_local(place: str, local: Localized, is_slash: bool) -> None:
    """Raise OperatorError when a translation is for a language that Discord has not, or breaks its rules."""
    unknown = sorted({*local.names, *local.descriptions} - {*hikari.Locale})
    names = [each for each in local.names.values() if not (is_name(each) if is_slash else 1 <= len(each) <= 32)]
    texts = [each for each in local.descriptions.values() if not (is_slash and 1 <= len(each) <= 100)]
    insist(
        place,
        (not unknown, f": Discord has no language {', '.join(unknown)}. Write de, fr or en-GB, say."),
        (not names, f": {', '.join(names)} cannot be its name."),
        (not texts, f": a description has 1 to 100 characters, and a menu has none: {', '.join(texts):.50}"),
    )


def read_option(place: str, parameter: inspect.Parameter, kind: Any, notes: tuple[Any, ...]) -> hikari.CommandOption:
    """Return the option that a parameter stands for. Raises OperatorError when it cannot be one."""
    name, choices, suggest = parameter.name, choices_of(kind), first(Autocomplete, notes)
    limits, local = first(Range, notes) or Range(), first(Localized, notes) or Localized()
    description = next((note for note in notes if isinstance(note, str)), name.replace("_", " "))
    channels = [note for note in notes if isinstance(note, hikari.ChannelType)]
    types = {type_of(type(each.value)) for each in choices} or {type_of(kind)}
    type_ = types.pop()
    ranged, known = type_ in RANGED, ", ".join(each.__name__ for each in OPTION_TYPES)
    least, most = (0, 6_000) if type_ is OPTION.STRING else (-(2**53), 2**53)
    low, high = (limit if limit is not None else end for limit, end in zip(limits, (least, most), strict=True))
    is_plain = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    sizes = [len(each.name) for each in choices] + [len(str(each.value)) for each in choices]
    insist(
        f"{place}: ",
        (is_plain, f"the parameter {name} must be plain, without * and /."),
        (not types and (ranged or not choices), f"the choices of {name} must be all texts or all numbers."),
        (type_, f"the parameter {name} must be one of {known} to be an option."),
        (is_name(name), f"{name} is no option name. Use up to 32 lower-case letters, digits, _."),
        (1 <= len(description) <= 100, f"the description of {name} must have 1 to 100 characters."),
        (len(choices) <= 25, f"{name} has {len(choices)} choices; Discord allows 25."),
        (not sizes or 1 <= min(sizes) <= max(sizes) <= 100, f"each choice of {name} must have 1 to 100 characters."),
        (not channels or kind is hikari.InteractionChannel, f"{name} has channel types and is no InteractionChannel."),
        (limits == Range() or (ranged and not choices), f"{name} has a Range and is neither text nor number."),
        (least <= low <= high <= most, f"{name} has a Range that is not {least:,} to {most:,} or within, low first."),
        (type_ is OPTION.FLOAT or low % 1 == high % 1 == 0, f"{name} has a Range that is not of whole numbers."),
        (not suggest or (ranged and not choices), f"{name} has Autocomplete and is neither text nor number."),
        (not suggest or inspect.iscoroutinefunction(suggest.function), f"what suggests {name} is no coroutine."),
    )
    check_local(f"{place}: {name}", local, True)
    return hikari.CommandOption(
        type=type_ or 0, name=name, description=description, is_required=parameter.default is inspect.Parameter.empty,
        choices=choices or None, channel_types=channels or None, name_localizations=dict(local.names),
        description_localizations=dict(local.descriptions), autocomplete=suggest is not None, **bounds(type_, limits),
    )  # fmt: skip


def type_of(kind: Any) -> hikari.OptionType | None:
    """Return the type of option that a Python type stands for."""
    if typing.get_args(kind) in ((hikari.User, hikari.Role), (hikari.Role, hikari.User)):
        return OPTION.MENTIONABLE
    return next((found for known, found in OPTION_TYPES.items() if known is kind), None)


def bounds(type: hikari.OptionType | None, limits: Range) -> JSON:
    """Return a Range as Discord's fields for an option of that type."""
    unit, ends = "length" if type is OPTION.STRING else "value", zip(("min", "max"), limits, strict=True)
    return {f"{end}_{unit}": int(limit) if limit % 1 == 0 else limit for end, limit in ends if limit is not None}


def option_values(
    command: Command, given: Sequence[JSON], found: Callable[[], Mapping[str, Any]] = dict
) -> dict[str, Any]:
    """Return what the person gave, by parameter; `found` gives what ids stand for. Raises ValueError."""
    values: dict[str, Any] = {}
    for each in given:
        name, value = each.get("name", ""), each.get("value")
        if name in command.hints:  # else it is an option of an older or newer bot.py
            try:
                values[name] = read_value(command.hints[name], value, found)
            except (LookupError, ValueError, msgspec.ValidationError) as error:
                raise ValueError(f"option {name}: {error}") from error
    return values


def read_value(kind: Any, value: Any, found: Callable[[], Mapping[str, Any]]) -> Any:
    """Return an option's value as its type. Raises ValueError, LookupError or msgspec.ValidationError."""
    if inspect.isclass(kind) and issubclass(kind, enum.Enum):
        return kind(value)
    if kind in (str, int, float, bool) or typing.get_origin(kind) is Literal:
        return msgspec.convert(value, kind)
    if not isinstance(thing := found().get(str(value)), kind):
        raise LookupError(f"{value} is no {getattr(kind, '__name__', kind)} that is known here")
    return thing


def suggestions(found: Iterable[Any], kind: Callable[[Any], Any]) -> list[hikari.impl.AutocompleteChoiceBuilder]:
    """Return what was suggested as Discord takes it: 25, long names cut, values of the option's type."""
    pairs: list[Any] = [each if isinstance(each, tuple) else (each, each) for each in itertools.islice(found, 25)]
    fitting = [(str(name)[:100], kind(value)) for name, value in pairs if str(name) and len(str(value)) <= 100]
    return [hikari.impl.AutocompleteChoiceBuilder(*pair) for pair in fitting]


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
        self._version, self._sent, self._body = 0, 0, Body()
        self._waiting: list[ComponentContext] = []
        self._via: ComponentContext | None = None
        self._kick, self.ended = asyncio.Event(), asyncio.Event()

    def show(self, saved: Saved, body: Body, click: ComponentContext | None) -> None:
        """Show this version, unless a newer one is on its way, and answer the click."""
        if saved.version > self._version:
            self._version, self._body, self._place = saved.version, body, saved.place or self._place
        if click:
            self._waiting.append(click)
        self._kick.set()

    async def run(self) -> None:
        """Edit until the message shows the newest version and no click waits."""
        pauses = itertools.chain(SHOW_RETRY_S, itertools.repeat(SHOW_RETRY_S[-1]))
        while self._waiting or self._shown < self._version:
            clicks, self._waiting = self._waiting, []
            self._kick.clear()
            carrier = next((click for click in clicks if click.answer is Answer.NONE), None)
            for click in clicks:
                if click is not carrier:
                    self._app.spawn(click.answer_first(Reply.DEFERRED_MESSAGE_UPDATE, Answer.UPDATED))
            try:
                outcome = await self._edit(carrier, clicks)
            except (hikari.HikariError, OSError, TimeoutError) as error:
                log.warning("%s %s cannot be shown yet: %s", *self._id, error)
                self._waiting[:0] = [click for click in clicks if click.answer is Answer.NONE]
                await self._pause(next(pauses))
                continue
            if outcome == "gone" and self._place:
                log.info("%s %s: its message was deleted, and with it the record", *self._id)
                await self._app.store.clean_up(Gone(channel=self._place.channel, messages=(self._place.message,)))
            elif outcome == "out of reach":
                log.info("%s %s: its message is out of reach; the state is kept", *self._id)
            self._shown = max(self._shown, self._sent)
            self._app.store.note_shown(self._id, self._sent, None)

    async def _edit(self, carrier: ComponentContext | None, clicks: list[ComponentContext]) -> Outcome:
        body, self._sent = self._body, self._version
        try:
            if carrier and await carrier.answer_first(Reply.MESSAGE_UPDATE, Answer.UPDATED, **body):
                self._via = carrier
                return "shown"
            self._via = next((click for click in reversed(clicks) if click.webhook), self._via)
            via = self._via.webhook if self._via else None
            return "shown" if self._place is None else await edit_message(self._app.rest, self._place, via, body)
        except (hikari.BadRequestError, FileNotFoundError, PermissionError, IsADirectoryError) as error:
            refused = isinstance(error, hikari.BadRequestError)
            log.error(
                "%s %s: %s: %s", *self._id, "Discord refuses its message" if refused else "it cannot be sent", error
            )
            return "shown"  # as good as shown: the next version may be taken

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._kick.wait(), seconds)  # a click that comes in may get through at once


@register(name="_form", state=InStore(ttl=REMEMBERED_S))  # not longer, or `carried` might be an old state
class FormAgain(View):
    """Says what is wrong with a form, and opens it as it was filled in (files excepted: those are the person's)."""

    problem: str
    label: str
    target: str
    values: JSON
    home: Place | None
    carried: list[JSON]

    def render(self) -> Layout:
        return [TextDisplay(self.problem[:1_000] or "…"), Row(Button(self.again, label=self.label))]

    @handler(opens_form=True)
    async def again(self, ctx: ComponentContext) -> None:
        """Open the form."""
        found = decode_id(self.target)
        route = ctx.app.views.route(found[0].name, found[1]) if found else None
        if route and route.form:
            values = {name: self.values.get(name) for name in route.form.fields()}
            await ctx.open_as(route.form(**values), self.target)


Work: TypeAlias = Callable[[], Awaitable[Any]]


class Dispatch:
    """Runs accepted events, each to its end: done, failed, or still in the inbox for the next start."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.slots = app.slots
        self._gate, self._taking = asyncio.Lock(), asyncio.Lock()
        self._remembered: dict[RecordId, tuple[Saved, float]] = {}

    async def recover(self) -> None:
        """Put what an earlier process left in the queue, in front of anything new.

        Events that were running in two crashes run alone, those with the fewest runs first: if one of them is what
        kills the process, it alone gets to `max_handler_runs` and on the failed list.
        """
        pending = await self._app.store.pending()
        if pending:
            log.info("%d accepted events were left by an earlier run", len(pending))
        await self.run_again(pending)
        self._app.spawn(self._repair_all())
        await self.take_up()

    async def run_again(self, pending: Sequence[Event]) -> None:
        """Put events that a process which is gone had begun in the queue; the others are for `take_up`."""
        once = [event for event in pending if event.runs == 1]
        await asyncio.gather(*(self._app.store.begin(event.key) for event in once))
        for event in once:
            self._app.spawn(self.run(event))
        for event in sorted((each for each in pending if each.runs > 1), key=lambda each: each.runs):
            if event.runs < self._app.config.max_handler_runs:
                self._app.spawn(self.run(event, alone=True))
            else:
                await self._fail(None, event, RuntimeError(f"the process ended {event.runs} times while this ran"))

    async def _repair_all(self) -> None:
        async with self._gate:  # before anything new: later, this would be an old reading
            for saved in await self._app.store.behind():
                self.repair(saved)

    def repair(self, saved: Saved) -> None:
        """Show the record as it is saved, if that can be."""
        cls = self._app.views.classes.get(saved.id.name)
        try:
            if cls and issubclass(cls, View):
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
        ctx: EventContext | None = None
        self._app.lanes.holder.set(event)
        try:
            ctx, run = self._read(event)
            if isinstance(ctx, Context):
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
            if isinstance(ctx, Context):
                await self._settle(ctx)
        except StoreError as error:
            self._app.stop(error)
        except BaseException as error:
            task = asyncio.current_task()
            cancelled = isinstance(error, asyncio.CancelledError) and task and task.cancelling()
            if cancelled or isinstance(error, SystemExit | KeyboardInterrupt):
                raise  # the bot is stopping: the event stays in the inbox
            await self._fail(ctx, event, error)

    # From an event to the work it means. What cannot be read raises, and is on the failed list then.

    def _read(self, event: Event) -> tuple[EventContext, Work]:
        kind = event.key.partition(":")[0]
        if kind == "interaction":
            return self._read_interaction(event)
        ctx = EventContext(self._app, event)
        if kind == "expiry":
            return ctx, functools.partial(self._expire, ctx, msgspec.json.decode(event.body, type=Saved))
        body = read_json(event.body)
        if kind == "timer":
            *id, name = body["call"]
            route = self._app.views.route(id[0], name)
            if route is None:
                raise LookupError(f"there is no handler {name} of {id[0] or 'its own'}. Is it listed in your_bot?")
            ctx.what = route.place
            return ctx, functools.partial(self._call, ctx, route, RecordId(*id), json.dumps(body["arguments"]))
        if kind == "hook":
            return ctx, functools.partial(self._call_hook, ctx, body)
        if kind == "repeat":
            repeat = self._app.repeats.get(body["repeat"])
            return ctx, functools.partial(self._repeat, ctx, repeat) if repeat else ctx.save
        if (listener := self._app.listeners.get(body["listener"])) is None:
            raise LookupError(f"there is no listener {body['listener']}. Is it listed in your_bot?")
        return ctx, functools.partial(self._hear, ctx, listener, body)

    def _read_interaction(self, event: Event) -> tuple[EventContext, Work]:
        interaction = msgspec.json.decode(event.body, type=Interaction, strict=False)
        if interaction.type in (hikari.InteractionType.MESSAGE_COMPONENT, hikari.InteractionType.MODAL_SUBMIT):
            click = ComponentContext(self._app, event, interaction)
            found = decode_id(click.custom_id)
            route = self._app.views.route(found[0].name, found[1]) if found else None
            if found and route:
                click.auto_defer = route.auto_defer if click.place else AutoDefer.MESSAGE
                click.what = route.place
                return click, functools.partial(self._call, click, route, found[0], found[2])
            known = found and found[0].name in self._app.views.classes
            why = "Its name was changed; names of handlers are for ever" if known else "Is its view listed in your_bot?"
            log.warning("%s: no handler for %r. %s", event.key, click.custom_id, why)
            return click, functools.partial(self._expired, click)
        if interaction.type == hikari.InteractionType.APPLICATION_COMMAND:
            ctx = CommandContext(self._app, event, interaction)
            name, options = command_path(interaction.data)
            if command := self._app.commands.get((interaction.data.type, name)):
                ctx.auto_defer, ctx.what = command.auto_defer, f"/{name}"
                return ctx, functools.partial(self._command, ctx, command, options)
            log.warning("%s: no command /%s. Is it listed in your_bot?", event.key, name)
            return ctx, functools.partial(self._expired, ctx)
        raise ValueError(f"an interaction of type {interaction.type} is not for this bot")

    async def _expired(self, ctx: Context) -> None:
        await ctx.respond(ctx.texts.expired, ephemeral=True)
        await ctx.save()

    # Running it.

    async def _try(self, ctx: EventContext, work: Work) -> None:
        """Run the work and commit what it changed; after a conflict again, with the records it asked for to itself."""
        wanted = frozenset[RecordId]()
        for attempt in range(1, HANDLER_TRIES + 1):
            async with self._app.lanes.hold(wanted), contextlib.AsyncExitStack() as ctx.kept:
                ctx.held = wanted
                try:
                    await work()
                    if not ctx.applied or ctx.is_changed:
                        await ctx.save()
                    return
                except NotInServerError:
                    if not isinstance(ctx, Context) or ctx.applied:
                        raise
                    ctx.start_over()
                    await ctx.respond(ctx.texts.server_only, ephemeral=True)
                    await ctx.save()
                    return
                except (StateConflictError, StateUnreadableError):  # the next round may find it gone, or still so
                    if attempt == HANDLER_TRIES or ctx.applied or ctx.said:
                        raise
            wanted |= ctx.touched
            ctx.start_over(again=True)

    async def _command(self, ctx: CommandContext, command: Command, given: Sequence[JSON]) -> None:
        async with self.slots:
            await self._try(ctx, functools.partial(self._run_command, ctx, command, given))
        if ctx.answer in (Answer.NONE, Answer.THINKING):
            log.warning("/%s ended without an answer. Call ctx.respond(…) in it.", command.name)

    async def _run_command(self, ctx: CommandContext, command: Command, given: Sequence[JSON]) -> None:
        if not await self._is_ready(ctx, f"/{command.name}:{int(command.type)}", command.cooldown):
            return
        if hikari.InteractionMember in command.hints.values() and not ctx.in_guild:
            raise NotInServerError("an option is a member of a server")
        function: Any = command.function
        if command.type in MENUS:
            given = [{"name": name, "value": ctx.target} for name in command.hints]
        await function(ctx, **option_values(command, given, lambda: ctx.found))

    async def _is_ready(self, ctx: Context, what: str, cooldown: float) -> bool:
        """Return whether the person may use it again, and then take the next turn; tell them otherwise."""
        until = time.time() + cooldown
        if not cooldown or await ctx.claim(key := f"cooldown:{what}:{ctx.user.id}", until):
            return True
        before = await self._app.store.load(RecordId(Claim.registration.name, key))
        ctx.start_over()
        await ctx.respond(
            ctx.texts.wait.format(when=f"<t:{int((before and before.expires_at) or until)}:R>"), ephemeral=True
        )
        return False

    async def _call(self, ctx: EventContext, route: Route, id: RecordId, raw_arguments: str) -> None:
        arguments = route.arguments.decode(raw_arguments)  # a forged custom id ends here
        if route.form and isinstance(ctx, ComponentContext):
            await self._come_home(ctx)
        if id.key.startswith(IN_MESSAGE) and ctx.place:
            id = RecordId(id.name, f"{IN_MESSAGE}{ctx.place.message}")
        if route.view is None:
            async with self.slots:
                await self._try(ctx, functools.partial(self._guard, ctx, route, None, arguments))
            return
        async with self._app.lanes.enter(id) as lane, self.slots:
            await self._try(ctx, functools.partial(self._handle, ctx, route, lane, id, arguments))

    async def _come_home(self, click: ComponentContext) -> None:
        """Find the message that a form is about which was filled in again: it was opened from a FormAgain."""
        ids = [decode_id(each.get("custom_id") or "") for part in click.carried for each in walk(part)]
        again = next((each[0] for each in ids if each and each[0].name == FormAgain.registration.name), None)
        if again:
            saved = await self._app.store.load(again)
            form = decode_state(FormAgain, saved) if saved else None
            click.move(*((form.home, form.carried) if form else (None, ())))

    async def _handle(
        self, ctx: EventContext, route: Route, lane: Lane, id: RecordId, arguments: tuple[Any, ...]
    ) -> None:
        view_class: Any = route.view
        saved, lane.saved = await self._load(ctx, lane, id), None
        click = ctx if isinstance(ctx, ComponentContext) else None
        if saved is None:
            if click:
                await view_class.on_state_missing(click)
            return
        view = decode_state(view_class, saved)
        ctx.bind(view, saved)
        if click and not await view.check(click):
            if not click.said:
                await click.respond(click.texts.not_for_you, ephemeral=True)
        elif not click or await self._is_free(click, route, saved):
            await self._guard(ctx, route, view, arguments)
        lane.saved = ctx.saved

    async def _is_free(self, click: ComponentContext, route: Route, saved: Saved) -> bool:
        """Return whether a handler for single use, or one with a cooldown, may run; tell the person otherwise."""
        name = getattr(route.function, "__name__", "")
        key = f"once:{':'.join(saved.id)}:{name}"
        if route.options.once and not await click.claim(key, None, click.place):  # goes with its message
            click.start_over()
            await click.respond(click.texts.used, ephemeral=True)
            return False
        return await self._is_ready(click, f"{saved.id.name}:{name}", route.options.cooldown)

    async def _guard(self, ctx: EventContext, route: Route, view: View | None, arguments: tuple[Any, ...]) -> None:
        """Call the handler; let a form be filled in again, or the view deal with its error."""
        first: list[Any] = [view] if view else []
        try:
            if route.form and isinstance(ctx, ComponentContext):
                form = route.form.read(ctx.typed, ctx.found)
                first = [view, ctx, form] if view else [form, ctx]
            await route.function(*(first if route.form else [*first, ctx]), *arguments)
        except FormError as error:
            if not isinstance(ctx, ComponentContext) or not route.form:
                raise
            carried = [*ctx.carried] if IN_MESSAGE in ctx.custom_id else []
            again = FormAgain(str(error), ctx.texts.again, ctx.custom_id, ctx.typed_again, ctx.place, carried)
            ctx.start_over()
            await ctx.respond(again, ephemeral=True)
        except (StateConflictError, StateUnreadableError, StoreError, ExpiredError, NotInServerError):
            raise
        except Exception as error:
            if view is None or ctx.applied:
                raise
            ctx.start_over()
            view = decode_state(type(view), saved := ctx.bound[1])  # without what the handler changed
            ctx.bind(view, saved)
            await view.on_error(ctx, error)
        else:
            if view and ctx.saved and (changed := unsaved_fields(view, ctx.saved)):
                log.warning(
                    "%s changed %s and did not save it. End it with: await ctx.rerender()", route.place, changed
                )

    async def _load(self, ctx: EventContext, lane: Lane, id: RecordId) -> Saved | None:
        if id.key.startswith(IN_MESSAGE):
            known = self._remembered.get(id)
            if known is None and isinstance(ctx, ComponentContext) and ctx.retried:
                await ctx.look_again()
            return known[0] if known else self._carried(ctx, id)
        if lane.saved and not (lane.saved.expires_at and lane.saved.expires_at <= time.time()):
            return lane.saved
        return await self._app.store.load(id)

    def _carried(self, ctx: EventContext, id: RecordId) -> Saved | None:
        return gather(id, ctx.carried, ctx.place) if isinstance(ctx, ComponentContext) and ctx.place else None

    def remember(self, saved: Saved) -> None:
        """Keep a message's newest state while clicks that carry an older one can still arrive."""
        self._remembered[saved.id] = saved, time.monotonic() + REMEMBERED_S

    def forget_old(self) -> None:
        """Drop the states of messages that were not clicked for a while."""
        now = time.monotonic()
        self._remembered = {id: kept for id, kept in self._remembered.items() if kept[1] > now}

    async def _expire(self, ctx: EventContext, saved: Saved) -> None:
        cls = self._app.views.classes.get(saved.id.name)
        if cls is None or not issubclass(cls, View):
            await ctx.save()
            return
        ctx.what = f"{cls.__name__}.on_expire"
        if saved.shown < saved.version:
            self.repair(saved)  # a crash came between, and nobody else knows of it any more
        await self._app.is_shown(saved.id)  # else what `close` shows could come after what `on_expire` shows
        async with self._app.lanes.enter(saved.id), self.slots:
            await self._try(ctx, functools.partial(self._end, ctx, cls, saved._replace(version=0, shown=-1)))
        if saved.place and not (ctx.saved and ctx.saved.version):  # what was claimed on the message
            self._app.clean_up(Gone(channel=saved.place.channel, messages=(saved.place.message,)))

    async def _end(self, ctx: EventContext, cls: type[View], saved: Saved) -> None:
        view, ctx.ended = decode_state(cls, saved), True
        ctx.bind(view, saved)
        await view.on_expire(ctx)

    async def _repeat(self, ctx: EventContext, repeat: Repeat) -> None:
        # First of all the next time: it must come even if this run fails.
        await self._app.set_repeat(repeat)
        if self._app.lanes.is_busy(
            RecordId("", repeat.timer)
        ):  # a run takes longer than its span: they must not pile up
            await ctx.save()
            return
        ctx.what = getattr(repeat.function, "__name__", "")
        async with self._app.lanes.enter(RecordId("", repeat.timer)), self.slots:  # never twice at once
            await self._try(ctx, functools.partial(repeat.function, ctx))

    async def _hear(self, ctx: EventContext, listener: Listener, body: JSON) -> None:
        ctx.what = getattr(listener.function, "__name__", "")
        await self._app.started.wait()  # hikari's events belong to a shard
        events = self._app.gateway.read_event(body["name"], body["shard"], body["data"])
        found = next((each for each in events if isinstance(each, listener.event)), None)
        if found is None:
            await ctx.save()
            return
        async with self.slots:
            await self._try(ctx, functools.partial(listener.function, ctx, found))

    async def _call_hook(self, ctx: EventContext, body: JSON) -> None:
        if (hook := self._app.hooks.get(body["hook"])) is None:
            raise LookupError(f"there is no hook {body['hook']}. Is it listed in your_bot?")
        ctx.what, ctx.headers = f"hook {hook.name}", body["headers"]
        async with self.slots:
            await self._try(ctx, functools.partial(hook.function, ctx, hook.body.decode(write_json(body["data"]))))

    async def suggest(self, data: JSON) -> list[hikari.impl.AutocompleteChoiceBuilder]:
        """Return suggestions at once: the question is never kept, for nobody waits for it after a restart."""
        what, choices = "?", list[hikari.impl.AutocompleteChoiceBuilder]()
        try:
            interaction = msgspec.convert(data, Interaction, strict=False)
            event = Event(EventKey(f"interaction:{interaction.id}"), write_json(data))
            what, options = command_path(interaction.data)
            name, typed = next((each["name"], each["value"]) for each in options if each.get("focused"))
        except Exception as error:
            log.warning("a question for suggestions (/%s) cannot be read: %r", what, error)
            return choices
        try:
            ctx = AutocompleteContext(self._app, event, interaction)
            ctx.options = {each["name"]: each.get("value") for each in options}
            command = self._app.commands[interaction.data.type, what]
            async with asyncio.timeout(AUTO_DEFER_AFTER_S):
                choices = suggestions(await command.suggest[name](ctx, typed), command.hints[name])
        except Exception as error:  # no suggestions are better than none in time
            log.warning("no suggestions for /%s: %r", what, error)
        return choices

    async def answer_question(self, data: JSON) -> None:
        """Send suggestions for a question that came through the gateway."""
        choices = await self.suggest(data)
        try:
            await self._app.rest.create_autocomplete_response(int(data["id"]), str(data["token"]), choices)
        except (hikari.NotFoundError, hikari.UnauthorizedError):
            pass  # the person typed on, or gave up
        except (hikari.HikariError, LookupError, ValueError, TypeError) as error:
            if getattr(error, "code", 0) != ALREADY_ACKNOWLEDGED:  # it was answered, and came once more after a RESUME
                log.warning("suggestions were not taken: %s", error)

    async def _settle(self, ctx: Context) -> None:
        """Leave nobody waiting for an answer that the handler did not give."""
        try:
            if ctx.answer is Answer.THINKING or (ctx.answer is Answer.NONE and isinstance(ctx, CommandContext)):
                await ctx.respond(ctx.texts.done, ephemeral=True)
            elif ctx.answer is Answer.NONE and isinstance(ctx, ComponentContext) and ctx.elsewhere:
                body = body_of(TextDisplay(ctx.texts.done), None, "done")
                await ctx.answer_first(Reply.MESSAGE_UPDATE, Answer.UPDATED, **body)
            elif ctx.answer is Answer.NONE and not ctx.shown and ctx.place:
                await ctx.answer_first(Reply.DEFERRED_MESSAGE_UPDATE, Answer.UPDATED)
            elif ctx.answer is Answer.NONE and not ctx.shown:
                await ctx.respond(ctx.texts.done, ephemeral=True)
        except Exception as error:  # the handler did its work: this is no failure of its event
            log.warning("%s: the person could not be answered: %s", ctx.event.key, error)

    async def _fail(self, ctx: EventContext | None, event: Event, error: BaseException) -> None:
        failure, passed = Failure.of(error), View.on_error.__code__
        frame = error.__traceback__
        while frame and (isinstance(frame.tb_frame.f_locals.get("self"), Dispatch) or frame.tb_frame.f_code is passed):
            frame = frame.tb_next  # the traceback begins with the handler: the way there is always the same
        trace = None if isinstance(error, ExpiredError) else (type(error), error, frame or error.__traceback__)
        what = f"{event.key} ({ctx.what})" if ctx else event.key
        log.error("%s failed and is on the failed list: %s: %s", what, *failure[:2], exc_info=trace)
        try:
            await self._app.store.fail(event, failure)
            if isinstance(ctx, Context) and not (ctx.answer is Answer.EXPIRED or isinstance(error, ExpiredError)):
                ctx.start_over()
                await ctx.respond(ctx.texts.failed, ephemeral=True)
        except StoreError as store_error:
            self._app.stop(store_error)
        except Exception as answer_error:
            log.info("%s: the person could not be told: %s", event.key, answer_error)


def command_path(data: Interaction.Data) -> tuple[str, Sequence[JSON]]:
    """Return the whole name of a used command, groups and all, and the options given to it."""
    name, options = data.name, data.options
    while options and options[0].get("type") in GROUPED:
        name, options = f"{name} {options[0]['name']}", options[0].get("options", [])
    return name, options


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
    4014: "Discord refuses {intents}. Switch it on at your application's page (Bot, Privileged Gateway Intents).",
}


@contextlib.contextmanager
def reaching(api: str) -> Generator[None]:
    """Say in a sentence why Discord cannot be reached. Raises OperatorError."""
    try:
        yield
    except hikari.UnauthorizedError as error:
        raise OperatorError(REFUSED[4004]) from error
    except (hikari.HTTPError, hikari.GatewayConnectionError) as error:
        raise OutageError(f"Discord cannot be reached at {api}: {error}. Look at the connection.") from error


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
            self.gateway.take(name, data, self.cursor)

    async def forget(self, why: str) -> None:
        """Start over with a new session; what was sent since the last event is recorded as a gap."""
        if self.cursor:
            self.cursor = self._seq = self._session_id = self._resume_gateway_url = None
            await self.gateway.app.store.forget(self.id, why)


def interaction_event(data: Any, otherwise: str) -> Event:
    """Return an interaction's event.

    Its key is the same through gateway and HTTP and for every copy; `otherwise` serves where there is no id.
    """
    id = str(typing.cast("JSON", data).get("id") if isinstance(data, dict) else None)
    return Event(EventKey(f"interaction:{id if id.isdecimal() else otherwise}"), write_json(data))


def is_question(data: Any) -> bool:
    """Return whether an interaction asks for suggestions."""
    return isinstance(data, dict) and typing.cast("JSON", data).get("type") == hikari.InteractionType.AUTOCOMPLETE


def gone_with(name: str, data: JSON) -> Gone | None:
    """Return what a gateway event says was deleted, or None."""
    number = functools.partial(msgspec.convert, type=Id, strict=False)  # one that a store can hold
    if name == "MESSAGE_DELETE":
        return Gone(channel=number(data["channel_id"]), messages=(number(data["id"]),))
    if name == "MESSAGE_DELETE_BULK":
        return Gone(channel=number(data["channel_id"]), messages=tuple(map(number, data["ids"])))
    if name in ("CHANNEL_DELETE", "THREAD_DELETE"):
        return Gone(channel=number(data["id"]))
    if name == "GUILD_DELETE" and not dict(data).get("unavailable"):  # that would be an outage
        return Gone(guild=number(data["id"]))
    return None


# Events that clean up are asked for where there is something to clean up. None of these intents is privileged.
CLEANING_INTENTS = hikari.Intents.GUILDS | hikari.Intents.GUILD_MESSAGES | hikari.Intents.DM_MESSAGES


async def unheard(event: hikari.Event) -> None:
    """Do nothing: the reader gives its events to nobody."""


class Reader(hikari.impl.EventManagerImpl):
    """Makes hikari's events of payloads without handing them to anybody."""

    def read(self, name: str, shard: Any, data: JSON) -> list[hikari.Event]:
        """Return the events that the payload means."""
        self._found: list[hikari.Event] = []
        getattr(self, f"on_{name.lower()}")(shard, data)
        return self._found

    def dispatch(self, event: hikari.Event, *, return_tasks: bool = False) -> Any:
        self._found.append(event)

    @classmethod
    def payloads_of(cls, event: type[hikari.Event]) -> list[str]:
        """Return the names of the payloads that become events of that type; those of clicks and commands are ours."""
        names = [
            name for name in dir(cls) if name.startswith("on_") and name not in ("on_ready", "on_interaction_create")
        ]
        bits = event.bitmask()
        return [name[3:].upper() for name in names if getattr(getattr(cls, name), "__events_bitmask__", 0) & bits]


class Gateway(hikari.GatewayBot):
    """hikari's bot with shards that resume the stored sessions, and only itself in its cache."""

    shard_type: type[Shard] = Shard

    def __init__(self, app: App) -> None:
        config = app.config
        # Connections are kept: hikari makes a new one for every answer, for the sake of Windows.
        settings = hikari.impl.HTTPSettings(force_close_transports=sys.platform == "win32")
        cache = hikari.impl.CacheSettings(components=hikari.api.CacheComponents.ME)
        intents = app.all_intents
        super().__init__(
            config.token, banner=None, logs=None, suppress_optimization_warning=True, intents=intents,
            rest_url=config.api, loads=read_json, http_settings=settings, cache_settings=cache,
            auto_chunk_members=False,
        )  # fmt: skip
        self.app, self._count = app, config.shard_count
        # RESUME continues a session as it was identified: with another token, intents and so on it must not be tried.
        identity = [config.token, int(intents), self._count, int(self.capabilities)]
        self.fingerprint = hashlib.sha256(write_json(identity)).hexdigest()
        self._turn, self._identified_at = asyncio.Lock(), dict[int, float]()
        self.subscribe(hikari.ShardResumedEvent, self._on_resumed)
        self._reader = Reader(self.entity_factory, self.event_factory, intents, auto_chunk_members=False)
        self._heard = dict[str, list[str]]()
        for key, listener in app.listeners.items():
            self._reader.subscribe(listener.event, unheard)  # hikari makes no events that nobody asked for
            for name in Reader.payloads_of(listener.event):
                self._heard.setdefault(name, []).append(key)

    def take(self, name: str, data: JSON, cursor: Cursor) -> None:
        """Hand a dispatch on: what is to be done goes to the inbox with its cursor, all else moves the cursor alone."""
        app, otherwise = self.app, f"{cursor.session}:{cursor.seq}"
        if name == "INTERACTION_CREATE" and not is_question(data):
            app.accept(interaction_event(data, otherwise), cursor)
            return
        if name == "INTERACTION_CREATE":
            app.spawn(app.dispatch.answer_question(data))
        if gone := gone_with(name, data):
            app.clean_up(gone)  # written before the cursor, for writes keep their order
        events = list[Event]()
        for key in self._heard.get(name, ()):
            body = write_json({"listener": key, "name": name, "shard": cursor.shard, "data": data})
            event = Event(EventKey(f"gateway:{otherwise}:{key}"), body)
            if app.listeners[key].durable:
                events.append(event)
            else:
                app.spawn(app.dispatch.run(event))  # never accepted, so a crash loses it
        for event in events[:-1]:  # the cursor goes with the last of them, so that none is lost
            app.accept(event, None)
        if events:
            app.accept(events[-1], cursor)
        else:
            app.store.move_cursor(cursor)

    def read_event(self, name: str, shard: int, data: JSON) -> list[hikari.Event]:
        """Return hikari's events for a payload."""
        return self._reader.read(name, self._shards.get(shard) or next(iter(self._shards.values())), data)

    async def live(self) -> None:
        """Connect and stay so until a shard is closed. Raises OperatorError when Discord refuses the bot."""
        with reaching(self.app.config.api):
            await self._live()

    async def _live(self) -> None:
        try:
            await self.start_with(await self.look_up_sessions())
            await self.join()
        except hikari.GatewayServerClosedConnectionError as error:
            if sentence := REFUSED.get(int(error.code or 0)):
                asked = self.intents & hikari.Intents.ALL_PRIVILEGED
                raise OperatorError(sentence.format(intents=asked.name if asked else "an intent")) from error
            raise

    async def look_up_sessions(self) -> list[int]:
        """Find the sessions that go on; return the shards that have none, or shard 0, to begin with."""
        found = [await self.app.store.cursor(shard, self.fingerprint) for shard in range(self._count)]
        self._stored = [cursor for cursor in found if cursor]
        return [shard for shard in range(self._count) if not found[shard]] or [0]

    async def start_with(self, shards: Sequence[int]) -> None:
        """Connect. hikari would refuse to when too few IDENTIFYs are left; identify_turn waits for them instead."""
        await self.start(
            check_for_updates=False, activity=self.app.activity, shard_count=self._count, shard_ids=shards,
            ignore_session_start_limit=True,
        )  # fmt: skip

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
        shard = self.shard_type(
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


# Commands as Discord lists them.


def listed(commands: Iterable[Command]) -> list[Command]:
    """Return the commands as Discord lists them, those of a group as options of one. Raises OperatorError."""
    top: dict[tuple[int, str], Command] = {}
    for each in commands:
        words = each.name.split() if each.type is hikari.CommandType.SLASH else [each.name]
        group = top.setdefault(
            (each.type, words[0]), each if len(words) == 1 else Command(words[0], words[0], None, rules=each.rules)
        )
        if group.function if len(words) > 1 else group is not each:
            raise OperatorError(f"/{each.name}: /{words[0]} is a command and a group. Rename one of the two.")
        if group.rules != each.rules:
            raise OperatorError(f"/{each.name}: all commands of /{words[0]} need the same permissions and places.")
        if len(words) > 1:
            top[each.type, words[0]] = group._replace(options=with_part(group.options, words[1:], each))
    return list(top.values())


def with_part(
    options: tuple[hikari.CommandOption, ...], words: Sequence[str], command: Command
) -> tuple[hikari.CommandOption, ...]:
    """Return the options of a group with one more command in it."""
    there = next((each for each in options if each.name == words[0]), None)
    if len(words) == 1:
        kind, inside, about, local = OPTION.SUB_COMMAND, command.options, command.description, command.local
    else:
        kind, about, local = OPTION.SUB_COMMAND_GROUP, words[0], Localized()
        inside = with_part(tuple(there.options or ()) if there else (), words[1:], command)
    if there and (there.type is not kind or len(words) == 1):
        raise OperatorError(f"/{command.name} is there twice. Rename one of the two commands.")
    rest = tuple(each for each in options if each is not there)
    if len(rest) >= COMMANDS_IN_GROUP_MAX:
        raise OperatorError(f"/{command.name}: Discord allows {COMMANDS_IN_GROUP_MAX} commands in a group.")
    part = hikari.CommandOption(
        type=kind, name=words[0], description=about, options=inside, name_localizations=dict(local.names),
        description_localizations=dict(local.descriptions),
    )  # fmt: skip
    return *rest, part


async def register_commands(
    rest: REST, application: hikari.Snowflake, commands: Sequence[Command], guild: int | None
) -> bool:
    """Make Discord's list of commands equal to ours; return whether anything had to be sent. Raises OperatorError."""
    where, ours = hikari.UNDEFINED if guild is None else guild, listed(commands)
    if guild is not None:  # Discord would drop their places, and they would differ for ever
        ours = [each._replace(rules=each.rules._replace(contexts=(), installs=())) for each in ours]
    with refusals([each.name for each in ours], guild):
        there = await rest.fetch_application_commands(application, where)
        theirs = {(each.type, each.name): each for each in there}
        same = (outline(each, each) == outline(theirs.get((each.type, each.name)), each) for each in ours)
        if len(theirs) == len(ours) and all(same):
            return False
        await rest.set_application_commands(application, [builder(rest, each) for each in ours], where)
    return True


@contextlib.contextmanager
def refusals(names: Sequence[str], guild: int | None) -> Generator[None]:
    """Say in one sentence what Discord has against the commands of these names. Raises OperatorError."""
    try:
        yield
    except hikari.BadRequestError as error:
        places = {str(number): f"/{name}" for number, name in enumerate(names)}
        found = [each for key, what in (error.errors or {}).items() for each in problems(what, places.get(key, key))]
        raise OperatorError(f"Discord refuses the commands: {'; '.join(found) or error}") from error
    except (hikari.ForbiddenError, hikari.NotFoundError) as error:
        if guild is None:
            raise
        where = f"server {guild}. Invite it there first."
        raise OperatorError(f"Discord lets the bot set no commands in {where}") from error


def problems(errors: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield what Discord has against a part of a request and those in it."""
    for key, inside in errors.items():
        if isinstance(inside, dict):
            yield from problems(typing.cast("JSON", inside), f"{path}.{key}")
        else:
            yield f"{path}: {', '.join(str(each.get('message')) for each in inside)}"


def builder(rest: REST, command: Command) -> hikari.api.CommandBuilder:
    """Return the command as hikari sends it."""
    if command.type is hikari.CommandType.SLASH:
        built: Any = rest.slash_command_builder(command.name, command.description)
        built.set_description_localizations(dict(command.local.descriptions))
        for option in command.options:
            built.add_option(option)
    else:
        built = rest.context_menu_command_builder(command.type, command.name)
    built.set_name_localizations(dict(command.local.names)).set_is_nsfw(command.rules.nsfw)
    built.set_default_member_permissions(command.rules.permissions or hikari.UNDEFINED)
    built.set_context_types(command.rules.contexts or hikari.UNDEFINED)
    return built.set_integration_types(command.rules.installs or hikari.UNDEFINED)


def outline(command: Command | hikari.PartialCommand | None, ours: Command) -> Any:
    """Return what matters of a command when it is compared with `ours`."""
    if command is None:
        return None
    if isinstance(command, Command):
        rules, names, about = command.rules, command.local.names, command.local.descriptions
    else:
        kinds = tuple(command.context_types or ()), tuple(command.integration_types or ())
        rules = CommandRules(command.default_member_permissions, *kinds, command.is_nsfw)
        names, about = command.name_localizations, getattr(command, "description_localizations", {})
    options = [outline_option(each) for each in getattr(command, "options", None) or ()]
    # No contexts are all of them. Which installs none are, only the application's page at Discord says.
    contexts = sorted(map(int, rules.contexts or hikari.ApplicationContextType))
    installs = sorted(map(int, rules.installs)) if ours.rules.installs else None
    texts = getattr(command, "description", ""), sorted(names.items()), sorted(about.items())
    return texts, int(rules.permissions), rules.nsfw, contexts, installs, options


def outline_option(option: hikari.CommandOption) -> list[Any]:
    """Return what matters of an option."""
    kind = option.name, int(option.type), option.description, bool(option.is_required), bool(option.autocomplete)
    limits = option.min_value, option.max_value, option.min_length or None, option.max_length  # 0 is a least value
    channels = sorted(map(int, option.channel_types or ()))
    choices = [(each.name, each.value, sorted(each.name_localizations.items())) for each in option.choices or ()]
    local = sorted(option.name_localizations.items()), sorted(option.description_localizations.items())
    return [*kind, *limits, channels, choices, local, [outline_option(each) for each in option.options or ()]]


# ---- 9. Web ----------------------------------------------------------------------------------------------------------
# What comes in over HTTP, to one aiohttp application: Discord's interactions in MODE=rest, hooks by which others call
# the bot, questions about its health. A signature is checked before anything is read, and nothing is answered with 2xx
# before it is on disk. The App behind it is section 10.


class Delivery:
    """An interaction whose sender waits at the other end of a request, or of several: copies get the same answer."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[bytes] = loop.create_future()
        self.written: asyncio.Future[bool] = loop.create_future()
        self.requests = 0

    async def give(self, answer: bytes) -> bool:
        """Answer the requests; return whether it was written to one of them."""
        self.answer.set_result(answer)
        return await asyncio.shield(self.written)

    def is_written(self, success: bool) -> None:
        """Say that the answer was written to a request, or that none is left."""
        if not self.written.done():
            self.written.set_result(success)


async def first_answer(kind: Any, body: Body, entities: hikari.api.EntityFactory) -> bytes:
    """Return an interaction's first answer as it is sent: JSON or, with files, multipart/form-data."""
    if kind is Reply.MODAL:
        body = body | {"components": [each.build()[0] for each in body["components"]]}
    if kind in (Reply.MODAL, Reply.DEFERRED_MESSAGE_CREATE, Reply.DEFERRED_MESSAGE_UPDATE):
        return write_json({"type": int(kind), "data": body})
    payload, found = hikari.impl.InteractionMessageBuilder(kind, **body).build(entities)
    files = [*{each.filename: each for each in found}.values()]  # of one name they are the same
    # What an older state of the message had is not in this list, and goes.
    payload["data"]["attachments"] = [{"id": number, "filename": each.filename} for number, each in enumerate(files)]
    if not files:
        return write_json(payload)
    form, kind_of_json = aiohttp.MultipartWriter("form-data"), {"Content-Type": "application/json"}
    form.append(write_json(payload), kind_of_json).set_content_disposition("form-data", name="payload_json")
    for number, file in enumerate(files):
        async with file.stream() as stream:
            kind_of_file = {"Content-Type": stream.mimetype or "application/octet-stream"}
            part = form.append(io.BytesIO(await stream.read()), kind_of_file)
        part.set_content_disposition("form-data", name=f"files[{number}]", filename=file.filename)
    return await form.as_bytes()


def http_response(answer: bytes) -> web.Response:
    """Return the answer with the type of its content: multipart begins with the boundary between its parts."""
    boundary = answer[2:].partition(b"\r\n")[0].decode() if answer.startswith(b"--") else ""
    kind = f"multipart/form-data; boundary={boundary}" if boundary else "application/json"
    return web.Response(body=io.BytesIO(answer) if boundary else answer, headers={"Content-Type": kind})


def is_news(record: logging.LogRecord) -> bool:
    """Return whether aiohttp tells of more than a request that is no HTTP, or broke off: such come all day long."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError | web.RequestPayloadError | OSError)


# Signatures. What is compared is compared in constant time; the key of an event lies within what is signed.

PING = 1  # Discord's type of interaction by which it sees whether an address is a bot's
DISCORD = "Discord"  # the name its key is pinned under; no hook can be called so
NOT_SIGNED = "the signature is missing or wrong"
SAME_SECRET = "Its sender needs the secret that stands here, or the key that belongs to the one here."
REFUSALS_TOLD_MAX = 20  # reasons in the log, for each hook and hour
CHECK_WITHIN_S = 10.0  # then the sender has most likely given up
ANSWER_KEPT_BYTES_MAX = 1 << 16  # a larger one would fill the disk for the sake of a copy that hardly comes


def is_signed(key: bytes, content: bytes, signature: bytes) -> bool:
    """Return whether it is the Ed25519 signature of the content."""
    from nacl.exceptions import BadSignatureError  # noqa: PLC0415  # most bots never need it
    from nacl.signing import VerifyKey  # noqa: PLC0415

    try:
        VerifyKey(key).verify(content, signature)
    except (BadSignatureError, ValueError, TypeError):  # also of a wrong length
        return False
    return True


def check_age(stamp: str) -> None:
    """Raise HookError when a request was signed so long ago that its key may be forgotten, or so far ahead."""
    if not re.fullmatch(r"\d{1,12}", stamp, re.ASCII) or abs(time.time() - int(stamp)) > SIGNED_AGE_MAX_S:
        raise HookError(401, "the timestamp is missing or too far from now")


def check_discord(key: bytes, headers: Mapping[str, str], body: bytes) -> None:
    """Raise HookError when the request is not from Discord, or not from now."""
    stamp = headers.get("X-Signature-Timestamp", "")
    try:
        content, signature = stamp.encode() + body, bytes.fromhex(headers.get("X-Signature-Ed25519", ""))
    except ValueError:
        raise HookError(401, NOT_SIGNED) from None
    if not is_signed(key, content, signature):
        raise HookError(401, NOT_SIGNED)
    check_age(stamp)


def hmac_of(secret: bytes, content: bytes) -> bytes:
    """Return the HMAC-SHA256."""
    return hmac.new(secret, content, hashlib.sha256).digest()


def is_among(wanted: str, given: Iterable[str]) -> bool:
    """Return whether one of the texts given is the one wanted, in a time that tells nothing."""
    return any(hmac.compare_digest(wanted.encode(), each.encode("utf-8", "replace")) for each in given)


def read_key(text: str) -> bytes:
    """Return the bytes of a public key given in hexadecimal digits or in base64. Raises HookError."""
    try:
        key = bytes.fromhex(text) if len(text) == 64 else base64.b64decode(text.removeprefix("whpk_"), validate=True)
    except ValueError:
        raise HookError(401, NOT_SIGNED) from None
    return key


class Signed(NamedTuple):
    """A hook's request as Standard Webhooks signs it: https://www.standardwebhooks.com."""

    id: str
    content: bytes
    signatures: list[str]

    @classmethod
    def read(cls, headers: Mapping[str, str], body: bytes) -> Signed:
        """Return what is signed, and its signatures. Raises HookError."""
        id, stamp = headers.get("Webhook-Id", ""), headers.get("Webhook-Timestamp", "")
        if not re.fullmatch(r"[\w:-]{1,128}", id, re.ASCII):  # with dots, what is signed could be read in two ways
            raise HookError(401, "Webhook-Id is missing, or not 1 to 128 letters, digits and : _ -")
        check_age(stamp)
        return cls(id, f"{id}.{stamp}.".encode() + body, headers.get("Webhook-Signature", "").split())

    def is_from(self, secret: str) -> bool:
        """Return whether it is signed with the secret: text, or base64 after whsec_."""
        key = base64.b64decode(secret[6:]) if secret.startswith("whsec_") else secret.encode()
        return is_among(f"v1,{base64.b64encode(hmac_of(key, self.content)).decode()}", self.signatures)

    def is_from_key(self, key: bytes) -> bool:
        """Return whether it is signed with the Ed25519 key."""
        for each in self.signatures:
            with contextlib.suppress(ValueError):  # there may be a right one beside one that cannot be read
                if each.startswith("v1a,") and is_signed(key, self.content, base64.b64decode(each[4:])):
                    return True
        return False


def headers_kept(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that are for a hook's handler, in lower case; none that proves who its sender is."""
    in_turn = reversed([*headers.items()])  # of a name that is there twice, the one that was verified
    told = {name.lower(): text.encode("utf-8", "replace").decode() for name, text in in_turn}
    wanted = re.compile(r"(?!.*(sig|hmac|token|secret|auth|key|pass|credential|session|cookie))(x|webhook)-")
    return {name: text for name, text in told.items() if wanted.match(name)}


def read_hook(function: Handler) -> Hook:
    """Return the hook of a marked coroutine, and how to read its body. Raises OperatorError."""
    made: Hook = function.__dict__["hook"]
    check_parameters(function, "ctx: EventContext", "body: dict")
    place = f"hook {made.name!r}"
    named = NAME.fullmatch(made.name) and made.name[0] != "_"  # or its key could be pinned as Discord's
    insist(place, (named, " is no name. Use up to 32 of a-z, 0-9 and _, a letter first."))
    ways = ("standard", "ed25519", "github")
    insist(place, (made.sign in ways, f": sign={made.sign!r} is no way to sign. There are {', '.join(ways)}."))
    insist(place, (made.per_minute > 0, ": per_minute is 1 at least."))
    if made.check:
        check_parameters(made.check, "app: App", "body: dict")
    try:
        hints = typing.get_type_hints(function)
        kind = hints.get(list(inspect.signature(function).parameters)[1], Any)
        if isinstance(msgspec.inspect.type_info(kind), msgspec.inspect.CustomType):
            raise TypeError(f"{kind.__name__} cannot be read from JSON. Write class {kind.__name__}(msgspec.Struct)")
        return made._replace(body=msgspec.json.Decoder(kind))
    except Exception as error:  # whatever an annotation may hold
        raise OperatorError(f"{place}: {error}. {TYPES_MEANT}") from error


async def check_free(socket: str) -> None:
    """Raise OSError when somebody listens at the socket: asyncio would take its place."""
    with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
        _, writer = await asyncio.open_unix_connection(socket)
        writer.close()
        raise OSError("another process listens there")


def what_must_fit(app: App) -> Iterator[tuple[object, str]]:
    """Yield what the settings and the bot must be like together, and what is wrong where they are not."""
    config = app.config
    heard = ", ".join(app.listeners)
    yield (
        config.mode == "gateway" or not heard,
        f"MODE=rest hears no events: {heard} would never run. Use MODE=gateway.",
    )
    for name, each in app.hooks.items() if config.has_web else ():
        kind, known = ("KEY", config.hook_keys) if each.sign == "ed25519" else ("SECRET", config.hook_secrets)
        own = f"HOOK_{kind}_{name.upper()}"
        fits = name in known or "" in known or (kind == "KEY" and config.pin_keys)
        whose = "its sender's public key, or PIN_KEYS=true" if kind == "KEY" else "the same that its sender has"
        yield fits, f"hook {name!r} has no {kind.lower()}. Write {own}=… into config.env: {whose}."


def what_is_odd(app: App) -> Iterator[str]:
    """Yield what is no mistake and most likely not meant."""
    if app.hooks and not app.config.has_web:
        yield f"the hooks {', '.join(app.hooks)} are not served. Set WEB_PORT."
    for name in ({*app.config.hook_secrets, *app.config.hook_keys} - {""}) - app.hooks.keys():
        yield f"there is no hook {name!r}, for which HOOK_…_{name.upper()} is set"


class Web:
    """The HTTP side of a bot; without WEB_PORT and WEB_SOCKET there is none."""

    reuses: bool | None = None  # the port, beside other processes of the bot

    def __init__(self, app: App) -> None:
        self._app, self._config = app, app.config
        self._deliveries = dict[EventKey, Delivery]()
        self._calls, self._told = dict[str, deque[float]](), dict[tuple[str, int], set[str]]()
        self._runner: web.AppRunner | None = None
        self._began_at, self._is_shut, self._key = time.monotonic(), False, b""
        self._counts = collections.Counter[tuple[str, int]]()
        self.lag_s = 0.0
        """How late the event loop was when it was last looked at."""

    # Where it is.

    async def open(self) -> None:
        """Listen where the settings say. Raises OperatorError."""
        config = self._config
        for sentence in what_is_odd(self._app):
            log.warning("%s", sentence)
        if not config.has_web:
            return
        server = web.Application(client_max_size=BODY_BYTES_MAX, middlewares=[self._in_words])
        if config.mode == "rest":
            server.router.add_post(f"{config.web_path}/interactions", self._take_interaction)
        server.router.add_post(f"{config.web_path}/hooks/{{name}}", self._take_hook)
        server.router.add_get(f"{config.web_path}/health", self._tell_health)
        server.router.add_get(f"{config.web_path}/metrics", self._tell_metrics)
        http_log = logging.getLogger("everclick.http")
        http_log.addFilter(is_news)
        patience: Any = {"keepalive_timeout": IDLE_MAX_S, "lingering_time": 1, "shutdown_timeout": 1}  # seconds
        self._runner = web.AppRunner(server, access_log=None, logger=http_log, **patience)
        await self._runner.setup()
        where = f"WEB_PORT={config.web_port} at WEB_HOST={config.web_host}"
        try:
            if config.web_port is not None:
                where_to = self._runner, config.web_host, config.web_port
                await web.TCPSite(*where_to, backlog=1024, reuse_port=self.reuses).start()
            where = f"WEB_SOCKET={config.web_socket}"
            if config.web_socket:
                await check_free(config.web_socket)
                await web.UnixSite(self._runner, config.web_socket, backlog=1024).start()
                Path(config.web_socket).chmod(0o660)  # noqa: ASYNC240  # the proxy may be of the same group
        except (OSError, NotImplementedError) as error:
            await self._runner.cleanup()
            raise OperatorError(
                f"{where} cannot be used ({error}). Stop what uses it, make its folder, or choose another."
            ) from error
        log.info("listening at %s", self.address)

    @property
    def address(self) -> str:
        """Where it can be reached on this machine."""
        found: list[Any] = self._runner.addresses if self._runner else []
        found = [each for each in found if each != self._config.web_socket]
        ports = [f"http://{each[0]}:{each[1]}" for each in found if len(each) == 2]
        ports += [f"http://[{each[0]}]:{each[1]}" for each in found if len(each) == 4]  # IPv6
        return f"{(ports or [self._config.web_socket])[0]}{self._config.web_path}"

    async def live(self) -> None:
        """Take Discord's interactions until cancelled. Raises OperatorError when Discord refuses the bot."""
        client: Any = self._app.rest
        client.start()
        with reaching(self._config.api):
            me = await client.fetch_my_user()
            self._key = bytes.fromhex(await self._discord_key())
            behind = await self._app.store.behind()
            await self._app.recover()
        self._app.begin(me)
        await self._show_anew(behind)
        await asyncio.Event().wait()

    async def _show_anew(self, behind: Sequence[Saved]) -> None:
        """Show once more what the last process left behind, for answers of it may have come after ours."""
        if behind:
            await asyncio.sleep(FIRST_ANSWER_WITHIN_S)  # Discord takes none after that
        for id in (saved.id for saved in behind):
            async with self._app.lanes.enter(id):
                if saved := await self._app.store.load(id):
                    self._app.dispatch.repair(saved._replace(shown=saved.version - 1))

    async def _discord_key(self) -> str:
        """Return the key of DISCORD_PUBLIC_KEY or, asked for once and kept, the one that Discord names."""
        if known := self._config.public_key or await self._app.store.pinned(DISCORD):
            return known
        return await self._app.store.pin(DISCORD, (await self._app.rest.fetch_application()).public_key.hex())

    async def stop_receiving(self) -> None:
        """Take nothing more; what was taken can still be answered."""
        self._is_shut = True
        for site in [*self._runner.sites] if self._runner else []:
            await site.stop()

    async def close(self) -> None:
        """End all connections."""
        if self._runner:
            await self._runner.cleanup()

    @web.middleware
    async def _in_words(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """Handle a request as work that a drain waits for."""
        return await self._app.spawn(self._respond(request, handler))

    async def _respond(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """Tell whoever asks what is wrong, in JSON; nothing that comes in here takes anything down."""
        resource = request.match_info.route.resource
        try:
            response = await handler(request)
        except HookError as error:
            response = web.json_response({"error": error.reason}, status=error.status, headers=error.headers)
        except web.HTTPException as error:
            allow = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
            response = web.json_response({"error": error.reason}, status=error.status, headers=allow)
        except StoreError:  # the bot is about to end, and says why
            response = web.json_response({"error": "it cannot be kept now"}, status=503)
        except Exception:  # a check function's, or a fault of ours
            log.exception("%s %s failed", request.method, resource.canonical if resource else request.path)
            response = web.json_response({"error": "something went wrong"}, status=500)
        if response.status in (408, 413):
            response.force_close()  # the rest of the body is not waited for
        self._counts[resource.canonical if resource else "other", response.status] += 1
        return response

    async def _read(self, request: web.Request) -> bytes:
        """Return the body; aiohttp looks at its length. Raises HookError, also when it comes while the bot stops."""
        try:
            async with asyncio.timeout(BODY_WITHIN_S):
                body = await request.read()
        except TimeoutError:
            raise HookError(408, f"the body did not come within {BODY_WITHIN_S:.0f} s") from None
        except (OSError, web.RequestPayloadError):
            raise HookError(400, "the body broke off, or cannot be unpacked") from None
        if self._is_shut or not self._app.started.is_set():
            raise HookError(503, "the bot is starting or stopping", **{"Retry-After": "1"})
        return body

    # Discord's interactions.

    async def _take_interaction(self, request: web.Request) -> web.StreamResponse:
        body = await self._read(request)
        check_discord(self._key, request.headers, body)
        try:
            data = read_json(body)
            kind = data["type"]
        except (ValueError, TypeError, LookupError, RecursionError):
            raise HookError(400, "this is no interaction") from None
        if kind == PING:
            return web.json_response({"type": 1})
        if is_question(data):
            choices = [each.build() for each in await self._app.dispatch.suggest(data)]
            return web.json_response({"type": int(Reply.AUTOCOMPLETE), "data": {"choices": choices}})
        event = interaction_event(data, hashlib.sha256(body).hexdigest())
        delivery = self._deliveries.setdefault(event.key, Delivery())
        delivery.requests += 1
        try:
            if not await self._app.take(event) and (again := await self.answer_again(event.key, delivery)):
                return again
            return await self._await_answer(request, delivery)
        finally:
            delivery.requests -= 1
            if not delivery.requests:
                del self._deliveries[event.key]
                delivery.is_written(False)

    async def answer_again(self, key: EventKey, delivery: Delivery) -> web.Response | None:
        """Return the response that a copy gets, or None when the first delivery's is still to come."""
        known = await self._app.store.answer(key)
        return http_response(known) if known else None

    async def _await_answer(self, request: web.Request, delivery: Delivery) -> web.StreamResponse:
        try:
            async with asyncio.timeout(FIRST_ANSWER_WITHIN_S):
                answer = await asyncio.shield(delivery.answer)
        except TimeoutError:
            return web.Response(status=202)  # the answer may still come, as a request of ours
        response = http_response(answer)
        try:
            async with asyncio.timeout(FIRST_ANSWER_WITHIN_S):
                await response.prepare(request)
                await response.write_eof()
            delivery.is_written(True)
        except (OSError, TimeoutError):  # nobody is there any more, or does not read
            if request.transport:
                request.transport.abort()
        return response

    async def answer(self, key: EventKey, kind: Any, body: Body) -> bool:
        """Answer an interaction in the response that its sender waits for; False when nobody waits (any more)."""
        if (delivery := self._deliveries.get(key)) is None:
            return False
        answer = await first_answer(kind, body, self._app.entities)
        if delivery.answer.done() or not await delivery.give(answer):
            return False
        if len(answer) <= ANSWER_KEPT_BYTES_MAX:
            self._app.store.note_answer(key, answer)
        return True

    # Hooks.

    async def _take_hook(self, request: web.Request) -> web.StreamResponse:
        hook = self._app.hooks.get(request.match_info["name"])
        if hook is None:
            raise HookError(404, "there is no such hook")
        if request.content_type != "application/json":
            raise HookError(415, "Content-Type is not application/json")
        body = await self._read(request)
        id = await self._verify(hook, request.headers, body)
        self._check_rate(hook)
        try:
            data = read_json(body)
            value = hook.body.decode(write_json(data))
        except (ValueError, TypeError, RecursionError) as error:
            raise HookError(422, f"the body does not fit: {error}") from None
        kept = {"hook": hook.name, "headers": headers_kept(request.headers), "data": data}
        event = Event(EventKey(f"hook:{hook.name}:{id}"), write_json(kept))
        if hook.check and not await self._app.store.answer(event.key):  # to a copy its answer would be another one
            try:
                async with asyncio.timeout(CHECK_WITHIN_S):
                    await hook.check(self._app, value)
            except TimeoutError:
                raise HookError(503, f"the check took longer than {CHECK_WITHIN_S:.0f} s") from None
        if not await self._app.take(event):
            raise HookError(409, "this was accepted before")
        answer = {"accepted": event.key}
        self._app.store.note_answer(event.key, write_json(answer))
        return web.json_response(answer, status=202)

    async def _verify(self, hook: Hook, headers: Mapping[str, str], body: bytes) -> str:
        """Return the request's id, under which its copies are known. Raises HookError when it is not its sender's."""
        secrets = self._config.hook_secrets
        secret = secrets.get(hook.name, secrets.get("", ""))
        if hook.sign == "github":  # which signs no time, and no id: the body itself tells copies
            wanted = f"sha256={hmac_of(secret.encode(), body).hex()}"
            if not is_among(wanted, [headers.get("X-Hub-Signature-256", "")]):
                raise self._refuse(hook, NOT_SIGNED)
            return hashlib.sha256(body).hexdigest()  # the key of an event is seen in logs
        signed = Signed.read(headers, body)
        if hook.sign == "standard":
            if not signed.is_from(secret):
                raise self._refuse(hook, NOT_SIGNED)
            return signed.id
        keys = self._config.hook_keys
        own = keys.get(hook.name, keys.get("", ""))
        key = read_key(own or headers.get("Webhook-Key", ""))
        if not signed.is_from_key(key):
            raise self._refuse(hook, NOT_SIGNED)
        fingerprint = hashlib.sha256(key).hexdigest()
        store = self._app.store
        if not own and (await store.pinned(hook.name) or await store.pin(hook.name, fingerprint)) != fingerprint:
            script = Path(sys.argv[0]).name
            remedy = f"If its sender has a new one: python {script} trust {hook.name} {fingerprint}"
            raise self._refuse(hook, f"another key is pinned than the one with the fingerprint {fingerprint}", remedy)
        return signed.id

    def _refuse(self, hook: Hook, reason: str, remedy: str = "") -> HookError:
        """Return the error for the sender; the log is told once an hour, and not by strangers without end."""
        told = self._told.setdefault((hook.name, int(time.monotonic() // HOUR)), set())
        if reason not in told and len(told) < REFUSALS_TOLD_MAX:
            told.add(reason)
            log.warning("a request to the hook %s was refused: %s. %s", hook.name, reason, remedy or SAME_SECRET)
        return HookError(401, reason)

    def _check_rate(self, hook: Hook) -> None:
        calls, now = self._calls.setdefault(hook.name, deque(maxlen=hook.per_minute)), time.monotonic()
        if len(calls) == hook.per_minute and (left := calls[0] + MINUTE - now) > 0:
            raise HookError(
                429, f"more than {hook.per_minute} requests in a minute", **{"Retry-After": f"{math.ceil(left)}"}
            )
        calls.append(now)

    # How it is.

    async def health(self) -> JSON:
        """Return what /health tells: nothing in it is secret."""
        app, figures = self._app, await self._app.store.figures()
        shards = app.gateway.shards.values()
        told: list[JSON] = [
            {"id": each.id, "connected": each.is_connected, "latency_s": finite(each.heartbeat_latency)}
            for each in shards
        ]
        status = "ok" if all(each.is_connected for each in shards) else "not connected"
        status = "stopping" if self._is_shut else status if app.started.is_set() else "starting"
        return {
            "status": status, "version": __version__, "mode": self._config.mode,
            "uptime_s": round(time.monotonic() - self._began_at), "shards": told, "inbox": figures.pending,
            "oldest_s": max(round(time.time() - figures.oldest_at), 0) if figures.oldest_at else 0,
            "failed": figures.failed, "loop_lag_s": round(self.lag_s, 3), "store_bytes": figures.bytes,
            "hooks": {name: each.sign for name, each in app.hooks.items()},
        }  # fmt: skip

    async def _tell_health(self, _: web.Request) -> web.Response:
        health = await self.health()
        return web.json_response(health, status=200 if health["status"] == "ok" else 503)

    async def _tell_metrics(self, _: web.Request) -> web.Response:
        try:
            text = metrics(await self.health(), self._counts)
        except ImportError:
            raise HookError(404, "there are none. Run: pip install prometheus-client") from None
        return web.Response(body=text, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})


def finite(number: float) -> float | None:
    """Return the number as JSON may have it: None for one that is not known."""
    return round(number, 3) if math.isfinite(number) else None


def metrics(health: JSON, counts: Mapping[tuple[str, int], int]) -> bytes:
    """Return the figures in Prometheus' text format. Raises ImportError without the package prometheus-client."""
    from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric  # noqa: PLC0415

    class Collector:
        def collect(self) -> Iterator[Metric]:
            yield GaugeMetricFamily("everclick_up", "Whether all is well.", value=health["status"] == "ok")
            for name in ("uptime_s", "inbox", "oldest_s", "failed", "loop_lag_s", "store_bytes"):
                yield GaugeMetricFamily(f"everclick_{name}", f"See {name} of /health.", value=health[name])
            latencies = GaugeMetricFamily("everclick_shard_latency_s", "Of heartbeats.", labels=["shard"])
            for each in health["shards"]:
                latencies.add_metric([str(each["id"])], each["latency_s"] or math.nan)
            requests = CounterMetricFamily("everclick_requests", "Requests answered.", labels=["path", "status"])
            for (path, status), count in counts.items():
                requests.add_metric([path, str(status)], count)
            yield from (latencies, requests)

    registry = CollectorRegistry()
    registry.register(typing.cast("Any", Collector()))
    return generate_latest(registry)


# ---- 10. Running -----------------------------------------------------------------------------------------------------
# `App` is the running object: what your_bot adds to, what handlers find as ctx.app, and what starts and stops the parts
# in order. It stops on SIGINT, SIGTERM and SIGHUP: no more events are taken, handlers get DRAIN_S to end, and what
# could not end stays in the inbox for the next start.


class App:
    """A bot: its views and commands, its store, and Discord.

    your_bot may set `texts` (what it says of its own accord), `intents` (gateway events it wants beyond those it
    listens to) and `activity` (what people see under its name). `rest` is hikari's REST client and `entities` its
    entity factory.
    """

    dispatch_type, display_type, gateway_type, web_type = Dispatch, Display, Gateway, Web

    def __init__(self, config: Config, store: Store | None = None) -> None:
        self.config = config
        self.texts: dict[str, Texts] = {"": Texts()}
        self.intents, self.activity = hikari.Intents.NONE, typing.cast("hikari.Activity | None", None)
        self.views, self.commands = Views(), dict[tuple[int, str], Command]()
        self.listeners, self.repeats, self.hooks = dict[str, Listener](), dict[str, Repeat](), dict[str, Hook]()
        self.slots = Slots(config.max_handlers)
        self.lanes = Lanes(self.slots)
        self._given_store = store
        self._tasks: set[asyncio.Task[Any]] = set()
        self._displays: dict[RecordId, Display] = {}
        self._ending: BaseException | None = None
        self._recovered, self._due, self.started = False, asyncio.Event(), asyncio.Event()
        self._next_runs: dict[EventKey, float] = {}
        for cls in (Claim, FormAgain):
            self.views.add(cls, own=True)

    def add(self, *things: Any) -> None:
        """Register views, records, forms, and functions that a decorator marked. Raises OperatorError."""
        for thing in things:
            name, cls = getattr(thing, "__name__", ""), typing.cast("Any", thing if inspect.isclass(thing) else None)
            if cls and issubclass(cls, Record):
                self.views.add(cls)
            elif is_form(cls):
                self.views.add_form(cls)
            elif is_marked(thing, "command"):
                self._add_command(read_command(typing.cast("Handler", thing)))
            elif is_marked(thing, "listener"):
                if not Reader.payloads_of(event := thing.__dict__["listener"].event):
                    raise OperatorError(f"{name}: {event.__name__} does not come from Discord, and is never heard.")
                check_parameters(thing, "ctx: EventContext", f"event: hikari.{event.__name__}")
                claim_name(self.listeners, name, thing.__dict__["listener"])
            elif is_marked(thing, "repeat"):
                check_parameters(thing, "ctx: EventContext")
                claim_name(self.repeats, name, thing.__dict__["repeat"])
            elif is_marked(thing, "hook"):
                made = read_hook(typing.cast("Handler", thing))
                claim_name(self.hooks, made.name, made)
            elif is_marked(thing, "handler"):
                self.views.add_function(typing.cast("Handler", thing))
            else:
                raise OperatorError(
                    f"{thing!r} is neither a view nor a command. Mark it with @register, @command, @listen, @every,"
                    " @daily, @hook or @handler."
                )

    def _add_command(self, command: Command) -> None:
        if self.commands.setdefault((command.type, command.name), command) is not command:
            raise OperatorError(f"/{command.name} is there twice. Rename one of the two commands.")
        listed(self.commands.values())

    @property
    def all_intents(self) -> hikari.Intents:
        """The intents of `intents`, of all listeners, and of what tells that a view's message was deleted."""
        has_views = any(not name.startswith("_") for name in self.views.that_end)
        ours = CLEANING_INTENTS if has_views else hikari.Intents.NONE
        return union((self.intents, ours, *(each.intents for each in self.listeners.values())))

    def known(self, view: V) -> V:
        """Return the view. Raises LayoutError when its class is not listed."""
        self.views.require(type(view))
        return view

    async def build(self, view: View) -> Body:
        """Save a new view and return what to send: `rest.create_message(channel, **await app.build(view))`."""
        view, saved = await create_record(self.store, self.known(view), new_key(), time.time())
        body = lay_out(view, saved.id)
        return body | {"flags": flags_of(body, False)}

    async def send(
        self, channel: hikari.Snowflakeish, what: str | View | Layout, *, ttl: float | str | None = None
    ) -> hikari.Message:
        """Post a message in a channel. In a handler, `ctx.send` does it once even over a crash."""
        return await post(self, channel, what, new_key(), ttl)

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

    # Records and views from anywhere, outside of a handler too.

    @contextlib.asynccontextmanager
    async def record(self, cls: type[R], *key: Any) -> AsyncGenerator[R]:
        """Have a record to yourself, and save it at the end: `async with app.record(Score, guild, user) as score:`.

        In a handler use `ctx.record`, which saves with the event. Raises StateUnreadableError.
        """
        self.views.require(cls)
        id = record_id(cls, key)
        async with self.lanes.enter(id):
            saved = await self.store.load(id)
            record = decode_state(cls, saved) if saved else cls()
            saved = saved or first_saved(record, id, time.time())
            yield record
            if (data := encode_state(record)) != saved.data:
                await self.commit([saved._replace(data=data, model=cls.registration.version)], None)

    async def records(self, cls: type[R], *prefix: Any, by: str = "", top: int = 0) -> AsyncGenerator[tuple[str, R]]:
        """Yield the last part of the key and the record of all whose key begins so: `app.records(Score, guild_id)`.

        In the order of their keys; with `by="points"` the highest first, `top` of them (100). What cannot be read is
        left out.
        """
        self.views.require(cls)
        names = dict(zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True))
        if by and by not in names:
            raise ValueError(f"{cls.__name__} has no field {by!r}.")
        by, limit = names.get(by, ""), (top or 100) if by else 500
        query = Query(cls.registration.name, record_id(cls, prefix).key, by=by, limit=limit)
        async for saved in self._each(query):
            with contextlib.suppress(StateUnreadableError):
                yield last_part(saved.id.key), decode_state(cls, saved)

    async def _each(self, query: Query) -> AsyncGenerator[Saved]:
        while found := await self.store.find(query):
            for saved in found:
                yield saved
            if query.by:
                return
            query = query._replace(after=found[-1].id.key)

    async def remove(self, cls: type[Record], *key: Any) -> None:
        """Delete a record of that key, if there is one."""
        id = record_id(cls, key)
        async with self.lanes.enter(id):
            if saved := await self.store.load(id):
                await self.commit([saved._replace(data=b"")], None)

    async def find(
        self, cls: type[V], *, channel: int | None = None, message: int | None = None
    ) -> AsyncGenerator[tuple[RecordId, V]]:
        """Yield id and state of the views of a class; those in a channel or of one message alone, if that is given."""
        async for saved in self._each(Query(cls.registration.name, channel=channel, message=message)):
            with contextlib.suppress(StateUnreadableError):
                yield saved.id, decode_state(cls, saved)

    async def update(self, id: RecordId, change: Callable[[Any], None]) -> None:
        """Change a view from outside of a click, `change(view)`, and show it: in its turn, like a click.

        Raises LookupError when it is gone, StateUnreadableError, LayoutError.
        """
        async with self.lanes.enter(id) as lane:
            await self.store.flush()  # where its message is may have been noted just now
            saved, lane.saved = lane.saved or await self.store.load(id), None
            cls = self.views.classes.get(id.name)
            if saved is None or cls is None or not issubclass(cls, View):
                raise LookupError(f"there is no {id.name} {id.key} (any more)")
            view = decode_state(cls, saved)
            change(view)
            body, model = lay_out(view, id), cls.registration.version
            await self.commit([saved._replace(data=encode_state(view), model=model)], None)
        self.show(saved._replace(version=saved.version + 1), body, None)

    # What is to happen later.

    async def later(self, when: float | str | datetime.datetime, function: Handler, *args: Any) -> EventKey:
        """Call a function marked by @handler and listed in your_bot later; see EventContext.later."""
        body = timer_body(self.views, RecordId("", ""), getattr(function, "__name__", ""), args)
        key = EventKey(f"timer:{new_key()}")
        await self.store.commit([], None, [Timer(key, moment(when), body)])
        return key

    async def cancel(self, key: EventKey) -> None:
        """Take back what `later` set."""
        await self.store.commit([], None, [Timer(key, None)])

    async def set_repeat(self, repeat: Repeat) -> None:
        """Set the timer for the next run."""
        key, body = EventKey(repeat.timer), write_json({"repeat": getattr(repeat.function, "__name__", "")})
        self._next_runs[key] = repeat.next_after(time.time())
        await self.store.commit([], None, [Timer(key, self._next_runs[key], body)])

    def wake(self) -> None:
        """Look at once for what is due."""
        self._due.set()

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

    def show(self, saved: Saved, body: Body, click: ComponentContext | None) -> None:
        """Bring the record's message to this version and answer the click."""
        if saved.id not in self._displays:
            self._displays[saved.id] = self.display_type(self, saved)
            self.spawn(self._run_display(saved.id))
        self._displays[saved.id].show(saved, body, click)

    async def _run_display(self, id: RecordId) -> None:
        try:
            await self._displays[id].run()
        finally:
            self._displays.pop(id).ended.set()

    async def let_display_begin(self, click: ComponentContext) -> None:
        """Wait until what the click shows is on its way."""
        await asyncio.sleep(0)

    async def is_shown(self, id: RecordId) -> None:
        """Wait until nothing is left to show of the record."""
        if id in self._displays:
            await self._displays[id].ended.wait()

    async def commit(self, records: Sequence[Saved], done: EventKey | None, timers: Sequence[Timer] = ()) -> None:
        """Write what was changed by whoever has the records to themselves; see Store.commit."""
        await self.store.commit(records, done, timers)

    def accept(self, event: Event | None, cursor: Cursor | None) -> None:
        """Put an event into the inbox and, when it is on disk, on its way."""
        try:
            accepted = self.store.accept(event, cursor)
        except StoreError as error:  # it refused an earlier one, whose reason is about to be told and says more
            asyncio.get_running_loop().call_soon(self.stop, error)
        else:
            accepted.add_done_callback(functools.partial(self._accepted, event))

    async def take(self, event: Event) -> bool:
        """Accept an event and start it when it is on disk; False: it was accepted before. Raises StoreError."""
        try:
            is_new = await self.store.accept(event, None)
        except StoreError as error:
            self.stop(error)
            raise
        if is_new:
            self.spawn(self.dispatch.run(event))
        return bool(is_new)

    def clean_up(self, gone: Gone) -> None:
        """Delete the records of deleted messages."""
        self.store.clean_up(gone).add_done_callback(functools.partial(self._accepted, None))

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
        self._stopping = asyncio.Event()
        insist("", *what_must_fit(self))
        self.store = self._given_store or open_store(self.config)
        await self.store.open()
        try:
            self.dispatch = self.dispatch_type(self)
            self.gateway = self.gateway_type(self)
            self.rest, self.entities = self.gateway.rest, self.gateway.entity_factory
            self.gateway.subscribe(hikari.StartedEvent, self._on_started)
            self.web = self.web_type(self)
            await self.web.open()
            try:
                await self._live()
            finally:
                await self.web.close()
            if self._ending is None:
                await self.store.release()
                left = len(await self.store.pending())
                session = "Discord keeps the session for some minutes, and the inbox"
                kept = session if self.config.mode == "gateway" else "the inbox keeps"
                log.info("stopped; %s %d events", kept, left)
        finally:
            await self.store.close()
        if self._ending:
            raise self._ending

    async def _live(self) -> None:
        with stop_signals(self.stop), watched_loop():
            async with asyncio.TaskGroup() as parts:
                house = [parts.create_task(self._keep_house()), parts.create_task(self._keep_time())]
                discord = parts.create_task(self._live_at_discord())
                await self._stopping.wait()
                for each in house:
                    each.cancel()
                await self._drain()
                discord.cancel()

    async def _live_at_discord(self) -> None:
        try:
            await (self.gateway.live() if self.config.mode == "gateway" else self.web.live())
            raise RuntimeError("the gateway connection ended by itself")
        except Exception as error:
            if not self._stopping.is_set():
                self.stop(error)
        finally:
            self.started.set()

    async def recover(self) -> None:
        """Put what was left in front of anything new: Discord has been reached, and no shard connected yet."""
        if not self._recovered:
            self._recovered = True
            await self.dispatch.recover()

    async def _on_started(self, _: hikari.StartedEvent) -> None:
        self.begin(self.gateway.get_me())

    def begin(self, me: hikari.OwnUser | None) -> None:
        """Say that Discord was reached, and register the commands."""
        self.started.set()
        if self._stopping.is_set():
            return
        log.info("%s is running as process %d. Stop it with Ctrl-C.", me, os.getpid())
        self.spawn(self._register_commands())

    async def _register_commands(self) -> None:
        commands, guild = [*self.commands.values()], self.config.dev_guild
        where = f"in server {guild}" if guild else "everywhere"
        try:
            application = await self.rest.fetch_application()
            if await register_commands(self.rest, application.id, commands, guild):
                log.info("%d commands were registered %s", len(commands), where)
        except (OperatorError, hikari.HikariError) as error:
            log.error("the commands are not registered: %s", error)

    async def _keep_house(self) -> None:
        try:
            for second in itertools.count(1):
                while second % (10 * MINUTE) == 1 and await self.store.purge(self.views.that_end):
                    pass  # in small steps, so that no click waits behind a long one
                self.dispatch.forget_old()
                slept_at = time.monotonic()
                await asyncio.sleep(1)
                self.web.lag_s = max(time.monotonic() - slept_at - 1, 0.0)
                if await self.store.obey():
                    await self.dispatch.take_up()
                if second % 10 == 0 and self.dispatch.slots.locked():
                    log.warning("MAX_HANDLERS=%d handlers are running, all others wait", self.config.max_handlers)
        except StoreError as error:
            self.stop(error)

    async def _keep_time(self) -> None:
        """Start what is due, by the clock on the wall: a machine that slept, or a clock that was set, is no matter."""
        try:
            await self.started.wait()
            timers = {timer.key: timer.due_at for timer in await self.store.timers()}
            self._next_runs = {key: at for key, at in timers.items() if key.startswith("repeat:") and at is not None}
            wanted = {EventKey(repeat.timer): repeat for repeat in self.repeats.values()}
            for key in self._next_runs.keys() - wanted.keys():
                await self.cancel(key)
            while True:
                for key, repeat in wanted.items():
                    known = self._next_runs.get(key, math.inf)
                    if known > repeat.next_after(time.time()):  # there was none, or the clock went back
                        await self.set_repeat(repeat)
                while events := await self.store.fire(self.views.that_end):
                    for event in events:
                        self.spawn(self.dispatch.run(event))
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._due.wait(), 1)
                self._due.clear()
        except StoreError as error:
            self.stop(error)

    async def _drain(self) -> None:
        with contextlib.suppress(TimeoutError):  # hikari cannot undo half a start: let it come to its end
            await asyncio.wait_for(self.started.wait(), min(self.config.drain_s, 2))
        await self.web.stop_receiving()
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
        elif self.rest.is_alive:
            await self.rest.close()


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


def claim_name(names: dict[str, T], name: str, thing: T) -> None:
    """Note the thing under the name. Raises OperatorError when something else has it."""
    if names.setdefault(name, thing) is not thing:
        raise OperatorError(f"{name} is there twice. Rename one of the two functions.")


def load_extra(config: Config) -> Any:
    """Return what a bot of several processes is made of. Raises OperatorError when it is not installed."""
    try:
        return importlib.import_module("extras.several").Several(config)
    except ModuleNotFoundError as missing:
        what = f"STORE={config.store.partition(':')[0]}://… needs {missing.name}, which is not here"
        remedy = "With the folder extras/ beside bot.py, run: pip install -r extras/requirements.txt"
        raise OperatorError(f"{what}. {remedy}") from missing


def make_app(config: Config) -> App:
    """Return the app for the store that STORE names. Raises OperatorError."""
    return load_extra(config).app() if config.is_shared else App(config)


def open_store(config: Config) -> Store:
    """Return the store that STORE names, not yet open. Raises OperatorError."""
    bot = bot_id_of(config.token)
    if config.is_shared:
        return load_extra(config).store(bot)
    if config.store.endswith(":memory:"):
        return MemoryStore(bot, max_failed=config.max_failed)
    return SQLiteStore(config.store.removeprefix("sqlite:"), bot, max_failed=config.max_failed)


# ---- 11. Your bot ----------------------------------------------------------------------------------------------------
# Four examples in rising order: a command that answers, a counter kept in its message, a poll that many people click, a
# reminder that comes after any restart. Delete them, write your own here, and list what you wrote in `your_bot`.


@command("ping", "See whether the bot is there.")
async def ping(ctx: CommandContext) -> None:
    await ctx.respond("Pong!")


@register(name="counter", state=InMessage())
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


@command("remind", "Be reminded of something.")
async def remind(
    ctx: CommandContext,
    after: Annotated[str, "When: 10m, 2h, 1d", Range(2, 20)],
    text: Annotated[str, "Of what", Range(1, 1_900)],
) -> None:
    try:
        await ctx.later(after, reminder, ctx.channel_id, ctx.user.id, text)
    except ValueError as error:
        await ctx.respond(str(error), ephemeral=True)
    else:
        await ctx.respond(f"I will remind you in {after}.", ephemeral=True)


@handler
async def reminder(ctx: EventContext, channel: int, person: int, text: str) -> None:
    """Say it, when the time has come."""
    await ctx.send(channel, f"<@{person}> {text}")


def your_bot(app: App) -> None:
    """List what belongs to your bot."""
    app.add(ping, counter, Counter, poll, Poll, remind, reminder)


# ---- 12. Command line ------------------------------------------------------------------------------------------------
# `main` is the whole program: read the settings, build the bot, run it, and end with a sentence where there is one to
# say. A bot in a file of its own ends with `bot.main(my_bot)`.

BotFunction: TypeAlias = Callable[[App], None]


def main(bot: BotFunction, arguments: Sequence[str] | None = None) -> None:
    """Run the command line for a bot. Ends the process: 0 done, 1 something failed, 2 there is something to mend."""
    options = parse_arguments(arguments)
    try:
        if inspect.iscoroutinefunction(bot):
            raise OperatorError(
                f"{bot.__name__} must not wait. Write def {bot.__name__}(app: App) -> None, without async."
            )
        options.run(bot, options)
    except OperatorError as error:
        print(redact(str(error)), file=sys.stderr)
        sys.exit(error.exit_code)
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
        ("commands", manage_commands, "show the commands that Discord lists, or send or delete them"),
        ("trust", trust_key, "trust another key of a hook's sender than the one that is pinned"),
        ("export", export_records, "print the records as JSON lines, also while the bot runs"),
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
    listing = commands.choices["commands"]
    listing.add_argument(
        "action", nargs="?", choices=("list", "sync", "clear"), default="list", help="list, if left out"
    )
    listing.add_argument(
        "--guild", type=int, metavar="ID", help="of one server; 0: those that are everywhere (DEV_GUILD, or everywhere)"
    )
    commands.choices["export"].add_argument("name", nargs="*", metavar="NAME", help="which kinds of records (all)")
    commands.choices["backup"].add_argument("file", type=Path, metavar="FILE", help="where to; it must not exist yet")
    trusted = commands.choices["trust"]
    trusted.add_argument("name", metavar="NAME", help="the hook")
    trusted.add_argument("key", metavar="FINGERPRINT", help="as the log shows it where a key is refused, 64 digits")
    playground = commands.choices["playground"]
    playground.add_argument("script", nargs="?", default=sys.argv[0], help="the bot to run (this one)")
    playground.add_argument("--no-open", action="store_true", help="do not open the page in a browser")
    playground.add_argument("--port", type=int, default=8765, help="where the page is served, on 127.0.0.1 (8765)")
    playground.add_argument(
        "--mode", choices=("gateway", "rest"), default="gateway", help="how clicks come in (gateway)"
    )
    return parser.parse_args(arguments, argparse.Namespace(config=Path("config.env")))


def run_bot(bot: BotFunction, options: argparse.Namespace) -> None:
    """Run until stopped."""
    config = Config.load(options.config, os.environ)
    start_logging(config.log_level)
    app = make_app(config)
    bot(app)
    asyncio.run(app.run())


def check_bot(bot: BotFunction, options: argparse.Namespace) -> None:
    """Read the settings, register everything, render every view once, and say what was found."""
    config, mistakes = Config(), list[str]()
    try:
        config = Config.load(options.config, os.environ, needs_token=False)
    except OperatorError as error:
        mistakes.append(str(error))
    mistakes += defined_twice(Path(inspect.getsourcefile(bot) or __file__))
    app = make_app(config)
    bot(app)
    own = {name: cls for name, cls in app.views.classes.items() if not name.startswith("_")}
    for name, cls in own.items():
        try:
            if issubclass(cls, View):
                lay_out(cls.example(), RecordId(name, new_key()))
            else:
                cls()
        except LayoutError as error:
            mistakes.append(str(error))
        except Exception as error:  # the user's own code
            what, remedy = "view", "See View.example for values that fit it"
            if not issubclass(cls, View):
                what, remedy = "record", "Give every field a default"
            mistakes.append(f"{what} {name} cannot be rendered: {error!r}. {remedy}.")
    mistakes += [sentence for holds, sentence in what_must_fit(app) if not holds]
    if mistakes:
        raise OperatorError("\n".join(mistakes))
    others = len(app.listeners) + len(app.repeats) + len(app.hooks)
    also = f", {others} listeners, rhythms and hooks" if others else ""
    print(f"{len(app.commands)} commands, {len(own)} views and records{also}: no mistakes found.")
    for sentence in what_is_odd(app):
        print(sentence[0].upper() + sentence[1:].rstrip(".") + ".")
    if left := unlisted(app, bot):
        print(f"Marked and not listed: {', '.join(left)}. If they belong to this bot: app.add({', '.join(left)})")
    if not config.token:
        script = Path(sys.argv[0]).name
        print(
            f"There is no DISCORD_TOKEN yet: copy config.example.env to config.env, or try: python {script} playground"
        )


def defined_twice(file: Path) -> Iterator[str]:
    """Yield what is wrong where a file gives two functions or classes one name: the first is lost, whoever needs it."""
    seen = dict[str, int]()
    for node in ast.parse(file.read_text("utf-8")).body:
        name = str(getattr(node, "name", ""))  # functions and classes have one
        marks = [ast.unparse(each) for each in getattr(node, "decorator_list", ())]
        if name and "typing.overload" not in marks and (line := seen.setdefault(name, node.lineno)) != node.lineno:
            yield f"{file.name}: {name} is there twice, in line {line} and {node.lineno}. Rename yours."


def unlisted(app: App, bot: BotFunction) -> list[str]:
    """Return the names beside your_bot of what decorators marked and `app.add` was not given."""
    listed = {id(each.function) for each in (*app.commands.values(), *app.listeners.values(), *app.repeats.values())}
    listed |= {id(each.function) for each in app.hooks.values()} | {id(cls) for cls in app.views.classes.values()}
    found = list[str]()
    for name, thing in getattr(bot, "__globals__", {}).items():
        is_record = inspect.isclass(thing) and issubclass(thing, Record) and "registration" in thing.__dict__
        marks = inspect.isfunction(thing) and thing.__dict__.keys() & {"command", "listener", "repeat", "hook"}
        found += [name] if (is_record or marks) and id(thing) not in listed else []
    return found


def kept_store(options: argparse.Namespace) -> Any:
    """Return the store of the settings, not yet open. Raises OperatorError when there is no file to look into."""
    store = open_store(Config.load(options.config, os.environ))
    if isinstance(store, MemoryStore):
        raise OperatorError("STORE=:memory: keeps nothing that could be looked into. Set STORE=sqlite:bot.db, say.")
    if isinstance(store, SQLiteStore) and not Path(store.path).exists():
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
        asyncio.run(carry_order(kept_store(options), options.action, options.keys))  # some open only once
        return
    for row in rows:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(row.failed_at))
        note = ", its state is saved" if row.applied else ""
        line = f"{row.key}  {when}Z  {row.failure.type}: {row.failure.text} ({row.failure.place}{note})"
        print(printable(line))
    print(f"{len(rows)} failed events.")


def trust_key(bot: BotFunction, options: argparse.Namespace) -> None:
    """Trust another key of a hook's sender."""
    bot(app := App(Config.load(options.config, os.environ)))
    names = ", ".join(sorted(name for name, each in app.hooks.items() if each.sign == "ed25519"))
    if options.name not in names.split(", "):
        raise OperatorError(f"{options.name} has no key that is pinned. Hooks that may have: {names or 'none'}.")
    if not re.fullmatch("[0-9a-f]{64}", options.key.lower()):
        raise OperatorError(f"{options.key} is no fingerprint. The log shows it, 64 digits, where a key is refused.")
    asyncio.run(carry_order(kept_store(options), "trust", [options.name, options.key.lower()]))


async def visit(store: Store, work: Callable[[], Awaitable[T]]) -> T:
    """Do some reading beside the process that has the store."""
    await store.open(visit=True)
    try:
        return await work()
    finally:
        await store.close()


async def carry_order(store: Any, action: str, keys: Sequence[str]) -> None:
    """Change what is in the store: ourselves, or by an order to the process that has it."""
    try:
        await store.open()
        print(await store.carry_out(action, keys))
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


def manage_commands(bot: BotFunction, options: argparse.Namespace) -> None:
    """Show the commands that Discord lists, make them ours, or delete them."""
    config = Config.load(options.config, os.environ)
    app = App(config)
    bot(app)
    guild = config.dev_guild if options.guild is None else options.guild or None
    start_logging("WARNING")
    try:
        lines = asyncio.run(with_rest(config, functools.partial(change_commands, app, options.action, guild)))
    except hikari.UnauthorizedError as error:
        raise OperatorError(REFUSED[4004]) from error
    except (hikari.HikariError, OSError) as error:
        raise OutageError(f"Discord cannot be reached at {config.api}: {error}. Look at the connection.") from error
    where = f"in server {guild}" if guild else "everywhere"
    print("\n".join([*lines, f"{len(lines)} commands {where}."]))


async def with_rest(config: Config, work: Callable[[REST], Awaitable[T]]) -> T:
    """Do something at Discord without being connected to its gateway."""
    rest = hikari.RESTApp(url=config.api, max_retries=1)  # somebody waits for it
    await rest.start()
    try:
        async with rest.acquire(config.token, hikari.TokenType.BOT) as client:
            return await work(client)
    finally:
        await rest.close()


async def change_commands(app: App, action: str, guild: int | None, rest: REST) -> list[str]:
    """Do what was asked and return the commands that Discord lists then, a line each."""
    application = (await rest.fetch_application()).id
    if action != "list":
        ours = list(app.commands.values()) if action == "sync" else []
        await register_commands(rest, application, ours, guild)
    with refusals([], guild):
        there = await rest.fetch_application_commands(application, hikari.UNDEFINED if guild is None else guild)
    lines = list[str]()
    for each in there:
        if isinstance(each, hikari.SlashCommand):
            lines += described(f"/{each.name}", each.description, each.options or ())
        else:
            lines += described(each.name, f"(in the menu of a {hikari.CommandType(each.type).name.lower()})", ())
    return lines


def described(name: str, about: str, options: Sequence[hikari.CommandOption]) -> Iterator[str]:
    """Yield a line for a command, or one for each in a group."""
    parts = [each for each in options if each.type in GROUPED]
    for each in parts:
        yield from described(f"{name} {each.name}", each.description, each.options or ())
    if not parts:
        yield printable(f"{name}  {about}")


def export_records(_: BotFunction, options: argparse.Namespace) -> None:
    """Print records as JSON lines: name, key, version of the class, state."""
    store = kept_store(options)
    asyncio.run(visit(store, functools.partial(print_records, store, options.name)))


async def print_records(store: Store, names: Sequence[str]) -> None:
    """Print the records of these names, or all."""
    for name in names or await store.names():
        query = Query(name)
        while found := await store.find(query):
            for saved in found:
                line = {"name": name, "key": saved.id.key, "version": saved.model, "state": msgspec.Raw(saved.data)}
                print(write_json(line).decode())
            query = query._replace(after=found[-1].id.key)


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
    given = [options.script, "--port", str(options.port), "--mode", options.mode]
    sys.exit(start([*given, *(["--no-open"] if options.no_open else [])]))


if __name__ == "__main__":
    main(your_bot)
