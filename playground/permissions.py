"""Permissions: their names and bits, and what a member may do in a channel."""

from __future__ import annotations

from collections.abc import Iterable

from .shapes import Json

# In the order of their bits, as Discord's documentation names them.
IN_ORDER = """
CREATE_INSTANT_INVITE KICK_MEMBERS BAN_MEMBERS ADMINISTRATOR MANAGE_CHANNELS MANAGE_GUILD ADD_REACTIONS
VIEW_AUDIT_LOG PRIORITY_SPEAKER STREAM VIEW_CHANNEL SEND_MESSAGES SEND_TTS_MESSAGES MANAGE_MESSAGES EMBED_LINKS
ATTACH_FILES READ_MESSAGE_HISTORY MENTION_EVERYONE USE_EXTERNAL_EMOJIS VIEW_GUILD_INSIGHTS CONNECT SPEAK MUTE_MEMBERS
DEAFEN_MEMBERS MOVE_MEMBERS USE_VAD CHANGE_NICKNAME MANAGE_NICKNAMES MANAGE_ROLES MANAGE_WEBHOOKS
MANAGE_GUILD_EXPRESSIONS USE_APPLICATION_COMMANDS REQUEST_TO_SPEAK MANAGE_EVENTS MANAGE_THREADS CREATE_PUBLIC_THREADS
CREATE_PRIVATE_THREADS USE_EXTERNAL_STICKERS SEND_MESSAGES_IN_THREADS USE_EMBEDDED_ACTIVITIES MODERATE_MEMBERS
VIEW_CREATOR_MONETIZATION_ANALYTICS USE_SOUNDBOARD CREATE_GUILD_EXPRESSIONS CREATE_EVENTS USE_EXTERNAL_SOUNDS
SEND_VOICE_MESSAGES
"""
NAMES: dict[int, str] = dict(enumerate(IN_ORDER.split())) | {49: "SEND_POLLS", 50: "USE_EXTERNAL_APPS"}
BITS: dict[str, int] = {name: 1 << number for number, name in NAMES.items()}

ALL = (1 << 51) - 1
ADMINISTRATOR = BITS["ADMINISTRATOR"]
VIEW_CHANNEL = BITS["VIEW_CHANNEL"]
WHAT_A_TIMEOUT_LEAVES = VIEW_CHANNEL | BITS["READ_MESSAGE_HISTORY"]

WHAT_EVERYONE_MAY = """
CREATE_INSTANT_INVITE ADD_REACTIONS STREAM VIEW_CHANNEL SEND_MESSAGES EMBED_LINKS ATTACH_FILES READ_MESSAGE_HISTORY
MENTION_EVERYONE USE_EXTERNAL_EMOJIS CONNECT SPEAK USE_VAD CHANGE_NICKNAME USE_APPLICATION_COMMANDS REQUEST_TO_SPEAK
CREATE_PUBLIC_THREADS CREATE_PRIVATE_THREADS USE_EXTERNAL_STICKERS SEND_MESSAGES_IN_THREADS USE_EMBEDDED_ACTIVITIES
USE_SOUNDBOARD SEND_VOICE_MESSAGES SEND_POLLS USE_EXTERNAL_APPS
"""
EVERYONE = sum(BITS[name] for name in WHAT_EVERYONE_MAY.split())
"""The bits that everyone has in a new guild."""

WHAT_MODERATORS_MAY = "KICK_MEMBERS BAN_MEMBERS MANAGE_MESSAGES MANAGE_NICKNAMES MODERATE_MEMBERS"
MODERATOR = sum(BITS[name] for name in WHAT_MODERATORS_MAY.split())

OF_AN_INSTALL = BITS["ATTACH_FILES"] | BITS["EMBED_LINKS"] | BITS["MENTION_EVERYONE"]
"""What an app may do where it is only because somebody has installed it for themselves."""


def bits_of(wanted: Iterable[str] | int | str) -> int:
    """The bits of permissions given by name ("kick_members"), or as a number."""
    if isinstance(wanted, int):
        return wanted
    if isinstance(wanted, str):
        return int(wanted) if wanted.isdecimal() else bits_of([wanted])
    made = 0
    for name in wanted:
        if name.upper() not in BITS:
            raise ValueError(f"There is no permission {name!r}.")
        made |= BITS[name.upper()]
    return made


def words(bits: int) -> str:
    """The permissions as a person reads them."""
    return ", ".join(name.replace("_", " ").title() for name, bit in BITS.items() if bits & bit)


def in_guild(roles: Iterable[Json], is_owner: bool) -> int:
    """What a member with these roles may do where no channel says otherwise; @everyone is one of them."""
    made = 0
    for role in roles:
        made |= int(role["permissions"])
    return ALL if is_owner or made & ADMINISTRATOR else made


def in_channel(base: int, channel: Json, user_id: str, role_ids: Iterable[str], is_timed_out: bool) -> int:
    """What a channel takes and gives: @everyone's overwrite first, then those of the roles, then the member's own."""
    if base & ADMINISTRATOR:
        return base
    overwrites: dict[str, Json] = {each["id"]: each for each in channel.get("permission_overwrites") or ()}
    own = [overwrites[id_] for id_ in role_ids if id_ in overwrites]
    everyone = [each for each in (overwrites.get(channel.get("guild_id", "")),) if each]
    member = [overwrites[user_id]] if user_id in overwrites else []
    for group in (everyone, [each for each in own if each not in everyone], member):
        for each in group:
            base &= ~int(each["deny"])
        for each in group:
            base |= int(each["allow"])
    if not base & VIEW_CHANNEL:
        return 0
    return base & WHAT_A_TIMEOUT_LEAVES if is_timed_out else base
