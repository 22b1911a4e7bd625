"""A bot on hikari that knows nothing of Everclick: /poll, a button, a form, a deferred answer, a followup."""

from __future__ import annotations

import asyncio
import os

import hikari
import hikari.impl

bot = hikari.GatewayBot(os.environ["DISCORD_TOKEN"], rest_url=os.environ["DISCORD_API"], banner=None)


def view(count: int) -> list[hikari.impl.ContainerComponentBuilder]:
    row = bot.rest.build_message_action_row()
    row.add_interactive_button(hikari.ButtonStyle.PRIMARY, f"add:{count}", label="Add")
    row.add_interactive_button(hikari.ButtonStyle.SECONDARY, "rename", label="Rename")
    container = hikari.impl.ContainerComponentBuilder()
    container.add_text_display(f"## Count {count}")
    container.add_separator()
    container.add_component(row)
    return [container]


@bot.listen()
async def register(event: hikari.StartedEvent) -> None:
    application = await bot.rest.fetch_application()
    question = hikari.CommandOption(
        type=hikari.OptionType.STRING, name="question", description="What to ask.", is_required=True
    )
    await bot.rest.set_application_commands(
        application,
        [
            bot.rest.slash_command_builder("poll", "Post a count.").add_option(question),
            bot.rest.slash_command_builder("slow", "Answer later."),
            bot.rest.slash_command_builder("silent", "Never answer."),
        ],
    )
    print("hikari is ready", flush=True)


@bot.listen()
async def on_message(event: hikari.GuildMessageCreateEvent) -> None:
    if event.is_human:
        print(f"{event.author.username} said {event.content!r}", flush=True)


@bot.listen()
async def on_interaction(event: hikari.InteractionCreateEvent) -> None:
    interaction = event.interaction
    if isinstance(interaction, hikari.CommandInteraction):
        await on_command(interaction)
    elif isinstance(interaction, hikari.ComponentInteraction):
        await on_click(interaction)
    elif isinstance(interaction, hikari.ModalInteraction):
        await interaction.create_initial_response(hikari.ResponseType.MESSAGE_CREATE, "renamed", flags=64)


async def on_command(interaction: hikari.CommandInteraction) -> None:
    if interaction.command_name == "poll":
        await interaction.create_initial_response(hikari.ResponseType.MESSAGE_CREATE, components=view(0))
        original = await interaction.fetch_initial_response()
        followup = await interaction.execute("made it", flags=hikari.MessageFlag.EPHEMERAL)
        print(f"original {original.id}, followup {followup.id}", flush=True)
    elif interaction.command_name == "slow":
        await interaction.create_initial_response(hikari.ResponseType.DEFERRED_MESSAGE_CREATE)
        await asyncio.sleep(0.05)
        await interaction.edit_initial_response("done at last")


async def on_click(interaction: hikari.ComponentInteraction) -> None:
    if interaction.custom_id == "rename":
        row = bot.rest.build_modal_action_row()
        row.add_text_input("title", "Title")
        await interaction.create_modal_response("Rename", "rename", components=[row])
        return
    count = int(interaction.custom_id.removeprefix("add:")) + 1
    await interaction.create_initial_response(hikari.ResponseType.MESSAGE_UPDATE, components=view(count))
    print(f"counted to {count}", flush=True)
    try:
        await interaction.create_initial_response(hikari.ResponseType.MESSAGE_UPDATE, components=view(count))
    except hikari.BadRequestError as refused:
        print(f"second answer refused with {refused.code}", flush=True)


bot.run(check_for_updates=False)
