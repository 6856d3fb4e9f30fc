"""What may happen: pure decisions, with the standard library alone."""

from policies.calls import ToolCall
from policies.secrets import mask_secrets
from policies.tools import OFFERED_TOOLS, ToolGate, validate_bash_command
from policies.verdict import Allow, Ask, Deny, Verdict

__all__ = [
    "OFFERED_TOOLS",
    "Allow",
    "Ask",
    "Deny",
    "ToolCall",
    "ToolGate",
    "Verdict",
    "mask_secrets",
    "validate_bash_command",
]
