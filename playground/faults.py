"""Faults that a test injects into the REST answers."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from .errors import KNOWN
from .journal import Journal

Drop = Literal["before", "after"]


@dataclass(eq=False)
class Fault:
    """What happens to the next `times` requests that match; None means to all of them."""

    method: str
    path: str
    status: int | None
    code: int | None
    times: int | None
    delay_s: float
    drop: Drop | None
    retry_after: float
    is_global: bool
    hits: int = 0

    def matches(self, method: str, path: str) -> bool:
        if self.times is not None and self.hits >= self.times:
            return False
        return self.method in ("*", method) and fnmatchcase(path, self.path)


class Faults:
    """The faults in force. The first one that matches a request is used."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._faults: list[Fault] = []

    def add(
        self,
        *,
        method: str = "*",
        path: str = "*",
        status: int | None = None,
        code: int | None = None,
        times: int | None = 1,
        delay_s: float = 0.0,
        drop: Drop | None = None,
        retry_after: float = 1.0,
        is_global: bool = False,
    ) -> Fault:
        """Disturb requests whose path, without /api/v10, fits the pattern (`/channels/*`).

        `status` answers with it instead of doing anything, `code` with that JSON code and the status that goes with it.
        `delay_s` holds the answer back. `drop` cuts the connection "before" the request has any effect or "after" it
        took place. `retry_after` goes with status 429.
        """
        status = KNOWN[code][0] if code in KNOWN and status is None else status
        fault = Fault(method, path, status, code, times, delay_s, drop, retry_after, is_global)
        self._faults.append(fault)
        return fault

    def clear(self) -> None:
        self._faults.clear()

    def take(self, method: str, path: str) -> Fault | None:
        """The fault for this request, counted as used."""
        for fault in self._faults:
            if fault.matches(method, path):
                fault.hits += 1
                self._journal.note("fault", method=method, path=path, status=fault.status, drop=fault.drop)
                return fault
        return None
