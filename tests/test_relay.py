"""The relay of docs/cookbook.md, in both modes, with a real service that is down, slow, wrong, or answers too much."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import aiohttp
import pytest
from aiohttp import web
from standardwebhooks import Webhook

from playground.people import Used
from playground.server import free_port
from tests import test_cookbook
from tests.kit import Json, rows, until
from tests.test_command_line import run_on
from tests.test_cookbook import PENDING, Served, discord_waits, serving

pytestmark = [
    pytest.mark.both_modes,
    pytest.mark.skipif("Relay" not in test_cookbook.RECIPES, reason="docs/cookbook.md is not here"),
]

__all__ = ["discord_waits"]  # a fixture

EPHEMERAL = 64
SLOW = "SAYS_SO_WITHIN_S = 10"
Mood = Literal["takes it", "fails", "hangs"]


class Service:
    """A service that takes questions, and later answers them on the bot's hook; Standard Webhooks' own code signs."""

    def __init__(self) -> None:
        self.port, self.mood = free_port(), "takes it"
        self.asked: list[tuple[str, Json]] = []
        self.url = f"http://127.0.0.1:{self.port}/questions"
        self._runner: web.AppRunner | None = None

    async def open(self, mood: Mood = "takes it") -> None:
        app = web.Application()
        app.router.add_post("/questions", self._take)
        self.mood, self._runner = mood, web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()

    async def close(self) -> None:
        if self._runner:
            await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        self.asked.append((request.headers["Idempotency-Key"], await request.json()))
        if self.mood == "hangs":
            await asyncio.Event().wait()
        return web.Response(status=202 if self.mood == "takes it" else 500)

    async def ticket(self, number: int = -1) -> str:
        """Return the ticket of a question, by default the last one; wait for the first."""
        await until(lambda: self.asked)
        return self.asked[number][1]["ticket"]


class Relay(Served):
    """The bot, the Discord it is in, and the service that it asks."""

    service: Service

    async def send(self, ticket: str, text: str, *, id: str = "", secret: str = "") -> int:
        """Answer a question as the service does; return the status."""
        id, body = id or f"msg_{secrets.token_hex(8)}", json.dumps({"ticket": ticket, "text": text})
        now = datetime.datetime.fromtimestamp(self.discord.clock.now(), datetime.UTC)
        signature = Webhook(secret or self.discord.hooks.secret).sign(id, now, body)
        headers = {"webhook-id": id, "webhook-timestamp": f"{int(now.timestamp())}", "webhook-signature": signature}
        url, headers = f"{self.process.web_address}/hooks/answer", {**headers, "Content-Type": "application/json"}
        status = 503
        while status == 503:  # the bot is starting: a service tries again
            async with aiohttp.ClientSession() as client, client.post(url, data=body, headers=headers) as response:
                status = response.status
        return status

    def posted(self, channel: str = "random", who: str = "carol") -> list[str]:
        """Return what the bot has posted there, without what a person alone sees."""
        seen = self.discord.messages(channel, seen_by=who)
        return [self.discord.text(each) for each in seen if not each["flags"] & EPHEMERAL]

    async def posts(self, *texts: str, channel: str = "random", who: str = "carol") -> None:
        """Wait until that and no more is posted, and nothing is left to do."""
        await self.settled()
        assert self.posted(channel, who) == list(texts)

    async def settled(self) -> None:
        """Wait until nothing is left to do, now or later."""
        await until(lambda: not rows(self.store, f"{PENDING} UNION ALL SELECT key FROM timer"))

    def ask(self, question: str, name: str = "alice", channel: str = "random") -> Any:
        return self.discord.user(name).command("ask", question=question, channel=channel)

    def timer(self) -> tuple[int, float] | None:
        """Return how many tries were made when the next one is due, and in how many seconds that is."""
        found = rows(self.store, "SELECT body, due_at - ? FROM timer", self.discord.clock.now())
        return next(((json.loads(body)["arguments"][1], left) for body, left in found), None)

    async def tries(self, count: int) -> float:
        """Wait until so many tries have failed; return the pause after them."""
        await until(lambda: (timer := self.timer()) and timer[0] == count)
        timer = self.timer()
        assert timer
        return timer[1]


@contextlib.asynccontextmanager
async def relaying(folder: Path, mode: str, **env: Any) -> AsyncIterator[Relay]:
    """Run the relay with a service that takes questions."""
    service = Service()
    await service.open()
    more = {} if mode == "rest" else {"WEB_PORT": free_port()}
    secret = f"whsec_{'c2VjcmV0IG9mIHRoZSByZWxheSdzIHRlc3Q='}"
    async with serving("Relay", folder, RELAY_URL=service.url, HOOK_SECRET=secret, **more, **env) as served:
        served.discord.hooks.secret = secret
        it = Relay(served.discord, served.process, served.store)
        it.service = service
        try:
            yield it
        finally:
            await service.close()


def read(message: Used) -> Json:
    assert message.message
    return message.message


async def test_an_answer_comes_to_where_it_was_asked_whatever_happens_meanwhile(tmp_path: Path, mode: str) -> None:
    async with relaying(tmp_path, mode) as it:
        alice, bob = it.discord.user("alice"), it.discord.user("bob")
        used = await it.ask("Why?")
        assert "I am asking." in it.discord.text(read(used))
        ticket = await it.service.ticket()
        await it.at_rest()
        assert it.posted() == []
        await it.kill()
        with pytest.raises(aiohttp.ClientConnectionError):
            await it.send(ticket, "Because.")
        it.discord.clock.advance(3_600)  # the interaction's token is dead by now
        await it.start()
        async with it.dying_at("message"):
            assert await it.send(ticket, "Because.") == 202
        await it.posts(f"<@{alice.id}> asked: Why?\nBecause.")

        await it.ask("What now?", "bob", "dm")
        await until(lambda: len(it.service.asked) == 2)
        await it.at_rest()
        outage = it.discord.faults.add(method="POST", path="/channels/*/messages", status=502, times=None)
        assert await it.send(await it.service.ticket(), "@everyone Nothing.") == 202
        await until(lambda: outage.hits)
        await it.kill()  # the answer is taken, and not posted
        assert all("Received status 502" in line for line in it.complaints)
        it.process.log.clear()
        it.discord.faults.clear()
        await it.start()
        await it.posts(f"<@{bob.id}> asked: What now?\n@everyone Nothing.", channel="dm", who="bob")
        assert it.discord.messages("dm", seen_by="bob")[-1]["mention_everyone"] is False
        assert len(it.posted()) == 1


async def test_a_question_is_asked_again_after_a_kill_and_the_service_can_tell(tmp_path: Path, mode: str) -> None:
    async with relaying(tmp_path, mode) as it:
        it.service.mood = "hangs"
        await it.ask("Why?")
        ticket = await it.service.ticket()
        await it.kill()
        it.service.mood = "takes it"
        await it.start()
        await until(lambda: len(it.service.asked) == 2)
        assert it.service.asked == [(ticket, {"ticket": ticket, "question": "Why?"})] * 2
        await it.at_rest()
        assert it.timer() is None


async def test_only_the_first_answer_to_a_known_ticket_is_posted(tmp_path: Path, mode: str) -> None:
    async with relaying(tmp_path, mode) as it:
        asked = f"<@{it.discord.user('alice').id}> asked: Why?\n"
        await it.ask("Why?")
        ticket = await it.service.ticket()
        await it.at_rest()
        statuses = await asyncio.gather(*(it.send(ticket, f"{number}") for number in range(8)))
        assert set(statuses) <= {202, 410}
        assert 202 in statuses
        await it.settled()
        [first] = it.posted()
        assert first in [f"{asked}{number}" for number in range(8)]
        assert await it.send(ticket, "again", id="msg_1") == 410

        await it.ask("And?")
        await until(lambda: len(it.service.asked) == 2)
        await it.at_rest()
        ticket, before = await it.service.ticket(), state(it.store)
        forged = [f"{ticket}x", ticket[:-1], secrets.token_urlsafe(), "", ":", "%", "\x00", "\ud800"]
        assert [await it.send(each, "forged") for each in forged] == [404] * len(forged)
        assert await it.send(ticket, "forged", secret=f"whsec_{'bm90IHRoZSBzZWNyZXQ='}") == 401
        assert await it.send(ticket, " \n") == 422
        it.discord.clock.advance(86_400 + 1)
        assert await it.send(ticket, "too late") == 410
        assert (state(it.store), it.posted()) == (before, [first])
        assert [line.partition("refused: ")[2][:33] for line in it.complaints] == ["the signature is missing or wrong"]
        it.process.log.clear()


def state(store: Path) -> list[Any]:
    """Return what an answer could change."""
    records = "SELECT key, version, data FROM record ORDER BY key"
    return [rows(store, sql) for sql in (records, "SELECT key FROM inbox ORDER BY key", "SELECT key FROM timer")]


async def test_a_service_that_cannot_be_asked_is_asked_again_and_again_and_then_on_the_failed_list(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = test_cookbook.RECIPES["Relay"]
    assert SLOW in recipe
    monkeypatch.setitem(test_cookbook.RECIPES, "Relay", recipe.replace(SLOW, "SAYS_SO_WITHIN_S = 0.5"))
    async with relaying(tmp_path, mode) as it:
        await it.service.close()
        await it.ask("Why?")
        pauses = [await it.tries(1)]  # nobody is there
        await it.service.open("fails")
        it.discord.clock.advance(10)
        pauses.append(await it.tries(2))
        assert len(it.service.asked) == 1
        await it.kill()
        it.service.mood = "hangs"
        it.discord.clock.advance(60)
        await it.start()
        pauses.append(await it.tries(3))
        it.service.mood = "fails"
        it.discord.clock.advance(300)
        pauses.append(await it.tries(4))
        assert pauses == sorted(pauses)
        assert it.posted() == []
        it.discord.clock.advance(1_200)
        told = f"<@{it.discord.user('alice').id}> I could not ask this: Why?"
        await it.posts(told)
        [(text,)] = rows(it.store, "SELECT type FROM failed")
        assert (text, it.timer(), len(it.service.asked)) == ("ClientResponseError", None, 4)
        assert any("forward) failed and is on the failed list" in line for line in it.complaints)

        it.discord.clock.advance(2 * 86_400)  # a ticket of that day would be too old
        it.service.mood = "takes it"
        script, store = tmp_path / "relay_bot.py", f"sqlite:{it.store}"
        env = {"HOOK_SECRET": "of sixteen characters", "PYTHONPATH": str(test_cookbook.ROOT), "STORE": store}
        done = await run_on(it.discord, script, "failed", "retry", cwd=tmp_path, **env)
        assert (done.code, done.err) == (0, ""), done
        await until(lambda: len(it.service.asked) == 5)
        ticket = await it.service.ticket()
        assert it.service.asked == [(ticket, {"ticket": ticket, "question": "Why?"})] * 5
        await it.at_rest()
        assert await it.send(ticket, "Because.") == 202
        await it.posts(told, f"<@{it.discord.user('alice').id}> asked: Why?\nBecause.")
        it.process.log.clear()  # its complaints were looked at


async def test_an_answer_that_is_faster_than_the_service_says_so_counts_and_ends_the_asking(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = test_cookbook.RECIPES["Relay"].replace(SLOW, "SAYS_SO_WITHIN_S = 1")
    short = short.replace('PAUSES = ("10s", "1m", "5m", "20m")', 'PAUSES = ("1s",)')
    monkeypatch.setitem(test_cookbook.RECIPES, "Relay", short)
    async with relaying(tmp_path, mode) as it:
        it.service.mood = "hangs"
        await it.ask("Why?")
        await it.tries(1)
        it.discord.clock.advance(1)
        await until(lambda: len(it.service.asked) == 2)  # the last try is under way
        assert await it.send(await it.service.ticket(), "Because.") == 202
        await it.posts(f"<@{it.discord.user('alice').id}> asked: Why?\nBecause.")
        assert len(it.service.asked) == 2


async def test_a_long_answer_is_cut_and_comes_as_a_file_too(tmp_path: Path, mode: str) -> None:
    async with relaying(tmp_path, mode) as it:
        question, long = "Q" * 1_000, "Ünd so weiter. 🎉" * 20_000
        for text in ("x" * 2_500, long):
            count = len(it.service.asked)
            await it.ask(question)
            await until(lambda count=count: len(it.service.asked) == count + 1)
            await it.at_rest()
            assert await it.send(await it.service.ticket(), text) == 202
        await until(lambda: len(it.posted()) == 2)
        whole, cut = it.discord.messages("random", seen_by="carol")
        assert it.discord.text(whole).endswith(f"\n{'x' * 2_500}")
        assert whole["attachments"] == []
        assert f"{long[:2_500]}…" in it.discord.text(cut)
        [file] = cut["attachments"]
        async with aiohttp.ClientSession() as client, client.get(file["url"]) as response:
            assert (file["filename"], await response.text("utf-8")) == ("answer.txt", long)
