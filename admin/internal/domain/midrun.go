package domain

import "time"

// Progress is how far the newest attempt of a run is, as its handler says.
type Progress struct {
	ExecutionID ExecutionID
	Fence       int64
	Seq         int64 // grows with each report of an attempt
	Permille    int   // 0 to 1000
	Message     string
	UpdatedAt   time.Time
}

// Limits of the steps of one run; the wire has the same.
const (
	MaxStep       = 64 << 10 // bytes of one result
	MaxSteps      = 200
	MaxStepsBytes = 1 << 20 // all results together
)

// StoredStep is the result of a named part of a handler.
type StoredStep struct {
	Name     string
	Fence    int64 // of the attempt that stored it
	Output   []byte
	StoredAt time.Time
}
