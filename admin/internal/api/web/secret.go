package web

import (
	"encoding/json"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Sealer seals secrets before they are stored, and opens what it has sealed.
type Sealer interface {
	Seal(tenant domain.TenantID, purpose string, id int64, plain []byte) ([]byte, error)
	Open(tenant domain.TenantID, purpose string, id int64, sealed []byte) ([]byte, error)
	// Mark is a keyed fingerprint: equal for the same bytes in the same place only.
	Mark(tenant domain.TenantID, purpose string, id int64, plain []byte) string
}

// Seal is what is kept of the secrets of an object; nothing is of none.
func Seal[S comparable](with Sealer, tenant domain.TenantID, purpose string, id int64, secrets S) ([]byte, error) {
	if secrets == *new(S) {
		return nil, nil
	}
	plain, err := json.Marshal(secrets)
	if err != nil {
		return nil, err
	}
	return with.Seal(tenant, purpose, id, plain)
}

// Unseal reads what Seal has made.
func Unseal[S any](with Sealer, tenant domain.TenantID, purpose string, id int64, sealed []byte) (secrets S, err error) {
	if len(sealed) == 0 {
		return secrets, nil
	}
	plain, err := with.Open(tenant, purpose, id, sealed)
	if err != nil {
		return secrets, err
	}
	return secrets, json.Unmarshal(plain, &secrets)
}
