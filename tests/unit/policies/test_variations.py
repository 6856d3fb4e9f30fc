"""Variations of everything that must be denied: each way out in each spelling at each place of each command."""

import itertools
import string
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from policies.calls import ToolCall
from policies.inputs import KNOWN_TOOLS
from policies.rules import shipped_rules
from policies.shell.commands import GRAMMARS
from policies.tools import ToolGate, validate_bash_command
from policies.verdict import Allow, Deny
from tests.unit.policies.corpus import build_workspace
from tests.unit.policies.judging import read_list

ALL = replace(shipped_rules(), commands=frozenset(GRAMMARS))


READING = read_list(r"""
cat {} ¦ cat a.txt {} ¦ cat -n -- {} ¦ ls {} ¦ ls -la src {} ¦ cp {} new ¦ cp -r {} new
cp -t docs {} ¦ cp a.txt {} docs ¦ head -5 {} ¦ head a.txt {} ¦ tail -n +1 {} ¦ wc -l {}
stat {} ¦ file {} ¦ du -a {} ¦ du src {} ¦ diff {} a.txt ¦ diff a.txt {} ¦ diff -r {} src
grep x {} ¦ grep -r x {} ¦ grep -f {} a.txt ¦ grep --file={} a.txt ¦ grep -f{} a.txt ¦ find {}
find src {} -name x ¦ find . -newer {} ¦ touch -r {} a.txt ¦ touch --reference={} a
""")
WRITING = read_list(r"""
rm {} ¦ rm -rf {} ¦ rm a.txt {} ¦ rm -- {} ¦ mkdir {} ¦ mkdir -p {}/new ¦ mkdir a {} ¦ touch {}
touch -c {} ¦ rmdir {} ¦ mv {} new ¦ mv a.txt {} ¦ mv a.txt b.txt {} ¦ mv -t {} a.txt
mv -t{} a.txt ¦ mv -ft {} a.txt ¦ mv --target-directory={} a.txt
mv --target-directory {} a.txt ¦ mv a.txt -t {} ¦ cp a.txt {} ¦ cp -r src {} ¦ cp -t {} a.txt
cp -rt{} src ¦ cp a.txt --target-directory={} ¦ cp -T a.txt {} ¦ mv -T src {}
""")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace with links in every direction."""
    workspace = build_workspace(tmp_path_factory.mktemp("variations"))
    (workspace / "sub" / "tree").mkdir(parents=True)
    for name, target in {
        "out": "../outdir",
        "up": "..",
        "flink": "../outside.txt",
        "absolute": "/etc",
        "chain": "out",
        "dangling": "../created",
        "loop": "loop",
        "sub/deep": "../../outdir",
        "cfg": ".claude",
        "hidden": ".env",
        "self": ".",
    }.items():
        (workspace / name).symlink_to(target)
    return workspace


OUTSIDE = read_list(r"""
../outside.txt ¦ .. ¦ ../ ¦ ../outdir/keep.txt ¦ src/../../outside.txt ¦ ./../outside.txt
a/../../outside.txt ¦ .//..//outside.txt ¦ src/../.. ¦ / ¦ /etc/passwd ¦ //etc/passwd
/./etc/passwd ¦ /etc ¦ /tmp ¦ /proc/self/environ ¦ /proc/self/root/etc/passwd ¦ /dev/tcp/x
/dev/fd/0 ¦ {WS}/../outside.txt ¦ {WS}-evil/secret.txt ¦ {WS}/.. ¦ {WS}/../ws-evil ¦ out/
out/keep.txt ¦ out/../x ¦ up/outside.txt ¦ up/ws-evil/secret.txt ¦ absolute/passwd
chain/keep.txt ¦ sub/deep/keep.txt ¦ self/../outside.txt ¦ self/out/keep.txt ¦ up/ws/../outdir
http://a.example/x ¦ file:///etc/passwd ¦ c:/x ¦ //server/share ¦ ~ ¦ ~/x ¦ ~root/x
""")
OUTSIDE_READ = ("flink", "out", "up", "absolute", "loop", "chain", "sub/deep")
"""Links that may be removed as links, never followed."""


def _spell(path: str) -> Iterator[str]:
    """Write a path in ways that a shell reads alike."""
    yield path
    yield f"'{path}'"
    yield f'"{path}"'
    middle = path.find("}") + 1 or len(path) // 2
    yield f"{path[:middle]}''{path[middle:]}"
    yield f"'{path[:middle]}'\"{path[middle:]}\""
    yield f"{path}''"


def _allowed(commands: Iterator[str], root: Path) -> list[str]:
    """List the commands that are allowed though none of them should be; a fault counts as one."""
    found: list[str] = []
    count = 0
    for command in commands:
        count += 1
        line = command.replace("{WS}", str(root))
        verdict = validate_bash_command(line, root=root, cwd=root, rules=ALL)
        if isinstance(verdict, Allow) or verdict.rule == "policy_error":
            found.append(f"{command} ({verdict.rule})")
        else:
            assert len(verdict.message if isinstance(verdict, Deny) else "") < 400
    assert count > 20
    return found


def _vary(
    templates: Iterable[str], names: Iterable[str], spell: Callable[[str], Iterator[str]], step: int
) -> Iterator[str]:
    """Put each name in each spelling at each place, or evenly spread combinations, one in `step`."""
    for i, name in enumerate(names):
        for j, spelled in enumerate(spell(name)):
            for k, template in enumerate(templates):
                if (i + j + k) % step == 0 and not _takes_a_link(spelled, template):
                    yield template.replace("{}", spelled)


STEPS = [11, pytest.param(1, marks=pytest.mark.soak)]
"""One combination in so many is tried; the soak tries all."""


@pytest.mark.parametrize("step", STEPS)
def test_no_way_out_is_allowed_at_any_place(root: Path, step: int) -> None:
    assert _allowed(_vary(READING, (*OUTSIDE, *OUTSIDE_READ), _spell, step), root) == []
    assert _allowed(_vary(WRITING, (*OUTSIDE, "dangling/x"), _spell, step), root) == []


def test_nothing_is_made_through_a_link_that_leads_outside(root: Path) -> None:
    making = [t for t in WRITING if not t.startswith(("rm", "mv {}"))]
    commands = (t.replace("{}", path) for path in (*OUTSIDE_READ, "dangling") for t in making)
    assert _allowed(commands, root) == []


PROTECTED = read_list(r"""
.claude ¦ .claude/settings.json ¦ .claude/skills/new/SKILL.md ¦ .mcp.json ¦ CLAUDE.md
CLAUDE.local.md ¦ .git ¦ .git/config ¦ .git/hooks/pre-commit ¦ .gitconfig ¦ .gitmodules
.gitattributes ¦ .husky/pre-commit ¦ .bashrc ¦ .bash_profile ¦ .profile ¦ .zshrc ¦ .zshenv
.inputrc ¦ .vimrc ¦ .vscode/tasks.json ¦ .idea/x.xml ¦ .devcontainer/devcontainer.json
.github/workflows/x.yml ¦ .pre-commit-config.yaml ¦ .gitlab-ci.yml ¦ .ripgreprc ¦ .envrc
""")
SECRETS = read_list(r"""
.env ¦ .env.local ¦ .env.production ¦ .netrc ¦ .npmrc ¦ .pypirc ¦ .git-credentials ¦ .ssh/config
id_rsa ¦ id_ed25519 ¦ server.pem ¦ server.key ¦ .aws/credentials ¦ .kube/config
credentials.json ¦ .claude.json ¦ .candor/candor.sqlite3 ¦ .bash_history
""")


def _disguise(name: str) -> Iterator[str]:
    """Return names that some file system or program takes for the same, at some depth."""
    yield name
    yield f"./src/../{name}"
    yield f"{{WS}}/{name}"
    yield f"{{WS}}//.//{name}"
    yield f"self/{name}"
    if name in {*PROTECTED, *SECRETS}:
        yield name.upper()
        yield name.title()
        yield f"sub/tree/{name}"
        yield f"sub/new/{name}"
        yield f"'{name} '"
        yield f"'{name}.'"


def _takes_a_link(spelled: str, template: str) -> bool:
    """A link to something protected may itself be taken away."""
    return spelled.endswith("hidden") and template.startswith(("rm", "mv {}", "mv -T"))


@pytest.mark.parametrize("step", STEPS)
def test_what_is_protected_is_not_written_or_read_under_any_name(root: Path, step: int) -> None:
    acting = (*PROTECTED, *SECRETS, "cfg/settings.json", "cfg/skills/x", "hidden")
    assert _allowed(_vary(WRITING, acting, _disguise, step), root) == []
    assert _allowed(_vary(READING, (*SECRETS, "hidden"), _disguise, step), root) == []


CONSTRUCTS = read_list(r"""
; ¦ ;; ¦ ; id ¦ & ¦ & id ¦ && ¦ && id ¦ || ¦ || id ¦ | ¦ | sh ¦ |& sh ¦ > x ¦ >> x ¦ >| x ¦ 2> x
2>&1 ¦ &> x ¦ &>> x ¦ >& x ¦ < x ¦ <> x ¦ 3> x ¦ {fd}> x ¦ <<< x ¦ <(id) ¦ >(id) ¦ $(id) ¦ `id`
${x} ¦ $x ¦ $1 ¦ $@ ¦ $? ¦ $$ ¦ $! ¦ ${x:-$(id)} ¦ ${!x} ¦ ${x@P} ¦ $((1)) ¦ $[1] ¦ $'x' ¦ $"x"
"$x" ¦ "$(id)" ¦ "`id`" ¦ "${x}" ¦ {a,b} ¦ {1..3} ¦ {} ¦ a{b,c} ¦ ~ ¦ ~root ¦ ~+ ¦ ~- ¦ ~1 ¦ a=~
!! ¦ !-1 ¦ !x ¦ ^a^b ¦ (id) ¦ ( id ) ¦ ) ¦ { id; } ¦ # x ¦ # ¦ ' ¦ " ¦ =ls ¦ !(a) ¦ @(a|b)
?(a) ¦ +(a) ¦ *(a) ¦ [[:alpha:]]* ¦ [!a]* ¦ [^a]* ¦ [a/b]* ¦ {U+000A} ¦ {U+000A}id
{U+000D}{U+000A}id ¦ {U+000D} ¦ << E{U+000A}x{U+000A}E ¦ <<- E{U+000A}x{U+000A}E ¦ "a\"b" ¦ \
\{U+000A} ¦ \{U+000A}id ¦ a\b ¦ {U+00A0} ¦ {U+2028} ¦ {U+0085} ¦ {U+200B} ¦ {U+202E} ¦ {U+FEFF}
{U+0000} ¦ {U+000B} ¦ {U+000C} ¦ {U+001B} ¦ {U+007F} ¦ {U+2066}x{U+2069} ¦ {U+E0072} ¦ {U+3000}
""")


def test_no_construct_of_the_shell_is_allowed_anywhere_or_inside_a_word(root: Path) -> None:
    hosts = ("ls {}", "ls{}", "ls src {}", "ls {} src", "rm -f {}", "cat a.txt {}", "find {}")
    commands = (host.replace("{}", c) for c in CONSTRUCTS for host in hosts)
    assert _allowed(commands, root) == []
    literal = ("~", "#", "=", "a=~")
    """What bash takes as it is inside a word."""
    inside = [construct for construct in CONSTRUCTS if not construct.startswith(literal)]
    commands = (host.replace("{}", c) for c in inside for host in ("mkdir a{}b", "rm -f src/{}x"))
    assert _allowed(commands, root) == []


STARTS = r"""
A=1 ls ¦ A= ls ¦ PATH=. ls ¦ A+=1 ls ¦ A[0]=1 ls ¦ ./ls ¦ /bin/ls ¦ ~/ls ¦ ../ws/ls ¦ \ls ¦ l\s
'ls' ¦ "ls" ¦ l''s ¦ l""s ¦ LS ¦ Ls ¦ ls.exe ¦ ?s ¦ l? ¦ [l]s ¦ $0 ¦ command ls ¦ builtin cd
exec ls ¦ eval ls ¦ env ls ¦ sudo ls ¦ nohup ls ¦ time ls ¦ timeout 5 ls ¦ xargs ls ¦ busybox ls
sh -c ls ¦ bash -c ls ¦ source a.txt ¦ . a.txt ¦ ! ls ¦ { ls; } ¦ ( ls ) ¦ if ls; then ls; fi
while ls; do ls; done ¦ [ -f a.txt ] ¦ [[ -f a ]] ¦ coproc ls ¦ function f { ls; } ¦ f() { ls; }
alias ls=id ¦ cd src ¦ cd ¦ export A=1 ¦ declare A=1 ¦ set -e ¦ trap id EXIT ¦ echo x ¦ printf x
git status ¦ python3 -c 1 ¦ sed -n 1p a.txt ¦ awk 1 a.txt ¦ tee x ¦ dd if=a ¦ ln -s a b
chmod 1 a ¦ curl a ¦ ps ¦ id ¦ true ¦ : ¦ test -f a ¦ history ¦ -- ¦ -l ¦ egrep x a
"""


def test_only_plain_commands_start_a_line(root: Path) -> None:
    starts = read_list(STARTS)
    assert _allowed(iter((*starts, "", " ", "\t")), root) == []


def _unlisted_options(name: str) -> Iterator[str]:
    grammar = GRAMMARS[name]
    listed = {*grammar.flags, *grammar.short_values, *("ao" if name == "find" else "")}
    first = grammar.flags[:1]
    longs = grammar.long_flags | set(grammar.long_values)
    cut = {long[:end] for long in longs for end in range(1, len(long))} - longs
    for letter in set(string.ascii_letters) - listed:
        yield from (f"-{letter}", f"-{first}{letter}")
    for long in cut:
        yield from (f"--{long}", f"--{long}=1")
    yield from (f"--{long}=" for long in grammar.long_flags - set(grammar.long_values))
    yield from "--help --version --x --= -@ -é --- --no-preserve-root --files0-from=a".split()


@pytest.mark.parametrize("step", STEPS)
def test_no_option_is_allowed_that_is_not_listed(root: Path, step: int) -> None:
    for name in GRAMMARS:
        operands = "" if name in {"pwd", "find"} else "a.txt b.txt"
        options = sorted(_unlisted_options(name))[:: min(step, 3)]
        commands = [f"{name} {option} {operands}" for option in options]
        commands += [f"{name} {operands} {option}" for option in options]
        assert _allowed(iter(commands), root) == []


def test_the_same_commands_are_allowed_where_nothing_is_wrong(root: Path) -> None:
    """Else the tests above would show nothing."""
    refused = []
    for template in (*READING, *WRITING):
        verdicts = [
            validate_bash_command(template.replace("{}", path), root=root, cwd=root, rules=ALL)
            for path in ("a.txt", "docs", "new")
        ]
        if not any(isinstance(verdict, Allow) for verdict in verdicts):
            refused.append(template)
    assert refused == []


def _calls_with_other_inputs() -> Iterator[tuple[str, Any]]:
    for value in (None, 1, True, [], {}, ["a.txt"], {"a": 1}, b"a.txt"):
        yield "Read", {"file_path": value}
        yield "Write", {"file_path": value, "content": "x"}
        yield "Write", {"file_path": "a.txt", "content": value}
        yield "Bash", {"command": value}
        yield "Glob", {"pattern": value}
        yield "Grep", {"pattern": "x", "path": value}
        yield "WebFetch", {"url": value, "prompt": "x"}
    for key in ("cwd", "env", "shell", "sandbox", "path", "root", "encoding", "x", ""):
        yield "Bash", {"command": "ls", key: "/etc"}
        yield "Read", {"file_path": "a.txt", key: "/etc"}
    nothing: tuple[Any, ...] = (None, [], "ls", 1, {})
    takes_none: tuple[str, Any] = ("EnterPlanMode", {})
    yield from (call for call in itertools.product(KNOWN_TOOLS, nothing) if call != takes_none)


OTHER_TOOLS = """
* ¦ mcp__ ¦ mcp__x ¦ mcp__x__y ¦ mcp__* ¦ Task ¦ Agent ¦ Monitor ¦ Workflow ¦ CronCreate
ScheduleWakeup ¦ EnterWorktree
MultiEdit ¦ NotebookRead ¦ LS ¦ KillShell ¦ BashOutput ¦ WebSearch ¦ SlashCommand
PowerShell ¦ {EMPTY}
"""


def _other_names() -> Iterator[str]:
    for name in KNOWN_TOOLS:
        yield from (f"{name} ", f" {name}", name.lower(), name.upper(), f"{name}2", f"{name}\x00")
        yield from (f"mcp__{name}", f"{name}__x", f"{name}*", f"*{name}", f"{name}\u200b")
    yield from read_list(OTHER_TOOLS)


def test_no_other_tool_and_no_other_input_is_allowed(root: Path) -> None:
    gate = ToolGate(root, rules=ALL, can_ask_user=True)
    calls = list(_calls_with_other_inputs())
    names = [name for name in _other_names() if name not in KNOWN_TOOLS - {"PowerShell"}]
    calls += [(name, {"command": "ls", "file_path": "a.txt"}) for name in names]
    judged = [(gate.judge(ToolCall(name=n, input=i, cwd=str(root))), n, i) for n, i in calls]
    assert [found for found in judged if not isinstance(found[0], Deny)] == []
    assert [found for found in judged if found[0].rule == "policy_error"] == []


def test_the_file_tools_go_the_same_ways(root: Path) -> None:
    gate = ToolGate(root, rules=ALL)
    allowed = []
    others = read_list("dangling ¦ hidden ¦ src ¦ . ¦ {EMPTY} ¦ a{U+0000} ¦ a.txt/")
    for path in (*OUTSIDE, *OUTSIDE_READ, *SECRETS, *others):
        real = path.replace("{WS}", str(root))
        inputs: dict[str, dict[str, Any]] = {
            "Read": {"file_path": real},
            "Write": {"file_path": real, "content": "x"},
            "Edit": {"file_path": real, "old_string": "a", "new_string": "b"},
            "NotebookEdit": {"notebook_path": real, "new_source": "x"},
        }
        for tool, given_input in inputs.items():
            verdict = gate.judge(ToolCall(name=tool, input=given_input, cwd=str(root)))
            if not isinstance(verdict, Deny) or verdict.rule == "policy_error":
                allowed.append((tool, path, verdict.rule))
    for path in (*OUTSIDE, *OUTSIDE_READ, ".ssh", ".env"):
        real = path.replace("{WS}", str(root))
        for tool in ("Glob", "Grep"):
            searched = {"pattern": "x", "path": real}
            verdict = gate.judge(ToolCall(name=tool, input=searched, cwd=str(root)))
            if not isinstance(verdict, Deny):
                allowed.append((tool, path, verdict.rule))
    assert allowed == []
