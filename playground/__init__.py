"""A local Discord over real sockets: run and click a bot with no account and no internet."""

from .server import Discord

__all__ = ["Discord"]
