"""The Forge tab without a browser: numbers against core_models, pairs of models, bad input."""

import asyncio
import math
from dataclasses import replace

import pytest
import torch

import core_models as cm
from app.labs.forge import answers as forge
from app.labs.forge import lab as tab
from app.labs.forge import rounds, shown
from app.labs.forge import score as scores
from app.serving.session import Session
from core_models.prediction import detect, fill
from core_models.prediction import forge as core_forge
from tests.app.forge_rounds import TEXT, ask, hide, question
from viz import verdicts


@pytest.mark.parametrize("temperature", [0.5, 1, 2.5])
def test_every_number_is_that_of_the_core_calls(forge_session, temperature):
    answer = ask(forge_session, marks=hide(2, 6), temperature=temperature)
    sleuth, generator = forge_session.model("sleuth"), forge_session.model("sleuth-generator")
    random = torch.Generator().manual_seed(3)
    forged = core_forge(generator, TEXT, [2, 6], random=random, temperature=temperature)
    judged = detect(sleuth, TEXT, replaced={s.position: s.id for s in forged.samples})
    assert answer["before"] == [v.probability for v in detect(sleuth, TEXT).verdicts]
    assert answer["after"] == [v.probability for v in judged.verdicts]
    for gap, sample in zip(answer["gaps"], forged.samples, strict=True):
        assert gap["sample"] == {
            name: getattr(sample, name) for name in ("id", "piece", "display", "probability")
        }
        assert gap["original_probability"] == sample.original_probability
        assert gap["lucky"] == sample.lucky


def test_the_distribution_is_that_of_fill_sharpened_by_the_temperature(forge_session):
    generator = forge_session.model("sleuth-generator")
    (plain,) = fill(generator, TEXT, masks=[2], top_k=100).predictions
    warm = ask(forge_session, marks=hide(2), temperature=1)["gaps"][0]["candidates"]
    for mine, theirs in zip(warm, plain.candidates, strict=False):
        assert mine["id"] == theirs.id
        assert mine["probability"] == pytest.approx(theirs.probability, rel=1e-5)
    cold = ask(forge_session, marks=hide(2), temperature=0.5)["gaps"][0]["candidates"]
    # p^(1/T) up to a factor: the ratio of two candidates is squared.
    expected = (warm[0]["probability"] / warm[1]["probability"]) ** 2
    assert cold[0]["probability"] / cold[1]["probability"] == pytest.approx(expected, rel=1e-4)


def test_a_lucky_draw_counts_as_real(forge_session, monkeypatch):
    def hit(*values, **options):
        forged = core_forge(*values, **options)
        first, *rest = forged.samples
        return replace(forged, samples=[replace(first, id=first.original, lucky=True), *rest])

    monkeypatch.setattr(forge, "forge", hit)
    answer = ask(forge_session, marks=hide(2))
    assert answer["gaps"][0]["lucky"]
    assert answer["after"] == answer["before"]
    assert "1 draw hit the word of the text and counts as real." in answer["summary"]
    assert not any("catches" in said for said in answer["summary"])
    both = ask(forge_session, marks=hide(2, 6))
    assert any(said.endswith("of 1 forged word.") for said in both["summary"])


def test_losses_are_means_over_gaps_and_over_every_token(forge_session):
    answer = ask(forge_session, marks=hide(2, 6))
    gaps = answer["gaps"]
    generator = sum(-math.log(gap["original_probability"]) for gap in gaps) / 2
    fake = {gap["position"] for gap in gaps if not gap["lucky"]}
    truth = [p if n in fake else 1 - p for n, p in enumerate(answer["after"])]
    discriminator = sum(-math.log(p) for p in truth) / len(truth)
    loss = answer["loss"]
    assert (loss["generator"]["count"], loss["discriminator"]["count"]) == (2, len(truth))
    assert loss["generator"]["mean"] == pytest.approx(generator)
    assert loss["discriminator"]["mean"] == pytest.approx(discriminator)
    assert loss["discriminator"]["each"] == pytest.approx([-math.log(p) for p in truth])


def test_a_gap_of_the_text_costs_the_generator_nothing(forge_session):
    answer = ask(forge_session, text="The capital of [MASK] is Paris.", marks=hide(6))
    (gap,) = [gap for gap in answer["gaps"] if not gap["written"]]
    assert answer["loss"]["generator"] == {
        "count": 1,
        "each": [pytest.approx(-math.log(gap["original_probability"]))],
        "mean": pytest.approx(-math.log(gap["original_probability"])),
    }
    rows = shown.learned_from(answer).layout.meta["rows"]
    assert [row[0] for row in rows if row[2] is not None] == [6]
    alone = ask(forge_session, text="[MASK]")
    assert alone["loss"]["generator"]["mean"] is None
    assert "no place" in shown.learned(alone)


def test_a_gap_of_the_text_has_no_verdict_that_could_be_right(forge_session):
    """Nobody knows its word, so what stands there is neither real nor a forgery."""
    answer = ask(forge_session, text="The capital of [MASK] is Paris.", marks=hide(6))
    after, gaps = answer["after"], {gap["position"]: gap for gap in answer["gaps"]}
    fake = not gaps[6]["lucky"]
    truth = [p if n == 6 and fake else 1 - p for n, p in enumerate(after) if n != 4]
    found = answer["loss"]["discriminator"]
    assert found["count"] == len(after) - 1
    assert found["each"][4] is None
    assert found["mean"] == pytest.approx(-sum(map(math.log, truth)) / len(truth))
    said = shown.learned(answer)
    assert f"Discriminator: {len(after) - 1} of {len(after)} places (" in said
    drawn = shown.learned_from(answer)
    assert [row[0] for row in drawn.layout.meta["rows"] if row[3] is None] == [4]
    assert len(drawn.data[1].x) == len(after) - 1


def test_losses_at_another_temperature_say_so(forge_session):
    said = "The generator's loss is that at temperature 2.5; it is trained at 1."
    assert said in shown.learned(ask(forge_session, marks=hide(2), temperature=2.5))
    assert "temperature" not in shown.learned(ask(forge_session, marks=hide(2)))


def test_only_what_rounds_to_it_is_a_hundred_percent(forge_session):
    game = ask(forge_session, marks=hide(2))
    for chance, whole, fine in (
        (0.9962, "99.6 %", "99.6\u00a0%"),
        (0.9997, "100 %", "100\u00a0%"),
        (0.004, "0 %", "0.4\u00a0%"),
    ):
        sure = {**game, "after": [chance] * len(game["after"])}
        assert {row[4][1] for row in shown.numbers(sure)["rows"]} == {fine}
        svg = verdicts.verdicts_svg([verdicts.Judged(text="a", chance=chance)], title="t")
        assert f">{whole}<" in svg
    score = {**scores.EMPTY, "human": [200, 199]}
    assert scores.board(score)["rows"][0][2][1] == "199 (99.5 %)"


def test_my_fake_is_judged_alone_in_the_true_sentence(forge_session):
    answer = ask(forge_session, marks=hide(2), fakes=[[6, "honey"]])
    sleuth = forge_session.model("sleuth")
    (index,) = sleuth.tokenizer.pieces_of("honey")
    judged = detect(sleuth, TEXT, replaced={6: index})
    assert answer["mine"]["verdicts"] == [v.probability for v in judged.verdicts]
    assert answer["mine"]["fakes"] == [{"position": 6, "word": "honey", "id": index, "note": None}]


@pytest.mark.parametrize(
    ("word", "note"),
    [("Paris", "stands there already"), ("flowe", "pieces here"), ("龘", "vocabulary")],
)
def test_a_word_that_is_no_fake_says_why(forge_session, word, note):
    mine = ask(forge_session, fakes=[[6, word]])["mine"]
    assert mine["fakes"][0]["id"] is None
    assert note in mine["fakes"][0]["note"]
    assert mine["verdicts"] == ask(forge_session)["before"]


def test_a_draw_depends_on_its_seed_and_leaves_special_pieces(forge_session):
    text = " ".join(["bees make honey and fly"] * 6)
    places = [
        [gap["position"] for gap in ask(forge_session, text=text, seed=seed)["gaps"]]
        for seed in (1, 1, 2)
    ]
    assert places[0] == places[1] != places[2]
    assert all(len(found) == round(0.15 * 32) for found in places)  # 30 words, [CLS], [SEP]
    assert not {0, 31} & set(places[0])
    assert ask(forge_session, text=text)["drawn"] is True


def test_hidden_words_of_another_vocabulary_are_found_by_their_letters(forge_session):
    other = forge_session.sentence(TEXT, "bert-mini").tokens
    (paris,) = [token.position for token in other if token.text == "Paris"]
    answer = ask(forge_session, model="bert-mini", marks=hide(paris))
    assert {answer["tokens"][gap["position"]]["text"] for gap in answer["gaps"]} == {"Paris"}
    assert answer["chosen"].name == "sleuth"


def test_a_gap_in_the_text_is_filled_and_has_no_truth(forge_session):
    answer = ask(forge_session, text="The capital of [MASK] is Paris .", marks=hide(6))
    gap = answer["gaps"][0]
    assert (gap["position"], gap["written"], gap["original"]) == (4, True, None)
    said = " ".join(answer["summary"])
    assert "1 forged word" in said or "hit the word" in said


def test_which_pair_answers(forge_session):
    listed = [(d.name, d.generator) for d in ask(forge_session)["detectives"]]
    assert listed == [("sleuth", True), ("alone", False)]
    assert ask(forge_session, model="sleuth-generator")["chosen"].name == "sleuth"
    assert ask(forge_session, detective="alone")["chosen"].name == "alone"
    # What was chosen last counts, in the lab or in the sentence block.
    before = {"text": TEXT, "model": "bert-mini"}
    assert ask(forge_session, detective="alone", last=before)["chosen"].name == "sleuth"
    before["model"] = "sleuth"
    assert ask(forge_session, detective="alone", last=before)["chosen"].name == "alone"


def test_electra_answers_where_nobody_was_chosen(forge_session, monkeypatch):
    """DeBERTa v3 comes before it in the alphabet."""
    (sleuth,) = [info for info in forge_session.models() if info.name == "sleuth"]
    other = replace(sleuth, name="deberta", family="deberta_v3")
    monkeypatch.setattr(forge_session, "models", lambda: [other, sleuth])
    monkeypatch.setattr(forge_session, "has_generator", lambda name: True)
    assert [each.name for each in rounds.detectives(forge_session)] == ["sleuth", "deberta"]


def test_a_detective_without_generator_still_judges(forge_session):
    answer = ask(forge_session, model="alone", fakes=[[2, "bees"]])
    assert answer["generator"] is None
    assert (answer["after"], answer["gaps"], answer["loss"]) == (None, [], None)
    assert len(answer["mine"]["verdicts"]) == len(answer["tokens"])


def test_without_a_detective_the_tab_says_so(monkeypatch):
    monkeypatch.delenv("CLOZE_MODELS", raising=False)
    forge_session = Session()
    monkeypatch.setattr(forge_session, "models", lambda: [])
    with pytest.raises(cm.InputError, match="zoo build electra-mini"):
        ask(forge_session, model="bert-mini")
    forge_session.close()


def test_a_text_longer_than_the_generator_reads_is_played_on_its_beginning(
    forge_session, monkeypatch
):
    def longest(model):
        return 12 if model.name.endswith("-generator") else 512

    monkeypatch.setattr(cm.Model, "longest", property(longest))
    answer = ask(forge_session, text=f"{TEXT} {TEXT} {TEXT}")
    assert answer["truncated"]
    assert len(answer["after"]) == len(answer["tokens"]) <= 12
    spoken = [token["text"] for token in answer["tokens"] if not token["special"]]
    assert [*TEXT.removesuffix(".").split(), "."] == spoken[:7]
    assert not ask(forge_session)["truncated"]
    # The code recomputes what was played.
    assert repr(f"{TEXT} {TEXT} {TEXT}") not in answer["code"]


def test_models_that_cut_words_otherwise_are_refused(forge_session):
    sleuth, stranger = forge_session.model("sleuth"), forge_session.model("bert-mini")
    game = forge.read_game(TEXT, question())
    with pytest.raises(cm.InputError, match="other pieces"):
        forge.play(sleuth, stranger, game)


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"text": " "}, "no text"),
        ({"text": None}, "no text"),
        ({"temperature": 0}, "between 0.1 and 5"),
        ({"temperature": float("nan")}, "between"),
        ({"temperature": "hot"}, "between"),
        ({"roll": -1}, "roll"),
        ({"seed": True}, "seed"),
        ({"fakes": "x"}, "list"),
        ({"fakes": [[2]]}, "position and a word"),
        ({"fakes": [[2, "x" * 65]]}, "64"),
        ({"fakes": [[n, "x"] for n in range(17)]}, "at most 16"),
        ({"marks": [3]}, "mark"),
        ({"model": "../etc", "marks": hide(2)}, "no model"),
    ],
)
def test_bad_questions_get_a_sentence(forge_session, values, word):
    with pytest.raises(cm.InputError, match=word):
        ask(forge_session, **values)


@pytest.mark.parametrize("text", ["Paris", "[MASK]", "word " * 2000, "[MASK] " * 50])
def test_short_long_and_empty_sentences(forge_session, text):
    answer = ask(forge_session, text=text)
    assert len(answer["after"]) == len(answer["tokens"]) <= 512
    asyncio.run(tab.show(forge_session, question(text=text)))
    assert all(math.isfinite(chance) for chance in answer["after"])


def test_the_code_shown_recomputes_the_verdicts(forge_session):
    answer = ask(forge_session, marks=hide(2, 6), fakes=[[4, "honey"]])
    printed: list = []
    names: dict = {"print": lambda *values: printed.append(values)}
    exec(answer["code"], names)
    expected = [*answer["after"], *answer["mine"]["verdicts"]]
    assert [chance for _, _, chance in printed] == pytest.approx(expected, rel=1e-5)
