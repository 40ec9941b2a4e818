package schedule

import (
	"regexp"
	"strings"
	"sync"
)

// phrasesZH has each message and hint of a ParseError in Chinese. {} stands for
// what differs, a number or a part of the expression, in the same order; a test
// finds messages that are missing here.
var phrasesZH = [][2]string{
	{"{} is no dialect", "{} 不是已知的方言"},
	{"use auto, standard, seconds or quartz", "可用 auto、standard、seconds 或 quartz"},
	{"the expression has {} bytes, more than {}", "表达式有 {} 字节，超过上限 {}"},
	{"use ranges and steps instead of long lists", "请用范围和步长代替长列表"},
	{"the expression is empty", "表达式为空"},
	{`for example "0 2 * * *", every day at 02:00`, "例如 “0 2 * * *” 表示每天 02:00"},
	{"the time zone does not belong to the expression", "时区不写在表达式里"},
	{"remove it and set the schedule's zone", "请删除它，改为设置调度计划的时区"},
	{"found {} field, the {} dialect has {}", "有 {} 个字段，而 {} 方言应有 {} 个"},
	{"found {} fields, the {} dialect has {}", "有 {} 个字段，而 {} 方言应有 {} 个"},
	{"found {} field, an expression has 5, 6 or 7", "有 {} 个字段，而表达式应有 5、6 或 7 个"},
	{"found {} fields, an expression has 5, 6 or 7", "有 {} 个字段，而表达式应有 5、6 或 7 个"},
	{"found {} field, an expression has 6 or 7", "有 {} 个字段，而表达式应有 6 或 7 个"},
	{"found {} fields, an expression has 6 or 7", "有 {} 个字段，而表达式应有 6 或 7 个"},
	{"found {} field, the quartz dialect has 6 or 7", "有 {} 个字段，而 quartz 方言应有 6 或 7 个"},
	{"found {} fields, the quartz dialect has 6 or 7", "有 {} 个字段，而 quartz 方言应有 6 或 7 个"},
	{"quartz begins with seconds: put 0 in front", "quartz 以秒开头：请在前面加 0"},
	{"5 fields are the standard dialect: minute hour day-of-month month day-of-week", "5 个字段是 standard 方言：分 时 日 月 星期"},
	{"7 fields, or 6 with ?, are the quartz dialect", "7 个字段，或含 ? 的 6 个字段，是 quartz 方言"},
	{"6 fields are the seconds dialect: second minute hour day-of-month month day-of-week", "6 个字段是 seconds 方言：秒 分 时 日 月 星期"},
	{"standard: minute hour day-of-month month day-of-week; seconds and quartz: second first; quartz: year last", "standard：分 时 日 月 星期；seconds 与 quartz 最前面是秒；quartz 最后可加年"},
	{"? stands alone in its field", "? 必须单独占一个字段"},
	{"L cannot be part of a list", "L 不能出现在列表中"},
	{"only one # is possible in a list", "列表中只能有一个 #"},
	{"make a second job for the other days", "请为其他日期另建一个任务"},
	{"? is possible in day-of-month or in day-of-week, not in both", "? 只能用于日或星期之一，不能两者都用"},
	{"write * in one of the two", "请将其中一个写为 *"},
	{"quartz cannot combine day-of-month and day-of-week", "quartz 不能同时限定日和星期"},
	{"write ? in the one that does not matter, or use the seconds dialect", "请将不限定的一个写为 ?，或使用 seconds 方言"},
	{"a value is missing", "缺少值"},
	{"remove the extra comma", "请删除多余的逗号"},
	{"? is for the day fields of the quartz dialect", "? 仅用于 quartz 方言的日和星期字段"},
	{"write *", "请写 *"},
	{"write *, or use the quartz dialect, which has 6 or 7 fields beginning with seconds", "请写 *，或使用 quartz 方言（以秒开头，6 或 7 个字段）"},
	{"L-3 is the third day before the last", "L-3 表示最后一天之前的第三天"},
	{"quartz does not mix a name and a number in a range", "quartz 的范围不能混用名称和数字"},
	{"write both as names", "请都写为名称"},
	{"the range ends at {}, before its start {}", "范围的终点 {} 小于起点 {}"},
	{"swap the two", "请对调两者"},
	{"a step of 0 goes nowhere", "步长不能为 0"},
	{"remove the slash, or write a step of at least 1", "请删除斜杠，或将步长写为至少 1"},
	{"a step of {} is larger than the field, which is {}", "步长 {} 超出该字段的范围 {}"},
	{"cron cannot count {} seconds: use a fixed rate", "cron 无法表示每 {} 秒：请使用固定频率"},
	{"cron cannot count {} minutes: use a fixed rate", "cron 无法表示每 {} 分钟：请使用固定频率"},
	{"the largest step is {}", "最大步长为 {}"},
	{"{} is outside {}", "{} 超出范围 {}"},
	{"6#3 is the third Friday of the month", "6#3 表示每月第三个周五"},
	{"in quartz 1 is Sunday and 7 is Saturday; names are safer: SUN", "quartz 中 1 为周日、7 为周六；用名称更稳妥：SUN"},
	{"midnight is hour 0", "午夜是 0 点"},
	{"{} has no meaning here", "{} 在此处没有意义"},
	{"W follows a day of the month in the quartz dialect: 15W", "quartz 方言中 W 跟在日期之后：15W"},
	{"L is for the day fields of the quartz dialect", "L 仅用于 quartz 方言的日和星期字段"},
	{"write {}", "请写 {}"},
	{"{} is no name here", "{} 不是此处可用的名称"},
	{"this field takes numbers {} only", "该字段只接受数字 {}"},
	{"names are {}", "可用名称：{}"},
	{"a number is missing", "缺少数字"},
	{"a step has no meaning here", "此处不能使用步长"},
	{"L, W and # belong to the quartz dialect, which has 6 or 7 fields beginning with seconds", "L、W 和 # 属于 quartz 方言（以秒开头，6 或 7 个字段）"},
	{"{} follows one day, not a range", "{} 只能跟在单个日期之后，不能跟在范围之后"},
	{"W follows a day of the month: 15W, LW", "W 跟在日期之后：15W、LW"},
	{"# follows a day of the week: 6#3 is the third Friday", "# 跟在星期之后：6#3 表示第三个周五"},
	{"L stands alone or follows a day of the week: 6L is the last Friday", "L 单独使用或跟在星期之后：6L 表示最后一个周五"},
	{"a range is written 1-5", "范围写作 1-5"},
	{"this is a full-width character: write {}", "这是全角字符：请写 {}"},
	{"only plain ASCII characters are used", "只能使用 ASCII 字符"},
	{"the quartz dialect has no descriptors", "quartz 方言没有 @ 描述符"},
	{"use the standard dialect for {}", "{} 请使用 standard 方言"},
	{"known are @yearly @monthly @weekly @daily @hourly and @every 1h30m", "可用 @yearly @monthly @weekly @daily @hourly 和 @every 1h30m"},
	{"a job is not bound to one machine; use a one-shot schedule", "任务不绑定某一台机器；请使用一次性调度"},
	{"{} is no descriptor", "{} 不是已知的描述符"},
	{"nothing may follow the interval", "间隔之后不能再有内容"},
	{"nothing may follow {}", "{} 之后不能再有内容"},
	{"for example @every 90s or @every 1h30m", "例如 @every 90s 或 @every 1h30m"},
	{"the interval is missing", "缺少间隔"},
	{"write the interval without spaces: 1h30m", "间隔中不能有空格：1h30m"},
	{"{} is no interval", "{} 不是有效的间隔"},
	{"the interval must be whole milliseconds from {} to {}", "间隔必须是 {} 至 {} 之间的整毫秒数"},
}

type phrase struct {
	en *regexp.Regexp
	zh string
}

// phrases are compiled when the first mistake is to be told in Chinese. Those
// with fewer blanks come first: "write {}" would fit "write *" as well.
var phrases = sync.OnceValue(func() (out []phrase) {
	for blanks := range 4 {
		for _, p := range phrasesZH {
			if strings.Count(p[0], "{}") == blanks {
				out = append(out, phrase{regexp.MustCompile("(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(p[0]), `\{\}`, "(.+)") + "$"), p[1]})
			}
		}
	}
	return out
})

// translate returns text in a language; what has no translation stays.
func translate(text, lang string) string {
	if language(lang) == 0 {
		return text
	}
	for _, p := range phrases() {
		if m := p.en.FindStringSubmatch(text); m != nil {
			return fill(p.zh, m[1:])
		}
	}
	return text
}

// fill puts the parts into the blanks, from left to right.
func fill(text string, parts []string) string {
	var b strings.Builder
	for _, part := range parts {
		before, after, _ := strings.Cut(text, "{}")
		b.WriteString(before + part)
		text = after
	}
	return b.String() + text
}

var labelsZH = map[Field]string{
	FieldSecond: "秒", FieldMinute: "分", FieldHour: "时", FieldDayOfMonth: "日", FieldMonth: "月", FieldDayOfWeek: "星期", FieldYear: "年",
}
