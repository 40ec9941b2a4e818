package gateway

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/proto"
)

// Whoever exceeds a limit is told which one before the session ends.
func TestTheExecutorIsToldWhichLimitItExceeded(t *testing.T) {
	drain := &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Drain{Drain: &proto.Drain{}}}
	for name, c := range map[string]struct {
		send       func(p *peerEnd)
		code, says string
		retry      int64
	}{
		"too many items": {func(p *peerEnd) {
			_ = proto.WriteFrame(p.command, commandFrame(&proto.AnswerBatch{Answers: listOf(proto.MaxBatch+1, func(int64) *proto.Answer { return &proto.Answer{} })}), proto.MaxFrame)
		}, codeTooLarge, "501 items, limit 500", 0},
		"a frame over the limit": {func(p *peerEnd) {
			var header [proto.HeaderSize]byte
			binary.BigEndian.PutUint32(header[:], proto.MaxFrame+1)
			_, _ = p.command.Write(header[:])
		}, codeTooLarge, "1048577 bytes announced, limit 1048576", 0},
		"a broken frame": {func(p *peerEnd) {
			_, _ = p.control.Write([]byte{0, 0, 0, 1, 1, 2, 3, 4, 5})
		}, codeMalformed, "checksum differs", 0},
		"control frames too often": {func(p *peerEnd) {
			// Ten times as often as allowed, until the session ends. A busy machine may take
			// seconds for a fixed number of frames, and slow frames are no excess.
			go func() {
				tick := time.NewTicker(time.Second / (10 * maxControl))
				defer tick.Stop()
				for proto.WriteFrame(p.control, drain, proto.MaxFrame) == nil {
					<-tick.C
				}
			}()
		}, codeLimit, "more than 50 control frames in a second", rateRetry.Milliseconds()},
		"registered twice": {func(p *peerEnd) {
			_ = proto.WriteFrame(p.control, &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Register{Register: &proto.Register{}}}, proto.MaxFrame)
		}, codeMalformed, "registered twice", 0},
		"a third stream": {func(p *peerEnd) {
			_, _ = p.mux.Open()
		}, codeMalformed, "third stream", 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			p := b.join(bootA, 4)
			s := get(t, b.rec.joined)
			c.send(p)
			var told *proto.Error
			for told == nil { // acknowledgements may come before
				told = p.nextControl().GetError()
			}
			require.Equal(t, c.code, told.Code)
			require.Contains(t, told.Message, c.says)
			require.Equal(t, c.retry, told.RetryAfterMs)
			require.Same(t, s, get(t, b.rec.left))
			require.ErrorContains(t, s.err(), c.says)
		})
	}
}

// The same holds for a registration and for a batch of log lines.
func TestLimitsOutsideOfASessionAreToldToo(t *testing.T) {
	t.Run("registration", func(t *testing.T) {
		b := start(t)
		conn, answer := b.dial(hello(goodToken, bootA))
		p := b.registerOver(conn, answer, &proto.Register{InstanceName: "i", Slots: 1, Inventory: listOf(20_000, func(int64) *proto.InventoryItem { return &proto.InventoryItem{} })})
		told := p.nextControl().GetError()
		require.Equal(t, codeTooLarge, told.GetCode())
		require.Contains(t, told.GetMessage(), "20001 items, limit 10000")
	})
	t.Run("log lines", func(t *testing.T) {
		b := start(t)
		p := b.join(bootA, 4)
		conn := b.logConn(bootA, p.sessionID)
		_ = proto.WriteFrame(conn, logBatch(1, 7, 1, strings.Split(strings.Repeat("x", proto.MaxLogItems+1), "")...), 2*proto.MaxFrame)
		require.Equal(t, codeTooLarge, ackOf(t, conn).GetError().GetCode())
	})
}
