"""The box as arguments of bubblewrap."""

from dataclasses import replace
from pathlib import Path

import pytest

from gateway.engine.box.limits import Limits
from gateway.engine.box.plan import BoxPlan, Mount, box_environment

PLAN = BoxPlan(
    program=Path("/usr/bin/bwrap"),
    system=[("/usr", ""), ("/bin", "usr/bin")],
    mounts=[
        Mount("writable", "/ws", 5),
        Mount("writable", "/ws/.git", 6),
        Mount("read_only", "/ws/.git/hooks", 7),
        Mount("file", "/ws/.env", 8),
        Mount("empty_folder", "/ws/.ssh"),
    ],
    cwd="/ws/src",
    line="make; echo $?",
    limits=Limits(),
    filter_fd=9,
    info_fd=10,
)


def words(plan: BoxPlan) -> str:
    return " ".join(plan.arguments())


def test_the_box_has_namespaces_of_its_own_and_no_power() -> None:
    text = words(PLAN)
    for word in ("user", "ipc", "pid", "net", "uts", "cgroup-try"):
        assert f"--unshare-{word} " in text
    for word in (
        "--disable-userns",
        "--cap-drop ALL",
        "--die-with-parent",
        "--new-session",
        "--seccomp 9",
    ):
        assert f"{word} " in text


def test_mounts_come_in_order_and_the_rest_cannot_be_written() -> None:
    text = words(PLAN)
    order = [
        "--ro-bind /usr /usr --symlink usr/bin /bin",
        "--remount-ro /dev",
        "--perms 1777 --tmpfs /tmp",
        "--bind-fd 5 /ws --bind-fd 6 /ws/.git --ro-bind-fd 7 /ws/.git/hooks",
        "--perms 0444 --ro-bind-data 8 /ws/.env",
        "--perms 0555 --tmpfs /ws/.ssh --remount-ro /ws/.ssh",
        "--remount-ro / --chdir /ws/src",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)


def test_the_line_is_one_word_and_the_last_one() -> None:
    *_, command, name, line = PLAN.arguments()
    assert (name, line) == ("sandbox", "make; echo $?")
    assert command.startswith("ulimit -c 0 -n ")
    assert command.endswith('&& exec /bin/bash -c "$1"')


def test_a_box_with_network_waits_for_its_proxy() -> None:
    assert "--block-fd" not in words(PLAN)
    assert "--block-fd 11 " in words(replace(PLAN, block_fd=11))
    assert "--unshare-net " in words(replace(PLAN, block_fd=11))


def test_the_last_working_directory_goes_through_a_link_of_the_box() -> None:
    plan = replace(PLAN, cwd_file="/data/tmp/claude-1-cwd", cwd_fd=12)
    assert "--symlink /proc/self/fd/12 /data/tmp/claude-1-cwd " in words(plan)


@pytest.mark.parametrize("has_network", [False, True])
def test_the_environment_names_a_proxy_only_where_there_is_one(has_network: bool) -> None:  # noqa: FBT001
    environment = box_environment(["code.example.org"] if has_network else [])
    assert ("HTTPS_PROXY" in environment) is has_network
    assert "http_proxy" not in environment
    assert environment["HOME"].startswith("/tmp/")


def test_git_asks_the_proxy_for_hosts_with_a_secret() -> None:
    environment = box_environment(["a.example.org", "b.example.org"], ["b.example.org"])
    assert environment["http_proxy"] == environment["https_proxy"]
    assert environment["GIT_CONFIG_COUNT"] == "2"
    assert environment["GIT_CONFIG_KEY_0"] == "url.http://b.example.org/.insteadOf"
    assert environment["GIT_CONFIG_VALUE_0"] == "https://b.example.org/"
