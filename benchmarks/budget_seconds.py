"""The wall time of the methods of `budget.py`: per row, on one core, from the models of the first subset."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

import abound
from tasks import Task

ROWS = {"SaDyC": 40, "SaDyC (print)": 40, "SaDyC, sampled": 100, "SaDyC (print), sampled": 100}
"""Rows that are timed; 500 of the others."""
LIMITS = (10, 25, 50)
"""Milliseconds that a row may take."""
LIMITED_ROWS = 300
PLAIN_ROWS = 3


def time_models(task: Task, methods: Mapping[str, Any], folder: Path) -> None:
    """Time what is kept in the folder, and keep the figures there."""
    figures: dict[str, Any] = {"rows": {}, "limits": {}, "oracle": {}}
    for name, method in methods.items():
        path = folder / f"0-{method.model}.model"
        if not path.exists():
            continue
        model = abound.load(path).set_params(n_jobs=1)
        few = task._replace(X_test=task.X_test[: ROWS.get(name, 500)], y_test=task.y_test[: ROWS.get(name, 500)])
        figures["rows"][name] = milliseconds_a_row(model, name, few)
        print(f"  {name}: {figures['rows'][name]:.3f} ms a row", flush=True)
        if name in ("SaDyC", "SaDyC, sampled"):
            model.set_params(n_candidates=None if name == "SaDyC" else 100)
            figures["limits"][name] = {limit: limited(model, task, limit) for limit in LIMITS}
            print(f"  {name}: {figures['limits'][name]}", flush=True)
        if name == "SaDyC":
            model.set_params(n_candidates=None)
            figures["oracle"] = compare_oracles(model, task)
            print(f"  {figures['oracle']}", flush=True)
    (folder / "seconds.json").write_text(json.dumps(figures), encoding="utf-8")


def milliseconds_a_row(model: Any, name: str, task: Task) -> float:
    """Return the best of three, after a first call that loads the kernels."""
    if name.startswith("SaDyC"):
        model.set_params(n_candidates=100 if "sampled" in name else None)
    elif name.startswith("E-"):
        model.set_params(decode="hamming" if "Hamming" in name else "loss")
    model.predict_topk(task.X_test[:2], k=5)
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        model.predict_topk(task.X_test, k=5)
        times.append(time.perf_counter() - begin)
    return 1000 * min(times) / task.X_test.shape[0]


def limited(model: Any, task: Task, limit: float) -> dict[str, float]:
    """Return how long rows take that are asked for one by one with a limit, and how accurate they are."""
    model.predict_topk(task.X_test[:1], k=1, max_ms=limit)
    taken, right = [], []
    for i in range(min(LIMITED_ROWS, len(task.y_test))):
        x = task.X_test[[i]]
        begin = time.perf_counter()
        labels = model.predict_topk(x, k=1, max_ms=limit).labels
        taken.append(1000 * (time.perf_counter() - begin))
        right.append(labels[0, 0] == task.y_test[i])
    middle, high = np.percentile(taken, [50, 99]).tolist()
    return {"median ms": middle, "99th percentile": high, "accuracy": float(np.mean(right))}


def compare_oracles(model: Any, task: Task) -> dict[str, float]:
    """Return the milliseconds of a plain oracle that computes every sum anew, and the part of equal choices."""
    from abound.learn.sequential_votes import as_votes, slope_of
    from abound.rank.topk import score_all
    from abound.validation import as_rows

    codes, q = np.ascontiguousarray(model.dichotomizers_.codes.T), np.ascontiguousarray(model.expected_votes_.T)
    outputs = score_all(model.dichotomizers_.index, as_rows(task.X_test[:PLAIN_ROWS]))
    votes = as_votes(outputs, slope_of(model.vote))
    budget = round(0.2 * len(model.classes_))
    plain_run(codes, q, votes[0], 2, model.b_min)
    times, same = [], []
    for i in range(PLAIN_ROWS):
        begin = time.perf_counter()
        chosen = plain_run(codes, q, votes[i], budget, model.b_min)
        times.append(time.perf_counter() - begin)
        ours = model.trajectory(task.X_test[[i]], budget).classifiers
        chosen = chosen[: len(ours)]
        same.append(float(np.mean(chosen == ours)))
    return {"plain oracle ms": 1000 * float(np.mean(times)), "same choices": float(np.mean(same))}


@njit(cache=True)
def plain_run(codes: Any, q: Any, votes: Any, budget: int, b_min: float) -> Any:
    """SaDyC on one row with an oracle that computes every sum anew; return the classifiers that were asked."""
    n_classifiers, n_classes = codes.shape
    T, behind, b = np.zeros(n_classes), np.zeros(n_classes), np.ones(n_classes)
    used, chosen = np.zeros(n_classifiers, np.bool_), np.full(budget, -1)
    v = 0
    for step in range(budget):
        used[v], chosen[step] = True, v
        for c in range(n_classes):
            if codes[v, c] != 0 and b[c] > 0:
                T[c] += 1
                behind[c] += q[v, c] - (votes[v] if codes[v, c] > 0 else 1 - votes[v])
                b[c] = np.exp(-2 * max(0.0, behind[c]) ** 2 / T[c])
                if b[c] <= b_min:
                    b[c] = 0
        if np.sum(b > 0) <= 1:
            break
        best, smallest = -1, np.inf
        for w in range(n_classifiers):
            if used[w]:
                continue
            right, wrong, plus, minus, rest = 0.0, 0.0, 0.0, 0.0, 0.0
            for c in range(n_classes):
                if b[c] == 0:
                    continue
                if codes[w, c] == 0:
                    rest += b[c]
                    continue
                late = behind[c] + q[w, c]
                if_for = np.exp(-2 * max(0.0, late - 1) ** 2 / (T[c] + 1))
                if_against = np.exp(-2 * max(0.0, late) ** 2 / (T[c] + 1))
                if codes[w, c] > 0:
                    plus, right, wrong = plus + b[c], right + if_for, wrong + if_against
                else:
                    minus, right, wrong = minus + b[c], right + if_against, wrong + if_for
            if plus + minus > 0:
                p = plus / (plus + minus)
                found = rest + p * right + (1 - p) * wrong
                if found < smallest:
                    best, smallest = w, found
        if best < 0:
            break
        v = best
    return chosen
