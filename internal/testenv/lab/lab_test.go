package lab

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAProcessIsFrozenThawedAndKilled(t *testing.T) {
	dir := t.TempDir()
	beat := filepath.Join(dir, "beat")
	p, err := Start(Command{Name: "beater", Dir: dir, Env: []string{"BEAT=" + beat}, Program: "/bin/sh",
		Args: []string{"-c", `while :; do echo x >>"$BEAT"; sleep 0.01; done`}})
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	grows := func() bool {
		before, _ := os.ReadFile(beat)
		return Until(t.Context(), time.Second, "beats", func(_ context.Context) error {
			after, err := os.ReadFile(beat)
			if err == nil && len(after) == len(before) {
				return os.ErrNotExist
			}
			return err
		}) == nil
	}
	require.True(t, grows())
	require.NoError(t, p.Freeze())
	require.False(t, grows(), "a frozen process does nothing")
	require.NoError(t, p.Thaw())
	require.True(t, grows())
	require.Positive(t, p.Usage().RSS)
	require.False(t, p.Ended())
	p.Kill()
	require.True(t, p.Ended())
	require.Error(t, p.Freeze())
}

func TestMetricsAreSummedOverTheirLabels(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("# HELP a b\nplain 3\nlabelled{state=\"x y\"} 1\nlabelled{state=\"z\"} 2.5\nnot a number\n"))
	}))
	t.Cleanup(server.Close)
	m, err := NewAPI(server.URL).Metrics(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]float64{"plain": 3, "labelled": 3.5}, m)
	by, err := NewAPI(server.URL).MetricBy(t.Context(), "labelled", "state")
	require.NoError(t, err)
	require.Equal(t, map[string]float64{"x y": 1, "z": 2.5}, by)
}

func TestAnAnswerThatIsNoSuccessIsAnError(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	_, err := NewAPI(server.URL).Metrics(t.Context())
	require.ErrorContains(t, err, "404")
}
