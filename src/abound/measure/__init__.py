"""Measure: how good a ranking is, what it cost, and whether a difference means anything."""

from abound.measure.calibration import Reliability, calibration_bound, calibration_error, reliability
from abound.measure.cuts import Rule, take
from abound.measure.evaluation import Cost, TailRow, evaluate, tail_table
from abound.measure.isotonic import Isotonic, fit_isotonic
from abound.measure.metrics import (
    accuracy,
    evaluate_labels,
    harmonic_rank,
    macro_f1,
    mean_reciprocal_rank,
    micro_f1,
    ndcg_at_k,
    precision_at_k,
    ps_ndcg_at_k,
    ps_precision_at_k,
    recall_at_k,
    tree_loss,
)
from abound.measure.platt import PowerSigmoid, Sigmoid, fit_platt, fit_power
from abound.measure.ranking import EVALUATION_DEPTH, inverse_propensities, ranking_measures
from abound.measure.significance import Comparison, class_f1_test, decision_sign_test, sign_test, wilcoxon_test
from abound.measure.splits import Summary, repeated_splits, summarise
from abound.measure.thresholds import compare_cuts, learn_cut
from abound.measure.treeloss import ClassDistances

__all__ = [
    "EVALUATION_DEPTH",
    "evaluate",
    "evaluate_labels",
    "ranking_measures",
    "recall_at_k",
    "mean_reciprocal_rank",
    "harmonic_rank",
    "accuracy",
    "micro_f1",
    "macro_f1",
    "tree_loss",
    "ClassDistances",
    "precision_at_k",
    "ndcg_at_k",
    "ps_precision_at_k",
    "ps_ndcg_at_k",
    "inverse_propensities",
    "tail_table",
    "TailRow",
    "Cost",
    "reliability",
    "Reliability",
    "calibration_bound",
    "calibration_error",
    "sign_test",
    "decision_sign_test",
    "wilcoxon_test",
    "class_f1_test",
    "Comparison",
    "repeated_splits",
    "summarise",
    "Summary",
    "fit_platt",
    "fit_power",
    "Sigmoid",
    "PowerSigmoid",
    "fit_isotonic",
    "Isotonic",
    "learn_cut",
    "compare_cuts",
    "take",
    "Rule",
]
