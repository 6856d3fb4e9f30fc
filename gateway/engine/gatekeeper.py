"""How a gatekeeper is asked: whatever goes wrong in it, or comes out of it, is a denial."""

import logging

from gateway.engine.protocol import ToolGatekeeper
from policies.tools import ToolCall
from policies.verdict import Allow, Ask, Deny

_log = logging.getLogger(__name__)

BROKEN = Deny(rule="policy_error", reason="The policy could not judge this call, so it is denied.")


async def first_denial(gatekeeper: ToolGatekeeper, call: ToolCall) -> Deny | None:
    """Have a call judged; None: nothing speaks against it so far."""
    try:
        verdict: object = await gatekeeper.judge(call)
    except Exception:  # noqa: BLE001  a failing gate is a closed one
        _log.exception("gatekeeper_failed")
        return BROKEN
    if isinstance(verdict, Deny):
        return verdict
    return None if isinstance(verdict, Allow | Ask) else BROKEN


async def last_word(gatekeeper: ToolGatekeeper, call: ToolCall) -> Allow | Deny:
    """Have a call decided."""
    try:
        verdict: object = await gatekeeper.decide(call)
    except Exception:  # noqa: BLE001  a failing gate is a closed one
        _log.exception("gatekeeper_failed")
        return BROKEN
    return verdict if isinstance(verdict, Allow | Deny) else BROKEN
