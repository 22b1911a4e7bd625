"""A poll that keeps the id of every click it counted, in the order it counted them, and gives a point for each."""

from __future__ import annotations

import bot


@bot.register(name="points")
class Points(bot.Record):
    count: int = 0


@bot.register(name="tally")
class Tally(bot.View):
    clicks: list[int] = bot.field(default_factory=list[int])

    def render(self) -> bot.Layout:
        return bot.Row(bot.Button(self.count, label=f"{len(self.clicks)}"))

    @bot.handler
    async def count(self, ctx: bot.ComponentContext) -> None:
        self.clicks.append(ctx.id)
        (await ctx.record(Points, ctx.user.id)).count += 1
        await ctx.rerender()


@bot.command("post", "Post a tally.")
async def post_tally(ctx: bot.CommandContext) -> None:
    await ctx.respond(Tally())


bot.main(lambda app: app.add(post_tally, Tally, Points))
