package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// thisMachine reads what the kernel tells, which stays empty where it does not,
// and what the carillon under test says of itself.
func thisMachine(ctx context.Context, carillon string) (Machine, error) {
	m := Machine{OS: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU()}
	m.Kernel, _, _ = strings.Cut(strings.TrimSpace(readFile("/proc/sys/kernel/osrelease")), "-") // what follows names who built it
	m.CPU = fieldOf(readFile("/proc/cpuinfo"), "model name")
	if kib, _, ok := strings.Cut(fieldOf(readFile("/proc/meminfo"), "MemTotal"), " "); ok {
		n, _ := strconv.ParseInt(kib, 10, 64)
		m.Memory = n << 10
	}
	if first, _, ok := strings.Cut(readFile("/proc/loadavg"), " "); ok {
		m.Load, _ = strconv.ParseFloat(first, 64)
	}
	info, err := buildinfo.ReadFile(carillon)
	if err != nil {
		return m, fmt.Errorf("read how %s was built: %w", carillon, err)
	}
	m.Go, m.Revision = info.GoVersion, revisionOf(info)
	said, err := exec.CommandContext(ctx, carillon, "version").Output() // carillon VERSION go1.26.0 linux/amd64
	if err != nil {
		return m, fmt.Errorf("ask %s for its version: %w", carillon, err)
	}
	if words := strings.Fields(string(said)); len(words) > 1 {
		m.Version = words[1]
	}
	return m, nil
}

// ownRevision is the commit of this program; empty when the build did not note it.
func ownRevision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return revisionOf(info)
}

func revisionOf(info *debug.BuildInfo) (revision string) {
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value + revision
		case s.Key == "vcs.modified" && s.Value == "true":
			revision += " (modified)"
		}
	}
	return revision
}

func readFile(path string) string {
	raw, _ := os.ReadFile(path)
	return string(raw)
}

// fieldOf returns what stands behind "name:" in a file of such lines.
func fieldOf(text, name string) string {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
