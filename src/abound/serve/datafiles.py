"""Data sets written as files: all of them, or none."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from abound.read.compression import written_beside
from abound.read.datasets import load_icd10
from abound.read.documents import Documents
from abound.read.writing import write_documents, write_vectors
from abound.vectorise.windows import make_word_task


def write_word_task(text: Path, folder: Path, *, random_state: Any = 0) -> list[Path]:
    """Write the word prediction task of JMLR 2009, made from a plain text.

    Parameters
    ----------
    text : Path
        The text.
    folder : Path
        Gets ``train.svm`` and ``test.svm``, with header and words as labels, and ``features.txt``, a name a line.
    random_state : int
        Decides which tenth of the words is for testing.

    Returns
    -------
    list of Path
        The files.
    """
    X_train, y_train, X_test, y_test, names = make_word_task(text, random_state=random_state)
    with filled_at_once(folder) as place:
        write_vectors(place / "train.svm", X_train, y_train, header=True)
        write_vectors(place / "test.svm", X_test, y_test, header=True)
        _write_lines(place / "features.txt", names.tolist())
    return [folder / name for name in ("train.svm", "test.svm", "features.txt")]


def write_icd10(folder: Path, split: str = "official", *, random_state: Any = 0) -> list[Path]:
    """Write the built-in diagnosis phrases.

    Parameters
    ----------
    folder : Path
        Gets ``train.tsv`` and ``test.tsv``, ``hierarchy.txt`` and ``labels.txt``, as
        `abound.read.datasets.load_dataset` reads them.
    split : {"official", "random"}
        Which training and test part.
    random_state : int
        Seed of the random split.

    Returns
    -------
    list of Path
        The files.
    """
    dataset = load_icd10(split, random_state)
    taxonomy: Any = dataset.taxonomy
    names = taxonomy.names.tolist()
    edges = [f"{names[parent]}\t{names[child]}" for parent, child in taxonomy.edges.tolist()]
    titles = [f"{name}\t{title}" for name, title in dataset.titles.items()]
    with filled_at_once(folder) as place:
        for part in ("train", "test"):
            rows = dataset.part(part)
            if isinstance(rows, Documents):
                write_documents(place / f"{part}.tsv", rows.texts, rows.labels)
        _write_lines(place / "hierarchy.txt", edges)
        _write_lines(place / "labels.txt", titles)
    return [folder / name for name in ("train.tsv", "test.tsv", "hierarchy.txt", "labels.txt")]


@contextmanager
def filled_at_once(folder: Path) -> Iterator[Path]:
    """Make a folder beside another one and, at the end of the block, move its files there; after an error none.

    Parameters
    ----------
    folder : Path
        Where the files shall be; made if it is missing, else files of the same names are replaced.

    Yields
    ------
    Path
        Where to write them.
    """
    folder = folder.absolute()
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file: give the name of a folder")
    beside = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
    beside.mkdir(parents=True)
    try:
        yield beside
        folder.mkdir(exist_ok=True)
        for file in sorted(beside.iterdir()):
            os.replace(file, folder / file.name)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _write_lines(path: Path, lines: list[str]) -> None:
    with written_beside(path) as file:
        file.write("".join(line + "\n" for line in lines).encode())
