"""Trains the models that recognise descriptions of tool calls, and measures them on held-out cases.

`python -m bench.train_tool_usage` writes `policies/content/tool_usage.json`. The training set is
`tool_usage/rows.tsv` (sentences and items) and `tool_usage/templates.txt` (expanded here, with a fixed
seed). `tool_usage/held_out.tsv` is only measured. In both, a line with a label and the tools in use, and
below it the texts of which it is true, each after a tab.
`--measure FILE` measures lines of JSON instead, at recall, with the tools that their conversation called.
"""

import argparse
import json
import random
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import numpy as np
from numpy.typing import NDArray

from gateway.turns.conversation_memory import OWN_TOOLS, ConversationTools
from policies.content import tool_usage
from policies.content.parameters import PARAMETER, PARAMETER_WORD, parameter_names
from policies.content.tool_names import TOOL, WORD, normalize
from policies.content.tool_usage import (
    JOINT,
    ActiveTools,
    UsageReader,
    features_of,
    read_sentences,
)
from policies.content.write_gate import without_unsavable
from policies.tools import OFFERED_TOOLS

FOLDER = Path(__file__).with_name("tool_usage")
MODEL_FILE = Path(tool_usage.__file__).with_name("tool_usage.json")
BUCKETS = 8192
ROWS_EACH_TEMPLATE = 60
ROW_WEIGHT = 24.0
MARKS = (PARAMETER, PARAMETER_WORD)
KNOWN_FIELDS = 0.5
"""The share of the templates' fields that are parameters of the tool in use."""
PENALTY = 5e-5
STEPS = 2500
RATE = 8.0
THRESHOLDS = {"min_call": -0.3, "min_durable": 0.4, "max_durable": -0.5}
COSTS = {"call": {"other": 2.0, "durable": 3.0}, "durable": {"durable": 3.0}}
"""What is ordinary or of lasting use must not be lost, so these mistakes cost more."""
LARGEST = 127
OFFERED = anyio.run(ConversationTools(offered=(*OFFERED_TOOLS, *OWN_TOOLS)).of, "")
"""The signatures of the tools that every agent has."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """A labelled text; without tools it is judged as at writing, with tools as at recall."""

    label: str
    tools: Sequence[str]
    text: str

    @property
    def is_recalled(self) -> bool:
        return bool(self.tools)

    def is_removed(self) -> bool:
        """Return what the detector decides."""
        if self.is_recalled:
            title, _, text = self.text.rpartition(" || ")
            return ActiveTools.of(self.tools).is_stale(title, text)
        return without_unsavable(self.text).removed > 0

    def is_wrong(self) -> bool:
        return self.is_removed() != (self.label == "call")


def read_rows(name: str) -> list[Row]:
    """Return the rows of a file; `\\n` stands for a line break, `*` for the tools that every agent has."""
    rows: list[Row] = []
    label = ""
    known: Sequence[str] = ()
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        start, text = line.split("\t")
        if start:
            label, known = start, OFFERED if text == "*" else text.split()
        else:
            rows.append(Row(label, known, text.replace("\\n", "\n")))
    return rows


_GROUP_SIGNS = {"(": 1, ")": -1}
_PARTS = "user order issue page time due team event channel item project file query parent region".split()  # noqa: SIM905
_ENDS = "id name key type at from text url date size code path mode unit count".split()  # noqa: SIM905
_PLAIN = (  # noqa: SIM905
    "topic page limit owner query title name text body channel state label url id path city start end "
    "date amount subject content email sku symbol type key sort filter status branch repo from to model "
    "timeout offset pattern prompt units priority reason step depth namespace command"
).split()
_WAYS_TO_NAME = (f"the {TOOL} tool", f"`{TOOL}`", f"{TOOL} tool", f"{TOOL} 工具")


def expand(template: str, rng: random.Random) -> str:
    """Return a template with one alternative of each `(a|b)`; parentheses without `|` stay."""
    out, at = "", 0
    while at < len(template):
        if template[at] != "(":
            out, at = out + template[at], at + 1
            continue
        depth, end, parts = 1, at + 1, [""]
        while depth:
            char = template[end]
            depth += _GROUP_SIGNS.get(char, 0)
            if char == "|" and depth == 1:
                parts.append("")
            elif depth:
                parts[-1] += char
            end += 1
        chosen = expand(rng.choice(parts), rng)
        out, at = out + (chosen if len(parts) > 1 else f"({chosen})"), end
    return out


def _field(rng: random.Random) -> str:
    if rng.random() < KNOWN_FIELDS:
        return rng.choice(MARKS)
    kind = rng.random()
    part, end = rng.choice(_PARTS), rng.choice(_ENDS)
    if kind < 0.35:
        return f"{part}_{end}"
    if kind < 0.55:
        return f"{part}{end.title()}"
    plain = rng.choice(_PLAIN)
    return f"`{plain}`" if kind > 0.92 else plain


def template_rows(seed: int) -> Iterator[tuple[str, str]]:
    """Yield labels and marked sentences made from the templates."""
    label = ""
    for line in (FOLDER / "templates.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            label = line.strip("[]")
        elif line and not line.startswith("# "):
            rng = random.Random(
                f"{seed} {line}"
            )  # its own: a further template changes no other's rows
            for text in sorted({expand(line, rng) for _ in range(ROWS_EACH_TEMPLATE)}):
                filled = _fill(text, rng)
                yield label, filled
                sentence = filled.removeprefix(f"{TOOL}{JOINT}")
                if sentence != filled and any(mark in sentence for mark in MARKS):
                    yield label, f"{PARAMETER}{JOINT}{sentence}"


def _fill(text: str, rng: random.Random) -> str:
    name = TOOL
    if rng.random() < 0.15 and not re.search(r"tool|工具|[\"{]", text):
        name = rng.choice(_WAYS_TO_NAME)
    text = re.sub(r"(?<![A-Za-z])F(?![A-Za-z])", lambda _: _field(rng), text)
    text = re.sub(r"(?<![A-Za-z])T(?![A-Za-z])", name, text).replace("¶", PARAMETER)
    text = re.sub(r"(?<![A-Za-z])P(?![A-Za-z])", lambda _: rng.choice(MARKS), text)
    return re.sub(r"(?<![A-Za-z])W(?![A-Za-z])", WORD, text)


def _units(row: Row) -> list[str]:
    """Return the sentences of a row as the detector scores them."""
    reader = UsageReader(ActiveTools.of(row.tools), by_form=not row.is_recalled)
    return [joint for _, joint in read_sentences(reader, row.text)]


@dataclass(frozen=True)
class _Sparse:
    """The features of some texts, row after row."""

    features: NDArray[np.int64]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, texts: Sequence[str]) -> "_Sparse":
        rows = [sorted(features_of(text, BUCKETS)) for text in texts]
        lengths = np.array([len(row) for row in rows])
        return cls(np.concatenate(rows), np.cumsum(lengths) - lengths, lengths)

    def score(self, model: Floats) -> Floats:
        return np.add.reduceat(model[self.features], self.starts) / np.sqrt(self.lengths)

    def gradient(self, errors: Floats) -> Floats:
        each = np.repeat(errors / np.sqrt(self.lengths), self.lengths)
        return np.asarray(np.bincount(self.features, each, BUCKETS), np.float64)


def _fit(rows: _Sparse, truth: Floats, weights: Floats) -> tuple[Floats, float]:
    """Return the weights and the bias of a logistic regression."""
    model, bias = np.zeros(BUCKETS), 0.0
    speed, bias_speed = np.zeros(BUCKETS), 0.0
    for _ in range(STEPS):
        errors = weights * (1 / (1 + np.exp(-(rows.score(model) + bias))) - truth)
        speed = 0.9 * speed + rows.gradient(errors) / len(truth) + PENALTY * model
        bias_speed = 0.9 * bias_speed + float(errors.mean())
        model, bias = model - RATE * speed, bias - RATE * bias_speed
    return model, bias


def train() -> dict[str, Any]:
    """Return the stored form of both models."""
    labelled: list[tuple[str, str, float]] = []
    long_calls: list[list[str]] = []
    for row in read_rows("rows.tsv"):
        units = _units(row)
        if row.label == "call" and len(units) > 1:
            long_calls.append(units)
        else:
            labelled += [(row.label, unit, ROW_WEIGHT) for unit in units]
        if row.label == "other" and TOOL not in units[0]:
            labelled.append(("other", f"{TOOL}{JOINT}{units[0]}", 1.0))
    for label, text in template_rows(1):
        labelled.append((label, text, 1.0))
        if label == "durable" and JOINT in text:
            labelled.append((label, text.partition(JOINT)[2], 1.0))
    first, _ = _fit_labelled(labelled, "call")
    # of a long description the sentence that is most like one is taken
    for units in long_calls:
        best = max(zip(_Sparse.of(units).score(first), units, strict=True))[1]
        labelled.append(("call", best, ROW_WEIGHT))
    stored: dict[str, Any] = {**THRESHOLDS}
    for name in ("call", "durable"):
        model, bias = _fit_labelled(labelled, name)
        scale = float(np.abs(model).max()) / LARGEST
        packed = np.round(model / scale).astype(np.int8).tobytes()
        stored[name] = {"bias": bias, "scale": scale, "weights": b64encode(packed).decode()}
    return stored


def _fit_labelled(labelled: Sequence[tuple[str, str, float]], name: str) -> tuple[Floats, float]:
    """Fit the model of one label, with the weights of the rows and of the costlier mistakes."""
    truth = np.array([label == name for label, _, _ in labelled], np.float64)
    weights = [weight * COSTS[name].get(label, 1.0) for label, _, weight in labelled]
    return _fit(_Sparse.of([text for _, text, _ in labelled]), truth, np.array(weights))


async def measure(path: Path) -> None:
    """Print what is held back of `{"text", "label", "tools": [{"name", "input"}]}`, by label and naming."""
    counts: Counter[tuple[str, str, bool]] = Counter()
    for line in (await anyio.Path(path).read_text(encoding="utf-8")).splitlines():
        row = json.loads(line)
        used = ConversationTools(offered=(*OFFERED_TOOLS, *OWN_TOOLS))
        for tool in row["tools"]:
            used.note("cnv", tool["name"], parameter_names(tool["input"]))
        tools = ActiveTools.of(await used.of("cnv"))
        text = normalize(row["text"])
        naming = "named" if tools.names.mark(text) != text else "unnamed"
        counts[row["label"], naming, tools.is_stale("", row["text"])] += 1
    for label, naming in sorted({key[:2] for key in counts}):
        held, shown = counts[label, naming, True], counts[label, naming, False]
        print(f"{label}, {naming}: {held} of {held + shown} held back")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", type=Path, metavar="FILE")
    if path := parser.parse_args().measure:
        anyio.run(measure, path)
        return
    MODEL_FILE.write_text(json.dumps(train(), indent=1) + "\n", encoding="ascii")
    for name in ("rows.tsv", "held_out.tsv"):
        rows = read_rows(name)
        for label in ("call", "durable", "other"):
            for is_recalled in (False, True):
                chosen = [r for r in rows if r.label == label and r.is_recalled == is_recalled]
                wrong = [row for row in chosen if row.is_wrong()]
                mode = "recalled" if is_recalled else "written"
                print(f"{name} {label}, {mode}: {len(wrong)} wrong of {len(chosen)}")
                for row in wrong:
                    print(f"    {row.text!r}")


if __name__ == "__main__":
    main()
