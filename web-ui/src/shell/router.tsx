// Addresses. Every filter lives in the address, typed and checked by
// lib/search.ts; every page is its own chunk.
import { createRootRoute, createRoute, createRouter, lazyRouteComponent, Outlet, redirect } from '@tanstack/react-router'
import { queryClient } from '../api/queries'
import { ensureSession, getSession, subscribeSession } from '../api/session'
import type { Needs } from './Permitted'
import { NotFoundPage, RouteError, RoutePending } from './RouteStates'
import { Shell } from './Shell'
import { basePath } from '../lib/base'
import { loadChunk } from '../lib/chunk'
import { leavePage } from '../lib/focus'
import { safeNext } from '../lib/next'
import { deliveriesSearch, incidentsSearch, jobsSearch, parseSearch, runsSearch, stringifySearch, timersSearch, whySearch } from '../lib/search'
import { movedTo } from './moved'
import { inTenant, rewrite, splitTenant } from './tenantPath'

/** A page of its own chunk. */
const page = <T extends Record<string, unknown>, K extends keyof T>(load: () => Promise<T>, name: K) => lazyRouteComponent(() => loadChunk(load), name)

/** The words of an address that a page knows. The router would hand all others on, and the server refuses them. */
function only<T extends object>(known: (raw: Record<string, unknown>) => T): (raw: Record<string, unknown>) => T {
  return (raw) => ({ ...Object.fromEntries(Object.keys(raw).map((key) => [key, undefined])), ...known(raw) })
}

const cursorSearch = (raw: Record<string, unknown>): { cursor?: string } => (typeof raw.cursor === 'string' && raw.cursor ? { cursor: raw.cursor } : {})

const root = createRootRoute({ staticData: { needs: 'anyone' }, component: Outlet, notFoundComponent: NotFoundPage, errorComponent: RouteError })

const login = createRoute({
  staticData: { needs: 'anyone' },
  getParentRoute: () => root,
  path: '/login',
  component: page(() => import('../areas/login/LoginPage'), 'LoginPage'),
  validateSearch: only((raw): { next?: string } => {
    const next = safeNext(raw.next)
    return next ? { next } : {}
  }),
})

/** For whoever writes a client: nobody has to be signed in. */
const docs = createRoute({
  staticData: { needs: 'anyone' },
  getParentRoute: () => root,
  path: '/docs',
  component: lazyRouteComponent(() => import('../areas/docs/DocsPage'), 'DocsPage'),
})

const password = createRoute({
  staticData: { needs: 'anyone' },
  getParentRoute: () => root,
  path: '/password',
  component: page(() => import('../areas/login/PasswordPage'), 'PasswordPage'),
  validateSearch: only((raw): { next?: string } => {
    const next = safeNext(raw.next)
    return next ? { next } : {}
  }),
  beforeLoad: async () => {
    if (!(await ensureSession())) throw redirect({ to: '/login' })
  },
})

const app = createRoute({
  staticData: { needs: 'anyone' },
  getParentRoute: () => root,
  id: 'app',
  component: Shell,
  notFoundComponent: NotFoundPage,
  beforeLoad: async ({ location }) => {
    const session = await ensureSession()
    const next = location.href === '/' ? undefined : location.publicHref.slice(basePath.length)
    if (!session) throw redirect({ to: '/login', search: { next } })
    if (session.user.mustChangePassword) throw redirect({ to: '/password', search: { next } })
  },
})

/** An unknown address, inside the shell. */
const unknown = createRoute({ staticData: { needs: 'viewer' }, getParentRoute: () => app, path: '$', component: NotFoundPage })

const index = createRoute({
  staticData: { needs: 'anyone' },
  getParentRoute: () => app,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/overview', replace: true })
  },
})

const overview = createRoute({
  staticData: { needs: 'viewer' },
  getParentRoute: () => app,
  path: '/overview',
  component: page(() => import('../areas/overview/OverviewPage'), 'OverviewPage'),
})
const jobs = createRoute({
  staticData: { needs: 'viewer' },
  getParentRoute: () => app,
  path: '/jobs',
  validateSearch: only(jobsSearch),
  component: page(() => import('../areas/jobs/JobsPage'), 'JobsPage'),
})
const jobNew = createRoute({
  staticData: { needs: 'editor' },
  getParentRoute: () => app,
  path: '/jobs/new',
  validateSearch: only((raw): { executorId?: string; handler?: string } => ({
    ...(typeof raw.executorId === 'string' ? { executorId: raw.executorId } : {}),
    ...(typeof raw.handler === 'string' ? { handler: raw.handler } : {}),
  })),
  component: page(() => import('../areas/jobs/form/JobEditPage'), 'JobNewPage'),
})
const job = createRoute({
  staticData: { needs: 'viewer' },
  getParentRoute: () => app,
  path: '/jobs/$jobId',
  validateSearch: whySearch,
  component: page(() => import('../areas/jobs/JobPage'), 'JobPage'),
})
const jobOverview = createRoute({
  staticData: { needs: 'viewer' },
  getParentRoute: () => job,
  path: '/',
  validateSearch: only((raw) => ({ ...runsSearch(raw), ...whySearch(raw) })),
  component: page(() => import('../areas/jobs/JobPage'), 'JobOverviewTab'),
})
const jobRuns = createRoute({
  staticData: { needs: 'viewer' },
  getParentRoute: () => job,
  path: '/runs',
  validateSearch: only((raw) => ({ ...runsSearch(raw), ...whySearch(raw) })),
  component: page(() => import('../areas/jobs/JobRuns'), 'JobRunsTab'),
})
const jobChanges = createRoute({
  staticData: { needs: 'viewer' },
  getParentRoute: () => job,
  path: '/changes',
  validateSearch: only((raw) => ({ ...cursorSearch(raw), ...whySearch(raw) })),
  component: page(() => import('../areas/jobs/change/JobChanges'), 'JobChangesTab'),
})
const jobEdit = createRoute({
  staticData: { needs: 'editor' },
  getParentRoute: () => app,
  path: '/jobs/$jobId/edit',
  component: page(() => import('../areas/jobs/form/JobEditPage'), 'JobEditPage'),
})
const runs = createRoute({
  staticData: { needs: 'viewer' },
  getParentRoute: () => app,
  path: '/runs',
  validateSearch: only(runsSearch),
  component: page(() => import('../areas/runs/RunsPage'), 'RunsPage'),
})
/** Pictures and states from fixed data. No page leads here. */
const gallery = createRoute({
  staticData: { needs: 'viewer', whole: true },
  getParentRoute: () => app,
  path: '/dev/gallery',
  component: page(() => import('../areas/dev/GalleryPage'), 'GalleryPage'),
})
const run = createRoute({
  staticData: { needs: 'viewer' },
  getParentRoute: () => app,
  path: '/runs/$runId',
  component: page(() => import('../areas/runs/RunPage'), 'RunPage'),
})
const timers = createRoute({
  staticData: { needs: 'operator' },
  getParentRoute: () => app,
  path: '/timers',
  validateSearch: only(timersSearch),
  component: page(() => import('../areas/timers/TimersPage'), 'TimersPage'),
})
const executors = createRoute({
  staticData: { needs: 'viewer' },
  getParentRoute: () => app,
  path: '/executors',
  validateSearch: only((raw): { q?: string; view?: 'table' | 'deleted'; cursor?: string } => ({
    ...(typeof raw.q === 'string' && raw.q ? { q: raw.q } : {}),
    ...(raw.view === 'table' || raw.view === 'deleted' ? { view: raw.view } : {}),
    ...cursorSearch(raw),
  })),
  component: page(() => import('../areas/executors/ExecutorsPage'), 'ExecutorsPage'),
})
const executor = createRoute({
  staticData: { needs: 'viewer' },
  getParentRoute: () => app,
  path: '/executors/$executorId',
  validateSearch: only((raw): { gone?: '1' } => (raw.gone === '1' ? { gone: '1' } : {})),
  component: page(() => import('../areas/executors/ExecutorPage'), 'ExecutorPage'),
})

const instances = createRoute({
  staticData: { needs: 'viewer' },
  getParentRoute: () => app,
  path: '/executors/instances',
  validateSearch: only(cursorSearch),
  component: page(() => import('../areas/executors/InstancesPage'), 'InstancesPage'),
})

const alerts = createRoute({
  staticData: { needs: 'viewer', whole: true },
  getParentRoute: () => app,
  path: '/alerts',
  validateSearch: only(incidentsSearch),
  component: page(() => import('../areas/alerts/AlertsPage'), 'AlertsPage'),
})
const notifications = createRoute({
  staticData: { needs: 'viewer', whole: true },
  getParentRoute: () => app,
  path: '/settings/notifications',
  component: page(() => import('../areas/alerts/AlertsPage'), 'NotificationsPage'),
})
const rulePage = () => import('../areas/alerts/AlertRulePage')
const alertRules = createRoute({
  staticData: { needs: 'viewer', whole: true },
  getParentRoute: () => notifications,
  path: '/rules',
  component: page(() => import('../areas/alerts/AlertRulesPage'), 'AlertRulesTab'),
})
const alertRuleNew = createRoute({
  staticData: { needs: 'editor', whole: true },
  getParentRoute: () => app,
  path: '/settings/notifications/rules/new',
  component: page(rulePage, 'AlertRuleNewPage'),
})
const alertRule = createRoute({
  staticData: { needs: 'editor', whole: true },
  getParentRoute: () => app,
  path: '/settings/notifications/rules/$ruleId',
  component: page(rulePage, 'AlertRuleEditPage'),
})
const channelPage = () => import('../areas/alerts/AlertChannelPage')
const alertChannels = createRoute({
  staticData: { needs: 'viewer', whole: true },
  getParentRoute: () => notifications,
  path: '/channels',
  component: page(() => import('../areas/alerts/AlertChannelsPage'), 'AlertChannelsTab'),
})
const alertChannelNew = createRoute({
  staticData: { needs: 'editor', whole: true },
  getParentRoute: () => app,
  path: '/settings/notifications/channels/new',
  component: page(channelPage, 'AlertChannelNewPage'),
})
const alertChannel = createRoute({
  staticData: { needs: 'editor', whole: true },
  getParentRoute: () => app,
  path: '/settings/notifications/channels/$channelId',
  component: page(channelPage, 'AlertChannelEditPage'),
})
const silences = createRoute({
  staticData: { needs: 'viewer', whole: true },
  getParentRoute: () => notifications,
  path: '/silences',
  validateSearch: only((raw): { over?: '1' } => (raw.over === '1' ? { over: '1' } : {})),
  component: page(() => import('../areas/alerts/SilencesPage'), 'SilencesTab'),
})
const deliveries = createRoute({
  staticData: { needs: 'viewer', whole: true },
  getParentRoute: () => notifications,
  path: '/deliveries',
  validateSearch: only(deliveriesSearch),
  component: page(() => import('../areas/alerts/DeliveriesPage'), 'DeliveriesTab'),
})
const incident = createRoute({
  staticData: { needs: 'viewer', whole: true },
  getParentRoute: () => app,
  path: '/alerts/incidents/$incidentId',
  validateSearch: only(cursorSearch),
  component: page(() => import('../areas/alerts/IncidentPage'), 'IncidentPage'),
})
const calendars = createRoute({
  staticData: { needs: 'viewer', whole: true },
  getParentRoute: () => app,
  path: '/calendars',
  validateSearch: only(cursorSearch),
  component: page(() => import('../areas/calendars/CalendarsPage'), 'CalendarsPage'),
})
const calendarNew = createRoute({
  staticData: { needs: 'editor', whole: true },
  getParentRoute: () => app,
  path: '/calendars/new',
  component: page(() => import('../areas/calendars/CalendarEditPage'), 'CalendarNewPage'),
})
const calendar = createRoute({
  staticData: { needs: 'viewer', whole: true },
  getParentRoute: () => app,
  path: '/calendars/$calendarId',
  component: page(() => import('../areas/calendars/CalendarPage'), 'CalendarPage'),
})
const calendarEdit = createRoute({
  staticData: { needs: 'editor', whole: true },
  getParentRoute: () => app,
  path: '/calendars/$calendarId/edit',
  component: page(() => import('../areas/calendars/CalendarEditPage'), 'CalendarEditPage'),
})
const scripts = createRoute({
  staticData: { needs: 'viewer', whole: true },
  getParentRoute: () => app,
  path: '/settings/integrations/scripts',
  validateSearch: only(cursorSearch),
  component: page(() => import('../areas/integrations/ScriptsPage'), 'ScriptsPage'),
})
const scriptNew = createRoute({
  staticData: { needs: 'scripter', whole: true },
  getParentRoute: () => app,
  path: '/settings/integrations/scripts/new',
  component: page(() => import('../areas/integrations/ScriptEditPage'), 'ScriptNewPage'),
})
const script = createRoute({
  staticData: { needs: 'viewer', whole: true },
  getParentRoute: () => app,
  path: '/settings/integrations/scripts/$scriptId',
  component: page(() => import('../areas/integrations/ScriptPage'), 'ScriptPage'),
})
const scriptEdit = createRoute({
  staticData: { needs: 'scripter', whole: true },
  getParentRoute: () => app,
  path: '/settings/integrations/scripts/$scriptId/edit',
  component: page(() => import('../areas/integrations/ScriptEditPage'), 'ScriptEditPage'),
})
const connections = createRoute({
  staticData: { needs: 'viewer', whole: true },
  getParentRoute: () => app,
  path: '/settings/integrations/connections',
  validateSearch: only(cursorSearch),
  component: page(() => import('../areas/integrations/ConnectionsPage'), 'ConnectionsPage'),
})
const connectionNew = createRoute({
  staticData: { needs: 'editor', whole: true },
  getParentRoute: () => app,
  path: '/settings/integrations/connections/new',
  component: page(() => import('../areas/integrations/ConnectionEditPage'), 'ConnectionNewPage'),
})
const connection = createRoute({
  staticData: { needs: 'viewer', whole: true },
  getParentRoute: () => app,
  path: '/settings/integrations/connections/$connectionId',
  component: page(() => import('../areas/integrations/ConnectionPage'), 'ConnectionPage'),
})
const connectionEdit = createRoute({
  staticData: { needs: 'editor', whole: true },
  getParentRoute: () => app,
  path: '/settings/integrations/connections/$connectionId/edit',
  component: page(() => import('../areas/integrations/ConnectionEditPage'), 'ConnectionEditPage'),
})
const limits = createRoute({
  staticData: { needs: 'viewer', whole: true },
  getParentRoute: () => app,
  path: '/settings/limits',
  component: page(() => import('../areas/access/LimitsPage'), 'LimitsPage'),
})
const cluster = createRoute({
  staticData: { needs: 'viewer', whole: true },
  getParentRoute: () => app,
  path: '/settings/cluster',
  component: page(() => import('../areas/cluster/ClusterPage'), 'ClusterPage'),
})
const users = createRoute({
  staticData: { needs: 'admin', whole: true },
  getParentRoute: () => app,
  path: '/settings/people/users',
  component: page(() => import('../areas/access/UsersPage'), 'UsersPage'),
})
const invitations = createRoute({
  staticData: { needs: 'anyone' },
  getParentRoute: () => app,
  path: '/invitations',
  component: lazyRouteComponent(() => import('../areas/access/InvitationsPage'), 'InvitationsPage'),
})
const apiKeys = createRoute({
  staticData: { needs: 'admin', whole: true },
  getParentRoute: () => app,
  path: '/settings/people/api-keys',
  component: page(() => import('../areas/access/ApiKeysPage'), 'ApiKeysPage'),
})
const tenants = createRoute({
  staticData: { needs: 'platform' },
  getParentRoute: () => app,
  path: '/settings/tenants',
  validateSearch: only(cursorSearch),
  component: page(() => import('../areas/access/TenantsPage'), 'TenantsPage'),
})

const routeTree = root.addChildren([
  login,
  docs,
  password,
  app.addChildren([
    index,
    unknown,
    overview,
    jobs,
    jobNew,
    job.addChildren([jobOverview, jobRuns, jobChanges]),
    jobEdit,
    runs,
    run,
    timers,
    executors,
    instances,
    executor,
    alerts,
    notifications.addChildren([alertRules, alertChannels, silences, deliveries]),
    alertRuleNew,
    alertRule,
    alertChannelNew,
    alertChannel,
    incident,
    calendars,
    calendarNew,
    calendar,
    calendarEdit,
    scripts,
    scriptNew,
    script,
    scriptEdit,
    connections,
    connectionNew,
    connection,
    connectionEdit,
    limits,
    cluster,
    users,
    invitations,
    apiKeys,
    tenants,
    gallery,
  ]),
])

export const router = createRouter({
  routeTree,
  basepath: basePath || '/',
  rewrite,
  parseSearch,
  stringifySearch,
  defaultPreload: 'intent',
  scrollRestoration: true,
  defaultErrorComponent: RouteError,
  defaultPendingComponent: RoutePending,
})

router.subscribe('onBeforeNavigate', ({ fromLocation, pathChanged }) => {
  if (fromLocation && pathChanged) leavePage()
})

// A session that ends under an open page leads to the sign-in page, and back
// to the same address afterwards. What was read is forgotten when the pages
// that show it are gone.
let before = getSession()
subscribeSession(() => {
  const was = before
  before = getSession()
  if (was && !before) void router.invalidate().then(() => queryClient.clear())
  if (before) followTenant(was?.tenant.name, before.tenant.name)
})

/** Puts the address of today with the tenant of the session into the address bar. A link into another tenant keeps that tenant. */
function followTenant(was: string | undefined, tenant: string) {
  const { pathname, search, hash } = router.history.location
  const address = splitTenant(pathname.slice(basePath.length))
  const other = address.tenant !== undefined && address.tenant !== tenant && address.tenant !== was
  const to = movedTo(address.rest, search) ?? { path: address.rest, search }
  const follows = inTenant(to.path, other ? address.tenant : tenant) + to.search + hash
  if (follows !== pathname + search + hash) router.history.replace(follows, router.history.location.state)
}

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
  /** Every route says who may see its page, or it does not compile. */
  interface StaticDataRouteOption {
    needs: Needs
    /** Not for people whose role is bound to executors. */
    whole?: true
  }
}
