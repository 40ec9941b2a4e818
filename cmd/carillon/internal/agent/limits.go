package agent

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Limits bound each run of a script. Zero means no limit, except for core
// dumps, which there never are.
type Limits struct {
	CPU      time.Duration `json:"cpu"`      // processor time of one process; whole seconds, rounded up
	Memory   int64         `json:"memory"`   // bytes of data of one process (RLIMIT_DATA)
	Files    int64         `json:"files"`    // open files of one process
	FileSize int64         `json:"fileSize"` // bytes of one file that is written
	// Processes counts processes and threads of the user that scripts run as,
	// all of them on this machine together. Nothing bounds those of root.
	Processes int64 `json:"processes"`
}

// DefaultLimits apply unless flags say otherwise.
var DefaultLimits = Limits{Memory: 1 << 30, Files: 1024, FileSize: 1 << 30, Processes: 256}

// ParseSize reads a number of bytes such as 512M or 1GiB; units are powers of 1024.
func ParseSize(text string) (int64, error) {
	digits := strings.TrimRight(strings.ToUpper(strings.TrimSpace(text)), "IB")
	shift := 0
	if n := len(digits); n > 0 {
		if at := strings.IndexByte("KMGT", digits[n-1]); at >= 0 {
			digits, shift = digits[:n-1], 10*(at+1)
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
	if err != nil || n < 0 || n > (1<<62)>>shift {
		return 0, fmt.Errorf("%q is no size such as 512M or 1GiB", text)
	}
	return n << shift, nil
}
