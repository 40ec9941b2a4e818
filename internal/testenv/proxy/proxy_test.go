package proxy

import (
	"bufio"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server answers with do until its connection ends.
func server(t *testing.T, do func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			do(conn)
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

func echo(conn net.Conn) { _, _ = io.Copy(conn, conn) }

func through(t *testing.T, upstream string, o Options) (*Proxy, net.Conn) {
	t.Helper()
	p, err := New(upstream, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	conn, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return p, conn
}

func TestASilentPathKeepsItsBytesUntilItHeals(t *testing.T) {
	p, conn := through(t, server(t, echo), Options{})
	say := func(text string) { _, err := conn.Write([]byte(text)); require.NoError(t, err) }
	hear := func(n int) string {
		b := make([]byte, n)
		_, err := io.ReadFull(conn, b)
		require.NoError(t, err)
		return string(b)
	}
	say("one")
	require.Equal(t, "one", hear(3))
	p.Silence()
	say("two")
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, conn.SetReadDeadline(time.Time{}))
	p.Heal()
	require.Equal(t, "two", hear(3))
	require.Equal(t, 1, p.Reset())
	_, err = conn.Read(make([]byte, 1))
	require.Error(t, err)
}

func TestAConnectionIsResetAfterExactlySoManyBytes(t *testing.T) {
	for _, n := range []int64{0, 1, 5, 9} {
		got := make(chan string, 1)
		upstream := server(t, func(conn net.Conn) {
			all, err := io.ReadAll(conn)
			if err == nil {
				all = append(all, " and an orderly end"...)
			}
			got <- string(all)
		})
		_, conn := through(t, upstream, Options{Limits: func(int64) (int64, int64) { return n, -1 }})
		_, err := conn.Write([]byte("0123456789"))
		require.NoError(t, err)
		require.Equal(t, "0123456789"[:n], <-got)
	}
}

// database speaks as much of MySQL's protocol as the cutter reads: it answers
// each command with one packet and tells what it got.
func database(t *testing.T, got chan<- string) string {
	return server(t, func(conn net.Conn) {
		in := bufio.NewReader(conn)
		for {
			head := make([]byte, 4)
			if _, err := io.ReadFull(in, head); err != nil {
				return
			}
			body := make([]byte, head[0])
			if _, err := io.ReadFull(in, body); err != nil {
				return
			}
			got <- string(body[1:])
			_, _ = conn.Write([]byte{1, 0, 0, 1, 0})
		}
	})
}

func packet(statement string) []byte {
	return append([]byte{byte(len(statement) + 1), 0, 0, 0, 3}, statement...)
}

func TestACommitIsCutInBothTruths(t *testing.T) {
	got := make(chan string, 100)
	upstream := database(t, got)
	cutter := &CommitCutter{}
	cutter.Every(1)
	for range 40 {
		_, conn := through(t, upstream, Options{Commits: cutter})
		_, err := conn.Write(packet("SELECT 1"))
		require.NoError(t, err)
		_, err = io.ReadFull(conn, make([]byte, 5))
		require.NoError(t, err, "other statements pass")
		_, err = conn.Write(packet("COMMIT"))
		require.NoError(t, err)
		_, err = conn.Read(make([]byte, 1))
		require.Error(t, err, "the client never hears of its commit")
		conn.Close()
	}
	committed, lost, seen := cutter.Trials()
	heard := map[string]int{}
	for range 40 + committed {
		heard[<-got]++
	}
	require.Empty(t, got)
	require.EqualValues(t, committed, heard["COMMIT"], "the database got those, and no others")
	require.Equal(t, 40, heard["SELECT 1"])
	require.EqualValues(t, 40, seen)
	require.EqualValues(t, 40, committed+lost)
	require.Positive(t, committed)
	require.Positive(t, lost)
}

// A statement outside of a transaction commits itself; one inside does not.
func TestAStatementThatCommitsItselfIsCut(t *testing.T) {
	for _, c := range []struct {
		statements []string
		cut        bool
	}{
		{[]string{"UPDATE jobs SET x = 1"}, true},
		{[]string{"START TRANSACTION", "UPDATE jobs SET x = 1"}, false},
		{[]string{"START TRANSACTION", "UPDATE jobs SET x = 1", "ROLLBACK", "UPDATE jobs SET x = 1"}, true},
		{[]string{"START TRANSACTION", "UPDATE jobs SET x = 1", "COMMIT"}, true},
	} {
		cutter := &CommitCutter{}
		cutter.Every(1)
		_, conn := through(t, database(t, make(chan string, 10)), Options{Commits: cutter})
		var err error
		for _, statement := range c.statements {
			require.NoError(t, err, "nothing before the last is cut")
			_, err = conn.Write(packet(statement))
			require.NoError(t, err)
			_, err = io.ReadFull(conn, make([]byte, 5))
		}
		require.Equal(t, c.cut, err != nil, c.statements)
		conn.Close()
	}
}

func TestBytesAreLateAndInOrder(t *testing.T) {
	p, conn := through(t, server(t, echo), Options{})
	p.Delay(20 * time.Millisecond)
	began := time.Now()
	for _, b := range []byte("abc") {
		_, err := conn.Write([]byte{b})
		require.NoError(t, err)
	}
	b := make([]byte, 3)
	_, err := io.ReadFull(conn, b)
	require.NoError(t, err)
	require.Equal(t, "abc", string(b))
	require.GreaterOrEqual(t, time.Since(began), 40*time.Millisecond)
}

func TestACommitIsHeldWithItsLocks(t *testing.T) {
	got := make(chan string, 100)
	cutter := &CommitCutter{}
	held := cutter.Hold("triggers")
	_, conn := through(t, database(t, got), Options{Commits: cutter})
	say := func(statement string) {
		_, err := conn.Write(packet(statement))
		require.NoError(t, err)
	}
	hear := func() {
		_, err := io.ReadFull(conn, make([]byte, 5))
		require.NoError(t, err)
	}
	for _, statement := range []string{"UPDATE triggers SET x = 1", "START TRANSACTION", "UPDATE jobs SET x = 1", "COMMIT", "START TRANSACTION", "SELECT 1 FROM triggers FOR UPDATE"} {
		say(statement)
		hear()
		require.Equal(t, statement, <-got)
	}
	say("COMMIT")
	<-held.Caught()
	require.Empty(t, got)
	held.Release()
	hear()
	require.Equal(t, "COMMIT", <-got)
}
