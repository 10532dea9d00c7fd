"""Classes leave as well as come: dropping, renaming and merging classes of a fitted learner, without training again."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from abound.labels import array_of_labels
from abound.learn.turns import alone
from abound.validation import IdArray, IntArray


class Reclassing:
    """Mixin of the learners; they fill in ``_remap``."""

    class_counts_: IntArray
    _classes: Any

    @property
    @abstractmethod
    def classes_(self) -> npt.NDArray[Any]:
        """The labels in the order of their ids."""

    @abstractmethod
    def _remap(self, new_ids: IdArray, n_classes: int) -> None:
        """Renumber the classes of what was learned: -1 drops one, those that share an id become one."""

    @abstractmethod
    def _class_id(self, label: Any) -> int:
        """Id of a label that must be known."""

    @alone
    def drop_classes(self, labels: Iterable[Any]) -> Self:
        """Forget classes; the others keep their order, and the features their other votes.

        Parameters
        ----------
        labels : iterable of labels
            The classes to forget; at least one must remain.

        Returns
        -------
        self
            The learner.
        """
        gone = {self._class_id(label) for label in labels}
        kept = [c for c in range(len(self.classes_)) if c not in gone]
        if not kept:
            raise ValueError("drop_classes would leave no class: at least one must remain")
        new_ids = np.full(len(self.classes_), -1, dtype=np.int32)
        new_ids[kept] = np.arange(len(kept), dtype=np.int32)
        return self._renumber(new_ids, self.classes_[kept])

    @alone
    def rename_classes(self, names: Mapping[Any, Any]) -> Self:
        """Give classes other labels.

        Parameters
        ----------
        names : mapping of old to new label
            Labels not named stay; two classes may not end with the same label (see `merge_classes`).

        Returns
        -------
        self
            The learner.
        """
        renamed = self.classes_.tolist()
        for old, new in names.items():
            renamed[self._class_id(old)] = new
        if len(set(renamed)) != len(renamed):
            twice = next(label for label in renamed if renamed.count(label) > 1)
            raise ValueError(f"two classes would be called {twice!r}: use merge_classes to make them one")
        self._classes = array_of_labels(renamed)
        return self

    @alone
    def merge_classes(self, labels: Iterable[Any], into: Any) -> Self:
        """Make several classes one: what was learned for each counts for it.

        Parameters
        ----------
        labels : iterable of labels
            The classes that become one.
        into : label
            What it is called: one of them, another class, or a new label.

        Returns
        -------
        self
            The learner.
        """
        merged = sorted(
            {self._class_id(label) for label in labels} | set(np.flatnonzero(self.classes_ == into).tolist())
        )
        if not merged:
            raise ValueError("merge_classes needs at least one class to merge")
        gone = set(merged[1:])
        kept = [c for c in range(len(self.classes_)) if c not in gone]
        new_ids = np.full(len(self.classes_), -1, dtype=np.int32)
        new_ids[kept] = np.arange(len(kept), dtype=np.int32)
        new_ids[merged] = new_ids[merged[0]]
        labels_left = self.classes_[kept].tolist()
        labels_left[kept.index(merged[0])] = into
        return self._renumber(new_ids, array_of_labels(labels_left))

    def _renumber(self, new_ids: IdArray, classes: npt.NDArray[Any]) -> Self:
        counts = np.zeros(len(classes), dtype=np.int64)
        kept = new_ids >= 0
        np.add.at(counts, new_ids[kept], self.class_counts_[kept])
        self._remap(new_ids, len(classes))
        self._classes, self.class_counts_ = classes, counts
        return self
