"""Model files of every learner with arrays and settings changed and all checksums right, and everything done to them.

A case is a number: it says which file is changed, how, and what is asked of it. The file is refused, or what it says
is used in every way there is, where all answers must be sane and all errors clear.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

import naive_store
from abound import (
    EMAClassifier,
    FeatureFocusClassifier,
    FrequencyClassifier,
    HierarchicalBayesClassifier,
    LabelTreeClassifier,
    LinearClassifier,
    MMPClassifier,
    Model,
    OrthogonalTransferClassifier,
    OutputCodeClassifier,
    PAClassifier,
    PathSVMClassifier,
    RecursiveClassifier,
    Taxonomy,
    TextVectorizer,
    TopDownClassifier,
)
from abound.learn.registry import LEARNERS
from abound.measure.thresholds import CUTS
from abound.serve.inspecting import inspect_model
from abound.serve.output import plain
from abound.serve.pruning import prune_model
from abound.store import ModelFileError, open_arrays
from estimators import ESTIMATORS
from fuzzing import Finding
from generate import make_rows

TREE = Taxonomy.from_parents({"a": "r", "b": "r", "c0": "a", "c1": "a", "c2": "a", "c3": "b", "c4": "b", "c5": "r"})
DAG = Taxonomy.from_edges([("r", "a"), ("r", "b"), *((p, f"c{i}") for i in range(6) for p in ("ab" if i < 2 else "b"))])
GRAPH = Taxonomy.from_edges([(f"c{i}", f"c{(i + 1) % 6}") for i in range(6)], kind="graph")
X, NUMBERS = make_rows(0, n=60, n_features=20, n_classes=6)
NAMES = [f"c{c}" for c in NUMBERS]
LISTS = [[f"c{c}"] if i % 3 else [f"c{c}", "c1"] for i, c in enumerate(NUMBERS)]
WORDS = "green tea black coffee hot milk naïve café of the two fox 狐 dog".split()
TEXTS = [" ".join(WORDS[(c * 3 + i % 4) % 14 : (c * 3 + i % 4) % 14 + 2]) for i, c in enumerate(NUMBERS)]

EXPECTED = [
    "without what it needs to learn on",
    "must have a taxonomy|has no taxonomy|was trained with several labels|knows no probabilities",
    "an undirected graph has no ancestors|max_df corresponds to < documents",
    "at least one must remain",
    "is not a class of this model",
    "cannot learn|is not online",
    "would be a dense array of .* the limit is",
    "learning these rows gave weights beyond",
]
"""Errors that are right answers once a file has loaded: what it lacks was left out, or has never been."""


class Known(NamedTuple):
    """A good model file, in memory."""

    name: str
    arrays: dict[str, Any]
    meta: dict[str, Any]
    extra: dict[str, Any]


def learners() -> dict[str, Model]:
    """All models to change, fitted: every learner, with each kind of labels, decisions and taxonomy."""
    models = {
        f"{i} {estimator.learner}": Model(clone(estimator).fit(X, NAMES)) for i, estimator in enumerate(ESTIMATORS)
    }
    for i, cut in enumerate([*CUTS, None, "auto"]):
        for learner in [(FeatureFocusClassifier, MMPClassifier), (EMAClassifier, LinearClassifier)][i % 2]:
            how = (None, "platt", "isotonic")[i % 3]
            models[f"{learner.learner} {cut}"] = Model(learner(cut=cut, calibrate=how).fit(X, LISTS))
    for learner in (FrequencyClassifier(), PAClassifier(), LabelTreeClassifier(), TopDownClassifier(TREE)):
        models[f"{learner.learner} lists"] = Model(learner.set_params(calibrate="platt").fit(X, LISTS))
    trees = [TopDownClassifier, RecursiveClassifier, PathSVMClassifier, HierarchicalBayesClassifier]
    for i, learner in enumerate([*trees, OrthogonalTransferClassifier]):
        models[f"{learner.learner} tree"] = Model(learner(TREE, calibrate=("platt", "isotonic")[i % 2]).fit(X, NAMES))
    models["hr-svm dag"] = Model(RecursiveClassifier(DAG).fit(X, NAMES))
    models["hr-svm graph"] = Model(RecursiveClassifier(GRAPH, loss="logistic").fit(X, NAMES))
    models["top-down dag"] = Model(TopDownClassifier(TREE, node_learner=PAClassifier()).fit(X, NAMES))
    models["ecoc plain"] = Model(OutputCodeClassifier().fit(X, NAMES), None, TREE, {"c1": "one"})
    models["ff numbers"] = Model(FeatureFocusClassifier(calibrate="platt").fit(X, NUMBERS))
    mixed = [("pair", int(c)) if c else "zero" for c in NUMBERS]
    models["pa mixed"] = Model(PAClassifier().fit(X, mixed), None, None, {"zero": "null"})
    for i, vectoriser in enumerate(
        [
            TextVectorizer(),
            TextVectorizer(ngram_range=(1, 2), stop_words=["of"], min_df=2),
            TextVectorizer(analyzer="char_wb", ngram_range=(2, 3)),
            TextVectorizer(hashing=2**10),
            TextVectorizer(token_pattern=r"(?u)\b\w\w+\b", norm="l1", strip_accents="unicode", binary=True),
        ]
    ):
        rows = vectoriser.fit_transform(TEXTS)
        learner = [FeatureFocusClassifier(calibrate="isotonic"), PAClassifier(), LinearClassifier()][i % 3]
        models[f"texts {i}"] = Model(learner.fit(rows, NAMES), vectoriser, TREE if i % 2 else None, {"c0": "zéro"})
        models[f"texts {i}"].partial_fit(TEXTS[:3], NAMES[:3]) if models[f"texts {i}"].is_online else None
    return models


def make_models(folder: Path, models: dict[str, Model] | None = None) -> list[Known]:
    """Do everything to these models, or to all, which compiles all kernels, and keep them as they are saved."""
    known = []
    for name, model in (learners() if models is None else models).items():
        path = folder / "model"
        model.save(path)
        use(path, np.random.default_rng(0), expect_right=True)
        stored = open_arrays(path)
        arrays = {key: array.copy() for key, array in stored.items()}
        known.append(Known(name, arrays, stored.meta, stored.extra))
    return known


def model_case(models: list[Known], folder: Path) -> Callable[[int], str]:
    """The case of a number, for these models."""

    def case(seed: int) -> str:
        rng = np.random.Generator(np.random.Philox(seed))
        path = folder / f"case-{seed}"
        try:
            write(path, *changed(models, rng))
            return use(path, rng)
        finally:
            path.unlink(missing_ok=True)

    return case


def described(models: list[Known], seed: int) -> str:
    """What a case changes, for who looks into it."""
    rng = np.random.Generator(np.random.Philox(seed))
    told: list[str] = []
    changed(models, rng, told)
    return "; ".join(told)


def write(path: Path, arrays: dict[str, Any], meta: Any) -> None:
    """Write a file with right checksums, whatever stands in it."""
    tree: dict[str, Any] = {}
    data = b""
    codes = {np.dtype(dtype): code for code, dtype in naive_store.TYPES.items()}
    for name in sorted(arrays, key=lambda name: -arrays[name].itemsize):
        array = np.ascontiguousarray(arrays[name])
        place = [len(data), len(data) + array.nbytes]
        tree[name] = {"dtype": codes[array.dtype], "shape": list(arrays[name].shape), "data_offsets": place}
        data += array.tobytes()
    tree["__metadata__"] = {"format": "abound", "version": "1", "meta": json.dumps(meta)}
    path.write_bytes(naive_store.join(naive_store.sign(tree, data), data))


# --- changes -------------------------------------------------------------------------------------------------------


def changed(models: list[Known], rng: Any, told: list[str] | None = None) -> tuple[dict[str, Any], Any]:
    """One of the models with one to three changes."""
    told = [] if told is None else told
    one, other = (models[i] for i in rng.integers(0, len(models), 2))
    told.append(one.name)
    arrays, meta = dict(one.arrays), copy.deepcopy(one.meta)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        if rng.random() < 0.3:
            told.append(change_meta(meta, other.meta, rng))
        elif arrays:
            told.append(change_arrays(arrays, other.arrays, rng))
    return arrays, meta


def pick(rng: Any, options: Any) -> Any:
    return options[int(rng.integers(0, len(options)))]


def change_arrays(arrays: dict[str, Any], others: dict[str, Any], rng: Any) -> str:
    """Change one array, or which there are."""
    name = pick(rng, sorted(arrays))
    array = arrays[name]
    what = pick(rng, ["value", "value", "value", "few", *ARRAY_CHANGES])
    if what == "swap":
        alike = [each for each in sorted(arrays) if arrays[each].dtype == array.dtype and each != name] or [name]
        other = pick(rng, alike if rng.random() < 0.8 else sorted(arrays))
        arrays[name], arrays[other] = arrays[other], array
    elif what == "remove":
        for each in list(arrays):
            if each == name or (rng.random() < 0.3 and each.rpartition("/")[0] == name.rpartition("/")[0]):
                del arrays[each]
    elif what == "copy":
        prefix = name.rpartition("/")[0]
        target = pick(rng, sorted(arrays)).rpartition("/")[0]
        for each in [each for each in arrays if each.startswith(prefix)]:
            arrays[target + each[len(prefix) :]] = arrays[each]
    elif what == "together":
        # All arrays of one length, such as those of a section, so that they still fit one another.
        change = pick(rng, ["shorten", "lengthen", "from the second", "shuffle", "reverse"])
        seed = int(rng.integers(0, 2**31))
        section = "" if rng.random() < 0.5 else name.rpartition("/")[0]
        for each in [each for each in arrays if each.startswith(section) and arrays[each].shape[:1] == array.shape[:1]]:
            again = np.random.default_rng(seed)
            arrays[each] = np.ascontiguousarray(ARRAY_CHANGES[change](arrays[each], again))
    elif what == "foreign":
        shared = sorted(arrays.keys() & others.keys()) or [name]
        other = pick(rng, shared)
        arrays[other] = others.get(other, array)
    elif what in ("value", "few"):
        arrays[name] = with_values(array, 1 if what == "value" else int(rng.integers(2, 6)), rng)
    else:
        arrays[name] = np.ascontiguousarray(ARRAY_CHANGES[what](array, rng))
    return f"{what} {name}"


def with_values(array: Any, count: int, rng: Any) -> Any:
    """The array with some entries changed, mostly to what nearly belongs there."""
    array = array.copy()
    flat = array.reshape(-1)
    for _ in range(count if len(flat) else 0):
        place = int(pick(rng, [0, len(flat) - 1, rng.integers(0, len(flat))]))
        if array.dtype.kind == "f":
            values: list[Any] = [0, -0.0, -1, 1, 1e-45, -1e-310, 1e10, 1e15, -1e15, 9.9e14, 1e38, -1e38, 1e300]
            values += [np.nan, np.inf, -np.inf, 0.5, len(flat), -flat[place], flat[place] * 2, flat[place] * 1e10]
        elif array.dtype.kind == "b":
            values = [not flat[place]]
        else:
            limits = np.iinfo(array.dtype)
            near = [int(flat[place]) + 1, int(flat[place]) - 1, -int(flat[place]), 2 * int(flat[place])]
            values = [0, -1, 1, 2, 5, 6, 7, 19, 20, 21, len(flat), len(flat) + 1, *near, *near, int(pick(rng, flat))]
            values += [limits.max, limits.min, limits.max - 1, 2**31 - 1, 2**31, 2**40, 10**6]
            values = [min(max(value, limits.min), limits.max) for value in values]
        with np.errstate(over="ignore"):
            flat[place] = pick(rng, values)
    return array


def _retyped(array: Any, rng: Any) -> Any:
    dtype = np.dtype(pick(rng, sorted(naive_store.TYPES.values())))
    with np.errstate(invalid="ignore", over="ignore"):
        return array.view(dtype) if rng.random() < 0.2 and dtype.itemsize == array.itemsize else array.astype(dtype)


def _reshaped(array: Any, rng: Any) -> Any:
    shapes = [(array.size, 1), (1, array.size), (array.size, 0), (1,) * 8, (), (0,), (2, array.size // 2)]
    shape = pick(rng, shapes)
    return np.resize(array, shape) if array.size else np.zeros(shape, array.dtype)


ARRAY_CHANGES: dict[str, Any] = {
    "swap": None,
    "remove": None,
    "copy": None,
    "foreign": None,
    "together": None,
    "shorten": lambda array, rng: array[: -int(pick(rng, [1, 1, 2, 5]))] if array.ndim else array,
    "from the second": lambda array, rng: array[1:] if array.ndim else array,
    "lengthen": lambda array, rng: np.concatenate([array, array[: int(pick(rng, [1, 1, 2]))]]) if array.ndim else array,
    "grow": lambda array, rng: (
        np.resize(array, (int(pick(rng, [50, 10**4])), *array.shape[1:])) if array.size else array
    ),
    "empty": lambda array, rng: array[:0] if array.ndim else array,
    "shuffle": lambda array, rng: rng.permutation(array) if array.ndim else array,
    "reverse": lambda array, rng: array[::-1] if array.ndim else array,
    "sort": lambda array, rng: np.sort(array, axis=0) if array.ndim else array,
    "repeat": lambda array, rng: np.full_like(array, pick(rng, array.reshape(-1))) if array.size else array,
    "zero": lambda array, rng: np.zeros_like(array),
    "type": _retyped,
    "shape": _reshaped,
    "scale": lambda array, rng: array * array.dtype.type(pick(rng, [2, 3])) if array.dtype.kind != "b" else ~array,
    "add": lambda array, rng: array + array.dtype.type(1) if array.dtype.kind != "b" else ~array,
}


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value in the settings."""
    found = []
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        found.append((*path, key))
        if isinstance(value, dict | list):
            found += places(value, (*path, key))
    return found


def at(tree: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def change_meta(meta: dict[str, Any], other: dict[str, Any], rng: Any) -> str:
    """Change one setting, or which there are."""
    if not meta:
        return "nothing left"
    path = pick(rng, places(meta))
    if path[-1] == "history" and rng.random() < 0.8:
        path = pick(rng, places(meta))
    holder, key = at(meta, path[:-1]), path[-1]
    old = holder[key]
    what = pick(rng, ["value", "value", "value", "near", "near", "remove", "copy", "foreign", "wrap", "new", "learner"])
    value: Any = None
    if what == "value":
        value = copy.deepcopy(pick(rng, VALUES))
    elif what == "near" and isinstance(old, int | float) and not isinstance(old, bool):
        value = pick(rng, [old + 1, old - 1, -old, old * 2, old / 2, old * 10**9, old * 1e300])
    elif what == "near":
        value = f"{old}x" if isinstance(old, str) else not old if isinstance(old, bool) else [old]
    elif what == "copy":
        value = copy.deepcopy(at(meta, pick(rng, places(meta))))
    elif what == "foreign":
        value = copy.deepcopy(at(other, pick(rng, places(other))))
    elif what == "wrap":
        value = pick(rng, [[old], [old, old], {"pairs": [[old, old]]}, {"a": old}, {"pairs": [[[old], 1]]}, deep(rng)])
    elif what == "learner":
        name = pick(rng, sorted(LEARNERS))
        named = [each for each in places(meta) if each[-1] == "learner"]
        path = pick(rng, named) if named else path
        holder, key, value = at(meta, path[:-1]), path[-1], name
    if what == "remove":
        holder.pop(key)
    elif what == "new" and isinstance(holder, dict):
        key, value = pick(rng, NEW), copy.deepcopy(pick(rng, VALUES))
        holder[key] = value
    else:
        holder[key] = value
    return f"{what} meta {'/'.join(map(str, (*path[:-1], key)))} = {str(value)[:60]}"


def deep(rng: Any) -> Any:
    """Lists in lists, or learners in learners."""
    value: Any = {"learner": "committee", "parameters": {}}
    for _ in range(int(pick(rng, [5, 20, 25, 28, 31, 60, 70]))):
        value = [value] if rng.random() < 0.5 else {"learner": "committee", "parameters": {"members": value}}
    return value


NEW = ["checkpoint", "cluster", "n_jobs", "memory", "taxonomy", "nobody", "pairs", "learner", "parameters", "passes"]
VALUES: list[Any] = [None, True, False, 0, -1, 1, 2, 3, 5, 6, 7, 20, 21, 40, 10**6, 2**31 - 1, 2**31, 2**40, 2**63]
VALUES += [2**64, 10**30, 10**400, 0.0, -0.5, 0.5, 1.5, 1e15, -1e15, 1e38, 1e300, 1e-300, "", "1", "auto", "both"]
VALUES += ["nobody", "\x00"]
VALUES += ["(?u)(?:\\w+)+\\d", "word", "char", "hamming", "split", "indicator", "dense", "lists", "single", "é" * 10**4]
VALUES += [
    [],
    [1],
    [1, 2],
    [2, 1],
    [1, 10**9],
    [0.5, "a"],
    [[1], [2]],
    {},
    {"a": 1},
    {"pairs": []},
    "float64",
    "object",
]
VALUES += [{"pairs": [[1, 2]]}, {"pairs": [[1]]}, {"pairs": 1}, {"learner": "pa"}, {"learner": "pa", "parameters": {}}]
VALUES += [{"learner": "edge", "parameters": {}}, {"learner": "sadyc", "parameters": {"n_classifiers": 10**9}}]


# --- what is done to each -------------------------------------------------------------------------------------------


def use(path: Path, rng: Any, expect_right: bool = False) -> str:
    """Load a file and do everything to it: refused, an expected error, or all right."""
    try:
        model = Model.load(path)
    except ModelFileError as error:
        if expect_right or not str(error):
            raise
        return "refused"
    clear = 0
    for step in (ask, inspect, prune, learn, reclass, save):
        try:
            model = step(model, rng, path) or model
        except ModelFileError as error:
            # What is needed to learn on is read, and checked, when it is first needed.
            if expect_right or not str(error):
                raise
            clear += 1
            model = Model.load(path)
        except (ValueError, MemoryError) as error:
            is_clear = any(re.search(text, str(error)) for text in EXPECTED)
            if type(error) not in (ValueError, MemoryError) or not is_clear:
                raise
            clear += 1
    return "error" if clear else "used"


def inputs(model: Model, n: int, wider: bool = False) -> Any:
    """What a model takes."""
    if model.vectoriser is not None:
        return TEXTS[:n] if not wider else [f"{text} novelty" for text in TEXTS[:n]]
    width = model.estimator.n_features_in_
    entries = X[:n].tocoo()
    here = entries.col < width
    shape = (n, width + (3 if wider and width < 10**6 else 0))
    rows, columns = entries.row[here].astype(np.int32), entries.col[here].astype(np.int32)
    return sp.csr_array((entries.data[here].astype(np.float32), (rows, columns)), shape=shape)


def ask(model: Model, rng: Any, path: Path) -> None:
    """Rank, score and explain."""
    estimator = model.estimator
    given = inputs(model, 6)
    rows = model.rows(given)
    classes = estimator.classes_.tolist()
    answer = sane(model.predict_topk(given, 3), classes)
    sane(model.predict_topk(given, 10**6), classes)
    sane(model.predict_topk(given, 2, include=classes[:2]), classes[:2])
    sane(model.predict_topk(given, 2, exclude=classes[:1]), classes[1:])
    model.predict(given)
    if len(classes) < 10**4:
        finite("decision_function", estimator.decision_function(rows))
    for label in (answer.labels[0, 0], classes[-1]):
        if label is not None and _is_one_of(label, classes):
            finite(
                "explain",
                [value for _, value in model.explain(given[0] if isinstance(given, list) else given[[0]], label)],
            )
    kind = estimator._kind
    estimator.score(rows, [classes[0]] * 6 if kind == "single" else [[classes[0]]] * 6)
    if estimator.is_calibrated:
        probabilities = model.predict_topk(given, 3, probabilities=True).scores
        if not ((probabilities >= 0) & (probabilities <= 1)).all():
            raise Finding("probabilities are not from 0 to 1")
        if estimator.calibrate is not None:
            finite("predict_proba", estimator.predict_proba(rows))
        if model.taxonomy is not None or estimator._own_taxonomy() is not None:
            model.predict(given, min_confidence=0.5)
    if model.titles is not None:
        dict(model.titles)
    if model.vectoriser is not None and model.vectoriser.hashing is None:
        model.vectoriser.get_feature_names_out()
    str(estimator.n_edges_)


def inspect(model: Model, rng: Any, path: Path) -> None:
    """Tell what is in the file."""
    json.dumps(plain(inspect_model(path)), allow_nan=False)


def prune(model: Model, rng: Any, path: Path) -> None:
    """Leave light edges out of a copy."""
    limits = {"max_degree": int(rng.integers(1, 5)), "min_weight": 0.1, "max_edges": int(rng.integers(1, 40))}
    smaller = prune_model(model, **limits)
    sane(smaller.predict_topk(inputs(model, 3), 3), model.estimator.classes_.tolist())


def learn(model: Model, rng: Any, path: Path) -> None:
    """Learn what is known, and then what is new."""
    if not hasattr(model.estimator, "partial_fit"):
        return
    classes = model.estimator.classes_.tolist()
    known = [pick(rng, classes) for _ in range(4)]
    for wider, names in ((False, known), (True, [*known[:3], "brand new"])):
        labels = names if model.estimator._kind == "single" else [[name] for name in names]
        model.partial_fit(inputs(model, 4, wider), labels)
    sane(model.predict_topk(inputs(model, 6), 3), model.estimator.classes_.tolist())


def reclass(model: Model, rng: Any, path: Path) -> None:
    """Merge, rename and drop classes."""
    estimator = model.estimator
    classes = estimator.classes_.tolist()
    if len(classes) > 3:
        estimator.merge_classes(classes[1:3], into="both")
    estimator.rename_classes({estimator.classes_.tolist()[0]: "renamed"})
    sane(model.predict_topk(inputs(model, 6), 3), estimator.classes_.tolist())
    estimator.drop_classes(["renamed"])
    sane(model.predict_topk(inputs(model, 6), 3), estimator.classes_.tolist())


def save(model: Model, rng: Any, path: Path) -> None:
    """Save and read back the same."""
    again = path.with_name(f"{path.name}-again")
    try:
        model.save(again)
        read = Model.load(again)
    finally:
        again.unlink(missing_ok=True)
    given = inputs(model, 6)
    first, second = model.predict_topk(given, 3), read.predict_topk(given, 3)
    if not np.allclose(first.scores, second.scores, rtol=1e-3, atol=1e-5):
        raise Finding("what was saved and read back ranks otherwise")


def sane(answer: Any, classes: list[Any]) -> Any:
    """Known labels, and scores that are numbers and never rise; -inf stands beside None."""
    scores = answer.scores
    if np.isnan(scores).any() or np.isposinf(scores).any():
        raise Finding("scores are not finite")
    if (scores[:, 1:] > scores[:, :-1]).any():
        raise Finding("scores rise")
    for label, score in zip(answer.labels.ravel().tolist(), scores.ravel().tolist(), strict=True):
        if (label is None) != (score == -np.inf):
            raise Finding("-inf without None, or None without -inf")
        if label is not None and not _is_one_of(label, classes):
            raise Finding("a label that is none of the classes")
    return answer


def _is_one_of(label: Any, classes: list[Any]) -> bool:
    return any(label == each for each in classes)


def finite(name: str, numbers: Any) -> None:
    if not (np.isfinite(numbers) | np.isneginf(numbers)).all():
        raise Finding(f"{name} is not finite")
