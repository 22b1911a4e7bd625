"""A counter that mallory's click takes down, once everybody else's click is accepted as well."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import bot
from bot import App, Button, CommandContext, ComponentContext, Layout, Row, View

CROWD = 8
WAITED = Path(os.environ["STORE"].removeprefix("sqlite:")).with_name("everybody-was-there")


@bot.register(name="counter")
class Counter(View):
    people: list[str] = bot.field(default_factory=list[str])

    def render(self) -> Layout:
        return Row(Button(self.add, label=f"{len(self.people)}"))

    @bot.handler
    async def add(self, ctx: ComponentContext) -> None:
        if ctx.user.username == "mallory":
            while not WAITED.exists() and len(await ctx.app.store.pending()) < CROWD:
                await asyncio.sleep(0.01)
            WAITED.touch()
            os._exit(7)
        self.people.append(ctx.user.username)
        await ctx.rerender()


@bot.command("post", "Post a counter.")
async def post(ctx: CommandContext) -> None:
    await ctx.respond(Counter())


def my_bot(app: App) -> None:
    app.add(post, Counter)


bot.main(my_bot)
