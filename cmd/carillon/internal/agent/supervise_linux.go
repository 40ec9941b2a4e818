package agent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// self is this program, also for a user who may not pass through its folder.
const self = "/proc/self/exe"

// File descriptors of a supervisor beside the standard ones.
const (
	orderFD  = 3 // the order, then stopByte or killByte, then the end: the agent has gone
	endingFD = 4 // where the ending goes
)

// hideSelf keeps scripts that run as the agent's own user from its memory and
// environment, where the join token may be (prctl(2), PR_SET_DUMPABLE).
func hideSelf() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// supervisor runs one script and reaps whatever comes of it.
type supervisor struct {
	order  order
	pid    int
	report *json.Encoder // to the agent

	mu      sync.Mutex   // guards what follows
	killing bool         // whatever shows up is ended
	frozen  map[int]bool // were stopped before they were killed: they left nothing unseen
	looks   int          // searches for processes
}

// supervise is the main function of a supervisor.
func supervise() int {
	// The kernel binds a child's parent-death signal to the thread that made it.
	runtime.LockOSThread()
	// These are for the agent, which decides. They must not be ignored, or the
	// script would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	syscall.CloseOnExec(orderFD)
	syscall.CloseOnExec(endingFD)
	orders := bufio.NewReader(os.NewFile(orderFD, "order"))
	s := supervisor{report: json.NewEncoder(os.NewFile(endingFD, "ending")), frozen: map[int]bool{}}
	end, err := s.run(orders)
	if err != nil {
		end = ending{Code: -1, Error: err.Error()}
	}
	if s.report.Encode(end) != nil {
		return 1 // the agent has gone
	}
	return 0
}

func (s *supervisor) run(orders *bufio.Reader) (ending, error) {
	line, err := orders.ReadBytes('\n')
	if err != nil {
		return ending{}, err
	}
	if err := json.Unmarshal(line, &s.order); err != nil {
		return ending{}, err
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return ending{}, err
	}
	if s.pid, err = s.start(line); err != nil {
		return ending{}, err
	}
	go s.listen(orders)
	return s.reap(), nil
}

// start makes the launcher, in a session of its own and as the script's user.
func (s *supervisor) start(line []byte) (int, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer reader.Close()
	attr := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if u := s.order.User; u.Switches {
		attr.Credential = &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}
	}
	pid, err := syscall.ForkExec(self, []string{"carillon", launchWord}, &syscall.ProcAttr{
		Env: []string{}, Files: []uintptr{0, 1, 2, reader.Fd()}, Sys: attr,
	})
	if err != nil {
		_ = writer.Close()
		return 0, err
	}
	// The launcher may end before it has read all: that is its ending then.
	go func() {
		_, _ = writer.Write(line)
		_ = writer.Close()
	}()
	return pid, nil
}

// listen obeys the agent until the pipe ends, which is the agent's death.
func (s *supervisor) listen(orders io.ByteReader) {
	for {
		b, err := orders.ReadByte()
		if err != nil {
			s.kill()
			return
		}
		switch b {
		case stopByte:
			s.signal(syscall.SIGTERM)
			time.AfterFunc(s.order.Grace, func() { s.kill() })
		case killByte:
			s.kill()
		}
	}
}

// reap waits for the script and for all that it leaves behind. Its children's
// children become ours when their parents end. After the script's end all that
// have ended are reaped before the next search: a search reads all of /proc.
func (s *supervisor) reap() (end ending) {
	ended, search, options := false, false, 0
	for {
		var status syscall.WaitStatus
		var usage syscall.Rusage
		pid, err := syscall.Wait4(-1, &status, options, &usage)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil: // ECHILD: nothing is left
			end.Looks = s.looks
			return end
		case pid == 0: // none has ended now
			if search {
				s.kill()
			}
			search, options = false, 0
			continue
		}
		end.CPU += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
		end.MaxMemory = max(end.MaxMemory, usage.Maxrss<<10)
		if pid == s.pid && !ended {
			ended, options = true, syscall.WNOHANG
			end.Code = status.ExitStatus()
			if status.Signaled() {
				end.Signal = int(status.Signal())
			}
			_ = s.report.Encode(ending{Cleaning: true}) // the agent's death is found later
			end.Left = s.kill()
			continue
		}
		if killing, unseen := s.reaped(pid); killing {
			search = search || unseen
			options = syscall.WNOHANG
		}
	}
}

// reaped reports whether the run is being killed, and whether the process may
// have left children that were not found.
func (s *supervisor) reaped(pid int) (killing, unseen bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	unseen = !s.frozen[pid]
	delete(s.frozen, pid)
	return s.killing, unseen
}

// signal reaches every process of the run.
func (s *supervisor) signal(sig syscall.Signal) {
	for _, pid := range descendants(os.Getpid()) {
		_ = syscall.Kill(pid, sig)
	}
}

// maxFreezes bounds the rounds of kill's freezing. What is left then is ended
// when its parents are reaped.
const maxFreezes = 50

// kill ends every process of the run. They are stopped first, until no new one
// shows up: a process that starts others faster than they are found comes to
// rest, because those that are stopped count for its limit too. It returns how
// many were killed.
func (s *supervisor) kill() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killing = true
	stopped, news := map[int]bool{}, true
	for range maxFreezes {
		news = false
		s.looks++
		for _, pid := range descendants(os.Getpid()) {
			if !stopped[pid] && syscall.Kill(pid, syscall.SIGSTOP) == nil {
				stopped[pid], news = true, true
			}
		}
		if !news {
			break
		}
	}
	for pid := range stopped {
		s.frozen[pid] = !news
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return len(stopped)
}

// descendants finds the living processes below pid.
func descendants(pid int) []int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		if child, parent, ok := readStat(path); ok {
			children[parent] = append(children[parent], child)
		}
	}
	found := append([]int{}, children[pid]...)
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found
}

// readStat reads pid and parent of a process that is no zombie. The name in
// between may hold anything, also parentheses (proc_pid_stat(5)).
func readStat(path string) (pid, parent int, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, false // it has ended
	}
	head, _, found := bytes.Cut(text, []byte{' '})
	at := bytes.LastIndexByte(text, ')')
	if !found || at < 0 {
		return 0, 0, false
	}
	fields := bytes.Fields(text[at+1:])
	if len(fields) < 2 || fields[0][0] == 'Z' || fields[0][0] == 'X' {
		return 0, 0, false
	}
	pid, err = strconv.Atoi(string(head))
	parent, err2 := strconv.Atoi(string(fields[1]))
	return pid, parent, err == nil && err2 == nil
}
