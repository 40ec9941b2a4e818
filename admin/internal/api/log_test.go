package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/access"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// write appends log lines to an attempt, numbered from first.
func (w *world) write(e domain.Execution, first int64, texts ...string) {
	w.t.Helper()
	chunk := domain.LogChunk{TenantID: e.TenantID, ExecutionID: e.ID, Attempt: e.Attempt, FirstLine: first}
	for i, text := range texts {
		level := 0
		if strings.HasPrefix(text, "!") {
			level = 8
		}
		chunk.Lines = append(chunk.Lines, domain.LogLine{
			Number: first + int64(i), Attempt: e.Attempt, At: time.Now(), Level: level, Message: text, Attrs: []byte(`{"order":` + fmt.Sprint(first+int64(i)) + `}`),
		})
	}
	_, err := w.store.AppendLogs(w.t.Context(), []store.LogAppend{{Tenant: e.TenantID, Executor: e.Executor, Chunks: []domain.LogChunk{chunk}}})
	require.NoError(w.t, err)
}

// finish ends the attempt, which wrote so many lines.
func (w *world) finish(e domain.Execution, outcome domain.Outcome, lines int64) {
	w.t.Helper()
	res, err := w.store.FinishAttempts(w.t.Context(), []store.AttemptReport{{Tenant: e.TenantID, Executor: e.Executor, Report: domain.Report{
		ExecutionID: e.ID, Fence: e.Fence, Outcome: outcome, LogLines: lines, StartedAt: time.Now(),
	}}})
	require.NoError(w.t, err)
	require.Equal(w.t, store.FinishStored, res[0].Code)
}

// running starts a run of a fresh job with two attempts.
func (w *world) running() (domain.Execution, string) {
	w.t.Helper()
	e := w.executor("acme", "shop")
	w.instance(e, "one", "reconcile")
	job := w.job("acme", "nightly", e, with("retry", map[string]any{"maxAttempts": 2, "delay": "0s"}))
	run := into[Run](w.call("acme/operator", "POST", "/jobs/"+job.ID+"/run", nil).is(201))
	return w.started("acme", run.ID), "/runs/" + run.ID + "/log"
}

func (w *world) logPage(path, query string) LogPage {
	w.t.Helper()
	return into[LogPage](w.call("acme/viewer", "GET", path+"?"+query, nil).is(200))
}

func messages(p LogPage) []string {
	out := []string{}
	for _, l := range p.Lines {
		out = append(out, l.Msg)
	}
	return out
}

func TestLogPages(t *testing.T) {
	w := newWorld(t)
	e, path := w.running()
	empty := w.logPage(path, "")
	require.Empty(t, empty.Lines)
	require.Zero(t, empty.LastLine)
	require.False(t, empty.Complete)

	w.write(e, 1, "one", "two", "!three")
	w.write(e, 4, "four", "five")
	all := w.logPage(path, "")
	require.Equal(t, []string{"one", "two", "!three", "four", "five"}, messages(all))
	require.Equal(t, int64(5), all.LastLine)
	require.Equal(t, int64(5), all.Next)
	require.False(t, all.Complete, "it still runs")
	require.Equal(t, "ERROR", all.Lines[2].Level)
	require.JSONEq(t, `{"order":3}`, string(all.Lines[2].Attrs))

	part := w.logPage(path, "after=1&limit=2")
	require.Equal(t, []string{"two", "!three"}, messages(part))
	require.Equal(t, int64(5), part.LastLine)
	require.Equal(t, int64(3), part.Next)

	require.Equal(t, []string{"!three"}, messages(w.logPage(path, "level=ERROR")))
	require.Equal(t, []string{"four"}, messages(w.logPage(path, "q=FOUR")))
	found := w.logPage(path, "q=order%22:2")
	require.Equal(t, []string{"two"}, messages(found))
	require.Equal(t, int64(5), found.Next, "the others need not be looked at again")
	require.Empty(t, w.logPage(path, "q=nothing").Lines)

	w.finish(e, domain.OutcomeSucceeded, 6)
	require.False(t, w.logPage(path, "").Complete, "one line is on its way")
	w.write(e, 6, "six")
	last := w.logPage(path, "after=5")
	require.Equal(t, []string{"six"}, messages(last))
	require.True(t, last.Complete)
	require.False(t, last.Truncated)
	require.Equal(t, &LogCounts{Written: 6, Kept: 6, Missing: []LogMissing{}}, last.Counts)
	require.Nil(t, w.logPage(path, "limit=2").Counts, "it does not reach the end")
	require.False(t, w.logPage(path, "limit=2").Complete, "there is more to read")
}

// TestMissingLinesAreCounted: a log that has ended is not whole because of that.
func TestMissingLinesAreCounted(t *testing.T) {
	w := newWorld(t)
	e, path := w.running()
	w.write(e, 1, "one", "two")
	w.write(e, 8, "… 5 lines dropped: they came faster than they could be stored")
	require.Nil(t, w.logPage(path, "").Counts, "more lines can come")
	w.finish(e, domain.OutcomeSucceeded, 8)
	for _, query := range []string{"", "before=9007199254740991", "attempt=1"} {
		page := w.logPage(path, query)
		require.True(t, page.Complete, "no further line can come")
		require.True(t, page.Truncated)
		require.Equal(t, &LogCounts{Written: 8, Kept: 3, Missing: []LogMissing{{Lines: 5, Why: "executor"}}}, page.Counts, query)
	}
}

// TestWhyTheEndOfALogIsNotThere: what never arrived, and what was deleted.
func TestWhyTheEndOfALogIsNotThere(t *testing.T) {
	ended := time.Now()
	wrote := segment{attempt: 1, wrote: 5, over: true, endedAt: ended}
	require.Equal(t, "lost", gone(wrote, store.LogCount{LastLine: 3}, ended.Add(2*wholeGone)))
	require.Equal(t, "lost", gone(wrote, store.LogCount{}, ended.Add(time.Minute)))
	require.Equal(t, "expired", gone(wrote, store.LogCount{}, ended.Add(2*wholeGone)))
}

// TestLogOfSeveralAttempts: the numbers count on, so that one cursor follows
// the whole run.
func TestLogOfSeveralAttempts(t *testing.T) {
	w := newWorld(t)
	e, path := w.running()
	w.write(e, 1, "a1", "a2")
	w.finish(e, domain.OutcomeFailed, 2)
	between := w.logPage(path, "")
	require.Equal(t, []string{"a1", "a2"}, messages(between))
	require.False(t, between.Complete, "another attempt comes")
	require.True(t, w.logPage(path, "attempt=1").Complete, "this one is over")

	again := w.started("acme", e.ID.String())
	require.Equal(t, 2, again.Attempt)
	require.False(t, w.logPage(path, "attempt=2").Complete, "it runs")
	require.True(t, w.logPage(path, "attempt=1").Complete, "this one is over")
	w.write(again, 1, "b1", "b2", "b3")
	more := w.logPage(path, fmt.Sprintf("after=%d", between.Next))
	require.Equal(t, []string{"b1", "b2", "b3"}, messages(more))
	require.Equal(t, int64(3), more.Lines[0].N)
	require.Equal(t, 2, more.Lines[0].Attempt)
	require.Equal(t, int64(5), more.LastLine)
	w.finish(again, domain.OutcomeSucceeded, 3)
	whole := w.logPage(path, "limit=4")
	require.Equal(t, []string{"a1", "a2", "b1", "b2"}, messages(whole))
	require.True(t, w.logPage(path, "after=4").Complete)

	second := w.logPage(path, "attempt=2")
	require.Equal(t, []string{"b1", "b2", "b3"}, messages(second))
	require.Equal(t, int64(1), second.Lines[0].N, "by itself it counts from 1")
	require.True(t, second.Complete)
	require.Empty(t, w.logPage(path, "attempt=7").Lines)
}

// TestLogIsReadFromItsEnd: back over the attempts with the cursor that each
// page gives, filtered or not.
func TestLogIsReadFromItsEnd(t *testing.T) {
	w := newWorld(t)
	e, path := w.running()
	w.write(e, 1, "a1", "!a2", "a3")
	w.finish(e, domain.OutcomeFailed, 3)
	again := w.started("acme", e.ID.String())
	w.write(again, 1, "b1", "!b2", "b3", "b4")
	const end = "before=9007199254740991"

	page := w.logPage(path, end+"&limit=3")
	require.Equal(t, []string{"!b2", "b3", "b4"}, messages(page))
	require.Equal(t, int64(7), page.Lines[2].N)
	require.Equal(t, int64(7), page.LastLine)
	require.Equal(t, int64(7), page.Next, "from here it goes on")
	require.Equal(t, int64(5), page.Prev)
	page = w.logPage(path, "before=5&limit=3")
	require.Equal(t, []string{"!a2", "a3", "b1"}, messages(page))
	require.Equal(t, int64(2), page.Prev)
	page = w.logPage(path, "before=2&limit=3")
	require.Equal(t, []string{"a1"}, messages(page))
	require.Zero(t, page.Prev)
	require.Empty(t, w.logPage(path, "before=1").Lines)

	page = w.logPage(path, end+"&level=ERROR&limit=1")
	require.Equal(t, []string{"!b2"}, messages(page))
	page = w.logPage(path, fmt.Sprintf("before=%d&level=ERROR", page.Prev))
	require.Equal(t, []string{"!a2"}, messages(page))
	require.Zero(t, page.Prev)
	require.Equal(t, []string{"a3", "b3"}, messages(w.logPage(path, end+"&q=3")))
	require.Equal(t, []string{"b1"}, messages(w.logPage(path, "after=3&q=1&limit=1")))
	require.Equal(t, []string{"b1", "!b2"}, messages(w.logPage(path, "attempt=2&before=3")), "by itself it counts from 1")

	w.call("acme/viewer", "GET", path+"?before=3&after=1", nil).problem(422, "validation_failed")
	w.call("acme/viewer", "GET", path+"?before=3&wait=1s", nil).problem(422, "validation_failed")
}

// TestLogThatIsLongIsSearchedInParts: whatever a request looks at, the cursor
// goes on, and nothing that matches is left out.
func TestLogThatIsLongIsSearchedInParts(t *testing.T) {
	w := newWorld(t)
	e, path := w.running()
	text := strings.Repeat("abab babc ", 900) // all runs of three of what is looked for, 9 KB
	lines := make([]string, 500)
	for first := int64(1); first <= 2500; first += int64(len(lines)) {
		for i := range lines {
			if lines[i] = text; (first+int64(i))%100 == 7 {
				lines[i] += "ABabc"
			}
		}
		w.write(e, first, lines...)
	}
	requests, found := 0, []int64{}
	for after := int64(0); after < 2500; requests++ {
		page := w.logPage(path, fmt.Sprintf("after=%d&q=ababC", after))
		for _, l := range page.Lines {
			found = append(found, l.N)
		}
		require.Greater(t, page.Next, after)
		after = page.Next
	}
	require.Greater(t, requests, 1, "one request does not read 22 MB")
	require.Len(t, found, 25)
	require.Equal(t, []int64{7, 107}, found[:2])
}

// TestLogTextIsData: what a handler logs comes out as text, in JSON and in the
// download, whatever it looks like.
func TestLogTextIsData(t *testing.T) {
	w := newWorld(t)
	e, path := w.running()
	nasty := []string{
		"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "javascript:alert(1)", "\x1b]8;;http://evil\x07link\x1b]8;;\x07", "\x1b[2J\x1b[H\x1b[31m",
		"a\r2026-11-21T00:00:00.000Z INFO  forged", "\x00\x07\x08\x7f\u009b31m", "\u202etxt.exe\u2066", "=cmd|' /C calc'!A0", strings.Repeat("🚨", 100), "a\u2028b",
	}
	w.write(e, 1, nasty...)
	w.finish(e, domain.OutcomeSucceeded, int64(len(nasty)))
	a := w.call("acme/viewer", "GET", path, nil).is(200)
	require.Contains(t, a.header.Get("Content-Type"), "application/json")
	require.Equal(t, "nosniff", a.header.Get("X-Content-Type-Options"))
	require.Equal(t, nasty, messages(into[LogPage](a)))
	text := string(w.call("acme/viewer", "GET", path+"/download", nil).is(200).body)
	for _, r := range text {
		require.False(t, r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)), "%q", r)
	}
	require.Contains(t, text, `\u000d2026-11-21T00:00:00.000Z INFO  forged`)
	require.Equal(t, len(nasty)+1, strings.Count(text, "\n"), "a line each: none is forged")
}

func TestLogThatNeverArrived(t *testing.T) {
	w := newWorld(t)
	e, path := w.running()
	w.write(e, 1, "one")
	w.finish(e, domain.OutcomeSucceeded, 5)
	require.False(t, w.logPage(path, "").Complete)
	w.deps.Now = func() time.Time { return time.Now().Add(time.Minute) }
	w.start()
	late := w.logPage(path, "")
	require.True(t, late.Complete, "nobody waits for ever")
	require.True(t, late.Truncated)
}

func TestLogIsFollowed(t *testing.T) {
	w := newWorld(t)
	e, path := w.running()
	token := w.as("acme/viewer")
	server := httptest.NewServer(w.handler)
	defer server.Close()
	client := server.Client()
	defer client.CloseIdleConnections()
	get := func(ctx context.Context, query string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, "GET", server.URL+web.Base+path+"?"+query, nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		return client.Do(req)
	}
	asked := make(chan struct{})
	got := make(chan string, 1)
	go func() {
		close(asked)
		res, err := get(t.Context(), "wait=20s")
		if err != nil {
			got <- err.Error()
			return
		}
		defer res.Body.Close()
		var text strings.Builder
		buf := make([]byte, 4096)
		n, _ := res.Body.Read(buf)
		text.Write(buf[:n])
		got <- text.String()
	}()
	<-asked
	select {
	case text := <-got:
		t.Fatalf("answered without a line: %s", text)
	case <-time.After(400 * time.Millisecond): // more than one poll
	}
	w.write(e, 1, "here it is")
	require.Contains(t, <-got, "here it is", "a request that is not woken ends without a line")

	// With nothing to tell it answers when the wait is over.
	res, err := get(t.Context(), "after=1&wait=300ms")
	require.NoError(t, err)
	res.Body.Close()
	require.Equal(t, 200, res.StatusCode)

	// The end ends the wait.
	done := make(chan int, 1)
	go func() {
		res, err := get(context.WithoutCancel(t.Context()), "after=1&wait=20s")
		if err != nil {
			done <- -1
			return
		}
		res.Body.Close()
		done <- res.StatusCode
	}()
	w.finish(e, domain.OutcomeSucceeded, 1)
	require.Equal(t, 200, <-done)

	// A client that goes leaves nothing behind (goleak looks at the end).
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = get(ctx, "after=9&wait=20s")
	if err == nil {
		return // the run is over: there was nothing to wait for
	}
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// TestALogIsNotFollowedByWhoIsLockedOut: neither a key that was revoked nor a user who
// was taken out sees lines that come while it waits.
func TestALogIsNotFollowedByWhoIsLockedOut(t *testing.T) {
	w := newWorld(t)
	e, path := w.running()
	key := into[access.CreatedAPIKey](w.call("acme/admin", "POST", "/api-keys", map[string]any{"name": "reads", "role": "viewer"}).is(201))
	w.bearers["key"] = key.Secret
	w.write(e, 1, "seen")
	w.call("key", "GET", path, nil).is(200)
	got := make(chan answer, 1)
	go func() { got <- w.call("key", "GET", path+"?after=1&wait=20s", nil) }()
	select {
	case <-got:
		t.Fatal("answered without a line")
	case <-time.After(400 * time.Millisecond): // more than one poll
	}
	w.call("acme/admin", "DELETE", "/api-keys/"+key.ID, nil).is(204)
	w.write(e, 2, "secret")
	(<-got).problem(401, "unauthenticated")
}

func TestLogDownload(t *testing.T) {
	w := newWorld(t)
	e, path := w.running()
	w.write(e, 1, "first", "colour \x1b[31mred", "two\nlines", "!bad")
	w.finish(e, domain.OutcomeFailed, 4)
	again := w.started("acme", e.ID.String())
	many := make([]string, 2500)
	for i := range many {
		many[i] = fmt.Sprintf("line %d", i+1)
	}
	w.write(again, 1, many...)
	a := w.call("acme/viewer", "GET", path+"/download", nil).is(200)
	require.Equal(t, "text/plain; charset=utf-8", a.header.Get("Content-Type"))
	require.Equal(t, `attachment; filename="run-`+e.ID.String()+`.log"`, a.header.Get("Content-Disposition"))
	require.Equal(t, "nosniff", a.header.Get("X-Content-Type-Options"))
	text := string(a.body)
	require.Contains(t, text, "-- attempt 1\n")
	require.Contains(t, text, ` INFO  first {"order":1}`+"\n")
	require.Contains(t, text, ` ERROR !bad {"order":4}`+"\n")
	require.Contains(t, text, `colour \u001b[31mred`)
	require.Contains(t, text, "two\n\tlines")
	require.NotContains(t, text, "\x1b")
	require.Contains(t, text, "line 1 ")
	require.Contains(t, text, "line 2500 ")
	require.Equal(t, 2500+4+1+2+1, strings.Count(text, "\n"))
	w.call("acme/viewer", "GET", "/runs/12345/log/download", nil).problem(404, "not_found")
}
