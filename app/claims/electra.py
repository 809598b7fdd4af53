"""Claims about ELECTRA: what its two networks learn from. No Gradio in it."""

from collections.abc import Sequence

import torch

import core_models as cm
from app.claims.bench import ROWS, Bench, masked_rows, percent, primer_rows, random_model, shrunk
from app.claims.card import Claim, Number, Rule, Values, Verdict, at_least, near
from core_models.batch import Batch
from core_models.counting.counts import joint
from core_models.families.electra import PAIRS
from core_models.masking.tokens import IGNORED, Masked
from core_models.objectives.replaced_token import ReplacedToken
from core_models.objectives.replacing import replace_pieces
from viz.svg import Wording

FEW = 8


def _joint_batch(bench: Bench, rows: int = FEW) -> tuple[Batch, Masked]:
    """Rows of the Primer masked as ELECTRA does, with the draws of its generator."""
    (_, _, _, lengths), drawn = masked_rows(bench, "with_replacement")
    real = torch.arange(drawn.inputs.shape[1]) < lengths[:, None]
    draws = torch.rand(len(real), real.shape[1], generator=bench.generator(6))
    batch = Batch(
        input_ids=drawn.inputs[:rows],
        attention_mask=real[:rows],
        labels=drawn.labels[:rows],
        draws=draws[:rows],
    )
    return batch, drawn


def _objective(bench: Bench) -> tuple[ReplacedToken, cm.Encoder]:
    generator, discriminator = (
        random_model(shrunk(name, layers=2), bench.seed + turn)
        for turn, name in enumerate(PAIRS["electra-small"])
    )
    return ReplacedToken(discriminator, generator), discriminator.encoder


def _positions(bench: Bench) -> Sequence[Number]:
    """Tokens that enter each loss of one batch."""
    batch, _ = _joint_batch(bench)
    objective, _ = _objective(bench)
    counts = {name: float(count) for name, count in objective.counts(batch).items()}
    assert batch.attention_mask is not None
    real = float(batch.attention_mask.sum())
    return [
        Number(
            key="discriminator",
            label=Wording("tokens in the loss of the discriminator"),
            value=percent(counts["replaced_token"], real),
            unit="%",
        ),
        Number(
            key="generator",
            label=Wording("tokens in the loss of the generator"),
            value=percent(counts["masked_token"], real),
            unit="%",
        ),
    ]


def _gradients(bench: Bench) -> Sequence[Number]:
    """Where the gradient of each loss arrives."""
    batch, _ = _joint_batch(bench, rows=2)
    found = []
    for key, wanted in (("discriminator", "replaced_token"), ("generator", "masked_token")):
        bench.check()
        objective, encoder = _objective(bench)
        losses = objective(encoder, batch)
        (losses.sums[wanted] / losses.counts[wanted]).backward()
        norm = sum(
            float(p.grad.norm())
            for p in objective.generator.encoder.blocks.parameters()
            if p.grad is not None
        )
        found.append((key, norm))
    labels = {
        "discriminator": Wording(
            "gradient in the generator's layers from the loss of the discriminator"
        ),
        "generator": Wording("gradient in the generator's layers from its own loss"),
    }
    return [Number(key=key, label=labels[key], value=norm) for key, norm in found]


def _adversarial(values: Values) -> Verdict:
    if values["discriminator"] == 0:
        return "wrong"
    return "right" if values["discriminator"] > values["generator"] else "half"


def _lucky(bench: Bench) -> Sequence[Number]:
    """A generator that is right about half of the time: what the labels say of its hits."""
    batch, _ = _joint_batch(bench, rows=ROWS)
    assert batch.labels is not None
    asked = batch.labels != IGNORED
    truth = batch.labels[asked]
    vocabulary = 64 + int(truth.max())
    logits = torch.zeros(len(truth), vocabulary)
    # exp(x) against the sum of all others makes one half.
    logits.scatter_(1, truth[:, None], float(torch.tensor(vocabulary - 1.0).log()))
    corrupted = replace_pieces(batch, logits)
    hits = corrupted.samples[asked] == truth
    fake = corrupted.replaced[asked]
    return [
        Number(
            key="hits",
            label=Wording("samples that hit the original word"),
            value=percent(int(hits.sum()), len(hits)),
            unit="%",
        ),
        Number(
            key="hits_fake",
            label=Wording("of those, labelled as replaced"),
            value=percent(int((hits & fake).sum()), int(hits.sum())),
            unit="%",
        ),
        Number(
            key="others_fake",
            label=Wording("of the others, labelled as replaced"),
            value=percent(int((~hits & fake).sum()), int((~hits).sum())),
            unit="%",
        ),
    ]


def _sizes(bench: Bench) -> Sequence[Number]:
    """Both networks together, shared tables once; and the discriminator alone."""
    found = []
    for size in ("small", "base", "large"):
        generator, discriminator = PAIRS[f"electra-{size}"]
        both = joint(cm.size(generator), cm.size(discriminator)).total / 1e6
        label = Wording("{0}: both networks, shared tables once", f"electra-{size}")
        found.append(Number(key=size, label=label, value=both, unit="million"))
        label = Wording("{0}: discriminator alone", f"electra-{size}")
        alone = cm.count(discriminator).base / 1e6
        found.append(Number(key=f"{size}_alone", label=label, value=alone, unit="million"))
    return found


def _share(bench: Bench) -> Sequence[Number]:
    """How much of an input is really chosen when places are drawn with replacement."""
    _, _, _, lengths = primer_rows()
    chosen = draws = 0
    for turn in range(4):
        _, drawn = masked_rows(bench, "with_replacement", turn)
        chosen += int((drawn.labels != IGNORED).sum())
        draws += int(drawn.times.sum())  # type: ignore[attr-defined]
    whole = 4 * int(lengths.sum())
    return [
        Number(key="draws", label=Wording("draws"), value=percent(draws, whole), unit="%"),
        Number(
            key="chosen",
            label=Wording("different pieces chosen"),
            value=percent(chosen, whole),
            unit="%",
        ),
    ]


_BATCH = """from dataclasses import replace
import torch
import core_models as cm
from core_models.masking.electra import with_replacement
{imports}

discriminator, generator = (cm.load(name) for name in ("electra-mini", "electra-mini-generator"))
read = discriminator.batch(["The heart pumps blood through the body."])
words = torch.ones_like(read.input_ids, dtype=torch.bool)
words[:, [0, -1]] = False  # [CLS] and [SEP]
drawn = with_replacement(read.input_ids, words, generator=torch.Generator().manual_seed(0),
                         mask_id=discriminator.tokenizer.mask_id)
batch = replace(read, input_ids=drawn.inputs, labels=drawn.labels, draws=torch.rand(words.shape))
"""
_BUILD = (
    _BATCH.format(imports="from core_models.objectives.replaced_token import ReplacedToken")
    + """objective = ReplacedToken(discriminator, generator)
print(objective.counts(batch))
losses = objective(discriminator.encoder, batch)"""
)

CLAIMS = (
    Claim(
        name="electra-all-tokens",
        family="ELECTRA",
        statement="ELECTRA learns from every token, not only from 15 %.",
        articles=(1, 2),
        said="arXiv 2003.10555, section 1",
        source="arXiv 2003.10555, sections 2 and 3.1",
        how="Builds both networks small and counts the tokens that enter each loss of one batch.",
        measure=_positions,
        rule=at_least(
            "discriminator",
            99,
            50,
            "Right if at least 99 % of the tokens enter the discriminator's loss, half right from "
            "50 % on, else wrong.",
        ),
        why="The discriminator judges every token. Its generator still learns like BERT, from the "
        "hidden ones only.",
        code=_BUILD,
    ),
    Claim(
        name="electra-adversarial",
        family="ELECTRA",
        statement="ELECTRA is trained like a GAN: the generator learns to fool the discriminator.",
        articles=(1, 2),
        source="arXiv 2003.10555, section 2",
        how="Sends each loss back through both small networks and measures what reaches the "
        "generator's layers.",
        measure=_gradients,
        rule=Rule(
            text="Wrong if no gradient of the discriminator's loss reaches the generator's layers; "
            "right if more than of its own loss does, half right if less.",
            judge=_adversarial,
        ),
        why="A sampled word has no gradient, and none is estimated. The generator is trained to be "
        "right, by maximum likelihood.",
        code=_BUILD + "\nlosses.sums['replaced_token'].backward()\n"
        "print(all(p.grad is None for p in generator.encoder.blocks.parameters()))",
    ),
    Claim(
        name="electra-all-samples-fake",
        family="ELECTRA",
        statement="Every word that the generator writes counts as replaced.",
        source="arXiv 2003.10555, section 2",
        how="Lets a generator that is right half of the time fill 48 texts, and reads the labels.",
        measure=_lucky,
        rule=at_least(
            "hits_fake",
            99,
            1,
            "Right if 99 % of the samples that hit the original word are labelled as replaced, "
            "half right from 1 % on, else wrong.",
        ),
        why="A sample that happens to be the original word counts as original.",
        code=_BATCH.format(imports="from core_models.objectives.replacing import corrupt")
        + "corrupted = corrupt(generator, batch)\n"
        "print(corrupted.samples, corrupted.replaced)",
    ),
    Claim(
        name="electra-twice",
        family="ELECTRA",
        statement="ELECTRA small, base and large have 28, 220 and 660 million parameters.",
        articles=(2,),
        source="arXiv 2003.10555, section 3.2 and table 1; counted",
        how="Builds both networks of each released size without memory and counts.",
        measure=_sizes,
        rule=near({"small": 28, "base": 220, "large": 660}, right=3, half=10),
        why="Those are the discriminators, doubled. The generator is smaller, shares its tables, "
        "and is thrown away in the end.",
        code="import core_models as cm\nfrom core_models.counting.counts import joint\n"
        "from core_models.families.electra import PAIRS\n\n"
        "for name, (generator, discriminator) in PAIRS.items():\n"
        "    print(name, joint(cm.size(generator), cm.size(discriminator)).total)",
        drawn=False,
    ),
    Claim(
        name="electra-fifteen",
        family="ELECTRA",
        statement="ELECTRA's generator has to fill 15 % of the tokens.",
        said="arXiv 2003.10555, section 2",
        source="google-research/electra, pretrain_helpers.py",
        how="Masks 48 texts of the Primer four times as the released code does.",
        measure=_share,
        rule=Rule(
            text="Right if 14.5 to 15.5 % of the pieces are chosen, half right if 13 to 17 % are, "
            "else wrong.",
            judge=lambda values: (
                "right"
                if abs(values["chosen"] - 15) <= 0.5
                else "half"
                if 13 <= values["chosen"] <= 17
                else "wrong"
            ),
        ),
        why="The released code draws places with replacement, so some are drawn twice and fewer "
        "are hidden.",
        code="import torch\nfrom core_models.masking.electra import with_replacement\n\n"
        "ids = torch.randint(5, 6000, (48, 128))\n"
        "drawn = with_replacement(ids, ids > 0, generator=torch.Generator().manual_seed(0), "
        "mask_id=4)\nprint((drawn.times > 0).float().mean())",
    ),
)
