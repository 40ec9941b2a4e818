// Filters by an executor. The list to choose from searches at the server; it comes when it is asked for.
import { DownOutlined } from '@ant-design/icons'
import { lazy, Suspense, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { queries } from '../api/queries'
import { useQuery } from '../api/useQuery'
import { loadChunk } from '../lib/chunk'
import { Coming } from './later'

const ExecutorSelect = lazy(() => loadChunk(() => import('./ExecutorSelect').then((module) => ({ default: module.ExecutorSelect }))))

interface Props {
  label: string
  value: string | undefined
  onChange: (id: string | undefined) => void
}

export function ExecutorFilter({ label, value, onChange }: Props) {
  const { t } = useTranslation()
  const [asked, setAsked] = useState(false)
  const name = useExecutorName(value)
  const any = t('list.anyOf', { what: label })
  const closed = (busy: boolean) => (
    <button type="button" className="native-select full" aria-haspopup="listbox" aria-expanded={false} aria-busy={busy} onClick={() => setAsked(true)}>
      <span className="clip">{value ? `${label}: ${name}` : any}</span> <DownOutlined aria-hidden />
    </button>
  )
  return (
    <div className="f-item">
      <span className="f-label" aria-hidden="true">
        {label}
      </span>
      {asked ? (
        <Suspense
          fallback={
            <>
              {closed(true)}
              <Coming />
            </>
          }
        >
          <ExecutorSelect asked allowClear value={value} valueName={value && name} onChange={onChange} label={label} placeholder={any} />
        </Suspense>
      ) : (
        closed(false)
      )}
    </div>
  )
}

/** Its id, until its name is known. */
export function useExecutorName(id: string | undefined): string {
  const executor = useQuery({ ...queries.executor(id ?? ''), enabled: Boolean(id), refetchInterval: false })
  return executor.data?.name ?? id ?? ''
}
