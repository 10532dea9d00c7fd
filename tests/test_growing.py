"""Arrays that grow in memory against lists, where the system can move pages and where it cannot."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abound import scratch
from abound.scratch import Growing, is_mapped


class Fixed(mmap.mmap):
    """Pages that cannot be moved."""

    def resize(self, newsize: int) -> None:
        raise SystemError("mmap: resizing not available--no mremap()")


@given(st.lists(st.lists(st.integers(-9, 9), max_size=40), max_size=12), st.sampled_from([None, 1, 16]), st.booleans())
def test_pieces_stand_behind_one_another(pieces: list[list[int]], width: int | None, moves: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scratch, "LEAST_ROOM", 8)
        if not moves:
            patch.setattr(scratch, "_anonymous", lambda size: Fixed(-1, size))
        growing = Growing(np.int32, width)
        arrays: list[Any] = [np.repeat(np.array(piece, np.int64)[:, None], width or 1, axis=1) for piece in pieces]
        for array in arrays:
            growing.append(array if width else array[:, 0])
        found = growing.mapped()
    expected = np.concatenate([*arrays, np.zeros((0, width or 1))])
    np.testing.assert_array_equal(found, expected if width else expected[:, 0])
    assert found.dtype == np.int32
    assert not is_mapped(found)
    assert not found.size or not found.flags.writeable
