package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// stopLimit is how long a process may take to end by itself.
const stopLimit = 30 * time.Second

// Process is a child that dies with us and is ended by its pid. Its methods
// are safe for concurrent use.
type Process struct {
	// Fixed after construction.
	Name string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and was waited for
}

// Start runs program with our environment and env, its output appended to
// dir/name.log. Ctrl-C reaches us alone: whoever started the process ends it,
// in an order that matters.
func Start(dir, name string, env []string, program string, args ...string) (*Process, error) {
	log, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, args...) //nolint:noctx // it is ended by its pid, in an order that matters
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := cmd.Start(); err != nil {
		_ = log.Close()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &Process{Name: name, cmd: cmd, done: make(chan struct{})}
	go func() { // ends with the process
		_ = cmd.Wait()
		_ = log.Close()
		close(p.done)
	}()
	return p, nil
}

// PID is the process id; it is not used again before Wait, which is ours.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill ends the process without warning and waits for it.
func (p *Process) Kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.done
}

// Stop asks the process to end, and kills it when it does not.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(stopLimit):
		p.Kill()
	}
}

// Signal sends a signal, for example SIGSTOP; an ended process is an error.
func (p *Process) Signal(sig syscall.Signal) error {
	if p.Ended() {
		return fmt.Errorf("%s has ended", p.Name)
	}
	return p.cmd.Process.Signal(sig)
}

// Ended reports whether the process is gone.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// StopAll stops processes in their order, and passes over nil.
func StopAll(processes ...*Process) {
	for _, p := range processes {
		if p != nil {
			p.Stop()
		}
	}
}

// Living returns an error that names the processes that have ended by themselves.
func Living(processes ...*Process) error {
	var bad []error
	for _, p := range processes {
		if p.Ended() {
			bad = append(bad, fmt.Errorf("%s ended by itself", p.Name))
		}
	}
	return errors.Join(bad...)
}
