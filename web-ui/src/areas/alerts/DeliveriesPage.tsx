import { useQuery } from '../../api/useQuery'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { alertQueries } from './alerts'
import { DeliveryTable } from './DeliveryTable'
import { Choice } from '../../ui/Choice'
import { Filters } from '../../ui/Filters'
import { useDraftSearch } from '../../ui/hooks'
import { Pager } from '../../ui/ResourceTable'
import { Blank } from '../../ui/States'
import { DELIVERY_STATES, type DeliveriesSearch } from '../../lib/search'

/** The log of messages; what each of them was about is the incident's page. */
export function DeliveriesTab() {
  const { t } = useTranslation()
  const committed = useSearch({ from: '/app/settings/notifications/deliveries' })
  const navigate = useNavigate()
  const [search, setSearch] = useDraftSearch(committed, (next: DeliveriesSearch) => void navigate({ to: '/settings/notifications/deliveries', search: next }))
  const deliveries = useQuery(alertQueries.deliveries({ ...committed }))
  return (
    <>
      <Filters label={t('alerts.deliveries')}>
        <Choice label={t('field.state')} value={search.state} onChange={(state) => setSearch({ state })} options={DELIVERY_STATES.map((value) => ({ value, label: t(`deliveries.state.${value}`) }))} />
      </Filters>
      <div className="card flush">
        <DeliveryTable
          list={deliveries}
          incidents
          filtered={Boolean(search.state)}
          onClearFilters={() => setSearch({})}
          empty={<Blank title={t('deliveries.emptyTitle')} help={t('deliveries.emptyHelp')} />}
          pager={<Pager cursor={search.cursor} nextCursor={deliveries.data?.nextCursor} onGo={(cursor) => setSearch({ ...search, cursor })} />}
        />
      </div>
    </>
  )
}
