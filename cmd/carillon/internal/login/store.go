package login

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Session is what a login leaves.
type Session struct {
	AccessToken string    `json:"accessToken"`
	ExpiresAt   time.Time `json:"expiresAt"`
	Cookies     []string  `json:"cookies"`
	Username    string    `json:"username"`
	Tenant      string    `json:"tenant"`
}

// Context is a server under a name, and how this user asks it.
type Context struct {
	Server string `json:"server"`
	// APIKeyFile holds a key that is used when there is no session.
	APIKeyFile string   `json:"apiKeyFile,omitempty"`
	Session    *Session `json:"session,omitempty"` // nil: logged out
}

// file is the format on disk.
type file struct {
	// Current is the context of commands that name none.
	Current  string             `json:"current"`
	Contexts map[string]Context `json:"contexts"` // by name
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

// Contexts returns all of them, and the name of the current one, which may be empty.
func (s *Store) Contexts() (all map[string]Context, current string, err error) {
	f, err := s.read()
	return f.Contexts, f.Current, err
}

// Find returns a context; ok is false when there is none of this name.
func (s *Store) Find(name string) (found Context, ok bool, err error) {
	f, err := s.read()
	found, ok = f.Contexts[name]
	return found, ok, err
}

// NameOf returns the context with this server: the current one if it is that, else
// the first by name, else none.
func (s *Store) NameOf(server string) (string, error) {
	f, err := s.read()
	if f.Contexts[f.Current].Server == server {
		return f.Current, err
	}
	for _, name := range slices.Sorted(maps.Keys(f.Contexts)) {
		if f.Contexts[name].Server == server {
			return name, err
		}
	}
	return "", err
}

// Put makes a context, or replaces it. The first one is the current one.
func (s *Store) Put(name string, c Context) error {
	return s.change(func(f *file) {
		f.Contexts[name] = c
		if f.Current == "" {
			f.Current = name
		}
	})
}

// Save keeps a session, nil for none, in a context that is there.
func (s *Store) Save(name string, session *Session) error {
	return s.change(func(f *file) {
		if c, ok := f.Contexts[name]; ok {
			c.Session = session
			f.Contexts[name] = c
		}
	})
}

// Use makes a context the current one.
func (s *Store) Use(name string) error {
	return s.change(func(f *file) { f.Current = name })
}

// Rename gives a context another name; one of that name is replaced.
func (s *Store) Rename(name, to string) error {
	return s.change(func(f *file) {
		f.Contexts[to] = f.Contexts[name]
		delete(f.Contexts, name)
		if f.Current == name {
			f.Current = to
		}
	})
}

// Remove forgets a context.
func (s *Store) Remove(name string) error {
	return s.change(func(f *file) {
		delete(f.Contexts, name)
		if f.Current == name {
			f.Current = ""
		}
	})
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
	f := file{Contexts: map[string]Context{}}
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
	if f.Contexts == nil {
		f.Contexts = map[string]Context{}
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
