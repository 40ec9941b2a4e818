package main

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/knadh/koanf/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/agent"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/settings"
	executor "github.com/carillon-sched/carillon/executor-sdk"
)

func newAgentCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run an executor without an application: scripts and HTTP calls, each off until it is allowed",
		Long: `Runs an executor whose handlers run scripts that the admin keeps and make HTTP
calls. Nothing is allowed here until a flag allows it, and nothing is allowed in
the admin until a platform administrator allows it for the tenant.

The join token comes from CARILLON_EXECUTOR_TOKEN or --token-file, never from a
flag: flags are seen by every user of the machine.`,
		Example: `  carillon agent --addresses admin:7070 --executor agents --token-file /etc/carillon/agent.token \
      --allow-scripts=shell,python --run-as carillon-scripts
  carillon agent --addresses admin:7070 --executor callers --allow-http='api.example.com,*.internal.example' --allow-http-net 10.1.0.0/16`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options, err := agentOptions(cmd)
			if err != nil {
				return cli.Fail(cli.ExitUsage, err)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			// Handlers go on after the signal, until the drain is over.
			a, err := agent.New(context.WithoutCancel(ctx), options)
			if err != nil {
				return cli.Fail(cli.ExitUsage, err)
			}
			return a.Run(ctx)
		},
	}
	agentFlags(cmd.Flags())
	return cmd
}

// agentFlags are the settings of an agent; each is also a CARILLON_ variable
// and a key of the --config file.
func agentFlags(f *pflag.FlagSet) {
	f.String("config", "", "YAML file with settings, by the flags' names")
	f.StringSlice("addresses", nil, "host:port of admin nodes (default: CARILLON_EXECUTOR_ADDRESSES)")
	f.String("executor", "", "name of the executor (default: CARILLON_EXECUTOR_NAME)")
	f.String("token-file", "", "file with its join token (default: CARILLON_EXECUTOR_TOKEN)")
	f.String("instance", "", "name of this process (default: the host's, and six digits made of the path of the journal's folder)")
	f.StringToString("labels", nil, "labels of this process, for routing, as zone=a,disk=ssd")
	f.Int("slots", 0, "runs at once, at most 64 (default: twice the processors, at least 4)")
	f.String("journal", "", "folder of the journal (default: ./carillon-journal/NAME)")
	settings.Span(f, "drain", executor.DefaultDrainTimeout, "how long runs may finish after SIGTERM")
	f.Bool("tls", false, "connect with TLS")
	f.String("tls-ca", "", "authorities that judge the admin's certificate (default: the system's)")
	f.StringSlice("allow-scripts", nil, "languages whose scripts may run: "+strings.Join(agent.Languages(), ", ")+" (default: none)")
	f.StringSlice("script-key", nil, "public keys, base64; scripts that none of them signed are refused (carillon script key)")
	f.String("run-as", "", "user that scripts run as; needs root (default: this process's own, unless it is root)")
	f.String("path", agent.DefaultPath, "PATH of scripts, where interpreters are looked for")
	f.StringSlice("env", nil, "variables of this process that scripts get and HTTP headers may name (default: none)")
	f.String("work-dir", "", "folder for the runs' own folders (default: below the system's temporary folder)")
	settings.Span(f, "limit-cpu", 0, "processor time of one process of a script (default: no limit)")
	f.String("limit-memory", "1GiB", "data of one process of a script; 0 = no limit")
	f.Int64("limit-files", agent.DefaultLimits.Files, "open files of one process of a script; 0 = no limit")
	f.String("limit-file-size", "1GiB", "size of a file that a script writes; 0 = no limit")
	f.Int64("limit-processes", agent.DefaultLimits.Processes, "processes and threads of the user that scripts run as; 0 = no limit")
	f.String("max-output", "8MiB", "how much of a script's output is logged")
	settings.Span(f, "kill-grace", 0, "between SIGTERM and SIGKILL (default: 5s)")
	f.StringSlice("allow-http", nil, "hosts that may be called, such as api.example.com, *.example.com:8443 or * (default: none)")
	f.StringSlice("allow-http-net", nil, "private networks that may be reached, for example 10.1.0.0/16 (default: none)")
	f.String("log-level", "info", "debug, info, warn or error")
	f.String("log-format", "text", "text or json")
}

func agentOptions(cmd *cobra.Command) (agent.Options, error) {
	k, err := settings.Load(cmd.Flags(), configFileOf(cmd.Flags()))
	if err != nil {
		return agent.Options{}, err
	}
	o := agent.Options{
		Executor: executor.Config{
			Name: k.String("executor"), Addresses: k.Strings("addresses"), InstanceName: k.String("instance"), Version: version,
			Labels: k.StringMap("labels"), Slots: k.Int("slots"), JournalDir: k.String("journal"), DrainTimeout: k.Duration("drain"),
		},
		Scripts: k.Strings("allow-scripts"), RunAs: k.String("run-as"), Path: k.String("path"), Env: k.Strings("env"), WorkDir: k.String("work-dir"),
		Limits:    agent.Limits{CPU: k.Duration("limit-cpu"), Files: k.Int64("limit-files"), Processes: k.Int64("limit-processes")},
		KillGrace: k.Duration("kill-grace"), HTTPHosts: k.Strings("allow-http"), Version: version,
	}
	if len(o.Executor.Labels) == 0 {
		o.Executor.Labels = nil // the SDK's own variable counts then
	}
	if ca := k.String("tls-ca"); ca != "" || k.Bool("tls") {
		o.Executor.TLS = &executor.TLS{CAFile: ca}
	}
	if path := k.String("token-file"); path != "" {
		token, err := os.ReadFile(path)
		if err != nil {
			return o, fmt.Errorf("token-file: %w", err)
		}
		o.Executor.Token = executor.Secret(strings.TrimSpace(string(token)))
	}
	if o.Logger, err = newLogger(cmd.ErrOrStderr(), k.String("log-level"), k.String("log-format")); err != nil {
		return o, err
	}
	return o, readAgentLists(k, &o)
}

// readAgentLists reads what needs more than its type.
func readAgentLists(k *koanf.Koanf, o *agent.Options) (err error) {
	for flag, size := range map[string]*int64{"limit-memory": &o.Limits.Memory, "limit-file-size": &o.Limits.FileSize, "max-output": &o.MaxOutput} {
		if *size, err = agent.ParseSize(k.String(flag)); err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
	}
	for _, text := range k.Strings("allow-http-net") {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("allow-http-net: %q is no network: %w", text, err)
		}
		o.HTTPNetworks = append(o.HTTPNetworks, network)
	}
	for _, text := range k.Strings("script-key") {
		key, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(key) != ed25519.PublicKeySize {
			return fmt.Errorf("script-key: %q is no public key as `carillon script key` prints it", text)
		}
		o.ScriptKeys = append(o.ScriptKeys, key)
	}
	return nil
}
