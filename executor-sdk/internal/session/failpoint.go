//go:build !failpoints

package session

// failpoints tells whether tests may let the process die or stand still here: see
// docs/dev/failpoints.md. Only with the build tag of that name anything stands behind it.
const failpoints = false

func pointsOf(_, _, _ int) []string { return nil }

func hitAll([]string, string) {}
