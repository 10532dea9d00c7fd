"""A model file says what was learned; where and how to run is said by who loads it."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import abound
from abound import (
    CommitteeClassifier,
    FeatureFocusClassifier,
    LabelTreeClassifier,
    LinearClassifier,
    Model,
    PAClassifier,
    RecursiveClassifier,
    Taxonomy,
    TopDownClassifier,
)
from abound.learn.base import RankingClassifier
from abound.learn.kept_settings import MOST_NESTED, RUNTIME
from abound.learn.persist import SUMS
from abound.store import ModelFileError, open_arrays, save_arrays
from estimators import ESTIMATORS
from generate import make_rows

X, Y = make_rows(4, n=60, n_classes=4)
TREE = [("all", "a"), ("all", "b"), ("all", "c"), ("all", "d")]


def rewrite(path: Path, change: Any) -> Path:
    """Write the same file with other arrays or settings, and with right checksums."""
    stored = open_arrays(path)
    arrays, meta = {name: array.copy() for name, array in stored.items()}, stored.meta
    change(arrays, meta["estimator"])
    save_arrays(path, arrays, meta)
    return path


def saved(learner: Any, path: Path, labels: Any = Y) -> Path:
    clone(learner).fit(X, labels).save(path)
    return path


def every_settings(settings: Any) -> Any:
    """Yield the parameters of a learner, of its parts, and of the learners among its parameters."""
    if isinstance(settings, dict):
        if isinstance(settings.get("parameters"), dict):
            yield settings["parameters"]
        for part in settings.values():
            yield from every_settings(part)
    elif isinstance(settings, list):
        for part in settings:
            yield from every_settings(part)


def every_learner(value: Any) -> Any:
    """Yield a learner, its parts, and the learners among its parameters."""
    if isinstance(value, RankingClassifier):
        yield value
        parts = getattr(value, "_members", []), getattr(value, "generalist_", None), getattr(value, "_template", None)
        for part in (*value.get_params(deep=False).values(), *parts):
            yield from every_learner(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from every_learner(part)


@pytest.mark.parametrize("learner", ESTIMATORS, ids=str)
def test_a_file_does_not_say_where_to_run(learner: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """It named folders that `fit` wrote into, clusters that it connected to, and files that were opened and quoted."""

    def steer(arrays: Any, meta: Any) -> None:
        for parameters in every_settings(meta):
            assert not parameters.keys() & set(RUNTIME)
            parameters |= {"checkpoint": str(tmp_path / "written"), "cluster": "example.com:6379"}
            parameters |= {"n_jobs": 100_000, "memory": "1MB"}
            if "taxonomy" in parameters:
                parameters["taxonomy"] = str(secret)
            if "tree" in parameters:
                parameters["tree"] = str(secret)

    secret = tmp_path / "secret"
    secret.write_text("the first line of a file\n")
    path = saved(learner, tmp_path / "model")
    before = clone(learner).fit(X, Y)
    rewrite(path, steer)
    there = sorted(tmp_path.iterdir())
    loaded = abound.load(path)
    for each in every_learner(loaded):
        for name in RUNTIME:
            assert getattr(each, name, None) is None
        assert not isinstance(getattr(each, "taxonomy", None), str)
        assert getattr(each, "tree", "kmeans") in (None, "kmeans")
    np.testing.assert_array_equal(loaded.predict_topk(X, 3).scores, before.predict_topk(X, 3).scores)
    monkeypatch.setattr(socket.socket, "connect", lambda *address: pytest.fail(f"it connects to {address[1:]}"))
    with pytest.raises(ValueError) as nothing:
        loaded.predict(X, min_confidence=0.5)
    assert "first line" not in str(nothing.value)
    loaded.fit(X, Y)
    assert sorted(tmp_path.iterdir()) == there


@pytest.mark.parametrize(
    "learner",
    [
        RecursiveClassifier("taxonomy", calibrate="platt"),
        TopDownClassifier("taxonomy", calibrate="platt"),
        LabelTreeClassifier(tree="taxonomy", calibrate="platt"),
    ],
    ids=lambda learner: learner.learner,
)
@pytest.mark.parametrize("kind", [str, Path])
def test_a_taxonomy_that_was_a_file_is_in_the_model(learner: Any, kind: Any, tmp_path: Path) -> None:
    given = tmp_path / "taxonomy"
    given.write_text("".join(f"{parent} {child}\n" for parent, child in TREE))
    name = "tree" if hasattr(learner, "tree") else "taxonomy"
    model = clone(learner).set_params(**{name: kind(given)}).fit(X, np.array(["a", "b", "c", "d"])[Y])
    model.save(tmp_path / "model")
    given.unlink()
    loaded = Model.load(tmp_path / "model").estimator
    assert isinstance(getattr(loaded, name), Taxonomy)
    np.testing.assert_array_equal(loaded.predict(X, min_confidence=0.9), model.predict(X, min_confidence=0.9))
    np.testing.assert_array_equal(loaded.fit(X, loaded.classes_[Y]).predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_degree", 10**30),
        ("max_degree", True),
        ("max_degree", "25"),
        ("passes", -(10**30)),
        ("margin", 1e300),
        ("margin", [0.5]),
        ("random_state", "now"),
        ("random_state", -1),
        ("random_state", True),
        ("random_state", 0.5),
        ("cut", ["auto"]),
        ("min_weight", {"learner": "pa", "parameters": {}}),
        ("min_weight", {"pairs": [[[], 1]]}),
        ("vote_weight", {"pairs": [[{"pairs": []}, 1]]}),
    ],
)
def test_settings_out_of_their_range_are_refused(name: str, value: Any, tmp_path: Path) -> None:
    def change(arrays: Any, meta: Any) -> None:
        meta["parameters"][name] = value

    for learner in (
        FeatureFocusClassifier(),
        CommitteeClassifier(FeatureFocusClassifier(), n_seeds=1, keep_passes=(1,)),
    ):
        path = saved(learner, tmp_path / "model")
        in_parts = learner.learner == "committee"
        rewrite(
            path, lambda arrays, meta, inner=in_parts: change(arrays, meta["parameters"]["members"] if inner else meta)
        )
        with pytest.raises(
            ModelFileError, match=rf"model: array 'meta': its parameters are not valid \((.*{name}|unhashable)"
        ):
            abound.load(path)


SETTINGS = [
    ("n_edges", 10**30),
    ("n_edges", -1),
    ("n_features_in", 10**30),
    ("n_features_in", 0),
    ("labels_a_row", 1e300),
    ("labels_a_row", -1.0),
]
HISTORIES = [3, [3], [{"pass": "one"}], [{"pass": 10**30}], [{"pass": -1}]]


@pytest.mark.parametrize(("name", "value"), [*SETTINGS, *(("history", history) for history in HISTORIES)])
def test_what_was_measured_is_checked(name: str, value: Any, tmp_path: Path) -> None:
    path = saved(PAClassifier(), tmp_path / "model")
    rewrite(path, lambda arrays, meta: (meta["fitted"] if name == "history" else meta).update({name: value}))
    with pytest.raises(ModelFileError, match=name):
        abound.load(path)


@pytest.mark.parametrize("depth", [True, 0, -1, 2.0, "5", None])
def test_how_many_classes_a_cut_looks_at_is_a_number(depth: Any, tmp_path: Path) -> None:
    """True passed for 1, and ended as the shape of an array."""
    learner = TopDownClassifier(Taxonomy.from_edges(TREE))
    path = saved(learner, tmp_path / "model", [["a", "bcd"[i % 3]] for i in range(60)])
    rewrite(path, lambda arrays, meta: meta["decisions"].update({"depth": depth}))
    with pytest.raises(ModelFileError, match=f"of {depth!r} ranked classes is unknown"):
        abound.load(path)


def test_a_taxonomy_that_a_file_makes_a_graph_has_no_ancestors(tmp_path: Path) -> None:
    """The arrays of a graph are in order, so the file is, too; what a graph cannot answer is told when it is asked."""
    path, learner = tmp_path / "model", PAClassifier(calibrate="platt").fit(X, np.array(["a", "b", "c", "d"])[Y])
    Model(learner, taxonomy=Taxonomy.from_edges(TREE)).save(path)
    graph = Taxonomy.from_edges(TREE, kind="graph").to_arrays()
    rewrite(path, lambda arrays, meta: arrays.update({f"taxonomy/{name}": array for name, array in graph.items()}))
    model = Model.load(path)
    assert model.predict(X).tolist() == learner.predict(X).tolist()
    with pytest.raises(ValueError, match="an undirected graph has no ancestors"):
        model.predict(X, min_confidence=0.5)


@pytest.mark.parametrize("kind", ["indicator", "dense"])
def test_a_model_of_names_that_a_file_says_are_columns_answers_with_lists(kind: str, tmp_path: Path) -> None:
    path = saved(PAClassifier(), tmp_path / "model", [[("a", "b", "c", "d")[c]] for c in Y])
    expected = abound.load(path).predict(X)
    rewrite(path, lambda arrays, meta: meta.update({"kind": kind}))
    assert abound.load(path).predict(X) == expected


def nested(depth: int, inner: Any) -> Any:
    """Learners whose parameters are learners."""
    for _ in range(depth):
        inner = {"learner": "committee", "parameters": {"members": inner}}
    return inner


def test_learners_are_nested_a_few_deep(tmp_path: Path) -> None:
    """scikit-learn wrote the learner that was refused into the message, for hours."""
    path, member = tmp_path / "model", {"learner": "pa", "parameters": {}}
    for depth in (MOST_NESTED - 1, 25):
        saved(PAClassifier(), path)
        inner = nested(depth, [[member]])
        rewrite(path, lambda arrays, meta, inner=inner: meta["parameters"].update({"average": [inner]}))
        begin = time.process_time()
        with pytest.raises(ModelFileError, match=r"not valid \((learners are|members=.*it must be a learner)"):
            abound.load(path)
        assert time.process_time() - begin < 5
    learner = FeatureFocusClassifier()
    for _ in range(MOST_NESTED):
        learner = CommitteeClassifier(learner, n_seeds=1, keep_passes=(1,))
    learner.fit(X, Y).save(path)
    assert abound.load(path).predict(X).tolist() == learner.predict(X).tolist()
    deeper = CommitteeClassifier(learner, n_seeds=1, keep_passes=(1,)).fit(X, Y)
    with pytest.raises(ValueError, match=f"learners are parameters of learners more than {MOST_NESTED} deep"):
        deeper.save(path)


@pytest.mark.parametrize("learner", ESTIMATORS, ids=str)
@pytest.mark.parametrize("value", [2e15, np.nan])
def test_no_number_of_any_model_is_beyond_the_limit(learner: Any, value: float, tmp_path: Path) -> None:
    path = saved(learner, tmp_path / "model")
    arrays = {name: array for name, array in open_arrays(path).items() if array.dtype.kind == "f" and array.size}
    for name, array in arrays.items():
        if name.startswith("decisions/"):
            continue

        def change(arrays: Any, meta: Any, name: str = name, place: int = array.size // 2) -> None:
            arrays[name].reshape(-1)[place] = value

        if value == 2e15 and name.endswith(SUMS):
            continue
        original = path.read_bytes()
        rewrite(path, change)
        problem = rf"model: array '{name}': entry {array.size // 2} is (2e\+15|-inf|nan), but .* up to ±"
        try:
            with pytest.raises(ModelFileError, match=problem):
                abound.load(path).partial_fit(X, Y)
        finally:
            path.write_bytes(original)


def test_sums_may_be_larger_if_there_are_steps(tmp_path: Path) -> None:
    path = saved(PAClassifier(), tmp_path / "model")

    def change(arrays: Any, meta: Any) -> None:
        arrays["state/sum_weights"][0] = 1e16

    abound.load(rewrite(path, change)).partial_fit(X, Y)
    rewrite(path, lambda arrays, meta: arrays["state/steps"].fill(0))
    with pytest.raises(ModelFileError, match="state/steps': 0 steps"):
        abound.load(path).partial_fit(X, Y)


def test_a_model_that_could_not_be_loaded_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"C=1e\+16: a model file holds numbers up to"):
        saved(PAClassifier(C=1e16), tmp_path / "model")
    learner = LinearClassifier().fit(X, Y)
    learner._index = learner._index.merge(learner._index, share=1e30)
    with pytest.raises(ModelFileError, match=r"array 'index/weights': entry 0 is .* Scale the rows"):
        learner.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


LABELS = [
    (
        ["aa", "bb", "cc"],
        "labels/bytes",
        lambda a: np.frombuffer(b"aaaacc", np.uint8),
        "0 and 1 have the same label, 'aa'",
    ),
    ([5, 7, 9], "labels/values", lambda a: np.array([9, 7, 9]), "0 and 2 have the same label, 9"),
    ([1.0, 2.0, 3.0], "labels/values", lambda a: np.array([0.5, 0.0, -0.0]), "1 and 2 have the same label, 0.0"),
    (
        [("a", 1), ("b", 1), ("c", 10)],
        "labels/bytes",
        lambda a: _as("""["a",1]["a",1]["c",10]"""),
        r"label, \('a', 1\)",
    ),
    (
        [("a", 1), ("b", 1), ("c", 10)],
        "labels/bytes",
        lambda a: _as("""["a",1]["b",1][ "b",1]"""),
        "classes 1 and 2 have",
    ),
    ([("a", 10), 100, "c"], "labels/bytes", lambda a: _as("""["a",10]true1.0"""), "classes 1 and 2 have"),
]


def _as(text: str) -> Any:
    return np.frombuffer(text.encode(), np.uint8)


@pytest.mark.parametrize(("labels", "name", "change", "problem"), LABELS)
def test_labels_that_repeat_are_refused_by_name(
    labels: Any, name: str, change: Any, problem: str, tmp_path: Path
) -> None:
    classes = np.empty(3, dtype=object) if isinstance(labels[0], tuple) else np.array(labels)
    classes[:] = labels
    path = saved(FeatureFocusClassifier(), tmp_path / "model", classes[np.arange(60) % 3])
    kept = {label: row for row, label in enumerate(abound.load(path).classes_.tolist())}
    assert set(kept) == set(labels)

    def edit(arrays: Any, meta: Any) -> None:
        arrays[name] = change(arrays[name])
        if name == "labels/bytes" and isinstance(labels[0], tuple):
            text, cuts = arrays[name].tobytes().decode(), [0]
            for label in text.replace("][", "]|[").replace("]t", "]|t").replace("e1", "e|1").split("|"):
                cuts.append(cuts[-1] + len(label))
            arrays["labels/offsets"] = np.array(cuts)

    rewrite(path, edit)
    with pytest.raises(ModelFileError, match=problem):
        abound.load(path)


def test_counts_of_classes_are_counts(tmp_path: Path) -> None:
    for value in (-1, 2**60):
        path = saved(PAClassifier(), tmp_path / "model")
        rewrite(path, lambda arrays, meta, value=value: arrays["class_counts"].fill(value))
        with pytest.raises(ModelFileError, match="class_counts"):
            abound.load(path)


def test_a_file_of_rows_is_no_model(tmp_path: Path) -> None:
    save_arrays(tmp_path / "rows", {"indptr": np.zeros(1, np.int64)}, {})
    with pytest.raises(ModelFileError, match=r"rows: it holds arrays, but no learner\. Give a file that a model was"):
        Model.load(tmp_path / "rows")
