package docs

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCellsOnPaper computes what docs/dev/scale.md says of 10,000 tenants that fire a
// million times a second together, of which the n-th fires an n-th as often as the
// first (Zipf's law), in cells that carry 5,000 fires a second.
func TestCellsOnPaper(t *testing.T) {
	const tenants, total, cell = 10_000, 1e6, 5000.0
	sum := 0.0
	for n := 1; n <= tenants; n++ {
		sum += 1 / float64(n)
	}
	var rest []float64
	var large, largest, all float64
	for n := 1; n <= tenants; n++ {
		load := total / sum / float64(n)
		largest = max(largest, load)
		if load > cell {
			large++
		} else {
			rest, all = append(rest, load), all+load
		}
	}
	var packed []float64 // each tenant where it fits first, the larger ones first
	for _, load := range rest {
		at := slices.IndexFunc(packed, func(has float64) bool { return has+load <= cell })
		if at < 0 {
			at, packed = len(packed), append(packed, 0)
		}
		packed[at] += load
	}
	var fullest []float64 // of 200 cells, when tenants are spread by chance
	for seed := range uint64(200) {
		r, cells := rand.New(rand.NewPCG(seed, 1)), make([]float64, 200)
		for _, load := range rest {
			cells[r.IntN(len(cells))] += load
		}
		fullest = append(fullest, slices.Max(cells))
	}
	slices.Sort(fullest)
	page, err := os.ReadFile("../../docs/dev/scale.md")
	require.NoError(t, err)
	for _, says := range []string{
		fmt.Sprintf("the largest one fires %.0f,000 times a second", largest/1000),
		fmt.Sprintf("%.0f are larger than a cell", large),
		fmt.Sprintf("the other %d fire %.0f,000 times a second together", len(rest), all/1000),
		fmt.Sprintf("fit into %d cells", len(packed)),
		fmt.Sprintf("the fullest one has %.1f times what it carries", fullest[len(fullest)/2]/cell),
	} {
		require.True(t, strings.Contains(string(page), says), "the page should say: %s", says)
	}
}
