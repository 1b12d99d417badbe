"""Chinese."""

from __future__ import annotations

from typing import Final

from holdfast.assistant.language.lexicon import Pack, Words
from holdfast.assistant.language.packs.chinese_updates import UPDATES
from holdfast.assistant.slots import ANY_DAY, WORKDAY

_DIGITS: Final = "零一二三四五六七八九"
_WEEK: Final = ("周", "星期", "礼拜", "週", "禮拜")


def spelled(number: int) -> str:
    """A number below 100 in characters."""
    tens, ones = divmod(number, 10)
    if not tens:
        return _DIGITS[ones]
    return ("" if tens == 1 else _DIGITS[tens]) + "十" + (_DIGITS[ones] if ones else "")


def _weekdays() -> dict[str, int]:
    found = {
        "|".join(week + day for week in _WEEK): number for number, day in enumerate("一二三四五六")
    }
    return found | {"|".join(week + day for week in _WEEK for day in "日天"): 6}


_WORDS: Final[Words] = {
    "num": {spelled(number): number for number in range(100)} | {"两|兩": 2},
    "half": {"半": True},
    "half_after": {},
    "quarter": {"一刻|一刻钟": 15, "三刻": 45},
    "oclock": {"点|点钟|點|點鐘|时|点整": True},
    "minute_mark": {"分": True},
    "counter": {"个|個": True},
    "part": {
        "早上|上午|早晨|清晨|凌晨|清早|一早": "morning",
        "中午|正午": "noon",
        "下午|午后": "afternoon",
        "傍晚|晚上|晚间|黄昏时": "evening",
        "夜里|深夜|夜晚|半夜里": "night",
        "午夜|半夜|零点": "midnight",
        "下班前|下班时|一天结束时": "end_of_day",
    },
    "of": {"的": True},
    "and": {"和|、|及|与|以及|跟|还有": True},
    "or": {"或|或者": True},
    "comma": {",|;|。": True},
    "from": {"从|由|自": True},
    "range": {"到|至|-|~": True},
    "window_end": {"之间": True},
    "weekday": _weekdays(),
    "month": {f"{spelled(each)}月": each for each in range(1, 13)},
    "month_mark": {"月": True},
    "date_mark": {"号|日|號": True},
    "year_mark": {"年": True},
    "unit": {
        "秒|秒钟": "second", "分钟|分鐘": "minute", "小时|钟头|小時": "hour", "天|日": "day",
        "周|星期|礼拜|週": "week", "工作日|上班日": "workday", "周末|週末": "weekend",
        "月": "month", "季度|季": "quarter", "年": "year",
    },
    "relday": {
        "今天|今日": 0, "明天|明日": 1, "后天|後天": 2, "大后天": 3, "昨天|昨日": -1, "前天": -2,
    },
    "daypart": {
        "今晚": (0, "night"), "今早": (0, "morning"), "今天晚上": (0, "evening"),
        "明早": (1, "morning"), "明晚": (1, "evening"),
    },
    "next": {"下|下个|下個": True},
    "this": {"这|这个|本|這|這個": True},
    "last": {"最后|最後": True},
    "nth_last": {"最后一|最后|最后一个|最後一個": -1, "倒数第二": -2, "倒数第一": -1,
    "倒数第三": -3},
    "ord": {f"第{spelled(each)}|第{each}": each for each in range(1, 32)},
    "nth_day": {"天|日": ANY_DAY, "工作日": WORKDAY},
    "edge_after": {"底|末": -1, "初": 1},
    "holiday": {
        "元旦": "new_year", "情人节": "valentine", "妇女节": "womens_day", "劳动节"
        "|五一": "labour_day",
        "儿童节|六一": "children_day_cn", "国庆节|国庆|十一国庆": "national_day_cn",
        "双十一|双11|光棍节": "singles_day", "平安夜": "christmas_eve", "圣诞节|圣诞": "christmas",
        "除夕夜新年": "new_years_eve",
    },
    "every": {"每|每个|每個|每逢": True},
    "other": {"隔一|隔": 2, "隔两": 3},
    "spaced": {"隔": True},
    "few": {"几|数|幾|好几|若干|多": True},
    "daygroup": {"工作日|上班日|平日": (0, 1, 2, 3, 4), "周末|週末|双休日": (5, 6)},
    "plural": {"工作日|平日": True},
    "every_end": {"一次|的": True},
    "freq": {
        "隔天|每隔一天|隔日": (2, "day"), "隔周|每隔一周|每隔一个星期|双周": (2, "week"),
        "每隔一个月|隔月": (2, "month"), "每隔一小时|每隔一个小时": (1, "hour"),
        "每隔两小时|每隔两个小时": (2, "hour"),
        "每周一次|每星期一次": (1, "week"), "天天": (1, "day"), "每日": (1, "day"), "每晚": (1,
        "day", "evening"),
        "每早": (1, "day", "morning"), "每半小时|每半个小时": (30, "minute"),
        "每半年": (6, "month"), "每刻钟|每一刻钟": (15, "minute"),
    },
    "times": {"次|遍": True},
    "real": {
        "天气|周报|月报|日报|年报|点评|有点|小时候|分析|分享|部分|号码|下单|下载|下班|下雨|下一步"
        "|上报|日程|日志|日记|节日|周年|后台|后续|秒杀|重点|要点|地点|观点|上班|上线|上传|中国"
        "|本人": True,
    },
    "times_per": {"次|遍": True},
    "short_of": {"差": True},
    "amount_word": {"一刻钟": (15, "minute"), "三刻钟": (45, "minute")},
    "later": {"后|之后|以后|後|之後": True},
    "before": {"前|之前|以前": True},
    "start": {"从|自": True},
    "onwards": {"开始|起|開始": True},
    "until": {"直到|到|至|直至|截止到": True},
    "for": {"持续|连续|为期|持續": True},
    "rest": {"剩下": True},
    "except": {"除了|除|除去|不包括": True},
    "except_after": {"除外|以外|之外|外": True},
    "on_the_hour": {"整点": 0},
    "time_word": {"时间": True},
    "trouble": {
        "日出|日出时|日落|日落时|黎明|破晓|天亮|天黑": "sun",
        "满月|新月|月圆": "moon",
        "生日那天|生日当天|生日时|生日的时候|纪念日那天|纪念日当天|发薪日|发工资那天": "unknown_date",
        "春节|中秋节|中秋|端午节|端午|清明节|清明|除夕|元宵节|重阳节|七夕|复活节|农历新年"
        "|大年初一": "feast",
        "过几分钟|过几小时|过几天|过一会儿|过一会|等一会儿|一会儿|稍后|待会儿|待会|过一阵子|晚点|过些天"
        "|晚些时候|过几个小时|几分钟后|有时间的时候|找个时间|有空|某个时候|改天|哪天|以后再|回头|过段时间|有空的时候|将来": "vague_time",
        "偶尔|有时|有时候|时不时|不时|经常|定期|隔三差五|常常": "vague_recurrence",
    },
    "event": {"当|如果|要是|一旦|若": 1},
    "event_after": {"的时候|时候|的话": 1},
    "birthday": {"生日|纪念日": 1},
    "asap": {"尽快|马上|立刻|立即|现在|赶紧": 1},
    "past_ref": {"过去|过去的|上个|上|最近|近|前": 1},
    "about": {"关于": 1},
    "lead": {
        "请|麻烦|麻烦你|请你|你好|嗨|嘿|好的|然后|帮我|我想|我要|能不能|可以|记得|别忘了": "drop",
        "提醒我|提醒我们|提醒|叫我|设置提醒|设个提醒": "remind",
        "告诉我|发给我|通知我|给我": "keep",
        "在|于": "drop",
    },
    "at": {"在|于": 1},
    "glue": {"但|但是|只|也|然后|请|都|的|在|时": 1},
    "tail": {"谢谢|吧|!|。|?|哦|啊|呢|.": 1},
    "thanks": {
        "谢谢|谢谢你|多谢|非常感谢|感谢|谢谢您|太感谢了|谢了": 1,
    },
    "statement": {
        "太棒|你真|真棒|真不错|我很|这太|那太|太有|你太|你好棒|我爱你|我喜欢你|今天真": 1,
    },
    "chat": {
        "你好|您好|你好呀|你好啊|您好呀|呀|啊|哈|嗨|哈喽|早上好|早安|早|下午好|晚上好|晚安|谢谢|谢谢你|多谢|非常感谢|再见|拜拜"
        "|最近怎么样|你好吗|你怎么样|好的|好|是|不|不是|行|你是谁|你能做什么|帮助|没事|对不起"
        "|辛苦了|吃了吗|在吗|明天见|生日快乐|新年快乐|圣诞快乐|怎么样|哈哈|太好了": 1,
    },
    **UPDATES,
}  # fmt: skip

CHINESE: Final = Pack(
    name="zh",
    words=_WORDS,
)
