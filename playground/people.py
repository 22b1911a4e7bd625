"""People who use the bot: their actions, and what became of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Iterable
from typing import Any, cast

from . import permissions, shapes
from .forms import as_list, entities, filled
from .interactions import Interaction, Interactions, Kind, State
from .options import Filling, autocomplete_data, command_data, find_command, is_registered, type_for
from .shapes import BUTTON, SELECTS, Json
from .uploads import as_uploads
from .usable import check_usable
from .world import GUILD_ID, MESSAGES_IN, Kept, World

COMMAND_WAIT_S = 5.0
SETTLE_WAIT_S = 15.0
CONTENT_MAX = 2000


class Used:
    """What a person did and what the bot answered. `await` it to wait for the outcome."""

    def __init__(self, interaction: Interaction, world: World, wait: bool) -> None:
        self._made = interaction
        self._world = world
        self._wait = wait
        self._changed = asyncio.Event()
        interaction.watchers.append(self._changed.set)

    def __await__(self) -> Generator[Any, None, Used]:
        if self._wait:
            yield from self.answered().__await__()
        return self

    def __repr__(self) -> str:
        return f"<{self._made.kind} by {self._made.user['username']}: {self.state} {self.text or ''}>"

    @property
    def state(self) -> State:
        """pending, answered, deferred, or failed: no callback within 3 s of the clock that Discord took."""
        return self._made.state

    @property
    def text(self) -> str | None:
        """What went wrong, in a sentence."""
        return self._made.text

    @property
    def interaction(self) -> Json:
        """The interaction as the bot got it."""
        return self._made.payload

    @property
    def callback(self) -> Json | None:
        """The callback as the bot sent it."""
        return self._made.callback

    @property
    def latency_s(self) -> float | None:
        """Real seconds from the dispatch to the callback."""
        return self._made.latency_s

    @property
    def message(self) -> Json | None:
        """The message it produced or updated, as it is now; None when there is none or it was deleted."""
        kept = self._made.produced and self._world.find(self._made.produced.id)
        return kept.message if kept else None

    @property
    def form(self) -> Json | None:
        """The form (modal) the bot answered with."""
        callback = self._made.callback
        return callback["data"] if callback and callback["type"] == 9 else None

    async def answered(self) -> Used:
        """Wait until it is no longer pending: at most 3 s of the clock."""
        await self._until(lambda: self._made.state != "pending")
        return self

    async def settled(self, timeout: float = SETTLE_WAIT_S) -> Used:
        """Wait until a deferred answer has been followed by an edit of its message or a further message."""
        async with asyncio.timeout(timeout):
            await self._until(lambda: self._made.state != "pending" and self._made.is_settled)
        return self

    async def _until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            self._changed.clear()
            await self._changed.wait()


class Person:
    """Someone in the playground. Everything they do is what they could do with a mouse and a keyboard."""

    def __init__(self, user_id: str, world: World, interactions: Interactions) -> None:
        self.id = user_id
        self._world = world
        self._interactions = interactions

    @property
    def user(self) -> Json:
        return self._world.users[self.id]

    @property
    def username(self) -> str:
        return self.user["username"]

    @property
    def locale(self) -> str:
        """The language of their Discord: interactions carry it, and commands may be called by their name in it."""
        return self._world.locale_of(self.id)

    @locale.setter
    def locale(self, locale: str) -> None:
        if locale not in shapes.LOCALES:
            raise ValueError(f"Discord has no language {locale!r}.")
        self._world.locales[self.id] = locale
        self._world.tell("users")

    # Commands

    async def command(self, name: str, /, *, channel: str | None = None, target: Any = None, **options: Any) -> Used:
        """Use a slash command ("poll", or "poll create" for a subcommand) or, with a target, a context menu.

            await alice.command("poll", question="Tea?", channel="dm")
            await alice.command("upload", file=("notes.txt", b"..."))
            await alice.command("Wave", target=bob)

        Waits a few seconds for the bot to register it; raises LookupError when it does not, or when Discord would not
        let this person use it there. Options that are called channel or target go through `start_command`.
        """
        await self._command_known(name)
        return await self.start_command(name, options, channel=channel, target=target)

    async def _command_known(self, name: str) -> None:
        give_up_at = time.monotonic() + COMMAND_WAIT_S
        while not is_registered(self._world, name, self.locale) and time.monotonic() < give_up_at:  # noqa: ASYNC110
            await asyncio.sleep(0.02)

    def start_command(self, name: str, options: Json, *, channel: str | None = None, target: Any = None) -> Used:
        """The same for a command that is registered already; await the result for the outcome."""
        command, path, filling = self._usable(name, channel, target)
        data = command_data(command, path, options, target, filling)
        return Used(self._begin("command", filling.channel, data, command=command), self._world, wait=True)

    async def autocomplete(
        self, name: str, option: str, typed: str = "", /, *, channel: str | None = None, **others: Any
    ) -> list[Json]:
        """The choices the bot offers while this person types into an option; `others` are those filled in already.

            assert await alice.autocomplete("fruit", "name", "app") == [{"name": "Apple", "value": "apple"}]

        Raises RuntimeError when the bot does not answer in time, or not with choices.
        """
        await self._command_known(name)
        return await self.start_autocomplete(name, option, typed, others, channel=channel)

    async def start_autocomplete(
        self, name: str, option: str, typed: str, others: Json, *, channel: str | None = None
    ) -> list[Json]:
        """The same for a command that is registered already, and for any names of other options."""
        command, path, filling = self._usable(name, channel)
        data = autocomplete_data(command, path, others, filling, typing=option, text=typed)
        used = Used(self._begin("autocomplete", filling.channel, data, command=command), self._world, wait=True)
        await used
        if used.callback is None:
            raise RuntimeError(f"There are no choices for {option!r} of /{name}: {used.text}.")
        return used.callback["data"].get("choices") or []

    def _usable(self, name: str, channel: str | None, target: Any = None) -> tuple[Json, list[str], Filling]:
        world, place = self._world, self._world.channel_of(channel, self.id)
        wanted = type_for(world, target)
        command, path = find_command(world, name, self.locale, place.get("guild_id"), wanted)
        check_usable(world, command, place, self.id)
        return command, path, Filling(world, place, self.id)

    def _begin(self, kind: Kind, channel: Json, data: Json, **more: Any) -> Interaction:
        return self._interactions.begin(kind, self.user, channel["id"], data, **more)

    # Messages and forms

    def click(
        self,
        label: str | None = None,
        *,
        custom_id: str | None = None,
        message: Json | str | None = None,
        wait: bool = True,
    ) -> Used:
        """Click the newest enabled button with that label or custom id; await the result for the outcome.

        It is clicked when this returns. With `wait=False` awaiting does not wait for the bot either.
        """

        def fits(part: Json) -> bool:
            return part["type"] == BUTTON and (
                part.get("custom_id") == custom_id if custom_id is not None else part.get("label") == label
            )

        kept, part = self._find(fits, message, f"button {label or custom_id!r}")
        return self._component(kept, part, {}, wait)

    def select(
        self,
        placeholder: str | None = None,
        values: Iterable[Any] = (),
        *,
        custom_id: str | None = None,
        message: Json | str | None = None,
        wait: bool = True,
    ) -> Used:
        """Choose values in the newest enabled select with that placeholder or custom id."""

        def fits(part: Json) -> bool:
            return part["type"] in SELECTS and (
                part.get("custom_id") == custom_id if custom_id is not None else part.get("placeholder") == placeholder
            )

        kept, part = self._find(fits, message, f"select {placeholder or custom_id!r}")
        filling = self._filling(kept.message["channel_id"])
        chosen = entities(part, part.get("placeholder") or part["custom_id"], as_list(values), filling)
        check_chosen(part, chosen)
        data: Json = {"values": chosen}
        return self._component(kept, part, data | ({"resolved": filling.resolved} if filling.resolved else {}), wait)

    def submit(self, values: Json, *, interaction_id: str | None = None, wait: bool = True) -> Used:
        """Fill in and send the form opened last. Keys are custom ids or labels; what is left out keeps its preset.

        await alice.submit({"Title": "New", "Who": [bob], "Files": [("a.txt", b"...")], "Sure": True})
        """
        parent = self._open_form(interaction_id)
        assert parent.callback is not None
        filling = self._filling(parent.channel_id)
        data = filled(parent.callback["data"], values, filling)
        made = self._begin("form", filling.channel, data, source=parent.source, parent=parent)
        return Used(made, self._world, wait)

    def _filling(self, channel_id: str) -> Filling:
        return Filling(self._world, self._world.channels[channel_id], self.id)

    def _open_form(self, interaction_id: str | None) -> Interaction:
        opened = self._interactions.open_forms(self.id)
        for interaction in reversed(opened):
            if interaction_id in (None, interaction.id) and interaction.channel_id in self._world.channels:
                return interaction
        raise LookupError(f"{self.username} has no such form open.")

    async def say(
        self, content: str = "", channel: str | None = None, *, files: Any = (), reply_to: Json | str | None = None
    ) -> Json:
        """Write a message into the channel: a text, files as (name, bytes), or both."""
        place = self._world.channel_of(channel, self.id)
        self._require("SEND_MESSAGES", place)
        uploads = as_uploads(files, self._world.uploads)
        if len(content) > CONTENT_MAX or not (content or uploads):
            raise ValueError(f"A message has 1 to {CONTENT_MAX} characters.")
        extra = self._world.reply_to(self._named(reply_to)) if reply_to is not None else {}
        body = {"content": content}
        return self._world.add_message(place["id"], self.user, body, uploads=uploads, extra=extra).message

    async def edit(self, message: Json | str, content: str) -> Json:
        """Change the text of one's own message."""
        kept = self._own(message, "edit")
        if not content or len(content) > CONTENT_MAX:
            raise ValueError(f"A message has 1 to {CONTENT_MAX} characters.")
        return self._world.edit_message(kept, {"content": content}).message

    async def delete(self, message: Json | str) -> None:
        """Delete one's own message, or, with the permission, anybody's."""
        kept = self._named(message)
        if kept.message["author"]["id"] != self.id:
            self._require("MANAGE_MESSAGES", self._world.channels[kept.message["channel_id"]])
        if kept.visible_to is not None:
            raise ValueError("A message that only you can see can be dismissed, not deleted.")
        self._world.delete_message(kept)

    def _own(self, message: Json | str, what: str) -> Kept:
        kept = self._named(message)
        if kept.message["author"]["id"] != self.id:
            raise ValueError(f"{self.username} cannot {what} what somebody else wrote.")
        return kept

    async def react(self, message: Json | str, emoji: str) -> None:
        """React to a message with an emoji ("👍")."""
        kept = self._named(message)
        self._require("ADD_REACTIONS", self._world.channels[kept.message["channel_id"]])
        self._world.react(kept, self.id, emoji)

    async def unreact(self, message: Json | str, emoji: str) -> None:
        """Take one's reaction away."""
        self._world.unreact(self._named(message), self.id, emoji)

    async def typing(self, channel: str | None = None) -> None:
        """Begin to write: the others see it, and a bot may ask to be told."""
        self._world.tell("typing", (self._world.channel_of(channel, self.id), self.user))

    def dismiss(self, message: Json | str) -> None:
        """Make an ephemeral message go away for this person."""
        kept = self._named(message)
        if kept.visible_to != self.id:
            raise ValueError("Only a message that only you can see can be dismissed.")
        self._world.dismiss(kept)

    # The guild

    @property
    def member(self) -> Json | None:
        """The member of the guild; None for who has left it."""
        return self._world.membership.find(self.id)

    def permissions(self, channel: str | None = None) -> int:
        """What they may do in the channel, as bits."""
        return self._world.permissions_in(self.id, self._world.channel_of(channel, self.id))

    def add_role(self, role: str) -> None:
        """Give them a role of the guild, by its name or id."""
        self._world.membership.give(self._member_id(), self._role(role))

    def remove_role(self, role: str) -> None:
        self._world.membership.take(self._member_id(), self._role(role))

    def grant(self, *names: str) -> None:
        """Let them do exactly this besides what everyone may ("manage_messages"), by a role of their own."""
        name = f"{self.username}'s own"
        old = self._world.membership.role_named(name)
        id_ = old["id"] if old else self._world.snowflake()
        self._world.membership.put_role(id_, name, permissions.bits_of(names))
        self._world.membership.give(self._member_id(), id_)

    def _member_id(self) -> str:
        if self.member is None:
            raise LookupError(f"{self.username} is not in the guild.")
        return self.id

    def _role(self, wanted: str) -> str:
        role = self._world.membership.role_named(wanted)
        if role is None:
            names = ", ".join(each["name"] for each in self._world.membership.roles.values())
            raise LookupError(f"There is no role {wanted!r}. There are: {names}.")
        return role["id"]

    def _require(self, permission: str, channel: Json) -> None:
        """Raise LookupError unless they see the channel and may do that in it."""
        bits = self._world.permissions_in(self.id, channel)
        if not bits & permissions.VIEW_CHANNEL:
            raise LookupError(f"{self.username} sees no such channel.")
        if channel.get("guild_id") == GUILD_ID and channel["type"] not in MESSAGES_IN:
            raise LookupError(f"There are no messages in #{channel['name']}.")
        if not bits & (permissions.BITS[permission] | permissions.ADMINISTRATOR):
            raise LookupError(
                f"{self.username} needs the permission {permissions.words(permissions.BITS[permission])}."
            )

    # Finding what to click

    def _component(self, kept: Kept, part: Json, more: Json, wait: bool) -> Used:
        data = {"component_type": part["type"], "custom_id": part["custom_id"], "id": part["id"], **more}
        channel = self._world.channels[kept.message["channel_id"]]
        return Used(self._begin("component", channel, data, source=kept), self._world, wait)

    def _named(self, message: Json | str) -> Kept:
        id_ = message if isinstance(message, str) else str(message["id"])
        kept = self._world.find(id_)
        if kept is None or not self._sees(kept):
            raise LookupError(f"{self.username} sees no message {id_}.")
        return kept

    def _sees(self, kept: Kept) -> bool:
        return kept.is_visible_to(self.id) and self._world.sees(
            self.id, self._world.channels[kept.message["channel_id"]]
        )

    def _find(self, fits: Callable[[Json], bool], message: Json | str | None, what: str) -> tuple[Kept, Json]:
        """The first enabled component that fits, in the message or else in the newest message that has one."""
        candidates = self._world.newest_first() if message is None else iter([self._named(message)])
        for kept in candidates:
            if not kept.message["components"] or not self._sees(kept):
                continue
            for part in shapes.walk(kept.message["components"]):
                if fits(part) and "custom_id" in part and not part.get("disabled"):
                    return kept, part
        raise LookupError(f"{self.username} sees no enabled {what}. {self._seen()}")

    def _seen(self) -> str:
        newest = next((kept for kept in self._world.newest_first() if self._sees(kept)), None)
        return f"The newest message reads:\n{shapes.text_of(newest.message)}" if newest else "There is no message."


def check_chosen(part: Json, chosen: list[str]) -> None:
    """Raise ValueError when a person could not have chosen these values."""
    least, most = part.get("min_values", 1), part.get("max_values", 1)
    if not least <= len(chosen) <= most:
        raise ValueError(f"Choose {least} to {most} values, not {len(chosen)}.")
    options = [option["value"] for option in cast(list[Json], part.get("options") or [])]
    for value in chosen:
        if options and value not in options:
            raise ValueError(f"There is no option {value!r}. There are: {', '.join(options)}.")
