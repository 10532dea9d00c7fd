"""What the learners of a tree have in common: their taxonomy, their examples, and the tree in a model file."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from abound import validation
from abound.index.class_index import ClassIndex
from abound.labels import Labels
from abound.learn.base import RankingClassifier
from abound.learn.class_tree import ClassTree, check_taxonomy, class_tree, class_tree_from
from abound.learn.fitted_values import history_from
from abound.learn.index_parts import prefixed
from abound.learn.row_views import add_constant, check_bias, own_bias
from abound.read.taxonomy import Taxonomy
from abound.store import Section
from abound.validation import (
    Float32Array,
    Float64Array,
    IdArray,
    IntArray,
    Rows,
    check_labels,
    check_rows,
    check_sample_weight,
)


class Examples(NamedTuple):
    """Rows, each once for every label that it has; equal rows with equal labels are one (see `gather_examples`)."""

    rows: Rows
    labels: Labels
    weights: Float32Array
    """What each row counts."""
    row: IntArray
    """The row of each example."""
    own: IdArray
    """Its class."""
    counts: Float64Array
    """What it counts."""

    @property
    def shares(self) -> Float64Array:
        """What each example counts, of sum 1."""
        shares: Float64Array = self.counts / self.counts.sum()
        return shares


class TreeLearner(RankingClassifier):
    """Base of the learners that a taxonomy shapes and that end as one index.

    Attributes
    ----------
    tree_ : ClassTree
        The taxonomy, resolved against the classes.
    history_ : list of dict
        What was measured while it learned.
    """

    ranks_every_class: ClassVar[bool] = True

    taxonomy: Any
    bias: float | str
    tree_: ClassTree
    history_: list[dict[str, float]]
    _index: ClassIndex
    _constant: float
    """The value of the last feature of the examples, which no other rows have; 0 if there is none."""

    @property
    def index_(self) -> ClassIndex:
        """The index that ranks."""
        return self._index

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_taxonomy(self.taxonomy)
        check_bias(self.bias)

    def _gather(self, X: Any, y: Any, sample_weight: Any) -> Examples:
        """The gate of ``fit``: check everything, find the classes in the taxonomy, and list the examples."""
        self._check_parameters()
        rows = check_rows(self, X, reset=True)
        labels = check_labels(y, rows.n_rows)
        weights = check_sample_weight(sample_weight, rows.n_rows)
        self._constant = own_bias(self.bias, rows, weights)
        rows = add_constant(rows, self._constant) if self._constant else rows
        self._remember(labels)
        self.tree_ = class_tree(self.taxonomy, labels.classes)
        return gather_examples(rows, labels, weights)

    def _own_taxonomy(self) -> Taxonomy | None:
        return self.tree_.taxonomy

    def _remap(self, new_ids: IdArray, n_classes: int) -> None:
        self.tree_ = self.tree_.remap_classes(new_ids, n_classes)
        self._index = self._index.remap_classes(new_ids, n_classes)

    def _model_arrays(self) -> dict[str, npt.NDArray[Any]]:
        return super()._model_arrays() | prefixed("tree/", self.tree_.to_arrays())

    def _restore_tree(self, stored: Section) -> None:
        """Take over a model file's tree; a taxonomy that was given as an object is there and not in the settings."""
        self.tree_ = class_tree_from(stored.section("tree/"), len(self.class_counts_))
        if self.taxonomy is None:
            self.taxonomy = self.tree_.taxonomy

    def _restore_model(self, stored: Section, n_edges: int, fitted: dict[str, Any]) -> None:
        self._restore_tree(stored)
        super()._restore_model(stored, n_edges, fitted)

    def _fitted_values(self) -> dict[str, Any]:
        return {"history": self.history_}

    def _restore(self, index: ClassIndex, state: Section, n_edges: int, fitted: dict[str, Any]) -> None:
        self._index = index
        self.history_ = history_from(state, fitted)


def gather_examples(rows: Rows, labels: Labels, weights: Float32Array) -> Examples:
    """List each row once for every label that it has, but rows of weight 0.

    Equal rows with equal labels become one, and the order of the examples does not depend on that of the rows. So a
    model is the same, bit for bit, whether a row has weight 2 or is there twice.

    Parameters
    ----------
    rows : Rows
        The rows.
    labels : Labels
        Their labels.
    weights : float32 array
        What they count.

    Returns
    -------
    examples : Examples
        At least one.
    """
    seen: dict[tuple[bytes, ...], tuple[int, float]] = {}
    for row in np.flatnonzero(weights).tolist():
        span = slice(rows.indptr[row], rows.indptr[row + 1])
        known = np.sort(labels.ids[labels.indptr[row] : labels.indptr[row + 1]])
        key = known.tobytes(), rows.indices[span].tobytes(), rows.data[span].tobytes()
        first, count = seen.get(key, (row, 0.0))
        seen[key] = first, count + float(weights[row])
    distinct = [(np.frombuffer(key[0], np.int32), *seen[key]) for key in sorted(seen) if key[0]]
    if not distinct:
        raise ValueError("no row has both a label and a weight above 0: there is nothing to learn")
    n_labels = [len(known) for known, _, _ in distinct]
    row_of = np.repeat(np.array([row for _, row, _ in distinct]), n_labels)
    counts = np.repeat(np.array([count for _, _, count in distinct]), n_labels)
    return Examples(rows, labels, weights, row_of, np.concatenate([known for known, _, _ in distinct]), counts)


def check_table(what: str, n_rows: int, n_columns: int) -> None:
    """Refuse a dense table of numbers that would not fit: these learners are meant for small data.

    Parameters
    ----------
    what : str
        What its rows and columns are, for the message.
    n_rows, n_columns : int
        Its shape.
    """
    size = 8 * n_rows * n_columns
    if size > validation.DENSE_LIMIT:
        raise MemoryError(
            f"{what} ({n_rows} × {n_columns}) would be a dense table of {size / 2**30:.1f} GiB (the limit is "
            f"{validation.DENSE_LIMIT / 2**30:.0f} GiB): this learner is for small data; see LinearClassifier"
        )
