"""Commands and forms as people use them: autocomplete, every kind of option and field, who may use what where."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from playground import Discord
from playground.people import Person
from playground.usable import NotUsable
from playground.world import APPLICATION_ID, ELSEWHERE_ID, GUILD_ID
from tests.clients.raw import Json, RawBot

pytest_plugins = ("tests.clients.fixtures",)

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x03\x00\x00\x00\x02\x08\x06\x00\x00\x00"


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
    data = (await bot.interaction())["data"]
    assert data["options"][0]["value"] == shelf["id"]
    discord.user("bob").start_command("use", {"where": shelf})
    data = (await bot.interaction())["data"]
    resolved = data["resolved"]["channels"][shelf["id"]]
    assert int(resolved["permissions"]) == discord.user("bob").permissions()
    assert int(resolved["app_permissions"]) & 8


# Who may use what where


async def test_a_permission_is_needed_and_an_administrator_has_all(
    discord: Discord, bot: RawBot, alice: Person, bob: Person
) -> None:
    await register(bot, command(default_member_permissions="2"), command(name="admin", default_member_permissions="0"))
    with pytest.raises(NotUsable, match=r"bob cannot use /use here: it needs the permission Kick Members\."):
        await bob.command("use")
    alice.start_command("admin", {})
    with pytest.raises(NotUsable, match="it is for administrators"):
        bob.start_command("admin", {})
    discord.role("Guard", ["kick_members"])
    bob.add_role("Guard")
    bob.start_command("use", {})
    interactions = [await bot.interaction() for _ in range(2)]
    assert int(interactions[1]["member"]["permissions"]) & 2
    assert interactions[1]["member"]["roles"] == [discord.role("Guard")["id"]]
    bob.remove_role("Guard")
    with pytest.raises(NotUsable):
        bob.start_command("use", {})
    bob.start_command("use", {}, channel="dm")  # in private there are no permissions


async def test_a_channel_may_hide_itself_and_forbid_commands(discord: Discord, bot: RawBot, bob: Person) -> None:
    await register(bot, command())
    channel = discord.create_channel("staff")
    deny = {"id": GUILD_ID, "type": 0, "allow": "0", "deny": str(1 << 31)}
    discord.world.change_channel(channel["id"], permission_overwrites=[deny])
    with pytest.raises(NotUsable, match="they may not use commands"):
        bob.start_command("use", {}, channel="staff")
    deny["deny"] = str(1 << 10)
    discord.world.change_channel(channel["id"], permission_overwrites=[deny])
    with pytest.raises(NotUsable, match="they do not see the channel"):
        bob.start_command("use", {}, channel="staff")
    with pytest.raises(LookupError, match="bob sees no such channel"):
        await bob.say("x", "staff")
    assert bob.permissions("staff") == 0  # who does not see it may do nothing in it
    own = {"id": bob.id, "type": 1, "allow": str(1 << 10), "deny": "0"}
    discord.world.change_channel(channel["id"], permission_overwrites=[deny, own])
    bob.start_command("use", {}, channel="staff")
    assert (await bot.interaction())["channel"]["id"] == channel["id"]


async def test_an_age_restricted_command_needs_an_age_restricted_channel(
    discord: Discord, bot: RawBot, alice: Person
) -> None:
    await register(bot, command(nsfw=True))
    with pytest.raises(NotUsable, match="it is for age-restricted channels"):
        alice.start_command("use", {})
    discord.create_channel("night", nsfw=True)
    alice.start_command("use", {}, channel="night")
    assert (await bot.interaction())["channel"]["nsfw"] is True


@pytest.mark.parametrize(
    ("contexts", "types", "places"),
    [
        (None, [0], {"general", "dm"}),
        ([0], [0], {"general"}),
        ([1], [0], {"dm"}),
        (None, [1], {"general", "dm", "elsewhere", "friends"}),
        ([0, 2], [1], {"general", "elsewhere", "friends"}),
        ([0, 1, 2], [0, 1], {"general", "dm", "elsewhere", "friends"}),
    ],
)
async def test_contexts_and_installs_say_where_a_command_is(
    bot: RawBot, alice: Person, contexts: list[int] | None, types: list[int], places: set[str]
) -> None:
    await register(bot, command(contexts=contexts, integration_types=types))
    found: set[str] = set()
    for place in ("general", "dm", "elsewhere", "friends"):
        try:
            alice.start_command("use", {}, channel=place)
        except NotUsable:
            continue
        found.add(place)
    assert found == places


async def test_where_the_bot_is_not_only_the_interaction_can_be_answered(
    discord: Discord, bot: RawBot, alice: Person
) -> None:
    await register(bot, command(integration_types=[1]))
    used = alice.start_command("use", {}, channel="elsewhere")
    interaction = await bot.interaction()
    assert (interaction["guild_id"], interaction["context"]) == (ELSEWHERE_ID, 0)
    assert interaction["authorizing_integration_owners"] == {"1": alice.id}
    path = f"/channels/{interaction['channel_id']}"
    for method, where in (("POST", "/messages"), ("GET", ""), ("GET", "/messages")):
        status, body = await bot.rest(method, path + where, {"content": "x"} if method == "POST" else None)
        assert (status, body["code"]) == (403, 50001)
    row = {"type": 1, "components": [{"type": 2, "style": 1, "custom_id": "b", "label": "B"}]}
    assert (await bot.rest.answer(interaction, 4, {"content": "hello", "components": [row]}))[0] == 204
    assert used.message is not None
    status, body = await bot.rest("PATCH", f"{path}/messages/{used.message['id']}", {"content": "y"})
    assert (status, body["code"]) == (403, 50001)
    assert (await bot.rest.webhook("PATCH", interaction, {"content": "y"}, "@original"))[0] == 200
    discord.user("bob").click("B")
    click = await bot.interaction()
    assert (click["member"]["user"]["username"], click["authorizing_integration_owners"]) == ("bob", {"1": alice.id})
    for _ in range(5):
        assert (await bot.rest.webhook("POST", interaction, {"content": "more"}))[0] == 200
    status, body = await bot.rest.webhook("POST", interaction, {"content": "too much"})
    assert (status, body["code"]) == (400, 40094)
    assert not [each for each in bot.events if each.get("t") in ("MESSAGE_CREATE", "MESSAGE_UPDATE")]


async def test_in_a_group_of_friends_there_is_no_guild(bot: RawBot, alice: Person) -> None:
    await register(bot, command(integration_types=[1]))
    alice.start_command("use", {}, channel="friends")
    interaction = await bot.interaction()
    assert (interaction["context"], interaction["channel"]["type"], "guild_id" in interaction) == (2, 3, False)
    assert int(interaction["app_permissions"]) == 1 << 14 | 1 << 15 | 1 << 17
    assert interaction["user"]["id"] == alice.id


async def test_a_guild_command_is_of_its_guild_and_goes_before_a_global_one(bot: RawBot, alice: Person) -> None:
    await register(bot, command(description="global"))
    guild = f"/applications/{APPLICATION_ID}/guilds/{GUILD_ID}/commands"
    _, made = await bot.rest("POST", guild, command(description="of the guild"))
    alice.start_command("use", {})
    data = (await bot.interaction())["data"]
    assert (data["id"], data["guild_id"]) == (made["id"], GUILD_ID)
    alice.start_command("use", {}, channel="dm")
    assert "guild_id" not in (await bot.interaction())["data"]


async def test_of_commands_with_one_name_the_target_says_which(bot: RawBot, alice: Person, bob: Person) -> None:
    await register(bot, {"name": "look", "type": 3}, {"name": "look", "type": 2}, command(name="look"))
    said = await bob.say("hello")
    for target, type_ in ((None, 1), (bob, 2), ("bob", 2), (said, 3), (said["id"], 3)):
        alice.start_command("look", {}, target=target)
        data = (await bot.interaction())["data"]
        assert data["type"] == type_
    with pytest.raises(LookupError, match="/look has no subcommand 'at'"):
        alice.start_command("look at it", {})


async def test_a_persons_language_goes_with_interactions_and_names_commands(
    discord: Discord, bot: RawBot, alice: Person
) -> None:
    sub = option(1, "new", name_localizations={"de": "neu"})
    await register(bot, command(sub, name="poll", name_localizations={"de": "umfrage"}))
    with pytest.raises(LookupError, match="no command 'umfrage neu'"):
        alice.start_command("umfrage neu", {})
    alice.locale = "de"
    alice.start_command("umfrage neu", {})
    interaction = await bot.interaction()
    assert (interaction["locale"], interaction["guild_locale"]) == ("de", "en-US")
    assert (interaction["data"]["name"], interaction["data"]["options"][0]["name"]) == ("poll", "new")
    with pytest.raises(ValueError, match="Discord has no language 'xx'"):
        alice.locale = "xx"


# Forms


def label(component: Json, text: str = "L") -> Json:
    return {"type": 18, "label": text, "component": {"custom_id": "c", **component}}


def options(*values: str, **more: Any) -> list[Json]:
    return [{"label": value, "value": value, **more} for value in values]


async def opened(bot: RawBot, alice: Person, *parts: Json) -> None:
    await register(bot, command())
    alice.start_command("use", {})
    form = {"custom_id": "form", "title": "F", "components": list(parts)}
    answer = await bot.rest.answer(await bot.interaction(), 9, form)
    assert answer[0] == 204, answer


async def test_files_go_with_a_form_and_can_be_downloaded(bot: RawBot, alice: Person) -> None:
    await opened(bot, alice, label({"type": 19, "max_values": 3}))
    alice.submit({"L": [("a.txt", b"one"), ("b.png", PNG)]})
    data = (await bot.interaction())["data"]
    ids = data["components"][0]["component"]["values"]
    files = [data["resolved"]["attachments"][id_] for id_ in ids]
    assert [file["filename"] for file in files] == ["a.txt", "b.png"]
    assert (await download(bot, files[0]["url"]))[0] == b"one"
    alice.submit({"c": ("a.txt", b"one")})
    assert len((await bot.interaction())["data"]["components"][0]["component"]["values"]) == 1


@pytest.mark.parametrize(
    ("type_", "given", "default"),
    [
        (5, "bob", "user"),
        (6, "Moderator", "role"),
        (7, "bob", "user"),
        (7, "Moderator", "role"),
        (8, "random", "channel"),
    ],
)
async def test_a_form_has_selects_of_everything_and_keeps_what_is_preset(
    bot: RawBot, alice: Person, type_: int, given: str, default: str
) -> None:
    groups = {"user": {"users", "members"}, "role": {"roles"}, "channel": {"channels"}}[default]
    presets = {"user": alice.id, "role": GUILD_ID, "channel": bot.rest.discord.world.channel_of(None)["id"]}
    preset = [{"id": presets[default], "type": default}]
    await opened(bot, alice, label({"type": type_, "default_values": preset}))
    alice.submit({"L": given})
    data = (await bot.interaction())["data"]
    [value] = data["components"][0]["component"]["values"]
    assert value != presets[default]
    assert {group: list(found) for group, found in data["resolved"].items()} == {group: [value] for group in groups}
    alice.submit({})
    assert (await bot.interaction())["data"]["components"][0]["component"]["values"] == [presets[default]]


FIELDS: dict[str, Json] = {
    "file": {"type": 19, "min_values": 2, "max_values": 3},
    "optional files": {"type": 19, "min_values": 2, "max_values": 3, "required": False},
    "who": {"type": 5},
    "where": {"type": 8, "channel_types": [2]},
    "boxes": {"type": 22, "options": options("a", "b", "c"), "min_values": 2},
    "radio": {"type": 21, "options": options("a", "b")},
}


@pytest.mark.parametrize(
    ("field", "given", "sentence"),
    [
        ("file", None, "L takes 2 to 3 values, not 0."),
        ("file", [("a", b"")], "L takes 2 to 3 values, not 1."),
        ("file", [("a", b"")] * 4, "L takes 2 to 3 values, not 4."),
        ("optional files", [("a", b"")], "L takes 2 to 3 values, not 1."),
        ("optional files", None, ""),
        ("who", None, "L takes 1 to 1 values, not 0."),
        ("who", "random", "L is a person, not 'random'."),
        ("where", "random", "L takes channels of the types [2], not #random."),
        ("boxes", ["a"], "L takes 2 to 3 values, not 1."),
        ("boxes", ["a", "b", "c"], ""),
        ("radio", None, "L takes 1 to 1 values, not 0."),
        ("radio", ["a", "b"], "L takes 1 to 1 values, not 2."),
        ("radio", "c", "L has no option 'c'. There are: a, b."),
    ],
)
async def test_a_form_is_sent_only_as_it_may_be_filled_in(
    bot: RawBot, alice: Person, field: str, given: Any, sentence: str
) -> None:
    await opened(bot, alice, label(FIELDS[field]))
    values = {} if given is None else {"L": given}
    if not sentence:
        assert alice.submit(values).state == "pending"
        return
    with pytest.raises(ValueError) as problem:
        alice.submit(values)
    assert str(problem.value) == sentence


# Selects in messages


@pytest.mark.parametrize(
    ("type_", "given", "sentence"),
    [
        (5, "bob", ""),
        (5, "random", "s is a person, not 'random'."),
        (6, "Moderator", ""),
        (6, "bob", "s is a role, not 'bob'."),
        (7, "Moderator", ""),
        (8, "random", ""),
        (8, "bob", "s is a channel, not 'bob'."),
    ],
)
async def test_a_select_takes_only_what_it_is_for(
    bot: RawBot, alice: Person, type_: int, given: str, sentence: str
) -> None:
    row = {"type": 1, "components": [{"type": type_, "custom_id": "s"}]}
    await bot.rest("POST", f"/channels/{bot.rest.discord.world.channel_of(None)['id']}/messages", {"components": [row]})
    if sentence:
        with pytest.raises(ValueError) as problem:
            alice.select(custom_id="s", values=[given])
        assert str(problem.value) == sentence
        return
    alice.select(custom_id="s", values=[given])
    data = (await bot.interaction())["data"]
    assert all(list(found) == data["values"] for found in data["resolved"].values())
