// Package engine answers: how do runs move in the database?
//
// Engine is store.Engine. Every part of it has a struct of its own, all of them
// share one core: the cache of rows that this node wrote last, the cache of
// limits, and Batch, which moves many executions in one transaction: it loads
// and locks rows in the order that gormstore's doc.go gives, lets package run
// decide, and saves.
package engine
