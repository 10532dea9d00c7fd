"""SaDyC: every step against the slow twin, the anytime contract, and what votes are expected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import abound
import naive_codes
from abound import SequentialClassifier
from abound.distribute import Serial
from abound.labels import encode
from abound.learn._sequential_kernels import LEVELS
from abound.learn.dichotomizers import train_dichotomizers
from abound.learn.linear_rows import solver_rows
from abound.learn.one_vs_rest import Settings
from abound.learn.sequential_pool import draw_pool
from abound.learn.sequential_run import Budget, Run, make_pool
from abound.learn.sequential_votes import Loss, VoteCounter, as_votes, expected_levels, measure_loss
from abound.store import ModelFileError
from abound.validation import as_rows
from generate import make_rows

X, Y = make_rows(5, n=250)
PRINTED = {"vote": "hard", "pool": "uniform", "smoothing": 0}


class Problem:
    """A random pool and a row's votes."""

    def __init__(self, seed: int, n_words: int, n_classifiers: int, hard: bool, density: float = 0.6) -> None:
        rng = np.random.default_rng(seed)
        self.codes = np.where(rng.random((n_words, n_classifiers)) < density, 1, 0).astype(np.int8)
        self.codes *= rng.choice([-1, 1], self.codes.shape).astype(np.int8)
        self.codes[:, 0] = rng.choice([-1, 1], n_words)
        self.levels = rng.integers(20, LEVELS + 1, self.codes.shape).astype(np.uint8)
        votes = rng.random(n_classifiers)
        self.votes = np.rint(votes) if hard else votes
        self.pool = make_pool(self.codes, self.levels)

    def twin(self, b_min: float) -> naive_codes.Sadyc:
        return naive_codes.Sadyc(self.codes, self.levels / LEVELS, b_min)

    def run(self, b_min: float, n_candidates: int = 0, words: Any = None) -> Run:
        every = np.arange(len(self.codes))
        return Run(self.pool, every if words is None else words, b_min, n_candidates)


problems = st.builds(
    Problem,
    st.integers(0, 10_000),
    st.integers(1, 9),
    st.integers(1, 14),
    st.booleans(),
    st.sampled_from([0.2, 0.6, 1]),
)


def assert_same_state(run: Run, twin: naive_codes.Sadyc) -> None:
    """T, μ, Q, b and the classes left."""
    state, n_left = run.state, int(run.state.numbers[0])
    np.testing.assert_array_equal(state.votes, twin.T)
    np.testing.assert_allclose(state.gained, twin.sum_votes, atol=1e-12)
    np.testing.assert_allclose(state.behind, twin.sum_q - twin.sum_votes, atol=1e-12)
    assert sorted(state.left[:n_left].tolist()) == twin.left
    alive = np.isin(np.arange(len(twin.T)), twin.left)
    np.testing.assert_allclose(state.belief, [twin.b(i) if alive[i] else 0 for i in range(len(alive))], atol=1e-12)


def allowed_choices(twin: naive_codes.Sadyc, candidates: list[int]) -> list[int]:
    """The candidates whose objective is the smallest, up to the rounding of the oracle's whole numbers."""
    objectives = {v: twin.objective(v) for v in candidates}
    smallest = min(objectives.values(), default=np.inf)
    return [v for v, value in objectives.items() if value <= smallest + 1e-6 and value < np.inf]


@given(problems, st.sampled_from([0.0, 0.01, 0.2, 0.7]))
def test_state_and_choices_equal_the_twin_after_every_step(problem: Problem, b_min: float) -> None:
    run, twin = problem.run(b_min), problem.twin(b_min)
    run.begin()
    more = True
    while more:
        step, expected = run.n_steps, [0] if not run.n_steps else allowed_choices(twin, twin.unused)
        over = step > 0 and len(twin.left) <= 1
        more = run.advance(problem.votes, 1)
        if run.n_steps == step:
            assert over or not expected, "it stops only if one class is left or no classifier is of use"
            break
        chosen = int(run.steps.chosen[step])
        assert not over
        assert chosen in expected
        n_asked = sum(problem.codes[i, chosen] != 0 for i in twin.left)
        twin.cast(chosen, problem.votes[chosen])
        assert (run.steps.asked[step], run.steps.left[step]) == (n_asked, len(twin.left))
        assert_same_state(run, twin)


@given(problems, st.integers(1, 5))
def test_the_sampled_oracle_takes_the_best_of_its_candidates(problem: Problem, n_candidates: int) -> None:
    run, twin = problem.run(0.01, n_candidates), problem.twin(0.01)
    n = problem.codes.shape[1]
    run.begin()
    for step in range(n):
        following = [(step * n_candidates + t) % n for t in range(n)]
        useful = [v for v in following if v in twin.unused and twin.objective(v) < np.inf][:n_candidates]
        expected = [0] if step == 0 else allowed_choices(twin, useful)
        run.advance(problem.votes, 1)
        if run.n_steps == step:
            assert len(twin.left) <= 1 or not expected
            break
        chosen = int(run.steps.chosen[step])
        assert chosen in expected
        twin.cast(chosen, problem.votes[chosen])
        assert_same_state(run, twin)


def test_a_larger_pool_makes_the_same_choices() -> None:
    problem = Problem(1, 60, 150, hard=False)
    run, twin = problem.run(0.01), problem.twin(0.01)
    run.run(problem.votes, Budget(40))
    assert run.n_steps == 40
    for step, chosen in enumerate(run.steps.chosen[:40].tolist()):
        if step:
            assert chosen == min(twin.unused, key=twin.objective)
        twin.cast(chosen, problem.votes[chosen])
    assert_same_state(run, twin)


@given(problems, st.integers(0, 14), st.integers(1, 9), st.integers(0, 100))
def test_the_order_of_the_classes_equals_the_twin(problem: Problem, steps: int, k: int, seed: int) -> None:
    n_words = len(problem.codes)
    run, twin = problem.run(0.2), problem.twin(0.2)
    run.run(problem.votes, Budget(steps))
    for chosen in run.steps.chosen[: run.n_steps].tolist():
        twin.cast(chosen, problem.votes[chosen])
    counts = np.random.default_rng(seed).integers(1, 3, n_words)
    k = min(k, n_words)
    ids, scores, room = np.full(k, -1, np.int32), np.full(k, -np.inf, np.float32), np.empty(n_words, np.int32)
    run.rank(np.arange(n_words, dtype=np.int32), counts, room, ids, scores)
    assert (np.diff(scores) < 0).all()
    expected = twin.ranking(counts)[:k]
    means = twin.sum_votes / np.maximum(1, twin.T) - 1 - ~np.isin(np.arange(n_words), twin.left)
    np.testing.assert_allclose(scores, means[ids], atol=1e-5)
    np.testing.assert_allclose(means[ids], means[expected], atol=1e-9)


@given(problems, st.integers(1, 13), st.booleans())
def test_more_budget_goes_on_from_less(problem: Problem, steps: int, sampled: bool) -> None:
    run, longer = (problem.run(0.05, 3 if sampled else 0) for _ in range(2))
    run.run(problem.votes, Budget(steps))
    longer.run(problem.votes, Budget(100))
    assert longer.n_steps >= run.n_steps
    for one, other in zip(run.steps.first(run.n_steps), longer.steps.first(run.n_steps), strict=True):
        np.testing.assert_array_equal(one, other)
    run.begin()
    run.advance(problem.votes, steps)
    run.advance(problem.votes, 100)
    for one, other in zip(run.state, longer.state, strict=True):
        np.testing.assert_array_equal(one, other)


@given(problems)
def test_words_that_may_not_win_get_no_votes(problem: Problem) -> None:
    words = np.arange(0, len(problem.codes), 2)
    run = problem.run(0.01, words=words)
    run.run(problem.votes, Budget(5))
    alone = Run(make_pool(problem.codes[words], problem.levels[words]), np.arange(len(words)))
    alone.run(problem.votes, Budget(5))
    np.testing.assert_array_equal(run.steps.first(run.n_steps), alone.steps.first(alone.n_steps))
    np.testing.assert_array_equal(run.state.belief[words], alone.state.belief)
    assert not run.state.votes[1::2].any()


@pytest.mark.parametrize("options", [{}, PRINTED, {"n_candidates": 7}], ids=str)
def test_trajectory_and_answers_agree(options: dict[str, Any]) -> None:
    model = SequentialClassifier(60, **options).fit(X, Y)
    for i in range(5):
        whole = model.trajectory(X[[i]], budget=40)
        n = len(whole.best)
        assert len({*whole.classifiers.tolist()}) == n <= 40
        assert (np.diff(whole.left) <= 0).all()
        assert (whole.asked <= np.concatenate(([len(model.classes_)], whole.left[:-1]))).all()
        np.testing.assert_allclose(whole.density, (model.dichotomizers_.codes != 0).mean(axis=0)[whole.classifiers])
        for budget in (1, 3, 10, n):
            part = model.trajectory(X[[i]], budget=budget)
            for one, other in zip(part, whole, strict=True):
                np.testing.assert_array_equal(one, other[: len(one)])
            assert model.predict_topk(X[[i]], 1, budget=budget).labels[0, 0] == whole.best[len(part.best) - 1]
    assert model.trajectory(X[[0]]).best[-1] == model.predict(X[[0]])[0]


def test_density_falls_along_the_way() -> None:
    matrix, y = make_rows(0, n=1500, n_features=300, n_classes=60)
    model = SequentialClassifier(300, **PRINTED).fit(matrix, y)
    paths = [model.trajectory(matrix[[i]], budget=40) for i in range(20)]
    first, last = (np.mean([path.density[part].mean() for path in paths]) for part in (slice(4), slice(-4, None)))
    assert last < first


def test_milliseconds_are_a_budget_too() -> None:
    model = SequentialClassifier(60).fit(X, Y)
    hurried = model.predict_topk(X[:5], 3, max_ms=1e-6)
    np.testing.assert_array_equal(hurried.labels, model.predict_topk(X[:5], 3, budget=1).labels)
    patient = model.predict_topk(X[:5], 3, max_ms=60_000)
    np.testing.assert_array_equal(patient.labels, model.predict_topk(X[:5], 3, budget=60).labels)
    both = model.predict_topk(X[:5], 3, max_ms=60_000, budget=4)
    np.testing.assert_array_equal(both.labels, model.predict_topk(X[:5], 3, budget=4).labels)


def test_the_parameter_budget_is_the_default() -> None:
    model = SequentialClassifier(60, budget=2).fit(X, Y)
    np.testing.assert_array_equal(model.predict_topk(X).labels, model.predict_topk(X, budget=2).labels)
    assert (model.predict_topk(X).labels != model.predict_topk(X, budget=50).labels).any()
    assert len(model.trajectory(X[[0]]).best) == 2


def test_settings_of_the_run_may_be_changed_after_training() -> None:
    model = SequentialClassifier(60).fit(X, Y)
    exact = model.predict_topk(X, 4, budget=12)
    sampled = model.set_params(n_candidates=2).predict_topk(X, 4, budget=12)
    assert (exact.scores != sampled.scores).any()
    np.testing.assert_array_equal(
        model.set_params(n_candidates=None).predict_topk(X, 4, budget=12).scores, exact.scores
    )


def test_threads_make_no_difference_to_long_lists_of_rows() -> None:
    model = SequentialClassifier(40).fit(X, Y)
    alone = model.predict_topk(X, 6)
    threads = model.set_params(n_jobs=2).predict_topk(X, 6)
    np.testing.assert_array_equal(alone.labels, threads.labels)
    np.testing.assert_array_equal(alone.scores, threads.scores)


@pytest.mark.parametrize("design", ["uniform", "neighbours"])
@pytest.mark.parametrize("n_classes", [1, 2, 3, 40])
def test_pools_know_every_class_at_first_and_have_two_sides(design: str, n_classes: int) -> None:
    rng = np.random.default_rng(0)
    y = np.concatenate((np.arange(n_classes), rng.integers(0, n_classes, 60)))
    rows = as_rows(rng.random((len(y), 12)).astype(np.float32))
    weights = np.ones(len(y), dtype=np.float32)
    codes = draw_pool(rows, encode(y.tolist()), weights, 30, design, np.random.default_rng(1))
    if n_classes == 1:
        assert codes.shape == (1, 0)
        return
    assert codes.shape == (n_classes, 30)
    assert codes[:, 0].all()
    assert ((codes == 1).any(axis=0) & (codes == -1).any(axis=0)).all()


def test_half_of_the_pool_splits_neighbours() -> None:
    """Classes come in ten bundles of four that share a feature."""
    y = np.repeat(np.arange(40), 3)
    matrix = np.zeros((len(y), 50), dtype=np.float32)
    matrix[np.arange(len(y)), y // 4] = 1
    matrix[np.arange(len(y)), 10 + y] = 0.1
    weights = np.ones(len(y), dtype=np.float32)
    drawn = draw_pool(as_rows(matrix), encode(y.tolist()), weights, 200, "neighbours", np.random.default_rng(0))
    together = sum(
        all((known[b : b + 4] != 0).all() for b in range(0, 40, 4) if known[b : b + 4].any()) for known in drawn.T
    )
    uniform = draw_pool(as_rows(matrix), encode(y.tolist()), weights, 200, "uniform", np.random.default_rng(0))
    by_chance = sum(
        all((known[b : b + 4] != 0).all() for b in range(0, 40, 4) if known[b : b + 4].any()) for known in uniform.T
    )
    assert together > by_chance + 5


def test_votes() -> None:
    outputs = np.array([-1000.0, -1.0, 0.0, 2.0], dtype=np.float32)
    np.testing.assert_array_equal(as_votes(outputs, 0), [0, 0, 0.5, 1])
    np.testing.assert_allclose(as_votes(outputs, 2), [0, 1 / (1 + np.e**2), 0.5, 1 / (1 + np.e**-4)], atol=1e-12)


def test_expected_votes_are_shrunk_towards_the_mean() -> None:
    votes, rows = np.array([[3.0], [0.0], [0.0]]), np.array([[4.0], [2.0], [0.0]])
    np.testing.assert_array_equal(expected_levels([(votes, rows)], 0, 3), [[48], [0], [32]])
    shrunk = expected_levels([(votes, rows)], 2, 3)
    np.testing.assert_array_equal(shrunk, np.rint(64 * np.array([[4 / 6], [1 / 4], [1 / 2]])))
    assert expected_levels([], 2, 3).shape == (3, 0)


def test_votes_are_counted_by_class() -> None:
    """Without a loss for rows left out, they are the votes of the trained classifiers on their own rows."""
    rows, labels = as_rows(X), encode(Y.tolist())
    weights = np.ones(rows.n_rows, dtype=np.float32)
    generator = np.random.default_rng(0)
    codes = draw_pool(rows, labels, weights, 20, "uniform", generator)
    prepared = solver_rows(rows, weights, generator)
    counter = VoteCounter(prepared, labels, codes, Loss(0.0), 3.0)
    settings = Settings(0, 1e-3, 1000, 0.0, 0)
    found, counted, _ = train_dichotomizers(prepared, labels, codes, 1.0, settings, rows.n_features, Serial(), counter)
    outputs = X @ found.index.to_matrix().toarray()
    sides = codes[labels.ids]
    votes, n_rows = (np.hstack([each[part] for each in counted]) for part in (0, 1))
    for c in range(labels.n_classes):
        own = labels.ids == c
        np.testing.assert_allclose(
            votes[c], (as_votes(sides[own] * outputs[own], 3.0) * (sides[own] != 0)).sum(axis=0), atol=1e-4
        )
        np.testing.assert_array_equal(n_rows[c], own.sum() * (codes[c] != 0))
    left_out = VoteCounter(prepared, labels, codes, Loss(1.0), 3.0)
    _, fewer, _ = train_dichotomizers(prepared, labels, codes, 1.0, settings, rows.n_features, Serial(), left_out)
    assert (fewer[0][0] <= counted[0][0] + 1e-9).all()
    assert fewer[0][0].sum() < counted[0][0].sum()


def test_expected_votes_hold_for_other_rows() -> None:
    """q is told from the training rows, and is nevertheless nearer to what rows get that were not learned."""
    matrix, y = make_rows(9, n=2400, n_features=400, n_classes=20, noise=0.9)
    model = SequentialClassifier(64, vote="hard", smoothing=5).fit(matrix[:800], y[:800])
    codes = model.dichotomizers_.codes[np.searchsorted(model.classes_, y)]
    index = model.dichotomizers_.index
    outputs = matrix @ index.to_matrix().toarray() + index.bias
    right = (codes * outputs > 0) + 0.5 * (codes * outputs == 0)
    known, expected = codes != 0, model.expected_votes_[np.searchsorted(model.classes_, y)]
    learned, unseen = (float(right[part][known[part]].mean()) for part in (slice(800), slice(800, None)))
    told = float(expected[known].mean())
    assert learned > unseen + 0.03
    assert unseen - 0.01 < told < (2 * learned + unseen) / 3


def test_the_loss_of_rows_left_out_is_a_part() -> None:
    rows, labels = as_rows(X), encode(Y.tolist())
    generator = np.random.default_rng(0)
    weights = np.ones(rows.n_rows, dtype=np.float32)
    codes = draw_pool(rows, labels, weights, 40, "neighbours", generator)
    prepared = solver_rows(rows, weights, generator)
    loss = measure_loss(prepared, labels, codes, 1.0, Settings(0, 0.01, 1000, 0.0, 0))
    assert loss.slope <= 0
    parts = loss.at(np.array([0.0, 1.0, 10.0, 1e9]))
    assert ((parts >= 0) & (parts <= 1)).all()
    assert (np.diff(parts) <= 0).all()


def test_expected_votes_are_kept_in_the_file(tmp_path: Path) -> None:
    model = SequentialClassifier(30).fit(X, Y)
    assert (model.expected_votes_[model.dichotomizers_.codes == 0] == 0).all()
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(abound.load(tmp_path / "model").expected_votes_, model.expected_votes_)


def test_a_merged_class_stands_where_its_better_word_stands() -> None:
    model = SequentialClassifier(60).fit(X, Y)
    before = model.decision_function(X)
    model.merge_classes([3, 5], into=3)
    both = model.decision_function(X)[:, model._class_id(3)]
    np.testing.assert_allclose(both, np.maximum(before[:, 3], before[:, 5]), atol=1e-6)


@pytest.mark.parametrize(
    "name, value",
    {
        "n_classifiers": 0,
        "b_min": 2,
        "vote": "loud",
        "pool": "deep",
        "smoothing": -1,
        "n_candidates": 0,
        "budget": 0,
    }.items(),
)
def test_wrong_parameters_are_named(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        SequentialClassifier(**{name: value}).fit(X, Y)


def test_wrong_budgets_are_named() -> None:
    model = SequentialClassifier(20).fit(X, Y)
    for name, value in (("budget", 0), ("budget", 2.5), ("max_ms", 0), ("max_ms", -1.0)):
        with pytest.raises(ValueError, match=name):
            model.predict_topk(X, **{name: value})
    with pytest.raises(ValueError, match="one row"):
        model.trajectory(X[:2])


def test_a_damaged_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = SequentialClassifier(20).fit(X, Y)
    arrays = model._model_arrays()
    wrong = arrays["dichotomizers/levels"].copy()
    wrong[0, 0] = LEVELS + 1
    monkeypatch.setattr(SequentialClassifier, "_model_arrays", lambda self: arrays | {"dichotomizers/levels": wrong})
    model.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="levels"):
        abound.load(tmp_path / "model")
