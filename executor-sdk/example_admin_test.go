package executor_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strings"
	"time"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/internal/fakeadmin"
	"github.com/carillon-sched/carillon/proto"
)

// demo is what the examples run against: an admin node that runs one handler
// once and prints what came of it.
type demo struct {
	admin   *fakeadmin.Admin
	journal string
}

// newDemo starts the admin, and makes an executor that knows its address and token.
func newDemo() (*demo, *executor.Executor) {
	d := &demo{admin: &fakeadmin.Admin{}}
	var err error
	if d.journal, err = os.MkdirTemp("", "journal"); err == nil {
		err = d.admin.Start()
	}
	if err != nil {
		log.Fatal(err)
	}
	ex, err := executor.New(executor.Config{
		Name: "shop", Addresses: []string{d.admin.Address()}, Token: fakeadmin.Token,
		JournalDir: d.journal, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		log.Fatal(err)
	}
	return d, ex
}

// run runs ex, has the admin start handler with input, prints the run's log
// and its end, and stops ex.
func (d *demo) run(ex *executor.Executor, handler, input string, change ...func(*proto.Offer)) {
	defer d.close()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- ex.Run(ctx) }()
	d.await(func(s fakeadmin.Seen) bool { return s.Sessions == 1 })
	o := offer(4711, handler, append(change, func(o *proto.Offer) { o.Input = []byte(input) })...)
	if err := d.admin.Sessions()[0].Offer(o); err != nil {
		log.Fatal(err)
	}
	r := d.await(func(s fakeadmin.Seen) bool { return len(s.Results) == 1 }).Results[0]
	cancel()
	if err := <-done; err != nil {
		log.Fatal(err)
	}
	for _, l := range d.admin.Seen().Lines {
		fmt.Println(strings.TrimSpace("log: " + slog.Level(l.GetLevel()).String() + " " + l.GetMessage() + " " + string(l.GetAttrs())))
	}
	fmt.Println(strings.TrimSpace(strings.ToLower(brief(r)) + " " + string(r.GetOutput()) + r.GetError()))
}

func (d *demo) close() {
	d.admin.Close()
	_ = os.RemoveAll(d.journal)
}

func (d *demo) await(condition func(fakeadmin.Seen) bool) fakeadmin.Seen {
	seen, err := d.admin.Wait(10*time.Second, condition)
	if err != nil {
		log.Fatal(err)
	}
	return seen
}
