from __future__ import annotations

import json
import math
from functools import partial
from inspect import signature
from pathlib import Path

import numpy as np
import pytest

import abound
from abound import Model
from abound.learn.registry import LEARNERS
from abound.measure import evaluate_labels
from abound.read.documents import iter_documents, read_documents
from abound.read.formats import iter_vectors, read_vectors
from abound.serve import inputs
from abound.serve.output import plain
from abound.serve.predicting import rank_chunks
from cli_data import make_rows, run, run_json, write_svm, write_tsv


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    return write_tsv(tmp_path / "train.tsv", make_rows())


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    return write_svm(tmp_path / "train.svm", make_rows())


@pytest.fixture
def model(texts: Path, tmp_path: Path) -> Path:
    run("train", texts, "--learner", "ff", "--model", tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def vector_model(vectors: Path, tmp_path: Path) -> Path:
    run("train", vectors, "--learner", "ff", "--model", tmp_path / "vector_model")
    return tmp_path / "vector_model"


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every file many chunks."""
    monkeypatch.setattr(inputs, "iter_documents", partial(iter_documents, chunk_rows=7))
    monkeypatch.setattr(inputs, "iter_vectors", partial(iter_vectors, chunk_bytes=200))


def test_train_writes_a_model_that_python_loads(texts: Path, tmp_path: Path) -> None:
    path = tmp_path / "model"
    options = ("--learner", "ema", "--set", "passes=2", "--set", "rate=0.2", "--text", "ngram_range=1,2", "--seed", 7)
    report = run_json("train", texts, "--model", path, *options)
    assert (report["rows"], report["classes"], report["learner"]) == (120, 5, "ema")
    assert report["parameters"]["passes"] == 2
    assert len(report["history"]) == 2
    assert report["bytes"] == path.stat().st_size
    loaded = abound.load(path)
    assert isinstance(loaded, Model)
    assert loaded.estimator.get_params()["rate"] == 0.2
    assert loaded.estimator.get_params()["random_state"] == 7
    assert loaded.vectoriser is not None
    assert loaded.vectoriser.ngram_range == (1, 2)
    expected = abound.EMAClassifier(passes=2, rate=0.2, random_state=7)
    documents = read_documents(texts)
    X = abound.TextVectorizer(ngram_range=(1, 2)).fit_transform(documents.texts)
    again = expected.fit(X, documents.labels.to_y()).predict_topk(X, 3)
    np.testing.assert_array_equal(loaded.predict_topk(documents.texts, 3).labels, again.labels)


def test_without_a_learner_the_one_that_suits_the_data_is_taken(texts: Path, tmp_path: Path) -> None:
    path = tmp_path / "model"
    advised = run_json("compare", texts, "--explain")
    report = run_json("train", texts, "--model", path)
    assert report["learner"] == LEARNERS[advised["take"]].learner == run_json("inspect", path)["learner"]
    rule = advised["rules"][0]
    assert report["chosen"] == rule
    said = run("train", texts, "--model", path).stderr
    assert said.startswith(f"abound: taking the learner {advised['take']} ({rule['when']}): ")
    assert run("train", texts, "--learner", "ff", "--model", path).stderr == ""
    assert run_json("train", texts, "--learner", "ff", "--model", path)["chosen"] is None


def test_the_choice_knows_several_labels_and_what_must_go_on_learning(
    texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    several = write_tsv(tmp_path / "several.tsv", [(f"{label},drink", text) for label, text in make_rows()])
    for data in (texts, several):
        for online in ((), ("--online",)):
            taken = run_json("train", data, "--model", tmp_path / "model", *online)["chosen"]["take"]
            assert taken == run_json("compare", data, "--explain", *online)["take"]
            assert not online or hasattr(LEARNERS[taken], "partial_fit")
    run("learn", tmp_path / "model", several)
    refused = run("train", texts, "--model", tmp_path / "no", "--online", "--learner", "ind", code=2)
    assert "is not online" in refused.stderr
    monkeypatch.setattr("abound.compare.choose.SOME_CLASSES", 3)
    monkeypatch.setattr("abound.compare.choose.SOME_ROWS", 100)
    report = run_json("train", texts, "--model", tmp_path / "model", "--seed", 1)
    assert report["chosen"]["settings"] == {"n_trees": 3}
    assert (report["learner"], report["parameters"]["n_trees"]) == ("label-tree", 3)
    said = run("train", texts, "--model", tmp_path / "model", "--set", "n_trees=2").stderr
    assert "taking the learner label-tree n_trees=3 " in said
    assert run_json("inspect", tmp_path / "model")["parameters"]["n_trees"] == 2
    refused = run("train", several, "--model", tmp_path / "no", "--set", "nothing=1", code=2)
    assert "taking the learner" in refused.stderr and "has no parameter 'nothing'" in refused.stderr
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_goes_all_the_way(learner: str, texts: Path, tmp_path: Path) -> None:
    path = tmp_path / "model"
    run("train", texts, "-m", path, "-l", learner, "--jobs", 2, "--seed", 3)
    measures = run_json("evaluate", path, texts)["measures"]
    assert measures["R5"] == 1 or learner != "frequency"
    assert measures["R1"] > (0.1 if learner == "frequency" else 0.7)
    assert len(run("predict", path, texts, "-k", 3).stdout.splitlines()) == 120
    assert run_json("inspect", path)["learner"] == LEARNERS[learner].learner
    run("explain", path, "green leaf")
    run("prune", path, "--max-degree", 1, "--output", tmp_path / "pruned")
    assert (tmp_path / "pruned").stat().st_size <= path.stat().st_size
    if LEARNERS[learner]()._ranks_by_index():
        assert run_json("inspect", tmp_path / "pruned")["out_degrees"]["max"] <= 1


def test_validation_fraction_taxonomy_and_titles(texts: Path, tmp_path: Path) -> None:
    edges = "root\thot\nroot\tcold\nhot\ttea\nhot\tcoffee\ncold\tjuice\ncold\twater\ncold\tbeer\n"
    (tmp_path / "tree").write_text(edges)
    (tmp_path / "titles").write_text("tea\tLeaves in water\nbeer\tBarley in water\n")
    extras = ("--taxonomy", tmp_path / "tree", "--titles", tmp_path / "titles", "--validation-fraction", 0.25)
    report = run_json("train", texts, "--learner", "ff", "--model", tmp_path / "model", *extras)
    assert {"R1", "R5"} <= set(report["history"][0])
    assert run_json("evaluate", tmp_path / "model", texts)["measures"]["tree_loss"] >= 0
    line = run("predict", tmp_path / "model", "-", "-k", 1, "--json", input="green leaf kettle\n").stdout
    assert json.loads(line)["titles"] == ["Leaves in water"]
    assert run_json("inspect", tmp_path / "model")["taxonomy_nodes"] == 8


def test_folder_is_a_data_set(tmp_path: Path) -> None:
    folder = tmp_path / "drinks"
    folder.mkdir()
    write_tsv(folder / "train.tsv", make_rows(100, seed=1))
    test = write_tsv(folder / "test.tsv", make_rows(30, seed=2))
    run("train", folder, "--model", tmp_path / "model")
    first, second = (run_json("evaluate", tmp_path / "model", data) for data in (folder, test))
    assert first["rows"] == 30
    assert first["measures"] == second["measures"]


@pytest.mark.usefixtures("small_chunks")
def test_streamed_texts_rank_as_in_memory(model: Path, texts: Path, tmp_path: Path) -> None:
    documents = read_documents(texts)
    whole = Model.load(model).predict_topk(documents.texts, 3)
    streamed = [json.loads(line) for line in run("predict", model, texts, "-k", 3, "--json").stdout.splitlines()]
    assert [row["labels"] for row in streamed] == [
        [label for label in row if label is not None] for row in whole.labels.tolist()
    ]
    for row, scores in zip(streamed, whole.scores, strict=True):
        np.testing.assert_allclose(row["scores"], scores[: len(row["scores"])], rtol=1e-5)
    tabs = [line.split("\t") for line in run("predict", model, texts, "-k", 3).stdout.splitlines()]
    assert [row[0::2] for row in tabs] == [row["labels"] for row in streamed]
    assert [[float(score) for score in row[1::2]] for row in tabs] == [row["scores"] for row in streamed]
    chunks = list(rank_chunks(Model.load(model), iter_documents(texts, chunk_rows=7), 3))
    assert len(chunks) == 18


@pytest.mark.usefixtures("small_chunks")
def test_streamed_vectors_rank_as_in_memory(vector_model: Path, vectors: Path) -> None:
    rows = read_vectors(vectors)
    whole = Model.load(vector_model).predict_topk(rows.X, 2)
    streamed = [
        json.loads(line)["labels"]
        for line in run("predict", vector_model, vectors, "-k", 2, "--json").stdout.splitlines()
    ]
    assert streamed == [[label for label in row if label is not None] for row in whole.labels.tolist()]


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("kind", ["texts", "vectors"])
def test_evaluate_has_all_measures(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    path = request.getfixturevalue("model" if kind == "texts" else "vector_model")
    write = write_tsv if kind == "texts" else write_svm
    unseen = ("unknown", "green leaf cup")
    test = write(tmp_path / f"test.{'tsv' if kind == 'texts' else 'svm'}", [*make_rows(50, seed=9), unseen])
    found = run_json("evaluate", path, test)
    model = Model.load(path)
    if kind == "texts":
        documents = read_documents(test)
        labels, inputs_ = documents.labels, documents.texts
    else:
        rows = read_vectors(test, n_features=model.estimator.n_features_in_)
        labels, inputs_ = rows.labels, rows.X
    ranked = model.predict_topk(inputs_, 50).labels
    expected = evaluate_labels(labels.to_y(), ranked, classes=model.estimator.classes_)
    assert found["measures"] == pytest.approx(expected)
    assert found["rows"] == 51
    assert sum(row["labels"] for row in found["by_class_size"]) == 51
    assert found["edges"] == model.estimator.n_edges_
    assert run("evaluate", path, test).stdout.startswith("measure")


def test_multi_label_measures(tmp_path: Path) -> None:
    rows = [(f"{label},drink" if i % 2 else f"{label},drink,all", text) for i, (label, text) in enumerate(make_rows())]
    data = write_tsv(tmp_path / "train.tsv", rows)
    run("train", data, "--learner", "ff", "--model", tmp_path / "model", "--set", "passes=3")
    found = run_json("evaluate", tmp_path / "model", data)["measures"]
    model, documents = Model.load(tmp_path / "model"), read_documents(data)
    y, ranked = documents.labels.to_y(), model.predict_topk(documents.texts, 50).labels
    classes = model.estimator.classes_
    predicted = model.predict(documents.texts)
    assert found == pytest.approx(evaluate_labels(y, ranked, classes=classes, y_pred=predicted, y_train=y))
    assert {"P@1", "nDCG@5", "PSP@5"} <= set(found)


def test_nothing_found_is_null_in_json(texts: Path, model: Path, tmp_path: Path) -> None:
    strangers = write_tsv(tmp_path / "strangers.tsv", [("gin", "juniper"), ("rum", "cane")])
    assert run_json("evaluate", model, strangers)["measures"]["HR"] is None
    assert "∞" in run("evaluate", model, strangers).stdout
    assert plain([math.nan, -math.inf, np.float32(np.inf), np.int64(3), Path("a")]) == [None, None, None, 3, "a"]


def test_predict_needs_no_labels_and_writes_files(model: Path, texts: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone.txt"
    alone.write_text("".join(f"{text}\n" for _, text in make_rows()))
    expected = run("predict", model, texts).stdout
    assert run("predict", model, alone).stdout == expected
    assert run("predict", model, "-", input=alone.read_bytes()).stdout == expected
    assert "120 rows" in run("predict", model, alone, "--output", tmp_path / "ranked.tsv").stdout
    assert (tmp_path / "ranked.tsv").read_text() == expected
    report = run_json("predict", model, alone, "--output", tmp_path / "ranked.jsonl")
    assert report == {"output": str(tmp_path / "ranked.jsonl"), "rows": 120}
    assert (tmp_path / "ranked.jsonl").read_text() == run("predict", model, alone, "--json").stdout


def test_train_and_evaluate_from_standard_input(texts: Path, vectors: Path, tmp_path: Path) -> None:
    for file in (texts, vectors):
        run("train", file, "--model", tmp_path / "a")
        run("train", "-", "--model", tmp_path / "b", input=file.read_bytes())
        first = run_json("evaluate", tmp_path / "a", file)
        second = run_json("evaluate", tmp_path / "b", "-", input=file.read_bytes())
        assert first["measures"] == second["measures"]


def test_read_options(tmp_path: Path) -> None:
    lines = [f"{label};{text}\n" for label, text in make_rows()]
    (tmp_path / "train.dat").write_text("drink;words\n" + "".join(lines))
    options = ("format=csv", "delimiter=;", "label_column=drink", "text_column=words")
    pairs = [part for option in options for part in ("--read", option)]
    run("train", tmp_path / "train.dat", "--model", tmp_path / "model", *pairs)
    assert run_json("evaluate", tmp_path / "model", tmp_path / "train.dat", *pairs)["measures"]["R1"] > 0.9


def test_model_remembers_how_vectors_count(tmp_path: Path) -> None:
    rows = make_rows(150)
    train = write_svm(tmp_path / "train.svm", rows, first=0)
    assert any(" 0:" in line for line in train.read_text().splitlines())
    run("train", train, "--learner", "ff", "--model", tmp_path / "model")
    without_zero = [row for row in make_rows(40, seed=5) if "green" not in row[1]]
    test = write_svm(tmp_path / "test.svm", without_zero, first=0)
    assert not any(" 0:" in line for line in test.read_text().splitlines())
    assert run_json("evaluate", tmp_path / "model", test)["measures"]["R1"] > 0.9


def test_features_beyond_the_model_have_no_vote(vector_model: Path, tmp_path: Path) -> None:
    (tmp_path / "narrow.svm").write_text("tea 1:1 2:1\n")
    (tmp_path / "wide.svm").write_text("tea 1:1 2:1 5000:1\n")
    narrow, wide = (run("predict", vector_model, tmp_path / f"{name}.svm").stdout for name in ("narrow", "wide"))
    assert narrow == wide
    assert narrow.startswith("tea\t")


def test_learn_takes_in_new_classes_and_words(model: Path, texts: Path, tmp_path: Path) -> None:
    more = write_tsv(
        tmp_path / "more.tsv", [("mate", "gourd straw"), ("tea", "matcha whisk"), ("mate", "gourd hot")] * 4
    )
    before = model.read_bytes()
    report = run_json("learn", model, more, "--output", tmp_path / "grown")
    assert (report["rows"], report["classes"]) == (12, 6)
    assert model.read_bytes() == before
    python = Model.load(model)
    documents = read_documents(more)
    python.partial_fit(documents.texts, documents.labels)
    grown = Model.load(tmp_path / "grown")
    phrases = ["gourd straw", "matcha whisk", *read_documents(texts).texts]
    np.testing.assert_array_equal(grown.predict_topk(phrases, 3).labels, python.predict_topk(phrases, 3).labels)
    assert grown.predict(["gourd straw", "matcha whisk"]).tolist() == ["mate", "tea"]
    run("learn", model, more)
    assert run("predict", model, texts).stdout == run("predict", tmp_path / "grown", texts).stdout


def test_learn_takes_narrower_and_wider_vectors(vector_model: Path, tmp_path: Path) -> None:
    (tmp_path / "narrow.svm").write_text("chai 1:1\n" * 3)
    (tmp_path / "wide.svm").write_text("soda 90:1\n" * 3)
    assert run_json("learn", vector_model, tmp_path / "narrow.svm")["features"] == 26
    assert run_json("learn", vector_model, tmp_path / "wide.svm")["features"] == 90
    assert run("predict", vector_model, tmp_path / "wide.svm", "-k", 1).stdout.startswith("soda\t")


def test_model_of_python_with_numbers_as_labels(tmp_path: Path) -> None:
    rows = make_rows(100)
    numbers = {"tea": 10, "coffee": 20, "juice": 30, "water": 40, "beer": 50}
    vectorizer = abound.TextVectorizer()
    X = vectorizer.fit_transform([text for _, text in rows])
    y = [numbers[label] for label, _ in rows]
    Model(abound.FeatureFocusClassifier().fit(X, y), vectorizer).save(tmp_path / "model")
    data = write_tsv(tmp_path / "data.tsv", [(str(numbers[label]), text) for label, text in rows])
    assert run_json("evaluate", tmp_path / "model", data)["measures"]["R1"] > 0.9
    assert run_json("explain", tmp_path / "model", "green leaf", "--label", 10)["classes"][0]["label"] == 10
    assert run_json("learn", tmp_path / "model", data)["classes"] == 5
    write_tsv(tmp_path / "data.tsv", rows)
    assert "are whole numbers, but" in run("evaluate", tmp_path / "model", data, code=1).stderr


def test_inspect_adds_up(model: Path) -> None:
    found = run_json("inspect", model, "--examples", 3)
    learner = Model.load(model).estimator
    index = learner.index_
    assert sum(found["out_degrees"]["features"].values()) == found["features"] == index.n_features
    assert found["out_degrees"]["max"] == index.degrees.max()
    assert found["in_degrees"]["mean"] * found["classes"] == pytest.approx(found["voting_edges"])
    assert [entry["in_degree"] for entry in found["in_degrees"]["top"]] == sorted(index.indegrees.tolist())[:-4:-1]
    assert found["strong_edges"]["count"] == np.count_nonzero(index.weights > 0.9)
    assert all(edge["weight"] > 0.9 for edge in found["strong_edges"]["examples"])
    assert all(feature["sum"] < 0.25 for feature in found["leaky_features"]["examples"])
    assert sum(found["file"]["parts"].values()) == found["file"]["bytes"] == model.stat().st_size
    assert found["can_learn"] is True
    assert found["history"][0]["updates"] > 0
    shown = run("inspect", model).stdout
    assert "Strong edges" in shown
    assert "Leaky features" in shown


def test_inspect_names_strong_edges_and_leaky_features(tmp_path: Path) -> None:
    """A word of one class makes a strong edge; one that every class shares leaks, however rare others are."""
    labels = [f"c{number:03}" for number in range(200)]
    rows = [(label, f"the own{label}") for label in labels for _ in range(12)]
    order = np.random.default_rng(0).permutation(len(rows))
    data = write_tsv(tmp_path / "train.tsv", [rows[i] for i in order])
    run("train", data, "--learner", "ff", "--model", tmp_path / "model", "--set", "margin=1")
    found = run_json("inspect", tmp_path / "model")
    assert found["strong_edges"]["count"] == 200
    assert all(edge["feature"] == "own" + edge["label"] for edge in found["strong_edges"]["examples"])
    assert [feature["feature"] for feature in found["leaky_features"]["examples"]] == ["the"]


def test_rare_features_are_not_leaky(tmp_path: Path) -> None:
    data = write_tsv(tmp_path / "train.tsv", [(f"c{number}", f"word{number}") for number in range(30)])
    run("train", data, "--learner", "ff", "--model", tmp_path / "model")
    assert run_json("inspect", tmp_path / "model")["leaky_features"]["count"] == 0


def test_explain_adds_up(model: Path) -> None:
    text = "green leaf hot drink"
    found = run_json("explain", model, text, "-k", 3)["classes"]
    labels, scores = Model.load(model).predict_topk([text], 3)
    assert [entry["label"] for entry in found] == [label for label in labels[0].tolist() if label is not None]
    for entry, score in zip(found, scores[0].tolist(), strict=False):
        assert entry["score"] == pytest.approx(score)
        assert sum(value for _, value in entry["votes"]) == pytest.approx(score, rel=1e-4)
        assert {name for name, _ in entry["votes"]} <= set(text.split())
    one = run_json("explain", model, text, "--label", "tea")["classes"]
    assert [entry["label"] for entry in one] == ["tea"]
    assert "green" in run("explain", model, text).stdout
    assert run("explain", model, "-", input=text).stdout == run("explain", model, text).stdout


def test_explain_names_features_of_vectors(vector_model: Path, tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("".join(f"word{number}\n" for number in range(26)))
    plain_names = run_json("explain", vector_model, "1:1 2:1", "-k", 1)["classes"][0]["votes"]
    named = run_json("explain", vector_model, "1:1 2:1", "-k", 1, "--features", tmp_path / "names.txt")
    assert {name for name, _ in plain_names} == {"1", "2"}
    assert {name for name, _ in named["classes"][0]["votes"]} == {"word0", "word1"}
    strong = run_json("inspect", vector_model, "--features", tmp_path / "names.txt")["strong_edges"]["examples"]
    assert all(edge["feature"].startswith("word") for edge in strong)


def test_hashed_words_are_found_in_the_text(texts: Path, tmp_path: Path) -> None:
    run("train", texts, "--learner", "ff", "--model", tmp_path / "model", "--text", "hashing=4096")
    votes = run_json("explain", tmp_path / "model", "green leaf", "-k", 1)["classes"][0]["votes"]
    assert {name for name, _ in votes} == {"green", "leaf"}
    assert all(
        edge["feature"][0] == "#" for edge in run_json("inspect", tmp_path / "model")["strong_edges"]["examples"]
    )


def test_prune_makes_a_smaller_model(model: Path, texts: Path, tmp_path: Path) -> None:
    report = run_json("prune", model, "--max-edges", 20, "--min-weight", 0.05, "--output", tmp_path / "pruned")
    assert report["after"]["edges"] <= 20 < report["before"]["edges"]
    assert report["after"]["bytes"] == (tmp_path / "pruned").stat().st_size < report["before"]["bytes"]
    index = Model.load(model).estimator.index_.prune(max_edges=20, min_weight=0.05)
    again = Model.load(tmp_path / "pruned").estimator.index_
    np.testing.assert_array_equal(again.classes, index.classes)
    assert run_json("inspect", tmp_path / "pruned")["can_learn"] is False
    assert run_json("evaluate", tmp_path / "pruned", texts)["edges"] == index.n_edges


def test_learners_lists_them_with_their_defaults() -> None:
    found = run_json("learners")
    assert [entry["learner"] for entry in found] == list(LEARNERS)
    for entry in found:
        defaults = {name: p.default for name, p in signature(LEARNERS[entry["learner"]]).parameters.items()}
        assert entry["parameters"] == json.loads(json.dumps(defaults))
        assert entry["what"]
    assert "max_degree=25" in run("learners").stdout


def test_word_prediction_task_end_to_end(tmp_path: Path) -> None:
    (tmp_path / "novel.txt").write_text("the cat sat on the mat. the dog ran to the cat. " * 20)
    report = run_json("data", "austen", "--text", tmp_path / "novel.txt", "--output", tmp_path / "task")
    assert set(report["files"]) == {"train.svm", "test.svm", "features.txt"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["novel.txt", "task"]
    train, test = (read_vectors(tmp_path / "task" / f"{part}.svm") for part in ("train", "test"))
    names = (tmp_path / "task" / "features.txt").read_text().splitlines()
    assert len(train) + len(test) == 240
    assert train.X.shape[1] == test.X.shape[1] == len(names)
    assert set(train.labels.classes) == {"the", "cat", "sat", "on", "mat", "dog", "ran", "to"}
    run("train", tmp_path / "task", "--learner", "ff", "--model", tmp_path / "model")
    assert run_json("evaluate", tmp_path / "model", tmp_path / "task")["measures"]["R1"] > 0.8
    votes = run_json("explain", tmp_path / "model", "0:1", "--features", tmp_path / "task" / "features.txt")
    assert all("=" in name for entry in votes["classes"] for name, _ in entry["votes"])
