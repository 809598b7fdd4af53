"""Text files as documents, a document being a list of sentences.

A file is plain text or text compressed by xz or gzip, in UTF-8, with a blank line between
documents. A line holds one sentence, or one paragraph that is split here (English and Chinese).
Other kinds of sources are read by `core_models.data.sources`.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from core_models.data.files import COMPRESSED, lines
from core_models.errors import InputError

ENDINGS = tuple(f".txt{packed}" for packed in COMPRESSED)
"""Names of text files end so."""

_CLOSING = "\"'\u201d\u2019)\\]\u300d\u300f\uff09\u300b\u3011\u3009"
_CJK_END = "\u3002\uff01\uff1f\u2026"
_GOES_ON = "\uff0c\u3001\uff1b\uff1a,;:"
# An end mark with its closing quotes, then either a blank and something that can start a
# sentence, or (full-width marks) anything but a comma and its like. No backtracking: it would find
# an end before the closing quotes. Of a run of marks only the first is tried, or a line of dots
# would take time that grows with the square of its length.
_BOUNDARY = re.compile(
    rf"(?:(?<![.!?])[.!?]++[{_CLOSING}]*+(?=\s+[\"'(\[\u201c\u2018]*[A-Z0-9\u4e00-\u9fff])\s+"
    rf"|(?<=[\u4e00-\u9fff])[!?]++[{_CLOSING}]*+(?![{_GOES_ON}])\s*"
    rf"|(?<![{_CJK_END}])[{_CJK_END}]++[{_CLOSING}]*+(?![{_GOES_ON}])\s*)"
)
_ABBREVIATION = re.compile(
    r"""(?ix) (?:[A-Z]\.)*[A-Z]  # initials and e.g., U.S., but see "I" below
    | mr|mrs|ms|dr|prof|st|sr|jr|rev|hon|gen|col|capt|lt|sgt|gov|sen|rep|pres|messrs|mme|mlle
    | nos?|vols?|figs?|eqs?|chs?|pp|eds?|vs|cf|al|approx|dept|est|inc|ltd|co|corp|mt|ft|viz
    | jan|feb|mar|apr|jun|jul|aug|sept|oct|nov|dec|ph\.d
    """
)
_LONGEST_ABBREVIATION = 40
"""Characters; nobody has more initials."""
_LAST_WORD = re.compile(r"([A-Za-z](?:[A-Za-z.]*[A-Za-z])?)\.$")


def read(paths: Iterable[str | Path], *, paragraphs: bool = False) -> Iterator[list[str]]:
    """Read documents one after the other.

    Args:
        paths: Files ending in .txt, .txt.gz or .txt.xz, and folders of them (in order of name).
        paragraphs: A line is a paragraph, to be split into sentences; False = a sentence.

    Yields:
        The non-blank sentences of one document, at least one. A file end ends a document.

    Raises:
        InputError: A path is missing, has another ending, or does not hold UTF-8 text.
    """
    for file in files(paths):
        yield from parted(lines(file), paragraphs=paragraphs)


def files(paths: Iterable[str | Path]) -> list[Path]:
    """The text files that paths and folders stand for.

    Raises:
        InputError: A path is missing, has another ending, or is a folder without text files.
    """
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            inside = sorted(p for p in path.iterdir() if p.is_file() and _is_text(p))
            if not inside:
                raise InputError(f"{path} holds no .txt or .txt.xz file.")
            found += inside
        elif not path.is_file():
            raise InputError(f"{path} does not exist; give a .txt or .txt.xz file or a folder.")
        elif not _is_text(path):
            raise InputError(f"{path.name} is no .txt or .txt.xz file; convert it to plain text.")
        else:
            found.append(path)
    return found


def fingerprint(paths: Iterable[str | Path], *, paragraphs: bool = False) -> str:
    """Short hash of the content of all files, in order: tells whether a corpus has changed."""
    digest = hashlib.sha256(b"paragraphs" if paragraphs else b"sentences")
    for file in files(paths):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


def split_sentences(paragraph: str) -> list[str]:
    """Split a paragraph at the ends of its sentences.

    Args:
        paragraph: English, Chinese or both. Nothing but blanks between sentences gets lost.

    Returns:
        Sentences without surrounding blanks. A full stop after a known abbreviation, after
        initials ("J. Smith", "U.S. Congress") or before a small letter ends no sentence.
    """
    sentences = []
    start = 0
    for match in _BOUNDARY.finditer(paragraph):
        if _is_abbreviation(paragraph, start, match):
            continue
        sentences.append(paragraph[start : match.end()].strip())
        start = match.end()
    sentences.append(paragraph[start:].strip())
    return [sentence for sentence in sentences if sentence]


def _is_abbreviation(paragraph: str, start: int, match: re.Match[str]) -> bool:
    if not match[0].rstrip().endswith("."):
        return False
    begin = max(start, match.start() - _LONGEST_ABBREVIATION)
    before = _LAST_WORD.search(paragraph[begin : match.start() + 1])
    if before is None:
        return False
    return before[1] != "I" and _ABBREVIATION.fullmatch(before[1]) is not None


def _is_text(path: Path) -> bool:
    return path.name.lower().endswith(ENDINGS)


def parted(source: Iterable[str], *, paragraphs: bool) -> Iterator[list[str]]:
    """Lines to documents, which blank lines part.

    Args:
        source: Lines with or without their ends.
        paragraphs: See `read`.
    """
    document: list[str] = []
    for line in source:
        for text in line.strip().split("\r"):  # old files end lines so
            if text := text.strip():
                document += split_sentences(text) if paragraphs else [text]
            elif document:
                yield document
                document = []
    if document:
        yield document


def split_held_out(count: int, share: float, seed: int) -> tuple[Sequence[int], Sequence[int]]:
    """Part documents into training and held-out ones, at random and whole.

    Args:
        count: Number of documents.
        share: Share to hold out, 0 to 0.5; at least two documents if above 0.
        seed: Seed of the draw.

    Returns:
        Numbers of the training documents and of the held-out ones, both ascending.

    Raises:
        InputError: The share is out of range or leaves too few documents.
    """
    # Not random.Random: its shuffle is not promised to stay the same between Python versions.
    if not 0.0 <= share <= 0.5:
        raise InputError(f"The held-out share {share} must lie between 0 and 0.5.")
    held = max(2, round(count * share)) if share else 0
    if count - held < 2:
        raise InputError(f"{count} documents are too few; at least {held + 2} are needed.")
    ranked = sorted(range(count), key=lambda i: hashlib.sha256(f"{seed},{i}".encode()).digest())
    return sorted(ranked[held:]), sorted(ranked[:held])
