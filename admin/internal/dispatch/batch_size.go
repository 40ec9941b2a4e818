package dispatch

// The shape of dispatch's transactions, for whoever measures what the same
// transactions cost alone.
const (
	OfferBatch   = offerBatch   // executions in one offer or grant, at most
	OfferWorkers = offerWorkers // offers, and grants, under way at once
)
