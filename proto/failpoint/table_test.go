//go:build failpoints

package failpoint

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"
	"time"
)

func build(t *testing.T, setting string, exits *[]string) *source {
	t.Helper()
	s, err := newSource(setting, func(name string) { *exits = append(*exits, name) })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("exits at %v, want %v", got, want)
	}
}

func TestActions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var exits []string
		began := time.Now()
		s := build(t, " a=exit, b=exit@3 ,c=pause(500ms),d=pause(1m)@2", &exits)
		for _, name := range []string{"a", "b", "b", "other", "b", "b", "c", "c", "d", "d", "d"} {
			s.hit(name)
		}
		expect(t, exits, "a", "b")
		if took := time.Since(began); took != time.Minute+time.Second {
			t.Errorf("paused for %s", took)
		}
	})
}

// Two processes share a file: it is armed while they run, and acts once.
func TestAFileActsOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "points")
	var exits []string
	arm := func(setting string) {
		if err := os.WriteFile(file, []byte(setting), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	one, two := build(t, "@"+file, &exits), build(t, "@"+file, &exits)
	one.hit("a")
	expect(t, exits)
	arm("a=exit,b=exit@2")
	one.hit("c")
	two.hit("a")
	one.hit("a")
	one.hit("b")
	expect(t, exits, "a")
	arm("b=exit@2")
	one.hit("b")
	two.hit("b")
	expect(t, exits, "a")
	one.hit("b")
	expect(t, exits, "a", "b")
	arm("c=exit")
	if err := os.Rename(file, file+".next"); err != nil {
		t.Fatal(err)
	}
	arm("a=exit")
	two.hit("c")
	two.hit("a")
	one.hit("c")
	expect(t, exits, "a", "b", "a", "c")
	exits = nil
	arm("b")
	two.hit("a")
	expect(t, exits, "\"b\" is not name=action")
}

func TestSettingsThatMakeNoSense(t *testing.T) {
	for _, setting := range []string{"a", "=exit", "a=leave", "a=exit@0", "a=exit@x", "a=pause", "a=pause(5)", "a=pause(-1s)", "a=pause(1s"} {
		if _, err := parse(setting); err == nil {
			t.Errorf("%q was taken", setting)
		}
	}
	if points, err := parse(""); err != nil || len(points) != 0 {
		t.Error(points, err)
	}
}

func TestAPointMayPanic(t *testing.T) {
	var exits []string
	s := build(t, "a=panic@2", &exits)
	s.hit("a")
	defer func() {
		if v := recover(); v != "failpoint a" {
			t.Errorf("panicked with %v", v)
		}
	}()
	s.hit("a")
	t.Error("it went on")
}
