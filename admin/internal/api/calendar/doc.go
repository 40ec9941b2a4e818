// Package calendar answers: on which days and in which windows does nothing fire?
//
// Jobs name calendars in their schedules: Choose finds these.
package calendar
