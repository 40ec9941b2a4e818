package testenv

import (
	"io"
	"strings"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

var errNeedTLS = &smtp.SMTPError{
	Code:         530,
	EnhancedCode: smtp.EnhancedCode{5, 7, 0},
	Message:      "Must issue a STARTTLS command first",
}

// smtpSession is one client's visit between EHLO and QUIT. It is owned by its
// connection's goroutine.
type smtpSession struct {
	server *SMTPServer
	conn   *smtp.Conn
	tls    bool
	user   string // "" until logged in
	mail   Mail   // in the making
}

func (s *SMTPServer) newSession(conn *smtp.Conn) (smtp.Session, error) {
	_, overTLS := conn.TLSConnectionState()
	return &smtpSession{server: s, conn: conn, tls: overTLS}, nil
}

func (v *smtpSession) AuthMechanisms() []string {
	if v.server.user == "" {
		return nil
	}
	return []string{sasl.Plain}
}

func (v *smtpSession) Auth(mechanism string) (sasl.Server, error) {
	if v.server.user == "" || mechanism != sasl.Plain {
		return nil, smtp.ErrAuthUnknownMechanism
	}
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != v.server.user || password != v.server.password {
			return smtp.ErrAuthFailed
		}
		v.user = user
		return nil
	}), nil
}

func (v *smtpSession) Mail(from string, _ *smtp.MailOptions) error {
	switch {
	case v.server.wantTLS && !v.tls:
		return errNeedTLS
	case v.server.user != "" && v.user == "":
		return smtp.ErrAuthRequired
	}
	v.mail = Mail{From: from, TLS: v.tls, User: v.user}
	reply, ok := v.scripted("MAIL")
	return v.answer(reply, ok)
}

func (v *smtpSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	reply, ok := v.scripted("RCPT")
	if !ok {
		v.mail.To = append(v.mail.To, to)
	}
	return v.answer(reply, ok)
}

func (v *smtpSession) Data(body io.Reader) error {
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	reply, ok := v.scripted("DATA")
	if !ok || reply.HangUp {
		v.mail.Data = string(text)
		v.server.mails.add(v.mail)
	}
	return v.answer(reply, ok)
}

func (v *smtpSession) Reset()        { v.mail = Mail{} }
func (v *smtpSession) Logout() error { return nil }

func (v *smtpSession) scripted(command string) (SMTPReply, bool) {
	return v.server.script.takeFirst(func(r SMTPReply) bool {
		return strings.EqualFold(r.Command, command)
	})
}

// answer gives the scripted reply if there is one, and records it.
func (v *smtpSession) answer(reply SMTPReply, scripted bool) error {
	if !scripted {
		return nil
	}
	defer v.server.refusals.add(reply)
	if reply.HangUp {
		// The network connection, not the session's: that one would say QUIT.
		return v.conn.Conn().Close()
	}
	return &smtp.SMTPError{Code: reply.Code, EnhancedCode: smtp.EnhancedCodeNotSet, Message: reply.Text}
}
