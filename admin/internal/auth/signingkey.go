package auth

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/secret"
)

const (
	// SigningKeyFile is the name inside the data directory.
	SigningKeyFile = "signing.key"
	// keyLifetime is when a node makes itself a new key. The old one's public
	// half stays published, so its last tokens stay valid until they expire.
	keyLifetime = 30 * 24 * time.Hour
	// publishTTL is how long a published key stays valid without renewal; a
	// node that has gone is forgotten after that.
	publishTTL      = 24 * time.Hour
	publishInterval = time.Hour
)

// signingKey is a node's own key. Its id is derived from the public half, so
// that a copied data directory cannot make two keys share a name.
type signingKey struct {
	id        string
	private   ed25519.PrivateKey
	createdAt time.Time
}

func (k signingKey) public() ed25519.PublicKey { return k.private.Public().(ed25519.PublicKey) }

func keyID(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

const (
	pemType    = "PRIVATE KEY" // PKCS #8
	pemCreated = "Created"
)

// loadSigningKey reads the node's key from dir, or makes one when there is
// none or when it is older than keyLifetime.
func loadSigningKey(dir string, now time.Time) (signingKey, error) {
	path := filepath.Join(dir, SigningKeyFile)
	key, err := readSigningKey(path)
	if err == nil && now.Sub(key.createdAt) < keyLifetime {
		return key, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return signingKey{}, fmt.Errorf("signing key: %w", err)
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return signingKey{}, fmt.Errorf("signing key: %w", err)
	}
	key = signingKey{private: private, createdAt: now.UTC().Truncate(time.Second)}
	key.id = keyID(key.public())
	if err := writeSigningKey(path, key); err != nil {
		return signingKey{}, fmt.Errorf("signing key: %w", err)
	}
	return key, nil
}

func readSigningKey(path string) (signingKey, error) {
	info, err := os.Stat(path)
	if err != nil {
		return signingKey{}, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return signingKey{}, fmt.Errorf("%s has mode %04o: others may read it; run chmod 600 %s", path, mode, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return signingKey{}, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != pemType {
		return signingKey{}, fmt.Errorf("%s is not a PEM private key; remove it to get a new one", path)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return signingKey{}, fmt.Errorf("%s: %w", path, err)
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return signingKey{}, fmt.Errorf("%s is not an Ed25519 key", path)
	}
	key := signingKey{private: private, createdAt: info.ModTime()}
	if t, err := time.Parse(time.RFC3339, block.Headers[pemCreated]); err == nil {
		key.createdAt = t
	}
	key.id = keyID(key.public())
	return key, nil
}

func writeSigningKey(path string, key signingKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key.private)
	if err != nil {
		return err
	}
	block := &pem.Block{Type: pemType, Bytes: der, Headers: map[string]string{pemCreated: key.createdAt.Format(time.RFC3339)}}
	return secret.WriteFile(path, pem.EncodeToMemory(block), true)
}

// keyStore is the part of store.Cluster that keys need.
type keyStore interface {
	SaveSigningKey(ctx context.Context, k domain.SigningKey) error
	ListSigningKeys(ctx context.Context) ([]domain.SigningKey, error)
}

// keyring knows the public keys of all nodes.
type keyring struct {
	// fixed after construction
	store keyStore
	// refresh bounds how often tokens with unknown key names may cause a read:
	// four at once, then one a second.
	refresh *rate.Limiter
	once    singleflight.Group

	mu    sync.RWMutex
	known map[string]domain.SigningKey // guarded by mu
	own   []domain.SigningKey          // guarded by mu: published by this node, whatever the store lists
}

func newKeyring(s keyStore) *keyring {
	return &keyring{store: s, refresh: rate.NewLimiter(1, 4), known: map[string]domain.SigningKey{}}
}

// find returns the public key with this name. CodeUnauthenticated: no node
// has published it; CodeUnavailable and others: the store did not answer.
func (r *keyring) find(ctx context.Context, id string, now time.Time) (ed25519.PublicKey, error) {
	if key, ok := r.cached(id, now); ok {
		return key, nil
	}
	// One read serves all who wait; it must not end with the first of them.
	_, err, _ := r.once.Do("", func() (any, error) {
		if _, ok := r.cached(id, now); ok || !r.refresh.AllowN(now, 1) {
			return nil, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		return nil, r.load(ctx)
	})
	if err != nil {
		return nil, err
	}
	if key, ok := r.cached(id, now); ok {
		return key, nil
	}
	return nil, domain.Errorf(domain.CodeUnauthenticated, "the access token was signed by an unknown key")
}

func (r *keyring) cached(id string, now time.Time) (ed25519.PublicKey, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	k, ok := r.known[id]
	if !ok || now.After(k.ExpiresAt) {
		return nil, false
	}
	return k.PublicKey, true
}

func (r *keyring) load(ctx context.Context) error {
	keys, err := r.store.ListSigningKeys(ctx)
	if err != nil {
		return fmt.Errorf("read signing keys: %w", err)
	}
	known := make(map[string]domain.SigningKey, len(keys))
	for _, k := range keys {
		// The name has to be that of this key: a row cannot replace another
		// node's key under its name.
		if len(k.PublicKey) == ed25519.PublicKeySize && keyID(k.PublicKey) == k.ID {
			known[k.ID] = k
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = known
	for _, k := range r.own {
		r.known[k.ID] = k
	}
	return nil
}

// publish makes the node's key known to all nodes, for publishTTL.
func (r *keyring) publish(ctx context.Context, key signingKey, now time.Time) error {
	published := domain.SigningKey{ID: key.id, PublicKey: key.public(), CreatedAt: key.createdAt, ExpiresAt: now.Add(publishTTL)}
	if err := r.store.SaveSigningKey(ctx, published); err != nil {
		return fmt.Errorf("publish signing key: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// The database may list it late (a clock that is ahead of ours) or not at
	// all for a while; the node trusts its own keys until they expire.
	r.own = slices.DeleteFunc(r.own, func(k domain.SigningKey) bool { return k.ID == key.id || now.After(k.ExpiresAt) })
	r.own = append(r.own, published)
	r.known[key.id] = published
	return nil
}
