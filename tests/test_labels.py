"""Labels of any kind become ids and come back as they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import DataConversionWarning

from abound.labels import Labels, array_of_labels, decode, encode

label = st.text(max_size=3) | st.integers(-5, 5)


@given(st.lists(st.text(max_size=3), min_size=1))
def test_strings_come_back(y: list[str]) -> None:
    labels = encode(y)
    assert labels.to_y().tolist() == y
    assert labels.classes.tolist() == sorted(set(y))
    assert labels.kind == "single"


@given(st.lists(st.lists(label, max_size=3, unique=True), min_size=1))
def test_lists_come_back(y: list[list[Any]]) -> None:
    labels = encode([set(row) for row in y])
    assert [set(row) for row in labels.to_y()] == [set(row) for row in y]
    assert sum(labels.counts) == sum(map(len, y))


def test_numbers_beside_strings_stay_numbers() -> None:
    assert set(encode(["x", 0, 1]).classes.tolist()) == {"x", 0, 1}


def test_a_tuple_is_one_label() -> None:
    labels = encode([("a", 1), ("b", 2), ("a", 1)])
    assert labels.kind == "single"
    assert labels.to_y().tolist() == [("a", 1), ("b", 2), ("a", 1)]
    assert labels.n_classes == 2


def test_sparse_and_dense_indicators() -> None:
    matrix = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]])
    sparse = encode(sp.csr_matrix(matrix))
    assert sparse.kind == "indicator"
    np.testing.assert_array_equal(sparse.to_y().toarray(), matrix)
    dense = encode(matrix)
    assert dense.kind == "dense"
    np.testing.assert_array_equal(dense.to_y(), matrix)
    np.testing.assert_array_equal(encode(matrix.tolist()).to_y(), matrix)


@pytest.mark.parametrize("classes", [["x", "y", "z"], [0, 1, "z"], [0, 1, -1], [0, 1, 0.5], [0, 1, 10**12]])
def test_an_indicator_whose_classes_have_names_becomes_lists(classes: list[Any]) -> None:
    """They were made columns one and all, and a name ended in an error of NumPy's."""
    labels = encode(np.array([[1, 0, 1], [0, 0, 0]]))
    names = array_of_labels(classes)
    for kind in ("indicator", "dense"):
        assert decode(labels.indptr, labels.ids, names, kind) == [[names[0], names[2]], []]


def test_two_labels_a_row_are_not_taken_for_an_indicator() -> None:
    assert encode([[0, 1], [1, 0]]).kind == "lists"


def test_known_classes_keep_their_ids_and_new_ones_are_appended() -> None:
    known = np.array(["b", "a"])
    labels = encode(["a", "d", "c", "b"], known)
    assert labels.classes.tolist() == ["b", "a", "c", "d"]
    assert labels.ids.tolist() == [1, 3, 2, 0]
    longer = encode(["elephant"], known)
    assert longer.classes.tolist() == ["b", "a", "elephant"]
    mixed = encode([7], known)
    assert mixed.classes.tolist() == ["b", "a", 7]


def test_onto_marks_what_is_unknown() -> None:
    labels = encode(["a", "z"]).onto(np.array(["a", "b"]))
    assert labels.ids.tolist() == [0, -1]
    assert labels.onto(np.array(["b", "a"])).ids.tolist() == [1, -1]


def test_take_keeps_order_and_classes() -> None:
    labels = encode([["a"], [], ["b", "c"]]).take(np.array([2, 2, 1]))
    assert labels.to_y() == [["b", "c"], ["b", "c"], []]
    assert labels.first_ids().tolist() == [1, 1, -1]


def test_labels_pass_through() -> None:
    labels = encode(["a"])
    assert encode(labels) is labels
    assert isinstance(labels, Labels)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "y is None"),
        ("abc", "one entry a row"),
        (3, "one entry a row"),
        ([0.5, 1.5], "Unknown label type: continuous"),
        (["a", None], r"y\[1\] is None"),
        (np.array(["a", float("nan")], dtype=object), r"y\[1\] is nan"),
        ([["a"], "b"], r"y\[1\] is 'b'"),
        (np.array([[0, 2], [1, 0]]), "indicator"),
        (np.zeros((2, 2, 2)), "1d array"),
        (np.array([1j]), "Complex"),
        (np.array([np.inf]), "infinity"),
    ],
)
def test_bad_labels_are_named(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        encode(y)


def test_a_column_is_taken_with_a_warning() -> None:
    with pytest.warns(DataConversionWarning):
        assert encode(np.array([[1], [2]])).classes.tolist() == [1, 2]
