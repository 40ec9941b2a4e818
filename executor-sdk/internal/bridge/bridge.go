// Package bridge answers: how does package executortest get under the hood of
// package executor?
//
// An executor normally reaches its admin nodes over the network. In tests its
// admin lives in the same process: executortest calls Connect before Run, and
// frames go from hand to hand. Everything above the frames is the real thing.
package bridge

import (
	"net"

	"github.com/carillon-sched/carillon/proto"
)

// Admin is an admin node inside the process. Its methods are called from one
// goroutine at a time, but for Logs.
type Admin interface {
	// Register takes the registration and returns its answer. deliver hands
	// frames to the executor; it may be called from anywhere and never waits.
	Register(r *proto.Register, deliver func(*proto.CommandToExecutor)) *proto.Registered
	// Command takes what the executor sends.
	Command(m *proto.CommandToAdmin)
	// Draining is told when the executor begins to stop.
	Draining()
	// Exit: the process would end here (executor.RestartProcess, Config.ExitIfIgnored).
	Exit()
	// Logs returns the executor's end of a new log connection.
	Logs() net.Conn
}

// Connect puts admin in place of the network; executor is an *executor.Executor
// that does not run yet. Set by package executor.
var Connect func(executor any, admin Admin)
