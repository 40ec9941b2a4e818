import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'
import { budget } from './scripts/budget.mjs'
import { labels } from './scripts/labels.mjs'
import { unused } from './scripts/unused.mjs'

// The development server hands API calls to a running server. Default: the
// mock of e2e/mock on port 8099; set CARILLON_DEV_API to use a real one.
const api = process.env.CARILLON_DEV_API ?? 'http://127.0.0.1:8099'

/** Parts of the component library, without their texts: those belong to the languages. */
const library = (names: string) => `node_modules/(?:antd/es|@rc-component)/(?:${names})/(?!(?:es/)?(?:generate/)?locale)`
const source = (names: string) => `/web-ui/src/(?:${names})`
/** Parts of ours that stand on no heavy part of the library. */
const light = 'ActionButton|JobLinks|Check|complain|CopyButton|Fact|Hint|later|LinkButton|MenuButton|Page|SecretDialog|StateChip|StateIcon|States|Switcher|Tabs|TextField|TimeText|useConfirm|useDanger|useLeaveGuard'
const ofLists = 'ByWhom|Changes|Choice|ExecutorFilter|Filters|Meter|NamedTable|ResourceTable|SearchBox|Versions'
const group = (name: string, ...tests: string[]) => ({ name, test: new RegExp(tests.join('|')) })

// A page loads a few files instead of a hundred. A group takes what its modules need, so the light
// ones come first: a page without a form loads no part of a form. Other modules that pages share go
// together by the pages that use them. scripts/budget.mjs prints what each page loads.
const groups = [
  { name: 'shell', tags: ['$initial' as const] },
  group('icons', 'node_modules/@ant-design/icons'),
  group('said', source('lib/(?:said|why)\\.')),
  group('common', library('alert'), source(`lib/|api/|ui/(?:${light})\\.|ui/input/JsonView|areas/(?:integrations/scripts|calendars/calendars)\\.`)),
  group('data', source('areas/(?:alerts/(?:alerts|AlertWords|Rendered|RuleText)|access/(?:access|BoundTo|PeopleTabs)|executors/(?:executors|limits|maintenance|joining|FleetTabs|InstanceLoad)|integrations/(?:connections|IntegrationTabs|scriptWords))\\.')),
  group('lists', source(`ui/(?:${ofLists})\\.|shell/(?:OtherTenant|MaintenanceNotice)|areas/login/Gate`)),
  group('job', source('areas/jobs/(?:FireList|ScheduleText|SchedulePreview|form/callback|form/jobForm)\\.')),
  group('charts', source('charts/')),
  group('runs', source('areas/runs/(?:RunsPage|RunFilters|RunList|RunBars|RunTable)\\.')),
  group('deliveries', source('areas/alerts/(?:DeliveriesPage|DeliveryTable)\\.')),
  group('base', library('trigger|portal|resize-observer|tooltip|overflow|space|motion|_util|style|empty|config-provider|layout|watermark')),
  group('form', library('form|async-validator|grid|col|row'), source('ui/(?:EditPage|useVersionedForm|Overwrite)\\.'), 'node_modules/(?:scroll-into-view-if-needed|compute-scroll-into-view)/'),
  group('dialog', library('modal|dialog|drawer|skeleton'), source('shell/(?:Dialogs|NavDrawer)|ui/(?:Dialog|ShownSecret)\\.')),
  group('menu', library('menu|dropdown'), source('ui/OpenMenu')),
  group('field', library('input|textarea|checkbox')),
  group('number', library('input-number|mini-decimal')),
  group('select', library('select|virtual-list|auto-complete'), source('ui/(?:ExecutorSelect|clearable)')),
  group('picker', library('date-picker|picker|time-picker'), source('ui/WallPicker|areas/runs/RangePicker|areas/calendars/LinePicker')),
  group('editor', source('ui/input/(?!JsonView|JsonEditorInner)|areas/runs/(?:Misfits|useUnfit)\\.')),
  group('fields', source('ui/EndFields|areas/alerts/(?:AlertMatchFields|ChannelsSelect|QuietHoursFields)\\.|areas/access/(?:RoleSelect|ExecutorBound|userNames)|areas/executors/(?:names|expiry)')),
  group('tenant', source('areas/access/(?:CreateTenant|RenameTenant|DeleteTenant|ChangeRole|CreateUser|InviteUser)\\.')),
  group('executor', source('areas/(?:executors/(?:RenameDialog|RemovedDialog|CallbacksDialog)|alerts/TestResult)\\.')),
  group('deleted', source('(?:ui/DeletedTable|areas/jobs/change/DeletedJobs|areas/executors/DeletedExecutors)\\.')),
  group('radio', library('radio')),
  { name: 'parts', entriesAware: true, minShareCount: 2, entriesAwareMergeThreshold: 3_000 },
].map((one, i, all) => ({ ...one, priority: all.length - i }))

export default defineConfig({
  plugins: [react(), unused(), labels(), budget()],
  // Absolute in index.html, because a relative base breaks deep links of two levels.
  // The server writes its path there (handler.go). Scripts and styles name each other
  // relative to themselves, so they have no path that could be wrong.
  base: '/',
  experimental: { renderBuiltUrl: (_, { hostType }) => (hostType === 'html' ? undefined : { relative: true }) },
  build: {
    target: 'es2022',
    outDir: 'dist',
    // dist/.keep is committed so that Go builds without Node; it is put back
    // by scripts/precompress.mjs after Vite has emptied the folder.
    emptyOutDir: true,
    sourcemap: false,
    // One sheet: the styles of a page are less than 1 kB.
    cssCodeSplit: false,
    chunkSizeWarningLimit: 900,
    rolldownOptions: { output: { codeSplitting: { groups } } },
  },
  server: { proxy: { '/api': api, '/healthz': api, '/readyz': api } },
})
