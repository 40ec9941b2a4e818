package db

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

const (
	// probeTimeout bounds one probe.
	probeTimeout = 5 * time.Second
	// probeBusy is how long that probe waits for another process's lock on SQLite.
	probeBusy = time.Second
)

// Probe looks whether the database can be used at all, before anything is asked
// of it. Unreachable tells from the error whether it may come by itself.
func Probe(ctx context.Context, o Options) (err error) {
	o.busy = probeBusy
	s, err := Open(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	tx, err := s.Write.BeginTx(ctx, nil) // on SQLite it takes the file's write lock
	if err != nil {
		return Refusal(err)
	}
	return tx.Rollback()
}

// refusals are the answers of a MySQL server that no waiting will change.
var refusals = map[uint16]string{
	1044: "the database server does not let this user use this database",
	1045: "the database server refuses this user and password",
	1049: "the database server has no database of this name; create it first",
	1130: "the database server lets no client in from this host",
}

// Refusal says in words what a server answers that no waiting changes.
func Refusal(err error) error {
	var my *mysql.MySQLError
	if errors.As(err, &my) && refusals[my.Number] != "" {
		return fmt.Errorf("%s: %w", refusals[my.Number], err)
	}
	return fmt.Errorf("reach the database: %w", err)
}

// Unreachable says in a few words, which stay the same as long as the cause
// does, why the database cannot be used now. It returns "" when err is none
// that passes by itself.
func Unreachable(err error) string {
	var my *mysql.MySQLError
	var name *net.DNSError
	var network *net.OpError
	var file *fs.PathError
	switch {
	case err == nil, errors.Is(err, context.Canceled), domain.Is(err, domain.CodeInvalid):
		return ""
	case isBusy(err):
		return "another process has locked its file"
	case isFull(err):
		return "its disk is full"
	case errors.As(err, &my) && my.Number == myTooManyConns:
		return "it has too many connections"
	case errors.As(err, &my) && isUnavailable(err):
		return "it is read-only or not ready for queries"
	case errors.As(err, &name):
		return "the name of its host is not found"
	case errors.Is(err, errOtherWriter):
		return "it is a server of a cluster that the other nodes do not write through"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "its host refuses connections"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "it does not answer in time"
	case errors.As(err, &file): // a number of the system's is a net.Error, too
		return ""
	case isBroken(err):
		return "it cannot be reached, or breaks connections off"
	default:
		return ""
	}
}

func isFull(err error) bool {
	var lite *sqlite.Error
	var my *mysql.MySQLError
	return errors.As(err, &lite) && lite.Code()&0xff == sqlitelib.SQLITE_FULL ||
		errors.As(err, &my) && (my.Number == myDiskFull || my.Number == myTableFull) || errors.Is(err, syscall.ENOSPC)
}
