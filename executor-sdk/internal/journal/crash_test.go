package journal

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// appendForever is the process that TestKill kills: it prints each execution
// once it is durable, or, on a known machine, once it stands in the file.
func appendForever(dir string, machine Machine) {
	j, _, err := Open(Options{Dir: dir, Boot: "child", SegmentBytes: 4096, Machine: machine})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go func() { _ = j.Run(context.Background()) }()
	say := func(id int64) (written func(), done func(error)) {
		if j.Outlasts() {
			return func() { fmt.Println(id) }, func(error) {}
		}
		return nil, func(err error) {
			if err == nil {
				fmt.Println(id)
			}
		}
	}
	for id := int64(1); ; id++ {
		// Every second one is settled again, so that segments are replaced.
		written, done := say(id)
		j.Append([]Record{rec(Done, id, fmt.Sprint("result ", id))}, written, done)
		if id%2 == 0 {
			settled := make(chan error, 1)
			if j.Outlasts() {
				j.Append([]Record{rec(Settled, id)}, func() { settled <- nil }, func(error) {})
			} else {
				j.Append([]Record{rec(Settled, id)}, nil, func(err error) { settled <- err })
			}
			if err := <-settled; err != nil {
				panic(err)
			}
		}
	}
}

// TestKill: what a process that is killed has said to be in its journal is found by the next one.
func TestKill(t *testing.T) {
	for name, machine := range map[string]Machine{"on the disk": {}, "in the file": {1}} {
		t.Run(name, func(t *testing.T) { killed(t, machine) })
	}
}

func killed(t *testing.T, machine Machine) {
	dir := t.TempDir()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "JOURNAL_TEST_CHILD="+dir)
	if machine != (Machine{}) {
		child.Env = append(child.Env, "JOURNAL_TEST_MACHINE=1")
	}
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	child.Stderr = os.Stderr
	require.NoError(t, child.Start())
	lines := bufio.NewScanner(out)
	var durable []int64
	for lines.Scan() {
		var id int64
		_, err := fmt.Sscan(lines.Text(), &id)
		require.NoError(t, err)
		durable = append(durable, id)
		if len(durable) == 500 {
			require.NoError(t, child.Process.Kill())
		}
	}
	require.Error(t, child.Wait())

	j := open(t, Options{Dir: dir, Boot: "parent", Machine: machine})
	require.Equal(t, []string{"child"}, j.found.Boots)
	require.Empty(t, j.found.Damaged)
	last := durable[len(durable)-1]
	var owed []int64
	for _, e := range j.found.Entries {
		owed = append(owed, e.Execution)
		require.Equal(t, fmt.Sprint("result ", e.Execution), string(e.Result))
	}
	for _, id := range durable {
		if id%2 == 1 {
			require.Contains(t, owed, id)
		} else if id < last-1 {
			require.NotContains(t, owed, id)
		}
	}
}

// sample is a segment with its records' end offsets and what is owed after each.
func sample() (data []byte, ends []int, owed [][]string) {
	l := newLedger()
	data = []byte(header)
	add := func(r Record) {
		data = appendRecord(data, r)
		l.apply(r)
		ends = append(ends, len(data))
		var now []Entry
		for _, e := range l.sorted() {
			now = append(now, *e)
		}
		owed = append(owed, brief(now))
	}
	add(Record{Kind: kindBoot, Body: []byte("boot1")})
	add(rec(Accepted, 1))
	add(rec(Accepted, 2))
	add(rec(Granted, 1))
	add(rec(Done, 1, "one"))
	add(rec(Settled, 2))
	add(rec(Accepted, 3))
	return data, ends, owed
}

func writeSegment(t *testing.T, data []byte) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "1"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "1", "00000007.journal"), data, 0o600))
	return dir
}

func TestTornAtEveryByte(t *testing.T) {
	data, ends, owed := sample()
	for cut := len(header); cut <= len(data); cut++ {
		j := open(t, Options{Dir: writeSegment(t, data[:cut]), Boot: "boot2"})
		whole, _ := slices.BinarySearch(ends, cut+1) // records that end at or before the cut
		var want []string
		end := len(header)
		if whole > 0 {
			want, end = owed[whole-1], ends[whole-1]
		}
		require.Equal(t, want, brief(j.found.Entries), "cut at %d", cut)
		require.Equal(t, cut-end, j.found.TornBytes, "cut at %d", cut)
		require.Empty(t, j.found.Damaged)
		j.stop()
	}
}

// The end of what a process wrote may be missing when the machine has started
// again, and when the tail is torn; what earlier processes left was synced.
func TestWhatMayBeMissingIsDoubted(t *testing.T) {
	here, elsewhere := Machine{1}, Machine{2}
	segment := func(on Machine) []byte {
		data := []byte(header)
		for _, r := range []Record{
			bootRecord("boot1", Machine{}), rec(Accepted, 1),
			bootRecord("boot2", on), rec(Accepted, 2), rec(Accepted, 3), rec(Granted, 3), rec(Accepted, 4), rec(Done, 4, "four"),
		} {
			data = appendRecord(data, r)
		}
		return data
	}
	for name, c := range map[string]struct {
		wrote, reads Machine
		tail         int // bytes of another record
		doubted      bool
	}{
		"the same start":                 {here, here, 0, false},
		"another start":                  {here, elsewhere, 0, true},
		"unknown now":                    {here, Machine{}, 0, true},
		"unknown then":                   {Machine{}, here, 0, false},
		"never known":                    {Machine{}, Machine{}, 0, false},
		"the same start, but torn":       {here, here, 11, true},
		"each record was synced, a torn": {Machine{}, here, 11, false},
	} {
		t.Run(name, func(t *testing.T) {
			data := append(segment(c.wrote), appendRecord(nil, rec(Granted, 2))[:c.tail]...)
			dir := writeSegment(t, data)
			j := open(t, Options{Dir: dir, Boot: "boot3", Machine: c.reads})
			require.Equal(t, c.doubted, j.found.Doubted)
			want := []string{"1:2:", "2:2:", "3:3:", "4:4:four"}
			if c.doubted {
				want[1] = "2:3:"
			}
			require.Equal(t, want, brief(j.found.Entries))
			require.Equal(t, c.reads != Machine{}, j.Outlasts())
			j.stop()
			j = open(t, Options{Dir: dir, Boot: "boot4", Machine: c.reads})
			require.Equal(t, want, brief(j.found.Entries), "and stays so")
			require.False(t, j.found.Doubted)
		})
	}
}

func TestThisMachine(t *testing.T) {
	m := ThisMachine()
	require.Equal(t, m, ThisMachine())
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		require.Zero(t, m)
		return
	}
	require.NotZero(t, m)
	require.Equal(t, strings.ReplaceAll(strings.TrimSpace(string(text)), "-", ""), hex.EncodeToString(m[:]))
}

func TestTailOfZeros(t *testing.T) {
	data, _, owed := sample()
	j := open(t, Options{Dir: writeSegment(t, append(data, make([]byte, 4096)...)), Boot: "boot2"})
	require.Equal(t, owed[len(owed)-1], brief(j.found.Entries))
	require.Equal(t, 4096, j.found.TornBytes)
	require.Empty(t, j.found.Damaged)
}

// Whichever byte of a record is harmed, none of it counts.
func TestDamageInTheMiddleIsKeptAside(t *testing.T) {
	whole, ends, owed := sample()
	require.Equal(t, []string{"1:2:", "2:2:"}, owed[2])
	for at := ends[2]; at < ends[3]; at++ {
		data := slices.Clone(whole)
		data[at] ^= 0x40
		dir := writeSegment(t, data)
		j := open(t, Options{Dir: dir, Boot: "boot2"})
		require.Equal(t, []string{"1:3:", "2:3:"}, brief(j.found.Entries), "byte %d: their grants may be in what was harmed", at-ends[2])
		require.True(t, j.found.Doubted)
		require.Equal(t, filepath.Join(dir, "1", "00000007.journal.damaged"), j.found.Damaged)
		kept, err := os.ReadFile(j.found.Damaged)
		require.NoError(t, err)
		require.Equal(t, data, kept)
		j.stop()
	}
}

// A write that a power cut tore may have its length and not all of its bytes.
func TestDamageAtTheEndIsATornTail(t *testing.T) {
	whole, ends, owed := sample()
	last := len(ends) - 1
	for at := ends[last-1]; at < ends[last]; at++ {
		data := slices.Clone(whole)
		data[at] ^= 0x40
		j := open(t, Options{Dir: writeSegment(t, data), Boot: "boot2"})
		require.Equal(t, owed[last-1], brief(j.found.Entries), "byte %d", at-ends[last-1])
		require.Equal(t, ends[last]-ends[last-1], j.found.TornBytes)
		require.Empty(t, j.found.Damaged)
		j.stop()
	}
}

func TestForeignFileIsKeptAside(t *testing.T) {
	j := open(t, Options{Dir: writeSegment(t, []byte("what is this")), Boot: "boot2"})
	require.Empty(t, j.found.Entries)
	require.NotEmpty(t, j.found.Damaged)
}

// A crash between making a segment and removing the one before leaves both.
func TestNewestSegmentCounts(t *testing.T) {
	old, _, _ := sample()
	dir := writeSegment(t, old)
	fresh := appendRecord([]byte(header), Record{Kind: kindBoot, Body: []byte("boot1")})
	fresh = appendRecord(fresh, rec(Accepted, 3))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "1", "00000008.journal"), fresh, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "1", "00000009.journal.tmp"), old[:50], 0o600))
	j := open(t, Options{Dir: dir, Boot: "boot2"})
	require.Equal(t, []string{"3:2:"}, brief(j.found.Entries))
	files, err := filepath.Glob(filepath.Join(dir, "1", "*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "1", "00000009.journal"), filepath.Join(dir, "1", "lock")}, files)
}

// Whatever stands in a segment, reading it ends without harm, and what was
// read is the same after it was written as a snapshot.
func FuzzRead(f *testing.F) {
	data, _, _ := sample()
	f.Add(data)
	f.Add(append(data[:len(data)-3:len(data)-3], 0, 0, 0, 0))
	f.Add([]byte(header))
	f.Fuzz(func(t *testing.T, data []byte) {
		l := newLedger()
		whole, torn := l.read(data)
		require.LessOrEqual(t, torn, len(data))
		if !whole {
			require.Empty(t, l.entries)
			return
		}
		holdsRecords(data[len(data)-torn:])
		size := 0
		for _, e := range l.entries {
			size += e.size()
		}
		require.Equal(t, size, l.bytes)

		again := newLedger()
		whole, torn = again.read(l.snapshot("now", Machine{}, nil))
		require.True(t, whole)
		require.Zero(t, torn)
		require.Len(t, again.entries, len(l.entries))
		for k, e := range l.entries {
			got := again.entries[k]
			require.NotNil(t, got)
			require.Equal(t, e.Boot, got.Boot)
			require.Equal(t, e.Kind, got.Kind)
			require.True(t, bytes.Equal(e.Result, got.Result))
		}
	})
}
