package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// shim is added to package time. It runs when the package is initialised, that
// is before anything else asks for the time.
const shim = `
var faultsOffset = faultsReadOffset()

func faultsReadOffset() int64 {
	name, found := syscall.Getenv("` + shimVariable + `")
	if !found {
		return 0
	}
	raw, err := readFile(name)
	if err != nil {
		return 0
	}
	seconds, sign := int64(0), int64(1)
	for _, c := range raw {
		switch {
		case c == '-':
			sign = -1
		case '0' <= c && c <= '9':
			seconds = seconds*10 + int64(c-'0')
		}
	}
	return sign * seconds
}
`

// writeOverlay copies the standard library's time.go with the offset in Now,
// and returns the file for go build -overlay.
func writeOverlay(ctx context.Context, dir string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	original := filepath.Join(strings.TrimSpace(string(out)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	const head = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	text := strings.Replace(string(source), head, head+"\tsec += faultsOffset\n", 1)
	if text == string(source) {
		return "", &unableError{"time.Now of this Go version is written in another way: the clock shim does not fit"}
	}
	if !strings.Contains(text, "\"syscall\"") {
		text = strings.Replace(text, "import (\n", "import (\n\t\"syscall\"\n", 1)
	}
	changed := filepath.Join(dir, "time.go.txt")
	if err := os.WriteFile(changed, []byte(text+shim), 0o600); err != nil {
		return "", err
	}
	raw, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, raw, 0o600)
}
