"""Data sets: the built-in diagnosis codes, and folders of files with a fixed naming."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from abound.read.documents import Documents, read_documents
from abound.read.errors import FormatError
from abound.read.formats import Vectors, read_vectors_alike
from abound.read.sniff import suffix_format
from abound.read.taxonomy import Taxonomy
from abound.read.taxonomy_files import read_titles
from abound.validation import check_choice, make_generator

PARTS = ("train", "valid", "test")
ICD10_ROOT = "ICD-10-CM"
RANDOM_TEST_SHARE = 0.2


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set with its official parts.

    Parameters
    ----------
    name : str
        Its name.
    train : Documents or Vectors
        The rows to learn from.
    valid, test : Documents, Vectors or None
        The rows to choose settings by, and to measure on. Their classes are numbered on their own.
    taxonomy : Taxonomy or None
        The taxonomy of the classes.
    titles : dict
        Human names of classes; may be empty.
    """

    name: str
    train: Documents | Vectors
    valid: Documents | Vectors | None
    test: Documents | Vectors | None
    taxonomy: Taxonomy | None
    titles: dict[str, str]

    def part(self, name: str) -> Documents | Vectors:
        """Return a part by its name.

        Parameters
        ----------
        name : {"train", "valid", "test"}
            The part.

        Returns
        -------
        Documents or Vectors
            Its rows.
        """
        check_choice("part", name, PARTS)
        rows: Documents | Vectors | None = getattr(self, name)
        if rows is None:
            raise ValueError(f"the data set {self.name} has no part {name!r}")
        return rows


def load_icd10(split: str = "official", random_state: Any = 0) -> Dataset:
    """Return diagnosis phrases and their three-character category of ICD-10-CM.

    The codes, their descriptions and inclusion terms come from the package ``simple-icd-10-cm``.

    Parameters
    ----------
    split : {"official", "random"}
        ``official`` trains on the descriptions of all codes at or below a category and tests on their inclusion terms,
        which is what doctors write. ``random`` puts both together and tests on a fifth of them; a category with few
        phrases may then be in the test part alone.
    random_state : int, RandomState or None
        Seed of the random split.

    Returns
    -------
    Dataset
        With the taxonomy chapter > block(s) > category, and titles of all its nodes.
    """
    check_choice("split", split, ("official", "random"))
    codes = _icd10_package()
    described: list[tuple[str, str]] = []
    included: list[tuple[str, str]] = []
    paths: list[list[str]] = []
    for code in dict.fromkeys(codes.get_all_codes(True)):
        if codes.is_category(code):
            # A block of one category has the category's name; it is left out.
            above = [name for name in codes.get_ancestors(code) if name != code]
            paths.append([ICD10_ROOT, *reversed(above), code])
        if codes.is_category_or_subcategory(code):
            described.append((codes.get_description(code), code[:3]))
            included += [(term, code[:3]) for term in codes.get_inclusion_term(code)]
    titles = {name: codes.get_description(name) for path in paths for name in path[1:]}
    taxonomy = Taxonomy.from_paths(paths, kind="tree", titles={ICD10_ROOT: ICD10_ROOT, **titles})
    if split == "official":
        train, test = _documents(described), _documents(included)
    else:
        both = _documents(described + included)
        order = make_generator(random_state).permutation(len(both))
        n_test = round(RANDOM_TEST_SHARE * len(both))
        train, test = both.take(np.sort(order[n_test:])), both.take(np.sort(order[:n_test]))
    return Dataset("icd10", train, None, test, taxonomy, titles)


def load_dataset(
    folder: str | os.PathLike[str], *, variant: str = "", group_column: str | int | None = None
) -> Dataset:
    """Read a folder with ``train``, ``valid`` and ``test`` files.

    Parameters
    ----------
    folder : str or path
        Holds ``train`` and, if there are, ``valid`` and ``test``, each with a suffix of a text or vector format
        (``train.tsv.gz``, ``train.svm``); ``hierarchy.txt``, ``parent child`` a line; ``labels.txt``,
        ``label<TAB>title`` a line.
    variant : str
        Stands between the part's name and the suffix: ``"_std"`` reads ``train_std.svm``.
    group_column : str or int, optional
        See `abound.read.documents.read_documents`.

    Returns
    -------
    Dataset
        Vectors of all parts have the same width and count features alike.
    """
    place = Path(folder)
    if not place.is_dir():
        raise FileNotFoundError(f"{place} is no folder")
    files = {part: _part_file(place, part + variant) for part in PARTS}
    if files["train"] is None:
        raise FileNotFoundError(f"{place} has no file train{variant} with the suffix of a text or vector format")
    found = {part: file for part, file in files.items() if file is not None}
    formats = {suffix_format(file.name) == "vectors" for file in found.values()}
    if len(formats) > 1:
        raise FormatError(str(place), None, "some parts are texts and some are vectors")
    rows: dict[str, Documents | Vectors]
    if formats == {True}:
        if group_column is not None:
            raise ValueError(f"group_column={group_column!r}: the vectors in {place} have no columns to group by")
        rows = dict(zip(found, read_vectors_alike(list(found.values())), strict=True))
    else:
        rows = {part: read_documents(file, group_column=group_column) for part, file in found.items()}
    titles_file, hierarchy = place / "labels.txt", place / "hierarchy.txt"
    titles = read_titles(titles_file) if titles_file.exists() else {}
    taxonomy = Taxonomy.from_file(hierarchy, titles=titles) if hierarchy.exists() else None
    return Dataset(place.name, rows["train"], rows.get("valid"), rows.get("test"), taxonomy, titles)


def _part_file(folder: Path, stem: str) -> Path | None:
    files = [file for file in sorted(folder.glob(f"{stem}.*")) if suffix_format(file.name) is not None]
    if len(files) > 1:
        raise FormatError(str(folder), None, f"two files for one part: {files[0].name} and {files[1].name}")
    return files[0] if files else None


def _documents(phrases: list[tuple[str, str]]) -> Documents:
    return Documents.of([text for text, _ in phrases], [label for _, label in phrases])


def _icd10_package() -> Any:
    try:
        with warnings.catch_warnings():
            # The package reads its files through functions of the standard library that are on their way out.
            warnings.filterwarnings("ignore", r"(read_text|open_text|pkg_resources) is deprecated", DeprecationWarning)
            warnings.filterwarnings("ignore", r"pkg_resources is deprecated", UserWarning)
            import simple_icd_10_cm
    except ImportError:
        raise ImportError("builtin:icd10 needs the package simple-icd-10-cm: pip install 'abound[demo]'") from None
    return simple_icd_10_cm
