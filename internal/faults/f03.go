package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/internal/lab"
)

// f03 freezes an admin node, once at any instant and once while it holds row
// locks, for each length of pause. The others have to go on; what it still
// believes when it wakes up must start nothing.
func f03(ctx context.Context, s *stage) error {
	if err := s.open(ctx, fleetPlan{admins: 3, executors: 2}); err != nil {
		return err
	}
	if err := s.load(ctx, s.rate()); err != nil {
		return err
	}
	db, err := s.db.Open()
	if err != nil {
		return err
	}
	defer db.Close()
	pauses := pick(s.set, []time.Duration{time.Second, 5 * time.Second, 20 * time.Second, time.Minute},
		[]time.Duration{time.Second, 5 * time.Second})
	withLocks := 0
	for i := range s.rounds(2*len(pauses), 2*len(pauses)) {
		pause, locks := pauses[i/2%len(pauses)], i%2 == 1
		a := s.fleet.Admins[i%len(s.fleet.Admins)]
		kind := "sigstop " + pause.String()
		if locks {
			kind += " with row locks"
		}
		err := s.fault(kind, a.Name, func() error {
			held := false
			if locks {
				held, err = freezeWithLocks(ctx, db, a, fmt.Sprintf("admin_%d", i%len(s.fleet.Admins)+1))
			} else {
				err = a.Process.Freeze()
			}
			if err != nil {
				return err
			}
			if held {
				withLocks++
			}
			if err := wait(ctx, pause); err != nil {
				return errors.Join(err, a.Process.Thaw())
			}
			return a.Process.Thaw()
		})
		if err != nil {
			return err
		}
		if err := wait(ctx, 3*time.Second); err != nil {
			return err
		}
		if err := s.revive(ctx, a); err != nil {
			return err
		}
	}
	j, err := s.finish(ctx)
	if j != nil {
		s.result.Figures["frozenWithLocks"] = withLocks
		s.figure("lateness %s (goal 250 ms, 3 s); %d times frozen with locks held; %d offers of a dead hand given back",
			j.inside, withLocks, refences(j))
	}
	if err == nil && withLocks == 0 {
		err = errors.New("no admin could be frozen while it held locks: not enough evidence")
	}
	return err
}

// revive starts a node again that ended by itself, as its supervisor would: a
// node that was silent for longer than its place on the list ends.
func (s *stage) revive(ctx context.Context, a *lab.Admin) error {
	if !a.Process.Ended() {
		return nil
	}
	say("%s ended by itself and is started again", a.Name)
	return a.Start(ctx)
}

// freezeWithLocks freezes the node in the middle of a transaction that holds
// row locks; held tells whether that was so in the end. After 20 s it freezes
// it all the same.
func freezeWithLocks(ctx context.Context, db *sql.DB, a *lab.Admin, user string) (held bool, err error) {
	const locks = `SELECT COUNT(*) FROM information_schema.innodb_trx t
		JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id
		WHERE p.user = ? AND t.trx_rows_locked > 0`
	holds := func() (bool, error) {
		n := 0
		err := db.QueryRowContext(ctx, locks, user).Scan(&n)
		return n > 0, err
	}
	for limit := time.Now().Add(20 * time.Second); time.Now().Before(limit); {
		if held, err := holds(); err != nil || !held {
			if err != nil {
				return false, err
			}
			continue
		}
		if err := a.Process.Freeze(); err != nil {
			return false, err
		}
		// What it had sent before may still have been answered.
		if err := wait(ctx, 20*time.Millisecond); err != nil {
			return false, err
		}
		if held, err := holds(); err != nil || held {
			return held, err
		}
		if err := a.Process.Thaw(); err != nil {
			return false, err
		}
	}
	return false, a.Process.Freeze()
}

// refences counts the runs that were offered more often than they were
// attempted: offers that came to nothing because somebody else was quicker.
func refences(j *judged) int {
	n := 0
	for _, r := range j.rows {
		if r.Fence > int64(r.Attempt) {
			n++
		}
	}
	return n
}
