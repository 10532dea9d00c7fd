"""One version of a served model: it never changes, so any number of threads may rank with it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from abound.learn.model import Model
from abound.serve.features import name_features
from abound.serve.inputs import counts_from_zero
from abound.serve.searching import ClassSearch
from abound.validation import LARGEST, Rows, as_rows

Vector = tuple[Sequence[int], Sequence[float]]
Mask = npt.NDArray[np.bool_]


class InputError(ValueError):
    """A request that this model cannot answer.

    Parameters
    ----------
    field : str
        The part of the request that is to blame.
    problem : str
        What is wrong with it.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(problem)
        self.field = field


class Ranked(NamedTuple):
    """The best classes of each row: arrays of shape (n, k); -1 where fewer rank."""

    ids: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float32]
    probabilities: npt.NDArray[np.float64] | None


class Vote(NamedTuple):
    """A feature that votes for a class, and the places in the text where it stands."""

    feature: str
    value: float
    places: list[tuple[int, int]]


class Version:
    """A model that ranks.

    Parameters
    ----------
    name : str
        Names what it has learned from.
    mark : int
        The last entry of the journal that it has learned.
    model : Model
        Nobody changes it any more.
    before : Version or None
        An earlier version of the same file, to share what has not changed.
    """

    def __init__(self, name: str, mark: int, model: Model, before: Version | None = None) -> None:
        self.name = name
        self.mark = mark
        self.model = model
        self.made = time.time()
        self.takes = "vectors" if model.vectoriser is None else "texts"
        self.first_feature = 0 if model.vectoriser is not None or counts_from_zero(model) else 1
        self._cards: dict[int, dict[str, str]] = {}
        if before is not None and before.n_classes == self.n_classes:
            self.class_ids, self._cards = before.class_ids, before._cards
            if "search" in before.__dict__:
                self.search = before.search

    def warm_up(self) -> None:
        """Make now what is made when it is first needed: labels by name, and machine code."""
        if len(self.class_ids) != self.n_classes:
            raise ValueError("two classes of the model are written alike: their labels cannot be told apart")
        texts, vectors = (["warm up"], None) if self.takes == "texts" else (None, [((), ())])
        self.rank(self.rows(texts, vectors), 1)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.model.estimator.class_counts_)

    @cached_property
    def class_ids(self) -> dict[str, int]:
        """The id of each class, by its label as it is written."""
        return {str(label): i for i, label in enumerate(self.model.estimator.classes_.tolist())}

    @cached_property
    def search(self) -> ClassSearch:
        """Finds classes by their names."""
        cards = [self.card(c) for c in range(self.n_classes)]
        return ClassSearch([card["label"] for card in cards], [card["title"] for card in cards])

    def class_id(self, label: str, field: str) -> int:
        """Find a class.

        Parameters
        ----------
        label : str
            As it is written.
        field : str
            The part of the request that names it.

        Returns
        -------
        int
            Its id.
        """
        if label not in self.class_ids:
            raise InputError(field, f"{label!r} is not a class of this model, which knows {self.n_classes}")
        return self.class_ids[label]

    def mask(self, include: Iterable[str] | None, exclude: Iterable[str] | None) -> Mask | None:
        """Tell which classes may be ranked.

        Parameters
        ----------
        include, exclude : iterable of str or None
            Labels as they are written.

        Returns
        -------
        bool array or None
            None if all may.
        """
        if include is None and exclude is None:
            return None
        mask = np.full(self.n_classes, include is None, np.bool_)
        mask[[self.class_id(label, "include") for label in include or ()]] = True
        mask[[self.class_id(label, "exclude") for label in exclude or ()]] = False
        return mask

    def card(self, c: int) -> dict[str, str]:
        """Return what to show for a class.

        Parameters
        ----------
        c : int
            Its id.

        Returns
        -------
        dict
            ``label`` and ``title``, both as text.
        """
        card = self._cards.get(c)
        if card is None:
            label = self._label(c)
            title = "" if self.model.titles is None else self.model.titles.get(label, "")
            card = self._cards[c] = {"label": str(label), "title": title}
        return card

    def path(self, c: int) -> list[dict[str, str]]:
        """Return what stands above a class in the taxonomy.

        Parameters
        ----------
        c : int
            Its id.

        Returns
        -------
        list of dict
            ``label`` and ``title`` of each node below the root, from the top, without the class itself.
        """
        taxonomy = self.model.taxonomy
        label = self._label(c)
        if taxonomy is None or taxonomy.kind != "tree" or label not in taxonomy:
            return []
        return [{"label": str(node), "title": taxonomy.titles.get(node, "")} for node in taxonomy.path(label)[1:-1]]

    def rows(self, texts: Sequence[str] | None, vectors: Sequence[Vector] | None) -> Rows:
        """Turn what is to be ranked into rows.

        Parameters
        ----------
        texts : sequence of str or None
            For a model of texts.
        vectors : sequence of (features, values) or None
            For a model of vectors; features count as in the file that it was trained on.

        Returns
        -------
        Rows
            As the learner sees them.
        """
        learner = self.model.estimator
        if self.model.vectoriser is not None:
            if texts is None:
                raise InputError("features", "this model takes texts: send text instead of features")
            return learner._view(as_rows(self.model.vectoriser.transform(texts)))
        if vectors is None:
            raise InputError("text", "this model takes vectors: send features instead of a text")
        return learner._view(as_rows(self._matrix(vectors)))

    def rank(self, rows: Rows, k: int, mask: Mask | None = None) -> Ranked:
        """Rank the classes of each row.

        Parameters
        ----------
        rows : Rows
            What `rows` made.
        k : int
            How many classes.
        mask : bool array or None
            Which may be ranked.

        Returns
        -------
        Ranked
            Ids, scores and, of a calibrated model, probabilities, best first.
        """
        learner = self.model.estimator
        if not learner.is_calibrated:
            return Ranked(*learner._rank(rows, min(k, self.n_classes), mask), None)
        # A probability depends on the two best scores.
        ranking = learner._rank(rows, min(max(2, k), self.n_classes), mask)
        return Ranked(ranking.ids[:, :k], ranking.scores[:, :k], learner._probabilities(ranking)[:, :k])

    def votes(self, rows: Rows, text: str | None, ids: Sequence[int]) -> list[list[Vote]]:
        """Tell which features vote for classes.

        Parameters
        ----------
        rows : Rows
            One row.
        text : str or None
            Its text, to find the places of words in.
        ids : sequence of int
            The classes.

        Returns
        -------
        list of list of Vote
            For each class, the heaviest first.
        """
        learner, vectoriser = self.model.estimator, self.model.vectoriser
        parts = [learner._contributions(rows, c) for c in ids]
        features = sorted({feature for votes in parts for feature, _ in votes})
        places: dict[int, list[tuple[int, int]]] = {feature: [] for feature in features}
        if text is not None and vectoriser is not None and not callable(vectoriser.analyzer):
            for begin, end, feature in vectoriser.spans(text, [feature for feature in features if feature >= 0]):
                places[feature].append((begin, end))
        names = dict(zip(features, name_features(self.model, features), strict=True))
        if text is not None and vectoriser is not None and vectoriser.hashing is not None:
            names |= {feature: text[slice(*found[0])] for feature, found in places.items() if found}
        return [
            [
                Vote(names[feature], value, places[feature])
                for feature, value in sorted(votes, key=lambda part: -abs(part[1]))
            ]
            for votes in parts
        ]

    def columns(self, features: Sequence[int], values: Sequence[float], most: int) -> tuple[tuple[int, float], ...]:
        """Turn the features of a request into columns.

        Parameters
        ----------
        features, values : sequences
            As in `rows`.
        most : int
            Features beyond the model's that are allowed.

        Returns
        -------
        tuple of (int, float)
            Columns from 0, and their values.
        """
        width = self.model.estimator.n_features_in_ + most
        columns = [feature - self.first_feature for feature in features]
        totals: dict[int, float] = {}
        for feature, column, value in zip(features, columns, values, strict=True):
            if not 0 <= column < width:
                low, high = self.first_feature, width - 1 + self.first_feature
                raise InputError("features", f"feature {feature}: the model takes the features {low} to {high}")
            # What is given twice is added up.
            totals[column] = total = totals.get(column, 0.0) + value
            if not abs(total) <= LARGEST:
                problem = (
                    f"a value beyond ±{LARGEST:.0e} cannot be ranked. Scale the values, for example to unit length"
                )
                raise InputError("features", f"feature {feature} is {total:.3g}: {problem}")
        return tuple(zip(columns, values, strict=True))

    def _matrix(self, vectors: Sequence[Vector]) -> Any:
        lengths = [len(features) for features, _ in vectors]
        width = self.model.estimator.n_features_in_
        pairs = [pair for features, values in vectors for pair in self.columns(features, values, 0)]
        columns = np.array([column for column, _ in pairs], np.int32)
        data = np.array([value for _, value in pairs], np.float32)
        indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        return sp.csr_array((data, columns, indptr), shape=(len(vectors), width))

    def _label(self, c: int) -> Any:
        return self.model.estimator._labels_of(np.array([c], np.int32)).tolist()[0]
