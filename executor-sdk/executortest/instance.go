package executortest

import (
	"context"
	"net"
	"time"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/proto"
)

// instance is one executor, and the admin's end of its session (bridge.Admin).
type instance struct {
	admin  *Admin
	ex     *executor.Executor
	name   string // of the executor
	number int
	slots  int

	started bool               // guarded by admin.mu
	cancel  context.CancelFunc // set by Start
	done    chan error         // set by Start; capacity 1

	// Guarded by admin.mu.
	handlers map[string]*proto.Handler
	labels   map[string]string
	deliver  func(*proto.CommandToExecutor)
	draining bool
}

// Register implements bridge.Admin.
func (i *instance) Register(r *proto.Register, deliver func(*proto.CommandToExecutor)) *proto.Registered {
	a := i.admin
	a.mu.Lock()
	defer a.mu.Unlock()
	i.deliver, i.handlers, i.labels = deliver, map[string]*proto.Handler{}, r.GetLabels()
	for _, h := range r.GetHandlers() {
		i.handlers[h.GetName()] = h
		for _, d := range h.GetJobs() {
			if a.jobs[d.GetName()] == nil && !a.stopped {
				a.declare(h, d)
			}
		}
	}
	a.dispatchLocked()
	// The lease lasts: there is no network to be lost.
	return &proto.Registered{InstanceId: int64(i.number), LeaseTtlMs: (100 * 365 * 24 * time.Hour).Milliseconds()}
}

// Draining implements bridge.Admin.
func (i *instance) Draining() {
	i.admin.mu.Lock()
	defer i.admin.mu.Unlock()
	i.draining = true
}

// Exit implements bridge.Admin.
func (i *instance) Exit() {
	i.admin.t.Errorf("executortest: a handler of instance %d still runs after its context was cancelled: here a process would end (executor.RestartProcess, Config.ExitIfIgnored)", i.number)
	i.Draining()
}

// Command implements bridge.Admin.
func (i *instance) Command(m *proto.CommandToAdmin) {
	a := i.admin
	a.mu.Lock()
	defer a.mu.Unlock()
	switch body := m.GetBody().(type) {
	case *proto.CommandToAdmin_Answers:
		for _, answer := range body.Answers.GetAnswers() {
			i.answered(answer)
		}
	case *proto.CommandToAdmin_Started:
		for _, s := range body.Started.GetStarted() {
			if r := a.current(s.GetExecutionId(), s.GetFence()); r != nil && r.state == Offered {
				r.state = Running
			}
		}
	case *proto.CommandToAdmin_Progress:
		for _, p := range body.Progress.GetProgress() {
			if r := a.current(p.GetExecutionId(), p.GetFence()); r != nil {
				r.progress = p
			}
		}
	case *proto.CommandToAdmin_Steps:
		acks := &proto.StepAckBatch{}
		for _, s := range body.Steps.GetSteps() {
			acks.Acks = append(acks.Acks, a.step(s))
		}
		i.deliver(&proto.CommandToExecutor{Body: &proto.CommandToExecutor_StepAcks{StepAcks: acks}})
	case *proto.CommandToAdmin_Results:
		acks := &proto.ResultAckBatch{}
		for _, result := range body.Results.GetResults() {
			acks.Acks = append(acks.Acks, &proto.ResultAck{
				ExecutionId: result.GetExecutionId(), Fence: result.GetFence(), Code: "stored", StillRunning: result.GetStillRunning(),
			})
			if r := a.current(result.GetExecutionId(), result.GetFence()); r != nil {
				r.finish(result)
			}
		}
		i.deliver(&proto.CommandToExecutor{Body: &proto.CommandToExecutor_Acks{Acks: acks}})
		a.dispatchLocked()
	}
}

// answered grants what was accepted; what was refused waits for the next end.
func (i *instance) answered(answer *proto.Answer) {
	r := i.admin.current(answer.GetExecutionId(), answer.GetFence())
	switch {
	case r == nil || r.state.Ended():
	case !answer.GetAccepted():
		r.state, r.instance = Waiting, nil
		r.attempt--
	case !r.oneStep:
		i.deliver(&proto.CommandToExecutor{Body: &proto.CommandToExecutor_Grants{Grants: &proto.GrantBatch{
			Grants: []*proto.Grant{{ExecutionId: r.id, Fence: r.fence, Granted: true}},
		}}})
	}
}

// step answers as an admin does. mu is held.
func (a *Admin) step(s *proto.Step) *proto.StepAck {
	ack := &proto.StepAck{ExecutionId: s.GetExecutionId(), Fence: s.GetFence(), Request: s.GetRequest()}
	r := a.current(s.GetExecutionId(), s.GetFence())
	if r == nil || r.state.Ended() {
		ack.Code = "not_running"
		return ack
	}
	stored, known := r.steps[s.GetName()]
	switch {
	case known:
		ack.Code, ack.Output = "found", stored
	case s.GetAction() == proto.StepAction_STEP_ACTION_READ:
		ack.Code = "none"
	default:
		ack.Code, r.steps[s.GetName()] = "stored", s.GetOutput()
	}
	return ack
}

// Logs implements bridge.Admin.
func (i *instance) Logs() net.Conn {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		reader := proto.NewReader(server, proto.MaxFrame)
		for {
			var batch proto.LogBatch
			if reader.Next(&batch) != nil {
				return
			}
			i.admin.log(&batch)
			if proto.WriteFrame(server, &proto.LogAck{Seq: batch.GetSeq()}, proto.MaxFrame) != nil {
				return
			}
		}
	}()
	return client
}

func (a *Admin) log(batch *proto.LogBatch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range batch.GetChunks() {
		for _, r := range a.runs {
			if r.id != c.GetExecutionId() {
				continue
			}
			for _, l := range c.GetLines() {
				r.lines = append(r.lines, lineOf(l))
			}
			r.last[c.GetFence()] = c.GetFirstLine() + int64(len(c.GetLines())) - 1
			close(r.logged)
			r.logged = make(chan struct{})
		}
	}
}

// current is the run whose newest attempt has this fence.
func (a *Admin) current(id, fence int64) *Run {
	for _, r := range a.runs {
		if r.id == id && r.fence == fence {
			return r
		}
	}
	return nil
}
