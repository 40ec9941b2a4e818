package gateway

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
)

// Strangers decide how many refusals there are and what they are called.
const (
	maxRefusals    = 200 // of which the oldest is forgotten
	maxRefusalName = 128 // bytes
	maxRefusalText = 500 // bytes
)

// codeFlood is told to nobody on the wire: such a connection is cut.
const codeFlood = "flood"

// refusedError is a no to a hello.
type refusedError struct {
	error
	hello *proto.ClientHello
	code  string // as it was told
}

func (e *refusedError) Unwrap() error { return e.error }

type refusalKey struct {
	code, executor, instance string
	from                     netip.Addr
}

// refusals remembers who was turned away, for the people who look for an
// executor that does not come. It is lost with the process.
type refusals struct {
	mu   sync.Mutex
	list *lru.Cache[refusalKey, *domain.Refusal] // the refusals are guarded by mu
}

func newRefusals() *refusals {
	list, err := lru.New[refusalKey, *domain.Refusal](maxRefusals)
	if err != nil {
		panic(err) // a size that is not positive
	}
	return &refusals{list: list}
}

// strayed notes a hello that was refused; other ends of a handshake tell
// nothing of anybody.
func (r *refusals) strayed(from netip.Addr, err error, now time.Time) {
	var refused *refusedError
	if errors.As(err, &refused) && domain.CodeOf(err) != domain.CodeInternal {
		r.note(from, refused.code, err.Error(), refused.hello.Executor, refused.hello.InstanceName, now)
	}
}

func (r *refusals) note(from netip.Addr, code, message, executor, instance string, now time.Time) {
	k := refusalKey{code: code, executor: clipText(executor, maxRefusalName), instance: clipText(instance, maxRefusalName), from: from}
	r.mu.Lock()
	defer r.mu.Unlock()
	one, known := r.list.Get(k)
	if !known {
		one = &domain.Refusal{Code: code, Remote: from.String(), Executor: k.executor, Instance: k.instance, FirstAt: now}
		r.list.Add(k, one)
	}
	one.Message, one.LastAt = clipText(message, maxRefusalText), now
	one.Times++
}

// newest returns them, the last one first.
func (r *refusals) newest() []domain.Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]domain.Refusal, 0, r.list.Len())
	for _, one := range r.list.Values() {
		out = append(out, *one)
	}
	slices.SortStableFunc(out, func(a, b domain.Refusal) int { return b.LastAt.Compare(a.LastAt) })
	return out
}

// flooded ends a session whose peer sends what no executor does.
func (g *Gateway) flooded(conn net.Conn, p *peer, s *Session, err error) {
	g.refusals.note(addressOf(conn.RemoteAddr()), codeFlood, err.Error(), p.name, p.hello.InstanceName, time.Now())
	s.close(err)
}

// clipText keeps the first n bytes of a text, as valid UTF-8.
func clipText(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "")
}

// Refusals returns whom this node has turned away since it started, the last
// one first; no more than maxRefusals. Unheard connections, of which nothing
// is known, count in TurnedAway.
func (g *Gateway) Refusals() []domain.Refusal { return g.refusals.newest() }
