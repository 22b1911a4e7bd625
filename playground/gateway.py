"""The gateway: sockets, sessions that outlive them, and the replay after RESUME.

A session ends when its client closes with 1000 or 1001, when it identifies anew it gets another one, and when no
socket has carried it for 180 s. Until then its last 3,500 events are kept and sent again on RESUME.
"""

from __future__ import annotations

import asyncio
import secrets
import time
import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec
from aiohttp import WSMessage, WSMsgType, web

from . import shapes
from .journal import Journal
from .shapes import Json
from .world import GUILD_ID, Kept, What, World

SESSION_LIVES_S = 180.0
EVENTS_KEPT = 3_500
HEARTBEAT_MS = 41_250
IDENTIFIES_A_DAY = 1_000
CLIENT_EVENTS_MAX = 120
CLIENT_EVENTS_WINDOW_S = 60.0

GUILDS, GUILD_MEMBERS, GUILD_MODERATION, GUILD_MESSAGES, GUILD_REACTIONS, GUILD_TYPING = (
    1 << number for number in (0, 1, 2, 9, 10, 11)
)
DIRECT_MESSAGES, DIRECT_REACTIONS, DIRECT_TYPING, MESSAGE_CONTENT = (1 << number for number in (12, 13, 14, 15))
INTENTS_KNOWN = (1 << 26) - 1
ENDS_SESSION = (1000, 1001)

# What happens in the guild: the event and the intent that it takes.
GUILD_EVENTS: dict[What, tuple[str, int]] = {
    "bot_in": ("GUILD_CREATE", GUILDS),
    "bot_out": ("GUILD_DELETE", GUILDS),
    "channel_new": ("CHANNEL_CREATE", GUILDS),
    "channel": ("CHANNEL_UPDATE", GUILDS),
    "channel_gone": ("CHANNEL_DELETE", GUILDS),
    "role_new": ("GUILD_ROLE_CREATE", GUILDS),
    "role": ("GUILD_ROLE_UPDATE", GUILDS),
    "role_gone": ("GUILD_ROLE_DELETE", GUILDS),
    "joined": ("GUILD_MEMBER_ADD", GUILD_MEMBERS),
    "left": ("GUILD_MEMBER_REMOVE", GUILD_MEMBERS),
    "banned": ("GUILD_BAN_ADD", GUILD_MODERATION),
    "unbanned": ("GUILD_BAN_REMOVE", GUILD_MODERATION),
}

DISPATCH, HEARTBEAT, IDENTIFY, PRESENCE, VOICE, RESUME, RECONNECT, REQUEST_MEMBERS = 0, 1, 2, 3, 4, 6, 7, 8
INVALID_SESSION, HELLO, HEARTBEAT_ACK, REQUEST_SOUNDS = 9, 10, 11, 31


@dataclass(eq=False)
class Session:
    """What a bot has identified for; it is there with or without a socket."""

    id: str
    shard: int
    count: int
    intents: int
    seq: int = 0
    events: deque[tuple[int, bytes]] = field(default_factory=lambda: deque(maxlen=EVENTS_KEPT))
    socket: Socket | None = None
    is_valid: bool = True
    lost_at: float | None = None

    def wants(self, intent: int) -> bool:
        return not intent or bool(self.intents & intent)

    def carries(self, guild_id: str | None) -> bool:
        return self.shard == ((int(guild_id) >> 22) % self.count if guild_id else 0)


class Socket:
    """One connection. Sending never waits: a task of its own writes, in order, after the configured delay."""

    def __init__(self, ws: web.WebSocketResponse, request: web.Request, delay_s: Callable[[], float]) -> None:
        self.ws = ws
        self.session: Session | None = None
        self.closed_by_us = False
        self.received: deque[float] = deque(maxlen=CLIENT_EVENTS_MAX)
        self._request = request
        self._delay_s = delay_s
        self._zlib = zlib.compressobj() if request.query.get("compress") == "zlib-stream" else None
        self._queue: asyncio.Queue[tuple[float, bytes | int]] = asyncio.Queue()
        self.writer = asyncio.create_task(self._write())

    def send(self, payload: bytes) -> None:
        self._queue.put_nowait((time.monotonic() + self._delay_s(), payload))

    def send_json(self, payload: Json) -> None:
        self.send(msgspec.json.encode(payload))

    def close(self, code: int) -> None:
        """Close with that code after everything sent so far."""
        self.closed_by_us = True
        self._queue.put_nowait((0.0, code))

    def abort(self) -> None:
        """Cut the connection as a broken network does: no close frame, nothing flushed."""
        self.closed_by_us = True
        if self._request.transport is not None:
            self._request.transport.abort()

    async def _write(self) -> None:
        while True:
            at, item = await self._queue.get()
            if at > time.monotonic():
                await asyncio.sleep(at - time.monotonic())
            try:
                if isinstance(item, int):
                    await self.ws.close(code=item)
                    return
                await self._write_frame(item)
            except (ConnectionError, RuntimeError):
                return  # the reader sees the end of the connection and tidies up

    async def _write_frame(self, payload: bytes) -> None:
        if self._zlib is None:
            await self.ws.send_str(payload.decode())
        else:
            await self.ws.send_bytes(self._zlib.compress(payload) + self._zlib.flush(zlib.Z_SYNC_FLUSH))


class Gateway:
    """All gateway connections and sessions, and the switches with which tests disturb them."""

    def __init__(self, world: World, token: str) -> None:
        self._world = world
        self.token = token
        self._sockets: set[Socket] = set()
        self._sessions: dict[str, Session] = {}
        self.identifies = 0
        self.resumes = 0
        self.trim_on_heartbeat = False
        """Forget buffered events up to the sequence number that a heartbeat confirms."""
        self.denied_intents = 0
        """Privileged intents that are not switched on for the application: IDENTIFY with one closes with 4014."""
        self.shards = 1
        """How many shards GET /gateway/bot recommends."""
        self.identifies_allowed = IDENTIFIES_A_DAY
        self.reset_after_s = 14_400.0
        self.max_concurrency = 1
        """What GET /gateway/bot says of the session start limit. That clients keep to it is for a test to look at."""
        self.on_ready: Callable[[], None] = lambda: None
        self.on_sent: Callable[[str, Json], None] | None = None
        self.delay_s: Callable[[], float] = lambda: 0.0
        self._senders: dict[What, Callable[[Any], None]] = {
            "all gone": self._send_all_gone,
            "reaction": self._send_reaction,
            "no reaction": self._send_no_reaction,
            "no reactions": self._send_no_reactions,
            "typing": self._send_typing,
            "pins": self._send_pins,
            "member": self._send_member_update,
            "outage": self._send_outage,
        }
        world.listeners.append(self._on_change)

    @property
    def journal(self) -> Journal:
        return self._world.journal

    def start_limit(self) -> Json:
        left = max(0, self.identifies_allowed - self.identifies)
        reset_after = int(self.reset_after_s * 1000)
        limit: Json = {"total": IDENTIFIES_A_DAY, "remaining": left, "reset_after": reset_after}
        return {**limit, "max_concurrency": self.max_concurrency}

    # Switches for tests

    def drop(self, code: int | None = None) -> None:
        """Cut every socket, or close it with a code. The sessions stay."""
        self.journal.note("gateway", what="drop", code=code)
        for socket in list(self._sockets):
            socket.abort() if code is None else socket.close(code)

    def invalidate(self) -> None:
        """Forget every session: the next RESUME is told to identify. Sockets stay open."""
        self.journal.note("gateway", what="invalidate")
        for session in self._sessions.values():
            session.is_valid = False

    def reconnect(self) -> None:
        """Ask every client to reconnect and resume (op 7)."""
        for socket in self._sockets:
            self._send(socket, {"op": RECONNECT, "d": None})

    def send_frame(self, frame: bytes) -> None:
        """Write these bytes as one payload to every socket, whatever they are."""
        for socket in self._sockets:
            socket.send(frame)

    # Sending events

    def dispatch(self, name: str, data: Json, guild_id: str | None = None, intent: int = 0) -> None:
        """Send an event to every session that carries the guild and asked for its kind."""
        encoded: bytes | None = None
        for session in self._live_sessions():
            if session.carries(guild_id) and session.wants(intent):
                encoded = encoded or msgspec.json.encode(data)
                self._dispatch_to(session, name, data, encoded)

    def dispatch_everywhere(self, name: str, data: Any) -> None:
        """Send an event to every session, whatever it asked for, well-formed or not."""
        for session in self._live_sessions():
            self._dispatch_to(session, name, data, msgspec.json.encode(data))

    def _live_sessions(self) -> list[Session]:
        now = self._world.clock.now()
        for session in list(self._sessions.values()):
            is_lost = session.lost_at is not None and now - session.lost_at > SESSION_LIVES_S
            if session.socket is None and (is_lost or not session.is_valid):
                del self._sessions[session.id]
        return list(self._sessions.values())

    def _dispatch_to(self, session: Session, name: str, data: Any, encoded: bytes) -> None:
        session.seq += 1
        frame = b'{"op":0,"s":%d,"t":"%s","d":%s}' % (session.seq, name.encode(), encoded)
        session.events.append((session.seq, frame))
        self.journal.note("gateway_out", op=DISPATCH, t=name, s=session.seq, d=data, session=session.id)
        if self.on_sent is not None:
            self.on_sent(name, data)
        if session.socket is not None:
            session.socket.send(frame)

    def _send(self, socket: Socket, payload: Json) -> None:
        self.journal.note("gateway_out", **payload)
        socket.send_json(payload)

    # One connection

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """The handler of a gateway address."""
        if request.query.get("compress") not in (None, "zlib-stream"):
            return web.Response(status=400, text="The playground's gateway speaks zlib-stream or plain JSON.")
        ws = web.WebSocketResponse(autoclose=False, compress=False, max_msg_size=1 << 20)
        await ws.prepare(request)
        socket = Socket(ws, request, self.delay_s)
        self._sockets.add(socket)
        self._send(socket, {"op": HELLO, "d": {"heartbeat_interval": HEARTBEAT_MS}})
        code: int | None = None
        try:
            code = await self._read(socket)
        finally:
            socket.writer.cancel()
            self._sockets.discard(socket)
            self._lose(socket, code)
        # Only now: who has seen this answer may count on the session being let go.
        await ws.close()
        return ws

    async def _read(self, socket: Socket) -> int | None:
        """Handle what the client sends until the connection ends; the code if it was the client that closed."""
        while True:
            message: WSMessage = await socket.ws.receive()
            if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                self._on_frame(socket, message.data)
                continue
            return message.data if message.type is WSMsgType.CLOSE else None

    def _lose(self, socket: Socket, code: int | None) -> None:
        session = socket.session
        self.journal.note("gateway", what="closed", code=code, by="us" if socket.closed_by_us else "client")
        if session is None or session.socket is not socket:
            return
        session.socket, session.lost_at = None, self._world.clock.now()
        if code in ENDS_SESSION:
            session.is_valid = False

    def _on_frame(self, socket: Socket, raw: str | bytes) -> None:
        now = self._world.clock.now()
        if len(socket.received) == CLIENT_EVENTS_MAX and now - socket.received[0] < CLIENT_EVENTS_WINDOW_S:
            return socket.close(4008)
        socket.received.append(now)
        try:
            payload: Any = msgspec.json.decode(raw)
        except msgspec.DecodeError:
            return socket.close(4002)
        if not isinstance(payload, dict):
            return socket.close(4002)
        return self._on_payload(socket, cast(Json, payload))

    def _on_payload(self, socket: Socket, payload: Json) -> None:
        op, data = payload.get("op"), payload.get("d")
        self._note_received(op, data)
        if op == HEARTBEAT:
            self._on_heartbeat(socket, data)
        elif op in (IDENTIFY, RESUME, REQUEST_MEMBERS) and not isinstance(data, dict):
            socket.close(4002)
        elif op == IDENTIFY:
            self._on_identify(socket, cast(Json, data))
        elif op == RESUME:
            self._on_resume(socket, cast(Json, data))
        elif op not in (PRESENCE, VOICE, REQUEST_MEMBERS, REQUEST_SOUNDS):
            socket.close(4001)
        elif socket.session is None:
            socket.close(4003)
        elif op == REQUEST_MEMBERS:
            self._send_members(socket.session, cast(Json, data))

    def _note_received(self, op: Any, data: Any) -> None:
        if isinstance(data, dict) and "token" in data:
            data = {**cast(Json, data), "token": "…"}  # it may be a real one, handed here by mistake
        self.journal.note("gateway_in", op=op, d=data)

    def _on_heartbeat(self, socket: Socket, seq: Any) -> None:
        session = socket.session
        if self.trim_on_heartbeat and session is not None and isinstance(seq, int):
            while session.events and session.events[0][0] <= seq:
                session.events.popleft()
        self._send(socket, {"op": HEARTBEAT_ACK})

    def _on_identify(self, socket: Socket, data: Json) -> None:
        shard = shard_of(data.get("shard"))
        intents = data.get("intents")
        if socket.session is not None:
            socket.close(4005)
        elif data.get("token") != self.token:
            socket.close(4004)
        elif shard is None:
            socket.close(4010)
        elif not isinstance(intents, int) or intents & ~INTENTS_KNOWN:
            socket.close(4013)
        elif intents & self.denied_intents:
            socket.close(4014)
        else:
            self.identifies += 1
            self._begin(socket, Session(secrets.token_hex(16), *shard, intents, socket=socket))

    def _begin(self, socket: Socket, session: Session) -> None:
        self._sessions[session.id] = session
        socket.session = session
        world = self._world
        ready: Json = {
            "v": 10,
            "user": shapes.own_user(world.bot),
            "guilds": [{"id": GUILD_ID, "unavailable": True}]
            if world.bot_in_guild and session.carries(GUILD_ID)
            else [],
            "session_id": session.id,
            "resume_gateway_url": f"{world.address.replace('http', 'ws', 1)}/resume",
            "shard": [session.shard, session.count],
            "application": {"id": world.bot["id"], "flags": 0},
        }
        self._dispatch_to(session, "READY", ready, msgspec.json.encode(ready))
        if world.bot_in_guild and not world.has_outage and session.carries(GUILD_ID) and session.wants(GUILDS):
            guild = self._guild()
            self._dispatch_to(session, "GUILD_CREATE", guild, msgspec.json.encode(guild))
        self.on_ready()

    def _guild(self) -> Json:
        return shapes.joined_guild(self._world.guild, self._world.members(), self._world.guild_channels())

    def _on_resume(self, socket: Socket, data: Json) -> None:
        session = self._sessions.get(str(data.get("session_id")))
        seq = data.get("seq")
        if socket.session is not None:
            socket.close(4005)
        elif data.get("token") != self.token:
            socket.close(4004)
        elif session is None or session not in self._live_sessions() or not session.is_valid:
            self._send(socket, {"op": INVALID_SESSION, "d": False})
        elif not isinstance(seq, int) or seq > session.seq:
            socket.close(4007)
        elif seq < (session.events[0][0] - 1 if session.events else session.seq):
            session.is_valid = False  # events between are gone for good
            self._send(socket, {"op": INVALID_SESSION, "d": False})
        else:
            self._resume(socket, session, seq)

    def _resume(self, socket: Socket, session: Session, seq: int) -> None:
        if session.socket is not None:  # a second process took the session over, or the first socket hangs
            session.socket.session = None
            session.socket.close(4000)
        session.socket, session.lost_at, socket.session = socket, None, session
        missed = [frame for number, frame in session.events if number > seq]
        for frame in missed:
            socket.send(frame)
        self.resumes += 1
        self.journal.note("gateway", what="resumed", session=session.id, replayed=len(missed))
        self._dispatch_to(session, "RESUMED", {}, b"{}")
        self.on_ready()

    def _send_members(self, session: Session, data: Json) -> None:
        wanted = data.get("user_ids")  # an id, a list of them, or nothing for everyone
        ids = cast(list[Any], wanted) if isinstance(wanted, list) else [wanted]
        found = [member for member in self._world.members() if wanted is None or member["user"]["id"] in ids]
        chunk: Json = {"guild_id": GUILD_ID, "members": found, "chunk_index": 0, "chunk_count": 1}
        if data.get("nonce") is not None:
            chunk["nonce"] = data["nonce"]
        self._dispatch_to(session, "GUILD_MEMBERS_CHUNK", chunk, msgspec.json.encode(chunk))

    # What happens in the world

    def _on_change(self, what: What, subject: Any) -> None:
        if what in ("message", "edit"):
            self._send_message("MESSAGE_CREATE" if what == "message" else "MESSAGE_UPDATE", subject)
        elif what == "gone" and not subject.dismissed:
            self._send_gone(subject)
        elif what == "channels" and subject is not None:
            self.dispatch("CHANNEL_CREATE", subject, None, DIRECT_MESSAGES)
        elif what in self._senders:
            self._senders[what](subject)
        elif what in GUILD_EVENTS and (self._world.bot_in_guild or what == "bot_out"):
            name, intent = GUILD_EVENTS[what]
            self.dispatch(name, self._about_guild(what, subject), GUILD_ID, intent)

    def _about_guild(self, what: What, subject: Any) -> Json:
        if what == "bot_in":
            return self._guild()
        if what == "bot_out":
            return {"id": GUILD_ID}
        if what == "role_gone":
            return {"guild_id": GUILD_ID, "role_id": subject["id"]}
        if what in ("role", "role_new"):
            return {"guild_id": GUILD_ID, "role": subject}
        if what in ("left", "banned", "unbanned"):
            return {"guild_id": GUILD_ID, "user": subject}
        return {**subject, "guild_id": GUILD_ID}

    def _send_outage(self, subject: None) -> None:
        if self._world.has_outage:
            self.dispatch("GUILD_DELETE", {"id": GUILD_ID, "unavailable": True}, GUILD_ID, GUILDS)
        else:
            self.dispatch("GUILD_CREATE", self._guild(), GUILD_ID, GUILDS)

    def _place_of(self, channel: Json, of_guild: int, of_private: int) -> tuple[str | None, int] | None:
        """The guild and the intent for what happens in a channel; None where the bot sees nothing."""
        if not self._world.sees(self._world.bot["id"], channel):
            return None
        return (GUILD_ID, of_guild) if "guild_id" in channel else (None, of_private)

    def _place_of_message(self, kept: Kept) -> tuple[str | None, int] | None:
        """An ephemeral message is sent as if it were private."""
        if kept.visible_to is not None:
            return None, DIRECT_MESSAGES
        return self._place_of(self._world.channels[kept.message["channel_id"]], GUILD_MESSAGES, DIRECT_MESSAGES)

    def _send_message(self, name: str, kept: Kept) -> None:
        place = self._place_of_message(kept)
        if place is None:
            return
        guild_id, intent = place
        data: Json = dict(kept.message)
        if guild_id is not None:
            member = self._world.membership.of(data["author"])
            data |= {"guild_id": guild_id, "member": {key: each for key, each in member.items() if key != "user"}}
        hidden = self._hide_content(data) if guild_id is not None else data
        for session in self._live_sessions():
            if session.carries(guild_id) and session.wants(intent):
                shown = data if session.intents & MESSAGE_CONTENT else hidden
                self._dispatch_to(session, name, shown, msgspec.json.encode(shown))

    def _hide_content(self, data: Json) -> Json:
        """What a bot without MESSAGE_CONTENT gets of a message that neither is its own nor mentions it."""
        bot_id = self._world.bot["id"]
        if data["author"]["id"] == bot_id or any(user["id"] == bot_id for user in data["mentions"]):
            return data
        return {**data, "content": "", "embeds": [], "attachments": [], "components": []}

    def _send_gone(self, kept: Kept) -> None:
        place = self._place_of_message(kept)
        if place is not None:
            about: Json = {"id": kept.id, "channel_id": kept.message["channel_id"]}
            self.dispatch("MESSAGE_DELETE", about | guild_of(place[0]), *place)

    def _send_all_gone(self, several: list[Kept]) -> None:
        place = self._place_of_message(several[0]) if several else None
        if place is not None:
            about: Json = {"ids": [kept.id for kept in several], "channel_id": several[0].message["channel_id"]}
            self.dispatch("MESSAGE_DELETE_BULK", about | guild_of(place[0]), *place)

    def _send_reaction(self, subject: tuple[Kept, str, str]) -> None:
        kept, user_id, emoji = subject
        more: Json = {"message_author_id": kept.message["author"]["id"], "burst_colors": []}
        if "guild_id" in self._world.channels[kept.message["channel_id"]]:
            more["member"] = self._world.membership.of(self._world.users[user_id])
        about: Json = {"user_id": user_id, "emoji": shapes.emoji_of(emoji), "burst": False, "type": 0, **more}
        self._send_of_reactions("MESSAGE_REACTION_ADD", kept, about)

    def _send_no_reaction(self, subject: tuple[Kept, str, str]) -> None:
        kept, user_id, emoji = subject
        about: Json = {"user_id": user_id, "emoji": shapes.emoji_of(emoji), "burst": False, "type": 0}
        self._send_of_reactions("MESSAGE_REACTION_REMOVE", kept, about)

    def _send_no_reactions(self, subject: tuple[Kept, str | None]) -> None:
        kept, emoji = subject
        if emoji is None:
            self._send_of_reactions("MESSAGE_REACTION_REMOVE_ALL", kept, {})
        else:
            self._send_of_reactions("MESSAGE_REACTION_REMOVE_EMOJI", kept, {"emoji": shapes.emoji_of(emoji)})

    def _send_of_reactions(self, name: str, kept: Kept, about: Json) -> None:
        channel = self._world.channels[kept.message["channel_id"]]
        place = self._place_of(channel, GUILD_REACTIONS, DIRECT_REACTIONS)
        if place is not None:
            where = {"message_id": kept.id, "channel_id": channel["id"]}
            self.dispatch(name, about | where | guild_of(place[0]), *place)

    def _send_typing(self, subject: tuple[Json, Json]) -> None:
        channel, user = subject
        place = self._place_of(channel, GUILD_TYPING, DIRECT_TYPING)
        if place is not None:
            about: Json = {
                "channel_id": channel["id"],
                "user_id": user["id"],
                "timestamp": int(self._world.clock.now()),
            }
            member = {"member": self._world.membership.of(user)} if place[0] is not None else {}
            self.dispatch("TYPING_START", about | member | guild_of(place[0]), *place)

    def _send_pins(self, kept: Kept) -> None:
        channel = self._world.channels[kept.message["channel_id"]]
        place = self._place_of(channel, GUILDS, DIRECT_MESSAGES)
        if place is not None:
            about: Json = {"channel_id": channel["id"], "last_pin_timestamp": shapes.timestamp(kept.pinned_at)}
            self.dispatch("CHANNEL_PINS_UPDATE", about | guild_of(place[0]), *place)

    def _send_member_update(self, member: Json) -> None:
        """To every bot that asked for members; about itself a bot is told in any case."""
        is_own = member["user"]["id"] == self._world.bot["id"]
        self.dispatch("GUILD_MEMBER_UPDATE", {**member, "guild_id": GUILD_ID}, GUILD_ID, 0 if is_own else GUILD_MEMBERS)


def shard_of(given: Any) -> tuple[int, int] | None:
    """Number and count of the shard a client asks for; None when they make no sense."""
    match [0, 1] if given is None else given:
        case [int(number), int(count)] if 0 <= number < count:
            return number, count
        case _:
            return None


def guild_of(guild_id: str | None) -> Json:
    """What an event in a guild says more than one in private."""
    return {} if guild_id is None else {"guild_id": guild_id}
