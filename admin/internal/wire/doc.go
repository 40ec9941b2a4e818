// Package wire answers: may these bytes of a broker reach its client library?
//
// An editor names brokers, so a broker may be hostile. Client libraries trust the
// lengths that a broker announces: 13 bytes cost go-redis 16 GiB. A reader of this
// package stands between socket and library. It follows the protocol's frames and
// ends the connection before the library sees an announcement beyond the bounds.
//
//	all     1 MiB for a length and for one answer
//	Redis   1,024 elements and 8 levels in one answer, 256 push messages without a
//	        request
//	NATS    64 KiB for INFO, 4 KiB for other lines, 512 KiB without a request
//	Kafka   8,192 brokers, topics and partitions in the metadata, 128 KiB for other answers
//	AMQP    128 KiB for a frame, 1,024 fields and 8 levels in a table, no answer
//	        without a request, no confirm without a message, 1,024 frames
//	        without a request
//
// With TLS a reader stands above it.
package wire
