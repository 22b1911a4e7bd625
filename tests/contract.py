"""What every store promises, as tests. They use `Store` alone, so that they fit a store of your own:

    class TestMyStore(StoreContract):
        @pytest.fixture
        async def open_store(self, clock):
            async with opener(lambda bot, max_failed: MyStore(bot, max_failed=max_failed, now=clock)) as open_store:
                yield open_store

`open_store(bot, max_failed=…)` opens one more store on the same data; the one that was open for that bot is closed
first. Set `ends_with_process` for a store that keeps nothing once it is closed.

A store that several processes have at once (see SharedStore in extras/) promises more, and what it promises of outages
needs a server that can be killed:

    class TestMySharedStore(SharedStoreContract):
        @pytest.fixture
        def server(self, my_server: Server) -> Server:
            return my_server

and the same with SharedStoreOutages.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeGuard, TypeVar

import msgspec
import pytest

from bot import (
    DAY,
    BotId,
    CommitUnknownError,
    Cursor,
    Event,
    EventKey,
    Failure,
    Gone,
    Place,
    Query,
    RecordId,
    Saved,
    StateConflictError,
    Store,
    StoreError,
    Timer,
)

if TYPE_CHECKING:  # what may be deleted is not needed for the other stores
    from servers import Proxy, Server

    from extras import SharedStore

T = TypeVar("T")
BOT, OTHER_BOT = BotId(1001), BotId(2002)
PLACE = Place(2**63 - 1, 2**63 - 2, ephemeral=False)
BROKEN = Failure("ValueError", "no such colour", "mybot.py:7")


class Clock:
    """Seconds since 1970, moved by hand."""

    def __init__(self) -> None:
        self.seconds = 1_700_000_000.0

    def __call__(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        self.seconds += seconds


class OpenStore(Protocol):
    async def __call__(self, bot: BotId = BOT, *, max_failed: int = 10_000) -> Store: ...


@contextlib.asynccontextmanager
async def opener(make: Callable[[BotId, int], Store]) -> AsyncIterator[OpenStore]:
    """Open stores that `make` returns, at most one per bot at a time, and close them all at the end."""
    opened: dict[BotId, Store] = {}

    async def open_store(bot: BotId = BOT, *, max_failed: int = 10_000) -> Store:
        if bot in opened:
            await opened.pop(bot).close()
        store = make(bot, max_failed)
        await store.open()
        opened[bot] = store
        if is_shared(store):
            await store.claim_orphans()  # as the bot does when it starts
        return store

    try:
        yield open_store
    finally:
        for store in opened.values():
            await store.close()


def is_shared(store: Store) -> TypeGuard[SharedStore]:
    """Return whether several processes may have the store at once."""
    return getattr(store, "shared", False)


def event(number: object, body: bytes = b"{}", runs: int = 1) -> Event:
    return Event(EventKey(f"interaction:{number}"), body, runs)


def record(key: str = "k", version: int = 0, data: bytes = b"{}", **more: Any) -> Saved:
    return Saved(RecordId("poll", key), version, 1, data, 0, None, None)._replace(**more)


def at(seq: int, session: str = "session-a", *, shard: int = 0, fingerprint: str = "f") -> Cursor:
    return Cursor(shard, fingerprint, session, seq, "wss://resume.test", b'{"id":"1"}')


async def accept(store: Store, what: Event | None, cursor: Cursor | None = None) -> int:
    """Accept, whether the store refuses at once or in what is awaited."""
    return await store.accept(what, cursor)


async def keys(store: Store) -> list[str]:
    """Return the numbers of the pending events."""
    return [each.key.removeprefix("interaction:") for each in await store.pending()]


async def purge_all(store: Store) -> int:
    """Purge in steps, as the running bot does, and return how many rows went."""
    total = 0
    while step := await store.purge():
        total += step
    return total


class StoreContract:
    """The promises. A subclass gives `open_store`."""

    ends_with_process: ClassVar[bool] = False

    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    async def open_store(self, clock: Clock) -> AsyncIterator[OpenStore]:
        raise NotImplementedError("a subclass says how its store is opened")
        yield

    @pytest.fixture
    async def store(self, open_store: OpenStore) -> Store:
        return await open_store()

    # Events

    async def test_a_fresh_store_is_empty(self, store: Store) -> None:
        assert (await store.pending(), await store.failed(), await store.behind()) == ([], [], [])
        assert (await store.load(RecordId("poll", "k")), await store.cursor(0, "f")) == (None, None)
        assert await store.purge() == 0

    async def test_an_accepted_event_is_pending_until_it_is_done(self, store: Store) -> None:
        assert await accept(store, event(1, b'{"a":"\xc3\xa9\\u0000"}')) == 1
        assert await store.pending() == [event(1, b'{"a":"\xc3\xa9\\u0000"}')]
        await store.commit([], event(1).key)
        assert await store.pending() == []

    async def test_an_event_comes_back_byte_for_byte(self, store: Store) -> None:
        odd = Event(EventKey("hook:grüße/'\"%_\\:🎉:" + "k" * 500), bytes(range(256)) * 4_000, 0)
        await accept(store, odd)
        assert await store.pending() == [odd]

    async def test_events_wait_in_the_order_of_the_calls(self, store: Store) -> None:
        await asyncio.gather(*(store.accept(event(number), None) for number in reversed(range(600))))
        assert await keys(store) == [str(number) for number in reversed(range(600))]

    async def test_a_copy_is_known_while_the_event_waits(self, store: Store) -> None:
        await accept(store, event(1, b"first"))
        assert await accept(store, event(1, b"copy", runs=7)) == 0
        assert await store.pending() == [event(1, b"first")]

    async def test_a_copy_is_known_after_the_event_is_done(self, store: Store) -> None:
        await accept(store, event(1))
        await store.commit([], event(1).key)
        assert await accept(store, event(1)) == 0
        assert await store.pending() == []

    async def test_a_copy_is_known_after_the_event_failed(self, store: Store) -> None:
        await accept(store, event(1))
        await store.fail(event(1), BROKEN)
        assert await accept(store, event(1)) == 0
        assert await store.pending() == []

    async def test_of_copies_that_come_at_once_one_is_accepted(self, store: Store) -> None:
        accepted = await asyncio.gather(*(store.accept(event(number % 5), None) for number in range(100)))
        assert accepted == [1] * 5 + [0] * 95
        assert await keys(store) == ["0", "1", "2", "3", "4"]

    async def test_a_done_key_is_kept_a_day_and_then_purged(self, store: Store, clock: Clock) -> None:
        await accept(store, event(1))
        clock.advance(DAY)
        await store.commit([], event(1).key)  # the day begins when the event is done
        clock.advance(DAY - 1)
        assert await purge_all(store) == 0
        assert await accept(store, event(1)) == 0
        clock.advance(2)
        assert await purge_all(store) == 1
        assert await accept(store, event(1)) == 1

    async def test_a_waiting_event_is_never_purged(self, store: Store, clock: Clock) -> None:
        await accept(store, event(1))
        clock.advance(1_000 * DAY)
        assert await purge_all(store) == 0
        assert await keys(store) == ["1"]

    async def test_purging_in_steps_ends_when_everything_old_is_gone(self, store: Store, clock: Clock) -> None:
        new = [record(f"k{number}", expires_at=clock() + 60) for number in range(1_200)]
        await asyncio.gather(*(store.accept(event(number), None) for number in range(1_200)))
        await asyncio.gather(*(store.commit([each], event(number).key) for number, each in enumerate(new)))
        await accept(store, event("late"))
        clock.advance(2 * DAY)
        assert await purge_all(store) == 2_400
        assert await keys(store) == ["late"]
        assert await accept(store, event(7)) == 1

    async def test_runs_are_counted(self, store: Store) -> None:
        await accept(store, event("waits", runs=0))
        await accept(store, event("runs", runs=1))
        await store.begin(event("waits").key)
        await store.begin(event("waits").key)
        assert [each.runs for each in await store.pending()] == [2, 1]

    async def test_after_a_clean_stop_runs_are_forgotten(self, store: Store) -> None:
        await accept(store, event(1, runs=4))
        await accept(store, event(2, runs=0))
        await store.release()
        assert await store.pending() == [event(1, runs=0), event(2, runs=0)]

    # The failed list

    async def test_a_failed_event_is_on_the_list_and_waits_no_more(self, store: Store, clock: Clock) -> None:
        await accept(store, event(1, runs=0))
        await store.begin(event(1).key)
        clock.advance(5)
        await store.commit([], event(1).key)
        await store.fail(event(1), BROKEN)
        [entry] = await store.failed()
        assert entry == (event(1).key, clock(), 1, True, BROKEN)
        assert await store.pending() == []

    async def test_the_failed_list_is_told_oldest_first_and_keeps_the_newest(self, open_store: OpenStore) -> None:
        store = await open_store(max_failed=3)
        for number in range(5):
            await accept(store, event(number))
            await store.fail(event(number), BROKEN)
        assert [entry.key for entry in await store.failed()] == [event(number).key for number in (2, 3, 4)]

    async def test_failures_that_come_at_once_are_all_kept_up_to_the_limit(self, open_store: OpenStore) -> None:
        store = await open_store(max_failed=10)
        await asyncio.gather(*(store.accept(event(number), None) for number in range(30)))
        await asyncio.gather(*(store.fail(event(number), BROKEN) for number in range(30)))
        assert [entry.key for entry in await store.failed()] == [event(number).key for number in range(20, 30)]
        assert await store.pending() == []

    async def test_a_failure_is_kept_longer_than_a_day(self, store: Store, clock: Clock) -> None:
        await accept(store, event(1))
        await store.fail(event(1), BROKEN)
        clock.advance(400 * DAY)
        await purge_all(store)
        assert len(await store.failed()) == 1

    async def failing(self, store: Store, *numbers: int, applied: bool = False) -> None:
        for number in numbers:
            await accept(store, event(number, b'{"n":1}', runs=3))
            if applied:
                await store.commit([], event(number).key)
            await store.fail(event(number, b'{"n":1}'), BROKEN)

    async def test_a_retried_event_waits_as_if_it_were_new(self, store: Store) -> None:
        await self.failing(store, 1)
        assert await store.retry_failed([event(1).key]) == 1
        assert await store.pending() == [event(1, b'{"n":1}', runs=0)]
        assert await store.failed() == []
        assert await accept(store, event(1)) == 0

    async def test_a_retried_event_that_fails_again_is_on_the_list_again(self, store: Store) -> None:
        await self.failing(store, 1, 2)
        await store.retry_failed([event(1).key])
        await store.begin(event(1).key)
        await store.fail(event(1), Failure("TypeError", "again", "mybot.py:8"))
        assert [(each.key, each.runs, each.failure.type) for each in await store.failed()] == [
            (event(2).key, 3, "ValueError"),
            (event(1).key, 1, "TypeError"),
        ]

    async def test_an_event_can_be_retried_after_its_key_is_purged(self, store: Store, clock: Clock) -> None:
        await self.failing(store, 1)
        clock.advance(2 * DAY)
        await purge_all(store)
        assert await store.retry_failed([]) == 1
        assert await store.pending() == [event(1, b'{"n":1}', runs=0)]

    async def test_an_event_that_was_applied_is_not_applied_again_by_a_retry(self, store: Store) -> None:
        await self.failing(store, 1, applied=True)
        assert await store.retry_failed([]) == 1
        assert (await store.pending(), await store.failed()) == ([], [])

    async def test_retry_and_discard_take_the_named_events_or_all(self, store: Store) -> None:
        await self.failing(store, *range(6))
        assert await store.retry_failed([event(1).key, event(4).key, "interaction:none"]) == 2
        assert await store.discard_failed([event(0).key, "interaction:none"]) == 1
        assert await keys(store) == ["1", "4"]
        assert [entry.key for entry in await store.failed()] == [event(number).key for number in (2, 3, 5)]
        assert await store.discard_failed([]) == 3
        assert await store.retry_failed([]) == 0
        assert await keys(store) == ["1", "4"]

    async def test_a_copy_of_a_discarded_event_is_still_known(self, store: Store) -> None:
        await self.failing(store, 1)
        await store.discard_failed([])
        assert await accept(store, event(1)) == 0

    # Records

    async def test_a_saved_record_comes_back_with_version_one(self, store: Store, clock: Clock) -> None:
        new = record(data=bytes(range(256)), model=3, expires_at=clock() + 60, place=PLACE)
        await store.commit([new], None)
        assert await store.load(new.id) == new._replace(version=1, shown=1)

    async def test_every_save_is_the_successor_of_the_version_it_came_from(self, store: Store) -> None:
        for version in range(4):
            await store.commit([record(version=version, data=b"%d" % version, model=version)], None)
        saved = await store.load(record().id)
        assert saved
        assert (saved.version, saved.model, saved.data) == (4, 3, b"3")

    async def test_records_are_told_apart_by_name_and_key(self, store: Store) -> None:
        ids = [
            RecordId(name, key)
            for name in ("a", "ab", "a:b", "A", "")
            for key in ("b", "bc", "b:c", "", "ü", "%", "_", "\x01", "🎉" * 50)
        ]
        for number, id in enumerate(ids):
            await store.commit([record(id=id, data=b"%d" % number)], None)
        for number, id in enumerate(ids):
            saved = await store.load(id)
            assert saved
            assert (saved.id, saved.data) == (id, b"%d" % number)

    async def test_the_names_of_all_records_are_told_but_for_the_bots_own(self, store: Store) -> None:
        for name, key in (("poll", "1"), ("ab", "x"), ("a", "b"), ("a", "c"), ("_claim", "k"), ("a:b", ""), ("ü", "1")):
            await store.commit([record(id=RecordId(name, key))], None)
        assert sorted(await store.names()) == ["a", "a:b", "ab", "poll", "ü"]

    async def test_a_large_state_comes_back_whole(self, store: Store) -> None:
        await store.commit([record(data=b"x" * 3_000_000)], None)
        saved = await store.load(record().id)
        assert saved
        assert saved.data == b"x" * 3_000_000

    @pytest.mark.parametrize("version", [0, 1, 3, 99])
    async def test_a_save_from_another_version_is_refused(self, store: Store, version: int) -> None:
        await store.commit([record(data=b"one")], None)
        await store.commit([record(version=1, data=b"two")], None)
        with pytest.raises(StateConflictError):
            await store.commit([record(version=version, data=b"lost")], None)
        assert await store.load(record().id) == record(version=2, data=b"two", shown=1)

    async def test_a_save_of_what_is_not_there_is_refused(self, store: Store) -> None:
        with pytest.raises(StateConflictError):
            await store.commit([record(version=1)], None)
        assert await store.load(record().id) is None

    @pytest.mark.parametrize("stale", [0, 1, 2])
    async def test_a_conflict_on_one_record_writes_none_and_leaves_the_event(self, store: Store, stale: int) -> None:
        await accept(store, event(1))
        await store.commit([record("a"), record("b"), record("c")], None)
        change = [record(key, version=1, data=b"new") for key in "abc"]
        change[stale] = change[stale]._replace(version=7)
        with pytest.raises(StateConflictError):
            await store.commit([*change, record("fresh")], event(1).key)
        for key in "abc":
            assert await store.load(record(key).id) == record(key, version=1, shown=1)
        assert await store.load(record("fresh").id) is None
        assert await keys(store) == ["1"]

    async def test_a_conflict_does_not_touch_what_is_written_beside_it(self, store: Store) -> None:
        await store.commit([record("a")], None)
        results = await asyncio.gather(
            store.commit([record("b")], None),
            store.commit([record("a", version=5)], None),
            store.commit([record("a", version=1, data=b"won")], None),
            store.commit([record("a", version=1, data=b"late")], None),
            accept(store, event(1)),
            return_exceptions=True,
        )
        assert [type(each) for each in results] == [type(None), StateConflictError, type(None), StateConflictError, int]
        assert await store.load(record("a").id) == record("a", version=2, data=b"won", shown=1)
        assert await store.load(record("b").id)
        assert await keys(store) == ["1"]

    async def test_every_one_of_many_concurrent_changes_counts_once(self, store: Store) -> None:
        await store.commit([record(data=b"0")], None)

        async def increment() -> None:
            while True:
                saved = await store.load(record().id)
                assert saved
                with contextlib.suppress(StateConflictError):
                    return await store.commit([saved._replace(data=b"%d" % (int(saved.data) + 1))], None)

        await asyncio.gather(*(increment() for _ in range(40)))
        saved = await store.load(record().id)
        assert saved
        assert (saved.data, saved.version) == (b"40", 41)

    async def test_several_records_and_the_event_are_written_together(self, store: Store) -> None:
        await accept(store, event(1))
        await store.commit([record("a", data=b"a"), record("b", data=b"b")], event(1).key)
        assert [await store.load(record(key).id) for key in "ab"] == [
            record(key, version=1, data=key.encode(), shown=1) for key in "ab"
        ]
        assert await store.pending() == []

    async def test_a_place_stays_when_a_later_save_names_none(self, store: Store) -> None:
        await store.commit([record(place=PLACE)], None)
        await store.commit([record(version=1)], None)
        saved = await store.load(record().id)
        assert saved
        assert saved.place == PLACE

    # Records that expire

    async def test_an_expired_record_is_not_there(self, store: Store, clock: Clock) -> None:
        await store.commit([record(expires_at=clock() + 60)], None)
        clock.advance(59)
        assert await store.load(record().id)
        clock.advance(1)
        assert await store.load(record().id) is None

    async def test_a_new_record_may_take_an_expired_ones_place(self, store: Store, clock: Clock) -> None:
        await store.commit([record(data=b"old", expires_at=clock() + 60, place=PLACE)], None)
        await store.commit([record(version=1, expires_at=clock() + 60)], None)
        clock.advance(61)
        await store.commit([record(data=b"new")], None)
        assert await store.load(record().id) == record(version=1, data=b"new", shown=1)

    async def test_a_change_of_what_expired_meanwhile_is_refused(self, store: Store, clock: Clock) -> None:
        await store.commit([record(expires_at=clock() + 60)], None)
        clock.advance(61)
        with pytest.raises(StateConflictError):
            await store.commit([record(version=1)], None)

    async def test_a_save_sets_the_expiry_anew(self, store: Store, clock: Clock) -> None:
        await store.commit([record(expires_at=clock() + 60)], None)
        await store.commit([record(version=1, expires_at=clock() + 600)], None)
        clock.advance(599)
        assert await store.load(record().id)
        await store.commit([record(version=2, expires_at=None)], None)
        clock.advance(1_000 * DAY)
        assert await purge_all(store) == 0
        assert await store.load(record().id)

    async def test_only_expired_records_are_purged(self, store: Store, clock: Clock) -> None:
        await store.commit([record("old", expires_at=clock() + 60), record("young", expires_at=clock() + 600)], None)
        await store.commit([record("forever")], None)
        clock.advance(61)
        assert await purge_all(store) == 1
        assert await store.load(record("young").id)
        assert await store.load(record("forever").id)

    # What messages show

    async def test_a_record_is_behind_when_its_message_shows_an_older_version(self, store: Store) -> None:
        await store.commit([record()], None)
        store.note_shown(record().id, 1, PLACE)
        await store.flush()
        assert await store.behind() == []
        await store.commit([record(version=1, data=b"new")], None)
        behind = record(version=2, data=b"new", shown=1, place=PLACE)
        assert await store.behind() == [behind]
        store.note_shown(record().id, 2, None)
        await store.flush()
        assert await store.behind() == []
        assert await store.load(record().id) == behind._replace(shown=2)

    async def test_a_record_without_a_message_is_not_behind(self, store: Store) -> None:
        await store.commit([record()], None)
        await store.commit([record(version=1)], None)
        assert await store.behind() == []

    async def test_a_version_that_was_shown_while_a_newer_was_saved_is_still_behind(self, store: Store) -> None:
        await store.commit([record(place=PLACE)], None)
        for version in (1, 2, 3):
            await store.commit([record(version=version)], None)
        store.note_shown(record().id, 2, None)
        await store.flush()
        assert [(each.version, each.shown) for each in await store.behind()] == [(4, 2)]

    @pytest.mark.parametrize("apart", [True, False])
    async def test_what_is_shown_never_goes_back(self, store: Store, apart: bool) -> None:
        await store.commit([record(place=PLACE)], None)
        for version in (1, 2, 3):
            await store.commit([record(version=version)], None)
        for version in (3, 4, 2):
            store.note_shown(record().id, version, None)
            if apart:
                await store.flush()
        await store.flush()
        assert await store.behind() == []

    async def test_notes_of_version_and_place_do_not_push_each_other_out(self, store: Store) -> None:
        await store.commit([record()], None)
        await store.commit([record(version=1)], None)
        store.note_shown(record().id, 1, PLACE)
        store.note_shown(record().id, 2, None)
        await store.flush()
        assert await store.load(record().id) == record(version=2, shown=2, place=PLACE)

    async def test_an_ephemeral_place_comes_back_as_one(self, store: Store) -> None:
        await store.commit([record()], None)
        store.note_shown(record().id, 1, PLACE._replace(ephemeral=True))
        await store.flush()
        saved = await store.load(record().id)
        assert saved
        assert saved.place == PLACE._replace(ephemeral=True)

    async def test_an_expired_record_is_not_behind(self, store: Store, clock: Clock) -> None:
        await store.commit([record(place=PLACE)], None)
        await store.commit([record(version=1, expires_at=clock() + 60)], None)
        clock.advance(61)
        assert await store.behind() == []

    # The cursor

    async def test_a_cursor_moves_with_the_event_it_came_with(self, store: Store) -> None:
        await accept(store, event(1), at(7))
        assert await store.cursor(0, "f") == at(7)

    async def test_a_cursor_moves_without_an_event_and_with_a_copy(self, store: Store) -> None:
        await accept(store, event(1), at(7))
        await accept(store, None, at(8))
        assert await store.cursor(0, "f") == at(8)
        assert await accept(store, event(1), at(9)) == 0
        assert await store.cursor(0, "f") == at(9)

    @pytest.mark.parametrize("way", ["accepted accepted", "accepted noted", "noted accepted", "noted noted"])
    @pytest.mark.parametrize("flushed", [True, False])
    @pytest.mark.parametrize(
        "cursors",
        [
            (at(7), at(8), at(8)),
            (at(7), at(6), at(7)),  # never back within a session
            (at(7), at(3, "session-b"), at(3, "session-b")),
            (at(7), at(9, "session-b"), at(9, "session-b")),
        ],
    )
    async def test_a_cursor_moves_forward_only_and_a_new_session_replaces_the_old(
        self, store: Store, way: str, flushed: bool, cursors: tuple[Cursor, Cursor, Cursor]
    ) -> None:
        for how, cursor in zip(way.split(), cursors[:2], strict=True):
            if how == "noted":
                store.move_cursor(cursor)
            else:
                await accept(store, event(cursor), cursor)
            if flushed:
                await store.flush()
        await store.flush()
        assert await store.cursor(0, "f") == cursors[2]

    async def test_a_noted_cursor_is_kept_by_a_flush(self, store: Store) -> None:
        for seq in range(1, 200):
            store.move_cursor(at(seq))
        await store.flush()
        assert await store.cursor(0, "f") == at(199)

    async def test_a_cursor_with_another_fingerprint_is_forgotten(self, store: Store) -> None:
        await accept(store, None, at(7, fingerprint="old"))
        assert await store.cursor(0, "new") is None
        assert await store.cursor(0, "old") is None

    async def test_a_cursors_fingerprint_can_change_with_its_session(self, store: Store) -> None:
        await accept(store, None, at(7, fingerprint="old"))
        await accept(store, None, at(1, "session-b", fingerprint="new"))
        assert await store.cursor(0, "new") == at(1, "session-b", fingerprint="new")

    async def test_a_forgotten_cursor_is_gone_also_when_it_was_only_noted(self, store: Store) -> None:
        await accept(store, event(1), at(7))
        store.move_cursor(at(8))
        await store.forget(0, "the session is gone")
        await store.flush()
        assert await store.cursor(0, "f") is None
        await store.forget(0, "nothing there")

    async def test_after_forgetting_a_new_session_begins_anywhere(self, store: Store) -> None:
        await accept(store, None, at(7))
        await store.forget(0, "the session is gone")
        await accept(store, None, at(1))
        assert await store.cursor(0, "f") == at(1)

    async def test_shards_have_cursors_of_their_own(self, store: Store) -> None:
        store.move_cursor(at(5, shard=0))
        store.move_cursor(at(6, shard=1))
        await store.flush()
        await store.forget(0, "gone")
        assert await store.cursor(0, "f") is None
        assert await store.cursor(1, "f") == at(6, shard=1)

    # Writing

    async def test_writes_take_effect_in_the_order_of_the_calls(self, store: Store) -> None:
        await asyncio.gather(*(store.commit([record(version=version)], None) for version in range(600)))
        saved = await store.load(record().id)
        assert saved
        assert saved.version == 600

    async def test_a_whole_life_called_at_once_happens_in_order(self, store: Store) -> None:
        await asyncio.gather(
            accept(store, event(1, runs=0), at(1)),
            store.begin(event(1).key),
            store.commit([record()], event(1).key),
            accept(store, event(1), at(2)),
            accept(store, event(2), at(3)),
            store.fail(event(2), BROKEN),
            store.forget(0, "gone"),
            accept(store, event(3), at(1, "session-b")),
        )
        assert await keys(store) == ["3"]
        assert len(await store.failed()) == 1
        assert await store.cursor(0, "f") == at(1, "session-b")

    async def test_a_flush_covers_everything_before_it(self, store: Store) -> None:
        await store.commit([record(place=PLACE)], None)
        await store.commit([record(version=1)], None)
        waiting = [store.accept(event(number), at(number)) for number in range(1, 600)]
        store.note_shown(record().id, 2, None)
        store.move_cursor(at(700))
        await store.flush()
        assert all(each.done() for each in waiting)
        assert len(await store.pending()) == 599
        assert await store.cursor(0, "f") == at(700)
        assert await store.behind() == []

    async def test_a_flush_covers_what_was_noted_though_much_waits_behind_it(self, store: Store) -> None:
        await store.commit([record(place=PLACE)], None)
        await store.commit([record(version=1)], None)
        waiting = [store.accept(event(number), None) for number in range(200)]
        await asyncio.sleep(0)  # they are on their way
        store.note_shown(record().id, 2, None)
        flushed = asyncio.create_task(store.flush())
        await asyncio.sleep(0)
        waiting += [store.accept(event(number), None) for number in range(200, 3_000)]
        await flushed
        assert await store.behind() == []
        await asyncio.gather(*waiting)

    async def test_cancelling_the_callers_does_not_undo_their_writes(self, store: Store) -> None:
        tasks: list[asyncio.Future[Any]] = [store.accept(event(number), None) for number in range(20)]
        tasks += [asyncio.create_task(store.commit([record(f"k{number}")], None)) for number in range(20)]
        await asyncio.sleep(0)  # every call is made now, and none is finished
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await store.flush()
        assert len(await store.pending()) == 20
        assert all([await store.load(record(f"k{number}").id) for number in range(20)])

    async def test_cancelled_callers_leave_the_store_working(self, store: Store) -> None:
        for number in range(50):
            task = asyncio.create_task(store.commit([record(version=number)], None))
            for _ in range(number % 7):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await store.flush()
            saved = await store.load(record().id)
            if (saved.version if saved else 0) == number:  # cancelled before it was called
                await store.commit([record(version=number)], None)
        saved = await store.load(record().id)
        assert saved
        assert saved.version == 50

    async def test_one_bad_operation_takes_no_other_down(self, store: Store) -> None:
        bad = Event(EventKey("interaction:\ud800"), b"", 1)
        store.move_cursor(at(7))
        results = await asyncio.gather(
            accept(store, event(1)),
            accept(store, bad),
            store.commit([record()], event(1).key),
            accept(store, event(2)),
            return_exceptions=True,
        )
        assert isinstance(results[1], Exception)
        assert [results[0], results[2], results[3]] == [1, None, 1]
        assert await keys(store) == ["2"]
        assert await store.load(record().id)
        await store.flush()
        assert await store.cursor(0, "f") == at(7)

    async def test_close_writes_what_waits(self, open_store: OpenStore) -> None:
        store = await open_store()
        waiting = [store.accept(event(number), None) for number in range(600)]
        store.move_cursor(at(7))
        await store.close()
        assert [await each for each in waiting] == [1] * 600
        if not self.ends_with_process:
            again = await open_store()
            assert len(await again.pending()) == 600
            assert await again.cursor(0, "f") == at(7)

    async def test_close_may_be_called_twice_and_ends_all_writing(self, store: Store) -> None:
        await store.close()
        await store.close()
        with pytest.raises(StoreError):
            await accept(store, event(1))
        with pytest.raises(StoreError):
            await store.commit([record()], None)
        with pytest.raises(StoreError):
            await store.flush()

    # The next process, and other bots

    async def test_everything_is_found_again_by_the_next_process(self, open_store: OpenStore, clock: Clock) -> None:
        if self.ends_with_process:
            pytest.skip("this store ends with its process")
        store = await open_store()
        await self.failing(store, 1)
        await accept(store, event(2), at(7))
        await accept(store, event(3, b"body", runs=3))
        saved = record(data=b"state", expires_at=clock() + 60, place=PLACE)
        await store.commit([saved], event(2).key)
        await store.commit([saved._replace(version=1)], None)
        store = await open_store()
        assert await store.pending() == [event(3, b"body", runs=3)]
        assert [entry.key for entry in await store.failed()] == [event(1).key]
        assert await store.load(saved.id) == saved._replace(version=2, shown=1)
        assert await store.behind() == [saved._replace(version=2, shown=1)]
        assert await store.cursor(0, "f") == at(7)
        assert [await accept(store, event(number)) for number in (1, 2, 3)] == [0, 0, 0]

    # Many records

    async def test_records_are_found_by_the_parts_their_key_begins_with(self, store: Store) -> None:
        all_keys = ["", "1", "1:2", "1:2:3", "1:10", "12", "12:1", "2", "%3A", "\U0010ffff"]
        await store.commit([record(key) for key in all_keys], None)
        await store.commit([record(id=RecordId("other", "1:2"))], None)

        async def found(**what: Any) -> list[str]:
            return [saved.id.key for saved in await store.find(Query("poll", **what))]

        assert await found() == sorted(all_keys)
        assert await found(prefix="1") == ["1", "1:10", "1:2", "1:2:3"]
        assert await found(prefix="1:2") == ["1:2", "1:2:3"]
        assert await found(prefix="1", after="1:10") == ["1:2", "1:2:3"]
        assert await found(after="") == sorted(all_keys)[1:]
        assert await found(limit=2) == ["", "%3A"]
        assert await found(prefix="3") == []

    async def test_records_are_found_by_the_height_of_a_field(self, store: Store, clock: Clock) -> None:
        states = {"a:1": b'{"n":5}', "a:2": b'{"n":50}', "a:3": b'{"n":-1}', "a:4": b"{}", "b:1": b'{"n":99}'}
        await store.commit([record(key, data=data) for key, data in states.items()], None)
        await store.commit([record("a:5", data=b'{"n":70}', expires_at=clock() + 60)], None)
        top = await store.find(Query("poll", prefix="a", by="n", limit=3))
        assert [saved.id.key for saved in top] == ["a:5", "a:2", "a:1"]
        clock.advance(60)
        assert [saved.id.key for saved in await store.find(Query("poll", by="n"))] == [
            "b:1",
            "a:2",
            "a:1",
            "a:3",
            "a:4",
        ]

    async def test_records_are_found_and_deleted_by_the_place_they_are_shown_in(self, store: Store) -> None:
        places = {
            f"{channel}{message}": Place(channel, message, guild=9) for channel in (1, 2) for message in (3, 4, 5)
        }
        await store.commit([record(key, place=place) for key, place in places.items()] + [record("nowhere")], None)

        async def left(**where: Any) -> list[str]:
            return [saved.id.key for saved in await store.find(Query("poll", **where))]

        assert [await left(channel=1), await left(message=3), await left(channel=2, message=4)] == [
            ["13", "14", "15"],
            ["13", "23"],
            ["24"],
        ]
        assert await store.clean_up(Gone(channel=1, messages=(3,))) == 1
        assert await store.clean_up(Gone(channel=1, messages=(4, 5, 6, 23))) == 2
        assert await left() == ["23", "24", "25", "nowhere"]
        await store.commit([record("13", place=places["13"])], None)
        assert await store.clean_up(Gone(channel=2)) == 3
        assert await left() == ["13", "nowhere"]
        assert [await store.clean_up(Gone(guild=8)), await store.clean_up(Gone(guild=9))] == [0, 1]
        assert await left() == ["nowhere"]

    # What is to happen later

    async def test_a_timer_that_is_due_becomes_an_event_once(self, open_store: OpenStore, clock: Clock) -> None:
        store, now = await open_store(), clock()
        timers = [Timer(EventKey(f"timer:{after}"), now + after, b"%d" % after) for after in (20, 10, 30)]
        await store.commit([record()], None, [*timers, Timer(EventKey("timer:gone"), now, b"x")])
        await store.commit([], None, [Timer(EventKey("timer:gone"), None), Timer(EventKey("timer:never"), None)])
        assert await store.timers() == [timers[1], timers[0], timers[2]]
        assert await store.fire([]) == []
        await store.commit([], None, [timers[2]._replace(due_at=now + 40)])
        clock.advance(30)
        due, later = await store.fire([]), await store.fire([])
        assert [(each.key.partition("@")[0], each.body) for each in due] == [("timer:10", b"10"), ("timer:20", b"20")]
        assert later == []
        store = await open_store() if not self.ends_with_process else store
        assert [await store.pending(), await store.timers()] == [due, [timers[2]._replace(due_at=now + 40)]]

    async def test_a_moment_that_comes_twice_is_an_event_twice(self, store: Store, clock: Clock) -> None:
        """As when the clock was ahead for a while."""
        timer, keys = Timer(EventKey("repeat:1"), clock() + 10, b"x"), set[EventKey]()
        for _ in range(2):
            await store.commit([], None, [timer])
            clock.advance(20)
            [event] = await store.fire([])
            keys.add(event.key)
            await store.commit([], event.key)
            clock.advance(-20)
        assert len(keys) == 2

    async def test_a_conflict_sets_no_timer(self, store: Store, clock: Clock) -> None:
        await store.commit([record()], None)
        with pytest.raises(StateConflictError):
            await store.commit([record()], None, [Timer(EventKey("timer:1"), clock(), b"x")])
        assert await store.timers() == []

    async def test_an_expired_record_of_a_name_that_ends_becomes_an_event_with_all_it_was(
        self, store: Store, clock: Clock
    ) -> None:
        views = [record(f"k{number}", data=b'{"n":1}', place=PLACE, expires_at=clock() + 60) for number in range(250)]
        await store.commit([*views, record(id=RecordId("score", "k"), expires_at=clock() + 60)], None)
        assert await store.fire(["poll"]) == []
        clock.advance(61)
        events: list[Event] = []
        while fired := await store.fire(["poll", "other"]):
            events += fired
        whose = sorted(each.key.partition("@")[0] for each in events)
        assert whose == sorted(f"expiry:poll:k{number}" for number in range(250))
        ended = msgspec.json.decode(events[0].body, type=Saved)
        assert ended == next(each for each in views if each.id == ended.id)._replace(version=1, shown=1)
        assert sorted(await store.pending()) == sorted(events)
        assert await store.purge(["poll"]) == 1  # the one whose end nobody is told of
        assert await store.find(Query("poll")) == []

    async def test_two_bots_do_not_see_each_other(self, open_store: OpenStore, clock: Clock) -> None:
        mine, other = await open_store(BOT, max_failed=1), await open_store(OTHER_BOT, max_failed=1)
        for store, word in ((mine, b"mine"), (other, b"other")):
            assert await accept(store, event(1, word), at(7, word.decode())) == 1
            assert await accept(store, event(2, word)) == 1
            await store.commit([record(data=word, place=PLACE), record("old", expires_at=clock() + 60)], None)
            await store.commit([record(version=1, data=word)], None)
            await store.fail(event(2, word), BROKEN)
        await mine.begin(event(1).key)
        await mine.forget(0, "gone")
        mine.note_shown(record().id, 2, None)
        await mine.retry_failed([])
        await mine.release()
        await mine.commit([record(version=2, data=b"newer")], event(1).key)
        clock.advance(2 * DAY)
        await purge_all(mine)
        assert await other.pending() == [event(1, b"other")]
        assert [entry.key for entry in await other.failed()] == [event(2).key]
        assert await other.cursor(0, "f") == at(7, "other")
        assert await other.behind() == [record(version=2, data=b"other", shown=1, place=PLACE)]
        assert await purge_all(other) == 2


# A store that several processes have at once

PROCESS = Path(__file__).with_name("shared_process.py")
LEASE_S = 1.0  # short, so that the end of a process is soon known


class Open(Protocol):
    async def __call__(self, bot: BotId = BOT, **settings: Any) -> SharedStore: ...


class Process:
    """A process of its own with the store open; see tests/shared_process.py."""

    def __init__(self, what: str, url: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, PROCESS, what, url, str(LEASE_S)],
            env={**os.environ, "PYTHONPATH": str(PROCESS.parent.parent)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.first = self.read()

    def read(self) -> str:
        """Return its next line."""
        assert self._process.stdout
        return self._process.stdout.readline().rstrip("\n")

    def send(self, *words: object) -> None:
        assert self._process.stdin
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()

    async def ask(self, *words: object) -> Any:
        """Tell it to do something and return its answer."""
        self.send(*words)
        return json.loads(await asyncio.to_thread(self.read))

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> list[str]:
        """Kill it and return what it said last. May be called twice."""
        self._process.kill()
        return [] if self._process.stdin and self._process.stdin.closed else self.rest()

    def end(self) -> list[str]:
        """Let it come to its end and return what it said last."""
        return self.rest()

    def rest(self) -> list[str]:
        said, _ = self._process.communicate()
        return said.splitlines()

    def watch(self) -> list[str]:
        """Return what it says to its end, which is not asked for."""
        with self._process as process:
            assert process.stdout
            return process.stdout.read().splitlines()

    def close(self) -> None:
        """Ask it to end."""
        assert self._process.stdin
        self._process.stdin.close()


async def until_claimed(store: SharedStore, count: int) -> list[Event]:
    """Claim until so many events were claimed."""
    claimed: list[Event] = []
    async with asyncio.timeout(60):
        while len(claimed) < count:
            claimed += await store.claim_orphans()
            await asyncio.sleep(0.02)
    return claimed


async def again(work: Callable[[], Awaitable[T]]) -> T:
    """Return what the work returns, when the server can be reached."""
    while True:
        with contextlib.suppress(StoreError):
            return await work()
        await asyncio.sleep(0.02)


class Storm:
    """Processes that click while what they stand on is taken away, and what must be true in the end."""

    TROUBLES = ("kill_a_process", "stop_a_process", "kill_the_server", "restart_the_server", "cut_the_line")

    def __init__(self, server: Server, line: Proxy) -> None:
        self._server, self._line = server, line
        self._processes: list[tuple[Process, asyncio.Task[list[str]]]] = []
        self._said: list[str] = []

    async def start(self) -> None:
        """Start one more process; every second one behind the line."""
        url = (self._server.url, self._line.url)[len(self._processes) % 2]
        process = await asyncio.to_thread(Process, "storm", url)
        assert process.first == "open"
        self._processes.append((process, asyncio.create_task(asyncio.to_thread(process.watch))))

    async def kill_a_process(self) -> None:
        process, said = self._processes.pop(random.randrange(len(self._processes)))
        process.signal(signal.SIGKILL)
        self._said += await said
        await self.start()

    async def stop_a_process(self) -> None:
        """Stop one past its lease, mostly, so that others take over what it has."""
        process, _ = random.choice(self._processes)
        process.signal(signal.SIGSTOP)
        await asyncio.sleep(LEASE_S * random.uniform(0.5, 2.5))
        process.signal(signal.SIGCONT)

    async def kill_the_server(self) -> None:
        await asyncio.to_thread(self._server.kill)
        await asyncio.sleep(random.choice((0, 0.2, 1.5 * LEASE_S)))
        await asyncio.to_thread(self._server.start)

    async def restart_the_server(self) -> None:
        await asyncio.to_thread(self._server.stop)
        await asyncio.to_thread(self._server.start)

    async def cut_the_line(self) -> None:
        self._line.silent = random.random() < 0.7
        if was_silent := self._line.silent:
            await asyncio.sleep(LEASE_S * random.uniform(0.2, 4))
            self._line.silent = False
        if not was_silent or random.random() < 0.5:
            self._line.cut()

    async def end(self) -> None:
        """Let all processes come to their end."""
        for process, said in self._processes:
            process.close()
            self._said += await said
            assert self._said[-1] == "closed"

    async def kill(self) -> None:
        """Kill what is left of them: all before any is waited for, for a test that took too long may wait no more."""
        for process, _ in self._processes:
            process.signal(signal.SIGKILL)
        await asyncio.gather(*(said for _, said in self._processes), return_exceptions=True)

    async def look(self, store: SharedStore) -> str:
        """See that nothing was lost and nothing doubled, and return what it came to."""
        from shared_process import add

        async with asyncio.timeout(60):
            while (await store.figures()).pending > len(await store.pending()):
                await store.claim_orphans()
        left = [each.key for each in await store.pending()]
        for key in left:
            await add(store, key[0], key, key)
        words = Counter[str]()
        for saved in await store.find(Query("list")):
            words.update(json.loads(saved.data))
        told = Counter(line.partition(" ")[0] for line in self._said)
        accepted = {line.split()[1] for line in self._said if line.startswith("accepted ")}
        done = {line.split()[1] for line in self._said if line.startswith("done ")}
        assert accepted <= words.keys(), "what was accepted is applied"
        assert done <= words.keys() - {*left}, "what was done is done"
        assert {key for key, times in words.items() if times > 1} == set(), "and once"
        assert await store.pending() == []
        return f"{len(words)} clicks, {told['unknown']} unknown, {told['refused']} refused, {len(left)} left at the end"


class SharedStores:
    """Stores and processes on one server, which a subclass gives as `server`."""

    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    def server(self) -> Server:
        raise NotImplementedError("a subclass says which server it is")

    @pytest.fixture
    async def open_shared(self, server: Server, clock: Clock) -> AsyncIterator[Open]:
        """Opens a store as one more process would have it; any number at once."""
        from shared_process import open_shared

        async with contextlib.AsyncExitStack() as stack:

            async def open_one(bot: BotId = BOT, **settings: Any) -> SharedStore:
                store = open_shared(
                    settings.pop("url", server.url), bot, **{"now": clock, "lease_s": LEASE_S, **settings}
                )
                await store.open()
                stack.push_async_callback(store.close)
                return store

            yield open_one

    @pytest.fixture
    def start_process(self, server: Server) -> Iterator[Callable[..., Process]]:
        """Starts a process; what runs in the end is killed."""
        with contextlib.ExitStack() as stack:

            def start(what: str = "obey", url: str = server.url) -> Process:
                process = Process(what, url)
                stack.callback(process.kill)
                return process

            yield start

    @pytest.fixture
    async def one(self, open_shared: Open) -> SharedStore:
        return await open_shared()

    @pytest.fixture
    async def two(self, open_shared: Open) -> SharedStore:
        return await open_shared()


class SharedStoreContract(SharedStores):
    """What a store promises that several processes have at once."""

    # Whose an event is

    async def test_every_process_has_an_id_of_its_own(self, one: SharedStore, two: SharedStore) -> None:
        assert one.shared
        assert len({one.owner, two.owner, ""}) == 3

    async def test_a_key_that_another_process_accepted_is_known(self, one: SharedStore, two: SharedStore) -> None:
        assert await accept(one, event(1, b"first")) == 1
        assert await accept(two, event(1, b"copy")) == 0
        assert (await keys(one), await keys(two)) == (["1"], [])

    async def test_of_copies_that_processes_accept_at_once_one_is_new(self, one: SharedStore, two: SharedStore) -> None:
        numbers = [*range(300)]
        forward = [accept(one, event(number)) for number in numbers]
        backward = [accept(two, event(number)) for number in reversed(numbers)]
        results = await asyncio.gather(*forward, *backward)
        assert sum(results) == 300
        assert sorted([*await keys(one), *await keys(two)], key=int) == [str(number) for number in numbers]

    async def test_events_of_a_process_that_lives_are_not_claimed(self, one: SharedStore, open_shared: Open) -> None:
        other = await open_shared(lease_s=600.0)
        await accept(one, event(1))
        await asyncio.sleep(2 * LEASE_S)  # its registration is renewed
        assert await other.claim_orphans() == []
        assert (await keys(one), await keys(other)) == (["1"], [])

    async def test_what_a_closed_process_left_is_claimed_in_order_with_its_runs(
        self, one: SharedStore, two: SharedStore
    ) -> None:
        for number in (3, 1, 2):
            await accept(one, event(number, b"%d" % number, runs=number))
        await one.commit([], event(1).key)
        await one.close()
        assert await two.pending() == []
        assert await two.claim_orphans() == [event(3, b"3", runs=3), event(2, b"2", runs=2)]
        assert await two.claim_orphans() == []
        assert await keys(two) == ["3", "2"]

    async def test_two_that_claim_at_once_never_get_the_same_event(self, open_shared: Open) -> None:
        gone, *heirs = [await open_shared() for _ in range(5)]
        await asyncio.gather(*(gone.accept(event(number), None) for number in range(500)))
        await gone.close()
        claimed = await asyncio.gather(*(heir.claim_orphans() for heir in heirs for _ in range(3)))
        assert sorted(int(each.key.partition(":")[2]) for some in claimed for each in some) == [*range(500)]
        assert sum([len(await heir.pending()) for heir in heirs]) == 500

    async def test_what_another_process_owns_by_now_is_neither_applied_nor_failed(
        self, one: SharedStore, two: SharedStore
    ) -> None:
        await accept(one, event(1))
        with pytest.raises(StateConflictError):
            await two.commit([record()], event(1).key)
        with pytest.raises(StateConflictError):
            await two.fail(event(1), BROKEN)
        assert await one.load(record().id) is None
        assert (await keys(one), await one.failed()) == (["1"], [])
        await one.commit([record()], event(1).key)

    async def test_what_was_never_accepted_is_committed_and_fails_as_ever(self, one: SharedStore) -> None:
        await one.commit([record()], event("never").key)
        assert await one.load(record().id)
        await one.fail(event("never"), BROKEN)
        assert [each.key for each in await one.failed()] == [event("never").key]

    async def test_release_forgets_the_runs_of_this_process_alone(self, one: SharedStore, two: SharedStore) -> None:
        await accept(one, event(1, runs=3))
        await accept(two, event(2, runs=3))
        await one.release()
        assert [each.runs for each in [*await one.pending(), *await two.pending()]] == [0, 3]

    async def test_a_retried_event_is_its_who_retried_it(self, one: SharedStore, two: SharedStore) -> None:
        for number in range(3):
            await accept(one, event(number))
            await one.fail(event(number), BROKEN)
        assert sum(await asyncio.gather(one.retry_failed([event(0).key]), two.retry_failed([event(0).key]))) == 1
        assert await two.retry_failed([]) == 2
        assert {*await keys(two)} - {"0"} == {"1", "2"}
        assert sorted([*await keys(one), *await keys(two)]) == ["0", "1", "2"]

    async def test_the_failed_list_is_one_for_all_processes(self, open_shared: Open) -> None:
        stores = [await open_shared(max_failed=3) for _ in range(2)]
        for number in range(6):
            await accept(stores[number % 2], event(number))
            await stores[number % 2].fail(event(number), BROKEN)
        assert [each.key for each in await stores[0].failed()] == [event(number).key for number in (3, 4, 5)]

    async def test_what_is_due_is_fired_by_one_process(self, open_shared: Open, clock: Clock) -> None:
        stores = [await open_shared() for _ in range(3)]
        timers = [Timer(EventKey(f"timer:{number}"), clock() + number, b"%d" % number) for number in range(200)]
        await stores[0].commit([record(f"k{number}", expires_at=clock() + 10) for number in range(200)], None, timers)
        clock.advance(300)

        async def fire_all(store: SharedStore) -> list[Event]:
            fired: list[Event] = []
            while events := await store.fire(["poll"]):
                fired += events
            return fired

        fired = await asyncio.gather(*map(fire_all, stores))
        names = Counter(each.key.partition("@")[0] for events in fired for each in events)
        assert names == Counter(
            [f"timer:{number}" for number in range(200)] + [f"expiry:poll:k{number}" for number in range(200)]
        )
        for store, events in zip(stores, fired, strict=True):
            assert sorted(await store.pending()) == sorted(events)

    async def test_what_is_old_is_purged_once(self, open_shared: Open, clock: Clock) -> None:
        stores = [await open_shared() for _ in range(3)]
        await asyncio.gather(*(stores[0].accept(event(number), None) for number in range(1_200)))
        await asyncio.gather(*(stores[0].commit([], event(number).key) for number in range(1_200)))
        clock.advance(2 * DAY)
        assert sum(await asyncio.gather(*map(purge_all, stores))) == 1_200

    async def test_what_is_shown_and_received_goes_forward_over_processes(
        self, one: SharedStore, two: SharedStore
    ) -> None:
        await one.commit([record(place=PLACE)], None)
        for version in (1, 2):
            await one.commit([record(version=version)], None)
        for store, step in ((one, 3), (two, 2)):
            store.note_shown(record().id, step, None)
            store.move_cursor(at(step))
            await store.flush()
        assert await two.behind() == []
        assert await two.cursor(0, "f") == at(3)

    async def test_changes_of_many_processes_all_count_once(self, open_shared: Open) -> None:
        stores = [await open_shared() for _ in range(3)]
        ids = [record(f"k{number}").id for number in range(4)]
        await stores[0].commit([record(id=id, data=b"0") for id in ids], None)

        async def increment_two(store: SharedStore) -> None:
            while True:
                found = [await store.load(id) for id in random.sample(ids, 2)]
                new = [each._replace(data=b"%d" % (int(each.data) + 1)) for each in found if each]
                with contextlib.suppress(StateConflictError):
                    return await store.commit(new, None)

        await asyncio.gather(*(increment_two(store) for store in stores for _ in range(20)))
        found = [await stores[0].load(id) for id in ids]
        assert sum(int(each.data) for each in found if each) == 2 * 60

    # Leases

    async def test_a_lease_has_one_holder_over_all_processes(self, open_shared: Open) -> None:
        stores, holders, most = [await open_shared() for _ in range(3)], 0, 0
        tokens: list[int] = []

        async def hold(store: SharedStore) -> None:
            nonlocal holders, most
            async with store.lease("a", wait_s=60) as lease:
                holders += 1
                most = max(most, holders)
                tokens.append(lease.token)
                await asyncio.sleep(0)
                holders -= 1

        await asyncio.gather(*(hold(store) for store in stores for _ in range(20)))
        assert most == 1
        assert tokens == sorted({*tokens})
        assert len(tokens) == 60

    async def test_leases_of_different_names_and_bots_are_held_at_once(self, open_shared: Open) -> None:
        one, other = await open_shared(), await open_shared(OTHER_BOT)
        async with one.lease("a"), one.lease("b"), one.lease(""), one.lease("🎉:%"), other.lease("a"):
            pass

    async def test_who_waits_for_a_lease_gets_it_in_the_order_of_asking(self, open_shared: Open) -> None:
        stores, order = [await open_shared(lease_s=30.0) for _ in range(3)], list[int]()

        async def take(number: int) -> None:
            async with stores[number % 3].lease("a", wait_s=60):
                order.append(number)

        async with stores[0].lease("a") as first:
            waiting: list[asyncio.Task[None]] = []
            for number in range(12):
                waiting.append(asyncio.create_task(take(number)))
                await asyncio.sleep(0.2)  # it is in the queue, also on a busy server
        await asyncio.gather(*waiting)
        assert order == [*range(12)]
        assert first.name == "a"

    async def test_who_waits_too_long_gets_an_error_and_holds_up_nobody(
        self, one: SharedStore, two: SharedStore
    ) -> None:
        async with one.lease("a"):
            with pytest.raises(TimeoutError):
                async with two.lease("a", wait_s=0.1):
                    raise AssertionError("two hold it")
        for store in (two, one, two):
            async with store.lease("a", wait_s=30):
                pass

    async def test_who_is_cancelled_while_it_waits_or_holds_holds_up_nobody(
        self, one: SharedStore, two: SharedStore
    ) -> None:
        async def hold(store: SharedStore) -> None:
            async with store.lease("a", wait_s=60):
                await asyncio.sleep(60)

        for pause in (0, 0, 0.001, 0.002, 0.005, 0.01, 0.1):
            tasks = [asyncio.create_task(hold(store)) for store in (one, two, one)]
            await asyncio.sleep(pause)
            for task in random.sample(tasks, 3):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            async with asyncio.timeout(30), two.lease("a", wait_s=30):
                pass

    async def test_a_lease_ends_with_an_error_in_its_block(self, one: SharedStore, two: SharedStore) -> None:
        with pytest.raises(ZeroDivisionError):
            async with one.lease("a"):
                raise ZeroDivisionError
        async with two.lease("a", wait_s=30):
            pass

    async def test_a_lease_is_renewed_while_it_is_held(self, one: SharedStore, two: SharedStore) -> None:
        async with one.lease("a") as lease:
            with pytest.raises(TimeoutError):
                async with two.lease("a", wait_s=3 * LEASE_S):
                    pass
            await one.commit([record()], None, fences=[lease])

    async def test_a_lease_that_is_held_too_long_is_lost_and_fences(
        self, open_shared: Open, caplog: pytest.LogCaptureFixture
    ) -> None:
        slow, other = await open_shared(max_hold_s=LEASE_S), await open_shared()
        async with slow.lease("a") as old, other.lease("a", wait_s=30) as new:
            assert new.token > old.token
            with pytest.raises(StateConflictError):
                await slow.commit([record()], None, fences=[old])
            await other.commit([record()], None, fences=[new])
            async with asyncio.timeout(30):
                while "lease a " not in caplog.text:
                    await asyncio.sleep(0.05)
        assert await other.load(record().id) == record(version=1, shown=1)

    async def test_a_lease_for_good_is_held_however_long_it_takes(self, open_shared: Open) -> None:
        one, two = [await open_shared(max_hold_s=LEASE_S) for _ in range(2)]

        async def hold(store: SharedStore) -> None:
            async with store.lease("a", wait_s=30, for_good=True) as lease:
                with pytest.raises(TimeoutError):
                    async with (two if store is one else one).lease("a", wait_s=3 * LEASE_S):
                        pass
                await store.commit([record(f"{lease.token}")], None, fences=[lease])

        await asyncio.gather(hold(one), hold(two))  # the first at once, the other from the queue
        assert len(await one.find(Query("poll"))) == 2
        async with one.lease("a", wait_s=30), one.lease("b", for_good=True), two.lease("c"):
            pass

    async def test_a_lease_that_has_ended_fences_though_nobody_took_it(self, open_shared: Open) -> None:
        store = await open_shared(max_hold_s=LEASE_S)
        async with store.lease("a") as lease:
            await asyncio.sleep(2 * LEASE_S)
            with pytest.raises(StateConflictError):
                await store.commit([record()], None, fences=[lease])
        assert await store.load(record().id) is None

    async def test_a_commit_is_fenced_by_every_one_of_its_leases(self, one: SharedStore, two: SharedStore) -> None:
        await accept(one, event(1))
        async with one.lease("a") as ended:
            pass
        async with one.lease("b") as held, two.lease("c") as another:
            for wrong in (ended, another, held._replace(token=held.token + 1), held._replace(name="d")):
                for fences in ([held, wrong], [wrong, held]):
                    with pytest.raises(StateConflictError):
                        await one.commit([record()], event(1).key, [Timer(EventKey("timer:1"), 0.0)], fences=fences)
            assert (await one.load(record().id), await keys(one), await one.timers()) == (None, ["1"], [])
            await one.commit([record()], event(1).key, fences=[held, held])
        assert (await one.load(record().id), await keys(one)) == (record(version=1, shown=1), [])

    async def test_a_closed_process_gives_up_its_leases_and_its_place_in_the_queue(self, open_shared: Open) -> None:
        holder, waiter, last = [await open_shared(lease_s=600.0) for _ in range(3)]
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(holder.lease("a"))
            waiting = asyncio.create_task(stack.enter_async_context(waiter.lease("a", wait_s=60)))
            await asyncio.sleep(0.1)
            await waiter.close()
            await holder.close()
            async with last.lease("a", wait_s=30):  # sooner than it would end by itself
                pass
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    # Processes that are killed, and processes that are stopped for a while

    async def test_what_a_killed_process_left_is_claimed_and_its_lease_ends(
        self, one: SharedStore, start_process: Callable[..., Process]
    ) -> None:
        killed = start_process()
        assert [await killed.ask("accept", f"interaction:{number}") for number in (2, 1)] == [1, 1]
        token = await killed.ask("lease", "a")
        assert await one.claim_orphans() == []
        killed.kill()
        assert [each.key for each in await until_claimed(one, 2)] == [event(2).key, event(1).key]
        async with one.lease("a", wait_s=30) as lease:
            assert lease.token > token

    async def test_a_killed_process_in_the_queue_holds_up_nobody_for_long(
        self, one: SharedStore, two: SharedStore, start_process: Callable[..., Process]
    ) -> None:
        async def hold(store: SharedStore) -> None:
            async with store.lease("a", wait_s=30):
                pass

        queued = start_process()
        async with one.lease("a"):
            queued.send("lease", "a")
            await asyncio.sleep(0.5)
            waiting = asyncio.create_task(hold(two))
            await asyncio.sleep(0.2)
            queued.signal(signal.SIGKILL)
        await waiting

    async def test_a_process_that_was_stopped_past_its_lease_does_not_write(
        self, one: SharedStore, start_process: Callable[..., Process]
    ) -> None:
        stopped = start_process()
        assert await stopped.ask("accept", event(1).key) == 1
        token = await stopped.ask("lease", "a")
        stopped.signal(signal.SIGSTOP)
        [claimed] = await until_claimed(one, 1)
        async with one.lease("a", wait_s=30) as lease:
            assert lease.token > token
            stopped.signal(signal.SIGCONT)
            assert await stopped.ask("add", "x", "late", event(1).key) == "StateConflictError"
            assert await stopped.ask("add", "x", "late", "-", "a") == "StateConflictError"
            await one.commit([record()], claimed.key, fences=[lease])
        assert await one.load(RecordId("list", "x")) is None
        assert await stopped.ask("pending") == []
        assert await stopped.ask("accept", event(2).key) == 1, "it goes on, as a process that is known again"
        await asyncio.sleep(2 * LEASE_S)
        assert await one.claim_orphans() == []
        assert await stopped.ask("add", "x", "new", event(2).key) == "added"


class SharedStoreOutages(SharedStores):
    """What it promises of a server that dies, and of a line to it that is cut."""

    @pytest.fixture(autouse=True)
    def only_ours(self, server: Server) -> None:
        if server.is_elsewhere:
            pytest.skip("the server is not ours to kill")

    @pytest.fixture
    async def line(self, server: Server) -> AsyncIterator[Proxy]:
        from servers import proxy

        async with proxy(server) as line:
            yield line

    async def test_what_was_accepted_is_there_after_the_server_was_killed(
        self, open_shared: Open, server: Server
    ) -> None:
        one = await open_shared(lease_s=30.0)
        for number in range(50):
            await accept(one, event(number), at(number))
            await one.commit([record(f"k{number}")], event(number).key if number % 2 else None)
            if number % 10 == 9:
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.start)
        assert await keys(one) == [str(number) for number in range(0, 50, 2)]
        assert len(await one.find(Query("poll"))) == 50
        assert await one.cursor(0, "f") == at(49)

    async def test_what_is_under_way_when_the_server_dies_fails_and_later_things_work(
        self, one: SharedStore, server: Server
    ) -> None:
        await accept(one, event("before"), at(1))
        await asyncio.to_thread(server.kill)
        waiting = [accept(one, event(number), at(number)) for number in range(2, 5)]
        results = await asyncio.gather(*waiting, one.load(record().id), one.pending(), return_exceptions=True)
        assert {type(each) for each in results} <= {StoreError, CommitUnknownError}
        with pytest.raises(StoreError):
            async with one.lease("a"):
                pass
        await asyncio.to_thread(server.start)
        assert await accept(one, event(2)) == 1
        assert await one.load(record().id) is None
        async with one.lease("a", wait_s=30):
            pass
        with pytest.raises(StoreError, match="the cursor must not pass it"):
            await accept(one, event(9), at(9))
        one.move_cursor(at(9))
        with pytest.raises(StoreError, match="nothing may be confirmed past it"):
            await one.flush()
        assert await one.cursor(0, "f") == at(1)
        assert await accept(one, event(3), at(3)) == 1
        await one.flush()
        assert await one.cursor(0, "f") == at(3)
        assert await keys(one) == ["before", "2", "3"]

    async def test_an_outcome_that_was_lost_is_in_what_is_asked_next(
        self, open_shared: Open, line: Proxy, server: Server
    ) -> None:
        store = await open_shared(url=line.url)
        for number in range(20):
            waiting = asyncio.ensure_future(accept(store, event(number)))
            await asyncio.sleep(0)
            await asyncio.sleep(random.uniform(0, 0.003))
            line.cut()
            [result] = await asyncio.gather(waiting, return_exceptions=True)
            assert result == 1 or isinstance(result, StoreError)
            is_there = event(number) in await again(store.pending)
            if isinstance(result, Exception) and not isinstance(result, CommitUnknownError):
                assert not is_there
            assert await again(lambda number=number: accept(store, event(number))) == (not is_there)

    async def test_who_calls_while_the_server_starts_again_waits_for_it(
        self, open_shared: Open, server: Server
    ) -> None:
        store = await open_shared(lease_s=20.0)
        await asyncio.to_thread(server.stop)
        waiting = [asyncio.ensure_future(accept(store, event(1))), asyncio.ensure_future(store.load(record().id))]
        await asyncio.sleep(0.1)
        await asyncio.to_thread(server.start)
        assert await asyncio.gather(*waiting) == [1, None]

    async def test_notes_outlive_an_outage(self, one: SharedStore, server: Server) -> None:
        await one.commit([record()], None)
        await asyncio.to_thread(server.kill)
        one.note_shown(record().id, 1, PLACE)
        with pytest.raises(StoreError):
            await one.flush()
        await asyncio.to_thread(server.start)
        await again(one.flush)
        saved = await one.load(record().id)
        assert saved
        assert saved.place == PLACE

    async def test_after_an_outage_other_processes_are_given_time_to_come_back(
        self, open_shared: Open, line: Proxy, server: Server
    ) -> None:
        one, other = await open_shared(lease_s=3.0), await open_shared(url=line.url, lease_s=3.0)
        await accept(other, event(1))
        await asyncio.to_thread(server.stop)
        line.silent = True
        line.cut()
        await asyncio.sleep(4)
        await asyncio.to_thread(server.start)
        await again(lambda: accept(one, event(2)))
        for _ in range(12):  # it is registered again by and by, and the other is not
            assert await one.claim_orphans() == []
            await asyncio.sleep(0.2)
        line.silent = False
        line.cut()
        await again(lambda: accept(other, event(3)))
        assert await keys(other) == ["1", "3"]

    async def test_a_process_that_is_cut_off_loses_its_events_and_its_lease_and_goes_on(
        self, one: SharedStore, open_shared: Open, line: Proxy, caplog: pytest.LogCaptureFixture
    ) -> None:
        cut_off = await open_shared(url=line.url)
        await accept(cut_off, event(1))
        async with cut_off.lease("a") as old:
            line.silent = True
            async with one.lease("a", wait_s=60) as new:
                assert new.token > old.token
                [claimed] = await until_claimed(one, 1)
                line.silent = False
                for done, fences in ((claimed.key, []), (None, [old])):
                    with pytest.raises(StateConflictError):
                        await again(lambda done=done, fences=fences: cut_off.commit([record()], done, fences=fences))
                await one.commit([record()], claimed.key, fences=[new])
        assert await again(lambda: accept(cut_off, event(2))) == 1
        assert await again(lambda: keys(cut_off)) == ["2"]
        async with asyncio.timeout(60):
            while not caplog.messages:  # it says so
                await asyncio.sleep(0.05)

    async def test_what_could_not_be_given_up_in_an_outage_is_given_up_after_it(
        self, open_shared: Open, line: Proxy
    ) -> None:
        store, cut_off = await open_shared(lease_s=4.0), await open_shared(url=line.url, lease_s=4.0)

        async def wait() -> None:
            async with cut_off.lease("b", wait_s=60):
                raise AssertionError("another holds it")

        async with store.lease("b"):
            async with cut_off.lease("a"):
                waiting = asyncio.create_task(wait())
                await asyncio.sleep(0.2)
                line.silent = True
                line.cut()
                waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            line.silent = False
            line.cut()
        for name in "ab":
            async with store.lease(name, wait_s=60):
                pass

    async def test_a_waiter_that_is_not_told_of_its_turn_asks_itself(self, open_shared: Open, line: Proxy) -> None:
        store, cut_off = await open_shared(), await open_shared(url=line.url)

        async def hold() -> None:
            async with cut_off.lease("a", wait_s=60):
                pass

        async with store.lease("a"):
            waiting = asyncio.create_task(hold())
            await asyncio.sleep(0.2)
            line.cut()
        await waiting

    @pytest.mark.crash
    @pytest.mark.parametrize("trouble", [*Storm.TROUBLES, "any"])
    async def test_nothing_is_lost_and_nothing_doubled(
        self, server: Server, line: Proxy, open_shared: Open, trouble: str, record_property: Any
    ) -> None:
        storm = Storm(server, line)
        try:
            for _ in range(3):
                await storm.start()
            for _ in range(8):
                await asyncio.sleep(random.uniform(0.2, 1))
                await getattr(storm, random.choice(Storm.TROUBLES) if trouble == "any" else trouble)()
            await asyncio.sleep(1)
            await storm.end()
        finally:
            await storm.kill()
        totals = await storm.look(await open_shared())
        record_property("totals", f"{server.url.partition(':')[0]}, {trouble}: {totals}")
