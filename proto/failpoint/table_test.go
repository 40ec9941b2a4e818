//go:build failpoints

package failpoint

import (
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"
	"time"
)

func TestActions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var exits []string
		build := func(setting, once string) *table {
			points, err := parse(setting)
			if err != nil {
				t.Fatal(err)
			}
			points.once, points.exit = once, func(name string) { exits = append(exits, name) }
			return points
		}
		began := time.Now()
		points := build(" a=exit, b=exit@3 ,c=pause(500ms),d=pause(1m)@2", "")
		for _, name := range []string{"a", "b", "b", "other", "b", "b", "c", "c", "d", "d", "d"} {
			points.hit(name)
		}
		if want := []string{"a", "b"}; !reflect.DeepEqual(exits, want) {
			t.Errorf("exits at %v, want %v", exits, want)
		}
		if took := time.Since(began); took != time.Minute+time.Second {
			t.Errorf("paused for %s", took)
		}
		exits = nil
		once := filepath.Join(t.TempDir(), "fired")
		for range 3 { // processes
			build("a=exit", once).hit("a")
		}
		if len(exits) != 1 {
			t.Errorf("%d processes ended, want the first one only", len(exits))
		}
	})
}

func TestSettingsThatMakeNoSense(t *testing.T) {
	for _, setting := range []string{"a", "=exit", "a=leave", "a=exit@0", "a=exit@x", "a=pause", "a=pause(5)", "a=pause(-1s)", "a=pause(1s"} {
		if _, err := parse(setting); err == nil {
			t.Errorf("%q was taken", setting)
		}
	}
	if points, err := parse(""); err != nil || len(points.actions) != 0 {
		t.Error(points, err)
	}
}
