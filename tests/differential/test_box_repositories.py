"""What a repository that a command makes in the box keeps, of root's and of an ordinary user's."""

from collections.abc import Iterator

import pytest

from tests.support.boxes import USERS, Bench, box_bench
from tests.support.walls import needs_boxes

pytestmark = needs_boxes


@pytest.fixture(params=USERS)
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    with box_bench(request.param) as bench:
        yield bench


def test_a_new_repository_keeps_git_s_own_settings(bench: Bench) -> None:
    ran = bench.run(
        "git init -q fresh && cd fresh && git config core.fsmonitor ./evil && echo a > a"
        " && git add a && git commit -qm One"
    )
    assert ran.code == 0
    settings = (bench.workspace / "fresh/.git/config").read_text()
    assert "evil" not in settings
    again = bench.run(
        "cd fresh && git config core.fsmonitor ./evil; echo b > b; git add b; git commit -qm Two; git log --oneline | wc -l"
    )
    assert again.output.endswith("2\n")
    assert (bench.workspace / "fresh/.git/config").read_text() == settings


def test_a_new_bare_repository_takes_a_push_in_a_later_command(bench: Bench) -> None:
    first = bench.run(
        "git init -q --bare hub.git && git init -q work && cd work && echo 1 > a && git add a"
        " && git commit -qm One && git push -q ../hub.git main"
    )
    assert (first.code, first.output) == (0, "")
    again = bench.run("cd work && echo 2 > a && git commit -qam Two && git push -q ../hub.git main")
    assert (again.code, again.output) == (0, "")


def test_a_clone_of_a_repository_in_the_workspace_keeps_its_origin(bench: Bench) -> None:
    first = bench.run(
        "git init -q --bare hub.git && git clone -q hub.git work 2> /dev/null && cd work"
        " && echo 1 > a && git add a && git commit -qm One && git push -q"
    )
    assert (first.code, first.output) == (0, "")
    again = bench.run(
        "git clone -q hub.git other && cd other && echo 2 > a && git commit -qam Two && git push -q"
        " && cd ../work && git pull -q && cat a"
    )
    assert (again.code, again.output) == (0, "2\n")


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("git remote add origin https://example.com/x.git", ["origin"]),
        ("git remote add origin git@example.com:team/x.git", ["origin"]),
        ("git remote add origin ssh://git@example.com/x.git", ["origin"]),
        ("git remote add origin 'ext::sh -c evil'", []),
        ("git remote add origin ssh://-oProxyCommand=evil/x.git", []),
        ("git remote add origin /tmp/evil.git", []),
        (
            "git init -q --bare ../node_modules/x && git remote add origin $PWD/../node_modules/x",
            [],
        ),
        (
            "cd ..; git init -q --bare node_modules/x; ln -s node_modules/x x; cd new; git remote add origin ${PWD%/new}/x",
            [],
        ),
        ("git remote add origin https://x.org/x; git config remote.origin.uploadpack evil", []),
    ],
)
def test_a_new_repository_keeps_a_remote_only_if_it_runs_no_program(
    bench: Bench, line: str, kept: list[str]
) -> None:
    bench.run(f"git init -q new && cd new && {line}")
    assert bench.run("git -C new remote").output.split() == kept


def test_the_settings_of_a_new_repository_are_told_as_rewritten(bench: Bench) -> None:
    ran = bench.run("git init -q new && git -C new remote add origin ext::evil")
    assert (
        ran.output
        == "A new repository keeps git's own settings alone; the sandbox rewrote new/.git/config.\n"
    )
    assert bench.run("git init -q plain && git init -q --bare plain.git").output == ""
