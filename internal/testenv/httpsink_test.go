package testenv

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSinkRecordsRequests(t *testing.T) {
	sink := HTTPSink(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, sink.URL+"/hook?a=1", strings.NewReader("编钟"))
	require.NoError(t, err)
	request.Header.Set("X-Signature", "abc")
	response, body := do(t, request)
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Empty(t, body)

	got := sink.Wait(t, 1)[0]
	require.Equal(t, http.MethodPut, got.Method)
	require.Equal(t, "/hook?a=1", got.URI)
	require.Equal(t, "abc", got.Header.Get("X-Signature"))
	require.Equal(t, "编钟", string(got.Body))
	require.WithinDuration(t, time.Now(), got.At, time.Minute)
	require.Len(t, sink.Requests(), 1)
}

func TestSinkFollowsScript(t *testing.T) {
	sink := HTTPSink(t)
	sink.Script(
		HTTPAnswer{Status: http.StatusServiceUnavailable, Header: http.Header{"retry-after": {"7"}}, Body: "busy"},
		HTTPAnswer{HangUp: true},
	)
	response, body := do(t, get(t, sink.URL))
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	require.Equal(t, "7", response.Header.Get("Retry-After"))
	require.Equal(t, "busy", body)

	response, err := client(t).Do(get(t, sink.URL))
	if err == nil {
		_ = response.Body.Close()
	}
	require.ErrorIs(t, err, io.EOF, "hung up")

	response, _ = do(t, get(t, sink.URL))
	require.Equal(t, http.StatusOK, response.StatusCode, "the script is used up")
	require.Len(t, sink.Wait(t, 3), 3)
}

func TestSinkDelays(t *testing.T) {
	sink := HTTPSink(t)
	const delay = 50 * time.Millisecond
	sink.Script(HTTPAnswer{Delay: delay}, HTTPAnswer{Delay: time.Hour})
	start := time.Now()
	do(t, get(t, sink.URL))
	require.GreaterOrEqual(t, time.Since(start), delay)

	// The second answer would take an hour: Wait sees the request all the
	// same, a client may give up, and the test ends.
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1) // one result, so that the goroutine never blocks
	go func() {
		response, err := client(t).Do(get(t, sink.URL).WithContext(ctx))
		if err == nil {
			_ = response.Body.Close()
		}
		ended <- err
	}()
	sink.Wait(t, 2)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

func TestSinkEndsInTheMiddleOfADelay(t *testing.T) {
	ended := make(chan struct{}) // closed when the client has an answer or an error
	t.Run("inner", func(t *testing.T) {
		sink := HTTPSink(t)
		sink.Script(HTTPAnswer{Delay: time.Hour})
		request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, sink.URL, nil)
		require.NoError(t, err)
		transport := &http.Transport{DisableKeepAlives: true}
		go func() {
			defer close(ended)
			response, err := transport.RoundTrip(request)
			if err == nil {
				_ = response.Body.Close()
			}
		}()
		sink.Wait(t, 1)
	})
	<-ended // within the hour, that is
}

// client keeps no connection: its goroutines end with the answer.
func client(*testing.T) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}

func get(t *testing.T, url string) *http.Request {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	return request
}

func do(t *testing.T, request *http.Request) (*http.Response, string) {
	t.Helper()
	response, err := client(t).Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response, string(body)
}
