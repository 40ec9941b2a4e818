package domain

import (
	"strconv"
	"sync"
	"time"
)

// Ids are 64-bit numbers that grow with time, so that inserts stay local in
// the index. In JSON they are decimal strings, because browsers lose digits
// beyond 2^53.
type (
	TenantID     int64
	UserID       int64
	ExecutorID   int64
	InstanceID   int64
	JobID        int64
	ExecutionID  int64
	CalendarID   int64
	BackfillID   int64
	ScriptID     int64
	SessionID    int64
	InvitationID int64
	NodeID       int64
	IncidentID   int64
	ChannelID    int64
	AlertRuleID  int64
	SilenceID    int64
)

func (id TenantID) String() string     { return strconv.FormatInt(int64(id), 10) }
func (id UserID) String() string       { return strconv.FormatInt(int64(id), 10) }
func (id ExecutorID) String() string   { return strconv.FormatInt(int64(id), 10) }
func (id InstanceID) String() string   { return strconv.FormatInt(int64(id), 10) }
func (id JobID) String() string        { return strconv.FormatInt(int64(id), 10) }
func (id ExecutionID) String() string  { return strconv.FormatInt(int64(id), 10) }
func (id CalendarID) String() string   { return strconv.FormatInt(int64(id), 10) }
func (id BackfillID) String() string   { return strconv.FormatInt(int64(id), 10) }
func (id ScriptID) String() string     { return strconv.FormatInt(int64(id), 10) }
func (id SessionID) String() string    { return strconv.FormatInt(int64(id), 10) }
func (id InvitationID) String() string { return strconv.FormatInt(int64(id), 10) }
func (id NodeID) String() string       { return strconv.FormatInt(int64(id), 10) }
func (id IncidentID) String() string   { return strconv.FormatInt(int64(id), 10) }
func (id ChannelID) String() string    { return strconv.FormatInt(int64(id), 10) }
func (id AlertRuleID) String() string  { return strconv.FormatInt(int64(id), 10) }
func (id SilenceID) String() string    { return strconv.FormatInt(int64(id), 10) }

// ParseID reads an id as it stands in a URL or in JSON.
func ParseID[T ~int64](s string) (T, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 {
		return 0, Errorf(CodeNotFound, "no object has the id %q", s)
	}
	return T(n), nil
}

const (
	idTimeBits = 41
	idNodeBits = 10
	idSeqBits  = 12
	// MaxNodeID is the highest number a node may have inside ids.
	MaxNodeID = 1<<idNodeBits - 1
)

// ImportNode is the number in the ids of imported rows. No node has it, so that these ids
// are free at any time in the past.
const ImportNode NodeID = 0

// idEpoch is 2026-01-01T00:00:00Z; idTimeBits of milliseconds last until 2095.
const idEpoch = 1767225600000

// IDSource makes ids: 41 bits of milliseconds, 10 bits of node, 12 bits of
// sequence. Two nodes never make the same id as long as their numbers differ;
// one node never makes the same id twice, also when its clock steps back (it
// then goes on from the highest millisecond it has used). Safe for concurrent use.
type IDSource struct {
	node int64
	now  func() time.Time

	mu   sync.Mutex
	last int64 // guarded by mu: millisecond of the last id
	seq  int64 // guarded by mu
}

// NewIDSource returns a source for the node with this number (1..MaxNodeID), or for ImportNode.
func NewIDSource(node NodeID, now func() time.Time) *IDSource {
	return &IDSource{node: int64(node) & MaxNodeID, now: now}
}

// Next returns a new id.
func (s *IDSource) Next() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms := s.now().UnixMilli() - idEpoch
	if ms > s.last {
		s.last, s.seq = ms, 0
	} else if s.seq++; s.seq >= 1<<idSeqBits {
		s.last, s.seq = s.last+1, 0 // borrow from the next millisecond
	}
	return s.last<<(idNodeBits+idSeqBits) | s.node<<idSeqBits | s.seq
}

// IDFloor returns the lowest id that can be made at t: ids made earlier are
// below it. It turns a bound in time into a bound in the index. Times outside
// of what ids can hold are their first or their last millisecond.
func IDFloor(t time.Time) int64 {
	return min(max(t.UnixMilli()-idEpoch, 0), 1<<idTimeBits-1) << (idNodeBits + idSeqBits)
}

// IDTime returns the millisecond in which an id was made, by the clock of the
// node that made it.
func IDTime(id int64) time.Time {
	return time.UnixMilli(id>>(idNodeBits+idSeqBits) + idEpoch).UTC()
}

// Imported reports whether an id is from a source of ImportNode.
func Imported(id int64) bool { return NodeID(id>>idSeqBits&MaxNodeID) == ImportNode }

// Partitions is the number of slices the trigger and execution tables are
// divided into; a job stays in its partition for life (DESIGN section 3).
const Partitions = 64

// PartitionOf returns the partition of a job. The multiplier spreads ids whose
// low bits repeat (SplitMix64's first constant).
func PartitionOf(id JobID) int {
	x := uint64(id) * 0x9E3779B97F4A7C15
	return int(x >> 58)
}

// Collect returns what of makes of each element, in the order of the list.
func Collect[T, V any](list []T, of func(*T) V) []V {
	out := make([]V, len(list))
	for i := range list {
		out[i] = of(&list[i])
	}
	return out
}

// FirstWithin returns how many of the first elements stay together if the element with which
// their sizes reach so many bytes is the last one.
func FirstWithin[T any](list []T, bytes int64, size func(*T) int64) (n int) {
	for total := int64(0); n < len(list) && total < bytes; n++ {
		total += size(&list[n])
	}
	return n
}

// TryCollect is Collect where of can fail; the first error ends it.
func TryCollect[T, V any](list []T, of func(*T) (V, error)) ([]V, error) {
	out := make([]V, len(list))
	for i := range list {
		var err error
		if out[i], err = of(&list[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}
