package executor_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/internal/fakeadmin"
	"github.com/carillon-sched/carillon/proto"
)

// victim is the application that tests kill. It takes everything from the
// environment, and interrupts its handlers at once when it is told to stop.
func victim() {
	ex, err := executor.New(executor.Config{
		Slots: 8, ExitIfIgnored: 200 * time.Millisecond, DrainTimeout: -1, KillGrace: 100 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err == nil {
		registerVictims(ex)
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		err = ex.Run(ctx)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func registerVictims(ex *executor.Executor) {
	executor.HandleOut(ex, "quick", func(context.Context) (string, error) { return "done", nil })
	executor.HandleFunc(ex, "slow", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	executor.HandleFunc(ex, "talk", func(ctx context.Context) error {
		for i := range 100 {
			executor.Logger(ctx).Info("talk", "i", i)
		}
		<-ctx.Done()
		return ctx.Err()
	})
	executor.HandleFunc(ex, "stuck", func(context.Context) error { select {} },
		executor.KillGrace(20*time.Millisecond), executor.Stuck(executor.RestartProcess))
	executor.HandleFunc(ex, "deaf", func(context.Context) error { select {} })
	executor.HandleFunc(ex, "witness", func(ctx context.Context) error {
		f, err := os.OpenFile(os.Getenv("EXECUTOR_TEST_WITNESS"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err = fmt.Fprintln(f, executor.TaskFrom(ctx).Key()); err == nil {
			<-time.After(time.Millisecond) // give the killer a chance
		}
		return err
	})
}

func startVictim(t *testing.T, admin *fakeadmin.Admin, journal string) *exec.Cmd {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "EXECUTOR_TEST_CHILD=1", "CARILLON_EXECUTOR_NAME=shop",
		"CARILLON_EXECUTOR_ADDRESSES="+admin.Address(), "CARILLON_EXECUTOR_TOKEN="+fakeadmin.Token,
		"CARILLON_EXECUTOR_JOURNAL="+journal)
	child.Stderr = os.Stderr
	require.NoError(t, child.Start())
	t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
	return child
}

// A handler that does not listen is stopped with its process when the lease is
// lost, if the application wishes so.
func TestADeafHandlerEndsItsProcess(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{LeaseTTL: time.Second, Heartbeat: 100 * time.Millisecond})
	child := startVictim(t, admin, t.TempDir())
	require.NoError(t, session(t, admin, 1).Offer(offer(1, "deaf", granted)))
	saw(t, admin, func(seen fakeadmin.Seen) bool { return len(seen.Started) == 1 })
	admin.DenyLease.Store(true)
	var exit *exec.ExitError
	require.ErrorAs(t, child.Wait(), &exit)
	require.Equal(t, executor.ExitIgnored, exit.ExitCode())
}

// The process is killed with a result that was sent and not acknowledged, a
// run in the middle, and an offer that was accepted and not granted. The next
// process tells the truth about each, once.
func TestKilledProcessIsReportedByTheNext(t *testing.T) {
	journal := t.TempDir()
	admin := startAdmin(t, &fakeadmin.Admin{})
	admin.HoldAcks.Store(true)
	child := startVictim(t, admin, journal)
	s := session(t, admin, 1)
	require.NoError(t, s.Offer(offer(1, "quick"), offer(2, "slow"), offer(4, "quick", granted), offer(5, "slow", granted)))
	saw(t, admin, func(seen fakeadmin.Seen) bool { return len(seen.Started) == 4 && len(seen.Results) == 2 })
	admin.HoldGrants.Store(true)
	require.NoError(t, s.Offer(offer(3, "quick")))
	saw(t, admin, func(seen fakeadmin.Seen) bool { return len(seen.Answers) == 5 })
	require.NoError(t, child.Process.Kill())
	_ = child.Wait()
	saw(t, admin, func(seen fakeadmin.Seen) bool { return seen.Ended == 1 })

	admin.HoldAcks.Store(false)
	admin.HoldGrants.Store(false)
	a := start(t, admin, registerVictims, func(c *executor.Config) { c.JournalDir = journal })
	next := session(t, admin, 2)
	require.Equal(t, []string{s.Boot}, next.Register.GetSupersededBoots())
	require.Empty(t, next.Register.GetInventory())
	var owed []int64
	for _, item := range next.Register.GetOwed() {
		owed = append(owed, item.GetExecutionId())
		require.Equal(t, proto.AttemptPhase_ATTEMPT_PHASE_DONE, item.GetPhase())
	}
	require.Equal(t, []int64{1, 2, 3, 4}, owed, "5 ended with its process, and nobody has to wait for it")
	require.True(t, next.Register.GetOwedComplete())
	seen := saw(t, admin, results(2+4))
	again := seen.Results[2:]
	got := map[int64]string{}
	for _, r := range again {
		got[r.GetExecutionId()] = brief(r)
		require.Equal(t, s.Boot, r.GetBootId())
	}
	require.Equal(t, map[int64]string{
		1: "SUCCEEDED", 2: "UNKNOWN process_died", 3: "NEVER_STARTED", 4: "SUCCEEDED",
	}, got, "5 was its own grant: the journal knows nothing of it, the superseded boot tells")
	require.Equal(t, `"done"`, string(again[0].GetOutput()))
	require.NoError(t, a.stop())

	// Acknowledged is settled: the third process has nothing to say.
	b := start(t, admin, registerVictims, func(c *executor.Config) { c.JournalDir = journal })
	require.Contains(t, session(t, admin, 3).Register.GetSupersededBoots(), next.Boot)
	require.NoError(t, session(t, admin, 3).Offer(offer(9, "quick")))
	seen = saw(t, admin, results(7))
	require.EqualValues(t, 9, seen.Results[6].GetExecutionId())
	require.NoError(t, b.stop())
	require.Len(t, admin.Seen().Results, 7)
}

// The process is killed with log lines that no admin node has stored. The next
// one ships them, and says where the log breaks off.
func TestLogLinesSurviveAKill(t *testing.T) {
	journal := t.TempDir()
	admin := startAdmin(t, &fakeadmin.Admin{})
	admin.HoldLogAcks.Store(true)
	child := startVictim(t, admin, journal)
	require.NoError(t, session(t, admin, 1).Offer(offer(1, "talk")))
	saw(t, admin, lines(100)) // what is sent stands on the disk
	require.NoError(t, child.Process.Kill())
	_ = child.Wait()
	saw(t, admin, func(seen fakeadmin.Seen) bool { return seen.Ended == 1 })

	admin.HoldLogAcks.Store(false)
	a := start(t, admin, registerVictims, func(c *executor.Config) { c.JournalDir = journal })
	seen := saw(t, admin, lines(201))
	for i, l := range seen.Lines[100:] {
		require.EqualValues(t, 1, l.Execution)
		require.EqualValues(t, i+1, l.Number)
		if i < 100 {
			require.Equal(t, fmt.Sprintf(`{"i":%d}`, i), string(l.GetAttrs()))
		}
	}
	require.Contains(t, seen.Lines[200].GetMessage(), "the process of this run died here")
	require.NoError(t, a.stop())
	left, err := filepath.Glob(filepath.Join(journal, "1", "logs", "*"))
	require.NoError(t, err)
	require.Empty(t, left, "what is stored is not kept")
}

// A process that is killed over and over under load: what the handlers wrote
// down themselves agrees with what was reported, and nothing started twice.
func TestWitness(t *testing.T) {
	journal, witness := t.TempDir(), filepath.Join(t.TempDir(), "witness")
	t.Setenv("EXECUTOR_TEST_WITNESS", witness)
	admin := startAdmin(t, &fakeadmin.Admin{})
	id := int64(0)
	for life := range 8 {
		child := startVictim(t, admin, journal)
		s := session(t, admin, life+1)
		before := len(admin.Seen().Started)
		for end := time.Now().Add(patience); len(admin.Seen().Started) < before+40 && time.Now().Before(end); {
			id++
			require.NoError(t, s.Offer(offer(id, "witness"), offer(id, "witness")))
		}
		require.NoError(t, child.Process.Kill())
		_ = child.Wait()
		saw(t, admin, func(seen fakeadmin.Seen) bool { return seen.Ended == life+1 })
	}
	last := start(t, admin, registerVictims, func(c *executor.Config) { c.JournalDir = journal })
	// What is owed comes before what answers a new offer.
	require.NoError(t, session(t, admin, 9).Offer(offer(id+1, "quick")))
	saw(t, admin, func(seen fakeadmin.Seen) bool { return resultOf(seen, id+1) != nil })
	require.NoError(t, last.stop())

	written, err := os.ReadFile(witness)
	require.NoError(t, err)
	starts := map[string]int{}
	for key := range strings.FieldsSeq(string(written)) {
		starts[key]++
		require.Equal(t, 1, starts[key], "execution %s started twice", key)
	}
	seen, outcomes := admin.Seen(), map[string]int{}
	for _, answer := range seen.Answers {
		if !answer.GetAccepted() || answer.GetExecutionId() > id {
			continue
		}
		r := resultOf(seen, answer.GetExecutionId())
		require.NotNil(t, r, "execution %d was accepted and is silent", answer.GetExecutionId())
		outcomes[brief(r)]++
		switch started := starts[fmt.Sprint(answer.GetExecutionId())]; brief(r) {
		case "SUCCEEDED":
			require.Equal(t, 1, started)
		case "NEVER_STARTED":
			require.Zero(t, started)
		default:
			require.Equal(t, "UNKNOWN process_died", brief(r))
		}
	}
	t.Log(len(starts), "starts,", outcomes)
	require.Greater(t, outcomes["SUCCEEDED"], 100)
	require.NotZero(t, outcomes["UNKNOWN process_died"])
}

func TestResultsAreSentAgainAfterAReconnect(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	admin.HoldAcks.Store(true)
	var calls atomic.Int64
	a := start(t, admin, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "h", func(context.Context) error { calls.Add(1); return nil })
	})
	require.NoError(t, session(t, admin, 1).Offer(offer(1, "h"), offer(2, "h", granted)))
	saw(t, admin, results(2))
	admin.Sessions()[0].Cut()
	s := session(t, admin, 2)
	saw(t, admin, results(4))
	phases := map[proto.AttemptPhase]int{}
	for _, item := range s.Register.GetInventory() {
		phases[item.GetPhase()]++
	}
	require.Equal(t, map[proto.AttemptPhase]int{proto.AttemptPhase_ATTEMPT_PHASE_DONE: 2}, phases)
	admin.HoldAcks.Store(false)
	s.Cut()
	saw(t, admin, results(6))
	// Commands keep their order: what answers this offer has seen the acks.
	s = session(t, admin, 3)
	require.NoError(t, s.Offer(offer(3, "none")))
	saw(t, admin, func(seen fakeadmin.Seen) bool { return len(seen.Answers) == 3 })
	s.Cut()
	require.Empty(t, session(t, admin, 4).Register.GetInventory())
	require.NoError(t, a.stop())
	require.Len(t, admin.Seen().Results, 6)
	require.EqualValues(t, 2, calls.Load())
}

// A run goes on through a lost connection, and the admin decides about it by
// the inventory.
func TestRunsSurviveAReconnect(t *testing.T) {
	release := make(chan struct{})
	admin := startAdmin(t, &fakeadmin.Admin{})
	admin.HoldGrants.Store(true)
	admin.Judge = func(_ *fakeadmin.Session, r *proto.Register) *proto.Registered {
		reply := &proto.Registered{}
		for _, item := range r.GetInventory() {
			verdict := map[int64]proto.Verdict{1: proto.Verdict_VERDICT_KEEP, 2: proto.Verdict_VERDICT_DROP, 3: proto.Verdict_VERDICT_GRANT}
			reply.Verdicts = append(reply.Verdicts, &proto.InventoryVerdict{
				ExecutionId: item.GetExecutionId(), Fence: item.GetFence(), Verdict: verdict[item.GetExecutionId()],
			})
		}
		return reply
	}
	a := start(t, admin, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "h", func(ctx context.Context) error {
			select {
			case <-release:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	})
	s := session(t, admin, 1)
	require.NoError(t, s.Offer(offer(1, "h", granted), offer(2, "h", granted), offer(3, "h")))
	saw(t, admin, func(seen fakeadmin.Seen) bool { return len(seen.Started) == 2 && len(seen.Answers) == 3 })
	s.Cut()
	saw(t, admin, func(seen fakeadmin.Seen) bool { return len(seen.Started) == 3 }) // 3 was granted by the verdict
	seen := saw(t, admin, results(1))
	require.Equal(t, "FAILED lease_lost", brief(resultOf(seen, 2)))
	require.Equal(t, "lease lost: the run was given away", resultOf(seen, 2).GetError())
	close(release)
	seen = saw(t, admin, results(3))
	require.Equal(t, "SUCCEEDED", brief(resultOf(seen, 1)))
	require.Equal(t, "SUCCEEDED", brief(resultOf(seen, 3)))
	require.NoError(t, a.stop())
}

// Two admin nodes: the second is learnt from the first, both offer, and a
// result whose node is gone reaches the other.
func TestTwoAdminNodes(t *testing.T) {
	one, two := startAdmin(t, &fakeadmin.Admin{Node: "n1"}), startAdmin(t, &fakeadmin.Admin{Node: "n2"})
	nodes := &proto.NodeList{Nodes: []*proto.Node{{Id: "n1", Address: one.Address()}, {Id: "n2", Address: two.Address()}}}
	one.Judge = func(*fakeadmin.Session, *proto.Register) *proto.Registered { return &proto.Registered{Nodes: nodes} }
	release := make(chan struct{})
	a := start(t, one, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "quick", func(context.Context) error { return nil })
		executor.HandleFunc(ex, "slow", func(context.Context) error { <-release; return nil })
	})
	s1, s2 := session(t, one, 1), session(t, two, 1)
	require.Equal(t, s1.Boot, s2.Boot)
	require.NoError(t, s1.Offer(offer(1, "slow")))
	require.NoError(t, s2.Offer(offer(2, "quick")))
	require.EqualValues(t, 2, saw(t, two, results(1)).Results[0].GetExecutionId())
	saw(t, one, func(seen fakeadmin.Seen) bool { return len(seen.Started) == 1 })
	one.Close()
	close(release)
	require.EqualValues(t, 1, saw(t, two, results(2)).Results[1].GetExecutionId())
	require.NoError(t, a.Health())
	require.NoError(t, a.stop())
}

// A node that dies between the commit of a grant and its sending: the other
// one is asked at once, and its word starts the handler.
func TestAnotherNodeIsAskedForTheGrant(t *testing.T) {
	one := startAdmin(t, &fakeadmin.Admin{Node: "n1"})
	two := startAdmin(t, &fakeadmin.Admin{Node: "n2", Answer: func(_ *fakeadmin.Session, i *proto.InventoryItem) proto.Verdict {
		if i.GetExecutionId() == 1 {
			return proto.Verdict_VERDICT_GRANT
		}
		return proto.Verdict_VERDICT_DROP
	}})
	one.HoldGrants.Store(true)
	nodes := &proto.NodeList{Nodes: []*proto.Node{{Id: "n1", Address: one.Address()}, {Id: "n2", Address: two.Address()}}}
	one.Judge = func(*fakeadmin.Session, *proto.Register) *proto.Registered { return &proto.Registered{Nodes: nodes} }
	var calls atomic.Int64
	a := start(t, one, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "h", func(context.Context) error { calls.Add(1); return nil })
	})
	s := session(t, one, 1)
	session(t, two, 1)
	require.NoError(t, s.Offer(offer(1, "h"), offer(2, "h")))
	saw(t, one, func(seen fakeadmin.Seen) bool { return len(seen.Answers) == 2 })
	one.Close()
	seen := saw(t, two, results(1))
	require.Len(t, seen.Asked, 2)
	require.EqualValues(t, 1, seen.Results[0].GetExecutionId())
	require.Equal(t, "SUCCEEDED", brief(seen.Results[0]))
	require.NoError(t, a.stop())
	require.Len(t, two.Seen().Results, 1, "a dropped attempt is forgotten")
	require.EqualValues(t, 1, calls.Load())
}

// Processes on one host share a journal folder and get names of their own.
func TestTwoProcessesShareAJournalFolder(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	dir := t.TempDir()
	share := func(c *executor.Config) { c.JournalDir = dir }
	first := start(t, admin, registerVictims, share)
	name := session(t, admin, 1).Register.GetInstanceName()
	second := start(t, admin, registerVictims, share)
	require.Equal(t, name+"-2", session(t, admin, 2).Register.GetInstanceName())
	require.Empty(t, session(t, admin, 2).Register.GetSupersededBoots())
	require.NoError(t, first.stop())
	require.NoError(t, second.stop())
}

// Processes in different folders of a host have different names by themselves, and
// each has its own again when it is started anew. A name that is given is the name.
func TestInstancesAreToldApart(t *testing.T) {
	name := func(change func(*executor.Config)) string {
		t.Helper()
		admin := startAdmin(t, &fakeadmin.Admin{})
		a := start(t, admin, registerVictims, change)
		defer func() { require.NoError(t, a.stop()) }()
		return session(t, admin, 1).Register.GetInstanceName()
	}
	in := func(dir string) func(*executor.Config) { return func(c *executor.Config) { c.JournalDir = dir } }
	one, two := t.TempDir(), t.TempDir()
	first := name(in(one))
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Regexp(t, "^"+regexp.QuoteMeta(host)+"-[0-9a-f]{6}$", first)
	require.NotEqual(t, first, name(in(two)))
	require.Equal(t, first, name(in(one)))
	t.Chdir(one)
	require.Equal(t, first, name(in(".")), "however the folder is called")
	require.Equal(t, "web-1", name(func(c *executor.Config) { c.JournalDir, c.InstanceName = one, "web-1" }))
}

// The executor starts before its admin, and comes back when the admin does.
func TestAdminComesLater(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	admin := &fakeadmin.Admin{Listen: listener.Addr().String()}
	require.NoError(t, listener.Close())
	ex, err := executor.New(executor.Config{
		Name: "shop", Addresses: []string{admin.Listen}, Token: fakeadmin.Token, JournalDir: t.TempDir(),
		Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	registerVictims(ex)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- ex.Run(ctx) }()
	require.Eventually(t, func() bool {
		err := ex.Health()
		return err != nil && err.Error() != "executor: not running"
	}, patience, time.Millisecond)
	startAdmin(t, admin)
	<-ex.Ready()
	require.NoError(t, session(t, admin, 1).Offer(offer(1, "quick")))
	saw(t, admin, results(1))
	cancel()
	require.NoError(t, <-done)
}
