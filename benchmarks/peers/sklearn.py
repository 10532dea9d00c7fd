"""scikit-learn: the estimators that its users would try on sparse rows and many classes."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from peers.protocol import Files, Ranking, rank_linear

PACKAGE = "sklearn"
FILES: tuple[str, ...] = ()
SYSTEMS: dict[str, list[dict[str, Any]]] = {
    "scikit-learn ComplementNB": [{"estimator": "ComplementNB", "alpha": alpha} for alpha in (1.0, 0.1, 0.01)],
    "scikit-learn SGDClassifier": [{"estimator": "SGDClassifier", "alpha": alpha} for alpha in (1e-5, 1e-6, 1e-4)],
    "scikit-learn LinearSVC": [{"estimator": "LinearSVC", "C": c} for c in (1.0, 0.3, 3.0)],
}


def train(files: Files, setting: dict[str, Any], threads: int) -> tuple[float, Ranking]:
    from sklearn.exceptions import ConvergenceWarning

    options = {name: value for name, value in setting.items() if name != "estimator"}
    model = make(setting["estimator"], options, threads)
    X, y = files.X, files.Y.indices
    if not files.is_single and setting["estimator"] == "ComplementNB":
        # Naive Bayes only counts: a row with several labels counts once for each.
        X = X[np.repeat(np.arange(X.shape[0]), np.diff(files.Y.indptr))]
    elif not files.is_single:
        from sklearn.multiclass import OneVsRestClassifier

        model, y = OneVsRestClassifier(model, n_jobs=threads), files.Y
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    seconds = time.perf_counter() - begin
    return seconds, lambda: rank(model, files.X_test)


def make(name: str, options: dict[str, Any], threads: int) -> Any:
    from sklearn.linear_model import SGDClassifier
    from sklearn.naive_bayes import ComplementNB
    from sklearn.svm import LinearSVC

    if name == "SGDClassifier":
        return SGDClassifier(random_state=0, n_jobs=threads, **options)
    return ComplementNB(**options) if name == "ComplementNB" else LinearSVC(random_state=0, **options)


def rank(model: Any, X: Any) -> Any:
    if hasattr(model, "estimators_"):
        members = [one if hasattr(one, "coef_") else None for one in model.estimators_]
        weights = np.array([np.zeros(X.shape[1]) if one is None else one.coef_[0] for one in members])
        offsets = np.array([-np.inf if one is None else one.intercept_[0] for one in members])
    elif hasattr(model, "coef_"):
        weights, offsets = model.coef_, model.intercept_
    else:
        weights, offsets = model.feature_log_prob_, 0.0
    ids = rank_linear(X, np.ascontiguousarray(weights.T), offsets)
    classes = getattr(model, "classes_", None)
    return ids if classes is None else np.append(classes, -1)[ids]
