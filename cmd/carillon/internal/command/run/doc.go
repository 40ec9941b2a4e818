// Package run answers: what became of a job's runs? It starts, lists, explains,
// stops and repeats them, waits for their end, shows their logs and statistics, and
// deletes them.
package run
