package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/testenv"
	"github.com/carillon-sched/carillon/internal/testenv/proxy"
)

const (
	// publishers are how many jobs publish once a second, and poisoned how many do
	// so to a stream that is not there.
	publishers = 30
	poisoned   = 3
	// redriven are at most so many dead letters.
	redriven = 30
)

// f29 breaks the way to a message broker, under a steady load of jobs and of
// messages: requests and answers are lost at random, and for a time all of them. A
// message that the broker may have is sent again, and has to be there once; one that
// nothing takes is a dead letter, which is delivered when it is redriven.
func f29(ctx context.Context, s *stage) error {
	server, err := testenv.StartRedis()
	if err != nil {
		return &unableError{err.Error()}
	}
	s.defers(server.Close)
	path, err := proxy.New(server.Addr, proxy.Options{})
	if err != nil {
		return err
	}
	s.defers(path.Close)
	path.Delay(40 * time.Millisecond) // so that something is always on its way
	err = s.open(ctx, fleetPlan{admins: 2, executors: 2, env: func(int) []string { return []string{"CARILLON_CONNECTION_ALLOW=127.0.0.0/8"} }})
	if err != nil {
		return err
	}
	m := &messages{s: s, redis: server, jobs: map[string]bool{}}
	if err := m.begin(ctx, path.Addr()); err != nil {
		return err
	}
	if err := s.load(ctx, s.rate()/2); err != nil {
		return err
	}
	began, resets := time.Now(), s.rounds(300, 30)
	for range resets {
		if err := wait(ctx, 800*time.Millisecond+rand.N(time.Second)); err != nil {
			return err
		}
		path.Reset()
	}
	if err := s.faults("reset", "broker", began, time.Now(), resets); err != nil {
		return err
	}
	err = s.fault("silence", "broker", func() error {
		path.Silence()
		err := wait(ctx, 12*time.Second)
		path.Heal()
		return err
	})
	if err != nil {
		return err
	}
	if err := wait(ctx, 5*time.Second); err != nil {
		return err
	}
	s.unjudged = m.jobs
	j, err := s.finish(ctx)
	if j == nil {
		return err
	}
	found, wrong := m.judge(ctx)
	s.result.Figures["messages"], s.result.Figures["sentAgain"], s.result.Figures["answersLost"] = found.sent, found.again, found.lost
	s.figure("%d messages, each there once; %d took more than one attempt, and %d of these were there before the last one; %d dead letters, %d redriven twice and there once; lateness of the other jobs %s",
		found.sent, found.again, found.lost, found.dead, found.redriven, j.inside)
	return errors.Join(err, wrong)
}

// messages are those of the jobs that publish.
type messages struct {
	s     *stage
	redis *testenv.Broker
	jobs  map[string]bool // that publish; true
	dead  []string        // those of them whose stream is not there
}

// begin makes a stream, a connection, and jobs that publish.
func (m *messages) begin(ctx context.Context, address string) error {
	if _, err := askRedis(ctx, m.redis, "XGROUP CREATE orders readers $ MKSTREAM"); err != nil {
		return err
	}
	_, err := m.s.tenant.api(0).CreateConnection(ctx, apiclient.ConnectionWrite{
		Name: "orders", Spec: apiclient.ConnectionSpec{Broker: "redis", Addresses: []string{address}},
		Secrets: &apiclient.ConnectionSecrets{Password: m.redis.Password},
	})
	if err != nil {
		return err
	}
	start := time.Now().Truncate(time.Second)
	for i := range publishers + poisoned {
		stream, attempts := "orders", 100
		if i >= publishers {
			stream = "nowhere"
		}
		j := job{
			name: fmt.Sprintf("publish-%02d", i), handler: "publish", kind: "fixed_rate", every: time.Second, maxAttempts: attempts,
			startAt: start.Add(time.Duration(i) * time.Second / (publishers + poisoned)).Truncate(time.Millisecond),
			input:   map[string]any{"connection": "orders", "stream": stream, "body": map[string]any{"run": "{{run.id}}"}},
		}
		body := j.withDefaults().body("")
		body.Executor = apiclient.ExecutorChoice{Name: "carillon"}
		id, err := m.s.tenant.api(0).MakeJob(ctx, body)
		if err != nil {
			return fmt.Errorf("create job %s: %w", j.name, err)
		}
		m.jobs[id] = true
		m.s.firing.Store(id, m.s.tenant)
		if i >= publishers {
			m.dead = append(m.dead, id)
		}
	}
	return nil
}

// delivery is what became of messages.
type delivery struct{ sent, again, lost, dead, redriven int }

// judge compares the runs with what the broker has.
func (m *messages) judge(ctx context.Context) (d delivery, err error) {
	db, err := m.s.db.Open()
	if err != nil {
		return d, err
	}
	defer db.Close()
	there, err := m.read(ctx, "orders")
	if err != nil {
		return d, err
	}
	dead := map[string]bool{}
	for _, id := range m.dead {
		dead[id] = true
	}
	rows, err := db.QueryContext(ctx, "SELECT id, job_id, state, attempt FROM executions WHERE state <> 15")
	if err != nil {
		return d, err
	}
	defer rows.Close()
	var wrong problems
	var letters []string
	for rows.Next() {
		var id, jobID string
		var state, attempt int
		if err := rows.Scan(&id, &jobID, &state, &attempt); err != nil {
			return d, err
		}
		if !m.jobs[jobID] {
			continue
		}
		got := there[id]
		delete(there, id)
		switch {
		case dead[jobID]:
			d.dead++
			letters = append(letters, id)
			if state != 11 || len(got) > 0 {
				wrong.add("messages without a place that are no dead letters", "run %s is %s", id, stateName(state))
			}
		case state != 10:
			wrong.add("messages that were not delivered", "run %s is %s after %d attempts", id, stateName(state), attempt)
		case len(got) != 1:
			wrong.add("messages that are not there once", "run %s: %d times", id, len(got))
		default:
			d.sent++
			if attempt > 1 {
				d.again++
			}
			if got[0] < attempt {
				d.lost++ // an earlier attempt has brought it
			}
		}
	}
	if err := rows.Err(); err != nil {
		return d, err
	}
	for id := range there {
		wrong.add("messages of no run", "%s", id)
	}
	if d.sent == 0 || d.again == 0 || d.lost == 0 || d.dead == 0 {
		wrong.add("kinds of evidence missing", "%+v", d)
	}
	d.redriven, err = m.redrive(ctx, letters[:min(len(letters), redriven)])
	return d, errors.Join(wrong.err(), err)
}

// redrive makes the stream that was missing, and retries dead letters, twice each.
func (m *messages) redrive(ctx context.Context, letters []string) (n int, err error) {
	if _, err := askRedis(ctx, m.redis, "XGROUP CREATE nowhere readers $ MKSTREAM"); err != nil {
		return 0, err
	}
	for range 2 {
		for i, id := range letters {
			if _, err := m.s.tenant.api(i).RetryRun(ctx, id, apiclient.RetryRunParams{}, apiclient.RetryRunInputBody{}); err != nil {
				return 0, err
			}
		}
	}
	if err := m.s.ended(ctx, farFuture, time.Minute); err != nil {
		return 0, err
	}
	there, err := m.read(ctx, "nowhere")
	if err != nil {
		return 0, err
	}
	var wrong problems
	for _, id := range letters {
		if got := there[id]; len(got) != 1 {
			wrong.add("dead letters that are not there once", "run %s: %d times", id, len(got))
		}
		delete(there, id)
	}
	for id := range there {
		wrong.add("messages of no dead letter", "%s", id)
	}
	return len(letters), wrong.err()
}

// attemptsOf lists the id and the attempt of each message of a stream.
const attemptsOf = `EVAL "local out = {} for _, e in ipairs(redis.call('XRANGE', KEYS[1], '-', '+')) do local f = {} ` +
	`for i = 1, #e[2], 2 do f[e[2][i]] = e[2][i + 1] end ` +
	`out[#out + 1] = f['Carillon-Dedupe-Key'] .. ' ' .. f['Carillon-Attempt'] end return table.concat(out, ',')" 1 `

// read returns the attempts that have brought a message, by its id.
func (m *messages) read(ctx context.Context, stream string) (map[string][]int, error) {
	text, err := askRedis(ctx, m.redis, attemptsOf+stream)
	if err != nil {
		return nil, err
	}
	out := map[string][]int{}
	for entry := range strings.SplitSeq(text, ",") {
		id, number, ok := strings.Cut(entry, " ")
		if !ok {
			continue
		}
		attempt, err := strconv.Atoi(number)
		if err != nil {
			return nil, err
		}
		out[id] = append(out[id], attempt)
	}
	return out, nil
}
