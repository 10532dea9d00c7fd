"""Parse lines of ``label,label index:value index:value`` from bytes.

A block of bytes ends with a line end, so that every inner loop stops at it and none needs to look at the length.
Kernels report what is wrong by a status and the place of the offending byte; the caller makes a message of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from abound.compiled import kernel
from abound.validation import LARGEST

FINE = 0
ASK_PYTHON = 1
BAD_INDEX = 2
BAD_VALUE = 3
TOO_LARGE = 4
NEGATIVE_INDEX = 5
INDEX_TOO_SMALL = 6
INDEX_TOO_LARGE = 7
NO_LABEL = 8
EMPTY_LABEL = 9
HASH_IN_LABEL = 10
QUERY_ID = 11

# Places in the array of counts that `parse_rows` fills.
N_ROWS = 0
N_ENTRIES = 1
N_LABELS = 2
N_HARD = 3
LEAST = 4
GREATEST = 5
GREATEST_ROW = 6
UNSORTED = 7
N_COUNTS = 8

SPACE, TAB, RETURN, NEWLINE = 32, 9, 13, 10
COLON, COMMA, HASH, MINUS, PLUS, POINT = 58, 44, 35, 45, 43, 46
ZERO, NINE = 48, 57

MAX_DIGITS = 18
"""Decimal digits that always fit an int64."""

# Beyond these powers of ten a number of at most 18 digits is surely infinite, or surely zero, as float32.
LARGEST_POWER = 66
POWERS = np.array([float(f"1e{power}") for power in range(LARGEST_POWER + 1)])

EXACT_POWER = 22
EXACT_MANTISSA = 2**53

ERROR_BOUND = 1e-15
"""Relative error of a product of rounded mantissa and power, with room to spare (three roundings, 18 digits kept)."""


@kernel
def to_float32(mantissa: Any, exponent: Any, is_exact: Any) -> Any:
    """Return ``mantissa * 10**exponent`` as `float` and a cast would give it, and whether that is certain.

    With a mantissa below 2^53 and a power up to 10^22 both factors are exact doubles, so that one operation rounds
    once, as `float` does. Otherwise the double is off by a few units in the last place; nearly always both ends of
    the interval round to the same float32, which is then the answer.
    """
    if mantissa == 0 or exponent < -LARGEST_POWER:
        return np.float32(0.0), True
    if exponent > LARGEST_POWER:
        return np.float32(np.inf), True
    value = float(mantissa)
    value = value * POWERS[exponent] if exponent >= 0 else value / POWERS[-exponent]
    if is_exact and mantissa <= EXACT_MANTISSA and -EXACT_POWER <= exponent <= EXACT_POWER:
        return np.float32(value), True
    low = np.float32(value * (1.0 - ERROR_BOUND))
    high = np.float32(value * (1.0 + ERROR_BOUND))
    return low, low == high


@kernel
def parse_value(buffer: Any, p: Any) -> Any:
    """Read a decimal number at ``p``: its float32, the place behind it and a status."""
    negative = buffer[p] == MINUS
    if negative or buffer[p] == PLUS:
        p += 1
    mantissa: Any = 0
    n_digits = 0
    exponent = 0
    is_exact = True
    begin = p
    while ZERO <= buffer[p] <= NINE:
        if n_digits < MAX_DIGITS:
            mantissa = mantissa * 10 + (np.int64(buffer[p]) - ZERO)
            n_digits += mantissa > 0
        else:
            exponent += 1
            is_exact = False
        p += 1
    seen = p - begin
    if buffer[p] == POINT:
        p += 1
        begin = p
        while ZERO <= buffer[p] <= NINE:
            if n_digits < MAX_DIGITS:
                mantissa = mantissa * 10 + (np.int64(buffer[p]) - ZERO)
                n_digits += mantissa > 0
                exponent -= 1
            else:
                is_exact = False
            p += 1
        seen += p - begin
    if seen == 0:
        letter = buffer[p] | 32
        return np.float32(0.0), p, TOO_LARGE if letter == ord("n") or letter == ord("i") else BAD_VALUE
    if buffer[p] | 32 == ord("e"):
        p += 1
        sign = -1 if buffer[p] == MINUS else 1
        if buffer[p] == MINUS or buffer[p] == PLUS:
            p += 1
        begin = p
        power: Any = 0
        while ZERO <= buffer[p] <= NINE:
            if power < 1_000_000:
                power = power * 10 + (np.int64(buffer[p]) - ZERO)
            p += 1
        if p == begin:
            return np.float32(0.0), p, BAD_VALUE
        exponent += sign * power
    value, certain = to_float32(mantissa, exponent, is_exact)
    if not certain:
        return value, p, ASK_PYTHON
    if value > LARGEST:
        return value, p, TOO_LARGE
    return -value if negative else value, p, FINE


@kernel
def parse_rows(
    buffer: Any,
    begin: Any,
    min_index: Any,
    max_index: Any,
    may_lack_label: Any,
    blank_is_row: Any,
    row_begins: Any,
    indptr: Any,
    indices: Any,
    data: Any,
    label_indptr: Any,
    label_begins: Any,
    label_ends: Any,
    hard_entries: Any,
    hard_begins: Any,
    counts: Any,
) -> Any:
    """Parse all lines from ``begin`` on; indices stay as the file has them.

    Parameters
    ----------
    buffer : uint8 array
        Whole lines; the last byte is a line end.
    begin : int
        Where to start.
    min_index, max_index : int
        Bounds of an index, inclusive.
    may_lack_label : bool
        Whether a row without label is accepted.
    blank_is_row : bool
        Whether a blank line is a row without label and features; it is skipped otherwise.
    row_begins : int64 array
        Gets where each row begins.
    indptr, indices, data : int64, int32, float32 arrays
        Get the entries of the rows.
    label_indptr, label_begins, label_ends : int64 arrays
        Get the places of the labels of the rows.
    hard_entries, hard_begins : int64 arrays
        Get the entries whose value is left to Python's `float`, and where their text begins.
    counts : int64 array of shape (N_COUNTS,)
        Gets how much was written and what was seen; ``LEAST``, ``GREATEST`` and ``UNSORTED`` go on from what they were.

    Returns
    -------
    status, position : int
        ``FINE``, or what is wrong and where.
    """
    rows = entries = labels = hard = 0
    least, greatest, greatest_row, unsorted = counts[LEAST], counts[GREATEST], -1, counts[UNSORTED]
    indptr[0] = label_indptr[0] = 0
    p = begin
    end = len(buffer)
    while p < end:
        row_begin = p
        while buffer[p] == SPACE or buffer[p] == TAB or buffer[p] == RETURN:
            p += 1
        if buffer[p] == HASH or (buffer[p] == NEWLINE and not blank_is_row):
            while buffer[p] != NEWLINE:
                p += 1
            p += 1
            continue

        after_comma = False
        while True:
            first = p
            byte = buffer[p]
            while not (
                byte == SPACE
                or byte == TAB
                or byte == RETURN
                or byte == NEWLINE
                or byte == COMMA
                or byte == COLON
                or byte == HASH
            ):
                p += 1
                byte = buffer[p]
            if byte == COLON or p == first:
                if after_comma or byte == COMMA:
                    return EMPTY_LABEL, first
                p = first
                break
            if byte == HASH:
                return HASH_IN_LABEL, first
            if labels > label_indptr[rows] and not after_comma:
                return BAD_INDEX, first
            label_begins[labels] = first
            label_ends[labels] = p
            labels += 1
            while buffer[p] == SPACE or buffer[p] == TAB or buffer[p] == RETURN:
                p += 1
            after_comma = buffer[p] == COMMA
            if after_comma:
                p += 1
                while buffer[p] == SPACE or buffer[p] == TAB or buffer[p] == RETURN:
                    p += 1
        if labels == label_indptr[rows] and not may_lack_label:
            return NO_LABEL, row_begin

        previous = -1
        while True:
            while buffer[p] == SPACE or buffer[p] == TAB or buffer[p] == RETURN:
                p += 1
            if buffer[p] == NEWLINE:
                break
            if buffer[p] == HASH:
                while buffer[p] != NEWLINE:
                    p += 1
                break
            first = p
            index: Any = 0
            while ZERO <= buffer[p] <= NINE:
                index = index * 10 + (np.int64(buffer[p]) - ZERO)
                if index > max_index:
                    return INDEX_TOO_LARGE, first
                p += 1
            if p == first or buffer[p] != COLON:
                if buffer[first] == MINUS and ZERO <= buffer[first + 1] <= NINE:
                    return NEGATIVE_INDEX, first
                if buffer[p] == ord("q") and buffer[p + 1] == ord("i") and buffer[p + 2] == ord("d"):
                    return QUERY_ID, first
                return BAD_INDEX, first
            if index < min_index:
                return INDEX_TOO_SMALL, first
            value, p, status = parse_value(buffer, p + 1)
            byte = buffer[p]
            if status > ASK_PYTHON:
                return status, first
            if not (byte == SPACE or byte == NEWLINE or byte == TAB or byte == RETURN or byte == HASH):
                return BAD_VALUE, first
            if status == ASK_PYTHON:
                hard_entries[hard] = entries
                hard_begins[hard] = first
                hard += 1
            if index <= previous:
                unsorted = 1
            previous = index
            if index < least:
                least = index
            if index > greatest:
                greatest = index
                greatest_row = rows
            indices[entries] = index
            data[entries] = value
            entries += 1

        row_begins[rows] = row_begin
        rows += 1
        indptr[rows] = entries
        label_indptr[rows] = labels
        p += 1
    counts[N_ROWS], counts[N_ENTRIES], counts[N_LABELS], counts[N_HARD] = rows, entries, labels, hard
    counts[LEAST], counts[GREATEST], counts[GREATEST_ROW], counts[UNSORTED] = least, greatest, greatest_row, unsorted
    return FINE, p
