"""The bundle of vectoriser, learner, taxonomy and titles, and its file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import abound
from abound import FeatureFocusClassifier, IndependentClassifier, Model, Taxonomy, TextVectorizer
from abound.learn.registry import LEARNERS, VARIANTS, make_learner
from abound.store import ModelFileError, open_arrays, save_arrays

TEXTS = ["green tea", "black tea with milk", "black coffee", "milk coffee", "orange juice", "apple juice"]
LABELS = ["tea", "tea", "coffee", "coffee", "juice", "juice"]
TITLES = {"tea": "Tea, all kinds", "coffee": "Coffee", "juice": "Juices"}


@pytest.fixture
def model() -> Model:
    vectoriser = TextVectorizer()
    learner = FeatureFocusClassifier(passes=3).fit(vectoriser.fit_transform(TEXTS), LABELS)
    taxonomy = Taxonomy.from_edges([("drinks", "hot"), ("hot", "tea"), ("hot", "coffee"), ("drinks", "juice")])
    return Model(learner, vectoriser, taxonomy, TITLES)


def test_texts_go_in_and_classes_come_out(model: Model) -> None:
    assert model.predict(["a cup of green tea"]).tolist() == ["tea"]
    labels, scores = model.predict_topk(["black coffee"], k=2)
    assert labels[0, 0] == "coffee"
    assert scores.shape == (1, 2)
    assert model.predict_topk(["black coffee"], k=1, exclude=["coffee"]).labels[0, 0] == "tea"
    words = dict(model.explain("green tea", "tea"))
    assert set(words) == {"green", "tea"}


def test_everything_comes_back_from_the_file(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    loaded = abound.load(tmp_path / "model")
    assert isinstance(loaded, Model)
    one, other = model.predict_topk(TEXTS, 3), loaded.predict_topk(TEXTS, 3)
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_array_equal(one.scores, other.scores)
    assert loaded.taxonomy.path("tea") == ["drinks", "hot", "tea"]
    assert dict(loaded.titles) == {"coffee": "Coffee", "juice": "Juices", "tea": "Tea, all kinds"}
    assert loaded.titles["juice"] == "Juices"
    assert loaded.is_online
    assert model.explain("green tea", "tea") == loaded.explain("green tea", "tea")


def test_new_words_and_classes_are_learned_from_a_loaded_model(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    loaded = Model.load(tmp_path / "model")
    for _ in range(3):
        loaded.partial_fit(["sparkling water", "still water"], ["water", "water"])
    assert loaded.predict(["a glass of water"]).tolist() == ["water"]
    assert loaded.predict(["green tea"]).tolist() == ["tea"]
    loaded.save(tmp_path / "model")
    again = Model.load(tmp_path / "model")
    assert again.predict(["sparkling water"]).tolist() == ["water"]
    assert again.titles["water"] == "", "a class that came later has no title yet"


@pytest.mark.parametrize("from_file", [False, True])
def test_models_that_share_a_vectoriser_learn_apart(model: Model, tmp_path: Path, from_file: bool) -> None:
    """A new word widened the rows of the other model, which could not rank any more."""
    if from_file:
        model.save(tmp_path / "model")
        model = Model.load(tmp_path / "model")
    vectoriser = model.vectoriser
    assert vectoriser is not None
    other = Model(FeatureFocusClassifier().fit(vectoriser.transform(TEXTS), LABELS), vectoriser)
    titled = replace(model, titles={"water": "Water"})
    before = other.predict_topk(TEXTS, 3).scores
    model.partial_fit(["sparkling water"], ["water"])
    assert other.vectoriser is vectoriser and vectoriser.n_features_ == other.estimator.n_features_in_
    np.testing.assert_array_equal(other.predict_topk(TEXTS, 3).scores, before)
    assert model.predict(["water"]).tolist() == ["water"]
    assert titled.estimator is model.estimator and titled.predict(["water"]).tolist() == ["water"]
    other.partial_fit(["hot cocoa"], ["cocoa"])
    assert other.predict(["cocoa"]).tolist() == ["cocoa"]
    assert model.predict(["cocoa", "water"]).tolist()[1] == "water"
    alone = model.vectoriser
    model.partial_fit(["still water"], ["water"])
    assert model.vectoriser is alone, "nobody else has it, so it is not copied again"


@pytest.mark.parametrize("grams", [(1, 1), (1, 2)])
def test_a_pattern_from_a_file_runs_if_it_is_trusted(tmp_path: Path, grams: tuple[int, int]) -> None:
    vectoriser = TextVectorizer(token_pattern=r"(?u)(?:\w+)+\d", ngram_range=grams)
    learner = FeatureFocusClassifier().fit(vectoriser.fit_transform(["tea1 milk2", "coffee3"]), ["tea", "coffee"])
    Model(learner, vectoriser).save(tmp_path / "model")
    for load in (abound.load, Model.load):
        with pytest.raises(ModelFileError, match=r"model: token_pattern=.*abound\.load\(path, trust=True\)") as refused:
            load(tmp_path / "model")
        assert "damaged" not in str(refused.value)
        assert load(tmp_path / "model", trust=True).predict(["tea1"]).tolist() == ["tea"]


def test_a_learner_that_is_not_online_says_so() -> None:
    model = Model(IndependentClassifier(threshold=0.1).fit(np.eye(3), ["a", "b", "c"]))
    assert not model.is_online
    with pytest.raises(ValueError, match="not online"):
        model.partial_fit(np.eye(3), ["a", "b", "c"])


def test_labels_of_a_loaded_model_are_decoded_when_needed(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    loaded = Model.load(tmp_path / "model")
    assert loaded.predict_topk(["tea"], 1).labels.tolist() == [["tea"]]
    assert type(loaded.estimator._classes).__name__ == "LazyLabels", "one row does not decode all labels"
    assert loaded.estimator.classes_.tolist() == ["coffee", "juice", "tea"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a, m: m["estimator"].update(learner="nobody"), "nobody"),
        (lambda a, m: m["estimator"]["parameters"].update(passes=0), "passes"),
        (lambda a, m: m["estimator"]["parameters"].update(unknown=1), "unknown"),
        (lambda a, m: m["estimator"].update(kind="strange"), "strange"),
        (lambda a, m: m["estimator"].pop("n_features_in"), "n_features_in"),
        (lambda a, m: m["estimator"].update(n_features_in=3), "features"),
        (lambda a, m: m.pop("estimator"), "learner"),
        (lambda a, m: m.pop("vectoriser"), "vectoriser"),
        (lambda a, m: a.pop("index/weights"), "index/weights"),
        (lambda a, m: a.update({"index/classes": a["index/classes"] + 100}), "index/classes"),
        (lambda a, m: a.update({"index/indptr": a["index/indptr"][::-1].copy()}), "index/indptr"),
        (lambda a, m: a.update({"class_counts": a["class_counts"][:1].copy()}), "class"),
        (lambda a, m: a.update({"titles/offsets": a["titles/offsets"][:2].copy()}), "title"),
        (lambda a, m: a.update({"taxonomy/more": np.ones(2)}) or a.pop("taxonomy/edges", None), "taxonomy"),
    ],
)
def test_a_file_that_does_not_fit_together_is_refused(model: Model, tmp_path: Path, change: Any, message: str) -> None:
    """Checksums are right, the content is not: nothing of it reaches a kernel."""
    path = tmp_path / "model"
    model.save(path)
    stored = open_arrays(path)
    arrays, meta = {name: array.copy() for name, array in stored.items()}, stored.meta
    change(arrays, meta)
    save_arrays(path, arrays, meta)
    with pytest.raises(ModelFileError, match=message):
        Model.load(path)


@pytest.mark.parametrize("name", ["state/classes", "state/indptr", "state/totals", "state/weights"])
def test_a_damaged_state_is_refused_when_it_is_needed(model: Model, tmp_path: Path, name: str) -> None:
    path = tmp_path / "model"
    model.save(path)
    stored = open_arrays(path)
    arrays = {key: array.copy() for key, array in stored.items()}
    arrays[name] = arrays[name][:-1].copy()
    save_arrays(path, arrays, stored.meta)
    loaded = Model.load(path)
    with pytest.raises(ModelFileError, match="state"):
        loaded.partial_fit(["more tea"], ["tea"])


def test_parameters_that_json_cannot_hold_are_refused(tmp_path: Path) -> None:
    learner = FeatureFocusClassifier(random_state=np.random.RandomState(0)).fit(np.eye(2), ["a", "b"])
    learner.save(tmp_path / "model")
    assert abound.load(tmp_path / "model").random_state is None


def test_learners_are_made_by_name() -> None:
    assert isinstance(make_learner("ff", margin=0.5), FeatureFocusClassifier)
    assert all(name == learner.learner or name in VARIANTS for name, learner in LEARNERS.items())
    assert make_learner("lr").loss == make_learner("hr-lr").loss == "logistic"
    assert make_learner("lr", loss="hinge").loss == "hinge"
    with pytest.raises(ValueError, match="no learner is called 'nobody'; there are ff"):
        make_learner("nobody")
    with pytest.raises(ValueError, match=r"ff has no parameter 'speed'; it has .*passes"):
        make_learner("ff", speed=1)


def test_a_file_has_the_end_of_a_long_history(tmp_path: Path) -> None:
    learner = FeatureFocusClassifier(passes=1500).fit([[1, 0], [0, 1]], ["a", "b"])
    assert len(learner.history_) == 1500
    learner.save(tmp_path / "model")
    kept = abound.load(tmp_path / "model").history_
    assert [entry["pass"] for entry in kept] == list(range(501, 1501))
