package executor

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/executor-sdk/internal/journal"
	"github.com/carillon-sched/carillon/executor-sdk/internal/load"
	"github.com/carillon-sched/carillon/executor-sdk/internal/logship"
	"github.com/carillon-sched/carillon/executor-sdk/internal/progress"
	"github.com/carillon-sched/carillon/executor-sdk/internal/runner"
	"github.com/carillon-sched/carillon/executor-sdk/internal/session"
	"github.com/carillon-sched/carillon/proto"
)

// Version of this SDK.
const Version = "0.1.0"

// maxCatalogue bounds the handlers of a registration, in bytes: the rest of
// its frame is for the inventory.
const maxCatalogue = 700 << 10

// process is an Executor while it runs: the rooms and what connects them. It
// implements session.Events.
type process struct {
	// Fixed after construction.
	config       Config
	handlers     map[string]*handler
	interceptors []Interceptor
	catalogue    []*proto.Handler
	declared     map[string]string // job → its handler
	boot         string
	instance     string
	host         string
	startedAt    time.Time
	logger       *slog.Logger
	journal      *journal.Journal
	journalDir   string // its share of Config.JournalDir
	runner       *runner.Runner
	logs         *logship.Shipper
	fleet        fleet
	steps        *progress.StepClient
	reporter     *progress.Reporter
	meter        load.Meter
	counts       *counts
	onReady      func()
	leave        func()        // in place of the process's end; nil but in tests
	giveUp       chan struct{} // closed when Run has to end with fatal

	mu         sync.Mutex // guards what follows
	superseded []string   // dead boots that no admin node was told of
	failing    bool       // the journal took nothing when it was asked last
	busy       bool       // the CPU was used up when it was looked at last
	refused    []RefusedDeclaration
	taken      bool          // all declarations were taken once
	fatal      *RefusedError // set before giveUp is closed
}

// newProcess opens the journal and puts the rooms together. base is the
// parent of all handlers' contexts.
func (ex *Executor) newProcess(base context.Context) (*process, error) {
	p := &process{
		steps: progress.NewStepClient(), reporter: progress.NewReporter(),
		config: ex.config, handlers: ex.handlers, interceptors: ex.interceptors, boot: newBoot(), startedAt: time.Now(),
		logger: ex.config.Logger.With("component", "carillon", "executor", ex.config.Name), onReady: ex.markReady,
		counts: newCounts(ex.order), declared: ex.jobNames, giveUp: make(chan struct{}),
	}
	for _, h := range ex.order {
		p.catalogue = append(p.catalogue, h.message())
	}
	if size := gproto.Size(&proto.Register{Handlers: p.catalogue}); size > maxCatalogue {
		return nil, fmt.Errorf("the handlers' schemas and jobs take %d bytes, the limit is %d: register fewer or smaller ones", size, maxCatalogue)
	}
	var found journal.Found
	var err error
	p.journal, found, err = journal.Open(journal.Options{
		Dir: p.config.JournalDir, Boot: p.boot, Machine: journal.ThisMachine(),
		Synced: p.counts.syncs.Add, Turned: p.journalTurned, NoSync: ex.admin != nil,
	})
	if err != nil {
		return nil, fmt.Errorf("%w (set Config.JournalDir or %s to a writable folder)", err, envJournal)
	}
	p.journalDir = found.Dir
	p.tellFound(found)
	p.superseded = found.Boots
	p.nameInstance(found.Share)
	p.runner = runner.New(runner.Options{
		Boot: p.boot, Journal: p.journal, Logger: p.logger, Base: base, Found: found.Entries, Call: p.invoke,
		Ended: p.counts.ended, Refused: p.counts.refusedOffer,
		Known: func(name string) bool { return p.handlers[name] != nil }, Exit: p.exitIgnored, Tick: ex.tick(),
		Limits: runner.Limits{
			Slots: p.config.Slots, Weight: p.weight, KillGrace: p.config.KillGrace, ExitIfIgnored: p.config.ExitIfIgnored,
			Stuck: p.stuck, ExitWait: p.config.DrainTimeout, AcceptTTL: proto.AcceptTTL, AwaitDisk: !p.journal.Outlasts(),
			LeaseMargin: proto.LeaseTTL - proto.SelfFence, ResendAfter: 10 * time.Second,
		},
	})
	if ex.admin != nil {
		p.leave = ex.admin.Exit
	}
	p.fleet = ex.newFleet(p)
	p.logs = logship.New(logship.Options{
		Dial: p.fleet.DialLogs, Logger: p.logger,
		Total: p.config.LogBuffer, PerAttempt: p.config.LogBuffer,
		Spool: filepath.Join(found.Dir, "logs"), Died: diedWith(found.Entries),
	})
	return p, nil
}

// tick is how often the runner looks at the time; 0 = its default. A test's
// clock passes in leaps: each look costs, and none waits for it.
func (ex *Executor) tick() time.Duration {
	if ex.admin != nil {
		return time.Second
	}
	return 0
}

// newFleet connects over the network, or to the admin that a test has put in.
func (ex *Executor) newFleet(p *process) fleet {
	if ex.admin != nil {
		return newInProcess(ex.admin, p)
	}
	if ex.tls == nil {
		p.warnPlain()
	}
	return session.NewFleet(session.Options{
		Addresses: p.config.Addresses, Token: string(p.config.Token), Executor: p.config.Name, Instance: p.instance,
		Boot: p.boot, Client: "carillon-go/" + Version, TLS: ex.tls, Logger: p.logger, Events: p, Dial: p.config.Dial, IdleAfter: p.config.IdleAfter, Refused: p.noteNo,
	})
}

// weight is how many slots a run of the handler takes.
func (p *process) weight(name string) int {
	if h := p.handlers[name]; h != nil {
		return h.weight
	}
	return 1
}

// stuck is what the handler says of its runs that ignore their cancel.
func (p *process) stuck(name string) runner.Stuck {
	h := p.handlers[name]
	if h == nil {
		return runner.Stuck{}
	}
	return runner.Stuck{Grace: h.killGrace, Exit: h.stuck == RestartProcess}
}

// killGrace is the longest that a cancelled handler may take.
func (p *process) killGrace() time.Duration {
	grace := p.config.KillGrace
	for _, h := range p.handlers {
		grace = max(grace, h.killGrace)
	}
	return grace
}

// diedWith says of an attempt that it was running when its process died.
func diedWith(entries []journal.Entry) func(execution, fence int64) bool {
	type attempt struct{ execution, fence int64 }
	died := map[attempt]bool{}
	for _, e := range entries {
		if e.Kind == journal.Granted {
			died[attempt{e.Execution, e.Fence}] = true
		}
	}
	return func(execution, fence int64) bool { return died[attempt{execution, fence}] }
}

func newBoot() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails, says its documentation
	return hex.EncodeToString(id[:])
}

// exitIgnored ends the process at once: its journal is as after a crash.
func (p *process) exitIgnored() {
	p.logger.Error("a handler ignores that its context was cancelled; the process ends (Config.ExitIfIgnored, Stuck)")
	if p.leave != nil {
		p.leave()
		return
	}
	os.Exit(ExitIgnored)
}

func (p *process) nameInstance(share int) {
	p.host, _ = os.Hostname()
	if p.instance = p.config.InstanceName; p.instance == "" {
		p.instance = instanceName(p.host, p.config.JournalDir, share)
	}
}

// instanceName is the default: HOST-FOLDER, where FOLDER stands for the path of
// the journal's folder, so that processes in different folders of a host have
// different names, and each has its own again when it is started anew; and -2, -3 …
// for the further processes that share the folder.
func instanceName(host, journal string, share int) string {
	if checkName(host) != nil {
		host = "instance"
	}
	path := journal
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	sum := sha256.Sum256([]byte(path))
	tail := "-" + hex.EncodeToString(sum[:3])
	if share > 1 {
		tail += "-" + strconv.Itoa(share)
	}
	return strings.ToValidUTF8(host[:min(len(host), proto.MaxName-len(tail))], "") + tail
}

func (p *process) tellFound(found journal.Found) {
	if found.TornBytes > 0 && found.Damaged == "" {
		p.logger.Warn("the journal's tail was torn, as after a crash", "bytes", found.TornBytes)
	}
	if found.Damaged != "" {
		p.logger.Error("the journal was damaged; what followed the damage is not used", "file", found.Damaged, "bytes", found.TornBytes)
	}
	if found.Doubted && found.Damaged == "" {
		p.logger.Warn("the end of the journal may be missing, as after the end of the machine; what had been accepted counts as granted")
	}
	if len(found.Entries) > 0 {
		p.logger.Info("an earlier process left results or unfinished runs; they are reported now", "attempts", len(found.Entries))
	}
}

// warnPlain tells once when the token crosses a network in the clear.
func (p *process) warnPlain() {
	todo := "set Config.TLS or " + envTLS + "=true"
	if p.config.Dial != nil { // then the variable does not count
		todo = "set Config.TLS, unless Dial encrypts"
	}
	for _, address := range p.config.Addresses {
		host, _, _ := net.SplitHostPort(address)
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			p.logger.Warn("connections to the admin are not encrypted", "address", address, "todo", todo)
			return
		}
	}
}

// Register implements session.Events.
func (p *process) Register() *proto.Register {
	p.mu.Lock()
	superseded := p.superseded
	p.mu.Unlock()
	_, draining := p.runner.Load()
	owed, complete := p.runner.Inherited()
	inventory, all := p.runner.Inventory()
	return &proto.Register{
		InstanceName: p.instance, Host: p.host, Pid: int32(os.Getpid()), AppVersion: p.config.Version, Generation: p.config.Generation, Strict: p.config.Strict,
		Labels: p.config.Labels, Slots: int32(p.config.Slots), StartedAtMs: p.startedAt.UnixMilli(),
		Handlers: p.catalogue, Inventory: inventory, InventoryComplete: all,
		SupersededBoots: superseded, Owed: owed, OwedComplete: complete, RefusesOld: true, Draining: draining,
	}
}

// Load implements session.Events.
func (p *process) Load() *proto.Heartbeat {
	used, draining := p.runner.Load()
	cpu, memory := p.meter.Read()
	cpuLimit, memoryLimit := load.Limits()
	return &proto.Heartbeat{
		Running: int32(used), Slots: int32(p.slotsAt(cpu, cpuLimit)),
		CpuMilli: cpu, MemoryBytes: memory, Draining: draining,
		CpuLimitMilli: cpuLimit, MemoryLimitBytes: memoryLimit, Refusing: p.refuses(),
	}
}

// journalTurned lets all nodes know at once whether runs are taken.
func (p *process) journalTurned() { p.fleet.Beat() }

// refuses reports whether the journal takes nothing, so that no offer can be
// taken, and says so in the log when that changes.
func (p *process) refuses() bool {
	err := p.journal.Err()
	p.mu.Lock()
	turned := p.failing != (err != nil)
	p.failing = err != nil
	p.mu.Unlock()
	switch {
	case turned && err != nil:
		p.logger.Error("the journal cannot be written: no runs are taken until it can; results are sent all the same", "dir", p.journalDir, "err", err)
	case turned:
		p.logger.Info("the journal can be written again: runs are taken", "dir", p.journalDir)
	}
	return err != nil
}

// Up implements session.Events.
func (p *process) Up(l *session.Link, sentAt time.Time, reply *proto.Registered) {
	p.up(l, sentAt, reply)
}

// link is a session as all rooms see it.
type link interface {
	runner.Link
	progress.Link
}

func (p *process) up(l link, sentAt time.Time, reply *proto.Registered) {
	p.runner.LinkUp(l, sentAt, reply)
	p.steps.Up(l)
	p.reporter.Up(l)
	p.mu.Lock()
	p.superseded = nil
	p.mu.Unlock()
	p.journal.ForgetBoots()
	p.logs.Kick()
	if p.noteNotices(reply.GetNotices()) {
		p.onReady()
	}
}

// The rest of session.Events goes to the runner.

// Down implements session.Events.
func (p *process) Down(l *session.Link) { p.down(l) }

func (p *process) down(l link) {
	p.runner.LinkDown(l)
	p.steps.Down(l)
	p.reporter.Down(l)
}

// Renewed implements session.Events.
func (p *process) Renewed(l *session.Link, sentAt time.Time, ok bool) {
	p.runner.Renewed(l, sentAt, ok)
}

// Verdicts implements session.Events.
func (p *process) Verdicts(l *session.Link, list []*proto.InventoryVerdict) {
	p.runner.Verdicts(l, list)
}

// Offers implements session.Events.
func (p *process) Offers(l *session.Link, list []*proto.Offer) { p.runner.Offers(l, list) }

// Grants implements session.Events.
func (p *process) Grants(l *session.Link, list []*proto.Grant) { p.runner.Grants(l, list) }

// Cancels implements session.Events.
func (p *process) Cancels(_ *session.Link, list []*proto.Cancel) { p.runner.Cancels(list) }

// Acks implements session.Events.
func (p *process) Acks(_ *session.Link, list []*proto.ResultAck) { p.runner.Acks(list) }

// StepAcks implements session.Events.
func (p *process) StepAcks(_ *session.Link, list []*proto.StepAck) { p.steps.Answered(list) }

// health says why the executor cannot take runs now, or which declarations
// were not taken, or nil.
func (p *process) health() error {
	if err := p.fleet.Health(); err != nil {
		if refused := p.refusal(); refused != nil && refused.Declarations[0].Job == "" && refused.Declarations[0].Handler == "" {
			return refused // the same, with its type
		}
		return err
	}
	if err := p.journal.Err(); err != nil {
		return err
	}
	if p.runner.LeaseLost() {
		return errors.New("no admin node renews the lease")
	}
	if refused := p.refusal(); refused != nil {
		return refused
	}
	return nil
}
