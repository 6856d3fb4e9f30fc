"""A text of Markdown ends every block that it begins."""

import pytest

from gateway.http.markdown_blocks import closed


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("```\nls", "```"),
        ("~~~~ sh\n~~~\nls", "~~~~"),
        ("1. so:\n   ````\n   ```", "   ````"),
        ("```\n~~~", "```"),
        ("```\n``` sh", "```"),
        ("```\n    ```", "```"),
        ("a\n<!-- b", "-->"),
        ("<PRE>\n\nls", "</pre>"),
        ("<![CDATA[ b", "]]>"),
        ("<!-- one -->\n<? two", "?>"),
    ],
)
def test_a_block_that_is_open_is_ended(text: str, end: str) -> None:
    assert closed(text) == f"{text}\n{end}"
    assert closed(closed(text)) == closed(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain `code` and ```in a line``` of text",
        "```a```",
        "```sh\nls\n```",
        "```\nls\n`````  ",
        "    ```\nindented",
        "<!-- one -->",
        "<pre>\nls\n</SCRIPT>\n",
        "<prefix>\nno block",
        "a <!-- in a line",
    ],
)
def test_a_text_without_an_open_block_stays_as_it_is(text: str) -> None:
    assert closed(text) == text
