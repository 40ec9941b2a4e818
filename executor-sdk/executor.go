package executor

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/carillon-sched/carillon/executor-sdk/internal/bridge"
)

// Executor connects registered handlers to the admin nodes. Make it with New,
// register handlers with Handle, then call Run once.
type Executor struct {
	// Fixed after construction.
	config    Config
	tls       *tls.Config
	ready     chan struct{} // closed at the first registration
	readyOnce sync.Once

	mu       sync.Mutex          // guards what follows
	process  *process            // of Run; nil before
	handlers map[string]*handler // fixed once Run was called
	order    []*handler          // as registered; fixed once Run was called
	jobNames map[string]string   // declared job → its handler

	interceptors []Interceptor // outermost first; fixed once Run was called
	admin        bridge.Admin  // in place of the network, in tests; nil otherwise
}

// New checks config, completed from the environment, and returns an executor
// that does nothing yet. The error names everything that is missing.
func New(config Config) (*Executor, error) {
	config, err := config.withDefaults(os.Getenv)
	secure, tlsErr := config.TLS.config()
	if err := errors.Join(err, tlsErr); err != nil {
		return nil, fmt.Errorf("executor config: %w", err)
	}
	return &Executor{
		config: config, tls: secure, ready: make(chan struct{}),
		handlers: map[string]*handler{}, jobNames: map[string]string{},
	}, nil
}

// Ready returns a channel that is closed once an admin node has registered
// the executor for the first time; with Config.Strict, not when it refuses
// declarations. It stays closed when the node is lost later; ask Health for that.
func (ex *Executor) Ready() <-chan struct{} { return ex.ready }

func (ex *Executor) markReady() { ex.readyOnce.Do(func() { close(ex.ready) }) }

// Health says why the executor cannot take runs at the moment. If it can, but the
// admin has not taken all that the code declares, Health returns a *RefusedError
// with the jobs and the reasons, as of the last registration. Otherwise it
// returns nil. It is cheap, and made for readiness probes: one that shall not mind
// refused declarations looks for them with errors.As.
func (ex *Executor) Health() error {
	ex.mu.Lock()
	p := ex.process
	ex.mu.Unlock()
	if p == nil {
		return errors.New("executor: not running")
	}
	return p.health()
}
