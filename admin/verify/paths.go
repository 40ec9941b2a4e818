package verify

import "errors"

// CheckPaths judges files, and the *.jsonl files of folders and of the folders
// in them, as Check judges what ReadPaths reads of them. Runs and rows are kept
// in temporary files below dir ("" = the usual place) and judged some jobs at
// a time: memory grows with the largest job, and by some bytes for each start,
// whose lateness is kept.
func CheckPaths(dir string, paths ...string) (report *Report, err error) {
	s, err := newSpool(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	r := NewReader()
	r.takeRun, r.takeRow = s.run, s.row
	if err := r.readPaths(paths); err != nil {
		return nil, err
	}
	if err := s.flush(); err != nil {
		return nil, err
	}
	o, err := newOverall(r.History())
	if err != nil {
		return nil, err
	}
	for part := range spoolParts {
		if err := s.read(part, o.seeRun, o.seeRow); err != nil {
			return nil, err
		}
	}
	calls := map[int][]Call{}
	for _, c := range r.h.Calls {
		calls[partOf(c.Job)] = append(calls[partOf(c.Job)], c)
	}
	groups, err := s.groups()
	if err != nil {
		return nil, err
	}
	for _, group := range groups {
		part := NewReader()
		for _, i := range group {
			part.h.Calls = append(part.h.Calls, calls[i]...)
			err := s.read(i, func(run *Run) { part.join(*run) }, func(row *Row) { part.h.Rows = append(part.h.Rows, *row) })
			if err != nil {
				return nil, err
			}
		}
		o.judge(part.History())
	}
	o.sum(r.h.Torn)
	return o.report, nil
}
