"""What exists in this Discord: one guild, its channels, people, messages, commands and uploaded files.

Objects are replaced, never changed in place: the journal, the gateway's replay buffer and the page hold
references to what was true when they were written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from . import shapes
from .clock import Clock
from .journal import Journal
from .shapes import IS_COMPONENTS_V2, LOADING, Json

DISCORD_EPOCH_MS = 1420070400000
APPLICATION_ID = "100000000000000001"
GUILD_ID = "200000000000000001"
FIRST_CHANNEL_ID = 300000000000000001
FIRST_USER_ID = 400000000000000001

NONCE_KEPT_S = 300
FLAGS_A_BOT_MAY_SET = 1 << 2 | 1 << 6 | 1 << 12 | 1 << 15
USER_MENTION = re.compile(r"<@!?(\d+)>")

What = Literal["message", "edit", "gone", "commands", "users", "channels"]
Listener = Callable[[What, Any], None]


class Upload(NamedTuple):
    """A file as a client sent it."""

    filename: str
    content_type: str
    data: bytes
    description: str | None = None


@dataclass(eq=False, slots=True)
class Kept:
    """A message and what only the playground knows about it."""

    message: Json
    visible_to: str | None = None
    used: Json | None = None
    dismissed: bool = False

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
        return {**self.message, "visible_to": self.visible_to, "used": self.used}


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
        for name in ("alice", "bob", "carol"):
            self.user_named(name)
        self.guild = shapes.guild(GUILD_ID, "Playground", self.user_ids["alice"])
        for position, name in enumerate(("general", "random")):
            self._add_channel(shapes.text_channel(str(FIRST_CHANNEL_ID + position), name, GUILD_ID, position))

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
        """The person of that name, made on first use."""
        if name not in self.user_ids:
            id_ = str(FIRST_USER_ID + len(self.user_ids))
            self.user_ids[name] = id_
            self.users[id_] = shapes.user(id_, name, name=name.title())
            self.tell("users")
        return self.users[self.user_ids[name]]

    def people(self) -> list[Json]:
        return [self.users[id_] for id_ in self.user_ids.values()]

    def members(self) -> list[Json]:
        return [shapes.member(user) for user in self.users.values()]

    def guild_channels(self) -> list[Json]:
        return [channel for channel in self.channels.values() if channel["type"] == 0]

    def resolved(self, ids: list[str]) -> Json:
        """The people, roles and channels with these ids, grouped as interaction data has them."""
        made: Json = {}
        for id_ in ids:
            if id_ in self.users:
                made.setdefault("users", {})[id_] = self.users[id_]
                without_user = {key: value for key, value in shapes.member(self.users[id_]).items() if key != "user"}
                made.setdefault("members", {})[id_] = {**without_user, "permissions": shapes.ALL_PERMISSIONS}
            elif id_ in self.channels:
                channel = {**self.channels[id_], "permissions": shapes.ALL_PERMISSIONS}
                made.setdefault("channels", {})[id_] = channel
            elif id_ == GUILD_ID:
                made.setdefault("roles", {})[id_] = self.guild["roles"][0]
            else:
                raise LookupError(f"Nobody and nothing here has the id {id_!r}.")
        return made

    def channel_of(self, wanted: str | None) -> Json:
        """The channel with that name or id; the first one for None."""
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

    def _add_channel(self, channel: Json) -> None:
        self.channels[channel["id"]] = channel
        self._by_channel[channel["id"]] = {}

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
        blank["flags"] = int(body.get("flags") or 0) & (FLAGS_A_BOT_MAY_SET | LOADING)
        kept = Kept(self._filled(blank | (extra or {}), body, uploads or []), visible_to, used)
        self._kept[kept.id] = self._by_channel[channel_id][kept.id] = kept
        self.channels[channel_id] = {**self.channels[channel_id], "last_message_id": kept.id}
        self.tell("message", kept)
        return kept

    def edit_message(self, kept: Kept, body: Json, uploads: list[Upload] | None = None) -> Kept:
        """Apply an edit. Members left out of the body stay; the thinking state ends."""
        flags = kept.message["flags"] & ~LOADING | int(body.get("flags") or 0) & IS_COMPONENTS_V2
        edited = {**kept.message, "flags": flags, "edited_timestamp": shapes.timestamp(self.clock.now())}
        kept.message = self._filled(edited, body, uploads or [])
        self.tell("edit", kept)
        return kept

    def delete_message(self, kept: Kept) -> None:
        del self._kept[kept.id]
        del self._by_channel[kept.message["channel_id"]][kept.id]
        self.tell("gone", kept)

    def dismiss(self, kept: Kept) -> None:
        """The person no longer sees the message; for the bot it is still there, as on Discord."""
        kept.dismissed = True
        self.tell("gone", kept)

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
            made["embeds"] = shapes.embeds(body["embeds"] or [])
        if "components" in body:
            components: list[Json] = body["components"] or []
            made["components"] = shapes.Completion(components, made["attachments"]).all(components)
        made["mentions"] = self._mentions(made)
        return made

    def _attachments(self, message: Json, body: Json, uploads: list[Upload]) -> list[Json]:
        kept: list[Json] = message["attachments"]
        if body.get("attachments") is not None:
            named = {str(item.get("id")) for item in body["attachments"]}
            kept = [item for item in kept if item["id"] in named]
        return kept + [self._store(message["channel_id"], upload) for upload in uploads]

    def _store(self, channel_id: str, upload: Upload) -> Json:
        id_ = self.snowflake()
        self.uploads[id_] = upload
        url = f"{self.address}/attachments/{channel_id}/{id_}/{quote(upload.filename)}"
        made = shapes.attachment(id_, upload.filename, len(upload.data), upload.content_type, url)
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
        self.tell("commands")
        return made, old is None

    def replace_commands(self, guild_id: str | None, bodies: list[Json]) -> list[Json]:
        made = [self.put_command(guild_id, body)[0] for body in bodies]
        ids = {command["id"] for command in made}
        for command in self.commands_in(guild_id):
            if command["id"] not in ids:
                del self.commands[command["id"]]
        self.tell("commands")
        return made

    def delete_command(self, command_id: str) -> None:
        del self.commands[command_id]
        self.tell("commands")
