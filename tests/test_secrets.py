"""Secrets stay secret: tests/leaks.py looks through all that the suite produces, and here it is shown that it sees."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import hikari
import pytest

import bot
from playground import Discord
from playground.interactions import TOKENS_ISSUED, token_for
from tests import leaking
from tests.kit import ROOT, Counting, Now, at_rest, path_of_answers, playing
from tests.leaks import LEAKS, Leaks

TRACE = 5  # hikari's own level below DEBUG: every payload


# That a leak is seen


Run = subprocess.CompletedProcess[str]


def run_suite(file: Path, *options: str) -> Run:
    """Run pytest on that file. Its output shows secrets, so it is read past the eyes of this suite."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(file)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout
        output = process.stdout.read()
    return subprocess.CompletedProcess(command, process.returncode, output)


@pytest.fixture(scope="module")
def leaky_run() -> Run:
    """The suite of leaks, run once."""
    return run_suite(ROOT / "tests" / "leaking.py")


def places(run: Run) -> set[tuple[str, str]]:
    """Return where the run says that it has seen a secret, and in which test."""
    return set(re.findall(r"^  (.+) has \S+, in (?:\S+::)?(\w*)$", run.stdout, re.MULTILINE))


def check_that_it_fails_though_every_test_passes(run: Run) -> None:
    names = [name for name in dir(leaking) if name.startswith("test_")]
    assert f"{len(names)} passed" in run.stdout, run.stdout
    assert run.returncode == 1
    assert "places show one" in run.stdout


def test_a_run_in_which_every_test_passes_fails_when_a_secret_was_seen(leaky_run: Run) -> None:
    check_that_it_fails_though_every_test_passes(leaky_run)


def test_so_does_a_run_on_workers_which_names_the_same_places(leaky_run: Run) -> None:
    on_workers = run_suite(ROOT / "tests" / "leaking.py", "-n", "2")
    check_that_it_fails_though_every_test_passes(on_workers)
    assert places(on_workers) == places(leaky_run)


DIES_ONCE = """
import os, signal
from pathlib import Path

def test_that_takes_its_worker_with_it():
    if not (mark := Path(__file__).with_name("died")).exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_worker_that_dies_untold_fails_the_run_though_its_test_passes_when_it_is_tried_again(tmp_path: Path) -> None:
    (suite := tmp_path / "test_dies_once.py").write_text(DIES_ONCE)
    run = run_suite(suite, "-p", "tests.leaks", "-n", "1", "--reruns", "1")
    assert "1 passed, 1 rerun" in run.stdout, run.stdout
    assert "secrets: 1 workers ended and did not tell what they saw" in run.stdout
    assert run.returncode == 1


@pytest.mark.parametrize(
    ("test", "where"),
    [
        ("test_without_redaction", "log line (everclick)"),
        ("test_without_redaction", "row of a store (failed)"),
        ("test_without_cutting_the_token_out_of_what_is_kept", "row of a store (failed)"),
        ("test_in_memory", "row of a store (failed)"),
        ("test_by_a_debug_line", "log line (somebody.else)"),
        ("test_by_an_argument_of_a_bot", "arguments of a bot"),
        ("test_by_an_argument_of_a_bot", "arguments of a process"),
        ("test_by_a_line_of_a_bot", "line of a bot"),
        ("test_by_an_argument_and_the_output_of_a_command", "arguments of a process"),
        ("test_by_an_argument_and_the_output_of_a_command", "output of a process"),
        ("test_by_the_output_of_an_asyncio_process", "output of a process"),
        ("test_by_printing_it", "output of a test"),
        ("test_by_a_backup", "row of a store (failed)"),
        ("test_by_a_secret_of_another_kind", "log line (everclick)"),
    ],
)
def test_every_way_out_is_watched_and_the_test_is_named(test: str, where: str, leaky_run: Run) -> None:
    assert (where, test) in places(leaky_run), leaky_run.stdout


def test_what_holds_no_secret_is_not_told(leaky_run: Run) -> None:
    assert "::test_nothing\n" not in leaky_run.stdout


@pytest.fixture
def leaks() -> Iterator[Leaks]:
    """A search of its own, and nothing issued by this test left in the list of the whole run."""
    count = len(TOKENS_ISSUED)
    yield Leaks()
    del TOKENS_ISSUED[count:]


@pytest.mark.parametrize("of", ["an interaction", "a bot", "a hook"])
def test_a_secret_is_found_however_it_is_written(of: str, leaks: Leaks) -> None:
    if of == "a hook":
        leaks.secrets.add(secret := "s3cret/of+a hook")
    else:
        secret = token_for("1234567890123456789") if of == "an interaction" else Discord().token
    half = len(secret) // 2
    for text in (
        secret,
        f"Bot {secret}, ",
        f"https://discord.com/api/v10/webhooks/1/{secret}/messages",
        urllib.parse.quote(secret, safe=""),
        "".join(f"%{ord(each):02x}" for each in secret),
        json.dumps({"token": secret}),
        "".join(f"\\u{ord(each):04x}" for each in secret),
        repr(repr(secret)),
        f"{secret[:half]}\n{secret[half:]}",
        f"    '{secret[:half]}'\n    '{secret[half:]}'",
        f"  | {secret[:half]}\\n\n  | {secret[half:]}",
        f"{'x' * 100_000}{secret}{'x' * 100_000}",
    ):
        assert leaks.secret_in(text), text[:200]
    assert not leaks.secret_in(secret[:12] + "… and interaction:1234567890123456789")


def test_a_piece_of_an_interactions_token_is_found_too(leaks: Leaks) -> None:
    assert leaks.secret_in(f"{token_for('1234567890123456789')[:40]}…")


def test_this_run_looks_at_what_is_logged_here() -> None:
    before = LEAKS.texts["log line"]
    logging.getLogger("somebody.else").debug("x")
    assert LEAKS.texts["log line"] == before + 1


# That there is none where it would be easiest


@pytest.mark.both_modes
async def test_no_secret_is_in_hikaris_own_lines_at_its_lowest_level(caplog: pytest.LogCaptureFixture) -> None:
    for name in ("hikari", "aiohttp", "asyncio"):
        caplog.set_level(TRACE, name)

    async def fail(self: Counting, ctx: bot.ComponentContext) -> None:
        raise RuntimeError(ctx.token)

    async with playing(fail) as play:
        used = await play.click()
        play.discord.faults.add(path=path_of_answers(), status=500, times=1)
        await play.click("bob")
        play.discord.gateway.drop()
        await play.click("carol")
        await at_rest(play.app.store)
        lines = "\n".join(bot.LogFormat().format(record) for record in caplog.records)
    shows = f'"id":"{used.interaction["id"]}"' if Now.mode == "gateway" else "/[token]/messages/@original"
    assert shows in lines.replace(" ", "").replace("'", '"'), "or this test shows nothing"
    assert "[token]" in lines
    assert used.interaction["token"] not in lines
    assert not LEAKS.secret_in(lines)


@pytest.mark.both_modes
async def test_no_secret_is_in_what_python_says_of_the_bots_objects() -> None:
    said: list[str] = []

    async def look(self: Counting, ctx: bot.ComponentContext) -> None:
        app = ctx.app
        several = (ctx, app, app.config, app.gateway, app.web, app.rest, app.store, ctx.user, self)
        said.extend(f"{each!r} {each}" for each in several)
        await ctx.rerender()

    async with playing(look) as play:
        await play.click()
        said.append(repr([*asyncio.all_tasks()]))
    assert len(said) == 10
    assert not [each for each in said if LEAKS.secret_in(each)]


async def test_an_error_of_an_event_that_cannot_be_read_shows_no_token_although_hikari_prints_the_payload(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def heard(_: hikari.InteractionCreateEvent) -> None: ...

    async with playing() as play:
        play.app.gateway.subscribe(hikari.InteractionCreateEvent, heard)
        real = (await play.click()).interaction
        play.discord.send_raw("INTERACTION_CREATE", {**real, "id": "x", "entitlements": 5})
        await play.click("bob")
    lines = "\n".join(bot.LogFormat().format(record) for record in caplog.records)
    assert "Exception occurred in raw event dispatch conduit" in lines, "or this test shows nothing"
    assert "[token]" in lines
    assert real["token"] not in lines


def test_a_warning_of_pythons_shows_no_token() -> None:
    code = f"""
import bot, warnings
bot.start_logging("INFO")
warnings.warn("unclosed connection to /webhooks/1/" + "{"x" * 40}")
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "UserWarning: unclosed connection to /webhooks/1/[token]" in done.stderr
    assert "x" * 40 not in done.stderr
