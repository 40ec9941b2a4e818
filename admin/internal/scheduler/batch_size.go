package scheduler

// ClaimLimit is how many triggers one claim takes at most, for whoever
// measures what the same transactions cost alone. One claim is under way at a
// time on a node.
const ClaimLimit = claimLimit
