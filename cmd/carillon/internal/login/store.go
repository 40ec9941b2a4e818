package login

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Session is what is kept for one server.
type Session struct {
	AccessToken string    `json:"accessToken"`
	ExpiresAt   time.Time `json:"expiresAt"`
	Cookies     []string  `json:"cookies"`
	Username    string    `json:"username"`
	Tenant      string    `json:"tenant"`
}

// file is the format on disk.
type file struct {
	// Server is the address used last by login: the default of other commands.
	Server   string             `json:"server"`
	Sessions map[string]Session `json:"sessions"` // by server address
}

// Store is the credentials file.
type Store struct{ path string }

// DefaultStore is the file in the user's configuration folder.
func DefaultStore() (*Store, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return nil, fmt.Errorf("find the configuration folder: %w (set HOME or XDG_CONFIG_HOME)", err)
	}
	return NewStore(filepath.Join(dir, "carillon", "credentials.json")), nil
}

// NewStore is the file at path; it need not exist.
func NewStore(path string) *Store { return &Store{path: path} }

// Path of the file.
func (s *Store) Path() string { return s.path }

// Server is the address used last by login; empty when there is none.
func (s *Store) Server() (string, error) {
	f, err := s.read()
	return f.Server, err
}

// Find returns the session of a server; ok is false when there is none.
func (s *Store) Find(server string) (found Session, ok bool, err error) {
	f, err := s.read()
	found, ok = f.Sessions[server]
	return found, ok, err
}

// Save keeps a session.
func (s *Store) Save(server string, session Session) error {
	return s.change(func(f *file) { f.Sessions[server] = session })
}

// Use makes a server the default of commands that name none.
func (s *Store) Use(server string) error {
	return s.change(func(f *file) { f.Server = server })
}

// Remove forgets a session.
func (s *Store) Remove(server string) error {
	return s.change(func(f *file) { delete(f.Sessions, server) })
}

// change is safe among several processes.
func (s *Store) change(edit func(*file)) error {
	unlock, err := s.lock("file")
	if err != nil {
		return err
	}
	defer unlock()
	f, err := s.read()
	if err != nil {
		return err
	}
	edit(&f)
	return s.write(f)
}

func (s *Store) read() (file, error) {
	f := file{Sessions: map[string]Session{}}
	raw, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("read credentials: %w", err)
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return f, fmt.Errorf("read credentials: %s: %w (remove the file and log in again)", s.path, err)
	}
	if f.Sessions == nil {
		f.Sessions = map[string]Session{}
	}
	return f, nil
}

// write replaces the file as a whole; nobody else can ever read it, because
// temporary files are made with mode 0600.
func (s *Store) write(f file) error {
	raw, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("encode credentials: %w", err)
	}
	temp, err := os.CreateTemp(filepath.Dir(s.path), ".credentials-*")
	if err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}
	_, err = temp.Write(append(raw, '\n'))
	err = errors.Join(err, temp.Chmod(0o600), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), s.path)
	}
	if err != nil {
		return fmt.Errorf("write credentials: %w", errors.Join(err, os.Remove(temp.Name())))
	}
	return nil
}

// lock waits for the named lock beside the file. The locks are "file", held
// for one change, and "renew", held over a renewal; renew is taken first.
func (s *Store) lock(name string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return nil, fmt.Errorf("make the configuration folder: %w", err)
	}
	f, err := os.OpenFile(s.path+"."+name+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock credentials: %w", err)
	}
	if err := lockFile(f); err != nil {
		return nil, fmt.Errorf("lock credentials: %w", errors.Join(err, f.Close()))
	}
	// Closing releases the lock; there is nothing to do about an error.
	return func() { _ = f.Close() }, nil
}
