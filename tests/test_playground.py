"""The playground as a whole: real clients over real sockets, the bot as a process, and the command line."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from playground import Discord
from playground.process import BotProcess
from tests.clients.raw import RawBot, Socket, until
from tests.openapi import CHECK

ROOT = Path(__file__).resolve().parent.parent
CLIENTS = Path(__file__).parent / "clients"
REAL_LOOKING = f"MTA{'x' * 23}.Gabcde.{'y' * 38}"

TALKER = """
import hashlib, os, signal, sys, time
token = os.environ.pop("DISCORD_TOKEN")  # no log shows it, not even one of these tests
digest = hashlib.sha256(token.encode()).hexdigest()
print("token", digest, "api", os.environ["DISCORD_API"], "store", os.environ["STORE"])
print("to stderr", file=sys.stderr)
print("args", sys.argv[1:])
print("surroundings", sorted(os.environ.items()))
print("no newline at the end", end="")
sys.stdout.flush()
if "stay" in sys.argv:
    time.sleep(60)
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print(" stubborn", flush=True)
    time.sleep(60)
sys.exit(3)
"""


@pytest_asyncio.fixture
async def discord() -> AsyncIterator[Discord]:
    async with Discord(check=CHECK) as discord:
        yield discord


@pytest.fixture
def talker(tmp_path: Path) -> Path:
    (tmp_path / "talker.py").write_text(TALKER)
    return tmp_path / "talker.py"


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


async def logged(bot: BotProcess, words: str, times: int = 1) -> None:
    await until(lambda: sum(words in line for line in bot.log) >= times)


# Real clients


@pytest.mark.parametrize("script", ["hikari_bot.py", "discordpy_bot.py"])
async def test_a_real_client_goes_from_command_to_v2_message_to_click_to_update(discord: Discord, script: str) -> None:
    bot = await discord.start_bot(CLIENTS / script)
    await bot.ready()
    alice, bob = discord.user("alice"), discord.user("bob")

    used = await alice.command("poll", question="Tea?")
    assert (used.state, discord.text(used.message)) == ("answered", "## Count 0\nAdd\nRename")
    await logged(bot, "followup")
    assert [message["content"] for message in discord.messages(seen_by="alice")] == ["", "made it"]

    assert discord.text((await bob.click("Add")).message).startswith("## Count 1")
    await logged(bot, "counted to 1")
    assert discord.text((await bob.click("Add")).message).startswith("## Count 2")
    await logged(bot, "counted to 2")

    opened = await alice.click("Rename")
    assert opened.form is not None
    assert opened.form["title"] == "Rename"
    done = await alice.submit({"Title": "Better"})
    assert done.message is not None
    assert (done.message["content"], done.message["flags"]) == ("renamed", 64)

    slow = await alice.command("slow")
    assert slow.state == "deferred"
    assert discord.text((await slow.settled()).message) == "done at last"

    await alice.say("hello")
    assert (discord.gateway.identifies, discord.misfits) == (1, [])


@pytest.mark.parametrize("script", ["hikari_bot.py", "discordpy_bot.py"])
async def test_a_real_client_resumes_after_a_cut_connection_and_misses_nothing(discord: Discord, script: str) -> None:
    bot = await discord.start_bot(CLIENTS / script)
    await bot.ready()
    await discord.user("alice").command("poll", question="Tea?")
    await logged(bot, "followup")
    discord.gateway.drop()
    await discord.user("alice").say("while it is away")
    await until(lambda: discord.gateway.resumes == 1)
    assert (await discord.user("bob").click("Add")).state == "answered"
    discord.gateway.reconnect()
    await until(lambda: discord.gateway.resumes == 2)
    assert discord.gateway.identifies == 1


async def test_a_real_client_waits_for_a_429_and_tries_a_503_again(discord: Discord) -> None:
    bot = await discord.start_bot(CLIENTS / "hikari_bot.py")
    await bot.ready()
    await logged(bot, "hikari is ready")
    discord.faults.add(method="PATCH", path="/webhooks/*", status=429, retry_after=0.05)
    discord.faults.add(method="PATCH", path="/webhooks/*", status=503)
    slow = await discord.user("alice").command("slow")
    assert discord.text((await slow.settled()).message) == "done at last"
    tried = [entry.data["status"] for entry in discord.journal.of("rest") if entry.data["method"] == "PATCH"]
    assert tried == [429, 503, 200]


@pytest.mark.parametrize("script", ["hikari_everything.py", "discordpy_everything.py"])
async def test_a_real_client_understands_every_option_and_what_happens_in_the_guild(
    discord: Discord, script: str
) -> None:
    bot = await discord.start_bot(CLIENTS / script)
    await logged(bot, "ready with everything")
    alice, bob = discord.user("alice"), discord.user("bob")

    values: dict[str, Any] = {"text": "abc", "number": 3, "amount": 1.5, "flag": True, "user": bob, "place": "random"}
    values |= {"role": "Moderator", "whoever": "bob", "file": ("a.txt", b"hello")}
    if "discordpy" in script:
        values |= {"member": bob, "size": "s"}
    assert (await alice.command("all", **values)).state == "answered"
    await logged(bot, "options abc 3 1.5 True")
    await logged(bot, "a.txt hello")
    await logged(bot, "member True")
    offered = await alice.autocomplete("fruit", "name", "ap")
    assert [choice["value"] for choice in offered] == ["apple", "apricot"]
    assert discord.text((await alice.command("Wave", target=bob)).message) == "waves at bob"
    said = await bob.say("hi")
    assert discord.text((await alice.command("Quote", target=said)).message) == "bob said hi"

    dave = discord.join("dave")
    await logged(bot, "roles dave")
    assert dave.member is not None
    assert len(dave.member["roles"]) == 1
    await until(lambda: bool(discord.messages("dm", seen_by="dave")))
    await alice.react(said, "👍")
    await logged(bot, "reaction 👍 alice")
    discord.delete_messages([said, await bob.say("x")])
    await logged(bot, "gone 2")
    await bob.say("moderate")
    await logged(bot, "moderated ticket")
    assert bob.member is None
    assert len(discord.messages("ticket")) == 1
    discord.delete_channel("random")
    await logged(bot, "channel gone random")
    discord.kick_bot()
    await logged(bot, "removed from Playground")


async def test_discord_py_fills_in_every_field_of_a_form(discord: Discord) -> None:
    bot = await discord.start_bot(CLIENTS / "discordpy_everything.py")
    await logged(bot, "ready with everything")
    alice, bob = discord.user("alice"), discord.user("bob")
    assert (await alice.command("form", which="everything")).form is not None
    files = [("a.txt", b"one"), ("b.txt", b"two")]
    await alice.submit({"Text": "T", "Who": [bob], "Files": files, "Boxes": ["apple", "banana"]})
    await logged(bot, "form T ['bob'] ['one', 'two'] ['apple', 'banana']")
    await alice.command("form", which="sure")
    assert discord.text((await alice.submit({"One": "apple", "Sure": True})).message) == "apple True"


async def test_hikari_is_installed_by_a_person_where_the_bot_is_not(discord: Discord) -> None:
    bot = await discord.start_bot(CLIENTS / "hikari_everything.py")
    await logged(bot, "ready with everything")
    alice = discord.user("alice")
    for place, told in (("elsewhere", "50001 [1]"), ("friends", "50001 [1]"), ("general", "ok")):
        assert discord.text((await alice.command("everywhere", channel=place)).message) == told
    discord.outage()
    await logged(bot, "outage")
    discord.outage_over()
    discord.leave("carol")
    await logged(bot, "left carol")
    assert [line for line in bot.log if "ERROR" in line] == []


async def test_an_interaction_made_while_the_bot_is_down_is_buffered_and_fails_for_the_person(
    discord: Discord,
) -> None:
    async with Socket(discord) as socket_:
        await socket_.identify()
    discord.world.put_command(None, {"name": "poll", "description": "x"})
    used = discord.user("alice").start_command("poll", {})
    discord.clock.advance(3)
    assert used.state == "failed"
    async with Socket(discord) as again:
        await again.resume(socket_.session_id, socket_.seq)
        assert (await again.event("INTERACTION_CREATE"))["id"] == used.interaction["id"]


async def test_a_thousand_clicks_at_once_are_all_answered(discord: Discord) -> None:
    async with Discord() as quick, RawBot(quick) as bot:
        channel = f"/channels/{quick.world.channel_of(None)['id']}/messages"
        button = {"type": 2, "style": 1, "custom_id": "b", "label": "Yes"}
        await bot.rest("POST", channel, {"components": [{"type": 1, "components": [button]}]})

        async def answer() -> None:
            while True:
                await bot.rest.answer(await bot.interactions.get(), 6)

        workers = [asyncio.create_task(answer()) for _ in range(20)]
        clicks = [quick.user(name).click("Yes") for _ in range(250) for name in ("alice", "bob", "carol", "dora")]
        states = {(await one).state for one in clicks}
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    assert states == {"deferred"}


# The bot as a process


async def test_a_bot_gets_the_playgrounds_token_and_address_and_its_log_is_kept(discord: Discord, talker: Path) -> None:
    bot = await discord.start_bot(talker, "one", "two")
    assert await bot.wait() == bot.returncode == 3
    assert bot.log[0].startswith(f"token {digest(discord.token)} api {discord.api} store sqlite:")
    assert bot.log[1:3] == ["to stderr", "args ['one', 'two']"]
    assert bot.log[4:] == ["no newline at the end"]
    assert (bot.pid, bot.status) == (None, "exited")


async def test_the_environment_given_reaches_the_bot_and_its_folder_stays_the_same(
    discord: Discord, talker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STORE", raising=False)
    bots = [await discord.start_bot(talker), await discord.start_bot(talker)]
    for bot in bots:
        await bot.wait()
    await bots[0].restart()
    await bots[0].wait()
    stores = {line.partition(" store ")[2] for bot in bots for line in bot.log if " store " in line}
    assert len(stores) == 1
    folder = Path(stores.pop().removeprefix("sqlite:")).parent
    assert folder.is_dir()
    own = await discord.start_bot(talker, env={"STORE": "sqlite:mine.db"})
    monkeypatch.setenv("STORE", "sqlite:theirs.db")
    theirs = await discord.start_bot(talker)
    await own.wait()
    await theirs.wait()
    assert (own.log[0].endswith("sqlite:mine.db"), theirs.log[0].endswith("sqlite:theirs.db")) == (True, True)


async def test_the_temporary_folder_goes_with_the_playground(talker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STORE", raising=False)
    async with Discord() as discord:
        bot = await discord.start_bot(talker)
        await bot.wait()
        folder = Path(bot.log[0].partition("sqlite:")[2]).parent
        assert folder.is_dir()
    assert not folder.exists()


async def test_kill_terminate_and_restart(discord: Discord, talker: Path) -> None:
    bot = await discord.start_bot(talker, "stay")
    await logged(bot, "args")
    first = bot.pid
    bot.kill()
    assert (await bot.wait(), bot.status) == (-signal.SIGKILL, "stopped")
    await bot.restart()
    await logged(bot, "args", times=2)
    assert bot.pid not in (None, first)
    with pytest.raises(ValueError, match=r"talker\.py runs already, as process \d+\."):
        await bot.start()
    second = bot.pid
    bot.kill()
    await bot.start()  # it waits for the end of the one before
    await logged(bot, "args", times=3)
    assert bot.pid not in (None, second)
    with pytest.raises(ValueError, match="runs already"):
        await asyncio.gather(bot.start(), bot.start())
    assert await bot.terminate() == -signal.SIGTERM
    assert sum("args" in line for line in bot.log) == 3


async def test_who_ignores_sigterm_is_killed(discord: Discord, talker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("playground.process.STOP_WAIT_S", 0.1)
    bot = await discord.start_bot(talker, "stubborn")
    await logged(bot, "stubborn")
    assert await bot.terminate() == -signal.SIGKILL
    assert "did not stop within" in bot.log[-1]


async def test_ready_raises_with_the_log_when_the_bot_exits_first(discord: Discord, talker: Path) -> None:
    bot = await discord.start_bot(talker)
    with pytest.raises(RuntimeError, match=r"talker\.py ended with exit code 3 before it was ready:\n(.*\n)*to stderr"):
        await bot.ready()


async def test_ready_gives_up_after_its_time_with_the_log(discord: Discord, talker: Path) -> None:
    bot = await discord.start_bot(talker, "stay")
    await logged(bot, "args")
    with pytest.raises(TimeoutError, match=r"talker\.py was not ready after 0\.01 s:\n(.*\n)*to stderr"):
        await bot.ready(timeout=0.01)


async def test_leaving_ends_every_bot_and_what_it_started(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    child = "import time; time.sleep(60)"
    script.write_text(
        f"import subprocess, sys, time\nchild = subprocess.Popen([sys.executable, '-c', {child!r}])\n"
        "print('child', child.pid, flush=True)\ntime.sleep(60)\n"
    )
    async with Discord() as discord:
        bot = await discord.start_bot(script)
        await logged(bot, "child")
        pid = int(bot.log[0].split()[1])
    await until(lambda: not is_alive(pid))
    assert bot.returncode == -signal.SIGTERM


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has waited for does not."""
    try:
        os.kill(pid, 0)
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


async def test_a_production_token_is_refused_in_a_sentence(discord: Discord, talker: Path) -> None:
    with pytest.raises(ValueError) as refused:
        await discord.start_bot(talker, env={"DISCORD_TOKEN": REAL_LOOKING})
    assert str(refused.value) == (
        "DISCORD_TOKEN looks like a production token: never hand one to a local fake. "
        "Take it out; the playground gives the bot a token of its own."
    )
    assert (discord.bots, REAL_LOOKING in repr(list(discord.journal))) == ([], False)


async def test_a_production_token_in_the_surroundings_does_not_reach_the_bot(
    discord: Discord, talker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISCORD_TOKEN", "MY_TOKEN"):
        monkeypatch.setenv(name, REAL_LOOKING)
    bot = await discord.start_bot(talker)
    await bot.wait()
    assert bot.log[0].startswith(f"token {digest(discord.token)} ")
    assert REAL_LOOKING not in repr(bot.log)


async def test_the_playgrounds_own_token_does_not_look_like_a_production_one(discord: Discord, talker: Path) -> None:
    bot = await discord.start_bot(talker, env={"DISCORD_TOKEN": discord.token})
    assert await bot.wait() == 3


# The library


async def test_the_check_is_called_for_everything_sent_and_its_findings_are_raised() -> None:
    seen: list[tuple[str, str]] = []

    def check(what: str, kind: str, body: Any) -> list[str]:
        seen.append((what, kind))
        return ["wrong shade"] if what == "gateway READY" else []

    with pytest.raises(AssertionError, match="does not fit:\nwrong shade"):
        async with Discord(check=check) as discord, RawBot(discord) as bot:
            await bot.rest("GET", "/users/9")
    assert seen == [
        ("gateway READY", "gateway"),
        ("gateway GUILD_CREATE", "gateway"),
        ("GET /users/{user_id} 404", "rest"),
    ]


async def test_latency_delays_requests_answers_and_events(discord: Discord) -> None:
    async with RawBot(discord) as bot:
        channel = f"/channels/{discord.world.channel_of(None)['id']}/messages"
        discord.latency_s = 1.0
        slow = asyncio.create_task(bot.rest("POST", channel, {"content": "slow"}))
        discord.send_raw("SLOW", {})
        await asyncio.sleep(0.05)
        discord.latency_s = 0.0
        await bot.rest("GET", "/gateway")
        assert (slow.done(), discord.messages(), bot.events) == (False, [], [])
        await until(lambda: [event["t"] for event in bot.events][:1] == ["SLOW"])
        assert (await slow)[0] == 200


async def test_the_journal_forgets_its_oldest_when_full(discord: Discord) -> None:
    from playground.journal import Journal

    journal = Journal(discord.clock, keep=10)
    for number in range(25):
        journal.note("bot", number=number)
    assert len(journal) <= 10
    assert journal[-1].data == {"number": 24}


async def test_timers_run_in_order_whether_time_passes_or_is_moved(discord: Discord) -> None:
    ran: list[str] = []
    now = discord.clock.now()
    discord.clock.call_at(now + 20, lambda: ran.append("second"))
    discord.clock.call_at(now + 10, lambda: ran.append("first"))
    discord.clock.call_at(now + 0.01, lambda: ran.append("by itself"))
    await until(lambda: ran == ["by itself"])
    discord.clock.advance(30)
    assert ran == ["by itself", "first", "second"]
    with pytest.raises(ValueError, match="only moves forward"):
        discord.clock.advance(-1)


# The command line


def start_playground(*args: str, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "playground", "--no-open", *args],
        cwd=ROOT,
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_command_prints_one_line_and_leaves_no_child_when_stopped(
    tmp_path: Path, free_port: str, how: signal.Signals
) -> None:
    script = tmp_path / "sleeper.py"
    script.write_text("import time\nprint('asleep', flush=True)\ntime.sleep(60)\n")
    with start_playground("--port", free_port, str(script)) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == f"Playground: http://127.0.0.1:{free_port}/\n"
        assert process.stderr.readline() == "asleep\n"
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert len(children) == 1
        process.send_signal(how)
        assert process.wait(timeout=20) == 0
        assert not is_alive(int(children[0]))
        assert process.stdout.read() == ""
        assert "Traceback" not in process.stderr.read()


def outcome(*args: str, **env: str) -> tuple[int, str]:
    with start_playground(*args, **env) as process:
        _, errors = process.communicate(timeout=20)
        return process.returncode, errors


def test_a_taken_port_is_one_sentence_and_exit_2() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code, errors = outcome("--port", port)
    assert code == 2
    assert re.fullmatch(rf"Port {port} is taken\. .*--port.*\n", errors)


def test_a_second_ctrl_c_kills_a_bot_that_does_not_want_to_stop(tmp_path: Path, free_port: str) -> None:
    script = tmp_path / "stubborn.py"
    script.write_text(
        "import signal, time\nsignal.signal(signal.SIGTERM, lambda *_: print('no', flush=True))\n"
        "print('up', flush=True)\nwhile True: time.sleep(60)\n"
    )
    with start_playground("--port", free_port, str(script)) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "up\n"
        [child] = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.send_signal(signal.SIGINT)
        assert process.stderr.readline() == "no\n"
        process.send_signal(signal.SIGINT)
        process.wait(timeout=20)
        assert not is_alive(int(child))


def test_a_missing_bot_is_one_sentence_and_exit_2() -> None:
    assert outcome("nowhere.py") == (2, "There is no file nowhere.py.\n")


def test_a_production_token_in_the_environment_is_one_sentence_and_exit_2() -> None:
    code, errors = outcome(MY_TOKEN=REAL_LOOKING)
    assert code == 2
    assert errors.startswith("MY_TOKEN in the environment looks like a production token: never hand one to")
    assert errors.count("\n") == 1
    assert REAL_LOOKING not in errors
