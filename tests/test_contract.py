"""Our own contract: what every learner promises beyond scikit-learn's checks, by standing in the list."""

from __future__ import annotations

import pickle
import threading
import time
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer, Normalizer

import abound
from abound.learn.base import RankingClassifier
from abound.learn.committee import CommitteeClassifier
from abound.learn.experts import ExpertsClassifier
from abound.learn.feature_focus import FeatureFocusClassifier
from abound.learn.frequency import FrequencyClassifier
from abound.learn.index_learner import IndexLearner
from abound.learn.online import OnlineClassifier
from abound.learn.pa import PAClassifier
from abound.learn.registry import LEARNERS
from abound.learn.sequential import SequentialClassifier
from abound.measure import micro_f1
from estimators import ESTIMATORS
from generate import make_rows

ONLINE = [estimator for estimator in ESTIMATORS if isinstance(estimator, OnlineClassifier)]
ALONE = [estimator for estimator in ONLINE if estimator.get_params().get("n_members", 1) == 1]
BY_FEATURE = [estimator for estimator in ESTIMATORS if isinstance(estimator, IndexLearner | FrequencyClassifier)]
GROWING = [estimator for estimator in ESTIMATORS if hasattr(estimator, "partial_fit")]
every = pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
online = pytest.mark.parametrize("estimator", ONLINE, ids=repr)
alone = pytest.mark.parametrize("estimator", ALONE, ids=repr)
by_feature = pytest.mark.parametrize("estimator", BY_FEATURE, ids=repr)
growing = pytest.mark.parametrize("estimator", GROWING, ids=repr)

X, NUMBERS = make_rows(0, n=300)
Y = np.array([f"class {c:02d}" for c in NUMBERS])
LISTS = [[f"class {c:02d}"] if i % 3 else [f"class {c:02d}", "every third"] for i, c in enumerate(NUMBERS)]


def weights_by_label(model: Any) -> dict[tuple[int, Any], Any]:
    index = model.index_
    features = np.repeat(np.arange(index.n_features), index.degrees).tolist()
    labels = model.classes_[index.classes].tolist()
    return dict(zip(zip(features, labels, strict=True), index.weights.view(np.int32).tolist(), strict=True))


def assert_ranks_alike(one: Any, other: Any, rows: Any = X) -> None:
    left, right = one.predict_topk(rows, 6), other.predict_topk(rows, 6)
    np.testing.assert_array_equal(left.labels, right.labels)
    np.testing.assert_array_equal(left.scores, right.scores)


def parts_of(model: Any) -> list[Any]:
    """The learners that an ensemble is made of and that explain it; a learner itself."""
    if isinstance(model, CommitteeClassifier):
        return model._members
    return [model.generalist_] if isinstance(model, ExpertsClassifier) else [model]


def has_bias(model: Any) -> bool:
    """Whether something speaks for a class in every row."""
    parts = [part for part in parts_of(model) if part.ranks_by_bias or isinstance(model, ExpertsClassifier)]
    return any(getattr(getattr(part, "index_", None), "bias", None) is not None for part in parts)


def common_bias(part: Any) -> float:
    """What a learner that keeps apart what all classes have in common adds to all scores."""
    common = getattr(part, "n_common", 0)
    return float(part._mean_bias()[:common].sum()) if common and part.can_learn else 0.0


def is_ensemble(model: Any) -> bool:
    """Whether parts vote or are standardised: then a class that leaves changes what is said of the others."""
    return isinstance(model, CommitteeClassifier | ExpertsClassifier | SequentialClassifier)


def settings(value: Any) -> Any:
    """Parameters to compare: learners by theirs, lists like tuples."""
    if isinstance(value, RankingClassifier):
        return type(value), settings(value.get_params(deep=False))
    if isinstance(value, dict):
        return {name: settings(each) for name, each in value.items()}
    return tuple(settings(each) for each in value) if isinstance(value, list | tuple) else value


def test_every_learner_of_the_registry_is_tested() -> None:
    assert {type(estimator) for estimator in ESTIMATORS} == set(LEARNERS.values())


def as_matrix(rows: Any) -> Any:
    return sp.csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.n_rows, rows.n_features))


@every
def test_topk_is_sorted_and_begins_with_predict(estimator: Any) -> None:
    model = clone(estimator).fit(X, Y)
    labels, scores = model.predict_topk(X, k=4)
    assert labels.shape == scores.shape == (300, 4)
    assert scores.dtype == np.float32
    np.testing.assert_array_equal(labels[:, 0], model.predict(X))
    assert (scores[:, :-1] >= scores[:, 1:]).all()
    for row in labels[:50]:
        known = [label for label in row if label is not None]
        assert len(set(known)) == len(known)
    assert model.predict_topk(X, k=1000).labels.shape[1] == len(model.classes_)


@every
def test_scores_agree_with_the_decision_function(estimator: Any) -> None:
    model = clone(estimator).fit(X, Y)
    dense = model.decision_function(X)
    labels, scores = model.predict_topk(X, k=1)
    np.testing.assert_array_equal(model.classes_[dense.argmax(axis=1)], labels[:, 0])
    np.testing.assert_allclose(dense.max(axis=1), scores[:, 0], atol=1e-6)


@every
def test_include_and_exclude(estimator: Any) -> None:
    model = clone(estimator).fit(X, Y)
    some = model.classes_[:3].tolist()
    inside = model.predict_topk(X, k=5, include=some).labels
    assert {label for label in inside.ravel() if label is not None} <= set(some)
    outside = model.predict_topk(X, k=5, exclude=some).labels
    assert not {label for label in outside.ravel() if label is not None} & set(some)
    everything = model.predict_topk(X, k=len(model.classes_))
    without = model.predict_topk(X, k=len(model.classes_), exclude=[some[0]])
    row = [label for label in everything.labels[0] if label is not None and label != some[0]]
    if is_ensemble(model):
        assert {label for label in without.labels[0] if label is not None} <= set(model.classes_[1:])
    else:
        assert [label for label in without.labels[0] if label is not None][: len(row)] == row
    nothing = model.predict_topk(X, k=2, include=[])
    assert all(label is None for label in nothing.labels.ravel())
    with pytest.raises(ValueError, match="'nobody' is not a class"):
        model.predict_topk(X, include=["nobody"])


@every
def test_a_silent_row_gets_the_most_frequent_class(estimator: Any) -> None:
    names, counts = np.unique(Y, return_counts=True)
    last_first = {name: f"label {len(names) - i:02d}" for i, name in enumerate(names)}
    model = clone(estimator).fit(X, [last_first[name] for name in Y])
    if (getattr(estimator, "bias", 0) and model.ranks_by_bias) or has_bias(model):
        pytest.skip("with a bias no row is silent")
    silent, frequent = sp.csr_array((2, X.shape[1])), last_first[names[counts.argmax()]]
    assert frequent != model.classes_[0]
    assert model.predict(silent).tolist() == [frequent] * 2
    labels = model.predict_topk(silent, k=4).labels[0].tolist()
    assert labels[0] == frequent
    assert labels.count(frequent) == 1
    assert model.classes_[model.decision_function(silent).argmax(axis=1)].tolist() == [frequent] * 2
    rest = model.predict_topk(silent, k=1, exclude=[frequent]).labels[0, 0]
    assert rest != frequent


@every
@pytest.mark.parametrize(
    "y", [NUMBERS, [("part", int(c)) for c in NUMBERS], [int(c) if c else "none" for c in NUMBERS]]
)
def test_labels_of_any_type(estimator: Any, y: Any) -> None:
    model = clone(estimator).fit(X, y)
    predicted = model.predict(X).tolist()
    assert set(predicted) <= set(y.tolist() if isinstance(y, np.ndarray) else y)
    assert_ranks_alike(model, pickle.loads(pickle.dumps(model)))


@every
def test_many_labels_a_row(estimator: Any) -> None:
    model = clone(estimator).fit(X, LISTS)
    predicted = model.predict(X)
    assert isinstance(predicted, list)
    assert all(isinstance(row, list) and row for row in predicted)
    assert "every third" in model.classes_
    names = model.classes_.tolist()
    indicator = sp.csr_array(np.array([[name in row for name in names] for row in LISTS], dtype=np.int8))
    other = clone(estimator).fit(X, indicator)
    np.testing.assert_array_equal(other.predict_topk(X, 3).scores, model.predict_topk(X, 3).scores)
    assert other.predict(X).shape == indicator.shape
    assert other.predict(X).format == "csr"


@every
@pytest.mark.parametrize("calibrate", ["platt", "isotonic"])
def test_probabilities(estimator: Any, calibrate: str, tmp_path: Any) -> None:
    plain = clone(estimator).set_params(calibrate=None)
    assert not hasattr(plain, "predict_proba")
    model = clone(estimator).set_params(calibrate=calibrate).fit(X[:250], Y[:250])
    labels, found = model.predict_topk(X, 5, probabilities=True)
    np.testing.assert_array_equal(labels, model.predict_topk(X, 5).labels)
    assert np.isfinite(found).all()
    assert ((found >= 0) & (found <= 1)).all()
    assert (found[:, :-1] >= found[:, 1:]).all()
    np.testing.assert_array_equal(model.predict_topk(X[7:9], 5, probabilities=True).scores, found[7:9])
    dense = model.predict_proba(X)
    np.testing.assert_allclose(dense.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[dense.argmax(axis=1)], model.predict(X))
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(abound.load(tmp_path / "model").predict_proba(X), dense)
    assert_ranks_alike(plain.fit(X[:250], Y[:250]), model)


@every
def test_the_rule_for_several_labels_is_learned_and_kept(estimator: Any, tmp_path: Any) -> None:
    model = clone(estimator).set_params(cut="auto", calibrate="platt").fit(X, LISTS)
    assert model.cut_scores_[model.cut_] == max(model.cut_scores_.values())
    dense = model.predict_proba(X)
    assert ((dense > 0) & (dense < 1)).all()
    model.save(tmp_path / "model")
    loaded = abound.load(tmp_path / "model")
    assert loaded.predict(X) == model.predict(X)
    np.testing.assert_array_equal(loaded.predict_proba(X), dense)


@every
def test_the_form_of_the_input_makes_no_difference(estimator: Any, tmp_path: Any) -> None:
    model = clone(estimator).fit(X, Y)
    np.save(tmp_path / "x.npy", X.data)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    wide = sp.csr_array((mapped, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
    halves = sp.csr_array((np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), X.indptr * 2), shape=X.shape)
    for form in (wide, sp.csr_matrix(X), X.toarray(), sp.csc_array(X), X.astype(np.float64), halves):
        assert_ranks_alike(model, clone(estimator).fit(form, Y))


@every
def test_threads_and_seeds(estimator: Any) -> None:
    model = clone(estimator).fit(X, Y)
    again = clone(estimator).fit(X, Y)
    assert weights_by_label(model) == weights_by_label(again)
    threads = clone(estimator).set_params(n_jobs=2).fit(X, Y)
    assert weights_by_label(model) == weights_by_label(threads)
    assert_ranks_alike(model, threads)


@every
def test_one_class_and_empty_rows(estimator: Any) -> None:
    rows = sp.vstack([X[:20], sp.csr_array((5, X.shape[1]))]).tocsr()
    model = clone(estimator).fit(rows, ["only"] * 25)
    assert model.predict(rows).tolist() == ["only"] * 25


@every
def test_rows_without_any_label_are_refused(estimator: Any) -> None:
    with pytest.raises(ValueError, match="holds no label"):
        clone(estimator).fit(X[:2], [[], []])


@every
def test_explain_adds_up_to_the_score(estimator: Any) -> None:
    model = clone(estimator).fit(X, Y)
    for i in range(10):
        labels, scores = model.predict_topk(X[[i]], k=1)
        if is_ensemble(model):
            c = model._class_id(labels[0, 0])
            scores = np.mean([part._score_all(part._rows(X[[i]]))[:, [c]] for part in parts_of(model)], axis=0)
        if model.index_.n_edges and scores[0, 0] > 0:
            parts = model.explain(X[[i]], labels[0, 0])
            assert sum(value for _, value in parts) == pytest.approx(float(scores[0, 0]), abs=1e-5)
            sizes = [abs(value) for _, value in parts]
            assert sizes == sorted(sizes, reverse=True)
    with pytest.raises(ValueError, match="not a class"):
        model.explain(X[[0]], "nobody")
    with pytest.raises(ValueError, match="one row"):
        model.explain(X[:2], Y[0])


@every
def test_save_and_load(estimator: Any, tmp_path: Any) -> None:
    model = clone(estimator).fit(X, Y)
    path = tmp_path / "model.safetensors"
    model.save(path)
    loaded = abound.load(path)
    assert type(loaded) is type(model)
    assert settings(loaded) == settings(model)
    assert_ranks_alike(model, loaded)
    np.testing.assert_array_equal(loaded.classes_, model.classes_)
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.n_edges_ == model.n_edges_
    first = path.read_bytes()
    loaded.save(path)
    assert path.read_bytes() == first, "saving what was loaded changes nothing"


@growing
def test_a_loaded_model_learns_on(estimator: Any, tmp_path: Any) -> None:
    model = clone(estimator).partial_fit(X[:150], Y[:150])
    model.save(tmp_path / "model")
    loaded = abound.load(tmp_path / "model")
    model.partial_fit(X[150:], Y[150:])
    loaded.partial_fit(X[150:], Y[150:])
    if model.ranks_every_class:
        agree = model.predict(X) == loaded.predict(X)
        assert agree.mean() > 0.95, "weights are added up in another order, so near-ties may fall otherwise"
    else:
        assert weights_by_label(model) == weights_by_label(loaded)
        assert_ranks_alike(model, loaded)


@online
def test_a_model_without_state_refuses_to_learn(estimator: Any, tmp_path: Any) -> None:
    model = abound.Model(clone(estimator).fit(X, Y))
    model.save(tmp_path / "model", keep_state=False)
    loaded = abound.Model.load(tmp_path / "model")
    assert not loaded.is_online
    assert_ranks_alike(model, loaded)
    with pytest.raises(ValueError, match="without what it needs to learn on"):
        loaded.partial_fit(X, Y)


@by_feature
def test_chunks_equal_one_pass(estimator: Any) -> None:
    """Bit for bit, by label: classes come in another order, and new ones in every chunk."""
    parameters = {"shuffle": False, "passes": 1} if "passes" in estimator.get_params() else {}
    whole = clone(estimator).set_params(**parameters).fit(X, Y)
    for size in (7, 100):
        parts = clone(estimator)
        for begin in range(0, X.shape[0], size):
            parts.partial_fit(X[begin : begin + size], Y[begin : begin + size])
        assert weights_by_label(parts) == weights_by_label(whole)
        assert set(parts.classes_) == set(whole.classes_)
        if size == 7:
            assert parts.classes_.tolist() != whole.classes_.tolist(), "the order of arrival is another one"


@growing
def test_new_classes_and_features_are_learned(estimator: Any) -> None:
    model = clone(estimator).partial_fit(X[:100, :30], Y[:100])
    known = model.classes_.tolist()
    novel = sp.csr_array((30, 40), dtype=np.float32).tolil()
    novel[:, 35] = 1.0
    for _ in range(3):
        model.partial_fit(novel.tocsr(), ["brand new"] * 30)
    assert model.classes_[: len(known)].tolist() == known, "classes only grow at the end"
    assert model.n_features_in_ == 40
    if model.learner != "frequency":
        assert model.predict(novel.tocsr()[:1]).tolist() == ["brand new"]
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:5, :30], Y[:5])
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:5, :30])


@growing
def test_classes_may_be_announced(estimator: Any) -> None:
    model = clone(estimator).partial_fit(X[:5], Y[:5], classes=["zebra", *np.unique(Y)])
    assert "zebra" in model.classes_
    model.partial_fit(X[:1], ["unannounced"])
    assert model.classes_[-1] == "unannounced"


@pytest.mark.parametrize("estimator", [e for e in GROWING if e.get_params().get("n_members", 1) == 1], ids=repr)
def test_a_row_of_weight_0_is_not_there(estimator: Any) -> None:
    weights = np.ones(300)
    weights[200:] = 0
    parameters = {"shuffle": False} if "shuffle" in estimator.get_params() else {}
    weighted = clone(estimator).set_params(**parameters).fit(X, Y, weights)
    without = clone(estimator).set_params(**parameters).fit(X[:200], Y[:200])
    if weighted.learner != "unweighted":
        assert weights_by_label(weighted) == weights_by_label(without)


@alone
def test_history_has_an_entry_a_pass(estimator: Any) -> None:
    model = clone(estimator).set_params(passes=3, validation_fraction=0.2).fit(X, Y)
    assert [entry["pass"] for entry in model.history_] == [1, 2, 3]
    for entry in model.history_:
        assert 0 <= entry["R1"] <= entry["R5"] <= 1
        assert 0 <= entry["online_R1"] <= 1
        assert entry["updates"] >= 0
        assert entry["seconds"] >= 0
    assert model.history_[-1]["edges"] == model.n_edges_


@online
def test_shuffling_saves_a_file_sorted_by_class(estimator: Any) -> None:
    order = np.argsort(Y)
    shuffled = clone(estimator).fit(X[order], Y[order])
    assert shuffled.score(X, Y) > 0.5
    sorted_model = clone(estimator).set_params(shuffle=False).fit(X[order], Y[order])
    assert weights_by_label(sorted_model) != weights_by_label(shuffled)


@online
def test_sorted_chunks_are_warned_about(estimator: Any) -> None:
    rows = sp.vstack([X] * 3).tocsr()
    labels = np.concatenate([Y] * 3)
    order = np.argsort(labels, kind="stable")
    with pytest.warns(UserWarning, match="sorted by class"):
        clone(estimator).partial_fit(rows[order], labels[order])
    clone(estimator).partial_fit(rows, labels)


@alone
def test_an_interrupt_leaves_a_usable_model(estimator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = clone(estimator).set_params(passes=5)
    learn, calls = type(model)._learn, []

    def interrupted(self: Any, examples: Any, first_pass: bool) -> Any:
        calls.append(first_pass)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return learn(self, examples, first_pass)

    monkeypatch.setattr(type(model), "_learn", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert model.score(X, Y) > np.bincount(NUMBERS).max() / len(NUMBERS)
    assert len(model.history_) == 1


@every
def test_classes_leave_and_are_renamed(estimator: Any, tmp_path: Any) -> None:
    model = clone(estimator).fit(X, Y)
    before = model.predict_topk(X, k=12)
    gone, kept = "class 00", [c for c in model.classes_.tolist() if c != "class 00"]
    excluded = model.predict_topk(X, k=11, exclude=[gone])
    model.drop_classes([gone])
    assert model.classes_.tolist() == kept
    after = model.predict_topk(X, k=11)
    if is_ensemble(model):
        assert (after.labels == excluded.labels).mean() > 0.99, "near-ties apart, to drop is to exclude for good"
        np.testing.assert_allclose(after.scores, excluded.scores, atol=1e-4)
    elif model.learner != "frequency":
        row = [label for label in before.labels[0] if label not in (None, gone)]
        assert [label for label in after.labels[0] if label is not None][: len(row)] == row
    model.rename_classes({"class 01": "a new name"})
    assert "a new name" in model.classes_
    assert_ranks_alike(pickle.loads(pickle.dumps(model)), model)
    model.save(tmp_path / "model")
    loaded = abound.load(tmp_path / "model").drop_classes(["class 02"])
    assert_ranks_alike(model.drop_classes(["class 02"]), loaded)
    with pytest.raises(ValueError, match="merge_classes"):
        model.rename_classes({"class 03": "class 04"})
    with pytest.raises(ValueError, match="at least one must remain"):
        model.drop_classes(model.classes_)
    if hasattr(model, "partial_fit"):
        model.partial_fit(X[:20], Y[:20])


@every
def test_merged_classes_add_up(estimator: Any) -> None:
    model = clone(estimator).fit(X, Y)
    counts = dict(zip(model.classes_.tolist(), model.class_counts_.tolist(), strict=True))
    first, second = model._class_id("class 03"), model._class_id("class 05")
    dense = [part._score_all(part._rows(X)) for part in parts_of(model)]
    model.merge_classes(["class 03", "class 05"], into="both")
    assert "class 03" not in model.classes_
    assert model.class_counts_[model._class_id("both")] == counts["class 03"] + counts["class 05"]
    if model.learner not in ("unweighted", "ecoc", "sadyc"):
        for part, scores in zip(parts_of(model), dense, strict=True):
            merged = part._score_all(part._rows(X))[:, model._class_id("both")]
            common = 0 if part.index_.offset is None else as_matrix(part._rows(X)) @ part.index_.offset
            common = common + common_bias(part)
            np.testing.assert_allclose(merged, scores[:, first] + scores[:, second] - common, atol=1e-4)
    model.merge_classes(["class 06"], into="both")
    assert model.classes_.tolist().count("both") == 1


@every
def test_works_inside_scikit_learn(estimator: Any) -> None:
    pipeline = make_pipeline(Normalizer(), clone(estimator))
    scores = cross_val_score(pipeline, X, Y, cv=3)
    assert scores.shape == (3,)
    step = pipeline.steps[-1][0]
    grid = {f"{step}__n_jobs": [None, 2]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, Y)
    assert search.predict(X[:2]).dtype == Y.dtype


@every
def test_wrong_parameters_are_named(estimator: Any) -> None:
    wrong = {
        "passes": 0,
        "margin": "wide",
        "min_weight": -1,
        "max_degree": 0,
        "rate": -1.0,
        "negative": "flip",
        "validation_fraction": 1.0,
        "tolerance": -1,
        "max_negatives": 0,
        "threshold": 2.0,
        "counts": "some",
        "leak": "yes",
        "boolean": 2,
        "rate_features": 0,
        "vote_weight": -0.1,
        "variant": "other",
        "shuffle": "sure",
        "n_jobs": 0,
        "C": 0,
        "step": "long",
        "average": 2,
        "keep": 0,
        "keep_when": "never",
        "oversample": 0,
        "resample": "no",
        "patience": 0,
        "pairs": "some",
        "n_members": 0,
        "init": "one",
        "rank_by": "age",
        "n_perceptrons": 0,
        "members": [],
        "n_seeds": 0,
        "keep_passes": (),
        "vote": "none",
        "generalist": "pa",
        "expert": "pa",
        "n_folds": 1,
        "top": 0,
        "max_group": 1,
        "min_confusion": 0,
        "weight": -1,
        "calibrate": "sometimes",
        "cut": "deep",
    }
    for name in estimator.get_params():
        if name in wrong:
            with pytest.raises(ValueError, match=name):
                clone(estimator).set_params(**{name: wrong[name]}).fit(X, Y).predict(X)


@every
def test_a_dense_answer_that_would_not_fit_is_refused(estimator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = clone(estimator).fit(X, Y)
    monkeypatch.setattr("abound.validation.DENSE_LIMIT", 1000)
    with pytest.raises(MemoryError, match="predict_topk"):
        model.decision_function(X)
    assert model.predict(X).shape == (300,)


@every
def test_score_is_accuracy_or_micro_f1(estimator: Any) -> None:
    model = clone(estimator).fit(X, Y)
    weights = np.arange(len(Y)) % 3
    assert model.score(X, Y) == pytest.approx(np.mean(model.predict(X) == Y))
    assert model.score(X, Y, weights) == pytest.approx(np.average(model.predict(X) == Y, weights=weights))
    assert model.score(X[:2], ["unknown", "also unknown"]) == 0
    model.fit(X, LISTS)
    assert model.score(X, LISTS) == pytest.approx(micro_f1(LISTS, model.predict(X)))


@pytest.mark.parametrize("kind", ["lists", "indicator"])
def test_scikit_learn_searches_with_several_labels(kind: str) -> None:
    """Scores were nan, so that the first setting won, whatever it was."""
    y: Any = LISTS
    if kind == "indicator":
        y = MultiLabelBinarizer().fit_transform(LISTS)
    grid = {"featurefocusclassifier__min_weight": [0.9, 0.01]}
    pipeline = make_pipeline(Normalizer(), FeatureFocusClassifier())
    search = GridSearchCV(pipeline, grid, cv=KFold(3)).fit(X, y)
    bad, good = search.cv_results_["mean_test_score"]
    assert 0 < bad < good < 1
    assert search.best_params_["featurefocusclassifier__min_weight"] == 0.01
    assert (cross_val_score(pipeline, X, y, cv=KFold(3)) > 0).all()


@growing
def test_threads_may_ask_while_one_teaches(estimator: Any) -> None:
    """Each answer is that of some state between two calls."""
    parts = [(X[30 * i : 30 * i + 30, : 15 + 5 * i], Y[30 * i : 30 * i + 30]) for i in range(10)]
    asked = parts[0][0][:12]
    states = []
    model = clone(estimator)
    for part in parts:
        model.partial_fit(*part)
        answer = model.predict_topk(_widened(asked, part[0].shape[1]), 6)
        states.append((answer.labels.tolist(), answer.scores.tolist()))
    taught, answers, problems = clone(estimator).partial_fit(*parts[0]), [], []
    is_over = threading.Event()

    def ask() -> None:
        while not is_over.is_set():
            try:
                answer = taught.predict_topk(_widened(asked, taught.n_features_in_), 6)
            except ValueError as error:
                # It may have grown wider since it was looked at.
                if "features" not in str(error):
                    problems.append(error)
            except Exception as error:
                problems.append(error)
            else:
                answers.append((answer.labels.tolist(), answer.scores.tolist()))

    askers = [threading.Thread(target=ask) for _ in range(8)]
    for asker in askers:
        asker.start()
    for part in parts[1:]:
        taught.partial_fit(*part)
        time.sleep(0.002)
    is_over.set()
    for asker in askers:
        asker.join()
    assert not problems and answers
    assert all(answer in states for answer in answers)


def _widened(rows: Any, width: int) -> Any:
    return sp.csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.shape[0], width))


def test_pairs_are_labels_like_others() -> None:
    pairs = [("a", int(c) % 2) for c in NUMBERS]
    model = PAClassifier().fit(X, pairs)
    assert set(model.predict_topk(X, 2, include=[("a", 1)]).labels[:, 0]) == {("a", 1)}
    assert model.explain(X[[0]], ("a", 0))
    assert model.drop_classes([("a", 0)]).classes_.tolist() == [("a", 1)]
