package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
)

func TestConfigExplain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.yaml")
	require.NoError(t, os.WriteFile(path, []byte("# ours\nrun-retention: 720h\nhttp: 127.0.0.1:9\ntrusted-proxies: [10.1.0.0/16, 10.2.0.1]\n"), 0o600))
	term := newTerminal(t, "CARILLON_CONFIG="+path, "CARILLON_HTTP=127.0.0.1:10", "CARILLON_MAIL_PASSWORD=tower-bell-64", "CARILLON_API_KEY=ck_x", "CARILLON_SLOTS=4",
		"CARILLON_DATABASE=mysql://carillon:tower:b@ll@db:3306/carillon", "CARILLON_OPERATOR_WEBHOOK=https://hooks.example.com/tower?bell=64", "CARILLON_RUN_RETENTON=2h")
	r := term.run("config", "explain", "-o", "json", "--log-level", "debug", "--hot-store", "redis://:tower@h:1/2")
	require.Equal(t, 0, r.code, r.stderr)
	require.NotContains(t, r.stdout, "tower")
	require.NotContains(t, r.stdout, "b@ll")
	var e explanation
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &e))
	got := map[string]string{}
	for _, s := range e.Settings {
		require.NotEmpty(t, s.Meaning, s.Name)
		require.NotEmpty(t, s.Default, s.Name)
		if s.From != "default" {
			got[s.Name] = s.Value + " " + string(s.From) + " " + s.Where
		}
	}
	require.Equal(t, map[string]string{
		"config":           path + " variable CARILLON_CONFIG",
		"run-retention":    "720h0m0s file " + path + ":2",
		"http":             "127.0.0.1:10 variable CARILLON_HTTP",
		"trusted-proxies":  "10.1.0.0/16,10.2.0.1 file " + path + ":4",
		"mail-password":    "*** variable CARILLON_MAIL_PASSWORD",
		"database":         "mysql://carillon:***@db:3306/carillon variable CARILLON_DATABASE",
		"operator-webhook": "https://hooks.example.com/*** variable CARILLON_OPERATOR_WEBHOOK",
		"log-level":        "debug flag --log-level",
		"hot-store":        "redis://:***@h:1/2 flag --hot-store",
	}, got)
	require.Len(t, e.Settings, len(boundSettings)+len(admin.AddOnSettings())+1+len(secretVariables(newServerCommand().Flags()))) // and --config
	require.Equal(t, []string{`the variable CARILLON_RUN_RETENTON is no setting; without its prefix: did you mean "RUN_RETENTION" or "LOG_RETENTION"?`}, e.Doubts)
	require.Empty(t, e.Problems)
	require.Contains(t, r.stderr, "CARILLON_RUN_RETENTON")

	r = term.run("config", "explain")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, spaced(r.stdout), "http-max 2000 default")
	require.Contains(t, spaced(r.stdout), "http 127.0.0.1:10 CARILLON_HTTP")

	for _, name := range []string{"run-retention", "--run-retention", "CARILLON_RUN_RETENTION"} {
		r = term.run("config", "explain", "--", name)
		require.Equal(t, 0, r.code, r.stderr)
		require.Contains(t, r.stdout, "run-retention\n  means    how long ended runs")
		require.Contains(t, r.stdout, "  value    720h0m0s\n  from     "+path+":2\n  default  2160h, 90 days\n")
	}
	require.Contains(t, term.run("config", "explain", "sealing-key").stdout, "give it  CARILLON_SEALING_KEY\n", "never on a command line")
	r = term.run("config", "explain", "retention-run")
	require.Equal(t, 3, r.code)
	require.Contains(t, r.stderr, "there is no setting")
	require.Equal(t, 2, term.run("config", "explain", "-o", "xml").code)
}

// All mistakes are told, and not only the first one.
func TestConfigExplainTellsMistakes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.yaml")
	require.NoError(t, os.WriteFile(path, []byte("mail-hots: x\nlog-retention: 3 weeks\nport: 80\n"), 0o600))
	term := newTerminal(t)
	r := term.run("config", "explain", "--config", path)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, path+`:1: there is no setting "mail-hots"; did you mean "mail-host"`)
	require.Contains(t, r.stderr, path+`:2: log-retention: `)
	require.Contains(t, r.stderr, path+`:3: there is no setting "port"`)
	require.Contains(t, r.stdout, "log-retention")

	r = term.run("config", "explain", "--trusted-proxies", "nowhere")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "trusted-proxies")

	r = term.run("config", "explain", "--config", "/no/such/file")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "no such file")
	require.Equal(t, 2, term.run("config", "explian").code)
}

// A service called carillon-mail beside the pod does not keep a server from starting.
func TestVariablesOfKubernetesAreTold(t *testing.T) {
	t.Setenv("CARILLON_MAIL_PORT", "tcp://10.96.3.7:25")
	t.Setenv("CARILLON_MAIL_SERVICE_HOST", "10.96.3.7")
	var out bytes.Buffer
	c, err := serverConfig(&out, newServerCommand().Flags())
	require.NoError(t, err)
	require.Equal(t, "0", c.AddOns.Text("mail-port"))
	require.Equal(t, 1, strings.Count(out.String(), "\n"), "%s", out.String())
	require.Contains(t, out.String(), "variable=CARILLON_MAIL_PORT")
	require.Contains(t, out.String(), "enableServiceLinks: false")
	e, err := explainSettings(newServerCommand().Flags())
	require.NoError(t, err)
	require.Empty(t, e.Problems)
	require.Len(t, e.Doubts, 1)
	require.Contains(t, e.Doubts[0], "CARILLON_MAIL_PORT is not taken as a setting")
}
