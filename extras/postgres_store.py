"""The store in PostgreSQL, for a bot that has outgrown one process. Needs asyncpg; see extras/requirements.txt.

    STORE=postgresql://user:password@host:5432/database

Everything is in the schema "everclick" of that database, which is made at the first start: its user needs the right to
create a schema there. Several bots may share it. Tried with PostgreSQL 16 and 18.

What is written is on the server's disk: every connection here sets synchronous_commit=on, and a server with fsync=off
is warned about. A standby that takes over may miss the last writes, unless synchronous_standby_names makes the server
wait for it. A process has at most six connections; they listen and prepare statements, so a pooler between (PgBouncer)
must pool sessions, not transactions. Leases and registrations go by the server's clock.

`find(by=…)` makes an index by that field when it is first asked for it; until that is done, all records of the name
are looked at. Numbers come before text and true before false, records without the field last.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import itertools
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, TypeAlias

import bot
from bot import (
    Cursor,
    Event,
    EventKey,
    FailedEvent,
    Failure,
    OperatorError,
    RecordId,
    Saved,
    StateConflictError,
    StoreError,
    Timer,
)
from extras import Lease, SharedStore
from extras import postgres_sql as statements
from extras.group_commit import GroupCommit
from extras.postgres_link import Connection, Line, PostgresLink, Work, explain, make_index
from extras.postgres_sql import Ask, Step, columns, deleting, index_by, not_ours, outcome, quoted, size_of

log = logging.getLogger("everclick")

READERS = 3  # connections that read; one more writes, one sees to leases, and one makes an index now and then
DELETED_AT_ONCE = 1_000  # records of what was deleted at Discord, in one statement
PURGED_AT_ONCE = 500
FOR_GOOD_S = 1e9  # how long a lease is held that is held for good

Operation: TypeAlias = Step | Ask | Work


async def end(task: asyncio.Task[None]) -> None:
    """Cancel the task and wait until it is over."""
    task.cancel()
    await asyncio.wait([task])


class PostgresStore(SharedStore):
    """The store in a PostgreSQL database, for all processes of a bot. See extras.SharedStore for what it promises."""

    def __init__(
        self, url: str, bot_id: bot.BotId, *, max_failed: int = 10_000, now: bot.Clock = time.time,
        lease_s: float = 5.0, max_hold_s: float = 60.0,
    ) -> None:  # fmt: skip
        self.bot, self.owner, self._max_failed, self._now = bot_id, secrets.token_hex(8), max_failed, now
        self._link, self._lease_s, self._max_hold_s = PostgresLink(url, self.owner, lease_s), lease_s, max_hold_s
        self._readers: asyncio.LifoQueue[Line] = asyncio.LifoQueue()
        self._shards, self._stuck = set[int](), set[int]()  # whose cursors move, and whose must not
        self._asks, self._turns = itertools.count(1), dict[int, asyncio.Event]()
        self._held, self._left = dict[int, Lease](), set[tuple[str, int]]()
        self._heard_at = self._claims_from = 0.0
        self._ranked = set[tuple[str, str]]()
        self._stack = contextlib.AsyncExitStack()

    async def open(self, *, visit: bool = False) -> None:
        async with contextlib.AsyncExitStack() as self._stack:  # closes what is open when anything below fails
            await self._link.set_up()
            for number in range(READERS):
                self._readers.put_nowait(line := self._link.line(f"reader {number}"))
                self._stack.push_async_callback(line.close)
            self._leases = self._start(self._link.line("leases", self._listen), lambda: None)
            self._stack.push_async_callback(self._give_up)
            self._writer = self._start(self._link.line("writer"), self._get_stuck)
            try:
                await self._register()
            except StoreError as error:
                raise OperatorError(str(error)) from error
            self._stack.push_async_callback(end, asyncio.create_task(self._stay_registered(), name="registration"))
            self._stack = self._stack.pop_all()  # noqa: PLW2901

    async def _listen(self) -> Connection:
        db = await self._link.connect("leases")
        await db.add_listener(f"everclick_{self.owner}", self._on_notify)
        self._look_again()  # what was told meanwhile was told to nobody
        return db

    def _start(self, line: Line, on_refusal: Callable[[], None]) -> GroupCommit[Operation]:
        perform = functools.partial(self._perform, line)
        group: GroupCommit[Operation] = GroupCommit(self._link.place, perform, on_refusal, size_of)
        self._stack.push_async_callback(line.close)
        self._stack.push_async_callback(group.close)
        return group

    async def close(self) -> None:
        await self._stack.aclose()

    def _get_stuck(self) -> None:
        self._stuck |= self._shards

    async def _perform(self, line: Line, operations: Sequence[Operation]) -> list[Any]:
        """Run the operations in one transaction: what is of one kind in one call, and that alone without BEGIN."""
        kinds = [(kind, [*some]) for kind, some in itertools.groupby(operations, type)]

        async def work(db: Connection) -> list[Any]:
            return [result for kind, some in kinds for result in await self._run(db, kind, some)]

        try:
            return await line.write(work, in_one_call=len(kinds) == 1 and kinds[0][0] in (Step, Ask))
        except StoreError:
            raise
        except Exception:  # one of them is at fault, and must not take the others with it
            if len(operations) == 1:
                raise
        return [await self._alone(line, operation) for operation in operations]

    async def _alone(self, line: Line, operation: Operation) -> Any:
        try:
            return (await self._perform(line, [operation]))[0]
        except Exception as error:
            return error

    async def _run(self, db: Connection, kind: type[Any], operations: list[Any]) -> list[Any]:
        if kind is Step:
            rows = await db.fetch("SELECT everclick.apply($1, $2, $3)", self.bot, self.owner, operations)
            return [outcome(step, row[0]) for step, row in zip(operations, rows, strict=True)]
        if kind is Ask:
            asks = [[*column] for column in zip(*operations, strict=True)]
            sql = "SELECT * FROM everclick.queue($1, $2, $3, $4, $5, $6)"
            return await db.fetch(sql, self.bot, self.owner, self._lease_s, *asks)
        results: list[Any] = []
        for work in operations:
            try:
                results.append(await work(db))
            except StateConflictError as refused:  # raised before the operation wrote anything
                results.append(refused)
        return results

    async def _read(self, sql: str, *args: Any) -> list[Any]:
        line = await self._readers.get()
        try:
            return await line.read(lambda db: db.fetch(sql, self.bot, *args))
        finally:
            self._readers.put_nowait(line)

    async def _write(self, sql: str, *args: Any) -> list[Any]:
        """Run a statement in the next transaction and return its rows."""
        return await self._writer.put(lambda db: db.fetch(sql, self.bot, *args))

    async def flush(self) -> None:
        self._writer.put_notes()
        await self._writer.put(Step("accept", self._now()))
        if self._stuck:
            raise StoreError(f"{self._link.place} refused an event, and nothing may be confirmed past it.")

    # Processes and leases

    async def _register(self) -> None:
        """Register this process and renew its leases; tell of what was lost."""
        held, now = {**self._held}, asyncio.get_running_loop().time
        asked_at = now()

        async def renew(db: Connection) -> list[Any]:
            await db.execute(statements.REGISTER, self.bot, self.owner, self._lease_s)
            names = [lease.name for lease in held.values()]
            return await db.fetch(statements.RENEW, self.bot, self.owner, self._lease_s, names, [*held])

        renewed = {row[0] for row in await self._leases.put(renew)}
        if self._heard_at and now() > self._heard_at + self._lease_s:
            lost = "%s did not hear of this process for %.1f s: its events and leases may be another's by now"
            log.warning(lost, self._link.place, now() - self._heard_at)
            self._claims_from = now() + self._lease_s
        self._heard_at = asked_at
        for ask in held.keys() - renewed:
            if lease := self._held.pop(ask, None):
                lost = "the lease %s is lost: it may be held for %g s, and this process must be heard of"
                log.warning(lost, lease.name, self._max_hold_s)
        left, self._left = self._left, set[tuple[str, int]]()
        for name, ask in left:
            self._leave(name, ask)

    async def _stay_registered(self) -> None:
        while True:
            await asyncio.sleep(self._lease_s / 3)
            try:
                await self._register()
            except StoreError:
                pass  # the link has told
            except Exception:
                log.exception("this process could not be registered, and is tried again")

    async def _give_up(self) -> None:
        self._look_again()  # who waits for a lease is told that there is none any more
        if not self._heard_at:
            return  # it was never registered

        async def give_up(db: Connection) -> None:
            await db.execute("DELETE FROM everclick.process WHERE bot=$1 AND id=$2", self.bot, self.owner)
            tables = (f"SELECT name FROM everclick.{table} WHERE bot=$1 AND owner=$2" for table in ("lease", "waiter"))
            if names := [row[0] for row in await db.fetch(" UNION ".join(tables), self.bot, self.owner)]:
                await self._run(db, Ask, [Ask(name, None) for name in names])

        try:
            await self._leases.put(give_up)
        except StoreError as error:
            log.warning("this process's events are taken over %g s from now: %s", self._lease_s, error)

    async def claim_orphans(self) -> list[Event]:
        async def claim(db: Connection) -> list[Any]:
            # After an outage the others may not have been heard of again: only who has closed is gone.
            now = asyncio.get_running_loop().time()
            is_after_outage = now < self._claims_from or now > self._heard_at + self._lease_s
            gone = [row[0] for row in await db.fetch(statements.GONE, self.bot, self.owner, is_after_outage)]
            if not is_after_outage:
                await db.execute(statements.FORGET_THE_GONE, self.bot)
            return await db.fetch(statements.CLAIM, self.bot, self.owner, gone) if gone else []

        return [Event(*row[1:]) for row in sorted(await self._writer.put(claim))]

    @contextlib.asynccontextmanager
    async def lease(self, name: str, *, wait_s: float = 10.0, for_good: bool = False) -> AsyncGenerator[Lease]:
        ask = next(self._asks)
        try:
            lease = self._held[ask] = await self._take(name, ask, FOR_GOOD_S if for_good else self._max_hold_s, wait_s)
            yield lease
        finally:
            self._held.pop(ask, None)
            with contextlib.suppress(StoreError):  # closed: that gives everything up
                self._leave(name, ask)

    def _leave(self, name: str, ask: int) -> None:
        """Give a lease, or the wait for it, up; it is told later when the server cannot be told now."""
        told = self._leases.put(Ask(name, ask))
        told.add_done_callback(lambda told: self._left.add((name, ask)) if told.exception() else None)

    async def _take(self, name: str, ask: int, hold_s: float, wait_s: float) -> Lease:
        """Wait for a lease: to be told that it is this one's turn, or until what is before it ends by itself."""
        now = asyncio.get_running_loop().time
        until, turn = now() + wait_s, self._turns.setdefault(ask, asyncio.Event())
        try:
            while True:
                turn.clear()
                token, again_s = await self._leases.put(Ask(name, ask, hold_s))
                if token is not None:
                    return Lease(name, token)
                if now() >= until:
                    raise TimeoutError(f"the lease {name} was not free within {wait_s:g} s")
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(turn.wait(), min(until - now(), max(float(again_s or 0), 0.01)))
        finally:
            del self._turns[ask]

    def _on_notify(self, *message: Any) -> None:
        if turn := self._turns.get(int(message[-1])):
            turn.set()

    def _look_again(self) -> None:
        for turn in self._turns.values():
            turn.set()

    # Events

    def accept(self, event: Event | None, cursor: Cursor | None) -> asyncio.Future[int]:
        if cursor and cursor.shard in self._stuck:
            raise StoreError(f"{self._link.place} refused an earlier event, and the cursor must not pass it.")
        self._shards |= {cursor.shard} if cursor else set()
        return self._writer.put(Step("accept", self._now(), *(event or (None, None, None)), cursor))

    def move_cursor(self, cursor: Cursor) -> None:
        self._shards.add(cursor.shard)
        if cursor.shard not in self._stuck:
            step = Step("accept", self._now(), place=cursor)
            self._writer.note(("cursor", cursor.shard, cursor.session), cursor.seq, step)

    async def pending(self) -> list[Event]:
        # Where writes go, so that the outcome of every earlier one is in what is found.
        sql = "SELECT key, body, runs FROM everclick.inbox WHERE bot=$1 AND owner=$2 AND done_at IS NULL ORDER BY id"
        return [Event(*row) for row in await self._write(sql, self.owner)]

    async def begin(self, key: EventKey) -> None:
        await self._write(
            "UPDATE everclick.inbox SET runs=runs+1 WHERE bot=$1 AND key=$2 AND owner=$3", key, self.owner
        )

    async def commit(
        self, records: Sequence[Saved], done: EventKey | None, timers: Sequence[Timer] = (), *,
        fences: Sequence[Lease] = (),
    ) -> None:  # fmt: skip
        changes = [*map(columns, records)]
        await self._writer.put(Step("change", self._now(), done, None, None, None, changes, [*timers], [*fences]))

    async def release(self) -> None:
        await self._write("UPDATE everclick.inbox SET runs=0 WHERE bot=$1 AND owner=$2 AND done_at IS NULL", self.owner)

    async def cursor(self, shard: int, fingerprint: str) -> Cursor | None:
        self._shards.add(shard)
        kept = "shard, fingerprint, session, seq, resume_url, me, started_at"
        rows = await self._write(f"SELECT {kept} FROM everclick.cursor WHERE bot=$1 AND shard=$2", shard)
        self._stuck.discard(shard)  # what was refused is sent again to whoever resumes from here
        if rows and rows[0]["fingerprint"] != fingerprint:
            await self.forget(shard, "the token, the intents or the number of shards changed")
        elif rows and rows[0]["started_at"] < self._now() - bot.SESSION_AGE_MAX_S:
            await self.forget(shard, "it is a month old")
        else:
            return Cursor(*rows[0][:-1]) if rows else None
        return None

    async def forget(self, shard: int, why: str) -> None:
        self._writer.forget("cursor", shard)
        log.warning("the gateway session cannot be resumed (%s): events since its end may be missing", why)
        await self._write(statements.FORGET, shard, self._now(), why)
        self._stuck.discard(shard)

    def note_answer(self, key: EventKey, answer: bytes) -> None:
        self._writer.note(("answer", key), 0, Step("answer", self._now(), key, answer))

    async def answer(self, key: EventKey) -> bytes | None:
        rows = await self._write("SELECT answer FROM everclick.inbox WHERE bot=$1 AND key=$2", key)
        return rows[0][0] if rows else None

    async def figures(self) -> bot.Figures:
        """Return how much the store holds: the events of all processes of the bot, the bytes of all bots."""
        return bot.Figures(*(await self._read(statements.FIGURES))[0])

    async def pin(self, name: str, key: str, *, replace: bool = False) -> str:
        return (await self._write(statements.PIN, name, key, self._now(), replace))[0][0]

    async def pinned(self, name: str) -> str | None:
        rows = await self._read("SELECT key FROM everclick.pin WHERE bot=$1 AND name=$2", name)
        return rows[0][0] if rows else None

    # The failed list

    async def fail(self, event: Event, failure: Failure) -> None:
        body, now, at = bot.without_token(event.body), self._now(), "WHERE bot=$1 AND key=$2"

        async def fail(db: Connection) -> None:
            sql = f"SELECT owner, runs, done_at IS NOT NULL FROM everclick.inbox {at} FOR UPDATE"
            owner, runs, applied = await db.fetchrow(sql, self.bot, event.key) or (self.owner, 0, False)
            if owner != self.owner:
                raise not_ours(event.key)
            await db.execute(statements.FAIL, self.bot, event.key, body, now, runs, *failure, applied)
            await db.execute(f"UPDATE everclick.inbox SET done_at=$3, body='' {at}", self.bot, event.key, now)
            await db.execute(statements.TRIM, self.bot, self._max_failed)

        await self._writer.put(fail)

    async def failed(self) -> list[FailedEvent]:
        sql = "SELECT key, failed_at, runs, applied, type, text, place FROM everclick.failed WHERE bot=$1 ORDER BY id"
        return [FailedEvent(*row[:4], failure=Failure(*row[4:])) for row in await self._read(sql)]

    async def retry_failed(self, keys: Sequence[str]) -> int:
        return len(await self._write(statements.RETRY, not keys, [*keys], self.owner))

    async def discard_failed(self, keys: Sequence[str]) -> int:
        sql = "DELETE FROM everclick.failed WHERE bot=$1 AND ($2 OR key=ANY($3)) RETURNING 1"
        return len(await self._write(sql, not keys, [*keys]))

    # Records

    async def load(self, id: RecordId) -> Saved | None:
        same = "bot=$1 AND name=$2 AND key=$3 AND (expires_at IS NULL OR expires_at > $4)"
        rows = await self._read(f"SELECT {bot.RECORD} FROM everclick.record WHERE {same}", *id, self._now())
        return bot.saved_from(rows[0]) if rows else None

    async def find(self, query: bot.Query) -> list[Saved]:
        limits = {
            "key > ${0}": query.after, "channel=${0}": query.channel, "message=${0}": query.message,
            # ";" is what follows ":".
            "key >= ${0} AND key < ${0} || ';' AND (key=${0} OR key >= ${0} || ':')": query.prefix or None,
        }  # fmt: skip
        wanted = {clause: value for clause, value in limits.items() if value is not None}
        where = ["bot=$1 AND name=$2 AND (expires_at IS NULL OR expires_at > $3)"]
        where += [clause.format(number) for number, clause in enumerate(wanted, 4)]
        order = "key"
        if query.by:
            self._rank(query.name, query.by)
            where.append(f"name={quoted(query.name)}")  # written out: only so is the index of that name known to fit
            order = f"everclick.height(data, {quoted(query.by)}) DESC NULLS LAST, key"
        sql = f"SELECT {bot.RECORD} FROM everclick.record WHERE {' AND '.join(where)} ORDER BY {order}"
        rows = await self._read(f"{sql} LIMIT {query.limit:d}", query.name, self._now(), *wanted.values())
        return [*map(bot.saved_from, rows)]

    def _rank(self, name: str, field: str) -> None:
        """Have the index made by which `find` is quick, when this process is first asked for it."""
        if (name, field) not in self._ranked:
            self._ranked.add((name, field))
            task = asyncio.create_task(self._make_index(name, field), name=f"index of {name} by {field}")
            self._stack.push_async_callback(end, task)

    async def _make_index(self, name: str, field: str) -> None:
        index = f"record_by_{hashlib.sha256(f'{name} {field}'.encode()).hexdigest()[:32]}"
        try:
            db = await self._link.connect(f"index {index[-8:]}")
            try:
                await make_index(db, index, index_by(field, name))
            finally:
                db.terminate()
        except Exception as error:
            log.warning(
                "to find %s by %s, all of them are looked at: %s", name, field, explain(error, self._link.place)
            )

    async def names(self) -> list[str]:
        return [row[0] for row in await self._read(statements.NAMES) if not row[0].startswith("_")]

    async def behind(self) -> list[Saved]:
        where = "bot=$1 AND shown < version AND message IS NOT NULL AND (expires_at IS NULL OR expires_at > $2)"
        rows = await self._read(f"SELECT {bot.RECORD} FROM everclick.record WHERE {where}", self._now())
        return [*map(bot.saved_from, rows)]

    def note_shown(self, id: RecordId, version: int, place: bot.Place | None) -> None:
        step = Step("note", self._now(), records=[columns(Saved(id, version, 0, b"", 0, place, None))])
        self._writer.note(("shown", id, bool(place)), version, step)

    def clean_up(self, gone: bot.Gone) -> asyncio.Future[int]:
        where, values = "bot=$1 AND guild=$2", list[Any]([gone.guild])
        if gone.channel is not None:
            where, values = "bot=$1 AND channel=$2", [gone.channel]
        if gone.messages:
            where, values = f"{where} AND message=ANY($3)", [*values, [*gone.messages]]
        sql = deleting("record", where, "name, key", DELETED_AT_ONCE, skip_locked=False)

        async def clean_up(db: Connection) -> int:
            total = 0
            while step := len(await db.fetch(sql, self.bot, *values)):
                total += step
            return total

        return self._writer.put(clean_up)

    async def purge(self, names: Sequence[str] = ()) -> int:
        now, kept = self._now(), bot.KEYS_KEPT_S
        others = [row[0] for row in await self._read(statements.NAMES) if row[0] not in names]

        async def purge(db: Connection) -> int:
            expired = "bot=$1 AND name=ANY($2) AND expires_at < $3"
            sql = deleting("record", expired, "name, key", PURGED_AT_ONCE)
            count = len(await db.fetch(sql, self.bot, others, now))
            # Also what was done in a future that a wrong clock once believed in: it would be kept for ever.
            for old, moment in (("done_at < $2", now - kept), ("done_at > $2", now + kept)):
                sql = deleting("inbox", f"bot=$1 AND {old}", "key", PURGED_AT_ONCE)
                count += len(await db.fetch(sql, self.bot, moment))
            return count

        return await self._writer.put(purge)

    # What is to happen later

    async def timers(self) -> list[Timer]:
        sql = "SELECT key, due_at, body FROM everclick.timer WHERE bot=$1 ORDER BY due_at"
        return [Timer(*row) for row in await self._read(sql)]

    async def fire(self, names: Sequence[str]) -> list[Event]:
        now, most = self._now(), bot.FIRED_AT_ONCE_MAX
        due, expired = "bot=$1 AND due_at <= $2", "bot=$1 AND expires_at <= $2 AND name=ANY($3)"
        tables = (f"EXISTS(SELECT FROM everclick.{each})" for each in (f"timer WHERE {due}", f"record WHERE {expired}"))
        if not await self._read(f"SELECT WHERE {' OR '.join(tables)}", now, [*names]):
            return []  # nothing is written as long as nothing is due

        async def fire(db: Connection) -> list[Event]:
            sql = deleting("timer", f"{due} ORDER BY due_at", "key", most, "due_at, t.key, body")
            found = [(key, body) for _, key, body in sorted(await db.fetch(sql, self.bot, now))]
            sql = deleting("record", expired, "name, key", most, f"t.{bot.RECORD.replace(', ', ', t.')}")
            ended = [bot.saved_from(row) for row in await db.fetch(sql, self.bot, now, [*names])]
            found += [(f"expiry:{saved.id.name}:{saved.id.key}", bot.write_json(saved)) for saved in ended]
            # A name of its own for each: a clock that went back, or a view that was renewed, comes there once more.
            events = [Event(EventKey(f"{key}@{secrets.token_hex(4)}"), body) for key, body in found]
            await self._run(db, Step, [Step("accept", now, *event) for event in events])
            return events

        return await self._writer.put(fire)
