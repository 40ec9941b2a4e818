package httpconn

import (
	"net/http"
	"time"
)

// A client has to take writeStep bytes within writeTime, or it is cut off. An
// answer as a whole may take as long as it does: what is slow all along, 2 KB/s
// and more, gets through, and so does what is written little by little.
const (
	writeStep = 64 << 10
	writeTime = 30 * time.Second
)

// writer gives each piece of an answer its own deadline. It is used by the
// goroutine that serves the request.
type writer struct {
	http.ResponseWriter
	control *http.ResponseController
	time    time.Duration // of a piece
}

// extend lets what is written next take its time.
func (w *writer) extend() {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.time)) // refused by what is no connection, as in tests
}

func (w *writer) Write(p []byte) (n int, err error) {
	for {
		piece := p[n:min(len(p), n+writeStep)]
		w.extend()
		done, err := w.ResponseWriter.Write(piece)
		n += done
		if err != nil || n >= len(p) {
			return n, err
		}
	}
}

// Flush makes it an http.Flusher, which gin asks for.
func (w *writer) Flush() {
	w.extend()
	_ = w.control.Flush()
}

// Unwrap lets http.ResponseController find the connection.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
