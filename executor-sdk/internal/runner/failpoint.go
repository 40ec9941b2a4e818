//go:build !failpoints

package runner

// hitPoint is where tests let the process die or stand still: see docs/dev/failpoints.md.
// Only with the build tag "failpoints" anything stands behind it.
func hitPoint(string) {}
