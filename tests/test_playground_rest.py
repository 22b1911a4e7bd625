"""The playground's REST operations, faults and rate limits; every answer is held against the OpenAPI."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from playground import Discord
from playground.calls import Call
from playground.errors import Refused
from playground.limits import FORM_PARTS, IN_LABEL, MESSAGE_PARTS
from playground.routes import ROUTES, Operations
from playground.shapes import SELECTS
from playground.world import APPLICATION_ID, GUILD_ID
from tests.clients.raw import Rest

pytest_plugins = ("tests.clients.fixtures",)

COMMANDS = f"/applications/{APPLICATION_ID}/commands"
GUILD_COMMANDS = f"/applications/{APPLICATION_ID}/guilds/{GUILD_ID}/commands"


@pytest_asyncio.fixture
async def rest(discord: Discord) -> AsyncIterator[Rest]:
    async with Rest(discord) as rest:
        yield rest


@pytest.fixture
def messages(discord: Discord) -> str:
    return f"/channels/{discord.world.channel_of('general')['id']}/messages"


# Who may ask, and for what


async def test_an_unknown_route_is_loud(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AssertionError, match=r"routes that the playground does not have: .*POST /channels/1/invites"):
        async with Discord() as discord, Rest(discord) as rest:
            assert await rest("POST", "/channels/1/invites") == (404, {"message": "404: Not Found", "code": 0})
            assert discord.unknown == ["POST /channels/1/invites"]
            assert discord.journal.of("unknown")[0].data == {"method": "POST", "path": "/channels/1/invites"}
    assert "nothing answers POST /channels/1/invites. Add it to ROUTES" in capsys.readouterr().err


async def test_an_unknown_route_does_not_hide_what_failed_in_the_test() -> None:
    with pytest.raises(ZeroDivisionError):
        async with Discord() as discord, Rest(discord) as rest:
            await rest("GET", "/nowhere")
            raise ZeroDivisionError


async def test_another_token_is_answered_401_and_never_kept(discord: Discord, rest: Rest) -> None:
    assert await rest("GET", "/users/@me", token="real.one") == (401, {"message": "401: Unauthorized", "code": 0})
    assert "real.one" not in repr(list(discord.journal))


async def test_the_gateways_address_is_told_to_everybody_and_the_bots_share_of_it_is_not(rest: Rest) -> None:
    assert (await rest("GET", "/gateway", token="real.one"))[0] == 200
    assert (await rest("GET", "/gateway/bot", token="real.one"))[0] == 401


async def test_a_production_token_is_warned_of_once_and_never_kept(
    discord: Discord, rest: Rest, capsys: pytest.CaptureFixture[str]
) -> None:
    token = f"MTA{'x' * 23}.Gabcde.{'y' * 38}"
    for _ in range(2):
        assert (await rest("GET", "/users/@me", token=token))[0] == 401
    errors = capsys.readouterr().err
    assert errors.startswith("The token the bot offered looks like a production token: never hand one to a local fake.")
    assert (errors.count("\n"), token in errors, token in repr(list(discord.journal))) == (1, False, False)


async def test_another_version_of_the_api_is_an_unknown_route() -> None:
    with pytest.raises(AssertionError, match="GET /api/v9/users/@me"):
        async with Discord() as discord, Rest(discord) as rest:
            response = await rest.session.get(f"{discord.url}/api/v9/users/@me")
            assert response.status == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:8765"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1"},
    ],
)
@pytest.mark.parametrize("path", ["/", "/api/v10/users/@me", "/page/socket", "/gateway", "/attachments/1/2/x"])
async def test_a_foreign_host_or_origin_is_refused_everywhere(
    discord: Discord, rest: Rest, headers: dict[str, str], path: str
) -> None:
    async with rest.session.get(discord.url + path, headers=headers) as response:
        assert response.status == 403


async def test_our_own_origin_and_localhost_are_let_in(discord: Discord, rest: Rest) -> None:
    port = discord.url.rsplit(":", 1)[1]
    for host in (f"127.0.0.1:{port}", f"localhost:{port}"):
        assert (await rest("GET", "/gateway", headers={"Host": host, "Origin": f"http://{host}"}))[0] == 200


async def test_nothing_listens_beyond_this_machine(discord: Discord) -> None:
    assert discord.url.startswith("http://127.0.0.1:")


async def test_the_content_type_is_exactly_json(rest: Rest) -> None:
    await rest("GET", "/users/@me")
    assert rest.headers["Content-Type"] == "application/json"


# Reading


@pytest.mark.parametrize(
    "path",
    [
        "/gateway",
        "/gateway/bot",
        "/users/@me",
        "/users/@me/guilds",
        "/users/{alice}",
        "/applications/@me",
        "/oauth2/applications/@me",
        "/guilds/{guild}",
        "/guilds/{guild}?with_counts=true",
        "/guilds/{guild}/channels",
        "/guilds/{guild}/roles",
        "/guilds/{guild}/members?limit=2",
        "/guilds/{guild}/members/{alice}",
        "/channels/{channel}",
        "/channels/{channel}/messages",
    ],
)
async def test_what_can_be_read(discord: Discord, rest: Rest, path: str) -> None:
    ids = {"alice": discord.user("alice").id, "guild": GUILD_ID, "channel": discord.world.channel_of(None)["id"]}
    assert (await rest("GET", path.format(**ids)))[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/users/9", 10013),
        ("GET", "/guilds/9", 10004),
        ("GET", f"/guilds/{GUILD_ID}/members/9", 10007),
        ("GET", "/channels/9", 10003),
        ("GET", "/channels/9/messages", 10003),
        ("GET", "CHANNEL/messages/9", 10008),
        ("PATCH", "CHANNEL/messages/9", 10008),
        ("DELETE", "CHANNEL/messages/9", 10008),
        ("GET", "/applications/9/commands", 10002),
        ("GET", f"/applications/{APPLICATION_ID}/guilds/9/commands", 10004),
        ("GET", f"{COMMANDS}/9", 10063),
        ("PATCH", f"{COMMANDS}/9", 10063),
        ("DELETE", f"{COMMANDS}/9", 10063),
    ],
)
async def test_what_is_not_there_has_its_own_code(
    discord: Discord, rest: Rest, method: str, path: str, code: int
) -> None:
    path = path.replace("CHANNEL", f"/channels/{discord.world.channel_of(None)['id']}")
    status, body = await rest(method, path)
    assert (status, body["code"]) == (404, code)


async def test_members_are_paged_by_id(discord: Discord, rest: Rest) -> None:
    _, first = await rest("GET", f"/guilds/{GUILD_ID}/members?limit=2")
    _, then = await rest("GET", f"/guilds/{GUILD_ID}/members?limit=10&after={first[-1]['user']['id']}")
    names = [member["user"]["username"] for member in first + then]
    assert names == ["playground-bot", "owner", "alice", "bob", "carol"]


# Messages


async def test_a_message_is_made_read_edited_and_deleted(discord: Discord, rest: Rest, messages: str) -> None:
    status, made = await rest("POST", messages, {"content": "one", "embeds": [{"title": "T", "fields": []}]})
    assert (status, made["content"], made["author"]["bot"]) == (200, "one", True)
    one = f"{messages}/{made['id']}"
    assert await rest("GET", one) == (200, made)
    status, edited = await rest("PATCH", one, {"content": "two"})
    assert (status, edited["content"], edited["embeds"]) == (200, "two", made["embeds"])
    assert edited["edited_timestamp"] is not None
    assert await rest("DELETE", one) == (204, None)
    assert discord.messages() == []


async def test_components_come_back_with_ids_and_defaults(rest: Rest, messages: str) -> None:
    select = {"type": 3, "custom_id": "s", "options": [{"label": "a", "value": "a"}], "placeholder": None}
    container = {
        "type": 17,
        "components": [
            {"type": 10, "content": "text", "id": 2},
            {"type": 14},
            {"type": 1, "components": [select]},
            {"type": 9, "components": [{"type": 10, "content": "x"}], "accessory": button("a", label="A")},
            {"type": 12, "items": [{"media": {"url": "https://example.org/a.png"}}]},
        ],
    }
    _, made = await rest("POST", messages, {"flags": 1 << 15, "components": [container]})
    outer = made["components"][0]
    text, separator, row, section, gallery = outer["components"]
    assert [outer["id"], text["id"], separator["id"]] == [1, 2, 3]
    assert (outer["accent_color"], outer["spoiler"]) == (None, False)
    assert (separator["divider"], separator["spacing"]) == (True, 1)
    assert (row["components"][0]["min_values"], "placeholder" in row["components"][0]) == (1, False)
    assert section["accessory"]["disabled"] is False
    assert gallery["items"][0]["media"]["url"] == "https://example.org/a.png"


def button(custom_id: str, **more: Any) -> dict[str, Any]:
    return {"type": 2, "style": 1, "custom_id": custom_id, "label": "B", **more}


async def test_messages_are_read_in_pages_newest_first(rest: Rest, messages: str) -> None:
    ids = [(await rest("POST", messages, {"content": str(number)}))[1]["id"] for number in range(6)]

    async def read(query: str) -> list[str]:
        return [message["content"] for message in (await rest("GET", f"{messages}?{query}"))[1]]

    assert await read("limit=2") == ["5", "4"]
    assert await read(f"before={ids[3]}&limit=2") == ["2", "1"]
    assert await read(f"after={ids[1]}&limit=2") == ["3", "2"]
    assert await read(f"around={ids[3]}&limit=3") == ["4", "3", "2"]
    assert (await rest("GET", f"{messages}?limit=no"))[0] == 400


async def test_several_messages_are_deleted_at_once(discord: Discord, rest: Rest, messages: str) -> None:
    ids = [(await rest("POST", messages, {"content": str(number)}))[1]["id"] for number in range(3)]
    assert await rest("POST", f"{messages}/bulk-delete", {"messages": ids[:2]}) == (204, None)
    assert [message["id"] for message in discord.messages()] == ids[2:]
    status, body = await rest("POST", f"{messages}/bulk-delete", {"messages": ids[2:]})
    assert (status, body["code"]) == (400, 50016)


async def test_a_bot_cannot_edit_what_somebody_else_wrote(discord: Discord, rest: Rest, messages: str) -> None:
    theirs = await discord.user("alice").say("mine")
    status, body = await rest("PATCH", f"{messages}/{theirs['id']}", {"content": "yours"})
    assert (status, body["code"]) == (403, 50005)
    assert discord.messages()[0]["content"] == "mine"


async def test_a_nonce_that_is_enforced_makes_one_message(discord: Discord, rest: Rest, messages: str) -> None:
    body = {"content": "once", "nonce": "n1", "enforce_nonce": True}
    _, first = await rest("POST", messages, body)
    _, second = await rest("POST", messages, body)
    assert (first["id"], first["nonce"]) == (second["id"], "n1")
    await rest("POST", messages, {**body, "enforce_nonce": False})
    assert len(discord.messages()) == 2
    discord.clock.advance(301)
    await rest("POST", messages, body)
    assert len(discord.messages()) == 3


async def test_an_uploaded_file_is_served_and_named_by_components(discord: Discord, rest: Rest, messages: str) -> None:
    form = aiohttp.FormData()
    body = (
        '{"flags": 32768, "attachments": [{"id": 0, "filename": "a b.txt", "description": "d"}],'
        ' "components": [{"type": 13, "file": {"url": "attachment://a b.txt"}}]}'
    )
    form.add_field("payload_json", body, content_type="application/json")
    form.add_field("files[0]", b"hello", filename="x.txt", content_type="text/html")
    status, made = await rest("POST", messages, data=form)
    assert status == 200, made
    attachment = made["attachments"][0]
    assert (attachment["filename"], attachment["size"], attachment["description"]) == ("a b.txt", 5, "d")
    file = made["components"][0]
    assert (file["file"]["url"], file["name"], file["size"]) == (attachment["url"], "a b.txt", 5)
    async with rest.session.get(attachment["url"]) as response:
        assert (await response.read(), response.headers["Content-Security-Policy"]) == (
            b"hello",
            "sandbox; default-src 'none'",
        )
    _, edited = await rest("PATCH", f"{messages}/{made['id']}", {"attachments": [], "components": made["components"]})
    assert edited["code"] == 50035  # the file component still names the file that goes


async def test_a_reply_carries_what_it_replies_to(rest: Rest, messages: str) -> None:
    _, first = await rest("POST", messages, {"content": "first"})
    _, reply = await rest("POST", messages, {"content": "re", "message_reference": {"message_id": first["id"]}})
    assert (reply["type"], reply["referenced_message"]["content"]) == (19, "first")
    status, body = await rest("POST", messages, {"content": "re", "message_reference": {"message_id": "9"}})
    assert (status, list(body["errors"])) == (400, ["message_reference"])


async def test_a_private_channel_is_made_once(discord: Discord, rest: Rest) -> None:
    alice = discord.user("alice")
    status, channel = await rest("POST", "/users/@me/channels", {"recipient_id": alice.id})
    assert (status, channel["type"], channel["recipients"][0]["username"]) == (200, 1, "alice")
    assert (await rest("POST", "/users/@me/channels", {"recipient_id": alice.id}))[1] == channel
    await rest("POST", f"/channels/{channel['id']}/messages", {"content": "psst"})
    assert (await rest("POST", "/users/@me/channels", {"recipient_id": "9"}))[1]["code"] == 10013
    assert (await rest("POST", "/users/@me/channels", {"recipient_id": APPLICATION_ID}))[1]["code"] == 50007


async def test_typing_is_accepted(rest: Rest, messages: str) -> None:
    assert await rest("POST", messages.replace("/messages", "/typing")) == (204, None)


# Commands


@pytest.mark.parametrize("commands", [COMMANDS, GUILD_COMMANDS])
async def test_commands_are_set_read_changed_and_deleted(rest: Rest, commands: str) -> None:
    poll = {"name": "poll", "description": "Ask."}
    status, made = await rest("PUT", commands, [poll, {"name": "Report", "type": 3}])
    assert (status, [command["name"] for command in made]) == (200, ["poll", "Report"])
    assert (await rest("PUT", commands, [poll]))[1] == made[:1]  # unchanged: same id and version
    assert await rest("GET", f"{commands}?with_localizations=true") == (200, made[:1])
    one = f"{commands}/{made[0]['id']}"
    status, changed = await rest("PATCH", one, {"description": "Ask people."})
    assert (status, changed["id"], changed["name"]) == (200, made[0]["id"], "poll")
    assert changed["version"] != made[0]["version"]
    assert await rest("GET", one) == (200, changed)
    assert (await rest("POST", commands, poll))[0] == 200
    assert (await rest("POST", commands, {**poll, "name": "ping"}))[0] == 201
    assert await rest("DELETE", one) == (204, None)
    assert [command["name"] for command in (await rest("GET", commands))[1]] == ["ping"]


async def test_global_and_guild_commands_are_apart(rest: Rest) -> None:
    _, made = await rest("PUT", COMMANDS, [{"name": "a", "description": "a"}])
    assert await rest("GET", GUILD_COMMANDS) == (200, [])
    assert (await rest("GET", f"{GUILD_COMMANDS}/{made[0]['id']}"))[1]["code"] == 10063


# Bodies that make no sense


async def test_a_body_that_is_no_json_is_answered_50109(rest: Rest, messages: str) -> None:
    status, body = await rest("POST", messages, data=b"{nope", headers={"Content-Type": "application/json"})
    assert (status, body["code"]) == (400, 50109)


ODD: list[Any] = [
    None, True, 0, -1, 7, 1.5, 2**70, "", "x", "\ud83d\ude00", [], {}, [None], [1], ["x"], [[]], [{}], {"x": 1},
    {"type": 10}, [{"type": 1}], [{"type": 2, "style": 1}], [{"type": 3, "options": [{"value": []}]}], [{"type": []}],
    [{"id": "0"}], {"id": []}, {"url": 1}, {"url": "attachment://"}, [{"url": "attachment://x", "media": {"url": "x://"}}],
]  # fmt: skip
MESSAGE: dict[str, Any] = {
    "content": "x", "embeds": [], "attachments": [], "message_reference": {"message_id": "1"}, "nonce": "1", "flags": 0,
    "enforce_nonce": True, "allowed_mentions": {}, "components": [], "tts": False, "sticker_ids": [], "poll": None,
}  # fmt: skip
EMBED: dict[str, Any] = {
    "title": "x",
    "description": "x",
    "footer": {"text": "x"},
    "author": {"name": "x"},
    "fields": [],
}
OPTION: dict[str, Any] = {
    "type": 3, "name": "x", "description": "x", "required": True, "choices": [{"name": "x", "value": "x"}],
    "options": [], "min_value": 1, "max_length": 1, "autocomplete": False,
}  # fmt: skip
COMMAND: dict[str, Any] = {"name": "x", "description": "x", "options": [OPTION], "type": 1, "contexts": [0]}
SOUND_BODIES: dict[str, list[Any]] = {
    "callback": [
        {"type": 4, "data": MESSAGE},
        {"type": 5, "data": {"flags": 64}},
        {"type": 9, "data": {"custom_id": "x", "title": "x", "components": [{"type": 10, "content": "x"}]}},
    ],
    "commands": [COMMAND, [COMMAND]],
    "/reactions/": [None],
    "/permissions/": [{"type": 0, "allow": "8", "deny": "0"}],
    "/bans/": [{"delete_message_seconds": 5}],
    "/roles": [{"name": "a", "permissions": "8", "color": 5}],
    "/members/": [{"nick": "x", "roles": ["1"], "communication_disabled_until": "2030-01-01T00:00:00+00:00"}],
    "bulk-delete": [{"messages": ["1", "2"]}],
    "@me/channels": [{"recipient_id": "1"}],
    "messages": [MESSAGE, {"embeds": [EMBED]}],
    "/channels": [{"name": "a", "permission_overwrites": [{"id": "1", "type": 1, "allow": "1", "deny": None}]}],
}


def spoiled(sound: Any) -> Iterator[Any]:
    """The value with each of its parts, at any depth, replaced by each odd value in turn."""
    yield from ODD
    if isinstance(sound, dict):
        for key, value in sound.items():
            yield from ({**sound, key: odd} for odd in spoiled(value))
    if isinstance(sound, list):
        for number, value in enumerate(sound):
            yield from ([*sound[:number], odd, *sound[number + 1 :]] for odd in spoiled(value))


def part_with(kind: int, field: str, odd: Any) -> dict[str, Any]:
    """A component whose other fields are sound, so that the odd one is what is looked at."""
    text = {"type": 10, "content": "x"}
    sound: dict[str, Any] = {
        "custom_id": "x", "label": "x", "style": 1, "content": "x", "media": {"url": "https://x.y"},
        "items": [{"media": {"url": "https://x.y"}}], "options": [{"label": str(n), "value": str(n)} for n in range(2)],
        "components": [{"type": 2, "style": 1, "custom_id": "y", "label": "x"} if kind == 1 else text],
        "accessory": {"type": 11, "media": {"url": "https://x.y"}},
        "component": {"type": 4, "custom_id": "z", "style": 1},
    }  # fmt: skip
    return {
        "type": kind,
        **{name: value for name, value in sound.items() if name in (FORM_PARTS | MESSAGE_PARTS)[kind]},
    } | {field: odd}


def odd_components(in_form: bool) -> Iterator[dict[str, Any]]:
    """Each component with each field odd, inside of what it has to stand in."""
    for kind, fields in (FORM_PARTS if in_form else MESSAGE_PARTS).items():
        for part in (part_with(kind, field, odd) for field in fields for odd in ODD):
            if in_form and kind in IN_LABEL:
                yield {"type": 18, "label": "x", "component": part}
            elif kind == 2 or kind in SELECTS:
                yield {"type": 1, "components": [part]}
            elif kind == 11:
                yield {"type": 9, "components": [{"type": 10, "content": "x"}], "accessory": part}
            else:
                yield part


def try_all(route: str, method: str, operation: Any, bodies: Iterable[Any]) -> None:
    """Carry each body out on a Discord without sockets. Whatever is not done is Refused; all else fails the test."""
    for body in bodies:
        discord = Discord()
        operations = Operations(discord.world, discord.gateway, discord.interactions, discord.public_key)
        command, _ = discord.world.put_command(None, {"name": "a", "description": "a"})
        used = discord.user("alice").start_command("a", {}).interaction
        if route.startswith("/webhooks/"):
            discord.interactions.answer(used["id"], used["token"], {"type": 4, "data": {"content": "x"}}, [])
        kept = discord.world.add_message(used["channel_id"], discord.world.bot, {"content": "x"})
        ids = {
            "channel_id": used["channel_id"], "application_id": APPLICATION_ID, "guild_id": GUILD_ID,
            "interaction_id": used["id"], "interaction_token": used["token"], "webhook_id": APPLICATION_ID,
            "webhook_token": used["token"], "message_id": kept.id, "command_id": command["id"],
            "user_id": discord.user("bob").id, "role_id": discord.role("some")["id"], "emoji_name": "👍",
            "overwrite_id": discord.user("bob").id,
        }  # fmt: skip
        with contextlib.suppress(Refused):
            try:
                operation(operations, Call(method, route, route, ids, {}, body))
            except Exception as problem:
                problem.add_note(f"{method} {route} with {body!r}")
                raise
        discord.clock.stop()


@pytest.mark.parametrize(("method", "route", "operation"), [one for one in ROUTES if one[0] not in ("GET", "DELETE")])
async def test_no_body_at_all_makes_the_playground_itself_fail(method: str, route: str, operation: Any) -> None:
    sound = next((bodies for part, bodies in SOUND_BODIES.items() if part in route), [MESSAGE])
    try_all(route, method, operation, (body for one in sound for body in spoiled(one)))


async def test_no_component_makes_the_playground_itself_fail() -> None:
    messages = ({"flags": 1 << 15, "components": [part, part]} for part in odd_components(in_form=False))
    try_all("/channels/{channel_id}/messages", "POST", Operations.create_message, messages)
    data = ({"custom_id": "x", "title": "x", "components": [part]} for part in odd_components(in_form=True))
    try_all("/interactions/", "POST", Operations.answer_interaction, ({"type": 9, "data": form} for form in data))


# Faults


async def test_a_fault_answers_as_often_as_told_and_has_no_effect(discord: Discord, rest: Rest, messages: str) -> None:
    fault = discord.faults.add(method="POST", path="/channels/*", status=503, times=2)
    statuses = [(await rest("POST", messages, {"content": "x"}))[0] for _ in range(3)]
    assert (statuses, fault.hits, len(discord.messages())) == ([503, 503, 200], 2, 1)
    assert [entry.data["status"] for entry in discord.journal.of("fault")] == [503, 503]


async def test_a_fault_is_for_its_method_and_path_only(discord: Discord, rest: Rest, messages: str) -> None:
    discord.faults.add(method="PATCH", path="/channels/*", status=500, times=None)
    assert (await rest("GET", messages))[0] == 200
    assert (await rest("GET", "/users/@me"))[0] == 200
    discord.faults.clear()
    assert (await rest("PATCH", f"{messages}/9", {}))[0] == 404


async def test_an_injected_429_says_when_to_come_back(discord: Discord, rest: Rest) -> None:
    discord.faults.add(status=429, retry_after=0.7)
    status, body = await rest("GET", "/users/@me")
    assert status == 429
    assert body == {"message": "You are being rate limited.", "retry_after": 0.7, "global": False}
    assert (rest.headers["Retry-After"], rest.headers["X-RateLimit-Scope"]) == ("0.700", "user")


async def test_a_request_that_breaks_off_has_no_effect_and_is_no_error(
    discord: Discord, messages: str, caplog: pytest.LogCaptureFixture
) -> None:
    host, port = discord.url.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    head = f"POST /api/v10{messages} HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bot {discord.token}\r\n"
    writer.write(head.encode() + b'Content-Type: application/json\r\nContent-Length: 99\r\n\r\n{"content":')
    await writer.drain()
    await asyncio.sleep(0.1)
    writer.transport.abort()
    await asyncio.sleep(0.1)
    assert discord.messages() == []
    assert caplog.text == ""


@pytest.mark.parametrize(("drop", "made"), [("before", 0), ("after", 1)])
async def test_a_dropped_connection_is_cut_before_or_after_the_effect(
    discord: Discord, rest: Rest, messages: str, drop: Any, made: int
) -> None:
    discord.faults.add(method="POST", drop=drop)
    with pytest.raises(aiohttp.ClientError):
        await rest("POST", messages, {"content": "x"})
    assert len(discord.messages()) == made
    assert (await rest("POST", messages, {"content": "x"}))[0] == 200


async def test_a_delayed_answer_comes_after_a_later_quick_one(discord: Discord, rest: Rest, messages: str) -> None:
    discord.faults.add(path="/users/@me", delay_s=0.1)
    order: list[str] = []

    async def ask(path: str) -> None:
        await rest("GET", path)
        order.append(path)

    await asyncio.gather(ask("/users/@me"), ask("/gateway"))
    assert order == ["/gateway", "/users/@me"]


# Rate limits


async def test_without_rate_limits_the_headers_are_so_wide_that_nobody_waits(rest: Rest, messages: str) -> None:
    for _ in range(10):
        assert (await rest("POST", messages, {"content": "x"}))[0] == 200
    assert int(rest.headers["X-RateLimit-Remaining"]) > 1000


async def test_five_edits_in_five_seconds_and_the_sixth_must_wait(discord: Discord, rest: Rest, messages: str) -> None:
    discord.rate_limits = True
    _, one = await rest("POST", messages, {"content": "x"})
    left: list[str] = []
    for number in range(5):
        assert (await rest("PATCH", f"{messages}/{one['id']}", {"content": str(number)}))[0] == 200
        left.append(rest.headers["X-RateLimit-Remaining"])
    assert left == ["4", "3", "2", "1", "0"]
    status, body = await rest("PATCH", f"{messages}/{one['id']}", {"content": "6"})
    assert (status, body["global"], 0 < body["retry_after"] <= 5) == (429, False, True)
    assert rest.headers["X-RateLimit-Limit"] == "5"
    assert discord.messages()[0]["content"] == "4"
    assert (await rest("GET", messages))[0] == 200  # another route has its own bucket
    discord.clock.advance(5)
    assert (await rest("PATCH", f"{messages}/{one['id']}", {"content": "6"}))[0] == 200


async def test_each_channel_has_a_bucket_of_its_own(discord: Discord, rest: Rest, messages: str) -> None:
    discord.rate_limits = True
    other = f"/channels/{discord.world.channel_of('random')['id']}/messages"
    for _ in range(5):
        await rest("POST", messages, {"content": "x"})
    assert (await rest("POST", messages, {"content": "x"}))[0] == 429
    assert (await rest("POST", other, {"content": "x"}))[0] == 200


async def test_fifty_requests_a_second_over_everything(discord: Discord, rest: Rest) -> None:
    discord.rate_limits = True
    paths = ["/users/@me", "/gateway", f"/guilds/{GUILD_ID}"]
    statuses = [(await rest("GET", paths[number % 3]))[0] for number in range(50)]
    assert set(statuses) == {200}
    status, body = await rest("GET", "/gateway")
    assert (status, body["global"], rest.headers["X-RateLimit-Global"]) == (429, True, "true")
    discord.clock.advance(1)
    assert (await rest("GET", "/gateway"))[0] == 200


async def test_the_journal_has_every_call_with_its_answer(discord: Discord, rest: Rest, messages: str) -> None:
    await rest("POST", f"{messages}?x=1", {"content": "hello"})
    noted = discord.journal.of("rest")[-1].data
    assert (noted["method"], noted["path"], noted["status"]) == ("POST", messages, 200)
    assert (noted["body"], noted["answer"]["content"], noted["query"]) == ({"content": "hello"}, "hello", {"x": "1"})


async def test_a_fault_has_discords_own_code_and_words(discord: Discord, rest: Rest, messages: str) -> None:
    discord.faults.add(path="/channels/*", status=403, code=50013)
    discord.faults.add(path="/channels/*", status=400, code=12345)
    wanted = [{"message": "Missing Permissions", "code": 50013}, {"message": "400: injected fault", "code": 12345}]
    assert [(await rest("GET", messages))[1] for _ in wanted] == wanted


async def test_names_in_other_languages_are_listed_only_when_asked_for(rest: Rest) -> None:
    option = {"type": 3, "name": "a", "description": "x", "name_localizations": {"de": "b"}}
    poll = {"name": "poll", "description": "x", "name_localizations": {"de": "umfrage"}, "options": [option]}
    _, [made] = await rest("PUT", COMMANDS, [poll])
    assert made["name_localizations"] == {"de": "umfrage"}
    _, [short] = await rest("GET", COMMANDS)
    assert "localizations" not in repr(short)
    assert (await rest("GET", f"{COMMANDS}?with_localizations=true"))[1] == [made]


async def test_a_command_is_renamed_only_to_a_free_name_and_a_hundred_are_enough(rest: Rest) -> None:
    _, made = await rest("PUT", COMMANDS, [{"name": name, "description": "x"} for name in ("a", "b")])
    status, body = await rest("PATCH", f"{COMMANDS}/{made[0]['id']}", {"name": "b"})
    assert (status, list(body["errors"])) == (400, ["name"])
    assert (await rest("PATCH", f"{COMMANDS}/{made[0]['id']}", {"name": "c"}))[1]["id"] == made[0]["id"]
    kept = {"id": made[1]["id"], "name": "new", "description": "x"}
    assert (await rest("PUT", COMMANDS, [kept]))[1][0]["id"] == made[1]["id"]
    await rest("PUT", COMMANDS, [{"name": f"c{number}", "description": "x"} for number in range(100)])
    assert (await rest("POST", COMMANDS, {"name": "c5", "description": "y"}))[0] == 200
    status, body = await rest("POST", COMMANDS, {"name": "one-more", "description": "x"})
    assert (status, body["code"]) == (400, 30032)


async def test_a_guild_that_the_bot_has_left_has_no_commands_for_it(discord: Discord, rest: Rest) -> None:
    discord.kick_bot()
    assert (await rest("PUT", GUILD_COMMANDS, []))[1]["code"] == 50001
