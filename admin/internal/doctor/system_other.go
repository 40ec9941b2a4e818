//go:build !linux

package doctor

import (
	"errors"
	"os"
)

func space(string) (free, total, inodes uint64, err error) {
	return 0, 0, 0, errors.ErrUnsupported
}

// writable goes by the mode, which is all there is to ask.
func writable(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm()&0o200 == 0 {
		err = os.ErrPermission
	}
	return err
}

func ownerOtherThanUs(os.FileInfo) string { return "" }

func openFileLimit() (uint64, error) { return 0, errors.ErrUnsupported }
