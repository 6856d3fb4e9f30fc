"""What is shown while a tool is in use: what is of lasting use, and what only mentions the tool."""

import time
from typing import Final

import pytest

from policies.recall import ActiveTools
from policies.recall_lasting import is_durable

LASTING: Final = {
    "mcp__ata__article-list-query": (
        "Beware: article-list-query caches results for an hour, so the parameter freshness has no effect.",
        "小心，article-list-query 有一小时缓存，freshness 参数不起作用。",
        "article-list-query 由内容平台组维护，字段映射每个版本都会改，找 #ata-ops。",
    ),
    "mcp__github__list_pull_requests": (
        "Contact for list_pull_requests problems: Ihor, he maintains the connector and its schema.",
    ),
    "mcp__prom__query_range": (
        "query_range was slow, a number of dashboards were empty.",
        "踩过的坑：query_range 的 start 参数会按采集间隔取整，第一个点会丢。",
        "query_range 的 step 参数千万不要小于 5s，会把 Prometheus 打挂。",
    ),
    "mcp__k8s__get_pods": ("风险提示：get_pods 即使带 all 参数也不会返回已终止的 Pod。",),
    "mcp__db_gateway__runSql": (
        "runSql 出问题找责任人韩松，他维护网关和参数定义。",
        "切记：runSql 的 statement 参数不带 LIMIT 会锁住 orders_archive。",
    ),
    "mcp__slack__post_message": (
        "Mind that post_message pings everyone when the parameter link_names is true.",
        "Be careful: post_message truncates the text parameter at 4000 characters.",
        "post_message drops attachments when the blocks parameter is present, without any error.",
        "Ask Bianca (she runs the Slack app) before changing the post_message parameters.",
        "Point of contact for post_message and its schema: Bianca.",
        "替代方案：post_message 参数过长时改发附件。",
        "post_message 调用失败请联系内部工具组。",
    ),
    "mcp__pagerduty__create_incident": (
        "create_incident pages the CTO at night if the parameter urgency is high. Do not use it for drills.",
        "Lesson learned: create_incident with an empty service parameter pages everybody.",
        "Trap: create_incident ignores the urgency parameter for muted services.",
        "Limitation: create_incident's body parameter holds 1024 bytes; longer ones are cut off.",
        "风险：create_incident 参数错误时也会创建空事件。",
        "限制：create_incident 的 body 参数最长 1024 字节，超出会被截断。",
    ),
    "mcp__loki__query_logs": (
        "query_logs times out for ranges over a day, whatever the limit parameter; split the range.",
        "Fix for failed calls of query_logs: ask for six hours at a time.",
        "API key for query_logs: Vault path kv/obs/loki, field token.",
        "query_logs 的账号密码在 1Password 的 loki-ro 条目里，参数不用改。",
        "query_logs 的 API key 存在 Vault 的 kv/obs/loki，参数里只填引用。",
        "query_logs 调用失败的解决方法：每次只查六小时。",
        "query_logs 调用失败时先看网关是否在重启，等两分钟再试即可恢复。",
    ),
    "mcp__notion__query-database": (
        "query-database is flaky between 02:00 and 03:00 UTC: failed calls then are the nightly backup, just retry.",
    ),
    "mcp__confluence__getPageById": (
        "小心：getPageById 的 expand 参数会把整页历史都拉下来，很慢。",
        "千万别给 getPageById 传 expand=all 参数，会拖垮 Confluence。",
        "不要把 getPageById 的 pageId 参数写死，页面会迁移。",
        "getPageById 有个坑，expand 参数区分大小写。",
        "有问题找顾盼，getPageById 的参数是她定的。",
        "getPageById 由知识库团队维护，参数变更提前一周通知。",
        "getPageById 的对接人是顾盼，字段映射问题直接问她。",
    ),
    "mcp__gitlab__merge_request_create": (
        "Heads-up: merge_request_create assigns the whole team when the reviewer_ids parameter is empty.",
        "Whoever needs a new field in merge_request_create should write to Tomasz Wilk, who looks after it.",
    ),
    "figma::export_nodes": (
        "export_nodes is throttled: more than 10 calls with large ids arguments lead to an hour's ban. Take care.",
        "当心：export_nodes 的 scale 参数超过 4 会把内存吃光。",
    ),
    "mcp__bq__execute_query": (
        "Be aware that execute_query bills the full scan even when the limit parameter is set.",
    ),
    "mcp__stripe__createRefund": (
        "createRefund must never be retried blindly: a failed call may have paid out already.",
        "千万别重复调用 createRefund，失败的调用也可能已经打款。",
    ),
    "mcp__twilio__send_sms": ("send_sms 调用失败的应对办法：换成字母发送者。",),
    "mcp__airflow__trigger_dag": ("重要提醒：trigger_dag 的 conf 参数里带密码会被写进日志。",),
    "browser_click": ("注意，browser_click 的参数 ref 页面刷新后就失效，會點錯按鈕。",),
    "mcp__shopify__get_orders": (
        "Watch it: get_orders with a limit argument above 250 hangs the connector.",
        "提醒一下，get_orders 的 limit 参数超过 250 会让连接器卡死。",
    ),
    "mcp__mail__send_message": (
        "The SMTP password behind send_message sits in HashiCorp Vault, the parameters stay empty.",
        "send_message 背后的 SMTP 密码放在密钥管理系统里，参数留空。",
    ),
    "mcp__zendesk__updateTicket": ("updateTicket 归支持工程组管，参数由他们定。",),
    "redis::set_key": ("已知毛病：无论 ttl 参数给多少，set_key 的键重启后都会丢。",),
}
MENTIONED: Final = {
    "mcp__x__get": ("get 请求的参数放在 URL 里。",),
    "Bash": (
        "Our deploy script is written in Bash and takes two parameters: environment and tag.",
        "Our style guide for Bash: quote every parameter expansion.",
    ),
    "Task": (
        "Task: billing: change the parameter schema of the orders API.",
        "Task: needs the parameter list of the orders API.",
        "Task: document the parameter schema of the orders API by Friday.",
    ),
    "mcp__loki__query_logs": ("通过 query_logs 查到订单服务的入参里有空手机号，已修复校验。",),
    "mcp__confluence__getPageById": (
        "getPageById 读到的页面里写着对账接口的字段映射，归财务组管。",
    ),
    "mcp__notion__query-database": (
        "We keep the field mapping of the CRM import in Notion and read it with query-database.",
    ),
    "Read": ("The Read model of orders has the fields id and total.",),
    "Grep": ("Grep for the parameter name in config/ before you remove it.",),
    "mcp__x__status": ("Status: the schema migration of orders is done.",),
    "mcp__x__fetch": ("fetch() in the browser takes an options argument; we wrap it in api.ts.",),
    "mcp__x__deploy": ("Deploy: parameters come from values.yaml.",),
    "WebSearch": (
        "Looked up the request schema of the Shopify API with WebSearch and wrote it to docs/shopify.md.",
    ),
    "mcp__x__plan": (
        "Plan: migrate the schema on Sunday, then change the request parameters of the billing API.",
    ),
    "WebFetch": ("The article on JSON schema that we read with WebFetch is in the wiki.",),
    "mcp__prom__query_range": (
        "query_range showed that order_service is missing metrics.",
        "query_range was down because `prom-0` must be moved.",
        "The dashboard of query_range says that order_service must be restarted.",
    ),
    "mcp__db_gateway__runSql": ("runSql 统计订单表 12 行，备注字段为空的 3 行",),
}

SHOWN: Final = [
    (tool, text) for kind in (LASTING, MENTIONED) for tool, texts in kind.items() for text in texts
]


@pytest.mark.parametrize(("tool", "text"), SHOWN)
def test_it_is_shown_while_its_tool_is_in_use(tool: str, text: str) -> None:
    tools = ActiveTools.of([tool])
    assert not tools.holds_back("", text)
    assert not tools.holds_back("Note from May", text)


@pytest.mark.parametrize(
    "noun",
    ["known issue", "gotcha", "workaround", "owner", "warning", "caveat", "limitation"],
)
def test_what_is_denied_in_english_is_not_of_lasting_use(noun: str) -> None:
    assert is_durable(f"There is a {noun} for this.")
    for denial in (
        "There is no {}.",
        "It has no known {}.",
        "This is not a {}.",
        "Without any {}.",
    ):
        assert not is_durable(denial.format(noun))


@pytest.mark.parametrize("noun", ["已知问题", "注意事项", "变通方法", "负责人", "对接人", "警告"])
def test_what_is_denied_in_chinese_is_not_of_lasting_use(noun: str) -> None:
    assert is_durable(f"有{noun}。")
    for denial in ("没有{}。", "暂无{}。", "这不是{}。", "无任何{}。"):
        assert not is_durable(denial.format(noun))


@pytest.mark.parametrize(
    "text",
    [
        "owner, repo and state.",
        "create_repo needs two arguments, owner and name.",
        "create_repo takes owner, name and private.",
        "The arguments for create_repo are owner, repo and state.",
        "参数 owner、repo 必填",
        "owner team -> component",
        "负责人→owner",
        "the token parameter goes into the header",
        "token 放在 header 里",
        "密钥在请求头里传",
    ],
)
def test_a_field_of_that_name_is_not_of_lasting_use(text: str) -> None:
    assert not is_durable(f"create_repo parameters: {text}")


UNITS: Final = (
    *(
        "owner, ",
        "parameters a, ",
        "no known ",
        "the API key for ",
        "token ",
        "ask ",
        "由平台",
        "参数 a、",
        "密钥",
    ),
    *(
        "get_pods(",
        "get_pods takes a, b ",
        "调用 get_pods ",
        "getPods ",
        "get_pods {",
        "how to call get_pods ",
    ),
    *(
        "get_pods: a ",
        "get_pods: `a` ",
        "get_pods showed ",
        "when using get_pods ",
        "`a` and ",
        "a_b, ",
        "must be ",
        "missing ",
        " it takes ",
    ),
)


@pytest.mark.parametrize("unit", UNITS)
def test_time_grows_with_the_length_alone(unit: str) -> None:
    tools = ActiveTools.of(["mcp__k8s__get_pods", "Bash", "Task"])

    def measure(length: int) -> float:
        text = f"get_pods params {unit * (length // len(unit) + 1)}"[:length]
        began = time.process_time()  # what others do on the machine does not count
        tools.holds_back("", text)
        is_durable(text)
        return time.process_time() - began

    small = max(min(measure(12_500) for _ in range(3)), 0.002)
    assert measure(100_000) < small * 8 * 5  # a square would be 64 times
