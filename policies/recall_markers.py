"""The words by which a text is about how a tool is called: its schema, parameters, call format, failed calls.

English and Chinese, inflected and hyphenated. Some tell of a call wherever they stand near a tool's name,
some only in the same sentence, some only right at the name.
"""

import re
from typing import Final

_GAP = r"[\s\-]{1,3}"
PARAM: Final = r"(?:param(?:eter)?s?|arguments?|args|fields?|inputs?|outputs?)"
_GUESSED = r"(?:calls?|tools?|usages?|formats?|param\w*|arg\w*|schemas?|signatures?|fields?)"

_ENGLISH_FORMS: Final = "|".join(
    (
        rf"failed{_GAP}(?:tool{_GAP})?(?:calls?|invocations?|attempts?)",
        rf"(?:tool{_GAP})?calls?{_GAP}(?:that{_GAP}|has{_GAP}|have{_GAP}|which{_GAP})?(?:failed|failures?)",
        rf"failing{_GAP}(?:tool{_GAP})?calls?",
        rf"(?:fields?|param(?:eter)?s?){_GAP}mappings?",
        rf"guess(?:ed|es|ing)?{_GAP}(?:(?:the|a|at|its|about){_GAP})*(?:tool{_GAP})?{_GUESSED}",
        rf"(?:input|output|json|tool|calls?|request|response|api|function|arguments?|args|param(?:eter)?s?){_GAP}schemas?",
        r"input_schema|inputschema",
        rf"{PARAM}{_GAP}(?:formats?|names?|types?|lists?|shapes?|order|specs?|definitions?|docs?|documentation)",
        rf"(?:required|optional|mandatory){_GAP}{PARAM}",
        rf"(?:tool{_GAP})?(?:call(?:ing)?|invocation|request|response|return|usage){_GAP}(?:formats?|conventions?|signatures?|syntax|shapes?|examples?)",
        rf"tool{_GAP}(?:usages?|definitions?|signatures?|arguments?|param(?:eter)?s?)",
        rf"usage{_GAP}references?",
    )
)
_CHINESE_FORMS: Final = (
    r"参数(?:的)?\s?(?:格式|模式|结构|说明|列表|名称?|类型|定义|顺序|表|规范|映射|schema)",
    r"入参|出参(?!数化)|传参|(?:必填|可选|必选|请求|工具|调用)(?:的)?参数|必填(?:字段|项)",
    r"调用(?:的)?(?:格式|方式|方法|语法|约定|示例|签名|样例|规范)|函数签名",
    r"字段(?:的)?(?:映射|对应|对照|定义|说明|列表)",
    r"失败(?:的|了的)?(?:工具)?调用|(?:工具)?调用(?:时|总是|又)?(?:失败|报错|出错)",
    r"猜测?(?:的|出的|出来的|了)?(?:工具|调用|参数|格式|字段|用法)|试出来的(?:参数|格式|调用)",
    r"(?:接口|api)\s?(?:的)?(?:文档|说明|定义|规范|格式)",
    r"工具(?:的)?\s?(?:用法|使用说明|使用方法|使用方式|使用参考|模式|定义|schema|文档)",
    r"用法参考|使用参考|请求格式|返回(?:值)?格式|(?:工具|参数|输入|输出)\s?(?:schema|模式)",
)
# The looks ahead pass by the most places at once; time, not meaning.
_ENGLISH: Final = rf"(?=[acfgijmoprtuACFGIJMOPRTU])(?:{_ENGLISH_FORMS})"
_CHINESE: Final = rf"(?=[一-鿿aA])(?:{'|'.join(_CHINESE_FORMS)})"
USAGE_NOUNS: Final = f"{_ENGLISH}|{_CHINESE}"
"""What a text may say of how something is called; an alternation without groups that capture."""

_WORD_START = r"(?<![a-z0-9_/\\.\-])"
_WORD_END = r"(?![a-z0-9_/\\]|[.\-][a-z0-9])"
"""Neither in a longer word nor in a path: `config/parameters.yaml` tells of no call."""

USAGE: Final = re.compile(rf"{_WORD_START}(?:{_ENGLISH}){_WORD_END}|{_CHINESE}", re.IGNORECASE)

TYPE: Final = (
    r"(?:strings?|str|int(?:eger)?s?|num(?:ber)?s?|floats?|bool(?:ean)?s?|arrays?|objects?|lists?|dicts?|enums?|null"
    r"|字符串|整数|整型|数字|布尔[值型]?|数组|对象|列表|枚举)"
)
_NO_PROSE_TYPE: Final = (
    r"(?:strings?|integers?|booleans?|arrays?|objects?|floats?|numbers?(?!\sof))(?![a-z])"
)
_TYPED: Final = (
    rf"[(（\[]\s?(?:(?:required|optional|必填|可选)\s?[,，]?\s?)?(?:array\sof\s)?{TYPE}\s?[)）\],，;；]"
    rf"|[:：]\s?[\"'`]?{TYPE}(?:\[\])?[\"'`]?(?=\s*(?:[,，;；|)}}\].。]|$))"
    rf"|[,，]\s?(?:an?|all|both)\s{_NO_PROSE_TYPE}"
)
_TYPED_IN_ENGLISH: Final = (
    rf"(?:must|should|(?:has|have|needs?)\sto)\s(?:all\s|both\s)?be\s(?:an?\s)?{_NO_PROSE_TYPE}"
    rf"|(?:as|both|all)\s(?:an?\s)?{_NO_PROSE_TYPE}|(?:is|are)\s(?:an?\s)?(?:array|list)\sof\s(?:[{{\[`]|{_NO_PROSE_TYPE})"
)
_TYPED_IN_CHINESE: Final = r"(?:[是为传填成用]|要传|必须)(?:一个|二维)?(?:字符串|整数|整型|数字|布尔|数组)|类型(?:必须)?[是为:：]|取值"
"""A field told with its type."""
_REFUSED_IN_ENGLISH: Final = (
    r"(?:\w{0,20}validation[ _]?(?:error|failed)|type_?error|bad\srequest|unprocessable|positional|must\sbe\s(?:named|called|spell?ed|spelt)"
    r"|(?:unknown|unexpected|missing|invalid|additional|unrecogni[sz]ed|required)\s(?:required\s)?(?:propert(?:y|ies)|keys?|keywords?)"
    r"|(?:may|must|can|should)\s(?:only\s)?be\sone\sof|(?:allowed|accepted)\svalues?)\b|(?:required|optional|mandatory)\s?[:：]"
)
_REFUSED_IN_CHINESE: Final = r"字段|必填|校验(?:失败|不通过|错误|报错)"
"""What a refused call says of its arguments."""
_OF_A_LANGUAGE: Final = (
    rf"(?!{_GAP}(?:expansions?|substitutions?|bindings?|stores?|sweeps?|tuning))"
)
"""`parameter expansion` is a shell's, `parameter binding` a database's."""

USAGE_BESIDE_A_NAME: Final = re.compile(
    rf"{_WORD_START}(?=[afiopsu])(?:{PARAM}{_OF_A_LANGUAGE}|schemas?|signatures?|usage|api{_GAP}(?:docs?|documentation|references?)){_WORD_END}"
    rf"|\b(?=[a-z])(?:{_TYPED_IN_ENGLISH}|{_REFUSED_IN_ENGLISH})|{_TYPED}"
    rf"|(?=[一-鿿])(?:参数(?!化)|用法|使用方法|使用说明|{_TYPED_IN_CHINESE}|{_REFUSED_IN_CHINESE})",
    re.IGNORECASE,
)
"""Words that tell of a call only where the tool is told of in the same sentence."""
IDENTIFIER: Final = (
    r"(?:[`\"'][A-Za-z]\w{0,40}[`\"']|\b[a-z][a-z0-9]{0,40}_\w{1,40}|\b[a-z]{1,40}[A-Z]\w{0,40})"
)
"""Written as a field is, and no word of a sentence; a service or a table is written like it as well."""
FIELD_TOLD: Final = re.compile(
    rf"{IDENTIFIER}(?:\s(?:is|are|was|were)\s(?:mandatory|optional|not\saccepted|case[\s\-]sensitive)\b"
    r"|\s?(?:只能填|要传|不传|可传|可填|可不[传填]|缺一不可|为?必填))"
    rf"|[要需须]传\s?{IDENTIFIER}"
)
"""What is said of a field of a call and hardly of anything else. A tool's name is to be taken out before:
it looks like a field."""
ABOUT_IT: Final = re.compile(
    r"\s*(?:(?:and|but|then)\s)?(?:(?:its|their)\s|(?:it|they)\s(?:also\s|only\s)?(?:takes?|accepts?|expects?|wants?|needs?|requires?|failed"
    r"|rejected|refused|(?:was|were)\s(?:rejected|refused)))|\s*(?:它们?|其(?!他|它|中|实|余)|该工具)",
    re.IGNORECASE,
)
"""Begins a sentence that goes on about the tool that the sentence before it told of."""

_NOT_OF_A_CALL: Final = (
    "(?!展开|扩展|替换|替代|解析|文件|传递|个数|数量|脚本|处理|化|[在写放存从由])"
)
"""`Bash 参数展开` tells of a language, `参数在 deploy.yaml` of a place."""
RIGHT_AT_A_NAME: Final = (
    rf"使用(?:方法|方式|说明|参数)|调用(?:方法|方式|说明|参数)|(?:必填|可选|必需|输入|全部)?(?:参数|入参|传参){_NOT_OF_A_CALL}"
    r"|用法(?!律)|(?:怎么|如何|怎样)(?:用|使用|调用|传)"
    r"|请求体|响应体|返回(?:值|结果|的?字段|的?数据)?(?:的?(?:结构|格式)|[是为]?\s?[{\[])|json\s?(?:结构|格式)|[只仅还]?(?:接受|接收|要传|需要传|必须传)\s?[`{a-z]"
)
"""Words that tell of a call where they stand right behind a tool's name."""
_GOES_ON: Final = r"(?=\s{0,2}(?:[:：=({（\[]|-\s|[—–]|(?:is|are|include)\b|$))"
WORDS_AT_A_NAME: Final = rf"(?i:usage|parameters?|params|arguments?|args|inputs?){_GOES_ON}"
_CLAUSE_HEAD: Final = r"[\s#>*\-\d.、`]{0,12}(?:(?:here\s(?:is|are)\s)?(?:the|its|their|this|these|an?)\s|其|它的|该工具的?|工具的)?"
_TELLS_OF_A_CALL: Final = (
    rf"(?:{_ENGLISH}){_WORD_END}(?!\s+(?:of|for|in|on)\s)|(?:{_CHINESE})(?!文件)"
)
_TELLS_IN_A_WORD: Final = rf"(?:{PARAM}|schemas?|signatures?|usage|参数|用法|使用方法|使用说明)"
UNATTRIBUTED_USAGE: Final = re.compile(rf"{_CLAUSE_HEAD}(?:{_TELLS_OF_A_CALL})", re.IGNORECASE)
"""A clause that tells first of all how something is called, and does not say what."""
UNATTRIBUTED_WORDS: Final = re.compile(rf"{_CLAUSE_HEAD}{_TELLS_IN_A_WORD}\s?[:：]", re.IGNORECASE)
BEHIND_A_LABEL: Final = (
    rf"(?i:{_CLAUSE_HEAD}(?:{_TELLS_OF_A_CALL}|{_TELLS_IN_A_WORD}\s?(?:[:：]|(?:is|are|include)\b|[是为有])"
    rf"|(?:takes|accepts|expects|传|要传)\s)|\s*(?:[{{`]|\w{{1,40}}\s?[(（:：]\s?{TYPE}))"
)
"""How a line goes on that begins with a tool's name as its label; a label may as well be a word:
"Task: document the parameter schema of the orders API"."""
