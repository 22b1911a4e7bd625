"""A hook whose sender has a key pair; it says what it was told."""

from __future__ import annotations

from typing import Any

import bot
from bot import App, EventContext


@bot.hook("deploy", sign="ed25519")
async def deploy(ctx: EventContext, body: dict[str, Any]) -> None:
    print("deployed", body["version"], flush=True)


def your_bot(app: App) -> None:
    app.add(deploy)


if __name__ == "__main__":
    bot.main(your_bot)
