"""Kernels from bytes to tokens.

A token leaves as one 64-bit key. Up to eight bytes, the key is the token: its bytes, the first one highest, zeros
behind. A longer token lies in a pad as such words, and its key is a hash with the top byte 255, which no UTF-8 has.

Words are found in two steps. The first marks where runs of bytes begin and end that may belong to words; it has no
branches, because the processor could not guess them. The second takes runs of ASCII eight bytes at a time and reads
runs with other characters one by one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from abound.compiled import kernel
from abound.vectorise._instructions import eight_bytes

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
LONG = np.uint64(0xFF00000000000000)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
U0, U1, U2, U8, U32, U64, U128, U255 = (np.uint64(n) for n in (0, 1, 2, 8, 32, 64, 128, 255))
UFFFF, UFFFFFF = np.uint64(0xFFFF), np.uint64(0xFFFFFF)

# The same byte eight times: the top bit, and what lifts 'A' and the byte behind 'Z' to it.
TOP, FROM_A, BEHIND_Z = (np.uint64(0x0101010101010101 * byte) for byte in (0x80, 0x3F, 0x25))


class Tokens(NamedTuple):
    """Room for the tokens of a block of texts.

    Parameters
    ----------
    keys : uint64 array
        The key of each token.
    longs : int64 array
        Of a long token: where it begins in the pad (times 2³²) plus its number of bytes.
    pad : uint64 array
        The words of long tokens.
    """

    keys: Any
    longs: Any
    pad: Any


@kernel
def hash_long(pad: Any, begin: Any, n_words: Any, n_bytes: Any) -> Any:
    """Return the key of a token that does not fit into one."""
    state = np.uint64(n_bytes)
    for j in range(begin, begin + n_words):
        state = (state ^ pad[j]) * GOLDEN
        state ^= state >> U32
    return state | LONG


@kernel
def lower_eight(word: Any) -> Any:
    """Lower-case eight bytes of ASCII at once."""
    is_upper = (word + FROM_A) & ~(word + BEHIND_Z) & TOP
    return word | is_upper >> U2


@kernel
def code_point(buffer: Any, p: Any, end: Any) -> Any:
    """Decode the character at ``p``, which is not ASCII; return it and its bytes.

    Bytes that are no UTF-8 count as one character 0, which separates tokens like any other non-word character.
    """
    lead = np.int64(buffer[p])
    if 0xC0 <= lead < 0xE0 and p + 2 <= end:
        return (lead & 0x1F) << 6 | np.int64(buffer[p + 1]) & 0x3F, 2
    if 0xE0 <= lead < 0xF0 and p + 3 <= end:
        return (lead & 0x0F) << 12 | (np.int64(buffer[p + 1]) & 0x3F) << 6 | np.int64(buffer[p + 2]) & 0x3F, 3
    if 0xF0 <= lead < 0xF8 and p + 4 <= end:
        middle = (np.int64(buffer[p + 1]) & 0x3F) << 12 | (np.int64(buffer[p + 2]) & 0x3F) << 6
        return (lead & 0x07) << 18 | middle | np.int64(buffer[p + 3]) & 0x3F, 4
    return np.int64(0), 1


@kernel
def find_runs(buffer: Any, begin: Any, end: Any, ascii_fold: Any, edges: Any) -> Any:
    """Mark where runs of word characters or bytes beyond ASCII begin and end, in turns; return how many marks."""
    # Unsigned places need no check for negative ones: twice as fast.
    n = U0
    was_inside = np.uint8(0)
    p, stop = np.uint64(begin), np.uint64(end)
    while p < stop:
        is_inside = np.uint8(ascii_fold[buffer[p]] != 0)
        edges[n] = np.int64(p)
        n += np.uint64(is_inside ^ was_inside)
        was_inside = is_inside
        p += U1
    edges[n] = end
    return np.int64(n) + np.int64(was_inside)


@kernel
def scan_run(
    buffer: Any,
    begin: Any,
    end: Any,
    ascii_fold: Any,
    fold: Any,
    min_characters: Any,
    n: Any,
    kept: Any,
    keys: Any,
    longs: Any,
    pad: Any,
) -> Any:
    """Find the words of a run with characters beyond ASCII, one by one.

    Returns the number of tokens and of entries in the pad by now, and of characters that no table can lower-case.
    """
    n_exceptions = 0
    p = begin
    while p < end:
        word = U0
        filled = 0
        at = kept
        characters = 0
        while p < end:
            folded = np.uint64(ascii_fold[buffer[p]])
            last_byte = 0
            step = 1
            if folded >= U128:
                c, step = code_point(buffer, p, end)
                n_exceptions += int((c == 0x130) | (c == 0x3A3))
                folded = np.uint64(fold[c]) if c < len(fold) else U0
                last_byte = int(folded > U255) + int(folded > UFFFF) + int(folded > UFFFFFF)
            p += step
            if folded == U0:
                break
            for j in range(last_byte, -1, -1):
                word = word << U8 | folded >> (U8 * np.uint64(j)) & U255
                filled += 1
                if filled == 8:
                    pad[at] = word
                    at += 1
                    word = U0
                    filled = 0
            characters += 1
        if characters < min_characters:
            continue
        n_bytes = 8 * (at - kept) + filled
        if filled:
            pad[at] = word << (U64 - U8 * np.uint64(filled))
            at += 1
        if n_bytes <= 8:
            keys[n] = pad[kept]
        else:
            keys[n] = hash_long(pad, kept, at - kept, n_bytes)
            longs[n] = kept << 32 | n_bytes
            kept = at
        n += 1
    return n, kept, n_exceptions


@kernel
def scan_words(
    buffer: Any,
    begins: Any,
    ends: Any,
    ascii_fold: Any,
    fold: Any,
    min_characters: Any,
    edges: Any,
    token_ptr: Any,
    tokens: Any,
    marks: Any,
) -> Any:
    """Find the words of each text: runs of word characters, lower-cased, with at least ``min_characters``.

    ``edges`` has room for the bytes of the longest text and one more, ``tokens`` for half the bytes and two a text.
    Texts that hold a character that the tables cannot lower-case get a mark; returns how many characters that was.
    """
    keys, longs, pad = tokens.keys, tokens.longs, tokens.pad
    lowers = ascii_fold[65] == 97
    last_eight = len(buffer) - 8
    n_exceptions = 0
    n = 0
    kept = 0
    token_ptr[0] = 0
    for d in range(len(begins)):
        n_edges = find_runs(buffer, begins[d], ends[d], ascii_fold, edges)
        edge = 0
        while edge < n_edges:
            begin, end = edges[edge], edges[edge + 1]
            edge += 2
            n_bytes = end - begin
            if n_bytes <= 8 and begin <= last_eight:
                word = eight_bytes(buffer, begin) & (ALL << (U64 - U8 * np.uint64(n_bytes)))
                if word & TOP == U0:
                    keys[n] = lower_eight(word) if lowers else word
                    n += int(n_bytes >= min_characters)
                    continue
            elif end <= last_eight:
                at, p = kept, begin
                every = U0
                while p < end:
                    word = eight_bytes(buffer, p)
                    p += 8
                    if p > end:
                        word &= ALL << (U8 * np.uint64(p - end))
                    every |= word
                    pad[at] = lower_eight(word) if lowers else word
                    at += 1
                if every & TOP == U0:
                    if n_bytes >= min_characters:
                        keys[n] = hash_long(pad, kept, at - kept, n_bytes)
                        longs[n] = kept << 32 | n_bytes
                        kept = at
                        n += 1
                    continue
            n, kept, found = scan_run(buffer, begin, end, ascii_fold, fold, min_characters, n, kept, keys, longs, pad)
            if found:
                marks[d] = 1
                n_exceptions += found
        token_ptr[d + 1] = n
    return n_exceptions


@kernel
def pack_tokens(buffer: Any, begins: Any, ends: Any, tokens: Any) -> None:
    """Make the keys of given tokens: token ``i`` is ``buffer[begins[i]:ends[i]]``, any bytes.

    ``tokens`` has room for an eighth of the bytes and one a token.
    """
    keys, longs, pad = tokens.keys, tokens.longs, tokens.pad
    kept = 0
    for i in range(len(begins)):
        n_bytes = ends[i] - begins[i]
        n_words = (n_bytes + 7) >> 3
        plain = 0 < n_bytes <= 8
        for j in range(n_words):
            first = begins[i] + 8 * j
            last = min(first + 8, ends[i])
            word = U0
            for p in range(first, last):
                word = word << U8 | np.uint64(buffer[p])
                plain = plain and buffer[p] != 0
            pad[kept + j] = word << (U64 - U8 * np.uint64(last - first))
        if plain:
            keys[i] = pad[kept]
        else:
            keys[i] = hash_long(pad, kept, n_words, n_bytes)
            longs[i] = kept << 32 | n_bytes
            kept += n_words
