"""`python -m playground [BOT.py] [--mode rest] [--port N] [--no-open]`"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
import webbrowser
from pathlib import Path

from .process import refuse_production_token
from .server import Discord

PORT = 8765
PORT_MAX = 65535


def main(argv: list[str] | None = None) -> int:
    """Run the playground until Ctrl-C; the exit code."""
    asked = parser().parse_args(argv)
    try:
        for name, value in os.environ.items():
            refuse_production_token(value, f"{name} in the environment")
        if asked.bot is not None and not Path(asked.bot).is_file():
            raise ValueError(f"There is no file {asked.bot}.")
        require_port(os.environ.get("WEB_PORT") or "1")
        asyncio.run(run(asked))
    except ValueError as problem:
        return fail(str(problem))
    except (KeyboardInterrupt, asyncio.CancelledError):
        pass  # Ctrl-C or SIGTERM: everything has been stopped on the way out
    return 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="playground", description="A local Discord to run and click a bot in.")
    made.add_argument("bot", nargs="?", metavar="BOT.py", help="the bot to start in it")
    made.add_argument("--port", type=int, default=PORT, help=f"the page's port on 127.0.0.1 (default {PORT})")
    made.add_argument(
        "--mode", choices=("gateway", "rest"), default="gateway", help="how interactions come to the bot (gateway)"
    )
    made.add_argument("--no-open", action="store_true", help="do not open the page in a browser")
    return made


def fail(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 2


async def run(asked: argparse.Namespace) -> None:
    stop_on_signals()
    async with Discord(asked.port, mode=asked.mode) as discord:
        discord.rate_limits = True
        discord.echo = sys.stderr
        print(f"Playground: {discord.url}/", flush=True)
        if asked.bot is not None:
            await discord.start_bot(asked.bot, env=web_settings(discord), web=True)
        if not asked.no_open and has_screen():
            webbrowser.open(discord.url)
        await asyncio.Event().wait()


def require_port(text: str) -> None:
    """Raise ValueError with a sentence when the environment's WEB_PORT is none."""
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= PORT_MAX):
        raise ValueError(f"WEB_PORT={text} in the environment is no port. Write a number from 1 to {PORT_MAX}.")


def web_settings(discord: Discord) -> dict[str, str]:
    """What the environment says of the bot's web side, so that other programs can find it and sign for it."""
    given = {name: os.environ[name] for name in ("WEB_PORT", "HOOK_SECRET") if os.environ.get(name)}
    if "HOOK_SECRET" in given:
        discord.hooks.use(given["HOOK_SECRET"])
    return given


def stop_on_signals() -> None:
    """SIGTERM and a closed terminal end the playground as Ctrl-C does, so that no bot is left behind."""
    task = asyncio.current_task()
    assert task is not None
    for name in ("SIGTERM", "SIGHUP"):
        with contextlib.suppress(AttributeError, NotImplementedError):  # Windows has neither
            asyncio.get_running_loop().add_signal_handler(getattr(signal, name), task.cancel)


def has_screen() -> bool:
    """Without one, webbrowser would start a text browser in this terminal."""
    return sys.platform in ("win32", "darwin") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


if __name__ == "__main__":
    sys.exit(main())
