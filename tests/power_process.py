"""A store at work in a process of its own, for the tests that cut its power.

    python power_process.py PATH SYNCHRONOUS CHECKPOINT ROUNDS CLICKS

Everything that is done to the store's files, and every operation the store has called durable, goes to stdout in the
order it happened, as pickled `Step`s and `Told`s. SYNCHRONOUS and CHECKPOINT ("" for the store's own) take the
place of what the store asks SQLite for; in each round the store is opened, clicked by four workers and closed.
"""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import sys
import threading

from bot import BotId, Cursor, Event, EventKey, Failure, Place, RecordId, Saved, SQLiteStore
from tests import disk
from tests.disk import Told

BOT, WORKERS = BotId(1001), 4


one_at_a_time = threading.Lock()


def say(what: disk.Step | Told) -> None:
    data = memoryview(pickle.dumps(what))
    with one_at_a_time:
        while data:
            data = data[os.write(1, data) :]


def ask(step: disk.Step) -> int:
    if step.what != "sync":
        say(step)  # before it is done: what is told durable later must not come first
    return disk.OK


def tell(step: disk.Step) -> None:
    if step.what == "sync":
        say(step)


def at(worker: int, seq: int) -> Cursor:
    return Cursor(worker, "f", "session", seq, "wss://resume.test", b"{}")


class Worker:
    """Clicks on a record of its own. Every second number of its shard is an event, the others only move the cursor."""

    def __init__(self, number: int) -> None:
        self.number, self.seq, self.clicks, self.done = number, 0, 0, list[str]()
        self.place = Place(7, number, ephemeral=False)

    async def click(self, store: SQLiteStore) -> None:
        self.clicks += 1
        self.seq += 2
        store.move_cursor(at(self.number, self.seq - 1))
        body = b"x" * (100 + self.clicks * 1_237 % 9_000)
        event = Event(EventKey(f"{self.number}:{self.seq}"), body)
        await store.accept(event, at(self.number, self.seq))
        say(Told("accepted", self.number, self.seq))
        if self.clicks % 4 == 0:
            await store.fail(event, Failure("ValueError", "no such colour", "mybot.py:7"))
            say(Told("failed", self.number, self.seq))
        if self.clicks % 8 == 0:
            await store.retry_failed([event.key])
            say(Told("retried", self.number, self.seq))
        if self.clicks % 4 or self.clicks % 8 == 0:
            await self.apply(store, event.key)
            say(Told("done", self.number, self.seq))
        if self.clicks % 6 == 0:
            store.move_cursor(at(self.number, self.seq + 1))
            await store.flush()
            say(Told("flushed", self.number, self.seq + 1))

    async def apply(self, store: SQLiteStore, key: EventKey) -> None:
        version, names = len(self.done), ("view", "own")
        self.done.append(key)
        data = json.dumps(self.done).encode()
        ids = [RecordId(name, str(self.number)) for name in names]
        await store.commit([Saved(id, version, 1, data, 0, self.place, None) for id in ids], key)
        store.note_shown(ids[0], version + 1, self.place)


async def work(path: str, synchronous: str, checkpoint: str, rounds: int, clicks: int) -> None:
    workers = [Worker(number) for number in range(WORKERS)]
    for _ in range(rounds):
        store = SQLiteStore(path, BOT)
        await store.open()
        say(Told("opened"))
        if synchronous:
            await store._db.execute_fetchall(f"PRAGMA synchronous={synchronous}")
        if checkpoint:
            await store._db.execute_fetchall(f"PRAGMA wal_autocheckpoint={checkpoint}")

        async def keep_clicking(worker: Worker, store: SQLiteStore) -> None:
            for _ in range(clicks):
                await worker.click(store)

        await asyncio.gather(*(keep_clicking(worker, store) for worker in workers))
        await store.close()
        say(Told("closed"))


if __name__ == "__main__":
    disk.put_under_sqlite(ask, tell)
    path, synchronous, checkpoint, rounds, clicks = sys.argv[1:]
    asyncio.run(work(path, synchronous, checkpoint, int(rounds), int(clicks)))
