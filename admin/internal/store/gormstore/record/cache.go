package record

import (
	lru "github.com/hashicorp/golang-lru/v2"
)

// NewCache returns a cache of at most size entries, which has to be positive.
func NewCache[K comparable, V any](size int) *lru.Cache[K, V] {
	cache, err := lru.New[K, V](size)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return cache
}
