"""The end of a process: signals, exit codes, what is left behind; and who holds up everybody else."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import signal
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import hikari
import pytest

import bot
from bot import ComponentContext
from playground import Discord
from playground.process import BotProcess
from tests.kit import (
    ROOT,
    Counting,
    Json,
    Now,
    button_id,
    commands_asked_for,
    deliver,
    own_settings,
    playing,
    posting,
    rows,
    running,
    shown,
    start,
    state_of,
    take_interactions,
    until,
    view,
)
from tests.test_command_line import run

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
PENDING = "SELECT key FROM inbox WHERE done_at IS NULL"


def send(process: BotProcess, number: int) -> None:
    assert process.pid
    os.kill(process.pid, number)


def logged(process: BotProcess, text: str) -> list[str]:
    """Return the lines of a bot's log that hold the text."""
    return [line for line in process.log if text in line]


# Signals


@contextlib.asynccontextmanager
async def waiting(folder: Path, **settings: Any) -> AsyncIterator[tuple[Discord, BotProcess, Json]]:
    """Run tests/bots/patient.py with alice's click in its handler, which ends when the file `alice` is there."""
    async with Discord() as discord:
        process = await start(discord, "patient", folder / "bot.db", **settings)
        message = (await discord.user("alice").command("post")).message
        assert message
        discord.user("alice").click(custom_id=button_id(message), message=message["id"])
        await until(lambda: "alice begins" in process.log)
        yield discord, process, message


@pytest.mark.both_modes
@pytest.mark.parametrize("number", SIGNALS)
async def test_each_signal_lets_a_running_handler_end_and_be_shown_then_stops_with_0(
    number: signal.Signals, mode: str, tmp_path: Path
) -> None:
    async with waiting(tmp_path, DRAIN_S=60) as (discord, process, message):
        for _ in range(2):  # a terminal and a supervisor may each send one: within a second that is one wish
            send(process, number)
        await until(lambda: logged(process, "stopping; "))
        (tmp_path / "alice").touch()
        assert await asyncio.wait_for(process.wait(), 20) == 0
        assert (state_of(tmp_path / "bot.db", message), shown(discord, message)) == ({"people": ["alice"]}, 1)
        keeps = "Discord keeps the session for some minutes, and the inbox" if mode == "gateway" else "the inbox keeps"
        assert process.log[-1].endswith(f"stopped; {keeps} 0 events")


@pytest.mark.both_modes
async def test_with_drain_s_0_nothing_is_waited_for_and_the_click_is_run_by_the_next_process(tmp_path: Path) -> None:
    async with waiting(tmp_path, DRAIN_S=0) as (discord, process, message):
        assert await process.terminate() == 0
        assert process.log[-1].endswith(" 1 events")
        assert not logged(process, "ERROR")
        assert len(rows(tmp_path / "bot.db", PENDING)) == 1
        (tmp_path / "alice").touch()
        await process.start()
        await until(lambda: shown(discord, message) == 1)
        assert state_of(tmp_path / "bot.db", message) == {"people": ["alice"]}
        assert process.log.count("alice begins") == 2
        assert discord.gateway.identifies == (Now.mode == "gateway")


@pytest.mark.both_modes
async def test_a_second_signal_ends_the_process_at_once_with_1_and_loses_nothing(tmp_path: Path) -> None:
    async with waiting(tmp_path, DRAIN_S=600) as (discord, process, message):
        send(process, signal.SIGINT)
        await until(lambda: logged(process, "stopping; "))
        await send_until_it_ends(process, signal.SIGTERM)
        assert process.returncode == 1
        assert len(rows(tmp_path / "bot.db", PENDING)) == 1
        (tmp_path / "alice").touch()
        await process.start()
        await until(lambda: shown(discord, message) == 1)
        assert discord.gateway.identifies == (Now.mode == "gateway")


async def send_until_it_ends(process: BotProcess, number: int) -> None:
    """Send the signal again and again: one within a second of the first is not a second one."""
    async with asyncio.timeout(20):
        while process.returncode is None:
            with contextlib.suppress(ProcessLookupError, AssertionError):
                send(process, number)
            await asyncio.sleep(0.2)
        await process.wait()


# Handlers that hold the loop

BLOCKING = ROOT / "tests" / "bots" / "blocking.py"
BLOCKED = re.compile(r"WARNING everclick: everything waits for blocking\.py:(\d+) in (\w+)\. Use await there, or")


@contextlib.asynccontextmanager
async def service() -> AsyncIterator[tuple[str, asyncio.Event]]:
    """Run a service that answers when it is told to; yield its address."""
    go_on = asyncio.Event()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await go_on.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nfetched")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", go_on


@pytest.mark.parametrize(
    ("command", "function"),
    [
        ("sleep", "sleep_a_little"),
        pytest.param("spin", "spin", marks=pytest.mark.slow),
        pytest.param("fetch", "fetch", marks=pytest.mark.slow),
        pytest.param("work", None, marks=pytest.mark.slow),
    ],
)
async def test_a_handler_that_holds_the_loop_is_named_once_with_its_line_and_a_busy_one_that_does_not_is_not(
    command: str, function: str | None, tmp_path: Path
) -> None:
    async with service() as (url, answer), Discord() as discord:
        process = await start(discord, "blocking", tmp_path / "bot.db")
        await until(lambda: logged(process, "commands were registered"))
        used = discord.user("alice").start_command(command, {"url": url} if command == "fetch" else {})
        if function:
            await until(lambda: logged(process, "everything waits for"))
        else:
            await until(lambda: used.state == "deferred")  # 2 s later: the loop turns
        await asyncio.sleep(2 * bot.LOOP_LAG_MAX_S)  # time enough to be named again
        answer.set()
        (tmp_path / "go-on").touch()
        await until(lambda: not rows(tmp_path / "bot.db", PENDING))
        assert await process.terminate() == 0
        lines = [BLOCKED.search(line) for line in logged(process, "everything waits for")]
        assert [line and line[2] for line in lines] == ([function] if function else [])
        source = BLOCKING.read_text("utf-8").splitlines()
        assert all(line and source[int(line[1]) - 1].endswith("# it blocks") for line in lines)


@pytest.mark.parametrize("command", ["sleep", pytest.param("spin", marks=pytest.mark.slow)])
async def test_a_second_signal_ends_the_process_also_when_a_handler_holds_the_loop(
    command: str, tmp_path: Path
) -> None:
    async with Discord() as discord:
        process = await start(discord, "blocking", tmp_path / "bot.db")
        await until(lambda: logged(process, "commands were registered"))
        discord.user("alice").start_command(command, {})
        await until(lambda: logged(process, "everything waits for"))
        await send_until_it_ends(process, signal.SIGINT)
        assert process.returncode == 1
        assert len(rows(tmp_path / "bot.db", PENDING)) == 1


def test_what_is_named_is_the_persons_own_file_wherever_it_lies() -> None:
    for library in (asyncio.__file__, hikari.__file__, contextlib.__file__, "<frozen importlib._bootstrap>"):
        assert bot.LIBRARIES.match(library)
    for own in (BLOCKING, ROOT / "bot.py", Path(sys.prefix) / "bots" / "bot.py", Path(sys.base_prefix) / "app.py"):
        assert not bot.LIBRARIES.match(str(own))


# Exit codes


@pytest.mark.both_modes
async def test_a_store_that_fails_while_the_bot_runs_ends_it_with_1_and_a_sentence(tmp_path: Path) -> None:
    store = tmp_path / "bot.db"
    async with Discord() as discord:
        process = await start(discord, "counter", store)
        await discord.user("alice").command("post")
        rows(store, "ALTER TABLE inbox RENAME TO outbox")
        discord.user("alice").start_command("post", {})
        assert await asyncio.wait_for(process.wait(), 20) == 1
        assert process.log[-2:] == [
            f"{store} cannot be used (no such table: inbox). See what your system says about that disk.",
            "What was accepted is on disk; start the bot again when the cause is mended.",
        ]
        assert not logged(process, "Traceback")


async def test_a_bug_ends_the_process_with_1_and_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import bot\nbot.main(lambda app: 1 / 0)\n")
    done = await run("mine.py", cwd=tmp_path, PYTHONPATH=str(ROOT), DISCORD_TOKEN="NQ==.a.b", STORE=":memory:")
    assert (done.code, done.out) == (1, "")
    assert done.err.strip().splitlines()[-1].startswith("ZeroDivisionError")


async def test_the_exit_codes_are_in_the_help_and_in_the_readme(tmp_path: Path) -> None:
    help = " ".join((await run(ROOT / "bot.py", "--help", cwd=tmp_path)).out.split())
    assert (
        "Exit codes: 0 stopped as asked, or done; 1 something failed, or a second signal ended it at once; 2 " in help
    )
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert "| 0 | it was told to stop, and did | | 1 | something failed: " in readme


async def test_without_what_it_needs_the_bot_says_how_to_install_it(tmp_path: Path) -> None:
    done = await run("-I", "-S", ROOT / "bot.py", cwd=tmp_path)  # without site-packages
    assert re.fullmatch(
        r"No module named '\w+'\. Run: \S+ -m pip install -r requirements.txt .*make play\)", done.sentence
    )


# What is left behind


def left_behind() -> dict[str, Any]:
    """Return what of this process would outlive a bot: threads, tasks, open files and sockets."""
    threads = {each.name for each in threading.enumerate() if not each.name.startswith("asyncio_")}  # the loop's own
    tasks = {each.get_coro() for each in asyncio.all_tasks()}
    files = [f"{each.readlink()}" for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    return {"threads": threads, "tasks": tasks, "files": sorted(files), "signals": handlers}


Life = Callable[[Discord, Path], Awaitable[None]]


def configured(discord: Discord, store: Path, **settings: Any) -> bot.App:
    return bot.App(bot.Config(**{**own_settings(discord), "store": f"sqlite:{store}", **settings}))


async def a_good_life(discord: Discord, store: Path) -> None:
    cls = view()
    async with running(discord, cls, posting(cls), store=bot.SQLiteStore(str(store), bot.BotId(1))) as app:
        await discord.user("alice").command("post")
        assert (await discord.user("alice").click("0")).state == "answered"
        assert len(asyncio.all_tasks()) > 3
        assert {each.name for each in threading.enumerate()} >= {"loop watch"}
        await app.failed()


async def a_life_in_memory(discord: Discord, store: Path) -> None:
    async with running(discord):
        pass


async def a_handler_that_does_not_end(discord: Discord, store: Path) -> None:
    begun = asyncio.Event()

    async def press(self: Counting, ctx: ComponentContext) -> None:
        begun.set()
        await asyncio.Event().wait()

    cls = view(press)
    async with running(discord, cls, posting(cls), drain_s=0):
        await discord.user("alice").command("post")
        discord.user("alice").click(custom_id=button_id(discord.messages()[-1]))
        await begun.wait()


async def a_refused_token(discord: Discord, store: Path) -> None:
    with pytest.raises(bot.OperatorError, match="refuses the token"):
        await configured(discord, store, token="NQ==.another.one").run()


async def a_refused_intent(discord: Discord, store: Path) -> None:
    discord.gateway.denied_intents = int(hikari.Intents.GUILD_MEMBERS)
    app = configured(discord, store)
    app.intents = hikari.Intents.GUILD_MEMBERS
    with pytest.raises(bot.OperatorError, match="refuses GUILD_MEMBERS"):
        await app.run()


async def a_store_in_use(discord: Discord, store: Path) -> None:
    owner = bot.SQLiteStore(str(store), bot.bot_id_of(discord.token))
    await owner.open()
    with pytest.raises(bot.InUseError):
        await configured(discord, store).run()
    await owner.close()


async def a_store_that_is_none(discord: Discord, store: Path) -> None:
    store.write_bytes(b"This is a letter and no database. " * 100)
    with pytest.raises(bot.OperatorError, match="no database"):
        await configured(discord, store).run()


async def an_api_that_is_not_there(discord: Discord, store: Path) -> None:
    with pytest.raises(bot.OperatorError, match="cannot be reached"):
        await configured(discord, store, api="http://127.0.0.1:9/api/v10").run()


async def a_store_that_fails(discord: Discord, store: Path) -> None:
    app = configured(discord, store)
    ends = asyncio.create_task(app.run())
    await until(lambda: commands_asked_for(discord))
    await take_interactions(discord, app)
    rows(store, "ALTER TABLE inbox RENAME TO outbox")
    assert await deliver(discord, {"id": "5", "type": 3}) in (None, 503)
    with pytest.raises(bot.StoreError, match="no such table"):
        await ends


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.parametrize(
    ("mode", "life"),
    [
        ("gateway", a_good_life),
        ("rest", a_good_life),
        ("gateway", a_life_in_memory),
        ("gateway", a_handler_that_does_not_end),
        ("rest", a_handler_that_does_not_end),
        ("gateway", a_refused_token),
        ("rest", a_refused_token),
        ("gateway", a_refused_intent),
        ("gateway", a_store_in_use),
        ("gateway", a_store_that_is_none),
        ("gateway", a_store_that_fails),
        ("rest", a_store_that_fails),
        pytest.param("gateway", an_api_that_is_not_there, marks=pytest.mark.slow),
        pytest.param("rest", an_api_that_is_not_there, marks=pytest.mark.slow),
    ],
    indirect=["mode"],
)
async def test_when_run_has_ended_no_thread_task_file_socket_or_signal_handler_is_left(
    life: Life, tmp_path: Path
) -> None:
    async with Discord() as discord:
        before = left_behind()
        await life(discord, tmp_path / "bot.db")
        await discord.endpoint.close()  # its connections, too, are the playground's
        # A thread is not over at once, and the other ends of the sockets are the playground's.
        with contextlib.suppress(TimeoutError):
            await until(lambda: left_behind() == before, timeout=5)
        assert left_behind() == before


# What the log says of a handler that fails


async def test_the_traceback_of_a_handler_begins_with_the_handler_and_its_line_names_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def press(self: Counting, ctx: ComponentContext) -> None:
        if ctx.user.username == "bob":
            self.count = 10**81
        else:
            self.count //= 0
        await ctx.rerender()

    @bot.command("think", "Think.")
    async def think(ctx: bot.CommandContext) -> None:
        raise KeyError("thought")

    async with playing(press, think) as play:
        uses = [await play.click("alice"), await play.click("bob"), await play.alice.command("think")]
        await play.failed()
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    keys = [f"interaction:{used.interaction['id']}" for used in uses]
    assert [record.getMessage().split(" failed and is on the failed list: ")[0] for record in errors] == [
        f"{keys[0]} (Counter.press)",
        f"{keys[1]} (Counter.press)",
        f"{keys[2]} (/think)",
    ]
    texts = [logging.Formatter().formatException(record.exc_info) for record in errors if record.exc_info]
    frames = [re.findall(r'File ".*?(\w+\.py)", line \d+, in (\w+)', text) for text in texts]
    assert [each[0] for each in frames] == [("test_shutdown.py", name) for name in ("press", "press", "think")]
    assert [len(each) for each in frames][::2] == [1, 1]
    assert frames[1][-1][0] == "bot.py"  # and below it, whatever it called
