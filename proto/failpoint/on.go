//go:build failpoints

package failpoint

import (
	"fmt"
	"os"
)

// Enabled guards what a call of Hit needs beside a constant name.
const Enabled = true

var points = fromEnvironment()

func fromEnvironment() *source {
	s, err := newSource(os.Getenv("CARILLON_FAILPOINTS"), func(name string) {
		fmt.Fprintln(os.Stderr, "failpoint:", name)
		os.Exit(ExitCode)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "CARILLON_FAILPOINTS:", err)
		os.Exit(2)
	}
	return s
}

// Hit does what the environment asks for at the point of this name.
func Hit(name string) { points.hit(name) }
