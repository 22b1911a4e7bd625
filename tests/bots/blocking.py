"""Commands that hold the event loop until the file `go-on` is beside the database, and some that do not."""

from __future__ import annotations

import asyncio
import os
import time
import urllib.request
from pathlib import Path

import bot
from bot import App, CommandContext

GO_ON = Path(os.environ["STORE"].removeprefix("sqlite:")).with_name("go-on")


def sleep_a_little() -> None:
    time.sleep(0.01)  # it blocks


@bot.command("sleep", "Sleep.")
async def sleep(ctx: CommandContext) -> None:
    while not GO_ON.exists():
        sleep_a_little()
    await ctx.respond("slept")


@bot.command("spin", "Compute.")
async def spin(ctx: CommandContext) -> None:
    while not os.path.exists(GO_ON):  # noqa: PTH110  # it blocks
        pass  # it blocks
    await ctx.respond("spun")


@bot.command("fetch", "Ask another service.")
async def fetch(ctx: CommandContext, url: str) -> None:
    with urllib.request.urlopen(url) as answer:  # it blocks
        await ctx.respond(answer.read().decode())


@bot.command("work", "Compute, and let others have their turn.")
async def work(ctx: CommandContext) -> None:
    while not GO_ON.exists():
        sum(range(10_000))
        await asyncio.sleep(0)
    await ctx.respond("worked")


@bot.command("wait", "Wait without end.")
async def wait(ctx: CommandContext) -> None:
    await ctx.respond("waiting")
    await asyncio.Event().wait()


def my_bot(app: App) -> None:
    app.add(sleep, spin, fetch, work, wait)


bot.main(my_bot)
