package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/carillon-sched/carillon/executor-sdk/internal/runner"
	"github.com/carillon-sched/carillon/proto"
)

// Config says who the executor is and where its admin nodes are. A field left
// zero is taken from the environment variable named beside it, and then from
// its default; New tells about everything that is still missing or wrong at once.
type Config struct {
	// Name of the executor: the group of interchangeable processes that jobs
	// are assigned to, for example "shop". Required. CARILLON_EXECUTOR_NAME
	Name string

	// Addresses of admin nodes as host:port. One that answers is enough; it
	// tells the others. Required. CARILLON_EXECUTOR_ADDRESSES, comma-separated
	Addresses []string

	// Token is the join token ("cjt_…") that an administrator made for this
	// executor. Required. CARILLON_EXECUTOR_TOKEN, or a file named by
	// CARILLON_EXECUTOR_TOKEN_FILE
	Token Secret

	// TLS protects the connections. Nil means plain TCP, unless one of the
	// CARILLON_EXECUTOR_TLS… variables is set; see [TLS].
	TLS *TLS

	// Dial opens the connections to admin nodes, for example through a proxy; TLS, if
	// it is set, is spoken over what it returns, and the variables for TLS do not
	// count. It has to return when ctx ends. Default nil: TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)

	// InstanceName tells this process from the others of the executor, and should
	// be the same when it is started anew. Default: the host's name and six digits
	// that stand for the path of JournalDir, as in "web1-3fa9c2", with "-2", "-3" … when more
	// than one process uses the same JournalDir. CARILLON_EXECUTOR_INSTANCE
	InstanceName string

	// Version of the application, shown beside the instance.
	// CARILLON_EXECUTOR_VERSION
	Version string

	// Generation orders the versions of the application, for example the number
	// of the build: while two versions run at once, as in a rolling deploy, the
	// handlers and jobs of the one with the higher generation count. Default 0:
	// semantic versions are compared, and other ones by when the admin first
	// saw them. CARILLON_EXECUTOR_GENERATION
	Generation int64

	// Labels of the instance, for routing and for people.
	// CARILLON_EXECUTOR_LABELS, as "zone=a,disk=ssd"
	Labels map[string]string

	// Slots is how many handlers may run at once; what is offered beyond is
	// refused and goes elsewhere. At most 4096. Default 0: 32 × GOMAXPROCS, at
	// least 512, which serves handlers that mostly wait (for a database, the
	// network); and while the process uses nine tenths of the CPU that it may use
	// or more, 4 × GOMAXPROCS, at least 32. CARILLON_EXECUTOR_SLOTS
	Slots int

	// JournalDir is the folder of the journal, which keeps results until an
	// admin node has stored them, through crashes and restarts; of what happened in
	// the last tenth of a second before a power cut, less may be known then. It must
	// be writable and should outlive the process. Processes on one host may share
	// it: each takes the first free numbered folder inside.
	// Default ./carillon-journal/NAME. CARILLON_EXECUTOR_JOURNAL
	JournalDir string

	// DrainTimeout is how long Run lets running handlers finish after its
	// context ended, before it cancels them with ErrStopping. Negative = cancel
	// at once. Default 15 s. Stopping takes at most DrainTimeout + KillGrace + 5 s.
	DrainTimeout time.Duration

	// KillGrace is how long a handler may go on after its context was
	// cancelled, before the run is reported as ended all the same, or before a
	// process that stops waits for it no longer. Its slot
	// stays taken until it returns. The options KillGrace and Stuck say otherwise
	// for a handler. Default 10 s.
	KillGrace time.Duration

	// IdleAfter is for clusters of many executors: with nothing to do for so
	// long, the executor keeps its session to one admin node and closes the
	// others. When another node has a run for it they come back within about four
	// seconds, by which the first run after a pause may be later. At least 10 s:
	// New refuses less. Default 0 = all sessions stay. CARILLON_EXECUTOR_IDLE_AFTER
	IdleAfter time.Duration

	// ExitIfIgnored ends the process, with the code ExitIgnored, when a handler
	// still runs this long after its context was cancelled because the lease
	// was lost: from then on another process may run the same, and nothing
	// else stops a handler that does not listen. Default 0 = never.
	ExitIfIgnored time.Duration

	// Strict ends Run with a *RefusedError when the admin does not take all that
	// the code declares at the first registration that it can decide about, so
	// that a deploy fails and not the job: no job is made, changed or removed then,
	// unless only the writing shows what is wrong, for example a quota that is
	// reached, or the same build is in force already. What is refused later, because
	// somebody changed something in the console, is told by Health and in the log
	// alone. Default false: it is always told there alone. CARILLON_EXECUTOR_STRICT
	Strict bool

	// Logger gets the SDK's own messages. Default slog.Default().
	Logger *slog.Logger

	// LogLevel is the lowest level that is captured into the logs of runs; the
	// option LogLevel sets another one for a handler. Default slog.LevelInfo.
	LogLevel slog.Leveler

	// TraceID returns the trace id of the span in a context, 32 hexadecimal
	// digits, or "" when there is none; it stands beside captured log lines.
	// Default: the trace id of the run's trigger (Task.Traceparent).
	TraceID func(ctx context.Context) string

	// LogBuffer bounds the memory, in bytes, of log lines that no admin node
	// has stored yet: text and attributes, and 200 bytes for each line. One run
	// may take eight times what is left free: 8/9 of it when it is alone (of the
	// default some 55,000 lines of 70 bytes in one go), less while others wait as
	// well. A line that does not fit waits up to 20 ms for room; then lines are
	// dropped and counted until the run's are down to half of the buffer, and all
	// runs' to three quarters. The same lines stand in JournalDir, in files of at most four
	// times that, so that they survive the process. Default 16 MiB.
	LogBuffer int

	// busySlots is how many slots count while the CPU is used up; 0 = Slots.
	busySlots int
}

// Defaults of Config.
const (
	DefaultDrainTimeout = 15 * time.Second
	DefaultKillGrace    = 10 * time.Second
	DefaultLogBuffer    = 16 << 20
)

// ExitIgnored is the code with which Config.ExitIfIgnored ends the process.
const ExitIgnored = 70

// withDefaults returns c completed from the environment (getenv) and the defaults.
func (c Config) withDefaults(getenv func(string) string) (Config, error) {
	err := c.fromEnv(getenv)
	if c.Slots == 0 {
		c.Slots, c.busySlots = defaultSlots(runtime.GOMAXPROCS(0))
	}
	if c.JournalDir == "" {
		c.JournalDir = "carillon-journal/" + c.Name
	}
	if c.DrainTimeout == 0 {
		c.DrainTimeout = DefaultDrainTimeout
	}
	if c.KillGrace == 0 {
		c.KillGrace = DefaultKillGrace
	}
	if c.LogBuffer == 0 {
		c.LogBuffer = DefaultLogBuffer
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.LogLevel == nil {
		c.LogLevel = slog.LevelInfo
	}
	return c, errors.Join(err, c.validate())
}

func (c *Config) validate() error {
	var all []error
	wrong := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	if c.Name == "" {
		wrong("no name: set Config.Name or %s", envName)
	} else if err := checkName(c.Name); err != nil {
		wrong("Config.Name %q: %w", c.Name, err)
	} else if strings.ContainsAny(c.Name, `/\`) {
		wrong("Config.Name %q: must not contain a slash", c.Name)
	}
	if len(c.Addresses) == 0 {
		wrong("no admin address: set Config.Addresses or %s, for example 127.0.0.1:7070", envAddresses)
	}
	for _, address := range c.Addresses {
		if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
			wrong("Config.Addresses: %q is not host:port", address)
		}
	}
	if c.Token == "" {
		wrong("no join token: set Config.Token, %s or %s", envToken, envTokenFile)
	}
	if c.InstanceName != "" {
		if err := checkName(c.InstanceName); err != nil {
			wrong("Config.InstanceName %q: %w", c.InstanceName, err)
		}
	}
	for key, value := range c.Labels {
		if err := checkName(key); err != nil {
			wrong("Config.Labels %q: %w", key, err)
		}
		if len(value) > proto.MaxName || !utf8.ValidString(value) {
			wrong("Config.Labels %q: the value must be UTF-8 of at most %d bytes", key, proto.MaxName)
		}
	}
	if c.Slots < 0 || c.Slots > runner.MaxSlots {
		wrong("Config.Slots must be from 1 to %d", runner.MaxSlots)
	}
	if c.KillGrace < 0 || c.LogBuffer < 0 || c.ExitIfIgnored < 0 {
		wrong("Config.KillGrace, Config.LogBuffer and Config.ExitIfIgnored must not be negative")
	}
	if c.IdleAfter != 0 && c.IdleAfter < minIdleAfter {
		wrong("Config.IdleAfter (%s) must be 0 or at least %s, not %s", envIdle, minIdleAfter, c.IdleAfter)
	}
	return errors.Join(all...)
}

// minIdleAfter keeps sessions from coming and going with every run.
const minIdleAfter = 10 * time.Second

// checkName holds for names of executors, instances, handlers, jobs and labels.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("must not be empty")
	case len(name) > proto.MaxName:
		return fmt.Errorf("must have at most %d bytes", proto.MaxName)
	case !utf8.ValidString(name):
		return errors.New("must be UTF-8")
	}
	for _, r := range name {
		if r <= ' ' || r == 0x7f {
			return errors.New("must not contain spaces or control characters")
		}
	}
	return nil
}
