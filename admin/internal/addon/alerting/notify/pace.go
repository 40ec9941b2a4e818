package notify

import (
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
)

// limit is how many messages a channel takes: perMinute, and burst at once. Burst
// and perMinute together stay within what the product takes in a minute.
type limit struct {
	perMinute float64
	burst     int
}

// limits are those of the products' documents; what has none is bounded so that
// nothing floods.
var limits = map[noun.ChannelKind]limit{
	noun.ChannelEmail:     {60, 20},
	noun.ChannelWebhook:   {600, 50},
	noun.ChannelDingTalk:  {15, 5},   // 20 a minute; then the robot is silent for 10 minutes
	noun.ChannelFeishu:    {90, 5},   // 100 a minute, 5 a second
	noun.ChannelWeCom:     {15, 5},   // 20 a minute
	noun.ChannelSlack:     {55, 3},   // 1 a second, and short bursts
	noun.ChannelTeams:     {55, 4},   // 4 a second, and few in a longer time
	noun.ChannelTelegram:  {15, 5},   // 20 a minute to a group
	noun.ChannelPagerDuty: {100, 20}, // 120 a minute for an integration
	noun.ChannelOpsgenie:  {60, 10},  // depends on the plan
}

// maxPaceWait bounds how long a delivery is put off because of many before it.
const maxPaceWait = 10 * time.Minute

// DefaultMailsPerHour bounds the mails of a tenant.
const DefaultMailsPerHour = 600

// mailLimit bounds a tenant's mails by so many an hour, also on several nodes: half of
// them can go at once.
func mailLimit(perHour, nodes int) limit {
	return limit{perMinute: float64(perHour) / 2 / 60, burst: max(1, perHour/2/max(1, nodes))}
}

// paces bound what goes through each alert channel, and a tenant's mails. It is safe for
// concurrent use.
type paces struct {
	mu sync.Mutex
	of map[int64]*pace // guarded by mu: those that were used lately, by the id of a channel or tenant
}

type pace struct {
	limiter *rate.Limiter
	next    time.Time // the turn of the next delivery that is put off
	closed  time.Time // the receiver asked for silence until then
}

func newPaces() *paces { return &paces{of: map[int64]*pace{}} }

// take returns 0 when a message may be sent now, and has counted it; else how long
// it is put off. Those that are put off come back one after the other. nodes share
// the limit evenly: each knows only what it sends itself.
func (p *paces) take(id int64, most limit, nodes int, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	one, interval := p.paceLocked(id, most, nodes, now)
	if !now.Before(one.closed) && one.limiter.AllowN(now, 1) {
		return 0
	}
	first := now.Add(interval)
	if one.closed.After(first) {
		first = one.closed
	}
	if one.next.Before(first) {
		one.next = first
	}
	wait := one.next.Sub(now)
	one.next = one.next.Add(interval)
	if wait > maxPaceWait && one.closed.Before(now.Add(maxPaceWait)) {
		one.next = now.Add(maxPaceWait)
		wait = maxPaceWait/2 + rand.N(maxPaceWait/2)
	}
	return wait
}

// try is take for messages that are refused instead of put off: it changes nothing for
// deliveries when it is refused, and it is while some are put off.
func (p *paces) try(id int64, most limit, nodes, messages int, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	one, wait := p.freeLocked(id, most, nodes, messages, now)
	if wait == 0 {
		one.limiter.AllowN(now, min(messages, most.burst))
	}
	return wait
}

// free is the answer that try would give. It takes nothing.
func (p *paces) free(id int64, most limit, nodes, messages int, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, wait := p.freeLocked(id, most, nodes, messages, now)
	return wait
}

func (p *paces) freeLocked(id int64, most limit, nodes, messages int, now time.Time) (*pace, time.Duration) {
	one, interval := p.paceLocked(id, most, nodes, now)
	if wait := max(one.next.Sub(now), one.closed.Sub(now)); wait > 0 {
		return one, wait
	}
	if one.limiter.TokensAt(now) < float64(min(messages, most.burst)) {
		return one, interval
	}
	return one, 0
}

// paceLocked finds a pace, and how far apart this node's messages are.
func (p *paces) paceLocked(id int64, most limit, nodes int, now time.Time) (*pace, time.Duration) {
	share := rate.Limit(most.perMinute / 60 / float64(max(1, nodes)))
	one := p.of[id]
	if one == nil {
		p.tidy(now)
		one = &pace{limiter: rate.NewLimiter(share, most.burst)}
		p.of[id] = one
	}
	one.limiter.SetLimitAt(now, share)
	one.limiter.SetBurstAt(now, most.burst)
	return one, time.Duration(float64(time.Second) / float64(share))
}

// pause keeps a channel silent for so long, as its receiver wishes; 0: not.
func (p *paces) pause(id int64, now time.Time, wish time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.of[id]; one != nil && wish > 0 && now.Add(wish).After(one.closed) {
		one.closed = now.Add(wish)
	}
}

// paused is how long a channel is silent yet.
func (p *paces) paused(id int64, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.of[id]; one != nil {
		return max(0, one.closed.Sub(now))
	}
	return 0
}

// tidy forgets what would be made anew just so.
func (p *paces) tidy(now time.Time) {
	for id, one := range p.of {
		if !now.Before(one.closed) && !now.Before(one.next) && one.limiter.TokensAt(now) >= float64(one.limiter.Burst()) {
			delete(p.of, id)
		}
	}
}
