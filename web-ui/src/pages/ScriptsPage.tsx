import { PlusOutlined } from '@ant-design/icons'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { queries } from '../api/queries'
import type { Script } from '../api/types'
import { useCan } from '../components/hooks'
import { LinkButton } from '../components/LinkButton'
import { Page } from '../components/Page'
import { Pager, ResourceTable, type Column } from '../components/ResourceTable'
import { ScriptPolicyCard } from '../components/ScriptPolicy'
import { Blank } from '../components/States'
import { RelativeTime } from '../components/TimeText'
import { SCRIPT_LANGUAGES } from '../lib/script'

export function ScriptsPage() {
  const { t } = useTranslation()
  const { cursor } = useSearch({ from: '/app/scripts' })
  const navigate = useNavigate()
  const canWrite = useCan('scripter')
  const scripts = useQuery(queries.scripts(cursor))
  const create = canWrite && (
    <LinkButton to="/scripts/new" primary icon={<PlusOutlined />}>
      {t('scripts.create')}
    </LinkButton>
  )
  const columns: Column<Script>[] = [
    {
      key: 'name',
      title: t('scripts.name'),
      kind: 'title',
      render: (one) => (
        <div>
          <Link to="/scripts/$scriptId" params={{ scriptId: one.id }}>
            <strong>{one.name}</strong>
          </Link>
          {one.description && <div className="muted small">{one.description}</div>}
        </div>
      ),
    },
    { key: 'language', title: t('scripts.language'), render: (one) => SCRIPT_LANGUAGES[one.language] },
    { key: 'revision', title: t('scripts.revision'), align: 'right', render: (one) => <span className="num">{one.revision}</span> },
    {
      key: 'updated',
      title: t('field.updated'),
      render: (one) => (
        <span>
          {one.updatedBy} · <RelativeTime at={one.updatedAt} />
        </span>
      ),
    },
  ]
  return (
    <Page title={t('scripts.title')} sub={t('scripts.help')} actions={create}>
      <div className="stack">
        <ScriptPolicyCard />
        <div className="card flush">
          <ResourceTable
            label={t('scripts.title')}
            columns={columns}
            rows={scripts.data?.items}
            rowKey={(one) => one.id}
            error={scripts.error}
            onRetry={() => void scripts.refetch()}
            updatedAt={scripts.dataUpdatedAt}
            empty={
              <Blank title={t('scripts.emptyTitle')} help={t('scripts.emptyHelp')}>
                {create}
              </Blank>
            }
            pager={<Pager cursor={cursor} nextCursor={scripts.data?.nextCursor} onGo={(next) => void navigate({ to: '/scripts', search: next ? { cursor: next } : {} })} />}
          />
        </div>
      </div>
    </Page>
  )
}
