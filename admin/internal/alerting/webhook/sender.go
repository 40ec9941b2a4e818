package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"code.dny.dev/ssrf"

	"github.com/carillon-sched/carillon/admin/internal/alerting"
	"github.com/carillon-sched/carillon/admin/internal/secret"
)

const (
	// Timeout bounds one exchange, from the name's resolution to the answer's end.
	Timeout = 5 * time.Second
	// maxAnswer is how much of an answer is read, header and body each.
	maxAnswer = 64 << 10
)

// Options of a Sender.
type Options struct {
	// AllowPrefixes are networks that may be reached though they are loopback,
	// private or otherwise special. Empty: none.
	AllowPrefixes []netip.Prefix
	// Opener opens the jobs' signing secrets.
	Opener   alerting.Opener
	Language alerting.Language // of title and summary; empty = English
	// RootCAs verify the receivers' certificates; nil = the system's.
	RootCAs *x509.CertPool
	// UserAgent names this server; empty = "carillon".
	UserAgent string
}

// Sender posts notices. It is safe for concurrent use.
type Sender struct {
	opt    Options
	client *http.Client
}

var _ alerting.Sender = (*Sender)(nil)

// New returns a sender; it opens no connection.
func New(opt Options) *Sender {
	if opt.UserAgent == "" {
		opt.UserAgent = "carillon"
	}
	dialer := &net.Dialer{Timeout: Timeout, Control: guard(opt.AllowPrefixes).Safe}
	return &Sender{opt: opt, client: &http.Client{
		Transport: &http.Transport{
			Proxy:       nil, // the guard would see the proxy's address instead of the receiver's
			DialContext: dialer.DialContext,
			TLSClientConfig: &tls.Config{
				RootCAs: opt.RootCAs, MinVersion: tls.VersionTLS12,
			},
			TLSHandshakeTimeout:    Timeout,
			ResponseHeaderTimeout:  Timeout,
			MaxResponseHeaderBytes: maxAnswer,
			ForceAttemptHTTP2:      true,
			// Alerts are rare: a kept connection would mostly be a stale one.
			DisableKeepAlives: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// guard checks the address that is dialled, after the name was resolved.
func guard(allowed []netip.Prefix) *ssrf.Guardian {
	var v4, v6 []netip.Prefix
	for _, prefix := range allowed {
		if prefix.Addr().Is4() {
			v4 = append(v4, prefix)
		} else {
			v6 = append(v6, prefix)
		}
	}
	return ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...))
}

// Channel implements alerting.Sender.
func (s *Sender) Channel() string { return alerting.ChannelWebhook }

// Timeout implements alerting.Sender.
func (s *Sender) Timeout() time.Duration { return Timeout }

// Lane implements alerting.Sender: one host of one tenant. Tenants do not
// close each other's lanes, though they use the same service.
func (s *Sender) Lane(n *alerting.Notice) string {
	host := "?"
	if u, err := url.Parse(n.Target); err == nil {
		host = strings.ToLower(u.Host)
	}
	return n.Event.TenantID.String() + " " + host
}

// Send implements alerting.Sender.
func (s *Sender) Send(ctx context.Context, n *alerting.Notice) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	request, err := s.request(ctx, n)
	if err != nil {
		return err
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return transportError(err)
	}
	defer answer.Body.Close()
	// Read on, so that the receiver sees its answer taken; what it says only
	// matters for the delivery log.
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil && answer.StatusCode/100 == 2 {
		// The receiver said yes and then dripped or broke off: it was told.
		return nil
	}
	return verdict(answer, text)
}

func (s *Sender) request(ctx context.Context, n *alerting.Notice) (*http.Request, error) {
	if err := CheckURL(n.Target); err != nil {
		return nil, alerting.Permanent(err)
	}
	body := payload(n, s.opt.Language).encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, n.Target, bytes.NewReader(body))
	if err != nil {
		return nil, alerting.Permanent(errors.New("the address is not valid"))
	}
	h := request.Header
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("User-Agent", s.opt.UserAgent)
	h.Set(HeaderVersion, Version)
	h.Set(HeaderDedupeKey, n.DedupeKey)
	h.Set(HeaderTry, strconv.Itoa(n.Try))
	if sealed := n.Job.Spec.Alert.WebhookSecret; len(sealed) > 0 {
		key, err := s.opt.Opener.Open(n.Event.TenantID, secret.PurposeJobWebhook, int64(n.Event.JobID), sealed)
		if err != nil {
			// Temporary: a node with the right key can still deliver it.
			return nil, fmt.Errorf("open the signing secret: %w", err)
		}
		h.Set(HeaderKeyID, keyID(key))
		h.Set(HeaderSignature, signature(key, body, time.Now()))
	}
	return request, nil
}

// CheckURL tells why an address cannot be a webhook's, or nil. Whether it may
// be reached shows when it is dialled.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return errors.New("the address is not valid") // url's error would repeat the address, which may hold a token
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("the address must begin with http:// or https://")
	case u.Hostname() == "":
		return errors.New("the address names no host")
	default:
		return nil
	}
}

// transportError sorts out why there was no answer. The address is left out
// of the text, because many services put a token into it.
func transportError(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	switch {
	case errors.Is(err, ssrf.ErrProhibitedIP), errors.Is(err, ssrf.ErrProhibitedNetwork):
		return alerting.Permanent(fmt.Errorf("the address leads to a network that webhooks may not reach (webhook-allow): %w", err))
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return alerting.Unreachable(fmt.Errorf("no answer within %s: %w", Timeout, err))
	default:
		return alerting.Unreachable(err)
	}
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// verdict reads an answer: 2xx is delivered; 408, 425, 429 and 5xx may get
// better; a redirect is not followed, and it and any other answer is final.
func verdict(answer *http.Response, text []byte) error {
	code := answer.StatusCode
	if code/100 == 2 {
		return nil
	}
	err := fmt.Errorf("the receiver answered %d %s%s", code, http.StatusText(code), excerpt(text))
	switch {
	case code/100 == 3:
		return alerting.Permanent(fmt.Errorf("%w; redirects are not followed", err))
	case code/100 == 5, code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests:
		return &alerting.SendError{Err: err, RetryAfter: retryAfter(answer)}
	default:
		return alerting.Permanent(err)
	}
}

// retryAfter reads the header in its form of seconds; a date is not worth it.
func retryAfter(answer *http.Response) time.Duration {
	seconds, err := strconv.ParseUint(answer.Header.Get("Retry-After"), 10, 16)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// excerpt returns the beginning of an answer for the delivery log, printable
// and on one line.
func excerpt(text []byte) string {
	const most = 200
	clean := strings.Join(strings.FieldsFunc(string(text[:min(len(text), most)]), func(r rune) bool {
		return r < ' ' || r == 0x7f || r == 0xfffd || r >= 0x80 && r < 0xa0
	}), " ")
	if clean == "" {
		return ""
	}
	return ": " + clean
}
