package doctor

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

func space(path string) (free, total, inodes uint64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, 0, 0, err
	}
	block := uint64(s.Bsize)
	inodes = s.Ffree
	if s.Files == 0 {
		inodes = 1 // a file system that does not count them
	}
	return s.Bavail * block, s.Blocks * block, inodes, nil
}

// writable asks the system; it writes nothing.
func writable(path string) error {
	const read, write, search = 4, 2, 1
	if err := syscall.Access(path, read|write|search); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// ownerOtherThanUs is the name of the owner, or empty if that is this process's user.
func ownerOtherThanUs(info os.FileInfo) string {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(s.Uid) == os.Geteuid() {
		return ""
	}
	id := strconv.Itoa(int(s.Uid))
	if u, err := user.LookupId(id); err == nil {
		return "user " + u.Username
	}
	return "user " + id
}

// openFileLimit is the hard limit: Go raises the soft one to it.
func openFileLimit() (uint64, error) {
	var r syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r)
	return r.Max, err
}
