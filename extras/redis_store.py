"""The store in Redis or Valkey, for a bot that has outgrown one process.

    STORE=redis://user:password@host:6379/0      (rediss://… with TLS, unix:///run/redis.sock on one machine)

Any number of processes may have it open. Every change is one script there (redis_store.lua), and what waits in a
process at the same moment goes into one call of it. It warns at the start of what the server lacks:

    appendonly yes                 without it a crash of the server loses what was accepted
    appendfsync always             with `everysec`, its default, a power cut loses up to a second. From Redis 7.2 on the
                                   store waits (WAITAOF) until what it wrote is on disk: nothing is lost then, but every
                                   write takes up to a second
    maxmemory-policy noeviction    with any other a server that is full throws away what was accepted

Tried with Redis 6.2 and 8.2 and Valkey 9.1. A replica that takes over may lack the last writes: they are copied to it
afterwards. `find(by=…)` orders by numbers, true and false; records without one in that field come last.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import math
import secrets
import time
import urllib.parse
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any

import msgspec

import bot
from bot import (
    Clock,
    CommitUnknownError,
    Cursor,
    Event,
    EventKey,
    FailedEvent,
    Failure,
    OperatorError,
    Place,
    Query,
    RecordId,
    Saved,
    StateConflictError,
    StoreError,
    Timer,
)
from extras import Lease, SharedStore
from extras.group_commit import GroupCommit
from extras.redis_link import RETRY_AFTER_MAX_S, RedisLink

log = logging.getLogger("everclick")

# What is kept, each name behind "everclick:{<bot's id>}:" (in a cluster the braces keep a bot's keys together). An <id>
# is a record's name, quoted, and its key: "poll:77". An <owner> is a process.
#
#   event:<key>        hash of owner, runs, the answer its sender got, and body, order, at, or done when it is
#   pending:<owner>    zset of the keys of a process's unfinished events, by order
#   done               zset of the keys of events that are done, by when
#   failed             zset of the keys on the failed list, by order; failed:<key> is the hash of an entry
#   record:<id>        hash of a record; `entries` in the script says in which zsets its id is
#   timers             zset of the keys of timers, by when they are due; timer is the hash of their bodies
#   cursor:<shard>     hash of a cursor; gaps is the list of what was forgotten, as JSON
#   processes          zset of the processes, by the millisecond at which their registration ends (0: closed)
#   epoch:<owner>      how often the process has lost an answer
#   lease:<name>       hash of owner, waiter, token, ends; queue:<name> is the list of who waits for it
#   held:<owner>       set of the names of a process's leases
#   pins               hash of pinned keys, by name
#   order, tokens      the numbers given out last; layout is that of these keys
LAYOUT = 1
FOR_GOOD_S = 1e9  # how long a lease is held that is held for good
PURGED_AT_ONCE = 500  # keys, and records of one name
FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def blob(data: bytes) -> msgspec.Raw:
    """Return the bytes as msgpack of the old kind, the only one that Redis's scripts can read."""
    return msgspec.Raw(b"\xdb" + len(data).to_bytes(4, "big") + data)


def pack(*operation: Any) -> bytes:
    """Return the operation of the script as it is sent; no bytes in it but blobs, and False for what is not there."""
    return msgspec.msgpack.encode(operation)


def quoted(text: str) -> str:
    """Return the text without the ":" that divides a record's id."""
    return urllib.parse.quote(text, safe="")


def id_of(id: RecordId) -> str:
    """Return the record's id as the script has it."""
    return f"{quoted(id.name)}:{id.key}"


def numbers_in(data: bytes) -> dict[str, float]:
    """Return the numbers on the first level of a state, by which `find` can order."""
    with contextlib.suppress(ValueError, OverflowError, RecursionError):
        found = {name: bytes(raw) for name, raw in FIELDS.decode(data).items()}
        return {name: float(msgspec.json.decode(raw)) for name, raw in found.items() if raw[0] in b"-0123456789tf"}
    return {}


def fields_of(saved: Saved) -> list[Any]:
    """Return what the hash of the record's successor gets, names and values by turns."""
    numbers = [part for name, number in numbers_in(saved.data).items() for part in (quoted(name), -number)]
    fields = ["version", saved.version + 1, "model", saved.model, "data", blob(saved.data)]
    fields += ["expires", "" if saved.expires_at is None else saved.expires_at]
    fields += ["numbers", blob(msgspec.msgpack.encode(numbers)), *place_fields(saved.place)]
    if not saved.version:  # whoever sees it sees version 1, unless a message that has it shows what was before
        fields += ["shown", 0 if saved.shown < 0 else 1]
    return fields


def place_fields(place: Place | None) -> list[Any]:
    """Return the same for where a record is shown; what is not known stays as it is."""
    if not place:
        return []
    # As text: Discord's ids do not fit into the script's numbers.
    fields = ["channel", str(place.channel), "message", str(place.message), "ephemeral", int(place.ephemeral)]
    return fields if place.guild is None else [*fields, "guild", str(place.guild)]


def saved_from(row: Sequence[Any]) -> Saved:
    """Return the record that a row of the script holds."""
    version, model, data, shown, channel, message, ephemeral, guild, expires, id = row
    name, _, key = id.decode().partition(":")
    place = Place(int(channel), int(message), ephemeral == b"1", int(guild) if guild else None) if message else None
    expires_at = float(expires) if expires else None
    return Saved(
        RecordId(urllib.parse.unquote(name), key), int(version), int(model), data, int(shown), place, expires_at
    )


def timers_from(found: Sequence[bytes]) -> Iterator[tuple[Timer, bytes]]:
    """Yield the timers that the script found, each with its time as the server wrote it."""
    count = len(found) // 3
    for key, due, body in zip(found[: 2 * count : 2], found[1 : 2 * count : 2], found[2 * count :], strict=True):
        yield Timer(EventKey(key.decode()), float(due), body), due


def events_from(rows: Sequence[Sequence[bytes]]) -> list[Event]:
    """Return the events that the script found."""
    return [Event(EventKey(row[0].decode()), row[1], int(row[2])) for row in rows]


def key_ranges(query: Query) -> Iterator[tuple[str, str]]:
    """Yield the ranges of ids that the query's prefix and `after` leave, as Redis wants them."""
    name, after = quoted(query.name), query.after
    passed = "" if after is None else f"({name}:{after}"
    if not query.prefix:
        yield passed or f"[{name}:", f"({name};"  # ";" is what follows ":"
        return
    if after is None or query.prefix > after:  # text is ordered here as its UTF-8 is there
        yield f"[{name}:{query.prefix}", f"[{name}:{query.prefix}"
    below = f"{query.prefix}:"
    yield passed if after is not None and after >= below else f"[{name}:{below}", f"({name}:{query.prefix};"


async def end(task: asyncio.Task[None]) -> None:
    """Cancel the task and wait until it is over."""
    task.cancel()
    await asyncio.wait([task])


class RedisStore(SharedStore):
    """The store on one Redis server, for all processes of a bot. See extras.SharedStore for what it promises."""

    def __init__(
        self, url: str, bot_id: bot.BotId, *, max_failed: int = 10_000, now: Clock = time.time,
        lease_s: float = 5.0, max_hold_s: float = 60.0,
    ) -> None:  # fmt: skip
        self.bot, self.owner = bot_id, secrets.token_hex(8)
        self._max_failed, self._now, self._lease_s, self._max_hold_s = max_failed, now, lease_s, max_hold_s
        self._prefix = f"everclick:{{{bot_id}}}:"
        self._link = RedisLink(url, self._prefix, self.owner, lease_s, max_hold_s)
        self._epoch = 0  # how often an answer was lost
        self._shards, self._stuck = set[int](), set[int]()  # whose cursors move, and whose must not
        self._waiters = (f"{self.owner}:{number}" for number in itertools.count(1))
        self._waiting = dict[str, asyncio.Future[int]]()
        self._left = set[tuple[str, str]]()  # leases that are given up, which the server was not told
        self._stack = contextlib.AsyncExitStack()

    async def open(self, *, visit: bool = False) -> None:
        async with contextlib.AsyncExitStack() as self._stack:  # closes what is open when anything below fails
            self._stack.push_async_callback(self._link.close)
            [layout] = await self._link.open(pack("open", LAYOUT))
            if layout > LAYOUT:
                newer = f"was written by a newer bot (keys of layout {layout}, this one knows {LAYOUT})"
                raise OperatorError(f"{self._link.place} {newer}. Use that one, or set STORE to another server.")
            self._stack.push_async_callback(self._leave_the_bot)
            for work in (self._keep_registered(), self._hear()):
                self._stack.push_async_callback(end, asyncio.create_task(work))
            self._writer = GroupCommit(self._link.place, self._perform, self._get_stuck, len)
            self._stack.push_async_callback(self._writer.close)
            self._stack = self._stack.pop_all()  # noqa: PLW2901

    async def close(self) -> None:
        await self._stack.aclose()

    async def _leave_the_bot(self) -> None:
        try:
            await self._link.ask(pack("close"))
        except StoreError as error:
            log.warning("this process's events are taken over %g s from now: %s", self._lease_s, error)
        self._tell_waiters("")  # that it is closed

    async def _read(self, *operation: Any) -> Any:
        [result] = await self._link.ask(pack(*operation))
        if isinstance(result, StoreError):
            raise result
        return result

    def _write(self, *operation: Any) -> asyncio.Future[Any]:
        return self._writer.put(pack(*operation))

    async def _perform(self, operations: Sequence[bytes]) -> list[Any]:
        try:
            results = await self._link.ask(*operations, epoch=self._epoch)
        except CommitUnknownError:
            self._epoch += 1  # if the call is still on its way, it comes too late
            raise
        return [StateConflictError(each.decode()) if isinstance(each, bytes) else each for each in results]

    def _get_stuck(self) -> None:
        self._stuck |= self._shards

    async def flush(self) -> None:
        self._writer.put_notes()
        await self._write("nothing")
        if self._stuck:
            raise StoreError(f"{self._link.place} refused an event, and nothing may be confirmed past it.")

    # Processes and leases

    async def _keep_registered(self) -> None:
        """Renew the registration, and with it the leases; every call of the script does."""
        while True:
            await asyncio.sleep(self._lease_s / 3)
            with contextlib.suppress(StoreError):
                await self._link.ask()
                for name, waiter in [*self._left]:
                    await self._write("leave", name, waiter)
                    self._left.discard((name, waiter))

    async def claim_orphans(self) -> list[Event]:
        # When the server was away, only who has closed is gone: the others may not have been heard of again.
        return events_from(await self._write("claim", 0 if self._link.was_away else False))

    @contextlib.asynccontextmanager
    async def lease(self, name: str, *, wait_s: float = 10.0, for_good: bool = False) -> AsyncGenerator[Lease]:
        waiter = next(self._waiters) + "!" * for_good  # which the script looks for
        try:
            lease = Lease(name, await self._await_turn(name, waiter, wait_s))
            lost = "the lease %s was held for %g s and is lost: what is written under it now is refused"
            hold_s = math.inf if for_good else self._max_hold_s
            timer = asyncio.get_running_loop().call_later(min(hold_s, FOR_GOOD_S), log.warning, lost, name, hold_s)
            try:
                yield lease
            finally:
                timer.cancel()
        finally:
            self._waiting.pop(waiter, None)
            try:
                await self._write("leave", name, waiter)
            except StoreError:
                self._left.add((name, waiter))

    async def _await_turn(self, name: str, waiter: str, wait_s: float) -> int:
        """Return the token when it is the waiter's turn."""
        try:
            async with asyncio.timeout(wait_s):
                while True:
                    told = self._waiting[waiter] = asyncio.get_running_loop().create_future()
                    token, again_ms = await self._write("lease", name, waiter)
                    with contextlib.suppress(TimeoutError):  # the holder may have died, or what we are told got lost
                        async with asyncio.timeout(again_ms / 1000 + 0.001):
                            token = token or await told
                    if token:
                        return token
        except TimeoutError:
            raise TimeoutError(f"the lease {name} was not free within {wait_s:g} s") from None

    async def _hear(self) -> None:
        """Tell the waiters of this process when it is their turn. What gets lost they ask for themselves."""
        while True:
            async for said in self._link.listen(f"{self._prefix}wake:{self.owner}"):
                self._tell_waiters(said)
            await asyncio.sleep(RETRY_AFTER_MAX_S)

    def _tell_waiters(self, said: str) -> None:
        """Give "<waiter> <token>" to that waiter; on "" all ask again, for something may have been missed."""
        waiter, _, token = said.partition(" ")
        for told in [self._waiting.get(waiter)] if said else [*self._waiting.values()]:
            if told and not told.done():
                told.set_result(int(token or 0))

    # Events

    def accept(self, event: Event | None, cursor: Cursor | None) -> asyncio.Future[int]:
        if cursor and cursor.shard in self._stuck:
            raise StoreError(f"{self._link.place} refused an earlier event, and the cursor must not pass it.")
        what = (event.key, blob(event.body), event.runs) if event else (False, False, 0)
        return self._write("accept", self._now(), *what, self._moved(cursor) if cursor else False)

    def move_cursor(self, cursor: Cursor) -> None:
        if cursor.shard not in self._stuck:
            self._writer.note(("cursor", cursor.shard, cursor.session), cursor.seq, pack("move", *self._moved(cursor)))

    def _moved(self, cursor: Cursor) -> list[Any]:
        self._shards.add(cursor.shard)
        texts = ["fingerprint", cursor.fingerprint, "resume_url", cursor.resume_url, "me", blob(cursor.me)]
        return [self._now(), cursor.shard, cursor.session, cursor.seq, *texts]

    async def pending(self) -> list[Event]:
        return events_from(await self._read("pending"))

    async def begin(self, key: EventKey) -> None:
        await self._write("begin", key)

    async def commit(
        self,
        records: Sequence[Saved],
        done: EventKey | None,
        timers: Sequence[Timer] = (),
        *,
        fences: Sequence[Lease] = (),
    ) -> None:
        successors = [(id_of(each.id), each.version, fields_of(each) if each.data else False) for each in records]
        later = [(each.key, False if each.due_at is None else each.due_at, blob(each.body)) for each in timers]
        await self._write("commit", self._now(), successors, done or False, later, list(fences))

    async def release(self) -> None:
        await self._write("release")

    async def cursor(self, shard: int, fingerprint: str) -> Cursor | None:
        self._shards.add(shard)
        kept, session, seq, resume_url, me, started = await self._read("cursor", shard)
        self._stuck.discard(shard)  # what was refused is sent again to whoever resumes from here
        if kept is None:
            return None
        if kept.decode() != fingerprint:
            return await self.forget(shard, "the token, the intents or the number of shards changed")
        if float(started) < self._now() - bot.SESSION_AGE_MAX_S:
            return await self.forget(shard, "it is a month old")
        return Cursor(shard, fingerprint, session.decode(), int(seq), resume_url.decode(), me)

    async def forget(self, shard: int, why: str) -> None:
        self._writer.forget("cursor", shard)
        log.warning("the gateway session cannot be resumed (%s): events since its end may be missing", why)
        await self._write("forget", self._now(), shard, why)
        self._stuck.discard(shard)

    def note_answer(self, key: EventKey, answer: bytes) -> None:
        self._writer.note(("answer", key), 0, pack("answered", key, blob(answer)))

    async def answer(self, key: EventKey) -> bytes | None:
        await self._write("nothing")  # what was noted is written before
        return (await self._read("answer", key))[0]

    async def figures(self) -> bot.Figures:
        """Return how much the store holds: of all processes of the bot, and the bytes of the whole server."""
        pending, oldest_at, failed, size = await self._read("figures")
        return bot.Figures(pending, float(oldest_at) if oldest_at else None, failed, size)

    async def pin(self, name: str, key: str, *, replace: bool = False) -> str:
        return (await self._write("pin", name, key, replace))[0].decode()

    async def pinned(self, name: str) -> str | None:
        [key] = await self._read("pinned", name)
        return key.decode() if key is not None else None

    # The failed list

    async def fail(self, event: Event, failure: Failure) -> None:
        body = blob(bot.without_token(event.body))
        await self._write("fail", self._now(), self._max_failed, event.key, body, *failure)

    async def failed(self) -> list[FailedEvent]:
        rows = await self._read("failed")
        return [
            FailedEvent(
                EventKey(key.decode()),
                float(at),
                int(runs),
                applied == b"1",
                Failure(*(each.decode() for each in failure)),
            )
            for key, at, runs, applied, *failure in rows
        ]

    async def retry_failed(self, keys: Sequence[str]) -> int:
        return await self._write("take_failed", self._now(), list(keys), True)

    async def discard_failed(self, keys: Sequence[str]) -> int:
        return await self._write("take_failed", self._now(), list(keys), False)

    # Records

    async def load(self, id: RecordId) -> Saved | None:
        rows = await self._read("load", id_of(id), self._now())
        return saved_from(rows[0]) if rows else None

    async def find(self, query: Query) -> list[Saved]:
        zset, where, limit = "records", Place(query.channel or 0, query.message or 0), query.limit
        if query.channel is not None or query.message is not None:
            zset = f"channel:{where.channel}" if query.message is None else f"message:{where.message}"
        name = quoted(query.name)
        if query.by and (zset != "records" or query.after is not None):
            limit = 1 << 31  # to be put in order here: there are few in one place, and nobody pages through the highest
        top = query.by and zset == "records" and f"top:{name}:{quoted(query.by)}:{query.prefix}"
        head = f"{name}:{query.prefix}"
        rows = await self._read("find", self._now(), limit, zset, [*key_ranges(query)], top or False, head)
        found = [saved_from(row) for row in rows]
        if query.channel is not None:
            found = [each for each in found if each.place and each.place.channel == query.channel]
        if query.by:
            found = [each for each in found if query.after is None or each.id.key > query.after]
            found.sort(key=lambda each: (-numbers_in(each.data).get(query.by, -math.inf), each.id.key))
        return found[: query.limit]

    async def names(self) -> list[str]:
        names = [urllib.parse.unquote(each.decode()) for each in await self._read("names")]
        return [name for name in names if not name.startswith("_")]

    async def behind(self) -> list[Saved]:
        return [saved_from(row) for row in await self._read("behind", self._now())]

    def note_shown(self, id: RecordId, version: int, place: Place | None) -> None:
        self._writer.note(("shown", id, bool(place)), version, pack("shown", id_of(id), version, place_fields(place)))

    def clean_up(self, gone: bot.Gone) -> asyncio.Future[int]:
        guild, channel = (False if each is None else str(each) for each in (gone.guild, gone.channel))
        return self._write("clean_up", guild, channel, [str(message) for message in gone.messages])

    async def purge(self, names: Sequence[str] = ()) -> int:
        now = self._now()
        # Also what was done in a future that a wrong clock once believed in: it would be kept for ever.
        ranges = [("-inf", f"({now - bot.KEYS_KEPT_S!r}"), (f"({now + bot.KEYS_KEPT_S!r}", "+inf")]
        return await self._write("purge", ranges, f"({now!r}", PURGED_AT_ONCE, [quoted(name) for name in names])

    # What is to happen later

    async def timers(self) -> list[Timer]:
        return [timer for timer, _ in timers_from(await self._read("timers"))]

    async def fire(self, names: Sequence[str]) -> list[Event]:
        most = bot.FIRED_AT_ONCE_MAX
        timers, records = await self._read("due", self._now(), most, [quoted(name) for name in names])
        found, events = list[Any](), list[Event]()
        for timer, due in timers_from(timers):
            found.append(("timer", timer.key, blob(due)))
            events.append(Event(timer.key, timer.body))
        for row in records:
            saved = saved_from(row)
            found.append(("record", id_of(saved.id), blob(row[0] + b" " + row[8])))
            events.append(Event(EventKey(f"expiry:{saved.id.name}:{saved.id.key}"), bot.write_json(saved)))
        if not found:
            return []
        # A name of its own for each: a clock that went back, or a view that was renewed, comes there once more.
        events = [each._replace(key=EventKey(f"{each.key}@{secrets.token_hex(4)}")) for each in events]
        asked = [(*what, event.key, blob(event.body)) for what, event in zip(found, events, strict=True)]
        return [events[index] for index in await self._write("fire", self._now(), asked)]
