package bench

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// thisMachine reads what the kernel tells; what it does not tell stays empty.
func thisMachine(version string) Machine {
	m := Machine{OS: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version(), Version: version}
	m.Kernel, _, _ = strings.Cut(strings.TrimSpace(readFile("/proc/sys/kernel/osrelease")), "-") // what follows names who built it
	m.CPU = fieldOf(readFile("/proc/cpuinfo"), "model name")
	if kib, _, ok := strings.Cut(fieldOf(readFile("/proc/meminfo"), "MemTotal"), " "); ok {
		n, _ := strconv.ParseInt(kib, 10, 64)
		m.Memory = n << 10
	}
	if first, _, ok := strings.Cut(readFile("/proc/loadavg"), " "); ok {
		m.Load, _ = strconv.ParseFloat(first, 64)
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				m.Revision = s.Value + m.Revision
			case s.Key == "vcs.modified" && s.Value == "true":
				m.Revision += " (modified)"
			}
		}
	}
	return m
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
