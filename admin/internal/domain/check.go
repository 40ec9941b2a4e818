package domain

import (
	"fmt"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Limits of a job's settings.
const (
	MaxAttemptsLimit = 100
	MaxTimeout       = 7 * 24 * time.Hour
	MaxRetryDelay    = 24 * time.Hour
	MaxNameLength    = 128
	MaxMisfireWindow = 366 * 24 * time.Hour
	MaxMisfireRuns   = 10_000
	MaxMaxWaiting    = 100_000
	MaxLabels        = 32
	MaxLabelKey      = 63
	MaxEmails        = 20 // of an alert, beside the owner's
	MaxEmailLength   = 254
	MaxWebhookLength = 2048
)

// CheckSpec validates the parts of a spec that need no schedule engine and no
// database. Every wrong field is listed; the locations are those of the API.
func CheckSpec(s *JobSpec) error {
	var c checker
	c.check(s.Name != "" && len(s.Name) <= MaxNameLength, "body.name", s.Name, "must have 1 to 128 bytes")
	c.check(s.Handler != "" && len(s.Handler) <= MaxNameLength, "body.handler", s.Handler, "must have 1 to 128 bytes")
	c.check(len(s.Description) <= 4096, "body.description", nil, "must not exceed 4096 bytes")
	c.schedule("body.schedule.", &s.Schedule)
	c.misfire(s.Misfire)
	c.script(s)
	c.routing(s)
	switch s.Blocking {
	case BlockSerial, BlockDiscard, BlockCover, BlockParallel:
	default:
		c.fail("body.blocking", s.Blocking, "must be serial, discard_later, cover_early or parallel")
	}
	switch s.OnLost {
	case OnLostAuto, OnLostFail, OnLostRetry:
	default:
		c.fail("body.onLost", s.OnLost, "must be auto, fail or retry")
	}
	c.check(s.Parallelism >= 0, "body.parallelism", s.Parallelism, "must not be negative")
	c.check(s.Parallelism <= 0 || s.Blocking == BlockParallel, "body.parallelism", s.Parallelism, "needs blocking parallel; leave it out for "+string(s.Blocking))
	c.check(s.MaxWaiting >= 0 && s.MaxWaiting <= MaxMaxWaiting, "body.maxWaiting", s.MaxWaiting, "must be from 0 (the default, 1000) to 100000")
	c.check(s.Retry.MaxAttempts >= 1 && s.Retry.MaxAttempts <= MaxAttemptsLimit, "body.retry.maxAttempts", s.Retry.MaxAttempts, "must be from 1 to 100")
	c.check(s.Retry.Delay >= 0 && s.Retry.Delay <= MaxRetryDelay, "body.retry.delay", s.Retry.Delay.String(), "must be from 0s to 24h")
	c.check(s.Retry.MaxDelay >= 0 && s.Retry.MaxDelay <= MaxRetryDelay, "body.retry.maxDelay", s.Retry.MaxDelay.String(), "must be from 0s to 24h")
	c.check(s.Retry.Backoff >= 0 && s.Retry.Backoff <= 100, "body.retry.backoff", s.Retry.Backoff, "must be from 0 to 100")
	c.check(s.Timeout >= 0 && s.Timeout <= MaxTimeout, "body.timeout", s.Timeout.String(), "must be from 0s (none) to 168h")
	c.check(s.DispatchTimeout >= 0 && s.DispatchTimeout <= MaxTimeout, "body.dispatchTimeout", s.DispatchTimeout.String(), "must be from 0s (the default, 5m) to 168h")
	c.check(slices.Contains(logLevels, s.LogLevel), "body.logLevel", s.LogLevel, "must be default, DEBUG, INFO, WARN or ERROR")
	c.check(s.Priority >= -100 && s.Priority <= 100, "body.priority", s.Priority, "must be from -100 to 100")
	c.followUp("body.onSuccess", s.OnSuccess)
	c.followUp("body.onFailure", s.OnFailure)
	c.sharding(s.Sharding)
	c.people(s)
	return c.err()
}

func (c *checker) sharding(s Sharding) {
	const at = "body.sharding."
	switch s.Mode {
	case ShardNone:
		c.check(s == Sharding{}, at+"mode", s.Mode, "must be broadcast or fixed where anything else of sharding is set")
	case ShardBroadcast:
		c.check(s.Shards == 0, at+"shards", s.Shards, "is for fixed shards: a broadcast has one on each instance")
		c.check(s.OnGone == GoneMiss || s.OnGone == GoneMove, at+"onGone", s.OnGone, "must be miss or move")
	case ShardFixed:
		c.check(s.Shards >= 1 && s.Shards <= MaxShards, at+"shards", s.Shards, "must be from 1 to 1000")
		c.check(s.OnGone == "", at+"onGone", s.OnGone, "is for a broadcast: fixed shards are bound to no instance")
	default:
		c.fail(at+"mode", s.Mode, "must be broadcast or fixed")
	}
	c.check(len(s.Before) <= MaxNameLength, at+"before", s.Before, "must have at most 128 bytes")
	c.check(len(s.After) <= MaxNameLength, at+"after", s.After, "must have at most 128 bytes")
	c.check(s.Timeout >= 0 && s.Timeout <= MaxTimeout, at+"timeout", s.Timeout.String(), "must be from 0s (none) to 168h")
}

func (c *checker) routing(s *JobSpec) {
	if !slices.Contains(Routings, s.Routing) {
		c.fail("body.routing", s.Routing, "must be one of "+routingNames())
	}
	if s.RoutingKey != "" {
		c.check(s.Routing == RouteConsistentHash, "body.routingKey", s.RoutingKey, "needs the routing consistent_hash")
		wrong := checkPointer(s.RoutingKey)
		c.check(wrong == "", "body.routingKey", s.RoutingKey, wrong)
	}
	r := s.SendRetry
	c.check(r.MaxSends >= 0 && r.MaxSends <= MaxSendsLimit, "body.sendRetry.maxSends", r.MaxSends, "must be from 0 (as many as the dispatch timeout allows) to 1000")
	c.check(r.Delay >= 0 && r.Delay <= MaxRetryDelay, "body.sendRetry.delay", r.Delay.String(), "must be from 0s (as the answer suggests) to 24h")
	c.check(r.MaxDelay >= 0 && r.MaxDelay <= MaxRetryDelay, "body.sendRetry.maxDelay", r.MaxDelay.String(), "must be from 0s (the default, 1m) to 24h")
	c.check(r.Backoff >= 0 && r.Backoff <= 100, "body.sendRetry.backoff", r.Backoff, "must be from 0 to 100")
}

func routingNames() string {
	names := make([]string, len(Routings))
	for i, r := range Routings {
		names[i] = string(r)
	}
	return strings.Join(names, ", ")
}

var logLevels = []string{"", "DEBUG", "INFO", "WARN", "ERROR"}

func (c *checker) misfire(m Misfire) {
	switch m.Policy {
	case MisfireSkip, MisfireOnceNow, MisfireAll:
	default:
		c.fail("body.misfire.policy", m.Policy, "must be skip, once_now or all")
	}
	c.check(m.Threshold >= 0 && m.Threshold <= 24*time.Hour, "body.misfire.threshold", m.Threshold.String(), "must be from 0s to 24h")
	c.check(m.Window >= 0 && m.Window <= MaxMisfireWindow, "body.misfire.window", m.Window.String(), "must be from 0s (the default, 1h) to 8784h")
	c.check(m.MaxRuns >= 0 && m.MaxRuns <= MaxMisfireRuns, "body.misfire.maxRuns", m.MaxRuns, "must be from 0 (the default, 100) to 10000")
	advice := "needs the policy all; leave it out for " + string(m.Policy)
	c.check(m.MaxRuns == 0 || m.Policy == MisfireAll, "body.misfire.maxRuns", m.MaxRuns, advice)
	c.check(m.Window == 0 || m.Policy == MisfireAll, "body.misfire.window", DurationText(m.Window), advice)
}

type checker struct{ fields []FieldError }

func (c *checker) check(ok bool, location string, value any, message string) {
	if !ok {
		c.fail(location, value, message)
	}
}

func (c *checker) fail(location string, value any, message string) {
	c.fields = append(c.fields, FieldError{Location: location, Message: message, Value: value, Position: -1})
}

func (c *checker) err() error {
	if len(c.fields) == 0 {
		return nil
	}
	f := c.fields[0]
	return &Error{Code: CodeInvalid, Message: f.Location + ": " + f.Message, Fields: c.fields}
}

// httpURL checks an address that may hold a key: it is not repeated.
func (c *checker) httpURL(at, address string) {
	if address == "" {
		return
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		c.fail(at, nil, "is not an http or https address")
	case u.User != nil:
		c.fail(at, nil, "must not contain a user name or password")
	case u.Port() != "" && !isPort(u.Port()):
		c.fail(at, nil, "has a port that is not from 1 to 65535")
	case HasControl(address):
		c.fail(at, nil, "must not contain control characters")
	}
	c.check(len(address) <= MaxWebhookLength, at, nil, "must not exceed 2048 bytes")
}

func isPort(text string) bool {
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && port > 0
}

// Checker collects the wrong fields of a document of an add-on.
type Checker struct{ c checker }

// Check adds a field unless ok. value is shown to the caller; nil: it is not.
func (c *Checker) Check(ok bool, location string, value any, message string) {
	c.c.check(ok, location, value, message)
}

// Labels checks the labels of a document, in body.labels.
func (c *Checker) Labels(labels map[string]string) { c.c.labels(labels) }

// HTTPURL adds a field that is no http or https address. It may hold a key, and is not shown.
func (c *Checker) HTTPURL(location, address string) { c.c.httpURL(location, address) }

// Err is an error of all fields that were added, or nil.
func (c *Checker) Err() error { return c.c.err() }

// CheckSchedule finds what contradicts itself in a schedule, wherever it comes
// from: what its kind does not use (whoever sent it meant it to count), and a
// jitter by which runs overtake each other. What is empty says nothing. Package
// schedule checks the rest. Locations begin with at, such as "body.schedule".
func CheckSchedule(at string, s *ScheduleSpec) []FieldError {
	var c checker
	c.schedule(at+".", s)
	return c.fields
}

func (c *checker) schedule(at string, s *ScheduleSpec) {
	c.leftovers(at, s)
	paced := s.Kind == ScheduleFixedRate || s.Kind == ScheduleDailyWindow
	c.check(!paced || s.Every <= 0 || s.JitterMax <= s.Every, at+"jitter", DurationText(s.JitterMax),
		"is longer than every, so that runs would overtake each other; at most "+DurationText(s.Every))
	for _, f := range []struct {
		name string
		at   time.Time
	}{{"anchor", s.Anchor}, {"at", s.At}, {"startAt", s.StartAt}, {"endAt", s.EndAt}} {
		c.check(f.at.IsZero() || f.at.Year() >= 1970 && f.at.Year() <= LastYear, at+f.name, f.at, "must lie in the years from 1970 to 9998")
	}
}

// LastYear is the last one that a schedule may name: Never lies in the next.
const LastYear = 9998

// leftovers refuses what a schedule of another kind is made of.
func (c *checker) leftovers(at string, s *ScheduleSpec) {
	for _, f := range []struct {
		name  string
		given bool
		value any
		kinds []ScheduleKind
	}{
		{"expr", s.Expr != "", s.Expr, []ScheduleKind{ScheduleCron}},
		{"every", s.Every != 0, DurationText(s.Every), []ScheduleKind{ScheduleFixedRate, ScheduleFixedDelay, ScheduleDailyWindow}},
		{"anchor", !s.Anchor.IsZero(), nil, []ScheduleKind{ScheduleFixedRate, ScheduleFixedDelay}},
		{"at", !s.At.IsZero(), nil, []ScheduleKind{ScheduleOnce}},
		{"instants", len(s.Instants) > 0, nil, []ScheduleKind{ScheduleInstants}},
		{"windowFrom", s.WindowFrom != "", s.WindowFrom, []ScheduleKind{ScheduleDailyWindow}},
		{"windowTo", s.WindowTo != "", s.WindowTo, []ScheduleKind{ScheduleDailyWindow}},
		{"dstGap", s.Gap != "", s.Gap, []ScheduleKind{ScheduleCron, ScheduleDailyWindow}},
		// A window goes by elapsed time: an hour that comes twice is served twice.
		{"dstOverlap", s.Overlap != "", s.Overlap, []ScheduleKind{ScheduleCron}},
	} {
		c.check(!f.given || slices.Contains(f.kinds, s.Kind), at+f.name, f.value,
			"is for schedules of kind "+kindNames(f.kinds)+"; leave it out for "+string(s.Kind))
	}
}

func kindNames(kinds []ScheduleKind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return strings.Join(names, ", ")
}

// DurationText writes a duration without zero parts: "1h30m", "5m", "0s".
func DurationText(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// HasControl finds control characters, those that turn the reading direction, ends of
// lines and paragraphs, and what is no UTF-8.
func HasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) || r == unicode.ReplacementChar || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
	})
}

// WrongName says why a text is no name that people can read in lists and logs, and look
// for; "" for one that is.
func WrongName(text string, maxBytes int) string {
	trimmed := strings.TrimSpace(text)
	switch {
	case trimmed == "":
		return "must not be empty"
	case len(text) > maxBytes:
		return fmt.Sprintf("must have at most %d bytes", maxBytes)
	case HasControl(text):
		return "must not contain control characters or line breaks"
	case trimmed != text:
		return "must not begin or end with a space"
	}
	return ""
}

// WrongJobName is WrongName for a job that people make or declare.
func WrongJobName(name string) string {
	for _, kind := range []JobKind{JobCall, JobCallback, JobTimer} {
		if strings.HasPrefix(name, kind.NamePrefix()) {
			return fmt.Sprintf("must not begin with %q: the server gives such names to the jobs that the %ss of handlers belong to; choose another one", kind.NamePrefix(), kind)
		}
	}
	return WrongName(name, MaxNameLength)
}

// IsEmail reports whether the text is one mail address and nothing else.
func IsEmail(text string) bool {
	a, err := mail.ParseAddress(text)
	return err == nil && a.Address == text && a.Name == "" && len(text) <= MaxEmailLength && !HasControl(text)
}

// CheckLabelsAndAlert is the part of CheckSpec that needs nothing else to be right.
func CheckLabelsAndAlert(s *JobSpec) error {
	var c checker
	c.people(s)
	return c.err()
}

// people checks what is for people alone: labels, who owns the job, and who is told.
func (c *checker) people(s *JobSpec) {
	c.labels(s.Labels)
	c.check(s.Owner.Email == "" || IsEmail(s.Owner.Email), "body.owner.email", s.Owner.Email, NotAnEmail)
	c.alert(&s.Alert)
}

func (c *checker) labels(labels map[string]string) {
	c.check(len(labels) <= MaxLabels, "body.labels", nil, "must not be more than 32")
	keys := make([]string, 0, len(labels))
	for key := range labels {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		value := labels[key]
		if key == "" || len(key) > MaxLabelKey || strings.ContainsAny(key, ":= \t") || HasControl(key) {
			c.fail("body.labels", key, "keys have 1 to 63 bytes and no colon, equals sign, space or control character")
			continue
		}
		c.check(len(value) <= MaxNameLength && !HasControl(value), "body.labels."+key, nil, "values have at most 128 bytes and no control characters")
	}
}

func (c *checker) alert(a *Alert) {
	c.check(len(a.Emails) <= MaxEmails, "body.alert.emails", nil, "must not be more than 20")
	for _, e := range a.Emails {
		c.check(IsEmail(e), "body.alert.emails", e, NotAnEmail)
	}
	c.httpURL("body.alert.webhookUrl", a.WebhookURL)
}

// NotAnEmail is what is wrong with a text that IsEmail does not take.
const NotAnEmail = "is not a mail address such as ops@example.com"
