package wire

import (
	"bytes"
	"net"
	"strconv"
	"sync/atomic"
)

// maxRedisLine bounds a line (an error, a status, a number or an announced length), and
// an error with a length. Errors are logged.
const maxRedisLine = 4 << 10

// RedisBounds bound one answer.
type RedisBounds struct{ Bytes, Elements int }

// Redis reads RESP2 and RESP3 (redis.io/docs/latest/develop/reference/protocol-spec).
func Redis(conn net.Conn, onBreak func(error)) net.Conn {
	return RedisWithin(RedisBounds{maxLength, maxElements})(conn, onBreak)
}

// RedisWithin is Redis with other bounds.
func RedisWithin(b RedisBounds) Reader {
	return func(conn net.Conn, onBreak func(error)) net.Conn {
		return check(conn, &resp{bounds: b}, onBreak)
	}
}

// resp follows answers. An answer is a line, a text behind a line, or a list of
// answers.
type resp struct {
	bounds RedisBounds

	head     [32]byte // the beginning of the line that is being read
	line     int      // bytes of that line so far
	text     int      // bytes left of a text and its line feed
	left     []int    // elements left of each open list, the outermost first
	bytes    int      // of this answer so far
	elements int      // that this answer has announced so far

	pushed atomic.Int64 // push messages since the client's last write
}

// maxPushes bounds the messages that a server sends without a request. A publisher asks
// for none.
const maxPushes = 256

func (r *resp) wrote([]byte) { r.pushed.Store(0) }

func (r *resp) read(p []byte) error {
	for len(p) > 0 {
		n := min(len(p), r.text)
		if r.text == 0 {
			if n = bytes.IndexByte(p, '\n') + 1; n == 0 {
				n = len(p)
			}
		}
		piece := p[:n]
		p = p[n:]
		if r.bytes += n; r.bytes > r.bounds.Bytes {
			return broken("Redis", "an answer has more than %d bytes", r.bounds.Bytes)
		}
		if r.text > 0 {
			if r.text -= n; r.text == 0 {
				r.complete()
			}
			continue
		}
		if err := r.lines(piece); err != nil {
			return err
		}
	}
	return nil
}

// lines takes a piece of a line, which ends with the line feed if there is one.
func (r *resp) lines(piece []byte) error {
	if r.line == 0 && bytes.IndexByte([]byte("+-:_,#(*%~>|$=!"), piece[0]) < 0 {
		return broken("Redis", "an answer begins with %q, which is no type of its protocol", piece[:1])
	}
	if r.line < len(r.head) {
		copy(r.head[r.line:], piece)
	}
	if r.line += len(piece); r.line > maxRedisLine {
		return broken("Redis", "a line has more than %d bytes", maxRedisLine)
	}
	if piece[len(piece)-1] != '\n' {
		return nil
	}
	length := r.line
	r.line = 0
	head := bytes.TrimSuffix(r.head[:min(length, len(r.head))], []byte("\r\n"))
	if bytes.IndexByte([]byte("$=!*~>%|"), head[0]) >= 0 && length > len(r.head) {
		return broken("Redis", "a length with %d digits is announced", length)
	}
	switch head[0] {
	case '$', '=':
		return r.announceText(head[1:], r.bounds.Bytes)
	case '!':
		return r.announceText(head[1:], maxRedisLine)
	case '>':
		if r.pushed.Add(1) > maxPushes {
			return broken("Redis", "the server sent more than %d push messages without a request", maxPushes)
		}
		return r.announceList(head[1:], 1, 0)
	case '*', '~':
		return r.announceList(head[1:], 1, 0)
	case '%':
		return r.announceList(head[1:], 2, 0)
	case '|': // names and values, and then the answer that they are about
		return r.announceList(head[1:], 2, 1)
	}
	r.complete()
	return nil
}

func (r *resp) announceText(digits []byte, most int) error {
	n, err := strconv.Atoi(string(digits))
	switch {
	case err != nil || n < -1:
		return broken("Redis", "%q is announced as the length of a text", digits)
	case n > most || n > r.bounds.Bytes-r.bytes:
		return broken("Redis", "a text of %d bytes is announced, and an answer may have %d bytes", n, most)
	case n == -1: // none
		r.complete()
	default:
		r.text = n + len("\r\n")
	}
	return nil
}

func (r *resp) announceList(digits []byte, each, behind int) error {
	n, err := strconv.Atoi(string(digits))
	switch {
	case err != nil || n < -1:
		return broken("Redis", "%q is announced as the length of a list", digits)
	case n > (r.bounds.Elements-r.elements)/each:
		return broken("Redis", "a list of %d elements is announced after %d others, and an answer may have %d elements", n, r.elements, r.bounds.Elements)
	case n <= 0 && behind == 0:
		r.complete()
		return nil
	case len(r.left) == maxDepth:
		return broken("Redis", "an answer has lists in lists to more than %d levels", maxDepth)
	}
	n = max(n, 0)*each + behind
	r.elements += n
	r.left = append(r.left, n)
	return nil
}

// complete counts a value that is there as a whole.
func (r *resp) complete() {
	for last := len(r.left) - 1; last >= 0; last-- {
		if r.left[last]--; r.left[last] > 0 {
			return
		}
		r.left = r.left[:last]
	}
	r.bytes, r.elements = 0, 0
}
