package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func sender(t *testing.T, server *testenv.SMTPServer, change ...func(*Config)) *Sender {
	t.Helper()
	config := Config{Host: "127.0.0.1", Port: server.Port(), From: "Carillon <carillon@example.com>", TLS: TLSNone, Timeout: 10 * time.Second}
	for _, f := range change {
		f(&config)
	}
	s, err := New(config)
	require.NoError(t, err)
	return s
}

func permanent(err error) bool {
	var e *notify.SendError
	return errors.As(err, &e) && e.Permanent
}

func unreachable(err error) bool {
	var e *notify.SendError
	return errors.As(err, &e) && e.Unreachable
}

func TestSendsOverStartTLSWithLogin(t *testing.T) {
	server := testenv.SMTP(t, testenv.SMTPStartTLS(), testenv.SMTPAuth("alerts", "pass word"))
	s := sender(t, server, func(c *Config) {
		c.TLS, c.Username, c.Password, c.RootCAs = TLSStart, "alerts", "pass word", server.CertPool()
	})
	require.NoError(t, s.Send(t.Context(), notice()))
	mail := server.WaitMails(t, 1)[0]
	require.True(t, mail.TLS)
	require.Equal(t, "alerts", mail.User)
	require.Equal(t, "carillon@example.com", mail.From)
	require.Equal(t, []string{"ann@example.com"}, mail.To)
}

func TestSendsOverTLSFromTheStart(t *testing.T) {
	server := testenv.SMTP(t, testenv.SMTPAuth("alerts", "secret"))
	cert, pool := testenv.Certificate(t)
	port := terminateTLS(t, server.Addr(), cert)
	s := sender(t, server, func(c *Config) {
		c.Port, c.TLS, c.RootCAs, c.Username, c.Password = port, TLSFirst, pool, "alerts", "secret"
	})
	require.NoError(t, s.Send(t.Context(), notice()))
	require.Equal(t, "alerts", server.WaitMails(t, 1)[0].User)

	distrustful := sender(t, server, func(c *Config) { c.Port, c.TLS = port, TLSFirst })
	err := distrustful.Send(t.Context(), notice())
	require.ErrorContains(t, err, "certificate")
	require.False(t, permanent(err), "the operator can mend it")
	require.Len(t, server.Mails(), 1)
}

// A server that waits for TLS says nothing, and a server without TLS greets in plain text.
// The error names the setting long before the exchange ends.
func TestTheOtherKindOfTLS(t *testing.T) {
	server := testenv.SMTP(t)
	cert, pool := testenv.Certificate(t)
	port := terminateTLS(t, server.Addr(), cert)
	for _, mode := range []string{TLSStart, TLSNone} {
		s := sender(t, server, func(c *Config) { c.Port, c.TLS, c.RootCAs, c.Timeout = port, mode, pool, time.Hour })
		err := s.Send(t.Context(), notice())
		require.ErrorContains(t, err, "set --mail-tls tls", mode)
		require.False(t, permanent(err), "the operator can mend it")
		require.ErrorContains(t, s.LogIn(t.Context()), "set --mail-tls tls", mode)
	}
	s := sender(t, server, func(c *Config) { c.TLS, c.RootCAs, c.Timeout = TLSFirst, pool, time.Hour })
	require.ErrorContains(t, s.Send(t.Context(), notice()), "set --mail-tls starttls")
}

// A server that greets late is waited for.
func TestALateGreeting(t *testing.T) {
	server := testenv.SMTP(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	probed, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		first, err := listener.Accept()
		if err != nil {
			return
		}
		second, err := listener.Accept() // looks whether it speaks TLS
		if err != nil {
			return
		}
		second.Close()
		close(probed)
		to, err := net.Dial("tcp", server.Addr())
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(to, first); to.Close() }()
		_, _ = io.Copy(first, to)
		first.Close()
	}()
	port := listener.Addr().(*net.TCPAddr).Port
	require.NoError(t, sender(t, server, func(c *Config) { c.Port = port }).Send(t.Context(), notice()))
	<-probed
	require.Len(t, server.WaitMails(t, 1), 1)
	require.NoError(t, listener.Close())
	<-done
}

// terminateTLS forwards what comes over TLS to address.
func terminateTLS(t *testing.T, address string, cert tls.Certificate) int {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12})
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var all sync.WaitGroup
		defer all.Wait()
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { forward(conn, address) })
		}
	}()
	t.Cleanup(func() { listener.Close(); <-done })
	return listener.Addr().(*net.TCPAddr).Port
}

func forward(conn net.Conn, address string) {
	defer conn.Close()
	back, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer back.Close()
	answered := make(chan struct{})
	go func() { _, _ = io.Copy(conn, back); conn.Close(); close(answered) }()
	_, _ = io.Copy(back, conn)
	back.Close()
	<-answered
}

func TestNeverWithoutTheTLSThatWasChosen(t *testing.T) {
	server := testenv.SMTP(t) // offers no STARTTLS, as after a downgrade attack
	s := sender(t, server, func(c *Config) { c.TLS = TLSStart })
	err := s.Send(t.Context(), notice())
	require.ErrorContains(t, err, "STARTTLS")
	require.False(t, permanent(err))
	require.Empty(t, server.Mails())

	secure := testenv.SMTP(t, testenv.SMTPStartTLS())
	err = sender(t, secure, func(c *Config) { c.TLS = TLSStart }).Send(t.Context(), notice())
	require.ErrorContains(t, err, "certificate", "not in the system's pool")
	require.Empty(t, secure.Mails())
}

func TestAWrongPasswordIsTemporary(t *testing.T) {
	server := testenv.SMTP(t, testenv.SMTPAuth("alerts", "secret"))
	s := sender(t, server, func(c *Config) { c.Username, c.Password = "alerts", "wrong" })
	err := s.Send(t.Context(), notice())
	require.ErrorContains(t, err, "AUTH")
	require.False(t, permanent(err), "the operator can mend it")
	require.False(t, unreachable(err))
	require.NotContains(t, err.Error(), "wrong")
}

func TestRefusals(t *testing.T) {
	for _, row := range []struct {
		name                   string
		reply                  testenv.SMTPReply
		permanent, unreachable bool
	}{
		{"greylisted", testenv.SMTPReply{Command: "RCPT", Code: 451, Text: "try again later"}, false, false},
		{"unknown mailbox", testenv.SMTPReply{Command: "RCPT", Code: 550, Text: "no such user"}, true, false},
		{"sender refused for now", testenv.SMTPReply{Command: "MAIL", Code: 421, Text: "too busy"}, false, false},
		{"sender refused", testenv.SMTPReply{Command: "MAIL", Code: 553, Text: "not allowed"}, true, false},
		{"no space", testenv.SMTPReply{Command: "DATA", Code: 452, Text: "disk full"}, false, false},
		{"content refused", testenv.SMTPReply{Command: "DATA", Code: 554, Text: "spam"}, true, false},
		{"hangs up", testenv.SMTPReply{Command: "RCPT", HangUp: true}, false, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			server := testenv.SMTP(t)
			server.Script(row.reply)
			s := sender(t, server)
			err := s.Send(t.Context(), notice())
			require.Error(t, err)
			require.Equal(t, row.permanent, permanent(err), "%v", err)
			require.Equal(t, row.unreachable, unreachable(err), "%v", err)
			require.ErrorContains(t, err, row.reply.Text)
			require.Empty(t, server.Mails())
			if !row.permanent {
				require.NoError(t, s.Send(t.Context(), notice()), "the next time it works")
				require.Len(t, server.Mails(), 1)
			}
		})
	}
}

func TestSentTwiceIsRecognisable(t *testing.T) {
	server := testenv.SMTP(t)
	server.Script(testenv.SMTPReply{Command: "DATA", HangUp: true}) // taken, but nobody knows
	s := sender(t, server)
	err := s.Send(t.Context(), notice())
	require.True(t, unreachable(err), "%v", err)
	require.NoError(t, s.Send(t.Context(), notice()))
	mails := server.WaitMails(t, 2)
	first, second := parse(t, mails[0].Data), parse(t, mails[1].Data)
	require.Equal(t, "<abababababababababababababababab@example.com>", first.header("Message-ID"))
	require.Equal(t, first.header("Message-ID"), second.header("Message-ID"))
	require.Equal(t, "abababababababababababababababab", second.header("Carillon-Dedupe-Key"))
}

func TestNobodyListens(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	s, err := New(Config{Host: "127.0.0.1", Port: port, From: "a@example.com", TLS: TLSNone})
	require.NoError(t, err)
	err = s.Send(t.Context(), notice())
	require.True(t, unreachable(err))
	require.NotContains(t, err.Error(), "127.0.0.1", "editors read it")
}

// TestErrorsNameNoAddress: an editor reads them in the list of deliveries.
func TestErrorsNameNoAddress(t *testing.T) {
	for name, play := range map[string]func(net.Conn){
		"closed": func(net.Conn) {},
		"reset":  func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) },
		"reset later": func(c net.Conn) {
			_, _ = io.WriteString(c, "220 mail.example ESMTP\r\n")
			_, _ = c.Read(make([]byte, 1))
			_ = c.(*net.TCPConn).SetLinger(0)
		},
		"silent": func(c net.Conn) { _, _ = io.Copy(io.Discard, c) },
		"silent later": func(c net.Conn) {
			_, _ = io.WriteString(c, "220 mail.example ESMTP\r\n")
			_, _ = io.Copy(io.Discard, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := New(Config{Host: "localhost", Port: testenv.Peer(t, play).Port, From: "a@example.com", TLS: TLSNone, Timeout: 300 * time.Millisecond})
			require.NoError(t, err)
			err = s.Send(t.Context(), notice())
			require.Error(t, err)
			require.NotRegexp(t, `127\.0\.0\.1|::1`, err.Error())
		})
	}
}

// drip writes text every 20 ms until the other side is gone.
func drip(conn net.Conn, text string) {
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	for range pace.C {
		if _, err := conn.Write([]byte(text)); err != nil {
			return
		}
	}
}

func TestServersThatNeverEnd(t *testing.T) {
	silence := func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
	for _, row := range []struct {
		name string
		play func(net.Conn)
	}{
		{"says nothing", silence},
		{"drips its greeting", func(conn net.Conn) { drip(conn, "2") }},
		{"drips extensions, each in time", func(conn net.Conn) {
			_, _ = conn.Write([]byte("220 here\r\n"))
			drip(conn, "250-X\r\n")
		}},
		{"answers no command", func(conn net.Conn) {
			_, _ = conn.Write([]byte("220 here\r\n"))
			silence(conn)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, err := New(Config{Host: "127.0.0.1", Port: testenv.Peer(t, row.play).Port, From: "a@example.com", TLS: TLSNone, Timeout: 500 * time.Millisecond})
			require.NoError(t, err)
			began := time.Now()
			err = s.Send(t.Context(), notice())
			require.True(t, unreachable(err), "%v", err)
			require.Less(t, time.Since(began), time.Minute, "the server goes on for ever")
		})
	}
}

func TestHostileServers(t *testing.T) {
	x := strings.Repeat("x", 1000)
	for _, row := range []struct{ name, first, talk, cause string }{
		{"an endless line", "", x, "64 KiB"},
		{"an endless greeting", "", "220-" + x + "\r\n", "64 KiB"},
		{"endless greetings", "", "220 " + x + "\r\n", "EHLO"},
		{"an endless refusal", "", "554-" + x + "\r\n", "64 KiB"},
		{"endless extensions", "220 here\r\n", "250-" + x + "\r\n", "64 KiB"},
	} {
		t.Run(row.name, func(t *testing.T) {
			port := testenv.Peer(t, func(conn net.Conn) {
				_, _ = conn.Write([]byte(row.first))
				testenv.Speak(conn, row.talk, testenv.Endless)
			}).Port
			s, err := New(Config{Host: "127.0.0.1", Port: port, From: "a@example.com", TLS: TLSNone})
			require.NoError(t, err)
			var sent error
			require.Less(t, testenv.Allocated(func() { sent = s.Send(t.Context(), notice()) }), uint64(testenv.MostForAPeer))
			require.ErrorContains(t, sent, row.cause)
		})
	}
}

func TestEndsWithItsContext(t *testing.T) {
	greeted := make(chan struct{})
	port := testenv.Peer(t, func(conn net.Conn) {
		close(greeted)
		_, _ = io.Copy(io.Discard, conn)
	}).Port
	s, err := New(Config{Host: "127.0.0.1", Port: port, From: "a@example.com", TLS: TLSNone})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Send(ctx, notice()) }()
	<-greeted
	cancel()
	require.Error(t, <-done)
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	for _, row := range []struct {
		name   string
		config Config
		text   string
	}{
		{"no host", Config{}, "host"},
		{"unknown mode", Config{Host: "mail.example.com", TLS: "opportunistic"}, "opportunistic"},
		{"password in the clear", Config{Host: "mail.example.com", TLS: TLSNone, Username: "a"}, "in the clear"},
		{"sender", Config{Host: "mail.example.com", From: "not an address"}, "sender"},
		{"sender with a line break", Config{Host: "mail.example.com", From: "a@example.com\r\nBcc: b@example.com"}, "sender"},
		{"port", Config{Host: "mail.example.com", From: "a@example.com", Port: 70000}, "port"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := New(row.config)
			require.ErrorContains(t, err, row.text)
		})
	}
	s, err := New(Config{Host: "mail.example.com", From: "a@example.com"})
	require.NoError(t, err)
	require.Equal(t, 587, s.config.Port)
	require.Equal(t, TLSStart, s.config.TLS)
	require.Equal(t, Timeout, s.Timeout())
	s, err = New(Config{Host: "mail.example.com", From: "a@example.com", TLS: TLSFirst})
	require.NoError(t, err)
	require.Equal(t, 465, s.config.Port)
}
