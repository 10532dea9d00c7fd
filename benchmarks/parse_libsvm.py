"""How fast is a vector file parsed, against scikit-learn's `load_svmlight_file`, on one core?

    python benchmarks/parse_libsvm.py                     # made-up files of three shapes
    python benchmarks/parse_libsvm.py train.svm.gz ...    # files of your own

Each reader parses the same bytes, unpacked, from the page cache, on one thread. The time is CPU time, the best of
several runs after a first one that compiles. Both results are compared entry by entry.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from abound.read import read_vectors
from abound.read.compression import Source


def make_file(path: Path, n_bytes: int, spelling: str, n_entries: int, n_labels: int) -> None:
    """Write rows until the file has about so many bytes."""
    rng = np.random.default_rng(0)
    with open(path, "w") as out:
        while out.tell() < n_bytes:
            indices = np.unique(rng.integers(1, 500_000, rng.integers(1, 2 * n_entries)))
            values = rng.lognormal(size=len(indices))
            labels = ",".join(map(str, rng.integers(0, 10_000, rng.integers(1, n_labels + 1))))
            entries = " ".join(f"{i}:{spelling.format(value)}" for i, value in zip(indices, values, strict=True))
            out.write(f"{labels} {entries}\n")


SHAPES = {
    "binary words, 3 labels": ("1", 60, 3),
    "tf-idf, 6 digits": ("{:.6g}", 120, 1),
    "doubles, 17 digits": ("{:.17g}", 120, 1),
}


def best_time(read: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Return the CPU seconds of the quickest run, and its result."""
    result = read()
    best = np.inf
    for _ in range(repeats):
        begin = time.process_time()
        result = read()
        best = min(best, time.process_time() - begin)
    return best, result


def compare(name: str, file: Path, repeats: int) -> None:
    """Print one row of the table."""
    megabytes = file.stat().st_size / 1e6
    ours, vectors = best_time(lambda: read_vectors(file), repeats)
    theirs, (X, _) = best_time(
        lambda: load_svmlight_file(str(file), dtype=np.float32, multilabel=True, zero_based=vectors.zero_based),
        max(1, repeats // 2),
    )
    X.resize(vectors.X.shape)
    X.sort_indices()
    is_same = np.array_equal(X.indices, vectors.X.indices) and np.array_equal(X.data, vectors.X.data)
    print(
        f"{name:<28} {megabytes:8.1f} {len(vectors):9d} {vectors.X.nnz:11d} {megabytes / ours:10.0f} "
        f"{megabytes / theirs:12.0f} {theirs / ours:6.1f}x  {'equal' if is_same else 'DIFFERENT'}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="vector files, plain or compressed")
    parser.add_argument("--megabytes", type=int, default=60, help="size of the made-up files")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print(f"{'file':<28} {'MB':>8} {'rows':>9} {'entries':>11} {'abound MB/s':>10} {'sklearn MB/s':>12} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder, "plain.svm")
        for file in options.files:
            with Source(file) as source, open(plain, "wb") as out:
                for block in source.blocks():
                    out.write(block.data)
            compare(f"{file.parent.name}/{file.name}"[:28], plain, options.repeats)
        if not options.files:
            for name, (spelling, n_entries, n_labels) in SHAPES.items():
                make_file(plain, options.megabytes * 1_000_000, spelling, n_entries, n_labels)
                compare(name, plain, options.repeats)


if __name__ == "__main__":
    main()
