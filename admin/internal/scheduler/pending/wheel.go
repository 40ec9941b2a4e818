package pending

import "math/bits"

// Wheel is a hierarchical time wheel: four levels of 256 slots, of 1 ms, 256
// ms, 65.5 s and 4.7 h. A value lies in the lowest level whose current turn
// still holds its millisecond, and moves down (cascades) when the slot that it
// lies in is reached: at most three times. What is beyond 49.7 days waits in a
// list of its own. Adding and cancelling cost the same however many values
// there are; so does taking out, spread over all.
//
// Make it with NewWheel.
type Wheel[T any] struct {
	arena arena[T]
	// current is the first millisecond that was not taken out yet. Values
	// before it, added late, lie in the list ready.
	current int64
	heads   [lists]uint32
	tails   [lists]uint32
	full    [levels][slotsPerLevel / 64]uint64 // which slots hold something
}

const (
	levels        = 4
	levelBits     = 8
	slotsPerLevel = 1 << levelBits
	// The lists that are no slots.
	listReady  = levels * slotsPerLevel
	listBeyond = listReady + 1
	lists      = listBeyond + 1

	nanosPerTick = 1_000_000
	// stepBack is how far the clock may go back before everything is put in
	// place anew; below that, late values are looked at one by one.
	stepBack = 1000 // milliseconds
)

var _ Queue[int] = (*Wheel[int])(nil)

// NewWheel returns an empty wheel whose time is now.
func NewWheel[T any](now int64) *Wheel[T] { return &Wheel[T]{current: now / nanosPerTick} }

// tickOf rounds up: nothing comes out early, and what is planned by the
// millisecond, as everything in the database is, not late either.
func tickOf(at int64) int64 {
	if at <= 0 {
		return 0
	}
	tick := at / nanosPerTick
	if at%nanosPerTick > 0 {
		tick++
	}
	return tick
}

// Add implements Queue.
func (w *Wheel[T]) Add(at int64, value T) Handle {
	i, n := w.arena.take()
	n.at, n.value = at, value
	w.place(i, n)
	return Handle(uint64(n.generation)<<32 | uint64(i))
}

// Len implements Queue.
func (w *Wheel[T]) Len() int { return w.arena.used }

// Cancel implements Queue.
func (w *Wheel[T]) Cancel(h Handle) bool {
	i, generation := uint32(h), uint32(h>>32)
	if i == 0 || int(i>>chunkBits) >= len(w.arena.chunks) {
		return false
	}
	n := w.arena.node(i)
	if n.generation != generation || n.list == listFree {
		return false
	}
	w.unlink(n)
	w.arena.put(i)
	return true
}

// place puts a node at the end of the list that it belongs to now.
func (w *Wheel[T]) place(i uint32, n *node[T]) {
	list := w.listOf(tickOf(n.at))
	n.list, n.prev, n.next = list, w.tails[list], 0
	if n.prev != 0 {
		w.arena.node(n.prev).next = i
	} else {
		w.heads[list] = i
		if list < listReady {
			level, slot := list>>levelBits, list&(slotsPerLevel-1)
			w.full[level][slot/64] |= 1 << (slot % 64)
		}
	}
	w.tails[list] = i
}

// listOf finds the level by the highest digit, to the base of 256, in which
// the tick differs from the current one.
func (w *Wheel[T]) listOf(tick int64) int32 {
	if tick < w.current {
		return listReady
	}
	level := (bits.Len64(uint64(tick^w.current)|1) - 1) / levelBits
	if level >= levels {
		return listBeyond
	}
	return int32(level<<levelBits) | int32(tick>>(level*levelBits))&(slotsPerLevel-1)
}

func (w *Wheel[T]) unlink(n *node[T]) {
	list := n.list
	if n.prev != 0 {
		w.arena.node(n.prev).next = n.next
	} else {
		w.heads[list] = n.next
	}
	if n.next != 0 {
		w.arena.node(n.next).prev = n.prev
	} else {
		w.tails[list] = n.prev
	}
	if w.heads[list] == 0 {
		w.empty(list)
	}
}

func (w *Wheel[T]) empty(list int32) {
	w.heads[list], w.tails[list] = 0, 0
	if list < listReady {
		level, slot := list>>levelBits, list&(slotsPerLevel-1)
		w.full[level][slot/64] &^= 1 << (slot % 64)
	}
}

// Next implements Queue.
func (w *Wheel[T]) Next() (int64, bool) {
	if w.arena.used == 0 {
		return 0, false
	}
	if i := w.heads[listReady]; i != 0 {
		at := w.arena.node(i).at
		for ; i != 0; i = w.arena.node(i).next {
			at = min(at, w.arena.node(i).at)
		}
		return at, true
	}
	tick, _ := w.nextList()
	return tick * nanosPerTick, true
}

// nextList returns the first millisecond at which a list has to be looked at,
// and the list; -1 when there is none but the ready one. When several begin in
// the same millisecond the highest level comes first: its values may belong
// there.
func (w *Wheel[T]) nextList() (tick int64, list int32) {
	list = -1
	for level := range levels {
		shift := level * levelBits
		slot := w.nextSlot(level, int(w.current>>shift)&(slotsPerLevel-1))
		if slot < 0 {
			continue
		}
		begin := max(w.current, w.current>>(shift+levelBits)<<(shift+levelBits)|int64(slot)<<shift)
		if list < 0 || begin <= tick {
			tick, list = begin, int32(level<<levelBits|slot)
		}
	}
	if list < 0 && w.heads[listBeyond] != 0 {
		const turn = levels * levelBits
		return (w.current>>turn + 1) << turn, listBeyond
	}
	return tick, list
}

// nextSlot returns the first slot of a level from one on that holds something,
// or -1.
func (w *Wheel[T]) nextSlot(level, from int) int {
	for word := from / 64; word < slotsPerLevel/64; word++ {
		set := w.full[level][word]
		if word == from/64 {
			set &= ^uint64(0) << (from % 64)
		}
		if set != 0 {
			return word*64 + bits.TrailingZeros64(set)
		}
	}
	return -1
}

// PopDue implements Queue.
func (w *Wheel[T]) PopDue(now int64, out []T) []T {
	last := now / nanosPerTick // the last millisecond that has begun
	if last < w.current-stepBack {
		w.rewind(last)
	}
	out = w.popReady(now, out)
	for w.arena.used > 0 {
		tick, list := w.nextList()
		if list < 0 || tick > last {
			break
		}
		w.current = tick
		if list < slotsPerLevel { // level 0: all of it is due
			out = w.popList(list, out)
			continue
		}
		w.cascade(list)
	}
	w.current = max(w.current, last+1)
	return out
}

// popReady takes out what was added late. The clock may have stepped back a
// little, so each is looked at.
func (w *Wheel[T]) popReady(now int64, out []T) []T {
	for i := w.heads[listReady]; i != 0; {
		n := w.arena.node(i)
		next := n.next
		if n.at <= now {
			out = append(out, n.value)
			w.unlink(n)
			w.arena.put(i)
		}
		i = next
	}
	return out
}

func (w *Wheel[T]) popList(list int32, out []T) []T {
	for i := w.heads[list]; i != 0; {
		n := w.arena.node(i)
		next := n.next
		out = append(out, n.value)
		w.arena.put(i)
		i = next
	}
	w.empty(list)
	return out
}

// cascade puts the values of a slot that was reached into lower levels.
func (w *Wheel[T]) cascade(list int32) {
	i := w.heads[list]
	w.empty(list)
	for i != 0 {
		n := w.arena.node(i)
		next := n.next
		w.place(i, n)
		i = next
	}
}

// rewind puts everything in place anew after the clock was set back.
func (w *Wheel[T]) rewind(to int64) {
	var all []uint32
	for list := range int32(lists) {
		for i := w.heads[list]; i != 0; i = w.arena.node(i).next {
			all = append(all, i)
		}
		w.empty(list)
	}
	w.current = to
	for _, i := range all {
		w.place(i, w.arena.node(i))
	}
}
