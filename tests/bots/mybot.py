"""A bot in a file of its own, the second supported way. INTENTS (a number) asks for gateway intents."""

from __future__ import annotations

import os

import hikari

import bot


@bot.register(name="greeting", version=1)
class Greeting(bot.View):
    waves: int = 0

    def render(self) -> bot.Layout:
        return bot.Row(bot.Button(self.wave, label=f"Waves: {self.waves}"))

    @bot.handler
    async def wave(self, ctx: bot.ComponentContext) -> None:
        self.waves += 1
        await ctx.rerender()


@bot.command("hello", "Say hello.")
async def hello(ctx: bot.CommandContext) -> None:
    await ctx.respond(Greeting())


@bot.command("break", "Fail.")
async def fail(ctx: bot.CommandContext) -> None:
    raise RuntimeError(f"no answer from /interactions/{ctx.id}/{ctx.token}/callback")


def my_bot(app: bot.App) -> None:
    app.intents = hikari.Intents(int(os.environ.get("INTENTS", "0")))
    app.add(hello, fail, Greeting)


bot.main(my_bot)
