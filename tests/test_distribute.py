"""Workers of every kind: order, shared values, errors, and what happens without Ray."""

from __future__ import annotations

import builtins
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import abound
from abound import CommitteeClassifier, LinearClassifier
from abound.distribute import Spare, bundles, check_cluster, workers
from abound.distribute.parts import TASK_VALUES
from abound.distribute.processes import write_value
from cli_data import run
from cluster_data import assert_same_model, check_side_by_side, make_rows

CLUSTERS = [None, "processes"]


@pytest.fixture(scope="module", autouse=True)
def processes() -> Iterator[None]:
    with workers(2, "processes"):
        yield


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_results_come_in_the_order_of_the_parts(cluster: str | None) -> None:
    with workers(2, cluster) as pool:
        base = pool.share(2)
        assert list(pool.map(pow, range(40), base)) == [part**2 for part in range(40)]
        assert list(pool.map(pow, range(40), base, cost=TASK_VALUES // 7)) == [part**2 for part in range(40)]
        assert list(pool.map(pow, [], base)) == []


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_an_error_arrives_as_it_was_raised(cluster: str | None) -> None:
    with workers(2, cluster) as pool, pytest.raises(ValueError, match="invalid literal"):
        list(pool.map(int, ["1", "x", "3"]))


def test_shared_arrays_are_mapped_read_only(tmp_path: Path) -> None:
    value = {"rows": np.arange(5, dtype=np.int32), "none": np.empty(0, dtype=np.float32), "name": "x"}
    handle = pickle.loads(pickle.dumps(write_value(value, tmp_path / "value")))
    found = handle.open()
    assert found["name"] == "x"
    assert found["rows"].tolist() == [0, 1, 2, 3, 4]
    assert found["none"].shape == (0,)
    assert not found["rows"].flags.writeable
    assert found["rows"].ctypes.data % 64 == 0
    assert write_value("no array", tmp_path / "plain").open() == "no array"


def test_files_go_with_their_handles() -> None:
    with workers(2, "processes") as pool:
        handle = pool.share(np.arange(3))
        path = Path(handle.name)
        assert path.exists()
        del handle
        assert not path.exists()
        last = Path(pool.share(np.arange(4)).name)
    assert not last.exists()


@pytest.mark.parametrize("n_parts", [0, 1, 5, 64, 1000])
@pytest.mark.parametrize("cost", [0, 1, TASK_VALUES // 10, 2 * TASK_VALUES])
def test_bundles_keep_the_parts(n_parts: int, cost: int) -> None:
    found = bundles(range(n_parts), cost, 2)
    assert [part for some in found for part in some] == list(range(n_parts))
    assert all(len(some) * cost <= TASK_VALUES or len(some) == 1 for some in found)


def test_spare_room_is_used_again_and_not_sent() -> None:
    spare: Spare[list[int]] = Spare()
    room = spare.take(list)
    spare.give(room)
    assert pickle.loads(pickle.dumps(spare)).take(list) is not room
    assert spare.take(list) is room


@pytest.mark.parametrize("cluster", ["", "here", "host", "host:port", "ray://host:1", "a b:1", 6379, True])
def test_what_is_no_place_is_refused(cluster: Any) -> None:
    with pytest.raises(ValueError, match="cluster="):
        check_cluster(cluster)
    with pytest.raises(ValueError, match="cluster="):
        LinearClassifier(cluster=cluster).fit([[1.0], [2.0]], [0, 1])


@pytest.mark.parametrize("cluster", [None, "processes", "local", "head:6379", "10.0.0.1:6379", "[::1]:6379"])
def test_places(cluster: Any) -> None:
    check_cluster(cluster)


@pytest.mark.parametrize("cluster", ["local", "head:6379"])
def test_without_ray_the_error_says_what_to_install(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = builtins.__import__

    def without_ray(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "ray":
            raise ImportError(name)
        return found(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_ray)
    with pytest.raises(ImportError, match=r"pip install 'abound\[cluster\]'"):
        LinearClassifier(cluster=cluster).fit([[1.0], [2.0]], [0, 1])


def test_a_model_does_not_keep_where_it_was_trained(tmp_path: Path) -> None:
    X, y = make_rows()
    model = CommitteeClassifier(LinearClassifier(cluster="secret:6379"), n_seeds=2, n_jobs=2, cluster="processes")
    model.fit(X, y).save(tmp_path / "model")
    written = (tmp_path / "model").read_bytes()
    assert b"secret" not in written
    assert b"processes" not in written
    loaded = abound.load(tmp_path / "model")
    assert loaded.cluster is None
    assert clone(model).cluster == "processes"
    assert_same_model(model, loaded)


def test_the_command_line_has_it(tmp_path: Path) -> None:
    data = tmp_path / "train.svm"
    data.write_text("a 1:1\nb 2:1\na 1:1 2:0.5\n")
    model = str(tmp_path / "model")
    run("train", data, "-l", "svm", "-m", model, "--cluster", "processes", "--jobs", 2)
    useless = run("train", data, "-l", "ff", "-m", model, "--cluster", "processes", code=2)
    assert "no use for a cluster" in useless.stderr
    run("train", data, "-l", "svm", "-m", model, "--cluster", "nowhere", code=2)


def test_experiments_side_by_side_give_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes of a cluster start one for each experiment, as this one would."""
    check_side_by_side(monkeypatch, "processes", 2, "frequency", "perceptron")
