"""`abound compare`: options, the table, the report, and the advice without training."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from abound.compare import launch
from abound.compare.child import _teller
from abound.compare.choose import HINTS, RULES, Traits, advise, default_learners
from abound.compare.grid import GRID
from abound.learn.registry import LEARNERS, make_learner
from abound.progress import heard, track
from cli_data import make_rows, run, run_json, write_svm, write_tsv
from compare_data import answer_here

PAGE = Path(__file__).parents[1] / "docs" / "choose.md"


@pytest.fixture
def train(tmp_path: Path) -> Path:
    return write_tsv(tmp_path / "train.tsv", make_rows(120))


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "_answer", answer_here)


def test_processes_report_and_rows(train: Path) -> None:
    report = train.parent / "report.html"
    found = run_json("compare", train, "--learners", "ind, frequency", "--report", report, "--jobs", 1)
    assert [line["learner"] for line in found["learners"]] == ["ind", "frequency"]
    assert found["take"] == "ind" and found["left_out"] == []
    assert found["command"].startswith(f"abound train {train} --learner ind")
    assert "<svg" in report.read_text() and "train.tsv" in report.read_text()
    rows = [json.loads(line) for line in (train.parent / "report.jsonl").read_text().splitlines()]
    assert [row["experiment"]["learner"] for row in rows] == ["ind", "frequency"]
    assert all(row["timings"]["wall"] > 0 and row["memory"]["peak"] > 10**7 for row in rows)


def test_the_table(train: Path, here: None) -> None:
    output = run("compare", train, "--learners", "ff,svm", "--splits", 2, "--jobs", 1).stdout
    assert "Learners on train.tsv, best first" in output and "±" in output
    assert "For train.tsv: take " in output and "--learner" in output


def test_the_command_it_gives_trains_that_learner(train: Path, here: None) -> None:
    found = run_json("compare", train, "--learners", "ff", "--text", "ngram_range=1,2", "--jobs", 1)
    words = shlex.split(found["command"])
    assert words[0] == "abound"
    model = train.parent / "model"
    trained = run_json(*[model if word == "model.safetensors" else word for word in words[1:]])
    assert trained["parameters"]["passes"] == found["learners"][0]["parameters"]["passes"]


def test_vectors_and_a_taxonomy(tmp_path: Path, here: None) -> None:
    file = write_svm(tmp_path / "rows.svm", make_rows(120))
    tree = tmp_path / "tree.txt"
    tree.write_text("hot tea\nhot coffee\ncold juice\ncold water\ncold beer\nroot hot\nroot cold\n")
    found = run_json("compare", file, "--learners", "svm,ind", "--taxonomy", tree, "--jobs", 1)
    assert "--text" not in found["command"] and f"--taxonomy {tree}" in found["command"]
    assert found["traits"]["taxonomy"] == "tree" and "tree_loss" in found["learners"][0]


def test_failures_are_told(train: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> dict[str, Any]:
        return {"error": {"kind": "crash", "message": "its process was ended by SIGSEGV"}}

    monkeypatch.setattr(launch, "_answer", fail)
    report = train.parent / "report.html"
    output = run("compare", train, "--learners", "ff,frequency", "--jobs", 1, "--report", report, code=1).stdout
    assert "Left out: ff: its process was ended by SIGSEGV" in output
    assert "More time or memory would not help ff" in output
    assert "no learner has a result" in output and "SIGSEGV" in report.read_text()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            {"kind": "time", "message": "late"},
            "--time-limit 16m would do for ff (a guess: how far it was is not known)",
        ),
        ({"kind": "time", "message": "late", "needs": 150.0}, "--time-limit 13m would do for ff (judged by how far it"),
        ({"kind": "memory", "message": "full"}, "Give more memory (--memory-limit), or leave out what needs too much"),
    ],
)
def test_a_baseline_is_not_recommended_for_being_the_only_one(
    error: dict[str, Any], said: str, train: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def only_frequency(experiment: Any, *rest: Any) -> dict[str, Any]:
        return answer_here(experiment, *rest) if experiment.learner == "frequency" else {"error": error}

    monkeypatch.setattr(launch, "_answer", only_frequency)
    report = train.parent / "report.html"
    options = ("--learners", "ff,frequency,svm", "--jobs", 1, "--time-limit", "4m", "--report", report)
    found = json.loads(run("compare", train, *options, "--json", code=1).stdout)
    assert found["take"] is None and found["command"] is None
    assert [line["learner"] for line in found["learners"]] == ["frequency"]
    first, what = found["recommendation"]
    assert "nothing finished but frequency, which only guesses" in first and "Cut off: ff, svm" in first
    assert said in what
    assert what in unescape(report.read_text()) and "abound train" not in report.read_text()
    alone = run_json("compare", train, "--learners", "frequency", "--jobs", 1)
    assert alone["take"] == "frequency"


def test_a_learner_that_took_too_long_says_how_long_it_needs(tmp_path: Path) -> None:
    done = tmp_path / "done"
    assert launch._projected(done, 20.0) == {}
    told = _teller(done)
    with heard(told), track("learn", 8) as outer:
        with track("a part", 2) as inner:
            inner.advance(1)
        assert not done.exists()
        outer.advance(2)
        assert launch._projected(done, 20.0) == {"needs": 80.0}
    done.write_text("1.0")
    assert launch._projected(done, 20.0) == {}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--learners", "nobody"], "no learner is called 'nobody'"),
        (["--learners", ","], "no learner is named"),
        (["--time-limit", "soon"], "'soon' is no time"),
        (["--time-limit", "0"], "'0' is no time"),
        (["--memory-limit", "much"], "'much' is no size"),
        (["--memory-limit", "1MB"], "at least 512.0 MB"),
        (["--calibrate", "luck"], "calibrate='luck'"),
        (["--text", "nothing=1"], "has no parameter 'nothing'"),
        (["--report", "."], "is a folder"),
        (["--report", "rows.jsonl"], "would hold the rows as well"),
        (["--rows", "missing/rows.jsonl"], "does not exist"),
        (["--jobs", "0"], "n_jobs=0"),
        (["--splits", "0"], "--splits"),
    ],
)
def test_wrong_usage(options: list[str], said: str, train: Path) -> None:
    result = run("compare", train, *options, code=2)
    assert said in " ".join(result.stderr.replace("│", " ").split())


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from abound.serve.cli import app; app(['compare', '--help'], standalone_mode=False); "
        "assert not {'numpy', 'scipy', 'sklearn', 'numba'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "") and "--time-limit" in done.stdout


def test_explain(train: Path) -> None:
    found = run_json("compare", train, "--explain")
    assert found["take"] == "pa" and found["traits"]["classes"] == 5 and found["traits"]["rows"] == 120
    output = run("compare", train, "--explain", "--online").stdout
    assert "Take pa (the model must go on learning)" in " ".join(output.split())
    assert "Also worth trying" in output


TRAITS = Traits(98_000, 1_900, 8.0, 1.0, 18.0, "tree", online=False)


def test_some_rule_always_holds_and_names_a_learner() -> None:
    for rows in (100, 10**6):
        for classes in (3, 10**5):
            for labels in (1.0, 5.0):
                for online in (False, True):
                    taken, hints = advise(Traits(rows, classes, 10.0, labels, rows / classes, None, online))
                    assert taken.take in LEARNERS and all(hint.take in LEARNERS for hint in hints)
                    if online:
                        assert hasattr(LEARNERS[taken.take], "partial_fit")
    assert {rule.take for rule in (*RULES, *HINTS)} <= set(LEARNERS)


def test_defaults_are_what_the_rules_name() -> None:
    learners = default_learners(TRAITS)
    assert learners[0] == "frequency" and {"pa", "hr-svm", "svm", "ff"} <= set(learners)
    assert len(set(learners)) == len(learners)


def test_the_page_has_the_same_rules() -> None:
    """docs/choose.md shows RULES and HINTS, row by row."""
    lines = [
        [cell.strip() for cell in line.strip("| \n").split("|")]
        for line in PAGE.read_text().splitlines()
        if "|" in line
    ]
    shown = [(when, take.strip("`"), why) for when, take, why in (line for line in lines if len(line) == 3)]
    expected = [(rule.when, rule.shown, rule.why) for rule in (*RULES, *HINTS)]
    assert [row for row in shown if row[1].split()[0] in LEARNERS] == expected
    for rule in (*RULES, *HINTS):
        assert set(rule.settings) <= set(make_learner(rule.take).get_params())


def test_the_page_names_every_setting() -> None:
    page = (PAGE.parent / "compare.md").read_text()
    for learner, settings in GRID.items():
        (line,) = [
            line for line in page.splitlines() if line.startswith("| `") and f"`{learner}`" in line.split("|")[1]
        ]
        for name, value in ((name, value) for setting in settings for name, value in setting.items()):
            assert f"{value:g}" in line if isinstance(value, int | float) else name == "loss" or value in line


def test_the_pages_say_what_ten_times_the_classes_were_measured_to_cost() -> None:
    """The latest table of `benchmarks/results/label_tree.jsonl` decides."""
    root = PAGE.parents[1]
    lines = (root / "benchmarks" / "results" / "label_tree.jsonl").read_text().splitlines()
    table = "Label trees and the number of classes"
    grown = [row for row in map(json.loads, lines) if row.get("table") == table and "figures" in row]
    latest = [row["figures"] for row in grown if row["date"] == max(row["date"] for row in grown)]
    times = {
        what: sorted(figures[f"{what}, times the last"] for figures in latest if f"{what}, times the last" in figures)
        for what in ("training", "ranking")
    }
    said = {what: f"{found[0]:.1f} to {found[-1]:.1f} times the {what}" for what, found in times.items()}
    for page in ("README.md", "docs/choose.md", "docs/algorithms/label-tree.md", "docs/cluster.md", "CHANGELOG.md"):
        text = " ".join((root / page).read_text().split())
        assert re.search(rf"en times the classes of the same [^.]*rows[^.]* cost[^.]* {said['training']}", text), page
        assert "times the ranking" not in text or said["ranking"] in text
