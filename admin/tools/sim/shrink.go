package sim

import (
	"slices"
	"strings"
)

// Shrink returns a smaller case with the same kind of finding: faults are left
// out in halves, quarters and so on, and at last one by one. fails says whether
// a case still fails, and what it injected; budget bounds how often it is asked.
func Shrink(c Case, injected []string, budget int, fails func(Case) (bool, []string)) Case {
	best := Case{Seed: c.Seed, Shards: c.Shards, Timers: c.Timers, Only: slices.Clone(injected), Note: c.Note}
	if ok, _ := fails(best); !ok {
		return c // its faults alone do not make it: it stays whole
	}
	for size := max(len(best.Only)/2, 1); size >= 1 && budget > 0; {
		smaller := false
		for at := 0; at < len(best.Only) && budget > 0; {
			try := Case{Seed: c.Seed, Shards: c.Shards, Timers: c.Timers, Note: c.Note}
			try.Only = slices.Delete(slices.Clone(best.Only), at, min(at+size, len(best.Only)))
			budget--
			if ok, left := fails(try); ok {
				best.Only, smaller = inOrder(try.Only, left), true
			} else {
				at += size
			}
		}
		if size == 1 && !smaller {
			break
		}
		if size > 1 {
			size /= 2
		}
	}
	return best
}

// inOrder drops what was allowed and did not happen.
func inOrder(allowed, happened []string) []string {
	out := []string{}
	for _, name := range allowed {
		if slices.Contains(happened, name) {
			out = append(out, name)
		}
	}
	return out
}

// Finding is the promise that the first finding is about; shrinking keeps it.
func Finding(broken []string) string {
	if len(broken) == 0 {
		return ""
	}
	parts := strings.SplitN(broken[0], ": ", 3)
	return parts[1][:min(len(parts[1]), 12)]
}
