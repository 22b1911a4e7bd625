"""Counters that several processes of the bot have. A click takes PAUSE_S; DIES=commit: it is the last one."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import bot

PAUSE_S = float(os.environ.get("PAUSE_S", "0"))


@bot.register(name="total")
class Total(bot.Record):
    clicks: int = 0
    ticks: list[int] = bot.field(default_factory=list[int])


class Counting(bot.View):
    count: int = 0

    def render(self) -> bot.Layout:
        return bot.Row(bot.Button(self.add, label=f"{self.count}"))

    @bot.handler
    async def add(self, ctx: bot.ComponentContext) -> None:
        count = self.count
        await asyncio.sleep(PAUSE_S)
        self.count = count + 1
        await ctx.rerender()


@bot.register(name="poll")
class Poll(Counting):
    pass


@bot.register(name="kept", state=bot.InMessage())
class Kept(Counting):
    pass


@bot.command("poll", "Post a counter.")
async def poll(ctx: bot.CommandContext) -> None:
    await ctx.respond(Poll())


@bot.command("kept", "Post a counter that is kept in its message.")
async def kept(ctx: bot.CommandContext) -> None:
    await ctx.respond(Kept())


@bot.command("who", "Say which process answers.")
async def who(ctx: bot.CommandContext) -> None:
    await ctx.respond(f"{os.getpid()}")


@bot.command("break", "Fail.")
async def break_(ctx: bot.CommandContext) -> None:
    raise ValueError("as asked")


@bot.hook("note")
async def note(ctx: bot.EventContext, body: dict[str, int]) -> None:
    total = await ctx.record(Total, "note")
    total.clicks += body["by"]


@bot.hook("signed", sign="ed25519")
async def signed(ctx: bot.EventContext, body: dict[str, int]) -> None:
    pass


@bot.every(1)
async def tick(ctx: bot.EventContext) -> None:
    total = await ctx.record(Total, "tick")
    total.ticks.append(os.getpid())


async def commit_and_die(self: Any, *given: Any, original: Any = bot.App.commit, **more: Any) -> None:
    await original(self, *given, **more)
    if given[0]:
        os.kill(os.getpid(), signal.SIGKILL)


def my_bot(app: bot.App) -> None:
    app.add(Total, Poll, Kept, poll, kept, who, break_, note, signed)
    if "TICKS" in os.environ:
        app.add(tick)
    if os.environ.get("DIES") == "commit":
        made: Any = type(app)
        original = made.commit
        made.commit = lambda self, *given: commit_and_die(self, *given, original=original)


bot.main(my_bot)
