package domain

import "time"

// Executor is a named group of interchangeable processes.
type Executor struct {
	ID          ExecutorID
	TenantID    TenantID
	Name        string
	Description string
	CreatedAt   time.Time
}

// Instance is one live process of an executor (one boot).
type Instance struct {
	ID         InstanceID
	TenantID   TenantID
	Executor   ExecutorID
	BootID     string
	Name       string
	Host       string
	PID        int
	AppVersion string
	Build      string // digest of what it registered; empty = not known
	Client     string
	Labels     map[string]string
	Handlers   []string
	Slots      int
	Running    int
	Draining   bool
	Refusing   bool // it takes nothing for now: its journal cannot be written
	StartedAt  time.Time
	// ConnectedAt is the first registration, LastSeenAt the last heartbeat
	// that a node has written down (a few seconds behind).
	ConnectedAt time.Time
	LastSeenAt  time.Time
	// LeaseUntil is the end, in database time, of the right of this instance's
	// attempts to be alive. Renewed by any node that hears its heartbeats.
	LeaseUntil time.Time
	// GoneAt is when it left or was declared dead; zero while it lives.
	GoneAt     time.Time
	GoneReason string
}

// Handler is one entry of an executor's catalogue: the union of what its
// builds registered, each as the newest build that is present has it.
type Handler struct {
	TenantID     TenantID
	Executor     ExecutorID
	Name         string
	Description  string
	InputSchema  []byte
	OutputSchema []byte
	Idempotent   bool
	FirstSeenAt  time.Time
	LastSeenAt   time.Time
}

// Node is one admin process.
type Node struct {
	ID     NodeID // number inside ids, free again after the node is gone
	BootID string
	Name   string
	// ExecutorAddress is what executors dial, host:port.
	ExecutorAddress string
	Version         string
	StartedAt       time.Time
	HeartbeatAt     time.Time
	Sessions        int
}

// LogChunk is a run of consecutive log lines of one attempt as stored.
type LogChunk struct {
	TenantID    TenantID
	ExecutionID ExecutionID
	Attempt     int
	FirstLine   int64 // from 1
	Lines       []LogLine
}

// LogLine is one line that a handler wrote.
type LogLine struct {
	Number  int64
	Attempt int
	At      time.Time
	Level   int // slog levels
	Message string
	Attrs   []byte // JSON object or nil
	TraceID string // of the span that the line was written in; empty = none
}
