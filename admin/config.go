package admin

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/hotset"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/internal/egress"
)

// Config is everything a node has to know. The zero value with a DataDir is a
// working single node on SQLite that listens on loopback.
type Config struct {
	// DataDir holds the SQLite file, the node's signing key and the sealing
	// key. It is made with mode 0700 when it is missing.
	DataDir string
	// Database is "" for SQLite in DataDir, "sqlite:PATH", or
	// "mysql://user:password@host:port/name" (also a plain driver DSN with a
	// "mysql:" prefix).
	Database string
	// DatabasePassword is the password of a mysql:// Database that has none in it.
	DatabasePassword string
	// HotStore is a Redis that names the timers that are due, so that the database
	// need not be searched for them: redis://user:password@host:port/db, or rediss://.
	// Empty: there is none. Whatever becomes of it, no timer is lost or doubled.
	HotStore string
	// DatabaseWait is how long a node that starts waits for a database that does
	// not answer before it gives up; 0 = as long as it takes, negative = not at all.
	DatabaseWait time.Duration
	// AllowMultiWriter lets the node work with a database of several writers,
	// which can lose updates: a commit may be undone by another writer's.
	AllowMultiWriter bool
	// NoFire lets the node serve pages and API of a copied database and do nothing else. It
	// starts no run, admits no executor, makes no call, sends no alert and deletes nothing.
	NoFire bool
	// NodeName is shown in the UI and sent to executors; default: the host's
	// name and the HTTP port.
	NodeName string
	// NodeNumbers are those that this cluster's nodes may have in their ids, such as
	// 17-32; empty = 1-1023. Cells have different ones.
	NodeNumbers string
	// HTTPAddress serves UI and API; default 127.0.0.1:8080.
	HTTPAddress string
	// MetricsAddress serves /metrics alone, in the clear; without a host it is
	// loopback. Empty: /metrics is on HTTPAddress, for programs of this machine alone.
	MetricsAddress string
	// HTTPLimits bound what browsers and programs can take of this node.
	HTTPLimits HTTPLimits
	// ExecutorAddress is where executors connect; default 127.0.0.1:7070.
	ExecutorAddress string
	// AdvertiseAddress is what executors are told to dial; default: the
	// address that the listener has.
	AdvertiseAddress string
	// BaseURL is the address that people open, such as https://example.com/carillon. It
	// begins the links in mails and webhooks. Its path is where pages, API,
	// cookies and the doors of add-ons are. The default is HTTPAddress with its scheme.
	BaseURL string
	// TLS for the UI and API, and for executors; empty = plain.
	TLSCertFile, TLSKeyFile                 string
	ExecutorTLSCertFile, ExecutorTLSKeyFile string
	// TrustedProxies are the networks whose X-Forwarded-For, X-Real-IP and
	// X-Forwarded-Proto the UI and API believe; default: none.
	TrustedProxies []netip.Prefix
	// SecureCookies is "auto" (default: when a request came over TLS, or a trusted
	// proxy says so), "always" or "never".
	SecureCookies string
	// AddOns are the settings of the add-ons by name (AddOnSettings).
	AddOns Settings
	// ExecutorCertificates is "off" (default), "optional" or "required": whether
	// executors get certificates from the cluster's own authority, and whether a
	// session needs one. It needs TLS for executors.
	ExecutorCertificates string
	// ExecutorLimits bound what executors can take of this node.
	ExecutorLimits ExecutorLimits
	// ExecutorRecycle is the most that an executor's session lasts before it is
	// replaced by a fresh one; default 24 h, at least a minute.
	ExecutorRecycle time.Duration
	// ExecutorIdleBeats is how many heartbeats in a second are wanted of
	// instances that run nothing; 0 = gateway.DefaultIdleBeats.
	ExecutorIdleBeats int
	// InsecureBind allows plain listeners on addresses other than loopback.
	InsecureBind bool
	// AdminPassword is the first administrator's password; default: a random
	// one, see Admin.FirstLogin. Used only while there is no user at all.
	AdminPassword string
	// ProvisionFile is a file, or a folder of files, with documents that New makes where they
	// are missing; empty: none. A file with mistakes is a *ProvisionError.
	ProvisionFile string
	// SealingKeyFile holds the key that seals secrets in the database;
	// default: a file in DataDir, made at the first start. Nodes that share a
	// database need the same key.
	SealingKeyFile string
	// RunRetention is how long ended runs and alerts are kept, and jobs after they
	// were deleted; default 90 days,
	// at least one day.
	RunRetention time.Duration
	// TimerRetention is how long ended timers are kept, and so how long a repeated
	// request is known; default 72 hours, at least one hour.
	TimerRetention time.Duration
	// Statistics bounds what is known of ends of runs.
	Statistics StatisticsConfig
	// LogRetention is how long handlers' logs are kept; default 30 days. Logs
	// never outlive their run.
	LogRetention time.Duration
	// Logs bounds what handlers' logs may fill.
	Logs    LogsConfig
	Webhook WebhookConfig
	// DrainDelay is how long a node that was told to stop still works as before,
	// but for its readiness, so that balancers stop sending requests; default 0.
	DrainDelay time.Duration
	// UI makes the handler of the pages from the path of BaseURL (webui.Handler). Nil means no pages.
	UI     func(path string) http.Handler
	Logger *slog.Logger
	// Version is shown in the UI and to executors' operators.
	Version string
}

// HTTPLimits bound connections to HTTPAddress, and requests that wait or stream;
// 0 = default.
type HTTPLimits struct {
	Connections int // default 4,000
	// PerAddress is of one IPv4 address or IPv6 network of 64 bits, but not of
	// loopback and TrustedProxies; default 1,000.
	PerAddress     int
	WaitsPerUser   int // of a user or an API key; default 500
	WaitsPerTenant int // default 2,000
}

// ExecutorLimits bound connections of executors to one node; 0 = default.
type ExecutorLimits struct {
	Sessions          int // default 20,000
	SessionsPerTenant int // default 10,000
	// PerAddress bounds all connections from one IPv4 address or IPv6 network of
	// 64 bits; default 12,000.
	PerAddress int
}

// Values of Config.ExecutorCertificates.
const (
	CertificatesOff      = "off"
	CertificatesOptional = "optional"
	CertificatesRequired = "required"
)

func (c Config) checkExecutors() error {
	switch c.ExecutorCertificates {
	case CertificatesOff:
	case CertificatesOptional, CertificatesRequired:
		if c.ExecutorTLSCertFile == "" {
			return errors.New("executor certificates: they need TLS for executors; give its certificate and key")
		}
	default:
		return fmt.Errorf("executor certificates: %q is none of off, optional, required", c.ExecutorCertificates)
	}
	if c.ExecutorIdleBeats < 0 {
		return fmt.Errorf("heartbeats of idle executors: %d is negative", c.ExecutorIdleBeats)
	}
	if c.ExecutorRecycle < 0 || c.ExecutorRecycle > 0 && c.ExecutorRecycle < time.Minute {
		return fmt.Errorf("executor recycling: %s is less than a minute", c.ExecutorRecycle)
	}
	if l := c.ExecutorLimits; l.Sessions < 0 || l.SessionsPerTenant < 0 || l.PerAddress < 0 {
		return errors.New("executor limits: must not be negative")
	}
	if l := c.HTTPLimits; l.Connections < 0 || l.PerAddress < 0 || l.WaitsPerUser < 0 || l.WaitsPerTenant < 0 {
		return errors.New("HTTP limits: must not be negative")
	}
	return nil
}

// LogsConfig bounds what handlers' logs may fill: 0 means the default, negative
// no limit. What is over is not kept, and a line in the log says how much.
type LogsConfig struct {
	// RunLines and RunBytes are of one run, all its attempts together, before
	// compression; default 2,000,000 lines and 256 MiB.
	RunLines, RunBytes int64
	// TenantDayBytes is of all runs of a tenant in a day (UTC), before
	// compression; default 4 GiB.
	TenantDayBytes int64
	// TenantBytes is what the logs of a tenant may take in the database, after
	// compression, before the oldest go; default 10 GiB.
	TenantBytes int64
}

func (l LogsConfig) withDefaults() LogsConfig {
	for field, value := range map[*int64]int64{&l.RunLines: 2_000_000, &l.RunBytes: 256 << 20, &l.TenantDayBytes: 4 << 30, &l.TenantBytes: 10 << 30} {
		if *field == 0 {
			*field = value
		}
	}
	return l
}

// WebhookConfig says where webhooks may go.
type WebhookConfig struct {
	// AllowPrefixes are private networks that webhooks may reach all the same.
	AllowPrefixes []netip.Prefix
}

// StatisticsConfig bounds how long it is known how runs have ended, whether they are
// kept or not; each run counts once in a minute, then in an hour, and then in a day.
type StatisticsConfig struct {
	// Minutes is how long it is known by minute; default 48 hours, at least 1 hour.
	Minutes time.Duration
	// Hours is how long it is known by hour; default 60 days, at least 1 day.
	Hours time.Duration
	// Days is how long it is known by day; default 3 years, at least 2 days.
	Days time.Duration
	// Off: ends are not counted. All nodes of a cluster should have the same.
	Off bool
}

func (c *StatisticsConfig) fill() error {
	const day = 24 * time.Hour
	for _, kept := range []struct {
		name           string
		keep           *time.Duration
		otherwise, min time.Duration
	}{{"minutes", &c.Minutes, 48 * time.Hour, time.Hour}, {"hours", &c.Hours, 60 * day, day}, {"days", &c.Days, 3 * 365 * day, 2 * day}} {
		if *kept.keep == 0 {
			*kept.keep = kept.otherwise
		}
		if *kept.keep < kept.min {
			return fmt.Errorf("statistics by %s: %s is less than %s", kept.name, *kept.keep, kept.min)
		}
	}
	if c.Minutes > c.Hours || c.Hours > c.Days {
		return fmt.Errorf("statistics: kept by minute for %s, by hour for %s and by day for %s: each must be no longer than the next", c.Minutes, c.Hours, c.Days)
	}
	return nil
}

func (c *StatisticsConfig) kept() store.StatisticsKept {
	return store.StatisticsKept{Minutes: c.Minutes, Hours: c.Hours, Days: c.Days}
}

// ConfigError is a mistake in a Config. A new start does not heal it.
type ConfigError struct{ Err error }

func (e *ConfigError) Error() string { return e.Err.Error() }

func (e *ConfigError) Unwrap() error { return e.Err }

// withDefaults fills what is empty and checks the rest. An error is a *ConfigError.
func (c Config) withDefaults() (Config, error) {
	c, err := c.complete()
	if err != nil {
		return c, &ConfigError{err}
	}
	return c, nil
}

func (c Config) complete() (Config, error) {
	if c.DataDir == "" {
		return c, errors.New("data directory: must be set")
	}
	setDefault(&c.HTTPAddress, "127.0.0.1:8080")
	setDefault(&c.ExecutorAddress, "127.0.0.1:7070")
	setDefault(&c.Database, "sqlite:"+filepath.Join(c.DataDir, "carillon.db"))
	setDefault(&c.SealingKeyFile, filepath.Join(c.DataDir, "sealing.key"))
	setDefault(&c.ExecutorCertificates, CertificatesOff)
	setDefault(&c.Version, "dev")
	if _, err := domain.ParseNodeNumbers(c.NodeNumbers); err != nil {
		return c, err
	}
	if host, port, err := net.SplitHostPort(c.MetricsAddress); c.MetricsAddress != "" && err != nil {
		return c, fmt.Errorf("address for metrics: %w", err)
	} else if host == "" && c.MetricsAddress != "" {
		c.MetricsAddress = net.JoinHostPort("127.0.0.1", port)
	}
	c.Logs = c.Logs.withDefaults()
	if c.RunRetention == 0 {
		c.RunRetention = 90 * 24 * time.Hour
	}
	if c.LogRetention == 0 {
		c.LogRetention = min(30*24*time.Hour, c.RunRetention)
	}
	if c.TimerRetention == 0 {
		c.TimerRetention = 72 * time.Hour
	}
	if c.TimerRetention < time.Hour {
		return c, fmt.Errorf("timer retention: %s is less than an hour", c.TimerRetention)
	}
	if err := c.Statistics.fill(); err != nil {
		return c, err
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	for name, keep := range map[string]time.Duration{"run retention": c.RunRetention, "log retention": c.LogRetention} {
		if keep < 24*time.Hour {
			return c, fmt.Errorf("%s: %s is less than a day", name, keep)
		}
	}
	var err error
	if c.BaseURL, _, err = web.CheckBaseURL(c.BaseURL, addOnPaths()...); err != nil {
		return c, err
	}
	c.LogRetention = min(c.LogRetention, c.RunRetention) // logs never outlive their run
	if c.HotStore != "" {
		if err := hotset.CheckURL(c.HotStore); err != nil {
			return c, err
		}
	}
	if (c.TLSCertFile == "") != (c.TLSKeyFile == "") || (c.ExecutorTLSCertFile == "") != (c.ExecutorTLSKeyFile == "") {
		return c, errors.New("tls: certificate and key have to be given together")
	}
	if err := c.checkExecutors(); err != nil {
		return c, err
	}
	switch setDefault(&c.SecureCookies, "auto"); c.SecureCookies {
	case "auto", "always", "never":
	default:
		return c, fmt.Errorf("secure cookies: %q is none of auto, always, never", c.SecureCookies)
	}
	if c.AddOns, err = addon.Complete(addOns(), c.AddOns); err != nil {
		return c, err
	}
	if err := c.checkBind("UI and API", c.HTTPAddress, c.TLSCertFile != ""); err != nil {
		return c, err
	}
	return c, c.checkBind("executors", c.ExecutorAddress, c.ExecutorTLSCertFile != "")
}

// path is the place of the node on its host, such as /carillon. Empty means the root.
func (c Config) path() string {
	_, path, err := web.CheckBaseURL(c.BaseURL, addOnPaths()...)
	if err != nil {
		return "" // withDefaults has refused it
	}
	return path
}

func (c Config) makeDataDir() error {
	if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return nil
}

func setDefault(field *string, value string) {
	if *field == "" {
		*field = value
	}
}

// checkBind refuses plain listeners that others can reach: passwords and
// tokens would cross the network in the clear.
func (c Config) checkBind(what, address string, secure bool) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("address for %s: %w", what, err)
	}
	if secure || c.InsecureBind || egress.Loopback(host) {
		return nil
	}
	return fmt.Errorf("address for %s: %s can be reached from outside without TLS; give a certificate and key, "+
		"bind to loopback, or allow it with --insecure-bind (for example behind a proxy that ends TLS)", what, address)
}

// loadTLS reads a certificate, or returns nil when none is configured.
func loadTLS(certFile, keyFile string) (*tls.Config, error) {
	if certFile == "" {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}, nil
}
