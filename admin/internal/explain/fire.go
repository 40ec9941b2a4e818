package explain

import (
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// FireTime is what has to be known of an instant of a job for which there is
// no run.
type FireTime struct {
	At        time.Time
	Now       time.Time
	CreatedAt time.Time // the job's
	State     domain.JobState
	Pause     domain.Pause
	// Planned: the revision that was in force fires at that instant.
	Planned bool
	// Calendar is the name of the one that keeps it from running; "": none.
	Calendar string
	// Waits is the maintenance for whose end it waits; nil: none.
	Waits *domain.Maintenance
	// Before and After are its neighbouring fire times; zero: none, or not known.
	Before, After time.Time
	// KeptSince is the instant before which ended runs have been deleted.
	KeptSince time.Time
}

// Explain says why there is no run.
func (f FireTime) Explain() Explanation {
	return Explanation{Summary: f.summary()}
}

func (f FireTime) summary() Text {
	switch {
	case f.At.Before(f.CreatedAt):
		return Text{"The job did not exist yet; it was created at " + clock(f.CreatedAt) + ".", "当时任务尚不存在，创建时间为 " + clock(f.CreatedAt) + "。"}
	case !f.Planned:
		return f.notPlanned()
	case f.At.Before(f.KeptSince):
		return Text{"The schedule fires at this instant, but runs that old have been deleted.", "调度计划在该时刻触发，但如此久远的运行记录已被清理。"}
	case f.State == domain.JobPaused:
		t := Text{"The job is paused: it fires no more until it is resumed", "任务已暂停，恢复之前不会触发"}
		if f.Pause.By != "" {
			t = Text{f.Pause.By + " paused the job at " + clock(f.Pause.At) + ": it fires no more until it is resumed", f.Pause.By + " 于 " + clock(f.Pause.At) + " 暂停了任务，恢复之前不会触发"}
		}
		t = t.noted(f.Pause.Note)
		return Text{t.En + ".", t.Zh + "。"}
	case f.Waits != nil && f.Calendar == "":
		en, zh := "It waits for the end of maintenance", "它正在等待维护结束"
		if f.Waits.Reason != "" {
			en, zh = en+" ("+f.Waits.Reason+")", zh+"（"+f.Waits.Reason+"）"
		}
		return Text{en + ". The run of the newest fire time that waits stands for all then, unless the job makes each of them up.", zh + "。结束后由最近一次触发代替其余的触发，除非任务设置为逐一补跑。"}
	case f.At.After(f.Now) && f.Calendar != "":
		return Text{fmt.Sprintf("It lies ahead, and it will not run: the calendar %q excludes it.", f.Calendar),
			fmt.Sprintf("该时刻尚未到来，届时也不会运行：日历“%s”排除了它。", f.Calendar)}
	case f.At.After(f.Now):
		return Text{"It lies ahead: its run is written a few seconds before.", "该时刻尚未到来，运行记录会在触发前几秒生成。"}
	default:
		return Text{"The schedule fires at this instant, and there is no run of it: the job was paused then, or its schedule was changed around that time.",
			"调度计划在该时刻触发，但没有对应的运行：当时任务处于暂停状态，或调度计划在此前后被修改。"}
	}
}

func (f FireTime) notPlanned() Text {
	t := Text{"The schedule does not fire at this instant", "调度计划在该时刻不触发"}
	if !f.Before.IsZero() {
		t.En += "; before it, it fires at " + clock(f.Before)
		t.Zh += "；此前最近一次为 " + clock(f.Before)
	}
	if !f.After.IsZero() {
		t.En += "; after it, at " + clock(f.After)
		t.Zh += "；此后最近一次为 " + clock(f.After)
	}
	return Text{t.En + ".", t.Zh + "。"}
}
