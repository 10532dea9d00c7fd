"""The taxonomy of a learner, resolved against its classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abound import Taxonomy
from abound.learn.class_tree import ClassTree, class_tree, class_tree_from
from abound.read.errors import FormatError
from abound.store import ModelFileError, open_arrays, save_arrays

EDGES = [("all", "tea"), ("all", "coffee"), ("tea", "green"), ("tea", "black"), ("coffee", "espresso"), ("all", "milk")]
TAXONOMY = Taxonomy.from_edges(EDGES)


def path_of(tree: ClassTree, c: int) -> list[Any]:
    return tree.names[tree.paths.of(c)].tolist()


def test_without_a_taxonomy_all_classes_stand_under_one_root() -> None:
    tree = class_tree(None, ["a", ("b", 1), 3])
    assert tree.is_flat
    assert tree.parent.tolist() == [-1, 0, 0, 0]
    assert tree.leaf_of_class.tolist() == [1, 2, 3]
    assert tree.class_of_node.tolist() == [-1, 0, 1, 2]
    assert tree.names.tolist() == [None] * 4
    assert [tree.paths.of(c).tolist() for c in range(3)] == [[1], [2], [3]]


def test_classes_at_leaves_and_at_inner_nodes() -> None:
    tree = class_tree(TAXONOMY, ["black", "green", "milk", "tea"])
    assert not tree.is_flat
    assert path_of(tree, 0) == ["tea", "black"]
    assert path_of(tree, 2) == ["milk"]
    assert path_of(tree, 3) == ["tea", "tea"], "rows of an inner node are those of a leaf spawned under it"
    leaf = tree.leaf_of_class[3]
    assert tree.names[tree.parent[leaf]] == "tea"
    assert not len(tree.children.of(leaf))
    assert tree.level[leaf] == 2
    assert tree.subtree_sizes[0] == tree.n_nodes


def test_nodes_that_lead_to_no_class_are_left_out_on_request() -> None:
    pruned = class_tree(TAXONOMY, ["black", "coffee"])
    assert set(pruned.names) == {"all", "tea", "black", "coffee"}
    assert path_of(pruned, 1) == ["coffee"], "with its children gone it is a leaf"
    whole = class_tree(TAXONOMY, ["black", "coffee"], prune=False)
    assert set(whole.names) == set(TAXONOMY.names)
    assert path_of(whole, 1) == ["coffee", "coffee"]
    assert (whole.class_of_node >= 0).sum() == 2


def test_the_root_may_be_a_class() -> None:
    tree = class_tree(TAXONOMY, ["all", "milk"])
    assert path_of(tree, 0) == ["all"]
    assert tree.parent[tree.leaf_of_class[0]] == 0
    alone = class_tree(Taxonomy(["all"], []), ["all"])
    assert alone.parent.tolist() == [-1, 0]


@pytest.mark.parametrize("labels", [np.array([6, 7]), np.array([6.0, 7.0]), ["6", "7"], [6, "7"]])
def test_labels_and_nodes_that_are_written_alike(labels: Any) -> None:
    assert path_of(class_tree(Taxonomy.from_edges([("0", "6"), ("0", "7")]), labels), 1) == ["7"]
    assert path_of(class_tree(Taxonomy.from_edges([(0, 6), (0, 7)]), labels), 1) == [7]


def test_a_file(tmp_path: Path) -> None:
    file = tmp_path / "tree.txt"
    file.write_text("0 1\n1 2\n1 3\n")
    for path in (file, str(file)):
        assert path_of(class_tree(path, np.array([2, 3])), 0) == ["1", "2"]
    file.write_text("0 1\n1 0\n")
    with pytest.raises(FormatError, match=r"tree\.txt.*cycle: 0 > 1 > 0"):
        class_tree(file, [1])
    file.write_text("0 1\n2 3\n")
    with pytest.raises(FormatError, match=r"tree\.txt.*2 roots: 0, 2"):
        class_tree(file, [1])


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(ValueError, match="lacks the class 'cocoa'"):
        class_tree(TAXONOMY, ["tea", "cocoa"])
    with pytest.raises(ValueError, match="lacks 7 classes of the training data: 'a', 'b', 'c', 'd', 'e', …"):
        class_tree(TAXONOMY, list("abcdefg"))
    with pytest.raises(ValueError, match="6 and '6' are both node '6'"):
        class_tree(Taxonomy.from_edges([("0", "6")]), [6, "6"])
    with pytest.raises(ValueError, match=r"'c' of the taxonomy has several parents \('a', 'b'\)"):
        class_tree(Taxonomy.from_edges([("r", "a"), ("r", "b"), ("a", "c"), ("b", "c")]), ["c"])
    with pytest.raises(ValueError, match=r"2 roots.*'a', 'b'"):
        class_tree(Taxonomy.from_edges([("a", "c"), ("b", "c")], kind="dag"), ["c"])
    with pytest.raises(ValueError, match="undirected graph"):
        class_tree(Taxonomy.from_edges([("a", "c"), ("b", "c")], kind="graph"), ["c"])
    with pytest.raises(ValueError, match="taxonomy=3: it must be"):
        class_tree(3, ["c"])


def test_path_sums() -> None:
    tree = class_tree(TAXONOMY, ["black", "milk", "tea"])
    weights = np.arange(2.0 * tree.n_nodes).reshape(-1, 2)
    before = weights.copy()
    expected = [weights[tree.paths.of(c)].sum(axis=0) for c in range(3)]
    np.testing.assert_array_equal(tree.path_sums(weights), expected)
    np.testing.assert_array_equal(weights, before)
    merged = tree.remap_classes(np.array([0, 0, -1], np.int32), 1)
    np.testing.assert_array_equal(merged.path_sums(weights), [expected[0] + expected[1]])


def test_classes_leave_and_merge() -> None:
    tree = class_tree(TAXONOMY, ["black", "green", "milk"])
    other = tree.remap_classes(np.array([-1, 0, 0], np.int32), 1)
    assert other.n_classes == 1
    assert sorted(other.names[other.class_of_node >= 0]) == ["green", "milk"]
    assert tree.n_classes == 3


@st.composite
def trees(draw: Any) -> tuple[Taxonomy, list[int]]:
    n = draw(st.integers(2, 15))
    parents = [-1, *(draw(st.integers(0, i - 1)) for i in range(1, n))]
    order = draw(st.permutations(range(n)))
    edges = [(order[p], order[i]) for i, p in enumerate(parents) if p >= 0]
    return Taxonomy.from_edges(edges), draw(st.lists(st.integers(0, n - 1), min_size=1, unique=True))


@given(trees(), st.booleans())
def test_any_tree(drawn: tuple[Taxonomy, list[int]], prune: bool) -> None:
    taxonomy, labels = drawn
    tree = class_tree(taxonomy, labels, prune=prune)
    assert tree.parent[0] == -1
    assert (tree.parent[1:] < np.arange(1, tree.n_nodes)).all()
    for c, label in enumerate(labels):
        leaf = tree.leaf_of_class[c]
        assert tree.class_of_node[leaf] == c
        assert not len(tree.children.of(leaf))
        names = path_of(tree, c)
        above = taxonomy.path(label)[1:]
        assert names == above or names == [*above, label]
    for node in range(tree.n_nodes):
        assert (tree.parent[tree.children.of(node)] == node).all()
        if prune and node > 0 and not len(tree.children.of(node)):
            assert tree.class_of_node[node] >= 0
    assert (tree.class_of_node >= 0).sum() == len(labels)


def test_a_tree_in_a_file_and_back(tmp_path: Path) -> None:
    for taxonomy in (None, TAXONOMY):
        tree = class_tree(taxonomy, ["black", "milk", "tea"])
        save_arrays(tmp_path / "tree", {f"tree/{k}": v for k, v in tree.to_arrays().items()}, {})
        loaded = class_tree_from(open_arrays(tmp_path / "tree").section("tree/"), 3)
        for name in ("parent", "class_of_node", "source", "level", "names"):
            np.testing.assert_array_equal(getattr(loaded, name), getattr(tree, name))


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        ("parent", 0, 0, "no tree"),
        ("parent", 1, 5, "no tree"),
        ("parent", 2, -1, "no tree"),
        ("class_of_node", 1, 7, "does not hold the 3 classes"),
        ("class_of_node", -1, -1, "does not hold the 3 classes"),
        ("class_of_node", 1, 0, "no leaf"),
        ("source", 0, 99, "not among the taxonomy's"),
        ("taxonomy/kind", 0, 9, "'kind'"),
    ],
)
def test_a_broken_file_is_refused(tmp_path: Path, name: str, place: int, value: int, message: str) -> None:
    tree = class_tree(TAXONOMY, ["black", "milk", "tea"])
    arrays = {key: array.copy() for key, array in tree.to_arrays().items()}
    arrays[name][place] = value
    save_arrays(tmp_path / "tree", arrays, {})
    with pytest.raises(ModelFileError, match=message):
        class_tree_from(open_arrays(tmp_path / "tree"), 3)
