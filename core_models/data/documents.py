"""Text files as documents, a document being a list of sentences.

A file is plain text or text compressed by xz or gzip, in UTF-8, with a blank line between
documents. A line holds one sentence, or one paragraph that is split here (English and Chinese).
Other kinds of sources are read by `core_models.data.sources`.
"""

import hashlib
import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from pathlib import Path

from core_models.data.files import COMPRESSED, lines
from core_models.errors import InputError

ENDINGS = tuple(f".txt{packed}" for packed in COMPRESSED)
"""Names of text files end so."""

_CLOSING = "\"'\u00bb\u201d\u2019)\\]\u300d\u300f\uff09\u300b\u3011\u3009"
_CJK_END = "\u3002\uff01\uff1f\u2026"
_OPENING = "\"'(\\[\u201c\u2018\u00ab\u00bf\u00a1$\u00a3\u20ac"
# Capitals of Latin, Greek and Cyrillic script, digits and Chinese characters.
_FIRST = "A-Z0-9\u00c0-\u00d6\u00d8-\u00de\u0391-\u03a9\u0410-\u042f\u4e00-\u9fff"
_GOES_ON = "\uff0c\u3001\uff1b\uff1a,;:"
# An end mark with its closing quotes, then either a blank and something that can start a
# sentence, or (full-width marks) anything but a comma and its like. No backtracking: it would find
# an end before the closing quotes. Of a run of marks only the first is tried, or a line of dots
# would take time that grows with the square of its length.
_BOUNDARY = re.compile(
    rf"(?:(?<![.!?])[.!?]++[{_CLOSING}]*+(?=\s+[{_OPENING}]*[{_FIRST}])\s+"
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
        digest.update(hash_of(file))
    return digest.hexdigest()[:16]


def hash_of(file: Path) -> bytes:
    """Hash of the content of a file, which may be larger than the memory."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").digest()


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
    if before[1].lower() in {"no", "nos"}:  # a number follows, or it is an answer
        return paragraph[match.end() : match.end() + 1].isdigit()
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


def split_held_out(
    count: int, share: float, seed: int, texts: Sequence[Hashable] | None = None
) -> tuple[Sequence[int], Sequence[int]]:
    """Part documents into training and held-out ones, at random and whole.

    Args:
        count: Number of documents.
        share: Share to hold out, 0 to 0.5; at least two documents if above 0.
        seed: Seed of the draw.
        texts: What each document says. Equal ones stay together, as the model would have read in
            training what it is judged by, and are held out only where the others are too few; so
            there may be a few more or less. Without repeats nothing changes. None = not compared.

    Returns:
        Numbers of the training documents and of the held-out ones, both ascending.

    Raises:
        InputError: The share is out of range or leaves too few documents, or all are equal.
    """
    # Not random.Random: its shuffle is not promised to stay the same between Python versions.
    if not 0.0 <= share <= 0.5:
        raise InputError(f"The held-out share {share} must lie between 0 and 0.5.")
    held = max(2, round(count * share)) if share else 0
    if count - held < 2:
        raise InputError(f"Too few documents: {count}; at least {held + 2} are needed.")
    ranked = sorted(range(count), key=lambda i: hashlib.sha256(f"{seed},{i}".encode()).digest())
    if texts is not None:
        apart = _apart(ranked, held, texts)
        return sorted(set(ranked) - set(apart)), sorted(apart)
    return sorted(ranked[held:]), sorted(ranked[:held])


def split_texts(
    texts: Sequence[Sequence[str]], share: float, seed: int
) -> tuple[Sequence[int], Sequence[int]]:
    """:func:`split_held_out` of documents that stand here, equal ones together.

    Args:
        texts: Sentences of each document. Those that say the same are equal, however their lines
            are cut, blanks are set and words are capitalised: a vocabulary may not tell.
        share: See there.
        seed: See there.
    """
    said = [content(text) for text in texts] if share else None
    return split_held_out(len(texts), share, seed, said)


def content(text: Sequence[str]) -> bytes:
    """A hash of what a document says; lines, blanks and capitals do not count."""
    words = " ".join(" ".join(text).casefold().split())
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).digest()


def _apart(ranked: Sequence[int], held: int, texts: Sequence[Hashable]) -> list[int]:
    """The first documents that are held out where equal ones stay together."""
    equal: dict[Hashable, list[int]] = {}
    for number in ranked:
        equal.setdefault(texts[number], []).append(number)
    found: list[int] = []
    for group in sorted(equal.values(), key=lambda group: len(group) > 1):
        if len(found) < held and len(ranked) - len(found) - len(group) >= 2:
            found += group
    if len(found) < min(2, held):
        raise InputError(
            f"The {len(ranked)} documents are repeats of {len(equal)}, so none can be held out "
            "that training does not read; give different ones, or hold nothing out."
        )
    return found
