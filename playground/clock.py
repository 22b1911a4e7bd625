"""Discord's time: real time that a test can move forward."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import struct
import time
from collections.abc import AsyncGenerator, Callable, Generator
from pathlib import Path


class Clock:
    """Seconds since 1970 as this Discord counts them; the 3 s and 15 min rules and all ids follow it."""

    def __init__(self) -> None:
        # Monotonic underneath: a correction of the machine's clock must not make an id smaller than the last one.
        self._start_s = time.time() - time.monotonic()
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._timer: asyncio.TimerHandle | None = None
        self.offset_s = 0.0
        """How far it has been moved in all."""
        self.on_advance: Callable[[], None] = lambda: None
        self._file: Path | None = None

    def now(self) -> float:
        return self._start_s + time.monotonic()

    def advance(self, seconds: float) -> None:
        """Move the time forward, here and in the processes of bots. What became due here has run when this returns.

        A bot's time.time() is moved, its monotonic clocks are not: a sleep that has begun takes as long as before.
        """
        if seconds < 0:
            raise ValueError(f"The clock only moves forward, not by {seconds} s.")
        self._start_s += seconds
        self.offset_s += seconds
        self._write()
        self._run_due()
        self.on_advance()

    def call_at(self, at: float, what: Callable[[], None]) -> None:
        """Run `what` once when the time is reached, whether by waiting or by `advance`."""
        heapq.heappush(self._due, (at, next(self._order), what))
        if self._due[0][2] is what:
            self._arm()

    @contextlib.asynccontextmanager
    async def timeout(self, seconds: float) -> AsyncGenerator[None]:
        """Raise TimeoutError in what is under way here when the time is over, whether by waiting or by `advance`."""
        is_over = False

        def end() -> None:
            if not is_over:
                limit.reschedule(asyncio.get_running_loop().time())

        async with asyncio.timeout(None) as limit:
            self.call_at(self.now() + seconds, end)
            try:
                yield
            finally:
                is_over = True

    # Other clocks that go with it

    def share(self, file: Path) -> None:
        """Keep the offset in that file, where the processes of bots read it (playground/moved/sitecustomize.py)."""
        self._file = file
        self._write()

    def _write(self) -> None:
        if self._file is not None:  # in place: a process may hold a map of the file
            with self._file.open("r+b" if self._file.exists() else "wb") as file:
                file.write(struct.pack("<d", self.offset_s))

    @contextlib.contextmanager
    def here(self) -> Generator[None]:
        """Let time.time() of this process go with the clock, for a bot that runs in it.

        with discord.clock.here():
            discord.clock.advance(3600)
        """
        real = time.time
        time.time = lambda: real() + self.offset_s
        try:
            yield
        finally:
            time.time = real

    def stop(self) -> None:
        """Forget everything that is not due yet, and the file."""
        self._file = None
        self._due.clear()
        self._arm()

    def _run_due(self) -> None:
        while self._due and self._due[0][0] <= self.now():
            heapq.heappop(self._due)[2]()
        self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if self._due:
            delay_s = max(0.0, self._due[0][0] - self.now())
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._run_due)
