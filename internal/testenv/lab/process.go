package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stopLimit is how long a process may take to end after SIGTERM before it is
// killed: a little more than the drain of an executor.
const stopLimit = 40 * time.Second

// Process is a child that dies with us and is ended by its pid.
type Process struct {
	Name string
	// LogFile holds what it wrote to both of its outputs.
	LogFile string

	cmd  *exec.Cmd
	done chan struct{} // closed once the process is reaped
}

// Command says what to start.
type Command struct {
	// Name of the process; its log is Dir/Name.log, appended to.
	Name, Dir string
	// Env is added to our own environment.
	Env     []string
	Program string
	Args    []string
	// Namespace is the network namespace to run in (ip netns); empty = ours.
	Namespace string
}

// Start starts a process.
func Start(c Command) (*Process, error) {
	path := filepath.Join(c.Dir, c.Name+".log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own copy
	program, args := c.Program, c.Args
	if c.Namespace != "" {
		// ip replaces itself by the program: the pid stays.
		program, args = "ip", append([]string{"netns", "exec", c.Namespace, c.Program}, c.Args...)
	}
	cmd := exec.Command(program, args...) // it is ended by its pid, in an order that matters
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	// A session of its own: Ctrl-C is for us, we end the children in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	p := &Process{Name: c.Name, LogFile: path, cmd: cmd, done: make(chan struct{})}
	go func() { // ends with the process
		_ = cmd.Wait() // how it ended is in Ended and in its log
		close(p.done)
	}()
	return p, nil
}

// PID of the process, also after its end.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// ExitCode is what an ended process returned; -1 while it runs, and when a
// signal has ended it.
func (p *Process) ExitCode() int {
	if !p.Ended() {
		return -1
	}
	return p.cmd.ProcessState.ExitCode()
}

// Kill ends the process without warning and waits for it.
func (p *Process) Kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL) // an error: it has ended already
	<-p.done
}

// Stop asks the process to end, and kills it when it does not. A frozen one is
// thawed for it.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	select {
	case <-p.done:
	case <-time.After(stopLimit):
		p.Kill()
	}
}

// Freeze halts the process with SIGSTOP and returns when all of its threads
// stand still: its connections stay open and nothing answers.
func (p *Process) Freeze() error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("freeze %s: %w", p.Name, err)
	}
	for limit := time.Now().Add(5 * time.Second); ; {
		still, err := p.still()
		if err != nil || still {
			return err
		}
		if time.Now().After(limit) {
			return fmt.Errorf("freeze %s: it goes on", p.Name)
		}
		<-time.After(100 * time.Microsecond)
	}
}

// Thaw lets a frozen process go on.
func (p *Process) Thaw() error {
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		return fmt.Errorf("thaw %s: %w", p.Name, err)
	}
	return nil
}

// still reports whether every thread has stopped.
func (p *Process) still() (bool, error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.PID()))
	if err != nil || len(tasks) == 0 {
		return false, errors.Join(err, fmt.Errorf("%s has ended", p.Name))
	}
	for _, task := range tasks {
		fields, err := statFields(task)
		if errors.Is(err, os.ErrNotExist) {
			continue // a thread that ended meanwhile
		}
		if err != nil {
			return false, err
		}
		if fields[0] != "T" {
			return false, nil
		}
	}
	return true, nil
}

// Usage is what a process has used so far.
type Usage struct {
	CPU     time.Duration // user and system
	RSS     int64         // bytes in memory now
	PeakRSS int64         // bytes in memory at most
}

// Usage reads /proc; the zero value after the process has ended.
func (p *Process) Usage() Usage { return UsageOf(p.PID()) }

// UsageOf is Usage for a process that somebody else started.
func UsageOf(pid int) Usage {
	const ticksPerSecond = 100 // USER_HZ, the same on every Linux that Go runs on
	var u Usage
	if fields, err := statFields(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && len(fields) > 12 {
		user, _ := strconv.ParseInt(fields[11], 10, 64)
		system, _ := strconv.ParseInt(fields[12], 10, 64)
		u.CPU = time.Duration(user+system) * time.Second / ticksPerSecond
	}
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(status)) {
		name, rest, _ := strings.Cut(line, ":")
		kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			u.RSS = kib << 10
		case "VmHWM":
			u.PeakRSS = kib << 10
		}
	}
	return u
}

// statFields returns the fields of a stat file from the state on (field 3 of
// proc(5)); the name before it may hold blanks and brackets.
func statFields(path string) ([]string, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, syscall.ESRCH) {
		return nil, os.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	text := string(raw)
	return strings.Fields(text[strings.LastIndexByte(text, ')')+1:]), nil
}
