"""What the lab shows of a round (``answers.play``): rows of verdicts, charts, tables, sentences."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from app.labs.forge.answers import THRESHOLD, joined
from app.parts.plain import table
from app.serving.pieces import cut_note, unread_note
from viz.forge import MOST_GAPS, Choice, Gap, losses
from viz.svg import Wording
from viz.words import percent

Game = Mapping[str, Any]


def forged_tokens(game: Game) -> list[dict[str, Any]]:
    """The sentence with the generator's words, judged."""
    changes = {}
    for gap in game["gaps"]:
        was = Wording("was {0}", game["tokens"][gap["position"]]["text"])
        note = Wording("lucky: real") if gap["lucky"] else Wording("gap") if gap["written"] else was
        kind = "lucky" if gap["lucky"] else "forged"
        changes[gap["position"]] = (gap["sample"]["display"], kind, note)
    return _tokens(game, changes, game["after"] or game["before"])


def own_tokens(game: Game) -> list[dict[str, Any]]:
    """The sentence with the visitor's words, judged."""
    mine = game["mine"] or {"fakes": [], "verdicts": game["before"]}
    changes = {
        fake["position"]: (
            fake["word"],
            "mine",
            Wording("was {0}", game["tokens"][fake["position"]]["text"]),
        )
        for fake in mine["fakes"]
        if fake["id"] is not None
    }
    return _tokens(game, changes, mine["verdicts"])


def _tokens(
    game: Game, changes: Mapping[int, tuple[str, str, str]], chances: Sequence[float]
) -> list[dict[str, Any]]:
    found = []
    for token, chance in zip(game["tokens"], chances, strict=True):
        position, plain = token["position"], "special" if token["special"] else ""
        text, kind, note = changes.get(position, (token["text"], plain, ""))
        found.append(
            {"position": position, "text": text, "kind": kind, "note": note, "chance": chance}
        )
    return found


def first_pick(game: Game) -> int | None:
    """The word that the visitor may change at first: the hidden one."""
    hidden = [gap["position"] for gap in game["gaps"]]
    plain = [token["position"] for token in game["tokens"] if not token["special"]]
    return next(iter([*hidden, *plain]), None)


def gaps(game: Game) -> list[Gap]:
    """The generator's distribution for each gap, what it drew, and what stood there."""
    found = []
    for gap in game["gaps"]:
        drawn, true = gap["sample"]["id"], None if gap["written"] else gap["original_id"]
        listed = {
            each["id"]: (each["display"], each["probability"])
            for each in [*gap["candidates"], gap["sample"]]
        }
        if true is not None and true not in listed:
            listed[true] = (gap["original"], gap["original_probability"])
        choices = [
            Choice(text=text, probability=chance, drawn=index == drawn, true=index == true)
            for index, (text, chance) in listed.items()
        ]
        text = None if gap["written"] else game["tokens"][gap["position"]]["text"]
        found.append(
            Gap(
                position=gap["position"],
                text=text,
                drawn=gap["sample"]["display"],
                choices=choices,
            )
        )
    return found


def who(game: Game, above: Mapping[str, str]) -> str:
    """Who judges and who forges, and what they do not read unless it was said above already."""
    judge, generator = game["chosen"], game["generator"]
    title = judge.title.partition(" · ")[0]
    said = Wording("{0} judges, {1} forges.", title, generator)
    if generator is None:
        said = Wording("{0} judges. Its generator is not installed, so only you can forge.", title)
    plain = [token for token in game["tokens"] if not token["special"]]
    blind = unread(game)
    mute = None if blind == above else unread_note(title, blind)
    return joined(said, cut_note(game["truncated"], len(plain)), mute)


def unread(game: Game) -> dict[str, str]:
    """What the discriminator has no piece for, and the piece that it reads there."""
    return {token["text"]: token["piece"] for token in game["tokens"] if token["unknown"]}


def drawn(game: Game) -> str:
    """What was hidden, and how it was chosen."""
    count = len(game["gaps"])
    said = Wording("Hidden: the words you marked in the sentence above.")
    if game["drawn"]:
        said = Wording(
            "{0} of {1} pieces hidden by a draw of 15 % (seed {2}). Click words above to "
            "hide others.",
            count,
            sum(not token["special"] for token in game["tokens"]),
            game["seed"],
        )
    more = Wording("The first {0} of {1} gaps are shown.", MOST_GAPS, count)
    return joined(said, more if count > MOST_GAPS else "")


def learned_from(game: Game) -> Any:
    """Where the two models get a loss."""
    loss = game["loss"]
    if loss is None:
        return None
    places = [gap["position"] for gap in game["gaps"] if not gap["written"]]
    hidden = list(zip(places, loss["generator"]["each"], strict=True))
    texts = [token["text"] for token in game["tokens"]]
    return losses(texts, hidden, loss["discriminator"]["each"])


def learned(game: Game) -> str:
    """How many places teach each model, and how much can be learnt in one."""
    loss = game["loss"]
    if loss is None:
        return ""
    of = len(game["tokens"])

    def side(name: str, found: Mapping[str, Any]) -> str:
        if found["mean"] is None:
            return Wording("{0}: no place.", name)
        share = percent(found["count"] / of)
        mean = f"{found['mean']:.2f}"
        words = "{0}: {1} of {2} places ({3}), mean loss {4} nats."
        return Wording(words, name, found["count"], of, share, mean)

    other = Wording(
        "The generator's loss is that at temperature {0}; it is trained at 1.",
        f"{game['temperature']:g}",
    )
    return joined(
        side(Wording("Generator"), loss["generator"]),
        side(Wording("Discriminator"), loss["discriminator"]),
        other if game["temperature"] != 1 and loss["generator"]["count"] else None,
        Wording(
            "More places, but less in each: a verdict is a yes or a no (at most 1 bit), a masked "
            "word is a choice among {0} pieces (up to {1} bits). [CLS] and [SEP] are judged, too.",
            f"{game['vocabulary']:,}",
            f"{math.log2(game['vocabulary']):.1f}",
        ),
    )


def numbers(game: Game) -> dict[str, Any]:
    """Every verdict of the untouched, the forged and the visitor's sentence."""
    drawn = {gap["position"]: gap["sample"]["display"] for gap in game["gaps"]}
    own = game["mine"]["verdicts"] if game["mine"] else None
    mine = {fake["position"]: fake["word"] for fake in fakes(game) if fake["id"] is not None}

    def cell(verdicts: Sequence[float] | None, position: int) -> Any:
        return None if verdicts is None else [verdicts[position], percent(verdicts[position])]

    return table(
        Wording("Probability “replaced” of every token"),
        [
            Wording("Token"),
            Wording("Position"),
            Wording("Untouched"),
            Wording("Drawn"),
            Wording("Forged"),
            Wording("Yours"),
            Wording("With your words"),
        ],
        [
            [
                token["text"],
                token["position"],
                cell(game["before"], token["position"]),
                drawn.get(token["position"], ""),
                cell(game["after"], token["position"]),
                mine.get(token["position"], ""),
                cell(own, token["position"]),
            ]
            for token in game["tokens"]
        ],
    )


def notes(game: Game) -> dict[str, Any]:
    """What the discriminator says of each of the visitor's words."""
    rows = []
    for fake in fakes(game):
        position, chance = fake["position"], game["mine"]["verdicts"][fake["position"]]
        says = fake["note"] or (
            Wording("fools it") if chance < THRESHOLD else Wording("is noticed")
        )
        number = None if fake["note"] else [chance, percent(chance)]
        rows.append([fake["word"], game["tokens"][position]["text"], says, number])
    columns = [Wording("Your word"), Wording("Instead of"), Wording("Verdict")]
    return table(Wording("Your words"), [*columns, Wording("Probability “replaced”")], rows)


def fakes(game: Game) -> list[dict[str, Any]]:
    """The visitor's words, and what became of each."""
    return game["mine"]["fakes"] if game["mine"] else []
