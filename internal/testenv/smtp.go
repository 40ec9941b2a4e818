package testenv

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"sync"
	"testing"

	"github.com/emersion/go-smtp"
)

// Mail is one message that the server took.
type Mail struct {
	From string
	To   []string
	Data string // header and body as sent, dots unstuffed
	TLS  bool   // came over STARTTLS
	User string // who logged in; "" for nobody
}

// SMTPReply is an answer prepared for a command of the client's.
type SMTPReply struct {
	// Command is the command this waits for: "MAIL", "RCPT" or "DATA".
	Command string
	// Code is the reply code, 4xx or 5xx; Text follows it.
	Code int
	Text string
	// HangUp closes the connection instead of answering. At DATA the mail is
	// recorded before: the client cannot know whether it was taken.
	HangUp bool
}

// SMTPOption changes the server that SMTP starts.
type SMTPOption func(*SMTPServer)

// SMTPStartTLS offers STARTTLS, with a certificate of CertPool's, and takes
// mail over nothing less.
func SMTPStartTLS() SMTPOption { return func(s *SMTPServer) { s.wantTLS = true } }

// SMTPAuth offers AUTH PLAIN and takes mail only after this login.
func SMTPAuth(user, password string) SMTPOption {
	return func(s *SMTPServer) { s.user, s.password = user, password }
}

// SMTPServer is a mail server on 127.0.0.1 that delivers nothing and keeps
// everything. Its methods are safe for use by several goroutines; the Wait
// methods belong into the test's own.
type SMTPServer struct {
	// Fixed after construction.
	listener       *trackingListener
	pool           *x509.CertPool
	wantTLS        bool
	user, password string

	mails    *recorder[Mail]
	refusals *recorder[SMTPReply]
	script   script[SMTPReply]
}

// SMTP starts a mail server for this test; it ends with it.
func SMTP(tb testing.TB, options ...SMTPOption) *SMTPServer {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("smtp for tests: %v", err)
	}
	s := &SMTPServer{
		listener: &trackingListener{Listener: listener},
		mails:    newRecorder[Mail](),
		refusals: newRecorder[SMTPReply](),
	}
	for _, option := range options {
		option(s)
	}
	server := smtp.NewServer(smtp.BackendFunc(s.newSession))
	server.Domain = "localhost"
	server.EnableSMTPUTF8 = true
	server.ErrorLog = log.New(io.Discard, "", 0) // a client that hangs up is no news
	server.AllowInsecureAuth = !s.wantTLS
	if s.wantTLS {
		var cert tls.Certificate
		cert, s.pool = Certificate(tb)
		server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	}
	served := make(chan struct{}) // closed when the accept loop ended
	go func() {
		defer close(served)
		_ = server.Serve(s.listener) // always ends with the closed listener's error
	}()
	tb.Cleanup(func() {
		// First no new connections, then end the old ones, then wait for them.
		_ = listener.Close()
		<-served
		s.listener.closeConns()
		ctx, cancel := context.WithTimeout(context.Background(), WaitLimit)
		defer cancel()
		// The error is the listener's, closed twice; a connection that would
		// not end shows in ctx.
		if _ = server.Shutdown(ctx); ctx.Err() != nil {
			tb.Error("smtp for tests: a connection did not end")
		}
	})
	return s
}

// Addr returns host:port, the host being 127.0.0.1.
func (s *SMTPServer) Addr() string { return s.listener.Addr().String() }

// Port returns the port of Addr.
func (s *SMTPServer) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// CertPool trusts the server's certificate; nil without SMTPStartTLS.
func (s *SMTPServer) CertPool() *x509.CertPool { return s.pool }

// Script prepares answers. The first one that waits for the command at hand
// is used up by it; commands that no answer waits for succeed.
func (s *SMTPServer) Script(replies ...SMTPReply) { s.script.push(replies...) }

// Mails returns what was taken so far, oldest first.
func (s *SMTPServer) Mails() []Mail {
	mails, _ := s.mails.snapshot()
	return mails
}

// WaitMails returns all mails taken as soon as there are n, and fails the
// test after WaitLimit.
func (s *SMTPServer) WaitMails(tb testing.TB, n int) []Mail {
	tb.Helper()
	return s.mails.wait(tb.Context(), tb, n, "mails")
}

// WaitRefusals returns the answers of Script given so far as soon as there
// are n, and fails the test after WaitLimit.
func (s *SMTPServer) WaitRefusals(tb testing.TB, n int) []SMTPReply {
	tb.Helper()
	return s.refusals.wait(tb.Context(), tb, n, "refused commands")
}

// trackingListener can end the connections it accepted.
type trackingListener struct {
	net.Listener

	mu    sync.Mutex
	conns []net.Conn // guarded by mu; closed ones stay, a test has few
}

func (l *trackingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.mu.Lock()
		l.conns = append(l.conns, conn)
		l.mu.Unlock()
	}
	return conn, err
}

func (l *trackingListener) closeConns() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.conns {
		_ = conn.Close() // closed already, mostly
	}
}
