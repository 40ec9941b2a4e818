//go:build proof

package admin_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCallbackQueue publishes the ends of runs, and tries it before.
func TestCallbackQueue(t *testing.T) {
	t.Parallel()
	for name, start := range brokers {
		t.Run(name, func(t *testing.T) {
			n := publishingNode(t)
			n.shopAndBilling()
			queue := start(t)
			queue.create("ends")
			n.connect("orders", queue, queue.addr)
			message := fields{"connection": fields{"name": "orders"}, "target": queue.target("ends")}

			var trial struct {
				OK            bool
				Kind, Message string
			}
			n.do(http.MethodPost, "/api/v1/callbacks/try", fields{"callback": message}, &trial, 200)
			require.Equal(t, []any{true, "message"}, []any{trial.OK, trial.Kind}, trial.Message)
			require.Contains(t, queue.read("ends")[0].body, `"trial":true`)
			n.do(http.MethodPost, "/api/v1/callbacks/try", fields{"callback": with(message, fields{"target": fields{"topic": "t"}})}, nil, 422)

			// An end that has the form of a template is not expanded.
			job := n.newJob("shop", "work", fields{"name": "ship", "onSuccess": message})
			n.until(n.runNow(job, greeting{"{{run.id}}"}), "succeeded")
			r := n.untilCallback("callback:carillon/publish", "succeeded")
			sent := queue.read("ends")
			require.Len(t, sent, 2)
			require.Contains(t, sent[1].body, `"text":"hello {{run.id}}"`)
			require.Equal(t, r.ID, sent[1].headers["Carillon-Dedupe-Key"])

			var connections struct{ Items []struct{ ID string } }
			n.do(http.MethodGet, "/api/v1/connections", nil, &connections, 200)
			var refused struct{ Detail string }
			n.do(http.MethodDelete, "/api/v1/connections/"+connections.Items[0].ID, nil, &refused, 409)
			require.Contains(t, refused.Detail, `is used by the job "ship"`)
			var page struct{ Items []struct{ Spec fields } }
			n.do(http.MethodGet, "/api/v1/job-documents", nil, &page, 200)
			require.Equal(t, "orders", page.Items[0].Spec["onSuccess"].(fields)["connection"].(fields)["name"])
			n.do(http.MethodDelete, "/api/v1/jobs/"+job, nil, nil, 204)
			n.do(http.MethodDelete, "/api/v1/connections/"+connections.Items[0].ID, nil, nil, 204)
		})
	}
}
