package executor

import (
	"log/slog"
	"time"
)

// HandlerOption describes a handler when it is registered.
type HandlerOption interface{ applyHandler(*handler) }

// JobOption describes a job that the application declares in its code: what
// starts the handler, when, and how. Given to Handle directly, job options
// together declare one job named like the handler; Job declares further ones.
// Those of how it runs, given to Handle directly, hold for calls of the handler
// by programs too (package proxy).
//
// The admin creates declared jobs when the executor registers, and tells in
// the executor's log which declaration it could not take, and why.
type JobOption interface {
	HandlerOption
	applyJob(*job)
}

// jobOption is a JobOption made of one function.
type jobOption func(*job)

func (o jobOption) applyJob(j *job)         { o(j) }
func (o jobOption) applyHandler(h *handler) { o(h.ownJob()) }

// handlerOption is a HandlerOption made of one function.
type handlerOption func(*handler)

func (o handlerOption) applyHandler(h *handler) { o(h) }

// Idempotent says that running the handler twice for one run does no harm.
// Runs then start in one step instead of two, and a run whose instance died
// or cannot be reached is given to another one instead of being reported as
// lost. The first three attempts that a run loses so use up none of its
// attempts; further ones do, so that an input that ends each process which
// takes it is not repeated for ever. When the path to an instance falls silent
// right after a run has started there, it may run on another one beside it for
// some seconds, until the first one hears of that. A job with OnLost(FailLost) is
// never repeated.
func Idempotent() HandlerOption {
	return handlerOption(func(h *handler) { h.idempotent = true })
}

// Weight says that a run of the handler takes n of the instance's Slots, for
// work that is heavier than the rest. From 1, the default, to 4096; one that asks for more
// than Config.Slots takes all of them. A run waits until an instance has that many
// free; they are kept for it as they become free, so that lighter runs behind it do
// not take them all.
func Weight(n int) HandlerOption {
	return handlerOption(func(h *handler) { h.weight = n })
}

// LogLevel is the lowest level of what the handler's runs log that is captured,
// in place of Config.LogLevel. A *slog.LevelVar can be changed while they run.
// The level that a job has in the admin comes before it.
func LogLevel(level slog.Leveler) HandlerOption {
	return handlerOption(func(h *handler) { h.logLevel = level })
}

// Description says what the handler, or inside Job the job, does.
func Description(text string) JobOption { return description(text) }

type description string

func (d description) applyHandler(h *handler) { h.description = string(d) }
func (d description) applyJob(j *job)         { j.description = string(d) }

// Job declares a job of its own for the handler. Names of jobs are unique in the
// tenant: one that another executor's job has, or one made in the console for
// another executor, is refused (RefusedError), and the reason names that executor.
// So is one that begins with call:, callback: or timer:, as those of the admin's own
// jobs do.
func Job(name string, opts ...JobOption) HandlerOption {
	return handlerOption(func(h *handler) {
		j := &job{name: name}
		for _, o := range opts {
			o.applyJob(j)
		}
		h.jobs = append(h.jobs, j)
	})
}

// JobName names the job that the options beside it declare. Default: the
// handler's name. Names of jobs are unique in the tenant, see Job.
func JobName(name string) JobOption { return jobOption(func(j *job) { j.name = name }) }

// Cron fires the job by a cron expression of 5 fields, 6 (with seconds), or
// Quartz's 6 or 7, for example Cron("0 0 2 * * *").
func Cron(expr string) JobOption { return jobOption(func(j *job) { j.cron = expr }) }

// Dialect says how to read the cron expression. Default DialectAuto.
func Dialect(d CronDialect) JobOption { return jobOption(func(j *job) { j.dialect = d }) }

// CronDialect is a way to read cron expressions.
type CronDialect string

// The dialects.
const (
	DialectAuto     CronDialect = "auto"     // by the number of fields
	DialectStandard CronDialect = "standard" // 5 fields
	DialectSeconds  CronDialect = "seconds"  // 6 fields, seconds first
	DialectQuartz   CronDialect = "quartz"   // 6 or 7 fields with L W # ?
)

// Every fires the job at a fixed rate, for example Every(30*time.Second).
func Every(d time.Duration) JobOption { return jobOption(func(j *job) { j.every = d }) }

// Zone is the IANA time zone the schedule is meant in, for example
// "Asia/Shanghai". Default: the admin's, usually UTC.
func Zone(name string) JobOption { return jobOption(func(j *job) { j.zone = name }) }

// Input is what the job hands to the handler: a value of the handler's input
// type, or anything that encodes to the same JSON.
func Input(v any) JobOption { return jobOption(func(j *job) { j.input, j.hasInput = v, true }) }

// Retries is how many more attempts a failed run gets; 0, the default, means none.
// Callers of the handler (package proxy) may ask for fewer; where nothing is said
// they decide.
func Retries(n int) JobOption { return jobOption(func(j *job) { j.retries, j.hasRetries = n, true }) }

// RetryDelay is the pause before a retry. Default: the admin's, 10 s.
func RetryDelay(d time.Duration) JobOption { return jobOption(func(j *job) { j.retryDelay = d }) }

// RetryBackoff multiplies the pause after each retry: with RetryDelay(time.Second)
// and RetryBackoff(2) a run is tried again after 1 s, 2 s, 4 s and so on. From 1 to
// 100, of which three decimals count. Default 1: all pauses are as long.
func RetryBackoff(factor float64) JobOption {
	return jobOption(func(j *job) { j.backoff, j.hasBackoff = factor, true })
}

// MaxRetryDelay bounds the pause that RetryBackoff leads to, to 24 h at most.
// Default: 10 min, or RetryDelay where that is longer.
func MaxRetryDelay(d time.Duration) JobOption {
	return jobOption(func(j *job) { j.maxRetryDelay = d })
}

// Timeout cancels the handler with ErrTimeout when it runs longer than d.
// Default: none.
func Timeout(d time.Duration) JobOption { return jobOption(func(j *job) { j.timeout = d }) }

// DispatchTimeout is how long a run that is due waits for an instance with room
// before it is missed, at most 168 h. Default: the admin's, 5 min; callbacks wait for 24 h.
func DispatchTimeout(d time.Duration) JobOption {
	return jobOption(func(j *job) { j.dispatchTimeout = d })
}

// OnLost says what becomes of a run whose outcome is unknown: its instance died or
// fell silent while the handler ran. Default AutoLost. Callbacks are repeated in any
// case.
func OnLost(p LostPolicy) JobOption { return jobOption(func(j *job) { j.onLost = p }) }

// LostPolicy is what becomes of a run whose outcome is unknown.
type LostPolicy string

// The policies.
const (
	AutoLost  LostPolicy = "auto"  // tried again if the handler is Idempotent, else it ends as lost
	FailLost  LostPolicy = "fail"  // it ends as lost: never started twice
	RetryLost LostPolicy = "retry" // tried again, though it may have done its work
)

// Blocking says what happens when the job fires while its last run still
// goes on. Default Serial, and Parallel for a job without a schedule or with At:
// its runs are asked for one by one, and wait for nobody.
func Blocking(s BlockingStrategy) JobOption { return jobOption(func(j *job) { j.blocking = s }) }

// BlockingStrategy is what happens to a run whose predecessor still runs.
type BlockingStrategy string

// The blocking strategies.
const (
	Serial       BlockingStrategy = "serial"        // wait for it
	DiscardLater BlockingStrategy = "discard_later" // drop the new run
	CoverEarly   BlockingStrategy = "cover_early"   // cancel it, and run in its place
	Parallel     BlockingStrategy = "parallel"      // run both
)

// Parallelism bounds how many runs go on at once with Blocking(Parallel).
// Default 0: no limit.
func Parallelism(n int) JobOption { return jobOption(func(j *job) { j.parallelism = n }) }

// MaxWaiting bounds how many runs wait for earlier ones of the job. A fire that finds so
// many is discarded. 1 to 100000; default 1000.
func MaxWaiting(n int) JobOption {
	return jobOption(func(j *job) { j.maxWaiting, j.hasMaxWaiting = n, true })
}

// Priority is a number from -100 to 100 that decides which of the tenant's waiting runs goes
// first: each point counts as one second of waiting. Default 0.
func Priority(n int) JobOption { return jobOption(func(j *job) { j.priority = n }) }

// Routing says which instance gets a run, of those that serve the handler, have
// the labels that are required, and answer. Default RoundRobin.
func Routing(s RoutingStrategy) JobOption { return jobOption(func(j *job) { j.routing = s }) }

// RoutingStrategy is how the instance of a run is chosen.
type RoutingStrategy string

// The routing strategies. The order of the instances is that in which they
// registered; first means the oldest process.
const (
	RoundRobin          RoutingStrategy = "round_robin"           // each in turn
	Random              RoutingStrategy = "random"                // any that has room
	ConsistentHash      RoutingStrategy = "consistent_hash"       // one key, one instance: see HashBy
	LeastLoaded         RoutingStrategy = "least_loaded"          // fewest of its slots, or CPU, in use
	LeastFrequentlyUsed RoutingStrategy = "least_frequently_used" // fewest of the job's last 100 runs
	LeastRecentlyUsed   RoutingStrategy = "least_recently_used"   // used by the job the longest time ago
	First               RoutingStrategy = "first"                 // the first one; waits while it is full
	Last                RoutingStrategy = "last"                  // the last one; waits while it is full
	Failover            RoutingStrategy = "failover"              // the first one, and the next when a send leads to nothing
	BusyOver            RoutingStrategy = "busy_over"             // the first one that has room
)

// HashBy says where Routing(ConsistentHash) finds its key in the input, as a
// JSON pointer such as "/customer/id". Default, and for inputs that have nothing
// there: the job is the key.
func HashBy(pointer string) JobOption { return jobOption(func(j *job) { j.routingKey = pointer }) }

// RequireLabels says what the labels of an instance (Config.Labels) have to meet
// to get runs of the job: terms that all have to hold, such as
// "zone=eu, tier in (gold, silver), env!=prod, gpu, !spot". Default: any do.
func RequireLabels(selector string) JobOption {
	return jobOption(func(j *job) { j.requireLabels = selector })
}

// PreferLabels is RequireLabels for what they should meet: other instances get
// runs when none of those has room.
func PreferLabels(selector string) JobOption {
	return jobOption(func(j *job) { j.preferLabels = selector })
}

// SendRetries is how many more times a run is sent when a send led to nothing:
// the instance refused it, did not answer, or was cut off before it had. This
// costs no attempt, and the next send goes to another instance where there is
// one. Default: as many as fit into the job's DispatchTimeout.
func SendRetries(n int) JobOption {
	return jobOption(func(j *job) { j.maxSends, j.hasSends = n+1, true })
}

// SendDelay is the pause before a run is sent again; each further one is twice as
// long, up to a minute. Default: none for an instance that is gone, and 0.1 s to
// 2 s after a refusal.
func SendDelay(d time.Duration) JobOption { return jobOption(func(j *job) { j.sendDelay = d }) }

// Misfire says what happens to a fire time that passed while nothing could
// fire. Default SkipMisfire.
func Misfire(p MisfirePolicy) JobOption { return jobOption(func(j *job) { j.misfire = p }) }

// MisfirePolicy is what happens to a fire time that passed.
type MisfirePolicy string

// The misfire policies.
const (
	SkipMisfire    MisfirePolicy = "skip"
	OnceNowMisfire MisfirePolicy = "once_now"
	AllMisfires    MisfirePolicy = "all" // each of them, within MisfireLimit
)

// Owner is the mail address that is told when the job finally fails.
func Owner(email string) JobOption { return jobOption(func(j *job) { j.owner = email }) }
