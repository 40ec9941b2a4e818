// Package proto answers one question: what crosses the wire between an
// executor and an admin node?
//
// It holds the frame layout, its limits, the protocol version and the
// messages (carillon.proto). SPEC.md tells the rules of each exchange, so that
// an executor can be written in another language from it alone. The package
// does no networking and keeps no state.
package proto

//go:generate protoc --go_out=. --go_opt=paths=source_relative carillon.proto
