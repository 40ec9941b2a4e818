package web

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// basePaths are paths that nothing has to be escaped in and no proxy rewrites.
var basePaths = regexp.MustCompile(`^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$`)

// ownPaths are the first segments of addresses that a node serves besides pages. A base
// with one of them could be taken for such an address.
var ownPaths = []string{"api", "assets", "healthz", "metrics", "readyz"}

// CheckBaseURL returns the address that people open without slashes at its end, and its
// path, such as /carillon, for Below. Both are empty if the text is. doors are first segments
// of further addresses that the node serves.
func CheckBaseURL(text string, doors ...string) (base, path string, err error) {
	const want = "use the address that people open, with http:// or https://, such as https://carillon.example.com or https://example.com/carillon"
	base = strings.TrimRight(text, "/")
	if text == "" {
		return "", "", nil
	}
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return "", "", fmt.Errorf("base URL: %q is no complete address: %s", text, want)
	case u.User != nil || strings.ContainsAny(base, "?#"):
		return "", "", fmt.Errorf("base URL: a user, a query or a fragment is not allowed in it: %s", want)
	case !basePaths.MatchString(u.EscapedPath()):
		return "", "", fmt.Errorf("base URL: the path %q is not allowed: use letters, digits and . _ ~ - between single slashes, such as /carillon", u.EscapedPath())
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		if slices.Contains(ownPaths, segment) || slices.Contains(doors, segment) {
			return "", "", fmt.Errorf("base URL: the path %q is not allowed: the server has addresses with %q itself; use another one, such as /carillon", u.Path, segment)
		}
	}
	return base, u.Path, nil
}
