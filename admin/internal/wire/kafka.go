package wire

import (
	"encoding/binary"
	"net"
	"sync"
)

const (
	// maxKafka bounds other answers than metadata. A list may announce an element for
	// each byte that follows, and the library makes up to 96 bytes for an element.
	maxKafka = 128 << 10
	// maxEntries bounds brokers, topics, partitions and tags of the metadata. The
	// library keeps about 1 KB for a partition. A topic may have 1,000 partitions, so
	// maxElements is too few.
	maxEntries = 8192
	// maxLogin bounds an answer to a login, which may hold an error that is logged.
	maxLogin = 8 << 10
	// Requests whose answers have bounds of their own.
	metadataKey, loginKey = 3, 36
)

// Kafka reads answers (kafka.apache.org/protocol). Metadata may have 1 MiB: a
// partition with three replicas has 42 bytes.
func Kafka(conn net.Conn, onBreak func(error)) net.Conn { return check(conn, &kafka{}, onBreak) }

// kafka follows the sizes of answers. The requests tell their kinds.
type kafka struct {
	in, out prefix // of an answer, of a request
	body    []byte // of the metadata that are being read

	mu    sync.Mutex
	asked []request // guarded by mu: without an answer, the oldest first
}

type request struct{ key, version int16 }

// prefix collects the first bytes of a frame and skips the others.
type prefix struct {
	bytes []byte
	left  int // of the frame behind bytes
}

// fill takes bytes of p until there are n of them, and tells how many it took.
func (f *prefix) fill(p []byte, n int) int {
	took := min(len(p), n-len(f.bytes))
	f.bytes = append(f.bytes, p[:took]...)
	return took
}

// wrote keeps key and version of each request: size, key, version.
func (k *kafka) wrote(p []byte) {
	for len(p) > 0 {
		if n := min(len(p), k.out.left); n > 0 {
			k.out.left -= n
			p = p[n:]
			continue
		}
		p = p[k.out.fill(p, 8):]
		if head := k.out.bytes; len(head) == 8 {
			k.mu.Lock()
			k.asked = append(k.asked, request{int16(binary.BigEndian.Uint16(head[4:])), int16(binary.BigEndian.Uint16(head[6:]))})
			k.mu.Unlock()
			k.out.left, k.out.bytes = max(0, int(binary.BigEndian.Uint32(head))-4), head[:0]
		}
	}
}

func (k *kafka) read(p []byte) error {
	for len(p) > 0 {
		if n := min(len(p), k.in.left); n > 0 {
			if k.in.left -= n; k.body != nil {
				k.body = append(k.body, p[:n]...)
			}
			p = p[n:]
			if k.in.left == 0 {
				if err := k.answered(); err != nil {
					return err
				}
			}
			continue
		}
		p = p[k.in.fill(p, 4):]
		if len(k.in.bytes) == 4 {
			size := binary.BigEndian.Uint32(k.in.bytes)
			k.in.bytes = k.in.bytes[:0]
			if err := k.announce(size); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k *kafka) announce(size uint32) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.asked) == 0 {
		return broken("Kafka", "the broker sent an answer without a request")
	}
	most := uint32(maxKafka)
	switch k.asked[0].key {
	case metadataKey:
		most, k.body = maxLength, []byte{}
	case loginKey:
		most = maxLogin
	}
	if k.body == nil { // else answered looks at the request
		k.asked = k.asked[1:]
	}
	if size < 4 || size > most {
		return broken("Kafka", "an answer of %d bytes is announced, and it may have 4 to %d", size, most)
	}
	k.in.left = int(size)
	return nil
}

// answered checks the metadata once they are complete.
func (k *kafka) answered() error {
	if k.body == nil {
		return nil
	}
	k.mu.Lock()
	version := k.asked[0].version
	k.asked = k.asked[1:]
	k.mu.Unlock()
	body := k.body
	k.body = nil
	return checkMetadata(body, version)
}

// walker reads the types of Kafka's protocol. After the end of the bytes each read
// returns zero.
type walker struct {
	rest     []byte
	flexible bool // lengths are varints, plus one, and structures end with tags
	entries  int  // that were announced
	short    bool // there were fewer bytes than announced
}

func (w *walker) skip(n int) {
	if n < 0 || n > len(w.rest) {
		w.short, w.rest = true, nil
		return
	}
	w.rest = w.rest[n:]
}

func (w *walker) uvarint() int {
	v, n := binary.Uvarint(w.rest)
	if n <= 0 || v > maxLength {
		w.short, w.rest = true, nil
		return 0
	}
	w.rest = w.rest[n:]
	return int(v)
}

func (w *walker) length(bytes int) int {
	if w.flexible {
		return max(0, w.uvarint()-1)
	}
	head := w.rest
	if w.skip(bytes); w.short {
		return 0
	}
	if bytes == 2 {
		return max(0, int(int16(binary.BigEndian.Uint16(head))))
	}
	return max(0, int(int32(binary.BigEndian.Uint32(head))))
}

func (w *walker) text()     { w.skip(w.length(2)) }
func (w *walker) integers() { w.skip(4 * w.length(4)) }

// each walks over a list until it ends, or too much was announced.
func (w *walker) each(n int, element func()) {
	w.entries += n
	for i := 0; i < n && !w.short && w.entries <= maxEntries; i++ {
		element()
	}
}

func (w *walker) tags() {
	if w.flexible {
		w.each(w.uvarint(), func() { w.uvarint(); w.skip(w.uvarint()) })
	}
}

// checkMetadata walks over an answer to Metadata, versions 0 to 13. The end of it,
// which has no lists, may be anything.
func checkMetadata(body []byte, version int16) error {
	w := &walker{rest: body, flexible: version >= 9}
	since := func(first int16, bytes int) {
		if version >= first {
			w.skip(bytes)
		}
	}
	w.skip(4) // the request's number
	w.tags()
	since(3, 4) // throttle time
	w.each(w.length(4), func() {
		w.skip(4) // id
		w.text()  // host
		w.skip(4) // port
		if version >= 1 {
			w.text() // rack
		}
		w.tags()
	})
	if version >= 2 {
		w.text() // the cluster's id
	}
	since(1, 4) // controller
	w.each(w.length(4), func() {
		w.skip(2)     // error
		w.text()      // name
		since(10, 16) // id
		since(1, 1)   // internal
		w.each(w.length(4), func() {
			w.skip(2 + 4 + 4) // error, partition, leader
			since(7, 4)       // the leader's epoch
			w.integers()      // replicas
			w.integers()      // those in sync
			if version >= 5 {
				w.integers() // those that are offline
			}
			w.tags()
		})
		since(8, 4) // operations that are allowed
		w.tags()
	})
	switch {
	case w.entries > maxEntries:
		return broken("Kafka", "the metadata list %d brokers, topics and partitions, and they may list %d", w.entries, maxEntries)
	case w.short:
		return broken("Kafka", "the metadata announce more than their %d bytes hold", len(body))
	}
	return nil
}
