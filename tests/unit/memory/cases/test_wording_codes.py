"""Numbers that name what happened stay; those that name one occasion do not."""

import pytest

from memory.cases.codes import OCCASIONAL, PLACES, codes_differ
from memory.cases.wording import kind_of, telling_words


def codes(text: str) -> list[str]:
    return [word for word in telling_words(text) if kind_of(word) == "code"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("failed with ORA-00060: deadlock", ["#ora-00060"]),
        ("报 ora-01555，TNS-12541", ["#ora-01555", "#tns-12541"]),
        ("CVE-2021-44228", ["#cve-2021-44228"]),
        ("0x80070005", ["#code-0x80070005"]),
        ("the device said E10234", ["#e-10234"]),
        ("SQLSTATE 40001, SQLSTATE[HY000]", ["#sqlstate-40001", "#sqlstate-hy000"]),
        ("exit code 137", ["#code-137"]),
        ("exited with 137", ["#code-137"]),
        ("exit code was (137)", ["#code-137"]),
        ("[Errno 28] No space left", ["#code-28"]),
        ("errno=24", ["#code-24"]),
        ("HTTP 503", ["#code-503"]),
        ("HTTP/1.1 503 Service Unavailable", ["#code-503"]),
        ("HTTP status code: 401", ["#code-401"]),
        ("the upstream returned a 404", ["#code-404"]),
        ("502/503 errors", ["#code-502", "#code-503"]),
        ("MySQL error 1213", ["#code-1213"]),
        ("WinError 10054", ["#code-10054"]),
        ("signal 9", ["#signal-9"]),
        ("port 9092, port=2181", ["#port-9092", "#port-2181"]),
        ("the firewall blocks 9092, zk:2181", ["#port-9092", "#port-2181"]),
        ("Java 17, jdk11, openjdk-8", ["#java-17", "#java-11", "#java-8"]),
        ("TLS 1.2", ["#tls-1.2"]),
        ("version 3.19.1", ["#version-3.19.1"]),
        ("错误码 1213", ["#code-1213"]),
        ("退出码：137", ["#code-137"]),
        ("状态码为 401", ["#code-401"]),
        ("接口返回503", ["#code-503"]),
        ("端口9092未放行", ["#port-9092"]),
        ("未放行2181端口", ["#port-2181"]),
        ("信号 11", ["#signal-11"]),
        ("版本 3.2.0", ["#version-3.2.0"]),
    ],
)
def test_a_code_stays_as_a_telling_word(text: str, named: list[str]) -> None:
    assert codes(text) == named


@pytest.mark.parametrize(
    "text",
    [
        "12 errors at 10:02",
        "error 3 times",
        "error rate 45 %",
        "500 errors per minute",
        "it returned 500 rows",
        "error 10.2.3.4 unreachable",
        "status 2026-03-01",
        "since v3.19.1",
        "connection from 10.0.0.5 port 51234",
        "the port of node 17",
        "redis at 10.0.0.5:6379",
        "it took 8080 ms",
        "3306 rows",
        "node-12 ip-10-2-48 redis-3 pod-4 host-7",
        "INC-1234",
        "java 8 threads",
        "0x7ffe1234abcd5678",
        "密码 123456",
        "源代码 300 行",
        "错误 3 次",
        "28000 个端口",
    ],
)
def test_a_count_a_moment_a_host_or_a_ticket_is_no_code(text: str) -> None:
    assert codes(text) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("exit code 137", "退出码 139"),
        ("HTTP 502, HTTP 503", "HTTP 503, HTTP 504"),
    ],
)
def test_codes_differ_where_each_names_one_that_the_other_does_not(one: str, other: str) -> None:
    mine, theirs = telling_words(one), telling_words(other)
    assert codes_differ(mine, theirs, but=PLACES)
    assert codes_differ(theirs, mine, but=PLACES)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("exit code 137", "退出码 137"),
        ("exit code 137", "it exited"),
        ("HTTP 502, HTTP 503", "HTTP 503"),
        ("exit code 137", "port 9092"),
        ("port 9092", "port 2181"),
    ],
)
def test_codes_do_not_differ_where_one_says_less_or_of_another_sort(one: str, other: str) -> None:
    mine, theirs = telling_words(one), telling_words(other)
    assert not codes_differ(mine, theirs, but=PLACES)
    assert not codes_differ(theirs, mine, but=PLACES)


def test_which_sorts_play_no_part_is_up_to_the_caller() -> None:
    ports = (telling_words("port 9092"), telling_words("port 2181"))
    versions = (telling_words("version 3.1"), telling_words("version 3.2"))
    assert codes_differ(*ports, but=OCCASIONAL)
    assert not codes_differ(*versions, but=OCCASIONAL)
    assert codes_differ(*versions, but=frozenset())


@pytest.mark.parametrize(
    "piece", ["code ", "status = ", "1/", "exit code(", "port 1/1", "错误码", "ora-", "1."]
)
def test_no_text_takes_long_to_read(piece: str) -> None:
    telling_words(piece * 4000)
