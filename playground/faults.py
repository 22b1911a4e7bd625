"""Faults that a test injects: into the REST answers, and into the delivery of interactions over HTTP."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from .errors import KNOWN
from .journal import Journal

Drop = Literal["before", "after"]
Cut = Literal["asked", "answered"]
When = Literal["at once", "answered"]
Signature = Literal["wrong", "missing"]


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


@dataclass(eq=False)
class DeliveryFault:
    """What happens to the next `times` interactions of that kind; None means to all of them."""

    kind: str = "*"
    times: int | None = 1
    copies: int = 1
    when: When = "at once"
    drop: Cut | None = None
    delay_s: float = 0.0
    hold: asyncio.Event | None = None
    signature: Signature | None = None
    age_s: float = 0.0
    hits: int = 0

    def matches(self, kind: str) -> bool:
        return (self.times is None or self.hits < self.times) and self.kind in ("*", kind)

    async def wait(self) -> None:
        """Wait as long as the fault wants it."""
        if self.delay_s > 0:
            await asyncio.sleep(self.delay_s)
        if self.hold is not None:
            await self.hold.wait()


class DeliveryFaults:
    """The faults in force. The first one that matches an interaction is used."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._faults: list[DeliveryFault] = []

    def add(
        self,
        *,
        kind: str = "*",
        times: int | None = 1,
        copies: int = 1,
        when: When = "at once",
        drop: Cut | None = None,
        delay_s: float = 0.0,
        hold: asyncio.Event | None = None,
        signature: Signature | None = None,
        age_s: float = 0.0,
    ) -> DeliveryFault:
        """Disturb how interactions of a kind ("command", "component", "form", "autocomplete") come to the endpoint.

        `copies` is how often the same request is sent: all of them "at once", or the later ones when the first was
        "answered" (or has failed). What the person gets is up to the first one, and so are the next three: `drop` cuts
        its connection when the bot has been "asked", or when it has "answered" and nothing of that has been read;
        before that, or before the answer is taken, `delay_s` passes and `hold` has to be set. `signature` is "wrong" or
        "missing", and `age_s` is how old the timestamp is that was signed.
        """
        if copies < 1:
            raise ValueError(f"An interaction is delivered at least once, not {copies} times.")
        fault = DeliveryFault(kind, times, copies, when, drop, delay_s, hold, signature, age_s)
        self._faults.append(fault)
        return fault

    def clear(self) -> None:
        self._faults.clear()

    def take(self, kind: str) -> DeliveryFault:
        """The fault for this interaction, counted as used; one that disturbs nothing when there is none."""
        for fault in self._faults:
            if fault.matches(kind):
                fault.hits += 1
                self._journal.note(
                    "fault", interaction=kind, copies=fault.copies, drop=fault.drop, signature=fault.signature
                )
                return fault
        return DeliveryFault()
