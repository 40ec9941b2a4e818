package main

import (
	"bytes"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// limitMemory has the garbage collector work harder before the process reaches the memory
// limit of its cgroup (v2). GOMEMLIMIT in the environment comes first.
func limitMemory(root fs.FS) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit, ok := cgroupLimit(root)
	if !ok {
		return
	}
	soft := limit / 10 * 9
	debug.SetMemoryLimit(soft)
	slog.Debug("memory limit", "cgroup_bytes", limit, "bytes", soft)
}

// cgroupLimit is the smallest memory limit, in bytes, of the process's cgroup and those
// above it.
func cgroupLimit(root fs.FS) (limit int64, ok bool) {
	own, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	_, name, found := strings.Cut(string(own), "0::")
	if !found {
		return 0, false
	}
	name, _, _ = strings.Cut(name, "\n")
	for at := path.Clean("/" + name); ; at = path.Dir(at) {
		text, err := fs.ReadFile(root, path.Join("sys/fs/cgroup", at, "memory.max"))
		if n, wrong := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil && wrong == nil && (!ok || n < limit) { // it may be "max"
			limit, ok = n, true
		}
		if at == "/" {
			return limit, ok
		}
	}
}
