"""What the tools' descriptions say about limits and names is what the code checks."""

import json

from memory.cases import tools
from memory.cases.case import FAILURE_LAYERS, SIGNALS
from memory.cases.results import DEFAULT_TOP_K, MAX_RENDERED, MAX_TOP_K


def test_the_descriptions_name_the_limits_and_the_allowed_values() -> None:
    assert f"1 to {MAX_TOP_K}; {DEFAULT_TOP_K} unless said" in json.dumps(tools.SEARCH.input_schema)
    assert f"at most {MAX_RENDERED}," in tools.RENDER.description
    assert f"One of {', '.join(FAILURE_LAYERS)}." in json.dumps(tools.UPSERT.input_schema)
    assert f"One of {', '.join(SIGNALS)}." in json.dumps(tools.FEEDBACK.input_schema)


def test_each_tool_has_its_name() -> None:
    names = [tool.name.removeprefix("memory_case_") for tool in tools.TOOLS]
    assert names == ["search", "render", "upsert", "feedback"]
