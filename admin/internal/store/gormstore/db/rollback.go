package db

import (
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Cluster values of the history.
const (
	HistoryEpoch = "history_epoch" // a number; missing = 0
	HistoryDoubt = "history_doubt" // domain.Doubt of who found a rollback or put a backup back; missing = nobody
)

const (
	// maxCommits is how many of the last commits are looked for after a
	// reconnect. Commits that ran side by side may have been lost in any order.
	maxCommits = 64
	// commitAge bounds how old a commit is that is looked for, and how old its
	// execution was then: nothing is deleted until RetentionGrace after its end, and the
	// last third of that is for clocks that differ.
	commitAge = domain.RetentionGrace / 3
)

// rollbackDetector is what this process knows of the database's history. Only what is durable
// counts: others' commits are visible a moment before they are on disk, so a
// mark is taken from a transaction that read it and then committed itself.
type rollbackDetector struct {
	mu      sync.Mutex
	known   domain.History      // guarded by mu
	held    *domain.Rollback    // guarded by mu
	commits map[int]knownCommit // guarded by mu: a ring
	next    int                 // guarded by mu: of the ring
}

// knownCommit is one move of an execution whose commit was answered.
type knownCommit struct {
	id      domain.ExecutionID
	version int64
	at      time.Time
}

func newRollbackDetector() *rollbackDetector {
	return &rollbackDetector{commits: map[int]knownCommit{}}
}

// Remember takes what is durable.
func (p *rollbackDetector) Remember(h domain.History) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held != nil || !p.known.Before(h) {
		return
	}
	if h.Epoch > p.known.Epoch {
		clear(p.commits) // an operator has accepted that they may be gone
	}
	p.known = h
}

// Note remembers a move of a transaction that was committed. It reports whether:
// an execution that is so old that retention may delete it proves nothing.
func (p *rollbackDetector) Note(id domain.ExecutionID, version int64) bool {
	now := time.Now()
	if now.Sub(domain.IDTime(int64(id))) >= commitAge {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commits[p.next] = knownCommit{id, version, now}
	p.next = (p.next + 1) % maxCommits
	return true
}

// historyMarks is what a look at the database is compared with; it is taken before
// the statement is sent.
type historyMarks struct {
	Known   domain.History
	commits []knownCommit
}

// Marks leaves out the commits, which are for new connections.
func (p *rollbackDetector) Marks() historyMarks {
	p.mu.Lock()
	defer p.mu.Unlock()
	return historyMarks{Known: p.known}
}

func (p *rollbackDetector) marksAndCommits() historyMarks {
	b := p.Marks()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, w := range p.commits {
		if time.Since(w.at) > commitAge {
			delete(p.commits, i)
			continue
		}
		b.commits = append(b.commits, w)
	}
	return b
}

// Judge compares what the database says with what was known.
func (p *rollbackDetector) Judge(b historyMarks, found domain.History, doubted domain.Doubt, lost int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held != nil {
		if found.Epoch > p.held.Seen.Epoch { // accepted
			p.held, p.known = nil, found
			clear(p.commits)
		}
		return
	}
	if found.Epoch < p.known.Epoch && b.Known.Epoch < p.known.Epoch {
		return // an operator accepted while this look was on its way: later ones decide
	}
	if found.Epoch > b.Known.Epoch {
		lost = 0 // accepted, and this node has not noticed that anything was lost
	}
	told := doubted != domain.Doubt{} && doubted.Epoch >= found.Epoch
	if lost == 0 && !told && !found.Before(b.Known) {
		return
	}
	seen := b.Known
	if seen.Before(doubted.History) {
		seen = doubted.History
	}
	p.held = &domain.Rollback{Seen: seen, Found: found, Lost: lost, Told: told && lost == 0 && !found.Before(b.Known), Backup: doubted.Backup, At: time.Now()}
}

func (p *rollbackDetector) RolledBack() (r domain.Rollback, held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == nil {
		return r, false
	}
	return *p.held, true
}

// refuse is what transactions that could start something hear.
func (p *rollbackDetector) refuse() error {
	if r, held := p.RolledBack(); held {
		return domain.Errorf(domain.CodeRolledBack, "the database has lost commits: %s; an operator has to decide (carillon cluster accept-history)", r.Reason())
	}
	return nil
}

// HistoryColumns are the epoch, the doubt and the mark.
func HistoryColumns() string {
	return clusterValue(HistoryEpoch, "0") + ", " + clusterValue(HistoryDoubt, "") +
		", COALESCE((SELECT SUM(beats) FROM node_states), 0) + COALESCE((SELECT SUM(term) FROM partition_leases), 0)"
}

// HistoryOf reads what HistoryColumns select.
func HistoryOf(epoch, doubt string, mark int64) (found domain.History, doubted domain.Doubt, err error) {
	found.Mark = mark
	if found.Epoch, err = strconv.ParseInt(epoch, 10, 64); err != nil {
		return found, doubted, fmt.Errorf("read the history's epoch: %w", err)
	}
	return found, domain.ParseDoubt(doubt), nil
}

// movedTo is a condition for executions that have moved at least as far as
// the commits say.
func movedTo(list []knownCommit) string {
	terms := make([]string, len(list))
	for i, w := range list {
		terms[i] = fmt.Sprintf("id = %d AND version >= %d", w.id, w.version)
	}
	return strings.Join(terms, " OR ")
}

// distinct leaves of each execution the commit that went farthest.
func distinct(list []knownCommit) []knownCommit {
	farthest := map[domain.ExecutionID]knownCommit{}
	for _, w := range list {
		if w.version >= farthest[w.id].version {
			farthest[w.id] = w
		}
	}
	out := make([]knownCommit, 0, len(farthest))
	for _, w := range farthest {
		out = append(out, w)
	}
	return out
}

// Guard begins every transaction that could start something: not where commits were
// lost, and not through a server that may not be the writer. On MySQL the
// connection was looked at when it was made; a file has no connections that end.
func (t *Tx) Guard() error {
	if b := t.DB.Rollbacks.Marks(); t.Dialect.Name() == "sqlite" && b.Known != (domain.History{}) {
		found, doubted, err := t.History()
		if err != nil {
			return err
		}
		t.DB.Rollbacks.Judge(b, found, doubted, 0)
	}
	if err := t.DB.Rollbacks.refuse(); err != nil {
		return err
	}
	return t.guardWriter()
}

// meet compares a new connection's database with what was known, before
// anything is done with it.
func (p *rollbackDetector) meet(ctx context.Context, conn driver.Conn) error {
	b := p.marksAndCommits()
	if b.Known == (domain.History{}) && len(b.commits) == 0 {
		return nil // a new node knows nothing; the tables may not exist yet
	}
	row, err := rawRow(ctx, conn, "SELECT "+HistoryColumns())
	if err != nil {
		return fmt.Errorf("read history: %w", err)
	}
	mark, err := strconv.ParseInt(row[2], 10, 64)
	if err != nil {
		return fmt.Errorf("read history: %w", err)
	}
	found, doubted, err := HistoryOf(row[0], row[1], mark)
	if err != nil {
		return err
	}
	lost := 0
	if list := distinct(b.commits); len(list) > 0 {
		row, err := rawRow(ctx, conn, "SELECT COUNT(*) FROM executions FORCE INDEX (PRIMARY) WHERE "+movedTo(list))
		if err != nil {
			return fmt.Errorf("look for the last commits: %w", err)
		}
		there, err := strconv.Atoi(row[0])
		if err != nil {
			return fmt.Errorf("look for the last commits: %w", err)
		}
		lost = len(list) - there
	}
	p.Judge(b, found, doubted, lost)
	return nil
}

// rawRow reads one row on a connection that no pool has yet.
func rawRow(ctx context.Context, conn driver.Conn, statement string) (out []string, err error) {
	queryer, ok := conn.(driver.QueryerContext)
	if !ok {
		return nil, fmt.Errorf("the driver cannot ask directly")
	}
	rows, err := queryer.QueryContext(ctx, statement, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = cmp.Or(err, rows.Close()) }()
	values := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(values); err != nil {
		return nil, err
	}
	for _, v := range values {
		if raw, ok := v.([]byte); ok {
			v = string(raw)
		}
		out = append(out, fmt.Sprint(v))
	}
	return out, nil
}

// RememberHistory, KnownHistory and RolledBack do not ask the database.
func (s *DB) RememberHistory(h domain.History) { s.Rollbacks.Remember(h) }

// KnownHistory is store.History's.
func (s *DB) KnownHistory() domain.History { return s.Rollbacks.Marks().Known }

// RolledBack is store.History's.
func (s *DB) RolledBack() (domain.Rollback, bool) { return s.Rollbacks.RolledBack() }

// History reads what proves, inside the transaction, which commits the database has.
func (t *Tx) History() (found domain.History, doubted domain.Doubt, err error) {
	var epoch, doubt string
	var mark int64
	if err = t.SQL.QueryRowContext(t.Ctx, "SELECT "+HistoryColumns()).Scan(&epoch, &doubt, &mark); err != nil {
		return found, doubted, fmt.Errorf("read history: %w", err)
	}
	return HistoryOf(epoch, doubt, mark)
}
