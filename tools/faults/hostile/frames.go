// Package hostile answers: what is the worst that the holder of one join token
// can send?
//
// It speaks the protocol as proto/SPEC.md says, and then sends every type of
// frame at its largest and at its most frequent, without reading what comes back,
// and byte by byte. It is for attacks on a node of one's own, on loopback.
package hostile

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strings"

	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/proto"
)

// shape is a frame that is sent again and again.
type shape struct {
	kind string // message and field of the oneof, or LogBatch
	make func(boot string) gproto.Message
}

func many[T any](n int, one func(i int) T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = one(i)
	}
	return out
}

var text = strings.Repeat("x", 1<<20)

// registration is as large as n handlers with so much text each make it.
func registration(boot string, n, size int) *proto.Register {
	return &proto.Register{
		InstanceName: "hostile-" + boot[:8], AppVersion: boot[:8], Slots: 100_000,
		Handlers: many(n, func(i int) *proto.Handler {
			return &proto.Handler{Name: fmt.Sprint("h", i), Description: text[:size]}
		}),
	}
}

// shapes lists each type of frame at its largest and at its most frequent.
func shapes() []shape {
	item := func(boot string) func(int) *proto.InventoryItem {
		return func(i int) *proto.InventoryItem {
			return &proto.InventoryItem{ExecutionId: int64(i), Fence: 1, Phase: proto.AttemptPhase_ATTEMPT_PHASE_RUNNING, BootId: boot}
		}
	}
	c := func(kind string, body func(boot string) *proto.ControlToAdmin) shape {
		return shape{"ControlToAdmin." + kind, func(boot string) gproto.Message { return body(boot) }}
	}
	x := func(kind string, body func() *proto.CommandToAdmin) shape {
		return shape{"CommandToAdmin." + kind, func(string) gproto.Message { return body() }}
	}
	out := []shape{
		c("register", func(boot string) *proto.ControlToAdmin {
			return &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Register{Register: registration(boot, proto.MaxHandlers, 900)}}
		}),
		c("leave", func(string) *proto.ControlToAdmin {
			return &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Leave{Leave: &proto.Leave{}}}
		}),
		{"LogBatch", func(string) gproto.Message { return logs(4, proto.MaxBatch, 400) }},
		{"LogBatch", func(string) gproto.Message { return logs(40, proto.MaxBatch-1, 0) }},
		{"LogBatch", func(string) gproto.Message { return logs(1, 1, 0) }},
	}
	for _, n := range []int{1, proto.MaxBatch} {
		size := (1 << 20) / n * 9 / 10
		out = append(out,
			c("heartbeat", func(string) *proto.ControlToAdmin {
				return &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Heartbeat{Heartbeat: &proto.Heartbeat{Seq: int64(n), Running: 1 << 30, Slots: 1 << 30}}}
			}),
			c("drain", func(string) *proto.ControlToAdmin {
				return &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Drain{Drain: &proto.Drain{Reason: text[:n*1000]}}}
			}),
			c("inventory", func(boot string) *proto.ControlToAdmin {
				return &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Inventory{Inventory: &proto.Inventory{Items: many(20*n, item(boot))}}}
			}),
			x("answers", func() *proto.CommandToAdmin {
				return &proto.CommandToAdmin{Body: &proto.CommandToAdmin_Answers{Answers: &proto.AnswerBatch{Answers: many(n, func(i int) *proto.Answer {
					return &proto.Answer{ExecutionId: int64(i), Fence: 1, Accepted: i%2 == 0, Message: text[:size/2]}
				})}}}
			}),
			x("started", func() *proto.CommandToAdmin {
				return &proto.CommandToAdmin{Body: &proto.CommandToAdmin_Started{Started: &proto.StartedBatch{Started: many(n, func(i int) *proto.Started {
					return &proto.Started{ExecutionId: int64(i), Fence: 1, StartedAtMs: 1}
				})}}}
			}),
			x("results", func() *proto.CommandToAdmin {
				return &proto.CommandToAdmin{Body: &proto.CommandToAdmin_Results{Results: &proto.ResultBatch{Results: many(n, func(i int) *proto.Result {
					return &proto.Result{ExecutionId: int64(i), Fence: 1, Outcome: proto.Outcome_OUTCOME_SUCCEEDED, Output: []byte(text[:size/2]), Stack: text[:size/4]}
				})}}}
			}),
			x("progress", func() *proto.CommandToAdmin {
				return &proto.CommandToAdmin{Body: &proto.CommandToAdmin_Progress{Progress: &proto.ProgressBatch{Progress: many(n, func(i int) *proto.Progress {
					return &proto.Progress{ExecutionId: int64(i), Fence: 1, Seq: 1, Message: text[:size/2]}
				})}}}
			}),
			x("steps", func() *proto.CommandToAdmin {
				return &proto.CommandToAdmin{Body: &proto.CommandToAdmin_Steps{Steps: &proto.StepBatch{Steps: many(n, func(i int) *proto.Step {
					return &proto.Step{ExecutionId: int64(i), Fence: 1, Request: int64(i), Name: "a", Action: proto.StepAction_STEP_ACTION_STORE, Output: []byte(text[:size/2])}
				})}}}
			}),
		)
	}
	return out
}

func logs(chunks, lines, size int) *proto.LogBatch {
	return &proto.LogBatch{Seq: 1, Chunks: many(chunks, func(i int) *proto.LogChunk {
		return &proto.LogChunk{ExecutionId: int64(i + 1), Fence: 1, Attempt: 1, FirstLine: 1, Lines: many(lines, func(int) *proto.LogLine {
			return &proto.LogLine{Message: text[:size]}
		})}
	})}
}

func newBoot() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return fmt.Sprintf("%x", b)
}

// encoded is a frame as it goes over the wire.
func encoded(m gproto.Message) ([]byte, error) {
	var b bytes.Buffer
	err := proto.WriteFrame(&b, m, proto.MaxFrame)
	return b.Bytes(), err
}
