"""Commands and forms as people use them: autocomplete, every kind of option and field, who may use what where."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from playground import Discord
from playground.people import Person
from playground.world import APPLICATION_ID
from tests.clients.raw import Json, RawBot
from tests.openapi import CHECK

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x03\x00\x00\x00\x02\x08\x06\x00\x00\x00"


@pytest_asyncio.fixture
async def discord() -> AsyncIterator[Discord]:
    async with Discord(check=CHECK) as discord:
        yield discord


@pytest_asyncio.fixture
async def bot(discord: Discord) -> AsyncIterator[RawBot]:
    async with RawBot(discord) as bot:
        yield bot


@pytest.fixture
def alice(discord: Discord) -> Person:
    return discord.user("alice")


@pytest.fixture
def bob(discord: Discord) -> Person:
    return discord.user("bob")


def option(type_: int, name: str, **more: Any) -> Json:
    return {"type": type_, "name": name, "description": "x", **more}


def command(*options: Json, name: str = "use", **more: Any) -> Json:
    return {"name": name, "description": "x", "options": list(options), **more}


async def register(bot: RawBot, *commands: Json) -> list[Json]:
    status, made = await bot.rest("PUT", f"/applications/{APPLICATION_ID}/commands", list(commands))
    assert status == 200
    return made


async def download(bot: RawBot, url: str) -> tuple[bytes, str]:
    async with bot.rest.session.get(url) as response:
        assert response.status == 200
        return await response.read(), response.headers["Content-Type"]


# Autocomplete


FRUIT = option(3, "fruit", autocomplete=True)


async def test_what_the_bot_offers_while_somebody_types(bot: RawBot, alice: Person, bob: Person) -> None:
    await register(bot, command(option(6, "who", required=True), FRUIT, option(4, "count", autocomplete=True)))
    asking = asyncio.create_task(alice.autocomplete("use", "fruit", "app", who=bob))
    interaction = await bot.interaction()
    assert (interaction["type"], interaction["data"]["name"]) == (4, "use")
    assert interaction["data"]["options"] == [
        {"type": 6, "name": "who", "value": bob.id},
        {"type": 3, "name": "fruit", "value": "app", "focused": True},
    ]
    choices = [{"name": "Apple", "value": "apple"}]
    assert (await bot.rest.answer(interaction, 8, {"choices": choices}))[0] == 204
    assert await asking == choices
    # A number is sent as it is typed, and its choices are numbers.
    asking = asyncio.create_task(alice.autocomplete("use", "count", "1x"))
    interaction = await bot.interaction()
    assert interaction["data"]["options"] == [{"type": 4, "name": "count", "value": "1x", "focused": True}]
    status, body = await bot.rest.answer(interaction, 8, {"choices": choices})
    assert (status, list(body["errors"]["data"]["choices"]["0"])) == (400, ["value"])
    assert (await bot.rest.answer(interaction, 8, {"choices": [{"name": "one", "value": 1}]}))[0] == 204
    assert await asking == [{"name": "one", "value": 1}]


async def test_autocomplete_inside_a_group_has_the_path_and_takes_a_half_filled_option(
    bot: RawBot, alice: Person
) -> None:
    sub = option(1, "add", options=[FRUIT, option(4, "count")])
    await register(bot, command(option(2, "list", options=[sub])))
    asking = asyncio.create_task(alice.autocomplete("use list add", "fruit", "", count="not yet"))
    interaction = await bot.interaction()
    [group] = interaction["data"]["options"]
    assert group["options"][0]["options"] == [
        {"type": 4, "name": "count", "value": "not yet"},
        {"type": 3, "name": "fruit", "value": "", "focused": True},
    ]
    await bot.rest.answer(interaction, 8, {"choices": []})
    assert await asking == []


async def test_autocomplete_fails_after_three_seconds_and_is_no_command(
    discord: Discord, bot: RawBot, alice: Person
) -> None:
    await register(bot, command(FRUIT))
    asking = asyncio.create_task(alice.autocomplete("use", "fruit", "app"))
    late = await bot.interaction()
    discord.clock.advance(3.1)
    with pytest.raises(RuntimeError, match="no choices for 'fruit' of /use: The application did not respond"):
        await asking
    assert (await bot.rest.answer(late, 8, {"choices": []}))[0] == 404
    assert [entry.data["type"] for entry in discord.journal.of("interaction")] == ["autocomplete"]


async def test_only_an_option_that_offers_choices_can_be_asked_for_them(bot: RawBot, alice: Person) -> None:
    await register(bot, command(option(3, "plain")))
    with pytest.raises(ValueError, match="'plain' of /use has no autocomplete"):
        await alice.autocomplete("use", "plain")
    with pytest.raises(ValueError, match="/use has no option 'nope'"):
        await alice.autocomplete("use", "nope")


# Options


async def test_a_file_goes_with_a_command_and_can_be_downloaded(bot: RawBot, alice: Person) -> None:
    await register(bot, command(option(11, "file", required=True), option(11, "other")))
    alice.start_command("use", {"file": ("notes.txt", b"hello"), "other": ("dot.png", PNG)})
    data = (await bot.interaction())["data"]
    notes, dot = (data["resolved"]["attachments"][each["value"]] for each in data["options"])
    assert (notes["filename"], notes["size"], notes["ephemeral"]) == ("notes.txt", 5, True)
    assert (
        await download(bot, notes["url"])
        == (b"hello", "text/plain; charset=utf-8")
        == (b"hello", notes["content_type"])
    )
    assert (dot["content_type"], dot["width"], dot["height"]) == ("image/png", 3, 2)
    with pytest.raises(ValueError, match=r"given as \(name, bytes\), not as int"):
        alice.start_command("use", {"file": 5})
    with pytest.raises(ValueError, match=r"big.bin is larger than the 10 MiB"):
        alice.start_command("use", {"file": ("big.bin", bytes(10 * 1024 * 1024 + 1))})


@pytest.mark.parametrize(
    ("kind", "value", "groups"),
    [
        (6, "bob", {"users", "members"}),
        (7, "random", {"channels"}),
        (8, "Moderator", {"roles"}),
        (9, "Moderator", {"roles"}),
        (9, "bob", {"users", "members"}),
    ],
)
async def test_people_roles_and_channels_are_named_or_given_and_resolved(
    bot: RawBot, alice: Person, kind: int, value: str, groups: set[str]
) -> None:
    await register(bot, command(option(kind, "it")))
    alice.start_command("use", {"it": value})
    data = (await bot.interaction())["data"]
    assert data["resolved"].keys() == groups
    for group in groups:
        assert list(data["resolved"][group]) == [data["options"][0]["value"]]


async def test_a_resolved_member_has_its_permissions_and_no_user(bot: RawBot, alice: Person, bob: Person) -> None:
    await register(bot, command(option(6, "who")), {"name": "Look", "type": 2})
    bob.grant("kick_members")
    for given in (alice.start_command("use", {"who": bob}), alice.start_command("Look", {}, target=bob)):
        data = (await bot.interaction())["data"]
        member = data["resolved"]["members"][bob.id]
        assert given.state == "pending"
        assert int(member["permissions"]) == bob.permissions()
        assert int(member["permissions"]) & 2
        assert "user" not in member
    alice.start_command("use", {"who": bob}, channel="dm")
    assert (await bot.interaction())["data"]["resolved"].keys() == {"users"}


@pytest.mark.parametrize(
    ("kind", "value", "sentence"),
    [
        (6, "random", "it is a person, not 'random'."),
        (7, "bob", "it is a channel, not 'bob'."),
        (8, "bob", "it is a role, not 'bob'."),
        (9, "random", "it is a person or a role, not 'random'."),
        (4, 2**54, f"it is between -2^53 and 2^53, not {2**54}."),
    ],
)
async def test_an_option_takes_only_its_own_kind(
    bot: RawBot, alice: Person, kind: int, value: Any, sentence: str
) -> None:
    await register(bot, command(option(kind, "it")))
    with pytest.raises(ValueError) as problem:
        alice.start_command("use", {"it": value})
    assert str(problem.value) == sentence


async def test_a_channel_option_takes_only_its_types(discord: Discord, bot: RawBot, alice: Person) -> None:
    await register(bot, command(option(7, "where", channel_types=[4])))
    shelf = discord.world.create_channel("shelf", 4)
    with pytest.raises(ValueError, match=r"where takes channels of the types \[4\], not #random"):
        alice.start_command("use", {"where": "random"})
    alice.start_command("use", {"where": shelf})
    assert (await bot.interaction())["data"]["options"][0]["value"] == shelf["id"]
