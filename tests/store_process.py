"""A process of its own with a store open, for the tests that kill it or are refused by it.

    python store_process.py hold PATH    open the store and keep it until stdin ends
    python store_process.py fork PATH    the same, with a forked child that stays when this process is gone
    python store_process.py count PATH   for every line on stdin: a child that counts clicks until it is killed

What happens is said on stdout, a line each.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import time

from bot import BotId, Cursor, Event, EventKey, OperatorError, RecordId, Saved, SQLiteStore

BOT = BotId(1001)
WORKERS = 4


def say(line: object) -> None:
    os.write(1, f"{line}\n".encode())  # in one piece, whoever dies when


async def hold(path: str, *, fork: bool = False) -> None:
    store = SQLiteStore(path, BOT)
    try:
        await store.open()
    except OperatorError as error:
        say(error)
        return
    if fork and not os.fork():
        say(os.getpid())
        time.sleep(600)
        os._exit(0)
    say("open")
    await asyncio.to_thread(sys.stdin.read)
    await store.close()


def count_in_children(path: str) -> None:
    for _ in sys.stdin:
        child = os.fork()
        if not child:
            asyncio.run(count(path))
        say(child)
        os.waitpid(child, 0)
        say("dead")


async def count(path: str) -> None:
    store = SQLiteStore(path, BOT)
    await store.open()
    for event in await store.pending():
        await click(store, event)
    await asyncio.gather(*(keep_counting(store, worker) for worker in range(WORKERS)))


async def keep_counting(store: SQLiteStore, worker: int) -> None:
    """Accept and count clicks; a worker has a record and a shard of its own, and the shard's seq counts its events."""
    cursor = await store.cursor(worker, "f") or Cursor(worker, "f", "session", 0, "", b"")
    while True:
        event = Event(EventKey(f"{worker}:{secrets.token_hex(8)}"), b"{}")
        cursor = cursor._replace(seq=cursor.seq + 1)
        await store.accept(event, cursor)
        say(f"accepted {event.key}")
        await click(store, event)
        say(f"done {event.key}")


async def click(store: SQLiteStore, event: Event) -> None:
    id = RecordId("count", event.key[0])
    saved = await store.load(id) or Saved(id, 0, 1, b"0", 0, None, None)
    await store.commit([saved._replace(data=b"%d" % (int(saved.data) + 1))], event.key)


if __name__ == "__main__":
    what, path = sys.argv[1:]
    if what == "count":
        count_in_children(path)
    else:
        asyncio.run(hold(path, fork=what == "fork"))
