package web

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// Operations that make secrets have the method POST. Answers of computations hold no share while they are sent.
func TestReadingAndComputingIsHeld(t *testing.T) {
	require.True(t, Operation{Method: http.MethodGet}.held())
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		require.False(t, Operation{Method: method}.held(), method)
		require.True(t, Operation{Method: method, Computes: true}.held(), method)
	}
}

func TestTakesGzip(t *testing.T) {
	for accept, want := range map[string]bool{
		"": false, "gzip": true, "GZIP": true, "br, gzip;q=0.5": true, "gzip;q=0": false, "gzip; q=0.0": false, "*": true, "*;q=0": false,
		"identity": false, "gzipped": false, "gzip;q=x": false,
	} {
		require.Equal(t, want, takesGzip(accept), accept)
	}
}

func TestHasTag(t *testing.T) {
	for list, want := range map[string]bool{
		"": false, "*": true, `W/"a"`: true, `"a"`: true, `"b", W/"a"`: true, `"b"`: false, `a`: false,
	} {
		require.Equal(t, want, hasTag(list, `W/"a"`), list)
	}
}
