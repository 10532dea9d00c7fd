"""What must be true of saved words and n-grams before a table is made of them, in time linear in their size."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from abound.distribute import spans
from abound.read.textbytes import TextBytes
from abound.vectorise._scan_kernels import GOLDEN, U32
from abound.vectorise.reading import LONGEST_WORDS
from abound.vectorise.tables import pack, slots_for

IdArray = npt.NDArray[np.int32]
Keys = npt.NDArray[np.uint64]

LONGEST_RUN = 2**12
"""Taken slots side by side, at most: as many are read to miss a word. Of a million words or numbers it is below 200."""

BLOCK_BYTES = 2**20


def word_problem(names: TextBytes) -> str | None:
    """Say why bytes are no list of distinct words, None if they are.

    Parameters
    ----------
    names : TextBytes
        The words, end to end.

    Returns
    -------
    str or None
        The problem, with the word's number.
    """
    problem = _not_utf8(names)
    if problem is not None:
        return problem
    tokens = pack(names)
    keys = tokens.keys[: len(names)]
    # A word of up to eight bytes is its key; of longer ones, equal keys are looked at once more.
    alike: dict[bytes, int] = {}
    for word in _alike(keys).tolist():
        raw = names.buffer[names.begins[word] : names.ends[word]].tobytes()
        if alike.setdefault(raw, word) != word:
            return f"be distinct: word {word} is {raw[:80].decode('utf-8', 'replace')!r}, as word {alike[raw]} is"
    return _crowd(keys)


def gram_problem(prefixes: IdArray, words: IdArray) -> str | None:
    """Say why pairs of a prefix and a word, each prefix before what it begins, are no list of distinct n-grams.

    Parameters
    ----------
    prefixes, words : int32 arrays
        As in `GramTable`.

    Returns
    -------
    str or None
        The problem, with the n-gram's number; None if there is none.
    """
    is_longer = prefixes < 0
    longer = np.flatnonzero(is_longer)
    for _ in range(LONGEST_WORDS - 2):
        # What is left has a prefix that is not yet known to be short enough.
        longer = longer[is_longer[-2 - prefixes[longer]]]
        is_longer[:] = False
        is_longer[longer] = True
    if len(longer):
        return f"have at most {LONGEST_WORDS} words: n-gram {longer[0]} has more"
    keys = prefixes.view(np.uint32).astype(np.uint64) << U32 | words.view(np.uint32)
    alike = _alike(keys)
    if len(alike):
        return f"be distinct: n-gram {alike[1]} is the same as n-gram {alike[0]}"
    return _crowd(keys)


def is_distinct(codes: IdArray, n_words: int, n_grams: int) -> bool:
    """Tell whether codes, all of them in range, differ.

    Parameters
    ----------
    codes : int32 array
        Codes of words and n-grams.
    n_words, n_grams : int
        How many there are.

    Returns
    -------
    bool
        Whether none is there twice.
    """
    places = np.where(codes >= 0, codes, n_words - 2 - codes.astype(np.int64))
    is_taken = np.zeros(n_words + n_grams, np.bool_)
    is_taken[places] = True
    return int(is_taken.sum()) == len(codes)


def _not_utf8(names: TextBytes) -> str | None:
    buffer, bounds = names.buffer, np.append(names.begins, len(names.buffer))
    for begin, end in spans(bounds, 1 + len(buffer) // BLOCK_BYTES):
        piece, starts = buffer[bounds[begin] : bounds[end]], bounds[begin:end] - bounds[begin]
        # A word may not begin within a character; half of a surrogate pair may be one, see `blocks.encode`.
        within = np.flatnonzero(piece[starts[starts < len(piece)]] & 0xC0 == 0x80)
        try:
            str(piece.data, "utf-8", "surrogatepass")
            if not len(within):
                continue
            place = int(starts[within[0]])
        except UnicodeDecodeError as error:
            place = error.start
        word = begin + int(np.searchsorted(starts, place, side="right")) - 1
        return f"be UTF-8: word {word} is not (byte {bounds[begin] + place})"
    return None


def _alike(keys: Keys) -> npt.NDArray[np.int64]:
    """Where keys stand that occur more than once, equal ones one after another."""
    in_order = np.sort(keys)
    repeated = np.unique(in_order[1:][in_order[1:] == in_order[:-1]])
    if not len(repeated):
        return np.empty(0, np.int64)
    places = np.flatnonzero(np.isin(keys, repeated))
    return places[np.argsort(keys[places], kind="stable")]


def _crowd(keys: Keys) -> str | None:
    """Say that too many keys are side by side in the table that will be made of them; see `_table_kernels.home`."""
    n_slots = slots_for(len(keys))
    homes: Any = (keys ^ keys >> U32) * GOLDEN >> U32
    homes = np.sort((homes & np.uint64(n_slots - 1)).astype(np.int64))
    # Two rounds, because a run may go on at the table's beginning.
    homes = np.concatenate((homes, homes + n_slots))
    order = np.arange(len(homes))
    places = np.maximum.accumulate(homes - order) + order
    ends = np.flatnonzero(np.diff(places) > 1)
    longest = int(np.diff(ends).max(initial=0)) if len(ends) > 1 else len(homes) // 2
    if longest <= LONGEST_RUN:
        return None
    return f"spread over a table: {longest} of them are side by side, and a look-up would take too long"
