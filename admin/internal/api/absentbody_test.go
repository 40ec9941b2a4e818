package api

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"
)

// silentClient announces a body and sends none of it. A read ends at once if it has a
// deadline. Without one it would never end.
type silentClient struct {
	*httptest.ResponseRecorder
	until   time.Time // the present deadline
	endless bool      // a read had none
}

func (c *silentClient) SetReadDeadline(t time.Time) error {
	c.until = t
	return nil
}

func (c *silentClient) Read([]byte) (int, error) {
	if c.until.IsZero() {
		c.endless = true
		return 0, io.ErrUnexpectedEOF
	}
	return 0, os.ErrDeadlineExceeded
}

func (c *silentClient) Close() error { return nil }

// Each operation with a body answers 408 if the body never comes. Each request leaves a
// deadline for the rest of its body, because the server reads that rest.
func TestAbsentBodiesHaveADeadline(t *testing.T) {
	w := newWorld(t)
	own := w.objectsOf("acme")
	described := New(describedDeps())
	ask := func(who, method, address string, size int64) *silentClient {
		client := &silentClient{ResponseRecorder: httptest.NewRecorder()}
		req := httptest.NewRequestWithContext(t.Context(), method, address, client)
		req.ContentLength = size
		req.Header.Set("Content-Type", "application/json")
		if token := w.as(who); token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		w.api.ServeHTTP(client, req)
		return client
	}
	seen := 0
	operations(described.Document(), func(method, path string, op *huma.Operation) {
		who := "acme/admin"
		switch op.Extensions["x-policy"] {
		case "public":
			who = ""
		case "platform_admin":
			who = "platform"
		}
		address := fill(path, own, own, -1) + matrixQuery[path]
		for _, size := range []int64{9_000, -1} {
			client := ask(who, method, address, size)
			require.False(t, client.endless, "%s %s, %d bytes", method, path, size)
			require.False(t, client.until.IsZero(), "%s %s, %d bytes: the rest has no deadline", method, path, size)
			if op.RequestBody != nil {
				seen++
				require.Equal(t, http.StatusRequestTimeout, client.Code, "%s %s: %s", method, path, client.Body)
			}
		}
	})
	require.Greater(t, seen, 100)
	for _, path := range []string{"/", "/api/openapi.json", "/api/v1/nothing", "/healthz", "/metrics", "/mcp"} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			client := ask("acme/admin", method, path, 9_000)
			require.False(t, client.endless, "%s %s", method, path)
			require.False(t, client.until.IsZero(), "%s %s: the rest has no deadline", method, path)
		}
	}
}
