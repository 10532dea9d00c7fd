"""The bias of the prototype learners: a feature that has the same value in every row, kept apart from the others.

What it adds to a score is its value times its weight, and a change of a class adds the change times the value to that
weight: only the square of the value is needed, and what it adds to each score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.learn.prototype_parts import Batch, ChangeBook
from abound.learn.row_views import own_bias
from abound.store import Section
from abound.store.check import LARGEST_SUM
from abound.validation import MODERATE, Float32Array, Float64Array, IntArray, Rows, frozen


@dataclass(slots=True, eq=False)
class Bias:
    """What every row adds to the scores.

    Parameters
    ----------
    added : float32 array of shape (n_columns,)
        What is added to each score.
    totals : float64 array of shape (n_columns,)
        The sum of its changes, each times its step; see `abound.learn.prototype.PrototypeState`.
    constant : float or None
        The value that all rows have; 0 for no bias, None as long as no row has been seen.
    """

    added: Float32Array
    totals: Float64Array
    constant: float | None = None

    @property
    def squared(self) -> float:
        """What the constant adds to the product of any two rows."""
        return 0.0 if self.constant is None else self.constant**2

    @property
    def is_large(self) -> bool:
        """Whether moderate rows may give weights that cannot be ranked."""
        return self.squared > MODERATE**2

    def settle(self, bias: float | str, rows: Rows, share: float) -> None:
        """Take the value of the first rows, if there were none so far.

        Parameters
        ----------
        bias : float or "auto"
            What the user set.
        rows : Rows
            The rows.
        share : float
            What part of their root mean square length "auto" is.
        """
        if self.constant is None:
            value = own_bias(bias, rows)
            self.constant = float(np.float32(share * value if bias == "auto" else value))

    def learn(self, batch: Batch, n_rows: int) -> None:
        """Add the changes of a batch.

        Parameters
        ----------
        batch : Batch
            With the changes.
        n_rows : int
            Its rows.
        """
        if self.constant:
            changed = slice(batch.change_indptr[n_rows])
            with unbounded():
                np.add.at(self.added, batch.change_classes[changed], np.float32(self.squared) * batch.changes[changed])

    def add_totals(self, book: ChangeBook) -> None:
        """Add up what a book holds, before it begins anew."""
        if self.constant:
            with unbounded():
                self.totals += self.squared * book.totals(len(self.totals))

    def mean(self, steps: int, since: IntArray) -> Float64Array:
        """Return the mean over the steps that each column has been through; see `PrototypeState`.

        Parameters
        ----------
        steps : int
            All steps.
        since : int64 array of shape (n_columns,)
            The steps before the first row of a column's class.

        Returns
        -------
        float64 array of shape (n_columns,)
            What is added to each score on average.
        """
        with unbounded():
            mean: Float64Array = self.added - self.totals / max(steps, 1)
            return mean * (steps / np.maximum(steps - since, 1)) if since.any() else mean

    def grow(self, n_columns: int) -> None:
        """Make room for more columns."""
        more = n_columns - len(self.added)
        self.added, self.totals = np.pad(self.added, (0, more)), np.pad(self.totals, (0, more))

    def remapped(
        self, new_ids: npt.NDArray[Any], n_columns: int, steps: int, before: IntArray, since: IntArray, averaged: bool
    ) -> Bias:
        """Return the bias with its columns renumbered; those that become one add up, and so do their means.

        Parameters
        ----------
        new_ids : array
            The new number of each column, -1 to drop it.
        n_columns : int
            Columns afterwards.
        steps : int
            All steps.
        before, since : int64 array
            See `mean`; for the columns as they were and as they will be.
        averaged : bool
            Whether there are means.

        Returns
        -------
        Bias
            A new one.
        """
        kept = new_ids >= 0

        def summed(values: npt.NDArray[Any]) -> Float64Array:
            return np.bincount(new_ids[kept], values[kept], n_columns).astype(np.float64, copy=False)

        with unbounded():
            added, totals = summed(self.added), summed(self.totals)
            if averaged and before.any():
                totals = steps * added - (steps - since) * summed(self.mean(steps, before))
            return Bias(added.astype(np.float32), totals, self.constant)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return copies as arrays of a model file, none if there is no bias."""
        if not self.constant:
            return {}
        return {"constant": np.array([self.constant]), "bias": self.added.copy(), "bias_totals": self.totals.copy()}


def no_bias(n_columns: int) -> Bias:
    """Return a bias that has seen no row.

    Parameters
    ----------
    n_columns : int
        Number of columns.

    Returns
    -------
    Bias
        It adds 0.
    """
    return Bias(np.zeros(n_columns, np.float32), np.zeros(n_columns))


def bias_from(arrays: Section, n_columns: int) -> Bias:
    """Read a bias from a model file, checked.

    Parameters
    ----------
    arrays : Section
        What `Bias.to_arrays` gave; files of version 0.1 have none of it.
    n_columns : int
        Number of columns.

    Returns
    -------
    Bias
        Its arrays are copies; without a bias if the file has none.
    """
    bias = no_bias(n_columns)
    bias.constant = 0.0
    if "constant" in arrays:
        bias.constant = float(arrays.require_numbers("constant", np.float64, (1,))[0])
        bias.added[:] = arrays.require_numbers("bias", np.float32, (n_columns,))
        bias.totals[:] = arrays.require_numbers("bias_totals", np.float64, (n_columns,), LARGEST_SUM)
    return bias


def exported(values: npt.NDArray[Any], n_common: int) -> Float32Array:
    """Return what is added to the score of each class.

    Parameters
    ----------
    values : array of shape (n_columns,)
        What is added to each column.
    n_common : int
        How many columns come before the classes and count for all of them.

    Returns
    -------
    float32 array of shape (n_classes,)
        Read-only.
    """
    with unbounded():
        added: Float32Array = frozen(values[n_common:] + values[:n_common].sum(), np.float32)
    return added


def unbounded() -> np.errstate:
    """What grows beyond all bounds is refused later, for all weights alike."""
    return np.errstate(over="ignore", invalid="ignore")
