"""A process of its own with a shared store open, for the tests in which processes are killed, stopped or cut off.

    python shared_process.py obey URL LEASE_S     do what each line on stdin says, and answer with a line of JSON
    python shared_process.py storm URL LEASE_S    click until stdin ends or the process is killed

A storm says "accepted KEY" and "done KEY". Every click adds its key to the record it is on, under a lease that fences
the commit; it claims what other processes left, and does again what failed because the server could not be reached.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import secrets
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from bot import BotId, CommitUnknownError, Event, EventKey, RecordId, Saved, StateConflictError, StoreError

BOT = BotId(1001)
WORKERS, RECORDS = 4, 3


def open_shared(url: str, bot: BotId = BOT, **settings: Any) -> Any:
    """Return the store for a URL, not yet open."""
    if url.startswith("redis"):
        from extras.redis_store import RedisStore

        return RedisStore(url, bot, **settings)
    from extras.postgres_store import PostgresStore

    return PostgresStore(url, bot, **settings)


def say(line: object) -> None:
    os.write(1, f"{line}\n".encode())  # in one piece, whoever dies when


async def lines(pipe: Any) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader


async def add(store: Any, record: str, word: str, done: EventKey | None, fences: Any = ()) -> None:
    """Add a word to a record, and finish the event in the same commit."""
    id = RecordId("list", record)
    saved = await store.load(id) or Saved(id, 0, 1, b"[]", 0, None, None)
    words = [*json.loads(saved.data), word]
    await store.commit([saved._replace(data=json.dumps(words).encode())], done, fences=fences)


class Obeying:
    """Each method is a command."""

    def __init__(self, store: Any) -> None:
        self.store, self.leases, self.stack = store, dict[str, Any](), contextlib.AsyncExitStack()

    async def accept(self, key: str) -> int:
        return await self.store.accept(Event(EventKey(key), b"{}"), None)

    async def pending(self) -> list[str]:
        return [event.key for event in await self.store.pending()]

    async def claim(self) -> list[str]:
        return [event.key for event in await self.store.claim_orphans()]

    async def lease(self, name: str) -> int:
        """Hold a lease until the process ends."""
        self.leases[name] = await self.stack.enter_async_context(self.store.lease(name, wait_s=30))
        return self.leases[name].token

    async def add(self, record: str, word: str, key: str, lease: str = "") -> str:
        """Add a word to a record and finish the event of that key ("-": none), under a lease that is held."""
        done = None if key == "-" else EventKey(key)
        await add(self.store, record, word, done, [self.leases[lease]] if lease else [])
        return "added"


async def obey(url: str, lease_s: float) -> None:
    store = open_shared(url, lease_s=lease_s)
    await store.open()
    obeying, reader = Obeying(store), await lines(sys.stdin)
    say(json.dumps(store.owner))
    while words := (await reader.readline()).decode().split():
        try:
            answer = await getattr(obeying, words[0])(*words[1:])
        except Exception as error:
            answer = type(error).__name__
        say(json.dumps(answer))
    await store.close()


async def again(work: Callable[[], Awaitable[Any]]) -> Any:
    """Return what the work returns, when the server can be reached again."""
    while True:
        try:
            return await work()
        except StoreError as error:
            say(f"{'unknown' if isinstance(error, CommitUnknownError) else 'refused'} {error}")
            await asyncio.sleep(0.05)


class Storm:
    """Clicks, each of which is run by one task at a time: the one it is in `running` for."""

    def __init__(self, store: Any) -> None:
        self.store, self.running, self.ending = store, set[EventKey](), False

    async def click(self) -> None:
        """Click until the end. A copy of the event is sent again until the store has it."""
        while not self.ending:
            key = EventKey(f"{random.randrange(RECORDS)}:{secrets.token_hex(8)}")
            self.running.add(key)
            new = await again(lambda key=key: self.store.accept(Event(key, b"{}"), None))
            say(f"accepted {key}")
            if not new and key not in await again(self.pending):  # it was in, and another process has it by now
                self.running.discard(key)
                continue
            await self.run(key)

    async def pending(self) -> list[EventKey]:
        return [event.key for event in await self.store.pending()]

    async def run(self, key: EventKey) -> None:
        """Run the event to its end: it is applied, or another process has it."""
        try:
            while await again(lambda: self.attempt(key)):
                if key not in await again(self.pending):
                    return
            say(f"done {key}")
        finally:
            self.running.discard(key)

    async def attempt(self, key: EventKey) -> bool:
        """Return whether the click must be tried again."""
        try:
            async with self.store.lease(f"list:{key[0]}") as lease:
                await add(self.store, key[0], key, key, [lease])
        except (StateConflictError, CommitUnknownError, TimeoutError):
            return True
        return False

    async def claim(self) -> None:
        """Take over what others left, and what this process accepted without knowing."""
        while not self.ending:
            await again(self.store.claim_orphans)
            left = [key for key in await again(self.pending) if key not in self.running]
            self.running.update(left)
            await asyncio.gather(*(self.run(key) for key in left))
            await asyncio.sleep(0.1)


async def storm(url: str, lease_s: float) -> None:
    store = open_shared(url, lease_s=lease_s)
    await store.open()
    say("open")
    clicks = Storm(store)
    async with asyncio.TaskGroup() as tasks:
        for work in (clicks.click,) * WORKERS + (clicks.claim,):
            tasks.create_task(work())
        await (await lines(sys.stdin)).read()
        clicks.ending = True
    await store.close()
    say("closed")


if __name__ == "__main__":
    asyncio.run({"obey": obey, "storm": storm}[sys.argv[1]](sys.argv[2], float(sys.argv[3])))
