"""People who use the bot: their actions, and what became of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Iterable
from typing import Any, cast

from . import shapes
from .forms import filled
from .interactions import Interaction, Interactions, State
from .options import command_data, find_command, is_registered
from .shapes import BUTTON, SELECTS, STRING_SELECT, Json
from .world import Kept, World

COMMAND_WAIT_S = 5.0
SETTLE_WAIT_S = 15.0


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

    async def command(self, name: str, /, *, channel: str | None = None, target: Any = None, **options: Any) -> Used:
        """Use a slash command ("poll", or "poll create" for a subcommand) or, with a target, a context menu.

        Waits a few seconds for the bot to register it; raises LookupError when it does not. Options that are called
        channel or target go through `start_command`.
        """
        await self._command_known(name)
        return await self.start_command(name, options, channel=channel, target=target)

    async def _command_known(self, name: str) -> None:
        give_up_at = time.monotonic() + COMMAND_WAIT_S
        while not is_registered(self._world, name) and time.monotonic() < give_up_at:  # noqa: ASYNC110
            await asyncio.sleep(0.02)

    def start_command(self, name: str, options: Json, *, channel: str | None = None, target: Any = None) -> Used:
        """The same for a command that is registered already; await the result for the outcome."""
        command, path = find_command(self._world, name)
        data = command_data(self._world, command, path, options, target)
        channel_id = self._world.channel_of(channel)["id"]
        return Used(self._interactions.begin("command", self.user, channel_id, data), self._world, wait=True)

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
        chosen = [str(value.id) if isinstance(value, Person) else str(value) for value in values]
        check_chosen(part, chosen)
        data: Json = {"values": chosen}
        if part["type"] != STRING_SELECT:
            data["resolved"] = self._world.resolved(chosen)
        return self._component(kept, part, data, wait)

    def submit(self, values: Json, *, interaction_id: str | None = None, wait: bool = True) -> Used:
        """Fill in and send the form opened last. Keys are custom ids or labels; what is left out keeps its preset."""
        parent = self._open_form(interaction_id)
        assert parent.callback is not None
        data = filled(parent.callback["data"], values, self._world)
        made = self._interactions.begin("form", self.user, parent.channel_id, data, source=parent.source, parent=parent)
        return Used(made, self._world, wait)

    def _open_form(self, interaction_id: str | None) -> Interaction:
        opened = self._interactions.open_forms(self.id)
        for interaction in reversed(opened):
            if interaction_id in (None, interaction.id):
                return interaction
        raise LookupError(f"{self.user['username']} has no such form open.")

    async def say(self, content: str, channel: str | None = None) -> Json:
        """Write a message into the channel."""
        if not content or len(content) > 2000:
            raise ValueError("A message has 1 to 2000 characters.")
        body = {"content": content}
        return self._world.add_message(self._world.channel_of(channel)["id"], self.user, body).message

    def dismiss(self, message: Json | str) -> None:
        """Make an ephemeral message go away for this person."""
        kept = self._named(message)
        if kept.visible_to != self.id:
            raise ValueError("Only a message that only you can see can be dismissed.")
        self._world.dismiss(kept)

    def _component(self, kept: Kept, part: Json, more: Json, wait: bool) -> Used:
        data = {"component_type": part["type"], "custom_id": part["custom_id"], "id": part["id"], **more}
        channel_id = kept.message["channel_id"]
        return Used(self._interactions.begin("component", self.user, channel_id, data, source=kept), self._world, wait)

    def _named(self, message: Json | str) -> Kept:
        id_ = message if isinstance(message, str) else str(message["id"])
        kept = self._world.find(id_)
        if kept is None or not kept.is_visible_to(self.id):
            raise LookupError(f"{self.user['username']} sees no message {id_}.")
        return kept

    def _find(self, fits: Callable[[Json], bool], message: Json | str | None, what: str) -> tuple[Kept, Json]:
        """The first enabled component that fits, in the message or else in the newest message that has one."""
        candidates = self._world.newest_first() if message is None else iter([self._named(message)])
        for kept in candidates:
            if not kept.message["components"] or not kept.is_visible_to(self.id):
                continue
            for part in shapes.walk(kept.message["components"]):
                if fits(part) and "custom_id" in part and not part.get("disabled"):
                    return kept, part
        raise LookupError(f"{self.user['username']} sees no enabled {what}. {self._seen()}")

    def _seen(self) -> str:
        newest = next((kept for kept in self._world.newest_first() if kept.is_visible_to(self.id)), None)
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
