"""Hooks: requests of other services to the bot, signed as such services sign them.

Three ways to sign: "standard" and "ed25519", both as https://www.standardwebhooks.com has them, and "github". Which one
a hook wants, the bot tells at /health.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import shlex
import uuid
from typing import Any, Literal, NamedTuple, cast

import aiohttp
import msgspec
from nacl.signing import SigningKey

from .clock import Clock
from .interactions import TOKENS_ISSUED
from .journal import Journal
from .shapes import Json

Scheme = Literal["standard", "github", "ed25519"]
SCHEMES: tuple[Scheme, ...] = ("standard", "github", "ed25519")
USER_AGENT = "Playground-Hooks/1.0"
HEALTH_WAIT_S = 5.0
SECRET_LENGTH_MIN = 16
HOOK_WAIT_S = 30.0


class HookAnswer(NamedTuple):
    """What the bot answered: the body is JSON if it can be read as such, else text; None when it was empty."""

    status: int
    body: Any


class Signed(NamedTuple):
    """A request to a hook, ready to be sent."""

    url: str
    headers: dict[str, str]
    body: bytes
    scheme: str

    def as_curl(self) -> str:
        """The command for a shell that sends it."""
        told = [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in self.headers.items() if name != "User-Agent"]
        body = shlex.quote(self.body.decode())
        return " \\\n    ".join([f"curl -sS {shlex.quote(self.url)} --data-raw {body}", *told])


class Hooks:
    """What the playground calls hooks with: a secret and a key of its own."""

    def __init__(self, clock: Clock, journal: Journal) -> None:
        self.secret = f"whsec_{base64.b64encode(secrets.token_bytes(24)).decode()}"
        self._key = SigningKey.generate()
        self._clock = clock
        self._journal = journal
        TOKENS_ISSUED.append(self.secret)

    def use(self, secret: str) -> None:
        """Sign with this secret from now on; ValueError with a sentence, which never holds it, when it is none."""
        if len(secret) < SECRET_LENGTH_MIN:
            raise ValueError(f"HOOK_SECRET is too short. Give it {SECRET_LENGTH_MIN} characters or more.")
        try:
            key_of(secret)
        except ValueError:
            raise ValueError(
                "HOOK_SECRET begins with whsec_ and goes on with what is no base64. Copy it whole."
            ) from None
        TOKENS_ISSUED.append(secret)
        self.secret = secret

    @property
    def public_key(self) -> str:
        """What hooks of the kind ed25519 are verified with."""
        return whpk(self._key)

    async def known(self, address: str) -> dict[str, str] | None:
        """The hooks of the bot at this address: how each one is signed, by name. None when it cannot be asked."""
        try:
            async with client(HEALTH_WAIT_S) as session, session.get(f"{address}/health") as response:
                health = read_answer(await response.read())
        except (OSError, aiohttp.ClientError):
            return None
        hooks: Any = cast(Json, health).get("hooks") if isinstance(health, dict) else None
        given = cast(Json, hooks) if isinstance(hooks, dict) else {}
        return {name: str(scheme) for name, scheme in given.items()}

    async def send(
        self,
        address: str,
        name: str,
        payload: Any,
        *,
        scheme: str | None = None,
        id: str | None = None,
        timestamp: float | None = None,
        secret: str | None = None,
        event: str = "push",
        tamper: bool = False,
    ) -> HookAnswer:
        """Call a hook; see Discord.send_hook."""
        signed = await self.sign(
            address, name, payload, scheme=scheme, id=id, timestamp=timestamp, secret=secret, event=event
        )
        answer = await post(signed.url, signed.headers, signed.body + b" " if tamper else signed.body)
        self._journal.note(
            "hook", name=name, scheme=signed.scheme, headers=signed.headers, status=answer.status, body=answer.body
        )
        return answer

    async def sign(
        self,
        address: str,
        name: str,
        payload: Any,
        *,
        scheme: str | None = None,
        id: str | None = None,
        timestamp: float | None = None,
        secret: str | None = None,
        event: str = "push",
    ) -> Signed:
        """The request that `send` would send."""
        scheme = scheme or scheme_of(name, await self.known(address))
        body = payload if isinstance(payload, bytes) else msgspec.json.encode(payload)
        headers = {"Content-Type": "application/json", "User-Agent": USER_AGENT}
        if scheme == "github":
            headers |= {"X-GitHub-Delivery": id or str(uuid.uuid4()), "X-GitHub-Event": event}
            headers["X-Hub-Signature-256"] = f"sha256={github_signature(secret or self.secret, body)}"
        else:
            id, at = id or f"msg_{secrets.token_hex(12)}", self._clock.now() if timestamp is None else timestamp
            headers |= {"webhook-id": id, "webhook-timestamp": f"{at:.0f}"}
            sign = self._key_signature if scheme == "ed25519" else self._signature
            headers |= sign(secret, f"{id}.{at:.0f}.".encode() + body)
        return Signed(f"{address}/hooks/{name}", headers, body, scheme)

    def _signature(self, secret: str | None, content: bytes) -> dict[str, str]:
        digest = hmac.new(key_of(secret or self.secret), content, hashlib.sha256).digest()
        return {"webhook-signature": f"v1,{base64.b64encode(digest).decode()}"}

    def _key_signature(self, secret: str | None, content: bytes) -> dict[str, str]:
        key = SigningKey(base64.b64decode(secret.removeprefix("whsk_"))) if secret else self._key
        signature = base64.b64encode(key.sign(content).signature).decode()
        return {"webhook-signature": f"v1a,{signature}", "webhook-key": whpk(key)}


def key_of(secret: str) -> bytes:
    """The bytes to sign with: base64 after whsec_, any other text as it stands."""
    return base64.b64decode(secret[6:], validate=True) if secret.startswith("whsec_") else secret.encode()


def whpk(key: SigningKey) -> str:
    return f"whpk_{base64.b64encode(bytes(key.verify_key)).decode()}"


def github_signature(secret: str, body: bytes) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def scheme_of(name: str, known: dict[str, str] | None) -> str:
    """How the hook is signed; LookupError with a sentence when there is none, or in no way that is known."""
    if known is None:
        raise LookupError(f"The bot cannot be asked how its hook {name!r} is signed: nothing answers at /health.")
    if name not in known:
        there = f"There are: {', '.join(known)}." if known else "It tells of none at /health."
        raise LookupError(f"The bot has no hook {name!r}. {there}")
    if known[name] not in SCHEMES:
        raise LookupError(f"The hook {name!r} is signed in a way that the playground does not know: {known[name]}.")
    return known[name]


def client(wait_s: float) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(wait_s), cookie_jar=aiohttp.DummyCookieJar())


async def post(url: str, headers: dict[str, str], body: bytes) -> HookAnswer:
    """Raises OSError with a sentence when there is no answer."""
    try:
        async with (
            client(HOOK_WAIT_S) as session,
            session.post(url, data=body, headers=headers, allow_redirects=False) as response,
        ):
            return HookAnswer(response.status, read_answer(await response.read()))
    except (OSError, aiohttp.ClientError) as problem:
        raise OSError(f"{url} did not answer: {str(problem) or type(problem).__name__}.") from None


def read_answer(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw) if raw else None
    except msgspec.DecodeError:
        return raw.decode(errors="replace")
