package noun

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// AlertRuleMatch is the form of a rule's AlertMatcher. A stored one has ids in the place of names.
type AlertRuleMatch struct {
	Kinds     []domain.AlertKind `json:"kinds,omitempty" enum:"run_failed,run_timed_out,run_lost,run_missed,no_executor,run_late,run_long,job_absent,runs_pile_up,run_succeeded" maxItems:"16" doc:"Only these kinds; default: all. A rule hears of run_succeeded only if it names it, with the condition events or keyword"`
	Executors []string           `json:"executors,omitempty" maxItems:"100" doc:"Only these executors, by name; default: all. One that was deleted is shown with (deleted) behind its name"`
	Jobs      []string           `json:"jobs,omitempty" maxItems:"100" doc:"Only these jobs, by name; default: all. One that was deleted is shown with (deleted) behind its name"`
	Labels    string             `json:"labels,omitempty" maxLength:"1024" doc:"Only jobs whose labels meet this selector, such as team=finance, tier in (gold, silver), !test"`
	// ExecutorIDs and JobIDs are the form of before. They are read and not written.
	ExecutorIDs []string `json:"executorIds,omitempty" maxItems:"100" deprecated:"true" doc:"Former form of executors, with ids. It is read and never shown: use executors"`
	JobIDs      []string `json:"jobIds,omitempty" maxItems:"100" deprecated:"true" doc:"Former form of jobs, with ids. It is read and never shown: use jobs"`
}

// UnmarshalJSON reads both forms.
func (m *AlertRuleMatch) UnmarshalJSON(text []byte) error {
	type plain AlertRuleMatch
	var read plain
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	read.Executors, read.Jobs = append(read.Executors, read.ExecutorIDs...), append(read.Jobs, read.JobIDs...)
	read.ExecutorIDs, read.JobIDs = nil, nil
	*m = AlertRuleMatch(read)
	return nil
}

// matcher reads the form. Names have the id 0.
func (m *AlertRuleMatch) matcher(c *domain.Checker) AlertMatcher {
	return AlertMatcher{Kinds: m.Kinds, Executors: idsOf[domain.ExecutorID](m.Executors), Jobs: idsOf[domain.JobID](m.Jobs), Labels: selectorIn("body.spec.match", m.Labels, c)}
}

// AlertMatch is the form of a silence's AlertMatcher.
type AlertMatch struct {
	Kinds       []domain.AlertKind `json:"kinds,omitempty" enum:"run_failed,run_timed_out,run_lost,run_missed,no_executor,run_late,run_long,job_absent,runs_pile_up,run_succeeded" maxItems:"16" doc:"Only these kinds; default: all. A rule hears of run_succeeded only if it names it, with the condition events or keyword"`
	ExecutorIDs []string           `json:"executorIds,omitempty" maxItems:"100" doc:"Only these executors; default: all"`
	JobIDs      []string           `json:"jobIds,omitempty" maxItems:"100" doc:"Only these jobs; default: all"`
	Labels      string             `json:"labels,omitempty" maxLength:"1024" doc:"Only jobs whose labels meet this selector, such as team=finance, tier in (gold, silver), !test"`
}

// AlertQuietHours is the form of QuietHours.
type AlertQuietHours struct {
	Zone string   `json:"zone" maxLength:"64" doc:"Time zone, such as Europe/Berlin"`
	From string   `json:"from" pattern:"^[0-2][0-9]:[0-5][0-9]$" doc:"Their beginning, such as 22:00"`
	To   string   `json:"to" pattern:"^[0-2][0-9]:[0-5][0-9]$" doc:"Their end; before from: on the next day"`
	Days []string `json:"days,omitempty" enum:"sunday,monday,tuesday,wednesday,thursday,friday,saturday" maxItems:"7" doc:"Days on which they begin; default: all"`
}

// MatchOf is the form of a matcher.
func MatchOf(m *AlertMatcher) AlertMatch {
	return AlertMatch{Kinds: m.Kinds, ExecutorIDs: IDTexts(m.Executors), JobIDs: IDTexts(m.Jobs), Labels: m.Labels.Text}
}

// IDTexts are ids as texts.
func IDTexts[T ~int64](ids []T) []string {
	return domain.Collect(ids, func(id *T) string { return strconv.FormatInt(int64(*id), 10) })
}

// Matcher reads the form. at is its location.
func (m *AlertMatch) Matcher(at string, c *domain.Checker) AlertMatcher {
	return AlertMatcher{
		Kinds: m.Kinds, Executors: IDsIn[domain.ExecutorID](c, at+".executorIds", m.ExecutorIDs), Jobs: IDsIn[domain.JobID](c, at+".jobIds", m.JobIDs), Labels: selectorIn(at, m.Labels, c),
	}
}

func selectorIn(at, text string, c *domain.Checker) domain.Selector {
	labels, err := domain.ParseSelector(text)
	if err == nil {
		err = labels.Contradiction()
	}
	if err != nil {
		c.Check(false, at+".labels", text, err.Error())
	}
	return labels
}

// IDsIn reads ids.
func IDsIn[T ~int64](c *domain.Checker, at string, texts []string) (out []T) {
	for n, text := range texts {
		id, err := domain.ParseID[T](text)
		c.Check(err == nil, at+"["+strconv.Itoa(n)+"]", text, "must be an id, a decimal string")
		out = append(out, id)
	}
	return out
}

// QuietOf is the form of quiet hours; nil: there are none.
func QuietOf(q *QuietHours) *AlertQuietHours {
	if q.IsZero() {
		return nil
	}
	return &AlertQuietHours{q.Zone, q.From, q.To, domain.Collect(q.Days, func(d *time.Weekday) string { return strings.ToLower(d.String()) })}
}

// Hours reads the form.
func (q *AlertQuietHours) Hours() (out QuietHours) {
	if q == nil {
		return out
	}
	out = QuietHours{Zone: q.Zone, From: q.From, To: q.To}
	for day := time.Sunday; day <= time.Saturday; day++ {
		for _, name := range q.Days {
			if strings.EqualFold(name, day.String()) {
				out.Days = append(out.Days, day)
			}
		}
	}
	return out
}

// OptionalDuration reads a duration; empty: 0.
func OptionalDuration(c *domain.Checker, at, text string) time.Duration {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	c.Check(err == nil, at, text, "must be a duration such as 30m")
	return d
}

func durationOrEmpty(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}
