"""20 newsgroups as the papers have it: random splits of all rows, 80 to learn from and 20 to test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import beside  # noqa: F401 - names the folder of the benchmarks
import numpy as np

from abound import TextVectorizer
from abound.measure import recall_at_k, repeated_splits
from abound.read.datasets import load_dataset
from abound.read.documents import Documents
from tasks import Task


def random_splits(data: Path, n_splits: int, quick: bool, use_idf: bool = True) -> Iterator[Task]:
    """Both official parts together, split at random; features are counted on the training rows."""
    dataset = load_dataset(data / "news20")
    parts: list[Any] = [dataset.train, dataset.part("test")]
    documents: Any = Documents.of(
        [text for part in parts for text in part.texts], [label for part in parts for label in part.labels.to_y()]
    )
    for train, test in repeated_splits(len(documents), 1 if quick else n_splits, 0.2, 0):
        if quick:
            train, test = (np.random.default_rng(0).permutation(rows)[:1000] for rows in (train, test))
        learned, tested = documents.take(train), documents.take(test)
        vectorizer = TextVectorizer(token_pattern=r"\w+", min_df=2, use_idf=use_idf)
        X = vectorizer.fit_transform(learned.text_bytes)
        yield Task(X, learned.labels.to_y(), vectorizer.transform(tested.text_bytes), tested.labels.to_y())


def recalls(model: Any, task: Task) -> dict[str, float]:
    """Learn, and return R1 and R5 on the test rows."""
    labels = model.fit(task.X, task.y).predict_topk(task.X_test, k=5).labels
    return {"R1": recall_at_k(task.y_test, labels, 1), "R5": recall_at_k(task.y_test, labels, labels.shape[1])}
