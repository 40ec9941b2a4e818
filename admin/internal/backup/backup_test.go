package backup_test

import (
	"encoding/hex"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/backup"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
)

// place is a node with a database of this version and a sealing key.
func place(t *testing.T) backup.Place {
	t.Helper()
	dir := t.TempDir()
	p := backup.Place{
		Database: filepath.Join(dir, "carillon.db"), DataDir: dir, SealingKeyFile: filepath.Join(dir, "sealing.key"), Version: "1.2.3",
		Known: func(string) (domain.History, error) { return domain.History{}, nil },
	}
	o := gormstore.Options{Driver: "sqlite", DSN: p.Database, Logger: slog.New(slog.DiscardHandler)}
	require.NoError(t, gormstore.Migrate(t.Context(), o))
	s, err := gormstore.Open(t.Context(), o)
	require.NoError(t, err)
	box, err := secret.Load("", p.SealingKeyFile)
	require.NoError(t, err)
	require.NoError(t, box.Claim(t.Context(), s))
	_, err = s.ClusterValue(t.Context(), "cluster_id", "here")
	require.NoError(t, err)
	require.NoError(t, s.Close())
	return p
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(raw)
}

func TestABackupComesBackOnAnotherMachine(t *testing.T) {
	t.Parallel()
	p := place(t)
	file := filepath.Join(t.TempDir(), "nightly.db")
	made, err := backup.Make(t.Context(), p, backup.Options{File: file, SealingKey: true})
	require.NoError(t, err)
	require.Equal(t, "1.2.3", made.Version)
	require.Equal(t, made.SHA256+"  nightly.db\n", read(t, file+".sha256"))
	require.Equal(t, read(t, p.SealingKeyFile), read(t, made.SealingKey))
	_, err = backup.Make(t.Context(), p, backup.Options{File: file})
	require.ErrorIs(t, err, fs.ErrExist)
	_, err = backup.Make(t.Context(), p, backup.Options{File: file, Replace: true})
	require.NoError(t, err)

	other := p
	other.DataDir = filepath.Join(t.TempDir(), "new")
	other.Database, other.SealingKeyFile = filepath.Join(other.DataDir, "carillon.db"), filepath.Join(other.DataDir, "sealing.key")
	back, err := backup.Restore(t.Context(), other, backup.RestoreOptions{File: file})
	require.NoError(t, err)
	require.True(t, back.Held && back.Checked, "%+v", back)
	require.Empty(t, back.Aside)
	require.Empty(t, back.Notes)
	require.Equal(t, other.SealingKeyFile, back.SealingKey)
	require.Equal(t, read(t, p.SealingKeyFile), read(t, other.SealingKeyFile))
	back, err = backup.Restore(t.Context(), other, backup.RestoreOptions{File: file, AcceptHistory: true})
	require.NoError(t, err)
	require.False(t, back.Held)
	require.FileExists(t, back.Aside, "the database that was there is kept")
}

func TestWhatIsNoBackup(t *testing.T) {
	t.Parallel()
	p := place(t)
	for _, link := range []string{p.Database, filepath.Join(p.DataDir, "link.db")} {
		if link != p.Database {
			require.NoError(t, os.Link(p.Database, link))
		}
		_, err := backup.Make(t.Context(), p, backup.Options{File: link, Replace: true})
		require.ErrorContains(t, err, "is the database itself")
		_, err = backup.Restore(t.Context(), p, backup.RestoreOptions{File: link})
		require.ErrorContains(t, err, "is the database itself")
	}
	file := filepath.Join(t.TempDir(), "b.db")
	_, err := backup.Make(t.Context(), p, backup.Options{File: file})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file+".sha256", []byte("0123  b.db\n"), 0o600))
	_, err = backup.Restore(t.Context(), p, backup.RestoreOptions{File: file})
	require.ErrorContains(t, err, "holds no checksum")
	require.NoError(t, os.WriteFile(file+".sha256", []byte(hex.EncodeToString(make([]byte, 32))+"  b.db\n"), 0o600))
	_, err = backup.Restore(t.Context(), p, backup.RestoreOptions{File: file})
	require.ErrorContains(t, err, "was changed or is not whole")
	p.Database = filepath.Join(p.DataDir, "none.db")
	_, err = backup.Make(t.Context(), p, backup.Options{File: file})
	require.ErrorContains(t, err, "no database")
}

// The key of another cluster opens none of the secrets in a backup.
func TestTheKeyHasToFit(t *testing.T) {
	t.Parallel()
	p := place(t)
	file := filepath.Join(t.TempDir(), "b.db")
	_, err := backup.Make(t.Context(), p, backup.Options{File: file})
	require.NoError(t, err)
	require.NoError(t, os.Remove(p.SealingKeyFile))
	_, err = secret.Load("", p.SealingKeyFile)
	require.NoError(t, err)
	_, err = backup.Make(t.Context(), p, backup.Options{File: file + "2", SealingKey: true})
	require.ErrorContains(t, err, "is not the one of this database")
	back, err := backup.Restore(t.Context(), p, backup.RestoreOptions{File: file})
	require.NoError(t, err)
	require.Len(t, back.Notes, 1)
	require.Contains(t, back.Notes[0], "is another one: put the right one at "+p.SealingKeyFile)
}
