"""For all tests: nothing leaves this machine, and what a storm came to is told at the end."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit import mount

pytest_plugins = ["tests.leaks"]

LOCAL = ("127.", "::1", "localhost", "0.0.0.0")


def refuse_strangers(event: str, args: tuple[Any, ...]) -> None:
    """Raise when a test looks up or connects to another machine; a Unix socket's address is no tuple and passes."""
    if event == "socket.getaddrinfo":
        host = args[0]
    elif event == "socket.connect" and isinstance(args[1], tuple):
        host = args[1][0]
    else:
        return
    if isinstance(host, str) and host and not host.startswith(LOCAL):
        raise AssertionError(f"a test tried to reach {host}; tests may only reach 127.0.0.1")


sys.addaudithook(refuse_strangers)


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A disk of one megabyte."""
    folder = Path(tempfile.mkdtemp())
    if os.name != "posix" or not shutil.which("mount") or os.geteuid() or mount(folder, "-t", "tmpfs", "size=1m"):
        folder.rmdir()
        pytest.skip("needs root and mount(8), for a disk small enough to fill")
    yield folder
    subprocess.run(["umount", folder], check=True)
    folder.rmdir()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the totals that tests recorded."""
    reports = terminalreporter.getreports("passed")
    totals = [value for report in reports for name, value in report.user_properties if name == "totals"]
    if totals:
        terminalreporter.section("totals")
    for line in totals:
        terminalreporter.line(str(line))
