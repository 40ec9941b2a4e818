package executor

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/executor-sdk/internal/bridge"
	"github.com/carillon-sched/carillon/proto"
)

// fleet is what a process needs of its sessions. session.Fleet has it; in
// tests inProcess does.
type fleet interface {
	Run(ctx context.Context)
	Drain(reason string, grace time.Duration)
	Leave(clean bool)
	Health() error
	Beat()
	Sessions() (now int, opened uint64)
	DialLogs(ctx context.Context) (net.Conn, error)
}

func init() {
	bridge.Connect = func(ex any, admin bridge.Admin) { ex.(*Executor).admin = admin }
}

// inProcess is a fleet of one session to an admin in the same process. It is
// its own link: what the rooms send is queued and handed on by Run.
type inProcess struct {
	admin bridge.Admin
	p     *process
	wake  chan struct{} // capacity 1: something is queued; nobody closes it

	mu  sync.Mutex                 // guards what follows
	out []*proto.CommandToAdmin    // what the executor sends
	in  []*proto.CommandToExecutor // what the admin sends
}

func newInProcess(admin bridge.Admin, p *process) *inProcess {
	return &inProcess{admin: admin, p: p, wake: make(chan struct{}, 1)}
}

// Run registers, and hands frames on until ctx ends.
func (f *inProcess) Run(ctx context.Context) {
	sentAt := time.Now()
	reply := f.admin.Register(f.p.Register(), func(m *proto.CommandToExecutor) {
		f.put(func() { f.in = append(f.in, m) })
	})
	f.p.up(f, sentAt, reply)
	defer f.p.down(f)
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		}
		f.mu.Lock()
		in, out := f.in, f.out
		f.in, f.out = nil, nil
		f.mu.Unlock()
		for _, m := range in {
			f.deliver(m)
		}
		for _, m := range out {
			f.admin.Command(m)
		}
	}
}

// put changes a queue and wakes Run.
func (f *inProcess) put(change func()) {
	f.mu.Lock()
	change()
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *inProcess) deliver(m *proto.CommandToExecutor) {
	switch body := m.GetBody().(type) {
	case *proto.CommandToExecutor_Offers:
		f.p.runner.Offers(f, body.Offers.GetOffers())
	case *proto.CommandToExecutor_Grants:
		f.p.runner.Grants(f, body.Grants.GetGrants())
	case *proto.CommandToExecutor_Cancels:
		f.p.runner.Cancels(body.Cancels.GetCancels())
	case *proto.CommandToExecutor_Acks:
		f.p.runner.Acks(body.Acks.GetAcks())
	case *proto.CommandToExecutor_StepAcks:
		f.p.steps.Answered(body.StepAcks.GetAcks())
	}
}

func (f *inProcess) send(m *proto.CommandToAdmin) {
	f.put(func() { f.out = append(f.out, m) })
}

// The methods of runner.Link and progress.Link.

// Answer implements runner.Link.
func (f *inProcess) Answer(list []*proto.Answer) {
	f.send(&proto.CommandToAdmin{Body: &proto.CommandToAdmin_Answers{Answers: &proto.AnswerBatch{Answers: list}}})
}

// Accept implements runner.Link.
func (f *inProcess) Accept(list []*proto.Answer) { f.Answer(list) }

// Started implements runner.Link.
func (f *inProcess) Started(list []*proto.Started) {
	f.send(&proto.CommandToAdmin{Body: &proto.CommandToAdmin_Started{Started: &proto.StartedBatch{Started: list}}})
}

// Results implements runner.Link.
func (f *inProcess) Results(list []*proto.Result) {
	f.send(&proto.CommandToAdmin{Body: &proto.CommandToAdmin_Results{Results: &proto.ResultBatch{Results: list}}})
}

// Progress implements progress.Link.
func (f *inProcess) Progress(list []*proto.Progress) {
	f.send(&proto.CommandToAdmin{Body: &proto.CommandToAdmin_Progress{Progress: &proto.ProgressBatch{Progress: list}}})
}

// Steps implements progress.Link.
func (f *inProcess) Steps(list []*proto.Step) {
	f.send(&proto.CommandToAdmin{Body: &proto.CommandToAdmin_Steps{Steps: &proto.StepBatch{Steps: list}}})
}

// Ask is about other nodes, of which there are none.
func (f *inProcess) Ask([]*proto.InventoryItem) {}

// LeaseFrom is always now: there is no network that could delay an offer.
func (f *inProcess) LeaseFrom(int64) (from, sent time.Time) { return time.Now(), time.Now() }

// Drain implements fleet.
func (f *inProcess) Drain(string, time.Duration) { f.admin.Draining() }

// Leave implements fleet: there is no session to end.
func (f *inProcess) Leave(bool) {}

// Beat implements fleet: the admin asks for nothing between offers.
func (f *inProcess) Beat() {}

// Health implements fleet.
func (f *inProcess) Health() error { return nil }

// Sessions implements fleet: there is always the one.
func (f *inProcess) Sessions() (now int, opened uint64) { return 1, 1 }

// DialLogs implements fleet.
func (f *inProcess) DialLogs(context.Context) (net.Conn, error) { return f.admin.Logs(), nil }
