"""What of the walls the SDK is told: its own sandbox where there is no other, a directory for temporary files."""

from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions

from gateway.engine.environment import KEEPS
from gateway.engine.hooks import RunHooks
from gateway.engine.options import AgentSetup, build_options
from gateway.engine.protocol import ClientSpec, SessionOrigin


def options(**more: Any) -> ClaudeAgentOptions:
    setup = AgentSetup(
        cli_path=Path("/agent"),
        workspace=Path("/ws"),
        config_dir=None,
        tools=("Bash",),
        shell_commands=("ls",),
        owner="owner",
        **more,
    )
    return build_options(setup, ClientSpec(), SessionOrigin(), RunHooks(), "c1")


def test_the_sdks_own_sandbox_is_on_where_it_is_asked_for_and_approves_nothing() -> None:
    assert options().sandbox is None
    assert options(sandboxed_bash=True).sandbox == {
        "enabled": True,
        "autoAllowBashIfSandboxed": False,
        "allowUnsandboxedCommands": False,
    }


def test_temporary_files_go_where_no_other_user_can_wait_for_them() -> None:
    """Without it they have names in `/tmp` that can be foreseen."""
    made = options(temp_dir=Path("/data/tmp")).env
    assert (made["TMPDIR"], made["CLAUDE_CODE_TMPDIR"]) == ("/data/tmp", "/data/tmp")
    assert {"TMPDIR", "CLAUDE_CODE_TMPDIR"} <= set(made[KEEPS].split(" "))
    assert "CLAUDE_CODE_TMPDIR" not in options().env
