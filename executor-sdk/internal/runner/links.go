package runner

import "slices"

// linkState is what the machine knows of a session.
type linkState struct {
	link    Link
	renewed bool // its node renewed the lease when last asked
}

// links are the sessions that stand, in the order they registered.
type links []*linkState

// up reports whether a session stands.
func (all links) up(link Link) bool {
	return slices.ContainsFunc(all, func(l *linkState) bool { return l.link == link })
}

// choose picks the session for results and questions, nil if there is none. It prefers
// sessions other than avoid, then those that renew the lease, then origin.
func (all links) choose(origin, avoid Link) Link {
	var best Link
	score := -1
	for _, l := range all {
		s := 0
		if l.link != avoid {
			s += 4
		}
		if l.renewed {
			s += 2
		}
		if l.link == origin {
			s++
		}
		if s > score {
			best, score = l.link, s
		}
	}
	return best
}
