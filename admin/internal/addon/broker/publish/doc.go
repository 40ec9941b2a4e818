// Package publish answers: has the broker got the message?
//
// Publish returns nil when the broker has said that it keeps the message, and
// an error that tells whether trying again can help. After an error that may
// mean "no answer" the message may be there all the same: the next try has
// the same id, by which the broker or the consumer keeps only one.
//
//	broker    what is awaited                    who drops the second of one id
//	NATS      JetStream's acknowledgement        the stream, within its duplicate window
//	RabbitMQ  publisher confirm; what no queue   consumers, by the property message-id (or the
//	          takes comes back and is a failure  plugin that knows x-deduplication-header)
//	Kafka     acks of all in-sync replicas,      consumers, by the header Carillon-Dedupe-Key
//	          idempotent producer
//	Redis     XADD's answer                      Redis, for DedupeWindow: one script looks for a
//	                                             key of that id and adds the entry
//
// A connection is opened when it is first needed and kept. It is closed when it
// was not used for idleTime, when it is older than maxAge, when its row has
// changed, and when it broke; the next message opens another one. A node holds
// Options.Max of them; the one that was used longest ago makes room.
//
// Addresses are a user's: package egress checks what is dialled. A broker that
// hangs costs a message no more than its context, and other connections
// nothing. A broker that announces too much loses all sockets of its connection
// (package wire). A broker that does not let go loses them after closeTime, and
// when the node stops after stopTime.
package publish
