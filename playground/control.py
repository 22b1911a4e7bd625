"""The page and its socket: what people see and do in a browser."""

from __future__ import annotations

import asyncio
import http
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, cast

import msgspec
from aiohttp import WSMsgType, web

from . import permissions
from .hooks import Hooks
from .interactions import Interaction, Interactions
from .people import Person
from .process import BotProcess
from .shapes import ATTACHMENT_BYTES_MAX, LOCALES, Completion, Json
from .uploads import Upload
from .usable import context_of, problem_with
from .world import GUILD_ID, MESSAGES_IN, What, World

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
HOOKS_EVERY_S = 1.0
NO_BOT: Json = {"name": "", "status": "none", "pid": None, "exit_code": None, "mode": None, "has_web": False}


class Page:
    """Everything the browser gets, and everything it may ask for. Nothing is encoded while no page is open."""

    def __init__(self, world: World, interactions: Interactions, hooks: Hooks, person: Callable[[str], Person]) -> None:
        self.token = secrets.token_urlsafe(32)
        self.bot: BotProcess | None = None
        self._world = world
        self._interactions = interactions
        self._hooks = hooks
        self._known: dict[str, str] | None = None
        """The hooks of the bot, when it has told of them."""
        self._watching: asyncio.Task[None] | None = None
        self._person = person
        self._queues: dict[asyncio.Queue[bytes], web.WebSocketResponse] = {}
        world.listeners.append(self._on_change)
        interactions.watchers.append(self._on_interaction)
        self._tasks: set[asyncio.Task[None]] = set()

    def routes(self) -> list[web.AbstractRouteDef]:
        made: list[web.AbstractRouteDef] = [
            web.get("/", self.serve_index),
            web.get("/page/socket", self.serve_socket),
            web.post("/page/upload", self.take_upload),
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

    async def take_upload(self, request: web.Request) -> web.Response:
        """A file that the page's reader has picked, kept until a command, form or message is sent with it."""
        if not self._is_tokens(request.headers.get("X-Playground-Token", "")):
            return web.json_response({"text": "This is not the page's token."}, status=403)
        data = await request.read()
        if len(data) > ATTACHMENT_BYTES_MAX:
            text = f"A file may have {ATTACHMENT_BYTES_MAX >> 20} MiB."
            return web.json_response({"text": text}, status=413)
        upload = Upload(request.query.get("name") or "file", request.content_type, data)
        return web.json_response(self._world.store("0", upload))

    def _is_tokens(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self.token.encode())

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
        self._watching = self._watching or asyncio.create_task(self._watch_hooks())
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
        tasks = [*self._tasks, *([self._watching] if self._watching else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
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
        return words.get("do") == "hello" and self._is_tokens(str(words.get("token")))

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
        options: Json = asked.get("options") or {}
        person = self._person(asked["as"])
        person.start_command(asked["name"], options, channel=asked["channel_id"], target=asked.get("target"))

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
        person, files = self._person(asked["as"]), asked.get("uploads", ())
        await person.say(asked["content"], asked["channel_id"], files=files, reply_to=asked.get("reply_to"))

    async def do_edit(self, asked: Json) -> None:
        await self._person(asked["as"]).edit(str(asked["message_id"]), asked["content"])

    async def do_delete(self, asked: Json) -> None:
        await self._person(asked["as"]).delete(str(asked["message_id"]))

    async def do_react(self, asked: Json) -> None:
        await self._person(asked["as"]).react(str(asked["message_id"]), asked["emoji"])

    async def do_unreact(self, asked: Json) -> None:
        await self._person(asked["as"]).unreact(str(asked["message_id"]), asked["emoji"])

    async def do_autocomplete(self, asked: Json) -> None:
        """In a task of its own: the page's other wishes do not wait until the bot has answered."""
        person = self._person(asked["as"])
        offered = person.start_autocomplete(
            asked["name"], asked["option"], asked["text"], asked.get("options") or {}, channel=asked["channel_id"]
        )
        self._spawn(self._tell_choices(asked.get("request"), offered))

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell_choices(self, request: Any, offered: Awaitable[list[Json]]) -> None:
        try:
            self._send("choices", request=request, choices=await offered)
        except (LookupError, ValueError, RuntimeError) as problem:
            self._send("choices", request=request, choices=[], problem=str(problem))

    async def do_usable(self, asked: Json) -> None:
        channel = self._world.channels.get(asked["channel_id"])
        user_id = self._person(asked["as"]).id
        commands = self._world.commands.values() if channel is not None else ()
        usable = [each["id"] for each in commands if problem_with(self._world, each, channel or {}, user_id) is None]
        self._send("usable", request=asked.get("request"), commands=usable)

    async def do_open_dm(self, asked: Json) -> None:
        person = self._person(asked["as"])
        channel = self._world.direct_channel_with(person.id)
        self._send("opened", channel_id=channel["id"], user_id=person.id)

    # What an administrator does

    async def do_person(self, asked: Json) -> None:
        self._person(asked["as"]).locale = asked["locale"]

    async def do_roles(self, asked: Json) -> None:
        person, wanted = self._person(asked["as"]), list(dict.fromkeys(asked["roles"]))
        if person.member is None:
            raise LookupError(f"{person.username} is not in the guild.")
        for id_ in wanted:
            if id_ not in self._world.membership.roles:
                raise LookupError(f"There is no role {id_!r}.")
        self._world.membership.change(person.id, roles=wanted)

    async def do_role(self, asked: Json) -> None:
        membership = self._world.membership
        old, bits = membership.role_named(asked["name"]), int(asked["permissions"])
        id_, name = (old["id"], old["name"]) if old else (self._world.snowflake(), asked["name"])
        membership.put_role(id_, name, bits)

    async def do_join(self, asked: Json) -> None:
        self._world.membership.add(self._world.user_named(asked["name"]))

    async def do_leave(self, asked: Json) -> None:
        self._world.membership.remove(self._person(asked["as"]).id)

    async def do_create_channel(self, asked: Json) -> None:
        self._world.create_channel(asked["name"], nsfw=bool(asked.get("nsfw")))

    async def do_delete_channel(self, asked: Json) -> None:
        self._world.delete_channel(self._world.channel_of(asked["channel_id"])["id"])

    async def do_delete_messages(self, asked: Json) -> None:
        found = [self._world.find(id_) for id_ in asked["message_ids"]]
        self._world.delete_messages([kept for kept in found if kept is not None])

    async def do_guild(self, asked: Json) -> None:
        actions: dict[str, Callable[[], None]] = {
            "kick_bot": self._world.take_bot_out,
            "invite_bot": self._world.take_bot_in,
            "outage": lambda: self._world.set_outage(True),
            "outage_over": lambda: self._world.set_outage(False),
        }
        if asked["action"] not in actions:
            raise ValueError(f"A guild cannot be told to {asked['action']!r}.")
        actions[asked["action"]]()

    async def do_elsewhere(self, asked: Json) -> None:
        self._world.open_elsewhere()

    # The bot and the clock

    async def do_bot(self, asked: Json) -> None:
        bot, action = self._required_bot(), asked["action"]
        if action == "kill":
            bot.kill()
        elif action == "start":
            await bot.start()
        elif action == "stop":
            await bot.terminate()
        elif action == "restart":
            await bot.restart()
        else:
            raise ValueError(f"A bot cannot be told to {action!r}.")

    def _required_bot(self) -> BotProcess:
        if self.bot is None:
            raise LookupError("No bot was given to the playground. Start it with: python -m playground bot.py")
        return self.bot

    async def do_mode(self, asked: Json) -> None:
        if asked["mode"] not in ("gateway", "rest"):
            raise ValueError(f"Interactions come in no mode {asked['mode']!r}.")
        await self._required_bot().restart(asked["mode"])

    async def do_advance(self, asked: Json) -> None:
        self._world.clock.advance(float(asked["seconds"]))

    # The bot's hooks

    async def do_hook(self, asked: Json) -> None:
        """In a task of its own, as the bot may take its time."""
        self._spawn(self._call_hook(asked.get("request"), str(asked["name"]), str(asked["body"]).encode()))

    async def _call_hook(self, request: Any, name: str, body: bytes) -> None:
        try:
            answer = await self._hooks.send(self._required_address(), name, body)
        except (LookupError, OSError) as problem:
            self._send("hook", request=request, status=None, text=str(problem), body=None)
        else:
            self._send("hook", request=request, status=answer.status, text=phrase(answer.status), body=answer.body)

    def _required_address(self) -> str:
        bot = self._required_bot()
        if bot.web_address is None or bot.pid is None:
            raise LookupError("The bot does not run, or not with a web side.")
        return bot.web_address

    async def do_curl(self, asked: Json) -> None:
        self._spawn(self._tell_curl(asked.get("request"), str(asked["name"]), str(asked["body"]).encode()))

    async def _tell_curl(self, request: Any, name: str, body: bytes) -> None:
        """Tell the page the command that calls the hook, signed by now; the secret is not in it."""
        try:
            signed = await self._hooks.sign(self._required_address(), name, body)
        except LookupError as problem:
            self._send("curl", request=request, command=None, text=str(problem))
        else:
            self._send("curl", request=request, command=signed.as_curl(), text="")

    async def _watch_hooks(self) -> None:
        while True:
            await self._look_for_hooks()
            await asyncio.sleep(HOOKS_EVERY_S)

    async def _look_for_hooks(self) -> None:
        """Tell the pages when the bot has other hooks than before; while it does not run it is not asked."""
        bot = self.bot
        if not self._queues or bot is None or bot.web_address is None or bot.pid is None:
            return
        known = await self._hooks.known(bot.web_address)
        if known is not None and known != self._known:
            self._known = known
            self._send("hooks", hooks=self._listed_hooks())

    def _listed_hooks(self) -> list[Json] | None:
        return None if self._known is None else [{"name": key, "scheme": each} for key, each in self._known.items()]

    # What the page is told

    def state(self) -> Json:
        """Everything, for a page that has just opened."""
        world = self._world
        pending = [each.for_page() for each in self._interactions.pending.values() if each.kind != "autocomplete"]
        return {
            "users": self._users(),
            "bot_user": person_of(world.bot),
            "roles": list(world.membership.roles.values()),
            "guild": {"id": world.guild["id"], "name": world.guild["name"]},
            "channels": self._channels(),
            "commands": list(world.commands.values()),
            "messages": [kept.for_page() for kept in world.all_messages() if not kept.dismissed],
            "bot": self.bot.for_page() if self.bot else NO_BOT,
            "hooks": self._listed_hooks(),
            "bot_in_guild": world.bot_in_guild,
            "has_outage": world.has_outage,
            "log": self.bot.log[-LOG_LINES_AT_START:] if self.bot else [],
            "interactions": pending,
            "locales": LOCALES,
            "permissions": [{"name": name, "bit": str(bit)} for name, bit in permissions.BITS.items()],
            **self._clock(),
        }

    def _clock(self) -> Json:
        return {"now": self._world.clock.now(), "offset": self._world.clock.offset_s}

    def _users(self) -> list[Json]:
        return [person_of(user) | self._in_guild(user["id"]) for user in self._world.people()]

    def _in_guild(self, user_id: str) -> Json:
        member: Json = self._world.membership.find(user_id) or {"nick": None, "roles": []}
        return {
            "locale": self._world.locale_of(user_id),
            "is_member": self._world.membership.find(user_id) is not None,
            "nick": member["nick"],
            "roles": member["roles"],
            "timed_out_until": member.get("communication_disabled_until"),
        }

    def _channels(self) -> list[Json]:
        shown = [
            each for each in self._world.channels.values() if "guild_id" not in each or each["type"] in MESSAGES_IN
        ]
        return [self._channel(each) for each in shown]

    def _channel(self, channel: Json) -> Json:
        may = {user["id"]: self._world.permissions_in(user["id"], channel) for user in self._world.people()}
        names = {None: None, GUILD_ID: self._world.guild["name"]}
        return {
            "id": channel["id"],
            "name": name_of(channel),
            "type": channel["type"],
            "guild_id": channel.get("guild_id"),
            "guild_name": names.get(channel.get("guild_id"), "Elsewhere"),
            "context": context_of(channel),
            "nsfw": bool(channel.get("nsfw")),
            "recipients": [each["id"] for each in channel.get("recipients") or ()],
            "permissions": {id_: str(bits) for id_, bits in may.items() if bits & permissions.VIEW_CHANNEL},
        }

    def _send(self, type_: str, **values: Any) -> None:
        message = encoded(type_, **values)
        for queue in self._queues:
            queue.put_nowait(message)

    def _on_change(self, what: What, subject: Any) -> None:
        if not self._queues:
            return
        if what in ("message", "edit", "pins"):
            self._send("message", message=subject.for_page())
        elif what in ("reaction", "no reaction", "no reactions"):
            self._send("message", message=subject[0].for_page())
        elif what in ("gone", "all gone"):
            for kept in subject if what == "all gone" else [subject]:
                self._send("message_gone", channel_id=kept.message["channel_id"], id=kept.id)
        elif what == "commands":
            self._send("commands", commands=list(self._world.commands.values()))
        elif what == "typing":
            self._send("typing", channel_id=subject[0]["id"], user_id=subject[1]["id"])
        elif what in ("bot_in", "bot_out", "outage"):
            self._send("state", **self.state())
        elif what not in ("banned", "unbanned"):
            self._send_people_and_channels(what)

    def _send_people_and_channels(self, what: What) -> None:
        """A change of either, or of a role, changes what people may do in channels."""
        if what in ("role_new", "role", "role_gone"):
            self._send("roles", roles=list(self._world.membership.roles.values()))
        if what in ("users", "joined", "left", "member"):
            self._send("users", users=self._users())
        self._send("channels", channels=self._channels())

    def _on_interaction(self, interaction: Interaction) -> None:
        if not self._queues:
            return
        self._send("interaction", interaction=interaction.for_page())
        callback = interaction.callback
        if callback is not None and callback["type"] == 9:
            components = Completion(callback["data"]["components"], []).all(callback["data"]["components"])
            form = {**callback["data"], "components": components}
            self._send("form", interaction_id=interaction.id, user_id=interaction.user["id"], form=form)

    def show_clock(self) -> None:
        if self._queues:
            self._send("clock", **self._clock())

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
    "edit": Page.do_edit,
    "delete": Page.do_delete,
    "react": Page.do_react,
    "unreact": Page.do_unreact,
    "autocomplete": Page.do_autocomplete,
    "usable": Page.do_usable,
    "open_dm": Page.do_open_dm,
    "person": Page.do_person,
    "roles": Page.do_roles,
    "role": Page.do_role,
    "join": Page.do_join,
    "leave": Page.do_leave,
    "create_channel": Page.do_create_channel,
    "delete_channel": Page.do_delete_channel,
    "delete_messages": Page.do_delete_messages,
    "guild": Page.do_guild,
    "elsewhere": Page.do_elsewhere,
    "bot": Page.do_bot,
    "mode": Page.do_mode,
    "hook": Page.do_hook,
    "curl": Page.do_curl,
    "advance": Page.do_advance,
}


def encoded(type_: str, **values: Any) -> bytes:
    return msgspec.json.encode({"type": type_, **values})


def phrase(status: int) -> str:
    """The words that go with a status."""
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:
        return ""


def person_of(user: Json) -> Json:
    return {"id": user["id"], "username": user["username"], "name": user["global_name"]}


def name_of(channel: Json) -> str:
    return channel["name"] if "name" in channel else f"@{channel['recipients'][0]['username']}"
