"""discord.py with everything a command, a form and a guild have; it prints what it understood."""

from __future__ import annotations

import datetime
import io
import os
from typing import Any

import discord
import discord.gateway
import discord.http
import yarl
from discord import app_commands

API = os.environ["DISCORD_API"]
discord.http.Route.BASE = API
discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(API).with_scheme("ws").with_path("/gateway")

client = discord.Client(intents=discord.Intents.all())
tree = app_commands.CommandTree(client)
FRUIT = ("apple", "apricot", "banana")


def say(*words: object) -> None:
    print(*words, flush=True)


@tree.command(name="all", description="Every kind of option.")
@app_commands.choices(size=[app_commands.Choice(name="Small", value="s")])
async def use_all(  # noqa: PLR0917 (a command's options are its parameters)
    interaction: discord.Interaction,
    text: app_commands.Range[str, 2, 5],
    number: app_commands.Range[int, 1, 5],
    amount: float,
    flag: bool,
    user: discord.User,
    member: discord.Member,
    place: discord.TextChannel,
    role: discord.Role,
    whoever: discord.Role | discord.Member,
    file: discord.Attachment,
    size: app_commands.Choice[str] | None = None,
) -> None:
    assert isinstance(interaction.user, discord.Member)
    say("options", text, number, amount, flag, user.name, member.name, place.name, role.name, whoever.name)
    say("file", file.filename, (await file.read()).decode(), size and size.value)
    may = interaction.permissions
    say("member", may.administrator, interaction.locale, member.resolved_permissions.kick_members)  # pyright: ignore
    await interaction.response.send_message("ok", file=discord.File(io.BytesIO(b"answer"), "answer.txt"))


@tree.command(name="fruit", description="Choose one.")
async def fruit(interaction: discord.Interaction, name: str) -> None:
    await interaction.response.send_message(name, ephemeral=True)


@fruit.autocomplete("name")
async def offer(interaction: discord.Interaction, typed: str) -> list[app_commands.Choice[str]]:
    return [app_commands.Choice(name=each.title(), value=each) for each in FRUIT if each.startswith(typed)]


@tree.context_menu(name="Wave")
async def wave(interaction: discord.Interaction, member: discord.Member) -> None:
    await interaction.response.send_message(f"waves at {member.name}")


@tree.context_menu(name="Quote")
async def quote(interaction: discord.Interaction, message: discord.Message) -> None:
    await interaction.response.send_message(f"{message.author.name} said {message.content}")


class Everything(discord.ui.Modal, title="Everything"):
    words = discord.ui.TextDisplay[Any]("Fill this in.")
    text = discord.ui.Label["Everything"](text="Text", component=discord.ui.TextInput(required=False))
    who = discord.ui.Label["Everything"](text="Who", component=discord.ui.UserSelect())
    files = discord.ui.Label["Everything"](text="Files", component=discord.ui.FileUpload(max_values=2))
    boxes = discord.ui.Label["Everything"](
        text="Boxes",
        component=discord.ui.CheckboxGroup(
            options=[discord.CheckboxGroupOption(label=each, value=each) for each in FRUIT]
        ),
    )

    async def on_submit(self, interaction: discord.Interaction) -> None:
        parts: Any = {name: getattr(self, name).component for name in ("text", "who", "files", "boxes")}
        contents = [(await file.read()).decode() for file in parts["files"].values]
        say("form", parts["text"].value, [who.name for who in parts["who"].values], contents, parts["boxes"].values)
        await interaction.response.send_message("thanks", ephemeral=True)


class Sure(discord.ui.Modal, title="Sure"):
    one = discord.ui.Label["Sure"](
        text="One",
        component=discord.ui.RadioGroup(options=[discord.RadioGroupOption(label=each, value=each) for each in FRUIT]),
    )
    sure = discord.ui.Label["Sure"](text="Sure", component=discord.ui.Checkbox())

    async def on_submit(self, interaction: discord.Interaction) -> None:
        one: Any = self.one.component
        sure: Any = self.sure.component
        await interaction.response.send_message(f"{one.value} {sure.value}")


@tree.command(name="form", description="Open a form.")
async def form(interaction: discord.Interaction, which: str) -> None:
    await interaction.response.send_modal(Everything() if which == "everything" else Sure())


@client.event
async def on_member_join(member: discord.Member) -> None:
    role = discord.utils.get(member.guild.roles, name="Moderator")
    assert role is not None
    await member.add_roles(role)
    await member.send(f"Welcome to {member.guild.name}!")


@client.event
async def on_member_update(before: discord.Member, after: discord.Member) -> None:
    say("roles", after.name, [role.name for role in after.roles])


@client.event
async def on_raw_reaction_add(payload: discord.RawReactionActionEvent) -> None:
    say("reaction", payload.emoji.name, payload.member and payload.member.name)


@client.event
async def on_raw_bulk_message_delete(payload: discord.RawBulkMessageDeleteEvent) -> None:
    say("gone", len(payload.message_ids))


@client.event
async def on_guild_channel_delete(channel: discord.abc.GuildChannel) -> None:
    say("channel gone", channel.name)


@client.event
async def on_guild_remove(guild: discord.Guild) -> None:
    say("removed from", guild.name)


@client.event
async def on_message(message: discord.Message) -> None:
    if message.content == "moderate":
        guild, author = message.guild, message.author
        assert guild is not None
        assert isinstance(author, discord.Member)
        await message.add_reaction("👍")
        await message.pin()
        channel = await guild.create_text_channel(
            "ticket", overwrites={author: discord.PermissionOverwrite(view_channel=True)}
        )
        await channel.send("hello")
        await author.timeout(datetime.timedelta(minutes=5), reason="test")
        await author.kick(reason="test")
        say("moderated", channel.name)


@client.event
async def on_ready() -> None:
    await tree.sync()
    say("ready with everything")


client.run(os.environ["DISCORD_TOKEN"])
