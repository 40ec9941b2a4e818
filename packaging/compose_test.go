//go:build proof && linux

package packaging

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/testenv"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// composition is compose.yaml; fields that are not here are not used there.
type composition struct {
	Name       string
	Services   map[string]service
	Volumes    map[string]struct{}
	Configs    map[string]struct{ File string }
	Secrets    map[string]struct{ File string }
	Extensions map[string]yaml.Node `yaml:",inline"`
}

type service struct {
	Image       string
	Build       struct{ Context, Dockerfile, Target string }
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	SecurityOpt []string `yaml:"security_opt"`
	Restart     string
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	Environment map[string]string
	Healthcheck struct {
		Test              []string
		Interval, Timeout string
		StartPeriod       string `yaml:"start_period"`
		Retries           int
	}
	StopGracePeriod string `yaml:"stop_grace_period"`
	Configs         []struct{ Source, Target string }
	Volumes         []string
	Secrets         []string
	Ports           []string
}

func readComposition(t *testing.T) (c composition) {
	t.Helper()
	file, err := os.Open("compose.yaml")
	require.NoError(t, err)
	defer file.Close()
	in := yaml.NewDecoder(file)
	in.KnownFields(true)
	require.NoError(t, in.Decode(&c))
	for field := range c.Extensions {
		require.True(t, strings.HasPrefix(field, "x-"), field)
	}
	return c
}

// makeSecrets runs secrets.sh, and returns what is in its folder.
func makeSecrets(t *testing.T, folder string) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "./secrets.sh", folder)
	cmd.Env = append(os.Environ(), "CARILLON="+program)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	secrets := map[string]string{}
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(folder, e.Name()))
		require.NoError(t, err)
		secrets[e.Name()] = strings.TrimSpace(string(raw))
	}
	return secrets
}

// TestTheCompositionIsSound: what it names is there, and nothing is given away.
func TestTheCompositionIsSound(t *testing.T) {
	c := readComposition(t)
	secrets := makeSecrets(t, filepath.Join(t.TempDir(), "secrets"))
	require.ElementsMatch(t, slices.Collect(maps.Keys(c.Secrets)), slices.Collect(maps.Keys(secrets)))
	for name, s := range c.Secrets {
		require.Equal(t, "secrets/"+name, s.File)
	}
	for name, config := range c.Configs {
		require.FileExists(t, config.File, name)
	}
	help, err := exec.CommandContext(t.Context(), program, "server", "--help").Output()
	require.NoError(t, err)
	volumes := map[string]bool{}
	for name, s := range c.Services {
		for _, secret := range s.Secrets {
			require.Contains(t, c.Secrets, secret, name)
		}
		for _, config := range s.Configs {
			require.Contains(t, c.Configs, config.Source, name)
		}
		for _, v := range s.Volumes {
			volume, _, _ := strings.Cut(v, ":")
			require.Contains(t, c.Volumes, volume, name)
			volumes[volume] = true
		}
		for other := range s.DependsOn {
			require.Contains(t, c.Services, other, name)
			require.NotEmpty(t, c.Services[other].Healthcheck.Test, "%s waits until %s is healthy", name, other)
		}
		for _, port := range s.Ports {
			require.True(t, strings.HasPrefix(port, "127.0.0.1:"), "%s publishes %s", name, port)
		}
		for variable, value := range s.Environment {
			path, isFile := strings.CutPrefix(value, "/run/secrets/")
			require.Equal(t, isFile, strings.HasSuffix(variable, "_FILE") && !strings.HasPrefix(value, "/keys/"), "%s: %s", name, variable)
			if isFile {
				require.Contains(t, s.Secrets, path, name)
			}
		}
		require.Contains(t, s.SecurityOpt, "no-new-privileges:true", name)
		if s.Build.Target == "" {
			continue // somebody else's image
		}
		require.True(t, s.ReadOnly, name)
		require.Equal(t, []string{"ALL"}, s.CapDrop, name)
		require.Equal(t, "65532:65532", readImage(t, s.Build.Target).user, name)
		require.FileExists(t, filepath.Join(s.Build.Context, s.Build.Dockerfile))
		if s.Build.Target == "admin" {
			for variable := range s.Environment { // one that is no setting does nothing
				setting, ours := strings.CutPrefix(variable, "CARILLON_")
				require.True(t, ours, variable)
				require.Contains(t, string(help), " --"+strings.ToLower(strings.ReplaceAll(setting, "_", "-"))+" ", name)
			}
			require.Equal(t, append([]string{"CMD"}, readImage(t, "admin").health...), s.Healthcheck.Test)
		}
	}
	require.Len(t, volumes, len(c.Volumes), "each volume is used")

	// Others made anew are kept.
	folder := filepath.Join(t.TempDir(), "secrets")
	first := makeSecrets(t, folder)
	require.NoError(t, os.Remove(filepath.Join(folder, "shop_api_key")))
	second := makeSecrets(t, folder)
	require.NotEqual(t, first["shop_api_key"], second["shop_api_key"])
	first["shop_api_key"] = second["shop_api_key"]
	require.Equal(t, first, second)
	info, err := os.Stat(folder)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

// composed is what docker compose would have made of the composition: processes that
// see what their image has and what is mounted, under addresses of this machine.
type composed struct {
	t         *testing.T
	box       container         // all processes see the same files, but each its own data
	addresses map[string]string // of "admin-1:8080"
	processes map[string]*process
}

type process struct {
	*exec.Cmd
	container container
	log       *output
	ended     chan error
}

// output is what a process says.
type output struct {
	mu sync.Mutex
	b  strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// TestTheCompositionRuns from nothing to the first green run, with a real MySQL. The
// figure in the log is the time since MySQL's data directory was begun.
func TestTheCompositionRuns(t *testing.T) {
	c := readComposition(t)
	secrets := makeSecrets(t, filepath.Join(t.TempDir(), "secrets"))
	d := compose(t, c, secrets)
	began := time.Now()
	d.database(c.Services["mysql"].Environment, secrets)
	healthy := time.Now()
	for _, name := range []string{"sample-shop", "admin-2", "admin-1"} { // in no order
		d.start(name, c.Services[name])
	}
	for _, name := range []string{"admin-1", "admin-2"} {
		p := d.processes[name]
		d.until(name+" is healthy", func(ctx context.Context) error {
			return p.container.command(ctx, c.Services[name].Healthcheck.Test[1:]).Run()
		})
	}
	api := d.untilGreen(secrets["admin_password"])
	t.Logf("first green run %.1f s after MySQL's installation began, %.1f s after it was healthy", time.Since(began).Seconds(), time.Since(healthy).Seconds())

	d.until("the shop is at both nodes, calls handlers and sets timers", func(ctx context.Context) error {
		for _, name := range []string{"admin-1", "admin-2"} {
			said := d.processes["sample-shop"].log.String()
			if !strings.Contains(said, d.addresses[name+":7070"]) {
				return fmt.Errorf("it does not speak of %s", name)
			}
		}
		calls, err := api.ListRuns(ctx, apiclient.ListRunsParams{Cause: "api", State: "succeeded", Limit: 1})
		if err != nil {
			return err
		}
		timers, err := api.ListTimers(ctx, apiclient.ListTimersParams{Limit: 1})
		if err == nil && (len(calls.Value.Items) == 0 || len(timers.Value.Items) == 0) {
			err = fmt.Errorf("%d calls, %d timers", len(calls.Value.Items), len(timers.Value.Items))
		}
		return err
	})
	for name, p := range d.processes {
		for _, file := range []string{"cmdline", "environ"} {
			raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.Process.Pid, file))
			require.NoError(t, err)
			for secret, value := range secrets {
				require.NotContains(t, string(raw), value, "%s of %s has %s", file, name, secret)
			}
		}
	}
	for _, name := range []string{"sample-shop", "admin-1", "admin-2"} {
		d.stop(name)
		for secret, value := range secrets {
			require.NotContains(t, d.processes[name].log.String(), value, "%s tells %s", name, secret)
		}
	}
}

// TestOneNodeAloneRuns, with SQLite and the same provision file, from nothing to the
// first green run. The figure in the log is the time since the binary was started.
func TestOneNodeAloneRuns(t *testing.T) {
	c := readComposition(t)
	secrets := makeSecrets(t, filepath.Join(t.TempDir(), "secrets"))
	d := compose(t, c, secrets)
	alone := c.Services["admin-1"]
	alone.Environment = maps.Clone(alone.Environment)
	for _, setting := range []string{"CARILLON_DATABASE", "CARILLON_DATABASE_PASSWORD_FILE", "CARILLON_SEALING_KEY_FILE"} {
		require.Contains(t, alone.Environment, setting)
		delete(alone.Environment, setting)
	}
	began := time.Now()
	d.start("admin-1", alone)
	d.start("sample-shop", c.Services["sample-shop"])
	d.until("the node is healthy", func(ctx context.Context) error {
		return d.processes["admin-1"].container.command(ctx, alone.Healthcheck.Test[1:]).Run()
	})
	d.untilGreen(secrets["admin_password"])
	t.Logf("first green run %.1f s after the binary was started", time.Since(began).Seconds())
}

func compose(t *testing.T, c composition, secrets map[string]string) *composed {
	t.Helper()
	var mounted [][2]string
	for name, secret := range secrets {
		mounted = append(mounted, [2]string{"/run/secrets/" + name, secret + "\n"})
	}
	for _, config := range c.Services["admin-1"].Configs {
		raw, err := os.ReadFile(c.Configs[config.Source].File)
		require.NoError(t, err)
		mounted = append(mounted, [2]string{config.Target, string(raw)})
	}
	d := &composed{t: t, box: newContainer(t, mounted...), addresses: map[string]string{}, processes: map[string]*process{}}
	require.NoError(t, os.Chmod(d.box.root, 0o700))
	raw, err := os.ReadFile(sampleShop)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(d.box.root, "sample-shop"), raw, 0o755))
	for _, volume := range []string{"/keys", dataOf("admin-1"), dataOf("admin-2"), dataOf("sample-shop")} {
		require.NoError(t, os.Mkdir(filepath.Join(d.box.root, volume), 0o700))
		if os.Getuid() == 0 {
			require.NoError(t, os.Chown(filepath.Join(d.box.root, volume), imageUser, imageUser))
		}
	}
	require.NoError(t, os.Chmod(d.box.root, 0o555))
	for _, name := range []string{"admin-1:8080", "admin-1:7070", "admin-2:8080", "admin-2:7070"} {
		d.addresses[name] = freePort(t, []string{"X=127.0.0.1:0"}, "X")
	}
	return d
}

// dataOf is where a service's own volume is: what is one path in several containers
// is several here.
func dataOf(service string) string { return "/data-" + service }

// here is a text of the composition with the addresses and folders of this machine.
func (d *composed) here(service, text string) string {
	for name, address := range d.addresses {
		text = strings.ReplaceAll(text, name, address)
		if port, own := strings.CutPrefix(name, service); own {
			text = strings.ReplaceAll(text, "0.0.0.0"+port, address)
		}
	}
	if text == "/data" {
		return dataOf(service)
	}
	return text
}

// database is the server with what MySQL's image makes of its environment.
func (d *composed) database(env, secrets map[string]string) {
	d.t.Helper()
	product := testenv.MySQL
	server, err := testenv.NewServer(testenv.Options{Product: product})
	if err != nil {
		d.t.Logf("not with MySQL: %v", err)
		server, err = testenv.NewServer(testenv.Options{})
	}
	require.NoError(d.t, err)
	d.t.Cleanup(func() { require.NoError(d.t, server.Close()) })
	pool, err := sql.Open("mysql", server.DSN())
	require.NoError(d.t, err)
	defer pool.Close()
	password := secrets[filepath.Base(env["MYSQL_PASSWORD_FILE"])]
	const user = "composed" // the server has a user of its own with the composition's name
	for _, statement := range []string{
		"CREATE DATABASE " + env["MYSQL_DATABASE"],
		fmt.Sprintf("CREATE USER '%s'@'%%' IDENTIFIED BY '%s'", user, password),
		fmt.Sprintf("GRANT ALL ON %s.* TO '%s'@'%%'", env["MYSQL_DATABASE"], user),
	} {
		_, err = pool.ExecContext(d.t.Context(), statement)
		require.NoError(d.t, err)
	}
	d.addresses[env["MYSQL_USER"]+"@mysql:3306"] = user + "@" + server.Addr()
}

func (d *composed) start(name string, s service) {
	d.t.Helper()
	i := readImage(d.t, s.Build.Target)
	var env, args []string
	for _, pair := range i.env {
		variable, value, _ := strings.Cut(pair, "=")
		env = append(env, variable+"="+d.here(name, value))
	}
	for variable, value := range s.Environment {
		env = append(env, variable+"="+d.here(name, value))
	}
	for _, arg := range append(i.entrypoint, i.command...) {
		args = append(args, d.here(name, arg))
	}
	p := &process{container: container{d.box.root, env}, log: &output{}, ended: make(chan error, 1)}
	p.Cmd = p.container.command(context.Background(), args)
	p.Stdout, p.Stderr = p.log, p.log
	require.NoError(d.t, p.Start())
	go func() { p.ended <- p.Wait() }()
	d.processes[name] = p
	d.t.Cleanup(func() {
		_ = p.Process.Kill()
		if d.t.Failed() {
			d.t.Logf("%s said:\n%s", name, p.log)
		}
	})
}

func (d *composed) stop(name string) {
	d.t.Helper()
	require.NoError(d.t, d.processes[name].Process.Signal(syscall.SIGTERM))
	select {
	case err := <-d.processes[name].ended:
		require.NoError(d.t, err, name)
	case <-time.After(time.Minute):
		d.t.Fatalf("%s does not stop", name)
	}
}

// until fails when a process has ended.
func (d *composed) until(what string, try func(ctx context.Context) error) {
	d.t.Helper()
	require.NoError(d.t, lab.Until(d.t.Context(), 2*time.Minute, what, func(ctx context.Context) error {
		for name, p := range d.processes {
			select {
			case err := <-p.ended:
				d.t.Fatalf("%s has ended: %v", name, err)
			default:
			}
		}
		return try(ctx)
	}))
}

// untilGreen signs in and waits until a run has succeeded.
func (d *composed) untilGreen(password string) *lab.API {
	d.t.Helper()
	api := lab.NewAPI("http://" + d.addresses["admin-1:8080"])
	require.NoError(d.t, api.SignIn(d.t.Context(), "admin", password, ""))
	d.until("a green run", func(ctx context.Context) error {
		runs, err := api.ListRuns(ctx, apiclient.ListRunsParams{State: "succeeded", Limit: 1})
		if err == nil && len(runs.Value.Items) == 0 {
			err = errors.New("there is none")
		}
		return err
	})
	return api
}
