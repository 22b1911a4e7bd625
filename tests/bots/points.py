"""A counter that gives a point for each click, and kills itself once where the file `armed` says."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import hikari.impl

import bot

ARMED = Path(os.environ["STORE"].removeprefix("sqlite:")).with_name("armed")


def reach(point: str) -> None:
    if ARMED.exists() and ARMED.read_text("utf-8") == point:
        ARMED.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


@bot.register(name="score")
class Score(bot.Record):
    points: int = 0


@bot.register(name="counter")
class Counter(bot.View):
    count: int = 0

    def render(self) -> bot.Layout:
        return bot.Row(bot.Button(self.add, label=f"{self.count}"))

    @bot.handler
    async def add(self, ctx: bot.ComponentContext) -> None:
        score = await ctx.record(Score, 5, ctx.user.id)
        score.points += 1
        self.count += 1
        await ctx.rerender()


@bot.command("post", "Post a counter.")
async def post(ctx: bot.CommandContext) -> None:
    await ctx.respond(Counter())


async def commit(self: Any, *given: Any, original: Any = bot.SQLiteStore.commit, **more: Any) -> None:
    reach("before the commit")
    await original(self, *given, **more)
    reach("after the commit")


async def request(self: Any, route: Any, original: Any = hikari.impl.RESTClientImpl._request, **given: Any) -> Any:
    if answers := route.route.path_template.endswith("/callback"):
        reach("before the answer")
    answer = await original(self, route, **given)
    if answers:
        reach("after the answer")
    return answer


async def give(self: Any, answer: bytes, original: Any = bot.Delivery.give) -> bool:
    """Be the way of an answer over HTTP."""
    reach("before the answer")
    is_written = await original(self, answer)
    reach("after the answer")
    return is_written


setattr(bot.Delivery, "give", give)  # noqa: B010
setattr(hikari.impl.RESTClientImpl, "_request", request)  # noqa: B010  # no other way for a type checker
setattr(bot.SQLiteStore, "commit", commit)  # noqa: B010
bot.main(lambda app: app.add(post, Counter, Score))
