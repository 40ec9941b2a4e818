// Package netns answers: how is one machine cut from another, when both are
// this one?
//
// A Net is a number of bridges in our own network namespace, each with an
// address for a server, and network namespaces that hang on every bridge by a
// cable of their own. Pulling a cable (taking it off its bridge) leaves the
// carrier up and drops everything, both ways: a true blackhole, seen by
// neither end. It takes root and iproute2.
package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// Net is made by New and removed by Close.
type Net struct {
	prefix  string
	bridges int
	spaces  []string
	undo    [][]string
	unlock  func() // lets the next one have the addresses
}

// addresses are the same for every Net of a process: who needs them waits.
var addresses sync.Mutex

// Unable says why this machine has no network namespaces for us.
type Unable struct{ Reason string }

func (e *Unable) Error() string { return "no network namespaces here: " + e.Reason }

// New makes bridges and namespaces (each at most 20). The error is *Unable
// when the machine does not offer them; nothing is left behind then. It waits
// until the Net before it is closed.
func New(bridges, spaces int) (*Net, error) {
	if os.Geteuid() != 0 {
		return nil, &Unable{"it takes root"}
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return nil, &Unable{"there is no program ip (iproute2)"}
	}
	addresses.Lock()
	// Interface names have 15 characters at most; the pid keeps runs apart.
	n := &Net{prefix: fmt.Sprintf("cf%d", os.Getpid()%1000000), bridges: bridges, unlock: sync.OnceFunc(addresses.Unlock)}
	for b := range bridges {
		name := n.bridge(b)
		err := errors.Join(
			n.do([]string{"link", "del", name}, "link", "add", name, "type", "bridge"),
			n.do(nil, "addr", "add", n.Address(b)+"/24", "dev", name),
			n.do(nil, "link", "set", name, "up"))
		if err != nil {
			return nil, n.fail(err)
		}
	}
	for s := range spaces {
		if err := n.addSpace(s); err != nil {
			return nil, n.fail(err)
		}
	}
	return n, nil
}

func (n *Net) addSpace(s int) error {
	space := fmt.Sprintf("%s-%d", n.prefix, s)
	n.spaces = append(n.spaces, space)
	err := errors.Join(
		n.do([]string{"netns", "del", space}, "netns", "add", space),
		n.do(nil, "-n", space, "link", "set", "lo", "up"))
	for b := range n.bridges {
		if err != nil {
			return err
		}
		near, far := n.cable(s, b), fmt.Sprintf("eth%d", b)
		err = errors.Join(
			n.do([]string{"link", "del", near}, "link", "add", near, "type", "veth", "peer", "name", far, "netns", space),
			n.do(nil, "link", "set", near, "master", n.bridge(b), "up"),
			n.do(nil, "-n", space, "addr", "add", n.Inside(s, b)+"/24", "dev", far),
			n.do(nil, "-n", space, "link", "set", far, "up"))
	}
	return err
}

func (n *Net) fail(err error) error {
	_ = n.Close()
	return &Unable{err.Error()}
}

func (n *Net) bridge(b int) string   { return fmt.Sprintf("%sb%d", n.prefix, b) }
func (n *Net) cable(s, b int) string { return fmt.Sprintf("%sv%dx%d", n.prefix, s, b) }

// Address is ours on bridge b.
func (n *Net) Address(b int) string { return fmt.Sprintf("10.231.%d.1", b+1) }

// Space is the name of namespace s, for ip netns exec.
func (n *Net) Space(s int) string { return n.spaces[s] }

// Pull takes the cable between namespace s and bridge b out.
func (n *Net) Pull(s, b int) error { return n.do(nil, "link", "set", n.cable(s, b), "nomaster") }

// Plug puts it back.
func (n *Net) Plug(s, b int) error {
	return n.do(nil, "link", "set", n.cable(s, b), "master", n.bridge(b))
}

// stranger is an address on the cables that nobody has: what is sent to it is
// dropped without a word.
const stranger = "02:00:00:00:00:66"

// Deafen drops what is sent to namespace s over bridge b; what it sends
// arrives. Mute is the other direction. Hear ends both.
func (n *Net) Deafen(s, b int) error {
	return n.do(nil, "neigh", "replace", n.Inside(s, b), "lladdr", stranger, "dev", n.bridge(b), "nud", "permanent")
}

// Mute drops what namespace s sends over bridge b.
func (n *Net) Mute(s, b int) error {
	return n.do(nil, "-n", n.spaces[s], "neigh", "replace", n.Address(b), "lladdr", stranger, "dev", fmt.Sprintf("eth%d", b), "nud", "permanent")
}

// Hear lets both directions pass again. Each end learns the other's address anew.
func (n *Net) Hear(s, b int) error {
	return errors.Join(
		n.do(nil, "neigh", "flush", "to", n.Inside(s, b), "dev", n.bridge(b), "nud", "all"),
		n.do(nil, "-n", n.spaces[s], "neigh", "flush", "to", n.Address(b), "dev", fmt.Sprintf("eth%d", b), "nud", "all"))
}

// Inside is the address of namespace s on bridge b.
func (n *Net) Inside(s, b int) string { return fmt.Sprintf("10.231.%d.%d", b+1, s+10) }

// Close removes everything; processes in the namespaces should have ended.
func (n *Net) Close() error {
	defer n.unlock()
	var errs []error
	for i := len(n.undo) - 1; i >= 0; i-- {
		errs = append(errs, ip(n.undo[i]...))
	}
	n.undo = nil
	return errors.Join(errs...)
}

// do runs ip and remembers how to undo it.
func (n *Net) do(undo []string, args ...string) error {
	if err := ip(args...); err != nil {
		return err
	}
	if undo != nil {
		n.undo = append(n.undo, undo)
	}
	return nil
}

func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput() //nolint:noctx // takes milliseconds
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
