//go:build large

package api

import "testing"

// TestPagesOfAMillionRuns is TestPagesReadBoundedRows with 10,000 jobs.
func TestPagesOfAMillionRuns(t *testing.T) {
	for _, kind := range []string{"sqlite", "mysql"} {
		t.Run(kind, func(t *testing.T) { newLargeTenant(t, kind, 10_000).pages(t) })
	}
}
