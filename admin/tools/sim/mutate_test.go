package sim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBrokenRulesAreFound checks the checks: each rule that the database keeps
// is left out once, and the swarm has to see it within so many seeds.
func TestBrokenRulesAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		broken  rules
		finding string
		shards  bool
		seeds   uint64 // it has to be seen within
		from    uint64 // the first of them, where the first hit comes late
	}{
		"older fences may finish":            {rules{skipFence: true}, "", false, 60, 160},
		"a grant after the end of its offer": {rules{skipOfferEnd: true}, "", false, 60, 100},
		"a grant before its time":            {rules{grantEarly: true}, "F24", false, 20, 0},
		"a finished run keeps its slot":      {rules{keepSlot: true}, "P6", false, 20, 0},
		"a claim needs no term":              {rules{skipTerm: true}, "lease", false, 150, 300},
		"a fire time may have two rows":      {rules{skipUnique: true, planTwice: true}, "P2", false, 20, 0},
		"a slot is never full":               {rules{skipSlot: true}, "P6", false, 20, 0},
		"acknowledged before it is stored":   {rules{ackUnstored: true}, "P5", false, 100, 0},
		"lost runs are repeated":             {rules{retryLost: true}, "P3", false, 40, 60},
		"stopped runs are repeated":          {rules{stopFree: true}, "P3", false, 120, 220},
		"the end of a journal is whole":      {rules{trustEnd: true}, "P3", false, 130, 1100},
		"leases of instances do not count":   {rules{skipLease: true}, "", false, 40, 0},
		"a rest that ends takes the lease":   {rules{takeLease: true}, "", false, 100, 60},
		"a lingering run frees its slot":     {rules{freeLingering: true}, "P6", false, 40, 60},
		"a fire is passed over":              {rules{skipTrigger: true}, "P1, P2", false, 20, 0},
		"a pause leaves what was planned":    {rules{keepPlanned: true}, "P11", false, 60, 0},
		"what comes back is offered again":   {rules{startStopped: true}, "P11", false, 120, 210},
		"any number waits for a slot":        {rules{skipQueueBound: true}, "queue", false, 20, 0},
		"a limit is never full":              {rules{skipLimit: true}, "P6", false, 40, 0},
		"some failures write no alert":       {rules{dropAlert: true}, "P7", false, 40, 0},
		"no run sets a fixed delay":          {rules{standStill: true}, "fixed delay", false, 40, 0},
		"nodes believe any leap":             {rules{believeAll: true}, "F24", false, 80, 0},
		"a shard is not made":                {rules{dropShard: true}, "family", true, 20, 0},
		"a timer stays when it is claimed":   {rules{keepTimer: true}, "liveness", false, 20, 0},
		"a timer is claimed without a run":   {rules{dropTimer: true}, "P1, P2", false, 20, 0},
		"a timer that is moved is gone":      {rules{dropMoved: true}, "P1, P2", false, 20, 0},
		"a moved timer's run stays":          {rules{keepMoved: true}, "P11", false, 20, 0},
		"a parent ends before its parts":     {rules{endEarly: true}, "family", true, 20, 0},
		"offers start however old":           {rules{startOld: true}, "P4", false, 60, 80},
		"runs start however late":            {rules{skipMisfire: true}, "misfire", false, 20, 0},
		"maintenance is not looked at":       {rules{skipMaintenance: true}, "maintenance", false, 40, 0},
		"nobody loads what waits":            {rules{skipWaiting: true}, "stalled", false, 40, 0},
		"parents are forgotten":              {rules{forgetParent: true}, "liveness", true, 20, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := c.from; seed < c.from+c.seeds; seed++ {
				o, err := runWith(Case{Seed: seed, Shards: c.shards, Timers: c.broken.keepTimer || c.broken.dropTimer || c.broken.dropMoved || c.broken.keepMoved}, c.broken)
				require.NoError(t, err)
				if len(o.Broken) == 0 {
					continue
				}
				if f := Finding(o.Broken); c.finding != "" {
					require.Contains(t, f, c.finding, "seed %d: %s", seed, o.Broken[0])
				}
				t.Logf("seed %d: %s", seed, o.Broken[0])
				return
			}
			t.Fatalf("not seen in %d seeds", c.seeds)
		})
	}
}

// TestShrinkingLeavesWhatIsNeeded: a broken rule with a fault that shows it.
func TestShrinkingLeavesWhatIsNeeded(t *testing.T) {
	broken := rules{retryLost: true}
	fails := func(c Case) (bool, []string) {
		o, err := runWith(c, broken)
		require.NoError(t, err)
		return Finding(o.Broken) == "P3", o.Injected
	}
	for seed := uint64(60); seed < 160; seed++ {
		ok, injected := fails(Case{Seed: seed})
		if !ok || len(injected) < 10 {
			continue
		}
		small := Shrink(Case{Seed: seed}, injected, 300, fails)
		ok, _ = fails(small)
		require.True(t, ok)
		require.Less(t, len(small.Only), len(injected)/2, "%q", small.Only)
		for i := range small.Only { // none of them can be left out
			less := Case{Seed: seed, Only: append(append([]string{}, small.Only[:i]...), small.Only[i+1:]...)}
			ok, _ = fails(less)
			require.False(t, ok, "%q is not needed", small.Only[i])
		}
		t.Logf("seed %d: %d faults became %q", seed, len(injected), small.Only)
		return
	}
	t.Fatal("no seed shows it")
}
