package journal

import (
	"encoding/hex"
	"os"
	"runtime"
	"strings"
)

// Machine names one start of the machine that a process runs on. What a process
// has written to a file survives the process; only the end of the machine takes
// what was not synced, and the next start has another name. Zero = unknown.
type Machine [16]byte

// ThisMachine asks the kernel. Zero where it has no name for its start.
func ThisMachine() Machine {
	if runtime.GOOS != "linux" {
		return Machine{}
	}
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id") // proc(5): a UUID, made at each start
	if err != nil {
		return Machine{}
	}
	digits := strings.ReplaceAll(strings.TrimSpace(string(text)), "-", "")
	id, err := hex.DecodeString(digits)
	if err != nil || len(id) != len(Machine{}) {
		return Machine{}
	}
	return Machine(id)
}

// kept reports whether everything that a process wrote on m is there on a
// machine. A process that knew no machine has had each record synced before it
// acted on it.
func (m Machine) kept(on Machine) bool { return m == Machine{} || m == on }
