package agent

import (
	"errors"
	"fmt"
	"os"
	osuser "os/user"
	"strconv"
)

// user is whom scripts run as.
type user struct {
	Name   string
	UID    uint32
	GID    uint32
	Groups []uint32
	// Switches: it is another one than the agent's.
	Switches bool
}

// findUser finds the user that scripts run as, for an agent that runs as self;
// "" is the agent's own, unless that is root: scripts run as root only when
// somebody says so.
func findUser(name string, self int) (*user, error) {
	root := self == 0
	if name == "" {
		if root {
			return nil, errors.New("this agent runs as root, and so would its scripts: name a user of their own with --run-as (--run-as root if that is meant)")
		}
		return &user{Name: os.Getenv("USER"), UID: uint32(self), GID: uint32(os.Getgid())}, nil
	}
	found, err := osuser.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("run-as: %w", err)
	}
	u := &user{Name: found.Username}
	if u.UID, u.GID, err = numbers(found.Uid, found.Gid); err != nil {
		return nil, fmt.Errorf("run-as %s: %w", name, err)
	}
	u.Switches = u.UID != uint32(self)
	if u.Switches && !root {
		return nil, fmt.Errorf("run-as %s: only root may run scripts as another user; start the agent as root, or as that user without --run-as", name)
	}
	groups, err := found.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("run-as %s: groups: %w", name, err)
	}
	for _, group := range groups {
		id, _, err := numbers(group, group)
		if err != nil {
			return nil, fmt.Errorf("run-as %s: %w", name, err)
		}
		u.Groups = append(u.Groups, id)
	}
	return u, nil
}

func numbers(uid, gid string) (u, g uint32, err error) {
	a, err := strconv.ParseUint(uid, 10, 32)
	if err != nil {
		return 0, 0, err
	}
	b, err := strconv.ParseUint(gid, 10, 32)
	return uint32(a), uint32(b), err
}

// own gives a path to the user.
func (u *user) own(path string) error {
	if !u.Switches {
		return nil
	}
	return os.Lchown(path, int(u.UID), int(u.GID))
}
