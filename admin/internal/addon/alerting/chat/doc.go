// Package chat answers: how is an alert told in the products that people use?
//
// One file per product says what its message looks like, how a request says who
// it is, and what the answers mean: some say "no" in a 200. Users' texts go into
// fields that give no sign a meaning (plain text), and are escaped where a product
// has none, so that nobody's error message calls everybody or shows a link.
// Messages are cut, with a mark, before the product would refuse them.
package chat
