// Package post answers: how is a request of an alert sent to a user's address?
//
// The address is the user's, so it is not trusted: the connection is checked
// after the name is resolved (no rebinding), may not lead to loopback,
// private, link-local or metadata networks unless the operator allows them,
// takes no proxy from the environment and follows no redirect. One exchange
// ends after Timeout, and at most 64 KiB of the answer are read.
package post

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/internal/egress"
	"github.com/carillon-sched/carillon/internal/httpcall"
)

const (
	// Timeout bounds one exchange, from the name's resolution to the answer's end.
	Timeout = 5 * time.Second
	// maxAnswer is how much of an answer is read, header and body each.
	maxAnswer = 64 << 10
)

// Options of a Client.
type Options struct {
	// AllowPrefixes are networks that may be reached though they are loopback,
	// private or otherwise special. Empty: none.
	AllowPrefixes []netip.Prefix
	// RootCAs verify the receivers' certificates; nil = the system's.
	RootCAs *x509.CertPool
	// UserAgent names this server; empty = "carillon".
	UserAgent string
	// Logger gets the causes that errors hide; nil = none.
	Logger *slog.Logger
}

// Client posts. It is safe for concurrent use.
type Client struct {
	userAgent string
	transport *http.Transport
	http      *http.Client
}

// New returns a client; it opens no connection.
func New(opt Options) *Client {
	if opt.UserAgent == "" {
		opt.UserAgent = "carillon"
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	transport := httpcall.NewTransport(opt.AllowPrefixes, opt.RootCAs, opt.Logger)
	transport.TLSHandshakeTimeout, transport.ResponseHeaderTimeout, transport.MaxResponseHeaderBytes = Timeout, Timeout, maxAnswer
	// Alerts are rare: a kept connection would mostly be a stale one.
	transport.DisableKeepAlives = true
	return &Client{userAgent: opt.UserAgent, transport: transport, http: httpcall.NewClient(transport)}
}

// Lane names what is slow together: one host of one tenant. Tenants do not
// close each other's lanes, though they use the same service.
func Lane(n *notify.Notice, address string) string {
	host := "?"
	if u, err := url.Parse(address); err == nil {
		host = strings.ToLower(u.Host)
	}
	return n.Event.TenantID.String() + " " + host
}

// Answer is what the receiver said.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte // at most 64 KiB of it
	// Broken: it said so much and no more.
	Broken bool
}

// Do posts a body. An error says that there was no answer; what an answer means
// is for Verdict, or for who knows the receiver better.
func (c *Client) Do(ctx context.Context, address string, header http.Header, body []byte) (Answer, error) {
	if err := CheckURL(address); err != nil {
		return Answer{}, notify.Permanent(err)
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return Answer{}, notify.Permanent(errors.New("the address is not valid"))
	}
	request.Header = header
	header.Set("User-Agent", c.userAgent)
	answer, err := c.http.Do(request)
	if err != nil {
		return Answer{}, transportError(err)
	}
	defer answer.Body.Close()
	// Read on, so that the receiver sees its answer taken.
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	return Answer{Status: answer.StatusCode, Header: answer.Header, Body: text, Broken: err != nil}, nil
}

// Reach connects to the receiver, with TLS where its address says so, and asks
// for nothing.
func (c *Client) Reach(ctx context.Context, address string) error {
	if err := CheckURL(address); err != nil {
		return err
	}
	u, err := url.Parse(address)
	if err != nil {
		return err // CheckURL has parsed it
	}
	port := u.Port()
	if port == "" {
		port = u.Scheme // the resolver knows the names
	}
	conn, err := c.transport.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return transportError(err)
	}
	if u.Scheme == "https" {
		config := c.transport.TLSClientConfig.Clone()
		config.ServerName = u.Hostname()
		secure := tls.Client(conn, config)
		err = secure.HandshakeContext(ctx)
		conn = secure
	}
	return errors.Join(err, conn.Close())
}

// CheckURL tells why an address cannot be posted to, or nil. Whether it may be
// reached shows when it is dialled.
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
	err = egress.Public(err)
	switch {
	case egress.Refused(err):
		return notify.Permanent(fmt.Errorf("%w (--webhook-allow)", err))
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return notify.Unreachable(fmt.Errorf("no answer within %s: %w", Timeout, err))
	default:
		return notify.Unreachable(err)
	}
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// Verdict reads an answer by its status: 2xx is delivered; 408, 425, 429 and 5xx
// may get better; a redirect is not followed, and it and any other answer is final.
func (a Answer) Verdict() error {
	if a.Status/100 == 2 {
		return nil
	}
	err := fmt.Errorf("the receiver answered %d %s%s", a.Status, http.StatusText(a.Status), a.Excerpt())
	switch {
	case a.Status/100 == 3:
		return notify.Permanent(fmt.Errorf("%w; redirects are not followed", err))
	case a.Status/100 == 5, a.Status == http.StatusRequestTimeout, a.Status == http.StatusTooEarly, a.Status == http.StatusTooManyRequests:
		return &notify.SendError{Err: err, RetryAfter: a.RetryAfter()}
	default:
		return notify.Permanent(err)
	}
}

// RetryAfter reads the header in its form of seconds; a date is not worth it. More than
// 18 hours are 18 hours.
func (a Answer) RetryAfter() time.Duration {
	seconds, err := strconv.ParseUint(a.Header.Get("Retry-After"), 10, 16)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// Excerpt returns the beginning of an answer for the delivery log, printable
// and on one line; a colon stands before it.
func (a Answer) Excerpt() string {
	if clean := Clean(string(a.Body)); clean != "" {
		return ": " + clean
	}
	return ""
}

// Clean is the beginning of a foreign text, printable and on one line.
func Clean(text string) string {
	const most = 200
	return strings.Join(strings.FieldsFunc(text[:min(len(text), most)], func(r rune) bool {
		return r < ' ' || r == 0x7f || r == 0xfffd || r >= 0x80 && r < 0xa0
	}), " ")
}
