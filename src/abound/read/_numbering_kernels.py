"""Number byte strings in the order they appear: an open-addressing table that compares bytes, not only hashes."""

from __future__ import annotations

from typing import Any

import numpy as np

from abound.compiled import kernel

HASH_START = np.uint64(0xCBF29CE484222325)
HASH_STEP = np.uint64(0x100000001B3)
FINAL_STEP = np.uint64(0x9E3779B97F4A7C15)
HALF = np.uint64(32)


@kernel
def hash_bytes(buffer: Any, begin: Any, end: Any) -> Any:
    """Return a 64-bit hash of a slice (FNV-1a with a final mix, because the table uses the low bits)."""
    value = HASH_START
    for p in range(begin, end):
        value = (value ^ np.uint64(buffer[p])) * HASH_STEP
    value = (value ^ (value >> HALF)) * FINAL_STEP
    return value ^ (value >> HALF)


@kernel
def number_strings(
    buffer: Any, begins: Any, ends: Any, n_known: Any, slots: Any, hashes: Any, pool: Any, offsets: Any, ids: Any
) -> Any:
    """Give each slice of the buffer its number; a new one is appended.

    Parameters
    ----------
    buffer : uint8 array
        Bytes.
    begins, ends : int64 arrays
        The slices.
    n_known : int
        How many strings are numbered already.
    slots : int32 array
        The table, a power of two long and never full: ids, or -1.
    hashes : uint64 array
        The hash of each known string; has room for the new ones, as ``pool`` and ``offsets`` have.
    pool, offsets : uint8, int64 arrays
        The known strings, one after the other.
    ids : int32 array
        Gets the number of each slice.

    Returns
    -------
    int
        How many strings are numbered now.
    """
    mask = np.int64(len(slots) - 1)
    for i in range(len(begins)):
        begin, end = begins[i], ends[i]
        value = hash_bytes(buffer, begin, end)
        slot = np.int64(value) & mask
        while True:
            known = slots[slot]
            if known < 0:
                known = np.int32(n_known)
                slots[slot] = known
                hashes[known] = value
                at = offsets[known]
                for p in range(begin, end):
                    pool[at + p - begin] = buffer[p]
                offsets[known + 1] = at + end - begin
                n_known += 1
                break
            if hashes[known] == value and offsets[known + 1] - offsets[known] == end - begin:
                at = offsets[known]
                p = begin
                while p < end and pool[at + p - begin] == buffer[p]:
                    p += 1
                if p == end:
                    break
            slot = (slot + 1) & mask
        ids[i] = known
    return n_known


@kernel
def fill_slots(hashes: Any, n_known: Any, slots: Any) -> None:
    """Enter all known strings into an empty table."""
    mask = np.int64(len(slots) - 1)
    for known in range(n_known):
        slot = np.int64(hashes[known]) & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = known


@kernel
def drop_repeats(indptr: Any, ids: Any, last_row: Any, out_indptr: Any, out_ids: Any) -> None:
    """Copy the ids of rows, each once a row; ``last_row`` has an entry per id, all -1."""
    n = 0
    out_indptr[0] = 0
    for row in range(len(indptr) - 1):
        for i in range(indptr[row], indptr[row + 1]):
            if last_row[ids[i]] != row:
                last_row[ids[i]] = row
                out_ids[n] = ids[i]
                n += 1
        out_indptr[row + 1] = n
