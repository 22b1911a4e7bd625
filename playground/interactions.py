"""Interactions: what a person did, who may answer it how, and until when.

An interaction is pending until its first callback (3 s), then answered or deferred; its token works for
15 min. Everything a bot gets wrong on the way is a `Refused` with Discord's own code. How it comes to the bot, through
the gateway or over HTTP, makes no difference here.
"""

from __future__ import annotations

import base64
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from . import limits
from .errors import Refused
from .shapes import ATTACHMENT_BYTES_MAX, EPHEMERAL, LOADING, Json, member
from .uploads import Upload
from .usable import context_of, has_bot, owners_of
from .world import GUILD_ID, Kept, What, World

FIRST_ANSWER_S = 3.0
TOKEN_LIVES_S = 15 * 60.0
FOLLOWUPS_MAX_ELSEWHERE = 5
"""Of an interaction in a place where the bot is only because somebody has installed it for themselves."""

Kind = Literal["command", "component", "form", "autocomplete"]
State = Literal["pending", "answered", "deferred", "failed"]

TYPE_OF: dict[Kind, int] = {"command": 2, "component": 3, "autocomplete": 4, "form": 5}

MESSAGE, DEFER_MESSAGE, DEFER_UPDATE, UPDATE, SUGGESTIONS, FORM = 4, 5, 6, 7, 8, 9
# A form opened by a component has that component's message, so it may update it.
ALLOWED: dict[tuple[Kind, bool], tuple[int, ...]] = {
    ("command", False): (MESSAGE, DEFER_MESSAGE, FORM),
    ("component", True): (MESSAGE, DEFER_MESSAGE, DEFER_UPDATE, UPDATE, FORM),
    ("form", False): (MESSAGE, DEFER_MESSAGE),
    ("form", True): (MESSAGE, DEFER_MESSAGE, DEFER_UPDATE, UPDATE),
    ("autocomplete", False): (SUGGESTIONS,),
}

ANY_DATA = limits.Group(fields={"flags": limits.Whole(low=0)})
NO_ANSWER = "The application did not respond"
TOKENS_ISSUED: list[str] = []
"""Every token that a playground of this process gave out, bot tokens too: for those who look for leaks."""


@dataclass(eq=False)
class Interaction:
    """One thing a person did, from the dispatch to the last followup."""

    id: str
    token: str
    kind: Kind
    user: Json
    channel_id: str
    payload: Json
    made_at: float
    sent_at: float = field(default_factory=time.monotonic)
    source: Kept | None = None
    parent: Interaction | None = None
    state: State = "pending"
    text: str | None = None
    callback: Json | None = None
    latency_s: float | None = None
    original: Kept | None = None
    produced: Kept | None = None
    followups: list[str] = field(default_factory=list[str])
    is_settled: bool = False
    watchers: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])

    @property
    def name(self) -> str | None:
        """The slash command this is, or came from."""
        if self.kind == "form" and self.parent is not None:
            return self.parent.name
        return self.payload["data"].get("name")

    @property
    def is_acknowledged(self) -> bool:
        return self.callback is not None

    def for_page(self) -> Json:
        return {
            "id": self.id,
            "kind": self.kind,
            "user_id": self.user["id"],
            "channel_id": self.channel_id,
            "message_id": self.source.id if self.source else None,
            "custom_id": self.payload["data"].get("custom_id"),
            "name": self.name,
            "state": self.state,
            "text": self.text,
        }


Watcher = Callable[[Interaction], None]


class Interactions:
    """All interactions of this Discord, and the rules for answering them."""

    def __init__(self, world: World, send: Callable[[Interaction], None]) -> None:
        self._world = world
        self._send = send
        self._by_id: dict[str, Interaction] = {}
        self._by_token: dict[str, Interaction] = {}
        self._waiting_for: dict[str, list[Interaction]] = {}
        self.pending: dict[str, Interaction] = {}
        self.watchers: list[Watcher] = []
        self.forms: dict[str, list[Interaction]] = {}
        world.listeners.append(self._on_change)

    def find(self, interaction_id: str) -> Interaction | None:
        return self._by_id.get(interaction_id)

    # What people do

    def begin(
        self,
        kind: Kind,
        user: Json,
        channel_id: str,
        data: Json,
        *,
        command: Json | None = None,
        source: Kept | None = None,
        parent: Interaction | None = None,
    ) -> Interaction:
        """Send an interaction to the bot. It fails when no callback has come 3 s later."""
        owners = self._owners(user, channel_id, command, source, parent)
        id_ = self._world.snowflake()
        token = token_for(id_)
        payload: Json = {
            "id": id_,
            "type": TYPE_OF[kind],
            "token": token,
            "authorizing_integration_owners": owners,
            **self._payload(user, channel_id, data, source),
        }
        made = Interaction(id_, token, kind, user, channel_id, payload, self._world.clock.now())
        made.source, made.parent = source, parent
        self._by_id[id_] = self._by_token[token] = self.pending[id_] = made
        self._world.journal.note("interaction", id=id_, type=kind, user=user["username"], payload=payload)
        self._world.clock.call_at(made.made_at + FIRST_ANSWER_S, lambda: self.fail(made))
        self._tell(made)
        if owners:  # else the bot has been taken out of the place since it wrote the message that is clicked
            self._send(made)
        return made

    def _owners(
        self, user: Json, channel_id: str, command: Json | None, source: Kept | None, parent: Interaction | None
    ) -> Json:
        """By whose leave the bot is there: as for the command, or as for what has been clicked or filled in."""
        if parent is not None:
            return parent.payload["authorizing_integration_owners"]
        channel = self._world.channels[channel_id]
        if source is not None and "interaction_metadata" in source.message and not has_bot(self._world, channel):
            given: Json = source.message["interaction_metadata"]["authorizing_integration_owners"]
            return {key: value for key, value in given.items() if key == "1"}
        return owners_of(self._world, command, channel, user["id"])

    def _payload(self, user: Json, channel_id: str, data: Json, source: Kept | None) -> Json:
        world = self._world
        channel = world.channels[channel_id]
        may, bot_may = str(world.permissions_in(user["id"], channel)), str(world.permissions_of_bot(channel))
        locale = world.locale_of(user["id"])
        payload: Json = {
            "application_id": world.bot["id"], "version": 1, "data": data, "channel_id": channel_id,
            "channel": {**channel, "permissions": may}, "app_permissions": bot_may, "locale": locale,
            "entitlements": [], "entitlement_sku_ids": [], "context": context_of(channel),
            "attachment_size_limit": ATTACHMENT_BYTES_MAX,
        }  # fmt: skip
        if "guild_id" in channel:
            guild_id = channel["guild_id"]
            payload["guild_id"] = guild_id
            payload["guild"] = {"id": guild_id, "locale": "en-US", "features": []}
            payload["guild_locale"] = "en-US"
            as_member = world.membership.of(user) if guild_id == GUILD_ID else member(user)
            payload["member"] = {**as_member, "permissions": may}
        else:
            payload["user"] = user
        if source is not None:
            payload["message"] = source.message
        return payload

    def fail(self, interaction: Interaction) -> None:
        """Tell the person that there was no answer, unless there was one. None is taken from now on."""
        if interaction.is_acknowledged or interaction.state == "failed":
            return
        interaction.text = interaction.text or NO_ANSWER
        self._set_state(interaction, "failed")

    # What the bot answers

    def answer(self, id_: str, token: str, body: Json, uploads: list[Upload]) -> Interaction:
        """The first callback. A refused one leaves the interaction pending, so the bot may try again in time."""
        interaction = self._by_id.get(id_)
        if interaction is None or interaction.token != token:
            raise Refused(10062)
        if interaction.is_acknowledged:
            raise Refused(40060)
        if interaction.state == "failed" or self._is_older_than(interaction, FIRST_ANSWER_S):
            raise Refused(10062)
        self._require_channel(interaction)
        try:
            self._check_answer(interaction, body, uploads)
        except Refused as refused:
            interaction.text = f"The bot's answer was refused: {refused.reason()}"
            self._tell(interaction)
            raise
        interaction.callback, interaction.text = body, None
        interaction.latency_s = time.monotonic() - interaction.sent_at
        self._world.journal.note("callback", id=id_, type=body["type"], body=body)
        self._apply_answer(interaction, body["type"], body.get("data") or {}, uploads)
        if interaction.kind == "form" and interaction.parent is not None:
            self.close_form(interaction.parent)
        deferred = body["type"] in (DEFER_MESSAGE, DEFER_UPDATE)
        self._set_state(interaction, "deferred" if deferred else "answered")
        return interaction

    def _check_answer(self, interaction: Interaction, body: Json, uploads: list[Upload]) -> None:
        allowed = ALLOWED[interaction.kind, interaction.source is not None]
        report = limits.Report()
        limits.check_fields(body, {"type": limits.OneOf(choices=allowed, required=True), "data": ANY_DATA}, (), report)
        report.raise_if_any()
        data: Json = body.get("data") or {}
        filenames = [upload.filename for upload in uploads]
        match body["type"]:
            case 4:
                limits.check_message(data, at=("data",), filenames=filenames)
            case 7 if interaction.source is not None:
                limits.check_message(data, at=("data",), filenames=filenames, now=interaction.source.message)
            case 5 if int(data.get("flags") or 0) & ~EPHEMERAL:
                report.add(("data", "flags"), "deferred flags")
                report.raise_if_any()
            case 8:
                limits.check_suggestions(data, focused_type(interaction.payload["data"].get("options") or []))
            case 9:
                limits.check_form(data)
            case _:
                pass

    def _apply_answer(self, interaction: Interaction, type_: int, data: Json, uploads: list[Upload]) -> None:
        if type_ == MESSAGE:
            interaction.original = self._add_message(interaction, data, uploads)
        elif type_ == DEFER_MESSAGE:
            ephemeral = int(data.get("flags") or 0) & EPHEMERAL
            thinking = {"flags": ephemeral | LOADING}
            interaction.original = self._add_message(interaction, {"flags": ephemeral}, [], thinking)
        elif type_ in (DEFER_UPDATE, UPDATE):
            interaction.original = interaction.source
        elif type_ == FORM:
            self.forms.setdefault(interaction.user["id"], []).append(interaction)
        if type_ == UPDATE and interaction.source is not None:
            self._world.edit_message(interaction.source, data, uploads)
        if interaction.original is not None:
            interaction.produced = interaction.original
            if type_ in (DEFER_MESSAGE, DEFER_UPDATE):
                self._waiting_for.setdefault(interaction.original.id, []).append(interaction)

    # After the first callback

    def by_token(self, application_id: str, token: str) -> Interaction:
        """The acknowledged interaction whose token still works."""
        interaction = self._by_token.get(token)
        if interaction is None or application_id != self._world.bot["id"]:
            raise Refused(10015)
        if self._is_older_than(interaction, TOKEN_LIVES_S):
            raise Refused(50027)
        if not interaction.is_acknowledged:
            raise Refused(10015)
        return interaction

    def message_of(self, interaction: Interaction, wanted: str) -> Kept:
        """@original or one of the interaction's own messages."""
        own = [*interaction.followups, *([interaction.original.id] if interaction.original else [])]
        id_ = (interaction.original.id if interaction.original else "") if wanted == "@original" else wanted
        kept = self._world.find(id_)
        if kept is None or id_ not in own:
            raise Refused(10008)
        return kept

    def follow_up(self, interaction: Interaction, body: Json, uploads: list[Upload]) -> Kept:
        """A further message; the first one after a deferred answer takes the place of its thinking message."""
        self._require_channel(interaction)
        limits.check_message(body, filenames=[upload.filename for upload in uploads])
        original = interaction.original
        if original is not None and original.is_loading and self._world.find(original.id) is original:
            interaction.produced = original
            return self._world.edit_message(original, body, uploads)
        is_elsewhere = not has_bot(self._world, self._world.channels[interaction.channel_id])
        if is_elsewhere and len(interaction.followups) >= FOLLOWUPS_MAX_ELSEWHERE:
            raise Refused(40094)
        kept = self._add_message(interaction, body, uploads)
        interaction.followups.append(kept.id)
        interaction.produced = kept
        self._settle(interaction)
        return kept

    # The rest

    def _require_channel(self, interaction: Interaction) -> None:
        if interaction.channel_id not in self._world.channels:
            raise Refused(10003)  # it has been deleted since

    def open_forms(self, user_id: str) -> list[Interaction]:
        """The interactions whose form that person has open, oldest first."""
        return self.forms.get(user_id, [])

    def close_form(self, interaction: Interaction) -> None:
        """The form has been answered or dismissed."""
        opened = self.forms.get(interaction.user["id"], [])
        if interaction in opened:
            opened.remove(interaction)

    def _add_message(
        self, interaction: Interaction, body: Json, uploads: list[Upload], extra: Json | None = None
    ) -> Kept:
        is_ephemeral = int(body.get("flags") or 0) & EPHEMERAL
        used = {"user_id": interaction.user["id"], "name": interaction.name} if interaction.name else None
        return self._world.add_message(
            interaction.channel_id,
            self._world.bot,
            body,
            uploads=uploads,
            visible_to=interaction.user["id"] if is_ephemeral else None,
            used=used,
            extra={
                "webhook_id": self._world.bot["id"],
                "application_id": self._world.bot["id"],
                "interaction_metadata": metadata_of(interaction),
                "type": message_type_of(interaction),
                **(extra or {}),
            },
        )

    def _is_older_than(self, interaction: Interaction, seconds: float) -> bool:
        return self._world.clock.now() - interaction.made_at > seconds

    def _on_change(self, what: What, subject: Any) -> None:
        if what in ("edit", "gone"):
            self._settle_all(subject.id)
        elif what == "all gone":
            for kept in subject:
                self._settle_all(kept.id)

    def _settle_all(self, message_id: str) -> None:
        for interaction in self._waiting_for.pop(message_id, ()):
            self._settle(interaction)

    def _settle(self, interaction: Interaction) -> None:
        if not interaction.is_settled:
            interaction.is_settled = True
            self._tell(interaction)

    def _set_state(self, interaction: Interaction, state: State) -> None:
        interaction.state = state
        interaction.is_settled = state != "deferred"
        self.pending.pop(interaction.id, None)
        self._tell(interaction)

    def _tell(self, interaction: Interaction) -> None:
        for told in interaction.watchers:
            told()
        if interaction.kind == "autocomplete":
            return  # nobody sees it but the person who is typing
        for watcher in self.watchers:
            watcher(interaction)


def token_for(id_: str) -> str:
    """A new token in the form of Discord's: "interaction:<id>:<secret>" in base64, letters and digits alone."""
    secret = secrets.token_hex(32)
    token = base64.b64encode(f"interaction:{id_}:{secret}".encode()).decode().rstrip("=")
    TOKENS_ISSUED.append(token)
    return token


def message_type_of(interaction: Interaction) -> int:
    """20 for the answer to a slash command, 23 to a context menu, 0 for any other message."""
    if interaction.kind != "command":
        return 0
    return 20 if interaction.payload["data"]["type"] == 1 else 23


def focused_type(options: list[Json]) -> int:
    """The type of the option that a person is typing into; of a string when there is none."""
    for option in options:
        if option.get("focused"):
            return option["type"]
        if "options" in option:
            return focused_type(option["options"])
    return 3


def metadata_of(interaction: Interaction) -> Json:
    """What a message says about the interaction it answers."""
    made: Json = {
        "id": interaction.id,
        "type": TYPE_OF[interaction.kind],
        "user": interaction.user,
        "authorizing_integration_owners": interaction.payload["authorizing_integration_owners"],
    }
    if interaction.kind == "component" and interaction.source is not None:
        made["interacted_message_id"] = interaction.source.id
    if interaction.kind == "form" and interaction.parent is not None:
        made["triggering_interaction_metadata"] = metadata_of(interaction.parent)
    return made


def callback_response(interaction: Interaction) -> Json:
    """The answer to a callback that asked for one."""
    type_ = interaction.callback["type"] if interaction.callback else 0
    about: Json = {"id": interaction.id, "type": TYPE_OF[interaction.kind]}
    answer: Json = {"interaction": about}
    if interaction.original is not None:
        flags = interaction.original.message["flags"]
        about["response_message_id"] = interaction.original.id
        about["response_message_loading"] = type_ == DEFER_MESSAGE
        about["response_message_ephemeral"] = bool(flags & EPHEMERAL)
    if interaction.original is not None and type_ in (MESSAGE, UPDATE):
        answer["resource"] = {"type": type_, "message": interaction.original.message}
    return answer
