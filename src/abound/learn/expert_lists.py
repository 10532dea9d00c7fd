"""The experts of EDGE in one place: groups of classes, features and lists one after another, with offsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abound.index.class_index import ClassIndex
from abound.store import Section, check_ids
from abound.validation import Float32Array, IdArray, IntArray, frozen


class Expert(NamedTuple):
    """One expert: its group of classes, its owner first; its features, sorted; lists of features × group."""

    group: IdArray
    features: IdArray
    lists: ClassIndex


class ExpertLists(NamedTuple):
    """All experts, frozen.

    Expert ``e`` has the classes ``group_classes[group_indptr[e]:group_indptr[e + 1]]``, the first of which is the class
    it is for, and the features ``features[feature_indptr[e]:feature_indptr[e + 1]]``. Each feature has a list, as in a
    `ClassIndex`, of places in the group and weights.
    """

    group_indptr: IntArray
    group_classes: IdArray
    feature_indptr: IntArray
    features: IdArray
    list_indptr: IntArray
    list_classes: IdArray
    list_weights: Float32Array

    @property
    def n_experts(self) -> int:
        """Number of experts."""
        return len(self.group_indptr) - 1

    @property
    def n_edges(self) -> int:
        """Edges of all experts."""
        return len(self.list_classes)

    @property
    def largest_group(self) -> int:
        """Classes of the largest group."""
        return int(np.diff(self.group_indptr).max(initial=0))

    def group(self, e: int) -> IdArray:
        """Return the classes of an expert, its owner first.

        Parameters
        ----------
        e : int
            The expert's number.

        Returns
        -------
        int32 array
            Class ids.
        """
        return self.group_classes[self.group_indptr[e] : self.group_indptr[e + 1]]

    def by_class(self, n_classes: int) -> IdArray:
        """Return the number of each class's expert.

        Parameters
        ----------
        n_classes : int
            Number of classes.

        Returns
        -------
        int32 array of shape (n_classes,)
            -1 for a class without one.
        """
        numbers = np.full(n_classes, -1, dtype=np.int32)
        numbers[self.group_classes[self.group_indptr[:-1]]] = np.arange(self.n_experts)
        frozen_numbers: IdArray = frozen(numbers, np.int32)
        return frozen_numbers

    def expert(self, e: int) -> Expert:
        """Return one expert.

        Parameters
        ----------
        e : int
            Its number.

        Returns
        -------
        Expert
            Shares the arrays.
        """
        group = self.group(e)
        low, high = self.feature_indptr[e], self.feature_indptr[e + 1]
        indptr = self.list_indptr[low : high + 1]
        edges = slice(indptr[0], indptr[-1])
        bounds = frozen(indptr - indptr[0], np.int64)
        lists = ClassIndex(bounds, self.list_classes[edges], self.list_weights[edges], len(group))
        return Expert(group, self.features[low:high], lists)

    def remap_classes(self, new_ids: IdArray) -> ExpertLists:
        """Return the experts with their classes renumbered; weights that become one add up.

        Parameters
        ----------
        new_ids : int32 array
            The new id of each class, -1 to drop it. A dropped class takes its expert along; of classes that become
            one, the first one's expert stays.

        Returns
        -------
        ExpertLists
            No more experts than before.
        """
        kept: dict[int, Expert] = {}
        for e in range(self.n_experts):
            group, features, lists = self.expert(e)
            ids = new_ids[group]
            if ids[0] < 0 or int(ids[0]) in kept:
                continue
            left = list(dict.fromkeys(ids[ids >= 0].tolist()))
            places = np.array([left.index(c) if c >= 0 else -1 for c in ids.tolist()], dtype=np.int32)
            kept[left[0]] = Expert(np.array(left, dtype=np.int32), features, lists.remap_classes(places, len(left)))
        return join_experts(list(kept.values()))


def join_experts(experts: Sequence[Expert]) -> ExpertLists:
    """Put experts one after another.

    Parameters
    ----------
    experts : sequence of Expert
        Any number; an index's offset becomes part of its weights.

    Returns
    -------
    ExpertLists
        New arrays; features without edges are left out.
    """
    parts = [_without_empty(expert) for expert in experts]
    return ExpertLists(
        _bounds([len(part.group) for part in parts]),
        _joined([part.group for part in parts], np.int32),
        _bounds([len(part.features) for part in parts]),
        _joined([part.features for part in parts], np.int32),
        _bounds(np.concatenate([np.empty(0, np.int64), *(part.lists.degrees for part in parts)])),
        _joined([part.lists.classes for part in parts], np.int32),
        _joined([part.lists.weights for part in parts], np.float32),
    )


def experts_from(section: Section, n_features: int, n_classes: int) -> ExpertLists:
    """Read experts from a model file, checked so that kernels may follow their pointers.

    Parameters
    ----------
    section : Section
        The arrays of an `ExpertLists` by name.
    n_features, n_classes : int
        What features and classes may be.

    Returns
    -------
    ExpertLists
        Shares the arrays.
    """
    section.check_csr("group_indptr", "group_classes", n_classes)
    section.check_csr("feature_indptr", "features", n_features)
    groups, features = section["group_indptr"], section["features"]
    sizes = np.diff(groups)
    if sizes.min(initial=1) < 1:
        raise section.fault("group_indptr", "an expert without classes")
    section.require("feature_indptr", np.int64, (len(groups),))
    bounds = section.require("list_indptr", np.int64, (len(features) + 1,))
    section.check_csr("list_indptr", "list_classes", int(sizes.max(initial=0)))
    places = section["list_classes"]
    weights = section.require_numbers("list_weights", np.float32, (len(places),))
    edges = bounds[section["feature_indptr"]].tolist()
    for e, size in enumerate(sizes.tolist()):
        check_ids(section.name_of("list_classes"), places[edges[e] : edges[e + 1]], size)
    return ExpertLists(groups, section["group_classes"], section["feature_indptr"], features, bounds, places, weights)


def _without_empty(expert: Expert) -> Expert:
    index = expert.lists
    if index.offset is not None:
        full = index.to_matrix().toarray() + index.offset[:, None]
        index = ClassIndex.from_matrix(full)
    used = index.degrees > 0
    indptr = frozen(np.concatenate(([0], np.cumsum(index.degrees[used]))), np.int64)
    return Expert(
        expert.group, expert.features[used], ClassIndex(indptr, index.classes, index.weights, index.n_classes)
    )


def _bounds(lengths: npt.ArrayLike) -> IntArray:
    bounds: IntArray = frozen(np.concatenate(([0], np.cumsum(np.asarray(lengths, dtype=np.int64)))), np.int64)
    return bounds


def _joined(arrays: Sequence[npt.NDArray[Any]], dtype: npt.DTypeLike) -> Any:
    return frozen(np.concatenate([np.empty(0, dtype), *arrays]), dtype)
