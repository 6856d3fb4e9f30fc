"""Notes which cases a conversation was shown, so that it can be reminded to judge them."""

import logging
from collections.abc import Sequence
from typing import Final

import anyio

from memory.cases.case import Case, CaseCaller
from memory.cases.store import CaseStore
from memory.errors import StoreUnavailable

_log = logging.getLogger(__name__)

_NOTING_S: Final = 0.5


async def note_shown(store: CaseStore, caller: CaseCaller, cases: Sequence[Case]) -> None:
    """Note it where that is soon done: what was found is worth more than the reminder to judge it."""
    if caller.conversation_id is None or not cases:
        return
    with anyio.move_on_after(_NOTING_S) as waiting:
        try:
            await store.note_shown(
                caller.voter, {case.case_id: case.content_revision for case in cases}
            )
        except StoreUnavailable:
            _log.warning("shown_cases_not_noted", exc_info=True)
    if waiting.cancelled_caught:
        _log.warning("shown_cases_not_noted_in_time")
