"""Accuracy, F1, tree loss, the evaluation as a whole and recall by class size."""

import json
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score

import naive_measure as naive
from abound.labels import Labels, encode
from abound.measure import (
    ClassDistances,
    Cost,
    accuracy,
    evaluate,
    evaluate_labels,
    macro_f1,
    micro_f1,
    tail_table,
    tree_loss,
)

LABEL = st.sampled_from("abcde")
ROW = st.lists(LABEL, unique=True, max_size=4)
PARENTS = {"root": None, "m": "root", "n": "root", "a": "m", "b": "m", "c": "n", "d": "n", "e": "d"}
TREE = naive.NaiveTree(PARENTS)


@settings(deadline=None)
@given(st.lists(st.tuples(LABEL, st.sampled_from("abcdexyz")), min_size=1, max_size=40))
def test_single_label_measures_equal_scikit_learn(pairs):
    y_true, y_pred = [a for a, _ in pairs], [b for _, b in pairs]
    assert accuracy(y_true, y_pred) == pytest.approx(accuracy_score(y_true, y_pred))
    assert micro_f1(y_true, y_pred) == pytest.approx(f1_score(y_true, y_pred, average="micro"))
    expected = f1_score(y_true, y_pred, average="macro", zero_division=0)
    assert macro_f1(y_true, y_pred) == pytest.approx(expected)


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 8), st.integers(1, 30))
def test_indicator_measures_equal_scikit_learn(seed, n_classes, n_rows):
    rng = np.random.default_rng(seed)
    true, predicted = (rng.random((2, n_rows, n_classes)) < 0.4).astype(int)
    pair = sp.csr_array(true), sp.csr_matrix(predicted)
    assert accuracy(*pair) == pytest.approx(accuracy_score(true, predicted))
    assert micro_f1(*pair) == pytest.approx(f1_score(true, predicted, average="micro", zero_division=0))
    over_all = f1_score(true, predicted, average="macro", zero_division=0)
    assert macro_f1(*pair, classes=range(n_classes)) == pytest.approx(over_all)


@settings(deadline=None)
@given(st.lists(st.tuples(ROW, ROW), min_size=1, max_size=20))
def test_multi_label_measures_equal_the_twins(pairs):
    true, predicted = [a for a, _ in pairs], [b for _, b in pairs]
    assert accuracy(true, predicted) == pytest.approx(np.mean([set(a) == set(b) for a, b in pairs]))
    assert micro_f1(true, predicted) == pytest.approx(naive.micro_f1(true, predicted))
    assert macro_f1(true, predicted) == pytest.approx(naive.macro_f1(true, predicted))
    assert macro_f1(true, predicted, classes="abcdefgh") == pytest.approx(naive.macro_f1(true, predicted, "abcdefgh"))


def test_a_row_without_prediction_is_a_miss_but_no_false_alarm():
    assert micro_f1(["a", "b"], ["a", None]) == pytest.approx(2 / 3)
    assert accuracy(["a", "b"], np.array(["a", None], dtype=object)) == 0.5
    assert micro_f1(["a", "b"], [None, None]) == 0
    assert macro_f1([["a"], ["b"]], [["a"], None]) == pytest.approx(0.5)


def test_predictions_must_pair_with_rows():
    with pytest.raises(ValueError, match="1 predictions for 2 true rows"):
        accuracy(["a", "b"], ["a"])
    with pytest.raises(ValueError, match="1 predictions for 2 true rows"):
        micro_f1(["a", "b"], ["a"])


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abce"), st.sampled_from("abce")), min_size=1, max_size=20))
def test_tree_loss_is_the_mean_path_length(pairs):
    y_true, y_pred = [a for a, _ in pairs], [b for _, b in pairs]
    expected = np.mean([TREE.distance(a, b) for a, b in pairs])
    assert tree_loss(y_true, y_pred, TREE) == pytest.approx(expected)


def test_tree_loss_takes_the_nearest_true_class():
    assert tree_loss([["a", "c"], []], ["b", "a"], TREE) == 2
    with pytest.raises(ValueError, match=r"y_pred\[0\] holds several"):
        tree_loss([["a"]], [["a", "b"]], TREE)
    assert np.isnan(tree_loss([[], []], ["a", "b"], TREE))


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=14),
    st.lists(st.integers(-1, 16), min_size=1, max_size=8),
)
def test_a_missing_class_counts_as_the_farthest(parents, ids):
    tree = naive.NaiveTree({0: None} | {i: parent % i for i, parent in enumerate(parents, start=1)})
    classes = np.array([*tree.names, 99])
    distances = ClassDistances(tree, classes)
    longest = [max(tree.distance(a, b) for b in tree.names) for a in tree.names]
    for missing in (-1, len(classes) - 1, len(classes) + 5):
        for i in ids:
            known = 0 <= i < len(tree.names)
            expected = longest[i] if known else max(longest)
            assert distances([missing], [i])[0] == expected
            assert distances([i], [missing])[0] == expected


def test_classes_without_a_path_count_as_missing():
    class Islands(naive.NaiveTree):
        def distances(self, a, b):
            apart = np.isin(a, [0, 1]) != np.isin(b, [0, 1])
            return np.where(apart, np.inf, np.abs(np.asarray(a) - np.asarray(b)))

    islands = Islands(dict.fromkeys("abcdef"))
    assert ClassDistances(islands, np.array(list("abcdef")))([0, 5, 2], [1, 2, 0]).tolist() == [1, 3, 1]
    with pytest.raises(ValueError, match="none of the 2 classes"):
        ClassDistances(islands, np.array(["x", "y"]))


def test_evaluation_of_single_labels():
    classes = np.array(list("abce"))
    truth = encode(["a", "b", "x", "y"], known=classes)
    ranked = np.array([[0, 1], [2, 1], [0, 1], [-1, -1]])
    measures = evaluate(ranked, truth, n_classes=4, distances=ClassDistances(TREE, truth.classes), ks=(1, 2))
    expected = {"R1": 1 / 4, "R2": 2 / 4, "MRR": 1.5 / 4, "HR": 4 / 1.5, "accuracy": 1 / 4}
    # Three predictions, four truths, one right; classes a, b, c, x, y occur and e does not.
    expected |= {"micro_f1": 2 / 7, "macro_f1": (2 / 3) / 5, "macro_f1_all": (2 / 3) / 6}
    # b for c: four edges; x and y are no nodes: the farthest from a is e, the longest path is that from a to e.
    expected |= {"tree_loss": (0 + 4 + 5 + 5) / 4}
    assert measures == pytest.approx(expected)
    assert json.loads(json.dumps(measures)) == measures


def test_unseen_labels_that_are_only_minus_one_are_one_class():
    classes = np.array(["a", "b"])
    truth = encode(["a", "x", "y"]).onto(classes)
    measures = evaluate([[0], [0], [0]], truth, n_classes=2, ks=(1,))
    assert measures["macro_f1"] == pytest.approx((2 / 4) / 2)
    assert measures["macro_f1_all"] == pytest.approx((2 / 4) / 3)


@settings(deadline=None)
@given(st.lists(st.tuples(ROW, st.permutations("abcde")), min_size=1, max_size=15), st.data())
def test_evaluation_of_several_labels(case, data):
    true, ranked = [a for a, _ in case], [b for _, b in case]
    predicted = data.draw(st.lists(ROW, min_size=len(true), max_size=len(true)))
    y_train = [["a"], ["a", "b"], ["c"], ["a"], ["e", "a"]]
    classes = np.array(list("abcde"))
    measures = evaluate_labels(
        true, ranked, classes=classes, y_pred=predicted, y_train=y_train, taxonomy=TREE, ks=(1, 3)
    )
    expected = {
        "R1": naive.recall(true, ranked, 1),
        "R3": naive.recall(true, ranked, 3),
        "MRR": naive.mean_reciprocal_rank(true, ranked),
        "accuracy": np.mean([set(a) == set(b) for a, b in zip(true, predicted, strict=True)]),
        "micro_f1": naive.micro_f1(true, predicted),
        "macro_f1": naive.macro_f1(true, predicted),
        "macro_f1_all": naive.macro_f1(true, predicted, "abcde"),
        "P@1": naive.precision(true, ranked, 1),
        "P@3": naive.precision(true, ranked, 3),
        "nDCG@1": naive.ndcg(true, ranked, 1),
        "nDCG@3": naive.ndcg(true, ranked, 3),
        "PSP@1": naive.ps_precision(true, ranked, 1, y_train),
        "PSP@3": naive.ps_precision(true, ranked, 3, y_train),
        "PSnDCG@1": naive.ps_ndcg(true, ranked, 1, y_train),
        "PSnDCG@3": naive.ps_ndcg(true, ranked, 3, y_train),
    }
    losses = [min(TREE.distance(r[0], a) for a in t) for t, r in case if t]
    expected["tree_loss"] = np.mean(losses) if losses else np.nan
    expected["HR"] = 1 / expected["MRR"] if expected["MRR"] else np.inf
    assert measures == pytest.approx(expected, nan_ok=True)


def test_fewer_classes_than_ranks_asked_for():
    truth = encode(["a", "b"])
    assert evaluate([[0, 1], [0, 1]], truth, n_classes=2)["R10"] == 1
    with pytest.raises(ValueError, match="k=5, but only 2 classes"):
        evaluate([[0, 1], [0, 1]], truth, n_classes=3)
    with pytest.raises(ValueError, match="class id 7, but there are only 2"):
        evaluate([[0, 7], [0, 1]], truth, n_classes=2)


def test_measures_for_several_labels_only_where_there_are_several():
    ranked = [[0, 1], [1, 0]]
    single = evaluate(ranked, encode(["a", "b"]), n_classes=2, counts=[1, 1], n_train=2)
    several = evaluate(ranked, encode([["a"], ["b"]]), n_classes=2)
    assert not any("@" in name for name in single)
    assert [name for name in several if "@" in name] == ["P@1", "P@5", "P@10", "nDCG@1", "nDCG@5", "nDCG@10"]
    indicator = evaluate(ranked, sp.csr_array(np.eye(2)), n_classes=2)
    assert indicator == several


def test_large_truth_stays_sparse():
    n, n_classes = 2000, 1_000_000
    rng = np.random.default_rng(0)
    truth = Labels(np.arange(n + 1), rng.integers(0, n_classes, n, dtype=np.int32), np.arange(n_classes), "single")
    ranked = np.column_stack((truth.ids, rng.integers(0, n_classes, n, dtype=np.int32)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert evaluate(ranked, truth, n_classes=n_classes, ks=(1, 2))["accuracy"] == 1


def test_tail_table_by_class_size():
    counts = np.array([1, 2, 5, 6, 20, 21, 100, 101, 0])
    truth = encode([0, 1, 2, 3, 4, 5, 6, 7, 8, 77], known=np.arange(9))
    ranked = np.array([[0, 1], [2, 1], [2, 0], [1, 3], [-1, -1], [5, 1], [6, 1], [7, 1], [8, 1], [0, 1]])
    table = {row.training_rows: (row.classes, row.labels, row.recall) for row in tail_table(ranked, truth, counts)}
    assert table == {
        "0": (2, 2, 0.5),
        "1": (1, 1, 1.0),
        "2-5": (2, 2, 0.5),
        "6-20": (2, 2, 0.0),
        "21-100": (2, 2, 1.0),
        ">100": (1, 1, 1.0),
    }
    by_two = tail_table(ranked, truth, counts, k=2, bounds=(5, 20))
    assert [(row.training_rows, row.labels, row.recall) for row in by_two] == [
        ("0", 2, 0.5),
        ("1-5", 3, 1.0),
        ("6-20", 2, 0.5),
        (">20", 3, 1.0),
    ]
    unseen = tail_table(ranked[:2], encode([[55], [77, 0]]).onto(np.arange(9)), counts)[0]
    assert (unseen.classes, unseen.labels, unseen.recall) == (2, 2, 0.0)


def test_tail_table_refuses_odd_requests():
    truth = encode([0, 1])
    with pytest.raises(ValueError, match="rising"):
        tail_table([[0], [1]], truth, [1, 1], bounds=(5, 2))
    with pytest.raises(ValueError, match="k=2"):
        tail_table([[0], [1]], truth, [1, 1], k=2)


def test_cost_leaves_out_what_is_unknown():
    assert Cost(1.5, 1000, 8.7).to_dict() == {"train_seconds": 1.5, "W": 1000.0, "d": 8.7}
    assert Cost(1, 2, 3, model_bytes=4).to_dict()["model_bytes"] == 4.0
