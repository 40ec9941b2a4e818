//go:build !linux

package agent

import (
	"fmt"
	"os"
)

const self = ""

// Scripts run on Linux only: elsewhere there is nothing that would keep
// together what a script starts, and bound it.
func supervise() int { return launch() }

func launch() int {
	fmt.Fprintln(os.Stderr, "carillon: scripts run on Linux only")
	return 1
}
