"""Faults of the web side that a reviewer found, each as the test of its kind."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hikari
import pytest

import bot
from bot import CommandContext, EventContext
from playground import Discord
from tests import test_hooks, test_web
from tests.kit import complaints, moving, rows, running, until
from tests.test_hooks import BODY, SECRET, hooked, standard
from tests.test_web import ask, command, head, noting, signed


async def test_a_hook_that_is_told_202_while_the_bot_stops_runs_to_its_end(tmp_path: Path) -> None:
    asked, ran = asyncio.Event(), list[int]()

    async def check(app: bot.App, body: Any) -> None:
        asked.set()
        await asyncio.sleep(0.3)

    @bot.hook("deploy", check=check)
    async def deploy(ctx: EventContext, body: dict[str, Any]) -> None:
        await ctx.app.rest.fetch_my_user()
        ran.append(body["version"])

    async with Discord() as discord:
        file = tmp_path / "bot.db"
        settings: Any = {"web_port": 0, "hook_secrets": {"": SECRET}}
        async with running(discord, deploy, store=moving(discord, file), **settings) as app:
            answer = asyncio.create_task(ask(f"{app.web.address}/hooks/deploy", BODY, standard(BODY)))
            await asked.wait()
            app.stop()
            assert (await answer)[0] == 202
        assert ran == [3]
        assert rows(file, "SELECT * FROM failed") == []


async def test_a_flush_brings_what_was_noted_to_disk_however_much_waits(tmp_path: Path) -> None:
    file = tmp_path / "bot.db"
    store = bot.SQLiteStore(str(file), bot.BotId(1))
    await store.open()
    key = bot.EventKey("interaction:1")
    await store.accept(bot.Event(key, b"{}"), None)
    store.note_answer(key, b"answer")
    store.move_cursor(bot.Cursor(0, "f", "s", 7, "u", b""))
    flushed = asyncio.create_task(store.flush())
    await asyncio.sleep(0)
    more = [store.accept(bot.Event(bot.EventKey(f"x:{number}"), b"{}"), None) for number in range(700)]
    await flushed
    assert rows(file, "SELECT seq FROM cursor") == [(7,)]
    assert rows(file, "SELECT answer FROM inbox WHERE key=?", key) == [(b"answer",)]
    await asyncio.gather(*more)
    await store.close()


async def test_who_does_not_read_the_answer_holds_up_nobody_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bot, "FIRST_ANSWER_WITHIN_S", 0.5)
    monkeypatch.setattr(bot, "ARRIVES_AFTER_S", (0,))

    @bot.command("large", "Much.")
    async def large(ctx: CommandContext) -> None:
        await ctx.respond([bot.TextDisplay("x"), bot.File(hikari.Bytes(os.urandom(9_000_000), "a.png"))])

    runs = list[str]()
    async with test_web.serving(tmp_path, large, noting(runs), max_handlers=1) as served:
        body = command("large")
        _, writer = await asyncio.open_connection("127.0.0.1", int(served.url.split(":")[2].split("/")[0]), limit=1024)
        lines = [f"{name}: {text}" for name, text in signed(body).items()]
        writer.write(head(*lines, f"Content-Length: {len(body)}") + body)
        writer.transport.pause_reading()  # type: ignore
        await until(served.app.slots.locked)
        await until(lambda: not served.app.slots.locked())
        await served.post(command().replace(b'"4"', b'"77"'))
        await until(lambda: runs)
        writer.close()


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder whose path leaves room for the name of a socket."""
    folder = Path(tempfile.mkdtemp())
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(os.name != "posix", reason="sockets in files")
async def test_a_socket_at_which_another_bot_listens_is_left_to_it(short_folder: Path) -> None:
    socket = str(short_folder / "web.sock")
    async with Discord() as discord:
        async with running(discord, web_socket=socket):
            with pytest.raises(bot.OperatorError, match=r"web\.sock cannot be used \(another process listens there\)"):
                async with running(discord, web_socket=socket):
                    pass
        async with running(discord, web_socket=socket):  # what a bot left that is gone is no obstacle
            pass


async def test_no_header_that_could_prove_who_a_sender_is_reaches_the_handler(tmp_path: Path) -> None:
    got = list[Any]()

    @bot.hook("deploy")
    async def deploy(ctx: EventContext, body: dict[str, Any]) -> None:
        got.append(dict(ctx.headers))

    secret = {
        f"X-{name}": "proof"
        for name in ("Api-Key", "Shopify-Hmac-Sha256", "Password", "Session-Id", "Credential", "Slack-Sig", "Cookie")
    }
    async with test_hooks.serving(tmp_path, deploy) as served:
        headers = [*standard(BODY).items(), *secret.items(), ("X-Event", "push"), ("Webhook-Id", "msg_FAKE")]
        assert (await served.post(BODY, headers))[0] == 202
        await until(lambda: got)
    assert set(got[0]) == {"webhook-id", "webhook-timestamp", "x-event"}
    assert (got[0]["webhook-id"], got[0]["x-event"]) == ("msg_1", "push")


async def test_a_check_that_hangs_is_answered_and_nothing_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bot, "CHECK_WITHIN_S", 0.1)

    async def check(app: bot.App, body: Any) -> None:
        await asyncio.Event().wait()

    async with test_hooks.serving(tmp_path, hooked([], check=check)) as served:
        status, told = await served.post(BODY, standard(BODY))
        assert (status, told) == (503, {"error": "the check took longer than 0 s"})
        assert served.accepted() == []


async def test_what_is_signed_is_read_in_one_way(tmp_path: Path) -> None:
    took = list[Any]()
    async with test_hooks.serving(tmp_path, hooked(took, hint=float)) as served:
        given = standard(b"1.25")
        stamp = given["Webhook-Timestamp"]
        twisted = {**given, "Webhook-Id": f"{given['Webhook-Id']}.{stamp}", "Webhook-Timestamp": "1"}
        assert await served.statuses("deploy", (b"1.25", given), (b"25", twisted)) == [202, 401]
        body = f"{stamp}.25".encode()
        given = standard(body, id="msg_2")
        twisted = {**given, "Webhook-Id": f"msg_2.{stamp}", "Webhook-Timestamp": stamp}
        assert await served.statuses("deploy", (body, given), (b"25", twisted)) == [202, 401]


async def test_strangers_with_keys_of_their_own_write_nothing_and_do_not_silence_other_hooks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    hooks = hooked([], "build", sign="ed25519"), hooked([], "other")
    async with test_hooks.serving(tmp_path, *hooks, hook_keys={}, pin_keys=True) as served:
        assert await served.statuses("build", (BODY, test_hooks.ed25519(BODY))) == [202]
        before = rows(served.file, "SELECT * FROM pin")
        for _ in range(bot.REFUSALS_TOLD_MAX + 5):
            key = test_hooks.SigningKey.generate()
            assert await served.statuses("build", (BODY, test_hooks.ed25519(BODY, "msg_9", key=key))) == [401]
        assert rows(served.file, "SELECT * FROM pin") == before
        wrong = standard(BODY, secret=test_hooks.OTHER_SECRET)
        assert await served.statuses("other", (BODY, wrong)) == [401]
    told = complaints(caplog)
    assert len([each for each in told if "hook build" in each]) == bot.REFUSALS_TOLD_MAX
    assert len([each for each in told if "hook other" in each]) == 1


def test_a_mistake_in_a_hook_is_told_where_it_is_listed() -> None:
    def check(app: bot.App, body: Any) -> None: ...

    with pytest.raises(bot.OperatorError, match=r"check cannot be called so\. Write: async def check\(app: App, body"):
        bot.App(bot.Config()).add(hooked([], check=check))
    with pytest.raises(bot.OperatorError, match="write one @hook, and a function for each"):
        bot.hook("second")(hooked([]))


async def test_a_secret_for_a_hook_that_is_not_there_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    secrets = {"": SECRET, "deploi": SECRET}
    async with test_hooks.serving(tmp_path, hooked([]), hook_secrets=secrets):
        pass
    assert complaints(caplog) == ["there is no hook 'deploi', for which HOOK_…_DEPLOI is set"]


async def test_a_large_answer_is_not_kept_for_a_copy(tmp_path: Path) -> None:
    @bot.command("large", "Much.")
    async def large(ctx: CommandContext) -> None:
        await ctx.respond([bot.TextDisplay("x"), bot.File(hikari.Bytes(b"x" * 100_000, "a.txt"))])

    @bot.command("small", "Little.")
    async def small(ctx: CommandContext) -> None:
        await ctx.respond("x")

    async with Discord(mode="rest") as discord:
        file = tmp_path / "bot.db"
        settings: Any = {"mode": "rest", "web_port": 0, "public_key": discord.public_key}
        async with running(discord, large, small, store=moving(discord, file), **settings) as app:
            await discord.set_endpoint(f"{app.web.address}/interactions")
            for name in ("large", "small"):
                assert (await discord.user("alice").command(name)).state == "answered"
            await app.store.flush()
        kept = [answer for (answer,) in rows(file, "SELECT answer FROM inbox ORDER BY id")]
        assert kept[0] is None
        assert json.loads(kept[1])["data"]["content"] == "x"
