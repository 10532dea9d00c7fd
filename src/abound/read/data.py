"""One door to all data: a file, a folder or a built-in set becomes documents or vectors."""

from __future__ import annotations

import os
from pathlib import Path

from abound.read.compression import Source
from abound.read.datasets import load_dataset, load_icd10
from abound.read.disk_rows import is_disk_rows, open_rows
from abound.read.documents import Documents, read_documents
from abound.read.formats import Vectors, read_vectors
from abound.read.sniff import DOCUMENT_FORMATS, content_format, suffix_format
from abound.validation import check_choice

BUILTIN = "builtin:"
ROWS = "rows"
SPLITS = {"icd10": "official", "icd10-random": "random"}


def read_data(
    source: str | os.PathLike[str],
    *,
    part: str = "train",
    format: str | None = None,
    labelled: bool = True,
    allow_unlabelled: bool = False,
    zero_based: bool | None = None,
    n_features: int | None = None,
    label_separator: str | None = ",",
    text_column: str = "text",
    label_column: str | None = None,
    delimiter: str = ",",
    group_column: str | int | None = None,
) -> Documents | Vectors:
    r"""Read texts or vectors, whichever the source holds.

    A name that begins with ``builtin:`` is a built-in set (``builtin:icd10``, ``builtin:icd10-random``), a folder is
    read by `load_dataset`, all else is a file. Its suffix tells the format, under ``.gz`` or ``.zst``: ``.tsv``,
    ``.csv``, ``.jsonl``, ``.ndjson``, ``.fasttext`` and ``.ft`` are texts, ``.svm``, ``.libsvm``, ``.svmlight`` and
    ``.xmc`` are vectors. For other suffixes and standard input the first line does that is neither blank nor a comment:
    two or three whole numbers, or labels and index:value, are vectors; ``__label__`` is fastText; a brace is JSONL; a
    tab is TSV; and, with ``labelled=False``, anything else is a text a line. A file that ``abound convert`` has written
    is mapped, not read.

    Parameters
    ----------
    source : str or path
        A built-in set, a folder, a file, or ``-`` for standard input.
    part : {"train", "valid", "test"}
        The part of a built-in set or folder.
    format : {"tsv", "csv", "jsonl", "fasttext", "text", "vectors", "rows"}, optional
        Overrides the rules above.
    labelled : bool
        False if labels are not needed, as for predicting.
    allow_unlabelled : bool
        Whether single rows may lack a label.
    zero_based, n_features
        For vectors, see `read_vectors`.
    label_separator, text_column, label_column, delimiter, group_column
        For texts, see `read_documents`.

    Returns
    -------
    Documents or Vectors
        The rows.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "train.txt")
    ...     _ = file.write_text("__label__cat a small cat\n__label__dog a dog\n")
    ...     read_data(file).texts
    ['a small cat', 'a dog']
    """
    name = os.fspath(source)
    if name.startswith(BUILTIN):
        short = name.removeprefix(BUILTIN)
        if short not in SPLITS:
            known = ", ".join(BUILTIN + known for known in SPLITS)
            raise ValueError(f"{name} is no built-in data set; there are {known}")
        _check_groups(name, group_column)
        return load_icd10(SPLITS[short]).part(part)
    if name != "-" and Path(name).is_dir():
        return load_dataset(name, group_column=group_column).part(part)
    if format == ROWS or (format is None and is_disk_rows(name)):
        if zero_based is not None or n_features is not None:
            raise ValueError(f"{name} holds rows on disk, which know zero_based and n_features themselves")
        _check_groups(name, group_column)
        return open_rows(name)
    with Source(name) as opened:
        if format is None:
            format = suffix_format(name) or content_format(opened.head())
        else:
            check_choice("format", format, (*DOCUMENT_FORMATS, "vectors", ROWS))
        if format == "vectors":
            _check_groups(name, group_column)
            return read_vectors(
                opened,
                zero_based=zero_based,
                n_features=n_features,
                allow_unlabelled=allow_unlabelled or not labelled,
            )
        return read_documents(
            opened,
            format=format,
            labelled=labelled,
            allow_unlabelled=allow_unlabelled,
            label_separator=label_separator,
            text_column=text_column,
            label_column=label_column,
            delimiter=delimiter,
            group_column=group_column,
        )


def _check_groups(name: str, group_column: str | int | None) -> None:
    if group_column is not None:
        raise ValueError(f"group_column={group_column!r}: {name} has no columns to group by; TSV, CSV and JSONL have")
