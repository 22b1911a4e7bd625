"""The page's socket: who is let in, what it is told, and what it may ask for."""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self

import aiohttp
import pytest
import pytest_asyncio

from playground import Discord
from playground.world import APPLICATION_ID
from tests.clients.raw import Json, RawBot

ECHO_BOT = """
import sys, time
print("hello from the bot", flush=True)
time.sleep(60)
"""


class Page:
    """A browser's side of the socket."""

    def __init__(self, discord: Discord, **headers: str) -> None:
        self.discord = discord
        self.headers = headers

    async def __aenter__(self) -> Self:
        self.session = aiohttp.ClientSession()
        url = f"{self.discord.url}/page/socket"
        try:
            self.ws = await self.session.ws_connect(url, headers=self.headers, autoclose=False)
        except aiohttp.ClientError:
            await self.session.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.ws.close()
        await self.session.close()

    async def token(self) -> str:
        async with self.session.get(self.discord.url) as response:
            found = re.search(r'name="playground-token" content="([^"]+)"', await response.text())
        assert found is not None
        return found[1]

    async def greet(self) -> Json:
        await self.send(do="hello", token=await self.token())
        return await self.next("state")

    async def send(self, **asked: Any) -> None:
        await self.ws.send_json(asked)

    async def next(self, type_: str) -> Json:
        """The next message of that type; an error is never passed over."""
        while True:
            message = json.loads(await self.ws.receive_str(timeout=10))
            if message["type"] == type_:
                return message
            assert message["type"] != "error", message

    async def interaction(self, state: str) -> Json:
        while True:
            interaction = (await self.next("interaction"))["interaction"]
            if interaction["state"] == state:
                return interaction

    async def refusal(self, **asked: Any) -> str:
        await self.send(**asked)
        return (await self.next("error"))["text"]


@pytest_asyncio.fixture
async def discord() -> AsyncIterator[Discord]:
    async with Discord() as discord:
        yield discord


@pytest_asyncio.fixture
async def page(discord: Discord) -> AsyncIterator[Page]:
    async with Page(discord) as page:
        yield page


# Who is let in


@pytest.mark.parametrize(
    "first", ["nonsense", "[]", '{"do": "hello"}', '{"do": "hello", "token": "x"}', '{"do": "say", "token": "TOKEN"}']
)
async def test_only_who_says_hello_with_the_pages_token_is_let_in(page: Page, first: str) -> None:
    await page.ws.send_str(first.replace("TOKEN", await page.token()))
    message = await page.ws.receive(timeout=10)
    assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, 4001)


async def test_a_first_message_in_bytes_is_refused(page: Page) -> None:
    await page.ws.send_bytes(b"{}")
    assert (await page.ws.receive(timeout=10)).data == 4001


@pytest.mark.parametrize("headers", [{"Origin": "http://evil.example"}, {"Host": "evil.example"}])
async def test_a_foreign_origin_or_host_gets_403_at_the_handshake(discord: Discord, headers: dict[str, str]) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
        async with Page(discord, **headers):
            pass


async def test_the_pages_own_origin_is_let_in(discord: Discord) -> None:
    async with Page(discord, Origin=discord.url) as page:
        assert (await page.greet())["type"] == "state"


async def test_every_playground_has_a_token_of_its_own(discord: Discord, page: Page) -> None:
    async with Discord() as other, Page(other) as other_page:
        assert await other_page.token() != await page.token()


async def test_the_page_cannot_be_framed_and_is_not_cached(discord: Discord, page: Page) -> None:
    async with page.session.get(discord.url) as response:
        assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]
        assert response.headers["Cache-Control"] == "no-store"


async def test_without_its_files_the_page_says_so_and_the_rest_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("playground.control.PAGE", tmp_path / "nowhere")
    async with Discord() as discord, RawBot(discord) as bot:
        async with bot.rest.session.get(discord.url) as response:
            assert (response.status, "index.html is missing" in await response.text()) == (404, True)
        assert (await bot.rest("GET", "/users/@me"))[0] == 200


async def test_no_path_leads_out_of_the_pages_folder(discord: Discord, page: Page) -> None:
    from yarl import URL

    for path in ("/page/../server.py", "/page/%2e%2e/server.py", "/page/..%2fserver.py"):
        async with page.session.get(URL(discord.url + path, encoded=True)) as response:
            assert response.status in (403, 404)


# What it is told


async def test_the_state_has_everything(discord: Discord, page: Page) -> None:
    discord.world.put_command(None, {"name": "poll", "description": "x"})
    await discord.user("alice").say("hello")
    used = discord.user("bob").start_command("poll", {})
    state = await page.greet()
    assert [user["username"] for user in state["users"]] == ["alice", "bob", "carol"]
    assert state["users"][0]["name"] == "Alice"
    assert state["guild"]["name"] == "Playground"
    assert [channel["name"] for channel in state["channels"]] == ["general", "random"]
    assert [command["name"] for command in state["commands"]] == ["poll"]
    assert [(message["content"], message["visible_to"]) for message in state["messages"]] == [("hello", None)]
    nobody = {"name": "", "status": "none", "pid": None, "exit_code": None, "mode": None, "has_web": False}
    assert (state["bot"], state["hooks"]) == (nobody, None)
    assert state["log"] == []
    assert [one["id"] for one in state["interactions"]] == [used.interaction["id"]]


async def test_what_happens_is_told_as_it_happens(discord: Discord, page: Page) -> None:
    await page.greet()
    async with RawBot(discord) as bot:
        commands = [{"name": "poll", "description": "x"}]
        await bot.rest("PUT", f"/applications/{APPLICATION_ID}/commands", commands)
        assert [command["name"] for command in (await page.next("commands"))["commands"]] == ["poll"]
        used = discord.user("alice").start_command("poll", {})
        pending = await page.interaction("pending")
        assert (pending["kind"], pending["name"], pending["user_id"]) == ("command", "poll", discord.user("alice").id)
        interaction = await bot.interaction()
        await bot.rest.answer(interaction, 4, {"content": "psst", "flags": 64})
        message = (await page.next("message"))["message"]
        assert message["visible_to"] == discord.user("alice").id
        assert message["used"] == {"user_id": discord.user("alice").id, "name": "poll"}
        assert (await page.interaction("answered"))["id"] == interaction["id"]
        await bot.rest.webhook("DELETE", interaction, None, "@original")
        assert (await page.next("message_gone"))["id"] == message["id"]
    assert (await used).state == "answered"
    discord.user("dora")
    assert (await page.next("users"))["users"][-1]["username"] == "dora"
    assert len((await page.next("channels"))["channels"][0]["permissions"]) == 4
    discord.world.direct_channel_with(discord.user("bob").id)
    assert (await page.next("channels"))["channels"][-1]["name"] == "@bob"


async def test_a_failure_is_told_with_its_reason(discord: Discord, page: Page) -> None:
    discord.world.put_command(None, {"name": "poll", "description": "x"})
    await page.greet()
    discord.user("alice").start_command("poll", {})
    await page.send(do="advance", seconds=3)
    assert (await page.interaction("failed"))["text"] == "The application did not respond"


# What it may ask for


async def test_a_whole_story_by_the_page_alone(discord: Discord, page: Page) -> None:
    state = await page.greet()
    alice, channel = state["users"][0]["id"], state["channels"][0]["id"]
    async with RawBot(discord) as bot:
        discord.world.put_command(None, {"name": "poll", "description": "x"})
        await page.send(**{"do": "command", "as": alice, "channel_id": channel, "name": "poll", "options": {}})
        button = {"type": 2, "style": 1, "custom_id": "b", "label": "B"}
        select = {"type": 3, "custom_id": "s", "options": [{"label": "x", "value": "x"}]}
        rows = [{"type": 1, "components": [part]} for part in (button, select)]
        await bot.rest.answer(await bot.interaction(), 4, {"components": rows, "flags": 64})
        message = (await page.next("message"))["message"]

        on_message = {"as": alice, "message_id": message["id"]}
        await page.send(do="select", custom_id="s", values=["x"], **on_message)
        chosen = await bot.interaction()
        assert chosen["data"]["values"] == ["x"]
        await bot.rest.answer(chosen, 6)

        await page.send(do="click", custom_id="b", **on_message)
        field = {"type": 18, "label": "Name", "component": {"type": 4, "custom_id": "n", "style": 1}}
        form = {"custom_id": "f", "title": "F", "components": [field]}
        await bot.rest.answer(await bot.interaction(), 9, form)
        shown = await page.next("form")
        assert (shown["user_id"], shown["form"]["title"]) == (alice, "F")
        assert shown["form"]["components"][0]["id"] == 1

        await page.send(
            **{"do": "submit", "as": alice, "interaction_id": shown["interaction_id"], "values": {"n": "x"}}
        )
        submitted = await bot.interaction()
        assert submitted["data"]["components"][0]["component"]["value"] == "x"
        await bot.rest.answer(submitted, 6)

        await page.send(do="dismiss", **on_message)
        assert (await page.next("message_gone"))["id"] == message["id"]
        await page.send(**{"do": "say", "as": alice, "channel_id": channel, "content": "bye"})
        assert (await page.next("message"))["message"]["content"] == "bye"


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"do": "fly"}, "The playground cannot 'fly'."),
        ({}, "'do' is missing"),
        ({"do": "click", "as": "ALICE", "message_id": "1"}, "'custom_id' is missing"),
        ({"do": "click", "as": "ALICE", "message_id": "1", "custom_id": "x"}, "alice sees no message 1."),
        ({"do": "say", "as": "9", "channel_id": "1", "content": "x"}, "There is no person with the id '9'."),
        (
            {"do": "command", "as": "ALICE", "channel_id": "general", "name": "x"},
            "The bot has no command 'x'. Registered: none.",
        ),
        ({"do": "advance", "seconds": -1}, "The clock only moves forward, not by -1.0 s."),
        (
            {"do": "bot", "action": "start"},
            "No bot was given to the playground. Start it with: python -m playground bot.py",
        ),
    ],
)
async def test_what_cannot_be_done_is_answered_with_a_sentence(
    discord: Discord, page: Page, asked: Json, sentence: str
) -> None:
    await page.greet()
    alice = discord.user("alice").id
    asked = {key: alice if value == "ALICE" else value for key, value in asked.items()}
    assert await page.refusal(**asked) == sentence


@pytest.mark.parametrize("text", ["nonsense", "[]", "5", "null", '{"do": []}', '{"do": "click", "as": []}'])
async def test_nonsense_is_answered_with_an_error_and_the_socket_stays(page: Page, text: str) -> None:
    await page.greet()
    await page.ws.send_str(text)
    assert (await page.next("error"))["text"]
    await page.send(do="advance", seconds=0)
    assert await page.refusal(do="fly") == "The playground cannot 'fly'."


async def test_the_bot_is_stopped_started_killed_and_restarted(discord: Discord, page: Page, tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(ECHO_BOT)
    await page.greet()
    bot = await discord.start_bot(tmp_path / "echo.py")
    assert (await page.next("bot"))["bot"] == {
        "name": "echo.py", "status": "starting", "pid": bot.pid, "exit_code": None, "mode": "gateway", "has_web": False
    }  # fmt: skip
    assert (await page.next("log"))["line"] == "hello from the bot"

    async def status(wanted: str) -> Json:
        while True:
            shown = (await page.next("bot"))["bot"]
            if shown["status"] == wanted:
                return shown

    first_pid = bot.pid
    await page.send(do="bot", action="kill")
    assert (await status("stopped"))["exit_code"] == -9
    await page.send(do="bot", action="start")
    assert (await status("starting"))["pid"] not in (None, first_pid)
    await page.next("log")
    assert "runs already" in await page.refusal(do="bot", action="start")
    await page.send(do="bot", action="restart")
    assert (await status("stopped"))["exit_code"] == -15
    assert (await status("starting"))["pid"] is not None
    await page.next("log")
    await page.send(do="bot", action="stop")
    assert (await status("stopped"))["pid"] is None
    assert await page.refusal(do="bot", action="fly") == "A bot cannot be told to 'fly'."
    async with Page(discord) as second:
        assert (await second.greet())["log"] == ["hello from the bot"] * 3


# What a person and an administrator do by the page


async def upload(page: Page, name: str, data: bytes, token: str | None = None) -> tuple[int, Json]:
    headers = {"X-Playground-Token": token or await page.token(), "Content-Type": "text/plain"}
    url = f"{page.discord.url}/page/upload"
    async with page.session.post(url, params={"name": name}, data=io.BytesIO(data), headers=headers) as response:
        return response.status, await response.json()


async def test_a_picked_file_goes_with_a_message_a_command_and_a_form(discord: Discord, page: Page) -> None:
    state = await page.greet()
    alice, channel = state["users"][0]["id"], state["channels"][0]["id"]
    status, file = await upload(page, "a b.txt", b"hello")
    assert (status, file["filename"], file["size"]) == (200, "a b.txt", 5)
    async with page.session.get(file["url"]) as response:
        assert (await response.read(), response.content_type) == (b"hello", "text/plain")
    assert (await upload(page, "x", b"", token="wrong"))[0] == 403
    assert (await upload(page, "x", bytes(10 * 1024 * 1024 + 1)))[0] == 413

    acting = {"as": alice, "channel_id": channel}
    await page.send(do="say", content="", uploads=[file["id"]], **acting)
    message = (await page.next("message"))["message"]
    assert message["attachments"][0]["filename"] == "a b.txt"
    async with RawBot(discord) as bot:
        option = {"type": 11, "name": "file", "description": "x"}
        discord.world.put_command(None, {"name": "use", "description": "x", "options": [option]})
        await page.send(do="command", name="use", options={"file": file["id"]}, **acting)
        used = await bot.interaction()
        assert len(used["data"]["resolved"]["attachments"]) == 1
        part = {"type": 18, "label": "Files", "component": {"type": 19, "custom_id": "f"}}
        await bot.rest.answer(used, 9, {"custom_id": "f", "title": "F", "components": [part]})
        opened = (await page.next("form"))["interaction_id"]
        await page.send(**{"do": "submit", "as": alice, "interaction_id": opened, "values": {"f": [file["id"]]}})
        assert len((await bot.interaction())["data"]["resolved"]["attachments"]) == 1


async def test_the_page_is_offered_choices_and_told_why_there_are_none(discord: Discord, page: Page) -> None:
    state = await page.greet()
    acting = {"as": state["users"][0]["id"], "channel_id": state["channels"][0]["id"]}
    option = {"type": 3, "name": "fruit", "description": "x", "autocomplete": True}
    async with RawBot(discord) as bot:
        discord.world.put_command(None, {"name": "use", "description": "x", "options": [option]})
        asked = {"do": "autocomplete", "name": "use", "option": "fruit", "options": {}, **acting}
        await page.send(**asked, request=1, text="a")
        await page.send(**asked, request=2, text="ap")
        first, second = await bot.interaction(), await bot.interaction()
        await bot.rest.answer(second, 8, {"choices": [{"name": "Apple", "value": "apple"}]})
        told = await page.next("choices")
        assert told == {"type": "choices", "request": 2, "choices": [{"name": "Apple", "value": "apple"}]}
        assert first["data"]["options"][0]["value"] == "a"
        discord.clock.advance(3)
        assert "did not respond" in (await page.next("choices"))["problem"]
        await page.send(**{**asked, "option": "nope"}, request=3, text="")
        assert (await page.next("choices"))["problem"] == "/use has no option 'nope'."


async def test_no_packet_of_an_interaction_is_sent_while_somebody_types(discord: Discord, page: Page) -> None:
    await page.greet()
    option = {"type": 3, "name": "fruit", "description": "x", "autocomplete": True}
    discord.world.put_command(None, {"name": "use", "description": "x", "options": [option]})
    asking = asyncio.create_task(discord.user("alice").autocomplete("use", "fruit"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    async with Page(discord) as second:
        assert (await second.greet())["interactions"] == []
    discord.clock.advance(3)
    with pytest.raises(RuntimeError):
        await asking
    await page.send(do="fly")
    seen = [json.loads(await page.ws.receive_str(timeout=10))["type"] for _ in range(3)]
    assert seen == ["commands", "clock", "error"]


async def test_the_page_asks_which_commands_are_to_be_used_where(discord: Discord, page: Page) -> None:
    state = await page.greet()
    alice, bob, carol = (user["id"] for user in state["users"])
    general = state["channels"][0]["id"]
    made = [
        discord.world.put_command(None, {"name": name, "description": "x", **more})[0]["id"]
        for name, more in {
            "all": {},
            "admins": {"default_member_permissions": "8"},
            "private": {"contexts": [1]},
        }.items()
    ]

    async def usable(**asked: str) -> list[str]:
        await page.send(do="usable", request=5, **asked)
        return (await page.next("usable"))["commands"]

    assert await usable(**{"as": alice, "channel_id": general}) == made[:2]
    assert await usable(**{"as": bob, "channel_id": general}) == made[:1]
    assert await usable(**{"as": bob, "channel_id": "9"}) == []
    await page.send(**{"do": "open_dm", "as": carol})
    channel = (await page.next("opened"))["channel_id"]
    assert await usable(**{"as": carol, "channel_id": channel}) == made
    assert await usable(**{"as": bob, "channel_id": channel}) == []


async def test_an_administrator_changes_people_roles_and_channels(discord: Discord, page: Page) -> None:
    state = await page.greet()
    bob = state["users"][1]
    assert (bob["roles"], bob["locale"], bob["is_member"]) == ([], "en-US", True)
    assert [role["name"] for role in state["roles"]] == ["@everyone", "playground-bot", "Moderator", "Administrator"]
    assert (state["bot_user"]["username"], state["bot_in_guild"], state["has_outage"]) == (
        "playground-bot",
        True,
        False,
    )

    async def users() -> Json:
        return (await page.next("users"))["users"][1]

    await page.send(**{"do": "roles", "as": bob["id"], "roles": [state["roles"][2]["id"]]})
    assert (await users())["roles"] == [state["roles"][2]["id"]]
    channels = (await page.next("channels"))["channels"]
    assert int(channels[0]["permissions"][bob["id"]]) & 1 << 1
    await page.send(**{"do": "person", "as": bob["id"], "locale": "de"})
    assert (await users())["locale"] == "de"
    await page.send(do="role", name="Tea", permissions="2")
    assert (await page.next("roles"))["roles"][-1]["permissions"] == "2"
    await page.send(do="join", name="dave")
    assert (await page.next("users"))["users"][-1]["username"] == "dave"
    await page.send(**{"do": "leave", "as": bob["id"]})
    assert (await users())["is_member"] is False
    await page.send(do="create_channel", name="night", nsfw=True)
    made = {"name": ""}
    while made["name"] != "night":  # those of the earlier changes come first
        made = (await page.next("channels"))["channels"][-1]
    assert (made["name"], made["nsfw"], bob["id"] in made["permissions"]) == ("night", True, False)
    await page.send(do="delete_channel", channel_id=made["id"])
    assert [each["name"] for each in (await page.next("channels"))["channels"]] == ["general", "random"]
    await page.send(do="elsewhere")
    places = (await page.next("channels"))["channels"][2:]
    assert [(each["name"], each["context"], each["guild_name"]) for each in places] == [
        ("elsewhere", 0, "Elsewhere"),
        ("friends", 2, None),
    ]
    for action, in_guild, has_outage in (
        ("kick_bot", False, False),
        ("invite_bot", True, False),
        ("outage", True, True),
        ("outage_over", True, False),
    ):
        await page.send(do="guild", action=action)
        state = await page.next("state")
        assert (state["bot_in_guild"], state["has_outage"]) == (in_guild, has_outage)
    assert await page.refusal(do="guild", action="fly") == "A guild cannot be told to 'fly'."
    assert await page.refusal(**{"do": "roles", "as": bob["id"], "roles": []}) == "bob is not in the guild."


async def test_a_person_edits_deletes_and_reacts_by_the_page(discord: Discord, page: Page) -> None:
    state = await page.greet()
    alice, channel = state["users"][0]["id"], state["channels"][0]["id"]
    first = await discord.user("bob").say("first")
    await page.send(**{"do": "say", "as": alice, "channel_id": channel, "content": "hi", "reply_to": first["id"]})
    await page.next("message")
    message = (await page.next("message"))["message"]
    assert message["referenced_message"]["content"] == "first"
    on = {"as": alice, "message_id": message["id"]}
    await page.send(do="edit", content="hello", **on)
    assert (await page.next("message"))["message"]["content"] == "hello"
    await page.send(do="react", emoji="👍", **on)
    message = (await page.next("message"))["message"]
    assert (message["reactions"][0]["count"], message["reactors"]) == (1, {"👍": [alice]})
    await page.send(do="unreact", emoji="👍", **on)
    assert (await page.next("message"))["message"]["reactors"] == {}
    await page.send(do="delete", **on)
    assert (await page.next("message_gone"))["id"] == message["id"]
    second = await discord.user("bob").say("second")
    await page.send(do="delete_messages", message_ids=[first["id"], second["id"], "9"])
    assert [(await page.next("message_gone"))["id"] for _ in range(2)] == [first["id"], second["id"]]


async def test_a_menu_is_opened_on_its_target_and_typing_is_shown(discord: Discord, page: Page) -> None:
    state = await page.greet()
    alice, bob, channel = state["users"][0]["id"], state["users"][1]["id"], state["channels"][0]["id"]
    async with RawBot(discord) as bot:
        discord.world.put_command(None, {"name": "Wave", "type": 2})
        await page.send(
            **{"do": "command", "as": alice, "channel_id": channel, "name": "Wave", "options": {}, "target": bob}
        )
        assert (await bot.interaction())["data"]["target_id"] == bob
        await bot.rest("POST", f"/channels/{channel}/typing")
        assert (await page.next("typing")) == {"type": "typing", "channel_id": channel, "user_id": APPLICATION_ID}


async def test_the_page_is_told_the_time_when_it_moves(discord: Discord, page: Page) -> None:
    state = await page.greet()
    assert state["offset"] == 0
    await page.send(do="advance", seconds=3600)
    clock = await page.next("clock")
    assert (clock["offset"], clock["now"] - state["now"] >= 3600) == (3600, True)
