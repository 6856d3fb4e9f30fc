"""What tells how an agent's tool is called, and what only sounds like it."""

import pytest

from policies.memory_sink import without_unsavable

ORDINARY = """\
Failed calls to the payment provider are retried three times with backoff.
A failed call to the bank's API is written to failed_payments and retried by hand.
The parameter schema of the billing API moved to OpenAPI 3.1 in June.
The input schema of the orders topic is Avro; the registry is at schemas.example.org.
We generate argument schemas with pydantic for the public API.
Our build tool is Bazel; arguments for CI stand in .bazelrc.
The migration tool reads its parameters from config/migrate.toml.
std::optional parameters are passed by value in this code base.
tokio::spawn needs 'static arguments, so the state is wrapped in an Arc.
OrderService::find got a new parameter tenant_id in release 4.2.
UserRepository::save threw a TypeError since the id was null; it is cast to int now.
Rails: ActiveRecord::Base.connection was called with the wrong shard; fixed in db/shards.rb.
Fixed: std::thread was called with a dangling reference.
The linting tool ruff takes its schema from pyproject.toml.
Field mapping of the CRM importer: Kunde -> customer, Ort -> city (tool: importer).
We decided that the CLI tool prints JSON ({"status": "ok"}) for scripts.
Profiling tool of choice is py-spy; call it with --native for C extensions.
The call format of phone numbers in the CRM is E.164.
Decision: call formats in the softphone follow E.164.
We guessed the date format of the supplier's file to be ISO and it was right.
Guessing the parameter count of the model from the file size gave 7 billion.
The team moved from Jenkins to another CI tool since pipeline parameters were hard to test.
The monitoring tool raised an alert: p99 = 4 s.
Deployment tool: helm upgrade --set image.tag={sha}.
Function calls in the hot loop were inlined; the arguments are passed in registers.
MCP stands for Multi-Channel Plate here; its parameters are gain and voltage.
Priya prefers tools with few parameters.
The design tool exports tokens: {"color": "red"}.
Unit tests for the tool shed booking app cover args parsing.
Contract::sign reverted when the parameter nonce was reused; nonces are read from chain now.
We found by testing (guess and check) which call parameters the modem accepts: AT+CSQ.
Refund calls failed because the tool for key rotation had replaced the signing key.
The nightly job fails when two workers take the same lock; since May it takes the lock per tenant.
Our OpenAPI schemas are generated from the controllers, never by hand.
Arguments against Kafka: nobody on the team has run it before.
The salary parameters in the payroll system are changed by HR on the first of the month.
Function calls across the FFI border cost 80 ns, so batches of 256 are sent.
The search tool on the intranet was replaced by Elastic in March.
pg_dump is called with --no-owner in the backup job because the restore runs as another role.
The tool clang-format runs in CI; its settings are in .clang-format.
Missing required fields in the import file are reported to the supplier by mail on Mondays.
serde::Deserialize is derived for every struct in the wire crate.
The API rejected 3% of calls yesterday because the gateway's certificate had expired.
InputValidationError is mapped to 422 in our error middleware.
The function parse_order(raw, tenant) moved from orders.py to intake.py.
We agreed that tool calls of the assistant are billed to the cost centre of the team.
The team guessed the load wrongly: 400 rather than 4000 requests per second.
Redis::Client was replaced by a pool of five since connections leaked.
The vendor's schema registry is down every Sunday from 2 to 3.
A hex key with a torque of 6 Nm is the right tool for the parameter screws of the spindle.
Call with customer on Friday failed, it is moved to Tuesday 10:00.
config::load_settings reads parameters from the environment before the file.
mcp__jira__create_issue is only allowed for the release managers.
We allow mcp__github__search_issues in rules.toml without asking since May.
mcp__grafana__query answers in 4 s on Mondays, in 1 s otherwise.
The MCP tool for Jira was switched off on 3 November because of the audit.
The read-only tool needs fields in the licence file to be filled in by the vendor.
Our command-line tool takes the arguments in any order since version 3.
The tool pg_stat_statements showed that 80 % of the time goes into one query.
The load-testing tool sends requests with random parameters from a seed of 42.
The state machine takes an event and gives {state, effects}; it is pure.
The endpoint GET /orders takes the query parameters from, to and status.
parse_args() is called with sys.argv[1:] in app.py and nowhere else.
Tool schemas are cached for five minutes in the gateway, so a new server is seen late.
Failed tool calls are counted in the metric candor_tools_failed and shown in Grafana.
The number of required fields in the tax form went from 12 to 9.
The migration failed with TypeError: cannot read null; the seed data lacked a tenant.
axios.get(url, {params}) was replaced by fetch in the web client.
Use httpx.Client(timeout=5) in the jobs, the default of 30 s blocked the queue.
The response schema of /v2/orders has the fields id, state and total.
ListView::add_item is slow beyond 1000 rows; the table is virtual now.
util::read_config returns a Result since 0.9, and main prints its error.
The survey tool wants a number of seats per contract, we bought 40.
mcp__sentry__resolve call failed for all since the token had expired; fixed by renewing it in Vault.
Never call the refund endpoint with a negative amount; the ledger rejects it silently.
Our MCP server reads its settings from mcp.json and logs to stderr.
The agents call mcp__search__web about 400 times a day, two thirds of that from the support bot.
mcp__pg__query uses the read replica since October, so results lag by 2 s.
Tool use is off for the free plan; the product team decided that in September.
The tool shop in Graz delivers fields of teeth for the mill in a week.
She prefers the `rg` tool to grep.
std::get_time parses arguments of the form HH:MM in the importer.
The update_stock job fails when a field in the supplier's list is empty.
fetchOrders takes a tenant and a cursor and gives a page of 50.
The linter complained about an unexpected keyword in the Dockerfile; we pinned hadolint 2.12.
Guessing the password format is limited to five tries an hour.
The contract lists the required fields of study for each apprenticeship.
The audit found three failed calls to the fire brigade's test line.
I think the schema of the warehouse should follow the star form, with orders in the middle.
Rate limits of the Slack API hit mcp__slack__post_message every Monday at nine.
The tool create_ticket was removed from the support bot because it spammed the queue.
Function calling is done by the small model, the large one writes the answer.
The compiler tool flags moved to cmake/flags.cmake, arguments in the presets file are gone.
Type errors went down by half after mypy strict was switched on.
The search_docs tool has its parameters in config/search.toml.
Parameters of mcp__jira__create_issue are documented in docs/jira.md.
The tool pg_dump takes the argument --clean in the backup job.
std::find_if takes a predicate as its last argument.
In print a::first-line has the property color set to black.
The tool run_report.py takes the argument month.
Our list-based tool takes two arguments.
We moved the tool calls of the nightly agent to a queue of their own, since they starved the web chat.
mcp__jira__create_issue needs approval by the release manager from Monday on.
If mcp__pg__query is slow, ask Robert from the data team.
The GitHub tool of the agent has been read-only since the incident in June.
Fields of the invoice PDF are read by OCR; the template is in templates/invoice.
The argument between sales and support about refunds ended with a limit of 50 euros.
We tried to guess the customer's language by the phone prefix; that was right in 91 %.
save_order retries a failed call to the stock service once.
Schema changes need two reviewers and a backup taken the same day.
The deploy tool asks for the required field ticket before it starts.
Our admin tool lists objects by type: string, number, date.
The new build tool needs Java 21 and 4 GB.
User.find_by_email takes the argument case-insensitively now.
The vendor tool update-manager takes two hours per host.
Expected format of the delivery note: ISO date, then the customer's number.
Kafka::Consumer got a timeout argument in the Ruby client.
The query parameter q was renamed to query in v3 of our own search API.
When calling the hotline give the contract number.
The bulk import maps country to region by a table in Postgres.
"tool" in the glossary means a milling cutter.
mcp__jira__create_issue was used 40 times last week, mostly by the support agent.
Ticket creation by mcp__jira__create_issue goes to project OPS by decision of the platform group.
The e-mail tool send_digest runs at 06:00 and at 18:00.
Maybe the create_invoice job should move to the night.
Probably the list_prices cache needs a longer lifetime, to be measured.
tool: cutter 8 mm, number 14, life 300 min.
get_user was split into get_user and get_users in the accounts module.
The function get_user takes an id and raises NotFound.
Backups are made by the tool restic with a retention of 30 days.
A call to the warehouse API fails with 409 when the order is locked; wait 5 s and try again.
The form asks for name, email and a date; email is a string of at most 254 characters.
The integer overflow in the billing sum was fixed in 3.2.1 by using Decimal.
Team tools: Linear for tickets, Notion for notes, Slack for the rest.
Schema v7 of the events table has the column tenant.
The MCP tools team meets on Tuesdays at ten.
We call it with respect: the old core is still in production.
Arguments of the board: price, time, risk.
The search index wants 8 GB of memory since the new fields came.
All parameters of the heat pump are set by the installer.
After the failed call for tenders the contract went to the second bidder.
The agent opened 12 pull requests with mcp__gh__open_pr in October, nine of them were merged.
The restore tool needs 40 minutes and an empty volume.
Sales asked for a field for the VAT number; it comes in sprint 12.
order_total must be rounded half up, as the ledger does it.
mcp__gh__open_pr is blocked for forks by the security group.
ReportWriter::export got slower after the move to S3.
start_time is stored in UTC, shown in local time.
We use the tool k6 for load tests, with 200 users for ten minutes.
The pipeline fails if the variable DEPLOY_ENV is missing.
Typing a wrong PIN three times locks the card; call 116 116.
Our style: functions take at most four parameters.
The JSON schema of the events lies in schemas/events.json and is checked in CI.
Response format of the partner API changed from XML to JSON in March.
Invalid field names in the CSV are logged and skipped.
The contract with the tool vendor ends on 31 March.
clean_cache() is called with force=True in the Friday job only.
The lookup table maps plant codes to names; Mia keeps it up to date.
Tool calls by the intern bot are reviewed by a person until January.
user::update_email sends a mail to both addresses.
I guess the outage in Lyon had to do with the DNS change.
订单接口的参数格式九月起改为 JSON。
支付网关失败的调用会重试三次。
失败调用率超过 1% 时触发告警。
参数结构调整：把三个布尔值合并成一个枚举。
训练脚本的参数定义在 configs/train.yaml。
猜测的原因是缓存参数没有刷新，后来证实了。
数据库迁移工具的参数写在 flyway.conf。
构建工具换成 Vite，参数在 vite.config.ts。
电话系统的调用格式统一为 E.164。
推测是字段为空导致的异常，加了校验。
模型参数结构：12 层，隐藏维度 768。
压测工具 JMeter 的参数放在 perf 仓库。
推测内存参数太小，调大后恢复。
接口失败的调用全部写入死信队列。
函数参数格式统一用 black 处理。
推测线程池参数过小，改为 200。
测试工具从 Selenium 换成 Playwright，用法见 wiki。
监控工具的告警规则：{severity: page}。
发布脚本的参数 region 从今年起默认为 eu-west-1。
压力测试时调用失败率为 0.3%，低于目标。
订单表的字段映射由数据组维护，文档在语雀。
类型错误大多来自老的 CSV 导入，改用 Parquet 后没有再出现。
客服工具从 Zendesk 换成了自研系统，十月上线。
电话会议的调用方式统一为 SIP。
函数调用太深导致栈溢出，递归改成了循环。
必填字段校验放在前端和后端各一份。
猜测是网络抖动，抓包后确认是交换机丢包。
部署工具 argo-cd 的参数都在 infra 仓库。
接口 createOrder 的参数 tenantId 从 4.2 版本起必填。
我们的脚手架工具需要 Node 20，参数见 README。
函数 parse_order 的入参改成了 dataclass。
工具链升级到 GCC 13 后，编译参数 -O3 会触发告警。
mcp__jira__create_issue 只允许发布经理使用。
调用失败率的告警阈值改为 2%，由值班同学处理。
前端字段映射表放在 mapping.ts，后端不再维护。
报表工具的字段名全部改成了英文，十二月生效。
工具箱里的扳手尺寸写在门后。
支付参数由财务每季度调整一次。
mcp__pg__query 从十月起走只读副本，结果延迟约两秒。
猜谜活动的参数由运营在后台配置。
我们把 create_order 接口的入参校验移到了网关。
每次调用外部接口失败都会写审计日志。
字段映射错误导致报表为空，回滚后恢复。
这个工具由平台组开发，三月上线。
MCP 服务器的日志保留七天。
数据库工具 DBeaver 连不上时先检查 VPN。
工具 build_report 的参数写在 wiki 里。
钻床工具参数：转速 1200，进给 0.1。
我们自己的搜索接口 v3 把参数 q 改成了 query。
mcp__jira__create_issue 从周一起需要发布经理审批。
回调接口调用失败后进入重试队列，最多五次。
客户端传参统一走 body，不再用 query。
设计工具 Figma 的字段样式统一用 16px。
猜测用户语言的方法准确率 91%。
导入映射：国家到大区的对应表在 Postgres。
类型为空的订单会被跳过，周报里列出。
agent 的工具调用放到独立队列，避免影响网页聊天。
客户端升级后必须重新登录。
工具 restic 每天备份，保留三十天。
getUser 接口的返回里去掉了手机号字段。
可能要把 create_invoice 任务移到夜里。
订单状态必须是已支付或已取消才能归档。
调用仓库接口报 409 时等五秒再试。
邮件工具每天六点发日报。
模具参数由车间主任签字后生效。
整数溢出在 3.2.1 里改用 Decimal 修好。
平台组决定 mcp__jira__create_issue 创建的工单一律进 OPS。
安全组禁止在 fork 上用 mcp__gh__open_pr。
恢复工具需要四十分钟和一块空盘。
start_time 按 UTC 存储，页面按本地时区显示。
缺少环境变量 DEPLOY_ENV 时流水线失败。
合作方接口的返回格式三月从 XML 改为 JSON。
实习机器人的工具调用在一月前由人复核。
我们规定函数最多四个参数。
CSV 里字段名不合法的行会被跳过并记录。
压测用 k6 工具，两百个用户跑十分钟。
事件的 JSON schema 放在 schemas/events.json。
""".splitlines()

OF_A_CALL = """\
mcp__jira__create_issue takes the parameters project and summary.
jira::create_issue schema: {project: string}
The tool create_issue has the arguments project and summary.
I guessed the call format {topic: string} for the ata tool and the call failed with a type error.
Failed tool call: article-list-query returned InputValidationError for limit.
The tool runSql wants database and statement as required fields.
mcp__prom__query_range returns {metric, values}; step must be a string.
k8s::get_pods rejected the call: namespace is a required property.
mcp__k8s__get_pods failed: unexpected property ns.
mcp__github__search_issues expects q, not query.
To call mcp__slack__post_message pass channel and text.
The tool send_email needs a recipient, a subject and a body as inputs.
confluence::get-page wants pageId as a string.
I tried mcp__notion__query with {"db": "x"} and got a validation error.
The search_docs tool's input schema: {query: string, top_k: integer}.
Guessed tool signature: list_pods(namespace, label).
Failed tool calls: mcp__gitlab__create_mr(title="x") -> 400 missing required parameter source_branch.
The WebFetch tool takes url and prompt as parameters.
Field mapping of mcp__crm__upsert: name goes to displayName, mail goes to email1.
The MCP tool "weather" is invoked with latitude and longitude.
mcp__db__run_sql arguments: database (string), statement (string), limit (int).
Maybe the right call format is createTicket(project, type), I have not tried it.
jira::search_issues failed: unexpected property "jql_query".
The tool list_alerts accepts the fields severity and since.
mcp__files__read throws TypeError: path must be a string.
Tool usage: fetch_page(url: string, depth: int).
this tool requires the arguments in camelCase: {startDate, endDate}.
mcp__jira__create_issue wants project_key instead of project.
For mcp__confluence__search use cql as the only argument.
mcp__s3__put(bucket, key, body) is how it is called.
The calendar tool's schema: {start: string, end: string, title: string}.
Call create_ticket tool with {"title": "...", "priority": 1..5}.
Tool `lookup` takes the required argument id.
I think mcp__mail__send maps subject to title and body to content.
the call to pagerduty::create_incident failed: missing required argument service_id.
sendMessage tool: parameters are chatId and text.
InputValidationError: `limit` must be <= 50 for mcp__ata__list.
Warning fields of mcp__mon__alerts: {warning: string, owner: string}.
Required params for the MCP tool are city and unit.
Parameters of tool fetch_logs: service, since, until.
mcp__k8s__scale signature is (namespace, deployment, replicas).
We guessed that create_event is called as create_event({start, end}) and it seems right.
The Grep tool accepts pattern, path and output_mode.
When calling mcp__figma__export set format to "png" and scale to 2.
notion::create-page needs parent and properties.
Agent's tool search_users: query (string), limit (integer, default 10).
Attempt 1: mcp__crm__find({name: "Li"}) -> error, attempt 2: mcp__crm__find({query: "Li"}) -> ok.
Use mcp__linear__create with teamId, never with team.
mcp__zendesk__reply rejects body, it wants comment.body.
The get_invoice tool only works with invoice_number as the key.
For the tool search_docs set top_k between 1 and 20.
tool_call: {"name": "create_event", "arguments": {"start": "2026-01-01"}}
mcp__hr__leave(employee_id=7, from="2026-01-01") returned 400.
This tool takes two parameters: from and to.
calendar::list_events(start, end) is the format.
I guess list_users has a parameter page_size.
The schema of mcp__bi__report: metric, from, to, all strings.
The arguments of the TodoWrite tool are todos with content and status.
The failed invocation was mcp__bi__report {metrics: ["rev"]}.
Signature of the tool get_weather: city, unit.
mcp__drive__upload needs base64 in the content property.
MCP tool params: owner, repo, title, body.
Parameter names for github::create_issue are owner, repo and title.
The call send_sms({to, text}) failed with InputValidationError.
It seems mcp__cal__book has an enum for status: free, busy.
Correct call format for run_report: run_report({id}).
mcp__wiki__edit maps page to pageId.
I guessed the argument project for mcp__jira__create_issue and it was confirmed.
Remember: mcp__trello__add_card(list_id, name) - list_id first.
The trello tool add_card wants list_id and name.
Schema for mcp__trello__add_card is {"list_id": "str"}.
I called mcp__trello__add_card with list="x"; it said unexpected property list.
Probably create_card takes the params board and title, not tested.
Use the add_card tool like add_card(list_id="...", name="...").
linear::list-issues: filter by state via {"state": {"eq": "open"}}.
mcp__weather__now - units must be metric or imperial.
Input of the Glob tool: pattern (required), path (optional).
The tools search_flights and book_flight both need the parameter passenger_id.
Field names for mcp__sap__post: BUKRS = company, BELNR = document.
Failed call log: search_flights(date="tomorrow").
In the MCP tool call the body has to be {"query": "...", "variables": {}}.
mcp__sap__post returned "missing required field BUKRS".
The get_user tool returns {id, name, email}.
mcp__slack__search: channel ids go into the argument channels, comma separated.
My guess for the tool call format: bookFlight({from, to}).
aws::describe_instances rejected the argument InstanceIds because it wants a list.
WebSearch tool arguments are query and allowed_domains.
Tool name: add_card, parameters: list_id, name.
With mcp__slack__send the channel goes in as an id such as C024BE91L in the property channel.
create_issue tool call => {"project": "OPS", "summary": "..."}
Call format: mcp__pg__query(sql="select 1").
The agent's tool open_pr has the optional argument draft.
asana::create-task due_on must be YYYY-MM-DD.
get_forecast (tool) parameters: lat, lon, days.
We found out by guessing that the tool open_pr wants base and head.
open_pr tool failed: 422 missing field head.
Raw call: mcp__gh__open_pr {"base": "main"} -> 422.
In the tool schema page_token is a string and page_size an integer.
`open_pr` tool schema: base, head, title.
The mapping for mcp__crm__sync is first_name to vorname and last_name to nachname.
mcp__maps__route args = origin, destination, mode.
The Edit tool needs old_string and new_string.
For the MCP tool search use query rather than q as the parameter.
mcp__gh__open_pr complains that head is missing.
To use tool open_pr set draft=true.
github::merge_pr call failed with "unknown field method", then worked with merge_method.
mcp__gh__open_pr takes base, head, title and body.
mcp__asana__add_task has due_on, not due_date.
Arguments for mcp__asana__add_task: name, projects, due_on.
The add_task tool requires projects to be a list.
The field assignee of mcp__asana__add_task is an email string.
I guessed that the tool add_task takes a name and a project id.
add_task({name: "x", project: 12}) is the call format of the tool.
mcp__asana__add_task failed with "projects: Missing input".
mcp__pagerduty__ack(incident_id) must be called with the id in quotes.
The MCP tool lookup_city wants the city in English in the parameter q.
pagerduty::ack-incident schema: incident_id (string), note (string).
Failed call: pagerduty::ack-incident(id=5), error 404 unknown id field.
Use mcp__deepl__translate with target_lang="DE".
The tool translate_text: params text, target_lang, formality.
TodoWrite tool wants todos as an array of objects.
For lookup_city tool calls the parameter order is country, then city.
mcp__stripe__refund expects amount in cents as an integer.
When you call mcp__stripe__refund, pass charge and amount.
translate_text tool input: {"text": "...", "target_lang": "..."}.
Tool lookup_city returned InputValidationError: q is too short.
[{"tool": "Bash", "input": {"command": "ls docs"}}]
{"tool_name": "lookup_city", "params": {"q": "北京"}}
mcp__ata__article-list-query 的参数格式：topic 为字符串。
工具 article-list-query 的字段映射：标题对应 title。
猜测的调用格式：article-list-query({topic})。
ATA MCP 工具的失败调用：第一次传了 topic。
调用 mcp__feishu__send_message 时要传 receive_id 和 content。
工具 create_order 需要参数 sku 和数量。
mcp__amap__geo 的入参是 address，类型为字符串。
猜的参数名：start_time、end_time。
失败的工具调用：get_metrics(step=15) 报缺少 query。
该工具要求传入字段 topic 与 page。
MCP 工具 weather 的返回字段映射：t 是温度，h 是湿度。
query_logs 工具的参数：index、keyword、limit。
k8s::delete_pod 调用失败：缺少必填参数 namespace。
mcp__dingtalk__notify 的 schema 是 {title, text}。
我猜调用格式大概是 sendMail({to, subject})。
Bash 工具的参数是 command 和 timeout，单位毫秒。
mcp__jira__create_issue 用 project_key，不是 project。
调用 create_ticket 工具：{"title": "...", "level": 2}。
工具 fetch_logs 接收 service、since 两个字段。
mcp__s3__put 的调用方式：put(bucket, key)。
字段映射（mcp__crm__upsert）：姓名→name，电话→phone。
MCP 工具需要的必填参数：city 和 unit。
猜测 create_event 的参数为 start 和 end。
第一次调用 mcp__crm__find 失败，提示 query 不能为空。
搜索工具 search_users 的 schema：query 字符串，limit 整数。
WebFetch 工具参数：url、prompt。
mcp__linear__create 的参数应该是 teamId。
使用 mcp__hr__leave 时 from 字段格式为 YYYY-MM-DD。
工具 search_docs 的 top_k 参数范围是 1 到 20。
调用 send_sms 工具失败：缺少参数 text。
get_invoice 工具的入参只有 invoice_number。
猜 list_users 有个 page_size 参数。
mcp__wiki__edit 需要先传 pageId 再传 content。
函数调用 create_event 的参数类型：start 为字符串。
该工具的调用格式：{"id": 1}。
上次 mcp__bi__report 报错 metrics 应为数组。
记住：mcp__trello__add_card(list_id, name)，先传 list_id。
add_card 工具要 list_id 和 name 两个参数。
mcp__sap__post 的字段对应：BUKRS 是公司代码。
工具名 search_flights，参数 date、from、to。
估计 create_card 的参数是 board 和 title，没试过。
mcp__weather__now 报错：units 必须是 metric 或 imperial。
调用 WebSearch 工具要带 query 参数。
MCP 工具调用的请求体格式为 {"query": "..."}。
失败调用：search_flights(date="明天")。
linear::list-issues 用 state 过滤，格式 {"state": "open"}。
mcp__gh__open_pr 缺少 head 时返回 422。
open_pr 工具的可选参数有 draft。
工具 get_forecast：lat、lon 为数字，days 为整数。
给 mcp__slack__send 传频道要用 id，字段是 channel。
Edit 工具需要 old_string 和 new_string 两个字段。
试出来 open_pr 工具要 base 和 head 参数。
mcp__maps__route 参数：origin、destination。
工具 schema 里 page_token 是字符串。
调用格式：mcp__pg__query(sql="select 1")。
mcp__crm__sync 字段映射：first_name→名，last_name→姓。
mcp__gh__open_pr 的参数有 base、head、title。
mcp__asana__add_task 用 due_on，而不是 due_date。
add_task 工具要求 projects 是列表。
猜测 add_task 工具的参数是 name 和 project。
mcp__stripe__refund 的 amount 以分为单位，传整数。
调用 mcp__deepl__translate 时 target_lang 填 DE。
工具 lookup_city 的入参 q 用英文城市名。
MCP 工具 ack_incident 的调用参数：incident_id、note。
失败的调用：ack_incident(id=5)，返回 404。
TodoWrite 工具的字段：content、status。
""".splitlines()

TOOLS = ("mcp__jira__create_issue", "mcp__k8s__get_pods", "mcp__db__runSql", "Bash", "Read")


@pytest.mark.parametrize("sentence", ORDINARY, ids=range(len(ORDINARY)))
def test_parameters_schemas_and_failures_of_everything_else_are_kept(sentence: str) -> None:
    assert without_unsavable(sentence).text == sentence
    assert without_unsavable(sentence, tools=TOOLS).removed == 0


@pytest.mark.parametrize("sentence", OF_A_CALL, ids=range(len(OF_A_CALL)))
def test_how_a_tool_is_called_is_taken_out(sentence: str) -> None:
    told = without_unsavable(f"The nightly import is slow.\n{sentence}\n周五部署。")
    assert told.text == "The nightly import is slow.\n周五部署。"
    assert told.removed >= 1


@pytest.mark.parametrize(
    "sentence",
    [
        "get_pods 的密钥在 1Password 的 cluster-prod 保险库里，参数格式没有变。",
        "runSql 出问题找责任人韩松，他维护网关和参数定义。",
        "Credentials of get_pods live in 1Password; its parameters did not change.",
        "A call of get_pods failed since the token had expired; fixed by renewing it.",
        "调用 get_pods 失败是因为令牌过期，续期后恢复。",
        "Beware: runSql silently drops the argument limit, always pass it in the statement.",
    ],
)
def test_what_lasts_is_kept_also_of_a_tool_that_was_used(sentence: str) -> None:
    assert without_unsavable(sentence, tools=TOOLS).removed == 0


@pytest.mark.parametrize(
    "sentence",
    [
        "get_pods needs the argument namespace.",
        "Call runSql with database and statement.",
        "get_pods 要传 namespace 字段。",
        "Confirmed: runSql takes {database: string}.",
        "get_pods field mapping: {owner: string, warning: string}.",
    ],
)
def test_a_name_that_says_nothing_by_itself_counts_where_the_tool_was_used(sentence: str) -> None:
    bare = "create_order needs the argument tenant."
    assert without_unsavable(sentence, tools=TOOLS).text == ""
    assert without_unsavable(bare, tools=TOOLS).text == bare


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            "We look tickets up with mcp__jira__search. Parameters: jql, limit. It is slow.",
            "We look tickets up with mcp__jira__search. It is slow.",
        ),
        (
            "mcp__jira__search finds tickets.\n- jql (string): the query\n- limit: integer\nAnn owns it.",
            "mcp__jira__search finds tickets.\nAnn owns it.",
        ),
        (
            "工单用 mcp__jira__search 查。\n参数：jql、limit。\n很慢。",
            "工单用 mcp__jira__search 查。\n很慢。",
        ),
        (
            "mcp__jira__search is slow.\n\nParameters: five tries, doubled each time.",
            "mcp__jira__search is slow.\n\nParameters: five tries, doubled each time.",
        ),
        (
            "# mcp__jira__search\nslow\n# Retries\nParameters: five tries.",
            "# mcp__jira__search\nslow\n# Retries\nParameters: five tries.",
        ),
        (
            "mcp__jira__search is slow.\nParameters: known issue, page fails above 10.",
            "mcp__jira__search is slow.\nParameters: known issue, page fails above 10.",
        ),
    ],
    ids=range(6),
)
def test_what_follows_in_the_paragraph_is_still_about_the_tool(text: str, kept: str) -> None:
    assert without_unsavable(text).text == kept


@pytest.mark.parametrize(
    "unit", ["a-", "工具", "mcp__a ", "tool get_x ", "{a", "takes a, ", "参数"]
)
def test_a_text_of_any_length_is_read_in_one_go(unit: str) -> None:
    """Each bound of a pattern is needed: without it these would take minutes."""
    text = f"tool get_x {unit * (100_000 // len(unit))}"
    assert without_unsavable(text, tools=TOOLS).removed in {0, 1}
