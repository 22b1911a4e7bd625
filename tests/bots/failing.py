"""A command and a button that fail while the file `broken` is beside the database."""

from __future__ import annotations

import os
from pathlib import Path

import bot
from bot import App, Button, CommandContext, ComponentContext, Layout, Row, View

BROKEN = Path(os.environ["STORE"].removeprefix("sqlite:")).with_name("broken")


def think(text: str) -> None:
    if BROKEN.exists():
        raise RuntimeError(text)


@bot.register(name="counter")
class Counter(View):
    count: int = 0

    def render(self) -> Layout:
        return Row(Button(self.add, label=f"{self.count}"))

    @bot.handler
    async def add(self, ctx: ComponentContext) -> None:
        think("this button")
        self.count += 1
        await ctx.rerender()


@bot.command("post", "Post a counter.")
async def post(ctx: CommandContext) -> None:
    await ctx.respond(Counter())


@bot.command("think", "Think about it.")
async def think_about(ctx: CommandContext, text: str) -> None:
    think(text)
    await ctx.respond(f"thought about {text}")


def my_bot(app: App) -> None:
    app.add(post, Counter, think_about)


bot.main(my_bot)
