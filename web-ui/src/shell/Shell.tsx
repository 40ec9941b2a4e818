// The frame of every page after signing in: navigation, tenant, preferences,
// account.
import {
  ApartmentOutlined,
  ApiOutlined,
  BellOutlined,
  CalendarOutlined,
  ClockCircleOutlined,
  ClusterOutlined,
  ControlOutlined,
  DashboardOutlined,
  HistoryOutlined,
  MenuOutlined,
  NotificationOutlined,
  ScheduleOutlined,
  SearchOutlined,
  SwapOutlined,
  TeamOutlined,
  UserOutlined,
} from '@ant-design/icons'
import { useQuery } from '../api/useQuery'
import { Link, Outlet, useLocation, useNavigate } from '@tanstack/react-router'
import { Button } from 'antd'
import { lazy, Suspense, useEffect, useState, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import type { Role } from '../api/types'
import { api } from '../api/endpoints'
import { queries, queryClient } from '../api/queries'
import { leave } from '../api/session'
import { loadChunk } from '../lib/chunk'
import { tenantOfAddress } from './tenantPath'
import { Banners } from './Banners'
import { Mark } from '../ui/Mark'
import { useCan, useConnection, useSession, useShowError } from '../ui/hooks'
import { later } from '../ui/later'
import { MenuButton } from '../ui/MenuButton'
import { isBound, Permitted } from './Permitted'
import { LanguageMenu, ThemeMenu, TimesMenu, useOwnPreferences } from './Preferences'
import { InShell } from './RouteStates'

const NavDrawer = later(() => import('./NavDrawer'))
const SearchDialog = later(() => import('./SearchDialog'))
const ENTER = '\n'
const OtherTenant = lazy(() => loadChunk(() => import('./OtherTenant')))

type Item = { to: string; icon: ReactNode; key: 'overview' | 'jobs' | 'runs' | 'timers' | 'executors' | 'calendars' | 'notifications' | 'integrations' | 'limits' | 'alerts' | 'cluster' | 'people' | 'tenants'; needs?: 'operator'; whole?: true }

const MAIN: Item[] = [
  { to: '/overview', icon: <DashboardOutlined />, key: 'overview' },
  { to: '/jobs', icon: <ScheduleOutlined />, key: 'jobs' },
  { to: '/runs', icon: <HistoryOutlined />, key: 'runs' },
  { to: '/calendars', icon: <CalendarOutlined />, key: 'calendars', whole: true },
  { to: '/executors', icon: <ClusterOutlined />, key: 'executors' },
  { to: '/timers', icon: <ClockCircleOutlined />, key: 'timers', needs: 'operator' },
  { to: '/alerts', icon: <BellOutlined />, key: 'alerts', whole: true },
]

function useSettings(): Item[] {
  const admin = useCan('admin')
  const platform = useSession()?.user.platformAdmin ?? false
  return [
    { to: '/settings/notifications', icon: <NotificationOutlined />, key: 'notifications', whole: true },
    { to: '/settings/integrations', icon: <ApiOutlined />, key: 'integrations', whole: true },
    { to: '/settings/limits', icon: <ControlOutlined />, key: 'limits', whole: true },
    ...(admin ? [{ to: '/settings/people', icon: <TeamOutlined />, key: 'people' } as const] : []),
    ...(platform ? [{ to: '/settings/tenants', icon: <SwapOutlined />, key: 'tenants' } as const] : []),
    { to: '/settings/cluster', icon: <ApartmentOutlined />, key: 'cluster', whole: true },
  ]
}

function NavLinks({ onGo }: { onGo?: () => void }) {
  const { t } = useTranslation()
  const settings = useSettings()
  const operator = useCan('operator')
  const bound = isBound(useSession())
  const group = (items: Item[]) => (
    <ul className="nav">
      {items.filter((item) => !(bound && item.whole)).map((item) => (
        <li key={item.key}>
          <Link to={item.to} activeOptions={{ includeSearch: false }} onClick={onGo}>
            <span aria-hidden="true">{item.icon}</span>
            {t(`nav.${item.key}`)}
          </Link>
        </li>
      ))}
    </ul>
  )
  return (
    <nav aria-label={t('nav.main')}>
      {group(operator ? MAIN : MAIN.filter((item) => item.needs === undefined))}
      {(!bound || settings.some((item) => !item.whole)) && <div className="nav-title">{t('nav.settings')}</div>}
      {group(settings)}
    </nav>
  )
}

function AccountMenu() {
  const { t } = useTranslation()
  const session = useSession()
  const navigate = useNavigate()
  const showError = useShowError()
  const me = useQuery(queries.me())
  const invitations = useQuery(queries.myInvitations())
  const tenants = me.data?.tenants ?? []
  if (!session) return null
  const { user, tenant } = session

  const onClick = async ({ key }: { key: string }) => {
    try {
      if (key === 'password') await navigate({ to: '/password' })
      else if (key === 'invitations') await navigate({ to: '/invitations' })
      else if (key === 'out') {
        leave()
        await queryClient.cancelQueries()
        await api.logout()
      } else if (key.startsWith('tenant:')) {
        await api.switchTenant(key.slice('tenant:'.length))
        queryClient.clear()
        await navigate({ to: '/overview' })
      }
    } catch (err) {
      showError(err)
    }
  }
  const others = tenants.filter((one) => one.id !== tenant.id)
  return (
    <MenuButton
      button={{ icon: <UserOutlined />, 'aria-label': t('user.menu', { name: user.username }), children: <span className="only-wide">{user.username}</span> }}
      menu={{
        onClick: (info) => void onClick(info),
        items: [
          { key: 'who', type: 'group', label: `${user.username} · ${t(`role.${user.role as Role}`)}` },
          ...(others.length > 0
            ? [{ key: 'tenants', type: 'group' as const, label: t('user.switchTenant'), children: others.map((one) => ({ key: `tenant:${one.id}`, label: one.name })) }]
            : []),
          { type: 'divider' },
          { key: 'invitations', label: t('user.invitations', { count: invitations.data?.items.length ?? 0 }) },
          { key: 'password', label: t('user.changePassword') },
          { key: 'out', label: t('user.signOut') },
        ],
      }}
    />
  )
}

/** A link into another tenant offers to switch. Nothing of its page is asked before. */
function OfTenant({ children }: { children: ReactNode }) {
  const here = useSession()?.tenant.name
  const asked = useLocation({ select: (location) => tenantOfAddress(location.publicHref) })
  if (!here || !asked || asked === here) return children
  return (
    <Suspense fallback={null}>
      <OtherTenant asked={asked} here={here} />
    </Suspense>
  )
}

const onApple = () => /Mac|iPhone|iPad/.test(navigator.userAgent)

/** Opens the search, also by Ctrl-K or ⌘K. An editor may have the keys for itself. The dialog may come later than the first letters, which go into its field. */
function Search() {
  const { t } = useTranslation()
  const [text, setText] = useState<string>()
  const open = text !== undefined
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const modified = onApple() ? event.metaKey : event.ctrlKey
      if (event.key.toLowerCase() !== 'k' || !modified || event.shiftKey || event.altKey || event.defaultPrevented || document.querySelector('[role=dialog]')) return
      event.preventDefault()
      setText('')
    }
    window.addEventListener('keydown', onKeyDown)
    return () => window.removeEventListener('keydown', onKeyDown)
  }, [])
  useEffect(() => {
    if (!open) return
    const onKeyDown = (event: KeyboardEvent) => {
      if (document.activeElement?.closest('[role=dialog] :is(input, button)') || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return
      if (event.key === 'Escape') setText(undefined)
      else if (event.key === 'Enter' || event.key.length === 1) setText((typed = '') => (typed + (event.key === 'Enter' ? ENTER : event.key)).slice(0, 128))
      else return
      event.preventDefault()
      event.stopPropagation()
    }
    window.addEventListener('keydown', onKeyDown, true)
    return () => window.removeEventListener('keydown', onKeyDown, true)
  }, [open])
  const keys = onApple() ? '⌘K' : 'Ctrl K'
  return (
    <>
      <Button type="text" icon={<SearchOutlined />} aria-label={t('search.open', { keys })} onClick={() => setText('')}>
        <span className="only-wide muted">{keys}</span>
      </Button>
      {open && <SearchDialog text={text} onText={setText} onClose={() => setText(undefined)} />}
    </>
  )
}

export function Shell() {
  useOwnPreferences()
  const { t } = useTranslation()
  const session = useSession()
  const [open, setOpen] = useState(false)
  const version = useQuery(queries.version())
  const { trouble } = useConnection()
  return (
    <>
      <a className="skip-link" href="#content">
        {t('nav.skip')}
      </a>
      <div className="shell">
        <aside className="side">
          <Link to="/overview" className="brand">
            <Mark /> Carillon
          </Link>
          <NavLinks />
          <div className="grow" />
          {version.data && <p className="muted small version-note">{version.data.version}</p>}
        </aside>
        <div className="shrinks">
          <header className="topbar">
            <span className="only-narrow">
              <Button type="text" icon={<MenuOutlined />} aria-label={t('nav.open')} onClick={() => setOpen(true)} />
            </span>
            <Link to="/overview" className="brand only-narrow" aria-label="Carillon">
              <Mark />
            </Link>
            <span className="grow clip">
              <span className="muted">{t('user.tenant')}:</span> <strong>{session?.tenant.name}</strong>
            </span>
            <Search />
            <LanguageMenu />
            <TimesMenu />
            <ThemeMenu />
            <AccountMenu />
          </header>
          <Banners />
          <main className={trouble ? 'main no-outline stale' : 'main no-outline'} id="content" tabIndex={-1}>
            <InShell value>
              <OfTenant>
                <Permitted>
                  <Outlet />
                </Permitted>
              </OfTenant>
            </InShell>
          </main>
        </div>
      </div>
      {open && (
        <NavDrawer onClose={() => setOpen(false)}>
          <NavLinks onGo={() => setOpen(false)} />
        </NavDrawer>
      )}
    </>
  )
}
