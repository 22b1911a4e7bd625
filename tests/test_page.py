"""The playground's page in a real browser.

Most tests give the page a socket of their own (`Scripted`), so that each says exactly what the server sends and sees
what the page asks for. The stories at the end run the page, the playground and a bot together.
"""

import json
import re
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import (
    Browser,
    BrowserContext,
    Locator,
    Page,
    Route,
    WebSocketRoute,
    async_playwright,
    expect,
)

from playground import Discord
from playground.process import BotProcess
from tests.clients.raw import RawBot, until

Json = dict[str, Any]

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "playground" / "page"
DEBIAN_CHROMIUM = Path("/usr/bin/chromium")
CHROMIUM = shutil.which("chromium") or (str(DEBIAN_CHROMIUM) if DEBIAN_CHROMIUM.exists() else None)
QUIET = [
    *("--no-sandbox", "--disable-gpu", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
PATIENCE_MS = 20_000

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (Debian: apt-get install chromium)."),
]

expect.set_options(timeout=PATIENCE_MS)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium
        await chromium.close()


# ---- A playground of words: what the server says is written in the test

ALICE, BOB, CAROL = ({"id": f"40000000000000000{n}", "username": name, "name": name} for n, name in
                     enumerate(("alice", "bob", "carol"), start=1))  # fmt: skip
GENERAL, OTHER = {"id": "300000000000000001", "name": "general"}, {"id": "300000000000000002", "name": "bot-testing"}
BOT = {"id": "100000000000000001", "username": "everclick", "global_name": "Everclick", "bot": True}
SVG = "xmlns='http://www.w3.org/2000/svg' viewBox='0 0 9 9'"
RED_DOT = f"data:image/svg+xml,%3Csvg {SVG}%3E%3Ccircle r='9' fill='red'/%3E%3C/svg%3E"
EPHEMERAL, THINKING = 1 << 6, 1 << 7


def text(content: str) -> Json:
    return {"type": 10, "content": content}


def row(*components: Json) -> Json:
    return {"type": 1, "components": list(components)}


def container(*components: Json, **more: Any) -> Json:
    return {"type": 17, "components": list(components), **more}


def button(label: str, custom_id: str | None = None, style: int = 1, **more: Any) -> Json:
    return {"type": 2, "style": style, "label": label, "custom_id": custom_id or label.lower(), **more}


def select(placeholder: str, *labels: str, most: int = 1, least: int = 1) -> Json:
    options = [{"label": label, "value": label.lower(), "description": f"About {label}"} for label in labels]
    return {"type": 3, "custom_id": placeholder.lower(), "placeholder": placeholder, "options": options,
            "min_values": least, "max_values": most}  # fmt: skip


def labelled(label: str, type_: int, custom_id: str, **component: Any) -> Json:
    """A field of a form."""
    return {"type": 18, "label": label, "component": {"type": type_, "custom_id": custom_id, **component}}


def person(user: Json) -> Json:
    return {"id": user["id"], "username": user["username"], "global_name": user["name"], "bot": False}


def message(number: int, *components: Json, author: Json = BOT, **more: Any) -> Json:
    return {
        "id": str(500000000000000000 + number), "channel_id": GENERAL["id"], "author": author, "flags": 0,
        "content": "", "components": list(components), "embeds": [], "attachments": [],
        "timestamp": f"2026-09-03T10:{number % 60:02}:00.000000+00:00", "edited_timestamp": None,
        "visible_to": None, "used": None, **more,
    }  # fmt: skip


def poll(number: int, yes: int = 0, *, yes_id: str = "yes") -> Json:
    return message(number, container(text("## Tea?"), row(button(f"Yes: {yes}", yes_id), button("No: 0", "no"))))


def interaction(number: int, state: str, *, on: Json | None = None, by: Json = ALICE, **more: Any) -> Json:
    made = {"id": str(600000000000000000 + number), "kind": "component" if on else "command", "user_id": by["id"],
            "channel_id": GENERAL["id"], "message_id": on and on["id"], "custom_id": None, "name": None, "state": state,
            "text": None}  # fmt: skip
    return {"type": "interaction", "interaction": {**made, **more}}


POLL_COMMAND = {
    "name": "poll", "description": "Post a poll.", "type": 1,
    "options": [
        {"type": 3, "name": "question", "description": "What to ask", "required": True},
        {"type": 4, "name": "minutes", "description": "How long", "min_value": 1, "max_value": 60},
        {"type": 5, "name": "secret", "description": "Hide who voted"},
        {"type": 3, "name": "colour", "description": "Of the bar", "choices": [{"name": "Red", "value": "#f00"}]},
        {"type": 6, "name": "host", "description": "Who asks"},
        {"type": 7, "name": "place", "description": "Where"},
        {"type": 10, "name": "share", "description": "Of votes needed"},
    ],
}  # fmt: skip
PROFILE_COMMAND = {
    "name": "profile", "description": "Profiles.", "type": 1,
    "options": [
        {"type": 1, "name": "show", "description": "Show one."},
        {"type": 1, "name": "edit", "description": "Edit yours."},
    ],
}  # fmt: skip
PING_COMMAND = {"name": "ping", "description": "Answer with pong.", "type": 1}
MENU_COMMAND = {"name": "Report", "description": "", "type": 3}
COMMANDS = [PING_COMMAND, POLL_COMMAND, PROFILE_COMMAND, MENU_COMMAND]


def by_alice(do: str, **more: Any) -> Json:
    """What the page asks for in alice's name."""
    return {"do": do, "as": ALICE["id"], **more}


def in_general(do: str, **more: Any) -> Json:
    return by_alice(do, channel_id=GENERAL["id"], **more)


def chosen(shown: Json, custom_id: str, *values: str) -> Json:
    return by_alice("select", message_id=shown["id"], custom_id=custom_id, values=list(values))


def state(*messages: Json, **more: Any) -> Json:
    return {
        "type": "state", "users": [ALICE, BOB, CAROL], "guild": {"id": "200000000000000001", "name": "Tea room"},
        "channels": [GENERAL, OTHER], "commands": COMMANDS, "messages": list(messages), "interactions": [],
        "bot": {"name": "bot.py", "status": "running", "pid": 4121, "exit_code": None}, "log": ["ready"], **more,
    }  # fmt: skip


class Scripted:
    """The page with a socket that says what a test tells it to, and keeps what the page asked for."""

    def __init__(self, page: Page, first: Json) -> None:
        self.page = page
        self.first = first
        self.asked: list[Json] = []
        self.wondered: Json = {}  # the newest question about which commands the person may use
        self.requested: list[str] = []
        self.greetings = 0
        self.is_refusing = self.is_silent = False
        self._socket: WebSocketRoute | None = None

    async def open(self) -> None:
        await self.page.route("**/*", self._serve)
        await self.page.route_web_socket("**/page/socket", self._connect)
        await self.page.goto("http://127.0.0.1:9/")
        if not self.is_refusing:
            await expect(self.page.locator("#connection")).to_be_hidden()

    async def _serve(self, route: Route) -> None:
        self.requested.append(route.request.url)
        path = route.request.url.split("/", 3)[3].removeprefix("page/") or "index.html"
        file = PAGE / path
        await (route.fulfill(path=file) if file.is_file() else route.fulfill(status=404))

    def _connect(self, socket: WebSocketRoute) -> None:
        self._socket = socket
        socket.on_message(self._hear)

    async def _hear(self, packet: str | bytes) -> None:
        asked = json.loads(packet)
        if asked["do"] == "usable":
            self.wondered = asked
            return
        if asked["do"] != "hello":
            self.asked.append(asked)
            return
        self.greetings += 1
        if self.is_refusing:
            await self.hang_up(code=4001)
        elif not self.is_silent:
            self.say(self.first)

    @property
    def talk(self) -> Locator:
        """The messages, as against what is read out of them."""
        return self.page.get_by_label("Messages", exact=True)

    async def act_as(self, name: str) -> None:
        await self.page.locator(".person", has_text=name).click()

    def say(self, *packets: Json) -> None:
        assert self._socket is not None
        for packet in packets:
            self._socket.send(json.dumps(packet))

    def show(self, *messages: Json) -> None:
        self.say(*({"type": "message", "message": one} for one in messages))

    async def hang_up(self, code: int = 1001) -> None:
        assert self._socket is not None
        await self._socket.close(code=code)

    async def heard(self, wanted: Json) -> None:
        """Wait until the page has asked for this."""
        await self.until(lambda: wanted in self.asked, f"the page asks for {wanted}")

    async def until(self, is_so: Callable[[], bool], what: str) -> None:
        for _ in range(PATIENCE_MS // 20):
            if is_so():
                return
            await self.page.wait_for_timeout(20)
        raise AssertionError(f"Waited in vain until {what}. It asked for {self.asked}.")

    async def settled(self) -> None:
        """Wait until the page has drawn what it was told so far."""
        await self.page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")


class Pages:
    """Opens pages, each in a browser context of its own, and fails the test on any script error in one of them."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self.errors: list[str] = []

    async def scripted(
        self, *messages: Json, first: Json | None = None, is_refusing: bool = False, **options: Any
    ) -> Scripted:
        scripted = Scripted(await self.blank(**options), first or state(*messages))
        scripted.is_refusing = is_refusing
        await scripted.open()
        return scripted

    async def blank(self, **options: Any) -> Page:
        context = await self._browser.new_context(
            **{"viewport": {"width": 1280, "height": 800}, "locale": "en-US", **options}
        )
        self._contexts.append(context)
        page = await context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        return page

    async def close(self) -> None:
        for context in self._contexts:
            await context.close()
        assert self.errors == []


@pytest_asyncio.fixture(loop_scope="module")
async def pages(browser: Browser) -> AsyncIterator[Pages]:
    opened = Pages(browser)
    yield opened
    await opened.close()


async def focused(page: Page) -> str:
    """What the keyboard is on, in words."""
    words: str = await page.evaluate(
        """() => {
          const one = document.activeElement;
          if (one === document.body) return "";
          return one.getAttribute("aria-label") || (one.labels?.[0] ?? one).textContent || one.id || one.tagName;
        }"""
    )
    return words


async def tab_to(page: Page, wanted: str, key: str = "Tab") -> None:
    """Press Tab until the keyboard is on what is called `wanted`, as a person without a mouse does."""
    for _ in range(80):
        if wanted.lower() in (await focused(page)).lower():
            return
        await page.keyboard.press(key)
    raise AssertionError(f"{wanted!r} cannot be reached with {key}.")


# ---- What a message shows


async def test_a_message_says_who_wrote_it_and_who_used_which_command(pages: Pages) -> None:
    used = {"user_id": ALICE["id"], "name": "poll"}
    script = await pages.scripted({**poll(1), "used": used, "edited_timestamp": "2026-09-03T10:02:00+00:00"})
    item = script.page.locator(".message")
    await expect(item.locator(".used")).to_have_text("Aalice used /poll")
    await expect(item.locator(".head")).to_contain_text("Everclick APP")
    await expect(item).to_contain_text("(edited)")
    script.show({**poll(1), "flags": THINKING, "components": []})
    await expect(item).to_contain_text("Everclick is thinking…")


async def test_every_component_of_a_message_is_shown(pages: Pages) -> None:
    everything = container(
        {
            "type": 9,
            "components": [text("Bob's profile")],
            "accessory": {"type": 11, "media": {"url": RED_DOT}, "description": "Bob"},
        },
        {"type": 9, "components": [text("Reminders")], "accessory": button("Change")},
        {"type": 12, "items": [{"media": {"url": RED_DOT}, "description": "A dot"}]},
        {"type": 13, "file": {"url": "http://127.0.0.1:9/files/notes.txt"}, "name": "notes.txt"},
        {"type": 14, "divider": True, "spacing": 2},
        {"type": 14, "divider": False, "spacing": 1},
        row(select("Colour", "Red", "Blue")),
        row(
            {"type": 5, "custom_id": "who", "placeholder": "Who"},
            {"type": 8, "custom_id": "where", "placeholder": "Where"},
        ),
        row(
            button("Off", disabled=True),
            button("Docs", style=5, url="https://example.com/x"),
            button("🔔", "bell", style=2),
        ),
        {"type": 99},
        accent_color=0xD08A2A,
    )
    script = await pages.scripted(message(1, everything))
    box = script.page.locator(".container")
    for name in ("Bob", "A dot"):
        await expect(box.get_by_role("img", name=name)).to_be_visible()
    for name in ("Change", "Colour", "Who", "Where", "🔔"):
        await expect(box.get_by_role("button", name=name)).to_be_enabled()
    await expect(box.get_by_role("button", name="Off")).to_be_disabled()
    await expect(box.get_by_role("link", name="Docs")).to_have_attribute("href", "https://example.com/x")
    await expect(box.get_by_role("link", name="notes.txt")).to_be_visible()
    await expect(box.locator("hr")).to_have_count(1)
    await expect(box).to_contain_text("A component of type 99 is not shown here.")
    bar = await box.evaluate("box => getComputedStyle(box, '::before').backgroundColor")
    assert bar == "rgb(208, 138, 42)"


async def test_legacy_content_and_embeds_are_shown(pages: Pages) -> None:
    embed = {"title": "A title", "url": "https://example.com/t", "description": "Some **words**", "color": 0x2E9E5B,
             "fields": [{"name": "Left", "value": "1", "inline": True}], "footer": {"text": "The foot"}}  # fmt: skip
    script = await pages.scripted(message(1, row(button("Go")), content="Hello", embeds=[embed]))
    item = script.page.locator(".message")
    for words in ("Hello", "Some words", "Left", "The foot"):
        await expect(item).to_contain_text(words)
    await expect(item.get_by_role("link", name="A title")).to_have_attribute("href", "https://example.com/t")
    await expect(item.get_by_role("button", name="Go")).to_be_visible()


async def test_a_message_that_breaks_the_protocol_takes_nothing_else_down(pages: Pages) -> None:
    script = await pages.scripted(
        message(1, {"type": 9}), message(2, content="still here", used={"user_id": "1", "name": "x"})
    )
    await expect(script.page.locator(".message").first).to_contain_text("This message could not be shown")
    await expect(script.page.locator(".message").last).to_contain_text("still here")


async def test_a_spoiler_is_out_of_reach_until_it_is_shown_and_stays_shown(pages: Pages) -> None:
    secret = message(1, container(text("The butler"), row(button("Accuse")), spoiler=True))
    script = await pages.scripted(secret)
    accuse = script.page.get_by_role("button", name="Accuse")
    assert await accuse.evaluate("button => { button.focus(); return document.activeElement === button }") is False
    await script.page.get_by_role("button", name="Show spoiler").click()
    await accuse.click()
    await script.heard(by_alice("click", message_id=secret["id"], custom_id="accuse"))
    script.show({**secret, "edited_timestamp": "2026-09-03T10:02:00+00:00"})
    await expect(script.page.locator(".message")).to_contain_text("(edited)")
    await expect(script.page.get_by_role("button", name="Show spoiler")).to_have_count(0)


MARKDOWN = [
    ("# One\n## Two\n### Three", "<h3>One</h3><h4>Two</h4><h5>Three</h5>"),
    ("**b** *i* _i_ __u__ ~~s~~", "<p><strong>b</strong> <em>i</em> <em>i</em> <u>u</u> <s>s</s></p>"),
    ("***both*** and snake_case_name", "<p><strong><em>both</em></strong> and snake_case_name</p>"),
    ("in_words_ and _out_", "<p>in_words_ and <em>out</em></p>"),
    ("a `co*d*e` b", "<p>a <code>co*d*e</code> b</p>"),
    ("```py\nx < 1\n```\nafter", "<pre><code>x < 1</code></pre><p>after</p>"),
    ("```never closed", "<p>```never closed</p>"),
    ("> one\n> two\nthree", "<blockquote><p>one\ntwo</p></blockquote><p>three</p>"),
    ("- one\n- two", "<ul><li>one</li><li>two</li></ul>"),
    ("3. three\n4. four", "<ol><li>three</li><li>four</li></ol>"),
    ("-# small", "<p>small</p>"),
    (r"\*not bold\*", "<p>*not bold*</p>"),
    ("[words](https://example.com/)", "<p><a>words</a></p>"),
    ("see https://example.com/a_b_c.", "<p>see <a>https://example.com/a_b_c</a>.</p>"),
    ("[bad](javascript:alert(1))", "<p>[bad](javascript:alert(1))</p>"),
    ("<@400000000000000002> in <#300000000000000001>", "<p><span>@bob</span> in <span>#general</span></p>"),
    ("2 * 3 * 4", "<p>2 * 3 * 4</p>"),
]
OUTLINE = """(node) => {
  const outline = (one) => one.nodeType === Node.TEXT_NODE ? one.data
    : `<${one.tagName.toLowerCase()}>${[...one.childNodes].map(outline).join("")}</${one.tagName.toLowerCase()}>`;
  return [...node.childNodes].map(outline).join("");
}"""


async def test_markdown_is_shown_as_chats_show_it(pages: Pages) -> None:
    script = await pages.scripted(*(message(n, content=source) for n, (source, _) in enumerate(MARKDOWN)))
    shown = script.page.locator(".message .text")
    await expect(shown).to_have_count(len(MARKDOWN))
    for number, (source, wanted) in enumerate(MARKDOWN):
        assert await shown.nth(number).evaluate(OUTLINE) == wanted, source


async def test_the_worst_texts_do_not_hold_up_the_page(pages: Pages) -> None:
    worst = [
        "*" * 4000,
        "_" * 4000,
        "[" * 4000,
        "> " * 2000,
        "||" * 2000,
        "**a" * 1300,
        "`" * 3999,
        "~~" * 2000,
        "\n" * 3000 + "x",
    ]
    script = await pages.scripted(*(message(n, content=one) for n, one in enumerate(worst)))
    await expect(script.page.locator(".message .text")).to_have_count(len(worst))


# ---- Hostile texts

IMAGE = "<img src=x onerror=\"window.wasHacked = 'image'\">"
SCRIPT_LINK = "javascript:window.wasHacked='link'"


HOSTILE_MARKDOWN = (
    f"# {IMAGE}\n[click]({SCRIPT_LINK}) <{SCRIPT_LINK}> `{IMAGE}` ||{IMAGE}||\n```{IMAGE}```\n<@400000000000000009>"
)
MALLORY = {"id": "400000000000000009", "username": IMAGE, "name": IMAGE}


def hostile_messages() -> list[Json]:
    embed = {
        "title": IMAGE, "url": SCRIPT_LINK, "description": f"[x]({SCRIPT_LINK}) {IMAGE}", "footer": {"text": IMAGE},
        "author": {"name": IMAGE, "url": SCRIPT_LINK}, "fields": [{"name": IMAGE, "value": IMAGE}],
        "image": {"url": SCRIPT_LINK},
    }  # fmt: skip
    options = [{"label": IMAGE, "value": IMAGE, "description": IMAGE, "emoji": {"name": IMAGE, "id": None}}]
    far, near = {"media": {"url": "//evil.example/x"}}, {"media": {"url": SCRIPT_LINK}, "description": IMAGE}
    components = container(
        text(HOSTILE_MARKDOWN),
        row(
            button("go", style=5, url=SCRIPT_LINK),
            button(IMAGE, f'"]{IMAGE}'),
            button("x", "data", style=5, url="data:text/html,<script>"),
        ),
        row({"type": 3, "custom_id": IMAGE, "placeholder": IMAGE, "options": options}),
        {"type": 12, "items": [far, near]},
        {"type": 13, "file": {"url": SCRIPT_LINK}, "name": IMAGE},
    )
    return [
        message(1, components, author={**BOT, "global_name": IMAGE}, used={"user_id": MALLORY["id"], "name": IMAGE}),
        message(2, author=person(MALLORY), content=f"{IMAGE} {SCRIPT_LINK}", embeds=[embed],
                attachments=[{"url": SCRIPT_LINK, "filename": IMAGE}],
                reactions=[{"emoji": {"id": None, "name": IMAGE}, "count": 1}], reactors={IMAGE: [MALLORY["id"]]}),
    ]  # fmt: skip


def hostile_state() -> Json:
    """A state in which every text a bot or a person can choose is an attack."""
    option = {"type": 3, "name": IMAGE, "description": IMAGE, "choices": [{"name": IMAGE, "value": "v"}]}
    return state(
        *hostile_messages(),
        users=[MALLORY, ALICE],
        guild={"id": "1", "name": IMAGE},
        channels=[{**GENERAL, "name": IMAGE}],
        roles=[{"id": "200000000000000001", "name": IMAGE}],
        bot_user={"id": BOT["id"], "username": IMAGE, "name": IMAGE},
        commands=[
            {"name": "evil", "description": IMAGE, "options": [option]},
            {"name": IMAGE, "description": "", "type": 3},
        ],
        bot={"name": IMAGE, "status": "running", "pid": 1, "exit_code": None},
        log=[IMAGE],
    )


def hostile_form() -> Json:
    options = [{"label": IMAGE, "value": IMAGE, "description": IMAGE}]
    field = labelled(IMAGE, 21, IMAGE, options=options) | {"description": IMAGE}
    form = {"custom_id": IMAGE, "title": IMAGE, "components": [text(IMAGE), field]}
    return {"type": "form", "interaction_id": "1", "user_id": MALLORY["id"], "form": form}


async def test_hostile_texts_are_shown_as_text_and_run_nothing(pages: Pages) -> None:
    # The page's own policy would stop most of this too; it is off here, so that the page itself is what is tested.
    script = await pages.scripted(first=hostile_state(), bypass_csp=True)
    page = script.page
    await expect(page.locator(".message")).to_have_count(2)
    script.say(
        {"type": "error", "text": IMAGE},
        interaction(1, "failed", by=MALLORY, text=IMAGE, name=IMAGE),
    )
    for choice in await page.locator(".choice").all():
        await choice.click()
        await expect(page.get_by_role("option")).to_contain_text([IMAGE])
        await page.keyboard.press("Escape")
    await page.locator("#write").fill("/evil ")
    await page.locator(".add-option").click()
    await expect(page.locator(".command-fields .menu [role=option]")).to_contain_text([IMAGE])
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Show spoiler").click()
    await page.locator(".container .button:enabled").click()
    await page.locator(".message .embed").click(button="right", position={"x": 3, "y": 3})
    await expect(page.get_by_role("menu")).to_contain_text(IMAGE)
    await page.keyboard.press("Escape")
    script.say(hostile_form())
    await expect(page.get_by_role("dialog")).to_contain_text(IMAGE)
    await script.settled()
    assert await page.evaluate("window.wasHacked") is None
    assert await page.locator("img[src=x]").count() == 0
    links: list[str] = await page.locator("[href], [src]").evaluate_all(
        "(all) => all.map((one) => one.getAttribute('href') || one.getAttribute('src'))"
    )
    assert [link for link in links if link.startswith(("javascript:", "data:", "//"))] == []


async def test_nothing_is_asked_of_another_host(pages: Pages) -> None:
    far = "https://example.com/far.png"
    gallery = {"type": 12, "items": [{"media": {"url": far}, "description": "Far away"}]}
    shown = message(1, gallery, content=f"![x]({far})", embeds=[{"title": "t", "image": {"url": far}}])
    script = await pages.scripted(shown, bypass_csp=True)
    await expect(script.page.get_by_role("link", name="Far away")).to_have_attribute("href", far)
    await script.settled()
    assert [url for url in script.requested if not url.startswith("http://127.0.0.1:9/")] == []


async def test_the_policy_of_the_page_forbids_scripts_from_elsewhere(pages: Pages) -> None:
    script = await pages.scripted()
    await script.page.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=window.wasHacked=1>')"
    )
    await script.page.locator("img[src=x]").wait_for(state="attached")
    await script.settled()
    assert await script.page.evaluate("window.wasHacked") is None


# ---- Where the reader is


async def test_the_keyboard_stays_on_the_button_when_its_message_is_drawn_anew(pages: Pages) -> None:
    script = await pages.scripted(poll(1))
    await script.page.get_by_role("button", name="Yes: 0").focus()
    script.show(poll(1, yes=1))
    await expect(script.page.get_by_role("button", name="Yes: 1")).to_be_focused()


async def test_the_keyboard_follows_its_custom_id_to_another_place(pages: Pages) -> None:
    script = await pages.scripted(message(1, row(button("Yes"), button("No"))))
    await script.page.get_by_role("button", name="Yes").focus()
    script.show(message(1, row(button("No"), button("Yes"), button("Maybe"))))
    await expect(script.page.get_by_role("button", name="Maybe")).to_be_visible()
    await expect(script.page.get_by_role("button", name="Yes")).to_be_focused()


async def test_the_keyboard_stays_in_its_place_when_the_custom_id_carries_state(pages: Pages) -> None:
    script = await pages.scripted(poll(1, yes_id="yes:0"))
    await script.page.get_by_role("button", name="Yes: 0").focus()
    script.show(poll(1, yes=1, yes_id="yes:1"))
    await expect(script.page.get_by_role("button", name="Yes: 1")).to_be_focused()


async def test_the_keyboard_stays_on_the_message_when_the_button_is_gone_or_disabled(pages: Pages) -> None:
    script = await pages.scripted(poll(1), poll(2))
    first = script.page.locator(".message").first
    await first.get_by_role("button", name="Yes").focus()
    script.show(message(1, row(button("Yes: 0", "yes", disabled=True))))
    await expect(first).to_be_focused()
    await script.page.locator(".message").last.get_by_role("button", name="Yes").focus()
    script.show(message(2, text("Closed.")))
    await expect(script.page.locator(".message").last).to_be_focused()


async def test_the_keyboard_stays_near_when_a_message_is_dismissed(pages: Pages) -> None:
    private = message(2, content="psst", flags=EPHEMERAL, visible_to=ALICE["id"])
    script = await pages.scripted(poll(1), private)
    await script.page.get_by_role("button", name="Dismiss message").focus()
    await script.page.keyboard.press("Enter")
    await script.heard(by_alice("dismiss", message_id=private["id"]))
    script.say({"type": "message_gone", "channel_id": GENERAL["id"], "id": private["id"]})
    await expect(script.talk.get_by_text("psst")).to_have_count(0)
    await expect(script.talk).to_be_focused()


def long_talk(count: int = 40) -> list[Json]:
    return [message(n, text(f"Message {n}"), row(button(f"Button {n}"))) for n in range(count)]


async def place_of(locator: Locator) -> float:
    box = await locator.bounding_box()
    assert box is not None
    return round(box["y"])


async def test_what_is_being_read_stays_in_place_when_messages_above_it_grow(pages: Pages) -> None:
    script = await pages.scripted(*long_talk())
    reading = script.page.get_by_role("button", name="Button 20")
    await reading.scroll_into_view_if_needed()
    await script.settled()
    before = await place_of(reading)
    script.show(*(message(n, text("\n".join(["A longer text"] * 9))) for n in range(5)))
    script.show(message(41, text("Something new at the end")))
    await expect(script.page.locator(".message").first).to_contain_text("A longer text")
    await script.settled()
    assert await place_of(reading) == before
    await expect(script.page.get_by_role("button", name="New messages")).to_be_visible()


async def test_the_end_stays_in_view_only_for_who_was_there(pages: Pages) -> None:
    script = await pages.scripted(*long_talk())
    scroller = script.talk
    newest = script.page.locator(".message").last
    script.show(message(50, text("First news")))
    await expect(newest).to_contain_text("First news")
    await expect(newest).to_be_in_viewport(ratio=1)
    await scroller.evaluate("box => box.scrollTo(0, 0)")
    await script.settled()
    script.show(message(51, text("Second news")))
    await expect(newest).to_contain_text("Second news")
    await script.settled()
    assert await scroller.evaluate("box => box.scrollTop") == 0
    await script.page.get_by_role("button", name="New messages").click()
    await expect(newest).to_be_in_viewport(ratio=1)


async def test_what_one_writes_brings_the_end_into_view(pages: Pages) -> None:
    script = await pages.scripted(*long_talk())
    await script.talk.evaluate("box => box.scrollTo(0, 0)")
    await script.page.locator("#write").fill("hello")
    await script.page.keyboard.press("Enter")
    await script.heard(in_general("say", content="hello"))
    script.show(message(60, author=person(ALICE), content="hello"))
    await expect(script.page.locator(".message").last).to_contain_text("hello")
    await expect(script.page.locator(".message").last).to_be_in_viewport(ratio=1)


async def test_a_very_long_talk_begins_with_its_newest_part(pages: Pages) -> None:
    script = await pages.scripted(*(message(n, content=f"Message {n}") for n in range(450)))
    await expect(script.page.locator(".message").last).to_contain_text("Message 449")
    await expect(script.page.get_by_text("Message 10", exact=True)).to_have_count(0)
    for _ in range(2):
        await script.page.get_by_role("button", name="Show earlier messages").click()
    await expect(script.page.get_by_text("Message 10", exact=True)).to_have_count(1)
    await expect(script.page.get_by_role("button", name="Show earlier messages")).to_be_hidden()


async def test_another_channel_shows_its_own_messages_and_says_when_it_has_news(pages: Pages) -> None:
    script = await pages.scripted(poll(1))
    script.show(message(2, content="over here", channel_id=OTHER["id"]))
    other = script.page.get_by_role("button", name="bot-testing (new messages)")
    await other.click()
    await expect(script.page.locator(".message .text")).to_have_text(["over here"])
    await script.page.locator("#write").fill("hi")
    await script.page.keyboard.press("Enter")
    await script.heard(by_alice("say", channel_id=OTHER["id"], content="hi"))


# ---- Clicks and what becomes of them


async def test_a_click_is_sent_once_and_its_button_is_busy_until_the_answer(pages: Pages) -> None:
    shown = poll(1)
    script = await pages.scripted(shown)
    yes = script.page.get_by_role("button", name="Yes")
    await yes.dblclick()
    await expect(yes).to_have_attribute("aria-busy", "true")
    script.say(interaction(1, "pending", on=shown, custom_id="yes"))
    await script.settled()
    await expect(yes).to_have_attribute("aria-busy", "true")
    script.show(poll(1, yes=1))
    script.say(interaction(1, "answered", on=shown, custom_id="yes"))
    await expect(yes).not_to_have_attribute("aria-busy", "true")
    await expect(yes).to_have_text("Yes: 1")
    assert script.asked == [by_alice("click", message_id=shown["id"], custom_id="yes")]


async def test_a_failed_click_says_so_to_its_person_until_the_next_click(pages: Pages) -> None:
    shown = poll(1)
    script = await pages.scripted(shown)
    failed = script.talk.get_by_text("This interaction failed")
    script.say(interaction(1, "failed", on=shown, custom_id="yes", text="The application did not respond"))
    await expect(failed).to_have_text("This interaction failed. The application did not respond")
    await script.act_as("bob")
    await expect(failed).to_have_count(0)
    await script.act_as("alice")
    await expect(failed).to_have_count(1)
    script.say(interaction(2, "pending", on=shown, custom_id="no"))
    await expect(failed).to_have_count(0)


async def test_a_failed_command_leaves_a_line_that_can_be_dismissed(pages: Pages) -> None:
    script = await pages.scripted(poll(1))
    script.say(interaction(1, "pending", name="ping"))
    await expect(script.page.get_by_text("Sending the command…")).to_be_visible()
    script.say(interaction(1, "failed", name="ping"))
    line = script.page.locator(".message").last
    await expect(line).to_contain_text("alice used /ping")
    await expect(line).to_contain_text("The application did not respond")
    await line.get_by_role("button", name="Dismiss message").click()
    await expect(script.talk.get_by_text("The application did not respond")).to_have_count(0)


async def test_the_message_takes_the_place_of_its_command_at_once(pages: Pages) -> None:
    script = await pages.scripted()
    script.say(interaction(1, "pending", name="ping"))
    await expect(script.talk.get_by_text("Sending the command…")).to_be_visible()
    script.show(message(1, content="Pong", interaction_metadata={"id": "600000000000000001"}))
    await expect(script.talk.locator(".message")).to_have_count(1)
    await expect(script.talk.locator(".message")).to_contain_text("Pong")


async def test_what_the_playground_refuses_is_said_and_frees_the_button(pages: Pages) -> None:
    script = await pages.scripted(poll(1))
    yes = script.page.get_by_role("button", name="Yes")
    await yes.click()
    await expect(yes).to_have_attribute("aria-busy", "true")
    script.say({"type": "error", "text": "There is no such message any more."})
    await expect(script.page.get_by_role("alert")).to_have_text("There is no such message any more.")
    await expect(yes).not_to_have_attribute("aria-busy", "true")
    await yes.click()
    await expect(script.page.get_by_role("alert")).to_have_count(0)


async def test_an_ephemeral_message_is_seen_by_its_user_only(pages: Pages) -> None:
    script = await pages.scripted(
        poll(1), message(2, content="You already voted.", flags=EPHEMERAL, visible_to=BOB["id"])
    )
    private = script.talk.get_by_text("You already voted.")
    await expect(script.page.locator(".message")).to_have_count(1)
    await script.act_as("bob")
    await expect(private).to_be_visible()
    await expect(script.page.locator(".message").last).to_contain_text("Only you can see this · Dismiss message")
    await script.act_as("carol")
    await expect(private).to_have_count(0)


async def test_one_option_of_a_select_is_sent_at_once(pages: Pages) -> None:
    shown = message(1, row(select("Colour", "Red", "Green", "Blue")))
    script = await pages.scripted(shown)
    colour = script.page.get_by_role("button", name="Colour")
    await colour.click()
    await script.page.get_by_role("option", name="Green").click()
    await script.heard(chosen(shown, "colour", "green"))
    await expect(colour).to_have_text("Green")
    await expect(colour).to_be_focused()


async def test_several_options_are_chosen_with_the_keyboard_alone(pages: Pages) -> None:
    shown = message(1, row(select("Days", "Monday", "Tuesday", "Wednesday", "Thursday", most=2)))
    script = await pages.scripted(shown)
    page = script.page
    await tab_to(page, "Days")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("listbox")).to_be_focused()
    for key in ("End", "Space", "w", "Space", "Home", "Space"):  # the third is one too many and is not taken
        await page.keyboard.press(key)
    await expect(page.get_by_role("option", selected=True)).to_have_text(
        ["WednesdayAbout Wednesday", "ThursdayAbout Thursday"]
    )
    await page.keyboard.press("Enter")
    await script.heard(chosen(shown, "days", "wednesday", "thursday"))
    await expect(page.get_by_role("button", name="Days")).to_be_focused()


async def test_an_open_select_outlives_its_message_being_drawn_anew(pages: Pages) -> None:
    shown = message(1, text("Before"), row(select("Colour", "Red", "Blue")))
    script = await pages.scripted(shown)
    await script.page.get_by_role("button", name="Colour").click()
    script.show({**shown, "components": [text("After"), *shown["components"][1:]]})
    await expect(script.talk.get_by_text("After")).to_be_visible()
    await script.page.keyboard.press("ArrowDown")
    await script.page.keyboard.press("Enter")
    await script.heard(chosen(shown, "colour", "blue"))
    await expect(script.page.get_by_role("button", name="Colour")).to_be_focused()


async def test_escape_leaves_a_select_as_it_was(pages: Pages) -> None:
    script = await pages.scripted(message(1, row(select("Colour", "Red", "Blue", most=2))))
    colour = script.page.get_by_role("button", name="Colour")
    await colour.click()
    await script.page.keyboard.press("Space")
    await script.page.keyboard.press("Escape")
    await expect(colour).to_be_focused()
    await expect(colour).to_have_text("Colour")
    await script.settled()
    assert script.asked == []


async def test_people_and_channels_can_be_selected(pages: Pages) -> None:
    shown = message(
        1,
        row({"type": 5, "custom_id": "who", "placeholder": "Who"}),
        row({"type": 8, "custom_id": "where", "placeholder": "Where"}),
    )
    script = await pages.scripted(shown)
    for name, option, custom_id, value in (
        ("Who", "carol", "who", CAROL["id"]),
        ("Where", "#general", "where", GENERAL["id"]),
    ):
        await script.page.get_by_role("button", name=name).click()
        await script.page.get_by_role("option", name=option).click()
        await script.heard(chosen(shown, custom_id, value))


# ---- Commands


async def test_a_command_is_picked_by_typing_and_its_options_are_sent_as_their_types(pages: Pages) -> None:
    script = await pages.scripted()
    page = script.page
    await page.locator("#write").press_sequentially("/pol")
    await expect(page.get_by_role("option")).to_contain_text(["/pollPost a poll."])
    await page.keyboard.press("Enter")
    await expect(page.get_by_label("question")).to_be_focused()
    await page.keyboard.type("Tea?")
    for name, typed in (("minutes", "5"), ("secret", "true"), ("share", "0.5")):
        await page.get_by_role("button", name=f"Add {name}").click()
        await page.keyboard.type(typed)
    for name, offered in (("colour", "Red"), ("host", "bob"), ("place", "#general")):
        await page.get_by_role("button", name=f"Add {name}").click()
        await page.get_by_role("option", name=offered).click()
    await page.keyboard.press("Enter")
    options = {
        "question": "Tea?",
        "minutes": 5,
        "secret": True,
        "colour": "#f00",
        "host": BOB["id"],
        "place": GENERAL["id"],
        "share": 0.5,
    }
    await script.heard(in_general("command", name="poll", options=options))
    await expect(page.locator("#write")).to_be_focused()
    await expect(page.locator("#write")).to_have_value("")


async def test_options_left_out_are_not_sent_and_wrong_ones_are_named(pages: Pages) -> None:
    script = await pages.scripted()
    page = script.page
    await page.locator("#write").press_sequentially("/poll ")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("Fill this in.")).to_be_visible()
    await expect(page.get_by_label("question")).to_be_focused()
    await page.get_by_label("question").fill("Tea?")
    await page.get_by_role("button", name="Add minutes").click()
    for wrong, problem in (("x", "Write a whole number."), ("0", "The least is 1."), ("61", "The most is 60.")):
        await page.get_by_label("minutes", exact=True).fill(wrong)
        await page.keyboard.press("Enter")
        await expect(page.get_by_text(problem)).to_be_visible()
    await page.get_by_label("minutes", exact=True).fill("")
    await page.keyboard.press("Enter")
    await script.heard(in_general("command", name="poll", options={"question": "Tea?"}))
    assert len(script.asked) == 1


FILE_OPTION, NAME_OPTION, TEAM_OPTION, TIMES_OPTION = (
    {"type": type_, "name": name, "description": f"About {name}"}
    for type_, name in ((11, "picture"), (3, "name"), (3, "team"), (4, "times"))
)
FREE_COMMAND = {
    "name": "greet", "description": "Greet.", "type": 1,
    "options": [FILE_OPTION, NAME_OPTION, {**TEAM_OPTION, "choices": [{"name": "Red", "value": "r"}]}, TIMES_OPTION],
}  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "options"),
    [
        (["Enter"], {}),
        (["A", "n", "n", "Enter"], {"name": "Ann"}),
        ([*"name: Ann", "Enter"], {"name": "Ann"}),
        ([*"times: 3", "Enter"], {"times": 3}),
        (["A", "Backspace", "Backspace", "Enter"], {}),
        (["A", "Tab", "Tab", "Tab", "R", "Enter", "Enter"], {"name": "A", "team": "r"}),
        (["Shift+Tab", "3", "Enter"], {"times": 3}),
        (["Shift+Tab", "Enter", "4", "Enter"], {"times": 4}),
        (["A", "Tab", "Tab", "Tab", "Tab", "Tab", "2", "Backspace", "Backspace", "Enter"], {"name": "A"}),
    ],
)
async def test_a_command_that_needs_nothing_is_sent_by_enter_and_typing_begins_an_option(
    pages: Pages, keys: list[str], options: Json
) -> None:
    script = await pages.scripted(first=state(commands=[FREE_COMMAND]))
    keyboard = script.page.keyboard
    await script.page.locator("#write").press_sequentially("/gr")
    await keyboard.press("Enter")
    await expect(script.page.locator(".command-foot").get_by_role("button", name="Send")).to_be_focused()
    for key in keys:
        await keyboard.press(key)
    await script.heard(in_general("command", name="greet", options=options))
    await expect(script.page.locator("#write")).to_be_focused()
    assert len(script.asked) == 1


async def test_subcommands_are_picked_by_their_full_name_and_context_menus_are_not_offered(pages: Pages) -> None:
    script = await pages.scripted()
    await script.page.locator("#write").fill("/")
    names = script.page.locator(".picker .command-name")
    await expect(names).to_have_text(["/ping", "/poll", "/profile show", "/profile edit"])
    for _ in range(3):
        await script.page.keyboard.press("ArrowDown")
    await script.page.keyboard.press("Tab")
    await script.page.keyboard.press("Enter")
    await script.heard(in_general("command", name="profile edit", options={}))


async def test_a_command_that_is_not_there_is_not_said_and_appears_when_it_is_registered(pages: Pages) -> None:
    script = await pages.scripted(first=state(commands=[]))
    write = script.page.locator("#write")
    await write.fill("/poll")
    await expect(script.page.get_by_role("option")).to_have_text(["The bot has no commands yet. Is it running?"])
    await write.press("Enter")
    await expect(script.page.get_by_role("alert")).to_have_text("Not sent: the bot has no command /poll.")
    await expect(write).to_have_value("/poll")
    script.say({"type": "commands", "commands": COMMANDS})
    await expect(script.page.get_by_role("option")).to_contain_text(["/pollPost a poll."])
    await write.press("Enter")
    await expect(script.page.get_by_label("question")).to_be_focused()
    assert script.asked == []


async def test_escape_leaves_the_picker_and_the_fields(pages: Pages) -> None:
    script = await pages.scripted()
    write = script.page.locator("#write")
    await write.fill("/")
    await script.page.keyboard.press("Escape")
    await expect(script.page.get_by_role("listbox", name="Commands")).to_be_hidden()
    await write.fill("/poll ")
    await expect(script.page.get_by_label("question")).to_be_focused()
    await script.page.keyboard.press("Escape")
    await expect(write).to_be_focused()


async def test_what_is_being_filled_in_survives_a_bot_that_registers_the_same_commands_again(pages: Pages) -> None:
    script = await pages.scripted()
    await script.page.locator("#write").fill("/poll ")
    await script.page.get_by_label("question").fill("Te")
    script.say({"type": "commands", "commands": json.loads(json.dumps(COMMANDS))})
    await script.settled()
    await script.page.keyboard.type("a?")
    await expect(script.page.get_by_label("question")).to_have_value("Tea?")
    script.say({"type": "commands", "commands": [PING_COMMAND]})
    await expect(script.page.locator("#write")).to_be_visible()


# ---- Forms

FORM_ID = "700000000000000001"
OFTEN = [{"label": "Once", "value": "once", "description": "And never again"}, {"label": "Daily", "value": "daily"}]
THROUGH = [{"label": "Here", "value": "here", "default": True}, {"label": "Direct message", "value": "dm"}]
FORM = {
    "custom_id": "reminder",
    "title": "New reminder",
    "components": [
        text("Tell me **what** and when."),
        labelled("What", 4, "what", style=1, min_length=3) | {"description": "One line."},
        labelled("Notes", 4, "notes", style=2, required=False, value="none yet"),
        {"type": 18, "label": "Colour", "component": select("Colour", "Red", "Blue")},
        labelled("Who", 5, "who", max_values=2),
        labelled("How often", 21, "often", options=OFTEN),
        labelled("Through", 22, "through", options=THROUGH),
        labelled("Keep it secret", 23, "secret"),
        row({"type": 4, "custom_id": "old", "style": 1, "label": "Old style", "required": False}),
    ],
}
FILLED = {
    "what": "Water", "notes": "none yet", "colour": ["blue"], "who": [BOB["id"], CAROL["id"]], "often": "daily",
    "through": ["here", "dm"], "secret": True, "old": "",
}  # fmt: skip


def form_for(user: Json) -> Json:
    return {"type": "form", "interaction_id": FORM_ID, "user_id": user["id"], "form": FORM}


async def test_a_form_is_filled_in_with_the_mouse(pages: Pages) -> None:
    script = await pages.scripted(poll(1))
    script.say(form_for(ALICE))
    dialog = script.page.get_by_role("dialog", name="New reminder")
    await expect(dialog.get_by_label("What")).to_be_focused()
    await dialog.get_by_label("What").fill("Water")
    await dialog.get_by_role("button", name="Colour").click()
    await script.page.get_by_role("option", name="Blue").click()
    await dialog.get_by_role("button", name="Who").click()
    for name in ("bob", "carol"):
        await script.page.get_by_role("option", name=name).click()
    await script.page.get_by_role("button", name="Done").click()
    await dialog.get_by_label("Daily").check()
    await dialog.get_by_label("Direct message").check()
    await dialog.get_by_label("Keep it secret").check()
    await dialog.get_by_role("button", name="Submit").click()
    await script.heard(by_alice("submit", interaction_id=FORM_ID, values=FILLED))
    await expect(dialog).to_be_visible()
    script.say(interaction(2, "answered", kind="form"))
    await expect(dialog).to_be_hidden()


async def test_a_form_is_filled_in_with_the_keyboard_alone(pages: Pages) -> None:
    script = await pages.scripted(poll(1))
    keyboard = script.page.keyboard
    await tab_to(script.page, "Yes: 0")
    script.say(form_for(ALICE))
    await expect(script.page.get_by_label("What")).to_be_focused()
    await keyboard.type("Water")
    await tab_to(script.page, "Colour")
    for key in ("Enter", "Escape", "Enter", "End", "Enter"):  # Escape leaves the list, not the form
        await keyboard.press(key)
    await tab_to(script.page, "Make a selection")
    for key in ("Enter", "End", "Space", "ArrowUp", "Space", "Enter"):
        await keyboard.press(key)
    for key in ("Tab", "ArrowDown", "Tab", "Tab", "Space", "Tab", "Space"):
        await keyboard.press(key)
    await tab_to(script.page, "Submit")
    await keyboard.press("Enter")
    await script.heard(by_alice("submit", interaction_id=FORM_ID, values=FILLED))
    script.show(poll(1, yes=1))  # the message behind is drawn anew meanwhile
    await expect(script.talk).to_contain_text("Yes: 1")
    script.say(interaction(2, "answered", kind="form"))
    await expect(script.page.get_by_role("dialog")).to_be_hidden()
    await expect(script.page.get_by_role("button", name="Yes: 1")).to_be_focused()


async def test_a_form_names_each_problem_and_goes_to_the_first(pages: Pages) -> None:
    script = await pages.scripted()
    script.say(form_for(ALICE))
    dialog = script.page.get_by_role("dialog")
    await dialog.get_by_label("What").fill("Wa")
    await dialog.get_by_role("button", name="Submit").click()
    await expect(dialog.locator(".problem:visible")).to_have_text(
        ["Write at least 3 characters (now 2).", "Choose one.", "Choose 1 to 2.", "Choose one."]
    )
    await expect(dialog.locator("label, .field-name", has_text="(required)")).to_have_text(
        [f"{name}* (required)" for name in ("What", "Colour", "Who", "How often", "Through")]
    )
    await expect(dialog.get_by_label("What")).to_be_focused()
    await expect(dialog.get_by_label("What")).to_have_attribute("aria-invalid", "true")
    await script.settled()
    assert script.asked == []


async def test_a_form_waits_for_the_person_it_is_for(pages: Pages) -> None:
    script = await pages.scripted()
    script.say(form_for(BOB))
    await script.settled()
    await expect(script.page.get_by_role("dialog")).to_be_hidden()
    await script.act_as("bob")
    await expect(script.page.get_by_role("dialog")).to_be_visible()
    await script.page.keyboard.press("Escape")
    await expect(script.page.get_by_role("dialog")).to_be_hidden()


async def test_a_preset_text_that_was_cleared_is_sent_as_empty(pages: Pages) -> None:
    script = await pages.scripted()
    script.say({**form_for(ALICE), "form": {**FORM, "components": [FORM["components"][2]]}})
    await script.page.get_by_label("Notes").fill("")
    await script.page.get_by_role("button", name="Submit").click()
    await script.heard(by_alice("submit", interaction_id=FORM_ID, values={"notes": ""}))


@pytest.mark.parametrize("answer", ["failed", "refused"])
async def test_a_form_that_failed_stays_open_with_what_was_written(pages: Pages, answer: str) -> None:
    script = await pages.scripted()
    script.say({**form_for(ALICE), "form": {**FORM, "components": [FORM["components"][2]]}})
    dialog = script.page.get_by_role("dialog")
    await dialog.get_by_label("Notes").fill("Water the plants")
    await dialog.get_by_role("button", name="Submit").click()
    await script.heard(by_alice("submit", interaction_id=FORM_ID, values={"notes": "Water the plants"}))
    script.say(
        interaction(2, "failed", kind="form")
        if answer == "failed"
        else {"type": "error", "text": "Notes are too long."}
    )
    wanted = "This interaction failed. Try again or cancel." if answer == "failed" else "Notes are too long."
    await expect(dialog.get_by_role("alert")).to_have_text(wanted)
    await expect(dialog.get_by_label("Notes")).to_have_value("Water the plants")
    await dialog.get_by_role("button", name="Submit").click()
    await script.settled()
    assert len(script.asked) == 2


# ---- The bot, its log and the connection


async def test_the_bot_can_be_started_stopped_killed_and_restarted(pages: Pages) -> None:
    script = await pages.scripted()
    panel = script.page.get_by_role("complementary")
    await expect(panel).to_contain_text("bot.py running · pid 4121")
    await expect(panel.get_by_role("button", name="Start", exact=True)).to_be_disabled()
    for name in ("Stop", "Kill", "Restart"):
        await panel.get_by_role("button", name=name, exact=True).click()
        await script.heard({"do": "bot", "action": name.lower()})
    script.say({"type": "bot", "bot": {"name": "bot.py", "status": "stopped", "pid": None, "exit_code": -9}})
    await expect(panel).to_contain_text("bot.py stopped · exit code -9")
    await expect(panel.get_by_role("button", name="Restart")).to_be_focused()
    await panel.get_by_role("button", name="Start", exact=True).click()
    await script.heard({"do": "bot", "action": "start"})


async def test_the_clock_can_be_moved(pages: Pages) -> None:
    script = await pages.scripted()
    for name, seconds in (("1 minute", 60), ("1 hour", 3600), ("1 day", 86400)):
        await script.page.get_by_role("button", name=f"Advance the clock by {name}").click()
        await script.heard({"do": "advance", "seconds": seconds})


WITH_WEB = {"name": "bot.py", "status": "running", "pid": 4121, "exit_code": None, "mode": "gateway", "has_web": True}
HOOKS = [{"name": "deploy", "scheme": "standard"}, {"name": "repo", "scheme": "github"}]


async def test_how_interactions_come_is_said_and_changed_with_the_keyboard(pages: Pages) -> None:
    script = await pages.scripted(first=state(bot=WITH_WEB))
    page, line = script.page, script.page.locator("#mode")
    await expect(line).to_have_text("Interactions: gateway Use HTTP instead")
    await tab_to(page, "Use HTTP instead")
    await page.keyboard.press("Enter")
    await script.heard({"do": "mode", "mode": "rest"})
    script.say({"type": "bot", "bot": {**WITH_WEB, "mode": "rest"}})
    await expect(line).to_have_text("Interactions: HTTP Use the gateway instead")
    await expect(line.get_by_role("button")).to_be_focused()
    await expect(page.locator("#announcements")).to_have_text("Interactions: HTTP")
    await page.keyboard.press("Space")
    await script.heard({"do": "mode", "mode": "gateway"})


async def test_a_bot_that_has_no_port_cannot_be_switched_and_no_bot_has_no_mode(pages: Pages) -> None:
    script = await pages.scripted(first=state(bot={**WITH_WEB, "has_web": False}))
    line = script.page.locator("#mode")
    await expect(line).to_be_visible()
    await expect(line.get_by_role("button")).to_be_hidden()
    script = await pages.scripted(first=state(bot={**WITH_WEB, "status": "none", "mode": None, "has_web": False}))
    await expect(script.page.locator("#mode")).to_be_hidden()


class HooksPanel:
    """The part of the page that calls hooks."""

    def __init__(self, script: Scripted) -> None:
        self.script = script
        self.box = script.page.locator("#hooks")
        self.hook = self.box.get_by_label("Hook", exact=True)
        self.body = self.box.get_by_label("Body, as JSON")
        self.send = self.box.get_by_role("button", name="Send")
        self.status = self.box.get_by_role("status")
        self.answer = self.box.get_by_role("region", name="Answer")

    async def asked(self, name: str, body: str) -> Json:
        """Wait until the page has asked for the call."""
        fits = lambda one: (one["do"], one.get("name"), one.get("body")) == ("hook", name, body)  # noqa: E731
        await self.script.until(lambda: any(map(fits, self.script.asked)), f"the page calls {name} with {body}")
        return next(one for one in reversed(self.script.asked) if fits(one))

    def reply(self, asked: Json, status: int | None, text: str, body: Any = None) -> None:
        told = {"type": "hook", "request": asked["request"], "status": status, "text": text, "body": body}
        self.script.say(told)


async def test_a_hook_is_called_with_the_keyboard_alone(pages: Pages) -> None:
    script = await pages.scripted(first=state(bot=WITH_WEB, hooks=HOOKS))
    page, panel = script.page, HooksPanel(script)
    await tab_to(page, "Hooks (2)")
    await page.keyboard.press("Enter")
    await page.keyboard.press("Tab")
    await expect(panel.hook).to_be_focused()
    await expect(panel.hook.locator("option")).to_have_text(["deploy · signed: standard", "repo · signed: github"])
    await page.keyboard.press("ArrowDown")
    await expect(panel.hook).to_have_value("repo")
    await page.keyboard.press("Tab")
    await expect(panel.body).to_be_focused()
    await page.keyboard.press("Control+a")
    await page.keyboard.type('{"ref": 1}')
    await page.keyboard.press("Control+Enter")
    asked = await panel.asked("repo", '{"ref": 1}')
    await expect(panel.send).to_have_attribute("aria-busy", "true")
    await page.keyboard.press("Control+Enter")
    panel.reply({"request": -1}, 500, "of another page")
    await script.settled()
    assert await panel.status.text_content() == ""
    panel.reply(asked, 202, "Accepted", {"accepted": "hook:repo:1"})
    await expect(panel.status).to_have_text("202 Accepted")
    await expect(panel.answer).to_have_text('{\n  "accepted": "hook:repo:1"\n}')
    await expect(panel.send).not_to_have_attribute("aria-busy", "true")
    assert sum(one["do"] == "hook" for one in script.asked) == 1
    await tab_to(page, "Copy as curl")
    await page.keyboard.press("Tab")
    await expect(panel.answer).to_be_focused()


async def test_what_a_hook_answers_is_shown_whatever_it_is(pages: Pages) -> None:
    script = await pages.scripted(first=state(bot=WITH_WEB, hooks=HOOKS))
    panel = HooksPanel(script)
    await panel.box.locator("summary").click()
    for status, text, body, shown in (
        (401, "Unauthorized", {"error": "wrong"}, '{\n  "error": "wrong"\n}'),
        (500, "Internal Server Error", "<b>boom</b>", "<b>boom</b>"),
        (204, "No Content", None, None),
        (None, "The bot does not run.", None, None),
    ):
        script.asked.clear()
        await panel.send.click()
        panel.reply(await panel.asked("deploy", "{}"), status, text, body)
        await expect(panel.status).to_have_text(text if status is None else f"{status} {text}")
        if status != 204:
            await expect(panel.status).to_have_class("hook-status failure")
        if shown is None:
            await expect(panel.answer).to_be_hidden()
        else:
            await expect(panel.answer).to_have_text(shown)
    await expect(script.page.locator("#hooks b")).to_have_count(0)


async def test_a_body_that_is_no_json_is_named_and_not_sent(pages: Pages) -> None:
    script = await pages.scripted(first=state(bot=WITH_WEB, hooks=HOOKS))
    panel = HooksPanel(script)
    await panel.box.locator("summary").click()
    await panel.body.fill("{version: 3}")
    await panel.send.click()
    await expect(panel.box.locator(".problem")).to_contain_text("This is no JSON: ")
    await expect(panel.body).to_be_focused()
    await expect(panel.body).to_have_attribute("aria-invalid", "true")
    await expect(panel.body).to_have_accessible_description(re.compile("This is no JSON"))
    await panel.body.fill('{"version": 3}')
    await expect(panel.box.locator(".problem")).to_be_hidden()
    await panel.send.click()
    await panel.asked("deploy", '{"version": 3}')
    assert sum(one["do"] == "hook" for one in script.asked) == 1


async def test_an_attempt_that_sends_nothing_takes_the_last_answer_away(pages: Pages) -> None:
    script = await pages.scripted(first=state(bot=WITH_WEB, hooks=HOOKS))
    panel = HooksPanel(script)
    await panel.box.locator("summary").click()
    for written in ("{", "{}"):
        await panel.body.fill('{"version": "x"}')
        await panel.send.click()
        panel.reply(await panel.asked("deploy", '{"version": "x"}'), 422, "Unprocessable Entity", {"error": "no"})
        await expect(panel.answer).to_be_visible()
        script.asked.clear()
        script.is_silent = written == "{}"
        if script.is_silent:
            await script.hang_up()
            await expect(script.page.locator("#connection")).to_be_visible()
        await panel.body.fill(written)
        await panel.send.click()
        await expect(panel.status).to_be_empty()
        await expect(panel.answer).to_be_hidden()
        assert script.asked == []


async def test_what_was_written_for_a_hook_stays_while_the_bot_has_it(pages: Pages) -> None:
    script = await pages.scripted(first=state(bot=WITH_WEB, hooks=HOOKS))
    panel = HooksPanel(script)
    await panel.box.locator("summary").click()
    await panel.body.fill("[1]")
    await panel.hook.select_option("repo")
    await expect(panel.body).to_have_value("{}")
    await panel.body.fill("[2]")
    option = await panel.hook.locator("option").first.element_handle()
    script.say({"type": "bot", "bot": {**WITH_WEB, "status": "stopped", "pid": None}})
    await script.settled()
    assert await option.evaluate("one => one.isConnected")  # a list that is open stays open
    script.say({"type": "hooks", "hooks": [*HOOKS, {"name": "third", "scheme": "ed25519"}]})
    await expect(panel.box.locator("summary")).to_have_text("Hooks (3)")
    await expect(panel.hook).to_have_value("repo")
    await expect(panel.body).to_have_value("[2]")
    script.say({"type": "hooks", "hooks": HOOKS[:1]})
    await expect(panel.hook).to_have_value("deploy")
    await expect(panel.body).to_have_value("[1]")


@pytest.mark.parametrize(
    ("bot", "hooks", "words"),
    [
        ({}, [], "This bot has no hooks. A hook is an address that other services call: write a function under"),
        ({}, None, "The bot's hooks are listed here when it runs."),
        ({"has_web": False}, None, "This bot was started without a port for HTTP, so it has no hooks."),
        ({"status": "none", "has_web": False}, None, "No bot runs here."),
    ],
)
async def test_without_hooks_the_page_says_why(pages: Pages, bot: Json, hooks: Any, words: str) -> None:
    script = await pages.scripted(first=state(bot={**WITH_WEB, **bot}, hooks=hooks))
    panel = HooksPanel(script)
    await panel.box.locator("summary").click()
    await expect(panel.box.locator(".hint")).to_contain_text(words)
    await expect(panel.send).to_be_hidden()
    script.say({"type": "hooks", "hooks": HOOKS})
    await expect(panel.send).to_be_visible()
    await expect(panel.box.locator(".hint")).to_be_hidden()


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_serious_in_the_hooks(pages: Pages, scheme: str, width: int) -> None:
    viewport = {"width": width, "height": 700}
    script = await pages.scripted(first=state(bot=WITH_WEB, hooks=HOOKS), color_scheme=scheme, viewport=viewport)
    panel = HooksPanel(script)
    if width < 1000:
        await script.page.get_by_role("button", name="Controls").click()
    await panel.box.locator("summary").click()
    await panel.body.fill("{")
    await panel.send.click()
    await expect(panel.box.locator(".problem")).to_be_visible()
    assert await blame(script.page) == []
    await panel.body.fill("{}")
    await panel.send.click()
    panel.reply(await panel.asked("deploy", "{}"), 401, "Unauthorized", {"error": "x " * 2000})
    await expect(panel.answer).to_be_visible()
    assert await blame(script.page) == []
    assert await script.page.evaluate("document.documentElement.scrollWidth") <= width
    assert await script.page.locator("#bot-body").evaluate("box => box.scrollWidth <= box.clientWidth")
    await panel.hook.hover()
    await script.page.mouse.wheel(0, 3000)
    await expect(script.page.get_by_label("The bot's log")).to_be_in_viewport()


@pytest.mark.parametrize("may_copy", [True, False])
async def test_the_command_that_calls_a_hook_is_copied_and_shown(pages: Pages, may_copy: bool) -> None:
    granted: Json = {"permissions": ["clipboard-read", "clipboard-write"]} if may_copy else {}
    script = await pages.scripted(first=state(bot=WITH_WEB, hooks=HOOKS), **granted)
    page, panel = script.page, HooksPanel(script)
    if not may_copy:
        await page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }")
    await panel.box.locator("summary").click()
    await panel.body.fill("{")
    await tab_to(page, "Copy as curl")
    await page.keyboard.press("Enter")
    await expect(panel.body).to_be_focused()
    await panel.body.fill("[1]")
    await tab_to(page, "Copy as curl")
    await page.keyboard.press("Enter")
    await script.until(lambda: len(script.asked) > 0, "the page asks for the command")
    [asked] = script.asked
    assert (asked["do"], asked["name"], asked["body"]) == ("curl", "deploy", "[1]")
    script.say({"type": "curl", "request": asked["request"], "command": "curl '[1]' \\\n  -H", "text": ""})
    where = "Copied." if may_copy else "Copy it from here."
    await expect(panel.status).to_have_text(f"{where} It can be sent once.")
    await expect(panel.box.get_by_role("region", name="Command")).to_have_text("curl '[1]' \\\n  -H")
    if may_copy:
        assert await page.evaluate("navigator.clipboard.readText()") == "curl '[1]' \\\n  -H"
    await page.keyboard.press("Enter")
    await script.until(lambda: len(script.asked) > 1, "the page asks once more")
    told = {"type": "curl", "request": script.asked[1]["request"], "command": None, "text": "The bot does not run."}
    script.say(told)
    await expect(panel.status).to_have_text("The bot does not run.")
    await expect(panel.answer).to_be_hidden()


async def test_the_hooks_and_the_log_are_both_at_hand(pages: Pages) -> None:
    script = await pages.scripted(first=state(bot=WITH_WEB, hooks=HOOKS, log=[f"line {n}" for n in range(300)]))
    panel, log = HooksPanel(script), script.page.get_by_label("The bot's log")
    await panel.box.locator("summary").click()
    for one in (panel.hook, panel.body, panel.send, log):
        await expect(one).to_be_in_viewport(ratio=1)
    await panel.send.click()
    panel.reply(await panel.asked("deploy", "{}"), 422, "Unprocessable Entity", {"error": "x " * 2000})
    for one in (panel.send, panel.status, panel.answer, log):
        await expect(one).to_be_in_viewport(ratio=1)
    assert await log.evaluate("box => box.clientHeight") >= 100


async def test_on_a_phone_the_form_for_hooks_is_seen_when_it_opens_and_the_answer_when_it_comes(pages: Pages) -> None:
    viewport = {"width": 390, "height": 800}
    script = await pages.scripted(first=state(bot=WITH_WEB, hooks=HOOKS), viewport=viewport)
    panel = HooksPanel(script)
    await script.page.get_by_role("button", name="Controls").click()
    await panel.box.locator("summary").click()
    for one in (panel.hook, panel.body, panel.send):
        await expect(one).to_be_in_viewport(ratio=1)
    await panel.send.click()
    panel.reply(await panel.asked("deploy", "{}"), 202, "Accepted", {"accepted": "hook:deploy:1"})
    await expect(panel.answer).to_be_in_viewport(ratio=1)


async def test_the_log_follows_its_end_until_the_reader_scrolls_up(pages: Pages) -> None:
    script = await pages.scripted(first=state(log=[f"line {n}" for n in range(300)]))
    log = script.page.get_by_label("The bot's log")
    at_end = "box => box.scrollHeight - box.scrollTop - box.clientHeight < 2"
    script.say({"type": "log", "line": "\u001b[31mred line\u001b[0m"})
    await expect(log.locator("div").last).to_have_text("red line")
    assert await log.evaluate(at_end)
    await log.evaluate("box => box.scrollTo(0, 100)")
    await script.settled()
    script.say({"type": "log", "line": "another line"})
    await expect(log.locator("div").last).to_have_text("another line")
    assert await log.evaluate("box => box.scrollTop") == 100


async def test_a_channels_id_is_in_its_title_and_its_menu(pages: Pages) -> None:
    script = await pages.scripted(permissions=["clipboard-read", "clipboard-write"])
    page, channel = script.page, script.page.get_by_role("button", name="bot-testing")
    await expect(channel).to_have_attribute("title", f"Channel id {OTHER['id']}")
    await channel.click(button="right")
    await page.get_by_role("menuitem", name="Copy channel id").click()
    await expect(page.get_by_role("menu")).to_have_count(0)
    assert await page.evaluate("navigator.clipboard.readText()") == OTHER["id"]
    general = page.locator(f"#channels [data-id='{GENERAL['id']}']")
    await general.focus()
    await page.keyboard.press("Shift+F10")
    await expect(page.get_by_role("menuitem", name="Copy channel id")).to_be_focused()
    script.say({"type": "channels", "channels": [GENERAL, OTHER]})
    await page.keyboard.press("Enter")
    await expect(general).to_be_focused()
    assert await page.evaluate("navigator.clipboard.readText()") == GENERAL["id"]
    await expect(page.locator("#refusal")).to_be_hidden()


async def test_an_id_that_the_browser_does_not_copy_is_shown(pages: Pages) -> None:
    script = await pages.scripted()
    await script.page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }")
    await script.page.get_by_role("button", name="bot-testing").click(button="right")
    await script.page.get_by_role("menuitem", name="Copy channel id").click()
    await expect(script.page.locator("#refusal")).to_contain_text(f"The id is {OTHER['id']}.")


async def test_a_lost_connection_is_said_and_comes_back(pages: Pages) -> None:
    script = await pages.scripted(poll(1))
    bar = script.page.locator("#connection")
    script.first = state(poll(1, yes=1), message(2, content="meanwhile"))
    await script.hang_up()
    await expect(script.talk.get_by_text("meanwhile")).to_be_visible()
    await expect(script.page.get_by_role("button", name="Yes: 1")).to_be_visible()
    await expect(bar).to_be_hidden()


async def test_without_a_connection_nothing_is_lost_silently(pages: Pages) -> None:
    script = await pages.scripted(poll(1))
    write = script.page.locator("#write")
    script.is_silent = True
    await script.hang_up()
    await expect(script.page.get_by_role("status")).to_contain_text("No connection to the playground. Trying again…")
    await script.until(lambda: script.greetings == 2, "the page has called again")
    await write.fill("hello")
    await script.page.keyboard.press("Enter")
    await expect(script.page.get_by_role("alert")).to_have_text("Not sent: there is no connection to the playground.")
    await expect(write).to_have_value("hello")
    script.is_silent = False
    await script.page.get_by_role("button", name="Try now").click()
    await expect(script.page.locator("#connection")).to_be_hidden()
    await write.press("Enter")
    await script.heard(in_general("say", content="hello"))


async def test_a_page_of_another_playground_is_told_to_reload(pages: Pages) -> None:
    script = await pages.scripted(is_refusing=True)
    await expect(script.page.get_by_text("The playground was started anew")).to_be_visible()
    script.is_refusing = False
    await script.page.get_by_role("button", name="Reload the page").click()
    await expect(script.page.locator("#connection")).to_be_hidden()


# ---- For everyone


async def test_news_is_read_out_once_and_the_log_is_not(pages: Pages) -> None:
    script = await pages.scripted(poll(1))
    news = script.page.locator("#announcements p")
    script.show({**message(2), "flags": THINKING})
    await expect(news).to_have_text(["Everclick is thinking…"])
    script.show(message(2, content="Done."), poll(1, yes=1))
    script.say({"type": "log", "line": "chatter"})
    script.show(message(3, container(text("Tea?"), row(button("Yes"))), flags=EPHEMERAL, visible_to=BOB["id"]))
    script.show(message(4, container(text("Tea?"), row(button("Yes")))))
    said = ["Everclick is thinking…", "Everclick: Done.", "Everclick: Tea?, Yes"]
    await expect(news).to_have_text(said)
    script.say(interaction(1, "failed", on=poll(1), by=BOB), interaction(2, "failed", on=poll(1)))
    await expect(news).to_have_text([*said, "This interaction failed"])


async def blame(page: Page) -> list[str]:
    """What axe finds serious or critical, in words."""
    found = (await Axe().run(page)).response["violations"]
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    return [f"{one['id']}: {node['html'][:120]} {node['failureSummary']}" for one in serious for node in one["nodes"]]


def rich_talk() -> list[Json]:
    """One of everything a page can show, for the eyes of axe."""
    everything = container(
        text("## Tea?\n**bold** ~~gone~~ `code` [link](https://example.com/) <@400000000000000001> ||secret||"),
        text("> quote\n-# small\n- one"),
        row(
            *(button(f"Style {style}", style=style) for style in (1, 2, 3, 4)),
            button("Docs", style=5, url="https://example.com/"),
        ),
        row(button("Off", disabled=True), button("🔔", "bell", style=2)),
        row(select("Colour", "Red", "Blue"), select("Days", "Monday", "Tuesday", most=2)),
        {
            "type": 9,
            "components": [text("Profile")],
            "accessory": {"type": 11, "media": {"url": RED_DOT}, "description": "A dot"},
        },
        {
            "type": 12,
            "items": [
                {"media": {"url": "https://example.com/x.png"}, "description": "Far"},
                {"media": {"url": RED_DOT}, "spoiler": True},
            ],
        },
        {"type": 14, "divider": True, "spacing": 1},
        accent_color=0x2E9E5B,
    )
    embed = {
        "title": "Title",
        "description": "```\ncode\n```",
        "fields": [{"name": "a", "value": "b", "inline": True}],
        "color": 1,
    }
    return [
        message(1, author=person(ALICE), content="Hello"),
        message(
            2, everything, used={"user_id": ALICE["id"], "name": "poll"}, edited_timestamp="2026-09-03T10:02:00+00:00"
        ),
        message(3, content="legacy", embeds=[embed]),
        message(4, flags=THINKING, used={"user_id": BOB["id"], "name": "ask"}),
        message(5, content="You already voted.", flags=EPHEMERAL, visible_to=ALICE["id"]),
    ]


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_serious(pages: Pages, scheme: str, width: int) -> None:
    shown = rich_talk()
    script = await pages.scripted(
        *shown, color_scheme=scheme, reduced_motion="reduce", viewport={"width": width, "height": 900}
    )
    page = script.page
    script.say(
        interaction(1, "failed", on=shown[1], custom_id="x"),
        interaction(2, "failed", name="ping"),
        {"type": "error", "text": "Refused."},
    )
    await expect(page.get_by_role("alert")).to_be_visible()
    if width < 1000:
        await page.get_by_role("button", name="Controls").click()
    assert await blame(page) == []
    await page.get_by_role("button", name="Days").click()
    assert await blame(page) == []
    await page.keyboard.press("Escape")
    await page.locator("#write").fill("/")
    assert await blame(page) == []
    await page.locator("#write").fill("/poll ")
    await page.keyboard.press("Enter")
    assert await blame(page) == []
    script.say(form_for(ALICE))
    await page.get_by_role("dialog").get_by_role("button", name="Submit").click()
    assert await blame(page) == []
    await page.get_by_role("dialog").get_by_role("button", name="Who").click()
    assert await blame(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_serious_in_lists_menus_and_boxes(pages: Pages, scheme: str) -> None:
    commands = [
        {"id": "1", **POLL},
        {
            "id": "2",
            "name": "todo",
            "description": "Lists.",
            "options": [{"type": 1, "name": "add", "description": "x"}],
        },
        {"id": "3", "name": "Report", "type": 3, "description": ""},
        {"id": "4", "name": "Greet", "type": 2, "description": ""},
    ]
    reactions = [{"emoji": {"id": None, "name": "👍"}, "count": 1}]
    mine = message(1, author=person(ALICE), content="Mine", reactions=reactions, reactors={"👍": [ALICE["id"]]})
    first = state(mine, commands=commands, bot_user={"id": BOT["id"], "username": "everclick", "name": "Everclick"})
    script = await pages.scripted(first=first, color_scheme=scheme, reduced_motion="reduce")
    page, item = script.page, script.talk.locator(".message")
    await page.locator("#write").fill("/")
    assert await blame(page) == []
    await page.locator("#write").fill("/poll Tea? host: c")
    await expect(page.get_by_role("option", name="carol")).to_be_visible()
    await page.get_by_role("button", name="Add picture").click()
    assert await blame(page) == []
    await page.get_by_role("combobox", name="host").focus()
    assert await blame(page) == []
    await item.click(button="right")
    await expect(page.get_by_role("menuitem", name="Report")).to_be_visible()
    assert await blame(page) == []
    await page.get_by_role("menuitem", name="Add reaction").click()
    assert await blame(page) == []
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Rights and language").click()
    assert await blame(page) == []
    await page.keyboard.press("Escape")
    await item.focus()
    await page.keyboard.press("e")
    await expect(page.get_by_role("textbox", name="Edit message")).to_be_focused()
    script.say({**form_for(ALICE), "form": {**FORM, "components": [labelled("Papers", 19, "papers", max_values=2)]}})
    assert await blame(page) == []


async def test_the_page_fits_a_screen_of_360_pixels(pages: Pages) -> None:
    script = await pages.scripted(*rich_talk(), viewport={"width": 360, "height": 640})
    page = script.page
    assert await page.evaluate("document.documentElement.scrollWidth") <= 360
    scroller = script.talk
    assert await scroller.evaluate("box => box.scrollWidth <= box.clientWidth")
    for control in (
        page.locator("#write"),
        page.get_by_role("button", name="Send"),
        page.locator(".person", has_text="carol"),
    ):
        await expect(control).to_be_in_viewport(ratio=1)
    await page.get_by_role("button", name="Controls").click()
    await page.get_by_role("button", name="Kill").click()
    await script.heard({"do": "bot", "action": "kill"})


async def test_nothing_moves_for_who_asked_for_less_motion(pages: Pages) -> None:
    script = await pages.scripted({**message(1), "flags": THINKING}, reduced_motion="reduce")
    await expect(script.talk.get_by_text("is thinking")).to_be_visible()
    assert await script.page.evaluate("document.getAnimations().length") == 0


OUTLINE_OF_THE_FOCUSED = """() => {
  const one = document.activeElement;
  return getComputedStyle(one.matches(".visually-hidden") ? one.closest("label") : one).outlineStyle;
}"""


async def test_the_keyboard_is_always_seen(pages: Pages) -> None:
    script = await pages.scripted(*rich_talk())
    unseen: list[str] = []
    for _ in range(30):
        await script.page.keyboard.press("Tab")
        if await script.page.evaluate(OUTLINE_OF_THE_FOCUSED) == "none":
            unseen.append(await focused(script.page))
    assert unseen == []


# ---- Stories: the page, the playground and the bot together


class Story:
    """A person at the page of a playground in which the repository's own bot runs."""

    def __init__(self, page: Page, discord: Discord, bot: BotProcess) -> None:
        self.page = page
        self.discord = discord
        self.bot = bot
        self.talk = page.get_by_label("Messages", exact=True)
        self.panel = page.get_by_role("complementary")

    async def use_poll(self, question: str) -> None:
        await self.page.locator("#write").focus()
        await self.type_poll(question)
        await expect(self.talk.get_by_role("heading", name=question)).to_be_visible()

    async def type_poll(self, question: str) -> None:
        await self.page.keyboard.type("/poll")
        await expect(self.page.get_by_role("option", name="/poll")).to_be_visible()  # the bot has registered it by now
        for keys in ("Enter", *question, "Enter"):
            await self.page.keyboard.press(keys)

    async def act_as(self, name: str) -> None:
        await self.page.locator(".person", has_text=name).click()

    def yes(self) -> Locator:
        return self.talk.get_by_role("button", name="Yes:")

    async def press(self, name: str) -> None:
        await self.panel.get_by_role("button", name=name, exact=True).click()


@pytest_asyncio.fixture(loop_scope="module")
async def story(pages: Pages) -> AsyncIterator[Story]:
    page = await pages.blank()
    async with Discord() as discord:
        bot = await discord.start_bot(ROOT / "bot.py")
        await bot.ready(timeout=PATIENCE_MS / 1000)
        await page.goto(discord.url)
        told = Story(page, discord, bot)
        await expect(told.panel).to_contain_text("running")
        yield told
        await page.close()


async def test_the_story_three_people_vote_over_a_kill(story: Story) -> None:
    await story.use_poll("Tea?")
    await expect(story.talk.locator(".used")).to_contain_text("used /poll")
    await story.act_as("bob")
    await story.yes().click()
    await expect(story.yes()).to_have_text("Yes: 1")
    await story.press("Kill")
    await expect(story.panel).to_contain_text("stopped · exit code -9")
    await story.press("Start")
    await expect(story.panel).to_contain_text("running")
    await story.act_as("carol")
    await story.yes().click()
    await expect(story.yes()).to_have_text("Yes: 2")


async def test_the_story_with_the_keyboard_alone(story: Story) -> None:
    page, keyboard = story.page, story.page.keyboard
    await keyboard.press("Tab")
    assert await focused(page) == "Skip to the message field"
    await keyboard.press("Enter")
    await expect(page.locator("#write")).to_be_focused()
    await story.type_poll("Tea?")
    await expect(story.yes()).to_have_text("Yes: 0")
    await tab_to(page, "alice", "Shift+Tab")
    await keyboard.press("ArrowRight")
    await tab_to(page, "Yes: 0", "Shift+Tab")
    await keyboard.press("Enter")
    await expect(story.yes()).to_have_text("Yes: 1")
    await expect(story.yes()).to_be_focused()
    await tab_to(page, "Kill")
    await keyboard.press("Space")
    await expect(story.panel).to_contain_text("stopped")
    await tab_to(page, "Start", "Shift+Tab")
    await keyboard.press("Space")
    await expect(story.panel).to_contain_text("running")
    await tab_to(page, "Rights and language", "Shift+Tab")
    await keyboard.press("Shift+Tab")
    await keyboard.press("ArrowRight")
    await tab_to(page, "Yes: 1", "Shift+Tab")
    await keyboard.press("Space")
    await expect(story.yes()).to_have_text("Yes: 2")
    await expect(story.yes()).to_be_focused()


async def test_only_who_voted_twice_is_told_so(story: Story, pages: Pages) -> None:
    await story.use_poll("Tea?")
    for wanted in ("Yes: 1", "Yes: 1"):
        await story.yes().click()
        await expect(story.yes()).to_have_text(wanted)
    private = story.talk.get_by_text("You already voted.")
    await expect(private).to_be_visible()
    await story.act_as("bob")
    await expect(private).to_have_count(0)
    await story.act_as("alice")
    await story.page.get_by_role("button", name="Dismiss message").click()
    await expect(private).to_have_count(0)


async def test_a_click_on_a_dead_bot_fails_for_its_person(story: Story) -> None:
    await story.use_poll("Tea?")
    await story.press("Kill")
    await expect(story.panel).to_contain_text("stopped")
    await story.yes().click()
    await expect(story.yes()).to_have_attribute("aria-busy", "true")
    await story.page.get_by_role("button", name="Advance the clock by 1 minute").click()
    await expect(story.talk.get_by_text("This interaction failed")).to_be_visible()
    await expect(story.yes()).not_to_have_attribute("aria-busy", "true")
    await story.act_as("bob")
    await expect(story.talk.get_by_text("This interaction failed")).to_have_count(0)


async def test_two_windows_are_two_people_in_one_channel(story: Story, pages: Pages) -> None:
    other = await pages.blank()
    await other.goto(story.discord.url)
    await other.locator(".person", has_text="bob").click()
    await story.page.locator("#write").fill("Hello **bob**")
    await story.page.keyboard.press("Enter")
    await expect(other.locator(".message strong", has_text="bob")).to_have_text("bob")
    await other.reload()
    await expect(other.get_by_role("radio", name="bob")).to_be_checked()
    await other.close()


# ---- Both directions: the page and the playground, and the test itself is the bot

FIRST_CHANNEL = "300000000000000001"
ADMINISTRATOR, MANAGE_MESSAGES = 1 << 3, 1 << 13
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c63606060f80f0001040100a3a1b2c30000000049454e44ae426082"
)


class Desk:
    """A person at the page, and at the other end a bot that does what the test says."""

    def __init__(self, page: Page, discord: Discord, bot: RawBot) -> None:
        self.page = page
        self.discord = discord
        self.bot = bot
        self.talk = page.get_by_label("Messages", exact=True)
        self.write = page.locator("#write")
        self.dialog = page.locator("dialog")

    async def register(self, *commands: Json) -> None:
        path = f"/applications/{self.discord.world.bot['id']}/commands"
        status, answer = await self.bot.rest("PUT", path, [{"description": "x", **each} for each in commands])
        assert status == 200, answer

    async def post(self, *components: Json, **more: Any) -> Json:
        """The bot writes into the first channel."""
        body = {"components": list(components), "flags": 1 << 15, **more}
        status, answer = await self.bot.rest("POST", f"/channels/{FIRST_CHANNEL}/messages", body)
        assert status == 200, answer
        return answer

    async def type(self, text: str) -> None:
        """Type a whole command, as people do, when the page knows it, and send it."""
        name = text.split(maxsplit=1)[0]
        await self.write.fill("/")
        await expect(self.page.get_by_role("option", name=name).first).to_be_visible()
        await self.write.fill("")
        await self.page.keyboard.type(text)
        await self.page.keyboard.press("Enter")

    async def payload(self) -> Json:
        """The data of the next interaction."""
        return (await self.bot.interaction())["data"]

    async def say(self, interaction: Json, content: str = "Done.", type_: int = 4) -> None:
        status, answer = await self.bot.rest.answer(interaction, type_, {"content": content})
        assert status == 204, answer

    async def open_form(self, *components: Json) -> None:
        await self.register({"name": "form"})
        await self.type("/form")
        form = {"custom_id": "form", "title": "A form", "components": list(components)}
        status, answer = await self.bot.rest.answer(await self.bot.interaction(), 9, form)
        assert status == 204, answer
        await expect(self.dialog).to_be_visible()

    async def submit(self) -> Json:
        """Send the form and close it with an answer; what the bot got."""
        await self.dialog.get_by_role("button", name="Submit").click()
        interaction = await self.bot.interaction()
        await self.say(interaction)
        await expect(self.dialog).to_be_hidden()
        return interaction["data"]

    async def event(self, name: str) -> Json:
        """The data of a gateway event that the bot got, or gets soon."""
        await until(lambda: any(each.get("t") == name for each in self.bot.events))
        return next(each["d"] for each in self.bot.events if each.get("t") == name)

    def id_of(self, name: str) -> str:
        return self.discord.user(name).id

    def message_with(self, text: str) -> Locator:
        return self.talk.locator(".message", has_text=text)


@pytest_asyncio.fixture(loop_scope="module")
async def desk(pages: Pages) -> AsyncIterator[Desk]:
    page = await pages.blank()
    async with Discord() as discord:
        intents = 1 << 0 | 1 << 9 | 1 << 10 | 1 << 12 | 1 << 13 | 1 << 15
        async with RawBot(discord, intents) as bot:
            await page.goto(discord.url)
            await expect(page.locator("#connection")).to_be_hidden()
            yield Desk(page, discord, bot)
            await page.close()


def options_of(data: Json) -> Json:
    return {option["name"]: option["value"] for option in data.get("options", [])}


SELECTS_OF_A_MESSAGE = [
    (select("Colour", "Red", "Green", "Blue", most=2), ["Red", "Blue"], lambda desk: ["red", "blue"], None),
    ({"type": 5, "placeholder": "Who"}, ["Bob"], lambda desk: [desk.id_of("bob")], "users"),
    ({"type": 6, "placeholder": "Role"}, ["@Moderator"], lambda desk: ["500000000000000001"], "roles"),
    ({"type": 7, "placeholder": "Anyone"}, ["Carol"], lambda desk: [desk.id_of("carol")], "users"),
    ({"type": 8, "placeholder": "Where", "channel_types": [0]}, ["#random"], lambda desk: ["300000000000000002"],
     "channels"),
]  # fmt: skip


async def test_all_five_selects_bring_the_bot_what_was_chosen(desk: Desk) -> None:
    parts = [{"custom_id": f"select{part['type']}", **part} for part, *_ in SELECTS_OF_A_MESSAGE]
    parts[0] |= {"custom_id": "select3", "options": [{**each, "emoji": {"name": "🎨"}} for each in parts[0]["options"]]}
    await desk.post(*(row(part) for part in parts))
    for part, labels, values, group in SELECTS_OF_A_MESSAGE:
        await desk.talk.get_by_role("button", name=part["placeholder"]).click()
        for label in labels:
            await desk.page.get_by_role("option", name=label, exact=False).click()
        if part.get("max_values", 1) > 1:
            await desk.page.get_by_role("button", name="Done").click()
        interaction = await desk.bot.interaction()
        data = interaction["data"]
        assert (data["component_type"], data["values"]) == (part["type"], values(desk))
        assert group is None or list(data["resolved"][group]) == values(desk)
        await desk.say(interaction, type_=6)


async def test_a_select_shows_its_defaults_and_a_disabled_one_cannot_be_opened(desk: Desk) -> None:
    bob = {"id": desk.id_of("bob"), "type": "user"}
    colours = select("Colour", "Red", "Blue")
    colours["options"][1]["default"] = True
    await desk.post(
        row({"type": 5, "custom_id": "who", "placeholder": "Who", "default_values": [bob]}),
        row({**colours, "custom_id": "colour"}),
        row({"type": 8, "custom_id": "off", "placeholder": "Closed", "disabled": True}),
    )
    await expect(desk.talk.get_by_role("button", name="Who: Bob")).to_have_text("Bob")
    await expect(desk.talk.get_by_role("button", name="Colour: Blue")).to_have_text("Blue")
    await expect(desk.talk.get_by_role("button", name="Closed")).to_be_disabled()


async def test_only_channels_of_the_wanted_kinds_are_offered(pages: Pages) -> None:
    voice = {"id": "300000000000000009", "name": "Lounge", "type": 2}
    only_voice = {"type": 8, "custom_id": "where", "placeholder": "Where", "channel_types": [2]}
    first = state(message(1, row(only_voice)), channels=[{**GENERAL, "type": 0}, voice])
    script = await pages.scripted(first=first)
    await script.page.get_by_role("button", name="Where").click()
    await expect(script.page.get_by_role("option")).to_have_text(["#Lounge"])


async def test_buttons_show_their_emoji_and_a_premium_one_cannot_be_clicked(pages: Pages) -> None:
    script = await pages.scripted(
        message(
            1,
            row(
                button("Party", emoji={"name": "party", "id": "1"}),
                button("Tea", emoji={"name": "🍵", "id": None}),
                {"type": 2, "style": 6, "sku_id": "1"},
            ),
        )
    )
    buttons = script.talk.locator(".row .button")
    await expect(buttons).to_have_text([":party:Party", "🍵Tea", "◆Premium"])
    await expect(buttons.last).to_be_disabled()


async def test_pictures_and_files_that_the_bot_uploads_are_shown_and_can_be_fetched(desk: Desk) -> None:
    gallery = {"type": 12, "items": [{"media": {"url": "attachment://a.png"}, "description": "A pixel"},
                                     {"media": {"url": "attachment://a.png"}, "spoiler": True}]}  # fmt: skip
    secret = {"type": 13, "file": {"url": "attachment://secret.txt"}, "spoiler": True}
    body = {"flags": 1 << 15, "components": [gallery, {"type": 13, "file": {"url": "attachment://notes.txt"}}, secret]}
    form = aiohttp.FormData()
    form.add_field("payload_json", json.dumps(body), content_type="application/json")
    form.add_field("files[0]", PNG, filename="a.png", content_type="image/png")
    form.add_field("files[1]", b"Buy tea.", filename="notes.txt", content_type="text/plain")
    form.add_field("files[2]", b"Psst.", filename="secret.txt", content_type="text/plain")
    url = f"{desk.discord.api}/channels/{FIRST_CHANNEL}/messages"
    headers = {"Authorization": f"Bot {desk.discord.token}"}
    async with desk.bot.rest.session.post(url, data=form, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
    seen = desk.talk.get_by_role("img", name="A pixel")
    await expect(seen).to_be_visible()
    assert await seen.evaluate("image => image.decode().then(() => image.naturalWidth)") == 1
    await expect(desk.talk.locator(".file").first).to_contain_text("8 bytes")
    async with desk.page.expect_download() as download:
        await desk.talk.get_by_role("link", name="notes.txt").click()
    assert Path(await (await download.value).path()).read_bytes() == b"Buy tea."
    await expect(desk.talk.get_by_role("button", name="Show spoiler")).to_have_count(2)
    await desk.talk.get_by_role("button", name="Show spoiler").last.click()
    await expect(desk.talk.get_by_role("link", name="secret.txt")).to_be_visible()


async def test_attachments_of_a_plain_message_are_pictures_and_cards(pages: Pages) -> None:
    files: Any = [
        {"id": "1", "filename": "dot.svg", "url": RED_DOT, "size": 9, "content_type": "image/svg+xml"},
        {"id": "2", "filename": "SPOILER_end.txt", "url": "http://127.0.0.1:9/end.txt", "size": 2048,
         "content_type": "text/plain"},
    ]  # fmt: skip
    script = await pages.scripted(message(1, content="Two files", attachments=files))
    await expect(script.talk.get_by_role("img", name="dot.svg")).to_be_visible()
    await script.talk.get_by_role("button", name="Show spoiler").click()
    await expect(script.talk.locator(".file")).to_have_text("txtSPOILER_end.txt2.0 KB")


async def test_an_embed_shows_its_author_thumbnail_and_time(pages: Pages) -> None:
    embed = {
        "author": {"name": "Ann", "icon_url": RED_DOT},
        "title": "T",
        "thumbnail": {"url": RED_DOT},
        "image": {"url": RED_DOT},
        "footer": {"text": "Foot"},
        "timestamp": "2026-09-03T10:02:00+00:00",
    }
    script = await pages.scripted(message(1, embeds=[embed]))
    box = script.talk.locator(".embed")
    await expect(box.locator("img")).to_have_count(3)
    await expect(box.locator(".embed-author")).to_have_text("Ann")
    await expect(box.locator(".embed-foot")).to_contain_text("Foot • 9/3/26")
    script.show({**message(1, content="bare", embeds=[embed]), "flags": 1 << 2})
    await expect(box).to_have_count(0)


async def test_separators_keep_their_size_and_their_line(pages: Pages) -> None:
    kinds = [(True, 1), (True, 2), (False, 1), (False, 2)]
    script = await pages.scripted(
        message(1, *({"type": 14, "divider": divider, "spacing": spacing} for divider, spacing in kinds))
    )
    body = script.talk.locator(".message .body")
    assert await body.evaluate("body => [...body.children].map((one) => `${one.tagName} ${one.className}`)") == [
        "HR narrow", "HR wide", "DIV gap narrow", "DIV gap wide",
    ]  # fmt: skip
    heights: list[float] = await body.evaluate(
        """body => [...body.children].map((one) => {
          const { marginTop, marginBottom } = getComputedStyle(one);
          return one.offsetHeight + parseFloat(marginTop) + parseFloat(marginBottom);
        })"""
    )
    assert heights[0] < heights[1] and heights[2] < heights[3]


# ---- Forms, filled in by a person and read by a bot


async def test_every_field_of_a_form_reaches_the_bot(desk: Desk) -> None:
    await desk.open_form(
        text("Tell me **all**."),
        labelled("What", 4, "what", style=1, min_length=3, max_length=40),
        labelled("Notes", 4, "notes", style=2, required=False, value="none yet"),
        {"type": 18, "label": "Colour", "component": select("Colour", "Red", "Blue")},
        labelled("Who", 5, "who", max_values=2),
    )
    await expect(desk.dialog.locator("strong")).to_have_text("all")
    await desk.page.keyboard.type("Water")  # the first field has the keyboard
    await expect(desk.dialog.locator(".counter").first).to_contain_text("5 / 40")
    for field, names in (("Colour", ["Blue"]), ("Who", ["Bob", "Carol"])):
        await desk.dialog.get_by_role("button", name=field).click()
        for name in names:
            await desk.page.get_by_role("option", name=name).click()
    await desk.page.get_by_role("button", name="Done").click()
    data = await desk.submit()
    fields = [part.get("component", {}) for part in data["components"]]
    assert [field.get("value", field.get("values")) for field in fields] == [
        None, "Water", "none yet", ["blue"], [desk.id_of("bob"), desk.id_of("carol")],
    ]  # fmt: skip
    assert set(data["resolved"]["users"]) == {desk.id_of("bob"), desk.id_of("carol")}


async def test_boxes_radios_and_files_of_a_form_reach_the_bot(desk: Desk) -> None:
    await desk.open_form(
        labelled("How often", 21, "often", options=OFTEN),
        labelled("Through", 22, "through", options=THROUGH, min_values=2, max_values=2),
        labelled("Keep it secret", 23, "secret"),
        labelled("Papers", 19, "papers", min_values=1, max_values=3) | {"description": "Up to three."},
    )
    await desk.dialog.get_by_role("button", name="Submit").click()
    await expect(desk.dialog.locator(".problem:visible")).to_have_text(["Choose one.", "Choose 2.", "Choose a file."])
    await desk.dialog.get_by_label("Daily").check()
    await desk.dialog.get_by_label("Direct message").check()
    await desk.dialog.get_by_label("Keep it secret").check()
    files: Any = [{"name": name, "mimeType": "text/plain", "buffer": name.encode()} for name in ("a.txt", "b.txt")]
    await desk.dialog.locator("input[type=file]").set_input_files(files)
    await expect(desk.dialog.locator(".chosen-name")).to_have_text(["a.txt", "b.txt"])
    await desk.dialog.get_by_role("button", name="Remove a.txt").click()
    await expect(desk.dialog.locator(".chosen-file")).to_have_text(["b.txt5 bytes✕"])
    data = await desk.submit()
    often, through, secret, papers = (part["component"] for part in data["components"])
    assert (often["value"], through["values"], secret["value"]) == ("daily", ["here", "dm"], True)
    [sent] = data["resolved"]["attachments"].values()
    assert papers["values"] == [sent["id"]]
    assert (sent["filename"], sent["size"]) == ("b.txt", 5)


async def test_escape_closes_a_form_and_nothing_is_sent(desk: Desk) -> None:
    await desk.open_form(labelled("What", 4, "what", style=1))
    await desk.page.keyboard.type("Water")
    await desk.page.keyboard.press("Escape")
    await expect(desk.dialog).to_be_hidden()
    await desk.page.keyboard.press("Escape")
    assert desk.bot.interactions.empty()


async def test_a_file_that_is_too_large_is_named_beside_its_field(desk: Desk, tmp_path: Path) -> None:
    await desk.open_form(labelled("Paper", 19, "paper"))
    large = tmp_path / "large.bin"
    large.write_bytes(bytes(10 * 1024 * 1024 + 1))
    await desk.dialog.locator("input[type=file]").set_input_files(large)
    await expect(desk.dialog.locator(".chosen-file")).to_contain_text("large.bin is larger than 10 MB.")
    await desk.dialog.get_by_role("button", name="Submit").click()
    await expect(desk.dialog.locator(".problem")).to_have_text("large.bin is larger than 10 MB.")
    assert desk.bot.interactions.empty()


# ---- Commands, typed by a person and read by a bot

ALL_OPTIONS = [
    {"type": 3, "name": "question", "description": "What to ask", "required": True},
    {"type": 4, "name": "minutes", "description": "How long", "min_value": 1, "max_value": 60},
    {"type": 10, "name": "share", "description": "Of votes"},
    {"type": 5, "name": "secret", "description": "Hidden"},
    {"type": 6, "name": "host", "description": "Who asks"},
    {"type": 7, "name": "place", "description": "Where", "channel_types": [0]},
    {"type": 8, "name": "role", "description": "For whom"},
    {"type": 9, "name": "anyone", "description": "Who else"},
    {"type": 11, "name": "picture", "description": "To show"},
    {"type": 3, "name": "colour", "description": "Of the bar", "choices": [{"name": "Red", "value": "#f00"}]},
]
POLL = {"name": "poll", "description": "Post a poll.", "options": ALL_OPTIONS}


async def test_every_kind_of_option_reaches_the_bot(desk: Desk) -> None:
    await desk.register(POLL)
    await desk.type("/poll")
    page = desk.page
    await expect(page.get_by_label("question")).to_be_focused()
    await page.keyboard.type("Tea?")
    for name, typed in (("minutes", "5"), ("share", "0,5"), ("secret", "true")):
        await page.get_by_role("button", name=f"Add {name}").click()
        await page.keyboard.type(typed)
    for name, offered in (("host", "Bob"), ("place", "#random"), ("role", "@Moderator"), ("anyone", "@everyone"),
                          ("colour", "Red")):  # fmt: skip
        await page.get_by_role("button", name=f"Add {name}").click()
        await page.keyboard.type(offered[1:4])
        await expect(page.get_by_role("option", name=offered)).to_be_visible()
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("combobox", name=name)).to_have_value(offered)
    await page.get_by_role("button", name="Add picture").click()
    picture: Any = {"name": "dot.png", "mimeType": "image/png", "buffer": PNG}
    await page.locator(".command-fields input[type=file]").set_input_files(picture)
    await expect(page.locator(".command-fields .chosen-file")).to_contain_text("bytes")
    await page.get_by_role("button", name="Send").click()
    data = await desk.payload()
    given = options_of(data)
    picture_id = given.pop("picture")
    assert given == {
        "question": "Tea?", "minutes": 5, "share": 0.5, "secret": True, "host": desk.id_of("bob"),
        "place": "300000000000000002", "role": "500000000000000001", "anyone": desk.discord.world.guild["id"],
        "colour": "#f00",
    }  # fmt: skip
    assert data["resolved"]["attachments"][picture_id]["filename"] == "dot.png"
    assert list(data["resolved"]["users"]) == [desk.id_of("bob")]


@pytest.mark.parametrize(
    ("typed", "options"),
    [
        ("/poll question: Tea or coffee?", {"question": "Tea or coffee?"}),
        ("/poll Tea?", {"question": "Tea?"}),
        ("/poll Tea at 10:30? minutes: 5", {"question": "Tea at 10:30?", "minutes": 5}),
        ("/poll minutes:5 question:Tea? colour:red", {"question": "Tea?", "minutes": 5, "colour": "#f00"}),
        ("/poll minutes: 5 question: Tea in minutes: no", {"question": "Tea in minutes: no", "minutes": 5}),
        ("/poll Tea? host: bob secret: true", {"question": "Tea?", "host": BOB["id"], "secret": True}),
    ],
)
@pytest.mark.parametrize("way", ["typed", "pasted"])
async def test_a_whole_command_is_typed_in_one_go(pages: Pages, typed: str, options: Json, way: str) -> None:
    script = await pages.scripted(first=state(commands=[POLL]))
    write, keyboard = script.page.locator("#write"), script.page.keyboard
    await write.focus()
    await (keyboard.type(typed) if way == "typed" else write.fill(typed))
    await keyboard.press("Enter")
    await script.heard(in_general("command", name="poll", options=options))
    await expect(write).to_be_focused()


async def test_what_was_typed_in_one_go_reaches_the_bot(desk: Desk) -> None:
    await desk.register(POLL, {"name": "ping"})
    await desk.type("/poll question: Tea or coffee?")
    assert options_of(await desk.payload()) == {"question": "Tea or coffee?"}
    await desk.type("/ping")
    assert (await desk.payload())["name"] == "ping"


async def test_optional_options_come_and_go(pages: Pages) -> None:
    script = await pages.scripted(first=state(commands=[POLL]))
    page = script.page
    await page.locator("#write").fill("/poll ")
    await page.get_by_role("button", name="Add minutes").click()
    await expect(page.get_by_label("minutes", exact=True)).to_be_focused()
    await page.get_by_role("button", name="Remove minutes").click()
    await expect(page.get_by_label("minutes", exact=True)).to_have_count(0)
    await expect(page.get_by_label("question")).to_be_focused()
    await page.get_by_role("button", name="Add share").click()
    await page.keyboard.press("Backspace")
    await expect(page.get_by_label("share", exact=True)).to_have_count(0)
    await page.keyboard.type("Tea?")
    await page.get_by_role("button", name="Add host").click()
    await page.keyboard.type("nobody")
    await expect(page.get_by_role("option")).to_have_text(["Nothing of that name."])
    await page.keyboard.press("Enter")
    await expect(page.locator(".problem:visible")).to_have_text("There is no nobody to choose.")
    await page.get_by_role("combobox", name="host").fill("car")
    await page.keyboard.press("Tab")  # leaving takes what is marked
    await expect(page.get_by_role("combobox", name="host")).to_have_value("carol")
    await page.get_by_role("button", name="Send").click()
    await script.heard(in_general("command", name="poll", options={"question": "Tea?", "host": CAROL["id"]}))


SEARCH = {"name": "search", "options": [
    {"type": 3, "name": "place", "description": "Where", "required": True, "autocomplete": True},
    {"type": 4, "name": "year", "description": "When", "autocomplete": True},
]}  # fmt: skip


async def test_the_bot_suggests_while_one_types(desk: Desk) -> None:
    await desk.register(SEARCH)
    await desk.type("/search")
    await desk.page.keyboard.type("pa")
    asked = await desk.bot.interaction()
    while asked["data"]["options"][0]["value"] != "pa":
        asked = await desk.bot.interaction()
    assert asked["type"] == 4
    assert asked["data"]["options"][0] == {"type": 3, "name": "place", "value": "pa", "focused": True}
    choices = [{"name": "Paris", "value": "p1"}, {"name": "Palermo", "value": "p2"}]
    await desk.bot.rest.answer(asked, 8, {"choices": choices})
    await expect(desk.page.get_by_role("option")).to_have_text(["Paris", "Palermo"])
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        await desk.page.keyboard.press(key)
    await expect(desk.page.get_by_role("combobox", name="place")).to_have_value("Palermo")
    await desk.page.keyboard.press("Enter")
    sent = await desk.bot.interaction()
    assert (sent["type"], options_of(sent["data"])) == (2, {"place": "p2"})


async def test_the_bot_is_asked_when_one_pauses_and_not_at_each_letter(pages: Pages) -> None:
    script = await pages.scripted(first=state(commands=[SEARCH]))
    page = script.page
    await page.locator("#write").fill("/search ")
    await script.until(lambda: bool(script.asked), "the page asks for an empty field")
    await page.clock.install(time=0)
    await page.clock.pause_at(1000)
    for letter in "par":
        await page.keyboard.type(letter)
        await page.clock.run_for(100)
    await page.clock.run_for(1000)
    await script.until(lambda: len(script.asked) > 1, "the page asks")
    assert [each["text"] for each in script.asked] == ["", "par"]


async def test_late_suggestions_are_dropped(pages: Pages) -> None:
    script = await pages.scripted(first=state(commands=[SEARCH]))
    page = script.page
    await page.locator("#write").fill("/search ")

    def questions(text: str) -> list[Json]:
        return [each for each in script.asked if each["do"] == "autocomplete" and each["text"] == text]

    await page.keyboard.type("par")
    await script.until(lambda: bool(questions("par")), "the page asks")
    await page.keyboard.type("i")
    await script.until(lambda: bool(questions("pari")), "the page asks again")
    late, newest = questions("par")[0], questions("pari")[0]
    assert newest == by_alice(
        "autocomplete", request=newest["request"], channel_id=GENERAL["id"], name="search", option="place",
        text="pari", options={},
    )  # fmt: skip
    script.say({"type": "choices", "request": newest["request"], "choices": [{"name": "Paris", "value": "p"}]})
    await expect(page.get_by_role("option")).to_have_text(["Paris"])
    script.say({"type": "choices", "request": late["request"], "choices": [{"name": "Late", "value": "late"}]})
    await script.settled()
    await expect(page.get_by_role("option")).to_have_text(["Paris"])
    await page.keyboard.press("Enter")  # nothing is marked: what was typed is sent
    await script.heard(in_general("command", name="search", options={"place": "pari"}))


async def test_commands_of_a_group_stand_together_and_show_their_options(pages: Pages) -> None:
    def sub(name: str, *options: Json) -> Json:
        return {"type": 1, "name": name, "description": f"To {name}", "options": list(options)}

    admin = {"type": 2, "name": "admin", "description": "For few", "options": [sub("reset")]}
    todo = {"name": "todo", "description": "Lists.", "options": [sub("add", ALL_OPTIONS[0]), sub("show"), admin]}
    script = await pages.scripted(first=state(commands=[{"name": "ping", "description": "Pong."}, todo]))
    page = script.page
    await page.locator("#write").fill("/")
    await expect(page.get_by_role("group", name="todo").locator(".command-name")).to_have_text(
        ["/todo add", "/todo show", "/todo admin reset"]
    )
    await expect(page.get_by_role("option", name="/todo add").locator(".command-options")).to_have_text("question")
    await page.locator("#write").fill("/todo add question: milk")
    await page.keyboard.press("Enter")
    await script.heard(in_general("command", name="todo add", options={"question": "milk"}))


async def test_names_are_shown_in_the_persons_language(pages: Pages) -> None:
    question = {**ALL_OPTIONS[0], "name_localizations": {"de": "frage"}}
    poll = {"name": "poll", "description": "Ask.", "options": [question],
            "name_localizations": {"de": "umfrage"}, "description_localizations": {"de": "Fragt."}}  # fmt: skip
    script = await pages.scripted(first=state(commands=[poll], users=[{**ALICE, "locale": "de"}, BOB]))
    await script.page.locator("#write").fill("/")
    await expect(script.page.get_by_role("option")).to_have_text(["/umfrageFragt.frage"])
    await script.page.locator("#write").fill("/umfrage frage: Tee?")
    await script.page.keyboard.press("Enter")
    await script.heard(in_general("command", name="poll", options={"question": "Tee?"}))


# ---- Menus, reactions, editing


async def test_a_message_command_is_used_with_the_mouse(desk: Desk) -> None:
    await desk.register({"name": "Report", "type": 3, "description": ""})
    posted = await desk.post(text("Look here"))
    await expect(desk.message_with("Look here")).to_be_visible()
    await desk.message_with("Look here").click(button="right")
    await desk.page.get_by_role("menuitem", name="Report").click()
    data = await desk.payload()
    assert (data["type"], data["target_id"]) == (3, posted["id"])
    assert list(data["resolved"]["messages"]) == [posted["id"]]
    await expect(desk.page.get_by_role("menu")).to_have_count(0)


async def test_menus_are_used_with_the_keyboard_alone(desk: Desk) -> None:
    await desk.register(
        {"name": "Report", "type": 3, "description": ""}, {"name": "Greet", "type": 2, "description": ""}
    )
    posted = await desk.post(text("Look here"))
    keyboard = desk.page.keyboard
    await expect(desk.message_with("Look here")).to_be_visible()
    await desk.write.focus()
    await desk.talk.focus()
    await keyboard.press("ArrowUp")
    await expect(desk.message_with("Look here")).to_be_focused()
    await keyboard.press("Shift+F10")
    await expect(desk.page.get_by_role("menu", name="Message")).to_be_visible()
    await keyboard.press("r")
    await keyboard.press("Enter")
    assert (await desk.payload())["target_id"] == posted["id"]
    await expect(desk.message_with("Look here")).to_be_focused()
    await keyboard.press("Tab")
    await expect(desk.page.get_by_role("button", name="Add reaction")).to_be_focused()
    await tab_to(desk.page, "More")
    await keyboard.press("Enter")
    await keyboard.press("g")
    await keyboard.press("Enter")
    data = await desk.payload()
    assert (data["type"], data["target_id"]) == (2, desk.discord.world.bot["id"])
    await desk.page.get_by_role("button", name="More").focus()
    await keyboard.press("Enter")
    await keyboard.press("Escape")
    await expect(desk.page.get_by_role("button", name="More")).to_be_focused()


async def test_a_user_command_is_used_on_a_name_and_in_the_list_of_people(desk: Desk) -> None:
    await desk.register({"name": "Greet", "type": 2, "description": ""})
    await desk.discord.user("bob").say("Hello")
    author = desk.talk.locator(".author", has_text="Bob")
    people = desk.page.get_by_role("region", name="People")
    for opener in (author, people.get_by_role("button", name="Bob")):
        await opener.click()
        await desk.page.get_by_role("menuitem", name="Greet").click()
        data = await desk.payload()
        assert (data["type"], data["target_id"]) == (2, desk.id_of("bob"))
        assert list(data["resolved"]["users"]) == [desk.id_of("bob")]


async def test_ones_own_message_is_edited_and_deleted_with_the_keyboard(desk: Desk) -> None:
    keyboard = desk.page.keyboard
    await desk.write.fill("Helo")
    await keyboard.press("Enter")
    await expect(desk.message_with("Helo")).to_be_visible()
    await keyboard.press("ArrowUp")
    field = desk.page.get_by_role("textbox", name="Edit message")
    await expect(field).to_be_focused()
    await field.fill("Hello")
    said = await desk.event("MESSAGE_CREATE")
    await desk.discord.user("bob").react(said["id"], "👍")  # the message is drawn anew meanwhile
    await expect(desk.talk.get_by_role("button", name="👍 1")).to_be_visible()
    await expect(field).to_have_value("Hello")
    await keyboard.press("Enter")
    await expect(desk.message_with("Hello")).to_contain_text("(edited)")
    assert (await desk.event("MESSAGE_UPDATE"))["content"] == "Hello"
    await expect(desk.message_with("Hello")).to_be_focused()
    await keyboard.press("e")
    await field.fill("Never")
    await keyboard.press("Escape")
    await expect(desk.message_with("Hello")).to_be_focused()
    await keyboard.press("Enter")
    await desk.page.get_by_role("menuitem", name="Delete message").focus()
    await keyboard.press("Enter")
    await expect(desk.message_with("Hello")).to_have_count(0)
    await desk.event("MESSAGE_DELETE")


async def test_a_message_of_somebody_else_cannot_be_edited(desk: Desk) -> None:
    await desk.discord.user("bob").say("Mine")
    await expect(desk.message_with("Mine")).to_be_visible()
    await desk.page.locator(".person", has_text="Carol").click()
    await desk.message_with("Mine").click(button="right")
    menu = desk.page.get_by_role("menu", name="Message")
    await expect(menu).to_be_visible()
    await expect(menu.get_by_role("menuitem", name="Edit message")).to_have_count(0)
    await expect(menu.get_by_role("menuitem", name="Delete message")).to_have_count(0)
    await desk.page.keyboard.press("Escape")
    await desk.page.locator(".person", has_text="Alice").click()  # an administrator
    await desk.message_with("Mine").click(button="right")
    await menu.get_by_role("menuitem", name="Delete message").click()
    await desk.event("MESSAGE_DELETE")


async def test_a_reaction_is_added_with_the_keyboard_and_taken_back(desk: Desk) -> None:
    posted = await desk.post(text("Nice?"))
    item = desk.message_with("Nice?")
    await expect(item).to_be_visible()
    await item.hover()
    await item.get_by_role("button", name="Add reaction").click()
    await desk.page.keyboard.press("ArrowRight")
    await desk.page.keyboard.press("Enter")
    mine = item.get_by_role("button", name="👎 1")
    await expect(mine).to_have_attribute("aria-pressed", "true")
    added = await desk.event("MESSAGE_REACTION_ADD")
    assert (added["message_id"], added["emoji"]["name"]) == (posted["id"], "👎")
    await desk.page.locator(".person", has_text="Bob").click()
    await expect(mine).to_have_attribute("aria-pressed", "false")
    await mine.click()
    await expect(item.get_by_role("button", name="👎 2")).to_be_visible()
    await item.get_by_role("button", name="👎 2").click()
    await expect(mine).to_be_visible()
    assert (await desk.event("MESSAGE_REACTION_REMOVE"))["user_id"] == desk.id_of("bob")


# ---- Channels, people, time, files


async def test_a_direct_message_with_the_bot_is_opened_and_used(desk: Desk) -> None:
    await desk.register({"name": "ping", "contexts": [0, 1]}, {"name": "serveronly", "contexts": [0]})
    channels = desk.page.get_by_role("navigation", name="Channels")
    await channels.get_by_role("button", name="playground-bot").click()
    await expect(desk.page.get_by_role("heading", level=2, name="playground-bot")).to_be_visible()
    await desk.write.fill("Hello bot")
    await desk.page.keyboard.press("Enter")
    await expect(desk.message_with("Hello bot")).to_be_visible()
    said = await desk.event("MESSAGE_CREATE")
    assert said["content"] == "Hello bot" and "guild_id" not in said
    await desk.write.fill("/")
    await expect(desk.page.locator(".picker .command-name")).to_have_text(["/ping"])
    await desk.type("/ping")
    asked = await desk.bot.interaction()
    assert (asked["context"], asked["channel_id"], asked["user"]["username"]) == (1, said["channel_id"], "alice")
    await desk.say(asked, "Pong, privately")
    await expect(desk.message_with("Pong, privately")).to_be_visible()
    await channels.get_by_role("button", name="general").click()
    await expect(desk.message_with("Pong, privately")).to_have_count(0)
    await desk.page.locator(".person", has_text="Bob").click()
    await desk.page.get_by_role("button", name="playground-bot").first.click()
    await expect(desk.talk).to_contain_text("You and @playground-bot")
    await expect(desk.message_with("Hello bot")).to_have_count(0)


async def test_a_person_gets_other_rights_and_another_language(desk: Desk) -> None:
    bans = {"name": "ban", "default_member_permissions": str(1 << 2)}
    await desk.register(bans, {"name": "ping"})
    await desk.page.locator(".person", has_text="Bob").click()
    names = desk.page.locator(".picker .command-name")
    await desk.write.fill("/")
    await expect(names).to_have_text(["/ping"])
    await desk.page.keyboard.press("Escape")
    await desk.page.get_by_role("button", name="Rights and language of Bob").click()
    await desk.page.get_by_label("Moderator").check()
    await desk.page.get_by_label("Language", exact=True).select_option("de")
    await desk.page.keyboard.press("Escape")
    await expect(desk.page.get_by_role("button", name="Rights and language of Bob: moderator, de")).to_be_focused()
    await desk.write.fill("/")
    await expect(names).to_have_text(["/ban", "/ping"])
    await desk.type("/ping")
    asked = await desk.bot.interaction()
    assert asked["locale"] == "de"
    assert int(asked["member"]["permissions"]) & MANAGE_MESSAGES
    assert not int(asked["member"]["permissions"]) & ADMINISTRATOR


async def test_how_far_the_clock_is_ahead_is_said(desk: Desk) -> None:
    await expect(desk.page.locator("#clock-offset")).to_be_hidden()
    for name in ("10 minutes", "1 day"):
        await desk.page.get_by_role("button", name=f"Advance the clock by {name}").click()
    await expect(desk.page.locator("#clock-offset")).to_have_text("The clock is 1 day 10 minutes ahead.")
    assert desk.discord.clock.offset_s == 87_000
    await desk.page.reload()
    await expect(desk.page.locator("#clock-offset")).to_have_text("The clock is 1 day 10 minutes ahead.")


async def test_a_person_sends_files(desk: Desk) -> None:
    files: Any = [
        {"name": "dot.png", "mimeType": "image/png", "buffer": PNG},
        {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"Buy tea."},
    ]
    await desk.page.locator("#composer input[type=file]").set_input_files(files)
    await expect(desk.page.locator("#composer .chosen-file")).to_have_count(2)
    await expect(desk.page.locator("#composer .chosen-file").last).to_contain_text("8 bytes")
    await desk.write.focus()
    await desk.page.keyboard.press("Enter")
    await expect(desk.talk.get_by_role("img", name="dot.png")).to_be_visible()
    await expect(desk.talk.locator(".file")).to_contain_text("notes.txt")
    said = await desk.event("MESSAGE_CREATE")
    assert [each["filename"] for each in said["attachments"]] == ["dot.png", "notes.txt"]
    await expect(desk.page.locator("#composer .chosen-file")).to_have_count(0)


async def test_that_the_bot_is_typing_is_said_until_it_has_written(pages: Pages) -> None:
    script = await pages.scripted()
    script.say({"type": "typing", "channel_id": GENERAL["id"], "user_id": BOT["id"]})
    await expect(script.page.get_by_text("The bot is typing…")).to_be_visible()
    script.show(message(1, content="Here."))
    await expect(script.page.get_by_text("The bot is typing…")).to_have_count(0)


# ---- The bot over HTTP: its mode and its hooks


async def test_the_story_of_hooks_and_modes_with_the_keyboard_alone(pages: Pages) -> None:
    page = await pages.blank()
    keyboard = page.keyboard
    async with Discord() as discord:
        bot = await discord.start_bot(ROOT / "tests" / "bots" / "web.py", web=True)
        await bot.ready()
        await page.goto(discord.url)
        await expect(page.locator("#hooks summary")).to_have_text("Hooks (1)")
        await tab_to(page, "Hooks (1)")
        await keyboard.press("Enter")
        await tab_to(page, "Body, as JSON")
        await keyboard.press("Control+a")
        await keyboard.type('{"version": 3}')
        await keyboard.press("Control+Enter")
        await expect(page.locator("#hooks")).to_contain_text('200 OK{\n  "took": {\n    "version": 3')
        await until(lambda: "hook deploy {'version': 3}" in bot.log)
        for now, offered in (("HTTP", "Use HTTP instead"), ("gateway", "Use the gateway instead")):
            before = bot.pid
            await tab_to(page, offered, "Shift+Tab")
            await keyboard.press("Enter")
            await expect(page.locator("#mode")).to_contain_text(f"Interactions: {now}")
            await expect(page.locator(".bot-status")).to_contain_text("running")
            assert bot.pid != before
            await page.locator("#write").fill("/ping")
            await keyboard.press("Enter")
            await keyboard.press("Enter")
            await expect(page.get_by_label("Messages", exact=True).get_by_text(f"pid {bot.pid}")).to_be_visible()
            assert len(discord.deliveries) == 1
        await page.close()


async def test_the_story_of_our_bot_over_http(pages: Pages) -> None:
    page = await pages.blank()
    async with Discord() as discord:
        bot = await discord.start_bot(ROOT / "bot.py", web=True)
        await bot.ready(timeout=PATIENCE_MS / 1000)
        await page.goto(discord.url)
        story, status = Story(page, discord, bot), page.locator(".bot-status")
        await page.locator("#hooks summary").click()
        await expect(page.locator("#hooks")).to_contain_text("This bot has no hooks.")
        await story.use_poll("Tea?")
        await story.panel.get_by_role("button", name="Use HTTP instead").click()
        await expect(page.locator("#mode")).to_contain_text("Interactions: HTTP")
        await expect(status).to_contain_text("running")
        await story.yes().click()  # of a message that came through the gateway
        await expect(story.yes()).to_have_text("Yes: 1")
        await story.press("Kill")
        await expect(status).to_contain_text("stopped")
        await story.act_as("bob")
        await story.yes().click()
        await expect(story.talk.get_by_text("This interaction failed")).to_be_visible()
        await story.press("Start")
        await expect(status).to_contain_text("running")
        await story.yes().click()
        await expect(story.yes()).to_have_text("Yes: 2")
        await story.panel.get_by_role("button", name="Use the gateway instead").click()
        await expect(page.locator("#mode")).to_contain_text("Interactions: gateway")
        await expect(status).to_contain_text("running")
        await story.act_as("carol")
        await story.yes().click()
        await expect(story.yes()).to_have_text("Yes: 3")
        assert len(discord.deliveries) == 3
        await page.close()


async def test_the_story_of_our_bots_hook(pages: Pages) -> None:
    page = await pages.blank()
    async with Discord(mode="rest") as discord:
        bot = await discord.start_bot(ROOT / "tests" / "bots" / "hooked.py", env={"PYTHONPATH": str(ROOT)})
        await bot.ready(timeout=PATIENCE_MS / 1000)
        await page.goto(discord.url)
        box = page.locator("#hooks")
        await box.get_by_text("Hooks (1)").click()
        await expect(box.get_by_label("Hook", exact=True).locator("option")).to_have_text("deploy · signed: ed25519")
        await box.get_by_label("Body, as JSON").fill('{"version": 3}')
        await box.get_by_role("button", name="Send").click()
        await expect(box.get_by_role("status")).to_have_text("202 Accepted")
        await until(lambda: "deployed 3" in bot.log)
        await page.close()
