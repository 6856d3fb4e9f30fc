"""Notes on how a tool is called in plain words, and in sentences that go on without its name."""

import time

import pytest

from policies.recall import ActiveTools

TOOLS = (
    *("mcp__ata__article-list-query", "Read", "Write", "Edit", "Bash", "Grep", "Glob", "Skill"),
    *("ls", "WebFetch", "Task"),
)
RIGHT_AT_THE_NAME = (
    "# Bash 使用方法\ncommand 是字符串，必填",
    "bash 参数: command 字符串",
    "Bash 用法：传 command",
    "bash用法",
    "Bash 的用法是先传 command",
    "使用 Bash 的参数：command",
    "调用 Bash 的参数为 command",
    "使用 Bash 工具时的参数是 command",
    "使用 Bash 需要的参数：command",
    "Bash 入参 command",
    "# Bash 使用说明\n传 command",
    "Bash 工具的使用方法：command",
    "`Bash` 参数\n- command 字符串",
    "**Bash** 參數：command",
    "用法：Bash 传 command",
    "Bash 怎么用：传 command",
    "如何使用 Bash：传 command 字段",
    "Read 参数：file_path 路径",
    "Write 的参数有 file_path、content",
    "Grep 必填参数 pattern",
    "WebFetch 参数 url 和 prompt",
    "article-list-query 用法：topic",
    "Bash usage: command (string)",
    "# Bash parameters\n- command: string",
)
GOES_ON = (
    "To use the Write tool, pass file_path and content.\nThe input schema: {file_path: string, content: string}",
    'Bash tool: call it with command="ls"; required arguments: command.',
    "Write 工具要传两个字段。\n参数说明：file_path 路径，content 内容",
    "使用 Write 工具要传两个字段。\n参数：file_path",
    "The Write tool takes two things. Parameters: file_path, content",
    "The tool Write wants two things.\nIts required parameters are file_path and content",
    "Write: two things.\nInput schema: {file_path}",
    "Write 工具：两个字段。入参：file_path",
    "Write 工具除了路径还要内容。\n入参：file_path",
    "Edit 工具\n字段说明：old_string",
    "`Bash` tool. The call format is {command}",
    "Notes on the Grep tool\nArguments: pattern, path",
    "- Write: two things\n  Input schema: {file_path}",
    "Nothing yet.\n\nWrite: two things.\nMore on it later.\nInput schema: {file_path}",
)
PROSE = (
    "bash 脚本的参数在 deploy.yaml 里",
    "bash 脚本参数：--env",
    "部署的 bash 脚本用法见 README",
    "Bash 参数展开 ${x:-y} 会去掉引号",
    "bash 参数传递方式改了部署脚本",
    "bash 参数文件是 params.env",
    "bash 参数写在 env 里",
    "我们用 Bash 部署，参数在 deploy.yaml",
    "运行 bash 部署脚本，参数写在 env 里",
    "Bash 用户的默认参数在 /etc/profile",
    "读写配置的用法见 README",
    "任务参数：5 个 worker",
    "ls 命令的输出参数化了",
    "The bash parameters file is params.env",
    "Bash parameter expansion strips quotes",
    "Edit parameters in config.yaml",
    "Read arguments: from argv",
    "Use Bash to migrate. The field mapping of the importer is in mapping.yaml",
    "I used the Bash tool to migrate. The request schema of billing changed to v2.",
    "Used the Bash tool to deploy.\nInput schema: orders {id}",
    "The Bash tool ran the importer. Input schema: orders",
    "The Bash tool is in use. The billing request schema changed.",
    "The Bash tool is in use. The input schema of billing changed.",
    "Bash 工具跑完了迁移。\n参数说明：见订单服务门户",
    "用 Bash 工具跑迁移。\n参数说明：见订单服务门户",
    "Bash 工具可以跑迁移。订单服务的参数说明在门户",
    "- Bash: ok\n- Parameters: 5 workers",
    "Bash: ok\n\nInput schema: billing {id}",
    "Bash: ok\nStripe API:\nInput schema: {id}",
    "Bash: ok\n## Billing\nInput schema: {id}",
    "The tool chain was upgraded. Parameters: -O2",
)
DURABLE = (
    "The Write tool: known issue: it cuts at 2000 lines. Input schema: x",
    "Bash tool warning: quoting breaks.\nRequired arguments: command",
    "The Write tool is owned by the platform team.\nParameters: file_path",
    "Bash tool: escalate to the platform team.\nParameters: command",
    "Write tool workaround: make the directory first.\nInput schema: {file_path}",
    "Bash 工具的负责人是平台组。\n参数说明：见门户",
    "Write 工具的变通方法：先建目录。\n参数：file_path",
    "Bash 用法的升级路径：找平台组",
    "bash 参数的注意事项：空格要加引号",
    "Bash 使用方法\n已知问题：管道会丢退出码",
)


@pytest.mark.parametrize("text", [*RIGHT_AT_THE_NAME, *GOES_ON])
def test_how_an_active_tool_is_called_is_held_back_as_a_block_and_as_an_item(text: str) -> None:
    tools = ActiveTools.of(TOOLS)
    title, _, rest = text.partition("\n")
    assert tools.holds_back("", text)
    assert tools.holds_back("memory/notes.md", text)
    assert tools.holds_back(title, rest)


@pytest.mark.parametrize("text", [*RIGHT_AT_THE_NAME, *GOES_ON])
def test_without_the_tool_in_use_it_is_shown(text: str) -> None:
    assert not ActiveTools.of(["mcp__x__other-tool", "NotebookEdit"]).holds_back("", text)


@pytest.mark.parametrize("text", [*PROSE, *DURABLE])
def test_prose_and_what_is_of_lasting_use_are_shown(text: str) -> None:
    assert not ActiveTools.of(TOOLS).holds_back("", text)


@pytest.mark.parametrize("text", RIGHT_AT_THE_NAME)
@pytest.mark.parametrize(
    "durable", ["Known issue: it hangs on Mondays.", "注意事项：路径要绝对", "Owner: platform team"]
)
def test_a_line_of_lasting_use_shows_the_whole_note(text: str, durable: str) -> None:
    assert not ActiveTools.of(TOOLS).holds_back("", f"{text}\n{durable}")


def test_what_is_far_behind_in_the_paragraph_is_not_the_tools() -> None:
    line = "Nothing of note here\n"
    near, far = (f"Bash tool: ok.\n{line * many}Input schema: {{id}}" for many in (8, 80))
    assert ActiveTools.of(TOOLS).holds_back("", near)
    assert not ActiveTools.of(TOOLS).holds_back("", far)


@pytest.mark.parametrize(
    "unit", ["Bash tool\n", "Bash:\n", "the Bash tool. ", "Bash 工具\n", "- Bash: ok\n", "Bash 的"]
)
def test_time_grows_with_the_length_alone(unit: str) -> None:
    tools = ActiveTools.of(TOOLS)

    def measure(length: int) -> float:
        text = (unit * (length // len(unit) + 1))[:length]
        began = time.process_time()  # what others do on the machine does not count
        tools.holds_back("", text)
        return time.process_time() - began

    small = max(min(measure(10_000) for _ in range(3)), 0.002)
    assert min(measure(80_000) for _ in range(2)) < small * 8 * 5  # a square would be 64 times
