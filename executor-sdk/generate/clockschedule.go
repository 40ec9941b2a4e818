package generate

import (
	"slices"
	"strings"
	"time"
)

// checkSchedule finds keys of the schedule that contradict each other, or
// mean nothing without another one.
func (c *clockReader) checkSchedule() {
	kinds := []string{"cron", "every", "delay", "at"}
	first := ""
	for _, key := range kinds {
		o, ok := c.at[key]
		switch {
		case ok && first != "" && !(first == "cron" && key == "every"): // told already
			c.r.add(o.pos, "keep one of them, or write a second carillon:clock", "%s and %s exclude each other", first, key)
		case ok && first == "":
			first = key
		}
	}
	needs := func(key, hint string, any ...string) {
		o, ok := c.at[key]
		if ok && !slices.ContainsFunc(any, func(k string) bool { _, given := c.at[k]; return given }) {
			c.r.add(o.pos, "add "+hint+" or remove it", "key %q has a meaning only beside %s", key, strings.Join(any, " or "))
		}
	}
	needs("dialect", "cron=…", "cron")
	needs("zone", "cron=…", "cron", "window")
	needs("gap", "cron=…", "cron", "window")
	needs("overlap", "cron=…", "cron")
	needs("window", "every=…", "every")
	needs("days", "calendars=…", "calendars")
	for _, key := range []string{"misfire", "misfire-threshold", "jitter", "calendars", "start-at", "end-at"} {
		if o, ok := c.at[key]; ok && first == "" {
			c.r.add(o.pos, "add cron=… or every=…, or remove it", "key %q has a meaning only with a schedule", key)
		}
	}
}

// instants reads at=2026-12-24T18:00:00Z, or several separated by commas.
func (c *clockReader) instants(o option) []string {
	var out []string
	for _, text := range strings.Split(o.value, ",") {
		text = strings.TrimSpace(text)
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			c.r.add(o.valuePos, "write an instant like 2026-12-24T18:00:00Z, several with commas", "%s=%q is no instant", o.key, text)
			return nil
		}
		out = append(out, text)
	}
	return out
}

// instant reads start-at=2026-12-24T18:00:00Z.
func (c *clockReader) instant(o option) string {
	if list := c.instants(o); len(list) == 1 {
		return list[0]
	} else if len(list) > 1 {
		c.r.add(o.valuePos, "write one instant like 2026-12-24T18:00:00Z", "%s=%q has several", o.key, o.value)
	}
	return ""
}

// window reads window=09:00-17:30.
func (c *clockReader) window(o option) string {
	from, to, ok := strings.Cut(o.value, "-")
	for _, text := range []string{from, to} {
		layout := "15:04:05"[:min(len(text), 8)]
		_, err := time.Parse(layout, text)
		ok = ok && (len(text) == 5 || len(text) == 8) && (err == nil || text == "24:00")
	}
	if !ok {
		c.r.add(o.valuePos, "write it like 09:00-17:30", "window=%q is no part of a day", o.value)
	}
	return o.value
}

// names reads a list separated by commas.
func (c *clockReader) names(o option) []string {
	var out []string
	for _, name := range strings.Split(o.value, ",") {
		if name = strings.TrimSpace(name); name == "" {
			c.r.add(o.valuePos, "write names separated by commas", "%s=%q has an empty name", o.key, o.value)
			return nil
		}
		out = append(out, name)
	}
	return out
}
