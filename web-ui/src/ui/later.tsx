// Parts that few people use come when they are first asked for. Until then a bar at the top of
// the window moves; it takes no room, so that nothing shifts.
import { lazy, Suspense, type ComponentType } from 'react'
import { useTranslation } from 'react-i18next'
import { loadChunk } from '../lib/chunk'

export function Coming() {
  const { t } = useTranslation()
  return (
    <span className="coming" role="status">
      <span className="sr-only">{t('list.loading')}</span>
    </span>
  )
}

/** A dialog, a picker or an editor of its own chunk, which is loaded when it is rendered. */
export function later<P extends object>(load: () => Promise<{ default: ComponentType<P> }>): ComponentType<P> {
  const Part = lazy(() => loadChunk(load))
  return function Later(props: P) {
    return (
      <Suspense fallback={<Coming />}>
        <Part {...props} />
      </Suspense>
    )
  }
}
