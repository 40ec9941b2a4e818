// Who may see a page: its route says so (router.tsx), and nothing of it is
// loaded for whoever may not.
import { useMatches } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { Session } from '../api/session'
import type { Role } from '../api/types'
import { roleAtLeast } from '../lib/misc'
import { useSession } from '../ui/hooks'
import { NotAllowed } from '../ui/States'

/** The least role; platform: administrators of the installation. */
export type Needs = Role | 'platform' | 'anyone'

export function allows(session: Session, needs: Needs): boolean {
  switch (needs) {
    case 'anyone':
      return true
    case 'platform':
      return session?.user.platformAdmin ?? false
    default:
      return roleAtLeast(session?.user.role, needs)
  }
}

/** Whether the role is bound to executors: the server answers such a person of these only. */
export const isBound = (session: Session): boolean => (session?.user.executors?.length ?? 0) > 0

export function Permitted({ children }: { children: ReactNode }) {
  const session = useSession()
  const needs = useMatches({ select: (matches) => matches.at(-1)?.staticData.needs ?? 'anyone' })
  const whole = useMatches({ select: (matches) => matches.at(-1)?.staticData.whole ?? false })
  return allows(session, needs) && !(whole && isBound(session)) ? children : <NotAllowed />
}
