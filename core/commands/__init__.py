"""The commands of `python -m core`, one file each; a command is one file plus one line in `core.__main__`."""
