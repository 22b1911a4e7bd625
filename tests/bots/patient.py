"""A list of people; each one's handler waits for a file of that person's name beside the database."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import bot
from bot import App, Button, CommandContext, ComponentContext, Layout, Row, View

FOLDER = Path(os.environ["STORE"].removeprefix("sqlite:")).parent


@bot.register(name="guests")
class Guests(View):
    people: list[str] = bot.field(default_factory=list[str])

    def render(self) -> Layout:
        return Row(Button(self.enter, label=f"{len(self.people)}"))

    @bot.handler
    async def enter(self, ctx: ComponentContext) -> None:
        print(f"{ctx.user.username} begins")
        while not (FOLDER / ctx.user.username).exists():
            await asyncio.sleep(0.01)
        self.people.append(ctx.user.username)
        await ctx.rerender()


@bot.command("post", "Post a list.")
async def post(ctx: CommandContext) -> None:
    await ctx.respond(Guests())


def my_bot(app: App) -> None:
    app.add(post, Guests)


bot.main(my_bot)
