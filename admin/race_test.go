//go:build race

package admin_test

// memoryFactor is what the race detector makes of a program's memory: 5 to 10
// times as much (go.dev/doc/articles/race_detector).
const memoryFactor = 8
