package schedule

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Explain says in words when an expression fires: "At 02:30, Monday to Friday"
// or "每周一至周五 02:30". lang is "en" or "zh" (also zh-CN and the like);
// others give English. The error is Parse's.
func Explain(expr string, dialect Dialect, lang string) (string, error) {
	c, err := Parse(expr, dialect)
	if err != nil {
		return "", err
	}
	return c.Explain(lang), nil
}

// Explain says in words when the expression fires; see the function Explain.
// It does not say what is odd about it: that is Warnings.
func (c *Cron) Explain(lang string) string {
	zh := language(lang) == 1
	switch {
	case c.every > 0 && zh:
		return everyZH(c.every)
	case c.every > 0:
		return "Every " + everyEN(c.every)
	case zh:
		return cronZH(c)
	}
	return capital(cronEN(c))
}

// Explain says in words when the schedule fires, with its zone, its policy for
// clock changes where they meet a fire time, validity and jitter.
func (s *Schedule) Explain(lang string) string {
	m := s.dstMet()
	if language(lang) == 1 {
		return s.explainZH(m)
	}
	return capital(s.explainEN(m))
}

// Texts are what Explain says in English and in Chinese. What takes longest of
// both, which changes of the clock matter, is found out once.
func (s *Schedule) Texts() (en, zh string) {
	m := s.dstMet()
	return capital(s.explainEN(m)), s.explainZH(m)
}

// capital begins a sentence.
func capital(text string) string {
	r, n := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(r)) + text[n:]
}

// local writes an instant in the schedule's zone, to the second or millisecond.
func (s *Schedule) local(ms int64) string {
	t := time.UnixMilli(ms).In(s.loc)
	if ms%1000 != 0 {
		return t.Format("2006-01-02 15:04:05.000")
	}
	return t.Format("2006-01-02 15:04:05")
}

// units of a duration, largest first.
var units = []struct {
	size   time.Duration
	en, zh string
}{
	{24 * time.Hour, "day", "天"},
	{time.Hour, "hour", "小时"},
	{time.Minute, "minute", "分钟"},
	{time.Second, "second", "秒"},
	{time.Millisecond, "millisecond", "毫秒"},
}

// durationEN writes "1 hour 30 minutes".
func durationEN(d time.Duration) string {
	var parts []string
	for _, u := range units {
		if n := d / u.size; n > 0 {
			parts = append(parts, plural(int(n), u.en))
			d %= u.size
		}
	}
	return strings.Join(parts, " ")
}

// everyEN writes "hour" for one hour and "90 minutes" in full, after "every".
func everyEN(d time.Duration) string {
	if text := durationEN(d); !strings.HasPrefix(text, "1 ") || strings.Count(text, " ") > 1 {
		return text
	}
	return durationEN(d)[2:]
}

// durationZH writes "1 小时 30 分钟".
func durationZH(d time.Duration) string {
	var parts []string
	for _, u := range units {
		if n := d / u.size; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, u.zh))
			d %= u.size
		}
	}
	return strings.Join(parts, " ")
}

// everyZH writes 每小时一次 for one hour and 每 90 秒一次 in full.
func everyZH(d time.Duration) string {
	for _, u := range units {
		if d == u.size {
			return "每" + u.zh + "一次"
		}
	}
	return "每 " + durationZH(d) + "一次"
}

// join writes a list with the last word before its last entry.
func join(list []string, comma, and string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], comma) + and + list[len(list)-1]
}

// clockText writes seconds since midnight, 24:00 included.
func clockText(sec int64) string {
	if sec%60 == 0 {
		return fmt.Sprintf("%02d:%02d", sec/3600, sec/60%60)
	}
	return fmt.Sprintf("%02d:%02d:%02d", sec/3600, sec/60%60, sec%60)
}
