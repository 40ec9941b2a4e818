package api

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLargeAnswersAreCompressed(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	gz := header{"Accept-Encoding": "br, gzip"}
	small := w.call("acme/viewer", "GET", "/jobs", nil, gz).is(200)
	require.Empty(t, small.header.Get("Content-Encoding"), "one packet is one packet")
	require.Empty(t, small.header.Get("Vary"))
	for i := range 50 {
		w.job("acme", fmt.Sprintf("job-%d", i), e)
	}
	plain := w.call("acme/viewer", "GET", "/jobs", nil).is(200)
	require.Empty(t, plain.header.Get("Content-Encoding"))
	require.Equal(t, "Accept-Encoding", plain.header.Get("Vary"), "caches between keep the two apart")
	packed := w.call("acme/viewer", "GET", "/jobs", nil, gz).is(200)
	require.Equal(t, "gzip", packed.header.Get("Content-Encoding"))
	require.Equal(t, strconv.Itoa(len(packed.body)), packed.header.Get("Content-Length"))
	z, err := gzip.NewReader(bytes.NewReader(packed.body))
	require.NoError(t, err)
	unpacked, err := io.ReadAll(z)
	require.NoError(t, err)
	require.Equal(t, string(plain.body), string(unpacked))
	require.Less(t, len(packed.body)*5, len(plain.body), "%d of %d bytes", len(packed.body), len(plain.body))
	t.Logf("50 jobs: %d bytes, %d compressed", len(plain.body), len(packed.body))

	spec := w.call("", "GET", "/api/openapi.json", nil, gz).is(200)
	require.Equal(t, "gzip", spec.header.Get("Content-Encoding"))
}

// Answers that hold a secret are never compressed: it cannot be guessed by
// their length.
func TestSecretsAreNotCompressed(t *testing.T) {
	w := newWorld(t)
	a := w.call("acme/admin", "POST", "/api-keys", map[string]any{"name": "k", "role": "viewer"}, header{"Accept-Encoding": "gzip"}).is(201)
	require.Empty(t, a.header.Get("Content-Encoding"))
	require.Empty(t, a.header.Get("ETag"))
}

func TestWhatHasNotChangedIsNotSentAgain(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	job := w.job("acme", "one", e)
	run := into[Run](w.call("acme/operator", "POST", "/jobs/"+job.ID+"/run", nil).is(201))
	for _, path := range []string{"/jobs", "/runs", "/executors", "/overview", "/runs/" + run.ID, "/executors/" + e.ID.String(), "/api/openapi.json"} {
		first := w.call("acme/viewer", "GET", path, nil).is(200)
		tag := first.header.Get("ETag")
		require.Regexp(t, `^W/"[\w-]{16}"$`, tag, path)
		again := w.call("acme/viewer", "GET", path, nil, header{"If-None-Match": `"other", ` + tag}).is(304)
		require.Empty(t, again.body, path)
		require.Equal(t, tag, again.header.Get("ETag"), path)
		require.Empty(t, again.header.Get("Content-Type"), path)
		other := w.call("acme/viewer", "GET", path, nil, header{"If-None-Match": `W/"other"`}).is(200)
		require.Equal(t, string(first.body), string(other.body), path)
	}
	tag := w.call("acme/viewer", "GET", "/jobs", nil).is(200).header.Get("ETag")
	w.call("acme/operator", "POST", "/jobs/"+job.ID+"/pause", nil).is(200)
	changed := w.call("acme/viewer", "GET", "/jobs", nil, header{"If-None-Match": tag}).is(200)
	require.Contains(t, string(changed.body), "paused")
	// Who may not see it does not learn that it is the same.
	w.call("", "GET", "/jobs", nil, header{"If-None-Match": changed.header.Get("ETag")}).problem(401, "unauthenticated")
	w.call("beta/viewer", "GET", "/jobs", nil, header{"If-None-Match": changed.header.Get("ETag")}).is(200)
}

// The ETag of a job is the revision to edit, and nothing is left out by it: its
// next fire time changes without a new revision.
func TestRevisionTagsStayThose(t *testing.T) {
	w := newWorld(t)
	job := w.job("acme", "one", w.executor("acme", "shop"))
	got := w.call("acme/viewer", "GET", "/jobs/"+job.ID, nil).is(200)
	require.Equal(t, `"1"`, got.header.Get("ETag"))
	w.call("acme/viewer", "GET", "/jobs/"+job.ID, nil, header{"If-None-Match": `"1"`}).is(200)
}
