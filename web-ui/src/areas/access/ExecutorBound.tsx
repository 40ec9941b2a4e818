// Binding a role to executors, for the forms of users, invitations and API keys.
import { useQuery } from '../../api/useQuery'
import { Form, Select } from 'antd'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { queries } from '../../api/queries'
import { useDebounced } from '../../ui/hooks'

/** How many executors a role may be bound to. */
const MAX_BOUND = 30
const SEARCH_DELAY_MS = 250
/** The roles that are about the whole tenant. */
const WHOLE_TENANT = ['scripter', 'admin']

interface Props {
  /** The roles that are chosen in the form. */
  roles: string[]
}

/** The field "executors": names, which need not exist yet. */
export function ExecutorBound({ roles }: Props) {
  const { t } = useTranslation()
  const [typed, setTyped] = useState('')
  const q = useDebounced(typed, SEARCH_DELAY_MS)
  const found = useQuery({ ...queries.executors({ q, limit: 100 }), refetchInterval: false })
  if (roles.some((role) => WHOLE_TENANT.includes(role))) return null
  return (
    <Form.Item name="executors" label={t('bound.label')} extra={t('bound.help')}>
      <Select
        mode="tags"
        maxCount={MAX_BOUND}
        tokenSeparators={[',', ' ']}
        placeholder={t('bound.all')}
        showSearch={{ filterOption: false, onSearch: setTyped }}
        options={(found.data?.items ?? []).map((one) => ({ value: one.name, label: one.name }))}
        loading={found.isFetching}
      />
    </Form.Item>
  )
}

/** The list for the server; none is the whole tenant. */
export const boundOrNone = (names: string[] | undefined) => (names && names.length > 0 ? names : undefined)
