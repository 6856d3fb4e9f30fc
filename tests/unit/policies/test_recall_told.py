"""How a tool in use is called, told without the plain words for it: by types, payloads, signatures, refusals."""

from typing import Final

import pytest

from policies.recall import ActiveTools

STALE: Final = {
    "Bash": ("Bash takes a command and a timeout argument.",),
    "mcp__jira__create_issue_link": (
        "上次调用 create_issue_link，type 参数报类型错误。",
        "create_issue_link rejected the call on Monday.",
        "jira::create_issue_link refused my arguments.",
        "create_issue_link: required: type; optional: comment.",
        "With the new create_issue_link the link_type is mandatory.",
        "在 create_issue_link 里 link_type 可不传。",
        "create_issue_link needs type, a string.",
        "create_issue_link returns {id, self}.",
        "create_issue_link 返回 {id, self}。",
    ),
    "mcp__jira__create_issue": (
        "create_issue takes project (string), summary (string) and labels (array of strings).",
        "createIssue expects a `fields` object with the key `issuetype` inside.",
        "For create-issue the field mapping is: title -> summary, body -> description, owner team -> component.",
        "This is not a warning, just the parameter list of create_issue: project, summary.",
        "No known issues with create_issue. Its parameters are project, summary, issuetype.",
        "工具 createIssue 的入参是 project 和 summary，都是字符串。",
        "上次调用 create_issue 失败，报错缺少参数 issuetype。",
        "这不是注意事项，只是 create_issue 的参数列表：project、summary。",
    ),
    "mcp__ata__article-list-query": (
        "article-list-query accepts pageNo and pageSize, both integers.",
        'article_list_query({"keyword": "gateway", "pageNo": 1}) -> TypeError: pageNo must be a string',
        "Tried articleListQuery with topic=cache; it failed: unknown property 'topic'.",
        "articleListQuery 返回的字段结构：list、total、pageNo。",
        "工具 article-list-query 呼叫格式為 {keyword, pageNo}。",
    ),
    "mcp__prom__query_range": (
        "How to call query_range: queryRange(query=..., start=..., end=...)",
        "query_range response format: result is a list of {metric, values}.",
        "No workaround was found; the query_range call failed again with 'invalid parameter step'.",
        "prom 的 queryRange 接口文档：四个参数，时间用 Unix 秒。",
    ),
    "mcp__k8s__get_pods": (
        "get_pods wants `namespace` as a string and `labelSelector` as an object.",
        "k8s::get_pods rejected the call: namespace is a required property.",
        "The getPods tool does not accept a field named pod_name.",
        'get_pods 的 JSON 结构是 {"namespace": "字符串"}',
        "getPods 这个工具的参数名是 labelSelector，不是 label。",
    ),
    "mcp__github__list_pull_requests": (
        "list_pull_requests: `state` may be one of open, closed, all; default is open.",
        "The arguments for list_pull_requests are owner, repo and state.",
        "github::list_pull_requests failed with 422 Validation Failed: per_page must be an integer",
        "list_pull_requests 的参数 owner、repo 必填，state 可选。",
    ),
    "mcp__db_gateway__runSql": (
        "run_sql needs the keyword arguments db and sql; positional arguments are refused.",
        'The run-sql tool\'s JSON payload looks like {"db": "orders", "sql": "select 1"}.',
        "run_sql 函数签名：run_sql(database, statement, timeout_ms)",
        'db_gateway::runSql 请求体示例：{"database": "orders"}',
    ),
    "mcp__slack__post_message": (
        "调用 post_message 失败，提示缺少 channel_id 参数。",
        "post_message 欄位對應：標題 → title。",
        "post_message 必填欄位：channel、text。",
        "post_message takes channel (string) and text (string); blocks is an array of objects.",
        "postMessage needs channel_id, not channel.",
        "There is no workaround and no owner for this; post_message parameters: channel, text.",
        "post_message 暂无负责人，参数格式：channel、text。",
    ),
    "mcp__pagerduty__create_incident": (
        "调用 create_incident 报错：字段 severity 不存在。",
        'create_incident 请求体：{"title": "...", "service": "..."}',
        "create_incident 只接受 title 和 service 两个字段。",
        "create_incident 的 urgency 取值只能是 high 或 low。",
        'create_incident accepts title: string, service: string, urgency: "high" | "low".',
        'The request body of create_incident is {"title": "...", "service": "..."}.',
        "create_incident threw InputValidationError: title is required.",
    ),
    "es::bulk_index": (
        "调用 es::bulk_index 时 docs 参数要传数组。",
        "How es::bulk_index is called: index first, then docs as a list.",
        "To call bulk_index, pass index and docs; docs must be an array.",
    ),
    "mcp__confluence__getPageById": (
        "get_page_by_id 的返回结构：id、title、body。",
        "getPageById(pageId: string, expand?: string[])",
        "get_page_by_id: input {pageId: string}, output {id, title, body}",
    ),
    "mcp__notion__query-database": (
        "queryDatabase 的入参为 database_id 和 filter。",
        "notion::query-database 接受 database_id（字符串）和 page_size（整数）。",
    ),
    "mcp__loki__query_logs": (
        "```\nquery_logs(expr=\"{app='x'}\", start=1)\n# ValidationError: expr: unexpected keyword argument\n```",
        "Not a gotcha: query_logs simply has the parameters query and start.",
        "没有变通方法，query_logs 的参数格式就是 query、start。",
    ),
    "NotebookEdit": ("NotebookEdit takes notebook_path, cell_id and new_source.",),
    "mcp__gh__create_repo": ("create_repo needs two arguments, owner and name.",),
    "mcp__gitlab__merge_request_create": (
        "merge_request_create: source_branch and target_branch are mandatory, labels is an optional comma separated string.",
        "You have to hand merge_request_create a numeric project_id; the path is not accepted.",
        "merge_request_create 需要 source_branch、target_branch 和 title 三项，缺一不可。",
        "mergeRequestCreate 的 project_id 只能填数字，填路径会报 400。",
    ),
    "figma::export_nodes": (
        "export_nodes gives back an object {images: {nodeId: url}, err: null}.",
        'Example call: figma::export_nodes {"file_key": "abc", "ids": ["1:2"], "format": "png"}',
        "figma::export_nodes 的返回结果是 {images: {节点: 地址}}。",
        'export_nodes 示例：export_nodes(file_key="abc", ids=["1:2"])',
    ),
    "mcp__sentry__search_issues": (
        "search_issues complained: 'org_slug' is missing. Second try with organization_slug went through.",
        "searchIssues(org, query, limit=25)",
        "试过 search_issues 传 org_slug，结果报未知字段，改成 organization 才过。",
    ),
    "mcp__gdrive__listFiles": (
        "list_files: pageToken goes in as camelCase, page_token is thrown out with a schema error.",
        "listFiles 工具的字段含义：folderId 目录，pageSize 每页条数。",
        "list_files 的参数命名是驼峰，page_token 会校验失败。",
    ),
    "mcp__twilio__send_sms": (
        "send_sms returned 400 Bad Request because the body key must be named message.",
        "Our guess is that send_sms's payload is {to, from, body}.",
        "send_sms 报 400，因为正文字段应叫 message。",
    ),
    "mcp__bq__execute_query": ("Syntax for execute_query: execute_query(sql=..., dry_run=true)",),
    "MultiEdit": (
        "MultiEdit requires file_path plus edits, an array of {old_string, new_string}.",
    ),
    "mcp__airflow__trigger_dag": (
        "Attempts to call trigger_dag failed: 'conf' must be a JSON object, not a string.",
        "多次调用 trigger_dag 都失败了，conf 不能是字符串。",
    ),
    "mcp__stripe__createRefund": (
        "create_refund expects amount in cents (integer) and a charge id.",
        "No owner is on record. Schema of createRefund: charge, amount, reason.",
        "createRefund 的字段映射：金额→amount，原因→reason，负责人→owner。",
        "未发现已知问题。createRefund 参数列表：charge、amount。",
    ),
    "mcp__amap__route-plan": ("高德 routePlan 的 strategy 参数可取 0 到 9。",),
    "mcp__dingtalk__sendMessage": (
        "钉钉 send_message 的 msg 要传对象而不是字符串，否则调用失败。",
    ),
    "mcp__shopify__get_orders": (
        "get_orders: the date filter is called created_at_min and wants ISO 8601.",
        "get_orders 的时间过滤字段叫 created_at_min，格式是 ISO 8601。",
        "getOrders 分页要传 page_info。",
    ),
    "mcp__zendesk__updateTicket": (
        "updateTicket({id: 3, ticket: {status: 'solved'}}) is the form that works.",
        "The update_ticket schema changed in May: comment is now nested under ticket.",
        "updateTicket 的正确写法：updateTicket({id: 3, ticket: {...}})",
        "工单工具 update_ticket 五月起 comment 参数挪到 ticket 下面。",
    ),
    "redis::set_key": (
        "redis::set_key error: ttl must be an integer, got string.",
        "set_key 报错：ttl 必须是整数。",
    ),
    "mcp__feishu__create-doc": (
        "create-doc accepts title, folder_token and blocks.",
        "飞书 createDoc 支持的参数有 title、folder_token。",
    ),
    "mcp__maps__geocode": (
        "geocode's address argument is a plain string; region is optional.",
        "geocode 的 address 是字符串，region 可不传。",
    ),
    "mcp__snow__openIncident": (
        "My calls to openIncident were rejected: impact has to be between 1 and 3.",
        "open_incident 的 impact 取值 1 到 3，传 4 被拒绝。",
    ),
    "mcp__x__translate": ("The translate tool expects text and target_lang.",),
    "mcp__mail__send_message": ("send_message 收件人字段是 to，不是 recipient。",),
}

CASES: Final = [(tool, text) for tool, texts in STALE.items() for text in texts]


@pytest.mark.parametrize(("tool", "text"), CASES)
def test_what_tells_of_a_call_in_its_own_way_is_held_back(tool: str, text: str) -> None:
    tools = ActiveTools.of([tool])
    assert tools.holds_back("", text)
    assert tools.holds_back("Note from May", text)


@pytest.mark.parametrize(("tool", "text"), CASES)
def test_without_its_tool_in_use_it_is_shown(tool: str, text: str) -> None:
    assert not ActiveTools.of(["mcp__x__other-tool", "Skill"]).holds_back(tool, text)


@pytest.mark.parametrize(("tool", "text"), CASES)
@pytest.mark.parametrize("lasting", ["Beware of Mondays.", "对接人：顾盼。"])
def test_what_is_of_lasting_use_shows_it(tool: str, text: str, lasting: str) -> None:
    assert not ActiveTools.of([tool]).holds_back("", f"{text}\n{lasting}")


@pytest.mark.parametrize(
    ("tool", "written"),
    [
        ("mcp__prom__query_range", "queryRange"),
        ("mcp__prom__query_range", "QueryRange"),
        ("mcp__prom__query_range", "prom::queryRange"),
        ("mcp__prom__query_range", "QUERY-RANGE"),
        ("mcp__db__runSql", "run_sql"),
        ("mcp__db__runSql", "run-sql"),
        ("mcp__db__runSql", "runsql"),
        ("WebFetch", "web_fetch"),
        ("article-list-query", "articleListQuery"),
        ("getPageByID", "get_page_by_id"),
    ],
)
def test_a_name_is_known_however_its_words_are_joined(tool: str, written: str) -> None:
    assert ActiveTools.of([tool]).holds_back("", f"{written} parameter schema: topic")


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ("mcp__x__log_in", "The login form's parameter schema changed."),
        ("mcp__x__set_up", "Setup parameter schema: see the wiki"),
        ("mcp__prom__query_range", "queryRanges parameter schema: topic"),
        ("mcp__prom__query_range", "the query range of the parameter schema"),
    ],
)
def test_words_that_only_sound_like_it_are_no_name(tool: str, text: str) -> None:
    assert not ActiveTools.of([tool]).holds_back("", text)


def test_that_the_tool_itself_is_mandatory_tells_nothing_of_a_call() -> None:
    tools = ActiveTools.of(["mcp__jira__create_issue"])
    assert not tools.holds_back("", "For outages create_issue is mandatory.")


@pytest.mark.parametrize(
    ("taught", "done"),
    [
        (
            "When using create_issue, the project parameter is a key.",
            "Using create_issue we reported the missing project parameter of checkout.",
        ),
        ("使用 create_issue 时 project 参数填项目键。", "使用 create_issue 提交了缺少参数的工单。"),
        ("调用 create_issue 时 project 参数填项目键。", "用 create_issue 提交了缺少参数的工单。"),
    ],
)
def test_what_teaches_a_call_is_told_from_what_was_done_with_it(taught: str, done: str) -> None:
    tools = ActiveTools.of(["mcp__jira__create_issue"])
    assert tools.holds_back("", taught)
    assert not tools.holds_back("", done)


CREATED: Final = "We file outages there. create_issue is quick."


@pytest.mark.parametrize(
    "goes_on",
    ["Its parameters are project and summary.", "It takes two arguments.", "它的参数是 project。"],
)
def test_the_next_sentence_is_about_the_tool_where_it_says_so(goes_on: str) -> None:
    assert ActiveTools.of(["mcp__jira__create_issue"]).holds_back("", f"{CREATED} {goes_on}")


@pytest.mark.parametrize(
    "goes_on",
    ["The checkout service takes two arguments.", "其他服务的参数见门户。", "It was quick."],
)
def test_the_next_sentence_is_about_something_else_where_it_does_not(goes_on: str) -> None:
    assert not ActiveTools.of(["mcp__jira__create_issue"]).holds_back("", f"{CREATED} {goes_on}")
