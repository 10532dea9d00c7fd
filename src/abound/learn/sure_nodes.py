"""Answers that are sure enough: where no class is, the deepest node of the taxonomy that is.

The mass of a node is the sum of the probabilities of a row's ranked classes at and below it, a class that can be
reached on several ways counted once; probabilities of a row are divided by their sum first. So a true class that was
not ranked is taken to lie where those that were do, as it mostly does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from abound.labels import array_of_labels
from abound.learn._sure_kernels import find_sure_nodes
from abound.rank._topk_kernels import no_votes
from abound.read.taxonomy import Taxonomy
from abound.read.taxonomy_structure import Links
from abound.validation import Float64Array, IdArray, frozen

SLACK = 1e-9
"""Masses that reach what is asked for up to rounding are enough."""

STEPS_A_CALL = 20_000_000
"""Ancestors that one kernel call visits: a fraction of a second, so that Ctrl-C is heard."""


def sure_labels(
    taxonomy: Taxonomy, classes: npt.NDArray[Any], ids: IdArray, probabilities: Float64Array, min_confidence: float
) -> npt.NDArray[Any]:
    """Return the best class of each row if it is sure enough, else the deepest node that is.

    Parameters
    ----------
    taxonomy : Taxonomy
        A tree or a directed graph. A label and a node belong together if they are equal or written alike; a class
        without a node stands for itself alone.
    classes : array
        The label of each class id.
    ids : int32 array of shape (n, k)
        Ranked classes of each row, best first, -1 where nothing ranks.
    probabilities : float64 array of shape (n, k)
        Theirs.
    min_confidence : float
        The mass that is sure enough, from 0 to 1.

    Returns
    -------
    array of shape (n,)
        Labels of classes and names of nodes. Where nothing is sure enough, the root of a tree, or None.

    Examples
    --------
    >>> taxonomy = Taxonomy.from_edges([("all", "cats"), ("all", "dog"), ("cats", "lion"), ("cats", "lynx")])
    >>> ids, probabilities = np.array([[0, 1, 2]] * 3, dtype=np.int32), np.array([[0.5, 0.3, 0.2]] * 3)
    >>> classes = np.array(["lion", "lynx", "dog"])
    >>> [sure_labels(taxonomy, classes, ids[:1], probabilities[:1], t).tolist() for t in (0.4, 0.7, 0.9)]
    [['lion'], ['cats'], ['all']]
    """
    if taxonomy.kind == "graph":
        raise ValueError("an undirected graph has no ancestors: min_confidence needs a tree or a directed taxonomy")
    present, places = np.unique(ids, return_inverse=True)
    places = places.reshape(ids.shape) - int((present < 0).any())
    present = present[present >= 0]
    labels = classes[present].tolist()
    home, names = _homes(taxonomy, labels)
    depth = np.concatenate((taxonomy.depth, np.zeros(len(names) - len(taxonomy)))).astype(np.int32)
    totals = probabilities.sum(axis=1, keepdims=True)
    masses = np.divide(probabilities, totals, out=np.zeros(probabilities.shape), where=totals > 0)
    nodes = sure_nodes(ancestor_lists(taxonomy.parent_links, home), home, depth, places, masses, min_confidence)
    nothing = taxonomy.root if taxonomy.is_tree else None
    return array_of_labels([names[node] if node >= 0 else nothing for node in nodes.tolist()])


def sure_nodes(
    above: Links, home: IdArray, depth: IdArray, ids: npt.NDArray[Any], masses: Float64Array, min_confidence: float
) -> IdArray:
    """Find the node of each row that is sure enough.

    Parameters
    ----------
    above : Links
        The nodes at and above each class.
    home : int32 array
        The node of each class.
    depth : int32 array
        Of each node.
    ids, masses : arrays of shape (n, k)
        Classes of each row, best first, -1 for none, and their masses.
    min_confidence : float
        The mass that is sure enough.

    Returns
    -------
    int32 array of shape (n,)
        The best class's node if its own mass is enough, else the deepest node with enough; -1 for none.
    """
    ids, masses = frozen(ids, np.int32), frozen(masses, np.float64)
    nodes = np.empty(len(ids), dtype=np.int32)
    masses_above = no_votes(len(depth), np.float64)
    longest = int(np.diff(above.indptr).max(initial=1))
    size = max(1, STEPS_A_CALL // max(1, ids.shape[1] * longest))
    for begin in range(0, len(ids), size):
        end = min(begin + size, len(ids))
        find_sure_nodes(ids, masses, home, *above, depth, min_confidence - SLACK, begin, end, masses_above, nodes)
    return nodes


def ancestor_lists(parents: Links, home: IdArray) -> Links:
    """List the nodes at and above some nodes.

    Parameters
    ----------
    parents : Links
        The parents of each node of a graph without cycles; nodes beyond it have none.
    home : int32 array
        The nodes asked about.

    Returns
    -------
    Links
        For each of them itself and all nodes above it, ascending.
    """
    n_known = len(parents.indptr) - 1
    width = max(n_known, int(home.max(initial=-1)) + 1)
    pairs = np.arange(len(home), dtype=np.int64) * width + home
    found = [pairs]
    while len(pairs):
        owners, nodes = np.divmod(pairs, width)
        owners, nodes = owners[nodes < n_known], nodes[nodes < n_known]
        lengths = np.diff(parents.indptr)[nodes]
        starts = np.cumsum(lengths) - lengths
        places = np.arange(lengths.sum()) + np.repeat(parents.indptr[nodes] - starts, lengths)
        pairs = np.unique(np.repeat(owners, lengths) * width + parents.indices[places])
        found.append(pairs)
    owners, nodes = np.divmod(np.unique(np.concatenate(found)), max(1, width))
    indptr = np.concatenate(([0], np.cumsum(np.bincount(owners, minlength=len(home)))))
    return Links(frozen(indptr, np.int64), frozen(nodes, np.int32))


def _homes(taxonomy: Taxonomy, labels: list[Any]) -> tuple[IdArray, list[Any]]:
    """The node of each label, and what to call each node: a class's label, else its name; new nodes come last."""
    home = taxonomy.node_ids(labels)
    names = taxonomy.names.tolist()
    if (home < 0).any():
        by_text = {str(name): node for node, name in enumerate(names)}
        for c in np.flatnonzero(home < 0).tolist():
            home[c] = by_text.get(str(labels[c]), len(names))
            names += [labels[c]] if home[c] == len(names) else []
    for node, label in zip(home.tolist(), labels, strict=True):
        names[node] = label
    fixed: IdArray = frozen(home, np.int32)
    return fixed, names
