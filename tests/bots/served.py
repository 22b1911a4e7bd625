"""A counter, answers of several kinds, and a hook. It kills itself once where the file `armed` says.

That lies beside the database. The points: `handler`, before a click counts; `answer`, when that is saved and nothing
was sent. `/wait` and the hook wait as long as there is a file `held`.
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import hikari

import bot
from bot import App, Button, CommandContext, ComponentContext, EventContext, Layout, Row, View

ARMED = Path(os.environ["STORE"].removeprefix("sqlite:")).with_name("armed")
HELD = ARMED.with_name("held")


def reach(point: str) -> None:
    """Die here when it is the point and nobody died at it yet."""
    if ARMED.exists() and ARMED.read_text("utf-8") == point:
        ARMED.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


@bot.register(name="counter")
class Counter(View):
    people: list[str] = bot.field(default_factory=list[str])

    def render(self) -> Layout:
        return Row(Button(self.add, label=f"{len(self.people)}"))

    @bot.handler
    async def add(self, ctx: ComponentContext) -> None:
        reach("handler")
        self.people.append(ctx.user.username)
        await ctx.rerender()


@bot.command("post", "Post a counter.")
async def post(ctx: CommandContext) -> None:
    await ctx.respond(Counter())


class Naming(bot.Form, title="Name it", name="naming"):
    name: str = bot.TextInput("Name")

    async def submit(self, ctx: ComponentContext) -> None: ...


@bot.command("text", "Answer with a text.")
async def text(ctx: CommandContext) -> None:
    print("ran", flush=True)
    await ctx.respond("once")


@bot.command("form", "Answer with a form.")
async def form(ctx: CommandContext) -> None:
    print("ran", flush=True)
    await ctx.open(Naming())


@bot.command("files", "Answer with files.")
async def files(ctx: CommandContext) -> None:
    print("ran", flush=True)
    await ctx.respond([bot.File(hikari.Bytes(bytes(range(256)) * 40, name)) for name in ("a.bin", "übung.bin")])


@bot.command("wait", "Answer when it is let go.", auto_defer=bot.AutoDefer.OFF)
async def wait(ctx: CommandContext) -> None:
    while HELD.exists():
        await asyncio.sleep(0.01)
    await ctx.respond("waited")


@bot.register(name="deploys")
class Deploys(bot.Record):
    versions: list[int] = bot.field(default_factory=list[int])


@bot.hook("deploy")
async def deploy(ctx: EventContext, body: dict[str, int]) -> None:
    print("runs", body["version"], flush=True)
    while HELD.exists():
        await asyncio.sleep(0.01)
    (await ctx.record(Deploys)).versions.append(body["version"])


async def answer(self: bot.Web, key: bot.EventKey, kind: Any, body: Any, original: Any = bot.Web.answer) -> bool:
    reach("answer")
    return await original(self, key, kind, body)


def my_bot(app: App) -> None:
    app.add(post, text, form, files, wait, deploy, Counter, Naming, Deploys)
    setattr(bot.Web, "answer", answer)  # noqa: B010


bot.main(my_bot)
