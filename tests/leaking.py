"""What a leak looks like: each test here passes and lets a secret out by one way, and the run of them must fail.

tests/test_secrets.py runs this file as a suite of its own; nobody else does.
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from pathlib import Path

import pytest

import bot
from playground import Discord
from tests.kit import rows, running, start
from tests.leaks import LEAKS

HOOK_SECRET = "of-a-hook-5f1c6d"


@bot.command("ask", "Ask.")
async def ask(ctx: bot.CommandContext) -> None:
    raise RuntimeError(f"no answer from /interactions/{ctx.id}/{ctx.token}/callback")


async def test_nothing() -> None:
    async with Discord() as discord, running(discord, ask):
        await discord.user("alice").command("ask")


async def test_without_redaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bot, "redact", lambda text: text)
    await test_nothing()


async def test_without_cutting_the_token_out_of_what_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bot, "without_token", lambda body: body)
    store = bot.SQLiteStore(str(tmp_path / "bot.db"), bot.BotId(1))
    async with Discord() as discord, running(discord, ask, store=store):
        await discord.user("alice").command("ask")


async def test_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bot, "without_token", lambda body: body)
    await test_nothing()


async def test_by_a_debug_line() -> None:
    async with Discord() as discord:
        logging.getLogger("somebody.else").debug("connecting with %s", discord.token)


async def test_by_an_argument_of_a_bot(tmp_path: Path) -> None:
    async with Discord() as discord:
        (tmp_path / "mute.py").write_text("import time; time.sleep(60)")
        await discord.start_bot(tmp_path / "mute.py", "--token", discord.token)


async def test_by_a_line_of_a_bot(tmp_path: Path) -> None:
    async with Discord() as discord:
        (tmp_path / "chatty.py").write_text("import os; print('token', os.environ['DISCORD_TOKEN'])")
        process = await discord.start_bot(tmp_path / "chatty.py")
        await process.wait()


def test_by_an_argument_and_the_output_of_a_command() -> None:
    subprocess.run([sys.executable, "-c", f"print({Discord().token!r}[::1])"], check=True, capture_output=True)


async def test_by_the_output_of_an_asyncio_process() -> None:
    code = "import os; print(os.environ['DISCORD_TOKEN'])"
    pipe = subprocess.PIPE
    env = {"DISCORD_TOKEN": Discord().token}
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, env=env, stdout=pipe)
    await process.communicate()


def test_by_printing_it() -> None:
    print(Discord().token)


async def test_by_a_backup(tmp_path: Path) -> None:
    async with Discord() as discord:
        process = await start(discord, "counter", tmp_path / "bot.db")
        await process.terminate()
        sql = "INSERT INTO failed VALUES(1, 1, 'k', ?, 0, 0, 't', 't', 'p', 0)"
        rows(tmp_path / "bot.db", sql, discord.token.encode())
        (tmp_path / "bot.db").rename(tmp_path / "copy")


def test_by_a_secret_of_another_kind() -> None:
    LEAKS.secrets.add(HOOK_SECRET)
    logging.getLogger("everclick").info("the secret is %s", HOOK_SECRET)
