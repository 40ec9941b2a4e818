//go:build failpoints

package failpoint

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// source is where the setting comes from.
type source struct {
	file string // holds the setting; empty = it is fixed
	exit func(name string)

	mu      sync.Mutex
	setting string // guarded by mu: as last read
	table   table  // guarded by mu
}

// table is what happens where. It does not change but for the counts.
type table map[string]*action

type action struct {
	pause time.Duration // 0 = exit, or panic
	panic bool
	at    int64 // the hit that counts, from 1; 0 = every
	hits  atomic.Int64
}

// parse reads "name=exit@3,name=pause(500ms)".
func parse(setting string) (table, error) {
	t := table{}
	for item := range strings.SplitSeq(setting, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		name, what, ok := strings.Cut(item, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is not name=action", item)
		}
		a, err := parseAction(what)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		t[name] = a
	}
	return t, nil
}

func parseAction(what string) (*action, error) {
	a := &action{}
	what, count, counted := strings.Cut(what, "@")
	if counted {
		n, err := strconv.ParseInt(count, 10, 64)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("@%s is not a number from 1", count)
		}
		a.at = n
	}
	switch what {
	case "exit":
		return a, nil
	case "panic":
		a.panic = true
		return a, nil
	}
	text, isPause := strings.CutPrefix(what, "pause(")
	text, closed := strings.CutSuffix(text, ")")
	if !isPause || !closed {
		return nil, fmt.Errorf("%q is none of exit, panic and pause(duration)", what)
	}
	d, err := time.ParseDuration(text)
	if err == nil && d <= 0 {
		err = errors.New("a pause takes time")
	}
	a.pause = d
	return a, err
}

// newSource reads the setting, or the name of its file.
func newSource(setting string, exit func(string)) (*source, error) {
	s := &source{exit: exit, setting: setting}
	if file, isFile := strings.CutPrefix(setting, "@"); isFile {
		s.file, s.setting = file, ""
	}
	var err error
	s.table, err = parse(s.setting)
	return s, err
}

func (s *source) hit(name string) {
	t, err := s.now()
	if err != nil {
		s.exit(err.Error())
		return
	}
	a := t[name]
	if a == nil || a.at > 0 && a.hits.Add(1) != a.at || !s.first() {
		return
	}
	switch {
	case a.panic:
		panic("failpoint " + name)
	case a.pause > 0:
		<-time.After(a.pause)
	default:
		s.exit(name)
	}
}

// now returns what the setting says at this moment.
func (s *source) now() (table, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == "" {
		return s.table, nil
	}
	raw, err := os.ReadFile(s.file)
	if errors.Is(err, os.ErrNotExist) {
		raw, err = nil, nil // nothing is armed
	}
	if err != nil || string(raw) == s.setting {
		return s.table, err
	}
	s.setting = string(raw)
	s.table, err = parse(s.setting)
	return s.table, err
}

// first reports whether nobody has acted on the file before, and puts the next
// one in its place.
func (s *source) first() bool {
	if s.file == "" {
		return true
	}
	if os.Rename(s.file, s.file+".done") != nil {
		return false
	}
	_ = os.Rename(s.file+".next", s.file) // there is none, as a rule
	return true
}
