package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// requestKey is the stored form of an Idempotency-Key of the request: digests of
// fixed length, apart from the keys that we make. asked is what the request
// says, without what only concerns its answer.
func requestKey(key string, asked any) string {
	raw, err := json.Marshal(asked)
	if err != nil {
		panic("api: " + err.Error()) // texts, numbers and JSON that was read already
	}
	body := sha256.Sum256(raw)
	sum := sha256.Sum256([]byte(key))
	return domain.RequestKey(base64.RawURLEncoding.EncodeToString(sum[:]), base64.RawURLEncoding.EncodeToString(body[:16]))
}

// sameOrder is the JSON value with the members of its objects in one order, so
// that a client that writes them in another one asks for the same.
func sameOrder(raw json.RawMessage) any {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil // nothing was sent
	}
	return v
}

// checkReplay refuses an Idempotency-Key that came with another request before.
func checkReplay(asked, stored string) error {
	_, now := domain.SplitRequestKey(asked)
	_, before := domain.SplitRequestKey(stored)
	if now == before {
		return nil
	}
	return &domain.Error{
		Code:    domain.CodeKeyReused,
		Message: "header.Idempotency-Key: came with another request before; send the same body again, or a new key",
		Fields: []domain.FieldError{{
			Location: "header.Idempotency-Key", Message: "came with another request before", Position: -1,
			Hint: "the same body again, or a new key",
		}},
	}
}
