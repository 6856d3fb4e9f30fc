"""What the documents say of the code's names is true: files, links, layers, metrics."""

import re
import tomllib
from pathlib import Path

from gateway.observability.metrics import Metrics
from gateway.settings import settings_rows

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "examples").glob("*.md"),
        ROOT / "bench" / "README.md",
    ]
)
_PATH = re.compile(
    r"`((?:app\.py|(?:gateway|memory|policies|tests|deploy|examples|bench|scripts|\.github)/[\w./-]*))`"
)
_VARIABLE = re.compile(r"\bCANDOR_\w+")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def layer_lists() -> str:
    """Render the import contracts as docs/architecture.md shows them."""
    configuration = tomllib.loads(text_of(ROOT / "pyproject.toml"))
    blocks = [
        (container, contract["layers"])
        for contract in configuration["tool"]["importlinter"]["contracts"]
        for container in contract.get("containers", [])
        if "." not in container
    ]
    lines = [
        line for name, layers in blocks for line in (name, *(f"    {layer}" for layer in layers))
    ]
    return "\n```text\n" + "\n".join(lines) + "\n```\n"


def test_the_map_of_layers_is_the_import_contracts() -> None:
    found = re.search(
        r"<!-- layers -->(.*)<!-- /layers -->",
        text_of(ROOT / "docs" / "architecture.md"),
        re.DOTALL,
    )
    assert found is not None
    assert found[1] == layer_lists(), f"docs/architecture.md needs:\n{layer_lists()}"


def test_every_variable_that_an_example_names_is_a_setting() -> None:
    """Exported for an example, another `CANDOR_` variable keeps every command from starting."""
    settings = {variable for variable, *_ in settings_rows()}
    files = [path for path in (ROOT / "examples").iterdir() if path.is_file()]
    named = {path.name: set(_VARIABLE.findall(text_of(path))) for path in files}
    assert named["policy.toml"]
    assert {name: found - settings for name, found in named.items() if found - settings} == {}


def test_every_file_that_a_document_names_exists() -> None:
    missing = []
    for document in DOCUMENTS:
        text = text_of(document)
        named = {ROOT / path for path in _PATH.findall(text)}
        linked = {
            document.parent / target.partition("#")[0]
            for target in _LINK.findall(text)
            if "://" not in target and not target.startswith("#")
        }
        missing += [f"{document.name}: {path}" for path in named | linked if not path.exists()]
    assert sorted(missing) == []


def test_every_link_into_a_page_meets_a_heading() -> None:
    broken = []
    for document in DOCUMENTS:
        for target in _LINK.findall(text_of(document)):
            path, _, anchor = target.partition("#")
            if "://" in target or not anchor:
                continue
            page = (document.parent / path).resolve() if path else document
            anchors = {
                re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
                for heading in _HEADING.findall(text_of(page))
            }
            if anchor not in anchors:
                broken.append(f"{document.name}: {target}")
    assert broken == []


def test_every_metric_is_described_and_no_other() -> None:
    families = {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in Metrics().registry.collect()
    }
    section = text_of(ROOT / "docs" / "operations.md").partition("## Metrics")[2]
    described = re.findall(r"^\| `(candor_\w+)` \|", section, re.MULTILINE)
    assert sorted(described) == sorted(families)
