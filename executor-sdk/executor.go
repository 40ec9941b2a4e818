package executor

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"sync"
)

// Executor connects registered handlers to the admin nodes. Make it with New,
// register handlers with Handle, then call Run once.
type Executor struct {
	// Fixed after construction.
	config Config
	tls    *tls.Config

	mu       sync.Mutex          // guards what follows
	running  bool                // Run was called
	handlers map[string]*handler // fixed once running
	order    []*handler          // as registered; fixed once running
	jobNames map[string]string   // declared job → its handler
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
		config: config, tls: secure,
		handlers: map[string]*handler{}, jobNames: map[string]string{},
	}, nil
}
