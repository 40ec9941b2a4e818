package runner

const (
	// maxSeen bounds the executions remembered for refusing repeated offers.
	maxSeen = 1 << 17
	// maxRefused bounds the refusals remembered.
	maxRefused = 1 << 14
)

// history knows which offers came before, longer than there are attempts of them.
type history struct {
	seen    map[int64]int64 // execution → highest fence that was taken
	order   []Key           // of arrival in seen, for forgetting
	maxSeen int
	// refused are one-step offers that were refused. Their copies are refused
	// as well: the admin gives the run to another one for the first answer.
	refused      map[Key]bool
	refusedOrder []Key // of arrival
}

func newHistory(maxSeen int) history {
	return history{seen: map[int64]int64{}, maxSeen: maxSeen, refused: map[Key]bool{}}
}

// take notes that the attempt was taken, so that it is never taken again.
func (h *history) take(k Key) {
	h.seen[k.Execution] = k.Fence
	h.order = append(h.order, k)
	if len(h.order) <= h.maxSeen {
		return
	}
	oldest := h.order[0]
	h.order = h.order[1:]
	if h.seen[oldest.Execution] == oldest.Fence {
		delete(h.seen, oldest.Execution)
	}
}

// refuse notes that the offer was refused.
func (h *history) refuse(k Key) {
	if h.refused[k] {
		return
	}
	h.refused[k] = true
	h.refusedOrder = append(h.refusedOrder, k)
	if len(h.refusedOrder) > maxRefused {
		delete(h.refused, h.refusedOrder[0])
		h.refusedOrder = h.refusedOrder[1:]
	}
}
