// The tour of make test: a person signs in, makes a job, runs it, looks at its run and at
// every page. smoke.mjs has all steps.
import './session.mjs'
import './jobs.mjs'
import './runs.mjs'
import './tourpages.mjs'
import './docs.mjs'
import './leaving.mjs'
