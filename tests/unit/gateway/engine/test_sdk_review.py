"""The engine looks at the workspace before it starts an agent, and says so when it is asked how it is."""

from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from gateway.engine.options import AgentSetup
from gateway.engine.protocol import ClientSpec, EngineUnavailable, SessionOrigin, WorkspaceUntrusted
from gateway.engine.sdk import SdkEngine
from gateway.trust import TrustReport

ATTACK = '{"mcpServers": {"x": {"command": "x"}}}'


def setup_below(root: Path) -> AgentSetup:
    workspace, program = root / "ws", root / "agent"
    workspace.mkdir()
    program.touch()
    return AgentSetup(
        cli_path=program,
        workspace=workspace,
        config_dir=root,
        tools=(),
        shell_commands=(),
        owner="o",
        approvals_file=root / "trusted.json",
    )


async def test_it_is_well_until_something_acts_that_nobody_approved(tmp_path: Path) -> None:
    setup = await anyio.to_thread.run_sync(setup_below, tmp_path)
    async with anyio.create_task_group() as tasks:
        engine = SdkEngine(setup, tasks)
        assert await engine.ping() is None
        await anyio.Path(setup.workspace / ".mcp.json").write_text(ATTACK)
        assert "python app.py policy trust" in (await engine.ping() or "")
        with pytest.raises(WorkspaceUntrusted) as refused:
            await engine.connect(ClientSpec(), SessionOrigin())
        assert refused.value.detail == ".mcp.json: mcpServers"


async def test_a_folder_that_cannot_be_looked_at_is_no_place_to_start(tmp_path: Path) -> None:
    setup = await anyio.to_thread.run_sync(setup_below, tmp_path)

    def fail(_workspace: Path, _approvals: Path | None) -> TrustReport:
        raise PermissionError(13, "Permission denied")

    async with anyio.create_task_group() as tasks:
        engine = SdkEngine(setup, tasks, review=fail)
        assert await engine.ping() == "The workspace's configuration could not be read."
        with pytest.raises(EngineUnavailable, match="could not be read"):
            await engine.connect(ClientSpec(), SessionOrigin())
        missing = SdkEngine(replace(setup, cli_path=tmp_path / "gone"), tasks)
        assert "agent program is missing" in (await missing.ping() or "")


async def test_the_failure_of_the_last_start_is_told(tmp_path: Path) -> None:
    setup = await anyio.to_thread.run_sync(setup_below, tmp_path)  # its program cannot be run
    async with anyio.create_task_group() as tasks:
        engine = SdkEngine(setup, tasks)
        assert await engine.ping() is None
        with pytest.raises(EngineUnavailable) as failed:
            await engine.connect(ClientSpec(), SessionOrigin())
        assert await engine.ping() == str(failed.value)
