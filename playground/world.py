"""What exists in this Discord: a guild, its channels, people, messages, commands and uploaded files.

Two more places come into being when they are needed: a guild without the bot, and a private channel of several people.
There the bot is reached only by commands that people have installed for themselves.

Objects are replaced, never changed in place: the journal, the gateway's replay buffer and the page hold
references to what was true when they were written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote

from . import permissions, shapes
from .clock import Clock
from .journal import Journal
from .membership import Membership
from .shapes import IS_COMPONENTS_V2, LOADING, Json
from .uploads import Upload, content_type_of

DISCORD_EPOCH_MS = 1420070400000
APPLICATION_ID = "100000000000000001"
GUILD_ID = "200000000000000001"
ELSEWHERE_ID = "200000000000000002"
"""The guild without the bot."""
FIRST_CHANNEL_ID = 300000000000000001
OWNER_ID, FIRST_USER_ID = "400000000000000000", 400000000000000001
MODERATOR_ID, ADMINISTRATOR_ID = "500000000000000001", "500000000000000002"

NONCE_KEPT_S = 300
FLAGS_A_BOT_MAY_SET = 1 << 2 | 1 << 6 | 1 << 12 | 1 << 15
USER_MENTION = re.compile(r"<@!?(\d+)>")

SUPPRESS_EMBEDS = 1 << 2
MESSAGES_IN = (0, 2, 5)
"""The types of guild channel that have messages."""

What = Literal[
    "message", "edit", "gone", "all gone", "reaction", "no reaction", "no reactions", "pins", "typing",
    "commands", "users", "channels", "channel_new", "channel", "channel_gone",
    "joined", "left", "member", "banned", "unbanned", "role_new", "role", "role_gone",
    "bot_in", "bot_out", "outage",
]  # fmt: skip
Listener = Callable[[What, Any], None]


@dataclass(eq=False, slots=True)
class Kept:
    """A message and what only the playground knows about it."""

    message: Json
    visible_to: str | None = None
    used: Json | None = None
    dismissed: bool = False
    reactors: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Who reacted with what, in order."""
    pinned_at: float = 0.0

    @property
    def id(self) -> str:
        return self.message["id"]

    @property
    def is_v2(self) -> bool:
        return bool(self.message["flags"] & IS_COMPONENTS_V2)

    @property
    def is_loading(self) -> bool:
        return bool(self.message["flags"] & LOADING)

    def is_visible_to(self, user_id: str) -> bool:
        return self.visible_to in (None, user_id) and not self.dismissed

    def for_page(self) -> Json:
        return {**self.message, "visible_to": self.visible_to, "used": self.used, "reactors": self.reactors}


class World:
    """The state, and the only way to change it. Every change is told to the listeners before the call returns."""

    def __init__(self, clock: Clock, journal: Journal) -> None:
        self.clock = clock
        self.journal = journal
        self.listeners: list[Listener] = []
        self.address = ""
        self.bot = shapes.user(APPLICATION_ID, "playground-bot", bot=True)
        self.users: dict[str, Json] = {APPLICATION_ID: self.bot}
        self.user_ids: dict[str, str] = {}
        self.channels: dict[str, Json] = {}
        self.commands: dict[str, Json] = {}
        self.uploads: dict[str, Upload] = {}
        self._kept: dict[str, Kept] = {}
        self._by_channel: dict[str, dict[str, Kept]] = {}
        self._nonces: dict[tuple[str, str], tuple[str, float]] = {}
        self._last_id = 0
        self.bot_in_guild = True
        self.has_outage = False
        self.interactions_url: str | None = None
        """Where the application takes interactions; None while they go through the gateway."""
        self.locales: dict[str, str] = {}
        """Of people who have chosen another language than en-US."""
        self.membership = Membership(GUILD_ID, self.bot, clock.now, self.tell)
        self._add_first_people()
        self._guild = shapes.guild(GUILD_ID, "Playground", OWNER_ID, [])
        for position, name in enumerate(("general", "random")):
            self._add_channel(shapes.guild_channel(str(FIRST_CHANNEL_ID + position), name, GUILD_ID, position))

    def _add_first_people(self) -> None:
        """An owner, who does nothing but own; alice, an administrator; bob and carol, who are like anybody."""
        self.users[OWNER_ID] = shapes.user(OWNER_ID, "owner", name="Owner")
        self.membership.owner_id = OWNER_ID
        self.membership.add(self.users[OWNER_ID], quietly=True)
        for name in ("alice", "bob", "carol"):
            self._make_user(name, quietly=True)
        self.membership.put_role(MODERATOR_ID, "Moderator", permissions.MODERATOR)
        self.membership.put_role(ADMINISTRATOR_ID, "Administrator", permissions.ADMINISTRATOR)
        self.membership.give(self.user_ids["alice"], ADMINISTRATOR_ID)

    @property
    def guild(self) -> Json:
        """The playground's guild as it is now."""
        return {**self._guild, "roles": list(self.membership.roles.values())}

    def snowflake(self) -> str:
        """A new id, greater than every earlier one, that tells the clock's time."""
        at = int(self.clock.now() * 1000) - DISCORD_EPOCH_MS
        self._last_id = max(self._last_id + 1, at << 22)
        return str(self._last_id)

    def tell(self, what: What, subject: Any = None) -> None:
        for listener in self.listeners:
            listener(what, subject)

    # People and channels

    def user_named(self, name: str) -> Json:
        """The person of that name, who joins on first use."""
        if name not in self.user_ids:
            self._make_user(name)
        return self.users[self.user_ids[name]]

    def _make_user(self, name: str, *, quietly: bool = False) -> None:
        id_ = str(FIRST_USER_ID + len(self.user_ids))
        self.user_ids[name] = id_
        self.users[id_] = shapes.user(id_, name, name=name.title())
        self.membership.add(self.users[id_], quietly=quietly)

    def people(self) -> list[Json]:
        return [self.users[id_] for id_ in self.user_ids.values()]

    def members(self) -> list[Json]:
        return self.membership.all()

    def guild_channels(self) -> list[Json]:
        return [channel for channel in self.channels.values() if channel.get("guild_id") == GUILD_ID]

    def locale_of(self, user_id: str) -> str:
        return self.locales.get(user_id, "en-US")

    def permissions_in(self, user_id: str, channel: Json) -> int:
        """What a person, or the bot, may do in a channel; 0 when they do not see it."""
        if channel.get("guild_id") == GUILD_ID:
            is_out = user_id == self.bot["id"] and not self.bot_in_guild
            return 0 if is_out else self.membership.may(user_id, channel)
        if channel.get("guild_id") == ELSEWHERE_ID:
            return permissions.EVERYONE if user_id != self.bot["id"] else 0
        is_in = user_id in [each["id"] for each in channel["recipients"]]
        is_bots = channel["type"] == 1 and user_id == self.bot["id"]
        return permissions.ALL if is_in or is_bots else 0

    def permissions_of_bot(self, channel: Json) -> int:
        """What the bot may do there; where it is only by an install, what its answers may do."""
        return self.permissions_in(self.bot["id"], channel) or permissions.OF_AN_INSTALL

    def sees(self, user_id: str, channel: Json) -> bool:
        return bool(self.permissions_in(user_id, channel) & permissions.VIEW_CHANNEL)

    def resolved(self, ids: list[str], channel: Json, user_id: str) -> Json:
        """The people, roles and channels with these ids, as an interaction of that person in `channel` has them."""
        made: Json = {}
        for id_ in ids:
            if id_ in self.users:
                made.setdefault("users", {})[id_] = self.users[id_]
                member = self._resolved_member(self.users[id_], channel)
                if member is not None:
                    made.setdefault("members", {})[id_] = member
            elif id_ in self.channels:
                may = (self.permissions_in(who, self.channels[id_]) for who in (user_id, self.bot["id"]))
                both = dict(zip(("permissions", "app_permissions"), map(str, may), strict=True))
                made.setdefault("channels", {})[id_] = self.channels[id_] | both
            elif id_ in self.membership.roles:
                made.setdefault("roles", {})[id_] = self.membership.roles[id_]
            else:
                raise LookupError(f"Nobody and nothing here has the id {id_!r}.")
        return made

    def _resolved_member(self, user: Json, channel: Json) -> Json | None:
        """A member without its user but with what they may do in the channel; None outside of a guild."""
        if "guild_id" not in channel:
            return None
        if channel["guild_id"] == GUILD_ID and self.membership.find(user["id"]) is None:
            return None  # someone who has left is only a user
        member = self.membership.of(user) if channel["guild_id"] == GUILD_ID else shapes.member(user)
        without_user = {key: value for key, value in member.items() if key not in ("user", "mute", "deaf")}
        return {**without_user, "permissions": str(self.permissions_in(user["id"], channel))}

    def channel_of(self, wanted: str | None, user_id: str | None = None) -> Json:
        """The channel with that name or id; the first one for None, "dm" for a person's private one with the bot."""
        if wanted == "dm" and user_id is not None:
            return self.direct_channel_with(user_id)
        if wanted in ("elsewhere", "friends"):
            self.open_elsewhere()
        for channel in self.channels.values():
            if wanted in (None, channel["id"], channel.get("name")):
                return channel
        names = ", ".join(channel["name"] for channel in self.guild_channels())
        raise LookupError(f"There is no channel {wanted!r}. There are: {names}.")

    def direct_channel_with(self, user_id: str) -> Json:
        """The bot's private channel with a person, made on first use."""
        for channel in self.channels.values():
            if channel["type"] == 1 and channel["recipients"][0]["id"] == user_id:
                return channel
        channel = shapes.direct_channel(self.snowflake(), self.users[user_id])
        self._add_channel(channel)
        self.tell("channels", channel)
        return channel

    def open_elsewhere(self) -> None:
        """Make the places where the bot is not: the channel "elsewhere" of another guild, and "friends", a group."""
        if any(channel.get("guild_id") == ELSEWHERE_ID for channel in self.channels.values()):
            return
        self._add_channel(shapes.guild_channel(self.snowflake(), "elsewhere", ELSEWHERE_ID, 0))
        self._add_channel(shapes.group_channel(self.snowflake(), "friends", self.people()[:3]))
        self.tell("channels")

    def create_channel(self, name: str, type_: int = 0, **fields: Any) -> Json:
        """A new channel of the guild."""
        made = shapes.guild_channel(self.snowflake(), name, GUILD_ID, len(self.guild_channels()), type_)
        made |= {key: value for key, value in fields.items() if value is not None}
        self._add_channel(made)
        self.tell("channel_new", made)
        return made

    def change_channel(self, channel_id: str, **fields: Any) -> Json:
        self.channels[channel_id] = {**self.channels[channel_id], **fields}
        self.tell("channel", self.channels[channel_id])
        return self.channels[channel_id]

    def delete_channel(self, channel_id: str) -> Json:
        """Its messages go with it; of them nobody is told."""
        channel = self.channels.pop(channel_id)
        for id_ in self._by_channel.pop(channel_id):
            del self._kept[id_]
        self.tell("channel_gone", channel)
        return channel

    def _add_channel(self, channel: Json) -> None:
        self.channels[channel["id"]] = channel
        self._by_channel[channel["id"]] = {}

    def take_bot_out(self) -> None:
        """The bot is removed from the guild, or the guild is deleted: for a bot that is the same."""
        self.bot_in_guild = False
        self.tell("bot_out")

    def take_bot_in(self) -> None:
        self.bot_in_guild = True
        self.tell("bot_in")

    def set_outage(self, has_outage: bool) -> None:
        """The guild cannot be reached for a while, or can be again."""
        self.has_outage = has_outage
        self.tell("outage")

    # Messages

    def find(self, message_id: str) -> Kept | None:
        return self._kept.get(message_id)

    def in_channel(self, channel_id: str) -> list[Kept]:
        return list(self._by_channel[channel_id].values())

    def newest_first(self) -> Iterator[Kept]:
        """Every message of every channel; the dictionary keeps them in the order they were made."""
        return reversed(self._kept.values())

    def all_messages(self) -> list[Kept]:
        return list(self._kept.values())

    def add_message(
        self,
        channel_id: str,
        author: Json,
        body: Json,
        *,
        uploads: list[Upload] | None = None,
        visible_to: str | None = None,
        used: Json | None = None,
        extra: Json | None = None,
    ) -> Kept:
        blank = shapes.message(self.snowflake(), channel_id, author, self.clock.now())
        blank["flags"] = int(body.get("flags") or 0) & FLAGS_A_BOT_MAY_SET
        kept = Kept(self._filled(blank | (extra or {}), body, uploads or []), visible_to, used)
        self._kept[kept.id] = self._by_channel[channel_id][kept.id] = kept
        self.channels[channel_id] = {**self.channels[channel_id], "last_message_id": kept.id}
        self.tell("message", kept)
        return kept

    def edit_message(self, kept: Kept, body: Json, uploads: list[Upload] | None = None) -> Kept:
        """Apply an edit. Members left out of the body stay; the thinking state ends."""
        flags = kept.message["flags"] & ~LOADING
        if body.get("flags") is not None:
            flags = flags & ~SUPPRESS_EMBEDS | int(body["flags"]) & (IS_COMPONENTS_V2 | SUPPRESS_EMBEDS)
        edited = {**kept.message, "flags": flags, "edited_timestamp": shapes.timestamp(self.clock.now())}
        kept.message = self._filled(edited, body, uploads or [])
        self.tell("edit", kept)
        return kept

    def delete_message(self, kept: Kept) -> None:
        del self._kept[kept.id]
        del self._by_channel[kept.message["channel_id"]][kept.id]
        self.tell("gone", kept)

    def delete_messages(self, several: list[Kept]) -> None:
        """Delete messages of one channel at once."""
        for kept in several:
            del self._kept[kept.id]
            del self._by_channel[kept.message["channel_id"]][kept.id]
        self.tell("all gone", several)

    def delete_all_of(self, user_id: str, since: float) -> None:
        """Delete what somebody wrote in the guild since then."""
        for channel in self.guild_channels():
            kept = [each for each in self.in_channel(channel["id"]) if each.message["author"]["id"] == user_id]
            recent = [each for each in kept if shapes.written_at(each.message) >= since]
            if recent:
                self.delete_messages(recent)

    def react(self, kept: Kept, user_id: str, emoji: str) -> None:
        who = kept.reactors.setdefault(emoji, [])
        if user_id not in who:
            who.append(user_id)
            self._count_reactions(kept)
            self.tell("reaction", (kept, user_id, emoji))

    def unreact(self, kept: Kept, user_id: str, emoji: str) -> None:
        if user_id in kept.reactors.get(emoji, ()):
            kept.reactors[emoji].remove(user_id)
            self._count_reactions(kept)
            self.tell("no reaction", (kept, user_id, emoji))

    def clear_reactions(self, kept: Kept, emoji: str | None = None) -> None:
        """Take away all reactions with one emoji, or all there are."""
        for each in [emoji] if emoji is not None else list(kept.reactors):
            kept.reactors.pop(each, None)
        self._count_reactions(kept)
        self.tell("no reactions", (kept, emoji))

    def _count_reactions(self, kept: Kept) -> None:
        kept.reactors = {emoji: who for emoji, who in kept.reactors.items() if who}
        bot_id = self.bot["id"]
        counted = [shapes.reaction(emoji, len(who), bot_id in who) for emoji, who in kept.reactors.items()]
        without = {key: value for key, value in kept.message.items() if key != "reactions"}
        kept.message = without | ({"reactions": counted} if counted else {})

    def pin(self, kept: Kept, is_pinned: bool) -> None:
        kept.message = {**kept.message, "pinned": is_pinned}
        kept.pinned_at = self.clock.now()
        self.tell("pins", kept)

    def dismiss(self, kept: Kept) -> None:
        """The person no longer sees the message; for the bot it is still there, as on Discord."""
        kept.dismissed = True
        self.tell("gone", kept)

    def reply_to(self, found: Kept) -> Json:
        """What a message has of the one that it answers."""
        channel = self.channels[found.message["channel_id"]]
        place = {"type": 0, "channel_id": channel["id"], "message_id": found.id}
        if "guild_id" in channel:
            place["guild_id"] = channel["guild_id"]
        original = {key: value for key, value in found.message.items() if key != "referenced_message"}
        return {"type": 19, "message_reference": place, "referenced_message": original}

    def remember_nonce(self, channel_id: str, nonce: str, message_id: str) -> None:
        self._nonces[channel_id, nonce] = (message_id, self.clock.now())

    def message_with_nonce(self, channel_id: str, nonce: str) -> Kept | None:
        """The message made with that nonce in that channel within the last minutes."""
        message_id, at = self._nonces.get((channel_id, nonce), ("", 0.0))
        return self.find(message_id) if self.clock.now() - at <= NONCE_KEPT_S else None

    def _filled(self, base: Json, body: Json, uploads: list[Upload]) -> Json:
        made = dict(base)
        if "content" in body:
            made["content"] = body["content"] or ""
        made["attachments"] = self._attachments(made, body, uploads)
        if "embeds" in body:
            made["embeds"] = shapes.embeds(body["embeds"] or [], made["attachments"])
        if "components" in body:
            components: list[Json] = body["components"] or []
            made["components"] = shapes.Completion(components, made["attachments"]).all(components)
        made["mentions"] = self._mentions(made)
        return made

    def _attachments(self, message: Json, body: Json, uploads: list[Upload]) -> list[Json]:
        """An edit without `attachments` keeps those that are there; with it, only those that it names."""
        kept: list[Json] = message["attachments"]
        if body.get("attachments") is not None:
            named: dict[str, Json] = {str(item.get("id")): item for item in body["attachments"]}
            kept = [described(item, named[item["id"]]) for item in kept if item["id"] in named]
        return kept + [self.store(message["channel_id"], upload) for upload in uploads]

    def store(self, channel_id: str, upload: Upload) -> Json:
        """Keep a file; the attachment that tells where it lies."""
        id_ = self.snowflake()
        kind = content_type_of(upload.filename, upload.content_type)
        self.uploads[id_] = upload._replace(content_type=kind)
        url = f"{self.address}/attachments/{channel_id}/{id_}/{quote(upload.filename)}"
        made = shapes.attachment(id_, upload.filename, len(upload.data), kind, url)
        if upload.size is not None:
            made |= {"width": upload.size[0], "height": upload.size[1]}
        return made if upload.description is None else {**made, "description": upload.description}

    def _mentions(self, message: Json) -> list[Json]:
        texts = [message["content"], *(part.get("content", "") for part in shapes.walk(message["components"]))]
        ids = dict.fromkeys(id_ for text in texts if "<@" in text for id_ in USER_MENTION.findall(text))
        return [self.users[id_] for id_ in ids if id_ in self.users]

    # Commands

    def commands_in(self, guild_id: str | None) -> list[Json]:
        return [command for command in self.commands.values() if command.get("guild_id") == guild_id]

    def put_command(self, guild_id: str | None, body: Json, *, id_: str | None = None) -> tuple[Json, bool]:
        """Create a command, or replace the one with the same id, or name and type. True when it is new."""
        kind = body.get("type") or 1
        same = [c for c in self.commands_in(guild_id) if c["name"] == body["name"] and c["type"] == kind]
        old = self.commands.get(id_) if id_ else (same[0] if same else None)
        made = shapes.command(self.bot["id"], old["id"] if old else self.snowflake(), "", guild_id, body)
        made["version"] = old["version"] if old and {**old, "version": ""} == made else self.snowflake()
        self.commands[made["id"]] = made
        if 1 in made["integration_types"]:
            self.open_elsewhere()
        self.tell("commands")
        return made, old is None

    def replace_commands(self, guild_id: str | None, bodies: list[Json]) -> list[Json]:
        known = {command["id"] for command in self.commands_in(guild_id)}
        given = [str(body["id"]) if str(body.get("id")) in known else None for body in bodies]
        made = [self.put_command(guild_id, body, id_=id_)[0] for body, id_ in zip(bodies, given, strict=True)]
        ids = {command["id"] for command in made}
        for command in self.commands_in(guild_id):
            if command["id"] not in ids:
                del self.commands[command["id"]]
        self.tell("commands")
        return made

    def delete_command(self, command_id: str) -> None:
        del self.commands[command_id]
        self.tell("commands")


def described(attachment: Json, about: Json) -> Json:
    """An attachment that stays, with the description that an edit gives it."""
    return attachment if about.get("description") is None else {**attachment, "description": about["description"]}
