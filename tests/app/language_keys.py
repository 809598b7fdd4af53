"""What the page says, found in the sources: keys of t`...`, texts(...), and of Python."""

import ast
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
APP = ROOT / "app"
FIXED = 8
"""Fewest characters beside its values of a pattern; as in language.js."""
_COMMENT = re.compile(r"^\s*(//|/\*|\*).*$", re.M)
_TAGGED = re.compile(r"(?<![\w$.])t`")
_TABLE = re.compile(r"(?<![\w$.])texts\(")
_SAID = re.compile(r"(?<![\w$.])(?:message|say)\((?=['\"])")
_ESCAPES = {"n": "\n", "t": "\t"}


def is_prose(text: str) -> bool:
    """Whether a text has letters: signs and numbers are the same in every language."""
    return any(letter.isalpha() for letter in re.sub(r"\{\d\}", "", text))


# --- JavaScript ------------------------------------------------------------------------------


@cache
def script_keys(path: Path) -> dict[str, int]:
    """Every key that a script looks up, with the line it stands in."""
    source = _COMMENT.sub(lambda found: " " * len(found[0]), path.read_text("utf-8"))
    found: dict[str, int] = {}

    def add(key: str, at: int) -> None:
        if is_prose(key):
            found.setdefault(key, source.count("\n", 0, at) + 1)

    for match in _TAGGED.finditer(source):
        add(_template(source, match.end())[0], match.start())
    for match in _TABLE.finditer(source):
        for key in _table(source, match.end()):
            add(key, match.start())
    for match in _SAID.finditer(source):
        add(_quoted(source, match.end())[0], match.start())
    return found


def _template(source: str, at: int) -> tuple[str, int]:
    """The key of a template literal from behind its backtick; values become {0}, {1}, ..."""
    key, values = "", 0
    while source[at] != "`":
        if source.startswith("${", at):
            key, values, at = f"{key}{{{values}}}", values + 1, _expression(source, at + 2)
        elif source[at] == "\\":
            key, at = key + _ESCAPES.get(source[at + 1], source[at + 1]), at + 2
        else:
            key, at = key + source[at], at + 1
    return key, at + 1


def _expression(source: str, at: int) -> int:
    """The place behind the brace that closes an expression."""
    depth = 1
    while depth:
        at = _step(source, at)
        depth += {"{": 1, "}": -1}.get(source[at - 1], 0) if _plain(source, at - 1) else 0
    return at


def _step(source: str, at: int) -> int:
    """Behind one character, or behind a whole string."""
    if source[at] == "`":
        return _template(source, at + 1)[1]
    return _quoted(source, at)[1] if source[at] in "'\"" else at + 1


def _plain(source: str, at: int) -> bool:
    return source[at] not in "`'\""


def _quoted(source: str, at: int) -> tuple[str, int]:
    """A string in quotes, and the place behind it."""
    quote, text = source[at], ""
    at += 1
    while source[at] != quote:
        if source[at] == "\\":
            text, at = text + _ESCAPES.get(source[at + 1], source[at + 1]), at + 2
        else:
            text, at = text + source[at], at + 1
    return text, at + 1


def _table(source: str, at: int) -> Iterator[str]:
    """Texts of ``texts(...)``; names of fields and bodies of functions are none."""
    if name := re.match(r"(\w+)\)", source[at:]):
        made = re.search(rf"const {name[1]} = (?=[\[{{])", source)
        at = made.end() if made else len(source)
    depth, running = 0, ""
    while at < len(source) and depth >= 0:
        sign = source[at]
        if sign in "'\"`":
            text, at = _template(source, at + 1) if sign == "`" else _quoted(source, at)
            rest = source[at : at + 200].lstrip()
            running += text
            if rest.startswith("+"):
                at += source[at : at + 200].index("+") + 1
                continue
            if not rest.startswith(":"):
                yield running
            running = ""
        elif source.startswith("=>", at):
            at = _body(source, at + 2)
        else:
            depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(sign, 0)
            at += 1
        if name and depth == 0 and source[at - 1] in "]}":
            return


def _body(source: str, at: int) -> int:
    """The end of the body of an arrow function: a comma or a closing bracket."""
    depth = 0
    while depth or source[at] not in ",)]}":
        if _plain(source, at):
            depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(source[at], 0)
        at = _step(source, at)
    return at


# --- Python ----------------------------------------------------------------------------------


def sources(*folders: str) -> list[Path]:
    """The Python files below some folders."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def pattern(node: ast.expr) -> str | None:
    """The key of a text in a program; None where it is not written there."""
    parts = _parts(node)
    if not any(isinstance(part, str) for part in parts):
        return None
    values = iter(range(10_000))
    return "".join(part if isinstance(part, str) else f"{{{next(values)}}}" for part in parts)


def _parts(node: ast.expr) -> list[str | None]:
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else [None]
    if isinstance(node, ast.JoinedStr):
        return [part for value in node.values for part in _parts(value)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _parts(node.left) + _parts(node.right)
    return [None]


def _inner(node: ast.expr) -> Iterator[ast.expr]:
    """What a text is put together from; values of an f-string are texts of their own."""
    if isinstance(node, ast.JoinedStr):
        yield from (value for value in node.values if isinstance(value, ast.Constant))
    elif isinstance(node, ast.BinOp):
        for side in (node.left, node.right):
            yield side
            yield from _inner(side)


REFUSALS = ("InputError", "BusyError", "DamagedError", "InsteadError", "UnreachableError")


@cache
def raised(path: Path) -> dict[str, int]:
    """Messages of InputError, and of what is one, that a file raises, with their lines."""
    found: dict[str, int] = {}
    for node in ast.walk(_parsed(path)):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else None
        text = pattern(node.args[0]) if name in REFUSALS else None
        if text and is_prose(text):
            found[text] = node.lineno
    return found


@cache
def worded(path: Path) -> dict[str, int]:
    """Keys of the ``Wording`` texts in a file, with their lines.

    One that is put together while the program runs, so that no catalogue can hold it, stands there
    as its code.
    """
    found: dict[str, int] = {}
    for node in ast.walk(_parsed(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            if name == "Wording":
                key = node.args[0]
                written = isinstance(key, ast.Constant)
                found.setdefault(str(key.value) if written else ast.unparse(key), node.lineno)
    return found


def written(paths: Iterable[Path]) -> set[str]:
    """Every text in some programs, f-strings as patterns."""
    found = set()
    for path in paths:
        tree = _parsed(path)
        inner = {
            id(child)
            for node in ast.walk(tree)
            if isinstance(node, ast.JoinedStr | ast.BinOp)
            for child in _inner(node)
        }
        for node in ast.walk(tree):
            if id(node) in inner or not isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp):
                continue
            if text := pattern(node):
                # The text below a setting is its help on the page, in one line.
                found |= {text, " ".join(text.split())}
    return found


def longest(text: str) -> str:
    """The longest part of a text between its values."""
    return max(re.split(r"\{\d+\}", text), key=len)


def data_texts() -> set[str]:
    """Texts of the shipped recipes, task sets and cards that the page shows."""
    found: set[str] = set()

    def walk(value: object) -> None:
        if isinstance(value, str):
            found.add(value)
        elif isinstance(value, dict | list):
            for each in value.values() if isinstance(value, dict) else value:
                walk(each)

    for path in (ROOT / "assets").rglob("*.json"):
        inside = path.relative_to(ROOT / "assets").parts[0]
        if inside not in ("models", "tokenizers") and path.stat().st_size < 1 << 16:
            walk(json.loads(path.read_text("utf-8")))
            found.add(path.stem.replace("-", " ").capitalize())
    for path in (ROOT / "assets" / "models").glob("*/evaluation.json"):
        found.add(json.loads(path.read_text("utf-8"))["run"].get("note", ""))
    return found


def expression(text: str) -> re.Pattern[str]:
    """What a pattern with values in it matches."""
    return re.compile("(?s:.*)".join(map(re.escape, re.split(r"\{\d+\}", text))))
