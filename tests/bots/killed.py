"""A counter that kills itself once, at the point that the file `armed` beside the database names.

The points: before and after each transaction is committed, named after what is in it; before and after each request to
Discord, named after its route, and each first answer over HTTP, named as its callback would be; and one in a handler.
"""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import hikari.impl

import bot
from bot import App, Button, CommandContext, ComponentContext, Layout, Row, SQLiteStore, View

ARMED = Path(os.environ["STORE"].removeprefix("sqlite:")).with_name("armed")
HELD = ARMED.with_name("held")


def reach(point: str) -> None:
    """Die here when it is the point and nobody died at it yet."""
    if ARMED.exists() and ARMED.read_text("utf-8") == point:
        ARMED.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


@bot.register(name="points")
class Points(bot.Record):
    count: int = 0


@bot.register(name="counter")
class Counter(View):
    people: list[str] = bot.field(default_factory=list[str])

    def render(self) -> Layout:
        return Row(
            Button(self.add, label=f"{len(self.people)}"),
            Button(self.add_late, label="late"),
            Button(self.add_and_tell, label="tell"),
            Button(self.add_when_let_go, label="hold"),
            Button(self.fail, label="fail"),
        )

    @bot.handler
    async def add(self, ctx: ComponentContext) -> None:
        self.people.append(ctx.user.username)
        (await ctx.record(Points)).count += 1
        reach("in the handler")
        await ctx.rerender()

    @bot.handler
    async def add_late(self, ctx: ComponentContext) -> None:
        await ctx.defer()
        await self.add(ctx)

    @bot.handler
    async def add_and_tell(self, ctx: ComponentContext) -> None:
        await self.add(ctx)
        await ctx.respond("You are counted.", ephemeral=True)

    @bot.handler
    async def add_when_let_go(self, ctx: ComponentContext) -> None:
        while HELD.exists():
            await asyncio.sleep(0.01)
        await self.add(ctx)

    @bot.handler
    async def fail(self, ctx: ComponentContext) -> None:
        raise ValueError("as it was asked to")


@bot.register(name="carried", state=bot.InMessage())
class Carried(View):
    """A number that is kept in its message."""

    count: int = 0

    def render(self) -> Layout:
        return Row(Button(self.add, label=f"{self.count}"))

    @bot.handler
    async def add(self, ctx: ComponentContext) -> None:
        self.count += 1
        reach("in the handler")
        await ctx.rerender()


@bot.command("carry", "Post a number that is kept in its message.")
async def carry(ctx: CommandContext) -> None:
    await ctx.respond(Carried())


@bot.command("post", "Post a counter.")
async def post(ctx: CommandContext) -> None:
    await ctx.respond(Counter())


@bot.command("later", "Post a counter after a while.")
async def later(ctx: CommandContext) -> None:
    await ctx.defer()
    await ctx.respond(Counter())


@bot.command("secret", "Tell one person something after a while.")
async def secret(ctx: CommandContext) -> None:
    await ctx.defer()
    await ctx.respond("Nobody else sees this.", ephemeral=True)


@bot.command("shaky", "Post a counter, but only when it is tried again.")
async def shaky(ctx: CommandContext) -> None:
    if not ctx.retried:
        raise ValueError("not at the first time")
    await ctx.respond(Counter())


@bot.command("again", "Try again what failed.")
async def again(ctx: CommandContext) -> None:
    await ctx.app.retry_failed()
    await ctx.respond("They run again.", ephemeral=True)


@bot.command("discard", "Forget what failed.")
async def discard(ctx: CommandContext) -> None:
    await ctx.app.discard_failed()
    await ctx.respond("They are gone.", ephemeral=True)


# The points inside bot.py: its own methods and hikari's, wrapped.

COMMITS = {
    "begin": "a run",
    "fail": "a failure",
    "forget": "a gap",
    "purge": "a purge",
    "release": "a release",
    "flush": "a flush",
    "retry_failed": "a retry",
    "discard_failed": "a discard",
    "move_cursor": "a cursor",
    "note_shown": "what is shown",
    "note_answer": "an answer",
    "pin": "a key",
}


def content_of(caller: FrameType) -> str:
    """Return what the method of the store that is about to write writes."""
    method, given = caller.f_code.co_name, caller.f_locals
    if method == "accept":
        return "an event" if given["event"] else "a session"
    if method == "commit":
        records = given["records"]
        views = [record for record in records if record.id.name != "points"]
        return "a done mark" if not views else "a state" if views[0].version else "a new record"
    return COMMITS[method]


def named(operation: Any, caller: FrameType) -> Any:
    """Return the operation with its name on it."""
    known: Any = functools.partial(operation)
    known.name = content_of(caller)
    return known


def write(self: SQLiteStore, operation: Any, original: Any = SQLiteStore._write) -> Any:
    return original(self, named(operation, sys._getframe(1)))


def write_later(
    self: SQLiteStore, what: Any, order: int, operation: Any, original: Any = SQLiteStore._write_later
) -> None:
    original(self, what, order, named(operation, sys._getframe(1)))


def run_batch(db: sqlite3.Connection, operations: Sequence[Any], original: Any = bot.run_batch) -> list[Any]:
    names = {operation.name for operation in operations}

    def reach_all(_: sqlite3.Connection) -> None:
        for name in names:
            reach(f"before {name}")

    results = original(db, [*operations, reach_all])  # all is written, and only COMMIT is missing
    for name in names:
        reach(f"after {name}")
    return results[:-1]


async def request(self: Any, route: Any, original: Any = hikari.impl.RESTClientImpl._request, **kwargs: Any) -> Any:
    name = f"{route.method} {route.route.path_template}"
    if name.endswith("/callback"):
        name = f"callback {int(kwargs['json']['type'])}"
    reach(f"before {name}")
    answer = await original(self, route, **kwargs)
    reach(f"after {name}")
    return answer


async def give(self: Any, answer: bytes, original: Any = bot.Delivery.give) -> bool:
    """Name the points of a first answer over HTTP as those of a callback."""
    name = f"callback {bot.read_json(answer)['type']}"
    reach(f"before {name}")
    is_written = await original(self, answer)
    reach(f"after {name}")
    return is_written


def wrap() -> None:
    store, rest, module, delivery = (SQLiteStore, hikari.impl.RESTClientImpl, bot, bot.Delivery)
    for owner, name, wrapper in (
        (store, "_write", write),
        (store, "_write_later", write_later),
        (module, "run_batch", run_batch),
        (rest, "_request", request),
        (delivery, "give", give),
    ):
        setattr(owner, name, wrapper)


def my_bot(app: App) -> None:
    app.add(post, later, secret, shaky, again, discard, Counter, Points, carry, Carried)
    wrap()


bot.main(my_bot)
