"""The rules of the policy with what this server keeps private."""

from gateway.errors import SettingsError
from gateway.settings import Settings
from policies.calls import TASK_LIST_TOOLS
from policies.rules import Rules, RulesError, load_rules


def load_policy_blocking(settings: Settings) -> Rules:
    """Load the policy's rules, including the operator's file.

    Raise `StartError` if the file has a mistake; the text names it, the line and the fix.
    """
    private = [settings.data_dir, settings.log_dir]
    if settings.tokens_file is not None:
        private.append(settings.tokens_file)
    try:
        rules = load_rules(settings.policy_file, workspace=settings.workspace, private=private)
    except RulesError as exc:
        raise SettingsError(str(exc)) from exc
    switched = {"Agent": settings.subagents == "on"}
    switched |= dict.fromkeys(TASK_LIST_TOOLS, settings.task_lists == "on")
    return rules.with_optional(switched)
