package crashpoint

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

type stageSetup struct {
	database, dir, name string
	admin, worker       string // programs
	server              lab.Server
}

// stage is one fleet: admin nodes, an executor and a receiver of webhooks.
// Cells are played on it one after the other.
type stage struct {
	stageSetup
	fleet    *lab.Fleet
	executor string // id
	token    string
	current  *lab.Process // worker
	journals int          // folders that workers had
	jobs     int

	hook *httptest.Server
	mu   sync.Mutex
	told map[string]time.Time // guarded by mu: dedupe key of a webhook → when it came first
}

func openStage(ctx context.Context, setup stageSetup) (s *stage, err error) {
	s = &stage{stageSetup: setup, told: map[string]time.Time{}}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return s, err
	}
	s.hook = httptest.NewServer(http.HandlerFunc(s.webhook))
	dsn, nodes := "sqlite:"+filepath.Join(s.dir, "carillon.db"), 1
	if s.database != sqlite {
		db, err := lab.CreateDatabase(ctx, s.server, s.name)
		if err != nil {
			return s, err
		}
		user, err := db.User(ctx, s.name, "")
		if err != nil {
			return s, err
		}
		dsn, nodes = "mysql:"+user, 2
	}
	s.fleet, err = lab.NewFleet(lab.Options{
		Dir: s.dir, Binary: s.admin, DSN: func(int) string { return dsn },
		Env:   func(int) []string { return []string{"CARILLON_FAILPOINTS=@" + s.points("admin")} },
		Flags: func(int) []string { return []string{"--webhook-allow", "127.0.0.0/8"} },
	})
	if err != nil {
		return s, err
	}
	for range nodes {
		if _, err := s.fleet.AddAdmin(ctx); err != nil {
			return s, err
		}
	}
	if s.executor, s.token, err = s.fleet.Admins[0].API.MakeExecutor(ctx, "worker"); err != nil {
		return s, err
	}
	return s, s.startWorker(ctx, true)
}

// points is the file that arms failpoints of a kind of process.
func (s *stage) points(kind string) string { return filepath.Join(s.dir, kind+".points") }

// arm sets failpoints of "admin" or "worker" processes; they act once.
func (s *stage) arm(kind, setting string) error {
	temporary := s.points(kind) + ".new"
	if err := os.WriteFile(temporary, []byte(setting), 0o600); err != nil {
		return err
	}
	_ = os.Remove(s.points(kind) + ".done")
	return os.Rename(temporary, s.points(kind))
}

// acted reports whether what was armed has acted.
func (s *stage) acted(kind string) bool {
	_, err := os.Stat(s.points(kind) + ".done")
	return err == nil
}

func (s *stage) disarm() {
	for _, kind := range []string{"admin", "worker"} {
		_ = os.Remove(s.points(kind))
		_ = os.Remove(s.points(kind) + ".done")
	}
}

func (s *stage) witness() string { return filepath.Join(s.dir, "witness.jsonl") }

// startWorker starts the executor: with a new journal folder, or with that of
// the process before. It returns when every living node has a session with it.
func (s *stage) startWorker(ctx context.Context, newJournal bool) (err error) {
	if newJournal {
		s.journals++
	}
	var addresses []string
	for _, a := range s.fleet.Admins {
		addresses = append(addresses, a.Wire)
	}
	s.current, err = s.fleet.StartExecutor(lab.Command{
		Name: "worker", Dir: s.dir, Program: s.worker,
		Env: []string{"CARILLON_EXECUTOR_TOKEN=" + s.token, "CARILLON_FAILPOINTS=@" + s.points("worker")},
		Args: []string{"-addr", strings.Join(addresses, ","), "-witness", s.witness(),
			"-journal", filepath.Join(s.dir, fmt.Sprintf("journal-%d", s.journals))},
	})
	if err != nil {
		return err
	}
	return s.connected(ctx)
}

// connected waits until every living node has a session.
func (s *stage) connected(ctx context.Context) error {
	return lab.Until(ctx, time.Minute, "the worker is connected to every node", func(ctx context.Context) error {
		for _, a := range s.living() {
			m, err := a.API.Metrics(ctx)
			if err != nil {
				return err
			}
			if m["carillon_sessions"] < 1 {
				return fmt.Errorf("%s has no session", a.Name)
			}
		}
		return nil
	})
}

func (s *stage) living() (out []*lab.Admin) {
	for _, a := range s.fleet.Admins {
		if a.Process() != nil && !a.Process().Ended() {
			out = append(out, a)
		}
	}
	return out
}

// ask asks a living node; what fails because a node dies is asked again.
func ask[T any](ctx context.Context, s *stage, what string, one func(context.Context, *lab.API) (apiclient.Doc[T], error)) (answer apiclient.Doc[T], err error) {
	err = lab.Until(ctx, 30*time.Second, what, func(ctx context.Context) (err error) {
		nodes := s.living()
		if len(nodes) == 0 {
			return errors.New("no admin node is up")
		}
		answer, err = one(ctx, nodes[0].API)
		return err
	})
	return answer, err
}

func (s *stage) webhook(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := r.Header.Get("Carillon-Dedupe-Key")
	if _, known := s.told[key]; !known {
		s.told[key] = time.Now()
	}
	w.WriteHeader(http.StatusNoContent)
}

// run is what the API says of one.
type run struct {
	ID, State, Reason, Message, Error        string
	FireAt, GrantedAt, StartedAt, FinishedAt time.Time
	Attempt                                  int
	Fence                                    int64
	Attempts                                 []struct {
		Number int
		State  string
	}
}

func (s *stage) find(ctx context.Context, id string) (run, error) {
	answer, err := ask(ctx, s, "run "+id, func(ctx context.Context, api *lab.API) (apiclient.Doc[apiclient.RunDetail], error) {
		return api.GetRun(ctx, id)
	})
	if err != nil {
		return run{}, err
	}
	r, err := apiclient.As[run](answer)
	return r.Value, err
}

func (s *stage) runsOf(ctx context.Context, job string) ([]run, error) {
	list, err := ask(ctx, s, "runs of job "+job, func(ctx context.Context, api *lab.API) (apiclient.Doc[apiclient.PageRun], error) {
		return api.ListRuns(ctx, apiclient.ListRunsParams{Limit: 100, JobID: job})
	})
	return runsIn(list, err)
}

// runsIn reads the items of an answer.
func runsIn[T any](answer apiclient.Doc[T], err error) ([]run, error) {
	if err != nil {
		return nil, err
	}
	list, err := apiclient.As[struct{ Items []run }](answer)
	return list.Value.Items, err
}

func terminal(state string) bool {
	switch state {
	case "due", "offered", "running", "cancelling", "retry_wait":
		return false
	}
	return true
}

// sighting mirrors the worker's.
type sighting struct {
	Run     int64
	Fence   int64
	Attempt int
	At      int64
	End     bool
}

func (s sighting) at() time.Time { return time.UnixMicro(s.At) }

// seen returns what handlers wrote down of a run: its starts and its ends.
func (s *stage) seen(id string) (starts, ends []sighting, err error) {
	raw, err := os.ReadFile(s.witness())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(raw)); lines.Scan(); {
		var line sighting
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			continue // torn by the end of its process
		}
		switch {
		case strconv.FormatInt(line.Run, 10) != id:
		case line.End:
			ends = append(ends, line)
		default:
			starts = append(starts, line)
		}
	}
	return starts, ends, nil
}

// heal brings everything back that a cell has ended.
func (s *stage) heal(ctx context.Context) error {
	s.disarm()
	for _, a := range s.fleet.Admins {
		if a.Process().Ended() {
			if err := a.Start(ctx); err != nil {
				return err
			}
		}
	}
	if s.current.Ended() {
		return s.startWorker(ctx, true)
	}
	return s.connected(ctx)
}

func (s *stage) close() {
	if s.fleet != nil {
		if s.current != nil && !s.current.Ended() {
			s.current.Kill() // it owes nothing that anybody waits for
		}
		s.fleet.Close()
	}
	if s.hook != nil {
		s.hook.Close()
	}
}
