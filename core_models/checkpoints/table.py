"""One table of names per family, compiled once and used in both directions.

A :class:`Row` pairs their name pattern with ours. ``{n}`` stands for a number and ``*`` for
``weight`` or ``bias``; a transform, where needed, has a forward and an inverse. Every tensor of a
file must match a row or be listed as ignored with a reason, and every tensor of the model must be
filled: nothing is skipped silently.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from core_models.checkpoints.fields import untied
from core_models.checkpoints.tasks import TaskFiles
from core_models.checkpoints.weights import same
from core_models.config import Config
from core_models.config.task import Task
from core_models.errors import InputError

FAMILY_FIELD = "cloze_family"
"""A field of ours in config.json: the family, where several share one ``model_type``."""


class Transform(Protocol):
    """An invertible change of layout."""

    def forward(self, theirs: Tensor, config: Config) -> Tensor:
        """Theirs to ours."""
        ...

    def inverse(self, ours: Tensor, config: Config) -> Tensor:
        """Ours to theirs; ``inverse(forward(x))`` is bit-equal to x."""
        ...


@dataclass(frozen=True)
class Row:
    """Their name, our name, and how the layout changes on the way."""

    theirs: str
    ours: str
    transform: Transform | None = None

    @property
    def head(self) -> str | None:
        """The head that the tensor belongs to; None = the encoder."""
        parts = self.ours.split(".")
        return parts[1] if parts[0] == "heads" else None


class Layout(Protocol):
    """How one tensor holds several."""

    def split(self, theirs: Tensor, config: Config) -> Sequence[Tensor]:
        """The parts; InputError where the shape does not allow it."""
        ...

    def join(self, parts: Sequence[Tensor], config: Config) -> Tensor:
        """The inverse, bit for bit."""
        ...


@dataclass(frozen=True)
class Stacked:
    """[n R, ...], n layers one after the other, to n parts of R rows each."""

    layers: int

    def split(self, theirs: Tensor, config: Config) -> Sequence[Tensor]:
        """The parts; InputError where the rows cannot be shared out."""
        if theirs.dim() == 0 or theirs.shape[0] % self.layers:
            raise InputError(
                f"A tensor of {self.layers} layers has shape {list(theirs.shape)}; its first size "
                f"must be a multiple of {self.layers}."
            )
        return theirs.chunk(self.layers)

    def join(self, parts: Sequence[Tensor], config: Config) -> Tensor:
        """The inverse, bit for bit."""
        return torch.cat(list(parts))


@dataclass(frozen=True)
class Packed:
    """A tensor of theirs that holds several of ours."""

    theirs: str
    ours: tuple[str, ...]
    layout: Layout

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the parts once they are split, which :attr:`rows` refer to."""
        return tuple(f"{self.theirs}:{n}" for n in range(len(self.ours)))

    @property
    def rows(self) -> tuple[Row, ...]:
        """A row for each part."""
        return tuple(map(Row, self.parts, self.ours))


@dataclass(frozen=True)
class Ignored:
    """A tensor of theirs that has no place in ours, and why."""

    theirs: str
    reason: str
    same_as: str | None = None
    """Their name of the tensor that this one must equal bit for bit where both are present."""
    kept: bool = False
    """Whether it holds values of its own, which come back into the file when the model is saved."""


def tied(theirs: str, table: str) -> Ignored:
    """The matrix of a head that is their piece table."""
    return Ignored(theirs, "tied with the piece table", same_as=table)


def twin(theirs: str, other: str) -> Ignored:
    """A second name of a parameter."""
    return Ignored(theirs, f"the same parameter as {other}", same_as=other)


def counter(theirs: str) -> Ignored:
    """Numbers of positions."""
    return Ignored(theirs, "a buffer that counts 0, 1, 2, ...")


@dataclass(frozen=True)
class Scores:
    """The layer of theirs that scores pieces, where it is not the piece table."""

    layer: str
    """Their pattern of matrix and bias."""
    twin: str | None = None
    """Another name of theirs for the bias. While the table is shared both are one parameter; else
    transformers 5 computes with the bias of the layer alone, and version 4 writes only this."""

    @property
    def bias(self) -> str:
        """Their name of the layer's bias."""
        return self.layer.replace("*", "bias")

    def read(self, theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Their tensors with the bias under the layer's name; a twin that says the same goes."""
        found = dict(theirs)
        if self.twin in found and same(found[self.twin], found.get(self.bias, found[self.twin])):
            found[self.bias] = found.pop(self.twin)
        return found

    def write(self, theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Their tensors with the bias under both names, unless its twin is there already."""
        if self.twin is None or self.bias not in theirs:
            return dict(theirs)
        return {self.twin: theirs[self.bias].clone(), **theirs}


@dataclass(frozen=True)
class Format:
    """How one ``model_type`` of transformers is read and written."""

    model_type: str
    architectures: Mapping[tuple[str, ...], str]
    """Class name to write for a set of heads; the first whose heads are all there is taken."""
    rows: Sequence[Row]
    ignored: Sequence[Ignored]
    read_config: Callable[[Mapping[str, Any]], Config]
    """Their config.json to a Config; InputError names the field that does not fit."""
    write_config: Callable[[Config], dict[str, Any]]
    tasks: TaskFiles
    """Names of fine-tuned models."""
    causal: str | None = None
    """Class name of a model that reads from left to right, where the family has one; its head's
    tensors are those of the masked-token head."""
    alone: Sequence[str] = ()
    """Their patterns of head tensors that may be present without the rest of their head."""
    prefix: str = ""
    """Their name of the encoder inside a model with heads, with a dot; added when a file of the
    bare encoder lacks it."""
    more_rows: Callable[[Config], Sequence[Row]] | None = None
    """Rows that depend on the config (blocks numbered in groups); see :meth:`at`."""

    packed: Sequence[Packed] = ()
    """Tensors that are split before rows are applied, and joined again for writing."""
    settle: Callable[[Config, Mapping[str, Tensor]], Config] = lambda config, tensors: config
    """What only a file's tensors, under today's names, tell about its config."""
    fields: frozenset[str] = frozenset()
    """Fields of config.json beside those that every model's may hold: of today's class, and of
    older ones."""
    leftovers: Mapping[str, str] = field(default_factory=dict)
    """Heads of ours that are left out of a file that also holds the head beside them: tensors
    that were left over from an earlier stage of training."""
    older: Sequence[Row] = ()
    """Names of a head in files of an older class, read where config.json says that they are of it;
    what is saved has the names of today's."""
    needs_older: Callable[[Config], bool] = untied
    """Whether a config's masked-token head is one of the older class alone."""
    scores: Scores | None = None
    """What scores pieces in files where ``tie_word_embeddings`` is false."""
    task: Task | None = None
    """The task whose head the table holds; see :meth:`for_task`."""
    in_transformers: bool = True
    """Whether transformers has its classes; else nothing but code of its authors opens a file."""
    brought_code: bool = False
    """Whether released files name Python of their own. It is never run: this table reads them."""

    def at(self, config: Config) -> "Format":
        """The table for one config, complete in both directions."""
        leftward = config.attention.direction == "left" or config.objectives == ("causal",)
        form = self.leftward() if leftward else self
        if form.older and form.needs_older(config):
            form = form.of_older()
        if form.scores is not None and untied(config):
            form = form.with_scores(form.scores)
        if config.task is not None:
            form = form.for_task(config.task)
        if form.more_rows is None:
            return form
        return replace(form, rows=(*form.rows, *form.more_rows(config)), more_rows=None)

    def with_older(self) -> "Format":
        """The table that reads the older names, too."""
        taken = {row.theirs for row in self.older}
        ignored = [each for each in self.ignored if each.theirs not in taken]
        return replace(self, rows=(*self.rows, *self.older), ignored=ignored)

    def of_older(self) -> "Format":
        """The table whose masked-token head has the older names alone."""
        form = self.with_older()
        heads = {row.head for row in self.older}
        rows = [row for row in self.rows if row.head not in heads]
        return replace(form, rows=(*rows, *self.older))

    def with_scores(self, scores: Scores) -> "Format":
        """The table of a head with a matrix of its own in place of the piece table."""
        names = {scores.layer, scores.bias, scores.layer.replace("*", "weight"), scores.twin}
        tied = [row for row in self.rows if row.theirs in names]
        rows = [row for row in self.rows if row not in tied]
        own = [Row(scores.layer, f"heads.{row.head}.scores.*") for row in tied]
        ignored = [each for each in self.ignored if each.theirs not in names]
        if scores.twin is not None:
            reason = "the bias of the layer that scores pieces is another one"
            ignored.append(Ignored(scores.twin, reason, kept=True))
        return replace(self, rows=(*rows, *own), ignored=ignored)

    def leftward(self) -> "Format":
        """The table of a model whose head tells each piece from the position before its own."""
        if self.causal is None:
            raise InputError(
                f"Files of type {self.model_type} hold no model that reads from left to right."
            )
        masked, causal = "heads.masked_token.", "heads.causal."
        rows = [replace(row, ours=row.ours.replace(masked, causal)) for row in self.rows]
        architectures = {("causal",): self.causal, (): self.architectures[()]}
        return replace(self, rows=rows, architectures=architectures)

    def for_task(self, task: Task) -> "Format":
        """The table with a task's head, which takes over a pooler from the head that trained it."""
        if self.task is not None:
            return self
        rows = [Row(a, f"heads.{task.head}.{b}") for a, b in self.tasks.names(task).items()]
        taken = {row.theirs for row in rows}
        robbed = {row.head for row in self.rows if row.theirs in taken}
        idle = [
            Ignored(row.theirs, f"its pooler went over to {task.head}", kept=True)
            for row in self.rows
            if row.head in robbed and row.theirs not in taken
        ]
        name = self.tasks.architecture(task)
        return replace(
            self,
            task=task,
            rows=(*rows, *(row for row in self.rows if row.head not in robbed)),
            ignored=(*(e for e in self.ignored if e.theirs not in taken), *idle),
            architectures=({(task.head,): name} if name else {}) | dict(self.architectures),
        )

    def to_ours(self, name: str) -> tuple[str, Transform | None] | None:
        """Our name for one of theirs, or None where no row matches."""
        for row in self.rows:
            found = _pattern(row.theirs).fullmatch(name)
            if found:
                return _fill(row.ours, found), row.transform
        return None

    def to_theirs(self, name: str) -> tuple[str, Transform | None] | None:
        """Their name for one of ours, or None where no row matches."""
        for row in self.rows:
            found = _pattern(row.ours).fullmatch(name)
            if found:
                return _fill(row.theirs, found), row.transform
        return None

    def unpack(self, theirs: Mapping[str, Tensor], config: Config) -> dict[str, Tensor]:
        """Their tensors with every packed one split under the names of its parts."""
        result: dict[str, Tensor] = {}
        for name, tensor in theirs.items():
            for pack in self.packed:
                found = _pattern(pack.theirs).fullmatch(name)
                if found:
                    names = [_fill(part, found) for part in pack.parts]
                    result |= zip(names, pack.layout.split(tensor, config), strict=True)
                    break
            else:
                result[name] = tensor
        return result

    def pack(self, parts: Mapping[str, Tensor], config: Config) -> dict[str, Tensor]:
        """The inverse of :meth:`unpack`."""
        result = dict(parts)
        for pack in self.packed:
            for name in parts:
                found = _pattern(pack.parts[0]).fullmatch(name)
                if found:
                    tensors = [result.pop(_fill(part, found)) for part in pack.parts]
                    result[_fill(pack.theirs, found)] = pack.layout.join(tensors, config)
        return result

    def ignores(self, name: str) -> Ignored | None:
        """The entry that lists a name of theirs as ignored."""
        return next((e for e in self.ignored if _pattern(e.theirs).fullmatch(name)), None)


def _pattern(text: str) -> re.Pattern[str]:
    escaped = re.escape(text).replace(r"\{n\}", r"(?P<n>\d+)").replace(r"\*", "(?P<w>weight|bias)")
    return re.compile(escaped)


def _fill(text: str, found: re.Match[str]) -> str:
    groups = found.groupdict()
    return text.replace("{n}", groups.get("n") or "").replace("*", groups.get("w") or "*")
