"""A bot with no library: a socket and a REST client, in the test's own process, for looking at single steps."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Callable
from typing import Any, Self

import aiohttp

from playground import Discord

GUILDS, GUILD_MESSAGES, DIRECT_MESSAGES, MESSAGE_CONTENT = 1 << 0, 1 << 9, 1 << 12, 1 << 15
EVERYTHING = GUILDS | GUILD_MESSAGES | DIRECT_MESSAGES | MESSAGE_CONTENT

Json = dict[str, Any]


async def until(is_so: Callable[[], bool], timeout: float = 10) -> None:
    """Wait until something is so that nothing announces."""
    async with asyncio.timeout(timeout):
        while not is_so():
            await asyncio.sleep(0.005)


class Rest:
    """REST calls with the bot's token: `status, body = await rest("GET", "/users/@me")`."""

    def __init__(self, discord: Discord) -> None:
        self.discord = discord
        self.headers: Json = {}
        self.session = aiohttp.ClientSession()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.close()

    async def __call__(self, method: str, path: str, body: Any = None, token: str | None = None, **more: Any) -> Any:
        headers = {"Authorization": f"Bot {token or self.discord.token}", **more.pop("headers", {})}
        url = self.discord.api + path
        async with self.session.request(method, url, json=body, headers=headers, **more) as response:
            self.headers = dict(response.headers)
            raw = await response.read()
            return response.status, json.loads(raw) if raw else None

    async def answer(self, interaction: Json, type_: int, data: Json | None = None, query: str = "") -> Any:
        path = f"/interactions/{interaction['id']}/{interaction['token']}/callback{query}"
        return await self("POST", path, {"type": type_} if data is None else {"type": type_, "data": data})

    async def webhook(self, method: str, interaction: Json, body: Json | None = None, message: str = "") -> Any:
        path = f"/webhooks/{interaction['application_id']}/{interaction['token']}"
        return await self(method, f"{path}/messages/{message}" if message else path, body)


class Socket:
    """One gateway connection, step by step."""

    def __init__(self, discord: Discord, *, compress: bool = False, path: str = "/gateway") -> None:
        self.discord = discord
        self.url = f"{discord.url}{path}?v=10&encoding=json" + ("&compress=zlib-stream" if compress else "")
        self.seq = 0
        self.session_id = ""
        self.close_code: int | None = None
        self._inflate = zlib.decompressobj() if compress else None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession()
        self.ws = await self._session.ws_connect(self.url, autoclose=False)
        hello = await self.receive()
        assert hello["op"] == 10
        return self

    async def __aexit__(self, *_: object) -> None:
        self.abort()
        response: Any = self.ws._response
        response.close()
        await self._session.close()

    def abort(self) -> None:
        """End the connection without a close frame."""
        response: Any = self.ws._response
        if response.connection is not None:
            response.connection.transport.abort()

    async def receive(self) -> Json:
        """The next payload. After the server's close frame: {"op": "closed", "code": …}."""
        message = await self.ws.receive(timeout=10)
        if message.type is aiohttp.WSMsgType.CLOSE:
            self.close_code = message.data
            await self.ws.close()
            return {"op": "closed", "code": message.data}
        if message.type in (aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR):
            return {"op": "closed", "code": None}
        raw = self._inflate.decompress(message.data).decode() if self._inflate else message.data
        payload = json.loads(raw)
        if payload["op"] == 0:
            self.seq = payload["s"]
        return payload

    async def event(self, name: str) -> Json:
        """The data of the next event of that name."""
        while True:
            payload = await self.receive()
            assert payload["op"] != "closed", payload
            if payload.get("t") == name:
                return payload["d"]

    async def events(self, until: str) -> list[str]:
        """The names of all events up to and with that one."""
        names: list[str] = []
        while until not in names:
            payload = await self.receive()
            assert payload["op"] != "closed", payload
            if payload["op"] == 0:
                names.append(payload["t"])
        return names

    async def send(self, op: int, data: Any) -> None:
        await self.ws.send_json({"op": op, "d": data})

    async def identify(self, intents: int = EVERYTHING, token: str | None = None, **more: Any) -> Self:
        properties = {"os": "linux", "browser": "raw", "device": "raw"}
        wanted = {"token": token or self.discord.token, "intents": intents, "properties": properties, **more}
        await self.send(2, wanted)
        if token is None and not more.keys() - {"shard"}:
            ready = await self.event("READY")
            self.session_id = ready["session_id"]
            if intents & GUILDS and not more:
                await self.event("GUILD_CREATE")
        return self

    async def resume(self, session_id: str, seq: int | None, token: str | None = None) -> None:
        await self.send(6, {"token": token or self.discord.token, "session_id": session_id, "seq": seq})


class RawBot:
    """A socket and a REST client together; the interactions it gets wait in `interactions`."""

    def __init__(self, discord: Discord, intents: int = EVERYTHING) -> None:
        self.rest = Rest(discord)
        self.socket = Socket(discord)
        self.intents = intents
        self.interactions: asyncio.Queue[Json] = asyncio.Queue()
        self.events: list[Json] = []

    async def __aenter__(self) -> Self:
        await self.socket.__aenter__()
        await self.socket.identify(self.intents)
        self._reader = asyncio.create_task(self._read())
        return self

    async def _read(self) -> None:
        while True:
            payload = await self.socket.receive()
            self.events.append(payload)
            if payload.get("t") == "INTERACTION_CREATE":
                self.interactions.put_nowait(payload["d"])
            if payload["op"] == "closed":
                return

    async def __aexit__(self, *_: object) -> None:
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        await self.socket.__aexit__()
        await self.rest.__aexit__()

    async def interaction(self) -> Json:
        """The next interaction."""
        async with asyncio.timeout(10):
            return await self.interactions.get()
