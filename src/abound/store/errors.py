"""The one error of reading a model file."""

from __future__ import annotations

AGAIN = "The file is damaged or was not written by abound: save the model again or take another copy."


class ModelFileError(ValueError):
    """A model file that is refused; the message names the file, what is wrong in it and what to do.

    Parameters
    ----------
    where : str or path
        The file, and the array in it where there is one.
    problem : str
        What is wrong.
    remedy : str
        What to do about it.
    """

    def __init__(self, where: object, problem: str, remedy: str = AGAIN) -> None:
        self.where, self.problem, self.remedy = where, problem, remedy
        super().__init__(f"{where}: {problem}. {remedy}")
