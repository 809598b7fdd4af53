"""Claims about RoBERTa: its size, its vocabulary, its masks. No Gradio in it."""

from collections.abc import Sequence

import core_models as cm
from app.claims.bench import Bench, percent, primer_rows
from app.claims.card import Claim, Number, Rule, Values, Verdict, at_least, at_most, near
from app.labs.timeline import answers as timeline
from app.labs.tokenizers.answers import KINDS, cut, shipped
from viz.svg import Wording

EPOCHS, COPIES = 40, 10
FREQUENT = "北京是中国的首都位于华南平原部长江流入东海黄河"
RARE = "龘鑫犇饕餮魑魅魍魉貔貅囧靐齉爨懿霹雳鹦鹉"
ODD = "I like 龘 and 😀 very much, said the naïve café owner ☕."
SHORT, MIDDLE, LONG = 8, 24, 128


def _vocabularies(bench: Bench) -> Sequence[Number]:
    bert, roberta = cm.size("bert-base-uncased"), cm.size("roberta-base")
    pieces = [config.embeddings.vocabulary for config in (bert, roberta)]
    added = (cm.count("roberta-base").pieces - cm.count("bert-base-uncased").pieces) / 1e6
    return [
        Number(key="bert", label=Wording("pieces of {0}", "bert-base-uncased"), value=pieces[0]),
        Number(key="roberta", label=Wording("pieces of {0}", "roberta-base"), value=pieces[1]),
        Number(
            key="ratio",
            label=Wording("RoBERTa over BERT"),
            value=pieces[1] / pieces[0],
            unit="times",
        ),
        Number(
            key="added", label=Wording("parameters added to the table"), value=added, unit="million"
        ),
    ]


def _large(bench: Bench) -> Sequence[Number]:
    return [
        Number(
            key=key,
            label=Wording("parameters of {0}", name),
            value=cm.count(name).base / 1e6,
            unit=unit,
        )
        for key, name, unit in (
            ("roberta", "roberta-large", "million"),
            ("bert", "bert-large-uncased", "million"),
        )
    ]


def _unknown(bench: Bench) -> Sequence[Number]:
    found = []
    for kind, title in KINDS.items():
        bench.check()
        value = float(cut(shipped(kind), ODD).unknown)
        found.append(Number(key=kind, label=Wording("unknown pieces, {0}", title), value=value))
    return found


def _never_unknown(values: Values) -> Verdict:
    if values["byte_bpe"] > 0:
        return "wrong"
    return "right" if values["wordpiece"] > 0 else "half"


def _per_character(bench: Bench) -> Sequence[Number]:
    """Pieces of frequent and of rare Chinese characters in byte-level BPE."""
    tokenizer = shipped("byte_bpe")
    costs = {
        key: [max(1, cut(tokenizer, character).content) for character in characters]
        for key, characters in (("frequent", FREQUENT), ("rare", RARE))
    }
    both = [*costs["frequent"], *costs["rare"]]
    counts = [percent(both.count(n), len(both)) for n in (1, 2, 3)]
    labels = (
        Wording("characters that stay one piece"),
        Wording("characters cut into two"),
        Wording("cut into three"),
    )
    return [
        *(
            Number(key=key, label=label, value=share, unit="%")
            for key, label, share in zip(("one", "two", "three"), labels, counts, strict=True)
        ),
        Number(
            key="frequent",
            label=Wording("pieces of a frequent character, mean"),
            value=sum(costs["frequent"]) / len(FREQUENT),
        ),
        Number(
            key="rare",
            label=Wording("pieces of a rare one, mean"),
            value=sum(costs["rare"]) / len(RARE),
        ),
    ]


def _inputs(bench: Bench, length: int) -> dict[str, int]:
    """How many different inputs 40 epochs show of one text, for each regime."""
    rows = primer_rows()
    ids, maskable, words, lengths = (part[:1] for part in rows)
    cut_off = min(length, int(lengths))
    one = (ids[:, :cut_off], maskable[:, :cut_off], words[:, :cut_off], lengths.clamp(max=cut_off))
    many = tuple(part.expand(EPOCHS, *part.shape[1:]) for part in one)
    sources = [bench.generator(n, length) for n in range(EPOCHS)]
    drawn = timeline.draw("uniform", shipped("wordpiece"), many, sources)
    setting = timeline.Setting(kind="uniform", epochs=EPOCHS, copies=COPIES, seed=bench.seed)
    plain = int(one[1].sum())
    return {
        regime: timeline.contexts(drawn, timeline.visits(regime, setting), plain)["inputs"]
        for regime in timeline.REGIMES
    }


def _regimes(bench: Bench) -> Sequence[Number]:
    inputs = _inputs(bench, LONG)
    own = "dynamic" if cm.size("roberta-base").masking.dynamic else "copies"
    each = EPOCHS / inputs["copies"]
    return [
        Number(
            key="roberta",
            label=Wording("masks that RoBERTa's recipe draws in 40 epochs"),
            value=inputs[own],
        ),
        Number(
            key="copies", label=Wording("different masks in ten copies"), value=inputs["copies"]
        ),
        Number(key="each", label=Wording("epochs that show the same copy"), value=each),
        Number(key="static", label=Wording("different masks in one copy"), value=inputs["static"]),
    ]


def _ten_copies(values: Values) -> Verdict:
    if values["roberta"] == values["copies"]:
        return "right"
    return "wrong" if values["roberta"] >= 0.95 * EPOCHS else "half"


def _always_new(bench: Bench) -> Sequence[Number]:
    found = []
    for key, length in (("long", LONG), ("middle", MIDDLE), ("short", SHORT)):
        bench.check()
        inputs = _inputs(bench, length)["dynamic"]
        label = Wording("different inputs in 40 epochs, text of {0} pieces", length)
        found.append(Number(key=key, label=label, value=inputs))
    return found


def _new_each_time(values: Values) -> Verdict:
    new = [values[key] >= EPOCHS for key in ("long", "middle", "short")]
    return "right" if all(new) else "depends" if any(new) else "wrong"


_COUNT = "import core_models as cm\n\nfor name in ({names}):\n    print(name, cm.count(name).base)"
_SIZES = (
    "import core_models as cm\n\nfor name in ('bert-base-uncased', 'roberta-base'):\n"
    "    print(name, cm.size(name).embeddings.vocabulary, cm.count(name).pieces)"
)
_CUT = """from core_models import Tokenizer

for kind in ("wordpiece", "byte_bpe", "unigram"):
    tokenizer = Tokenizer.from_folder(f"assets/tokenizers/{{kind}}")
    print(kind, tokenizer.encode({text!r}).pieces)"""
_EPOCHS = """import torch
from core_models import Tokenizer
from core_models.masking import tokens as masking

tokenizer = Tokenizer.from_folder("assets/tokenizers/wordpiece")
ids = torch.randint(5, tokenizer.vocabulary, ({length},))
seen = set()
for epoch in range(40):  # ten copies: epoch % 10; static: 0
    drawn = masking.uniform(ids, ids > 0, generator=masking.generator_for(0, epoch),
                            mask_id=tokenizer.mask_id, vocabulary=tokenizer.vocabulary)
    seen.add(tuple(drawn.inputs.tolist()))
print(len(seen))"""

CLAIMS = (
    Claim(
        name="roberta-smaller-vocabulary",
        family="RoBERTa",
        statement="Byte-level BPE gives RoBERTa a smaller vocabulary than BERT's.",
        articles=(3,),
        source="arXiv 1907.11692, section 4.4",
        how="Compares the piece tables of the released sizes.",
        measure=_vocabularies,
        rule=at_most("ratio", 1, 1.02, "Right if RoBERTa has no more pieces, else wrong."),
        why="Bytes spare the unknown piece, but the authors chose 50,000 merges: more pieces, more "
        "parameters, fewer pieces per text.",
        code=_SIZES,
        drawn=False,
    ),
    Claim(
        name="roberta-double-vocabulary",
        family="RoBERTa",
        statement="RoBERTa's vocabulary of 50 thousand is nearly twice BERT's 30 thousand.",
        articles=(4,),
        source="arXiv 1907.11692, section 4.4; counted",
        how="Compares the piece tables of the released sizes.",
        measure=_vocabularies,
        rule=at_least(
            "ratio",
            1.9,
            1.75,
            "Right from 1.9 times on, half right from 1.75 times on, else wrong.",
        ),
        why="It is two thirds more: 50,265 pieces against 30,522.",
        code=_SIZES,
        drawn=False,
    ),
    Claim(
        name="roberta-340",
        family="RoBERTa",
        statement="RoBERTa large is BERT large, with its 340 million parameters.",
        articles=(5,),
        source="arXiv 1907.11692, section 5; counted",
        how="Builds both released sizes without memory and counts.",
        measure=_large,
        rule=near({"roberta": 340}, right=1, half=3),
        why="The layers are the same; the larger vocabulary adds 20.2 million.",
        code=_COUNT.format(names="'bert-large-uncased', 'roberta-large'"),
        drawn=False,
    ),
    Claim(
        name="roberta-never-unknown",
        family="RoBERTa",
        statement="RoBERTa's kind of tokenizer never meets an unknown word.",
        articles=(3,),
        source="arXiv 1907.11692, section 4.4",
        how="Cuts a line with rare signs by each kind of vocabulary and counts unknown pieces.",
        measure=_unknown,
        rule=Rule(
            text="Wrong if byte-level BPE has an unknown piece; right if it has none where "
            "WordPiece has some, half right if neither has any.",
            judge=_never_unknown,
        ),
        why="Whatever has no piece is spelt in bytes, and all 256 bytes are pieces.",
        code=_CUT.format(text=ODD),
        drawn=False,
    ),
    Claim(
        name="roberta-chinese-character",
        family="RoBERTa",
        statement="Byte-level BPE cuts a Chinese character into two pieces.",
        articles=(5,),
        source="arXiv 1907.11692, section 4.4",
        how="Cuts 23 frequent and 20 rare Chinese characters by the byte-level BPE of the Primer.",
        measure=_per_character,
        rule=Rule(
            text="Right if at least 90 % of the characters give exactly two pieces, wrong if fewer "
            "than 10 % do; in between it depends on the character.",
            judge=lambda values: (
                "right" if values["two"] >= 90 else "wrong" if values["two"] < 10 else "depends"
            ),
        ),
        why="A character is three bytes. How many pieces they make depends on what the vocabulary "
        "was learnt from; a piece always holds whole bytes.",
        code=_CUT.format(text=FREQUENT + RARE),
        drawn=False,
    ),
    Claim(
        name="roberta-ten-copies",
        family="RoBERTa",
        statement="RoBERTa's dynamic masking means: copy the data ten times and mask each copy "
        "once.",
        articles=(2,),
        source="arXiv 1907.11692, section 4.1",
        how="Masks one text for 40 epochs in three ways and counts different inputs.",
        measure=_regimes,
        rule=Rule(
            text="Right if RoBERTa's recipe shows as many different masks as ten copies do, wrong "
            "if it shows at least 38 in 40 epochs, else half right.",
            judge=_ten_copies,
        ),
        why="Ten copies is the static baseline of the paper. Dynamic masking draws whenever a text "
        "is fed to the model.",
        code=_EPOCHS.format(length=LONG),
    ),
    Claim(
        name="bert-four-masks",
        family="BERT",
        statement="Each text of BERT's training has four masks, each seen for ten epochs.",
        articles=(5,),
        source="arXiv 1907.11692, section 4.1; google-research/bert, create_pretraining_data.py",
        how="Masks one text ten times, as the released script does by default, and counts how "
        "often each mask comes round in 40 epochs.",
        measure=_regimes,
        rule=Rule(
            text="Right if the same copy is shown in ten epochs, half right in six to nine, else "
            "wrong.",
            judge=lambda values: (
                "right" if values["each"] >= 10 else "half" if values["each"] >= 6 else "wrong"
            ),
        ),
        why="It is the other way round: ten masks, and each of them seen four times.",
        code=_EPOCHS.format(length=LONG),
    ),
    Claim(
        name="dynamic-always-new",
        family="RoBERTa",
        statement="With dynamic masking a model never sees the same masked text twice.",
        articles=(1, 3, 4, 5),
        source="arXiv 1907.11692, section 4.1",
        how="Masks texts of 128, 24 and 8 pieces afresh 40 times and counts different inputs.",
        measure=_always_new,
        rule=Rule(
            text="Right if all 40 inputs differ at every length, wrong if at none; else it depends "
            "on the length.",
            judge=_new_each_time,
        ),
        why="Of 8 pieces one is hidden, so there are few masks to draw; of 128 pieces 19 are.",
        code=_EPOCHS.format(length=SHORT),
    ),
)
