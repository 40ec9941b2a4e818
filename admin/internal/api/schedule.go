package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/calendar"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/timing"
	"github.com/carillon-sched/carillon/schedule"
)

// Fire is one fire time.
type Fire struct {
	At       string `json:"at" format:"date-time" doc:"The fire time, in UTC"`
	Zoned    string `json:"zoned" doc:"The same instant with the offset of the schedule's zone"`
	RunAt    string `json:"runAt,omitempty" format:"date-time" doc:"When the run starts, where jitter puts it off"`
	Note     string `json:"note,omitempty" enum:"dst_gap,dst_overlap" doc:"A clock change moved it, or it falls into an hour that comes twice"`
	Excluded string `json:"excluded,omitempty" doc:"Why a calendar keeps it from running; absent: it runs"`
	// Exclusion says the same in parts, for those who speak another language.
	Exclusion *Exclusion `json:"exclusion,omitempty" doc:"The same in parts"`
	Clashes   *Clash     `json:"clashes,omitempty" doc:"Other jobs that fire then; of the first 20 fire times, if clashes are asked for"`
}

// Exclusion is what of a calendar keeps a fire time from running.
type Exclusion struct {
	Calendar calendar.CalendarRef `json:"calendar" doc:"The calendar that excludes it"`
	Kind     string               `json:"kind" enum:"holiday,weekend,blackout" doc:"What of the calendar does"`
	Date     string               `json:"date,omitempty" doc:"Of a holiday or weekend, in the calendar's zone"`
	Until    string               `json:"until,omitempty" format:"date-time" doc:"End of a blackout"`
	Name     string               `json:"name,omitempty" doc:"What the calendar calls the day or the window"`
}

// NextFires are the fire times to come.
type NextFires struct {
	Fires      []Fire `json:"fires" doc:"The fire times, in order"`
	NeverFires bool   `json:"neverFires" doc:"There is no fire to come"`
}

// Preview also says the schedule in words.
type Preview struct {
	Fires      []Fire        `json:"fires" doc:"The next fire times"`
	NeverFires bool          `json:"neverFires" doc:"It has no fire time from now on"`
	Text       web.Bilingual `json:"text" doc:"The schedule in words"`
	Warnings   []Warning     `json:"warnings" doc:"What its author probably does not mean"`
}

// Warning is something odd in a valid cron expression.
type Warning struct {
	Code string        `json:"code" enum:"never_fires,either_day,day_numbers,ignored_step,ignored_days,uneven_step,short_months" doc:"Stable name of the warning"`
	Text web.Bilingual `json:"text" doc:"The same for people"`
}

type nextFiresInput struct {
	ID      string `path:"id" doc:"Id of what the address names, a decimal string"`
	N       int    `query:"n" minimum:"1" maximum:"100" default:"10" doc:"How many fire times to compute"`
	From    string `query:"from" format:"date-time" doc:"Default: now"`
	Clashes bool   `query:"clashes" doc:"Count the other jobs that fire together with it"`
}

type previewInput struct {
	Body struct {
		Schedule ScheduleWrite `json:"schedule" doc:"The schedule to try"`
		N        int           `json:"n,omitempty" minimum:"1" maximum:"100" default:"10" doc:"How many fire times to compute"`
		From     *string       `json:"from,omitempty" format:"date-time" doc:"Default: now"`
		Clashes  bool          `json:"clashes,omitempty" doc:"Count the other jobs that fire together with it. A bound role counts jobs of its executors"`
		JobID    string        `json:"jobId,omitempty" maxLength:"20" doc:"With clashes: the job that is being edited, which is no other job"`
	}
}

func (js *jobs) registerSchedules(server *web.Server) {
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/jobs/{id}/next-fires", ID: "next-fires", Computes: true, Tag: "jobs",
		Summary: "A job's next fire times", Description: "As the schedule says, also while the job is paused.",
	}, js.nextFires)
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/schedules/preview", ID: "preview-schedule", Unaudited: "it changes nothing", Computes: true, Tag: "jobs",
		Summary: "Fire times of a schedule that is being written", Description: "A wrong cron expression gives 422 invalid_cron with its position.",
	}, js.previewSchedule)
}

func (js *jobs) nextFires(ctx context.Context, id auth.Identity, in *nextFiresInput) (*struct{ Body NextFires }, error) {
	v, err := web.ByID(ctx, id.Tenant, in.ID, js.store.FindJob)
	if err != nil {
		return nil, err
	}
	var r reader
	from := r.Instant("query.from", &in.From)
	plan := compile(&r, "schedule", &v.Spec.Schedule, timing.Seed(v.ID))
	if err := r.Err(); err != nil {
		return nil, err
	}
	out := NextFires{Fires: firesOf(&v.Spec.Schedule, plan, js.orNow(from), in.N)}
	out.NeverFires = neverRuns(out.Fires)
	if in.Clashes {
		err = js.clashes(ctx, id, out.Fires, v.ID)
	}
	return &struct{ Body NextFires }{out}, err
}

func (js *jobs) previewSchedule(ctx context.Context, id auth.Identity, in *previewInput) (*struct{ Body Preview }, error) {
	var r reader
	now := js.now()
	from := r.Instant("body.from", in.Body.From)
	spec := in.Body.Schedule.read(&r, "body.schedule", now)
	var err error
	if spec.Calendars, err = calendar.Choose(ctx, js.store, id.Tenant, &r.Reader, "body.schedule", in.Body.Schedule.Calendars); err != nil {
		return nil, err
	}
	but := web.OptionalID[domain.JobID](&r.Reader, "body.jobId", in.Body.JobID)
	plan := compile(&r, "body.schedule", &spec, "")
	if err := r.Err(); err != nil {
		return nil, err
	}
	out := Preview{Fires: firesOf(&spec, plan, js.orNow(from), in.Body.N), Text: textOf(plan), Warnings: warningsOf(plan)}
	out.NeverFires = neverRuns(out.Fires)
	if in.Body.Clashes {
		err = js.clashes(ctx, id, out.Fires, but)
	}
	return &struct{ Body Preview }{out}, err
}

func (js *jobs) orNow(t time.Time) time.Time {
	if t.IsZero() {
		return js.now()
	}
	return t
}

// compile asks the engine about a schedule; what is wrong is collected in r,
// and then there is none. The dialect that was found replaces "auto", so that
// later edits of the expression are read in the same one. seed is timing.Seed,
// or empty where there is no job yet.
func compile(r *reader, location string, s *domain.ScheduleSpec, seed string) *schedule.Schedule {
	out, err := timing.Compile(s, seed)
	var wrong *schedule.SpecError
	if errors.As(err, &wrong) {
		for _, f := range wrong.Fields {
			r.scheduleFault(location, f)
		}
		return nil
	}
	if err != nil {
		r.Fail(location, nil, "%s", err.Error())
		return nil
	}
	if out.Cron() != nil {
		s.Dialect = string(out.Cron().Dialect())
	}
	return out
}

func (r *reader) scheduleFault(location string, f *schedule.FieldError) {
	var parse *schedule.ParseError
	if !errors.As(f.Err, &parse) {
		r.Fail(location+"."+timing.FieldName(f.Field), nil, "%s", f.Msg)
		return
	}
	r.WrongCron = true
	r.Fields = append(r.Fields, domain.FieldError{
		Location: location + "." + timing.FieldName(f.Field), Message: parse.Msg, Value: parse.Expr,
		Position: parse.Pos, Length: parse.Len, Hint: parse.Hint,
	})
}

// textOf says the schedule in words, in both languages of the UI.
func textOf(s *schedule.Schedule) web.Bilingual {
	en, zh := s.Texts()
	return web.Bilingual{En: en, Zh: zh}
}

// warningsOf lists what is odd about a cron expression.
func warningsOf(s *schedule.Schedule) []Warning {
	out := []Warning{}
	if s.Cron() == nil {
		return out
	}
	for _, w := range s.Cron().Warnings() {
		out = append(out, Warning{Code: string(w), Text: web.Bilingual{En: w.Text("en"), Zh: w.Text("zh")}})
	}
	return out
}

// fireNotes puts the engine's marks into the API's words.
var fireNotes = map[schedule.Mark]string{
	schedule.MarkGapEnd: "dst_gap", schedule.MarkFirstPass: "dst_overlap", schedule.MarkSecondPass: "dst_overlap",
}

// firesOf lists the next n runs after from, and among them the fire times that
// calendars exclude.
func firesOf(spec *domain.ScheduleSpec, s *schedule.Schedule, from time.Time, n int) []Fire {
	out := []Fire{}
	for _, o := range s.Preview(from, n) {
		f := Fire{At: web.Instant(o.At), Zoned: o.At.Format(time.RFC3339), Note: fireNotes[o.Mark]}
		if !o.RunAt.Equal(o.At) {
			f.RunAt = web.Instant(o.RunAt)
		}
		if o.Excluded != nil {
			f.Excluded, f.Exclusion = timing.ExcludedText(spec, *o.Excluded), exclusionOf(spec, *o.Excluded)
		}
		out = append(out, f)
	}
	return out
}

func exclusionOf(spec *domain.ScheduleSpec, e schedule.Exclusion) *Exclusion {
	u := spec.Calendars[e.Calendar]
	out := &Exclusion{
		Calendar: calendar.CalendarRef{ID: u.ID.String(), Name: u.Content.Name, Version: u.Version},
		Kind:     string(e.Kind), Date: e.Date, Name: timing.ExclusionName(spec, e),
	}
	if e.Kind == schedule.ExcludedBlackout {
		out.Until = web.Instant(e.To)
	}
	return out
}

// neverRuns reports that nothing in a list of fires runs.
func neverRuns(fires []Fire) bool {
	for _, f := range fires {
		if f.Excluded == "" {
			return false
		}
	}
	return true
}
