"""A number on a button, and who clicked it in which order."""

from __future__ import annotations

import bot
from bot import App, Button, CommandContext, ComponentContext, Layout, Row, View


@bot.register(name="counter")
class Counter(View):
    people: list[str] = bot.field(default_factory=list[str])

    def render(self) -> Layout:
        return Row(Button(self.add, label=f"{len(self.people)}"))

    @bot.handler
    async def add(self, ctx: ComponentContext) -> None:
        self.people.append(ctx.user.username)
        await ctx.rerender()


@bot.command("post", "Post a counter.")
async def post(ctx: CommandContext) -> None:
    await ctx.respond(Counter())


def my_bot(app: App) -> None:
    app.add(post, Counter)


bot.main(my_bot)
