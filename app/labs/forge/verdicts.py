"""Tokens in a row, each with how probable it is that somebody replaced it."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.parts.views import Part, mounted
from viz.figure import wordings


class Verdicts(Part):
    """One column for each token: the word, what stood there, a bar of a chance and its number.

    From the threshold on, a bar has the colour of an accusation. A token that somebody changed is
    framed by its kind: ``forged``, ``lucky`` (drawn, but the word of the text) or ``mine``.

    Example::

        Verdicts(verdicts([{"position": 0, "text": "sun", "kind": "", "chance": 0.2}], "The text"))

    Events:
        pick: A token was chosen. Its position is ``picked`` of the value.

    Args:
        value: What :func:`verdicts` gives, or None.
        choose: Whether tokens can be chosen.
        main: Whether it is the main picture of its lab.
    """

    def __init__(
        self,
        value: Any = None,
        *,
        elem_id: str | None = None,
        choose: bool = False,
        main: bool = False,
        **more: Any,
    ) -> None:
        name = "verdicts-choice" if choose else "verdicts"
        parts = mounted(
            name, module="labs/forge/verdicts", events=["pick"] if choose else [], main=main
        )
        super().__init__(value, elem_id=elem_id, **{**parts, **more})


def verdicts(
    tokens: Sequence[Mapping[str, Any]], name: str, *, threshold: float = 0.5, **kept: Any
) -> dict[str, Any]:
    """The value of a :class:`Verdicts`.

    Args:
        tokens: ``position``, ``text``, ``kind`` ("", "special", "forged", "lucky" or "mine"),
            ``chance`` (0 to 1), and maybe a ``note``: a wording below the word.
        name: What the row shows, for who cannot see it.
        threshold: From here on it accuses.
        kept: ``text``: the whole text, which a choice belongs to, and ``cut``: what says how it was
            cut; ``offered``: the position that is chosen at first, and again with another
            ``offer``; ``by``: names of the models that answered.
    """
    found = {"tokens": list(tokens), "name": name, "threshold": threshold, **kept}
    return {**found, "words": wordings(found)}
