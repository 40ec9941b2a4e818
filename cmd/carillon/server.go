package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/knadh/koanf/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/carillon-sched/carillon/admin"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/settings"
	"github.com/carillon-sched/carillon/internal/egress"
	webui "github.com/carillon-sched/carillon/web-ui"
)

func newServerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Run an admin node: scheduler, API and web UI",
		Example: `  carillon server --data /var/lib/carillon
  carillon server --data /var/lib/carillon --database mysql://carillon@db:3306/carillon --database-password-file /etc/carillon/db.password --sealing-key-file /etc/carillon/sealing.key`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := serverConfig(cmd.ErrOrStderr(), cmd.Flags())
			if err != nil {
				return err
			}
			limitMemory(os.DirFS("/"))
			release, err := lockSQLite(config)
			if err != nil {
				return err
			}
			defer release()
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			node, err := admin.New(ctx, config)
			if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				return nil // it was told to stop while it waited for its database
			}
			if err != nil {
				return asUsage(err)
			}
			printFirstLogin(cmd.ErrOrStderr(), node)
			group, ctx := errgroup.WithContext(ctx)
			if profiles, _ := cmd.Flags().GetString("profiles"); profiles != "" { // from wherever it was given
				group.Go(func() error { return admin.ServeProfiles(ctx, profiles) })
			}
			group.Go(func() error { return node.Run(ctx) })
			return group.Wait()
		},
	}
	serverFlags(cmd.Flags())
	cmd.Flags().String("profiles", "", "address that serves pprof profiles of this process, loopback only, for example 127.0.0.1:6060 (default: none)")
	return cmd
}

// asUsage gives mistakes in settings and in the provision file the exit code of a wrong command
// line: to try again changes nothing.
func asUsage(err error) error {
	_, setting := errors.AsType[*admin.ConfigError](err)
	_, file := errors.AsType[*admin.ProvisionError](err)
	if setting || file {
		return cli.Fail(cli.ExitUsage, err)
	}
	return err
}

// printFirstLogin shows the password that exists nowhere else.
func printFirstLogin(w io.Writer, node *admin.Admin) {
	if login := node.FirstLogin(); login != nil {
		fmt.Fprintf(w, "\nFirst start. Sign in at %s\n  user      %s\n  password  %s\nThis password is shown once and has to be changed at the first sign-in.\n\n",
			node.URL(), login.Username, login.Password)
	}
}

// serverFlags are the settings of a node; each is also a CARILLON_ variable
// and a key of the --config file.
func serverFlags(f *pflag.FlagSet) {
	f.String("config", "", "YAML file with settings, by the flags' names")
	f.String("data", "carillon-data", "folder for the SQLite file and this node's keys")
	f.String("database", "", "sqlite:PATH or mysql://user:password@host:port/name (default: SQLite in --data)")
	f.String("database-password-file", "", "file with the password of a mysql:// database that has none in it (default: CARILLON_DATABASE_PASSWORD)")
	f.String("hot-store", "", "Redis that names the timers that are due, redis://user:password@host:port/db or rediss:// (default: none, the database is searched for them)")
	settings.Span(f, "run-retention", 0, "how long ended runs and alerts are kept, and deleted jobs and scripts with their revisions (default 2160h, 90 days)")
	settings.Span(f, "timer-retention", 0, "how long ended timers are kept, and with that a repeated request for one is known (default 72h)")
	settings.Span(f, "statistics-minutes", 0, "how long it is known by minute how runs have ended (default 48h)")
	settings.Span(f, "statistics-hours", 0, "likewise by hour (default 1440h, 60 days)")
	settings.Span(f, "statistics-days", 0, "likewise by day (default 26280h, 3 years)")
	f.Bool("no-statistics", false, "do not count how runs end")
	settings.Span(f, "database-wait", 0, "how long a node that starts waits for a database that does not answer before it gives up (default 0, as long as it takes; -1s: not at all)")
	f.Bool("allow-multi-writer", false, "work with group replication of several primaries, and with several servers of a Galera cluster at once, which can lose updates")
	f.Bool("no-fire", false, "serve UI and API of a copied database and do nothing else: no run starts, no executor is admitted, nobody is called or told")
	f.String("node", "", "name of this node (default: host name and port)")
	f.String("node-numbers", "", "numbers that nodes of this cluster have in their ids, for example 17-32, where there are cells, each with its own (default 1-1023)")
	f.String("http", "127.0.0.1:8080", "address of web UI and API")
	f.Int("http-max", 0, "connections to web UI and API (default 2000)")
	f.Int("http-max-per-address", 0, "of one address, but not of loopback and --trusted-proxies (default 500)")
	f.Int("http-waits-per-user", 0, "requests of one user or API key that wait or stream at once (default 500)")
	f.Int("http-waits-per-tenant", 0, "of one tenant (default 2000)")
	f.String("metrics-listen", "", "address that serves /metrics alone, without TLS, for example :9100, which is on loopback, or 10.0.0.5:9100 (default: none, /metrics is on --http and for this machine alone)")
	f.String("executors", "127.0.0.1:7070", "address that executors connect to")
	f.String("advertise", "", "address that executors are told to dial (default: as --executors)")
	f.String("base-url", "", "address that people open, for example https://example.com/carillon; its path is where the node is, and links in mails and webhooks begin with it (default: the address of the web UI)")
	f.String("tls-cert", "", "certificate of web UI and API")
	f.String("tls-key", "", "its key")
	f.StringSlice("trusted-proxies", nil, "networks of proxies whose X-Forwarded-For, X-Real-IP and X-Forwarded-Proto are believed, for example 10.1.0.0/16 (default: none)")
	f.String("secure-cookies", "auto", "cookies for TLS only: auto (when the request came over TLS, or a trusted proxy says so), always or never")
	f.String("executors-tls-cert", "", "certificate of the executors' port")
	f.String("executors-tls-key", "", "its key")
	f.String("executor-certificates", "off", "certificates for executors from the cluster's own authority, over TLS: off, optional or required")
	f.Int("executors-max", 0, "executor sessions of this node (default 20000)")
	f.Int("executors-max-per-tenant", 0, "executor sessions of one tenant (default 10000)")
	f.Int("executors-max-per-address", 0, "connections to the executors' port from one address (default 12000)")
	f.Int("executors-idle-heartbeats", 0, "heartbeats in a second that are wanted of instances that run nothing; more instances beat less often (default 150)")
	settings.Span(f, "executors-recycle", 0, "how long an executor's session lasts at most before a fresh one replaces it (default 24h)")
	f.Bool("insecure-bind", false, "allow addresses other than loopback without TLS")
	f.String("admin-password-file", "", "file with the first administrator's password; used only while there is no user (default: CARILLON_ADMIN_PASSWORD, or a random one)")
	f.String("provision", "", "file or folder with the documents to make where they are missing (docs/guide/provision.md)")
	f.String("sealing-key-file", "", "key that seals secrets in the database; nodes of one database share it (default: in --data)")
	settings.Span(f, "log-retention", 0, "how long handlers' logs are kept (default 720h, 30 days)")
	f.Int64("log-run-lines", 0, "lines of one run's log that are kept (default 2,000,000; -1 = all)")
	f.Int64("log-run-bytes", 0, "bytes of one run's log that are kept, before compression (default 256 MiB; -1 = all)")
	f.Int64("log-day-bytes", 0, "bytes that a tenant's runs may log in a day, before compression (default 4 GiB; -1 = any number)")
	f.Int64("log-bytes", 0, "bytes that a tenant's logs take in the database before the oldest go (default 10 GiB; -1 = any number)")
	f.StringSlice("webhook-allow", nil, "private networks that webhooks may reach, for example 10.1.0.0/16")
	settings.Span(f, "drain-delay", 0, "how long a node that was told to stop serves on while /readyz says no, so that balancers let go of it (default 0)")
	f.String("log-level", "info", "debug, info, warn or error")
	f.String("log-format", "text", "text or json")
	for _, s := range admin.AddOnSettings() {
		switch s.Kind {
		case admin.ListSetting:
			f.StringSlice(s.Name, nil, s.Usage)
		case admin.NumberSetting:
			n, _ := strconv.Atoi(s.Default) // none: 0
			f.Int(s.Name, n, s.Usage)
		case admin.DurationSetting:
			d, _ := time.ParseDuration(s.Default) // none: 0
			settings.Span(f, s.Name, d, s.Usage)
		default:
			f.String(s.Name, s.Default, s.Usage)
		}
	}
}

// addOnSettings reads the settings of the add-ons.
func addOnSettings(k *koanf.Koanf) (_ admin.Settings, err error) {
	out := admin.Settings{}
	for _, s := range admin.AddOnSettings() {
		value := k.String(s.Name)
		switch s.Kind {
		case admin.ListSetting:
			out[s.Name] = k.Strings(s.Name)
			continue
		case admin.SecretSetting:
			if value, err = secretSetting(k, s.Name); err != nil {
				return nil, err
			}
		}
		out[s.Name] = []string{value}
	}
	return out, nil
}

// someServerFlags gives a command those of the server's flags that it uses. It
// returns all of them, with which the server's own file can be read.
func someServerFlags(cmd *cobra.Command, names ...string) *pflag.FlagSet {
	all := newServerCommand().Flags()
	for _, name := range names {
		cmd.Flags().AddFlag(all.Lookup(name))
	}
	return all
}

// serverSettings layers flags, environment and the file of --config.
func serverSettings(flags *pflag.FlagSet) (*koanf.Koanf, error) {
	return settings.Load(flags, configFileOf(flags))
}

func configFileOf(flags *pflag.FlagSet) string {
	path, _ := flags.GetString("config")
	if path == "" {
		path = os.Getenv(settings.Variable("config"))
	}
	return path
}

// serverConfig reads the settings of a node. A mistake in them has the exit code of a wrong
// command line.
func serverConfig(stderr io.Writer, flags *pflag.FlagSet) (admin.Config, error) {
	config, err := readServerConfig(stderr, flags)
	if err != nil {
		return admin.Config{}, cli.Fail(cli.ExitUsage, err)
	}
	return config, nil
}

func readServerConfig(stderr io.Writer, flags *pflag.FlagSet) (admin.Config, error) {
	k, err := serverSettings(flags)
	if err != nil {
		return admin.Config{}, err
	}
	logger, err := newLogger(stderr, k.String("log-level"), k.String("log-format"))
	if err != nil {
		return admin.Config{}, err
	}
	for _, name := range settings.Links(flags) {
		logger.Warn("a variable is not taken as a setting: Kubernetes made it of a service", "variable", name, "remedy", linkRemedy)
	}
	config := admin.Config{
		DataDir: k.String("data"), Database: k.String("database"), HotStore: k.String("hot-store"), DatabaseWait: k.Duration("database-wait"), AllowMultiWriter: k.Bool("allow-multi-writer"), NoFire: k.Bool("no-fire"), NodeName: k.String("node"), NodeNumbers: k.String("node-numbers"),
		HTTPAddress: k.String("http"), MetricsAddress: k.String("metrics-listen"), ExecutorAddress: k.String("executors"),
		AdvertiseAddress: k.String("advertise"), BaseURL: k.String("base-url"),
		TLSCertFile: k.String("tls-cert"), TLSKeyFile: k.String("tls-key"),
		ExecutorTLSCertFile: k.String("executors-tls-cert"), ExecutorTLSKeyFile: k.String("executors-tls-key"),
		ExecutorCertificates: k.String("executor-certificates"), ExecutorRecycle: k.Duration("executors-recycle"),
		ExecutorIdleBeats: k.Int("executors-idle-heartbeats"),
		HTTPLimits: admin.HTTPLimits{
			Connections: k.Int("http-max"), PerAddress: k.Int("http-max-per-address"),
			WaitsPerUser: k.Int("http-waits-per-user"), WaitsPerTenant: k.Int("http-waits-per-tenant"),
		},
		ExecutorLimits: admin.ExecutorLimits{
			Sessions: k.Int("executors-max"), SessionsPerTenant: k.Int("executors-max-per-tenant"), PerAddress: k.Int("executors-max-per-address"),
		},
		InsecureBind: k.Bool("insecure-bind"), SealingKeyFile: k.String("sealing-key-file"), ProvisionFile: k.String("provision"),
		RunRetention:   k.Duration("run-retention"),
		TimerRetention: k.Duration("timer-retention"),
		Statistics: admin.StatisticsConfig{
			Minutes: k.Duration("statistics-minutes"), Hours: k.Duration("statistics-hours"), Days: k.Duration("statistics-days"), Off: k.Bool("no-statistics"),
		},
		LogRetention: k.Duration("log-retention"), UI: webui.Handler, Logger: logger, Version: version,
		DrainDelay: k.Duration("drain-delay"),
	}
	config.Logs = admin.LogsConfig{
		RunLines: k.Int64("log-run-lines"), RunBytes: k.Int64("log-run-bytes"),
		TenantDayBytes: k.Int64("log-day-bytes"), TenantBytes: k.Int64("log-bytes"),
	}
	// Secrets are no flags: flags are seen by every user of the machine.
	if config.AdminPassword, err = secretSetting(k, "admin-password-file"); err != nil {
		return admin.Config{}, err
	}
	if config.DatabasePassword, err = databasePassword(k); err != nil {
		return admin.Config{}, err
	}
	if config.AddOns, err = addOnSettings(k); err != nil {
		return admin.Config{}, err
	}
	config.SecureCookies = k.String("secure-cookies")
	if config.TrustedProxies, err = networks(k, "trusted-proxies"); err != nil {
		return admin.Config{}, err
	}
	config.Webhook.AllowPrefixes, err = networks(k, "webhook-allow")
	return config, err
}

const linkRemedy = "write enableServiceLinks: false into the pod's specification; give the setting as a flag or in the file of --config"

// networks reads a list of networks. An address alone is one too.
func networks(k *koanf.Koanf, setting string) ([]netip.Prefix, error) {
	out, err := egress.ParseNetworks(k.Strings(setting))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	return out, nil
}

func databasePassword(k *koanf.Koanf) (string, error) {
	return secretSetting(k, "database-password-file")
}

// secretSetting reads a secret from the file that a setting names, or else from the variable
// of its name without -file.
func secretSetting(k *koanf.Koanf, file string) (string, error) {
	path := k.String(file)
	if path == "" {
		return os.Getenv(settings.Variable(strings.TrimSuffix(file, "-file"))), nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return string(trimNewline(raw)), nil
}

func trimNewline(b []byte) []byte {
	for len(b) > 0 && (b[len(b)-1] == '\n' || b[len(b)-1] == '\r') {
		b = b[:len(b)-1]
	}
	return b
}

func newLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("log-level: %q is none of debug, info, warn, error", level)
	}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: l})), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l})), nil
	default:
		return nil, fmt.Errorf("log-format: %q is neither text nor json", format)
	}
}

func newMigrateCommand() *cobra.Command {
	var dryRun bool
	var flags *pflag.FlagSet
	cmd := &cobra.Command{
		Use:     "migrate",
		Short:   "Bring the database's tables up to date (server does it at start too)",
		Example: "  carillon migrate --dry-run --database 'mysql://…'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := serverConfig(cmd.ErrOrStderr(), flags)
			if err != nil {
				return err
			}
			return migrate(cmd.Context(), cmd.OutOrStdout(), config, dryRun)
		},
	}
	flags = someServerFlags(cmd, "config", "data", "database", "database-password-file", "log-level", "log-format")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the SQL that would run, change nothing")
	return cmd
}

func migrate(ctx context.Context, w io.Writer, config admin.Config, dryRun bool) error {
	if !dryRun {
		return asUsage(admin.Migrate(ctx, config))
	}
	pending, err := admin.PendingSQL(ctx, config)
	if err != nil {
		return asUsage(err)
	}
	if pending == "" {
		pending = "-- the database is up to date\n"
	}
	_, err = io.WriteString(w, pending)
	return err
}
