package batch

// Groups sorts items by what they belong to. Keys and items stay in the order
// in which they came, so that what is done with them does not depend on chance.
type Groups[K comparable, T any] []Group[K, T]

// Group is the items of one key.
type Group[K comparable, T any] struct {
	Key   K
	Items []T
}

// Add enters an item. It looks through the keys, which are to be few.
func (g *Groups[K, T]) Add(key K, item T) {
	for i := range *g {
		if (*g)[i].Key == key {
			(*g)[i].Items = append((*g)[i].Items, item)
			return
		}
	}
	*g = append(*g, Group[K, T]{Key: key, Items: []T{item}})
}
