"""Discord's rate limits: one bucket per route and major parameter, and one for everything together."""

from __future__ import annotations

from dataclasses import dataclass

from .clock import Clock

GLOBAL_LIMIT, GLOBAL_WINDOW_S = 50, 1.0

# Observed by bots, not documented; Discord tells clients to follow the headers and nothing else.
# Route: requests, seconds, and the path parameters that each have a bucket of their own.
LIMITS: dict[tuple[str, str], tuple[int, float]] = {
    ("POST", "/channels/{channel_id}/messages"): (5, 5.0),
    ("PATCH", "/channels/{channel_id}/messages/{message_id}"): (5, 5.0),
    ("DELETE", "/channels/{channel_id}/messages/{message_id}"): (5, 1.0),
    ("POST", "/channels/{channel_id}/messages/bulk-delete"): (1, 1.0),
    ("PUT", "/channels/{channel_id}/messages/{message_id}/reactions/{emoji_name}/@me"): (1, 0.25),
    ("PUT", "/applications/{application_id}/commands"): (5, 20.0),
    ("POST", "/applications/{application_id}/commands"): (5, 20.0),
    ("PUT", "/applications/{application_id}/guilds/{guild_id}/commands"): (5, 20.0),
    ("POST", "/applications/{application_id}/guilds/{guild_id}/commands"): (5, 20.0),
    ("POST", "/webhooks/{webhook_id}/{webhook_token}"): (5, 2.0),
    ("PATCH", "/webhooks/{webhook_id}/{webhook_token}/messages/{message_id}"): (5, 2.0),
    ("PATCH", "/webhooks/{webhook_id}/{webhook_token}/messages/@original"): (5, 2.0),
}
DEFAULT_LIMIT = (50, 1.0)
# Without rate limits the headers still come, so wide that no client waits: hikari sends one request at a time
# on a route whose bucket it has not been told.
WIDE_LIMIT = (1_000_000, 1.0)
MAJOR = ("channel_id", "guild_id", "webhook_id", "webhook_token")


@dataclass(slots=True)
class Bucket:
    """A window of requests that starts with the first one and ends after its length."""

    limit: int
    window_s: float
    ends_at: float = 0.0
    used: int = 0

    def take(self, now: float) -> float | None:
        """Count a request; the seconds to wait instead when the window is full."""
        if now >= self.ends_at:
            self.ends_at, self.used = now + self.window_s, 0
        if self.used >= self.limit:
            return self.ends_at - now
        self.used += 1
        return None


@dataclass(slots=True)
class Verdict:
    """The headers for an answer, and how long to wait when the request is over a limit."""

    headers: dict[str, str]
    retry_after: float | None = None
    is_global: bool = False


class Buckets:
    """Counts requests by the clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets: dict[tuple[str, str, tuple[str, ...]], Bucket] = {}
        self._global = Bucket(GLOBAL_LIMIT, GLOBAL_WINDOW_S)
        self.enabled = False

    def take(self, method: str, route: str, params: dict[str, str]) -> Verdict:
        if route.startswith("/interactions/"):
            return Verdict({})  # callbacks have no bucket, and hikari reports one as an error
        if not self.enabled:
            return Verdict(self._headers(method, route, Bucket(*WIDE_LIMIT, ends_at=self._clock.now() + 1, used=1)))
        now = self._clock.now()
        if not route.startswith("/webhooks/"):
            retry_after = self._global.take(now)
            if retry_after is not None:
                return Verdict({"X-RateLimit-Global": "true", "X-RateLimit-Scope": "global"}, retry_after, True)
        key = (method, route, tuple(params[name] for name in MAJOR if name in params))
        bucket = self._buckets.setdefault(key, Bucket(*LIMITS.get((method, route), DEFAULT_LIMIT)))
        retry_after = bucket.take(now)
        headers = self._headers(method, route, bucket)
        if retry_after is not None:
            headers["X-RateLimit-Scope"] = "user"
        return Verdict(headers, retry_after)

    def _headers(self, method: str, route: str, bucket: Bucket) -> dict[str, str]:
        return {
            "X-RateLimit-Limit": str(bucket.limit),
            "X-RateLimit-Remaining": str(bucket.limit - bucket.used),
            "X-RateLimit-Reset": f"{bucket.ends_at:.3f}",
            "X-RateLimit-Reset-After": f"{max(0.0, bucket.ends_at - self._clock.now()):.3f}",
            "X-RateLimit-Bucket": f"{method} {route}".encode().hex()[-32:],
        }
