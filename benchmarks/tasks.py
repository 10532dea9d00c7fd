"""The data sets of the benchmarks as sparse rows, and the measures of a model on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from abound import ClassIndex
from abound.measure import EVALUATION_DEPTH, Summary, evaluate_labels, repeated_splits
from abound.rank.topk import rank_topk
from abound.read.datasets import load_dataset
from abound.validation import as_rows
from abound.vectorise.text import TextVectorizer
from abound.vectorise.windows import Sentences, read_sentences, word_windows


class Task(NamedTuple):
    """Rows to learn from and rows to measure on."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any

    def shortened(self, n_rows: int) -> Task:
        """Return a random part of it, for a quick look."""
        rng = np.random.default_rng(0)
        train = rng.permutation(self.X.shape[0])[:n_rows]
        test = rng.permutation(self.X_test.shape[0])[: max(1, n_rows // 4)]
        return Task(self.X[train], self.y[train], self.X_test[test], self.y_test[test])


class Parts(NamedTuple):
    """A data set twice: for choosing, with rows that are held out; and for the final measurement.

    Features are counted, and idf taken, on the rows that are learned from alone: words that occur twice in all rows,
    but once in those, would else make the held-out rows look harder than the test rows are.
    """

    validation: list[Task]
    final: Task

    def shortened(self, n_rows: int) -> Parts:
        """Return a random part of it, for a quick look."""
        return Parts([task.shortened(n_rows) for task in self.validation[:1]], self.final.shortened(n_rows))


def text_task(data: Path, name: str) -> Task:
    """Read a set of labelled texts, in its official parts, as unit vectors of tf-idf weights."""
    dataset = load_dataset(data / name)
    return vectorised(dataset.train, dataset.part("test"))


def text_parts(data: Path, name: str, n_seeds: int) -> Parts:
    """Read a set of labelled texts; for each seed another random tenth of the training rows is held out."""
    dataset = load_dataset(data / name)
    train: Any = dataset.train
    splits = [next(repeated_splits(len(train), 1, 0.1, seed)) for seed in range(n_seeds)]
    validation = [vectorised(train.take(kept), train.take(held)) for kept, held in splits]
    return Parts(validation, vectorised(train, dataset.part("test")))


def official_parts(data: Path, name: str) -> Parts:
    """Read a set of labelled texts; its own validation rows serve to choose, with the model of the final measurement.

    Of a set that has none a random tenth of the training rows is held out.
    """
    dataset = load_dataset(data / name)
    if dataset.valid is None:
        return text_parts(data, name, 1)
    valid: Any = dataset.valid
    vectorizer, final = vectorised_with(dataset.train, dataset.part("test"))
    return Parts([final._replace(X_test=vectorizer.transform(valid.text_bytes), y_test=valid.labels.to_y())], final)


def vectorised(train: Any, test: Any) -> Task:
    """Turn documents into unit vectors of tf-idf weights."""
    return vectorised_with(train, test)[1]


def vectorised_with(train: Any, test: Any) -> tuple[TextVectorizer, Task]:
    """Turn documents into unit vectors of tf-idf weights, and return what did."""
    vectorizer = TextVectorizer(token_pattern=r"\w+", min_df=2)
    X = vectorizer.fit_transform(train.text_bytes)
    return vectorizer, Task(X, train.labels.to_y(), vectorizer.transform(test.text_bytes), test.labels.to_y())


def austen_sentences(data: Path) -> Sentences:
    """Read the novels."""
    return read_sentences(data / "austen" / "novels.txt.gz")


def austen_task(sentences: Sentences, seed: int) -> Task:
    """Hold out a random tenth of the words; features are counted on the others."""
    train, test = next(repeated_splits(len(sentences.words), 1, 0.1, seed))
    return windowed(sentences, train, test)


def austen_parts(data: Path) -> Parts:
    """Hold out a random tenth of the words, and for choosing a random tenth of the others."""
    sentences = austen_sentences(data)
    train, test = next(repeated_splits(len(sentences.words), 1, 0.1, 0))
    kept, held = next(repeated_splits(len(train), 1, 0.1, 0))
    return Parts([windowed(sentences, train[kept], train[held])], windowed(sentences, train, test))


def windowed(sentences: Sentences, train: Any, test: Any) -> Task:
    """Describe words by their neighbours."""
    windows = word_windows(sentences, train_rows=train)
    return Task(windows.X[train], windows.y[train], windows.X[test], windows.y[test])


def learn_and_validate(learner: Any, task: Task, **options: Any) -> Any:
    """Learn a task's rows; the history has R1 on its test rows after each pass."""
    n_train = task.X.shape[0]

    class Validating(learner):  # type: ignore[misc]
        """The learner, with the rows to hold out given instead of drawn."""

        def _hold_out(self, n_rows: int, generator: Any) -> tuple[Any, Any]:
            return np.arange(n_train), np.arange(n_train, n_rows)

    model = Validating(**options)
    return model.fit(sp.vstack((task.X, task.X_test), format="csr"), np.concatenate((task.y, task.y_test)))


def measure(model: Any, X: Any, y: Any) -> dict[str, float]:
    """Return R1, R5 and HR on some rows, |W|, and d, the edges touched per feature of a row."""
    top = model.predict_topk(X, k=min(EVALUATION_DEPTH, len(model.classes_))).labels
    measures = evaluate_labels(y, top, classes=model.classes_, ks=(1, 5))
    d = model.index_.edges_touched(as_rows(X))
    return {"R1": measures["R1"], "R5": measures["R5"], "HR": measures["HR"], "W": model.n_edges_, "d": d}


def centroid_accuracy(task: Task) -> float:
    """Return R1 of the nearest centroid (cosine), the simplest thing to do with unit vectors."""
    classes, ids = np.unique(task.y, return_inverse=True)
    shape = (len(classes), len(ids))
    members = sp.csr_array((np.ones(len(ids), dtype=np.float32), (ids, np.arange(len(ids)))), shape=shape)
    index = ClassIndex.from_matrix(normalize(members @ task.X).T)
    best = rank_topk(index, as_rows(task.X_test), 1).ids[:, 0]
    return float(np.mean((best >= 0) & (classes[best] == task.y_test)))


def warm_up(model: Any, task: Task) -> None:
    """Compile the kernels of a learner, or load them from the cache, on a few rows."""
    few = task.shortened(200)
    model.fit(few.X, few.y).predict_topk(few.X_test, k=5)


def spread(values: list[float], places: int = 3) -> str:
    """Write mean ± standard deviation."""
    mean, sd = float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return str(Summary(mean, sd)) if places == 3 else f"{mean:.{places}f} ± {sd:.{places}f}"
