package domain

import (
	"encoding/json"
	"time"
)

// MaxShardResults bounds what an after hook gets, in bytes. Each shard's state
// is told in any case; outputs and errors go in as long as there is room.
const MaxShardResults = 64 << 10

// ShardResults is the input of an after hook. Its form is part of the API.
type ShardResults struct {
	RunID     string        `json:"runId"`
	FireAt    time.Time     `json:"fireAt"`
	Total     int           `json:"total"`
	Succeeded int           `json:"succeeded"`
	Shards    []ShardResult `json:"shards"`
	// Omitted counts the shards whose output or error had no room.
	Omitted int `json:"omitted,omitempty"`

	room int
}

// ShardResult is what became of one shard.
type ShardResult struct {
	Index  int             `json:"index"`
	State  string          `json:"state"`
	Output json.RawMessage `json:"output,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// NewShardResults begins the results of a parent.
func NewShardResults(parent *Execution, f Family) *ShardResults {
	_, succeeded := f.count()
	return &ShardResults{
		RunID: parent.ID.String(), FireAt: parent.FireAt.UTC(), Total: parent.Shards, Succeeded: succeeded,
		Shards: []ShardResult{}, room: MaxShardResults - 64*parent.Shards,
	}
}

// Add tells of one shard; they come in order.
func (s *ShardResults) Add(e *Execution) {
	r := ShardResult{Index: e.Shard, State: e.State.String()}
	output := json.RawMessage(e.Output)
	if len(output) > 0 && !json.Valid(output) {
		output, _ = json.Marshal(string(e.Output)) // of another language's executor
	}
	message := e.Error
	if message == "" && e.State != Succeeded {
		message = e.Message
	}
	size := len(output) + 2*len(message)
	switch {
	case size > s.room:
		s.Omitted++
	default:
		s.room -= size
		r.Output, r.Error = output, message
	}
	s.Shards = append(s.Shards, r)
}

// JSON is the input as the hook gets it.
func (s *ShardResults) JSON() ([]byte, error) { return json.Marshal(s) }
