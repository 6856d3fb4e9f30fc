"""`CANDOR_SANDBOX` as a person sets it, what is said of it, and bubblewrap where there is no Landlock."""

import io
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.doctor import examine
from gateway.engine.events import ToolReturned
from gateway.engine.sandbox.protection import WallMode, find_bubblewrap_fault_blocking
from gateway.settings import Settings, Shell
from tests.support.engine_talk import ask, bash, script, step
from tests.support.engine_world import real_world, write
from tests.support.live_server import running_server
from tests.support.live_server import script as live_script
from tests.support.program import environment, one_sentence, run_program
from tests.support.walls import needs_boxes, needs_bubblewrap, needs_landlock

landlock = pytest.importorskip(
    "gateway.engine.sandbox.landlock", reason="Landlock is Linux's", exc_type=ImportError
)
pytestmark = pytest.mark.e2e

SECRET = "S3CR3T-OF-OTHERS"


@needs_bubblewrap
async def test_without_landlock_bubblewrap_keeps_what_bash_runs(tmp_path: Path) -> None:
    """Tried at the start, and then through the agent program's own sandbox, with no wall of ours."""
    kept = tmp_path / "kept.txt"
    write(kept, SECRET)
    before = kept.stat()
    async with real_world(tmp_path, sandboxed_bash=True) as world:
        workspace = world.setup.workspace
        fault = await anyio.to_thread.run_sync(find_bubblewrap_fault_blocking, tmp_path, workspace)
        assert fault is None
        commands = [
            "mkdir d && echo x > d/in.txt && cat d/in.txt",
            "echo x > ../new.txt",
            f"touch {kept}",
            f"chmod 777 {kept}",
            f"rm -f {kept}",
        ]
        unsandboxed = {"command": f"rm -f {kept}", "dangerouslyDisableSandbox": True}
        steps = [*map(bash, commands), step("Bash", **unsandboxed), {"text": "Done."}]
        told = await ask(await world.connect(), script(*steps))
        assert [event.is_error for event in told.all(ToolReturned)] == [False] + [True] * 5
    after = kept.stat()
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)
    assert not (tmp_path / "new.txt").exists()


@needs_landlock
async def test_a_server_that_requires_the_wall_has_it_and_says_so(tmp_path: Path) -> None:
    """With a workspace behind a link, certificates of one's own, and data below the same directory."""
    (tmp_path / "real 工作区").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real 工作区")
    write(tmp_path / "ca.pem", "")
    async with (
        running_server(
            tmp_path,
            sandbox="require",
            workspace=tmp_path / "link",
            prewarmed_clients=0,
            environ={"NODE_EXTRA_CA_CERTS": str(tmp_path / "ca.pem")},
        ) as server,
        server.client() as client,
    ):
        part = (await client.get("/readyz"))["parts"]["sandbox"]
        assert (part["ok"], part["kind"]) == (True, "landlock")
        assert part["message"].startswith("The kernel confines the whole agent process")
        (row,) = [item for item in server.log() if item["event"] == "sandbox_tried"]
        assert (row["level"], row["kind"], row["found"]) == ("info", "landlock", part["message"])
        new = step("Write", file_path=f"{tmp_path}/link/new.txt", content="neu")
        result = await client.ask(live_script(new, bash("cat new.txt"), {"text": "Done."}))
        assert [tool["status"] for tool in result["tools"]] == ["ok", "ok"]
    assert (tmp_path / "real 工作区" / "new.txt").read_text("utf-8") == "neu"
    assert list((tmp_path / "data" / "home").iterdir()) == []


async def test_a_server_without_the_wall_says_so(tmp_path: Path) -> None:
    async with (
        running_server(tmp_path, sandbox="off", prewarmed_clients=0) as server,
        server.client() as client,
    ):
        ready = await client.get("/readyz")
        assert ready["ready"] is True
        assert ready["parts"]["sandbox"] == {
            "ok": True,
            "kind": "off",
            "message": "The kernel's wall is switched off by CANDOR_SANDBOX=off; the policy alone "
            "watches.",
        }
        (row,) = [item for item in server.log() if item["event"] == "sandbox_tried"]
        assert (row["level"], row["kind"]) == ("warning", "off")


def without_landlock(
    directory: Path, command: str, **settings: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command of the program on a kernel that says it has no Landlock."""
    program = (
        "import sys, app\n"
        "from gateway.engine.sandbox import landlock\n"
        "landlock.landlock_version = lambda: 0\n"
        f"sys.exit(app.main([{command!r}]))\n"
    )
    file = directory / "program.py"
    file.write_text(program, encoding="utf-8")
    return run_program([], environment(directory, settings, {}), program=file)


def test_a_server_that_requires_what_is_not_there_does_not_start(tmp_path: Path) -> None:
    done = without_landlock(tmp_path, "demo", sandbox="require")
    assert (done.returncode, done.stdout) == (2, "")
    sentence = one_sentence(done.stderr)
    assert sentence.startswith("CANDOR_SANDBOX=require asks for the kernel's wall, and this kernel")
    assert sentence.endswith("Set CANDOR_SANDBOX=auto to start without it.")


@needs_landlock
@pytest.mark.parametrize(
    ("mode", "version", "told"),
    [
        ("auto", 7, "   ok  The kernel confines the whole agent process (Landlock)"),
        ("auto", 0, " note  The kernel"),
        ("off", 7, " note  The kernel's wall is switched off by CANDOR_SANDBOX=off"),
        ("require", 0, "fault  CANDOR_SANDBOX=require asks for the kernel's wall"),
    ],
)
def test_doctor_tells_which_wall_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: WallMode, version: int, told: str
) -> None:
    monkeypatch.setattr(landlock, "landlock_version", lambda: version)
    settings = Settings(
        port=0,
        workspace=tmp_path / "ws",
        data_dir=tmp_path / "data",
        log_dir=tmp_path / "logs",
        sandbox=mode,
    )
    out = io.StringIO()
    code = examine(settings, {}, out=out)
    assert [line for line in out.getvalue().splitlines() if line.startswith(told)], out.getvalue()
    assert code == told.startswith("fault")


@needs_boxes
@pytest.mark.parametrize(
    ("shell", "has_program", "told"),
    [
        ("listed", True, "   ok  This machine offers CANDOR_SHELL=sandboxed, too"),
        (
            "listed",
            False,
            " note  This machine offers only CANDOR_SHELL=listed: CANDOR_SHELL=sandb",
        ),
        (
            "sandboxed",
            True,
            "   ok  Shell commands run in a box of their own (bubblewrap): they see",
        ),
        ("sandboxed", False, "fault  CANDOR_SHELL=sandboxed cannot be kept: bubblewrap is not"),
    ],
)
def test_doctor_tells_whether_there_is_a_box_for_commands(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    shell: Shell,
    has_program: bool,  # noqa: FBT001
    told: str,
) -> None:
    if not has_program:
        monkeypatch.setattr("gateway.engine.box.choice.find_bubblewrap_blocking", lambda: None)
    settings = Settings(
        port=0,
        workspace=tmp_path / "ws",
        data_dir=tmp_path / "data",
        log_dir=tmp_path / "logs",
        shell=shell,
    )
    out = io.StringIO()
    code = examine(settings, {}, out=out)
    assert [line for line in out.getvalue().splitlines() if line.startswith(told)], out.getvalue()
    assert code == told.startswith("fault")
