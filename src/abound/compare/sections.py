"""The parts of a report that are words and tables."""

from __future__ import annotations

import math
from html import escape

from abound.compare.doubts import best_tried
from abound.compare.elements import paragraph, section, table
from abound.compare.findings import Findings
from abound.compare.near_copies import LIKENESS
from abound.compare.protocol import shown_setting
from abound.compare.results import LEVEL, Difference
from abound.compare.splits import CHOOSE_SHARE
from abound.read.documents import Documents

MEASURES = {
    "R1": "R1",
    "R5": "R5",
    "MRR": "MRR",
    "micro_f1": "micro-F1",
    "macro_f1": "macro-F1",
    "P@5": "P@5",
    "nDCG@5": "nDCG@5",
    "PSP@5": "PSP@5",
    "tree_loss": "tree loss",
}
"""Measures of the table, those that the data allows."""


def facts_of(found: Findings) -> str:
    """Describe the data in a line.

    Parameters
    ----------
    found : Findings
        Of the comparison.

    Returns
    -------
    str
        Text.
    """
    traits = found.traits
    tested = f", {found.lines[0].rows[0]['sizes']['held_rows']:,} test rows" if found.lines else ""
    return (
        f"{traits.rows:,} training rows{tested}, {traits.classes:,} classes, {traits.nonzeros_a_row:.1f} features a "
        f"row, {traits.labels_a_row:.2f} labels a row, {traits.taxonomy or 'no'} taxonomy."
    )


def recommendation(found: Findings, command: str | None) -> str:
    """Say which learner to take.

    Parameters
    ----------
    found : Findings
        Of the comparison.
    command : str or None
        What to type.

    Returns
    -------
    str
        HTML.
    """
    parts = [paragraph(sentence) for sentence in found.advice.sentences]
    parts += [paragraph(sentence, "warning") for sentence in found.doubts.sentences()]
    if command is not None:
        parts.append(f"<pre>{escape(command)}</pre>")
    return section("recommendation", "Recommendation", *parts)


def measures(found: Findings) -> str:
    """Show the figures of all learners.

    Parameters
    ----------
    found : Findings
        Of the comparison.

    Returns
    -------
    str
        HTML.
    """
    lines = found.lines
    shown = {name: title for name, title in MEASURES.items() if lines and name in lines[0].measures}
    if all(line.measures["micro_f1"].mean == line.measures["R1"].mean for line in lines):
        shown.pop("micro_f1", None)
    columns = [
        *("learner", "setting", *shown.values(), "train s", "rank ms a row", "|W|", "d", "model MB", "peak MB"),
    ]
    rows = [
        [
            *(line.learner, line.shown or "defaults", *(str(line.measures[name]) for name in shown)),
            *(seconds(line.train_seconds), f"{line.rank_ms:.3f}", f"{line.edges:,}", _number(line.edges_touched)),
            *(f"{line.model_bytes / 1e6:,.1f}", "" if line.memory is None else f"{line.memory / 1e6:,.0f}"),
        ]
        for line in lines
    ]
    best = next((i for i, line in enumerate(lines) if line.learner == found.advice.take), None)
    over = f" Mean ± standard deviation over {len(lines[0].rows)} splits." if lines and len(lines[0].rows) > 1 else ""
    note = (
        "Measured once on the test rows. R1, R5: share of rows with a true class among the first 1 or 5. |W|: weights "
        "kept; d: those touched for each feature of a row." + over
    )
    return section(
        "table", "All learners, best first", table(columns, rows, words=(1,), best=best), paragraph(note, "quiet")
    )


def confusions(found: Findings) -> str:
    """Show which classes are taken for which.

    Parameters
    ----------
    found : Findings
        Of the comparison.

    Returns
    -------
    str
        HTML.
    """
    if not found.lines:
        return section("confusions", "Confusion neighbours", paragraph("No learner has a result."))
    line = next((line for line in found.lines if line.learner == found.advice.take), found.lines[0])
    titles, taxonomy = found.comparison.dataset.titles, found.comparison.dataset.taxonomy

    def named(label: str) -> str:
        title = titles.get(label)
        return f"{label} {title}" if title else label

    def distance(one: str, other: str) -> str:
        known = taxonomy is not None and one in taxonomy and other in taxonomy
        return str(taxonomy.distance(one, other)) if known and taxonomy is not None else ""

    rows = [
        [
            *(named(entry["true"]), named(entry["first"]), f"{entry['rows']:,}", f"{entry['of']:,}"),
            *([distance(entry["true"], entry["first"])] if taxonomy is not None else []),
        ]
        for entry in line.rows[0]["confusions"]
    ]
    columns = ["true class", "taken for", "rows", "of", *(["steps in the taxonomy"] if taxonomy is not None else [])]
    note = f"The pairs that {line.learner} confuses most: so many test rows of the true class, of all it has."
    shown = table(columns, rows, words=(0, 1)) if rows else paragraph("There is none.")
    return section("confusions", "Confusion neighbours", paragraph(note, "quiet"), shown)


def doubts(found: Findings) -> str:
    """Show how like the rows that were learned from those are that were asked about.

    Parameters
    ----------
    found : Findings
        Of the comparison.

    Returns
    -------
    str
        HTML.
    """
    title, gap, parts = "Can the figures be trusted?", found.doubts.gap, []
    if gap is not None:
        parts.append(
            paragraph(
                f"{gap.learner}: R1 {gap.held_out:.3f} on {gap.held_out_rows:,} rows that settings were chosen by, "
                f"{gap.test:.3f} on {gap.test_rows:,} test rows."
            )
        )
    if not found.doubts.copies:
        return section("doubts", title, *parts, paragraph("Rows are dense: near copies were not looked for.", "quiet"))
    note = (
        f"A near copy has at least {LIKENESS:.0%} of the words or features that either of the two has, whatever their "
        "order and number. Who has learned it has nearly seen the row: --group COLUMN keeps rows that belong together "
        "on one side."
    )
    rows = [[f"{one.of} rows", f"{one.rows:,}", f"{one.share:.1%}", f"{one.same:.1%}"] for one in found.doubts.copies]
    shown = table(["rows", "looked for", "have a near copy", "of the same words"], rows)
    examples = [
        [one.of, each["row"], ", ".join(each["labels"]), each["copy"], ", ".join(each["copy_labels"])]
        for one in found.doubts.copies
        for each in one.examples
    ]
    columns = ["rows", "row", "its class", "near copy that was learned", "its class"]
    like = table(columns, examples, words=(1, 2, 3, 4)) if examples else ""
    return section("doubts", title, *parts, shown, paragraph(note, "quiet"), like)


def reliability(found: Findings) -> list[str]:
    """Show whether probabilities keep what they say, if there are any.

    Parameters
    ----------
    found : Findings
        Of the comparison.

    Returns
    -------
    list of str
        HTML; empty where no learner was calibrated.
    """
    known = {line.learner: line.rows[0]["reliability"] for line in found.lines if "reliability" in line.rows[0]}
    if not known:
        return []
    errors = [[name, f"{bins['error']:.3f}", f"{bins['bound']:.3f}"] for name, bins in known.items()]
    name = found.advice.take if found.advice.take in known else next(iter(known))
    bins = known[name]
    rows = [
        [f"{said:.3f}", f"{right:.3f}", f"{n:,}"]
        for said, right, n in zip(bins["said"], bins["right"], bins["rows"], strict=True)
    ]
    note = (
        "The calibration error is the mean over the test rows of how far what is said of the first class is from what "
        "is right, in bins of as many rows each; luck alone makes it more than 0. At most: with 95% confidence."
    )
    of = paragraph(f"What {name} says of its first class, and how often that is right:")
    return [
        section(
            "reliability",
            "Do probabilities keep what they say?",
            table(["learner", "calibration error", "at most"], errors),
            paragraph(note, "quiet"),
            of,
            table(["says", "right", "rows"], rows),
        )
    ]


def significance(found: Findings) -> str:
    """Show which differences are more than luck.

    Parameters
    ----------
    found : Findings
        Of the comparison.

    Returns
    -------
    str
        HTML.
    """
    title, rows = "Which differences are real?", [_difference(pair) for pair in found.differences]
    if not rows:
        return section("significance", title, paragraph("There is no pair of learners to look at."))
    note = (
        "Pairs of learners on the same test rows. Rows: sign test over the rows that only one of the two gets right; p "
        "is two-sided and made larger for the number of pairs (Holm). Up to "
        f"{LEVEL} a difference counts as real. Classes: Wilcoxon signed-rank test over the F1 of each class. Splits: "
        "how often the first was better, and a sign test."
    )
    columns = ["first", "second", "only first right", "only second right", "p (rows)", "verdict", "p (classes)"]
    shown = table([*columns, "splits"], rows, words=(1, 5))
    return section("significance", title, paragraph(note, "quiet"), shown)


def method(found: Findings) -> str:
    """Say how the figures were made, and what is not among them.

    Parameters
    ----------
    found : Findings
        Of the comparison.

    Returns
    -------
    str
        HTML.
    """
    parts = [
        paragraph(_protocol(found)),
        table(["learner", "setting tried", "R1 on held-out rows"], _tried(found), words=(1,)),
    ]
    missing = found.left_out()
    if missing:
        parts += [paragraph("Left out:"), *(paragraph(line) for line in missing)]
    said = [[line.learner, text] for line in found.lines for text in line.rows[0]["warnings"]]
    if said:
        parts.append(table(["warnings of", "what"], said, words=(1,)))
    return section("method", "How this was measured", *parts)


def made_by(found: Findings) -> str:
    """Say when, with what and where the comparison ran.

    Parameters
    ----------
    found : Findings
        Of the comparison.

    Returns
    -------
    str
        Text.
    """
    if not found.lines:
        return "Made by abound compare."
    row = found.lines[0].rows[-1]
    shown = ", ".join(f"{name} {number}" for name, number in row["versions"].items())
    machine = row["machine"]
    return (
        f"Made by abound compare on {row['date'][:10]}: {shown}; {machine['cpu']}, {machine['cores']} cores, "
        f"{found.comparison.plan.jobs} threads."
    )


def _protocol(found: Findings) -> str:
    plan, dataset = found.comparison.plan, found.comparison.dataset
    own = plan.n_splits == 1 and dataset.test is not None
    split = "The test rows are the data's own." if own else f"Test rows were drawn at random (seed {plan.seed})."
    if dataset.train.groups is not None:
        split += " Rows of a group are on one side of every split that was drawn."
    valid = plan.n_splits == 1 and dataset.valid is not None
    where = "the data's validation rows" if valid else f"{CHOOSE_SHARE:.0%} of the training rows, drawn at random"
    said = (
        f"{split} Settings were chosen by R1 on {where}; a learner with passes was measured after each of them. Each "
        "experiment ran alone, in a process of its own. Train seconds are learning alone, after a first call on a few "
        "rows that compiles. Peak memory is that of the whole process, data and libraries included; the model file is "
        "that of the learner, without a vectoriser."
    )
    if found.lines and isinstance(dataset.train, Documents):
        seconds_of_all = found.lines[0].rows[0]["timings"]["vectorise"]
        setting = shown_setting(plan.text) or "defaults"
        said += f" Texts were made into vectors in {seconds_of_all:.1f} s, the same for all ({setting})."
    return said


def seconds(value: float) -> str:
    """Write seconds for people.

    Parameters
    ----------
    value : float
        Seconds.

    Returns
    -------
    str
        Three figures.

    Examples
    --------
    >>> seconds(0.01234), seconds(1.234), seconds(123.4)
    ('0.012', '1.23', '123')
    """
    return (
        f"{value:.3f}"
        if value < 1
        else f"{value:.2f}"
        if value < 10
        else f"{value:,.1f}"
        if value < 100
        else f"{value:,.0f}"
    )


def _tried(found: Findings) -> list[list[str]]:
    rows: list[list[str]] = []
    for contender in found.comparison.contenders:
        if not contender.tried:
            rows.append([contender.learner, shown_setting(contender.chosen or {}) or "defaults", "nothing to choose"])
        for row in contender.tried:
            result = row["error"]["message"] if row["error"] else f"{best_tried(row):.3f}"
            rows.append([contender.learner, shown_setting(row["experiment"]["parameters"]) or "defaults", result])
        rows += [[contender.learner, shown_setting(setting), "no time for it"] for setting in contender.untried]
    return rows


def _difference(pair: Difference) -> list[str]:
    winner = pair.first if pair.rows.better == "first" else pair.second
    splits, over = "", pair.splits
    if over is not None:
        splits = f"{over.wins} of {over.wins + over.losses + over.ties}, p {p_text(over.p_value)}"
    return [
        *(pair.first, pair.second, f"{pair.rows.wins:,}", f"{pair.rows.losses:,}", p_text(pair.p_value)),
        *(f"{winner} is better" if pair.real else "may be luck",),
        *("" if pair.classes is None else p_text(pair.classes.p_value), splits),
    ]


def p_text(p_value: float) -> str:
    """Write a p-value.

    Parameters
    ----------
    p_value : float
        Between 0 and 1.

    Returns
    -------
    str
        Two figures.

    Examples
    --------
    >>> p_text(0.0312), p_text(1e-20), p_text(1.0)
    ('0.031', '< 0.0001', '1')
    """
    return "< 0.0001" if p_value < 1e-4 else f"{p_value:.2g}"


def _number(value: float | None) -> str:
    return "" if value is None or not math.isfinite(value) else f"{value:,.1f}"
