"""What held-out rows teach learners: cuts, probabilities and answers that are sure enough, in memory and in files."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import abound
import naive_thresholds as naive
from abound import (
    CommitteeClassifier,
    ExpertsClassifier,
    FeatureFocusClassifier,
    FrequencyClassifier,
    IndependentClassifier,
    Model,
    PAClassifier,
    PerceptronClassifier,
    Taxonomy,
)
from abound.labels import encode
from abound.learn import deciding
from abound.learn.sure_nodes import ancestor_lists, sure_labels
from abound.measure import micro_f1
from abound.measure.thresholds import CUTS, ROW_CUTS
from abound.store import ModelFileError, open_arrays, save_arrays
from cli_data import DRINKS, run, run_json, write_tsv
from cli_data import make_rows as make_texts
from generate import make_rows

X, NUMBERS = make_rows(0, n=300)
Y = np.array([f"class {c:02d}" for c in NUMBERS])
LISTS = [[f"class {c:02d}"] if i % 3 else [f"class {c:02d}", "every third"] for i, c in enumerate(NUMBERS)]
NAMES = sorted({label for row in LISTS for label in row})
TREE = Taxonomy.from_edges(
    [("all", "low"), ("all", "high"), *((("low" if c < 6 else "high"), f"class {c:02d}") for c in range(12))]
)


@pytest.fixture
def no_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if a learner trains a copy of itself."""

    def refuse(self: Any) -> None:
        raise AssertionError("a copy was trained")

    monkeypatch.setattr(deciding.Deciding, "_copy_to_train", refuse)


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Who learned from held-out rows."""
    learners: list[Any] = []
    learn = deciding.learn_decisions

    def noted(learner: Any, *rest: Any) -> Any:
        learners.append(learner)
        return learn(learner, *rest)

    monkeypatch.setattr(deciding, "learn_decisions", noted)
    return learners


@pytest.mark.usefixtures("no_copies")
def test_one_label_a_row_costs_nothing() -> None:
    model = FeatureFocusClassifier().fit(X, Y)
    assert not model.is_calibrated
    assert (model.cut_, model.cut_scores_) == ("mean", {})
    assert not hasattr(model, "predict_proba")
    with pytest.raises(ValueError, match="calibrate"):
        model.predict_topk(X, probabilities=True)


@pytest.mark.usefixtures("no_copies")
def test_a_validation_part_is_used_as_it_is() -> None:
    model = PAClassifier(validation_fraction=0.2, calibrate="platt").fit(X, LISTS)
    assert model.is_calibrated
    assert model.cut_ in ROW_CUTS


@pytest.mark.usefixtures("no_copies")
def test_without_a_cut_rows_get_as_many_labels_as_on_average() -> None:
    model = FeatureFocusClassifier(cut=None).fit(X, [[*row, "all"] for row in LISTS])
    assert {len(row) for row in model.predict(X)} <= {1, 2}
    learned = FeatureFocusClassifier().partial_fit(X, LISTS)
    assert learned.cut_ == "mean"
    assert {len(row) for row in learned.predict(X)} == {1}


@pytest.mark.parametrize(
    "learner",
    [
        CommitteeClassifier(PAClassifier(calibrate="platt"), n_seeds=2, keep_passes=(1,)),
        ExpertsClassifier(FeatureFocusClassifier(calibrate="platt"), PAClassifier(calibrate="platt"), weight=0.5),
        PerceptronClassifier(n_members=2),
        IndependentClassifier(counts="stream"),
    ],
    ids=lambda learner: learner.learner,
)
def test_parts_of_a_learner_decide_nothing(learner: Any, decided: list[Any]) -> None:
    learner.set_params(calibrate="platt").fit(X, LISTS)
    assert decided == [learner]


@pytest.mark.parametrize("learner", [IndependentClassifier(), ExpertsClassifier(FeatureFocusClassifier())], ids=repr)
def test_what_was_chosen_is_not_chosen_again(learner: Any) -> None:
    model = learner.fit(X, Y)
    twin = model._copy_to_train()
    name = "threshold" if learner.learner == "ind" else "weight"
    assert getattr(twin, name) == getattr(model, f"{name}_")
    assert getattr(model, name) == "auto"


def test_auto_takes_the_best_rule_of_rows() -> None:
    model = PAClassifier().fit(X, LISTS)
    assert set(model.cut_scores_) == set(ROW_CUTS)
    assert model.cut_scores_[model.cut_] == max(model.cut_scores_.values())
    alone = PAClassifier(cut=model.cut_).fit(X, LISTS)
    assert alone.cut_scores_ == {}
    assert alone.predict(X) == model.predict(X)


def test_a_learned_cut_beats_the_average_number() -> None:
    generator = np.random.default_rng(0)
    words = generator.integers(0, 2, size=(1200, 8))
    words[words.sum(axis=1) == 0, 0] = 1
    noise = generator.random((1200, 20)) < 0.1
    rows = sp.csr_array(np.concatenate((words, noise), axis=1).astype(np.float32))
    labels = [np.flatnonzero(row).tolist() for row in words]
    learned = PAClassifier().fit(rows[:800], labels[:800])
    average = PAClassifier(cut=None).fit(rows[:800], labels[:800])
    known = micro_f1(labels[800:], learned.predict(rows[800:]))
    assert known > micro_f1(labels[800:], average.predict(rows[800:])) + 0.03
    assert known == pytest.approx(learned.cut_scores_[learned.cut_], abs=0.05)


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("calibrate", ["platt", "isotonic"])
def test_decisions_survive_a_file(cut: str, calibrate: str, tmp_path: Path) -> None:
    model = FeatureFocusClassifier(cut=cut, calibrate=calibrate).fit(X, LISTS)
    assert model.cut_ == cut
    model.save(tmp_path / "model")
    for twin in (abound.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert twin.predict(X) == model.predict(X)
        np.testing.assert_array_equal(twin.predict_proba(X), model.predict_proba(X))
        assert (twin.cut_, twin.cut_scores_) == (model.cut_, model.cut_scores_)


def test_rows_get_a_label_where_all_rows_have_one() -> None:
    silent = sp.csr_array((3, X.shape[1]))
    for cut in CUTS:
        model = PAClassifier(cut=cut).fit(X, LISTS)
        assert all(model.predict(silent)), cut
    empty = [[] if i % 2 else row for i, row in enumerate(LISTS)]
    model = PAClassifier(cut="zero").fit(X, empty)
    assert not all(model.predict(silent))


@pytest.mark.parametrize("cut", [cut for cut in CUTS if cut != "pcut"])
def test_an_answer_does_not_depend_on_other_rows(cut: str) -> None:
    model = PAClassifier(cut=cut, calibrate="isotonic").fit(X, LISTS)
    whole, dense = model.predict(X), model.predict_proba(X)
    top = model.predict_topk(X, 3, probabilities=True)
    for i in range(0, 300, 30):
        assert model.predict(X[[i]])[0] == whole[i]
        np.testing.assert_array_equal(model.predict_proba(X[[i]])[0], dense[i])
        np.testing.assert_array_equal(model.predict_topk(X[[i]], 3, probabilities=True).scores[0], top.scores[i])


@pytest.mark.parametrize("cut", CUTS)
def test_many_rows_are_cut_like_few(cut: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = PAClassifier(cut=cut).fit(X, LISTS)
    expected = model.predict(X)
    monkeypatch.setattr("abound.learn.decisions.ROWS_AT_ONCE", 7)
    assert model.predict(X) == expected


def test_shares_fill_a_batch() -> None:
    model = PAClassifier(cut="pcut").fit(X, LISTS)
    predicted = model.predict(X)
    counts = encode(predicted, np.array(NAMES)).counts / encode(LISTS, np.array(NAMES)).counts
    assert np.allclose(counts[np.argsort(-model.class_counts_)[:3]], counts.mean(), atol=0.35)


def test_probabilities_of_scores_rise_with_the_score() -> None:
    model = PAClassifier(calibrate="platt").fit(X, LISTS)
    scores, found = model.predict_topk(X, 6).scores, model.predict_topk(X, 6, probabilities=True).scores
    assert (np.diff(found[np.argsort(scores[:, 0]), 0]) >= 0).all()
    assert (np.diff(found, axis=1) <= 0).all()
    dense, order = model.predict_proba(X), np.argsort(model.decision_function(X), axis=1)
    assert (np.diff(np.take_along_axis(dense, order, axis=1), axis=1) >= 0).all()
    np.testing.assert_allclose(dense.max(axis=1), found[:, 0], rtol=1e-6)


def test_the_best_class_alone_has_the_same_probability() -> None:
    model = PAClassifier(calibrate="platt").fit(X, Y)
    one, many = model.predict_topk(X, 1, probabilities=True), model.predict_topk(X, 12, probabilities=True)
    np.testing.assert_array_equal(one.scores[:, 0], many.scores[:, 0])
    assert one.labels.shape == one.scores.shape == (300, 1)
    np.testing.assert_array_equal(many.labels, model.predict_topk(X, 12).labels)
    some = model.predict_topk(X, 3, include=["class 00", "class 01"], probabilities=True)
    assert np.isfinite(some.scores).all()
    assert (some.scores[:, 2] == 0).all()


@pytest.mark.parametrize("calibrate", ["platt", "isotonic"])
def test_too_few_rows_to_hold_any_out(calibrate: str) -> None:
    model = FeatureFocusClassifier(calibrate=calibrate).fit([[1, 0], [0, 1]], ["a", "b"])
    margin = model.predict_topk([[1, 0]], 1).scores[0, 0]
    found = model.predict_topk([[1, 0]], 1, probabilities=True).scores[0, 0]
    assert found == pytest.approx(1 / (1 + np.exp(-2 * margin)))
    several = FeatureFocusClassifier(calibrate=calibrate).fit([[1, 0], [0, 1]], [["a"], ["b"]])
    assert several.cut_ == "mean"
    assert several.predict([[0, 1]]) == [["b"]]


def test_rows_of_weight_0_are_not_held_out() -> None:
    weights = np.ones(300)
    weights[200:] = 0
    noise = LISTS[:200] + [["class 07"]] * 100
    model = FrequencyClassifier(calibrate="platt", cut="rcut").fit(X, noise, weights)
    without = FrequencyClassifier(calibrate="platt", cut="rcut").fit(X[:200], LISTS[:200])
    best = without.predict_topk(X[:1], 5, probabilities=True)
    np.testing.assert_array_equal(model.predict_topk(X[:1], 5, probabilities=True).scores, best.scores)


def test_without_held_out_rows_there_are_no_probabilities() -> None:
    model = FeatureFocusClassifier(calibrate="platt").partial_fit(X, Y)
    assert not model.is_calibrated
    with pytest.raises(ValueError, match="learned by fit"):
        model.predict_proba(X)


def test_probabilities_stay_when_more_is_learned() -> None:
    model = FeatureFocusClassifier(calibrate="platt").fit(X, Y)
    curve = model._decisions.calibration
    model.partial_fit(X[:20], ["a new one"] * 20)
    assert model._decisions.calibration is curve
    assert model.predict_proba(X).shape == (300, 13)
    assert model.fit(X, LISTS)._decisions.calibration.by == "score"


@pytest.mark.parametrize("cut", ["scut", "pcut", "instance"])
def test_classes_come_and_go_with_their_thresholds(cut: str, tmp_path: Path) -> None:
    model = FeatureFocusClassifier(cut=cut).fit(X, LISTS)
    before = model.predict(X)
    model.drop_classes(["class 00"])
    if cut == "scut":
        lists = [[label for label in row if label != "class 00"] for row in before]
        agree = [a == b for a, b in zip(model.predict(X), lists, strict=True) if b]
        assert np.mean(agree) == 1
    model.merge_classes(["class 01", "class 02"], into="both")
    model.partial_fit(X[:5], [["a new one"]] * 5)
    model.save(tmp_path / "model")
    assert abound.load(tmp_path / "model").predict(X) == model.predict(X)


def test_a_dense_answer_that_would_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = FeatureFocusClassifier(calibrate="platt").fit(X, Y)
    monkeypatch.setattr("abound.validation.DENSE_LIMIT", 1000)
    with pytest.raises(MemoryError, match="probabilities=True"):
        model.predict_proba(X)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"decisions/curve/A": np.array([1.0])}, "falls"),
        ({"decisions/curve/A": np.array([np.nan])}, "not finite"),
        ({"decisions/curve/B": np.zeros(2)}, "shape"),
        ({"decisions/rule/thresholds": np.zeros(3, np.float32)}, "float64"),
        ({"decisions/curve/power": np.array([2.0])}, "power"),
        ({"decisions/others/A": np.array([1.0])}, "falls"),
        ({"calibration": "magic"}, "unknown"),
        ({"others": "magic"}, "unknown"),
        ({"by": "age"}, "unknown"),
        ({"cut": "deep"}, "unknown"),
        ({"depth": 0}, "unknown"),
    ],
)
def test_bad_decisions_of_a_file_are_refused(change: dict[str, Any], problem: str, tmp_path: Path) -> None:
    FeatureFocusClassifier(calibrate="platt", cut="scut").fit(X, LISTS).save(tmp_path / "model")
    stored = open_arrays(tmp_path / "model")
    arrays, meta = dict(stored), stored.meta
    for name, value in change.items():
        if name in arrays:
            arrays[name] = value
        else:
            meta["estimator"]["decisions"][name] = value
    save_arrays(tmp_path / "bad", arrays, meta)
    with pytest.raises(ModelFileError, match=problem):
        abound.load(tmp_path / "bad")


def test_files_of_before_have_one_curve_for_all_classes(tmp_path: Path) -> None:
    FeatureFocusClassifier(calibrate="platt").fit(X, Y).save(tmp_path / "model")
    stored = open_arrays(tmp_path / "model")
    arrays, meta = dict(stored), stored.meta
    for name in ("decisions/curve/power", *(name for name in stored if name.startswith("decisions/others/"))):
        del arrays[name]
    del meta["estimator"]["decisions"]["others"]
    save_arrays(tmp_path / "old", arrays, meta)
    old = abound.load(tmp_path / "old")
    A, B = old._decisions.calibration.curve
    scores, found = old.predict_topk(X, 3).scores, old.predict_topk(X, 3, probabilities=True).scores
    np.testing.assert_allclose(found[:, 1], 1 / (1 + np.exp(A * (scores[:, 1] - scores[:, 0]) + B)), rtol=1e-5)
    np.testing.assert_allclose(old.predict_proba(X).sum(axis=1), 1)


def test_a_falling_curve_of_a_file_is_refused(tmp_path: Path) -> None:
    FeatureFocusClassifier(calibrate="isotonic").fit(X, Y).save(tmp_path / "model")
    stored = open_arrays(tmp_path / "model")
    for levels in (np.linspace(1, 0, 2), np.array([-1.0, 0.5])):
        arrays = dict(stored) | {"decisions/curve/knots": np.array([0.0, 1.0]), "decisions/curve/levels": levels}
        save_arrays(tmp_path / "bad", arrays, stored.meta)
        with pytest.raises(ModelFileError, match="levels"):
            abound.load(tmp_path / "bad")


@st.composite
def taxonomies(draw: Any) -> Taxonomy:
    """A tree or a directed graph of a few nodes."""
    n = draw(st.integers(2, 9))
    parents = [draw(st.lists(st.integers(0, i - 1), min_size=1, max_size=3, unique=True)) for i in range(1, n)]
    if draw(st.booleans()):
        parents = [above[:1] for above in parents]
    return Taxonomy.from_edges([(f"n{p}", f"n{i}") for i, above in enumerate(parents, start=1) for p in above])


@given(taxonomies(), st.data())
def test_sure_answers_are_those_of_the_twin(taxonomy: Taxonomy, data: Any) -> None:
    labels = [*taxonomy.names.tolist(), "outside"]
    classes = np.array(data.draw(st.lists(st.sampled_from(labels), min_size=1, unique=True)))
    k = data.draw(st.integers(1, len(classes)))
    ids, probabilities, rows = np.full((4, k), -1, np.int32), np.zeros((4, k)), []
    for i in range(4):
        width = data.draw(st.integers(0, k))
        ids[i, :width] = data.draw(st.permutations(range(len(classes))))[:width]
        level = st.sampled_from([0.0, 0.125, 0.25, 0.5, 1.0])
        levels = sorted(data.draw(st.lists(level, min_size=width, max_size=width)), reverse=True)
        probabilities[i, :width] = levels
        rows.append([(str(classes[c]), p) for c, p in zip(ids[i, :width].tolist(), levels, strict=True)])
    least = data.draw(st.sampled_from([0.0, 0.2, 0.5, 0.75, 1.0]))
    found = sure_labels(taxonomy, classes, ids, probabilities, least).tolist()
    assert found == [naive.sure_node(taxonomy, row, least) for row in rows]


@given(taxonomies())
def test_ancestors_are_listed_once(taxonomy: Taxonomy) -> None:
    home = np.arange(len(taxonomy), dtype=np.int32)
    lists = ancestor_lists(taxonomy.parent_links, home)
    names = taxonomy.names.tolist()
    for node, name in enumerate(names):
        assert sorted(names[i] for i in lists.of(node).tolist()) == sorted([name, *taxonomy.ancestors(name)])


def test_an_unsure_answer_goes_up_the_tree() -> None:
    hard, easy = make_rows(7, n=900, noise=1.0)
    labels = np.array([f"class {c:02d}" for c in easy])
    model = Model(PAClassifier(calibrate="isotonic").fit(hard[:600], labels[:600]), taxonomy=TREE)
    np.testing.assert_array_equal(model.predict(hard[600:], min_confidence=0), model.predict(hard[600:]))
    truth, before = labels[600:].tolist(), 0.0
    for least in (0.3, 0.6, 0.9):
        answers = model.predict(hard[600:], min_confidence=least).tolist()
        right = np.mean([answer in TREE.path(label) for answer, label in zip(answers, truth, strict=True)])
        assert right >= max(before, least - 0.1)
        before = right
    assert {"all", "low", "high"} & set(answers)


def test_a_learner_with_a_taxonomy_needs_no_model(tmp_path: Path) -> None:
    learner = FeatureFocusClassifier(calibrate="platt").fit(X, Y)
    expected = Model(learner, taxonomy=TREE).predict(X, min_confidence=0.8).tolist()
    file = tmp_path / "tree.txt"
    file.write_text("".join(f"{TREE.names[a]}\t{TREE.names[b]}\n" for a, b in TREE.edges))
    for taxonomy in (TREE, file):
        learner.taxonomy = taxonomy
        assert learner.predict(X, min_confidence=0.8).tolist() == expected
    assert {"low", "high"} & set(expected)


def test_labels_of_other_types_find_their_nodes() -> None:
    taxonomy = Taxonomy.from_edges([("all", "0"), ("all", "1")])
    ids, probabilities = np.array([[1, 0, 2]], np.int32), np.array([[0.6, 0.3, 0.1]])
    classes = np.array([0, 1, 2])
    assert sure_labels(taxonomy, classes, ids, probabilities, 0.5).tolist() == [1]
    assert sure_labels(taxonomy, classes, ids, probabilities, 0.9).tolist() == ["all"]
    assert sure_labels(taxonomy, classes, np.array([[2]], np.int32), np.array([[1.0]]), 0.9).tolist() == [2]


def test_what_min_confidence_needs_is_told() -> None:
    plain, sure = FeatureFocusClassifier().fit(X, Y), FeatureFocusClassifier(calibrate="platt").fit(X, Y)
    with pytest.raises(ValueError, match="no taxonomy"):
        sure.predict(X, min_confidence=0.5)
    with pytest.raises(ValueError, match="calibrate"):
        Model(plain, taxonomy=TREE).predict(X, min_confidence=0.5)
    with pytest.raises(ValueError, match="min_confidence=2"):
        Model(sure, taxonomy=TREE).predict(X, min_confidence=2)
    with pytest.raises(ValueError, match="several labels"):
        Model(FeatureFocusClassifier(calibrate="platt").fit(X, LISTS), taxonomy=TREE).predict(X, min_confidence=0.5)
    graph = Taxonomy.from_edges([("class 00", "class 01")], kind="graph")
    with pytest.raises(ValueError, match="undirected"):
        Model(sure, taxonomy=graph).predict(X, min_confidence=0.5)


def test_the_command_line_shows_probabilities(tmp_path: Path) -> None:
    texts = write_tsv(tmp_path / "train.tsv", make_texts())
    run("train", texts, "--model", tmp_path / "model", "--set", "calibrate=platt")
    model = Model.load(tmp_path / "model")
    expected = model.predict_topk([text for _, text in make_texts()], 2, probabilities=True)
    lines = run("predict", tmp_path / "model", texts, "-k", 2).stdout.splitlines()
    first = lines[0].split("\t")
    assert first[::2] == expected.labels[0].tolist()
    np.testing.assert_allclose([float(p) for p in first[1::2]], expected.scores[0], rtol=1e-4)
    entry = run_json("predict", tmp_path / "model", write_tsv(tmp_path / "one.tsv", make_texts()[:1]), "-k", 2)
    np.testing.assert_allclose(entry["probabilities"], expected.scores[0], rtol=1e-4)
    assert entry["scores"] != entry["probabilities"]


def test_evaluation_is_of_what_predict_returns(tmp_path: Path) -> None:
    rows = [(f"{label},{DRINKS[label][0]}" if i % 3 else label, text) for i, (label, text) in enumerate(make_texts())]
    texts = write_tsv(tmp_path / "train.tsv", rows)
    run("train", texts, "--model", tmp_path / "model", "--set", "cut=instance")
    model = Model.load(tmp_path / "model")
    assert model.estimator.cut_ == "instance"
    predicted = model.predict([text for _, text in rows])
    expected = micro_f1([label.split(",") for label, _ in rows], predicted)
    assert run_json("evaluate", tmp_path / "model", texts)["measures"]["micro_f1"] == pytest.approx(expected)
