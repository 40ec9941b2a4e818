package generate

import (
	"fmt"
	"strings"
)

// summaryLines bounds a summary.
const summaryLines = 20

// summarize lists the lines that differ, "-" for those to go and "+" for those
// to come. It compares line by line after cutting the common start and end,
// which is enough to see what is stale.
func summarize(old, fresh []byte) string {
	switch {
	case old == nil:
		return "  the file is missing"
	case fresh == nil:
		return "  the package has no markers any more; the file must go"
	}
	a, b := strings.Split(string(old), "\n"), strings.Split(string(fresh), "\n")
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < len(a)-start && end < len(b)-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	var out []string
	for i, line := range a[start : len(a)-end] {
		out = append(out, fmt.Sprintf("  %d: -%s", start+i+1, line))
	}
	for i, line := range b[start : len(b)-end] {
		out = append(out, fmt.Sprintf("  %d: +%s", start+i+1, line))
	}
	if more := len(out) - summaryLines; more > 0 {
		out = append(out[:summaryLines], fmt.Sprintf("  … and %d more lines", more))
	}
	return strings.Join(out, "\n")
}
