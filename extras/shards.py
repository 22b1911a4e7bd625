"""Which process has which shards of the gateway, for extras/several.py.

    SHARD_COUNT=4 SHARDS=auto      the processes divide the four evenly, whenever one comes or goes
    SHARD_COUNT=4 SHARDS=0,2       this one has these two
    SHARD_COUNT=4                  this one has all; a second one has those that the first one lets go

A shard is a process's by a lease, which has no end but the process's own. Who gets it resumes the session, so that
nothing is missed: at once when the process before ends as told, within 10 s when it dies. Under the record "_gateway"
each process tells which shards it has, and by that, changing all the time, that it lives.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import hikari

import bot
from bot import Query, RecordId, Saved, StateConflictError, StoreError
from extras import Lease, SharedStore

if TYPE_CHECKING:
    from extras.several import SharedApp

log = logging.getLogger("everclick")

BALANCE_EVERY_S = 0.5
SEEN_AFTER_S = 2 * BALANCE_EVERY_S  # what a process tells has been seen by the others then
TELL_EVERY_S = 1.5
GONE_AFTER_S = 5.0  # without a word; its leases end then too
FORGOTTEN_AFTER_S = 60.0
VERIFY_EVERY_S = 1.0
SURE_FOR_S = 3.0  # after the store has said so; less than what is left of a lease at any time
TAKE_WITHIN_S = 3.0
STARTED_AFTER_S = 2.0  # with a shard or without: a bot may stand by
IDENTIFY_EVERY_S = 5.0
IDENTIFY_LOOK_S = 0.25


def shares(shards: Mapping[str, Sequence[int]], count: int) -> dict[str, int]:
    """Return how many of `count` shards each process is to have: evenly, and so that the fewest have to move."""
    each, more = divmod(count, len(shards))
    by_most = sorted(shards, key=lambda owner: (-len(shards[owner]), owner))
    return {owner: each + (place < more) for place, owner in enumerate(by_most)}


class Neighbours:
    """The processes that run the gateway, this one among them, and the shards they have."""

    def __init__(self, store: SharedStore) -> None:
        self._store, self._id = store, RecordId("_gateway", store.owner)
        self._told: tuple[bytes, float] = b"", 0.0
        self._version, self._seen = 0, dict[str, tuple[int, float]]()

    async def tell(self, shards: Sequence[int]) -> None:
        """Say that this process lives, and which shards it has."""
        now, data = asyncio.get_running_loop().time(), bot.write_json(sorted(shards))
        if self._told[0] == data and now < self._told[1] + TELL_EVERY_S:
            return
        saved = Saved(self._id, self._version, 1, data, 0, None, time.time() + FORGOTTEN_AFTER_S)
        try:
            await self._store.commit([saved], None)
            self._version, self._told = self._version + 1, (data, now)
        except StateConflictError:  # it stood still for so long that it was forgotten
            known = await self._store.load(self._id)
            self._version = known.version if known else 0

    async def look(self) -> dict[str, list[int]]:
        """Return the shards of the other processes that live. By this process's clock alone: others' may be wrong."""
        now, found = asyncio.get_running_loop().time(), await self._store.find(Query(self._id.name))
        others = {saved.id.key: saved for saved in found if saved.id != self._id}
        seen = {owner: self._seen.get(owner, (0, now)) for owner in others}
        self._seen = {
            owner: (saved.version, now if saved.version != seen[owner][0] else seen[owner][1])
            for owner, saved in others.items()
        }
        gone = [owner for owner, (_, at) in self._seen.items() if now >= at + GONE_AFTER_S]
        for owner in gone:  # or it would seem alive for so long to every newcomer
            await self._forget(others.pop(owner))
        return {owner: bot.read_json(saved.data) for owner, saved in others.items()}

    async def leave(self) -> None:
        """Say that this process has no shards any more, and return when the others have seen it and wait for them."""
        others = await self.look()
        if self._version:
            await self._forget(Saved(self._id, self._version, 1, b"", 0, None, None))
        if others:
            await asyncio.sleep(SEEN_AFTER_S)

    async def _forget(self, saved: Saved) -> None:
        with contextlib.suppress(StateConflictError):
            await self._store.commit([saved._replace(data=b"")], None)


class SharedShard(bot.Shard):
    """A shard that is this process's as long as it has the lease."""

    __slots__ = ("living", "polling")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.living = self.polling = cast("asyncio.Task[Any] | None", None)
        super().__init__(*args, **kwargs)

    async def _keep_alive(self) -> None:
        self.living = asyncio.current_task()
        await super()._keep_alive()

    async def _poll_events(self) -> None:
        self.polling = asyncio.current_task()
        await super()._poll_events()

    async def _connect(self) -> Any:
        # Whoever was cut off, or stood still, must not take the session from the process that has it by now.
        if not await cast("SharedGateway", self.gateway).has(self.id):
            raise asyncio.CancelledError  # hikari's way to end a shard
        return await super()._connect()

    def receive(self, payload: bot.JSON) -> None:
        if not cast("SharedGateway", self.gateway).is_sure_of(self.id):
            raise hikari.GatewayConnectionError(f"shard {self.id} may be another process's by now")
        super().receive(payload)

    def stand_for(self, me: hikari.Snowflake) -> None:
        """Know the bot's id without a session."""
        self._user_id = me

    async def end(self) -> None:
        """Close the connection and keep the session, also in the middle of connecting."""
        for task in (self.living, self.beat, self.polling):
            if task and not task.done():
                task.cancel()
                await asyncio.wait([task])


class Owned:
    """A shard that is this process's, or will be when its lease is free."""

    def __init__(self) -> None:
        self.lease, self.sure_until = cast("Lease | None", None), 0.0
        self.is_let_go = False


class SharedGateway(bot.Gateway):
    """hikari's bot with the shards of which this process has the leases."""

    shard_type = SharedShard

    def __init__(self, app: SharedApp) -> None:
        super().__init__(app)
        self._store, self._config = app.shared, app.config
        self._owned, self._carriers = dict[int, Owned](), dict[int, asyncio.Task[None]]()
        self._keepers, self._is_leaving = list[asyncio.Task[None]](), False
        self._neighbours = Neighbours(self._store)
        self._settings, self._has_one = dict[str, Any](), asyncio.Event()
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def live(self) -> None:
        """Have shards until something fails; without a part in the gateway, do the rest of a bot's work."""
        if self._config.run and "gateway" not in self._config.run.split(","):
            await self.app.web.live()
        await super().live()

    async def look_up_sessions(self) -> list[int]:
        return [0]  # which is looked at when the shard is ours

    async def _start_one_shard(self, *, shard_id: int, **kwargs: Any) -> None:
        await self.app.recover()
        self._settings, is_auto = kwargs, self._config.shards == "auto"
        self._cache.update_me(await self.rest.fetch_my_user())
        work = [self._verify_all(), *([self._balance()] if is_auto else [])]
        self._keepers = [asyncio.create_task(self._keep(each)) for each in work]
        numbers = self._config.shards.split(",") if self._config.shards else range(self._count)
        for number in () if is_auto else {int(each): None for each in numbers}:
            self._begin(number)
        with contextlib.suppress(TimeoutError):  # all are another process's, or wait for their turn
            await asyncio.wait_for(self._has_one.wait(), STARTED_AFTER_S)

    async def _keep(self, work: Any) -> None:
        try:
            await work
        except Exception as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self._has_one.set()  # nobody need wait for it
        if not self._failed.done() and not self._is_leaving:
            self._failed.set_exception(error)

    async def join(self) -> None:
        """Stay until something fails."""
        await asyncio.shield(self._failed)

    async def stop_receiving(self) -> None:
        """Let all shards go; whoever has them next resumes their sessions."""
        self._is_leaving = True
        for each in self._keepers:
            each.cancel()
        with contextlib.suppress(StoreError):
            await self._neighbours.leave()
        carriers = [*self._carriers.values()]
        for each in carriers:
            each.cancel()
        await asyncio.gather(*self._keepers, *carriers, return_exceptions=True)
        await super().stop_receiving()

    # One shard

    def _begin(self, number: int) -> None:
        task = self._carriers[number] = asyncio.create_task(self._carry(number), name=f"shard {number}")
        task.add_done_callback(lambda task: self._end(number, task))

    def _end(self, number: int, task: asyncio.Task[None]) -> None:
        del self._carriers[number]
        error = None if task.cancelled() else task.exception()
        if error and not isinstance(error, TimeoutError):
            self._fail(error)
        elif not self._is_leaving and self._config.shards != "auto":
            self._begin(number)  # it was lost, and comes back when whoever has it lets it go

    async def _carry(self, number: int) -> None:
        """Have the shard, when it is free, until it is let go or lost."""
        wait_s = TAKE_WITHIN_S if self._config.shards == "auto" else bot.HOUR
        async with self._store.lease(f"shard:{number}", wait_s=wait_s, for_good=True) as lease:
            owned = self._owned[number] = Owned()
            owned.lease = lease
            try:
                cursor = await self._store.cursor(number, self.fingerprint)
                log.info("shard %d is run here", number)
                await self._start_shard(number, cursor, **self._settings)
                self._has_one.set()
                await self._shards[number].join()
            except RuntimeError:
                if not owned.is_let_go:  # else hikari says so of a shard that ends before it is connected
                    raise
            finally:
                await self._let_go(number)

    async def _let_go(self, number: int) -> None:
        if isinstance(shard := self._shards.pop(number, None), SharedShard):
            await shard.end()
        del self._owned[number]
        log.info("shard %d is let go", number)
        with contextlib.suppress(StoreError):
            await self._store.flush()  # whoever has it next begins where this ended

    async def has(self, number: int) -> bool:
        """Return whether the shard is this process's, as the store says. Raises hikari's error when it says nothing."""
        await self._verify([number])
        owned = self._owned.get(number)
        if owned and not owned.is_let_go and not self.is_sure_of(number):
            raise hikari.GatewayConnectionError("the store cannot be asked whose the shard is")
        return owned is not None and not owned.is_let_go

    def is_sure_of(self, number: int) -> bool:
        """Return whether the store has said lately that the shard is this process's."""
        owned = self._owned.get(number)
        return owned is not None and asyncio.get_running_loop().time() < owned.sure_until

    async def _verify_all(self) -> None:
        while True:
            await self._verify([*self._owned])
            await asyncio.sleep(VERIFY_EVERY_S)

    async def _verify(self, numbers: Sequence[int]) -> None:
        asked_at = asyncio.get_running_loop().time()
        found = {each: owned for each in numbers if (owned := self._owned.get(each)) and not owned.is_let_go}
        try:
            await self._store.commit([], None, fences=[owned.lease for owned in found.values() if owned.lease])
        except StoreError as error:
            log.warning("it is not known whether the shards are still this process's: %s", error)
        except StateConflictError:
            if len(found) == 1:
                self._lose(*found.items())
            for each in found if len(found) > 1 else ():
                await self._verify([each])
        else:
            for owned in found.values():
                owned.sure_until = asked_at + SURE_FOR_S

    def _lose(self, found: tuple[int, Owned]) -> None:
        number, owned = found
        log.warning("shard %d is another process's by now: this one stood still, or was cut off", number)
        owned.is_let_go, owned.sure_until = True, 0.0
        if isinstance(shard := self._shards.get(number), SharedShard) and shard.living:
            shard.living.cancel()

    # How they are divided

    async def _balance(self) -> None:
        me, given_up = self._store.owner, set[int]()
        while True:
            await self._neighbours.tell([*self._owned.keys() - given_up])
            await asyncio.sleep(BALANCE_EVERY_S)
            given_up &= self._owned.keys()
            others = await self._neighbours.look()
            share = shares({me: [*self._owned], **others}, self._count)[me]
            taken = {*self._carriers, *(number for shards in others.values() for number in shards)}
            free = [number for number in range(self._count) if number not in taken]
            for number in free[: max(share - len(self._carriers), 0)]:
                self._begin(number)
            if len(self._owned) > share and not free and not given_up:  # one after the other
                given_up.add(number := max(self._owned))
                log.info("%d processes run the gateway: shard %d is given up", len(others) + 1, number)
                asyncio.get_running_loop().call_later(SEEN_AFTER_S, self._carriers[number].cancel)

    async def identify_turn(self, shard: int) -> None:
        """Wait until the shard may IDENTIFY: one per 5 s and bucket over all processes."""
        await super().identify_turn(shard)
        bucket = shard % (await self.rest.fetch_gateway_bot_info()).session_start_limit.max_concurrency
        while True:
            # A record that ends by itself, for it must outlive a process that ends in these 5 s.
            turn = Saved(RecordId("_identify", str(bucket)), 0, 1, b"{}", 0, None, time.time() + IDENTIFY_EVERY_S)
            with contextlib.suppress(StateConflictError):
                await self._store.commit([turn], None)
                return
            await asyncio.sleep(IDENTIFY_LOOK_S)

    def read_event(self, name: str, shard: int, data: bot.JSON) -> list[hikari.Event]:
        """Return hikari's events for a payload, also of a shard that another process has."""
        whose = self._shards.get(shard) or self._stand_in(shard)
        return self._reader.read(name, whose, data)

    def _stand_in(self, number: int) -> SharedShard:
        """Return a shard that is not connected: what an event needs that has one."""
        shard = SharedShard(
            self, None, http_settings=self.http_settings, proxy_settings=self.proxy_settings, intents=self.intents,
            event_manager=self._event_manager, event_factory=self._event_factory, dumps=self._dumps, loads=self._loads,
            shard_id=number, shard_count=self._count, token=self._token, capabilities=self.capabilities, url="",
        )  # fmt: skip
        if me := self.get_me():
            shard.stand_for(me.id)
        return shard
