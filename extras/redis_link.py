"""The way to a Redis server and back, for redis_store.py: connections, the script, and what to make of silence."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import re
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import redis.asyncio
from redis import exceptions
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

import bot
from bot import CommitUnknownError, OperatorError, StoreError
from extras import is_plain, place_of

log = logging.getLogger("everclick")

OLDEST_SERVER, WAITAOF_SINCE = (6, 2), (7, 2)
CONNECTIONS_MAX = 16
ANSWER_WITHIN_S = (2.0, 5.0)  # lease_s, but within these: after it a connection is given up, or an attempt to get one
RETRY_AFTER_MAX_S = 1.0

REMEDIES = (
    ("OOM|maxmemory", "has no memory left", "Raise its maxmemory; nothing that was accepted is lost"),
    ("READ.?ONLY", "is a replica, which cannot be written", "Set STORE to its primary"),
    ("MISCONF|NOREPLICAS", "refuses to write", "See in its log what is wrong with its disk or its replicas"),
    ("NOAUTH|WRONGPASS|NOPERM|password|Authentication", "refuses the bot", "See the user and the password in STORE"),
    ("MOVED|CROSSSLOT|CLUSTER", "is a part of a cluster", "Set STORE to a server that has all keys"),
    ("LOADING|connect|closed|timeout|errno", "cannot be reached", "See that it runs and that STORE has its address"),
    ("", "cannot be used", "See its log"),
)


class RedisLink:
    """One process's connections to a server, and the script there. Everything goes through `ask`."""

    def __init__(self, url: str, prefix: str, owner: str, lease_s: float, max_hold_s: float) -> None:
        self.place, self._url, self._lease_s = place_of(url), url, lease_s
        self._arguments = 1, prefix, owner, round(lease_s * 1000), round(max_hold_s * 1000)
        self._answer_within_s = min(max(lease_s, ANSWER_WITHIN_S[0]), ANSWER_WITHIN_S[1])
        self._away, self._heard_at, self._back_at = False, 0.0, -lease_s
        self._waits_for_disk, self._closed = False, False
        self._pool: Any = None
        self._slots = asyncio.Semaphore(CONNECTIONS_MAX)

    async def open(self, *first: bytes) -> list[Any]:
        """Connect, see whether the server will do, and return the results of some operations.

        Raises OperatorError when it will not, OutageError when it cannot be reached.
        """
        self._script = await asyncio.to_thread(Path(__file__).with_name("redis_store.lua").read_bytes)
        self._sha = hashlib.sha1(self._script, usedforsecurity=False).hexdigest()
        self._pool = self._make_pool()
        self._heard_at = asyncio.get_running_loop().time()
        try:
            await self._examine()
            async with self._connection() as connection:
                results = await self._exchange(connection, -1, first)
            if refused := bot.first(exceptions.ResponseError, results):
                raise refused
            return results
        except (exceptions.RedisError, OSError) as error:
            is_outage = not isinstance(error, exceptions.ResponseError | exceptions.AuthenticationError)
            raise (bot.OutageError if is_outage else OperatorError)(self.explain(error)) from error

    def _make_pool(self) -> Any:
        try:
            settings: dict[str, Any] = {**parse_url(self._url), "decode_responses": False}
            # Sent again by redis-py itself, an operation would be done twice. With protocol 3 it does not look whether
            # a connection was closed while it was not used; and with a time limit it loses cancellations (Python 3.11).
            settings |= {"retry": Retry(NoBackoff(), 0), "protocol": 2, "socket_timeout": None}
            settings |= {"socket_connect_timeout": self._answer_within_s}
            if is_plain(self._url):
                return redis.asyncio.ConnectionPool(**settings)
        except (ValueError, TypeError):
            pass  # its text may show the password
        wanted = "redis://user:password@host:6379/0, with special characters of the password percent-encoded"
        raise OperatorError(f"STORE is no address of a Redis server. Write {wanted}.")

    async def _examine(self) -> None:
        """Raise OperatorError when the server is too old, and warn of what makes it lose what was accepted."""
        server: Any = redis.asyncio.Redis(connection_pool=self._pool)
        info = await server.info()
        version = tuple(int(part) for part in info["redis_version"].split(".")[:2])
        if version < OLDEST_SERVER:
            raise OperatorError(f"{self.place} is Redis {info['redis_version']}. The bot needs 6.2 or newer.")
        fsync, policy = "", info.get("maxmemory_policy", "noeviction")
        with contextlib.suppress(exceptions.ResponseError):  # hosted servers do not tell
            fsync = (await server.config_get("appendfsync")).get("appendfsync", "")
        self._waits_for_disk = bool(info["aof_enabled"]) and fsync in ("", "everysec") and version >= WAITAOF_SINCE
        if not info["aof_enabled"]:
            lost = "keeps nothing on disk (appendonly no): when it ends, what was accepted is lost"
            log.warning("%s %s. Set its appendonly to yes and its appendfsync to always.", self.place, lost)
        elif fsync != "always" and not self._waits_for_disk:
            lost = f"may lose the last second in a power cut (appendfsync {fsync or 'is not told'})"
            log.warning("%s %s. Set its appendfsync to always.", self.place, lost)
        if info.get("maxmemory") and policy != "noeviction":
            lost = f"will throw away what was accepted when its memory is full (maxmemory-policy {policy})"
            log.warning("%s %s. Set its maxmemory-policy to noeviction.", self.place, lost)

    async def close(self) -> None:
        self._closed = True
        if self._pool:
            await self._pool.disconnect()

    @contextlib.asynccontextmanager
    async def _connection(self) -> AsyncGenerator[Any]:
        async with self._slots:
            connection: Any = await self._pool.get_connection()
            try:
                yield connection
            finally:
                await self._pool.release(connection)

    async def ask(self, *operations: bytes, epoch: int = -1) -> list[Any]:
        """Have the operations done in one step and return their results, StoreErrors among them.

        Waits a little for a server that is away. Raises StoreError when nothing was done. With an epoch, for what must
        not be done twice, it raises CommitUnknownError when the answer was lost; without, it asks again.
        """
        clock = asyncio.get_running_loop().time
        deadline, pause_s = clock() + self._answer_within_s, 0.02
        while not self._closed:
            sent = False
            try:
                async with self._connection() as connection:
                    sent = epoch >= 0
                    results = await self._exchange(connection, epoch, operations)
                self._note_answer()
                return [StoreError(self.explain(each)) if isinstance(each, Exception) else each for each in results]
            except exceptions.ResponseError as error:
                raise StoreError(self.explain(error)) from error
            except (exceptions.RedisError, OSError) as error:
                self._note_silence(error)
                if sent and not isinstance(error, exceptions.BusyLoadingError):
                    raise CommitUnknownError(self.explain(error, "may or may not have the last changes")) from error
                if clock() + pause_s > deadline or isinstance(error, exceptions.AuthenticationError):
                    raise StoreError(self.explain(error)) from error
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, RETRY_AFTER_MAX_S)
        raise StoreError(f"{self.place} is closed.")

    async def _exchange(self, connection: Any, epoch: int, operations: Sequence[bytes]) -> list[Any]:
        arguments = (*self._arguments, epoch, *operations)
        async with asyncio.timeout(self._answer_within_s):
            await connection.send_command("EVALSHA", self._sha, *arguments)
            try:
                results = await connection.read_response()
            except exceptions.NoScriptError:  # the server was started again; nothing was done
                await connection.send_command("EVAL", self._script, *arguments)
                results = await connection.read_response()
            if self._waits_for_disk and epoch >= 0:
                await connection.send_command("WAITAOF", 1, 0, 0)
                await connection.read_response()
        return results

    def _note_answer(self) -> None:
        now = asyncio.get_running_loop().time()
        if (silent_s := now - self._heard_at) > self._lease_s:
            lost = "its events and leases may be another's by now"
            log.warning("%s did not hear of this process for %.1f s: %s", self.place, silent_s, lost)
        if self._away:
            log.info("%s can be reached again", self.place)
            self._back_at = now
        self._heard_at, self._away = now, False

    def _note_silence(self, error: Exception) -> None:
        if not self._away:
            log.warning("%s The bot goes on trying.", self.explain(error))
        self._away = True

    @property
    def was_away(self) -> bool:
        """Whether other processes may not have had the time to be heard of again since the server was away."""
        return asyncio.get_running_loop().time() < self._back_at + self._lease_s

    def explain(self, error: Exception, problem: str = "") -> str:
        """Return the sentence for an operator: problem, place, remedy."""
        text = re.sub(r"^@user_script: \d+: -?", "", " ".join(str(error).split()))[:200] or type(error).__name__
        _, usual, remedy = next(row for row in REMEDIES if re.search(row[0], f"{text} {type(error).__name__}", re.I))
        return bot.redact(f"{self.place} {problem or usual} ({text}). {remedy}.")

    async def listen(self, channel: str) -> AsyncGenerator[str]:
        """Yield "" when everything will be heard, and then what is said on the channel.

        Ends when the connection is lost, or nothing answers on it any more.
        """
        server: Any = redis.asyncio.Redis(connection_pool=self._pool)
        with contextlib.suppress(exceptions.RedisError, OSError):
            async with server.pubsub() as heard:
                await heard.subscribe(channel)
                is_answered = True
                while True:
                    message: Any = await heard.get_message(timeout=self._answer_within_s)
                    if message and message["type"] in ("subscribe", "message"):
                        yield message["data"].decode() if message["type"] == "message" else ""
                    elif not message and not is_answered:
                        return
                    elif not message:
                        await heard.ping()
                    is_answered = bool(message)
