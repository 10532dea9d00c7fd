"""`ClassIndex`: a linear many-class model as lists of (class, weight) by feature, heaviest first.

Every linear learner ends as one, so that ranking, pruning, saving, explaining and serving are written once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from abound.index import _index_kernels as kernels
from abound.validation import Float32Array, IdArray, IntArray, Rows, check_number, frozen

SORT_CHUNK = 2_000_000
"""Edges that one kernel call sorts: a fraction of a second."""


@dataclass(frozen=True, eq=False, slots=True)
class ClassIndex:
    """Feature → (class, weight) lists.

    Parameters
    ----------
    indptr : int64 array of shape (n_features + 1,)
        Feature ``f`` owns ``classes[indptr[f]:indptr[f + 1]]`` and the same part of ``weights``.
    classes : int32 array
        Class ids.
    weights : float32 array
        Their weights; within a list the heaviest |weight| first, ties by class id.
    n_classes : int
        Number of classes, with or without edges.
    offset : float32 array of shape (n_features,), optional
        What was subtracted from a feature's weights to every class; ``x · offset`` gives the scores back.
    bias : float32 array of shape (n_classes,), optional
        What every row adds to the score of a class. It is no feature: it is never pruned, and a row does not touch all
        classes because of it.

    Examples
    --------
    >>> import numpy as np
    >>> index = ClassIndex.from_edges([0, 0, 2], [1, 0, 1], [0.2, 0.8, 1.0], n_features=3, n_classes=2)
    >>> index.classes.tolist(), index.degrees.tolist()
    ([0, 1, 1], [2, 0, 1])
    >>> index.prune(max_degree=1).n_edges
    2
    """

    indptr: IntArray
    classes: IdArray
    weights: Float32Array
    n_classes: int
    offset: Float32Array | None = None
    bias: Float32Array | None = None
    _by_bias: IdArray | None = field(default=None, init=False, repr=False)

    @classmethod
    def from_edges(
        cls,
        features: npt.ArrayLike,
        classes: npt.ArrayLike,
        weights: npt.ArrayLike,
        *,
        n_features: int,
        n_classes: int,
    ) -> ClassIndex:
        """Build an index from edges in any order; an edge listed twice has the sum of its weights.

        Parameters
        ----------
        features, classes, weights : array-like of equal length
            The edges.
        n_features, n_classes : int
            The shape.

        Returns
        -------
        ClassIndex
            Without edges of weight 0.
        """
        pair = (np.asarray(features, dtype=np.int32), np.asarray(classes, dtype=np.int32))
        data = np.asarray(weights, dtype=np.float32)
        return cls.from_matrix(sp.coo_array((data, pair), shape=(n_features, n_classes)))

    @classmethod
    def from_matrix(cls, matrix: Any) -> ClassIndex:
        """Build an index from a matrix of features × classes.

        Parameters
        ----------
        matrix : sparse matrix or array
            The weights.

        Returns
        -------
        ClassIndex
            Without edges of weight 0.
        """
        csr = sp.csr_array(matrix, copy=True)
        csr.sum_duplicates()
        csr.eliminate_zeros()
        return cls.from_lists(csr.indptr, csr.indices, csr.data, n_classes=csr.shape[1])

    @classmethod
    def from_lists(
        cls,
        indptr: npt.ArrayLike,
        classes: npt.ArrayLike,
        weights: npt.ArrayLike,
        *,
        n_classes: int,
        offset: Float32Array | None = None,
    ) -> ClassIndex:
        """Build an index from lists by feature, in any order within a list, no class twice.

        Parameters
        ----------
        indptr, classes, weights : array-like
            The lists; copied.
        n_classes : int
            Number of classes.
        offset : float32 array, optional
            See the class.

        Returns
        -------
        ClassIndex
            With each list in order.
        """
        bounds = np.array(indptr, dtype=np.int64)
        ids = np.array(classes, dtype=np.int32)
        values = np.array(weights, dtype=np.float32)
        n_chunks = max(1, -(-len(ids) // SORT_CHUNK))
        cuts = np.searchsorted(bounds, np.linspace(0, len(ids), n_chunks + 1)[1:-1])
        edges = [0, *cuts.tolist(), len(bounds) - 1]
        for begin, end in pairwise(edges):
            kernels.sort_lists(bounds, ids, values, begin, end)
        return cls(frozen(bounds, np.int64), frozen(ids, np.int32), frozen(values, np.float32), n_classes, offset)

    @property
    def n_features(self) -> int:
        """Number of features, with or without edges."""
        return len(self.indptr) - 1

    @property
    def n_edges(self) -> int:
        """Number of edges, |W|."""
        return len(self.classes)

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        arrays = self.indptr, self.classes, self.weights, self.offset, self.bias
        return sum(array.nbytes for array in arrays if array is not None)

    @property
    def by_bias(self) -> IdArray:
        """Classes by their bias, the highest first; sorted when somebody first asks. Empty without a bias."""
        if self._by_bias is None:
            keys = np.empty(0) if self.bias is None else -self.bias
            object.__setattr__(self, "_by_bias", frozen(np.argsort(keys, kind="stable"), np.int32))
        assert self._by_bias is not None
        return self._by_bias

    @property
    def degrees(self) -> IntArray:
        """Out-degree of each feature: how many classes it votes for."""
        return np.diff(self.indptr)

    @property
    def indegrees(self) -> IntArray:
        """In-degree of each class: how many features vote for it."""
        return np.bincount(self.classes, minlength=self.n_classes).astype(np.int64)

    def row_sums(self) -> npt.NDArray[np.float64]:
        """Return the sum of each feature's weights; what is missing to 1 has leaked (index learners)."""
        sums = np.concatenate(([0.0], np.cumsum(self.weights, dtype=np.float64)))
        result: npt.NDArray[np.float64] = sums[self.indptr[1:]] - sums[self.indptr[:-1]]
        return result

    def edges_touched(self, rows: Rows) -> float:
        """Return d: the edges touched per feature of a row, on average.

        Parameters
        ----------
        rows : Rows
            Rows to rank.

        Returns
        -------
        float
            0 if the rows are empty.
        """
        active = rows.indices[rows.indptr[0] : rows.indptr[-1]]
        return float(self.degrees[active].mean()) if len(active) else 0.0

    def grow(self, n_features: int, n_classes: int) -> ClassIndex:
        """Return the index with room for more features and classes, none of which has an edge or a bias yet.

        Parameters
        ----------
        n_features, n_classes : int
            The new shape, no smaller than the old one.

        Returns
        -------
        ClassIndex
            Shares its lists with this one.
        """
        if n_features < self.n_features or n_classes < self.n_classes:
            raise ValueError(
                f"an index of {self.n_features} features and {self.n_classes} classes cannot shrink to "
                f"{n_features} and {n_classes}"
            )
        more = n_features - self.n_features
        indptr = np.concatenate((self.indptr, np.full(more, self.indptr[-1], dtype=np.int64)))
        offset = None if self.offset is None else np.concatenate((self.offset, np.zeros(more, np.float32)))
        new = np.zeros(n_classes - self.n_classes, np.float32)
        bias = None if self.bias is None else np.concatenate((self.bias, new))
        return ClassIndex(frozen(indptr, np.int64), self.classes, self.weights, n_classes, offset, bias)

    def prune(
        self, *, max_degree: int | None = None, min_weight: float | None = None, max_edges: int | None = None
    ) -> ClassIndex:
        """Return the index with its light edges left out.

        Parameters
        ----------
        max_degree : int, optional
            Keep at most so many classes a feature, the heaviest.
        min_weight : float, optional
            Keep edges of |weight| at least this.
        max_edges : int, optional
            Keep at most so many edges in all, the heaviest; ties go to the lower feature.

        Returns
        -------
        ClassIndex
            The same shape, offset and bias.
        """
        check_number("max_degree", max_degree, 0, whole=True, or_none=True)
        check_number("min_weight", min_weight, 0, or_none=True)
        check_number("max_edges", max_edges, 0, whole=True, or_none=True)
        keep = np.ones(self.n_edges, dtype=bool)
        if max_degree is not None:
            keep &= np.arange(self.n_edges) - np.repeat(self.indptr[:-1], self.degrees) < max_degree
        if min_weight is not None:
            keep &= np.abs(self.weights) >= min_weight
        if max_edges is not None and np.count_nonzero(keep) > max_edges:
            kept = np.flatnonzero(keep)
            lightest_first = np.argsort(-np.abs(self.weights[kept]), kind="stable")
            keep[kept[lightest_first[max_edges:]]] = False
        counts = np.concatenate(([0], np.cumsum(keep, dtype=np.int64)))
        return ClassIndex(
            frozen(counts[self.indptr], np.int64),
            frozen(self.classes[keep], np.int32),
            frozen(self.weights[keep], np.float32),
            self.n_classes,
            self.offset,
            self.bias,
        )

    def merge(self, other: ClassIndex, *, share: float = 1.0, other_share: float = 1.0) -> ClassIndex:
        """Return the weighted sum of two indexes over the same features and classes.

        Parameters
        ----------
        other : ClassIndex
            The second one; the smaller of the two is taken as grown to the larger.
        share, other_share : float
            The weight of each.

        Returns
        -------
        ClassIndex
            Scores are the weighted sums of the two scores.
        """
        shape = (max(self.n_features, other.n_features), max(self.n_classes, other.n_classes))
        left, right = self.grow(*shape), other.grow(*shape)
        merged = ClassIndex.from_matrix(
            left.to_matrix() * np.float32(share) + right.to_matrix() * np.float32(other_share)
        )
        sums = [
            None if first is None and second is None else _sum(first, second, share, other_share)
            for first, second in ((left.offset, right.offset), (left.bias, right.bias))
        ]
        return ClassIndex(merged.indptr, merged.classes, merged.weights, merged.n_classes, *sums)

    def remap_classes(self, new_ids: IdArray, n_classes: int) -> ClassIndex:
        """Return the index with its classes renumbered; classes that share a new id are added up.

        Parameters
        ----------
        new_ids : int32 array of shape (n_classes,)
            The new id of each class, -1 to drop it.
        n_classes : int
            Number of classes afterwards.

        Returns
        -------
        ClassIndex
            The renumbered index.
        """
        features = np.repeat(np.arange(self.n_features, dtype=np.int32), self.degrees)
        ids = new_ids[self.classes]
        kept = ids >= 0
        merged = ClassIndex.from_edges(
            features[kept], ids[kept], self.weights[kept], n_features=self.n_features, n_classes=n_classes
        )
        bias = None
        if self.bias is not None:
            bias, left = np.zeros(n_classes, np.float32), new_ids >= 0
            np.add.at(bias, new_ids[left], self.bias[left])
        return ClassIndex(merged.indptr, merged.classes, merged.weights, n_classes, self.offset, bias)

    def combine(self, shares: Any) -> ClassIndex:
        """Return the index of other classes, each a weighted sum of these.

        Parameters
        ----------
        shares : array or sparse matrix of shape (n_classes, n_others)
            How much each of these classes counts in each of the others.

        Returns
        -------
        ClassIndex
            Without an offset: this index must have none.
        """
        if self.offset is not None:
            raise ValueError("an index with an offset cannot be combined")
        combined = ClassIndex.from_matrix(self.to_matrix() @ shares)
        return combined if self.bias is None else replace(combined, bias=frozen(self.bias @ shares, np.float32))

    def with_constant(self, value: float) -> ClassIndex:
        """Return the index without its last feature, which has the same value in every row: it is the bias.

        Parameters
        ----------
        value : float
            That value; 0 if there is no such feature.

        Returns
        -------
        ClassIndex
            With the same scores for rows without that feature.
        """
        if not value:
            return self
        last = slice(self.indptr[-2], self.indptr[-1])
        bias = np.zeros(self.n_classes, np.float32)
        bias[self.classes[last]] = self.weights[last]
        offset = self.offset
        if offset is not None:
            bias += offset[-1]
            offset = frozen(offset[:-1], np.float32)
        lists = self.indptr[:-1], self.classes[: last.start], self.weights[: last.start]
        return ClassIndex(*lists, self.n_classes, offset, frozen(np.float32(value) * bias, np.float32))

    def with_bias_as_feature(self) -> ClassIndex:
        """Return the index with its bias as one more feature, the last, which is 1 in every row."""
        bias = np.zeros(self.n_classes, np.float32) if self.bias is None else self.bias
        classes = np.flatnonzero(bias)
        offset = None if self.offset is None else np.append(self.offset, np.float32(0))
        return ClassIndex.from_lists(
            np.append(self.indptr, self.n_edges + len(classes)),
            np.concatenate((self.classes, classes)),
            np.concatenate((self.weights, bias[classes])),
            n_classes=self.n_classes,
            offset=offset,
        )

    def to_matrix(self) -> Any:
        """Return the weights as a csr_array of features × classes, without the offset."""
        matrix = sp.csr_array((self.weights, self.classes, self.indptr), shape=(self.n_features, self.n_classes))
        matrix = matrix.copy()
        matrix.sort_indices()
        return matrix

    def to_prototypes(self) -> Any:
        """Return the weights by class: a csr_array of classes × features (the prototypes), without the offset."""
        indptr = np.concatenate(([0], np.cumsum(self.indegrees)))
        features = np.empty(self.n_edges, dtype=np.int32)
        weights = np.empty(self.n_edges, dtype=np.float32)
        kernels.transpose(self.indptr, self.classes, self.weights, indptr[:-1].copy(), features, weights)
        return sp.csr_array((weights, features, indptr), shape=(self.n_classes, self.n_features))


def _sum(first: Float32Array | None, second: Float32Array | None, share: float, other_share: float) -> Float32Array:
    """The weighted sum of two arrays; one that is not there is 0."""
    parts = [part * times for part, times in ((first, share), (second, other_share)) if part is not None]
    total: Float32Array = frozen(np.sum(parts, axis=0), np.float32)
    return total
