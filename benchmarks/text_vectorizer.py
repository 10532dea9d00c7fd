"""How much faster is `TextVectorizer` than scikit-learn's `TfidfVectorizer`, and is the matrix the same?

    python benchmarks/text_vectorizer.py DATA [--sets tib_ddc news20] [--repeats 5] [--ngrams 2] [--quick]

Both libraries get the same Python strings and the same options (float32, sublinear), in turns, on one core and on two;
the best of the repeats counts. The last columns are the same work from the bytes of the file, which needs no string for
each text. "difference" is the largest between two weights; the features must be the same and in the same order.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from abound.read.documents import read_documents
from abound.read.textbytes import TextBytes
from abound.vectorise.text import TextVectorizer
from record import Recorder

SETS = ("tib_ddc", "yso_finna_en", "news20", "wordnet_hypernym", "clinc150")
PROMISED = {"fit": (4.5, 8.0), "transform": (6.0, 10.0)}
"""How many times as fast on one core and on two."""


def best_of(repeats: int, method: str, ways: dict[str, tuple[Any, Any]]) -> tuple[dict[str, float], dict[str, Any]]:
    """Call the method of each vectoriser in turns, so that a busy moment meets all; return seconds and matrices."""
    best, matrices = dict.fromkeys(ways, float("inf")), {}
    for _ in range(repeats):
        for name, (vectorizer, texts) in ways.items():
            call = getattr(vectorizer, method)
            begin = time.perf_counter()
            matrices[name] = call(texts)
            best[name] = min(best[name], time.perf_counter() - begin)
    return best, matrices


def largest_difference(ours: Any, theirs: Any) -> float:
    """Compare two matrices; not a number if they have different features."""
    theirs.sort_indices()
    same = ours.shape == theirs.shape and np.array_equal(ours.indptr, theirs.indptr)
    same = same and np.array_equal(ours.indices, theirs.indices)
    return float(np.abs(ours.data - theirs.data).max(initial=0)) if same else float("nan")


def compare(train: TextBytes, test: TextBytes, options: dict[str, Any], repeats: int) -> list[dict[str, Any]]:
    """Return the figures of fitting and of transforming."""
    peer = TfidfVectorizer(dtype=np.float32, **options)
    one, two = TextVectorizer(n_jobs=1, **options), TextVectorizer(n_jobs=2, **options)
    rows = []
    for step, method, texts in (("fit", "fit_transform", train), ("transform", "transform", test)):
        strings = texts.to_list()
        ways = {
            "scikit-learn": (peer, strings),
            "one core": (one, strings),
            "two cores": (two, strings),
            "bytes, one": (one, texts),
            "bytes, two": (two, texts),
        }
        seconds, matrices = best_of(repeats, method, ways)
        ours = matrices["one core"]
        if any((ours != matrix).nnz for name, matrix in matrices.items() if name != "scikit-learn"):
            raise SystemExit(f"{step}: threads or bytes change the matrix")
        figures = {"MB": texts.n_bytes / 1e6, "features": ours.shape[1], "scikit-learn s": seconds["scikit-learn"]}
        for name in list(ways)[1:]:
            figures |= {f"{name} s": seconds[name], f"{name} ×": seconds["scikit-learn"] / seconds[name]}
        rows.append({"step": step, **figures, "difference": largest_difference(ours, matrices["scikit-learn"])})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--ngrams", type=int, default=1, help="greatest number of words in a feature")
    parser.add_argument("--quick", action="store_true", help="the smallest set, once; nothing is recorded")
    arguments = parser.parse_args()
    sets, repeats = (SETS[-1:], 1) if arguments.quick else (arguments.sets, arguments.repeats)
    options = {"sublinear_tf": True, "ngram_range": (1, arguments.ngrams)}

    compile_kernels = TextVectorizer(**options)
    compile_kernels.fit_transform(["once"])
    compile_kernels.transform(["again"])
    recorder = Recorder("text_vectorizer", __doc__, data=arguments.data, keep=not arguments.quick)
    words = "words" if arguments.ngrams == 1 else f"words to {arguments.ngrams}-grams"
    table = recorder.table(f"TextVectorizer against TfidfVectorizer, {words}", f"Best of {repeats}, in turns.")
    found: list[dict[str, Any]] = []
    for name in sets:
        train, test = (
            read_documents(arguments.data / name / f"{part}.tsv.gz").text_bytes for part in ("train", "test")
        )
        for row in compare(train, test, options, repeats):
            found.append(row)
            table.row({"set": name, "step": row["step"]}, {key: row[key] for key in row if key != "step"})
    for step, (on_one, on_two) in PROMISED.items():
        here = [row for row in found if row["step"] == step]
        holds = all(row["one core ×"] >= on_one and row["two cores ×"] >= on_two for row in here)
        table.target(holds, f"{step} is at least {on_one:g} times as fast on one core and {on_two:g} times on two")
    table.target(all(row["difference"] <= 1e-6 for row in found), "the matrices are the same, weights to 1e-6")


if __name__ == "__main__":
    main()
