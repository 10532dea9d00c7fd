"""Repeated random splits, the same for every learner, and mean ± standard deviation over them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from abound.validation import check_number, make_generator

IntArray = npt.NDArray[np.int64]


class Summary(NamedTuple):
    """A measure over several splits; prints as ``0.272 ± 0.002``.

    Parameters
    ----------
    mean : float
        The mean.
    sd : float
        The sample standard deviation (n - 1 below the line); NaN for a single split.
    """

    mean: float
    sd: float

    def __str__(self) -> str:
        return f"{self.mean:.3f}" if np.isnan(self.sd) else f"{self.mean:.3f} ± {self.sd:.3f}"


def repeated_splits(
    n_rows: int, n_splits: int = 10, test_fraction: float = 0.1, random_state: Any = 0, groups: Any = None
) -> Iterator[tuple[IntArray, IntArray]]:
    """Split rows at random, several times.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    n_splits : int
        How many splits; the first ones do not depend on how many follow.
    test_fraction : float
        What part of the rows each split holds out.
    random_state : int, RandomState or None
        The same number gives the same splits, whatever is learned on them.
    groups : sequence of length n_rows, optional
        Of each row what it has in common with others, any hashable value: a patient, an author. Rows of a group stay
        on one side, and the part that is held out is as large as whole groups allow, never larger than asked for if
        any group fits. None is a row by itself.

    Returns
    -------
    iterator of (train_rows, test_rows)
        Row numbers, rising; together all rows, and at least one in each.

    Examples
    --------
    >>> for train_rows, test_rows in repeated_splits(10, n_splits=2, test_fraction=0.2):
    ...     print(len(train_rows), len(test_rows))
    8 2
    8 2
    >>> list(repeated_splits(4, n_splits=1, test_fraction=0.5, groups=["ann", "bob", "ann", "bob"]))
    [(array([1, 3]), array([0, 2]))]
    """
    check_number("n_rows", n_rows, 2, whole=True)
    check_number("n_splits", n_splits, 1, whole=True)
    check_number("test_fraction", test_fraction, 0, 1, above=True)
    n_test = min(max(1, round(n_rows * test_fraction)), n_rows - 1)
    generator = make_generator(random_state)
    return (
        _draw(n_rows, n_splits, n_test, generator)
        if groups is None
        else _draw_groups(number_groups(groups, n_rows), n_splits, n_test, generator)
    )


def number_groups(groups: Any, n_rows: int) -> IntArray:
    """Number groups from 0, in the order in which they appear; each None, and each NaN, is a group of its own."""
    numbers: dict[tuple[bool, Any], int] = {}
    ids = [
        numbers.setdefault((True, i) if group is None or group != group else (False, group), len(numbers))
        for i, group in enumerate(groups)
    ]
    if len(ids) != n_rows:
        raise ValueError(f"groups has {len(ids)} entries, but there are {n_rows} rows")
    if len(numbers) < 2:
        raise ValueError("groups: all rows are of one group, so there is nothing to split; two groups are needed")
    return np.array(ids, dtype=np.int64)


def _draw_groups(
    ids: IntArray, n_splits: int, n_test: int, generator: np.random.Generator
) -> Iterator[tuple[IntArray, IntArray]]:
    sizes = np.bincount(ids)
    for _ in range(n_splits):
        held, left = np.zeros(len(sizes), dtype=bool), n_test
        for group in generator.permutation(len(sizes)).tolist():
            if sizes[group] <= left:
                held[group], left = True, left - sizes[group]
                if not left:
                    break
        if not held.any():
            held[sizes.argmin()] = True
        held_out = held[ids]
        yield np.flatnonzero(~held_out), np.flatnonzero(held_out)


def _draw(
    n_rows: int, n_splits: int, n_test: int, generator: np.random.Generator
) -> Iterator[tuple[IntArray, IntArray]]:
    for _ in range(n_splits):
        held_out = np.zeros(n_rows, dtype=bool)
        held_out[generator.permutation(n_rows)[:n_test]] = True
        yield np.flatnonzero(~held_out), np.flatnonzero(held_out)


def summarise(results: Sequence[Mapping[str, float]]) -> dict[str, Summary]:
    """Take mean and standard deviation of each measure over splits.

    Parameters
    ----------
    results : sequence of mappings
        The measures of each split, all with the same names.

    Returns
    -------
    dict
        A `Summary` for each measure.

    Examples
    --------
    >>> print(summarise([{"R1": 0.270}, {"R1": 0.272}, {"R1": 0.274}])["R1"])
    0.272 ± 0.002
    """
    if not results:
        raise ValueError("there are no results to summarise")
    for i, result in enumerate(results):
        if result.keys() != results[0].keys():
            odd = ", ".join(sorted(result.keys() ^ results[0].keys()))
            raise ValueError(f"result {i} and result 0 do not hold the same measures: {odd} is in only one of them")
    return {name: _summary([float(result[name]) for result in results]) for name in results[0]}


def _summary(values: list[float]) -> Summary:
    mean = float(np.mean(values))
    return Summary(mean, float(np.std(values, ddof=1)) if len(values) > 1 and np.isfinite(mean) else float("nan"))
