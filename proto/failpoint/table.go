//go:build failpoints

package failpoint

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// table is what happens where. It does not change after construction but for
// the counts.
type table struct {
	actions map[string]*action
	once    string // file that marks that one has acted; empty = each acts for itself
	exit    func(name string)
}

type action struct {
	pause time.Duration // 0 = exit
	at    int64         // the hit that counts, from 1; 0 = every
	hits  atomic.Int64
}

// parse reads "name=exit@3,name=pause(500ms)".
func parse(setting string) (*table, error) {
	t := &table{actions: map[string]*action{}}
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
		t.actions[name] = a
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
	if what == "exit" {
		return a, nil
	}
	text, isPause := strings.CutPrefix(what, "pause(")
	text, closed := strings.CutSuffix(text, ")")
	if !isPause || !closed {
		return nil, fmt.Errorf("%q is neither exit nor pause(duration)", what)
	}
	d, err := time.ParseDuration(text)
	if err == nil && d <= 0 {
		err = errors.New("a pause takes time")
	}
	a.pause = d
	return a, err
}

func (t *table) hit(name string) {
	a := t.actions[name]
	if a == nil || a.at > 0 && a.hits.Add(1) != a.at || !t.first() {
		return
	}
	if a.pause > 0 {
		<-time.After(a.pause)
		return
	}
	t.exit(name)
}

// first reports whether no other process has acted before.
func (t *table) first() bool {
	if t.once == "" {
		return true
	}
	f, err := os.OpenFile(t.once, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}
