package hostile

import (
	"context"
	"hash/crc32"
	"runtime"
	"sync"
)

// Busy takes the processors as Flood does, and sends nothing, until ctx ends:
// what a flood does to others is more than what any load does on this machine.
func Busy(ctx context.Context) {
	frame := []byte(text)
	var all sync.WaitGroup
	for range runtime.NumCPU() {
		all.Go(func() {
			for ctx.Err() == nil {
				_ = crc32.ChecksumIEEE(frame)
			}
		})
	}
	all.Wait()
}
