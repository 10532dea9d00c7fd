"""The rows as the peers read them, written once for all.

Every stage has ``X.npz``, ``Y.npz``, ``X_test.npz`` and ``Y_test.npz``: our tf-idf vectors, and the labels, with the
classes of the training rows as columns. The other files are written for those that read them:

- ``train.xmc``: the format of the Extreme Classification Repository, for omikuji;
- ``train.txt``, ``test.txt``: words, for fastText; where there are no texts, the ids of a row's features are its words;
- ``train.oaa.vw``, ``train.plt.vw``, ``test.vw``: for Vowpal Wabbit's reductions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from abound.labels import encode
from abound.measure import repeated_splits
from abound.read.datasets import load_dataset
from label_tree import write_xmc
from peers.protocol import MATRICES
from tasks import Task, austen_parts, vectorised

STAGES = ("validation", "final")
WORDS = re.compile(r"\w+")


class Stage(NamedTuple):
    """Rows to learn from and rows to measure on, as matrices; texts where there are any."""

    X: Any
    Y: Any
    X_test: Any
    Y_test: Any
    texts: list[str] | None = None
    test_texts: list[str] | None = None

    def shortened(self, n_rows: int) -> Stage:
        """Return a random part of it, for a quick look."""
        rng = np.random.default_rng(0)
        train = rng.permutation(self.X.shape[0])[:n_rows]
        test = rng.permutation(self.X_test.shape[0])[: max(1, n_rows // 4)]
        used = np.flatnonzero(np.asarray(self.Y[train].sum(axis=0)).ravel())
        return Stage(
            self.X[train],
            self.Y[train][:, used],
            self.X_test[test],
            self.Y_test[test][:, used],
            [self.texts[i] for i in train] if self.texts else None,
            [self.test_texts[i] for i in test] if self.test_texts else None,
        )


def stage_of(task: Task, texts: list[str] | None = None, test_texts: list[str] | None = None) -> Stage:
    """Turn labels into columns; training rows without a label are left out, test rows are all kept."""
    labels = encode(task.y)
    known = encode(task.y_test).onto(labels.classes)
    X, X_test = (sp.csr_matrix(part, dtype=np.float32) for part in (task.X, task.X_test))
    X.sort_indices()
    X_test.sort_indices()
    Y = indicator(labels.indptr, labels.ids, labels.n_classes)
    kept = np.flatnonzero(np.diff(Y.indptr) > 0)
    if len(kept) < Y.shape[0]:
        X, Y = X[kept], Y[kept]
        texts = [texts[i] for i in kept] if texts else None
    return Stage(X, Y, X_test, indicator(known.indptr, known.ids, labels.n_classes), texts, test_texts)


def indicator(indptr: Any, ids: Any, n_classes: int) -> Any:
    """Return labels as a sparse matrix; ids beyond the known classes are left out."""
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    inside = (ids >= 0) & (ids < n_classes)
    shape = len(indptr) - 1, n_classes
    values = np.ones(int(inside.sum()), dtype=np.float32)
    matrix = sp.csr_matrix((values, (rows[inside], ids[inside])), shape=shape)
    matrix.data[:] = 1
    return matrix


def read_stages(data: Path, name: str) -> dict[str, Stage]:
    """Read a data set twice: with a random tenth of the training rows held out, and with its test rows."""
    if name == "austen":
        parts = austen_parts(data)
        return {"validation": stage_of(parts.validation[0]), "final": stage_of(parts.final)}
    dataset = load_dataset(data / name)
    train: Any = dataset.train
    kept, held = next(repeated_splits(len(train), 1, 0.1, 0))
    pairs = {"validation": (train.take(kept), train.take(held)), "final": (train, dataset.part("test"))}
    return {
        stage: stage_of(vectorised(one, other), words_of(one.texts), words_of(other.texts))
        for stage, (one, other) in pairs.items()
    }


def words_of(texts: Iterable[str]) -> list[str]:
    """Return texts as the vectoriser sees them: words in lower case."""
    return [" ".join(WORDS.findall(text.lower())) for text in texts]


def write_matrices(stage: Stage, folder: Path) -> None:
    """Write the matrices that every adapter reads."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in MATRICES:
        sp.save_npz(folder / f"{name}.npz", getattr(stage, name), compressed=False)


def write_file(stage: Stage, path: Path) -> None:
    """Write one of the other files, unless it is there."""
    if path.exists():
        return
    beside = path.with_name(path.name + ".part")
    if path.name == "train.xmc":
        write_xmc(beside, stage.X, stage.Y)
    else:
        lines = LINES[path.name](stage)
        with open(beside, "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines)
    beside.rename(path)


def fasttext_train(stage: Stage) -> Iterator[str]:
    for labels, text in zip(lists_of(stage.Y), stage.texts or feature_words(stage.X), strict=True):
        yield " ".join(f"__label__{c}" for c in labels) + " " + text


def fasttext_test(stage: Stage) -> Iterable[str]:
    return stage.test_texts or feature_words(stage.X_test)


def vw_oaa(stage: Stage) -> Iterator[str]:
    """One label a row, counted from 1; of several, the first."""
    for labels, pairs in zip(lists_of(stage.Y), pairs_of(stage.X), strict=True):
        yield f"{labels[0] + 1} | {pairs}"


def vw_plt(stage: Stage) -> Iterator[str]:
    for labels, pairs in zip(lists_of(stage.Y), pairs_of(stage.X), strict=True):
        yield f"{','.join(map(str, labels))} | {pairs}"


def vw_test(stage: Stage) -> Iterator[str]:
    for pairs in pairs_of(stage.X_test):
        yield f" | {pairs}"


LINES: dict[str, Callable[[Stage], Iterable[str]]] = {
    "train.txt": fasttext_train,
    "test.txt": fasttext_test,
    "train.oaa.vw": vw_oaa,
    "train.plt.vw": vw_plt,
    "test.vw": vw_test,
}


def lists_of(Y: Any) -> Iterator[list[int]]:
    """The labels of each row."""
    for low, high in zip(Y.indptr[:-1].tolist(), Y.indptr[1:].tolist(), strict=True):
        yield Y.indices[low:high].tolist()


def pairs_of(X: Any) -> Iterator[str]:
    """The features of each row with their values."""
    for low, high in zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True):
        pairs = zip(X.indices[low:high].tolist(), X.data[low:high].tolist(), strict=True)
        yield " ".join(f"{feature}:{value:.6g}" for feature, value in pairs)


def feature_words(X: Any) -> Iterator[str]:
    """The features of each row as words."""
    for low, high in zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True):
        yield " ".join(f"f{feature}" for feature in X.indices[low:high].tolist())
