"""Two listeners that count the same messages, each in a record of its own."""

from __future__ import annotations

import hikari

import bot


@bot.register(name="heard")
class Heard(bot.Record):
    texts: list[str] = bot.field(default_factory=list[str])


async def note(ctx: bot.EventContext, who: str, event: hikari.GuildMessageCreateEvent) -> None:
    (await ctx.record(Heard, who)).texts.append(event.content or "")


@bot.listen(hikari.GuildMessageCreateEvent, intents=hikari.Intents.MESSAGE_CONTENT)
async def left(ctx: bot.EventContext, event: hikari.GuildMessageCreateEvent) -> None:
    await note(ctx, "left", event)


@bot.listen(hikari.MessageCreateEvent)
async def right(ctx: bot.EventContext, event: hikari.MessageCreateEvent) -> None:
    if isinstance(event, hikari.GuildMessageCreateEvent):
        await note(ctx, "right", event)


bot.main(lambda app: app.add(left, right, Heard))
