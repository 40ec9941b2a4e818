package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/carillon-sched/carillon/admin"
	"github.com/carillon-sched/carillon/internal/spelling"
)

// demoExecutor is the name under which the sample shop registers.
const demoExecutor = "sample-shop"

// demoDepartments are further executors in the process of the sample shop, each with the variable
// of its join token (examples/sample-shop/main.go).
var demoDepartments = map[string]string{
	"warehouse": "CARILLON_WAREHOUSE_TOKEN", "catalogue": "CARILLON_CATALOGUE_TOKEN", "back-office": "CARILLON_BACK_OFFICE_TOKEN",
}

// sampleWait is how long the first start waits for the jobs of the sample shop.
const sampleWait = 30 * time.Second

func newDemoCommand() *cobra.Command {
	var shop string
	var noHistory bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run an admin node on SQLite together with the sample shop",
		Long: `Runs an admin node on SQLite and, as a process of its own, the sample shop: an
application that embeds the SDK and does real work on its own orders database. It has
30 jobs. The first start imports a week of their runs, which are made up: they have the
cause "import" and were asked for by "sample data". --no-history leaves them out.
Everything is kept in --data; a second start goes on with it. Ctrl-C stops both.`,
		Example: "  carillon demo\n  carillon demo --data /tmp/demo --http 127.0.0.1:9000",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := serverConfig(cmd.ErrOrStderr(), cmd.Flags())
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return demo(ctx, cmd.OutOrStdout(), config, shop, !noHistory)
		},
	}
	serverFlags(cmd.Flags())
	// Requests in the log would push the password off the screen. The sample data stays out of the
	// folder of a server.
	for name, value := range map[string]string{"log-level": "warn", "data": "carillon-demo-data"} {
		flag := cmd.Flags().Lookup(name)
		flag.DefValue = value
		_ = flag.Value.Set(value)
	}
	cmd.Flags().StringVar(&shop, "shop", "", "the sample shop's program (default: sample-shop beside this program)")
	cmd.Flags().BoolVar(&noHistory, "no-history", false, "import no week of sample runs at the first start")
	return cmd
}

// demoState is what a second start needs: kept in a file only its owner reads.
type demoState struct {
	Password string `json:"password"`
	admin.Access
	// HistoryUntil is the end of the week of sample runs that is still to be imported. It is set
	// at the first start and cleared after the import, which can be repeated.
	HistoryUntil time.Time `json:"historyUntil,omitzero"`
}

func demo(ctx context.Context, out io.Writer, config admin.Config, shop string, history bool) error {
	shop, err := findShop(shop)
	if err != nil {
		return err
	}
	state, err := loadDemoState(config.DataDir, config.AdminPassword)
	if err != nil {
		return err
	}
	config.AdminPassword = state.Password
	release, err := lockSQLite(config)
	if err != nil {
		return err
	}
	defer release()
	node, err := admin.New(ctx, config)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	if err != nil {
		return asUsage(err)
	}
	if state.JoinToken == "" {
		if history {
			state.HistoryUntil = time.Now().UTC().Truncate(time.Second)
		}
		if state.Access, err = node.Provision(ctx, demoExecutor, slices.Sorted(maps.Keys(demoDepartments))...); err == nil {
			err = state.save(config.DataDir)
		}
		if err != nil {
			return errors.Join(err, node.Close())
		}
	}
	fmt.Fprintf(out, `
  Carillon is ready.

  web UI     %s
  user       admin
  password   %s
  executors  %s   (this is where applications connect)
  data       %s

  The sample shop registers now, with 30 jobs. One of them fires each minute.
  Your own first handler, in five minutes: docs/guide/handlers.md
  Ctrl-C stops everything; the next start goes on with the same data.
  The log tells of trouble only: --log-level info tells of what is done, too.

`, node.URL(), state.Password, node.ExecutorAddress(), config.DataDir)

	group, groupCtx := errgroup.WithContext(ctx)
	// The shop stops first, while the node still takes its results.
	nodeCtx, stopNode := context.WithCancel(context.WithoutCancel(ctx))
	defer stopNode()
	group.Go(func() error { return node.Run(nodeCtx) })
	group.Go(func() error {
		defer stopNode()
		return runShop(groupCtx, out, shop, config.DataDir, node, state)
	})
	group.Go(func() error { return importHistory(groupCtx, out, config.DataDir, node, state, sampleWait) })
	return group.Wait()
}

// importHistory imports the week of sample runs, unless an earlier start did. Without the jobs of
// the sample shop, such as with another program, there is none, and the demo goes on.
func importHistory(ctx context.Context, out io.Writer, dataDir string, node *admin.Admin, state *demoState, wait time.Duration) error {
	if state.HistoryUntil.IsZero() {
		return nil
	}
	waiting, cancel := context.WithTimeoutCause(ctx, wait, errors.New("they did not come in time: start the demo again to import the week"))
	defer cancel()
	runs, err := node.ImportSampleWeek(waiting, state.HistoryUntil)
	if ctx.Err() != nil {
		return nil // the next start goes on with it
	}
	if err != nil {
		fmt.Fprintf(out, "  There is no week of sample runs: %v\n\n", err)
		return nil
	}
	fmt.Fprintf(out, "  Imported %s of the last week. They are sample data: the shop did not run then.\n\n", spelling.Count(runs, "run", ""))
	state.HistoryUntil = time.Time{}
	return state.save(dataDir)
}

// runShop runs the application until ctx ends.
func runShop(ctx context.Context, out io.Writer, program, dataDir string, node *admin.Admin, state *demoState) error {
	cmd := exec.CommandContext(ctx, program, "--data", filepath.Join(dataDir, "shop"))
	cmd.Env = append(os.Environ(),
		"CARILLON_EXECUTOR_ADDRESSES="+node.ExecutorAddress(), "CARILLON_EXECUTOR_TOKEN="+state.JoinToken,
		"CARILLON_URL="+node.URL(), "CARILLON_API_KEY="+state.APIKey, "CARILLON_TIMER_KEY="+state.TimerKey)
	for name, variable := range demoDepartments {
		cmd.Env = append(cmd.Env, variable+"="+state.Others[name])
	}
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	// Its own process group: Ctrl-C reaches us alone, and we tell it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("the sample shop ended: %w", err)
}

func findShop(path string) (string, error) {
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return "", err
		}
		path = filepath.Join(filepath.Dir(self), demoExecutor)
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("the sample shop's program: %w (build it with make build, or name it with --shop)", err)
	}
	return path, nil
}

func demoStateFile(dir string) string { return filepath.Join(dir, "demo.json") }

// loadDemoState makes what is not there, with the password that is given.
func loadDemoState(dir, password string) (*demoState, error) {
	raw, err := os.ReadFile(demoStateFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		if password == "" {
			secret := make([]byte, 10)
			if _, err := rand.Read(secret); err != nil {
				return nil, err
			}
			password = hex.EncodeToString(secret)
		}
		state := &demoState{Password: password}
		return state, state.save(dir)
	}
	if err != nil {
		return nil, err
	}
	state := &demoState{}
	if err := json.Unmarshal(raw, state); err != nil {
		return nil, fmt.Errorf("%s: %w (remove it to begin anew)", demoStateFile(dir), err)
	}
	return state, nil
}

func (s *demoState) save(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(demoStateFile(dir), append(raw, '\n'), 0o600)
}
