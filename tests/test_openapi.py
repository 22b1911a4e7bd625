"""What the playground sends fits Discord's published OpenAPI: every route, and the check itself is checked."""

from __future__ import annotations

from typing import Any

import pytest

from playground import Discord
from playground.limits import FORM_PARTS, MESSAGE_PARTS, Fields, Link, Many, Rule, Whole, Words
from playground.routes import ROUTES
from playground.world import APPLICATION_ID
from tests.clients.raw import Json, RawBot
from tests.openapi import IS_HERE, check, spec

pytestmark = pytest.mark.skipif(not IS_HERE, reason="../shared/reference/discord-openapi.json is not here")


@pytest.mark.parametrize(("method", "route"), [(method, route) for method, route, _ in ROUTES])
def test_every_route_is_one_of_discords(method: str, route: str) -> None:
    assert method.lower() in spec()["paths"][route]


CLICKED = {"type": 2, "style": 1, "custom_id": "b", "label": "B", "emoji": {"id": None, "name": "🍵"}}
SELECT: Json = {
    "type": 3,
    "custom_id": "s",
    "placeholder": None,
    "options": [{"label": "x", "value": "x", "description": None, "emoji": {"name": "x", "id": None}}],
}
V2: Json = {
    "flags": 1 << 15,
    "components": [
        {
            "type": 17,
            "components": [
                {"type": 10, "content": "<@400000000000000001>"},
                {"type": 14, "spacing": 2},
                {"type": 9, "components": [{"type": 10, "content": "x"}], "accessory": {**CLICKED, "custom_id": "c"}},
                {
                    "type": 9,
                    "components": [{"type": 10, "content": "x"}],
                    "accessory": {"type": 11, "media": {"url": "https://x.y/z.png"}},
                },
                {"type": 12, "items": [{"media": {"url": "https://x.y/z.png"}, "description": None}]},
                {"type": 1, "components": [CLICKED, {"type": 2, "style": 5, "label": "L", "url": "https://x.y"}]},
                {"type": 1, "components": [SELECT]},
                {
                    "type": 1,
                    "components": [
                        {"type": 5, "custom_id": "u", "default_values": [{"id": "400000000000000001", "type": "user"}]}
                    ],
                },
                {"type": 1, "components": [{"type": 8, "custom_id": "ch", "channel_types": [0]}]},
            ],
        }
    ],
}
EMBED: Json = {
    "title": "T", "description": "D", "url": "https://x.y", "color": 5, "footer": {"text": "f"},
    "author": {"name": "a"}, "fields": [{"name": "n", "value": "v"}], "timestamp": "2026-01-01T00:00:00+00:00",
}  # fmt: skip
OPTIONS = [
    {"type": 3, "name": "a", "description": "x", "min_length": 1, "name_localizations": None, "required": True},
    {"type": 4, "name": "b", "description": "x", "choices": [{"name": "one", "value": 1}]},
    {"type": 6, "name": "who", "description": "x"},
]


async def test_a_tour_of_messages_interactions_and_commands_fits() -> None:
    async with Discord(check=check) as discord, RawBot(discord) as bot:
        rest, alice = bot.rest, discord.user("alice")
        channel = f"/channels/{discord.world.channel_of(None)['id']}/messages"
        assert (await rest("POST", channel, V2))[0] == 200
        status, message = await rest("POST", channel, {"content": "<@100000000000000001>", "embeds": [EMBED]})
        assert status == 200
        assert (await rest("PATCH", f"{channel}/{message['id']}", {"embeds": [EMBED, EMBED]}))[0] == 200
        reply = {"content": "re", "message_reference": {"message_id": message["id"]}, "nonce": 5}
        assert (await rest("POST", channel, reply))[0] == 200
        assert (await rest("GET", channel))[0] == 200

        commands = f"/applications/{APPLICATION_ID}/commands"
        registered = [{"name": "poll", "description": "x", "options": OPTIONS}, {"name": "Wave", "type": 2}]
        assert (await rest("PUT", commands, registered))[0] == 200

        alice.start_command("poll", {"a": "x", "b": 1, "who": "bob"})
        command = await bot.interaction()
        assert (await rest.answer(command, 4, V2, "?with_response=true"))[0] == 200
        assert (await rest.webhook("POST", command, {"content": "x", "flags": 64}))[0] == 200

        alice.click(custom_id="b")
        click = await bot.interaction()
        assert (await rest.answer(click, 7, V2, "?with_response=true"))[0] == 200
        alice.select(custom_id="s", values=["x"])
        assert (await rest.answer(await bot.interaction(), 6, None, "?with_response=true"))[0] == 200

        alice.click(custom_id="c")
        field = {"type": 18, "label": "L", "component": {"type": 4, "custom_id": "f", "style": 1}}
        form = {"custom_id": "f", "title": "F", "components": [field]}
        assert (await rest.answer(await bot.interaction(), 9, form, "?with_response=true"))[0] == 200
        alice.submit({"f": "x"})
        assert (await rest.answer(await bot.interaction(), 4, {"content": "x"}, "?with_response=true"))[0] == 200

        alice.start_command("Wave", {}, target=discord.user("bob"))
        wave = await bot.interaction()
        assert (await rest.answer(wave, 5, {"flags": 64}, "?with_response=true"))[0] == 200
        assert (await rest.webhook("PATCH", wave, {"content": "done"}, "@original"))[0] == 200
        await alice.say("hello <@100000000000000001>")
        discord.world.direct_channel_with(alice.id)


GOOD: Json = {"url": "ws://x", "shards": 1, "session_start_limit": {}}


@pytest.mark.parametrize(
    ("what", "kind", "body", "found"),
    [
        ("GET /gateway 200", "rest", {"url": "ws://x"}, ""),
        ("GET /gateway 200", "rest", {}, "GET /gateway 200: : 'url' is a required property"),
        ("GET /gateway 404", "rest", {"anything": 1}, ""),
        ("GET /gateway 218", "rest", {}, "GET /gateway 218: there is no such status"),
        ("GET /nowhere 200", "rest", {}, "GET /nowhere 200: there is no such operation"),
        ("DELETE /channels/{channel_id}/messages/{message_id} 204", "rest", None, ""),
        ("DELETE /channels/{channel_id}/messages/{message_id} 204", "rest", {}, "204: has a body"),
        ("gateway TYPING_START", "gateway", {"anything": 1}, ""),
        ("gateway MESSAGE_CREATE", "gateway", {}, "gateway MESSAGE_CREATE : : 'type' is a required property"),
        ("gateway READY", "gateway", {"user": {}}, "gateway READY user: : 'id' is a required property"),
    ],
)
def test_the_check_finds_what_does_not_fit(what: str, kind: str, body: Any, found: str) -> None:
    problems = check(what, kind, body)
    assert any(found in problem for problem in problems) if found else problems == []


# The validator's tables against the request schemas


def limits_of(rule: Rule) -> Json:
    """A rule's limits in the words of a schema."""
    match rule:
        case Words(low=low, high=high):
            return {"minLength": low, "maxLength": high}
        case Link(high=high):
            return {"minLength": 0, "maxLength": high}
        case Whole(low=low, high=high):
            return {"minimum": low, "maximum": high}
        case Many(low=low, high=high, unique=unique):
            return {"minItems": low, "maxItems": high, "uniqueItems": unique}
        case _:
            return {}


def schema_of(name: str, kind: int) -> Json:
    """The request schema of a component of that type in a message or in a form."""
    found = [
        schema
        for title, schema in spec()["components"]["schemas"].items()
        if title.endswith(f"ComponentFor{name}Request") and schema["properties"]["type"].get("enum") == [kind]
    ]
    assert len(found) == 1, (name, kind)
    return found[0]


def differences(fields: Fields, schema: Json, at: str) -> list[str]:
    """Where a table of fields says less, more or something else than a schema does."""
    found = [f"{at}.{name}: not in the table" for name in schema["properties"].keys() - fields.keys() - {"type"}]
    for name, rule in fields.items():
        wanted = schema["properties"].get(name)
        if wanted is None:
            found.append(f"{at}.{name}: not in the schema")
            continue
        if rule.required != (name in schema.get("required", ())):
            found.append(f"{at}.{name}: required is {rule.required}")
        for word, limit in limits_of(rule).items():
            default: Any = {"minLength": 0, "minItems": 0, "uniqueItems": False}.get(word, limit)
            if wanted.get(word, default) != limit:
                found.append(f"{at}.{name}: {word} is {limit}, not {wanted.get(word, default)}")
    return found


# The documentation says that a row of a form holds one text input.
KNOWN_BETTER = {"Modal 1.components: maxItems is 1, not 5"}


@pytest.mark.parametrize(("name", "table"), [("Message", MESSAGE_PARTS), ("Modal", FORM_PARTS)])
def test_the_validators_tables_say_what_the_schemas_say(name: str, table: dict[int, Fields]) -> None:
    found: list[str] = []
    for kind, fields in table.items():
        found += differences(fields, schema_of(name, kind), f"{name} {kind}")
    assert set(found) == {line for line in KNOWN_BETTER if line.startswith(name)}
