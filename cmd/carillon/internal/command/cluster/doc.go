// Package cluster answers: in which state is the installation? Nodes, partitions,
// clock and database, other cells, refused processes, and maintenance.
package cluster
