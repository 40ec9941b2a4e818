// Package progress answers: what does a handler tell and ask while it runs?
//
// Progress is information: the newest report of each attempt is sent a few
// times per second at most, and again to a node that comes up. Steps are
// questions: each waits for its answer, and is asked again, through any
// session, until the answer comes or the attempt's context ends.
//
// Sessions come and go with Up and Down; package session carries the frames.
package progress

import "github.com/carillon-sched/carillon/proto"

// Link is one session to an admin node. Its methods
// only queue, and do nothing when the session has ended.
type Link interface {
	Progress([]*proto.Progress)
	Steps([]*proto.Step)
}
