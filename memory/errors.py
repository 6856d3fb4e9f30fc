"""Errors of memory, its stores and its backends. A store's call that raises one had no effect,
unless it is `CommitUnknown`.

The texts are for people and name no path, statement or value.
"""


class StoreUnavailable(Exception):
    """The store cannot be read or written: full, read-only, damaged, closed, or of
    a newer program.
    """


class StoreDamaged(StoreUnavailable):
    """The store's file is damaged. Waiting does not help; it must be restored from a backup."""


class CommitUnknown(StoreUnavailable):
    """The connection was lost before the answer to a commit: it may be stored."""


class StoreConflict(Exception):
    """The stored data contradict the call: a name is taken, or a referenced row is gone."""


class BackendUnavailable(Exception):
    """The backend failed and may succeed later; the text is one sentence for people."""


class BackendResting(BackendUnavailable):
    """The backend failed so often lately that it was not asked."""


class DeliveryRefused(Exception):
    """The backend will never accept this; the text is one sentence for people."""
