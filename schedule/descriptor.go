package schedule

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// descriptor reads @daily by robfig's parser, and "@every 90s". @reboot is missing
// on purpose: a job has no machine that boots.
func (p *parser) descriptor() (*Cron, *ParseError) {
	t := p.tokens[0]
	word := strings.ToLower(t.text)
	if p.dialect == DialectQuartz {
		return nil, p.fail(t.pos, len(t.text), FieldNone, CodeDescriptor,
			"the quartz dialect has no descriptors", "use the standard dialect for "+word)
	}
	if word == "@every" {
		return p.every()
	}
	read, err := robfig.Parse(word)
	if err != nil {
		hint := "known are @yearly @monthly @weekly @daily @hourly and @every 1h30m"
		if word == "@reboot" {
			hint = "a job is not bound to one machine; use a one-shot schedule"
		}
		return nil, p.fail(t.pos, len(t.text), FieldNone, CodeDescriptor, fmt.Sprintf("%q is no descriptor", t.text), hint)
	}
	if len(p.tokens) > 1 {
		extra, end := p.tokens[1], p.tokens[len(p.tokens)-1]
		return nil, p.fail(extra.pos, end.pos+len(end.text)-extra.pos, FieldNone, CodeFieldCount,
			"nothing may follow "+word, "")
	}
	p.dialect = DialectStandard
	return p.fromRobfig(read.(*cron.SpecSchedule), true).complete(writing{}), nil
}

// every reads the interval of @every. robfig's parser would round it to seconds.
func (p *parser) every() (*Cron, *ParseError) {
	const hint = "for example @every 90s or @every 1h30m"
	if len(p.tokens) == 1 {
		return nil, p.fail(len(p.expr), 1, FieldNone, CodeMissing, "the interval is missing", hint)
	}
	t := p.tokens[1]
	if len(p.tokens) > 2 {
		extra, end := p.tokens[2], p.tokens[len(p.tokens)-1]
		return nil, p.fail(extra.pos, end.pos+len(end.text)-extra.pos, FieldNone, CodeFieldCount,
			"nothing may follow the interval", "write the interval without spaces: 1h30m")
	}
	d, err := time.ParseDuration(t.text)
	if err != nil {
		return nil, p.fail(t.pos, len(t.text), FieldNone, CodeDescriptor, fmt.Sprintf("%q is no interval", t.text), hint)
	}
	if d < MinEvery || d > MaxEvery || d%time.Millisecond != 0 {
		return nil, p.fail(t.pos, len(t.text), FieldNone, CodeOutOfRange,
			fmt.Sprintf("the interval must be whole milliseconds from %s to %s", MinEvery, MaxEvery), hint)
	}
	return &Cron{expr: p.expr, dialect: p.dialect, every: d}, nil
}
