"""Moving the time: a bot's process, this process, ids, and what becomes due."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from playground import Discord
from playground.process import BotProcess
from tests.clients.raw import RawBot, until

TELLER = """
import asyncio, time
from time import time as its_own
loop = asyncio.new_event_loop()
started, monotonic, inside = time.time(), time.monotonic(), loop.time()
print("first", time.time(), time.time_ns() / 1e9, its_own(), flush=True)
while time.time() - started < 1800:
    time.sleep(0.01)
print("moved", time.time() - started, its_own() - started, time.monotonic() - monotonic, loop.time() - inside)
"""


async def told(bot: BotProcess, word: str) -> list[float]:
    """The numbers of the line that begins with the word."""
    await until(lambda: any(line.startswith(word) for line in bot.log))
    [line] = [line for line in bot.log if line.startswith(word)]
    return [float(number) for number in line.split()[1:]]


async def test_a_bots_process_sees_the_time_move_and_its_monotonic_clocks_do_not(tmp_path: Path) -> None:
    (tmp_path / "teller.py").write_text(TELLER)
    async with Discord() as discord:
        discord.clock.advance(86_400)
        bot = await discord.start_bot(tmp_path / "teller.py")
        for now in await told(bot, "first"):
            assert abs(now - time.time() - 86_400) < 60
        discord.clock.advance(3_600)
        moved, its_own, monotonic, inside = await told(bot, "moved")
        assert moved >= 3_600
        assert its_own >= 3_600
        assert max(monotonic, inside) < 1_800
        assert (await bot.wait(), [line for line in bot.log if "rror" in line]) == (0, [])


async def test_a_bot_that_is_started_again_is_in_the_moved_time(tmp_path: Path) -> None:
    (tmp_path / "once.py").write_text("import time\nprint('now', time.time())")
    async with Discord() as discord:
        bot = await discord.start_bot(tmp_path / "once.py")
        await bot.wait()
        discord.clock.advance(1_000_000)
        await bot.restart()
        await bot.wait()
        first, then = [float(line.split()[1]) for line in bot.log]
    assert then - first >= 1_000_000


async def test_a_sitecustomize_of_the_environment_still_runs(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins\nbuiltins.of_the_environment = 'here'")
    (tmp_path / "script.py").write_text("import time\nprint('it is', of_the_environment, time.time())")
    async with Discord() as discord:
        discord.clock.advance(1_000_000)
        bot = await discord.start_bot(tmp_path / "script.py", env={"PYTHONPATH": str(tmp_path)})
        assert await bot.wait() == 0, bot.log
        assert bot.log[0].startswith("it is here ")
        assert float(bot.log[0].split()[-1]) - time.time() > 900_000


async def test_this_process_goes_with_the_clock_while_asked_to() -> None:
    async with Discord() as discord:
        real = time.time
        with discord.clock.here():
            discord.clock.advance(3_600)
            assert time.time() - real() == pytest.approx(3_600, abs=30)
            assert abs(time.time() - discord.clock.now()) < 30
        assert time.time is real


async def test_ids_tell_the_moved_time() -> None:
    async with Discord() as discord, RawBot(discord) as bot:
        discord.world.put_command(None, {"name": "poll", "description": "x"})
        discord.clock.advance(86_400)
        discord.user("alice").start_command("poll", {})
        made_at = ((int((await bot.interaction())["id"]) >> 22) + 1420070400000) / 1000
    assert abs(made_at - time.time() - 86_400) < 60


async def test_the_offset_does_not_outlive_the_playground(tmp_path: Path) -> None:
    (tmp_path / "once.py").write_text("pass")
    async with Discord() as discord:
        bot = await discord.start_bot(tmp_path / "once.py")
        await bot.wait()
    discord.clock.advance(5)
    assert discord.clock.offset_s == 5
    assert "PLAYGROUND_CLOCK" not in os.environ
