"""Rules of one's own reach the turns: what they allow runs, what they ask about is asked, or denied."""

from pathlib import Path

import pytest

from gateway.errors import StartError
from gateway.ids import LOCAL_USER
from tests.support.services import (
    ask,
    events_of,
    of_kind,
    result_of,
    running_services,
    script,
    send,
)

READ = {"tool": "Read", "input": {"file_path": "a.txt"}}
DONE = {"text": "done"}


def _rules(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "rules.toml"
    file.write_text(text, encoding="utf-8")
    return file


async def test_a_rule_asks_a_person_also_about_a_call_that_changes_nothing(tmp_path: Path) -> None:
    file = _rules(tmp_path, '[[ask]]\ntools = ["Read"]\n')
    async with running_services(tmp_path, approvals="on", policy_file=file) as services:
        accepted = await send(services, script(READ, DONE))
        events = await events_of(services, accepted, until="approval.requested")
        question = of_kind(events, "approval.requested")[0]
        services.chat.approvals.answer(LOCAL_USER, question["approval_id"], "allow")
        result = await result_of(services, accepted)
    assert question["name"] == "Read"
    assert result["outcome"] == "answered"


async def test_what_a_file_takes_away_or_adds_holds_for_the_turns(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "s.txt").write_text("s", encoding="utf-8")
    file = _rules(
        tmp_path,
        f'[commands]\nforbid = ["ls"]\n[directories]\nread_only = ["{tmp_path}/shared"]\n',
    )
    calls = [
        {"tool": "Bash", "input": {"command": "ls"}},
        {"tool": "Bash", "input": {"command": f"cp a.txt {tmp_path}/shared/a.txt"}},
        {"tool": "Read", "input": {"file_path": f"{tmp_path}/shared/s.txt"}},
    ]
    statuses = []
    for given in (file, None):
        async with running_services(tmp_path, policy_file=given) as services:
            result = await ask(services, script(*calls, DONE))
        statuses.append([tool["status"] for tool in result["tools"]])
    assert statuses == [["denied", "denied", "ok"], ["ok", "denied", "denied"]]
    assert [path.name for path in (tmp_path / "shared").iterdir()] == ["s.txt"]


async def test_nothing_is_opened_on_a_file_with_a_mistake(tmp_path: Path) -> None:
    file = _rules(tmp_path, '[commands]\nallow = ["gerp"]\n')
    with pytest.raises(StartError, match=r"rules\.toml, line 2: .*did you mean grep\.$"):
        async with running_services(tmp_path, policy_file=file):
            pass
    assert not list((tmp_path / "data").iterdir())
