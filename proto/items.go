package proto

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// ErrTooManyItems means that a frame holds more items than its type may.
var ErrTooManyItems = errors.New("frame over the limit of items")

// MaxLogItems bounds the lines in one batch of log lines: many times what 64 KiB
// of lines, which a batch is cut to, can hold of lines that say anything.
const MaxLogItems = 20_000

// maxControlItems bounds the items of one list in a frame on the control stream:
// more than an SDK has slots, handlers or jobs.
const maxControlItems = 10_000

// fewItems looks how many items a frame holds before memory is taken for them:
// two bytes on the wire may be a hundred when decoded.
func fewItems(payload []byte, m proto.Message) error {
	limit, n := 0, 0
	switch m.(type) {
	case *CommandToAdmin: // body, list
		limit, n = MaxBatch, items(payload, anyField, func(list []byte) int { return items(list, 1, one) })
	case *ControlToAdmin:
		limit, n = maxControlItems, items(payload, anyField, func(body []byte) int { return items(body, anyField, one) })
	case *LogBatch: // chunks, lines
		limit, n = MaxLogItems, items(payload, 2, func(chunk []byte) int { return 1 + items(chunk, 5, one) })
	}
	if n > limit {
		return fmt.Errorf("%w: %d items, limit %d", ErrTooManyItems, n, limit)
	}
	return nil
}

const anyField protowire.Number = 0

func one([]byte) int { return 1 }

// items sums what count says of each field of a message that has this number and
// is of a kind that has bytes. What is no message counts up to where it breaks
// off: decoding it says so.
func items(b []byte, wanted protowire.Number, count func(value []byte) int) (n int) {
	for len(b) > 0 {
		number, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return n
		}
		b = b[size:]
		if kind != protowire.BytesType {
			if size = protowire.ConsumeFieldValue(number, kind, b); size < 0 {
				return n
			}
			b = b[size:]
			continue
		}
		value, size := protowire.ConsumeBytes(b)
		if size < 0 {
			return n
		}
		b = b[size:]
		if wanted == anyField || wanted == number {
			n += count(value)
		}
	}
	return n
}
