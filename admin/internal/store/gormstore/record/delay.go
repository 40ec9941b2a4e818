package record

import (
	"encoding/json"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// delayRow is a domain.Delay as it stands in executions.delays.
type delayRow struct {
	At       int64  `json:"at"`
	LastAt   int64  `json:"last"`
	Count    int    `json:"n"`
	Reason   string `json:"reason"`
	Message  string `json:"message,omitempty"`
	Instance int64  `json:"instance,omitempty"`
	Stop     bool   `json:"stop,omitempty"`
	Busy     int    `json:"busy,omitempty"`
}

func delaysText(list []domain.Delay) string {
	if len(list) == 0 {
		return ""
	}
	rows := make([]delayRow, len(list))
	for i, d := range list {
		rows[i] = delayRow{d.At.UnixMilli(), d.LastAt.UnixMilli(), d.Count, string(d.Reason), Valid(d.Message), int64(d.Instance), d.Stop, d.Busy}
	}
	text, err := json.Marshal(rows)
	if err != nil {
		return "" // cannot be: numbers and valid text only
	}
	return string(text)
}

// delaysOf reads the column; what cannot be read explains nothing, and that
// is all the harm.
func delaysOf(text string) []domain.Delay {
	var rows []delayRow
	if text == "" || json.Unmarshal([]byte(text), &rows) != nil {
		return nil
	}
	out := make([]domain.Delay, len(rows))
	for i, r := range rows {
		out[i] = domain.Delay{
			At: time.UnixMilli(r.At).UTC(), LastAt: time.UnixMilli(r.LastAt).UTC(), Count: r.Count,
			Reason: domain.Reason(r.Reason), Message: r.Message, Instance: domain.InstanceID(r.Instance), Stop: r.Stop, Busy: r.Busy,
		}
	}
	return out
}

// pickRow is a domain.ShardPick as it stands in executions.picks.
type pickRow struct {
	Index    int   `json:"index"`
	Instance int64 `json:"instance,omitempty"`
}

func picksText(list []domain.ShardPick) string {
	if len(list) == 0 {
		return ""
	}
	rows := make([]pickRow, len(list))
	for i, p := range list {
		rows[i] = pickRow{p.Index, int64(p.Instance)}
	}
	text, err := json.Marshal(rows)
	if err != nil {
		return "" // cannot be: numbers only
	}
	return string(text)
}

// picksOf reads the column; nothing but picksText writes it.
func picksOf(text string) []domain.ShardPick {
	var rows []pickRow
	if text == "" || json.Unmarshal([]byte(text), &rows) != nil {
		return nil
	}
	out := make([]domain.ShardPick, len(rows))
	for i, r := range rows {
		out[i] = domain.ShardPick{Index: r.Index, Instance: domain.InstanceID(r.Instance)}
	}
	return out
}
