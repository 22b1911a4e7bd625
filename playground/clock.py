"""Discord's time: real time that a test can move forward."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable


class Clock:
    """Seconds since 1970 as this Discord counts them; the 3 s and 15 min rules and all ids follow it."""

    def __init__(self) -> None:
        # Monotonic underneath: a correction of the machine's clock must not make an id smaller than the last one.
        self._start_s = time.time() - time.monotonic()
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._timer: asyncio.TimerHandle | None = None

    def now(self) -> float:
        return self._start_s + time.monotonic()

    def advance(self, seconds: float) -> None:
        """Move the time forward. What became due has run when this returns."""
        if seconds < 0:
            raise ValueError(f"The clock only moves forward, not by {seconds} s.")
        self._start_s += seconds
        self._run_due()

    def call_at(self, at: float, what: Callable[[], None]) -> None:
        """Run `what` once when the time is reached, whether by waiting or by `advance`."""
        heapq.heappush(self._due, (at, next(self._order), what))
        if self._due[0][2] is what:
            self._arm()

    def stop(self) -> None:
        """Forget everything that is not due yet."""
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
