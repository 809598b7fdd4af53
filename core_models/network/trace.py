"""Reading and editing the inside of a forward pass.

A :class:`Trace` is handed to one forward call and to nothing else, so two callers tracing one
model at the same time cannot see each other. Each named site in the model offers its tensor once;
the trace keeps it if asked to and may hand back an edited one. Keys are logical steps, never
module names: ALBERT's twelve passes through one block are twelve records.
"""

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from core_models.errors import InputError, listed, listed_of

STEP_SITES = (
    "residual_in",
    "q",
    "k",
    "v",
    "content_score",
    "scores",
    "probabilities",
    "head_output",
    "attention_output",
    "feed_forward_activation",
    "residual",
)
"""Sites of one step; score terms add ``term:<name>``."""

ROTARY_SITES = ("q_unturned", "k_unturned")
"""Sites of one step where positions are rotary: queries and keys [B, H, L, d] before their turn;
``q`` and ``k``, which meet in the scores, are those after it."""

MEMORY_SITE = "memory"
"""Site of one step where the batch carries a memory; both streams read the same."""

INPUT_SITES = (
    "embedding:pieces",
    "embedding:positions",
    "embedding:segments",
    "embedding",
)
"""Sites before the first step; their step is None."""

DECODER = "mask_decoder"
STREAMS = ("content", "query", DECODER)
"""Streams that offer their tensors; every model has the first."""

_BY_POSITION = frozenset(
    {
        "residual_in",
        "attention_output",
        "feed_forward_activation",
        "residual",
        MEMORY_SITE,
        *INPUT_SITES,
    }
)
"""Sites of the form [B, L, ...]."""

SCORE_SITES = frozenset({"content_score", "scores", "probabilities"})
"""Sites that exist only where attention is written out."""


@dataclass(frozen=True)
class Edit:
    """A change to the tensor of one site; ``step`` None means every step."""

    site: str
    function: Callable[[Tensor], Tensor]
    step: int | None = None
    stream: str = "content"


def switch_off_heads(step: int, heads: Iterable[int], *, stream: str = "content") -> Edit:
    """An edit that sets the output [B, H, L, d] of some heads of one step to zero.

    Raises:
        InputError: (in the pass) the model has no such head.
    """
    chosen = listed(heads, "heads")

    def zero(output: Tensor) -> Tensor:
        beyond = [h for h in chosen if not hasattr(h, "__index__") or not 0 <= h < output.shape[1]]
        if beyond:
            raise InputError(f"No head {beyond[0]}; this model has 0 to {output.shape[1] - 1}.")
        keep = torch.ones(output.shape[1], dtype=output.dtype, device=output.device)
        keep[chosen] = 0
        return output * keep[None, :, None, None]

    return Edit("head_output", zero, step, stream)


def switch_off_term(name: str, step: int | None = None, *, stream: str = "content") -> Edit:
    """An edit that sets a score term to zero, at one step or at all; ``*`` means every term."""
    return Edit(f"term:{name}", torch.zeros_like, step, stream)


def patch(
    site: str,
    step: int | None,
    source: Tensor,
    positions: Iterable[int],
    *,
    stream: str = "content",
) -> Edit:
    """An edit that puts in, at some positions, what another pass had there.

    Args:
        site: one whose tensor is [B, L, ...], such as ``residual``.
        step: of the edit; None for a site before the first step.
        source: the site's tensor [B or 1, L, ...] in the other pass. ``embedding:segments`` of a
            batch without segments is one row [E] for every position.
        positions: along L; negative ones count from the end.
        stream: of the edit.

    Raises:
        ValueError: the site has no positions on its second axis, or (in the pass) one of them is
            beyond either tensor, both tensors are one row, or their shapes do not fit.
    """
    if site not in _BY_POSITION:
        known = ", ".join(sorted(_BY_POSITION))
        raise ValueError(f"{site!r} is not [B, L, ...], so it has no positions; patch {known}")
    if not isinstance(source, Tensor):
        raise InputError(f"source is {type(source).__name__}; it must be the tensor of a site.")
    chosen = listed(positions, "positions")

    def replaced(tensor: Tensor) -> Tensor:
        given, kept = source, tensor
        if kept.dim() == 1 and given.dim() == 1:
            raise ValueError(
                f"{site!r} is one row for all positions in both passes; give the batches "
                "segment_ids to patch single ones"
            )
        if kept.dim() == 1:
            kept = kept.expand(given.shape)
        if given.dim() == 1:
            given = given.expand(1, kept.shape[1], -1)
        for length in (kept.shape[1], given.shape[1]):
            beyond = [place for place in chosen if not -length <= place < length]
            if beyond:
                raise ValueError(f"no position {beyond[0]} in {site!r}: it has {length}")
        if given.shape[0] not in (1, kept.shape[0]) or given.shape[2:] != kept.shape[2:]:
            raise ValueError(
                f"source is {list(given.shape)}, but {site!r} is {list(kept.shape)} in this pass; "
                "rows and width must be the same, or source one row"
            )
        result = kept.clone()
        result[:, chosen] = given[:, chosen].to(tensor)
        return result

    return Edit(site, replaced, step, stream)


class Trace:
    """Records of one forward pass.

    Args:
        sites: names from :data:`STEP_SITES`, :data:`INPUT_SITES`, ``memory`` or ``term:<name>``
            (``term:*`` for every score term).
        steps: keep only these steps; None keeps all.
        edits: changes to make on the way.
        gradients: keep tensors in the graph, and after a backward pass their ``grad``, instead of
            detaching them. Only what depends on a parameter or input that requires a gradient has
            one.
    """

    def __init__(
        self,
        sites: Iterable[str] = (),
        *,
        steps: Iterable[int] | None = None,
        edits: Iterable[Edit] = (),
        gradients: bool = False,
    ) -> None:
        wanted = listed(sites, "sites")
        self.steps = None if steps is None else frozenset(listed(steps, "steps"))
        self.edits = tuple(listed_of(Edit, edits, "edits"))
        self.gradients = gradients
        self.records: dict[tuple[str, int | None, str], Tensor] = {}
        known_sites = (*STEP_SITES, *ROTARY_SITES, MEMORY_SITE, *INPUT_SITES)
        for site in (*wanted, *(edit.site for edit in self.edits)):
            named = isinstance(site, str)
            if not named or (site not in known_sites and not site.startswith("term:")):
                known = ", ".join((*known_sites, "term:<name>"))
                raise ValueError(f"no trace site {site!r}; known are {known}")
        self.sites: frozenset[str] = frozenset(wanted)

    def check(self, steps: int, terms: Iterable[str], absent: Container[str] = ()) -> None:
        """InputError for an edit that would change nothing in a model.

        Args:
            steps: of the model.
            terms: names of its score terms.
            absent: sites that it never offers.
        """
        known = {f"term:{name}" for name in terms} | {"term:*"}
        for edit in self.edits:
            if edit.stream not in STREAMS:
                raise InputError(f"No stream {edit.stream!r}; known are {', '.join(STREAMS)}.")
            if edit.site.startswith("term:") and edit.site not in known:
                names = ", ".join(sorted(known))
                raise InputError(f"No score term {edit.site!r} in this model; it has {names}.")
            if edit.site in absent:
                raise InputError(f"No {edit.site} in this model, so there is nothing to edit.")
            step = edit.step
            if edit.site in INPUT_SITES and (step is not None or edit.stream != "content"):
                raise InputError(
                    f"{edit.site} comes before the first step, in the content stream; edit it with "
                    f"step=None there, not at step {step} of the stream {edit.stream}."
                )
            if step is not None and not hasattr(step, "__index__"):
                raise InputError(f"No step {step!r} to edit; it is a whole number, or None.")
            inside = step is None or edit.stream == DECODER or 0 <= step < steps
            if not inside:
                raise InputError(f"No step {edit.step} to edit; this model has 0 to {steps - 1}.")

    def at(self, step: int | None, stream: str = "content") -> "Sites":
        """The view of one step that the model's code offers its tensors to."""
        return Sites(self, step, stream)

    def wants(self, site: str, step: int | None, stream: str = "content") -> bool:
        """Whether the site is recorded or edited at this step."""
        return self.keeps(site, step) or any(
            _matches(edit.site, site) and edit.step in (None, step) and edit.stream == stream
            for edit in self.edits
        )

    def keeps(self, site: str, step: int | None) -> bool:
        """Whether the site is recorded at this step."""
        if self.steps is not None and step is not None and step not in self.steps:
            return False
        return any(_matches(wanted, site) for wanted in self.sites)

    def offer(self, site: str, step: int | None, stream: str, tensor: Tensor) -> Tensor:
        """Called by the model: record the tensor, and return it or its edited form."""
        for edit in self.edits:
            if _matches(edit.site, site) and edit.step in (None, step) and edit.stream == stream:
                tensor = edit.function(tensor)
        if self.keeps(site, step):
            if self.gradients and tensor.requires_grad:
                tensor.retain_grad()
            self.records[site, step, stream] = tensor if self.gradients else tensor.detach()
        return tensor

    def get(self, site: str, step: int | None = None, stream: str = "content") -> Tensor:
        """The tensor recorded at a site; KeyError names what was recorded instead."""
        try:
            return self.records[site, step, stream]
        except KeyError:
            raise KeyError(
                f"{site}@{step}/{stream} was not recorded; recorded: {self._recorded}"
            ) from None

    @property
    def _recorded(self) -> str:
        return ", ".join(sorted({f"{s}@{n}/{w}" for s, n, w in self.records})) or "nothing"

    def __getitem__(self, key: str | tuple[str, int | None]) -> Tensor:
        """``trace["probabilities", 3]``: the content stream's tensor at step 3.

        ``trace["embedding"]``: that of a site before the first step.
        """
        return self.get(key) if isinstance(key, str) else self.get(*key)

    def recorded_steps(self, site: str, stream: str = "content") -> list[int]:
        """The steps for which a site was recorded, ascending."""
        return sorted(n for s, n, w in self.records if s == site and w == stream and n is not None)

    def stack(self, site: str, stream: str = "content") -> Tensor:
        """All steps of a site on a new first axis [steps, ...]; KeyError where there is none."""
        steps = self.recorded_steps(site, stream)
        if not steps:
            raise KeyError(f"{site}/{stream} was recorded at no step; recorded: {self._recorded}")
        return torch.stack([self.get(site, step, stream) for step in steps])


class Sites:
    """One step of one stream of a trace."""

    def __init__(self, trace: Trace, step: int | None, stream: str) -> None:
        self.trace, self.step, self.stream = trace, step, stream

    def offer(self, site: str, tensor: Tensor) -> Tensor:
        """See :meth:`Trace.offer`."""
        return self.trace.offer(site, self.step, self.stream, tensor)

    def wants(self, site: str) -> bool:
        """See :meth:`Trace.wants`."""
        return self.trace.wants(site, self.step, self.stream)

    def wants_scores(self, terms: Iterable[str]) -> bool:
        """Whether attention must be written out for this step."""
        return any(self.wants(site) for site in SCORE_SITES) or any(
            self.wants(f"term:{name}") for name in terms
        )


def _matches(wanted: str, site: str) -> bool:
    return wanted == site or (wanted == "term:*" and site.startswith("term:"))
