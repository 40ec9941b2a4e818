package gateway

import (
	"context"
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

// Strangers decide how many refusals there are and what they are called, so
// everything about them is bounded (docs/adr/0034).
const (
	// MaxRefusals is how many are kept, of all nodes.
	MaxRefusals = 500
	// noteEvery and noteMax bound what a node writes of them: one transaction of
	// so many rows in that time, whoever knocks.
	noteEvery = 2 * time.Second
	noteMax   = 20
	// noteTimeout bounds one try; a node that stops waits for no longer.
	noteTimeout = time.Second
	// maxPending is how many wait to be written. Those beyond are counted by
	// their code alone.
	maxPending = 200
	// maxNames is how many executors and instances one address may name within
	// namesFor; those beyond are counted without their names. maxAddresses are
	// remembered.
	maxNames     = 20
	namesFor     = time.Hour
	maxAddresses = 256

	maxRefusalName = 128 // bytes
	maxRefusalText = 500 // bytes
)

// codeFlood is told to nobody on the wire: such a connection is cut.
const codeFlood = "flood"

// RefusalBook keeps what was refused, for all nodes.
type RefusalBook interface {
	NoteRefusals(ctx context.Context, list []domain.Refusal, keep int) error
}

// refusedError is a no to a hello.
type refusedError struct {
	error
	hello *proto.ClientHello
	code  string // as it was told
}

func (e *refusedError) Unwrap() error { return e.error }

// refusalKey is what is counted together. Whatever is not said of those that
// are too many, is empty.
type refusalKey struct {
	code, executor, instance string
	from                     netip.Addr
}

// named are the names that one address has used.
type named struct {
	since time.Time
	names map[[2]string]bool
}

// refusals counts who was turned away until it is written down.
type refusals struct {
	node string // fixed after construction

	mu      sync.Mutex
	pending map[refusalKey]*domain.Refusal // guarded by mu
	order   []refusalKey                   // guarded by mu: of pending, as they came
	names   *lru.Cache[netip.Addr, *named] // what is in it is guarded by mu
	unheard int64                          // guarded by mu: of the door's, those that were noted
}

func newRefusals(node string) *refusals {
	names, err := lru.New[netip.Addr, *named](maxAddresses)
	if err != nil {
		panic(err) // a size that is not positive
	}
	return &refusals{node: node, pending: map[refusalKey]*domain.Refusal{}, names: names}
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
	if !r.nameLocked(k, now) {
		k.executor, k.instance = "", ""
	}
	r.addLocked(k, domain.Refusal{Message: clipText(message, maxRefusalText), Times: 1, FirstAt: now, LastAt: now}, maxPending)
}

// closed notes how many connections were closed unheard since the start.
func (r *refusals) closed(all int64, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := all - r.unheard; n > 0 {
		r.unheard = all
		r.addLocked(refusalKey{code: domain.RefusalUnheard}, domain.Refusal{Times: int(n), FirstAt: now, LastAt: now}, maxPending)
	}
}

// nameLocked reports whether an address may use these names, too.
func (r *refusals) nameLocked(k refusalKey, now time.Time) bool {
	used, known := r.names.Get(k.from)
	if !known || now.Sub(used.since) >= namesFor {
		used = &named{since: now, names: map[[2]string]bool{}}
		r.names.Add(k.from, used)
	}
	name := [2]string{k.executor, k.instance}
	if !used.names[name] && len(used.names) >= maxNames {
		return false
	}
	used.names[name] = true
	return true
}

// addLocked counts one, by its code alone when most are pending. There are few
// codes, so what is counted by them needs no bound.
func (r *refusals) addLocked(k refusalKey, add domain.Refusal, most int) {
	one := r.pending[k]
	if one == nil && len(r.pending) >= most {
		k = refusalKey{code: k.code}
		one = r.pending[k]
	}
	if one == nil {
		one = &domain.Refusal{Code: k.code, Executor: k.executor, Instance: k.instance, Node: r.node, FirstAt: add.FirstAt}
		if k.from.IsValid() {
			one.Remote = k.from.String()
		}
		r.pending[k] = one
		r.order = append(r.order, k)
	}
	if add.FirstAt.Before(one.FirstAt) {
		one.FirstAt = add.FirstAt
	}
	if !add.LastAt.Before(one.LastAt) {
		one.LastAt, one.Message = add.LastAt, add.Message
	}
	one.Times += add.Times
}

// take hands over those that have waited longest.
func (r *refusals) take(most int) (keys []refusalKey, list []domain.Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(most, len(r.order))
	keys, r.order = slices.Clone(r.order[:n]), slices.Delete(r.order, 0, n)
	for _, k := range keys {
		list = append(list, *r.pending[k])
		delete(r.pending, k)
	}
	return keys, list
}

// again keeps what could not be written.
func (r *refusals) again(keys []refusalKey, list []domain.Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, k := range keys {
		r.addLocked(k, list[i], maxPending+2*noteMax) // they had a place
	}
}

// runRefusals writes down who was turned away until ctx ends, and then once more.
func (g *Gateway) runRefusals(ctx context.Context) {
	if g.opt.Refusals == nil {
		return
	}
	tick := time.NewTicker(noteEvery)
	defer tick.Stop()
	broken := false
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
		err := g.noteRefusals(context.WithoutCancel(ctx))
		if (err != nil) != broken {
			broken = err != nil
			if broken {
				g.log.Warn("who was turned away cannot be written down", "err", err)
			} else {
				g.log.Info("who was turned away is written down again")
			}
		}
	}
}

func (g *Gateway) noteRefusals(ctx context.Context) error {
	g.refusals.closed(g.TurnedAway(), time.Now())
	keys, list := g.refusals.take(noteMax)
	if len(list) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	err := g.opt.Refusals.NoteRefusals(ctx, list, MaxRefusals)
	if err != nil {
		g.refusals.again(keys, list)
	}
	return err
}

// flooded ends a session whose peer sends what no executor does.
func (g *Gateway) flooded(conn net.Conn, p *peer, s *Session, err error) {
	g.refusals.note(addressOf(conn.RemoteAddr()), codeFlood, err.Error(), p.name, p.hello.InstanceName, time.Now())
	s.dismiss(err)
}

// clipText keeps the first n bytes of a text, as valid UTF-8.
func clipText(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "")
}
