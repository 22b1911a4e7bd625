"""An add-on beside bot.py: `import bot` must be the module that runs, or its errors and marks would be another's."""

from __future__ import annotations

import sys

import bot

IS_THE_RUNNING_ONE = bot is sys.modules["__main__"]


@bot.command("which", "Which module an add-on gets.")
async def which(ctx: bot.CommandContext) -> None:
    try:
        await ctx.respond("x" * 2_001)
    except bot.LayoutError:
        await ctx.respond(f"the running one: {IS_THE_RUNNING_ONE}, {isinstance(ctx, bot.Context)}")
