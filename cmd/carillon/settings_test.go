package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// Each setting of the server stands in the table of docs/guide/configure.md, and
// each flag of that table is one.
func TestSettingsAreDocumented(t *testing.T) {
	raw, err := os.ReadFile("../../docs/guide/configure.md")
	require.NoError(t, err)
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)`--([a-z-]+)`").FindAllStringSubmatch(string(raw), -1) {
		documented[m[1]] = true
	}
	flags := map[string]bool{}
	newServerCommand().Flags().VisitAll(func(f *pflag.Flag) { flags[f.Name] = true })
	require.Equal(t, flags, documented)
}
