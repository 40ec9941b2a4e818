package proto

import "time"

// Version is the protocol version this package speaks; MinVersion is the
// oldest one it still understands. The peers settle on the highest version
// that both know (SPEC.md, "Versions").
const (
	Version    = 1
	MinVersion = 1
)

// Preface opens every connection, before any frame and inside TLS if TLS is
// used. It lets the admin refuse strangers (HTTP, port scanners) at once.
const Preface = "CARILLON\x00\x01"

// Limits. A peer that sends more than these is in error; the receiver closes
// the session that sent it, and only that one.
const (
	// MaxHello bounds ClientHello and ServerHello, which are read before the
	// peer is authenticated.
	MaxHello = 4 << 10
	// MaxFrame bounds the payload of every other frame.
	MaxFrame = 1 << 20
	// MaxInput bounds a run's input, MaxOutput its output, both in bytes of JSON.
	MaxInput  = 256 << 10
	MaxOutput = 256 << 10
	// MaxScript bounds the content of one script, in bytes. It travels with every
	// offer, and a full instance's worth of offers has to fit a session's queue.
	MaxScript = 64 << 10
	// MaxErrorText bounds Result.error and Result.stack, each in bytes.
	MaxErrorText = 16 << 10
	// MaxLogLine bounds the message and the attributes of one log line together, in bytes.
	MaxLogLine = 64 << 10
	// MaxProgressText bounds Progress.message, in bytes.
	MaxProgressText = 1 << 10
	// MaxStep bounds the stored result of one step, in bytes of JSON; MaxSteps is how many
	// steps a run may store, MaxStepsBytes how many bytes they may have together.
	MaxStep       = 64 << 10
	MaxSteps      = 200
	MaxStepsBytes = 1 << 20
	// MaxBatch bounds the items in one batch frame.
	MaxBatch = 500
	// MaxOwed bounds the attempts that Register.owed names.
	MaxOwed = 2000
	// MaxHandlers bounds the handlers that one instance registers.
	MaxHandlers = 1000
	// MaxName bounds names of handlers, jobs, executors, instances and labels, in bytes.
	MaxName = 128
	// MaxLabels bounds the labels of a declared job, MaxLabelKey their keys in
	// bytes; MaxName bounds their values.
	MaxLabels   = 32
	MaxLabelKey = 63
	// MaxEmails bounds the addresses that the alerts of a declared job go to,
	// MaxEmail each of them and MaxWebhook a webhook's address, in bytes.
	MaxEmails  = 20
	MaxEmail   = 254
	MaxWebhook = 2048
)

// Timing. The defaults of both sides; the admin announces the ones that it
// may change in Registered. Measured on a real connection that was cut.
const (
	// HelloTimeout is how long the peer may take from connecting to a complete hello.
	HelloTimeout = 5 * time.Second
	// FirstByteTimeout is how long the peer may take from connecting to its first byte.
	FirstByteTimeout = 2 * time.Second
	// HeartbeatInterval is the pace of Heartbeat on the control stream.
	HeartbeatInterval = 3 * time.Second
	// HeartbeatTimeout is the silence after which the admin calls an instance silent.
	HeartbeatTimeout = 12 * time.Second
	// LeaseTTL is how long an instance's lease lasts after each renewal.
	LeaseTTL = 15 * time.Second
	// SelfFence is the silence after which the executor cancels what it runs:
	// the lease's time less a margin.
	SelfFence = 12 * time.Second
	// AcceptTTL is how long an executor's acceptance stays valid; a grant that
	// arrives later starts nothing.
	AcceptTTL = 5 * time.Second
	// OfferGood is how long after its sending a one-step offer may be started
	// (Offer.good_ms).
	OfferGood = time.Second
	// OfferTTL is how long the admin waits for the answer to an offer. It is
	// shorter than AcceptTTL, so that no grant can be valid after the admin gave up.
	OfferTTL = 3 * time.Second
	// WriteTimeout bounds any single write, and the answer to a ping, on both sides.
	WriteTimeout = 5 * time.Second
)
