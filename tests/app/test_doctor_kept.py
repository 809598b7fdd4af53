"""The doctor beside its thresholds: what is just enough to be told, and what is just not."""

from tests.app import test_doctor_tasks
from tests.app.test_doctor import BLIND, HEALTHY, detecting, falling, kinds, reports


def test_a_text_of_less_than_ten_pieces_an_entry_is_small():
    assert kinds([], {"data": {"tokens": 20_000, "vocabulary": 3_000}}) == ["small_corpus"]


def test_two_bad_reports_are_no_climb_and_three_are():
    assert kinds(reports([*HEALTHY, 4.0, 4.0])) == ["context"]
    assert kinds(reports([*HEALTHY, 4.0, 4.0, 4.0]))[0] == "diverging"


def test_a_climb_is_a_tenth_of_the_loss():
    assert kinds(reports([*HEALTHY, *[3.2] * 6])) == ["context"]
    assert kinds(reports([*HEALTHY, *[3.5] * 6]))[0] == "diverging"


def test_a_fresh_model_may_stand_a_little_above_knowing_nothing():
    assert kinds(reports([8.2] * 8)) == []
    assert kinds(reports([8.5] * 8)) == ["diverging"]


def test_a_peak_is_a_fifth_above_knowing_nothing():
    def after(peak):
        return reports([*falling(9.0, peak, 3), *falling(peak, 6.5, 12), *falling(6.4, 6.2, 10)])

    assert "diverging" in kinds(after(11.0))
    assert "diverging" not in kinds(after(9.1))


def test_who_still_falls_is_on_no_plateau():
    found = kinds(reports([*[6.5] * 5, *[6.25] * 5, *[6.05] * 5], tokens=20_000))
    assert "plateau" not in found
    assert "plateau" in kinds(reports([*[6.5] * 5, *[6.15] * 5, *[6.05] * 5], tokens=20_000))


def test_a_held_out_loss_has_to_rise_and_the_training_loss_to_fall():
    rising = [4.3, 4.25, 4.2, 4.25, 4.3]
    assert kinds(reports(HEALTHY, held_out=[4.3, 4.25, 4.2, 4.23, 4.26])) == ["context"]
    assert kinds(reports(HEALTHY, held_out=rising))[0] == "overfitting"
    # Where both stand still nothing is learnt by heart.
    assert kinds(reports([*HEALTHY, *[2.98] * 12], held_out=rising)) == ["context"]


def test_a_little_below_the_frequencies_is_no_reading_yet():
    assert "context" not in kinds(reports([*falling(7.9, 6.1, 10), *falling(6.0, 5.75, 40)]))
    assert "context" in kinds(reports([*falling(7.9, 6.1, 10), *falling(6.0, 5.3, 40)]))


def test_every_seventh_line_repeated_is_told():
    assert kinds([], repeated=0.15) == ["repeated_lines"]


def test_a_detector_between_blind_and_good_is_neither():
    assert not {"blind_detector", "detects"} & {*kinds(detecting([0.9 * BLIND] * 30))}
    assert "detects" in kinds(detecting([0.7 * BLIND] * 30))


def test_figures_of_a_fine_tuning_beside_the_thresholds():
    judge = test_doctor_tasks.kinds
    assert judge([0.78] * 6) == ["below_baseline"]
    falls = [0.7, 0.5, 0.3, 0.2, 0.1, 0.05]
    assert judge([0.8] * 6, [0.6, 0.5, 0.5, 0.54, 0.55, 0.56], training=falls) == []
    # Reports of a fine-tuning are single small batches, which jump.
    assert judge([0.8] * 8, training=[0.2] * 4 + [0.9] * 4) == []


def test_the_same_model_without_pretraining_is_no_baseline(monkeypatch):
    """It is trained last, so whoever looks earlier would be judged by other marks."""
    scratch = {"name": "from_scratch", "title": "scratch", "metrics": {"accuracy": 0.95}}
    task = test_doctor_tasks.STATUS["task"]
    monkeypatch.setitem(task, "baselines", [*task["baselines"], scratch])
    assert test_doctor_tasks.kinds([0.9] * 6) == ["above_baseline"]
