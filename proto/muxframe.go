package proto

import "encoding/binary"

// What SPEC.md section 3.1 says of the multiplexer's frames, as far as they are
// looked at from outside.
const (
	// MuxHeaderSize is the length of a multiplexer frame's header.
	MuxHeaderSize = 12

	MuxData         = 0
	MuxWindowUpdate = 1
	MuxPing         = 2
	MuxGoAway       = 3

	MuxFlagSYN = 1
	MuxFlagFIN = 4
	MuxFlagRST = 8
)

// MuxHeader is one header as it came: version, type, flags (2 bytes), stream
// (4), length (4), big endian.
type MuxHeader [MuxHeaderSize]byte

// Type is MuxData, MuxWindowUpdate, MuxPing or MuxGoAway.
func (h *MuxHeader) Type() byte { return h[1] }

// Opens reports whether the frame opens a stream.
func (h *MuxHeader) Opens() bool {
	return h[1] <= MuxWindowUpdate && binary.BigEndian.Uint16(h[2:])&MuxFlagSYN != 0
}

// Closes reports whether the frame is the last one of its stream in this direction.
func (h *MuxHeader) Closes() bool {
	return h[1] <= MuxWindowUpdate && binary.BigEndian.Uint16(h[2:])&(MuxFlagFIN|MuxFlagRST) != 0
}

// Stream is the stream of MuxData and MuxWindowUpdate.
func (h *MuxHeader) Stream() uint32 { return binary.BigEndian.Uint32(h[4:]) }

// Length is what the header says; of MuxData it is the number of bytes that follow.
func (h *MuxHeader) Length() uint32 { return binary.BigEndian.Uint32(h[8:]) }
