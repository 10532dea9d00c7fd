"""How long does a saved model take to load, verified, and how much memory does each process pay for it?

    python benchmarks/model_load.py [--folder FOLDER] [--gigabytes 1] [--repeats 5]

Makes a model with the arrays of a real index (indptr, classes, weights, labels), then loads it in fresh processes from
a warm page cache: with abound (mapped, every checksum and the structure verified), with abound without the checksums,
and with safetensors.numpy.load_file, which copies and verifies nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from abound.store import lazy_labels, open_arrays, pack_labels, save_arrays

WAYS = ("abound", "abound, verify=False", "safetensors.numpy.load_file")


def make_model(path: Path, n_bytes: int) -> None:
    """Save an index whose rows are as uneven as those of words."""
    rng = np.random.default_rng(0)
    n_classes = max(10, n_bytes // 4000)
    labels, kind = pack_labels(np.array([f"category/{i % 997}/class number {i}" for i in range(n_classes)]))
    n_features = max(10, n_bytes // 700)
    spent = sum(array.nbytes for array in labels.values()) + 8 * (n_features + 1)
    n_edges = (n_bytes - spent) // 8
    cuts = np.sort((n_edges * rng.random(n_features - 1) ** 2).astype(np.int64))
    arrays = {
        "index/indptr": np.concatenate(([0], cuts, [n_edges])),
        "index/classes": rng.integers(0, n_classes, n_edges, dtype=np.int32),
        "index/weights": rng.random(n_edges, dtype=np.float32),
        **{f"labels/{name}": array for name, array in labels.items()},
    }
    before = anonymous()
    start = time.perf_counter()
    save_arrays(path, arrays, {"labels": kind, "n_classes": n_classes, "n_features": n_features})
    seconds = time.perf_counter() - start
    size = path.stat().st_size
    print(f"saved {size / 1e9:.3f} GB in {seconds:.2f} s, anonymous memory +{anonymous() - before:.1f} MB")


def anonymous() -> float:
    """Megabytes of memory that belong to this process alone."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


def load(way: str, path: Path) -> dict[str, float]:
    """Load once, in this process; used in a fresh one."""
    if way == "safetensors.numpy.load_file":
        from safetensors.numpy import load_file

        before, start = anonymous(), time.perf_counter()
        kept: object = load_file(path)
        return {"seconds": time.perf_counter() - start, "anonymous": anonymous() - before, "kept": kept is not None}
    before, start = anonymous(), time.perf_counter()
    stored = open_arrays(path, verify=way == "abound")
    opened = time.perf_counter()
    index = stored.section("index/")
    index.check_csr("indptr", "classes", stored.meta["n_classes"])
    index.require("indptr", np.int64, (stored.meta["n_features"] + 1,))
    index.require("weights", np.float32, index["classes"].shape)
    labels = lazy_labels(stored.section("labels/"), stored.meta["labels"])
    assert len(labels) == stored.meta["n_classes"]
    end = time.perf_counter()
    return {"seconds": end - start, "anonymous": anonymous() - before, "open": opened - start, "check": end - opened}


def in_fresh_process(way: str, path: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--load", way, str(path)]
    result: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result


def compare(path: Path, repeats: int) -> None:
    warm(path)
    best: dict[str, dict[str, float]] = {}
    worst: dict[str, float] = dict.fromkeys(WAYS, 0.0)
    for _ in range(repeats):
        for way in WAYS:
            result = in_fresh_process(way, path)
            worst[way] = max(worst[way], result["anonymous"])
            if way not in best or result["seconds"] < best[way]["seconds"]:
                best[way] = result
    peer = best[WAYS[-1]]["seconds"]
    load_now = os.getloadavg()[0]
    print(f"best of {repeats}, fresh processes, warm page cache, load {load_now:.1f}, numpy {np.__version__}")
    print(f"{'':30}{'seconds':>9}{'of it open':>12}{'structure':>11}{'anonymous MB':>14}{'ratio':>8}")
    for way in WAYS:
        row = best[way]
        parts = f"{row['open']:12.3f}{row['check']:11.3f}" if "open" in row else f"{'':23}"
        print(f"{way:30}{row['seconds']:9.3f}{parts}{worst[way]:14.1f}{row['seconds'] / peer:8.2f}")


def warm(path: Path) -> None:
    """Read the file once, so that it lies in the page cache."""
    with open(path, "rb") as file:
        while file.read(2**24):
            pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", help="where to put the model (default: a temporary folder)")
    parser.add_argument("--gigabytes", type=float, default=1.0, help="size of the model (default: 1)")
    parser.add_argument("--repeats", type=int, default=5, help="loads of each kind (default: 5)")
    parser.add_argument("--load", nargs=2, metavar=("WAY", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load:
        print(json.dumps(load(options.load[0], Path(options.load[1]))))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "model.safetensors"
        make_model(path, int(options.gigabytes * 1e9))
        compare(path, options.repeats)


if __name__ == "__main__":
    main()
