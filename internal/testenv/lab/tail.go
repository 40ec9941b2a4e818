package lab

import (
	"bytes"
	"io"
	"os"
	"path/filepath"

	"github.com/carillon-sched/carillon/admin/verify"
)

// Tail reads the runs that are added to the history files of a folder while it is written: it costs
// what was added, however long the history is. It is for one goroutine.
type Tail struct {
	dir    string
	reader *verify.Reader
	at     map[string]int64 // how far each file was read
}

// Follow begins at the end of a folder's files as they are now.
func Follow(dir string) (*Tail, error) {
	t := &Tail{dir: dir, reader: verify.NewReader(), at: map[string]int64{}}
	return t, t.each(func(name string, f *os.File) (err error) {
		t.at[name], err = f.Seek(0, io.SeekEnd)
		return err
	})
}

// Runs are those of all lines since Follow. Of a run that began before, only
// its end may be there.
func (t *Tail) Runs() ([]verify.Run, error) {
	err := t.each(func(name string, f *os.File) error {
		if _, err := f.Seek(t.at[name], io.SeekStart); err != nil {
			return err
		}
		added, err := io.ReadAll(f)
		if err != nil {
			return err
		}
		whole := added[:bytes.LastIndexByte(added, '\n')+1] // the rest is being written
		t.at[name] += int64(len(whole))
		return t.reader.Read(name, bytes.NewReader(whole))
	})
	return t.reader.History().Runs, err
}

func (t *Tail) each(do func(name string, f *os.File) error) error {
	files, err := filepath.Glob(filepath.Join(t.dir, "*"+verify.Extension))
	if err != nil {
		return err
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		err = do(name, f)
		_ = f.Close() // it was only read
		if err != nil {
			return err
		}
	}
	return nil
}
