"""Text made storable: what describes a failure goes into every database, whatever it holds and however long it is."""

from __future__ import annotations


def storable(text: str, longest: int | None = None) -> str:
    """The text without what databases and other runtimes refuse: NUL, and halves of surrogate pairs.

    `longest` is a number of characters; what is beyond them is not even looked at.
    """
    return text[:longest].replace("\0", "").encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def shortened(text: str, longest: int) -> str:
    """The text cut to `longest` units of UTF-16, which is how .NET counts; no surrogate pair is cut in two."""
    if 2 * len(text) <= longest:
        return text
    return text[:longest].encode("utf-16-le", "surrogatepass")[: 2 * longest].decode("utf-16-le", "ignore")
