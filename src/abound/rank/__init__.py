"""Rank: the best classes of each row, never all of them."""

from abound.rank.topk import Ranking, rank_topk, score_all, silent_rows

__all__ = ["Ranking", "rank_topk", "score_all", "silent_rows"]
