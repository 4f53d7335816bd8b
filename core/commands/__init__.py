"""The commands of `python -m core`, one file each; a command is one file plus one line in `core.__main__`."""

import sys


def printable(text: str, limit: int = 500) -> str:
    """Text from a file for a terminal: nothing that moves the cursor, and no more than a few lines."""
    return "".join(c if c.isprintable() else " " for c in text[:limit])


def say(what: str, done: int, total: int) -> None:
    """A progress bar on stderr, in one line."""
    share = f"{done / total:4.0%} " if total else ""
    bar = "█" * int(24 * done / total) if total else ""
    print(f"\r{share}{bar:<24} {what:<60.60}", end="", file=sys.stderr, flush=True)
