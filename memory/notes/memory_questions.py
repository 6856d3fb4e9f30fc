"""Recognises messages that ask about what is remembered, and not about a machine's or a person's memory.

Phrases with another meaning are removed first (`memory leak`, 内存, 记忆犹新). Some of the remaining phrases
are clear (`your memory`, 记忆系统); others count only if the message does not mention machines. A false
positive costs room in the prompt; a false negative an answer that denies having any memory. Repetitions in
the expressions are bounded, so the time is linear.
"""

import re
import unicodedata
from typing import Final

_MAX_CHARS: Final = 4000
"""Of a longer message the beginning and the end are read, because a question stands before or after what
was pasted."""

_MACHINE_BEFORE: Final = (
    r"shared|virtual|physical|gpu|cpu|video|graphics|heap|stack|flash|main|free|freed|freeing|used|available"
    r"|total|peak|max|maximum|min|minimum|more|less|enough|insufficient|sufficient|much|little|extra|spare"
    r"|additional|low|high|alloc\w{0,6}|leak(?:s|ed|ing)?|consum(?:e|es|ed|ing)|us(?:es|ing)"
    r"|eat(?:s|ing)?(?: up)?|hog(?:s|ging)?|reserve[sd]?|reserving|kernel|device|host|node|pod|process"
    r"|container|server|worker|browser|phone|laptop|computer|machine|jvm|java|python|redis|docker|vm|cache"
    r"|dynamic|unified|volatile|associative|muscle|human|collective|childhood|short[- ]term|working|in"
)
_MACHINE_AFTER: Final = (
    r"leak\w*|usage|use|limit\w*|pressure|errors?|bound|footprint|alloc\w+|address\w*|management|mapped"
    r"|mapping|map|profil\w+|safe|safety|bandwidth|corruption|overflow|models?|cost|test\w*|card|foam|lane"
    r"|palace|game|stick|barrier|order\w*|snapshot|dump|cell|bus|controller|hierarchy|region|block|pool"
    r"|budget|cap|spike\w*|hog|intensive|access|violation|layout|alignment|size|requirement\w*|quota"
    r"|requests?|metrics?|growth|efficien\w+|hungry|fragmentation|wall|cache|view|consum\w+|optimi[sz]\w+"
    r"|constraint\w*|capacity|module|problems?|issues?|trouble|chip\w*|slot|speed|clock|heap|page|paging|protection|loss|serves"
    r"|is (?:bad|terrible|failing|full|low|growing|exhausted|running)|fails|grows|keeps growing"
)
_SOMETHING_ELSE: Final = re.compile(
    r"\b(?:out|lack|lots?|amount|chunk|block|piece|plenty|kinds?|types?|region|page|bit|most|half|gigs?"
    r"|(?:giga|mega|kilo)?bytes?|\d{1,9}|\d{0,9} ?[kmgt]i?b) of (?:the |its )?memory\b"
    r"|\b(?:short|low) on memory\b|\b\d{1,9} ?[kmgt]i?b memory\b"
    rf"|\b(?:{_MACHINE_BEFORE})(?:'s|-)? ?-?memory\b(?<!\bin memory)"
    rf"|\b(?:(?:in|from|into|the|a|my|your|of) )?memory[- ](?:{_MACHINE_AFTER})\b"
    r"|\b(?:in (?:loving )?memory of|into memory|if my memory|(?:know|recite|wrote|write|draw) \w{1,12} from memory)\b"
    r"|\b(?:childhood|good|fond|bad|happy|sweet) memories\b"
    r"|内存|內存|显存|[记記][忆憶](?:犹|猶|尤|力|体|體|型|棉|卡|曲|深刻|中的味道|碎片|化|合金|[宫宮]|面包|[点點]|法|方法|技巧"
    r"|单词|單詞|枕|金属|[术術]|大[师師]|障碍|衰退|减退|丧失|缺失|效[率应應]|能力|水平|游戏|單元|单元|口诀)"
    r"|(?:肌肉|联想|聯想|童年|儿时|兒時|集体|集體|文化|民族|城市|青春|美好的?|失去|丧失|恢复|短[时時期]|无|無)[记記][忆憶]"
    r"|(?:勾起|[唤喚]起|[唤喚]醒|[尘塵]封)[^。！!]{0,8}[记記][忆憶]|我的?[记記][忆憶][中里裡](?![有没沒都存还還的])",
)
_ABOUT_MACHINES: Final = re.compile(
    r"\b(?:ram|oom\w{0,8}|\d{0,9}[kmgt]i?b|\d{1,9}[kmgt]|heap|malloc|mmap|swap|garbage|gc|rss|cgroups?|kubernetes|k8s|pods?"
    r"|containers?|docker|jvm|cpu|gpu|cuda|vram|disks?|numpy|pandas|dataframes?|alloc\w{0,9}|leak\w{0,5}"
    r"|buffers?|pointers?|segfaults?|threads?|htop|valgrind|kernel|laptop|iphone|ddr\d?|bytes?"
    r"|server|runtime|array|sort|load(?:s|ed|ing)?)\b|内存|內存|显存|[记記][忆憶][体體]"
    r"|占用|泄[漏露]|不足|不[够夠]|溢出|限制|地址|容器|[进進]程|上限|使用率"
)
_KEPT: Final = r"(?:know|remember(?:ed)?|memori[sz]ed?|learn(?:ed|t)?|noted?|stored?|saved?|kept|keep|recorded|have|hold|got)"
_KEPT_OF_ME: Final = (
    r"\b(?:what|which|everything|anything|all|things|facts|notes|information|info|details|preferences)\b[^.?!]{0,30}"
    rf"\b(?:you|u)(?:'ve)? (?:\w{{1,12}} )?{_KEPT}\b[^.?!]{{0,20}}\b(?:about|on|of) (?:me|us)\b"
    r"|\b(?:have|did) (?:you|u) (?:\w{1,12} )?(?:saved?|stored?|noted?|kept|keep|record(?:ed)?) (?:my|our) (?:preferences?|names?|details?|data|info\w{0,8}|birthday|address|wishes)"
    r"|\b(?:do|did|have|are) (?:you|u) (?:keep|keeping|kept|have|make|made|making|taking) (?:any )?notes (?:about|on|of) (?:me|us|our|my|this)\b"
    r"|\byour notes (?:say|tell|know|hold|have|contain) |\b(?:what|which) notes (?:do|did|have) (?:you|u) (?:keep|kept|have)\b"
    r"|(?:你|您)(?:都|还|還)?(?:保存|[记記][录錄]|存|收集|留)(?:了|过|過|着|著)?(?:哪些|什[么麼]|多少)?(?:[关關][于於])?我的?(?:哪些|什[么麼]|多少|信息|資訊|资料|資料|内容|內容|偏好|喜好|数据)"
    r"|(?:你|您)(?:都|还|還)?(?:保存|[记記][录錄]|存|收集|留)(?:了|过|過|着|著)?(?:哪些|什[么麼]|多少)[关關][于於]我"
    r"|[关關][于於]我的?(?:所有|全部)?(?:[记記紀][录錄]|信息|資訊|资料|資料|内容|內容|数据|事(?!故)|一切)"
)
"""Questions about what is kept of the person who asks."""
_TOLD_TO_REMEMBER: Final = (
    r"\b(?:ask|tell|told|asked) (?:you|u) to (?:remember|memori[sz]e|note|keep in mind)\b(?! to\b)"
    r"|\b(?:you|u) (?:were|are|got) (?:asked|told) to (?:remember|memori[sz]e|keep in mind)\b"
    r"|\b(?:was|is|are|were) (?:that|this|it|(?:my|our) \w{1,20}) (?:remembered|memori[sz]ed)\b"
    r"|(?:你|您)(?:都|所)?[记記](?:住|得)了?的|(?:你|您)[记記](?:下|着|著)了?的(?:东西|東西|事|内容|內容|都|全)"
    r"|(?:你|您)(?:有[没沒]有|是不是)[记記](?:住|得|下)"
)
_AS_REMEMBERED: Final = (
    r"\b(?:as far as|from what|if) (?:you|u) (?:can )?(?:still )?(?:remember|recall)\b"
    r"|\bhave we (?:ever |already )?(?:talked|spoken|chatted|met|discussed)\b[^.?!]{0,40}\bbefore\b"
    r"|(?:你|您)(?:怎[么麼]|[为為]什[么麼])?(?:又|都|会|會|还|還)?不[记記]得"
    r"|(?:你|您)(?:怎[么麼]|[为為]什[么麼]|是不是|[会會]不[会會])(?:又|都)?(?:忘[记記掉]?了?我(?!的?密[码碼])|把我[^。！!]{0,8}忘)"
)
_LATER: Final = (
    r"\b(?:will|would|won't|do|don't) (?:you|u) (?:still |ever |always )?(?:remember|recall|forget) (?:me|us|this|that(?! )|it|our|my|everything|what)\b"
    r"|(?:你|您|下次|以[后後])[^。！!]{0,4}[会會](?:不[会會])?(?:一直)?[记記](?:得|住)(?:我|[这這]|今天|[吗嗎])"
)
"""Questions about remembering in future."""
_FORGET: Final = (
    r"\b(?:forget|drop|delete|erase|wipe|remove) (?:everything|anything|all|what)(?: that)? "
    r"(?:(?:you|u)(?:'ve| have)? (?:know|remember|learn(?:ed|t)|stored|saved|kept|noted|have)"
    r"|(?:i|we)(?:'ve| have)? (?:ever )?(?:told you|said about))\b"
    r"|\bforget (?:(?:everything|all|anything) )?about (?:me|us)\b"
    r"|(?<![别別不])(?:忘[记記掉]?了?|[删刪][掉除]|清[除空])[^。！!]{0,8}我(?:[刚剛]才|之前|以前|上次)?(?:[说說][过過]?的|(?:告[诉訴]|跟|[对對]|和)(?:[过過])?你)"
    r"|把我(?:[刚剛]才|之前|以前|上次)?(?:[说說]|告[诉訴]你|(?:跟|[对對]|和)你[说說])[过過]?的[^。！!]{0,8}(?:忘|[删刪]|清)"
)
_SWITCHED: Final = (
    r"\bis (?:your |the )?memory (?:(?:turned|switched) )?(?:on|off|enabled|disabled|active)\b"
    r"|\b(?:turn|switch)(?:ed)? (?:on|off) (?:your |the )?memory(?= ?(?:[.?!,]|for\b|in this\b|again\b|please\b|$))"
    r"|\b(?:turn|switch)(?:ed)? (?:your |the )?memory (?:on|off)\b"
)
_CODE_BEHIND: Final = r"(?![\w./\-]{0,80}\.(?!(?:md|ya?ml)\b)\w{1,6}(?![\w./\-]))"
"""`memory/cache.py` is no note; notes end in .md, .yaml and .yml."""
_REMEMBERED: Final = (
    r"[记記][忆憶]"
    r"|(?:你|您)们?(?:现在|是否|是不是|有没有|有沒有|会不会|會不會|[替帮幫]我|能不能|可以|还|還|都|到底|究竟|能){0,3}"
    r"(?:[记記](?:得|住|着|下|录|錄|了)|回忆|回憶)(?![^。！!]{0,30}(?:(?<![偏喜爱愛])好[吗嗎么不]|行[吗嗎不]|可以[吗嗎]))"
    r"[^。！!]{0,30}(?:[吗嗎么嘛谁誰啥哪何?？]|什[么麼]|多少)"
    r"|(?<!我)[还還][记記]得(?:我|上次|之前|那|昨|前|咱|[吗嗎不])|[记記](?:得)?不[记記]得"
    r"|[记記](?:住|得|下)了?些?(?:什[么麼]|哪些|多少|啥)"
    r"|(?:你|您)(?:都|还|還)?(?:知道|了解|掌握)(?:关于|有关|關於)?我的?些?(?:什[么麼]|哪些|多少|啥)"
    r"|(?:你|您)(?:都|还|還)?(?:了解|认识|認識)我[吗嗎么?]|(?:你|您)的?[脑腦]子[里裡]|让你[记記](?:住|下)?(?:过)?的"
    r"|我(?:之前|以前|上次|曾经|都){0,2}(?:告诉|告訴|跟|和|对)[过過]?你[说說讲講提]?[过過]?了?(?:什[么麼]|哪些|啥)"
    r"|(?:你|您)[对對]我(?:都|有)?(?:什[么麼]|多少)?(?:了解|知道|[记記]得)"
    r"|\byour (?:[\w-]{1,20} ){0,2}memor(?:y|ies)\b"
    r"|\b(?:project|personal|long[- ]term|persistent|agent(?:'s)?|assistant(?:'s)?|claude's|team|workspace"
    r"|saved|stored|recalled) memor(?:y|ies)\b"
    r"|\bmemory[ /-](?:systems?|folders?|director(?:y|ies)|notes?|files?|contents?|summary|bank|store"
    r"|entr(?:y|ies)|items?|skills?|capture|organi[sz]e|revise|summari[sz]e)\b"
    rf"|\bmemory/{_CODE_BEHIND}"
    r"|^/memor(?:y|ies)\b"
    r"|\b(?:what|which|how much|how many|anything|everything|all)\b[^.?!]{0,40}"
    r"\b(?:(?:you|u) (?:(?!to )[\w']{1,12} ){0,2}(?:remember(?:ing)?|recall|memori[sz]ed?)|remembered)\b"
    r"|\b(?:do|did|don't|didn't) (?:you|u) (?:\w{1,12} )?(?:remember|recall)\b(?! to\b)"
    r"|\b(?:are|were) (?:you|u) able to (?:remember|recall|memori[sz]e)\b|\bremember (?:me|us) ?\?"
    r"|\bhave (?:you|u) forgotten (?:me|us|what|about|our|my|the)\b"
    r"|\bwhat (?:have|did) (?:i|we) (?:\w{1,12} )?(?:told|tell) (?:you|u)\b"
    r"|\b(?:can|could|can't) (?:you|u) (?:\w{1,12} )?(?:remember|recall) (?:wh|how|any|my|our|us|me|the|if)"
    r"|\b(?:search|consult|summari[sz]e|organi[sz]e|revise|tidy(?: up)?|query|browse|review|according to"
    r"|based on|look (?:it up )?(?:in|into|through|at)|saved? (?:in|to)|noted in) (?:the |my |our |all )?memor(?:y|ies)\b"
    r"|\bwhat does (?:the |our |my )?memory (?:say|know|tell|hold|contain|have)\b"
    r"|\bmemory (?:says?|knows?|mentions?|tells?)\b"
    r"|\b(?:any|what|which|many|have|list|show|all|these|our) (?:\w{1,12} )?memories\b"
    r"|\b(?:do|does|have|has) (?:you|it|this \w{1,12}|the \w{1,12}) (?!know |need |use )(?:[\w-]{1,12} ){0,4}memory\b"
)
_PLAINLY: Final = re.compile(
    f"{_REMEMBERED}|{_KEPT_OF_ME}|{_TOLD_TO_REMEMBER}|{_AS_REMEMBERED}|{_LATER}|{_FORGET}|{_SWITCHED}"
)
_PERHAPS: Final = re.compile(
    r"\b(?:read|list|show|check|open|print|display|clear|wipe|erase|delete|update|export|see|about|inside"
    r"|access|explain|describe|of|my|our) (?:me )?(?:the |this |my |our |all )?(?:memory|memories)\b"
    r"|\bhow (?:does|do) (?:the |this )?memory \w{1,12}\b(?! in\b)|\b(?:a|any|some) memory (?:of|about)\b"
    r"|\b(?:what|anything|something|look|find|noted|kept|stored|saved|see|there|have)\b[^.?!]{0,24}"
    r"\bin (?:the |this )?memory\b"
    r"|\b(?:answer|recall|tell|fetch|get|remove|delete|forget)\b[^.?!]{0,24}\bfrom (?:the )?memory\b|\bfrom memory[,:，：]"
    r"|\b(?:save|add|note|commit|append|put|write)\b[^.?!]{0,40}\b(?:to|in) (?:the )?memory\b"
    r"|^(?:the |my )?memor(?:y|ies) ?(?:[:?.!,，。？！：]|$)"
    r"|(?:你的|我的|个人|项目|长期|看看|看一?下|[查读讀看写寫存记記]|查看|[读讀]取|查一下|搜一下|搜索|[总總][结結]|整理|清理|打[开開]|列出|更新|根据"
    r"|到|[进進]) ?(?:一下 ?)?memory(?![a-z])"
    r"|(?<![a-z-])memory ?(?:[里裡中有是吗嗎]|文件|目[录錄]|[内內]容|系[统統]|[笔筆][记記]|[总總][结結])"
)


def asks_about_memory(text: str) -> bool:
    """Return whether a message asks about what is remembered."""
    asked = _SOMETHING_ELSE.sub(" ", _simplified(text))
    if _PLAINLY.search(asked):
        return True
    return _PERHAPS.search(asked) is not None and not _ABOUT_MACHINES.search(_simplified(text))


def _simplified(text: str) -> str:
    half = _MAX_CHARS // 2
    asked = text if len(text) <= _MAX_CHARS else f"{text[:half]} {text[-half:]}"
    clean = unicodedata.normalize("NFKC", asked).replace("\u2019", "'")
    return " ".join(clean[: 2 * _MAX_CHARS].casefold().split())  # one character may become many
