package domain

import (
	"encoding/json"
	"fmt"
	"time"
)

// Topic is what a row of the outbox is about. Topics are bits, so that a set of them is a
// Topic as well. Each topic has one reader, which deletes the rows that it has done with
// (docs/adr/0102).
type Topic uint8

const (
	// TopicEnds has ends of runs. Statistics read it.
	TopicEnds Topic = 1 << iota
	// TopicCallbacks has runs that have ended and that another run follows.
	TopicCallbacks
	// TopicEvents has events that somebody may have to be told of. An add-on reads it.
	TopicEvents
)

// Topics are all of them.
var Topics = []Topic{TopicEnds, TopicCallbacks, TopicEvents}

// String is the topic's name in metrics and messages.
func (t Topic) String() string {
	switch t {
	case TopicEnds:
		return "ends"
	case TopicCallbacks:
		return "callbacks"
	case TopicEvents:
		return "events"
	}
	return fmt.Sprintf("topic %d", uint8(t))
}

// Callback is a run that has ended and that another run follows.
type Callback struct {
	Tenant  TenantID    `json:"tenant"`
	ID      ExecutionID `json:"run"`
	Success bool        `json:"success"`
}

// OutboxDepth is how many rows of a topic wait, and for how long the oldest one has.
type OutboxDepth struct {
	Rows int
	Age  time.Duration
}

// EncodeList is the body of a row of TopicCallbacks or TopicEvents.
func EncodeList[T Callback | AlertEvent](list []T) ([]byte, error) {
	body, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("encode a row of the outbox: %w", err)
	}
	return body, nil
}

// DecodeList reads what EncodeList wrote.
func DecodeList[T Callback | AlertEvent](body []byte) (list []T, err error) {
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("a row of the outbox cannot be read: %w", err)
	}
	return list, nil
}
