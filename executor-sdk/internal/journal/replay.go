package journal

// Life is what one process has written.
type Life struct {
	Boot    string
	Records []Record
}

// Replay returns what is owed after these lives, oldest first, as Open would
// find it. It is for simulation.
func Replay(lives []Life) []Entry {
	l := newLedger()
	for _, life := range lives {
		l.apply(Record{Kind: kindBoot, Body: []byte(life.Boot)})
		for _, r := range life.Records {
			l.apply(r)
		}
	}
	var out []Entry
	for _, e := range l.sorted() {
		out = append(out, *e)
	}
	return out
}
