"""From counts to weights: term frequency, inverse document frequency, length."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abound.validation import check_choice, frozen
from abound.vectorise._row_kernels import L1, L2, NO_NORM, weigh_rows
from abound.vectorise.lexicon import Counts

NORMS = {None: NO_NORM, "l1": L1, "l2": L2}

LOGS = np.ones(256)
LOGS[1:] += np.log(np.arange(1, 256))
LOGS.flags.writeable = False


class Features(NamedTuple):
    """The features that codes stand for.

    Parameters
    ----------
    of_words, of_grams : int32 arrays
        The feature of each word and n-gram, -1 for none; no words means that codes are features.
    n_features : int
        Number of features.
    idf : float32 array
        The factor of each feature; empty means ones.
    """

    of_words: npt.NDArray[np.int32]
    of_grams: npt.NDArray[np.int32]
    n_features: int
    idf: npt.NDArray[np.float32]


class Rows(NamedTuple):
    """Sparse rows of some texts."""

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    data: npt.NDArray[np.float32]


class Weighting(NamedTuple):
    """What is done with a count.

    Parameters
    ----------
    is_binary : bool
        Counts above one are one.
    is_sublinear : bool
        One plus the logarithm of the count takes its place.
    norm : int
        Which length is made one.
    """

    is_binary: bool
    is_sublinear: bool
    norm: int

    def weigh(self, counts: Counts, features: Features) -> Rows:
        """Turn counts into sorted rows of weights.

        Parameters
        ----------
        counts : Counts
            Counted codes; their memory is taken for the rows.
        features : Features
            The features that the codes stand for.

        Returns
        -------
        Rows
            Indices and data are views of the counts' memory.
        """
        if self.is_binary:
            counts.counts[:] = 1
        longest = int(np.diff(counts.ptr).max(initial=0))
        indptr = np.empty(len(counts.ptr), np.int64)
        data = counts.counts.view(np.float32)
        weigh_rows(
            *counts,
            frozen(features.of_words, np.int32),
            frozen(features.of_grams, np.int32),
            features.n_features,
            self.is_sublinear,
            LOGS,
            frozen(features.idf, np.float32),
            self.norm,
            np.empty(longest, np.int64),
            np.empty(longest, np.int64),
            np.empty(257, np.int64),
            indptr,
            counts.codes,
            data,
        )
        return Rows(indptr, counts.codes[: indptr[-1]], data[: indptr[-1]])


def make_weighting(vectoriser: Any) -> Weighting:
    """Read the weighting from the parameters of a vectoriser.

    Parameters
    ----------
    vectoriser : TextVectorizer
        Whose parameters to use.

    Returns
    -------
    Weighting
        What to do with counts.
    """
    check_choice("norm", vectoriser.norm, tuple(NORMS))
    return Weighting(bool(vectoriser.binary), bool(vectoriser.sublinear_tf), NORMS[vectoriser.norm])


def inverse_frequency(
    document_counts: npt.NDArray[np.int64], n_documents: int, is_smooth: bool
) -> npt.NDArray[np.float32]:
    """Compute idf = 1 + log(n / df), with one more document that holds every word if smooth.

    Parameters
    ----------
    document_counts : int64 array
        In how many documents each feature occurs.
    n_documents : int
        Number of documents.
    is_smooth : bool
        Add one to both.

    Returns
    -------
    float32 array
        At least one; a feature that never occurred counts as if it had once.

    Examples
    --------
    >>> inverse_frequency(np.array([1, 3]), 3, True).round(3)
    array([1.693, 1.   ], dtype=float32)
    """
    df = document_counts + int(is_smooth)
    idf: npt.NDArray[np.float32] = (1 + np.log((n_documents + int(is_smooth)) / np.maximum(df, 1))).astype(np.float32)
    return idf
