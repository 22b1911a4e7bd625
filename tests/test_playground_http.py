"""Interactions over HTTP: the endpoint, what may be answered how, faults on the way, and bots in the mode rest."""

from __future__ import annotations

import ast
import asyncio
import base64
import hmac
import io
import json
import os
import subprocess
import sys
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import hikari
import hikari.impl
import pytest
import pytest_asyncio
from aiohttp import FormData, MultipartWriter, web
from discord_interactions import verify_key
from standardwebhooks import Webhook, WebhookVerificationError

from playground import Discord
from playground.people import Person, Used
from playground.server import free_port
from playground.world import APPLICATION_ID
from tests.clients.raw import Json, RawBot, Rest, until
from tests.clients.site import Site, again, message, says
from tests.test_playground_control import Page

pytest_plugins = ("tests.clients.fixtures",)

BUTTON = {"type": 2, "style": 1, "custom_id": "yes", "label": "Yes"}
WITH_BUTTON = {"content": "Tea?", "components": [{"type": 1, "components": [BUTTON]}]}
INPUT = {"type": 4, "custom_id": "title", "style": 1}
FORM = {"custom_id": "form", "title": "Rename", "components": [{"type": 18, "label": "Title", "component": INPUT}]}
ROOT = Path(__file__).parent.parent
BOT = ROOT / "tests" / "bots" / "web.py"
FAILED = ("failed", "The application did not respond")


@pytest_asyncio.fixture
async def rest(discord: Discord) -> AsyncIterator[Rest]:
    discord.world.put_command(None, {"name": "poll", "description": "Ask."})
    async with Rest(discord) as rest:
        yield rest


@pytest_asyncio.fixture
async def site(discord: Discord, rest: Rest) -> AsyncIterator[Site]:
    async with Site(discord, message("hello")) as site:
        await discord.set_endpoint(site.url)
        yield site


def use(person: Person) -> Used:
    return person.start_command("poll", {})


def outcome(used: Used) -> tuple[str, str | None]:
    return used.state, used.text


async def at_once(discord: Discord, used: Used) -> tuple[str, str | None]:
    """What is known as soon as the requests are over, whenever the three seconds end."""
    await discord.delivered()
    return outcome(used)


# The endpoint is set


async def test_an_endpoint_that_answers_pings_gets_the_interactions_and_the_gateway_none(
    discord: Discord, rest: Rest, alice: Person
) -> None:
    async with RawBot(discord) as bot, Site(discord, message("over HTTP")) as site:
        await discord.set_endpoint(site.url)
        assert (await rest("GET", "/applications/@me"))[1]["interactions_endpoint_url"] == site.url
        used = await use(alice)
        assert (outcome(used), used.message and used.message["content"]) == (("answered", None), "over HTTP")
        assert site.interactions == [used.interaction]
        await discord.set_endpoint(None)
        assert (await rest("GET", "/applications/@me"))[1]["interactions_endpoint_url"] is None
        again = use(alice)
        assert await bot.interaction() == again.interaction
        assert (bot.interactions.empty(), len(site.requests)) == (True, 1)


@pytest.mark.parametrize(
    ("pong", "words"),
    [
        (web.Response(status=404), "answers a signed PING with 404 and nothing, not with 200 and {"),
        (says({"type": 4}), "answers a signed PING with 200, application/json and {'type': 4}, not with 200 and {"),
        (says([1]), "application/json and [1], not"),
        (web.Response(text='{"type": 1}'), "200, text/plain"),
        (web.Response(status=500, text="boom"), "'boom', not"),
        (web.Response(body=b"--x", headers={"Content-Type": "multipart/form-data"}), "cannot be read: "),
    ],
)
async def test_a_ping_answered_otherwise_is_refused_in_a_sentence_and_nothing_changes(
    discord: Discord, site: Site, pong: web.Response, words: str
) -> None:
    async with Site(discord, pong=pong) as other:
        with pytest.raises(ValueError) as refused:
            await discord.set_endpoint(other.url)
        assert other.url in str(refused.value)
    assert words in str(refused.value)
    assert str(refused.value).endswith(f"{discord.public_key}.") or "cannot be read" in words
    assert discord.endpoint.url == site.url


@pytest.mark.parametrize("status", [200, 400, 403, 500])
async def test_who_does_not_answer_a_wrong_signature_with_401_is_refused_too(
    discord: Discord, site: Site, status: int
) -> None:
    async with Site(discord, when_wrong=status) as other:
        with pytest.raises(ValueError) as refused:
            await discord.set_endpoint(other.url)
        assert str(refused.value) == (
            f"{other.url} answers a PING with a wrong signature with {status}, not with 401. Verify "
            "X-Signature-Ed25519 over X-Signature-Timestamp and the raw body before anything else."
        )
        assert discord.endpoint.url == site.url
        if status in (400, 403):
            await discord.set_endpoint(other.url, strict=False)
            assert discord.endpoint.url == other.url
        else:
            with pytest.raises(ValueError, match="with a wrong signature"):
                await discord.set_endpoint(other.url, strict=False)


async def test_an_address_that_is_none_or_where_nobody_is_is_refused(discord: Discord, site: Site) -> None:
    for url in ("", "https://127.0.0.1/i", "http://example.org/i", "unix:", "unix:/a.sock", "http://127.0.0.1:x/"):
        with pytest.raises(ValueError, match=r"is no endpoint for the playground\. Give an address of"):
            await discord.set_endpoint(url)
    with pytest.raises(ValueError, match=r"Nothing answers at http://127.0.0.1:1/i \(.*\)\. Start the bot, or mend"):
        await discord.set_endpoint("http://127.0.0.1:1/i")
    async with Site(discord) as other:
        other.is_silent = True
        with pytest.raises(ValueError, match=r"does not answer a PING within 3 s\."):
            await discord.set_endpoint(other.url)
    assert discord.endpoint.url == site.url


async def test_an_endpoint_may_be_a_socket_file(discord: Discord, rest: Rest, alice: Person, tmp_path: Path) -> None:
    async with Site(discord, message("through a file"), socket=str(tmp_path / "bot.sock")) as site:
        await discord.set_endpoint(site.url)
        assert discord.text((await use(alice)).message) == "through a file"


async def test_every_request_is_signed_by_the_playgrounds_clock(discord: Discord, site: Site, alice: Person) -> None:
    assert site.refused == 1  # the PING with the wrong signature
    discord.clock.advance(86_400)
    for _ in range(3):
        assert (await use(alice)).state == "answered"
    assert (len(site.requests), site.refused) == (3, 1)
    for body, request in site.requests:
        assert request.headers["Content-Type"] == "application/json"
        assert request.headers["User-Agent"].startswith("Discord-Interactions/")
        assert abs(int(request.headers["X-Signature-Timestamp"]) - discord.clock.now()) < 60
        assert json.loads(body)["application_id"] == APPLICATION_ID


# What may be answered how


async def test_every_kind_of_interaction_is_answered_over_http(discord: Discord, rest: Rest, alice: Person) -> None:
    option = {"type": 3, "name": "name", "description": "x", "autocomplete": True}
    discord.world.put_command(None, {"name": "fruit", "description": "x", "options": [option]})
    answers: dict[str, Json] = {
        "poll": {"type": 4, "data": WITH_BUTTON},
        "yes": {"type": 7, "data": {"content": "updated"}},
        "form": {"type": 6},
        "fruit": {"type": 8, "data": {"choices": [{"name": "Apple", "value": "apple"}]}},
    }

    async def answer(interaction: Json) -> web.Response:
        data = interaction["data"]
        return says(answers[data.get("custom_id") or data["name"]])

    async with Site(discord, answer) as site:
        await discord.set_endpoint(site.url)
        await use(alice)
        assert discord.text((await alice.click("Yes")).message) == "updated\nYes"
        answers["yes"] = {"type": 9, "data": FORM}
        assert (await alice.click("Yes")).form == FORM
        assert (await alice.submit({"Title": "New"})).state == "deferred"
        assert await alice.autocomplete("fruit", "name", "a") == [{"name": "Apple", "value": "apple"}]
        assert [each["type"] for each in site.interactions] == [2, 3, 3, 5, 4]


@pytest.mark.parametrize("status", [202, 204])
async def test_with_an_empty_202_or_204_the_callback_comes_by_itself(
    discord: Discord, rest: Rest, alice: Person, status: int
) -> None:
    async with Site(discord, web.Response(status=status)) as site:
        await discord.set_endpoint(site.url)
        used, silent = use(alice), use(alice)
        await discord.delivered()
        assert used.state == silent.state == "pending"
        assert (await rest.answer(used.interaction, 4, {"content": "later"}))[0] == 204
        assert discord.text((await used).message) == "later"
        discord.clock.advance(3.1)
        assert outcome(silent) == FAILED


async def test_a_callback_while_the_request_is_open_counts_and_its_answer_does_not(
    discord: Discord, rest: Rest, alice: Person
) -> None:
    async def answer(interaction: Json) -> web.Response:
        assert (await rest.answer(interaction, 4, {"content": "by callback"}))[0] == 204
        return message("by answer")

    async with Site(discord, answer) as site:
        await discord.set_endpoint(site.url)
        used = await use(alice)
        [delivery] = await discord.delivered()
    assert [discord.text(each) for each in discord.messages()] == ["by callback"]
    assert (outcome(used), delivery.is_taken) == (("answered", None), False)
    assert delivery.problem == "Discord refuses the answer: Interaction has already been acknowledged."


async def reset(request: Json) -> web.StreamResponse:
    raise ConnectionResetError


def cut(site: Site) -> Any:
    async def answer(interaction: Json) -> web.Response:
        transport = site.requests[-1][1].transport
        assert transport is not None
        transport.abort()
        return message("nobody hears this")

    return answer


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (web.Response(status=500, text="boom"), "The bot answered with 500, text/plain and 'boom'."),
        (web.Response(status=401), "The bot answered with 401 and nothing."),
        (web.Response(), "The bot answered with 200 and nothing."),
        (web.Response(text='{"type": 4}'), "200, text/plain"),
        (web.Response(body=b"{", content_type="application/json"), "200, application/json and '{'"),
        (says([{"type": 4}]), "200, application/json and [{'type': 4}]"),
        (says({"type": 4}, status=202), "202, application/json and {'type': 4}"),
        (says({"type": 4}, status=201), "201"),
        (web.Response(status=302, headers={"Location": "/interactions"}), "302"),
        (web.Response(body=b"--x\r\n", headers={"Content-Type": "multipart/form-data"}), "boundary"),
        (web.Response(body=b"nothing", headers={"Content-Type": "multipart/form-data; boundary=x"}), "boundary"),
        (None, "Server disconnected"),
    ],
)
async def test_any_other_answer_is_a_failure_for_the_person_at_once(
    discord: Discord, site: Site, alice: Person, answer: Any, problem: str
) -> None:
    site.answer = answer or cut(site)
    assert await at_once(discord, use(alice)) == FAILED
    [delivery] = await discord.delivered()
    assert problem in (delivery.problem or "")
    assert (delivery.is_taken, discord.messages()) == (False, [])


async def test_nobody_there_is_a_failure_at_once_and_no_callback_helps(
    discord: Discord, rest: Rest, alice: Person
) -> None:
    async with Site(discord) as site:
        await discord.set_endpoint(site.url)
    used = use(alice)
    assert await at_once(discord, used) == FAILED
    status, body = await rest.answer(used.interaction, 4, {"content": "late"})
    assert (status, body["code"]) == (404, 10062)
    assert (await rest.webhook("POST", used.interaction, {"content": "late"}))[1]["code"] == 10015


async def test_no_answer_within_three_seconds_of_the_clock_is_a_failure(
    discord: Discord, site: Site, alice: Person
) -> None:
    go_on = asyncio.Event()

    async def answer(interaction: Json) -> web.Response:
        await go_on.wait()
        return message("late")

    site.answer = answer
    used = use(alice)
    await until(lambda: bool(site.requests))
    discord.clock.advance(2.5)
    await asyncio.sleep(0)
    assert used.state == "pending"
    discord.clock.advance(0.6)
    assert outcome(used) == FAILED
    [delivery] = await discord.delivered()
    go_on.set()
    assert (delivery.problem, delivery.answer) == ("There was no answer within 3 s.", None)


async def test_an_answer_that_discord_refuses_is_a_failure_with_the_reason(
    discord: Discord, site: Site, alice: Person
) -> None:
    for body, reason in (
        ({"type": 4, "data": {"content": "x" * 2001}}, "data.content: Must be 2000 or fewer in length."),
        ({"type": 7, "data": {"content": "x"}}, "type: Value must be one of (4, 5, 9)."),
        ({"type": 1}, "type: Value must be one of (4, 5, 9)."),
    ):
        site.answer = says(body)
        assert await at_once(discord, use(alice)) == ("failed", f"The bot's answer was refused: {reason}")
    assert [each.problem for each in discord.deliveries][-1] == f"Discord refuses the answer: {reason}"


async def test_files_come_beside_payload_json(discord: Discord, site: Site, alice: Person) -> None:
    about = {"content": "see", "attachments": [{"id": 0, "filename": "a.txt", "description": "about a"}]}
    form = FormData(default_to_multipart=True)
    form.add_field("payload_json", json.dumps({"type": 4, "data": about}), content_type="application/json")
    form.add_field("files[0]", b"one", filename="x.txt", content_type="text/plain")

    async def answer(interaction: Json) -> web.Response:
        writer = form()
        assert isinstance(writer, MultipartWriter)
        return web.Response(body=writer)

    site.answer = answer
    used = await use(alice)
    assert used.message, discord.deliveries
    [file] = used.message["attachments"]
    assert (file["filename"], file["description"], file["size"]) == ("a.txt", "about a", 3)
    [delivery] = discord.deliveries
    assert (delivery.status, delivery.body["type"], delivery.is_taken) == (200, 4, True)


async def test_a_follow_up_is_unknown_until_the_answer_has_been_taken(
    discord: Discord, site: Site, rest: Rest, alice: Person
) -> None:
    hold = asyncio.Event()
    discord.delivery_faults.add(hold=hold)
    used = use(alice)
    await until(lambda: discord.deliveries[0].status == 200)
    status, body = await rest.webhook("POST", used.interaction, {"content": "early"})
    assert (status, body["code"], used.state) == (404, 10015, "pending")
    hold.set()
    await used
    assert (await rest.webhook("POST", used.interaction, {"content": "now"}))[0] == 200
    assert [discord.text(each) for each in discord.messages()] == ["hello", "now"]


# Faults on the way


def answers(discord: Discord) -> list[tuple[int | None, Any]]:
    return [(each.status, each.body) for each in discord.deliveries]


def numbered(site: Site) -> Any:
    async def answer(interaction: Json) -> web.Response:
        return message(f"number {len(site.requests)}")

    return answer


async def test_copies_are_the_same_request_and_the_first_one_counts(
    discord: Discord, site: Site, alice: Person
) -> None:
    site.answer = numbered(site)
    discord.delivery_faults.add(kind="command", copies=3, when="answered")
    used = await use(alice)
    await discord.delivered()
    assert discord.text(used.message) == "number 1"
    assert [(status, body["data"]["content"]) for status, body in answers(discord)] == [
        (200, "number 1"),
        (200, "number 2"),
        (200, "number 3"),
    ]
    noted = [entry.data for entry in discord.journal.of("delivery")]
    assert [(each["status"], each["body"], each["taken"]) for each in noted] == [
        (each.status, each.body, each.is_taken) for each in discord.deliveries
    ]
    assert [each.is_taken for each in discord.deliveries] == [True, False, False]
    assert len({(body, request.headers["X-Signature-Ed25519"]) for body, request in site.requests}) == 1
    await use(alice)
    assert len(await discord.delivered()) == 4  # the fault was for one interaction


async def test_copies_may_come_all_at_once(discord: Discord, site: Site, alice: Person) -> None:
    everybody = asyncio.Barrier(4)

    async def answer(interaction: Json) -> web.Response:
        await everybody.wait()
        return message("together")

    site.answer = answer
    discord.delivery_faults.add(copies=4)
    assert discord.text((await use(alice)).message) == "together"
    assert [status for status, _ in answers(discord) if await discord.delivered()] == [200] * 4
    assert [discord.text(each) for each in discord.messages()] == ["together"]


async def test_a_connection_is_cut_before_its_answer_is_read_and_a_copy_comes_through(
    discord: Discord, site: Site, alice: Person
) -> None:
    site.answer = numbered(site)
    discord.delivery_faults.add(drop="answered", copies=2, when="answered")
    assert await at_once(discord, use(alice)) == FAILED
    first, second = discord.deliveries
    assert (first.problem, first.answer) == ("A fault cut the connection when the bot had answered.", None)
    assert (second.body["data"]["content"], second.is_taken, discord.messages()) == ("number 2", False, [])


async def test_a_connection_is_cut_while_the_bot_works(discord: Discord, site: Site, alice: Person) -> None:
    hold, go_on, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def answer(interaction: Json) -> web.Response:
        await go_on.wait()
        done.set()
        return message("nobody reads this")

    site.answer = answer
    discord.delivery_faults.add(drop="asked", hold=hold)
    used = use(alice)
    await until(lambda: bool(site.requests))
    assert used.state == "pending"
    hold.set()
    assert await at_once(discord, used) == FAILED
    go_on.set()
    await done.wait()
    [delivery] = await discord.delivered()
    assert delivery.problem == "A fault cut the connection when the bot had been asked."


@pytest.mark.parametrize("signature", ["wrong", "missing"])
async def test_a_request_without_its_signature_is_refused_by_the_bot(
    discord: Discord, site: Site, alice: Person, signature: Any
) -> None:
    discord.delivery_faults.add(signature=signature)
    assert await at_once(discord, use(alice)) == FAILED
    assert (answers(discord), site.requests, site.refused) == ([(401, None)], [], 2)


async def test_an_old_timestamp_is_signed_as_any(discord: Discord, site: Site, alice: Person) -> None:
    discord.delivery_faults.add(age_s=86_400, times=2)
    await use(alice)
    assert (await use(alice)).state == "answered"
    for _, request in site.requests:
        assert abs(discord.clock.now() - 86_400 - int(request.headers["X-Signature-Timestamp"])) < 60


async def test_an_interaction_can_be_sent_again_at_any_time(discord: Discord, site: Site, alice: Person) -> None:
    site.answer = numbered(site)
    used = await use(alice)
    discord.clock.advance(86_400)
    assert (await discord.redeliver(used)).body["data"]["content"] == "number 2"
    assert (await discord.redeliver(used, anew=True)).body["data"]["content"] == "number 3"
    first, again, anew = site.requests
    assert first[0] == again[0] == anew[0]
    at = [int(request.headers["X-Signature-Timestamp"]) for _, request in site.requests]
    assert (at[0] == at[1], at[2] - at[0] >= 86_400, site.refused) == (True, True, 1)
    assert discord.text(used.message) == "number 1"
    await discord.set_endpoint(None)
    with pytest.raises(LookupError, match="was not sent to the endpoint that is set"):
        await discord.redeliver(used)


async def test_faults_are_for_their_kind_and_can_be_cleared(discord: Discord, site: Site, alice: Person) -> None:
    discord.delivery_faults.add(kind="component", signature="wrong", times=None)
    site.answer = says({"type": 4, "data": WITH_BUTTON})
    assert (await use(alice)).state == "answered"
    assert (await alice.click("Yes")).state == "failed"
    assert (await alice.click("Yes")).state == "failed"
    discord.delivery_faults.clear()
    assert (await alice.click("Yes")).state == "answered"
    with pytest.raises(ValueError, match="An interaction is delivered at least once, not 0 times"):
        discord.delivery_faults.add(copies=0)


async def test_a_delay_and_latency_hold_the_answer_back(discord: Discord, site: Site, alice: Person) -> None:
    discord.delivery_faults.add(delay_s=0.2)
    used = use(alice)
    await until(lambda: discord.deliveries[0].status == 200)
    assert used.state == "pending"
    assert (await used).state == "answered"
    discord.latency_s = 0.4
    slow = use(alice)
    await asyncio.sleep(0.05)
    assert len(site.requests) == 1
    await until(lambda: discord.deliveries[1].status == 200)
    assert slow.state == "pending"
    assert (await slow).state == "answered"


async def test_more_requests_are_open_at_once_than_clients_usually_have(
    discord: Discord, site: Site, rest: Rest
) -> None:
    everybody = asyncio.Barrier(120)

    async def answer(interaction: Json) -> web.Response:
        await everybody.wait()
        return says({"type": 6})

    site.answer = answer
    await rest("POST", f"/channels/{discord.world.channel_of(None)['id']}/messages", WITH_BUTTON)
    clicks = [discord.user(name).click("Yes") for _ in range(40) for name in ("alice", "bob", "carol")]
    assert {(await one).state for one in clicks} == {"deferred"}


# Bots in the mode rest


async def test_a_bot_in_the_mode_rest_is_ready_when_it_answers_pings(discord: Discord, alice: Person) -> None:
    bot = await discord.start_bot(BOT, mode="rest")
    assert (bot.mode, bot.status, discord.endpoint.url) == ("rest", "starting", None)
    await bot.ready()
    assert (bot.status, discord.endpoint.url) == ("running", f"http://127.0.0.1:{bot.web_port}/interactions")
    await until(lambda: bot.log == ["registered in the mode rest", "Signature was forged or corrupt"])
    assert discord.text((await alice.command("ping")).message) == f"pid {bot.pid}"
    assert [entry for entry in discord.journal.of("gateway_out") if entry.data["t"] == "INTERACTION_CREATE"] == []


async def test_it_keeps_its_port_and_while_it_is_down_interactions_fail_at_once(
    discord: Discord, alice: Person
) -> None:
    bot = await discord.start_bot(BOT, mode="rest")
    await bot.ready()
    port = bot.web_port
    slow = alice.start_command("slow", {})
    await until(discord.deliveries[-1].was_sent.is_set)
    bot.kill()
    assert await at_once(discord, slow) == FAILED
    await bot.wait()
    assert await at_once(discord, alice.start_command("ping", {})) == FAILED
    await bot.start()
    await bot.ready()
    assert discord.text((await alice.command("ping")).message) == f"pid {bot.pid}"
    await bot.terminate()
    assert await at_once(discord, alice.start_command("ping", {})) == FAILED
    await bot.restart()
    await bot.ready()
    assert (bot.web_port, (await alice.command("ping")).state) == (port, "answered")


async def test_the_mode_of_the_playground_is_that_of_its_bots(alice: Person) -> None:
    async with Discord(mode="rest") as discord:
        bot = await discord.start_bot(BOT)
        await bot.ready()
        assert (await discord.user("alice").command("ping")).state == "answered"
        talker = await discord.start_bot(BOT, mode="gateway", web=True)
        await until(lambda: bool(talker.log))
        assert (talker.log, discord.endpoint.url) == (["registered in the mode gateway"], None)
        assert talker.web_port != bot.web_port
        await discord.send_hook("deploy", {})  # goes to the bot started last
        await until(lambda: "hook deploy {}" in talker.log)
        assert "hook deploy {}" not in bot.log


async def test_a_bot_with_a_web_side_is_told_where_and_with_which_keys(
    discord: Discord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "teller.py").write_text(
        "import os\nprint({k: v for k, v in os.environ.items() if k.startswith(('WEB_', 'HOOK_KEY', 'MODE'))})\n"
    )
    monkeypatch.setenv("MODE", "rest")  # as `make` sets it for what it runs
    told: list[Json] = []
    ways: list[Json] = [{"web": True}, {"mode": "rest"}, {"mode": "rest", "env": {"PIN_KEYS": "1", "WEB_PORT": "21"}}]
    for more in (*ways, {}):
        bot = await discord.start_bot(tmp_path / "teller.py", **more)
        await bot.wait()
        told.append(ast.literal_eval(bot.log[0]))
        assert bot.web_port == (int(told[-1]["WEB_PORT"]) if "WEB_PORT" in told[-1] else None)
    where, key = {"WEB_HOST": "127.0.0.1", "WEB_PATH": "/"}, {"HOOK_KEY": discord.hooks.public_key}
    ports = [{"WEB_PORT": each["WEB_PORT"]} for each in told[:3]]
    assert told == [
        {"MODE": "gateway", **where, **key, **ports[0]},
        {"MODE": "rest", **where, **key, **ports[1]},
        {"MODE": "rest", **where, "WEB_PORT": "21"},
        {"MODE": "gateway"},
    ]


async def test_without_web_a_bot_gets_no_port_and_no_secret(discord: Discord) -> None:
    bot = await discord.start_bot(BOT)
    assert await bot.wait() == 1
    assert "KeyError: 'WEB_PORT'" in bot.log
    assert (bot.mode, bot.web_port) == ("gateway", None)


async def test_what_keeps_a_bot_from_being_ready_is_in_its_log(discord: Discord) -> None:
    bot = await discord.start_bot(BOT, mode="rest", env={"UNSIGNED": "1"})
    await until(lambda: len(bot.log) > 1)
    assert bot.log[1] == (
        f"playground: {bot.web_address}/interactions answers a PING with a wrong signature with 200, not with 401. "
        "Verify X-Signature-Ed25519 over X-Signature-Timestamp and the raw body before anything else."
    )
    with pytest.raises(TimeoutError, match=r"was not ready after 0\.2 s:\n(.*\n)*.*with a wrong signature with 200"):
        await bot.ready(timeout=0.2)
    async with RawBot(discord):
        pass
    assert (len(bot.log), bot.status) == (
        2,
        "starting",
    )  # it is said once, and what others do at the gateway is no sign
    broken = await discord.start_bot(BOT, mode="rest", env={"BROKEN": "1"})
    with pytest.raises(RuntimeError, match=r"web\.py ended with exit code 1 before it was ready:\nbroken"):
        await broken.ready()


# A client library's own server


@pytest_asyncio.fixture
async def hikaris_url(discord: Discord) -> AsyncIterator[str]:
    """The address of hikari's own server, with /poll, a button that counts and one that opens a form."""
    bot = hikari.RESTBot(discord.token, "Bot", rest_url=discord.api, banner=None, logs=None)
    counts = {"count": 0}

    def view() -> hikari.api.ContainerComponentBuilder:
        row = bot.rest.build_message_action_row()
        row.add_interactive_button(hikari.ButtonStyle.PRIMARY, "add", label="Add")
        row.add_interactive_button(hikari.ButtonStyle.SECONDARY, "rename", label="Rename")
        container = hikari.impl.ContainerComponentBuilder()
        container.add_text_display(f"## Count {counts['count']}")
        container.add_component(row)
        return container

    async def on_command(interaction: hikari.CommandInteraction) -> AsyncGenerator[Any]:
        if interaction.command_name == "file":
            yield interaction.build_response().set_content("a file").add_attachment(hikari.Bytes(b"one", "a.txt"))
        elif interaction.command_name == "poll":
            yield interaction.build_response().add_component(view())
        else:
            yield interaction.build_deferred_response()
            await edit_as_soon_as_possible(interaction)

    async def on_click(interaction: hikari.ComponentInteraction) -> Any:
        if interaction.custom_id == "rename":
            row = bot.rest.build_modal_action_row()
            row.add_text_input("title", "Title")
            return WholeForm(interaction.build_modal_response("Rename", "rename").add_component(row))
        counts["count"] += 1
        return interaction.build_response(hikari.ResponseType.MESSAGE_UPDATE).add_component(view())

    async def on_form(interaction: hikari.ModalInteraction) -> Any:
        field: Any = interaction.components[0].components[0]
        return interaction.build_response().set_content(f"renamed to {field.value}")

    bot.set_listener(hikari.CommandInteraction, on_command)
    bot.set_listener(hikari.ComponentInteraction, on_click)
    bot.set_listener(hikari.ModalInteraction, on_form)
    port = free_port()
    await bot.start(host="127.0.0.1", port=port, check_for_updates=False)
    application = await bot.rest.fetch_application()
    commands = [bot.rest.slash_command_builder(name, "x") for name in ("poll", "file", "later")]
    await bot.rest.set_application_commands(application, commands)
    yield f"http://127.0.0.1:{port}/"
    await bot.close()


async def edit_as_soon_as_possible(interaction: hikari.CommandInteraction) -> None:
    while True:  # hikari goes on before its answer has been read
        try:
            await interaction.edit_initial_response("done at last")
            return
        except hikari.NotFoundError:
            await asyncio.sleep(0.01)


class WholeForm:
    """hikari 2.7.0 builds the rows of a form as pairs of a row and its files; this sends the rows."""

    def __init__(self, builder: hikari.api.InteractionModalBuilder) -> None:
        self._builder = builder

    def build(self, entity_factory: hikari.api.EntityFactory) -> Any:
        payload: Any
        payload, files = self._builder.build(entity_factory)
        rows = [each[0] if isinstance(each, (list, tuple)) else each for each in payload["data"]["components"]]
        return {**payload, "data": {**payload["data"], "components": rows}}, files


async def test_hikaris_own_server_is_used_through_a_command_a_click_and_a_form(
    discord: Discord, alice: Person, hikaris_url: str
) -> None:
    with pytest.raises(ValueError, match="with a wrong signature with 400, not with 401"):
        await discord.set_endpoint(hikaris_url)
    await discord.set_endpoint(hikaris_url, strict=False)
    used = await alice.command("poll")
    assert discord.text(used.message) == "## Count 0\nAdd\nRename", discord.deliveries
    for count in (1, 2):
        assert discord.text((await alice.click("Add")).message) == f"## Count {count}\nAdd\nRename"
    assert (await alice.click("Rename")).form
    assert discord.text((await alice.submit({"title": "Tea"})).message) == "renamed to Tea"
    filed = await alice.command("file")
    assert filed.message
    assert [(each["filename"], each["size"]) for each in filed.message["attachments"]] == [("a.txt", 3)]
    later = await alice.command("later")
    assert (later.state, discord.text((await later.settled()).message)) == ("deferred", "done at last")
    assert {each.problem for each in discord.deliveries} == {None}


# Hooks


async def test_a_hook_is_signed_as_the_bot_wants_it_and_its_answer_comes_back(discord: Discord) -> None:
    bot = await discord.start_bot(BOT, mode="rest")
    await bot.ready()
    assert await discord.send_hook("deploy", {"version": 3}) == (200, {"took": {"version": 3}})
    status, body = await discord.send_hook("deploy", b'{"raw": 1}')
    assert (status, body) == (200, {"took": {"raw": 1}})
    with pytest.raises(LookupError, match=r"The bot has no hook 'nothing'\. There are: deploy\."):
        await discord.send_hook("nothing", {})
    status, body = await discord.send_hook("nothing", {}, scheme="standard")
    assert (status, body) == (404, {"error": "There is no such hook."})
    [first, *_] = [entry.data for entry in discord.journal.of("hook")]
    assert (first["name"], first["scheme"], first["status"]) == ("deploy", "standard", 200)
    assert first["headers"]["webhook-id"].startswith("msg_")
    await bot.terminate()
    with pytest.raises(LookupError, match="No bot with a web side runs"):
        await discord.send_hook("deploy", {})


async def test_a_bot_in_the_mode_gateway_takes_hooks_too(discord: Discord) -> None:
    bot = await discord.start_bot(BOT, web=True)
    await until(lambda: bool(bot.log))
    assert bot.web_address
    assert (await discord.send_hook("deploy", [1], address=bot.web_address)).body == {"took": [1]}


class Receiver:
    """A web side that keeps the hooks it gets."""

    def __init__(self, hooks: Any) -> None:
        self.hooks = hooks
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.answer = web.Response(status=202)

    async def __aenter__(self) -> Receiver:
        app = web.Application()
        app.router.add_get("/health", self._tell)
        app.router.add_post("/hooks/{name}", self._take)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.address = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _tell(self, request: web.Request) -> web.Response:
        return says(self.hooks, status=503)  # a bot that is not well tells of its hooks as well

    async def _take(self, request: web.Request) -> web.Response:
        self.got.append((dict(request.headers), await request.read()))
        return again(self.answer)


@pytest_asyncio.fixture
async def receiver() -> AsyncIterator[Receiver]:
    hooks = {"deploy": "standard", "repo": "github", "sealed": "ed25519", "odd": "morse"}
    async with Receiver({"status": "ok", "hooks": hooks}) as receiver:
        yield receiver


async def test_standard_hooks_are_verified_by_standardwebhooks(discord: Discord, receiver: Receiver) -> None:
    webhook, address = Webhook(discord.hooks.secret), receiver.address
    assert await discord.send_hook("deploy", {"version": 3}, address=address) == (202, None)
    headers, body = receiver.got[-1]
    assert webhook.verify(body, headers) == {"version": 3}
    assert headers["Content-Type"] == "application/json"
    own = f"whsec_{base64.b64encode(b'another secret of 24 byt').decode()}"
    at = discord.clock.now() - 100
    await discord.send_hook("deploy", [1], address=address, id="msg_mine", timestamp=at, secret=own)
    headers, body = receiver.got[-1]
    assert (headers["webhook-id"], headers["webhook-timestamp"]) == ("msg_mine", f"{at:.0f}")
    assert Webhook(own).verify(body, headers) == [1]
    with pytest.raises(WebhookVerificationError, match="No matching signature"):
        webhook.verify(body, headers)
    await discord.send_hook("deploy", {"version": 3}, address=address, tamper=True)
    with pytest.raises(WebhookVerificationError, match="No matching signature"):
        webhook.verify(receiver.got[-1][1], receiver.got[-1][0])
    discord.clock.advance(3600)
    await discord.send_hook("deploy", {}, address=address)
    with pytest.raises(WebhookVerificationError, match="too new"):
        webhook.verify(receiver.got[-1][1], receiver.got[-1][0])
    ids = [headers["webhook-id"] for headers, _ in receiver.got]
    assert len(set(ids)) == 4


async def test_githubs_hooks_carry_the_hmac_of_the_body_by_the_secret_as_it_stands(
    discord: Discord, receiver: Receiver
) -> None:
    # The example on GitHub's own page about validating deliveries.
    await discord.send_hook("repo", b"Hello, World!", address=receiver.address, secret="It's a Secret to Everybody")
    headers, body = receiver.got[0]
    digest = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert (headers["X-Hub-Signature-256"], body) == (f"sha256={digest}", b"Hello, World!")
    assert (headers["X-GitHub-Event"], uuid.UUID(headers["X-GitHub-Delivery"]).version) == ("push", 4)

    await discord.send_hook("repo", {"ref": "main"}, address=receiver.address, event="star", id="x")
    await discord.send_hook("repo", {"ref": "main"}, address=receiver.address, tamper=True)
    (headers, body), (same, tampered) = receiver.got[1:]
    assert (headers["X-GitHub-Event"], headers["X-GitHub-Delivery"]) == ("star", "x")
    assert headers["X-Hub-Signature-256"] == same["X-Hub-Signature-256"]
    assert (body != tampered, json.loads(body) == json.loads(tampered)) == (True, True)
    own = hmac.new(discord.hooks.secret.encode(), body, "sha256").hexdigest()
    assert headers["X-Hub-Signature-256"] == f"sha256={own}"


async def test_ed25519_hooks_carry_the_key_and_its_signature(discord: Discord, receiver: Receiver) -> None:
    other = f"whsk_{base64.b64encode(bytes(32)).decode()}"
    await discord.send_hook("sealed", {"a": 1}, address=receiver.address)
    await discord.send_hook("sealed", {"a": 1}, address=receiver.address, secret=other)
    await discord.send_hook("sealed", {"a": 1}, address=receiver.address, tamper=True)
    is_good: list[bool] = []
    for headers, body in receiver.got:
        key = base64.b64decode(headers["webhook-key"].removeprefix("whpk_")).hex()
        signature = base64.b64decode(headers["webhook-signature"].removeprefix("v1a,")).hex()
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}."
        is_good.append(verify_key(body, signature, signed, key))
    assert is_good == [True, True, False]
    keys = [headers["webhook-key"] for headers, _ in receiver.got]
    assert (keys[0], keys[1] == keys[0], keys[2]) == (discord.hooks.public_key, False, keys[0])


async def test_what_a_bot_tells_of_its_hooks_may_be_anything(discord: Discord, receiver: Receiver) -> None:
    with pytest.raises(LookupError, match=r"'odd' is signed in a way that the playground does not know: morse\."):
        await discord.send_hook("odd", {}, address=receiver.address)
    for health in ([], {}, {"hooks": [1]}, "x", {"hooks": None}):
        receiver.hooks = health
        with pytest.raises(LookupError, match=r"has no hook 'deploy'\. It tells of none at /health\."):
            await discord.send_hook("deploy", {}, address=receiver.address)
    with pytest.raises(LookupError, match=r"how its hook 'deploy' is signed: nothing answers at /health\."):
        await discord.send_hook("deploy", {}, address="http://127.0.0.1:1")
    assert receiver.got == []


async def test_an_answer_that_is_no_json_is_text_and_none_at_all_an_error(discord: Discord, receiver: Receiver) -> None:
    receiver.answer = web.Response(status=500, text="boom")
    assert await discord.send_hook("deploy", {}, address=receiver.address) == (500, "boom")
    with pytest.raises(OSError, match=r"http://127\.0\.0\.1:1/hooks/deploy did not answer: Cannot connect"):
        await discord.send_hook("deploy", {}, address="http://127.0.0.1:1", scheme="standard")


# The page's socket and the command line


async def test_a_page_is_told_of_the_bots_hooks_and_calls_them(
    discord: Discord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("playground.control.HOOKS_EVERY_S", 0.01)
    async with Page(discord) as page:
        assert (await page.greet())["hooks"] is None
        assert "No bot was given" in await page.refusal(do="mode", mode="rest")
        await page.send(do="hook", request=1, name="deploy", body="{}")
        assert "No bot was given" in (await page.next("hook"))["text"]
        bot = await discord.start_bot(BOT, web=True, env={"HOOKS": '{"deploy": "standard", "repo": "github"}'})
        listed = [{"name": "deploy", "scheme": "standard"}, {"name": "repo", "scheme": "github"}]
        assert (await page.next("hooks"))["hooks"] == listed
        await asyncio.sleep(0.3)  # the bot is asked many times, the page is told once
        await page.send(do="hook", request=2, name="deploy", body='{"version":  3}')
        answer = {"type": "hook", "request": 2, "status": 200, "text": "OK", "body": {"took": {"version": 3}}}
        while (told := json.loads(await page.ws.receive_str()))["type"] != "hook":
            assert told["type"] in ("log", "bot", "commands"), told
        assert told == answer
        await page.send(do="hook", request=3, name="repo", body="{}")
        assert (await page.next("hook"))["status"] == 500
        await page.send(do="hook", request=4, name="nothing", body="{}")
        assert await page.next("hook") == {
            "type": "hook",
            "request": 4,
            "status": None,
            "text": "The bot has no hook 'nothing'. There are: deploy, repo.",
            "body": None,
        }
        bot.kill()
        await bot.wait()
        await page.send(do="hook", request=5, name="deploy", body="{}")
        assert (await page.next("hook"))["text"] == "The bot does not run, or not with a web side."
        async with Page(discord) as second:
            assert (await second.greet())["hooks"] == listed


async def test_the_command_that_a_page_gets_for_a_hook_calls_it_from_a_shell(
    discord: Discord, receiver: Receiver, tmp_path: Path
) -> None:
    (tmp_path / "sleeper.py").write_text("import time\ntime.sleep(600)\n")  # the receiver has the port
    body = '{"it\'s": "$HOME `x` \\u00e9",\n "a": "é"}'
    async with Page(discord) as page:
        await page.greet()
        await page.send(do="curl", request=1, name="deploy", body=body)
        told = await page.next("curl")
        assert (told["command"], "No bot was given" in told["text"]) == (None, True)
        await discord.start_bot(
            tmp_path / "sleeper.py", web=True, env={"WEB_PORT": receiver.address.rpartition(":")[2]}
        )
        for name in ("deploy", "repo", "sealed"):
            await page.send(do="curl", request=2, name=name, body=body)
            told = await page.next("curl")
            assert (told["request"], told["text"], discord.hooks.secret in told["command"]) == (2, "", False)
            shell = await asyncio.create_subprocess_exec("sh", "-c", told["command"])
            assert await shell.wait() == 0
    (standard, first), (github, second), (sealed, third) = receiver.got
    assert first == second == third == body.encode()
    assert Webhook(discord.hooks.secret).verify(first, standard) == json.loads(body)
    digest = hmac.new(discord.hooks.secret.encode(), second, "sha256").hexdigest()
    assert github["X-Hub-Signature-256"] == f"sha256={digest}"
    assert sealed["webhook-key"] == discord.hooks.public_key


TELLER = "import os\nprint(os.environ['WEB_PORT'], os.environ['HOOK_SECRET'] == os.environ['EXPECTED'], flush=True)\n"
SECRETS = ("sixteen letters.", f"whsec_{base64.b64encode(b'a secret of 24 byte long').decode()}")


@pytest.mark.parametrize("secret", SECRETS)
def test_port_and_secret_of_the_commands_environment_are_the_bots(tmp_path: Path, secret: str) -> None:
    (tmp_path / "teller.py").write_text(TELLER)
    port = str(free_port())
    env = {**os.environ, "WEB_PORT": port, "HOOK_SECRET": secret, "EXPECTED": secret}
    command = [sys.executable, "-m", "playground", str(tmp_path / "teller.py"), "--port", "0", "--no-open"]
    with subprocess.Popen(command, cwd=ROOT, env=env, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        assert process.stderr.readline() == f"{port} True\n"
        process.terminate()
        process.communicate(timeout=20)


@pytest.mark.parametrize("secret", SECRETS)
async def test_hooks_are_signed_with_the_secret_that_was_given(
    discord: Discord, receiver: Receiver, secret: str
) -> None:
    discord.hooks.use(secret)
    await discord.send_hook("deploy", {"version": 3}, address=receiver.address)
    headers, body = receiver.got[-1]
    key = secret if secret.startswith("whsec_") else base64.b64encode(secret.encode()).decode()
    assert Webhook(key).verify(body, headers) == {"version": 3}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("WEB_PORT", "80x", "WEB_PORT=80x in the environment is no port. Write a number from 1 to 65535.\n"),
        ("WEB_PORT", "65536", "WEB_PORT=65536 in the environment is no port. Write a number from 1 to 65535.\n"),
        ("HOOK_SECRET", "fifteen letters", "HOOK_SECRET is too short. Give it 16 characters or more.\n"),
        ("HOOK_SECRET", "whsec_x!x!x!x!x!x!", "HOOK_SECRET begins with whsec_ and goes on with what is no base64. "),
    ],
)
def test_a_port_or_secret_that_is_none_ends_the_command_with_2(name: str, value: str, words: str) -> None:
    command = [sys.executable, "-m", "playground", str(BOT), "--port", "0", "--no-open"]
    env = {**os.environ, name: value}
    ended = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr[: len(words)]) == (2, words)
    assert name == "WEB_PORT" or value not in ended.stderr


async def test_why_nobody_was_answered_is_told_where_the_bots_log_is(
    discord: Discord, site: Site, alice: Person, bob: Person
) -> None:
    discord.echo = io.StringIO()
    site.answer = web.Response(status=500, text="boom")
    async with Page(discord) as page:
        await page.greet()
        await use(alice)
        line = "playground: not answered over HTTP. The bot answered with 500, text/plain and 'boom'."
        assert (await page.next("log"))["line"] == line
        site.answer = message("fine")
        await use(bob)
        await discord.delivered()
    assert discord.echo.getvalue() == f"{line}\n"


async def test_a_click_on_a_bot_that_does_not_run_says_so_in_the_log(discord: Discord, alice: Person) -> None:
    bot = await discord.start_bot(BOT, mode="rest")
    await bot.ready()
    await bot.terminate()
    said = discord.echo = io.StringIO()
    assert await at_once(discord, alice.start_command("ping", {})) == FAILED
    url = f"{bot.web_address}/interactions"
    line = f"playground: not answered over HTTP. The bot is not running: nothing listens at {url}."
    assert said.getvalue() == f"{line}\n"


async def test_an_endpoint_at_a_socket_file_that_is_gone_is_no_running_bot(
    discord: Discord, rest: Rest, alice: Person, tmp_path: Path
) -> None:
    discord.echo = io.StringIO()
    file = tmp_path / "bot.sock"
    async with Site(discord, message("hello"), socket=str(file)) as site:
        await discord.set_endpoint(site.url)
    assert await at_once(discord, use(alice)) == FAILED
    assert f"The bot is not running: nothing listens at unix:{file}" in discord.echo.getvalue()


async def test_a_page_starts_the_bot_in_the_other_mode_and_back(discord: Discord, alice: Person) -> None:
    bot = await discord.start_bot(BOT, web=True)
    await bot.ready()
    async with Page(discord) as page:
        about = (await page.greet())["bot"]
        assert (about["mode"], about["has_web"]) == ("gateway", True)
        for mode, url in (("rest", f"{bot.web_address}/interactions"), ("gateway", None), ("rest", ...)):
            await page.send(do="mode", mode=mode)
            while (about := (await page.next("bot"))["bot"])["status"] != "running" or about["mode"] != mode:
                pass
            assert url in (discord.endpoint.url, ...)
            assert discord.text((await alice.command("ping")).message) == f"pid {bot.pid}"
        assert "no mode 'fast'" in await page.refusal(do="mode", mode="fast")
    assert [each.is_taken for each in discord.deliveries] == [True, True]


async def test_a_bot_without_a_port_stays_in_the_mode_gateway(discord: Discord) -> None:
    bot = await discord.start_bot(BOT)
    await bot.wait()
    with pytest.raises(ValueError, match=r"web\.py has no port for HTTP\. Start it with mode='rest', or with web=True"):
        await bot.restart("rest")
    assert bot.mode == "gateway"


@pytest.mark.parametrize("mode", ["rest", "gateway"])
def test_the_command_starts_the_bot_in_the_mode_asked_for(mode: str) -> None:
    command = [sys.executable, "-m", "playground", str(BOT), "--mode", mode, "--port", "0", "--no-open"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline().startswith("Playground: http://127.0.0.1:")
        assert process.stderr.readline() == f"registered in the mode {mode}\n"
        process.terminate()
        process.communicate(timeout=20)
        assert process.returncode == 0


def test_a_mode_that_is_none_ends_the_command_with_2() -> None:
    command = [sys.executable, "-m", "playground", "--mode", "fast", "--no-open"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "argument --mode: invalid choice: 'fast' (choose from 'gateway', 'rest')" in ended.stderr
