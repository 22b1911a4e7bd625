"""Which commands a person may use where, and on whose behalf the bot is there."""

from __future__ import annotations

from . import permissions
from .shapes import Json
from .world import GUILD_ID, World

IN_GUILD, IN_BOT_DM, IN_PRIVATE = 0, 1, 2
GUILD_INSTALL, USER_INSTALL = 0, 1


class NotUsable(LookupError):
    """Discord does not let this person use the command here; the text says why."""


def context_of(channel: Json) -> int:
    """Where an interaction takes place: in a guild, in private with the bot, or in private without it."""
    if "guild_id" in channel:
        return IN_GUILD
    return IN_BOT_DM if channel["type"] == 1 else IN_PRIVATE


def has_bot(world: World, channel: Json) -> bool:
    """Whether the bot is in the channel as itself, and not only by a command that somebody has installed."""
    if "guild_id" in channel:
        return channel["guild_id"] == GUILD_ID and world.bot_in_guild
    return channel["type"] == 1


def owners_of(world: World, command: Json | None, channel: Json, user_id: str) -> Json:
    """Who has let the bot in: authorizing_integration_owners of an interaction."""
    types: list[int] = command["integration_types"] if command is not None else [GUILD_INSTALL]
    made: Json = {}
    if GUILD_INSTALL in types and has_bot(world, channel):
        made["0"] = channel.get("guild_id", "0")
    if USER_INSTALL in types:
        made["1"] = user_id
    return made


def check_usable(world: World, command: Json, channel: Json, user_id: str) -> None:
    """Raise NotUsable with a sentence unless Discord would offer the command to that person in that channel."""
    problem = problem_with(world, command, channel, user_id)
    if problem is not None:
        raise NotUsable(f"{world.users[user_id]['username']} cannot use {name_of(command)} here: {problem}.")


def name_of(command: Json) -> str:
    return f"/{command['name']}" if command["type"] == 1 else f"{command['name']!r}"


def problem_with(world: World, command: Json, channel: Json, user_id: str) -> str | None:
    may = world.permissions_in(user_id, channel)
    if not may & permissions.VIEW_CHANNEL:
        return "they do not see the channel"
    if command.get("guild_id") not in (None, channel.get("guild_id")):
        return "it belongs to another guild"
    contexts: list[int] | None = command.get("contexts")
    if contexts is not None and context_of(channel) not in contexts and "guild_id" not in command:
        return ("guilds", "private messages with the bot", "other private channels")[context_of(channel)] + (
            " are not among its contexts"
        )
    if USER_INSTALL not in command["integration_types"] and not has_bot(world, channel):
        return "the bot is not here, and it is no command that people install for themselves"
    if command.get("nsfw") and "guild_id" in channel and not channel.get("nsfw"):
        return "it is for age-restricted channels"
    return missing_permission(command, channel, may)


def missing_permission(command: Json, channel: Json, may: int) -> str | None:
    if channel.get("guild_id") != GUILD_ID or may & permissions.ADMINISTRATOR:
        return None
    if not may & permissions.BITS["USE_APPLICATION_COMMANDS"]:
        return "they may not use commands"
    given: str | None = command.get("default_member_permissions")
    if given is None:
        return None
    needed = int(given)
    if needed == 0:
        return "it is for administrators"
    return f"it needs the permission {permissions.words(needed & ~may)}" if needed & ~may else None
