// Package output writes answers for people and for programs: data on standard
// output in the format that -o asks for, and nothing else there.
//
// Tables are for people: they drop columns to fit the terminal's width, colour
// states on a terminal, and show control characters of foreign text in a
// harmless form. JSON and YAML are for programs: exactly what the server said.
package output
