"""A bot's web side in the test's own process: verifies with PyPI's discord-interactions, answers as the test says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Self

from aiohttp import web
from discord_interactions import verify_key

from playground import Discord

Json = dict[str, Any]
Answering = Callable[[Json], Awaitable[web.StreamResponse]]


def says(body: Any, status: int = 200, **more: Any) -> web.Response:
    """An answer with JSON."""
    return web.Response(status=status, body=json.dumps(body), content_type="application/json", **more)


def message(content: str) -> web.Response:
    """The answer that is a message."""
    return says({"type": 4, "data": {"content": content}})


class Site:
    """`async with Site(discord) as site: await discord.set_endpoint(site.url)`"""

    def __init__(
        self,
        discord: Discord,
        answer: Answering | web.Response | None = None,
        *,
        socket: str = "",
        pong: web.Response | None = None,
        when_wrong: int = 401,
    ) -> None:
        self.answer = answer
        self.requests: list[tuple[bytes, web.BaseRequest]] = []
        """Every interaction that was signed, PINGs left out, as it came."""
        self.refused = 0
        self.is_silent = False
        self._discord = discord
        self._socket = socket
        self._pong = pong or says({"type": 1})
        self._when_wrong = when_wrong

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/interactions", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = (
            web.UnixSite(self._runner, self._socket)
            if self._socket
            else web.TCPSite(self._runner, "127.0.0.1", 0, backlog=1024)
        )
        await site.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        if self._socket:
            return f"unix:{self._socket}:/interactions"
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}/interactions"

    @property
    def interactions(self) -> list[Json]:
        return [json.loads(body) for body, _ in self.requests]

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        signature, at = (request.headers.get(f"X-Signature-{name}", "") for name in ("Ed25519", "Timestamp"))
        if self.is_silent:
            await asyncio.Event().wait()
        if not verify_key(body, signature, at, self._discord.public_key):
            self.refused += 1
            return web.Response(status=self._when_wrong)
        if (payload := json.loads(body))["type"] == 1:
            return again(self._pong)
        self.requests.append((body, request))
        if isinstance(self.answer, web.Response):
            return again(self.answer)
        assert self.answer is not None
        return await self.answer(payload)


def again(answer: web.Response) -> web.Response:
    """The same answer to another request."""
    return web.Response(status=answer.status, body=answer.body, headers=answer.headers)
