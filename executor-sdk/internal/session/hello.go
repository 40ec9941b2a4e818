package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// RefusedError is a no from the admin.
type RefusedError struct {
	// Code is one of SPEC.md's error codes.
	Code    string
	Message string
	// RetryAfter is how long the admin wants to be left alone; negative = it
	// will say no again until somebody changes something.
	RetryAfter time.Duration
	// Addresses are, with code moved, where the executor's tenant lives now.
	Addresses []string
}

func (e *RefusedError) Error() string {
	if e.Message == "" {
		return "refused: " + e.Code
	}
	return "refused: " + e.Code + ": " + e.Message
}

// advice says what to do about refusals that stay.
func (e *RefusedError) advice() string {
	switch e.Code {
	case "bad_token":
		return "check Config.Token (CARILLON_EXECUTOR_TOKEN); an administrator makes join tokens on the executor's page"
	case "token_expired":
		return "have an administrator make a new join token for this executor"
	case "wrong_executor":
		return "the token belongs to another executor; check Config.Name (CARILLON_EXECUTOR_NAME) and Config.Token"
	case "version_unsupported":
		return "update the executor SDK, or the admin"
	case "flapping":
		return "see why its processes end so soon after they start; it goes on by itself meanwhile"
	case "certificate_required":
		return "set Config.TLS: this admin gives certificates over TLS"
	case "denied":
		return "an administrator has denied this process; ask why, and start a new one"
	case "executor_disabled":
		return "it goes on when an administrator enables the executor again"
	case "limit_reached":
		return "ask an administrator to raise the limit, or stop instances that are not needed"
	}
	return ""
}

func refusal(e *proto.Error) error {
	return &RefusedError{
		Code: e.GetCode(), Message: e.GetMessage(),
		RetryAfter: time.Duration(e.GetRetryAfterMs()) * time.Millisecond, Addresses: e.GetAddresses(),
	}
}

// greet sends preface and hello and returns the admin's answer. It leaves no
// deadline on conn.
func greet(ctx context.Context, conn net.Conn, hello *proto.ClientHello) (*proto.ServerHello, error) {
	defer closeOn(ctx, conn)()
	if err := conn.SetReadDeadline(time.Now().Add(proto.HelloTimeout)); err != nil {
		return nil, err
	}
	out, err := proto.AppendFrame([]byte(proto.Preface), hello, proto.MaxHello)
	if err != nil {
		return nil, fmt.Errorf("hello: %w", err)
	}
	if _, err := conn.Write(out); err != nil {
		return nil, fmt.Errorf("hello: %w", err)
	}
	var reply proto.ServerHello
	if err := proto.ReadHello(conn, &reply); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, proto.ErrTruncated) {
			return nil, errors.New("hello: the peer closed the connection; is this the executor port of an admin, and is TLS set alike on both sides?")
		}
		return nil, fmt.Errorf("hello: %w", err)
	}
	if reply.GetError() != nil {
		return nil, refusal(reply.GetError())
	}
	if v := reply.GetVersion(); v < proto.MinVersion || v > proto.Version {
		return nil, &RefusedError{Code: "version_unsupported", RetryAfter: -1,
			Message: fmt.Sprintf("the admin speaks protocol %d, this SDK %d to %d", v, proto.MinVersion, proto.Version)}
	}
	return &reply, conn.SetReadDeadline(time.Time{})
}
