"""A bot with commands of every kind. MISTAKE adds one that cannot be."""

from __future__ import annotations

import os

import hikari

import bot


@bot.command("hello", "Say hello.")
async def hello(ctx: bot.CommandContext) -> None:
    await ctx.respond("Hello!")


@bot.command("poll create", "Ask everybody.")
async def create(ctx: bot.CommandContext, question: str) -> None:
    await ctx.respond(question)


@bot.command("poll admin close", "End it.")
async def close(ctx: bot.CommandContext) -> None:
    await ctx.respond("Closed.")


@bot.user_command("Look up")
async def look_up(ctx: bot.CommandContext, user: hikari.User) -> None:
    await ctx.respond(user.username)


@bot.message_command("Quote")
async def quote(ctx: bot.CommandContext, message: hikari.Message) -> None:
    await ctx.respond(message.content or "")


def my_bot(app: bot.App) -> None:
    app.add(hello, create, close, look_up, quote)
    if "MISTAKE" in os.environ:
        app.add(bot.command("a b c d", "Too deep.")(hello))


bot.main(my_bot)
