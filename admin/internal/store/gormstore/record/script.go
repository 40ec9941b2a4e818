package record

// States of scripts.
const (
	ScriptLive    = 1
	ScriptDeleted = 3 // until the retention has taken it
)
