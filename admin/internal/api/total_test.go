package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
)

// TestListTotals: a list is counted if the request asks for it, on each page. The store's tests
// have the filters.
func TestListTotals(t *testing.T) {
	w := newWorld(t)
	shop, bank := w.executor("acme", "shop"), w.executor("acme", "bank")
	for i := range 3 {
		job := w.job("acme", fmt.Sprint("job ", i), shop)
		w.call("acme/operator", "POST", "/jobs/"+job.ID+"/run", nil).is(http.StatusCreated)
		w.call("acme/admin", "POST", "/calendars", calendarBody(fmt.Sprint("calendar ", i), map[string]any{})).is(http.StatusCreated)
	}
	w.job("acme", "other", bank)
	w.bound("bound", "viewer", "bank")
	for address, want := range map[string]*web.Total{
		"acme/viewer /jobs?limit=1": nil, "acme/viewer /jobs?limit=1&total=true": {Count: 4}, "acme/viewer /jobs?total=true&executor=shop&q=job": {Count: 3},
		"acme/viewer /runs?limit=1&total=true": {Count: 3}, "acme/viewer /runs?total=true&state=failed": {}, "acme/viewer /calendars?limit=2&total=true": {Count: 3},
		"acme/viewer /calendars": nil, "bound /jobs?total=true": {Count: 1}, "bound /runs?total=true": {}, "beta/viewer /jobs?total=true": {},
	} {
		var who, path string
		_, err := fmt.Sscan(address, &who, &path)
		require.NoError(t, err)
		require.Equal(t, want, into[web.Page[json.RawMessage]](w.call(who, "GET", path, nil).is(http.StatusOK)).Total, address)
	}
}
