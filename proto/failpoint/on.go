//go:build failpoints

package failpoint

import (
	"fmt"
	"os"
)

// Enabled guards what a call of Hit needs beside a constant name.
const Enabled = true

var points = fromEnvironment()

func fromEnvironment() *table {
	t, err := parse(os.Getenv("CARILLON_FAILPOINTS"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "CARILLON_FAILPOINTS:", err)
		os.Exit(2)
	}
	t.once = os.Getenv("CARILLON_FAILPOINTS_ONCE")
	t.exit = func(name string) {
		fmt.Fprintln(os.Stderr, "failpoint:", name)
		os.Exit(ExitCode)
	}
	return t
}

// Hit does what the environment asks for at the point of this name.
func Hit(name string) { points.hit(name) }
