"""Text that is safe to print on a terminal."""


def spell_out(text: str, *, keep: str = "") -> str:
    """Escape every character that is not printable, except those in `keep`."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else _escape(char) for char in text)


def _escape(char: str) -> str:
    return char.encode("unicode_escape", "backslashreplace").decode()
