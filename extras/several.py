"""The same bot as several processes, on a store that they share: STORE=redis://… or STORE=postgresql://…

    RUN=gateway python bot.py     one that listens to Discord's gateway
    RUN=web python bot.py         one for hooks or, in MODE=rest, interactions; several may have the same WEB_PORT
    SHARDS=auto python bot.py     one of several that divide the shards among themselves; see extras/shards.py

All of them have the same settings but for these. What changes against one process:

- A record is its handler's alone over all processes, by a lease. Who waits longer than WAIT_S for it gets the usual
  text, and the event is on the failed list; whose lease is lost meanwhile (its process stood still, or its handler took
  longer than a minute) writes nothing, and runs again.
- A message is changed by one process at a time, which shows the newest version, whoever made it. What a process that
  died has saved and not shown, another one shows.
- Accepted events of a process that is gone are run by another one.
- A view that is kept InMessage promises less: of two clicks at the same moment in two processes one may be lost.

A lost connection to the store ends a process as a full disk ends a bot alone: let it be started again (exit code 1).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import AsyncGenerator, Sequence
from typing import Any, cast

from aiohttp import web

import bot
from bot import Answer, ComponentContext, EventKey, RecordId, Reply, Saved, StateConflictError, StoreError
from extras import Lease, SharedStore
from extras.shards import SharedGateway

log = logging.getLogger("everclick")

WAIT_S = 30.0  # for a record that other processes have: three of the 10 s in which one gets its turn as a rule
WAIT_HOLDING_S = 10.0  # the same when something is held meanwhile: two may be waiting for each other
HAND_ON_S = 0.5
CLAIM_EVERY_S = 1.0
LOOK_EVERY_S = 3.0  # for messages that are behind; what is so at two looks in a row is left by somebody
POLL_ANSWER_S = 0.1
OLDER_WITHIN_S = 5.0  # a click on an older state of a message, carried in it, arrives within this


class HeldElsewhereError(RuntimeError):
    """Another process has the record, and does not let it go."""


class Several:
    """What a bot of several processes is made of. Raises ModuleNotFoundError when its driver is not installed."""

    def __init__(self, config: bot.Config) -> None:
        self._config, self._store_type = config, store_type(config.store)

    def app(self) -> SharedApp:
        """Return the app. Raises OperatorError when the settings do not go together."""
        check(self._config)
        return SharedApp(self._config)

    def store(self, bot_id: bot.BotId) -> SharedStore:
        """Return the store, not yet open."""
        return self._store_type(self._config.store, bot_id, max_failed=self._config.max_failed)


def store_type(url: str) -> Any:
    """Return the class of the store that such a URL names."""
    if url.startswith("redis"):
        from extras.redis_store import RedisStore  # noqa: PLC0415  # one of the two drivers is enough

        return RedisStore
    from extras.postgres_store import PostgresStore  # noqa: PLC0415

    return PostgresStore


def check(config: bot.Config) -> None:
    """Raise OperatorError when what a process is to do does not go together."""
    parts, numbers = config.run.split(","), [int(each) for each in config.shards.split(",") if each.isdecimal()]
    highest = max(numbers, default=0)
    bot.insist(
        "",
        (not config.run or config.mode != "rest" or "web" in parts, f"RUN={config.run} does nothing in MODE=rest."),
        ("web" not in parts or config.has_web, f"RUN={config.run} needs a place to listen. Write WEB_PORT=8080, say."),
        (highest < config.shard_count, f"SHARDS={config.shards} needs SHARD_COUNT={highest + 1}, or more."),
    )


# Records


class Hold:
    """A lease on a record. `is_used`: a handler has begun under it."""

    def __init__(self) -> None:
        self.owner, self.is_used, self.hand_on_until = cast("object", None), False, 0.0
        self.stack, self.lease = contextlib.AsyncExitStack(), cast("Lease | None", None)

    @property
    def may_be_handed_on(self) -> bool:
        """Whether the next one in this process may have it, and what was read under it: else it is others' turn."""
        return self.lease is not None and asyncio.get_running_loop().time() < self.hand_on_until


class SharedLanes(bot.Lanes):
    """The queues in front of records: in this process as ever, and then by a lease before those of the others.

    Who waits here gets the lease of who was before, for HAND_ON_S; then it is the others' turn.
    """

    def __init__(self, app: SharedApp) -> None:
        super().__init__(app.slots)
        self._app, self._holds, self._handed_on = app, dict[RecordId, Hold](), dict[RecordId, Hold]()
        self.wait_s = WAIT_S

    @contextlib.asynccontextmanager
    async def enter(self, id: RecordId) -> AsyncGenerator[bot.Lane]:
        """Have the record to oneself. Raises RuntimeError when that would never be, or takes too long."""
        try:
            async with super().enter(id) as lane, self._held(id, lane):
                yield lane
        finally:
            if id not in self._lanes and (left := self._handed_on.pop(id, None)):
                await left.stack.aclose()  # who waited for it was cancelled

    @contextlib.asynccontextmanager
    async def _held(self, id: RecordId, lane: bot.Lane) -> AsyncGenerator[None]:
        hold = self._holds[id] = self._handed_on.pop(id, None) or Hold()
        hold.owner, hold.is_used = self._me, False
        try:
            if not hold.may_be_handed_on:
                lane.saved = None  # others may have changed it since
                await hold.stack.aclose()
                await self._take(id, hold)
            yield
        except BaseException:
            hold.hand_on_until = 0.0  # it may be that the lease is lost
            raise
        finally:
            del self._holds[id]
            if lane.users > 1 and hold.may_be_handed_on:
                self._handed_on[id] = hold
            else:
                await hold.stack.aclose()

    def _is_in_message(self, id: RecordId) -> bool:
        cls = self._app.views.classes.get(id.name)
        return cls is not None and isinstance(cls.registration.state, bot.InMessage)

    @property
    def _me(self) -> object:
        return self.holder.get() or asyncio.current_task()

    async def _take(self, id: RecordId, hold: Hold) -> None:
        hold.lease = None
        if self._is_in_message(id):
            return  # no store knows of it
        is_holding = any(each.owner is hold.owner and each.lease for each in self._holds.values())
        wait_s, name = min(self.wait_s, WAIT_HOLDING_S) if is_holding else self.wait_s, f"record:{id.name}:{id.key}"
        if not id.name:  # a rhythm: if it runs elsewhere, this run is left out
            wait_s = CLAIM_EVERY_S
        try:
            async with self._slots.lent():
                lease = self._app.shared.lease(name, wait_s=wait_s, for_good=not id.name)
                hold.lease = await hold.stack.enter_async_context(lease)
            hold.hand_on_until = asyncio.get_running_loop().time() + HAND_ON_S
        except TimeoutError:
            what = f"{id.name} {id.key}".strip()
            raise HeldElsewhereError(f"{what} is held by another process for more than {wait_s:g} s") from None

    async def take_anew(self, id: RecordId) -> None:
        """Give the record up and have it again, when a handler has begun under this lease: it may be lost."""
        hold = self._holds[id]
        if hold.is_used:
            await hold.stack.aclose()
            await self._take(id, hold)
        hold.is_used = True

    @property
    def leases(self) -> list[Lease]:
        """What the event that this task belongs to holds."""
        return [each.lease for each in self._holds.values() if each.owner is self._me and each.lease]


class SharedDispatch(bot.Dispatch):
    """Runs accepted events: this process's own, and those of processes that are gone."""

    def __init__(self, app: SharedApp) -> None:
        super().__init__(app)
        self._shared_app = app
        self._states = dict[RecordId, tuple[set[bytes], float]]()  # those that messages had lately, and since when

    async def recover(self) -> None:
        await self._shared_app.shared.claim_orphans()
        await super().recover()

    async def claim(self) -> None:
        """Take over the events of processes that are gone, and run them."""
        if left := await self._shared_app.shared.claim_orphans():
            log.info("%d events of a process that is gone are run here", len(left))
            await self.run_again(left)
            await self.take_up()

    async def _load(self, ctx: bot.EventContext, lane: bot.Lane, id: RecordId) -> Saved | None:
        await self._shared_app.shared_lanes.take_anew(id)
        if id.key.startswith(bot.IN_MESSAGE) and (carried := self._carried(ctx, id)):
            states, at = self._states.get(id, (set[bytes](), 0.0))
            if carried.data not in states or time.monotonic() > at + OLDER_WITHIN_S:
                # Not an older state of those known here, so another process made it.
                self._remembered.pop(id, None)
                self._states[id] = {carried.data}, time.monotonic()
        return await super()._load(ctx, lane, id)

    def remember(self, saved: Saved) -> None:
        super().remember(saved)
        states, _ = self._states.get(saved.id, (set[bytes](), 0.0))
        self._states[saved.id] = {*states, saved.data}, time.monotonic()

    def forget_old(self) -> None:
        super().forget_old()
        now = time.monotonic()
        self._states = {id: kept for id, kept in self._states.items() if now < kept[1] + OLDER_WITHIN_S}

    async def _repeat(self, ctx: bot.EventContext, repeat: bot.Repeat) -> None:
        try:
            await super()._repeat(ctx, repeat)
        except HeldElsewhereError:
            await ctx.save()

    async def _expire(self, ctx: bot.EventContext, saved: Saved) -> None:
        if saved.shown < saved.version:
            await asyncio.sleep(CLAIM_EVERY_S)  # who has closed it in another process is about to show that
        await super()._expire(ctx, saved)

    async def _fail(self, ctx: bot.EventContext | None, event: bot.Event, error: BaseException) -> None:
        if isinstance(error, StateConflictError) and await self._is_anothers(event):
            log.warning("%s is another process's by now: this one stood still for too long", event.key)
        else:
            await super()._fail(ctx, event, error)

    async def _is_anothers(self, event: bot.Event) -> bool:
        listener = self._app.listeners.get(event.key.rpartition(":")[2])
        was_accepted = not listener or listener.durable
        return was_accepted and event.key not in {each.key for each in await self._app.store.pending()}


# Messages


def lease_of_message(id: RecordId) -> str:
    """Return the name of the lease under which a record's message is changed."""
    return f"show:{id.name}:{id.key}"


class SharedDisplay(bot.Display):
    """Brings a message to its record's newest version, whichever process made it, while no other one changes it."""

    def __init__(self, app: SharedApp, saved: Saved) -> None:
        super().__init__(app, saved)
        self._shared_app, self._expires_at = app, cast("float | None", None)
        self.clicks = set[ComponentContext]()

    def show(self, saved: Saved, body: bot.Body, click: ComponentContext | None) -> None:
        if saved.version > self._version:
            self._expires_at = saved.expires_at
        self.clicks |= {click} if click else set()
        super().show(saved, body, click)

    async def _edit(self, carrier: ComponentContext | None, clicks: list[ComponentContext]) -> bot.Outcome:
        store, is_sure = self._shared_app.shared, True
        while True:
            async with store.lease(lease_of_message(self._id)) as lease:
                if not await self._is_due(is_sure):
                    self._sent = self._version
                    if carrier:
                        await carrier.answer_first(Reply.DEFERRED_MESSAGE_UPDATE, Answer.UPDATED)
                    return "shown"
                outcome = await super()._edit(carrier, clicks)
                if outcome == "shown":
                    store.note_shown(self._id, self._sent, None)
                try:
                    await store.commit([], None, fences=[lease])  # writes the note too, for who comes next
                except StateConflictError:
                    is_sure = False  # another one may have shown a newer version before this edit arrived
                else:
                    return outcome

    async def _is_due(self, is_sure: bool) -> bool:
        """Take the newest version; return whether the message may show another one."""
        newest = await self._shared_app.shared.load(self._id)
        if newest is None:  # it is gone; or it was closed here, and that is what is shown
            return self._expires_at is not None and self._expires_at <= time.time()
        if newest.version != self._version:
            cls = self._app.views.classes.get(self._id.name)
            try:
                body = bot.lay_out(bot.decode_state(cast("type[bot.View]", cls), newest), self._id)
            except Exception as error:  # a newer bot.py's, perhaps, which shows it then
                log.error("%s %s cannot be shown here: %s", *self._id, error)
                return False
            self._version, self._body, self._place = newest.version, body, newest.place or self._place
        return not is_sure or newest.shown < newest.version


# The web side


class SharedWeb(bot.Web):
    """The HTTP side of a process that shares its port with others, if the system knows how."""

    reuses = True if hasattr(socket, "SO_REUSEPORT") else None
    _is_leaving = False

    async def open(self) -> None:
        if not self._config.run or "web" in self._config.run.split(","):
            await super().open()

    async def answer_again(self, key: EventKey, delivery: bot.Delivery) -> web.Response | None:
        """Wait for the answer that a process gives to the first delivery; the sender of a copy waits as long."""
        loop = asyncio.get_running_loop()
        until = loop.time() + bot.FIRST_ANSWER_WITHIN_S
        while loop.time() < until:
            if delivery.answer.done():
                return None
            if known := await super().answer_again(key, delivery):
                return known
            await asyncio.sleep(POLL_ANSWER_S)
        return web.Response(status=202)

    async def stop_receiving(self) -> None:
        """Take no new connections; what comes in on those that are open is still answered, and they are closed."""
        self._is_leaving = True
        for site in [*self._runner.sites] if self._runner else []:
            await site.stop()

    @web.middleware
    async def _in_words(self, request: web.Request, handler: Any) -> web.StreamResponse:
        response = await super()._in_words(request, handler)
        if self._is_leaving:
            response.force_close()
        return response

    async def health(self) -> bot.JSON:
        told = await super().health()
        return told | ({"status": "stopping"} if self._is_leaving else {})


# The bot


class SharedApp(bot.App):
    """A bot that may run as several processes."""

    dispatch_type, display_type, gateway_type, web_type = SharedDispatch, SharedDisplay, SharedGateway, SharedWeb

    def __init__(self, config: bot.Config, store: SharedStore | None = None) -> None:
        super().__init__(config, store)
        self.lanes = self.shared_lanes = SharedLanes(self)

    @property
    def shared(self) -> SharedStore:
        """The store."""
        return cast("SharedStore", self.store)

    async def commit(self, records: Sequence[Saved], done: EventKey | None, timers: Sequence[bot.Timer] = ()) -> None:
        """Write what was changed, if the leases are still held. Raises StateConflictError."""
        await self.shared.commit(records, done, timers, fences=self.shared_lanes.leases)

    async def let_display_begin(self, click: ComponentContext) -> None:
        displays = (each for each in self._displays.values() if isinstance(each, SharedDisplay))
        if display := next((each for each in displays if click in each.clicks), None):
            with contextlib.suppress(TimeoutError):  # Discord may be away
                await asyncio.wait_for(display.ended.wait(), bot.AUTO_DEFER_AFTER_S)

    async def is_shown(self, id: RecordId) -> None:
        await super().is_shown(id)
        with contextlib.suppress(TimeoutError):
            async with self.shared.lease(lease_of_message(id)):
                pass

    async def _keep_house(self) -> None:
        async with asyncio.TaskGroup() as chores:
            for chore in (super()._keep_house(), self._claim(), self._look_for_what_is_behind()):
                chores.create_task(chore)

    async def _claim(self) -> None:
        try:
            await self.started.wait()
            while True:
                await asyncio.sleep(CLAIM_EVERY_S)
                await cast("SharedDispatch", self.dispatch).claim()
        except StoreError as error:
            self.stop(error)

    async def _look_for_what_is_behind(self) -> None:
        """Show what a process that is gone has saved and not shown: what did not change from one look to the next."""
        before, done = dict[RecordId, int](), dict[RecordId, int]()
        try:
            await self.started.wait()
            while True:
                await asyncio.sleep(LOOK_EVERY_S)
                behind = {saved.id: saved for saved in await self.store.behind()}
                done = {id: version for id, version in done.items() if id in behind}
                for id, saved in behind.items():
                    if before.get(id) == saved.shown and id not in self._displays and done.get(id) != saved.version:
                        done[id] = saved.version  # once: what cannot be shown is told once
                        cast("SharedDispatch", self.dispatch).repair(saved)
                before = {id: saved.shown for id, saved in behind.items()}
        except StoreError as error:
            self.stop(error)
