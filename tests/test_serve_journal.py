"""The journal and what a model learns from it: nothing lost, nothing twice, and always the same model."""

from __future__ import annotations

import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abound import Model, TextVectorizer
from abound.serve.appending import Appender
from abound.serve.follower import Follower, snapshot_path
from abound.serve.journal import Correction, Journal, JournalError, Proposal, journal_path
from abound.serve.student import count_known, own_copy
from cli_data import run, run_json
from serve_data import fingerprint, make_lessons, make_model, make_vector_model

LEARNERS = ("pa", "mmp", "perceptron", "ff", "ema", "ooz", "unweighted")


def proposals(n: int, seed: int = 0) -> list[Proposal]:
    return [Proposal(Correction((label,), text), "v") for label, text in make_lessons(n, seed)]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {name: make_model(folder / name, name) for name in LEARNERS}


@pytest.fixture
def model(models: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copy(models["pa"], tmp_path / "model"))


def open_new(model: Path) -> Journal:
    return Journal(journal_path(model), create=True)


def learned(model: Path, journal: Journal, **more: bool) -> str:
    follower = Follower(model, journal, **more)
    follower.catch_up()
    return fingerprint(follower.freeze())


def test_entries_come_back_as_they_were(model: Path) -> None:
    given_ = [
        Correction(("tea",), "Grüner Tee \U0001f375 \u2028 \x00"),
        Correction((3, 5), None, ((0, 0.5), (7, -1.25))),
        Correction(("new",), "mate", None, "Mate tea"),
    ]
    with closing(open_new(model)) as journal:
        assert journal.append([Proposal(one, "v1", None) for one in given_]) == [1, 2, 3]
        entries = journal.after(0)
        assert [entry.correction for entry in entries] == given_
        assert {entry.version for entry in entries} == {"v1"}
        assert journal.count() == 3


def test_the_same_request_is_written_once(model: Path) -> None:
    with closing(open_new(model)) as journal:
        once = Proposal(Correction(("tea",), "leaf"), "v", "a")
        assert journal.append([once, once]) == [1, 1]
        assert journal.append([once]) == [1]
        assert journal.append([Proposal(Correction(("beer",), "leaf"), "v", "a")]) == [-1]
        assert journal.last() == 1


def test_undo_is_checked(model: Path) -> None:
    with closing(open_new(model)) as journal:
        journal.append(proposals(2))
        assert journal.undo(1, "v") == 3
        for entry, said in ((1, "taken back already"), (3, "takes back entry 1"), (9, "no entry 9")):
            with pytest.raises(JournalError, match=said):
                journal.undo(entry, "v")
        assert (journal.count(), journal.last()) == (1, 3)


def test_a_failed_transaction_leaves_nothing(model: Path) -> None:
    with closing(open_new(model)) as journal:
        bad = Proposal(Correction((object(),), "leaf"), "v")
        with pytest.raises(TypeError):
            journal.append([*proposals(3), bad])
        assert journal.last() == 0
        assert journal.append(proposals(1)) == [1]


def test_waiting_corrections_share_a_transaction(model: Path) -> None:
    with closing(open_new(model)) as journal:
        appender = Appender(journal)
        with ThreadPoolExecutor(8) as pool:
            futures = list(pool.map(appender.append, proposals(200)))
        assert sorted(future.result() for future in futures) == list(range(1, 201))
        used = appender.append(Proposal(Correction(("tea",), "x"), "v", "mine"))
        clash = appender.append(Proposal(Correction(("beer",), "x"), "v", "mine"))
        assert used.result() == 201
        with pytest.raises(JournalError, match="'mine' was used for another correction, entry 201"):
            clash.result()
        appender.close()


def test_what_is_no_journal_is_refused(model: Path) -> None:
    with pytest.raises(JournalError, match="no journal; a server"):
        Journal(journal_path(model))
    journal_path(model).write_bytes(b"something else" * 100)
    with pytest.raises(JournalError, match="is no journal"):
        Journal(journal_path(model))


def test_a_journal_of_another_format_is_refused(model: Path) -> None:
    open_new(model).close()
    with closing(sqlite3.connect(journal_path(model))) as connection:
        connection.execute("UPDATE about SET value = '2' WHERE name = 'format'")
        connection.commit()
    with pytest.raises(JournalError, match="another version of abound"):
        Journal(journal_path(model))


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_model_does_not_depend_on_where_it_was_cut(learner: str, models: dict[str, Path], tmp_path: Path) -> None:
    model = Path(shutil.copy(models[learner], tmp_path / "model"))
    with closing(open_new(model)) as journal:
        journal.append(proposals(80))
        whole = learned(model, journal, use_snapshot=False)
        rng = np.random.default_rng(3)
        follower = Follower(model, journal)
        while follower.applied < 80:
            follower.advance(int(rng.integers(1, 12)))
            follower.freeze()
            if rng.random() < 0.5:
                assert follower.save_snapshot()
                follower = Follower(model, journal)
        assert fingerprint(follower.freeze()) == whole


def test_a_frozen_model_does_not_change(model: Path) -> None:
    with closing(open_new(model)) as journal:
        journal.append(proposals(60))
        follower = Follower(model, journal)
        seen = []
        while follower.applied < 60:
            frozen = follower.freeze()
            seen.append((frozen, fingerprint(frozen), frozen.predict_topk(["green leaf n3"], 3).scores.tolist()))
            follower.advance(7)
        for frozen, digest, scores in seen:
            assert fingerprint(frozen) == digest
            assert frozen.predict_topk(["green leaf n3"], 3).scores.tolist() == scores
        assert len({digest for _, digest, _ in seen}) == len(seen)


def test_one_example_is_enough(model: Path) -> None:
    with closing(open_new(model)) as journal:
        follower = Follower(model, journal)
        assert follower.freeze().predict(["green leaf"]).tolist() == ["tea"]
        journal.append([Proposal(Correction(("matcha",), "green leaf", None, "Powdered tea"), "v")])
        (one,) = follower.advance()
        frozen = follower.freeze()
        assert (one.outcome.was_right, frozen.predict(["green leaf"]).tolist()) == (False, ["matcha"])
        assert 1 < one.outcome.tries <= 20
        assert frozen.titles is not None and frozen.titles["matcha"] == "Powdered tea"
        assert follower.save_snapshot()
        again = Follower(model, journal).freeze()
        assert again.titles is not None and (again.titles["matcha"], again.titles["tea"]) == (
            "Powdered tea",
            "Tea and the like",
        )


def test_texts_without_words_teach_nothing(model: Path) -> None:
    with closing(open_new(model)) as journal:
        journal.append([Proposal(Correction(("tea",), " ? "), "v")])
        follower = Follower(model, journal)
        assert [one.outcome.tries for one in follower.advance()] == [0]
        assert follower.applied == 1


def test_known_words_take_the_short_way(models: dict[str, Path]) -> None:
    short, long = (own_copy(Model.load(models["pa"])).vectoriser for _ in range(2))
    assert short is not None and long is not None
    for text, is_known in (("green LEAF, green", True), ("", True), ("green mate", False), ("mate", False)):
        assert count_known(short, text) == is_known
        if not is_known:
            short.partial_fit([text])
        long.partial_fit([text])
        assert short.to_arrays()[1]["n_documents"] == long.to_arrays()[1]["n_documents"]
    assert short.vocabulary_ == long.vocabulary_
    assert abs(short.transform(["green mate"]) - long.transform(["green mate"])).max() == 0
    assert not count_known(TextVectorizer(ngram_range=(1, 2)).fit(["green tea"]), "green tea")
    assert not count_known(TextVectorizer(hashing=64).fit(["green tea"]), "green tea")


def test_vectors_may_have_new_features(tmp_path: Path) -> None:
    model = make_vector_model(tmp_path / "model")
    with closing(open_new(model)) as journal:
        journal.append([Proposal(Correction((7,), None, ((11, 1.0), (2, 0.5))), "v")])
        follower = Follower(model, journal)
        follower.catch_up()
        frozen = follower.freeze()
        assert frozen.estimator.n_features_in_ == 12
        assert frozen.predict(np.eye(12)[[11]]).tolist() == [7]


@settings(max_examples=15)
@given(steps=st.lists(st.sampled_from(["learn", "undo", "cut", "begin"]), max_size=25), seed=st.integers(0, 5))
def test_undoing_is_as_if_it_had_never_been_learned(
    steps: list[str], seed: int, models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    model = Path(shutil.copy(models["pa"], tmp_path_factory.mktemp("undo") / "model"))
    rng = np.random.default_rng(seed)
    fresh = iter(proposals(100, seed))
    live: list[int] = []
    with closing(open_new(model)) as journal:
        follower = Follower(model, journal)
        for step in steps:
            if step == "learn":
                live += journal.append([next(fresh) for _ in range(3)])
            elif step == "undo" and live:
                journal.undo(live.pop(int(rng.integers(len(live)))), "v")
            elif step == "cut":
                follower.advance(int(rng.integers(1, 5)))
                follower.save_snapshot()
            elif step == "begin":
                follower = Follower(model, journal)
        follower.catch_up()
        entries = {entry.id: entry.correction for entry in journal.entries()}
    clean = Path(shutil.copy(models["pa"], model.with_name("clean")))
    with closing(open_new(clean)) as journal:
        journal.append([Proposal(correction, "v") for i in live if (correction := entries[i]) is not None])
        assert fingerprint(follower.freeze()) == learned(clean, journal)


def test_a_snapshot_that_does_not_fit_is_left_aside(models: dict[str, Path], model: Path) -> None:
    with closing(open_new(model)) as journal:
        journal.append(proposals(20))
        follower = Follower(model, journal)
        follower.catch_up()
        assert follower.save_snapshot() and not follower.save_snapshot()
        snapshot = snapshot_path(model)
        content = snapshot.read_bytes()
        snapshot.write_bytes(content[:-100])
        assert Follower(model, journal).applied == 0
        snapshot.write_bytes(content)
        assert Follower(model, journal).applied == 20
        journal.undo(20, "v")
        assert Follower(model, journal).applied == 0
        shutil.copy(models["ff"], model)
        assert Follower(model, journal).applied == 0
        assert learned(model, journal) == learned(model, journal, use_snapshot=False)


def test_a_model_that_cannot_learn_leaves_the_journal_alone(model: Path) -> None:
    with closing(open_new(model)) as journal:
        journal.append(proposals(3))
        loaded = Model.load(model)
        loaded.save(model, keep_state=False)
        follower = Follower(model, journal)
        assert (follower.can_learn, follower.catch_up(), follower.applied) == (False, 0, 0)


def test_retrained_models_go_on_from_their_mark(model: Path, tmp_path: Path) -> None:
    with closing(open_new(model)) as journal:
        journal.append(proposals(30))
        whole = learned(model, journal)
        report = run_json("journal", model, "retrain", "--output", tmp_path / "anew")
        assert report == {"model": str(tmp_path / "anew"), "corrections": 30, "entry": 30}
        assert fingerprint(Model.load(tmp_path / "anew")) == whole
        shutil.move(tmp_path / "anew", model)
        follower = Follower(model, journal)
        assert (follower.applied, follower.catch_up()) == (30, 0)
        refused = run("journal", model, "undo", 5, code=1)
        assert "entry 5 is part of" in refused.stderr
        journal.append(proposals(31)[30:])
        assert run_json("journal", model, "undo", 31)["undone"] == [31]
        assert learned(model, journal) == whole


def test_journal_command(model: Path, tmp_path: Path) -> None:
    assert "there is no journal" in run("journal", model, code=1).stderr
    with closing(open_new(model)) as journal:
        journal.append([Proposal(Correction(("tea",), "green leaf " * 20), "v1", "mine"), *proposals(4)])
    assert "green leaf green leaf" in run("journal", model).stdout
    assert run("journal", model, "undo", 2, 3).stdout == "undone: 2, 3\n"
    entries = run_json("journal", model, "list")["entries"]
    assert [entry["undone"] for entry in entries] == [None, 6, 7, None, None]
    assert entries[0] | {"at": ""} == {
        "entry": 1,
        "at": "",
        "version": "v1",
        "id": "mine",
        "labels": ["tea"],
        "text": "green leaf " * 20,
        "undone": None,
    }
    assert len(run_json("journal", model, "--last", 2)["entries"]) == 2
    assert "3 corrections" in run("journal", model, "export", "-o", tmp_path / "more.tsv").stdout
    assert len((tmp_path / "more.tsv").read_text().splitlines()) == 3
    run("learn", model, tmp_path / "more.tsv", "-o", tmp_path / "learned")
    for wrong in (["undo"], ["list", 3], ["export"], ["list", "-o", "x"], ["nonsense"]):
        run("journal", model, *wrong, code=2)


def test_journal_command_exports_vectors(tmp_path: Path) -> None:
    model = make_vector_model(tmp_path / "model")
    with closing(open_new(model)) as journal:
        journal.append([Proposal(Correction((3,), None, ((9, 1.0), (0, 0.5))), "v")])
    run("journal", model, "export", "-o", tmp_path / "more.svm")
    assert (tmp_path / "more.svm").read_text() == "1 10 1\n3 0:0.5 9:1\n"
    run("journal", model, "export", "-o", tmp_path / "more.jsonl")
    assert '"features": [[9, 1.0], [0, 0.5]]' in (tmp_path / "more.jsonl").read_text()
