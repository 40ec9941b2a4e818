package proto

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"google.golang.org/protobuf/proto"
)

// HeaderSize is the length of a frame's header: payload length and CRC-32C of
// the payload, both big-endian 32-bit.
const HeaderSize = 8

// The faults of a frame. A stream that showed one of them carries nothing
// trustworthy any more and has to be closed with its session.
var (
	// ErrFrameTooLarge means that the header announces more than the limit.
	ErrFrameTooLarge = errors.New("frame over the size limit")
	// ErrChecksum means that the payload is not what the sender wrote.
	ErrChecksum = errors.New("frame checksum differs")
	// ErrTruncated means that the stream ended inside a frame. A clean end
	// between two frames is io.EOF.
	ErrTruncated = errors.New("stream ended inside a frame")
	// ErrMalformed means that the payload is no message of the expected type.
	ErrMalformed = errors.New("frame is malformed")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendFrame appends m as one frame to buf and returns the longer slice.
// max bounds the payload in bytes (MaxHello or MaxFrame); ErrFrameTooLarge
// leaves buf as it was.
func AppendFrame(buf []byte, m proto.Message, max int) ([]byte, error) {
	start := len(buf)
	buf = append(buf, make([]byte, HeaderSize)...)
	out, err := proto.MarshalOptions{}.MarshalAppend(buf, m)
	if err != nil {
		return buf[:start], fmt.Errorf("encode frame: %w", err)
	}
	payload := out[start+HeaderSize:]
	if len(payload) > max {
		return out[:start], fmt.Errorf("%w: %d bytes, limit %d", ErrFrameTooLarge, len(payload), max)
	}
	binary.BigEndian.PutUint32(out[start:], uint32(len(payload)))
	binary.BigEndian.PutUint32(out[start+4:], crc32.Checksum(payload, castagnoli))
	return out, nil
}

// WriteFrame writes m as one frame with a single Write call.
func WriteFrame(w io.Writer, m proto.Message, max int) error {
	buf, err := AppendFrame(nil, m, max)
	if err != nil {
		return err
	}
	_, err = w.Write(buf)
	return err
}

// Reader reads frames from one stream. It is owned by one goroutine.
type Reader struct {
	r   io.Reader
	max int
	buf []byte
}

// What a Reader keeps between frames: an admin node has two for each of its
// sessions, most of which say little. Larger payloads are read past the buffer.
const (
	readAhead   = 256
	keptPayload = 32 << 10
)

// NewReader returns a Reader that refuses payloads over max bytes.
func NewReader(r io.Reader, max int) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, readAhead), max: max}
}

// Await returns when there is something to read, or the stream's own error. It
// gives the last frame's memory back: whoever has many streams waits here and
// not in Next.
func (r *Reader) Await() error {
	r.buf = nil
	if buffered, ok := r.r.(*bufio.Reader); ok {
		_, err := buffered.Peek(1)
		return err
	}
	return nil
}

// Announced waits for the header of the next frame and returns how large its
// payload will be, in bytes, or Next's errors. It takes nothing: Next reads it.
func (r *Reader) Announced() (int, error) {
	buffered, ok := r.r.(*bufio.Reader)
	if !ok {
		return 0, errors.New("a hello is not announced")
	}
	header, err := buffered.Peek(HeaderSize)
	if errors.Is(err, io.EOF) && len(header) > 0 {
		return 0, ErrTruncated
	}
	if err != nil {
		return 0, err
	}
	return r.payload(header)
}

// payload is the length that a header announces.
func (r *Reader) payload(header []byte) (int, error) {
	size := binary.BigEndian.Uint32(header)
	if uint64(size) > uint64(r.max) {
		return 0, fmt.Errorf("%w: %d bytes announced, limit %d", ErrFrameTooLarge, size, r.max)
	}
	return int(size), nil
}

// Next reads one frame into m. It returns io.EOF at a clean end of the
// stream, and otherwise one of the Err values above or the stream's own error.
// The length is checked before memory is taken for it.
func (r *Reader) Next(m proto.Message) error {
	var header [HeaderSize]byte
	if _, err := io.ReadFull(r.r, header[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return ErrTruncated
		}
		return err
	}
	size, err := r.payload(header[:])
	if err != nil {
		return err
	}
	if cap(r.buf) < size {
		r.buf = make([]byte, size)
	}
	payload := r.buf[:size]
	if cap(r.buf) > keptPayload {
		r.buf = nil // a rare large frame must not stay in memory
	}
	if _, err := io.ReadFull(r.r, payload); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return ErrTruncated
		}
		return err
	}
	if crc32.Checksum(payload, castagnoli) != binary.BigEndian.Uint32(header[4:]) {
		return ErrChecksum
	}
	if err := fewItems(payload, m); err != nil {
		return err
	}
	if err := proto.Unmarshal(payload, m); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

// ReadHello reads exactly one frame of at most MaxHello bytes from r, without
// reading ahead: what follows on the connection belongs to the multiplexer.
func ReadHello(r io.Reader, m proto.Message) error {
	one := Reader{r: r, max: MaxHello}
	return one.Next(m)
}
