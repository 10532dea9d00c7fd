"""Ranking and learning take turns.

Both run outside the event loop, in short calls of compiled code. Side by side, each would wait for the interpreter
after each of these calls. With turns, a correction is learned in a millisecond or two, and answers wait for a few of
them at most.
"""

from __future__ import annotations

from threading import Lock

TURN = Lock()
"""Held while a batch of requests is ranked or a correction is learned."""
