"""Rows that a learner holds out while it learns: to measure passes on, and to learn probabilities and cuts from."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from abound.measure.splits import repeated_splits
from abound.validation import IntArray


def hold_out(
    rows: IntArray, n_held: int, generator: np.random.Generator, groups: npt.NDArray[Any] | None
) -> tuple[IntArray, IntArray]:
    """Hold some rows out at random.

    Parameters
    ----------
    rows : int64 array
        Row numbers.
    n_held : int
        How many to hold out, at least 1 and fewer than there are.
    generator : Generator
        Draws them.
    groups : array or None
        Of each row of the data what it has in common with others: rows of a group stay together, and as many are held
        out as whole groups allow.

    Returns
    -------
    int64 arrays
        Rows to learn from and rows held out, in random order.

    Examples
    --------
    >>> learned, held = hold_out(np.arange(6), 2, np.random.default_rng(0), np.array(list("aabbcc")))
    >>> sorted(held.tolist()) in ([0, 1], [2, 3], [4, 5])
    True
    """
    if groups is not None:
        seed, share = int(generator.integers(2**31)), n_held / len(rows)
        learned, held = next(repeated_splits(len(rows), 1, share, seed, groups[rows]))
        return generator.permutation(rows[learned]), generator.permutation(rows[held])
    shuffled = generator.permutation(rows)
    return shuffled[n_held:], shuffled[:n_held]
