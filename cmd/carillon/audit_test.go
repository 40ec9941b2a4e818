package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func init() { addOnRoutes = append(addOnRoutes, (*fakeServer).auditRoutes) }

// auditRoutes know two entries on two pages. Their chain has two steps. An end with number 9
// was cut off.
func (s *fakeServer) auditRoutes(mux *http.ServeMux) {
	entry := func(id, operation string) string {
		seq := map[string]int{"create-job": -1, "delete-job": 1}[operation]
		return fmt.Sprintf(`{"id":%q,"at":"2026-11-01T00:00:00.000Z","actor":"anna","operation":%q,"outcome":"done","kind":"job","objectId":"7","objectName":"nightly",
			"address":"192.0.2.1","requestId":"r","seq":%d,"hash":"ab"}`, id, operation, seq)
	}
	s.route(mux, "GET /audit", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		if r.URL.Query().Get("cursor") == "" {
			fmt.Fprintf(w, `{"items":[%s],"nextCursor":"more"}`, entry("2", "delete-job"))
			return
		}
		fmt.Fprintf(w, `{"items":[%s],"nextCursor":null}`, entry("1", "create-job"))
	})
	s.route(mux, "GET /audit/verification", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		q := r.URL.Query()
		if q.Get("after") == "" || q.Get("after") == "0" {
			fmt.Fprint(w, `{"checked":1,"last":1,"done":false,"faults":[],"head":{"seq":0,"id":"0","hash":""},"unchained":0}`)
			return
		}
		faults := ""
		if q.Get("headSeq") == "9" && q.Get("headHash") == "cd" {
			faults = `{"kind":"cut","seq":2,"id":"2","message":"the end was cut off"}`
		}
		fmt.Fprintf(w, `{"checked":1,"last":2,"done":true,"faults":[%s],"head":{"seq":2,"id":"2","hash":"ab"},"unchained":3}`, faults)
	})
}

func TestAuditListAndExport(t *testing.T) {
	s := newFakeServer(t)
	term := keyed(t, s)
	r := term.run("audit", "list", "--actor", "anna", "--from", "2026-11-01T00:00:00Z")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stdout, "nightly")
	require.Regexp(t, `create-job +done, FORGED `, r.stdout)
	require.Regexp(t, `delete-job +done  `, r.stdout)
	r = term.run("audit", "export")
	require.Equal(t, 0, r.code, r.stderr)
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	require.Len(t, lines, 2)
	for i, want := range []string{"delete-job", "create-job"} {
		var e struct{ Operation string }
		require.NoError(t, json.Unmarshal([]byte(lines[i]), &e))
		require.Equal(t, want, e.Operation)
	}
	require.NotEqual(t, 0, term.run("audit", "list", "--from", "yesterday").code)
}

func TestAuditVerify(t *testing.T) {
	term := keyed(t, newFakeServer(t))
	r := term.run("audit", "verify")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "Verified 2 entries. The head")
	var head struct {
		Seq  int64
		Hash string
	}
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &head))
	require.EqualValues(t, 2, head.Seq)

	write := func(text string) string {
		file := filepath.Join(t.TempDir(), "head.json")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	for _, text := range []string{`{"seq":9,"id":"9","hash":"cd"}`, `{"0":{"seq":9,"hash":"cd"}}`} {
		args := []string{"audit", "verify", "--head", write(text)}
		if strings.HasPrefix(text, `{"0"`) {
			args = append(args, "--cluster")
		}
		r = term.run(args...)
		require.Equal(t, 1, r.code, r.stderr)
		require.Contains(t, r.stderr, "cut: the end was cut off")
		require.Contains(t, r.stderr, "the audit log has 1 fault\n")
		require.NotContains(t, r.stderr, "Verified")
	}
	require.NotEqual(t, 0, term.run("audit", "verify", "--head", write(`{"8":{"seq":9,"hash":"cd"}}`), "--cluster").code)
	require.NotEqual(t, 0, term.run("audit", "verify", "--head", write(`[]`)).code)
}
