"""What postgres_store.py says to the database: operations that go together in one call, and the longer statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import bot
from bot import Cursor, Saved, StateConflictError, Timer
from extras import Lease


class Step(NamedTuple):
    """A write that the database's function `apply` does, many of them in one call."""

    kind: str
    at: float
    key: str | None = None
    body: bytes | None = None
    runs: int | None = None
    place: Cursor | None = None
    records: Sequence[tuple[Any, ...]] = ()
    timers: Sequence[Timer] = ()
    fences: Sequence[Lease] = ()


class Ask(NamedTuple):
    """What the function `queue` does, many in one call: ask for a lease, or (None) give it or the wait for it up."""

    name: str
    ask: int | None
    hold_s: float | None = None


def size_of(operation: object) -> int:
    """Return about how many bytes are sent for it."""
    if not isinstance(operation, Step):
        return 0
    return len(operation.body or b"") + sum(len(record[4]) for record in operation.records)


def columns(saved: Saved) -> tuple[Any, ...]:
    """Return the record as the database's type `saved`."""
    place = saved.place or bot.NOWHERE
    return (*saved.id, saved.version, saved.model, saved.data, saved.shown, *place, saved.expires_at)


def outcome(step: Step, code: int) -> Any:
    """Return what a step came to, as `apply` says it: how many rows, or a StateConflictError."""
    if step.kind != "change" or code == 0:
        return code
    if code == -1:
        return not_ours(step.key)
    if code == -2:
        return StateConflictError("One of the leases is no longer held.")
    name, key, *_ = step.records[code - 1]
    return StateConflictError(f"{name} {key} was changed since it was loaded.")


def not_ours(key: str | None) -> StateConflictError:
    return StateConflictError(f"{key} is another process's event by now.")


# In all of them $1 is the bot's id.
REGISTER = (
    "INSERT INTO everclick.process VALUES($1, $2, clock_timestamp() + $3 * interval '1 second')"
    " ON CONFLICT(bot, id) DO UPDATE SET until=excluded.until"
)
RENEW = (
    "WITH held AS (SELECT name, ask FROM everclick.lease WHERE bot=$1 AND owner=$2 AND name=ANY($4) AND ask=ANY($5)"
    " AND until > clock_timestamp() ORDER BY name FOR UPDATE) UPDATE everclick.lease l"
    " SET until=least(clock_timestamp() + $3 * interval '1 second', ends) FROM held"
    " WHERE l.bot=$1 AND l.name=held.name RETURNING l.ask"
)
# From one owner, or name, to the next by the index, past all that is in between.
GONE = """
    WITH RECURSIVE o(owner) AS (
        (SELECT owner FROM everclick.inbox WHERE bot=$1 AND done_at IS NULL ORDER BY owner LIMIT 1)
        UNION ALL SELECT (SELECT i.owner FROM everclick.inbox i WHERE bot=$1 AND done_at IS NULL AND i.owner > o.owner
            ORDER BY i.owner LIMIT 1) FROM o WHERE o.owner IS NOT NULL)
    SELECT owner FROM o WHERE owner <> $2 AND NOT EXISTS(SELECT FROM everclick.process
        WHERE bot=$1 AND id=owner AND (until > clock_timestamp() OR $3))
"""
NAMES = """
    WITH RECURSIVE n(name) AS (
        (SELECT name FROM everclick.record WHERE bot=$1 ORDER BY name LIMIT 1)
        UNION ALL SELECT (SELECT r.name FROM everclick.record r WHERE bot=$1 AND r.name > n.name
            ORDER BY r.name LIMIT 1) FROM n WHERE n.name IS NOT NULL)
    SELECT name FROM n WHERE name IS NOT NULL
"""
CLAIM = (
    "WITH orphan AS (SELECT key FROM everclick.inbox WHERE bot=$1 AND owner=ANY($3) AND done_at IS NULL"
    " FOR UPDATE SKIP LOCKED) UPDATE everclick.inbox i SET owner=$2 FROM orphan WHERE i.bot=$1 AND i.key=orphan.key"
    " RETURNING i.id, i.key, i.body, i.runs"
)
FORGET_THE_GONE = """
    WITH gone AS (DELETE FROM everclick.process WHERE bot=$1 AND until < clock_timestamp() RETURNING id),
        ended AS (DELETE FROM everclick.lease WHERE bot=$1 AND until < clock_timestamp())
    DELETE FROM everclick.waiter WHERE bot=$1 AND owner IN (SELECT id FROM gone)
"""
FAIL = (
    "INSERT INTO everclick.failed(bot, key, body, failed_at, runs, type, text, place, applied)"
    " VALUES($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT(bot, key) DO UPDATE SET id=DEFAULT,"
    " body=excluded.body, failed_at=excluded.failed_at, runs=excluded.runs, type=excluded.type, text=excluded.text,"
    " place=excluded.place, applied=excluded.applied"
)
TRIM = (
    "DELETE FROM everclick.failed WHERE bot=$1 AND id <="
    " (SELECT id FROM everclick.failed WHERE bot=$1 ORDER BY id DESC LIMIT 1 OFFSET $2)"
)
RETRY = """
    WITH taken AS (DELETE FROM everclick.failed WHERE bot=$1 AND ($2 OR key=ANY($3)) RETURNING *),
    back AS (INSERT INTO everclick.inbox(bot, key, body, accepted_at, runs, owner)
        SELECT bot, key, body, failed_at, 0, $4 FROM taken WHERE NOT applied ORDER BY id
        ON CONFLICT(bot, key) DO UPDATE SET body=excluded.body, runs=0, done_at=NULL, owner=excluded.owner)
    SELECT FROM taken
"""
FORGET = """
    WITH gone AS (DELETE FROM everclick.cursor WHERE bot=$1 AND shard=$2 RETURNING saved_at)
    INSERT INTO everclick.gap(bot, shard, since, until, why) SELECT $1, $2, saved_at, $3, $4 FROM gone
"""
PIN = """
    INSERT INTO everclick.pin AS p VALUES($1, $2, $3, $4) ON CONFLICT(bot, name) DO UPDATE
        SET key=CASE WHEN $5 THEN excluded.key ELSE p.key END,
        pinned_at=CASE WHEN $5 THEN excluded.pinned_at ELSE p.pinned_at END RETURNING key
"""
FIGURES = """
    SELECT count(*), min(accepted_at), (SELECT count(*) FROM everclick.failed WHERE bot=$1),
        (SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class WHERE relkind='r'
            AND relnamespace='everclick'::regnamespace)
        FROM everclick.inbox WHERE bot=$1 AND done_at IS NULL
"""


def deleting(table: str, where: str, key: str, most: int, returning: str = "1", *, skip_locked: bool = True) -> str:
    """Return the statement that deletes at most so many rows; what another process is at can be left to it."""
    same = " AND ".join(f"t.{column}=chosen.{column}" for column in key.split(", "))
    chosen = f"SELECT {key} FROM everclick.{table} WHERE {where} LIMIT {most} FOR UPDATE {'SKIP LOCKED' * skip_locked}"
    delete = f"DELETE FROM everclick.{table} t USING chosen WHERE t.bot=$1 AND {same} RETURNING {returning}"
    return f"WITH chosen AS ({chosen}) {delete}"


def quoted(text: str) -> str:
    """Return the text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


def index_by(field: str, name: str) -> str:
    """Return what CREATE INDEX is told, so that the records of that name are found by the height of a field."""
    by = f"(bot, everclick.height(data, {quoted(field)}) DESC NULLS LAST, key)"
    return f"everclick.record{by} WHERE name={quoted(name)}"
