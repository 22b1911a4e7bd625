"""What only some bots need. bot.py works without this folder.

This file says what a store promises that several processes use at once, beyond what bot.Store promises.
"""

from __future__ import annotations

import contextlib
import re
import urllib.parse
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import bot


class Lease(NamedTuple):
    """The right to something of that name. `token` grows with every lease of the name: an older one is refused."""

    name: str
    token: int


class SharedStore(bot.Store):
    """A store that several processes of a bot have at the same time.

    An event belongs to the process that accepted, fired, retried or claimed it. `pending` returns this process's own,
    `release` forgets the runs of its own, `fail` raises StateConflictError for another's.

    When the server cannot be reached, what waits waits a little and then raises StoreError; what was under way raises
    CommitUnknownError where it may have happened: then `pending` knows. Later operations work again, but no cursor
    moves past what was refused: those of a shard raise StoreError until `cursor` was asked where its session resumes.
    """

    shared = True
    owner: str
    """The id of this process, another one for each store that is opened."""

    @abstractmethod
    async def open(self, *, visit: bool = False) -> None:
        """Make the store ready and register this process, which is renewed every third of `lease_s`.

        A visitor does so too. Raises OperatorError when the server cannot be used, OutageError when it is out of reach.
        """

    @abstractmethod
    async def close(self) -> None:
        """Write what waits, give up this process's unfinished events and its leases, and let everything go."""

    async def backup(self, file: Path) -> None:
        """Raise OperatorError: the server's own tools copy what it holds."""
        tools = "pg_dump --schema=everclick copies a PostgreSQL database, redis-cli --rdb what Redis holds"
        raise bot.OperatorError(f"{file} is not written: this makes copies of SQLite files alone. {tools}.")

    @abstractmethod
    async def claim_orphans(self) -> list[bot.Event]:
        """Take over the unfinished events of processes that are gone, return them in the order accepted.

        A process is gone when it has closed its store or has not been heard of for `lease_s`. Two processes that ask
        at the same time never get the same event.
        """

    @abstractmethod
    def lease(
        self, name: str, *, wait_s: float = 10.0, for_good: bool = False
    ) -> contextlib.AbstractAsyncContextManager[Lease]:
        """Hold the lease of that name, as the only one of all processes of the bot, while the block runs.

            async with store.lease("poll:7") as lease:
                ...
                await store.commit([record], event.key, fences=[lease])

        Who asks first is served first. Raises TimeoutError after `wait_s`. The lease is renewed while it is held, for
        at most `max_hold_s` or, with `for_good`, as long as the block runs; then it is lost, and so it is when this
        process cannot be heard of for `lease_s`.
        """

    @abstractmethod
    async def commit(
        self,
        records: Sequence[bot.Saved],
        done: bot.EventKey | None,
        timers: Sequence[bot.Timer] = (),
        *,
        fences: Sequence[Lease] = (),
    ) -> None:
        """Write the records, each as its version's successor, the timers, and that the event is applied, or nothing.

        Raises StateConflictError when the store has another version of a record, when one of the leases is no longer
        held, and when the event is another process's by now.
        """


HOSTS = re.compile(r"(([\w.-]+|\[[\da-fA-F:.%]+\])?(:\d+)?(,|$))*")


def is_plain(url: str) -> bool:
    """Return whether its parts are what they seem to be.

    An unescaped "/", "?", "#" or "@" in a password makes a part of it a host, whose name would be asked for.
    """
    with contextlib.suppress(ValueError):
        parts = urllib.parse.urlsplit(url)
        hosts = parts.netloc.rpartition("@")[2]
        return bool(url.count("@") == parts.netloc.count("@") <= 1 and "#" not in url and HOSTS.fullmatch(hosts))
    return False


def place_of(url: str) -> str:
    """Return the URL as messages may show it: without user, password and parameters."""
    if not is_plain(url):
        return f"the server of {url.partition(':')[0]}:// in STORE"
    parts = urllib.parse.urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
