package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
)

// Those that connect decide how many refusals there are and what they are called, so
// everything about them is bounded (docs/adr/0034).
const (
	// MaxRefusals is how many are kept, of all nodes.
	MaxRefusals = 500
	// noteEvery and noteMax bound what a node writes of them: one transaction of
	// so many rows in that time, whoever connects.
	noteEvery = 2 * time.Second
	noteMax   = 20
	// noteTimeout bounds one try; a node that stops waits for no longer.
	noteTimeout = time.Second
	// maxPending is how many wait to be written. Those beyond are counted by
	// their code alone.
	maxPending = 200

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

// refusals counts what was refused until it is written down. It is guarded by
// admission.mu.
type refusals struct {
	node    string // fixed
	pending map[refusalKey]*domain.Refusal
	order   []refusalKey // of pending, as they came
}

// add counts one, by its code alone when most are pending. There are few codes, so
// what is counted by them needs no bound.
func (r *refusals) add(k refusalKey, add domain.Refusal, most int) {
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

// closeUnheardLocked counts a connection that is closed before its hello.
func (a *admission) closeUnheardLocked() {
	a.unheard++
	now := time.Now()
	a.refusals.add(refusalKey{code: domain.RefusalUnheard}, domain.Refusal{Times: 1, FirstAt: now, LastAt: now}, maxPending)
}

// noteRefusal counts a refusal that says which executor it was.
func (a *admission) noteRefusal(from netip.Addr, code, message, executor, instance string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k := refusalKey{code: code, executor: clipText(executor, maxRefusalName), instance: clipText(instance, maxRefusalName), from: from}
	if !a.history.mayName(from, k.executor, k.instance, now) {
		k.executor, k.instance = "", ""
	}
	a.refusals.add(k, domain.Refusal{Message: clipText(message, maxRefusalText), Times: 1, FirstAt: now, LastAt: now}, maxPending)
}

// takeRefusals hands over those that have waited longest.
func (a *admission) takeRefusals(most int) (keys []refusalKey, list []domain.Refusal) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := &a.refusals
	n := min(most, len(r.order))
	keys, r.order = slices.Clone(r.order[:n]), slices.Delete(r.order, 0, n)
	for _, k := range keys {
		list = append(list, *r.pending[k])
		delete(r.pending, k)
	}
	return keys, list
}

// restoreRefusals keeps what could not be written.
func (a *admission) restoreRefusals(keys []refusalKey, list []domain.Refusal) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, k := range keys {
		a.refusals.add(k, list[i], maxPending+2*noteMax) // they had a place
	}
}

// refusalsTold bounds the log lines about refused connections, in a second: those
// that connect decide how many there are.
const refusalsTold = 5

// refuser counts connections that passed no handshake, tells of them, and writes them down.
type refuser struct {
	// fixed after construction
	book      RefusalBook // nil: nobody wants to know
	admission *admission
	tasks     *tasks
	log       *slog.Logger
}

// refused counts a connection that passed no handshake, and tells of it. Only a
// hello that was refused says anything of anybody.
func (rf *refuser) refused(from netip.Addr, err error) {
	now := time.Now()
	code := domain.CodeOf(err)
	a := rf.admission
	a.mu.Lock()
	if code == domain.CodeInternal {
		a.dropped++
	} else {
		a.refused++
	}
	untold := a.untold
	tell := a.lines.take(refusalsTold, now)
	if a.untold++; tell {
		a.untold = 0
	}
	a.mu.Unlock()
	var no *refusedError
	if code != domain.CodeInternal && errors.As(err, &no) {
		a.noteRefusal(from, no.code, err.Error(), no.hello.Executor, no.hello.InstanceName, now)
	}
	// Port scans are nothing new, a refused token is news for the operator.
	switch {
	case !tell:
	case code != domain.CodeInternal:
		rf.log.Warn("executor refused", "remote", from, "code", code, "err", err, "not_told", untold)
	default:
		rf.log.Debug("connection dropped in the handshake", "remote", from, "err", err, "not_told", untold)
	}
}

// run writes down what was refused until ctx ends, and then once more.
func (rf *refuser) run(ctx context.Context) {
	if rf.book == nil {
		return
	}
	write := func() error { return rf.writeRefusals(context.WithoutCancel(ctx)) }
	rf.tasks.every(ctx, noteEvery, nil, "write down refused connections", write)
	if err := write(); err != nil {
		rf.log.Warn("refused connections are lost", "err", err)
	}
}

func (rf *refuser) writeRefusals(ctx context.Context) error {
	keys, list := rf.admission.takeRefusals(noteMax)
	if len(list) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	err := rf.book.NoteRefusals(ctx, list, MaxRefusals)
	if err != nil {
		rf.admission.restoreRefusals(keys, list)
	}
	return err
}

// flooded ends a session whose peer sends what no executor does.
func (rf *refuser) flooded(conn net.Conn, p *peer, s *Session, err error) {
	rf.admission.noteRefusal(addressOf(conn.RemoteAddr()), codeFlood, err.Error(), p.name, p.hello.InstanceName, time.Now())
	s.closeForFault(conn, err)
}

// clipText keeps the first n bytes of a text, as valid UTF-8.
func clipText(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "")
}
