"""What memory says of a tool in use: shown or held back."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from policies.recall import ActiveTools

TOOLS = (
    "mcp__ata__article-list-query",
    "Read",
    "Write",
    "Edit",
    "Bash",
    "Grep",
    "Glob",
    "Skill",
    "ls",
    "WebFetch",
)

STALE = (
    "Parameter schema and usage reference for the ata MCP tool article-list-query",
    "ata::article-list-query parameter schemas: topic",
    "article_list_query tool-schema: topic (string)",
    "mcp__ata__article-list-query takes the parameters topic and page",
    "article-list-query api docs",
    "API documentation for article-list-query",
    "article-list-query guessed call: {topic: x}; failed call, use title instead",
    "I guessed the call format {topic: string} for article-list-query and it failed",
    "# article-list-query\n\n## Parameters\n- topic: string",
    "article-list-query: no known issues. Tool schema: {a}",
    "article-list-query的参数格式：topic 为字符串",
    "article-list-query 参数格式是 {topic}",
    "article-list-query 参数格式topic必填",
    "article-list-query 需要参数 topic 和 page",
    "WebFetch takes url and prompt parameters",
    "ARTICLE-LIST-QUERY 字段映射 a→b",
    "ａｒｔｉｃｌｅ-list-query 调用格式：{topic}",
    "article-\u200blist-query 调用\u200b格式：{topic}",
    "article-list-query 調用格式：{topic}",
    "mcp__ata__article-list-query 接口文档",
    "工具用法：article-list-query 要传 topic",
    "article-list-query 失败调用记录：缺少 topic",
    "ATA MCP 工具调用格式注意事项\narticle-list-query 猜测的调用格式 {topic: string}，失败调用报类型错误",
    "Bash tool parameter schema: command, timeout",
    "Bash 的调用格式：{command}",
    "Bash参数格式: command",
    "调用格式：Bash {command}",
    "Read parameter schema: file_path (string)",
    "Parameter schema for Read: file_path",
    "Write 工具参数格式 file_path",
    "Failed call to Edit: old_string missing",
    "Read 失败调用：file_path 不存在",
    "For Bash, the parameter schema is {command}",
    "Glob: failed call with missing pattern",
    "The Skill tool's input schema: skill (string)",
    "ls 的参数格式: -la",
    "WebFetch call signature: url, prompt",
)

A_FIELD_IS_NO_OWNER = (
    "article-list-query parameter schema: owner (string), repo (string)",
    "The article-list-query tool schema has fields: owner, repo, page.",
    'article-list-query 工具的参数说明："owner": {"type": "string"}',
    "article-list-query input schema\n- owner: owner of the repository (string, required)",
    "article-list-query input schema\nowner:\n  type: string",
    "article-list-query input schema\n| owner | string | whose it is |",
    "article-list-query call format: {owner, repo}",
    "article-list-query call format: list(owner, repo)",
    "article-list-query 参数格式：负责人（字符串）",
)

DURABLE = (
    "article-list-query owner is the platform team; parameter schema in the portal",
    "article-list-query tool schema. Owner: platform team (search)",
    "article-list-query parameter schema gotcha: date must be UTC",
    "Warning: the article-list-query tool schema changes on Mondays",
    "Known issue: article-list-query failed calls when page > 10",
    "known-issues of article-list-query: failed tool-calls when page > 10",
    "article-list-query work-around for failed calls: retry",
    "Escalation path when article-list-query calls failed: #ata-ops",
    "Credentials for article-list-query live in vault; parameter schema there",
    "when using mcp tool article-list-query, always pass locale=zh or it silently returns empty",
    "date param of article-list-query must be UTC or it silently returns empty",
    "article-list-query 注意事项：参数格式里的日期必须是 UTC",
    "article-list-query 参数格式的已知问题：page 大于 10 返回 500",
    "负责人：平台组；article-list-query 字段映射在门户",
    "負責人：平台組；article-list-query 字段映射在门户",
    "升级路径：article-list-query 调用失败时找值班",
    "article-list-query 变通方法：失败调用后用 cursor",
    "凭据位置：article-list-query 的参数格式见 vault",
    "警告：Bash 的调用格式变了",
)

SOMETHING_ELSE = (
    "Ann likes green tea",
    "tool article-list-query answers 500 when page>10",
    "other-article-list-query parameter schema",
    "article-list-query-v2 parameter schema: x",
    "mcp__other__article-list-query2 parameter schema",
    "Read the API docs of Stripe before you touch billing parameters",
    "Edit field mappings in config/mapping.yaml when the supplier changes",
    "Please read the parameter schema of the billing service in docs/",
    "We write api documentation in English",
    "The deploy bash script's parameter format is --env",
    "ls lists files. The parameter schema of billing is in docs",
    "Use Bash to migrate. The field mapping of the importer is in mapping.yaml",
    "我们用 Bash 部署，参数在 deploy.yaml",
    "Fetched the Stripe API docs with WebFetch",
    "通过 WebFetch 查了汇率接口的参数",
    "运行 Bash 部署脚本，读取配置，修改参数",
    "- Edit: config/parameters.yaml\n- Write: docs/field-mapping.md\n- Bash: ok",
    "- WebFetch: https://example.org/api/parameters.html",
    "Wrote schema.sql with Write and ran Bash to load parameters",
)


@pytest.mark.parametrize("text", [*STALE, *A_FIELD_IS_NO_OWNER])
def test_what_tells_how_an_active_tool_is_called_is_held_back(text: str) -> None:
    assert ActiveTools.of(TOOLS).holds_back("", text)


@pytest.mark.parametrize("text", [*STALE, *A_FIELD_IS_NO_OWNER])
def test_a_title_counts_like_the_text(text: str) -> None:
    title, _, rest = text.partition("\n")
    assert ActiveTools.of(TOOLS).holds_back(title, rest)


@pytest.mark.parametrize("text", [*STALE, *A_FIELD_IS_NO_OWNER])
def test_without_the_tool_in_use_nothing_is_held_back(text: str) -> None:
    assert not ActiveTools.of(["mcp__x__other-tool", "Task"]).holds_back("", text)
    assert not ActiveTools.of([]).holds_back("", text)


@pytest.mark.parametrize("text", DURABLE)
def test_what_is_of_lasting_use_is_shown_while_the_tool_is_in_use(text: str) -> None:
    assert not ActiveTools.of(TOOLS).holds_back("", text)


@pytest.mark.parametrize("text", SOMETHING_ELSE)
def test_what_is_about_something_else_is_shown(text: str) -> None:
    assert not ActiveTools.of(TOOLS).holds_back("", text)


@pytest.mark.parametrize(
    "name",
    [
        "article-list-query",
        "ata::article-list-query",
        "mcp__ata__article-list-query",
        "MCP__Ata__Article-List-Query",
    ],
)
@pytest.mark.parametrize(
    "written", ["article-list-query", "ata::article-list-query", "mcp__ata__article-list-query"]
)
def test_a_tool_is_known_by_each_of_its_names(name: str, written: str) -> None:
    assert ActiveTools.of([name]).holds_back("", f"{written} parameter schema: topic")


def test_both_the_rest_and_the_last_part_of_a_long_name_count() -> None:
    tools = ActiveTools.of(["mcp__srv__group__do-it"])
    assert tools.holds_back("", "group__do-it parameter schema")
    assert tools.holds_back("", "do-it parameter schema")


def test_the_server_alone_names_no_tool() -> None:
    assert not ActiveTools.of(["mcp__ata__do-it"]).holds_back("", "ata parameter schema")


def test_a_tool_with_a_chinese_name_is_known_where_it_is_written_as_a_name() -> None:
    tools = ActiveTools.of(["mcp__天气__查询"])
    assert tools.holds_back("", "查询工具的参数格式：city")
    assert not tools.holds_back("", "订单查询页面的参数格式见门户")


def test_a_schema_far_from_a_passing_mention_is_not_the_tools() -> None:
    far = (
        "article-list-query was run.\n" + "Nothing of note. " * 200 + "\nparameter schema of orders"
    )
    assert not ActiveTools.of(TOOLS).holds_back("", far)
    assert ActiveTools.of(TOOLS).holds_back("article-list-query", far)


@given(st.text(max_size=300), st.lists(st.text(max_size=30), max_size=5))
def test_any_text_and_any_names_get_an_answer(text: str, names: list[str]) -> None:
    assert ActiveTools.of(names).holds_back(text, text) in {True, False}


@given(st.text(max_size=100), st.text(max_size=100))
@example("no known", "")  # denies nothing on the next line
def test_no_text_around_a_warning_holds_it_back(before: str, after: str) -> None:
    text = f"{before}\nKnown issue: article-list-query failed calls on Mondays.\n{after}"
    assert not ActiveTools.of(["article-list-query"]).holds_back("", text)
