"""The error of a file that is not what its format says."""

from __future__ import annotations

SHOWN = 60
"""Characters of the offending text that a message repeats."""


class FormatError(ValueError):
    """A file breaks the rules of its format.

    Parameters
    ----------
    file : str
        Name of the file.
    line : int or None
        Number of the line, from 1; None if the whole file is meant.
    what : str
        What is wrong and, where it helps, what to do.
    text : bytes or str, optional
        The offending text; long text is cut.

    Examples
    --------
    >>> raise FormatError("train.svm", 7, "bad number", b"3:x")
    Traceback (most recent call last):
    ...
    abound.read.errors.FormatError: train.svm, line 7: bad number: '3:x'
    """

    def __init__(self, file: str, line: int | None, what: str, text: bytes | str | None = None) -> None:
        self.file = file
        self.line = line
        self.what = what
        self.text = text
        where = file if line is None else f"{file}, line {line}"
        super().__init__(f"{where}: {what}" if text is None else f"{where}: {what}: {shortened(text)}")

    def __reduce__(self) -> tuple[type[FormatError], tuple[str, int | None, str, bytes | str | None]]:
        """Keep the error whole on its way from another process."""
        return type(self), (self.file, self.line, self.what, self.text)


def shortened(text: bytes | str) -> str:
    """Quote a text for a message, cut to a readable length.

    Parameters
    ----------
    text : bytes or str
        Bytes that are not UTF-8 are shown as escapes.

    Returns
    -------
    str
        The quoted text.
    """
    if isinstance(text, bytes):
        text = text[: 4 * SHOWN].decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= SHOWN else text[:SHOWN] + "…")
