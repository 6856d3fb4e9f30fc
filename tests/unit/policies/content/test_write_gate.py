"""What may become memory, and what is taken out of it."""

import pytest

from policies.content.write_gate import refuse_worthless, without_unsavable
from tests.support.tables import read_rows


@pytest.mark.parametrize(("text", "reason"), read_rows("worthless"))
def test_the_worthless_is_refused_by_name(text: str, reason: str) -> None:
    assert refuse_worthless(text) == reason


@pytest.mark.parametrize(
    "text",
    [
        "Hello, the deploy of payments failed with code 500.",
        "Thanks! We decided to keep SQLite.",
        "你好，数据库密码轮换改为每 90 天一次。",
        "好的，决定用 Redis 做缓存",
        "The heartbeat interval of node 7 must be 5 s, or the cluster splits.",
        "心跳超时导致主从切换，改为 10 秒后恢复",
        "Downloading stopped at 45% because the proxy cuts connections after 60 s; use the mirror.",
        "下载到 45% 就断：代理 60 秒断开，改用镜像",
        "CPU usage is at 93% since the release",
        '{"name": "shop", "replicas": 3}',
        "Parameters of the retry: 5 tries, doubled",
        "- host: string that the driver got was empty\nThe fix was to set it in the unit file.",
        "ok",
    ],
)
def test_what_says_something_is_not_refused(text: str) -> None:
    if text == "ok":
        assert refuse_worthless(text) == "greeting"
    else:
        assert refuse_worthless(text) is None


NEVER = [
    "The parameter schema of mcp__ata__article_query is {topic: string, page: int}.",
    "I guessed the call format {topic: string} for the ata tool and the call failed with a type error.",
    "Failed call: ata::article-list-query(topic=1).",
    "mcp__shop__order field mapping: id goes to order_id.",
    'The tool expects arguments as {"query": "text"}.',
    "API docs of the MCP tool say that page is a number.",
    "ATA MCP 工具的参数格式是 {topic: string}。",
    "猜测的调用格式：article_query(topic)。",
    "失败的调用记录：mcp__ata__x 返回类型错误。",
    "工具的字段映射：id 对应 order_id。",
    "调用格式是先传 topic 再传 page。",
]
KEPT = [
    "Gotcha: the mcp tool ata returns an empty list unless the parameter locale is set.",
    "Confirmed workaround: failed calls of mcp__ata__q with page > 10 go away with a cursor instead.",
    "The owner of the ata tool's schema is the platform team, escalate in #ata-ops.",
    "注意事项：调用 ata 工具的参数 locale 必须为 zh，否则静默返回空。",
    "已知问题：工具调用失败时的变通方法是改用游标翻页。",
    "ata 工具的负责人是平台组，参数格式问题找他们。",
    "We decided to move the ETL's field mapping from users to accounts.",
    "The function takes two parameters and returns the sum.",
    "字段映射从 users 改到 accounts，由 ETL 负责。",
    "pytest failed because the fixture was missing; adding it fixed the build.",
    "I guess the outage came from the switch.",
    "Gotcha: the MCP tool ata is slow. Its page parameter fails above 10.",
    "- **注意**：ata 工具很慢。参数 page 大于 10 会失败。",
]  # fmt: skip


def test_what_a_tool_is_called_with_is_never_saved() -> None:
    for sentence in NEVER:
        assert without_unsavable(sentence).text.strip() == "", sentence
        kept = without_unsavable(
            f"The on-call owner is the platform team. {sentence}\n部署在周五完成。"
        )
        assert kept.text == "The on-call owner is the platform team.\n部署在周五完成。", sentence
        assert kept.removed >= 1


def test_what_was_learned_the_hard_way_is_kept() -> None:
    for sentence in KEPT:
        assert without_unsavable(sentence).text == sentence
        assert without_unsavable(sentence).removed == 0


def test_tools_that_are_named_by_the_caller_count_as_tools() -> None:
    text = "article_query needs the argument topic."
    assert without_unsavable(text).text == text
    assert without_unsavable(text, tools=["mcp__ata__article_query"]).text == ""
    assert without_unsavable("Read the parameters first.", tools=["Read"]).removed == 0


def test_cleaning_twice_is_cleaning_once() -> None:
    text = "\n".join([*NEVER, *KEPT])
    once = without_unsavable(text)
    assert without_unsavable(once.text).removed == 0
    assert without_unsavable(once.text).text == once.text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            "mcp__jira__search finds tickets.\n- jql (string): the query\n- limit: integer\nAnn owns it.",
            "mcp__jira__search finds tickets.\nAnn owns it.",
        ),
        (
            "mcp__jira__search is slow.\n\nParameters: five tries, doubled each time.",
            "mcp__jira__search is slow.\n\nParameters: five tries, doubled each time.",
        ),
        (
            "# mcp__jira__search\nslow\n# Retries\nParameters: five tries.",
            "# mcp__jira__search\nslow\n# Retries\nParameters: five tries.",
        ),
    ],
    ids=range(3),
)
def test_a_parameter_list_behind_a_tools_name_is_removed(text: str, kept: str) -> None:
    assert without_unsavable(text).text == kept


def test_what_tells_a_distinct_parameter_of_the_tools_used_is_not_saved() -> None:
    text = "We met at noon. head_limit takes an integer, default 250. limit takes an integer, too."
    cleaned = without_unsavable(text, tools=["Grep(head_limit, limit)"])
    assert (cleaned.removed, "head_limit" in cleaned.text) == (1, False)
    assert "limit takes an integer" in cleaned.text, "an ordinary word proves nothing here"
    assert without_unsavable(text, tools=["Grep"]).removed == 0
