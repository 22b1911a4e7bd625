"""A counter that kills itself at the point named in POINT, once, when the file `armed` is beside the database."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import hikari.impl

import bot
from bot import App, Button, CommandContext, ComponentContext, Layout, Row, SQLiteStore, View

POINT = os.environ["POINT"]
ARMED = Path(os.environ["STORE"].removeprefix("sqlite:")).with_name("armed")


def reach(point: str) -> None:
    """Die here when it is the point and nobody died yet."""
    if point == POINT and ARMED.exists():
        ARMED.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


@bot.register(name="counter")
class Counter(View):
    people: list[str] = bot.field(default_factory=list[str])

    def render(self) -> Layout:
        return Row(Button(self.add, label=f"{len(self.people)}"))

    @bot.handler
    async def add(self, ctx: ComponentContext) -> None:
        self.people.append(ctx.user.username)
        reach("in the handler")
        await ctx.rerender()
        reach("after the save")


@bot.command("post", "Post a counter.")
async def post(ctx: CommandContext) -> None:
    await ctx.respond(Counter())
    reach("after a command's answer")


# The points inside bot.py: its own methods and hikari's, wrapped.


def accept(self: SQLiteStore, event: Any, cursor: Any, original: Any = SQLiteStore.accept) -> asyncio.Future[int]:
    accepted = original(self, event, cursor)
    if event:
        accepted.add_done_callback(lambda _: reach("after accept"))
    return accepted


def around(original: Callable[..., Awaitable[Any]], before: str, after: str) -> Callable[..., Awaitable[Any]]:
    async def wrapped(*args: Any, **kwargs: Any) -> Any:
        reach(before)
        result = await original(*args, **kwargs)
        reach(after)
        return result

    return wrapped


def note_shown(self: SQLiteStore, *args: Any, original: Any = SQLiteStore.note_shown) -> None:
    reach("after the edit")
    original(self, *args)
    asyncio.get_running_loop().create_task(self.flush()).add_done_callback(lambda _: reach("after it is noted"))


def wrap() -> None:
    store: Any = SQLiteStore
    rest: Any = hikari.impl.RESTClientImpl
    store.accept, store.note_shown = accept, note_shown
    store.commit = around(store.commit, "after the handler", "after the commit")
    rest.create_interaction_response = around(rest.create_interaction_response, "before the edit", "after the request")


def my_bot(app: App) -> None:
    app.add(post, Counter)
    wrap()


bot.main(my_bot)
