"""Short forms of texts: one line, or cut at a bound."""


def flat(text: str) -> str:
    """Return a text as one line; every run of white space becomes one blank."""
    return " ".join(text.split())


def one_line(text: str, limit: int = 200) -> str:
    """Return a text as one line of at most `limit` characters; a cut one ends in `…`."""
    line = flat(text)
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def clipped(text: str, most: int) -> str:
    """Return the first `most` characters of a text, followed by `...` if it is longer."""
    return text if len(text) <= most else f"{text[:most]}..."


def without_marks(text: str) -> list[str]:
    """Return the lines of a Markdown text without the marks of lists and headings, and no empty
    ones.

    The mark of a reply stays: it says who said a line.
    """
    return [line for line in (line.strip(" #*->") for line in text.splitlines()) if line]
