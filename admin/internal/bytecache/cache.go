// Package bytecache answers: which values that were computed or read lately does a node keep?
package bytecache

import (
	"container/list"
	"sync"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Cache keeps values that were used lately, up to a number of values and of bytes. Each
// value has an owner. If there is no room, the value goes that the owner with most bytes has
// not used for longest, so that no tenant takes the room of others. It is safe for
// concurrent use.
type Cache[K comparable, V any] struct {
	most  int   // values
	bytes int64 // the most that all of them may have

	mu      sync.Mutex
	entries map[K]*list.Element        // guarded by mu
	owners  map[domain.TenantID]*share // guarded by mu; those with values
	held    int64                      // guarded by mu: bytes of all
	largest *share                     // guarded by mu: the owner that lost a value last, or nil
}

type share struct {
	id    domain.TenantID
	bytes int64
	used  list.List // of entry, the one used last first
}

type entry[K comparable, V any] struct {
	key   K
	value V
	size  int64
	owner *share
}

// New returns a cache of at most so many values and bytes.
func New[K comparable, V any](most int, bytes int64) *Cache[K, V] {
	return &Cache[K, V]{most: most, bytes: bytes, entries: map[K]*list.Element{}, owners: map[domain.TenantID]*share{}}
}

// Get returns a value, which counts as used.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.entries[key]
	if !ok {
		return value, false
	}
	e := at.Value.(*entry[K, V])
	e.owner.used.MoveToFront(at)
	return e.value, true
}

// Peek returns a value, which does not count as used.
func (c *Cache[K, V]) Peek(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.entries[key]
	if !ok {
		return value, false
	}
	return at.Value.(*entry[K, V]).value, true
}

// Add keeps a value of so many bytes, unless it is larger than a sixteenth of the cache.
func (c *Cache[K, V]) Add(key K, value V, owner domain.TenantID, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(key)
	if size > c.bytes/16 {
		return
	}
	for len(c.entries) > 0 && (len(c.entries) >= c.most || c.held+size > c.bytes) {
		c.remove(c.victim().used.Back().Value.(*entry[K, V]).key)
	}
	o := c.owners[owner]
	if o == nil {
		o = &share{id: owner}
		c.owners[owner] = o
	}
	c.entries[key] = o.used.PushFront(&entry[K, V]{key, value, size, o})
	o.bytes += size
	c.held += size
}

// victim is the owner with most bytes. It is looked for among all when the last one has less
// than its part; mu is held.
func (c *Cache[K, V]) victim() *share {
	if l := c.largest; l != nil && l.used.Len() > 0 && l.bytes > c.held/2 {
		return l
	}
	c.largest = nil
	for _, o := range c.owners {
		if l := c.largest; l == nil || o.bytes > l.bytes || o.bytes == l.bytes && o.id < l.id {
			c.largest = o
		}
	}
	return c.largest
}

// Remove forgets a value.
func (c *Cache[K, V]) Remove(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(key)
}

func (c *Cache[K, V]) remove(key K) {
	at, ok := c.entries[key]
	if !ok {
		return
	}
	e := at.Value.(*entry[K, V])
	delete(c.entries, key)
	e.owner.used.Remove(at)
	e.owner.bytes -= e.size
	c.held -= e.size
	if e.owner.used.Len() == 0 {
		delete(c.owners, e.owner.id)
	}
}

// Purge forgets all values.
func (c *Cache[K, V]) Purge() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.entries)
	clear(c.owners)
	c.held, c.largest = 0, nil
}

// Held is how many values and bytes there are.
func (c *Cache[K, V]) Held() (values int, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries), c.held
}
