"""Weights and sums of a prototype learner, features × columns, as arrays of a model file and with other classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from abound.store import Section
from abound.store.check import LARGEST, LARGEST_SUM, MOST


def steps_from(arrays: Section, sums: Any) -> int:
    """Read how many steps a state has seen.

    Parameters
    ----------
    arrays : Section
        The arrays of the state.
    sums : csr_array or None
        Its sums of changes × step.

    Returns
    -------
    int
        At least 1 if there are sums.
    """
    steps = int(arrays.require("steps", np.int64, (1,))[0])
    if not (0 if sums is None or not sums.nnz else 1) <= steps < MOST:
        raise arrays.fault("steps", f"{steps} steps")
    return steps


def csr_arrays(prefix: str, matrix: Any) -> dict[str, npt.NDArray[Any]]:
    """Take a matrix apart.

    Parameters
    ----------
    prefix : str
        What to put before each name.
    matrix : csr_array
        The matrix.

    Returns
    -------
    dict
        Named arrays.
    """
    indptr, classes = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False)
    return {f"{prefix}indptr": indptr, f"{prefix}classes": classes, f"{prefix}weights": matrix.data}


def csr_from(arrays: Section, prefix: str, dtype: Any, n_columns: int) -> Any:
    """Put a matrix together, checked.

    Parameters
    ----------
    arrays : Section
        What `csr_arrays` gave.
    prefix : str
        What stands before each name; empty for weights, which are smaller than sums.
    dtype : dtype
        Of the numbers.
    n_columns : int
        Number of columns.

    Returns
    -------
    csr_array
        Shares the arrays.
    """
    arrays.check_csr(f"{prefix}indptr", f"{prefix}classes", n_columns)
    indptr, classes = arrays[f"{prefix}indptr"], arrays[f"{prefix}classes"]
    weights = arrays.require_numbers(f"{prefix}weights", dtype, (len(classes),), LARGEST_SUM if prefix else LARGEST)
    return sp.csr_array((weights, classes, indptr), shape=(len(indptr) - 1, n_columns))


def remapped(matrix: Any, new_ids: npt.NDArray[Any], n_columns: int) -> Any:
    """Return a matrix with its columns renumbered; those that become one add up.

    Parameters
    ----------
    matrix : csr_array
        The matrix.
    new_ids : array
        The new number of each column, -1 to drop it.
    n_columns : int
        Columns afterwards.

    Returns
    -------
    csr_array
        A copy.
    """
    coo = matrix.tocoo()
    ids = new_ids[coo.col]
    kept = ids >= 0
    return sp.coo_array((coo.data[kept], (coo.row[kept], ids[kept])), shape=(matrix.shape[0], n_columns)).tocsr()
