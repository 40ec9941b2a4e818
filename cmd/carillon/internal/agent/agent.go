package agent

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/internal/httpcall"
)

// DefaultPath is where interpreters, and what scripts call, are looked for.
const DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// DefaultMaxOutput bounds what of a script's output is logged, in bytes.
const DefaultMaxOutput = 8 << 20

// MaxSlots bounds how many runs an agent takes at once: each of their offers
// may carry a whole script.
const MaxSlots = 64

// Options say what an agent may do. By default it may do nothing.
type Options struct {
	// Executor is whom the agent registers as.
	Executor executor.Config

	// Scripts are the languages whose scripts may run (Languages).
	Scripts []string
	// ScriptKeys, if there are any, must have signed what runs.
	ScriptKeys []ed25519.PublicKey
	// RunAs is the user that scripts run as; needs root. Empty: the agent's
	// own, which must not be root then.
	RunAs string
	// Path is PATH for scripts, and where interpreters are looked for; empty =
	// DefaultPath.
	Path string
	// Env names variables of the agent's environment that scripts get, and that
	// HTTP headers may name.
	Env []string
	// WorkDir is the parent of the runs' folders; empty = below the system's
	// folder for temporary files.
	WorkDir string
	// Limits of each run.
	Limits Limits
	// MaxOutput bounds what of one run's output is logged, in bytes; 0 =
	// DefaultMaxOutput.
	MaxOutput int64
	// KillGrace is between SIGTERM and SIGKILL; 0 = 5 s. The executor's is longer.
	KillGrace time.Duration

	// HTTPHosts may be called; see httpcall.ParseHost.
	HTTPHosts []string
	// HTTPNetworks may be reached though they are loopback, private or
	// otherwise special.
	HTTPNetworks []netip.Prefix
	// RootCAs judge the certificates of those who are called; nil = the system's.
	RootCAs *x509.CertPool
	Version string
	Logger  *slog.Logger // nil = slog.Default()
}

// Agent is an executor whose handlers run scripts and make HTTP calls.
type Agent struct {
	// fixed after construction
	opt      Options
	log      *slog.Logger
	executor *executor.Executor
	who      *user     // nil without scripts
	work     *workRoot // nil without scripts
}

// New finds the interpreters and registers what is allowed. It says what is
// missing, and refuses to do nothing at all. Close an agent that is not run.
func New(ctx context.Context, opt Options) (_ *Agent, err error) {
	if opt.Logger == nil {
		opt.Logger = slog.Default()
	}
	if opt.Path == "" {
		opt.Path = DefaultPath
	}
	if opt.MaxOutput == 0 {
		opt.MaxOutput = DefaultMaxOutput
	}
	if opt.KillGrace == 0 {
		opt.KillGrace = 5 * time.Second
	}
	opt.Executor.KillGrace = max(executor.DefaultKillGrace, opt.KillGrace+5*time.Second)
	if opt.Executor.Slots == 0 {
		opt.Executor.Slots = min(max(2*runtime.GOMAXPROCS(0), 4), MaxSlots)
	}
	if len(opt.Scripts) == 0 && len(opt.HTTPHosts) == 0 {
		return nil, errors.New("nothing is allowed here: switch on scripts (--allow-scripts=shell,python) or HTTP calls (--allow-http=api.example.com)")
	}
	if opt.Executor.Slots > MaxSlots {
		return nil, fmt.Errorf("slots must be from 1 to %d", MaxSlots)
	}
	a := &Agent{opt: opt, log: opt.Logger.With("component", "agent")}
	opt.Executor.Logger = opt.Logger
	if a.executor, err = executor.New(opt.Executor); err != nil {
		return nil, err
	}
	if err := a.registerHTTP(); err != nil {
		return nil, err
	}
	if err := a.registerScripts(ctx); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// Run works until ctx ends, and then lets what runs finish (executor.Run).
func (a *Agent) Run(ctx context.Context) error {
	return errors.Join(a.executor.Run(ctx), a.Close())
}

// Close removes the work folder.
func (a *Agent) Close() error {
	if a.work == nil {
		return nil
	}
	work := a.work
	a.work = nil
	return work.close()
}

func (a *Agent) registerHTTP() error {
	if len(a.opt.HTTPHosts) == 0 {
		a.log.Info("HTTP calls are off (--allow-http)")
		return nil
	}
	hosts, err := httpcall.ParseHosts(a.opt.HTTPHosts)
	if err != nil {
		return fmt.Errorf("allow-http: %w", err)
	}
	c := &httpcall.Caller{
		Client: httpcall.NewClient(httpcall.NewTransport(a.opt.HTTPNetworks, a.opt.RootCAs, a.log)), Hosts: hosts, Env: a.opt.Env, UserAgent: "carillon-agent/" + a.opt.Version,
		Who: "this agent", HostsBy: "--allow-http", NetworksBy: "--allow-http-net",
	}
	executor.Handle(a.executor, "http.request", func(ctx context.Context, in httpcall.Request) (httpcall.Response, error) {
		task := executor.TaskFrom(ctx)
		if s := task.Script; s != nil {
			return httpcall.Response{}, executor.Permanent(s.Verify("http")) // the admin refuses it
		}
		return c.Call(ctx, in, task, executor.Logger(ctx))
	}, executor.Description("Makes an HTTP call. Hosts: "+strings.Join(a.opt.HTTPHosts, ", ")))
	a.log.Info("HTTP calls are on", "hosts", a.opt.HTTPHosts)
	return nil
}

func (a *Agent) registerScripts(ctx context.Context) error {
	if len(a.opt.Scripts) == 0 {
		a.log.Info("scripts are off (--allow-scripts)")
		return nil
	}
	if runtime.GOOS != "linux" {
		return errors.New("scripts run on Linux only")
	}
	found, missing, err := findInterpreters(ctx, a.opt.Scripts, a.opt.Path)
	if err != nil {
		return fmt.Errorf("allow-scripts: %w", err)
	}
	for _, name := range missing {
		a.log.Warn("an allowed language has no interpreter here; it is not registered", "language", name, "path", a.opt.Path)
	}
	if len(found) == 0 && len(a.opt.HTTPHosts) == 0 {
		return fmt.Errorf("none of the allowed languages (%s) has an interpreter in %s", strings.Join(missing, ", "), a.opt.Path)
	}
	if a.who, err = findUser(a.opt.RunAs, os.Getuid()); err != nil {
		return err
	}
	if len(a.opt.ScriptKeys) == 0 {
		a.log.Warn("scripts run without a signature, as the admin's database has them; name the admin's key with --script-key")
	}
	if err := hideSelf(); err != nil {
		return fmt.Errorf("hide the agent's memory from scripts: %w", err)
	}
	if a.who.UID == 0 {
		a.log.Warn("scripts run as root: the limit of processes does not hold, and nothing keeps them from anything")
	}
	parent := a.opt.WorkDir
	if parent == "" {
		parent = filepath.Join(os.TempDir(), fmt.Sprintf("carillon-agent-%d", os.Getuid()))
	}
	if a.work, err = openWorkRoot(parent); err != nil {
		return err
	}
	for i := range found {
		a.registerScript(&found[i])
	}
	return nil
}

func (a *Agent) registerScript(with *interpreter) {
	about := with.path
	if with.version != "" {
		about = with.version + ", " + with.path
	}
	executor.Handle(a.executor, "script."+with.name, func(ctx context.Context, input json.RawMessage) (ScriptResult, error) {
		return a.runScript(ctx, with, job{task: executor.TaskFrom(ctx), input: input, log: executor.Logger(ctx)})
	}, executor.Description("Runs "+with.name+" scripts that the admin keeps; the input comes on standard input ("+about+")"))
	a.log.Info("scripts are on", "language", with.name, "interpreter", with.path, "version", with.version, "user", a.who.Name)
}

// inputOf is what a script reads: the run's input as JSON.
func inputOf(input json.RawMessage) io.Reader {
	if input = bytes.TrimSpace(input); len(input) == 0 {
		input = json.RawMessage("null")
	}
	return bytes.NewReader(input)
}
