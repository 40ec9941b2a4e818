package lab

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

// Stalls are the longest times for which the machine itself stood still while
// something was measured. A disk that takes half a second for 512 bytes makes a
// run that late, whoever writes it down: without this, such a run would be held
// against the product. What the product's own load adds is in them, too. 0 is
// less than 5 ms.
type Stalls struct {
	// Disk is how long it took until 512 bytes were durable, in ms.
	Disk float64 `json:"diskMs"`
	// Processor is how late a sleeper woke, in ms.
	Processor float64 `json:"processorMs"`
}

const (
	// diskEvery is how often the disk is asked: a hundredth of what it does for
	// a database under load.
	diskEvery = 50 * time.Millisecond
	// napEvery is how often a sleeper wakes.
	napEvery = 10 * time.Millisecond
	// noStall is what goes by unnoticed: a busy machine's every day.
	noStall = 5 * time.Millisecond
)

// StallWatch notices stalls from WatchStalls to Close. It is safe for concurrent use.
type StallWatch struct {
	disk, processor stallList
	file            *os.File
	all             sync.WaitGroup
	stop            context.CancelFunc
}

// WatchStalls begins to watch the disk of a folder and the processors, until
// ctx ends or Close.
func WatchStalls(ctx context.Context, dir string) (*StallWatch, error) {
	file, err := os.CreateTemp(dir, "stalls-")
	if err != nil {
		return nil, err
	}
	path := file.Name()
	if err := file.Close(); err != nil {
		return nil, err
	}
	// Its blocks exist after the first write: the others write data and nothing else.
	if file, err = os.OpenFile(path, os.O_WRONLY|syscall.O_DSYNC, 0); err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	if err := os.Remove(path); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	ctx, stop := context.WithCancel(ctx)
	w := &StallWatch{file: file, stop: stop}
	block := make([]byte, 512)
	w.all.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(diskEvery):
			}
			w.disk.begins(time.Now())
			if _, err := file.WriteAt(block, 0); err != nil {
				w.disk.begins(time.Time{})
				return // whatever is measured on that disk says so, too
			}
			w.disk.ends(time.Now())
		}
	})
	w.all.Go(func() {
		for {
			w.processor.begins(time.Now().Add(napEvery))
			select {
			case <-ctx.Done():
				return
			case <-time.After(napEvery):
			}
			w.processor.ends(time.Now())
		}
	})
	return w, nil
}

// Close waits until a write under way has ended.
func (w *StallWatch) Close() error {
	w.stop()
	w.all.Wait()
	return w.file.Close()
}

// Since tells of a window that ends now.
func (w *StallWatch) Since(from time.Time) *Stalls {
	now := time.Now()
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return &Stalls{Disk: ms(w.disk.longest(from, now)), Processor: ms(w.processor.longest(from, now))}
}

// stallList is what one of both has noticed. It is safe for concurrent use.
type stallList struct {
	mu     sync.Mutex
	began  time.Time // guarded by mu: of the wait under way; zero: there is none
	waits  int       // guarded by mu: how many have ended
	stalls []stall   // guarded by mu, in order
}

type stall struct{ from, to time.Time }

// begins notes when the wait begins that counts.
func (l *stallList) begins(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began = at
}

// ends keeps it unless it was short.
func (l *stallList) ends(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at.Sub(l.began) >= noStall {
		l.stalls = append(l.stalls, stall{l.began, at})
	}
	l.began = time.Time{}
	l.waits++
}

// longest is that of the stalls that were within or reached into a window, the
// one under way included; 0: none.
func (l *stallList) longest(from, to time.Time) (most time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.stalls
	if !l.began.IsZero() && to.Sub(l.began) >= noStall {
		all = append(all[:len(all):len(all)], stall{l.began, to})
	}
	for _, s := range all {
		if s.to.After(from) && s.from.Before(to) {
			most = max(most, s.to.Sub(s.from))
		}
	}
	return most
}
