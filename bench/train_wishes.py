"""Trains the model that finds what a message asks of memory, and measures it on held-out messages.

`python -m bench.train_wishes` writes `memory/facts/sentence_model.json`. The training messages are
`wishes/train_*.jsonl`: `message`, and `marks`, the sentences that ask something, each with its label; and
`wishes/templates.txt`, expanded here with a fixed seed. With `--folds N` nothing is written: each message is
judged by a model that has not seen it or another one of its template. `--measure FILE` counts what is found in
lines of JSON instead: `text`, what it `wants` (remember, forget, correct or none), and `before`, the message before.
"""

import argparse
import json
import random
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.train_tool_usage import expand
from memory.facts import sentence_model
from memory.facts.matching import MIN_SHARED_CHANGED_LINE, corrected
from memory.facts.requests import read_wishes
from memory.facts.sentence_model import LABELS, features_of
from memory.own_words import SentenceInContext, own_sentences

FOLDER = Path(__file__).with_name("wishes")
MODEL_FILE = Path(sentence_model.__file__).with_name("sentence_model.json")
BUCKETS = 1 << 15
PENALTY = 2e-6
STEPS = 600
RATE = 20.0
COSTS = {"none": 1.2}
"""A sentence that asks nothing must not become a fact, so this mistake costs more."""
LARGEST = 127
ROWS_EACH_TEMPLATE = 30
TEMPLATE_WEIGHT = 0.08
FILLERS = {
    name: lines.strip().split("\n")
    for name, lines in {
        "X": """
my bike is the green one by the gate
I'm vegetarian
we meet on Mondays at nine
her surname is spelled Meyer
I live in Graz
the invoice goes to Hartwell Ltd
I like long explanations
my son starts school in August
I take my tea without milk
the rehearsal was moved to Hall 3
my shift begins at six
I can't eat shellfish
the plumber's number is 555 0132
Anna is my manager
I use zsh
I'm scared of dogs
""",
        "T": """
my shoe size
the alarm code
my sister's birthday
our landlord's name
my home address
the price we agreed on
my diet
the bit about my knee
his phone number
my favourite colour
the train times
my job title
where I parked
the name of that tool
""",
        "W": """
what my boat is called
where I live
who my doctor is
how much I earn
when my train leaves
what I weigh
which bank I use
how old my son is
what the door code is
where the spare key lies
""",
        "WZ": """
我住在哪里
我的医生是谁
我挣多少钱
我几点上班
我用哪家银行
我儿子多大
门的密码是多少
备用钥匙放在哪里
""",
        "V": """
lock the door
push the branch
add a test for empty input
update the changelog
call Ben
close the file handle
water the plants
run the linter
""",
        "XZ": """
我的自行车是绿色的
我吃素
周一九点开会
我住在南京
发票抬头是华星公司
我喜欢详细的解释
儿子八月上学
我喝茶不加糖
排练改到三号厅
我六点上班
我不能吃虾
经理叫安娜
""",
        "TZ": """
我的鞋码
报警器密码
我姐姐的生日
房东的名字
我的家庭住址
谈好的价格
我的饮食习惯
膝盖受伤那件事
他的手机号
我最喜欢的颜色
火车时间
我住的地方
""",
        "VZ": """
锁门
提交代码
给空输入加测试
更新变更记录
给小本打电话
关闭文件句柄
浇花
交水电费
""",
    }.items()
}
_SLOT = re.compile(r"(?<![A-Za-z])[XTVW]Z?(?![A-Za-z])")
_MARKED = re.compile(r"\[\[(.*?)\]\]")

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Example:
    """A sentence with its label and the number of its message, or of its template."""

    sentence: SentenceInContext
    label: str
    message: int
    weight: float = 1.0


def read_examples() -> list[Example]:
    """Return the sentences of all training messages."""
    rows = [
        json.loads(line)
        for file in sorted(FOLDER.glob("train_*.jsonl"))
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    found = [example for number, row in enumerate(rows) for example in _examples(row, number)]
    return [*found, *_template_examples(len(rows))]


def _template_examples(first: int) -> Iterator[Example]:
    label = ""
    lines = (FOLDER / "templates.txt").read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=first):
        if line.startswith("[") and not line.startswith("[["):
            label = line.strip("[]")
        elif line and not line.startswith("#"):
            # its own: a further template changes no other's messages
            rng = random.Random(line)
            for text in sorted({expand(line, rng) for _ in range(ROWS_EACH_TEMPLATE)}):
                yield from _examples(_filled(text, label, rng), number, TEMPLATE_WEIGHT)


def _filled(text: str, label: str, rng: random.Random) -> Mapping[str, Any]:
    text = _SLOT.sub(lambda slot: rng.choice(FILLERS[slot[0]]), text)
    mark = _MARKED.search(text)
    marks = [{"text": mark[1] if mark else text, "label": label}] if label != "none" else []
    return {"message": _MARKED.sub(r"\1", text), "marks": marks}


def _examples(row: Mapping[str, Any], number: int, weight: float = 1.0) -> Iterator[Example]:
    for own in own_sentences(row["message"]):
        marks = [mark for mark in row["marks"] if _overlap(mark["text"], own.text)]
        yield Example(own.context, marks[0]["label"] if marks else "none", number, weight)


def _overlap(mark: str, sentence: str) -> bool:
    return mark in sentence or sentence in mark


class Sparse:
    """The features of some sentences, row after row."""

    def __init__(self, sentences: Sequence[SentenceInContext]) -> None:
        rows = [sorted(features_of(sentence, BUCKETS)) for sentence in sentences]
        self.lengths = np.array([len(row) for row in rows])
        self.features = np.concatenate(rows)
        self.starts = np.cumsum(self.lengths) - self.lengths

    def score(self, weights: Floats, biases: Floats) -> Floats:
        """Return a row of scores for each sentence."""
        sums = np.add.reduceat(weights[self.features], self.starts, axis=0)
        return np.asarray(sums / np.sqrt(self.lengths)[:, None] + biases, np.float64)

    def gradient(self, errors: Floats) -> Floats:
        """Return the gradient of the weights."""
        each = np.repeat(errors / np.sqrt(self.lengths)[:, None], self.lengths, axis=0)
        columns = [np.bincount(self.features, column, BUCKETS) for column in each.T]
        return np.asarray(np.stack(columns, axis=1), np.float64)


def softmax(scores: Floats) -> Floats:
    """Return the probabilities of each row."""
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True), np.float64)


def fit(examples: Sequence[Example]) -> tuple[Floats, Floats]:
    """Return the weights and biases of a multinomial logistic regression."""
    rows = Sparse([example.sentence for example in examples])
    truth = np.array([[example.label == label for label in LABELS] for example in examples], float)
    costs = np.array([[e.weight * COSTS.get(e.label, 1.0)] for e in examples])
    total = sum(example.weight for example in examples)
    weights, biases = np.zeros((BUCKETS, len(LABELS))), np.zeros(len(LABELS))
    speed, bias_speed = np.zeros_like(weights), np.zeros_like(biases)
    for _ in range(STEPS):
        errors = costs * (softmax(rows.score(weights, biases)) - truth)
        speed = 0.9 * speed + rows.gradient(errors) / total + PENALTY * weights
        bias_speed = 0.9 * bias_speed + errors.sum(axis=0) / total
        weights, biases = weights - RATE * speed, biases - RATE * bias_speed
    return weights, biases


def stored(weights: Floats, biases: Floats) -> dict[str, Any]:
    """Return the form of the model in the file."""
    scale = float(np.abs(weights).max()) / LARGEST
    packed = np.round(weights / scale).astype(np.int8)
    return {
        "scale": scale,
        "biases": dict(zip(LABELS, map(float, biases), strict=True)),
        "weights": {
            label: b64encode(packed[:, column].tobytes()).decode()
            for column, label in enumerate(LABELS)
        },
    }


def cross_validate(examples: Sequence[Example], folds: int, *, verbose: bool) -> None:
    """Print how often each label was given to which, by models that had not seen the message."""
    counts: Counter[tuple[str, str]] = Counter()
    for fold in range(folds):
        seen = [example for example in examples if example.message % folds != fold]
        unseen = [example for example in examples if example.message % folds == fold]
        scores = softmax(Sparse([e.sentence for e in unseen]).score(*fit(seen)))
        for example, row in zip(unseen, scores, strict=True):
            given = LABELS[int(row.argmax())]
            counts[example.label, given] += 1
            if verbose and given != example.label:
                print(f"{example.label} as {given} {row.max():.2f}: {example.sentence.text}")
    print(f"{'':11}", *(f"{label:>11}" for label in LABELS))
    for truth in LABELS:
        print(f"{truth:11}", *(f"{counts[truth, given]:11}" for given in LABELS))


WANTS = {"request": "remember", "statement": "remember", "correction": "correct", "undo": "forget"}


def measure(path: Path) -> None:
    """Print how often each wish was found as which; the first of a message counts.

    A row may have the message `before`. What is not firm counts if it corrects that one.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        wishes = [
            wished.wish if wished.is_firm else "correction"
            for wished in read_wishes(row["text"])
            if wished.is_firm
            or corrected(wished.text, [row.get("before", "")], None, MIN_SHARED_CHANGED_LINE)
        ]
        counts[row["wants"], WANTS.get(wishes[0], wishes[0]) if wishes else "none"] += 1
    for (wants, found), count in sorted(counts.items()):
        print(f"{wants} as {found}: {count}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.train_wishes")
    parser.add_argument("--folds", type=int, default=0)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--measure", type=Path, metavar="FILE")
    options = parser.parse_args()
    if options.measure:
        measure(options.measure)
        return
    examples = read_examples()
    if options.folds:
        cross_validate(examples, options.folds, verbose=options.verbose)
    else:
        MODEL_FILE.write_text(json.dumps(stored(*fit(examples)), indent=1) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
