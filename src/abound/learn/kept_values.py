"""Results of training as arrays and JSON, and back: what a checkpoint keeps of a finished part.

Nothing is pickled. Only the kinds of values that stand here are ever made from a file.
"""

from __future__ import annotations

import dataclasses
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from abound.store import Section

Arrays = dict[str, npt.NDArray[Any]]

KINDS = {
    "ClassIndex": "abound.index.class_index",
    "Duals": "abound.learn.recursive_nodes",
    "Edges": "abound.learn.linear_solver",
    "Expert": "abound.learn.expert_lists",
    "Fold": "abound.learn.expert_training",
    "Leaf": "abound.learn.recursive_leaves",
    "Node": "abound.learn.recursive_nodes",
    "NodeEntries": "abound.rank.tree_weights",
    "Outcome": "abound.learn.linear_solver",
    "TreeShape": "abound.learn.label_tree_shape",
}
"""Named tuples and data classes that are kept field by field, and where they are."""


def take_apart(value: Any, arrays: Arrays) -> Any:
    """Describe a value so that JSON holds it, its arrays aside.

    Parameters
    ----------
    value : object
        Numbers, texts, arrays, learners, values of `KINDS`, or lists, tuples and dictionaries of these.
    arrays : dict
        Its arrays are added here.

    Returns
    -------
    object
        The description.

    Examples
    --------
    >>> arrays = {}
    >>> take_apart((1, np.ones(2, np.float32)), arrays)
    {'tuple': [1, {'array': '0', 'fixed': False}]}
    >>> list(arrays)
    ['0']
    """
    from abound.learn.base import RankingClassifier
    from abound.learn.persist import learner_arrays

    if value is None or isinstance(value, bool | str) or type(value) is int:
        return value
    if type(value) is float:
        # Exact, and there is a way to write infinity.
        return {"float": value.hex()}
    if isinstance(value, np.ndarray):
        name = str(len(arrays))
        arrays[name] = value
        return {"array": name, "fixed": not value.flags.writeable}
    if isinstance(value, np.generic):
        name = str(len(arrays))
        arrays[name] = np.array([value])
        return {"scalar": name}
    if isinstance(value, RankingClassifier):
        prefix = f"{len(arrays)}/"
        own, meta = learner_arrays(value)
        arrays |= {prefix + name: array for name, array in own.items()}
        return {"learner": take_apart(meta, arrays), "prefix": prefix, "is_part": value._is_part}
    kind = type(value).__name__
    if kind in KINDS:
        names = getattr(value, "_fields", None) or [field.name for field in dataclasses.fields(value) if field.init]
        return {"kind": kind, "fields": [take_apart(getattr(value, name), arrays) for name in names]}
    if isinstance(value, list | tuple):
        return {kind: [take_apart(each, arrays) for each in value]}
    if isinstance(value, dict):
        return {"dict": [[take_apart(key, arrays), take_apart(each, arrays)] for key, each in value.items()]}
    raise TypeError(f"a checkpoint cannot keep a {kind}")


def put_together(told: Any, stored: Section) -> Any:
    """Make the value that was taken apart.

    Parameters
    ----------
    told : object
        The description.
    stored : Section
        The arrays; the value has copies of them.

    Returns
    -------
    object
        The value.
    """
    from abound.learn.persist import learner_from

    if not isinstance(told, dict):
        return told
    match told:
        case {"float": text}:
            return float.fromhex(text)
        case {"array": name, "fixed": fixed}:
            array = np.array(stored[name])
            array.flags.writeable = not fixed
            return array
        case {"scalar": name}:
            return stored[name][0]
        case {"learner": meta, "prefix": prefix, "is_part": is_part}:
            own = {name: np.array(array) for name, array in stored.section(prefix).items()}
            for array in own.values():
                array.flags.writeable = False
            learner = learner_from(Section(stored.path, prefix, own), put_together(meta, stored))
            learner._is_part = is_part
            return learner
        case {"kind": kind, "fields": fields} if kind in KINDS:
            make = getattr(import_module(KINDS[kind]), kind)
            return make(*(put_together(each, stored) for each in fields))
        case {"list": each}:
            return [put_together(one, stored) for one in each]
        case {"tuple": each}:
            return tuple(put_together(one, stored) for one in each)
        case {"dict": pairs}:
            return {put_together(key, stored): put_together(each, stored) for key, each in pairs}
    raise stored.fault("meta", "a value of an unknown kind")
