import { useNavigate, useSearch } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import type { RunsSearch } from '../../lib/search'
import { Page } from '../../ui/Page'
import { RunFilters } from './RunFilters'
import { RunList } from './RunList'

export function RunsPage() {
  const { t } = useTranslation()
  const search = useSearch({ from: '/app/runs' })
  const navigate = useNavigate()
  const go = (change: RunsSearch) => void navigate({ to: '/runs', search: change })
  return (
    <Page title={t('runs.list.title')}>
      <RunFilters search={search} onChange={go} />
      <RunList search={search} onChange={go} />
    </Page>
  )
}
