"""What SQLite does to its files, told in order and, on request, refused: a layer under every connection of a process.

SQLite reaches the system through a table of functions (its VFS). `put_under_sqlite` makes the table that is in use by
default one that asks and tells and then does what the usual one does. It works by ctypes alone, so nothing has to be
installed; a Python that hides SQLite's functions is the one thing it cannot do (`why_not` says so).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sqlite3
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_int64, c_void_p
from pathlib import Path
from typing import Any, Literal, NamedTuple

OK = 0
CREATE, NAMELESS = 0x4, b""


class Step(NamedTuple):
    """One thing that is done to a file. `at`: the offset, the new size, or whether the folder is synced as well."""

    what: Literal["open", "write", "truncate", "sync", "delete"]
    file: str
    at: int = 0
    data: bytes = b""


class Told(NamedTuple):
    """What a store said is durable: an event's way (accepted, failed, retried, done), a flushed seq; opened, closed."""

    what: str
    worker: int = 0
    seq: int = 0


Ask = Callable[[Step], int]  # before it is done; another answer than OK is an error code that SQLite gets instead
Tell = Callable[[Step], None]  # when it is done


METHODS = (
    "close read write truncate sync size lock unlock check_lock control sector_size traits"
    " map_shm lock_shm barrier_shm unmap_shm fetch unfetch"
)
CALLS = (
    "open delete access full_name dl_open dl_error dl_symbol dl_close random sleep time last_error time_64"
    " set_call get_call next_call"
)


class Methods(ctypes.Structure):
    """sqlite3_io_methods, version 3."""

    _fields_ = (("version", c_int), *((name, c_void_p) for name in METHODS.split()))


class File(ctypes.Structure):
    """sqlite3_file: whoever opened it keeps more behind this."""

    _fields_ = (("methods", POINTER(Methods)),)


class System(ctypes.Structure):
    """sqlite3_vfs, version 3."""

    _fields_ = (
        ("version", c_int),
        ("file_size", c_int),
        ("longest_name", c_int),
        ("next", c_void_p),
        ("name", c_char_p),
        ("data", c_void_p),
        *((name, c_void_p) for name in CALLS.split()),
    )


OPEN = CFUNCTYPE(c_int, c_void_p, c_void_p, POINTER(File), c_int, POINTER(c_int))
DELETE = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int)
CLOSE = CFUNCTYPE(c_int, c_void_p)
WRITE = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
TRUNCATE = CFUNCTYPE(c_int, c_void_p, c_int64)
SYNC = CFUNCTYPE(c_int, c_void_p, c_int)

KEPT: list[Any] = []  # what SQLite calls must never be collected


def functions() -> ctypes.CDLL | None:
    """Return the SQLite that Python's sqlite3 itself uses, or None when it cannot be reached."""
    import _sqlite3

    file = getattr(_sqlite3, "__file__", None)
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(file)
        library.sqlite3_sourceid.restype = c_char_p
        library.sqlite3_vfs_find.restype = POINTER(System)
        with contextlib.closing(sqlite3.connect(":memory:")) as db:
            [source] = db.execute("SELECT sqlite_source_id()").fetchone()
        if library.sqlite3_sourceid().decode() == source and library.sqlite3_vfs_find(None).contents.version == 3:
            return library
    return None


def why_not() -> str:
    """Return why tests of this kind cannot run here, or ""."""
    return "" if os.name == "posix" and functions() else "this Python does not let its SQLite's functions be reached"


def put_under_sqlite(ask: Ask, tell: Tell) -> None:
    """Ask before, and tell after, everything that is done to a file by a connection opened from now on."""
    library = functions()
    assert library, why_not()
    usual = library.sqlite3_vfs_find(None)
    ours = System()
    ctypes.memmove(ctypes.byref(ours), usual, ctypes.sizeof(System))
    ours.name, ours.next = b"told", None
    usual_open, usual_delete = OPEN(usual.contents.open), DELETE(usual.contents.delete)
    names: dict[int, str] = {}
    tables: dict[int, Methods] = {}

    def do(step: Step, act: Callable[[], int]) -> int:
        code = ask(step) or act()
        if code == OK:
            tell(step)
        return code

    def open_file(_: int, name: int | None, file: Any, flags: int, out: Any) -> int:
        plain = Path(os.fsdecode(ctypes.string_at(name) if name else NAMELESS)).name
        step = Step("open", plain, int(bool(flags & CREATE)))
        act = lambda: usual_open(usual_address, name, file, flags, out)  # noqa: E731
        code = do(step, act) if name else act()
        if name and code == OK and file.contents.methods:
            address = ctypes.addressof(file.contents)
            names[address] = plain
            table = ctypes.addressof(file.contents.methods.contents)
            if table not in tables:
                tables[table] = told(file.contents.methods.contents)
            file.contents.methods = ctypes.pointer(tables[table])
        return code

    def told(methods: Methods) -> Methods:
        copy = Methods()
        ctypes.memmove(ctypes.byref(copy), ctypes.byref(methods), ctypes.sizeof(Methods))
        usual_close, usual_write = CLOSE(methods.close), WRITE(methods.write)
        usual_truncate, usual_sync = TRUNCATE(methods.truncate), SYNC(methods.sync)

        def close(file: int) -> int:
            names.pop(file, None)
            return usual_close(file)

        def write(file: int, data: int, size: int, at: int) -> int:
            step = Step("write", names[file], at, ctypes.string_at(data, size))
            return do(step, lambda: usual_write(file, data, size, at))

        def truncate(file: int, size: int) -> int:
            return do(Step("truncate", names[file], size), lambda: usual_truncate(file, size))

        def sync(file: int, flags: int) -> int:
            return do(Step("sync", names[file]), lambda: usual_sync(file, flags))

        for name, kind, function in (
            ("close", CLOSE, close),
            ("write", WRITE, write),
            ("truncate", TRUNCATE, truncate),
            ("sync", SYNC, sync),
        ):
            callback = kind(function)
            KEPT.append(callback)
            setattr(copy, name, ctypes.cast(callback, c_void_p))
        return copy

    def delete_file(_: int, name: bytes, sync_folder: int) -> int:
        step = Step("delete", Path(os.fsdecode(name)).name, sync_folder)
        return do(step, lambda: usual_delete(usual_address, name, sync_folder))

    usual_address = ctypes.addressof(usual.contents)
    opening, deleting = OPEN(open_file), DELETE(delete_file)
    ours.open, ours.delete = ctypes.cast(opening, c_void_p), ctypes.cast(deleting, c_void_p)
    KEPT.extend((ours, opening, deleting, tables))
    assert library.sqlite3_vfs_register(ctypes.byref(ours), 1) == OK
