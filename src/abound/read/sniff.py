"""Tell a file's format by its suffix, else by its first line."""

from __future__ import annotations

import re
from pathlib import PurePath

from abound.read.compression import Source
from abound.read.errors import FormatError
from abound.read.line_formats import LABEL_MARK
from abound.read.vector_blocks import find_header

DOCUMENT_FORMATS = ("tsv", "csv", "jsonl", "fasttext", "text")

SUFFIXES = {
    ".tsv": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".fasttext": "fasttext",
    ".ft": "fasttext",
    ".svm": "vectors",
    ".libsvm": "vectors",
    ".svmlight": "vectors",
    ".xmc": "vectors",
}

ENTRY = re.compile(rb"\d+:[-+.\deE]+")

LOOKED_AT = 2000
"""Bytes of the first line that decide."""


def suffix_format(name: str) -> str | None:
    """Return the format that a file's name tells.

    Parameters
    ----------
    name : str
        The name; ``.gz`` and ``.zst`` are looked through.

    Returns
    -------
    str or None
        A document format or ``"vectors"``; None if the suffix is another, such as ``.txt``.

    Examples
    --------
    >>> suffix_format("train.tsv.gz"), suffix_format("train.svm"), suffix_format("train.txt")
    ('tsv', 'vectors', None)
    """
    path = PurePath(name)
    if path.suffix in (".gz", ".zst"):
        path = path.with_suffix("")
    return SUFFIXES.get(path.suffix.lower())


def content_format(head: bytes) -> str | None:
    r"""Return the format that the first line tells.

    Parameters
    ----------
    head : bytes
        The beginning of the content.

    Returns
    -------
    str or None
        ``"vectors"`` for a header of whole numbers or a line of index:value; ``"fasttext"`` if it starts with
        ``__label__``; ``"jsonl"`` for a brace; ``"tsv"`` if it holds a tab; else None.

    Examples
    --------
    >>> content_format(b"cat,pet 1:0.5 3:2\n"), content_format(b"cat\ta small cat\n"), content_format(b"a cat\n")
    ('vectors', 'tsv', None)
    """
    lines = (line.strip(b"\r") for line in head.split(b"\n"))
    first = next((line for line in lines if line.strip() and not line.lstrip().startswith(b"#")), b"")
    if find_header(first)[0] is not None or _is_vector(first):
        return "vectors"
    if first.startswith(LABEL_MARK):
        return "fasttext"
    if first.startswith(b"{"):
        return "jsonl"
    return "tsv" if b"\t" in first else None


def _is_vector(line: bytes) -> bool:
    """Tell whether a line is labels, as one word but for spaces after commas, and entries, at least one of them."""
    line = line.partition(b"#")[0]
    words = re.sub(rb",[ \t]+", b",", line[:LOOKED_AT]).split()
    if len(line) > LOOKED_AT:
        words.pop()
    entries = words[1:] if words and b":" not in words[0] else words
    return bool(entries) and all(ENTRY.fullmatch(entry) for entry in entries)


def document_format(source: Source, labelled: bool) -> str:
    """Return the format of a text file.

    Parameters
    ----------
    source : Source
        The file.
    labelled : bool
        Whether labels are wanted; if not, a file that looks like nothing else is plain text.

    Returns
    -------
    str
        One of `DOCUMENT_FORMATS`.
    """
    by_suffix = suffix_format(source.name)
    if by_suffix is not None and by_suffix != "vectors":
        return by_suffix
    by_content = content_format(source.head())
    if by_content is not None and by_content != "vectors":
        return by_content
    if not labelled:
        return "text"
    raise FormatError(
        source.name,
        1,
        f"cannot tell the format: no suffix of a text format, no tab, no {LABEL_MARK.decode()}; pass format=, one of "
        f"{', '.join(DOCUMENT_FORMATS[:-1])}, or labelled=False for texts without labels",
        source.head(200).partition(b"\n")[0],
    )
