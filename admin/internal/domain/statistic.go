package domain

import (
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"
	"time"
)

// StatisticStep is how long a time is that ends of runs are counted in.
type StatisticStep uint8

// The steps. The numbers are stored.
const (
	StepMinute StatisticStep = 1
	StepHour   StatisticStep = 2
	StepDay    StatisticStep = 3
)

// Length is how long one is.
func (s StatisticStep) Length() time.Duration {
	switch s {
	case StepDay:
		return 24 * time.Hour
	case StepHour:
		return time.Hour
	default:
		return time.Minute
	}
}

// StatisticKind is whose runs are counted together.
type StatisticKind uint8

// The kinds. The numbers are stored.
const (
	StatisticsOfTenant   StatisticKind = 1
	StatisticsOfExecutor StatisticKind = 2
	StatisticsOfJob      StatisticKind = 3
)

// RunEnd is how one run has ended, as statistics count it.
type RunEnd struct {
	Tenant   TenantID
	Executor ExecutorID
	Job      JobID
	Minute   int64 // minutes since 1970, UTC, in which it ended
	State    State
	// Undone: it is taken back, for the run has come to another end after all.
	Undone bool
	// Late is how many milliseconds after its fire time it started, -1 unless that
	// was at its first attempt; Took is how long its last attempt ran, -1 if none did.
	Late, Took int64
	// Run, Error and ErrorText belong to runs that ended badly. They are empty for all others.
	Run       ExecutionID
	Error     Fingerprint
	ErrorText string
}

// EndOf returns the end of a run as it counts; false: it does not. Parts are not
// counted, their parent is; neither is a run whose timer was moved, which has not ended.
func EndOf(e *Execution) (RunEnd, bool) {
	if !e.State.Terminal() || e.IsPart() || e.Reason == ReasonRescheduled {
		return RunEnd{}, false
	}
	at := e.FinishedAt
	if at.IsZero() {
		at = e.PlannedAt
	}
	end := RunEnd{Tenant: e.TenantID, Executor: e.Executor, Job: e.JobID, Minute: at.UnixMilli() / time.Minute.Milliseconds(), State: e.State, Late: -1, Took: -1}
	if end.Error, end.ErrorText = ErrorOf(e); end.Error != 0 {
		end.Run = e.ID
	}
	if !e.StartedAt.IsZero() {
		if late, ok := Lateness(e); ok && e.Attempt == 1 {
			end.Late = max(0, late.Milliseconds())
		}
		if took, ok := e.Duration(); ok {
			end.Took = took.Milliseconds()
		}
	}
	return end, true
}

// RunSum is what is known of runs that ended in one state within some time.
type RunSum struct {
	Runs int64
	// Late is how late those started that started at their first attempt. Took is
	// how long the last attempts ran.
	Late, Took Spread
}

// Count adds one end.
func (s *RunSum) Count(e *RunEnd) {
	n := int64(1)
	if e.Undone {
		n = -1
	}
	s.Runs += n
	s.Late.count(e.Late, n)
	s.Took.count(e.Took, n)
}

// Add adds another sum.
func (s *RunSum) Add(o *RunSum) {
	s.Runs += o.Runs
	s.Late.Add(&o.Late)
	s.Took.Add(&o.Took)
}

// Empty reports whether nothing is left of what was counted.
func (s *RunSum) Empty() bool { return s.Runs == 0 && s.Late.N == 0 && s.Took.N == 0 }

// Spread says of durations how many they are, their sum and their maximum, and how
// many lie between fixed bounds, each spreadRatio times the one before. Spreads can be
// added, and a quantile of the sum is as good as one of each: off by 5 % at most
// (spreadRatio = (1+α)/(1-α) for α = 0.05: Masson, Rim and Lee, DDSketch, VLDB 2019).
type Spread struct {
	N, SumMS, MaxMS int64
	buckets         map[uint8]int64
}

const spreadRatio = 1.05 / 0.95

var logRatio = math.Log(spreadRatio)

// spreadBucket is the number of the least bound that is not below ms. The highest, 255,
// is 3.8 years, and stands for all above it.
func spreadBucket(ms int64) uint8 {
	if ms <= 1 {
		return 0
	}
	return uint8(min(math.MaxUint8, math.Ceil(math.Log(float64(ms))/logRatio)))
}

// Count adds durations of ms milliseconds; -1 is none. n is negative to take them back;
// the maximum stays.
func (s *Spread) count(ms, n int64) {
	if ms < 0 {
		return
	}
	s.N, s.SumMS = s.N+n, s.SumMS+n*ms
	if n > 0 {
		s.MaxMS = max(s.MaxMS, ms)
	}
	s.add(spreadBucket(ms), n)
}

func (s *Spread) add(bucket uint8, n int64) {
	if s.buckets == nil {
		s.buckets = map[uint8]int64{}
	}
	if s.buckets[bucket] += n; s.buckets[bucket] == 0 {
		delete(s.buckets, bucket)
	}
}

// Add adds another spread.
func (s *Spread) Add(o *Spread) {
	s.N, s.SumMS, s.MaxMS = s.N+o.N, s.SumMS+o.SumMS, max(s.MaxMS, o.MaxMS)
	for bucket, n := range o.buckets {
		s.add(bucket, n)
	}
}

// Mean is the mean; false: there are none.
func (s *Spread) Mean() (time.Duration, bool) {
	if s.N <= 0 {
		return 0, false
	}
	return time.Duration(s.SumMS/s.N) * time.Millisecond, true
}

// Quantile is the duration that a share q of them does not exceed, from 0 to 1; false:
// there are none.
func (s *Spread) Quantile(q float64) (time.Duration, bool) {
	if s.N <= 0 {
		return 0, false
	}
	rank, seen := int64(math.Ceil(q*float64(s.N))), int64(0)
	for _, bucket := range slices.Sorted(maps.Keys(s.buckets)) {
		if seen += s.buckets[bucket]; seen >= max(rank, 1) {
			// As far from the bound below, relatively, as from the one above.
			ms := min(s.MaxMS, int64(math.Round(2*math.Pow(spreadRatio, float64(bucket))/(spreadRatio+1))))
			return time.Duration(ms) * time.Millisecond, true
		}
	}
	return time.Duration(s.MaxMS) * time.Millisecond, true
}

// Encode writes the counts between the bounds.
func (s *Spread) Encode() []byte {
	out := make([]byte, 0, 3*len(s.buckets))
	for _, bucket := range slices.Sorted(maps.Keys(s.buckets)) {
		out = binary.AppendVarint(append(out, bucket), s.buckets[bucket])
	}
	return out
}

// Decode reads what Encode wrote, and adds it.
func (s *Spread) Decode(b []byte) error {
	for len(b) > 0 {
		n, size := binary.Varint(b[1:])
		if size <= 0 {
			return errors.New("a spread of durations is cut off")
		}
		s.add(b[0], n)
		b = b[1+size:]
	}
	return nil
}

// subtract takes back another spread. The maximum stays.
func (s *Spread) subtract(o *Spread) {
	s.N, s.SumMS = s.N-o.N, s.SumMS-o.SumMS
	for bucket, n := range o.buckets {
		s.add(bucket, -n)
	}
}

// SpreadOf reads what Encode wrote. Its sum and its maximum are not known.
func SpreadOf(b []byte) (s Spread, err error) {
	err = s.Decode(b)
	for _, n := range s.buckets {
		s.N += n
	}
	s.MaxMS = math.MaxInt64
	return s, err
}

// LateStart is how long after its planned start a run may start and is in time.
const LateStart = 10 * time.Second

// JobWeek is how the runs of a job ended in a week. Instants are milliseconds since 1970, in whole
// minutes; 0: never.
type JobWeek struct {
	Ended, Failed int64
	Late, Took    Spread
	// When a run last succeeded, failed, started in time and started late. They may be older than
	// the week.
	GoodAt, BadAt, PunctualAt, LateAt int64
}

// Count adds one end. An instant stays if an end is taken back.
func (w *JobWeek) Count(e *RunEnd) {
	var sum RunSum
	sum.Count(e)
	w.AddSum(e.State, &sum)
	if e.Undone {
		return
	}
	w.note(e.State, e.Late, e.Minute*time.Minute.Milliseconds())
}

func (w *JobWeek) note(state State, late, at int64) {
	switch {
	case FailedState(state):
		w.BadAt = max(w.BadAt, at)
	case state == Succeeded:
		w.GoodAt = max(w.GoodAt, at)
	}
	switch {
	case late > LateStart.Milliseconds():
		w.LateAt = max(w.LateAt, at)
	case late >= 0:
		w.PunctualAt = max(w.PunctualAt, at)
	}
}

// AddSum adds runs that ended in a state.
func (w *JobWeek) AddSum(state State, s *RunSum) {
	w.Ended += s.Runs
	if FailedState(state) {
		w.Failed += s.Runs
	}
	w.Late.Add(&s.Late)
	w.Took.Add(&s.Took)
}

// SubtractSum takes them back.
func (w *JobWeek) SubtractSum(state State, s *RunSum) {
	w.Ended -= s.Runs
	if FailedState(state) {
		w.Failed -= s.Runs
	}
	w.Late.subtract(&s.Late)
	w.Took.subtract(&s.Took)
}

// Note takes over when runs of a sum ended at. Of an hour it is not known which of them was last.
func (w *JobWeek) Note(state State, s *RunSum, at int64) {
	late := int64(-1)
	if s.Late.N > 0 {
		late = s.Late.MaxMS
	}
	w.note(state, late, at)
}

// Recall takes over the instants of another week.
func (w *JobWeek) Recall(o *JobWeek) {
	w.GoodAt, w.BadAt = max(w.GoodAt, o.GoodAt), max(w.BadAt, o.BadAt)
	w.PunctualAt, w.LateAt = max(w.PunctualAt, o.PunctualAt), max(w.LateAt, o.LateAt)
}

// Impossible reports whether more was taken back than was added.
func (w *JobWeek) Impossible() bool {
	return w.Ended < 0 || w.Failed < 0 || w.Late.N < 0 || w.Took.N < 0 || w.Ended == 0 && (w.Failed != 0 || w.Late.N != 0 || w.Took.N != 0)
}
