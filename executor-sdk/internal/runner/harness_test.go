package runner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/proto"
)

// bench drives a machine by hand: the test is the clock, the journal, the
// network and the handlers. Everything the machine wants is written down in seen.
type bench struct {
	t       *testing.T
	m       *machine
	now     time.Time
	seen    []string
	unsaved []effect // appends that wait for the disk
	running map[string]*attempt
	results []*proto.Result
}

type testLink struct {
	name   string
	Link             // its methods are not called, but for one: effects are looked at directly
	leased time.Time // see LeaseFrom; zero = just now
	sent   time.Time // likewise
}

func (l *testLink) LeaseFrom(int64) (from, sent time.Time) {
	from, sent = l.leased, l.sent
	if from.IsZero() {
		from = time.Unix(1<<40, 0)
	}
	if sent.IsZero() {
		sent = time.Unix(1<<40, 0)
	}
	return from, sent
}

func newBench(t *testing.T, slots int) *bench {
	limits := Limits{
		Slots: slots, KillGrace: 10 * time.Second, AcceptTTL: proto.AcceptTTL,
		LeaseMargin: 3 * time.Second, ResendAfter: 10 * time.Second,
	}
	return &bench{
		t: t, now: time.Unix(1_000_000, 0), running: map[string]*attempt{},
		m: newMachine("boot1", limits, func(name string) bool { return name == "h" }),
	}
}

func name(k Key) string { return fmt.Sprintf("%d/%d", k.Execution, k.Fence) }

// do lets one event happen and notes its effects.
func (b *bench) do(f func()) {
	f()
	for _, e := range b.m.effects {
		b.note(e)
	}
	b.m.forgetEffects()
}

func (b *bench) note(e effect) {
	say := func(format string, args ...any) { b.seen = append(b.seen, fmt.Sprintf(format, args...)) }
	link := ""
	if e.link != nil {
		link = e.link.(*testLink).name + " "
	}
	for _, a := range e.answers {
		verdict := "yes"
		if !a.GetAccepted() {
			verdict = "no " + a.GetRejectCode()
		}
		say("%sanswer %d/%d %s", link, a.GetExecutionId(), a.GetFence(), verdict)
	}
	for _, a := range e.accepts {
		say("%stake %d/%d", link, a.GetExecutionId(), a.GetFence())
	}
	for _, s := range e.started {
		say("%sstarted %d/%d", link, s.GetExecutionId(), s.GetFence())
	}
	for _, r := range e.results {
		b.results = append(b.results, r)
		say("%sresult %d/%d %s", link, r.GetExecutionId(), r.GetFence(), brief(r))
	}
	for _, i := range e.ask {
		say("%sask %d/%d %s", link, i.GetExecutionId(), i.GetFence(), strings.TrimPrefix(i.GetPhase().String(), "ATTEMPT_PHASE_"))
	}
	for _, r := range e.records {
		say("write %s %d/%d", [...]string{"", "", "accepted", "granted", "done", "settled"}[r.Kind], r.Execution, r.Fence)
	}
	switch {
	case e.done != nil:
		b.unsaved = append(b.unsaved, e)
	case e.start != nil:
		b.running[name(e.start.key)] = e.start
		say("start %s", name(e.start.key))
	case e.cancel != nil:
		say("cancel %s: %v", name(e.cancel.key), e.cancel.cause)
	case e.exit:
		say("exit")
	case e.lost:
		say("lease lost")
	}
}

func brief(r *proto.Result) string {
	s := strings.TrimPrefix(r.GetOutcome().String(), "OUTCOME_")
	if r.GetErrorKind() != "" {
		s += " " + r.GetErrorKind()
	}
	if r.GetStillRunning() {
		s += " still_running"
	}
	return s
}

// written lets what waits get into the file, where it is not safe from the
// machine yet.
func (b *bench) written() {
	for i := range b.unsaved {
		if written := b.unsaved[i].written; written != nil {
			b.unsaved[i].written = nil
			b.do(func() { written(b.now) })
		}
	}
}

// saved lets the disk finish all appends that wait, with err. What comes of that
// waits for the next time.
func (b *bench) saved(err error) {
	n := len(b.unsaved)
	if err == nil {
		b.written()
	}
	all := b.unsaved[:n:n]
	b.unsaved = b.unsaved[n:]
	for _, e := range all {
		b.do(func() { e.done(b.now, err) })
	}
}

func (b *bench) up(link *testLink, verdicts ...*proto.InventoryVerdict) {
	b.do(func() {
		b.m.linkUp(b.now, link, b.now, &proto.Registered{LeaseTtlMs: 15_000, Verdicts: verdicts})
	})
}

func (b *bench) offer(link *testLink, offers ...*proto.Offer) {
	b.do(func() { b.m.offers(b.now, link, offers, nil) })
}

func (b *bench) grant(link *testLink, execution, fence int64, granted bool) {
	b.do(func() {
		b.m.grants(b.now, link, []*proto.Grant{{ExecutionId: execution, Fence: fence, Granted: granted}})
	})
}

func (b *bench) ack(execution, fence int64) {
	b.do(func() { b.m.acks(b.now, []*proto.ResultAck{{ExecutionId: execution, Fence: fence}}) })
}

func (b *bench) cancel(execution, fence int64, reason string) {
	b.do(func() {
		b.m.cancels(b.now, []*proto.Cancel{{ExecutionId: execution, Fence: fence, Reason: reason}})
	})
}

// returns lets a handler end.
func (b *bench) returns(attempt string, r Return) {
	a := b.running[attempt]
	require.NotNil(b.t, a, "%s is not running", attempt)
	delete(b.running, attempt)
	b.do(func() {
		result := b.m.returned(b.now, a, r)
		body, err := gproto.Marshal(result)
		require.NoError(b.t, err)
		b.m.write(a, result, body)
	})
}

// wait lets time pass in the steps of the real ticker, with a renewed lease.
func (b *bench) wait(d time.Duration) {
	for end := b.now.Add(d); b.now.Before(end); {
		b.now = b.now.Add(tickInterval)
		for _, l := range b.m.links {
			b.m.renewed(l.link, b.now, true)
		}
		b.do(func() { b.m.tick(b.now) })
	}
}

// cut lets time pass without any heartbeat answered.
func (b *bench) cut(d time.Duration) {
	for end := b.now.Add(d); b.now.Before(end); {
		b.now = b.now.Add(tickInterval)
		b.do(func() { b.m.tick(b.now) })
	}
}

// expect checks what happened since the last expect.
func (b *bench) expect(want ...string) {
	b.t.Helper()
	require.Equal(b.t, want, b.seen)
	b.seen = nil
}

func (b *bench) expectNothingLeft() {
	b.t.Helper()
	require.Empty(b.t, b.m.attempts)
	require.Zero(b.t, b.m.used)
	require.Empty(b.t, b.unsaved)
}

func offer(execution, fence int64, change ...func(*proto.Offer)) *proto.Offer {
	o := &proto.Offer{ExecutionId: execution, Fence: fence, Handler: "h"}
	for _, c := range change {
		c(o)
	}
	return o
}

func idempotent(o *proto.Offer) { o.Granted = true }
func timeout(d time.Duration) func(*proto.Offer) {
	return func(o *proto.Offer) { o.TimeoutMs = d.Milliseconds() }
}
