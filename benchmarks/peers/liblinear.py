"""LIBLINEAR: one squared-hinge problem a class, solved by its default dual solver; classes share the threads."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.sparse as sp

from peers.protocol import Files, Ranking, rank_linear

PACKAGE = "liblinear"
FILES: tuple[str, ...] = ()
SYSTEMS: dict[str, list[dict[str, Any]]] = {"LIBLINEAR": [{"C": c} for c in (1.0, 0.3, 3.0)]}


def train(files: Files, setting: dict[str, Any], threads: int) -> tuple[float, Ranking]:
    # Its data are converted beforehand; every thread has its own, because a problem holds the signs.
    X, members = sp.csr_matrix(files.X, dtype=np.float64), sp.csc_matrix(files.Y)
    solvers = [Solver(X, setting["C"]) for _ in range(threads)]

    def solve_some(number: int) -> list[Any]:
        columns = range(number, members.shape[1], threads)
        return [solvers[number].solve(members.indices[members.indptr[c] : members.indptr[c + 1]]) for c in columns]

    begin = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        parts = list(pool.map(solve_some, range(threads)))
    seconds = time.perf_counter() - begin
    rows = [parts[c % threads][c // threads] for c in range(members.shape[1])]
    weights = sp.csr_matrix(sp.vstack(rows).T)
    return seconds, lambda: rank_linear(files.X_test, weights)


class Solver:
    """A problem with its rows, whose signs are set for one class after the other."""

    def __init__(self, X: Any, cost: float) -> None:
        from liblinear.liblinear import liblinear
        from liblinear.liblinearutil import parameter, problem

        self.library, self.n_features = liblinear, X.shape[1]
        self.problem = problem(np.ones(X.shape[0]), X)
        self.options = parameter(f"-s 1 -c {cost} -q")
        self.signs = np.ctypeslib.as_array(self.problem.y, shape=(X.shape[0],))

    def solve(self, rows: Any) -> Any:
        """Return the weights of a class from its rows, as one sparse row."""
        self.signs[:] = -1
        self.signs[rows] = 1
        model = self.library.train(self.problem, self.options)
        weights = np.array(np.ctypeslib.as_array(model.contents.w, shape=(self.problem.n,)), dtype=np.float32)
        # They are those of the label that it saw first.
        weights = weights if model.contents.label[0] == 1 else -weights
        self.library.free_and_destroy_model(model)
        return sp.csr_matrix(weights[: self.n_features])
