package secret

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// KeySize is the length of a sealing key in bytes.
const KeySize = 32

// Purposes keep the secrets of one object apart. They are part of what is
// authenticated: changing one makes the stored values unreadable.
const (
	// PurposeJobWebhook is a job's webhook signing key; the id is the job's.
	PurposeJobWebhook = "job.webhook"
	// PurposeCallbacks is what signs a tenant's callbacks; the id is the tenant's.
	PurposeCallbacks = "tenant.callbacks"
	// PurposeExecutorAuthority is the key that signs executors' certificates; the
	// id is the authority's, the tenant is 0: it serves all.
	PurposeExecutorAuthority = "executor.authority"
	// PurposeConnection is what a connection logs in with; the id is the connection's.
	PurposeConnection = "connection"
	// PurposeAlertChannel is the address, key and token of an alert channel; the
	// id is the channel's.
	PurposeAlertChannel = "alert.channel"
)

// version is the first byte of a sealed value. Layout: version (1), first
// bytes of the key's fingerprint (4), nonce (12), ciphertext and tag.
const (
	version    = 1
	keyIDSize  = 4
	headerSize = 1 + keyIDSize
	nonceSize  = 12
)

// ErrUnreadable: the value was sealed with another key or for another place,
// or it was changed.
var ErrUnreadable = errors.New("sealed value does not open: another key, another place, or it was changed")

// Box seals and opens. It is safe for concurrent use.
type Box struct {
	aead        cipher.AEAD
	fingerprint string
	scriptKey   ed25519.PrivateKey
	markKey     []byte
	auditKey    []byte
	keyID       [keyIDSize]byte
}

// New returns a Box with this key.
func New(key []byte) (*Box, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("sealing key: has %d bytes, needs %d", len(key), KeySize)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("sealing key: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("sealing key: %w", err)
	}
	// The label keeps the fingerprint apart from any other hash of the key.
	sum := sha256.Sum256(append([]byte("carillon sealing key fingerprint\x00"), key...))
	seed, err := hkdf.Key(sha256.New, key, nil, "carillon script signing key", ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("script signing key: %w", err)
	}
	markKey, err := hkdf.Key(sha256.New, key, nil, "carillon fingerprints of secrets", KeySize)
	if err != nil {
		return nil, fmt.Errorf("key of fingerprints: %w", err)
	}
	auditKey, err := hkdf.Key(sha256.New, key, nil, "carillon chain of the audit log", KeySize)
	if err != nil {
		return nil, fmt.Errorf("key of the audit log: %w", err)
	}
	b := &Box{aead: aead, fingerprint: hex.EncodeToString(sum[:16]), scriptKey: ed25519.NewKeyFromSeed(seed), markKey: markKey, auditKey: auditKey}
	copy(b.keyID[:], sum[:])
	return b, nil
}

// ScriptKey signs what agents run. It is derived from the sealing key: all
// nodes have the same, and the database does not hold it.
func (b *Box) ScriptKey() ed25519.PrivateKey { return b.scriptKey }

// Fingerprint names the key without giving it away: 32 hex digits.
func (b *Box) Fingerprint() string { return b.fingerprint }

// Seal encrypts plain for one place: the object with this id in this tenant.
func (b *Box) Seal(tenant domain.TenantID, purpose string, id int64, plain []byte) ([]byte, error) {
	out := make([]byte, headerSize+nonceSize, headerSize+nonceSize+len(plain)+b.aead.Overhead())
	out[0] = version
	copy(out[1:], b.keyID[:])
	if _, err := rand.Read(out[headerSize:]); err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return b.aead.Seal(out, out[headerSize:], plain, place(tenant, purpose, id)), nil
}

// Open decrypts what Seal made for the same place; otherwise ErrUnreadable.
func (b *Box) Open(tenant domain.TenantID, purpose string, id int64, sealed []byte) ([]byte, error) {
	if len(sealed) < headerSize+nonceSize+b.aead.Overhead() || sealed[0] != version {
		return nil, ErrUnreadable
	}
	nonce, body := sealed[headerSize:headerSize+nonceSize], sealed[headerSize+nonceSize:]
	plain, err := b.aead.Open(nil, nonce, body, place(tenant, purpose, id))
	if err != nil {
		return nil, ErrUnreadable
	}
	return plain, nil
}

// Mark is a keyed fingerprint of a secret: 24 hex digits, equal for the same bytes in the same
// place only. Without the key nobody can try secrets against it.
func (b *Box) Mark(tenant domain.TenantID, purpose string, id int64, plain []byte) string {
	sum := hmac.New(sha256.New, b.markKey)
	sum.Write(place(tenant, purpose, id))
	sum.Write(plain)
	return hex.EncodeToString(sum.Sum(nil)[:12])
}

// AuditHash is the keyed hash of a message of the audit log: 64 hex digits. All nodes have the
// same key, and the database does not hold it.
func (b *Box) AuditHash(message []byte) string {
	sum := hmac.New(sha256.New, b.auditKey)
	sum.Write(message)
	return hex.EncodeToString(sum.Sum(nil))
}

// place is the additional data: fixed-width numbers around a length-prefixed
// purpose, so that no two places give the same bytes.
func place(tenant domain.TenantID, purpose string, id int64) []byte {
	out := make([]byte, 0, 32+len(purpose))
	out = append(out, "carillon/secret/1"...)
	out = binary.BigEndian.AppendUint64(out, uint64(tenant))
	out = binary.BigEndian.AppendUint32(out, uint32(len(purpose)))
	out = append(out, purpose...)
	return binary.BigEndian.AppendUint64(out, uint64(id))
}

// Values is the part of store.Cluster that Claim needs.
type Values interface {
	ClusterValue(ctx context.Context, key, initial string) (string, error)
}

// FingerprintValue is the cluster value that holds the fingerprint.
const FingerprintValue = "sealing_key_fingerprint"

// Claim makes sure that all nodes on this database use the same key: the first
// one leaves the fingerprint, and another key is refused.
func (b *Box) Claim(ctx context.Context, values Values) error {
	known, err := values.ClusterValue(ctx, FingerprintValue, b.fingerprint)
	if err != nil {
		return fmt.Errorf("compare sealing key: %w", err)
	}
	return b.Fits(known)
}

// Fits refuses a key that is not the one with the known fingerprint.
func (b *Box) Fits(known string) error {
	if known != b.fingerprint {
		return fmt.Errorf("this node's sealing key (fingerprint %s) is not the one that this database was set up with "+
			"(fingerprint %s): copy sealing.key from the data directory of a working node, or name the right file "+
			"with --sealing-key-file or CARILLON_SEALING_KEY_FILE", b.fingerprint, known)
	}
	return nil
}
