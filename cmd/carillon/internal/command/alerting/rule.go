package alerting

import (
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/document"
)

// enabledColumn shows a field that is true by default.
var enabledColumn = document.Column{Title: "ENABLED", Path: "spec.enabled", Show: func(v any) string { return map[bool]string{true: "yes", false: "no"}[v != false] }}

var ruleKind = document.Kind{
	Noun: "rule", Under: "alert", Path: "alert-rules", Short: "Keep alert rules: what is told, how urgent it is, and to whom",
	Example:    "  carillon alert rule apply -f finance.yaml\n  carillon alert rule list",
	DeleteNote: "; the next one that matches decides",
	Columns: []document.Column{
		{Title: "POSITION", Path: "spec.position", Right: true, Show: func(v any) string {
			position, _ := v.(float64)
			return cli.Number(int64(position))
		}},
		{Title: "CONDITION", Path: "spec.condition.kind"},
		{Title: "KINDS", Path: "spec.match.kinds", Drop: 1},
		{Title: "SEVERITY", Path: "spec.severity"},
		{Title: "CHANNELS", Path: "spec", Drop: 2, Show: ruleChannels},
		enabledColumn,
	},
}

func ruleChannels(v any) string {
	spec, _ := v.(map[string]any)
	if spec["mute"] == true {
		return "muted"
	}
	return document.Shown(spec["channels"])
}
