"""Files of fine-tuned models, and what their config.json says of the head.

The classes are *ForSequenceClassification, *ForTokenClassification and *ForQuestionAnswering. What
transformers has no class or field for (``similarity``, a tag head over all layers, some rates of
dropout) is kept in a field of ours that holds the whole :class:`~core_models.config.task.Task`. A
tag head over all layers also goes under names of its own, so that transformers, which would read
the last layer alone, does not take it for its head.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from core_models.checkpoints.fields import ACTIVATIONS, Fields, names
from core_models.config import Config
from core_models.config.task import LABELLED, MOST_LABELS, Task
from core_models.config.values import from_json, to_json
from core_models.errors import InputError

TASK_FIELD = "cloze_task"
"""A field of ours in config.json: the task, where the other fields would give another one."""

POOLED = Task(head="regress")
"""BERT's style: dense layer and tanh over the first token, then dropout."""

POOLINGS = {"cls": "token", "mean": "mean"}
"""Their ways to make a text's vector to ours."""
_TEXT = ("classify", "multilabel", "regress")
_PROBLEMS = {
    "single_label_classification": "classify",
    "multi_label_classification": "multilabel",
    "regression": "regress",
}
_MIX = "cloze_tag."
_SPARE = names(
    """
    bos_token_id cls_token_id eos_token_id id2label label2id num_labels problem_type qa_dropout
    sep_token_id summary_activation summary_first_dropout summary_last_dropout
    summary_proj_to_labels summary_type summary_use_proj
    """
)
"""Fields that transformers' classes read and no Config holds, beside those of a family's heads."""


@dataclass(frozen=True, kw_only=True)
class TaskFiles:
    """How a family's fine-tuned models are named in files."""

    stem: str
    """What the class names start with."""
    dense: str
    """Their pattern of the dense layer over [CLS]."""
    classifier: str
    """Their pattern of the layer after it."""
    style: Task
    """Token, activation and dropout of a classification head."""
    text_dropout: tuple[str | None, float | None] = ("classifier_dropout", None)
    """Field and default of the rate in heads over a whole text; null means the encoder's."""
    tag_dropout: tuple[str | None, float | None] = ("classifier_dropout", None)
    """The same for tags; where there is no field, the rate is fixed."""
    activation_field: str | None = None
    """Field of the activation, where there is one."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Fields of which one value is supported, which is also their default."""
    tagging: str | None = "ForTokenClassification"
    """End of the class name that tags tokens; None = there is no such class."""
    answering: str | None = "ForQuestionAnswering"
    """The same of the class that finds answers."""
    norm: str | None = None
    """Their pattern of the norm after the dense layer, where answers are read as masked tokens."""
    answers: str = "qa_outputs.*"
    """Their pattern of the layer that finds answers in a text."""
    pooling_fields: tuple[str, ...] = ()
    """Fields that say how a whole text is read: today's, and the older names after it."""
    poolings: Mapping[str, str] = field(default_factory=lambda: POOLINGS)
    """Its values to ours; the first one is its default."""

    def architecture(self, task: Task) -> str | None:
        """The class that opens the head; None where transformers has none."""
        if task.head in _TEXT:
            return self.stem + "ForSequenceClassification"
        endings = {"tag": None if task.every_step else self.tagging, "span": self.answering}
        ending = endings.get(task.head)
        return None if ending is None else self.stem + ending

    def names(self, task: Task) -> dict[str, str]:
        """Their pattern -> ours inside the head."""
        read = {} if self.norm is None else {self.dense: "dense.*", self.norm: "norm.*"}
        if task.head in _TEXT:
            return {self.dense: "dense.*"} | read | {self.classifier: "classifier.*"}
        if task.head == "span":
            return read | {self.answers: "classifier.*"}
        if task.head == "similarity":
            return {}
        if not task.every_step:
            return read | {"classifier.*": "classifier.*"}
        return {f"{_MIX}{name}": name for name in ("classifier.*", "weights", "scale")}

    def task(self, head: str, labels: tuple[str, ...] = (), **values: Any) -> Task:
        """A task in the family's style; ``dropout`` is the family's where it is not given."""
        style = self.style
        if values.get("dropout") is None:
            default = {"tag": self.tag_dropout[1]} | dict.fromkeys(_TEXT, self.text_dropout[1])
            values["dropout"] = default.get(head)
        if head in _TEXT:
            values = {"activation": style.activation, "dropout_before": style.dropout_before} | (
                values
            )
        elif head in ("tag", "span") and style.as_masked_token and not values.get("every_step"):
            values = {"activation": style.activation} | values
        if head != "similarity" and not values.get("every_step"):
            values["as_masked_token"] = style.as_masked_token
        if head in (*_TEXT, "similarity"):
            values["token"] = style.token
        return Task(head=head, labels=labels, **values)

    def read(self, values: Mapping[str, Any]) -> Task | None:
        """The task of a config.json; InputError names the field that does not fit."""
        if TASK_FIELD in values:
            task = from_json(Task, values[TASK_FIELD], f"config.json: {TASK_FIELD}")
            assert isinstance(task, Task)
            return task
        classes = values.get("architectures")
        written = classes[0] if isinstance(classes, list) and classes else None
        if written == self.stem + "ForSequenceClassification":
            return self._read_text(values)
        if self.tagging is not None and written == self.stem + self.tagging:
            key, default = self.tag_dropout
            rate = _rate(values, key, default)
            style = self._read_style(values) if self.style.as_masked_token else {}
            return self.task("tag", _labels(values), dropout=rate, **style)
        if self.answering is not None and written == self.stem + self.answering:
            if len(_labels(values)) != 2:
                raise InputError("config.json: id2label must have two entries for answers.")
            style = self._read_style(values) if self.style.as_masked_token else {}
            return self.task("span", **style)
        if written in (self.stem + "ForMultipleChoice", self.stem + "ForQuestionAnswering"):
            raise InputError(
                f"config.json: architectures is {written}, whose head is not supported; fine-tuned "
                f"classes are {', '.join(map(self.stem.__add__, self._classes()))}."
            )
        return None

    def _classes(self) -> tuple[str, ...]:
        others = [name for name in (self.tagging, self.answering) if name is not None]
        return "ForSequenceClassification", *others

    def _read_text(self, values: Mapping[str, Any]) -> Task:
        labels, problem = _labels(values), values.get("problem_type")
        if problem is not None and (not isinstance(problem, str) or problem not in _PROBLEMS):
            raise InputError(
                f"config.json: problem_type is {problem!r}; supported are {', '.join(_PROBLEMS)}."
            )
        head = _PROBLEMS[problem] if problem else ("regress" if len(labels) == 1 else "classify")
        if head == "regress" and len(labels) != 1:
            raise InputError(
                f"config.json: a regression has {len(labels)} outputs in id2label; "
                "only one is supported."
            )
        fields = Fields({**self.fixed, **values})
        for key, value in self.fixed.items():
            fields.fixed(key, value)
        style = self._read_style(values)
        if self.pooling_fields:
            written = (key for key in self.pooling_fields if key in values)
            key = next(written, self.pooling_fields[0])
            style["pooling"] = fields.choice(key, self.poolings)
        rate = _rate(values, *self.text_dropout)
        return self.task(head, labels if head in LABELLED else (), dropout=rate, **style)

    def _read_style(self, values: Mapping[str, Any]) -> dict[str, Any]:
        if self.activation_field is None or self.activation_field not in values:
            return {}
        return {"activation": Fields(values).activation(self.activation_field)}

    def write(self, task: Task, config: Config) -> dict[str, Any]:
        """Fields of config.json, as far as transformers has any for the task."""
        values: dict[str, Any] = {}
        if task.head != "similarity":
            unnamed = 2 if task.head == "span" else 1
            names = task.labels if task.head in LABELLED else _unnamed(unnamed)
            values["id2label"] = {str(n): name for n, name in enumerate(names)}
            values["label2id"] = {name: n for n, name in enumerate(names)}
        key, default = self.text_dropout if task.head in _TEXT else self.tag_dropout
        if task.head in (*_TEXT, "tag") and key is not None:
            own = task.dropout is not None or default is None
            values[key] = task.dropout if own else config.dropout
        if task.head in _TEXT:
            values["problem_type"] = next(p for p, h in _PROBLEMS.items() if h == task.head)
            values |= self.fixed
            if self.pooling_fields and task.pooling in self.poolings.values():
                theirs = {ours: name for name, ours in self.poolings.items()}
                values[self.pooling_fields[0]] = theirs[task.pooling]
        read = task.head in _TEXT or task.as_masked_token
        if read and self.activation_field is not None:
            theirs = {ours: name for name, ours in reversed(ACTIVATIONS.items())}
            values[self.activation_field] = theirs[task.activation]
        return values

    def spare(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """What a config.json says of heads and pieces, which a model without them brings back."""
        of_heads = {self.text_dropout[0], self.tag_dropout[0], self.activation_field}
        kept = of_heads | {*self.pooling_fields, *self.fixed, *_SPARE}
        return {name: value for name, value in values.items() if name in kept}

    def kept(self, task: Task, values: Mapping[str, Any]) -> dict[str, Any]:
        """The field of ours, where ``values``, which are to be written, do not give the task."""
        if self.architecture(task) is not None and self.read(values) == task:
            return {}
        return {TASK_FIELD: to_json(task)}


def _rate(values: Mapping[str, Any], key: str | None, default: float | None) -> float | None:
    if key is None:
        return default
    value = values.get(key, default)
    return None if value is None else Fields({key: value}).number(key, 0, 1)


def _labels(values: Mapping[str, Any]) -> tuple[str, ...]:
    names = values.get("id2label")
    if names is None:
        return _unnamed(Fields(values).integer("num_labels", 1, MOST_LABELS, 2))
    if not isinstance(names, Mapping) or not all(isinstance(n, str) for n in names.values()):
        raise InputError(f"config.json: id2label must map numbers to names, not {names!r}.")
    if set(names) != {str(n) for n in range(len(names))}:
        raise InputError(
            f"config.json: id2label must number its {len(names)} names from 0 without gaps; "
            f"it has {', '.join(map(str, names))}."
        )
    return tuple(names[str(n)] for n in range(len(names)))


def _unnamed(count: int) -> tuple[str, ...]:
    return tuple(f"LABEL_{n}" for n in range(count))
