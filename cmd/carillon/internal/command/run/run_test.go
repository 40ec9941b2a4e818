package run

import (
	"strings"
	"testing"

	"github.com/carillon-sched/carillon/internal/apiclient"
)

func TestListsShowTheErrorFirst(t *testing.T) {
	for _, c := range []struct {
		run  apiclient.Run
		want string
	}{
		{apiclient.Run{Reason: "no_executor"}, "no_executor"},
		{apiclient.Run{Reason: "handler_failed", Error: "no route to db\nat main.go:7"}, "no route to db"},
		{apiclient.Run{Reason: "handler_failed", Error: strings.Repeat("错", 100)}, strings.Repeat("错", maxWhy-1) + "…"},
	} {
		if got := whyCell(c.run); got != c.want {
			t.Errorf("whyCell = %q, want %q", got, c.want)
		}
	}
}
