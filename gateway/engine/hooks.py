"""The callbacks of the agent process: the policy's gate and memory's context.

Fail closed: the policy is asked in a `PreToolUse` hook that only ever denies (with
`on_failure="block"`) and again in `can_use_tool`, which every call reaches (`permissions.ask:
["*"]`) and which decides. Without a run in progress everything is denied.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio.to_thread
from claude_agent_sdk import (
    HookContext,
    HookInput,
    HookJSONOutput,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ToolPermissionContext,
)
from claude_agent_sdk.types import HookEvent

from gateway.engine.callback_task import run_shieldable
from gateway.engine.calls import RunCalls
from gateway.engine.own_tools import OwnToolCaller
from gateway.engine.protocol import Prompt, ToolGatekeeper
from gateway.engine.tool_output import SHORTENED_TOOLS, shorten, whole_output_blocking
from gateway.engine.translate import as_object
from policies.calls import ToolCall
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
        verdict: object = await run_shieldable(partial(gatekeeper.decide, call))
    except Exception:  # noqa: BLE001  fail closed
        _log.exception("gatekeeper_failed")
        return BROKEN
    return verdict if isinstance(verdict, Allow | Deny) else BROKEN


_NO_RUN = Deny(rule="no_run", reason="No turn is running that this call could belong to.")
_SUMMARY_CALL = Deny(
    rule="summary_only", reason="No tool may be called now.", hint="Answer in words alone."
)
_UNSEEN = Deny(rule="unseen_call", reason="The call was not shown to the policy, so it is denied.")

_CONTEXT_TIMEOUT_S = 120.0
"""Exceeds the longest recall deadline, so that reported context is really injected."""

_MAX_CALLS = 4096
"""The most calls of one run; further ones are denied."""

_CONFIG_CHANGE = cast("HookEvent", "ConfigChange")
"""An event of the agent program that the SDK's types do not name."""


async def _keep_configuration(  # noqa: RUF029  a callback of the SDK
    _hook_input: HookInput, _tool_use_id: str | None, _context: HookContext
) -> HookJSONOutput:
    """Keep the agent program from loading skills and sub-agents anew: a start reviewed them."""
    return {"decision": "block", "reason": ""}


class RunHooks:
    """The callbacks of one client, bound to the run in progress."""

    def __init__(
        self,
        *,
        on_accepted: Callable[[], None] | None = None,
        config_dir: Path | None = None,
    ) -> None:
        """Initialise; `config_dir` is the agent program's folder, where it saves long outputs."""
        self._config_dir = config_dir
        self._on_accepted = on_accepted
        """Called when the model may see the prompt."""
        self.is_compacting = False
        """True while the agent program summarises the session: what the model calls then never
        runs."""
        self._prompt: Prompt | None = None
        self._calls: RunCalls | None = None
        self._denied: dict[int, Deny] = {}
        """Interrupting denials by the call's index; only `can_use_tool` can carry them out."""

    def begin(self, prompt: Prompt, calls: RunCalls) -> None:
        """Bind the callbacks to a run."""
        self._prompt = prompt
        self._calls = calls
        calls.on_returned = prompt.gatekeeper.returned
        self._denied.clear()

    def end(self) -> None:
        """Unbind the callbacks; every later call is denied."""
        if self._calls is not None:
            self._calls.end()
        self._prompt = self._calls = None

    @property
    def own_tools(self) -> OwnToolCaller | None:
        """The caller of the gateway's own tools in the run in progress, if any."""
        return None if self._prompt is None else self._prompt.call_own

    def matchers(self) -> dict[HookEvent, list[HookMatcher]]:
        """Return the SDK's registration of these callbacks."""
        return {
            _CONFIG_CHANGE: [HookMatcher(hooks=[_keep_configuration], on_failure="block")],
            "PreToolUse": [HookMatcher(hooks=[self._pre_tool_use], on_failure="block")],
            "PostToolUse": [HookMatcher(matcher=SHORTENED_TOOLS, hooks=[self._post_tool_use])],
            "UserPromptSubmit": [
                HookMatcher(
                    hooks=[self._user_prompt_submit],
                    timeout=_CONTEXT_TIMEOUT_S,
                    on_failure="block",  # a turn that is not stored must not reach the model
                )
            ],
        }

    async def can_use_tool(
        self, name: str, tool_input: dict[str, Any], context: ToolPermissionContext
    ) -> PermissionResultAllow | PermissionResultDeny:
        """Decide on a call."""
        verdict = await self._decide(name, tool_input, context)
        if isinstance(verdict, Allow):
            changed = verdict.updated_input
            return PermissionResultAllow(updated_input=None if changed is None else dict(changed))
        return PermissionResultDeny(message=verdict.message, interrupt=verdict.interrupt)

    async def _decide(
        self, name: str, tool_input: dict[str, Any], context: ToolPermissionContext
    ) -> Allow | Deny:
        prompt, calls = self._prompt, self._calls
        if prompt is None or calls is None:
            return _NO_RUN
        shown = calls.ask(context.tool_use_id or "", name, tool_input)
        if shown is None:
            return _UNSEEN
        call = replace(shown, name=name, input=tool_input, agent_id=context.agent_id)
        final = await last_word(prompt.gatekeeper, call)
        if isinstance(final, Allow):
            final = self._denied.get(call.index, final)
        if isinstance(final, Allow):
            await calls.allow(call, final)
        else:
            calls.deny(call, final)
        return final if self._prompt is prompt else _NO_RUN  # the run may have ended meanwhile

    async def _pre_tool_use(
        self, hook_input: HookInput, tool_use_id: str | None, _context: HookContext
    ) -> HookJSONOutput:
        told = cast("dict[str, Any]", hook_input)
        try:
            verdict = await self._judge(told, tool_use_id or str(told.get("tool_use_id") or ""))
        except Exception:  # noqa: BLE001  the agent program would block as well, with another message
            _log.exception("hook_failed")
            verdict = BROKEN
        if verdict is None:
            return {}
        return {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": verdict.message,
            }
        }

    async def _judge(self, told: dict[str, Any], tool_use_id: str) -> Deny | None:
        """Return the denial of a call, or None; an interrupting denial is
        left to `can_use_tool`.
        """
        prompt, calls = self._prompt, self._calls
        if prompt is None or calls is None or len(calls) >= _MAX_CALLS:
            return _NO_RUN
        if self.is_compacting:
            return _SUMMARY_CALL
        call = await calls.show(
            ToolCall(
                name=str(told["tool_name"]),
                input=as_object(told["tool_input"]),
                cwd=str(told["cwd"]),
                tool_use_id=tool_use_id,
                agent_id=told.get("agent_id"),
            )
        )
        denial = await first_denial(prompt.gatekeeper, call)
        if denial is None:
            return None
        if denial.interrupt:
            self._denied[call.index] = denial
            return None
        calls.deny(call, denial)
        return denial

    async def _post_tool_use(
        self, hook_input: HookInput, tool_use_id: str | None, _context: HookContext
    ) -> HookJSONOutput:
        """Cut a tool's long result for the model; the whole of it goes to the turn."""
        told, calls = cast("dict[str, Any]", hook_input), self._calls
        response = told.get("tool_response")
        if shorten(response) == response:
            return {}
        whole = await anyio.to_thread.run_sync(
            whole_output_blocking, str(told.get("tool_name")), response, self._config_dir
        )
        if calls is not None and whole is not None:
            calls.keep_whole(tool_use_id or str(told.get("tool_use_id") or ""), whole)
        return {
            "hookSpecificOutput": {
                "hookEventName": "PostToolUse",
                "updatedToolOutput": shorten(response, whole),
            }
        }

    async def _user_prompt_submit(
        self, _hook_input: HookInput, _tool_use_id: str | None, _context: HookContext
    ) -> HookJSONOutput:
        prompt = self._prompt
        if prompt is not None and prompt.is_blocked:
            return {"decision": "block", "reason": ""}
        if prompt is None or prompt.context is None:
            return {}
        context = await prompt.context()
        if context is None:
            return {"decision": "block", "reason": "The message could not be stored."}
        if self._prompt is prompt and self._on_accepted is not None:
            self._on_accepted()
        if not context or self._prompt is not prompt:
            return {}
        return {
            "hookSpecificOutput": {
                "hookEventName": "UserPromptSubmit",
                "additionalContext": context,
            }
        }
