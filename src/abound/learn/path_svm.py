"""HSVM: a large-margin learner whose classes score by all nodes of their path (KDD 2013's baseline).

Objective, N examples, Δ the number of edges between two classes in the tree::

    F(x, y) = Σ_{z ∈ path(y)} w_z·x
    min ½ Σ_z ‖w_z‖² + C/N Σ_i ξ_i,   ξ_i ≥ 0, for all wrong classes y
        F(x_i, y_i) − F(x_i, y) ≥ 1 − ξ_i / Δ(y_i, y)    rescaling="slack"
        F(x_i, y_i) − F(x_i, y) ≥ Δ(y_i, y) − ξ_i        rescaling="margin"

Seen from the classes, whose weights are the sums over their paths, this is one problem with a quadratic penalty whose
metric holds the number of nodes that two paths share. It is solved in the dual by block-coordinate Frank-Wolfe
(Lacoste-Julien et al. 2013, with the pairwise steps of Osokin et al. 2016). A sweep costs non-zeros × classes.
Cai and Hofmann, CIKM 2004; Tsochantaridis et al., JMLR 2005.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from abound.index.class_index import ClassIndex
from abound.learn.class_tree import ClassTree
from abound.learn.margin_dual import Candidates, MarginDual, Quadratic, solve_dual
from abound.learn.tree_learner import TreeLearner, check_table
from abound.validation import Float64Array, check_choice, check_number, make_generator


class PathSVMClassifier(TreeLearner):
    """HSVM: the path of a class scores, and mistakes far away in the tree cost more.

    Parameters
    ----------
    taxonomy : Taxonomy, path or None, default=None
        The tree of the classes, or a file with ``parent child`` a line; None puts all classes under one root, where
        this is the multi-class SVM of Crammer and Singer.
    C : float, default=100.0
        Weight of the mean loss against the penalty.
    rescaling : {"slack", "margin"}, default="slack"
        Whether the distance Δ to a wrong class multiplies its slack or is the margin to it.
    tol : float, default=0.01
        Stop when the duality gap is below this part of the objective.
    max_sweeps : int, default=1000
        Sweeps over the rows after which the weights are taken as they are, with a warning.
    bias : float or "auto", default="auto"
        See `LinearClassifier`.
    calibrate : None, "platt" or "isotonic", default=None
        Learn on held-out rows to turn scores into probabilities, by a sigmoid or by any rising curve.
    cut : str or None, default="auto"
        With several labels a row, which classes to predict: "rcut", "instance", "scut", "scut-fbr", "pcut" or "zero",
        learned on held-out rows; "auto" takes the best that needs no other rows; None as many as rows have on average.
    random_state : int, RandomState or None, default=0
        Seed of the order of the rows.
    n_jobs : int or None, default=None
        Threads for ranking; learning uses one.

    Attributes
    ----------
    index_ : ClassIndex
        The sums of the weights on each class's path, which rank.
    tree_ : ClassTree
        The taxonomy, resolved against the classes.
    history_ : list of dict
        Objective and dual objective at the sweeps where they were measured.

    Notes
    -----
    A row with several labels counts once for each, and its other labels are no mistakes. The learner is meant for small
    data: it holds examples × classes and features × classes.

    Examples
    --------
    >>> from abound import PathSVMClassifier, Taxonomy
    >>> taxonomy = Taxonomy.from_edges([("drinks", "hot"), ("hot", "tea"), ("hot", "coffee"), ("drinks", "milk")])
    >>> X, y = [[1, 0, 1], [0, 1, 1], [1, 1, 0]], ["tea", "coffee", "milk"]
    >>> PathSVMClassifier(taxonomy).fit(X, y).predict([[1, 0, 1]]).tolist()
    ['tea']
    """

    learner: ClassVar[str] = "hsvm"

    def __init__(
        self,
        taxonomy: Any = None,
        C: float = 100.0,
        rescaling: str = "slack",
        tol: float = 0.01,
        max_sweeps: int = 1000,
        bias: float | str = "auto",
        calibrate: str | None = None,
        cut: str | None = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.taxonomy = taxonomy
        self.C = C
        self.rescaling = rescaling
        self.tol = tol
        self.max_sweeps = max_sweeps
        self.bias = bias
        self.calibrate = calibrate
        self.cut = cut
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the weights of all nodes together.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
            The rows.
        y : array, list of lists or indicator
            Their labels.
        sample_weight : array of shape (n,), optional
            How much each row counts.

        Returns
        -------
        self
            The fitted learner.
        """
        examples = self._gather(X, y, sample_weight)
        check_table("the distances between all classes", self.tree_.n_classes, self.tree_.n_classes)
        shared = shared_nodes(self.tree_)
        problem = MarginDual(
            examples,
            self.C * examples.shares,
            (examples.labels.indptr, examples.labels.ids),
            path_candidates(shared, self.rescaling),
            Quadratic(shared),
        )
        generator = make_generator(self.random_state)
        solution = solve_dual(problem, max_sweeps=self.max_sweeps, tol=self.tol, generator=generator)
        self._index = ClassIndex.from_matrix(solution.weights).with_constant(self._constant)
        self.history_ = solution.history
        return self._learn_decisions(X, examples.labels, examples.weights)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("C", self.C, 0, above=True)
        check_choice("rescaling", self.rescaling, ("slack", "margin"))
        check_number("tol", self.tol, 0, above=True)
        check_number("max_sweeps", self.max_sweeps, 1, whole=True)


def shared_nodes(tree: ClassTree) -> Float64Array:
    """Count the nodes that the paths of each two classes share, the root left out.

    Parameters
    ----------
    tree : ClassTree
        The tree.

    Returns
    -------
    float64 array of shape (n_classes, n_classes)
        The inner products of the paths.
    """
    on_path = np.zeros((tree.n_classes, tree.n_nodes))
    on_path[np.repeat(np.arange(tree.n_classes), np.diff(tree.paths.indptr)), tree.paths.indices] = 1
    shared: Float64Array = on_path @ on_path.T
    return shared


def path_candidates(shared: Float64Array, rescaling: str) -> Candidates:
    """List, for each class, all others, with what it costs to mistake it for them.

    Parameters
    ----------
    shared : float64 array of shape (n_classes, n_classes)
        See `shared_nodes`.
    rescaling : {"slack", "margin"}
        What the distance multiplies.

    Returns
    -------
    Candidates
        Vertices are classes.
    """
    n_classes = len(shared)
    level = np.diag(shared)
    left, right = np.nonzero(~np.eye(n_classes, dtype=np.bool_))
    cost = level[left] + level[right] - 2 * shared[left, right]
    scale = cost if rescaling == "slack" else np.ones(len(cost))
    indptr = np.arange(n_classes + 1) * (n_classes - 1)
    return Candidates(indptr.astype(np.int64), left.astype(np.int32), right.astype(np.int32), scale, cost)
