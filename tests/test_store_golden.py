"""Files of every version of the format, which all later versions must read.

Run as a script, this adds the files of the current version; files of older versions are never written again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from abound.store import LazyStrings, open_arrays, pack_labels, pack_strings, save_arrays, unpack_labels
from abound.store.header import VERSION

FOLDER = Path(__file__).parent / "data" / "store"

LABELS = {
    "str": np.array(["cat", "été", ""]),
    "int": np.array([-5, 2**40]),
    "uint": np.array([0, 2**64 - 1], np.uint64),
    "float": np.array([0.5, -2.0]),
    "bool": np.array([False, True]),
    "object": np.fromiter([("a", 1), 2.5, "x", True, ("b", (None, -1))], dtype=object, count=5),
    "objectstr": np.array(["b", "a"], dtype=object),
}
FEATURES = ["the", "naïve", "狐", ""]


def contents() -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    names, offsets = pack_strings(FEATURES)
    arrays = {
        "index/indptr": np.array([0, 2, 2, 3, 4]),
        "index/classes": np.array([4, 0, 1, 2], np.int32),
        "index/weights": np.array([0.5, 0.25, 1, np.inf], np.float32),
        "state/counts": np.array([[1.5, np.pi], [-0.0, 1e300]]),
        "state/small": np.array([-128, 127], np.int8),
        "state/middle": np.array([-32768, 32767], np.int16),
        "state/flags": np.array([True, False, True]),
        "state/empty": np.empty((0, 2), np.float32),
        "state/scalar": np.array(42),
        "vectoriser/bytes": names,
        "vectoriser/offsets": offsets,
    }
    kinds = {}
    for which, classes in LABELS.items():
        packed, kinds[which] = pack_labels(classes)
        arrays.update({f"labels/{which}/{name}": array for name, array in packed.items()})
    meta = {"learner": "ff", "margin": 0.15, "titles": ["Wörter", None, True, -3], "labels": kinds}
    return arrays, meta


def write(folder: Path) -> Path:
    path = folder / f"version-{VERSION}.safetensors"
    arrays, meta = contents()
    save_arrays(path, arrays, meta, extra={"later": "kept"})
    return path


@pytest.mark.parametrize("path", sorted(FOLDER.glob("version-*.safetensors")), ids=lambda path: path.stem)
def test_files_of_every_version_are_read(path):
    stored = open_arrays(path)
    arrays, meta = contents()
    assert stored.version == int(path.stem.removeprefix("version-"))
    assert stored.meta == meta and stored.extra == {"later": "kept"}
    assert stored.keys() == arrays.keys()
    for name, array in arrays.items():
        assert (stored[name].dtype, stored[name].shape) == (array.dtype, array.shape)
        assert stored[name].tobytes() == array.tobytes()
    stored.section("index/").check_csr("indptr", "classes", 5)
    assert list(LazyStrings(stored["vectoriser/bytes"], stored["vectoriser/offsets"])) == FEATURES
    for which, classes in LABELS.items():
        back = unpack_labels(stored.section(f"labels/{which}/"), stored.meta["labels"][which])
        assert back.dtype == classes.dtype and back.tolist() == classes.tolist()


def test_each_version_has_its_file_and_the_writer_still_writes_the_newest(tmp_path):
    files = {path.name for path in FOLDER.iterdir()}
    assert files == {f"version-{version}.safetensors" for version in range(1, VERSION + 1)}
    assert write(tmp_path).read_bytes() == (FOLDER / f"version-{VERSION}.safetensors").read_bytes()


if __name__ == "__main__":
    write(FOLDER)
