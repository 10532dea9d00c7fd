"""The journal and what a model learns from it: nothing lost, nothing twice, and always the same model."""

from __future__ import annotations

import logging
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
from abound.serve.journal import Correction, Journal, JournalError, Proposal, StorageError, journal_path
from abound.serve.served import ServedModel
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


def remove_journal(model: Path) -> None:
    for path in model.parent.glob(f"{model.name}.journal*"):
        path.unlink()


def break_journal(model: Path) -> None:
    """Overwrite what is behind the first page."""
    path = journal_path(model)
    size = path.stat().st_size
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))


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


def test_a_snapshot_of_another_journal_is_left_aside(model: Path, caplog: pytest.LogCaptureFixture) -> None:
    with closing(open_new(model)) as journal:
        journal.append(proposals(20))
        follower = Follower(model, journal)
        follower.catch_up()
        assert follower.save_snapshot()
    remove_journal(model)
    assert Follower(model, None).applied == 0
    assert f"{snapshot_path(model)} is left aside: the journal that it has learned from is not there" in caplog.text
    caplog.clear()
    with closing(open_new(model)) as journal:
        follower = Follower(model, journal)
        assert f"{snapshot_path(model)} is left aside: it has learned corrections that" in caplog.text
        assert fingerprint(follower.freeze()) == fingerprint(Follower(model, None).freeze())
        journal.append(proposals(3, seed=7))
        assert (follower.catch_up(), follower.save_snapshot()) == (3, True)
        caplog.clear()
        assert Follower(model, journal).applied == 3
    assert caplog.text == ""


def test_a_journal_that_was_put_back_is_not_mistaken_for_the_newer_one(model: Path, tmp_path: Path) -> None:
    with closing(open_new(model)) as journal:
        journal.append(proposals(10))
    shutil.copy(journal_path(model), tmp_path / "backup")
    with closing(Journal(journal_path(model))) as journal:
        journal.append(proposals(20, seed=1))
        follower = Follower(model, journal)
        follower.catch_up()
        assert follower.save_snapshot()
        follower.save(tmp_path / "anew")
    remove_journal(model)
    shutil.move(tmp_path / "backup", journal_path(model))
    with closing(Journal(journal_path(model))) as journal:
        assert Follower(model, journal).applied == 0
        journal.append(proposals(25, seed=2))
        assert Follower(model, journal).applied == 0
        assert learned(model, journal) == learned(model, journal, use_snapshot=False)
    shutil.move(tmp_path / "anew", model)
    with (
        closing(Journal(journal_path(model))) as journal,
        pytest.raises(JournalError, match=r"up to entry '30' of .*old"),
    ):
        Follower(model, journal)


def test_a_retrained_model_says_that_its_journal_is_another(
    model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(open_new(model)) as journal:
        journal.append(proposals(5))
    run("journal", model, "retrain", "--output", tmp_path / "anew")
    remove_journal(model)
    shutil.move(tmp_path / "anew", model)
    served = ServedModel("model", model, accepts=False)
    assert f"{model} has learned up to entry '5' of a journal that is not beside it" in caplog.text
    served.close()
    caplog.clear()
    served = ServedModel("model", model, accepts=True)
    assert f"{model} has learned up to entry '5' of another journal than" in caplog.text
    assert served.append(Correction(("tea",), "leaf"), None).result() == 1
    served.close()


def test_a_damaged_journal_is_named(model: Path) -> None:
    with closing(open_new(model)) as journal:
        journal.append(proposals(300))
    break_journal(model)
    for words in (["journal", model], ["journal", model, "undo", 3], ["journal", model, "retrain", "-o", "x"]):
        said = run(*words, code=1).stderr
        assert str(journal_path(model)) in said and ".recover" in said and "damaged" in said
    with pytest.raises(StorageError, match="damaged"):
        ServedModel("model", model, accepts=True)


def test_an_entry_that_is_damaged_is_named(model: Path) -> None:
    with closing(open_new(model)) as journal:
        journal.append(proposals(3))
    for content in ("{", "[]", "{}", '{"labels": 3}', '{"labels": [1], "features": [[0]]}'):
        with closing(sqlite3.connect(journal_path(model))) as connection:
            connection.execute("UPDATE entries SET content = ? WHERE id = 2", (content,))
            connection.commit()
        with closing(Journal(journal_path(model))) as journal, pytest.raises(StorageError, match="entry 2 is damaged"):
            Follower(model, journal).catch_up()


def test_other_databases_are_refused(model: Path) -> None:
    with closing(sqlite3.connect(journal_path(model))) as connection:
        connection.execute("CREATE TABLE entries (a)")
        connection.commit()
    with pytest.raises(StorageError, match="this is no journal"):
        Journal(journal_path(model))


def test_a_full_disk_takes_nothing_and_says_so_once(model: Path, caplog: pytest.LogCaptureFixture) -> None:
    served = ServedModel("model", model, accepts=True)
    journal = served._journal
    assert journal is not None and served.append(Correction(("tea",), "leaf"), "a").result() == 1
    n_pages = journal._read("PRAGMA page_count")[0][0]
    journal._read(f"PRAGMA max_page_count = {n_pages}")
    for i in range(5):
        with pytest.raises(StorageError, match="full"):
            served.append(Correction(("tea",), "leaf " * 5000), f"large {i}").result()
    assert caplog.text.count("corrections are refused") == 1 and "Traceback" not in caplog.text
    journal._read("PRAGMA max_page_count = 1000000")
    assert served.append(Correction(("tea",), "leaf " * 5000), "large 0").result() == 2
    assert [entry.request for entry in journal.entries()] == ["a", "large 0"]
    served.close()


def test_a_journal_that_is_gone_takes_nothing(model: Path) -> None:
    with closing(open_new(model)) as journal:
        journal.append(proposals(1))
        remove_journal(model)
        with pytest.raises(StorageError, match="not the journal that was opened"):
            journal.append(proposals(1))
        with closing(open_new(model)), pytest.raises(StorageError, match="not the journal that was opened"):
            journal.undo(1, "v")


def test_corrections_that_are_given_up_do_not_stop_the_others(model: Path) -> None:
    served = ServedModel("model", model, accepts=True)
    appender, journal = served._appender, served._journal
    assert appender is not None and journal is not None
    with journal._lock:
        futures = [served.append(proposal.correction, None) for proposal in proposals(6)]
        given_up = [future.cancel() for future in futures[1:]]
    assert any(given_up) and futures[0].result() == 1
    waits = [served.when_learned(2) for _ in range(3)]
    assert not waits[0].cancel()
    entry = served.append(Correction(("tea",), "leaf"), None).result(timeout=60)
    assert entry == journal.last()
    served.when_learned(entry).result(timeout=60)
    for future in waits:
        future.result(timeout=60)
    served.close()


def test_a_snapshot_that_cannot_be_written_stops_nothing(model: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    snapshot_path(model).mkdir()
    served = ServedModel("model", model, accepts=True)
    entry = served.append(Correction(("beer",), "green leaf"), None).result()
    served.when_learned(entry).result(timeout=60)
    served.close()
    assert "no snapshot was written" in caplog.text and "Traceback" not in caplog.text
    snapshot_path(model).rmdir()
    served = ServedModel("model", model, accepts=True)
    assert served.version.model.predict(["green leaf"]).tolist() == ["beer"]
    served.close()


def test_counting_looks_at_what_is_new_only(model: Path) -> None:
    with closing(open_new(model)) as journal, closing(Journal(journal_path(model))) as other:
        for n in (3, 0, 2):
            journal.append(proposals(n))
            assert journal.count() == other.count() == journal.last()
        other.undo(2, "v")
        assert journal.count() == other.count() == 4


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
