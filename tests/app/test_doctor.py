"""The doctor on made-up curves: each ailment is found where it is, and nowhere else."""

import math

import pytest

from app.runs.doctor.doctor import Case, examine

UNIFORM, ENTROPY = 8.0, 6.0
STATUS = {
    "state": "running",
    "baselines": {"uniform": UNIFORM, "unigram_entropy": ENTROPY},
    "data": {"tokens": 200_000, "vocabulary": 3_000},
}
CONFIG = {
    "steps": 1_000,
    "optimizer": {"learning_rate": 1e-3},
    "schedule": {"warmup": 100},
    "masking": {"rate": 0.15},
}


def reports(losses, *, held_out=(), every=20, tokens=2_000, **series):
    """A report for each loss; ``held_out`` and ``series`` go to the last reports."""
    found = []
    for n, loss in enumerate(losses):
        step = (n + 1) * every
        found.append({"step": step, "tokens": step * tokens, "masked_token_loss": loss})
    for name, values in {"validation_masked_token_loss": held_out, **series}.items():
        for record, value in zip(found[len(found) - len(values) :], values, strict=True):
            record[name] = value
    return found


def kinds(records, status=None, config=None, **options):
    case = Case(
        records=records,
        status=STATUS | (status or {}),
        config=CONFIG | (config or {}),
        **options,
    )
    return [finding.kind for finding in examine(case)]


def falling(start, end, count):
    return [start + (end - start) * n / (count - 1) for n in range(count)]


HEALTHY = [*falling(7.9, 6.1, 10), *falling(6.0, 3.0, 40)]


def test_a_healthy_run_only_gets_praise():
    assert kinds(reports(HEALTHY, held_out=falling(5.0, 3.5, 6))) == ["context"]


def test_praise_names_the_step_from_which_the_context_is_read():
    (finding,) = examine(Case(records=reports(HEALTHY), status=STATUS, config=CONFIG))
    step = int(finding.text.split("step ")[1].split()[0].replace(",", ""))
    first = next(r["step"] for r in reports(HEALTHY) if r["masked_token_loss"] <= ENTROPY - 0.4)
    assert step == first


def test_too_few_reports_say_nothing_about_the_curve():
    assert kinds(reports([9.9, 9.9, 9.9, 9.9])) == []
    assert kinds([]) == []


def test_a_plateau_at_the_unigram_entropy():
    flat = [*falling(8.0, 6.1, 5), *[6.05] * 15]
    long = CONFIG | {"steps": 4_000}
    early = examine(Case(records=reports(flat), status=STATUS, config=long))
    assert [(f.kind, f.level) for f in early] == [("plateau", "hint")]
    assert early[0].cure.startswith("Wait")
    (stopped,) = examine(
        Case(records=reports(flat), status=STATUS | {"state": "stopped"}, config=long)
    )
    assert stopped.cure.startswith("Continue it")
    late = examine(Case(records=reports(flat, tokens=20_000), status=STATUS, config=CONFIG))
    assert [(f.kind, f.level) for f in late] == [("plateau", "problem")]
    assert "6.05" in late[0].text
    assert "6.00" in late[0].text


def test_a_run_of_a_few_steps_is_called_short_and_nothing_worse():
    """Sixty steps end beside the plateau, or above it; neither rate nor size is to blame."""
    config = CONFIG | {"steps": 60, "schedule": {"warmup": 6}}
    for losses in ([8.0, 6.3, *[6.1] * 8], falling(8.0, 7.0, 10)):
        records = reports(losses, every=6, tokens=1_000)
        for state in ("finished", "running", "stopped"):
            status = STATUS | {"state": state}
            (found,) = examine(Case(records=records, status=status, config=config))
            assert (found.kind, found.level) == ("short", "hint")
            assert "3,000,000 tokens; this run reads 60,000 in all" in found.text
            assert found.cure.startswith("Train for more steps: about 3,600 instead of 60.")
    # What a BERT has not read enough for is enough for a DeBERTa.
    records = reports([*falling(8.0, 6.1, 5), *[6.05] * 15])
    for family, kind in (("bert", "short"), ("deberta", "plateau")):
        status = {"state": "finished", "family": family}
        assert kinds(records, status, {"steps": 400}) == [kind]


def test_passing_the_entropy_on_the_way_down_is_no_plateau():
    assert kinds(reports(falling(8.0, 6.0, 20))) == []


@pytest.mark.parametrize(
    "losses",
    [
        [*falling(7.9, 4.0, 20), *falling(4.0, 7.0, 10)],
        [*falling(7.9, 6.5, 10), *[9.5] * 10],
    ],
)
def test_a_loss_that_climbs_again_means_a_learning_rate_too_high(losses):
    found = examine(Case(records=reports(losses), status=STATUS, config=CONFIG))
    assert found[0].kind == "diverging"
    assert "0.0003" in found[0].cure


def test_one_odd_report_is_no_divergence():
    losses = HEALTHY.copy()
    losses[30] += 2.0
    assert kinds(reports(losses)) == ["context"]


def test_a_start_without_warmup_that_fails_at_once():
    losses = [8.1, 9.5, 10.2, 9.8, 9.9, 9.7]
    assert kinds(reports(losses), config={"schedule": {"warmup": 0}}) == ["no_warmup"]
    assert kinds(reports(losses)) == ["diverging"]


def test_a_run_that_ended_with_a_loss_that_is_no_number():
    status = {"state": "failed", "reason": "Training diverged at step 41: the loss ..."}
    assert kinds(reports([7.0, 6.9]), status) == ["diverged"]
    assert kinds(reports([7.0, 6.9, math.nan, math.nan]), status) == ["diverged"]
    assert kinds(reports([7.0]), {"state": "failed", "reason": "The disk is full."}) == []


def test_overfitting_names_the_best_step():
    held_out = [5.0, 4.5, 4.2, 4.4, 4.6]
    records = reports(HEALTHY, held_out=held_out)
    best = records[-3]["step"]
    found = examine(Case(records=records, status=STATUS, config=CONFIG))
    assert [f.kind for f in found] == ["overfitting", "context"]
    assert f"step {best:,}" in found[0].cure


def test_a_held_out_loss_that_only_trembles_is_no_overfitting():
    assert kinds(reports(HEALTHY, held_out=[4.3, 4.25, 4.2, 4.22, 4.21])) == ["context"]


def test_a_corpus_too_small_for_the_vocabulary():
    status = {"data": {"tokens": 9_000, "vocabulary": 3_000}}
    (finding,) = examine(Case(records=[], status=STATUS | status, config=CONFIG))
    assert finding.kind == "small_corpus"
    assert "3.0 times" in finding.text
    assert kinds([], {"data": {"tokens": 30_000, "vocabulary": 3_000}}) == []
    begun = CONFIG | {"model": {"checkpoint": "bert-mini"}}  # which has learnt its vocabulary
    assert examine(Case(records=[], status=STATUS | status, config=begun)) == []


def test_a_run_that_learns_too_slowly():
    assert kinds(reports(falling(8.0, 7.4, 25))) == ["slow"]
    assert kinds(reports(falling(8.0, 7.4, 10))) == []  # too early to say


def test_a_rate_far_too_high_is_lowered_whatever_the_curve_looks_like():
    """From runs at a rate of 0.1 (stays on the plateau) and 0.5 (climbs at once, then recovers)."""
    fast = {"optimizer": {"learning_rate": 0.1}}
    flat, slow = [*falling(8.0, 6.1, 5), *[6.05] * 15], falling(8.0, 7.4, 25)
    for losses, kind in ((flat, "plateau"), (slow, "slow")):
        (found,) = examine(Case(records=reports(losses), status=STATUS, config=CONFIG | fast))
        assert (found.kind, found.level) == (kind, "problem")
        assert found.cure == "Use a lower learning rate: 0.004 instead of 0.1."
    peak = [*falling(19.0, 30.0, 3), *falling(29.0, 6.5, 12), *falling(6.4, 6.2, 20)]
    wild = CONFIG | {"optimizer": {"learning_rate": 0.5}, "schedule": {"warmup": 0}}
    found = examine(Case(records=reports(peak), status=STATUS, config=wild))
    assert [each.kind for each in found][:1] == ["diverging"]
    assert "was 29.00 at step 80, far above the 8.00" in found[0].text
    # A run that found its way after all has nothing to mend.
    good = [*falling(10.0, 6.0, 10), *falling(5.9, 3.0, 30)]
    assert kinds(reports(good)) == ["context"]


def test_who_knows_a_text_by_heart_is_not_praised_for_reading_it():
    """The training loss is far below the frequencies', that on held-out text is not."""
    losses = [*falling(7.9, 6.1, 10), *falling(6.0, 1.0, 40)]
    found = kinds(reports(losses, held_out=[6.2, 6.1, 6.4, 6.6]))
    assert "context" not in found
    assert "overfitting" in found


def test_a_similar_word_in_the_gap_is_no_context():
    status = {"masking": {"kind": "similar_word"}}
    assert kinds(reports(HEALTHY), status) == []


def test_repeated_lines_are_told():
    assert kinds([], repeated=0.4) == ["repeated_lines"]
    assert kinds([], repeated=0.02) == []


def test_a_generator_that_leaves_nothing_to_find():
    """At 60 % right, 6 % of the tokens are replaced: entropy 0.2270 nats."""
    share = 0.15 * 0.4
    blind = -(share * math.log(share) + (1 - share) * math.log(1 - share))
    assert blind == pytest.approx(0.2270, abs=1e-4)
    right = [0.6] * 40
    strong = reports(HEALTHY, masked_token_accuracy=right, replaced_token_loss=[blind] * 40)
    assert kinds(strong) == ["strong_generator", "context"]
    useful = reports(HEALTHY, masked_token_accuracy=right, replaced_token_loss=[0.6 * blind] * 40)
    assert kinds(useful) == ["context", "detects"]


SHARE = 0.15 * 0.9
BLIND = -(SHARE * math.log(SHARE) + (1 - SHARE) * math.log(1 - SHARE))


def detecting(losses, *, right=0.1, **options):
    """Reports of a run whose generator falls to a useful loss, with the detector's loss."""
    count = len(losses)
    extra = {
        "masked_token_accuracy": [right] * count,
        "replaced_token_share": [SHARE] * count,
        "replaced_token_loss": losses,
    }
    return reports(falling(7.9, 6.8, count), **extra, **options)


def test_a_detector_that_never_looks_is_not_blamed_on_its_generator():
    early = examine(Case(records=detecting([BLIND] * 10), status=STATUS, config=CONFIG))
    assert [(f.kind, f.level) for f in early] == [("blind_detector", "hint")]
    late = examine(Case(records=detecting([BLIND] * 30), status=STATUS, config=CONFIG))
    assert ("blind_detector", "problem") in [(f.kind, f.level) for f in late]
    assert "strong_generator" not in [f.kind for f in late]
    found = next(f for f in late if f.kind == "blind_detector")
    assert f"{BLIND:.3f}" in found.text
    assert "13.5%" in found.text


def test_a_detector_that_learns_its_text_by_heart():
    training = [*falling(BLIND, 0.25, 15), *falling(0.24, 0.1, 15)]
    held_out = [0.33, 0.30, 0.29, 0.33, 0.38]
    records = detecting(training)
    for record, value in zip(records[5::6], held_out, strict=True):
        record["validation_replaced_token_loss"] = value
    found = examine(Case(records=records, status=STATUS, config=CONFIG))
    assert "overfitting" in [f.kind for f in found]
    cure = next(f for f in found if f.kind == "overfitting").cure
    assert f"step {records[17]['step']:,}" in cure


def test_a_generator_on_the_plateau_is_told_as_the_generators():
    records = detecting([BLIND * 0.7] * 20)
    for record in records:
        record["masked_token_loss"] = 6.05
    config = CONFIG | {"steps": 100_000}
    found = {f.kind: f for f in examine(Case(records=records, status=STATUS, config=config))}
    assert found["plateau"].text.startswith("The generator's loss stands at 6.05")
    assert found["detects"].level == "good"
    short = [record | {"tokens": record["step"] * 100} for record in records]
    found = {f.kind: f for f in examine(Case(records=short, status=STATUS, config=CONFIG))}
    assert found["short"].text.startswith("The generator's loss is 6.05, and 6.00")


@pytest.mark.parametrize("objective", ["permutation", "causal"])
def test_other_losses_over_pieces_get_the_same_verdicts(objective):
    """Their labels are pieces of the text, too, so the same entropy is their plateau."""

    def verdicts(losses, held_out=(), **options):
        records = reports(losses, held_out=held_out, **options)
        for record in records:
            for name in [n for n in record if "masked_token" in n]:
                record[name.replace("masked_token", objective)] = record.pop(name)
        case = Case(records=records, status=STATUS, config=CONFIG)
        return {finding.kind: finding for finding in examine(case)}

    flat = [*falling(8.0, 6.1, 5), *[6.05] * 15]
    assert verdicts(flat)["short"].level == "hint"
    assert verdicts(flat, tokens=4_000)["plateau"].level == "hint"
    assert verdicts(flat, tokens=20_000)["plateau"].level == "problem"
    words = "words before" if objective == "causal" else "words around the gap"
    assert words in verdicts(flat, tokens=20_000)["plateau"].text
    assert list(verdicts(falling(8.0, 7.4, 25))) == ["slow"]
    assert list(verdicts(HEALTHY, [5.0, 4.5, 4.2, 4.4, 4.6])) == ["overfitting", "context"]
    assert words in verdicts(HEALTHY)["context"].text
    assert list(verdicts([*falling(7.9, 6.5, 10), *[9.5] * 10])) == ["diverging"]


def test_a_loss_of_several_parts_is_not_compared_with_that_of_pieces():
    records = [{"step": 20 * n, "tokens": 9, "loss": 9.9 + 50 * 0.3} for n in range(1, 9)]
    assert kinds(records) == []


def test_a_run_that_ended_before_its_first_report_is_diagnosed_from_its_status():
    reason = (
        "Training diverged at step 3: the loss of masked_token is not a number. The update was "
        "not made. Last good checkpoint: none: no checkpoint had been written."
    )
    (found,) = examine(
        Case(records=[], status={"state": "failed", "reason": reason}, config=CONFIG)
    )
    assert found.kind == "diverged"
    assert "No checkpoint had been saved" in found.text
    assert "0.0003 instead of 0.001" in found.cure
    saved = reason.replace("none: no checkpoint had been written", "step 500")
    (found,) = examine(Case(records=[], status={"state": "failed", "reason": saved}, config=CONFIG))
    assert "The last checkpoint is good" in found.text


def test_problems_come_before_praise_and_all_problems_have_a_cure():
    status = {"data": {"tokens": 9_000, "vocabulary": 3_000}}
    records = reports(HEALTHY, held_out=[5.0, 4.5, 4.2, 4.4, 4.6])
    found = examine(Case(records=records, status=STATUS | status, config=CONFIG, repeated=0.5))
    assert [f.level for f in found] == ["problem", "hint", "hint", "good"]
    assert all(f.cure for f in found if f.level != "good")


def test_broken_files_do_not_stop_the_doctor():
    odd = {"baselines": None, "data": None}
    assert kinds([{"step": 1, "loss": None}] * 9, odd, {"optimizer": 3, "schedule": None}) == []
