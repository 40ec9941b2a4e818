package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"
	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Error numbers of MySQL and MariaDB.
const (
	MySQLDuplicateEntry = 1062
	myDiskFull          = 1021
	myTableFull         = 1114
	myUnknownCommand    = 1047 // Galera: this node is not ready for queries
	myServerShutdown    = 1053
	myUnknownVariable   = 1193
	myLockWaitTimeout   = 1205
	myDeadlock          = 1213
	myReadOnlyOption    = 1290
	myQueryInterrupted  = 1317
	myReadOnlyTx        = 1792
	myReadOnlyMode      = 1836
	myTooManyConns      = 1040
	myTooManyOfUser     = 1203
	myUserLimit         = 1226 // max_user_connections of the account
	mySessionKilled     = 3169 // MySQL
	myConnectionKilled  = 1927 // MariaDB
	myStatementTimedOut = 1969 // MariaDB
	mySilentTooLong     = 4031 // MySQL: wait_timeout has ended the connection
	myErrorDuringCommit = 1180 // Galera: the group was lost
	myOffline           = 3032 // group replication: the server has left it
	myHookFailed        = 3100 // group replication: the group was lost
	myRolledBack        = 3101 // group replication: the group refused it, or was lost
	myNotConsistent     = 3796 // group replication, and the three that follow: the server does not have what the group has
)

// unclear are answers to a COMMIT after which a cluster may have it or not. 1213,
// which no server by itself gives to a COMMIT, is mostly a refusal of the group's, and
// can also be what is said of a connection to it that broke.
var unclear = map[uint16]bool{myDeadlock: true, myUnknownCommand: true, myErrorDuringCommit: true, myHookFailed: true, myRolledBack: true}

// Translate turns what a database says into an error with a domain code, once,
// at the store's wall. step is two to four words.
func Translate(step string, err error) error {
	if err == nil {
		return nil
	}
	var known *domain.Error
	switch {
	case errors.As(err, &known):
		return fmt.Errorf("%s: %w", step, err)
	case errors.Is(err, gorm.ErrRecordNotFound), errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("%s: %w", step, errNotFound(step))
	case IsDuplicate(err):
		return domain.Errorf(domain.CodeConflict, "%s: exists already: %w", step, err)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", step, err)
	case isFull(err):
		return domain.Errorf(domain.CodeUnavailable, "%s: %w: %w", step, domain.ErrDiskFull, err)
	case isContended(err):
		return domain.Errorf(domain.CodeUnavailable, "%s: %w: %w", step, domain.ErrContended, err)
	case isUnavailable(err), errors.Is(err, context.DeadlineExceeded):
		return domain.Errorf(domain.CodeUnavailable, "%s: the database does not answer: %w", step, err)
	default:
		return fmt.Errorf("%s: %w", step, err)
	}
}

// errNotFound says for people what a step has looked for in vain: its own name
// is for our logs.
func errNotFound(step string) error {
	what, found := strings.CutPrefix(step, "find ")
	if !found {
		what = "object"
	}
	return domain.Errorf(domain.CodeNotFound, "there is no such %s", spoken(what))
}

// spoken is what people call an execution.
func spoken(what string) string {
	return strings.Replace(what, "execution", "run", 1)
}

// NotFound is the error of a noun that is not there, with CodeNotFound.
func NotFound(what string, id fmt.Stringer) error {
	return domain.Errorf(domain.CodeNotFound, "there is no %s %s", spoken(what), id)
}

// NameTaken says of a violated unique key which name it holds; other errors stay.
func NameTaken(err error, what, name string) error {
	if !IsDuplicate(err) {
		return err
	}
	article := "a"
	if strings.ContainsAny(what[:1], "aeiou") {
		article = "an"
	}
	return domain.Errorf(domain.CodeConflict, "there is %s %s named %q already", article, what, name)
}

// IsDuplicate reports a violated primary or unique key.
func IsDuplicate(err error) bool {
	var my *mysql.MySQLError
	if errors.As(err, &my) {
		return my.Number == MySQLDuplicateEntry
	}
	var lite *sqlite.Error
	if errors.As(err, &lite) {
		return lite.Code() == sqlitelib.SQLITE_CONSTRAINT_UNIQUE || lite.Code() == sqlitelib.SQLITE_CONSTRAINT_PRIMARYKEY
	}
	return errors.Is(err, gorm.ErrDuplicatedKey)
}

// IsTransient reports a fault after which the same transaction may well
// succeed: the database undid it, or the connection is gone.
func IsTransient(err error) bool {
	var my *mysql.MySQLError
	if errors.As(err, &my) {
		switch my.Number {
		case myLockWaitTimeout, myServerShutdown, myConnectionKilled, mySilentTooLong,
			myReadOnlyOption, myReadOnlyTx, myReadOnlyMode, myOffline:
			return true
		}
		return unclear[my.Number] || my.Number >= myNotConsistent && my.Number <= myNotConsistent+3
	}
	return isBusy(err) || isBroken(err)
}

// isContended reports that the database undid a transaction for another one.
func isContended(err error) bool {
	var my *mysql.MySQLError
	return errors.As(err, &my) && my.Number == myDeadlock
}

// isBusy reports that SQLite could not get its lock within the busy timeout.
func isBusy(err error) bool {
	var lite *sqlite.Error
	return errors.As(err, &lite) && (lite.Code()&0xff == sqlitelib.SQLITE_BUSY || lite.Code()&0xff == sqlitelib.SQLITE_LOCKED)
}

// isBroken reports a connection that died or could not be made.
func isBroken(err error) bool {
	var network net.Error
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, sql.ErrConnDone) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.As(err, &network) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled)
}

func isUnavailable(err error) bool {
	var my *mysql.MySQLError
	if errors.As(err, &my) {
		switch my.Number {
		case myTooManyConns, myTooManyOfUser, myUserLimit, mySessionKilled, myQueryInterrupted, myStatementTimedOut:
			return true
		}
	}
	return IsTransient(err)
}
