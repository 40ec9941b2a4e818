package pending

// arena keeps the nodes of a wheel in chunks that never move: a value of some
// hundred bytes is copied in once and out once, however often its node changes
// lists. Nodes are named by number; number 0 is none.
type arena[T any] struct {
	chunks []*[chunkSize]node[T]
	free   uint32 // first of the free nodes, linked by next
	used   int
	base   uint32 // generation of new nodes
}

const (
	chunkBits = 8
	chunkSize = 1 << chunkBits
	// keepChunks is what an empty arena keeps for the next values.
	keepChunks = 64
)

type node[T any] struct {
	at         int64
	prev, next uint32
	list       int32  // the list it is in; listFree when none
	generation uint32 // grows each time it is taken, so that old handles miss
	value      T
}

const listFree = -1

func (a *arena[T]) node(i uint32) *node[T] { return &a.chunks[i>>chunkBits][i&(chunkSize-1)] }

func (a *arena[T]) take() (uint32, *node[T]) {
	if a.free == 0 {
		a.grow()
	}
	i := a.free
	n := a.node(i)
	a.free = n.next
	a.used++
	n.generation++
	return i, n
}

func (a *arena[T]) grow() {
	chunk := new([chunkSize]node[T])
	base := uint32(len(a.chunks)) << chunkBits
	a.chunks = append(a.chunks, chunk)
	for i := chunkSize - 1; i >= 0; i-- {
		if base+uint32(i) == 0 {
			continue // number 0 is none
		}
		chunk[i].list, chunk[i].generation = listFree, a.base
		chunk[i].next, a.free = a.free, base+uint32(i)
	}
}

// put gives a node back, and the memory of many nodes once the last one is.
func (a *arena[T]) put(i uint32) {
	n := a.node(i)
	var none T
	n.value, n.list = none, listFree
	n.next, a.free = a.free, i
	a.used--
	if a.used == 0 && len(a.chunks) > keepChunks {
		a.shrink()
	}
}

// shrink keeps the first chunks. base makes generations of later chunks begin
// beyond those that were dropped, so that no old handle fits a new node.
func (a *arena[T]) shrink() {
	for _, c := range a.chunks[keepChunks:] {
		for i := range c {
			a.base = max(a.base, c[i].generation)
		}
	}
	a.chunks = append([]*[chunkSize]node[T](nil), a.chunks[:keepChunks]...)
	a.free = 0
	for at, c := range a.chunks {
		for i := range c {
			if number := uint32(at)<<chunkBits + uint32(i); number != 0 {
				c[i].next, a.free = a.free, number
			}
		}
	}
}
