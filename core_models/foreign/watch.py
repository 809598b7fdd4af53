"""Looking into a pass of a transformers model, for the thread that asked and no other.

Two things see everything that the labs read, whatever a class calls its parts. Hooks on the layers
hand on the residual stream. And in a traced pass the products and the softmax of each layer's
attention are met where Python calls them: scores [B, H, L, L] that a product of queries and keys
gives, their softmax, and the product of that with the values. Attention that is computed in another
way (by blocks, by landmarks, by hashing) does not go through these calls and is not seen.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from core_models.network.trace import Trace

RESIDUAL = ("residual_in", "residual")
ATTENTION = ("q", "k", "v", "scores", "probabilities", "head_output")
"""Sites of a step that can be seen; whether a class has those of attention is tried out."""

_PRODUCTS = (torch.matmul, Tensor.matmul, Tensor.__matmul__)
_SOFTMAX = (F.softmax, torch.softmax, Tensor.softmax)
_here = threading.local()


class Pass:
    """One forward pass, looked at."""

    def __init__(
        self, trace: Trace | None, vectors: Tensor | None = None, *, every_step: bool = False
    ) -> None:
        self.trace = trace
        self.vectors = vectors
        """Rows [B, L, E] in place of the piece table's."""
        self.states: list[Tensor] | None = [] if every_step else None
        """What each step starts from [B, L, D]."""
        self.step: int | None = None
        """The step that is under way."""
        self.outputs: dict[int, Tensor] = {}
        """Weight of each step's output projection [D, H * d], once attention was seen."""

    def offer(self, site: str, tensor: Tensor) -> Tensor:
        """See :meth:`Trace.offer`."""
        return (
            tensor if self.trace is None else self.trace.offer(site, self.step, "content", tensor)
        )

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Forward passes in this thread are this one."""
        asked = (
            () if self.trace is None else (*self.trace.sites, *(e.site for e in self.trace.edits))
        )
        before, _here.now = getattr(_here, "now", None), self
        try:
            with _Attention(self) if set(ATTENTION) & set(asked) else nullcontext():
                yield
        finally:
            _here.now = before


class _Attention(TorchFunctionMode):
    """Meets the calls of attention in each step, in their order."""

    def __init__(self, current: Pass) -> None:
        super().__init__()
        self.current = current
        self.step: int | None = None
        self.shape: torch.Size | None = None
        """Of the scores, from the product until the values have been weighted."""
        self.stage = 0
        """Comes next: 0 = product of queries and keys, 1 = softmax, 2 = product with the values,
        3 = the output projection, 4 = nothing."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if self.current.step is None:
            return func(*args, **kwargs)
        if self.current.step != self.step:
            self.step, self.stage = self.current.step, 0
        offer = self.current.offer
        if self.stage in (0, 1) and func in _PRODUCTS and _is_product(*args[:2]):
            q, k = offer("q", args[0]), offer("k", args[1].transpose(-1, -2))
            scores = func(q, k.transpose(-1, -2))
            self.stage, self.shape = 1, scores.shape
            return scores
        if self.stage == 1 and func in _SOFTMAX and args[0].shape == self.shape:
            self.stage = 2
            scores = offer("scores", args[0])
            return offer("probabilities", func(scores, *args[1:], **kwargs))
        if self.stage == 2 and func in _PRODUCTS and args[0].shape == self.shape:
            self.stage = 3
            return offer("head_output", func(args[0], offer("v", args[1])))
        if self.stage == 3 and func is F.linear:
            self.stage = 4
            self.current.outputs[self.step] = args[1]
        return func(*args, **kwargs)


def _is_product(q: Tensor, k: Tensor) -> bool:
    """Whether [B, H, L, d] meets [B, H, d, L]."""
    return q.dim() == 4 == k.dim() and q.shape[:2] == k.shape[:2] and q.shape[2] == k.shape[3]


def watch_table(pieces: nn.Module) -> None:
    """Let a pass put its own vectors in place of a piece table's rows."""

    def give(module: nn.Module, given: Any, rows: Tensor) -> Tensor:
        now: Pass | None = getattr(_here, "now", None)
        return rows if now is None or now.vectors is None else now.vectors

    pieces.register_forward_hook(give)


def watch_layer(layer: nn.Module, step: int) -> None:
    """Let a pass see what a layer starts from and what it gives."""

    def begin(module: nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
        now: Pass | None = getattr(_here, "now", None)
        if now is None:
            return None
        now.step = step
        hidden = now.offer("residual_in", args[0] if args else kwargs["hidden_states"])
        if now.states is not None:
            now.states.append(hidden)
        if args:
            return (hidden, *args[1:]), kwargs
        return args, {**kwargs, "hidden_states": hidden}

    def end(module: nn.Module, args: Any, result: Any) -> Any:
        now: Pass | None = getattr(_here, "now", None)
        if now is None:
            return None
        whole = result if isinstance(result, tuple) else (result,)
        hidden = now.offer("residual", whole[0])
        now.step = None
        return (hidden, *whole[1:]) if isinstance(result, tuple) else hidden

    layer.register_forward_pre_hook(begin, with_kwargs=True)
    layer.register_forward_hook(end)
