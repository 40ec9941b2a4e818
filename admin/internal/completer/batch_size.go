package completer

// The shape of the transactions that store results. Larger batches than 200 to
// 500 rows gain nothing (the knee of the measured curve).
const (
	ResultBatch   = 500 // results in one transaction, at most
	ResultWorkers = 2   // transactions under way at once
	StepBatch     = 100 // steps in one transaction: a result has up to 64 KiB
)
