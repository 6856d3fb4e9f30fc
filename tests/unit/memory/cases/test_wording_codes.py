"""Numbers that name what happened stay; those that name one occasion do not."""

import time

import pytest

from memory.cases import wording
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
        ("HTTP 503", ["#http-503"]),
        ("HTTP/1.1 503 Service Unavailable", ["#http-503"]),
        ("HTTP status code: 401", ["#http-401"]),
        ("the upstream returned a 404", ["#http-404"]),
        ("502/503 errors", ["#http-502", "#http-503"]),
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
        ("状态码为 401", ["#http-401"]),
        ("接口返回503", ["#http-503"]),
        ("端口9092未放行", ["#port-9092"]),
        ("未放行2181端口", ["#port-2181"]),
        ("信号 11", ["#signal-11"]),
        ("版本 3.2.0", ["#version-3.2.0"]),
        ("Exit Code:    137", ["#code-137"]),
        ("ExitCode=143, exit_code 1, returncode 2", ["#code-143", "#code-1", "#code-2"]),
        ("status_code=503", ["#http-503"]),
        ("statusCode: 401", ["#http-401"]),
        ("http_status 502", ["#http-502"]),
        ("upstream_status=504", ["#http-504"]),
        ("response_code 500", ["#http-500"]),
        (
            "ORA\u201000060, ORA\u201101555, ORA\u201304031",
            ["#ora-00060", "#ora-01555", "#ora-04031"],
        ),
        ("ORA\u221200060, ORA\u201501555", ["#ora-00060", "#ora-01555"]),
        ("exit code 137 of the job", ["#code-137"]),
        ("port 9092 of kafka", ["#port-9092"]),
        ("errno 28 records", ["#code-28"]),
        ("gRPC code 14 per call", ["#code-14"]),
        ("MySQL server error 1040 connections", ["#code-1040"]),
        ("HTTP 503 a minute later", ["#http-503"]),
        ("错误码 1205 行锁等待", ["#code-1205"]),
        ("状态码 502 个别节点", ["#http-502"]),
        ("退出码 137 台账", ["#code-137"]),
        ("端口 9092 小写", ["#port-9092"]),
        ("AccessDenied (403)", ["#http-403"]),
        ("it failed with (503)", ["#http-503"]),
        ("502 Bad Gateway from upstream", ["#http-502"]),
        ("event id 4625", ["#event-4625"]),
        ("事件 ID 4740", ["#event-4740"]),
        ("SQLCODE=-551", ["#code-551"]),
        ("jdk 17.0.9, java 1.8.0_281", ["#java-17", "#java-8"]),
        ("Python 3.11.4, PHP 8.1.2", ["#python-3.11", "#php-8.1"]),
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
        "430 errors, 512 errors",
        "we got 480 alerts",
        "we got 500 alerts",
        "du returned 512 bytes",
        "it returned 404 orders",
        "返回 450 笔",
        "返回 500 笔",
        "日志里有 430 错误",
        "错误 45 起",
        "报错 450 单",
        "错误 500 多",
        "45/60 ready",
        "status: 45/60 ready",
        "job status 3",
        "exit 450 processes",
        "INC-00412 OPS-0412 CHG-00077 REQ-00100 PRB-01234 SHOP-00991",
        "INC0041233 CHG0030012",
        "SMS code 482913",
        "order code 77231",
        "segfault at 0x8f3a2b10",
        "jumped to address 0x80070005",
        "client port 51234, 源端口 43120",
        "the client speaks HTTP/2 and HTTP 3",
        "release 3.2 rc 1",
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
        ("it answers 503", "exit code 137"),
        ("状态码 503", "errno 28"),
        ("jdk 17.0.9", "jdk 17.0.11"),
        ("Python 3.11.4", "Python 3.11.9"),
        ("port 9092, port 51234", "port 9092, port 43120"),
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


@pytest.mark.parametrize("ending", ["", "x"])
@pytest.mark.parametrize(
    "piece",
    [
        *(
            "500/",
            "500/1/",
            "501、",
            "1/",
            "1.",
            "1_1.",
            "1 ",
            "12:",
            "1,1",
            "9092 ",
            "a:2181",
            "v1.",
        ),
        *("code ", "status = ", "status code ", "exit code(", 'code "', "errno (((", "rc ="),
        *("http/1.1 ", "http code status ", "upstream_status_", "response code ", "sms code = "),
        *("错误码", "错误 1", "端口 ", "版本 1.1.", "返回 ", "报 50", "事件 ID "),
        *("port 1/1", "java 1.", "java 1.1.1_1 ", "tls 1.", "sqlstate 1", "event id ", "signal "),
        *("ora-", "ORA-0-", "cve-2021-", "0x8", "at 0x80070005 ", "E123", "ghsa-a:"),
        *("returned a ", "got 503 ab", "failed with (", "denied (", "(403", "503 bad "),
        *("a-", "a-1-", "a.", "aB", "f0", "deadbee1-", "aaaaaaaa-aaaa-", "1.1.1.1:", "inc0000"),
        *("不", "不是没有", "池", "n't ", "un", "@a", "_", " ", "\t", "=", "\u2212", "\ufdfa"),
    ],
)
def test_time_grows_with_the_length_alone(
    monkeypatch: pytest.MonkeyPatch, piece: str, ending: str
) -> None:
    """Of whole texts, and not only of the beginning that is read of a section."""
    monkeypatch.setattr(wording, "MAX_CHARS", 1_000_000)

    def measure(length: int) -> float:
        text = (piece * (length // len(piece) + 1))[:length] + ending
        telling_words.cache_clear()
        began = time.process_time()  # what others do on the machine does not count
        telling_words(text)
        return time.process_time() - began

    small = max(min(measure(2_000) for _ in range(2)), 0.002)
    limit = small * 8 * 4  # a square would be 64 times as much
    assert any(measure(16_000) < limit for _ in range(3))
