// Package notify answers: who must know, and has it been told?
//
// The engine writes events into an outbox, in the same transaction as the
// change they tell about (promise P7). This room counts the events in incidents,
// makes deliveries of incidents when their time has come, one per channel and
// target, and delivers them at least once:
//
//	event ─ group ─▶ incident ─ tell ─▶ deliveries ─ claim ─▶ lanes ─▶ channel ─▶ delivered
//	                   ▲   │               ▲                    │                 failed
//	                   └─ look ─▶ recovered └── retry, backoff ──┘
//
// At least once means that a node that dies between sending and recording
// sends again. Every try to deliver one message carries the same dedupe key, by
// which the receiver can tell.
//
// Nobody waits for this room: the scheduler writes its rows and goes on. A
// receiver that hangs holds up only what goes to the same place (a lane):
// its sends are bounded in time and number, and once it has not answered
// several times in a row its deliveries are put off without trying.
//
// Channels are packages beside this one; the room knows them as Senders.
package notify
