from gateway.demo.respond import find_value, recognise

UNDERSTOOD: dict[str, tuple[str, str, dict[str, str]]] = {
    "List the files": ("list", "en", {"path": ""}),
    "please list the files in docs": ("list", "en", {"path": "docs"}),
    "列出文件": ("list", "zh", {"path": ""}),
    "你好，请列出文件": ("list", "zh", {"path": ""}),
    "列出 docs 里的文件": ("list", "zh", {"path": "docs"}),
    "docs里有哪些文件？": ("list", "zh", {"path": "docs"}),
    "read notes.md": ("read", "en", {"path": "notes.md"}),
    'read "my file.txt"': ("read", "en", {"path": "my file.txt"}),
    "Read the file notes.md please": ("read", "en", {"path": "notes.md"}),
    "读取文件.txt": ("read", "zh", {"path": "文件.txt"}),
    "读取《笔记/会议 记录.md》": ("read", "zh", {"path": "笔记/会议 记录.md"}),
    "write hello to a.txt": ("write", "en", {"path": "a.txt", "text": "hello"}),
    "write x to '/tmp/a b'": ("write", "en", {"path": "/tmp/a b", "text": "x"}),
    "Create a file notes.md with a short greeting": (
        *("write", "en"),
        {"path": "notes.md", "text": "a short greeting"},
    ),
    "把“你好，世界”写入 a.txt": ("write", "zh", {"path": "a.txt", "text": "你好，世界"}),
    "新建文件 notes.md，写一句问候": ("write", "zh", {"path": "notes.md", "text": "一句问候"}),
    "rename the file a.txt to b.txt": ("move", "en", {"path": "a.txt", "target": "b.txt"}),
    "把 旧.txt 重命名为 新.txt": ("move", "zh", {"path": "旧.txt", "target": "新.txt"}),
    "delete old.txt": ("delete", "en", {"path": "old.txt"}),
    "删除 文件.txt": ("delete", "zh", {"path": "文件.txt"}),
    "把 a.txt 删掉": ("delete", "zh", {"path": "a.txt"}),
    "remember that tea is good": ("remember", "en", {"text": "tea is good"}),
    "记住我喜欢绿色": ("remember", "zh", {"text": "我喜欢绿色"}),
    "What do you remember?": ("recall", "en", {}),
    "你记得什么？": ("recall", "zh", {}),
    "记忆系统里有什么？": ("recall", "zh", {}),
    "search cases for disk full": ("cases", "en", {"text": "disk full"}),
    "搜索案例：磁盘满了": ("cases", "zh", {"text": "磁盘满了"}),
    "use the memory-revise skill": ("skill", "en", {"name": "memory-revise", "text": ""}),
    "Use the skill memory-capture: call the Skill tool with this name. It follows.\n\ntea": (
        *("skill", "en"),
        {"name": "memory-capture", "text": "tea"},
    ),
    "请使用技能 memory-capture：先用这个名称调用 Skill 工具。附在后面。\n\n茶": (
        *("skill", "zh"),
        {"name": "memory-capture", "text": "茶"},
    ),
    "what is my codeword?": ("what_is_my", "en", {"key": "codeword"}),
    "我的暗号是什么": ("what_is_my", "zh", {"key": "暗号"}),
    "my mail is a@b.example. Keep it.": ("tell_my", "en", {"key": "mail", "text": "a@b.example"}),
    "我的暗号是李子": ("tell_my", "zh", {"key": "暗号", "text": "李子"}),
}
NOT_UNDERSTOOD = {
    "why is the sky blue?": "en",
    "The agent read notes.md yesterday": "en",
    "create a folder docs": "en",
    "hello": "en",
    "天气怎么样": "zh",
    "你好": "zh",
}


def test_plain_requests_are_recognised_in_both_languages() -> None:
    found = {prompt: recognise(prompt) for prompt in UNDERSTOOD}
    parts = {prompt: (one.kind, one.language, one.fields) for prompt, one in found.items()}
    assert parts == UNDERSTOOD


def test_everything_else_asks_for_help() -> None:
    found = {prompt: recognise(prompt) for prompt in NOT_UNDERSTOOD}
    assert {item.kind for item in found.values()} == {"help"}
    assert {prompt: one.language for prompt, one in found.items()} == NOT_UNDERSTOOD
    assert recognise(f"read {'x' * 5000}").kind == "help"


def test_a_value_is_found_by_its_key() -> None:
    assert find_value("Codeword", "my codeword is plum") == "plum"
    assert find_value("暗号", "我的暗号是李子") == "李子"
    assert find_value("name", "my codeword is plum") is None
