// Package shop is the business of the sample shop: customers, orders,
// payments and stock in a SQLite file of its own. It knows nothing of
// Carillon but the marker comments on its handlers (orders.go, stock.go); an
// application of yours would look like this.
package shop
