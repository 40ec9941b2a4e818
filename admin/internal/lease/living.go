package lease

import "time"

// noteShown counts on the sign of life that the table shows of this node, as
// on a lease: from before the table was asked for, less the margin.
func (m *Machine) noteShown(now, sentAt time.Duration) {
	for i := range m.table.Nodes {
		n := &m.table.Nodes[i]
		if n.BootID != m.cfg.BootID {
			continue
		}
		age := max(0, m.table.Now.Sub(n.RenewedAt))
		if now >= m.shown {
			m.shownSince = now
		}
		m.shown = max(m.shown, sentAt+m.cfg.TTL-Margin-age)
	}
}

// Shown returns since when no other node can have taken this one for dead;
// ok is false while one may.
func (m *Machine) Shown(now time.Duration) (since time.Duration, ok bool) {
	return m.shownSince, now < m.shown
}

// Living returns the boots of all nodes that are not dead for certain: that
// gave a sign of life within a lease's time, or hold a lease that lasts. It is
// empty while this node has not watched for long enough to say so.
func (m *Machine) Living(now time.Duration) (boots []string) {
	if _, ok := m.Shown(now); !ok || !m.steadyFor(now, Grace) {
		return nil
	}
	boots = append(boots, m.cfg.BootID)
	seen := map[string]bool{m.cfg.BootID: true, "": true}
	add := func(boot string) {
		if !seen[boot] {
			seen[boot] = true
			boots = append(boots, boot)
		}
	}
	for i := range m.table.Nodes {
		if n := &m.table.Nodes[i]; m.alive(n) {
			add(n.BootID)
		}
	}
	for i := range m.table.Leases {
		if l := &m.table.Leases[i]; l.Until.After(m.table.Now) {
			add(l.BootID)
		}
	}
	return boots
}
