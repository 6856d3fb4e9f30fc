"""What keeps and forgets facts, on a real database."""

from memory.facts.keeper import FactKeeper
from memory.service.forgetting import Forgetting
from memory.stores.database import SqlDatabase
from memory.stores.sqlite.items import SqlItemStore
from tests.support.episodes import AT, recorder_on


def forgetting_on(database: SqlDatabase, *backends: str) -> Forgetting:
    """Return what forgets items, also in these backends."""
    recording = recorder_on(database).recording
    return Forgetting(database, backends=backends, recording=recording, now=lambda: AT)


def keeper_on(database: SqlDatabase, *backends: str) -> FactKeeper:
    """Return a keeper that delivers to these backends and masks nothing."""
    return FactKeeper(
        database,
        items=SqlItemStore(database),
        deliver_to=backends,
        recording=recorder_on(database).recording,
        mask=str,
        now=lambda: AT,
        forget_all=forgetting_on(database, *backends).forget_all,
    )
