// The pages of one subject, beside each other.
import { Link, type LinkProps } from '@tanstack/react-router'

export interface Tab {
  to: NonNullable<LinkProps['to']>
  params?: LinkProps['params']
  text: string
  /** The addresses of the other tabs begin with the address of this one. */
  exact?: boolean
}

export function Tabs({ label, tabs }: { label: string; tabs: Tab[] }) {
  return (
    <nav className="tabs" aria-label={label}>
      {tabs.map(({ to, params, text, exact }) => (
        <Link key={to} to={to} params={params} activeOptions={{ exact, includeSearch: false }}>
          {text}
        </Link>
      ))}
    </nav>
  )
}
