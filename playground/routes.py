"""The REST operations, one method each, and at the end the table that says which path leads to which."""

from __future__ import annotations

from collections.abc import Callable

from . import limits, shapes
from .calls import NOTHING, TRUE, Call, Reply
from .errors import Refused
from .gateway import Gateway
from .guild_routes import GuildOperations
from .interactions import Interactions, callback_response
from .shapes import EPHEMERAL, Json
from .world import DISCORD_EPOCH_MS, ELSEWHERE_ID, GUILD_ID, MESSAGES_IN, Kept, World

MESSAGES_PER_PAGE = 50
BULK_DELETES_UP_TO_S = 14 * 86_400


class Operations(GuildOperations):
    """What each request does to the world."""

    def __init__(self, world: World, gateway: Gateway, interactions: Interactions, public_key: str) -> None:
        self.world = world
        self.gateway = gateway
        self.interactions = interactions
        self.public_key = public_key

    # Gateway, users, guild, channels

    def get_gateway(self, call: Call) -> Reply:
        return 200, {"url": self._gateway_url()}

    def get_gateway_bot(self, call: Call) -> Reply:
        limit = self.gateway.start_limit()
        return 200, {"url": self._gateway_url(), "shards": self.gateway.shards, "session_start_limit": limit}

    def _gateway_url(self) -> str:
        return f"{self.world.address.replace('http', 'ws', 1)}/gateway"

    def get_own_user(self, call: Call) -> Reply:
        return 200, shapes.own_user(self.world.bot)

    def get_user(self, call: Call) -> Reply:
        user = self.world.users.get(call.params["user_id"])
        if user is None:
            raise Refused(10013)
        return 200, user

    def get_own_guilds(self, call: Call) -> Reply:
        if not self.world.bot_in_guild:
            return 200, []
        guild = {key: self.world.guild[key] for key in ("id", "name", "icon", "banner", "features")}
        return 200, [{**guild, "owner": False, "permissions": str(self.world.membership.base(self.world.bot["id"]))}]

    def get_application(self, call: Call) -> Reply:
        owner = self.world.user_named("alice")
        return 200, shapes.application(self.world.bot, owner, self.public_key, self.world.interactions_url)

    def open_direct_channel(self, call: Call) -> Reply:
        user_id = str(call.json.get("recipient_id"))
        if user_id not in self.world.users:
            raise Refused(10013)
        if user_id == self.world.bot["id"]:
            raise Refused(50007)
        return 200, self.world.direct_channel_with(user_id)

    # Messages through the channel

    def get_messages(self, call: Call) -> Reply:
        """The newest first, ephemeral ones left out; before, after, around and limit as Discord has them."""
        kept = self.world.in_channel(self._channel(call)["id"])
        messages = [one.message for one in kept if one.visible_to is None]
        limit = min(100, call.number("limit", MESSAGES_PER_PAGE))
        if "after" in call.query:
            after = call.number("after", 0)
            later = [message for message in messages if int(message["id"]) > after]
            return 200, later[:limit][::-1]
        if "around" in call.query:
            older = sum(int(message["id"]) < call.number("around", 0) for message in messages)
            start = max(0, older - limit // 2)
            return 200, messages[start : start + limit][::-1]
        before = call.number("before", 2**63)
        return 200, [message for message in messages if int(message["id"]) < before][-limit:][::-1]

    def get_message(self, call: Call) -> Reply:
        return 200, self._message(call).message

    def create_message(self, call: Call) -> Reply:
        channel, body = self._channel(call, "SEND_MESSAGES"), call.json
        if "guild_id" in channel and channel["type"] not in MESSAGES_IN:
            raise Refused(50008)
        channel_id = channel["id"]
        limits.check_message(body, filenames=call.filenames)
        nonce = str(body["nonce"]) if body.get("nonce") is not None else None
        same = self.world.message_with_nonce(channel_id, nonce) if nonce and body.get("enforce_nonce") else None
        if same is not None:
            return 200, same.message
        flags = int(body.get("flags") or 0) & ~EPHEMERAL
        extra = self._reply_to(body.get("message_reference"))
        if nonce is not None:
            extra["nonce"] = body["nonce"]
        kept = self.world.add_message(
            channel_id, self.world.bot, {**body, "flags": flags}, uploads=call.uploads, extra=extra
        )
        if nonce is not None:
            self.world.remember_nonce(channel_id, nonce, kept.id)
        return 200, kept.message

    def _reply_to(self, reference: Json | None) -> Json:
        if not reference or not reference.get("message_id"):
            return {}
        found = self.world.find(str(reference["message_id"]))
        if found is None or found.visible_to is not None:
            if not reference.get("fail_if_not_exists", True):
                return {}
            problem = {"code": "REPLIES_UNKNOWN_MESSAGE", "message": "Unknown message"}
            raise Refused(50035, {"message_reference": {"_errors": [problem]}})
        return self.world.reply_to(found)

    def edit_message(self, call: Call) -> Reply:
        kept = self._message(call)
        if kept.message["author"]["id"] != self.world.bot["id"]:
            raise Refused(50005)
        return self._edit(kept, call)

    def delete_message(self, call: Call) -> Reply:
        kept = self._message(call)
        if kept.message["author"]["id"] != self.world.bot["id"]:
            if "guild_id" not in self._channel(call):
                raise Refused(50003)
            self._channel(call, "MANAGE_MESSAGES")
        self.world.delete_message(kept)
        return NOTHING

    def delete_messages(self, call: Call) -> Reply:
        channel = self._channel(call)
        if "guild_id" not in channel:
            raise Refused(50003)
        self._channel(call, "MANAGE_MESSAGES")
        ids = limits.check_deletion(call.json)
        oldest_ms = (self.world.clock.now() - BULK_DELETES_UP_TO_S) * 1000 - DISCORD_EPOCH_MS
        if any(int(id_) >> 22 < oldest_ms for id_ in ids):
            raise Refused(50034)
        found = [kept for kept in map(self.world.find, ids) if kept is not None and kept.visible_to is None]
        self.world.delete_messages([kept for kept in found if kept.message["channel_id"] == channel["id"]])
        return NOTHING

    def _edit(self, kept: Kept, call: Call) -> Reply:
        limits.check_message(call.json, filenames=call.filenames, now=kept.message)
        return 200, self.world.edit_message(kept, call.json, call.uploads).message

    # Interactions and their webhooks

    def answer_interaction(self, call: Call) -> Reply:
        ids = call.params
        interaction = self.interactions.answer(ids["interaction_id"], ids["interaction_token"], call.json, call.uploads)
        return (200, callback_response(interaction)) if call.query.get("with_response") in TRUE else NOTHING

    def follow_up(self, call: Call) -> Reply:
        interaction = self.interactions.by_token(call.params["webhook_id"], call.params["webhook_token"])
        return 200, self.interactions.follow_up(interaction, call.json, call.uploads).message

    def get_webhook_message(self, call: Call) -> Reply:
        return 200, self._webhook_message(call).message

    def edit_webhook_message(self, call: Call) -> Reply:
        return self._edit(self._webhook_message(call), call)

    def delete_webhook_message(self, call: Call) -> Reply:
        self.world.delete_message(self._webhook_message(call))
        return NOTHING

    def _webhook_message(self, call: Call) -> Kept:
        interaction = self.interactions.by_token(call.params["webhook_id"], call.params["webhook_token"])
        return self.interactions.message_of(interaction, call.params.get("message_id", "@original"))

    # Commands

    def get_commands(self, call: Call) -> Reply:
        commands = self.world.commands_in(self._command_place(call))
        if call.query.get("with_localizations") not in TRUE:
            return 200, shapes.without_localizations(commands)
        return 200, commands

    def put_commands(self, call: Call) -> Reply:
        place = self._command_place(call)
        limits.check_commands(call.body)
        return 200, self.world.replace_commands(place, call.body)

    def create_command(self, call: Call) -> Reply:
        place = self._command_place(call)
        limits.check_command(call.body)
        limits.check_room(self.world.commands_in(place), call.json)
        made, is_new = self.world.put_command(place, call.json)
        return (201 if is_new else 200), made

    def get_command(self, call: Call) -> Reply:
        return 200, self._command(call)

    def edit_command(self, call: Call) -> Reply:
        merged = {**self._command(call), **call.json}
        limits.check_command(merged)
        others = [each for each in self.world.commands_in(self._command_place(call)) if each["id"] != merged["id"]]
        limits.check_name_is_free(others, merged)
        made, _ = self.world.put_command(self._command_place(call), merged, id_=call.params["command_id"])
        return 200, made

    def delete_command(self, call: Call) -> Reply:
        self.world.delete_command(self._command(call)["id"])
        return NOTHING

    def _command(self, call: Call) -> Json:
        place = self._command_place(call)
        command = self.world.commands.get(call.params["command_id"])
        if command is None or command.get("guild_id") != place:
            raise Refused(10063)
        return command

    def _command_place(self, call: Call) -> str | None:
        """The guild of a guild command, None for a global one."""
        if call.params["application_id"] != self.world.bot["id"]:
            raise Refused(10002)
        guild_id = call.params.get("guild_id")
        if guild_id == ELSEWHERE_ID or (guild_id == GUILD_ID and not self.world.bot_in_guild):
            raise Refused(50001)
        if guild_id is not None:
            self._require_guild(call)
        return guild_id


Operation = Callable[[Operations, Call], Reply]

GUILD = "/guilds/{guild_id}"
MEMBER = f"{GUILD}/members/{{user_id}}"
CHANNEL = "/channels/{channel_id}"
CHANNEL_MESSAGE = f"{CHANNEL}/messages/{{message_id}}"
REACTION = f"{CHANNEL_MESSAGE}/reactions/{{emoji_name}}"
WEBHOOK = "/webhooks/{webhook_id}/{webhook_token}"
WEBHOOK_ORIGINAL = f"{WEBHOOK}/messages/@original"
WEBHOOK_MESSAGE = f"{WEBHOOK}/messages/{{message_id}}"
COMMANDS = "/applications/{application_id}/commands"
GUILD_COMMANDS = "/applications/{application_id}/guilds/{guild_id}/commands"

# Paths as Discord's OpenAPI writes them. Of two that fit, the earlier one is taken.
ROUTES: list[tuple[str, str, Operation]] = [
    ("GET", "/gateway", Operations.get_gateway),
    ("GET", "/gateway/bot", Operations.get_gateway_bot),
    ("GET", "/users/@me", Operations.get_own_user),
    ("GET", "/users/@me/guilds", Operations.get_own_guilds),
    ("POST", "/users/@me/channels", Operations.open_direct_channel),
    ("GET", "/users/{user_id}", Operations.get_user),
    ("GET", "/applications/@me", Operations.get_application),
    ("GET", "/oauth2/applications/@me", Operations.get_application),
    ("GET", GUILD, Operations.get_guild),
    ("DELETE", "/users/@me/guilds/{guild_id}", Operations.leave_guild),
    ("GET", f"{GUILD}/channels", Operations.get_guild_channels),
    ("POST", f"{GUILD}/channels", Operations.create_channel),
    ("GET", f"{GUILD}/roles", Operations.get_roles),
    ("POST", f"{GUILD}/roles", Operations.create_role),
    ("GET", f"{GUILD}/roles/{{role_id}}", Operations.get_role),
    ("PATCH", f"{GUILD}/roles/{{role_id}}", Operations.edit_role),
    ("DELETE", f"{GUILD}/roles/{{role_id}}", Operations.delete_role),
    ("GET", f"{GUILD}/bans", Operations.get_bans),
    ("GET", f"{GUILD}/bans/{{user_id}}", Operations.get_ban),
    ("PUT", f"{GUILD}/bans/{{user_id}}", Operations.ban),
    ("DELETE", f"{GUILD}/bans/{{user_id}}", Operations.unban),
    ("GET", f"{GUILD}/members", Operations.get_members),
    ("GET", f"{GUILD}/members/search", Operations.search_members),
    ("PATCH", f"{GUILD}/members/@me", Operations.edit_own_member),
    ("GET", MEMBER, Operations.get_member),
    ("PATCH", MEMBER, Operations.edit_member),
    ("DELETE", MEMBER, Operations.kick_member),
    ("PUT", f"{MEMBER}/roles/{{role_id}}", Operations.add_role),
    ("DELETE", f"{MEMBER}/roles/{{role_id}}", Operations.remove_role),
    ("GET", CHANNEL, Operations.get_channel),
    ("PATCH", CHANNEL, Operations.edit_channel),
    ("DELETE", CHANNEL, Operations.delete_channel),
    ("PUT", f"{CHANNEL}/permissions/{{overwrite_id}}", Operations.put_overwrite),
    ("DELETE", f"{CHANNEL}/permissions/{{overwrite_id}}", Operations.delete_overwrite),
    ("GET", f"{CHANNEL}/pins", Operations.get_pins),
    ("PUT", f"{CHANNEL}/pins/{{message_id}}", Operations.pin),
    ("DELETE", f"{CHANNEL}/pins/{{message_id}}", Operations.unpin),
    ("GET", f"{CHANNEL}/messages/pins", Operations.get_pins_page),
    ("PUT", f"{CHANNEL}/messages/pins/{{message_id}}", Operations.pin),
    ("DELETE", f"{CHANNEL}/messages/pins/{{message_id}}", Operations.unpin),
    ("POST", f"{CHANNEL}/typing", Operations.start_typing),
    ("GET", f"{CHANNEL}/messages", Operations.get_messages),
    ("POST", f"{CHANNEL}/messages", Operations.create_message),
    ("POST", f"{CHANNEL}/messages/bulk-delete", Operations.delete_messages),
    ("GET", CHANNEL_MESSAGE, Operations.get_message),
    ("PATCH", CHANNEL_MESSAGE, Operations.edit_message),
    ("DELETE", CHANNEL_MESSAGE, Operations.delete_message),
    ("DELETE", f"{CHANNEL_MESSAGE}/reactions", Operations.remove_reactions),
    ("GET", REACTION, Operations.get_reactions),
    ("DELETE", REACTION, Operations.remove_reactions),
    ("PUT", f"{REACTION}/@me", Operations.add_reaction),
    ("DELETE", f"{REACTION}/@me", Operations.remove_own_reaction),
    ("DELETE", f"{REACTION}/{{user_id}}", Operations.remove_reaction),
    ("POST", "/interactions/{interaction_id}/{interaction_token}/callback", Operations.answer_interaction),
    ("POST", WEBHOOK, Operations.follow_up),
    ("GET", WEBHOOK_ORIGINAL, Operations.get_webhook_message),
    ("PATCH", WEBHOOK_ORIGINAL, Operations.edit_webhook_message),
    ("DELETE", WEBHOOK_ORIGINAL, Operations.delete_webhook_message),
    ("GET", WEBHOOK_MESSAGE, Operations.get_webhook_message),
    ("PATCH", WEBHOOK_MESSAGE, Operations.edit_webhook_message),
    ("DELETE", WEBHOOK_MESSAGE, Operations.delete_webhook_message),
    ("GET", COMMANDS, Operations.get_commands),
    ("PUT", COMMANDS, Operations.put_commands),
    ("POST", COMMANDS, Operations.create_command),
    ("GET", f"{COMMANDS}/{{command_id}}", Operations.get_command),
    ("PATCH", f"{COMMANDS}/{{command_id}}", Operations.edit_command),
    ("DELETE", f"{COMMANDS}/{{command_id}}", Operations.delete_command),
    ("GET", GUILD_COMMANDS, Operations.get_commands),
    ("PUT", GUILD_COMMANDS, Operations.put_commands),
    ("POST", GUILD_COMMANDS, Operations.create_command),
    ("GET", f"{GUILD_COMMANDS}/{{command_id}}", Operations.get_command),
    ("PATCH", f"{GUILD_COMMANDS}/{{command_id}}", Operations.edit_command),
    ("DELETE", f"{GUILD_COMMANDS}/{{command_id}}", Operations.delete_command),
]
NEEDS_NO_TOKEN = ("/interactions/", "/webhooks/")
