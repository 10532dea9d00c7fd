"""One model, wherever its parts are trained: threads, processes, a Ray cluster that loses a node."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sklearn.base import clone

from abound import LinearClassifier
from abound.distribute import workers
from abound.distribute.ray_cluster import _connect
from abound.learn import one_vs_rest
from cluster_data import LEARNERS, STORE_BYTES, assert_same_model, check_side_by_side, make_rows, two_nodes


@pytest.fixture(scope="module")
def processes() -> Iterator[str]:
    with workers(2, "processes"):
        yield "processes"


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[Any]:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'abound[cluster]'")
    with two_nodes() as cluster:
        yield cluster


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_threads_and_processes_give_the_same_model(learner: Any, processes: str) -> None:
    X, y = make_rows()
    alone = clone(learner).fit(X, y)
    assert_same_model(alone, clone(learner).set_params(n_jobs=2).fit(X, y))
    assert_same_model(alone, clone(learner).set_params(n_jobs=2, cluster=processes).fit(X, y))


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_a_ray_cluster_gives_the_same_model(learner: Any, ray_cluster: Any) -> None:
    X, y = make_rows()
    alone = clone(learner).fit(X, y)
    assert_same_model(alone, clone(learner).set_params(cluster=ray_cluster.address).fit(X, y))


def test_another_cluster_is_not_taken_for_the_one_wanted(ray_cluster: Any) -> None:
    with pytest.raises(ValueError, match=r"call ray.shutdown\(\) first"):
        LinearClassifier(cluster="127.0.0.1:1").fit([[1.0], [2.0]], [0, 1])


def test_a_cluster_that_does_not_answer_is_named() -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'abound[cluster]'")
    with pytest.raises(ConnectionError, match="nobody answers there"):
        _connect(1, "127.0.0.1:1")


def said_by(script: str) -> str:
    """The last line of a script's output, in a process of its own: this one may be connected to another cluster."""
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return done.stdout.splitlines()[-1]


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux tells who listens where")
def test_a_local_cluster_cannot_be_reached_from_outside() -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'abound[cluster]'")
    script = (
        "from abound.distribute import workers\n"
        "from cluster_data import open_doors\n"
        "with workers(1, 'local') as pool:\n"
        "    print(list(pool.map(abs, [-1])), open_doors(), len(open_doors(also_loopback=True)) > 0)\n"
    )
    assert said_by(script) == "[1] [] True"


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux tells who listens where")
def test_threads_and_processes_listen_nowhere_and_do_without_ray() -> None:
    script = (
        "import sys\n"
        "from abound import LinearClassifier\n"
        "from abound.distribute import workers\n"
        "from cluster_data import open_doors\n"
        "if __name__ == '__main__':\n"
        "    LinearClassifier(n_jobs=2).fit([[1.0], [2.0]], [0, 1])\n"
        "    with workers(2, 'processes') as pool:\n"
        "        print(list(pool.map(abs, [-1])), open_doors(also_loopback=True), 'ray' in sys.modules)\n"
    )
    assert said_by(script) == "[1] [] False"


def test_a_lost_node_leaves_the_same_model(ray_cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_rows(n_classes=160)
    alone = LinearClassifier().fit(X, y)
    nodes = [node for node in ray_cluster.list_all_nodes() if not node.is_head()]
    killed = []

    class Killing:
        def __enter__(self) -> Killing:
            return self

        def __exit__(self, *exception: object) -> None:
            pass

        def advance(self, steps: int = 1) -> None:
            if not killed:
                killed.append(nodes[0])
                ray_cluster.remove_node(nodes[0], allow_graceful=False)

    monkeypatch.setattr(one_vs_rest, "track", lambda *_: Killing())
    survived = LinearClassifier(cluster=ray_cluster.address).fit(X, y)
    assert killed
    assert_same_model(alone, survived)
    ray_cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES, node_ip_address="127.0.0.1")


def test_experiments_on_a_ray_cluster_give_the_same_rows(ray_cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    check_side_by_side(monkeypatch, ray_cluster.address, 1, "frequency", "ind")
