package web

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBaseURL(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ given, base, path, wrong string }{
		{"", "", "", ""},
		{"https://carillon.example.com", "https://carillon.example.com", "", ""},
		{"https://carillon.example.com/", "https://carillon.example.com", "", ""},
		{"https://example.com/carillon", "https://example.com/carillon", "/carillon", ""},
		{"http://[::1]:8080/ops/carillon-2.b_c~/", "http://[::1]:8080/ops/carillon-2.b_c~", "/ops/carillon-2.b_c~", ""},
		{"example.com/carillon", "", "", "with http:// or https://"},
		{"example.com:8080/carillon", "", "", "with http:// or https://"},
		{"/carillon", "", "", "with http:// or https://"},
		{"ftp://example.com/carillon", "", "", "with http:// or https://"},
		{"https:///carillon", "", "", "with http:// or https://"},
		{"https://me:secret@example.com/x", "", "", "a user, a query or a fragment"},
		{"https://example.com/x?y=1", "", "", "a user, a query or a fragment"},
		{"https://example.com/x#y", "", "", "a user, a query or a fragment"},
		{"https://example.com/a//b", "", "", `the path "/a//b" is not allowed`},
		{"https://example.com/a/../b", "", "", `the path "/a/../b" is not allowed`},
		{"https://example.com/a%20b", "", "", `the path "/a%20b" is not allowed`},
		{"https://example.com/\"><script>", "", "", "is not allowed"},
		{"https://example.com/api", "", "", `the server has addresses with "api" itself`},
		{"https://example.com/ops/door/x", "", "", `the server has addresses with "door" itself`},
	} {
		base, path, err := CheckBaseURL(test.given, "door")
		if test.wrong != "" {
			require.ErrorContains(t, err, test.wrong, test.given)
			require.NotContains(t, err.Error(), "secret")
			continue
		}
		require.NoError(t, err, test.given)
		require.Equal(t, [2]string{test.base, test.path}, [2]string{base, path}, test.given)
	}
}
