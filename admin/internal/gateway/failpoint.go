package gateway

import (
	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/proto"
	"github.com/carillon-sched/carillon/proto/failpoint"
)

// pointOf names the failpoint of a frame; its sending is between NAME.before
// and NAME.after.
func pointOf(m gproto.Message) string {
	switch m := m.(type) {
	case *proto.ControlToExecutor:
		switch m.Body.(type) {
		case *proto.ControlToExecutor_Registered:
			return "send-registered"
		case *proto.ControlToExecutor_HeartbeatAck:
			return "send-heartbeat-ack"
		case *proto.ControlToExecutor_Verdicts:
			return "send-verdicts"
		}
	case *proto.CommandToExecutor:
		switch m.Body.(type) {
		case *proto.CommandToExecutor_Offers:
			return "send-offers"
		case *proto.CommandToExecutor_Grants:
			return "send-grants"
		case *proto.CommandToExecutor_Acks:
			return "send-acks"
		case *proto.CommandToExecutor_Cancels:
			return "send-cancels"
		}
	}
	return "send-other"
}

func hitAll(points []string, when string) {
	if failpoint.Enabled {
		for _, p := range points {
			failpoint.Hit(p + when)
		}
	}
}
