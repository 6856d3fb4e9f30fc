"""What is kept of the settings that a command left in a new repository."""

import pytest

from gateway.engine.box.git_settings import rewrite_settings

CORE = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n"
FETCH = "+refs/heads/*:refs/remotes/origin/*"
HUB = "/it's 工作区/hub.git"


def rewritten(settings: str) -> tuple[str, bool]:
    content, has_lost = rewrite_settings(settings.encode(), HUB.__eq__)
    return content.decode(), has_lost


def with_origin(url: str, more: str = "") -> str:
    return f'{CORE}[remote "origin"]\n\turl = {url}\n\tfetch = {FETCH}\n{more}'


def test_what_git_init_writes_is_kept() -> None:
    bare = "[core]\n\trepositoryformatversion = 0\n\tfilemode = false\n\tbare = true\n"
    sha256 = CORE.replace("version = 0", "version = 1") + "[extensions]\n\tobjectformat = sha256\n"
    for settings in (CORE, bare, sha256):
        assert rewritten(settings) == (settings, False)


@pytest.mark.parametrize(
    "url",
    [
        *("https://example.com/team/x.git", "https://me@example.com:8443/x", HUB, f"file://{HUB}"),
        *("ssh://git@example.com:22/~me/x.git", "git@example.com:team/x.git", "host:/srv/x.git"),
    ],
)
def test_what_git_clone_writes_is_kept(url: str) -> None:
    branch = '[branch "功能/a"]\n\tremote = origin\n\tmerge = refs/heads/功能/a\n'
    content, has_lost = rewritten(with_origin(url, branch))
    assert not has_lost
    assert content == with_origin(f'"{url}"', branch).replace(FETCH, f'"{FETCH}"').replace(
        "remote = origin\n\tmerge = refs/heads/功能/a",
        'remote = "origin"\n\tmerge = "refs/heads/功能/a"',
    )


@pytest.mark.parametrize(
    "url",
    [
        *(
            "ext::sh -c evil",
            "fd::7",
            "https::https://x.org/x",
            "/x::y",
            "file://x/y",
            "",
            "x",
            ".",
        ),
        *("ssh://-oProxyCommand=evil/x", "ssh://-o@x.org/x", "-oProxyCommand=evil:x", "x.org:-x"),
        *("http://x.org/x", "git://x.org/x", "ftp://x.org/x", "https://me:word@x.org/x"),
        *(
            "https://x.org/%0ahost=y",
            "https://x.org/x y",
            "https://x.org",
            "../hub.git",
            "/tmp/evil",
        ),
        *(f"{HUB}/../evil", '"https://x.org/x', "https://x.org/x ; y", "https://x.org/\x7f"),
        *("https://x.org/x\\", "https://x.org/\\n", f"https://x.org/{'x' * 2_000}"),
    ],
)
def test_a_remote_that_may_run_something_is_left_out(url: str) -> None:
    assert rewritten(with_origin(url)) == (CORE, True)


@pytest.mark.parametrize(
    "more",
    [
        *("uploadpack = evil", "receivepack = evil", "vcs = evil", "proxy = http://x.org"),
        *("pushurl = ext::evil", "url = https://y.org/y", "promisor = true", "prune"),
        "fetch = +refs/heads/*:refs/heads/*",
    ],
)
def test_a_remote_with_any_other_setting_is_left_out(more: str) -> None:
    assert rewritten(with_origin("https://x.org/x", f"\t{more}\n")) == (CORE, True)
    named = f'[Remote "origin"]\n\t{more.capitalize()}\n'
    assert rewritten(with_origin("https://x.org/x", named)) == (CORE, True)


@pytest.mark.parametrize(
    "more",
    [
        *("[core]\n\tfsmonitor = evil\n", "[core]\n\tsshCommand = evil\n", "[core] pager = evil\n"),
        *("[core]\n\tworktree = /\n", "[core]\n\thooksPath = .\n", "[include]\n\tpath = evil\n"),
        *('[url "ext::evil"]\n\tinsteadOf = https://\n', '[filter "x"]\n\tclean = evil\n'),
        *("[alias]\n\tst = !evil\n", "[extensions]\n\tpartialclone = origin\n", "\0", "\xa0"),
        *('[remote "evil"]\n\turl = ext::evil\n', "[remote.origin]\n\tvcs = evil\n", "[core"),
        *(
            '[branch "x"]\n\tremote = ext::evil\n',
            '[branch "x"]\n\tmerge = evil\n',
            "\ufeff[core]\n",
        ),
        *('[branch "-x"]\n\tremote = origin\n', '[branch "x"]\n\tdescription = "a\\\nb"\n'),
    ],
)
def test_every_other_setting_is_left_out(more: str) -> None:
    assert rewritten(f"{CORE}{more}") == (CORE, True)


def test_comments_and_blank_lines_are_no_loss() -> None:
    assert rewritten(f"# mine\n\n{CORE} ; mine\n") == (CORE, False)
