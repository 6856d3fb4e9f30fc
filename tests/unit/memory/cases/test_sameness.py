"""When a case is only told again."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.cases.case import CaseContent, CaseMetadata
from memory.cases.sameness import are_at_odds, is_same
from memory.cases.sections import SectionComparer, SectionSimilarity
from memory.embeddings.hashed import HashedEmbedder
from tests.unit.memory.cases.judged import make_case, make_content

EQUAL = SectionSimilarity(symptom=1.0, diagnosis=1.0, root_cause=1.0)


async def same(one: CaseContent, other: CaseContent) -> bool:
    comparer = SectionComparer(HashedEmbedder())
    (similarity,) = await comparer.compare(one, [make_case(content=other)])
    mine = is_same(one, other, similarity)
    assert mine == is_same(other, one, similarity)
    return mine


def incident(number: int) -> CaseContent:
    """Tell of an incident as many would: with a number, a host, a moment and a pod of its own."""
    return make_content(
        symptom_summary=f"Pods are evicted from node-{number} since 10:{number:02}",
        diagnosis=f"df on 10.0.0.{number} shows /var/lib/docker at {60 + number} % with container logs"
        f" of checkout-7d9c5b8f{number % 10}-x2x9{number % 10}.",
        root_cause=f"Container logs were not rotated on node-{number}",
    )


async def test_twenty_tellings_with_other_numbers_hosts_and_moments_are_one() -> None:
    first = incident(0)
    assert all([await same(first, incident(number)) for number in range(1, 20)])


async def test_twenty_tellings_that_name_one_code_are_one_too() -> None:
    def failure(number: int) -> CaseContent:
        return make_content(
            symptom_summary=f"checkout on node-{number} exits with code 137 since 10:{number:02}",
            diagnosis=f"dmesg of 10.0.0.{number} shows signal 9, version 3.{number}.1, {number} errors",
            root_cause=f"The memory limit of {256 + number} Mi is too low, port 9092",
        )

    assert all([await same(failure(0), failure(number)) for number in range(1, 20)])


@pytest.mark.parametrize("field", ["symptom_summary", "diagnosis", "root_cause", "resolution"])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("the update failed with ORA-00060", "the update failed with ORA-01555"),
        ("批量更新报 ORA-00060", "批量更新报 ORA-01555"),
        ("the writer died, errno 28", "the writer died, errno 24"),
        ("写入失败，错误码 28", "写入失败，错误码 24"),
        ("the leak is on Java 17", "the leak is on Java 11"),
        ("泄漏出现在 jdk17", "泄漏出现在 jdk11"),
        ("the firewall blocks port 9092", "the firewall blocks port 2181"),
        ("防火墙拦截端口 9092", "防火墙拦截端口 2181"),
    ],
)
async def test_another_code_is_another_case_wherever_it_stands(
    field: str, one: str, other: str
) -> None:
    fields: list[dict[str, Any]] = [{field: one}, {field: other}]
    assert not await same(*(make_content(**each) for each in fields))
    assert await same(make_content(**fields[0]), make_content(**fields[0]))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Increase prefetch to 200", "Decrease prefetch to 1"),
        ("增大 prefetch 到 200", "减小 prefetch 到 1"),
        ("Enable log compression", "Disable log compression"),
        ("打开日志压缩", "关闭日志压缩"),
        ("Run the migration before the deploy", "Run the migration after the deploy"),
        ("发布之前执行迁移", "发布之后执行迁移"),
        ("Restart the broker", "Never restart the broker"),
        ("重启消息代理", "不要重启消息代理"),
    ],
)
async def test_opposite_resolutions_keep_two_cases_apart(one: str, other: str) -> None:
    assert not await same(make_content(resolution=one), make_content(resolution=other))


@pytest.mark.parametrize("other", ["Decreased the retention of logs", "Restarted the kubelet", ""])
async def test_another_resolution_that_is_no_opposite_is_only_one_more_report(other: str) -> None:
    assert await same(make_content(resolution="Increased the disk"), make_content(resolution=other))


@pytest.mark.parametrize(
    "fields",
    [
        {"symptom_summary": "Pods were evicted from the node again"},
        {"diagnosis": "df showed /var/lib/docker filled with container logs."},
        {"root_cause": "The container logs had not been rotated"},
        {"root_cause": "Unrotated container logs"},
        {"resolution": "Restarted the kubelet."},
    ],
)
async def test_the_same_in_slightly_other_words_is_the_same(fields: dict[str, Any]) -> None:
    assert await same(make_content(), make_content(**fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"root_cause": "Container images were not removed"},
        {"root_cause": "Container logs were rotated"},
        {"root_cause": "Container logs of the audit were not rotated"},
        {"root_cause": "The frobnicator did not rotate container logs"},
        {"root_cause": "Something"},
        {"diagnosis": "The certificate of the registry is not trusted."},
        {"symptom_summary": "TLS handshakes fail"},
    ],
)
async def test_another_telling_word_negation_or_finding_is_another_case(
    fields: dict[str, Any],
) -> None:
    assert not await same(make_content(), make_content(**fields))


async def test_a_conflict_of_the_surroundings_keeps_them_apart() -> None:
    here = make_content(metadata=CaseMetadata(failure_layer="os", related_services=("a",)))
    assert await same(here, make_content(metadata=CaseMetadata(failure_layer="os")))
    for there in (
        CaseMetadata(failure_layer="db"),
        CaseMetadata(failure_layer="os", related_services=("b",)),
    ):
        assert not await same(here, make_content(metadata=there))


async def test_without_a_root_cause_everything_told_has_to_be_the_same() -> None:
    silent = make_content(root_cause="")
    assert await same(silent, make_content(root_cause=" ", diagnosis=silent.diagnosis.upper()))
    assert not await same(silent, make_content())
    assert not await same(silent, make_content(root_cause="", resolution="Deleted images."))
    assert not await same(silent, make_content(root_cause="", diagnosis="df is fine."))


async def test_a_root_cause_that_names_no_matter_has_to_be_told_in_the_same_words() -> None:
    odd = make_content(root_cause="The node and its database")
    assert await same(odd, make_content(root_cause="Its database and the node"))
    assert await same(odd, make_content(root_cause="The node and its existing database"))
    assert not await same(odd, make_content(root_cause="The client and its database"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"symptom_summary": "it answers 503"}, {"symptom_summary": "it answers 500"}),
        ({"diagnosis": "容器退出码 137"}, {"diagnosis": "容器退出码 139"}),
        ({"resolution": "Set port 9092"}, {"resolution": "Set port 2181"}),
        ({"resolution": "Increase prefetch"}, {"resolution": "Decrease prefetch"}),
        ({"resolution": "增大 prefetch"}, {"resolution": "减小 prefetch"}),
        ({"root_cause": "The lock on write is held"}, {"root_cause": "The lock on read is held"}),
        ({"root_cause": "磁盘写满"}, {"root_cause": "磁盘变慢"}),
        (
            {"root_cause": "先更新缓存再更新数据库"},
            {"root_cause": "先更新数据库再更新缓存"},
        ),
        (
            {"metadata": CaseMetadata(failure_layer="db")},
            {"metadata": CaseMetadata(failure_layer="jvm")},
        ),
    ],
)
def test_two_tellings_that_fit_a_third_may_be_at_odds_with_each_other(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    mine, theirs = make_content(**one), make_content(**other)
    assert are_at_odds(mine, theirs)
    assert are_at_odds(theirs, mine)
    assert not is_same(mine, theirs, EQUAL)
    assert not are_at_odds(mine, make_content(**one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"symptom_summary": "it answers 503"}, {"symptom_summary": "kubelet: exit code 137"}),
        ({"symptom_summary": "30 errors"}, {"symptom_summary": "512 errors"}),
        ({"diagnosis": "INC-00412 on jdk 17.0.9"}, {"diagnosis": "INC-00518 on jdk 17.0.11"}),
        ({"diagnosis": "client port 51234"}, {"diagnosis": "client port 43120"}),
        ({"resolution": "Increase prefetch"}, {"resolution": "Restarted the node"}),
        ({"root_cause": "磁盘写满"}, {"root_cause": "磁盘被日志占满"}),
        ({"root_cause": "The lock is held"}, {"root_cause": "The lock of the write is held"}),
        ({"metadata": CaseMetadata(failure_layer="db")}, {}),
    ],
)
def test_saying_less_or_something_else_is_not_at_odds(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    assert not are_at_odds(make_content(**one), make_content(**other))
    assert not are_at_odds(make_content(**other), make_content(**one))


@pytest.mark.parametrize("field", ["symptom", "diagnosis", "root_cause"])
def test_each_section_has_to_be_near(field: str) -> None:
    values: dict[str, Any] = {"symptom": 1.0, "diagnosis": 1.0, "root_cause": 1.0}
    assert is_same(make_content(), make_content(), SectionSimilarity(**values))
    values[field] = 0.59
    assert not is_same(make_content(), make_content(), SectionSimilarity(**values))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The retry was applied", "The retry was not applied"),
        ("The retry was not applied", "The applied retry failed"),
        ("The retry was applied", "The applied retry failed"),
        ("The node and its database", "The client and its database"),
        ("A leak in settlement-job", "A leak in audit-writer"),
        ("奇异果里有泄漏", "火龙果里有泄漏"),
        ("The leak came before the deploy", "The leak came after the deploy"),
        ("The pool leaks on port 9092", "The pool leaks on port 2181"),
    ],
)
def test_vectors_alone_make_no_two_root_causes_one(one: str, other: str) -> None:
    assert not is_same(make_content(root_cause=one), make_content(root_cause=other), EQUAL)


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_two_root_causes_can_be_judged_in_either_order(one: str, other: str) -> None:
    mine, theirs = make_content(root_cause=one), make_content(root_cause=other)
    assert is_same(mine, theirs, EQUAL) == is_same(theirs, mine, EQUAL)
    assert is_same(mine, mine, EQUAL)
