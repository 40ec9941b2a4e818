package journal

// Life is what one process has written.
type Life struct {
	Boot    string
	Machine Machine
	Records []Record
}

// Replay returns what is owed after these lives, oldest first, as Open would
// find it on a machine. It is for simulation.
func Replay(lives []Life, on Machine) []Entry {
	l := newLedger()
	for i, life := range lives {
		l.apply(bootRecord(life.Boot, life.Machine))
		for _, r := range life.Records {
			l.apply(r)
		}
		next := on
		if i+1 < len(lives) {
			next = lives[i+1].Machine
		}
		if !life.Machine.kept(next) {
			l.doubt()
		}
	}
	var out []Entry
	for _, e := range l.sorted() {
		out = append(out, *e)
	}
	return out
}
