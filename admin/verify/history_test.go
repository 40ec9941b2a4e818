package verify_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/verify"
)

var begin = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

func at(d time.Duration) verify.Time { return verify.At(begin.Add(d)) }

func TestHistoryComesBackAsWritten(t *testing.T) {
	var file bytes.Buffer
	w := verify.NewWriter(&file)
	spec := &verify.Spec{Kind: "cron", Expr: "0 2 * * *", Zone: "Asia/Shanghai", Blocking: "serial"}
	started := verify.Run{Job: "7", Key: "70", Fence: 1, Boot: "b", Tenant: "1", Start: at(time.Second), Attempt: 1, FireAt: at(0), Node: "e1"}
	ended := started
	ended.End = at(2 * time.Second)
	records := []verify.Record{
		&verify.Plan{From: at(0), To: at(time.Hour), MinRuns: 1, MinNodes: 3},
		&verify.Call{Op: verify.OpCreate, Tenant: "1", Job: "7", Revision: 1, Invoke: at(-time.Minute), Ack: at(-time.Second), Spec: spec},
		&verify.Call{Op: verify.OpPause, Tenant: "1", Job: "7", Invoke: at(time.Minute)},
		&started,
		&ended,
		&verify.Row{Key: "70", Tenant: "1", Job: "7", Revision: 1, Cause: "schedule", FireAt: at(0), State: "succeeded", Node: "n1"},
		&verify.Fault{ID: "F01", Kind: "sigkill", Target: "n2", Start: at(time.Second), End: at(2 * time.Second)},
		&verify.Node{Node: "n1", Role: "admin", At: at(0), Offset: verify.Span(-3 * time.Millisecond)},
	}
	for _, r := range records {
		require.NoError(t, w.Append(r))
	}
	require.Equal(t, len(records), strings.Count(file.String(), "\n"))

	r := verify.NewReader()
	require.NoError(t, r.Read("a.jsonl", &file))
	require.Equal(t, &verify.History{
		Plan:   records[0].(*verify.Plan),
		Calls:  []verify.Call{*records[1].(*verify.Call), *records[2].(*verify.Call)},
		Runs:   []verify.Run{ended},
		Rows:   []verify.Row{*records[5].(*verify.Row)},
		Faults: []verify.Fault{*records[6].(*verify.Fault)},
		Nodes:  []verify.Node{*records[7].(*verify.Node)},
	}, r.History())
}

const runLine = `{"type":"run","job":"7","key":"70","fence":1,"boot":"b","tenant":"1","shard":0,"start":1795248001000000,"attempt":1,"fireAt":1795248000000000`

func TestRunsAreJoined(t *testing.T) {
	open, closed := runLine+"}\n", runLine+`,"end":1795248002000000}`+"\n"
	for name, c := range map[string]struct {
		lines string
		runs  int
		ended int
	}{
		"start and end are one run":            {open + closed, 1, 1},
		"one line for all of it":               {closed, 1, 1},
		"killed":                               {open, 1, 0},
		"started twice in one microsecond":     {open + open, 2, 0},
		"started twice, one ended":             {open + open + closed, 2, 1},
		"started twice, both ended":            {open + open + closed + closed, 2, 2},
		"an end line more than there are runs": {open + closed + closed, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := verify.NewReader()
			require.NoError(t, r.Read("w", strings.NewReader(c.lines)))
			ended := 0
			for _, run := range r.History().Runs {
				if run.End != 0 {
					ended++
				}
			}
			require.Len(t, r.History().Runs, c.runs)
			require.Equal(t, c.ended, ended)
		})
	}
}

func TestReaderIsStrict(t *testing.T) {
	const good = runLine + "}\n"
	for name, c := range map[string]struct{ line, want string }{
		"no JSON":            {"hello", "begins with"},
		"type not first":     {`{"job":"7","type":"run"}`, "begins with"},
		"unknown type":       {`{"type":"walk","job":"7"}`, "unknown type"},
		"unknown field":      {runLine + `,"color":1}`, "color"},
		"missing field":      {`{"type":"run","job":"7"}`, "required"},
		"two values":         {runLine + `}{}`, "more than one"},
		"cut":                {runLine, "unexpected EOF"},
		"milliseconds":       {strings.Replace(runLine, `"start":1795248001000000`, `"start":1795248001000`, 1) + "}", "microseconds"},
		"ends before it was": {runLine + `,"end":1795248000000000}`, "before"},
		"fence 0":            {strings.Replace(runLine, `"fence":1`, `"fence":0`, 1) + "}", "from 1"},
		"unknown op":         {`{"type":"call","op":"sing","tenant":"1","job":"7","invoke":1795248001000000}`, "unknown op"},
		"create without it":  {`{"type":"call","op":"create","tenant":"1","job":"7","invoke":1795248001000000}`, "carries a spec"},
		"second plan": {`{"type":"plan","from":1795248000000000,"to":1795248000000000,"minRuns":1}` + "\n" +
			`{"type":"plan","from":1795248000000000,"to":1795248000000000,"minRuns":1}`, "second plan"},
		"plan backwards":      {`{"type":"plan","from":1795248000000001,"to":1795248000000000,"minRuns":1}`, "before from"},
		"fault without kind":  {`{"type":"fault","id":"F01","start":1795248000000000}`, "required"},
		"node without role":   {`{"type":"node","node":"n1","at":1795248000000000}`, "required"},
		"row without a state": {`{"type":"row","key":"1","tenant":"1","job":"7","revision":1,"cause":"schedule","fireAt":1795248000000000}`, "required"},
	} {
		t.Run(name, func(t *testing.T) {
			err := verify.NewReader().Read("w.jsonl", strings.NewReader(good+c.line+"\n"))
			var wrong *verify.LineError
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, 2+strings.Count(c.line, "\n"), wrong.Line)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "w.jsonl:")
		})
	}
}

// Many languages write a space after each colon and comma.
func TestRecordsMayHaveSpaces(t *testing.T) {
	narrow, wide := verify.NewReader(), verify.NewReader()
	lines := []string{
		`{"type":"plan","from":1795248000000000,"to":1795248000000000,"minRuns":1,"name":"a: b, \"c\":d"}`,
		`{"type":"call","op":"create","tenant":"1","job":"7","invoke":1795248001000000,"spec":{"kind":"fixed_rate","every":1000000}}`,
		runLine + `,"end":1795248002000000}`,
		`{"type":"row","key":"1","tenant":"1","job":"7","revision":1,"cause":"schedule","fireAt":1795248000000000,"state":"due"}`,
		`{"type":"fault","id":"F01","kind":"sigkill","start":1795248000000000}`,
		`{"type":"node","node":"n1","role":"admin","at":1795248000000000}`,
	}
	spaces := strings.NewReplacer(`{"`, "{ \"", `":`, "\" : ", `,"`, " ,\t\"")
	for _, line := range lines {
		require.NoError(t, narrow.Read("w", strings.NewReader(line+"\n")))
		if !strings.Contains(line, `\"`) { // a text keeps its own
			line = spaces.Replace(line)
		}
		require.NoError(t, wide.Read("w", strings.NewReader(" "+strings.Replace(line, `{"type":`, `{"type": `, 1)+" \r\n")))
	}
	require.Equal(t, narrow.History(), wide.History())
	require.Len(t, wide.History().Rows, 1)
	require.ErrorContains(t, wide.Read("w", strings.NewReader(`{ "type": "run" }`+"\n")), "nothing but its type")
}

// The plan's bounds are both included.
func TestAPlanIncludesItsBounds(t *testing.T) {
	expected := func(from, to verify.Time) int {
		h := clone(newWorld(1))
		h.Plan.From, h.Plan.To = from, to
		return check(t, h).Expected
	}
	h := newWorld(1)
	fire := h.Rows[slices.IndexFunc(h.Rows, func(r verify.Row) bool {
		return r.Cause == "schedule" && r.FireAt > h.Plan.From && r.FireAt < h.Plan.To
	})].FireAt
	require.Greater(t, expected(h.Plan.From, fire), expected(h.Plan.From, fire-1))
	require.Greater(t, expected(fire, h.Plan.To), expected(fire+1, h.Plan.To))
}

func TestTornLastLineIsCounted(t *testing.T) {
	r := verify.NewReader()
	require.NoError(t, r.Read("w", strings.NewReader(runLine+"}\n"+runLine[:40])))
	require.Len(t, r.History().Runs, 1)
	require.Equal(t, 1, r.History().Torn)
}

func TestFolderWithManyWriters(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "deep", "er")
	w, err := verify.CreateFile(folder, "witness")
	require.NoError(t, err)
	_, err = verify.CreateFile(folder, "witness")
	require.ErrorIs(t, err, os.ErrExist)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for n := range 100 {
				run := verify.Run{Job: "7", Key: "70", Fence: int64(i + 1), Boot: "b", Tenant: "1", Start: at(time.Duration(n)), Attempt: 1, FireAt: at(0)}
				if err := w.Append(&run); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	require.NoError(t, w.Close())
	h, err := verify.ReadPaths(filepath.Dir(folder))
	require.NoError(t, err)
	require.Len(t, h.Runs, 800)

	_, err = verify.ReadPaths(t.TempDir())
	require.ErrorContains(t, err, "no .jsonl file")
}
