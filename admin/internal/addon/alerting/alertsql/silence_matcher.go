package alertsql

import (
	"encoding/json"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// matcherDocument is the column matcher of alert_silences.
type matcherDocument struct {
	Kinds     []domain.AlertKind  `json:"kinds,omitempty"`
	Executors []domain.ExecutorID `json:"executors,omitempty"`
	Jobs      []domain.JobID      `json:"jobs,omitempty"`
	Labels    string              `json:"labels,omitempty"`
}

func toMatcherDocument(m *noun.AlertMatcher) matcherDocument {
	return matcherDocument{m.Kinds, m.Executors, m.Jobs, m.Labels.Text}
}

func (d *matcherDocument) matcher() (noun.AlertMatcher, error) {
	labels, err := domain.ParseSelector(d.Labels)
	return noun.AlertMatcher{Kinds: d.Kinds, Executors: d.Executors, Jobs: d.Jobs, Labels: labels}, err
}

// encodeMatcher writes what a silence matches.
func encodeMatcher(m *noun.AlertMatcher) (string, error) {
	text, err := json.Marshal(toMatcherDocument(m))
	return string(text), err
}

// decodeMatcher reads what encodeMatcher wrote.
func decodeMatcher(text string) (noun.AlertMatcher, error) {
	var d matcherDocument
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return noun.AlertMatcher{}, err
	}
	return d.matcher()
}
