package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
)

// Each setting of the server stands in the table of docs/guide/configure.md, and
// each flag of that table is one.
func TestSettingsAreDocumented(t *testing.T) {
	raw, err := os.ReadFile("../../docs/guide/configure.md")
	require.NoError(t, err)
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)`--([a-z-]+)`").FindAllStringSubmatch(string(raw), -1) {
		documented[m[1]] = true
	}
	flags := map[string]bool{}
	newServerCommand().Flags().VisitAll(func(f *pflag.Flag) { flags[f.Name] = true })
	require.Equal(t, flags, documented)
}

// boundSettings are the settings of the server: a value that is not the default,
// and what alone changes in the configuration then.
var boundSettings = map[string]struct{ value, field, becomes string }{
	"data":                      {"elsewhere", "DataDir", "elsewhere"},
	"database":                  {"sqlite:x", "Database", "sqlite:x"},
	"database-password-file":    {"testdata/secret.txt", "DatabasePassword", "a secret"},
	"hot-store":                 {"redis://h:1/2", "HotStore", "redis://h:1/2"},
	"run-retention":             {"48h", "RunRetention", "48h0m0s"},
	"timer-retention":           {"90m", "TimerRetention", "1h30m0s"},
	"statistics-minutes":        {"3h", "Statistics.Minutes", "3h0m0s"},
	"statistics-hours":          {"72h", "Statistics.Hours", "72h0m0s"},
	"statistics-days":           {"720h", "Statistics.Days", "720h0m0s"},
	"no-statistics":             {"true", "Statistics.Off", "true"},
	"database-wait":             {"7s", "DatabaseWait", "7s"},
	"allow-multi-writer":        {"true", "AllowMultiWriter", "true"},
	"no-fire":                   {"true", "NoFire", "true"},
	"node":                      {"one", "NodeName", "one"},
	"node-numbers":              {"17-32", "NodeNumbers", "17-32"},
	"http":                      {"127.0.0.1:1", "HTTPAddress", "127.0.0.1:1"},
	"http-max":                  {"11", "HTTPLimits.Connections", "11"},
	"http-max-per-address":      {"12", "HTTPLimits.PerAddress", "12"},
	"http-waits-per-user":       {"13", "HTTPLimits.WaitsPerUser", "13"},
	"http-waits-per-tenant":     {"14", "HTTPLimits.WaitsPerTenant", "14"},
	"metrics-listen":            {":9100", "MetricsAddress", ":9100"},
	"executors":                 {"127.0.0.1:2", "ExecutorAddress", "127.0.0.1:2"},
	"advertise":                 {"a:3", "AdvertiseAddress", "a:3"},
	"base-url":                  {"https://a", "BaseURL", "https://a"},
	"tls-cert":                  {"a.crt", "TLSCertFile", "a.crt"},
	"tls-key":                   {"a.key", "TLSKeyFile", "a.key"},
	"trusted-proxies":           {"10.1.0.0/16,10.2.0.1", "TrustedProxies", "[10.1.0.0/16 10.2.0.1/32]"},
	"secure-cookies":            {"never", "SecureCookies", "never"},
	"executors-tls-cert":        {"b.crt", "ExecutorTLSCertFile", "b.crt"},
	"executors-tls-key":         {"b.key", "ExecutorTLSKeyFile", "b.key"},
	"executor-certificates":     {"required", "ExecutorCertificates", "required"},
	"executors-max":             {"21", "ExecutorLimits.Sessions", "21"},
	"executors-max-per-tenant":  {"22", "ExecutorLimits.SessionsPerTenant", "22"},
	"executors-max-per-address": {"23", "ExecutorLimits.PerAddress", "23"},
	"executors-idle-heartbeats": {"24", "ExecutorIdleBeats", "24"},
	"executors-recycle":         {"2h", "ExecutorRecycle", "2h0m0s"},
	"insecure-bind":             {"true", "InsecureBind", "true"},
	"admin-password-file":       {"testdata/secret.txt", "AdminPassword", "a secret"},
	"provision":                 {"p.yaml", "ProvisionFile", "p.yaml"},
	"sealing-key-file":          {"s.key", "SealingKeyFile", "s.key"},
	"log-retention":             {"36h", "LogRetention", "36h0m0s"},
	"log-run-lines":             {"31", "Logs.RunLines", "31"},
	"log-run-bytes":             {"-1", "Logs.RunBytes", "-1"},
	"log-day-bytes":             {"5000000000", "Logs.TenantDayBytes", "5000000000"},
	"log-bytes":                 {"34", "Logs.TenantBytes", "34"},
	"webhook-allow":             {"10.3.0.0/16", "Webhook.AllowPrefixes", "[10.3.0.0/16]"},
	"drain-delay":               {"3s", "DrainDelay", "3s"},
	"log-level":                 {"debug", "Logger", "*slog.TextHandler from DEBUG"},
	"log-format":                {"json", "Logger", "*slog.JSONHandler from INFO"},
	"profiles":                  {"127.0.0.1:6060", "profiles", "127.0.0.1:6060"},
}

// Each setting of the server acts, and on one thing alone, from the command line,
// from the environment and from the file.
func TestEverySettingActs(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("testdata", 0o700))
	require.NoError(t, os.WriteFile("testdata/secret.txt", []byte("a secret\n"), 0o600))
	before := configOf(t)
	newServerCommand().Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "config" { // what is in the file acts
			return
		}
		want, ok := boundSettings[f.Name]
		if slices.ContainsFunc(admin.AddOnSettings(), func(s admin.AddOnSetting) bool { return s.Name == f.Name }) {
			require.False(t, ok, "%s is an add-on's", f.Name)
			want.value, want.field, want.becomes = "another", "AddOns."+f.Name, "[another]"
			switch {
			case f.Value.Type() == "int":
				want.value, want.becomes = "7", "[7]"
			case f.Value.Type() == "duration":
				want.value, want.becomes = "2m", "[2m0s]"
			case strings.HasSuffix(f.Name, "-file"):
				want.value, want.becomes = "testdata/secret.txt", "[a secret]"
			}
			ok = true
		}
		require.True(t, ok, "nothing is known of %s", f.Name)
		acts := func(args ...string) {
			t.Helper()
			after := configOf(t, args...)
			for field, value := range after {
				if field == want.field {
					require.Equal(t, want.becomes, value, "%s %v", f.Name, args)
				} else {
					require.Equal(t, before[field], value, "%s %v changes %s", f.Name, args, field)
				}
			}
			require.NotEqual(t, before[want.field], after[want.field], "%s %v", f.Name, args)
		}
		acts("--" + f.Name + "=" + want.value)

		text := want.value
		if f.Value.Type() == "stringSlice" {
			text = "[" + text + "]"
		} else if f.Value.Type() == "string" {
			text = "'" + text + "'"
		}
		require.NoError(t, os.WriteFile("server.yaml", []byte(f.Name+": "+text+"\n"), 0o600))
		acts("--config=server.yaml")
		t.Setenv("CARILLON_CONFIG", "server.yaml")
		acts()
		require.NoError(t, os.Unsetenv("CARILLON_CONFIG"))

		variable := "CARILLON_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		t.Setenv(variable, want.value)
		acts()
		require.NoError(t, os.Unsetenv(variable))
	})
}

// configOf is what a server is configured with, by fields.
func configOf(t *testing.T, args ...string) map[string]string {
	t.Helper()
	cmd := newServerCommand()
	require.NoError(t, cmd.ParseFlags(args))
	c, err := serverConfig(io.Discard, cmd.Flags())
	require.NoError(t, err)
	profiles, err := cmd.Flags().GetString("profiles")
	require.NoError(t, err)
	out := map[string]string{"profiles": profiles}
	addFields(out, "", reflect.ValueOf(c))
	return out
}

func addFields(out map[string]string, prefix string, v reflect.Value) {
	for i := range v.NumField() {
		name, field := prefix+v.Type().Field(i).Name, v.Field(i)
		switch value := field.Interface().(type) {
		case *slog.Logger:
			level := slog.LevelDebug
			for ; !value.Enabled(context.Background(), level); level += 4 {
			}
			out[name] = fmt.Sprintf("%T from %s", value.Handler(), level)
		case admin.Settings:
			for setting, values := range value {
				out[name+"."+setting] = fmt.Sprint(values)
			}
		default:
			if name == "UI" {
				continue
			}
			if field.Kind() == reflect.Struct {
				addFields(out, name+".", field)
				continue
			}
			out[name] = fmt.Sprint(value)
		}
	}
}

// What a setting does not take ends the start wherever it stands.
func TestSettingsThatAreNotTaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	for _, text := range []string{
		"run-retention: 30w", "run-retention: 720", "http-max: many", "insecure-bind: perhaps", "log-bytes: 10GiB", "data: [a, b]", "node: {a: b}",
		"trusted-proxies: {a: b}",
	} {
		key, value, _ := strings.Cut(text, ": ")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		cmd := newServerCommand()
		require.NoError(t, cmd.ParseFlags([]string{"--config", path}))
		_, err := serverConfig(io.Discard, cmd.Flags())
		require.ErrorContains(t, err, "config file "+path+":1: "+key+": ")
		if strings.ContainsAny(value, "[{") {
			continue
		}
		variable := "CARILLON_" + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
		t.Setenv(variable, value)
		_, err = serverConfig(io.Discard, newServerCommand().Flags())
		require.ErrorContains(t, err, variable+": ")
		require.NoError(t, os.Unsetenv(variable))
	}
}
