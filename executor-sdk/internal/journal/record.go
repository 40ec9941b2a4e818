package journal

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// Kind says what a record tells about its attempt.
type Kind uint8

// The kinds, in the order an attempt goes through them.
const (
	// The records that follow belong to the boot in Body; Execution and Fence
	// are the two halves of its Machine.
	kindBoot Kind = 1

	Accepted Kind = 2 // offered and accepted; never started unless Granted follows
	Granted  Kind = 3 // may have started
	Done     Kind = 4 // Body is the result, owed until Settled
	Settled  Kind = 5 // nothing is owed any more
)

// Record is one line of the journal.
type Record struct {
	Kind      Kind
	Execution int64
	Fence     int64
	Body      []byte
}

// bootRecord begins the records of a process.
func bootRecord(boot string, m Machine) Record {
	return Record{
		Kind: kindBoot, Body: []byte(boot),
		Execution: int64(binary.BigEndian.Uint64(m[:8])), Fence: int64(binary.BigEndian.Uint64(m[8:])),
	}
}

// machine is that of a bootRecord.
func (r Record) machine() (m Machine) {
	binary.BigEndian.PutUint64(m[:8], uint64(r.Execution))
	binary.BigEndian.PutUint64(m[8:], uint64(r.Fence))
	return m
}

// Layout of a segment: header, then records. A record is the payload's length
// and CRC-32C, both big-endian 32-bit, and the payload: kind (1 byte),
// execution and fence (8 bytes each, big-endian), body (the rest).
const (
	header      = "CARILLON-JOURNAL\x00\x01"
	frameSize   = 8
	fixedSize   = 17
	maxBodySize = 4 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errTorn means that the bytes are no whole, unharmed record.
var errTorn = errors.New("no whole record")

func appendRecord(buf []byte, r Record) []byte {
	start := len(buf)
	buf = append(buf, make([]byte, frameSize)...)
	buf = append(buf, byte(r.Kind))
	buf = binary.BigEndian.AppendUint64(buf, uint64(r.Execution))
	buf = binary.BigEndian.AppendUint64(buf, uint64(r.Fence))
	buf = append(buf, r.Body...)
	payload := buf[start+frameSize:]
	binary.BigEndian.PutUint32(buf[start:], uint32(len(payload)))
	binary.BigEndian.PutUint32(buf[start+4:], crc32.Checksum(payload, castagnoli))
	return buf
}

// decodeRecord reads the record at the start of data and returns its size.
// Body points into data.
func decodeRecord(data []byte) (Record, int, error) {
	if len(data) < frameSize+fixedSize {
		return Record{}, 0, errTorn
	}
	size := int(binary.BigEndian.Uint32(data))
	if size < fixedSize || size > fixedSize+maxBodySize || len(data) < frameSize+size {
		return Record{}, 0, errTorn
	}
	payload := data[frameSize : frameSize+size]
	if crc32.Checksum(payload, castagnoli) != binary.BigEndian.Uint32(data[4:]) {
		return Record{}, 0, errTorn
	}
	r := Record{
		Kind:      Kind(payload[0]),
		Execution: int64(binary.BigEndian.Uint64(payload[1:])),
		Fence:     int64(binary.BigEndian.Uint64(payload[9:])),
		Body:      payload[fixedSize:],
	}
	if r.Kind < kindBoot || r.Kind > Settled {
		return Record{}, 0, errTorn
	}
	return r, frameSize + size, nil
}
