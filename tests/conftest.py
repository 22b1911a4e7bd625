"""One rule for all tests: nothing leaves this machine."""

import sys
from typing import Any

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
