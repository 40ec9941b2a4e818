package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/internal/httpcall"
)

// docs/guide/alerts.md shows the function below to receivers, word for word. It is
// written apart from the sender.

var signatureForm = regexp.MustCompile(`^t=([0-9]+),v1=([0-9a-f]{64})$`)

// verify checks a request from Carillon. body is what was read, byte for byte.
func verify(header http.Header, body, secret []byte) error {
	m := signatureForm.FindStringSubmatch(header.Get("Carillon-Signature"))
	if m == nil {
		return errors.New("no valid Carillon-Signature header")
	}
	seconds, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return errors.New("too old: perhaps a replay")
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(m[1] + "."))
	mac.Write(body)
	got, _ := hex.DecodeString(m[2]) // its form was checked
	if !hmac.Equal(got, mac.Sum(nil)) {
		return errors.New("signature is wrong")
	}
	return nil
}

func TestDocumentedVerification(t *testing.T) {
	source, err := os.ReadFile("verify_test.go")
	require.NoError(t, err)
	document, err := os.ReadFile("../../../../../docs/guide/alerts.md")
	require.NoError(t, err)
	shown := regexp.MustCompile(`(?s)var signatureForm.*?\n}\n`).Find(source)
	require.NotEmpty(t, shown)
	require.Contains(t, string(document), string(shown))

	body, now := []byte(`{"version":"carillon.alert/v1"}`), time.Now()
	header := http.Header{}
	require.Error(t, verify(header, body, []byte("s3cret")))
	header.Set("Carillon-Signature", httpcall.Signature([]byte("s3cret"), body, now.Add(-4*time.Minute)))
	require.NoError(t, verify(header, body, []byte("s3cret")))
	header.Set("Carillon-Signature", httpcall.Signature([]byte("s3cret"), body, now.Add(-6*time.Minute)))
	require.ErrorContains(t, verify(header, body, []byte("s3cret")), "too old")
	// A value that was computed elsewhere: printf '1700000000.{}' | openssl dgst -sha256 -hmac s3cret
	require.Equal(t, "t=1700000000,v1=97926816e98fbb41ccb1673225ff29a2f35369099990e1b1561651e7bd097ebf", httpcall.Signature([]byte("s3cret"), []byte("{}"), time.Unix(1700000000, 0)))
}
