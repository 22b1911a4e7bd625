"""bot.py is a text: these budgets keep it short, flat and readable from top to bottom.

Every rule is a function from source text to complaints, so that the second half of this file can feed each one a bad
snippet and see it complain. A complaint names the line and the remedy.
"""

from __future__ import annotations

import ast
import inspect
import io
import pydoc
import re
import statistics
import subprocess
import sys
import textwrap
import tokenize
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, takewhile
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Lines of code: blank lines and prose are free, or the budgets would be kept by cutting what explains.
FILE_LINES_MAX = 4600
SECTION_LINES_MAX = 430
FUNCTION_LINES_MAX = 60
FUNCTION_LINES_MEDIAN_BELOW = 9
NESTING_MAX = 4
MUTABLE_GLOBALS_MAX = 3

MARKER = re.compile(r"^# ---- (\d+)\. (\S.*?) -{4,}$")
LOOKS_LIKE_A_MARKER = re.compile(r"^#\s*-{3,}\s*\d")
CONTENTS_LINE = re.compile(r"^ {1,4}(\d+) {2,}(\S.*?) {2,}\S")
GLOSSARY_LINE = re.compile(r"^ {1,4}(\w[\w, ]*?) {2,}\S")
SCRIPT_BLOCK = re.compile(r"(?m)^# /// script$\s(?P<content>(^#(| .*)$\s)+)^# ///$")
EXAMPLES_TITLE = "Your bot"

Function = ast.FunctionDef | ast.AsyncFunctionDef
Rule = Callable[["Source"], list[str]]


class Section(NamedTuple):
    """A numbered part of the file; number 0 is what stands above the first marker."""

    number: int
    title: str
    first_line: int
    last_line: int


@dataclass(frozen=True)
class Source:
    """One Python file, looked at as text, tokens and tree."""

    text: str
    name: str = "bot.py"

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def docstring(self) -> str:
        return ast.get_docstring(self.tree, clean=False) or ""

    @cached_property
    def markers(self) -> list[tuple[int, str, int]]:
        """Number, title and line of each section marker."""
        found = ((MARKER.match(line), at) for at, line in enumerate(self.lines, 1))
        return [(int(match[1]), match[2], at) for match, at in found if match]

    @cached_property
    def sections(self) -> list[Section]:
        starts = [marker for marker in self.markers if marker[0] > 0]
        edges = [(0, "Head", 1), *starts, (0, "", len(self.lines) + 1)]
        return [Section(*this, after[2] - 1) for this, after in pairwise(edges)]

    def section_at(self, line: int) -> Section:
        return next(section for section in reversed(self.sections) if section.first_line <= line)

    def prose_of(self, section: Section) -> str:
        """The comment lines directly under the section's marker."""
        return "\n".join(takewhile(re.compile(r"# \S").match, self.lines[section.first_line :]))

    @cached_property
    def functions(self) -> list[Function]:
        return [node for node in ast.walk(self.tree) if isinstance(node, Function)]

    @cached_property
    def code_lines(self) -> set[int]:
        """The lines that hold code: no blank line, no line of comment or docstring alone."""
        prose = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        lines = {at for token in tokens if token.type not in prose for at in range(token.start[0], token.end[0] + 1)}
        for node in ast.walk(self.tree):
            if docstring := docstring_of(node):
                lines.difference_update(range(docstring.lineno, (docstring.end_lineno or 0) + 1))
        return lines

    def code_lines_of(self, node: Function) -> int:
        return self.code_lines_between(node.lineno, node.end_lineno or 0)

    def code_lines_between(self, first: int, last: int) -> int:
        return len(self.code_lines.intersection(range(first, last + 1)))

    def at(self, line: int, complaint: str) -> str:
        return f"{self.name} line {line}: {complaint}"


def docstring_of(node: ast.AST) -> ast.Expr | None:
    """The docstring's statement, when the node has one."""
    if not isinstance(node, ast.Module | ast.ClassDef | Function) or ast.get_docstring(node) is None:
        return None
    first = node.body[0]
    assert isinstance(first, ast.Expr)
    return first


def dotted(node: ast.AST) -> str:
    """`a.b.c` for a name or an attribute of names, else the empty string."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := dotted(node.value)):
        return f"{before}.{node.attr}"
    return ""


def called(node: ast.AST) -> str:
    """The last word of what a call or a decorator names: `freeze` for `@kit.freeze(now=True)`."""
    return dotted(node.func if isinstance(node, ast.Call) else node).rpartition(".")[2]


# ---- Size --------------------------------------------------------------------------------------------------------


def file_too_long(source: Source) -> list[str]:
    count = len(source.code_lines)
    if count <= FILE_LINES_MAX:
        return []
    complaint = f"the file has {count} lines of code, {FILE_LINES_MAX} are allowed. Move a part to extras/."
    return [source.at(len(source.lines), complaint)]


def sections_too_long(source: Source) -> list[str]:
    sizes = [(each, source.code_lines_between(each.first_line, each.last_line)) for each in source.sections]
    rule = f"{SECTION_LINES_MAX} are allowed"
    return [
        source.at(section.first_line, f"section {section.number} has {size} lines of code, {rule}.")
        for section, size in sizes
        if size > SECTION_LINES_MAX
    ]


def functions_too_long(source: Source) -> list[str]:
    sizes = [(node, source.code_lines_of(node)) for node in source.functions]
    return [
        source.at(node.lineno, f"{node.name} has {size} lines of code, {FUNCTION_LINES_MAX} are allowed. Split it.")
        for node, size in sizes
        if size > FUNCTION_LINES_MAX
    ]


def median_function_too_long(source: Source) -> list[str]:
    sizes = sorted((source.code_lines_of(node), node.lineno, node.name) for node in source.functions)
    median = statistics.median(size for size, *_ in sizes) if sizes else 0
    if median < FUNCTION_LINES_MEDIAN_BELOW:
        return []
    longest = ", ".join(f"{name} ({size})" for size, _, name in sizes[:-6:-1])
    complaint = f"the median function has {median} lines of code; below {FUNCTION_LINES_MEDIAN_BELOW}, please."
    return [source.at(sizes[-1][1], f"{complaint} The longest: {longest}.")]


def nested_too_deep(source: Source) -> list[str]:
    found: dict[int, str] = {}
    for node in source.functions:
        for line in lines_below(node, NESTING_MAX):
            found[line] = source.at(line, f"{node.name} nests more than {NESTING_MAX} deep. Return early or split it.")
    return list(found.values())


BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)
INNER = (*BLOCKS, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def lines_below(node: ast.AST, left: int) -> Iterator[int]:
    """The line of each statement that opens one block more than `left` allows; an elif opens none."""
    for child in ast.iter_child_nodes(node):
        opens = isinstance(child, INNER) and not is_elif(node, child)
        if opens and left == 0:
            yield child.lineno  # pyright: ignore[reportAttributeAccessIssue]
        else:
            yield from lines_below(child, left - opens)


def is_elif(parent: ast.AST, child: ast.AST) -> bool:
    return (
        isinstance(parent, ast.If)
        and isinstance(child, ast.If)
        and parent.orelse == [child]
        and child.col_offset == parent.col_offset
    )


# ---- Order -------------------------------------------------------------------------------------------------------


def markers_malformed(source: Source) -> list[str]:
    form = "Write `# ---- 5. Views ----…`, all markers equally long, numbers rising."
    malformed = [
        source.at(at, f"this marker cannot be read. {form}")
        for at, line in enumerate(source.lines, 1)
        if LOOKS_LIKE_A_MARKER.match(line) and not MARKER.match(line)
    ]
    numbers = [number for number, _, _ in source.markers]
    widths = {len(source.lines[at - 1]) for _, _, at in source.markers}
    if not numbers:
        malformed.append(source.at(1, f"there is no section marker. {form}"))
    if numbers != sorted(set(numbers)) or len(widths) > 1:
        malformed.append(source.at(source.markers[0][2], f"numbers are {numbers}, widths {sorted(widths)}. {form}"))
    return malformed


def contents_differ(source: Source) -> list[str]:
    found = map(CONTENTS_LINE.match, source.docstring.splitlines())
    listed = [(int(match[1]), match[2]) for match in found if match]
    marked = [(number, title) for number, title, _ in source.markers]
    if listed == marked and marked:
        return []
    missing = [entry for entry in marked if entry not in listed]
    extra = [entry for entry in listed if entry not in marked]
    return [source.at(1, f"contents and markers differ. Only markers: {missing}; only contents: {extra}.")]


def prose_missing(source: Source) -> list[str]:
    complaints: list[str] = []
    for marker in source.markers:
        prose = len(source.prose_of(Section(*marker, 0)).splitlines())
        if not 2 <= prose <= 4:
            want = "Say in two to four what it is for and what it promises"
            complaints.append(source.at(marker[2], f"section {marker[0]} opens with {prose} lines of comment. {want}."))
    return complaints


def glossary_missing(source: Source) -> list[str]:
    """Between six and twelve words under the line `Glossary`, each of them used in the code."""
    lines = source.docstring.splitlines()
    start = next((at for at, line in enumerate(lines, 1) if line.strip().rstrip(":") == "Glossary"), None)
    if start is None:
        return [source.at(1, "the docstring has no line `Glossary`. Put it above lines of ` word   meaning`.")]
    words = [word for line in lines[start:] if (match := GLOSSARY_LINE.match(line)) for word in match[1].split(", ")]
    below = source.text.replace(source.docstring, "", 1).lower()
    complaints = [
        source.at(start, f"the glossary explains {word!r}, which the code never says. Use it or drop it.")
        for word in words
        if word.lower() not in below
    ]
    if not 6 <= len(words) <= 12:
        complaints.append(source.at(start, f"the glossary has {len(words)} words. About eight, please."))
    return complaints


def used_above_its_section(source: Source) -> list[str]:
    """Names of this file that are read in an earlier section than the one that defines them.

    An annotation may look ahead when the section's opening prose has told the reader of that name.
    """
    defined: dict[str, int] = {}
    for node in module_statements(source.tree):
        for name in names_bound_by(node):
            defined.setdefault(name, node.lineno)
    finder = FreeNames()
    finder.visit(source.tree)
    complaints: dict[tuple[str, int], str] = {}
    for name, line, is_type in finder.found:
        here, there = source.section_at(line), source.section_at(defined.get(name, line))
        told = is_type and re.search(rf"\b{name}\b", source.prose_of(here))
        if there.number > here.number and not told:
            what = f"section {here.number} uses {name}, which section {there.number} defines on line {defined[name]}"
            remedy = "Name it in the section's opening prose" if is_type else "Move it up, or hand it in as an argument"
            complaints[name, here.number] = source.at(line, f"{what}. {remedy}.")
    return list(complaints.values())


def module_statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Every statement at module level, those under if, try and with included."""
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop(0)
        yield node
        if isinstance(node, BLOCKS):
            waiting[:0] = [child for child in ast.walk(node) if isinstance(child, ast.stmt) and child is not node]


def names_bound_by(node: ast.AST) -> Iterator[str]:
    """The names that this node itself binds in the scope it stands in; what is inside functions stays there."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
            return
        case ast.Lambda() | ast.Global() | ast.Nonlocal():
            return
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in names)
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name
        case _:
            pass
    for child in ast.iter_child_nodes(node):
        yield from names_bound_by(child)


class FreeNames(ast.NodeVisitor):
    """Collects the names that are read and that no function or class around them binds: name, line, is it a type."""

    def __init__(self) -> None:
        self.found: list[tuple[str, int, bool]] = []
        self.in_annotation = False
        self.scopes: list[tuple[set[str], bool]] = []

    def visit_Name(self, node: ast.Name) -> None:
        inner = self.scopes[-1][0] if self.scopes else set[str]()
        outer = (names for names, is_class in self.scopes if not is_class)
        if isinstance(node.ctx, ast.Load) and node.id not in inner and not any(node.id in names for names in outer):
            self.found.append((node.id, node.lineno, self.in_annotation))

    def visit_function(self, node: Function) -> None:
        arguments = all_arguments(node.args)
        for outside in (*node.decorator_list, *node.args.defaults, *node.args.kw_defaults):
            if outside is not None:
                self.visit(outside)
        for annotation in (node.returns, *(argument.annotation for argument in arguments)):
            self.visit_annotation(annotation)
        declared = {name for child in ast.walk(node) if isinstance(child, ast.Global) for name in child.names}
        bound = {name for statement in node.body for name in names_bound_by(statement)} - declared
        self.visit_inside(node.body, bound | {argument.arg for argument in arguments}, is_class=False)

    visit_FunctionDef = visit_AsyncFunctionDef = visit_function

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        self.visit_inside([node.body], {argument.arg for argument in all_arguments(node.args)}, is_class=False)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for outside in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(outside)
        self.visit_inside(node.body, {name for child in node.body for name in names_bound_by(child)}, is_class=True)

    def visit_comprehension_scope(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        targets = {name for part in node.generators for name in names_bound_by(part.target)}
        self.visit_inside(list(ast.iter_child_nodes(node)), targets, is_class=False)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_comprehension_scope

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit_annotation(node.annotation)
        for part in (node.target, node.value):
            if part is not None:
                self.visit(part)

    def visit_annotation(self, node: ast.expr | None) -> None:
        """Look into quoted annotations too: quotes do not make a look-ahead easier to read."""
        self.in_annotation = True
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            self.visit(ast.increment_lineno(ast.parse(node.value, mode="eval"), node.lineno - 1))
        elif node is not None:
            self.visit(node)
        self.in_annotation = False

    def visit_inside(self, body: Sequence[ast.AST], names: set[str], *, is_class: bool) -> None:
        self.scopes.append((names, is_class))
        for statement in body:
            self.visit(statement)
        self.scopes.pop()


def all_arguments(args: ast.arguments) -> list[ast.arg]:
    starred = [argument for argument in (args.vararg, args.kwarg) if argument is not None]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *starred]


# ---- Documentation and types -------------------------------------------------------------------------------------


def undocumented(source: Source) -> list[str]:
    """Public classes, functions and methods without a docstring that begins with a sentence.

    A method that overrides a documented one needs none, nor does an overload, nor a property's setter. In the section
    that the reader replaces, neither do the methods of an example, nor a command, whose mark says what it is for.
    """
    classes = {node.name: node for node in source.tree.body if isinstance(node, ast.ClassDef)}
    complaints: list[str] = []
    for node, owner in public_definitions(source.tree):
        marks = set(map(called, node.decorator_list))
        in_examples = source.section_at(node.lineno).title == EXAMPLES_TITLE
        is_example = in_examples and (owner is not None or "command" in marks)
        is_second = marks & {"overload", "setter", "deleter"}
        if is_example or is_second or (owner and is_documented_above(node.name, owner, classes)):
            continue
        first = (ast.get_docstring(node) or "").partition("\n")[0]
        if not first:
            complaints.append(source.at(node.lineno, f"{node.name} is public and has no docstring. Say what one gets."))
        elif first[-1] not in ".:?":
            no_sentence = f"the first line on {node.name} is no sentence. End it with a full stop."
            complaints.append(source.at(node.lineno + 1, no_sentence))
    return complaints


def public_definitions(
    owner: ast.Module | ast.ClassDef,
) -> Iterator[tuple[Function | ast.ClassDef, ast.ClassDef | None]]:
    """Each public function and class with the class it stands in; private classes are not entered."""
    for node in owner.body:
        if isinstance(node, ast.ClassDef | Function) and not node.name.startswith("_"):
            yield node, owner if isinstance(owner, ast.ClassDef) else None
            if isinstance(node, ast.ClassDef):
                yield from public_definitions(node)


def is_documented_above(name: str, owner: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> bool:
    """True when a base of the class, in this file or in a library, documents a method of that name."""
    bases = [classes[base] for base in map(called, owner.bases) if base in classes and base != owner.name]
    libraries = [pydoc.locate(base) for base in map(dotted, owner.bases) if "." in base]
    return any(inspect.getdoc(getattr(library, name, None)) for library in libraries) or any(
        is_documented_above(name, base, classes)
        or any(isinstance(node, Function) and node.name == name and docstring_of(node) for node in base.body)
        for base in bases
    )


def unannotated(source: Source) -> list[str]:
    methods = {
        node
        for owner in ast.walk(source.tree)
        if isinstance(owner, ast.ClassDef)
        for node in owner.body
        if isinstance(node, Function) and not any(called(mark) == "staticmethod" for mark in node.decorator_list)
    }
    complaints: list[str] = []
    for node in source.functions:
        arguments = all_arguments(node.args)[node in methods :]
        bare = [argument.arg for argument in arguments if argument.annotation is None]
        bare += ["the result"] if node.returns is None else []
        if bare:
            complaints.append(source.at(node.lineno, f"{node.name} has no type for {', '.join(bare)}. Annotate it."))
    return complaints


# ---- State and imports -------------------------------------------------------------------------------------------

HARMLESS_CALLS = {
    "frozenset", "tuple", "str", "int", "float", "bytes", "MappingProxyType", "compile", "timedelta", "Struct",
    "getLogger", "Encoder", "Decoder", "NewType", "TypeVar", "TypeVarTuple", "ParamSpec", "NamedTuple", "namedtuple",
    "Path", "PurePath", "Enum", "IntEnum", "StrEnum", "version", "object", "min", "max",
}  # fmt: skip


def mutable_globals(source: Source) -> list[str]:
    """More module-level names with a changeable value, or rebound with `global`, than are allowed."""
    frozen = {node.name for node in ast.walk(source.tree) if isinstance(node, ast.ClassDef) and is_frozen(node)}
    harmless = HARMLESS_CALLS | frozen
    found: dict[str, int] = {}
    for node in module_statements(source.tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value and not is_fixed(node.value, harmless):
            names = [name for name in names_bound_by(node) if name != "__all__"]
            found.update(dict.fromkeys(names, node.lineno))
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Global):
            found.update(dict.fromkeys(node.names, node.lineno))
    if len(found) <= MUTABLE_GLOBALS_MAX:
        return []
    listed = ", ".join(f"{name} (line {line})" for name, line in sorted(found.items(), key=lambda item: item[1]))
    remedy = "Use a tuple, a frozenset or MappingProxyType, or keep it in an object that someone owns"
    complaint = f"{len(found)} mutable module globals, {MUTABLE_GLOBALS_MAX} are allowed: {listed}. {remedy}."
    return [source.at(max(found.values()), complaint)]


def is_frozen(node: ast.ClassDef) -> bool:
    """True for a dataclass or Struct with frozen=True, a NamedTuple and an Enum."""
    calls = [mark for mark in node.decorator_list if isinstance(mark, ast.Call)]
    keywords = [*node.keywords, *(keyword for call in calls for keyword in call.keywords)]
    says_so = any(
        word.arg == "frozen" and isinstance(word.value, ast.Constant) and word.value.value is True for word in keywords
    )
    return says_so or any(called(base) in {"NamedTuple", "Enum", "IntEnum", "StrEnum", "Flag"} for base in node.bases)


def is_fixed(node: ast.expr, harmless: set[str]) -> bool:
    """True when nothing can change the value: constants, tuples, type aliases, and calls known to give such."""
    match node:
        case ast.Constant() | ast.Name() | ast.Attribute() | ast.Subscript() | ast.Lambda() | ast.JoinedStr():
            return True
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp() | ast.BinOp() | ast.IfExp() | ast.Tuple() | ast.Starred():
            parts = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
            return all(is_fixed(part, harmless) for part in parts)
        case ast.Call():
            return called(node) in harmless
        case _:
            return False


def imports(source: Source) -> Iterator[tuple[str, int, bool]]:
    """The first word of each imported module, its line, and whether importing this file runs it."""
    late = {child for function in source.functions for child in ast.walk(function)}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], node.lineno, node not in late) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield ("." if node.level else (node.module or "").partition(".")[0]), node.lineno, node not in late


def strange_imports(source: Source) -> list[str]:
    """Anything imported besides the standard library and requirements.txt.

    In functions playground and extras too, nacl (which hikari[server] brings) and prometheus_client, if it is there.
    """
    packages = {re.split(r"[\[<>=~! ;]", line)[0] for line in requirement_lines(ROOT / "requirements.txt")}
    known = sys.stdlib_module_names | {name.removeprefix("python-") for name in packages}
    return [
        source.at(line, f"{name} is imported. Only requirements.txt, the standard library, and late playground/extras.")
        for name, line, early in imports(source)
        if name not in known and (early or name not in {"playground", "extras", "nacl", "prometheus_client"})
    ]


def names_from_modules(source: Source) -> list[str]:
    """Uses of `__module__`, and of `__name__` other than to ask whether this is `__main__` or to find the module."""
    remedy = "It changes when bot.py is run as a script. Write the name out."
    asking = [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Compare) or (isinstance(node, ast.Subscript) and dotted(node.value) == "sys.modules")
    ]
    allowed = {part for node in asking for part in ast.walk(node)}
    complaints: list[str] = []
    for node in ast.walk(source.tree):
        match node:
            case ast.Attribute(attr="__module__") | ast.Constant(value="__module__") | ast.Name(id="__module__"):
                complaints.append(source.at(node.lineno, f"__module__ is used. {remedy}"))
            case ast.Name(id="__name__") if node not in allowed:
                complaints.append(source.at(node.lineno, f"__name__ is used as a name. {remedy}"))
            case _:
                pass
    return complaints


def requirement_lines(path: Path) -> list[str]:
    """The requirements in a requirements file, without its comments and options."""
    lines = (line.partition("#")[0].strip() for line in path.read_text("utf-8").splitlines())
    return sorted(line for line in lines if line and not line.startswith("-"))


def script_block_differs(source: Source) -> list[str]:
    """The PEP 723 block must ask for the lines of requirements.txt and the Python of pyproject.toml."""
    match = SCRIPT_BLOCK.search(source.text)
    if match is None:
        return [source.at(1, "there is no `# /// script` block. Put it above the docstring.")]
    block = tomllib.loads("".join(line[2:] for line in match["content"].splitlines(keepends=True)))
    line = source.text[: match.start()].count("\n") + 1
    asked = sorted(block.get("dependencies", []))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    complaints: list[str] = []
    if asked != (wanted := requirement_lines(ROOT / "requirements.txt")):
        complaints.append(source.at(line, f"the script block asks for {asked}, requirements.txt for {wanted}."))
    if block.get("requires-python") != project["requires-python"]:
        complaints.append(source.at(line, f"requires-python is {project['requires-python']} in pyproject.toml."))
    return complaints


IMPORT_AND_WATCH = """
import gc, logging, os, sys, threading
import aiohttp, aiosqlite, asyncio, dotenv, hikari, msgspec, sqlite3, ssl
seen = []
calls = {"socket.__new__", "socket.connect", "socket.bind", "sqlite3.connect", "subprocess.Popen", "os.system",
         "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.exec", "os.fork", "os.posix_spawn"}
def watch(event, args):
    if event in calls:
        seen.append(f"{event} {args[-1:]!r}")
    if event == "open" and isinstance(args[0], str):
        writes = args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if writes or not args[0].endswith((".py", ".pyc", ".so", ".pyd")):
            seen.append(f"open {args[0]}")
handlers = list(logging.getLogger().handlers)
sys.addaudithook(watch)
import bot
found, seen = seen, []
clients = {hikari.GatewayBot, hikari.RESTBot, hikari.impl.RESTApp, aiohttp.ClientSession, asyncio.AbstractEventLoop}
found += [f"made {type(thing).__name__}" for thing in gc.get_objects() if clients.intersection(type(thing).__mro__)]
found += [f"started {thread.name}" for thread in threading.enumerate()[1:]]
found += ["a log handler was added"] if logging.getLogger().handlers != handlers else []
found += [f"imported {name}" for name in sys.modules if name.partition(".")[0] in ("playground", "extras")]
print(*found, sep="\\n", end="")
"""


def does_something_when_imported(folder: Path) -> list[str]:
    """What importing the bot.py in this folder opened, made, started or printed, seen from inside a fresh Python."""
    command = [sys.executable, "-B", "-c", IMPORT_AND_WATCH]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    complaints = [*done.stdout.splitlines(), *done.stderr.splitlines()]
    return [f"bot.py, when imported: {line}. Move it into a function." for line in complaints]


def machine_paths(name: str, text: str) -> list[str]:
    """Absolute paths of one particular machine, which mean nothing on the reader's."""
    places = ["work/(main|shared|[.])", "root/", "opt/(wheels|pypi)", "tmp/(brief|venv-)", r"\S*[.]pyenv/"]
    pattern = re.compile(rf"(?<![\w.])/({'|'.join(places)})")
    return [
        f"{name} line {line}: {match[0]} is a path of one machine. Make it relative."
        for line, content in enumerate(text.splitlines(), 1)
        for match in pattern.finditer(content)
    ]


def tracked_texts() -> Iterator[tuple[str, str]]:
    """Name and text of each file in git; pictures and the like are skipped."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        content = path.read_bytes() if path.is_file() else b"\0"
        if b"\0" not in content:
            yield name, content.decode("utf-8")


# ---- The rules, applied ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bot() -> Source:
    return Source((ROOT / "bot.py").read_text("utf-8"))


def assert_none(complaints: list[str]) -> None:
    assert not complaints, "\n" + "\n".join(complaints)


def test_the_file_never_passes_its_budget_of_lines_of_code(bot: Source) -> None:
    assert_none(file_too_long(bot))


def test_no_section_passes_its_budget_of_lines_of_code(bot: Source) -> None:
    assert_none(sections_too_long(bot))


def test_no_function_passes_sixty_lines_of_code(bot: Source) -> None:
    assert_none(functions_too_long(bot))


def test_the_median_function_has_fewer_than_nine_lines_of_code(bot: Source) -> None:
    assert_none(median_function_too_long(bot))


def test_nothing_nests_more_than_four_deep(bot: Source) -> None:
    assert_none(nested_too_deep(bot))


def test_section_markers_have_one_form_and_rise(bot: Source) -> None:
    assert_none(markers_malformed(bot))


def test_the_contents_list_is_equal_to_the_markers(bot: Source) -> None:
    assert_none(contents_differ(bot))


def test_each_section_opens_with_two_to_four_lines_of_prose(bot: Source) -> None:
    assert_none(prose_missing(bot))


def test_the_docstring_has_a_glossary_of_words_that_the_code_uses(bot: Source) -> None:
    assert_none(glossary_missing(bot))


def test_no_name_is_used_above_the_section_that_defines_it(bot: Source) -> None:
    assert_none(used_above_its_section(bot))


def test_every_public_name_is_documented(bot: Source) -> None:
    assert_none(undocumented(bot))


def test_every_function_is_annotated(bot: Source) -> None:
    assert_none(unannotated(bot))


def test_at_most_three_module_globals_can_change(bot: Source) -> None:
    assert_none(mutable_globals(bot))


def test_only_the_five_dependencies_and_the_standard_library_are_imported(bot: Source) -> None:
    assert_none(strange_imports(bot))


def test_no_name_comes_from_the_module_a_thing_stands_in(bot: Source) -> None:
    assert_none(names_from_modules(bot))


def test_the_script_block_is_equal_to_the_requirements(bot: Source) -> None:
    assert_none(script_block_differs(bot))


def test_importing_the_bot_does_nothing() -> None:
    assert_none(does_something_when_imported(ROOT))


def test_no_tracked_file_mentions_the_paths_of_one_machine() -> None:
    assert_none([complaint for name, text in tracked_texts() for complaint in machine_paths(name, text)])


@pytest.mark.parametrize("path", sorted((ROOT / "playground").glob("*.py")), ids=lambda path: path.name)
def test_the_playground_keeps_its_functions_short_flat_and_annotated(path: Path) -> None:
    source = Source(path.read_text("utf-8"), f"playground/{path.name}")
    assert_none([*functions_too_long(source), *nested_too_deep(source), *unannotated(source)])


# ---- The rules, tried on bad text --------------------------------------------------------------------------------

GOOD = '''\
# /// script
# requires-python = ">=3.11"
# dependencies = [
REQUIREMENTS
# ]
# ///
"""A bot.

Contents
  1  Shapes    what is drawn
  2  Running   what draws it

Glossary
  shape     what is drawn
  line      between two points
  point     a place
  pen       what draws
  paper     what is drawn on
  colour    of the pen
"""

import re

PENS = ("line", "point")

# ---- 1. Shapes ---------------------
# A shape is drawn with a pen.
# It has a colour, and lies on paper.


class Shape:
    """A shape."""

    def draw(self, pen: str) -> str:
        """Return the drawing."""
        return pen


class Round(Shape):
    """A round one."""

    def draw(self, pen: str) -> str:
        return pen * 2

# ---- 2. Running --------------------
# Runs it all, from the first line
# to the last.


def main() -> None:
    """Draw."""
    Shape().draw(re.escape(PENS[0]))
'''.replace("REQUIREMENTS", "\n".join(f'#     "{line}",' for line in requirement_lines(ROOT / "requirements.txt")))

RULES: list[Rule] = [
    file_too_long, sections_too_long, functions_too_long, median_function_too_long, nested_too_deep, markers_malformed,
    contents_differ, prose_missing, glossary_missing, used_above_its_section, undocumented, unannotated,
    mutable_globals, strange_imports, names_from_modules, script_block_differs,
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_good_text_passes(rule: Rule) -> None:
    assert rule(Source(GOOD)) == []


def deep(levels: int) -> str:
    """A function with so many ifs inside one another."""
    opened = [f"{'    ' * depth}if x:\n" for depth in range(1, levels + 1)]
    return f"def f(x: int) -> None:\n{''.join(opened)}{'    ' * (levels + 1)}pass\n"


def long(lines: int) -> str:
    return "def f() -> None:\n" + "    print()\n" * (lines - 1)


BAD: list[tuple[Rule, str, str]] = [
    (file_too_long, "pass\n" * 4601, "line 4601: the file has 4601 lines of code"),
    (sections_too_long, GOOD + "x = 1\n" * 430, "section 2 has 432 lines of code"),
    (sections_too_long, "pass\n" * 431 + GOOD, "section 0 has"),
    (functions_too_long, long(61), "line 1: f has 61 lines"),
    (median_function_too_long, long(3) + long(9) + long(20), "median function has 9"),
    (nested_too_deep, deep(5), "line 6: f nests"),
    (nested_too_deep, "def f() -> None:\n" + textwrap.indent(deep(4), "    "), "line 6: f nests"),
    (markers_malformed, "x = 1\n", "no section marker"),
    (markers_malformed, GOOD.replace("# ---- 2. R", "# --- 2. R"), "cannot be read"),
    (markers_malformed, GOOD.replace("2. Running ---", "2. Running "), "widths"),
    (markers_malformed, GOOD.replace("# ---- 2.", "# ---- 1."), "numbers are [1, 1]"),
    (contents_differ, GOOD.replace("1  Shapes", "1  Forms"), "only contents: [(1, 'Forms')]"),
    (contents_differ, GOOD.replace("  2  Running   what draws it\n", ""), "Only markers: [(2, 'Running')]"),
    (prose_missing, GOOD.replace("# It has a colour, and lies on paper.\n", ""), "opens with 1 lines"),
    (prose_missing, GOOD.replace("# to the last.\n", "# x\n" * 4), "opens with 5 lines"),
    (glossary_missing, GOOD.replace("Glossary", "Words"), "no line `Glossary`"),
    (glossary_missing, GOOD.replace("  pen  ", "  ink  "), "explains 'ink'"),
    (glossary_missing, GOOD.replace("  pen       what draws\n", ""), "has 5 words"),
    (used_above_its_section, GOOD.replace("PENS = (", "PENS = (main, "), "section 0 uses main, which section 2"),
    (used_above_its_section, GOOD.replace("return pen\n", "return main(pen)\n"), "section 1 uses main"),
    (used_above_its_section, GOOD.replace("return pen\n", "return [main for _ in pen]\n"), "section 1 uses main"),
    (used_above_its_section, GOOD.replace("return pen\n", "return lambda: main\n"), "section 1 uses main"),
    (used_above_its_section, GOOD.replace("class Round(Shape", "class Round(main"), "section 1 uses main"),
    (used_above_its_section, GOOD.replace("pen: str", "pen: main"), "section 1 uses main"),
    (used_above_its_section, GOOD.replace("pen: str", "pen: 'main | None'"), "section 1 uses main"),
    (used_above_its_section, GOOD.replace("return pen\n", "return main\n\n    main = 1\n"), "section 1 uses main"),
    (used_above_its_section, GOOD.replace("return pen\n", "return main\n").replace("a colour", "main"), "uses main"),
    (used_above_its_section, GOOD.replace("pen: str", "pen: main").replace("a colour", "mains"), "uses main"),
    (undocumented, 'class A:\n    """A."""\n    def b(self) -> None: ...\n', "line 3: b is public"),
    (undocumented, 'async def b() -> None:\n    """Do b"""\n', "line 2: the first line on b is no sentence"),
    (undocumented, GOOD.replace("(Shape)", ""), "draw is public"),
    (undocumented, GOOD.replace("(Shape)", "(json.JSONEncoder)"), "draw is public"),
    (undocumented, "# ---- 1. Your bot ----\nasync def a() -> None: ...\n", "a is public"),
    (undocumented, "# ---- 1. Your bot ----\nclass A:\n    def b(self) -> None: ...\n", "A is public"),
    (unannotated, "def f(a, *b, c: int, **d) -> None: ...\n", "line 1: f has no type for a, b, d"),
    (unannotated, "class A:\n    def f(self, a: int): ...\n", "f has no type for the result"),
    (unannotated, "class A:\n    @staticmethod\n    def f(a) -> int: ...\n", "f has no type for a"),
    (mutable_globals, "a = []\nB = {}\nif a:\n    c: set[int] = set()\nd = e = Thing()\n", "5 mutable module globals"),
    (mutable_globals, "a = b = None\ndef f() -> None:\n    global a, b, c, d\n    a = 1\n", "4 mutable module globals"),
    (mutable_globals, "class A:\n    pass\na, b, c, d = A(), A(), (1, [2]), 3\n", "4 mutable module globals"),
    (strange_imports, "import requests\n", "line 1: requests is imported"),
    (strange_imports, "try:\n    from playground import Discord\nexcept ImportError: pass\n", "line 2: playground"),
    (strange_imports, "def f() -> None:\n    import numpy.linalg\n", "line 2: numpy"),
    (strange_imports, "from . import helper\n", "line 1: . is imported"),
    (names_from_modules, "def f(cls: type) -> str:\n    return cls.__module__\n", "line 2: __module__"),
    (names_from_modules, "def f(cls: type) -> str:\n    return getattr(cls, '__module__')\n", "line 2: __module__"),
    (names_from_modules, "log = getLogger(__name__)\n", "line 1: __name__"),
    (script_block_differs, "import re\n", "no `# /// script` block"),
    (script_block_differs, GOOD.replace('#     "aiosqlite', '#     "biosqlite'), "line 1: the script block asks for"),
    (script_block_differs, GOOD.replace(">=3.11", ">=3.8"), "requires-python is >=3.11"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "text", "complaint"), BAD, ids=lambda value: getattr(value, "__name__", ""))
def test_bad_text_is_named_with_its_line(rule: Rule, text: str, complaint: str) -> None:
    assert complaint in "\n".join(rule(Source(text)))


def test_every_rule_was_tried_on_bad_text() -> None:
    assert {rule for rule, _, _ in BAD} == set(RULES)


ALLOWED: list[tuple[Rule, str]] = [
    (undocumented, GOOD.replace("class Round(Shape)", "class Round(json.JSONEncoder)").replace("draw(", "encode(")),
    (undocumented, "# ---- 1. Your bot ----\n@command('a', 'Do a.')\nasync def a() -> None: ...\n"),
    (undocumented, '# ---- 1. Your bot ----\nclass A:\n    """A."""\n    def b(self) -> None: ...\n'),
    (nested_too_deep, deep(4)),
    (nested_too_deep, "def f(x: int) -> None:\n    if x: pass\n" + "    elif x: pass\n" * 9),
    (functions_too_long, long(60).replace("print()", "print()  # why\n\n    # why\n")),
    (functions_too_long, "def f() -> None:\n" + '    """One.\n' + "    x\n" * 80 + '    """\n'),
    (undocumented, "def _f() -> None: ...\nclass _A:\n    def b(self) -> None: ...\n"),
    (used_above_its_section, GOOD.replace("return pen\n", "main = 1\n        return main\n")),
    (used_above_its_section, GOOD.replace("return pen\n", "return [main for main in pen]\n")),
    (used_above_its_section, GOOD.replace("return pen\n", "return lambda main: main.pen\n")),
    (used_above_its_section, GOOD.replace("return pen\n", "return self.main(main=pen)\n")),
    (used_above_its_section, GOOD.replace("pen: str", "pen: main").replace("has a colour", "calls main")),
    (mutable_globals, "A = 1\nB = (1, -2)\nC = re.compile('x')\nD = frozenset({1})\nE = dict[str, int]\nf = []\n"),
    (mutable_globals, "@dataclass(frozen=True)\nclass A: ...\na = A()\nb = A()\nc = A()\nd = A()\n"),
    (strange_imports, "def f() -> None:\n    from playground import main\n"),
    (names_from_modules, "sys.modules.setdefault('bot', sys.modules[__name__])\n"),
    (names_from_modules, "if __name__ == '__main__':\n    print(type(1).__name__)\n"),
]


@pytest.mark.parametrize(("rule", "text"), ALLOWED, ids=lambda value: getattr(value, "__name__", ""))
def test_text_at_the_edge_of_a_rule_passes(rule: Rule, text: str) -> None:
    assert rule(Source(text)) == []


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("pass", None),
        ("open('config.env')", "open config.env"),
        ("open('new.db', 'wb')", "open new.db"),
        ("import sqlite3; sqlite3.connect(':memory:')", "sqlite3.connect"),
        ("import socket; socket.socket()", "socket.__new__"),
        ("import subprocess; subprocess.run(['true'])", "subprocess.Popen"),
        ("import asyncio; loop = asyncio.new_event_loop()", "EventLoop"),
        ("import hikari; app = hikari.GatewayBot('MTIz.x.y', banner=None)", "made GatewayBot"),
        ("import logging; logging.basicConfig()", "a log handler was added"),
        ("print('hello')", "hello"),
        ("import playground", "imported playground"),
    ],
)
def test_what_an_import_does_is_seen(tmp_path: Path, line: str, complaint: str | None) -> None:
    (tmp_path / "config.env").write_text("")
    (tmp_path / "playground.py").write_text("")
    (tmp_path / "bot.py").write_text(f"{line}\n")
    found = "\n".join(does_something_when_imported(tmp_path))
    assert complaint in found if complaint else found == ""


@pytest.mark.parametrize("place", ["work/shared/x", "root/x", "opt/wheels", "tmp/venv-x", "home/me/.pyenv/shims"])
def test_a_path_of_one_machine_is_seen(place: str) -> None:
    assert machine_paths("a.md", f"first\nsee /{place}") != []
    assert machine_paths("a.md", "see ./work/shared, https://example.org/root/ and /usr/bin/chromium") == []
