// Package completer answers: what came back?
//
// Results are written in batches, each with everything that belongs to it
// (state, freed slot, archived attempt, alert event) in one transaction, and
// only then acknowledged. A result that cannot be stored is tried again until
// its session ends; the executor keeps it in its journal until it is
// acknowledged, by this node or by another.
package completer
