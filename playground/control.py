"""The page and its socket: what people see and do in a browser."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import msgspec
from aiohttp import WSMsgType, web

from .interactions import Interaction, Interactions
from .people import Person
from .process import BotProcess
from .shapes import Completion, Json
from .world import What, World

PAGE = Path(__file__).parent / "page"
PAGE_HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'none'; base-uri 'none'; object-src 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
# What a bot uploaded is shown from the page's own address and must not run there.
UPLOAD_HEADERS = {"Content-Security-Policy": "sandbox; default-src 'none'", "X-Content-Type-Options": "nosniff"}
HELLO_WAIT_S = 5.0
LOG_LINES_AT_START = 1_000
NO_BOT: Json = {"name": "", "status": "none", "pid": None, "exit_code": None}


class Page:
    """Everything the browser gets, and everything it may ask for. Nothing is encoded while no page is open."""

    def __init__(self, world: World, interactions: Interactions, person: Callable[[str], Person]) -> None:
        self.token = secrets.token_urlsafe(32)
        self.bot: BotProcess | None = None
        self._world = world
        self._interactions = interactions
        self._person = person
        self._queues: dict[asyncio.Queue[bytes], web.WebSocketResponse] = {}
        world.listeners.append(self._on_change)
        interactions.watchers.append(self._on_interaction)

    def routes(self) -> list[web.AbstractRouteDef]:
        made: list[web.AbstractRouteDef] = [
            web.get("/", self.serve_index),
            web.get("/page/socket", self.serve_socket),
            web.get("/attachments/{channel}/{id}/{name}", self.serve_upload),
        ]
        return [*made, web.static("/page", PAGE)] if PAGE.is_dir() else made

    async def serve_index(self, request: web.Request) -> web.Response:
        index = PAGE / "index.html"
        if not index.is_file():
            return web.Response(status=404, text="playground/page/index.html is missing; the server itself works.")
        html = index.read_text(encoding="utf-8").replace("__TOKEN__", self.token)
        return web.Response(text=html, content_type="text/html", headers=PAGE_HEADERS)

    async def serve_upload(self, request: web.Request) -> web.Response:
        upload = self._world.uploads.get(request.match_info["id"])
        if upload is None:
            raise web.HTTPNotFound
        return web.Response(body=upload.data, headers={**UPLOAD_HEADERS, "Content-Type": upload.content_type})

    # The socket

    async def serve_socket(self, request: web.Request) -> web.StreamResponse:
        ws = web.WebSocketResponse(heartbeat=30.0)
        await ws.prepare(request)
        if not await self._is_greeted(ws):
            await ws.close(code=4001, message=b"say hello with the page's token first")
            return ws
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        queue.put_nowait(encoded("state", **self.state()))
        self._queues[queue] = ws
        writer = asyncio.create_task(self._write(ws, queue))
        try:
            async for message in ws:
                if message.type is WSMsgType.TEXT:
                    await self._on_text(message.data, queue)
        finally:
            del self._queues[queue]
            writer.cancel()
        return ws

    async def close(self) -> None:
        """Tell every open page that the playground has ended."""
        for ws in list(self._queues.values()):
            await ws.close(code=1001, message=b"the playground has ended")

    async def _is_greeted(self, ws: web.WebSocketResponse) -> bool:
        try:
            hello: Any = msgspec.json.decode(await ws.receive_str(timeout=HELLO_WAIT_S))
        except (TimeoutError, TypeError, msgspec.DecodeError):
            return False
        if not isinstance(hello, dict):
            return False
        words = cast(Json, hello)
        given = str(words.get("token")).encode()
        return words.get("do") == "hello" and secrets.compare_digest(given, self.token.encode())

    async def _write(self, ws: web.WebSocketResponse, queue: asyncio.Queue[bytes]) -> None:
        try:
            while True:
                await ws.send_str((await queue.get()).decode())
        except ConnectionError:
            pass  # the page is gone; its reader tidies up

    async def _on_text(self, text: str, queue: asyncio.Queue[bytes]) -> None:
        """Do what the page asks; what cannot be done is answered with a sentence."""
        try:
            asked: Any = msgspec.json.decode(text)
            action = ACTIONS.get(asked["do"])
            if action is None:
                raise ValueError(f"The playground cannot {asked['do']!r}.")
            await action(self, asked)
        except (LookupError, ValueError, TypeError, OSError) as problem:
            # KeyError is a LookupError whose text is only the key: a member that the page left out.
            words = f"{problem} is missing" if isinstance(problem, KeyError) else str(problem)
            queue.put_nowait(encoded("error", text=words))

    # What the page asks for

    async def do_command(self, asked: Json) -> None:
        person = self._person(asked["as"])
        person.start_command(asked["name"], asked.get("options") or {}, channel=asked["channel_id"])

    async def do_click(self, asked: Json) -> None:
        self._person(asked["as"]).click(custom_id=asked["custom_id"], message=str(asked["message_id"]))

    async def do_select(self, asked: Json) -> None:
        person = self._person(asked["as"])
        person.select(values=asked["values"], custom_id=asked["custom_id"], message=str(asked["message_id"]))

    async def do_submit(self, asked: Json) -> None:
        self._person(asked["as"]).submit(asked["values"], interaction_id=asked["interaction_id"])

    async def do_dismiss(self, asked: Json) -> None:
        self._person(asked["as"]).dismiss(str(asked["message_id"]))

    async def do_say(self, asked: Json) -> None:
        await self._person(asked["as"]).say(asked["content"], asked["channel_id"])

    async def do_bot(self, asked: Json) -> None:
        if self.bot is None:
            raise LookupError("No bot was given to the playground. Start it with: python -m playground bot.py")
        action = asked["action"]
        if action == "kill":
            self.bot.kill()
        elif action == "start":
            await self.bot.start()
        elif action == "stop":
            await self.bot.terminate()
        elif action == "restart":
            await self.bot.restart()
        else:
            raise ValueError(f"A bot cannot be told to {action!r}.")

    async def do_advance(self, asked: Json) -> None:
        self._world.clock.advance(float(asked["seconds"]))

    # What the page is told

    def state(self) -> Json:
        """Everything, for a page that has just opened."""
        world = self._world
        pending = [interaction.for_page() for interaction in self._interactions.pending.values()]
        return {
            "users": self._users(),
            "guild": {"id": world.guild["id"], "name": world.guild["name"]},
            "channels": [{"id": channel["id"], "name": name_of(channel)} for channel in world.channels.values()],
            "commands": list(world.commands.values()),
            "messages": [kept.for_page() for kept in world.all_messages() if not kept.dismissed],
            "bot": self.bot.for_page() if self.bot else NO_BOT,
            "log": self.bot.log[-LOG_LINES_AT_START:] if self.bot else [],
            "interactions": pending,
        }

    def _users(self) -> list[Json]:
        people = self._world.people()
        return [{"id": one["id"], "username": one["username"], "name": one["global_name"]} for one in people]

    def _send(self, type_: str, **values: Any) -> None:
        message = encoded(type_, **values)
        for queue in self._queues:
            queue.put_nowait(message)

    def _on_change(self, what: What, subject: Any) -> None:
        if not self._queues:
            return
        if what in ("message", "edit"):
            self._send("message", message=subject.for_page())
        elif what == "gone":
            self._send("message_gone", channel_id=subject.message["channel_id"], id=subject.id)
        elif what == "commands":
            self._send("commands", commands=list(self._world.commands.values()))
        elif what == "users":
            self._send("users", users=self._users())
        else:
            self._send("state", **self.state())

    def _on_interaction(self, interaction: Interaction) -> None:
        if not self._queues:
            return
        self._send("interaction", interaction=interaction.for_page())
        callback = interaction.callback
        if callback is not None and callback["type"] == 9:
            components = Completion(callback["data"]["components"], []).all(callback["data"]["components"])
            form = {**callback["data"], "components": components}
            self._send("form", interaction_id=interaction.id, user_id=interaction.user["id"], form=form)

    def show_bot(self) -> None:
        if self._queues and self.bot is not None:
            self._send("bot", bot=self.bot.for_page())

    def show_line(self, line: str) -> None:
        if self._queues:
            self._send("log", line=line)


ACTIONS: dict[str, Callable[[Page, Json], Awaitable[None]]] = {
    "command": Page.do_command,
    "click": Page.do_click,
    "select": Page.do_select,
    "submit": Page.do_submit,
    "dismiss": Page.do_dismiss,
    "say": Page.do_say,
    "bot": Page.do_bot,
    "advance": Page.do_advance,
}


def encoded(type_: str, **values: Any) -> bytes:
    return msgspec.json.encode({"type": type_, **values})


def name_of(channel: Json) -> str:
    return channel["name"] if channel["type"] == 0 else f"@{channel['recipients'][0]['username']}"
