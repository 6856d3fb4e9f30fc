"""Deletes the files of sessions that were deleted on another server."""

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from gateway.engine.session_files import forget_blocking, sessions_in
from gateway.engine.session_mirror import stored_name
from gateway.transcripts import TranscriptStore
from memory.errors import StoreUnavailable

_log = logging.getLogger(__name__)

_EVERY_S: Final = 3600.0


async def run_sweep(store: TranscriptStore, config_dirs: Callable[[], Iterable[Path]]) -> None:
    """Look at once, and then every hour, until cancelled."""
    while True:
        try:
            await sweep_sessions(store, config_dirs)
        except (StoreUnavailable, OSError) as exc:
            _log.warning("sessions_not_swept", extra={"reason": str(exc)})
        await anyio.sleep(_EVERY_S)


async def sweep_sessions(store: TranscriptStore, config_dirs: Callable[[], Iterable[Path]]) -> None:
    """Delete the files of deleted sessions. Raise `StoreUnavailable` or `OSError`."""
    run = anyio.to_thread.run_sync
    for directory in await run(lambda: list(config_dirs())):
        names = {
            stored_name(session_id): session_id for session_id in await run(sessions_in, directory)
        }
        for name in await store.deleted(list(names)) if names else ():
            await run(forget_blocking, directory, names[name])
            _log.info("session_swept", extra={"session_id": names[name]})
