package gateway

// Occupancy counts the slots of an instance, as one node knows them. They are
// known from two sides: what this node offered and has not heard the end of, and
// what the instance counts, on all nodes' behalf, in its heartbeats. The first is
// newer; but an attempt that was offered here may end elsewhere, and then the
// second knows better. The zero value is an instance without slots. It is not
// safe for concurrent use.
type Occupancy struct {
	slots    int
	reported int    // slots in use, as last reported, less what ended here since
	taken    int    // slots of what was offered here and has not ended
	young    [2]int // of taken: offered since the last heartbeat, and since the one before
	beats    int64  // heartbeats so far
	surplus  int    // heartbeats in a row that told of less than taken
}

// SetSlots says how many slots the instance has.
func (o *Occupancy) SetSlots(n int) { o.slots = n }

// Occupied returns how many slots are taken: what was reported, of all nodes, and
// what was offered here since. What was offered between the last two heartbeats is
// in what was reported, unless this node alone has more. Older attempts are in it,
// or they are over.
func (o *Occupancy) Occupied() int {
	since := o.reported + o.young[0]
	return min(since+o.young[1], max(o.taken, since))
}

// Free returns how many slots are not taken.
func (o *Occupancy) Free() int { return o.slots - o.Occupied() }

// Counted takes a heartbeat's count of slots in use.
func (o *Occupancy) Counted(running int) {
	o.reported = running
	o.beats++
	o.young = [2]int{0, o.young[0]}
	if o.surplus++; o.taken <= o.reported {
		o.surplus = 0
	}
}

// Take gives an attempt its slots, and returns the heartbeat after which it did.
func (o *Occupancy) Take(weight int) (beat int64) {
	o.taken += weight
	o.young[0] += weight
	return o.beats
}

// Drop takes the slots back of an attempt that the instance does not report any
// more.
func (o *Occupancy) Drop(beat int64, weight int) {
	o.taken -= weight
	if age := o.beats - beat; age < int64(len(o.young)) {
		o.young[age] -= weight
	}
}

// End takes the slots back of an attempt of which the instance said, or is told,
// that it is over.
func (o *Occupancy) End(beat int64, weight int) {
	o.Drop(beat, weight)
	if beat < o.beats { // the last heartbeat may have counted it
		o.reported = max(0, o.reported-weight)
	}
}

// Full takes an instance at its word that it has no room for an attempt of this
// weight. It counts like a heartbeat that tells so: others are offered when one of
// its attempts ends here, or when it tells of room. To offer the place of the
// refused one again would only be refused again.
func (o *Occupancy) Full(weight int) {
	o.Counted(max(o.reported, o.slots-max(weight, 1)+1))
}
