"""Which rows are for training, for choosing settings and for the test: the same for every learner."""

from __future__ import annotations

import hashlib
import json
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abound.labels import Labels, encode
from abound.measure import repeated_splits
from abound.read.datasets import Dataset
from abound.read.documents import Documents
from abound.read.formats import Vectors, as_csr
from abound.read.textbytes import TextBytes

Data = Documents | Vectors

TEST_SHARE = 0.1
"""Rows for the test where the data has no test part of its own."""

CHOOSE_SHARE, MOST_TO_CHOOSE = 0.1, 20_000
"""Training rows on which settings are chosen, where the data has no validation part."""

FEWEST_ROWS = 20


class Halves(NamedTuple):
    """Rows to learn from, and rows to measure on."""

    fit: Data
    held: Data


def final_split(dataset: Dataset, split: int, n_splits: int, seed: int) -> Halves:
    """Return the training and test rows of a split.

    A single split is the data's own, if it has a test part. Of several, each is drawn at random from all rows. Rows of
    a group, if the data has groups, stay on one side of what is drawn.

    Parameters
    ----------
    dataset : Dataset
        The data.
    split : int
        Which split, from 0.
    n_splits : int
        How many there are.
    seed : int
        Of the draw.

    Returns
    -------
    Halves
        To train on, to test on.
    """
    if n_splits == 1 and dataset.test is not None:
        return Halves(dataset.train, dataset.test)
    parts = [part for part in (dataset.train, dataset.valid, dataset.test) if part is not None]
    share = TEST_SHARE if dataset.test is None else len(dataset.test) / sum(len(part) for part in parts)
    return _drawn(joined(parts), share, seed, split)


def choosing_split(dataset: Dataset, n_splits: int, seed: int) -> Halves:
    """Return the rows that settings are tried on and measured on; the test rows of the first split are not in them.

    Parameters
    ----------
    dataset : Dataset
        The data.
    n_splits : int
        How many splits there are for the test.
    seed : int
        Of the draw.

    Returns
    -------
    Halves
        To train on, to choose by.
    """
    if n_splits == 1 and dataset.valid is not None:
        return Halves(dataset.train, dataset.valid)
    train = final_split(dataset, 0, n_splits, seed).fit
    return _drawn(train, min(CHOOSE_SHARE, MOST_TO_CHOOSE / len(train)), seed + 1, 0)


def joined(parts: list[Data]) -> Data:
    """Put parts of a data set one after the other.

    Parameters
    ----------
    parts : list of Documents or Vectors
        All of one kind.

    Returns
    -------
    Documents or Vectors
        All rows.
    """
    if len(parts) == 1:
        return parts[0]
    labels = _joined_labels([part.labels for part in parts])
    groups = _joined_groups(parts)
    texts = [part.text_bytes for part in parts if isinstance(part, Documents)]
    if texts:
        return Documents(TextBytes.join(texts), labels, groups)
    matrices = [part.X for part in parts if isinstance(part, Vectors)]
    ends = np.cumsum([0, *(matrix.nnz for matrix in matrices)])
    indptr = [matrix.indptr[1:] + end for matrix, end in zip(matrices, ends[:-1], strict=True)]
    X = as_csr(
        np.concatenate([np.zeros(1, np.int64), *indptr]).astype(np.int64),
        np.concatenate([matrix.indices for matrix in matrices]).astype(np.int32),
        np.concatenate([matrix.data for matrix in matrices]).astype(np.float32),
        max(matrix.shape[1] for matrix in matrices),
    )
    return Vectors(X, labels, getattr(parts[0], "zero_based", False), groups=groups)


def compact(labels: Labels) -> Labels:
    """Leave out classes without rows.

    Parameters
    ----------
    labels : Labels
        Of some of the rows that the classes were read from.

    Returns
    -------
    Labels
        The same labels, numbered anew in the same order.
    """
    used = np.flatnonzero(labels.counts)
    place = np.zeros(labels.n_classes, np.int32)
    place[used] = np.arange(len(used))
    return Labels(labels.indptr, place[labels.ids], labels.classes[used], labels.kind)


def fingerprint(dataset: Dataset) -> str:
    """Return a digest of all that a learner can see of the data.

    Parameters
    ----------
    dataset : Dataset
        The data.

    Returns
    -------
    str
        Hexadecimal digits.
    """
    digest = hashlib.sha256()
    for name in ("train", "valid", "test"):
        part: Data | None = getattr(dataset, name)
        digest.update(f"{name} {-1 if part is None else len(part)};".encode())
        if part is None:
            continue
        arrays: tuple[npt.NDArray[Any], ...]
        if isinstance(part, Documents):
            arrays = part.text_bytes.buffer, part.text_bytes.begins, part.text_bytes.ends
        else:
            arrays = part.X.indptr, part.X.indices, part.X.data
            digest.update(f"{part.X.shape[1]} features;".encode())
        for array in (*arrays, part.labels.indptr, part.labels.ids):
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
        digest.update(json.dumps(part.labels.classes.tolist(), default=str).encode())
        if part.groups is not None:
            digest.update(json.dumps(part.groups.tolist(), default=str).encode())
    if dataset.taxonomy is not None:
        for name, array in dataset.taxonomy.to_arrays().items():
            digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def _drawn(data: Data, share: float, seed: int, split: int) -> Halves:
    if len(data) < FEWEST_ROWS:
        raise ValueError(f"{len(data)} rows are too few to compare learners on: at least {FEWEST_ROWS} are needed")
    draws = repeated_splits(len(data), n_splits=split + 1, test_fraction=share, random_state=seed, groups=data.groups)
    fit, held = next(islice(draws, split, None))
    return Halves(data.take(fit), data.take(held))


def _joined_groups(parts: list[Data]) -> npt.NDArray[Any] | None:
    """The groups of all rows, None for those of a part that has none."""
    if all(part.groups is None for part in parts):
        return None
    none = [np.full(len(part), None, dtype=object) if part.groups is None else part.groups for part in parts]
    return np.concatenate([groups.astype(object) for groups in none])


def _joined_labels(parts: list[Labels]) -> Labels:
    classes = parts[0].classes
    for part in parts[1:]:
        classes = encode(part, known=classes).classes
    numbered = [part.onto(classes) for part in parts]
    lengths = np.concatenate([np.diff(part.indptr) for part in numbered])
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    kind = parts[0].kind if len({part.kind for part in parts}) == 1 else "lists"
    return Labels(indptr, np.concatenate([part.ids for part in numbered]), classes, kind)
