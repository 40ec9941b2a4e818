package gateway

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
)

// An instance that comes and goes all the time costs database writes each time.
// Beyond flapStrikes short lives within flapWindow, further processes of its
// name are told to wait, before the database is asked anything.
const (
	flapLife    = 10 * time.Second // a process whose first session is shorter has a short life
	flapStrikes = 20
	flapWindow  = time.Minute
	// flapSilence is how long a name that was told of is not told of again.
	flapSilence = time.Hour
	// flapNames and flapBoots bound what is remembered.
	flapNames = 10_000
	flapBoots = 50_000
)

// codeFlapping exists only on the wire.
const codeFlapping domain.Code = "flapping"

// Flapping is an instance name whose processes come and go.
type Flapping struct {
	Tenant   domain.TenantID
	Executor domain.ExecutorID
	Name     string // of the executor
	Instance string
	Strikes  int           // so many short lives
	Within   time.Duration // in so much time
}

// flapKey names an instance before it is known who asks. The token is part of
// it, so that only those who were let in before can have it held.
type flapKey [sha256.Size]byte

func flapKeyOf(hello *proto.ClientHello, instance string) flapKey {
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %q", hello.JoinToken, hello.Executor, instance))
}

// flaps remembers short lives by instance name.
type flaps struct {
	mu    sync.Mutex
	names *lru.Cache[flapKey, *flapping]
	boots *lru.Cache[string, struct{}] // those that have been in before
}

// flapping is guarded by flaps.mu.
type flapping struct {
	lives []time.Time // the ends of the last short lives, at most flapStrikes
	told  time.Time
}

func newFlaps() *flaps {
	names, err := lru.New[flapKey, *flapping](flapNames)
	if err != nil {
		panic(err) // a size that is not positive
	}
	boots, err := lru.New[string, struct{}](flapBoots)
	if err != nil {
		panic(err)
	}
	return &flaps{names: names, boots: boots}
}

// hold returns how long a process has to wait; 0 = it may come in. A process
// that has been in is never held: it only connects anew, and its lease depends
// on it.
func (f *flaps) hold(k flapKey, boot string, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, known := f.names.Get(k)
	if !known || f.boots.Contains(boot) {
		return 0
	}
	return n.hold(now)
}

func (n *flapping) hold(now time.Time) time.Duration {
	if len(n.lives) < flapStrikes {
		return 0
	}
	return max(0, n.lives[0].Add(flapWindow).Sub(now))
}

// ended notes the end of a session; tell is true when that makes the name one
// to be told of.
func (f *flaps) ended(k flapKey, boot string, life time.Duration, now time.Time) (tell bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen, _ := f.boots.ContainsOrAdd(boot, struct{}{})
	if seen || life >= flapLife {
		return false // each process counts once, so that a bad network is no flapping
	}
	n, known := f.names.Get(k)
	if !known {
		n = &flapping{}
		f.names.Add(k, n)
	}
	if n.lives = append(n.lives, now); len(n.lives) > flapStrikes {
		n.lives = n.lives[1:]
	}
	if n.hold(now) <= 0 || !n.told.IsZero() && now.Sub(n.told) < flapSilence {
		return false
	}
	n.told = now
	return true
}

// refuseFlapping answers a hello of a name that is held.
func (g *Gateway) refuseFlapping(hello *proto.ClientHello, instance string) error {
	if hello.Purpose == proto.Purpose_PURPOSE_LOGS || instance == "" {
		return nil
	}
	wait := g.flaps.hold(flapKeyOf(hello, instance), hello.BootId, time.Now())
	if wait <= 0 {
		return nil
	}
	return &holdError{wait, domain.Errorf(codeFlapping,
		"processes named %q have come and gone %d times within %s; the next one may come in %s", instance, flapStrikes, flapWindow, wait.Round(time.Second))}
}

// holdError is a no for a while.
type holdError struct {
	wait time.Duration
	error
}

func (e *holdError) Unwrap() error { return e.error }

// lived notes how long a session has lasted, registered or not: the database
// was asked about it either way.
func (g *Gateway) lived(s *Session, p *peer, since time.Time) {
	now := time.Now()
	if s.Name == "" {
		return
	}
	if !g.flaps.ended(flapKeyOf(p.hello, s.Name), s.BootID, now.Sub(since), now) {
		return
	}
	g.log.Warn("executor comes and goes; it is let in less often", "executor_id", s.Executor, "executor", p.name, "instance", s.Name,
		"short_lives", flapStrikes, "within", flapWindow)
	if g.opt.Flapping != nil {
		g.opt.Flapping(Flapping{
			Tenant: s.Tenant, Executor: s.Executor, Name: p.name, Instance: s.Name, Strikes: flapStrikes, Within: flapWindow,
		})
	}
}
