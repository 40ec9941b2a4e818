package settings_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/settings"
)

func flags(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	f := pflag.NewFlagSet("server", pflag.ContinueOnError)
	f.String("data", "default", "")
	f.String("mail-host", "", "")
	settings.Span(f, "log-retention", time.Hour, "")
	f.Bool("insecure-bind", false, "")
	f.StringSlice("addresses", []string{"default"}, "")
	f.StringToString("labels", nil, "")
	require.NoError(t, f.Parse(args))
	return f
}

func TestAFlagWinsOverEnvironmentOverFileOverDefault(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(path, []byte("data: file\nmail-host: file\nlog-retention: 3h\n"), 0o600))
	t.Setenv("CARILLON_DATA", "env")
	t.Setenv("CARILLON_MAIL_HOST", "env")
	t.Setenv("CARILLON_TEST_MYSQL_DSN", "of another program")

	k, err := settings.Load(flags(t, "--data", "flag"), path)
	require.NoError(t, err)
	require.Equal(t, "flag", k.String("data"))
	require.Equal(t, "env", k.String("mail-host"))
	require.Equal(t, 3*time.Hour, k.Duration("log-retention"))
	require.False(t, k.Bool("insecure-bind"))
	require.False(t, k.Exists("test-mysql-dsn"))
}

func TestDefaultsStandWhenNothingIsGiven(t *testing.T) {
	k, err := settings.Load(flags(t), "")
	require.NoError(t, err)
	require.Equal(t, "default", k.String("data"))
	require.Equal(t, time.Hour, k.Duration("log-retention"))
}

func TestAnUnknownKeyInTheFileIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(path, []byte("mail-hots: x\n"), 0o600))
	_, err := settings.Load(flags(t), path)
	require.ErrorContains(t, err, path+`:1: there is no setting "mail-hots"; did you mean "mail-host"?`)
}

func TestWhereValuesAreFrom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(path, []byte("# a comment\ndata: file\n\nmail-host: file\nlog-retention: 3 weeks\nport: 80\naddresses: [a:1]\ninsecure-bind:\n"), 0o600))
	t.Setenv("CARILLON_MAIL_HOST", "env")
	r, err := settings.Resolve(flags(t, "--data", "flag"), path)
	require.NoError(t, err)
	got := map[string]string{}
	for _, s := range r.Settings {
		got[s.Flag.Name] = string(s.From) + " " + s.Where
		if s.Err != nil {
			got[s.Flag.Name] += " " + s.Err.Error()
		}
	}
	require.Equal(t, map[string]string{
		"data": "flag --data", "mail-host": "variable CARILLON_MAIL_HOST", "addresses": "file " + path + ":7", "insecure-bind": "default ", "labels": "default ",
		"log-retention": "file " + path + `:5 config file ` + path + `:5: log-retention: "3 weeks" is no span of time: write a number with its unit; units are ` + settings.Units,
	}, got)
	require.Len(t, r.Unknown, 1)
	require.ErrorContains(t, r.Unknown[0], path+`:6: there is no setting "port"`)

	require.NoError(t, os.WriteFile(path, []byte("data: a\ndata: b\n"), 0o600))
	_, err = settings.Resolve(flags(t), path)
	require.ErrorContains(t, err, "comes twice")
	for _, empty := range []string{"", "# nothing\n", "---\n"} {
		require.NoError(t, os.WriteFile(path, []byte(empty), 0o600))
		_, err = settings.Load(flags(t), path)
		require.NoError(t, err, empty)
	}
	require.NoError(t, os.WriteFile(path, []byte("- a\n"), 0o600))
	_, err = settings.Resolve(flags(t), path)
	require.ErrorContains(t, err, "config file "+path+": ")
}

// A flag gets what stands in the file, as it stands there.
func TestValuesOfTheFileAreTexts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	for _, text := range []string{"007", "2026-11-28", "0x1F", "1_000", "NO", "12:30", "1e3", "1.10", "true"} {
		require.NoError(t, os.WriteFile(path, []byte("data: "+text+"\naddresses: ["+text+"]\nlabels: {zone: "+text+"}\n"), 0o600))
		k, err := settings.Load(flags(t), path)
		require.NoError(t, err)
		require.Equal(t, text, k.String("data"))
		require.Equal(t, []string{text}, k.Strings("addresses"))
		require.Equal(t, map[string]string{"zone": text}, k.StringMap("labels"))
	}
}

func TestListsAndNamesComeFromEverywhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(path, []byte("addresses: [a:1, b:2]\nlabels: {zone: a, disk: ssd}\n"), 0o600))
	want, labels := []string{"a:1", "b:2"}, map[string]string{"zone": "a", "disk": "ssd"}
	check := func(f *pflag.FlagSet, path string) {
		t.Helper()
		k, err := settings.Load(f, path)
		require.NoError(t, err)
		require.Equal(t, want, k.Strings("addresses"))
		require.Equal(t, labels, k.StringMap("labels"))
	}
	check(flags(t, "--addresses", "a:1,b:2", "--labels", "zone=a,disk=ssd"), "")
	check(flags(t), path)
	t.Setenv("CARILLON_ADDRESSES", "a:1, b:2")
	t.Setenv("CARILLON_LABELS", "zone=a,disk=ssd")
	check(flags(t), "")
	t.Setenv("CARILLON_ADDRESSES", "") // an empty one is none
	t.Setenv("CARILLON_LABELS", "")
	check(flags(t), path)
}

// Variables that Kubernetes makes of services are no settings. A wrong setting has an error
// in words.
func TestServiceLinksAreNoSettings(t *testing.T) {
	set := func() *pflag.FlagSet {
		f := pflag.NewFlagSet("server", pflag.ContinueOnError)
		f.Int("mail-port", 0, "")
		f.Bool("tls", false, "")
		f.String("mail-service-host", "", "")
		return f
	}
	path := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(path, []byte("mail-port: 465\n"), 0o600))
	for _, link := range []string{"tcp://10.96.3.7:25", "udp://10.96.3.7:25", "tcp://[fd00::7]:25"} {
		t.Setenv("CARILLON_MAIL_PORT", link)
		f := set()
		k, err := settings.Load(f, path)
		require.NoError(t, err)
		require.Equal(t, 465, k.Int("mail-port"), "the next layer counts")
		require.Equal(t, []string{"CARILLON_MAIL_PORT"}, settings.Links(f))
	}
	for _, name := range []string{
		"CARILLON_PORT", "CARILLON_SERVICE_HOST", "CARILLON_SERVICE_PORT", "CARILLON_SERVICE_PORT_HTTP", "CARILLON_MAIL_PORT_25_TCP",
		"CARILLON_MAIL_PORT_25_TCP_PROTO", "CARILLON_MAIL_PORT_25_UDP_ADDR", "CARILLON_MAIL_PORT_25_TCP_PORT",
	} {
		require.True(t, settings.LinkName(name), name)
	}
	require.False(t, settings.LinkName("CARILLON_MAIL_HOST"))
	for value, want := range map[string]string{
		"smtp": `CARILLON_MAIL_PORT: "smtp" is no number; give digits alone, for example 25`, "99999999999999999999": `CARILLON_MAIL_PORT: "99999999999999999999" is too large a number`,
	} {
		t.Setenv("CARILLON_MAIL_PORT", value)
		_, err := settings.Load(set(), path)
		require.EqualError(t, err, want)
	}
	t.Setenv("CARILLON_MAIL_PORT", "25")
	require.Empty(t, settings.Links(set()))
	t.Setenv("CARILLON_TLS", "maybe")
	_, err := settings.Load(set(), path)
	require.EqualError(t, err, `CARILLON_TLS: "maybe" is neither true nor false`)
}
