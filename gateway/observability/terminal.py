"""Text that a terminal only shows, whatever a model or a client put into it."""


def spell_out(text: str, *, keep: str = "") -> str:
    """Replace every character that a terminal would act on by its escape, but those in `keep`."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in keep else _escape(one) for one in text)


def _escape(char: str) -> str:
    return char.encode("unicode_escape", "backslashreplace").decode()
