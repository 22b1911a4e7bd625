"""Hooks as other services meet them: signed by others' code, copied, forged, too many, killed; and docs/hooks.md."""

from __future__ import annotations

import ast
import asyncio
import base64
import contextlib
import datetime
import hashlib
import hmac
import inspect
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from nacl.signing import SigningKey
from standardwebhooks import Webhook

import bot
from playground import Discord
from playground.process import BotProcess
from playground.server import free_port
from tests.kit import ROOT, Json, at_rest, grow, moving, rows, running, start, until
from tests.test_command_line import run_on
from tests.test_web import ask, ask_with

SECRET, OTHER_SECRET = (f"whsec_{base64.b64encode(each * 32).decode()}" for each in (b"s", b"o"))
KEY, OTHER_KEY = SigningKey(b"k" * 32), SigningKey(b"o" * 32)
BODY = b'{"version": 3}'
JSON_TYPE = {"Content-Type": "application/json"}
NOT_SIGNED = (401, {"error": "the signature is missing or wrong"})
TOO_OLD = (401, {"error": "the timestamp is missing or too far from now"})
COPY = (409, {"error": "this was accepted before"})
ACCEPTED = "SELECT key FROM inbox"


# How others sign


def standard(
    body: bytes, id: str = "msg_1", *, at: float | None = None, secret: str = SECRET, sign: str = ""
) -> dict[str, str]:
    """Return the headers as Standard Webhooks' own library makes them."""
    now = datetime.datetime.fromtimestamp(int(time.time() if at is None else at), datetime.UTC)
    signature = sign or Webhook(secret).sign(id, now, body.decode("utf-8", "surrogateescape"))
    stamp = f"{now.timestamp():.0f}"
    return {**JSON_TYPE, "Webhook-Id": id, "Webhook-Timestamp": stamp, "Webhook-Signature": signature}


def whpk(key: SigningKey) -> str:
    """Return the public key as senders give it."""
    return f"whpk_{base64.b64encode(bytes(key.verify_key)).decode()}"


def ed25519(body: bytes, id: str = "msg_1", *, at: float | None = None, key: SigningKey = KEY) -> dict[str, str]:
    """Return the headers with a signature that PyNaCl makes."""
    stamp = f"{time.time() if at is None else at:.0f}"
    signature = base64.b64encode(key.sign(f"{id}.{stamp}.".encode() + body).signature).decode()
    headers = {"Webhook-Id": id, "Webhook-Timestamp": stamp, "Webhook-Signature": f"v1a,{signature}"}
    return {**JSON_TYPE, **headers, "Webhook-Key": whpk(key)}


def github(body: bytes, id: str = "delivery-1", *, secret: str = SECRET, event: str = "push") -> dict[str, str]:
    """Return the headers that GitHub sends."""
    digest = hmac.digest(secret.encode(), body, "sha256").hex()
    about = {"X-GitHub-Event": event, "X-GitHub-Delivery": id, "X-GitHub-Hook-ID": "1"}
    return {**JSON_TYPE, **about, "X-Hub-Signature-256": f"sha256={digest}", "X-Hub-Signature": "sha1=00"}


# A bot with hooks, and what is sent to it


def hooked(took: list[Any], name: str = "deploy", hint: Any = Json, **options: Any) -> Any:
    """Return a hook that notes the bodies it takes."""

    async def take(ctx: bot.EventContext, body: Any) -> None:
        took.append(body)

    take.__annotations__["body"] = hint
    return bot.hook(name, **options)(take)


@dataclass(frozen=True)
class Served:
    """A running bot, and its database."""

    app: bot.App
    file: Path

    @property
    def address(self) -> str:
        return f"{self.app.web.address}/hooks"

    async def post(self, body: bytes, headers: Any, name: str = "deploy") -> tuple[int, Any]:
        return await ask(f"{self.address}/{name}", body, headers)

    async def statuses(self, name: str, *requests: tuple[bytes, Any]) -> list[int]:
        """Return what these requests, one after the other, were answered with."""
        return [(await self.post(body, headers, name))[0] for body, headers in requests]

    def accepted(self) -> list[str]:
        """Return the keys of all events that the bot has accepted."""
        return [key for (key,) in rows(self.file, ACCEPTED)]

    async def at_rest(self) -> None:
        await at_rest(self.app.store)


@contextlib.asynccontextmanager
async def serving(folder: Path, *things: Any, discord: Discord | None = None, **settings: Any) -> AsyncIterator[Served]:
    """Run a bot with these hooks, which know SECRET and KEY."""
    own: Json = {"web_port": 0, "hook_secrets": {"": SECRET}, "hook_keys": {"": whpk(KEY)}}
    async with contextlib.AsyncExitStack() as stack:
        discord = discord or await stack.enter_async_context(Discord())
        file = folder / "bot.db"
        store = moving(discord, file)
        app = await stack.enter_async_context(running(discord, *things, store=store, **{**own, **settings}))
        yield Served(app, file)


# Three ways to sign


SIGNERS: dict[str, Callable[..., dict[str, str]]] = {"standard": standard, "ed25519": ed25519, "github": github}
each_way = pytest.mark.parametrize("way", SIGNERS)


@each_way
async def test_what_another_implementation_signed_is_accepted_and_run(way: Any, tmp_path: Path) -> None:
    took = list[Any]()
    async with serving(tmp_path, hooked(took, sign=way)) as served:
        status, told = await served.post(BODY, SIGNERS[way](BODY))
        assert (status, told) == (202, {"accepted": served.accepted()[0]})
        await served.at_rest()
        assert took == [{"version": 3}]
        assert told["accepted"] == f"hook:deploy:{hashlib.sha256(BODY).hexdigest() if way == 'github' else 'msg_1'}"


async def test_githubs_documented_example_is_taken_for_signed(tmp_path: Path) -> None:
    signature = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    hook, secrets = hooked([], sign="github"), {"": "It's a Secret to Everybody"}
    async with serving(tmp_path, hook, hook_secrets=secrets) as served:
        headers = {**JSON_TYPE, "X-Hub-Signature-256": f"sha256={signature}"}
        assert (await served.post(b"Hello, World!", headers))[0] == 422  # it is signed, and no JSON
        wrong = {**JSON_TYPE, "X-Hub-Signature-256": f"sha256={signature[:-1]}8"}
        assert await served.post(b"Hello, World!", wrong) == NOT_SIGNED


@pytest.mark.parametrize("key", [bytes(KEY.verify_key).hex(), bytes(KEY.verify_key).hex().upper(), whpk(KEY)[5:]])
async def test_a_key_may_be_written_in_hexadecimal_or_base64(key: str, tmp_path: Path) -> None:
    async with serving(tmp_path, hooked([], sign="ed25519"), hook_keys={"deploy": key}) as served:
        requests = (BODY, ed25519(BODY)), (BODY, ed25519(BODY, key=OTHER_KEY))
        assert await served.statuses("deploy", *requests) == [202, 401]


async def test_a_secret_without_whsec_is_taken_as_it_stands(tmp_path: Path) -> None:
    text = "übrigens, a secret"
    as_theirs = base64.b64encode(text.encode()).decode()
    async with serving(tmp_path, hooked([]), hook_secrets={"": text}) as served:
        assert (await served.post(BODY, standard(BODY, secret=as_theirs)))[0] == 202


@pytest.mark.parametrize("rest", ["", "!" * 32, "c2VjcmV0", "s" * 21, base64.urlsafe_b64encode(b"\xff" * 32).decode()])
def test_a_whsec_that_was_not_copied_whole_is_refused_and_not_repeated(rest: str) -> None:
    with pytest.raises(bot.OperatorError) as refused:
        bot.Config.load(Path(os.devnull), {"HOOK_SECRET": f"whsec_{rest}"}, needs_token=False)
    assert str(refused.value).startswith("environment: HOOK_SECRET ")
    assert not rest or rest not in str(refused.value)
    assert bot.Config.load(Path(os.devnull), {"HOOK_SECRET": SECRET}, needs_token=False).hook_secrets == {"": SECRET}


def turned(headers: dict[str, str], **changes: str | None) -> dict[str, str]:
    """Return the headers with some changed, or taken out."""
    named = {name.replace("_", "-"): text for name, text in changes.items()}
    return {name: text for name, text in {**headers, **named}.items() if text is not None}


def signature_of(headers: dict[str, str]) -> str:
    return headers.get("Webhook-Signature") or headers["X-Hub-Signature-256"]


def wrong_ones(way: str) -> dict[str, tuple[bytes, dict[str, str]]]:
    """Return requests that are not signed as they should be."""
    right = SIGNERS[way](BODY)
    name = "X_Hub_Signature_256" if way == "github" else "Webhook_Signature"
    given, later = signature_of(right), str(int(right.get("Webhook-Timestamp", 0)) + 1)
    by_another = SIGNERS[way](BODY, **({"key": OTHER_KEY} if way == "ed25519" else {"secret": OTHER_SECRET}))
    wrong = {
        "no signature": turned(right, **{name: None}),
        "an empty one": turned(right, **{name: ""}),
        "by another": by_another,
        "cut off": turned(right, **{name: given[:-2]}),
        "without its kind": turned(right, **{name: re.split("[,=]", given, maxsplit=1)[1]}),
        "of another kind": turned(right, **{name: re.sub("^[^,=]*", "v2", given)}),
        "another alphabet": turned(right, **{name: "v1,é v1a,é sha256=é"}),
        "odd bytes": turned(right, **{name: "v1,\udcff v1a,\udcff sha256=\udcff"}),
        **{f"signed as {other} is": sign(BODY) for other, sign in SIGNERS.items() if other != way},
    }
    if way == "github":
        digest = hmac.digest(SECRET.encode(), BODY, "sha1").hex()
        wrong["with SHA-1"] = turned(right, X_Hub_Signature_256=f"sha1={digest}", X_Hub_Signature=f"sha1={digest}")
        wrong["in capitals"] = turned(right, X_Hub_Signature_256=f"sha256={given[7:].upper()}")
    else:
        wrong["another id"] = turned(right, Webhook_Id="msg_2")
        wrong["another time"] = turned(right, Webhook_Timestamp=later)
        wrong["no id"] = turned(right, Webhook_Id=None)
        wrong["an id with a dot moved"] = turned(right, Webhook_Id="msg_1.1", Webhook_Timestamp=later[1:])
        wrong["no time"] = turned(right, Webhook_Timestamp=None)
    changed = {"another body": BODY.replace(b"3", b"4"), "one byte more": BODY + b" ", "no body": b""}
    return {name: (BODY, headers) for name, headers in wrong.items()} | {
        name: (body, right) for name, body in changed.items()
    }


@each_way
async def test_what_is_not_signed_as_it_should_be_gets_401_and_changes_nothing(way: Any, tmp_path: Path) -> None:
    took = list[Any]()
    async with serving(tmp_path, hooked(took, sign=way)) as served:
        requests = wrong_ones(way)
        answers = {name: (await raw_post(served, *request))[0] for name, request in requests.items()}
        assert answers == dict.fromkeys(requests, 401)
        await served.at_rest()
        assert (served.accepted(), took) == ([], [])
        assert (await served.post(BODY, SIGNERS[way](BODY)))[0] == 202


async def raw_post(served: Served, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
    """Send it byte by byte as it is; clients would refuse to."""
    host, port = served.app.web.address.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    lines = ["POST /hooks/deploy HTTP/1.1", "Host: bot", "Connection: close", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {text}" for name, text in headers.items()]
    writer.write("\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape") + body)
    status, answer = (await reader.readline()).split(b" ")[1], await reader.read()
    writer.close()
    return int(status), answer.partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("way", ["standard", "ed25519"])
async def test_what_was_signed_too_long_ago_or_too_far_ahead_is_refused(way: Any, tmp_path: Path) -> None:
    sign, far, now = SIGNERS[way], bot.SIGNED_AGE_MAX_S + 60, time.time()
    async with serving(tmp_path, hooked([], sign=way)) as served:
        for at in (now - far, now + far, 0):
            assert await served.post(BODY, sign(BODY, at=at)) == TOO_OLD
        for stamp in ("", "now", "-1", "1e9", f"{now:.0f}.0", "9" * 30):
            assert await served.post(BODY, turned(sign(BODY), Webhook_Timestamp=stamp)) == TOO_OLD
        assert served.accepted() == []
        near = far - 120
        requests = [(BODY, sign(BODY, "a", at=now - near)), (BODY, sign(BODY, "b", at=now + near))]
        assert await served.statuses("deploy", *requests) == [202, 202]


@pytest.mark.parametrize("id", ["", "a b", "x" * 129, "é", "a/b", "a.b", "a\tb"])
async def test_an_id_that_could_not_be_a_key_is_refused(id: str, tmp_path: Path) -> None:
    async with serving(tmp_path, hooked([])) as served:
        status, answer = await raw_post(served, BODY, standard(BODY, id))
        told = {"error": "Webhook-Id is missing, or not 1 to 128 letters, digits and : _ -"}
        assert (status, json.loads(answer), served.accepted()) == (401, told, [])


async def test_one_right_signature_among_several_is_enough(tmp_path: Path) -> None:
    wrong: dict[str, list[str]] = {
        "deploy": ["v1,", "v1", "x", "v1,%%%", "v1a,A", "v2,abc", signature_of(standard(BODY, secret=OTHER_SECRET))],
        "keyed": ["v1a,", "v1a,A", "v1a,%%%", "v1,abc", "v1a,é", signature_of(ed25519(BODY, key=OTHER_KEY))],
    }
    async with serving(tmp_path, hooked([]), hooked([], "keyed", sign="ed25519")) as served:
        for name, sign in (("deploy", standard), ("keyed", ed25519)):
            for number, others in enumerate([*wrong[name], " ".join(wrong[name])]):
                right = sign(BODY, f"{name}-{number}")
                several = [f"{others} {signature_of(right)}", f"{signature_of(right)} {others}", others]
                requests = [(BODY, turned(right, Webhook_Signature=each)) for each in several]
                assert await served.statuses(name, *requests) == [202, 409, 401], others


# Copies


@each_way
async def test_a_copy_gets_409_and_runs_nothing_also_after_a_restart(way: Any, tmp_path: Path) -> None:
    took, sign = list[Any](), SIGNERS[way]
    async with Discord() as discord:
        async with serving(tmp_path, hooked(took, sign=way), discord=discord) as served:
            assert (await served.post(BODY, sign(BODY)))[0] == 202
            assert await served.post(BODY, sign(BODY)) == COPY
            await served.at_rest()
        async with serving(tmp_path, hooked(took, sign=way), discord=discord) as served:
            assert await served.post(BODY, sign(BODY)) == COPY
            assert (await served.post(BODY + b" ", sign(BODY + b" ", "msg_2")))[0] == 202
            await served.at_rest()
    assert took == [{"version": 3}] * 2


@pytest.mark.parametrize("way", ["standard", "ed25519"])
async def test_an_id_is_taken_once_whatever_comes_with_it_the_second_time(way: Any, tmp_path: Path) -> None:
    sign, other = SIGNERS[way], b'{"version": 4}'
    async with serving(tmp_path, hooked([], sign=way), hooked([], "second", sign=way)) as served:
        assert (await served.post(BODY, sign(BODY, at=time.time() - 60)))[0] == 202
        assert await served.post(other, sign(other)) == COPY
        assert (await served.post(BODY, sign(BODY), "second"))[0] == 202  # of another hook it is another


async def test_githubs_deliveries_of_one_body_are_copies_whatever_their_ids(tmp_path: Path) -> None:
    took = list[Any]()
    async with serving(tmp_path, hooked(took, sign="github")) as served:
        assert (await served.post(BODY, github(BODY, "delivery-1")))[0] == 202
        assert await served.post(BODY, github(BODY, "delivery-2")) == COPY
        assert await served.post(BODY, turned(github(BODY), X_GitHub_Delivery=None)) == COPY
        await served.at_rest()
        assert took == [{"version": 3}]


async def test_of_a_hundred_copies_at_once_one_is_accepted(tmp_path: Path) -> None:
    took = list[Any]()
    async with serving(tmp_path, hooked(took, per_minute=1_000)) as served, aiohttp.ClientSession() as session:
        url, headers = f"{served.address}/deploy", standard(BODY)
        answers = await asyncio.gather(*(ask_with(session, url, BODY, headers) for _ in range(100)))
        assert sorted(status for status, _ in answers) == [202] + [409] * 99
        await served.at_rest()
        assert took == [{"version": 3}]


# What else is refused


async def test_each_refusal_has_its_status_and_says_why(tmp_path: Path) -> None:
    large = b'"' + b"x" * bot.BODY_BYTES_MAX + b'"'
    async with serving(tmp_path, hooked([])) as served:
        url = f"{served.address}/deploy"
        assert await served.post(BODY, standard(BODY), "nobody") == (404, {"error": "there is no such hook"})
        for method in ("GET", "PUT", "DELETE", "PATCH"):
            assert await ask(url, method=method) == (405, {"error": "Method Not Allowed"})
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            assert response.headers["Allow"] == "POST"
        assert await served.post(large, standard(large)) == (413, {"error": "Request Entity Too Large"})
        for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonp", "*/*"):
            refused = 415, {"error": "Content-Type is not application/json"}
            assert await served.post(BODY, turned(standard(BODY), Content_Type=kind)) == refused
        assert served.accepted() == []
        kind = "Application/JSON; charset=utf-8"
        assert (await served.post(BODY, turned(standard(BODY), Content_Type=kind)))[0] == 202


class Deploy(msgspec.Struct):
    """What a deployment tells."""

    version: int
    by: str | None = None


FITS: list[tuple[Any, bytes, Any]] = [
    (Deploy, b'{"version": 3, "more": []}', Deploy(3)),
    (Deploy | None, b"null", None),
    (dict[str, int], b'{"a": 1}', {"a": 1}),
    (list[Deploy], b'[{"version": 1, "by": "me"}]', [Deploy(1, "me")]),
    (int, b"7", 7),
    (str, b'"\\ud800"', "?"),
    (Any, b"[1, null, {}]", [1, None, {}]),
    (datetime.datetime, b'"2026-01-02T03:04:05Z"', datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)),
]


async def test_a_body_comes_as_its_annotation_says(tmp_path: Path) -> None:
    took = {f"hook{number}": list[Any]() for number in range(len(FITS))}
    hooks = [hooked(took[name], name, hint) for name, (hint, _, _) in zip(took, FITS, strict=True)]
    async with serving(tmp_path, *hooks) as served:
        for name, (_, body, _) in zip(took, FITS, strict=True):
            assert (await served.post(body, standard(body), name))[0] == 202
        await served.at_rest()
        assert [*took.values()] == [[value] for _, _, value in FITS]
        assert await served.app.failed() == []


async def test_a_hook_without_an_annotation_takes_any_json(tmp_path: Path) -> None:
    took = list[Any]()

    @bot.hook("deploy")
    async def deploy(ctx: bot.EventContext, body) -> None:
        took.append(body)

    async with serving(tmp_path, deploy) as served:
        assert (await served.post(b"[1]", standard(b"[1]")))[0] == 202
        await served.at_rest()
        assert took == [[1]]


MISFITS: list[tuple[Any, bytes, str]] = [
    (Deploy, b'{"version": "3"}', "Expected `int`, got `str` - at `$.version`"),
    (Deploy, b"{}", "Object missing required field `version`"),
    (list[Deploy], b'[{"version": 1}, {"version": 1, "by": 2}]', "Expected `str | null`, got `int` - at `$[1].by`"),
    (dict[str, int], b'{"a": 1.5}', "at `$[...]`"),
    (Deploy, b"null", "Expected `object`, got `null`"),
    (Json, b"", ""),
    (Json, b"version=3", ""),
    (Json, b"\xff", ""),
    (Json, b'{"version": 3', ""),
    (Any, b"NaN", ""),
    (Any, b"[" * 100_000, ""),
    (Any, b"[" * 20_000 + b"]" * 20_000, ""),
    (int, b"9" * 5_000, ""),
]


async def test_what_does_not_fit_gets_422_with_the_place_and_is_not_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hooks = [hooked([], f"hook{number}", hint) for number, (hint, _, _) in enumerate(MISFITS)]
    async with serving(tmp_path, *hooks) as served:
        for number, (_, body, reason) in enumerate(MISFITS):
            headers = github_like(body)
            status, told = await served.post(body, headers, f"hook{number}")
            assert (status, [*told]) == (422, ["error"]), body[:50]
            assert told["error"].startswith("the body does not fit: ")
            assert reason in told["error"]
            assert len(told["error"]) < 1_000
        assert served.accepted() == []
        assert [each for each in caplog.records if each.exc_info] == []


def github_like(body: bytes) -> dict[str, str]:
    """Sign bytes that are no text as Standard Webhooks do: their library takes text alone."""
    stamp = f"{time.time():.0f}"
    digest = hmac.digest(base64.b64decode(SECRET[6:]), f"msg_1.{stamp}.".encode() + body, "sha256")
    return standard(b"", at=float(stamp), sign=f"v1,{base64.b64encode(digest).decode()}")


async def test_over_its_limit_a_hook_says_when_to_come_back_and_no_other_is_held_up(tmp_path: Path) -> None:
    async with serving(tmp_path, hooked([], per_minute=2), hooked([], "other", per_minute=2)) as served:
        for number in range(10):  # whoever is not its sender uses nothing up
            assert (await served.post(BODY, standard(BODY, f"{number}", secret=OTHER_SECRET)))[0] == 401
        requests = [(BODY, standard(BODY, f"msg_{number}")) for number in range(3)]
        assert await served.statuses("deploy", *requests) == [202, 202, 429]
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{served.address}/deploy", data=BODY, headers=standard(BODY, "msg_4")) as response,
        ):
            assert (response.status, await response.json()) == (429, {"error": "more than 2 requests in a minute"})
            assert 0 < int(response.headers["Retry-After"]) <= 60
        assert await served.statuses("other", *requests[:2]) == [202, 202]
        assert len(served.accepted()) == 4


async def test_a_minute_later_the_limit_is_free_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(tmp_path, hooked([], per_minute=1)) as served:
        assert await served.statuses("deploy", (BODY, standard(BODY, "1")), (BODY, standard(BODY, "2"))) == [202, 429]
        monkeypatch.setattr(bot, "MINUTE", 0.01)
        await asyncio.sleep(0.02)
        assert await served.statuses("deploy", (BODY, standard(BODY, "2"))) == [202]


async def test_a_check_may_refuse_and_then_nothing_is_kept_and_the_same_may_come_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    took, mood = list[Any](), list[Exception]()
    seen = list[Any]()

    async def check(app: bot.App, body: Deploy) -> None:
        seen.append((app, body))
        if mood:
            raise mood.pop()

    async with serving(tmp_path, hooked(took, hint=Deploy, check=check)) as served:
        mood.append(bot.HookError(410, "too late", **{"X-Since": "noon"}))
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{served.address}/deploy", data=BODY, headers=standard(BODY)) as response,
        ):
            assert (response.status, response.headers["X-Since"]) == (410, "noon")
            assert await response.json() == {"error": "too late"}
        assert [record for record in caplog.records if record.exc_info] == []
        mood.append(ValueError("a mistake in the check"))
        assert await served.post(BODY, standard(BODY)) == (500, {"error": "something went wrong"})
        [logged] = [record for record in caplog.records if record.exc_info]
        assert logged.getMessage() == "POST /hooks/{name} failed"
        assert served.accepted() == []
        assert (await served.post(BODY, standard(BODY)))[0] == 202
        await served.at_rest()
        assert (took, seen) == ([Deploy(3)], [(served.app, Deploy(3))] * 3)


async def test_a_copy_is_told_that_it_is_one_and_not_what_the_check_says_by_now(tmp_path: Path) -> None:
    used = set[int]()

    async def check(app: bot.App, body: Deploy) -> None:
        if body.version in used:
            raise bot.HookError(410, "it is used")
        used.add(body.version)

    async with serving(tmp_path, hooked([], hint=Deploy, check=check)) as served:
        first, other = (BODY, standard(BODY, id="msg_1")), (BODY, standard(BODY, id="msg_2"))
        assert await served.statuses("deploy", first, first, first, other) == [202, 409, 409, 410]


async def test_a_hook_has_its_own_secret_and_then_no_other(tmp_path: Path) -> None:
    secrets = {"": SECRET, "own": OTHER_SECRET}
    async with serving(tmp_path, hooked([]), hooked([], "own"), hook_secrets=secrets) as served:
        requests = (BODY, standard(BODY)), (BODY, standard(BODY, secret=OTHER_SECRET))
        assert await served.statuses("deploy", *requests) == [202, 401]
        assert await served.statuses("own", *requests) == [401, 202]


async def test_a_refusal_is_told_in_the_log_once_for_each_hook(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path, hooked([]), hooked([], "second")) as served:
        for _ in range(3):
            for name in ("deploy", "second"):
                await served.post(BODY, standard(BODY, secret=OTHER_SECRET), name)
        told = [each.getMessage() for each in caplog.records if "was refused" in each.getMessage()]
        why = f"was refused: the signature is missing or wrong. {bot.SAME_SECRET}"
        assert told == [f"a request to the hook {name} {why}" for name in ("deploy", "second")]


# Keys


def refusals(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if "another key" in each.getMessage()]


async def test_the_first_key_is_pinned_and_another_is_refused_until_it_is_trusted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fingerprint = hashlib.sha256(bytes(OTHER_KEY.verify_key)).hexdigest()
    own: Json = {"pin_keys": True, "hook_keys": {}}
    async with Discord() as discord:
        async with serving(tmp_path, hooked([], sign="ed25519"), discord=discord, **own) as served:
            forged = turned(ed25519(BODY, "0", key=OTHER_KEY), Webhook_Key=whpk(KEY))
            no_key = turned(ed25519(BODY, "0"), Webhook_Key=None)
            assert await served.statuses("deploy", (BODY, forged), (BODY, no_key)) == [401, 401]
            assert await served.app.store.pinned("deploy") is None  # who cannot sign pins nothing
            assert (await served.post(BODY, ed25519(BODY, "1")))[0] == 202
        async with serving(tmp_path, hooked([], sign="ed25519"), discord=discord, **own) as served:
            told = f"another key is pinned than the one with the fingerprint {fingerprint}"
            for _ in range(3):
                assert await served.post(BODY, ed25519(BODY, "2", key=OTHER_KEY)) == (401, {"error": told})
            assert refusals(caplog) == [
                f"a request to the hook deploy was refused: {told}. "
                f"If its sender has a new one: python {Path(sys.argv[0]).name} trust deploy {fingerprint}"
            ]
            assert (await served.post(BODY, ed25519(BODY, "2")))[0] == 202
            await served.app.store.pin("deploy", fingerprint, replace=True)
            requests = (BODY, ed25519(BODY, "3", key=OTHER_KEY)), (BODY, ed25519(BODY, "4"))
            assert await served.statuses("deploy", *requests) == [202, 401]


async def test_a_key_in_the_settings_wins_over_a_pinned_one_and_the_one_in_the_request(tmp_path: Path) -> None:
    async with serving(tmp_path, hooked([], sign="ed25519"), pin_keys=True) as served:
        await served.app.store.pin("deploy", hashlib.sha256(bytes(OTHER_KEY.verify_key)).hexdigest())
        requests = (BODY, ed25519(BODY, "1", key=OTHER_KEY)), (BODY, ed25519(BODY, "2"))
        without = BODY, turned(ed25519(BODY, "3"), Webhook_Key=None)
        assert await served.statuses("deploy", *requests, without) == [401, 202, 202]


@pytest.mark.parametrize("given", ["", "x", "whpk_", "whpk_AAAA", "é", "0" * 64, "whpk_" + "A" * 43 + "="])
async def test_a_key_that_is_none_is_refused_and_not_pinned(given: str, tmp_path: Path) -> None:
    async with serving(tmp_path, hooked([], sign="ed25519"), pin_keys=True, hook_keys={}) as served:
        assert (await raw_post(served, BODY, turned(ed25519(BODY), Webhook_Key=given)))[0] == 401
        assert await served.app.store.pinned("deploy") is None


# What the handler is given, and what becomes of it


async def test_the_handler_sees_the_senders_headers_and_nothing_that_proves_who_it_is(tmp_path: Path) -> None:
    given = list[Any]()

    @bot.hook("deploy", sign="github")
    async def deploy(ctx: bot.EventContext, body: Json) -> None:
        given.append(dict(ctx.headers))

    async with serving(tmp_path, deploy) as served:
        names = ("Authorization", "Cookie", "X-Gitlab-Token", "X-Auth-Key", "X-My-Secret", "X-Signature-Time")
        private = dict.fromkeys(names, "Bearer x")
        headers = github(BODY, event="release") | private | {"X-Odd": "a\udcffb"}
        assert (await raw_post(served, BODY, headers))[0] == 202
        await served.at_rest()
        about = {"x-github-event": "release", "x-github-delivery": "delivery-1", "x-github-hook-id": "1"}
        assert given == [about | {"x-odd": "a?b"}]
        kept = str(rows(served.file, "SELECT * FROM inbox")) + str(served.accepted())
        for secret in (signature_of(headers).removeprefix("sha256="), SECRET, "Bearer"):
            assert secret not in kept


@bot.register(name="released")
class Released(bot.Record):
    """What was released."""

    versions: list[int] = bot.field(default_factory=list[int])


async def test_records_change_with_the_event_and_a_failure_is_kept_and_can_be_retried(tmp_path: Path) -> None:
    fails = [True]

    @bot.hook("deploy")
    async def deploy(ctx: bot.EventContext, body: Deploy) -> None:
        (await ctx.record(Released)).versions.append(body.version)
        if fails:
            raise ValueError("not now")

    async with serving(tmp_path, deploy, Released) as served:

        async def released() -> list[int]:
            async with served.app.record(Released) as record:
                return record.versions

        assert (await served.post(BODY, standard(BODY)))[0] == 202
        await until(served.app.failed)
        [failed] = await served.app.failed()
        assert (failed.key, failed.applied, failed.failure.text) == ("hook:deploy:msg_1", False, "not now")
        assert (await released(), rows(served.file, "SELECT key FROM record")) == ([], [])
        assert await served.post(BODY, standard(BODY)) == COPY
        fails.clear()
        assert await served.app.retry_failed(failed.key) == 1
        await served.at_rest()
        assert (await released(), await served.app.failed()) == ([3], [])


async def test_an_accepted_request_of_a_hook_that_is_gone_is_on_the_failed_list(tmp_path: Path) -> None:
    async def wait(ctx: bot.EventContext, body: Json) -> None:
        await asyncio.Event().wait()

    async with Discord() as discord:
        async with serving(tmp_path, bot.hook("deploy")(wait), discord=discord, drain_s=0) as served:
            assert (await served.post(BODY, standard(BODY)))[0] == 202
        async with serving(tmp_path, discord=discord) as served:
            await until(served.app.failed)
            [failed] = await served.app.failed()
            assert failed.failure.text == "there is no hook deploy. Is it listed in your_bot?"


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
@pytest.mark.parametrize("mode", ["gateway", "rest"], indirect=True)
async def test_a_kill_right_after_202_loses_nothing_and_the_handler_counts_once(mode: str, tmp_path: Path) -> None:
    store, held = tmp_path / "bot.db", tmp_path / "held"
    async with Discord() as discord:
        web = {"WEB_PORT": free_port(), "HOOK_SECRET": discord.hooks.secret}
        process = await start(discord, "served", store, **web)
        held.touch()
        for version in (3, 4):
            answer = await discord.send_hook("deploy", {"version": version}, id=f"msg_{version}")
            assert answer == (202, {"accepted": f"hook:deploy:msg_{version}"})
        process.kill()
        await process.wait()
        held.unlink()
        assert rows(store, "SELECT count(*) FROM inbox WHERE done_at IS NULL") == [(2,)]
        await process.start()
        await process.ready()
        await until(lambda: rows(store, "SELECT count(*) FROM inbox WHERE done_at IS NULL") == [(0,)])
        [(state,)] = rows(store, "SELECT data FROM record WHERE name='deploys'")
        assert sorted(json.loads(state)["versions"]) == [3, 4]
        assert (await discord.send_hook("deploy", {"version": 3}, id="msg_3")).status == 409


async def test_on_a_full_disk_the_answer_is_503_and_the_same_is_taken_when_there_is_room(
    small_disk: Path,
) -> None:
    took, answers = list[Any](), [(202, None)]
    large = json.dumps({"more": "x" * 50_000}).encode()
    async with Discord() as discord:
        with pytest.raises(bot.StoreError, match="cannot grow"):
            async with serving(small_disk, hooked(took, per_minute=1_000), discord=discord) as served:
                while answers[-1][0] == 202:
                    answers.append(await served.post(large, standard(large, f"msg_{len(answers)}")))
        assert answers[-1] == (503, {"error": "it cannot be kept now"})
        grow(small_disk)
        async with serving(small_disk, hooked(took), discord=discord) as served:
            number = len(answers) - 1
            last, before = ((large, standard(large, f"msg_{number - back}")) for back in (0, 1))
            assert await served.statuses("deploy", last, before) == [202, 409]
            await served.at_rest()
            assert len(took) == number


async def test_hooks_work_in_the_mode_rest_too(tmp_path: Path) -> None:
    took = list[Any]()
    async with serving(tmp_path, hooked(took), mode="rest") as served:
        assert (await served.post(BODY, standard(BODY)))[0] == 202
        await served.at_rest()
        assert took == [{"version": 3}]


# A bot whose hooks cannot be


async def refused(*hooks: Any, **settings: Any) -> str:
    """Return the sentence with which a bot refuses to start."""
    async with Discord() as discord:
        with pytest.raises(bot.OperatorError) as error:
            async with running(discord, *hooks, web_port=0, **settings):
                pass
    return str(error.value)


async def test_a_hook_that_nobody_could_sign_for_is_refused_in_words() -> None:
    same = "into config.env: the same that its sender has."
    assert await refused(hooked([])) == f"hook 'deploy' has no secret. Write HOOK_SECRET_DEPLOY=… {same}"
    keyed = hooked([], "by_key", sign="ed25519")
    key = "into config.env: its sender's public key, or PIN_KEYS=true."
    told = f"hook 'by_key' has no key. Write HOOK_KEY_BY_KEY=… {key}"
    assert await refused(keyed, hook_secrets={"": SECRET}) == told


async def one(body: Json) -> None: ...


def plain(ctx: bot.EventContext, body: Json) -> None: ...


async def swapped(body: Json, ctx: bot.EventContext) -> None: ...


async def odd(ctx: bot.EventContext, body: Nowhere) -> None: ...  # noqa: F821  # type: ignore  # not there


async def bare(ctx: bot.EventContext, body: Bare) -> None: ...


class Bare:
    version: int


async def good(ctx: bot.EventContext, body: Json) -> None: ...


MISTAKES: list[tuple[Any, str, dict[str, Any], str]] = [
    (good, "Deploy", {}, "hook 'Deploy' is no name. Use up to 32 of a-z, 0-9 and _, a letter first."),
    (good, "_discord", {}, "hook '_discord' is no name."),
    (good, "a/b", {}, "hook 'a/b' is no name."),
    (good, "", {}, "hook '' is no name."),
    (good, "deploy", {"sign": "md5"}, "hook 'deploy': sign='md5' is no way to sign. There are standard, ed25519,"),
    (good, "deploy", {"per_minute": 0}, "hook 'deploy': per_minute is 1 at least."),
    (one, "deploy", {}, "one cannot be called so. Write: async def one(ctx: EventContext, body: dict) -> None"),
    (plain, "deploy", {}, "plain cannot be called so. Write: async def plain(ctx: EventContext, body: dict) -> None"),
    (swapped, "deploy", {}, "swapped cannot be called so. Write: async def swapped(ctx: EventContext, body: dict)"),
    (bare, "deploy", {}, "hook 'deploy': Bare cannot be read from JSON. Write class Bare(msgspec.Struct)."),
    (odd, "deploy", {}, "hook 'deploy': name 'Nowhere' is not defined. Use types such as int or str"),
]


@pytest.mark.parametrize(("function", "name", "options", "told"), MISTAKES)
def test_a_hook_that_cannot_be_is_refused_in_words(function: Any, name: str, options: Json, told: str) -> None:
    function.__dict__.pop("hook", None)  # the mark of another row of the table
    with pytest.raises(bot.OperatorError) as error:
        bot.App(bot.Config()).add(bot.hook(name, **options)(function))
    assert str(error.value).startswith(told)


def test_two_hooks_of_one_name_are_refused_in_words() -> None:
    with pytest.raises(bot.OperatorError, match=r"deploy is there twice\. Rename one of the two functions\."):
        bot.App(bot.Config()).add(hooked([]), hooked([]))


async def test_without_a_port_hooks_are_off_and_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    async with Discord() as discord, running(discord, hooked([]), hook_secrets={"": SECRET}):
        assert "the hooks deploy are not served. Set WEB_PORT." in caplog.messages


# How signatures are compared


async def test_every_secret_signature_is_compared_in_constant_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = list[tuple[bytes, bytes]]()

    def compare_digest(one: Any, other: Any, original: Any = hmac.compare_digest) -> bool:
        compared.append((one, other))
        return original(one, other)

    monkeypatch.setattr(hmac, "compare_digest", compare_digest)
    async with serving(tmp_path, hooked([]), hooked([], "hub", sign="github")) as served:
        for name, headers in (("deploy", standard(BODY)), ("hub", github(BODY))):
            assert (await served.post(BODY, headers, name))[0] == 202
            assert compared.pop() == (signature_of(headers).encode(),) * 2
            assert compared == []


def test_nothing_that_is_signed_or_secret_is_compared_with_an_operator() -> None:
    among = {"hook.sign == 'github'", "hook.sign == 'standard'", "len(text) == 64"}
    among |= {"(await store.pinned(hook.name) or await store.pin(hook.name, fingerprint)) != fingerprint"}  # public
    checked: list[Any] = [bot.Signed, bot.is_signed, bot.is_among, bot.check_discord, bot.hmac_of, bot.read_key]
    for function in (*checked, bot.Web._verify):
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        compares = [node for node in ast.walk(tree) if isinstance(node, ast.Compare)]
        equal = [node for node in compares if any(isinstance(each, ast.Eq | ast.NotEq | ast.In) for each in node.ops)]
        assert {ast.unparse(node) for node in equal} <= among


# docs/hooks.md

PAGE = ROOT / "docs" / "hooks.md"
TEXT = PAGE.read_text("utf-8") if PAGE.exists() else ""
PARTS = dict(part.split("\n", 1) for part in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
of_the_page = pytest.mark.skipif(not TEXT, reason="docs/hooks.md is not here")
SHOWN = {
    "A first one": ["python", "sh"],
    "With curl": ["sh"],
    "With Python": ["python"],
    "Refusing": ["python"],
    "GitHub": ["python"],
    "Keys instead of secrets": ["python", "python"],
    "Another key": ["text", "sh"],
}
"""The code on the page. Each of it is run below."""


def code(part: str, number: int = 0) -> str:
    return BLOCK.findall(PARTS[part])[number][1]


@dataclass
class Reader:
    """Somebody who follows the page: a folder with the bot and its settings, and the Discord it is in."""

    discord: Discord
    folder: Path
    port: int

    def shell(self, script: str, **env: str) -> str:
        """Run what stands in a block, and return what it prints."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        settings = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), **self.token, **env}
        command = ["sh", "-eu", "-c", self.here(script)]
        done = subprocess.run(command, cwd=self.folder, env=settings, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def here(self, text: str) -> str:
        """Return the text with this test's port and channel in it."""
        channel = next(each["id"] for each in self.discord.world.guild_channels() if each["name"] == "general")
        return text.replace("8080", str(self.port)).replace("123456789012345678", channel)

    @property
    def token(self) -> dict[str, str]:
        store = f"sqlite:{self.folder / 'bot.db'}"
        return {"DISCORD_TOKEN": self.discord.token, "DISCORD_API": self.discord.api, "STORE": store}

    @property
    def settings(self) -> dict[str, str]:
        lines = (self.folder / "config.env").read_text("utf-8").splitlines()
        return dict(line.split("=", 1) for line in lines)

    def set(self, line: str) -> None:
        with (self.folder / "config.env").open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    async def run(self, bot_py: str) -> BotProcess:
        """Start the bot of a block."""
        (self.folder / "mybot.py").write_text(self.here(bot_py), "utf-8")
        env = {"PYTHONPATH": str(ROOT), **self.token}
        process = await self.discord.start_bot(self.folder / "mybot.py", env=env, cwd=self.folder)
        await process.ready()

        async def is_well() -> bool:
            return (await ask(f"http://127.0.0.1:{self.port}/health"))[0] == 200

        await until(is_well)
        return process

    def says(self, channel: str = "general") -> list[str]:
        return [self.discord.text(each) for each in self.discord.messages(channel)]

    async def send(self, script: str, *args: str, **env: str) -> list[str]:
        """Run a sender of the page, and return the lines it prints."""
        file = self.folder / "sender.py"
        file.write_text(self.here(script), "utf-8")
        done = await run_on(self.discord, file, *args, cwd=self.folder, **env)
        assert (done.code, done.err) == (0, "")
        return done.out.splitlines()


@contextlib.asynccontextmanager
async def reading(folder: Path) -> AsyncIterator[Reader]:
    """Read as far as the settings are there."""
    async with Discord() as discord:
        reader = Reader(discord, folder, free_port())
        await asyncio.to_thread(reader.shell, code("A first one", 1))
        yield reader


@of_the_page
def test_every_block_of_the_page_is_run_by_a_test() -> None:
    shown = {part: [kind for kind, _ in BLOCK.findall(text)] for part, text in PARTS.items()}
    assert {part: kinds for part, kinds in shown.items() if kinds} == SHOWN
    assert TEXT.count("```") == 2 * sum(map(len, SHOWN.values()))
    assert re.findall(r"\]\(#([\w-]+)\)", TEXT) == [title.lower().replace(" ", "-") for title in PARTS]


@of_the_page
@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("openssl")), reason="needs curl and openssl")
async def test_the_first_hook_of_the_page_is_called_with_curl_and_with_python(tmp_path: Path) -> None:
    async with reading(tmp_path) as reader:
        await reader.run(code("A first one"))
        answer = json.loads(await asyncio.to_thread(reader.shell, code("With curl")))
        assert re.fullmatch(r"hook:deploy:msg_[0-9a-f]{24}", answer["accepted"])
        await until(lambda: reader.says() == ["Version 3 is out."])
        secret = reader.settings["HOOK_SECRET"]
        assert await reader.send(code("With Python"), HOOK_SECRET=secret) == ["202"]
        assert await reader.send(code("With Python"), HOOK_SECRET=secret) == ["409"]
        assert await reader.send(code("With Python"), HOOK_SECRET=OTHER_SECRET) == ["401"]
        await until(lambda: reader.says() == ["Version 3 is out.", "Version 4 is out."])


@of_the_page
async def test_the_check_of_the_page_lets_no_older_version_in(tmp_path: Path) -> None:
    async with reading(tmp_path) as reader:
        process = await reader.run(code("Refusing"))
        address, secret = f"http://127.0.0.1:{reader.port}", reader.settings["HOOK_SECRET"]

        async def send(version: int) -> tuple[int, Any]:
            return await reader.discord.send_hook("deploy", {"version": version}, address=address, secret=secret)

        assert (await send(3))[0] == 202
        await until(lambda: rows(tmp_path / "bot.db", "SELECT data FROM record") == [(b'{"version":3}',)])
        assert await send(3) == (410, {"error": "version 3 is out already"})
        assert (await send(4))[0] == 202
        assert await process.terminate() == 0


@of_the_page
async def test_the_github_hook_of_the_page_tells_of_a_push_and_not_of_a_ping(tmp_path: Path) -> None:
    async with reading(tmp_path) as reader:
        reader.set("HOOK_SECRET_CI=what stands on GitHub's page")
        await reader.run(code("GitHub"))
        url, secret = f"http://127.0.0.1:{reader.port}/hooks/ci", "what stands on GitHub's page"
        push = json.dumps({"pusher": {"name": "alice"}, "repository": {"full_name": "alice/bot"}}).encode()
        for event, body in (("ping", b'{"zen": "Keep it simple."}'), ("push", push)):
            assert (await ask(url, body, github(body, secret=secret, event=event)))[0] == 202
        assert (await ask(url, push, github(push, "again", secret=secret)))[0] == 409
        assert (await ask(url, push, github(push)))[0] == 401
        form = github(push, secret=secret) | {"Content-Type": "application/x-www-form-urlencoded"}
        assert (await ask(url, push, form))[0] == 415
        await until(lambda: reader.says() == ["alice pushed to alice/bot."])


@of_the_page
@pytest.mark.parametrize("pinned", [False, True], ids=["HOOK_KEY", "PIN_KEYS"])
async def test_the_keys_of_the_page_are_verified_pinned_and_trusted(pinned: bool, tmp_path: Path) -> None:
    bot_py, sender = code("Keys instead of secrets", 0), code("Keys instead of secrets", 1)
    async with reading(tmp_path) as reader:
        if pinned:
            reader.set("PIN_KEYS=true")
        else:
            done = await run_on(reader.discord, "-c", reader.here(sender).partition("id, now")[0], cwd=tmp_path)
            reader.set(done.out.strip())
        process = await reader.run(bot_py)
        assert (await reader.send(sender, "one"))[1:] == ["202"]
        (tmp_path / "build.key").unlink()
        done = await run_on(reader.discord, tmp_path / "sender.py", "two", cwd=tmp_path)
        assert "HTTP Error 401" in done.err
        if pinned:
            told = code("Another key").strip()
            line = next(each for each in process.log if "another key" in each)
            fingerprint = line.rpartition(" ")[2]
            assert line.endswith(told.replace("5b0c…", fingerprint))
            await asyncio.to_thread(reader.shell, code("Another key", 1), FINGERPRINT=fingerprint)
            assert (await reader.send(sender, "three"))[1:] == ["202"]
        built = ["built one", "built three"] if pinned else ["built one"]
        await until(lambda: [line for line in process.log if line.startswith("built")] == built)


STATUS = re.compile(r"^\| (\d{3}) \|", re.MULTILINE)


@of_the_page
def test_the_table_of_the_page_has_every_status_that_the_code_answers_with() -> None:
    source = inspect.getsource(bot.Web) + inspect.getsource(bot.Signed) + inspect.getsource(bot.check_age)
    raised = {*map(int, re.findall(r"(?:HookError\(\s*|status=)(\d{3})", source))}
    of_others, by_aiohttp = {200, 400}, {405, 413}
    assert {*map(int, STATUS.findall(PARTS["Statuses"]))} == (raised | by_aiohttp) - of_others
