"""``abound learners``: what can be trained."""

from __future__ import annotations

from typing import Any

from abound.serve.commands.options import JsonOption
from abound.serve.output import show, write_json


def learners(json: JsonOption = False) -> None:
    """List the learners with their parameters."""
    from inspect import signature

    from abound.learn.registry import LEARNERS

    found: list[dict[str, Any]] = [
        {
            "learner": name,
            "class": kind.__name__,
            "what": (kind.__doc__ or "").strip().partition("\n")[0],
            "online": hasattr(kind, "partial_fit"),
            "parameters": {name: parameter.default for name, parameter in signature(kind).parameters.items()},
        }
        for name, kind in LEARNERS.items()
    ]
    if json:
        write_json(found)
        return
    for entry in found:
        parameters = ", ".join(f"{name}={value!r}" for name, value in entry["parameters"].items())
        show(f"{entry['learner']}: {entry['what']}", f"  {parameters}", "")
