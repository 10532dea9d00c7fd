"""Names that the server answers to: another site may point its own name at this machine, to read what is answered."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import AddressValueError, IPv6Address, ip_address

LOCAL = ("localhost", "127.0.0.1", "::1")

HEADER = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]*)?")


def host_name(written: str) -> str | None:
    """Read the name in a Host header, whatever its port.

    Parameters
    ----------
    written : str
        As it is sent.

    Returns
    -------
    str or None
        In small letters, an address of IPv6 without brackets; None if it is no name.

    Examples
    --------
    >>> [host_name(written) for written in ("LocalHost:8000", "[::1]:80", "[0::1]", "a b", "me@localhost", "::1")]
    ['localhost', '::1', '::1', None, None, None]
    """
    found = HEADER.fullmatch(written.lower())
    if found is None:
        return None
    if not found[1].startswith("["):
        return found[1]
    try:
        return IPv6Address(found[1][1:-1]).compressed
    except AddressValueError:
        return None


def is_loopback(address: str) -> bool:
    """Tell whether only this machine can reach an address.

    Parameters
    ----------
    address : str
        Where the server listens.

    Returns
    -------
    bool
        True for ``localhost`` too.

    Examples
    --------
    >>> [is_loopback(address) for address in ("localhost", "127.0.0.2", "::1", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return address.lower() == "localhost"


def answered_names(address: str, more: Iterable[str]) -> tuple[str, ...] | None:
    """Tell which names a server answers to.

    Parameters
    ----------
    address : str
        Where it listens.
    more : iterable of str
        Names that it was given.

    Returns
    -------
    tuple of str or None
        None if any will do: it listens to other machines, and no name was given.

    Examples
    --------
    >>> answered_names("127.0.0.1", ["Ranks.example.org"])
    ('127.0.0.1', '::1', 'localhost', 'ranks.example.org')
    >>> answered_names("0.0.0.0", [])
    """
    given = {_checked(name) for name in more}
    if not given and not is_loopback(address):
        return None
    return tuple(sorted({*LOCAL, address.lower(), *given}))


def _checked(name: str) -> str:
    written = f"[{name}]" if name.count(":") > 1 and not name.startswith("[") else name
    # It has no port yet.
    read = host_name(f"{written}:0")
    if read is None:
        raise ValueError(f"{name!r} is no name of a host; give it as it stands in an address, without scheme and port")
    return read
