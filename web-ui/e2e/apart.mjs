// The steps that have an admin of their own. They run beside those of smoke.mjs, in
// a process and a browser of their own.
import './first.mjs'
import './away.mjs'
import './transfer.mjs'
import './empty.mjs'
import './logs.mjs'
import './screenshots.mjs'
