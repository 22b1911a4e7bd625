"""How Discord says no: status, JSON code and message, kept in one table."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

# The codes are documented; which HTTP status goes with one is what client libraries report.
KNOWN: dict[int, tuple[int, str]] = {
    0: (404, "404: Not Found"),
    10002: (404, "Unknown Application"),
    10003: (404, "Unknown Channel"),
    10004: (404, "Unknown Guild"),
    10007: (404, "Unknown Member"),
    10008: (404, "Unknown Message"),
    10009: (404, "Unknown permission overwrite"),
    10011: (404, "Unknown Role"),
    10013: (404, "Unknown User"),
    10014: (404, "Unknown Emoji"),
    10015: (404, "Unknown Webhook"),
    10026: (404, "Unknown Ban"),
    10062: (404, "Unknown interaction"),
    10063: (404, "Unknown application command"),
    30003: (400, "Maximum number of pins reached for the channel (250)"),
    30010: (400, "Maximum number of reactions reached (20)"),
    30032: (400, "Maximum number of application commands reached"),
    40001: (401, "401: Unauthorized"),
    40060: (400, "Interaction has already been acknowledged."),
    40094: (400, "This interaction has reached the maximum number of follow up messages"),
    50001: (403, "Missing Access"),
    50003: (403, "Cannot execute action on a DM channel"),
    50005: (403, "Cannot edit a message authored by another user"),
    50006: (400, "Cannot send an empty message"),
    50007: (403, "Cannot send messages to this user"),
    50008: (400, "Cannot send messages in a non-text channel"),
    50013: (403, "Missing Permissions"),
    50016: (400, "Provided too few or too many messages to delete. Must provide at least 2 and at most 100 messages"),
    50024: (400, "Cannot execute action on this channel type"),
    50027: (401, "Invalid Webhook Token"),
    50028: (400, "Invalid role"),
    50034: (400, "A message provided was too old to bulk delete"),
    50035: (400, "Invalid Form Body"),
    50083: (400, "Thread is archived"),
    50109: (400, "The request body contains invalid JSON."),
}


class Refused(Exception):
    """Discord refuses a request; `status` and `body` are what the client gets."""

    def __init__(self, code: int, errors: Json | None = None) -> None:
        self.status, message = KNOWN[code]
        # A bad bot token is answered with code 0, as Discord does it.
        self.body: Json = {"message": message, "code": 0 if code == 40001 else code}
        if errors is not None:
            self.body["errors"] = errors
        super().__init__(f"{self.status} {self.body['code']} {message}")
        self.code = code

    def reason(self) -> str:
        """One sentence for a person: the first problem and its place."""
        place: list[str] = []
        at: Any = self.body.get("errors") or {}
        while at and "_errors" not in at:
            key = next(iter(at))
            place.append(key)
            at = at[key]
        if not at:
            return str(self.body["message"])
        return f"{'.'.join(place)}: {at['_errors'][0]['message']}" if place else str(at["_errors"][0]["message"])
