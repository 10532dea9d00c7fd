"""From rows to figures, words and a page."""

from __future__ import annotations

import re
import warnings
import xml.etree.ElementTree as ET
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from abound.compare import svg
from abound.compare.anytime import anytime_points
from abound.compare.findings import Findings
from abound.compare.measuring import pack_ids, unpack_ids
from abound.compare.page import make_page
from abound.compare.prepared import prepare
from abound.compare.protocol import Plan
from abound.compare.results import Standing, differences, holm, pareto, right_rows, standings
from abound.compare.splits import final_split
from abound.labels import encode
from abound.learn.base import TopK
from abound.learn.registry import make_learner
from abound.measure import Summary, decision_sign_test, sign_test, wilcoxon_test
from compare_data import EVIL, compare_here, find_here, make_dataset

SECTIONS = [
    *("recommendation", "table", "train-time", "rank-time", "tail", "passes", "anytime", "confusions"),
    *("significance", "doubts", "method"),
]
PLAN = Plan(("frequency", "ff", "pa", "svm"), time_limit=3600.0)


@pytest.fixture(scope="module")
def found() -> Findings:
    with pytest.MonkeyPatch.context() as patch:
        return find_here(patch, make_dataset(evil=True), PLAN)


class Outline(HTMLParser):
    """The elements of a page, and whether each is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in ("meta", "br"):
            self.opened.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)


def test_every_section_is_there_and_every_element_closed(found: Findings) -> None:
    outline = Outline(make_page(found, "abound train"))
    assert outline.opened == []
    assert [ident for ident in outline.ids if ident in SECTIONS] == SECTIONS
    assert len(set(outline.ids)) == len(outline.ids)


def test_labels_arrive_as_text(found: Findings) -> None:
    page = make_page(found, f"abound train {EVIL}")
    outline = Outline(page)
    assert "script" not in outline.tags and "<script" not in page
    assert EVIL in unescape(page)
    assert not re.search(r"""(?:src|href|url)\s*[=(]""", page), "the page asks for nothing"


def test_a_page_without_results(found: Findings) -> None:
    nothing = replace(found, lines=[], differences=[], advice=replace(found.advice, take=None, sentences=["None."]))
    outline = Outline(make_page(nothing))
    assert [ident for ident in outline.ids if ident in SECTIONS] == SECTIONS


def test_anytime_learners_are_drawn(found: Findings) -> None:
    assert "No learner that answers within a budget took part." in make_page(found)
    points = [{"ratio": ratio, "budget": 1, "R1": ratio / 2, "seconds": 1.0} for ratio in (0.01, 0.1, 1.0)]
    line = replace(found.lines[0], rows=[{**found.lines[0].rows[0], "anytime": points}])
    page = make_page(replace(found, lines=[line, *found.lines[1:]]))
    assert 'id="anytime-chart-title"' in page


def test_budgets_are_tried() -> None:
    prepared = prepare(final_split(make_dataset(), 0, 1, 0), {}, None, 1)

    class Patient:
        """Right if it may ask enough."""

        def predict_topk(self, X: Any, k: int = 5, *, budget: int | None = None) -> TopK:
            labels = prepared.truth.to_y()[:, None] if budget and budget >= 6 else np.full((X.shape[0], 1), "?")
            return TopK(labels, np.zeros(labels.shape, dtype=np.float32))

    points = anytime_points(Patient(), prepared)
    assert points[-1]["R1"] == 1 and points[-1]["ratio"] == 1 and points[0]["R1"] == 0
    assert [point["budget"] for point in points] == sorted({point["budget"] for point in points})


def test_beams_are_tried() -> None:
    prepared = prepare(final_split(make_dataset(), 0, 1, 0), {}, None, 1)
    model = make_learner("label-tree", max_leaf=2, random_state=0).fit(prepared.X, prepared.labels)
    points = anytime_points(model, prepared)
    assert len(points) > 3 and model.get_params()["beam"] == 10
    assert [point["ratio"] for point in points] == sorted(point["ratio"] for point in points)
    assert points[-1]["R1"] >= points[0]["R1"] > 0
    assert anytime_points(make_learner("ind").fit(prepared.X, prepared.labels), prepared) == []


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 1)), min_size=1, max_size=12))
def test_nobody_on_the_front_is_beaten(points: list[tuple[float, float]]) -> None:
    costs, gains = [cost for cost, _ in points], [gain for _, gain in points]
    front = pareto(costs, gains)
    for i, (cost, gain) in enumerate(points):
        beaten = any((c <= cost and g > gain) or (c < cost and g >= gain) for c, g in points)
        if i in front:
            assert not beaten
        else:
            assert beaten or any(costs[j] == cost and gains[j] == gain for j in front)


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_against_its_definition(p_values: list[float]) -> None:
    ordered = sorted(p_values)
    for p_value, adjusted in zip(p_values, holm(p_values), strict=True):
        before = [min(1.0, (len(ordered) - i) * p) for i, p in enumerate(ordered) if p <= p_value]
        assert adjusted == pytest.approx(max(before))


@given(st.integers(0, 2**32 - 1))
def test_tests_agree_with_scipy(seed: int) -> None:
    generator = np.random.default_rng(seed)
    n = int(generator.integers(5, 60))
    first = generator.normal(size=n).round(int(generator.integers(1, 4)))
    second = first + generator.normal(0.2, 1.0, size=n).round(int(generator.integers(0, 4)))
    wins, losses = int((first > second).sum()), int((first < second).sum())
    if wins + losses:
        assert sign_test(first, second).p_value == pytest.approx(stats.binomtest(wins, wins + losses).pvalue)
        gains = (first - second)[first != second]
        with warnings.catch_warnings():
            # Few values with ties: SciPy says that its approximation is rough.
            warnings.simplefilter("ignore")
            expected = stats.wilcoxon(gains).pvalue
        assert wilcoxon_test(first, second).p_value == pytest.approx(min(1.0, expected))


def test_differences_are_those_of_the_rows(found: Findings) -> None:
    truth = found.comparison.truth()
    pairs = differences(found.lines, truth)
    assert len(pairs) == 6
    chosen = {line.learner: truth.classes[unpack_ids(line.rows[0]["first"])] for line in found.lines}
    for pair in pairs:
        expected = decision_sign_test(truth.to_y(), chosen[pair.first], chosen[pair.second])
        assert (pair.rows.wins, pair.rows.losses, pair.rows.ties) == (expected.wins, expected.losses, expected.ties)
        assert pair.rows.p_value == expected.p_value <= pair.p_value
        right = np.mean(chosen[pair.first] == truth.to_y())
        line = next(line for line in found.lines if line.learner == pair.first)
        assert right == pytest.approx(line.recall)


def test_rows_with_several_labels_are_right_if_one_is_found() -> None:
    truth = encode([["a", "b"], ["b"], ["c", "x"], []], known=np.array(["a", "b", "c"]))
    assert right_rows(np.array([1, 0, 3, 0], dtype=np.int32), truth).tolist() == [True, False, True, False]
    assert unpack_ids(pack_ids(np.array([], dtype=np.int32))).tolist() == []


def test_several_labels_and_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = replace(PLAN, learners=("ind", "svm"), n_splits=3)
    several = find_here(monkeypatch, make_dataset(several=True), plan)
    assert several.comparison.n_splits == 3
    (pair,) = several.differences
    assert pair.classes is None and pair.splits is not None
    assert "P@5" in make_page(several)
    for line in several.lines:
        assert [row["experiment"]["split"] for row in line.rows] == [0, 1, 2]
        values = [row["measures"]["R1"] for row in line.rows]
        assert line.measures["R1"] == Summary(pytest.approx(np.mean(values)), pytest.approx(np.std(values, ddof=1)))
    assert "±" in make_page(several)


def test_splits_that_a_learner_lacks_count_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    comparison = compare_here(monkeypatch, make_dataset(), replace(PLAN, learners=("ind", "svm"), n_splits=3))
    comparison.n_splits = 2
    for line in standings(comparison):
        assert [row["experiment"]["split"] for row in line.rows] == [0, 1]


def test_words(found: Findings) -> None:
    assert found.advice.take in PLAN.learners
    assert found.advice.sentences[0].startswith(f"For {EVIL}: take {found.advice.take}")
    assert found.left_out() == []


def test_a_slower_equal_is_not_recommended(found: Findings) -> None:
    from abound.compare.recommend import recommend

    best, other, *_ = found.lines
    slow: Standing = replace(best, train_seconds=100.0)
    quick = replace(other, train_seconds=1.0)
    luck = [replace(found.differences[0], first=slow.learner, second=quick.learner, p_value=0.5)]
    assert recommend("it", [slow, quick], luck).take == quick.learner
    real = [replace(luck[0], p_value=0.0, rows=replace(luck[0].rows, better="first"))]
    assert recommend("it", [slow, quick], real).take == slow.learner


def elements(drawing: str) -> list[ET.Element]:
    root = ET.fromstring(drawing)
    assert root.get("role") == "img"
    assert root[0].tag == "title" and root[1].tag == "desc" and root[0].text and root[1].text
    assert root.get("aria-labelledby") == f"{root[0].get('id')} {root[1].get('id')}"
    return list(root.iter())


@given(st.lists(st.tuples(st.text("<&ab", max_size=5), st.floats(1e-6, 1e6), st.floats(0, 1)), min_size=1, max_size=12))
def test_points_lie_inside_the_drawing(points: list[tuple[str, float, float]]) -> None:
    front = pareto([x for _, x, _ in points], [y for _, _, y in points])
    found = elements(svg.scatter("a", "title <", "text &", points, front, ("x <", "y &")))
    marks = [e for e in found if (e.get("class") or "").startswith("mark")]
    assert len(marks) == len(points)
    for e in marks:
        if e.tag == "circle":
            assert 0 <= float(e.get("cx", "nan")) <= svg.WIDTH and 0 <= float(e.get("cy", "nan")) <= svg.HEIGHT
    for e in found:
        if e.get("class") == "name":
            begin = float(e.get("x", "nan"))
            assert 0 <= begin and begin + svg.LETTER * len(e.text or "") <= svg.WIDTH + 1
        if e.get("class") == "tick":
            assert float(e.get("x", "nan")) + svg.LETTER * len(e.text or "") / 2 <= svg.WIDTH + 0.1


@given(st.lists(st.lists(st.none() | st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=12))
def test_bars_and_curves_are_drawn(values: list[list[float | None]]) -> None:
    found = elements(svg.bars("a", "title", "text", ["1", "2-5", ">5"], list(enumerate(values)), ("x", "y")))
    assert sum(e.tag == "rect" for e in found) == sum(v is not None for row in values for v in row)
    assert all(float(e.get("height", "nan")) >= 0 for e in found if e.tag == "rect")
    series = [(i, [(j + 1.0, v or 0.0) for j, v in enumerate(row)]) for i, row in enumerate(values)]
    for log in (False, True):
        found = elements(svg.curves("a", "title", "text", series, ("x", "y"), log=log))
        assert sum(e.tag == "polyline" for e in found) == len(values)
