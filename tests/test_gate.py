"""The gate: what goes in is frozen, canonical and of fixed types; what is wrong is named."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from abound import PAClassifier, validation
from abound.distribute import count_workers, spans, workers
from abound.validation import (
    as_rows,
    check_choice,
    check_dense,
    check_labels,
    check_number,
    check_sample_weight,
    make_generator,
)


def test_rows_are_frozen_and_of_fixed_types() -> None:
    X = sp.csr_array(np.eye(3))
    rows = as_rows(X)
    assert [array.dtype for array in rows[:3]] == [np.int64, np.int32, np.float32]
    assert not any(array.flags.writeable for array in rows[:3])
    assert X.data.flags.writeable, "the user's own arrays stay as they were"


def test_float32_rows_are_not_copied() -> None:
    X = sp.csr_array(np.eye(3, dtype=np.float32))
    assert np.shares_memory(as_rows(X).data, X.data)


def test_duplicates_are_added_up_without_touching_the_input() -> None:
    X = sp.csr_array((np.ones(3, np.float32), [2, 0, 2], [0, 3]), shape=(1, 4))
    rows = as_rows(X)
    assert rows.indices.tolist() == [0, 2]
    assert rows.data.tolist() == [1.0, 2.0]
    assert X.indices.tolist() == [2, 0, 2]


@pytest.mark.parametrize("value", [1e39, -1e300, np.inf])
def test_a_value_beyond_float32_is_named(value: float) -> None:
    X = np.array([[1.0, 0, 2], [0, 1, value]])
    for rows in (X, X.tolist(), sp.csr_array(X), sp.csc_array(X), sp.coo_matrix(X)):
        with pytest.raises(ValueError, match=rf"X\[1, 2\] is {re.escape(f'{value:.3g}')}: .* beyond ±1e\+15"):
            PAClassifier().fit(rows, ["a", "b"])


@pytest.mark.parametrize("value", [1.1e15, -3e38])
def test_a_value_that_cannot_be_ranked_is_named(value: float) -> None:
    X = sp.csr_array(np.array([[1.0, 0, 2], [0, 1, value]], dtype=np.float32))
    model = PAClassifier().fit(X[:1], ["a"])
    for refuse in (lambda: model.predict(X), lambda: model.partial_fit(X.toarray(), ["a", "b"])):
        with pytest.raises(
            ValueError, match=rf"X\[1, 2\] is {re.escape(f'{value:.3g}')}: .* beyond ±1e\+15 .* Scale the rows"
        ):
            refuse()
    assert model.predict(X * np.float32(1e15 / abs(value))).tolist() == ["a", "a"]


def test_a_column_that_is_not_there_is_named() -> None:
    for column in (-1, 3):
        X = sp.csr_array((np.ones(3, np.float32), np.array([0, 2, 1]), [0, 2, 3]), shape=(2, 3))
        X.indices[2] = column
        with pytest.raises(ValueError, match=rf"column {column} in row 1, but its columns are 0 to 2"):
            as_rows(X)
    X = sp.csr_array((np.ones(3, np.float32), np.array([0, 2, 1]), [0, 3, 2, 3]), shape=(3, 3))
    with pytest.raises(ValueError, match="indptr falls"):
        as_rows(X)


def test_int64_indices_and_memory_maps(tmp_path: Any) -> None:
    X = sp.random_array((20, 10), density=0.3, rng=np.random.default_rng(0), dtype=np.float32).tocsr()
    np.save(tmp_path / "data.npy", X.data)
    mapped = np.load(tmp_path / "data.npy", mmap_mode="r")
    wide = sp.csr_array((mapped, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
    one, other = as_rows(X), as_rows(wide)
    for a, b in zip(one[:3], other[:3], strict=True):
        np.testing.assert_array_equal(a, b)
        assert type(b) is np.ndarray


@pytest.mark.parametrize(
    ("value", "options", "message"),
    [
        (0, {"low": 1, "whole": True}, "p=0: it must be a whole number at least 1"),
        (1.5, {"low": 1, "whole": True}, "p=1.5"),
        (True, {"low": 0}, "p=True"),
        ("x", {}, "p='x': it must be a number"),
        (0, {"low": 0, "above": True}, "above 0"),
        (2, {"low": 0, "high": 1}, "at least 0 and at most 1"),
        (float("nan"), {}, "p=nan"),
        (-1, {"low": 0, "or_none": True}, "or None"),
    ],
)
def test_numbers_out_of_range_are_named(value: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_number("p", value, **options)
    check_number("p", 1, **{**options, "low": 0})


def test_choices_are_listed() -> None:
    with pytest.raises(ValueError, match="vote='x': it must be one of 'a', 'b'"):
        check_choice("vote", "x", ("a", "b"))


def test_rows_and_labels_must_be_as_many() -> None:
    with pytest.raises(ValueError, match="X has 3 rows, y has 2"):
        check_labels(["a", "b"], 3)


def test_weights_are_checked() -> None:
    assert check_sample_weight(None, 2).tolist() == [1, 1]
    with pytest.raises(ValueError, match=r"sample_weight\[1\] is -1"):
        check_sample_weight([1, -1], 2)
    with pytest.raises(ValueError, match="expected"):
        check_sample_weight([1], 2)


def test_a_dense_array_that_would_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "DENSE_LIMIT", 1000)
    check_dense(10, 10, 4, "")
    with pytest.raises(MemoryError, match="use predict_topk"):
        check_dense(100, 10, 4, "use predict_topk")


def test_seeds_give_the_same_stream() -> None:
    assert make_generator(3).integers(1000) == make_generator(np.int64(3)).integers(1000)
    assert make_generator(np.random.RandomState(3)).integers(1000) == make_generator(np.random.RandomState(3)).integers(
        1000
    )


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_results_come_in_the_order_of_the_parts(n_jobs: int) -> None:
    with workers(n_jobs) as pool:
        assert list(pool.map(lambda part: part * part, range(50))) == [i * i for i in range(50)]
        assert pool.share(7) == 7


def test_an_error_in_a_worker_comes_out() -> None:
    with workers(2) as pool, pytest.raises(ZeroDivisionError):
        list(pool.map(lambda part: 1 / part, [1, 0, 1]))


def test_jobs_are_read_as_in_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    assert [count_workers(n) for n in (None, 1, 3, -1, -2, -9)] == [1, 1, 3, 4, 3, 1]
    for bad in (0, True, 1.5):
        with pytest.raises(ValueError, match="n_jobs"):
            count_workers(bad)  # type: ignore[arg-type]


def test_spans_cover_all_rows() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        weights = np.concatenate(([5], 5 + np.cumsum(rng.integers(0, 9, size=rng.integers(1, 30)))))
        parts = spans(weights, int(rng.integers(1, 8)))
        assert [i for a, b in parts for i in range(a, b)] == list(range(len(weights) - 1))
