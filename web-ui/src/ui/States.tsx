// The three designed non-data states of a list: new and empty (teaches),
// empty by filter (offers to clear), error (retry and the request id).
import { ExclamationCircleOutlined, FilterOutlined } from '@ant-design/icons'
import { Button } from 'antd'
import { useState, type ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { ApiError, isApiError } from '../api/problem'
import { basePath } from '../lib/base'
import { CopyButton } from './CopyButton'
import { useDocumentTitle, useErrorText } from './hooks'
import { BellAtRest } from './Mark'

export function Blank({ icon, title, help, children }: { icon?: ReactNode; title: string; help?: string; children?: ReactNode }) {
  return (
    <div className="blank">
      <span className="blank-icon" aria-hidden="true">
        {icon ?? <BellAtRest />}
      </span>
      <h2>{title}</h2>
      {help && <p>{help}</p>}
      {children && <div className="row">{children}</div>}
    </div>
  )
}

export function FilteredBlank({ onClear }: { onClear?: () => void }) {
  const { t } = useTranslation()
  return (
    <Blank icon={<FilterOutlined />} title={t('list.filteredEmpty')} help={t('list.filteredEmptyHelp')}>
      {onClear && <Button onClick={onClear}>{t('action.clearFilters')}</Button>}
    </Blank>
  )
}

/** For a page whose controls this user may not use, reached by its address. */
export function NotAllowed() {
  return <ErrorState error={FORBIDDEN} />
}

const FORBIDDEN = new ApiError({ status: 403, code: 'permission_denied' })

export function ErrorState({ error, onRetry, title }: { error: unknown; onRetry?: () => void; title?: string }) {
  const { t } = useTranslation()
  const text = useErrorText()
  const api = isApiError(error) ? error : undefined
  // What was asked again, until that fails as well (with an error of its own) or an answer takes this away.
  const [retried, setRetried] = useState<unknown>()
  // Asking again does not bring back what is not there.
  const gone = api?.status === 404
  const details = JSON.stringify(
    { code: api?.code ?? 'client', status: api?.status, detail: api?.detail ?? String(error), requestId: api?.requestId, page: location.pathname },
    null,
    2,
  )
  return (
    <div className="blank">
      <span className="blank-icon st-failed" aria-hidden="true">
        <ExclamationCircleOutlined />
      </span>
      {/* Not the request id: a new one every few seconds is not worth interrupting who listens. */}
      <div role="alert">
        <h2>{gone ? <Gone /> : (title ?? t('errors.title'))}</h2>
        <p>{text(error)}</p>
      </div>
      {api?.requestId && (
        <p className="small">
          {t('errors.requestId')}: <span className="mono">{api.requestId}</span>
        </p>
      )}
      <div className="row">
        {gone ? (
          <a href={basePath + '/overview'}>{t('notFound.home')}</a>
        ) : onRetry && (
          <Button
            type="primary"
            onClick={() => {
              setRetried(error)
              onRetry()
            }}
          >
            {t('action.retry')}
          </Button>
        )}
        <CopyButton text={details} label={t('action.copyDetails')} />
      </div>
      <p className="small muted" role="status">
        {retried !== undefined && retried === error && t('errors.retrying')}
      </p>
    </div>
  )
}

/** Says it in the browser's tab as well: the page of what is gone has no title of its own. */
function Gone() {
  const { t } = useTranslation()
  useDocumentTitle(t('notFound.gone'))
  return <>{t('notFound.gone')}</>
}

/** Until a page has what it shows. */
export function PageSkeleton() {
  const { t } = useTranslation()
  return (
    <div className="stack" aria-busy="true">
      <span className="sr-only">{t('list.loading')}</span>
      <span className="skeleton h-28 w-260" />
      <span className="skeleton h-140 full" />
      <span className="skeleton h-220 full" />
    </div>
  )
}
