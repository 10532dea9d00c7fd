from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_store
from abound.store import ModelFileError, check_csr, open_arrays, save_arrays

edges = st.sampled_from([-(2**63), -1, 0, 1, 2**31 - 1, 2**31, 2**63 - 1])


@st.composite
def rows(draw):
    """Draw rows of ids, most of them valid, some with one value changed."""
    lengths = draw(st.lists(st.integers(0, 4), max_size=12))
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    n_ids = draw(st.integers(0, 6))
    ids = draw(st.lists(st.integers(0, max(n_ids - 1, 0)), min_size=int(indptr[-1]), max_size=int(indptr[-1])))
    ids = np.array(ids, draw(st.sampled_from([np.int32, np.int64])))
    if draw(st.booleans()):
        indptr[draw(st.integers(0, len(indptr) - 1))] = draw(st.integers(-1, 12) | edges)
    if len(ids) and draw(st.booleans()):
        value = draw(st.integers(-1, 6) | edges)
        ids[draw(st.integers(0, len(ids) - 1))] = np.clip(value, np.iinfo(ids.dtype).min, np.iinfo(ids.dtype).max)
    return indptr, ids, n_ids


@settings(max_examples=300, deadline=None)
@given(case=rows(), block=st.integers(1, 5))
def test_rows_are_accepted_exactly_when_the_twin_accepts_them(case, block):
    indptr, ids, n_ids = case
    indptr.flags.writeable = ids.flags.writeable = False
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("abound.store.check.BLOCK", block)
        if naive_store.is_csr(indptr, len(ids), ids, n_ids):
            check_csr("model", indptr, ids, n_ids)
        else:
            with pytest.raises(ModelFileError, match=r"^model (indptr|ids): "):
                check_csr("model", indptr, ids, n_ids)


@pytest.mark.parametrize(
    ("indptr", "ids", "n_ids", "message"),
    [
        (np.array([1, 2]), np.zeros(2, np.int32), 1, "indptr: it starts at 1 and not at 0"),
        (np.array([0, 2, 1, 2]), np.zeros(2, np.int32), 1, r"indptr: it decreases at position 2 \(1 after 2\)"),
        (np.array([0, 2]), np.zeros(3, np.int32), 1, "indptr: it ends at 2, but there are 3 entries"),
        (np.array([0, 2]), np.array([0, 5], np.int32), 5, "ids: entry 1 is 5, but ids are 0 to 4"),
        (np.array([0, 1]), np.array([0], np.int32), 0, "ids: entry 0 is 0, but no ids exist"),
        (np.array([], np.int64), np.array([], np.int32), 0, "indptr: int64 in one dimension was expected"),
        (
            np.array([0], np.int32),
            np.array([], np.int32),
            0,
            "indptr: int64 in one dimension was expected, found int32",
        ),
        (np.array([[0]]), np.array([], np.int32), 0, "indptr: int64 in one dimension"),
        (np.array([0, 1]), np.array([0.0]), 1, "ids: integers in one dimension were expected, found float64"),
        (np.array([0, 1]), np.array([[0]], np.int32), 1, "ids: integers in one dimension"),
    ],
)
def test_the_message_says_where_and_what(indptr, ids, n_ids, message):
    with pytest.raises(ModelFileError, match=f"^model {message}.*save the model again"):
        check_csr("model", indptr, ids, n_ids)


def test_a_section_checks_its_own_arrays_and_names_them(tmp_path):
    path = tmp_path / "model"
    save_arrays(path, {"index/indptr": np.array([0, 2]), "index/classes": np.array([0, 9], np.int32)}, {})
    section = open_arrays(path).section("index/")
    section.check_csr("indptr", "classes", 10)
    with pytest.raises(ModelFileError, match=r"model: array 'index/classes': entry 1 is 9, but ids are 0 to 8\. "):
        section.check_csr("indptr", "classes", 9)
    with pytest.raises(ModelFileError, match="array 'index/ids': it is missing"):
        section.check_csr("indptr", "ids", 9)
