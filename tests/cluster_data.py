"""Workers of every kind, small rows to train on, and what makes two models the same."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from abound import (
    CommitteeClassifier,
    ExpertsClassifier,
    LabelTreeClassifier,
    LinearClassifier,
    OutputCodeClassifier,
    PAClassifier,
    RecursiveClassifier,
    SequentialClassifier,
    Taxonomy,
)
from abound.compare.experiment import without_clock
from abound.compare.protocol import Plan, compare
from abound.compare.rows import RowFile
from abound.learn.persist import learner_arrays
from compare_data import compare_here, make_dataset

STORE_BYTES = 80 * 2**20

TREE = Taxonomy.from_edges([("root", f"node {i}") for i in range(6)] + [(f"node {i % 6}", str(i)) for i in range(70)])

GRAPH = Taxonomy.from_edges([(str(i), str((i * 7 + 1) % 70)) for i in range(70)], kind="graph")

LEARNERS = [
    CommitteeClassifier([PAClassifier(), LinearClassifier(cluster="processes")], n_seeds=2, keep_passes=(1, 2)),
    ExpertsClassifier(min_confusion=1),
    LabelTreeClassifier(n_trees=2, arity=16, max_leaf=4),
    OutputCodeClassifier(n_bits=40),
    SequentialClassifier(n_classifiers=40),
    RecursiveClassifier(max_rounds=3, round_tol=0.0),
    RecursiveClassifier(TREE, max_rounds=3, round_tol=0.0),
    RecursiveClassifier(TREE, loss="logistic", max_rounds=2),
    RecursiveClassifier(GRAPH, max_rounds=3, round_tol=0.0),
    LinearClassifier(),
    LinearClassifier(loss="logistic", C="cv", C_grid=(0.1, 1.0), n_folds=2),
]
"""Every learner that distributes its training."""


def make_rows(n_rows: int = 240, n_features: int = 60, n_classes: int = 70) -> tuple[Any, Any]:
    """Rows whose classes are not quite by chance; every class has some."""
    generator = np.random.default_rng(5)
    y = np.concatenate([np.arange(n_classes), generator.integers(n_classes, size=n_rows - n_classes)])
    X = sp.random_array((n_rows, n_features), density=0.1, rng=generator, format="lil", dtype=np.float32)
    X[np.arange(n_rows), y % n_features] = 1
    return X.tocsr(), y


def plain(value: Any) -> Any:
    """What a model file says of a model, but for how long things took."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items() if name not in ("seconds", "n_jobs")}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def assert_same_model(one: Any, other: Any) -> None:
    """All that a model file holds is equal, bit for bit."""
    (arrays, meta), (other_arrays, other_meta) = learner_arrays(one), learner_arrays(other)
    assert arrays.keys() == other_arrays.keys()
    for name, array in arrays.items():
        assert array.dtype == other_arrays[name].dtype, name
        assert array.tobytes() == other_arrays[name].tobytes(), name
    assert plain(meta) == plain(other_meta)


@contextmanager
def two_nodes() -> Iterator[Any]:
    """A Ray cluster of two nodes with one processor each, on loopback."""
    import ray
    from ray.cluster_utils import Cluster

    from abound.distribute.ray_cluster import on_loopback

    with warnings.catch_warnings(), on_loopback():
        warnings.simplefilter("ignore")
        node = {"num_cpus": 1, "object_store_memory": STORE_BYTES, "node_ip_address": "127.0.0.1"}
        cluster = Cluster(initialize_head=True, head_node_args=node | {"include_dashboard": False})
        cluster.add_node(**node)
        ray.init(address=cluster.address, log_to_driver=False, configure_logging=False)
        try:
            yield cluster
        finally:
            ray.shutdown()
            cluster.shutdown()


def open_doors(*, also_loopback: bool = False) -> list[str]:
    """Addresses, as /proc has them, at which this process or its descendants listen; those beyond loopback."""
    parents: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
    family = {os.getpid()}
    while more := {process for process, parent in parents.items() if parent in family} - family:
        family |= more
    sockets = set()
    for process in family:
        for number in Path(f"/proc/{process}/fd").glob("*"):
            with suppress(OSError):
                sockets.add(os.readlink(number))
    listening = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                listening.append(fields[1].partition(":")[0])
    loopback = ("0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000")
    return listening if also_loopback else [address for address in listening if address not in loopback]


def check_side_by_side(monkeypatch: Any, cluster: str, n_workers: int, *learners: str) -> None:
    """A comparison on a cluster has the rows of one that runs experiment after experiment."""
    dataset, plan = make_dataset(120), Plan(learners, time_limit=3600.0)
    with monkeypatch.context() as patch:
        alone = compare_here(patch, dataset, plan)
    with RowFile(None) as rows:
        apart = compare(dataset, replace(plan, cluster=cluster, n_workers=n_workers), rows)
    for one, other in zip(alone.contenders, apart.contenders, strict=True):
        assert other.error is None
        for name in ("tried", "tests"):
            found, expected = getattr(other, name), getattr(one, name)
            assert [without_clock(row) for row in found] == [without_clock(row) for row in expected]
