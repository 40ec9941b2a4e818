package schedule

// WarningCode names something in a valid expression that is probably not what
// its author believes. Codes are stable; Text has the words.
type WarningCode string

// What an expression can be warned about.
const (
	WarnNever       WarningCode = "never_fires"  // 31 February
	WarnEitherDay   WarningCode = "either_day"   // unix: both day fields restricted
	WarnDayNumbers  WarningCode = "day_numbers"  // 6 fields, dialect guessed, days written as numbers
	WarnIgnoredStep WarningCode = "ignored_step" // quartz: MAR/3
	WarnIgnoredDays WarningCode = "ignored_days" // quartz: 1W,15W
	WarnUnevenStep  WarningCode = "uneven_step"  // */7 minutes
	WarnShortMonths WarningCode = "short_months" // only days 29 to 31
)

// warningTexts has English and Chinese, in this order.
var warningTexts = map[WarningCode][2]string{
	WarnNever: {
		"This never fires: no such date exists.",
		"永远不会触发：不存在这样的日期。",
	},
	WarnEitherDay: {
		"Day of month and day of week are both restricted: it fires when either of them matches, not only when both do.",
		"同时限定了日期和星期：只要其中之一符合就会触发，而不是两者都符合才触发。",
	},
	WarnDayNumbers: {
		"Days of the week are numbered 1 = Monday here, but 1 = Sunday in Quartz. Write names (MON), or set the dialect.",
		"此处星期数字 1 表示周一，而在 Quartz 中 1 表示周日。请改用英文缩写（如 MON），或明确指定方言。",
	},
	WarnIgnoredStep: {
		"Quartz ignores a step after a name: MAR/3 means March only. Write 3/3 instead.",
		"Quartz 会忽略英文名称后面的步长：MAR/3 仅表示三月。请改写为 3/3。",
	},
	WarnIgnoredDays: {
		"With W or # Quartz uses only the first day of a list and ignores the others.",
		"列表中含有 W 或 # 时，Quartz 只取其中的第一天，其余的会被忽略。",
	},
	WarnUnevenStep: {
		"The step does not divide its field evenly: the last interval is shorter. Use a fixed rate for even intervals.",
		"步长不能整除该字段的范围，最后一个间隔会变短。如需间隔均匀，请使用固定频率。",
	},
	WarnShortMonths: {
		"Months without this day are left out. The last day of any month is L in the quartz dialect.",
		"没有该日期的月份不会触发。如需每月最后一天，请使用 Quartz 方言中的 L。",
	},
}

// Text says the warning in a language, "en" or "zh"; others give English.
func (w WarningCode) Text(lang string) string { return warningTexts[w][language(lang)] }

// Warnings lists what is odd about the expression, most important first;
// empty for most. The slice belongs to the caller.
func (c *Cron) Warnings() []WarningCode { return append([]WarningCode(nil), c.warnings...) }

// findWarnings looks at a read expression.
func findWarnings(c *Cron, w writing) []WarningCode {
	var found []WarningCode
	add := func(w WarningCode, when bool) {
		if when {
			found = append(found, w)
		}
	}
	add(WarnNever, c.never)
	add(WarnEitherDay, c.days.mode == dayEither)
	add(WarnDayNumbers, w.dayNumbers)
	add(WarnIgnoredStep, w.ignoredStep)
	add(WarnIgnoredDays, w.ignoredDays)
	add(WarnUnevenStep, w.uneven)
	const late = 1<<29 | 1<<30 | 1<<31
	add(WarnShortMonths, !c.never && c.days.mode != dayOfWeek && c.days.mode != dayEither && !c.days.last && c.days.dom&^late == 0)
	return found
}

// writing looks at the items; guessed says that a number for a day may be
// another day than its author meant.
func (f *fieldSet) writing(guessed bool) writing {
	return writing{
		evenMinutes: anyItem(f.items[FieldMinute], func(it item) bool { return it.even(f.rule[FieldMinute]) }),
		uneven:      f.uneven(FieldSecond) || f.uneven(FieldMinute) || f.uneven(FieldHour),
		dayNumbers:  guessed && anyItem(f.items[FieldDayOfWeek], func(it item) bool { return it.number }),
		ignoredStep: f.any(func(it item) bool { return it.ignored }),
		ignoredDays: f.ignoredDays(),
	}
}

// anyItem reports whether an item has a property.
func anyItem(items []item, is func(item) bool) bool {
	for _, it := range items {
		if is(it) {
			return true
		}
	}
	return false
}

// any looks through all fields.
func (f *fieldSet) any(is func(item) bool) bool {
	for _, items := range f.items {
		if anyItem(items, is) {
			return true
		}
	}
	return false
}

// ignoredDays finds lists of which only the first day counts.
func (f *fieldSet) ignoredDays() bool {
	special := func(it item) bool { return it.kind == itemNearest || it.kind == itemNth }
	dom, dow := f.items[FieldDayOfMonth], f.items[FieldDayOfWeek]
	return len(dom) > 1 && anyItem(dom, special) || len(dow) > 1 && anyItem(dow, special)
}

// uneven finds */7 and its like: the field's size is no multiple of the step.
func (f *fieldSet) uneven(field Field) bool {
	r := f.rule[field]
	return r != nil && anyItem(f.items[field], func(it item) bool {
		lo, hi := r.bounds()
		return it.step > 1 && it.even(r) && (hi-lo+1)%it.step != 0
	})
}

// language maps a language tag to an index of our texts: zh, zh-CN and zh_TW
// to Chinese, everything else to English.
func language(tag string) int {
	if len(tag) >= 2 && (tag[0] == 'z' || tag[0] == 'Z') && (tag[1] == 'h' || tag[1] == 'H') && (len(tag) == 2 || tag[2] == '-' || tag[2] == '_') {
		return 1
	}
	return 0
}
