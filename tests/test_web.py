"""The web side as Discord and strangers meet it: interactions over HTTP, what is refused, health and metrics."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import hashlib
import hmac
import http.client
import io
import json
import logging
import os
import signal
import socket
import stat
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import hikari
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nacl.signing import SigningKey
from prometheus_client.parser import text_string_to_metric_families

import bot
from bot import AutoDefer, CommandContext, ComponentContext
from playground import Discord
from playground.endpoint import Delivery
from playground.people import Used
from tests.kit import (
    Counting,
    Json,
    Watch,
    at_rest,
    button_id,
    complaints,
    moving,
    playing,
    posting,
    rows,
    running,
    shown,
    start,
    state_of,
    until,
    view,
)

posix_only = pytest.mark.skipif(os.name != "posix", reason="a socket file, or a signal")
over_http = pytest.mark.parametrize("mode", ["rest"], indirect=True)
"""Bots of the test get their interactions over HTTP, signed by the playground; the others by a key of this file."""

KEY, OTHER_KEY = SigningKey(b"k" * 32), SigningKey(b"o" * 32)
PING = b'{"type": 1}'
NOT_SIGNED = (401, {"error": "the signature is missing or wrong"})
TOO_OLD = (401, {"error": "the timestamp is missing or too far from now"})
NO_INTERACTION = (400, {"error": "this is no interaction"})
ACCEPTED = "SELECT key FROM inbox"
UNFINISHED = "SELECT key FROM inbox WHERE done_at IS NULL UNION ALL SELECT key FROM record WHERE shown < version"
Reply = tuple[int, Any]


# A bot that believes the key of this file, and what is sent to it


def signed(body: bytes, *, at: float | None = None, key: SigningKey = KEY) -> dict[str, str]:
    """Return the headers that Discord would send with the body."""
    stamp = f"{time.time() if at is None else at:.0f}"
    return {"X-Signature-Timestamp": stamp, "X-Signature-Ed25519": key.sign(stamp.encode() + body).signature.hex()}


async def ask(url: str, body: bytes | None = None, headers: Any = None, method: str = "") -> Reply:
    """Return the status of the answer, and its JSON or else its text."""
    async with aiohttp.ClientSession() as session:
        return await ask_with(session, url, body, headers, method)


async def ask_with(
    session: aiohttp.ClientSession, url: str, body: Any = None, headers: Any = None, method: str = ""
) -> Reply:
    """Do the same with connections that are kept."""
    data = io.BytesIO(body) if isinstance(body, bytes) else body
    async with session.request(method or ("GET" if body is None else "POST"), url, data=data, headers=headers) as got:
        text = await got.text()
        return got.status, json.loads(text) if got.content_type == "application/json" else text


@dataclass(frozen=True)
class Served:
    """A running bot that takes what the key of this file signed, and its database."""

    discord: Discord
    app: bot.App
    file: Path

    @property
    def url(self) -> str:
        return f"{self.app.web.address}/interactions"

    async def post(self, body: bytes, headers: dict[str, str] | None = None) -> Reply:
        """Send it to /interactions, signed unless there are other headers."""
        return await ask(self.url, body, signed(body) if headers is None else headers)

    def accepted(self) -> list[str]:
        """Return the keys of all events that the bot has accepted."""
        return [key for (key,) in rows(self.file, ACCEPTED)]

    @property
    def connections(self) -> list[Any]:
        """The connections that the bot holds."""
        runner = self.app.web._runner
        assert runner and runner.server
        return runner.server.connections

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection to write anything to."""
        host, _, port = self.app.web.address.removeprefix("http://").rpartition(":")
        return await asyncio.open_connection(host, int(port))

    async def talk(self, *parts: bytes, end: bool = False) -> bytes:
        """Write that and return all that comes until the connection is closed; `end` closes it on this side."""
        reader, writer = await self.connect()
        for part in parts:
            writer.write(part)
        if end:
            writer.write_eof()
        try:
            async with asyncio.timeout(20):
                return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()


@contextlib.asynccontextmanager
async def serving(folder: Path, *things: Any, **settings: Any) -> AsyncIterator[Served]:
    """Run a bot in the mode rest that believes the key of this file."""
    own = {"mode": "rest", "web_port": 0, "public_key": bytes(KEY.verify_key).hex()}
    async with Discord() as discord:
        file = folder / "bot.db"
        async with running(discord, *things, store=moving(discord, file), **{**own, **settings}) as app:
            yield Served(discord, app, file)


def command(name: str = "ran") -> bytes:
    """Return the body of an interaction in which somebody uses a command."""
    user = {"id": "5", "username": "eve", "discriminator": "0", "avatar": None}
    return json.dumps(
        {"id": "4", "application_id": "1", "type": 2, "token": "x", "data": {"name": name, "type": 1}, "user": user}
    ).encode()


def noting(runs: list[str]) -> Any:
    """Return the command /ran, which notes that it ran."""

    @bot.command("ran", "Note it.", auto_defer=AutoDefer.OFF)
    async def ran(ctx: CommandContext) -> None:
        runs.append(ctx.event.key)

    return ran


def head(*more: str, method: str = "POST", path: str = "/interactions") -> bytes:
    """Return a request's head as it is sent."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: bot", *more, "", ""]).encode("latin-1")


@pytest.fixture
def short_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the bot soon give up to look at Discord for an answer that did not arrive."""
    monkeypatch.setattr(bot, "ARRIVES_AFTER_S", (0, 0.1, 0.3))


@pytest.fixture
def short_wait(short_search: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the bot soon give up to wait for an answer, too."""
    monkeypatch.setattr(bot, "FIRST_ANSWER_WITHIN_S", 0.3)


# Signatures

Wrong = Callable[[str, bytes], "tuple[dict[str, str], bytes]"]


def given_as(sign: Callable[[str, bytes], str]) -> Wrong:
    """Return what sends the body with this signature."""
    return lambda at, body: ({"X-Signature-Timestamp": at, "X-Signature-Ed25519": sign(at, body)}, body)


def right(at: str, body: bytes, key: SigningKey = KEY) -> str:
    return key.sign(at.encode() + body).signature.hex()


def by_hmac(at: str, body: bytes) -> str:
    """Sign with another algorithm, for which the public key would be the secret."""
    return hmac.new(bytes(KEY.verify_key), at.encode() + body, hashlib.sha512).hexdigest()


WRONG: dict[str, Wrong] = {
    "nothing": lambda _, body: ({}, body),
    "no signature": lambda at, body: ({"X-Signature-Timestamp": at}, body),
    "no timestamp": lambda at, body: ({"X-Signature-Ed25519": right(at, body)}, body),
    "an empty signature": given_as(lambda at, body: ""),
    "a short one": given_as(lambda at, body: right(at, body)[:-2]),
    "a long one": given_as(lambda at, body: right(at, body) + "00"),
    "half a byte less": given_as(lambda at, body: right(at, body)[:-1]),
    "no hexadecimal digits": given_as(lambda at, body: right(at, body)[:-1] + "g"),
    "letters of another alphabet": given_as(lambda at, body: "é" * 128),
    "zeros": given_as(lambda at, body: "00" * 64),
    "another key": given_as(lambda at, body: right(at, body, OTHER_KEY)),
    "another body": lambda at, body: (given_as(right)(at, body)[0], body.replace(b'"ran"', b'"run"')),
    "one byte more": lambda at, body: (given_as(right)(at, body)[0], body + b" "),
    "another time": lambda at, body: (given_as(right)(at, body)[0] | {"X-Signature-Timestamp": f"{int(at) + 1}"}, body),
    "a time with more digits": lambda at, body: (
        given_as(right)(at, body)[0] | {"X-Signature-Timestamp": f"0{at}"},
        body,
    ),
    "a time with letters of another alphabet": lambda at, body: (
        given_as(right)(at, body)[0] | {"X-Signature-Timestamp": "é"},
        body,
    ),
    "the body alone signed": given_as(lambda _, body: KEY.sign(body).signature.hex()),
    "the time after the body": given_as(lambda at, body: KEY.sign(body + at.encode()).signature.hex()),
    "another algorithm": given_as(by_hmac),
    "its hash signed": given_as(lambda at, body: KEY.sign(hashlib.sha512(at.encode() + body).digest()).signature.hex()),
    "signed as hooks are": lambda at, body: (
        {"Webhook-Id": "1", "Webhook-Timestamp": at, "Webhook-Signature": f"v1a,{right(at, body)}"},
        body,
    ),
}


@pytest.mark.usefixtures("short_wait")
async def test_whoever_does_not_sign_as_discord_does_gets_401_and_nothing_of_it_is_kept(tmp_path: Path) -> None:
    runs, at = list[str](), f"{time.time():.0f}"
    async with serving(tmp_path, noting(runs)) as served:
        answers = dict[str, Reply]()
        for name, wrong in WRONG.items():
            headers, body = wrong(at, command())
            answers[name] = await served.post(body, headers)
        assert answers == dict.fromkeys(WRONG, NOT_SIGNED)
        assert (served.accepted(), runs) == ([], [])
        await served.post(command())
        assert (served.accepted(), runs) == (["interaction:4"], ["interaction:4"])


HEADER = st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_categories=["Cc"]), max_size=200)
STAMPS = st.integers(-100_000, 100_000).map(lambda off: f"{time.time() + off:.0f}") | HEADER
SIGNATURES = st.binary(max_size=80).map(bytes.hex) | HEADER


def altered(data: bytes, bit: int) -> bytes:
    """Return the bytes with one bit turned over."""
    at, place = divmod(bit % (8 * len(data)), 8)
    return data[:at] + bytes([data[at] ^ 1 << place]) + data[at + 1 :]


async def test_no_made_up_headers_and_no_altered_request_get_past_the_signature(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    runs, answers = list[str](), set[tuple[int, bytes]]()

    def send(port: int, body: bytes, stamp: str, signature: str) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        headers = {"X-Signature-Timestamp": stamp, "X-Signature-Ed25519": signature}
        connection.request("POST", "/interactions", body, headers)
        response = connection.getresponse()
        answers.add((response.status, response.read()))
        connection.close()

    def fuzz(port: int) -> None:
        @settings(max_examples=150, deadline=None, derandomize=True, database=None)
        @given(st.binary(max_size=100) | st.just(command()), STAMPS, SIGNATURES)
        def made_up(body: bytes, stamp: str, signature: str) -> None:
            send(port, body, stamp, signature)

        @settings(max_examples=150, deadline=None, derandomize=True, database=None)
        @given(st.sampled_from(["body", "stamp", "signature"]), st.integers(0))
        def altered_on_the_way(which: str, bit: int) -> None:
            stamp, body = f"{time.time():.0f}", command()
            parts = {"body": body, "stamp": stamp.encode(), "signature": KEY.sign(stamp.encode() + body).signature}
            parts[which] = altered(parts[which], bit)
            stamp = parts["stamp"].decode("latin-1")
            if stamp.isprintable():  # a header holds nothing else
                send(port, parts["body"], stamp, parts["signature"].hex())

        made_up()
        altered_on_the_way()

    async with serving(tmp_path, noting(runs)) as served:
        await asyncio.to_thread(fuzz, int(served.app.web.address.rpartition(":")[2]))
        assert answers == {(401, json.dumps(NOT_SIGNED[1]).encode())}
        assert (served.accepted(), runs, complaints(caplog)) == ([], [], [])


@pytest.mark.usefixtures("short_wait")
@pytest.mark.parametrize("body", [PING, command()], ids=["a PING", "a command"])
async def test_what_was_signed_too_long_ago_or_too_far_ahead_is_refused(body: bytes, tmp_path: Path) -> None:
    runs, far = list[str](), bot.SIGNED_AGE_MAX_S + 60
    async with serving(tmp_path, noting(runs)) as served:
        now = time.time()
        for at in (now - far, now + far, 0, 10**11):
            assert await served.post(body, signed(body, at=at)) == TOO_OLD
        in_other_digits = "".join(chr(0xFF10 + int(digit)) for digit in f"{now:.0f}")
        for stamp in ("", "now", "-1", "1e9", in_other_digits, f"{now:.0f}.0", "9" * 30):
            headers = {"X-Signature-Ed25519": KEY.sign(stamp.encode() + body).signature.hex()}
            assert (await served.post(body, headers | {"X-Signature-Timestamp": stamp}))[0] == 401
        assert (served.accepted(), runs) == ([], [])
        for at in (now - far + 120, now + far - 120):
            assert (await served.post(body, signed(body, at=at)))[0] in (200, 202)


def test_an_old_request_is_refused_before_its_key_is_forgotten() -> None:
    assert 2 * bot.SIGNED_AGE_MAX_S <= bot.KEYS_KEPT_S


# What is in a request


async def test_a_ping_is_answered_and_not_kept(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        assert await served.post(PING) == (200, {"type": 1})
        assert served.accepted() == []


async def test_a_body_over_the_limit_is_refused_however_it_is_sent(tmp_path: Path) -> None:
    refused = 413, {"error": "Request Entity Too Large"}
    body = json.dumps({"type": 1, "more": "x" * bot.BODY_BYTES_MAX}).encode()
    fits = body[: bot.BODY_BYTES_MAX - 2] + b'"}'

    async def in_pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(body), 60_000):
            yield body[at : at + 60_000]

    packed = gzip.compress(body)
    assert len(packed) < 10_000
    async with serving(tmp_path) as served:
        assert await served.post(fits) == (200, {"type": 1})
        assert await served.post(body) == refused
        async with aiohttp.ClientSession() as session:
            assert await ask_with(session, served.url, in_pieces(), signed(body)) == refused
        assert await served.post(packed, {**signed(body), "Content-Encoding": "gzip"}) == refused
        announced = await served.talk(head("Content-Length: 999999999999"), b"x" * (2 * bot.BODY_BYTES_MAX))
        assert announced.startswith(b"HTTP/1.1 413 ")


NO_INTERACTIONS = {
    "nothing": b"",
    "no JSON": b"type=1",
    "half of it": b'{"type": 1',
    "no text": b"\xff\xfe",
    "a list": b"[]",
    "a list of interactions": b"[" + PING + b"]",
    "a text": b'"type"',
    "a number": b"1",
    "null": b"null",
    "no type": b"{}",
    "deep lists": b"[" * 100_000,
    "deep objects": b'{"type": ' * 100_000,
    "deep and whole": b"[" * 100_000 + b"]" * 100_000,
}


async def test_what_is_signed_and_no_interaction_gets_400(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(tmp_path) as served:
        answers = {name: await served.post(body) for name, body in NO_INTERACTIONS.items()}
        assert answers == dict.fromkeys(NO_INTERACTIONS, NO_INTERACTION)
        assert (served.accepted(), complaints(caplog)) == ([], [])


@pytest.mark.usefixtures("short_wait")
async def test_an_interaction_of_a_type_nobody_knows_is_on_the_failed_list(tmp_path: Path) -> None:
    bodies = [b'{"id": "7", "application_id": "1", "type": 99}', b'{"id": "8", "type": {}}', b'{"id": [], "type": 2}']
    async with serving(tmp_path) as served:
        assert [await served.post(body) for body in bodies] == [(202, "")] * 3
        failed = {str(each.key): each.failure.text for each in await served.app.failed()}
        assert failed.pop("interaction:7") == "an interaction of type 99 is not for this bot"
        assert {*failed} == {"interaction:8", f"interaction:{hashlib.sha256(bodies[2]).hexdigest()}"}


async def suggest(_: bot.AutocompleteContext, typed: str) -> list[str]:
    if typed == "x":
        raise ValueError("nothing begins with x")
    return [typed + each for each in ("a", "b")]


@bot.command("pick", "Pick one.")
async def pick(ctx: CommandContext, what: bot.Annotated[str, bot.Autocomplete(suggest)]) -> None:
    """Have something to ask suggestions for."""


@over_http
async def test_a_question_for_suggestions_is_answered_and_not_kept(tmp_path: Path, mode: str) -> None:
    async with Discord() as discord, running(discord, pick, store=moving(discord, tmp_path / "bot.db")):
        alice = discord.user("alice")
        assert [each["value"] for each in await alice.autocomplete("pick", "what", "c")] == ["ca", "cb"]
        assert await alice.autocomplete("pick", "what", "x") == []
        assert [each.status for each in await discord.delivered()] == [200, 200]
        assert rows(tmp_path / "bot.db", ACCEPTED) == []


async def test_other_methods_and_other_paths_are_refused_in_json(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        assert await ask(served.url) == (405, {"error": "Method Not Allowed"})
        assert await ask(f"{served.app.web.address}/nowhere") == (404, {"error": "Not Found"})
        assert b"\r\nAllow: POST\r\n" in await served.talk(head("Connection: close", method="DELETE"))


async def test_a_bot_on_the_gateway_takes_no_interactions_over_http(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway") as served:
        assert await served.post(PING) == (404, {"error": "Not Found"})


# The answer


def delivered(used: Used, discord: Discord) -> list[Delivery]:
    """Return the requests by which an interaction came to the bot."""
    return [each for each in discord.deliveries if each.interaction_id == used.interaction["id"]]


def requests(discord: Discord, method: str, route: str) -> list[int]:
    """Return what the bot's requests of that kind were answered with."""
    made = [each.data for each in discord.journal.of("rest") if each.data["method"] == method]
    return [each["status"] for each in made if each["route"].startswith(route)]


@over_http
async def test_a_handler_that_takes_long_is_deferred_in_the_response(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bot, "AUTO_DEFER_AFTER_S", 0.3)
    go_on = asyncio.Event()

    async def press(self: Counting, ctx: ComponentContext) -> None:
        await go_on.wait()
        self.count += 1
        await ctx.rerender()

    @bot.command("slow", "Take long.")
    async def slow(ctx: CommandContext) -> None:
        await go_on.wait()
        await ctx.respond("at last")

    async with playing(press, slow) as play:
        told, clicked = await play.alice.command("slow"), await play.click()
        answers = [delivered(used, play.discord)[0] for used in (told, clicked)]
        assert [(each.status, each.body["type"]) for each in answers] == [(200, 5), (200, 6)]
        go_on.set()
        await told.settled()
        await play.at_rest()
        assert (play.discord.text(told.message), play.shown, await play.failed()) == ("at last", 1, [])
        assert requests(play.discord, "POST", "/interactions/") == []


@over_http
async def test_with_no_answer_in_time_the_response_is_202_and_a_callback_brings_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bot, "FIRST_ANSWER_WITHIN_S", 0.3)
    go_on = asyncio.Event()

    @bot.command("slow", "Take long.", auto_defer=AutoDefer.OFF)
    async def slow(ctx: CommandContext) -> None:
        await go_on.wait()
        await ctx.respond("by callback")

    async with playing(Counting.press, slow) as play:
        used = play.alice.start_command("slow", {})
        await until(lambda: delivered(used, play.discord)[0].answer)
        [delivery] = delivered(used, play.discord)
        assert (delivery.status, delivery.body, used.state) == (202, None, "pending")
        go_on.set()
        assert play.discord.text((await used).message) == "by callback"
        assert requests(play.discord, "POST", "/interactions/") == [200]
        assert await play.failed() == []


@over_http
@pytest.mark.parametrize("delay_s", [0, 0.5])
async def test_what_follows_the_answer_waits_until_discord_has_that(delay_s: float) -> None:
    @bot.command("several", "Say several things.")
    async def several(ctx: CommandContext) -> None:
        for text in ("one", "two", "three"):
            await ctx.respond(text)

    @bot.command("again", "Ask for a form and say something.")
    async def again(ctx: CommandContext) -> None:
        await ctx.defer()
        await ctx.respond("promised")
        await ctx.respond("and more")

    async with playing(Counting.press, several, again) as play:
        discord = play.discord
        for name, count in (("several", 3), ("again", 2)):
            discord.delivery_faults.add(delay_s=delay_s)
            before = len(discord.messages())
            used = await play.alice.command(name)
            await until(lambda: len(discord.messages()) == before + count)  # noqa: B023
            assert used.state != "failed"
        texts = [discord.text(each) for each in discord.messages()[1:]]
        assert texts == ["one", "two", "three", "promised", "and more"]
        assert {*requests(discord, "POST", "/webhooks/"), *requests(discord, "PATCH", "/webhooks/")} == {200}
        assert await play.failed() == []


@over_http
@pytest.mark.usefixtures("short_search")
@pytest.mark.parametrize("drop", ["asked", "answered"])
async def test_a_click_whose_answer_is_lost_counts_and_its_message_is_repaired_through_the_channel(drop: Any) -> None:
    async with playing() as play:
        watch = Watch(play.discord, play.message)
        play.discord.delivery_faults.add(kind="component", drop=drop)
        lost = await play.click()
        others = [play.click("bob") for _ in range(3)]  # behind one whose answer may be on its way
        await asyncio.gather(*others)
        await play.at_rest()
        assert [lost.state, await play.count(), play.shown] == ["failed", 4, 4]
        assert not watch.went_back
        assert await play.failed() == []


@over_http
@pytest.mark.usefixtures("short_search")
@pytest.mark.parametrize("drop", ["asked", "answered"])
async def test_the_one_click_whose_answer_is_lost_is_shown_once(drop: Any) -> None:
    async with playing() as play:
        watch = Watch(play.discord, play.message)
        play.discord.delivery_faults.add(kind="component", drop=drop)
        assert (await play.click()).state == "failed"
        await play.at_rest()
        assert ([await play.count()], watch.counts) == ([1], [0, 1])
        assert requests(play.discord, "PATCH", "/channels/") == [200]


@over_http
@pytest.mark.usefixtures("short_search")
@pytest.mark.parametrize("drop", ["asked", "answered"])
async def test_a_command_whose_answer_is_lost_says_nothing_twice_and_is_on_the_failed_list(drop: Any) -> None:
    runs = list[str]()

    @bot.command("tell", "Say something.")
    async def tell(ctx: CommandContext) -> None:
        runs.append(ctx.event.key)
        await ctx.respond("said")

    async with playing(Counting.press, tell) as play:
        play.discord.delivery_faults.add(kind="command", drop=drop)
        assert (await play.alice.command("tell")).state == "failed"
        await until(play.failed)
        [failed] = await play.failed()
        assert failed.failure.text == "the interaction can no longer be answered"
        assert (len(play.discord.messages()), len(runs)) == (1, 1)


# Copies


class Naming(bot.Form, title="Name it", name="naming"):
    """A form to open."""

    name: str = bot.TextInput("Name")

    async def submit(self, ctx: ComponentContext) -> None: ...


PICTURE = bytes(range(256)) * 40


def answering(runs: list[str]) -> list[Any]:
    """Return commands that are answered in several ways, and note that they ran."""

    @bot.command("text", "Answer with a text.")
    async def text(ctx: CommandContext) -> None:
        runs.append("text")
        await ctx.respond("once")

    @bot.command("form", "Answer with a form.")
    async def form(ctx: CommandContext) -> None:
        runs.append("form")
        await ctx.open(Naming())

    @bot.command("files", "Answer with files.")
    async def files(ctx: CommandContext) -> None:
        runs.append("files")
        await ctx.respond([bot.File(hikari.Bytes(PICTURE, name)) for name in ("a.bin", "übung.bin")])

    return [text, form, files, Naming]


def said(delivery: Delivery) -> Any:
    """Return what a request was answered with, files and all."""
    answer = delivery.answer
    assert answer, delivery.problem
    return answer.status, answer.body, answer.files


@over_http
@pytest.mark.parametrize("name", ["text", "form", "files"])
async def test_copies_at_once_and_later_get_the_same_answer_and_run_nothing_again(name: str) -> None:
    runs = list[str]()
    async with playing(Counting.press, *answering(runs)) as play:
        discord = play.discord
        discord.delivery_faults.add(copies=3, kind="command")
        used = await play.alice.command(name)
        await discord.delivered()
        await discord.redeliver(used)
        await discord.redeliver(used, anew=True)
        first, *copies = delivered(used, discord)
        assert (used.state, first.status, len(copies)) == ("answered", 200, 4)
        assert [said(each) for each in copies] == [said(first)] * 4
        if name == "files":
            assert used.message
            kept = [(each["filename"], each["size"]) for each in used.message["attachments"]]
            assert kept == [("a.bin", len(PICTURE)), ("übung.bin", len(PICTURE))]
        assert (runs, await play.failed()) == ([name], [])
        assert len(discord.messages()) == (1 if name == "form" else 2)


@over_http
async def test_copies_of_clicks_count_once_and_the_message_goes_forward_alone() -> None:
    async with playing() as play:
        watch = Watch(play.discord, play.message)
        play.discord.delivery_faults.add(copies=3, times=None, when="answered")
        clicks = [play.click(f"person{number}") for number in range(10)]
        await asyncio.gather(*clicks)
        await play.discord.delivered()
        await asyncio.gather(*(play.discord.redeliver(each) for each in clicks))
        await play.at_rest()
        assert ([await play.count(), play.shown], watch.went_back) == ([10, 10], False)
        for each in clicks:
            first, *copies = delivered(each, play.discord)
            assert {each.status for each in copies} == {200}
            assert [said(each) for each in copies] == [said(first)] * 3


@over_http
@pytest.mark.usefixtures("short_search")
async def test_a_copy_of_a_click_that_is_still_running_waits_for_its_answer() -> None:
    go_on = asyncio.Event()

    async def press(self: Counting, ctx: ComponentContext) -> None:
        await go_on.wait()
        self.count += 1
        await ctx.rerender()

    async with playing(press) as play:
        play.discord.delivery_faults.add(kind="component", drop="asked")
        lost = await play.click()
        copy = asyncio.create_task(play.discord.redeliver(lost))
        await until(lambda: len(delivered(lost, play.discord)) == 2)
        go_on.set()
        assert ((await copy).status, (await copy).body["type"]) == (200, 7)
        await play.at_rest()
        assert [await play.count(), play.shown] == [1, 1]


@over_http
async def test_copies_that_come_after_a_kill_get_the_answer_of_before(tmp_path: Path) -> None:
    store = tmp_path / "bot.db"
    async with Discord() as discord:
        process = await start(discord, "served", store)
        used = [await discord.user("alice").command(name) for name in ("text", "form", "files")]
        await until(lambda: rows(store, "SELECT count(*) FROM inbox WHERE answer IS NOT NULL") == [(3,)])
        process.kill()
        await process.wait()
        await process.start()
        await process.ready()
        for each in used:
            copies = [await discord.redeliver(each), await discord.redeliver(each, anew=True)]
            assert [said(copy) for copy in copies] == [said(delivered(each, discord)[0])] * 2
        assert (process.log.count("ran"), rows(store, "SELECT key FROM failed")) == (3, [])


# Many at once, and those who only hold a place


def patient_discord(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Discord wait longer for an answer: how fast this machine is, is not asked."""
    for module in ("interactions", "endpoint"):
        monkeypatch.setattr(f"playground.{module}.FIRST_ANSWER_S", 60)


@over_http
async def test_a_thousand_clicks_at_once_on_twenty_records_are_all_answered_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    patient_discord(monkeypatch)
    async with playing() as play:
        posted = [(await play.alice.command("post")).message for _ in range(20)]
        several = [play.beside(each) for each in posted]
        clicks = [each.click(f"person{number}") for number in range(50) for each in several]
        await asyncio.gather(*clicks)
        answers = {(each.state, delivered(each, play.discord)[0].status) for each in clicks}
        late = ("answered", 202), ("deferred", 202)  # by a callback, where this machine took its time
        assert answers <= {("answered", 200), ("deferred", 200), *late}
        await play.at_rest()
        assert [(await each.count(), each.shown) for each in several] == [(50, 50)] * 20
        assert await play.failed() == []


async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, byte: bytes) -> bytes:
    """Write a byte now and then; return what was answered when the other side has closed."""

    async def write() -> None:
        while True:
            writer.write(byte)
            await asyncio.sleep(0.05)

    dripping = asyncio.create_task(write())
    try:
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        dripping.cancel()
        writer.close()


@over_http
async def test_two_hundred_slow_clients_are_closed_and_hold_up_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(bot, "BODY_WITHIN_S", 1)
    monkeypatch.setattr(bot, "IDLE_MAX_S", 1)
    starts = {
        "nothing": b"",
        "half a head": b"POST /interactions HTTP/1.1\r\nHost: bot\r\nX-",
        "half a body": head("Content-Length: 1000"),
        "a body of chunks": head("Transfer-Encoding: chunked") + b"ffff\r\n",
        "an idle connection": head(method="GET", path="/health"),
    }
    async with playing() as play:
        served = Served(play.discord, play.app, Path())
        slow = dict[str, list[asyncio.Task[bytes]]]()
        for name, begin in starts.items():
            for _ in range(40):
                reader, writer = await served.connect()
                writer.write(begin)
                byte = b"" if name in ("nothing", "an idle connection") else b"x"
                slow.setdefault(name, []).append(asyncio.create_task(drip(reader, writer, byte)))
        for number in range(10):
            assert (await play.click(f"person{number}")).state in ("answered", "deferred")
        async with asyncio.timeout(20):
            answers = {name: {each[:12] for each in await asyncio.gather(*tasks)} for name, tasks in slow.items()}
        too_slow = b"HTTP/1.1 408"  # which is lost where the connection is reset while the client writes on
        assert answers["half a body"] | answers["a body of chunks"] | {b""} == {too_slow, b""}
        assert [answers[name] for name in ("nothing", "half a head")] == [{b""}, {b""}]
        assert answers["an idle connection"] == {b"HTTP/1.1 200"}
        await play.at_rest()
        assert ([await play.count(), play.shown], complaints(caplog)) == ([10, 10], [])


async def test_a_connection_that_is_used_now_and_then_is_not_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bot, "IDLE_MAX_S", 2)
    async with serving(tmp_path) as served:
        reader, writer = await served.connect()
        for _ in range(6):
            writer.write(head(method="GET", path="/health"))
            assert (await reader.readline()) == b"HTTP/1.1 200 OK\r\n"
            headers = await reader.readuntil(b"\r\n\r\n")
            length = next(each for each in headers.split(b"\r\n") if each.startswith(b"Content-Length: "))
            await reader.readexactly(int(length.partition(b" ")[2]))
            await asyncio.sleep(0.5)
        writer.close()


GARBAGE = {
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
    "zeros": bytes(500),
    "words": b"this is no HTTP at all\r\n\r\n",
    "SSH": b"SSH-2.0-OpenSSH_9.6\r\n",
    "another version": b"GET / HTTP/9.9\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a long line": b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n",
    "a long header": head("A: " + "x" * 100_000),
    "many headers": head(*["A: b"] * 1000),
    "no header": head("no header"),
    "an address that is none": b"GET http://[::1 HTTP/1.1\r\nHost: bot\r\n\r\n",
    "a proxy's request": b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n",
    "an odd path": head(path="/%ff%00/../%2e%2e/etc/passwd", method="GET"),
    "another expectation": head("Expect: a miracle", "Content-Length: 3") + b"abc",
    "two lengths": head("Content-Length: 1", "Content-Length: 2") + b"abc",
    "a length and chunks": head("Content-Length: 3", "Transfer-Encoding: chunked") + b"abc",
    "no length": head("Content-Length: many") + b"abc",
    "a body cut off": head("Content-Length: 100") + b"abc",
    "no chunks": head("Transfer-Encoding: chunked") + b"zz\r\nabc",
    "no chunks later": head("Transfer-Encoding: chunked") + b"3\r\nabc\r\nzz\r\n",
    "no chunks and nowhere": head("Transfer-Encoding: chunked", path="/nowhere") + b"3\r\nabc\r\nzz\r\n",
    "chunks cut off": head("Transfer-Encoding: chunked") + b"ff\r\nabc",
    "not packed": head("Content-Encoding: gzip", "Content-Length: 3") + b"abc",
    "not packed and nowhere": head("Content-Encoding: gzip", "Content-Length: 3", path="/nowhere") + b"abc",
    "packed in an unknown way": head("Content-Encoding: br, zz", "Content-Length: 3") + b"abc",
    "an upgrade": head("Connection: Upgrade", "Upgrade: websocket", method="GET", path="/health") + b"zzzz",
    "words after a request": head(method="GET", path="/health") + b"words\r\n\r\n",
    "many requests": head(method="GET", path="/nowhere") * 500,
}


@pytest.mark.parametrize("end", [True, False], ids=["and closed", "and left open"])
async def test_what_is_no_http_costs_neither_the_bot_anything_nor_the_log_a_line(
    end: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bot, "IDLE_MAX_S", 1)
    monkeypatch.setattr(bot, "BODY_WITHIN_S", 1)
    caplog.set_level(logging.INFO)
    async with serving(tmp_path) as served:
        caplog.clear()
        answers = await asyncio.gather(*(served.talk(each, end=end) for each in GARBAGE.values()))
        statuses = {int(each.split(b" ")[1]) for each in answers if each}
        assert statuses <= {200, 400, 401, 404, 408, 413, 417}
        assert await served.post(PING) == (200, {"type": 1})
        assert [each.getMessage() for each in caplog.records] == []
        assert served.accepted() == []


async def test_who_resets_the_connection_in_the_middle_of_a_body_is_no_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with serving(tmp_path) as served:
        caplog.clear()
        _, writer = await served.connect()
        writer.write(head("Content-Length: 100") + b"abc")
        await writer.drain()
        await until(lambda: served.connections)
        await served.post(PING)
        at_once = b"\1\0\0\0\0\0\0\0"  # l_onoff, l_linger: close() sends a reset
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
        writer.transport.abort()
        await until(lambda: not served.connections)
        assert await served.post(PING) == (200, {"type": 1})
        assert [each.getMessage() for each in caplog.records] == []


async def test_a_flood_of_bad_signatures_is_refused_without_a_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with serving(tmp_path) as served, aiohttp.ClientSession() as session:
        caplog.clear()
        bad = signed(PING, key=OTHER_KEY)
        answers = await asyncio.gather(*(ask_with(session, served.url, PING, bad) for _ in range(400)))
        assert [each for each in answers if each != NOT_SIGNED] == []
        assert await served.post(PING) == (200, {"type": 1})
        assert ([each.getMessage() for each in caplog.records], served.accepted()) == ([], [])


# The end of a process, and the next one


async def is_at_rest(store: Path) -> None:
    """Wait until a process has finished everything and shown it."""
    await until(lambda: not rows(store, UNFINISHED))


@posix_only
@over_http
async def test_a_kill_before_the_answer_loses_no_click_and_the_message_is_repaired(
    tmp_path: Path,
) -> None:
    store, armed = tmp_path / "bot.db", tmp_path / "armed"
    async with Discord() as discord:
        process = await start(discord, "served", store)
        message = (await discord.user("alice").command("post")).message
        assert message
        await is_at_rest(store)
        watch = Watch(discord, message)
        for count, point in enumerate(("handler", "answer", "handler"), 1):
            armed.write_text(point, "utf-8")
            lost = discord.user(f"person{count}").click(custom_id=button_id(message), message=message["id"])
            assert await process.wait() == -signal.SIGKILL
            assert (await lost).state == "failed"
            await process.start()
            await process.ready()
            await is_at_rest(store)
            assert (len(state_of(store, message)["people"]), shown(discord, message)) == (count, count)
        await discord.endpoint.redeliver(discord.deliveries[-1].interaction_id)
        assert (state_of(store, message)["people"], watch.counts) == (["person1", "person2", "person3"], [0, 1, 2, 3])


@posix_only
@over_http
async def test_sigterm_lets_requests_that_are_under_way_be_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient_discord(monkeypatch)
    store, held = tmp_path / "bot.db", tmp_path / "held"
    held.touch()
    async with Discord() as discord:
        process = await start(discord, "served", store, DRAIN_S=60)
        alice = discord.user("alice")
        waiting = [alice.start_command("wait", {}) for _ in range(3)]
        await until(lambda: rows(store, "SELECT count(*) FROM inbox WHERE done_at IS NULL") == [(3,)])
        assert process.pid
        os.kill(process.pid, signal.SIGTERM)
        await until(lambda: any("stopping; " in line for line in process.log))
        assert (await alice.start_command("wait", {})).state == "failed"
        held.unlink()
        assert [(await used).state for used in waiting] == ["answered"] * 3
        assert await asyncio.wait_for(process.wait(), 20) == 0
        assert [discord.text(each) for each in discord.messages()] == ["waited"] * 3
        assert process.log[-1].endswith("stopped; the inbox keeps 0 events")


def holding(go_on: asyncio.Event) -> Callable[[Counting, ComponentContext], Awaitable[None]]:
    """Return a handler that waits before it counts."""

    async def press(self: Counting, ctx: ComponentContext) -> None:
        await go_on.wait()
        self.count += 1
        await ctx.rerender()

    return press


@over_http
async def test_while_it_stops_a_request_gets_503_on_old_connections_and_new_ones_are_refused() -> None:
    go_on = asyncio.Event()
    async with playing(holding(go_on), drain_s=60) as play, aiohttp.ClientSession() as session:
        address = play.app.web.address
        assert (await ask_with(session, f"{address}/health"))[0] == 200
        port = int(address.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head("Content-Length: 2"))  # half of a request
        await asyncio.sleep(0)
        click = play.click()
        await until(play.app.store.pending)
        play.app.stop()
        await until(lambda: play.app.web._is_shut)
        async with session.get(f"{address}/health") as response:
            assert (response.status, (await response.json())["status"]) == (503, "stopping")
        async with session.post(f"{address}/interactions", data=PING) as response:
            assert (response.status, response.headers["Retry-After"]) == (503, "1")
            assert await response.json() == {"error": "the bot is starting or stopping"}
        writer.write(b"{}")
        assert (await reader.readline()).startswith(b"HTTP/1.1 503 ")
        writer.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        go_on.set()
        assert (await click).state in ("answered", "deferred")
        await until(lambda: play.shown == 1)


# Keys and places


def asked_for_the_key(discord: Discord) -> int:
    """Return how often the application, which names its key, was asked for."""
    return len(requests(discord, "GET", "/oauth2/applications/@me"))


async def test_the_key_is_asked_for_once_and_kept_whatever_discord_names_later(tmp_path: Path) -> None:
    file, settings = tmp_path / "bot.db", {"mode": "rest", "web_port": 0}
    async with Discord() as discord:
        asked = list[int]()
        for _ in range(2):
            async with running(discord, store=moving(discord, file), **settings) as app:
                await discord.set_endpoint(f"{app.web.address}/interactions")
                await discord.set_endpoint(None)
            asked.append(asked_for_the_key(discord))
        assert asked == [2, 3]  # the second time for the commands alone
    async with Discord() as other, running(other, store=moving(other, file), **settings) as app:
        assert other.public_key != discord.public_key
        with pytest.raises(ValueError, match="answers a signed PING with 401"):
            await other.set_endpoint(f"{app.web.address}/interactions")


async def refused(**settings: Any) -> str:
    """Return the sentence with which a bot refuses to start."""
    things = settings.pop("things", ())
    async with Discord() as discord:
        with pytest.raises(bot.OperatorError) as error:
            async with running(discord, *things, **settings):
                pass
    return str(error.value)


async def test_a_listener_in_the_mode_rest_is_refused_in_words() -> None:
    @bot.listen(hikari.MemberCreateEvent)
    async def greet(ctx: bot.EventContext, event: hikari.MemberCreateEvent) -> None: ...

    assert await refused(things=[greet], mode="rest", web_port=0) == (
        "MODE=rest hears no events: greet would never run. Use MODE=gateway."
    )


async def test_a_port_that_is_taken_and_a_socket_without_a_folder_are_refused_by_name(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = await refused(mode="rest", web_port=port)
        assert told.startswith(f"WEB_PORT={port} at WEB_HOST=127.0.0.1 cannot be used ([Errno ")
        assert told.endswith("). Stop what uses it, make its folder, or choose another.")
    path = tmp_path / "missing" / "web.sock"
    for port in (None, 0):
        told = await refused(mode="rest", web_socket=str(path), web_port=port)
        assert told.startswith(f"WEB_SOCKET={path} cannot be used ([Errno 2] ")
    told = await refused(mode="rest", web_port=0, web_host="203.0.113.1")
    assert told.startswith("WEB_PORT=0 at WEB_HOST=203.0.113.1 cannot be used ([Errno ")


@posix_only
async def test_a_socket_file_serves_and_is_for_this_user_and_its_group_alone(tmp_path: Path) -> None:
    path, cls = tmp_path / "web.sock", view()
    for _ in range(2):  # the second time over the file of one that was killed
        with socket.socket(socket.AF_UNIX) as old:
            old.bind(str(path))
        async with Discord() as discord:
            own: Any = {"mode": "rest", "public_key": discord.public_key, "web_socket": str(path)}
            async with running(discord, cls, posting(cls), **own) as app:
                assert stat.S_IMODE(path.stat().st_mode) == 0o660
                await discord.set_endpoint(f"unix:{path}:/interactions")
                message = (await discord.user("alice").command("post")).message
                assert message
                await discord.user("alice").click("0")
                await at_rest(app.store)
                assert shown(discord, message) == 1
        assert not path.exists() or path.unlink() is None


async def test_web_path_stands_before_everything(tmp_path: Path) -> None:
    async with serving(tmp_path, web_path="/bot") as served:
        assert served.app.web.address.endswith("/bot")
        assert await served.post(PING) == (200, {"type": 1})
        assert (await ask(f"{served.app.web.address}/health"))[0] == 200
        for path in ("/interactions", "/health", "/metrics", "/hooks/x"):
            assert (await ask(served.app.web.address.removesuffix("/bot") + path, b""))[0] == 404


@pytest.mark.skipif(not socket.has_ipv6, reason="needs IPv6")
async def test_an_address_of_ipv6_is_served_and_named_as_such(tmp_path: Path) -> None:
    async with serving(tmp_path, web_host="::1") as served:
        assert served.app.web.address.startswith("http://[::1]:")
        assert await served.post(PING) == (200, {"type": 1})


# Health and metrics


SECRETS = {"hook_secrets": {"": "a secret for all hooks", "deploy": "a secret for one hook"}}


@bot.hook("deploy")
async def deploy(ctx: bot.EventContext, body: Json) -> None:
    """Take anything."""


async def test_health_tells_how_the_bot_is_and_nothing_that_is_secret(tmp_path: Path) -> None:
    async with serving(tmp_path, deploy, **SECRETS) as served:
        status, told = await ask(f"{served.app.web.address}/health")
        assert {name: told.pop(name) for name in ("uptime_s", "loop_lag_s", "store_bytes")}.keys()
        assert (status, told) == (200, {
            "status": "ok", "version": bot.__version__, "mode": "rest", "shards": [], "inbox": 0, "oldest_s": 0,
            "failed": 0, "hooks": {"deploy": "standard"},
        })  # fmt: skip
        everything = repr(served.app.config)
        for path in ("/health", "/metrics", "/hooks/deploy", "/nowhere", "/interactions"):
            everything += f"{await ask(served.app.web.address + path)}{await ask(served.app.web.address + path, b'{}')}"
        for secret in (served.discord.token, *SECRETS["hook_secrets"].values(), bytes(KEY).hex()):
            assert secret not in everything


async def health(app: bot.App) -> tuple[int, str]:
    """Return the status of the answer, and of the bot."""
    status, told = await ask(f"{app.web.address}/health")
    return status, told["status"]


@pytest.mark.parametrize("kind", ["gateway", "rest"])
async def test_health_is_503_until_discord_is_reached_and_interactions_and_hooks_are_as_well(kind: str) -> None:
    async with Discord() as discord:
        path = "/users/@me" if kind == "rest" else "/gateway/bot"
        discord.faults.add(path=path, delay_s=1)
        own: Any = {"mode": kind, "web_port": 0, "store": ":memory:", "public_key": discord.public_key, **SECRETS}
        app = bot.App(bot.Config(token=discord.token, api=discord.api, **own))
        app.add(deploy)
        task = asyncio.create_task(app.run())
        await until(lambda: hasattr(app, "web") and app.web._runner and app.web._runner.addresses)
        assert await health(app) == (503, "starting")
        answers = [await ask(f"{app.web.address}/hooks/deploy", b"{}", {"Content-Type": "application/json"})]
        answers += [await ask(f"{app.web.address}/interactions", PING)] if kind == "rest" else []
        assert {*map(str, answers)} == {str((503, {"error": "the bot is starting or stopping"}))}

        async def is_ok() -> bool:
            return await health(app) == (200, "ok")

        await until(is_ok)
        app.stop()
        await task


async def test_health_of_a_bot_whose_gateway_connection_is_gone_is_503_until_it_is_back(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway") as served:
        status, told = await ask(f"{served.app.web.address}/health")
        assert (status, [each["connected"] for each in told["shards"]]) == (200, [True])
        served.discord.gateway.drop()
        await until(lambda: is_status(served.app, "not connected"))
        await until(lambda: is_status(served.app, "ok"))


async def is_status(app: bot.App, wanted: str) -> bool:
    """Return whether /health tells this, with the HTTP status that goes with it."""
    status, told = await health(app)
    assert status == (200 if told == "ok" else 503)
    return told == wanted


async def test_health_counts_what_waits_and_what_failed() -> None:
    go_on = asyncio.Event()

    async def press(self: Counting, ctx: ComponentContext) -> None:
        await ctx.defer()
        await go_on.wait()
        raise ValueError("as it was asked to")

    async with playing(press, web_port=0) as play:
        await play.click()
        assert (await play.app.web.health())["inbox"] == 1
        go_on.set()
        await play.failed()
        told = (await ask(f"{play.app.web.address}/health"))[1]
        assert (told["inbox"], told["failed"], told["oldest_s"]) == (0, 1, 0)


async def test_metrics_are_what_prometheus_reads(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        for _ in range(3):
            await served.post(PING, {})
        await served.post(PING)
        await ask(f"{served.app.web.address}/nowhere/at/all")
        async with aiohttp.ClientSession() as session, session.get(f"{served.app.web.address}/metrics") as response:
            assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            families = {each.name: each for each in text_string_to_metric_families(await response.text())}
        gauges = [each for each in families.values() if each.type == "gauge" and each.samples]
        values = {each.name: each.samples[0].value for each in gauges}
        assert values["everclick_up"] == 1
        assert values["everclick_failed"] == values["everclick_inbox"] == 0
        assert values.keys() >= {f"everclick_{name}" for name in ("uptime_s", "oldest_s", "loop_lag_s", "store_bytes")}
        counted = {(s.labels["path"], s.labels["status"]): s.value for s in families["everclick_requests"].samples}
        assert counted == {("/interactions", "401"): 3, ("/interactions", "200"): 1, ("other", "404"): 1}
        assert families["everclick_requests"].type == "counter"


async def test_metrics_of_a_bot_on_the_gateway_have_its_shards(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway") as served:
        text = (await ask(f"{served.app.web.address}/metrics"))[1]
        families = {each.name: each for each in text_string_to_metric_families(text)}
        assert [each.labels for each in families["everclick_shard_latency_s"].samples] == [{"shard": "0"}]


async def test_without_its_package_there_are_no_metrics_and_the_answer_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    async with serving(tmp_path) as served:
        told = "there are none. Run: pip install prometheus-client"
        assert await ask(f"{served.app.web.address}/metrics") == (404, {"error": told})
