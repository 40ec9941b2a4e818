package callback

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/nodehandler"
)

const (
	// maxCalls bounds the calls of a node that are under way, of all tenants. One
	// tenant may have as many of them as are free.
	maxCalls = 4096
	// waitTime is how long a run waits for a receiver that is busy and answers, and
	// waitersPerCall how many wait per call that may be under way. Others are put off.
	waitTime       = time.Second
	waitersPerCall = 4
	// breakAfter is after how many calls in a row without an answer the circuit of a
	// receiver opens: for openFor, doubled up to maxOpen each time that a trial call
	// has no answer either. Runs are put off for up to twice as long, and all of them
	// have to be on their way within a minute after the receiver is well.
	breakAfter = 10
	openFor    = 5 * time.Second
	maxOpen    = 20 * time.Second
	// putOff is for how long at least a run is put off that meets a busy receiver. It is
	// as long as nothing has been answered, up to openFor: each time costs the offer and
	// the grant of a run. Up to half of it is added, so that they do not come back
	// together.
	putOff = time.Second
	// maxFailing is how many receivers of a tenant are remembered that do not answer
	// and are not being called.
	maxFailing = 256
)

// outcome is what a call says about its receiver.
type outcome = nodehandler.Outcome

const (
	answered   = nodehandler.Answered
	unanswered = nodehandler.Unanswered
	unknown    = nodehandler.Unknown
)

// limits bound calls by tenant and receiver, with a circuit breaker each. It is
// safe for concurrent use.
type limits struct {
	mu        sync.Mutex
	calls     int                     // guarded by mu: under way
	callsOf   map[domain.TenantID]int // guarded by mu: the same by tenant, none without
	receivers map[domain.TenantID]map[string]*receiver
}

func newLimits() *limits {
	return &limits{callsOf: map[domain.TenantID]int{}, receivers: map[domain.TenantID]map[string]*receiver{}}
}

// receiver is what is known of one while it is called, or does not answer. It is
// guarded by limits.mu.
type receiver struct {
	tenant  domain.TenantID // fixed
	name    string          // fixed
	calls   int             // under way
	most    int             // of them, as the policy said last
	waiting []chan *call    // capacity 1 each: a call that may begin, or nil
	movedAt time.Time       // when a call was answered, or the first one began
	// failures are the calls in a row without an answer; opened is how often the
	// circuit has opened since the last answer, until when it is so now, and which
	// trial call is under way.
	failures  int
	opened    int
	openUntil time.Time
	trial     *call
	failedAt  time.Time
}

// call is one that is under way.
type call struct{ receiver *receiver }

// enter asks for a call. It returns one that may begin, and leave has to be called
// at its end. Without one it should be asked again after later; broken: because the
// receiver does not answer.
func (l *limits) enter(ctx context.Context, tenant domain.TenantID, name string, most int) (c *call, broken bool, later time.Duration) {
	l.mu.Lock()
	now := time.Now()
	r := l.find(tenant, name, now)
	r.most = most
	switch {
	case r.opened > 0 && (r.trial != nil || now.Before(r.openUntil)):
		l.mu.Unlock()
		left := max(0, r.openUntil.Sub(now))
		return nil, true, putOff + left + rand.N(left+openFor)
	case l.room(r):
		if r.calls == 0 {
			r.movedAt = now
		}
		c = l.begin(r)
		if r.opened > 0 {
			r.trial = c
		}
		l.mu.Unlock()
		return c, false, 0
	case len(r.waiting) >= most*waitersPerCall || now.Sub(r.movedAt) >= waitTime:
		l.tidy(r)
		later = r.later(now)
		l.mu.Unlock()
		return nil, false, later
	}
	turn := make(chan *call, 1)
	r.waiting = append(r.waiting, turn)
	l.mu.Unlock()
	timer := time.NewTimer(waitTime)
	defer timer.Stop()
	select {
	case c = <-turn:
		return c, false, putOff + rand.N(putOff/2)
	case <-timer.C:
	case <-ctx.Done():
	}
	return l.giveUp(r, turn)
}

// later is when a run should ask again that found the receiver busy. mu is held.
func (r *receiver) later(now time.Time) time.Duration {
	pause := putOff
	if r.calls > 0 {
		pause = min(max(pause, now.Sub(r.movedAt)), openFor)
	}
	return pause + rand.N(pause/2)
}

// room tells whether a call may begin. mu is held.
func (l *limits) room(r *receiver) bool {
	return r.calls < r.most && l.callsOf[r.tenant] < maxCalls-l.calls
}

// begin begins a call. mu is held.
func (l *limits) begin(r *receiver) *call {
	r.calls++
	l.calls++
	l.callsOf[r.tenant]++
	return &call{r}
}

// giveUp ends a wait as enter does; there is a call if its turn has come meanwhile.
func (l *limits) giveUp(r *receiver, turn chan *call) (c *call, broken bool, later time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(r.waiting, turn)
	if at < 0 {
		c = <-turn
	} else {
		r.waiting = slices.Delete(r.waiting, at, at+1)
		l.tidy(r)
	}
	return c, false, r.later(time.Now())
}

// leave ends a call.
func (l *limits) leave(c *call, o outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := c.receiver
	r.calls--
	l.calls--
	if l.callsOf[r.tenant]--; l.callsOf[r.tenant] == 0 {
		delete(l.callsOf, r.tenant)
	}
	r.judge(c, o, time.Now())
	if r.opened > 0 { // nobody waits for who does not answer
		for _, turn := range r.waiting {
			turn <- nil
		}
		r.waiting = nil
	}
	for len(r.waiting) > 0 && l.room(r) {
		r.waiting[0] <- l.begin(r)
		r.waiting = r.waiting[1:]
	}
	l.tidy(r)
}

func (r *receiver) judge(c *call, o outcome, now time.Time) {
	wasTrial := r.trial == c
	if wasTrial {
		r.trial = nil
	}
	switch o {
	case unknown:
	case answered:
		r.movedAt = now
		r.failures, r.opened, r.openUntil, r.trial = 0, 0, time.Time{}, nil
	case unanswered:
		r.failedAt = now
		if r.failures++; wasTrial || r.opened == 0 && r.failures >= breakAfter {
			r.openUntil = now.Add(min(openFor<<min(r.opened, 10), maxOpen))
			r.opened++
		}
	}
}

// idle tells whether nobody calls it or waits for it. mu is held.
func (r *receiver) idle() bool { return r.calls == 0 && len(r.waiting) == 0 }

// find returns a receiver, which is made when it is not known, or has not been
// called since it failed long ago. mu is held.
func (l *limits) find(tenant domain.TenantID, name string, now time.Time) *receiver {
	of := l.receivers[tenant]
	if of == nil {
		of = map[string]*receiver{}
		l.receivers[tenant] = of
	}
	r := of[name]
	if r == nil || r.idle() && now.Sub(r.failedAt) > brokenFor {
		r = &receiver{tenant: tenant, name: name}
		of[name] = r
	}
	return r
}

// tidy forgets a receiver of which there is nothing to remember, or for one that
// does not answer the one that has been silent longest. mu is held.
func (l *limits) tidy(r *receiver) {
	of := l.receivers[r.tenant]
	if !r.idle() {
		return
	}
	if r.failures == 0 {
		delete(of, r.name)
	} else if len(of) > maxFailing {
		oldest, failing := r, 0
		for _, other := range of {
			if other.idle() {
				failing++
				if other.failedAt.Before(oldest.failedAt) {
					oldest = other
				}
			}
		}
		if failing > maxFailing {
			delete(of, oldest.name)
		}
	}
	if len(of) == 0 {
		delete(l.receivers, r.tenant)
	}
}

// forget forgets the receivers of a tenant that nobody calls.
func (l *limits) forget(tenant domain.TenantID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.receivers[tenant]
	for name, r := range of {
		if r.idle() {
			delete(of, name)
		}
	}
	if len(of) == 0 {
		delete(l.receivers, tenant)
	}
}
