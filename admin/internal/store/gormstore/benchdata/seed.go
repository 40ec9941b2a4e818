package benchdata

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// Seed says which jobs and runs Plant makes. The same seed makes the same rows, but for ids.
type Seed struct {
	Tenant    domain.TenantID
	Executors []domain.ExecutorID // that exist
	Jobs      int
	// Until is when the runs end. They begin 30 days before it. 10,000 jobs have a million runs,
	// and fewer jobs have as many each.
	Until time.Time
	// NewID makes ids of jobs.
	NewID func() int64
}

// seedDays is how many days of runs there are.
const seedDays = 30

// rhythms say how many jobs of 10,000 fire how often. Together they fire a million times in 30 days.
var rhythms = []struct {
	of    int
	every time.Duration
	cron  func(minute, hour, day int) string
}{
	{40, 5 * time.Minute, func(m, _, _ int) string { return fmt.Sprintf("%d/5 * * * *", m%5) }},
	{400, time.Hour, func(m, _, _ int) string { return fmt.Sprintf("%d * * * *", m) }},
	{1500, 6 * time.Hour, func(m, h, _ int) string { return fmt.Sprintf("%d %d/6 * * *", m, h%6) }},
	{6000, 24 * time.Hour, func(m, h, _ int) string { return fmt.Sprintf("%d %d * * *", m, h) }},
	{2060, 7 * 24 * time.Hour, func(m, h, d int) string { return fmt.Sprintf("%d %d * * %d", m, h, d) }},
}

var (
	seedOwners = []string{"billing", "catalogue", "data", "fraud", "growth", "identity", "invoicing", "logistics", "mail", "payments", "platform", "search", "stock", "support", "tax"}
	seedErrors = []string{
		"connect to ledger.db.example:5432: connection refused", "smtp.mail.example: 451 4.7.1 try again later", "the supplier answers 503: try again later",
		"read /data/in/orders.csv: no such file", "invoice 48213: the total is negative", "deadlock found when trying to get lock", "certificate has expired", "row 4812: 12,90 is no price",
	}
)

// sown is a job with what its runs look like.
type sown struct {
	job     domain.Job
	every   time.Duration
	first   time.Duration // of its fires, after the begin
	next    time.Time
	typical time.Duration
	late    time.Duration
	fails   float64
	broken  time.Time // from when on all of its runs fail; zero: never
}

// Plant writes the jobs and runs of a seed, and the ends of the runs for the statistics. They count
// when CountEnds is called until nothing is left. It returns the jobs.
func Plant(ctx context.Context, s *db.DB, seed Seed) ([]domain.Job, error) {
	begin := seed.Until.Add(-seedDays * 24 * time.Hour).UTC().Truncate(time.Hour)
	field := make([]sown, seed.Jobs)
	jobs := make([]domain.Job, seed.Jobs)
	for i := range field {
		field[i] = sow(&seed, i, begin)
		jobs[i] = field[i].job
	}
	if err := LoadJobs(ctx, s, jobs, func(i int) time.Time { return field[i].next }); err != nil {
		return nil, err
	}
	type fire struct {
		at  int64 // seconds since 1970
		job int32
	}
	var fires []fire
	for i := range field {
		for at := begin.Add(field[i].first); at.Before(seed.Until.Add(-time.Hour)); at = at.Add(field[i].every) {
			fires = append(fires, fire{at.Unix(), int32(i)})
		}
	}
	slices.SortFunc(fires, func(a, b fire) int { return int(a.at - b.at) })
	var now time.Time
	ids := domain.NewIDSource(domain.ImportNode, func() time.Time { return now })
	random := rand.New(rand.NewPCG(10_000, 1_000_000))
	for chunk := range slices.Chunk(fires, 5*loadChunk) {
		rows, attempts := make([]*record.ExecutionRow, 0, len(chunk)), []*record.AttemptRow{}
		for _, f := range chunk {
			now = time.Unix(f.at, 0).UTC()
			e, earlier := field[f.job].run(random, now)
			e.ID = domain.ExecutionID(ids.Next())
			rows = append(rows, record.ToExecutionRow(&e))
			if earlier != nil {
				earlier.ExecutionID = e.ID
				attempts = append(attempts, record.ToAttemptRow(earlier))
			}
		}
		err := s.Run(ctx, "plant runs", func(t *db.Tx) error {
			if err := record.ExecutionTable.Insert(t, rows); err != nil {
				return err
			}
			if err := record.AttemptTable.Insert(t, attempts); err != nil {
				return err
			}
			return record.InsertEndsByHour(t, rows)
		})
		if err != nil {
			return nil, err
		}
	}
	return jobs, nil
}

// sow makes a job. Of 100 jobs, two are broken, one fails now and then, two start late, three are
// paused, and one has a schedule that has ended.
func sow(seed *Seed, i int, begin time.Time) sown {
	r := rand.New(rand.NewPCG(uint64(i), 7))
	rhythm, rank := 0, i*10_000/seed.Jobs
	for rank >= rhythms[rhythm].of && rhythm < len(rhythms)-1 {
		rank -= rhythms[rhythm].of
		rhythm++
	}
	of := rhythms[rhythm]
	minute, hour, day := r.IntN(60), r.IntN(24), r.IntN(7)
	s := sown{
		every: of.every, typical: time.Duration(math.Exp(3+6*r.Float64())) * time.Millisecond,
		first: (time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + time.Duration(day)*24*time.Hour) % of.every,
	}
	for s.next = begin.Add(s.first); s.next.Before(seed.Until); s.next = s.next.Add(s.every) {
	}
	id := domain.JobID(seed.NewID())
	owner := seedOwners[r.IntN(len(seedOwners))]
	s.job = domain.Job{
		ID: id, TenantID: seed.Tenant, Executor: seed.Executors[i%len(seed.Executors)], Partition: domain.PartitionOf(id), Source: domain.SourceConsole,
		Revision: 1, State: domain.JobEnabled, CreatedBy: "seed", Spec: domain.JobSpec{
			Name: fmt.Sprintf("%s-%05d", owner, i), Description: "Made to measure", Handler: fmt.Sprintf("handle-%02d", i%40), Blocking: domain.BlockSerial,
			Routing: domain.RouteRoundRobin, OnLost: domain.OnLostAuto, Misfire: domain.Misfire{Policy: domain.MisfireOnceNow},
			Labels: map[string]string{"team": owner, "tier": []string{"gold", "silver", "bronze"}[r.IntN(3)], "env": "prod"},
			Owner:  domain.Owner{Name: owner, Email: owner + "@example.com"}, Timeout: time.Hour,
			Schedule: domain.ScheduleSpec{Kind: domain.ScheduleCron, Expr: of.cron(minute, hour, day), Zone: "UTC"},
			Retry:    domain.Retry{MaxAttempts: 2, Delay: time.Second},
		},
	}
	switch (i * 7) % 100 {
	case 0, 1:
		s.broken = seed.Until.Add(-s.every - time.Duration(1+r.IntN(100))*time.Hour)
	case 2:
		s.fails = 0.2
	case 3, 4:
		s.late = time.Duration(20+r.IntN(100)) * time.Second
	case 5, 6, 7:
		s.job.State, s.next = domain.JobPaused, domain.Never
	case 8:
		s.next = domain.Never
	default:
		s.fails = 0.002
	}
	return s
}

// run makes one run, and its first attempt if there were two.
func (s *sown) run(r *rand.Rand, fire time.Time) (domain.Execution, *domain.Attempt) {
	e := domain.Execution{
		TenantID: s.job.TenantID, JobID: s.job.ID, Revision: 1, Executor: s.job.Executor, Partition: s.job.Partition, Cause: domain.CauseSchedule,
		FireAt: fire, PlannedAt: fire.Add(-time.Second), NotBefore: fire, State: domain.Succeeded, Attempt: 1, Fence: 1, MaxAttempts: 2,
	}
	begin := fire.Add(s.late + time.Duration(r.IntN(40))*time.Millisecond)
	if s.late > 0 && r.IntN(10) == 0 {
		begin = fire
	}
	took := time.Duration(float64(s.typical) * math.Exp(0.35*r.NormFloat64())).Round(time.Microsecond)
	at := func(begin time.Time) {
		e.OfferedAt, e.GrantedAt, e.StartedAt, e.Took = begin, begin.Add(2*time.Millisecond), begin.Add(4*time.Millisecond), took
		e.FinishedAt = e.StartedAt.Add(took)
	}
	at(begin)
	bad := !s.broken.IsZero() && fire.After(s.broken)
	var earlier *domain.Attempt
	if bad || r.Float64() < s.fails {
		bad = bad || r.IntN(2) == 0
		e.State, e.Reason, e.ErrorKind, e.Error = domain.Failed, domain.ReasonHandlerFailed, "error", seedErrors[int(s.job.ID)%len(seedErrors)]
		earlier = new(e.CurrentAttempt())
		e.Attempt, e.Fence = 2, 2
		at(e.FinishedAt.Add(time.Second))
		if !bad {
			e.State, e.Reason, e.ErrorKind, e.Error = domain.Succeeded, "", "", ""
		}
	}
	return e, earlier
}
