package resource

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Sealer seals secrets before they are stored, opens them, and makes fingerprints of them.
type Sealer interface {
	Seal(tenant domain.TenantID, purpose string, id int64, plain []byte) ([]byte, error)
	Open(tenant domain.TenantID, purpose string, id int64, sealed []byte) ([]byte, error)
	// Mark is a keyed fingerprint: equal for the same bytes in the same place only.
	Mark(tenant domain.TenantID, purpose string, id int64, plain []byte) string
}

// Fingerprint stands for a secret in documents. It is bound to its place.
func Fingerprint(with Sealer, tenant domain.TenantID, purpose string, id int64, plain []byte) string {
	return markPrefix + with.Mark(tenant, purpose, id, plain)
}

// IsFingerprint reports whether a value stands for a secret.
func IsFingerprint(value string) bool { return strings.HasPrefix(value, markPrefix) }

// markPrefix begins the mark of a secret in answers.
const markPrefix = "fingerprint:"

// OlderMarks stand for the secrets of a row of before the mechanism. The next edit that gives
// a secret makes its fingerprint.
func OlderMarks(has map[string]bool) map[string]string {
	out := map[string]string{}
	for name, is := range has {
		if is {
			out[name] = markPrefix + "unknown"
		}
	}
	return out
}

// secrets are all secrets of a document after w. Those that w leaves out stay, if they may be
// sent where the new spec leads.
func (d *Documents) secrets(row, old *Row, w Write) (map[string]string, error) {
	out := map[string]string{}
	if old != nil {
		stored, err := OpenSecrets(d.o.Secrets, d.o.Kind.Purpose, &old.Meta)
		if err != nil {
			return nil, err
		}
		out = stored
	}
	var c domain.Checker
	given, elsewhere := map[string]bool{}, false
	for _, name := range slices.Sorted(maps.Keys(w.Secrets)) {
		value, at := w.Secrets[name], "body.secrets."+name
		field := slices.IndexFunc(d.o.Kind.Secrets, func(f SecretField) bool { return f.Name == name })
		c.Check(field >= 0, at, nil, "is no secret of this kind: "+strings.Join(d.secretNames(), ", "))
		c.Check(len(value) <= MaxSecretLength, at, nil, fmt.Sprintf("must not exceed %d bytes", MaxSecretLength))
		mark := IsFingerprint(value)
		elsewhere = elsewhere || field >= 0 && d.o.Kind.Secrets[field].Address && !mark && value != out[name]
		switch {
		case mark && value != row.Marks[name]:
			c.Check(false, at, nil, "is the fingerprint of another secret: give the secret itself")
		case mark:
			// It stays.
		case value == "":
			delete(out, name)
			given[name] = true
		default:
			out[name] = value
			given[name] = true
		}
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	if old == nil {
		return out, nil
	}
	same, err := d.o.Kind.rules.sameReceiver(w.Spec, old)
	if err != nil || same && !elsewhere {
		return out, err
	}
	for _, name := range slices.Sorted(maps.Keys(out)) {
		c.Check(given[name], "body.secrets."+name, nil, "must be given again: the "+d.o.Kind.Noun+" leads elsewhere, or logs in otherwise")
	}
	return out, c.Err()
}

func (d *Documents) secretNames() (out []string) {
	for _, f := range d.o.Kind.Secrets {
		out = append(out, f.Name)
	}
	return out
}

// seal puts secrets and their marks into a row.
func (d *Documents) seal(row *Row, secrets map[string]string) error {
	row.Sealed, row.Marks = nil, nil
	if len(secrets) == 0 {
		return nil
	}
	plain, err := json.Marshal(secrets)
	if err != nil {
		return err
	}
	row.Marks = map[string]string{}
	for name, value := range secrets {
		row.Marks[name] = Fingerprint(d.o.Secrets, row.Tenant, d.o.Kind.Purpose+"."+name, row.ID, []byte(value))
	}
	row.Sealed, err = d.o.Secrets.Seal(row.Tenant, d.o.Kind.Purpose, row.ID, plain)
	return err
}

// Opener opens what was sealed.
type Opener interface {
	Open(tenant domain.TenantID, purpose string, id int64, sealed []byte) ([]byte, error)
}

// OpenSecrets are the secrets of a document by name.
func OpenSecrets(with Opener, purpose string, m *Meta) (map[string]string, error) {
	out := map[string]string{}
	if len(m.Sealed) == 0 {
		return out, nil
	}
	plain, err := with.Open(m.Tenant, purpose, m.ID, m.Sealed)
	if err != nil {
		return nil, err
	}
	return out, json.Unmarshal(plain, &out)
}
