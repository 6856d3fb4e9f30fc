"""Generates command lines: honest ones, tempting ones, and broken copies of the known cases.

Honest words dominate, because a line that the gate refuses shows nothing here; every part of a line
can be one that leads out all the same.
"""

import random
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

from policies.shell.commands import GRAMMARS, Grammar
from tests.unit.policies.corpus import read_cases
from tests.unit.policies.judging import read_list

T = TypeVar("T")


_HONEST = read_list(r"""
a.txt ¦ b.txt ¦ notes.md ¦ src ¦ src/main.py ¦ docs ¦ docs/readme.md ¦ data ¦ tmp ¦ data/1.csv
build ¦ build/out.o ¦ img/photo.png ¦ archive/2024 ¦ tests/test_a.py ¦ src/deep
src/deep/er/x.txt ¦ . ¦ 项目 ¦ 项目/子目录/数据.csv ¦ 报告.docx ¦ 数据/一.txt ¦ new ¦ new/deeper ¦ src/new.py
docs/新建 ¦ big/a ¦ big/a/b/c/d.txt ¦ tests ¦ img ¦ archive ¦ deps ¦ deps/one ¦ node_modules
*.txt ¦ data/*.csv ¦ 新 文件 ¦ it's.txt ¦ a b.txt ¦ dir with space/inner file.txt ¦ 数据/二 三.txt
""")
_TEMPTING = read_list(r"""
out ¦ out/ ¦ out/keep.txt ¦ outfile ¦ abs ¦ abs/passwd ¦ absfile ¦ dangle ¦ loop ¦ selflink
inlink ¦ selflink/a.txt ¦ docs2 ¦ docs2/ ¦ docs2/.. ¦ envlink ¦ ruleslink ¦ src/up
src/up/a.txt ¦ src/upup ¦ src/upup/outside.txt ¦ src/deep/far ¦ src/deep/near ¦ 链接 ¦ 链接/keep.txt
tests/same ¦ to-ro/manual.txt ¦ to-rw/draft.txt ¦ to-rw/new/ ¦ out/../a.txt ¦ docs2/../a.txt
.. ¦ ../outside.txt ¦ ../outdir ¦ ../ws ¦ ../ws-evil/secret.txt ¦ src/.. ¦ src/../..
nosuch/../a.txt ¦ / ¦ /etc/passwd ¦ /etc ¦ /dev/null ¦ //etc ¦ {WS} ¦ {WS}/ ¦ {WS}/a.txt
{WS}/.. ¦ {WS}-evil/secret.txt ¦ {WS}/../ws/a.txt ¦ ~ ¦ ~root ¦ $HOME ¦ nosuch/../../outside.txt
new/../src ¦ a.txt/../b.txt ¦ {P}/ro/manual.txt ¦ {P}/ro ¦ {P}/rw ¦ {P}/rw/draft.txt
{P}/rw/new ¦ ../rw/sub ¦ ../ro/x ¦ {P}/rw/link/keep.txt ¦ {P}/rw/.env ¦ {P}/rw/sub/CLAUDE.md
{P}/rw/sub/* ¦ {P}/ro/* ¦ {P}/rw/.. ¦ * ¦ ./* ¦ src/* ¦ */* ¦ [a-z]* ¦ ? ¦ [ab].txt ¦ out/*
src/up*/* ¦ .* ¦ .?* ¦ *link* ¦ {a,b} ¦ img/* ¦ -l ¦ ./-l ¦ -rf ¦ ./-rf ¦ --
--target-directory=.. ¦ ./--target-directory=.. ¦ -t ¦ src/deep/-x ¦ - ¦ $(id) ¦ `id` ¦ ;id
| id ¦ && id ¦ > ../z ¦ a; id ¦ x && id ¦ $(cat .env) ¦ &id ¦ a{U+0009}b ¦ x > ../y ¦ '' ¦ " ¦ \
%s ¦ ... ¦ ..x ¦ Ｂ．txt ¦ ‥/x ¦ !x ¦ =id ¦ .env ¦ src/.env ¦ .env.example ¦ .claude ¦ .git/config
CLAUDE.md ¦ docs/CLAUDE.md ¦ .bashrc ¦ src/.vscode ¦ new/.git ¦ claude.md ¦ logs ¦ logs/x
id_rsa ¦ src/deep/server.pem ¦ tmp/.ENV ¦ new/.git/.. ¦ x/.claude/../y ¦ docs/.env/../z
src/.git/../main.py ¦ a.txt/ ¦ a.txt/. ¦ ./
""")
_PIECES = read_list(r"""
' ¦ " ¦ \ ¦ ` ¦ $(id) ¦ $IFS ¦ {a,b} ¦ [ ¦ ] ¦ < ¦ > ¦ | ¦ & ¦ ; ¦ ! ¦ # ¦ ~ ¦ * ¦ ? ¦ = ¦ ^ ¦ %
@ ¦ + ¦ - ¦ , ¦ . ¦ .. ¦ / ¦ // ¦ : ¦ {U+0020} ¦ {U+0009} ¦ {U+000A} ¦ {U+000D} ¦ {U+0000}
{U+00A0} ¦ {U+200B} ¦ {U+202E} ¦ {U+3000} ¦ ／ ¦ ａ ¦ é ¦ {U+001B} ¦ {U+D800} ¦ '' ¦ ""
""")
_JOINS = (" ", " ", " ", " ", "  ", "\t", "\n", ";", "&&", "|", " -- ", " > ", "\\\n")
_WILD_OPTIONS = read_list(r"""
-t .. ¦ -t../outdir ¦ --target-directory=.. ¦ --target=.. ¦ --no-pres ¦ -L ¦ -s ¦ -l ¦ -exec
-delete ¦ -rt.. ¦ -- ¦ - ¦ -H ¦ -P ¦ --parents ¦ --help ¦ -0 ¦ --files0-from=-
""")
_OFTEN = ("cat", "cp", "ls", "mkdir", "mv", "rm")
_USUAL = dict(
    pair.split(maxsplit=1)
    for pair in read_list("""
        rm -rf ¦ cp -r ¦ mkdir -p ¦ ls -la ¦ grep -r ¦ diff -r ¦ du -a ¦ rmdir -p ¦ head -n 3
        tail -c 5
        wc -l ¦ touch -m ¦ mv -f ¦ file -b ¦ cat -A
    """)
)
_PATTERNS = ("alpha", "x", ".", "''", "-e x", "'a b'", "-e . -e ..", "[a-z]*", "资", "-f a.txt")
_EXPRESSIONS = read_list(r"""
-name '*.py' ¦ -type f ¦ -maxdepth 1 ¦ -empty ¦ -print ¦ -not -name x ¦ -size +1k
'(' -name a -o -name b ')' ¦ -newer a.txt ¦ -mtime -1 ¦ -path './src/*' ¦ -name .env
-exec id ';' ¦ -delete ¦ -fprint z ¦ -follow ¦ -newer ../outside.txt ¦ -ls ¦ -xdev
-files0-from a.txt ¦ -lname '*' ¦ -printf '%p' ¦ -prune -o -print ¦ -ok id ';'
""")
_SAFE = re.compile(r"[\w./\-]*", re.ASCII)
_ESCAPED = re.compile(r"([^\w./\-])")
_WAYS_OF_QUOTING = 14


def _quote(word: str, way: int) -> str:
    """Write one word in one of several ways, mostly as a person would."""
    half = len(word) // 2
    match way:
        case 0:
            return word
        case 1:
            return f'"{word}"'
        case 2:
            return _ESCAPED.sub(r"\\\1", word)
        case 3:
            return f"{shlex.quote(word[:half])}{shlex.quote(word[half:])}"
        case 4:
            return f"'{word[:half]}'\"{word[half:]}\""
        case 5:
            return f"{word}''"
        case 6:
            return f"\\{word}"
        case _:
            wild = any(char in word for char in "*?[")
            return word if wild or _SAFE.fullmatch(word) else shlex.quote(word)


_PARTS = (
    *("new", "x", "src", "docs", "out", "docs2", "to-rw", "src/up", "a.txt", "项目", "nosuch"),
    *(".git", ".claude", "CLAUDE.md", ".env", "logs", ".vscode", "{WS}", "{P}", "*", "?", ".", ""),
    *([".."] * 10),
)
_ANY_TEXT = st.text(min_size=1, max_size=6)


class _Chance:
    """Chooses. Evenly, by a generator of its own: what Hypothesis chooses it likes to repeat."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.draw = draw
        self._random: random.Random = draw(st.randoms(use_true_random=True))

    def below(self, count: int) -> int:
        return self._random.randrange(count)

    def one_in(self, count: int) -> bool:
        return self._random.randrange(count) == 0

    def one_of(self, pool: Sequence[T]) -> T:
        return self._random.choice(pool)

    def name(self) -> str:
        kind = self.below(16)
        if kind < 6:
            return self.one_of(_HONEST)
        if kind < 11:
            return self.one_of(_TEMPTING)
        if kind < 15:
            return "/".join(self.one_of(_PARTS) for _ in range(kind - 9))
        return str(self.draw(_ANY_TEXT))

    def operand(self) -> str:
        return _quote(self.name(), self.below(_WAYS_OF_QUOTING))


class _Options:
    """The options of one command, ready to be chosen from."""

    def __init__(self, grammar: Grammar) -> None:
        self.flags = grammar.flags or "r"
        self.longs = sorted(grammar.long_flags) or ["help"]
        values = [(f"--{key}=", one) for key, one in grammar.long_values.items()]
        values += [(f"-{key}", one) for key, one in grammar.short_values.items()]
        values += [(f"-{key} ", one) for key, one in grammar.short_values.items()]
        self.valued = [(head, st.from_regex(one, fullmatch=True)) for head, one in values]

    def choose(self, chance: _Chance) -> str:
        kind = chance.below(16)
        if kind < 8:
            return "-" + "".join(chance.one_of(self.flags) for _ in range(1 + chance.below(3)))
        if kind < 11:
            return f"--{chance.one_of(self.longs)}"
        if kind < 15 and self.valued:
            head, value = chance.one_of(self.valued)
            return head + (chance.operand() if chance.below(2) else str(chance.draw(value)))
        return chance.one_of(_WILD_OPTIONS)


def _cases() -> list[str]:
    rows = [*read_cases("policy-allow.jsonl"), *read_cases("policy-deny.jsonl")]
    posix = [case for case in rows if case.tool == "Bash" and case.platform == "posix"]
    commands = [case.input.get("command") for case in posix]
    return [line for line in commands if isinstance(line, str) and len(line) < 500]


class _Generator:
    """Makes whole lines."""

    def __init__(self, grammars: Mapping[str, Grammar]) -> None:
        self.options = {name: _Options(grammar) for name, grammar in grammars.items()}
        self.names = [*sorted(grammars), *_OFTEN, *_OFTEN]
        self.cases = _cases()

    def plain(self, chance: _Chance) -> str:
        """Make a command as somebody might write it."""
        name = chance.one_of(self.names)
        options = [self.options[name].choose(chance)] if chance.one_in(3) else []
        if chance.below(2) and name in _USUAL:
            options.append(_USUAL[name])
        operands = [chance.operand() for _ in range(_count_operands(chance, name))]
        if name == "grep":
            operands = [chance.one_of(_PATTERNS), *operands]
        elif name == "find" and chance.below(2):
            expression = [chance.one_of(_EXPRESSIONS) for _ in range(chance.below(3))]
            return " ".join([name, *operands, *expression])
        if chance.one_in(16):
            return " ".join([name, *operands, *options])
        return " ".join([name, *options, *(["--"] if chance.one_in(4) else []), *operands])

    def base(self, chance: _Chance) -> str:
        return chance.one_of(self.cases) if chance.below(2) else self.plain(chance)

    def changed(self, chance: _Chance, text: str) -> str:
        """Make a line that is nearly another one."""
        place = chance.below(len(text) + 1)
        match chance.below(10):
            case 0 | 1 | 2:
                words = text.split(" ")
                words[chance.below(len(words))] = chance.operand()
                return " ".join(words)
            case 3 | 4:
                return f"{text[:place]}{chance.one_of(_PIECES)}{text[place:]}"
            case 5:
                return text[:place] + text[place + 1 :]
            case 6:
                return f"{text}{chance.one_of(_JOINS)}{self.base(chance)}"
            case 7:
                return f"{text[:place]} {text}"
            case 8:
                return text.replace("'", '"')
            case _:
                return f"{text} {text.partition(' ')[2]}"

    def line(self, chance: _Chance) -> str:
        kind = chance.below(16)
        if kind < 10:
            return self.plain(chance)
        text = self.changed(chance, self.base(chance))
        return text if kind < 14 else self.changed(chance, text)


def _count_operands(chance: _Chance, name: str) -> int:
    """Choose how many: each more is one more that may be refused, and then nothing is shown."""
    usual = {"pwd": 0, "cp": 2, "mv": 2, "diff": 2}.get(name, 1)
    return usual if chance.below(4) else usual + 1 + chance.below(2)


def command_lines(
    workspace: str, grammars: Mapping[str, Grammar] = GRAMMARS
) -> st.SearchStrategy[str]:
    """Return command lines for a workspace."""
    generator = _Generator(grammars)

    @st.composite
    def lines(draw: st.DrawFn) -> str:
        line = generator.line(_Chance(draw)).replace("{WS}", workspace)
        return line.replace("{P}", workspace.rpartition("/")[0])

    return lines()
