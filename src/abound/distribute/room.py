"""Room to work in that is used again, and never sent anywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

Room = TypeVar("Room")
Given = ParamSpec("Given")


class Spare(Generic[Room]):
    """Scratch arrays of tasks that have ended, for the next ones of the same process.

    Pickled, it is empty: another process makes its own.

    Examples
    --------
    >>> spare: Spare[list[int]] = Spare()
    >>> room = spare.take(list, (1, 2))
    >>> spare.give(room)
    >>> spare.take(list) is room
    True
    """

    def __init__(self) -> None:
        self._rooms: list[Room] = []

    def take(self, make: Callable[Given, Room], *args: Given.args, **kwargs: Given.kwargs) -> Room:
        """Return a room that was given back, or a new one.

        Parameters
        ----------
        make : callable
            Makes a new one.
        *args, **kwargs : object
            What it takes.

        Returns
        -------
        object
            As its last user left it.
        """
        try:
            return self._rooms.pop()
        except IndexError:
            return make(*args, **kwargs)

    def give(self, room: Room) -> None:
        """Give a room back.

        Parameters
        ----------
        room : object
            Not used any more.
        """
        self._rooms.append(room)

    def __reduce__(self) -> tuple[type[Spare[Room]], tuple[()]]:
        return type(self), ()
