"""Model files that somebody has changed are refused, or used without harm, whatever is asked of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from abound import FeatureFocusClassifier, LabelTreeClassifier, MMPClassifier, Model, PAClassifier
from abound.serve.inspecting import inspect_model
from abound.store import ModelFileError, open_arrays, save_arrays
from fuzz_models import LISTS, NAMES, TREE, X, make_models, model_case
from fuzzing import PLANTED, attempt, long_run


@pytest.fixture(scope="module")
def few(tmp_path_factory: Any) -> tuple[Any, Any]:
    """Files of a few learners, and a folder."""
    models = {
        "ff": Model(FeatureFocusClassifier(calibrate="platt").fit(X, NAMES)),
        "pa": Model(PAClassifier().fit(X, LISTS), None, TREE, {"c1": "one"}),
        "mmp": Model(MMPClassifier(cut="scut", calibrate="isotonic").fit(X, LISTS)),
    }
    folder = tmp_path_factory.mktemp("models")
    return make_models(folder, models), folder


def test_changed_files_are_refused_or_harmless(few: Any) -> None:
    case = model_case(*few)
    told = [attempt(case, seed) for seed in range(40)]
    assert [each for each in told if each["kind"] == "finding"] == []
    assert {each["kind"] for each in told} >= {"refused", "used"}


def test_what_a_case_raises_is_found() -> None:
    def raises(seed: int) -> str:
        return "used" if seed else str(1 // seed)

    assert [attempt(raises, seed)["kind"] for seed in (0, 1)] == ["finding", "used"]
    assert "ZeroDivisionError" in attempt(raises, 0)["why"]


@pytest.mark.parametrize("name", ["state/seen", "state/totals"])
def test_what_is_inspected_is_checked(name: str, tmp_path: Path) -> None:
    """Counts of fewer features than there are led past their end."""
    path = tmp_path / "model"
    FeatureFocusClassifier().fit(X, NAMES).save(path)
    assert inspect_model(path)["features"] == X.shape[1]
    stored = open_arrays(path)
    save_arrays(path, {each: array[: 1 if each == name else None] for each, array in stored.items()}, stored.meta)
    with pytest.raises(ModelFileError, match=f"array '{name}': .* was expected"):
        inspect_model(path)


def test_a_number_of_features_that_nothing_bears_out_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "model"
    LabelTreeClassifier().fit(X, NAMES).save(path)
    stored = open_arrays(path)
    arrays, meta = {name: array.copy() for name, array in stored.items()}, stored.meta
    meta["estimator"]["n_features_in"] = 2**31 - 1
    save_arrays(path, arrays, meta)
    with pytest.raises(ValueError, match=r"2147483647 features; .*\(the limit is 2 GiB\)"):
        inspect_model(path)


@pytest.mark.long
def test_many_changed_files_are_refused_or_harmless() -> None:
    told = long_run()["models"]
    assert told["findings"] == {}
    assert told["cases"] == sum(told["outcomes"].values()) >= 2000


@pytest.mark.long
def test_what_breaks_a_fork_is_found() -> None:
    told = long_run()["planted"]
    assert {why: each["seeds"] for why, each in told["findings"].items()} == PLANTED
    assert told["outcomes"] == {"used": 2, "finding": 2, "broken": 2}
