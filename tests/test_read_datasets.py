"""The built-in data set and folders of files."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np
import pytest

from abound.read import FormatError, iter_vectors, load_dataset, load_icd10, read_data, read_documents, read_vectors

DATA = Path(__file__).parent / "data" / "read"


@pytest.fixture(scope="module")
def icd10():
    pytest.importorskip("simple_icd_10_cm", reason="the extra demo is not installed")
    return load_icd10()


def test_icd10_has_descriptions_to_learn_and_inclusion_terms_to_test(icd10):
    assert 90_000 < len(icd10.train) < 110_000
    assert 10_000 < len(icd10.test) < 15_000
    assert icd10.train.labels.kind == "single"
    assert 1_850 < icd10.train.labels.n_classes < 2_000
    assert set(icd10.test.labels.classes) <= set(icd10.train.labels.classes)
    assert all(len(label) == 3 for label in icd10.train.labels.classes)
    place = icd10.train.texts.index("Cholera due to Vibrio cholerae 01, biovar eltor")
    assert icd10.train.labels.to_y()[place] == "A00"


def test_icd10_taxonomy(icd10):
    taxonomy = icd10.taxonomy
    assert taxonomy.is_tree
    assert sorted(taxonomy.leaves) == sorted(icd10.train.labels.classes)
    assert taxonomy.path("A00") == ["ICD-10-CM", "1", "A00-A09", "A00"]
    assert len(taxonomy.children("ICD-10-CM")) == 22
    assert taxonomy.title("A00") == icd10.titles["A00"] == "Cholera"
    assert taxonomy.parent("B99") == "1"


def test_icd10_random_split(icd10):
    first, again = load_icd10("random", random_state=3), load_icd10("random", random_state=3)
    other = load_icd10("random", random_state=4)
    assert first.test.texts[:50] == again.test.texts[:50] != other.test.texts[:50]
    everything = sorted(icd10.train.texts + icd10.test.texts)
    assert sorted(first.train.texts + first.test.texts) == everything
    assert abs(len(first.test) / len(everything) - 0.2) < 0.001
    with pytest.raises(ValueError, match="split"):
        load_icd10("half")


def test_icd10_through_the_door(icd10):
    assert len(read_data("builtin:icd10")) == len(icd10.train)
    assert len(read_data("builtin:icd10", part="test")) == len(icd10.test)
    assert len(read_data("builtin:icd10-random", part="test")) > len(icd10.test)
    with pytest.raises(ValueError, match="no part 'valid'"):
        read_data("builtin:icd10", part="valid")


def test_icd10_without_its_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "simple_icd_10_cm", None)
    with pytest.raises(ImportError, match=r"pip install 'abound\[demo\]'"):
        load_icd10()


def test_a_folder_of_texts(tmp_path):
    (tmp_path / "train.tsv.gz").write_bytes(gzip.compress(b"cat\ta cat\ndog\ta dog\n"))
    (tmp_path / "test.jsonl").write_text('{"text": "another", "label": "dog"}\n')
    (tmp_path / "SOURCE.md").write_text("by hand")
    data = load_dataset(tmp_path)
    assert data.train.texts == ["a cat", "a dog"] and data.test.texts == ["another"]
    assert data.valid is None and data.taxonomy is None and data.titles == {}
    (tmp_path / "hierarchy.txt").write_text("root cat\nroot dog\n")
    (tmp_path / "labels.txt").write_text("cat\tthe cat\ndog\tthe dog\n")
    data = load_dataset(tmp_path)
    assert data.taxonomy.title("cat") == data.titles["cat"] == "the cat"
    assert read_data(tmp_path, part="test").texts == ["another"]
    with pytest.raises(ValueError, match="no part 'valid'"):
        read_data(tmp_path, part="valid")


def test_a_folder_of_vectors_has_one_width(tmp_path):
    (tmp_path / "train.svm").write_text("a 0:1 3:1\n")
    (tmp_path / "valid.svm").write_text("a 1:1 9:1\n")
    (tmp_path / "test.svm").write_text("b 2:1\n")
    (tmp_path / "train_std.svm").write_text("a 5:1\n")
    data = load_dataset(tmp_path)
    assert {part.X.shape[1] for part in (data.train, data.valid, data.test)} == {10}
    assert data.test.X.indices.tolist() == [2]
    assert load_dataset(tmp_path, variant="_std").train.X.shape == (1, 5)


def test_folders_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file train"):
        load_dataset(tmp_path)
    with pytest.raises(FileNotFoundError, match="no folder"):
        load_dataset(tmp_path / "nowhere")
    (tmp_path / "train.svm").write_text("a 1:1\n")
    (tmp_path / "train.tsv").write_text("a\tone\n")
    with pytest.raises(FormatError, match=r"train\.svm and train\.tsv"):
        load_dataset(tmp_path)
    (tmp_path / "train.svm").rename(tmp_path / "test.svm")
    with pytest.raises(FormatError, match="texts and some are vectors"):
        load_dataset(tmp_path)
    (tmp_path / "test.svm").unlink()
    (tmp_path / "labels.txt").write_text("a\tone\nb\n")
    with pytest.raises(FormatError, match=r"labels\.txt, line 2: expected label<TAB>title"):
        load_dataset(tmp_path)


def test_stored_files():
    xmc = read_vectors(DATA / "repository.txt")
    assert xmc.X.shape == (4, 10) and xmc.labels.to_y() == [["0", "3"], ["2"], [], ["3", "0", "1"]]
    assert xmc.X[0].toarray().ravel()[[0, 9]].tolist() == [np.float32(0.084556), np.float32(1.25e-3)]
    for suffix in (".gz", ".zst"):
        packed = read_vectors(DATA / f"repository.txt{suffix}")
        assert (packed.X != xmc.X).nnz == 0
    lshtc = read_vectors(DATA / "lshtc.svm")
    assert lshtc.labels.to_y() == [["314523", "165538"], ["21631"]] and lshtc.X.shape == (2, 1250537)
    assert sum(len(chunk) for chunk in iter_vectors(DATA / "lshtc.svm", chunk_bytes=1)) == 2
    texts = read_documents(DATA / "windows.tsv")
    assert texts.texts == ["größe und maß", "two words"]
