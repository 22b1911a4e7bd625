"""For all tests: nothing leaves this machine, some have it for themselves, and what a storm came to is told."""

import inspect
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit import Now, mount

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
# Nothing here speaks TLS, and a third of what it costs to run a bot would be to read the machine's certificates.
pytest.MonkeyPatch().setattr(ssl.SSLContext, "load_default_certs", lambda *_: None)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --alone."""
    parser.addoption(
        "--alone", action="store_true", help="run only the tests that workers leave out: those marked alone"
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """Return how many workers `-n auto` starts: more than there are cores, for most of a test is waiting."""
    return None if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else 2 * (os.cpu_count() or 1)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests marked `alone` out of workers, which share the machine, and all others with --alone."""
    if hasattr(config, "workerinput"):
        left_out = {item for item in items if item.get_closest_marker("alone")}
    elif config.getoption("--alone"):
        left_out = {item for item in items if not item.get_closest_marker("alone")}
    else:
        return
    config.hook.pytest_deselected(items=[*left_out])
    items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Iterator[None]:
    """Let a report that has half of a character in it, from a hostile log line say, be sent by a worker."""
    return sendable((yield))


def sendable(value: Any) -> Any:
    """Return plain data with every text in it such that it can be encoded."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {sendable(key): sendable(each) for key, each in value.items()}
    return type(value)(map(sendable, value)) if isinstance(value, list | tuple) else value


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


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what is marked `both_modes` through the gateway and over HTTP; where a file is, its coroutines.

    A test that is no coroutine seldom has a bot, so it has to say so itself.
    """
    test = metafunc.definition
    is_meant = inspect.iscoroutinefunction(metafunc.function) or any(
        each.name == "both_modes" for each in test.own_markers
    )
    if is_meant and test.get_closest_marker("both_modes"):
        modes = [mode for mode in ("gateway", "rest") if test.get_closest_marker(f"{mode}_only")]
        metafunc.parametrize("mode", modes or ["gateway", "rest"], indirect=True)


@pytest.fixture(autouse=True)
def mode(request: pytest.FixtureRequest) -> Iterator[str]:
    """How the bots of this test get their interactions."""
    Now.mode = getattr(request, "param", "gateway")
    yield Now.mode
    Now.mode = "gateway"
