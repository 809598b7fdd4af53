"""Claims about XLNet: orders, streams, what is predicted. No Gradio in it."""

from collections.abc import Sequence

import torch
from torch import Tensor

import core_models as cm
from app.claims.bench import PLAIN, Bench, moved, percent, random_model, shrunk, vocabulary
from app.claims.card import Claim, Number, Rule, Values, Verdict, at_least
from core_models.batch import Batch
from core_models.masking.orderings import Ordering, draw_order, paper
from viz.svg import Wording

LENGTH, ASKED = 24, 4
_SIZE = "xlnet-base-cased"


def _batch(ids: Tensor, ordering: Ordering) -> Batch:
    return Batch(
        input_ids=ids,
        visibility=ordering.visibility,
        targets=ordering.targets,
        target_visibility=ordering.target_visibility,
    )


def _orders(bench: Bench, rows: int) -> tuple[Tensor, Ordering]:
    """Orders [B, L], and both masks when their last pieces are predicted."""
    order = draw_order(rows, LENGTH, generator=bench.generator(2))
    return order, paper(order, torch.full((rows,), ASKED))


def _two_orders(bench: Bench) -> Sequence[Number]:
    """One text under two orders: what the model reads, and what differs."""
    ids = bench.ids(1, LENGTH).expand(2, -1)
    _, ordering = _orders(bench, 2)
    model = random_model(shrunk(_SIZE), bench.seed, heads=())
    trace = cm.Trace(sites=["embedding"])
    with torch.inference_mode():
        hidden = model.encoder(_batch(ids, ordering), trace).hidden
    read = trace.get("embedding")
    cells = (ordering.visibility[0] != ordering.visibility[1]).float().mean()
    return [
        Number(
            key="input",
            label=Wording("change of the input between two orders"),
            value=moved(read[0], read[1]),
            unit="%",
        ),
        Number(
            key="cells",
            label=Wording("entries of the visibility mask that differ"),
            value=100 * float(cells),
            unit="%",
        ),
        Number(
            key="states",
            label=Wording("change of the states between two orders"),
            value=moved(hidden[0], hidden[1]),
            unit="%",
        ),
    ]


def _permutes(values: Values) -> Verdict:
    if values["input"] > 0.01:
        return "right" if values["cells"] == 0 else "half"
    return "wrong"


def _masks(bench: Bench) -> Sequence[Number]:
    """Both streams' masks for every position of eight orders."""
    order = draw_order(8, LENGTH, generator=bench.generator(2))
    ordering = paper(order, torch.full((8,), LENGTH))
    rows = ordering.targets[..., None].expand(-1, -1, LENGTH)
    content, query = ordering.visibility.gather(1, rows), ordering.target_visibility
    itself = ordering.targets[..., None] == torch.arange(LENGTH)
    differ = content != query
    return [
        Number(
            key="differ",
            label=Wording("rows in which the two streams' masks differ"),
            value=percent(int(differ.any(-1).sum()), differ[..., 0].numel()),
            unit="%",
        ),
        Number(
            key="content",
            label=Wording("rows of the content stream that see themselves"),
            value=percent(int((content & itself).sum()), int(itself.sum())),
            unit="%",
        ),
        Number(
            key="query",
            label=Wording("rows of the query stream that see themselves"),
            value=percent(int((query & itself).sum()), int(itself.sum())),
            unit="%",
        ),
    ]


def _one_mask(values: Values) -> Verdict:
    return "right" if values["differ"] == 0 else "half" if values["differ"] < 50 else "wrong"


def _places(bench: Bench) -> Sequence[Number]:
    """Where in the text the last sixth of 200 orders stands."""
    order = draw_order(200, LENGTH, generator=bench.generator(4))
    targets = paper(order, torch.full((200,), ASKED)).targets.float()
    tail = percent(int((targets >= LENGTH - ASKED).sum()), targets.numel())
    middle = 100 * float(targets.mean()) / (LENGTH - 1)
    return [
        Number(
            key="asked",
            label=Wording("pieces that are predicted"),
            value=100 * ASKED / LENGTH,
            unit="%",
        ),
        Number(
            key="tail",
            label=Wording("of those, in the last sixth of the text"),
            value=tail,
            unit="%",
        ),
        Number(
            key="middle",
            label=Wording("their mean place, from first to last piece"),
            value=middle,
            unit="%",
        ),
    ]


def _blind(bench: Bench) -> Sequence[Number]:
    """Put other pieces at the targets that come last, and compare both streams there."""
    ids = bench.ids(8, LENGTH)
    order = draw_order(8, LENGTH, generator=bench.generator(2))
    ordering = paper(order, torch.ones(8, dtype=torch.long))
    others = (ids - PLAIN + 1) % (vocabulary() - PLAIN) + PLAIN
    changed = ids.scatter(1, ordering.targets, others.gather(1, ordering.targets))
    model = random_model(shrunk(_SIZE), bench.seed, heads=())
    with torch.inference_mode():
        before, after = (model.encoder(_batch(each, ordering)) for each in (ids, changed))
    index = ordering.targets[..., None].expand(-1, -1, model.config.width)
    return [
        Number(
            key="query",
            label=Wording("change of the query stream at a target with another word"),
            value=moved(before.streams["query"], after.streams["query"]),
            unit="%",
        ),
        Number(
            key="content",
            label=Wording("change of the content stream at a target with another word"),
            value=moved(before.hidden.gather(1, index), after.hidden.gather(1, index)),
            unit="%",
        ),
    ]


def _cannot_peek(values: Values) -> Verdict:
    if values["query"] > 0.01:
        return "wrong"
    return "right" if values["content"] > 1 else "half"


def _size(bench: Bench) -> Sequence[Number]:
    """What the relative terms of an XLNet layer cost beside a BERT layer."""
    xlnet, bert = cm.size("xlnet-base-cased"), cm.size("bert-base-uncased")
    one = [cm.count(name).one_block / 1e6 for name in ("xlnet-base-cased", "bert-base-uncased")]
    tables = [config.embeddings.positions or 0 for config in (xlnet, bert)]
    return [
        Number(
            key="xlnet",
            label=Wording("one layer of {0}", "xlnet-base-cased"),
            value=one[0],
            unit="million",
        ),
        Number(
            key="bert",
            label=Wording("one layer of {0}", "bert-base-uncased"),
            value=one[1],
            unit="million",
        ),
        Number(
            key="rows", label=Wording("rows of XLNet's table of positions"), value=float(tables[0])
        ),
        Number(
            key="bert_rows",
            label=Wording("rows of BERT's table of positions"),
            value=float(tables[1]),
        ),
    ]


def _longest(bench: Bench) -> Sequence[Number]:
    """Texts longer than 512 pieces, which BERT's table does not have."""
    found = list(_size(bench))
    config = shrunk(_SIZE, layers=1, width=16, heads=2)
    model = random_model(config, bench.seed, heads=())
    with torch.inference_mode():
        hidden = model.encoder(Batch(input_ids=bench.ids(1, 600))).hidden
    states = float(hidden.shape[1] if bool(hidden.isfinite().all()) else 0)
    return [
        *found[2:],
        Number(key="read", label=Wording("pieces that a small XLNet has read"), value=states),
    ]


_CODE = """import torch
from core_models.masking.orderings import draw_order, paper

order = draw_order(1, 8, generator=torch.Generator().manual_seed(0))
masks = paper(order, torch.tensor([8]))
print(order[0].tolist())
print(masks.visibility[0].int())         # content stream, a row for each place
print(masks.target_visibility[0].int())  # query stream, a row for each target"""

CLAIMS = (
    Claim(
        name="xlnet-shuffles",
        family="XLNet",
        statement="XLNet shuffles the words of its input.",
        source="arXiv 1906.08237, section 2.2",
        how="Lets a small XLNet read one text under two orders and compares input, masks and "
        "states.",
        measure=_two_orders,
        rule=Rule(
            text="Right if only the input differs between two orders, half right if the input and "
            "the mask differ, wrong if the input stays the same.",
            judge=_permutes,
        ),
        why="Words stay where they are, with their true places. The order only decides who may "
        "see whom.",
        code=_CODE,
    ),
    Claim(
        name="xlnet-one-mask",
        family="XLNet",
        statement="XLNet needs one mask, under which each token sees those before it in the order.",
        articles=(1, 3),
        source="arXiv 1906.08237, section 2.3 and figure 1",
        how="Builds the masks of both streams for eight orders of 24 tokens and compares them.",
        measure=_masks,
        rule=Rule(
            text="Right if the two streams' masks agree in every row, half right if they differ in "
            "less than half of the rows, else wrong.",
            judge=_one_mask,
        ),
        why="The content stream also sees the token itself, as later tokens need it; the query "
        "stream does not, as it has to predict it.",
        code=_CODE,
    ),
    Claim(
        name="xlnet-last-sixth",
        family="XLNet",
        statement="With K = 6 XLNet predicts the last sixth of the text.",
        articles=(1, 3),
        source="arXiv 1906.08237, section 2.3, equation 5",
        how="Draws 200 orders of 24 tokens and looks where the last four of each order stand.",
        measure=_places,
        rule=at_least(
            "tail",
            95,
            50,
            "Right if 95 % of the predicted pieces stand in the last sixth of the text, half right "
            "from 50 % on, else wrong.",
        ),
        why="It is the last sixth of the order, and an order puts any token there.",
        code=_CODE,
    ),
    Claim(
        name="xlnet-cannot-peek",
        family="XLNet",
        statement="XLNet predicts a word without [MASK] and without seeing it.",
        articles=(3,),
        said="arXiv 1906.08237, section 2.3",
        source="arXiv 1906.08237, section 2.3",
        how="Puts another word at a target and compares both streams of a small XLNet there.",
        measure=_blind,
        rule=Rule(
            text="Wrong if the query stream changes by more than 0.01 %; else right if the content "
            "stream changes by more than 1 %, half right if it does not.",
            judge=_cannot_peek,
        ),
        why="The query stream starts from one trained vector and a place, and never reads the word "
        "at that place.",
        code=_CODE,
    ),
    Claim(
        name="xlnet-longer",
        family="XLNet",
        statement="XLNet has no limit of 512 tokens built in.",
        articles=(1,),
        source="arXiv 1906.08237, section 2.4",
        how="Looks for tables of positions, and lets a small XLNet read 600 tokens.",
        measure=_longest,
        rule=Rule(
            text="Right if XLNet has no table of positions and reads 600 tokens, half right if one "
            "of the two holds, else wrong.",
            judge=lambda values: ("wrong", "half", "right")[
                (values["rows"] == 0) + (values["read"] >= 600)
            ],
        ),
        why="Distances are waves, computed for any length. It was trained on 512 tokens all the "
        "same, so longer distances are new to it.",
        code="import core_models as cm\n\nprint(cm.size('xlnet-base-cased').embeddings.positions,\n"
        "      cm.size('bert-base-uncased').embeddings.positions)",
        drawn=False,
    ),
)
