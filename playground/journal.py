"""Everything that happened, in order, for tests to look at."""

from __future__ import annotations

from typing import Any, NamedTuple

from .clock import Clock

ENTRIES_MAX = 200_000


class Entry(NamedTuple):
    """One thing that happened: `at` by the clock, a `kind`, and what belongs to it.

    Kinds: rest, gateway_in, gateway_out, gateway, interaction, delivery, endpoint, callback, hook, fault, bot, unknown.
    """

    at: float
    kind: str
    data: dict[str, Any]


class Journal(list[Entry]):
    """A list of entries that forgets its oldest tenth when it is full."""

    def __init__(self, clock: Clock, keep: int = ENTRIES_MAX) -> None:
        super().__init__()
        self._clock = clock
        self._keep = keep

    def note(self, kind: str, **data: Any) -> None:
        self.append(Entry(self._clock.now(), kind, data))
        if len(self) > self._keep:
            del self[: max(1, self._keep // 10)]

    def of(self, kind: str) -> list[Entry]:
        return [entry for entry in self if entry.kind == kind]
