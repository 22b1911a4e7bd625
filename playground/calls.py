"""One REST request, taken apart, and the answer to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from . import limits
from .shapes import Json
from .uploads import Upload

TRUE = ("true", "True", "1")


@dataclass
class Call:
    """One request, taken apart."""

    method: str
    path: str
    route: str
    params: dict[str, str]
    query: dict[str, str]
    body: Any = None
    uploads: list[Upload] = field(default_factory=list[Upload])
    reason: str | None = None

    @property
    def json(self) -> Json:
        """The body as an object; an empty one when there is none."""
        if self.body is None:
            return {}
        body: Any = self.body
        if not isinstance(body, dict):
            report = limits.Report()
            report.add((), "object")
            report.raise_if_any()
        return cast(Json, body)

    def number(self, name: str, default: int) -> int:
        """A number from the query."""
        given = self.query.get(name)
        if given is None:
            return default
        if not given.isdecimal():
            report = limits.Report()
            report.add((name,), "number", value=given, kind="int")
            report.raise_if_any()
        return int(given)

    @property
    def filenames(self) -> list[str]:
        return [upload.filename for upload in self.uploads]


Reply = tuple[int, Any]
NOTHING: Reply = (204, None)
