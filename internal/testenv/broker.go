package testenv

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// EnvBrokersHome names the environment variable with a folder that holds Redis
// and RabbitMQ as build/need.sh unpacks them. Unset or empty: .cache/brokers of
// the repository.
const EnvBrokersHome = "CARILLON_TEST_BROKERS_HOME"

// Broker is a private message broker with its data in memory or in a temporary
// directory. Its methods are safe for use by several goroutines.
type Broker struct {
	// Fixed after construction.
	Addr     string // host:port
	User     string // Redis: the default one, empty
	Password string

	kind  brokerKind
	ports [3]int
	home  string
	guard *guard

	mu  sync.Mutex
	cmd *exec.Cmd // guarded by mu; nil: it was killed
}

// brokerKind is how a broker is run.
type brokerKind struct {
	name string
	user string
	dir  string   // for its home; empty = DefaultDir
	args []string // further ones of the command line
	// command prepares home and returns what to run, with the ports it may use.
	command func(home, password string, ports [3]int) (*exec.Cmd, error)
	// answers tells whether it takes clients.
	answers func(conn net.Conn, password string) error
}

var (
	redisKind  = brokerKind{name: "redis", command: redisCommand, answers: redisAnswers}
	rabbitKind = brokerKind{name: "rabbitmq", user: testUser, command: rabbitCommand, answers: rabbitAnswers}

	sharedRedis  = sync.OnceValues(redisKind.start)
	sharedRabbit = sync.OnceValues(rabbitKind.start)
)

// Redis returns the server of this process, which is started at the first call;
// tests share it and use keys of their own.
func Redis(tb testing.TB) *Broker { return given(tb)(sharedRedis()) }

// StartRedis starts a server that is the caller's alone, and to be closed by it.
// Arguments come after those that make it forgetful.
func StartRedis(args ...string) (*Broker, error) {
	kind := redisKind
	kind.args = args
	return kind.start()
}

// StartRabbitMQ starts a server that is the caller's alone, and to be closed by it,
// with its data below dir; "" is where those of tests are.
func StartRabbitMQ(dir string) (*Broker, error) {
	kind := rabbitKind
	kind.dir = dir
	return kind.start()
}

// RabbitMQ is as Redis. It takes 7 s to start.
func RabbitMQ(tb testing.TB) *Broker { return given(tb)(sharedRabbit()) }

func given(tb testing.TB) func(*Broker, error) *Broker {
	tb.Helper()
	return func(b *Broker, err error) *Broker {
		if err != nil {
			tb.Fatalf("broker for tests: %v", err)
		}
		return b
	}
}

func (k brokerKind) start() (*Broker, error) {
	const tries = 5
	for try := 1; ; try++ {
		b, err := k.tryStart()
		if err == nil || try == tries || !errors.Is(err, errPortTaken) {
			return b, err
		}
	}
}

func (k brokerKind) tryStart() (b *Broker, err error) {
	dir := cmp.Or(k.dir, DefaultDir())
	sweep(dir, time.Minute)
	home, err := os.MkdirTemp(dir, homePrefix)
	if err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	g, err := startGuard(home)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(home))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.release())
		}
	}()
	b = &Broker{User: k.user, Password: newSecret(), kind: k, home: home, guard: g}
	for i := range b.ports {
		if b.ports[i], err = freePort(); err != nil {
			return nil, err
		}
	}
	b.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(b.ports[0]))
	return b, b.Start()
}

// Start starts the broker again after Kill, at the same address.
func (b *Broker) Start() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	cmd, err := b.kind.command(b.home, b.Password, b.ports)
	if err != nil {
		return err
	}
	log, err := os.Create(b.logPath())
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Args = append(cmd.Args, b.kind.args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is for the tests
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", b.kind.name, err)
	}
	b.cmd = cmd
	if err := b.waitReadyLocked(); err != nil {
		return errors.Join(err, b.killLocked())
	}
	return nil
}

// PID is that of the server itself, not of what started it; 0 when it cannot be told.
func (b *Broker) PID() int {
	if raw, err := os.ReadFile(filepath.Join(b.home, "rabbitmq.pid")); err == nil {
		pid, _ := strconv.Atoi(strings.TrimSpace(string(raw))) // 0 when it is being written
		return pid
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cmd == nil {
		return 0
	}
	return b.cmd.Process.Pid
}

// Kill ends the broker with SIGKILL.
func (b *Broker) Kill() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.killLocked()
}

func (b *Broker) killLocked() error {
	if b.cmd == nil {
		return nil
	}
	err := syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL)
	_ = b.cmd.Wait() // says that it was killed
	b.cmd = nil
	return err
}

// Close ends a broker that StartRedis has started, and removes its directory.
func (b *Broker) Close() error { return errors.Join(b.Kill(), b.guard.release()) }

func (b *Broker) logPath() string { return filepath.Join(b.home, "server.log") }

// waitReadyLocked asks until the broker answers, as Server.waitReadyLocked does.
func (b *Broker) waitReadyLocked() error {
	deadline := time.Now().Add(startLimit)
	tick := time.NewTicker(pingInterval)
	defer tick.Stop()
	for {
		err := b.ping()
		if err == nil {
			return nil
		}
		tail := logTail(b.logPath())
		if hasExited(b.cmd.Process.Pid) {
			if bytes.Contains(tail, []byte("Address already in use")) || bytes.Contains(tail, []byte("eaddrinuse")) {
				return errPortTaken
			}
			return fmt.Errorf("%s gave up; its log ends with:\n%s", b.kind.name, tail)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s did not answer within %v (%w); its log ends with:\n%s", b.kind.name, startLimit, err, tail)
		}
		<-tick.C
	}
}

func (b *Broker) ping() error {
	conn, err := net.DialTimeout("tcp", b.Addr, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	return b.kind.answers(conn, b.Password)
}

// brokersHome is where build/need.sh has unpacked brokers; empty: nowhere.
func brokersHome() string {
	if home := os.Getenv(EnvBrokersHome); home != "" {
		return home
	}
	return inRepository(filepath.Join(".cache", "brokers"))
}

// brokerEnv lets programs find libraries that were unpacked with them.
func brokerEnv(home string) []string {
	libraries, _ := filepath.Glob(filepath.Join(home, "usr/lib/*-linux-gnu"))
	if home == "" || len(libraries) == 0 {
		return os.Environ()
	}
	return append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join(libraries, ":"))
}

// redisCommand runs Redis in memory; launchScript leaves its pid for the guard.
func redisCommand(home, password string, ports [3]int) (*exec.Cmd, error) {
	unpacked := brokersHome()
	path := filepath.Join(unpacked, "usr/bin/redis-server")
	if unpacked == "" || !exists(path) {
		var err error
		if path, err = findProgram("redis-server"); err != nil {
			return nil, fmt.Errorf("Redis is not here: run `build/need.sh redis` (%w)", err)
		}
	}
	cmd := exec.Command("/bin/sh", "-c", launchScript, home, path,
		"--bind", "127.0.0.1", "--port", strconv.Itoa(ports[0]), "--requirepass", password,
		"--dir", home+"/", "--save", "", "--appendonly", "no", "--set-proc-title", "no")
	cmd.Env = brokerEnv(unpacked)
	return cmd, nil
}

func redisAnswers(conn net.Conn, password string) error {
	if _, err := fmt.Fprintf(conn, "AUTH %s\r\n", password); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && line != "+OK\r\n" {
		err = fmt.Errorf("%w: it says %q", errPortTaken, line)
	}
	return err
}

// rabbitScript stays as the parent of Erlang and of its port mapper, which would
// otherwise be the machine's: $0 is the home, for the guard.
const rabbitScript = `echo $$ >"$0/pid"
epmd -address 127.0.0.1 -port "$ERL_EPMD_PORT" &
"$1"
exit 1
`

// erlScript is the program erl for an Erlang that was unpacked elsewhere than
// its own one expects.
const erlScript = `#!/bin/sh
ROOTDIR='%s' BINDIR='%s' EMU=beam PROGNAME=erl
export ROOTDIR BINDIR EMU PROGNAME
exec "$BINDIR/erlexec" "$@"
`

const rabbitConfig = `default_user = %s
default_pass = %s
loopback_users = none
vm_memory_high_watermark.absolute = 1GB
disk_free_limit.absolute = 1MB
`

func rabbitCommand(home, password string, ports [3]int) (*exec.Cmd, error) {
	path := os.Getenv("PATH")
	unpacked := brokersHome()
	servers, _ := filepath.Glob(filepath.Join(unpacked, "usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server"))
	if unpacked == "" || len(servers) == 0 {
		// Not the program on the PATH: Debian's becomes another user first.
		servers, _ = filepath.Glob("/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server")
	}
	if len(servers) == 0 {
		return nil, errors.New("RabbitMQ is not here: run `build/need.sh rabbitmq`")
	}
	erts, _ := filepath.Glob(filepath.Join(unpacked, "usr/lib/erlang/erts-*/bin"))
	if unpacked != "" && len(erts) > 0 {
		erl := fmt.Sprintf(erlScript, filepath.Join(unpacked, "usr/lib/erlang"), erts[0])
		if err := os.WriteFile(filepath.Join(home, "erl"), []byte(erl), 0o700); err != nil {
			return nil, err
		}
		path = home + ":" + filepath.Join(unpacked, "usr/bin") + ":" + path
	}
	config := fmt.Sprintf(rabbitConfig, testUser, password)
	if err := errors.Join(
		os.WriteFile(filepath.Join(home, "rabbitmq.conf"), []byte(config), 0o600),
		os.WriteFile(filepath.Join(home, "plugins"), []byte("[].\n"), 0o600),
	); err != nil {
		return nil, err
	}
	cmd := exec.Command("/bin/sh", "-c", rabbitScript, home, servers[0])
	cmd.Env = append(brokerEnv(unpacked),
		"PATH="+path, "HOME="+home, "ERL_EPMD_ADDRESS=127.0.0.1", "ERL_EPMD_PORT="+strconv.Itoa(ports[1]), "ERL_CRASH_DUMP_SECONDS=0",
		"RABBITMQ_NODENAME=carillon@localhost", "RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
		"RABBITMQ_NODE_PORT="+strconv.Itoa(ports[0]), "RABBITMQ_DIST_PORT="+strconv.Itoa(ports[2]),
		"RABBITMQ_MNESIA_BASE="+filepath.Join(home, "mnesia"), "RABBITMQ_LOG_BASE="+filepath.Join(home, "log"), "RABBITMQ_LOGS=-",
		"RABBITMQ_PID_FILE="+filepath.Join(home, "rabbitmq.pid"), "RABBITMQ_ENABLED_PLUGINS_FILE="+filepath.Join(home, "plugins"),
		"RABBITMQ_CONFIG_FILE="+filepath.Join(home, "rabbitmq"), "RABBITMQ_CONF_ENV_FILE="+filepath.Join(home, "none"),
		// Idle schedulers of Erlang spin, unless told not to.
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+sbwt none +sbwtdcpu none +sbwtdio none")
	return cmd, nil
}

// rabbitAnswers: the server greets who names the protocol, once it takes clients.
func rabbitAnswers(conn net.Conn, _ string) error {
	if _, err := conn.Write([]byte("AMQP\x00\x00\x09\x01")); err != nil {
		return err
	}
	var kind [1]byte
	if _, err := io.ReadFull(conn, kind[:]); err != nil {
		return err
	}
	if kind[0] != 1 { // a frame of a method, connection.start
		return fmt.Errorf("%w: it does not speak AMQP", errPortTaken)
	}
	return nil
}
