"""Claims about BERT and about encoders in general. No Gradio in it."""

from collections.abc import Sequence
from functools import partial

import torch

import core_models as cm
from app.claims.bench import Bench, masked_rows, moved, percent, random_model, shrunk
from app.claims.card import Claim, Number, Rule, Values, Verdict, at_least, at_most
from core_models.batch import Batch
from core_models.evaluation.language import language_of
from core_models.masking import tokens as masking
from viz.svg import Wording

SENTENCES = {
    "en": (
        "The capital of France is Paris.",
        "In winter the lake is covered with snow.",
        "The heart pumps blood through the body.",
    ),
    "zh": ("法国的首都是巴黎。", "北京位于华北平原的北部。", "日本是亚洲东部的一个岛国。"),
}
_DRAW = """import torch
from core_models import Tokenizer
from core_models.masking import tokens as masking

tokenizer = Tokenizer.from_folder("assets/tokenizers/wordpiece")
ids = torch.randint(5, tokenizer.vocabulary, (48, 128))
open_ = torch.ones_like(ids, dtype=torch.bool)
drawn = masking.uniform(ids, open_, generator=torch.Generator().manual_seed(0),
                        mask_id=tokenizer.mask_id, vocabulary=tokenizer.vocabulary)
"""


def _cases(bench: Bench) -> Sequence[Number]:
    """What the chosen pieces of four drawings become."""
    asked = real = 0
    shown = dict.fromkeys((masking.MASK, masking.RANDOM, masking.KEPT), 0)
    for turn in range(4):
        (_, _, _, lengths), drawn = masked_rows(bench, "uniform", turn)
        real += int(lengths.sum())
        asked += int((drawn.labels != masking.IGNORED).sum())
        for case in shown:
            shown[case] += int((drawn.cases == case).sum())
    names = {masking.MASK: "mask", masking.RANDOM: "random", masking.KEPT: "kept"}
    labels = {
        "mask": Wording("of those, shown as [MASK]"),
        "random": Wording("of those, shown as another piece"),
        "kept": Wording("of those, shown as they are"),
    }
    found = [
        Number(
            key="asked", label=Wording("pieces to predict"), value=percent(asked, real), unit="%"
        )
    ]
    for case, key in names.items():
        share = percent(shown[case], asked)
        found.append(Number(key=key, label=labels[key], value=share, unit="%"))
    return found


def _always_mask(values: Values) -> Verdict:
    if abs(values["asked"] - 15) > 1:
        return "wrong"
    return "right" if values["mask"] >= 99 else "half"


def _embedding_share(bench: Bench) -> Sequence[Number]:
    def share(name: str) -> float:
        found = cm.count(name)
        return percent(found.embedding_block, found.base)

    return [
        Number(key=key, label=Wording("embeddings of {0}", name), value=share(name), unit="%")
        for key, name in (
            ("base", "bert-base-uncased"),
            ("large", "bert-large-uncased"),
            ("tiny", "bert-2x128"),
            ("multilingual", "bert-base-multilingual-cased"),
        )
    ]


def _move(bench: Bench) -> Sequence[Number]:
    """Put the same tokens three places further to the right, behind places that nobody sees."""
    ids = bench.ids(4, 12)
    padded = torch.cat([torch.zeros(4, 3, dtype=torch.long), ids], 1)
    seen = torch.arange(15).expand(4, 15) >= 3
    found = []
    for key, name in (("bert", "bert-base-uncased"), ("xlnet", "xlnet-base-cased")):
        bench.check()
        model = random_model(shrunk(name), bench.seed)
        trace = cm.Trace(sites=["term:*"], steps=[0])
        with torch.inference_mode():
            here = model.encoder(Batch(input_ids=ids), trace).hidden
            there = model.encoder(Batch(input_ids=padded, attention_mask=seen)).hidden[:, 3:]
        terms = {site for site, _, _ in trace.records if site != "term:segment"}
        found += [
            Number(
                key=f"terms_{key}",
                label=Wording("score terms that know distances, {0}", name),
                value=float(len(terms)),
            ),
            Number(
                key=f"moved_{key}",
                label=Wording("change of the states when the text moves, {0}", name),
                value=moved(here, there),
                unit="%",
            ),
        ]
    return found


def _relative(values: Values) -> Verdict:
    signs = (values["terms_bert"] > 0, values["moved_bert"] < 0.1)
    return "right" if all(signs) else "half" if any(signs) else "wrong"


def _both_sides(bench: Bench) -> Sequence[Number]:
    """Attention of every head to the left and to the right of each inner token."""
    model = bench.with_head("masked_token")
    both: list[bool] = []
    left_of_all: list[float] = []
    for text in SENTENCES[language_of(model.tokenizer)]:
        maps = bench.ask(partial(_maps, model, text))  # [layers, H, L, L]
        left = maps.tril(-1).sum(-1)[..., 1:-1].mean(-1).flatten()
        right = maps.triu(1).sum(-1)[..., 1:-1].mean(-1).flatten()
        both += ((left > 0.01) & (right > 0.01)).tolist()
        left_of_all += (left / (left + right).clamp(min=1e-9)).tolist()
    return [
        Number(
            key="both",
            label=Wording("heads that look to both sides in one pass"),
            value=percent(sum(both), len(both)),
            unit="%",
        ),
        Number(
            key="left",
            label=Wording("mean share of a head's weight that goes to the left"),
            value=100 * sum(left_of_all) / len(left_of_all),
            unit="%",
        ),
        Number(key="heads", label=Wording("heads looked at"), value=float(len(both))),
    ]


def _maps(model: cm.Model, text: str) -> torch.Tensor:
    trace = cm.Trace(sites=["probabilities"])
    model.encoder(model.batch([text]), trace)
    return trace.stack("probabilities")[:, 0].float()


def _answer_scores(bench: Bench) -> Sequence[Number]:
    """Change one state and see whose scores of an answer's start and end change."""
    model = random_model(shrunk("bert-base-uncased"), bench.seed, heads=())
    model = model.with_head("span", generator=bench.generator(5)).eval()
    with torch.inference_mode():
        hidden = model.encoder(Batch(input_ids=bench.ids(1, 32))).hidden
        scores = model.heads["span"](hidden)
        other = hidden.clone()
        other[:, 0] += 1.0
        changed = (model.heads["span"](other) - scores).abs().amax(-1)[0] > 1e-6
    return [
        Number(key="tokens", label=Wording("tokens with a score for start and end"), value=32.0),
        Number(
            key="others",
            label=Wording("scores of other tokens that change with the state of [CLS]"),
            value=percent(int(changed[1:].sum()), 31),
            unit="%",
        ),
        Number(
            key="own",
            label=Wording("scores of [CLS] itself that change with it"),
            value=percent(int(changed[0]), 1),
            unit="%",
        ),
    ]


CLAIMS = (
    Claim(
        name="bert-always-mask",
        family="BERT",
        statement="BERT hides 15 % of the pieces, and each of them becomes [MASK].",
        articles=(3,),
        source="arXiv 1810.04805, section 3.1 and appendix A.1",
        how="Masks 48 texts of the Primer four times and counts what the chosen pieces become.",
        measure=_cases,
        rule=Rule(
            text="Wrong if not 14 to 16 % are to be predicted; else right if 99 % of those show "
            "[MASK], and half right if fewer do.",
            judge=_always_mask,
        ),
        why="Of the chosen pieces 80 % become [MASK], 10 % another piece, and 10 % stay: later, in "
        "fine-tuning, there is no [MASK] either.",
        code=_DRAW + "for case in (masking.MASK, masking.RANDOM, masking.KEPT):\n"
        "    print((drawn.cases == case).sum() / (drawn.labels != masking.IGNORED).sum())",
    ),
    Claim(
        name="bert-loss-where-replaced",
        family="BERT",
        statement="BERT learns only at places that were replaced, by [MASK] or by another word.",
        articles=(1, 2),
        source="arXiv 1810.04805, appendix A.1",
        how="Masks 48 texts of the Primer four times and counts places that are predicted although "
        "they show their own word.",
        measure=_cases,
        rule=at_most(
            "kept",
            1,
            5,
            "Right if up to 1 % of the places to predict show their own piece, half right up to "
            "5 %, else wrong.",
        ),
        why="A tenth of the chosen places keep their piece and are predicted all the same, so that "
        "no piece can be trusted blindly.",
        code=_DRAW + "asked = drawn.labels != masking.IGNORED\n"
        "print((drawn.inputs == ids)[asked].float().mean())",
    ),
    Claim(
        name="bert-half-embeddings",
        family="BERT",
        statement="The embeddings are more than half of the parameters of BERT base.",
        articles=(3,),
        source="arXiv 1909.11942, section 3.1; counted",
        how="Builds the published sizes without memory and counts tables and layers.",
        measure=_embedding_share,
        rule=at_least("base", 50, 45, "Right from 50 % on, half right from 45 % on, else wrong."),
        why="Tables grow with the width, layers with its square: the narrower or the more "
        "many-tongued a model, the more of it is a table.",
        code="import core_models as cm\n\nfor name in ('bert-base-uncased', 'bert-2x128'):\n"
        "    found = cm.count(name)\n    print(name, found.embedding_block / found.base)",
        drawn=False,
    ),
    Claim(
        name="bert-relative-positions",
        family="BERT",
        statement="BERT adds trained relative positions inside its attention.",
        articles=(5,),
        source="arXiv 1810.04805, section 3.2; arXiv 1906.08237, section 2.4 for the contrast",
        how="Moves a text three places to the right in small models with random weights. Relative "
        "positions do not notice.",
        measure=_move,
        rule=Rule(
            text="Right if BERT's scores have a term for distances and moving changes less than "
            "0.1 %; half right if one of the two holds; else wrong.",
            judge=_relative,
        ),
        why="BERT adds a vector for each place from 0 to 511 to the input; its scores are made of "
        "contents only. XLNet and DeBERTa have terms for distances.",
        code="import core_models as cm\n\nmodel = cm.load('bert-mini')\n"
        "trace = cm.Trace(sites=['term:*', 'embedding:positions'])\n"
        "model.encoder(model.batch(['The capital of France is Paris.']), trace)\n"
        "print(sorted({site for site, _, _ in trace.records}))",
    ),
    Claim(
        name="bert-two-passes",
        family="BERT",
        statement="A bidirectional encoder joins a pass from left to right with one from right to "
        "left.",
        articles=(1, 2),
        source="arXiv 1810.04805, section 3.1 and figure 3",
        how="Lets an installed model read three sentences once, and sums each head's attention to "
        "the left and to the right.",
        measure=_both_sides,
        rule=at_most(
            "both",
            10,
            50,
            "Right if up to 10 % of the heads look to both sides in one pass, half right up to "
            "50 %, else wrong.",
        ),
        why="There is one pass, and one softmax over all tokens at once. Two passes that are "
        "joined at the end are what ELMo does.",
        code="import core_models as cm\n\nmodel = cm.load('bert-mini')\n"
        "trace = cm.Trace(sites=['probabilities'])\n"
        "model.encoder(model.batch(['The capital of France is Paris.']), trace)\n"
        "maps = trace.stack('probabilities')[:, 0]\n"
        "print(maps.tril(-1).sum(-1).mean(-1), maps.triu(1).sum(-1).mean(-1))",
        head="masked_token",
        drawn=False,
    ),
    Claim(
        name="bert-answer-from-cls",
        family="BERT",
        statement="For question answering the vector of [CLS] goes through two layers that say "
        "where the answer starts and ends.",
        articles=(2,),
        source="arXiv 1810.04805, sections 4.2 and 4.3",
        how="Changes the state of [CLS] below an answer head and looks whose scores change.",
        measure=_answer_scores,
        rule=at_least(
            "others",
            99,
            50,
            "Right if 99 % of the other tokens' scores change with the state of [CLS], half right "
            "from 50 % on, else wrong.",
        ),
        why="One linear layer with two outputs reads every token. The place of [CLS] only stands "
        "for “no answer” in SQuAD 2.",
        code="import core_models as cm\n\nmodel = cm.load('bert-mini').with_head('span').eval()\n"
        "hidden = model.encoder(model.batch(['Who? Nobody.'])).hidden\n"
        "print(model.heads['span'](hidden).shape)  # [B, L, 2]: every token",
    ),
)
