// Smoke test of the pages in real Chromium against a running product with an
// executor online. Settings by CARILLON_E2E_* variables: see browser.mjs.
// The steps build on each other, in the order in which a person would go.
import './session.mjs'
import './jobs.mjs'
import './runs.mjs'
import './engine.mjs'
import './connections.mjs'
import './alerts.mjs'
import './maintenance.mjs'
import './executors.mjs'
import './lists.mjs'
import './timers.mjs'
import './focus.mjs'
import './access.mjs'
import './tenants.mjs'
import './pages.mjs'
import './docs.mjs'
import './ending.mjs'
