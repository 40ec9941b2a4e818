package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/internal/httpcall"
)

// outputGrace is how long the end of the output is waited for when the
// supervisor has ended, for the case that it was killed from outside.
const outputGrace = 5 * time.Second

// job is one run, apart from the SDK that brings it.
type job struct {
	task  executor.Task
	input json.RawMessage
	log   *slog.Logger
}

// runScript is the handler of a language. Its errors are permanent when
// another try would end the same way.
func (a *Agent) runScript(ctx context.Context, with *interpreter, j job) (ScriptResult, error) {
	s := j.task.Script
	if s == nil {
		return ScriptResult{}, executor.Permanent(fmt.Errorf("the job names no script: handler script.%s runs what the admin keeps as scripts", with.name))
	}
	if err := s.Verify(with.name, a.opt.ScriptKeys...); err != nil {
		return ScriptResult{}, executor.Permanent(err)
	}
	args, err := httpcall.ExpandArgs(s.Args, httpcall.Values{Task: j.task, Input: j.input})
	if err != nil {
		return ScriptResult{}, executor.Permanent(err)
	}
	dir, err := a.work.make("script"+with.suffix, s.Content, a.who)
	if err != nil {
		return ScriptResult{}, fmt.Errorf("work folder: %w", err)
	}
	defer func() {
		if err := dir.remove(); err != nil {
			a.log.Warn("a run's folder is left", "dir", dir.dir, "err", err)
		}
	}()
	j.log.Info("script starts", "script", s.Name, "script_revision", s.Revision, "sha256", fmt.Sprintf("%x", s.SHA256),
		"interpreter", with.path, "user", a.who.Name)
	hint := WindowsHint(with.name, string(s.Content))
	if hint != "" {
		j.log.Warn(hint) //nolint:sloglint // the run's log is read by people, who get the text as it is
	}
	line := append(append([]string{with.path}, with.options...), dir.script)
	result, err := a.supervised(ctx, j, order{
		Path: with.path, Args: append(line, args...), Env: a.environment(j.task, dir), Dir: dir.work,
		Limits: a.opt.Limits, Grace: a.opt.KillGrace, User: a.who,
	})
	if err != nil && ctx.Err() == nil && hint != "" {
		err = fmt.Errorf("%w; %s", err, hint)
	}
	return result, err
}

// environment is all that a script sees of it.
func (a *Agent) environment(t executor.Task, dir *runDir) []string {
	env := []string{
		"PATH=" + a.opt.Path, "HOME=" + dir.work, "TMPDIR=" + dir.temp, "LANG=C.UTF-8", "USER=" + a.who.Name, "LOGNAME=" + a.who.Name,
		"TRACEPARENT=" + t.Traceparent,
	}
	for _, v := range []struct{ name, value string }{
		{"RUN_ID", strconv.FormatInt(t.ExecutionID, 10)}, {"RUN_KEY", t.Key()}, {"FENCE", strconv.FormatInt(t.Fence, 10)},
		{"ATTEMPT", strconv.Itoa(t.Attempt)}, {"MAX_ATTEMPTS", strconv.Itoa(t.MaxAttempts)},
		{"TENANT_ID", strconv.FormatInt(t.TenantID, 10)}, {"JOB_ID", strconv.FormatInt(t.JobID, 10)}, {"JOB_NAME", t.JobName},
		{"CAUSE", t.Cause}, {"FIRE_TIME", t.FireTime.Format("2006-01-02T15:04:05.000Z07:00")},
		{"SHARD_INDEX", strconv.Itoa(t.ShardIndex)}, {"SHARD_TOTAL", strconv.Itoa(max(1, t.ShardTotal))},
		{"SCRIPT", t.Script.Name}, {"SCRIPT_REVISION", strconv.FormatInt(t.Script.Revision, 10)},
	} {
		env = append(env, "CARILLON_"+v.name+"="+v.value)
	}
	for _, name := range a.opt.Env {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// supervised runs an order until nothing of it is left.
func (a *Agent) supervised(ctx context.Context, j job, o order) (ScriptResult, error) {
	sv, err := a.startSupervisor(j, o)
	if err != nil {
		return ScriptResult{}, fmt.Errorf("start the supervisor: %w", err)
	}
	stop := context.AfterFunc(ctx, func() {
		order := byte(stopByte)
		if errors.Is(context.Cause(ctx), executor.ErrLeaseLost) {
			order = killByte // another instance may start it in seconds
		}
		_, _ = sv.orders.Write([]byte{order})
	})
	var cause error
	// A context that ends after the script is not the cause of the script's end.
	end, err := sv.wait(func() { stop(); cause = context.Cause(ctx) })
	if err != nil {
		return ScriptResult{}, err
	}
	if end.Left > 0 {
		j.log.Warn("processes that the script left behind were ended", "processes", end.Left)
	}
	j.log.Info("script ended", "exit_code", end.Code, "cpu", end.CPU, "max_memory", end.MaxMemory)
	result := resultOf(sv.stdout)
	if cause != nil && (end.Code != 0 || end.Signal != 0) {
		return result, cause
	}
	return result, end.failure(sv.stderr.text(), o.Limits)
}

// failure says how a script failed, or nil.
func (e *ending) failure(last string, l Limits) error {
	if last != "" {
		last = ": " + last
	}
	switch {
	case e.Error != "":
		return fmt.Errorf("the supervisor failed: %s", e.Error)
	case e.Signal == int(syscall.SIGXCPU):
		return fmt.Errorf("ended at the limit of %s of processor time%s", l.CPU, last)
	case e.Signal == int(syscall.SIGXFSZ):
		return fmt.Errorf("ended at the limit of %d bytes for a file%s", l.FileSize, last)
	case e.Signal != 0:
		return fmt.Errorf("ended by %s%s", syscall.Signal(e.Signal), last)
	case e.Code != 0:
		return fmt.Errorf("exit code %d%s", e.Code, last)
	}
	return nil
}

// running is a supervisor at work.
type running struct {
	cmd            *exec.Cmd
	orders, report *os.File // our ends of its pipes
	stdout, stderr *stream
}

func (a *Agent) startSupervisor(j job, o order) (_ *running, err error) {
	line, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	orderR, orderW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	endingR, endingW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, orderR.Close(), orderW.Close())
	}
	log := newTranscript(j.log, a.opt.MaxOutput)
	sv := &running{orders: orderW, report: endingR, stdout: log.stream(slog.LevelInfo), stderr: log.stream(slog.LevelWarn)}
	// No context: its end is an order to the supervisor, which needs its time.
	sv.cmd = exec.Command(self, superviseWord) //nolint:noctx // see above
	sv.cmd.Env = []string{}
	sv.cmd.Stdin, sv.cmd.Stdout, sv.cmd.Stderr = inputOf(j.input), sv.stdout, sv.stderr
	sv.cmd.ExtraFiles = []*os.File{orderR, endingW}
	sv.cmd.WaitDelay = outputGrace
	// A group of its own: what a terminal sends to ours is for us.
	sv.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = sv.cmd.Start()
	_, _ = orderR.Close(), endingW.Close()
	if err == nil {
		_, err = orderW.Write(append(line, '\n'))
		if err == nil {
			return sv, nil
		}
		_ = orderW.Close() // it ends what it has begun
		_ = sv.cmd.Wait()
	}
	return nil, errors.Join(err, orderW.Close(), endingR.Close())
}

// wait returns when the supervisor has ended, and with it all of the run. It
// calls scriptEnded before that, when the script itself has ended.
func (sv *running) wait(scriptEnded func()) (end ending, err error) {
	defer sv.report.Close()
	defer sv.orders.Close()
	report := json.NewDecoder(bufio.NewReader(sv.report))
	told := report.Decode(&end)
	scriptEnded()
	if told == nil && end.Cleaning {
		end = ending{}
		told = report.Decode(&end)
	}
	err = sv.cmd.Wait()
	sv.stdout.close()
	sv.stderr.close()
	sv.stdout.to.close()
	switch {
	case told != nil:
		return end, fmt.Errorf("the script's supervisor ended early: %w", errors.Join(told, err))
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return end, fmt.Errorf("the script's supervisor: %w", err)
	}
	return end, nil
}
