package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	netmail "net/mail"
	"net/textproto"
	"os"
	"strconv"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/internal/egress"
)

// Timeout bounds one exchange with the mail server.
const Timeout = 30 * time.Second

// TLS modes.
const (
	TLSStart = "starttls" // plain connection that must become TLS before anything else
	TLSFirst = "tls"      // TLS from the first byte (port 465)
	TLSNone  = "none"     // never; must be chosen explicitly
)

// Config says how mails are sent.
type Config struct {
	Host string
	Port int // 0 = 587, or 465 with TLSFirst
	// From is the sender, "carillon@example.com" or "Carillon <carillon@…>";
	// empty = carillon@ and this machine's name.
	From string
	// Recipients may get mails; no domains = that of From.
	Recipients Recipients
	// Username and Password log in; an empty Username does not.
	Username, Password string
	TLS                string          // a TLS mode; empty = TLSStart
	Language           notify.Language // empty = English
	// RootCAs verify the server's certificate; nil = the system's.
	RootCAs *x509.CertPool
	// Timeout bounds one exchange; 0 = the constant Timeout.
	Timeout time.Duration
	// Logger gets the causes that errors hide; nil = none.
	Logger *slog.Logger
}

// Sender sends notices. It is safe for concurrent use.
type Sender struct {
	config Config
	from   *netmail.Address
	dialer *egress.Dialer
}

var _ notify.Sender = (*Sender)(nil)

// New checks the configuration; it opens no connection.
func New(config Config) (*Sender, error) {
	if config.Host == "" {
		return nil, errors.New("mail: no host is configured")
	}
	switch config.TLS {
	case "":
		config.TLS = TLSStart
	case TLSStart, TLSFirst:
	case TLSNone:
		if config.Username != "" && !egress.Loopback(config.Host) {
			return nil, fmt.Errorf("mail: the password would cross the network to %s in the clear; use TLS mode %s or %s", config.Host, TLSStart, TLSFirst)
		}
	default:
		return nil, fmt.Errorf("mail: TLS mode %q is not one of %s, %s, %s", config.TLS, TLSStart, TLSFirst, TLSNone)
	}
	if config.Port == 0 {
		config.Port = 587
		if config.TLS == TLSFirst {
			config.Port = 465
		}
	}
	if config.Timeout <= 0 {
		config.Timeout = Timeout
	}
	if config.From == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("mail: no sender is configured, and this machine has no name: %w", err)
		}
		config.From = "carillon@" + host
	}
	from, err := netmail.ParseAddress(config.From)
	if err != nil {
		return nil, fmt.Errorf("mail: sender %q: %w", config.From, err)
	}
	if len(config.Recipients.Domains) == 0 {
		config.Recipients.Domains = []string{domainOf(from.Address)}
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Sender{config: config, from: from, dialer: egress.NewOperatorDialer(config.Timeout, config.Logger)}
	_, err = s.client(context.Background())
	return s, err
}

// Channel implements notify.Sender.
func (s *Sender) Channel() string { return notify.ChannelEmail }

// Timeout implements notify.Sender.
func (s *Sender) Timeout() time.Duration { return s.config.Timeout }

// Lane implements notify.Sender: all mails go to the same server.
func (s *Sender) Lane(*notify.Notice) string { return s.config.Host }

// Check returns nil if the address may get mails.
func (s *Sender) Check(address string) error { return s.config.Recipients.Check(address) }

// Send implements notify.Sender.
func (s *Sender) Send(ctx context.Context, n *notify.Notice) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	if err := s.Check(n.Target); err != nil {
		return notify.Permanent(err)
	}
	message, err := s.message(n, time.Now())
	if err != nil {
		return notify.Permanent(err)
	}
	client, err := s.client(ctx)
	if err != nil {
		return err
	}
	err = client.DialAndSendWithContext(ctx, message)
	if err == nil || message.IsDelivered() { // what follows the delivery cannot undo it
		return nil
	}
	return classify(ctx, egress.Public(err))
}

// LogIn does everything that comes before a mail (connection, TLS, login), and says
// goodbye.
func (s *Sender) LogIn(ctx context.Context) error {
	client, err := s.client(ctx)
	if err != nil {
		return err
	}
	if err := client.DialWithContext(ctx); err != nil {
		return err
	}
	return client.Close()
}

// Server is the mail server's host and port.
func (s *Sender) Server() string { return net.JoinHostPort(s.config.Host, strconv.Itoa(s.config.Port)) }

// client makes a client for one exchange, which ends with ctx.
func (s *Sender) client(ctx context.Context) (*gomail.Client, error) {
	secure := &tls.Config{ServerName: s.config.Host, RootCAs: s.config.RootCAs, MinVersion: tls.VersionTLS12}
	options := []gomail.Option{
		gomail.WithPort(s.config.Port), gomail.WithTimeout(s.config.Timeout), gomail.WithTLSConfig(secure),
		gomail.WithTLSPolicy(gomail.TLSMandatory), gomail.WithoutNoop(),
		gomail.WithDialContextFunc(func(dialCtx context.Context, network, address string) (net.Conn, error) {
			conn, err := s.dial(dialCtx, ctx, network, address)
			if err != nil {
				return nil, err
			}
			if s.config.TLS != TLSFirst {
				return &greetedConn{boundedConn: conn, end: conn.end, wantsTLS: func() bool { return handshakes(ctx, network, address) }}, nil
			}
			secured := tls.Client(conn, secure)
			var notTLS tls.RecordHeaderError
			if err := secured.HandshakeContext(dialCtx); errors.As(err, &notTLS) {
				err = fmt.Errorf("%w: %w", errPlain, err)
				return nil, errors.Join(err, secured.Close())
			} else if err != nil {
				return nil, errors.Join(err, secured.Close())
			}
			return secured, nil
		}),
	}
	switch s.config.TLS {
	case TLSFirst:
		// The dialer above does TLS; this keeps the client from STARTTLS.
		options = append(options, gomail.WithSSL())
	case TLSNone:
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS))
	}
	if s.config.Username != "" {
		options = append(options, s.auth(), gomail.WithUsername(s.config.Username), gomail.WithPassword(s.config.Password))
	}
	client, err := gomail.NewClient(s.config.Host, options...)
	if err != nil {
		return nil, fmt.Errorf("mail: %w", err)
	}
	return client, nil
}

// auth takes the first of these mechanisms that the server offers. (The
// library's own search believes that a connection from our dialer is plain.)
func (s *Sender) auth() gomail.Option {
	if s.config.TLS == TLSNone {
		return gomail.WithSMTPAuth(gomail.SMTPAuthPlainNoEnc) // loopback only, see New
	}
	return gomail.WithOpportunisticSMTPAuth(gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthSCRAMSHA1,
		gomail.SMTPAuthPlain, gomail.SMTPAuthLogin, gomail.SMTPAuthCramMD5)
}

// classify tells a server's refusal (5xx to this mail: final) from what may
// get better: 4xx, a broken connection, and also a refused login or TLS,
// which the operator can mend.
func classify(ctx context.Context, err error) error {
	var refused *gomail.SendError
	if errors.As(err, &refused) && refused.ErrorCode() >= 500 {
		return notify.Permanent(err)
	}
	var answer *textproto.Error
	switch {
	case refused != nil && refused.ErrorCode() >= 400, errors.As(err, &answer):
		return err
	case isOver(ctx):
		return notify.Unreachable(fmt.Errorf("the mail server did not finish in time: %w", err))
	case isConnectionError(err):
		return notify.Unreachable(err)
	default:
		return err
	}
}

// isOver also sees a deadline at which the connection ended a moment before
// the context did.
func isOver(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(end)
}

func isConnectionError(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}
