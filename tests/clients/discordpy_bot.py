"""The same bot on discord.py: /poll, a button that counts, a form, a deferred answer."""

from __future__ import annotations

import asyncio
import os

import discord
import discord.gateway
import discord.http
import yarl
from discord import app_commands

API = os.environ["DISCORD_API"]
discord.http.Route.BASE = API
discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(API).with_scheme("ws").with_path("/gateway")


class View(discord.ui.LayoutView):
    def __init__(self, count: int) -> None:
        super().__init__(timeout=None)
        self.count = count
        add: discord.ui.Button[View] = discord.ui.Button(label="Add", custom_id=f"add:{count}")
        rename: discord.ui.Button[View] = discord.ui.Button(label="Rename", custom_id="rename")
        add.callback, rename.callback = self.on_add, self.on_rename
        self.add_item(
            discord.ui.Container(
                discord.ui.TextDisplay(f"## Count {count}"),
                discord.ui.Separator(),
                discord.ui.ActionRow(add, rename),
            )
        )

    async def on_add(self, interaction: discord.Interaction) -> None:
        await interaction.response.edit_message(view=View(self.count + 1))
        print(f"counted to {self.count + 1}", flush=True)

    async def on_rename(self, interaction: discord.Interaction) -> None:
        await interaction.response.send_modal(Rename())


class Rename(discord.ui.Modal, title="Rename"):
    name = discord.ui.Label["Rename"](text="Title", component=discord.ui.TextInput(custom_id="title"))

    async def on_submit(self, interaction: discord.Interaction) -> None:
        await interaction.response.send_message("renamed", ephemeral=True)


client = discord.Client(intents=discord.Intents.default())
tree = app_commands.CommandTree(client)


@tree.command(name="poll", description="Post a count.")
async def poll(interaction: discord.Interaction, question: str) -> None:
    await interaction.response.send_message(view=View(0))
    original = await interaction.original_response()
    followup = await interaction.followup.send("made it", ephemeral=True, wait=True)
    print(f"original {original.id}, followup {followup.id}", flush=True)


@tree.command(name="slow", description="Answer later.")
async def slow(interaction: discord.Interaction) -> None:
    await interaction.response.defer()
    await asyncio.sleep(0.05)
    await interaction.edit_original_response(content="done at last")


@client.event
async def on_ready() -> None:
    await tree.sync()
    print("discord.py is ready", flush=True)


client.run(os.environ["DISCORD_TOKEN"])
