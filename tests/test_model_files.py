"""Model files of earlier days still load, and learners inside learners find their way into a file and back.

Run as a script, this adds the files of `EXAMPLES` that are missing; those that are there are never written again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import abound
from abound import (
    CommitteeClassifier,
    ExpertsClassifier,
    FeatureFocusClassifier,
    IndependentClassifier,
    LinearClassifier,
    MMPClassifier,
    PAClassifier,
    UnweightedIndexClassifier,
)
from abound.store import ModelFileError, open_arrays, save_arrays
from generate import make_rows

FOLDER = Path(__file__).parent / "data" / "models"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
ROWS = sp.csr_array(np.array(EXPECTED["rows"], dtype=np.float32))
X, Y = make_rows(4, n=120, n_classes=5, noise=0.7)

EXAMPLES = {
    "ff": FeatureFocusClassifier(negative="split", passes=2),
    "pa": PAClassifier(passes=2),
    "mmp": MMPClassifier(passes=2),
    "unweighted": UnweightedIndexClassifier(passes=2),
    "unweighted-perceptrons": UnweightedIndexClassifier(passes=2, rank_by="perceptrons", n_perceptrons=3),
    "committee": CommitteeClassifier([PAClassifier(), FeatureFocusClassifier()], n_seeds=1, keep_passes=(1, 2)),
    "edge": ExpertsClassifier(FeatureFocusClassifier(), min_confusion=1, weight=0.5),
}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.safetensors")), ids=lambda path: path.stem)
def test_files_of_earlier_days_load_and_rank_as_then(path: Path) -> None:
    model = abound.load(path)
    expected = EXPECTED[path.stem]
    labels, scores = model.predict_topk(ROWS, 3)
    assert labels.tolist() == expected["labels"]
    then = np.array([[-np.inf if score is None else score for score in row] for row in expected["scores"]])
    np.testing.assert_allclose(scores, then, rtol=1e-6)
    if hasattr(model, "partial_fit"):
        model.partial_fit(ROWS, labels[:, 0] if model._kind == "single" else labels.tolist())


@pytest.mark.parametrize("name", ["pa", "mmp"])
def test_files_without_a_bias_learn_on_without_one(name: str, tmp_path: Path) -> None:
    model = abound.load(FOLDER / f"{name}.safetensors")
    rows, numbers = make_rows(3, n=60, n_features=30, n_classes=6)
    lists = [[f"class {c}"] if i % 3 else [f"class {c}", "every third"] for i, c in enumerate(numbers)]
    labels: Any = lists if name == "mmp" else model.classes_[numbers]
    twin = clone(model).fit(rows, labels)
    assert model.bias == twin.bias == 0
    for learner in (model, twin):
        learner.partial_fit(ROWS, labels[: ROWS.shape[0]])
        assert learner.index_.bias is None
    np.testing.assert_allclose(model.decision_function(rows), twin.decision_function(rows), atol=1e-5)
    model.save(tmp_path / "model")
    assert not [name for name in open_arrays(tmp_path / "model") if "bias" in name or "constant" in name]


def test_every_example_has_its_file() -> None:
    assert {path.stem for path in FOLDER.glob("*.safetensors")} == set(EXPECTED) - {"rows"} == set(EXAMPLES)


def test_learners_inside_learners(tmp_path: Any) -> None:
    inner = CommitteeClassifier([FeatureFocusClassifier(margin=0.2), PAClassifier(C=2.0)], n_seeds=1, keep_passes=[1])
    model = CommitteeClassifier(inner, n_seeds=2, keep_passes=(1,), random_state=np.random.RandomState(3)).fit(X, Y)
    model.save(tmp_path / "model")
    loaded = abound.load(tmp_path / "model")
    assert loaded.random_state is None, "a generator cannot be kept"
    assert loaded.members.members[0].margin == 0.2 and loaded.members.members[1].C == 2.0
    assert loaded.members.keep_passes == (1,), "a list comes back as a tuple"
    np.testing.assert_array_equal(loaded.predict_topk(X, 3).scores, model.predict_topk(X, 3).scores)
    meta = open_arrays(tmp_path / "model").meta["estimator"]
    assert meta["parameters"]["members"]["learner"] == "committee"
    assert set(meta["parameters"]["members"]) == {"learner", "parameters"}


def rewritten(path: Path, change: Any) -> Path:
    """The same file with other settings."""
    stored = open_arrays(path)
    arrays, meta = {name: array.copy() for name, array in stored.items()}, stored.meta
    change(arrays, meta["estimator"])
    save_arrays(path, arrays, meta)
    return path


COMMITTEE = [
    lambda arrays, meta: meta["fitted"].update(members=[]),
    lambda arrays, meta: meta["fitted"].pop("members"),
    lambda arrays, meta: meta["fitted"]["members"].append(meta["fitted"]["members"][0]),
    lambda arrays, meta: meta["fitted"]["members"][0].update(learner="nobody"),
    lambda arrays, meta: meta["fitted"]["members"][0].update(learner="ff"),
    lambda arrays, meta: meta["fitted"]["members"].insert(0, "pa"),
    lambda arrays, meta: meta["parameters"].update(members={"learner": "pa"}),
    lambda arrays, meta: meta["parameters"].update(members={"learner": "pa", "parameters": {"passes": 0}}),
    lambda arrays, meta: meta["parameters"].update(keep_passes=[[1]]),
    lambda arrays, meta: meta.update(n_features_in=59),
    lambda arrays, meta: arrays["member/1/index/classes"].__iadd__(5),
    lambda arrays, meta: arrays.update({"member/1/index/indptr": arrays["member/1/index/indptr"][:-1]}),
    lambda arrays, meta: arrays.pop("member/0/index/weights"),
]
EDGE = [
    lambda arrays, meta: meta["fitted"].pop("generalist"),
    lambda arrays, meta: meta["fitted"].update(weight=-0.5),
    lambda arrays, meta: meta["fitted"].pop("weight"),
    lambda arrays, meta: meta["fitted"]["generalist"].update(learner="frequency", parameters={}),
    lambda arrays, meta: meta["parameters"].update(expert={"learner": "committee", "parameters": {}}),
    lambda arrays, meta: arrays["experts/group_classes"].__iadd__(5),
    lambda arrays, meta: arrays["experts/list_classes"].__iadd__(5),
    lambda arrays, meta: arrays["experts/features"].__iadd__(60),
    lambda arrays, meta: arrays.pop("experts/list_indptr"),
    lambda arrays, meta: arrays["generalist/index/classes"].__iadd__(5),
]


@pytest.mark.parametrize(
    ("model", "change"),
    [(CommitteeClassifier(IndependentClassifier(threshold=0.1), n_seeds=2), change) for change in COMMITTEE]
    + [(ExpertsClassifier(weight=0.5, min_confusion=1), change) for change in EDGE],
)
def test_crafted_ensembles_are_refused(model: Any, change: Any, tmp_path: Any) -> None:
    path = tmp_path / "model"
    model.fit(X, Y).save(path)
    abound.load(path)
    with pytest.raises(ModelFileError, match="model"):
        abound.load(rewritten(path, change))


ANY = [
    (lambda arrays, meta: arrays["index/weights"].__setitem__(0, -np.inf), "weights.*-inf.*up to"),
    (lambda arrays, meta: arrays["index/weights"].__setitem__(0, np.nan), "weights.*nan"),
    (lambda arrays, meta: arrays["index/weights"].__setitem__(0, 2e15), "weights.*2e\\+15"),
    (lambda arrays, meta: arrays["class_counts"].__setitem__(0, -1), "class_counts"),
    (lambda arrays, meta: arrays["class_counts"].__setitem__(0, 2**63 - 1), "class_counts"),
    (lambda arrays, meta: meta["fitted"].update(history=[1e38]), "history"),
    (lambda arrays, meta: meta["fitted"].update(history=[{"pass": "1"}]), "history"),
]


@pytest.mark.parametrize(("change", "message"), ANY)
def test_numbers_that_cannot_be_are_refused(change: Any, message: str, tmp_path: Any) -> None:
    path = tmp_path / "model"
    PAClassifier().fit(X, Y).save(path)
    with pytest.raises(ModelFileError, match=message):
        abound.load(rewritten(path, change))


def test_numbers_that_cannot_be_are_refused_when_more_is_learned(tmp_path: Any) -> None:
    path = tmp_path / "model"
    PAClassifier().fit(X, Y).save(path)
    model = abound.load(rewritten(path, lambda arrays, meta: arrays["state/weights"].__setitem__(0, np.inf)))
    with pytest.raises(ModelFileError, match="state/weights"):
        model.partial_fit(X, Y)


def test_a_number_that_is_missing_stays_so(tmp_path: Any) -> None:
    path = tmp_path / "model"
    LinearClassifier().fit(X, Y).save(path)
    model = abound.load(rewritten(path, lambda arrays, meta: meta["fitted"].pop("C")))
    model.save(path)
    assert np.isnan(abound.load(path).C_)
    with pytest.raises(ModelFileError, match="C is '1000000"):
        abound.load(rewritten(path, lambda arrays, meta: meta["fitted"].update(C=10**301)))


def add_missing_files() -> None:
    rows, numbers = make_rows(3, n=60, n_features=30, n_classes=6)
    for name, learner in EXAMPLES.items():
        path = FOLDER / f"{name}.safetensors"
        if path.exists():
            continue
        lists = [[f"class {c}"] if i % 3 else [f"class {c}", "every third"] for i, c in enumerate(numbers)]
        learner.fit(rows, lists if name == "mmp" else [f"class {c}" for c in numbers]).save(path)
        labels, scores = learner.predict_topk(ROWS, 3)
        plain = [[float(score) if np.isfinite(score) else None for score in row] for row in scores]
        EXPECTED[name] = {"labels": labels.tolist(), "scores": plain}
    (FOLDER / "expected.json").write_text(json.dumps(EXPECTED, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    add_missing_files()
