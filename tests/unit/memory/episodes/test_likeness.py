"""When two texts tell the same: what is merged, and above all what is not."""

import pytest

from memory.episodes.likeness import sketch, tell_the_same, words_of

BASE = (
    "The nightly backup of the orders database broke because the disk of the backup host was full. "
    "We freed space by deleting the old archives in /var/backups/orders and ran backup.sh again, and "
    "the archive was complete with code 0. Ann watches the disk from now on."
)
BASE_ZH = (
    "订单库的夜间备份出错,因为备份机的磁盘已满。删除 /var/backups/orders 里的旧归档之后重新执行 backup.sh,"
    "归档完整,退出码为 0。以后由张三负责关注磁盘空间,并在每周一检查一次归档。"
)


def alike(one: str, other: str) -> bool:
    return tell_the_same(words_of(one), words_of(other))


SAME = {
    BASE: [
        BASE,
        BASE.replace("We freed", "So we then freed"),
        BASE.replace("because", "since"),
        BASE.replace(". ", ".\n- "),
        BASE.replace("complete", "really complete"),
        BASE + " This is worth a note in the handbook of the team.",
    ],
    BASE_ZH: [
        BASE_ZH,
        BASE_ZH.replace("之后重新", "之后又重新"),
        BASE_ZH.replace("。", "。\n"),
        BASE_ZH + "这件事值得写进团队的手册里。",
    ],
}


def test_the_same_in_slightly_other_words_is_alike() -> None:
    pairs = [(base, other) for base, others in SAME.items() for other in others]
    assert [other for base, other in pairs if not alike(base, other)] == []


OTHER = """
code 0 | code 7 ¦ /var/backups/orders | /var/backups/invoices ¦ backup.sh | restore.sh
was full | was not full ¦ was complete | was never complete ¦ Ann watches | Bob watches
deleting the old | deleting the new ¦ nightly backup | weekly backup ¦ from now on | from monday on
orders database | customers database ¦ because the disk | although the disk
host was full | host was fine
"""
OTHER_ZH = """
退出码为 0 | 退出码为 7 ¦ backup.sh | restore.sh ¦ 归档完整 | 归档不完整 ¦ 磁盘已满 | 磁盘未满
旧归档 | 新归档 ¦ 张三 | 李四 ¦ 订单库 | 客户库 ¦ 每周一 | 每周五 ¦ 夜间 | 日间 ¦ orders | invoices
"""


@pytest.mark.parametrize(("base", "table"), [(BASE, OTHER), (BASE_ZH, OTHER_ZH)], ids=["en", "zh"])
def test_another_number_name_file_negation_or_word_is_not_alike(base: str, table: str) -> None:
    rows = [row.strip().split(" | ") for row in table.strip().replace("\n", " ¦ ").split(" ¦ ")]
    assert [here for here, _ in rows if here not in base] == []
    changed = [base.replace(here, there) for here, there in rows]
    assert [other for other in changed if alike(base, other) or alike(other, base)] == []


def test_short_texts_are_alike_only_where_all_words_are_equal() -> None:
    assert alike("use redis here", "Use redis, here!")
    assert not alike("use redis here", "use kafka here")
    assert not alike("重启服务", "停止服务")
    assert not alike("plan A", "plan B")


def test_like_texts_share_marks_and_realms_share_none() -> None:
    mine = set(sketch(words_of(BASE), "a"))
    like = set(sketch(words_of(BASE.replace("complete", "really complete")), "a"))
    assert len(mine & like) >= 2
    assert not mine & set(sketch(words_of(BASE), "b"))
    assert sketch(words_of("too short for marks"), "a") == ()
