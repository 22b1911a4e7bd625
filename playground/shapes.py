"""The JSON of Discord's objects, as its published OpenAPI and the client libraries want them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, cast
from urllib.parse import unquote

Json = dict[str, Any]

EPHEMERAL = 1 << 6
LOADING = 1 << 7
IS_COMPONENTS_V2 = 1 << 15
ALL_PERMISSIONS = "2251799813685247"
JOINED = "2024-01-01T00:00:00.000000+00:00"
ATTACHMENT_BYTES_MAX = 10 * 1024 * 1024

LOCALE_CODES = """
ar bg cs da de el en-GB en-US es-419 es-ES fi fr he hi hr hu id it ja ko lt nl no pl pt-BR ro ru sv-SE th tr uk vi zh-
CN zh-TW
"""
LOCALES = LOCALE_CODES.split()

ROW, BUTTON, STRING_SELECT, TEXT_INPUT, USER_SELECT, ROLE_SELECT, MENTIONABLE_SELECT, CHANNEL_SELECT = range(1, 9)
SECTION, TEXT, THUMBNAIL, GALLERY, FILE, SEPARATOR = range(9, 15)
CONTAINER, LABEL, FILE_UPLOAD, RADIO_GROUP, CHECKBOX_GROUP, CHECKBOX = 17, 18, 19, 21, 22, 23
SELECTS = (STRING_SELECT, USER_SELECT, ROLE_SELECT, MENTIONABLE_SELECT, CHANNEL_SELECT)


def timestamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds")


def written_at(message_: Json) -> float:
    return datetime.fromisoformat(message_["timestamp"]).timestamp()


def user(id_: str, username: str, *, name: str | None = None, bot: bool = False) -> Json:
    return {
        "id": id_, "username": username, "discriminator": "0", "global_name": name, "avatar": None,
        "bot": bot, "system": False, "public_flags": 0, "flags": 0, "banner": None, "accent_color": None,
        "avatar_decoration_data": None, "collectibles": None, "primary_guild": None,
    }  # fmt: skip


def own_user(bot: Json) -> Json:
    return {**bot, "mfa_enabled": False, "locale": "en-US", "verified": True, "email": None}


def member(user_: Json) -> Json:
    return {
        "user": user_, "nick": None, "avatar": None, "banner": None, "roles": [], "joined_at": JOINED,
        "premium_since": None, "deaf": False, "mute": False, "flags": 0, "pending": False,
        "communication_disabled_until": None, "avatar_decoration_data": None, "collectibles": None,
    }  # fmt: skip


def guild_channel(id_: str, name: str, guild_id: str, position: int, type_: int = 0) -> Json:
    return {
        "id": id_, "type": type_, "guild_id": guild_id, "name": name, "position": position,
        "permission_overwrites": [], "topic": None, "nsfw": False, "last_message_id": None, "rate_limit_per_user": 0,
        "parent_id": None, "flags": 0,
    }  # fmt: skip


def overwrite(id_: str, given: Json) -> Json:
    """What a channel allows and denies a role (type 0) or a member (type 1)."""
    allow, deny = (str(given.get(name) or 0) for name in ("allow", "deny"))
    return {"id": id_, "type": given["type"], "allow": allow, "deny": deny}


def direct_channel(id_: str, recipient: Json) -> Json:
    return {"id": id_, "type": 1, "last_message_id": None, "flags": 0, "recipients": [recipient]}


def group_channel(id_: str, name: str, recipients: list[Json]) -> Json:
    """A private channel of several people, in which there is no bot."""
    return {
        "id": id_, "type": 3, "last_message_id": None, "flags": 0, "recipients": recipients, "name": name, "icon": None,
        "owner_id": recipients[0]["id"],
    }  # fmt: skip


def role(id_: str, name: str, permissions: int, position: int) -> Json:
    return {
        "id": id_, "name": name, "description": None, "permissions": str(permissions), "position": position,
        "color": 0, "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None}, "hoist": False,
        "managed": False, "mentionable": False, "icon": None, "unicode_emoji": None, "flags": 0,
    }  # fmt: skip


def guild(id_: str, name: str, owner_id: str, roles: list[Json]) -> Json:
    return {
        "id": id_, "name": name, "icon": None, "description": None, "home_header": None, "splash": None,
        "discovery_splash": None, "features": [], "banner": None, "owner_id": owner_id, "application_id": None,
        "region": "us-west", "afk_channel_id": None, "afk_timeout": 300, "system_channel_id": None,
        "system_channel_flags": 0, "widget_enabled": False, "widget_channel_id": None, "verification_level": 0,
        "roles": roles, "default_message_notifications": 0, "mfa_level": 0, "explicit_content_filter": 0,
        "max_presences": None, "max_members": 500000, "max_stage_video_channel_users": 50,
        "max_video_channel_users": 25, "vanity_url_code": None, "premium_tier": 0, "premium_subscription_count": 0,
        "preferred_locale": "en-US", "rules_channel_id": None, "safety_alerts_channel_id": None,
        "public_updates_channel_id": None, "premium_progress_bar_enabled": False, "nsfw": False, "nsfw_level": 0,
        "emojis": [], "stickers": [], "incidents_data": None,
    }  # fmt: skip


def joined_guild(guild_: Json, members: list[Json], channels: list[Json]) -> Json:
    """What GUILD_CREATE adds to a guild."""
    return {
        **guild_, "joined_at": JOINED, "large": False, "unavailable": False, "member_count": len(members),
        "members": members, "channels": channels, "threads": [], "presences": [], "voice_states": [],
        "stage_instances": [], "guild_scheduled_events": [], "soundboard_sounds": [],
    }  # fmt: skip


def application(bot: Json, owner: Json, public_key: str, interactions_url: str | None) -> Json:
    return {
        "id": bot["id"], "name": bot["username"], "icon": None, "description": "", "summary": "", "type": None,
        "bot": bot, "bot_public": True, "bot_require_code_grant": False, "verify_key": public_key, "flags": 0,
        "flags_new": "0", "redirect_uris": [], "interactions_endpoint_url": interactions_url, "owner": owner,
        "role_connections_verification_url": None, "approximate_guild_count": 1,
        "approximate_user_install_count": 0, "approximate_user_authorization_count": 0,
        "explicit_content_filter": 0, "team": None, "eligible_oauth2_scopes": [], "max_participants": None,
        "tags": [], "event_webhooks_status": 1, "integration_types_config": {"0": {}},
    }  # fmt: skip


def text_or_none(value: Any) -> str | None:
    return None if value is None else str(value)


def without_localizations(value: Any) -> Any:
    """A command as the routes that list give it unless they are asked for its names in other languages."""
    if isinstance(value, dict):
        kept = {key: item for key, item in cast(Json, value).items() if not key.endswith("_localizations")}
        return {key: without_localizations(item) for key, item in kept.items()}
    if isinstance(value, list):
        return [without_localizations(item) for item in cast(list[Any], value)]
    return value


def command(application_id: str, id_: str, version: str, guild_id: str | None, body: Json) -> Json:
    made = {
        "id": id_, "application_id": application_id, "version": version, "type": body.get("type") or 1,
        "name": body["name"], "name_localizations": body.get("name_localizations"),
        "description": body.get("description") or "",
        "description_localizations": body.get("description_localizations"),
        "default_member_permissions": text_or_none(body.get("default_member_permissions")), "dm_permission": True,
        "contexts": body.get("contexts"), "integration_types": body.get("integration_types") or [0],
        "nsfw": bool(body.get("nsfw")),
    }  # fmt: skip
    if guild_id is not None:
        made["guild_id"] = guild_id
    if body.get("options"):
        made["options"] = [without_nulls(option) for option in body["options"]]
    return made


def without_nulls(value: Any) -> Any:
    """The same JSON with every null member left out, at any depth."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in cast(Json, value).items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in cast(list[Any], value)]
    return value


def message(id_: str, channel_id: str, author: Json, at: float) -> Json:
    return {
        "id": id_, "type": 0, "channel_id": channel_id, "author": author, "content": "", "mentions": [],
        "mention_roles": [], "mention_everyone": False, "attachments": [], "embeds": [], "timestamp": timestamp(at),
        "edited_timestamp": None, "flags": 0, "components": [], "pinned": False, "tts": False,
    }  # fmt: skip


def attachment(id_: str, filename: str, size: int, content_type: str, url: str) -> Json:
    return {
        "id": id_, "filename": filename, "size": size, "url": url, "proxy_url": url, "content_type": content_type,
    }  # fmt: skip


def reaction(emoji: str, count: int, me: bool) -> Json:
    return {
        "emoji": emoji_of(emoji), "count": count, "count_details": {"burst": 0, "normal": count}, "burst_colors": [],
        "me": me, "me_burst": False,
    }  # fmt: skip


def emoji_of(text: str) -> Json:
    """An emoji as reactions have it, from itself or from "name:id"."""
    name, colon, id_ = text.rpartition(":")
    return {"id": id_, "name": name} if colon else {"id": None, "name": text}


def embeds(given: list[Json], attachments: list[Json]) -> list[Json]:
    """The embeds of a message, with what `attachment://` names replaced by where it lies."""
    files = {item["filename"]: item for item in attachments}
    made = [{**without_nulls(embed), "type": "rich"} for embed in given]
    for embed in made:
        for field in embed.get("fields", ()):
            field.setdefault("inline", False)
        for name, key in (("image", "url"), ("thumbnail", "url"), ("author", "icon_url"), ("footer", "icon_url")):
            holder: Any = embed.get(name)
            if holder and key in holder:
                embed[name] = with_proxy(holder, key, files)
    return made


def with_proxy(holder: Json, key: str, files: dict[str, Json]) -> Json:
    url: str = holder[key]
    found = files.get(attached_name(url)) if url.startswith("attachment://") else None
    where = found["url"] if found else url
    size = {name: found[name] for name in ("width", "height") if name in found} if found and key == "url" else {}
    return {**holder, key: where, f"proxy_{key}": where, **size}


def attached_name(url: str) -> str:
    """The file's name in attachment://name, or at the end of another address."""
    return unquote(url.removeprefix("attachment://").rsplit("/", 1)[-1])


# What Discord writes into a component when the bot left it out.
DEFAULTS: dict[int, Json] = {
    BUTTON: {"disabled": False},
    **{kind: {"min_values": 1, "max_values": 1, "disabled": False} for kind in SELECTS},
    THUMBNAIL: {"description": None, "spoiler": False},
    FILE: {"name": None, "size": None, "spoiler": False},
    SEPARATOR: {"divider": True, "spacing": 1},
    CONTAINER: {"accent_color": None, "spoiler": False},
}


class Completion:
    """Fills in what a bot may leave out of its components: ids in order, defaults, where attachments lie."""

    def __init__(self, components: list[Json], attachments: list[Json]) -> None:
        self._attachments = {item["filename"]: item for item in attachments}
        taken = {part["id"] for part in walk(components) if part.get("id")}
        self._free = (number for number in itertools.count(1) if number not in taken)

    def all(self, components: list[Json]) -> list[Json]:
        """New objects: the request's own stay as the journal has them."""
        return [self._one(part) for part in without_nulls(components)]

    def _one(self, part: Json) -> Json:
        part = {**DEFAULTS.get(part["type"], {}), **part}
        part["id"] = part.get("id") or next(self._free)
        if "components" in part:
            part["components"] = [self._one(child) for child in part["components"]]
        for child in ("accessory", "component"):
            if child in part:
                part[child] = self._one(part[child])
        if part["type"] == GALLERY:
            part["items"] = [
                self._with_media({"description": None, "spoiler": False, **item}) for item in part["items"]
            ]
        return self._with_media(part)

    def _with_media(self, holder: Json) -> Json:
        for key in ("media", "file"):
            if key in holder:
                url: str = holder[key]["url"]
                found = self._attachments.get(attached_name(url))
                if found and not url.startswith("attachment://") and url != found["url"]:
                    found = None  # a file elsewhere that has the same name
                holder[key] = unfurled(url, found)
                if key == "file" and found is not None:
                    holder |= {"name": found["filename"], "size": found["size"]}
        return holder


def unfurled(url: str, found: Json | None) -> Json:
    """A picture or file as Discord gives it back; `found` is the message's attachment of that name."""
    if found is None:
        return {"id": "0", "url": url, "proxy_url": url, "width": None, "height": None, "content_type": None}
    return {
        "id": found["id"], "url": found["url"], "proxy_url": found["url"], "width": found.get("width"),
        "height": found.get("height"), "content_type": found["content_type"], "attachment_id": found["id"],
    }  # fmt: skip


def walk(components: list[Json]) -> Iterator[Json]:
    """Every component of a message or form, outer before inner, in reading order."""
    for part in components:
        yield part
        yield from walk(part.get("components") or [])
        for child in ("component", "accessory"):
            if part.get(child):
                yield from walk([part[child]])


def text_of(message_: Json) -> str:
    """All text a person can read in a message, line by line."""
    lines = [message_["content"]]
    for embed in message_["embeds"]:
        lines += [embed.get("title", ""), embed.get("description", "")]
        lines += [f"{field['name']} {field['value']}" for field in embed.get("fields", ())]
    for part in walk(message_["components"]):
        lines += [part.get("content", ""), part.get("label", ""), part.get("placeholder", "")]
        lines += [option["label"] for option in part.get("options", ())]
    return "\n".join(line for line in lines if line)
