// Package agent answers one question: how do jobs run that no application
// has, scripts and HTTP calls?
//
// An Agent is an executor without an application, built on the executor SDK.
// All that it can do is off until it is switched on (Options): each language
// of scripts, and each host that may be called. What is on is registered as a
// handler, script.LANGUAGE or http.request; what is not registered is refused
// by the SDK.
//
// A script is one revision that the admin keeps. Its digest, and with keys its
// signature, are checked before anything runs. Then it runs so:
//
//	agent ── starts ──▶ supervisor ── starts ──▶ launcher ══ becomes ══▶ interpreter
//	  │ pipe: what to start; "t" = stop; end of the pipe = the agent is dead
//	  ◀─ pipe: how it ended
//
// The supervisor is this program again. It is the reaper of all that the
// script starts, however far these detach themselves: nothing of a run is
// left when the supervisor reports, and when the agent dies, its scripts die
// with it. The launcher is this program once more; it takes on the limits and
// then becomes the interpreter. Both are needed, because limits that the
// supervisor had itself could end it before what it supervises.
package agent
