"""How EDGE finds the classes that its generalist confuses, and trains experts on them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from abound.labels import Labels
from abound.learn.base import RankingClassifier
from abound.learn.expert_lists import Expert
from abound.learn.row_views import take_rows
from abound.validation import Float32Array, IdArray, IntArray, Rows, frozen


class Data(NamedTuple):
    """Rows to learn from, their labels and weights."""

    rows: Rows
    labels: Labels
    weights: Float32Array

    def take(self, wanted: IntArray) -> Data:
        """Return some of the rows.

        Parameters
        ----------
        wanted : int64 array
            Row numbers.

        Returns
        -------
        Data
            Copies.
        """
        return Data(take_rows(self.rows, wanted), self.labels.take(wanted), self.weights[wanted])

    def train(self, learner: RankingClassifier) -> RankingClassifier:
        """Fit a copy of a learner, on one thread.

        Parameters
        ----------
        learner : RankingClassifier
            Stays as it is.

        Returns
        -------
        RankingClassifier
            Fitted.
        """
        rows = self.rows
        X = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.n_rows, rows.n_features))
        part = learner._as_part()
        part.fit(X, self.labels, self.weights)
        return part


class Fold(NamedTuple):
    """What a training of the generalist gives."""

    home: IntArray
    """The rows that it has not learned."""
    choices: IdArray
    """The class that it ranks first for them."""
    fitted: RankingClassifier | None
    """The generalist, if it has learned all rows."""


def train_fold(fold: int, data: Data, fold_of: IntArray, learner: RankingClassifier) -> Fold:
    """Train the generalist on all rows but those of a fold.

    Parameters
    ----------
    fold : int
        The fold; -1 for none.
    data : Data
        All rows.
    fold_of : int64 array
        The fold of each row.
    learner : RankingClassifier
        What to train.

    Returns
    -------
    Fold
        What came of it.
    """
    fitted = (data if fold < 0 else data.take(np.flatnonzero(fold_of != fold))).train(learner)
    home = np.flatnonzero(fold_of == fold)
    choices = fitted._rank(fitted._view(take_rows(data.rows, home)), 1, None).ids[:, 0]
    return Fold(home, choices, fitted._frozen_copy() if fold < 0 else None)


def confusions(first_choices: IdArray, labels: Labels) -> Any:
    """Count how often each class is taken for another.

    Parameters
    ----------
    first_choices : int32 array of shape (n,)
        The class that was ranked first, -1 for none.
    labels : Labels
        The true ones. Every true label of a row counts as taken for a first choice that is not among them.

    Returns
    -------
    csr_array of shape (n_classes, n_classes)
        Rows of the first class, taken for the second.
    """
    choices = np.repeat(first_choices, np.diff(labels.indptr))
    owners = np.repeat(np.arange(len(labels)), np.diff(labels.indptr))
    right = np.zeros(len(labels), dtype=np.bool_)
    right[owners[choices == labels.ids]] = True
    wrong = ~right[owners] & (choices >= 0)
    pair = (labels.ids[wrong], choices[wrong])
    shape = (labels.n_classes, labels.n_classes)
    return sp.coo_array((np.ones(int(wrong.sum()), dtype=np.int64), pair), shape=shape).tocsr()


def confused_groups(counts: Any, min_confusion: int, max_group: int) -> list[IdArray]:
    """Gather the classes that an expert should tell apart.

    Parameters
    ----------
    counts : csr_array
        What `confusions` gave.
    min_confusion : int
        Confusions of two classes, in both directions together, from which they count.
    max_group : int
        Classes of a group at most.

    Returns
    -------
    list of int32 array
        For each class with at least one such other: the class, then the others, most confused first.
    """
    both = (counts + counts.T).tocsr()
    groups = []
    for c in np.flatnonzero(np.diff(both.indptr)).tolist():
        span = slice(both.indptr[c], both.indptr[c + 1])
        others, times = both.indices[span], both.data[span]
        order = np.lexsort((others, -times))
        others = others[order][times[order] >= min_confusion][: max_group - 1]
        if len(others):
            groups.append(np.concatenate(([c], others)).astype(np.int32))
    return groups


def rows_by_class(labels: Labels) -> list[IntArray]:
    """List the rows of each class.

    Parameters
    ----------
    labels : Labels
        Labels of all rows.

    Returns
    -------
    list of int64 array
        One a class.
    """
    owners = np.repeat(np.arange(len(labels)), np.diff(labels.indptr))
    return np.split(owners[np.argsort(labels.ids, kind="stable")], np.cumsum(labels.counts)[:-1])


def train_expert(group: IdArray, data: Data, rows_of: list[IntArray], learner: RankingClassifier) -> Expert:
    """Train a learner to tell the classes of a group apart, on their rows and those rows' features alone.

    Parameters
    ----------
    group : int32 array
        The classes.
    data : Data
        All rows.
    rows_of : list of int64 array
        What `rows_by_class` gave.
    learner : RankingClassifier
        What to train.

    Returns
    -------
    Expert
        Over the features of the learner's view.
    """
    part = data.take(np.unique(np.concatenate([rows_of[c] for c in group.tolist()])))
    by_id = np.argsort(group)
    place = np.searchsorted(group[by_id], part.labels.ids).clip(max=len(group) - 1)
    inside = group[by_id][place] == part.labels.ids
    bounds = np.concatenate(([0], np.cumsum(inside)))[part.labels.indptr].astype(np.int64)
    ids = by_id[place][inside].astype(np.int32)
    labels = Labels(bounds, ids, np.arange(len(group)), part.labels.kind)
    features, indices = np.unique(part.rows.indices, return_inverse=True)
    if not len(features):
        features = np.zeros(1, dtype=np.int32)
    rows = part.rows._replace(indices=frozen(indices, np.int32), n_features=len(features))
    index = Data(rows, labels, part.weights).train(learner).index_.with_bias_as_feature()
    return Expert(group, seen_features(learner, features, data.rows.n_features), index)


def seen_features(learner: RankingClassifier, features: IdArray, n_features: int) -> IdArray:
    """Return which features of a learner's view of all rows those of its view of some features are.

    Parameters
    ----------
    learner : RankingClassifier
        Its view may have two features for one.
    features : int32 array
        The features that some rows have.
    n_features : int
        All features.

    Returns
    -------
    int32 array
        One for each feature of the narrow view, and the bias after all of them.
    """
    width = learner._width_of_view(1)
    seen = (width * features[:, None].astype(np.int64) + np.arange(width)).ravel()
    return np.append(seen, width * n_features).astype(np.int32)
