"""Whether the surroundings of two incidents contradict.

The failure layer, the runtime and the services of both are compared. A value that either case lacks
counts neither way. A contradiction keeps two cases apart however similar their texts are.
"""

import re
import unicodedata
from typing import Final

from memory.cases.case import CaseMetadata

_NAME: Final = re.compile(r"k8s|[^\W\d_]{2,}")
_BREAK: Final = re.compile(r"[\W_]+")
# a runtime and its other names
_RUNTIMES: Final = (
    (
        "java jvm jdk jre openjdk hotspot graalvm corretto temurin zulu dragonwell springboot "
        "spring tomcat"
    ),
    "python cpython py pypy",
    "go golang",
    "node nodejs js javascript typescript",
    "dotnet net clr csharp",
    "kubernetes k8s kube",
    "linux ubuntu debian centos rhel alpine",
    "php fpm",
    "ruby mri",
)
_FAMILY: Final = {word: group.split()[0] for group in _RUNTIMES for word in group.split()}
_GENERIC: Final = frozenset(
    "service services svc server app application api system prod production staging".split()
)


def contradict(one: CaseMetadata, other: CaseMetadata) -> bool:
    """Return whether both know the layer, the runtime or services, and have none in common.

    Symmetric.
    """
    compared = (
        (_layer(one), _layer(other)),
        (_runtimes(one), _runtimes(other)),
        (_services(one), _services(other)),
    )
    return any(mine and theirs and mine.isdisjoint(theirs) for mine, theirs in compared)


def _layer(metadata: CaseMetadata) -> set[str]:
    return {str(metadata.failure_layer)} - {"None", "unknown"}


def _runtimes(metadata: CaseMetadata) -> set[str]:
    """Return the runtimes without versions: `Java 17`, `openjdk-11` and `JVM` are one."""
    return {_FAMILY.get(word, word) for word in _NAME.findall(_folded(metadata.runtime or ""))}


def _services(metadata: CaseMetadata) -> set[str]:
    """Return the services in one spelling: `order_service`, `Order-Svc` and `order` are one."""
    names = set()
    for name in metadata.related_services:
        words = [word for word in _BREAK.split(_folded(name)) if word]
        names.add("-".join([word for word in words if word not in _GENERIC] or words))
    return names - {""}


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
