package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Disk space that is worth a warning, and that is too little.
const (
	scarceBytes = 1 << 30
	scarceShare = 20 // a twentieth
	noBytes     = 64 << 20
)

// Folder looks whether this user can work in the folder, or make it. Keys are
// files in it that only its owner may read.
func Folder(path string, keys ...string) []Result {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		parent := existing(path)
		if err := writable(parent); err != nil {
			return []Result{Fail("folder_not_writable", "Make it for the server's user: install -d -m 700 -o USER "+path, "%s is not there, and cannot be made in %s: %v", path, parent, err)}
		}
		return []Result{Passed("%s is not there yet, the first start makes it", path)}
	case err != nil:
		return []Result{Fail("folder_unreadable", "Give the server's user access to it.", "%v", err)}
	case !info.IsDir():
		return []Result{Fail("folder_is_a_file", "Name a folder with --data.", "%s is no folder", path)}
	}
	var out []Result
	if err := writable(path); err != nil {
		out = append(out, Fail("folder_not_writable", "Give the server's user the folder: chown -R USER "+path, "%s cannot be written: %v", path, err))
	}
	if other := ownerOtherThanUs(info); other != "" {
		out = append(out, Warn("another_user", "Run the doctor as the server's user, so that it meets what the server meets.", "%s belongs to %s, and this is not that user", path, other))
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		out = append(out, Warn("folder_open", "Run chmod 700 "+path, "other users can write in %s (mode %04o)", path, mode))
	}
	for _, name := range keys {
		key := filepath.Join(path, name)
		if info, err := os.Stat(key); err == nil && info.Mode().Perm()&0o077 != 0 {
			out = append(out, Fail("key_readable", "Run chmod 600 "+key+"; who may have read it can sign in its name, so remove it to get a new one.",
				"others can read %s (mode %04o)", key, info.Mode().Perm()))
		}
	}
	if len(out) == 0 {
		out = append(out, Passed("%s can be written", path))
	}
	return out
}

// existing is the nearest folder above path that is there.
func existing(path string) string {
	for {
		parent := filepath.Dir(path)
		if _, err := os.Stat(parent); err == nil || parent == path {
			return parent
		}
		path = parent
	}
}

// Space looks how much can still be written below path.
func Space(path string) Result {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		path = existing(path)
	}
	free, total, inodes, err := space(path)
	if err != nil {
		return Skip("the system does not say how much space there is: %v", err)
	}
	return judgeSpace(path, free, total, inodes)
}

func judgeSpace(path string, free, total, inodes uint64) Result {
	said := fmt.Sprintf("%s of %s are free on the disk of %s", size(free), size(total), path)
	switch {
	case free < noBytes || inodes == 0:
		return Fail("disk_full", "Make room: without it nothing is stored, and no run starts.", "%s, and %d files can be made", said, inodes)
	case free < scarceBytes || free < total/scarceShare:
		return Warn("disk_nearly_full", "Make room, or keep less: --log-bytes, --run-retention, --log-retention.", "%s", said)
	}
	return Passed("%s", said)
}

func size(n uint64) string {
	const units = "KMGTPE"
	value, unit := float64(n), "B"
	for i := 0; value >= 1024 && i < len(units); i++ {
		value, unit = value/1024, string(units[i])+"iB"
	}
	return fmt.Sprintf("%.3g %s", value, unit)
}

// OpenFiles looks whether the system lets this user have as many files and
// connections as the node's limits allow.
func OpenFiles(need uint64) Result {
	allowed, err := openFileLimit()
	if err != nil {
		return Skip("the system does not say how many files may be open: %v", err)
	}
	return judgeFiles(allowed, need)
}

func judgeFiles(allowed, need uint64) Result {
	if allowed < need {
		return Warn("too_few_files", "Raise it (systemd: LimitNOFILE, shells: ulimit -Hn), or lower --executors-max and --http-max.",
			"this user's processes may open %d files, and the node's limits allow %d connections", allowed, need)
	}
	return Passed("%d may be open, the node's limits allow %d connections", allowed, need)
}
