"""Section 12 as people meet it: what the commands print, and one sentence for each thing that is to be mended."""

from __future__ import annotations

import asyncio
import base64
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import hikari
import pytest

import bot
from playground import Discord
from playground.process import BotProcess
from tests import kit

BOT, MYBOT = kit.ROOT / "bot.py", kit.ROOT / "tests" / "bots" / "mybot.py"
COMMANDS = ("run", "check", "failed", "commands", "trust", "export", "backup", "playground")
LOG_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ (\w+) +\w+")
SCREEN = ("DISPLAY", "WAYLAND_DISPLAY")

on_posix = pytest.mark.skipif(os.name != "posix", reason="signals and file modes of POSIX")


class Done(NamedTuple):
    """A process that has ended."""

    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The one sentence on stderr that says what is to be mended: exit code 2, no traceback, no error in the log."""
        return self.sentence_with(2)

    def sentence_with(self, code: int) -> str:
        """The one sentence on stderr, with that exit code."""
        lines = self.err.splitlines()
        logged = [LOG_LINE.match(line) for line in lines]
        assert (self.code, self.out) == (code, ""), self
        assert not any(match and match[1] in ("ERROR", "CRITICAL") for match in logged), self.err
        said = [line for line, match in zip(lines, logged, strict=True) if not match]
        assert len(said) == 1, self.err
        return said[0]


def environment(**env: str) -> dict[str, str]:
    """The environment without settings of a bot and without a screen to open a browser on."""
    plain = {name: value for name, value in os.environ.items() if name not in (*bot.SETTINGS, *SCREEN, "PYTHONPATH")}
    return plain | env


async def start(*command: str | Path, cwd: Path, **env: str) -> asyncio.subprocess.Process:
    pipe = subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        sys.executable, *map(str, command), cwd=cwd, env=environment(**env), stdin=pipe, stdout=pipe, stderr=pipe
    )


async def run(*command: str | Path, cwd: Path, **env: str) -> Done:
    """Run Python with these arguments to its end."""
    process = await start(*command, cwd=cwd, **env)
    try:
        out, err = await asyncio.wait_for(process.communicate(), 60)
    except TimeoutError:
        process.kill()
        raise
    assert process.returncode is not None
    return Done(process.returncode, out.decode(), err.decode())


async def run_on(discord: Discord, *command: str | Path, cwd: Path, **env: str) -> Done:
    """Run Python with these arguments and this Discord in its settings to its end."""
    settings = {"DISCORD_TOKEN": discord.token, "DISCORD_API": discord.api, "PYTHONPATH": str(kit.ROOT)}
    return await run(*command, cwd=cwd, **{**settings, **env})


def token_of(id: int) -> str:
    return f"{base64.b64encode(str(id).encode()).decode()}.made.up"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with bot.py and the example configuration in it, and nothing else."""
    for name in ("bot.py", "config.example.env"):
        shutil.copy(kit.ROOT / name, tmp_path)
    return tmp_path


# Help


async def test_help_names_every_command(tmp_path: Path) -> None:
    done = await run(BOT, "--help", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("usage: bot.py ")
    assert "A Discord bot that never loses a click." in done.out
    assert re.findall(r"^    (\w+)  ", done.out, re.MULTILINE) == [*COMMANDS]


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_a_help_of_its_own(command: str, here: Here) -> None:
    done = here(command, "--help")
    assert (done.code, done.err) == (0, "")
    assert re.search(r"\n\n[A-Z][^.]*\.\n", done.out), done.out


@pytest.mark.parametrize("wrong", [["nonsense"], ["run", "now"], ["--nonsense"], ["backup"], ["failed", "forget"]])
def test_a_wrong_command_line_ends_with_2_and_a_usage(wrong: list[str], here: Here) -> None:
    done = here(*wrong)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("usage: ")


# check

GOOD = "4 commands, 2 views and records: no mistakes found.\n"
NO_TOKEN = "There is no DISCORD_TOKEN yet: copy config.example.env to config.env, or try: python bot.py playground\n"


@pytest.mark.parametrize("optimized", ["", "1", "2"])
async def test_check_works_on_the_file_alone(folder: Path, optimized: str) -> None:
    """Also where asserts, or docstrings as well, are left out."""
    done = await run("bot.py", "check", cwd=folder, PYTHONOPTIMIZE=optimized)
    assert done == (0, GOOD + NO_TOKEN, "")
    left = {path.name for path in folder.iterdir()} - {"bot.py", "config.example.env", "__pycache__"}
    assert not left


async def test_check_says_nothing_of_a_token_that_is_there(folder: Path) -> None:
    (folder / "config.env").write_text(f"DISCORD_TOKEN={token_of(5)}\n")
    assert await run("bot.py", "check", cwd=folder) == (0, GOOD, "")


async def test_check_finds_the_placeholder(folder: Path) -> None:
    (folder / "config.example.env").rename(folder / "config.env")
    done = await run("bot.py", "check", cwd=folder)
    assert done.sentence.startswith("config.env line 5: DISCORD_TOKEN is still the placeholder. ")


class TooLong(bot.View):
    def render(self) -> bot.Layout:
        return bot.Row(bot.Button(self.press, label="x" * 81))

    @bot.handler
    async def press(self, ctx: bot.ComponentContext) -> None: ...


class Raising(bot.View):
    numbers: list[int]

    def render(self) -> bot.Layout:
        return bot.TextDisplay(f"{self.numbers[1]}")


class WithExample(Raising):
    @classmethod
    def example(cls) -> bot.View:
        return cls([1, 2])


class Unmade(bot.View):
    user: hikari.User

    def render(self) -> bot.Layout:
        return bot.TextDisplay(self.user.username)


class Unregistered(bot.View): ...


class Renderless(bot.View): ...


TOO_LONG = f'view too_long: button "{"x" * 30}…": label has 81 characters; Discord allows 1 to 80.'  # said by section 4
RAISING = (
    "view raising cannot be rendered: IndexError('list index out of range'). See View.example for values that fit it."
)


class Here:
    """The command line in this process, with no settings but those given."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self._capsys, self._environment = capsys, monkeypatch
        monkeypatch.chdir(folder)
        for name in bot.SETTINGS:
            monkeypatch.delenv(name, raising=False)

    def __call__(self, *words: str | Path, things: Sequence[Any] = (), **settings: str) -> Done:
        code: Any = 0
        for name, value in settings.items():
            self._environment.setenv(name, value)
        try:
            bot.main(lambda app: app.add(*things), [*map(str, words)])
        except SystemExit as ended:
            code = ended.code
        printed = self._capsys.readouterr()
        return Done(code, printed.out, printed.err)


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Here:
    return Here(capsys, monkeypatch, tmp_path)


@pytest.mark.parametrize(
    ("things", "sentences"),
    [
        ([bot.register(name="too_long")(TooLong)], [TOO_LONG]),
        ([bot.register(name="raising")(Raising)], [RAISING]),
        ([Unregistered], ["Unregistered is not registered. Write @register(name=…, version=1) above it."]),
        (
            ["poll"],
            [
                "'poll' is neither a view nor a command. Mark it with @register, @command, @listen, @every, @daily,"
                " @hook or @handler."
            ],
        ),
        ([bot.register(name="too_long")(TooLong), bot.register(name="raising")(Raising)], [TOO_LONG, RAISING]),
        (
            [bot.register(name="unmade")(Unmade)],
            ["Unmade.user would keep an object of Discord's. Keep its id: user: int"],
        ),
        (
            [bot.register(name="plain")(Renderless)],
            [
                "view plain cannot be rendered: NotImplementedError('Renderless has no render(self).')."
                " See View.example for values that fit it."
            ],
        ),
    ],
    ids=["a limit", "render raises", "no @register", "no view", "two at once", "no example", "no render"],
)
def test_check_names_what_is_wrong(things: list[Any], sentences: list[str], here: Here) -> None:
    done = here("check", things=things)
    assert (done.code, done.out, done.err.splitlines()) == (2, "", sentences)


def test_check_names_what_takes_the_place_of_something_else(here: Here, tmp_path: Path) -> None:
    text = BOT.read_text("utf-8")
    (tmp_path / "bot.py").write_text(text.replace("\ndef your_bot(", "\ndef main() -> None: ...\n\n\ndef your_bot(", 1))
    lines = (tmp_path / "bot.py").read_text().splitlines()
    ours, theirs = (number for number, line in enumerate(lines, 1) if line.startswith("def main("))
    done = subprocess.run(
        [sys.executable, "bot.py", "check"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stderr == f"bot.py: main is there twice, in line {ours} and {theirs}. Rename yours.\n"


async def swapped(event: hikari.MemberCreateEvent, ctx: bot.EventContext) -> None: ...
async def alone(event: hikari.MemberCreateEvent) -> None: ...
async def tick(ctx: bot.EventContext, more: int) -> None: ...


JOINS = bot.listen(hikari.MemberCreateEvent)


@pytest.mark.parametrize(
    ("thing", "sentence"),
    [
        (lambda: JOINS(swapped), "swapped(ctx: EventContext, event: hikari.MemberCreateEvent) -> None"),
        (lambda: JOINS(alone), "alone(ctx: EventContext, event: hikari.MemberCreateEvent) -> None"),
        (lambda: bot.every("1h")(tick), "tick(ctx: EventContext) -> None"),
        (lambda: bot.daily("09:00")(tick), "tick(ctx: EventContext) -> None"),
    ],
    ids=["swapped", "no ctx", "every", "daily"],
)
def test_check_names_a_listener_or_rhythm_that_could_not_be_called(
    thing: Callable[[], Any], sentence: str, here: Here
) -> None:
    done = here("check", things=[thing()])
    assert done.sentence == f"{sentence.partition('(')[0]} cannot be called so. Write: async def {sentence}"


def test_check_tells_what_is_marked_and_not_listed(tmp_path: Path) -> None:
    (tmp_path / "mybot.py").write_text(
        "import bot\n\n@bot.command('a', 'A.')\nasync def a(ctx: bot.CommandContext) -> None: ...\n\n"
        "@bot.register(name='b')\nclass B(bot.Record): ...\n\nbot.main(lambda app: None)\n", "utf-8",
    )  # fmt: skip
    done = subprocess.run(
        [sys.executable, "mybot.py", "check"], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(kit.ROOT)},
    )  # fmt: skip
    assert "Marked and not listed: a, B. If they belong to this bot: app.add(a, B)\n" in done.stdout


def test_check_renders_the_example_that_a_view_gives(here: Here) -> None:
    done = here("check", things=[bot.register(name="example")(WithExample)])
    assert (done.code, done.out.splitlines()[0]) == (0, "0 commands, 1 views and records: no mistakes found.")


async def test_a_bad_view_fails_the_check_of_a_file_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import bot\n"
        "@bot.register(name='wide')\n"
        "class Wide(bot.View):\n"
        "    def render(self): return bot.Row(bot.LinkButton('https://example.org', label='x' * 81))\n"
        "bot.main(lambda app: app.add(Wide))\n"
    )
    done = await run("mine.py", "check", cwd=tmp_path, PYTHONPATH=str(kit.ROOT))
    assert done.sentence == f'view wide: button "{"x" * 30}…": label has 81 characters; Discord allows 1 to 80.'


# Two ways to have a bot


async def test_an_add_on_that_imports_bot_gets_the_running_module(folder: Path) -> None:
    shutil.copy(kit.ROOT / "tests" / "bots" / "addon.py", folder)
    text = (folder / "bot.py").read_text()
    start = text.index("def your_bot(app: App)")
    end = text.index("\n\n\n", start)
    import_it = "def your_bot(app: App) -> None:\n    import addon\n    app.add(addon.which)"
    (folder / "bot.py").write_text(text[:start] + import_it + text[end:])
    async with Discord() as discord:
        process = await discord.start_bot("bot.py", cwd=folder, env=environment(STORE=":memory:"))
        await process.ready()
        used = await discord.user("alice").command("which")
        assert discord.text(used.message) == "the running one: True, True"


@pytest.mark.both_modes
@pytest.mark.parametrize("optimized", ["", "1", "2"])
async def test_a_bot_in_a_file_of_its_own_answers(tmp_path: Path, optimized: str) -> None:
    """Also where asserts, or docstrings as well, are left out."""
    async with Discord() as discord:
        process = await kit.start(discord, "mybot", tmp_path / "bot.db", PYTHONOPTIMIZE=optimized)
        alice = discord.user("alice")
        await alice.command("hello")
        assert discord.text((await alice.click("Waves: 0")).message) == "Waves: 1"
        assert await process.terminate() == 0


# What is to be mended, in one sentence


def in_mode() -> dict[str, str]:
    """Return the settings for the mode of the test."""
    return {"MODE": "rest", "WEB_PORT": "0"} if kit.Now.mode == "rest" else {}


REFUSED_TOKEN = (
    "Discord refuses the token. Copy it again from your application's page (Bot, Reset Token) to config.env."
)
REFUSED_INTENT = "Discord refuses {}. Switch it on at your application's page (Bot, Privileged Gateway Intents)."
UNKNOWN_INTENT = "Discord does not know one of the intents asked for. Look at app.intents in your_bot."


async def test_without_a_token_the_bot_says_where_it_belongs(folder: Path) -> None:
    assert (await run("bot.py", cwd=folder)).sentence == (
        "DISCORD_TOKEN is missing. Copy config.example.env to config.env and paste your token there."
    )


@pytest.mark.both_modes
async def test_a_wrong_token_is_one_sentence(tmp_path: Path) -> None:
    async with Discord() as discord:
        done = await run_on(discord, BOT, cwd=tmp_path, DISCORD_TOKEN=token_of(5), **in_mode())
        assert done.sentence == REFUSED_TOKEN


async def ending(process: BotProcess) -> Done:
    """How a bot of the playground ended; its streams are one there."""
    code = await asyncio.wait_for(process.wait(), 20)
    return Done(code, "", "\n".join(process.log))


@pytest.mark.parametrize("line", ["", "is running as process", "commands were registered"])
async def test_a_token_that_the_gateway_refuses_while_the_bot_runs_is_one_sentence(tmp_path: Path, line: str) -> None:
    """At once, in the same breath as READY, or later."""
    async with Discord() as discord:
        process = await kit.start(discord, "mybot", tmp_path / "bot.db")
        await kit.until(lambda: line in "\n".join(process.log))
        discord.gateway.drop(4004)
        assert (await ending(process)).sentence == REFUSED_TOKEN


@pytest.mark.parametrize(
    ("intents", "denied", "sentence"),
    [
        (1 << 1, 1 << 1, REFUSED_INTENT.format("GUILD_MEMBERS")),
        (1 << 15, 1 << 15, REFUSED_INTENT.format("MESSAGE_CONTENT")),
        (1 << 30, 0, UNKNOWN_INTENT),
    ],
)
async def test_an_intent_that_discord_refuses_is_one_sentence(
    tmp_path: Path, intents: int, denied: int, sentence: str
) -> None:
    async with Discord() as discord:
        discord.gateway.denied_intents = denied
        done = await run_on(discord, MYBOT, cwd=tmp_path, INTENTS=str(intents), STORE=":memory:")
        assert done.sentence == sentence
        assert discord.gateway.identifies <= 1


@pytest.mark.both_modes
@pytest.mark.slow
async def test_a_discord_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    async with Discord() as gone:
        pass
    done = await run_on(gone, BOT, cwd=tmp_path, **in_mode())
    assert done.sentence_with(1).startswith(f"Discord cannot be reached at {gone.api}: ")


async def test_a_second_copy_of_the_bot_is_told_about_the_first_which_goes_on(tmp_path: Path) -> None:
    store = tmp_path / "bot.db"
    async with Discord() as discord:
        first = await kit.start(discord, "mybot", store)
        second = await run_on(discord, BOT, cwd=tmp_path, STORE=f"sqlite:{store}")
        assert second.sentence == (f"{store} is in use by process {first.pid}. Stop it, or set STORE to another file.")
        assert (await discord.user("alice").command("hello")).state == "answered"


@on_posix
@pytest.mark.parametrize(
    "store",
    [
        "missing/bot.db",
        "file/bot.db",
        ".",
        pytest.param("locked/bot.db", marks=pytest.mark.skipif(os.name == "posix" and not os.geteuid(), reason="root")),
        pytest.param("/sys/bot.db", marks=pytest.mark.skipif(not Path("/sys").is_dir(), reason="Linux alone has it")),
    ],
)
async def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path, store: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "locked").mkdir(mode=0o500)
    path = (tmp_path / store).resolve()
    async with Discord() as discord:
        sentence = (await run_on(discord, BOT, cwd=tmp_path, STORE=f"sqlite:{path}")).sentence
    if store == "missing/bot.db":
        assert sentence == f"{path} cannot be made: there is no folder {path.parent}. Make it first."
    else:
        remedy = f"Give this user write access to it and to {path.parent}, or set STORE to another file."
        assert re.fullmatch(rf"{path}.* cannot be written \([A-Z][^)]+\)\. {remedy}", sentence)


def database(path: Path, *statements: str) -> Path:
    db = sqlite3.connect(path)
    for statement in statements:
        db.execute(statement)
    db.close()
    path.chmod(0o600)
    return path


def of_a_newer_version(path: Path) -> str:
    database(
        path,
        f"PRAGMA application_id={bot.APPLICATION_ID}",
        f"PRAGMA user_version={len(bot.MIGRATIONS) + 1}",
        "CREATE TABLE new(x)",
    )
    return (
        f"{path} was written by a newer bot.py (tables of version {len(bot.MIGRATIONS) + 1}, this one knows"
        f" {len(bot.MIGRATIONS)}). Use that bot.py, or set STORE to another file."
    )


def of_another_program(path: Path) -> str:
    database(path, "CREATE TABLE theirs(x)")
    return f"{path} is the database of another program. Set STORE to a file of the bot's own."


def of_no_program(path: Path) -> str:
    path.write_text("This is a letter and no database. " * 100)
    path.chmod(0o600)
    return f"{path} is damaged or no database (file is not a database). Restore a backup, or set STORE to another file."


@pytest.mark.parametrize("spoil", [of_a_newer_version, of_another_program, of_no_program])
async def test_a_database_that_is_not_ours_is_one_sentence_and_stays_as_it_is(tmp_path: Path, spoil: Any) -> None:
    store = tmp_path / "bot.db"
    expected = spoil(store)
    before = store.read_bytes()
    done = await run(BOT, cwd=tmp_path, DISCORD_TOKEN=token_of(5), STORE=f"sqlite:{store}")
    assert done.sentence == expected
    assert store.read_bytes() == before


@pytest.mark.parametrize("command", ["failed", "failed retry", "backup copy.db"])
@pytest.mark.parametrize("spoil", [of_a_newer_version, of_another_program, of_no_program])
def test_the_other_commands_say_the_same_of_it(tmp_path: Path, spoil: Any, command: str, here: Here) -> None:
    store = tmp_path / "bot.db"
    expected = spoil(store)
    before = store.read_bytes()
    done = here(*command.split(), DISCORD_TOKEN=token_of(5), STORE=f"sqlite:{store}")
    assert done.sentence == expected
    assert store.read_bytes() == before
    assert not (tmp_path / "copy.db").exists()


@pytest.mark.parametrize("command", ["failed", "failed retry", "failed discard interaction:1", "backup copy.db"])
def test_without_a_database_there_is_nothing_to_look_into(tmp_path: Path, command: str, here: Here) -> None:
    done = here(*command.split(), DISCORD_TOKEN=token_of(5))
    assert done.sentence == "bot.db is not there. The bot makes it when it runs for the first time."
    assert not [*tmp_path.iterdir()]


# The failed list and backups, beside a running bot and without one


async def test_failed_events_are_listed_retried_and_discarded_while_the_bot_runs_or_not(
    tmp_path: Path, here: Here
) -> None:
    store = tmp_path / "bot.db"

    async def failed(*words: str) -> str:
        settings = {"DISCORD_TOKEN": discord.token, "STORE": f"sqlite:{store}"}
        done = await asyncio.to_thread(here, "failed", *words, **settings)
        assert (done.code, done.err) == (0, ""), done
        return done.out

    async with Discord() as discord:
        process = await kit.start(discord, "mybot", store)
        uses = [await discord.user("alice").command("break") for _ in range(2)]
        keys = [f"interaction:{used.interaction['id']}" for used in uses]
        listed = (await failed()).splitlines()
        assert [line.split()[0] for line in listed] == [*keys, "2"]
        assert all("/[token]/callback (mybot.py:" in line for line in listed[:2])
        assert listed[2] == "2 failed events."

        expected = "The running bot has taken the order; its log says what came of it.\n"
        assert await failed("discard", keys[0]) == expected
        await kit.until(lambda: "as the command line asked: 1 events are discarded." in "\n".join(process.log))
        assert await process.terminate() == 0

        assert [line.split()[0] for line in (await failed("list")).splitlines()] == [keys[1], "1"]
        assert await failed("retry") == "1 events go back to the inbox.\n"
        await process.restart()
        await process.ready()
        await kit.until(lambda: kit.rows(store, "SELECT key FROM failed"))
        assert kit.rows(store, "SELECT key, runs FROM failed") == [(keys[1], 1)]
        assert await process.terminate() == 0
        assert await failed("discard") == "1 events are discarded.\n"
        assert await failed() == "0 failed events.\n"


async def test_a_backup_of_a_running_bot_is_whole_private_and_overwrites_nothing(tmp_path: Path, here: Here) -> None:
    store, copy = tmp_path / "bot.db", tmp_path / "copy.db"
    async with Discord() as discord:
        await kit.start(discord, "mybot", store)
        used = await discord.user("alice").command("hello")
        settings = {"DISCORD_TOKEN": discord.token, "STORE": f"sqlite:{store}"}
        done = await asyncio.to_thread(here, "backup", copy, **settings)
        assert done == (
            0,
            f"{copy} is a copy of {store}. To restore it, stop the bot and put it in its place.\n",
            "",
        )
        assert kit.state_of(copy, used.message or {}) == {"waves": 0}
        assert copy.stat().st_mode & 0o077 == 0 or os.name != "posix"
        before = copy.read_bytes()
        again = await asyncio.to_thread(here, "backup", copy, **settings)
        assert again.sentence == f"{copy} exists. Name a file that does not; a backup overwrites nothing."
        assert copy.read_bytes() == before


# Stopping, and what the log of a whole run holds


@on_posix
@pytest.mark.both_modes
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
async def test_a_signal_ends_the_bot_with_0_and_no_warning(tmp_path: Path, name: str) -> None:
    async with Discord() as discord:
        process = await kit.start(discord, "mybot", tmp_path / "bot.db", PYTHONWARNINGS="default::ResourceWarning")
        await discord.user("alice").command("hello")
        assert process.pid
        os.kill(process.pid, getattr(signal, name))
        assert await asyncio.wait_for(process.wait(), 20) == 0
        levels = [match and match[1] for match in map(LOG_LINE.match, process.log)]
        assert set(levels) == {"INFO"}, process.log


def sent_by_bot(discord: Discord, op: int) -> bool:
    return any(entry.data["op"] == op for entry in discord.journal.of("gateway_in"))


STAGES: dict[str, Callable[[Discord], Any]] = {
    "asking": lambda discord: discord.journal.of("rest"),
    "greeted": lambda discord: discord.journal.of("gateway_out"),
    "identifying": lambda discord: sent_by_bot(discord, 2),
    "ready": lambda discord: discord.gateway.identifies,
}


@on_posix
@pytest.mark.parametrize(
    ("mode", "stage"), [*(("gateway", each) for each in STAGES), ("rest", "asking")], indirect=["mode"]
)
async def test_a_signal_while_the_bot_starts_ends_it_as_quietly(tmp_path: Path, stage: str) -> None:
    async with Discord() as discord:
        discord.latency_s = 0.2
        env = {"PYTHONPATH": str(kit.ROOT), "STORE": f"sqlite:{tmp_path / 'bot.db'}"}
        process = await discord.start_bot(MYBOT, env=env, mode=kit.Now.mode)
        await kit.until(lambda: STAGES[stage](discord))
        assert await process.terminate() == 0, process.log
        assert {match and match[1] for match in map(LOG_LINE.match, process.log)} <= {"INFO"}, process.log


@pytest.mark.both_modes
async def test_no_secret_is_in_the_log_of_a_whole_run_nor_in_the_process_list(tmp_path: Path) -> None:
    async with Discord() as discord:
        process = await kit.start(discord, "mybot", tmp_path / "bot.db", LOG_LEVEL="DEBUG")
        alice = discord.user("alice")
        uses = [await alice.command("hello"), await alice.click("Waves: 0"), await alice.command("break")]
        discord.faults.add(path=kit.path_of_answers(), status=403, times=None)
        uses.append(await alice.click("Waves: 1", wait=False))
        await kit.until(lambda: "cannot be shown yet: Forbidden 403" in "\n".join(process.log))
        if sys.platform == "linux":
            assert discord.token not in Path(f"/proc/{process.pid}/cmdline").read_text()
        process.kill()
        await process.wait()
        discord.faults.clear()
        await process.restart()
        await process.ready()
        uses.append(await alice.command("break"))
        await process.terminate()
        log = "\n".join(process.log)
        assert "Traceback" in log, "the log of /break should hold one"
        assert ("/[token]/callback" if kit.Now.mode == "gateway" else "/[token]/messages/@original") in log
        for secret in (discord.token, *(used.interaction["token"] for used in uses)):
            assert secret not in log
        failed = await run_on(discord, BOT, "failed", cwd=tmp_path, STORE=f"sqlite:{tmp_path / 'bot.db'}")
        assert "/[token]/callback" in failed.out
        assert not any(used.interaction["token"] in failed.out for used in uses)


# The playground


async def test_the_playground_runs_this_bot_until_it_is_told_to_stop(tmp_path: Path) -> None:
    process = await start(MYBOT, "playground", "--port", "0", cwd=tmp_path, PYTHONPATH=str(kit.ROOT))
    assert process.stdout
    assert process.stderr
    try:
        async with asyncio.timeout(30), aiohttp.ClientSession() as session:
            line = (await process.stdout.readline()).decode()
            assert re.fullmatch(r"Playground: http://127\.0\.0\.1:\d+/\n", line)
            async with session.get(line.split()[1]) as page:
                assert page.status == 200
            while "is running as process" not in (said := (await process.stderr.readline()).decode()):
                assert said, "the playground ended"
            running = int(said.split("is running as process ")[1].split(".")[0])
            process.send_signal(signal.SIGTERM)
            await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
    assert process.returncode == 0
    with pytest.raises(ProcessLookupError):
        os.kill(running, 0)


async def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    async with Discord() as discord:
        port = discord.url.rsplit(":", 1)[1]
        done = await run(BOT, "playground", "--port", port, cwd=tmp_path)
        assert done.sentence == f"Port {port} is taken. Stop what uses it, or choose another one with --port."


async def test_a_port_that_is_none_ends_with_2_and_no_traceback(tmp_path: Path) -> None:
    done = await run(BOT, "playground", "--port", "99999", cwd=tmp_path)
    assert done.code == 2
    assert "Traceback" not in done.err
    assert "99999" in done.err


async def test_a_bot_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    assert (await run(BOT, "playground", "nope.py", cwd=tmp_path)).sentence == "There is no file nope.py."


async def test_the_playground_takes_no_real_token(tmp_path: Path) -> None:
    real = ".".join(("M" + "T" * 25, "GabCde", "x" * 38))
    done = await run(BOT, "playground", cwd=tmp_path, DISCORD_TOKEN=real)
    assert done.sentence.startswith("DISCORD_TOKEN in the environment looks like a production token: ")
    assert real not in done.err


async def test_the_file_alone_has_no_playground_and_says_so(folder: Path) -> None:
    assert (await run("bot.py", "playground", cwd=folder)).sentence == (
        "No module named 'playground'. The playground is a folder beside bot.py in the repository."
    )
