package record

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/carillon-sched/carillon/admin/internal/bytecache"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// specDocument is how a revision is stored. Field names are part of the
// schema; durations are nanoseconds, instants Unix milliseconds.
type specDocument struct {
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Handler     string            `json:"handler"`
	Input       []byte            `json:"input,omitempty"` // base64: kept byte by byte
	Script      *scriptDocument   `json:"script,omitempty"`
	Schedule    scheduleDocument  `json:"schedule"`
	Misfire     struct {
		Policy    string        `json:"policy,omitempty"`
		Threshold time.Duration `json:"threshold,omitempty"`
		Window    time.Duration `json:"window,omitempty"`
		MaxRuns   int           `json:"maxRuns,omitempty"`
	} `json:"misfire"`
	Routing     string `json:"routing,omitempty"`
	RoutingKey  string `json:"routingKey,omitempty"`
	Require     string `json:"requireLabels,omitempty"`
	Prefer      string `json:"preferLabels,omitempty"`
	Blocking    string `json:"blocking,omitempty"`
	Parallelism int    `json:"parallelism,omitempty"`
	MaxWaiting  int    `json:"maxWaiting,omitempty"`
	Retry       struct {
		MaxAttempts int           `json:"maxAttempts,omitempty"`
		Delay       time.Duration `json:"delay,omitempty"`
		Backoff     float64       `json:"backoff,omitempty"`
		MaxDelay    time.Duration `json:"maxDelay,omitempty"`
	} `json:"retry"`
	SendRetry       *sendRetryDocument `json:"sendRetry,omitempty"`
	Timeout         time.Duration      `json:"timeout,omitempty"`
	DispatchTimeout time.Duration      `json:"dispatchTimeout,omitempty"`
	OnLost          string             `json:"onLost,omitempty"`
	Priority        int                `json:"priority,omitempty"`
	LogLevel        string             `json:"logLevel,omitempty"`
	Owner           struct {
		Name  string `json:"name,omitempty"`
		Email string `json:"email,omitempty"`
	} `json:"owner"`
	Alert struct {
		OnFailure         bool     `json:"onFailure,omitempty"`
		IncludeNoExecutor bool     `json:"includeNoExecutor,omitempty"`
		Emails            []string `json:"emails,omitempty"`
		WebhookURL        string   `json:"webhookUrl,omitempty"`
		WebhookSecret     []byte   `json:"webhookSecret,omitempty"`
	} `json:"alert"`
	OnSuccess string            `json:"onSuccess,omitempty"`
	OnFailure string            `json:"onFailure,omitempty"`
	SuccessTo *followUpDocument `json:"successTo,omitempty"`
	FailureTo *followUpDocument `json:"failureTo,omitempty"`
	Sharding  *shardingDocument `json:"sharding,omitempty"`
	CodeSays  []string          `json:"codeSays,omitzero"` // [] says that code says nothing
}

type shardingDocument struct {
	Mode    string        `json:"mode"`
	Shards  int           `json:"shards,omitempty"`
	OnGone  string        `json:"onGone,omitempty"`
	Before  string        `json:"before,omitempty"`
	After   string        `json:"after,omitempty"`
	Timeout time.Duration `json:"timeout,omitempty"`
}

// followUpDocument is a callback that is no handler of the job's executor.
type followUpDocument struct {
	Handler    string `json:"handler"`
	Executor   int64  `json:"executor"`
	Request    string `json:"request,omitempty"`
	Connection int64  `json:"connection,omitempty"`
}

// needsNewerNode is read by nodes that do not know followUpDocument. No handler has the name. Such
// a node refuses to save the job, and a callback that it starts is missed with an alert.
const needsNewerNode = "a callback to another place, which needs a newer node"

// encodeFollowUp returns the handler of a callback within the job's executor, or another callback.
func encodeFollowUp(f domain.FollowUp) (own string, other *followUpDocument) {
	if f.Executor == 0 {
		return f.Handler, nil
	}
	return needsNewerNode, &followUpDocument{f.Handler, int64(f.Executor), f.Request, f.Connection}
}

func (d *followUpDocument) followUp(own string) domain.FollowUp {
	if d == nil {
		return domain.FollowUp{Handler: own}
	}
	return domain.FollowUp{Handler: d.Handler, Executor: domain.ExecutorID(d.Executor), Request: d.Request, Connection: d.Connection}
}

func encodeSharding(s domain.Sharding) *shardingDocument {
	if !s.On() {
		return nil
	}
	return &shardingDocument{string(s.Mode), s.Shards, string(s.OnGone), s.Before, s.After, s.Timeout}
}

func (d *shardingDocument) sharding() domain.Sharding {
	if d == nil {
		return domain.Sharding{}
	}
	return domain.Sharding{
		Mode: domain.ShardMode(d.Mode), Shards: d.Shards, OnGone: domain.OnGone(d.OnGone),
		Before: d.Before, After: d.After, Timeout: d.Timeout,
	}
}

// scriptDocument is the script of a revision; revision 0 = the newest.
type scriptDocument struct {
	ID       int64    `json:"id"`
	Revision int64    `json:"revision,omitempty"`
	Args     []string `json:"args,omitempty"`
}

type sendRetryDocument struct {
	MaxSends int           `json:"maxSends,omitempty"`
	Delay    time.Duration `json:"delay,omitempty"`
	Backoff  float64       `json:"backoff,omitempty"`
	MaxDelay time.Duration `json:"maxDelay,omitempty"`
}

// EncodeSpec writes a job's settings as its revision keeps them.
func EncodeSpec(s *domain.JobSpec) (string, error) {
	d := specDocument{
		Name: s.Name, Description: s.Description, Labels: s.Labels, Handler: s.Handler, Input: s.Input,
		Schedule: encodeSchedule(&s.Schedule),
		Routing:  string(s.Routing), RoutingKey: s.RoutingKey, Require: s.Require.Text, Prefer: s.Prefer.Text,
		Blocking: string(s.Blocking), Parallelism: s.Parallelism, MaxWaiting: s.MaxWaiting,
		Timeout: s.Timeout, DispatchTimeout: s.DispatchTimeout, OnLost: string(s.OnLost), Priority: s.Priority, LogLevel: s.LogLevel,
	}
	d.OnSuccess, d.SuccessTo = encodeFollowUp(s.OnSuccess)
	d.OnFailure, d.FailureTo = encodeFollowUp(s.OnFailure)
	if s.SendRetry != (domain.SendRetry{}) {
		d.SendRetry = (*sendRetryDocument)(&s.SendRetry)
	}
	if u := s.Script; u != nil {
		d.Script = &scriptDocument{ID: int64(u.ID), Revision: u.Revision, Args: u.Args}
	}
	d.Misfire.Policy, d.Misfire.Threshold = string(s.Misfire.Policy), s.Misfire.Threshold
	d.Misfire.Window, d.Misfire.MaxRuns = s.Misfire.Window, s.Misfire.MaxRuns
	d.Retry.MaxAttempts, d.Retry.Delay, d.Retry.Backoff, d.Retry.MaxDelay = s.Retry.MaxAttempts, s.Retry.Delay, s.Retry.Backoff, s.Retry.MaxDelay
	d.Owner.Name, d.Owner.Email = s.Owner.Name, s.Owner.Email
	d.Alert.OnFailure, d.Alert.IncludeNoExecutor, d.Alert.Emails = s.Alert.OnFailure, s.Alert.IncludeNoExecutor, s.Alert.Emails
	d.Alert.WebhookURL, d.Alert.WebhookSecret = s.Alert.WebhookURL, s.Alert.WebhookSecret
	d.Sharding, d.CodeSays = encodeSharding(s.Sharding), s.CodeSays
	text, err := json.Marshal(d)
	return string(text), err
}

// DecodeSpec reads what EncodeSpec wrote.
func DecodeSpec(text []byte) (*domain.JobSpec, error) {
	var d specDocument
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("read stored job revision: %w", err)
	}
	var script *domain.ScriptUse
	if u := d.Script; u != nil {
		script = &domain.ScriptUse{ID: domain.ScriptID(u.ID), Revision: u.Revision, Args: u.Args}
	}
	require, err := domain.ParseSelector(d.Require)
	if err != nil {
		return nil, fmt.Errorf("read required labels of a stored job revision: %w", err)
	}
	prefer, err := domain.ParseSelector(d.Prefer)
	if err != nil {
		return nil, fmt.Errorf("read preferred labels of a stored job revision: %w", err)
	}
	var sends domain.SendRetry
	if d.SendRetry != nil {
		sends = domain.SendRetry(*d.SendRetry)
	}
	return &domain.JobSpec{
		Script: script, Name: d.Name, Description: d.Description, Labels: d.Labels, Handler: d.Handler, Input: d.Input,
		Schedule: d.Schedule.schedule(),
		Misfire: domain.Misfire{
			Policy: domain.MisfirePolicy(d.Misfire.Policy), Threshold: d.Misfire.Threshold,
			Window: d.Misfire.Window, MaxRuns: d.Misfire.MaxRuns,
		},
		Routing: domain.Routing(d.Routing), RoutingKey: d.RoutingKey, Require: require, Prefer: prefer, SendRetry: sends,
		Blocking: domain.Blocking(d.Blocking), Parallelism: d.Parallelism, MaxWaiting: d.MaxWaiting,
		Retry: domain.Retry{
			MaxAttempts: d.Retry.MaxAttempts, Delay: d.Retry.Delay, Backoff: d.Retry.Backoff, MaxDelay: d.Retry.MaxDelay,
		},
		Timeout: d.Timeout, DispatchTimeout: d.DispatchTimeout, OnLost: domain.OnLost(d.OnLost), Priority: d.Priority, LogLevel: d.LogLevel,
		Owner: domain.Owner{Name: d.Owner.Name, Email: d.Owner.Email},
		Alert: domain.Alert{
			OnFailure: d.Alert.OnFailure, IncludeNoExecutor: d.Alert.IncludeNoExecutor, Emails: d.Alert.Emails,
			WebhookURL: d.Alert.WebhookURL, WebhookSecret: d.Alert.WebhookSecret,
		},
		OnSuccess: d.SuccessTo.followUp(d.OnSuccess), OnFailure: d.FailureTo.followUp(d.OnFailure),
		Sharding: d.Sharding.sharding(), CodeSays: d.CodeSays,
	}, nil
}

// RevisionKey names an immutable spec.
type RevisionKey struct {
	Job      domain.JobID
	Revision int64
}

// SpecCache keeps specs, which never change, most recently used ones first.
type SpecCache struct {
	Entries *bytecache.Cache[RevisionKey, CachedSpec]
	light   *bytecache.Cache[RevisionKey, CachedSpec] // without inputs, for lists
	broken  *lru.Cache[RevisionKey, error]            // what was wrong with revisions that could not be read lately
}

// CachedSpec is what is known of a revision.
type CachedSpec struct {
	Tenant domain.TenantID
	Spec   *domain.JobSpec
	// At and By are of the write of the revision. They are set by Load, LoadLight and OfJob.
	At time.Time
	By string
}

// Limit is how many runs may hold the job's slot; 0 = any number, or no such
// revision.
func (c CachedSpec) Limit() int {
	if c.Spec == nil {
		return 0
	}
	return c.Spec.SlotLimit()
}

// specBytes bounds the memory of cached specs, and lightBytes that of specs without inputs. A
// spec takes specSize and about twice its text.
const (
	specBytes  = 48 << 20
	lightBytes = 16 << 20
	specSize   = 1 << 10
)

// lightSpec is the text of a revision without its input, in SQL. A text that is no JSON stays
// as it is, so that its reader tells why.
const lightSpec = "CASE WHEN OCTET_LENGTH(spec) <= 4096 THEN spec WHEN JSON_VALID(spec) THEN JSON_REMOVE(spec, '$.input') ELSE spec END"

// NewSpecCache returns a cache of at most size revisions.
func NewSpecCache(size int) *SpecCache {
	return &SpecCache{Entries: bytecache.New[RevisionKey, CachedSpec](size, specBytes), light: bytecache.New[RevisionKey, CachedSpec](size, lightBytes), broken: NewCache[RevisionKey, error](100)}
}

// Load returns the specs of all keys; those that are not cached come with one
// query per 200. A revision that does not exist, or cannot be read, is missing
// in the answer: why tells.
func (c *SpecCache) Load(ctx context.Context, q db.Querier, keys []RevisionKey) (map[RevisionKey]CachedSpec, error) {
	return c.load(ctx, q, keys, false)
}

// LoadLight is Load for lists, which show neither inputs nor days of calendars: a spec may lack
// them.
func (c *SpecCache) LoadLight(ctx context.Context, q db.Querier, keys []RevisionKey) (map[RevisionKey]CachedSpec, error) {
	return c.load(ctx, q, keys, true)
}

func (c *SpecCache) load(ctx context.Context, q db.Querier, keys []RevisionKey, light bool) (map[RevisionKey]CachedSpec, error) {
	found := make(map[RevisionKey]CachedSpec, len(keys))
	var missing []RevisionKey
	for _, k := range keys {
		if _, ok := found[k]; ok {
			continue
		}
		if spec, ok := c.Entries.Get(k); ok {
			found[k] = spec
		} else if spec, ok := c.light.Get(k); ok && light {
			found[k] = spec
		} else {
			found[k] = CachedSpec{} // asked for once
			missing = append(missing, k)
		}
	}
	for len(missing) > 0 {
		n := min(len(missing), 200)
		if err := c.fetch(ctx, q, missing[:n], light, found); err != nil {
			return nil, err
		}
		missing = missing[n:]
	}
	for k, s := range found {
		if s.Spec == nil {
			delete(found, k)
		}
	}
	return found, nil
}

func (c *SpecCache) fetch(ctx context.Context, q db.Querier, keys []RevisionKey, light bool, into map[RevisionKey]CachedSpec) error {
	var b strings.Builder
	text, cache := "spec", c.Entries
	if light {
		text, cache = lightSpec, c.light
	}
	b.WriteString("SELECT job_id, revision, tenant_id, created_at, created_by, " + text + " FROM job_revisions WHERE ")
	for i, k := range keys {
		if i > 0 {
			b.WriteString(" OR ")
		}
		fmt.Fprintf(&b, "(job_id = %d AND revision = %d)", k.Job, k.Revision)
	}
	fetched, sizes := map[RevisionKey]CachedSpec{}, map[RevisionKey]int64{}
	err := db.Query(ctx, q, func(rows *sql.Rows) error {
		var k RevisionKey
		var s CachedSpec
		var at int64
		var text sql.RawBytes
		if err := rows.Scan(&k.Job, &k.Revision, &s.Tenant, &at, &s.By, &text); err != nil {
			return err
		}
		s.At = db.Instant(at)
		var err error
		if s.Spec, err = DecodeSpec(text); err != nil {
			c.broken.Add(k, err)
			return nil
		}
		fetched[k], sizes[k] = s, specSize+2*int64(len(text))
		return nil
	}, b.String())
	if err != nil {
		return err
	}
	if err := CalendarFiller(light)(ctx, q, slices.Collect(maps.Values(fetched))); err != nil {
		return err
	}
	for k, s := range fetched {
		into[k] = s
		if !s.Spec.Schedule.LacksCalendar() { // the row may come back
			cache.Add(k, s, s.Tenant, sizes[k])
		}
		c.broken.Remove(k)
	}
	return nil
}

// Why tells why a revision is missing in load's answer.
func (c *SpecCache) Why(k RevisionKey) error {
	if err, ok := c.broken.Get(k); ok {
		return fmt.Errorf("revision %d of job %s cannot be read: %w", k.Revision, k.Job, err)
	}
	return fmt.Errorf("job %s has no revision %d", k.Job, k.Revision)
}
