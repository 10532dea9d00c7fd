"""Little text is read by one thread, whatever was asked for."""

from __future__ import annotations

import pytest

from abound import TextVectorizer
from abound.read.textbytes import TextBytes
from abound.vectorise import blocks


def test_size_is_told_from_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "SMALL_BYTES", 1000)
    assert blocks.is_small(["word"] * 100)
    assert not blocks.is_small(["word"] * 100_000)
    assert not blocks.is_small(["a" * 2000])
    assert blocks.is_small(TextBytes.from_strings(["word"]))
    assert not blocks.is_small(TextBytes.from_strings(["word"] * 1000))
    assert not blocks.is_small(iter(["word"])), "an iterator does not tell its size"
    assert blocks.is_small([])


def test_the_number_of_threads_follows_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    vectorizer = TextVectorizer(n_jobs=2)
    monkeypatch.setattr(blocks, "SMALL_BYTES", 1000)
    assert vectorizer._jobs(["word"]) is None
    assert vectorizer._jobs(["word"] * 1000) == 2
    with pytest.raises(ValueError, match="n_jobs"):
        TextVectorizer(n_jobs=0).fit(["some words"])
