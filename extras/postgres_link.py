"""The way to a PostgreSQL server and back, for postgres_store.py: connections, tables, and what to make of errors."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

import bot
from bot import CommitUnknownError, OperatorError, OutageError, StoreError
from extras import is_plain, place_of

log = logging.getLogger("everclick")

driver: Any = asyncpg  # it brings no types
pg: Any = asyncpg.exceptions
Connection: TypeAlias = Any
Work: TypeAlias = Callable[[Connection], Awaitable[Any]]

RETRY_PAUSE_MAX_S = 1.0  # between two attempts to connect
ATTEMPTS = 5  # at a transaction that another process's came in the way of

# After these it is not known what the server has done, or will do.
LOST = (OSError, pg.InterfaceError, pg.InternalClientError, pg.PostgresConnectionError, pg.OperatorInterventionError)
# After these it is known: nothing.
REFUSED = (
    pg.InsufficientResourcesError, pg.InvalidTransactionStateError, pg.PostgresSystemError, pg.InternalServerError,
    pg.InsufficientPrivilegeError, pg.InvalidAuthorizationSpecificationError, pg.InvalidCatalogNameError,
)  # fmt: skip
CROSSED = (pg.TransactionRollbackError, pg.UniqueViolationError)  # another process was faster; the next attempt sees it

REMEDIES: tuple[tuple[Any, str, str], ...] = (
    (pg.InvalidAuthorizationSpecificationError, "refuses this user", "Set user and password in STORE"),
    (pg.InvalidCatalogNameError, "has no such database", "Make it, or name another one in STORE"),
    (pg.InsufficientPrivilegeError, "does not let this user do that", "Give it the right to create a schema there"),
    (pg.TooManyConnectionsError, "has no connection left", "Raise its max_connections, or end what else uses it"),
    (pg.InsufficientResourcesError, "is out of space or memory", "Make room; nothing that was accepted is lost"),
    (pg.InvalidTransactionStateError, "does not take what was written", "Name the primary in STORE, not a standby"),
    (LOST, "cannot be reached", "See that it runs and that STORE has its address"),
    (Exception, "cannot be used", "See its log"),
)
SESSION = {
    "synchronous_commit": "on",
    "default_transaction_isolation": "read committed",
    "enable_seqscan": "off",  # a plan that was made while a table was small must not walk it when it is large
    "jit": "off",
    "standard_conforming_strings": "on",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}
# A connection that was lost may still be at work for its client. What it did is known only when it is gone.
END_OTHERS = """
    SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name=$1 AND pid <> pg_backend_pid()
"""


def explain(error: BaseException, place: str) -> str:
    """Return the sentence for an operator: problem, place, remedy."""
    _, problem, remedy = next(row for row in REMEDIES if isinstance(error, row[0]))
    return f"{place} {problem} ({text_of(error)}). {remedy}."


def text_of(error: BaseException) -> str:
    """Return what the error says, on one line."""
    return bot.redact(" ".join(str(error).split())[:300]) or type(error).__name__


async def hang_up(db: Connection) -> None:
    """Close a connection, which may be lost already."""
    with contextlib.suppress(*LOST):
        await db.close(timeout=1)
    db.terminate()


class PostgresLink:
    """One process's way to a server: makes its connections, and tells when the server goes away and comes back."""

    def __init__(self, url: str, owner: str, lease_s: float) -> None:
        self.place, self._url, self._owner, self._lease_s = place_of(url), url, owner, lease_s
        self._away = False

    async def connect(self, role: str) -> Connection:
        """Return a new connection when every earlier one in that role has ended. Raises what LOST and REFUSED list.

        Raises OperatorError when the URL cannot be read.
        """
        name = f"everclick {self._owner} {role}"
        # A process that is stopped in the middle of a transaction holds others up no longer than by its leases.
        idle = {"idle_in_transaction_session_timeout": f"{round(1_000 * self._lease_s)}", "application_name": name}
        try:
            if not is_plain(self._url):
                raise ValueError
            db = await driver.connect(self._url, timeout=self._lease_s, server_settings={**SESSION, **idle})
        except ValueError:  # its text may show the password
            wanted = "postgresql://user:password@host:5432/database, with what is special in the password as %40, say"
            raise OperatorError(f"STORE is no address of a PostgreSQL server. Write {wanted}.") from None
        try:
            async with asyncio.timeout(self._lease_s):
                while await db.fetchval(END_OTHERS, name):  # noqa: ASYNC110  # nobody tells of their end
                    await asyncio.sleep(0.02)
        except BaseException:
            db.terminate()
            raise
        return db

    def line(self, role: str, connect: Callable[[], Awaitable[Connection]] | None = None) -> Line:
        """Return a line, with what else its connections need. The one in the role "leases" is not waited for as long.

        A lease whose renewal is not answered before it ends is lost anyhow.
        """
        answer_s = self._lease_s * (1 if role == "leases" else 3)
        return Line(self, connect or functools.partial(self.connect, role), self._lease_s, answer_s)

    def note_silence(self, error: BaseException) -> None:
        if not self._away:
            log.warning("%s The bot goes on trying.", explain(error, self.place))
        self._away = True

    def note_answer(self) -> None:
        if self._away:
            log.info("%s can be reached again", self.place)
        self._away = False

    async def set_up(self) -> None:
        """Bring the tables to this version. Raises OperatorError, with nothing changed, when the server will not do."""
        try:
            db = await self.connect("setup")
            try:
                await look_at_settings(db, self.place)
                await migrate(db, self.place)
            finally:
                await hang_up(db)
        except (asyncpg.PostgresError, *LOST) as error:
            is_outage = isinstance(error, (*LOST, pg.TooManyConnectionsError))
            raise (OutageError if is_outage else OperatorError)(explain(error, self.place)) from error


class Line:
    """One connection, which is made anew when it was lost; for one caller at a time."""

    def __init__(
        self, link: PostgresLink, connect: Callable[[], Awaitable[Connection]], patience_s: float, answer_s: float
    ) -> None:
        self._link, self._connect, self._patience_s, self._answer_s = link, connect, patience_s, answer_s
        self._db: Connection = None
        self._down_since, self._pause_s, self._closed = 0.0, 0.0, False

    async def run(self, work: Work) -> Any:
        """Return what the work returns. Raises StoreError, with nothing done, when the server cannot be reached."""
        db = await self._connected()
        try:
            async with asyncio.timeout(self._answer_s):
                result = await work(db)
        except (*LOST, *REFUSED, asyncio.CancelledError) as error:  # in the middle of something, or of no more use
            self._drop(error)
            raise
        self._link.note_answer()
        return result

    async def read(self, work: Work) -> Any:
        """Return what the work returns, which changes nothing: when it is interrupted, it is done once more."""
        try:
            with contextlib.suppress(*LOST):
                return await self.run(work)
            return await self.run(work)
        except (*LOST, *REFUSED) as error:
            raise StoreError(explain(error, self._link.place)) from error

    async def write(self, work: Work, *, in_one_call: bool) -> Any:
        """Return what the work returns, which is in force then; it is one transaction, by itself when in one call.

        Raises StoreError when nothing was done, CommitUnknownError when it is not known what was done.
        """
        committing = False

        async def transaction(db: Connection) -> Any:
            nonlocal committing
            if committing := in_one_call:
                return await work(db)
            await db.execute("BEGIN")
            try:
                result = await work(db)
            except Exception as error:
                if not isinstance(error, LOST):
                    await db.execute("ROLLBACK")
                raise
            committing = True
            await db.execute("COMMIT")
            return result

        for attempt in range(ATTEMPTS):
            try:
                return await self.run(transaction)
            except (*LOST, *REFUSED) as error:
                if not committing or not isinstance(error, LOST):
                    raise StoreError(explain(error, self._link.place)) from error
                unknown = f"{self._link.place} may or may not have the last transaction"
                raise CommitUnknownError(f"{unknown} ({text_of(error)}). See its log.") from error
            except CROSSED:
                if attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def _connected(self) -> Connection:
        """Return the connection. One that is lost is made anew, with pauses, for as long as the patience lasts."""
        now = asyncio.get_running_loop().time
        while not self._db or self._db.is_closed():
            if self._closed:
                raise StoreError(f"{self._link.place} is closed.")
            self._down_since = self._down_since or now()
            await asyncio.sleep(self._pause_s)
            try:
                self._db = await self._connect()
            except (*LOST, *REFUSED) as error:
                self._drop(error)
                self._pause_s = min(2 * self._pause_s + 0.05, RETRY_PAUSE_MAX_S)
                if now() > self._down_since + self._patience_s:
                    raise StoreError(explain(error, self._link.place)) from error
        self._down_since = self._pause_s = 0.0
        return self._db

    def _drop(self, error: BaseException | None = None) -> None:
        db, self._db = self._db, None
        if db:
            db.terminate()
        if error and isinstance(error, LOST):
            self._link.note_silence(error)

    async def close(self) -> None:
        self._closed = True
        db, self._db = self._db, None
        if db:
            await hang_up(db)


async def look_at_settings(db: Connection, place: str) -> None:
    """Raise OperatorError when the server cannot keep what is written, and warn of what makes it lose it."""
    for setting in ("fsync", "full_page_writes", "synchronous_commit"):
        if (found := await db.fetchval(f"SHOW {setting}")) != "on":
            log.warning("%s has %s=%s: a power cut may lose what was accepted. Set it to on.", place, setting, found)
    if (encoding := await db.fetchval("SHOW server_encoding")) != "UTF8":
        raise OperatorError(f"{place} keeps text as {encoding}. Make a database with ENCODING 'UTF8'.")


def migrations() -> list[str]:
    """Return the steps from one version of the tables to the next."""
    text = Path(__file__).with_name("postgres_store.sql").read_text("utf-8")
    return text.split("\n-- Version ")[1:]


async def migrate(db: Connection, place: str) -> None:
    """Make the tables, or bring them to this version, all or nothing."""
    steps = await asyncio.to_thread(migrations)
    async with db.transaction():
        await db.execute("SELECT pg_advisory_xact_lock(hashtext('everclick'))")  # two may start at the same moment
        if not await db.fetchval("SELECT to_regnamespace('everclick')"):
            await db.execute("CREATE SCHEMA everclick")
        if not await db.fetchval("SELECT to_regclass('everclick.meta')"):
            await db.execute("CREATE TABLE everclick.meta AS SELECT 0 AS version")
        version = await db.fetchval("SELECT version FROM everclick.meta")
        if version > len(steps):
            newer = f"was written by a newer bot (tables of version {version}, this one knows {len(steps)})"
            raise OperatorError(f"{place} {newer}. Use that one, or set STORE to another database.")
        for step in steps[version:]:
            await db.execute(f"-- {step}")
        await db.execute("UPDATE everclick.meta SET version=$1", len(steps))


async def make_index(db: Connection, index: str, what: str) -> None:
    """Make an index, if there is none of that name that works, while everybody goes on writing."""
    while not await db.fetchval("SELECT pg_try_advisory_lock(hashtext('everclick index'))"):  # noqa: ASYNC110
        await asyncio.sleep(1)  # two that make one at the same time would wait for each other for ever
    if await db.fetchval("SELECT indisvalid FROM pg_index WHERE indexrelid=to_regclass($1)", f"everclick.{index}"):
        return
    await db.execute(f"DROP INDEX CONCURRENTLY IF EXISTS everclick.{index}")  # one that was not finished
    await db.execute(f"CREATE INDEX CONCURRENTLY {index} ON {what}")
