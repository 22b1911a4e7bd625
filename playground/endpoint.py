"""The interactions endpoint: each interaction is a signed POST to the bot, whose answer is the first callback.

While an endpoint is set nothing of an interaction goes through the gateway, as on Discord. The bot answers the request
with 200 and JSON (or multipart/form-data with payload_json and files), or with 202 or 204 and an empty body when it is
going to POST the callback itself. Everything else, and no answer within 3 s, the person sees as a failure at once.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp
import msgspec
from nacl.signing import SigningKey

from .errors import Refused
from .faults import DeliveryFault, DeliveryFaults
from .interactions import FIRST_ANSWER_S, Interaction, Interactions, token_for
from .rest import decode, read_parts
from .shapes import Json
from .uploads import Upload
from .world import World

USER_AGENT = "Discord-Interactions/1.0 (+https://discord.com)"
LOCAL = ("127.0.0.1", "localhost", "::1")
EARLIER = (202, 204)
UNAVAILABLE = 503
DELIVERIES_KEPT = 20_000
CONNECTIONS_AT_ONCE = 4096


class NotReady(ValueError):
    """There is no connection to the endpoint, or it says that it cannot answer now: the bot may be starting."""


class Target(NamedTuple):
    """Where an endpoint is: as it was given, the socket file if it is one, and the URL to ask."""

    given: str
    socket: str | None
    url: str


class Request(NamedTuple):
    """What is sent."""

    body: bytes
    headers: dict[str, str]


class Answer(NamedTuple):
    """What came back. `body` is the JSON (payload_json, if there were files), else the text; None when it was empty."""

    status: int
    content_type: str
    body: Any = None
    files: tuple[Upload, ...] = ()
    is_json: bool = False

    @property
    def is_object(self) -> bool:
        return self.is_json and isinstance(self.body, dict)

    def in_words(self) -> str:
        if self.body is None:
            return f"{self.status} and nothing"
        return f"{self.status}, {self.content_type} and {repr(self.body)[:200]}"


@dataclass(eq=False)
class Delivery:
    """One request with an interaction, and what came of it. Copies of a request are numbered from 0."""

    interaction_id: str
    copy: int
    request: Request
    answer: Answer | None = None
    problem: str | None = None
    """Why nobody was answered by it, in a sentence."""
    is_taken: bool = False
    """The person was answered by it."""
    was_sent: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    @property
    def status(self) -> int | None:
        """None when nothing was read."""
        return self.answer.status if self.answer else None

    @property
    def body(self) -> Any:
        return self.answer.body if self.answer else None


class Endpoint:
    """Where interactions go instead of the gateway, and everything that was sent there."""

    def __init__(self, world: World, interactions: Interactions) -> None:
        self.faults = DeliveryFaults(world.journal)
        self.deliveries: deque[Delivery] = deque(maxlen=DELIVERIES_KEPT)
        """The requests with an interaction, in the order they were sent."""
        self.errors: list[BaseException] = []
        """Mistakes of the playground itself."""
        self.delay_s: Callable[[], float] = lambda: 0.0
        self.on_sent: Callable[[Json], None] | None = None
        self.on_problem: Callable[[str], None] = lambda sentence: None
        """Told why a person was not answered."""
        self._world = world
        self._interactions = interactions
        self._key, self._wrong_key = SigningKey.generate(), SigningKey.generate()
        self._target: Target | None = None
        self._sessions: dict[str | None, aiohttp.ClientSession] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def public_key(self) -> str:
        """What a bot verifies signatures with."""
        return bytes(self._key.verify_key).hex()

    @property
    def url(self) -> str | None:
        """The address that is set; None while interactions go through the gateway."""
        return self._target.given if self._target else None

    async def close(self) -> None:
        """Break off what is under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()

    # Setting it

    async def set(self, url: str | None, *, strict: bool = True) -> None:
        """Send interactions there from now on, if PINGs are answered as they should be; None: through the gateway."""
        if url is None:
            self.unset()
            return
        target = target_of(url)
        await self._require_pong(target)
        await self._require_refusal(target, strict)
        self._use(target)

    def unset(self) -> None:
        """Send interactions through the gateway."""
        if self._target is not None:
            self._use(None)

    def _use(self, target: Target | None) -> None:
        self._target = target
        self._world.interactions_url = self.url
        self._world.journal.note("endpoint", what="set", url=self.url)

    async def _require_pong(self, target: Target) -> None:
        answer = await self._ping(target, DeliveryFault())
        if answer.status != 200 or not answer.is_object or answer.body.get("type") != 1:
            raise (NotReady if answer.status == UNAVAILABLE else ValueError)(
                f'{target.given} answers a signed PING with {answer.in_words()}, not with 200 and {{"type": 1}}. '
                f"Look at the bot's log; the public key to verify with is {self.public_key}."
            )

    async def _require_refusal(self, target: Target, strict: bool) -> None:
        answer = await self._ping(target, DeliveryFault(signature="wrong"))
        if answer.status != 401 and (strict or not 400 <= answer.status < 500):
            raise ValueError(
                f"{target.given} answers a PING with a wrong signature with {answer.status}, not with 401. Verify "
                "X-Signature-Ed25519 over X-Signature-Timestamp and the raw body before anything else."
            )

    async def _ping(self, target: Target, fault: DeliveryFault) -> Answer:
        id_ = self._world.snowflake()
        payload: Json = {
            "id": id_, "application_id": self._world.bot["id"], "type": 1, "token": token_for(id_), "version": 1,
            "user": self._world.user_named("alice"), "entitlements": [], "authorizing_integration_owners": {},
        }  # fmt: skip
        request = self._sign(msgspec.json.encode(payload), fault)
        try:
            async with asyncio.timeout(FIRST_ANSWER_S):
                answer = await self._ask(target, request)
        except TimeoutError:
            raise ValueError(f"{target.given} does not answer a PING within {FIRST_ANSWER_S:.0f} s.") from None
        except (OSError, aiohttp.ClientConnectionError) as problem:
            why = str(problem) or type(problem).__name__
            raise NotReady(f"Nothing answers at {target.given} ({why}). Start the bot, or mend the address.") from None
        except (aiohttp.ClientError, Refused, ValueError) as problem:
            raise ValueError(f"What {target.given} answers a PING with cannot be read: {problem}.") from None
        self._world.journal.note("endpoint", what="ping", signature=fault.signature or "right", status=answer.status)
        return answer

    # Sending interactions

    def send(self, made: Interaction) -> None:
        """Deliver an interaction to the endpoint that is set. When this returns it is on its way."""
        assert self._target is not None
        if self.on_sent is not None:
            self.on_sent(made.payload)
        fault = self.faults.take(made.kind)
        request = self._sign(msgspec.json.encode(made.payload), fault)
        several = [self._new(made.id, copy, request) for copy in range(fault.copies)]
        self._spawn(self._deliver(self._target, made, several, fault))

    async def redeliver(self, interaction_id: str, *, anew: bool = False) -> Delivery:
        """Send the request with an interaction once more, byte by byte or signed anew. Nobody gets the answer."""
        before = [each for each in self.deliveries if each.interaction_id == interaction_id]
        if self._target is None or not before:
            raise LookupError(f"The interaction {interaction_id} was not sent to the endpoint that is set.")
        request = self._sign(before[0].request.body, DeliveryFault()) if anew else before[0].request
        again = self._new(interaction_id, len(before), request)
        await self._copy(self._target, again)
        return again

    async def idle(self) -> None:
        """Wait until every delivery that is under way has been answered or has failed."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _new(self, interaction_id: str, copy: int, request: Request) -> Delivery:
        made = Delivery(interaction_id, copy, request)
        self.deliveries.append(made)
        return made

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.errors.append(error)

    def _sign(self, body: bytes, fault: DeliveryFault) -> Request:
        headers = {"Content-Type": "application/json", "User-Agent": USER_AGENT}
        at = headers["X-Signature-Timestamp"] = str(int(self._world.clock.now() - fault.age_s))
        if fault.signature != "missing":
            key = self._wrong_key if fault.signature == "wrong" else self._key
            headers["X-Signature-Ed25519"] = key.sign(at.encode() + body).signature.hex()
        return Request(body, headers)

    async def _deliver(self, target: Target, made: Interaction, several: list[Delivery], fault: DeliveryFault) -> None:
        first, *others = several
        if fault.when == "at once":
            self._spawn_copies(target, others)
        await self._sleep()
        await self._exchange(target, first, fault)
        if first.answer is not None:
            await fault.wait()
        await self._sleep()
        self._take(made, first)
        self._note(first)
        if first.problem is not None and not made.is_acknowledged:
            self.on_problem(first.problem)
        if fault.when == "answered":
            self._spawn_copies(target, others)

    def _spawn_copies(self, target: Target, others: list[Delivery]) -> None:
        for each in others:
            self._spawn(self._copy(target, each))

    async def _copy(self, target: Target, delivery: Delivery) -> None:
        await self._sleep()
        await self._exchange(target, delivery, DeliveryFault())
        self._note(delivery)

    async def _sleep(self) -> None:
        if self.delay_s() > 0:
            await asyncio.sleep(self.delay_s())

    async def _exchange(self, target: Target, delivery: Delivery, fault: DeliveryFault) -> None:
        """Ask, and keep the answer or the problem."""
        try:
            async with self._world.clock.timeout(FIRST_ANSWER_S):
                if fault.drop == "asked":
                    await self._ask_and_cut(target, delivery, fault)
                else:
                    delivery.answer = await self._ask(target, delivery.request, delivery, fault)
        except TimeoutError:
            delivery.problem = f"There was no answer within {FIRST_ANSWER_S:.0f} s."
        except aiohttp.ClientConnectorError as problem:
            delivery.problem = why_not_reached(target, problem)
        except (OSError, aiohttp.ClientError, Refused, ValueError) as problem:
            delivery.problem = f"{str(problem) or type(problem).__name__}."
        if delivery.answer is not None:
            delivery.problem = problem_with(delivery.answer)
        elif delivery.problem is None:
            been = "been asked" if fault.drop == "asked" else "answered"
            delivery.problem = f"A fault cut the connection when the bot had {been}."

    async def _ask_and_cut(self, target: Target, delivery: Delivery, fault: DeliveryFault) -> None:
        asking = asyncio.create_task(self._ask(target, delivery.request, delivery))
        was_sent = asyncio.create_task(delivery.was_sent.wait())
        try:
            await asyncio.wait([asking, was_sent], return_when=asyncio.FIRST_COMPLETED)
            if delivery.was_sent.is_set():
                await fault.wait()
            else:
                await asking  # there was no connection: this raises
        finally:
            for task in (asking, was_sent):
                task.cancel()
            await asyncio.gather(asking, was_sent, return_exceptions=True)

    async def _ask(
        self, target: Target, request: Request, delivery: Delivery | None = None, fault: DeliveryFault | None = None
    ) -> Any:
        """The answer; None when the fault cuts the connection before it is read."""
        async with self._session(target).post(
            target.url, data=request.body, headers=request.headers, allow_redirects=False, trace_request_ctx=delivery
        ) as response:
            if fault is not None and fault.drop == "answered":
                await fault.wait()
                response.close()
                return None
            return await read(response)

    def _session(self, target: Target) -> aiohttp.ClientSession:
        if target.socket not in self._sessions:
            allow_connections(CONNECTIONS_AT_ONCE)
            tracing = aiohttp.TraceConfig()
            tracing.on_request_chunk_sent.append(note_sent)
            self._sessions[target.socket] = aiohttp.ClientSession(
                connector=aiohttp.UnixConnector(target.socket, limit=0)
                if target.socket
                else aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None),
                cookie_jar=aiohttp.DummyCookieJar(),
                trace_configs=[tracing],
            )
        return self._sessions[target.socket]

    # What comes back

    def _take(self, made: Interaction, delivery: Delivery) -> None:
        """Let the person have the answer, or a failure."""
        answer = delivery.answer
        if answer is None or delivery.problem is not None:
            self._interactions.fail(made)
            return
        if answer.status in EARLIER:
            return  # the callback comes by a request of its own
        try:
            self._interactions.answer(made.id, made.token, answer.body, list(answer.files))
            delivery.is_taken = True
        except Refused as refused:
            delivery.problem = f"Discord refuses the answer: {refused.reason()}"
            self._interactions.fail(made)

    def _note(self, delivery: Delivery) -> None:
        self._world.journal.note(
            "delivery", id=delivery.interaction_id, copy=delivery.copy, status=delivery.status, body=delivery.body,
            problem=delivery.problem, taken=delivery.is_taken,
        )  # fmt: skip


async def note_sent(session: aiohttp.ClientSession, context: SimpleNamespace, params: Any) -> None:
    delivery = context.trace_request_ctx
    if delivery is not None:
        delivery.was_sent.set()


async def read(response: aiohttp.ClientResponse) -> Answer:
    """The answer, read to its end."""
    status, kind = response.status, response.content_type
    if kind == "multipart/form-data":
        body, files = await read_parts(aiohttp.MultipartReader.from_response(response))
        return Answer(status, kind, body, tuple(files), is_json=True)
    raw = await response.read()
    if raw and kind == "application/json":
        try:
            return Answer(status, kind, decode(raw), is_json=True)
        except Refused:
            pass
    return Answer(status, kind, raw.decode(errors="replace") or None)


def why_not_reached(target: Target, problem: aiohttp.ClientConnectorError) -> str:
    if isinstance(problem.os_error, (ConnectionRefusedError, FileNotFoundError)):
        return f"The bot is not running: nothing listens at {target.given}."
    return f"{problem}."


def problem_with(answer: Answer) -> str | None:
    """Why nobody can be answered with this, before anything is known of what it says."""
    if answer.status == 200 and answer.is_object:
        return None
    if answer.status in EARLIER and answer.body is None:
        return None
    return f"The bot answered with {answer.in_words()}."


def target_of(url: str) -> Target:
    """Where that is; ValueError with a sentence when it is nowhere the playground delivers to."""
    scheme, _, rest = url.partition(":")
    if scheme == "unix":
        socket, _, path = rest.partition(":")
        if socket and path.startswith("/"):
            return Target(url, socket, f"http://localhost{path}")
    try:
        parts = urlsplit(url)
        if parts.scheme == "http" and parts.hostname in LOCAL and parts.port != 0:
            return Target(url, None, url)
    except ValueError:
        pass
    raise ValueError(
        f"{url!r} is no endpoint for the playground. Give an address of this machine, as in "
        "http://127.0.0.1:8080/interactions, or a socket and a path, as in unix:/run/bot.sock:/interactions."
    )


def allow_connections(count: int) -> None:
    """A thousand clicks at once are a thousand connections, and many systems allow a process 1,024 or 256 files."""
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415  # there is none on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
