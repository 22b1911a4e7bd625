"""The log: one format, and no secret in a line, a traceback or an entry of the failed list."""

from __future__ import annotations

import asyncio
import base64
import importlib.util
import io
import logging
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import hikari
import hikari.impl
import pytest
from hikari.internal import routes

import bot
from bot import Failure
from playground import Discord

ROOT = Path(__file__).resolve().parent.parent
APPLICATION = 123456789012345678
OLD_SIGNATURE, NEW_SIGNATURE = "aBcDeFgHiJkLmNoPqRsTuVwXyZ0", "x7Qk2_" * 6 + "-Z"  # 27 and 38 characters
INTERACTION_TOKEN = base64.b64encode(b"interaction:1234567890123456789:abcdefghijklmnopqrstuvwxyz").decode().rstrip("=")
LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ (DEBUG|INFO|WARNING|ERROR) +[\w.]+: .*")


def token_of(number: int, signature: str = NEW_SIGNATURE) -> str:
    """Return a bot token as Discord makes them."""
    return f"{base64.b64encode(str(number).encode()).decode().rstrip('=')}.GaBcDe.{signature}"


TOKEN = token_of(APPLICATION)
# An id's first digit decides whether its base64 begins with M, N or O, and its length whether there is padding.
TOKENS = [token_of(int(f"{digit}23456789012345678")) for digit in range(1, 10)]
TOKENS += [token_of(12345678901234567, OLD_SIGNATURE), token_of(1234567890123456789)]

URLS = [
    f"https://discord.com/api/v10/interactions/1234567890123456789/{INTERACTION_TOKEN}/callback",
    f"https://discord.com/api/v10/interactions/1234567890123456789/{INTERACTION_TOKEN}/callback?with_response=true",
    f"https://discord.com/api/v10/webhooks/{APPLICATION}/{INTERACTION_TOKEN}",
    f"https://discord.com/api/v10/webhooks/{APPLICATION}/{INTERACTION_TOKEN}?wait=true",
    f"https://discord.com/api/v10/webhooks/{APPLICATION}/{INTERACTION_TOKEN}/messages/@original",
    f"http://127.0.0.1:8765/api/v10/webhooks/{APPLICATION}/{INTERACTION_TOKEN}/messages/42",
    f"POST /webhooks/{APPLICATION}/{INTERACTION_TOKEN}",
    f"('/interactions/1/{INTERACTION_TOKEN}/callback',)",
]
SECRETS = {INTERACTION_TOKEN, *(part for token in TOKENS for part in token.split(".") if part != "GaBcDe")}


@pytest.fixture
def out() -> Iterator[io.StringIO]:
    """What this process logs, in the bot's format."""
    handler = logging.StreamHandler(io.StringIO())
    handler.setFormatter(bot.LogFormat())
    logging.getLogger().addHandler(handler)
    yield handler.stream
    logging.getLogger().removeHandler(handler)


def holds_no_secret(text: str) -> bool:
    return not [each for each in SECRETS if each in text]


# What is cut out


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize(
    "text",
    ["{}", "Bot {}", "Bot%20{}", "token_{}", "token={};", "({!r})", "'a\\n{}\\n'", '{{"token": "{}"}}', "{0},{0}"],
)
def test_a_bot_token_is_cut_out_wherever_it_stands(token: str, text: str) -> None:
    cut = bot.redact(text.format(token))
    assert holds_no_secret(cut)
    assert "[token]" in cut


@pytest.mark.parametrize("url", URLS)
def test_an_interactions_token_is_cut_out_of_every_address(url: str) -> None:
    assert bot.redact(f"404 for {url}, so") == f"404 for {url.replace(INTERACTION_TOKEN, '[token]')}, so"


@pytest.mark.parametrize(
    "text",
    [
        "hikari.impl.rest.RESTClientImpl.edit_interaction_response",
        "MessageFlagsAndPermissions.value.name",
        "OperationalErrorInTheDatabase.args.x",
        "NavigationControllerForMembers.on_state_missing.called_with_old_state",
        "Python 3.11.7, hikari 2.7.0, SQLite 3.40.1",
        "www.Many-Letters-in-a-Host-name.example-of-one.com",
        "/home/Maria/My_backups_of_the_whole_year.tar.gz",
        "https://discord.com/api/v10/channels/123456789012345678/messages/123456789012345679",
        "https://discord.com/api/v10/applications/123456789012345678/guilds/123456789012345679/commands",
        "/webhooks/123456789012345678 and /interactions/1/short/callback",
        "interaction:1234567890123456789 failed and is on the failed list: division by zero",
        "poll 0A1b2C3d4E5f6G7h8I9j was changed since it was loaded.",
        "config.env line 4: MODE is not a setting.",
        "1. Erst dies. 2. Dann das. Nichts weiter…",
        "",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert bot.redact(text) == text


# What reaches the log


@pytest.mark.parametrize("secret", [TOKEN, *URLS])
def test_no_secret_reaches_a_line_by_any_way(out: io.StringIO, secret: str) -> None:
    log = logging.getLogger("everclick")
    log.warning("%s", secret)
    log.warning(f"got {secret}")  # noqa: G004
    log.warning("%r %r", {"token": secret}, secret.encode())
    try:
        try:
            raise ValueError(secret)
        except ValueError as error:
            raise ExceptionGroup("several", [error, KeyError(secret)]) from error
    except ExceptionGroup:
        log.exception("with a traceback", stack_info=True)
    assert out.getvalue().count("[token]") >= 7
    assert holds_no_secret(out.getvalue())


def test_no_secret_reaches_the_log_by_a_line_of_code_in_a_traceback(out: io.StringIO, tmp_path: Path) -> None:
    script = tmp_path / "leaky.py"
    script.write_text(f"def leak():\n    return 1 / 0 or '{TOKEN}'\n")
    spec = importlib.util.spec_from_file_location("leaky", script)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        module.leak()
    except ZeroDivisionError:
        logging.getLogger("everclick").exception("failed")
    assert "return 1 / 0 or '[token]'" in out.getvalue()
    assert holds_no_secret(out.getvalue())


async def test_no_secret_reaches_the_log_by_a_task_that_nobody_awaits(out: io.StringIO) -> None:
    error = RuntimeError(URLS[0])
    asyncio.get_running_loop().call_exception_handler({"message": "never retrieved", "exception": error})
    assert "RuntimeError: https://discord.com" in out.getvalue()
    assert holds_no_secret(out.getvalue())


Call = Callable[[hikari.impl.RESTClientImpl], Awaitable[Any]]


@pytest.mark.parametrize(
    "call",
    [
        lambda rest: rest.create_interaction_response(1, INTERACTION_TOKEN, hikari.ResponseType.MESSAGE_CREATE, "hi"),
        lambda rest: rest.edit_interaction_response(APPLICATION, INTERACTION_TOKEN, "hi"),
        lambda rest: rest.fetch_interaction_response(APPLICATION, INTERACTION_TOKEN),
        lambda rest: rest.execute_webhook(APPLICATION, INTERACTION_TOKEN, "hi"),
        lambda rest: rest.edit_webhook_message(APPLICATION, INTERACTION_TOKEN, 42, "hi"),
    ],
)
async def test_hikaris_errors_of_a_refused_request_show_no_token(out: io.StringIO, call: Call) -> None:
    async with Discord() as discord:
        app = hikari.impl.RESTApp(url=discord.api)
        await app.start()
        async with app.acquire(discord.token, hikari.TokenType.BOT) as rest:
            try:
                await call(rest)
            except hikari.HTTPResponseError as error:
                assert INTERACTION_TOKEN in str(error), "or this test shows nothing"
                logging.getLogger("everclick").warning("it failed: %s", error, exc_info=error)
                assert holds_no_secret(Failure.of(error).text)
        await app.close()
    assert "[token]" in out.getvalue()
    assert holds_no_secret(out.getvalue())


async def test_hikaris_warnings_about_rate_limits_show_no_token(out: io.StringIO) -> None:
    route = routes.PATCH_INTERACTION_RESPONSE.compile(webhook=APPLICATION, token=INTERACTION_TOKEN)
    manager = hikari.impl.RESTBucketManager(max_rate_limit=60)
    manager.start()
    for limit, reset_after in ((5, 1.0), (3, 900.0)):
        now = asyncio.get_running_loop().time()
        manager.update_rate_limits(route, TOKEN, "abcd", limit - 1, limit, now + reset_after, reset_after)
    await manager.close()
    assert "decreased its limit" in out.getvalue(), "or this test shows nothing"
    assert holds_no_secret(out.getvalue())


# The format


def run_python(code: str, **environ: str) -> str:
    """Run the code after `import bot, logging` in a process of its own; return what it wrote to stderr."""
    done = subprocess.run(
        [sys.executable, "-c", f"import bot, logging\n{code}"],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert not done.stdout
    return done.stderr


def test_a_line_has_time_level_name_and_message(out: io.StringIO) -> None:
    logging.getLogger("everclick").warning("%d events wait", 3)
    logging.getLogger("hikari.gateway").error("gone")
    first, second = out.getvalue().splitlines()
    assert LINE.fullmatch(first)
    assert LINE.fullmatch(second)
    assert first.endswith("Z WARNING everclick: 3 events wait")
    assert second.endswith("Z ERROR   hikari.gateway: gone")


def test_times_are_in_utc_wherever_the_bot_runs() -> None:
    record = "logging.makeLogRecord({'created': 0, 'levelname': 'INFO', 'name': 'everclick', 'msg': 'hello'})"
    code = f"import sys; print(bot.LogFormat().format({record}), file=sys.stderr)"
    assert run_python(code, TZ="Asia/Tokyo") == "1970-01-01 00:00:00Z INFO    everclick: hello\n"


LEVELS = "DEBUG", "INFO", "WARNING", "ERROR"


def test_the_bots_own_lines_show_from_the_level_on_that_was_set() -> None:
    calls = "\n".join(f"bot.log.{level.lower()}('x')" for level in LEVELS)
    lines = run_python("\n".join(f"bot.start_logging({level!r})\n{calls}" for level in LEVELS)).splitlines()
    assert [line.split()[2] for line in lines] == [*LEVELS, *LEVELS[1:], *LEVELS[2:], *LEVELS[3:]]
    assert all(LINE.fullmatch(line) for line in lines)


def test_other_libraries_show_from_warning_on_and_hikari_says_more_on_debug() -> None:
    names = "hikari.gateway", "aiohttp.client"
    calls = "\n".join(f"logging.getLogger({name!r}).{level.lower()}('x')" for name in names for level in LEVELS)
    code = f"bot.start_logging('INFO')\n{calls}\nbot.log.error('debug')\nbot.start_logging('DEBUG')\n{calls}"
    on_info, on_debug = (part.splitlines() for part in run_python(code).split("everclick: debug"))
    assert [line.split()[2] for line in on_info if "hikari" in line] == ["WARNING", "ERROR"]
    assert [line.split()[2] for line in on_debug if "hikari" in line] == ["INFO", "WARNING", "ERROR"]
    for lines in (on_info, on_debug):
        assert [line.split()[2] for line in lines if "aiohttp" in line] == ["WARNING", "ERROR"]


def test_the_bots_format_takes_the_place_of_what_was_set_up_before() -> None:
    lines = run_python("logging.basicConfig()\nbot.start_logging('INFO')\nbot.start_logging('INFO')\nbot.log.info('x')")
    assert LINE.fullmatch(lines.rstrip("\n"))


def test_importing_the_bot_leaves_logging_as_it_is() -> None:
    assert run_python("assert not logging.getLogger().handlers and not bot.log.handlers and not bot.log.level") == ""


# Entries of the failed list


def raised(error: BaseException) -> BaseException:
    """Return the error with the traceback of having been raised here."""
    try:
        raise error
    except BaseException as caught:
        return caught


def test_a_failure_names_the_errors_type_message_and_place() -> None:
    failure = Failure.of(raised(KeyError("colour")))
    line = raised.__code__.co_firstlineno + 3
    assert failure == Failure("KeyError", "'colour'", f"test_logging.py:{line}")


def test_a_failures_place_is_where_it_was_raised_not_where_it_was_caught() -> None:
    with pytest.raises(ValueError, match="not a") as caught:
        bot.bot_id_of("x")
    assert Failure.of(caught.value).place.startswith("bot.py:")


def test_an_error_that_was_never_raised_has_no_place() -> None:
    assert Failure.of(RuntimeError("x")) == Failure("RuntimeError", "x", "")


@pytest.mark.parametrize("secret", [TOKEN, *URLS])
@pytest.mark.parametrize("before", [0, 300, 440, 480, 499, 600])
def test_a_failure_holds_no_secret_and_stays_short(secret: str, before: int) -> None:
    failure = Failure.of(raised(RuntimeError("." * before + " " + secret + "\nmore" * 2_000)))
    assert not [each for each in SECRETS if each[:12] in failure.text]
    assert len(failure.text) == 500
    assert "\n" not in failure.text  # one line of `failed list` each


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (
            b'{"id": "1", "token": "secret", "data": {"name": "token"}}',
            b'{"id":"1","token":"","data":{"name":"token"}}',
        ),
        (b'{"id": "1"}', b'{"id":"1"}'),
        (b'{"token": "secret", "name": "\\ud800"}', b'{"token":"","name":"?"}'),
        (b'{"token": {"deep": 1}}', b'{"token":""}'),
        (b"[1, 2]", b"[1, 2]"),
        (b"7", b"7"),
        (b"not json", b"not json"),
        (b"", b""),
    ],
)
def test_what_is_kept_of_a_failed_event_has_no_token(body: bytes, kept: bytes) -> None:
    assert bot.without_token(body) == kept
