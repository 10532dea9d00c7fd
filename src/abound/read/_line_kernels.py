"""Split lines of text files into labels and text, as places in a buffer of bytes.

Each kernel reads the lines that begin before ``stop`` and returns a status, the place of what is wrong or of the next
line, and the numbers of rows and labels written. ``stop`` lies within the buffer; the last line may lack its line end.
"""

from __future__ import annotations

from typing import Any

from abound.compiled import kernel

FINE = 0
NO_TAB = 1
NO_LABEL = 2
EMPTY_LABEL = 3

SPACE, TAB, RETURN, NEWLINE = 32, 9, 13, 10


@kernel
def line_end(buffer: Any, p: Any) -> Any:
    """Return the place of the line end at or behind ``p``, the length of the buffer if there is none."""
    while p < len(buffer) and buffer[p] != NEWLINE:
        p += 1
    return p


@kernel
def without_return(buffer: Any, begin: Any, end: Any) -> Any:
    """Return the end of a line's text, before the carriage return of a Windows line end."""
    return end - 1 if end > begin and buffer[end - 1] == RETURN else end


@kernel
def split_tabbed(
    buffer: Any,
    begin: Any,
    stop: Any,
    is_labelled: Any,
    may_lack_label: Any,
    separator: Any,
    row_begins: Any,
    text_begins: Any,
    text_ends: Any,
    label_indptr: Any,
    label_begins: Any,
    label_ends: Any,
) -> Any:
    """Split ``label,label<TAB>text``; ``separator`` is the byte between labels or -1 for one label a row.

    Unless ``is_labelled``, a tab is not needed and what stands before it is left out; blank lines, which are otherwise
    skipped, are then texts too.
    """
    rows = labels = 0
    label_indptr[0] = 0
    p = begin
    while p < stop:
        tab = p
        while tab < len(buffer) and buffer[tab] != TAB and buffer[tab] != NEWLINE:
            tab += 1
        has_tab = tab < len(buffer) and buffer[tab] == TAB
        end = line_end(buffer, tab)
        text_end = without_return(buffer, p, end)
        if is_labelled and not has_tab:
            first = p
            while first < text_end and buffer[first] == SPACE:
                first += 1
            if first < text_end:
                return NO_TAB, p, rows, labels
            p = end + 1
            continue
        if is_labelled:
            first = p
            while first <= tab:
                last = first
                while last < tab and buffer[last] != separator:
                    last += 1
                a, b = first, last
                while a < b and buffer[a] == SPACE:
                    a += 1
                while a < b and buffer[b - 1] == SPACE:
                    b -= 1
                if a < b:
                    label_begins[labels] = a
                    label_ends[labels] = b
                    labels += 1
                elif first > p or last < tab:
                    return EMPTY_LABEL, p, rows, labels
                first = last + 1
            if labels == label_indptr[rows] and not may_lack_label:
                return NO_LABEL, p, rows, labels
        row_begins[rows] = p
        text_begins[rows] = tab + 1 if has_tab else p
        text_ends[rows] = max(text_end, text_begins[rows])
        rows += 1
        label_indptr[rows] = labels
        p = end + 1
    return FINE, p, rows, labels


@kernel
def split_marked(
    buffer: Any,
    begin: Any,
    stop: Any,
    is_labelled: Any,
    may_lack_label: Any,
    mark: Any,
    row_begins: Any,
    text_begins: Any,
    text_ends: Any,
    label_indptr: Any,
    label_begins: Any,
    label_ends: Any,
) -> Any:
    """Split ``__label__x __label__y text``: words that start with ``mark`` at the head of the line are labels.

    Unless ``is_labelled``, the labels are left out; blank lines, which are otherwise skipped, are then texts too.
    """
    rows = labels = 0
    label_indptr[0] = 0
    p = begin
    while p < stop:
        end = line_end(buffer, p)
        text_end = without_return(buffer, p, end)
        first = p
        while True:
            while first < text_end and (buffer[first] == SPACE or buffer[first] == TAB):
                first += 1
            matched = 0
            while matched < len(mark) and first + matched < text_end and buffer[first + matched] == mark[matched]:
                matched += 1
            if matched < len(mark):
                break
            last = first + matched
            while last < text_end and buffer[last] != SPACE and buffer[last] != TAB:
                last += 1
            if last == first + matched:
                return EMPTY_LABEL, first, rows, labels
            if is_labelled:
                label_begins[labels] = first + matched
                label_ends[labels] = last
                labels += 1
            first = last
        if is_labelled and labels == label_indptr[rows]:
            if first == text_end:
                p = end + 1
                continue
            if not may_lack_label:
                return NO_LABEL, p, rows, labels
        row_begins[rows] = p
        text_begins[rows] = first
        text_ends[rows] = text_end
        rows += 1
        label_indptr[rows] = labels
        p = end + 1
    return FINE, p, rows, labels


@kernel
def split_lines(buffer: Any, begin: Any, stop: Any, text_begins: Any, text_ends: Any) -> Any:
    """Make each line a text."""
    rows = 0
    p = begin
    while p < stop:
        end = line_end(buffer, p)
        text_begins[rows] = p
        text_ends[rows] = without_return(buffer, p, end)
        rows += 1
        p = end + 1
    return FINE, p, rows, 0
