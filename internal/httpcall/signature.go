package httpcall

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"
)

// Headers of a signed request.
const (
	// HeaderSignature is "t=<Unix seconds>,v1=<hex HMAC-SHA256 of "t.body">".
	HeaderSignature = "Carillon-Signature"
	// HeaderKeyID tells which secret signed, for the time of a change.
	HeaderKeyID = "Carillon-Key-Id"
)

// Sign says with two headers who sends the body, and when.
func Sign(h http.Header, secret, body []byte, at time.Time) {
	h.Set(HeaderKeyID, KeyID(secret))
	h.Set(HeaderSignature, Signature(secret, body, at))
}

// Signature returns the value of HeaderSignature.
func Signature(secret, body []byte, at time.Time) string {
	t := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(t)) // never fails
	mac.Write([]byte{'.'})
	mac.Write(body)
	return "t=" + t + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

// KeyID names a secret without giving it away: the first 16 hex digits of
// SHA-256 over a label, a zero byte and the secret.
func KeyID(secret []byte) string {
	sum := sha256.Sum256(append([]byte("carillon webhook key\x00"), secret...))
	return hex.EncodeToString(sum[:8])
}
