import { PlusOutlined } from '@ant-design/icons'
import { useQuery } from '../../api/useQuery'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { scriptQueries } from './scripts'
import type { Script } from '../../api/types'
import { useCan } from '../../ui/hooks'
import { LinkButton } from '../../ui/LinkButton'
import { NamedTable } from '../../ui/NamedTable'
import { Page } from '../../ui/Page'
import type { Column } from '../../ui/ResourceTable'
import { IntegrationTabs } from './IntegrationTabs'
import { ScriptPolicyCard } from './ScriptPolicy'
import { SCRIPT_LANGUAGES } from './scriptWords'

export function ScriptsPage() {
  const { t } = useTranslation()
  const { cursor } = useSearch({ from: '/app/settings/integrations/scripts' })
  const navigate = useNavigate()
  const canWrite = useCan('scripter')
  const scripts = useQuery(scriptQueries.scripts(cursor))
  const create = canWrite && (
    <LinkButton to="/settings/integrations/scripts/new" primary icon={<PlusOutlined />}>
      {t('scripts.create')}
    </LinkButton>
  )
  const columns: Column<Script>[] = [
    { key: 'language', title: t('scripts.language'), render: (one) => SCRIPT_LANGUAGES[one.spec.language] },
    { key: 'version', title: t('scripts.version'), align: 'right', render: (one) => <span className="num">{one.version}</span> },
  ]
  return (
    <Page title={t('scripts.title')} help={t('scripts.help')} actions={create} tabs={<IntegrationTabs />}>
      <div className="stack">
        <NamedTable
          label={t('scripts.title')}
          list={scripts}
          link={(one, name) => (
            <Link to="/settings/integrations/scripts/$scriptId" params={{ scriptId: one.id }}>
              {name}
            </Link>
          )}
          columns={columns}
          emptyTitle={t('scripts.emptyTitle')}
          emptyHelp={t('scripts.emptyHelp')}
          create={create}
          cursor={cursor}
          onGo={(next) => void navigate({ to: '/settings/integrations/scripts', search: next ? { cursor: next } : {} })}
        />
        <ScriptPolicyCard />
      </div>
    </Page>
  )
}
