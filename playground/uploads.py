"""Files as clients and people send them."""

from __future__ import annotations

import mimetypes
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

from .shapes import ATTACHMENT_BYTES_MAX

PNG, GIF = b"\x89PNG\r\n\x1a\n", (b"GIF87a", b"GIF89a")


class Upload(NamedTuple):
    """A file as it was sent."""

    filename: str
    content_type: str
    data: bytes
    description: str | None = None

    @property
    def size(self) -> tuple[int, int] | None:
        """Width and height of a picture; None for what is none, or of a kind that is not looked into."""
        if self.data.startswith(PNG) and len(self.data) >= 24:
            return struct.unpack(">II", self.data[16:24])
        if self.data.startswith(GIF) and len(self.data) >= 10:
            return struct.unpack("<HH", self.data[6:10])
        return None


def content_type_of(filename: str, given: str | None = None) -> str:
    """What Discord says a file is: it goes by the name, and by what the client said only when the name says nothing."""
    found = mimetypes.guess_type(filename)[0] or given or "application/octet-stream"
    return f"{found}; charset=utf-8" if found.startswith("text/") and "charset" not in found else found


def as_upload(given: Any, known: Mapping[str, Upload]) -> Upload:
    """A file as a person picks it: `(name, bytes)`, or the id of one that lies ready."""
    if isinstance(given, str) and given in known:
        return known[given]
    if not isinstance(given, Upload):
        match given:
            case (str(name), bytes(data)):
                given = Upload(name, content_type_of(name), data)
            case _:
                raise ValueError(f"A file is given as (name, bytes), not as {type(given).__name__}.")
    if len(given.data) > ATTACHMENT_BYTES_MAX:
        raise ValueError(f"{given.filename} is larger than the {ATTACHMENT_BYTES_MAX >> 20} MiB a person may send.")
    return given


def as_uploads(given: Any, known: Mapping[str, Upload]) -> list[Upload]:
    """One file or several."""
    match given:
        case str() | Upload() | (str(), bytes()):
            return [as_upload(given, known)]
        case _:
            return [as_upload(each, known) for each in given]
