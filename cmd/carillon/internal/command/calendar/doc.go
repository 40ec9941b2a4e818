// Package calendar answers: on which days do jobs not fire, or fire although it is
// a holiday?
package calendar
