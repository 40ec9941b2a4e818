package secret

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// EnvKey may hold the key itself: 64 hex digits or base64 of 32 bytes. It wins
// over any file.
const EnvKey = "CARILLON_SEALING_KEY"

// Load returns the Box for key (as in EnvKey) if that is not empty, else for
// the file at path. A missing file is made with a random key and mode 0600; a
// file that others may read is refused.
func Load(key, path string) (*Box, error) {
	box, err := Read(key, path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := createKeyFile(path); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("sealing key: %w", err)
		}
		return Read(key, path)
	}
	return box, err
}

// Read is Load that makes no key: fs.ErrNotExist when there is none.
func Read(key, path string) (*Box, error) {
	raw, err := ReadKey(key, path)
	if err != nil {
		return nil, err
	}
	return New(raw)
}

// ReadKey returns the key that Read makes a Box of.
func ReadKey(key, path string) (raw []byte, err error) {
	if key != "" {
		if raw, err = ParseKey(key); err != nil {
			err = fmt.Errorf("%s: %w", EnvKey, err)
		}
		return raw, err
	}
	if raw, err = readKeyFile(path); err != nil {
		err = fmt.Errorf("sealing key: %w", err)
	}
	return raw, err
}

// ParseKey reads a key as text.
func ParseKey(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	if raw, err := hex.DecodeString(text); err == nil && len(raw) == KeySize {
		return raw, nil
	}
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawURLEncoding, base64.URLEncoding, base64.RawStdEncoding} {
		if raw, err := enc.DecodeString(text); err == nil && len(raw) == KeySize {
			return raw, nil
		}
	}
	return nil, fmt.Errorf("must be %d bytes as %d hex digits or base64", KeySize, 2*KeySize)
}

func readKeyFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("%s has mode %04o: others may read it; run chmod 600 %s", path, mode, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	raw, err := ParseKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return raw, nil
}

// NewKey returns a random key as text.
func NewKey() (string, error) {
	raw := make([]byte, KeySize)
	_, err := rand.Read(raw)
	return hex.EncodeToString(raw), err
}

// createKeyFile writes a random key. Of two processes that start at once one wins.
func createKeyFile(path string) error {
	key, err := NewKey()
	if err != nil {
		return err
	}
	return WriteFile(path, []byte(key+"\n"), false)
}

// WriteFile writes a small file that only its owner reads. It appears under its name when it is
// whole and on disk, so that a crash leaves the old content or the new one. Without replace a
// file of that name is left alone, and the error is fs.ErrExist.
func WriteFile(path string, content []byte, replace bool) error {
	part, err := os.CreateTemp(filepath.Dir(path), ".part-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(part.Name())
	_, err = part.Write(content)
	if err := errors.Join(err, part.Sync(), part.Close()); err != nil {
		return err
	}
	if !replace {
		return os.Link(part.Name(), path) // unlike a rename it never replaces
	}
	return os.Rename(part.Name(), path)
}
