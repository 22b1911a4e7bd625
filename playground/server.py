"""`Discord`: the whole playground on one port of 127.0.0.1."""

from __future__ import annotations

import asyncio
import base64
import errno
import os
import random
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

from aiohttp import web

from . import shapes
from .clock import Clock
from .control import Page
from .endpoint import Delivery, Endpoint, NotReady
from .faults import DeliveryFaults, Faults
from .gateway import Gateway
from .hooks import HookAnswer, Hooks
from .interactions import TOKENS_ISSUED, Interaction, Interactions
from .journal import Journal
from .people import Person, Used
from .permissions import bits_of
from .process import BotProcess, Mode
from .rest import PREFIX, Rest
from .routes import Operations
from .shapes import Json
from .world import APPLICATION_ID, Kept, World

HOST = "127.0.0.1"
BODY_BYTES_MAX = 32 * 1024 * 1024
PING_EVERY_S = 0.05
# Below what systems hand out by themselves: a bot that is restarted finds its port free.
WEB_PORTS = range(20_000, 32_000)

Check = Callable[[str, str, Any], "list[str]"]
"""Called with what ("GET /users/@me 200" or "gateway READY"), the kind ("rest" or "gateway") and the body."""


class Discord:
    """A local Discord for bots, tests and people.

        async with Discord() as discord:
            bot = await discord.start_bot("bot.py")
            await bot.ready()
            alice = discord.user("alice")
            await alice.command("poll", question="Tea?")
            done = await alice.click("Yes")
            print(discord.text(done.message))

            bob = discord.user("bob")
            await alice.autocomplete("fruit", "name", "app")  # what the bot offers
            await alice.command("Wave", target=bob)  # a context menu; target=message for those on messages
            await alice.command("upload", file=("a.txt", b"..."), channel="dm")
            await alice.submit({"Who": [bob], "Files": [("a.txt", b"...")]})  # the form that is open
            bob.grant("kick_members")
            bob.locale = "de"
            discord.clock.advance(3600)  # time.time() of the bot's process goes along
            discord.delete_messages([done.message])
            discord.kick_bot()

            await discord.set_endpoint("http://127.0.0.1:8080/interactions")  # interactions over HTTP from now on
            discord.delivery_faults.add(copies=3)
            print([(each.status, each.body) for each in await discord.delivered()])
            print(await discord.send_hook("deploy", {"version": 3}))

    alice is an administrator, bob and carol are members like any. Besides "general" and "random" there are the channels
    "dm" (everybody's own with the bot), "elsewhere" (of a guild without the bot) and "friends" (a private group).
    With mode="rest" its bots are started so that they take interactions over HTTP; nothing else changes.
    Leaving it stops its bots, and raises AssertionError when a client asked for a route that nobody implemented
    or when the check found something wrong with what was sent.
    """

    def __init__(self, port: int = 0, *, mode: Mode = "gateway", check: Check | None = None) -> None:
        self.mode: Mode = mode
        """How bots are started unless start_bot says otherwise."""
        self.clock = Clock()
        self.journal = Journal(self.clock)
        self.latency_s = 0.0
        self.echo: TextIO | None = None
        """Where the bots' log lines are printed too."""
        self.misfits: list[str] = []
        """What the check found wrong with what this Discord sent."""
        self.token = f"{base64.b64encode(APPLICATION_ID.encode()).decode()}.playground.local"
        TOKENS_ISSUED.append(self.token)
        self.bots: list[BotProcess] = []
        self.world = World(self.clock, self.journal)
        self.gateway = Gateway(self.world, self.token)
        self.interactions = Interactions(self.world, self._send_interaction)
        self.endpoint = Endpoint(self.world, self.interactions)
        self.public_key = self.endpoint.public_key
        self.hooks = Hooks(self.clock, self.journal)
        operations = Operations(self.world, self.gateway, self.interactions, self.public_key)
        self._rest = Rest(operations, self.token, self.clock, self.journal)
        self._page = Page(self.world, self.interactions, self.hooks, self._person)
        self._port = port
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._runner: web.AppRunner | None = None
        self._pinging: set[asyncio.Task[None]] = set()
        self._connect_parts(check)

    def _connect_parts(self, check: Check | None) -> None:
        self.gateway.delay_s = self._rest.delay_s = self.endpoint.delay_s = lambda: self.latency_s / 2
        self.gateway.on_ready = self._on_ready
        self.endpoint.on_problem = lambda sentence: self._on_line(f"playground: not answered over HTTP. {sentence}")
        self.clock.on_advance = self._page.show_clock
        if check is not None:
            self.gateway.on_sent = lambda name, data: self.misfits.extend(check(f"gateway {name}", "gateway", data))
            self.endpoint.on_sent = lambda data: self.misfits.extend(
                check("gateway INTERACTION_CREATE", "gateway", data)
            )
            self._rest.on_sent = lambda method, route, status, body: self.misfits.extend(
                check(f"{method} {route} {status}", "rest", body)
            )

    def _on_ready(self) -> None:
        for bot in self.bots:
            if bot.mode == "gateway":
                bot.connected()

    def _send_interaction(self, made: Interaction) -> None:
        if self.endpoint.url is not None:
            self.endpoint.send(made)
        else:
            self.gateway.dispatch("INTERACTION_CREATE", made.payload, made.payload.get("guild_id"))

    # Where it is

    @property
    def url(self) -> str:
        """The page's address."""
        return self.world.address

    @property
    def api(self) -> str:
        """What a client library wants as its REST address."""
        return self.url + PREFIX

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=BODY_BYTES_MAX, middlewares=[self._only_local])
        app.add_routes(self._page.routes())
        app.add_routes([web.get(path, self.gateway.serve) for path in ("/gateway", "/gateway/", "/resume", "/resume/")])
        app.router.add_route("*", "/api/{path:.*}", self._rest.serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, HOST, self._port).start()
        except (OSError, OverflowError) as problem:
            await self._runner.cleanup()
            taken = isinstance(problem, OSError) and problem.errno == errno.EADDRINUSE
            why = "is taken" if taken else f"cannot be used ({problem})"
            raise ValueError(
                f"Port {self._port} {why}. Stop what uses it, or choose another one with --port."
            ) from None
        self._port = self._runner.addresses[0][1]
        self.world.address = f"http://{HOST}:{self._port}"
        return self

    @web.middleware
    async def _only_local(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Refuse what a foreign web page can make a browser send here: another Host (DNS rebinding) or Origin."""
        hosts = (f"{HOST}:{self._port}", f"localhost:{self._port}")
        origin = request.headers.get("Origin")
        is_ours = origin is None or origin in [f"http://{host}" for host in hosts]
        if request.headers.get("Host") not in hosts or not is_ours:
            return web.Response(status=403, text="The playground answers only its own page and local bots.")
        return await handler(request)

    async def __aexit__(
        self, type_: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for task in self._pinging:
            task.cancel()
        await asyncio.gather(*(bot.close() for bot in self.bots))
        await self.endpoint.close()
        self.gateway.drop()
        await self._page.close()
        if self._runner is not None:
            await self._runner.cleanup()
        self.clock.stop()
        if self._folder is not None:
            self._folder.cleanup()
        if value is None:
            self._raise_what_nobody_expected()

    def _raise_what_nobody_expected(self) -> None:
        if self.endpoint.errors:
            raise self.endpoint.errors[0]
        if self.unknown:
            raise AssertionError(f"Requests for routes that the playground does not have: {self.unknown}")
        if self.misfits:
            raise AssertionError("What the playground sent does not fit:\n" + "\n".join(self.misfits[:20]))

    # The bot

    async def start_bot(
        self,
        script: str | Path,
        *args: str,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        python: str = sys.executable,
        mode: Mode | None = None,
        web: bool = False,
    ) -> BotProcess:
        """Run a bot as a process of its own, with this Discord's token and address in its environment.

        In the mode "rest" it also gets DISCORD_PUBLIC_KEY, a WEB_PORT that stays the same, and what hooks are verified
        with: HOOK_SECRET and, unless the environment given has PIN_KEYS, HOOK_KEY. The interactions endpoint is set as
        soon as it answers PINGs, and then the bot is ready. In the mode "gateway" there is no endpoint, and `web=True`
        gives it the rest.

        Its database lies in a temporary folder, the same one each time this script is started here, unless STORE says
        otherwise. Raises ValueError when the environment given holds a production token.
        """
        given = dict(env or {})
        own = self._env_for(script, mode or self.mode)
        if web or given.get("MODE", own["MODE"]) == "rest":
            own |= self._web_env(pins_keys="PIN_KEYS" in given)
        own |= given
        bot = BotProcess(str(script), args, env=own, cwd=str(cwd) if cwd is not None else None, python=python)
        bot.on_line, bot.on_status = self._on_line, self._page.show_bot
        bot.on_start = lambda: self._on_start(bot)
        await bot.start()
        self.bots.append(bot)
        self._page.bot = bot
        self._page.show_bot()
        self.journal.note("bot", script=bot.script, pid=bot.pid)
        return bot

    def _env_for(self, script: str | Path, mode: Mode) -> dict[str, str]:
        return {
            "DISCORD_TOKEN": self.token,
            "DISCORD_API": self.api,
            "MODE": mode,
            "STORE": os.environ.get("STORE") or f"sqlite:{self._folder_for(script) / 'bot.db'}",
            "PLAYGROUND_CLOCK": str(self._clock_file()),
            "PYTHONUNBUFFERED": "1",
        }

    def _web_env(self, *, pins_keys: bool) -> dict[str, str]:
        """What lies in a config.env must not take the bot elsewhere, so host and path are told too."""
        key = {} if pins_keys else {"HOOK_KEY": self.hooks.public_key}
        where = {"WEB_HOST": HOST, "WEB_PORT": str(free_port()), "WEB_PATH": "/"}
        return {"DISCORD_PUBLIC_KEY": self.public_key, "HOOK_SECRET": self.hooks.secret, **where, **key}

    def _on_start(self, bot: BotProcess) -> None:
        if bot.mode == "rest":
            task = asyncio.create_task(self._ping_until_it_answers(bot))
            self._pinging.add(task)
            task.add_done_callback(self._pinging.discard)
        else:
            self.endpoint.unset()

    async def _ping_until_it_answers(self, bot: BotProcess) -> None:
        pid, said = bot.pid, ""
        while bot.pid == pid:
            try:
                await self.set_endpoint(f"{bot.web_address}/interactions")
            except NotReady:
                await asyncio.sleep(PING_EVERY_S)
            except ValueError as problem:
                if str(problem) != said:
                    bot.complain(said := str(problem))
                await asyncio.sleep(PING_EVERY_S)
            else:
                if bot.pid == pid:
                    bot.connected()
                return

    def _on_line(self, line: str) -> None:
        self._page.show_line(line)
        if self.echo is not None:
            print(line, file=self.echo, flush=True)

    def _clock_file(self) -> Path:
        file = self._own_folder() / "clock.offset"
        if not file.exists():
            self.clock.share(file)
        return file

    def _folder_for(self, script: str | Path) -> Path:
        folder = self._own_folder() / Path(script).stem
        folder.mkdir(exist_ok=True)
        return folder

    def _own_folder(self) -> Path:
        if self._folder is None:
            # On Windows a bot that was not waited for may still hold a file in it.
            self._folder = tempfile.TemporaryDirectory(prefix="playground-", ignore_cleanup_errors=True)
        return Path(self._folder.name)

    # Interactions over HTTP

    async def set_endpoint(self, url: str | None, *, strict: bool = True) -> None:
        """Save the address at which the bot takes interactions, as the developer portal does; None takes it away.

            await discord.set_endpoint("http://127.0.0.1:8080/interactions")
            await discord.set_endpoint("unix:/run/bot.sock:/interactions")

        Raises ValueError, and changes nothing, when a signed PING is not answered with 200 and {"type": 1}, or one with
        a wrong signature not with 401. With strict=False any other 4xx will do for that, as some libraries send it.
        From then on interactions are sent there and not through the gateway.
        """
        await self.endpoint.set(url, strict=strict)

    @property
    def deliveries(self) -> list[Delivery]:
        """The requests with an interaction that were sent to the endpoint, and what it answered."""
        return list(self.endpoint.deliveries)

    @property
    def delivery_faults(self) -> DeliveryFaults:
        return self.endpoint.faults

    async def delivered(self) -> list[Delivery]:
        """The same when every delivery that is under way has been answered or has failed."""
        await self.endpoint.idle()
        return self.deliveries

    async def redeliver(self, used: Used, *, anew: bool = False) -> Delivery:
        """Send the request of an interaction once more, byte by byte or signed anew. Nobody gets the answer."""
        return await self.endpoint.redeliver(used.interaction["id"], anew=anew)

    # Hooks

    async def send_hook(
        self,
        name: str,
        payload: Any,
        *,
        address: str | None = None,
        scheme: str | None = None,
        id: str | None = None,
        timestamp: float | None = None,
        secret: str | None = None,
        event: str = "push",
        tamper: bool = False,
    ) -> HookAnswer:
        """Call a hook of the bot that runs, signed as it wants it; the status and the body of its answer.

            status, body = await discord.send_hook("deploy", {"version": 3})

        `payload` is JSON, or bytes to send as they are. Of the rest each has a default: the `address` of the bot's web
        side, the `scheme` ("standard", "github" or "ed25519") that it tells at /health, an `id` of its own, a
        `timestamp` by the playground's clock, the `secret` of `discord.hooks` ("whsk_" and a seed in base64 for
        ed25519), and GitHub's `event`. `tamper` changes the body after it was signed. Raises LookupError when the bot
        tells of no such hook, or none runs, and OSError when there is no answer.
        """
        return await self.hooks.send(
            address or self._web_address(), name, payload, scheme=scheme, id=id, timestamp=timestamp, secret=secret,
            event=event, tamper=tamper,
        )  # fmt: skip

    def _web_address(self) -> str:
        for bot in reversed(self.bots):
            if bot.web_address is not None and bot.pid is not None:
                return bot.web_address
        raise LookupError('No bot with a web side runs. Start one with mode="rest" or web=True, or give an address.')

    # People and what they see

    def user(self, name: str) -> Person:
        """A person of the guild; someone new joins on first use."""
        return self._person(self.world.user_named(name)["id"])

    def _person(self, user_id: str) -> Person:
        if user_id not in self.world.user_ids.values():
            raise LookupError(f"There is no person with the id {user_id!r}.")
        return Person(user_id, self.world, self.interactions)

    def messages(self, channel: str | None = None, seen_by: str | None = None) -> list[Json]:
        """The messages of a channel in order: all of them, or those that this person sees."""
        user_id = self.world.user_named(seen_by)["id"] if seen_by is not None else None
        place = self.world.channel_of(channel, user_id)
        kept = self.world.in_channel(place["id"])
        if user_id is not None:
            kept = [one for one in kept if one.is_visible_to(user_id) and self.world.sees(user_id, place)]
        return [one.message for one in kept]

    def text(self, message: Json | None) -> str:
        """All text a person can read in a message, line by line; nothing for None."""
        return shapes.text_of(message) if message is not None else ""

    # The guild

    def role(self, name: str, permissions: Iterable[str] | int | None = None) -> Json:
        """The role of that name, made on first use; with permissions ("kick_members") it gets exactly these.

        The bot's own is called as the bot is, and may do everything until you say otherwise.
        """
        old = self.world.membership.role_named(name)
        if old is not None and permissions is None:
            return old
        id_ = old["id"] if old else self.world.snowflake()
        return self.world.membership.put_role(id_, old["name"] if old else name, bits_of(permissions or 0))

    def join(self, name: str) -> Person:
        """Let somebody join the guild, for the first time or again."""
        person = self.user(name)
        self.world.membership.add(person.user)
        return person

    def leave(self, name: str) -> None:
        """Let somebody leave the guild. What they wrote stays."""
        self.world.membership.remove(self.user(name).id)

    def create_channel(self, name: str, *, nsfw: bool = False) -> Json:
        """A new text channel of the guild; `nsfw` for an age-restricted one."""
        return self.world.create_channel(name, nsfw=nsfw)

    def delete_channel(self, channel: str) -> None:
        """Delete a channel of the guild, by name or id, with all its messages."""
        self.world.delete_channel(self.world.channel_of(channel)["id"])

    def delete_message(self, message: Json | str) -> None:
        """Delete a message, as a moderator does."""
        self.delete_messages([message])

    def delete_messages(self, messages: Iterable[Json | str]) -> None:
        """Delete messages as a moderator does; several of one channel go at once, in one event."""
        by_channel: dict[str, list[Kept]] = {}
        for message in messages:
            id_ = message if isinstance(message, str) else str(message["id"])
            kept = self.world.find(id_)
            if kept is None:
                raise LookupError(f"There is no message {id_}.")
            by_channel.setdefault(kept.message["channel_id"], []).append(kept)
        for several in by_channel.values():
            if len(several) == 1:
                self.world.delete_message(several[0])
            else:
                self.world.delete_messages(several)

    def kick_bot(self) -> None:
        """Remove the bot from the guild; a guild that is deleted looks the same to it."""
        self.world.take_bot_out()

    def invite_bot(self) -> None:
        """Let the bot into the guild again."""
        self.world.take_bot_in()

    def outage(self) -> None:
        """Make the guild unavailable for a while, as when Discord has a disturbance."""
        self.world.set_outage(True)

    def outage_over(self) -> None:
        self.world.set_outage(False)

    # Disturbing it

    def reset_token(self) -> None:
        """Give the bot another token, as "Reset Token" on its page does; the old one is refused from now on."""
        self.token = self.gateway.token = self._rest.token = f"{self.token}-reset"

    @property
    def unknown(self) -> list[str]:
        """Requests for routes that nobody implemented, as "GET /path"."""
        return self._rest.unknown

    @property
    def faults(self) -> Faults:
        return self._rest.faults

    @property
    def rate_limits(self) -> bool:
        """Whether requests over Discord's limits are answered with 429."""
        return self._rest.buckets.enabled

    @rate_limits.setter
    def rate_limits(self, enabled: bool) -> None:
        self._rest.buckets.enabled = enabled

    def send_raw(self, event_name: str, payload: Any) -> None:
        """Send a gateway event with any payload, malformed ones included, to every session."""
        self.gateway.dispatch_everywhere(event_name, payload)

    def send_frame(self, frame: bytes) -> None:
        """Write these bytes as one payload to every connection: JSON or not, outside every session's numbering."""
        self.gateway.send_frame(frame)


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    for port in random.sample(WEB_PORTS, len(WEB_PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return port
    raise OSError(f"No port from {WEB_PORTS[0]} to {WEB_PORTS[-1]} is free.")
