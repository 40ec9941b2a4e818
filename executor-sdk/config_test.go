package executor

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func env(pairs map[string]string) func(string) string {
	return func(name string) string { return pairs[name] }
}

func TestConfigIsFilledFromTheEnvironment(t *testing.T) {
	c, err := Config{}.withDefaults(env(map[string]string{
		envName: "shop", envAddresses: "a:7070, b:7070,", envToken: "cjt_x", envInstance: "web-1",
		envVersion: "1.2.3", envGeneration: "42", envLabels: "zone=a, disk = ssd", envSlots: "3", envJournal: "/var/j", envStrict: "true",
		envTLSCA: "ca.pem", envTLSServer: "admin",
	}))
	require.NoError(t, err)
	require.Equal(t, "shop", c.Name)
	require.Equal(t, []string{"a:7070", "b:7070"}, c.Addresses)
	require.Equal(t, "cjt_x", string(c.Token))
	require.Equal(t, "web-1", c.InstanceName)
	require.Equal(t, "1.2.3", c.Version)
	require.Equal(t, int64(42), c.Generation)
	require.Equal(t, map[string]string{"zone": "a", "disk": "ssd"}, c.Labels)
	require.Equal(t, 3, c.Slots)
	require.Equal(t, "/var/j", c.JournalDir)
	require.True(t, c.Strict)
	require.Equal(t, &TLS{CAFile: "ca.pem", ServerName: "admin"}, c.TLS)
}

func TestTheTokenIsReadFromAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(path, []byte("cjt_x\n"), 0o600))
	c, _ := Config{}.withDefaults(env(map[string]string{envTokenFile: path}))
	require.Equal(t, "cjt_x", string(c.Token))
	c, _ = Config{}.withDefaults(env(map[string]string{envToken: "cjt_y", envTokenFile: path}))
	require.Equal(t, "cjt_y", string(c.Token), "the variable beats the file")
	_, err := Config{}.withDefaults(env(map[string]string{envTokenFile: path + "s"}))
	require.ErrorContains(t, err, "CARILLON_EXECUTOR_TOKEN_FILE: open "+path+"s")
	require.NoError(t, os.WriteFile(path, []byte("\n"), 0o600))
	_, err = Config{}.withDefaults(env(map[string]string{envTokenFile: path}))
	require.ErrorContains(t, err, "CARILLON_EXECUTOR_TOKEN_FILE: "+path+" is empty")
}

func TestConfigFieldsBeatTheEnvironment(t *testing.T) {
	c, err := Config{Name: "shop", Addresses: []string{"a:1"}, Token: "cjt_x", Slots: 2}.withDefaults(
		env(map[string]string{envName: "other", envAddresses: "b:1", envToken: "cjt_y", envSlots: "9"}))
	require.NoError(t, err)
	require.Equal(t, "shop", c.Name)
	require.Equal(t, []string{"a:1"}, c.Addresses)
	require.Equal(t, "cjt_x", string(c.Token))
	require.Equal(t, 2, c.Slots)
	require.Nil(t, c.TLS)
	require.Equal(t, "carillon-journal/shop", c.JournalDir)
	require.GreaterOrEqual(t, Config{}.mustDefaults().Slots, 512)
	require.Equal(t, 15*time.Second, c.DrainTimeout)
}

// mustDefaults fills the defaults of a config that lacks what is required.
func (c Config) mustDefaults() Config {
	c, _ = c.withDefaults(env(nil))
	return c
}

func TestConfigNamesEverythingThatIsWrong(t *testing.T) {
	_, err := Config{}.withDefaults(env(nil))
	require.ErrorContains(t, err, "no name: set Config.Name or CARILLON_EXECUTOR_NAME")
	require.ErrorContains(t, err, "no admin address: set Config.Addresses or CARILLON_EXECUTOR_ADDRESSES")
	require.ErrorContains(t, err, "no join token: set Config.Token, CARILLON_EXECUTOR_TOKEN or CARILLON_EXECUTOR_TOKEN_FILE")

	good := Config{Name: "shop", Addresses: []string{"a:1"}, Token: "x"}
	for want, change := range map[string]func(*Config){
		"must not contain spaces":             func(c *Config) { c.Name = "my shop" },
		"must not contain a slash":            func(c *Config) { c.Name = "../shop" },
		"must have at most 128 bytes":         func(c *Config) { c.InstanceName = strings.Repeat("x", 129) },
		`"a" is not host:port`:                func(c *Config) { c.Addresses = []string{"a"} },
		`Config.Labels "": must not be empty`: func(c *Config) { c.Labels = map[string]string{"": "x"} },
		"the value must be UTF-8":             func(c *Config) { c.Labels = map[string]string{"k": "\xff"} },
		"Config.Slots must be from 1 to 4096": func(c *Config) { c.Slots = -1 },
		"Config.KillGrace, Config.LogBuffer":  func(c *Config) { c.KillGrace = -1 },
		"must be 0 or at least 10s, not 9s":   func(c *Config) { c.IdleAfter = 9 * time.Second },
	} {
		c := good
		change(&c)
		_, err := c.withDefaults(env(nil))
		require.ErrorContains(t, err, want)
	}
	for want, pairs := range map[string]map[string]string{
		`CARILLON_EXECUTOR_SLOTS="many"`:     {envSlots: "many"},
		`"zone" is not key=value`:            {envLabels: "zone"},
		"CARILLON_EXECUTOR_TLS: strconv.Par": {envTLS: "please"},
		"Config.IdleAfter (CARILLON_EXECUTOR_IDLE_AFTER) must be 0 or at least 10s, not 5s": {envIdle: "5s"},
	} {
		_, err := good.withDefaults(env(pairs))
		require.ErrorContains(t, err, want)
	}
}

func TestTLSFilesAreChecked(t *testing.T) {
	for want, tls := range map[string]*TLS{
		"read TLS authorities: open missing.pem":                        {CAFile: "missing.pem"},
		"read TLS authorities: config_test.go holds no PEM certificate": {CAFile: "config_test.go"},
		"CertFile and KeyFile belong together":                          {CertFile: "c.pem"},
		"read TLS key pair":                                             {CertFile: "c.pem", KeyFile: "k.pem"},
	} {
		_, err := New(Config{Name: "shop", Addresses: []string{"a:1"}, Token: "x", TLS: tls})
		require.ErrorContains(t, err, want)
	}
}

func TestSecretHidesItself(t *testing.T) {
	c := Config{Token: "cjt_verysecret"}
	var b strings.Builder
	slog.New(slog.NewTextHandler(&b, nil)).Info("x", "token", c.Token, "config", c)
	slog.New(slog.NewJSONHandler(&b, nil)).Info("x", "token", c.Token, "config", c.Token)
	fmt.Fprintf(&b, "%v %+v %#v %s %q", c, c, c, c.Token, c.Token)
	encoded, err := json.Marshal(c.Token)
	require.NoError(t, err)
	require.NotContains(t, b.String()+string(encoded), "verysecret")
	require.Equal(t, "cjt_verysecret", string(c.Token))
}
