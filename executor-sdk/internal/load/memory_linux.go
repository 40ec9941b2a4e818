package load

import (
	"bytes"
	"os"
	"strconv"
)

// residentMemory reads the second figure of /proc/self/statm, in pages.
func residentMemory() int64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return heapMemory()
	}
	fields := bytes.Fields(data)
	if len(fields) < 2 {
		return heapMemory()
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return heapMemory()
	}
	return pages * int64(os.Getpagesize())
}
