"""A made-up set of incidents, seeded: families of one root cause each, told in many wordings and two languages.

The families stand in `cases_families/*.toml`. Those of one group look alike from outside (the symptoms, the
checks and the services are the group's) and differ in why. A case is put together out of choices, in one of
several forms, with numbers, hosts and ids of its own; what a person may leave out is left out at random,
and often it names the cause of a look-alike that was ruled out. Questions are worded apart.
"""

import random
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

Language = Literal["en", "zh", "mixed"]
Kind = Literal["described", "with symptom", "with log line"]
FAMILIES = Path(__file__).with_name("cases_families")
SEED = 5
ENVIRONMENTS = ("production", "production", "production", "staging", None)

_CHOICE = re.compile(r"\[([^\[\]]*\|[^\[\]]*)\]")
_SLOT = re.compile(r"\{(\w+)\}")
_TABLES = ("t_order", "user_coupon", "ledger_entry", "stock_flow", "audit_log", "message_box")
_TOPICS = ("order-events", "payment.settled", "audit-log", "stock_change", "user-points")
_REGIONS = ("cn-hangzhou", "cn-beijing", "eu-central-1", "us-east-1")
_LAYERS = ("application", "unknown", "k8s", "network")
_SYNONYMS = {
    "en": {
        "database": ("DB", "data store"),
        "connections": ("conns", "links"),
        "memory": ("RAM", "mem"),
        "because": ("since", "as"),
        "requests": ("calls", "reqs"),
        "messages": ("records", "events"),
        "process": ("program", "PID"),
        "container": ("pod", "docker container"),
        "cluster": ("k8s cluster", "environment"),
        "node": ("host", "machine", "worker"),
        "restart": ("bounce", "reboot"),
        "slow": ("sluggish", "lagging"),
        "full": ("used up", "at its limit"),
        "fails": ("breaks", "errors out"),
        "key": ("entry", "cache key"),
        "table": ("relation", "tbl"),
        "log": ("logfile", "logs"),
        "token": ("JWT", "access token"),
        "release": ("deployment", "version"),
    },
    "zh": {
        "数据库": ("DB", "库"),
        "连接": ("链接", "连接"),
        "内存": ("mem", "内存空间"),
        "导致": ("引起", "造成", "使得"),
        "请求": ("调用", "流量"),
        "消息": ("事件", "msg"),
        "进程": ("程序", "服务进程"),
        "容器": ("Pod", "docker"),
        "节点": ("机器", "主机", "node"),
        "重启": ("重新拉起", "restart"),
        "失败": ("不成功", "报错"),
        "没有": ("未", "缺"),
        "一直": ("始终", "持续"),
        "配置": ("设置", "config"),
        "日志": ("log", "打印"),
        "占满": ("打满", "吃光"),
        "太小": ("偏小", "不够大"),
        "发布": ("上线", "部署"),
    },
}
_SHARE_OF_SYNONYMS = 0.3
_RULED_OUT = {
    "en": (
        "First we suspected {other}, but that was not it.",
        "Not {other}: the figures did not support it.",
        "Ruled out: {other}.",
        "It looked like {other} again; it was something else.",
    ),
    "zh": (
        "一开始怀疑是{other}，排除了。",
        "不是{other}，指标对不上。",
        "排除：{other}。",
        "看着像上次的{other}，其实不是。",
    ),
}
_CAUSES = {
    "en": (
        "{it}.",
        "{it} ({svc}).",
        "Confirmed in staging: {it}.",
        "{it}, since {ver}.",
        "In {svc}: {it}.",
    ),
    "zh": ("{it}。", "{it}（{svc}）。", "预发已复现：{it}。", "{ver} 起{it}。", "{svc} 里{it}。"),
}
_OPENERS = {
    "en": (
        "{time} paged by {svc}.",
        "Ticket INC-{id}.",
        "On {host}:",
        "",
        "Post-mortem of {time}.",
    ),
    "zh": (
        "{time} 收到 {svc} 告警。",
        "工单 INC-{id}。",
        "在 {host} 上：",
        "",
        "{time} 故障复盘。",
    ),
}
_JOINERS = {
    "en": (". ", "; ", ". Then ", ". Besides, "),
    "zh": ("；", "。", "，另外", "。接着发现"),
}


@dataclass(frozen=True)
class Family:
    """One root cause."""

    name: str
    group: str
    told_in: Sequence[str]
    """The languages of its cases."""
    own: Mapping[str, Any]
    shared: Mapping[str, Any]
    siblings: list[Mapping[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Told:
    """A case as an agent sends it, and what it is really about."""

    family: str
    group: str
    language: Language
    environment: str | None
    case: Mapping[str, Any]

    @property
    def text(self) -> str:
        """All of it as one text, as one would index it otherwise."""
        known = self.case["metadata"]
        words = [*known.get("related_services", ()), *known.get("tags", ())]
        words += [
            known[name] for name in ("failure_layer", "runtime", "middleware") if name in known
        ]
        sections = ("symptom_summary", "root_cause", "diagnosis", "resolution")
        return "\n".join(
            [*(self.case[section] for section in sections if section in self.case), *words]
        )


@dataclass(frozen=True)
class Asked:
    """A question, and the family that answers it."""

    text: str
    family: str
    kind: Kind
    language: str
    is_crossing: bool
    """True if no case of the family is in its language; they share product names only."""


@cache
def families() -> Sequence[Family]:
    read: list[Family] = []
    for path in sorted(FAMILIES.glob("*.toml")):
        for group in tomllib.loads(path.read_text(encoding="utf-8"))["group"]:
            for own in group["family"]:
                place = len(read)
                told_in = {0: ("zh",), 4: ("en",)}.get(place % 8, ("en", "zh"))
                siblings = [family for family in group["family"] if family is not own]
                name = f"{group['name']}/{own['name']}"
                read.append(Family(name, group["name"], told_in, own, group, siblings))
    return read


class Teller:
    """Tells incidents; the same seed tells the same."""

    def __init__(self, seed: int = SEED) -> None:
        self._random = random.Random(seed)
        shuffled = list(families())
        self._random.shuffle(shuffled)
        self._families = shuffled
        self._weights = [1 / (place + 12) for place in range(len(shuffled))]

    def cases(self, count: int) -> list[Told]:
        """Return so many cases; some families are much more frequent than others."""
        chosen = self._random.choices(self._families, self._weights, k=count)
        return [self._case(item) for item in chosen]

    def questions(self) -> list[Asked]:
        """Ask for each family five times in each language; of it all only log lines stand in cases."""
        return [
            self._asked(family, kind, language, hint)
            for family in families()
            for language in ("en", "zh")
            for kind, hint in (
                *(("described", report) for report in family.own["ask"][language]),
                *(("with symptom", report) for report in family.own["ask"][language]),
                ("with log line", self._one(family.own["log"])),
            )
        ]

    def _asked(self, family: Family, kind: Kind, language: str, hint: str) -> Asked:
        parts = [hint] if kind == "described" else [self._one(family.shared["ask"][language]), hint]
        mark = ", " if language == "en" else "，"
        text = self._filled(mark.join(parts), self._slots(family))
        return Asked(text, family.name, kind, language, language not in family.told_in)

    def _case(self, family: Family) -> Told:
        language: Language = self._one(family.told_in)  # type: ignore[assignment]
        if len(family.told_in) > 1 and self._random.random() < 0.12:
            language = "mixed"
        slots = self._slots(family)

        def tell(text: str) -> str:
            return self._filled(text, slots)

        case: dict[str, Any] = {
            "symptom_summary": tell(self._symptom(family, language)),
            "diagnosis": tell(self._diagnosis(family, language)),
            "resolution": tell(self._resolution(family, language)),
            "confidence": self._random.choice((0.6, 0.7, 0.8, 0.9)),
            "metadata": self._metadata(family, slots),
        }
        if self._random.random() < 0.92:
            case["root_cause"] = tell(self._cause(family, language))
        return Told(family.name, family.group, language, self._one(ENVIRONMENTS), case)

    # the sections

    def _symptom(self, family: Family, language: Language) -> str:
        in_words = self._language(language)
        parts = [self._phrase(family.shared["symptom"][in_words], in_words)]
        if self._random.random() < 0.25:
            parts.append(self._one(family.shared["log"]))
        if self._random.random() < 0.15:
            parts.append(self._phrase(family.own["clue"][in_words], in_words))
        return (": " if in_words == "en" else "：").join(parts)

    def _diagnosis(self, family: Family, language: Language) -> str:
        in_words = self._language(language)
        clues = self._random.sample(
            family.own["clue"][in_words], k=self._random.choice((1, 2, 2, 3))
        )
        steps = [self._varied(clue, in_words) for clue in clues]
        checks = family.shared["check"][in_words]
        steps += [
            self._phrase([check], in_words)
            for check in self._random.sample(checks, k=self._random.randrange(3))
        ]
        if self._random.random() < 0.3:
            other = self._one(family.siblings)["short"][in_words]
            steps.append(self._one(_RULED_OUT[in_words]).replace("{other}", other).rstrip(".。"))
        if self._random.random() < 0.35:
            steps.append(self._phrase(family.own["cause"][in_words], in_words))
        self._random.shuffle(steps)
        for logs in (family.own["log"], family.shared["log"]):
            if self._random.random() < 0.3:
                steps.append(f"`{self._one(logs)}`")
        opener = self._one(_OPENERS[in_words])
        form = self._random.random()
        if form < 0.25:
            return "\n".join(
                [opener, *(f"{place}. {one}" for place, one in enumerate(steps, 1))]
            ).strip()
        if form < 0.45:
            return "\n".join([opener, *(f"- {step}" for step in steps)]).strip()
        text = steps[0]
        for step in steps[1:]:
            text += self._one(_JOINERS[in_words]) + step
        return f"{opener} {text}".strip()

    def _cause(self, family: Family, language: Language) -> str:
        in_words = self._language(language)
        if self._random.random() < 0.12:
            it = family.own["short"][in_words]
        else:
            it = self._phrase(family.own["cause"][in_words], in_words)
        return self._one(_CAUSES[in_words]).replace("{it}", it)

    def _resolution(self, family: Family, language: Language) -> str:
        in_words = self._language(language)
        fixes = self._random.sample(family.own["fix"][in_words], k=self._random.choice((1, 1, 2)))
        return (". " if in_words == "en" else "；").join(
            self._varied(fix, in_words) for fix in fixes
        )

    def _metadata(self, family: Family, slots: Mapping[str, str]) -> dict[str, Any]:
        known: dict[str, Any] = {}
        if self._is(0.7):
            known["failure_layer"] = self._one(_LAYERS) if self._is(0.1) else family.own["layer"]
        if self._is(0.6):
            known["runtime"] = self._one(family.own.get("runtimes", family.shared["runtimes"]))
        if self._is(0.75):
            others = [*family.shared["services"], *self._one(families()).shared["services"]]
            more = self._random.sample(others, k=self._random.randrange(3))
            known["related_services"] = [
                self._spelt(service) for service in dict.fromkeys([slots["svc"], *more])
            ]
        if "middleware" in family.own and self._is(0.6):
            known["middleware"] = family.own["middleware"]
        if self._is(0.3):
            known["region"] = self._one(_REGIONS)
        if self._is(0.5):
            known["tags"] = [family.group, *(["incident"] if self._is(0.5) else [])]
        return known

    # words

    def _slots(self, family: Family) -> dict[str, str]:
        at = self._random
        known = {"svc": self._one(family.shared["services"])}
        if at.random() < 0.2:
            known["svc"] = self._one(self._one(families()).shared["services"])
        known["host"] = f"{self._one(('node', 'app', 'ip-10-2', 'k8s-w'))}-{at.randrange(1, 90)}"
        known["ip"] = f"10.{at.randrange(40)}.{at.randrange(250)}.{at.randrange(2, 250)}"
        known["table"], known["topic"] = self._one(_TABLES), self._one(_TOPICS)
        known["ver"] = f"v{at.randrange(1, 5)}.{at.randrange(30)}.{at.randrange(9)}"
        return known

    def _filled(self, text: str, known: Mapping[str, str]) -> str:
        at = self._random
        made = {
            "n": lambda: str(at.randrange(2, 10)),
            "pct": lambda: str(at.randrange(11, 99)),
            "gb": lambda: str(at.choice((1, 2, 4, 6, 8, 12))),
            "ms": lambda: str(at.randrange(120, 9000)),
            "min": lambda: str(at.randrange(2, 60)),
            "time": lambda: f"{at.randrange(24):02}:{at.randrange(60):02}",
            "id": lambda: f"{at.randrange(16**8):08x}",
        }
        return _SLOT.sub(
            lambda found: (
                known.get(found[1]) or made[found[1]]()
                if found[1] in made or found[1] in known
                else found[0]
            ),
            text,
        )

    def _phrase(self, phrases: Sequence[str], language: str) -> str:
        return self._varied(self._one(phrases), language)

    def _varied(self, phrase: str, language: str) -> str:
        """Take one of each choice, and other words here and there."""
        text = _CHOICE.sub(lambda found: self._one(found[1].split("|")), phrase)
        for word, others in _SYNONYMS[language].items():
            if word in text and self._is(_SHARE_OF_SYNONYMS):
                pattern = rf"\b{word}\b(?![^{{]*}})" if language == "en" else word
                text = re.sub(pattern, self._one(others), text)
        return " ".join(text.split())

    def _language(self, language: Language) -> str:
        return self._one(("en", "zh")) if language == "mixed" else language

    def _spelt(self, service: str) -> str:
        return service.replace("-", self._one(("-", "-", "_", " ")))

    def _is(self, share: float) -> bool:
        return self._random.random() < share

    def _one(self, some: Sequence[Any]) -> Any:
        return self._random.choice(some)
