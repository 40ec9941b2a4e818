package api

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/search"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// hits are the kinds and names that a search finds, and those of which there are more.
func (w *world) hits(who, text string) (found, more []string) {
	w.t.Helper()
	out := into[search.SearchHits](w.call(who, "GET", "/search?q="+url.QueryEscape(text), nil).is(http.StatusOK))
	return domain.Collect(out.Items, func(h *search.SearchHit) string { return h.Kind + " " + h.Name }), out.More
}

// TestSearch finds objects of all kinds that a caller may read.
func TestSearch(t *testing.T) {
	w := newWorld(t)
	shop, bank := w.executor("acme", "shop-nightly"), w.executor("acme", "bank")
	own, outside := w.objectsIn("acme", shop, "nightly"), w.objectsIn("acme", bank, "nightly-secret")
	for name, label := range map[string]string{"50%_off": `a=b "c"\d`, "plain": "pay"} {
		w.job("acme", name, shop, func(b map[string]any) { b["labels"] = map[string]any{"team": label} })
	}
	w.call("acme/admin", "POST", "/calendars", calendarBody("the nightly days", map[string]any{})).is(http.StatusCreated)
	w.bound("reader", "viewer", "shop-nightly")
	w.bound("operator", "operator", "shop-nightly")
	w.executor("acme", "unused")
	w.bound("nobody", "viewer", "unused")
	w.key("key", "viewer", "bank")

	days := calendarBody("pay days", map[string]any{})
	days["labels"] = map[string]any{"Team": "Payments"}
	w.call("acme/admin", "POST", "/calendars", days).is(http.StatusCreated)
	mq := rabbit()
	mq["labels"] = map[string]any{"team": "pay"}
	w.call("acme/admin", "POST", "/connections", mq).is(http.StatusCreated)

	all, more := w.hits("acme/admin", "nightly")
	require.Empty(t, more)
	require.Equal(t, []string{"Job nightly", "Job nightly-secret", "Executor shop-nightly", "Calendar the nightly days"}, all, "names, beginnings, parts")
	bound, _ := w.hits("reader", "nightly")
	require.Equal(t, []string{"Job nightly", "Executor shop-nightly"}, bound)
	key, _ := w.hits("key", "nightly")
	require.Equal(t, []string{"Job nightly-secret"}, key)

	for _, c := range []struct {
		who, text string
		want      []string
	}{
		{"acme/viewer", "order-1", nil}, {"acme/operator", "order-1", []string{"Timer order-1", "Timer order-1"}},
		{"acme/operator", "order-", []string{"Timer order-1", "Timer order-1"}}, {"operator", "order-1", []string{"Timer order-1"}}, {"reader", "order-1", nil},
		{"acme/viewer", own["/runs/{id}"], []string{"Run nightly"}}, {"reader", own["/runs/{id}"], []string{"Run nightly"}}, {"reader", outside["/runs/{id}"], nil},
		{"reader", outside["/jobs/{id}"], nil}, {"acme/viewer", outside["/jobs/{id}"], []string{"Job nightly-secret"}}, {"reader", outside["/executors/{id}"], nil},
		{"acme/viewer", bank.ID.String(), []string{"Executor bank"}}, {"acme/viewer", " NIGHTLY-s ", []string{"Job nightly-secret"}},
		{"acme/viewer", "%%", nil}, {"acme/viewer", "0%_", []string{"Job 50%_off"}}, {"acme/viewer", "__", nil}, {"acme/viewer", "!!", nil},
		{"acme/viewer", "team=pay", []string{"Job plain", "Calendar pay days", "Connection orders"}}, {"acme/viewer", "team=payments", []string{"Calendar pay days"}}, {"acme/viewer", "am=pay", nil}, {"acme/viewer", `team=a=b "c"\d`, []string{"Job 50%_off"}}, {"acme/viewer", "team=%", nil}, {"key", "team=pay", nil},
		{"acme/viewer", "99999999999999999999", nil}, {"acme/viewer", "-7", nil}, {"acme/viewer", "' OR 1=1", nil}, {"nobody", "nightly", nil},
	} {
		got, _ := w.hits(c.who, c.text)
		require.Equal(t, append([]string{}, c.want...), got, "%s %s", c.who, c.text)
	}
	for pattern, id := range own { // of another tenant
		if strings.HasSuffix(pattern, "{id}") && len(id) > 1 {
			got, _ := w.hits("beta/admin", id)
			require.Empty(t, got, pattern)
		}
	}
	for _, text := range []string{"nightly", "team=pay", "order-1", "shop"} {
		got, _ := w.hits("beta/admin", text)
		require.Empty(t, got, text)
	}
	for _, query := range []string{"", "?q=", "?q=a", "?q=%20a%20", "?q=" + strings.Repeat("a", 129), "?q=a%00b"} {
		w.call("acme/viewer", "GET", "/search"+query, nil).problem(http.StatusUnprocessableEntity, "validation_failed")
	}
}

// TestSearchSaysThatThereAreMore: each kind has a bound of its own.
func TestSearchSaysThatThereAreMore(t *testing.T) {
	w := newWorld(t)
	shop := w.executor("acme", "many")
	for i := range domain.MaxFound + 2 {
		w.job("acme", "many "+string(rune('a'+i)), shop)
	}
	found, more := w.hits("acme/viewer", "many")
	require.Equal(t, []string{"Job"}, more)
	require.Len(t, found, domain.MaxFound+1)
	require.True(t, slices.Contains(found, "Executor many"))
	require.Equal(t, "Executor many", found[0], "its name is the text")
	var hint string
	for _, h := range into[search.SearchHits](w.call("acme/viewer", "GET", "/search?q=many+a", nil)).Items {
		hint += h.Kind + h.Hint
	}
	require.Equal(t, "Jobmany", hint)
}
