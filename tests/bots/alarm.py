"""Sets timers and notes what has rung, each hour too with BEAT; kills itself once where the file `armed` says."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import bot

ARMED = Path(os.environ["STORE"].removeprefix("sqlite:")).with_name("armed")


def reach(point: str) -> None:
    if ARMED.exists() and ARMED.read_text("utf-8") == point:
        ARMED.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


@bot.register(name="rung")
class Rung(bot.Record):
    texts: list[str] = bot.field(default_factory=list[str])


@bot.command("set", "Set a timer.")
async def set_timer(ctx: bot.CommandContext, text: str) -> None:
    await ctx.later("1h", ring, text)
    await ctx.respond("It is set.")


@bot.handler
async def ring(ctx: bot.EventContext, text: str) -> None:
    (await ctx.record(Rung)).texts.append(text)


@bot.every("1h")
async def beat(ctx: bot.EventContext) -> None:
    await ring(ctx, "beat")


@bot.register(name="brief", state=bot.InStore(ttl=3_600))
class Brief(bot.View):
    def render(self) -> bot.Layout:
        return bot.TextDisplay("It is on.")

    async def on_expire(self, ctx: bot.EventContext) -> None:
        await ring(ctx, "over")
        await ctx.edit(bot.TextDisplay("It is over."))


@bot.command("brief", "Post something that ends.")
async def brief(ctx: bot.CommandContext) -> None:
    await ctx.respond(Brief())


async def commit(self: Any, records: Any, done: Any, timers: Any = (), original: Any = bot.SQLiteStore.commit) -> None:
    what = "timer" if records and done else "command" if timers and done else ""
    reach(f"before the {what}'s commit")
    await original(self, records, done, timers)
    reach(f"after the {what}'s commit")


async def fire(self: Any, names: Any, original: Any = bot.SQLiteStore.fire) -> Any:
    reach("before it fires")
    events = await original(self, names)
    if events:
        reach("after it fired")
    return events


setattr(bot.SQLiteStore, "commit", commit)  # noqa: B010  # no other way for a type checker
setattr(bot.SQLiteStore, "fire", fire)  # noqa: B010
bot.main(lambda app: app.add(set_timer, ring, Rung, brief, Brief, *([beat] if "BEAT" in os.environ else [])))
