"""A number that forms raise, kept in the store and in the message, and a form of a command."""

from __future__ import annotations

import hikari

import bot
from bot import App, CommandContext, ComponentContext, Form, FormError, Layout, Row, View


class Step(Form, title="Step"):
    size: int = bot.TextInput("Size")
    who: list[hikari.User] = bot.UserSelect("Who", max_values=3)
    both: list[hikari.User | hikari.Role] = bot.MentionableSelect("Both", max_values=3)
    colour: str = bot.Select("Colour", options=["red", "blue"])
    sure: bool = bot.Checkbox("Sure")


class Shared(View):
    count: int = 0

    def render(self) -> Layout:
        return Row(bot.Button(self.ask, label=f"{self.count}"), bot.Button(self.add, label="+1"))

    @bot.handler(opens_form=True)
    async def ask(self, ctx: ComponentContext) -> None:
        await ctx.open(Step(), 100, then=self.sent)

    @bot.handler
    async def sent(self, ctx: ComponentContext, form: Step, more: int) -> None:
        if form.size > 9:
            raise FormError("Nine is the most.")
        self.count += form.size + more
        await ctx.rerender()

    @bot.handler
    async def add(self, ctx: ComponentContext) -> None:
        self.count += 1
        await ctx.rerender()


@bot.register(name="stored")
class Stored(Shared):
    """Its state is in the store."""


@bot.register(name="carried", state=bot.InMessage())
class Carried(Shared):
    """Its state is in the message."""


@bot.command("post", "Post one.")
async def post(ctx: CommandContext, carried: bool) -> None:
    await ctx.respond(Carried() if carried else Stored())


def my_bot(app: App) -> None:
    app.add(post, Stored, Carried)


bot.main(my_bot)
