"""Asks a gatekeeper; an exception or an invalid verdict counts as a denial."""

import logging

from gateway.engine.protocol import ToolGatekeeper
from policies.tools import ToolCall
from policies.verdict import Allow, Ask, Deny

_log = logging.getLogger(__name__)

BROKEN = Deny(rule="policy_error", reason="The policy could not judge this call, so it is denied.")


async def first_denial(gatekeeper: ToolGatekeeper, call: ToolCall) -> Deny | None:
    """Return the denial of `judge`; None if it does not deny the call."""
    try:
        verdict: object = await gatekeeper.judge(call)
    except Exception:  # noqa: BLE001  fail closed
        _log.exception("gatekeeper_failed")
        return BROKEN
    if isinstance(verdict, Deny):
        return verdict
    return None if isinstance(verdict, Allow | Ask) else BROKEN


async def last_word(gatekeeper: ToolGatekeeper, call: ToolCall) -> Allow | Deny:
    """Return the verdict of `decide`."""
    try:
        verdict: object = await gatekeeper.decide(call)
    except Exception:  # noqa: BLE001  fail closed
        _log.exception("gatekeeper_failed")
        return BROKEN
    return verdict if isinstance(verdict, Allow | Deny) else BROKEN
