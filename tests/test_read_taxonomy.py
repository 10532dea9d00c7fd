"""Taxonomies: arrays agree with slow walks, and what is no taxonomy is refused by name."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abound.read import FormatError, Taxonomy
from naive_read import path_length, path_to_root, reachable_depth, subtree_size


@st.composite
def trees(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Edges of a tree in any order, some of them twice."""
    n_nodes = draw(st.integers(2, 25))
    names = draw(st.permutations([f"n{i}" for i in range(n_nodes)]))
    edges = [(names[draw(st.integers(0, i - 1))], names[i]) for i in range(1, n_nodes)]
    edges += draw(st.lists(st.sampled_from(edges), max_size=3))
    return draw(st.permutations(edges))


@settings(deadline=None, max_examples=100)
@given(trees())
def test_trees_agree_with_slow_walks(edges):
    taxonomy = Taxonomy.from_edges(edges)
    parent = {child: above for above, child in edges}
    nodes = taxonomy.names.tolist()
    assert taxonomy.is_tree and len(taxonomy) == len(nodes) == len(parent) + 1
    assert sorted(nodes) == sorted({name for edge in edges for name in edge})
    assert set(taxonomy.leaves.tolist()) == set(nodes) - set(parent.values())
    for i, node in enumerate(nodes):
        path = path_to_root(parent, node)
        assert taxonomy.path(node) == path[::-1]
        assert taxonomy.ancestors(node) == path[1:]
        assert taxonomy.parent(node) == parent.get(node)
        assert taxonomy.depth[i] == len(path) - 1
        assert sorted(taxonomy.children(node)) == sorted(child for child in parent if parent[child] == node)
        assert taxonomy.subtree_sizes[i] == subtree_size(parent, nodes, node)
    assert taxonomy.root == path[-1]
    ids = np.arange(len(nodes))
    expected = [[path_length(parent, a, b) for b in nodes] for a in nodes]
    assert taxonomy.distances(ids[:, None], ids[None, :]).tolist() == expected
    assert (taxonomy.parent_ids[1:] < ids[1:]).all() and taxonomy.parent_ids[0] == -1


@st.composite
def dags(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    n_nodes = draw(st.integers(2, 15))
    pairs = [(a, b) for b in range(1, n_nodes) for a in range(b)]
    edges = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=30))
    return n_nodes, draw(st.permutations(edges))


@settings(deadline=None, max_examples=100)
@given(dags())
def test_dags_keep_parents_before_children(dag):
    n_nodes, edges = dag
    taxonomy = Taxonomy(list(range(100, 100 + n_nodes)), edges, kind="dag")
    assert sorted(taxonomy.names.tolist()) == list(range(100, 100 + n_nodes))
    assert (taxonomy.edges[:, 0] < taxonomy.edges[:, 1]).all()
    named = {(int(taxonomy.names[a]) - 100, int(taxonomy.names[b]) - 100) for a, b in taxonomy.edges}
    assert named == set(edges) and len(taxonomy.edges) == len(named)
    depth = reachable_depth(edges, n_nodes)
    assert [depth[name - 100] for name in taxonomy.names] == taxonomy.depth.tolist()
    for node in range(n_nodes):
        above = {a for a, b in edges if b == node}
        while (more := above | {a for a, b in edges if b in above}) != above:
            above = more
        ancestors = taxonomy.ancestors(node + 100)
        assert sorted(ancestors) == sorted(a + 100 for a in above)
        order = taxonomy.node_ids(ancestors)
        assert (np.diff(order) < 0).all()


@settings(deadline=None, max_examples=60)
@given(st.one_of(trees(), dags().map(lambda dag: dag[1])), st.booleans())
def test_arrays_bring_the_same_taxonomy_back(edges, is_graph):
    taxonomy = Taxonomy.from_edges(edges, kind="graph" if is_graph else "dag", titles={edges[0][0]: "größe"})
    arrays = taxonomy.to_arrays()
    for copied in (Taxonomy.from_arrays(arrays), pickle.loads(pickle.dumps(taxonomy))):
        assert copied.names.tolist() == taxonomy.names.tolist()
        assert np.array_equal(copied.edges, taxonomy.edges)
        assert copied.kind == taxonomy.kind and copied.titles == taxonomy.titles
    assert copy.deepcopy(taxonomy) is taxonomy


def test_arrays_are_checked():
    arrays = Taxonomy.from_edges([("a", "b"), ("a", "c")], titles={"a": "A"}).to_arrays()
    broken = {
        "kind": np.array([9], np.uint8),
        "edges": np.array([[0, 7]], np.int32),
        "name_offsets": np.array([0, 2, 1, 3]),
        "names": np.array([255, 254, 253], np.uint8),
        "titled": np.array([5], np.int32),
        "title_offsets": np.array([0, 99]),
    }
    for key, value in broken.items():
        with pytest.raises(ValueError, match="taxonomy"):
            Taxonomy.from_arrays({**arrays, key: value})
    with pytest.raises(ValueError, match="lack edges"):
        Taxonomy.from_arrays({key: value for key, value in arrays.items() if key != "edges"})
    with pytest.raises(ValueError, match="'names'"):
        Taxonomy.from_arrays({key: value for key, value in arrays.items() if key != "name_offsets"})
    with pytest.raises(ValueError, match="'edges'"):
        Taxonomy.from_arrays({**arrays, "edges": np.array([0, 1])})


def test_graphs_have_neighbours_only():
    graph = Taxonomy.from_edges([("a", "b"), ("b", "a"), ("b", "c"), ("c", "a")], kind="graph")
    assert len(graph.edges) == 3
    assert sorted(graph.neighbours("a")) == ["b", "c"]
    for ask in (lambda: graph.children("a"), lambda: graph.depth, lambda: graph.root, lambda: graph.distance("a", "b")):
        with pytest.raises(ValueError, match="graph"):
            ask()
    tree = Taxonomy.from_edges([("a", "b"), ("a", "c")])
    assert tree.neighbours("a") == ["b", "c"] and tree.neighbours("b") == ["a"]


def test_cycles_are_named():
    edges = [("root", "a"), ("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]
    for kind in ("auto", "tree", "dag"):
        with pytest.raises(ValueError, match=r"cycle: (a > b > c > a|b > c > a > b|c > a > b > c)$"):
            Taxonomy.from_edges(edges, kind=kind)
    with pytest.raises(ValueError, match="cycle: a > a"):
        Taxonomy.from_edges([("a", "a")])
    with pytest.raises(ValueError, match=r"cycle: (a > b > a|b > a > b)"):
        Taxonomy.from_parents({"a": "b", "b": "a"})


def test_roots_and_parents_of_a_tree():
    edges = [("a", "b"), ("c", "d")]
    with pytest.raises(ValueError, match=r"2 roots: a, c; pass root='name'"):
        Taxonomy.from_edges(edges)
    with pytest.raises(ValueError, match="2 roots"):
        Taxonomy.from_edges(edges, kind="tree")
    assert Taxonomy.from_edges(edges, kind="dag").root_ids.tolist() == [0, 1]
    joined = Taxonomy.from_edges(edges, root="top")
    assert joined.root == "top" and joined.children("top") == ["a", "c"]
    assert Taxonomy.from_edges(edges, root="c").parent("a") == "c"
    assert Taxonomy.from_edges([("a", "b")], root="top").root == "a"
    with pytest.raises(ValueError, match="root='b'"):
        Taxonomy.from_edges(edges, root="b")
    shared = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]
    with pytest.raises(ValueError, match=r"node 'd' of the tree has several parents: b, c"):
        Taxonomy.from_edges(shared, kind="tree")
    dag = Taxonomy.from_edges(shared)
    assert dag.kind == "dag" and dag.parents("d") == ["b", "c"]
    for ask in (
        lambda: dag.parent("d"),
        lambda: dag.path("d"),
        lambda: dag.distance("a", "d"),
        lambda: dag.subtree_sizes,
    ):
        with pytest.raises(ValueError, match="needs a tree"):
            ask()


def test_the_other_ways_to_make_one():
    expected = [("all", None), ("cat", "all"), ("dog", "all"), ("lion", "cat")]
    ways = [
        Taxonomy.from_parents({"cat": "all", "dog": "all", "lion": "cat", "all": None}),
        Taxonomy.from_parents((["lion", "cat", "all", "dog"], [1, 2, -1, 2])),
        Taxonomy.from_paths([["all", "cat", "lion"], ["all", "dog"]]),
        Taxonomy.from_paths([["cat", "lion"], ["dog"]], root="all"),
    ]
    for taxonomy in ways:
        assert sorted((name, taxonomy.parent(name)) for name in taxonomy.names.tolist()) == expected
    paths = Taxonomy.from_paths(["a>b>c", "a>d"], separator=">")
    assert paths.path("a>b>c") == ["a", "a>b", "a>b>c"]
    single = Taxonomy.from_parents({"only": None})
    assert single.root == "only" and single.leaves.tolist() == ["only"] and single.distance("only", "only") == 0
    with pytest.raises(ValueError, match="parent array"):
        Taxonomy.from_parents((["a", "b"], [-1, 2]))
    with pytest.raises(ValueError, match="edge"):
        Taxonomy.from_edges([])
    with pytest.raises(ValueError, match="listed twice"):
        Taxonomy(["a", "a"], [(0, 1)])


def test_names_may_be_integers_but_not_both():
    taxonomy = Taxonomy.from_edges([(0, 5), (0, 7), (5, 9)])
    assert taxonomy.node_ids(np.array([9, 0, 4])).tolist() == [3, 0, -1]
    assert taxonomy.names.dtype == np.int64 and taxonomy.path(9) == [0, 5, 9]
    with pytest.raises(TypeError, match="all strings or all integers"):
        Taxonomy.from_edges([("a", 1)])


def test_unknown_nodes():
    taxonomy = Taxonomy.from_edges([("a", "b")], titles={"b": "the b"})
    assert taxonomy.node_ids(["b", "x"]).tolist() == [1, -1]
    assert "b" in taxonomy and "x" not in taxonomy
    assert taxonomy.title("b") == "the b" and taxonomy.title("a") == "a"
    for ask in (taxonomy.path, taxonomy.children, taxonomy.ancestors, lambda node: taxonomy.distance("a", node)):
        with pytest.raises(ValueError, match="'x' is no node"):
            ask("x")
    with pytest.raises(ValueError, match="-1 is no node"):
        taxonomy.distances([0, -1], [0, 0])
    assert taxonomy.distances([], []).shape == (0,)
    assert repr(taxonomy) == "Taxonomy(tree of 2 nodes and 1 edges)"


def test_files(tmp_path):
    file = tmp_path / "hierarchy.txt"
    file.write_text("root a\n\nroot  b#\na c\nroot a\n")
    assert Taxonomy.from_file(file).names.tolist() == ["root", "a", "b#", "c"]
    file.write_text("the root\tan animal\nan animal\ta cat\n")
    assert Taxonomy.from_file(file).path("a cat") == ["the root", "an animal", "a cat"]
    file.write_text("toys > cars\ntoys > dolls\nfood\n")
    taxonomy = Taxonomy.from_file(file, separator=" > ")
    assert taxonomy.children("root") == ["toys", "food"] and taxonomy.children("toys") == [
        "toys > cars",
        "toys > dolls",
    ]


@pytest.mark.parametrize(
    "content, separator, message",
    [
        (b"a b\nc\n", None, "line 2: expected two names"),
        (b"a b\nc d e\n", None, "line 2: expected two names"),
        (b"a\tb\n\tc\n", None, "line 2: expected two names"),
        (b"a b\nc\xff d\n", None, "line 2: not valid UTF-8"),
        (b"\n", None, "line 1: the file is empty"),
        (b"", "/", "line 1: the file is empty"),
        (b"a/b\na//c\n", "/", "line 2: an empty name"),
        (b"a b\nb a\n", None, ": the taxonomy has a cycle: "),
        (b"a b\nc d\n", None, ": the tree has 2 roots"),
    ],
)
def test_malformed_files(tmp_path, content, separator, message):
    file = tmp_path / "hierarchy.txt"
    file.write_bytes(content)
    with pytest.raises(FormatError, match=message) as caught:
        Taxonomy.from_file(file, separator=separator)
    assert str(file) in str(caught.value)


def test_a_deep_and_a_wide_tree():
    chain = Taxonomy.from_parents((list(range(50_000)), np.arange(-1, 49_999)))
    assert chain.depth[-1] == 49_999 and chain.subtree_sizes[0] == 50_000
    assert chain.distance(0, 49_999) == 49_999
    wide = Taxonomy.from_parents((list(range(50_000)), np.r_[-1, np.zeros(49_999, int)]))
    assert len(wide.leaves) == 49_999
