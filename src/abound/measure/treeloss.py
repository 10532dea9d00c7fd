"""Tree loss: how far, along the edges of a taxonomy, a predicted class is from the true one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from abound.labels import Labels
from abound.measure.places import FloatArray, IdArray

Distances = Callable[[npt.NDArray[Any], npt.NDArray[Any]], npt.ArrayLike]
"""Path lengths between pairs of class ids; -1 is nothing or an unknown class."""


class Taxonomy(Protocol):
    """What is asked of a taxonomy here; `abound.read.taxonomy.Taxonomy` offers it."""

    def node_ids(self, labels: Any) -> Any:
        """Return the node of each label, -1 for a label that has none."""
        ...

    def distances(self, a: Any, b: Any) -> Any:
        """Return the number of edges on the shortest path between nodes, pair by pair."""
        ...


class ClassDistances:
    """Path lengths between classes, also where one of them is missing.

    No prediction, or a class that is not in the taxonomy, counts as the class farthest from the other one: to say
    nothing is never better than to be wrong. (In a tree the farthest class is one end of the longest path, so two
    classes stand for all.)

    Parameters
    ----------
    taxonomy : Taxonomy
        The tree or graph; classes without a path between them count as missing, too.
    classes : array
        The label of each class id.

    Examples
    --------
    >>> class Line:
    ...     def node_ids(self, labels):
    ...         return np.array([" abc".find(label) for label in labels])
    ...     def distances(self, a, b):
    ...         return np.abs(np.asarray(a) - np.asarray(b))
    >>> distances = ClassDistances(Line(), np.array(["a", "b", "c", "x"]))
    >>> distances([0, 1, -1, 3], [0, 2, 1, 2]).tolist()
    [0.0, 1.0, 1.0, 2.0]
    """

    def __init__(self, taxonomy: Taxonomy, classes: npt.NDArray[Any]) -> None:
        self._taxonomy = taxonomy
        # The last place answers for -1.
        self._nodes = np.append(np.asarray(taxonomy.node_ids(classes), dtype=np.int64), -1)
        known = self._nodes[self._nodes >= 0]
        if not len(known):
            raise ValueError(f"none of the {len(classes)} classes is in the taxonomy: were its labels read alike?")
        end = self._farthest_from(known[0], known)
        self._ends = end, self._farthest_from(end, known)
        self._longest = max(0.0, float(self._paths(np.array([self._ends[0]]), np.array([self._ends[1]]))[0]))

    def __call__(self, predicted_ids: npt.ArrayLike, true_ids: npt.ArrayLike) -> FloatArray:
        """Return the path length between each predicted and true class; ids that are no class are missing."""
        a, b = self._to_nodes(predicted_ids), self._to_nodes(true_ids)
        lengths = np.full(len(a), self._longest)
        both = np.flatnonzero((a >= 0) & (b >= 0))
        lengths[both] = self._paths(a[both], b[both])
        either = np.flatnonzero(((a >= 0) ^ (b >= 0)) | (lengths < 0))
        present = np.where(b[either] >= 0, b[either], a[either])
        lengths[either] = self._longest_from(present)
        return lengths

    def _to_nodes(self, ids: npt.ArrayLike) -> npt.NDArray[np.int64]:
        numbers = np.asarray(ids, dtype=np.int64)
        n_classes = len(self._nodes) - 1
        return self._nodes[np.where((numbers >= 0) & (numbers < n_classes), numbers, n_classes)]

    def _paths(self, a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> FloatArray:
        """Path lengths, -1 where there is no path."""
        lengths = np.asarray(self._taxonomy.distances(a, b), dtype=np.float64)
        return np.where(np.isfinite(lengths) & (lengths >= 0), lengths, -1.0)

    def _farthest_from(self, node: int, known: npt.NDArray[np.int64]) -> int:
        return int(known[np.argmax(self._paths(np.full(len(known), node), known))])

    def _longest_from(self, nodes: npt.NDArray[np.int64]) -> FloatArray:
        ends = [self._paths(nodes, np.full(len(nodes), end)) for end in self._ends]
        lengths = np.maximum(*ends)
        return np.where(lengths >= 0, lengths, self._longest)


def mean_tree_loss(predicted_ids: IdArray, truth: Labels, distances: Distances) -> float:
    """Average the distance between the predicted class and the nearest true one.

    Parameters
    ----------
    predicted_ids : int32 array of shape (n,)
        One class a row, -1 for none.
    truth : Labels
        The true classes, numbered alike; rows without any are left out.
    distances : callable
        Path lengths between pairs of class ids, such as `ClassDistances`.

    Returns
    -------
    float
        At least 0; NaN if no row has a true class.
    """
    per_row = np.diff(truth.indptr)
    labelled = np.flatnonzero(per_row)
    if not len(labelled):
        return float("nan")
    lengths = np.asarray(distances(np.repeat(predicted_ids, per_row), truth.ids), dtype=np.float64)
    return float(np.mean(np.minimum.reduceat(lengths, truth.indptr[labelled])))
