"""Kernels of the two open-addressing tables: words by their bytes, n-grams by their parts.

Slot ``s`` of a table is a pair of 64-bit numbers side by side: the key, and the id plus one, which is 0 while the slot
is free; the upper half of the second number is the place of a word's bytes. Tables are powers of two, at most half
full, and probed one slot after the other.

A feature's *code* is one number for both kinds: a word's id, or -2 minus an n-gram's id; -1 is "not known".
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from abound.compiled import kernel
from abound.vectorise._instructions import prefetch
from abound.vectorise._scan_kernels import GOLDEN, LONG, U0, U8, U32, U255, hash_long

UNKNOWN = -1
NO_ROOM = -(2**31)
N_WORDS, ARENA_USED = 0, 1
U56 = np.uint64(56)
ID_MASK = np.uint64(0xFFFFFFFF)
AHEAD = 12
"""So many tokens ahead, the memory is asked for the slot."""


class WordTable(NamedTuple):
    """Words in the order they came, and the table that finds them.

    Parameters
    ----------
    slots : uint64 array
        Keys, and where the words are, in turns.
    starts : int64 array
        Where each word begins in the arena.
    arena : uint64 array
        Of each word: its number of bytes, then the bytes, eight to a number, the first one highest, zeros behind.
    sizes : int64 array of shape (2,)
        Number of words, and of entries used in the arena.
    """

    slots: Any
    starts: Any
    arena: Any
    sizes: Any


class GramTable(NamedTuple):
    """N-grams in the order they came, and the table that finds them.

    Parameters
    ----------
    slots : uint64 array
        Keys and ids, in turns.
    prefixes, words : int32 arrays
        Of each n-gram: the code of all but its last word, and the id of that word.
    sizes : int64 array of shape (1,)
        Number of n-grams.
    """

    slots: Any
    prefixes: Any
    words: Any
    sizes: Any


@kernel
def home(key: Any, mask: Any) -> Any:
    """Return the slot where the search for a key begins; ``mask`` is the last slot."""
    mixed = (key ^ key >> U32) * GOLDEN
    return np.int64(mixed >> U32) & mask


@kernel
def add_word(table: Any, slot: Any, tokens: Any, token: Any) -> Any:
    """Append a word at a free slot; return its id, or -1 if there is no room for it."""
    key = tokens.keys[token]
    n_bytes = np.int64(8)
    if key >= LONG:
        n_bytes = tokens.longs[token] & 0xFFFFFFFF
    else:
        rest = key
        while rest & U255 == U0:
            rest >>= U8
            n_bytes -= 1
    n_entries = (n_bytes + 7) >> 3
    word = table.sizes[N_WORDS]
    start = table.sizes[ARENA_USED]
    if 4 * word >= len(table.slots) or start + 1 + n_entries > len(table.arena):
        return UNKNOWN
    table.arena[start] = n_bytes
    if key >= LONG:
        at = tokens.longs[token] >> 32
        for j in range(n_entries):
            table.arena[start + 1 + j] = tokens.pad[at + j]
    else:
        table.arena[start + 1] = key
    table.starts[word] = start
    table.sizes[ARENA_USED] = start + 1 + n_entries
    table.sizes[N_WORDS] = word + 1
    table.slots[2 * slot] = key
    table.slots[2 * slot + 1] = np.uint64(start << 32 | word + 1)
    return word


@kernel
def find_words(tokens: Any, begin: Any, end: Any, may_grow: Any, table: Any, ids: Any) -> Any:
    """Look up tokens ``begin`` to ``end``; a new one is appended if the table may grow, else it is -1.

    Returns the token it reached: one for which there was no room, or ``end``.
    """
    # Arrays in variables of their own and no calls on the common way: three times faster than through the tuples.
    keys, longs, pad = tokens.keys, tokens.longs, tokens.pad
    slots, arena = table.slots, table.arena
    mask = (len(slots) >> 1) - 1
    for token in range(begin, end):
        if token + AHEAD < end:
            prefetch(slots, 2 * home(keys[token + AHEAD], mask))
        key = keys[token]
        slot = home(key, mask)
        word = np.int64(UNKNOWN)
        while True:
            entry = slots[2 * slot + 1]
            if entry == U0:
                if may_grow:
                    word = add_word(table, slot, tokens, token)
                    if word == UNKNOWN:
                        return token
                break
            if slots[2 * slot] == key:
                is_same = True
                if key >= LONG:
                    start = np.int64(entry >> U32)
                    at = longs[token] >> 32
                    n_bytes = longs[token] & 0xFFFFFFFF
                    is_same = arena[start] == np.uint64(n_bytes)
                    if is_same:
                        for j in range((n_bytes + 7) >> 3):
                            if arena[start + 1 + j] != pad[at + j]:
                                is_same = False
                                break
                if is_same:
                    word = np.int64(entry & ID_MASK) - 1
                    break
            slot = (slot + 1) & mask
        ids[token] = word
    return end


@kernel
def list_tokens(words: Any, table: Any, keys: Any, longs: Any) -> None:
    """Make tokens of words; the arena is their pad."""
    for i in range(len(words)):
        start = table.starts[words[i]] + 1
        n_bytes = np.int64(table.arena[start - 1])
        is_plain = 0 < n_bytes <= 8
        if is_plain:
            for j in range(n_bytes):
                is_plain = is_plain and table.arena[start] >> (U56 - U8 * np.uint64(j)) & U255 != U0
        if is_plain:
            keys[i] = table.arena[start]
        else:
            keys[i] = hash_long(table.arena, start, (n_bytes + 7) >> 3, n_bytes)
            longs[i] = start << 32 | n_bytes


@kernel
def place(key: Any, number: Any, slots: Any) -> None:
    """Put a key that is not in the table into it."""
    mask = (len(slots) >> 1) - 1
    slot = home(key, mask)
    while slots[2 * slot + 1] != U0:
        slot = (slot + 1) & mask
    slots[2 * slot] = key
    slots[2 * slot + 1] = number


@kernel
def move_slots(old: Any, begin: Any, end: Any, new: Any) -> None:
    """Put slots ``begin`` to ``end`` of a table into a larger one."""
    for slot in range(begin, end):
        if old[2 * slot + 1] != U0:
            place(old[2 * slot], old[2 * slot + 1], new)


@kernel
def renumber_slots(slots: Any, begin: Any, end: Any, new_ids: Any) -> None:
    """Give the words in slots ``begin`` to ``end`` new ids."""
    for slot in range(begin, end):
        entry = slots[2 * slot + 1]
        if entry != U0:
            word = np.int64(entry & ID_MASK) - 1
            slots[2 * slot + 1] = entry & ~ID_MASK | np.uint64(new_ids[word] + 1)


@kernel
def find_gram(prefix: Any, word: Any, may_grow: Any, slots: Any, prefixes: Any, words: Any, sizes: Any) -> Any:
    """Return the code of the n-gram of a prefix and a word; -1 if it is not known, -2³¹ if there is no room for it."""
    key = np.uint64(np.uint32(prefix)) << U32 | np.uint64(np.uint32(word))
    mask = (len(slots) >> 1) - 1
    slot = home(key, mask)
    while True:
        gram = np.int64(slots[2 * slot + 1]) - 1
        if gram < 0:
            break
        if slots[2 * slot] == key:
            return -2 - gram
        slot = (slot + 1) & mask
    if not may_grow:
        return np.int64(UNKNOWN)
    gram = sizes[0]
    if 4 * gram >= len(slots):
        return np.int64(NO_ROOM)
    prefixes[gram] = prefix
    words[gram] = word
    sizes[0] = gram + 1
    slots[2 * slot] = key
    slots[2 * slot + 1] = np.uint64(gram + 1)
    return -2 - gram


@kernel
def find_grams(
    token_ptr: Any, ids: Any, first: Any, min_n: Any, max_n: Any, may_grow: Any, table: Any, code_ptr: Any, codes: Any
) -> Any:
    """List the codes of each text's n-grams, from text ``first`` on; those not known are left out.

    Returns the text it reached: one whose n-grams found no room, or the end.
    """
    slots, prefixes, words, sizes = table.slots, table.prefixes, table.words, table.sizes
    n = code_ptr[first]
    for d in range(first, len(token_ptr) - 1):
        end = token_ptr[d + 1]
        for i in range(token_ptr[d], end):
            code = np.int64(ids[i])
            if code == UNKNOWN:
                continue
            if min_n == 1:
                codes[n] = code
                n += 1
            for size in range(2, min(max_n, end - i) + 1):
                word = ids[i + size - 1]
                if word == UNKNOWN:
                    break
                code = find_gram(code, word, may_grow, slots, prefixes, words, sizes)
                if code == NO_ROOM:
                    return d
                if code == UNKNOWN:
                    break
                if size >= min_n:
                    codes[n] = code
                    n += 1
        code_ptr[d + 1] = n
    return len(token_ptr) - 1


@kernel
def join_grams(grams: Any, begin: Any, source: Any, word_map: Any, table: Any, gram_map: Any) -> Any:
    """Find or append n-grams of another table, each after its prefix; return the place that was reached."""
    for i in range(begin, len(grams)):
        gram = grams[i]
        prefix = source.prefixes[gram]
        prefix_here = word_map[prefix] if prefix >= 0 else -2 - gram_map[-2 - prefix]
        word_here = word_map[source.words[gram]]
        code = find_gram(np.int64(prefix_here), word_here, True, table.slots, table.prefixes, table.words, table.sizes)
        if code == NO_ROOM:
            return i
        gram_map[gram] = -2 - code
    return len(grams)
