"""The examples run, and the drawing of the walk from file to answer tells the truth."""

from __future__ import annotations

import re
import runpy
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
DRAWING = ROOT / "docs" / "img" / "walk.svg"


def run(example: Path, capsys: Any) -> str:
    runpy.run_path(str(example), run_name="__main__")
    return str(capsys.readouterr().out)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3


def test_diagnoses_are_ranked(capsys: Any) -> None:
    out = run(ROOT / "examples" / "rank_diagnoses.py", capsys)
    answers = re.findall(r"^  ([A-Z]\w\w)  0\.\d+", out, flags=re.MULTILINE)
    assert answers[0] == "J45"
    assert float(re.search(r"^R1 (\S+)", out, flags=re.MULTILINE)[1]) > 0.4  # type: ignore[index]


def test_new_classes_are_learned(capsys: Any) -> None:
    lines = run(ROOT / "examples" / "learn_new_classes.py", capsys).splitlines()[1:]
    rows = [[float(cell) for cell in line.split()] for line in lines]
    assert [row[1] for row in rows] == [40 * (day + 2) for day in range(len(rows))]
    assert all(after > before for *_, before, after in rows)


def test_settings_are_searched(capsys: Any) -> None:
    out = run(ROOT / "examples" / "search_settings.py", capsys)
    assert len(re.findall(r"^R1 0\.\d+", out, flags=re.MULTILINE)) == 6
    assert "best: " in out


@pytest.fixture(scope="module")
def drawing() -> str:
    return DRAWING.read_text(encoding="utf-8")


def test_every_example_is_tested() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    assert [example.name for example in EXAMPLES if example.name not in source] == []


def test_the_drawing_names_functions_that_exist(drawing: str) -> None:
    homes = {
        "read_documents": "abound.read",
        "TextVectorizer.fit_transform": "abound",
        "TextVectorizer.transform": "abound",
        "check_rows": "abound.validation",
        "check_labels": "abound.validation",
        "FeatureFocusClassifier.fit": "abound",
        "index_": "abound.learn.base:RankingClassifier",
        "predict_topk": "abound.learn.base:RankingClassifier",
        "rank_topk": "abound.rank",
        "classes_": "abound.learn.base:RankingClassifier",
        "titles": "abound.learn.model:Model",
        "Model.save": "abound",
        "evaluate_labels": "abound.measure",
    }
    named = {name for text in re.findall(r'class="name"[^>]*>([^<]+)<', drawing) for name in text.split(", ")}
    assert named == set(homes)
    for name, home in homes.items():
        module, _, owner = home.partition(":")
        found = getattr(import_module(module), owner) if owner else import_module(module)
        for part in name.split("."):
            assert hasattr(found, part) or part in getattr(found, "__annotations__", {}), (home, name)
            found = getattr(found, part, None)


def test_the_drawing_shows_real_figures(drawing: str) -> None:
    from abound import FeatureFocusClassifier, TextVectorizer
    from abound.read import load_icd10

    data = load_icd10()
    vectoriser = TextVectorizer()
    X = vectoriser.fit_transform(data.train.text_bytes)
    learner = FeatureFocusClassifier().fit(X, data.train.labels)
    names, index = vectoriser.get_feature_names_out(), learner.index_
    words = " ".join(re.findall(r'class="mono"[^>]*>([^<]+)<', drawing))
    row = data.train.texts.index("Mild intermittent asthma with (acute) exacerbation")
    shown = [(X[[row]], names), (vectoriser.transform(["Allergic asthma"]), names)]
    expected = [f"{names[f]} {short(value)}" for x, names in shown for f, value in zip(x.indices, x.data, strict=True)]
    for word in ("asthma", "allergic"):
        low, high = index.indptr[vectoriser.vocabulary_[word] :][:2]
        expected += edges(learner.classes_[index.classes[low:high]], index.weights[low:high])
    labels, scores = learner.predict_topk(vectoriser.transform(["Allergic asthma"]), k=4)
    for label, score in zip(labels[0], scores[0], strict=True):
        assert re.search(rf"{label} [^=]*= {re.escape(short(score))}", words), (label, score)
    assert [entry for entry in expected if entry not in words] == []
    assert f"{learner.classes_.tolist().index('J45')} (J45)" in words
    assert f"{len(names):,} words" in drawing


def edges(labels: Any, weights: Any) -> list[str]:
    return [f"{label} {short(weight)}" for label, weight in zip(labels, weights, strict=True)]


def short(value: np.floating[Any]) -> str:
    """A figure as the drawing writes it."""
    return f"{value:.3f}".removeprefix("0")
