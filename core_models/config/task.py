"""What a fine-tuned model answers, as a value of its config."""

from dataclasses import dataclass

from core_models.errors import InputError

TASKS = ("classify", "multilabel", "regress", "tag", "span", "similarity")
"""Fine-tuning heads."""
LABELLED = ("classify", "multilabel", "tag")
"""Those whose answers have names."""
TOKENS = ("first", "last")
POOLINGS = ("token", "mean", "late")
MOST_LABELS = 10_000


@dataclass(frozen=True, kw_only=True)
class Task:
    """The one fine-tuning head of a model."""

    head: str
    """``classify``, ``multilabel``, ``regress``, ``tag``, ``span`` or ``similarity``."""
    labels: tuple[str, ...] = ()
    """Names of the answers by number, where they have names."""
    dropout: float | None = None
    """Dropout inside the head, in 0..1; None = as in the encoder."""
    token: str = "first"
    """The token that stands for the whole text, [CLS]: ``first`` or ``last`` (XLNet)."""
    activation: str = "tanh"
    """Follows the dense layer over that token."""
    dropout_before: bool = False
    """Whether dropout also precedes that dense layer (RoBERTa, ELECTRA)."""
    pooling: str = "token"
    """How a whole text is read: by that ``token``, by the ``mean`` of all real ones, or ``late``:
    its scores are the mean of every token's (EuroBERT; not ``similarity``, which has none)."""
    every_step: bool = False
    """Whether ``tag`` reads a learned mix of the states before and after every step."""
    as_masked_token: bool = False
    """Whether answers are read as masked tokens are, through a dense layer, its activation and a
    norm: of texts, tags and spans alike (ModernBERT)."""

    def __post_init__(self) -> None:
        """Check names and what belongs to which head."""
        for name, value, allowed in (
            ("head", self.head, TASKS),
            ("token", self.token, TOKENS),
            ("activation", self.activation, ("gelu", "gelu_tanh", "relu", "silu", "tanh")),
            ("pooling", self.pooling, POOLINGS),
        ):
            if value not in allowed:
                raise InputError(f"task.{name} is {value!r}; allowed are {', '.join(allowed)}.")
        if self.dropout is not None and not 0 <= self.dropout <= 1:
            raise InputError(f"task.dropout is {self.dropout}; allowed is 0 to 1.")
        if self.dropout is not None and self.head in ("span", "similarity"):
            raise InputError(f"The head {self.head} has no dropout; task.dropout must be null.")
        if self.every_step and self.head != "tag":
            raise InputError(f"task.every_step belongs to tag; the head is {self.head}.")
        if self.pooling != "token" and self.head in ("tag", "span"):
            raise InputError(f"task.pooling belongs to whole texts; the head is {self.head}.")
        if self.pooling == "late" and self.head == "similarity":
            raise InputError("task.pooling is late, which pools scores; similarity has none.")
        if self.as_masked_token and (self.head == "similarity" or self.every_step):
            raise InputError(f"task.as_masked_token has no meaning for {self.head} here.")
        self._check_labels()

    def _check_labels(self) -> None:
        if self.head not in LABELLED:
            if self.labels:
                raise InputError(f"The head {self.head} takes no labels; got {self.labels[0]!r}.")
            return
        fewest = 2 if self.head == "classify" else 1
        if not fewest <= len(self.labels) <= MOST_LABELS:
            raise InputError(
                f"The number of labels of the head {self.head} is {len(self.labels)}; "
                f"allowed are {fewest} to {MOST_LABELS}."
            )
        if len(set(self.labels)) < len(self.labels) or "" in self.labels:
            raise InputError(f"Labels must differ and not be empty; got {', '.join(self.labels)}.")
