"""Which parts of a nested value are secret: the one rule for the journal, events, logs and memory.

All that stands under a name such as `password` is secret, however deep, and in a list of arguments
what follows an option such as `--password`.
"""

from policies.secrets.keys import names_secret


def field_name(key: object) -> str:
    """Return the key of a mapping as text."""
    if isinstance(key, bytes | bytearray):
        return bytes(key).decode("utf-8", "backslashreplace")
    return str(key)


def is_secret_field(key: object, *, within: bool) -> bool:
    """Return whether the value under a key is secret; `within`: the mapping itself is."""
    return within or names_secret(field_name(key))


def is_secret_item(before: object, *, within: bool) -> bool:
    """Return whether a list's item is secret; `before` is the item before it, None
    for the first.
    """
    follows_option = isinstance(before, str) and before.startswith("-")
    return within or (follows_option and names_secret(str(before)))


def tells_nothing(value: object) -> bool:
    """Return whether a value stays as it is also where values are secret: nothing, a flag, an empty
    text.
    """
    return value is None or isinstance(value, bool) or value in ("", b"")
