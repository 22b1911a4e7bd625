"""What waits at the same moment is written in one step: a hundred clicks then cost a server few of them."""

from __future__ import annotations

import asyncio
import functools
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

import bot

BATCH_BYTES_MAX = 8 << 20  # in one step, where one operation does not take more

Op = TypeVar("Op")


class GroupCommit(Generic[Op]):
    """Writes operations in the order of the calls, as many as wait in one step.

    `perform` does some operations in one step and returns their results; an error as a result is raised to the caller,
    and what is raised is every operation's. A StoreError is every later one's too, of those that wait: no cursor may
    pass a refused event, and its sender will send it again. `on_refusal` is called then.
    """

    def __init__(
        self,
        place: str,
        perform: Callable[[list[Op]], Awaitable[list[Any]]],
        on_refusal: Callable[[], None],
        size: Callable[[Op], int],
    ) -> None:
        self._place, self._perform, self._on_refusal, self._size = place, perform, on_refusal, size
        self._queue: deque[tuple[Op, asyncio.Future[Any]]] = deque()
        self._batch = list[tuple[Op, asyncio.Future[Any]]]()  # what is under way
        self._notes: dict[tuple[Any, ...], tuple[int, Op]] = {}
        self._wake, self._closing = asyncio.Event(), False
        self._task = asyncio.create_task(self._write_batches(), name="store writer")

    def put(self, operation: Op) -> asyncio.Future[Any]:
        """Return the operation's result to come. Cancelling it does not undo the operation."""
        if self._closing:
            raise bot.StoreError(f"{self._place} is closed.")
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._queue.append((operation, future))
        self._wake.set()
        return future

    def note(self, what: tuple[Any, ...], order: int, operation: Op) -> None:
        """Write an operation with the next step. Of notes of the same thing the one of the highest order counts."""
        if not self._notes:
            self._wake_later()
        if what not in self._notes or self._notes[what][0] <= order:
            self._notes[what] = order, operation

    def put_notes(self) -> None:
        """Put what is noted into its turn, behind what waits by now."""
        notes, self._notes = self._notes, {}
        for what, (order, operation) in notes.items():
            written = self.put(operation)
            written.add_done_callback(functools.partial(self._note_again, what, order, operation))

    def _note_again(self, what: tuple[Any, ...], order: int, operation: Op, written: asyncio.Future[Any]) -> None:
        refused = not written.cancelled() and isinstance(written.exception(), bot.StoreError)
        if refused and what[0] != "cursor" and not self._closing:
            self.note(what, order, operation)

    def forget(self, *what: Any) -> None:
        """Drop the notes of what begins so."""
        self._notes = {each: note for each, note in self._notes.items() if each[: len(what)] != what}

    async def close(self) -> None:
        """Write what waits, and take nothing more."""
        self._closing = True
        self._wake.set()
        await asyncio.wait([self._task])
        if not self._task.cancelled():
            self._task.result()  # raises what nobody expected

    def _wake_later(self) -> None:
        asyncio.get_running_loop().call_later(bot.LAZY_WRITE_AFTER_S, self._wake.set)

    async def _write_batches(self) -> None:
        try:
            while not self._closing:
                await self._wake.wait()
                self._wake.clear()
                while await self._write_batch():
                    pass
            while await self._write_batch():
                pass
        finally:  # it may be cancelled, with all tasks of a loop that ends; nobody must wait for ever then
            self._closing = True
            closed = bot.StoreError(f"{self._place} is closed.")
            unknown = bot.CommitUnknownError(f"{self._place} may or may not have the last changes: the process ends.")
            for error, operations in ((unknown, self._batch), (closed, self._queue)):
                for _, future in operations:
                    if not future.done():
                        future.set_exception(error)

    def _next_batch(self) -> list[tuple[Op, asyncio.Future[Any]]]:
        batch, size = list[tuple[Op, asyncio.Future[Any]]](), 0
        while self._queue and len(batch) < bot.BATCH_OPS_MAX and size < BATCH_BYTES_MAX:
            batch.append(self._queue.popleft())
            size += self._size(batch[-1][0])
        return batch

    async def _write_batch(self) -> bool:
        """Write what waits, as much as goes into one step, and return whether more waits."""
        batch = self._batch = self._next_batch()
        # With the last batch only: a cursor noted later than an event must never be on disk before it.
        notes, self._notes = ({}, self._notes) if self._queue else (self._notes, {})
        operations = [*(operation for _, operation in notes.values()), *(operation for operation, _ in batch)]
        results = await self._attempt(operations) if operations else []
        if refusal := bot.first(bot.StoreError, results):
            self._on_refusal()
            results += [refusal] * len(self._queue)
            batch += [self._queue.popleft() for _ in range(len(self._queue))]
            self._notes = notes | self._notes
            self.forget("cursor")
            self._wake_later()
        for (_, future), result in zip(batch, results[len(notes) :], strict=True):
            if future.done():  # its caller was cancelled; what is written stays written
                continue
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)
        return bool(self._queue)

    async def _attempt(self, operations: list[Op]) -> list[Any]:
        try:
            return await self._perform(operations)
        except Exception as error:
            return [error] * len(operations)
