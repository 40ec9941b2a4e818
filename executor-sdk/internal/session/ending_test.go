package session

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"testing"

	"github.com/hashicorp/yamux"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/executor-sdk/internal/fakeadmin"
	"github.com/carillon-sched/carillon/proto"
)

// TestAPlannedEndIsNoWarning: the admin replaces an old session.
func TestAPlannedEndIsNoWarning(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	f := startFleet(t, to(admin.Address()))
	f.events.waitUp(t, 1)
	saw(t, admin, func(s fakeadmin.Seen) bool { return s.Sessions == 1 })
	_ = admin.Sessions()[0].Control(&proto.ControlToExecutor{Body: &proto.ControlToExecutor_Error{
		Error: &proto.Error{Code: "recycled", Message: "it is old"},
	}}) // the session may end before the write returns
	saw(t, admin, func(s fakeadmin.Seen) bool { return s.Ended == 1 && s.Sessions == 2 })
	require.Contains(t, f.logs.String(), "admin node replaces the session, connecting again")
	require.Contains(t, f.logs.String(), "it is old")
	require.NotContains(t, f.logs.String(), "level=WARN")
	require.NotContains(t, f.logs.String(), "trying again")
}

// TestALimitThatWasExceededIsLogged: whoever operates the executor does not see
// the admin's log.
func TestALimitThatWasExceededIsLogged(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	f := startFleet(t, to(admin.Address()))
	f.events.waitUp(t, 1)
	saw(t, admin, func(s fakeadmin.Seen) bool { return s.Sessions == 1 })
	_ = admin.Sessions()[0].Control(&proto.ControlToExecutor{Body: &proto.ControlToExecutor_Error{
		Error: &proto.Error{Code: "too_large", Message: "read commands: frame over the limit of items: 501 items, limit 500"},
	}}) // the session may end before the write returns
	saw(t, admin, func(s fakeadmin.Seen) bool { return s.Ended == 1 && s.Sessions == 2 })
	require.Contains(t, f.logs.String(), "level=WARN")
	require.Contains(t, f.logs.String(), "too_large")
	require.Contains(t, f.logs.String(), "501 items, limit 500")
}

// TestTheAdminsReasonCounts also when another loop saw first that the session
// was closed; what this side has decided stays.
func TestTheAdminsReasonCounts(t *testing.T) {
	given := &RefusedError{Code: "recycled"}
	for name, c := range map[string]struct{ first, want error }{
		"closed":          {nil, given},
		"written late":    {fmt.Errorf("write control: %w", yamux.ErrSessionShutdown), given},
		"closed stream":   {fmt.Errorf("write command: %w", yamux.ErrStreamClosed), given},
		"the stream ends": {readError("command", io.EOF), given},
		"own decision":    {errStopped, errStopped},
	} {
		t.Run(name, func(t *testing.T) {
			here, there := net.Pipe()
			defer there.Close()
			session, err := yamux.Client(here, yamuxConfig(slog.New(slog.DiscardHandler)))
			require.NoError(t, err)
			l := &Link{conn: here, session: session}
			l.fail(c.first)
			l.fail(given)
			l.fail(errAdminLeft)
			require.Equal(t, c.want, l.err)
		})
	}
}

// TestTheLogSaysHowTheSessionEnded: an admin that goes says so before; a killed
// one does not, and neither does who resets the connection.
func TestTheLogSaysHowTheSessionEnded(t *testing.T) {
	drain := &proto.ControlToExecutor{Body: &proto.ControlToExecutor_Drain{Drain: &proto.Drain{Reason: "upgrade"}}}
	for name, c := range map[string]struct {
		end  func(s *fakeadmin.Session)
		want string
	}{
		// What the admin had not read, and what is written just then, make its
		// end a reset or a broken pipe.
		"killed":    {(*fakeadmin.Session).End, "ended without a word from the admin|the connection to the admin broke"},
		"reset":     {(*fakeadmin.Session).Cut, "connection reset by peer"},
		"announced": {func(s *fakeadmin.Session) { _ = s.Control(drain); s.End() }, "the admin closed the session"},
	} {
		t.Run(name, func(t *testing.T) {
			admin := startAdmin(t, &fakeadmin.Admin{})
			f := startFleet(t, to(admin.Address()))
			f.events.waitUp(t, 1)
			saw(t, admin, func(s fakeadmin.Seen) bool { return s.Sessions == 1 })
			c.end(admin.Sessions()[0])
			saw(t, admin, func(s fakeadmin.Seen) bool { return s.Sessions == 2 })
			require.Regexp(t, c.want, f.logs.String())
		})
	}
}
