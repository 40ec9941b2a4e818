package testenv

import (
	"crypto/tls"
	"net/smtp"
	"net/textproto"
	"testing"

	"github.com/stretchr/testify/require"
)

const letter = "From: bell@example.com\r\nSubject: =?utf-8?q?=E9=92=9F?=\r\n\r\n.rang\r\n"

func TestSMTPRecordsMail(t *testing.T) {
	server := SMTP(t)
	require.NoError(t, smtp.SendMail(server.Addr(), nil, "bell@example.com",
		[]string{"a@example.com", "b@example.com"}, []byte(letter)))
	mails := server.WaitMails(t, 1)
	require.Equal(t, []Mail{{
		From: "bell@example.com", To: []string{"a@example.com", "b@example.com"}, Data: letter,
	}}, mails)
	require.Equal(t, mails, server.Mails())
}

func TestSMTPStartTLSAndAuth(t *testing.T) {
	server := SMTP(t, SMTPStartTLS(), SMTPAuth("bell", "secret"))

	client, err := smtp.Dial(server.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	requireCode(t, 530, client.Mail("bell@example.com"), "no mail in the clear")
	offered, _ := client.Extension("AUTH")
	require.False(t, offered, "no login in the clear")

	require.NoError(t, client.StartTLS(&tls.Config{RootCAs: server.CertPool(), ServerName: "localhost"}))
	requireCode(t, 502, client.Mail("bell@example.com"), "no mail without login")

	require.NoError(t, client.Auth(smtp.PlainAuth("", "bell", "secret", "127.0.0.1")))
	require.NoError(t, client.Mail("bell@example.com"))
	require.NoError(t, client.Rcpt("a@example.com"))
	data, err := client.Data()
	require.NoError(t, err)
	_, err = data.Write([]byte(letter))
	require.NoError(t, err)
	require.NoError(t, data.Close())
	require.NoError(t, client.Quit())

	mail := server.WaitMails(t, 1)[0]
	require.True(t, mail.TLS)
	require.Equal(t, "bell", mail.User)
}

func TestSMTPRefusesWrongPassword(t *testing.T) {
	server := SMTP(t, SMTPAuth("bell", "secret"))
	err := smtp.SendMail(server.Addr(), smtp.PlainAuth("", "bell", "wrong", "127.0.0.1"),
		"bell@example.com", []string{"a@example.com"}, []byte(letter))
	requireCode(t, 535, err)
	require.Empty(t, server.Mails())
}

func TestSMTPFollowsScript(t *testing.T) {
	server := SMTP(t)
	send := func() error {
		return smtp.SendMail(server.Addr(), nil, "bell@example.com", []string{"a@example.com"}, []byte(letter))
	}
	busy := SMTPReply{Command: "RCPT", Code: 451, Text: "try again later"}
	never := SMTPReply{Command: "MAIL", Code: 550, Text: "go away"}
	full := SMTPReply{Command: "DATA", Code: 552, Text: "mailbox full"}
	server.Script(busy, full, never) // taken by command, not by place

	requireCode(t, 550, send())
	requireCode(t, 451, send())
	requireCode(t, 552, send())
	require.Empty(t, server.Mails())
	require.NoError(t, send(), "the script is used up")
	require.Len(t, server.WaitMails(t, 1), 1)
	require.Equal(t, []SMTPReply{never, busy, full}, server.WaitRefusals(t, 3))
}

func TestSMTPHangsUpAfterTakingTheMail(t *testing.T) {
	server := SMTP(t)
	server.Script(SMTPReply{Command: "DATA", HangUp: true})
	err := smtp.SendMail(server.Addr(), nil, "bell@example.com", []string{"a@example.com"}, []byte(letter))
	require.Error(t, err)
	require.Len(t, server.WaitMails(t, 1), 1)
}

func TestSMTPEndsWithItsTest(t *testing.T) {
	var client *smtp.Client
	t.Run("inner", func(t *testing.T) {
		var err error
		client, err = smtp.Dial(SMTP(t).Addr())
		require.NoError(t, err)
	})
	require.Error(t, client.Noop(), "the connection should be closed")
	_ = client.Close()
}

func requireCode(t *testing.T, code int, err error, why ...any) {
	t.Helper()
	var reply *textproto.Error
	require.ErrorAs(t, err, &reply, why...)
	require.Equal(t, code, reply.Code, why...)
}
