"""hikari with every kind of option, autocomplete, menus, and what happens in a guild; it prints what it understood."""

from __future__ import annotations

import datetime
import os
from typing import Any

import hikari
import hikari.impl

bot = hikari.GatewayBot(
    os.environ["DISCORD_TOKEN"], rest_url=os.environ["DISCORD_API"], banner=None, intents=hikari.Intents.ALL
)
FRUIT = ("apple", "apricot", "banana")
OPTIONS = {
    "text": hikari.OptionType.STRING,
    "number": hikari.OptionType.INTEGER,
    "amount": hikari.OptionType.FLOAT,
    "flag": hikari.OptionType.BOOLEAN,
    "user": hikari.OptionType.USER,
    "place": hikari.OptionType.CHANNEL,
    "role": hikari.OptionType.ROLE,
    "whoever": hikari.OptionType.MENTIONABLE,
    "file": hikari.OptionType.ATTACHMENT,
}


def say(*words: object) -> None:
    print(*words, flush=True)


def option(name: str, type_: hikari.OptionType, **more: Any) -> hikari.CommandOption:
    return hikari.CommandOption(type=type_, name=name, description="x", is_required=True, **more)


@bot.listen()
async def register(event: hikari.StartedEvent) -> None:
    every = bot.rest.slash_command_builder("all", "Every kind of option.")
    for name, type_ in OPTIONS.items():
        every.add_option(option(name, type_))
    fruit = bot.rest.slash_command_builder("fruit", "Choose one.")
    fruit.add_option(option("name", hikari.OptionType.STRING, autocomplete=True))
    everywhere = bot.rest.slash_command_builder("everywhere", "A user installs it.")
    everywhere.set_integration_types([hikari.ApplicationIntegrationType.USER_INSTALL])
    wave = bot.rest.context_menu_command_builder(hikari.CommandType.USER, "Wave")
    quote = bot.rest.context_menu_command_builder(hikari.CommandType.MESSAGE, "Quote")
    application = await bot.rest.fetch_application()
    await bot.rest.set_application_commands(application, [every, fruit, everywhere, wave, quote])
    say("ready with everything")


@bot.listen()
async def on_interaction(event: hikari.InteractionCreateEvent) -> None:
    interaction = event.interaction
    if isinstance(interaction, hikari.AutocompleteInteraction):
        typed = str(interaction.options[0].value)
        fitting = [each for each in FRUIT if each.startswith(typed)]
        await interaction.create_response([hikari.impl.AutocompleteChoiceBuilder(each, each) for each in fitting])
    elif isinstance(interaction, hikari.CommandInteraction):
        text = await answer_to(interaction)
        await interaction.create_initial_response(hikari.ResponseType.MESSAGE_CREATE, text)


async def answer_to(interaction: hikari.CommandInteraction) -> str:
    found = interaction.resolved
    if interaction.command_name == "Wave":
        assert found is not None
        return f"waves at {next(iter(found.members.values())).username}"
    if interaction.command_name == "Quote":
        assert found is not None
        message = next(iter(found.messages.values()))
        return f"{message.author.username} said {message.content}"
    if interaction.command_name == "everywhere":
        try:
            await bot.rest.create_message(interaction.channel_id, "x")
        except hikari.ForbiddenError as refused:
            return f"{refused.code} {[int(kind) for kind in interaction.authorizing_integration_owners]}"
    if interaction.command_name == "all":
        assert found is not None
        say("options", *[each.value for each in interaction.options or ()][:4])
        [file] = found.attachments.values()
        kinds = (found.users, found.members, found.channels, found.roles)
        say("resolved", *[len(kind) for kind in kinds], file.filename, (await file.read()).decode())
        say("member", interaction.member and bool(interaction.member.permissions & hikari.Permissions.ADMINISTRATOR))
    return "ok"


@bot.listen()
async def on_join(event: hikari.MemberCreateEvent) -> None:
    roles = await bot.rest.fetch_roles(event.guild_id)
    await event.member.add_role(next(role for role in roles if role.name == "Moderator"))
    await event.member.send("Welcome!")


@bot.listen()
async def on_member(event: hikari.MemberUpdateEvent) -> None:
    say("roles", event.member.username, len(event.member.role_ids))


@bot.listen()
async def on_leave(event: hikari.MemberDeleteEvent) -> None:
    say("left", event.user.username)


@bot.listen()
async def on_reaction(event: hikari.GuildReactionAddEvent) -> None:
    say("reaction", event.emoji_name, event.member.username)


@bot.listen()
async def on_bulk(event: hikari.GuildBulkMessageDeleteEvent) -> None:
    say("gone", len(event.message_ids))


@bot.listen()
async def on_channel(event: hikari.GuildChannelDeleteEvent) -> None:
    say("channel gone", event.channel.name)


@bot.listen()
async def on_guild_leave(event: hikari.GuildLeaveEvent) -> None:
    say("removed from", event.old_guild and event.old_guild.name)


@bot.listen()
async def on_outage(event: hikari.GuildUnavailableEvent) -> None:
    say("outage")


@bot.listen()
async def on_message(event: hikari.GuildMessageCreateEvent) -> None:
    if event.content != "moderate":
        return
    rest, guild, author = bot.rest, event.guild_id, event.author_id
    await event.message.add_reaction("👍")
    await rest.pin_message(event.channel_id, event.message)
    channel = await rest.create_guild_text_channel(guild, "ticket")
    await rest.edit_permission_overwrite(channel, author, target_type=1, allow=hikari.Permissions.VIEW_CHANNEL)
    await channel.send("hello")
    until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=5)
    await rest.edit_member(guild, author, nickname="Quiet", communication_disabled_until=until, reason="a & b")
    await rest.ban_user(guild, author, delete_message_seconds=60, reason="test")
    say("moderated", channel.name)


bot.run(check_for_updates=False)
