package executor

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// Broadcast lets each fire of the job run once on every instance that serves
// the handler when it is sent out: one shard per instance. TaskFrom tells the
// handler which one it is.
func Broadcast() JobOption {
	return jobOption(func(j *job) { j.sharding().Mode = "broadcast" })
}

// Shards cuts each fire of the job into n shards, from 1 to 1000, which run
// beside each other wherever there is room. TaskFrom tells the handler which one
// it is.
func Shards(n int) JobOption {
	return jobOption(func(j *job) {
		s := j.sharding()
		s.Mode, s.Shards = "fixed", int32(min(max(n, math.MinInt32), math.MaxInt32))
	})
}

// OnGone says what becomes of a broadcast's shard whose instance goes before the
// shard has run there. Default MissShard.
func OnGone(p GonePolicy) JobOption {
	return jobOption(func(j *job) { j.sharding().OnGone = string(p) })
}

// GonePolicy is what becomes of a shard whose instance has gone.
type GonePolicy string

// The policies.
const (
	MissShard GonePolicy = "miss" // it is missed, and the fire fails
	MoveShard GonePolicy = "move" // another instance takes it
)

// BeforeShards names a handler of this executor that has to succeed before the
// shards start. It gets the job's input.
func BeforeShards(handler string) JobOption {
	return jobOption(func(j *job) { j.sharding().Before = handler })
}

// AfterShards names a handler of this executor that runs when all shards have
// ended, however they did. Its input is ShardResults.
func AfterShards(handler string) JobOption {
	return jobOption(func(j *job) { j.sharding().After = handler })
}

// FireTimeout cancels what still runs of a fire with shards when d has passed
// since it began. Timeout bounds each attempt of each shard. Default: none.
func FireTimeout(d time.Duration) JobOption {
	return jobOption(func(j *job) { j.fireTimeout = d; j.sharding() })
}

// Shard is a slice of the work: Index, from 0, of Total.
type Shard struct{ Index, Total int }

// Mine reports whether the shard is the one for a number, such as an id: each
// number belongs to exactly one of the shards, and all of them to a run that is
// no shard.
func (s Shard) Mine(n uint64) bool {
	return s.Total <= 1 || n%uint64(s.Total) == uint64(s.Index)
}

// Shard is the task's slice; its Total is 0 when the run is no shard.
func (t Task) Shard() Shard { return Shard{t.ShardIndex, t.ShardTotal} }

// ShardResults is the input of the handler that AfterShards names. It is bounded
// to 64 KiB.
type ShardResults struct {
	RunID     string        `json:"runId"`
	FireAt    time.Time     `json:"fireAt"`
	Total     int           `json:"total"`
	Succeeded int           `json:"succeeded"`
	Shards    []ShardResult `json:"shards"`
	// Omitted counts the shards whose output or error had no room.
	Omitted int `json:"omitted,omitempty"`
}

// ShardResult is what became of one shard.
type ShardResult struct {
	Index  int             `json:"index"`
	State  string          `json:"state"` // succeeded, failed, timed_out, cancelled, lost, missed
	Output json.RawMessage `json:"output,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// sharding is what the options above fill in.
func (j *job) sharding() *proto.Sharding {
	if j.shards == nil {
		j.shards = &proto.Sharding{}
	}
	return j.shards
}

func (j *job) checkSharding() error {
	s := j.shards
	if s == nil {
		return nil
	}
	switch {
	case s.Mode == "":
		return errors.New("OnGone, BeforeShards, AfterShards and FireTimeout need Broadcast or Shards")
	case s.Mode == "fixed" && (s.Shards < 1 || s.Shards > 1000):
		return fmt.Errorf("Shards(%d): must be from 1 to 1000", s.Shards)
	case s.Mode == "fixed" && s.OnGone != "":
		return errors.New("OnGone needs Broadcast: fixed shards are bound to no instance")
	case s.Mode == "broadcast" && s.Shards != 0:
		return errors.New("Broadcast and Shards exclude each other")
	case j.fireTimeout < 0 || j.fireTimeout%time.Millisecond != 0:
		return errors.New("FireTimeout must be a whole number of milliseconds, and not negative")
	}
	s.TimeoutMs = j.fireTimeout.Milliseconds()
	return nil
}
