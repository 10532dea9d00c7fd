"""Rows that are nearly alike on both sides of a split: who learns one has nearly seen the other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abound.compare.splits import Halves
from abound.read.documents import Documents
from abound.read.textbytes import TextBytes
from abound.validation import IntArray
from abound.vectorise.text import TextVectorizer

LIKENESS = 0.8
"""Rows are near copies if they share so large a part of the features that either has (Jaccard)."""

MOST_ROWS, MOST_WORK = 1000, 2 * 10**7
"""Rows that are looked for, spread over all of them; entries of other rows that are looked at for them."""

DENSE = 0.5
"""Where rows have more than this part of all features, having the same ones means nothing."""

EXAMPLES, LONGEST = 2, 80
WORDS = ("analyzer", "lowercase", "strip_accents", "token_pattern", "stop_words")
"""Parameters of the vectoriser that say what a word is."""


class Found(NamedTuple):
    """For each row that was looked for, the row most like it.

    Parameters
    ----------
    other : int64 array
        Its number, -1 if none is like enough.
    likeness : float64 array
        The shared part of the features that either has; 0 if none is like enough.
    """

    other: IntArray
    likeness: npt.NDArray[np.float64]


@dataclass(frozen=True)
class NearCopies:
    """How many rows have a near copy on the other side.

    Parameters
    ----------
    of : str
        "held-out" or "test".
    rows : int
        Rows that were looked for.
    share : float
        The part of them with a near copy among the rows that were learned from.
    same : float
        The part of them whose near copy has exactly the same features.
    examples : list of dict
        ``row``, ``copy``, ``labels``, ``copy_labels`` and ``likeness`` of some.
    """

    of: str
    rows: int
    share: float
    same: float
    examples: list[dict[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """Return everything by name."""
        return asdict(self)


def near_copies(of: str, halves: Halves, text: Mapping[str, Any]) -> NearCopies | None:
    """Look for near copies of held-out rows among those to learn from.

    Parameters
    ----------
    of : str
        What the held-out rows are called.
    halves : Halves
        Rows to learn from, rows held out.
    text : mapping
        Parameters of the vectoriser; of texts, the words are compared.

    Returns
    -------
    NearCopies or None
        None for dense rows.
    """
    n_held = len(halves.held)
    some = np.linspace(0, n_held, min(n_held, MOST_ROWS), endpoint=False).astype(np.int64)
    held = halves.held.take(some)
    if isinstance(halves.fit, Documents) and isinstance(held, Documents):
        words = {name: text[name] for name in WORDS if name in text}
        both = TextBytes.join([halves.fit.text_bytes, held.text_bytes])
        X = TextVectorizer(**words).fit_transform(both)
        known, asked = X[: len(halves.fit)], X[len(halves.fit) :]
    else:
        known, asked = halves.fit.X, held.X  # type: ignore[union-attr]
        if known.nnz > DENSE * np.count_nonzero(np.bincount(known.indices, minlength=1)) * known.shape[0]:
            return None
    found = find_nearest(known, asked)
    has = np.flatnonzero(found.other >= 0)
    # Those that are alike but not the same say more.
    order = has[np.argsort(found.likeness[has] == 1, kind="stable")]
    examples = [
        {
            "row": _shown(held, row),
            "copy": _shown(halves.fit, int(found.other[row])),
            "labels": _labels(held, row),
            "copy_labels": _labels(halves.fit, int(found.other[row])),
            "likeness": round(float(found.likeness[row]), 3),
        }
        for row in order[:EXAMPLES].tolist()
    ]
    n_rows = max(1, len(found.other))
    return NearCopies(of, len(found.other), len(has) / n_rows, float((found.likeness == 1).sum()) / n_rows, examples)


def find_nearest(known: Any, asked: Any, likeness: float = LIKENESS, most_work: float = MOST_WORK) -> Found:
    """Find, for each row, the one most like it, if that is like enough.

    A row that shares the part t of the features that either has shares at least that part of one's own n features: so
    it has one of any n - tn + 1 of them. Only rows that have one of the rarest are looked at.

    Parameters
    ----------
    known : csr_array
        Where to look; values do not count.
    asked : csr_array
        What to look for.
    likeness : float
        What is like enough, above 0.
    most_work : float
        Entries of ``known`` to look at in all; rows that are left then are not looked for.

    Returns
    -------
    Found
        An entry for each row that was looked for, the first ones of ``asked``. Of several that are equally like it,
        the first.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> known = sp.csr_array([[1, 1, 1, 1, 1, 0], [1, 0, 0, 0, 0, 1]])
    >>> find_nearest(known, sp.csr_array([[2, 1, 1, 1, 0, 0], [0, 0, 0, 0, 0, 1]])).other.tolist()
    [0, -1]
    """
    n_features = max(known.shape[1], asked.shape[1])
    counts = np.bincount(known.indices, minlength=n_features)
    rarest = [
        row[np.argsort(counts[row], kind="stable")][: len(row) - math.ceil(likeness * len(row) - 1e-9) + 1]
        for row in np.split(asked.indices, asked.indptr[1:-1])
    ]
    postings = _Postings(known, np.concatenate(rarest), n_features)
    sizes, mine = np.diff(known.indptr), np.zeros(n_features, dtype=np.bool_)
    others, found, work = [], [], 0
    for number, rare in enumerate(rarest):
        row = asked.indices[asked.indptr[number] : asked.indptr[number + 1]]
        rows = postings.rows_with(rare)
        size = sizes[rows]
        rows = rows[(size >= likeness * len(row)) & (likeness * size <= len(row))]
        size = sizes[rows]
        work += int(counts[rare].sum() + size.sum())
        if work > most_work and number:
            break
        best, nearest = -1, 0.0
        if len(rows):
            ends = np.cumsum(size)
            entries = np.arange(ends[-1]) + np.repeat(known.indptr[rows] - ends + size, size)
            mine[row] = True
            shared = np.add.reduceat(mine[known.indices[entries]], ends - size, dtype=np.int64)
            mine[row] = False
            alike = shared / (len(row) + size - shared)
            place = int(alike.argmax())
            if alike[place] >= likeness:
                best, nearest = int(rows[place]), float(alike[place])
        others.append(best)
        found.append(nearest)
    return Found(np.array(others, dtype=np.int64), np.array(found, dtype=np.float64))


class _Postings:
    """The rows that have a feature, for some of the features."""

    def __init__(self, known: Any, features: IntArray, n_features: int) -> None:
        wanted = np.zeros(n_features, dtype=np.bool_)
        wanted[features] = True
        entries = np.flatnonzero(wanted[known.indices])
        order = np.argsort(known.indices[entries], kind="stable")
        self._rows = np.searchsorted(known.indptr, entries[order], side="right") - 1
        self._features = known.indices[entries[order]]

    def rows_with(self, features: IntArray) -> IntArray:
        begins = np.searchsorted(self._features, features, side="left")
        ends = np.searchsorted(self._features, features, side="right")
        parts = [self._rows[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]
        return np.unique(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)


def _shown(data: Any, row: int) -> str:
    """A row for people: its text, or its features."""
    if isinstance(data, Documents):
        text = " ".join(data.text_bytes.take(np.array([row])).to_list()[0].split())
    else:
        features = data.X.indices[data.X.indptr[row] : data.X.indptr[row + 1]]
        text = "features " + " ".join(map(str, (features + (not data.zero_based)).tolist()))
    return text if len(text) <= LONGEST else text[: LONGEST - 1].rstrip() + "…"


def _labels(data: Any, row: int) -> list[str]:
    labels = data.labels
    return [str(labels.classes[i]) for i in labels.ids[labels.indptr[row] : labels.indptr[row + 1]]]
