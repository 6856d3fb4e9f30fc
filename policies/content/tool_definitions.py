"""Finds definitions of tools in a text: as JSON, or as a heading with a list of parameters.

A definition is only taken for a tool's where it says so. A JSON schema of other data, or a list of
columns, is somebody's knowledge. English and Chinese.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

_TYPE_WORD = (
    "(?:string|str|integer|int|number|float|boolean|bool|array|object|list|dict|enum|null"
    "|字符串|整数|数字|浮点数?|布尔值?|数组|对象|列表)"
)
_PARAMETER: Final = re.compile(
    r"""^[\s\-*•|]{0,12}[`\"']?[\w.\-]{1,64}[`\"']?\s?(?:[(（:：|]"""
    rf"""|-)[\s`\"']{{0,4}}{_TYPE_WORD}(?![A-Za-z]).*$""",
    re.IGNORECASE,
)
_HEAD: Final = re.compile(
    r"^[\s#*\-`>]{0,12}(?:tool|name|description|parameters?|arguments?|args"
    "|input[_ ]?schema|inputs?|schema|required"
    r"|returns?|usage|mcp__\w+|[\w\-]+::[\w\-]+|工具|名称|描述|说明|参数|入参|必填"
    "|返回)(?![A-Za-z]).{0,200}$",
    re.IGNORECASE,
)
_TOOL_HEAD: Final = re.compile(
    r"^[\s#*\-`>]{0,12}(?:(?:tool(?: name)?|工具(?:名称?)?)[\s*`]{0,4}[:：]"
    r"|(?:mcp__\w+|[\w\-]+::[\w\-]+)[\s*`]{0,4}[:：]?[^\S\n]*$)",
    re.IGNORECASE | re.MULTILINE,
)
"""What names the tool that is defined below."""
_FENCE: Final = re.compile(r"^\s{0,8}(?:```|~~~)\w{0,16}\s*$")
_SCHEMA_KEYS: Final = frozenset(
    {"input_schema", "inputSchema", "parameters", "properties", "$schema"}
)
_INPUT_KEYS: Final = frozenset({"input_schema", "inputSchema", "parameters"})
_WRAPPERS: Final = ("tools", "function", "functions")
_MIN_PARAMETERS = 2
_JSON_START: Final = re.compile(r"(?<![^\s`:：])[\[{](?=\s*[\"{\[])")
_MAX_JSON: Final = 20
"""Places at which JSON is looked for, so that a hostile text costs no more than its length."""
_MARK: Final = "\x00"
"""Stands for a definition in JSON."""
_Line = Literal["json", "fence", "tool", "head", "parameter", "blank", "other"]


def is_tool_definition(text: str) -> bool:
    """Return whether a text is only the definition of a tool, as JSON or as a list of
    parameters.
    """
    lines = [line for line in text.splitlines() if line.strip() and not _FENCE.match(line)]
    begin = next((at for at, line in enumerate(lines) if line.lstrip()[:1] in {"{", "["}), None)
    if begin is not None and all(_HEAD.match(line) for line in lines[:begin]):
        try:
            return _are_all(json.loads("\n".join(lines[begin:])), _is_schema)
        except (ValueError, RecursionError):
            pass  # it only looks like JSON
    parameters = [line for line in lines if _PARAMETER.match(line)]
    rest = [line for line in lines if not _PARAMETER.match(line)]
    return len(parameters) >= _MIN_PARAMETERS and all(_HEAD.match(line) for line in rest)


def _are_all(value: Any, is_one: Callable[[Mapping[str, Any]], bool]) -> bool:
    """Return whether JSON is one object, or a list of them, as `is_one` takes; wrappers aside."""
    if isinstance(value, list):
        return bool(value) and all(_are_all(part, is_one) for part in value)
    if not isinstance(value, dict):
        return False
    for wrapper in _WRAPPERS:
        if wrapper in value:
            return _are_all(value[wrapper], is_one)
    return is_one(value)


def _is_schema(value: Mapping[str, Any]) -> bool:
    named = _SCHEMA_KEYS & value.keys()
    return any(isinstance(value[key], (dict, str)) for key in named) and (
        "$schema" in named or "type" in value or "name" in value or "input_schema" in named
    )


def _names_tool(value: Mapping[str, Any]) -> bool:
    """Return whether an object defines a tool by its name and what it takes.

    `parameters` also hold the values of a job: those of a tool are described.
    """
    takes = {key: given for key in _INPUT_KEYS if isinstance(given := value.get(key), dict)}
    is_tool = any(key != "parameters" or _are_described(takes[key]) for key in takes)
    return is_tool and isinstance(value.get("name"), str)


def _are_described(parameters: Mapping[str, Any]) -> bool:
    return "properties" in parameters or all(
        isinstance(given, dict) and not given.keys().isdisjoint({"type", "description"})
        for name, given in parameters.items()
        if name != "type"
    )


def without_tool_definitions(text: str) -> tuple[str, int]:
    """Return a text without the definitions of tools in it, and how many there were.

    What stands beside a definition stays as it is.
    """
    text = text.replace(_MARK, "")
    marked = _with_marks(text)
    if marked == text and _TOOL_HEAD.search(text) is None:
        return text, 0
    kept: list[str] = []
    removed = 0
    for kinds, lines in _runs(marked.split("\n")):
        begin, end = _definition(kinds, lines)
        removed += begin < end
        kept += [*lines[:begin], *lines[end:]]
    rest = "\n".join(kept)
    return rest.replace(_MARK, ""), removed + rest.count(_MARK)


def _with_marks(text: str) -> str:
    """Return a text with a mark for each definition in JSON."""
    if not any(f'"{key}"' in text for key in (*_INPUT_KEYS, *_WRAPPERS)):
        return text
    decoder = json.JSONDecoder()
    pieces, end, tried = list[str](), 0, 0
    for match in _JSON_START.finditer(text):
        if match.start() < end:
            continue
        tried += 1
        if tried > _MAX_JSON:
            break
        try:
            value, stop = decoder.raw_decode(text, match.start())
            defines = _are_all(value, _names_tool)
        except (ValueError, RecursionError):
            continue
        if defines:
            pieces += [text[end : match.start()], _MARK]
            end = stop
    return "".join([*pieces, text[end:]])


def _runs(lines: Sequence[str]) -> Iterator[tuple[list[_Line], list[str]]]:
    """Yield lines that may belong to one definition together, and any other line by itself."""
    kinds: list[_Line] = []
    run: list[str] = []
    for line in lines:
        kind = _kind(line)
        if kind == "other":
            yield kinds, run
            yield [kind], [line]
            kinds, run = [], []
        else:
            kinds.append(kind)
            run.append(line)
    yield kinds, run


def _kind(line: str) -> _Line:
    if not line.strip():
        return "blank"
    if line.strip() == _MARK:
        return "json"
    if _FENCE.match(line):
        return "fence"
    if _PARAMETER.match(line):
        return "parameter"
    if _TOOL_HEAD.match(line):
        return "tool"
    return "head" if _HEAD.match(line) else "other"


def _definition(kinds: Sequence[_Line], lines: Sequence[str]) -> tuple[int, int]:
    """Return the first line of a run's definitions, and the one behind them; equal without any."""
    begin = next((at for at, kind in enumerate(kinds) if kind in {"json", "tool"}), len(kinds))
    parts = [at for at in range(begin, len(kinds)) if kinds[at] in {"json", "parameter"}]
    if "json" not in kinds and len(parts) < _MIN_PARAMETERS:
        return 0, 0
    end = parts[-1] + 1
    if kinds[begin] == "json" and begin and kinds[begin - 1] == "fence":
        begin -= 1
    while begin and kinds[begin - 1] == "head" and lines[begin - 1].rstrip().endswith((":", "：")):
        begin -= 1
    if kinds[end - 1] == "json" and end < len(kinds) and kinds[end] == "fence":
        end += 1
    return begin, end
