package main

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestTheLimitOfTheCgroup(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, tt := range map[string]struct {
		files fstest.MapFS
		want  int64
	}{
		"none":      {fstest.MapFS{"proc/self/cgroup": file("0::/a\n"), "sys/fs/cgroup/a/memory.max": file("max\n")}, 0},
		"own":       {fstest.MapFS{"proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": file("1073741824\n")}, 1 << 30},
		"above":     {fstest.MapFS{"proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": file("2147483648\n"), "sys/fs/cgroup/a/memory.max": file("1073741824\n")}, 1 << 30},
		"container": {fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("536870912\n")}, 1 << 29},
		"version 1": {fstest.MapFS{"proc/self/cgroup": file("4:memory:/a\n"), "sys/fs/cgroup/a/memory.max": file("1073741824\n")}, 0},
		"no proc":   {fstest.MapFS{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			limit, ok := cgroupLimit(tt.files)
			require.Equal(t, tt.want, limit)
			require.Equal(t, tt.want > 0, ok)
		})
	}
}
