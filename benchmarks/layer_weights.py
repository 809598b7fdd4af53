"""What layer weighting is worth: a layer that reads a learnt mix of all states before it.

    python -m benchmarks.layer_weights --data FOLDER --work runs/experiments

ELC-BERT (arXiv 2311.02265) and GPT-BERT (arXiv 2410.24159) mix so. Here the weights are free and
begin with the last state alone, as in GPT-BERT and DenseFormer (arXiv 2402.02622), so at its first
step this is the arm ``sine-positions`` of :mod:`benchmarks.experiments`, with which it shares text,
settings and figures. No file of BERT's could hold the weights: the model is measured at once and
not kept, and a run that was interrupted begins anew.
"""

import argparse
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from benchmarks.experiments import ARMS, ROOT, WORDS, row, settings
from benchmarks.ladder import Unkept
from core_models.batch import Batch
from core_models.data import documents
from core_models.evaluation.minimal_pairs import evaluate_minimal_pairs, read_pairs
from core_models.evaluation.words import choose_words, evaluate_words
from core_models.model import Model
from core_models.network.encoder import Encoder, EncoderOutput
from core_models.network.layer import Layer
from core_models.network.trace import Trace
from core_models.training import models, precision
from core_models.training.folder import RunFolder
from core_models.training.pretraining import Pretraining
from core_models.training.settings import parse
from core_models.training.streams import open_data, open_stream
from core_models.training.tracker import Tracker
from zoo import text


class WeightedEncoder(Encoder):
    """A plain encoder whose layers read ``sum(weights[n, i] * state[i])`` of the states 0 to n."""

    weights: nn.Parameter
    """[steps + 1, steps + 1]; the last row mixes what the heads read."""

    def forward(
        self,
        batch: Batch,
        trace: Trace | None = None,
        *,
        every_step: bool = False,
        places: Tensor | None = None,
    ) -> EncoderOutput:
        """As :class:`Encoder`, of which training and measuring need the hidden states alone."""
        del places  # all of them are computed
        if trace is not None or every_step:
            raise ValueError("a weighted encoder shows nothing of its inside")
        shared = self._share(batch)["global"]
        states = [self.embeddings(batch, None)]
        for step, block in enumerate(self.config.schedule):
            states.append(cast(Layer, self.blocks[block])(self._mix(states, step), shared))
        return EncoderOutput(self._mix(states, self.config.steps))

    def _mix(self, states: list[Tensor], row: int) -> Tensor:
        parts = zip(self.weights[row], states, strict=False)
        return sum((weight * state for weight, state in parts), torch.zeros_like(states[0]))


def weight_layers(encoder: Encoder) -> None:
    """Make a fresh plain encoder a weighted one, that computes what it computed before."""
    config = encoder.config
    assert config.norm_place == "after"
    assert config.convolution is config.mask_decoder is None
    encoder.__class__ = WeightedEncoder
    encoder.register_parameter("weights", nn.Parameter(torch.eye(config.steps + 1)))


def learning(run: RunFolder, values: dict[str, Any]) -> tuple[Pretraining, Model]:
    """The run at its first step."""
    options = parse(values)
    data, masker, config = open_data(run, options, None)
    model = models.build_model(options, masker.plan, config, data.tokenizer, None)
    weight_layers(model.encoder)
    objective = models.build_objective(options, masker.plan, model, None, run.path)
    stream = open_stream(data, masker, options, torch.device("cpu"))
    made = Pretraining(
        settings=options,
        plan=masker.plan,
        model=model,
        objective=objective,
        stream=stream,
        validation=None,
    )
    return made, model


def main() -> None:
    """Train it, and print its row of the experiments' table and its weights."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "experiments")
    parser.add_argument("--steps", type=int, default=1000)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    run = RunFolder(chosen.work / "runs" / "layer-weights")
    run.path.mkdir(parents=True, exist_ok=True)
    values = settings(ARMS["sine-positions"], chosen.work, chosen.data) | {"steps": chosen.steps}
    values["precision"] = precision.settled(values["precision"])
    made, model = learning(run, values)
    trainer = Unkept(
        run=run, settings=made.settings, learning=made, say=print, tracker=Tracker(None, run)
    )
    began = time.process_time()
    trainer.train(lambda: False)
    seconds = time.process_time() - began
    model.eval()
    held_out = chosen.work / "texts" / "english" / text.OPEN
    sentences = [sentence for each in documents.read([held_out]) for sentence in each]
    found = {
        "words": asdict(evaluate_words(model, choose_words(sentences, most=WORDS))),
        "minimal_pairs": asdict(evaluate_minimal_pairs(model, read_pairs())),
    }
    line = row("layer-weights", made.progress.tokens, made.steps, seconds, found)
    sys.stdout.write(line + "\n")
    for weights in model.encoder.get_parameter("weights").tolist():
        sys.stdout.write(" ".join(f"{weight:6.2f}" for weight in weights) + "\n")


if __name__ == "__main__":
    main()
