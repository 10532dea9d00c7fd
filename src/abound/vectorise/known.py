"""What a fitted vectoriser knows: its features, their names and idf."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from abound.vectorise.blocks import decode
from abound.vectorise.reading import Reading, make_reading
from abound.vectorise.saving import hash_vocabulary
from abound.vectorise.vocabulary import HashedVocabulary, Vocabulary


class KnownFeatures:
    """The part of `TextVectorizer` that tells about its features."""

    hashing: int | None
    use_idf: bool
    get_params: Any
    _vocabulary: Vocabulary | HashedVocabulary
    _names: dict[str, int] | None
    _hash: str | None

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return the name of each feature; n-grams have a space between their words.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        object array of str
            The names.
        """
        names = decode(self._named().names())
        array = np.empty(len(names), dtype=object)
        array[:] = names
        return array

    def feature_names(self, features: npt.ArrayLike) -> list[str]:
        """Return the names of some features, without making those of all.

        Parameters
        ----------
        features : array of int
            The features.

        Returns
        -------
        list of str
            Their names.
        """
        return decode(self._named().names(np.asarray(features, np.int64)))

    @property
    def n_features_(self) -> int:
        """Number of features."""
        check_is_fitted(self)
        return self._known(None).features.n_features

    @property
    def idf_(self) -> npt.NDArray[np.float32]:
        """The inverse document frequency of each feature."""
        check_is_fitted(self)
        if not self.use_idf:
            raise AttributeError("idf_ is there only with use_idf=True")
        return self._vocabulary.features.idf

    @property
    def vocabulary_(self) -> dict[str, int]:
        """The feature of each name, made when it is first asked for."""
        self._named()
        if self._names is None:
            self._names = {name: feature for feature, name in enumerate(self.get_feature_names_out().tolist())}
        return self._names

    @property
    def vocabulary_hash_(self) -> str:
        """A digest of the features at `fit` and of how texts are read and weighed; growing keeps it."""
        check_is_fitted(self)
        if getattr(self, "_hash", None) is None:
            self._hash = hash_vocabulary(self.get_params(deep=False), self._known(None))
        return str(self._hash)

    def _named(self) -> Vocabulary:
        check_is_fitted(self)
        known = self._known(None)
        if not isinstance(known, Vocabulary):
            raise ValueError("features made by hashing have no names: leave hashing at None to keep them")
        return known

    def _known(self, reading: Reading | None) -> Vocabulary | HashedVocabulary:
        """Return what was learned; hashing without idf has nothing to learn."""
        if hasattr(self, "_vocabulary"):
            return self._vocabulary
        assert self.hashing is not None
        return HashedVocabulary(self.hashing, (reading or make_reading(self)).stop_words)

    def _know(self, vocabulary: Vocabulary | HashedVocabulary) -> None:
        """Forget any earlier fit."""
        self._vocabulary = vocabulary
        self._names = None
        self._hash = None

    def _is_stateless(self) -> bool:
        return self.hashing is not None and not self.use_idf

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_vocabulary") or self._is_stateless()
