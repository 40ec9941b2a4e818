package generate

import (
	"encoding/json"
	"fmt"
	"math"
	"net/mail"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// Group is a type with a timer marker, and its clocks.
type Group struct {
	Name        string  `json:"name"`
	Type        string  `json:"type"`
	Description string  `json:"description,omitempty"`
	Register    string  `json:"register"` // the generated function
	Proxy       bool    `json:"proxy,omitempty"`
	ProxyDir    string  `json:"proxyDir,omitempty"` // where the proxy is written; empty: beside the handlers
	Clocks      []Clock `json:"clocks"`
}

// Clock is one handler and the job its marker declares. Empty strings and
// zero mean that the marker does not say, so the SDK's default applies.
type Clock struct {
	Name        string          `json:"name"`
	Method      string          `json:"method"`
	Description string          `json:"description,omitempty"`
	Input       string          `json:"input,omitempty"`  // Go type of the input, as written
	Output      string          `json:"output,omitempty"` // Go type of the output, as written
	Cron        string          `json:"cron,omitempty"`
	Dialect     string          `json:"dialect,omitempty"`
	Every       string          `json:"every,omitempty"` // Go duration
	Delay       string          `json:"delay,omitempty"` // Go duration
	At          []string        `json:"at,omitempty"`    // RFC 3339
	Window      string          `json:"window,omitempty"`
	Jitter      string          `json:"jitter,omitempty"`  // Go duration
	StartAt     string          `json:"startAt,omitempty"` // RFC 3339
	EndAt       string          `json:"endAt,omitempty"`   // RFC 3339
	Zone        string          `json:"zone,omitempty"`
	Gap         string          `json:"gap,omitempty"`
	Overlap     string          `json:"overlap,omitempty"`
	Calendars   []string        `json:"calendars,omitempty"`
	Days        string          `json:"days,omitempty"`
	JobInput    json.RawMessage `json:"jobInput,omitempty"`
	Retries     *int            `json:"retries,omitempty"` // nil: the marker does not say, and callers decide
	RetryDelay  string          `json:"retryDelay,omitempty"`
	Backoff     float64         `json:"retryBackoff,omitempty"`
	MaxDelay    string          `json:"maxRetryDelay,omitempty"` // Go duration
	Timeout     string          `json:"timeout,omitempty"`
	Dispatch    string          `json:"dispatchTimeout,omitempty"` // Go duration
	OnLost      string          `json:"onLost,omitempty"`
	Blocking    string          `json:"blocking,omitempty"`
	Parallelism int             `json:"parallelism,omitempty"`
	MaxWaiting  int             `json:"maxWaiting,omitempty"`
	Priority    int             `json:"priority,omitempty"`
	Routing     string          `json:"routing,omitempty"`
	RoutingKey  string          `json:"routingKey,omitempty"`
	Require     string          `json:"requireLabels,omitempty"`
	Prefer      string          `json:"preferLabels,omitempty"`
	SendRetries *int            `json:"sendRetries,omitempty"` // nil: the marker does not say
	SendDelay   string          `json:"sendDelay,omitempty"`   // Go duration
	Misfire     string          `json:"misfire,omitempty"`
	Late        string          `json:"misfireThreshold,omitempty"` // Go duration
	MakeUp      string          `json:"misfireWindow,omitempty"`    // Go duration
	MakeUpRuns  int             `json:"misfireMaxRuns,omitempty"`
	Labels      []Label         `json:"labels,omitempty"` // in the order of their keys
	Alert       *Alert          `json:"alert,omitempty"`  // nil: nothing is said
	Owner       string          `json:"owner,omitempty"`
	OwnedBy     string          `json:"ownedBy,omitempty"`
	WhenRemoved string          `json:"whenRemoved,omitempty"`
	Idempotent  bool            `json:"idempotent,omitempty"`
	Weight      int             `json:"weight,omitempty"`
	MaxResult   int             `json:"maxResult,omitempty"` // bytes
	KillGrace   string          `json:"killGrace,omitempty"` // Go duration
	Stuck       string          `json:"stuck,omitempty"`
	OnSuccess   string          `json:"onSuccess,omitempty"`
	OnFailure   string          `json:"onFailure,omitempty"`
	Broadcast   bool            `json:"broadcast,omitempty"`
	Shards      int             `json:"shards,omitempty"`
	OnGone      string          `json:"onGone,omitempty"`
	Before      string          `json:"before,omitempty"`      // handler
	After       string          `json:"after,omitempty"`       // handler
	FireTimeout string          `json:"fireTimeout,omitempty"` // Go duration

	sig                        signature
	imports                    map[string]string // local name → path, of what Input and Output name
	successFails, failureFails bool              // the callbacks return an error
}

// The words that the enumerated keys accept. The SDK has a constant for each.
var (
	dialects  = []string{"auto", "standard", "seconds", "quartz"}
	blockings = []string{"serial", "discard_later", "cover_early", "parallel"}
	routings  = []string{
		"round_robin", "random", "consistent_hash", "least_loaded", "least_frequently_used", "least_recently_used",
		"first", "last", "failover", "busy_over",
	}
	misfires   = []string{"skip", "once_now", "all"}
	gaps       = []string{"run_at_gap_end", "skip"}
	overlaps   = []string{"once", "both"}
	dayRules   = []string{"not_holidays", "workdays", "all"}
	ownerships = []string{"code", "console", "propose"}
	lostPolicy = []string{"auto", "fail", "retry"}
	stucks     = []string{"keep_slot", "restart_process"}
	removals   = []string{"keep", "pause", "delete"}
	timerKeys  = []string{"name", "description", "proxy"}
	timerFlags = []string{"proxy"}
	gonePolicy = []string{"miss", "move"}
	clockFlags = []string{"idempotent", "broadcast"}
	clockKeys  = []string{
		"name", "description", "cron", "dialect", "every", "delay", "at", "window", "jitter", "zone", "gap", "overlap",
		"calendars", "days", "input",
		"start-at", "end-at", "retries", "retry-delay", "retry-backoff", "max-retry-delay", "timeout", "dispatch-timeout", "on-lost", "blocking", "parallelism", "max-waiting", "priority", "routing", "routing-key",
		"require-labels", "prefer-labels", "send-retries", "send-delay",
		"misfire", "misfire-threshold", "misfire-window", "misfire-max-runs",
		"labels", "alert-on-failure", "alert-no-executor", "alert-emails", "alert-webhook",
		"owner", "owned-by", "when-removed", "idempotent", "weight", "max-result", "kill-grace", "stuck", "on-success", "on-failure",
		"broadcast", "shards", "on-gone", "before", "after", "fire-timeout",
	}
)

// Limits of marker values. maxName is the wire's limit for names in bytes
// (proto.MaxName); this package has no dependency beyond the standard library.
const (
	maxName    = 128
	maxRetries = 100
	// maxParallelism only keeps out what cannot be meant.
	maxParallelism = 100_000
	maxMaxWaiting  = 100_000
	maxPriority    = 100
	maxWeight      = 4096 // slots of an instance, at most
	maxShards      = 1000
	maxBackoff     = 100
	maxMakeUp      = 10_000
	maxSends       = 1000
	// maxResult is the wire's limit for outputs (proto.MaxOutput).
	maxResult = 256 << 10
)

// readTimer fills a group from its marker.
func readTimer(m *marker, g *Group, r *report) {
	for _, o := range m.options {
		switch {
		case !slices.Contains(timerKeys, o.key):
			r.add(o.pos, nearMiss(o.key, timerKeys), "unknown key %q in carillon:timer", o.key)
		case o.flag && !slices.Contains(timerFlags, o.key):
			r.add(o.pos, "write "+o.key+"=…", "key %q needs a value", o.key)
		case o.key == "proxy":
			if g.Proxy = true; !o.flag {
				g.ProxyDir = proxyDir(o, r)
			}
		case o.key == "name":
			g.Name = checkedName(o, r)
		default:
			g.Description = o.value
		}
	}
}

// clockReader reads the options of one clock marker.
type clockReader struct {
	clock     Clock
	at        map[string]option // the options that were given
	r         *report
	checkCron func(expr, dialect string) error
}

// readClock reads a marker. The callbacks are checked later, against the methods.
func readClock(m *marker, opts Options, r *report) *clockReader {
	c := &clockReader{at: map[string]option{}, r: r, checkCron: opts.CheckCron}
	for _, o := range m.options {
		switch isFlag := slices.Contains(clockFlags, o.key); {
		case !slices.Contains(clockKeys, o.key):
			r.add(o.pos, nearMiss(o.key, clockKeys), "unknown key %q in carillon:clock", o.key)
		case o.flag && !isFlag:
			r.add(o.pos, "write "+o.key+"=…", "key %q needs a value", o.key)
		case !o.flag && isFlag:
			r.add(o.valuePos, "write "+o.key+" alone, or leave it out", "key %q takes no value", o.key)
		default:
			c.at[o.key] = o
			c.set(o)
		}
	}
	if _, ok := c.at["name"]; !ok {
		r.add(m.pos, "add name=… ; it stays the same when the method is renamed", "carillon:clock has no name")
	}
	c.checkTogether()
	return c
}

func (c *clockReader) set(o option) {
	switch o.key {
	case "name":
		c.clock.Name = checkedName(o, c.r)
	case "description":
		c.clock.Description = o.value
	case "cron":
		c.clock.Cron = strings.Join(strings.Fields(o.value), " ")
	case "dialect":
		c.clock.Dialect = c.word(o, dialects)
	case "every":
		c.clock.Every = c.duration(o)
	case "delay":
		c.clock.Delay = c.duration(o)
	case "at":
		c.clock.At = c.instants(o)
	case "window":
		c.clock.Window = c.window(o)
	case "jitter":
		c.clock.Jitter = c.duration(o)
	case "start-at":
		c.clock.StartAt = c.instant(o)
	case "end-at":
		c.clock.EndAt = c.instant(o)
	case "gap":
		c.clock.Gap = c.word(o, gaps)
	case "overlap":
		c.clock.Overlap = c.word(o, overlaps)
	case "calendars":
		c.clock.Calendars = c.names(o)
	case "days":
		c.clock.Days = c.word(o, dayRules)
	case "zone":
		c.clock.Zone = c.zone(o)
	case "input":
		c.clock.JobInput = c.json(o)
	case "retries":
		n := c.number(o, 0, maxRetries)
		c.clock.Retries = &n
	case "retry-delay":
		c.clock.RetryDelay = c.duration(o)
	case "retry-backoff":
		c.clock.Backoff = c.factor(o, 1, maxBackoff)
	case "max-retry-delay":
		c.clock.MaxDelay = c.durationUpTo(o, 24*time.Hour)
	case "timeout":
		c.clock.Timeout = c.duration(o)
	case "dispatch-timeout":
		c.clock.Dispatch = c.durationUpTo(o, 168*time.Hour)
	case "on-lost":
		c.clock.OnLost = c.word(o, lostPolicy)
	case "blocking":
		c.clock.Blocking = c.word(o, blockings)
	case "parallelism":
		c.clock.Parallelism = c.number(o, 0, maxParallelism)
	case "max-waiting":
		c.clock.MaxWaiting = c.number(o, 1, maxMaxWaiting)
	case "priority":
		c.clock.Priority = c.number(o, -maxPriority, maxPriority)
	case "routing":
		c.clock.Routing = c.word(o, routings)
	case "routing-key":
		c.clock.RoutingKey = o.value
	case "require-labels":
		c.clock.Require = o.value
	case "prefer-labels":
		c.clock.Prefer = o.value
	case "send-retries":
		n := c.number(o, 0, maxSends-1)
		c.clock.SendRetries = &n
	case "send-delay":
		c.clock.SendDelay = c.duration(o)
	case "misfire":
		c.clock.Misfire = c.word(o, misfires)
	case "misfire-threshold":
		c.clock.Late = c.durationUpTo(o, 24*time.Hour)
	case "misfire-window":
		c.clock.MakeUp = c.durationUpTo(o, 8784*time.Hour)
	case "misfire-max-runs":
		c.clock.MakeUpRuns = c.number(o, 1, maxMakeUp)
	case "owner":
		c.clock.Owner = c.address(o, o.value)
	case "owned-by":
		c.clock.OwnedBy = c.word(o, ownerships)
	case "when-removed":
		c.clock.WhenRemoved = c.word(o, removals)
	case "idempotent":
		c.clock.Idempotent = true
	case "weight":
		c.clock.Weight = c.number(o, 1, maxWeight)
	case "max-result":
		c.clock.MaxResult = c.size(o)
	case "kill-grace":
		c.clock.KillGrace = c.duration(o)
	case "stuck":
		c.clock.Stuck = c.word(o, stucks)
	case "on-success":
		c.clock.OnSuccess = o.value
	case "on-failure":
		c.clock.OnFailure = o.value
	default:
		c.setShards(o)
		c.setAlert(o)
	}
}

// setShards sets the options of jobs with shards.
func (c *clockReader) setShards(o option) {
	switch o.key {
	case "broadcast":
		c.clock.Broadcast = true
	case "shards":
		c.clock.Shards = c.number(o, 1, maxShards)
	case "on-gone":
		c.clock.OnGone = c.word(o, gonePolicy)
	case "before":
		c.clock.Before = checkedName(o, c.r)
	case "after":
		c.clock.After = checkedName(o, c.r)
	case "fire-timeout":
		c.clock.FireTimeout = c.duration(o)
	}
}

// checkShards finds such options that contradict each other.
func (c *clockReader) checkShards() {
	if o, ok := c.at["shards"]; ok && c.clock.Broadcast {
		c.r.add(o.pos, "keep one of them", "broadcast and shards exclude each other")
	}
	if o, ok := c.at["on-gone"]; ok && !c.clock.Broadcast {
		c.r.add(o.pos, "add broadcast or remove it", "on-gone has a meaning only beside broadcast")
	}
	for _, key := range []string{"before", "after", "fire-timeout"} {
		if o, ok := c.at[key]; ok && !c.clock.Broadcast && c.clock.Shards == 0 {
			c.r.add(o.pos, "add broadcast or shards=…, or remove it", "%s has a meaning only beside broadcast or shards", key)
		}
	}
}

// checkTogether finds options that contradict each other.
func (c *clockReader) checkTogether() {
	_, hasCron := c.at["cron"]
	every, hasEvery := c.at["every"]
	if hasCron && hasEvery {
		c.r.add(every.pos, "keep one of them, or write a second carillon:clock", "cron and every exclude each other")
	}
	c.checkSchedule()
	c.checkShards()
	if o, ok := c.at["parallelism"]; ok && c.clock.Blocking != "parallel" {
		c.r.add(o.pos, "add blocking=parallel or remove it", "parallelism has a meaning only beside blocking=parallel")
	}
	if o, ok := c.at["routing-key"]; ok && c.clock.Routing != "consistent_hash" {
		c.r.add(o.pos, "add routing=consistent_hash or remove it", "routing-key has a meaning only beside routing=consistent_hash")
	}
	for _, key := range []string{"retry-delay", "retry-backoff", "max-retry-delay"} {
		if o, ok := c.at[key]; ok && c.clock.Retries == nil {
			c.r.add(o.pos, "add retries=… or remove it", "%s has a meaning only beside retries", key)
		}
	}
	for _, key := range []string{"misfire-window", "misfire-max-runs"} {
		if o, ok := c.at[key]; ok && c.clock.Misfire != "all" {
			c.r.add(o.pos, "add misfire=all or remove it", "%s has a meaning only beside misfire=all", key)
		}
	}
	if hasCron {
		c.cron(c.at["cron"])
	}
}

// cron checks the expression: with the full parser when the caller has one
// (the CLI does), and else by its shape; the admin has the last word.
func (c *clockReader) cron(o option) {
	if c.checkCron != nil {
		if err := c.checkCron(c.clock.Cron, c.clock.Dialect); err != nil {
			c.r.add(o.valuePos, "try it with: carillon cron explain "+strconv.Quote(c.clock.Cron), "cron %q: %v", c.clock.Cron, err)
		}
		return
	}
	if strings.HasPrefix(c.clock.Cron, "@") {
		return
	}
	low, high := 5, 7
	switch c.clock.Dialect {
	case "standard":
		low, high = 5, 5
	case "seconds":
		low, high = 6, 6
	case "quartz":
		low, high = 6, 7
	}
	if n := len(strings.Fields(c.clock.Cron)); n < low || n > high {
		want := strconv.Itoa(low)
		if high > low {
			want = fmt.Sprintf("%d to %d", low, high)
		}
		c.r.add(o.valuePos, "an example is \"0 0 2 * * *\": second, minute, hour, day, month, weekday",
			"cron %q has %d fields, want %s", c.clock.Cron, n, want)
	}
}

func (c *clockReader) word(o option, words []string) string {
	if !slices.Contains(words, o.value) {
		c.r.add(o.valuePos, nearMiss(o.value, words), "%s=%q is not known", o.key, o.value)
	}
	return o.value
}

func (c *clockReader) duration(o option) string {
	d, err := time.ParseDuration(o.value)
	switch {
	case err != nil:
		c.r.add(o.valuePos, "write a duration like 500ms, 10s, 5m or 1h30m", "%s=%q is no duration", o.key, o.value)
	case d <= 0:
		c.r.add(o.valuePos, "leave the key out for none", "%s=%q must be more than zero", o.key, o.value)
	case d%time.Millisecond != 0:
		c.r.add(o.valuePos, "use whole milliseconds", "%s=%q is too fine", o.key, o.value)
	default:
		return d.String()
	}
	return ""
}

// durationUpTo is duration with a bound, which is at least a minute.
func (c *clockReader) durationUpTo(o option, most time.Duration) string {
	text := c.duration(o)
	if d, err := time.ParseDuration(text); err == nil && d > most {
		c.r.add(o.valuePos, fmt.Sprintf("write at most %dh", most/time.Hour), "%s=%q is out of range", o.key, o.value)
		return ""
	}
	return text
}

// factor reads a number with at most three decimals.
func (c *clockReader) factor(o option, least, most float64) float64 {
	f, err := strconv.ParseFloat(o.value, 64)
	if err != nil || !(f >= least && f <= most) || f != math.Round(f*1000)/1000 {
		c.r.add(o.valuePos, fmt.Sprintf("write a number from %g to %g with at most three decimals", least, most), "%s=%q is out of range", o.key, o.value)
		return 0
	}
	return f
}

func (c *clockReader) zone(o option) string {
	if o.value == "Local" {
		c.r.add(o.valuePos, "name the zone, for example Asia/Shanghai or UTC",
			"zone=Local means another zone on every machine")
	} else if _, err := time.LoadLocation(o.value); err != nil {
		c.r.add(o.valuePos, "use an IANA name, for example Asia/Shanghai or UTC", "zone=%q is not known", o.value)
	}
	return o.value
}

func (c *clockReader) json(o option) json.RawMessage {
	if !json.Valid([]byte(o.value)) {
		c.r.add(o.valuePos, "write it in back quotes, for example input=`{\"days\":7}`", "input is no JSON")
		return nil
	}
	return json.RawMessage(o.value)
}

func (c *clockReader) number(o option, least, most int) int {
	n, err := strconv.Atoi(o.value)
	if err != nil || n < least || n > most {
		c.r.add(o.valuePos, fmt.Sprintf("write a whole number from %d to %d", least, most),
			"%s=%q is out of range", o.key, o.value)
		return 0
	}
	return n
}

// size reads bytes, also as 64KiB.
func (c *clockReader) size(o option) int {
	digits, kilo := strings.CutSuffix(o.value, "KiB")
	n, err := strconv.Atoi(digits)
	if kilo && n <= maxResult {
		n <<= 10
	}
	if err != nil || n < 1 || n > maxResult {
		c.r.add(o.valuePos, fmt.Sprintf("write bytes from 1 to %d, or 1KiB to %dKiB", maxResult, maxResult>>10),
			"%s=%q is out of range", o.key, o.value)
		return 0
	}
	return n
}

func (c *clockReader) address(o option, text string) string {
	a, err := mail.ParseAddress(text)
	if err != nil || a.Name != "" || len(text) > proto.MaxEmail {
		c.r.add(o.valuePos, "write an address like team@example.com", "%s=%q is no mail address", o.key, text)
		return ""
	}
	return a.Address
}

// checkedName applies the wire's rules for names.
func checkedName(o option, r *report) string {
	bad := strings.ContainsFunc(o.value, func(c rune) bool { return c <= ' ' || c == 0x7f })
	if o.value == "" || len(o.value) > maxName || bad {
		r.add(o.valuePos, fmt.Sprintf("use 1 to %d bytes without spaces, for example close-day", maxName),
			"name=%q is not allowed", o.value)
	}
	return o.value
}
