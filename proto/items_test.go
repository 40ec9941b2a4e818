package proto

import (
	"bytes"
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"
)

// A frame is looked through before it is decoded: for what is counted, and only
// for that.
func TestItemsAreCountedBeforeTheyAreDecoded(t *testing.T) {
	steps := func(n int) *CommandToAdmin {
		b := &StepBatch{}
		for range n {
			b.Steps = append(b.Steps, &Step{Name: "a", Output: []byte("\n\x01a\n\x01a")}) // looks like fields itself
		}
		return &CommandToAdmin{Body: &CommandToAdmin_Steps{Steps: b}}
	}
	lines := func(chunks, n int) *LogBatch {
		b := &LogBatch{Seq: 1}
		for range chunks {
			c := &LogChunk{ExecutionId: 1, Attempt: 1, FirstLine: 1}
			for range n {
				c.Lines = append(c.Lines, &LogLine{})
			}
			b.Chunks = append(b.Chunks, c)
		}
		return b
	}
	for name, c := range map[string]struct {
		m    proto.Message
		want error
	}{
		"as many steps as there may be": {steps(MaxBatch), nil},
		"one more":                      {steps(MaxBatch + 1), ErrTooManyItems},
		"lines of all chunks together":  {lines(100, MaxLogItems/100), ErrTooManyItems},
		"lines of an honest batch":      {lines(20, MaxBatch), nil},
		"chunks without a line":         {lines(MaxLogItems+1, 0), ErrTooManyItems},
	} {
		t.Run(name, func(t *testing.T) {
			var stream bytes.Buffer
			if err := WriteFrame(&stream, c.m, MaxFrame); err != nil {
				t.Fatal(err)
			}
			var err error
			if _, log := c.m.(*LogBatch); log {
				err = NewReader(&stream, MaxFrame).Next(&LogBatch{})
			} else {
				err = NewReader(&stream, MaxFrame).Next(&CommandToAdmin{})
			}
			if is := errors.Is(err, c.want); !is {
				t.Fatalf("got %v, want %v", err, c.want)
			}
		})
	}
}
