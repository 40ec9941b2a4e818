package schedule

import (
	"fmt"
	"strings"
	"time"
)

func joinZH(list []string) string { return join(list, "、", "和") }

// weekdayZH are the days from Sunday, as they follow 周.
var weekdayZH = [...]string{"周日", "周一", "周二", "周三", "周四", "周五", "周六"}

// ordinalZH counts the weeks of a month.
var ordinalZH = [...]string{"一", "二", "三", "四", "五"}

// cronZH is the sentence: years, days, time of day.
func cronZH(c *Cron) string {
	clock, fixed := clockZH(c.clockTimes())
	days := daysZH(c, fixed)
	switch {
	case days == "":
		return clock
	case !fixed:
		return days + "，" + clock
	case strings.HasSuffix(days, " 天"): // 每 2 天
		return days + "的 " + clock
	case strings.HasSuffix(days, "）"): // the sign brings its own space
		return days + clock
	}
	return days + " " + clock
}

// clockZH says the times of day; fixed tells "02:30" from "每小时一次".
func clockZH(t clockTimes) (text string, fixed bool) {
	most := 4
	if t.minute.kind == shapeSingle && (t.hour.kind == shapeList || t.hour.kind == shapeSingle) && len(t.hour.spans()) == len(t.hour.values) {
		most = 24
	}
	if t.hour.kind != shapeEven || t.minute.kind != shapeSingle {
		if list, ok := t.list(most); ok && (t.hour.kind != shapeRun || t.minute.kind != shapeSingle) {
			return join(list, "、", " 和 "), true
		}
	}
	if t.second.kind != shapeSingle {
		return secondsZH(t), false
	}
	if t.minute.kind == shapeSingle {
		return hoursZH(t), false
	}
	text, of := stepsZH(t.minute, "分钟", "分")
	if of {
		text = "每小时" + text
	}
	if t.second.lo != 0 {
		text += fmt.Sprintf("（第 %d 秒）", t.second.lo)
	}
	return duringZH(t.hour) + text, false
}

// hoursZH is for one minute in several hours.
func hoursZH(t clockTimes) string {
	m, h := t.minute.lo, t.hour
	switch h.kind {
	case shapeAll:
		switch {
		case m == 0 && t.second.lo == 0:
			return "每小时整点"
		case t.second.lo == 0:
			return fmt.Sprintf("每小时的第 %d 分", m)
		}
		return fmt.Sprintf("每小时的第 %d 分 %d 秒", m, t.second.lo)
	case shapeEven, shapeStepped:
		return fmt.Sprintf("%s 至 %s，每 %d 小时一次", t.clock(h.lo, m), t.clock(h.hi, m), h.step)
	}
	var runs, single []string
	for _, p := range h.spans() {
		if p.hi-p.lo >= 2 {
			runs = append(runs, fmt.Sprintf("%s 至 %s 每小时一次", t.clock(p.lo, m), t.clock(p.hi, m)))
			continue
		}
		for v := p.lo; v <= p.hi; v++ {
			single = append(single, t.clock(v, m))
		}
	}
	if len(single) > 0 {
		runs = append(runs, join(single, "、", " 和 "))
	}
	return strings.Join(runs, "，以及 ")
}

// stepsZH says a field of minutes or seconds. of tells that the words need
// what they are minutes of.
func stepsZH(s shape, unit, point string) (text string, of bool) {
	switch s.kind {
	case shapeAll:
		return "每" + unit + "一次", false
	case shapeEven:
		if s.lo == 0 {
			return fmt.Sprintf("每 %d %s一次", s.step, unit), false
		}
		return fmt.Sprintf("从第 %d %s至第 %d %s，每 %d %s一次", s.lo, point, s.hi, point, s.step, unit), true
	case shapeStepped:
		return fmt.Sprintf("从第 %d %s至第 %d %s，每 %d %s一次", s.lo, point, s.hi, point, s.step, unit), true
	case shapeRun:
		return fmt.Sprintf("从第 %d %s至第 %d %s，每%s一次", s.lo, point, s.hi, point, unit), true
	}
	return "的第 " + numbersZH(s) + " " + point, true
}

// numbersZH writes a list of numbers with its longer runs shortened.
func numbersZH(s shape) string {
	var list []string
	for _, p := range s.spans() {
		if p.hi-p.lo >= 2 {
			list = append(list, fmt.Sprintf("%d 至 %d", p.lo, p.hi))
			continue
		}
		for v := p.lo; v <= p.hi; v++ {
			list = append(list, fmt.Sprint(v))
		}
	}
	return strings.Join(list, "、")
}

// secondsZH is for several seconds in a minute.
func secondsZH(t clockTimes) string {
	text, of := stepsZH(t.second, "秒", "秒")
	if p := t.minute.spans(); t.minute.kind != shapeAll && len(p) == 1 && t.hour.kind == shapeSingle {
		if of {
			text = "每分钟" + text
		}
		return fmt.Sprintf("%02d:%02d:00 至 %02d:%02d:59 期间，", t.hour.lo, p[0].lo, t.hour.lo, p[0].hi) + text
	}
	if t.minute.kind == shapeAll {
		if of {
			text = "每分钟" + text
		}
		return duringZH(t.hour) + text
	}
	minutes := "每小时的第 " + numbersZH(t.minute) + " 分内，"
	if k := t.minute.kind; (k == shapeEven || k == shapeStepped) && len(t.minute.values) > 12 {
		minutes = fmt.Sprintf("每小时第 %d 至 %d 分，每 %d 分钟的第一分钟内，", t.minute.lo, t.minute.hi, t.minute.step)
	}
	if of {
		text = strings.TrimPrefix(text, "的")
	}
	return duringZH(t.hour) + minutes + text
}

// duringZH limits intervals to hours.
func duringZH(h shape) string {
	if h.kind == shapeAll {
		return ""
	}
	if h.kind == shapeEven || h.kind == shapeStepped {
		return numbersZH(h) + " 点的各小时内，"
	}
	var list []string
	for _, p := range h.spans() {
		list = append(list, fmt.Sprintf("%02d:00 至 %02d:59", p.lo, p.hi))
	}
	return join(list, "、", " 和 ") + " 期间，"
}

// daysZH says years, months and days.
func daysZH(c *Cron, fixed bool) string {
	d := &c.days
	month := shapeOf(uint64(c.month), 1, 12)
	dom, dow := domZH(d), dowZH(d)
	special := d.nth > 0 || d.lastDow
	inMonth := monthOfZH(c, month, dom != "" || special)
	switch {
	case dom == "" && dow == "":
		if inMonth == "" && !fixed {
			return ""
		}
		return inMonth + "每天"
	case dom == "" && special:
		return inMonth + dow
	case dom == "":
		if inMonth != "" {
			inMonth += "的"
		}
		return inMonth + "每" + dow
	case dow == "":
		return inMonth + dom
	case d.mode == dayEither:
		return inMonth + dom + "以及每" + dow
	}
	return inMonth + dom + "（且须为" + join(weekdayNamesZH(d.dow), "、", "或") + "）"
}

// monthOfZH is what stands before the day: 每月, 每年 1 月, 2027 年 5 月. day
// tells that a day of the month follows, which makes 每月 necessary.
func monthOfZH(c *Cron, month shape, day bool) string {
	years := ""
	if c.years != nil {
		years = yearsZH(c.years.values())
	}
	if month.kind == shapeAll {
		if day {
			return years + "每月" + gapZH(c)
		}
		return years
	}
	parts := month.cycle(1, 12)
	if years != "" {
		parts = month.spans() // within each of these years, so never 次年
	}
	var list []string
	for _, p := range parts {
		if p.size(12) > 2 {
			to := " 月至 "
			if p.hi < p.lo {
				to = " 月至次年 "
			}
			list = append(list, fmt.Sprintf("%d%s%d 月", p.lo, to, p.hi))
			continue
		}
		for i := range p.size(12) {
			list = append(list, fmt.Sprintf("%d 月", (p.lo+i-1)%12+1))
		}
	}
	text := join(list, "、", "和 ")
	if years == "" {
		years = "每年"
	}
	if strings.HasSuffix(years, "年") {
		years += " "
	}
	text = years + text
	if day && len(month.values) > 1 && !c.days.nearest {
		return text + "的" + gapZH(c)
	}
	if day {
		return text + gapZH(c)
	}
	return text
}

// gapZH is the space before a day that begins with a digit.
func gapZH(c *Cron) string {
	if text := domZH(&c.days); text != "" && text[0] >= '0' && text[0] <= '9' {
		return " "
	}
	return ""
}

// yearsZH writes 2027 年, 2027 至 2030 年, 2027 至 2099 年（每 2 年）.
func yearsZH(years []int) string {
	lo, hi, step := years[0], years[len(years)-1], evenly(years)
	switch {
	case step == 1 && len(years) > 2:
		return fmt.Sprintf("%d 至 %d 年", lo, hi)
	case step > 1 && len(years) > 3:
		return fmt.Sprintf("%d 至 %d 年（每 %d 年）", lo, hi, step)
	}
	var list []string
	for _, y := range years {
		list = append(list, fmt.Sprint(y))
	}
	return join(list, "、", " 和 ") + " 年"
}

// domZH says the day of the month; "" when it does not matter.
func domZH(d *days) string {
	if d.mode == dayOfWeek || !d.last && d.dom == 1<<32-2 {
		return ""
	}
	const weekday = "工作日（周一至周五）"
	switch {
	case d.last && d.offset == 0 && d.nearest:
		return "最后一个" + weekday
	case d.last && d.nearest:
		return fmt.Sprintf("离倒数第 %d 天最近的%s", d.offset+1, weekday)
	case d.last && d.offset == 0:
		return "最后一天"
	case d.last:
		return fmt.Sprintf("倒数第 %d 天", d.offset+1)
	}
	s := shapeOf(uint64(d.dom), 1, 31)
	if d.nearest {
		return fmt.Sprintf("离 %d 日最近的%s", s.lo, weekday)
	}
	if s.kind == shapeStepped || s.kind == shapeEven {
		return fmt.Sprintf("%d 日至 %d 日间每 %d 天", s.lo, s.hi, s.step)
	}
	var list []string
	for _, p := range s.spans() {
		if p.hi-p.lo >= 2 {
			list = append(list, fmt.Sprintf("%d 日至 %d 日", p.lo, p.hi))
			continue
		}
		for v := p.lo; v <= p.hi; v++ {
			list = append(list, fmt.Sprintf("%d 日", v))
		}
	}
	return join(list, "、", "和 ")
}

// dowZH says the day of the week; "" when it does not matter.
func dowZH(d *days) string {
	switch {
	case d.mode == dayOfMonth || d.dow == 1<<7-1 && d.nth == 0 && !d.lastDow:
		return ""
	case d.nth > 0:
		return "第" + ordinalZH[d.nth-1] + "个" + joinZH(weekdayNamesZH(d.dow))
	case d.lastDow:
		return "最后一个" + joinZH(weekdayNamesZH(d.dow))
	}
	var list []string
	for _, p := range mondayFirst(shapeOf(uint64(d.dow), 0, 6).cycle(0, 6)) {
		if p.size(7) > 2 {
			list = append(list, weekdayZH[p.lo]+"至"+weekdayZH[p.hi])
			continue
		}
		for i := range p.size(7) {
			list = append(list, weekdayZH[(p.lo+i)%7])
		}
	}
	return joinZH(list)
}

// weekdayNamesZH lists the days one by one.
func weekdayNamesZH(dow uint32) []string {
	var list []string
	for i := range 7 {
		if day := (i + 1) % 7; dow>>day&1 == 1 {
			list = append(list, weekdayZH[day])
		}
	}
	return list
}

// explainZH is the sentence for any kind of schedule.
func (s *Schedule) explainZH(m dstMatters) string {
	text, zone := "", "（"+s.loc.String()+"）"
	switch r := s.rule.(type) {
	case nil:
		return "不会自动触发"
	case rate:
		text = fmt.Sprintf("%s，自 %s 起计%s", everyZH(time.Duration(r.every)*time.Millisecond), s.local(r.anchor), zone)
	case delay:
		text = "上一次运行结束 " + durationZH(time.Duration(r.every)*time.Millisecond) + "后"
	case instants:
		text = "仅一次：" + s.local(r[0]) + zone
		if len(r) > 1 {
			text = fmt.Sprintf("在指定的 %d 个时刻，从 %s 至 %s%s", len(r), s.local(r[0]), s.local(r[len(r)-1]), zone)
		}
	case window:
		to := " " + clockText(r.to)
		if r.to > 86400 {
			to = "次日 " + clockText(r.to-86400)
		}
		text = fmt.Sprintf("每天 %s 至%s，%s%s", clockText(r.from), to, everyZH(time.Duration(r.every)*time.Millisecond), zone)
	case cronRule:
		text = cronZH(r.cron) + zone
	}
	text += s.dstText(dstZH, m)
	if s.start >= 0 {
		text += "，自 " + s.local(s.start) + " 起"
	}
	if s.end < lastInstant {
		text += "，至 " + s.local(s.end) + " 止"
	}
	if s.jitter > 0 {
		text += "，每次随机延迟最多 " + durationZH(s.JitterMax())
	}
	return text
}
