// Package telemetry answers: what does a node count and trace of its runs?
//
// It stands above the rooms. Steps passes calls to the store on and counts them, Gauges
// reads the numbers that rooms keep of themselves, and Senders puts spans around tellings.
// No room knows it.
package telemetry
