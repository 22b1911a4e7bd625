"""A counter whose disk fails as the file `fault` beside the database says, from the commit that WHEN names.

once       one sync fails
for ever   this sync and all later ones fail; what was written is there all the same
lost       the same, and what was written since the last sync is gone
full       no file may grow any more
"""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import bot
from bot import App, Button, CommandContext, ComponentContext, Layout, Row, View
from tests import disk
from tests.disk import Step

STORE = Path(os.environ["STORE"].removeprefix("sqlite:"))
FAULT, LOG = STORE.with_name("fault"), STORE.with_name("bot.db-wal")


class Fault:
    """What the disk does instead of its work."""

    def __init__(self) -> None:
        self.kind = ""  # what it does from now on
        self.armed = os.environ["WHEN"] == "accept"
        self.synced = b""  # the log as it was at its last sync

    def ask(self, step: Step) -> int:
        """Return an error where the disk fails."""
        if FAULT.exists() and self.armed and not self.kind:
            self.kind = FAULT.read_text()
        if self.kind == "full" and step.what == "write":
            grows = step.at + len(step.data) > STORE.with_name(step.file).stat().st_size
            return sqlite3.SQLITE_FULL if grows else disk.OK
        if self.kind in ("once", "for ever", "lost") and step.what == "sync":
            if self.kind == "once":
                FAULT.unlink()
                self.kind = ""
            if self.kind == "lost":
                LOG.write_bytes(self.synced)
            return sqlite3.SQLITE_IOERR_FSYNC
        return disk.OK

    def tell(self, step: Step) -> None:
        """Remember what has reached the disk."""
        if step.what == "sync" and step.file == LOG.name:
            self.synced = LOG.read_bytes()


fault = Fault()


@bot.register(name="counter")
class Counter(View):
    people: list[str] = bot.field(default_factory=list[str])

    def render(self) -> Layout:
        return Row(Button(self.add, label=f"{len(self.people)}"))

    @bot.handler
    async def add(self, ctx: ComponentContext) -> None:
        self.people.append(ctx.user.username)
        fault.armed = fault.armed or FAULT.exists()
        await ctx.rerender()


@bot.command("post", "Post a counter.")
async def post(ctx: CommandContext) -> None:
    await ctx.respond(Counter())


def my_bot(app: App) -> None:
    app.add(post, Counter)


disk.put_under_sqlite(fault.ask, fault.tell)
bot.main(my_bot)
