//go:build !linux

package load

func residentMemory() int64 { return heapMemory() }
