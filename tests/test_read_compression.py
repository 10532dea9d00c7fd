"""Plain, gzip and zstd files give the same blocks of lines; broken ones are errors with file and line."""

from __future__ import annotations

import bz2
import gzip
import io
import sys
import tracemalloc

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from abound.read import FormatError, iter_vectors, read_data, read_documents, read_vectors
from abound.read.compression import Source, written_beside

PACKERS = {
    "plain": bytes,
    "gzip": gzip.compress,
    "gzip members": lambda data: gzip.compress(data[: len(data) // 2]) + gzip.compress(data[len(data) // 2 :]),
    "gzip padded": lambda data: gzip.compress(data) + b"\0" * 600,
    "zstd": zstandard.compress,
    "zstd frames": lambda data: zstandard.compress(data[: len(data) // 2]) + zstandard.compress(data[len(data) // 2 :]),
}


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.text(st.characters(exclude_characters="\n\ufeff", exclude_categories=["Cs"]), max_size=9), max_size=9),
    st.booleans(),
    st.sampled_from(sorted(PACKERS)),
    st.integers(1, 40),
)
def test_blocks_are_whole_lines_in_order(tmp_path_factory, lines, is_ended, packer, size):
    content = "\n".join(lines).encode() + (b"\n" if is_ended else b"")
    file = tmp_path_factory.mktemp("blocks") / "data"
    file.write_bytes(PACKERS[packer](content))
    with Source(file) as source:
        blocks = list(source.blocks(size))
    expected = content if content.endswith(b"\n") or not content else content + b"\n"
    assert b"".join(block.data for block in blocks) == expected
    line = 1
    for block in blocks:
        assert block.data.endswith(b"\n")
        assert block.first_line == line
        line += block.n_lines
    assert all(len(block.data) >= size for block in blocks[:-1])


@pytest.mark.parametrize("packer", sorted(PACKERS))
def test_the_name_does_not_matter_the_first_bytes_do(tmp_path, packer):
    lines = "".join(f"c{i % 5} 1:{i}\n" for i in range(1000))
    file = tmp_path / "data.svm"
    file.write_bytes(PACKERS[packer](lines.encode()))
    vectors = read_vectors(file)
    assert len(vectors) == 1000
    assert vectors.X.data[-1] == 999


def test_looking_at_the_head_uses_nothing_up(tmp_path):
    file = tmp_path / "data"
    file.write_bytes(b"".join(b"%d\n" % i for i in range(100_000)))
    with Source(file) as source:
        assert source.head(5) == b"0\n1\n2"
        assert source.head(200_000).startswith(b"0\n1\n2")
        assert b"".join(block.data for block in source.blocks()) == file.read_bytes()
    with Source(file) as source:
        source.head(5)
        assert bytes(source.whole()) == file.read_bytes()


def test_an_uncompressed_file_is_mapped(tmp_path):
    file = tmp_path / "data.tsv"
    file.write_bytes(b"\xef\xbb\xbfa\tone\nb\ttwo")
    with Source(file) as source:
        whole = source.whole()
    assert bytes(whole) == b"a\tone\nb\ttwo"
    assert not whole.flags.writeable
    base = whole
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert isinstance(base, np.memmap)


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
@pytest.mark.parametrize("keep", [0.3, 0.9, 0.999])
def test_truncated_files(tmp_path, pack, keep):
    rng = np.random.default_rng(0)
    content = "".join(f"c{i % 7} 1:{value:.9g}\n" for i, value in enumerate(rng.normal(size=20_000))).encode()
    packed = pack(content)
    file = tmp_path / "data.svm.packed"
    file.write_bytes(packed[: int(keep * len(packed))])
    with pytest.raises(FormatError, match="truncated") as caught:
        read_vectors(file)
    assert str(caught.value).startswith(f"{file}, line {caught.value.line}: ")
    assert 1 <= caught.value.line <= 20_001
    texts = tmp_path / "data.tsv.packed"
    texts.write_bytes(pack(content.replace(b" ", b"\t"))[:-9])
    with pytest.raises(FormatError, match="truncated"):
        read_documents(texts, format="tsv")


@pytest.mark.parametrize("pack, kind", [(gzip.compress, "gzip"), (zstandard.compress, "zstd")])
def test_damaged_files(tmp_path, pack, kind):
    packed = bytearray(pack(b"".join(b"c%d 1:%d\n" % (i % 7, i) for i in range(5000))))
    for i in range(30, 90):
        packed[i] ^= 0x5A
    file = tmp_path / "data.svm"
    file.write_bytes(bytes(packed))
    with pytest.raises(FormatError, match=f"{file.name}, line .*{kind}"):
        read_vectors(file)


def test_garbage_behind_a_gzip_member(tmp_path):
    file = tmp_path / "data.svm.gz"
    file.write_bytes(gzip.compress(b"a 1:1\n") + b"garbage")
    with pytest.raises(FormatError, match="gzip"):
        read_vectors(file)


def test_other_compression_is_not_mistaken_for_text(tmp_path):
    file = tmp_path / "data.tsv"
    file.write_bytes(bz2.compress(b"a\tone\n" * 50))
    with pytest.raises(FormatError, match="line 1"):
        read_documents(file)


def test_standard_input(monkeypatch):
    class Stdin:
        buffer = io.BytesIO(gzip.compress(b"a 1:1\nb 2:x\n"))

    monkeypatch.setattr(sys, "stdin", Stdin)
    with pytest.raises(FormatError, match="standard input, line 2"):
        read_vectors("-")
    assert not Stdin.buffer.closed
    Stdin.buffer = io.BytesIO(b"a\tone\nb\ttwo\n")
    assert read_data("-").texts == ["one", "two"]


def test_zstd_without_its_package(tmp_path, monkeypatch):
    file = tmp_path / "data.svm.zst"
    file.write_bytes(zstandard.compress(b"a 1:1\n"))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ImportError, match=r"data\.svm\.zst.*pip install 'abound\[zstd\]'"):
        read_vectors(file)


@pytest.mark.parametrize("name", ["data.txt", "data.txt.gz", "data.txt.zst"])
def test_files_are_written_beside_and_moved(tmp_path, name):
    file = tmp_path / name
    file.write_bytes(b"old")
    with written_beside(file) as out:
        out.write(b"new\n" * 1000)
        assert file.read_bytes() == b"old"
    with Source(file) as source:
        assert bytes(source.whole()) == b"new\n" * 1000
    assert [path.name for path in tmp_path.iterdir()] == [name]

    before = file.read_bytes()
    with pytest.raises(RuntimeError), written_beside(file) as out:
        out.write(b"half")
        raise RuntimeError
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_memory_does_not_grow_with_the_file(tmp_path):
    line = b"cat,dog 1:0.25 17:3 20000:0.125\n"
    peaks = []
    for n_lines in (30_000, 300_000):
        file = tmp_path / f"{n_lines}.svm.gz"
        file.write_bytes(gzip.compress(line * n_lines, 1))
        tracemalloc.start()
        n_rows = sum(len(chunk) for chunk in iter_vectors(file, chunk_bytes=2**18))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert n_rows == n_lines
    assert peaks[1] < 1.5 * peaks[0]


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.svm"):
        read_vectors(tmp_path / "nowhere.svm")
    with pytest.raises(OSError, match=tmp_path.name):
        read_vectors(tmp_path)
