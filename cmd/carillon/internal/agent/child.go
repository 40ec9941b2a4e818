package agent

import "time"

// The words with which this program is started as one of its own children.
// They are no commands: main asks Child before it reads any flag.
const (
	superviseWord = "--carillon-agent-supervise"
	launchWord    = "--carillon-agent-launch"
)

// Child runs this program as supervisor or launcher of a script, if that is
// what it was started for, and returns its exit code. Programs that run an
// Agent call it before anything else, with os.Args.
func Child(args []string) (code int, is bool) {
	if len(args) != 2 {
		return 0, false
	}
	switch args[1] {
	case superviseWord:
		return supervise(), true
	case launchWord:
		return launch(), true
	}
	return 0, false
}

// order is what a supervisor is told to start.
type order struct {
	Path   string        `json:"path"`
	Args   []string      `json:"args"` // with the program's own name
	Env    []string      `json:"env"`
	Dir    string        `json:"dir"`
	Limits Limits        `json:"limits"`
	Grace  time.Duration `json:"grace"` // between SIGTERM and SIGKILL
	User   *user         `json:"user"`
}

// What the agent writes to the supervisor's pipe after the order.
const (
	stopByte = 't' // ask the script to stop, and kill it after the grace
	killByte = 'k' // kill it
)

// ending is how a script ended. The supervisor tells it when nothing of the run
// is left. Before that it sends one with Cleaning, at the end of the script.
type ending struct {
	Cleaning bool `json:"cleaning,omitempty"` // the script has ended; the rest is not known yet

	Code   int    `json:"code"`
	Signal int    `json:"signal,omitempty"` // that ended it; 0 = none
	Error  string `json:"error,omitempty"`  // it could not be started
	// Left counts processes that the script left behind, which were ended then.
	Left      int           `json:"left,omitempty"`
	Looks     int           `json:"looks"` // searches of /proc for processes of the run
	CPU       time.Duration `json:"cpu"`
	MaxMemory int64         `json:"maxMemory"` // bytes, of the largest process
}
