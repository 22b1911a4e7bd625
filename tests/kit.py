"""What the tests of bot.py share: a view to click, a bot in this process or in one of its own, and waiting."""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

import bot
from playground import Discord
from playground.faults import DeliveryFault, Fault
from playground.people import Person, Used
from playground.process import BotProcess, Mode

ROOT = Path(__file__).parent.parent
Json = dict[str, Any]


class Now:
    """What holds for the test that runs: how its bots get their interactions."""

    mode: Mode = "gateway"


async def until(is_so: Callable[[], Any], timeout: float = 20) -> None:
    """Wait for what nobody announces. A coroutine function may be given as well."""
    async with asyncio.timeout(timeout):
        while not (await answer if isinstance(answer := is_so(), Awaitable) else answer):
            await asyncio.sleep(0.01)


# A view to click, and a bot in this process with it


class Counting(bot.View):
    """A number on a button that calls `press`, which `view` puts in."""

    count: int = 0

    def render(self) -> bot.Layout:
        return bot.Row(bot.Button(self.press, label=f"{self.count}"))

    @bot.handler
    async def press(self, ctx: bot.ComponentContext) -> None:
        self.count += 1
        await ctx.rerender()


Press = Callable[[Any, bot.ComponentContext], Awaitable[None]]


def view(press: Press = Counting.press, *, members: Json | None = None, **registration: Any) -> type[Counting]:
    """Return a registered view whose button runs `press`. `members` are more methods of the class."""
    marked: Any = press if bot.is_marked(press, "handler") else bot.handler(press)
    marked.__name__ = "press"
    body = {"press": marked, "__module__": Counting.__module__, **(members or {})}
    make: Any = type(Counting)  # msgspec's metaclass
    cls: type[Counting] = make("Counter", (Counting,), body)
    return bot.register(**{"name": "counter", **registration})(cls)


def variant(base: type[bot.View], members: Json | None = None, **registration: Any) -> Any:
    """Return a registered view like another one. `members` are more methods of the class."""
    make: Any = type(base)  # msgspec's metaclass
    return bot.register(**registration)(make(base.__name__, (base,), members or {}))


@contextlib.asynccontextmanager
async def running(
    discord: Discord,
    *things: Any,
    store: bot.Store | None = None,
    intents: Any = None,
    make: type[bot.App] = bot.App,
    **settings: Any,
) -> AsyncIterator[bot.App]:
    """Run a bot in this process, connected and with its commands registered, and stop it at the end."""
    app = make(bot.Config(**{**own_settings(discord), **settings}), store)
    app.add(*things)
    app.intents = app.intents if intents is None else intents
    asked = len(commands_asked_for(discord))
    task = asyncio.create_task(app.run())
    try:
        await until(lambda: len(commands_asked_for(discord)) > asked or task.done())
        if not task.done():
            await take_interactions(discord, app)
            yield app
    finally:
        if not task.done():
            app.stop()
        await task


def own_settings(discord: Discord) -> Json:
    """Return the settings of a bot in this process, in the mode of the test."""
    over_http = {"mode": "rest", "web_port": 0, "public_key": discord.public_key} if Now.mode == "rest" else {}
    return {"token": discord.token, "api": discord.api, "store": ":memory:", **over_http}


async def take_interactions(discord: Discord, app: bot.App) -> None:
    """Have the running bot's interactions sent to it, if it believes this Discord. The gateway sends them anyway."""
    own = app.config.mode == "rest" and app.config.public_key == discord.public_key
    if own and app.config.web_port is not None:
        await discord.set_endpoint(f"{app.web.address}/interactions")


def commands_asked_for(discord: Discord) -> list[Any]:
    """Return the requests for the list of commands: a bot asks once, when it is connected."""
    return [each for each in discord.journal.of("rest") if each.data["route"].endswith("/commands")]


@dataclass(frozen=True)
class Play:
    """A running bot and the message of a view that alice posted with /post."""

    discord: Discord
    app: bot.App
    alice: Person
    message: Json

    @property
    def now(self) -> Json:
        """The message as it is now."""
        kept = self.discord.world.find(self.message["id"])
        assert kept
        return kept.message

    @property
    def shown(self) -> int:
        """The number on the message's button."""
        return shown(self.discord, self.message)

    async def count(self, field: str = "count") -> Any:
        """Return a field of the view's state as the store has it."""
        saved = await self.app.store.load(record_of(self.message))
        return msgspec.json.decode(saved.data)[field] if saved else None

    def beside(self, message: Json | None) -> Play:
        """Return the same bot with another message in view."""
        assert message
        return replace(self, message=message)

    async def at_rest(self) -> None:
        """Wait until every accepted event is finished and every message shows its record."""
        await at_rest(self.app.store)

    async def failed(self) -> list[bot.FailedEvent]:
        """Return the failed list when every accepted event is finished."""
        await until(self._is_idle)
        return await self.app.store.failed()

    async def _is_idle(self) -> bool:
        return not await self.app.store.pending()

    def click(self, name: str = "alice") -> Used:
        """Click the view's button as that person, whatever it reads now."""
        return self.discord.user(name).click(custom_id=button_id(self.now), message=self.message["id"])


@contextlib.asynccontextmanager
async def playing(
    press: Press | type[bot.View] = Counting.press, *more: Any, store: bot.Store | None = None, **settings: Any
) -> AsyncIterator[Play]:
    """Run a bot whose one view is given, or has the handler given, and post it as alice."""
    cls = press if isinstance(press, type) else view(press)
    async with Discord() as discord, running(discord, cls, posting(cls), *more, store=store, **settings) as app:
        alice = discord.user("alice")
        used = await alice.command("post")
        assert used.message, used
        yield Play(discord, app, alice, used.message)


def posting(cls: type[bot.View], name: str = "post") -> Any:
    """Return the command /post, or one of another name, which posts a new view."""

    @bot.command(name, "Post it.")
    async def post(ctx: bot.CommandContext) -> None:
        await ctx.respond(cls())

    return post


async def at_rest(store: bot.Store) -> None:
    """Wait until every accepted event is finished and every message shows its record."""

    async def is_at_rest() -> bool:
        await store.flush()
        return not await store.pending() and not await store.behind()

    await until(is_at_rest)


def check_says(*things: Any) -> str:
    """Return what `python bot.py check` says of a bot with these; "" when it finds no mistake."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            bot.main(lambda app: app.add(*things), ["check", "--config", os.devnull])
        except SystemExit as ended:
            assert ended.code == 2
    return said.getvalue().removesuffix("\n")


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what was logged above INFO, without what a busy machine causes."""
    messages = [record.getMessage() for record in caplog.records if record.levelno > logging.INFO]
    return [message for message in messages if not message.startswith("everything waits for")]


def moving(discord: Discord, file: str | Path = ":memory:") -> bot.SQLiteStore:
    """Return a store whose clock goes with that of this process (see Clock.here)."""
    now = lambda: time.time()  # noqa: E731, PLW0108  # whatever that is by then
    return bot.SQLiteStore(str(file), bot.bot_id_of(discord.token), now=now)


# Interactions that no person makes, and answers that Discord does not take


async def deliver(discord: Discord, payload: Any) -> int | None:
    """Send the bot an interaction with any payload, malformed ones included: a gateway event, or a request.

    Over HTTP it is signed as Discord does, and the status of its answer is returned; nobody gets what the answer says.
    """
    if Now.mode == "gateway":
        discord.send_raw("INTERACTION_CREATE", payload)
        return None
    assert discord.endpoint.url
    request = discord.endpoint._sign(msgspec.json.encode(payload), DeliveryFault())
    async with (
        aiohttp.ClientSession() as session,
        session.post(discord.endpoint.url, data=io.BytesIO(request.body), headers=request.headers) as answer,
    ):
        await answer.read()
        return answer.status


def lose_answers(
    discord: Discord, *, code: int | None = None, status: int | None = None, times: int | None = 1
) -> Fault | DeliveryFault:
    """Let Discord not take the next first answers: callbacks are refused with that, responses are not read."""
    if Now.mode == "gateway":
        return discord.faults.add(path="/interactions/*", code=code, status=status, times=times)
    return discord.delivery_faults.add(drop="answered", times=times)


def delay_answer(discord: Discord, seconds: float) -> Fault | DeliveryFault:
    """Let the next first answer be a while on its way to Discord."""
    if Now.mode == "gateway":
        return discord.faults.add(path="/interactions/*", delay_s=seconds)
    return discord.delivery_faults.add(delay_s=seconds)


def path_of_answers() -> str:
    """Return the path of the requests that tell the bot whether its first answers arrived: callbacks, or looks."""
    return "/interactions/*" if Now.mode == "gateway" else "/webhooks/*"


def be_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a bot over HTTP wait less: for an answer to what has none, and for one to arrive that does not."""
    monkeypatch.setattr(bot, "FIRST_ANSWER_WITHIN_S", 0.3)
    monkeypatch.setattr(bot, "ARRIVES_AFTER_S", (0, 0.1))


# What is on a message


def button_id(message: Json) -> str:
    """Return the custom id of the first button or select in it."""
    return next(each["custom_id"] for part in message["components"] for each in bot.walk(part) if "custom_id" in each)


def record_of(message: Json) -> bot.RecordId:
    """Return the record that the message shows."""
    found = bot.decode_id(button_id(message))
    assert found
    return found[0]


def shown(discord: Discord, message: Json) -> int:
    """Return the number on the first button of the message as it is now."""
    kept = discord.world.find(message["id"])
    assert kept
    labels = [each.get("label") for part in kept.message["components"] for each in bot.walk(part)]
    return int(next(label for label in labels if label))


class Watch:
    """Notes what a message read after each of its changes, and how many changes of it were under way at once."""

    def __init__(self, discord: Discord, message: Json) -> None:
        self.counts = [shown(discord, message)]
        self._discord, self._message = discord, message
        discord.world.listeners.append(self._on_change)

    def _on_change(self, what: str, subject: Any) -> None:
        if what == "edit" and subject.id == self._message["id"]:
            self.counts.append(shown(self._discord, self._message))

    @property
    def went_back(self) -> bool:
        return self.counts != sorted(self.counts)


# A bot in a process of its own


async def start(discord: Discord, script: str | Path, store: Path, **env: Any) -> BotProcess:
    """Start a file, or tests/bots/<script>.py, as a process with that database, and wait until it is connected."""
    settings = {"PYTHONPATH": str(ROOT), "STORE": f"sqlite:{store}", **{key: str(value) for key, value in env.items()}}
    file = script if isinstance(script, Path) else ROOT / "tests" / "bots" / f"{script}.py"
    process = await discord.start_bot(file, env=settings, mode=Now.mode)
    await process.ready()
    return process


async def die_at_each(process: BotProcess, armed: Path, *points: str) -> None:
    """Start a bot that kills itself where the file says, once for each of these points."""
    for point in points:
        armed.write_text(point, "utf-8")
        await process.start()
        await until(lambda: not armed.exists())
        assert await process.wait() == -signal.SIGKILL


def rows(store: Path, sql: str, *args: Any) -> list[Any]:
    """Return what a bot's database holds, while the bot runs or when it does not; or change it."""
    with contextlib.closing(sqlite3.connect(store, isolation_level=None)) as db:
        return db.execute(sql, args).fetchall()


def state_of(store: Path, message: Json) -> Json:
    """Return the state that a bot's database has for the message."""
    [(data,)] = rows(store, "SELECT data FROM record WHERE name=? AND key=?", *record_of(message))
    return msgspec.json.decode(data)


# A small disk: see the fixture small_disk


def mount(folder: Path, *options: str) -> int:
    """Mount a file system (a type and its options, or options that change the one that is there); 0 when it worked."""
    *kind, size = options
    return subprocess.run(["mount", *kind, "-o", size, "none", folder], capture_output=True, check=False).returncode


def grow(disk: Path) -> None:
    """Make room on the small disk."""
    assert mount(disk, "remount,size=20m") == 0
