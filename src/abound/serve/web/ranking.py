"""From questions to answers: texts to rows, rows to ids, ids to what is sent."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_json

from abound.serve.served import ServedModel
from abound.serve.version import InputError, Ranked, Version
from abound.serve.web.schemas import BatchRequest, Choice, ExplainRequest, Item, SuggestRequest

Steps = list[tuple[str, float]]


@dataclass(slots=True)
class Question:
    """A request for the classes of one text or vector.

    Parameters
    ----------
    served : ServedModel
        The model.
    asked : SuggestRequest
        What is asked.
    """

    served: ServedModel
    asked: SuggestRequest


@dataclass(slots=True)
class Answer:
    """What is sent.

    Parameters
    ----------
    body : bytes
        JSON.
    steps : list of (str, float)
        Where the time went, in seconds.
    """

    body: bytes
    steps: Steps = field(default_factory=list)


def answer_questions(questions: Sequence[Question], waited: Sequence[float]) -> list[Answer | Exception]:
    """Answer questions that came at the same time, those about the same model in one call.

    Parameters
    ----------
    questions : sequence of Question
        The questions.
    waited : sequence of float
        Seconds that each has waited.

    Returns
    -------
    list of Answer or Exception
        In their order.
    """
    answers: list[Any] = [None] * len(questions)
    groups: dict[tuple[int, bool, int], list[int]] = {}
    for i, question in enumerate(questions):
        asked = question.asked
        is_alone = asked.include is not None or asked.exclude is not None
        key = (id(question.served), asked.text is not None, i if is_alone else -1)
        groups.setdefault(key, []).append(i)
    for places in groups.values():
        group = [questions[i] for i in places]
        try:
            _answer_group(group, [waited[i] for i in places], places, answers)
        except InputError as error:
            if len(group) > 1:
                # One bad vector is no reason to refuse its neighbours.
                for i in places:
                    answers[i] = answer_questions([questions[i]], [waited[i]])[0]
            else:
                answers[places[0]] = error
    return answers


def _answer_group(group: list[Question], waited: list[float], places: list[int], answers: list[Any]) -> None:
    first = group[0].asked
    version = group[0].served.version
    begin = time.perf_counter()
    mask = version.mask(first.include, first.exclude)
    rows = _rows(version, [question.asked for question in group])
    vectorised = time.perf_counter()
    ranking = version.rank(rows, max(question.asked.limit for question in group), mask)
    ranked = time.perf_counter()
    # Neighbours share the time of a call.
    shared = [("vectorise", (vectorised - begin) / len(group)), ("rank", (ranked - vectorised) / len(group))]
    for row, (i, question) in enumerate(zip(places, group, strict=True)):
        before = time.perf_counter()
        asked = question.asked
        body: dict[str, Any] = {"version": version.name, "suggestions": _suggestions(version, ranking, row, asked)}
        if asked.id is not None:
            body["id"] = asked.id
        written = to_json(body)
        answers[i] = Answer(written, [("wait", waited[row]), *shared, ("write", time.perf_counter() - before)])


def answer_batch(served: ServedModel, asked: BatchRequest) -> Answer:
    """Rank the classes of many items.

    Parameters
    ----------
    served : ServedModel
        The model.
    asked : BatchRequest
        The items.

    Returns
    -------
    Answer
        In their order.
    """
    version = served.version
    begin = time.perf_counter()
    mask = version.mask(asked.include, asked.exclude)
    rows = _rows(version, asked.items)
    vectorised = time.perf_counter()
    ranking = version.rank(rows, asked.limit, mask)
    ranked = time.perf_counter()
    items = []
    for row, item in enumerate(asked.items):
        body: dict[str, Any] = {"suggestions": _suggestions(version, ranking, row, asked)}
        if item.id is not None:
            body["id"] = item.id
        items.append(body)
    written = to_json({"version": version.name, "items": items})
    steps = [("vectorise", vectorised - begin), ("rank", ranked - vectorised), ("write", time.perf_counter() - ranked)]
    return Answer(written, steps)


def explain(served: ServedModel, asked: ExplainRequest) -> Answer:
    """Rank the classes of one item and tell which features vote for each.

    Parameters
    ----------
    served : ServedModel
        The model.
    asked : ExplainRequest
        The item.

    Returns
    -------
    Answer
        Classes with their votes.
    """
    version = served.version
    begin = time.perf_counter()
    only = None if asked.label is None else version.mask([asked.label], None)
    rows = _rows(version, [asked])
    ranking = version.rank(rows, asked.limit, only)
    pairs = _pairs(ranking, 0)
    ranked = time.perf_counter()
    votes = version.votes(rows, asked.text, [c for c, _ in pairs])
    classes = [
        {
            **version.card(c),
            "score": _short(score),
            "path": version.path(c),
            "votes": [vote._replace(value=_short(vote.value))._asdict() for vote in heard],
        }
        for (c, score), heard in zip(pairs, votes, strict=True)
    ]
    body: dict[str, Any] = {"version": version.name, "classes": classes}
    if asked.id is not None:
        body["id"] = asked.id
    return Answer(to_json(body), [("rank", ranked - begin), ("votes", time.perf_counter() - ranked)])


def _rows(version: Version, items: Sequence[Item]) -> Any:
    texts = [item.text for item in items if item.text is not None]
    vectors = [(item.features.indices, item.features.values) for item in items if item.features is not None]
    if texts and vectors:
        raise InputError("items", "some are texts and some are vectors: the model takes one of them")
    return version.rows(texts or None, vectors or None)


def _suggestions(version: Version, ranking: Ranked, row: int, choice: Choice) -> list[dict[str, Any]]:
    lowest = float("-inf") if choice.threshold is None else choice.threshold
    pairs = [(c, _short(score)) for c, score in _pairs(ranking, row)[: choice.limit]]
    found: list[dict[str, Any]] = [{**version.card(c), "score": score} for c, score in pairs if score >= lowest]
    if ranking.probabilities is not None:
        for suggestion, probability in zip(found, ranking.probabilities[row].tolist(), strict=False):
            suggestion["probability"] = _short(probability)
    if choice.paths:
        for suggestion in found:
            suggestion["path"] = version.path(version.class_ids[suggestion["label"]])
    return found


def _pairs(ranking: Ranked, row: int) -> list[tuple[int, float]]:
    """Ids and scores of a row, without what is missing."""
    ids, scores = ranking.ids[row].tolist(), ranking.scores[row].tolist()
    return [(c, score) for c, score in zip(ids, scores, strict=True) if c >= 0]


def _short(score: float) -> float:
    """Six digits: a score is a float32."""
    return float(f"{score:.6g}")
