package secret_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/secret"
)

func newBox(t *testing.T, fill byte) *secret.Box {
	t.Helper()
	b, err := secret.New(bytes.Repeat([]byte{fill}, secret.KeySize))
	require.NoError(t, err)
	return b
}

func TestSealedValueOpensOnlyInItsPlace(t *testing.T) {
	box := newBox(t, 1)
	sealed, err := box.Seal(7, "job.webhook", 42, []byte("s3cret"))
	require.NoError(t, err)
	require.NotContains(t, string(sealed), "s3cret")

	plain, err := box.Open(7, "job.webhook", 42, sealed)
	require.NoError(t, err)
	require.Equal(t, "s3cret", string(plain))

	places := []struct {
		name    string
		tenant  domain.TenantID
		purpose string
		id      int64
	}{
		{"another tenant", 8, "job.webhook", 42},
		{"another purpose", 7, "job.webhoo", 42},
		{"another row", 7, "job.webhook", 43},
		{"tenant and id swapped", 42, "job.webhook", 7},
	}
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) {
			_, err := box.Open(p.tenant, p.purpose, p.id, sealed)
			require.ErrorIs(t, err, secret.ErrUnreadable)
		})
	}
	t.Run("another key", func(t *testing.T) {
		_, err := newBox(t, 2).Open(7, "job.webhook", 42, sealed)
		require.ErrorIs(t, err, secret.ErrUnreadable)
	})
}

func TestChangedValueDoesNotOpen(t *testing.T) {
	box := newBox(t, 1)
	sealed, err := box.Seal(7, "p", 42, []byte("s3cret"))
	require.NoError(t, err)
	// The bytes of the key's name (1..4) only help to find the key.
	for _, i := range []int{0, 5, 16, 17, len(sealed) - 1} {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		_, err := box.Open(7, "p", 42, changed)
		require.ErrorIs(t, err, secret.ErrUnreadable, "byte %d", i)
	}
	for n := range len(sealed) {
		_, err := box.Open(7, "p", 42, sealed[:n])
		require.ErrorIs(t, err, secret.ErrUnreadable, "first %d bytes", n)
	}
}

func TestSealingTwiceGivesDifferentBytes(t *testing.T) {
	box := newBox(t, 1)
	a, err := box.Seal(1, "p", 1, []byte("x"))
	require.NoError(t, err)
	b, err := box.Seal(1, "p", 1, []byte("x"))
	require.NoError(t, err)
	require.NotEqual(t, a, b)
}

func TestLoadMakesTheFileOnceWithMode0600(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sealing.key")
	var wg sync.WaitGroup
	prints := make([]string, 8)
	for i := range prints {
		wg.Go(func() {
			if b, err := secret.Load("", path); err == nil {
				prints[i] = b.Fingerprint()
			}
		})
	}
	wg.Wait()
	for _, p := range prints {
		require.NotEmpty(t, p)
		require.Equal(t, prints[0], p, "all of them have to use the one file")
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1, "no temporary file is left")
}

func TestFilesAppearWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	read := func() string {
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(raw)
	}
	require.NoError(t, secret.WriteFile(path, []byte("first"), false))
	require.ErrorIs(t, secret.WriteFile(path, []byte("second"), false), fs.ErrExist)
	require.Equal(t, "first", read())
	require.NoError(t, secret.WriteFile(path, []byte("third"), true))
	require.Equal(t, "third", read())
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
}

func TestLoadRefusesFilesThatOthersMayRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sealing.key")
	_, err := secret.Load("", path)
	require.NoError(t, err)
	require.NoError(t, os.Chmod(path, 0o640))
	_, err = secret.Load("", path)
	require.ErrorContains(t, err, "chmod 600")
}

func TestLoadReadsKeysAsText(t *testing.T) {
	raw := bytes.Repeat([]byte{9}, secret.KeySize)
	want := newBox(t, 9).Fingerprint()
	for name, text := range map[string]string{
		"hex": hex.EncodeToString(raw), "base64": base64.StdEncoding.EncodeToString(raw),
		"url-safe": base64.RawURLEncoding.EncodeToString(raw), "spaces": " " + hex.EncodeToString(raw) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			b, err := secret.Load(text, "/nonexistent/never-read")
			require.NoError(t, err)
			require.Equal(t, want, b.Fingerprint())
		})
	}
	for name, text := range map[string]string{"short": "abcd", "words": "correct horse battery staple"} {
		t.Run(name, func(t *testing.T) {
			_, err := secret.Load(text, "/nonexistent/never-read")
			require.ErrorContains(t, err, "CARILLON_SEALING_KEY")
			require.NotContains(t, err.Error(), text, "the text may be a real secret with a typing error")
		})
	}
	path := filepath.Join(t.TempDir(), "sealing.key")
	require.NoError(t, os.WriteFile(path, []byte("half"), 0o600))
	_, err := secret.Load("", path)
	require.ErrorContains(t, err, path)
}

type values map[string]string

func (v values) ClusterValue(_ context.Context, key, initial string) (string, error) {
	if _, ok := v[key]; !ok {
		v[key] = initial
	}
	return v[key], nil
}

func TestClaimRefusesASecondKey(t *testing.T) {
	cluster := values{}
	ctx := t.Context()
	require.NoError(t, newBox(t, 1).Claim(ctx, cluster))
	require.NoError(t, newBox(t, 1).Claim(ctx, cluster))
	err := newBox(t, 2).Claim(ctx, cluster)
	require.ErrorContains(t, err, "copy sealing.key")
	require.ErrorContains(t, err, newBox(t, 2).Fingerprint())
}
