"""The commands of `python -m core`, one file each; a command is one file plus one line in `core.__main__`."""


def printable(text: str, limit: int = 500) -> str:
    """Text from a file for a terminal: nothing that moves the cursor, and no more than a few lines."""
    return "".join(c if c.isprintable() else " " for c in text[:limit])
