package main

import (
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
)

// TestProxySettings reads them from flags, the environment and the file.
func TestProxySettings(t *testing.T) {
	config := func(args ...string) (admin.Config, error) {
		cmd := newServerCommand()
		require.NoError(t, cmd.ParseFlags(args))
		return serverConfig(io.Discard, cmd.Flags())
	}
	want := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("2001:db8::1/128")}

	c, err := config()
	require.NoError(t, err)
	require.Empty(t, c.TrustedProxies, "by default none is trusted")
	require.Equal(t, "auto", c.SecureCookies)

	c, err = config("--trusted-proxies", "10.1.2.3/16,2001:db8::1", "--secure-cookies", "always")
	require.NoError(t, err)
	require.Equal(t, want, c.TrustedProxies)
	require.Equal(t, "always", c.SecureCookies)

	path := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(path, []byte("trusted-proxies: [10.1.0.0/16, '2001:db8::1']\nsecure-cookies: never\n"), 0o600))
	c, err = config("--config", path)
	require.NoError(t, err)
	require.Equal(t, want, c.TrustedProxies)
	require.Equal(t, "never", c.SecureCookies)

	t.Setenv("CARILLON_TRUSTED_PROXIES", "10.1.0.0/16, 2001:db8::1")
	t.Setenv("CARILLON_SECURE_COOKIES", "always")
	c, err = config()
	require.NoError(t, err)
	require.Equal(t, want, c.TrustedProxies)
	require.Equal(t, "always", c.SecureCookies)

	_, err = config("--trusted-proxies", "proxy.example.com")
	require.ErrorContains(t, err, `trusted-proxies: "proxy.example.com" is no network`)

	c, err = config("--secure-cookies", "sometimes", "--data", t.TempDir(), "--http", "127.0.0.1:0", "--executors", "127.0.0.1:0")
	require.NoError(t, err)
	_, err = admin.New(t.Context(), c)
	require.ErrorContains(t, err, `secure cookies: "sometimes" is none of auto, always, never`)
}

// The hot store has a password: it comes from a flag, the environment or the file,
// and no error shows it.
func TestHotStoreSetting(t *testing.T) {
	const address = "redis://carillon:hem%2Fmelig@127.0.0.1:6379/3"
	config := func(args ...string) admin.Config {
		cmd := newServerCommand()
		require.NoError(t, cmd.ParseFlags(append(args, "--data", t.TempDir(), "--http", "127.0.0.1:0", "--executors", "127.0.0.1:0")))
		c, err := serverConfig(io.Discard, cmd.Flags())
		require.NoError(t, err)
		return c
	}
	require.Empty(t, config().HotStore, "by default there is none")
	require.Equal(t, address, config("--hot-store", address).HotStore)
	path := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(path, []byte("hot-store: "+address+"\n"), 0o600))
	require.Equal(t, address, config("--config", path).HotStore)
	t.Setenv("CARILLON_HOT_STORE", address)
	require.Equal(t, address, config().HotStore)

	_, err := admin.New(t.Context(), config("--hot-store", "redis://carillon:hem/melig@127.0.0.1"))
	require.ErrorContains(t, err, "hot store: it must be redis://")
	require.NotContains(t, err.Error(), "hem")
}
