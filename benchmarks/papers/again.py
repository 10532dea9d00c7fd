"""How the benchmarks measure what the papers' tables need, on all rows or on few."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from beside import Recorder

Measuring = Callable[[Recorder, Path, bool], None]


def ablation(name: str, texts_only: bool = False, **options: Any) -> Measuring:
    """Measure with a function of ``ablations.py``, with the margin and passes that figure 14 chooses."""

    def measure(recorder: Recorder, data: Path, quick: bool) -> None:
        import ablations

        sets = ("news20",) if quick else ablations.SETS
        sources = [ablations.load(data, one, quick) for one in sets if not (texts_only and one == "austen")]
        if name == "margins_and_passes":
            ablations.margins_and_passes(recorder, sources)
            return
        silent = Recorder("ablations", ablations.__doc__, data, keep=False)
        sources = ablations.margins_and_passes(silent, sources)
        sources = sources[:1] if name == "unweighted" else sources
        getattr(ablations, name)(recorder, sources, **options)

    return measure


def prototype(name: str, sets: tuple[str, ...], *more: Any) -> Measuring:
    """Measure with a function of ``prototypes.py``."""

    def measure(recorder: Recorder, data: Path, quick: bool) -> None:
        import prototypes
        from tasks import text_parts

        for data_set in sets[:1] if quick else sets:
            parts = text_parts(data, data_set, 1)
            parts = parts.shortened(1000) if quick else parts
            prototypes.TABLES[name](parts, data_set, 2, recorder, *more)

    return measure


def script(name: str, *words: str, quick: tuple[str, ...] = ()) -> Measuring:
    """Measure with the main program of a benchmark and some of its options, ``quick`` for a quick look."""

    few = ("--quick", *quick)

    def measure(recorder: Any, data: Path, quick: bool) -> None:
        import importlib
        import sys

        module = importlib.import_module(name)
        before, maker = sys.argv, module.Recorder
        sys.argv = [f"{name}.py", str(data), *words, *(few if quick else ())]
        module.Recorder = lambda *args, **kwargs: recorder
        try:
            module.main()
        finally:
            sys.argv, module.Recorder = before, maker

    return measure


def switch(title: str) -> Measuring:
    """Measure figure 15 or 16 as the main program of ``ablations.py`` does."""

    def measure(recorder: Recorder, data: Path, quick: bool) -> None:
        import ablations

        sources = [ablations.load(data, one, quick) for one in (("news20",) if quick else ablations.SETS)]
        sources = ablations.margins_and_passes(Recorder("ablations", ablations.__doc__, data, keep=False), sources)
        ablations.switch(recorder, sources, title, *SWITCHES[title])

    return measure


SWITCHES: dict[str, tuple[Any, ...]] = {
    "Figure 15: weight leaks": (
        "leak",
        False,
        True,
        "on some sets leaks can significantly improve accuracy",
        {"without": "0.866 ± 0.005", "with": "0.865 ± 0.005"},
    ),
    "Figure 16: down-weighting of infrequent features": (
        "rate_features",
        None,
        10,
        "down-weighting infrequent features can significantly improve accuracy",
        {"without": "0.860 ± 0.005", "with": "0.865 ± 0.005"},
    ),
}
"""The option of each figure, off and on, the finding, and the paper's figures on newsgroups."""
