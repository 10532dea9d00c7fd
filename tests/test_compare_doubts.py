"""Near copies across a split, and held-out rows that are far better than test rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from abound.compare.doubts import Gap
from abound.compare.findings import Findings
from abound.compare.near_copies import find_nearest, near_copies
from abound.compare.page import make_page
from abound.compare.protocol import Plan
from abound.compare.splits import Halves
from abound.labels import encode
from abound.read.datasets import Dataset
from abound.read.documents import Documents
from abound.read.formats import Vectors
from cli_data import make_rows, run, run_json, write_tsv
from compare_data import find_here, make_dataset

PLAN = Plan(("frequency", "ind", "svm"), time_limit=3600.0)


def csr(rows: list[set[int]], n_features: int) -> Any:
    """Rows of given features, their values all different."""
    indices = [feature for row in rows for feature in sorted(row)]
    indptr = np.cumsum([0, *map(len, rows)])
    return sp.csr_array((np.arange(1.0, 1 + len(indices)), indices, indptr), shape=(len(rows), n_features))


def naive_nearest(known: list[set[int]], row: set[int], least: float) -> tuple[int, float]:
    """Compare with every row."""
    alike = [len(row & other) / len(row | other) if row | other else 0.0 for other in known]
    best = max(alike, default=0.0)
    return (alike.index(best), best) if best >= least else (-1, 0.0)


FEATURES = st.lists(st.sets(st.integers(0, 12), max_size=9), min_size=1, max_size=25)


@given(FEATURES, FEATURES, st.sampled_from([0.3, 0.5, 0.8, 1.0]))
def test_the_nearest_row_is_found(known: list[set[int]], asked: list[set[int]], least: float) -> None:
    found = find_nearest(csr(known, 13), csr(asked, 15), least)
    expected = [naive_nearest(known, row, least) for row in asked]
    assert found.other.tolist() == [other for other, _ in expected]
    assert found.likeness.tolist() == pytest.approx([likeness for _, likeness in expected])


def test_work_ends() -> None:
    known = csr([{0, 1, 2}] * 50, 3)
    found = find_nearest(known, csr([{0, 1, 2}] * 40, 3), most_work=2000)
    assert 0 < len(found.other) < 40 and set(found.other.tolist()) == {0}


def test_texts_are_compared_by_their_words() -> None:
    fit = Documents.of(["a b c d e f", "Fracture of the LEFT femur", "quite another text"], ["x", "y", "z"])
    held = Documents.of(["femur left: fracture of the", "f e d c b", "a text of its own", "unheard of"], list("yxzz"))
    found = near_copies("held-out", Halves(fit, held), {"ngram_range": (1, 2), "min_df": 2})
    assert found is not None
    assert (found.rows, found.share, found.same) == (4, 0.5, 0.25)
    assert [(one["row"], one["copy"], one["likeness"]) for one in found.examples] == [
        ("f e d c b", "a b c d e f", 0.833),
        ("femur left: fracture of the", "Fracture of the LEFT femur", 1.0),
    ]
    assert found.examples[1]["labels"] == found.examples[1]["copy_labels"] == ["y"]


def test_a_word_that_was_not_learned_counts() -> None:
    """A vocabulary of the rows to learn from would leave it out, and take the two for the same."""
    fit, held = Documents.of(["red tea"], ["a"]), Documents.of(["red tea unheard-of words"], ["a"])
    found = near_copies("test", Halves(fit, held), {})
    assert found is not None and found.share == 0


def test_vectors_by_their_features_and_dense_rows_not_at_all() -> None:
    labels = encode(["a", "b", "c"])
    sparse = Vectors(csr([{1, 2}, {4, 5, 6}, {8, 9}], 10), labels, False)
    asked = Vectors(csr([{8, 9}, {30}, {1, 3}], 31), labels, False)
    found = near_copies("test", Halves(sparse, asked), {})
    assert found is not None and found.share == found.same == pytest.approx(1 / 3)
    assert found.examples[0]["row"] == "features 9 10"
    dense = Vectors(csr([{0, 1, 2}] * 3, 3), labels, False)
    assert near_copies("test", Halves(dense, dense), {}) is None


@pytest.mark.parametrize(
    ("held_out", "n_held", "test", "n_test", "far"),
    [
        (0.806, 2000, 0.547, 2000, True),
        (0.806, 20, 0.547, 20, False),
        (0.56, 100_000, 0.547, 100_000, False),
        (0.5, 2000, 0.8, 2000, False),
        (1.0, 500, 0.9, 500, True),
    ],
)
def test_far_is_beyond_luck_and_more_than_little(
    held_out: float, n_held: int, test: float, n_test: int, far: bool
) -> None:
    assert Gap("pa", held_out, n_held, test, n_test).is_far == far


def copied(n_rows: int = 300) -> Dataset:
    """Training rows in copies that differ by a word; test rows of their own, with labels of the same kind."""
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 5, n_rows).tolist()
    texts = [f"w{i} x{i} y{i} z{i} u{i} v{i} t{i} copy" for i in range(n_rows)]
    train = Documents.of([f"{text} {k}" for k in range(3) for text in texts], labels * 3)
    test = Documents.of([f"new{i} and other{i} words" for i in range(n_rows)], labels)
    return Dataset("copied", train, None, test, None, {})


@pytest.fixture(scope="module")
def found() -> Findings:
    with pytest.MonkeyPatch.context() as patch:
        return find_here(patch, copied(), PLAN)


def test_rows_that_are_too_easy_are_told_of(found: Findings) -> None:
    gap = found.doubts.gap
    assert gap is not None and gap.is_far and gap.held_out > 0.9 and gap.test < 0.5 and gap.test_rows == 300
    test, held = found.doubts.copies
    assert (test.of, test.share, held.of) == ("test", 0.0, "held-out") and held.share > 0.9
    far, copies, what = found.doubts.sentences()
    assert f"R1 {gap.held_out:.3f} on 90, {gap.test:.3f} on 300 (svm)" in far
    assert "of the held-out rows have a near copy" in copies and held.examples[0]["row"] in copies
    assert "--group COLUMN" in what
    page = make_page(found)
    assert far in page and what in page and held.examples[1]["copy"] in page
    assert found.to_dict()["warnings"] == [far, copies, what]
    assert found.to_dict()["near_copies"][1]["share"] == held.share


def test_nothing_is_told_where_all_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(1)
    words = [" ".join(generator.choice(200, 12).astype(str)) for _ in range(300)]
    texts = [f"c{i % 3} {text}" for i, text in enumerate(words)]
    own = Dataset("own", Documents.of(texts, [i % 3 for i in range(300)]), None, None, None, {})
    fine = find_here(monkeypatch, own, PLAN)
    assert fine.doubts.sentences() == [] and "warning" not in make_page(fine).split("</style>")[1]
    assert {copies.of for copies in fine.doubts.copies} == {"test", "held-out"}
    only = find_here(monkeypatch, own, replace(PLAN, learners=("frequency",)))
    assert only.doubts.gap is None and [copies.of for copies in only.doubts.copies] == ["test"]


def test_the_command_warns(tmp_path: Path) -> None:
    train = write_tsv(tmp_path / "train.tsv", make_rows(60) * 4)
    options = ("--learners", "ind", "--jobs", 1)
    told = run_json("compare", train, *options)
    assert any("100% of the test rows have a near copy" in line for line in told["warnings"])
    assert "Warning: If rows belong together" in " ".join(run("compare", train, *options).stdout.split())


def test_probabilities_are_held_against_what_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = find_here(monkeypatch, make_dataset(), PLAN)
    assert 'id="reliability"' not in make_page(plain)
    assert all(line["reliability"] is None for line in plain.to_dict()["learners"])
    sure = find_here(monkeypatch, make_dataset(), replace(PLAN, learners=("ind", "svm"), calibrate="platt"))
    for line in sure.lines:
        assert line.setting["calibrate"] == "platt" and "calibrate=platt" in line.shown
        assert all("calibrate" not in row["experiment"]["parameters"] for row in line.tried)
        bins = line.to_dict()["reliability"]
        assert len(bins["said"]) == len(bins["right"]) == 15 and sum(bins["rows"]) == 24
        assert bins["said"] == sorted(bins["said"]) and 0 <= bins["error"] <= bins["bound"] <= 1
        right = np.average(bins["right"], weights=bins["rows"])
        assert right == pytest.approx(line.recall)
        assert f"{bins['error']:.3f}" in make_page(sure).split('id="reliability"')[1]


def test_labels_stay_text(monkeypatch: pytest.MonkeyPatch) -> None:
    page = make_page(find_here(monkeypatch, make_dataset(evil=True), PLAN))
    assert "<script" not in page and "Can the figures be trusted?" in page
