package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// Headers of a webhook request.
const (
	// HeaderSignature is "t=<Unix seconds>,v1=<hex HMAC-SHA256 of "t.body">".
	HeaderSignature = "Carillon-Signature"
	// HeaderKeyID tells which secret signed, for the time of a change.
	HeaderKeyID = "Carillon-Key-Id"
	// HeaderDedupeKey is the same in every delivery of one event to one URL.
	HeaderDedupeKey = "Carillon-Dedupe-Key"
	// HeaderTry counts the deliveries with this key from 1.
	HeaderTry = "Carillon-Delivery-Attempt"
	// HeaderVersion is the payload's version.
	HeaderVersion = "Carillon-Version"
)

// signature returns the value of HeaderSignature.
func signature(secret, body []byte, at time.Time) string {
	t := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(t)) // never fails
	mac.Write([]byte{'.'})
	mac.Write(body)
	return "t=" + t + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

// keyID names a secret without giving it away: the first 16 hex digits of
// SHA-256 over a label, a zero byte and the secret.
func keyID(secret []byte) string {
	sum := sha256.Sum256(append([]byte("carillon webhook key\x00"), secret...))
	return hex.EncodeToString(sum[:8])
}
