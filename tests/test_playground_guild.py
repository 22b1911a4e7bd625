"""The guild: what happens in it, which bot is told, and what a bot may do there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import pytest
import pytest_asyncio

from playground import Discord
from playground.people import Person
from playground.shapes import timestamp
from playground.world import ADMINISTRATOR_ID, APPLICATION_ID, GUILD_ID, MODERATOR_ID, OWNER_ID
from tests.clients.raw import Json, RawBot, Socket

pytest_plugins = ("tests.clients.fixtures",)

ALL_INTENTS = (1 << 26) - 1
GUILD = f"/guilds/{GUILD_ID}"
INTENTS = {
    "guilds": 1 << 0, "members": 1 << 1, "moderation": 1 << 2, "messages": 1 << 9, "reactions": 1 << 10,
    "typing": 1 << 11, "direct messages": 1 << 12, "direct reactions": 1 << 13, "direct typing": 1 << 14,
}  # fmt: skip


@pytest_asyncio.fixture
async def bot(discord: Discord) -> AsyncIterator[RawBot]:
    async with RawBot(discord, ALL_INTENTS) as bot:
        yield bot


def weaken(discord: Discord, *permissions: str) -> None:
    """Leave the bot only these permissions besides what everyone has."""
    discord.role(APPLICATION_ID, list(permissions))


def general(discord: Discord) -> str:
    return f"/channels/{discord.world.channel_of(None)['id']}"


def sent(discord: Discord, since: int = 0) -> list[tuple[str, Json]]:
    """Every event that was sent to the bot, by name, from the journal."""
    events = [entry.data for entry in discord.journal.of("gateway_out")[since:] if entry.data["op"] == 0]
    return [(event["t"], event["d"]) for event in events]


# Which event needs which intent


async def everything_happens(discord: Discord) -> None:
    alice, bob, world = discord.user("alice"), discord.user("bob"), discord.world
    said = await bob.say("hello")
    await bob.edit(said, "hello!")
    await alice.react(said, "👍")
    await alice.unreact(said, "👍")
    world.clear_reactions(world.newest_first().__next__())
    await bob.typing()
    await bob.delete(said)
    discord.delete_messages([await bob.say("one"), await bob.say("two")])
    private = await bob.say("psst", "dm")
    await bob.react(private, "👍")
    await bob.typing("dm")
    await bob.delete(private)
    channel = discord.create_channel("new")
    world.change_channel(channel["id"], topic="x")
    discord.delete_channel("new")
    discord.join("dave")
    discord.user("dave").add_role("Moderator")
    discord.leave("dave")
    role = discord.role("New")
    discord.role("New", ["kick_members"])
    world.membership.delete_role(role["id"])
    world.membership.ban(discord.user("carol").user, None)
    world.membership.unban(discord.user("carol").user)
    discord.outage()
    discord.outage_over()
    discord.kick_bot()
    discord.invite_bot()


EVENTS: dict[str, set[str]] = {
    "guilds": {
        "GUILD_CREATE", "GUILD_DELETE", "CHANNEL_CREATE", "CHANNEL_UPDATE", "CHANNEL_DELETE", "GUILD_ROLE_CREATE",
        "GUILD_ROLE_UPDATE", "GUILD_ROLE_DELETE",
    },
    "members": {"GUILD_MEMBER_ADD", "GUILD_MEMBER_UPDATE", "GUILD_MEMBER_REMOVE"},
    "moderation": {"GUILD_BAN_ADD", "GUILD_BAN_REMOVE"},
    "messages": {"MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE", "MESSAGE_DELETE_BULK"},
    "reactions": {"MESSAGE_REACTION_ADD", "MESSAGE_REACTION_REMOVE", "MESSAGE_REACTION_REMOVE_ALL"},
    "typing": {"TYPING_START"},
    "direct messages": {"MESSAGE_CREATE", "MESSAGE_DELETE", "CHANNEL_CREATE"},
    "direct reactions": {"MESSAGE_REACTION_ADD"},
    "direct typing": {"TYPING_START"},
}  # fmt: skip


@pytest.mark.parametrize("intent", EVENTS)
async def test_an_event_comes_only_to_who_asked_for_its_kind(discord: Discord, intent: str) -> None:
    async with RawBot(discord, INTENTS[intent]):
        before = len(discord.journal.of("gateway_out"))
        await everything_happens(discord)
    assert {name for name, _ in sent(discord, before)} == EVENTS[intent]


async def test_without_intents_nothing_comes(discord: Discord) -> None:
    async with RawBot(discord, 0):
        before = len(discord.journal.of("gateway_out"))
        await everything_happens(discord)
    assert sent(discord, before) == []


# What the events say


async def next_event(bot: RawBot, name: str) -> Json:
    """The oldest event of that name that has not been looked at."""
    async with asyncio.timeout(10):
        while True:
            for number, event in enumerate(bot.events):
                if event.get("t") == name:
                    return bot.events.pop(number)["d"]
            await asyncio.sleep(0.005)


async def test_messages_deleted_at_once_come_in_one_event(discord: Discord, bot: RawBot, bob: Person) -> None:
    said = [await bob.say(text) for text in ("one", "two", "three")]
    discord.delete_messages(said[:2])
    event = await next_event(bot, "MESSAGE_DELETE_BULK")
    assert event == {
        "ids": [said[0]["id"], said[1]["id"]],
        "channel_id": said[0]["channel_id"],
        "guild_id": GUILD_ID,
    }
    assert [message["content"] for message in discord.messages()] == ["three"]
    discord.delete_message(said[2])
    assert (await next_event(bot, "MESSAGE_DELETE"))["id"] == said[2]["id"]
    with pytest.raises(LookupError, match="There is no message"):
        discord.delete_message(said[2])


async def test_a_deleted_channel_takes_its_messages_along(discord: Discord, bot: RawBot, bob: Person) -> None:
    said = await bob.say("x", "random")
    discord.delete_channel("random")
    assert (await next_event(bot, "CHANNEL_DELETE"))["name"] == "random"
    status, body = await bot.rest("GET", f"/channels/{said['channel_id']}/messages/{said['id']}")
    assert (status, body["code"]) == (404, 10003)
    assert not [event for event in bot.events if event.get("t") in ("MESSAGE_DELETE", "MESSAGE_DELETE_BULK")]


async def test_what_was_begun_in_a_channel_ends_with_it(discord: Discord, bot: RawBot, bob: Person) -> None:
    discord.world.put_command(None, {"name": "use", "description": "x"})
    first, second, opening = [bob.start_command("use", {}, channel="random").interaction for _ in range(3)]
    await bot.rest.answer(first, 5)
    await bot.rest.answer(opening, 9, {"custom_id": "f", "title": "F", "components": [{"type": 10, "content": "x"}]})
    discord.delete_channel("random")
    for status, body in (
        await bot.rest.answer(second, 4, {"content": "x"}),
        await bot.rest.webhook("POST", first, {"content": "x"}),
    ):
        assert (status, body["code"]) == (404, 10003)
    assert (await bot.rest.webhook("PATCH", first, {"content": "x"}, "@original"))[1]["code"] == 10008
    with pytest.raises(LookupError, match="bob has no such form open"):
        bob.submit({})


async def test_a_kicked_bot_is_told_and_reaches_nothing_until_it_is_invited(
    discord: Discord, bot: RawBot, bob: Person
) -> None:
    await bot.rest("POST", f"{general(discord)}/messages", {"content": "x", "components": [BUTTON]})
    discord.kick_bot()
    assert await next_event(bot, "GUILD_DELETE") == {"id": GUILD_ID}
    await bob.say("nobody hears this")
    used = bob.click("B")
    for path, code in ((f"{general(discord)}/messages", 50001), (GUILD, 10004)):
        assert (await bot.rest("GET", path))[1]["code"] == code
    assert await bot.rest("GET", "/users/@me/guilds") == (200, [])
    discord.clock.advance(3)
    assert (used.state, bot.interactions.empty()) == ("failed", True)
    discord.invite_bot()
    assert (await next_event(bot, "GUILD_CREATE"))["id"] == GUILD_ID
    assert (await bot.rest("GET", f"{general(discord)}/messages"))[0] == 200
    assert "nobody hears this" not in repr(bot.events)


async def test_an_outage_is_not_a_kick(discord: Discord, bot: RawBot) -> None:
    discord.outage()
    assert await next_event(bot, "GUILD_DELETE") == {"id": GUILD_ID, "unavailable": True}
    async with Socket(discord) as later:
        await later.identify(ALL_INTENTS, shard=[0, 1])
        discord.outage_over()
        events = await later.events("GUILD_CREATE")
        assert events == ["GUILD_CREATE"]  # and none before the end of the outage
    assert (await next_event(bot, "GUILD_CREATE"))["unavailable"] is False


BUTTON: Json = {"type": 1, "components": [{"type": 2, "style": 1, "custom_id": "b", "label": "B"}]}


async def test_who_joins_is_told_with_who_they_are_and_who_leaves_is_gone(discord: Discord, bot: RawBot) -> None:
    dave = discord.join("dave")
    joined = await next_event(bot, "GUILD_MEMBER_ADD")
    assert (joined["user"]["username"], joined["guild_id"], joined["roles"]) == ("dave", GUILD_ID, [])
    said = await dave.say("hello")
    assert (await bot.rest("GET", f"{GUILD}/members/{dave.id}"))[0] == 200
    discord.leave("dave")
    left = await next_event(bot, "GUILD_MEMBER_REMOVE")
    assert (left["user"]["id"], left["guild_id"]) == (dave.id, GUILD_ID)
    assert (await bot.rest("GET", f"{GUILD}/members/{dave.id}"))[1]["code"] == 10007
    assert (await bot.rest("GET", f"{general(discord)}/messages/{said['id']}"))[0] == 200
    with pytest.raises(LookupError, match="dave sees no such channel"):
        await dave.say("still here?")
    discord.join("dave")
    assert (await next_event(bot, "GUILD_MEMBER_ADD"))["user"]["id"] == dave.id


async def test_content_is_only_for_who_may_read_it_also_in_edits(discord: Discord, bob: Person) -> None:
    async with RawBot(discord, ALL_INTENTS & ~(1 << 15)) as bot:
        said = await bob.say("secret", files=("a.txt", b"x"))
        event = await next_event(bot, "MESSAGE_CREATE")
        assert (event["content"], event["attachments"]) == ("", [])
        await bob.edit(said, "secret too")
        assert (await next_event(bot, "MESSAGE_UPDATE"))["content"] == ""
        await bob.edit(said, f"hello <@{APPLICATION_ID}>")
        assert (await next_event(bot, "MESSAGE_UPDATE"))["content"] != ""
        await bob.say("in private", "dm")
        assert (await next_event(bot, "MESSAGE_CREATE"))["content"] == "in private"


# People


async def test_a_person_edits_and_deletes_what_is_their_own(discord: Discord, alice: Person, bob: Person) -> None:
    said = await bob.say("one")
    assert (await bob.edit(said, "two"))["edited_timestamp"] is not None
    with pytest.raises(ValueError, match="alice cannot edit what somebody else wrote"):
        await alice.edit(said, "three")
    other = await alice.say("mine")
    with pytest.raises(LookupError, match="bob needs the permission Manage Messages"):
        await bob.delete(other)
    await alice.delete(said)
    assert [message["content"] for message in discord.messages()] == ["mine"]


async def test_a_message_has_files_and_answers_another(discord: Discord, bot: RawBot, bob: Person) -> None:
    first = await bob.say("first")
    said = await bob.say(files=[("a.txt", b"one"), ("b.bin", b"two")], reply_to=first)
    event = (await next_event(bot, "MESSAGE_CREATE"), await next_event(bot, "MESSAGE_CREATE"))[1]
    assert [file["filename"] for file in event["attachments"]] == ["a.txt", "b.bin"]
    assert (event["type"], event["referenced_message"]["content"], event["content"]) == (19, "first", "")
    assert said["message_reference"] == {
        "type": 0, "channel_id": first["channel_id"], "message_id": first["id"], "guild_id": GUILD_ID
    }  # fmt: skip
    async with bot.rest.session.get(event["attachments"][0]["url"]) as response:
        assert await response.read() == b"one"
    with pytest.raises(ValueError, match="1 to 2000 characters"):
        await bob.say()


async def test_reactions_are_counted_and_taken_back(discord: Discord, bot: RawBot, alice: Person, bob: Person) -> None:
    said = await bob.say("tea?")
    one = f"{general(discord)}/messages/{said['id']}"
    thumb = f"{one}/reactions/{quote('👍')}"
    for person in (alice, bob, bob):
        await person.react(said, "👍")
    event = await next_event(bot, "MESSAGE_REACTION_ADD")
    assert (event["user_id"], event["message_id"], event["emoji"]) == (alice.id, said["id"], {"id": None, "name": "👍"})
    assert event["member"]["user"]["username"] == "alice"
    assert (await bot.rest("PUT", f"{thumb}/@me"))[0] == 204
    _, message = await bot.rest("GET", one)
    assert [(each["count"], each["me"]) for each in message["reactions"]] == [(3, True)]
    _, who = await bot.rest("GET", f"{thumb}?limit=2")
    assert [user["username"] for user in who] == ["playground-bot", "alice"]
    assert (await bot.rest("DELETE", f"{thumb}/@me"))[0] == 204
    assert (await bot.rest("DELETE", f"{thumb}/{alice.id}"))[0] == 204
    await bob.unreact(said, "👍")
    assert "reactions" not in (await bot.rest("GET", one))[1]
    assert (await bot.rest("PUT", f"{one}/reactions/thumbsup/@me"))[1]["code"] == 10014
    for emoji in ("👍", "name:123"):
        assert (await bot.rest("PUT", f"{one}/reactions/{quote(emoji)}/@me"))[0] == 204
    assert (await bot.rest("DELETE", f"{one}/reactions/{quote('name:123')}"))[0] == 204
    assert len((await bot.rest("GET", one))[1]["reactions"]) == 1
    assert (await bot.rest("DELETE", f"{one}/reactions"))[0] == 204
    assert "reactions" not in (await bot.rest("GET", one))[1]
    await next_event(bot, "MESSAGE_REACTION_REMOVE_ALL")


# What a bot does to members


async def test_roles_are_given_and_taken(discord: Discord, bot: RawBot, bob: Person) -> None:
    member = f"{GUILD}/members/{bob.id}"
    assert (await bot.rest("PUT", f"{member}/roles/{MODERATOR_ID}"))[0] == 204
    assert (await next_event(bot, "GUILD_MEMBER_UPDATE"))["roles"] == [MODERATOR_ID]
    assert bob.permissions() & 1 << 1
    assert (await bot.rest("PATCH", member, {"roles": [], "nick": "Bobby"}))[1]["nick"] == "Bobby"
    assert (await bot.rest("GET", member))[1]["roles"] == []
    assert (await bot.rest("PUT", f"{member}/roles/9"))[1]["code"] == 10011
    assert (await bot.rest("PUT", f"{GUILD}/members/9/roles/{MODERATOR_ID}"))[1]["code"] == 10007
    assert (await bot.rest("DELETE", f"{member}/roles/{MODERATOR_ID}"))[0] == 204
    assert (await bot.rest("PUT", f"{member}/roles/{APPLICATION_ID}"))[1]["code"] == 50013  # not above its own


async def test_somebody_is_silent_until_the_time_is_over(
    discord: Discord, bot: RawBot, alice: Person, bob: Person
) -> None:
    member = f"{GUILD}/members/{bob.id}"
    until = timestamp(discord.clock.now() + 600)
    assert (await bot.rest("PATCH", member, {"communication_disabled_until": until}))[0] == 200
    with pytest.raises(LookupError, match="bob needs the permission Send Messages"):
        await bob.say("x")
    discord.clock.advance(601)
    await bob.say("x")
    later = timestamp(discord.clock.now() + 29 * 86_400)
    assert (await bot.rest("PATCH", member, {"communication_disabled_until": later}))[0] == 400
    for other in (discord.user("alice").id, OWNER_ID):
        path = f"{GUILD}/members/{other}"
        assert (await bot.rest("PATCH", path, {"communication_disabled_until": until}))[1]["code"] == 50013


async def test_a_kick_and_a_ban(discord: Discord, bot: RawBot, bob: Person) -> None:
    carol = discord.user("carol")
    await carol.say("spam")
    assert (await bot.rest("DELETE", f"{GUILD}/members/{bob.id}"))[0] == 204
    assert bob.member is None
    ban = f"{GUILD}/bans/{carol.id}"
    headers = {"X-Audit-Log-Reason": quote("spam & more")}
    assert (await bot.rest("PUT", ban, {"delete_message_seconds": 3600}, headers=headers))[0] == 204
    assert discord.messages() == []
    assert (await bot.rest("GET", ban))[1]["reason"] == "spam & more"
    assert len((await bot.rest("GET", f"{GUILD}/bans"))[1]) == 1
    with pytest.raises(LookupError, match="carol is banned from the guild"):
        discord.join("carol")
    assert (await bot.rest("DELETE", ban))[0] == 204
    assert (await bot.rest("DELETE", ban))[1]["code"] == 10026
    discord.join("carol")
    assert carol.member is not None


async def test_who_stands_above_the_bot_is_out_of_its_reach(discord: Discord, bot: RawBot, bob: Person) -> None:
    high = discord.role("High")
    discord.world.membership.put_role(high["id"], "High", 0, position=60)
    bob.add_role("High")
    for id_ in (bob.id, OWNER_ID):
        member = f"{GUILD}/members/{id_}"
        assert (await bot.rest("PATCH", member, {"nick": "x"}))[1]["code"] == 50013
        assert (await bot.rest("DELETE", member))[1]["code"] == 50013
        assert (await bot.rest("PUT", f"{GUILD}/bans/{id_}"))[1]["code"] == 50013
    assert (await bot.rest("PATCH", f"{GUILD}/members/{bob.id}", {"roles": []}))[1]["code"] == 50013
    assert (await bot.rest("PATCH", f"{GUILD}/roles/{high['id']}", {"name": "Low"}))[1]["code"] == 50013
    bob.remove_role("High")
    assert (await bot.rest("DELETE", f"{GUILD}/members/{bob.id}"))[0] == 204


ROUTES: list[tuple[str, Any, str]] = [
    ("PUT MEMBER/roles/" + MODERATOR_ID, None, "manage_roles"),
    ("PATCH MEMBER", {"nick": "x"}, "manage_nicknames"),
    ("PATCH MEMBER", {"communication_disabled_until": None}, "moderate_members"),
    ("DELETE MEMBER", None, "kick_members"),
    ("PUT GUILD/bans/BOB", None, "ban_members"),
    ("POST GUILD/channels", {"name": "x"}, "manage_channels"),
    ("PATCH CHANNEL", {"topic": "x"}, "manage_channels"),
    ("DELETE CHANNEL", None, "manage_channels"),
    ("PUT CHANNEL/permissions/BOB", {"type": 1, "allow": "0", "deny": "0"}, "manage_roles"),
    ("POST GUILD/roles", {"name": "x"}, "manage_roles"),
    ("DELETE CHANNEL/messages/MESSAGE", None, "manage_messages"),
    ("PUT CHANNEL/messages/pins/MESSAGE", None, "manage_messages"),
    ("DELETE CHANNEL/messages/MESSAGE/reactions", None, "manage_messages"),
]


@pytest.mark.parametrize(("request_", "body", "permission"), ROUTES)
async def test_without_the_permission_nothing_is_done(
    discord: Discord, bot: RawBot, request_: str, body: Any, permission: str
) -> None:
    bob = discord.user("bob")
    method, path = request_.split(" ")
    said = await bob.say("x")
    places = {"MEMBER": f"{GUILD}/members/{bob.id}", "GUILD": GUILD, "CHANNEL": general(discord), "BOB": bob.id}
    for word, place in (places | {"MESSAGE": said["id"]}).items():
        path = path.replace(word, place)
    weaken(discord)
    assert (await bot.rest(method, path, body))[1]["code"] == 50013
    weaken(discord, permission)
    assert (await bot.rest(method, path, body))[0] < 300


async def test_a_channel_that_the_bot_may_not_see_or_write_in(discord: Discord, bot: RawBot, bob: Person) -> None:
    weaken(discord)
    channel = discord.world.channel_of(None)
    overwrite = {"id": APPLICATION_ID, "type": 0, "allow": "0", "deny": str(1 << 11)}
    discord.world.change_channel(channel["id"], permission_overwrites=[overwrite])
    assert (await bot.rest("POST", f"{general(discord)}/messages", {"content": "x"}))[1]["code"] == 50013
    discord.world.change_channel(channel["id"], permission_overwrites=[{**overwrite, "deny": str(1 << 10)}])
    assert (await bot.rest("GET", f"{general(discord)}/messages"))[1]["code"] == 50001
    await bob.say("unheard")
    assert "unheard" not in repr(bot.events)


# Channels and roles


async def test_a_ticket_channel_is_made_for_one_person_and_deleted(
    discord: Discord, bot: RawBot, alice: Person, bob: Person
) -> None:
    view, send = 1 << 10, 1 << 11
    category = (await bot.rest("POST", f"{GUILD}/channels", {"name": "Tickets", "type": 4}))[1]
    hidden = {"id": GUILD_ID, "type": 0, "deny": str(view)}
    shown = {"id": bob.id, "type": 1, "allow": str(view | send)}
    body = {"name": "Ticket For Bob", "parent_id": category["id"], "permission_overwrites": [hidden, shown]}
    status, made = await bot.rest("POST", f"{GUILD}/channels", body)
    assert (status, made["name"], made["parent_id"]) == (201, "ticket-for-bob", category["id"])
    path = f"/channels/{made['id']}"
    await bot.rest("POST", f"{path}/messages", {"content": "hello", "components": [BUTTON]})
    bob.click("B", message=discord.messages("ticket-for-bob")[0])
    with pytest.raises(LookupError, match="carol sees no such channel"):
        await discord.user("carol").say("x", "ticket-for-bob")
    with pytest.raises(LookupError, match="carol sees no enabled button"):
        discord.user("carol").click("B")
    assert discord.messages("ticket-for-bob", seen_by="carol") == []
    carol = {"type": 1, "allow": str(view), "deny": "0"}
    assert (await bot.rest("PUT", f"{path}/permissions/{discord.user('carol').id}", carol))[0] == 204
    discord.user("carol").click("B")
    assert (await bot.rest("DELETE", f"{path}/permissions/{discord.user('carol').id}"))[0] == 204
    assert (await bot.rest("DELETE", f"{path}/permissions/{discord.user('carol').id}"))[1]["code"] == 10009
    assert (await bot.rest("PATCH", path, {"topic": "closed", "name": "done"}))[1]["topic"] == "closed"
    assert (await bot.rest("POST", f"/channels/{category['id']}/messages", {"content": "x"}))[1]["code"] == 50008
    assert (await bot.rest("DELETE", path))[1]["id"] == made["id"]
    assert (await bot.rest("GET", path))[1]["code"] == 10003
    assert (await bot.rest("POST", f"{GUILD}/channels", {"name": "x", "parent_id": made["id"]}))[0] == 400


async def test_roles_are_made_changed_and_deleted(discord: Discord, bot: RawBot, bob: Person) -> None:
    _, role = await bot.rest("POST", f"{GUILD}/roles", {"name": "Tea", "permissions": "0", "color": 0xFF0000})
    path = f"{GUILD}/roles/{role['id']}"
    bob.add_role("Tea")
    assert (role["color"], (await bot.rest("GET", path))[1]["id"]) == (0xFF0000, role["id"])
    assert (await bot.rest("PATCH", path, {"name": "Coffee"}))[1]["name"] == "Coffee"
    assert (await next_event(bot, "GUILD_ROLE_UPDATE"))["role"]["name"] == "Coffee"
    assert (await bot.rest("DELETE", path))[0] == 204
    assert (await next_event(bot, "GUILD_ROLE_DELETE"))["role_id"] == role["id"]
    assert bob.member is not None
    assert bob.member["roles"] == []
    assert (await bot.rest("DELETE", f"{GUILD}/roles/{GUILD_ID}"))[1]["code"] == 50028
    assert len((await bot.rest("GET", f"{GUILD}/roles"))[1]) == 4


async def test_pins(discord: Discord, bot: RawBot, bob: Person) -> None:
    said = await bob.say("keep this")
    for pins in (f"{general(discord)}/messages/pins", f"{general(discord)}/pins"):
        assert (await bot.rest("PUT", f"{pins}/{said['id']}"))[0] == 204
        await next_event(bot, "CHANNEL_PINS_UPDATE")
        status, body = await bot.rest("GET", pins)
        pinned = body[0] if isinstance(body, list) else body["items"][0]["message"]
        assert (status, pinned["pinned"]) == (200, True)
        assert (await bot.rest("DELETE", f"{pins}/{said['id']}"))[0] == 204
    assert (await bot.rest("GET", f"{general(discord)}/pins"))[1] == []


async def test_a_bulk_deletion_takes_nothing_older_than_two_weeks(discord: Discord, bot: RawBot, bob: Person) -> None:
    said = [await bob.say(str(number)) for number in range(3)]
    path = f"{general(discord)}/messages/bulk-delete"
    assert (await bot.rest("POST", path, {"messages": [said[0]["id"], said[1]["id"]]}))[0] == 204
    await next_event(bot, "MESSAGE_DELETE_BULK")
    discord.clock.advance(15 * 86_400)
    fresh = await bob.say("fresh")
    assert (await bot.rest("POST", path, {"messages": [said[2]["id"], fresh["id"]]}))[1]["code"] == 50034
    assert [message["content"] for message in discord.messages()] == ["2", "fresh"]


async def test_in_private_a_bot_deletes_only_its_own(discord: Discord, bot: RawBot, bob: Person) -> None:
    said = await bob.say("x", "dm")
    path = f"/channels/{said['channel_id']}/messages"
    assert (await bot.rest("DELETE", f"{path}/{said['id']}"))[1]["code"] == 50003
    _, own = await bot.rest("POST", path, {"content": "x"})
    assert (await bot.rest("DELETE", f"{path}/{own['id']}"))[0] == 204


async def test_who_is_who_at_the_start(discord: Discord, bot: RawBot) -> None:
    assert int((await bot.rest("GET", "/users/@me/guilds"))[1][0]["permissions"]) & 8
    assert (await bot.rest("GET", GUILD))[1]["owner_id"] == OWNER_ID
    found = (await bot.rest("GET", f"{GUILD}/members/search?query=AL"))[1]
    assert [(each["user"]["username"], each["roles"]) for each in found] == [("alice", [ADMINISTRATOR_ID])]
    assert (await bot.rest("PATCH", f"{GUILD}/members/@me", {"nick": "Robot"}))[1]["nick"] == "Robot"
    assert (await bot.rest("DELETE", f"/users/@me/guilds/{GUILD_ID}"))[0] == 204
    assert (await next_event(bot, "GUILD_DELETE"))["id"] == GUILD_ID
