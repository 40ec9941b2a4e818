package explain

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// maxPartSteps bounds how many parts are told of one by one.
const maxPartSteps = 60

// isParent reports whether what is asked about ran, or runs, as parts.
func (r Run) isParent() bool { return r.Execution.Stage != domain.StageNone }

// family says where a run with parts stands.
func (r Run) family() Text {
	e := &r.Execution
	switch e.State {
	case domain.Due, domain.RetryWait:
		t := r.waiting()
		return Text{"The hook before the shards has succeeded, and the shards come next. " + t.En, "前置钩子已成功，接下来分片。" + t.Zh}
	case domain.Running:
		return r.runningParts()
	case domain.Cancelling:
		t := r.counted()
		return Text{"It is being stopped, because " + r.why().En + ", and its parts have been asked to stop; " + t.En + ".",
			"正在停止：" + r.why().Zh + "；已请求各部分停止，" + t.Zh + "。"}
	case domain.Succeeded:
		t := r.counted()
		return Text{"It succeeded: " + t.En + ".", "运行成功：" + t.Zh + "。"}
	default:
		t := r.counted()
		return Text{fmt.Sprintf("It ended as %s, because %s; %s.", e.State, r.why().En, t.En),
			fmt.Sprintf("以“%s”结束：%s；%s。", states[e.State], r.why().Zh, t.Zh)}
	}
}

func (r Run) runningParts() Text {
	t := r.counted()
	switch r.Execution.Stage {
	case domain.StageBefore:
		return Text{"The hook before its shards has not ended yet.", "前置钩子尚未结束。"}
	case domain.StageAfter:
		return Text{"Its shards have ended, and the hook after them has not yet; " + t.En + ".", "分片均已结束，后置钩子尚未结束；" + t.Zh + "。"}
	}
	return Text{"Its shards are running; " + t.En + ".", "分片正在运行；" + t.Zh + "。"}
}

// counted says how its shards have ended so far.
func (r Run) counted() Text {
	total := r.Execution.Shards
	if n := len(r.Execution.Picks); n > 0 {
		total = n
	}
	succeeded := r.Family.Shards[domain.Succeeded]
	en := []string{fmt.Sprintf("%d of %d shards succeeded", succeeded, total)}
	zh := []string{fmt.Sprintf("%d 个分片中 %d 个成功", total, succeeded)}
	ended := succeeded
	for _, s := range domain.States {
		if n := r.Family.Shards[s]; n > 0 && s != domain.Succeeded {
			ended += n
			en, zh = append(en, fmt.Sprintf("%d %s", n, s)), append(zh, fmt.Sprintf("%d 个%s", n, states[s]))
		}
	}
	if left := total - ended; left > 0 {
		en, zh = append(en, fmt.Sprintf("%d not ended", left)), append(zh, fmt.Sprintf("%d 个未结束", left))
	}
	return Text{strings.Join(en, ", "), strings.Join(zh, "，")}
}

// familySteps tells of the parts: when they were made, and how they ended.
func (r Run) familySteps() (out []Step) {
	e := &r.Execution
	if e.IsPart() {
		t := r.belongs()
		return []Step{{e.PlannedAt, "part", Text{t.En + ".", t.Zh + "。"}}}
	}
	if !r.isParent() {
		return nil
	}
	shards := 0
	for i := range r.Parts {
		p := &r.Parts[i]
		if i < maxPartSteps && p.State.Terminal() {
			out = append(out, Step{p.FinishedAt, "part_ended", partEnded(p)})
		}
		switch p.Part {
		case domain.PartBefore:
			out = append(out, Step{p.PlannedAt, "before", Text{"The hook before the shards was made, run " + p.ID.String() + ".", "生成前置钩子，运行 " + p.ID.String() + "。"}})
		case domain.PartAfter:
			out = append(out, Step{p.PlannedAt, "after", Text{"The hook after the shards was made, run " + p.ID.String() + ", with their results.", "生成后置钩子，运行 " + p.ID.String() + "，输入为各分片结果。"}})
		default:
			if shards++; shards == 1 {
				out = append(out, Step{p.PlannedAt, "spread", r.spreadText(p)})
			}
		}
	}
	return out
}

func (r Run) spreadText(first *domain.Execution) Text {
	e := &r.Execution
	switch {
	case len(e.Picks) > 0:
		return Text{fmt.Sprintf("%d of the %d shards of an earlier run were made again.", len(e.Picks), e.Shards), fmt.Sprintf("重新生成先前运行 %d 个分片中的 %d 个。", e.Shards, len(e.Picks))}
	case first.Bound != 0 || first.Shards != r.Spec.Sharding.Shards:
		return Text{fmt.Sprintf("It was cut into %d shards, one on each instance that served the handler then.", e.Shards), fmt.Sprintf("按当时提供该处理器的实例分为 %d 个分片，每个实例一个。", e.Shards)}
	}
	return Text{fmt.Sprintf("It was cut into %d shards.", e.Shards), fmt.Sprintf("分为 %d 个分片。", e.Shards)}
}

func partEnded(p *domain.Execution) Text {
	name := partName(p)
	if p.Reason == "" {
		return Text{name.En + " ended as " + p.State.String() + ".", name.Zh + "结束：" + states[p.State] + "。"}
	}
	return Text{name.En + " ended as " + p.State.String() + ", because " + because(p.Reason).En + ".",
		name.Zh + "结束：" + states[p.State] + "，" + because(p.Reason).Zh + "。"}
}

func partName(p *domain.Execution) Text {
	switch p.Part {
	case domain.PartBefore:
		return Text{"The hook before the shards", "前置钩子"}
	case domain.PartAfter:
		return Text{"The hook after the shards", "后置钩子"}
	}
	return Text{fmt.Sprintf("Shard %d of %d", p.Shard, p.Shards), fmt.Sprintf("分片 %d（共 %d 个）", p.Shard, p.Shards)}
}

// belongs says what a part is.
func (r Run) belongs() Text {
	e := &r.Execution
	t := partName(e)
	t.En += " of run " + strconv.FormatInt(int64(e.Parent), 10)
	t.Zh += "，属于运行 " + strconv.FormatInt(int64(e.Parent), 10)
	if e.Bound != 0 {
		name, ok := r.names()[e.Bound]
		if !ok {
			name = e.Bound.String()
		}
		t.En += ", for instance " + name + " alone"
		t.Zh += "，仅限实例 " + name
	}
	return t
}
