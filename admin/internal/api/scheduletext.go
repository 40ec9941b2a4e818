package api

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// scheduleText says a schedule in words, in both languages of the UI.
func scheduleText(s domain.ScheduleSpec) *Bilingual {
	text := kindText(s)
	if !s.StartAt.IsZero() {
		text.En += ", from " + zonedText(s.StartAt, s.Zone)
		text.Zh += "，自 " + zonedText(s.StartAt, s.Zone) + " 起"
	}
	if !s.EndAt.IsZero() {
		text.En += ", until " + zonedText(s.EndAt, s.Zone)
		text.Zh += "，至 " + zonedText(s.EndAt, s.Zone) + " 止"
	}
	return &text
}

func kindText(s domain.ScheduleSpec) Bilingual {
	switch s.Kind {
	case domain.ScheduleCron:
		return Bilingual{En: "cron " + s.Expr, Zh: "cron 表达式 " + s.Expr}
	case domain.ScheduleFixedRate:
		return Bilingual{En: "every " + intervalText(s.Every, intervalEn), Zh: "每隔 " + intervalText(s.Every, intervalZh)}
	case domain.ScheduleOnce:
		at := zonedText(s.At, s.Zone)
		return Bilingual{En: "once, at " + at, Zh: "仅一次：" + at}
	default:
		return Bilingual{En: "only when asked for", Zh: "仅在手动触发时运行"}
	}
}

// zonedText writes an instant as a clock in the zone shows it.
func zonedText(t time.Time, zone string) string {
	loc, err := time.LoadLocation(zone)
	if err != nil {
		loc = time.UTC
	}
	layout := "2006-01-02 15:04:05"
	if t.Nanosecond() != 0 {
		layout += ".000"
	}
	return t.In(loc).Format(layout)
}

// unitText writes a number of one unit.
type unitText func(n int64, unit time.Duration) string

// intervalText writes a duration with its units in words, largest first.
func intervalText(d time.Duration, write unitText) string {
	var parts []string
	for _, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second, time.Millisecond} {
		if n := int64(d / unit); n > 0 {
			parts = append(parts, write(n, unit))
			d -= time.Duration(n) * unit
		}
	}
	return strings.Join(parts, " ")
}

var unitNames = map[time.Duration][2]string{
	24 * time.Hour: {"day", "天"}, time.Hour: {"hour", "小时"}, time.Minute: {"minute", "分钟"},
	time.Second: {"second", "秒"}, time.Millisecond: {"millisecond", "毫秒"},
}

func intervalEn(n int64, unit time.Duration) string {
	if n == 1 {
		return "1 " + unitNames[unit][0]
	}
	return fmt.Sprintf("%d %ss", n, unitNames[unit][0])
}

func intervalZh(n int64, unit time.Duration) string {
	return strconv.FormatInt(n, 10) + " " + unitNames[unit][1]
}
