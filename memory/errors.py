"""Why memory or a store could not do what was asked. Nothing of such a call took effect.

    StoreUnavailable ← StoreDamaged · StoreConflict

The texts are for people: they name no path, no statement and no value.
"""


class StoreUnavailable(Exception):
    """The store cannot be read or written (full, read-only, damaged, closed, of a newer program)."""


class StoreDamaged(StoreUnavailable):
    """What the store's file holds cannot be understood: waiting does not help, a copy of it may."""


class StoreConflict(Exception):
    """What is stored contradicts the call: a name is taken, or what it refers to is gone."""
